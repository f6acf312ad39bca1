// SPDX-License-Identifier: Apache-2.0
//
// Completion queues: contexts, CQE writes, consumer doorbells, overrun; arming and moderation of completion events.
//
// Contexts live in host memory, 64 bytes each (cq_line_t below; not for software to read or write); those in use are in a cache
// (lib/ctx_cache). CQEs, doorbells (lib/doorbell_list), expired timers and commands go through one queue, whose contexts are fetched
// ahead, and are carried out in order: one every 2 cycles if its context is there. So a miss delays what is behind it, but the
// misses of all that wait run at the same time. Commands go before timers, and doorbells and CQEs in turn, into the queue. A CQE's write
// request is offered 4 cycles after it was taken. in_ready_o falls while the queue is full; the queue waits for memory only.
//
// A CQ of 2^n entries holds 2^n-1 CQEs: the one that fills the last entry gets status cq_overrun
// (its own status is lost), and from then on the CQ takes no more (each lost CQE is told at
// ev_lost_o) until it is destroyed: IBTA 11.2.8 calls such a CQ unusable. The phase bit is 1 on the
// first pass over the ring. A doorbell whose consumer index lies outside [ci, pi] changes nothing
// (ev_bad_db_o); a CQE counts the room that those give back which were taken before it, though it may be carried out before them. One that arms a CQ without EQ only moves the index, and is told too. DESTROY is carried out behind the doorbells
// that came before it.
//
// A CQ is armed for its next CQE (any) or for its next solicited or failed one (solicited); any wins over solicited. The doorbell
// that arms carries the consumer index: a CQE behind it that would have raised the event raises it at once. So each arming
// raises one event, whenever the CQE comes. The event disarms. It is raised after the acknowledges of all CQEs that were begun
// before (cq_events), and so is a cq_overrun event.
// Moderation (period not 0) holds the event back until `count` such CQEs are there (0: no bound) or `period` microseconds have passed
// since the first of them or, if that came before, since the arming. A change of moderation reports what is held back. Arming for
// solicited CQEs counts those of before as one. Timers run by CQN (lib/timer_tree), whether or not the context is
// on chip; the context tells whether its timer was started, and its deadline: an expiry that was overtaken has no effect. A timer is
// never early, and late by what waits in the queue, at most 16 cycles per timer that fires at once.
//
// Host memory that refuses a context: a command is answered cmd_rsp_err_o, and may be tried again; a CQE, doorbell or timer
// makes the CQ unusable until it is destroyed or made anew (event cq_fatal). After a refused write-back all contexts are refused.
// After reset nothing is carried out before ready_o, some thousand cycles.

module cqe_writer
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned ClkPs = 4000,
  parameter int unsigned LogSets = CqLogSets,
  parameter int unsigned LogWays = CqLogWays
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [63:0]        time_i,
  output logic               ready_o,
  // the memory of the contexts
  input  ctx_mem_t           mem_i,
  // completions
  input  logic               in_valid_i,
  output logic               in_ready_o,
  input  cqe_ev_t            in_i,
  input  qpn_t               in_qpn_i,    // of in_i.qp, which may soon be another QP's slot
  // CQ doorbells
  input  logic               db_valid_i,
  output logic               db_ready_o,
  input  logic [23:0]        db_cqn_i,
  input  cq_ptr_t            db_ci_i,
  input  cq_arm_t            db_arm_i,
  // commands, one at a time, for CQNs that memory was given for; the answer stays until the next one
  input  logic               cmd_valid_i,
  output logic               cmd_ready_o,
  input  cq_cmd_e            cmd_op_i,
  input  cq_idx_t            cmd_idx_i,
  input  logic [63:6]        cmd_addr_i,      // create
  input  logic [3:0]         cmd_log_size_i,
  input  logic [7:0]         cmd_eqn_i,
  input  cq_mod_t            cmd_mod_i,        // create, modify
  output logic               cmd_rsp_valid_o,
  output logic               cmd_rsp_err_o,
  output cq_ctx_t            cmd_rsp_o,
  // AXI write client: CQEs
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
  // AXI clients: contexts
  output logic               ctx_ar_valid_o,
  input  logic               ctx_ar_ready_i,
  output logic [63:0]        ctx_ar_addr_o,
  output logic [7:0]         ctx_ar_len_o,
  input  logic               ctx_r_valid_i,
  input  logic [DataW-1:0]   ctx_r_data_i,
  input  logic               ctx_r_last_i,
  input  logic               ctx_r_err_i,
  output logic               ctx_aw_valid_o,
  input  logic               ctx_aw_ready_i,
  output logic [63:0]        ctx_aw_addr_o,
  output logic [7:0]         ctx_aw_len_o,
  output logic               ctx_w_valid_o,
  input  logic               ctx_w_ready_i,
  output logic [DataW-1:0]   ctx_w_data_o,
  output logic [DataW/8-1:0] ctx_w_strb_o,
  output logic               ctx_w_last_o,
  input  logic               ctx_b_valid_i,
  input  logic               ctx_b_err_i,
  // completion events; cq_overrun and cq_fatal events
  output logic               comp_valid_o,
  input  logic               comp_ready_i,
  output comp_ev_t           comp_o,
  output logic               cqerr_valid_o,
  input  logic               cqerr_ready_i,
  output async_ev_t          cqerr_o,
  // timers: none fires before wake_o
  output logic               wake_valid_o,
  output logic [63:0]        wake_o,
  input  logic               drain_i,
  output logic               drain_done_o,
  // events
  output logic               ev_cqe_o,      // CQE written
  output logic               ev_lost_o,     // CQE lost
  output logic               ev_overrun_o,  // a CQ became unusable: full
  output logic               ev_fatal_o,    // a CQ became unusable: host memory refused its context
  output logic [1:0]         ev_error_o,    // CQE with an error other than flush: of a send, of a receive
  output logic [1:0]         ev_flush_o,    // CQE with flush error
  output logic               ev_bad_db_o,
  output logic               ev_axi_err_o,
  output ctx_ev_t            ev_ctx_o,
  // last WQE reached, or send queue drained, of a QP: its CQEs are written
  output logic               last_valid_o,
  input  logic               last_ready_i,
  output qpn_t               last_qpn_o,
  output logic               last_drained_o,
  output logic               idle_o
);

  localparam int unsigned EventDepth = 64;
  localparam int unsigned JobW = 4;             // log2 of the jobs that wait
  localparam int unsigned NumJob = 1 << JobW;
  localparam int unsigned TimeW = 48;
  localparam int unsigned CycPerUs = (1_000_000 + ClkPs - 1) / ClkPs;
  typedef logic [TimeW-1:0] time_t;

  typedef enum logic [2:0] {
    OpCqe,
    OpLast,
    OpDb,
    OpTimer,
    OpCmd
  } op_e;
  typedef struct packed {
    op_e         op;
    cq_idx_t     cqn;
    cqe_ev_t     ev;           // OpCqe, OpLast; its cqn is the one above
    qpn_t        qpn;
    cq_ptr_t     ci;           // OpDb
    cq_arm_t     arm;
  } job_t;
  typedef struct packed {
    logic        exists;
    logic        overrun;
    logic [3:0]  log_size;
    logic [7:0]  eqn;
    logic [57:0] addr;         // bits 63:6
    cq_ptr_t     pi;
    cq_ptr_t     ci;
    cq_ptr_t     sol;          // pi after the newest solicited or failed one
    logic        sol_valid;    // it is not consumed
    cq_arm_t     arm;
    cq_mod_t     moderation;
    logic [15:0] cnt;          // CQEs held back
    logic        running;      // the timer was started
    time_t       deadline;
  } cq_line_t;

  time_t now;
  assign now = time_i[TimeW-1:0];

  // ---- doorbells -------------------------------------------------------------------------------------
  logic db_in_range, db_take, db_valid, db_ready, db_swept, db_hold, db_listed, db_idle;
  logic db_peek, db_clear, db_clear_ready;
  cq_idx_t cqn, db_cqn;        // cqn: of the job at work
  cq_ptr_t db_ci, ci_told;
  cq_arm_t db_arm;
  assign db_in_range = mem_i.on && db_cqn_i >> mem_i.log_num == '0;
  assign db_ready_o = db_take || !db_in_range;
  doorbell_list #(.NumW(CqIdxW), .IdxW($bits(cq_ptr_t)), .FlagW($bits(cq_arm_t))) u_doorbells (
    .clk_i, .rst_ni, .ready_o(db_swept),
    .in_valid_i(db_valid_i && db_in_range), .in_ready_o(db_take), .in_num_i(db_cqn_i[CqIdxW-1:0]), .in_idx_i(db_ci_i),
    .in_flags_i(db_arm_i),
    .out_valid_o(db_valid), .out_ready_i(db_ready), .out_num_o(db_cqn), .out_idx_o(db_ci), .out_flags_o(db_arm),
    .peek_i(db_peek), .peek_num_i(cqn), .peek_idx_o(ci_told),
    .clear_valid_i(db_clear), .clear_ready_o(db_clear_ready), .clear_num_i(cqn),
    .hold_o(db_hold), .ev_listed_o(db_listed), .idle_o(db_idle)
  );

  // ---- timers ----------------------------------------------------------------------------------------
  logic tmr_swept, tmr_set, tmr_on, fire_valid, next_valid, any_timer, exp_valid_q;
  cq_idx_t fire_cqn, exp_cqn_q;
  time_t next, deadline;
  timer_tree #(.Num(1 << CqIdxW), .TickW(TimeW)) u_timers (
    .clk_i, .rst_ni, .ready_o(tmr_swept), .now_i(now),
    .set_valid_i(tmr_set), .set_on_i(tmr_on), .set_idx_i(cqn), .set_deadline_i(deadline),
    .fire_ready_i(!exp_valid_q && !fire_valid), .fire_valid_o(fire_valid), .fire_idx_o(fire_cqn),
    .next_valid_o(next_valid), .any_o(any_timer), .next_o(next)
  );

  // ---- jobs ------------------------------------------------------------------------------------------
  job_t jobs[NumJob];
  cq_idx_t job_cqns[NumJob];
  logic [NumJob-1:0] job_ctx_q;                 // needs the context
  logic [JobW:0] head_q, tail_q, ahead_q;       // oldest, next free, next to be fetched ahead
  job_t new_job, job;
  logic room, push, pop, any_job, cmd_go, exp_ready, last_db_q, db_first, db_before, pf_valid, pf_done;
  assign room = (tail_q - head_q) != (JobW+1)'(NumJob);
  assign any_job = tail_q != head_q;
  assign job = jobs[head_q[JobW-1:0]];
  assign cqn = job.cqn;
  assign cmd_go = cmd_valid_i && (cmd_op_i != CqCmdDestroy || db_before);
  assign db_first = db_valid && !(in_valid_i && last_db_q);
  assign cmd_ready_o = room && cmd_go;
  assign exp_ready = room && !cmd_go;
  assign db_ready = exp_ready && !exp_valid_q && db_first;
  assign in_ready_o = exp_ready && !exp_valid_q && !db_first;
  assign push = room && (cmd_go || exp_valid_q || db_valid || in_valid_i);
  always_comb begin
    new_job = '{op: in_i.last_wqe ? OpLast : OpCqe, cqn: in_i.cqn, ev: in_i, qpn: in_qpn_i, ci: db_ci, arm: db_arm};
    if (cmd_go) begin
      new_job.op = OpCmd;
      new_job.cqn = cmd_idx_i;
    end else if (exp_valid_q) begin
      new_job.op = OpTimer;
      new_job.cqn = exp_cqn_q;
    end else if (db_first) begin
      new_job.op = OpDb;
      new_job.cqn = db_cqn;
    end
  end

  // of the one command
  cq_cmd_e cmd_op_q;
  logic [57:0] cmd_addr_q;
  logic [3:0] cmd_log_size_q;
  logic [7:0] cmd_eqn_q;
  cq_mod_t cmd_mod_q;

  // those behind the first, once each
  assign pf_valid = ahead_q != tail_q && ahead_q != head_q && job_ctx_q[ahead_q[JobW-1:0]];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      ahead_q <= '0;
      last_db_q <= 1'b0;
      exp_valid_q <= 1'b0;
    end else begin
      if (push) tail_q <= tail_q + 1'b1;
      if (pop) head_q <= head_q + 1'b1;
      if (ahead_q != tail_q && (!pf_valid || pf_done)) ahead_q <= ahead_q + 1'b1;
      if (push && (db_ready || in_ready_o)) last_db_q <= db_ready;
      if (fire_valid) exp_valid_q <= 1'b1;
      else if (exp_ready) exp_valid_q <= 1'b0;
    end
    if (fire_valid) exp_cqn_q <= fire_cqn;
    if (push) begin
      jobs[tail_q[JobW-1:0]] <= new_job;
      job_cqns[tail_q[JobW-1:0]] <= new_job.cqn;
      job_ctx_q[tail_q[JobW-1:0]] <= new_job.op != OpLast;
    end
    if (cmd_valid_i && cmd_ready_o) begin
      cmd_op_q <= cmd_op_i;
      cmd_addr_q <= cmd_addr_i;
      cmd_log_size_q <= cmd_log_size_i;
      cmd_eqn_q <= cmd_eqn_i;
      cmd_mod_q <= cmd_mod_i;
    end
  end

  // ---- contexts --------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    StAsk,
    StWait,      // for the context
    StHave       // it waits for room
  } state_e;
  state_e state_q;
  logic own_valid, own_ready, own_done, own_ok, own_we, own_we_ready, ctx_idle, act, leave;
  logic ok, ok_q, dead, dead_swept;             // ok: the context is there; dead: the CQ is unusable
  cq_line_t line, line_q, old, line_d;
  assign ready_o = db_swept && tmr_swept && dead_swept;
  assign db_peek = own_valid && own_ready && job.op == OpCqe;
  assign own_valid = any_job && job.op != OpLast && state_q == StAsk && ready_o;
  // verilator lint_off PINCONNECTEMPTY
  // no readers
  ctx_cache #(.DataW(DataW), .EntryW($bits(cq_line_t)), .IdxW(CqIdxW), .LogSets(LogSets), .LogWays(LogWays), .NumPorts(1)) u_cache (
    .clk_i, .rst_ni, .mem_on_i(mem_i.on), .mem_base_i(mem_i.base), .mem_log_num_i(mem_i.log_num),
    .req_valid_i(1'b0), .req_ready_o(), .req_idx_i('0), .rsp_valid_o(), .rsp_o(line),
    .pf_valid_i(pf_valid), .pf_idx_i(job_cqns[ahead_q[JobW-1:0]]), .pf_done_o(pf_done), .pf_hit_o(),
    .own_valid_i(own_valid), .own_ready_o(own_ready), .own_idx_i(cqn), .own_pin_i(1'b0), .own_done_o(own_done),
    .own_ok_o(own_ok), .own_we_i(own_we), .own_we_ready_o(own_we_ready), .own_we_pin_i(1'b0), .own_entry_i(line_d),
    .own_release_i(leave),
    .ar_valid_o(ctx_ar_valid_o), .ar_ready_i(ctx_ar_ready_i), .ar_addr_o(ctx_ar_addr_o), .ar_len_o(ctx_ar_len_o),
    .r_valid_i(ctx_r_valid_i), .r_data_i(ctx_r_data_i), .r_last_i(ctx_r_last_i), .r_err_i(ctx_r_err_i),
    .aw_valid_o(ctx_aw_valid_o), .aw_ready_i(ctx_aw_ready_i), .aw_addr_o(ctx_aw_addr_o), .aw_len_o(ctx_aw_len_o),
    .w_valid_o(ctx_w_valid_o), .w_ready_i(ctx_w_ready_i), .w_data_o(ctx_w_data_o), .w_strb_o(ctx_w_strb_o), .w_last_o(ctx_w_last_o),
    .b_valid_i(ctx_b_valid_i), .b_err_i(ctx_b_err_i),
    .ev_hit_o(ev_ctx_o.hit), .ev_miss_o(ev_ctx_o.miss), .ev_evict_o(ev_ctx_o.evict), .ev_writeback_o(ev_ctx_o.writeback),
    .ev_stall_o(ev_ctx_o.stall), .ev_rd_err_o(ev_ctx_o.rd_err), .ev_wr_err_o(ev_ctx_o.wr_err), .idle_o(ctx_idle)
  );
  // verilator lint_on PINCONNECTEMPTY
  assign act = state_q == StHave || (state_q == StWait && own_done) || (state_q == StAsk && any_job && job.op == OpLast);
  assign old = state_q == StHave ? line_q : line;
  assign ok = state_q == StHave ? ok_q : own_ok;
  assign pop = leave;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StAsk;
    end else begin
      if (own_valid && own_ready) state_q <= StWait;
      if (leave) state_q <= StAsk;
      else if (state_q == StWait && own_done) state_q <= StHave;
    end
    if (state_q == StWait && own_done) begin
      line_q <= line;
      ok_q <= own_ok;
    end
  end

  logic dead_we, ev_fatal;
  zero_ram #(.Width(1), .Depth(1 << CqIdxW)) u_dead (
    .clk_i, .rst_ni, .ready_o(dead_swept), .we_i(dead_we), .waddr_i(cqn), .wdata_i(ev_fatal),
    .re_i(own_valid && own_ready), .raddr_i(cqn), .rdata_o(dead)
  );

  // ---- what a job does to the context ------------------------------------------------------------------
  cq_ptr_t used, size, left, pi_next, place;
  logic alive, last_room, cqe_write, db_good, fire, start, stop, want_start, has_eq, sol, cmd_act;
  cq_arm_t arm;
  logic [15:0] num;
  assign size = cq_ptr_t'(1) << old.log_size;
  assign used = old.pi - old.ci;
  assign pi_next = old.pi + 1'b1;
  assign place = old.pi & (size - 1'b1);
  assign left = old.pi - job.ci;
  assign has_eq = old.eqn != NoEq;
  assign alive = ok && old.exists && !dead;
  // a doorbell that was taken before the CQE may be behind it
  assign last_room = (ci_told - old.ci <= used ? old.pi - ci_told : used) >= size - 1'b1;
  assign cqe_write = act && job.op == OpCqe && alive && !old.overrun;
  assign sol = job.ev.solicited || job.ev.status != rnic_regs_pkg::WcStatusSuccess || last_room;
  assign db_good = alive && (job.ci - old.ci) <= used;
  assign ev_fatal = act && !ok && !dead && job.op inside {OpCqe, OpDb, OpTimer};
  assign cmd_act = act && job.op == OpCmd;
  assign arm = '{any: job.arm.any || old.arm.any, solicited: !(job.arm.any || old.arm.any)};
  assign deadline = now + TimeW'(old.moderation.period * 32'(CycPerUs));

  function automatic logic reached(input cq_mod_t m, input logic [15:0] n);
    return m.period == 0 || (m.count != 0 && n >= m.count);
  endfunction

  always_comb begin
    line_d = old;
    own_we = 1'b0;
    num = '0;
    fire = 1'b0;
    want_start = 1'b0;
    stop = 1'b0;
    if (act) begin
      unique case (job.op)
        OpCqe: if (cqe_write) begin
          own_we = 1'b1;
          line_d.pi = pi_next;
          line_d.overrun = last_room;
          if (sol) begin
            line_d.sol = pi_next;
            line_d.sol_valid = 1'b1;
          end
          if (has_eq && (old.arm.any || (old.arm.solicited && sol))) begin
            num = old.cnt == '1 ? '1 : old.cnt + 16'd1;
            line_d.cnt = num;
            fire = reached(old.moderation, num);
            want_start = !fire;
          end
        end
        OpDb: if (db_good) begin
          own_we = 1'b1;
          line_d.ci = job.ci;
          if (signed'(old.sol - job.ci) <= 0) line_d.sol_valid = 1'b0;
          if (has_eq && job.arm != '0) begin
            line_d.arm = arm;
            if (left != 0) num = arm.any ? 16'(left) : 16'(line_d.sol_valid);
            line_d.cnt = num;
            fire = num != 0 && reached(old.moderation, num);
            want_start = num != 0 && !fire;
            stop = num == 0;
          end
        end
        OpTimer: begin
          fire = alive && old.running && now >= old.deadline;
          own_we = fire;
        end
        OpCmd: if (ok) begin
          unique case (cmd_op_q)
            CqCmdCreate: begin
              own_we = 1'b1;
              line_d = '0;
              line_d.exists = 1'b1;
              line_d.log_size = cmd_log_size_q;
              line_d.eqn = cmd_eqn_q;
              line_d.addr = cmd_addr_q;
              line_d.moderation = cmd_mod_q;
            end
            CqCmdDestroy: begin
              own_we = 1'b1;
              line_d.exists = 1'b0;
              line_d.arm = '0;
              stop = 1'b1;
            end
            CqCmdModify: begin
              own_we = 1'b1;
              line_d.moderation = cmd_mod_q;
              fire = old.running && !dead;
            end
            default: own_we = 1'b0;
          endcase
        end
        default: own_we = 1'b0;
      endcase
      if (fire) begin
        line_d.arm = '0;
        line_d.cnt = '0;
        stop = 1'b1;
      end
      if (want_start && !old.running) line_d.deadline = deadline;
      line_d.running = (line_d.running || want_start) && !stop;
    end
  end
  assign start = want_start && !old.running;

  // ---- all parts at the same time ----------------------------------------------------------------------
  logic out_free, fly_valid, fly_ready, fly_idle, fly_done, before_done;
  cq_flight_t fly;
  assign fly = '{
    cqe: cqe_write, comp: fire, overrun: cqe_write && last_room, fatal: ev_fatal, last: job.op == OpLast,
    drained: job.ev.drained, eqn: old.eqn[EqIdxW-1:0], cqn: cqn, qpn: job.qpn
  };
  assign fly_valid = cqe_write || fire || ev_fatal || (act && job.op == OpLast);
  assign leave = act && (!fly_valid || fly_ready) && (!cqe_write || out_free) && (!own_we || own_we_ready) &&
                 (!db_clear || db_clear_ready);
  // its step is the one of this cycle, if all else is ready
  assign db_clear = cmd_act && ok && cmd_op_q == CqCmdCreate && own_we_ready;
  assign tmr_set = leave && (start || (stop && old.running));
  assign tmr_on = start;
  assign dead_we = leave && (ev_fatal || (cmd_act && ok && cmd_op_q inside {CqCmdCreate, CqCmdDestroy}));

  cq_events #(.Depth(EventDepth)) u_events (
    .clk_i, .rst_ni, .in_valid_i(fly_valid && leave), .in_ready_o(fly_ready), .in_i(fly), .done_i(b_valid_i),
    .comp_valid_o, .comp_ready_i, .comp_o, .cqerr_valid_o, .cqerr_ready_i, .cqerr_o,
    .last_valid_o, .last_ready_i, .last_qpn_o, .last_drained_o,
    .drain_i(drain_i && before_done), .drain_done_o(fly_done), .idle_o(fly_idle)
  );

  rnic_regs_pkg::cqe_t cqe;
  logic out_idle;
  assign cqe = '{
    index: job.ev.index,
    opcode: job.ev.opcode,
    status: last_room ? rnic_regs_pkg::WcStatusCqOverrun : job.ev.status,
    qpn: 24'(job.qpn),
    syndrome: job.ev.syndrome,
    byte_len: job.ev.byte_len,
    imm: job.ev.imm,
    src_qp: job.ev.src_qp,
    with_imm: job.ev.with_imm,
    with_inv: job.ev.with_inv,
    with_grh: job.ev.with_grh,
    timestamp: time_i,
    phase: ~|(old.pi & size),
    default: '0
  };
  entry_writer #(.DataW(DataW), .EntryW(8 * rnic_regs_pkg::CqeBytes)) u_write (
    .clk_i, .rst_ni, .in_valid_i(cqe_write && leave), .in_ready_o(out_free), .in_data_i(cqe),
    .in_addr_i({old.addr, 1'b0} + 59'(place)),
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .idle_o(out_idle)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) cmd_rsp_valid_o <= 1'b0;
    else cmd_rsp_valid_o <= cmd_act && leave;
    if (cmd_act && leave) begin
      cmd_rsp_err_o <= !ok;
      cmd_rsp_o <= '{
        exists: old.exists, overrun: old.overrun || dead, log_size: old.log_size, eqn: old.eqn, addr: {old.addr, 6'd0},
        pi: old.pi, ci: old.ci, arm: old.arm, moderation: old.moderation
      };
    end
  end

  assign wake_valid_o = next_valid && !exp_valid_q && !any_job && (!any_timer || next > now);
  assign wake_o = any_timer ? 64'(next) : '1;

  // ---- drain: doorbells, then jobs, then what is on its way; a DESTROY waits for the doorbells before it ------
  logic db_end, dbs_done, jobs_done;
  assign db_end = leave && job.op == OpDb;
  assign before_done = dbs_done && jobs_done;
  // verilator lint_off PINCONNECTEMPTY
  // idle is told by what is counted
  drain_count #(.CntW(CqIdxW + 2)) u_db_destroy (
    .clk_i, .rst_ni, .begin_i(db_listed), .ended_i({1'b0, db_end}), .hold_i(db_hold),
    .drain_i(cmd_valid_i && cmd_op_i == CqCmdDestroy), .done_o(db_before), .empty_o()
  );
  drain_count #(.CntW(CqIdxW + 2)) u_db_drain (
    .clk_i, .rst_ni, .begin_i(db_listed), .ended_i({1'b0, db_end}), .hold_i(db_hold),
    .drain_i, .done_o(dbs_done), .empty_o()
  );
  drain_count u_job_drain (
    .clk_i, .rst_ni, .begin_i(push), .ended_i({1'b0, pop}), .hold_i(1'b0),
    .drain_i(drain_i && dbs_done), .done_o(jobs_done), .empty_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign drain_done_o = drain_i && before_done && fly_done;
  assign idle_o = ready_o && !any_job && !exp_valid_q && db_idle && ctx_idle && out_idle && fly_idle &&
                  !in_valid_i && !db_valid_i && !cmd_valid_i;

  // ---- events ------------------------------------------------------------------------------------------
  logic [1:0] side;
  logic cqe_end;
  assign side = job.ev.opcode inside {rnic_regs_pkg::CqeOpcodeRecv, rnic_regs_pkg::CqeOpcodeRecvRdmaImm} ? 2'b10 : 2'b01;
  assign cqe_end = leave && job.op == OpCqe;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ev_cqe_o <= 1'b0;
      ev_lost_o <= 1'b0;
      ev_overrun_o <= 1'b0;
      ev_fatal_o <= 1'b0;
      ev_error_o <= '0;
      ev_flush_o <= '0;
      ev_bad_db_o <= 1'b0;
      ev_axi_err_o <= 1'b0;
    end else begin
      ev_cqe_o <= b_valid_i && !b_err_i;
      ev_axi_err_o <= b_valid_i && b_err_i;
      ev_lost_o <= cqe_end && (!cqe_write || last_room);
      ev_overrun_o <= cqe_end && cqe_write && last_room;
      ev_fatal_o <= leave && ev_fatal;
      ev_flush_o <= cqe_end && job.ev.status == rnic_regs_pkg::WcStatusWrFlushErr ? side : 2'b00;
      ev_error_o <= cqe_end && job.ev.status != rnic_regs_pkg::WcStatusSuccess &&
                    job.ev.status != rnic_regs_pkg::WcStatusWrFlushErr ? side : 2'b00;
      ev_bad_db_o <= (db_valid_i && !db_in_range) || (db_end && (!db_good || (job.arm != '0 && !has_eq)));
    end
  end

endmodule
