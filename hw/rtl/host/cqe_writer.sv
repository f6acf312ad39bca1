// SPDX-License-Identifier: Apache-2.0
//
// Completion queues: contexts, CQE writes, consumer doorbells, overrun; completion events (cq_events).
//
// One operation (CQE, doorbell or command) every 2 cycles; a CQE's write request is offered 2
// cycles after it was taken. in_ready_o falls while an earlier CQE waits for the write channel.
// Commands go before doorbells before CQEs.
//
// A CQ of 2^n entries holds 2^n-1 CQEs: the one that fills the last entry gets status cq_overrun
// (its own status is lost), and from then on the CQ takes no more (each lost CQE is told at
// ev_lost_o) until it is destroyed: IBTA 11.2.8 calls such a CQ unusable. The phase bit is 1 on the
// first pass over the ring. A doorbell whose consumer index lies outside [ci, pi] changes nothing
// (ev_bad_db_o). One that arms a CQ without EQ only moves the index, and is told too.
//
// At most EventDepth CQEs may be on their way; a completion event is raised after the acknowledge of its
// CQE, a cq_overrun event after that of the marked one.

module cqe_writer
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned ClkPs = 4000
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [63:0]        time_i,
  // completions
  input  logic               in_valid_i,
  output logic               in_ready_o,
  input  cqe_ev_t            in_i,
  input  qpn_t               in_qpn_i,    // of in_i.qp, which may soon be another QP's slot
  // CQ doorbells
  input  logic               db_valid_i,
  output logic               db_ready_o,
  input  logic [23:0]        db_cqn_i,
  input  logic [23:0]        db_ci_i,
  input  cq_arm_t            db_arm_i,
  // commands; the answer stays until the next one
  input  logic               cmd_valid_i,
  output logic               cmd_ready_o,
  input  cq_cmd_e            cmd_op_i,
  input  cq_idx_t            cmd_idx_i,
  input  logic [63:6]        cmd_addr_i,      // create
  input  logic [3:0]         cmd_log_size_i,
  input  logic [7:0]         cmd_eqn_i,
  input  cq_mod_t            cmd_mod_i,        // create, modify
  output logic               cmd_rsp_valid_o,
  output cq_ctx_t            cmd_rsp_o,
  // AXI write client
  output logic               aw_valid_o,
  input  logic               aw_ready_i,
  output logic [63:0]        aw_addr_o,
  output logic [7:0]         aw_len_o,
  output logic               w_valid_o,
  input  logic               w_ready_i,
  output logic [DataW-1:0]   w_data_o,
  output logic [DataW/8-1:0] w_strb_o,
  output logic               w_last_o,
  input  logic               b_valid_i,
  input  logic               b_err_i,
  // completion events, cq_overrun events
  output logic               comp_valid_o,
  input  logic               comp_ready_i,
  output comp_ev_t           comp_o,
  output logic               ovr_valid_o,
  input  logic               ovr_ready_i,
  output async_ev_t          ovr_o,
  output logic               wake_valid_o,
  output logic [63:0]        wake_o,
  input  logic               drain_i,
  output logic               drain_done_o,
  // events
  output logic               ev_cqe_o,      // CQE written
  output logic               ev_lost_o,     // CQE lost
  output logic               ev_overrun_o,  // a CQ became unusable
  output logic [1:0]         ev_error_o,    // CQE with an error other than flush: of a send, of a receive
  output logic [1:0]         ev_flush_o,    // CQE with flush error
  output logic               ev_bad_db_o,
  output logic               ev_axi_err_o,
  // last WQE reached, or send queue drained, of a QP: its CQEs are written
  output logic               last_valid_o,
  input  logic               last_ready_i,
  output qpn_t               last_qpn_o,
  output logic               last_drained_o,
  output logic               idle_o
);

  localparam int unsigned EventDepth = 64;
  localparam int unsigned GrpW = 16;
  localparam int unsigned NumGrp = NumCq / GrpW;

  typedef struct packed {
    logic [3:0]  log_size;
    logic [7:0]  eqn;
    logic [57:0] addr;  // bits 63:6
  } fixed_t;
  typedef struct packed {
    logic        overrun;
    logic [23:0] pi;
    logic [23:0] ci;
  } index_t;
  typedef enum logic [1:0] {
    OpCqe,
    OpDb,
    OpCmd
  } op_e;

  // ---- first cycle: choose and read -------------------------------------------------------------
  logic s1_valid_q, s1_leave, take;
  op_e op, s1_op_q;
  cq_idx_t idx, s1_idx_q;
  logic db_range_ok;

  assign db_range_ok = 32'(db_cqn_i) < NumCq;
  always_comb begin
    op = OpCqe;
    idx = in_i.cqn;
    if (cmd_valid_i) begin
      op = OpCmd;
      idx = cmd_idx_i;
    end else if (db_valid_i) begin
      op = OpDb;
      idx = db_cqn_i[CqIdxW-1:0];
    end
  end
  assign take = !s1_valid_q && (cmd_valid_i || db_valid_i || in_valid_i);
  assign cmd_ready_o = !s1_valid_q;
  assign db_ready_o = !s1_valid_q && !cmd_valid_i;
  assign in_ready_o = !s1_valid_q && !cmd_valid_i && !db_valid_i;

  // Its cqn is in s1_idx_q.
  // verilator lint_off UNUSEDSIGNAL
  cqe_ev_t s1_ev_q;
  qpn_t    s1_qpn_q;
  // verilator lint_on UNUSEDSIGNAL
  logic [23:0] s1_db_ci_q;
  cq_arm_t s1_db_arm_q;
  cq_mod_t s1_mod_q;
  logic s1_db_ok_q, s1_exists_q;
  cq_cmd_e s1_cmd_q;
  fixed_t s1_fixed_q;
  logic [GrpW-1:0] exists_q[NumGrp];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s1_valid_q <= 1'b0;
    else if (take) s1_valid_q <= 1'b1;
    else if (s1_leave) s1_valid_q <= 1'b0;
    if (take) begin
      s1_op_q <= op;
      s1_idx_q <= idx;
      s1_exists_q <= exists_q[idx[CqIdxW-1:4]][idx[3:0]];
      if (op == OpCqe) begin
        s1_ev_q <= in_i;
        s1_qpn_q <= in_qpn_i;
      end
      if (op == OpDb) begin
        s1_db_ci_q <= db_ci_i;
        s1_db_arm_q <= db_arm_i;
        s1_db_ok_q <= db_range_ok;
      end
      if (op == OpCmd) begin
        s1_cmd_q <= cmd_op_i;
        s1_fixed_q <= '{log_size: cmd_log_size_i, eqn: cmd_eqn_i, addr: cmd_addr_i};
        s1_mod_q <= cmd_mod_i;
      end
    end
  end

  // ---- contexts ---------------------------------------------------------------------------------
  fixed_t fixed;
  index_t index, index_wr;
  logic create, index_we;

  rnic_ram #(.Width($bits(fixed_t)), .Depth(NumCq)) u_fixed (
    .clk_i, .we_i(create), .waddr_i(s1_idx_q), .wdata_i(s1_fixed_q),
    .re_i(take), .raddr_i(idx), .rdata_o(fixed)
  );
  rnic_ram #(.Width($bits(index_t)), .Depth(NumCq)) u_index (
    .clk_i, .we_i(index_we), .waddr_i(s1_idx_q), .wdata_i(index_wr),
    .re_i(take), .raddr_i(idx), .rdata_o(index)
  );

  // ---- second cycle: decide and write back ------------------------------------------------------
  logic out_free;
  logic wr_empty;  // all writes are answered
  logic [23:0] used, size;
  logic ev_act, cqe_write, cqe_go, cqe_last_room, db_good, destroy;
  logic ev_cqe_ready, ev_db_valid, ev_db_ready, ev_cmd_valid, ev_cmd_ready;

  assign size = 24'd1 << fixed.log_size;
  assign used = index.pi - index.ci;
  assign ev_act = s1_valid_q && s1_op_q == OpCqe;
  assign cqe_last_room = used >= size - 24'd1;
  assign cqe_write = ev_act && s1_exists_q && !index.overrun && !s1_ev_q.last_wqe;
  assign cqe_go = cqe_write && out_free && ev_cqe_ready;
  assign last_valid_o = ev_act && s1_ev_q.last_wqe && wr_empty;
  assign last_qpn_o = s1_qpn_q;
  assign last_drained_o = s1_ev_q.drained;
  assign ev_db_valid = s1_valid_q && s1_op_q == OpDb && db_good;
  assign ev_cmd_valid = s1_valid_q && s1_op_q == OpCmd;
  assign s1_leave = s1_valid_q && (!cqe_write || cqe_go) && (!ev_db_valid || ev_db_ready) &&
                    (!ev_cmd_valid || ev_cmd_ready) &&
                    (!(ev_act && s1_ev_q.last_wqe) || (last_valid_o && last_ready_i));
  assign db_good = s1_db_ok_q && s1_exists_q && (s1_db_ci_q - index.ci) <= used;
  assign create = ev_cmd_valid && s1_cmd_q == CqCmdCreate;
  assign destroy = ev_cmd_valid && s1_cmd_q == CqCmdDestroy;

  always_comb begin
    index_wr = index;
    index_we = 1'b0;
    unique case (s1_op_q)
      OpCqe: begin
        index_we = cqe_go;
        index_wr.pi = index.pi + 24'd1;
        index_wr.overrun = cqe_last_room;
      end
      OpDb: begin
        index_we = ev_db_valid;
        index_wr.ci = s1_db_ci_q;
      end
      default: begin
        index_we = create;
        index_wr = '0;
      end
    endcase
  end

  // arm and moderation come from cq_events
  // verilator lint_off UNUSEDSIGNAL
  cq_ctx_t rsp_q;
  // verilator lint_on UNUSEDSIGNAL
  cq_arm_t rsp_arm;
  cq_mod_t rsp_mod;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < int'(NumGrp); i++) exists_q[i] <= '0;
    end else begin
      if (create || destroy) exists_q[s1_idx_q[CqIdxW-1:4]][s1_idx_q[3:0]] <= create;
    end
    if (ev_cmd_valid) begin
      rsp_q.exists <= s1_exists_q;
      rsp_q.overrun <= index.overrun;
      rsp_q.log_size <= fixed.log_size;
      rsp_q.eqn <= fixed.eqn;
      rsp_q.addr <= {fixed.addr, 6'd0};
      rsp_q.pi <= index.pi;
      rsp_q.ci <= index.ci;
    end
  end
  assign cmd_rsp_o = '{
    exists: rsp_q.exists, overrun: rsp_q.overrun, log_size: rsp_q.log_size, eqn: rsp_q.eqn,
    addr: rsp_q.addr, pi: rsp_q.pi, ci: rsp_q.ci, arm: rsp_arm, moderation: rsp_mod
  };

  // ---- events -----------------------------------------------------------------------------------
  logic ev_drain_done, ev_idle;
  cq_events #(.ClkPs(ClkPs), .Depth(EventDepth)) u_events (
    .clk_i, .rst_ni, .time_i,
    .cqe_valid_i(cqe_write && out_free), .cqe_ready_o(ev_cqe_ready), .cqe_cqn_i(s1_idx_q),
    .cqe_has_eq_i(fixed.eqn != NoEq),
    .cqe_solicited_i(s1_ev_q.solicited || s1_ev_q.status != rnic_regs_pkg::WcStatusSuccess),
    .cqe_overrun_i(cqe_last_room), .cqe_done_i(b_valid_i),
    .db_valid_i(ev_db_valid), .db_ready_o(ev_db_ready), .db_cqn_i(s1_idx_q), .db_ci_i(s1_db_ci_q),
    .db_arm_i(s1_db_arm_q),
    .cmd_valid_i(ev_cmd_valid), .cmd_ready_o(ev_cmd_ready), .cmd_op_i(s1_cmd_q),
    .cmd_idx_i(s1_idx_q), .cmd_eqn_i(s1_fixed_q.eqn), .cmd_mod_i(s1_mod_q),
    .cmd_rsp_valid_o, .cmd_rsp_arm_o(rsp_arm), .cmd_rsp_mod_o(rsp_mod),
    .comp_valid_o, .comp_ready_i, .comp_o, .ovr_valid_o, .ovr_ready_i, .ovr_o,
    .wake_valid_o, .wake_o, .drain_i, .drain_done_o(ev_drain_done), .idle_o(ev_idle)
  );

  // ---- write ------------------------------------------------------------------------------------
  rnic_regs_pkg::cqe_t cqe;
  logic out_idle;
  assign cqe = '{
    index: s1_ev_q.index,
    opcode: s1_ev_q.opcode,
    status: cqe_last_room ? rnic_regs_pkg::WcStatusCqOverrun : s1_ev_q.status,
    qpn: 24'(s1_qpn_q),
    syndrome: s1_ev_q.syndrome,
    byte_len: s1_ev_q.byte_len,
    imm: s1_ev_q.imm,
    src_qp: s1_ev_q.src_qp,
    with_imm: s1_ev_q.with_imm,
    with_inv: s1_ev_q.with_inv,
    with_grh: s1_ev_q.with_grh,
    timestamp: time_i,
    phase: ~|(index.pi & size),
    default: '0
  };
  entry_writer #(.DataW(DataW), .EntryW(8 * rnic_regs_pkg::CqeBytes)) u_write (
    .clk_i, .rst_ni, .in_valid_i(cqe_write && ev_cqe_ready), .in_ready_o(out_free), .in_data_i(cqe),
    .in_addr_i({fixed.addr, 1'b0} + {35'd0, index.pi & (size - 24'd1)}),
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .idle_o(out_idle)
  );

  // ---- drain: writes begun and writes answered --------------------------------------------------
  logic wr_drain_done;
  drain_count u_drain (
    .clk_i, .rst_ni, .begin_i(cqe_go), .ended_i({1'b0, b_valid_i}), .hold_i(s1_valid_q),
    .drain_i, .done_o(wr_drain_done), .empty_o(wr_empty)
  );
  assign drain_done_o = wr_drain_done && ev_drain_done;
  assign idle_o = !s1_valid_q && out_idle && wr_empty && ev_idle &&
                  !in_valid_i && !db_valid_i && !cmd_valid_i;

  // ---- events -----------------------------------------------------------------------------------
  logic [1:0] side;
  assign side = s1_ev_q.opcode inside {rnic_regs_pkg::CqeOpcodeRecv, rnic_regs_pkg::CqeOpcodeRecvRdmaImm} ? 2'b10 : 2'b01;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ev_cqe_o <= 1'b0;
      ev_lost_o <= 1'b0;
      ev_overrun_o <= 1'b0;
      ev_error_o <= '0;
      ev_flush_o <= '0;
      ev_bad_db_o <= 1'b0;
      ev_axi_err_o <= 1'b0;
    end else begin
      ev_cqe_o <= b_valid_i && !b_err_i;
      ev_axi_err_o <= b_valid_i && b_err_i;
      ev_lost_o <= ev_act && s1_leave && !s1_ev_q.last_wqe && (!cqe_write || cqe_last_room);
      ev_overrun_o <= cqe_go && cqe_last_room;
      ev_flush_o <= ev_act && s1_leave && !s1_ev_q.last_wqe &&
                    s1_ev_q.status == rnic_regs_pkg::WcStatusWrFlushErr ? side : 2'b00;
      ev_error_o <= ev_act && s1_leave && !s1_ev_q.last_wqe &&
                    s1_ev_q.status != rnic_regs_pkg::WcStatusSuccess &&
                    s1_ev_q.status != rnic_regs_pkg::WcStatusWrFlushErr ? side : 2'b00;
      ev_bad_db_o <= s1_valid_q && s1_op_q == OpDb &&
                     (!db_good || (ev_db_ready && s1_db_arm_q != '0 && fixed.eqn == NoEq));
    end
  end

endmodule
