// SPDX-License-Identifier: Apache-2.0
//
// tx_egress with random acknowledges and request packets of 16 QPs, a QP port of random latency, QPs that
// change state, failing payload, MAC back-pressure and PFC. Every frame is compared byte by byte with one
// that the bench makes on its own, with a bit-serial ICRC. +dump=FILE writes the frames as a hex dump for
// text2pcap.

module tx_egress_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int unsigned NumB = DataW / 8;
  localparam int unsigned LaneW = $clog2(NumB);
  localparam int NumTestQp = 16;
  localparam logic [47:0] Mac = 48'h665544332202;   // 02:22:33:44:55:66

  logic clk = 0, rst_n = 0;
  always #10 clk = !clk;

  logic [7:0] pause = '0;
  logic ack_valid = 0, ack_ready, pkt_valid = 0, pkt_ready, pl_valid = 0, pl_ready, pl_last = 0, pl_err = 0;
  logic qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0, tx_valid, tx_ready = 0, tx_last, tx_user;
  logic err_valid, err_ready = 0, sent_valid, sent_ready = 0, ev_frame_valid, ev_abort, ev_stall_mac, ev_stall_read, idle;
  logic drain = 0, drain_done;
  ack_t ack = '0;
  tx_pkt_t pkt = '0;
  logic [DataW-1:0] pl_data = '0, tx_data;
  logic [LaneW:0] pl_cnt = '0;
  qp_idx_t qp_req_idx;
  qp_attr_t qp_rsp = '0;
  logic [NumB-1:0] tx_keep;
  tx_err_t err;
  logic ah_req_valid, ah_rsp_valid = 0;
  ah_idx_t ah_req_idx;
  ah_t ah_rsp = '0, ahs[16];
  ack_rx_t sent;
  prio_map_t prio_map = '0;
  logic held;
  logic [2:0] held_prio;
  logic [15:0] ev_frame_len;
  logic [2:0] ev_frame_kind;

  qp_idx_t probe_qp = '0;
  logic busy;
  int n_busy = 0, n_free = 0;

  tx_egress #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mac_addr_i(Mac), .prio_map_i(prio_map), .pfc_pause_i(pause),
    .held_o(held), .held_prio_o(held_prio),
    .ack_valid_i(ack_valid), .ack_ready_o(ack_ready), .ack_i(ack),
    .pkt_valid_i(pkt_valid), .pkt_ready_o(pkt_ready), .pkt_i(pkt),
    .pl_valid_i(pl_valid), .pl_ready_o(pl_ready), .pl_data_i(pl_data), .pl_cnt_i(pl_cnt),
    .pl_last_i(pl_last), .pl_err_i(pl_err),
    .qp_req_valid_o(qp_req_valid), .qp_req_ready_i(qp_req_ready), .qp_req_idx_o(qp_req_idx),
    .qp_rsp_valid_i(qp_rsp_valid), .qp_rsp_i(qp_rsp),
    .ah_req_valid_o(ah_req_valid), .ah_req_idx_o(ah_req_idx), .ah_rsp_valid_i(ah_rsp_valid), .ah_rsp_i(ah_rsp),
    .tx_valid_o(tx_valid), .tx_ready_i(tx_ready), .tx_data_o(tx_data), .tx_keep_o(tx_keep),
    .tx_last_o(tx_last), .tx_user_o(tx_user),
    .err_valid_o(err_valid), .err_ready_i(err_ready), .err_o(err),
    .sent_valid_o(sent_valid), .sent_ready_i(sent_ready), .sent_o(sent),
    .ev_frame_valid_o(ev_frame_valid), .ev_frame_len_o(ev_frame_len), .ev_frame_kind_o(ev_frame_kind),
    .ev_abort_o(ev_abort), .ev_stall_mac_o(ev_stall_mac), .ev_stall_read_o(ev_stall_read),
    .probe_qp_i(probe_qp), .busy_o(busy), .idle_o(idle), .drain_i(drain), .drain_done_o(drain_done)
  );

  // ---- a QP table of our own ---------------------------------------------------------------------------
  qp_attr_t qps[NumTestQp];
  task automatic make_qps(input logic plain);
    qp_attr_t q;
    for (int i = 0; i < NumTestQp; i++) begin
      for (int k = 0; k < $bits(qp_attr_t); k++) q[k] = 1'($urandom());
      q.state = QpRts;
      q.qp_type = QpTypeRc;
      q.udp_sport[15:14] = 2'b11;
      q.ipv6 = i[0];
      q.vlan = i[1];
      q.dmac[0] = 1'b0;
      if (!q.ipv6) begin
        q.sgid[95:0] = {16'hffff, 80'd0};
        q.dgid[95:0] = {16'hffff, 80'd0};
      end
      q.sgid[103:96] = {1'b0, q.sgid[102:97], 1'b1};
      q.dgid[103:96] = {1'b0, q.dgid[102:97], 1'b1};
      if (q.hop_limit == 0) q.hop_limit = 8'd1;
      if (plain) begin
        q.ipv6 = 0;
        q.vlan = 0;
      end
      // a sum that folds twice, and one with carry at the very end
      if (i == 4) begin
        q.sgid[127:96] = '1;
        q.dgid[127:96] = '1;
        q.hop_limit = 8'hff;
      end
      qps[i] = q;
      for (int k = 0; k < $bits(ah_t); k++) ahs[i][k] = 1'($urandom());
      ahs[i].ipv6 = i[1];
      ahs[i].vlan = i[0];
      if (!ahs[i].ipv6) begin
        ahs[i].sgid[95:0] = {16'hffff, 80'd0};
        ahs[i].dgid[95:0] = {16'hffff, 80'd0};
      end
    end
  endtask

  // ---- stimulus ------------------------------------------------------------------------------------------
  typedef struct packed {
    logic         is_ack;
    ack_t         ack;
    tx_pkt_t      pkt;
    logic [31:0]  seq;                // names the payload
    logic [31:0]  job;                // number of the job
    qp_attr_t     attr;
  } want_t;
  typedef struct packed {
    logic [31:0] seq;
    logic [12:0] len;
    qp_idx_t     qp;
  } pl_t;

  function automatic logic [7:0] pay(input logic [31:0] seq, input int i);
    logic [31:0] h;
    h = (seq * 32'd8191 + i) * 32'h9e3779b1;
    return h[31:24] ^ h[15:8];
  endfunction
  int err_rate = 10;
  function automatic logic fails(input logic [31:0] seq, input int rate);
    return rate != 0 && (((seq * 32'h85ebca6b) >> 8) % rate) == 0;
  endfunction

  want_t asked[$], want[$], w;
  typedef struct packed {
    logic        failed;
    logic        payload;
    qp_idx_t     qp;
    wqe_idx_t    wqe;
    psn_t        psn;
    logic        response;
    logic [23:0] msn;
    logic [31:0] seq;
    logic [31:0] job;
  } report_t;
  logic hold_rep = 0, hold_pl = 0;
  report_t want_rep[$], rep;            // failures and reports, in one order
  int rsp_op, responses = 0, in_rtr = 0, n_sent = 0, pl_done = -1;         // payload read so far
  pl_t pl_todo[$], pl_cur;
  int acks_todo = 0, pkts_todo = 0, fixed_len = -1, jobs = 0, pkt_seq = 0;
  int mode = 0;                       // 0: everything flows, 1: random, 2: MAC slow
  int frames = 0, errs = 0, dropped = 0, aborts = 0, pl_pos = 0, ids = 0, pause_starts = 0;
  int pause_passes = 0;
  logic [2:0] prio;
  int n_taken, now = 0, state_rate = 0, stalls_read = 0, stalls_mac = 0, acks_seen = 0, naks_seen = 0;
  logic took_ack = 0, took_pkt = 0, took_pl = 0;
  logic [31:0] cur_seq;

  function automatic logic chance(input int n);
    return ($urandom() % n) == 0;
  endfunction

  always @(posedge clk) begin
    now++;
    took_ack = ack_valid && ack_ready;
    took_pkt = pkt_valid && pkt_ready;
    took_pl = pl_valid && pl_ready;
    if (rst_n) begin
      // busy: from the cycle behind the hand-over until the last report; not when nothing is there
      foreach (asked[i]) if ((asked[i].is_ack ? asked[i].ack.qp : asked[i].pkt.qp) == probe_qp && !busy) $fatal(1, "QP %0d is not busy, its job waits", probe_qp);
      foreach (want_rep[i]) if (want_rep[i].qp == probe_qp && !busy) $fatal(1, "QP %0d is not busy, its report is to come", probe_qp);
      n_taken = pl_todo.size() - int'(pkt_valid && pkt.len != 0);  // the last one is offered only
      for (int i = 0; i < n_taken; i++) if (pl_todo[i].qp == probe_qp && !busy) $fatal(1, "QP %0d is not busy, its payload is to come", probe_qp);
      if (idle && busy) $fatal(1, "QP %0d is busy with nothing", probe_qp);
      n_busy += int'(busy);
      n_free += int'(!busy && !idle);
      if (took_ack && took_pkt) $fatal(1, "acknowledge and packet taken in one cycle");
      if (pkt_valid && pkt_ready && ack_valid) $fatal(1, "packet before acknowledge");
      if (took_ack || took_pkt) begin
        w = '0;
        w.is_ack = took_ack;
        w.ack = ack;
        w.pkt = pkt;
        w.seq = cur_seq;
        w.job = jobs;
        jobs++;
        asked.push_back(w);
      end
    end
    #2;
    if (took_ack || !ack_valid) begin
      ack_valid = acks_todo != 0 && (mode == 0 || chance(4));
      if (ack_valid) begin
        acks_todo--;
        ack.qp = qp_idx_t'($urandom() % NumTestQp);
        ack.psn = 24'($urandom());
        ack.msn = 24'($urandom());
        ack.syndrome = chance(2) ? SynAck : 8'h60 + 8'($urandom() % 4);
      end
    end
    if (took_pkt || !pkt_valid) begin
      pkt_valid = pkts_todo != 0 && (mode == 0 || chance(2));
      if (pkt_valid) begin
        pkts_todo--;
        for (int k = 0; k < $bits(tx_pkt_t); k++) pkt[k] = 1'($urandom());
        pkt.qp = qp_idx_t'(hold_pl ? 3 : $urandom() % NumTestQp);
        pkt.response = fixed_len < 0 && chance(6);
        rsp_op = int'($urandom() % 5);
        pkt.raw = fixed_len < 0 && !pkt.response && $urandom() % 10 == 0;
        case ($urandom() % 19)
          12, 13: pkt.opcode = 8'h64;
          14: pkt.opcode = 8'h65;
          15, 16: pkt.opcode = OpRcReadRequest;
          17: pkt.opcode = OpRcCmpSwap;
          18: pkt.opcode = OpRcFetchAdd;
          6: pkt.opcode = OpRcSendFirst;
          7: pkt.opcode = OpRcSendLastImm;
          8: pkt.opcode = OpRcSendOnly;
          9: pkt.opcode = OpRcSendOnlyImm;
          10: pkt.opcode = OpRcSendLastInv;
          11: pkt.opcode = OpRcSendOnlyInv;
          0: pkt.opcode = OpRcWriteFirst;
          1: pkt.opcode = OpRcWriteMiddle;
          2: pkt.opcode = OpRcWriteLast;
          3: pkt.opcode = OpRcWriteLastImm;
          4: pkt.opcode = OpRcWriteOnly;
          default: pkt.opcode = OpRcWriteOnlyImm;
        endcase
        if (pkt.response) pkt.opcode = rsp_op == 0 ? OpRcAtomicAck : OpRcReadRespFirst + 8'(rsp_op - 1);
        pkt.has_aeth = pkt.response && pkt.opcode != OpRcReadRespMiddle;
        pkt.has_value = pkt.opcode == OpRcAtomicAck;
        if (pkt.response) {pkt.report, pkt.ack_req, pkt.solicited} = '0;
        if (fixed_len >= 0) pkt.opcode = OpRcWriteOnly;
        pkt.has_reth = pkt.opcode inside {OpRcWriteFirst, OpRcWriteOnly, OpRcWriteOnlyImm, OpRcReadRequest};
        pkt.has_atomic = pkt.opcode inside {OpRcCmpSwap, OpRcFetchAdd};
        pkt.has_imm = pkt.opcode inside {OpRcWriteLastImm, OpRcWriteOnlyImm, OpRcSendLastImm,
                                         OpRcSendOnlyImm, 8'h65};
        pkt.has_deth = pkt.opcode[7:5] == 3'd3;
        if (pkt.raw) {pkt.has_atomic, pkt.has_deth, pkt.has_reth, pkt.has_imm, pkt.has_ieth} = '0;
        if (pkt.has_deth) pkt.va[24+:AhIdxW] = AhIdxW'($urandom() % 16);
        pkt.has_ieth = pkt.opcode inside {OpRcSendLastInv, OpRcSendOnlyInv};
        if (fixed_len >= 0) pkt.len = 13'(fixed_len);
        else if (chance(8)) pkt.len = '0;
        else if (chance(6)) pkt.len = 13'(4096 - $urandom() % 5);
        else if (chance(2)) pkt.len = 13'(1 + $urandom() % 200);
        else pkt.len = 13'(1 + $urandom() % 1100);
        if (!pkt.has_reth && !pkt.has_deth && pkt.len == 0 && pkt.opcode != OpRcReadRespOnly) pkt.len = 13'd1;
        if (pkt.has_atomic || pkt.opcode == OpRcReadRequest) pkt.len = '0;
        if (pkt.raw && pkt.len < 14) pkt.len = 13'(14 + $urandom() % 60);
        if (pkt.has_value) pkt.len = '0;
        cur_seq = pkt_seq;
        pkt_seq++;
        if (pkt.len != 0) pl_todo.push_back({cur_seq, pkt.len, pkt.qp});
      end
    end
    probe_qp = qp_idx_t'((int'(probe_qp) + 1) % NumTestQp);
    // payload
    if (took_pl || !pl_valid) begin
      if (took_pl) begin
        pl_pos += int'(pl_cnt);
        if (pl_last) begin
          pl_done = int'(pl_cur.seq);
          void'(pl_todo.pop_front());
          pl_pos = 0;
        end
      end
      pl_valid = pl_todo.size() != 0 && !hold_pl && (mode == 0 || !chance(3));
      if (pl_valid) begin
        pl_cur = pl_todo[0];
        pl_last = int'(pl_cur.len) - pl_pos <= NumB;
        pl_cnt = pl_last ? (LaneW + 1)'(int'(pl_cur.len) - pl_pos) : (LaneW + 1)'(NumB);
        pl_data = '0;
        for (int i = 0; i < int'(pl_cnt); i++) pl_data[8*i+:8] = pay(pl_cur.seq, pl_pos + i);
        pl_err = pl_last ? fails(pl_cur.seq, err_rate) : 1'($urandom());
      end
    end
    tx_ready = mode == 0 || (mode == 1 ? !chance(4) : chance(4));
    // at some drains for long nobody takes what the requester is to learn
    err_ready = !hold_rep && (mode == 0 || chance(8));
    sent_ready = !hold_rep && (mode == 0 || chance(8));
  end

  // ---- QP port: answers in order, 1 cycle at least ----------------------------------------------------------
  typedef struct packed {
    qp_idx_t     idx;
    logic [31:0] at;
  } qreq_t;
  qreq_t qreqs[$];
  int n_asked = 0, n_ud = 0, n_raw = 0;
  ah_t uah;
  // handles: answered in the next cycle
  always @(posedge clk) begin
    logic v;
    ah_idx_t i;
    v = rst_n && ah_req_valid;
    i = ah_req_idx;
    if (v && i >= 16) $fatal(1, "handle %0d", i);
    #3;
    ah_rsp_valid = v;
    for (int k = 0; k < $bits(ah_t); k += 32) ah_rsp = $bits(ah_t)'({ah_rsp, $urandom()});
    if (v) ah_rsp = ahs[i[3:0]];
  end
  always @(posedge clk) begin
    if (rst_n && qp_req_valid && qp_req_ready) begin
      qreqs.push_back({qp_req_idx, 32'(now + (mode == 0 ? 0 : $urandom() % 12))});
    end
    if (rst_n && qp_rsp_valid) begin
      if (asked.size() == 0) $fatal(1, "attributes asked for without a job");
      w = asked.pop_front();
      w.attr = qp_rsp;
      if (!w.is_ack && w.pkt.has_deth) begin
        n_ud++;
        uah = ahs[w.pkt.va[27:24]];
        {w.attr.ipv6, w.attr.vlan, w.attr.udp_sport, w.attr.dmac, w.attr.vlan_tci, w.attr.hop_limit, w.attr.traffic_class,
         w.attr.flow_label, w.attr.sgid, w.attr.dgid} = $bits(ah_t)'(uah);
        w.attr.dest_qpn = w.pkt.va[23:0];
      end
      if (w.is_ack) begin
        if (qp_rsp.state inside {QpReset, QpInit, QpNone}) dropped++;
        else want.push_back(w);
      end else if (!(qp_rsp.state inside {QpRts, QpSqd} || (w.pkt.response && qp_rsp.state == QpRtr))) dropped++;
      else if (w.pkt.len != 0 && fails(w.seq, err_rate))
        want_rep.push_back({1'b1, 1'b1, w.pkt.qp, w.pkt.wqe, w.pkt.psn, w.pkt.response, w.pkt.imm[23:0], w.seq, w.job});
      else begin
        want.push_back(w);
        if (w.pkt.report) want_rep.push_back({1'b0, w.pkt.len != 0, w.pkt.qp, w.pkt.wqe, w.pkt.psn, 1'b0, 24'd0, w.seq, w.job});
      end
    end
    #3;
    qp_req_ready = mode == 0 || !chance(3);
    qp_rsp_valid = 0;
    for (int k = 0; k < $bits(qp_attr_t); k += 32) qp_rsp = (qp_rsp << 32) | $bits(qp_attr_t)'($urandom());
    if (qreqs.size() != 0 && int'(qreqs[0].at) <= now) begin
      qp_rsp_valid = 1;
      qp_rsp = qps[int'(qreqs[0].idx)];
      if (state_rate != 0 && chance(state_rate)) qp_rsp.state = chance(2) ? QpRtr : qp_state_e'($urandom() % 8);
      void'(qreqs.pop_front());
    end
  end

  // ---- the expected frame -------------------------------------------------------------------------------------
  logic [7:0] fb[8192];
  logic [7:0] gb[8192];
  int gl, l3, plen;
  `include "frame.svh"

  task automatic expect_frame(input want_t e, input logic [15:0] id);
    int pad, ext, sum, b;
    fl = 0;
    if (!e.is_ack && e.pkt.raw) begin
      for (int i = 0; i < int'(e.pkt.len); i++) put(128'(pay(e.seq, i)), 1);
      plen = fl;
      n_raw++;
      return;
    end
    put_raw(128'(e.attr.dmac), 6);
    put_raw(128'(Mac), 6);
    if (e.attr.vlan) put({96'd0, 16'h8100, e.attr.vlan_tci}, 4);
    put(128'(e.attr.ipv6 ? 16'h86dd : 16'h0800), 2);
    l3 = fl;
    plen = e.is_ack ? 0 : int'(e.pkt.len);
    pad = (4 - plen % 4) % 4;
    ext = e.is_ack ? 4 : (e.pkt.has_atomic ? 28 : e.pkt.has_reth ? 16 : e.pkt.has_deth ? 8 : 0) + (e.pkt.has_imm || e.pkt.has_ieth || e.pkt.has_aeth ? 4 : 0) +
          (e.pkt.has_value ? 8 : 0);
    b = 8 + 12 + ext + plen + pad + 4;      // UDP length
    if (e.attr.ipv6) begin
      put(128'({4'd6, e.attr.traffic_class, e.attr.flow_label}), 4);
      put(128'(b), 2);
      put(128'd17, 1);
      put(128'(e.attr.hop_limit), 1);
      put_raw(e.attr.sgid, 16);
      put_raw(e.attr.dgid, 16);
    end else begin
      put(128'h45, 1);
      put(128'(e.attr.traffic_class), 1);
      put(128'(b + 20), 2);
      put(128'(id), 2);
      put(128'h4000, 2);
      put(128'(e.attr.hop_limit), 1);
      put(128'd17, 1);
      put(128'd0, 2);
      put_raw(128'(e.attr.sgid[127:96]), 4);
      put_raw(128'(e.attr.dgid[127:96]), 4);
      sum = 0;
      for (int i = 0; i < 20; i += 2) sum += {16'd0, fb[l3+i], fb[l3+i+1]};
      while (sum > 65535) sum = (sum & 65535) + (sum >> 16);
      sum = 65535 - sum;
      fb[l3+10] = sum[15:8];
      fb[l3+11] = sum[7:0];
    end
    put(128'(e.attr.udp_sport), 2);
    put(128'd4791, 2);
    put(128'(b), 2);
    put(128'd0, 2);
    put(128'(e.is_ack ? 8'h11 : e.pkt.opcode), 1);
    put(128'({e.is_ack ? 1'b0 : e.pkt.solicited, 1'b0, 2'(pad), 4'd0}), 1);
    put(128'(e.attr.pkey), 2);
    put(128'd0, 1);
    put(128'(e.attr.dest_qpn), 3);
    put(128'({e.is_ack ? 1'b0 : e.pkt.ack_req, 7'd0}), 1);
    put(128'(e.is_ack ? e.ack.psn : e.pkt.psn), 3);
    if (e.is_ack) begin
      put(128'(e.ack.syndrome), 1);
      put(128'(e.ack.msn), 3);
    end else begin
      if (e.pkt.has_reth) begin
        put(128'(e.pkt.va), 8);
        put(128'(e.pkt.rkey), 4);
        put(128'(e.pkt.dma_len), 4);
      end
      if (e.pkt.has_deth) begin
        put(128'(e.pkt.rkey[31] ? e.attr.qkey : e.pkt.rkey), 4);
        put(128'd0, 1);
        put(e.attr.gsi ? 128'd1 : 128'(e.attr.qpn), 3);
      end
      if (e.pkt.has_atomic) begin
        put(128'(e.pkt.va), 8);
        put(128'(e.pkt.rkey), 4);
        put(128'(e.pkt.swap_add), 8);
        put(128'(e.pkt.compare), 8);
      end
      if (e.pkt.has_imm || e.pkt.has_ieth || e.pkt.has_aeth) put(128'(e.pkt.imm), 4);
      if (e.pkt.has_value) put(128'(e.pkt.va), 8);
      for (int i = 0; i < plen; i++) put(128'(pay(e.seq, i)), 1);
      put(128'd0, pad);
    end
    // ICRC, IBTA A17.3.3
    crc = '1;
    for (int i = 0; i < 8; i++) crc_byte(8'hff);
    b = l3 + (e.attr.ipv6 ? 40 : 20);       // UDP header
    for (int i = l3; i < fl; i++) begin
      if (i == b + 6 || i == b + 7 || i == b + 8 + 4) crc_byte(8'hff);
      else if (!e.attr.ipv6 && (i == l3 + 1 || i == l3 + 8 || i == l3 + 10 || i == l3 + 11)) crc_byte(8'hff);
      else if (e.attr.ipv6 && i == l3) crc_byte(fb[i] | 8'h0f);
      else if (e.attr.ipv6 && (i == l3 + 1 || i == l3 + 2 || i == l3 + 3 || i == l3 + 7)) crc_byte(8'hff);
      else crc_byte(fb[i]);
    end
    put_raw(128'(~crc), 4);
  endtask

  // ---- checker --------------------------------------------------------------------------------------------------
  logic in_frame = 0, hold = 0;
  logic [DataW-1:0] hold_data;
  logic [15:0] id, last_id = 0;
  int kind, dump = 0, min_job;
  string dump_name;
  int drain_mark = 0, paused_since = 1 << 30;
  logic [7:0] pause_seen = '0;

  always @(posedge clk) begin
    if (rst_n) begin
      if (hold && (!tx_valid || tx_data !== hold_data)) $fatal(1, "beat changed while it waited");
      hold = tx_valid && !tx_ready;
      hold_data = tx_data;
      if (in_frame && !tx_valid) $fatal(1, "gap inside frame %0d", frames);
      if (ev_stall_read) stalls_read++;
      if (ev_stall_mac) stalls_mac++;
      if (ev_abort) aborts++;
      if (ev_stall_mac != (tx_valid && !tx_ready)) $fatal(1, "ev_stall_mac");
      if (ev_frame_valid != (tx_valid && tx_ready && tx_last)) $fatal(1, "ev_frame_valid");
      if (err_valid && err_ready) begin
        if (want_rep.size() == 0) $fatal(1, "unexpected error report");
        rep = want_rep.pop_front();
        if (!rep.failed || err.qp != rep.qp || err.wqe != rep.wqe || err.psn != rep.psn || err.response != rep.response ||
            (err.response && err.msn != rep.msn)) $fatal(1, "error report, want %p", rep);
        errs++;
      end
      if (sent_valid && sent_ready) begin
        if (want_rep.size() == 0) $fatal(1, "unexpected report");
        rep = want_rep.pop_front();
        if (rep.failed || sent.qp != rep.qp || sent.psn != rep.psn || sent.syndrome != SynAck || !sent.own)
          $fatal(1, "report %p, want %p", sent, rep);
        if (rep.payload && pl_done < int'(rep.seq)) $fatal(1, "reported before its payload was read");
        n_sent++;
      end
      if (err_valid && sent_valid) $fatal(1, "failure and report at once");
      if (drain && drain_done) begin
        min_job = jobs;
        if (asked.size() != 0 && int'(asked[0].job) < min_job) min_job = asked[0].job;
        if (want.size() != 0 && int'(want[0].job) < min_job) min_job = want[0].job;
        if (want_rep.size() != 0 && int'(want_rep[0].job) < min_job) min_job = want_rep[0].job;
        if (min_job < drain_mark) $fatal(1, "drain done while job %0d of %0d is held", min_job, drain_mark);
      end
      if (tx_valid && tx_ready) begin
        if (tx_user !== 1'b0) $fatal(1, "tx_user");
        if (!in_frame) gl = 0;
        if (!tx_last && tx_keep !== '1) $fatal(1, "short beat inside a frame");
        for (int i = 0; i < NumB; i++) begin
          if (i > 0 && tx_keep[i] && !tx_keep[i-1]) $fatal(1, "hole in tx_keep");
          if (tx_keep[i]) begin
            if (gl >= 8192) $fatal(1, "frame without end");
            gb[gl] = tx_data[8*i+:8];
            gl++;
          end
        end
        in_frame = !tx_last;
        if (tx_last) check_frame();
      end
    end
  end

  task automatic check_frame();
    if (want.size() == 0) $fatal(1, "frame nobody asked for");
    w = want.pop_front();
    if (!w.attr.ipv6 && (w.is_ack || !w.pkt.raw)) begin
      id = {gb[(w.attr.vlan ? 18 : 14) + 4], gb[(w.attr.vlan ? 18 : 14) + 5]};
      if (id == 0 || id == last_id) $fatal(1, "IPv4 ID %0d after %0d", id, last_id);
      last_id = id;
      ids++;
    end
    expect_frame(w, id);
    for (int i = 0; i < fl && i < gl; i++)
      if (gb[i] !== fb[i])
        $fatal(1, "frame %0d (ack %0d v6 %0d vlan %0d len %0d) byte %0d of %0d: got %h, want %h", frames,
               w.is_ack, w.attr.ipv6, w.attr.vlan, plen, i, fl, gb[i], fb[i]);
    if (fl != gl) $fatal(1, "frame %0d: %0d bytes, want %0d", frames, gl, fl);
    kind = !w.is_ack ? (w.pkt.raw ? 4 : w.pkt.response ? 3 : w.pkt.has_atomic || w.pkt.opcode == OpRcReadRequest ? 5 : 0) : w.ack.syndrome == SynAck ? 1 : 2;
    if (kind == 1) acks_seen++;
    if (kind == 2) naks_seen++;
    if (kind == 3) responses++;
    if (kind == 3 && w.attr.state == QpRtr) in_rtr++;
    if (int'(ev_frame_len) != fl) $fatal(1, "ev_frame_len %0d, want %0d", ev_frame_len, fl);
    if (int'(ev_frame_kind) != kind) $fatal(1, "ev_frame_kind %0d, want %0d", ev_frame_kind, kind);
    // a frame of a paused priority may only be one that had begun before the pause (three at most are on the way)
    prio = !w.is_ack && w.pkt.raw ? prio_map.default_prio : prio_map.trust_dscp ? w.attr.traffic_class[7:5] :
           w.attr.vlan ? w.attr.vlan_tci[15:13] : prio_map.default_prio;
    if (now > paused_since && pause_seen[prio]) pause_starts++;
    else if (now > paused_since) pause_passes++;
    if (dump != 0 && frames < 400) begin
      for (int i = 0; i < gl; i++) begin
        if (i % 16 == 0) $fwrite(dump, "%06x", i);
        $fwrite(dump, " %02x", gb[i]);
        if (i % 16 == 15 || i == gl - 1) $fwrite(dump, "\n");
      end
      $fwrite(dump, "\n");
    end
    frames++;
  endtask

  task automatic settle(input int limit);
    int n;
    n = 0;
    @(negedge clk);
    while ((acks_todo != 0 || pkts_todo != 0 || ack_valid || pkt_valid || !idle || err_valid || sent_valid) && n < limit) begin
      @(negedge clk);
      n++;
    end
    if (n >= limit) $fatal(1, "stuck: %0d asked, %0d wanted, idle %0d", asked.size(), want.size(), idle);
    if (asked.size() != 0 || want.size() != 0 || want_rep.size() != 0 || pl_todo.size() != 0)
      $fatal(1, "idle, but %0d asked, %0d frames, %0d errors, %0d payloads remain", asked.size(), want.size(),
             want_rep.size(), pl_todo.size());
  endtask

  int n_held[3];
  int t0, f0, c_ack, c_small, c_big, drains = 0, rep_drains = 0;
  initial begin
    if ($value$plusargs("dump=%s", dump_name)) dump = $fopen(dump_name, "w");
    make_qps(1'b0);
    repeat (4) @(negedge clk);
    rst_n = 1;
    // everything random
    for (int round = 0; round < 6; round++) begin
      mode = round % 3;
      state_rate = round < 3 ? 0 : 6;
      err_rate = round == 0 ? 0 : 10;
      make_qps(1'b0);
      acks_todo = 150;
      pkts_todo = 250;
      for (int k = 0; k < 6; k++) begin
        repeat (50 + $urandom() % 400) @(negedge clk);
        #4;
        drain = 1;
        @(posedge clk);
        #1;
        drain_mark = jobs;
        t0 = 0;
        hold_rep = k % 2 == 1;
        while (!drain_done && t0 < 60000) begin
          @(negedge clk);
          t0++;
          if (t0 == 1500) begin
            if (want_rep.size() != 0 && int'(want_rep[0].job) < drain_mark) rep_drains++;
            hold_rep = 0;
          end
        end
        hold_rep = 0;
        if (!drain_done) $fatal(1, "drain does not end");
        @(posedge clk);                  // the checker above judges it here
        #4;
        if (!drain_done) $fatal(1, "drain_done fell while drain stayed");
        if (t0 > 1 && pkts_todo != 0) drains++;
        drain = 0;
        @(negedge clk);
        if (drain_done) $fatal(1, "drain_done without drain");
      end
      settle(400000);
    end
    if (responses < 100 || in_rtr == 0) $fatal(1, "%0d responses, %0d in RTR", responses, in_rtr);
    if (aborts != errs || errs < 10) $fatal(1, "%0d aborts, %0d error reports", aborts, errs);
    if (n_ud < 25 || n_raw < 20 || n_sent < 100 || dropped < 20 || drains < 5 || rep_drains < 5 || acks_seen < 100 || naks_seen < 100 || stalls_read == 0)
      $fatal(1, "too little happened: %0d drops, %0d drains, %0d acks, %0d UD, %0d raw, %0d reports, %0d drains behind a report", dropped, drains, acks_seen, n_ud, n_raw, n_sent,
             rep_drains);

    // PFC: nothing begins while its priority is paused; by PCP, with another default, by DSCP
    state_rate = 0;
    err_rate = 0;
    mode = 0;
    for (int r = 0; r < 12; r++) begin
      prio_map = '{trust_dscp: r % 3 == 2, default_prio: r % 3 == 0 ? 3'd0 : 3'(r)};
      make_qps(1'b0);
      pause = '1;
      pause_seen = '1;
      paused_since = now + 4;
      acks_todo = 40;
      pkts_todo = 40;
      f0 = frames;
      repeat (1000) @(negedge clk);
      if (frames != f0) $fatal(1, "%0d frames during a full pause", frames - f0);
      if (drain_done || idle || !held) $fatal(1, "idle while frames are held");
      // the priority of the frame that waits goes on until another one is at the head; then that one
      for (int step = 0; step < 10 && held; step++) begin
        f0 = frames;
        pause = ~(8'd1 << held_prio);
        pause_seen = pause;
        @(negedge clk);
        for (t0 = 0; t0 < 3000 && !held && !idle; t0++) @(negedge clk);
        if (held && !pause[held_prio]) $fatal(1, "priority %0d is held without a pause", held_prio);
        repeat (10) @(negedge clk);
        if (frames == f0) $fatal(1, "no frame of a priority that is not paused");
        if (pause_starts != 0) $fatal(1, "%0d frames left while their priority was paused", pause_starts);
      end
      paused_since = 1 << 30;
      pause = '0;
      settle(100000);
      if (held) $fatal(1, "held without a pause");
    end
    if (pause_passes < 40) $fatal(1, "%0d frames of other priorities", pause_passes);
    prio_map = '0;

    // rate: acknowledges, small WRITEs, full WRITEs
    make_qps(1'b1);
    repeat (10) @(negedge clk);
    acks_todo = 500;
    t0 = now;
    settle(100000);
    c_ack = (now - t0) * 100 / 500;
    fixed_len = 64;
    pkts_todo = 500;
    t0 = now;
    settle(100000);
    c_small = (now - t0) * 100 / 500;
    fixed_len = 4096;
    pkts_todo = 100;
    t0 = now;
    settle(400000);
    c_big = now - t0;
    // head 70 bytes, payload 64, ICRC 4: a piece per cycle, one more where the ICRC overflows the last beat (64 bits);
    // some cycles of latency on top
    if (c_ack > 100 * ((62 + NumB - 1) / NumB + 1) + 20) $fatal(1, "ACK: %0d/100 cycles", c_ack);
    if (c_small > 100 * (70 / NumB + 1 + 64 / NumB + 1 + (DataW == 64 ? 1 : 0)) + 40) $fatal(1, "64-byte WRITE: %0d/100 cycles", c_small);
    if (c_big > 100 * (4096 / NumB + 70 / NumB + 3) + 4096 / NumB + 200) $fatal(1, "4096-byte WRITEs: %0d cycles", c_big);

    // while host memory keeps the payload: so many small packets are taken, or 32 KiB, and acknowledges all the same
    for (int big = 0; big < 3; big++) begin
      fixed_len = big == 1 ? 4096 : 64;
      hold_pl = 1;
      t0 = jobs;
      pkts_todo = big == 2 ? 64 : 100;  // 64 of one QP: it is busy with all of them
      repeat (400) @(negedge clk);
      n_held[big] = jobs - t0;
      if (big == 1) begin
        acks_todo = 2;
        repeat (20) @(negedge clk);
        if (jobs - t0 != n_held[1] + 2) $fatal(1, "acknowledges wait behind payload");
      end
      hold_pl = 0;
      settle(400000);
    end
    if (n_held[0] < (DataW >= 256 ? 64 : 8) || n_held[0] > (DataW >= 256 ? 64 : 8) + 2) $fatal(1, "%0d small packets held", n_held[0]);
    if (n_held[1] != 8) $fatal(1, "%0d packets of 4096 bytes held", n_held[1]);
    if (dump != 0) $fclose(dump);
    $display("PASS %0d frames (%0d ACK, %0d NAK), %0d dropped, %0d aborted; cycles/100: ACK %0d, WRITE 64: %0d, WRITE 4096: %0d",
             frames, acks_seen, naks_seen, dropped, aborts, c_ack, c_small, c_big);
    $finish;
  end
endmodule
