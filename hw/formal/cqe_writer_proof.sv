// SPDX-License-Identifier: Apache-2.0
//
// cqe_writer, for any one CQ (watch_q) beside others that do as they like, from any moment of its life. Its CQEs are written to indices one after
// the other, none left out, none twice, with the phase of their lap, at the place of the index, each as it was taken. The one that fills the last entry says
// so (status cq_overrun, and an event), and only if the program had not made room before it was taken; behind it nothing is written. If the consumer gives back
// only what was written (honest_q), no entry is written that it has not given back. A CQE that is not written had a reason: no such CQ, overrun, or a context that
// memory refused. A context changes only by a job of its own CQ, and the rules that ctx_cache_proof assumes of the owner are kept.
// Assumed: commands come one at a time; a CQ is made when there is none of that number and nothing of it is on its way (cmd_proc).
//
// The cache is replaced by its contract (ctx_contract; proved in ctx_cache_proof), so that the proof begins with contexts in the middle of their life; so is the
// memories of doorbells and of unusable CQs (told_ram). Timers fire when they like (timer_any).

// lib/ctx_cache as its owner sees it: an answer at any time, refused or with what was written last.
module ctx_contract #(
  parameter int unsigned DataW = 512,
  parameter int unsigned EntryW = 320,
  parameter int unsigned IdxW = 24,
  parameter int unsigned LogSets = 8,
  parameter int unsigned LogWays = 2,
  parameter int unsigned NumPorts = 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               mem_on_i,
  input  logic [63:6]        mem_base_i,
  input  logic [4:0]         mem_log_num_i,
  input  logic               req_valid_i,
  output logic               req_ready_o,
  input  logic [IdxW-1:0]    req_idx_i,
  output logic               rsp_valid_o,
  output logic [EntryW-1:0]  rsp_o,
  input  logic               pf_valid_i,
  input  logic [IdxW-1:0]    pf_idx_i,
  output logic               pf_done_o,
  output logic               pf_hit_o,
  input  logic               own_valid_i,
  output logic               own_ready_o,
  input  logic [IdxW-1:0]    own_idx_i,
  input  logic               own_pin_i,
  output logic               own_done_o,
  output logic               own_ok_o,
  input  logic               own_we_i,
  output logic               own_we_ready_o,
  input  logic               own_we_pin_i,
  input  logic [EntryW-1:0]  own_entry_i,
  input  logic               own_release_i,
  output logic               ar_valid_o,
  input  logic               ar_ready_i,    // free inputs: takes a question
  output logic [63:0]        ar_addr_o,
  output logic [7:0]         ar_len_o,
  input  logic               r_valid_i,     // answers
  input  logic [DataW-1:0]   r_data_i,      // what rsp_o is otherwise
  input  logic               r_last_i,
  input  logic               r_err_i,       // refused
  output logic               aw_valid_o,
  input  logic               aw_ready_i,    // takes what is written
  output logic [63:0]        aw_addr_o,
  output logic [7:0]         aw_len_o,
  output logic               w_valid_o,
  input  logic               w_ready_i,     // takes a hint
  output logic [DataW-1:0]   w_data_o,
  output logic [DataW/8-1:0] w_strb_o,
  output logic               w_last_o,
  input  logic               b_valid_i,
  input  logic               b_err_i,
  output logic               ev_hit_o,
  output logic               ev_miss_o,
  output logic               ev_evict_o,
  output logic               ev_writeback_o,
  output logic               ev_stall_o,
  output logic               ev_rd_err_o,
  output logic               ev_wr_err_o,
  output logic               idle_o
);
  logic [(1 << IdxW)-1:0][EntryW-1:0] entry_q;   // any values at the start
  logic asks_q, pin_q;
  logic [IdxW-1:0] idx_q;
  assign own_ready_o = ar_ready_i;
  assign own_done_o = asks_q && r_valid_i;
  assign own_ok_o = !r_err_i;
  assign own_we_ready_o = aw_ready_i;
  assign rsp_o = !own_done_o ? r_data_i[EntryW-1:0] : r_err_i ? '0 : entry_q[idx_q];
  assign pf_done_o = w_ready_i;
  assign pf_hit_o = 1'b0;
  assign idle_o = 1'b1;
  assign {req_ready_o, rsp_valid_o, ar_valid_o, aw_valid_o, w_valid_o, w_last_o} = '0;
  assign {ev_hit_o, ev_miss_o, ev_evict_o, ev_writeback_o, ev_stall_o, ev_rd_err_o, ev_wr_err_o} = '0;
  assign ar_addr_o = '0;
  assign ar_len_o = '0;
  assign aw_addr_o = '0;
  assign aw_len_o = '0;
  assign w_data_o = '0;
  assign w_strb_o = '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asks_q <= 1'b0;
      pin_q <= 1'b0;
    end else begin
      if (own_valid_i && own_ready_o) begin
        asks_q <= 1'b1;
        idx_q <= own_idx_i;
      end else if (own_done_o) begin
        asks_q <= 1'b0;
      end
      pin_q <= (pin_q || (own_done_o && own_ok_o)) && !own_release_i;
      if (own_we_i && own_we_ready_o) entry_q[idx_q] <= own_entry_i;

      asks_one: assert (!own_valid_i || (!asks_q && !pin_q));
      writes_pinned: assert (!own_we_i || ((pin_q || (own_done_o && own_ok_o)) && !own_valid_i));
      releases_idle: assert (!own_release_i || (!own_valid_i && (!asks_q || own_done_o)));
    end
  end
endmodule

// zero_ram in the middle of its life.
module told_ram #(
  parameter int unsigned Width = 32,
  parameter int unsigned Depth = 65536,
  parameter int unsigned Banks = 16,
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             ready_o,
  input  logic             we_i,
  input  logic [AddrW-1:0] waddr_i,
  input  logic [Width-1:0] wdata_i,
  input  logic             re_i,
  input  logic [AddrW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o
);
  logic [Depth-1:0][Width-1:0] words_q;
  assign ready_o = 1'b1;
  always_ff @(posedge clk_i) begin
    if (we_i && rst_ni) words_q[waddr_i] <= wdata_i;
    if (re_i) rdata_o <= words_q[raddr_i];
  end
endmodule

// timer_tree without its promises: any timer may fire whenever one is asked for.
module timer_any #(
  parameter int unsigned Num = 256,
  parameter int unsigned TickW = 48,
  localparam int unsigned IdxW = $clog2(Num)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             ready_o,
  input  logic [TickW-1:0] now_i,
  input  logic             set_valid_i,
  input  logic             set_on_i,
  input  logic [IdxW-1:0]  set_idx_i,
  input  logic [TickW-1:0] set_deadline_i,
  input  logic             fire_ready_i,
  output logic             fire_valid_o,
  output logic [IdxW-1:0]  fire_idx_o,
  output logic             next_valid_o,
  output logic             any_o,
  output logic [TickW-1:0] next_o
);
  // with time as the free input
  logic ask_q;
  always_ff @(posedge clk_i) ask_q <= rst_ni && fire_ready_i;
  assign ready_o = 1'b1;
  assign fire_valid_o = ask_q && now_i[0];
  assign fire_idx_o = IdxW'(now_i >> 1);
  assign next_valid_o = 1'b0;
  assign any_o = 1'b0;
  assign next_o = '0;
endmodule

module cqe_writer_proof
  import rnic_pkg::*;
(
  input logic          clk_i,
  input logic          rst_ni,
  input logic [1:0]    time_i,           // any: it only says when moderated events come
  input logic          in_valid_i,
  input cq_idx_t       in_cqn_i,
  input logic [1:0]    in_index_i,
  input logic          in_fail_i,
  input logic          in_solicited_i,
  input logic          in_last_i,
  input logic          db_valid_i,
  input cq_idx_t       db_cqn_i,
  input cq_ptr_t       db_ci_i,
  input cq_arm_t       db_arm_i,
  input logic          cmd_valid_i,
  input cq_cmd_e       cmd_op_i,
  input cq_idx_t       cmd_idx_i,
  input logic [1:0]    cmd_addr_i,
  input logic [1:0]    cmd_log_size_i,
  input logic          cmd_eq_i,
  input logic          cmd_count_i,
  input logic          cmd_period_i,
  input logic          aw_ready_i,
  input logic          w_ready_i,
  input logic          b_valid_i,
  input logic          own_ready_i,      // of the cache
  input logic          own_done_i,
  input logic          own_refuse_i,
  input logic          own_we_ready_i,
  input logic          pf_done_i,
  input logic          comp_ready_i,
  input logic          cqerr_ready_i,
  input logic          last_ready_i,
  input cq_idx_t       watch_i,
  input logic          honest_i,
  input logic          mark_i            // follow the CQE that is taken now
);

  localparam int unsigned DataW = 256;   // a CQE is one beat
  localparam logic [7:0] Fail = rnic_regs_pkg::WcStatusWrFlushErr;
  // cq_line_t of cqe_writer, times cut down
  typedef struct packed {
    logic        exists;
    logic        overrun;
    logic [3:0]  log_size;
    logic [7:0]  eqn;
    logic [57:0] addr;
    cq_ptr_t     pi;
    cq_ptr_t     ci;
    cq_ptr_t     sol;
    logic        sol_valid;
    cq_arm_t     arm;
    cq_mod_t     moderation;
    logic [15:0] cnt;
    logic        running;
    logic [1:0]  deadline;
  } line_t;

  cqe_ev_t in;
  ctx_mem_t mem;
  cq_mod_t moderation;
  always_comb begin
    in = '0;
    in.cqn = in_cqn_i;
    in.index = 16'(in_index_i);
    in.status = in_fail_i ? Fail : rnic_regs_pkg::WcStatusSuccess;
    in.solicited = in_solicited_i;
    in.last_wqe = in_last_i;
    mem = '0;
    mem.on = 1'b1;
    mem.log_num = 5'(CqIdxW);
    moderation = '{count: 16'(cmd_count_i), period: 16'(cmd_period_i)};
  end
  logic ready, in_ready, db_ready, cmd_ready, cmd_rsp_valid, cmd_rsp_err, aw_valid, w_valid, w_last;
  logic comp_valid, cqerr_valid, last_valid, last_drained;
  cq_ctx_t cmd_rsp;
  logic [63:0] aw_addr;
  logic [7:0] aw_len;
  logic [DataW-1:0] w_data;
  logic [DataW/8-1:0] w_strb;
  comp_ev_t comp;
  async_ev_t cqerr;
  qpn_t last_qpn;
  cqe_writer #(.DataW(DataW)) dut (
    .clk_i, .rst_ni, .time_i(64'(time_i)), .ready_o(ready), .mem_i(mem),
    .in_valid_i, .in_ready_o(in_ready), .in_i(in), .in_qpn_i('0),
    .db_valid_i, .db_ready_o(db_ready), .db_cqn_i(24'(db_cqn_i)), .db_ci_i, .db_arm_i,
    .cmd_valid_i, .cmd_ready_o(cmd_ready), .cmd_op_i, .cmd_idx_i, .cmd_addr_i(58'(cmd_addr_i)), .cmd_log_size_i(4'(cmd_log_size_i)),
    .cmd_eqn_i(cmd_eq_i ? 8'd1 : NoEq), .cmd_mod_i(moderation),
    .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_err_o(cmd_rsp_err), .cmd_rsp_o(cmd_rsp),
    .aw_valid_o(aw_valid), .aw_ready_i, .aw_addr_o(aw_addr), .aw_len_o(aw_len), .w_valid_o(w_valid), .w_ready_i,
    .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last), .b_valid_i, .b_err_i(1'b0),
    .ctx_ar_valid_o(), .ctx_ar_ready_i(own_ready_i), .ctx_ar_addr_o(), .ctx_ar_len_o(),
    .ctx_r_valid_i(own_done_i), .ctx_r_data_i('0), .ctx_r_last_i(1'b1), .ctx_r_err_i(own_refuse_i),
    .ctx_aw_valid_o(), .ctx_aw_ready_i(own_we_ready_i), .ctx_aw_addr_o(), .ctx_aw_len_o(),
    .ctx_w_valid_o(), .ctx_w_ready_i(pf_done_i), .ctx_w_data_o(), .ctx_w_strb_o(), .ctx_w_last_o(),
    .ctx_b_valid_i(1'b0), .ctx_b_err_i(1'b0),
    .comp_valid_o(comp_valid), .comp_ready_i, .comp_o(comp), .cqerr_valid_o(cqerr_valid), .cqerr_ready_i, .cqerr_o(cqerr),
    .wake_valid_o(), .wake_o(), .drain_i(1'b0), .drain_done_o(),
    .ev_cqe_o(), .ev_lost_o(), .ev_overrun_o(), .ev_fatal_o(), .ev_error_o(), .ev_flush_o(), .ev_bad_db_o(), .ev_axi_err_o(), .ev_ctx_o(),
    .last_valid_o(last_valid), .last_ready_i, .last_qpn_o(last_qpn), .last_drained_o(last_drained), .idle_o());

  stream_check #(.Width(CqIdxW + 5), .Assume(1'b1)) u_in (
    .clk_i, .rst_ni, .valid_i(in_valid_i), .ready_i(in_ready), .data_i({in_cqn_i, in_index_i, in_fail_i, in_solicited_i, in_last_i}));
  stream_check #(.Width(CqIdxW + $bits(cq_ptr_t) + 2), .Assume(1'b1)) u_db (
    .clk_i, .rst_ni, .valid_i(db_valid_i), .ready_i(db_ready), .data_i({db_cqn_i, db_ci_i, db_arm_i}));
  stream_check #(.Width(CqIdxW + 9), .Assume(1'b1)) u_cmd (
    .clk_i, .rst_ni, .valid_i(cmd_valid_i), .ready_i(cmd_ready),
    .data_i({cmd_idx_i, cmd_op_i, cmd_addr_i, cmd_log_size_i, cmd_eq_i, cmd_count_i, cmd_period_i}));
  stream_check #(.Width(64)) u_aw (.clk_i, .rst_ni, .valid_i(aw_valid), .ready_i(aw_ready_i), .data_i(aw_addr));
  stream_check #(.Width(25)) u_w (.clk_i, .rst_ni, .valid_i(w_valid), .ready_i(w_ready_i), .data_i({w_data[255], w_data[31:24], w_data[15:0]}));

  logic first_q = 1'b1;
  cq_idx_t watch_q;                      // chosen at the start
  logic honest_q;

  // the context in the middle of its life
  line_t begin_line;
  cq_ptr_t begin_used, begin_size;
  assign begin_line = dut.u_cache.entry_q[watch_i];
  assign begin_used = begin_line.pi - begin_line.ci;
  assign begin_size = cq_ptr_t'(1) << begin_line.log_size;

  // what the CQ is: changed by the jobs, in their order
  logic exists_q, over_q, dead_q;
  logic [3:0] log_q;
  logic [57:0] ring_q;
  cq_ptr_t pi_q, size;                      // index of the next CQE
  assign size = cq_ptr_t'(1) << log_q;
  // what the consumer knows and says
  cq_ptr_t seen_q, given_q;                 // up to where CQEs are in memory, and were given back
  logic rings;                                  // a doorbell of the CQ
  // jobs that are done in this cycle
  logic job_end, cqe_end, put, made, gone;
  assign job_end = dut.leave && dut.cqn == watch_q;
  assign cqe_end = job_end && dut.job.op == 3'd0;
  assign put = cqe_end && dut.cqe_write;
  assign made = job_end && dut.job.op == 3'd4 && dut.cmd_op_q == CqCmdCreate && dut.ok;
  assign gone = job_end && dut.job.op == 3'd4 && dut.cmd_op_q == CqCmdDestroy && dut.ok;
  // the CQE in the writer
  logic out_q, out_watch_q, out_phase_q, out_mark_q, aw_done_q, w_done_q, out_end, out_over;
  logic [63:0] out_addr_q;
  cq_ptr_t out_pi_q;
  assign out_end = out_q && (aw_done_q || aw_ready_i) && (w_done_q || w_ready_i);
  assign out_over = w_data[31:24] == rnic_regs_pkg::WcStatusCqOverrun;
  // CQEs of the CQ that were taken, and the marked one
  logic in_take, marked_q, mark_out_q, mark_fail_q;   // mark_out: it has left the queue
  logic [1:0] waits_q, ahead_q, mark_index_q;
  cq_ptr_t mark_given_q;
  assign in_take = in_valid_i && in_ready && !in_last_i && in_cqn_i == watch_q;
  // commands
  logic cmd_busy_q, cmd_watch_q;
  logic [2:0] b_num_q;                          // writes without an answer
  assign rings = db_valid_i && db_cqn_i == watch_q;

  // what the design holds of it, for assertions that the others stand on
  line_t entry, line;
  logic at_work, have, early_q;                 // early: its job has written the context, and waits for something else
  logic [1:0] j_valid, j_cqe, j_db;             // the jobs of the CQ, the oldest first
  cq_ptr_t [1:0] j_ci;
  logic [1:0][1:0] j_index;
  logic [1:0] j_fail;
  logic in_step, clear_step, mark_at;
  cq_ptr_t told_ci, ci;                         // newest index that was told, index in the context
  assign entry = dut.u_cache.entry_q[watch_q];
  assign line = dut.line_q;
  assign at_work = dut.state_q != 2'd0 && dut.cqn == watch_q;
  assign have = dut.state_q == 2'd2 && dut.cqn == watch_q && dut.ok_q;
  always_comb begin
    for (int k = 0; k < 2; k++) begin
      j_valid[k] = (dut.tail_q - dut.head_q) > 2'(k);
      j_cqe[k] = j_valid[k] && dut.jobs[dut.head_q[0] ^ 1'(k)].cqn == watch_q && dut.jobs[dut.head_q[0] ^ 1'(k)].op == 3'd0;
      j_db[k] = j_valid[k] && dut.jobs[dut.head_q[0] ^ 1'(k)].cqn == watch_q && dut.jobs[dut.head_q[0] ^ 1'(k)].op == 3'd2;
      j_ci[k] = dut.jobs[dut.head_q[0] ^ 1'(k)].ci;
      j_index[k] = dut.jobs[dut.head_q[0] ^ 1'(k)].ev.index[1:0];
      j_fail[k] = dut.jobs[dut.head_q[0] ^ 1'(k)].ev.status == Fail;
    end
  end
  assign mark_at = !(j_cqe[0] && ahead_q == '0);
  assign in_step = dut.u_doorbells.s1_q && dut.u_doorbells.s1_what_q == 2'd0 && dut.u_doorbells.s1_num_q == watch_q;
  assign clear_step = dut.u_doorbells.s1_q && dut.u_doorbells.s1_what_q == 2'd2 && dut.u_doorbells.s1_num_q == watch_q;
  assign told_ci = in_step ? dut.u_doorbells.s1_idx_q : clear_step ? '0 : cq_ptr_t'(dut.u_doorbells.u_words.words_q[watch_q]);
  assign ci = have ? line.ci : entry.ci;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    honest_q <= honest_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
      sane: assume (begin_used < begin_size + cq_ptr_t'(begin_line.overrun) && begin_line.log_size inside {4'd1, 4'd2, 4'd3} && begin_line.addr[57:2] == '0);
      told: assume (dut.u_doorbells.u_words.words_q[watch_i] == {3'd0, begin_line.ci});
      alive: assume (!dut.u_dead.words_q[watch_i]);
    end else begin
      one_reset: assume (rst_ni);
      chosen_once: assume (watch_i == watch_q && honest_i == honest_q);
    end
    b_of_a_write: assume (!b_valid_i || b_num_q != '0);
    one_command: assume (!cmd_valid_i || !cmd_busy_q);
    cmd_new: assume (!cmd_valid_i || cmd_op_i != CqCmdCreate || cmd_idx_i != watch_q ||
                     (!exists_q && waits_q == '0 && !(in_valid_i && in_cqn_i == watch_q) && !(out_q && out_watch_q)));
    cqes_of_a_cq: assume (!(in_valid_i && in_cqn_i == watch_q && cmd_busy_q && cmd_watch_q));
    honest: assume (!honest_q || !rings || (exists_q && !cmd_watch_q && !(cmd_valid_i && cmd_idx_i == watch_q && cmd_op_i == CqCmdDestroy) && db_ci_i - given_q <= seen_q - given_q));
    if (!rst_ni) begin
      exists_q <= begin_line.exists;
      over_q <= begin_line.overrun;
      dead_q <= 1'b0;
      log_q <= begin_line.log_size;
      ring_q <= begin_line.addr;
      pi_q <= begin_line.pi;
      seen_q <= begin_line.pi;
      given_q <= begin_line.ci;
      out_q <= 1'b0;
      early_q <= 1'b0;
      marked_q <= 1'b0;
      waits_q <= '0;
      cmd_busy_q <= 1'b0;
      cmd_watch_q <= 1'b0;
      b_num_q <= '0;
    end else begin
      if (cmd_valid_i) begin
        cmd_busy_q <= cmd_ready;
        cmd_watch_q <= cmd_idx_i == watch_q && cmd_op_i inside {CqCmdCreate, CqCmdDestroy};
      end else if (cmd_rsp_valid) begin
        cmd_busy_q <= 1'b0;
        cmd_watch_q <= 1'b0;
      end
      if (rings && db_ready) given_q <= db_ci_i;
      // jobs
      if (job_end && dut.job.op inside {3'd0, 3'd2, 3'd3} && !dut.ok) dead_q <= 1'b1;
      if (put) begin
        pi_q <= pi_q + 1'b1;
        over_q <= dut.last_room;
      end
      if (made) begin
        exists_q <= 1'b1;
        over_q <= 1'b0;
        dead_q <= 1'b0;
        log_q <= dut.cmd_log_size_q;
        ring_q <= dut.cmd_addr_q;
        pi_q <= '0;
        seen_q <= '0;
        given_q <= '0;
      end
      if (gone) begin
        exists_q <= 1'b0;
        dead_q <= 1'b0;
      end
      early_q <= at_work && !dut.leave && (early_q || (dut.own_we && own_we_ready_i));
      // the writer
      if (dut.cqe_write && dut.leave) begin
        out_q <= 1'b1;
        out_watch_q <= put;
        out_addr_q <= {ring_q, 6'd0} + 64'({pi_q & (size - 1'b1), 5'd0});
        out_phase_q <= !pi_q[log_q];
        out_pi_q <= pi_q;
        out_mark_q <= put && marked_q && !mark_out_q && ahead_q == '0;
        aw_done_q <= 1'b0;
        w_done_q <= 1'b0;
      end else if (out_end) begin
        out_q <= 1'b0;
      end else begin
        aw_done_q <= aw_done_q || aw_ready_i;
        w_done_q <= w_done_q || w_ready_i;
      end
      if (out_end && out_watch_q) seen_q <= out_pi_q + 1'b1;
      b_num_q <= b_num_q + 3'(out_end) - 3'(b_valid_i);
      // the marked one
      waits_q <= waits_q + 2'(in_take) - 2'(cqe_end);
      if (in_take && mark_i && !marked_q && exists_q) begin
        marked_q <= 1'b1;
        mark_out_q <= 1'b0;
        mark_fail_q <= in_fail_i;
        mark_index_q <= in_index_i;
        mark_given_q <= given_q;
        ahead_q <= waits_q - 2'(cqe_end);
      end else if (cqe_end) begin
        if (ahead_q == '0) mark_out_q <= 1'b1;
        if (ahead_q == '0 && !mark_out_q && !put) marked_q <= 1'b0;
        ahead_q <= ahead_q - 2'd1;
      end
      if (out_end && out_mark_q) marked_q <= 1'b0;

      // written: one after the other, while there is a CQ that takes any
      one_at_a_time: assert (!(dut.cqe_write && dut.leave) || !out_q || out_end);
      takes: assert (!put || (exists_q && !over_q && !dead_q));
      not_without_reason: assert (!cqe_end || put || !exists_q || over_q || dead_q || !dut.ok);
      offered: assert (aw_valid == (out_q && !aw_done_q) && w_valid == (out_q && !w_done_q));
      if (out_q && out_watch_q) begin
        place: assert (!aw_valid || (aw_addr == out_addr_q && aw_len == '0));
        phase: assert (!w_valid || (w_data[255] == out_phase_q && w_last && w_strb == '1));
      end
      if (out_q && out_watch_q && out_mark_q && w_valid) begin
        as_taken: assert (w_data[15:0] == 16'(mark_index_q) && (w_data[31:24] == (mark_fail_q ? Fail : rnic_regs_pkg::WcStatusSuccess) || out_over));
        had_room: assert (!out_over || !honest_q || out_pi_q - mark_given_q >= size - 1'b1);
      end
      // room
      if (put && honest_q) begin
        given_back: assert (pi_q - given_q < size);
        full_is_told: assert (dut.last_room || pi_q - given_q < size - 1'b1);
      end
      if (w_valid && out_watch_q && out_pi_q + 1'b1 == pi_q && exists_q) begin
        overrun_is_told: assert (out_over == over_q);
      end
      event_of_overrun: assert (!put || dut.fly.overrun == dut.last_room);
      // contexts
      own_context: assert (!(dut.own_we && own_we_ready_i && dut.u_cache.idx_q == watch_q) || dut.cqn == watch_q);

      // what holds in between
      if (!early_q) begin
        context_is: assert (entry.exists == exists_q && entry.overrun == over_q && entry.log_size == log_q && entry.addr == ring_q && entry.pi == pi_q);
        context_room: assert (!exists_q || !honest_q || pi_q - entry.ci < size + cq_ptr_t'(8));   // doorbells wait a while
      end
      if (early_q) begin
        early: assert (have);
      end
      if (have) begin
        line_is: assert (line.exists == exists_q && line.overrun == over_q && line.log_size == log_q && line.addr == ring_q && line.pi == pi_q);
        line_room: assert (!exists_q || !honest_q || pi_q - line.ci < size + cq_ptr_t'(8));
      end
      steps: assert (dut.state_q != 2'd3 && dut.u_cache.asks_q == (dut.state_q == 2'd1) && dut.u_cache.pin_q == (dut.state_q == 2'd2 && dut.ok_q));
      asked: assert (dut.state_q == 2'd0 || (dut.u_cache.idx_q == dut.cqn && dut.any_job && dut.job.op != 3'd1));
      unusable: assert (dut.u_dead.words_q[watch_q] == dead_q && (!at_work || dut.dead == dead_q));
      sizes: assert (log_q < 4'd4 && ring_q[57:2] == '0);
      jobs: assert ((dut.tail_q - dut.head_q) <= 2'd2 && waits_q == 2'(j_cqe[0]) + 2'(j_cqe[1]));
      writer_is: assert (dut.u_write.valid_q == out_q && (!out_q || (dut.u_write.aw_done_q == aw_done_q && dut.u_write.w_done_q == w_done_q)));
      if (out_q && out_watch_q) begin
        writer_has: assert (dut.u_write.addr_q == out_addr_q[63:5] && out_addr_q[4:0] == '0 && dut.u_write.data_q[255] == out_phase_q);
        order: assert (!exists_q || dead_q || out_pi_q == pi_q - 1'b1);
      end
      // doorbells
      told_is: assert (told_ci == given_q);
      read_is: assert (!(dut.u_doorbells.s1_q && dut.u_doorbells.s1_num_q == watch_q) || dut.u_doorbells.word == dut.u_doorbells.u_words.words_q[watch_q]);
      if (honest_q && exists_q) begin
        room: assert (pi_q - given_q < size + cq_ptr_t'(over_q));
        given_is: assert (given_q - ci <= pi_q - ci && seen_q - given_q <= pi_q - given_q);
        job_0: assert (!j_db[0] || given_q - j_ci[0] <= given_q - ci);
        job_1: assert (!j_db[1] || given_q - j_ci[1] <= given_q - ci);
        job_10: assert (!(j_db[0] && j_db[1]) || given_q - j_ci[1] <= given_q - j_ci[0]);
        next_0: assert (!(dut.db_valid && dut.db_cqn == watch_q) || given_q - dut.db_ci <= given_q - ci);
        next_1: assert (!(dut.db_valid && dut.db_cqn == watch_q && j_db[0]) || given_q - dut.db_ci <= given_q - j_ci[0]);
        next_2: assert (!(dut.db_valid && dut.db_cqn == watch_q && j_db[1]) || given_q - dut.db_ci <= given_q - j_ci[1]);
        peeked: assert (!(at_work && j_cqe[0]) || given_q - dut.ci_told <= given_q - ci);
        if (marked_q && !mark_out_q) begin
          mark_room: assert (given_q - mark_given_q <= pi_q - mark_given_q && pi_q - mark_given_q <= size + 1'b1);
          mark_peeked: assert (!(at_work && j_cqe[0] && ahead_q == '0) || given_q - dut.ci_told <= given_q - mark_given_q);
        end
      end
      // the marked one
      if (marked_q && !mark_out_q) begin
        mark_waits: assert (ahead_q < waits_q && j_index[mark_at] == mark_index_q && j_fail[mark_at] == mark_fail_q);
      end
      if (out_q && out_mark_q) begin
        mark_is_out: assert (marked_q && mark_out_q && out_watch_q);
      end

      second_pass: cover (w_valid && out_watch_q && !out_phase_q && out_pi_q == cq_ptr_t'(8) && log_q == 4'd3);
      wraps: cover (put && pi_q == '0 && waits_q == 2'd2 && log_q != '0);
      overruns: cover (put && dut.last_room && honest_q && log_q == 4'd2);
      event_of_it: cover (cqerr_valid && cqerr.object == 32'(watch_q) && over_q && honest_q && !dead_q && exists_q);
      lost: cover (cqe_end && !put && over_q && !dead_q && dut.ok && exists_q);
      new_one: cover (w_valid && out_watch_q && out_phase_q && out_pi_q == cq_ptr_t'(1) && log_q == 4'd1 && cmd_rsp.log_size != '0 && !cmd_busy_q && !over_q);
      room_in_time: cover (put && out_q && pi_q - mark_given_q == size - cq_ptr_t'(2) && honest_q && dut.used == size - 1'b1 && !dut.last_room);
      marked: cover (out_mark_q && w_valid && waits_q == 2'd2);
    end
  end

endmodule
