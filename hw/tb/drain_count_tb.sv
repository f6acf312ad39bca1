// SPDX-License-Identifier: Apache-2.0
//
// drain_count against a model, cycle by cycle: random work, two ends in a cycle, snapshots that are held off, drains
// that are given up; counters that wrap, in one drain too; as much on its way as is allowed. The width does not matter here.

module drain_count_tb #(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  logic begins = 0, hold = 0, drain = 0, done, empty;
  logic [1:0] ended = '0;

  drain_count dut (
    .clk_i(clk), .rst_ni(rst_n), .begin_i(begins), .ended_i(ended), .hold_i(hold), .drain_i(drain),
    .done_o(done), .empty_o(empty));

  int fly = 0, left = 0, drains = 0, held = 0, most = 0, twice = 0, ended_late = 0, given_up = 0, total = 0, behind = 0, longest = 0;
  logic snap = 0;
  always @(posedge clk) if (rst_n) begin
    if (empty != (fly == 0)) $fatal(1, "empty %b with %0d on their way", empty, fly);
    if (done != (snap && left <= 0)) $fatal(1, "done %b, %0d are left", done, left);
    if (snap && done && drain && fly > 0) ended_late++;
    behind = done && drain ? behind + int'(ended) : 0;
    if (behind > longest) longest = behind;
    if (snap) left -= int'(ended);
    if (!drain) begin
      if (snap && left > 0) given_up++;
      snap = 0;
    end else if (!snap && !hold) begin
      snap = 1;
      left = fly - int'(ended);
      drains++;
    end else if (!snap) held++;
    if (ended == 2) twice++;
    fly += int'(begins) - int'(ended);
    total += int'(begins);
    if (fly > most) most = fly;
  end

  int p_begin, p_end;
  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int n = 0; n < 400000; n++) begin
      @(negedge clk);
      case ((n / 5000) % 4)
        0: begin p_begin = 50; p_end = 50; end
        1: begin p_begin = 90; p_end = 30; end
        2: begin p_begin = 30; p_end = 90; end
        default: begin p_begin = 70; p_end = 60; end
      endcase
      // a stretch that fills it to the limit, and one that empties it
      if (n >= 200000 && n < 240000) begin p_begin = 100; p_end = 1; end
      if (n >= 240000 && n < 290000) begin p_begin = 10; p_end = 100; end
      if (n >= 300000) begin p_begin = 90; p_end = 90; end
      begins = int'($urandom() % 100) < p_begin && fly < 32767;
      ended = int'($urandom() % 100) < p_end ? 2'($urandom() % 3) : 2'd0;
      if (int'(ended) > fly) ended = 2'(fly);
      hold = ($urandom() % 3) == 0;
      if (($urandom() % (n < 100000 ? 20 : 2000)) == 0) drain = !drain;
      if (n >= 302000) drain = 1;      // a long one
    end
    if (drains < 1000 || held < 100 || most != 32767 || twice < 1000 || ended_late < 100 || given_up < 100 || total < 131072 || longest < 65536)
      $fatal(1, "%0d drains, %0d held, at most %0d, %0d twice, %0d behind, %0d given up, %0d in all, %0d behind one", drains, held, most, twice,
             ended_late, given_up, total, longest);
    $display("PASS %0d drains, %0d begun", drains, total);
    $finish;
  end
endmodule
