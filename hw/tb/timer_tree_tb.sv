// SPDX-License-Identifier: Apache-2.0
//
// timer_tree against a model: 65536 timers at random deadlines, armed, moved and stopped at random, each to fire within one tick of its
// time, with time that jumps to the next deadline; small trees in every cycle with deadlines close together, past and far,
// the fire port blocked at times; `next` compared with the model whenever it is known.

module timer_tree_tb #(
  parameter int unsigned DataW = 64
);
  logic clk = 0;
  always #1 clk = !clk;
  bit [4:0] done;

  // the sizes of a width; TickW as small as the run allows
  timer_tree_run #(.Num(65536), .LogTrees(DataW == 64 ? 2 : 4), .Dense(0)) u_large (.clk, .done(done[0]));
  timer_tree_run #(.Num(256), .LogTrees(2), .Dense(0)) u_qps (.clk, .done(done[1]));
  timer_tree_run #(.Num(4), .LogTrees(1), .Dense(1)) u_four (.clk, .done(done[2]));
  timer_tree_run #(.Num(16), .LogTrees(DataW == 64 ? 1 : 3), .Dense(1)) u_sixteen (.clk, .done(done[3]));
  timer_tree_run #(.Num(64), .LogTrees(2), .Dense(1)) u_sixty_four (.clk, .done(done[4]));

  int fires;
  initial begin
    while (done != '1) @(posedge clk);
    fires = u_large.n_fire + u_qps.n_fire + u_four.n_fire + u_sixteen.n_fire + u_sixty_four.n_fire;
    $display("PASS %0d timers fired, %0d moved, %0d stopped, %0d jumps; largest wait %0d cycles of a tick", fires,
      u_large.n_move + u_four.n_move + u_sixteen.n_move, u_large.n_stop + u_four.n_stop + u_sixteen.n_stop, u_large.n_jump, u_large.worst);
    $finish;
  end
endmodule

module timer_tree_run #(
  parameter int unsigned Num = 16,
  parameter int unsigned LogTrees = 1,
  parameter bit Dense = 0       // a set in most cycles, ticks of a few cycles
) (
  input logic clk,
  output bit done
);
  localparam int unsigned IdxW = $clog2(Num);
  localparam int unsigned TickW = 48;
  localparam int TickCycles = Dense ? 8 : 256;

  logic rst_n = 0, ready, set_valid = 0, set_on = 0, fire_ready = 0, fire_valid, next_valid, any;
  logic [IdxW-1:0] set_idx = '0, fire_idx;
  logic [TickW-1:0] now = 48'h1000, set_deadline = '0, next;

  timer_tree #(.Num(Num), .TickW(TickW), .LogTrees(LogTrees)) dut (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(ready), .now_i(now),
    .set_valid_i(set_valid), .set_on_i(set_on), .set_idx_i(set_idx), .set_deadline_i(set_deadline),
    .fire_ready_i(fire_ready), .fire_valid_o(fire_valid), .fire_idx_o(fire_idx),
    .next_valid_o(next_valid), .any_o(any), .next_o(next));

  function automatic int rnd(int lo, int hi);
    return lo + int'($urandom() % (hi - lo + 1));
  endfunction
  function automatic bit chance(int percent);
    return int'($urandom() % 100) < percent;
  endfunction

  // ---- model -------------------------------------------------------------------------------------
  bit on[Num];
  logic [TickW-1:0] deadline[Num];
  int count = 0;                // timers that run
  int n_fire = 0, n_move = 0, n_stop = 0, n_jump = 0, n_exact = 0, n_blocked = 0, worst = 0, phase = 0;
  logic [TickW-1:0] least, started;
  int cycle_of_tick = 0, blocked = 0;
  bit old_ready = 0, old_set = 0, calm = 0;
  bit strict = 0;               // everything fires within a tick
  int sets_left = 0, due_now;

  // earliest deadline of the model, kept up when it is asked for often
  function automatic logic [TickW-1:0] earliest();
    logic [TickW-1:0] m;
    m = '1;
    for (int i = 0; i < int'(Num); i++) if (on[i] && deadline[i] < m) m = deadline[i];
    return m;
  endfunction

  task automatic choose(int percent);
    int i;
    set_valid = chance(percent);
    i = rnd(0, int'(Num) - 1);
    if (Dense && phase % 3 == 2) i = i % 3;     // the same ones again and again
    set_idx = IdxW'(i);
    set_on = chance(Dense ? 70 : 85);
    set_deadline = now + (Dense ? 48'(chance(80) ? rnd(0, 6) : chance(50) ? rnd(7, 40) : 1000000) - 48'(chance(10) ? 3 : 0) :
                          48'(1 + rnd(0, 30000) + (chance(30) ? rnd(0, 70000) : 0)));
  endtask

  always @(posedge clk) if (rst_n) begin
    // what fires was due, and could fire in the cycle before
    if (fire_valid) begin
      n_fire++;
      if (!old_ready || old_set) $fatal(1, "timer %0d fires into a port that is not ready", fire_idx);
      if (!on[fire_idx]) $fatal(1, "timer %0d fires, but it does not run", fire_idx);
      if (deadline[fire_idx] > now) $fatal(1, "timer %0d fires at %0d, deadline %0d", fire_idx, now, deadline[fire_idx]);
      if (strict && now > deadline[fire_idx]) $fatal(1, "timer %0d fires at %0d, deadline %0d", fire_idx, now, deadline[fire_idx]);
      if (strict && cycle_of_tick > worst) worst = cycle_of_tick;
      on[fire_idx] = 0;
      count--;
    end
    if (next_valid && ready) begin
      if (any != (count != 0)) $fatal(1, "any %b, %0d timers run", any, count);
      if (any && (Num < 1000 || chance(2))) begin
        least = earliest();
        if (next != least) $fatal(1, "next %0d, want %0d", next, least);
        n_exact++;
      end
    end
    // what is set now counts from the next cycle on
    if (set_valid && ready) begin
      if (on[set_idx] && set_on) n_move++;
      if (on[set_idx] && !set_on) n_stop++;
      count += int'(set_on) - int'(on[set_idx]);
      on[set_idx] = set_on;
      deadline[set_idx] = set_deadline;
      if (sets_left > 0) sets_left--;
    end
    old_ready = fire_ready;
    old_set = set_valid;
  end

  // everything is driven between the edges
  always @(negedge clk) if (rst_n && ready) begin
    cycle_of_tick++;
    if (cycle_of_tick >= TickCycles) begin
      // in a tick that began with few timers due and was not blocked all of them have fired
      cycle_of_tick = 0;
      now++;
    end
    set_valid = 0;
    if (sets_left > 0) choose(Dense ? (phase % 2 == 0 ? 90 : 30) : 100);
    if (blocked > 0) blocked--;
    else if (!calm && chance(1)) blocked = rnd(1, Dense ? 60 : 5);
    if (blocked > 0) n_blocked++;
    fire_ready = blocked == 0;
    // nothing but timers
    if (!Dense && sets_left == 0 && next_valid && any && next > now && chance(50)) begin
      now = chance(50) ? next : now + 48'(rnd(0, int'(next - now)));
      cycle_of_tick = 0;
      n_jump++;
    end
  end

  initial begin
    repeat (4) @(posedge clk);
    rst_n <= 1;
    @(posedge clk);
    while (!ready) @(posedge clk);
    if (Dense) begin
      for (phase = 0; phase < 60; phase++) begin
        sets_left = 1000;
        while (sets_left > 0) @(posedge clk);
        // those that have a deadline near by fire, the others are stopped by the next phases
        calm = 1;
        started = now;
        while (now < started + 80) @(posedge clk);
        for (int i = 0; i < int'(Num); i++) if (on[i] && deadline[i] + 2 < now) $fatal(1, "timer %0d was lost: deadline %0d, now %0d", i, deadline[i], now);
        calm = 0;
      end
      if (n_blocked < 500) $fatal(1, "corners");
    end else begin
      calm = 1;
      strict = 1;
      for (phase = 0; phase < 3; phase++) begin
        // as many as there are, and half of them again: one per cycle, which is 256 in a tick; those due meanwhile have to wait
        strict = 0;
        sets_left = phase == 0 ? int'(Num) * 2 : int'(Num) / 2;
        while (sets_left > 0) @(posedge clk);
        started = now;
        while (now < started + 60) @(posedge clk);
        strict = 1;
        // in peace, all fire within their ticks; a few are moved
        for (int k = 0; k < 40; k++) begin
          repeat (rnd(1, 3000)) @(posedge clk);
          sets_left = rnd(1, 4);
          while (sets_left > 0) @(posedge clk);
        end
        if (phase == 2) while (count != 0) @(posedge clk);
      end
      repeat (300) @(posedge clk);
      if (any || !next_valid) $fatal(1, "a timer runs");
      for (int i = 0; i < int'(Num); i++) if (on[i]) $fatal(1, "timer %0d was lost", i);
      if (n_fire < int'(Num) / 2 || n_jump < 100) $fatal(1, "corners: %0d of %0d fired, %0d jumps", n_fire, Num, n_jump);
    end
    if (n_exact < 100 || n_fire < 500) $fatal(1, "corners: %0d exact, %0d fired", n_exact, n_fire);
    done = 1;
  end
endmodule
