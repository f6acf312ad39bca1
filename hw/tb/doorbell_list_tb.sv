// SPDX-License-Identifier: Apache-2.0
//
// doorbell_list against a model: random doorbells of few and of all CQNs, a taker that stalls or sleeps, peeks in every other cycle, CQs
// made anew. Each doorbell leaves, by itself or with newer ones of its CQ: the newest index, the arming of all. None waits for
// the taker. A peek gives the newest index. The width does not matter here.

module doorbell_list_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int NumW = 6;
  localparam int N = 64;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic ready, in_valid = 0, in_ready, out_valid, out_ready = 0, peek = 0, clear_valid = 0, clear_ready, hold, listed, idle;
  logic [NumW-1:0] in_cqn = '0, out_cqn, peek_cqn = '0, clear_cqn = '0;
  logic [23:0] in_ci = '0, out_ci, peek_ci;
  cq_arm_t in_arm = '0, out_arm;
  doorbell_list #(.NumW(NumW), .Banks(4)) dut (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(ready), .in_valid_i(in_valid), .in_ready_o(in_ready), .in_num_i(in_cqn), .in_idx_i(in_ci), .in_flags_i(in_arm),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_num_o(out_cqn), .out_idx_o(out_ci), .out_flags_o(out_arm),
    .peek_i(peek), .peek_num_i(peek_cqn), .peek_idx_o(peek_ci), .clear_valid_i(clear_valid), .clear_ready_o(clear_ready), .clear_num_i(clear_cqn),
    .hold_o(hold), .ev_listed_o(listed), .idle_o(idle));

  // doorbells that have not left: CQN, index (each another one), arming
  int q_cqn[$], q_ci[$];
  logic [1:0] q_arm[$];
  int newest[N], older[N], when_[N], age[N], cleared[N];   // newest index, the one before, when the newest was taken
  int t = 0, wait_in = 0, n_in = 0, n_out = 0, n_merged = 0, n_peek = 0, n_clear = 0, n_listed = 0, max_open = 0, found;
  logic [1:0] arm;
  logic acc = 0, clear_acc = 0, peek_q = 0;
  int peek_n, n64 = N, ci = 0, waits;
  logic sleepy = 0, few = 0;

  always @(posedge clk) if (rst_n && ready) begin
    t++;
    acc = in_valid && in_ready;
    clear_acc = clear_valid && clear_ready;
    n_listed += int'(listed);
    if (peek_q) begin  // of the cycle before
      n_peek++;
      if (int'(peek_ci) != newest[peek_n] && !(t - when_[peek_n] <= 3 && int'(peek_ci) == older[peek_n]))
        $fatal(1, "peek of %0d: %0d, newest %0d", peek_n, peek_ci, newest[peek_n]);
    end
    peek_q = peek;
    peek_n = int'(peek_cqn);
    if (out_valid && out_ready) begin
      n_out++;
      found = -1;
      arm = 0;
      for (int i = 0; i < q_cqn.size() && found < 0; i++) if (q_cqn[i] == int'(out_cqn)) begin
        arm |= q_arm[i];
        if (q_ci[i] == int'(out_ci)) found = i;
      end
      if (out_ci == 0 && out_arm == 0 && cleared[out_cqn] > 0) begin  // made anew while it was listed
        cleared[out_cqn]--;
      end else begin
        if (found < 0 || arm != out_arm) $fatal(1, "out: CQ %0d, %0d, %b, want %b", out_cqn, out_ci, out_arm, arm);
        for (int i = found; i >= 0; i--) if (q_cqn[i] == int'(out_cqn)) begin
          if (i != found) n_merged++;
          q_cqn.delete(i);
          q_ci.delete(i);
          q_arm.delete(i);
        end
      end
    end
    if (acc) begin
      n_in++;
      q_cqn.push_back(int'(in_cqn));
      q_ci.push_back(int'(in_ci));
      q_arm.push_back(in_arm);
      older[in_cqn] = newest[in_cqn];
      newest[in_cqn] = int'(in_ci);
      when_[in_cqn] = t;
      wait_in = 0;
    end else if (in_valid) begin
      wait_in++;
      if (wait_in > 8) $fatal(1, "a doorbell waits");
    end
    if (q_cqn.size() > max_open) max_open = q_cqn.size();
    if (clear_acc) begin
      n_clear++;
      older[clear_cqn] = newest[clear_cqn];
      newest[clear_cqn] = 0;
      when_[clear_cqn] = t;
    end
  end

  always @(negedge clk) if (rst_n) begin
    out_ready = !sleepy && ($urandom() % 3) == 0;
    peek = !peek && ($urandom() % 2) == 0;
    peek_cqn = few ? 6'($urandom() % 4) : 6'($urandom());
  end

  initial begin
    for (int i = 0; i < n64; i++) begin
      newest[i] = 0; older[i] = 0; when_[i] = -100; cleared[i] = 0;
    end
    repeat (4) @(negedge clk);
    rst_n = 1;
    if (ready || in_ready) $fatal(1, "ready at once");
    while (!ready) @(negedge clk);
    for (int k = 0; k < 60000; k++) begin
      @(negedge clk);
      sleepy = (k / 1500) % 3 == 2;
      few = (k / 4000) % 2 == 1;
      if (acc) in_valid = 0;
      if (clear_acc) clear_valid = 0;
      if (!in_valid && !clear_valid && ($urandom() % ((k / 2500) % 2 == 0 ? 2 : 20)) == 0) begin
        in_valid = 1;
        in_cqn = few ? 6'($urandom() % 4) : 6'($urandom());
        ci++;
        in_ci = 24'(ci);
        in_arm = 2'($urandom() % 3);
      end
      // a CQ of which nothing is listed is made anew
      if (!clear_valid && !in_valid && ($urandom() % 50) == 0) begin
        clear_cqn = 6'($urandom());
        found = 0;
        for (int i = 0; i < q_cqn.size(); i++) if (q_cqn[i] == int'(clear_cqn)) found = 1;
        clear_valid = found == 0;
      end
    end
    sleepy = 0;
    while (in_valid || clear_valid) begin
      @(negedge clk);
      if (acc) in_valid = 0;
      if (clear_acc) clear_valid = 0;
    end
    waits = 0;
    while (!idle && waits < 2000) begin
      @(negedge clk);
      waits++;
    end
    if (!idle || q_cqn.size() != 0) $fatal(1, "%0d doorbells never left", q_cqn.size());
    // one that is listed: its index and arming are gone
    sleepy = 1;
    for (int k = 0; k < 3; k++) begin
      in_valid = 1;
      in_cqn = 6'(10 + k);
      ci++;
      in_ci = 24'(ci);
      in_arm = 2'b10;
      do @(negedge clk); while (!acc);
      in_valid = 0;
      repeat (10) @(negedge clk);
    end
    clear_valid = 1;
    clear_cqn = 6'd12;   // the last: the others are on their way out
    do @(negedge clk); while (!clear_acc);
    clear_valid = 0;
    cleared[12] = 1;
    for (int i = q_cqn.size() - 1; i >= 0; i--) if (q_cqn[i] == 12) begin
      q_cqn.delete(i);
      q_ci.delete(i);
      q_arm.delete(i);
    end
    sleepy = 0;
    waits = 0;
    while (!idle && waits < 2000) begin
      @(negedge clk);
      waits++;
    end
    if (!idle || q_cqn.size() != 0 || cleared[12] != 0) $fatal(1, "end");
    if (n_in < 5000 || n_merged < 1000 || n_peek < 5000 || n_clear < 50 || n_listed != n_out || max_open < 64)
      $fatal(1, "%0d in, %0d out, %0d merged, %0d peeks, %0d cleared, %0d listed", n_in, n_out, n_merged, n_peek, n_clear, n_listed);
    $display("PASS %0d doorbells, %0d left", n_in, n_out);
    $finish;
  end
endmodule
