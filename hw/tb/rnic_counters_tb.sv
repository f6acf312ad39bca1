// SPDX-License-Identifier: Apache-2.0
//
// rnic_counters: random events on all inputs at once against plain counting; the captured frame in both modes.

module rnic_counters_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [63:0] now = 64'h123456789;
  logic time_read = 0;
  logic [63:0] n_time = '0;
  logic ready = 1, idle = 0, drops_only = 0, verdict_valid = 0, drop_valid = 0, bytes_valid = 0, frame_valid = 0;
  logic [15:0] ci = 16'h77;
  rnic_regs_pkg::rx_verdict_t verdict = '0;
  logic [4:0] drop = '0;
  logic [3:0] wqe = '0;
  logic [12:0] bytes = '0;
  logic [15:0] frame_len = '0;
  logic [2:0] frame_kind = '0;
  logic [5:0] rd_err = '0;
  logic [4:0] wr_err = '0;
  logic [3:0] ev_rd = '0;       // NAK access, NAK op, READ, atomic of the responder
  longint n_rsp[4];
  logic [5:0] bad_db = '0;
  logic eqe = 0, eqe_lost = 0;
  logic [2:0] rq_wqe = '0, srq_wqe = '0;
  logic [19:0] pauses = '0;
  longint n_pause[20];
  logic [5:0] ev2 = '0;
  logic [rnic_pkg::NumVec-1:0] irq = '0, irq_pend = '0;
  logic [22:0] ev = '0;
  logic push = 0;
  logic [1:0] np = '0;
  longint n_np[2];
  logic [2:0] push_unused = '0;
  logic [1:0] ev3 = '0;
  longint n3[2];
  rnic_pkg::ctx_ev_t ev_mr = '0, ev_qp = '0, ev_cq = '0, ev_srq = '0;
  logic [1:0] bad_qpn = '0;
  longint n_mr[5], n_qp[5], n_cq[5], n_srq[5];
  rnic_regs_pkg::csr_hw2reg_t q;

  rnic_counters #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .time_i(now), .time_read_i(time_read), .ready_i(ready), .idle_i(idle), .cmdq_ci_i(ci),
    .capture_drops_only_i(drops_only), .verdict_valid_i(verdict_valid), .verdict_i(verdict),
    .ev_drop_valid_i(drop_valid), .ev_drop_i(drop), .ev_nak_op_i(ev[0]), .ev_rx_message_i(ev[1]),
    .ev_rsp_nak_access_i(ev_rd[0]), .ev_rsp_nak_op_i(ev_rd[1]), .ev_read_i(ev_rd[2]), .ev_atomic_i(ev_rd[3]),
    .ev_rx_bytes_valid_i(bytes_valid), .ev_rx_bytes_i(bytes), .ev_stall_rx_dma_i(ev[2]),
    .ev_frame_valid_i(frame_valid), .ev_frame_len_i(frame_len), .ev_frame_kind_i(frame_kind), .ev_mark_i(np[0]), .ev_cnp_drop_i(np[1]),
    .ev_abort_i(ev[3]), .ev_stall_mac_i(ev[4]), .ev_stall_read_i(ev[5]), .ev_wqe_i(wqe), .ev_push_i(push), .ev_push_unused_i(push_unused), .ev_ack_i(ev[6]),
    .ev_nak_i(ev[7]), .ev_ghost_i(ev[8]), .ev_window_i(ev[9]), .ev_cqe_i(ev[10]), .ev_cqe_lost_i(ev[11]),
    .ev_cq_overrun_i(ev[12]), .ev_cqe_error_i({ev3[0], ev[13]}), .ev_cqe_flush_i({ev3[1], ev[14]}), .ev_cmd_i(ev[15]),
    .ev_cmd_error_i(ev[16]), .ev_qp_fatal_i(ev[17]), .ev_srq_limit_i(ev[19]), .ev_last_wqe_i(ev[20]), .ev_bad_db_i(bad_db), .ev_axi_rd_err_i(rd_err),
    .ev_axi_wr_err_i(wr_err), .ev_rq_wqe_i(rq_wqe), .ev_rx_send_i(ev2[0]),
    .ev_no_buffer_i(ev2[1]), .ev_timeout_i(ev2[2]), .ev_nak_seq_i(ev2[3]), .ev_rnr_i(ev2[4]), .ev_again_i(ev2[5]),
    .ev_rx_pause_i(pauses[7:0]), .ev_tx_pause_i(pauses[15:8]), .ev_storm_warning_i(pauses[16]), .ev_storm_error_i(pauses[17]),
    .ev_pause_ignored_i(pauses[18]), .ev_stall_pause_i(pauses[19]),
    .ev_eqe_i(eqe), .ev_eqe_lost_i(eqe_lost), .irq_i(irq),
    .irq_pend_i(irq_pend), .ev_mr_i(ev_mr), .ev_qp_i(ev_qp), .ev_cq_i(ev_cq), .ev_srq_i(ev_srq), .ev_cq_fatal_i(ev[21]), .ev_srq_fatal_i(ev[22]), .ev_srq_wqe_i(srq_wqe), .ev_bad_qpn_i(bad_qpn), .hw2reg_o(q));

  longint n[20], n_frames = 0, n_bytes = 0, n_acc = 0, n_ce = 0, n_ect0 = 0, n_ect1 = 0, n_fecn = 0, n_becn = 0, n_rxb = 0, n_txf = 0, n_txb = 0;
  longint n_kind[8], n_wqe = 0, n_bad = 0, n_rd = 0, n_wr = 0, n_drop[24], n_tdrop[32], n_raw = 0;
  longint n_push = 0, n_unused = 0, m[6], n_eqe = 0, n_lost = 0, n_irq = 0;
  int captures = 0;
  rnic_regs_pkg::rx_verdict_t last;

  task automatic same(input string what, input logic [63:0] got, input longint want);
    if (got != 64'(want)) $fatal(1, "%s: %0d, want %0d", what, got, want);
  endtask

  initial begin
    for (int i = 0; i < 20; i++) n[i] = 0;
    for (int i = 0; i < 6; i++) m[i] = 0;
    for (int i = 0; i < 2; i++) n_np[i] = 0;
    for (int i = 0; i < 20; i++) n_pause[i] = 0;
    for (int i = 0; i < 8; i++) n_kind[i] = 0;
    for (int i = 0; i < 4; i++) n_rsp[i] = 0;
    for (int i = 0; i < 24; i++) n_drop[i] = 0;
    for (int i = 0; i < 32; i++) n_tdrop[i] = 0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int k = 0; k < 20000; k++) begin
      @(negedge clk);
      if (k > 0 && {q.events.srq_fatal, q.events.cq_fatal, q.events.eq_overrun, q.events.last_wqe, q.events.srq_limit, q.events.cmd_error, q.events.bad_doorbell, q.events.qp_fatal,
                    q.events.axi_write_error, q.events.axi_read_error, q.events.cq_overrun} !=
                   {ev[22], ev[21], eqe_lost, ev[20], ev[19], ev[16], |bad_db || |bad_qpn, ev[17], |wr_err || ev_mr.wr_err || ev_qp.wr_err || ev_cq.wr_err || ev_srq.wr_err, |rd_err || ev_mr.rd_err || ev_qp.rd_err || ev_cq.rd_err || ev_srq.rd_err, ev[12]}) $fatal(1, "events %b", q.events);
      if (k > 0 && q.irq_pending.vectors != irq_pend) $fatal(1, "irq_pending %b", q.irq_pending);
      if (k > 0) same("cycles", q.cycles.count, n_time);
      now = now + 1;
      time_read = ($urandom() % 4) == 0;
      if (time_read) n_time = now;
      eqe = 1'($urandom());
      eqe_lost = 1'($urandom());
      irq = 4'($urandom());
      irq_pend = 4'($urandom());
      n_eqe += longint'(eqe);
      n_lost += longint'(eqe_lost);
      n_irq += longint'($countones(irq));
      drops_only = k >= 10000;
      ev = 23'($urandom());
      ev3 = 2'($urandom());
      np = 2'($urandom());
      for (int i = 0; i < 2; i++) n_np[i] += longint'(np[i]);
      for (int i = 0; i < 2; i++) n3[i] += longint'(ev3[i]);
      pauses = 20'($urandom());
      for (int i = 0; i < 20; i++) n_pause[i] += longint'(pauses[i]);
      ev_rd = 4'($urandom());
      for (int i = 0; i < 4; i++) if (ev_rd[i]) n_rsp[i]++;
      if (ev_rd[0]) n_tdrop[9]++;
      if (ev_rd[1]) n_tdrop[10]++;
      verdict_valid = ($urandom() % 2) == 0;
      for (int i = 0; i < 32; i++) verdict[32*i+:32] = $urandom();
      verdict.reason = ($urandom() % 2) == 0 ? 8'd0 : 8'($urandom() % 24);
      drop_valid = ($urandom() % 2) == 0;
      drop = 5'($urandom() % 20);
      if (($urandom() % 3) == 0) drop = ev[0] ? 5'd10 : 5'd11;
      bytes_valid = ($urandom() % 2) == 0;
      bytes = 13'($urandom());
      frame_valid = ($urandom() % 2) == 0;
      frame_len = 16'($urandom());
      frame_kind = 3'($urandom() % 7);
      wqe = 4'($urandom());
      bad_db = 6'($urandom());
      rd_err = 6'($urandom());
      wr_err = 5'($urandom());
      ev_mr = 7'($urandom());
      n_mr[0] += longint'(ev_mr.hit);
      n_mr[1] += longint'(ev_mr.miss);
      n_mr[2] += longint'(ev_mr.evict);
      n_mr[3] += longint'(ev_mr.writeback);
      n_mr[4] += longint'(ev_mr.stall);
      ev_qp = 7'($urandom());
      n_qp[0] += longint'(ev_qp.hit);
      n_qp[1] += longint'(ev_qp.miss);
      n_qp[2] += longint'(ev_qp.evict);
      n_qp[3] += longint'(ev_qp.writeback);
      n_qp[4] += longint'(ev_qp.stall);
      ev_cq = 7'($urandom());
      n_cq[0] += longint'(ev_cq.hit);
      n_cq[1] += longint'(ev_cq.miss);
      n_cq[2] += longint'(ev_cq.evict);
      n_cq[3] += longint'(ev_cq.writeback);
      n_cq[4] += longint'(ev_cq.stall);
      bad_qpn = 2'($urandom());
      for (int i = 0; i < 18; i++) if (ev[i]) n[i]++;
      if (verdict_valid) begin
        n_frames++;
        n_bytes += longint'(verdict.frame_len);
        n_drop[verdict.reason]++;
        if (verdict.reason == 0 && verdict.raw) n_raw++;
        else if (verdict.reason == 0) begin
          n_acc++;
          if (verdict.tos[1:0] == 3) n_ce++;
          if (verdict.tos[1:0] == 2) n_ect0++;
          if (verdict.tos[1:0] == 1) n_ect1++;
          if (verdict.fecn) n_fecn++;
          if (verdict.becn) n_becn++;
        end
        if (!drops_only || verdict.reason != 0) begin
          last = verdict;
          captures++;
        end
      end
      if (drop_valid) n_tdrop[drop]++;
      if (ev[0]) n_tdrop[10]++;
      if (ev[8]) n_tdrop[11]++;
      if (bytes_valid) n_rxb += longint'(bytes);
      if (frame_valid) begin
        n_txf++;
        n_txb += longint'(frame_len);
        n_kind[frame_kind]++;
      end
      rq_wqe = 3'($urandom());
      srq_wqe = 3'($urandom());
      ev_srq = 7'($urandom());
      n_srq[0] += longint'(ev_srq.hit);
      n_srq[1] += longint'(ev_srq.miss);
      n_srq[2] += longint'(ev_srq.evict);
      n_srq[3] += longint'(ev_srq.writeback);
      n_srq[4] += longint'(ev_srq.stall);
      ev2 = 6'($urandom());
      push = 1'($urandom());
      push_unused = 3'($urandom());
      n_push += longint'(push);
      n_unused += longint'(push_unused);
      for (int i = 0; i < 6; i++) if (ev2[i]) m[i]++;
      n_wqe += longint'(wqe) + longint'(rq_wqe) + longint'(srq_wqe);
      n_bad += longint'($countones(bad_db)) + longint'(bad_qpn);
      n_rd += longint'($countones({rd_err, ev_mr.rd_err, ev_qp.rd_err, ev_cq.rd_err, ev_srq.rd_err}));
      n_wr += longint'($countones({wr_err, ev_mr.wr_err, ev_qp.wr_err, ev_cq.wr_err, ev_srq.wr_err}));
    end
    @(negedge clk);
    same("rx_frames", q.rx_frames.count, n_frames);
    same("rx_bytes", q.rx_bytes.count, n_bytes);
    same("rx_roce_packets", q.rx_roce_packets.count, n_acc);
    same("np_ecn_marked_roce_packets", q.np_ecn_marked_roce_packets.count, n_np[0]);
    same("np_cnp_dropped", q.np_cnp_dropped.count, n_np[1]);
    same("np_cnp_sent", q.np_cnp_sent.count, n_kind[6]);
    same("rx_ecn_ce", q.rx_ecn_ce.count, n_ce);
    same("rx_ecn_ect0", q.rx_ecn_ect0.count, n_ect0);
    same("rx_ecn_ect1", q.rx_ecn_ect1.count, n_ect1);
    same("rx_fecn", q.rx_fecn.count, n_fecn);
    same("rx_becn", q.rx_becn.count, n_becn);
    same("rx_write_requests", q.rx_write_requests.count, n[1]);
    same("rx_payload_bytes", q.rx_payload_bytes.count, n_rxb);
    same("stall_rx_dma", q.stall_rx_dma.count, n[2]);
    same("tx_frames", q.tx_frames.count, n_txf);
    same("tx_bytes", q.tx_bytes.count, n_txb);
    same("tx_write_packets", q.tx_write_packets.count, n_kind[0]);
    same("tx_acks", q.tx_acks.count, n_kind[1]);
    same("tx_raw_frames", q.tx_raw_frames.count, n_kind[4]);
    same("rx_raw_frames", q.rx_raw_frames.count, n_raw);
    same("tx_naks", q.tx_naks.count, n_kind[2]);
    same("tx_read_responses", q.tx_read_responses.count, n_kind[3]);
    same("rx_read_requests", q.rx_read_requests.count, n_rsp[2]);
    same("rx_atomic_requests", q.rx_atomic_requests.count, n_rsp[3]);
    same("duplicate_request", q.duplicate_request.count, n_tdrop[5]);
    same("tx_aborted", q.tx_aborted.count, n[3]);
    same("stall_tx_mac", q.stall_tx_mac.count, n[4]);
    same("stall_tx_read", q.stall_tx_read.count, n[5]);
    same("wqe_fetched", q.wqe_fetched.count, n_wqe);
    same("wqe_pushed", q.wqe_pushed.count, n_push);
    same("wqe_push_unused", q.wqe_push_unused.count, n_unused);
    same("rx_acks", q.rx_acks.count, n[6]);
    same("rx_naks", q.rx_naks.count, n[7]);
    same("stall_tx_window", q.stall_tx_window.count, n[9]);
    same("cqe_written", q.cqe_written.count, n[10]);
    same("cqe_overrun", q.cqe_overrun.count, n[11]);
    same("req_cqe_error", q.req_cqe_error.count, n[13]);
    same("req_cqe_flush_error", q.req_cqe_flush_error.count, n[14]);
    same("resp_cqe_error", q.resp_cqe_error.count, n3[0]);
    same("resp_cqe_flush_error", q.resp_cqe_flush_error.count, n3[1]);
    same("commands", q.commands.count, n[15]);
    same("bad_doorbells", q.bad_doorbells.count, n_bad);
    same("axi_read_errors", q.axi_read_errors.count, n_rd);
    same("axi_write_errors", q.axi_write_errors.count, n_wr);
    same("rx_send_requests", q.rx_send_requests.count, m[0]);
    same("out_of_buffer", q.out_of_buffer.count, m[1]);
    same("local_ack_timeout_err", q.local_ack_timeout_err.count, m[2]);
    same("packet_seq_err", q.packet_seq_err.count, m[3]);
    same("rnr_nak_retry_err", q.rnr_nak_retry_err.count, m[4]);
    same("tx_retransmits", q.tx_retransmits.count, m[5]);
    same("mr_cache_hit", q.mr_cache_hit.count, n_mr[0]);
    same("qp_cache_hit", q.qp_cache_hit.count, n_qp[0]);
    same("mr_cache_miss", q.mr_cache_miss.count, n_mr[1]);
    same("qp_cache_miss", q.qp_cache_miss.count, n_qp[1]);
    same("mr_cache_evict", q.mr_cache_evict.count, n_mr[2]);
    same("qp_cache_evict", q.qp_cache_evict.count, n_qp[2]);
    same("mr_cache_writeback", q.mr_cache_writeback.count, n_mr[3]);
    same("qp_cache_writeback", q.qp_cache_writeback.count, n_qp[3]);
    same("mr_cache_stall", q.mr_cache_stall.count, n_mr[4]);
    same("qp_cache_stall", q.qp_cache_stall.count, n_qp[4]);
    same("cq_cache_hit", q.cq_cache_hit.count, n_cq[0]);
    same("cq_cache_miss", q.cq_cache_miss.count, n_cq[1]);
    same("cq_cache_evict", q.cq_cache_evict.count, n_cq[2]);
    same("cq_cache_writeback", q.cq_cache_writeback.count, n_cq[3]);
    same("cq_cache_stall", q.cq_cache_stall.count, n_cq[4]);
    same("srq_cache_hit", q.srq_cache_hit.count, n_srq[0]);
    same("srq_cache_miss", q.srq_cache_miss.count, n_srq[1]);
    same("srq_cache_evict", q.srq_cache_evict.count, n_srq[2]);
    same("srq_cache_writeback", q.srq_cache_writeback.count, n_srq[3]);
    same("srq_cache_stall", q.srq_cache_stall.count, n_srq[4]);
    same("eqe_written", q.eqe_written.count, n_eqe);
    same("eqe_lost", q.eqe_lost.count, n_lost);
    same("interrupts", q.interrupts.count, n_irq);
    same("cycles", q.cycles.count, n_time);
    for (int i = 0; i < 8; i++) same("rx_prio_pause", q.rx_prio_pause[i].count, n_pause[i]);
    for (int i = 0; i < 8; i++) same("tx_prio_pause", q.tx_prio_pause[i].count, n_pause[8+i]);
    same("tx_pause_storm_warning_events", q.tx_pause_storm_warning_events.count, n_pause[16]);
    same("tx_pause_storm_error_events", q.tx_pause_storm_error_events.count, n_pause[17]);
    same("rx_pause_storm_events", q.rx_pause_storm_events.count, n_pause[18]);
    same("stall_tx_pause", q.stall_tx_pause.count, n_pause[19]);
    for (int i = 0; i < 24; i++) same("rx_drop", q.rx_drop[i].count, n_drop[i]);
    for (int i = 0; i < 19; i++) same("transport_drop", q.transport_drop[i].count, n_tdrop[i]);
    if (q.last_info.seq != 8'(captures) || q.last_info.reason != last.reason || q.last_info.opcode != last.opcode ||
        q.last_info.frame_len != last.frame_len || q.last_info.ethertype != last.ethertype ||
        q.last_info.vlan_tags != last.vlan_tags || q.last_info.ipv6 != last.ipv6 ||
        q.last_info.icrc_ok != last.icrc_ok || q.last_bth.dest_qp != last.dest_qp ||
        q.last_bth.flags != last.bth_flags || q.last_bth.psn != last.psn || q.last_bth.becn != last.becn ||
        q.last_bth.fecn != last.fecn || {q.last_sip[1], q.last_sip[0]} != last.sip ||
        {q.last_dip[1], q.last_dip[0]} != last.dip) $fatal(1, "captured frame");
    if (q.caps0.data_width != 16'(DataW) || q.caps0.log_num_qp != 8 || q.caps0.log_num_cq != 16 ||
        q.caps0.log_num_mr != 24 || q.caps1.max_frame != 9216 || q.caps1.max_sge != 4 ||
        q.caps1.log_inflight != 7 || q.caps1.log_max_queue != 15) $fatal(1, "caps");
    if (!q.status.ready || q.status.idle || q.cmdq_ci.ci != 16'h77) $fatal(1, "status");
    rst_n = 0;
    @(negedge clk);
    if (q != '0) $fatal(1, "reset");
    $display("PASS %0d verdicts", n_frames);
    $finish;
  end
endmodule
