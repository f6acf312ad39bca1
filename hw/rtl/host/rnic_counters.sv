// SPDX-License-Identifier: Apache-2.0
//
// What the registers show of the hardware: counters, sticky event pulses, sizes, the frame captured
// for debugging.
//
// Every event input may pulse in every cycle. Everything is registered once: a register shows an
// event one cycle after its pulse. Meaning of each counter: hw/regs/csr.yaml.

`define RNIC_COUNT_CACHE(NAME, EV) \
      if (EV.hit) q.NAME``_hit.count <= q.NAME``_hit.count + 64'd1; \
      if (EV.miss) q.NAME``_miss.count <= q.NAME``_miss.count + 64'd1; \
      if (EV.evict) q.NAME``_evict.count <= q.NAME``_evict.count + 64'd1; \
      if (EV.writeback) q.NAME``_writeback.count <= q.NAME``_writeback.count + 64'd1; \
      if (EV.stall) q.NAME``_stall.count <= q.NAME``_stall.count + 64'd1;

module rnic_counters
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned ClkPs = 4000
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic [63:0]                time_i,
  input  logic                       time_read_i,   // a register read begins: keep the time of now
  // status
  input  logic                       ready_i,
  input  logic                       idle_i,
  input  logic                       link_up_i,
  input  logic [15:0]                cmdq_ci_i,
  input  logic                       capture_drops_only_i,
  // receive
  input  logic                       verdict_valid_i,
  // verilator lint_off UNUSEDSIGNAL
  input  rnic_regs_pkg::rx_verdict_t verdict_i,  // some fields are not kept
  // verilator lint_on UNUSEDSIGNAL
  input  logic                       ev_drop_valid_i,
  input  logic [4:0]                 ev_drop_i,
  input  logic                       ev_nak_op_i,
  input  logic                       ev_rsp_nak_access_i,
  input  logic                       ev_rsp_nak_op_i,
  input  logic                       ev_read_i,
  input  logic                       ev_atomic_i,
  input  logic                       ev_rx_message_i,
  input  logic                       ev_rx_send_i,
  input  logic                       ev_no_buffer_i,
  input  logic [2:0]                 ev_rq_wqe_i,
  input  logic [2:0]                 ev_srq_wqe_i,
  input  logic                       ev_rx_bytes_valid_i,
  input  logic [12:0]                ev_rx_bytes_i,
  input  logic                       ev_stall_rx_dma_i,
  // transmit
  input  logic                       ev_frame_valid_i,
  input  logic [15:0]                ev_frame_len_i,
  input  logic [2:0]                 ev_frame_kind_i,
  input  logic                       ev_mark_i,
  input  logic                       ev_cnp_drop_i,
  input  logic                       ev_abort_i,
  input  logic                       ev_stall_mac_i,
  input  logic                       ev_stall_read_i,
  // requester
  input  logic [3:0]                 ev_wqe_i,
  input  logic                       ev_push_i,
  input  logic [2:0]                 ev_push_unused_i,
  input  logic                       ev_ack_i,
  input  logic                       ev_nak_i,
  input  logic                       ev_ghost_i,
  input  logic                       ev_window_i,
  input  logic                       ev_credit_i,
  input  logic                       ev_credit_update_i,
  input  logic                       ev_timeout_i,
  input  logic                       ev_nak_seq_i,
  input  logic                       ev_rnr_i,
  input  logic                       ev_again_i,
  input  logic                       ev_tx_read_i,
  input  logic                       ev_tx_atomic_i,
  input  logic                       ev_implied_i,
  input  logic                       ev_dup_rsp_i,
  input  logic                       ev_ghost_rsp_i,
  // flow control
  input  logic [7:0]                 ev_rx_pause_i,
  input  logic [7:0]                 ev_tx_pause_i,
  input  logic                       ev_storm_warning_i,
  input  logic                       ev_storm_error_i,
  input  logic                       ev_pause_ignored_i,
  input  logic                       ev_stall_pause_i,
  // host
  input  logic                       ev_cqe_i,
  input  logic                       ev_cqe_lost_i,
  input  logic                       ev_cq_overrun_i,
  input  logic [1:0]                 ev_cqe_error_i,   // of a send, of a receive
  input  logic [1:0]                 ev_cqe_flush_i,
  input  logic                       ev_eqe_i,
  input  logic                       ev_eqe_lost_i,
  input  logic [NumVec-1:0]          irq_i,
  input  logic [NumVec-1:0]          irq_pend_i,
  input  logic                       ev_cmd_i,
  input  logic                       ev_cmd_error_i,
  input  logic                       ev_srq_limit_i,
  input  logic                       ev_last_wqe_i,
  input  logic                       ev_qp_fatal_i,
  input  logic [5:0]                 ev_bad_db_i,
  input  logic [1:0]                 ev_bad_qpn_i,   // doorbells of QPs that do not exist, a number
  input  logic [5:0]                 ev_axi_rd_err_i,
  input  logic [4:0]                 ev_axi_wr_err_i,
  input  ctx_ev_t                    ev_mr_i,
  input  ctx_ev_t                    ev_qp_i,
  input  ctx_ev_t                    ev_cq_i,
  input  ctx_ev_t                    ev_srq_i,
  input  logic                       ev_cq_fatal_i,
  input  logic                       ev_srq_fatal_i,
  output rnic_regs_pkg::csr_hw2reg_t hw2reg_o
);

  localparam int unsigned NumDrop = rnic_regs_pkg::CsrTransportDropCount;
  localparam int unsigned Ghost = 32'(rnic_regs_pkg::TransportDropGhostAck);
  localparam int unsigned NakOp = 32'(rnic_regs_pkg::TransportDropNakOp);
  localparam int unsigned NakAccess = 32'(rnic_regs_pkg::TransportDropNakAccess);
  localparam int unsigned Duplicate = 32'(rnic_regs_pkg::TransportDropDuplicate);

  rnic_regs_pkg::csr_hw2reg_t q;
  assign hw2reg_o = q;

  function automatic logic [63:0] ones(input logic [3:0] v, input logic more = 1'b0);
    return (64'(v[0]) + 64'(v[1])) + (64'(v[2]) + 64'(v[3])) + 64'(more);
  endfunction

  logic [2:0] ctx_rd_err, ctx_wr_err;
  assign ctx_rd_err = 3'(ev_mr_i.rd_err) + 3'(ev_qp_i.rd_err) + 3'(ev_cq_i.rd_err) + 3'(ev_srq_i.rd_err);
  assign ctx_wr_err = 3'(ev_mr_i.wr_err) + 3'(ev_qp_i.wr_err) + 3'(ev_cq_i.wr_err) + 3'(ev_srq_i.wr_err);

  logic accepted, capture;
  assign accepted = verdict_i.reason == rnic_regs_pkg::DropReasonNone;
  assign capture = verdict_valid_i && !(capture_drops_only_i && accepted);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      // verilator lint_off WIDTHCONCAT
      q <= '0;  // more than 8192 bits, all of them registers of this block
      // verilator lint_on WIDTHCONCAT
    end else begin
      q.caps0.data_width <= 16'(DataW);
      q.caps0.log_num_qp <= 5'(QpIdxW);
      q.caps0.log_num_cq <= 5'(CqIdxW);
      q.caps0.log_num_mr <= 5'(LogMaxMr);
      q.caps1.max_frame <= 16'(MaxFrame);
      q.caps1.max_sge <= 4'(MaxSge);
      q.caps1.log_inflight <= 4'(LogInflight);
      q.caps1.log_max_queue <= 5'(LogMaxQueue);
      q.clock.clk_ps <= 32'(ClkPs);
      q.status.ready <= ready_i;
      q.status.idle <= idle_i;
      q.status.link_up <= link_up_i;
      q.cmdq_ci.ci <= cmdq_ci_i;
      if (time_read_i) q.cycles.count <= time_i;  // not in every cycle: nothing moves while idle

      q.events.cq_overrun <= ev_cq_overrun_i;
      q.events.axi_read_error <= |ev_axi_rd_err_i || ctx_rd_err != 0;
      q.events.axi_write_error <= |ev_axi_wr_err_i || ctx_wr_err != 0;
      q.events.qp_fatal <= ev_qp_fatal_i;
      q.events.cq_fatal <= ev_cq_fatal_i;
      q.events.srq_fatal <= ev_srq_fatal_i;
      q.events.bad_doorbell <= |ev_bad_db_i || |ev_bad_qpn_i;
      q.events.cmd_error <= ev_cmd_error_i;
      q.events.eq_overrun <= ev_eqe_lost_i;
      q.irq_pending.vectors <= irq_pend_i;
      q.events.srq_limit <= ev_srq_limit_i;
      q.events.last_wqe <= ev_last_wqe_i;

      if (verdict_valid_i) begin
        q.rx_frames.count <= q.rx_frames.count + 64'd1;
        q.rx_bytes.count <= q.rx_bytes.count + 64'(verdict_i.frame_len);
        if (accepted && verdict_i.raw) begin
          q.rx_raw_frames.count <= q.rx_raw_frames.count + 64'd1;
        end else if (accepted) begin
          q.rx_roce_packets.count <= q.rx_roce_packets.count + 64'd1;
          if (verdict_i.tos[1:0] == 2'b11) q.rx_ecn_ce.count <= q.rx_ecn_ce.count + 64'd1;
          if (verdict_i.tos[1:0] == 2'b10) q.rx_ecn_ect0.count <= q.rx_ecn_ect0.count + 64'd1;
          if (verdict_i.tos[1:0] == 2'b01) q.rx_ecn_ect1.count <= q.rx_ecn_ect1.count + 64'd1;
          if (verdict_i.fecn) q.rx_fecn.count <= q.rx_fecn.count + 64'd1;
          if (verdict_i.becn) q.rx_becn.count <= q.rx_becn.count + 64'd1;
        end
        for (int i = 0; i < int'(rnic_regs_pkg::CsrRxDropCount); i++)
          if (verdict_i.reason == 8'(i)) q.rx_drop[i].count <= q.rx_drop[i].count + 64'd1;
      end
      if (capture) begin
        q.last_info.reason <= verdict_i.reason;
        q.last_info.opcode <= verdict_i.opcode;
        q.last_info.frame_len <= verdict_i.frame_len;
        q.last_info.ethertype <= verdict_i.ethertype;
        q.last_info.vlan_tags <= verdict_i.vlan_tags;
        q.last_info.ipv6 <= verdict_i.ipv6;
        q.last_info.icrc_ok <= verdict_i.icrc_ok;
        q.last_info.seq <= q.last_info.seq + 8'd1;
        q.last_bth.dest_qp <= verdict_i.dest_qp;
        q.last_bth.flags <= verdict_i.bth_flags;
        q.last_bth.psn <= verdict_i.psn;
        q.last_bth.becn <= verdict_i.becn;
        q.last_bth.fecn <= verdict_i.fecn;
        for (int i = 0; i < 2; i++) begin
          q.last_sip[i].addr <= verdict_i.sip[i*64+:64];
          q.last_dip[i].addr <= verdict_i.dip[i*64+:64];
        end
      end
      if (ev_drop_valid_i || ev_ghost_i || ev_nak_op_i || ev_rsp_nak_op_i || ev_rsp_nak_access_i) begin
        for (int i = 0; i < int'(NumDrop); i++)
          q.transport_drop[i].count <= q.transport_drop[i].count +
              ones({(ev_rsp_nak_op_i && i == int'(NakOp)) || (ev_rsp_nak_access_i && i == int'(NakAccess)),
                    ev_drop_valid_i && 32'(ev_drop_i) == i, ev_ghost_i && i == int'(Ghost),
                    ev_nak_op_i && i == int'(NakOp)});
        if (ev_drop_valid_i && 32'(ev_drop_i) == Duplicate)
          q.duplicate_request.count <= q.duplicate_request.count + 64'd1;
      end
      if (ev_read_i) q.rx_read_requests.count <= q.rx_read_requests.count + 64'd1;
      if (ev_atomic_i) q.rx_atomic_requests.count <= q.rx_atomic_requests.count + 64'd1;
      if (ev_rx_message_i) q.rx_write_requests.count <= q.rx_write_requests.count + 64'd1;
      if (ev_rx_send_i) q.rx_send_requests.count <= q.rx_send_requests.count + 64'd1;
      if (ev_no_buffer_i) q.out_of_buffer.count <= q.out_of_buffer.count + 64'd1;
      if (ev_rx_bytes_valid_i)
        q.rx_payload_bytes.count <= q.rx_payload_bytes.count + 64'(ev_rx_bytes_i);
      if (ev_stall_rx_dma_i) q.stall_rx_dma.count <= q.stall_rx_dma.count + 64'd1;

      if (ev_frame_valid_i) begin
        q.tx_frames.count <= q.tx_frames.count + 64'd1;
        q.tx_bytes.count <= q.tx_bytes.count + 64'(ev_frame_len_i);
        unique case (ev_frame_kind_i)
          3'd0: q.tx_write_packets.count <= q.tx_write_packets.count + 64'd1;
          3'd1: q.tx_acks.count <= q.tx_acks.count + 64'd1;
          3'd4: q.tx_raw_frames.count <= q.tx_raw_frames.count + 64'd1;
          3'd3: q.tx_read_responses.count <= q.tx_read_responses.count + 64'd1;
          3'd2: q.tx_naks.count <= q.tx_naks.count + 64'd1;
          3'd6: q.np_cnp_sent.count <= q.np_cnp_sent.count + 64'd1;
          default: ;
        endcase
      end
      if (ev_mark_i) q.np_ecn_marked_roce_packets.count <= q.np_ecn_marked_roce_packets.count + 64'd1;
      if (ev_cnp_drop_i) q.np_cnp_dropped.count <= q.np_cnp_dropped.count + 64'd1;
      if (ev_abort_i) q.tx_aborted.count <= q.tx_aborted.count + 64'd1;
      if (ev_stall_mac_i) q.stall_tx_mac.count <= q.stall_tx_mac.count + 64'd1;
      if (ev_stall_read_i) q.stall_tx_read.count <= q.stall_tx_read.count + 64'd1;

      if (ev_wqe_i != 0 || ev_rq_wqe_i != 0 || ev_srq_wqe_i != 0)
        q.wqe_fetched.count <= q.wqe_fetched.count + 64'(ev_wqe_i) + 64'(ev_rq_wqe_i) + 64'(ev_srq_wqe_i);
      if (ev_ack_i) q.rx_acks.count <= q.rx_acks.count + 64'd1;
      if (ev_nak_i) q.rx_naks.count <= q.rx_naks.count + 64'd1;
      if (ev_credit_i) q.stall_tx_credit.count <= q.stall_tx_credit.count + 64'd1;
      if (ev_credit_update_i) q.tx_credit_updates.count <= q.tx_credit_updates.count + 64'd1;
      if (ev_window_i) q.stall_tx_window.count <= q.stall_tx_window.count + 64'd1;

      if (ev_timeout_i)
        q.local_ack_timeout_err.count <= q.local_ack_timeout_err.count + 64'd1;
      if (ev_nak_seq_i) q.packet_seq_err.count <= q.packet_seq_err.count + 64'd1;
      if (ev_rnr_i) q.rnr_nak_retry_err.count <= q.rnr_nak_retry_err.count + 64'd1;
      if (ev_push_i) q.wqe_pushed.count <= q.wqe_pushed.count + 64'd1;
      if (ev_push_unused_i != 0)
        q.wqe_push_unused.count <= q.wqe_push_unused.count + 64'(ev_push_unused_i);
      if (ev_again_i) q.tx_retransmits.count <= q.tx_retransmits.count + 64'd1;

      if (ev_tx_read_i) q.tx_read_requests.count <= q.tx_read_requests.count + 64'd1;
      if (ev_tx_atomic_i) q.tx_atomic_requests.count <= q.tx_atomic_requests.count + 64'd1;
      if (ev_implied_i) q.implied_nak_seq_err.count <= q.implied_nak_seq_err.count + 64'd1;
      if (ev_dup_rsp_i) q.rx_dup_responses.count <= q.rx_dup_responses.count + 64'd1;
      if (ev_ghost_rsp_i) q.rx_ghost_responses.count <= q.rx_ghost_responses.count + 64'd1;

      `RNIC_COUNT_CACHE(mr_cache, ev_mr_i)
      `RNIC_COUNT_CACHE(qp_cache, ev_qp_i)
      `RNIC_COUNT_CACHE(cq_cache, ev_cq_i)
      `RNIC_COUNT_CACHE(srq_cache, ev_srq_i)
      for (int i = 0; i < 8; i++) begin
        if (ev_rx_pause_i[i]) q.rx_prio_pause[i].count <= q.rx_prio_pause[i].count + 64'd1;
        if (ev_tx_pause_i[i]) q.tx_prio_pause[i].count <= q.tx_prio_pause[i].count + 64'd1;
      end
      if (ev_storm_warning_i) q.tx_pause_storm_warning_events.count <= q.tx_pause_storm_warning_events.count + 64'd1;
      if (ev_storm_error_i) q.tx_pause_storm_error_events.count <= q.tx_pause_storm_error_events.count + 64'd1;
      if (ev_pause_ignored_i) q.rx_pause_storm_events.count <= q.rx_pause_storm_events.count + 64'd1;
      if (ev_stall_pause_i) q.stall_tx_pause.count <= q.stall_tx_pause.count + 64'd1;

      if (ev_cqe_i) q.cqe_written.count <= q.cqe_written.count + 64'd1;
      if (ev_cqe_lost_i) q.cqe_overrun.count <= q.cqe_overrun.count + 64'd1;
      if (ev_cqe_error_i[0]) q.req_cqe_error.count <= q.req_cqe_error.count + 64'd1;
      if (ev_cqe_flush_i[0]) q.req_cqe_flush_error.count <= q.req_cqe_flush_error.count + 64'd1;
      if (ev_cqe_error_i[1]) q.resp_cqe_error.count <= q.resp_cqe_error.count + 64'd1;
      if (ev_cqe_flush_i[1]) q.resp_cqe_flush_error.count <= q.resp_cqe_flush_error.count + 64'd1;
      if (ev_eqe_i) q.eqe_written.count <= q.eqe_written.count + 64'd1;
      if (ev_eqe_lost_i) q.eqe_lost.count <= q.eqe_lost.count + 64'd1;
      if (irq_i != '0) q.interrupts.count <= q.interrupts.count + ones(irq_i);
      if (ev_cmd_i) q.commands.count <= q.commands.count + 64'd1;
      if (ev_bad_db_i != 0 || ev_bad_qpn_i != 0) q.bad_doorbells.count <= q.bad_doorbells.count +
                                  (ones(ev_bad_db_i[3:0], ev_bad_db_i[4]) + 64'(ev_bad_db_i[5]) + 64'(ev_bad_qpn_i));
      if (ev_axi_rd_err_i != 0 || ctx_rd_err != 0)
        q.axi_read_errors.count <= q.axi_read_errors.count + ones(ev_axi_rd_err_i[3:0], ev_axi_rd_err_i[4]) + 64'(ev_axi_rd_err_i[5]) + 64'(ctx_rd_err);
      if (ev_axi_wr_err_i != 0 || ctx_wr_err != 0)
        q.axi_write_errors.count <= q.axi_write_errors.count + ones(ev_axi_wr_err_i[3:0], ev_axi_wr_err_i[4]) + 64'(ctx_wr_err);
    end
  end

endmodule
