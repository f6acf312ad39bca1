// SPDX-License-Identifier: Apache-2.0
//
// QP attributes and QP state, on chip, by slot (docs/qp-cache.md).
//
// Read ports: one request per cycle per port, answer one cycle later, never refused. The state in
// an answer is that of the cycle in which the request was taken. Command port: one operation per
// cycle, never refused, answer one cycle later.
//   Write  stores attributes and state if the QP is in cmd_from_i (else cmd_rsp_ok_o = 0, nothing
//          changes):
//          a QP that failed meanwhile is not brought back by a late write
//   Read   answers attributes and state
//   State  sets the state, whatever it was
// Error inputs (qp_err_*): each puts a QP that is in INIT, RTR, RTS, SQD or SQE into ERR; taken one
// per cycle in turn, the command port goes first. Every change into ERR is told once at errev_*
// (one pending bit per QP: never lost, order by QP number). A pending one is dropped when the QP
// leaves ERR; one that is offered already stays offered. After reset no QP exists (state NONE).
// Context of a slot: ctx_* reads or, with ctx_load_i, writes attributes and state while busy_o is 0 for it; commands and errors go first; ctx_o
// comes one cycle later. dirty_o: changed since it was loaded.
// States: IBTA 10.3.1.

module qp_table
  import rnic_pkg::*;
#(
  parameter int unsigned NumPorts = 5,
  parameter int unsigned NumErr = 3
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  // read ports
  input  logic     [NumPorts-1:0]       req_valid_i,
  output logic     [NumPorts-1:0]       req_ready_o,
  input  qp_idx_t  [NumPorts-1:0]       req_idx_i,
  output logic     [NumPorts-1:0]       rsp_valid_o,
  output qp_attr_t                      rsp_o[NumPorts],
  // command port
  input  logic                          cmd_valid_i,
  input  qp_cmd_e                       cmd_op_i,
  input  qp_idx_t                       cmd_idx_i,
  input  qp_state_e                     cmd_from_i,
  input  qp_attr_t                      cmd_attr_i,
  output logic                          cmd_rsp_valid_o,
  output logic                          cmd_rsp_ok_o,
  output qp_attr_t                      cmd_rsp_o,
  // error inputs
  input  logic     [NumErr-1:0]         err_valid_i,
  output logic     [NumErr-1:0]         err_ready_o,
  input  qp_idx_t  [NumErr-1:0]         err_idx_i,
  input  logic     [NumErr-1:0]         err_access_i,   // a remote access violation
  // QPs that went to ERR
  output logic                          errev_valid_o,
  input  logic                          errev_ready_i,
  output qp_idx_t                       errev_idx_o,
  output qp_err_e                       errev_why_o,
  // contexts
  input  qp_idx_t                       probe_qp_i,
  output logic                          busy_o,         // its change into ERR is not told yet
  output logic                          dirty_o,        // probe_qp_i was changed since it was loaded
  input  logic                          ctx_valid_i,
  output logic                          ctx_ready_o,
  input  logic                          ctx_load_i,
  input  qp_idx_t                       ctx_qp_i,
  input  qp_attr_t                      ctx_i,
  output qp_attr_t                      ctx_o,
  // drain: nothing is offered at errev_* that was offered when drain_i rose
  input  logic                          drain_i,
  output logic                          drain_done_o,
  output logic                          ev_fatal_o,
  output logic                          idle_o
);

  localparam int unsigned AttrW = $bits(qp_attr_t) - 3;  // without the state, which comes first
  localparam int unsigned GrpW = 16;
  localparam int unsigned NumGrp = NumQp / GrpW;
  localparam int unsigned GrpIdxW = $clog2(NumGrp);
  localparam int unsigned ErrW = NumErr > 1 ? $clog2(NumErr) : 1;

  // ---- state: small memory, existence in flops (so that reset clears it) -----------------------
  logic [2:0] state_mem[NumQp];
  logic [GrpW-1:0] exists_q[NumGrp];

  // Functions look at part of their arguments.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [GrpIdxW-1:0] grp(input qp_idx_t idx);
    return idx[QpIdxW-1-:GrpIdxW];
  endfunction
  function automatic logic [3:0] bit_of(input qp_idx_t idx);
    return idx[3:0];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- one change of state per cycle ------------------------------------------------------------
  logic      err_any;
  logic [ErrW-1:0] err_sel, err_last_q;
  qp_idx_t   chg_idx;
  logic      chg_cmd, chg_err, chg_we, chg_fatal;
  qp_state_e chg_old, chg_new;
  logic      cmd_ok, load;
  logic [NumQp-1:0] dirty_q;

  always_comb begin
    err_any = |err_valid_i;
    err_sel = '0;
    // the lowest one after the one served last, else the lowest
    for (int i = int'(NumErr) - 1; i >= 0; i--) if (err_valid_i[i]) err_sel = ErrW'(i);
    for (int i = int'(NumErr) - 1; i >= 0; i--)
      if (err_valid_i[i] && ErrW'(i) > err_last_q) err_sel = ErrW'(i);
  end

  assign chg_cmd = cmd_valid_i && cmd_op_i != QpCmdRead;
  assign chg_err = err_any && !cmd_valid_i;
  assign ctx_ready_o = !cmd_valid_i && !err_any;
  assign load = ctx_valid_i && ctx_load_i && ctx_ready_o;
  always_comb begin
    chg_idx = cmd_valid_i ? cmd_idx_i : err_any ? err_idx_i[err_sel] : ctx_qp_i;
    chg_old = exists_q[grp(chg_idx)][bit_of(chg_idx)] ? qp_state_e'(state_mem[chg_idx]) : QpNone;
    cmd_ok = cmd_op_i != QpCmdWrite || chg_old == cmd_from_i;
    chg_fatal = chg_err && chg_old inside {QpInit, QpRtr, QpRts, QpSqd, QpSqe};
    chg_we = (chg_cmd && cmd_ok) || chg_fatal;
    chg_new = chg_cmd ? cmd_attr_i.state : chg_err ? QpErr : ctx_i.state;
    err_ready_o = '0;
    err_ready_o[err_sel] = chg_err;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < int'(NumGrp); i++) exists_q[i] <= '0;
      err_last_q <= '0;
      ev_fatal_o <= 1'b0;
      dirty_q <= '0;
    end else begin
      if (chg_we || load) begin
        exists_q[grp(chg_idx)][bit_of(chg_idx)] <= chg_new != QpNone;
        state_mem[chg_idx] <= chg_new;
        dirty_q[chg_idx] <= !load;
      end
      if (chg_err) err_last_q <= err_sel;
      ev_fatal_o <= chg_fatal;
    end
  end

  // ---- attributes: one copy per reader ----------------------------------------------------------
  logic             attr_we;
  logic [AttrW-1:0] attr_wdata;
  assign attr_we = load || (chg_cmd && cmd_op_i == QpCmdWrite && cmd_ok);
  assign attr_wdata = load ? ctx_i[AttrW-1:0] : cmd_attr_i[AttrW-1:0];

  assign req_ready_o = '1;
  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    logic [AttrW-1:0] attr_mem[NumQp];
    qp_attr_t rsp_q;
    always_ff @(posedge clk_i) begin
      if (attr_we) attr_mem[chg_idx] <= attr_wdata;
      if (req_valid_i[p]) begin
        rsp_q[AttrW-1:0] <= attr_mem[req_idx_i[p]];
        rsp_q.state <= exists_q[grp(req_idx_i[p])][bit_of(req_idx_i[p])] ?
                       qp_state_e'(state_mem[req_idx_i[p]]) : QpNone;
      end
    end
    assign rsp_o[p] = rsp_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) rsp_valid_o <= '0;
    else rsp_valid_o <= req_valid_i;
  end

  // the command port's copy, which contexts are read from too: what a command was answered stays
  logic [AttrW-1:0] cmd_mem[NumQp];
  qp_attr_t read_q, cmd_rsp_q;
  assign ctx_o = read_q;
  assign cmd_rsp_o = cmd_rsp_valid_o ? read_q : cmd_rsp_q;
  always_ff @(posedge clk_i) begin
    if (attr_we) cmd_mem[chg_idx] <= attr_wdata;
    if (cmd_valid_i || ctx_valid_i) begin
      read_q[AttrW-1:0] <= cmd_mem[chg_idx];
      read_q.state <= chg_old;
    end
    if (cmd_valid_i) cmd_rsp_ok_o <= cmd_ok;
    if (cmd_rsp_valid_o) cmd_rsp_q <= read_q;
    if (!rst_ni) cmd_rsp_valid_o <= 1'b0;
    else cmd_rsp_valid_o <= cmd_valid_i;
  end

  // why: written when the QP enters ERR
  logic [1:0] why_mem[NumQp];
  qp_err_e chg_why;
  assign chg_why = !chg_err ? QpErrCmd : err_access_i[err_sel] ? QpErrAccess : QpErrFatal;
  always_ff @(posedge clk_i) begin
    if (chg_we && chg_new == QpErr && chg_old != QpErr) why_mem[chg_idx] <= chg_why;
  end

  // ---- QPs that went to ERR: pending bits, scanned group by group -------------------------------
  logic [GrpW-1:0] pend_q[NumGrp];
  logic [QpIdxW:0] pend_cnt_q;
  logic [GrpIdxW-1:0] scan_q;
  logic [GrpW-1:0] scan_bits;
  logic [3:0] first;
  logic pick, set_pend, clr_pend, chg_pend;

  assign scan_bits = pend_q[scan_q];
  always_comb begin
    first = '0;
    for (int i = int'(GrpW) - 1; i >= 0; i--) if (scan_bits[i]) first = 4'(i);
  end
  assign chg_pend = pend_q[grp(chg_idx)][bit_of(chg_idx)];
  assign set_pend = chg_we && chg_new == QpErr && chg_old != QpErr && !chg_pend;
  assign clr_pend = chg_we && chg_new != QpErr && chg_pend;
  // no pick in a cycle that changes a pending bit, so that one bit changes at a time
  assign pick = |scan_bits && (!errev_valid_o || errev_ready_i) && !set_pend && !clr_pend;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < int'(NumGrp); i++) pend_q[i] <= '0;
      pend_cnt_q <= '0;
      scan_q <= '0;
      errev_valid_o <= 1'b0;
    end else begin
      if (errev_ready_i) errev_valid_o <= 1'b0;
      if (set_pend) begin
        pend_q[grp(chg_idx)][bit_of(chg_idx)] <= 1'b1;
        pend_cnt_q <= pend_cnt_q + 1'b1;
      end else if (clr_pend) begin
        pend_q[grp(chg_idx)][bit_of(chg_idx)] <= 1'b0;
        pend_cnt_q <= pend_cnt_q - 1'b1;
      end else if (pick) begin
        pend_q[scan_q][first] <= 1'b0;
        pend_cnt_q <= pend_cnt_q - 1'b1;
        errev_valid_o <= 1'b1;
        errev_idx_o <= {scan_q, first};
        errev_why_o <= qp_err_e'(why_mem[{scan_q, first}]);
      end
      if (pend_cnt_q != 0 && scan_bits == '0) scan_q <= scan_q + 1'b1;
    end
  end

  assign busy_o = pend_q[grp(probe_qp_i)][bit_of(probe_qp_i)] || (errev_valid_o && errev_idx_o == probe_qp_i);
  assign dirty_o = dirty_q[probe_qp_i];

  // ---- drain ------------------------------------------------------------------------------------
  logic drain_q, held_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= 1'b0;
      held_q <= 1'b0;
    end else begin
      drain_q <= drain_i;
      if (!drain_q) held_q <= drain_i && errev_valid_o && !errev_ready_i;
      else if (errev_ready_i) held_q <= 1'b0;
    end
  end
  assign drain_done_o = drain_q && !held_q;

  assign idle_o = pend_cnt_q == 0 && !errev_valid_o && !err_any && !cmd_valid_i;

endmodule
