// SPDX-License-Identifier: Apache-2.0
//
// cqe_writer against a memory that stalls: software polls by the phase bit and compares every CQE, random CQs, ring
// sizes and consumer doorbells over many passes; overrun at exactly the right CQE and forever after;
// doorbells out of range; destruction; failing memory; drain. Events: random arming; none without arming or before
// its CQE is in memory, none missing. (cq_events_tb has the details.)

module cqe_writer_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int NumRing = 4;

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
  logic comp_valid, comp_ready = 0, ovr_valid, ovr_ready = 0, wake_valid;
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

  cqe_writer #(.DataW(DataW), .ClkPs(4000)) dut (
    .clk_i(clk), .rst_ni(rst_n), .time_i(now), .in_valid_i(in_valid), .in_ready_o(in_ready), .in_i(ev), .in_qpn_i(16'h300 ^ {8'd0, ev.qp}),
    .db_valid_i(db_valid), .db_ready_o(db_ready), .db_cqn_i(db_cqn), .db_ci_i(db_ci), .db_arm_i(db_arm),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_op_i(cmd_op), .cmd_idx_i(cmd_idx),
    .cmd_addr_i(cmd_addr), .cmd_log_size_i(cmd_log_size), .cmd_eqn_i(cmd_eqn), .cmd_mod_i(cmd_mod),
    .comp_valid_o(comp_valid), .comp_ready_i(comp_ready), .comp_o(comp), .ovr_valid_o(ovr_valid),
    .ovr_ready_i(ovr_ready), .ovr_o(ovr), .wake_valid_o(wake_valid), .wake_o(wake),
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
  int n_last = 0, want_last = 0, open_writes = 0;
  logic [QpnW:0] told[$];  // events: QP, drained
  int at;
  // of sends, of receives
  int n_error[2], n_flush[2], w_error[2], w_flush[2];
  rnic_regs_pkg::cqe_t c, w;
  logic [63:0] last_time[NumRing];
  logic in_acc = 0;

  always @(posedge clk) if (rst_n) begin
    in_acc = in_valid && in_ready;
    if (ev_cqe) n_cqe++;
    if (ev_lost) n_lost++;
    if (ev_overrun) n_overrun++;
    for (int i = 0; i < 2; i++) begin
      n_error[i] += int'(ev_error[i]);
      n_flush[i] += int'(ev_flush[i]);
    end
    if (ev_bad_db) n_bad++;
    if (ev_axi_err) n_axi++;
    if (b_valid) open_writes--;
    if (in_valid && in_ready && !ev.last_wqe) open_writes++;
    if (ev_last_wqe) begin
      n_last++;
      if (open_writes != 0) $fatal(1, "event before %0d CQEs are in memory", open_writes);
      if (told.size() == 0 || told[0] != {last_qp, last_drained}) $fatal(1, "event of QP %h, drained %b", last_qp, last_drained);
      void'(told.pop_front());
    end
  end

  function automatic cqe_ev_t rand_ev(input int r);
    cqe_ev_t e;
    e.cqn = 8'(cqn[r]);
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

  int r, total, waits, bad_before, prev;

  // ---- events: what the CQs are armed for, which CQEs are in memory ----------------------------------------
  cq_arm_t model_arm[256];
  int model_ci[256], model_pi[256], model_sol[256];   // sol: number of the newest solicited or failed CQE, plus 1
  int n_comp[256], n_comps = 0, n_ovr = 0, ring_n[256];
  int mc;
  initial for (int i = 0; i < 256; i++) begin
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
  always @(posedge clk) if (rst_n) begin
    if (ovr_valid && ovr_ready) begin
      n_ovr++;
      if (ovr.ev_type != 8'd17 || ovr.detail != 0) $fatal(1, "overrun event %h", ovr);
      if (ring_n[ovr.object[7:0]] >= 0 && !in_memory(ring_n[ovr.object[7:0]], model_pi[ovr.object[7:0]] - 1))
        $fatal(1, "overrun event before its CQE");
    end
    if (comp_valid && comp_ready) begin
      mc = int'(comp.cqn);
      n_comp[mc]++;
      n_comps++;
      if (comp.eqn != 5'((mc + 3) % 32)) $fatal(1, "event of CQ %0d to EQ %0d", mc, comp.eqn);
      if (model_arm[mc] == 0) $fatal(1, "event of CQ %0d, which is not armed", mc);
      if (model_pi[mc] <= model_ci[mc]) $fatal(1, "event of CQ %0d without CQE", mc);
      if (model_arm[mc].solicited && model_sol[mc] <= model_ci[mc]) $fatal(1, "event of CQ %0d without solicited CQE", mc);
      if (ring_n[mc] >= 0 && !in_memory(ring_n[mc], model_ci[mc])) $fatal(1, "event of CQ %0d before its CQE", mc);
      model_arm[mc] = '0;
    end
    if (dut.cqe_go) begin  // not those that are lost
      mc = int'(dut.s1_idx_q);
      model_pi[mc]++;
      if (dut.s1_ev_q.solicited || dut.s1_ev_q.status != 0 || dut.cqe_last_room) model_sol[mc] = model_pi[mc];
    end
    // when it takes effect: events decided before may be taken later
    if (dut.ev_db_valid && dut.ev_db_ready) begin
      mc = int'(dut.s1_idx_q);
      model_ci[mc] += int'(24'(dut.s1_db_ci_q - 24'(model_ci[mc])));
      if (dut.s1_db_arm_q.any || model_arm[mc].any) begin
        if (dut.s1_db_arm_q != 0) model_arm[mc] = 2'b10;
      end else if (dut.s1_db_arm_q.solicited) model_arm[mc] = 2'b01;
    end
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
    cmd_idx = 8'(n);
    cmd_addr = addr[63:6];
    cmd_log_size = 4'(ls);
    cmd_eqn = n == 128 ? NoEq : 8'((n + 3) % 32);
    do @(posedge clk); while (!cmd_ready);
    @(negedge clk);
    cmd_valid = 0;
    while (!cmd_rsp_valid) @(negedge clk);
  endtask

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
    repeat (3) @(negedge clk);
  endtask

  task automatic event_now(input cqe_ev_t e);
    in_valid = 1;
    ev = e;
    do @(posedge clk); while (!in_ready);
    @(negedge clk);
    in_valid = 0;
  endtask


  initial begin
    for (int i = 0; i < NumRing; i++) begin
      sent[i] = 0;
      seen[i] = 0;
      rung[i] = 0;
      last_time[i] = 0;
      base[i] = 64'h5000_0000_0000 + 64'(i) * 64'h10_0000 + 64'(i) * 64;
      log_size[i] = i == 0 ? 1 : i == 1 ? 3 : i == 2 ? 5 : 8;
    end
    cqn = '{0, 17, 128, 255};
    expect_overrun = 0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < NumRing; i++) begin
      ring_n[cqn[i]] = i;
      command(CqCmdQuery, cqn[i], 0, 0);
      if (cmd_rsp.exists) $fatal(1, "CQ exists after reset");
      command(CqCmdCreate, cqn[i], base[i], log_size[i]);
    end
    // ---- random traffic, never more than the ring holds
    open_writes = 0;
    total = 0;
    for (int n = 0; n < 60000; n++) begin
      @(negedge clk);
      if (in_acc) in_valid = 0;
      if (!in_valid) begin
        r = int'($urandom() % NumRing);
        if ($urandom() % 16 == 0) begin  // an event, no CQE, whatever it says
          ev = rand_ev(r);
          ev.last_wqe = 1;
          ev.drained = 1'($urandom());
          told.push_back({16'h300 ^ {8'd0, ev.qp}, ev.drained});
          in_valid = 1;
          want_last++;
        end else if (sent[r] - rung[r] < (1 << log_size[r]) - 1 && ($urandom() % ((n / 3000) % 3 == 2 ? 40 : 3)) < 2) begin
          ev = rand_ev(r);
          in_valid = 1;
          sent[r]++;
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
      if (db_valid && db_ready) db_valid = 0;
      if (!db_valid && rung[r] != seen[r] && ($urandom() % 4) == 0) begin
        db_valid = 1;
        db_arm = ($urandom() % 2) == 0 || cqn[r] == 128 ? 2'b00 : ($urandom() % 2) == 0 ? 2'b10 : 2'b01;
        db_cqn = 24'(cqn[r]);
        rung[r] = rung[r] + 1 + int'($urandom() % 32'(seen[r] - rung[r]));
        if (($urandom() % 2) == 0) rung[r] = seen[r];
        db_ci = 24'(rung[r]);
        do @(posedge clk); while (!db_ready);
        if (in_valid && in_ready) in_valid = 0;
        @(negedge clk);
        in_acc = 0;
        db_valid = 0;
      end
    end
    while (in_valid) begin
      @(negedge clk);
      if (in_acc) in_valid = 0;
    end
    waits = 0;
    while (!idle && waits < 100000) begin
      @(negedge clk);
      waits++;
    end
    repeat (3) @(negedge clk);
    for (int i = 0; i < NumRing; i++) begin
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
      if (sent[i] < 4 * (1 << log_size[i])) $fatal(1, "ring %0d: only %0d CQEs", i, sent[i]);
    end
    if (!idle || n_cqe != total || n_lost != 0 || n_overrun != 0 || n_bad != 0 || n_axi != 0 || n_error != w_error ||
        n_flush != w_flush || w_flush[0] < 100 || w_flush[1] < 100 || w_error[0] < 100 || w_error[1] < 100 || n_last != want_last || n_last < 1000) $fatal(1, "counts %0d %0d %0d %0d %0d", n_cqe, total, n_lost, n_overrun, n_bad);

    if (n_comp[0] < 100 || n_comp[17] < 100 || n_comp[255] < 100 || n_comp[128] != 0)
      $fatal(1, "events %0d %0d %0d %0d", n_comp[0], n_comp[17], n_comp[255], n_comp[128]);
    // ---- doorbells that must change nothing
    bad_before = n_bad;
    doorbell(24'(cqn[1]), 24'(sent[1] + 1));
    doorbell(24'(cqn[1]), 24'(seen[1] - 1));
    doorbell(24'd18, 24'd0);
    doorbell(24'd256, 24'd0);
    doorbell(24'(cqn[1]) | 24'h800000, 24'(seen[1]));
    if (n_bad != bad_before + 5) $fatal(1, "%0d bad doorbells", n_bad - bad_before);
    doorbell(24'(cqn[1]), 24'(seen[1]));
    if (n_bad != bad_before + 5) $fatal(1, "good doorbell refused");
    ring_db(24'd128, 24'(seen[2]), 2'b10);
    if (n_bad != bad_before + 6) $fatal(1, "arming a CQ without EQ is not told");
    model_arm[128] = '0;
    ring_db(24'(cqn[1]), 24'(seen[1]), 2'b10);

    // ---- overrun: 7 fit into a ring of 8, the last place gets the mark, the rest is lost
    for (int i = 0; i < 12; i++) begin
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
    for (int i = 0; i < 8; i++) begin
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
    $display("PASS %0d CQEs, %0d events", total, n_comps);
    $finish;
  end
endmodule
