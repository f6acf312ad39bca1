// SPDX-License-Identifier: Apache-2.0
//
// qp_table against a model: random commands, reads on all ports and errors; every change into ERR is told
// exactly once unless the QP left ERR before; reset leaves no QP. Two QPs at a time change their slots: read out, overwritten,
// loaded into the other one's slot. The width does not matter here.

module qp_table_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int Ports = 5;
  localparam int Errs = 3;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [Ports-1:0] req_valid = '0, req_ready, rsp_valid;
  qp_idx_t [Ports-1:0] req_idx = '0;
  qp_attr_t rsp[Ports];
  logic cmd_valid = 0, cmd_rsp_valid, cmd_rsp_ok;
  qp_cmd_e cmd_op = QpCmdRead;
  qp_idx_t cmd_idx = '0;
  qp_state_e cmd_from = QpReset;
  qp_attr_t cmd_attr = '0, cmd_rsp;
  logic [Errs-1:0] err_valid = '0, err_ready;
  qp_idx_t [Errs-1:0] err_idx = '0;
  logic [Errs-1:0] err_access = '0;
  qp_err_e errev_why;
  logic errev_valid, errev_ready = 0, drain = 0, drain_done, ev_fatal, idle;
  qp_idx_t errev_idx;

  qp_idx_t slot_of[256], qp_of[256], errev_slot, cmd_slot = '0, probe_slot = '0, probe_qp = '0, ctx_qp = '0;
  qp_idx_t [Ports-1:0] req_slot;
  qp_idx_t [Errs-1:0] err_slot;
  logic busy, dirty, ctx_valid = 0, ctx_ready, ctx_load = 0;
  qp_attr_t ctx_in = '0, ctx_out;

  qp_table #(.NumPorts(Ports), .NumErr(Errs)) dut (
    .clk_i(clk), .rst_ni(rst_n), .req_valid_i(req_valid), .req_ready_o(req_ready), .req_idx_i(req_slot),
    .rsp_valid_o(rsp_valid), .rsp_o(rsp), .cmd_valid_i(cmd_valid), .cmd_op_i(cmd_op), .cmd_idx_i(cmd_slot),
    .cmd_from_i(cmd_from), .cmd_attr_i(cmd_attr), .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_ok_o(cmd_rsp_ok),
    .cmd_rsp_o(cmd_rsp), .err_valid_i(err_valid), .err_ready_o(err_ready), .err_idx_i(err_slot),
    .err_access_i(err_access), .errev_why_o(errev_why),
    .errev_valid_o(errev_valid), .errev_ready_i(errev_ready), .errev_idx_o(errev_slot),
    .probe_qp_i(probe_slot), .busy_o(busy), .dirty_o(dirty),
    .ctx_valid_i(ctx_valid), .ctx_ready_o(ctx_ready), .ctx_load_i(ctx_load), .ctx_qp_i(ctx_qp), .ctx_i(ctx_in), .ctx_o(ctx_out),
    .drain_i(drain), .drain_done_o(drain_done), .ev_fatal_o(ev_fatal), .idle_o(idle));

  // ---- slots: the model knows QPs, the design slots ----
  task automatic translate();
    for (int p = 0; p < Ports; p++) req_slot[p] = slot_of[req_idx[p]];
    for (int e = 0; e < Errs; e++) err_slot[e] = slot_of[err_idx[e]];
    cmd_slot = slot_of[cmd_idx];
    probe_slot = slot_of[probe_qp];
  endtask
  bit modified[256];
  bit took;
  int step = 0, last_step = 0, n_moves = 0, n_busy = 0, n_dirty = 0;
  qp_idx_t mq[2], at[2];
  qp_attr_t moved[2];
  bit m_dirty[2];
  function automatic bit in_move(qp_idx_t i);
    return step != 0 && (i == mq[0] || i == mq[1]);
  endfunction

  qp_attr_t model[256];
  logic [2:0] state[256];
  logic written[256];     // attributes are known
  int owed[256];          // 1: a change into ERR is not told yet
  qp_err_e why[256];      // of the newest change into ERR
  int whys[3];
  int fatals = 0, fatals_seen = 0, told = 0, lates = 0, served[Errs];
  logic [Ports-1:0] want_valid = '0;
  qp_attr_t want[Ports];
  logic [Ports-1:0] want_attr;
  logic cmd_want = 0, cmd_want_ok, cmd_want_attr;
  qp_attr_t cmd_want_rsp;
  logic offered = 0;
  qp_idx_t offered_idx;
  qp_err_e why_old[256];
  logic [Errs-1:0] err_acc;
  int range = 256;

  function automatic qp_attr_t rand_attr();
    logic [$bits(qp_attr_t)+31:0] v;
    for (int i = 0; i < ($bits(qp_attr_t) + 31) / 32; i++) v[32*i+:32] = $urandom();
    return qp_attr_t'(v[$bits(qp_attr_t)-1:0]);
  endfunction

  task automatic go_to(input qp_idx_t i, input logic [2:0] to, input qp_err_e because);
    if (to == QpErr && state[i] != QpErr) begin
      owed[i] = 1;
      why[i] = because;
    end
    if (to != QpErr) owed[i] = 0;
    state[i] = to;
    modified[i] = 1;
  endtask

  always @(posedge clk) if (rst_n) begin
    took = ctx_ready;
    errev_idx = qp_of[errev_slot];
    if (!in_move(probe_qp) && dirty != modified[probe_qp]) $fatal(1, "QP %0d: changed %b, want %b", probe_qp, dirty, modified[probe_qp]);
    n_dirty += int'(dirty);
    // moves: ask about both, read both, overwrite both, load both crosswise
    if (step == 1 || step == 2) begin
      n_busy += int'(busy);
      m_dirty[step-1] = dirty;
      step = busy ? 0 : step + 1;
    end else if (step != 0 && step < 9 && took) begin
      step++;
    end
    // answers to what was asked in the cycle before
    if (rsp_valid != want_valid) $fatal(1, "answers on ports %b, want %b", rsp_valid, want_valid);
    for (int p = 0; p < Ports; p++) if (rsp_valid[p]) begin
      if (rsp[p].state != want[p].state) $fatal(1, "port %0d: state %0d, want %0d", p, rsp[p].state, want[p].state);
      if (want_attr[p] && rsp[p] != want[p]) $fatal(1, "port %0d: attributes", p);
    end
    if (cmd_rsp_valid != cmd_want) $fatal(1, "command answer");
    if (cmd_want) begin
      if (cmd_rsp_ok != cmd_want_ok) $fatal(1, "command ok %b", cmd_rsp_ok);
      if (cmd_rsp.state != cmd_want_rsp.state) $fatal(1, "command: state %0d, want %0d, step %0d moves %0d", cmd_rsp.state, cmd_want_rsp.state, step, n_moves);
      if (cmd_want_attr && cmd_rsp != cmd_want_rsp) $fatal(1, "command: attributes");
    end
    if (ev_fatal) fatals_seen++;
    // an event that is offered stays
    if (offered && (!errev_valid || errev_idx != offered_idx)) $fatal(1, "offered event changed");
    if (errev_valid && !offered) begin
      if (owed[errev_idx] == 0) $fatal(1, "QP %0d told, but not in ERR anew", errev_idx);
      owed[errev_idx] = 0;
      // picked in the cycle before: before anything that changed since
      if (errev_why != why_old[errev_idx]) $fatal(1, "QP %0d in ERR because of %0d, want %0d", errev_idx, errev_why, why_old[errev_idx]);
      whys[errev_why]++;
    end
    why_old = why;
    offered = errev_valid && !errev_ready;
    offered_idx = errev_idx;
    if (errev_valid && errev_ready) told++;

    // what happens in this cycle
    want_valid = req_valid;
    for (int p = 0; p < Ports; p++) begin
      want[p] = model[req_idx[p]];
      want[p].state = qp_state_e'(state[req_idx[p]]);
      want_attr[p] = written[req_idx[p]];
    end
    cmd_want = cmd_valid;
    cmd_want_rsp = model[cmd_idx];
    cmd_want_rsp.state = qp_state_e'(state[cmd_idx]);
    cmd_want_attr = written[cmd_idx];
    cmd_want_ok = cmd_op != QpCmdWrite || state[cmd_idx] == cmd_from;
    if (cmd_valid && !cmd_want_ok) lates++;
    err_acc = err_valid & err_ready;
    if ($countones(err_acc) > 1 || (cmd_valid && err_acc != 0)) $fatal(1, "two changes in a cycle");
    if (cmd_valid && cmd_op == QpCmdWrite && cmd_want_ok) begin
      model[cmd_idx] = cmd_attr;
      written[cmd_idx] = 1;
      go_to(cmd_idx, cmd_attr.state, QpErrCmd);
    end
    if (cmd_valid && cmd_op == QpCmdState) go_to(cmd_idx, cmd_attr.state, QpErrCmd);
    for (int e = 0; e < Errs; e++) if (err_acc[e]) begin
      served[e]++;
      if (state[err_idx[e]] inside {QpInit, QpRtr, QpRts, QpSqd, QpSqe}) begin
        fatals++;
        go_to(err_idx[e], QpErr, err_access[e] ? QpErrAccess : QpErrFatal);
      end
    end
  end

  initial begin
    for (int i = 0; i < 256; i++) begin
      slot_of[i] = qp_idx_t'(i);
      qp_of[i] = qp_idx_t'(i);
      state[i] = QpNone;
      written[i] = 0;
      owed[i] = 0;
    end
    for (int e = 0; e < Errs; e++) served[e] = 0;
    whys = '{0, 0, 0};
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int n = 0; n < 60000; n++) begin
      @(negedge clk);
      range = (n / 5000) % 2 == 0 ? 256 : 6;
      for (int p = 0; p < Ports; p++) begin
        req_valid[p] = ($urandom() % 2) == 0;
        req_idx[p] = 8'(int'($urandom()) & 255) % 8'(range == 256 ? 255 : range);
      end
      cmd_valid = ($urandom() % 3) == 0;
      cmd_idx = range == 256 ? 8'($urandom()) : 8'($urandom() % 6);
      cmd_op = qp_cmd_e'($urandom() % 3);
      cmd_from = ($urandom() % 4) == 0 ? qp_state_e'($urandom() % 8) : qp_state_e'(state[cmd_idx]);
      cmd_attr = rand_attr();
      for (int e = 0; e < Errs; e++) begin
        if (!err_valid[e] || err_acc[e]) begin
          err_idx[e] = range == 256 ? 8'($urandom()) : 8'($urandom() % 6);
          err_valid[e] = ($urandom() % 8) == 0 && !in_move(err_idx[e]);
          err_access[e] = ($urandom() % 2) == 0;
        end
      end
      // read at step 3 and 4: there one cycle later
      if (step == 4 && last_step == 3) moved[0] = ctx_out;
      if (step == 5 && last_step == 4) moved[1] = ctx_out;
      last_step = step;
      if (step == 9) begin
        slot_of[mq[0]] = at[1];
        slot_of[mq[1]] = at[0];
        qp_of[at[1]] = mq[0];
        qp_of[at[0]] = mq[1];
        modified[mq[0]] = 0;
        modified[mq[1]] = 0;
        n_moves++;
        step = 0;
      end
      probe_qp = qp_idx_t'($urandom() % range);
      if (step == 0 && $urandom() % 4 == 0) begin
        mq[0] = qp_idx_t'($urandom() % range);
        mq[1] = qp_idx_t'($urandom() % 256);
        at[0] = slot_of[mq[0]];
        at[1] = slot_of[mq[1]];
        step = mq[0] != mq[1];
        for (int e = 0; e < Errs; e++) if (err_valid[e] && in_move(err_idx[e])) step = 0;
      end
      if (step == 1 || step == 2) probe_qp = mq[step-1];
      ctx_valid = step > 2;
      ctx_load = step > 4;
      ctx_in = rand_attr();
      ctx_qp = ctx_valid ? at[(step + 1) % 2] : qp_idx_t'($urandom());
      if (step > 6) ctx_in = moved[step % 2];
      for (int p = 0; p < Ports; p++) if (in_move(req_idx[p])) req_valid[p] = 0;
      if (in_move(cmd_idx)) cmd_valid = 0;
      translate();
      errev_ready = (n / 2000) % 3 == 0 ? 0 : ($urandom() % 3) != 0;
    end
    step = 0;
    ctx_valid = 0;
    if (n_moves < 1000 || n_busy < 100 || n_dirty < 1000) $fatal(1, "moves: corner not reached: %0d, %0d busy", n_moves, n_busy);
    // drain: done when the event offered at its rise has been taken
    cmd_valid = 0;
    err_valid = '0;
    req_valid = '0;
    errev_ready = 0;
    @(negedge clk);
    cmd_valid = 1; cmd_op = QpCmdState; cmd_idx = 9; cmd_attr.state = QpRts;
    translate();
    @(negedge clk);
    cmd_attr.state = QpErr;
    @(negedge clk);
    cmd_valid = 0;
    repeat (40) @(negedge clk);
    if (!errev_valid || idle) $fatal(1, "no event");
    drain = 1;
    repeat (10) @(negedge clk);
    if (drain_done) $fatal(1, "drain done with an event offered");
    errev_ready = 1;
    @(negedge clk);
    repeat (3) @(negedge clk);
    if (!drain_done) $fatal(1, "drain never ends");
    drain = 0;
    @(negedge clk);
    @(negedge clk);
    if (drain_done) $fatal(1, "drain done without drain");
    repeat (10000) @(negedge clk);
    if (!idle) $fatal(1, "not idle");
    for (int i = 0; i < 256; i++) if (owed[i] != 0) $fatal(1, "QP %0d: change into ERR not told", i);
    if (fatals != fatals_seen || fatals == 0 || told < 1000 || lates == 0)
      $fatal(1, "fatals %0d of %0d, told %0d, lates %0d", fatals_seen, fatals, told, lates);
    for (int e = 0; e < Errs; e++) if (served[e] < served[0] / 2 || served[e] == 0) $fatal(1, "error input %0d starves", e);
    for (int i = 0; i < 3; i++) if (whys[i] == 0) $fatal(1, "cause %0d never told", i);
    // reset
    rst_n = 0;
    want_valid = '0;
    cmd_want = 0;
    offered = 0;
    @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < 256; i++) begin
      modified[i] = 0;
      state[i] = QpNone;
      written[i] = 0;
    end
    for (int i = 0; i < 256; i++) begin
      @(negedge clk);
      cmd_valid = 1;
      cmd_op = QpCmdRead;
      cmd_idx = 8'(i);
      req_valid = '1;
      for (int p = 0; p < Ports; p++) req_idx[p] = 8'(i + p);
      translate();
    end
    @(negedge clk);
    cmd_valid = 0;
    req_valid = '0;
    @(negedge clk);
    $display("PASS %0d events told, %0d late writes refused, %0d times two QPs moved", told, lates, n_moves);
    $finish;
  end
endmodule
