// SPDX-License-Identifier: Apache-2.0
//
// cqe_writer against a memory that stalls, with fewer contexts on chip than CQs: software polls by the phase bit and compares every
// CQE, random CQs, ring sizes and consumer doorbells over many passes; CQs destroyed and made anew with the same number;
// overrun at exactly the right CQE and forever after; doorbells out of range; failing memory; drain. Events: random
// arming; each as told by a model, in order per CQ, none before its CQE is in memory. (cq_moderation_tb has the details.)
// Speed with contexts on chip; fetches at the same time; doorbells while host memory does not answer; contexts that host memory refuses
// to give and to take.

module cqe_writer_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int NumRing = 10;
  localparam bit Wide = DataW > 64;
  localparam int LogSets = Wide ? 2 : 1;
  localparam int LogWays = Wide ? 2 : 1;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  logic [63:0] now = 64'hfff0;
  always @(posedge clk) now <= now + 1;

  logic in_valid = 0, in_ready, db_valid = 0, db_ready, cmd_valid = 0, cmd_ready, cmd_rsp_valid;
  cqe_ev_t ev = '0;
  logic [23:0] db_cqn = '0, db_ci = '0;
  cq_cmd_e cmd_op = CqCmdQuery;
  cq_idx_t cmd_idx = '0;
  logic [63:6] cmd_addr = '0;
  logic [3:0] cmd_log_size = '0;
  logic [7:0] cmd_eqn = '0;
  cq_ctx_t cmd_rsp;
  cq_arm_t db_arm = '0;
  cq_mod_t cmd_mod = '0;
  logic comp_valid, comp_ready = 0, ovr_valid, ovr_ready = 0, wake_valid, ready, cmd_err, ev_fatal;
  localparam logic [63:0] CtxBase = 64'h7_0000_1000;
  ctx_mem_t ctx_mem = '{on: 1'b1, base: CtxBase[63:6], log_num: 5'd15};
  ctx_ev_t ev_ctx;
  comp_ev_t comp;
  async_ev_t ovr;
  logic [63:0] wake;
  logic aw_valid, aw_ready, w_valid, w_ready, w_last, b_valid;
  logic [63:0] aw_addr;
  logic [7:0] aw_len;
  logic [DataW-1:0] w_data;
  logic [DataW/8-1:0] w_strb;
  logic b_err, drain = 0, drain_done, idle;
  logic ev_cqe, ev_lost, ev_overrun, ev_bad_db, ev_axi_err, ev_last_wqe;
  logic [1:0] ev_error, ev_flush;
  qpn_t last_qp;
  logic last_drained;

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

  cqe_writer #(.DataW(DataW), .ClkPs(4000), .LogSets(LogSets), .LogWays(LogWays)) dut (
    .clk_i(clk), .rst_ni(rst_n), .time_i(now), .ready_o(ready), .mem_i(ctx_mem),
    .ctx_ar_valid_o(car_valid), .ctx_ar_ready_i(car_ready), .ctx_ar_addr_o(car_addr), .ctx_ar_len_o(car_len),
    .ctx_r_valid_i(cr_valid), .ctx_r_data_i(cr_data), .ctx_r_last_i(cr_last), .ctx_r_err_i(cr_resp[1]),
    .ctx_aw_valid_o(caw_valid), .ctx_aw_ready_i(caw_ready), .ctx_aw_addr_o(caw_addr), .ctx_aw_len_o(caw_len),
    .ctx_w_valid_o(cw_valid), .ctx_w_ready_i(cw_ready), .ctx_w_data_o(cw_data), .ctx_w_strb_o(cw_strb), .ctx_w_last_o(cw_last),
    .ctx_b_valid_i(cb_valid), .ctx_b_err_i(cb_resp[1]), .ev_fatal_o(ev_fatal), .ev_ctx_o(ev_ctx), .cmd_rsp_err_o(cmd_err), .in_valid_i(in_valid), .in_ready_o(in_ready), .in_i(ev), .in_qpn_i(16'h300 ^ {8'd0, ev.qp}),
    .db_valid_i(db_valid), .db_ready_o(db_ready), .db_cqn_i(db_cqn), .db_ci_i(db_ci), .db_arm_i(db_arm),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_op_i(cmd_op), .cmd_idx_i(cmd_idx),
    .cmd_addr_i(cmd_addr), .cmd_log_size_i(cmd_log_size), .cmd_eqn_i(cmd_eqn), .cmd_mod_i(cmd_mod),
    .comp_valid_o(comp_valid), .comp_ready_i(comp_ready), .comp_o(comp), .cqerr_valid_o(ovr_valid),
    .cqerr_ready_i(ovr_ready), .cqerr_o(ovr), .wake_valid_o(wake_valid), .wake_o(wake),
    .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_o(cmd_rsp),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb),
    .w_last_o(w_last), .b_valid_i(b_valid), .b_err_i(b_err),
    .drain_i(drain), .drain_done_o(drain_done),
    .ev_cqe_o(ev_cqe), .ev_lost_o(ev_lost), .ev_overrun_o(ev_overrun), .ev_error_o(ev_error),
    .ev_flush_o(ev_flush), .ev_bad_db_o(ev_bad_db), .ev_axi_err_o(ev_axi_err),
    .last_valid_o(ev_last_wqe), .last_ready_i(1'b1), .last_qpn_o(last_qp), .last_drained_o(last_drained), .idle_o(idle));
  axi_wr_mem #(.DataW(DataW)) u_wr (
    .clk_i(clk), .rst_ni(rst_n), .aw_valid_i(aw_valid), .aw_ready_o(aw_ready), .aw_addr_i(aw_addr),
    .aw_len_i(aw_len), .w_valid_i(w_valid), .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb),
    .w_last_i(w_last), .b_valid_o(b_valid), .b_err_o(b_err));

  // ---- rings ---------------------------------------------------------------------------------------------
  logic [63:0] base[NumRing];
  int log_size[NumRing], cqn[NumRing];
  int sent[NumRing], seen[NumRing], rung[NumRing];   // CQEs made, read by software, given back
  // expected CQEs, one queue with the ring's number
  int q_ring[$];
  cqe_ev_t q_ev[$];
  int n_cqe = 0, n_lost = 0, n_overrun = 0, n_bad = 0, n_axi = 0;
  int n_last = 0, want_last = 0;
  int told_after[$];       // CQEs before it
  logic [QpnW:0] told[$];  // events: QP, drained
  int at;
  // of sends, of receives
  int n_error[2], n_flush[2], w_error[2], w_flush[2];
  rnic_regs_pkg::cqe_t c, w;
  logic [63:0] last_time[NumRing];
  logic in_acc = 0, db_acc = 0;

  always @(posedge clk) if (rst_n) begin
    in_acc = in_valid && in_ready;
    db_acc = db_valid && db_ready;
    if (ev_cqe) n_cqe++;
    if (ev_lost) n_lost++;
    if (ev_overrun) n_overrun++;
    for (int i = 0; i < 2; i++) begin
      n_error[i] += int'(ev_error[i]);
      n_flush[i] += int'(ev_flush[i]);
    end
    if (ev_bad_db) n_bad++;
    if (ev_axi_err) n_axi++;
    if (ev_last_wqe) begin
      n_last++;
      if (n_acked < told_after[0]) $fatal(1, "event before %0d CQEs are in memory", told_after[0] - n_acked);
      void'(told_after.pop_front());
      if (told.size() == 0 || told[0] != {last_qp, last_drained}) $fatal(1, "event of QP %h, drained %b", last_qp, last_drained);
      void'(told.pop_front());
    end
  end

  function automatic cqe_ev_t rand_ev(input int r);
    cqe_ev_t e;
    e.cqn = 16'(cqn[r]);
    e.index = 16'($urandom());
    e.opcode = $urandom() % 2 == 0 ? 8'(128 + $urandom() % 2) : 8'($urandom());
    case ($urandom() % 4)
      0: e.status = 8'd5;
      1: e.status = 8'd10;
      default: e.status = 8'd0;
    endcase
    e.qp = 8'($urandom());
    e.syndrome = 8'($urandom());
    e.byte_len = $urandom();
    e.imm = $urandom();
    e.src_qp = 24'($urandom());
    {e.with_imm, e.with_inv, e.with_grh} = 3'($urandom());
    e.solicited = ($urandom() % 8) == 0;
    e.last_wqe = 0;
    e.drained = 0;
    return e;
  endfunction

  int db_ring = 0, db_to = 0;
  int r, total, waits, bad_before, prev, n_anew = 0, made[NumRing], t, took;

  // ---- events: a model of arming; what an event was raised by, and how many CQEs were begun before ------------
  localparam int Cqs = 65536;
  cq_arm_t model_arm[Cqs];
  int model_ci[Cqs], model_pi[Cqs], model_sol[Cqs];   // sol: number of the newest solicited or failed CQE, plus 1
  int n_comp[Cqs], n_comps = 0, n_ovr = 0, n_fatal = 0, ring_n[Cqs];
  int due_cqn[$], due_begun[$];
  int n_begun = 0, n_acked = 0, n_hit = 0, n_miss = 0, n_evict = 0, n_wb = 0, n_stall = 0, n_rd_err = 0, n_wr_err = 0, n_car = 0;
  int mc;
  logic sol;
  // bounds in variables: Verilator unrolls loops with constant ones
  int n65536 = 65536, n40 = 40, n800 = 800, n200 = 200, n100 = 100, n20 = 20, n12 = 12, n8 = 8, n4 = 4, rings = NumRing;
  initial for (int i = 0; i < n65536; i++) begin
    model_arm[i] = '0;
    model_ci[i] = 0;
    model_pi[i] = 0;
    model_sol[i] = 0;
    n_comp[i] = 0;
    ring_n[i] = -1;
  end
  always @(negedge clk) begin
    comp_ready = ($urandom() % 4) != 0;
    ovr_ready = ($urandom() % 4) == 0;
  end
  task automatic model_event(input int n);
    due_cqn.push_back(n);
    due_begun.push_back(n_begun);
    model_arm[n] = '0;
  endtask
  logic [24:0] last_due;
  always @(posedge clk) if (rst_n) begin
    n_hit += int'(ev_ctx.hit); n_miss += int'(ev_ctx.miss); n_evict += int'(ev_ctx.evict); n_wb += int'(ev_ctx.writeback);
    n_stall += int'(ev_ctx.stall); n_rd_err += int'(ev_ctx.rd_err); n_wr_err += int'(ev_ctx.wr_err);
    n_car += int'(car_valid && car_ready);
    n_acked += int'(b_valid);
    if (ovr_valid && ovr_ready) begin
      if (ovr.ev_type == 8'd17) n_ovr++;
      else if (ovr.ev_type == 8'd23) n_fatal++;
      else $fatal(1, "event %h", ovr);
      if (ovr.detail != 0) $fatal(1, "event %h", ovr);
      if (ovr.ev_type == 8'd17 && ring_n[ovr.object[15:0]] >= 0 && !in_memory(ring_n[ovr.object[15:0]], model_pi[ovr.object[15:0]] - 1))
        $fatal(1, "overrun event before its CQE");
    end
    if (comp_valid && comp_ready) begin
      mc = int'(comp.cqn);
      n_comp[mc]++;
      n_comps++;
      if (comp.eqn != 5'((mc + 3) % 32)) $fatal(1, "event of CQ %0d to EQ %0d", mc, comp.eqn);
      if (due_cqn.size() == 0 || due_cqn[0] != mc) $fatal(1, "event of CQ %0d, which is not due", mc);
      if (n_acked < due_begun[0]) $fatal(1, "event of CQ %0d before its CQE", mc);
      void'(due_cqn.pop_front());
      void'(due_begun.pop_front());
    end
    if (dut.leave && dut.cqe_write) begin  // not those that are lost
      mc = int'(dut.cqn);
      model_pi[mc]++;
      n_begun++;
      sol = dut.job.ev.solicited || dut.job.ev.status != 0 || dut.last_room;
      if (sol) model_sol[mc] = model_pi[mc];
      if (model_arm[mc].any || (model_arm[mc].solicited && sol)) model_event(mc);
    end
    // when it takes effect
    if (dut.db_end && dut.db_good) begin
      mc = int'(dut.cqn);
      model_ci[mc] += int'(24'(dut.job.ci - 24'(model_ci[mc])));
      if (mc != 128 && dut.job.arm != 0) begin
        model_arm[mc] = dut.job.arm.any || model_arm[mc].any ? 2'b10 : 2'b01;
        if (model_arm[mc].any ? model_pi[mc] > model_ci[mc] : model_sol[mc] > model_ci[mc]) model_event(mc);
      end
    end
    if (dut.cmd_act && dut.leave && dut.ok && dut.cmd_op_q inside {CqCmdCreate, CqCmdDestroy}) model_arm[int'(dut.cqn)] = '0;
  end
  function automatic logic in_memory(input int r, input int n);
    rnic_regs_pkg::cqe_t e;
    if (n < 0) return 0;
    e = slot(r, n);
    return e.phase == (((n >> log_size[r]) & 1) == 0);
  endfunction
  task automatic check_armed(input int n);
    if (model_arm[n].any && model_pi[n] > model_ci[n]) $fatal(1, "CQ %0d: event missing", n);
    if (model_arm[n].solicited && model_sol[n] > model_ci[n]) $fatal(1, "CQ %0d: solicited event missing", n);
  endtask
  // software looks at one ring: 1 when a CQE was there
  function automatic logic [255:0] slot(input int r, input int n);
    logic [255:0] v;
    for (int i = 0; i < 32; i++)
      v[8*i+:8] = u_wr.u_mem.get(base[r] + 64'(32 * (n % (1 << log_size[r]))) + 64'(i));
    return v;
  endfunction

  int poll_ring;
  logic poll_hit, expect_overrun;
  task automatic poll();
    c = slot(poll_ring, seen[poll_ring]);
    poll_hit = c.phase == (((seen[poll_ring] >> log_size[poll_ring]) & 1) == 0);
    if (poll_hit) begin
      at = -1;
      for (int k = q_ring.size() - 1; k >= 0; k--) if (q_ring[k] == poll_ring) at = k;
      if (at < 0) $fatal(1, "CQE nobody made in ring %0d", poll_ring);
      w = '0;
      w.index = q_ev[at].index;
      w.opcode = q_ev[at].opcode;
      w.status = expect_overrun ? 8'd128 : q_ev[at].status;
      w.qpn = 24'h300 ^ 24'(q_ev[at].qp);
      w.syndrome = q_ev[at].syndrome;
      w.byte_len = q_ev[at].byte_len;
      w.imm = q_ev[at].imm;
      w.src_qp = q_ev[at].src_qp;
      w.with_imm = q_ev[at].with_imm;
      w.with_inv = q_ev[at].with_inv;
      w.with_grh = q_ev[at].with_grh;
      w.phase = c.phase;
      w.timestamp = c.timestamp;
      if (c != w) $fatal(1, "ring %0d CQE %0d:\n got %h\nwant %h", poll_ring, seen[poll_ring], c, w);
      if (c.timestamp < last_time[poll_ring] || c.timestamp > now) $fatal(1, "timestamp %h", c.timestamp);
      last_time[poll_ring] = c.timestamp;
      q_ring.delete(at);
      q_ev.delete(at);
      seen[poll_ring]++;
    end
  endtask

  task automatic command(input cq_cmd_e op, input int n, input logic [63:0] addr, input int ls);
    cmd_valid = 1;
    cmd_op = op;
    cmd_idx = 16'(n);
    cmd_addr = addr[63:6];
    cmd_log_size = 4'(ls);
    cmd_eqn = n == 128 ? NoEq : 8'((n + 3) % 32);
    do @(posedge clk); while (!cmd_ready);
    @(negedge clk);
    cmd_valid = 0;
    while (!cmd_rsp_valid) @(negedge clk);
  endtask

  task automatic quiet();
    waits = 0;
    repeat (3) @(negedge clk);
    while (!idle && waits < 100000) begin
      @(negedge clk);
      waits++;
    end
    if (!idle) $fatal(1, "never idle");
    repeat (3) @(negedge clk);
  endtask
  // other contexts push out those that are on chip
  task automatic evict();
    for (int k = 0; k < n40; k++) command(CqCmdQuery, 8000 + k, 0, 0);
  endtask
  task automatic good(input int n);
    if (cmd_err || !cmd_rsp.exists || cmd_rsp.overrun) $fatal(1, "CQ %0d: %b %h", n, cmd_err, cmd_rsp);
  endtask
  function automatic cqe_ev_t ev_of(input int n);
    cqe_ev_t e;
    e = rand_ev(0);
    e.cqn = 16'(n);
    return e;
  endfunction

  task automatic doorbell(input logic [23:0] n, input logic [23:0] ci);
    ring_db(n, ci, 2'b00);
  endtask
  task automatic ring_db(input logic [23:0] n, input logic [23:0] ci, input cq_arm_t arm);
    db_valid = 1;
    db_arm = arm;
    db_cqn = n;
    db_ci = ci;
    do @(posedge clk); while (!db_ready);
    @(negedge clk);
    db_valid = 0;
    quiet();
  endtask

  task automatic event_now(input cqe_ev_t e);
    in_valid = 1;
    ev = e;
    do @(posedge clk); while (!in_ready);
    @(negedge clk);
    in_valid = 0;
  endtask


  initial begin
    for (int i = 0; i < rings; i++) begin
      sent[i] = 0;
      made[i] = 0;
      seen[i] = 0;
      rung[i] = 0;
      last_time[i] = 0;
      base[i] = 64'h5000_0000_0000 + 64'(i) * 64'h1000_0000 + 64'(i) * 64;
      log_size[i] = i == 0 ? 1 : i == 1 ? 3 : i == 2 ? 5 : i == 3 ? 8 : 2 + i % 3;
    end
    cqn = '{0, 17, 128, 255, 256, 4096, 16384, 32767, 2, 4};
    expect_overrun = 0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    if (ready) $fatal(1, "ready at once");
    while (!ready) @(negedge clk);
    for (int i = 0; i < rings; i++) begin
      ring_n[cqn[i]] = i;
      command(CqCmdQuery, cqn[i], 0, 0);
      if (cmd_rsp.exists) $fatal(1, "CQ exists after reset");
      command(CqCmdCreate, cqn[i], base[i], log_size[i]);
    end
    // ---- random traffic, never more than the ring holds
    total = 0;
    for (int n = 0; n < 60000; n++) begin
      @(negedge clk);
      if (in_acc) in_valid = 0;
      if (db_acc) begin
        db_valid = 0;
        rung[db_ring] = db_to;
      end
      // at times a CQ is destroyed, and made anew
      r = int'($urandom() % NumRing);
      if (!in_valid && !db_valid && sent[r] == seen[r] && ($urandom() % 50) == 0) begin
        command(CqCmdDestroy, cqn[r], 0, 0);
        if (!cmd_rsp.exists || cmd_rsp.pi != 24'(sent[r]) || cmd_rsp.ci != 24'(rung[r])) $fatal(1, "destroyed %h", cmd_rsp);
        model_pi[cqn[r]] = 0;
        model_ci[cqn[r]] = 0;
        model_sol[cqn[r]] = 0;
        sent[r] = 0;
        seen[r] = 0;
        rung[r] = 0;
        if (r != 1 && r != 3) log_size[r] = 1 + int'($urandom() % 6);
        base[r] = base[r] + 64'h1_0000;
        command(CqCmdCreate, cqn[r], base[r], log_size[r]);
        if (cmd_rsp.exists) $fatal(1, "CQ exists");
        n_anew++;
        in_acc = 0;
        db_acc = 0;
      end
      if (!in_valid) begin
        r = int'($urandom() % NumRing);
        if ($urandom() % 16 == 0) begin  // an event, no CQE, whatever it says
          ev = rand_ev(r);
          ev.last_wqe = 1;
          ev.drained = 1'($urandom());
          told.push_back({16'h300 ^ {8'd0, ev.qp}, ev.drained});
          told_after.push_back(total);
          in_valid = 1;
          want_last++;
        end else if (sent[r] - rung[r] < (1 << log_size[r]) - 1 && ($urandom() % ((n / 3000) % 3 == 2 ? 40 : 3)) < 2) begin
          ev = rand_ev(r);
          in_valid = 1;
          sent[r]++;
          made[r]++;
          total++;
          q_ring.push_back(r);
          q_ev.push_back(ev);
          if (ev.status == 5) w_flush[int'(ev.opcode inside {8'd128, 8'd129})]++;
          if (ev.status == 10) w_error[int'(ev.opcode inside {8'd128, 8'd129})]++;
        end
      end
      for (int k = 0; k < 2; k++) begin
        poll_ring = int'($urandom() % NumRing);
        // software that is fast sees everything before its acknowledge, and gets few events
        if (sent[poll_ring] != seen[poll_ring] && ($urandom() % ((n / 3000) % 2 == 0 ? 1 : 30)) == 0) poll();
      end
      r = int'($urandom() % NumRing);
      if (!db_valid && rung[r] != seen[r] && ($urandom() % 4) == 0) begin
        db_valid = 1;
        db_arm = ($urandom() % 2) == 0 || cqn[r] == 128 ? 2'b00 : ($urandom() % 2) == 0 ? 2'b10 : 2'b01;
        db_cqn = 24'(cqn[r]);
        db_ring = r;   // the room is there when it is taken
        db_to = rung[r] + 1 + int'($urandom() % 32'(seen[r] - rung[r]));
        if (($urandom() % 2) == 0) db_to = seen[r];
        db_ci = 24'(db_to);
      end
    end
    while (in_valid || db_valid) begin
      @(negedge clk);
      if (in_acc) in_valid = 0;
      if (db_acc) db_valid = 0;
    end
    waits = 0;
    while (!idle && waits < 100000) begin
      @(negedge clk);
      waits++;
    end
    repeat (3) @(negedge clk);
    for (int i = 0; i < rings; i++) begin
      poll_ring = i;
      poll_hit = 1;
      while (seen[i] != sent[i] && poll_hit) poll();
      if (seen[i] != sent[i]) $fatal(1, "ring %0d: %0d of %0d CQEs", i, seen[i], sent[i]);
      doorbell(24'(cqn[i]), 24'(seen[i]));
      command(CqCmdQuery, cqn[i], 0, 0);
      if (model_arm[cqn[i]] != cmd_rsp.arm) $fatal(1, "query: armed %b", cmd_rsp.arm);
      if (!cmd_rsp.exists || cmd_rsp.overrun || cmd_rsp.pi != 24'(sent[i]) || cmd_rsp.ci != 24'(seen[i]) ||
          cmd_rsp.addr != base[i] || int'(cmd_rsp.log_size) != log_size[i] || cmd_rsp.eqn != cmd_eqn)
        $fatal(1, "query %h", cmd_rsp);
      check_armed(cqn[i]);
      if (made[i] < 200) $fatal(1, "ring %0d: only %0d CQEs", i, made[i]);
    end
    if (!idle || n_cqe != total || n_lost != 0 || n_overrun != 0 || n_bad != 0 || n_axi != 0 || n_error != w_error ||
        n_flush != w_flush || w_flush[0] < 100 || w_flush[1] < 100 || w_error[0] < 100 || w_error[1] < 100 || n_last != want_last || n_last < 1000) $fatal(1, "counts %0d %0d %0d %0d %0d", n_cqe, total, n_lost, n_overrun, n_bad);

    if (n_anew < 50 || n_hit < 1000 || n_miss < 1000 || n_evict < 1000 || n_wb < 1000 || n_stall < 1000 || n_rd_err != 0 || n_wr_err != 0)
      $fatal(1, "CQs made anew %0d, cache %0d %0d %0d %0d %0d", n_anew, n_hit, n_miss, n_evict, n_wb, n_stall);
    if (due_cqn.size() != 0) $fatal(1, "%0d events missing", due_cqn.size());
    if (n_comp[0] < 50 || n_comp[17] < 50 || n_comp[255] < 50 || n_comp[128] != 0)
      $fatal(1, "events %0d %0d %0d %0d", n_comp[0], n_comp[17], n_comp[255], n_comp[128]);
    // ---- doorbells that must change nothing
    bad_before = n_bad;
    doorbell(24'(cqn[1]), 24'(sent[1] + 1));
    doorbell(24'(cqn[1]), 24'(seen[1] - 1));
    doorbell(24'd18, 24'd0);
    doorbell(24'd32768, 24'd0);
    doorbell(24'(cqn[1]) | 24'h800000, 24'(seen[1]));
    if (n_bad != bad_before + 5) $fatal(1, "%0d bad doorbells", n_bad - bad_before);
    doorbell(24'(cqn[1]), 24'(seen[1]));
    if (n_bad != bad_before + 5) $fatal(1, "good doorbell refused");
    ring_db(24'd128, 24'(seen[2]), 2'b10);
    if (n_bad != bad_before + 6) $fatal(1, "arming a CQ without EQ is not told");
    model_arm[128] = '0;
    ring_db(24'(cqn[1]), 24'(seen[1]), 2'b10);

    // ---- overrun: 7 fit into a ring of 8, the last place gets the mark, the rest is lost
    for (int i = 0; i < n12; i++) begin
      ev = rand_ev(1);
      if (i < 8) begin
        q_ring.push_back(1);
        q_ev.push_back(ev);
        sent[1]++;
      end
      event_now(ev);
    end
    repeat (300) @(negedge clk);
    if (n_ovr != 1 || model_arm[cqn[1]] != 0) $fatal(1, "%0d overrun events", n_ovr);
    if (n_overrun != 1 || n_lost != 5) $fatal(1, "overrun %0d, lost %0d", n_overrun, n_lost);
    poll_ring = 1;
    for (int i = 0; i < n8; i++) begin
      expect_overrun = i == 7;
      poll();
      if (!poll_hit) $fatal(1, "CQE %0d of the full ring missing", i);
    end
    expect_overrun = 0;
    poll();
    if (poll_hit) $fatal(1, "CQE beyond the full ring");
    doorbell(24'(cqn[1]), 24'(seen[1]));
    event_now(rand_ev(1));
    repeat (100) @(negedge clk);
    if (n_lost != 6) $fatal(1, "CQ in overrun took a CQE");
    command(CqCmdQuery, cqn[1], 0, 0);
    if (!cmd_rsp.overrun) $fatal(1, "overrun not shown");
    // destroyed, then created anew: works again, phase 1 first
    ring_db(24'(cqn[1]), 24'(seen[1]), 2'b10);
    command(CqCmdDestroy, cqn[1], 0, 0);
    model_arm[cqn[1]] = '0;
    prev = n_comps;
    event_now(rand_ev(1));
    repeat (100) @(negedge clk);
    if (n_lost != 7) $fatal(1, "CQE of a CQ that does not exist");
    for (int i = 0; i < 256; i++) u_wr.u_mem.mem[base[1] + 64'(i)] = 0;
    if (n_comps != prev) $fatal(1, "event of a destroyed CQ");
    command(CqCmdCreate, cqn[1], base[1], 3);
    model_pi[cqn[1]] = 0;
    model_ci[cqn[1]] = 0;
    model_sol[cqn[1]] = 0;
    if (cmd_rsp.arm != 0) $fatal(1, "armed");
    sent[1] = 1;
    seen[1] = 0;
    ev = rand_ev(1);
    q_ring.push_back(1);
    q_ev.push_back(ev);
    event_now(ev);
    repeat (100) @(negedge clk);
    poll();
    if (!poll_hit) $fatal(1, "CQ created anew does not work");

    ring_n[cqn[2]] = -1;
    // ---- memory that refuses, memory that is slow: drain waits for it
    u_wr.u_mem.err_lo = base[2];
    u_wr.u_mem.err_hi = base[2] + 1024;
    event_now(rand_ev(2));
    repeat (100) @(negedge clk);
    if (n_axi != 1) $fatal(1, "write error not told");
    u_wr.u_mem.err_lo = '1;
    u_wr.u_mem.err_hi = '0;
    u_wr.u_mem.freeze_w = 1;
    event_now(rand_ev(2));
    repeat (20) @(negedge clk);
    if (idle) $fatal(1, "idle with a write on its way");
    drain = 1;
    repeat (100) @(negedge clk);
    if (drain_done) $fatal(1, "drain done too early");
    event_now(rand_ev(2));
    u_wr.u_mem.freeze_w = 0;
    waits = 0;
    while (!drain_done && waits < 1000) begin
      @(negedge clk);
      waits++;
    end
    if (!drain_done) $fatal(1, "drain never ends");
    u_wr.u_mem.freeze_w = 1;
    event_now(rand_ev(2));
    repeat (100) @(negedge clk);
    if (!drain_done) $fatal(1, "drain waits for new work");
    drain = 0;
    u_wr.u_mem.freeze_w = 0;
    repeat (100) @(negedge clk);
    if (drain_done || !idle) $fatal(1, "end");

    // ---- contexts on chip: a CQE every 2 cycles, if the bus takes them
    u_wr.u_mem.stall = 0;
    u_ctx.stall = 0;
    for (int k = 0; k < n4; k++) command(CqCmdCreate, 1000 + k, 64'h6000_0000_0000 + 64'(k) * 64'h10_0000, 8);
    for (int k = 0; k < n40; k++) event_now(ev_of(1000 + k % 4));
    repeat (200) @(negedge clk);
    t = int'(now);
    in_valid = 1;
    for (int k = 0; k < n800; k++) begin
      ev = ev_of(1000 + k % (Wide ? 4 : 2));
      if (k < 200) ev.cqn = 16'd1000;
      do @(posedge clk); while (!in_ready);
      @(negedge clk);
      if (k % 100 == 99) for (int i = 0; i < n4; i++) begin  // room
        db_valid = 1;
        db_arm = '0;
        db_cqn = 24'(1000 + i);
        db_ci = 24'(model_pi[1000 + i]);
        in_valid = 0;
        do @(posedge clk); while (!db_ready);
        @(negedge clk);
        db_valid = 0;
        in_valid = k != 799;
      end
    end
    in_valid = 0;
    took = int'(now) - t;
    if (took > (Wide ? 2 : 4) * (800 + 32) + 80) $fatal(1, "800 CQEs in %0d cycles", took);
    quiet();
    // ---- misses of several CQs at the same time; doorbells do not wait
    for (int k = 0; k < n20; k++) command(CqCmdCreate, 2000 + k, 64'h6100_0000_0000 + 64'(k) * 64'h10_0000, 4);
    evict();
    quiet();
    u_ctx.freeze_r = 1;
    prev = n_car;
    for (int k = 0; k < n8; k++) event_now(ev_of(2000 + k));
    repeat (300) @(negedge clk);
    if (n_car - prev != (Wide ? 8 : 4)) $fatal(1, "%0d fetches at the same time", n_car - prev);
    bad_before = n_bad;
    for (int k = 0; k < n100; k++) begin
      db_valid = 1;
      db_cqn = 24'(2000 + k % 20);
      db_ci = 24'd0;
      db_arm = 2'b10;
      for (t = 0; t < 6 && db_valid; t++) begin
        @(posedge clk);
        if (db_ready) begin
          @(negedge clk);
          db_valid = 0;
        end
      end
      if (db_valid) $fatal(1, "a doorbell waits for host memory");
    end
    repeat (100) @(negedge clk);
    if (idle) $fatal(1, "idle with fetches under way");
    prev = n_comps;
    u_ctx.freeze_r = 0;
    quiet();
    if (n_bad != bad_before || n_comps < prev + 8 || due_cqn.size() != 0) $fatal(1, "%0d bad, %0d events", n_bad - bad_before, n_comps - prev);

    // ---- destroyed while its context is fetched for a CQE; the new one with the same number
    evict();
    u_ctx.freeze_r = 1;
    event_now(ev_of(2011));
    repeat (20) @(negedge clk);
    cmd_valid = 1;
    cmd_op = CqCmdDestroy;
    cmd_idx = 16'd2011;
    for (t = 0; t < 100 && cmd_valid; t++) begin
      @(posedge clk);
      if (cmd_ready) begin
        @(negedge clk);
        cmd_valid = 0;
      end
    end
    if (cmd_rsp_valid) $fatal(1, "answered without the context");
    u_ctx.freeze_r = 0;
    while (!cmd_rsp_valid) @(negedge clk);
    good(2011);
    if (cmd_rsp.pi != 1) $fatal(1, "CQE before DESTROY: %h", cmd_rsp);
    model_pi[2011] = 0;
    model_ci[2011] = 0;
    model_sol[2011] = 0;
    evict();
    prev = n_lost;
    event_now(ev_of(2011));
    quiet();
    if (n_lost != prev + 1) $fatal(1, "CQE of a CQ that is gone");
    command(CqCmdCreate, 2011, 64'h6200_0000_0000, 4);
    if (cmd_rsp.exists) $fatal(1, "exists");
    evict();
    command(CqCmdQuery, 2011, 0, 0);
    good(2011);
    if (cmd_rsp.pi != 0 || cmd_rsp.arm != 0 || cmd_rsp.addr != 64'h6200_0000_0000) $fatal(1, "old context: %h", cmd_rsp);

    // ---- host memory refuses a context: of a CQE, of a doorbell, of a timer, of commands
    evict();
    u_ctx.err_lo = CtxBase + 64 * 2012;
    u_ctx.err_hi = CtxBase + 64 * 2013;
    prev = n_lost;
    event_now(ev_of(2012));
    event_now(ev_of(2013));
    event_now(ev_of(2012));
    quiet();
    if (n_fatal != 1 || n_lost != prev + 2) $fatal(1, "%0d fatal, %0d lost", n_fatal, n_lost - prev);
    command(CqCmdQuery, 2012, 0, 0);
    if (!cmd_err) $fatal(1, "query without context");
    command(CqCmdDestroy, 2012, 0, 0);
    if (!cmd_err) $fatal(1, "destroyed without context");
    u_ctx.err_lo = '1;
    u_ctx.err_hi = '0;
    command(CqCmdQuery, 2012, 0, 0);
    if (cmd_err || !cmd_rsp.exists || !cmd_rsp.overrun) $fatal(1, "unusable CQ: %h", cmd_rsp);
    event_now(ev_of(2012));
    bad_before = n_bad;
    doorbell(24'd2012, 24'd0);
    if (n_fatal != 1 || n_lost != prev + 3 || n_bad != bad_before + 1) $fatal(1, "unusable CQ works");
    command(CqCmdDestroy, 2012, 0, 0);
    if (cmd_err) $fatal(1, "destroy");
    command(CqCmdCreate, 2012, 64'h6200_0100_0000, 4);
    model_pi[2012] = 0;
    model_ci[2012] = 0;
    model_sol[2012] = 0;
    model_arm[2012] = '0;
    event_now(ev_of(2012));
    command(CqCmdQuery, 2012, 0, 0);
    good(2012);
    if (cmd_rsp.pi != 1) $fatal(1, "CQ made anew: %h", cmd_rsp);
    evict();
    u_ctx.err_lo = CtxBase + 64 * 2014;
    u_ctx.err_hi = CtxBase + 64 * 2015;
    doorbell(24'd2014, 24'd0);
    if (n_fatal != 2) $fatal(1, "doorbell of a CQ without context");
    u_ctx.err_lo = '1;
    u_ctx.err_hi = '0;
    cmd_mod = '{count: 0, period: 3};
    command(CqCmdCreate, 2025, 64'h6200_0200_0000, 4);
    cmd_mod = '0;
    db_valid = 1;
    db_arm = 2'b10;
    db_cqn = 24'd2025;
    db_ci = 0;
    do @(posedge clk); while (!db_ready);
    @(negedge clk);
    db_valid = 0;
    repeat (100) @(negedge clk);
    event_now(ev_of(2025));
    repeat (100) @(negedge clk);
    due_cqn.delete();   // the model has no moderation
    due_begun.delete();
    evict();
    u_ctx.err_lo = CtxBase + 64 * 2025;
    u_ctx.err_hi = CtxBase + 64 * 2026;
    prev = n_comps;
    repeat (900) @(negedge clk);
    if (n_fatal != 3 || n_comps != prev) $fatal(1, "timer of a CQ without context: %0d, %0d events", n_fatal, n_comps - prev);
    command(CqCmdCreate, 2025, 64'h6200_0300_0000, 4);
    if (!cmd_err) $fatal(1, "made without context");
    u_ctx.err_lo = '1;
    u_ctx.err_hi = '0;

    // ---- host memory does not take a context: from then on it may give what is old
    event_now(ev_of(2016));
    quiet();
    u_ctx.err_lo = CtxBase + 64 * 2016;
    u_ctx.err_hi = CtxBase + 64 * 2017;
    evict();
    quiet();
    u_ctx.err_lo = '1;
    u_ctx.err_hi = '0;
    if (n_wr_err == 0) $fatal(1, "no refused write-back");
    prev = n_fatal;
    event_now(ev_of(2016));
    event_now(ev_of(2017));
    quiet();
    if (n_fatal != prev + 2) $fatal(1, "contexts after a lost write-back");
    command(CqCmdQuery, 2018, 0, 0);
    if (!cmd_err) $fatal(1, "query after a lost write-back");
    $display("PASS %0d CQEs, %0d events, %0d contexts fetched; 800 CQEs in %0d cycles", total, n_comps, n_miss, took);
    $finish;
  end
endmodule
