// SPDX-License-Identifier: Apache-2.0
//
// Which CQE raises a completion event: arming and moderation of the CQs. Part of cqe_writer.
//
// A CQ is armed for its next CQE (any) or for its next solicited or failed one (solicited); any wins over
// solicited. CQEs count from the acknowledge of their write on, so an event never overtakes its CQE.
// The doorbell that arms carries the consumer index: a CQE behind it that would have raised the event
// raises it at once. So each arming raises one event, whenever the CQE comes. The event disarms.
//
// Moderation (period not 0) holds the event back until `count` such CQEs are there (0: no bound) or
// `period` microseconds have passed since the first of them or, if that came before, since the arming.
// A change of moderation reports what is held back. Arming for solicited CQEs counts those of before
// as one.
//
// One operation every 2 cycles: command, doorbell, timer, CQE, in this order; CQEs of a CQ without EQ cost
// one cycle and nothing else. A timer is never early, and late by at most 2 cycles per running timer, and 8,
// while events are taken. At most Depth CQEs may be on their way (cqe_ready_o). An operation waits for the
// event that it raises to be taken.

module cq_events
  import rnic_pkg::*;
#(
  parameter int unsigned ClkPs = 4000,
  parameter int unsigned Depth = 64
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [63:0] time_i,    // the high bits never matter
  // verilator lint_on UNUSEDSIGNAL
  // CQEs on their way to memory, in order
  input  logic        cqe_valid_i,
  output logic        cqe_ready_o,
  input  cq_idx_t     cqe_cqn_i,
  input  logic        cqe_has_eq_i,
  input  logic        cqe_solicited_i,   // solicited or failed
  input  logic        cqe_overrun_i,     // the last one that this CQ takes
  input  logic        cqe_done_i,        // the oldest one was acknowledged
  // doorbells of CQs that exist, with an index that is possible
  input  logic        db_valid_i,
  output logic        db_ready_o,
  input  cq_idx_t     db_cqn_i,
  input  logic [23:0] db_ci_i,
  input  cq_arm_t     db_arm_i,
  // commands
  input  logic        cmd_valid_i,
  output logic        cmd_ready_o,
  input  cq_cmd_e     cmd_op_i,
  input  cq_idx_t     cmd_idx_i,
  input  logic [7:0]  cmd_eqn_i,
  input  cq_mod_t     cmd_mod_i,
  output logic        cmd_rsp_valid_o,
  output cq_arm_t     cmd_rsp_arm_o,
  output cq_mod_t     cmd_rsp_mod_o,
  // events
  output logic        comp_valid_o,
  input  logic        comp_ready_i,
  output comp_ev_t    comp_o,
  output logic        ovr_valid_o,
  input  logic        ovr_ready_i,
  output async_ev_t   ovr_o,
  // timers: none fires before wake_o
  output logic        wake_valid_o,
  output logic [63:0] wake_o,
  input  logic        drain_i,
  output logic        drain_done_o,
  output logic        idle_o
);

  localparam int unsigned TimeW = 48;
  localparam int unsigned CycPerUs = (1_000_000 + ClkPs - 1) / ClkPs;
  localparam int unsigned GrpW = 16;
  localparam int unsigned NumGrp = NumCq / GrpW;
  localparam int unsigned GrpIdxW = $clog2(NumGrp);
  localparam int unsigned LevelW = $clog2(Depth) + 1;
  typedef logic [TimeW-1:0] time_t;

  typedef struct packed {
    logic        has_eq;
    eq_idx_t     eqn;
    cq_mod_t     moderation;
  } cfg_t;
  typedef struct packed {
    logic [23:0] done;         // CQEs in memory
    logic [23:0] ci;           // CQEs consumed, as last told
    logic [23:0] sol;          // done after the newest solicited one
    logic        sol_valid;    // it is not consumed
    cq_arm_t     arm;
    logic [15:0] cnt;          // CQEs held back
  } state_t;
  typedef struct packed {
    cq_idx_t     cqn;
    logic        has_eq;
    logic        solicited;
    logic        overrun;
  } cqe_t;
  typedef enum logic [1:0] {
    OpCqe,
    OpDb,
    OpTimer,
    OpCmd
  } op_e;

  time_t now;
  assign now = time_i[TimeW-1:0];

  // ---- CQEs on their way, and how many of them have arrived -----------------------------------------
  cqe_t head;
  logic head_valid, head_ready, cqe_arrived, cqe_op;
  logic [LevelW-1:0] arrived_q;

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(cqe_t)), .Depth(Depth)) u_cqes (
    .clk_i, .rst_ni,
    .in_valid_i(cqe_valid_i), .in_ready_o(cqe_ready_o),
    .in_data_i({cqe_cqn_i, cqe_has_eq_i, cqe_solicited_i, cqe_overrun_i}),
    .out_valid_o(head_valid), .out_ready_i(head_ready), .out_data_o(head),
    .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign cqe_arrived = head_valid && arrived_q != 0;
  assign cqe_op = cqe_arrived && (head.has_eq || head.overrun);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) arrived_q <= '0;
    else arrived_q <= arrived_q + LevelW'(cqe_done_i) - LevelW'(head_valid && head_ready);
  end

  // ---- first cycle: choose and read -----------------------------------------------------------------
  logic s1_valid_q, s1_leave, take;
  op_e op, s1_op_q;
  cq_idx_t idx, s1_idx_q, exp_idx_q;
  logic exp_valid_q;

  always_comb begin
    op = OpCqe;
    idx = head.cqn;
    if (cmd_valid_i) begin
      op = OpCmd;
      idx = cmd_idx_i;
    end else if (db_valid_i) begin
      op = OpDb;
      idx = db_cqn_i;
    end else if (exp_valid_q) begin
      op = OpTimer;
      idx = exp_idx_q;
    end
  end
  assign take = !s1_valid_q && (cmd_valid_i || db_valid_i || exp_valid_q || cqe_op);
  assign cmd_ready_o = !s1_valid_q;
  assign db_ready_o = !s1_valid_q && !cmd_valid_i;
  assign head_ready = (cqe_arrived && !cqe_op) || (take && op == OpCqe);

  logic [23:0] s1_ci_q;
  cq_arm_t s1_arm_q;
  cq_cmd_e s1_cmd_q;
  cfg_t s1_cfg_q;
  logic s1_sol_q, s1_ovr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s1_valid_q <= 1'b0;
    else if (take) s1_valid_q <= 1'b1;
    else if (s1_leave) s1_valid_q <= 1'b0;
    if (take) begin
      s1_op_q <= op;
      s1_idx_q <= idx;
      s1_ci_q <= db_ci_i;
      s1_arm_q <= db_arm_i;
      s1_cmd_q <= cmd_op_i;
      s1_cfg_q <= '{has_eq: cmd_eqn_i != NoEq, eqn: cmd_eqn_i[EqIdxW-1:0], moderation: cmd_mod_i};
      s1_sol_q <= head.solicited;
      s1_ovr_q <= head.overrun;
    end
  end

  // ---- contexts ---------------------------------------------------------------------------------------
  cfg_t cfg, cfg_wr;
  state_t st, st_wr;
  logic cfg_we;

  rnic_ram #(.Width($bits(cfg_t)), .Depth(NumCq)) u_cfg (
    .clk_i, .we_i(cfg_we), .waddr_i(s1_idx_q), .wdata_i(cfg_wr),
    .re_i(take), .raddr_i(idx), .rdata_o(cfg)
  );
  rnic_ram #(.Width($bits(state_t)), .Depth(NumCq)) u_state (
    .clk_i, .we_i(s1_leave), .waddr_i(s1_idx_q), .wdata_i(st_wr),
    .re_i(take), .raddr_i(idx), .rdata_o(st)
  );

  // ---- second cycle: decide and write back --------------------------------------------------------------
  logic [GrpW-1:0] run_q[NumGrp];  // timers that run
  logic [CqIdxW:0] run_cnt_q;
  logic running, want_start, want_stop, start, stop, fire, ovr;
  logic [23:0] done_next, left;
  logic [15:0] num;
  time_t deadline, deadline_rd;

  assign running = run_q[s1_idx_q[CqIdxW-1-:GrpIdxW]][s1_idx_q[3:0]];
  assign done_next = st.done + 24'd1;
  assign left = st.done - s1_ci_q;
  assign deadline = now + TimeW'(cfg.moderation.period * 32'(CycPerUs));

  function automatic logic reached(input cq_mod_t m, input logic [15:0] n);
    return m.period == 0 || (m.count != 0 && n >= m.count);
  endfunction

  always_comb begin
    st_wr = st;
    cfg_wr = cfg;
    cfg_we = 1'b0;
    num = '0;
    fire = 1'b0;
    ovr = 1'b0;
    want_start = 1'b0;
    want_stop = 1'b0;
    if (s1_valid_q) begin
      unique case (s1_op_q)
        OpCqe: begin
          ovr = s1_ovr_q;
          st_wr.done = done_next;
          // software may have read it, and said so, before its write was acknowledged
          if (signed'(done_next - st.ci) > 0) begin
            if (s1_sol_q) begin
              st_wr.sol = done_next;
              st_wr.sol_valid = 1'b1;
            end
            if (st.arm.any || (st.arm.solicited && s1_sol_q)) begin
              num = st.cnt == '1 ? '1 : st.cnt + 16'd1;
              fire = reached(cfg.moderation, num);
              want_start = !fire;
            end
          end
          if (num != 0) st_wr.cnt = num;
        end
        OpDb: begin
          st_wr.ci = s1_ci_q;
          if (signed'(st.sol - s1_ci_q) <= 0) st_wr.sol_valid = 1'b0;
          if (cfg.has_eq && s1_arm_q != '0) begin
            st_wr.arm.any = s1_arm_q.any || st.arm.any;
            st_wr.arm.solicited = !st_wr.arm.any;
            if (signed'(left) > 0) num = st_wr.arm.any ? left[15:0] : 16'(st_wr.sol_valid);
            st_wr.cnt = num;
            fire = num != 0 && reached(cfg.moderation, num);
            want_start = num != 0 && !fire;
            want_stop = num == 0;
          end
        end
        OpTimer: fire = running && now >= deadline_rd;
        default: begin
          unique case (s1_cmd_q)
            CqCmdCreate: begin
              st_wr = '0;
              cfg_wr = s1_cfg_q;
              cfg_we = s1_leave;
              want_stop = 1'b1;
            end
            CqCmdDestroy: begin
              st_wr.arm = '0;
              want_stop = 1'b1;
            end
            CqCmdModify: begin
              cfg_wr.moderation = s1_cfg_q.moderation;
              cfg_we = s1_leave;
              fire = running;
            end
            default: want_stop = 1'b0;
          endcase
        end
      endcase
      if (fire) begin
        st_wr.arm = '0;
        st_wr.cnt = '0;
        want_stop = 1'b1;
      end
    end
  end
  assign start = want_start && !running && s1_leave;
  assign stop = want_stop && running && s1_leave;

  // ---- events ---------------------------------------------------------------------------------------------
  logic comp_sent_q, ovr_sent_q;
  assign comp_valid_o = fire && !comp_sent_q;
  assign comp_o = '{eqn: cfg.eqn, cqn: s1_idx_q};
  assign ovr_valid_o = ovr && !ovr_sent_q;
  assign ovr_o = '{ev_type: rnic_regs_pkg::EqeTypeCqOverrun, object: 32'(s1_idx_q), detail: '0};
  assign s1_leave = s1_valid_q && (!comp_valid_o || comp_ready_i) && (!ovr_valid_o || ovr_ready_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || s1_leave || !s1_valid_q) begin
      comp_sent_q <= 1'b0;
      ovr_sent_q <= 1'b0;
    end else begin
      if (comp_valid_o && comp_ready_i) comp_sent_q <= 1'b1;
      if (ovr_valid_o && ovr_ready_i) ovr_sent_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) cmd_rsp_valid_o <= 1'b0;
    else cmd_rsp_valid_o <= s1_leave && s1_op_q == OpCmd;
    if (s1_leave && s1_op_q == OpCmd) begin
      cmd_rsp_arm_o <= st.arm;
      cmd_rsp_mod_o <= cfg.moderation;
    end
  end

  // ---- timers: those that run are looked at in turn, one every 2 cycles -------------------------------------
  logic scan, rd_q, stale_q, live, hit;
  cq_idx_t scan_idx, rd_idx_q;
  logic [CqIdxW:0] visits_q;
  time_t min_q, wake_q;
  logic wake_valid_q, change;

  // the next one behind rd_idx_q, else the first
  always_comb begin
    scan_idx = '0;
    if (run_cnt_q != 0) begin
      for (int g = int'(NumGrp) - 1; g >= 0; g--)
        if (run_q[g] != '0) scan_idx[CqIdxW-1-:GrpIdxW] = GrpIdxW'(g);
      for (int g = int'(NumGrp) - 1; g >= 0; g--)
        if (run_q[g] != '0 && GrpIdxW'(g) > rd_idx_q[CqIdxW-1-:GrpIdxW])
          scan_idx[CqIdxW-1-:GrpIdxW] = GrpIdxW'(g);
      if (|(run_q[rd_idx_q[CqIdxW-1-:GrpIdxW]] >> rd_idx_q[3:0] >> 1'b1))
        scan_idx[CqIdxW-1-:GrpIdxW] = rd_idx_q[CqIdxW-1-:GrpIdxW];
      for (int i = int'(GrpW) - 1; i >= 0; i--)
        if (run_q[scan_idx[CqIdxW-1-:GrpIdxW]][i]) scan_idx[3:0] = 4'(i);
      if (scan_idx[CqIdxW-1-:GrpIdxW] == rd_idx_q[CqIdxW-1-:GrpIdxW]) begin
        for (int i = int'(GrpW) - 1; i >= 0; i--)
          if (run_q[scan_idx[CqIdxW-1-:GrpIdxW]][i] && 4'(i) > rd_idx_q[3:0]) scan_idx[3:0] = 4'(i);
      end
    end
  end

  assign scan = run_cnt_q != 0 && !rd_q && !exp_valid_q && !(s1_valid_q && s1_op_q == OpTimer);
  rnic_ram #(.Width(TimeW), .Depth(NumCq)) u_deadline (
    .clk_i, .we_i(start), .waddr_i(s1_idx_q), .wdata_i(deadline),
    .re_i(scan || (take && op == OpTimer)), .raddr_i(exp_valid_q ? exp_idx_q : scan_idx),
    .rdata_o(deadline_rd)
  );
  // a timer that starts or stops in these two cycles is left to the next round
  assign change = start || stop;
  assign live = rd_q && !stale_q && !change;
  assign hit = live && now >= deadline_rd;
  assign wake_valid_o = run_cnt_q == 0 || (wake_valid_q && wake_q > now);
  assign wake_o = run_cnt_q == 0 ? '1 : 64'(wake_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int g = 0; g < int'(NumGrp); g++) run_q[g] <= '0;
      run_cnt_q <= '0;
      rd_q <= 1'b0;
      stale_q <= 1'b0;
      exp_valid_q <= 1'b0;
      wake_valid_q <= 1'b0;
      visits_q <= '0;
      min_q <= '1;
      rd_idx_q <= '0;
    end else begin
      if (change) begin
        run_q[s1_idx_q[CqIdxW-1-:GrpIdxW]][s1_idx_q[3:0]] <= start;
        run_cnt_q <= start ? run_cnt_q + 1'b1 : run_cnt_q - 1'b1;
      end
      rd_q <= scan;
      if (scan) begin
        rd_idx_q <= scan_idx;
        stale_q <= change;
      end
      if (take && op == OpTimer) exp_valid_q <= 1'b0;
      else if (hit) exp_valid_q <= 1'b1;
      if (hit) exp_idx_q <= rd_idx_q;
      // the earliest deadline is known when all that run were looked at since the last change
      if (change || hit) begin
        wake_valid_q <= 1'b0;
        visits_q <= '0;
        min_q <= '1;
      end else if (live) begin
        if (visits_q + 1'b1 == run_cnt_q) begin
          wake_valid_q <= 1'b1;
          wake_q <= deadline_rd < min_q ? deadline_rd : min_q;
          visits_q <= '0;
          min_q <= '1;
        end else begin
          visits_q <= visits_q + 1'b1;
          if (deadline_rd < min_q) min_q <= deadline_rd;
        end
      end
    end
  end

  // ---- drain: the CQEs taken before have been looked at, and what they raised was taken ---------------------
  logic cqes_none;
  drain_count u_drain (
    .clk_i, .rst_ni, .begin_i(cqe_valid_i && cqe_ready_o),
    .ended_i(2'(cqe_arrived && !cqe_op) + 2'(s1_leave && s1_op_q == OpCqe)), .hold_i(s1_valid_q),
    .drain_i, .done_o(drain_done_o), .empty_o(cqes_none)
  );
  assign idle_o = !s1_valid_q && cqes_none && !exp_valid_q && !cqe_valid_i && !db_valid_i && !cmd_valid_i;

endmodule
