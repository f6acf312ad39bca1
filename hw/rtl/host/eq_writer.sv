// SPDX-License-Identifier: Apache-2.0
//
// Event queues: contexts, EQE writes, consumer doorbells, arming, interrupt requests.
//
// Completion events go to the EQ that they name, all other events to EQ 0. One operation every 2 cycles,
// in the order acknowledged write, command, doorbell, event (the two kinds of events in turn); an EQE's write
// request is offered 2 cycles after its event was taken. At most Depth writes are on their way.
//
// An EQ of 2^n entries holds 2^n EQEs. An event that finds its EQ full is lost (ev_lost_o) and the context
// says overrun until the EQ is destroyed; so events wait for memory only, never for software. An event for
// an EQ that does not exist has no addressee and leaves no trace. The phase bit is 1 on the first pass.
//
// irq_valid_o (a pulse, with irq_vec_o) comes after the acknowledge of the EQE if the EQ is armed, which
// disarms it. A doorbell that arms with an EQE in memory behind its consumer index requests the interrupt
// at once. A doorbell whose index lies outside [ci, pi] changes nothing (ev_bad_db_o).

module eq_writer
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  // events
  input  logic               comp_valid_i,
  output logic               comp_ready_o,
  input  comp_ev_t           comp_i,
  input  logic               async_valid_i,
  output logic               async_ready_o,
  input  async_ev_t          async_i,
  // EQ doorbells
  input  logic               db_valid_i,
  output logic               db_ready_o,
  input  logic [7:0]         db_eqn_i,
  input  logic               db_arm_i,
  input  logic [23:0]        db_ci_i,
  // commands; the answer stays until the next one
  input  logic               cmd_valid_i,
  output logic               cmd_ready_o,
  input  eq_cmd_e            cmd_op_i,
  input  eq_idx_t            cmd_idx_i,
  input  logic [63:6]        cmd_addr_i,      // create
  input  logic [3:0]         cmd_log_size_i,
  input  vec_t               cmd_vector_i,
  output logic               cmd_rsp_valid_o,
  output eq_ctx_t            cmd_rsp_o,
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
  // interrupt requests
  output logic               irq_valid_o,
  output vec_t               irq_vec_o,
  input  logic               drain_i,
  output logic               drain_done_o,
  // events for the counters
  output logic               ev_eqe_o,        // EQE written
  output logic               ev_lost_o,
  output logic               ev_bad_db_o,
  output logic               ev_axi_err_o,
  output logic               idle_o
);

  localparam int unsigned Depth = 16;
  localparam int unsigned LevelW = $clog2(Depth) + 1;

  typedef struct packed {
    logic [3:0]  log_size;
    vec_t        irq_vec;
    logic [57:0] addr;  // bits 63:6
  } fixed_t;
  typedef struct packed {
    logic        overrun;
    logic        armed;
    logic [23:0] pi;    // EQEs begun
    logic [23:0] done;  // EQEs in memory
    logic [23:0] ci;
  } index_t;
  typedef enum logic [1:0] {
    OpEvent,
    OpDb,
    OpCmd,
    OpDone
  } op_e;

  // ---- writes on their way, in order, and how many of them were acknowledged ---------------------
  eq_idx_t head_eqn;
  logic head_valid, fifo_ready, eqe_go;
  logic [LevelW-1:0] arrived_q;
  logic done_op;
  eq_idx_t s1_idx_q;
  logic s1_valid_q, s1_leave, take;
  op_e op, s1_op_q;
  eq_idx_t idx;

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(EqIdxW), .Depth(Depth)) u_begun (
    .clk_i, .rst_ni,
    .in_valid_i(eqe_go), .in_ready_o(fifo_ready), .in_data_i(s1_idx_q),
    .out_valid_o(head_valid), .out_ready_i(take && op == OpDone), .out_data_o(head_eqn),
    .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign done_op = head_valid && arrived_q != 0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) arrived_q <= '0;
    else arrived_q <= arrived_q + LevelW'(b_valid_i) - LevelW'(take && op == OpDone);
  end

  // ---- first cycle: choose and read -------------------------------------------------------------
  logic pick_async, last_async_q, ev_any;

  assign pick_async = async_valid_i && !(comp_valid_i && last_async_q);
  // room for the write, so that the second cycle never waits for an acknowledge
  assign ev_any = (comp_valid_i || async_valid_i) && fifo_ready;
  always_comb begin
    op = OpEvent;
    idx = pick_async ? '0 : comp_i.eqn;
    if (done_op) begin
      op = OpDone;
      idx = head_eqn;
    end else if (cmd_valid_i) begin
      op = OpCmd;
      idx = cmd_idx_i;
    end else if (db_valid_i) begin
      op = OpDb;
      idx = db_eqn_i[EqIdxW-1:0];
    end
  end
  assign take = !s1_valid_q && (done_op || cmd_valid_i || db_valid_i || ev_any);
  assign cmd_ready_o = !s1_valid_q && !done_op;
  assign db_ready_o = cmd_ready_o && !cmd_valid_i;
  assign async_ready_o = db_ready_o && !db_valid_i && fifo_ready && pick_async;
  assign comp_ready_o = db_ready_o && !db_valid_i && fifo_ready && !pick_async;

  async_ev_t s1_ev_q;
  logic [23:0] s1_ci_q;
  logic s1_arm_q, s1_db_ok_q, s1_exists_q;
  eq_cmd_e s1_cmd_q;
  fixed_t s1_fixed_q;
  logic [NumEq-1:0] exists_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      last_async_q <= 1'b0;
    end else begin
      if (take) s1_valid_q <= 1'b1;
      else if (s1_leave) s1_valid_q <= 1'b0;
      if (take && op == OpEvent) last_async_q <= pick_async;
    end
    if (take) begin
      s1_op_q <= op;
      s1_idx_q <= idx;
      s1_exists_q <= exists_q[idx];
      s1_ev_q <= pick_async ? async_i :
                 '{ev_type: rnic_regs_pkg::EqeTypeCompletion, object: 32'(comp_i.cqn), detail: '0};
      s1_ci_q <= db_ci_i;
      s1_arm_q <= db_arm_i;
      s1_db_ok_q <= 32'(db_eqn_i) < NumEq;
      s1_cmd_q <= cmd_op_i;
      s1_fixed_q <= '{log_size: cmd_log_size_i, irq_vec: cmd_vector_i, addr: cmd_addr_i};
    end
  end

  // ---- contexts ---------------------------------------------------------------------------------
  fixed_t fixed;
  index_t index, index_wr;
  logic create, destroy, index_we;

  rnic_ram #(.Width($bits(fixed_t)), .Depth(NumEq)) u_fixed (
    .clk_i, .we_i(create), .waddr_i(s1_idx_q), .wdata_i(s1_fixed_q),
    .re_i(take), .raddr_i(idx), .rdata_o(fixed)
  );
  rnic_ram #(.Width($bits(index_t)), .Depth(NumEq)) u_index (
    .clk_i, .we_i(index_we), .waddr_i(s1_idx_q), .wdata_i(index_wr),
    .re_i(take), .raddr_i(idx), .rdata_o(index)
  );

  // ---- second cycle: decide and write back ------------------------------------------------------
  logic out_free, full, eqe_write, db_good, irq, lost;
  logic [23:0] size, used, done_next;

  assign size = 24'd1 << fixed.log_size;
  assign used = index.pi - index.ci;
  assign full = used >= size;
  assign done_next = index.done + 24'd1;
  assign eqe_write = s1_valid_q && s1_op_q == OpEvent && s1_exists_q && !full;
  assign eqe_go = eqe_write && out_free;
  assign s1_leave = s1_valid_q && (!eqe_write || out_free);
  assign db_good = s1_db_ok_q && s1_exists_q && (s1_ci_q - index.ci) <= used;
  assign create = s1_valid_q && s1_op_q == OpCmd && s1_cmd_q == EqCmdCreate;
  assign destroy = s1_valid_q && s1_op_q == OpCmd && s1_cmd_q == EqCmdDestroy;

  always_comb begin
    index_wr = index;
    index_we = 1'b0;
    irq = 1'b0;
    lost = 1'b0;
    if (s1_valid_q) begin
      unique case (s1_op_q)
        OpEvent: begin
          lost = s1_exists_q && full;
          index_we = eqe_go || lost;
          if (lost) index_wr.overrun = 1'b1;
          else index_wr.pi = index.pi + 24'd1;
        end
        OpDone: begin
          index_we = 1'b1;
          index_wr.done = done_next;
          // software may have read it, and said so, before its write was acknowledged
          irq = index.armed && signed'(done_next - index.ci) > 0;
        end
        OpDb: begin
          index_we = db_good;
          index_wr.ci = s1_ci_q;
          if (db_good && s1_arm_q) begin
            irq = signed'(index.done - s1_ci_q) > 0;
            index_wr.armed = 1'b1;
          end
        end
        default: begin
          index_we = create || destroy;
          index_wr = '0;
        end
      endcase
      if (irq) index_wr.armed = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      exists_q <= '0;
      cmd_rsp_valid_o <= 1'b0;
      irq_valid_o <= 1'b0;
    end else begin
      if (create || destroy) exists_q[s1_idx_q] <= create;
      cmd_rsp_valid_o <= s1_valid_q && s1_op_q == OpCmd;
      irq_valid_o <= irq && s1_exists_q;
    end
    irq_vec_o <= fixed.irq_vec;
    if (s1_valid_q && s1_op_q == OpCmd) begin
      cmd_rsp_o <= '{exists: s1_exists_q, overrun: index.overrun, armed: index.armed,
                     log_size: fixed.log_size, irq_vec: fixed.irq_vec, addr: {fixed.addr, 6'd0},
                     pi: index.pi, ci: index.ci};
    end
  end

  // ---- write ------------------------------------------------------------------------------------
  rnic_regs_pkg::eqe_t eqe;
  logic out_idle;
  assign eqe = '{
    event_type: s1_ev_q.ev_type,
    object: s1_ev_q.object,
    detail: s1_ev_q.detail,
    phase: ~|(index.pi & size),
    default: '0
  };
  entry_writer #(.DataW(DataW), .EntryW(8 * rnic_regs_pkg::EqeBytes)) u_write (
    .clk_i, .rst_ni, .in_valid_i(eqe_write), .in_ready_o(out_free), .in_data_i(eqe),
    .in_addr_i({fixed.addr, 2'b00} + {36'd0, index.pi & (size - 24'd1)}),
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .idle_o(out_idle)
  );

  // ---- drain: writes begun and looked at after their acknowledge ----------------------------------
  logic drain_empty;
  drain_count u_drain (
    .clk_i, .rst_ni, .begin_i(eqe_go), .ended_i({1'b0, s1_leave && s1_op_q == OpDone}), .hold_i(s1_valid_q),
    .drain_i, .done_o(drain_done_o), .empty_o(drain_empty)
  );
  assign idle_o = !s1_valid_q && out_idle && drain_empty && !irq_valid_o && !comp_valid_i &&
                  !async_valid_i && !db_valid_i && !cmd_valid_i;

  // ---- events for the counters ----------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ev_eqe_o <= 1'b0;
      ev_lost_o <= 1'b0;
      ev_bad_db_o <= 1'b0;
      ev_axi_err_o <= 1'b0;
    end else begin
      ev_eqe_o <= b_valid_i && !b_err_i;
      ev_lost_o <= lost;
      ev_bad_db_o <= s1_valid_q && s1_op_q == OpDb && !db_good;
      ev_axi_err_o <= b_valid_i && b_err_i;
    end
  end

endmodule
