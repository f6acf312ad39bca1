// SPDX-License-Identifier: Apache-2.0
//
// qp_ctx (qp_cache, qp_mover and qp_lines) with models of the modules' ports: they hold state per slot with all live parts, refuse at random, and show
// garbage when nothing was asked. QPs are looked up, made, forgotten and prefetched at random, more of them than slots. A port that has its QP
// finds all its state in the slot bit for bit, changes it as the modules would, and leaves it; work goes on behind the pin in one module after
// the other. So a bit that comes back wrong, or that is changed in a slot that should rest, is seen at the next look-up of that QP. Memory stalls, and
// refuses a part of the lines of one QP for a while. At 64 bit the cache has 2 sets of 2 ways, else 64 of 4.
// In the end (not at 64 bit) the time of a move is measured with a memory that answers after 125 cycles.

module qp_ctx_tb
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int LogSets = DataW == 64 ? 1 : 6, LogWays = DataW == 64 ? 1 : 2, P = DataW == 64 ? 4 : 18, LogMoves = DataW == 64 ? 3 : 4;
  localparam int S = 1 << (LogSets + LogWays), LogN = DataW == 64 ? 4 : 10, N = 1 << LogN, Bad = 5;
  localparam int Delay = 125;
  localparam logic [63:0] Base = 64'h0000_0012_3456_7000;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic mem_on = 0;
  logic [P-1:0] req_valid = '0, req_ready, rsp_valid, rel_valid = '0;
  logic [P-1:0][23:0] req_qpn = '0;
  logic req_create = 0, rel_forget = 0, pf_valid = 0, bad_valid, bad_ready = 0, idle, closed;
  qpc_status_e [P-1:0] rsp_status;
  qp_idx_t [P-1:0] rsp_slot;
  logic [23:0] pf_qpn = '0;
  qpn_t bad_qpn;
  ctx_ev_t ev;

  logic ar_valid, ar_ready, aw_valid, aw_ready, w_valid, w_ready, w_last, r_valid, r_last, b_valid, mr_valid, mr_last;
  logic [63:0] ar_addr, aw_addr;
  logic [7:0] ar_len, aw_len;
  logic [1:0] rresp, bresp, mrresp;
  logic [DataW-1:0] r_data, w_data, mr_data;
  logic [DataW/8-1:0] w_strb;
  logic [3:0] rid, bid;

  // ---- modules ----
  qp_idx_t probe[8];
  // state of a slot on chip, places for messages, READs, receive WQEs and values of atomics included
  localparam int SlotBits = $bits(qp_attr_t) + $bits(req_keep_t) + (1 << LogInflight) * $bits(flight_t) + int'(MaxRdAtomic) * $bits(rd_entry_t) +
                            $bits(rsp_state_t) + $bits(rq_keep_t) + 16 * $bits(rq_entry_t) + $bits(rsp_keep_t) + 8 * $bits(rsp_value_t) + 1;
  logic [7:0] busy;
  logic [NumQp-1:0] open = NumQp'(64'h5555_3333_0f0f_00ff);
  logic dirty, t_valid, t_ready = 0, t_load, x_valid, x_ready = 0, x_load, q_valid, q_ready = 0, q_load, q_word, w_load, w_in, w_out,
        a_valid, a_ready = 0, a_load, a_word, s_valid, s_ready = 0, s_load, s_rsp = 0;
  qp_idx_t t_qp, x_qp, q_qp, w_qp, a_qp, s_qp;
  qpn_t s_qpn;
  qp_attr_t t_in, t_out;
  rsp_state_t x_in, x_out;
  rq_keep_t q_in, q_out;
  rq_entry_t q_entry_in, q_entry_out;
  rsp_keep_t a_in, a_out;
  rsp_value_t a_value_in, a_value_out;
  req_keep_t s_in, s_out;
  flight_t s_flight_in, s_flight_out;
  rd_entry_t s_entry_in, s_entry_out;
  logic [3:0] q_at;
  logic [2:0] a_at;
  logic [6:0] s_at;
  keep_e s_what;

  qp_ctx #(.DataW(DataW), .LogSets(LogSets), .LogWays(LogWays), .NumPorts(P), .LogMoves(LogMoves)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mem_on_i(mem_on), .mem_base_i(Base[63:11]), .mem_log_num_i(5'(LogN)),
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_qpn_i(req_qpn), .req_create_i(req_create),
    .rsp_valid_o(rsp_valid), .rsp_status_o(rsp_status), .rsp_slot_o(rsp_slot), .rel_valid_i(rel_valid), .rel_forget_i(rel_forget),
    .pf_valid_i(pf_valid), .pf_qpn_i(pf_qpn), .bad_valid_o(bad_valid), .bad_ready_i(bad_ready), .bad_qpn_o(bad_qpn),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(rresp[1]),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last),
    .b_valid_i(b_valid), .b_err_i(bresp[1]),
    .qp_table_probe_qp_o(probe[0]), .qp_table_busy_i(busy[0]), .qp_table_dirty_i(dirty), .qp_table_ctx_valid_o(t_valid),
    .qp_table_ctx_ready_i(t_ready), .qp_table_ctx_load_o(t_load), .qp_table_ctx_qp_o(t_qp), .qp_table_ctx_o(t_in), .qp_table_ctx_i(t_out),
    .rx_transport_probe_qp_o(probe[1]), .rx_transport_busy_i(busy[1]), .rx_transport_ctx_valid_o(x_valid), .rx_transport_ctx_ready_i(x_ready),
    .rx_transport_ctx_load_o(x_load), .rx_transport_ctx_qp_o(x_qp), .rx_transport_ctx_o(x_in), .rx_transport_ctx_i(x_out),
    .rq_cache_probe_qp_o(probe[2]), .rq_cache_busy_i(busy[2]), .rq_cache_ctx_valid_o(q_valid), .rq_cache_ctx_ready_i(q_ready),
    .rq_cache_ctx_load_o(q_load), .rq_cache_ctx_word_o(q_word), .rq_cache_ctx_qp_o(q_qp), .rq_cache_ctx_o(q_in), .rq_cache_ctx_i(q_out),
    .rq_cache_ctx_at_o(q_at), .rq_cache_ctx_entry_o(q_entry_in), .rq_cache_ctx_entry_i(q_entry_out),
    .rx_payload_writer_probe_qp_o(probe[3]), .rx_payload_writer_busy_i(busy[3]), .rx_payload_writer_ctx_load_o(w_load),
    .rx_payload_writer_ctx_qp_o(w_qp), .rx_payload_writer_ctx_o(w_in), .rx_payload_writer_ctx_i(w_out),
    .read_responder_probe_qp_o(probe[4]), .read_responder_busy_i(busy[4]), .read_responder_ctx_valid_o(a_valid),
    .read_responder_ctx_ready_i(a_ready), .read_responder_ctx_load_o(a_load), .read_responder_ctx_word_o(a_word), .read_responder_ctx_qp_o(a_qp),
    .read_responder_ctx_o(a_in), .read_responder_ctx_i(a_out), .read_responder_ctx_at_o(a_at), .read_responder_ctx_value_o(a_value_in),
    .read_responder_ctx_value_i(a_value_out),
    .requester_probe_qp_o(probe[5]), .requester_busy_i(busy[5]), .requester_open_i(open), .requester_ctx_valid_o(s_valid),
    .requester_ctx_ready_i(s_ready), .requester_ctx_load_o(s_load), .requester_ctx_what_o(s_what), .requester_ctx_qp_o(s_qp),
    .requester_ctx_qpn_o(s_qpn), .requester_ctx_at_o(s_at), .requester_ctx_o(s_in), .requester_ctx_flight_o(s_flight_in),
    .requester_ctx_entry_o(s_entry_in), .requester_ctx_rsp_valid_i(s_rsp), .requester_ctx_i(s_out), .requester_ctx_flight_i(s_flight_out),
    .requester_ctx_entry_i(s_entry_out),
    .ack_queue_probe_qp_o(probe[6]), .ack_queue_busy_i(busy[6]), .tx_egress_probe_qp_o(probe[7]), .tx_egress_busy_i(busy[7]),
    .closed_o(closed), .ev_o(ev), .idle_o(idle));

  axi_rd_check #(.DataW(DataW), .IdW(1), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(64)) u_rd_check (
    .clk_i(clk), .rst_ni(rst_n), .ar_valid_i(ar_valid), .ar_ready_i(ar_ready), .ar_id_i(1'b0), .ar_addr_i(ar_addr), .ar_len_i(ar_len),
    .ar_size_i(3'($clog2(DataW / 8))), .ar_burst_i(2'b01), .r_valid_i(r_valid), .r_ready_i(1'b1), .r_id_i(1'b0), .r_data_i(r_data),
    .r_resp_i(rresp), .r_last_i(r_last));
  axi_wr_check #(.DataW(DataW), .IdW(1), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(64), .MaxAhead(64)) u_wr_check (
    .clk_i(clk), .rst_ni(rst_n), .aw_valid_i(aw_valid), .aw_ready_i(aw_ready), .aw_id_i(1'b0), .aw_addr_i(aw_addr), .aw_len_i(aw_len),
    .aw_size_i(3'($clog2(DataW / 8))), .aw_burst_i(2'b01), .w_valid_i(w_valid), .w_ready_i(w_ready), .w_data_i(w_data),
    .w_strb_i(w_strb), .w_last_i(w_last), .b_valid_i(b_valid), .b_ready_i(1'b1), .b_id_i(1'b0), .b_resp_i(bresp));
  axi_mem #(.DataW(DataW), .NumIds(1)) mem (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(4'd0), .awaddr_i(aw_addr), .awlen_i(aw_len), .awsize_i(3'($clog2(DataW/8))), .awburst_i(2'b01), .awvalid_i(aw_valid), .awready_o(aw_ready),
    .wdata_i(w_data), .wstrb_i(w_strb), .wlast_i(w_last), .wvalid_i(w_valid), .wready_o(w_ready),
    .bid_o(bid), .bresp_o(bresp), .bvalid_o(b_valid), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(ar_addr), .arlen_i(ar_len), .arsize_i(3'($clog2(DataW/8))), .arburst_i(2'b01), .arvalid_i(ar_valid), .arready_o(ar_ready),
    .rid_o(rid), .rdata_o(mr_data), .rresp_o(mrresp), .rlast_o(mr_last), .rvalid_o(mr_valid), .rready_i(1'b1));

  // memory's latency
  bit far = 0;
  logic [DataW+3:0] pipe[Delay];
  int pipe_at = 0;
  logic [DataW+3:0] far_out;
  always @(posedge clk) begin
    far_out <= rst_n ? pipe[pipe_at] : '0;
    pipe[pipe_at] <= rst_n && far ? {mr_valid, mr_last, mrresp, mr_data} : '0;
    pipe_at <= (pipe_at + 1) % Delay;
  end
  // what memory refuses is not what was written
  assign {r_valid, r_last, rresp, r_data} = far ? far_out : {mr_valid, mr_last, mrresp, mrresp[1] ? ~mr_data : mr_data};

  // ---- state: of QPs, and of slots in the modules ----
  qp_attr_t t_attr[N], m_attr[S];
  req_keep_t t_req[N], m_req[S];
  rsp_state_t t_rsp[N], m_rsp[S];
  rq_keep_t t_rq[N], m_rq[S];
  rsp_keep_t t_keep[N], m_keep[S];
  bit t_bad[N], m_bad[S];
  flight_t t_flight[N][128], m_flight[S][128];
  rd_entry_t t_read[N][8], m_read[S][8];
  rsp_value_t t_value[N][8], m_value[S][8];
  rq_entry_t t_wqe[N], m_wqe[S][16];
  qpn_t m_qpn[S];
  bit exists[N], m_dirty[S], loaded[S];
  int owner[S], work_left[S], work_in[S], pins[S];
  bit fatal_errors = 0;

  int n_look, n_hit, n_create, n_exists, n_none, n_refused, n_lost, n_forget, n_pf, n_flights, n_full, n_wrap, n_beyond, n_begun, n_failed, n_reads, n_values,
      n_wqe, n_ring, n_moves, n_save, n_attr_save, n_zero, n_work, n_wait;

  function automatic logic [1023:0] rnd();
    logic [1023:0] v;
    for (int i = 0; i < 32; i++) v[32*i+:32] = $urandom();
    return v;
  endfunction
  function automatic flight_t rand_flight();
    flight_t f;
    f = flight_t'(rnd());
    if (f.kind == FlightError) f.last_psn = '0;
    else f.status = '0;
    return f;
  endfunction
  function automatic int flights_of(req_keep_t r);
    logic [15:0] d;
    d = r.seg.max_next - r.cpl.ci;
    if (d > 128) return 0;
    return d == 128 ? 128 : int'(d) + int'(r.sched.pi != r.seg.max_next);
  endfunction
  function automatic int reads_of(req_keep_t r);
    rd_num_t d;
    d = r.rd.made - r.rd.done;
    return int'(d);
  endfunction
  function automatic int values_of(rsp_keep_t k);
    return k.kept > 8 ? 8 : int'(k.kept);
  endfunction
  function automatic bit is_zero(qp_attr_t a);
    return a.state == QpNone;
  endfunction

  // The QP works: everything may change. Mode 1: nothing live; 2: a message in flight.
  int mode = 0;
  int chg;
  task automatic change(int s, int q, bit all);
    req_keep_t r;
    rq_keep_t k;
    qp_attr_t at;
    rsp_keep_t kp;
    int how;
    if (all || $urandom() % 4 == 0) begin
      at = qp_attr_t'(rnd());
      at.qpn = QpnW'(q);
      at.state = qp_state_e'($urandom() % 7);
      t_attr[q] = at;
      m_attr[s] = at;
      m_dirty[s] = 1;
    end
    r = req_keep_t'(rnd());
    how = mode != 0 ? 3 : int'($urandom() % 24);
    chg = how == 0 ? 128 : how == 1 ? 127 : how == 2 ? -int'($urandom() % 3) : how < 10 ? 0 : how < 22 ? int'($urandom() % 3) : int'($urandom() % 128);
    if (mode == 2) chg = 1;
    r.seg.max_next = r.cpl.ci + 16'(chg);
    r.sched.pi = r.seg.max_next + (mode != 0 || $urandom() % 2 == 0 ? 16'd0 : 16'(1 + $urandom() % 4));
    chg = mode == 0 && $urandom() % 3 == 0 ? int'($urandom() % 9) : 0;
    r.rd.made = r.rd.done + 4'(chg);
    t_req[q] = r;
    m_req[s] = r;
    for (int i = 0; i < flights_of(r); i++) begin
      t_flight[q][7'(int'(r.cpl.ci) + i)] = rand_flight();
      m_flight[s][7'(int'(r.cpl.ci) + i)] = t_flight[q][7'(int'(r.cpl.ci) + i)];
    end
    for (int i = 0; i < reads_of(r); i++) begin
      t_read[q][3'(int'(r.rd.done) + i)] = rd_entry_t'(rnd());
      m_read[s][3'(int'(r.rd.done) + i)] = t_read[q][3'(int'(r.rd.done) + i)];
    end
    t_rsp[q] = rsp_state_t'(rnd());
    m_rsp[s] = t_rsp[q];
    k = rq_keep_t'(rnd());
    k.srq = 0;
    if (mode != 0) k.open = 0;
    t_rq[q] = k;
    m_rq[s] = k;
    t_wqe[q] = rq_entry_t'(rnd());
    m_wqe[s][4'(k.ci - 16'd1)] = t_wqe[q];
    kp = rsp_keep_t'(rnd());
    if (mode != 0 || $urandom() % 2 == 0) kp.kept = '0;
    t_keep[q] = kp;
    m_keep[s] = kp;
    for (int i = 0; i < values_of(kp); i++) begin
      t_value[q][i] = rsp_value_t'(rnd());
      m_value[s][i] = t_value[q][i];
    end
    t_bad[q] = 1'($urandom());
    m_bad[s] = t_bad[q];
  endtask

  int at_i, n_f;
  task automatic compare(int s, int q);
    if (m_attr[s] !== t_attr[q]) $fatal(1, "QP %0d in slot %0d: attributes %h, want %h", q, s, m_attr[s], t_attr[q]);
    if (m_req[s] !== t_req[q]) $fatal(1, "QP %0d in slot %0d: requester %h, want %h", q, s, m_req[s], t_req[q]);
    if (m_rsp[s] !== t_rsp[q]) $fatal(1, "QP %0d in slot %0d: responder %h, want %h", q, s, m_rsp[s], t_rsp[q]);
    if (m_rq[s] !== t_rq[q]) $fatal(1, "QP %0d in slot %0d: receive queue %h, want %h", q, s, m_rq[s], t_rq[q]);
    if (m_keep[s] !== t_keep[q]) $fatal(1, "QP %0d in slot %0d: read responder %h, want %h", q, s, m_keep[s], t_keep[q]);
    if (m_bad[s] !== t_bad[q]) $fatal(1, "QP %0d in slot %0d: writer", q, s);
    if (m_qpn[s] != QpnW'(q)) $fatal(1, "QP %0d in slot %0d: QPN %0d", q, s, m_qpn[s]);
    n_f = flights_of(t_req[q]);
    for (int i = 0; i < n_f; i++) begin
      at_i = (int'(t_req[q].cpl.ci) + i) % 128;
      if (m_flight[s][at_i] !== t_flight[q][at_i]) $fatal(1, "QP %0d in slot %0d: message %0d, %0d of %0d", q, s, at_i, i, n_f);
    end
    for (int i = 0; i < reads_of(t_req[q]); i++) begin
      at_i = (int'(t_req[q].rd.done) + i) % 8;
      if (m_read[s][at_i] !== t_read[q][at_i]) $fatal(1, "QP %0d in slot %0d: READ %0d, %0d of %0d", q, s, at_i, i, reads_of(t_req[q]));
    end
    for (int i = 0; i < values_of(t_keep[q]); i++)
      if (m_value[s][i] !== t_value[q][i]) $fatal(1, "QP %0d in slot %0d: value %0d of %0d", q, s, i, values_of(t_keep[q]));
    if (t_rq[q].open && t_attr[q].has_srq && m_wqe[s][4'(t_rq[q].ci - 16'd1)] !== t_wqe[q]) $fatal(1, "QP %0d in slot %0d: WQE", q, s);
  endtask
  task automatic clear(int q);
    t_attr[q] = '0;
    t_attr[q].state = QpNone;
    t_attr[q].qpn = QpnW'(q);
    t_req[q] = '0;
    t_rsp[q] = '0;
    t_rq[q] = '0;
    t_keep[q] = '0;
    t_bad[q] = 0;
  endtask

  // ---- ports of the modules: a slot that is read or loaded rests ----
  bit calm = 0;
  logic s_q = 0, s_load_q;
  keep_e s_what_q;
  qp_idx_t s_qp_q;
  logic [6:0] s_at_q;
  req_keep_t s_in_q;
  flight_t s_flight_q;
  rd_entry_t s_entry_q;
  qpn_t s_qpn_q;
  task automatic rests(qp_idx_t s, string who);
    if (int'(s) >= S) $fatal(1, "%s: slot %0d", who, s);
    if (pins[s] != 0 || work_left[s] != 0) $fatal(1, "%s: slot %0d is in use", who, s);
  endtask
  always @(posedge clk) if (rst_n) begin
    t_out <= qp_attr_t'(rnd());
    x_out <= rsp_state_t'(rnd());
    q_out <= rq_keep_t'(rnd());
    q_entry_out <= rq_entry_t'(rnd());
    a_out <= rsp_keep_t'(rnd());
    a_value_out <= rsp_value_t'(rnd());
    s_out <= req_keep_t'(rnd());
    s_flight_out <= flight_t'(rnd());
    s_entry_out <= rd_entry_t'(rnd());
    if (dut.mv_valid && dut.mv_ready) loaded[dut.mv_slot] = 0;
    if (t_valid && t_ready) begin
      rests(t_qp, "qp_table");
      if (t_load) begin
        m_attr[t_qp] = t_in;
        m_dirty[t_qp] = 0;
        loaded[t_qp] = 1;
        n_moves++;
        n_zero += int'(t_in.state == QpNone);
      end else begin
        t_out <= m_attr[t_qp];
        n_save++;
      end
    end
    if (x_valid && x_ready) begin
      rests(x_qp, "rx_transport");
      if (x_load != loaded[x_qp] && x_load) $fatal(1, "rx_transport before qp_table");
      if (x_load) m_rsp[x_qp] = x_in;
      else x_out <= m_rsp[x_qp];
    end
    if (q_valid && q_ready) begin
      rests(q_qp, "rq_cache");
      if (q_word && q_load) m_wqe[q_qp][q_at] = q_entry_in;
      else if (q_word) q_entry_out <= m_wqe[q_qp][q_at];
      else if (q_load) begin
        if (!loaded[q_qp]) $fatal(1, "rq_cache before qp_table");
        if (q_in.srq != m_attr[q_qp].has_srq) $fatal(1, "slot %0d: SRQ %0d", q_qp, q_in.srq);
        m_rq[q_qp] = q_in;
        m_rq[q_qp].srq = 0;
      end else q_out <= m_rq[q_qp];
      if (q_word && q_load && loaded[q_qp]) $fatal(1, "a WQE behind the state");
      n_wqe += int'(q_word && q_load);
    end
    if (w_load) begin
      rests(w_qp, "rx_payload_writer");
      if (!loaded[w_qp]) $fatal(1, "writer before qp_table");
      m_bad[w_qp] = w_in;
    end
    if (a_valid && a_ready) begin
      rests(a_qp, "read_responder");
      if (a_word && a_load) m_value[a_qp][a_at] = a_value_in;
      else if (a_word) a_value_out <= m_value[a_qp][a_at];
      else if (a_load) m_keep[a_qp] = a_in;
      else a_out <= m_keep[a_qp];
      if (a_load && loaded[a_qp] == a_word) $fatal(1, "read_responder out of turn");
      n_values += int'(a_word && a_load);
    end
    s_rsp <= 0;
    if (s_q && (calm || $urandom() % 3 != 0)) begin
      s_q = 0;
      s_rsp <= 1;
      if (s_load_q && loaded[s_qp_q] != (s_what_q == KeepState)) $fatal(1, "requester out of turn");
      unique case (s_what_q)
        KeepState: if (s_load_q) begin
          m_req[s_qp_q] = s_in_q;
          m_qpn[s_qp_q] = s_qpn_q;
        end else s_out <= m_req[s_qp_q];
        KeepFlight: if (s_load_q) m_flight[s_qp_q][s_at_q] = s_flight_q;
          else s_flight_out <= m_flight[s_qp_q][s_at_q];
        default: if (s_load_q) m_read[s_qp_q][s_at_q[2:0]] = s_entry_q;
          else s_entry_out <= m_read[s_qp_q][s_at_q[2:0]];
      endcase
      n_flights += int'(s_load_q && s_what_q == KeepFlight);
      n_reads += int'(s_load_q && s_what_q == KeepRead);
      n_failed += int'(s_load_q && s_what_q == KeepFlight && s_flight_q.kind == FlightError);
    end else if (s_valid && s_ready) begin
      rests(s_qp, "requester");
      s_q = 1;
      s_load_q = s_load;
      s_what_q = s_what;
      s_qp_q = s_qp;
      s_at_q = s_at;
      s_in_q = s_in;
      s_flight_q = s_flight_in;
      s_entry_q = s_entry_in;
      s_qpn_q = s_qpn;
    end
  end
  assign w_out = int'(w_qp) < S ? m_bad[w_qp] : 1'b0;
  always @(negedge clk) begin
    t_ready = calm || $urandom() % 3 != 0;
    x_ready = calm || $urandom() % 2 == 0;
    q_ready = calm || $urandom() % 2 == 0;
    a_ready = calm || $urandom() % 3 == 0;
    s_ready = (calm || $urandom() % 2 == 0) && !s_q;
  end
  always_comb begin
    for (int m = 0; m < 8; m++) busy[m] = int'(probe[m]) < S && work_left[probe[m]] != 0 && work_in[probe[m]] == m;
    dirty = int'(probe[0]) < S && m_dirty[probe[0]];
  end

  // ---- users ----
  typedef enum int {PIdle, PAsk, PWait, PHave} ps_e;
  ps_e ps[P];
  int pq[P], left[P], age[P];
  bit pc, racing = 0, sweeping = 0;
  int sweep_at;
  int races = 0;      // cycles
  bit go = 0;
  int hold_forget = 0;
  logic [P-1:0] req_done = '0, rsp_done = '0;
  qpc_status_e [P-1:0] rsp_got;
  always @(negedge clk) if (rst_n && mem_on) begin
    rel_valid = '0;
    rel_forget = 0;
    bad_ready = $urandom() % 4 != 0;
    if (bad_valid && int'(bad_qpn) != Bad) $fatal(1, "QP %0d failed", bad_qpn);
    n_lost += int'(bad_valid && bad_ready);
    pf_valid = go && !racing && $urandom() % 16 == 0;
    pf_qpn = 24'($urandom() % N);
    n_pf += int'(pf_valid);
    n_hit += int'(ev.hit);
    // work goes on in one module after the other
    for (int s = 0; s < S; s++) begin
      if (work_left[s] != 0) begin
        work_left[s]--;
        if ($urandom() % 2 == 0) work_in[s] = int'($urandom() % 8);
        if (work_left[s] != 0 && $urandom() % 8 == 0) begin
          change(s, owner[s], 0);
          n_work++;
        end
      end
    end
    for (int p = 0; p < P; p++) begin
      age[p]++;
      if (age[p] > 60000) $fatal(1, "port %0d waits for QP %0d: state %0d", p, pq[p], ps[p]);
      if (ps[p] == PAsk && req_done[p]) begin
        ps[p] = PWait;
        req_valid[p] = 0;
      end
      if (ps[p] == PWait && rsp_done[p]) begin
        age[p] = 0;
        n_look++;
        ps[p] = PIdle;
        unique case (rsp_got[p])
          QpcNone: begin
            n_none++;
            if (exists[pq[p]] && pq[p] != Bad) $fatal(1, "QP %0d does not exist", pq[p]);
            exists[pq[p]] = 0;
          end
          QpcRefused: begin
            n_refused++;
            if (pq[p] != Bad) $fatal(1, "QP %0d refused", pq[p]);
          end
          QpcExists: begin
            n_exists++;
            if (!exists[pq[p]]) $fatal(1, "QP %0d exists", pq[p]);
          end
          default: begin
            // memory lost it meanwhile
            if (p == 0 && pc && pq[0] == Bad) exists[Bad] = 0;
            if (!exists[pq[p]] != (p == 0 && pc)) $fatal(1, "QP %0d: made %0d, existed %0d", pq[p], p == 0 && pc, exists[pq[p]]);
            if (!exists[pq[p]]) begin
              clear(pq[p]);
              n_create++;
            end
            exists[pq[p]] = 1;
            ps[p] = PHave;
            pins[rsp_slot[p]]++;
            owner[rsp_slot[p]] = pq[p];
            left[p] = racing || sweeping ? 0 : int'($urandom() % 12);
            compare(int'(rsp_slot[p]), pq[p]);
            n_f = flights_of(t_req[pq[p]]);
            n_full += int'(n_f == 128);
            n_begun += int'(n_f == 1 && t_req[pq[p]].seg.max_next == t_req[pq[p]].cpl.ci);
            n_wrap += int'(n_f > 1 && t_req[pq[p]].cpl.ci[6:0] > 7'(int'(t_req[pq[p]].cpl.ci) + n_f - 1));
            n_beyond += int'(signed'(t_req[pq[p]].seg.max_next - t_req[pq[p]].cpl.ci) < 0);
            n_ring += int'(t_rq[pq[p]].open && !t_attr[pq[p]].has_srq);
            if (p == 0 && pc) change(int'(rsp_slot[p]), pq[p], 1);
          end
        endcase
      end
      if (ps[p] == PHave) begin
        if (sweeping || (!racing && $urandom() % 3 == 0)) change(int'(rsp_slot[p]), pq[p], 0);
        if (left[p] == 0) begin
          compare(int'(rsp_slot[p]), pq[p]);
          ps[p] = PIdle;
          rel_valid[p] = 1;
          pins[rsp_slot[p]]--;
          if (p == 0 && !racing && !sweeping && $urandom() % 16 == 0 && pins[rsp_slot[p]] == 0 && work_left[rsp_slot[p]] == 0) begin
            // nobody may be about to get it
            pc = 1;
            for (int o = 1; o < P; o++) if (ps[o] != PIdle && pq[o] == pq[0]) pc = 0;
            if (pc) begin
              rel_forget = 1;
              exists[pq[0]] = 0;
              n_forget++;
              hold_forget = 8;
            end
          end else if (!racing && $urandom() % 3 == 0 && work_left[rsp_slot[p]] == 0) begin
            work_left[rsp_slot[p]] = int'($urandom() % 20) + 1;
            work_in[rsp_slot[p]] = int'($urandom() % 8);
          end
        end else left[p]--;
      end else if (ps[p] == PIdle && !rel_valid[p] && hold_forget == 0 && ((go && (racing || $urandom() % 4 == 0)) || (sweeping && p == 0 && sweep_at < N))) begin
        age[p] = 0;
        pq[p] = fatal_errors && $urandom() % 4 == 0 ? Bad : racing || $urandom() % 4 != 0 ? int'($urandom() % N) : int'($urandom() % 3);
        if (sweeping) pq[p] = sweep_at++;
        else if (p == 0 && !racing && $urandom() % 2 == 0)
          for (int q = 0; q < N; q++) if (!exists[q] && $urandom() % 4 == 0) pq[p] = q;
        req_valid[p] = 1;
        req_qpn[p] = 24'(pq[p]);
        ps[p] = PAsk;
        if (p == 0) begin
          pc = !racing && (!exists[pq[p]] || (!sweeping && $urandom() % 8 == 0));
          // others that ask meanwhile may be answered before or after
          for (int o = 1; o < P; o++) if (ps[o] != PIdle && pq[o] == pq[0]) pc = 0;
          req_create = pc;
        end else if (ps[0] != PIdle && pc && pq[p] == pq[0]) begin
          req_valid[p] = 0;
          ps[p] = PIdle;
        end
      end
      if (ps[p] != PHave && ps[p] != PIdle) n_wait++;
      if (ps[p] == PIdle) age[p] = 0;
    end
    if (hold_forget != 0) hold_forget--;
    if (racing) races++;
  end
  // an answer comes with the clock behind the one that took the question, or later
  always @(posedge clk) begin
    req_done <= req_valid & req_ready;
  end
  assign rsp_done = rsp_valid;
  assign rsp_got = rsp_status;

  int n, move0, cyc;
  task automatic settle();
    go = 0;
    n = 0;
    forever begin
      bit quiet;
      @(negedge clk);
      quiet = idle && !bad_valid;
      for (int p = 0; p < P; p++) if (ps[p] != PIdle) quiet = 0;
      n++;
      if (n > 100000) $fatal(1, "not idle");
      if (quiet) break;
    end
  endtask
  // every QP once, those that do not exist are made
  task automatic sweep();
    settle();
    sweep_at = 0;
    sweeping = 1;
    n = 0;
    while (sweep_at < N || ps[0] != PIdle) begin
      @(negedge clk);
      n++;
      if (n > 200000) $fatal(1, "sweep does not end");
    end
    sweeping = 0;
    settle();
  endtask
  task automatic race(string what, int m, real most);
    mem.stall = 0;
    calm = 1;
    mode = m;
    sweep();
    racing = 1;
    far = 1;
    go = 1;
    repeat (2000) @(negedge clk);
    move0 = n_moves;
    cyc = races;
    repeat (4000) @(negedge clk);
    $display("     %s: a move per %0.1f cycles", what, real'(races - cyc) / real'(n_moves - move0));
    if (real'(races - cyc) / real'(n_moves - move0) > most) $fatal(1, "too slow");
    settle();
    far = 0;
    racing = 0;
  endtask

  int rounds = DataW == 64 ? 70 : 36;
  initial begin
    for (int s = 0; s < S; s++) begin
      m_attr[s] = qp_attr_t'(rnd());
      m_req[s] = req_keep_t'(rnd());
      m_rsp[s] = rsp_state_t'(rnd());
      m_rq[s] = rq_keep_t'(rnd());
      m_keep[s] = rsp_keep_t'(rnd());
      m_bad[s] = 1;
      m_dirty[s] = 0;
      loaded[s] = 0;
      for (int i = 0; i < 128; i++) m_flight[s][i] = rand_flight();
      for (int i = 0; i < 8; i++) m_read[s][i] = rd_entry_t'(rnd());
      for (int i = 0; i < 8; i++) m_value[s][i] = rsp_value_t'(rnd());
      for (int i = 0; i < 16; i++) m_wqe[s][i] = rq_entry_t'(rnd());
    end
    // docs/qp-cache.md, "Memory"
    if (SlotBits != 19696) $fatal(1, "a slot has %0d bits, docs/qp-cache.md and README.md say 19696", SlotBits);
    repeat (3) @(negedge clk);
    rst_n = 1;
    repeat (5) @(negedge clk);
    mem_on = 1;
    sweep();
    for (int r = 0; r < rounds; r++) begin
      mem.stall = r % 3 == 0 ? 0 : r % 3 == 1 ? 40 : 80;
      calm = r % 4 == 0;
      fatal_errors = r % 3 == 2;
      if (fatal_errors) begin
        // the first line, live ones, all but the first ones
        mem.err_lo = Base + 2048 * Bad + (r % 9 == 2 ? 0 : r % 9 == 5 ? 512 : 128);
        mem.err_hi = Base + 2048 * Bad + (r % 9 == 2 ? 64 : 2048);
      end
      go = 1;
      repeat (3000) @(negedge clk);
      settle();
      mem.err_lo = '1;
      mem.err_hi = '0;
    end
    fatal_errors = 0;
    $display("     %0d look-ups (%0d hits), %0d moves, %0d saves, %0d made, %0d forgotten, %0d none, %0d exist, %0d refused, %0d lost or refused told",
             n_look, n_hit, n_moves, n_save, n_create, n_forget, n_none, n_exists, n_refused, n_lost);
    $display("     live: %0d messages (%0d failed; full %0d, round the end %0d, beyond %0d, begun %0d), %0d READs, %0d values, %0d WQEs, %0d open of rings, %0d changes at work",
             n_flights, n_failed, n_full, n_wrap, n_beyond, n_begun, n_reads, n_values, n_wqe, n_ring, n_work);
    if (n_look < 800 || n_moves < 700 || n_create < 25 || n_forget < (DataW == 64 ? 4 : 1) || n_none < (DataW == 64 ? 8 : 0) || n_exists < 3 || n_refused < 3 || n_lost < 3 || n_full < 10 ||
        n_wrap < 5 || n_beyond < 10 || n_begun < 10 || n_failed < 50 || n_reads < 100 || n_values < 100 || n_wqe < 30 || n_ring < 20 || n_work < 50)
      $fatal(1, "corners");
    if (DataW != 64) begin
      race("nothing live", 1, 12.0);
      race("a message in flight", 2, 22.0);
    end
    $display("PASS %0d look-ups, %0d moves", n_look, n_moves);
    $finish;
  end
endmodule
