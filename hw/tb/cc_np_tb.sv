// SPDX-License-Identifier: Apache-2.0
//
// cc_np with random marks of a few flows, so that most of them fall into open windows. The model knows of each flow when its last CNP came and which
// marks are not answered. Checked are: a mark of a flow that had no CNP for longer than a window is answered at once; every
// mark is answered within a window; no CNP without a mark since the one before; CNPs of a flow keep their distance; the CNP of the port goes to the
// QP marked last. With window 0 CNPs and marks are compared one by one. Windows change while some are open; marks are
// disabled, by all and by priority; QPs are forgotten; time jumps to wake_o while the block says that it is idle, and far when nothing waits.

module cc_np_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int NumW = DataW > 64 ? 6 : 3;
  localparam int N = 1 << NumW;
  localparam int CycPerUs = 64;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [63:0] now = 64'hffff_ff00;           // low bits wrap soon
  logic enable = 1, per_port = 0, mark_valid = 0, forget_valid = 0, cnp_valid, cnp_ready = 1, wake_valid, idle;
  logic [7:0] prio_mask = '1;
  logic [11:0] min_us = 4;
  logic [NumW-1:0] mark_qpn = 0, forget_qpn = 0, cnp_qpn;
  logic [2:0] mark_prio = 0;
  logic [63:0] wake;

  cc_np #(.NumW(NumW), .ClkPs(1_000_000 / CycPerUs), .Banks(4)) dut (
    .clk_i(clk), .rst_ni(rst_n), .time_i(now), .enable_i(enable), .per_port_i(per_port), .prio_mask_i(prio_mask), .min_us_i(min_us),
    .mark_valid_i(mark_valid), .mark_qpn_i(mark_qpn), .mark_prio_i(mark_prio), .forget_valid_i(forget_valid), .forget_qpn_i(forget_qpn),
    .cnp_valid_o(cnp_valid), .cnp_ready_i(cnp_ready), .cnp_qpn_o(cnp_qpn), .wake_valid_o(wake_valid), .wake_o(wake), .idle_o(idle));

  // ---- model ---------------------------------------------------------------------------------------
  longint slack = 16;                         // cycles from a mark, or the end of a window, to its CNP
  longint len_min, len_max;                   // of a window, with what was set before
  longint last_cnp[N];
  bit had_cnp[N];
  bit must[N], may[N], lead[N];               // marks to be answered; marks that may be; at once
  longint oldest[N], newest[N];
  int newest_qpn = 0;                         // of the port
  longint newest_until[N], forgot_at[N];
  bit off = 0;                                // nothing is checked
  longint disabled_at = 0;
  int zero_want[$];                           // window 0: marks in order
  int n_mark = 0, n_cnp = 0, n_lead = 0, n_trail = 0, n_noted = 0, n_zero = 0, n_gated = 0, n_forget = 0, n_jump = 0, n_far = 0, n_lost = 0,
      n_stall = 0, n_same = 0, n_port = 0, n_change = 0, n_plain_end = 0, n_clear = 0, n_port_forget = 0;

  function automatic int flow_of(int q); return per_port ? 0 : q; endfunction

  // one mark or end right behind another of the same flow
  always @(posedge clk) if (rst_n && dut.a_valid && dut.b_valid_q && dut.b_flow_q == dut.a_flow) n_same++;
  // a window that ended without a mark
  always @(posedge clk) if (rst_n && dut.b_go && dut.b_end_q && !dut.flow.marked) n_plain_end++;

  bit idle_q = 0;
  always @(posedge clk) begin
    if (rst_n) begin
      if (cnp_valid && cnp_ready) begin
        int q, f;
        q = int'(cnp_qpn);
        f = flow_of(q);
        n_cnp++;
        if (q == 0) $fatal(1, "CNP to QPN 0");
        if (!enable && longint'(now) - disabled_at > slack) $fatal(1, "CNP to %0d while disabled", q);
        if (!off) begin
          if (min_us == 0 && zero_want.size() != 0) begin
            if (zero_want[0] != q) $fatal(1, "window 0: CNP to %0d, the mark was of %0d", q, zero_want[0]);
            void'(zero_want.pop_front());
            n_zero++;
          end else begin
            // one that was on its way when its QP was forgotten
            if (!may[f] && longint'(now) - forgot_at[f] > slack) $fatal(1, "%0d: CNP to %0d without a mark (last mark %0d, CNP %0d, forgotten %0d)", now, q, newest[f], last_cnp[f], forgot_at[f]);
            if (len_min != 0 && had_cnp[f] && longint'(now) - last_cnp[f] < len_min - slack)
              $fatal(1, "%0d: CNP to %0d only %0d cycles behind the one before", now, q, longint'(now) - last_cnp[f]);
            if (per_port && q != newest_qpn && longint'(now) - newest_until[q] > slack) $fatal(1, "%0d: CNP of the port to %0d, %0d was marked last", now, q, newest_qpn);
            if (per_port) n_port++;
            if (must[f] && lead[f]) n_lead++;
            else n_trail++;
          end
        end
        had_cnp[f] = 1;
        last_cnp[f] = longint'(now);
        must[f] = 0;
        lead[f] = 0;
        may[f] = may[f] && newest[f] > longint'(now) - slack;
      end
      if (cnp_valid && !cnp_ready) n_stall++;
      if (mark_valid) begin
        n_mark++;
        if (!(enable && prio_mask[mark_prio])) n_gated++;
        else if (!dut.in_ready) n_lost++;
        else if (min_us == 0) begin
          zero_want.push_back(int'(mark_qpn));
        end else begin
          int f;
          f = flow_of(int'(mark_qpn));
          if (!must[f]) begin
            must[f] = 1;
            oldest[f] = longint'(now);
            lead[f] = !had_cnp[f] || longint'(now) - last_cnp[f] > len_max + slack;
            if (!lead[f]) n_noted++;
          end
          may[f] = 1;
          newest[f] = longint'(now);
          newest_until[newest_qpn] = longint'(now);
          newest_qpn = int'(mark_qpn);
        end
      end
      if (forget_valid && (!per_port || int'(forget_qpn) == newest_qpn)) begin
        int f;
        f = flow_of(int'(forget_qpn));
        n_forget++;
        if (per_port) n_port_forget++;
        if (must[f]) n_clear++;
        must[f] = 0;
        lead[f] = 0;
        may[f] = 0;
        forgot_at[f] = longint'(now);
      end
      if (!off && enable)
        for (int f = 0; f < N; f++) if (must[f]) begin
          if (lead[f] && longint'(now) - oldest[f] > slack) $fatal(1, "%0d: the first mark of %0d, at %0d, is not answered", now, f, oldest[f]);
          if (longint'(now) - oldest[f] > len_max + 2 * slack) $fatal(1, "%0d: a mark of %0d, at %0d, is not answered (last CNP %0d, forgotten %0d, windows %0d to %0d, slack %0d)", now, f, oldest[f], last_cnp[f], forgot_at[f], len_min, len_max, slack);
        end
      if (wake_valid != idle) $fatal(1, "a time to jump to while something is going on");
      if (idle && (cnp_valid || (wake_valid && wake <= now))) $fatal(1, "idle with something to do");
    end
  end

  // ---- stimuli ---------------------------------------------------------------------------------------
  int rate = 0;                // marks in 1000 cycles
  bit stalls = 0, jumps = 0;
  int stalled = 0, quiet = 0;
  bit forgets = 0;
  int since_forget = 0, of;
  logic [NumW-1:0] forgotten = 0;
  always @(negedge clk) begin
    now = now + 1;
    if (rst_n) begin
      mark_valid = $urandom_range(0, 999) < rate;
      mark_qpn = NumW'($urandom_range(1, $urandom_range(0, 3) == 0 ? N - 1 : 2));
      mark_prio = 3'($urandom);
      // a new life takes longer than this to receive something
      if ((since_forget < 16 && (per_port || mark_qpn == forgotten)) || (forget_valid && (per_port || mark_qpn == forget_qpn))) mark_valid = 0;
      stalled = stalled != 0 ? stalled - 1 : stalls && $urandom_range(0, 3) == 0 ? $urandom_range(1, 12) : 0;
      cnp_ready = stalled == 0;
      if (forget_valid) begin
        forget_valid = 0;
        since_forget = 0;
        forgotten = forget_qpn;
      end else begin
        since_forget++;
        // of one with nothing on its way, but with a mark in its window
        forget_qpn = NumW'($urandom_range(1, N - 1));
        if (per_port) forget_qpn = NumW'(newest_qpn);
        of = flow_of(int'(forget_qpn));
        forget_valid = since_forget > 20 && forgets && must[of] && !lead[of] && longint'(now) - newest[of] > slack && longint'(now) - last_cnp[of] > slack &&
                       $urandom_range(0, 9) == 0 && !(mark_valid && (per_port || mark_qpn == forget_qpn));
      end
      // a simulator: idle means that nothing happens before wake_o
      if (jumps && idle && wake_valid && !mark_valid && !forget_valid && $urandom_range(0, 3) == 0) begin
        if (wake == '1 && $urandom_range(0, 19) == 0) begin
          now = now + 64'($urandom_range(0, 1 << 28));
          n_far++;
        end else if (wake != '1 && wake > now) begin
          now = $urandom_range(0, 1) == 0 ? wake : now + 64'($urandom_range(0, int'(wake - now)));
          n_jump++;
        end
      end
    end
  end

  task automatic settle();
    rate = 0;
    forgets = 0;
    for (int i = 0; !(idle && wake_valid && wake == '1); i++) begin
      @(negedge clk);
      if (i > 300_000) $fatal(1, "windows that do not end");
    end
    repeat (4) @(negedge clk);
    for (int f = 0; f < N; f++) begin
      if (!off && must[f]) $fatal(1, "nothing waits, and a mark of %0d is not answered", f);
      may[f] = 0;
      must[f] = 0;
    end
    if (!off && zero_want.size() != 0) $fatal(1, "window 0: %0d marks without a CNP", zero_want.size());
    zero_want.delete();
  endtask

  task automatic set_len(int us, bit calm);
    longint was, len;
    was = longint'(min_us) * CycPerUs;
    len = longint'(us) * CycPerUs;
    @(negedge clk);
    #0.1;
    min_us = 12'(us);
    // windows of the time before go on, and hold up those behind them
    len_min = calm ? len : len < was ? len : was;
    len_max = calm ? len : len + was;
    repeat (2) @(negedge clk);
  endtask

  int what, cnp_was, mark_was, n_zero_open = 0;
  initial begin
    for (int f = 0; f < N; f++) begin
      must[f] = 0;
      may[f] = 0;
      had_cnp[f] = 0;
      forgot_at[f] = 0;
      newest_until[f] = 0;
    end
    len_min = 4 * CycPerUs;
    len_max = 4 * CycPerUs;
    repeat (4) @(posedge clk);
    rst_n = 1;
    repeat (2 * N) @(posedge clk);
    for (int round = 0; round < 160; round++) begin
      settle();
      per_port = 1'($urandom_range(0, 3) == 0);
      for (int f = 0; f < N; f++) had_cnp[f] = 0;
      set_len($urandom_range(0, 7) == 0 ? 0 : $urandom_range(1, $urandom_range(0, 3) == 0 ? 60 : 8), 1'b1);
      stalls = 1'($urandom_range(0, 2) == 0);
      slack = stalls ? 500 : 40;
      jumps = 1'($urandom);
      forgets = 1'($urandom) && min_us != 0;
      enable = 1;
      prio_mask = '1;
      rate = $urandom_range(0, 4) == 0 ? (stalls ? 60 : 400) : $urandom_range(1, 40);
      repeat ($urandom_range(500, 6000)) @(negedge clk);
      if (min_us == 0) continue;
      what = $urandom_range(0, 3);
      unique case (what)
        0: begin   // other windows, with some open
          int us;
          us = $urandom_range(1, 20);
          set_len(us, 1'b0);
          n_change++;
          repeat ($urandom_range(500, 4000)) @(negedge clk);
        end
        1: begin   // off and on again
          @(negedge clk);
          #0.1;
          if (1'($urandom)) enable = 0;
          else prio_mask = 8'($urandom);
          disabled_at = longint'(now);
          if (!enable) for (int f = 0; f < N; f++) must[f] = 0;
          repeat ($urandom_range(50, 2000)) @(negedge clk);
          #0.1;
          enable = 1;
          prio_mask = '1;
          repeat ($urandom_range(50, 2000)) @(negedge clk);
        end
        2: begin   // to and from window 0, and the port, with some open: nothing hangs
          off = 1;
          set_len(0, 1'b0);
          rate = 0;
          repeat (600) @(negedge clk);
          // every mark is answered, also those of flows with a window
          cnp_was = n_cnp;
          mark_was = n_mark - n_lost;
          rate = 40;
          repeat ($urandom_range(50, 500)) @(negedge clk);
          rate = 0;
          repeat (600) @(negedge clk);
          if (n_cnp - cnp_was < n_mark - n_lost - mark_was) $fatal(1, "window 0: %0d marks, %0d CNPs", n_mark - n_lost - mark_was, n_cnp - cnp_was);
          n_zero_open += n_mark - n_lost - mark_was;
          rate = 40;
          set_len($urandom_range(1, 8), 1'b0);
          repeat ($urandom_range(50, 500)) @(negedge clk);
          per_port = !per_port;
          repeat ($urandom_range(50, 500)) @(negedge clk);
          settle();
          off = 0;
        end
        default: ;
      endcase
    end
    settle();
    // off: no CNP at all
    enable = 0;
    disabled_at = longint'(now);
    n_cnp = 0;
    rate = 100;
    repeat (5000) @(negedge clk);
    if (n_cnp != 0) $fatal(1, "%0d CNPs while disabled", n_cnp);
    settle();
    if (n_lead < 100 || n_trail < 200 || n_noted < 200 || n_zero < 200 || n_gated < 100 || n_forget < 20 || n_clear < 20 || n_jump < 50 || n_far < 20 || n_stall < 100 ||
        n_same < 20 || n_port < 100 || n_change < 10 || n_plain_end < 50 || n_port_forget < 5 || n_zero_open < 100 || n_lost > n_mark / 50)
      $fatal(1, "corners: %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d, %0d lost", n_lead, n_trail, n_noted, n_zero, n_gated, n_forget, n_clear, n_jump, n_far,
             n_stall, n_same, n_port, n_change, n_plain_end, n_port_forget, n_lost);
    $display("PASS %0d marks, %0d answered at once, %0d at the end of a window, %0d windows ended plainly, %0d of the port, %0d with window 0, %0d disabled, %0d forgotten, %0d jumps (%0d far), %0d changes, %0d lost",
             n_mark, n_lead, n_trail, n_plain_end, n_port, n_zero, n_gated, n_forget, n_jump, n_far, n_change, n_lost);
    $finish;
  end
endmodule
