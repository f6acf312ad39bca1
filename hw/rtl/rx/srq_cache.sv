// SPDX-License-Identifier: Apache-2.0
//
// Shared receive queues: contexts, doorbells, prefetch of receive WQEs, the WQE for a message, SRQ limit (docs/srq-cache.md).
//
// Contexts live in host memory, 64 bytes each (srq_line_t below; not for software to read or write); those in use are in a cache
// (lib/ctx_cache). Takes (req_*, one at a time, of a message that needs a WQE) go first; doorbells (lib/doorbell_list), hints and commands go
// through one queue, whose contexts are fetched ahead, and are carried out in order, each when its context is here: a take does not wait for
// the contexts of others. Each is one step on the one context: read, decide, write. A step looks at the producer index that the program has told last, so a take need not wait for the doorbell before it.
//
// WQEs are prefetched into places of 16, by the low bits of the SRQN. Their indices are with the place, not in the context, so what
// comes from memory needs no context: what an SRQ has on chip is ci <= have <= fetch <= pi. An SRQ takes over the place
// of another one while no read into it is under way; what was there is read again when it is needed. After a doorbell, a hint, and a take
// that leaves room for 4, WQEs are asked for (rq_reads). No place changes hands away from the SRQ that a take waits for.
//
// A take is answered in the next cycle if context and WQE are here. Else it waits for host memory, and for nothing else. RqNone: nothing is
// posted. When fewer than `limit` WQEs are left, or are there when the limit is set, an event tells it once and the limit is off
// (IBTA 10.2.9.3). DESTROY and CREATE are carried out behind the doorbells that came before them, when no read of the SRQ is under way.
//
// Hints: a packet has come for the QP of a slot (hint_*); slot_* tells which SRQ the QPs of slots have. They fetch context and WQEs while the
// packets before are at work.
//
// Host memory that refuses a context: a command is answered cmd_rsp_err_o, and may be tried again; a take or doorbell makes the SRQ
// unusable until it is destroyed or made anew (event srq_fatal): takes get a WQE that is bad. After a refused write-back all contexts are
// refused. After reset nothing is carried out before ready_o, some thousand cycles.
//
// Throughput: a take per 2 cycles, other jobs likewise. Back-pressure: req_ready_o; doorbells never wait for memory; events wait for
// their taker, which waits for memory only, and steps that raise one for room in their queue.

module srq_cache
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned LogSets = SrqLogSets,
  parameter int unsigned LogWays = SrqLogWays,
  parameter int unsigned LogPlaces = SrqLogPlaces
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  output logic               ready_o,
  // the memory of the contexts
  input  ctx_mem_t           mem_i,
  // doorbells
  input  logic               db_valid_i,
  output logic               db_ready_o,
  input  logic [23:0]        db_srqn_i,
  input  logic [15:0]        db_pi_i,
  // the SRQ of a slot, when a QP comes into it; a packet for a slot
  input  logic               slot_we_i,
  input  qp_idx_t            slot_i,
  input  logic               slot_has_srq_i,
  input  srq_idx_t           slot_srqn_i,
  input  logic               hint_valid_i,
  input  qp_idx_t            hint_slot_i,
  // takes; the answer stays until the next one
  input  logic               req_valid_i,
  output logic               req_ready_o,
  input  srq_idx_t           req_srqn_i,
  output logic               rsp_valid_o,
  output srq_rsp_t           rsp_o,
  // commands, one at a time, for SRQNs that memory was given for; answered with what was there before, until the next one
  input  logic               cmd_valid_i,
  output logic               cmd_ready_o,
  input  srq_cmd_e           cmd_op_i,
  input  srq_idx_t           cmd_idx_i,
  input  srq_attr_t          cmd_attr_i,      // create
  input  logic [15:0]        cmd_limit_i,     // create, limit
  output logic               cmd_rsp_valid_o,
  output logic               cmd_rsp_err_o,
  output srq_ctx_t           cmd_rsp_o,
  // AXI read client: WQEs
  output logic               ar_valid_o,
  input  logic               ar_ready_i,
  output logic [63:0]        ar_addr_o,
  output logic [7:0]         ar_len_o,
  input  logic               r_valid_i,
  input  logic [DataW-1:0]   r_data_i,
  input  logic               r_last_i,
  input  logic               r_err_i,
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
  // srq_limit, srq_fatal
  output logic               event_valid_o,
  input  logic               event_ready_i,
  output async_ev_t          event_o,
  input  logic               drain_i,
  output logic               drain_done_o,
  output logic [2:0]         ev_wqe_o,        // WQEs asked for this cycle
  output logic               ev_limit_o,
  output logic               ev_fatal_o,      // an SRQ became unusable
  output logic               ev_bad_db_o,
  output logic               ev_axi_err_o,
  output ctx_ev_t            ev_ctx_o,
  output logic               idle_o
);

  localparam int unsigned LogStore = 4;       // WQEs of a place
  localparam int unsigned Places = 1 << LogPlaces;
  localparam int unsigned MaxBurst = 4;
  localparam int unsigned JobW = 4;           // log2 of the jobs that wait
  localparam int unsigned NumJob = 1 << JobW;
  localparam int unsigned EventDepth = 16;
  typedef logic [LogPlaces-1:0] place_t;
  typedef logic [SrqIdxW-LogPlaces-1:0] tag_t;

  typedef enum logic [1:0] {
    OpDb,
    OpHint,
    OpCmd
  } op_e;
  typedef struct packed {
    op_e      op;
    srq_idx_t srqn;
  } job_t;
  typedef struct packed {
    logic        exists;
    srq_attr_t   attr;
    logic [15:0] limit;
    wqe_idx_t    pi;           // posted
    wqe_idx_t    ci;           // taken
  } srq_line_t;
  typedef struct packed {
    logic     fatal;           // else limit
    srq_idx_t srqn;
  } event_t;

  // ---- doorbells -------------------------------------------------------------------------------------
  logic db_in_range, db_take, db_valid, db_ready, db_swept, db_hold, db_listed, db_idle, db_clear, db_clear_ready, own_fire;
  srq_idx_t db_srqn, ask_srqn, cur_q;          // ask: of what is asked for; cur: of the step
  wqe_idx_t told;                              // the index that the program told last
  assign db_in_range = mem_i.on && db_srqn_i >> mem_i.log_num == '0;
  assign db_ready_o = db_take || !db_in_range;
  // verilator lint_off PINCONNECTEMPTY
  // when a doorbell is carried out, the newest index counts
  doorbell_list #(.NumW(SrqIdxW), .IdxW(16), .FlagW(1)) u_doorbells (
    .clk_i, .rst_ni, .ready_o(db_swept),
    .in_valid_i(db_valid_i && db_in_range), .in_ready_o(db_take), .in_num_i(db_srqn_i[SrqIdxW-1:0]), .in_idx_i(db_pi_i), .in_flags_i('0),
    .out_valid_o(db_valid), .out_ready_i(db_ready), .out_num_o(db_srqn), .out_idx_o(), .out_flags_o(),
    .peek_i(own_fire), .peek_num_i(ask_srqn), .peek_idx_o(told),
    .clear_valid_i(db_clear), .clear_ready_o(db_clear_ready), .clear_num_i(cur_q),
    .hold_o(db_hold), .ev_listed_o(db_listed), .idle_o(db_idle)
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- places ----------------------------------------------------------------------------------------
  // pl: of the step, or of what is asked for; the others in their sections
  logic [Places-1:0] used_q;
  tag_t     tag_mem[Places];
  wqe_idx_t fetch_mem[Places];                 // asked for
  wqe_idx_t have_mem[Places];                  // arrived
  wqe_idx_t ci_mem[Places];                    // taken: as in the context
  // verilator lint_off UNUSEDSIGNAL
  function automatic place_t place_of(input srq_idx_t srqn);
    return srqn[LogPlaces-1:0];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- hints -----------------------------------------------------------------------------------------
  logic h1_q, h_has, h_here, hint_valid_q, hint_ready;
  srq_idx_t h_srqn, hint_srqn_q;
  rnic_ram #(.Width(1 + SrqIdxW), .Depth(NumQp)) u_slots (
    .clk_i, .we_i(slot_we_i), .waddr_i(slot_i), .wdata_i({slot_has_srq_i, slot_srqn_i}),
    .re_i(hint_valid_i), .raddr_i(hint_slot_i), .rdata_o({h_has, h_srqn})
  );
  // an SRQ with its place needs its context at most
  assign h_here = used_q[place_of(h_srqn)] && tag_mem[place_of(h_srqn)] == h_srqn[SrqIdxW-1:LogPlaces];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      h1_q <= 1'b0;
      hint_valid_q <= 1'b0;
    end else begin
      h1_q <= hint_valid_i;
      if (hint_ready) hint_valid_q <= 1'b0;
      if (h1_q && h_has && !h_here && ready_o) hint_valid_q <= 1'b1;
    end
    if (h1_q && !hint_valid_q) hint_srqn_q <= h_srqn;
  end

  // ---- jobs ------------------------------------------------------------------------------------------
  job_t jobs[NumJob];
  srq_idx_t job_srqns[NumJob];
  logic [JobW:0] head_q, tail_q, ahead_q;      // oldest, next free, next to be fetched ahead
  job_t new_job, job;
  logic room, push, pop, any_job, cmd_go, db_before, hint_first, last_hint_q, pf_job, pf_head, pf_hint, pf_done, pf_hit, job_here_q;
  assign room = (tail_q - head_q) != (JobW+1)'(NumJob);
  assign any_job = tail_q != head_q;
  assign job = jobs[head_q[JobW-1:0]];
  assign cmd_go = cmd_valid_i && (!(cmd_op_i inside {SrqCmdCreate, SrqCmdDestroy}) || db_before);
  assign hint_first = hint_valid_q && !(db_valid && last_hint_q);
  assign cmd_ready_o = room && cmd_go;
  assign hint_ready = room && !cmd_go && hint_first;
  assign db_ready = room && !cmd_go && !hint_first;
  assign push = room && (cmd_go || hint_valid_q || db_valid);
  always_comb begin
    new_job = '{op: OpDb, srqn: db_srqn};
    if (cmd_go) new_job = '{op: OpCmd, srqn: cmd_idx_i};
    else if (hint_first) new_job = '{op: OpHint, srqn: hint_srqn_q};
  end

  // of the one command
  srq_cmd_e cmd_op_q;
  srq_attr_t cmd_attr_q;
  logic [15:0] cmd_limit_q;

  // once each; then whether that of the first one is here
  assign pf_job = ahead_q != tail_q;
  assign pf_head = !pf_job && any_job && !job_here_q;
  assign pf_hint = h1_q && h_has && h_here;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      ahead_q <= '0;
      last_hint_q <= 1'b0;
      job_here_q <= 1'b0;
    end else begin
      if (push) tail_q <= tail_q + 1'b1;
      if (pop) head_q <= head_q + 1'b1;
      if (pf_job && (pf_done || (pop && ahead_q == head_q))) ahead_q <= ahead_q + 1'b1;
      if (push && !cmd_go) last_hint_q <= hint_first;
      // one that memory refuses is asked for, and answered so
      job_here_q <= !pop && (job_here_q || (pf_hit && (pf_head || (pf_job && ahead_q == head_q))) || (any_job && ev_ctx_o.rd_err));
    end
    if (push) begin
      jobs[tail_q[JobW-1:0]] <= new_job;
      job_srqns[tail_q[JobW-1:0]] <= new_job.srqn;
    end
    if (cmd_valid_i && cmd_ready_o) begin
      cmd_op_q <= cmd_op_i;
      cmd_attr_q <= cmd_attr_i;
      cmd_limit_q <= cmd_limit_i;
    end
  end

  // ---- contexts --------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    StAsk,
    StWait,      // for the context
    StHave       // it waits for room
  } state_e;
  typedef enum logic [1:0] {
    TakeIdle,
    TakeTry,     // to be looked at
    TakeRun,     // its step is under way
    TakeWait     // its WQE is to come
  } take_e;
  state_e state_q;
  take_e take_state_q;
  logic own_valid, own_ready, own_done, own_ok, own_we, own_we_ready, ctx_idle, act, first, leave;
  logic ask_take, cur_take_q, job_hold_q, again, reads_idle;
  logic ok, ok_q, dead, dead_swept;            // ok: the context is there; dead: the SRQ is unusable
  srq_idx_t take_srqn_q;
  srq_line_t line, line_q, old, line_d;
  assign ready_o = db_swept && dead_swept;
  assign ask_take = take_state_q == TakeTry || (take_state_q == TakeIdle && req_valid_i);
  assign req_ready_o = take_state_q == TakeIdle && ready_o;
  assign ask_srqn = !ask_take ? job.srqn : take_state_q == TakeTry ? take_srqn_q : req_srqn_i;
  assign own_valid = state_q == StAsk && ready_o && (ask_take || (any_job && job_here_q && !job_hold_q));
  assign own_fire = own_valid && own_ready;
  // verilator lint_off PINCONNECTEMPTY
  // no readers
  ctx_cache #(.DataW(DataW), .EntryW($bits(srq_line_t)), .IdxW(SrqIdxW), .LogSets(LogSets), .LogWays(LogWays), .NumPorts(1)) u_cache (
    .clk_i, .rst_ni, .mem_on_i(mem_i.on), .mem_base_i(mem_i.base), .mem_log_num_i(mem_i.log_num),
    .req_valid_i(1'b0), .req_ready_o(), .req_idx_i('0), .rsp_valid_o(), .rsp_o(line),
    .pf_valid_i(pf_job || pf_head || pf_hint), .pf_idx_i(pf_job || pf_head ? job_srqns[pf_job ? ahead_q[JobW-1:0] : head_q[JobW-1:0]] : h_srqn),
    .pf_done_o(pf_done), .pf_hit_o(pf_hit),
    .own_valid_i(own_valid), .own_ready_o(own_ready), .own_idx_i(ask_srqn), .own_pin_i(1'b0), .own_done_o(own_done),
    .own_ok_o(own_ok), .own_we_i(own_we && act), .own_we_ready_o(own_we_ready), .own_we_pin_i(1'b0), .own_entry_i(line_d),
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
  assign first = state_q == StWait && own_done;
  assign act = first || state_q == StHave;
  assign old = state_q == StHave ? line_q : line;
  assign ok = state_q == StHave ? ok_q : own_ok;
  assign pop = leave && !cur_take_q && !again;

  logic dead_we, ev_fatal;
  zero_ram #(.Width(1), .Depth(1 << SrqIdxW)) u_dead (
    .clk_i, .rst_ni, .ready_o(dead_swept), .we_i(dead_we), .waddr_i(cur_q), .wdata_i(ev_fatal),
    .re_i(own_fire), .raddr_i(ask_srqn), .rdata_o(dead)
  );

  // ---- its place -------------------------------------------------------------------------------------
  logic fill_valid, f_valid_q, p_own, p_quiet, here_q, store_re, take_over;
  srq_idx_t pl_srqn;
  place_t pl, f_place_q, fill_place;
  wqe_idx_t p_fetch, p_have, p_ci;
  logic [LogStore-1:0] fill_at;
  srq_entry_t fill, stored;
  assign pl_srqn = state_q == StAsk ? ask_srqn : cur_q;
  assign pl = place_of(pl_srqn);
  assign p_own = used_q[pl] && tag_mem[pl] == pl_srqn[SrqIdxW-1:LogPlaces];
  assign p_fetch = fetch_mem[pl];
  assign p_have = have_mem[pl];
  assign p_ci = ci_mem[pl];
  assign p_quiet = (!used_q[pl] || p_have == p_fetch) && !(f_valid_q && f_place_q == pl);   // no read into it is under way
  // the next WQE is read while the context is, again and again until that is there
  assign store_re = (own_fire && ask_take) || (state_q == StWait && cur_take_q && !own_done);
  rnic_ram #(.Width($bits(srq_entry_t)), .Depth(Places << LogStore)) u_store (
    .clk_i,
    .we_i(fill_valid), .waddr_i({fill_place, fill_at}), .wdata_i(fill),
    .re_i(store_re), .raddr_i({pl, p_ci[LogStore-1:0]}), .rdata_o(stored)
  );
  always_ff @(posedge clk_i) if (store_re) here_q <= p_own && p_have != p_ci;

  // of the take that waits: its WQE is here; it needs reads
  place_t k_pl;
  logic k_here, k_needs;
  assign k_pl = place_of(take_srqn_q);
  assign k_here = used_q[k_pl] && tag_mem[k_pl] == take_srqn_q[SrqIdxW-1:LogPlaces] && have_mem[k_pl] != ci_mem[k_pl];
  assign k_needs = !k_here && (!used_q[k_pl] || have_mem[k_pl] == fetch_mem[k_pl]) && !(f_valid_q && f_place_q == k_pl);

  // ---- what a step does ------------------------------------------------------------------------------
  wqe_idx_t told_span, pi, ci, next, left;
  logic [15:0] limit;
  logic alive, told_ok, is_cmd, cmd_act, cmd_make, cmd_end, cmd_limit, got, wait_wqe, lim_hit;
  logic ev_push, ev_ready, want, may, can, stay, f_load, blocked;
  assign alive = ok && old.exists && !dead;
  assign told_span = told - old.ci;
  assign told_ok = alive && told_span >= old.pi - old.ci && told_span <= 16'd1 << old.attr.log_size;
  assign is_cmd = !cur_take_q && job.op == OpCmd;
  assign again = is_cmd && cmd_op_q inside {SrqCmdCreate, SrqCmdDestroy} && p_own && !p_quiet;
  assign cmd_act = act && is_cmd && !again;
  assign cmd_make = cmd_act && ok && cmd_op_q == SrqCmdCreate;
  assign cmd_end = cmd_act && ok && cmd_op_q == SrqCmdDestroy;
  assign cmd_limit = cmd_act && ok && cmd_op_q == SrqCmdLimit;
  assign ev_fatal = act && !ok && !dead && (cur_take_q || job.op == OpDb);

  assign pi = told_ok ? told : old.pi;
  assign got = act && cur_take_q && alive && here_q;
  assign wait_wqe = cur_take_q && alive && !here_q && pi != old.ci;
  assign ci = old.ci + 16'(got);
  assign limit = cmd_make || cmd_limit ? cmd_limit_q : old.limit;
  assign left = cmd_make ? '0 : pi - ci;
  assign lim_hit = (got || cmd_make || cmd_limit) && left < limit;
  always_comb begin
    line_d = old;
    line_d.pi = pi;
    line_d.ci = ci;
    line_d.limit = lim_hit ? '0 : limit;
    own_we = got || pi != old.pi || cmd_limit;
    if (cmd_make) begin
      line_d.exists = 1'b1;
      line_d.attr = cmd_attr_q;
      line_d.pi = '0;
      line_d.ci = '0;
      own_we = 1'b1;
    end
    if (cmd_end) begin
      line_d.exists = 1'b0;
      own_we = 1'b1;
    end
  end

  // WQEs to be read: there is room for a burst
  assign next = p_own ? p_fetch : ci;
  assign want = alive && !is_cmd && pi != next && 16'(next - ci) <= 16'((1 << LogStore) - MaxBurst);
  // the SRQ that a take waits for goes first
  assign blocked = take_state_q inside {TakeTry, TakeWait} && take_srqn_q != cur_q && (k_pl == pl || k_needs);
  assign may = !blocked && (p_own || p_quiet);
  assign can = p_own ? !f_valid_q || f_place_q == pl : !f_valid_q && !fill_valid;
  // a job stays until it is its turn, unless a take waits
  assign stay = !cur_take_q && want && may && !can && !ask_take;
  assign ev_push = lim_hit || ev_fatal;
  assign leave = act && (!own_we || own_we_ready) && (!ev_push || ev_ready) && (!db_clear || db_clear_ready) && !stay;
  // its step is the one of this cycle, if all else is ready
  assign db_clear = cmd_make && own_we_ready && (!ev_push || ev_ready);
  assign dead_we = leave && (ev_fatal || cmd_make || cmd_end);
  assign f_load = leave && want && may && can;
  assign take_over = f_load && !p_own;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StAsk;
      job_hold_q <= 1'b0;
      used_q <= '0;
    end else begin
      if (own_fire) state_q <= StWait;
      if (leave) state_q <= StAsk;
      else if (first) state_q <= StHave;
      if (leave && again) job_hold_q <= 1'b1;
      else if (fill_valid || (reads_idle && !f_valid_q)) job_hold_q <= 1'b0;
      if (take_over) used_q[pl] <= 1'b1;
      if (leave && (cmd_make || cmd_end) && p_own) used_q[pl] <= 1'b0;
    end
    if (own_fire) begin
      cur_take_q <= ask_take;
      cur_q <= ask_srqn;
    end
    if (first) begin
      line_q <= line;
      ok_q <= own_ok;
    end
    if (take_over) tag_mem[pl] <= cur_q[SrqIdxW-1:LogPlaces];
    if (take_over || (leave && got)) ci_mem[pl] <= ci;
  end

  // ---- takes -----------------------------------------------------------------------------------------
  rq_status_e status, status_q;
  logic bad_q;
  assign status = got || !alive ? RqOk : RqNone;
  assign rsp_valid_o = first && cur_take_q && !wait_wqe;
  always_comb begin
    rsp_o.status = first ? status : status_q;
    rsp_o.wqe = stored;
    if (first ? !alive : bad_q) begin
      rsp_o.wqe.tag = NoTag;
      rsp_o.wqe.e.bad = 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      take_state_q <= TakeIdle;
    end else begin
      unique case (take_state_q)
        TakeIdle: if (req_valid_i && req_ready_o) take_state_q <= own_fire ? TakeRun : TakeTry;
        TakeTry: if (own_fire) take_state_q <= TakeRun;
        TakeRun: if (leave && cur_take_q) take_state_q <= wait_wqe ? TakeWait : TakeIdle;
        // its WQE is here, or nothing is under way that could bring it
        default: if (k_here || (k_needs && !f_valid_q)) take_state_q <= TakeTry;
      endcase
    end
    if (req_valid_i && req_ready_o) take_srqn_q <= req_srqn_i;
    if (first && cur_take_q) begin
      status_q <= status;
      bad_q <= !alive;
    end
  end

  // ---- reads, of one SRQ at a time ---------------------------------------------------------------------
  logic [63:6] f_base_q;
  logic [3:0] f_log_size_q;
  logic f_stride128_q;
  wqe_idx_t f_pi_q, f_ci_q, f_next, f_avail, f_room;
  logic f_more, f_ready, f_go, rd_done;
  logic [2:0] f_count;
  assign f_next = fetch_mem[f_place_q];
  assign f_avail = f_pi_q - f_next;
  assign f_room = f_ci_q + 16'(1 << LogStore) - f_next;
  assign f_more = f_avail != '0 && f_room >= 16'(MaxBurst);
  assign f_go = f_valid_q && f_more && f_ready;
  assign ev_wqe_o = f_go ? f_count : 3'd0;
  // verilator lint_off PINCONNECTEMPTY
  rq_reads #(.DataW(DataW), .IdW(LogPlaces)) u_reads (
    .clk_i, .rst_ni,
    .ask_valid_i(f_valid_q && f_more), .ask_ready_o(f_ready), .ask_id_i(f_place_q), .ask_base_i(f_base_q),
    .ask_log_size_i(f_log_size_q), .ask_stride128_i(f_stride128_q), .ask_next_i(f_next), .ask_avail_i(f_avail),
    .ask_room_i(f_room), .ask_count_o(f_count),
    .ar_valid_o, .ar_ready_i, .ar_addr_o, .ar_len_o, .r_valid_i, .r_data_i, .r_last_i, .r_err_i,
    .fill_valid_o(fill_valid), .fill_id_o(fill_place), .fill_at_o(fill_at), .fill_o(fill),
    .done_o(rd_done), .done_id_o(), .level_o(), .ev_axi_err_o, .idle_o(reads_idle)
  );
  // verilator lint_on PINCONNECTEMPTY
  always_ff @(posedge clk_i) begin
    if (!rst_ni) f_valid_q <= 1'b0;
    else if (f_load) f_valid_q <= 1'b1;
    else if (!f_more) f_valid_q <= 1'b0;
    if (f_load) begin
      f_place_q <= pl;
      f_base_q <= old.attr.addr;
      f_log_size_q <= old.attr.log_size;
      f_stride128_q <= old.attr.stride128;
      f_pi_q <= pi;
      f_ci_q <= ci;
    end
    if (take_over || f_go) fetch_mem[take_over ? pl : f_place_q] <= take_over ? ci : f_next + 16'(f_count);
    if (take_over || fill_valid) have_mem[take_over ? pl : fill_place] <= take_over ? ci : have_mem[fill_place] + 16'd1;
  end

  // ---- events ------------------------------------------------------------------------------------------
  event_t ev;
  logic none_ev;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(event_t)), .Depth(EventDepth)) u_events (
    .clk_i, .rst_ni,
    .in_valid_i(leave && ev_push), .in_ready_o(ev_ready), .in_data_i({ev_fatal, cur_q}),
    .out_valid_o(event_valid_o), .out_ready_i(event_ready_i), .out_data_o(ev), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign event_o = '{
    ev_type: ev.fatal ? rnic_regs_pkg::EqeTypeSrqFatal : rnic_regs_pkg::EqeTypeSrqLimit, object: 32'(ev.srqn), detail: '0
  };

  always_ff @(posedge clk_i) begin
    if (!rst_ni) cmd_rsp_valid_o <= 1'b0;
    else cmd_rsp_valid_o <= cmd_act && leave;
    if (cmd_act && leave) begin
      cmd_rsp_err_o <= !ok;
      cmd_rsp_o <= '{exists: old.exists, dead: dead, attr: old.attr, limit: old.limit, pi: pi, ci: old.ci};
    end
  end

  // ---- drain: doorbells, then jobs, then reads and events ------------------------------------------------
  logic db_end, dbs_done, jobs_done, before_done, reads_done, evs_done;
  assign db_end = pop && job.op == OpDb;
  assign before_done = dbs_done && jobs_done;
  // verilator lint_off PINCONNECTEMPTY
  // idle is told by what is counted
  drain_count #(.CntW(SrqIdxW + 2)) u_db_command (
    .clk_i, .rst_ni, .begin_i(db_listed), .ended_i({1'b0, db_end}), .hold_i(db_hold),
    .drain_i(cmd_valid_i && cmd_op_i inside {SrqCmdCreate, SrqCmdDestroy}), .done_o(db_before), .empty_o()
  );
  drain_count #(.CntW(SrqIdxW + 2)) u_db_drain (
    .clk_i, .rst_ni, .begin_i(db_listed), .ended_i({1'b0, db_end}), .hold_i(db_hold),
    .drain_i, .done_o(dbs_done), .empty_o()
  );
  drain_count u_job_drain (
    .clk_i, .rst_ni, .begin_i(push), .ended_i({1'b0, pop}), .hold_i(1'b0),
    .drain_i(drain_i && dbs_done), .done_o(jobs_done), .empty_o()
  );
  drain_count u_read_drain (
    .clk_i, .rst_ni, .begin_i(f_go), .ended_i({1'b0, rd_done}), .hold_i(1'b0),
    .drain_i(drain_i && before_done), .done_o(reads_done), .empty_o()
  );
  drain_count u_event_drain (
    .clk_i, .rst_ni, .begin_i(leave && ev_push), .ended_i({1'b0, event_valid_o && event_ready_i}), .hold_i(1'b0),
    .drain_i(drain_i && before_done), .done_o(evs_done), .empty_o(none_ev)
  );
  // verilator lint_on PINCONNECTEMPTY
  assign drain_done_o = drain_i && before_done && reads_done && evs_done;
  assign idle_o = ready_o && !any_job && !hint_valid_q && !h1_q && !hint_valid_i && take_state_q == TakeIdle && !req_valid_i && !f_valid_q &&
                  reads_idle && db_idle && ctx_idle && none_ev && !db_valid_i && !cmd_valid_i;

  always_ff @(posedge clk_i) begin
    ev_limit_o <= rst_ni && leave && lim_hit;
    ev_fatal_o <= rst_ni && leave && ev_fatal;
    ev_bad_db_o <= rst_ni && ((db_valid_i && !db_in_range) || (db_end && !told_ok));
  end

endmodule
