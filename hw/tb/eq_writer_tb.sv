// SPDX-License-Identifier: Apache-2.0
//
// eq_writer behind event_arb, against a memory that stalls: software polls by the phase bit and compares every
// EQE; an interrupt only for an armed EQ and only with an EQE in memory behind the index it was armed with,
// exactly one per arming, none missing; arming at every distance from an event; full EQs; doorbells
// out of range; EQs that do not exist; failing memory; drain.

module eq_writer_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int NumRing = 4;   // ring i has vector i
  localparam int NumSrc = 3;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic comp_valid = 0, comp_ready, db_valid = 0, db_ready, db_arm = 0, cmd_valid = 0, cmd_ready, cmd_rsp_valid;
  comp_ev_t comp = '0;
  logic [NumSrc-1:0] src_valid = '0, src_ready;
  async_ev_t [NumSrc-1:0] src = '0;
  logic as_valid, as_ready;
  async_ev_t as_ev;
  logic [7:0] db_eqn = '0;
  logic [23:0] db_ci = '0;
  eq_cmd_e cmd_op = EqCmdQuery;
  eq_idx_t cmd_idx = '0;
  logic [63:6] cmd_addr = '0;
  logic [3:0] cmd_log_size = '0;
  vec_t cmd_vector = '0;
  eq_ctx_t cmd_rsp;
  logic irq_valid;
  vec_t irq_vec;
  logic b_err, drain = 0, arb_drain_done, eq_drain_done, arb_idle, eq_idle;
  logic ev_eqe, ev_lost, ev_bad_db, ev_axi_err;
  logic aw_valid, aw_ready, w_valid, w_ready, w_last, b_valid;
  logic [63:0] aw_addr;
  logic [7:0] aw_len;
  logic [DataW-1:0] w_data;
  logic [DataW/8-1:0] w_strb;

  event_arb #(.NumSrc(NumSrc)) u_arb (
    .clk_i(clk), .rst_ni(rst_n), .in_valid_i(src_valid), .in_ready_o(src_ready), .in_i(src),
    .out_valid_o(as_valid), .out_ready_i(as_ready), .out_o(as_ev),
    .drain_i(drain), .drain_done_o(arb_drain_done), .idle_o(arb_idle));
  eq_writer #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .comp_valid_i(comp_valid), .comp_ready_o(comp_ready), .comp_i(comp),
    .async_valid_i(as_valid), .async_ready_o(as_ready), .async_i(as_ev),
    .db_valid_i(db_valid), .db_ready_o(db_ready), .db_eqn_i(db_eqn), .db_arm_i(db_arm), .db_ci_i(db_ci),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_op_i(cmd_op), .cmd_idx_i(cmd_idx),
    .cmd_addr_i(cmd_addr), .cmd_log_size_i(cmd_log_size), .cmd_vector_i(cmd_vector),
    .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_o(cmd_rsp),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb),
    .w_last_o(w_last), .b_valid_i(b_valid), .b_err_i(b_err),
    .irq_valid_o(irq_valid), .irq_vec_o(irq_vec), .drain_i(drain), .drain_done_o(eq_drain_done),
    .ev_eqe_o(ev_eqe), .ev_lost_o(ev_lost), .ev_bad_db_o(ev_bad_db), .ev_axi_err_o(ev_axi_err),
    .idle_o(eq_idle));
  axi_wr_mem #(.DataW(DataW)) u_wr (
    .clk_i(clk), .rst_ni(rst_n), .aw_valid_i(aw_valid), .aw_ready_o(aw_ready), .aw_addr_i(aw_addr),
    .aw_len_i(aw_len), .w_valid_i(w_valid), .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb),
    .w_last_i(w_last), .b_valid_o(b_valid), .b_err_o(b_err));

  // ---- model -----------------------------------------------------------------------------------------------
  logic [63:0] base[NumRing];
  int log_size[NumRing], eqn[NumRing];
  logic exists[NumRing];
  int pi[NumRing], ci[NumRing], seen[NumRing];   // written, told to the device, read by software
  int armed_at[NumRing];                         // armed for an EQE behind this index; -1: not armed
  int n_irq[NumRing], n_eqe = 0, n_lost = 0, m_lost = 0, n_bad = 0, n_axi = 0, m_eqe = 0, n_nowhere = 0, max_fly = 0;
  int q_ring[$];
  async_ev_t q_ev[$];
  logic comp_acc = 0, db_acc = 0, check_irq_mem = 1;
  logic [NumSrc-1:0] src_acc = '0;
  int served[NumSrc];
  int passed_comp = 0, passed_async = 0, contended = 0;

  function automatic int ring_of(input logic [7:0] e);
    for (int i = 0; i < NumRing; i++) if (eqn[i] == int'(e) && exists[i]) return i;
    return -1;
  endfunction
  function automatic rnic_regs_pkg::eqe_t slot(input int r, input int n);
    logic [127:0] v;
    for (int i = 0; i < 16; i++)
      v[8*i+:8] = u_wr.u_mem.get(base[r] + 64'(16 * (n % (1 << log_size[r]))) + 64'(i));
    return v;
  endfunction
  function automatic logic there(input int r, input int n);
    rnic_regs_pkg::eqe_t e;
    e = slot(r, n);
    return e.phase == (((n >> log_size[r]) & 1) == 0);
  endfunction

  int mr, mv;
  async_ev_t me;
  always @(posedge clk) if (rst_n) begin
    if (ev_eqe) n_eqe++;
    if (ev_lost) n_lost++;
    if (ev_bad_db) n_bad++;
    if (ev_axi_err) n_axi++;
    if (irq_valid) begin
      mv = int'(irq_vec);
      n_irq[mv]++;
      if (armed_at[mv] < 0) $fatal(1, "interrupt %0d of an EQ that is not armed", mv);
      if (check_irq_mem && !there(mv, armed_at[mv])) $fatal(1, "interrupt %0d without an EQE in memory", mv);
      armed_at[mv] = -1;
    end
    comp_acc = comp_valid && comp_ready;
    // completions and other events in turn: none waits while two of the other kind are taken
    if (comp_acc || (as_valid && as_ready)) begin
      passed_comp = comp_acc || !comp_valid ? 0 : passed_comp + 1;
      passed_async = !comp_acc || !as_valid ? 0 : passed_async + 1;
      if (passed_comp > 1 || passed_async > 1) $fatal(1, "%0d events before a completion, %0d before another event", passed_comp, passed_async);
      if (comp_valid && as_valid) contended++;
    end
    src_acc = src_valid & src_ready;
    for (int i = 0; i < NumSrc; i++) if (src_acc[i]) served[i]++;
    if ($countones(src_acc) > 1) $fatal(1, "two sources at once");
    db_acc = db_valid && db_ready;
    if ((comp_valid && comp_ready) + (as_valid && as_ready) + db_acc + (cmd_valid && cmd_ready) > 1) $fatal(1, "two at once");
    if (comp_acc || (as_valid && as_ready)) begin
      mr = comp_acc ? ring_of(8'(comp.eqn)) : ring_of(0);
      me = comp_acc ? '{ev_type: 8'd1, object: 32'(comp.cqn), detail: 0} : as_ev;
      if (mr < 0) n_nowhere++;
      else if (pi[mr] - ci[mr] >= (1 << log_size[mr])) m_lost++;
      else begin
        pi[mr]++;
        m_eqe++;
        q_ring.push_back(mr);
        q_ev.push_back(me);
      end
    end
    if (db_acc) begin
      mr = ring_of(db_eqn);
      if (mr >= 0 && 24'(db_ci - 24'(ci[mr])) <= 24'(pi[mr] - ci[mr])) begin
        ci[mr] = ci[mr] + int'(24'(db_ci - 24'(ci[mr])));
        if (db_arm || armed_at[mr] >= 0) armed_at[mr] = ci[mr];
      end
    end
    if (m_eqe - n_eqe > max_fly) max_fly = m_eqe - n_eqe;
  end

  int at, pr;
  logic hit;
  rnic_regs_pkg::eqe_t c, w;
  task automatic poll();
    c = slot(pr, seen[pr]);
    hit = there(pr, seen[pr]);
    if (hit) begin
      at = -1;
      for (int k = q_ring.size() - 1; k >= 0; k--) if (q_ring[k] == pr) at = k;
      if (at < 0) $fatal(1, "EQE nobody made in ring %0d", pr);
      w = '0;
      w.event_type = q_ev[at].ev_type;
      w.object = q_ev[at].object;
      w.detail = q_ev[at].detail;
      w.phase = c.phase;
      if (c != w) $fatal(1, "ring %0d EQE %0d:\n got %h\nwant %h", pr, seen[pr], c, w);
      q_ring.delete(at);
      q_ev.delete(at);
      seen[pr]++;
    end
  endtask

  task automatic command(input eq_cmd_e op, input int n, input logic [63:0] addr, input int ls, input int vec);
    cmd_valid = 1;
    cmd_op = op;
    cmd_idx = 5'(n);
    cmd_addr = addr[63:6];
    cmd_log_size = 4'(ls);
    cmd_vector = 2'(vec);
    do @(posedge clk); while (!cmd_ready);
    @(negedge clk);
    cmd_valid = 0;
    while (!cmd_rsp_valid) @(negedge clk);
  endtask
  task automatic doorbell(input int e, input int index, input logic arm);
    db_valid = 1;
    db_eqn = 8'(e);
    db_ci = 24'(index);
    db_arm = arm;
    do @(posedge clk); while (!db_ready);
    @(negedge clk);
    db_valid = 0;
    repeat (3) @(negedge clk);
  endtask
  task automatic send(input int e, input int cqn);
    comp_valid = 1;
    comp = '{eqn: 5'(e), cqn: 8'(cqn)};
    do @(posedge clk); while (!comp_ready);
    @(negedge clk);
    comp_valid = 0;
  endtask
  task automatic quiet();
    waits = 0;
    while (!(eq_idle && arb_idle) && waits < 20000) begin
      @(negedge clk);
      waits++;
    end
    if (!(eq_idle && arb_idle)) $fatal(1, "never idle");
    repeat (3) @(negedge clk);
  endtask

  int r, waits, irqs, prev, off, sweeps = 0, most_open = 0;
  initial begin
    eqn = '{0, 5, 17, 31};
    for (int i = 0; i < NumRing; i++) begin
      base[i] = 64'h6000_0000_0000 + 64'(i) * 64'h10_0000 + 64'(i) * 64;
      log_size[i] = i == 0 ? 6 : i == 1 ? 1 : i == 2 ? 3 : 7;
      exists[i] = 0;
      pi[i] = 0; ci[i] = 0; seen[i] = 0; armed_at[i] = -1; n_irq[i] = 0;
    end
    for (int i = 0; i < NumSrc; i++) served[i] = 0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    // events without an EQ leave no trace
    send(5, 3);
    src_valid = 3'b001;
    @(negedge clk);
    src_valid = '0;
    quiet();
    if (n_eqe != 0 || n_lost != 0 || n_nowhere != 2) $fatal(1, "event without EQ");
    for (int i = 0; i < NumRing; i++) begin
      command(EqCmdQuery, eqn[i], 0, 0, 0);
      if (cmd_rsp.exists) $fatal(1, "EQ exists after reset");
      command(EqCmdCreate, eqn[i], base[i], log_size[i], i);
      exists[i] = 1;
    end
    // ---- random traffic
    for (int n = 0; n < 80000; n++) begin
      @(negedge clk);
      u_wr.u_mem.stall = (n / 10000) % 2 == 0 ? 30 : 85;
      u_wr.u_mem.freeze_w = n % 4000 >= 3800;   // many writes open
      if (comp_acc) comp_valid = 0;
      if (!comp_valid && ($urandom() % 6) == 0) begin
        r = int'($urandom() % NumRing);
        comp_valid = 1;
        comp = '{eqn: ($urandom() % 64) == 0 ? 5'd9 : 5'(eqn[r]), cqn: 8'($urandom())};
      end
      src_valid = src_valid & ~src_acc;
      for (int i = 0; i < NumSrc; i++) if (!src_valid[i] && ($urandom() % ((n / 20000) % 2 == 0 ? 60 : 4)) == 0) begin
        src_valid = src_valid | 3'(1 << i);
        src[i] = '{ev_type: 8'($urandom()), object: $urandom(), detail: $urandom()};
      end
      for (int k = 0; k < 2; k++) begin
        pr = int'($urandom() % NumRing);
        if (($urandom() % ((n / 5000) % 3 == 0 ? 200 : 4)) == 0) poll();
      end
      if (db_acc) db_valid = 0;
      if (!db_valid && ($urandom() % 8) == 0) begin
        r = int'($urandom() % NumRing);
        db_valid = 1;
        db_eqn = 8'(eqn[r]);
        db_ci = 24'(ci[r] + int'($urandom() % 32'(seen[r] - ci[r] + 1)));
        if (($urandom() % 2) == 0) db_ci = 24'(seen[r]);
        db_arm = ($urandom() % 2) == 0;
      end
    end
    u_wr.u_mem.freeze_w = 0;
    while (comp_valid || src_valid != 0 || db_valid) begin
      @(negedge clk);
      if (comp_acc) comp_valid = 0;
      src_valid = src_valid & ~src_acc;
      if (db_acc) db_valid = 0;
    end
    quiet();
    for (int i = 0; i < NumRing; i++) begin
      pr = i;
      hit = 1;
      while (hit) poll();
      if (seen[i] != pi[i]) $fatal(1, "ring %0d: %0d of %0d EQEs", i, seen[i], pi[i]);
      if (armed_at[i] >= 0 && armed_at[i] != pi[i]) $fatal(1, "ring %0d: interrupt missing", i);
      command(EqCmdQuery, eqn[i], 0, 0, 0);
      if (!cmd_rsp.exists || cmd_rsp.pi != 24'(pi[i]) || cmd_rsp.ci != 24'(ci[i]) || cmd_rsp.addr != base[i] ||
          int'(cmd_rsp.log_size) != log_size[i] || int'(cmd_rsp.irq_vec) != i || cmd_rsp.armed != (armed_at[i] >= 0))
        $fatal(1, "query %0d: %h", i, cmd_rsp);
      if (pi[i] < 4 * (1 << log_size[i]) || n_irq[i] < 20) $fatal(1, "ring %0d: %0d EQEs, %0d interrupts", i, pi[i], n_irq[i]);
      doorbell(eqn[i], seen[i], 0);
    end
    if (n_eqe != m_eqe || n_lost != m_lost || m_lost < 100 || n_bad != 0 || n_axi != 0 || max_fly < 8)
      $fatal(1, "EQEs %0d of %0d, lost %0d of %0d, in flight %0d", n_eqe, m_eqe, n_lost, m_lost, max_fly);
    for (int i = 0; i < NumSrc; i++) if (served[i] * 2 < served[0] || served[i] == 0) $fatal(1, "source %0d starves", i);

    if (contended < 1000) $fatal(1, "only %0d times completions and other events wait for each other", contended);

    // ---- many writes open: every armed EQ that gets an EQE gets its interrupt, and by no later EQE
    for (int round = 0; round < 200; round++) begin
      u_wr.u_mem.stall = round % 3 == 0 ? 0 : 40;
      for (int i = 0; i < NumRing; i++) doorbell(eqn[i], seen[i], round % 4 != i);
      u_wr.u_mem.freeze_w = 1;
      for (int k = 0; k < 1 + round % 16; k++) begin
        src = '0;
        if (($urandom() % 2) == 0) send(eqn[$urandom() % NumRing], k);
        else begin
          src_valid = 3'b010;
          do @(posedge clk); while (!src_ready[1]);
          @(negedge clk);
          src_valid = '0;
        end
      end
      repeat (200) @(negedge clk);
      if (m_eqe - n_eqe > most_open) most_open = m_eqe - n_eqe;
      u_wr.u_mem.freeze_w = 0;
      quiet();
      for (int i = 0; i < NumRing; i++) begin
        if (armed_at[i] >= 0 && armed_at[i] != pi[i]) $fatal(1, "round %0d, ring %0d: interrupt missing", round, i);
        pr = i;
        hit = 1;
        while (hit) poll();
      end
    end
    if (most_open < 14) $fatal(1, "at most %0d writes open", most_open);
    for (int i = 0; i < NumRing; i++) begin
      doorbell(eqn[i], seen[i], 0);
      if (armed_at[i] >= 0) begin  // take it away by one more event
        send(eqn[i], 8);
        quiet();
        pr = i;
        poll();
        doorbell(eqn[i], seen[i], 0);
      end
    end

    // ---- arming at every distance from one event: one interrupt, and none more
    for (int pass = 0; pass < 6; pass++) begin
      u_wr.u_mem.stall = pass < 2 ? 0 : 50;
      for (off = -40; off <= 60; off++) begin
        prev = n_irq[3];
        r = seen[3];
        fork
          begin
            repeat (100) @(negedge clk);
            send(31, off + 60);
          end
          begin
            repeat (100 + off) @(negedge clk);
            doorbell(31, r, 1);
          end
        join
        quiet();
        if (n_irq[3] != prev + 1) $fatal(1, "arming %0d cycles behind the event: %0d interrupts", off, n_irq[3] - prev);
        pr = 3;
        poll();
        if (!hit) $fatal(1, "no EQE");
        // armed with what was read: nothing, also when the index is told before the acknowledge
        prev = n_irq[3];
        fork
          begin
            send(31, 7);
          end
          begin
            repeat (off < 0 ? -off : off) begin
              @(negedge clk);
              if (!there(3, seen[3])) continue;
              poll();
              break;
            end
            doorbell(31, seen[3], 1);
          end
        join
        quiet();
        if (n_irq[3] != prev + (seen[3] == pi[3] ? 0 : 1)) $fatal(1, "armed behind all: %0d interrupts", n_irq[3] - prev);
        if (seen[3] != pi[3]) poll();
        doorbell(31, seen[3], 0);
        if (armed_at[3] >= 0) begin  // take it away by one more event
          send(31, 8);
          quiet();
          poll();
          doorbell(31, seen[3], 0);
        end
        sweeps++;
      end
    end
    u_wr.u_mem.stall = 30;

    // ---- doorbells that must change nothing
    prev = n_bad;
    doorbell(31, seen[3] + 1, 1);
    doorbell(31, seen[3] - 1, 1);
    doorbell(18, 0, 1);
    doorbell(32, 0, 1);
    doorbell(128 + 31, seen[3], 1);
    if (n_bad != prev + 5) $fatal(1, "%0d bad doorbells", n_bad - prev);
    prev = n_irq[3];
    send(31, 1);
    quiet();
    if (n_irq[3] != prev) $fatal(1, "armed by a bad doorbell");
    pr = 3;
    poll();
    doorbell(31, seen[3], 0);

    // ---- a full EQ: the newest are lost, the rest is good; overrun stays until it is destroyed
    command(EqCmdDestroy, 17, 0, 0, 0);
    exists[2] = 0;
    prev = n_eqe;
    send(17, 4);
    quiet();
    if (n_eqe != prev) $fatal(1, "EQE of a destroyed EQ");
    for (int i = 0; i < 256; i++) u_wr.u_mem.mem[base[2] + 64'(i)] = 0;
    command(EqCmdCreate, 17, base[2], 3, 2);
    exists[2] = 1; pi[2] = 0; ci[2] = 0; seen[2] = 0; armed_at[2] = -1;
    doorbell(17, 0, 1);
    prev = n_lost;
    irqs = n_irq[2];
    for (int i = 0; i < 11; i++) send(17, i);
    quiet();
    if (n_lost != prev + 3 || n_irq[2] != irqs + 1) $fatal(1, "full: %0d lost, %0d interrupts", n_lost - prev, n_irq[2] - irqs);
    command(EqCmdQuery, 17, 0, 0, 0);
    if (!cmd_rsp.overrun || cmd_rsp.pi != 8) $fatal(1, "overrun not shown");
    pr = 2;
    for (int i = 0; i < 8; i++) begin
      poll();
      if (!hit) $fatal(1, "EQE %0d of the full ring missing", i);
    end
    doorbell(17, 8, 1);
    send(17, 99);
    quiet();
    poll();
    if (!hit || n_irq[2] != irqs + 2) $fatal(1, "EQ does not go on after overrun");
    command(EqCmdQuery, 17, 0, 0, 0);
    if (!cmd_rsp.overrun) $fatal(1, "overrun forgotten");
    command(EqCmdDestroy, 17, 0, 0, 0);
    exists[2] = 0;
    for (int i = 0; i < 256; i++) u_wr.u_mem.mem[base[2] + 64'(i)] = 0;
    command(EqCmdCreate, 17, base[2], 3, 2);
    exists[2] = 1; pi[2] = 0; ci[2] = 0; seen[2] = 0; armed_at[2] = -1;
    command(EqCmdQuery, 17, 0, 0, 0);
    if (cmd_rsp.overrun || cmd_rsp.armed || cmd_rsp.pi != 0) $fatal(1, "new EQ is not new");

    // ---- memory that refuses: told, the interrupt comes all the same
    check_irq_mem = 0;
    doorbell(17, 0, 1);
    irqs = n_irq[2];
    u_wr.u_mem.err_lo = base[2];
    u_wr.u_mem.err_hi = base[2] + 128;
    send(17, 1);
    quiet();
    if (n_axi != 1 || n_irq[2] != irqs + 1) $fatal(1, "write error: %0d told, %0d interrupts", n_axi, n_irq[2] - irqs);
    u_wr.u_mem.err_lo = '1;
    u_wr.u_mem.err_hi = '0;
    q_ring.delete(q_ring.size() - 1);
    q_ev.delete(q_ev.size() - 1);
    m_eqe--;
    check_irq_mem = 1;

    // ---- drain waits for what was taken before, not for what comes later
    u_wr.u_mem.freeze_w = 1;
    src = '0;
    src[1] = '{ev_type: 8'd16, object: 32'h155, detail: 0};
    src_valid = 3'b010;
    @(negedge clk);
    src_valid = '0;
    send(31, 200);
    repeat (20) @(negedge clk);
    if (eq_idle) $fatal(1, "idle with a write on its way");
    drain = 1;
    repeat (100) @(negedge clk);
    if (eq_drain_done || !arb_drain_done) $fatal(1, "drain %b %b", eq_drain_done, arb_drain_done);
    u_wr.u_mem.freeze_w = 0;
    waits = 0;
    while (!eq_drain_done && waits < 1000) begin
      @(negedge clk);
      waits++;
    end
    if (!eq_drain_done) $fatal(1, "drain never ends");
    u_wr.u_mem.freeze_w = 1;
    send(31, 201);
    repeat (100) @(negedge clk);
    if (!eq_drain_done) $fatal(1, "drain waits for new work");
    // the arbiter: full behind a writer that has no room
    drain = 0;
    src_valid = 3'b111;
    repeat (200) @(negedge clk);
    drain = 1;
    repeat (50) @(negedge clk);
    if (arb_drain_done) $fatal(1, "arbiter drained with events queued");
    src_valid = '0;
    u_wr.u_mem.freeze_w = 0;
    waits = 0;
    while (!(eq_drain_done && arb_drain_done) && waits < 5000) begin
      @(negedge clk);
      waits++;
    end
    if (!(eq_drain_done && arb_drain_done)) $fatal(1, "drain never ends");
    drain = 0;
    quiet();
    if (eq_drain_done || arb_drain_done) $fatal(1, "end");
    if (n_eqe != m_eqe || n_lost != m_lost) $fatal(1, "at the end %0d of %0d EQEs, %0d of %0d lost", n_eqe, m_eqe, n_lost, m_lost);
    $display("PASS %0d EQEs, %0d lost, %0d armings", n_eqe, n_lost, sweeps);
    $finish;
  end
endmodule
