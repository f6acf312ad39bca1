// SPDX-License-Identifier: Apache-2.0
//
// Receive queues with random doorbells (right and wrong), requests of messages of several packets, QPs that fail
// and are reset, against rings in a model of host memory with random latency and read errors. Every WQE must come
// once, in order, with the content of its slot: answered or flushed; nothing may be read outside a ring
// or, after a drain, for a QP that was reset. Some QPs share two SRQs: the next WQE goes to whoever asks, its ring slot is
// posted again at once, and the QP keeps it; SRQs have limits, and are destroyed and made anew. Credits are looked at and told at
// random; after a QP's peer was told of none, the next receive is reported once. QPs change their slots: what is kept of one is read out,
// overwritten, and loaded into another slot.

module rq_cache_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int unsigned BytesW = DataW / 8;
  localparam int NO = 6;        // QPs with a queue of their own
  localparam int NQ = 12;       // QPs; the others use an SRQ
  localparam int NR = 14;       // rings: of the first QPs, and from NQ on of the SRQs

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic db_srq = 0, srq_valid = 0, srq_ready, srq_rsp_valid, lim_valid, lim_ready = 0, srq_swept, srq_err;
  srq_cmd_e srq_op = SrqCmdQuery;
  srq_idx_t srq_idx = '0;
  async_ev_t lim;
  srq_attr_t srq_attr = '0;
  logic [15:0] srq_limit = '0;
  srq_ctx_t srq_rsp;
  logic db_valid = 0, db_ready, err_valid = 0, err_ready;
  logic [23:0] db_qpn = '0;
  logic [15:0] db_pi = '0;
  qp_idx_t err_idx = '0, qp_idx;
  logic qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0;
  qp_attr_t qp_rsp;
  // memory, behind the arbiter of both
  logic ar_valid, ar_ready = 0, r_valid = 0, r_last = 0, r_err = 0;
  logic [3:0] ar_id, r_id = '0;
  logic [63:0] ar_addr;
  logic [7:0] ar_len;
  logic [1:0] c_ar_valid, c_ar_ready, c_r_valid;
  logic [1:0][63:0] c_ar_addr;
  logic [1:0][7:0] c_ar_len;
  logic [DataW-1:0] c_r_data;
  logic c_r_last, c_r_err;
  logic [DataW-1:0] r_data = '0;
  logic req_valid = 0, req_ready, rsp_valid, flush_valid, flush_ready = 0;
  rq_req_t req, ask;
  rq_rsp_t rsp;
  rq_flush_t flush;
  logic adm_valid = 0, adm_ready, adm_init = 0, adm_rsp_valid, drain = 0, drain_done, idle;
  qp_idx_t adm_qp = '0;
  rq_query_t adm_rsp;
  qp_idx_t cr_qp = '0;
  logic cr_tell = 0;
  logic [4:0] cr_code;
  logic [2:0] ev_wqe, srq_ev_wqe;
  logic [1:0] ev_bad_db, ev_axi_err, drained, idles, db_readys;
  assign drain_done = &drained;
  assign idle = &idles && !lim_valid;
  assign db_ready = db_readys[db_srq];

  axi_rd_arb #(.DataW(DataW), .NumClients(2)) u_arb (
    .clk_i(clk), .rst_ni(rst_n), .stop_i(1'b0), .busy_o(), .ar_valid_i(c_ar_valid), .ar_ready_o(c_ar_ready), .ar_addr_i(c_ar_addr), .ar_len_i(c_ar_len),
    .r_valid_o(c_r_valid), .r_data_o(c_r_data), .r_last_o(c_r_last), .r_err_o(c_r_err),
    .m_axi_arid_o(ar_id), .m_axi_araddr_o(ar_addr), .m_axi_arlen_o(ar_len), .m_axi_arsize_o(), .m_axi_arburst_o(), .m_axi_arvalid_o(ar_valid),
    .m_axi_arready_i(ar_ready), .m_axi_rid_i(r_id), .m_axi_rdata_i(r_data), .m_axi_rresp_i({r_err, 1'b0}), .m_axi_rlast_i(r_last),
    .m_axi_rvalid_i(r_valid), .m_axi_rready_o());

  // contexts of SRQs
  localparam logic [63:0] CtxBase = 64'h7_0000_0000;
  ctx_mem_t ctx_mem = '{on: 1'b1, base: CtxBase[63:6], log_num: 5'd6};
  logic car_valid, car_ready, cr_valid, cr_last, caw_valid, caw_ready, cw_valid, cw_ready, cw_last, cb_valid;
  logic [63:0] car_addr, caw_addr;
  logic [7:0] car_len, caw_len;
  logic [DataW-1:0] cr_data, cw_data;
  logic [DataW/8-1:0] cw_strb;
  logic [1:0] cr_resp, cb_resp;
  logic [3:0] cr_id, cb_id;
  axi_mem #(.DataW(DataW), .NumIds(1)) u_ctx (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(4'd0), .awaddr_i(caw_addr), .awlen_i(caw_len), .awsize_i(3'($clog2(DataW/8))), .awburst_i(2'b01), .awvalid_i(caw_valid), .awready_o(caw_ready),
    .wdata_i(cw_data), .wstrb_i(cw_strb), .wlast_i(cw_last), .wvalid_i(cw_valid), .wready_o(cw_ready),
    .bid_o(cb_id), .bresp_o(cb_resp), .bvalid_o(cb_valid), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(car_addr), .arlen_i(car_len), .arsize_i(3'($clog2(DataW/8))), .arburst_i(2'b01), .arvalid_i(car_valid), .arready_o(car_ready),
    .rid_o(cr_id), .rdata_o(cr_data), .rresp_o(cr_resp), .rlast_o(cr_last), .rvalid_o(cr_valid), .rready_i(1'b1));
  logic s_req_valid, s_req_ready, s_rsp_valid;
  srq_idx_t s_req_srqn;
  srq_rsp_t s_rsp;
  srq_cache #(.DataW(DataW)) u_srq (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(srq_swept), .mem_i(ctx_mem),
    .db_valid_i(db_valid && db_srq), .db_ready_o(db_readys[1]), .db_srqn_i(db_qpn), .db_pi_i(db_pi),
    .slot_we_i(1'b0), .slot_i('0), .slot_has_srq_i(1'b0), .slot_srqn_i('0), .hint_valid_i(1'b0), .hint_slot_i('0),
    .req_valid_i(s_req_valid), .req_ready_o(s_req_ready), .req_srqn_i(s_req_srqn), .rsp_valid_o(s_rsp_valid), .rsp_o(s_rsp),
    .cmd_valid_i(srq_valid), .cmd_ready_o(srq_ready), .cmd_op_i(srq_op), .cmd_idx_i(srq_idx), .cmd_attr_i(srq_attr), .cmd_limit_i(srq_limit),
    .cmd_rsp_valid_o(srq_rsp_valid), .cmd_rsp_err_o(srq_err), .cmd_rsp_o(srq_rsp),
    .ar_valid_o(c_ar_valid[1]), .ar_ready_i(c_ar_ready[1]), .ar_addr_o(c_ar_addr[1]), .ar_len_o(c_ar_len[1]),
    .r_valid_i(c_r_valid[1]), .r_data_i(c_r_data), .r_last_i(c_r_last), .r_err_i(c_r_err),
    .ctx_ar_valid_o(car_valid), .ctx_ar_ready_i(car_ready), .ctx_ar_addr_o(car_addr), .ctx_ar_len_o(car_len),
    .ctx_r_valid_i(cr_valid), .ctx_r_data_i(cr_data), .ctx_r_last_i(cr_last), .ctx_r_err_i(cr_resp[1]),
    .ctx_aw_valid_o(caw_valid), .ctx_aw_ready_i(caw_ready), .ctx_aw_addr_o(caw_addr), .ctx_aw_len_o(caw_len),
    .ctx_w_valid_o(cw_valid), .ctx_w_ready_i(cw_ready), .ctx_w_data_o(cw_data), .ctx_w_strb_o(cw_strb), .ctx_w_last_o(cw_last),
    .ctx_b_valid_i(cb_valid), .ctx_b_err_i(cb_resp[1]),
    .event_valid_o(lim_valid), .event_ready_i(lim_ready), .event_o(lim), .drain_i(drain), .drain_done_o(drained[1]),
    .ev_wqe_o(srq_ev_wqe), .ev_limit_o(), .ev_fatal_o(), .ev_bad_db_o(ev_bad_db[1]), .ev_axi_err_o(ev_axi_err[1]), .ev_ctx_o(), .idle_o(idles[1]));

  qp_idx_t probe_qp = '0, ctx_qp = '0;
  logic slot_busy, ctx_valid = 0, ctx_ready, ctx_load = 0, ctx_word = 0;
  rq_keep_t ctx_in = '0, ctx_out;
  logic [3:0] ctx_at = '0;
  rq_entry_t entry_in = '0, entry_out;
  int moving = -1;

  rq_cache #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n),
    .db_valid_i(db_valid && !db_srq), .db_ready_o(db_readys[0]), .db_qp_i(qp_idx_t'(db_qpn)), .db_pi_i(db_pi),
    .err_valid_i(err_valid), .err_ready_o(err_ready), .err_idx_i(err_idx),
    .qp_req_valid_o(qp_req_valid), .qp_req_ready_i(qp_req_ready), .qp_req_idx_o(qp_idx),
    .qp_rsp_valid_i(qp_rsp_valid), .qp_rsp_i(qp_rsp),
    .ar_valid_o(c_ar_valid[0]), .ar_ready_i(c_ar_ready[0]), .ar_addr_o(c_ar_addr[0]), .ar_len_o(c_ar_len[0]),
    .r_valid_i(c_r_valid[0]), .r_data_i(c_r_data), .r_last_i(c_r_last), .r_err_i(c_r_err),
    .srq_req_valid_o(s_req_valid), .srq_req_ready_i(s_req_ready), .srq_req_srqn_o(s_req_srqn), .srq_rsp_valid_i(s_rsp_valid), .srq_rsp_i(s_rsp),
    .rq_req_valid_i(req_valid), .rq_req_ready_o(req_ready), .rq_req_i(req),
    .rq_rsp_valid_o(rsp_valid), .rq_rsp_o(rsp),
    .cr_qp_i(cr_qp), .cr_tell_i(cr_tell), .cr_code_o(cr_code),
    .flush_valid_o(flush_valid), .flush_ready_i(flush_ready), .flush_o(flush),
    .adm_valid_i(adm_valid), .adm_ready_o(adm_ready), .adm_init_i(adm_init), .adm_qp_i(adm_qp),
    .adm_rsp_valid_o(adm_rsp_valid), .adm_rsp_o(adm_rsp),
    .probe_qp_i(probe_qp), .busy_o(slot_busy), .ctx_valid_i(ctx_valid), .ctx_ready_o(ctx_ready), .ctx_load_i(ctx_load), .ctx_word_i(ctx_word),
    .ctx_qp_i(ctx_qp), .ctx_i(ctx_in), .ctx_o(ctx_out), .ctx_at_i(ctx_at), .ctx_entry_i(entry_in), .ctx_entry_o(entry_out),
    .drain_i(drain), .drain_done_o(drained[0]),
    .ev_wqe_o(ev_wqe), .ev_bad_db_o(ev_bad_db[0]), .ev_axi_err_o(ev_axi_err[0]), .idle_o(idles[0])
  );

  int stall = 30, hold_r = 0, cycle = 0;
  function automatic bit go();
    return int'($urandom() % 100) >= stall;
  endfunction

  // ---- queue pairs and rings ----
  qp_state_e state[NQ];
  logic [63:0] base[NR];
  int log_size[NR];
  bit stride128[NR];
  logic [7:0] mem[logic [63:0]];
  bit rd_err[NR][64], bad[NR][64];
  logic [2:0] num[NR][64];
  logic [511:0] sges[NR][64];
  logic [15:0] tag[NR][64];
  logic [23:0] pd[NR];
  int sw_pi[NR], hw_pi[NR], db_cycle[NR], next[NR], n_sge;
  bit open[NQ], flushed[NQ], told[NQ], last_told[NQ];
  bit none_told[NQ];              // the peer was told that there are no credits, and nothing else since
  int reports[NQ], none_since[NQ];  // reports that may come
  // WQE of an SRQ that a QP holds
  bit h_bad[NQ];
  logic [2:0] h_num[NQ];
  logic [511:0] h_sges[NQ];
  logic [15:0] h_tag[NQ];
  // limits
  int limit[NR], low_pi[NR], below_since[NR], n_lim;

  function automatic int ring_of(int i);  // ring that QP i takes its WQEs from
    return i < NO ? i : NQ + i % 2;
  endfunction
  function automatic int srqn_of(int r);
    return r == NQ ? 5 : 63;
  endfunction

  localparam int Nobody = 2;              // a slot that never has a QP: doorbells of it are bad
  int place[NQ], num_of[NumQp];           // slot of a QP; QP of a slot, -1 none
  function automatic int qp_of(int i);
    return place[i];
  endfunction
  function automatic int stride(int i);
    return stride128[i] ? 128 : 64;
  endfunction

  function automatic void fresh_qp(int i);
    log_size[i] = int'($urandom() % 7);
    stride128[i] = 1'($urandom());
    base[i] = {12'h123, 20'(i), 20'h0, 12'($urandom() % 32) << 7};
    pd[i] = 24'($urandom());
    sw_pi[i] = 0;
    hw_pi[i] = 0;
    low_pi[i] = 0;
    next[i] = 0;
    limit[i] = 0;
    if (i < NQ) begin
      open[i] = 0;
      flushed[i] = 0;
      told[i] = 0;
      last_told[i] = 0;
      none_told[i] = 0;
      reports[i] = 0;
    end
  endfunction

  function automatic void write_wqe(int i, int idx);
    logic [1023:0] w;
    int slot;
    slot = idx % (1 << log_size[i]);
    for (int k = 0; k < 32; k++) w[32*k+:32] = $urandom();
    n_sge = int'($urandom() % (stride128[i] ? 5 : 3));
    bad[i][slot] = 0;
    rd_err[i][slot] = 0;
    w[111:96] = 16'(idx);
    w[23:16] = 8'(n_sge);
    if ($urandom() % 12 == 0) begin
      bad[i][slot] = 1;
      case ($urandom() & 32'h3)
        0: w[111:96] = 16'(idx - (1 << log_size[i]));
        1: w[23:16] = stride128[i] ? 8'd5 : 8'd3;
        2: w[23:16] = 8'h81;
        default: rd_err[i][slot] = 1;
      endcase
    end
    tag[i][slot] = bad[i][slot] ? 16'hffff : w[47:32];
    num[i][slot] = 3'(n_sge);
    sges[i][slot] = w[767:256];
    for (int k = 0; k < stride(i); k++) begin
      mem[base[i] + 64'(slot * stride(i) + k)] = w[8*k+:8];
    end
  endfunction

  // ---- QP port and memory ----
  qp_idx_t qp_pend[$];
  qp_idx_t qp_now;
  logic [63:0] rd_addr[$];
  int rd_beats[$];
  logic [3:0] rd_id[$];
  int n_read, n_rd_err, slot_at, beats_left, max_open;
  logic [63:0] at;
  always @(negedge clk) begin
    qp_rsp_valid = 0;
    qp_rsp = {($bits(qp_attr_t) / 32 + 1) {$urandom()}};
    r_valid = 0;
    r_data = {(DataW / 32) {$urandom()}};
    if (rst_n) begin
      if (qp_pend.size() != 0 && go()) begin
        qp_now = qp_pend.pop_front();
        qp_rsp_valid = 1;
        qp_rsp = '0;
        qp_rsp.state = QpNone;
        for (int i = 0; i < NQ; i++) if (qp_of(i) == int'(qp_now)) begin
          qp_rsp.state = state[i];
          qp_rsp.rq_stride128 = stride128[i];
          qp_rsp.rq_addr = base[i];
          qp_rsp.log_rq_size = 4'(log_size[i]);
          qp_rsp.has_srq = i >= NO;
          qp_rsp.srqn = srq_idx_t'(srqn_of(ring_of(i)));
          qp_rsp.recv_cqn = cq_idx_t'(i + 7);
        end
      end
      qp_req_ready = go();
      ar_ready = go();
      flush_ready = go();
      lim_ready = go();
      if (rd_beats.size() != 0 && hold_r == 0 && go()) begin
        at = rd_addr[0];
        r_valid = 1;
        r_id = rd_id[0];
        r_err = 0;
        for (int i = 0; i < NR; i++) if (at >= base[i] && at < base[i] + 64'(stride(i) << log_size[i])) begin
          slot_at = int'(at - base[i]) / stride(i);
          r_err = rd_err[i][slot_at] && (at - base[i]) % 64'(stride(i)) < 64'(BytesW);
        end
        for (int k = 0; k < int'(BytesW); k++) r_data[8*k+:8] = mem[at + 64'(k)];
        rd_addr[0] = at + 64'(BytesW);
        rd_beats[0] = rd_beats[0] - 1;
        r_last = rd_beats[0] == 0;
        if (r_last) begin
          void'(rd_addr.pop_front());
          void'(rd_beats.pop_front());
          void'(rd_id.pop_front());
        end
      end
      if (hold_r > 0) hold_r--;
      else if ($urandom() % 50 == 0) hold_r = int'($urandom() % 100);
    end
  end

  bit in_ring;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n) begin
      if (qp_req_valid && qp_req_ready) qp_pend.push_back(qp_idx);
      n_rd_err += $countones(ev_axi_err);
      if (ar_valid && ar_ready) begin
        in_ring = 0;
        for (int i = 0; i < NR; i++) begin
          if (ar_addr >= base[i] && ar_addr + (64'(ar_len) + 1) * 64'(BytesW) <= base[i] + 64'(stride(i) << log_size[i])) in_ring = 1;
        end
        if (!in_ring) $fatal(1, "read of %h len %0d outside the rings", ar_addr, ar_len);
        if (ar_addr % 64'(BytesW) != 0) $fatal(1, "address %h not aligned", ar_addr);
        if (ar_addr[63:12] != 52'((ar_addr + (64'(ar_len) + 1) * 64'(BytesW) - 1) >> 12)) $fatal(1, "burst crosses a page");
        rd_addr.push_back(ar_addr);
        rd_beats.push_back(int'(ar_len) + 1);
        rd_id.push_back(ar_id);
        n_read++;
        if (rd_beats.size() > max_open) max_open = rd_beats.size();
      end
    end
  end

  // ---- what comes out ----
  int n_tell, n_tell_none, n_report, seen_code[32];
  bit took[NQ];  // something was there since the peer was told of none
  bit fresh;
  int n_again, n_ok, n_bad, n_none, n_gone, n_flush, n_bad_db, want_bad_db, n_multi, n_shared, n_held, n_last, n_srq;
  int rr;              // its ring
  bit held;            // the WQE is one of an SRQ that the QP holds
  int rq_i;            // QP of the request
  bit req_busy = 0, none_ok, resetting = 0;  // a reset began, its drain is not over
  int req_cycle, slow;
  int fi, slot;
  always @(posedge clk) if (rst_n) begin
    n_bad_db += $countones(ev_bad_db);
    if (rsp_valid) begin
      if (!req_busy) $fatal(1, "answer nobody asked for");
      if (cycle - req_cycle > slow) slow = cycle - req_cycle;
      // a start while a WQE is open gives that one again
      fresh = req.start && !open[rq_i];
      rr = ring_of(rq_i);
      held = rq_i >= NO && !fresh;
      slot = (fresh ? next[rr] : next[rr] - 1) % (1 << log_size[rr]);
      case (rsp.status)
        RqNone: begin
          n_none++;
          if (!fresh || !none_ok) $fatal(1, "QP %0d: nothing posted, but %0d of %0d were", rq_i, next[rr], hw_pi[rr]);
        end
        RqGone: begin
          n_gone++;
          if (state[rq_i] != QpErr) $fatal(1, "QP %0d: WQE gone", rq_i);
        end
        default: begin
          if (flushed[rq_i]) $fatal(1, "QP %0d: answer behind a flush", rq_i);
          if (fresh && next[rr] == hw_pi[rr]) $fatal(1, "QP %0d: WQE never posted", rq_i);
          if (fresh && rq_i >= NO) begin
            h_bad[rq_i] = bad[rr][slot];
            h_num[rq_i] = num[rr][slot];
            h_sges[rq_i] = sges[rr][slot];
            h_tag[rq_i] = tag[rr][slot];
            n_shared++;
          end
          if (held) n_held++;
          if (rq_i < NO ? int'(rsp.index) != (fresh ? next[rr] : next[rr] - 1) % 65536 : rsp.index != h_tag[rq_i]) begin
            $fatal(1, "QP %0d: index %0d, want %0d tag %0d", rq_i, rsp.index, next[rr], h_tag[rq_i]);
          end
          if ((rsp.status == RqBad) != (rq_i >= NO ? h_bad[rq_i] : bad[rr][slot])) $fatal(1, "QP %0d: status %0d of WQE %0d", rq_i, rsp.status, rsp.index);
          if (rsp.status == RqOk) begin
            if (rsp.num_sge != (rq_i >= NO ? h_num[rq_i] : num[rr][slot])) $fatal(1, "QP %0d: %0d SGEs", rq_i, rsp.num_sge);
            for (int k = 0; k < int'(rsp.num_sge); k++) begin
              if (rsp.sge[k] !== (rq_i >= NO ? h_sges[rq_i][128*k+:128] : sges[rr][slot][128*k+:128])) $fatal(1, "QP %0d: SGE %0d %h", rq_i, k, rsp.sge[k]);
            end
          end
          if (rsp.status == RqBad) n_bad++;
          else n_ok++;
          if (!fresh) n_multi++;
          if (req.start && !fresh) n_again++;
          if (fresh) next[rr]++;
          open[rq_i] = !req.last;
        end
      endcase
      req_busy = 0;
    end
    if (flush_valid && flush_ready) begin
      fi = num_of[flush.qp];
      if (fi < 0) $fatal(1, "flush of slot %0d", flush.qp);
      if (flush.credits) begin
        if (int'(flush.qp) != qp_of(fi) || fi >= NO || reports[fi] == 0 || flush.last_wqe) $fatal(1, "QP %0d: report of a receive", flush.qp);
        if (hw_pi[fi] == next[fi] && !open[fi] && !took[fi]) $fatal(1, "QP %0d: report, but nothing is posted", fi);
        reports[fi]--;
        none_told[fi] = 0;
        n_report++;
      end else begin
      n_flush += int'(!flush.last_wqe);
      if (int'(flush.qp) != qp_of(fi) || int'(flush.cqn) != fi + 7) $fatal(1, "flush of QP %0d to CQ %0d", flush.qp, flush.cqn);
      if (state[fi] != QpErr && !resetting) $fatal(1, "flush of a QP in state %0d", state[fi]);
      flushed[fi] = 1;
      if (flush.last_wqe) begin
        n_last++;
        if (fi < NO || open[fi] || last_told[fi]) $fatal(1, "QP %0d: last WQE reached, open %0d, told %0d", fi, open[fi], last_told[fi]);
        last_told[fi] = 1;
      end else if (fi >= NO) begin
        if (!open[fi] || flush.index != h_tag[fi]) $fatal(1, "QP %0d: flush of tag %0d", fi, flush.index);
        open[fi] = 0;
      end else if (open[fi]) begin
        if (int'(flush.index) != (next[fi] - 1) % 65536) $fatal(1, "QP %0d: flush of %0d, open is %0d", fi, flush.index, next[fi] - 1);
        open[fi] = 0;
      end else begin
        if (next[fi] == hw_pi[fi] || int'(flush.index) != next[fi] % 65536) $fatal(1, "QP %0d: flush of %0d, want %0d", fi, flush.index, next[fi]);
        next[fi]++;
      end
      end
    end
  end

  // ---- credits ----
  bit tell_on = 0;
  int table_of[31] = '{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
                       8192, 12288, 16384, 24576, 32768};
  function automatic int code_of(int n);
    for (int c = 30; c > 0; c--) if (table_of[c] <= n) return c;
    return 0;
  endfunction
  int ci_tell, lo, hi;
  always @(negedge clk) begin
    ci_tell = int'($urandom() % NO);
    if (ci_tell == moving) ci_tell = (ci_tell + 1) % NO;
    cr_qp = qp_idx_t'(qp_of(ci_tell));
    cr_tell = rst_n && tell_on && !resetting && !req_busy && $urandom() % 4 == 0 && state[ci_tell] inside {QpInit, QpRtr, QpRts, QpSqd};
  end
  always @(posedge clk) if (rst_n) begin
    if (cr_tell) begin
      hi = hw_pi[ci_tell] - next[ci_tell] + int'(open[ci_tell]);
      lo = cycle - db_cycle[ci_tell] < 200 ? low_pi[ci_tell] - next[ci_tell] + int'(open[ci_tell]) : hi;
      if (lo < 0) lo = 0;
      if (int'(cr_code) < code_of(lo) || int'(cr_code) > code_of(hi)) $fatal(1, "QP %0d: credit code %0d, %0d to %0d are there", ci_tell, cr_code, lo, hi);
      if (cr_code == 0) begin
        if (!none_told[ci_tell]) begin
          reports[ci_tell]++;
          none_since[ci_tell] = cycle;
        end
        n_tell_none++;
      end
      none_told[ci_tell] = cr_code == 0;
      seen_code[cr_code]++;
      n_tell++;
    end
    for (int i = 0; i < NO; i++) begin
      took[i] = hw_pi[i] != next[i] || (took[i] && none_told[i]);
      if (!none_told[i] || (hw_pi[i] == next[i] && !open[i]) || cycle - db_cycle[i] < 200 || !(state[i] inside {QpInit, QpRtr, QpRts, QpSqd})) none_since[i] = cycle;
      else if (cycle - none_since[i] > 1500) $fatal(1, "QP %0d: receives are there, and the peer does not know", i);
    end
  end

  bit db_taken = 0, req_taken = 0, err_taken = 0, srq_taken = 0, adm_taken = 0;
  int db_i = -1, k, room, drain_q, n_reset, n_err, q0;
  bit db_good;

  // ---- limits: a doorbell is known to the block up to 200 cycles late ----
  int ls;
  always @(posedge clk) if (rst_n) begin
    if (lim_valid && lim_ready) begin
      ls = lim.object == 5 ? NQ : NQ + 1;
      if (lim.ev_type != rnic_regs_pkg::EqeTypeSrqLimit || int'(lim.object) != srqn_of(ls) || limit[ls] == 0) $fatal(1, "limit of SRQ %0d", lim.object);
      if ((cycle - db_cycle[ls] < 200 ? low_pi[ls] : hw_pi[ls]) - next[ls] - int'(req_busy && ring_of(rq_i) == ls) >= limit[ls]) $fatal(1, "limit too early: %0d of %0d", next[ls], hw_pi[ls]);
      limit[ls] = 0;
      n_lim++;
    end
    for (int r = NQ; r < NR; r++) begin
      if (limit[r] == 0 || hw_pi[r] - next[r] >= limit[r]) below_since[r] = cycle;
      else if (cycle - below_since[r] > 200) $fatal(1, "no limit event of SRQ %0d: %0d of %0d, limit %0d", r, next[r], hw_pi[r], limit[r]);
    end
  end

  task automatic srq_command(srq_cmd_e op, int r, int lim);
    int n;
    n = 0;
    srq_op = op;
    srq_idx = srq_idx_t'(srqn_of(r));
    srq_attr = '{addr: base[r][63:6], log_size: 4'(log_size[r]), stride128: stride128[r], pd: pd[r]};
    srq_limit = 16'(lim);
    srq_valid = 1;
    do begin
      @(negedge clk);
      if (req_taken) req_valid = 0;
      if (err_taken) err_valid = 0;
      if (db_taken) db_valid = 0;
      n++;
      if (n > 2000) $fatal(1, "SRQ command not taken");
    end while (!srq_taken);
    srq_valid = 0;
    while (!srq_rsp_valid) begin
      tick();
      n++;
      if (n > 2000) $fatal(1, "SRQ command not answered");
    end
    if (srq_err) $fatal(1, "SRQ command refused");
    n_srq++;
  endtask

  // All QPs of an SRQ go; then it is destroyed, nothing of it is read any more, and it is made anew.
  task automatic remake_srq(int r);
    int n;
    for (int i = NO; i < NQ; i++) if (ring_of(i) == r) reset_qp(i);
    srq_command(SrqCmdDestroy, r, 0);
    if (!srq_rsp.exists) $fatal(1, "SRQ did not exist");
    n = 0;
    drain = 1;
    do begin
      @(negedge clk);
      n++;
      if (n > 5000) $fatal(1, "drain not done");
    end while (!drain_done);
    for (int k = 0; k < rd_addr.size(); k++) begin
      if (rd_addr[k] >= base[r] && rd_addr[k] < base[r] + 64'h100000) $fatal(1, "reads of a destroyed SRQ");
    end
    drain = 0;
    while (!u_srq.db_idle || u_srq.any_job) tick();
    // a doorbell of an SRQ that does not exist
    db_i = r;
    db_srq = 1;
    db_good = 0;
    db_qpn = 24'(srqn_of(r));
    db_pi = 16'(hw_pi[r] + 1);
    db_valid = 1;
    want_bad_db++;
    do @(negedge clk); while (!db_taken);
    db_valid = 0;
    repeat (20) @(negedge clk);
    srq_command(SrqCmdQuery, r, 0);
    if (srq_rsp.exists) $fatal(1, "SRQ still exists");
    fresh_qp(r);
    srq_command(SrqCmdCreate, r, 0);
  endtask

  // ---- software and responder ----
  task automatic doorbell_step();
    if (db_valid) begin
      if (db_taken) begin
        db_valid = 0;
      end
    end else if ($urandom() % 12 == 0 && u_srq.db_idle && !u_srq.any_job) begin  // none takes the place of another one (srq_cache_tb does that)
      db_i = int'($urandom() % NR);
      db_srq = db_i >= NQ;
      room = (1 << log_size[db_i]) - (sw_pi[db_i] - next[db_i] + int'(!db_srq && open[db_i]));
      k = int'($urandom() % 10);
      db_good = db_srq || state[db_i] != QpReset;
      db_qpn = db_srq ? 24'(srqn_of(db_i)) : 24'(qp_of(db_i));
      if (!db_srq && db_i >= NO) begin  // has no queue
        db_good = 0;
        db_pi = 16'($urandom() % 4);
        if (k > 2) db_pi = 16'd0;
      end else if (k == 0 && db_good) begin  // too far, or backwards
        db_good = 0;
        db_pi = 16'($urandom() % 2 == 0 ? hw_pi[db_i] + 3000 : hw_pi[db_i] - 1 - int'($urandom() % 1000));
      end else if (k == 1) begin
        db_good = 0;
        db_qpn = 24'(Nobody);
        if (db_srq) db_qpn = $urandom() % 2 == 0 ? 24'd64 + db_qpn : 24'd7;
        db_pi = 16'd1;
      end else begin
        k = room == 0 ? 0 : int'($urandom() % 32'(room + 1));
        if (!db_srq && state[db_i] == QpReset) k = 1;
        else for (int n = 0; n < k; n++) write_wqe(db_i, sw_pi[db_i] + n);
        db_pi = 16'(sw_pi[db_i] + k);
        if (db_good) sw_pi[db_i] += k;
      end
      if (db_good) begin
        if (cycle - db_cycle[db_i] >= 200) low_pi[db_i] = hw_pi[db_i];
        hw_pi[db_i] = sw_pi[db_i];
        db_cycle[db_i] = cycle;
      end else begin
        want_bad_db++;
      end
      db_valid = 1;
    end
  endtask
  always @(posedge clk) begin
    db_taken = db_valid && db_ready;
    if (db_taken && db_good) db_cycle[db_i] = cycle;
    req_taken = req_valid && req_ready;
    err_taken = err_valid && err_ready;
    adm_taken = adm_valid && adm_ready;
    srq_taken = srq_valid && srq_ready;
    if (srq_taken && srq_op inside {SrqCmdCreate, SrqCmdLimit}) limit[int'(srq_idx) == 5 ? NQ : NQ + 1] = int'(srq_limit);
  end

  task automatic request_step(int percent);
    if (req_valid) begin
      if (req_taken) req_valid = 0;
    end else if (!req_busy && int'($urandom() % 100) < percent) begin
      rq_i = int'($urandom() % NQ);
      if (state[rq_i] != QpReset) begin
        ask.qp = qp_idx_t'(qp_of(rq_i));
        ask.has_srq = rq_i >= NO;
        ask.srqn = srq_idx_t'(ask.has_srq ? srqn_of(ring_of(rq_i)) : int'($urandom() % 64));
        ask.start = !open[rq_i] || $urandom() % 4 == 0;
        ask.last = $urandom() % 3 != 0;
        req = ask;  // in one piece: Verilator 5.006 does not see parts
        none_ok = next[ring_of(rq_i)] == hw_pi[ring_of(rq_i)] || cycle - db_cycle[ring_of(rq_i)] < 200;
        req_valid = 1;
        req_busy = 1;
        req_cycle = cycle;
      end
    end
  endtask

  // a QP fails; the event comes some time later
  task automatic fail_step();
    if (err_valid) begin
      if (err_taken) err_valid = 0;
    end else begin
      q0 = int'($urandom() % NQ);
      if ($urandom() % 600 == 0 && state[q0] != QpReset) begin
        n_err += int'(state[q0] != QpErr);
        state[q0] = QpErr;
      end
      if (state[q0] == QpErr && !told[q0]) begin
        err_valid = 1;
        err_idx = qp_idx_t'(qp_of(q0));
        told[q0] = 1;
      end
    end
  endtask

  task automatic reset_qp(int i);
    int n;
    state[i] = QpReset;
    resetting = 1;
    n = 0;
    for (int round = 0; round < 2; round++) begin
      @(negedge clk);
      drain = 0;
      repeat (3) @(negedge clk);
      drain = 1;
      do begin
        @(negedge clk);
        if (req_taken) req_valid = 0;
        if (err_taken) err_valid = 0;
        if (db_taken) db_valid = 0;
        n++;
        if (n > 5000) $fatal(1, "drain not done");
      end while (!drain_done);
      for (int r = 0; r < rd_addr.size(); r++) begin
        if (i < NO && rd_addr[r] >= base[i] && rd_addr[r] < base[i] + 64'h100000) $fatal(1, "reads of a QP in RESET after a drain");
      end
    end
    drain = 0;
    resetting = 0;
    fresh_qp(i);
    administer(i, 1);
    if (adm_rsp != '0) $fatal(1, "after init: %p", adm_rsp);
    state[i] = qp_state_e'(1 + $urandom() % 4);
    n_reset++;
  endtask

  task automatic administer(int i, bit init);
    int n;
    n = 0;
    adm_valid = 1;
    adm_init = init;
    adm_qp = qp_idx_t'(qp_of(i));
    do begin
      @(negedge clk);
      if (req_taken) req_valid = 0;
      if (err_taken) err_valid = 0;
      if (db_taken) db_valid = 0;
      n++;
      if (n > 2000) $fatal(1, "admin not taken");
    end while (!adm_taken);
    adm_valid = 0;
    if (!adm_rsp_valid) $fatal(1, "admin not answered");
  endtask

  // a QP gets another slot
  qp_idx_t m_from, m_to;
  rq_keep_t m_keep;
  rq_entry_t m_entry;
  bit was_busy, ctx_taken;
  int n_moves, n_mv_busy, n_mv_open, n_mv_held;
  always @(posedge clk) begin
    was_busy = slot_busy;
    ctx_taken = ctx_valid && ctx_ready;
  end
  task automatic tick();
    @(negedge clk);
    if (req_taken) req_valid = 0;
    if (err_taken) err_valid = 0;
    if (db_taken) db_valid = 0;
  endtask
  task automatic access(bit load_it, bit word, qp_idx_t s, rq_keep_t keep, rq_entry_t e);
    int n;
    ctx_valid = 1;
    ctx_load = load_it;
    ctx_word = word;
    ctx_qp = s;
    ctx_at = 4'(m_keep.ci - 16'd1);
    ctx_in = keep;
    entry_in = e;
    n = 0;
    do begin
      tick();
      n++;
      if (n > 1000) $fatal(1, "context is not taken");
    end while (!ctx_taken);
    ctx_valid = 0;
  endtask
  task automatic move(int i);
    m_from = qp_idx_t'(place[i]);
    if (!(db_valid && !db_srq && db_qpn == 24'(m_from)) && !(err_valid && err_idx == m_from) && !(req_busy && rq_i == i)) begin
      moving = i;
      probe_qp = m_from;
      tick();
      n_mv_busy += int'(was_busy);
      if (!was_busy) begin
        do m_to = qp_idx_t'($urandom()); while (num_of[m_to] >= 0 || int'(m_to) == Nobody);
        access(0, 0, m_from, '0, '0);
        m_keep = ctx_out;
        m_keep.srq = i >= NO;
        access(0, 1, m_from, '0, '0);
        m_entry = entry_out;
        num_of[m_from] = -1;   // the slot is nobody's, and asked for no attributes
        place[i] = -1;
        access(1, 0, m_from, ~m_keep, '0);
        access(1, 1, m_from, '0, ~m_entry);
        access(1, 1, m_to, '0, i >= NO ? m_entry : ~m_entry);
        access(1, 0, m_to, m_keep, '0);
        num_of[m_to] = i;
        place[i] = int'(m_to);
        n_moves++;
        n_mv_open += int'(m_keep.open && i < NO);
        n_mv_held += int'(m_keep.open && i >= NO);
      end
      moving = -1;
    end
  endtask

  int cycles = 90000, first;
  initial begin
    for (int i = 0; i < int'(NumQp); i++) num_of[i] = -1;
    for (int i = 0; i < NQ; i++) begin
      place[i] = i * 21 + 3;
      num_of[place[i]] = i;
    end
    for (int i = 0; i < NR; i++) begin
      fresh_qp(i);
      if (i < NQ) state[i] = QpReset;
    end
    for (int c = 0; c < 31; c++) if (int'(credit_count(5'(c))) != table_of[c]) $fatal(1, "credit code %0d: %0d", c, credit_count(5'(c)));
    for (int n = 0; n <= 32768; n++) if (int'(credit_code(16'(n))) != code_of(n)) $fatal(1, "%0d credits: code %0d, want %0d", n, credit_code(16'(n)), code_of(n));
    repeat (4) @(negedge clk);
    rst_n = 1;
    while (!srq_swept) @(negedge clk);
    for (int r = NQ; r < NR; r++) srq_command(SrqCmdCreate, r, 0);
    // the rings are made before anything is asked
    for (int i = 0; i < NQ; i++) state[i] = qp_state_e'(1 + i % 4);
    tell_on = 1;
    // and more until the rare corners were seen
    for (int n = 0; n < cycles || (n < 4 * cycles && (n_shared < 500 || n_report < 40 || seen_code[7] < 5 || seen_code[10] < 5)); n++) begin
      @(negedge clk);
      stall = (n / 3000) % 3 == 0 ? 0 : (n / 3000) % 3 == 1 ? 30 : 70;
      // at times no doorbell comes to the help of a queue that was forgotten
      if (db_valid || (n / 4000) % 5 != 4) doorbell_step();
      if (DataW >= 256 && req_busy && cycle - req_cycle > 2500) $fatal(1, "QP %0d: no answer", req.qp);
      request_step((n / 5000) % 2 == 0 ? 60 : 5);
      fail_step();
      if ($urandom() % 8 == 0) move(int'($urandom() % NQ));
      if ($urandom() % 100 == 0) begin
        q0 = NQ + int'($urandom() % 2);
        if (limit[q0] == 0) begin
          srq_command(SrqCmdLimit, q0, int'($urandom() % 12));
          if (srq_rsp.limit != 0) $fatal(1, "limit still set");
        end else begin
          srq_command(SrqCmdQuery, q0, 0);
          if (srq_rsp.limit != 16'(limit[q0]) && srq_rsp.limit != 0) $fatal(1, "limit %0d, want %0d", srq_rsp.limit, limit[q0]);
        end
        if (!srq_rsp.exists || srq_rsp.attr != srq_attr || 16'(srq_rsp.ci - 16'(next[q0])) > 1 ||
            16'(16'(hw_pi[q0]) - srq_rsp.pi) > 64) $fatal(1, "SRQ %p", srq_rsp);
      end
      if ($urandom() % 4000 == 0 && !req_busy && !db_valid && !err_valid) begin
        repeat (60) @(negedge clk);
        remake_srq(NQ + int'($urandom() % 2));
      end
      if ($urandom() % 300 == 0 && !req_busy && !db_valid && !err_valid) begin
        q0 = int'($urandom() % NQ);
        if (state[q0] == QpErr || $urandom() % 8 == 0) begin
          repeat (60) begin  // its doorbell is through
            @(negedge clk);
          end
          reset_qp(q0);
        end
      end
    end
    tell_on = 0;
    // in the end all fail, and everything posted is flushed
    while (req_busy || db_valid || err_valid) begin
      @(negedge clk);
      if (req_taken) req_valid = 0;
      if (err_taken) err_valid = 0;
      if (db_taken) db_valid = 0;
    end
    stall = 20;
    for (int i = 0; i < NQ; i++) begin
      if (state[i] != QpErr) begin
        state[i] = QpErr;
        told[i] = 0;
      end
      if (!told[i]) begin
        err_valid = 1;
        err_idx = qp_idx_t'(qp_of(i));
        do @(negedge clk); while (!err_taken);
        err_valid = 0;
      end
    end
    first = 0;
    while (!idle) begin
      @(negedge clk);
      first++;
      if (first > 20000) $fatal(1, "does not come to rest");
    end
    for (int i = 0; i < NQ; i++) begin
      if (open[i] || (i < NO && next[i] != hw_pi[i])) $fatal(1, "QP %0d: %0d of %0d done, open %0d", i, next[i], hw_pi[i], open[i]);
      if (i >= NO && !last_told[i]) $fatal(1, "QP %0d: last WQE reached not told", i);
      administer(i, 0);
      if (i < NO && adm_rsp.pi != 16'(hw_pi[i]) || i < NO && adm_rsp.ci != 16'(next[i]) || adm_rsp.open) $fatal(1, "QP %0d: query %p", i, adm_rsp);
    end
    if (n_moves < 500 || n_mv_open < 30 || n_mv_held < 30 || n_mv_busy < 100) $fatal(1, "moves: %0d, %0d open, %0d held, %0d busy", n_moves, n_mv_open, n_mv_held, n_mv_busy);
    if (n_bad_db != want_bad_db) $fatal(1, "%0d bad doorbells, want %0d", n_bad_db, want_bad_db);
    if (n_ok < 1000 || n_multi < 300 || n_again < 50 || n_bad < 50 || n_none < 100 || n_gone < 20 || n_flush < 200 ||
        n_reset < 20 || n_err < 10 || n_rd_err < 10 || want_bad_db < 50 || n_shared < 500 || n_held < 150 ||
        n_last < 20 || n_lim < 30 || n_srq < 100 || n_tell < 1000 || n_tell_none < 200 || n_report < 40 || seen_code[7] < 5 || seen_code[10] < 5) begin
      $display("told %0d (none: %0d), reported %0d, codes %p", n_tell, n_tell_none, n_report, seen_code);
      $display("shared %0d held %0d last %0d limits %0d commands %0d", n_shared, n_held, n_last, n_lim, n_srq);
      $fatal(1, "corner not reached: ok %0d multi %0d bad %0d none %0d gone %0d flush %0d reset %0d err %0d rd %0d db %0d",
             n_ok, n_multi, n_bad, n_none, n_gone, n_flush, n_reset, n_err, n_rd_err, want_bad_db);
    end
    $display("PASS %0d moves (%0d with an open WQE, %0d with one of an SRQ), %0d times told (%0d none), %0d reports; %0d WQEs (%0d of SRQs, %0d times held), %0d limits, %0d times last, %0d malformed, %0d times none, %0d flushed, %0d reads (%0d open), %0d resets, slowest answer %0d",
             n_moves, n_mv_open, n_mv_held, n_tell, n_tell_none, n_report, n_ok, n_shared, n_held, n_lim, n_last, n_bad, n_none, n_flush, n_read, max_open, n_reset, slow);
    $finish;
  end
endmodule
