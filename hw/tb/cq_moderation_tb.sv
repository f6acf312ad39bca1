// SPDX-License-Identifier: Apache-2.0
//
// Completion events of cqe_writer against a model. Random CQEs, acknowledges, arming and moderation: an event only for a CQ that is
// armed, with a CQE that it is armed for, behind the acknowledges of the CQEs before, one per arming, none missing. Arming
// at every distance from the acknowledge of a CQE. Solicited. Moderation by count and by time, to the cycle; timers of many CQs at once; the
// wake-up time; drain. The bench gives the acknowledges. (cqe_writer_tb has CQEs, and contexts that come and go.)

module cq_moderation_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int Us = 250;     // cycles

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  logic [63:0] now = 64'h7fff_0000, jump = '0;
  always @(posedge clk) now <= jump != 0 ? jump : now + 1;

  logic cqe_valid = 0, cqe_ready, cqe_sol = 0, cqe_done = 0;
  cq_idx_t cqe_cqn = '0, db_cqn = '0, cmd_idx = '0;
  cqe_ev_t ev;
  always_comb begin
    ev = '0;
    ev.cqn = cqe_cqn;
    ev.solicited = cqe_sol;
  end
  logic db_valid = 0, db_ready, cmd_valid = 0, cmd_ready, cmd_rsp_valid, cmd_err;
  logic [23:0] db_ci = '0;
  cq_arm_t db_arm = '0;
  cq_cmd_e cmd_op = CqCmdQuery;
  logic [7:0] cmd_eqn = '0;
  cq_mod_t cmd_mod = '0;
  cq_ctx_t rsp;
  logic [63:0] ring;
  assign ring = {28'd5, cmd_idx, 20'd0};
  logic comp_valid, comp_ready = 1, err_valid, wake_valid, drain = 0, drain_done, idle, ready;
  comp_ev_t comp;
  async_ev_t err;
  logic [63:0] wake;
  logic ev_cqe, ev_lost, ev_overrun, ev_fatal, ev_bad_db, ev_axi_err, last_valid, last_drained;
  logic [1:0] ev_error, ev_flush;
  ctx_ev_t ev_ctx;
  qpn_t last_qpn;

  logic aw_valid, w_valid, w_last;
  logic [63:0] aw_addr;
  logic [7:0] aw_len;
  logic [DataW-1:0] w_data;
  logic [DataW/8-1:0] w_strb;
  localparam logic [63:0] CtxBase = 64'h7_0000_1000;
  logic car_valid, car_ready, cr_valid, cr_last, caw_valid, caw_ready, cw_valid, cw_ready, cw_last, cb_valid;
  logic [63:0] car_addr, caw_addr;
  logic [7:0] car_len, caw_len;
  logic [DataW-1:0] cr_data, cw_data;
  logic [DataW/8-1:0] cw_strb;
  logic [1:0] cr_resp, cb_resp;
  logic [3:0] cr_id, cb_id;
  ctx_mem_t ctx_mem = '{on: 1'b1, base: CtxBase[63:6], log_num: 5'd16};
  axi_mem #(.DataW(DataW), .NumIds(1)) u_ctx (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(4'd0), .awaddr_i(caw_addr), .awlen_i(caw_len), .awsize_i(3'($clog2(DataW/8))), .awburst_i(2'b01), .awvalid_i(caw_valid), .awready_o(caw_ready),
    .wdata_i(cw_data), .wstrb_i(cw_strb), .wlast_i(cw_last), .wvalid_i(cw_valid), .wready_o(cw_ready),
    .bid_o(cb_id), .bresp_o(cb_resp), .bvalid_o(cb_valid), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(car_addr), .arlen_i(car_len), .arsize_i(3'($clog2(DataW/8))), .arburst_i(2'b01), .arvalid_i(car_valid), .arready_o(car_ready),
    .rid_o(cr_id), .rdata_o(cr_data), .rresp_o(cr_resp), .rlast_o(cr_last), .rvalid_o(cr_valid), .rready_i(1'b1));
  cqe_writer #(.DataW(DataW), .ClkPs(4000)) dut (
    .clk_i(clk), .rst_ni(rst_n), .time_i(now), .ready_o(ready), .mem_i(ctx_mem),
    .in_valid_i(cqe_valid), .in_ready_o(cqe_ready), .in_i(ev), .in_qpn_i(16'd7),
    .db_valid_i(db_valid), .db_ready_o(db_ready), .db_cqn_i(24'(db_cqn)), .db_ci_i(db_ci), .db_arm_i(db_arm),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_op_i(cmd_op), .cmd_idx_i(cmd_idx), .cmd_addr_i(ring[63:6]),
    .cmd_log_size_i(4'd15), .cmd_eqn_i(cmd_eqn), .cmd_mod_i(cmd_mod),
    .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_err_o(cmd_err), .cmd_rsp_o(rsp),
    .aw_valid_o(aw_valid), .aw_ready_i(1'b1), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(1'b1), .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last),
    .b_valid_i(cqe_done), .b_err_i(1'b0),
    .ctx_ar_valid_o(car_valid), .ctx_ar_ready_i(car_ready), .ctx_ar_addr_o(car_addr), .ctx_ar_len_o(car_len),
    .ctx_r_valid_i(cr_valid), .ctx_r_data_i(cr_data), .ctx_r_last_i(cr_last), .ctx_r_err_i(cr_resp[1]),
    .ctx_aw_valid_o(caw_valid), .ctx_aw_ready_i(caw_ready), .ctx_aw_addr_o(caw_addr), .ctx_aw_len_o(caw_len),
    .ctx_w_valid_o(cw_valid), .ctx_w_ready_i(cw_ready), .ctx_w_data_o(cw_data), .ctx_w_strb_o(cw_strb), .ctx_w_last_o(cw_last),
    .ctx_b_valid_i(cb_valid), .ctx_b_err_i(cb_resp[1]),
    .comp_valid_o(comp_valid), .comp_ready_i(comp_ready), .comp_o(comp),
    .cqerr_valid_o(err_valid), .cqerr_ready_i(1'b1), .cqerr_o(err),
    .wake_valid_o(wake_valid), .wake_o(wake), .drain_i(drain), .drain_done_o(drain_done),
    .ev_cqe_o(ev_cqe), .ev_lost_o(ev_lost), .ev_overrun_o(ev_overrun), .ev_fatal_o(ev_fatal), .ev_error_o(ev_error), .ev_flush_o(ev_flush),
    .ev_bad_db_o(ev_bad_db), .ev_axi_err_o(ev_axi_err), .ev_ctx_o(ev_ctx),
    .last_valid_o(last_valid), .last_ready_i(1'b1), .last_qpn_o(last_qpn), .last_drained_o(last_drained), .idle_o(idle));

  // ---- model -----------------------------------------------------------------------------------------------
  logic has_eq[256];
  cq_arm_t arm[256];
  int begun[256], done[256], ci[256], sol[256], n_comp[256];  // begun, acknowledged; sol: number of the newest solicited CQE
  logic earned[256];             // a CQE that it was armed for is there, or was
  int period[256], first[256];   // first: when the timer must run from, at the earliest
  int fly_cqn[$];
  int due_cqn[$], due_begun[$];  // events decided, and CQEs begun before each
  int n_comps = 0, max_fly = 0, m, n_begun = 0, n_written = 0, n_done = 0, n_in = 0;
  logic random_ready = 0, hold = 0, cqe_acc = 0, db_acc = 0;
  logic exact = 0;               // single CQEs: check the time of the event
  int max_late = 0, late;
  // bounds in variables: Verilator unrolls loops with constant ones
  int n256 = 256, n100 = 100, n100k = 100000;

  always @(negedge clk) comp_ready = !hold && (!random_ready || ($urandom() % 4) != 0);
  always @(posedge clk) if (rst_n) begin
    cqe_acc = cqe_valid && cqe_ready;
    db_acc = db_valid && db_ready;
    if (err_valid || ev_lost || ev_overrun || ev_fatal || ev_bad_db && !random_ready) $fatal(1, "CQ failed");
    if (comp_valid && comp_ready) begin
      m = int'(comp.cqn);
      n_comp[m]++;
      n_comps++;
      if (comp.eqn != 5'(m)) $fatal(1, "event of CQ %0d to EQ %0d", m, comp.eqn);
      if (due_cqn.size() == 0 || due_cqn[0] != m) $fatal(1, "event of CQ %0d, which is not due", m);
      if (n_done < due_begun[0]) $fatal(1, "event of CQ %0d before its CQE", m);
      void'(due_cqn.pop_front());
      void'(due_begun.pop_front());
      if (exact && period[m] != 0) begin
        late = int'(now) - first[m] - period[m] * Us;
        if (late < 0) $fatal(1, "event of CQ %0d: %0d cycles early", m, -late);
        if (late > max_late) max_late = late;
      end
    end
    // acknowledged: the oldest
    if (cqe_done) begin
      m = fly_cqn.pop_front();
      done[m]++;
      n_done++;
    end
    n_in += int'(cqe_acc);
    n_written += int'(w_valid && w_last);
    if (dut.leave && dut.cqe_write) begin
      m = int'(dut.cqn);
      begun[m]++;
      n_begun++;
      if (dut.job.ev.solicited) sol[m] = begun[m];
      if (arm[m].any || (arm[m].solicited && dut.job.ev.solicited)) earned[m] = 1;
      if (exact && begun[m] == ci[m] + 1) first[m] = int'(now);
      fly_cqn.push_back(m);
      if (fly_cqn.size() > max_fly) max_fly = fly_cqn.size();
      if (fly_cqn.size() > 64 + 1) $fatal(1, "too many on their way");
    end
    if (dut.db_end && dut.db_good) begin
      m = int'(dut.cqn);
      ci[m] = int'(dut.job.ci);
      if (has_eq[m] && dut.job.arm != 0) begin
        arm[m] = dut.job.arm.any || arm[m].any ? 2'b10 : 2'b01;
        earned[m] = arm[m].any ? begun[m] > ci[m] : sol[m] > ci[m];
      end
    end
    if (dut.leave && dut.fire) begin
      m = int'(dut.cqn);
      if (arm[m] == 0) $fatal(1, "event of CQ %0d, which is not armed", m);
      if (arm[m].any && arm[m].solicited) $fatal(1, "model");
      if (!earned[m]) $fatal(1, "event of CQ %0d without CQE", m);
      arm[m] = '0;
      earned[m] = 0;
      due_cqn.push_back(m);
      due_begun.push_back(n_begun);
    end
    if (dut.cmd_act && dut.leave && dut.cmd_op_q inside {CqCmdCreate, CqCmdDestroy}) begin
      m = int'(dut.cqn);
      arm[m] = '0;
      earned[m] = 0;
      if (dut.cmd_op_q == CqCmdCreate) begin
        done[m] = 0; begun[m] = 0; ci[m] = 0; sol[m] = 0;
      end
    end
  end

  // ---- one operation at a time, done by a process that the test asks ------------------------------------------
  typedef enum int {DoCreate, DoModify, DoDestroy, DoQuery, DoArm, DoCqe, DoDone, DoQuiet} do_e;
  logic go = 0;
  do_e what;
  int d_n, d_a, d_b, waits;
  always @(negedge clk) if (go) begin
    case (what)
      DoCqe: begin
        cqe_valid = 1;
        cqe_cqn = 16'(d_n);
        cqe_sol = d_a != 0;
        do @(negedge clk); while (!cqe_acc);
        cqe_valid = 0;
        while (n_begun != n_in) @(negedge clk);
      end
      DoDone: begin
        while (n_done == n_written) @(negedge clk);
        cqe_done = 1;
        @(negedge clk);
        cqe_done = 0;
      end
      DoArm: begin
        db_valid = 1;
        db_cqn = 16'(d_n);
        db_ci = 24'(d_a);
        db_arm = 2'(d_b);
        do @(negedge clk); while (!db_acc);
        db_valid = 0;
        while (!dut.db_idle || dut.any_job) @(negedge clk);  // a CQE may overtake it
      end
      DoQuiet: begin
        waits = 0;
        while (!idle && waits < 5000) begin
          @(negedge clk);
          waits++;
        end
        if (!idle) $fatal(1, "never idle");
        repeat (20) @(negedge clk);  // until the earliest timer is known
      end
      default: begin
        cmd_valid = 1;
        cmd_op = what == DoCreate ? CqCmdCreate : what == DoModify ? CqCmdModify : what == DoDestroy ? CqCmdDestroy : CqCmdQuery;
        cmd_idx = 16'(d_n);
        cmd_eqn = d_n % 4 == 3 ? NoEq : 8'(d_n % 32);
        cmd_mod = '{count: 16'(d_a), period: 16'(d_b)};
        if (what inside {DoCreate, DoModify}) period[d_n] = d_b;
        if (what == DoCreate) has_eq[d_n] = d_n % 4 != 3;
        do @(posedge clk); while (!cmd_ready);
        @(negedge clk);
        cmd_valid = 0;
        while (!cmd_rsp_valid) @(negedge clk);
        if (cmd_err) $fatal(1, "command");
      end
    endcase
    go = 0;
  end
  task automatic act(input do_e k, input int n, input int a, input int b);
    what = k;
    d_n = n;
    d_a = a;
    d_b = b;
    go = 1;
    do @(negedge clk); while (go);
  endtask

  // ---- arming at `off` cycles from the acknowledge of one CQE ---------------------------------------------------
  logic race = 0;
  int race_t, race_off, race_ci, race_arm, race_done;
  always @(negedge clk) if (race) begin
    // -40 .. 40: the doorbell is offered at race_off
    cqe_done = race_t == 0;
    if (race_t == 0 && n_done == n_written) $fatal(1, "nothing to acknowledge");
    if (race_t == race_off) begin
      db_valid = 1;
      db_cqn = 16'd40;
      db_ci = 24'(race_ci);
      db_arm = 2'(race_arm);
    end
    if (db_acc) db_valid = 0;
    race_t++;
    if (race_t == 60) race = 0;
  end

  int n, prev, t, next, n_wake = 0;
  initial begin
    for (int i = 0; i < n256; i++) begin
      has_eq[i] = 0; earned[i] = 0; arm[i] = '0; begun[i] = 0; done[i] = 0; ci[i] = 0; sol[i] = 0; n_comp[i] = 0; period[i] = 0;
      first[i] = 0;
    end
    repeat (4) @(negedge clk);
    rst_n = 1;
    while (!ready) @(negedge clk);
    repeat (20) @(negedge clk);
    if (!wake_valid || wake != '1) $fatal(1, "timer after reset");
    // ---- random: 8 CQs, 2 of them without EQ, half of them moderated
    for (int i = 16; i < 24; i++) act(DoCreate, i, i < 20 ? 0 : i - 17, i < 20 ? 0 : 1 + i % 3);
    random_ready = 1;
    for (int k = 0; k < n100k; k++) begin
      @(negedge clk);
      if (cqe_acc) cqe_valid = 0;
      if (!cqe_valid && ($urandom() % ((k / 10000) % 2 == 0 ? 3 : 40)) == 0) begin
        cqe_valid = 1;
        cqe_cqn = 16'(16 + $urandom() % 8);
        cqe_sol = ($urandom() % 6) == 0;
      end
      cqe_done = n_done < n_written && ($urandom() % ((k / 5000) % 4 == 1 ? 20 : 3)) == 0;
      if (db_acc) db_valid = 0;
      if (!db_valid && ($urandom() % 6) == 0) begin
        db_valid = 1;
        db_cqn = 16'(16 + $urandom() % 8);
        // software sees a CQE before its acknowledge, sometimes
        n = ($urandom() % 2) == 0 ? begun[db_cqn] : done[db_cqn];
        if (n < ci[db_cqn]) n = ci[db_cqn];
        n = ci[db_cqn] + int'($urandom() % 32'(n - ci[db_cqn] + 1));
        if (($urandom() % 3) != 0 && begun[db_cqn] > ci[db_cqn]) n = begun[db_cqn];
        db_ci = 24'(n);
        db_arm = 2'($urandom());
      end
    end
    while (cqe_valid || db_valid || fly_cqn.size() != 0 || n_in != n_begun) begin
      @(negedge clk);
      if (cqe_acc) cqe_valid = 0;
      if (db_acc) db_valid = 0;
      cqe_done = n_done < n_written;
    end
    cqe_done = 0;
    repeat (5 * Us) @(negedge clk);
    act(DoQuiet, 0, 0, 0);
    if (!wake_valid || wake != '1) $fatal(1, "timer runs on");
    for (int i = 16; i < 24; i++) begin
      if (arm[i].any && begun[i] > ci[i]) $fatal(1, "CQ %0d: event missing", i);
      if (arm[i].solicited && sol[i] > ci[i]) $fatal(1, "CQ %0d: solicited event missing", i);
      act(DoQuery, i, 0, 0);
      if (rsp.arm != arm[i] || int'(rsp.moderation.period) != period[i]) $fatal(1, "query CQ %0d: %b, want %b", i, rsp.arm, arm[i]);
      if (i % 4 == 3 ? n_comp[i] != 0 : n_comp[i] < 50) $fatal(1, "CQ %0d: %0d events", i, n_comp[i]);
      act(DoDestroy, i, 0, 0);
    end
    if (max_fly < 60 || due_cqn.size() != 0) $fatal(1, "%0d in flight, %0d events missing", max_fly, due_cqn.size());
    random_ready = 0;

    // ---- arming at every distance: exactly one event, then none; index told before the acknowledge: none
    act(DoCreate, 40, 0, 0);
    for (int kind = 0; kind < 4; kind++) for (race_off = -30; race_off <= 40; race_off++) begin
      // kind 0, 1: armed for any, solicited, with an index before the CQE. 2, 3: behind it.
      prev = n_comp[40];
      act(DoCqe, 40, 1, 0);
      race_ci = kind < 2 ? begun[40] - 1 : begun[40];
      race_arm = kind % 2 == 0 ? 2 : 1;
      race_t = -40;
      race = 1;
      while (race) @(negedge clk);
      act(DoQuiet, 0, 0, 0);
      if (n_comp[40] != prev + (kind < 2 ? 1 : 0)) $fatal(1, "kind %0d, armed %0d cycles behind the CQE: %0d events", kind, race_off, n_comp[40] - prev);
      act(DoCqe, 40, 1, 0);
      act(DoDone, 0, 0, 0);
      act(DoQuiet, 0, 0, 0);
      if (n_comp[40] != prev + 1) $fatal(1, "kind %0d, armed %0d cycles behind: %0d events for two", kind, race_off, n_comp[40] - prev);
    end

    // ---- solicited
    act(DoCreate, 41, 0, 0);
    act(DoArm, 41, 0, 1);
    for (int i = 0; i < 5; i++) begin
      act(DoCqe, 41, 0, 0);
      act(DoDone, 0, 0, 0);
    end
    act(DoQuiet, 0, 0, 0);
    if (n_comp[41] != 0) $fatal(1, "event for a CQE that is not solicited");
    act(DoCqe, 41, 1, 0);
    act(DoDone, 0, 0, 0);
    act(DoQuiet, 0, 0, 0);
    if (n_comp[41] != 1) $fatal(1, "no event for a solicited CQE");
    act(DoArm, 41, 5, 1);
    act(DoQuiet, 0, 0, 0);
    if (n_comp[41] != 2) $fatal(1, "no event for a solicited CQE of before");
    act(DoArm, 41, 6, 1);
    act(DoCqe, 41, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoQuiet, 0, 0, 0);
    if (n_comp[41] != 2) $fatal(1, "event for a solicited CQE that is consumed");
    act(DoArm, 41, 7, 2);
    act(DoArm, 41, 7, 1);
    act(DoCqe, 41, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoQuiet, 0, 0, 0);
    if (n_comp[41] != 3) $fatal(1, "solicited took any away");

    // ---- moderation: 4 CQEs or 4 us
    exact = 1;
    act(DoCreate, 42, 4, 4);
    act(DoArm, 42, 0, 2);
    for (int i = 0; i < 4; i++) begin
      repeat (150) @(negedge clk);
      if (n_comp[42] != 0) $fatal(1, "event after %0d CQEs", i);
      act(DoCqe, 42, 0, 0);
      if (i == 3) exact = 0;
      act(DoDone, 0, 0, 0);
    end
    act(DoQuiet, 0, 0, 0);
    if (n_comp[42] != 1) $fatal(1, "no event after 4 CQEs");
    if (!wake_valid || wake != '1) $fatal(1, "timer runs on");
    exact = 1;
    act(DoArm, 42, 4, 2);
    act(DoCqe, 42, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoQuiet, 0, 0, 0);
    repeat (10) @(negedge clk);
    if (!wake_valid || int'(wake) < first[42] + 4 * Us || int'(wake) > first[42] + 4 * Us + 4) $fatal(1, "wake");
    repeat (4 * Us - 40) @(negedge clk);
    if (n_comp[42] != 1) $fatal(1, "early");
    repeat (60) @(negedge clk);
    if (n_comp[42] != 2 || max_late > 10) $fatal(1, "%0d events, %0d cycles late", n_comp[42], max_late);
    repeat (5 * Us) @(negedge clk);
    if (n_comp[42] != 2) $fatal(1, "second event");
    exact = 0;
    // CQEs of before the arming: the period runs from it; with one more they make 4
    for (int i = 0; i < 2; i++) begin
      act(DoCqe, 42, 0, 0);
      act(DoDone, 0, 0, 0);
    end
    act(DoQuiet, 0, 0, 0);
    act(DoArm, 42, 4, 2);
    t = int'(now);
    act(DoQuiet, 0, 0, 0);
    repeat (10) @(negedge clk);
    if (!wake_valid || int'(wake) < t + 4 * Us - 4 || int'(wake) > t + 4 * Us + 20) $fatal(1, "wake %0d after the arming", int'(wake) - t);
    act(DoCqe, 42, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoQuiet, 0, 0, 0);
    if (n_comp[42] != 3) $fatal(1, "3 of before and a new one are not 4");
    // arming again behind everything stops the timer
    act(DoArm, 42, 8, 2);
    act(DoCqe, 42, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoArm, 42, 9, 2);
    act(DoQuiet, 0, 0, 0);
    if (!wake_valid || wake != '1) $fatal(1, "timer of CQEs that are consumed");
    // a change reports what is held back
    act(DoCqe, 42, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoModify, 42, 0, 65535);
    act(DoQuiet, 0, 0, 0);
    if (n_comp[42] != 4) $fatal(1, "change of moderation holds the event back");
    // time only, the longest; it may be jumped to
    act(DoArm, 42, 10, 2);
    for (int i = 0; i < n100; i++) begin
      act(DoCqe, 42, 0, 0);
      act(DoDone, 0, 0, 0);
      if (i == 0) t = int'(now);
    end
    act(DoQuiet, 0, 0, 0);
    repeat (10) @(negedge clk);
    if (!wake_valid || !idle || int'(wake) < t + 65535 * Us - 20 || int'(wake) > t + 65535 * Us + 4) $fatal(1, "wake, longest");
    jump = wake - 5;
    @(negedge clk);
    jump = '0;
    @(negedge clk);
    if (n_comp[42] != 4) $fatal(1, "early");
    repeat (40) @(negedge clk);
    if (n_comp[42] != 5) $fatal(1, "no event after the longest period");
    // solicited: others neither count nor start the timer
    act(DoModify, 42, 2, 4);
    act(DoArm, 42, done[42], 1);
    act(DoCqe, 42, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoQuiet, 0, 0, 0);
    if (!wake_valid || wake != '1) $fatal(1, "timer of CQEs that are not solicited");
    for (int i = 0; i < 2; i++) begin
      repeat (40) @(negedge clk);
      if (n_comp[42] != 5) $fatal(1, "one solicited CQE of two");
      act(DoCqe, 42, 1, 0);
      act(DoDone, 0, 0, 0);
    end
    act(DoQuiet, 0, 0, 0);
    if (n_comp[42] != 6) $fatal(1, "two solicited CQEs");
    // destroyed while its timer runs
    act(DoArm, 42, done[42], 2);
    act(DoCqe, 42, 0, 0);
    act(DoDone, 0, 0, 0);
    act(DoDestroy, 42, 0, 0);
    act(DoQuiet, 0, 0, 0);
    if (!wake_valid || wake != '1) $fatal(1, "timer of a destroyed CQ");

    // ---- timers of many CQs: none early, none more than 16 cycles per timer of a tree that fires at once, and 16, late
    exact = 1;
    max_late = 0;
    prev = n_comps;
    for (int i = 0; i < n256; i++) if (i % 4 != 3) act(DoCreate, i, 0, 20 + (i * 7) % 31);
    for (int i = 0; i < n256; i++) if (i % 4 != 3) begin
      act(DoArm, i, 0, 2);
      act(DoCqe, i, 0, 0);
      act(DoDone, 0, 0, 0);
    end
    n = 0;
    t = 0;
    while (n_comps != prev + 192 && n < 60 * Us) begin
      @(negedge clk);
      n++;
      if (wake_valid && wake <= now) $fatal(1, "wake-up time passed and still valid");
      // the wake-up time is that of the timer that is the next, and known after one look at all that run
      next = 1 << 30;  // cycles from now
      for (int i = 0; i < n256; i++)
        if (arm[i] != 0 && begun[i] > ci[i] && first[i] + period[i] * Us - int'(now) < next)
          next = first[i] + period[i] * Us - int'(now);
      t = wake_valid || next <= 0 ? 0 : t + 1;
      if (t > 2 * 192 + 8) $fatal(1, "wake-up time not known for %0d cycles", t);
      if (wake_valid && wake != '1) begin
        n_wake++;
        if (int'(wake - now) < next || int'(wake - now) > next + 4)
          $fatal(1, "wake-up in %0d cycles, the next timer fires in %0d", int'(wake - now), next);
      end
    end
    if (n_wake < 1000) $fatal(1, "wake-up time known in %0d cycles", n_wake);
    if (n_comps != prev + 192) $fatal(1, "%0d of 192 timers", n_comps - prev);
    if (max_late > 16 * 8 + 16) $fatal(1, "%0d cycles late", max_late);
    act(DoQuiet, 0, 0, 0);
    exact = 0;

    // ---- an event that nobody takes: not idle, not drained
    act(DoCreate, 44, 0, 0);
    act(DoArm, 44, 0, 2);
    hold = 1;
    act(DoCqe, 44, 0, 0);
    drain = 1;
    repeat (5) @(negedge clk);
    if (drain_done) $fatal(1, "drained before the acknowledge");
    act(DoDone, 0, 0, 0);
    repeat (20) @(negedge clk);
    if (drain_done || idle) $fatal(1, "drained with an event that nobody took");
    hold = 0;
    act(DoQuiet, 0, 0, 0);
    if (!drain_done || n_comp[44] == 0) $fatal(1, "drain never ends");
    act(DoCqe, 44, 0, 0);
    repeat (5) @(negedge clk);
    if (!drain_done) $fatal(1, "drain waits for new work");
    act(DoDone, 0, 0, 0);
    drain = 0;
    act(DoQuiet, 0, 0, 0);
    if (drain_done) $fatal(1, "drain done without drain");
    $display("PASS %0d events, timers at most %0d cycles late", n_comps, max_late);
    $finish;
  end
endmodule
