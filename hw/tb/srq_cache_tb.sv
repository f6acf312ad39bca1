// SPDX-License-Identifier: Apache-2.0
//
// srq_cache with fewer contexts and places on chip than SRQs, against a model: random doorbells, takes, hints, limits, SRQs destroyed and made
// anew with the same number (with doorbells, reads and WQEs of the old one under way), contexts and WQEs in memories that stall, WQEs that
// are malformed or cannot be read. Every WQE comes once, in order, with its contents; none that the program told of before is missed. SRQs with
// a limit get their events, exactly. Doorbells that are wrong are counted. No ring is read after its SRQ was destroyed.
// Then: speed with all on chip; hints; fetches at the same time; doorbells while host memory does not answer; a take that waits while
// others want its place; contexts that host memory refuses to give and to take.

module srq_cache_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int NumB = DataW / 8;
  localparam bit Wide = DataW > 64;
  localparam int LogSets = Wide ? 2 : 1;
  localparam int LogWays = 1;
  localparam int LogPlaces = Wide ? 2 : 1;
  localparam int NS = 14;
  localparam int Late = 8;              // cycles that a doorbell may take to be known
  localparam logic [63:0] CtxBase = 64'h7_0000_1000;
  int srqns[NS] = '{0, 1, 2, 4, 8, 16, 64, 65, 128, 4097, 32767, 16384, 8194, 5};

  logic clk = 0, rst_n = 0;
  always #2 clk = !clk;

  logic ready, db_valid = 0, db_ready, slot_we = 0, slot_has = 0, hint_valid = 0, req_valid = 0, req_ready, rsp_valid;
  logic [23:0] db_srqn = '0;
  logic [15:0] db_pi = '0, cmd_limit = '0;
  qp_idx_t slot = '0, hint_slot = '0;
  srq_idx_t slot_srqn = '0, req_srqn = '0, cmd_idx = '0;
  srq_rsp_t rsp;
  logic cmd_valid = 0, cmd_ready, cmd_rsp_valid, cmd_err;
  srq_cmd_e cmd_op = SrqCmdQuery;
  srq_attr_t cmd_attr = '0;
  srq_ctx_t cmd_rsp;
  logic ar_valid, ar_ready = 0, r_valid = 0, r_last = 0, r_err = 0;
  logic [63:0] ar_addr;
  logic [7:0] ar_len;
  logic [DataW-1:0] r_data = '0;
  logic event_valid, event_ready = 0, drain = 0, drain_done, ev_limit, ev_fatal, ev_bad_db, ev_axi_err, idle;
  async_ev_t event_o;
  logic [2:0] ev_wqe;
  ctx_ev_t ev_ctx;
  ctx_mem_t ctx_mem = '{on: 1'b1, base: CtxBase[63:6], log_num: 5'd15};

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

  srq_cache #(.DataW(DataW), .LogSets(LogSets), .LogWays(LogWays), .LogPlaces(LogPlaces)) dut (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(ready), .mem_i(ctx_mem),
    .db_valid_i(db_valid), .db_ready_o(db_ready), .db_srqn_i(db_srqn), .db_pi_i(db_pi),
    .slot_we_i(slot_we), .slot_i(slot), .slot_has_srq_i(slot_has), .slot_srqn_i(slot_srqn), .hint_valid_i(hint_valid), .hint_slot_i(hint_slot),
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_srqn_i(req_srqn), .rsp_valid_o(rsp_valid), .rsp_o(rsp),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_op_i(cmd_op), .cmd_idx_i(cmd_idx), .cmd_attr_i(cmd_attr), .cmd_limit_i(cmd_limit),
    .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_err_o(cmd_err), .cmd_rsp_o(cmd_rsp),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .ctx_ar_valid_o(car_valid), .ctx_ar_ready_i(car_ready), .ctx_ar_addr_o(car_addr), .ctx_ar_len_o(car_len),
    .ctx_r_valid_i(cr_valid), .ctx_r_data_i(cr_data), .ctx_r_last_i(cr_last), .ctx_r_err_i(cr_resp[1]),
    .ctx_aw_valid_o(caw_valid), .ctx_aw_ready_i(caw_ready), .ctx_aw_addr_o(caw_addr), .ctx_aw_len_o(caw_len),
    .ctx_w_valid_o(cw_valid), .ctx_w_ready_i(cw_ready), .ctx_w_data_o(cw_data), .ctx_w_strb_o(cw_strb), .ctx_w_last_o(cw_last),
    .ctx_b_valid_i(cb_valid), .ctx_b_err_i(cb_resp[1]),
    .event_valid_o(event_valid), .event_ready_i(event_ready), .event_o(event_o),
    .drain_i(drain), .drain_done_o(drain_done),
    .ev_wqe_o(ev_wqe), .ev_limit_o(ev_limit), .ev_fatal_o(ev_fatal), .ev_bad_db_o(ev_bad_db), .ev_axi_err_o(ev_axi_err), .ev_ctx_o(ev_ctx),
    .idle_o(idle));

  int stall = 30, hold_r = 0, cycle = 0;
  function automatic bit go();
    return int'($urandom() % 100) >= stall;
  endfunction

  // ---- rings ----
  bit exists[NS], dead[NS], strict[NS];
  logic [63:0] base[NS];
  int log_size[NS], generation[NS];
  bit stride128[NS];
  logic [7:0] mem[logic [63:0]];
  bit rd_err[NS][64];
  srq_entry_t want[NS][64];             // WQE of a slot
  int sw_pi[NS], next[NS], limit[NS];
  int old_pi[NS], db_cycle[NS];         // what the doorbells before the newest said; when that was taken
  bit has_srq[NumQp];

  function automatic int stride(int n);
    return stride128[n] ? 128 : 64;
  endfunction
  function automatic int known_pi(int n, int at);   // what the block knows at least
    return at - db_cycle[n] > Late ? sw_pi[n] : old_pi[n];
  endfunction
  function automatic void write_wqe(int n, int idx);
    logic [1023:0] w;
    int s, num;
    s = idx % (1 << log_size[n]);
    for (int k = 0; k < 32; k++) w[32*k+:32] = $urandom();
    num = int'($urandom() % (stride128[n] ? 5 : 3));
    rd_err[n][s] = 0;
    want[n][s].e.bad = 0;
    w[111:96] = 16'(idx);
    w[23:16] = 8'(num);
    if ($urandom() % 12 == 0) begin
      want[n][s].e.bad = 1;
      case ($urandom() & 32'h3)
        0: w[111:96] = 16'(idx - (1 << log_size[n]));
        1: w[23:16] = stride128[n] ? 8'd5 : 8'd3;
        2: w[23:16] = 8'h81;
        default: rd_err[n][s] = 1;
      endcase
    end
    want[n][s].tag = want[n][s].e.bad ? 16'hffff : w[47:32];
    want[n][s].e.num_sge = 3'(num);
    want[n][s].e.sge = w[767:256];
    for (int k = 0; k < stride(n); k++) mem[base[n] + 64'(s * stride(n) + k)] = w[8*k+:8];
  endfunction

  // ---- memory of the rings ----
  logic [63:0] rd_addr[$];
  int rd_beats[$], rd_ring[$], reading[NS], n_read = 0, max_open = 0, ring, at_slot;
  logic [63:0] at;
  always @(negedge clk) begin
    r_valid = 0;
    r_data = {(DataW / 32) {$urandom()}};
    ar_ready = go();
    event_ready = rst_n && go() && !sleep_ev && (!slow_ev || $urandom() % 200 == 0);
    if (rd_beats.size() != 0 && hold_r == 0 && go()) begin
      at = rd_addr[0];
      ring = rd_ring[0];
      at_slot = int'(at - base[ring]) / stride(ring);
      r_valid = 1;
      r_err = rd_err[ring][at_slot] && (at - base[ring]) % 64'(stride(ring)) < 64'(NumB);
      for (int k = 0; k < NumB; k++) r_data[8*k+:8] = mem[at + 64'(k)];
      rd_addr[0] = at + 64'(NumB);
      rd_beats[0] = rd_beats[0] - 1;
      r_last = rd_beats[0] == 0;
      if (r_last) begin
        reading[ring]--;
        void'(rd_addr.pop_front());
        void'(rd_beats.pop_front());
        void'(rd_ring.pop_front());
      end
    end
    if (hold_r > 0) hold_r--;
    else if (stall != 0 && $urandom() % 80 == 0) hold_r = int'($urandom() % 100);
  end
  bit sleep_ev = 0, slow_ev = 0;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n && ar_valid && ar_ready) begin
      ring = -1;
      for (int n = 0; n < NS; n++)
        if (exists[n] && ar_addr >= base[n] && ar_addr + (64'(ar_len) + 1) * 64'(NumB) <= base[n] + 64'(stride(n) << log_size[n])) ring = n;
      if (ring < 0) $fatal(1, "read of %h outside the rings", ar_addr);
      if (ar_addr[63:12] != 52'((ar_addr + (64'(ar_len) + 1) * 64'(NumB) - 1) >> 12)) $fatal(1, "burst crosses a page");
      rd_addr.push_back(ar_addr);
      rd_beats.push_back(int'(ar_len) + 1);
      rd_ring.push_back(ring);
      reading[ring]++;
      n_read++;
      if (rd_beats.size() > max_open) max_open = rd_beats.size();
    end
  end

  // ---- what comes out ----
  int n_ok = 0, n_bad = 0, n_none = 0, n_lim = 0, n_fatal = 0, n_bad_db = 0, w_bad_db = 0, n_rd_err = 0, n_dead = 0;
  int exp_lim[NS], exp_fatal[NS], refused = -1;   // events to come; SRQ whose context is refused
  int n_hit = 0, n_miss = 0, n_wb = 0, n_evict = 0, n_stall = 0, n_ev_lim = 0, n_ev_fatal = 0, n_cmd_rsp = 0, slow = 0, n_wqe = 0;
  bit busy = 0, db_acc = 0, req_acc = 0, cmd_acc = 0, all_refused = 0;
  int t_n, t_pi, t_cycle, last_lat, e_n, s;        // the take under way: SRQ, what it may know, since when
  always @(posedge clk) if (rst_n) begin
    db_acc = db_valid && db_ready;
    cmd_acc = cmd_valid && cmd_ready;
    if (ev_bad_db) n_bad_db++;
    if (ev_axi_err) n_rd_err++;
    n_hit += int'(ev_ctx.hit);
    n_miss += int'(ev_ctx.miss);
    n_evict += int'(ev_ctx.evict);
    n_wb += int'(ev_ctx.writeback);
    n_stall += int'(ev_ctx.stall);
    n_ev_lim += int'(ev_limit);
    n_ev_fatal += int'(ev_fatal);
    n_wqe += int'(ev_wqe);
    if (rsp_valid) begin
      if (!busy || req_valid) $fatal(1, "answer nobody asked for");
      last_lat = cycle - t_cycle;
      if (last_lat > slow) slow = last_lat;
      busy = 0;
      if (dead[t_n] || refused == t_n || all_refused) begin
        n_dead++;
        if (rsp.status != RqOk || !rsp.wqe.e.bad || rsp.wqe.tag != 16'hffff) $fatal(1, "SRQ %0d is unusable: %p", srqns[t_n], rsp);
        if (!dead[t_n]) exp_fatal[t_n]++;
        dead[t_n] = 1;
      end else if (rsp.status == RqNone) begin
        n_none++;
        if (next[t_n] < t_pi) $fatal(1, "SRQ %0d: nothing posted, but %0d of %0d were", srqns[t_n], next[t_n], t_pi);
      end else begin
        if (rsp.status != RqOk) $fatal(1, "status %0d", rsp.status);
        if (next[t_n] >= sw_pi[t_n]) $fatal(1, "SRQ %0d: WQE %0d, never posted", srqns[t_n], next[t_n]);
        s = next[t_n] % (1 << log_size[t_n]);
        if (rsp.wqe.e.bad != want[t_n][s].e.bad || rsp.wqe.tag != want[t_n][s].tag)
          $fatal(1, "SRQ %0d: WQE %0d: tag %h bad %b, want %h %b", srqns[t_n], next[t_n], rsp.wqe.tag, rsp.wqe.e.bad, want[t_n][s].tag, want[t_n][s].e.bad);
        if (!rsp.wqe.e.bad) begin
          n_ok++;
          if (rsp.wqe.e.num_sge != want[t_n][s].e.num_sge) $fatal(1, "SRQ %0d: WQE %0d: %0d SGEs", srqns[t_n], next[t_n], rsp.wqe.e.num_sge);
          for (int k = 0; k < int'(rsp.wqe.e.num_sge); k++)
            if (rsp.wqe.e.sge[k] != want[t_n][s].e.sge[k]) $fatal(1, "SRQ %0d: WQE %0d: SGE %0d", srqns[t_n], next[t_n], k);
        end else n_bad++;
        next[t_n]++;
        if (strict[t_n] && sw_pi[t_n] - next[t_n] < limit[t_n]) begin
          limit[t_n] = 0;
          exp_lim[t_n]++;
        end
      end
    end
    if (busy && !req_valid && cycle - t_cycle > 6000) $fatal(1, "SRQ %0d: no answer", srqns[t_n]);
    if (cmd_rsp_valid) begin
      n_cmd_rsp++;
      e_n = cmd_n;
      if (cmd_err != (refused == e_n || all_refused)) $fatal(1, "SRQ %0d: command refused: %b", srqns[e_n], cmd_err);
      if (!cmd_err) begin
        if (cmd_rsp.exists != exists[e_n] || cmd_rsp.dead != dead[e_n]) $fatal(1, "SRQ %0d: %p, want exists %b dead %b", srqns[e_n], cmd_rsp, exists[e_n], dead[e_n]);
        if (exists[e_n]) begin
          if (cmd_rsp.attr != attr_of(e_n)) $fatal(1, "SRQ %0d: %p", srqns[e_n], cmd_rsp.attr);
          if (strict[e_n] && cmd_rsp.limit != 16'(limit[e_n])) $fatal(1, "SRQ %0d: limit %0d, want %0d", srqns[e_n], cmd_rsp.limit, limit[e_n]);
          if (16'(cmd_rsp.ci - 16'(next[e_n])) > 16'(busy && t_n == e_n)) $fatal(1, "SRQ %0d: ci %0d, want %0d", srqns[e_n], cmd_rsp.ci, next[e_n]);
          if (!dead[e_n] && (16'(16'(sw_pi[e_n]) - cmd_rsp.pi) > 16'(sw_pi[e_n] - cmd_pi))) $fatal(1, "SRQ %0d: pi %0d, want %0d to %0d", srqns[e_n], cmd_rsp.pi, cmd_pi, sw_pi[e_n]);
        end
        case (cmd_op)
          SrqCmdCreate, SrqCmdDestroy: begin
            exists[e_n] = cmd_op == SrqCmdCreate;
            dead[e_n] = 0;
            if (reading[e_n] != 0) $fatal(1, "SRQ %0d is read", srqns[e_n]);
          end
          default: ;
        endcase
        if (cmd_op inside {SrqCmdCreate, SrqCmdLimit}) begin
          limit[e_n] = int'(cmd_limit);
          if (strict[e_n] && sw_pi[e_n] - next[e_n] < limit[e_n]) begin
            limit[e_n] = 0;
            exp_lim[e_n]++;
          end
        end
      end
    end
    if (event_valid && event_ready) begin
      e_n = -1;
      for (int n = 0; n < NS; n++) if (32'(srqns[n]) == event_o.object) e_n = n;
      if (e_n < 0 || event_o.detail != 0) $fatal(1, "event %p", event_o);
      case (event_o.ev_type)
        rnic_regs_pkg::EqeTypeSrqLimit: begin
          n_lim++;
          if (exp_lim[e_n] == 0) $fatal(1, "SRQ %0d: limit", event_o.object);
          exp_lim[e_n]--;
        end
        rnic_regs_pkg::EqeTypeSrqFatal: begin
          n_fatal++;
          if (exp_fatal[e_n] == 0) $fatal(1, "SRQ %0d: fatal", event_o.object);
          exp_fatal[e_n]--;
        end
        default: $fatal(1, "event %p", event_o);
      endcase
    end
    if (req_valid && req_ready) begin
      req_acc = 1;
      t_cycle = cycle;
      t_pi = known_pi(t_n, cycle);
    end else req_acc = 0;
  end

  function automatic srq_attr_t attr_of(int n);
    return '{addr: base[n][63:6], log_size: 4'(log_size[n]), stride128: stride128[n], pd: 24'(n * 1000 + generation[n])};
  endfunction

  // ---- software ----
  int cmd_n, cmd_pi, d_n, room, k;
  // doorbells, of one with a limit not while a take of it is under way; takes
  bit only = 0, bg = 0;                // of few, so that they stay on chip; while a command is under way
  int takes = 2, lock_n = -1;
  task automatic traffic();
    int n, k;
    if (!db_valid && $urandom() % 6 == 0) begin
      n = int'($urandom() % (only ? 3 : NS));
      room = (1 << log_size[n]) - (sw_pi[n] - next[n]);
      if (n != lock_n && !dead[n] && cycle - db_cycle[n] > 0 && !(strict[n] && busy && t_n == n)) begin
        k = int'($urandom() % 32'(room + 1));
        post(n, k);
      end
    end
    if (!busy && $urandom() % 32'(takes) == 0) begin
      n = int'($urandom() % (only ? 3 : NS));
      if (n != lock_n && !(strict[n] && cycle - db_cycle[n] < 2 * Late)) take(n);
    end
  endtask
  // software acts between the edges, behind what is below
  task automatic tick();
    @(negedge clk);
    #1;
  endtask
  always @(negedge clk) begin
    if (db_acc) db_valid = 0;
    if (req_acc) req_valid = 0;
    if (cmd_acc) cmd_valid = 0;
    hint_valid = 0;
    slot_we = 0;
    w_cmd = cmd_valid ? w_cmd + 1 : 0;
    if (w_cmd > 1000) sleep_ev = 0;
    if (w_cmd > 8000) $fatal(1, "command is not taken");
    if (bg) traffic();
  end
  int w_cmd = 0;
  task automatic ring_db(int n, int pi);
    db_srqn = 24'(srqns[n]);
    db_pi = 16'(pi);
    db_valid = 1;
    d_n = n;
  endtask
  always @(posedge clk) if (rst_n && db_valid && db_ready) db_cycle[d_n] <= cycle;
  // posts k WQEs
  task automatic post(int n, int num);
    old_pi[n] = known_pi(n, cycle);
    for (int i = 0; i < num; i++) write_wqe(n, sw_pi[n] + i);
    sw_pi[n] += num;
    db_cycle[n] = cycle + 100000;   // until it is taken
    ring_db(n, sw_pi[n]);
  endtask
  task automatic db_wait();
    while (db_valid) tick();
  endtask
  task automatic take(int n);
    t_n = n;
    busy = 1;
    req_srqn = srq_idx_t'(srqns[n]);
    req_valid = 1;
  endtask
  task automatic take_wait();
    int w;
    w = 0;
    while (busy) begin
      tick();
      w++;
      if (w > 8000) $fatal(1, "SRQ %0d: take is not answered", srqns[t_n]);
    end
  endtask
  task automatic command(srq_cmd_e op, int n, int lim);
    int w, n_was;
    lock_n = n;
    cmd_op = op;
    cmd_n = n;
    cmd_pi = known_pi(n, cycle);
    cmd_idx = srq_idx_t'(srqns[n]);
    cmd_attr = attr_of(n);
    cmd_limit = 16'(lim);
    n_was = n_cmd_rsp;
    cmd_valid = 1;
    w = 0;
    while (cmd_valid || n_cmd_rsp == n_was) begin
      tick();
      w++;
      if (w > 20000) $fatal(1, "command is not answered");
    end
  endtask
  int no = 0;
  task automatic create(int n);
    log_size[n] = int'($urandom() % 7);
    stride128[n] = 1'($urandom());
    no++;
    base[n] = {12'h123, 20'(no), 20'h0, 12'($urandom() % 32) << 7};
    generation[n]++;
    sw_pi[n] = 0;
    old_pi[n] = 0;
    next[n] = 0;
    db_cycle[n] = 0;
    limit[n] = 0;
    command(SrqCmdCreate, n, strict[n] ? 0 : int'($urandom() % 2) * 0);
  endtask
  task automatic settle();
    int w;
    w = 0;
    sleep_ev = 0;
    while (!idle || db_valid || busy || event_valid) begin
      tick();
      w++;
      if (w > 20000) $fatal(1, "does not come to rest");
    end
    tick();   // events are told a cycle later
  endtask
  // its context leaves the chip
  task automatic push_out(int n);
    for (int i = 0; i < NS; i++) if (i != n) command(SrqCmdQuery, i, 0);
    for (int i = 0; i < NS; i++) if (i != n) command(SrqCmdQuery, i, 0);
  endtask
  task automatic remake(int n);
    int g;
    lock_n = n;
    // a doorbell just before
    if ($urandom() % 2 == 0 && sw_pi[n] - next[n] < 1 << log_size[n] && !db_valid) begin
      post(n, 1);
      if ($urandom() % 2 == 0) db_wait();
    end
    db_wait();
    command(SrqCmdDestroy, n, 0);
    // what was in the ring is gone
    for (int i = 0; i < stride(n) << log_size[n]; i++) mem[base[n] + 64'(i)] = 8'($urandom());
    if ($urandom() % 2 == 0) begin
      g = 1 + int'($urandom() % 3);
      db_wait();
      ring_db(n, g);
      w_bad_db++;
      db_wait();
      if ($urandom() % 2 == 0) repeat (int'($urandom() % 100)) tick();
    end
    if ($urandom() % 4 == 0) begin
      command(SrqCmdQuery, n, 0);
      drain_all();
    end
    create(n);
    n_remake++;
  endtask
  task automatic drain_all();
    int w;
    w = 0;
    sleep_ev = 0;
    drain = 1;
    do begin
      tick();
      w++;
      if (w > 30000) $fatal(1, "drain is not done");
    end while (!drain_done);
    drain = 0;
    tick();
  endtask

  int n, n_remake = 0, n_hint = 0, n_slow = 0, t0, best, h0, n_wrong = 0;
  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    while (!ready) tick();
    for (int i = 0; i < NS; i++) begin
      strict[i] = i % 2 == 1;
      create(i);
      if (cmd_rsp.exists) $fatal(1, "SRQ %0d exists", i);
    end
    u_ctx.stall = 30;
    bg = 1;
    for (int i = 0; i < 60000; i++) begin
      tick();
      lock_n = -1;
      stall = (i / 3000) % 3 == 0 ? 0 : (i / 3000) % 3 == 1 ? 30 : 70;
      u_ctx.stall = (i / 2000) % 3 == 0 ? 0 : (i / 2000) % 3 == 1 ? 30 : 80;
      sleep_ev = (i / 500) % 8 == 3;
      only = (i / 1000) % 3 != 1;
      takes = (i / 1500) % 2 == 0 ? 2 : 12;
      if ($urandom() % 10 == 0) begin
        slot_we = 1;
        slot = qp_idx_t'($urandom() % 20);
        slot_has = $urandom() % 4 != 0;
        slot_srqn = srq_idx_t'(srqns[$urandom() % NS]);
      end
      if ($urandom() % 6 == 0) begin
        hint_valid = 1;
        hint_slot = qp_idx_t'($urandom() % 20);
        n_hint++;
      end
      if ($urandom() % 40 == 0) begin
        n = int'($urandom() % NS);
        if (strict[n]) begin
          if (!(busy && t_n == n) && cycle - db_cycle[n] > 2 * Late) command(SrqCmdLimit, n, int'($urandom() % 8));
        end else command(SrqCmdQuery, n, 0);
      end
      if ($urandom() % 400 == 0) begin
        n = int'($urandom() % NS);
        if (!(busy && t_n == n)) remake(n);
      end
      if ($urandom() % 400 == 0) drain_all();
      // a doorbell that is wrong changes nothing
      if ($urandom() % 1500 == 0) begin
        n = int'($urandom() % NS);
        bg = 0;
        settle();
        t0 = n_bad_db;
        ring_db(n, $urandom() % 2 == 0 ? sw_pi[n] - 1 : next[n] + (1 << log_size[n]) + 1 + int'($urandom() % 1000));
        if ($urandom() % 3 == 0) db_srqn = 24'h8000 + 24'($urandom() % 5);
        w_bad_db++;
        db_wait();
        for (int w = 0; n_bad_db == t0 && w < 3000; w++) tick();
        if (n_bad_db != t0 + 1) $fatal(1, "bad doorbell: %0d", n_bad_db - t0);
        if (next[n] == sw_pi[n]) begin
          take(n);
          take_wait();
        end
        command(SrqCmdQuery, n, 0);
        ring_db(n, sw_pi[n]);
        db_wait();
        settle();
        bg = 1;
        n_wrong++;
      end
      if (dead[0] || n_fatal != 0) $fatal(1, "unusable");
    end
    bg = 0;
    lock_n = -1;
    settle();
    if (n_bad_db != w_bad_db) $fatal(1, "%0d bad doorbells, want %0d", n_bad_db, w_bad_db);
    for (int i = 0; i < NS; i++) if (exp_lim[i] != 0) $fatal(1, "SRQ %0d: %0d events are missing", i, exp_lim[i]);
    if (n_ev_lim != n_lim) $fatal(1, "limits: %0d counted", n_ev_lim);
    if (n_ok < 1000 || n_bad < 80 || n_none < 80 || n_lim < 30 || n_remake < 100 || n_wrong < 20 || n_evict < 1000 || n_wb < 500 || n_hit < 1000 || n_stall < 1000)
      $fatal(1, "corner not reached: ok %0d bad %0d none %0d lim %0d remake %0d wrong %0d evict %0d wb %0d hit %0d stall %0d", n_ok, n_bad, n_none, n_lim, n_remake, n_wrong, n_evict, n_wb, n_hit, n_stall);

    // ---- speed: all is on chip ----
    stall = 0;
    u_ctx.stall = 0;
    do remake(0); while (log_size[0] < 5);
    settle();
    post(0, 16);
    settle();
    best = 0;
    for (int i = 0; i < 8; i++) begin
      t0 = cycle;
      take(0);
      tick();
      tick();
      if (busy || last_lat != 1) $fatal(1, "answer after %0d cycles", last_lat);
      best += cycle - t0;
    end
    if (best != 16) $fatal(1, "8 takes in %0d cycles", best);
    // what is taken makes room for more
    settle();
    post(0, 24);
    repeat (12) begin
      take(0);
      take_wait();
    end
    settle();
    for (int i = 0; i < 12; i++) begin
      take(0);
      take_wait();
      if (last_lat != 1) $fatal(1, "WQE %0d was not read ahead: %0d", i, last_lat);
      settle();
    end

    // ---- a hint brings context and WQEs ----
    do remake(2); while (log_size[2] < 4);
    post(2, 10);
    settle();
    push_out(2);
    for (int i = 4; i < 12; i++) if (sw_pi[i] - next[i] > 0) begin take(i); take_wait(); end
    settle();
    slot_we = 1; slot = 7; slot_has = 1; slot_srqn = srq_idx_t'(srqns[2]);
    tick();
    slot_we = 0; hint_valid = 1; hint_slot = 7;
    tick();
    hint_valid = 0;
    settle();
    h0 = n_read;
    take(2);
    take_wait();
    if (last_lat != 1) $fatal(1, "hint: answer after %0d cycles", last_lat);
    // and only the context, if the place is right
    push_out(2);
    settle();
    hint_valid = 1;
    tick();
    hint_valid = 0;
    settle();
    take(2);
    take_wait();
    if (last_lat != 1) $fatal(1, "hint of a context: answer after %0d cycles", last_lat);
    // a slot whose QP has no SRQ says nothing
    slot_we = 1; slot_has = 0;
    tick();
    slot_we = 0;
    push_out(2);
    settle();
    t0 = n_miss;
    hint_valid = 1;
    tick();
    hint_valid = 0;
    settle();
    if (n_miss != t0) $fatal(1, "hint without an SRQ");

    // ---- doorbells do not wait for memory, and a take does not wait for them but for memory ----
    for (int i = 0; i < NS; i++) while (sw_pi[i] - next[i] >= 1 << log_size[i]) begin take(i); take_wait(); end
    settle();
    u_ctx.freeze_r = 1;
    t0 = cycle;
    for (int i = 0; i < NS; i++) begin
      post(i, 1);
      db_wait();
    end
    if (cycle - t0 > 4 * NS) $fatal(1, "%0d doorbells in %0d cycles while memory sleeps", NS, cycle - t0);
    repeat (300) tick();
    u_ctx.freeze_r = 0;
    // with one that came before it: not RqNone
    take(7);
    take_wait();
    settle();

    // ---- fetches at the same time ----
    push_out(3);
    settle();
    u_ctx.freeze_r = 1;
    t0 = u_ctx.rd_addr.size();
    for (int i = 0; i < NS; i++) begin
      ring_db(i, sw_pi[i]);
      db_wait();
    end
    repeat (100) tick();
    best = u_ctx.rd_addr.size();
    if (best < 3) $fatal(1, "%0d contexts fetched at the same time", best);
    u_ctx.freeze_r = 0;
    settle();

    // ---- a take waits for its WQE while others want its place ----
    for (int i = 0; i < 20; i++) begin
      stall = 50;
      // SRQs 0, 4, 8, 16, 64, 128 have the place 0
      for (int j = 3; j < 6; j++) begin
        if (sw_pi[j] - next[j] < 1 << log_size[j]) post(j, 1);
        db_wait();
      end
      take(3 + i % 3);
      while (busy) begin
        tick();
        if (!db_valid && $urandom() % 3 == 0) begin
          k = 3 + int'($urandom() % 3);
          ring_db(k, sw_pi[k]);
        end
      end
      if (last_lat > 1500) $fatal(1, "take after %0d cycles", last_lat);
      db_wait();
      settle();
    end
    stall = 20;
    u_ctx.stall = 20;

    // ---- events are taken slowly: what raises one waits for room, none is lost ----
    settle();
    slow_ev = 1;
    for (int i = 0; i < 4 * NS; i++) if (strict[i % NS]) begin
      command(SrqCmdLimit, i % NS, 16'hffff);
      n_slow++;
    end
    slow_ev = 0;
    settle();
    if (n_slow < 24) $fatal(1, "%0d limits are fewer than the queue of events holds", n_slow);
    for (int i = 0; i < NS; i++) if (exp_lim[i] != 0) $fatal(1, "SRQ %0d: %0d limits were not told", srqns[i], exp_lim[i]);

    // ---- context memory refuses ----
    for (int j = 4; j < 8; j++) begin
      settle();
      push_out(j);
      settle();
      w_bad_db = n_bad_db;
      refused = j;
      u_ctx.err_lo = CtxBase + 64 * 64'(srqns[j]);
      u_ctx.err_hi = u_ctx.err_lo + 64;
      command(SrqCmdQuery, j, 0);
      command(SrqCmdDestroy, j, 0);
      // a hint does no harm
      slot_we = 1; slot = 9; slot_has = 1; slot_srqn = srq_idx_t'(srqns[j]);
      tick();
      slot_we = 0; hint_valid = 1; hint_slot = 9;
      tick();
      hint_valid = 0;
      settle();
      if (j % 2 == 0) begin
        take(j);
        take_wait();
      end else begin
        exp_fatal[j]++;
        ring_db(j, sw_pi[j]);
        db_wait();
        settle();
        dead[j] = 1;
        w_bad_db++;
      end
      settle();
      if (exp_fatal[j] != 0) $fatal(1, "no event");
      refused = -1;
      u_ctx.err_hi = '0;
      u_ctx.err_lo = '1;
      take(j);
      take_wait();
      ring_db(j, sw_pi[j]);
      w_bad_db++;
      db_wait();
      settle();
      if (n_bad_db != w_bad_db) $fatal(1, "doorbell of an unusable SRQ");
      command(SrqCmdQuery, j, 0);
      command(SrqCmdDestroy, j, 0);
      create(j);
      do remake(j); while (log_size[j] == 0);
      settle();
      take(j);
      take_wait();
      post(j, 1);
      db_wait();
      repeat (20) tick();
      take(j);
      take_wait();
    end
    if (n_fatal != 4 || n_ev_fatal != 4) $fatal(1, "%0d unusable", n_fatal);
    // others were not touched
    for (int i = 0; i < NS; i++) if (sw_pi[i] > next[i]) begin
      take(i);
      take_wait();
    end

    // a write-back is refused: no context can be trusted
    settle();
    for (int i = 0; i < NS; i++) command(SrqCmdLimit, i, 0);
    settle();
    u_ctx.err_lo = CtxBase;
    u_ctx.err_hi = CtxBase + (64'd64 << 15);
    refused = 13;
    push_out_refused();
    u_ctx.err_hi = '0;
    u_ctx.err_lo = '1;
    all_refused = 1;
    for (int i = 0; i < NS; i++) begin
      take(i);
      take_wait();
      command(SrqCmdQuery, i, 0);
    end
    settle();
    for (int i = 0; i < NS; i++) if (exp_fatal[i] != 0 || !dead[i]) $fatal(1, "SRQ %0d: no event", i);

    $display("PASS %0d WQEs, %0d malformed, %0d times none, %0d limits, %0d times made anew, %0d hints, %0d WQEs read in %0d bursts (%0d open); contexts: %0d hits, %0d misses, %0d evicted, %0d written back, %0d cycles of stall; slowest take %0d; %0d unusable",
             n_ok, n_bad, n_none, n_lim, n_remake, n_hint, n_wqe, n_read, max_open, n_hit, n_miss, n_evict, n_wb, n_stall, slow, n_fatal);
    $finish;
  end
  // touches contexts until one that was changed had to leave
  task automatic push_out_refused();
    int w;
    bit was;
    was = 0;
    for (int i = 0; i < NS && !was; i++) begin
      cmd_op = SrqCmdQuery;
      cmd_idx = srq_idx_t'(srqns[i]);
      all_refused = 1;
      cmd_n = i;
      w = n_wb;
      ring_db(i, sw_pi[i]);
      db_wait();
      exp_fatal[i] = 1;   // or none, if it is on chip
      repeat (200) tick();
      if (n_wb != w) was = 1;
      dead[i] = exp_fatal[i] == 0;
      if (!dead[i]) exp_fatal[i] = 0;
    end
    if (!was) $fatal(1, "no write-back");
  endtask
endmodule
