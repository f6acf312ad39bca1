// SPDX-License-Identifier: Apache-2.0
//
// Acknowledge queue against a model of one slot per QP: random QPs, few or many, bursts of input,
// stalled output, QPs that are busy or not, ACKs before and behind a waiting NAK, NAKs of the second source, QPs that are held, drain. DataW
// does not matter to this block.

module ack_queue_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic in_valid = 0, out_valid, out_ready = 0, idle, drain = 0, drain_done;
  ack_t in, out, nak = '0, got;
  logic nak_valid = 0, nak_ready, hold;
  qp_idx_t hold_qp;
  logic [NumQp-1:0] holds = '0, holds_last = '0;
  assign hold = holds[hold_qp];

  qp_idx_t probe_qp = '0;
  logic busy;

  ack_queue dut (
    .clk_i(clk), .rst_ni(rst_n), .in_valid_i(in_valid), .in_i(in),
    .nak_valid_i(nak_valid), .nak_ready_o(nak_ready), .nak_i(nak), .hold_qp_o(hold_qp), .hold_i(hold),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_o(out),
    .probe_qp_i(probe_qp), .busy_o(busy), .idle_o(idle), .drain_i(drain), .drain_done_o(drain_done)
  );

  // Model: what was put in for each QP and is not yet covered by an output word. A word that
  // appears at the output must be the survivor of all inputs until 3 cycles ago.
  ack_t hist[NumQp][$];         // inputs of the QP not covered by an output yet
  int   when_in[NumQp][$];
  int   cycle = 0, ins = 0, outs = 0, replaced = 0, nak_kept = 0, full_seen = 0;
  qp_idx_t order[$];            // QPs in the order in which they began to wait
  bit   was_stalled = 0, nak_taken = 0, any_hold = 0;
  int   probes = 0, naks = 0, passed = 0, n_all = NumQp;
  ack_t held;

  function automatic bit is_nak(ack_t a);
    return a.syndrome[6:5] == 2'b11;
  endfunction

  function automatic bit is_fatal(ack_t a);
    return a.syndrome inside {8'h61, 8'h62, 8'h63};
  endfunction

  // the survivor of the first n inputs of the QP
  function automatic ack_t survivor(int q, int n);
    ack_t s;
    s = hist[q][0];
    for (int i = 1; i < n; i++) begin
      if (!(is_nak(s) && !is_nak(hist[q][i]) && psn_gt(s.psn, hist[q][i].psn)) && !is_fatal(s)) s = hist[q][i];
    end
    return s;
  endfunction

  int n_in, q_out, at;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n) begin
      if (busy != (hist[probe_qp].size() != 0 || (out_valid && out.qp == probe_qp))) $fatal(1, "qp %0d: busy %b", probe_qp, busy);
      probes += int'(busy);
      if (out_valid && was_stalled) begin
        if (out !== held) $fatal(1, "output changed while it waited");
      end else if (out_valid) begin
        // a new word: it was read two cycles after the newest input that it covers
        q_out = int'(out.qp);
        n_in = 0;
        while (n_in < when_in[q_out].size() && when_in[q_out][n_in] <= cycle - 3) n_in++;
        if (n_in == 0) $fatal(1, "qp %0d: output although nothing waits", q_out);
        if (out !== survivor(q_out, n_in)) $fatal(1, "qp %0d: %h does not wait", q_out, out);
        replaced += n_in - 1;
        if (is_nak(out) && out !== hist[q_out][n_in-1]) nak_kept++;
        repeat (n_in) begin
          void'(hist[q_out].pop_front());
          void'(when_in[q_out].pop_front());
        end
        // a QP that is held goes to the end, so that the order is known only while none is
        if (holds_last[q_out]) $fatal(1, "qp %0d is held", q_out);
        if (!any_hold && int'(order[0]) != q_out) $fatal(1, "qp %0d is not the next one", q_out);
        at = 0;
        while (int'(order[at]) != q_out) at++;
        order.delete(at);
        if (at != 0) passed++;
        if (hist[q_out].size() != 0) begin  // younger inputs wait again, since their own time
          at = order.size();
          while (at > 0 && when_in[int'(order[at-1])][0] > when_in[q_out][0]) at--;
          if (at == order.size()) order.push_back(qp_idx_t'(q_out));
          else order.insert(at, qp_idx_t'(q_out));
        end
      end
      held = out;
      was_stalled = out_valid && !out_ready;
      if (out_valid && out_ready) outs++;
      nak_taken = nak_valid && nak_ready;
      if (in_valid && nak_taken) $fatal(1, "two words taken at once");
      if (in_valid || nak_taken) begin
        got = in_valid ? in : nak;
        ins++;
        naks += int'(nak_taken);
        if (hist[int'(got.qp)].size() == 0) order.push_back(got.qp);
        hist[int'(got.qp)].push_back(got);
        when_in[int'(got.qp)].push_back(cycle);
      end
      holds_last = holds;
      if (order.size() == int'(NumQp)) full_seen++;
    end
  end

  int span, p_in, p_out, inside_until, t0;
  psn_t base[NumQp];
  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < 60000; i++) begin
      @(negedge clk);
      if (i % 1000 == 0) begin
        t0 = int'($urandom() % 4);
        case (t0)
          0: span = 1;
          1: span = 3;
          2: span = 16;
          default: span = NumQp;
        endcase
        p_in = 20 + int'($urandom() % 81);
        p_out = i % 3000 == 0 ? 0 : int'($urandom() % 101);
      end
      in_valid = int'($urandom() % 100) < p_in;
      probe_qp = $urandom() % 2 == 0 ? in.qp : qp_idx_t'($urandom() % span);
      in.qp = qp_idx_t'($urandom() % span);
      in.psn = 24'hffff00 + psn_t'(ins / 4) - psn_t'($urandom() % 3);
      in.msn = 24'($urandom());
      in.syndrome = $urandom() % 4 == 0 ? (($urandom() % 8 == 0) ? 8'h61 + 8'($urandom() % 3) : SynNakSeq) : SynAck;
      if (nak_taken) nak_valid = 0;
      if (!nak_valid && $urandom() % 16 == 0) begin
        nak_valid = 1;
        nak = '{qp: qp_idx_t'($urandom() % span), psn: in.psn, msn: 24'($urandom()), syndrome: 8'h62};
      end
      // from the middle on QPs are held for a while
      if (i >= 30000) any_hold = 1;
      if (any_hold && $urandom() % 8 == 0) begin
        t0 = int'($urandom() % span);
        holds = holds ^ ({{(NumQp-1){1'b0}}, 1'b1} << t0);
        if ($urandom() % 64 == 0) holds = '0;
      end
      out_ready = int'($urandom() % 100) < p_out;
    end
    holds = '0;
    nak_valid = 0;
    in_valid = 0;
    out_ready = 1;
    while (!idle) @(negedge clk);
    any_hold = 0;
    // every QP held and waiting: nothing leaves, drain is done all the same, and then all leave
    holds = '1;
    any_hold = 1;
    for (int i = 0; i < n_all; i++) begin
      @(negedge clk);
      in_valid = 1;
      in.qp = qp_idx_t'(i);
      in.psn = psn_t'(i);
      in.syndrome = SynAck;
    end
    @(negedge clk);
    in_valid = 0;
    inside_until = outs;
    drain = 1;
    t0 = 0;
    while (!drain_done) begin
      @(negedge clk);
      t0++;
      if (t0 > 2000) $fatal(1, "drain waits for what is held");
    end
    if (outs != inside_until || idle) $fatal(1, "held acknowledges left");
    drain = 0;
    // one that is not held at the rise of drain has left when it is done
    out_ready = 0;
    @(negedge clk);
    holds = holds & ~({{(NumQp-1){1'b0}}, 1'b1} << 77);
    drain = 1;
    repeat (600) @(negedge clk);
    if (drain_done) $fatal(1, "drain done while the word at the output waits");
    out_ready = 1;
    repeat (4) @(negedge clk);
    if (!drain_done || outs != inside_until + 1) $fatal(1, "drain: %0d left", outs - inside_until);
    drain = 0;
    holds = '0;
    while (!idle) @(negedge clk);
    if (outs != inside_until + n_all) $fatal(1, "%0d of the held acknowledges left", outs - inside_until);
    any_hold = 0;
    // the queue fills with every QP while the output is stalled, then empties in order
    out_ready = 0;
    for (int i = 0; i < 2 * int'(NumQp); i++) begin
      @(negedge clk);
      in_valid = 1;
      in.qp = qp_idx_t'(i);
      in.psn = psn_t'(i);
      in.syndrome = SynAck;
    end
    @(negedge clk);
    in_valid = 0;
    // drain goes on under new input of other QPs
    out_ready = 1;
    repeat (8) @(negedge clk);
    drain = 1;
    inside_until = outs + order.size();
    t0 = 0;
    while (!drain_done) begin
      @(negedge clk);
      in_valid = t0 % 2 == 0;
      in.qp = qp_idx_t'($urandom());
      in.psn = psn_t'(ins);
      t0++;
      if (t0 > 5000) $fatal(1, "drain never done");
    end
    if (outs + 1 < inside_until) $fatal(1, "drain done after %0d of %0d", outs, inside_until);
    drain = 0;
    in_valid = 0;
    // a drain of an empty queue is done at once
    t0 = 0;
    while (!idle) begin
      @(negedge clk);
      t0++;
      if (t0 > 5000) $fatal(1, "never idle");
    end
    drain = 1;
    repeat (4) @(negedge clk);
    if (!drain_done) $fatal(1, "drain of an empty queue not done");
    for (int q = 0; q < int'(NumQp); q++) begin
      if (hist[q].size() != 0) $fatal(1, "qp %0d: %0d acknowledges lost", q, hist[q].size());
    end
    if (full_seen == 0 || replaced < 1000 || nak_kept < 50 || naks < 500 || passed < 500) $fatal(1, "corner not reached");
    $display("PASS %0d in, %0d out, %0d replaced, %0d NAKs kept, %0d of the second source, %0d passed held ones", ins, outs, replaced,
             nak_kept, naks, passed);
    $finish;
  end
endmodule
