// SPDX-License-Identifier: Apache-2.0
//
// Random writer and reader against a queue; both ends reach empty and full.

module rnic_fifo_tb #(
  parameter int unsigned DataW = 64
);
  localparam int unsigned Width = DataW;
  localparam int unsigned Depth = 8;

  logic clk = 0, rst_n = 0;
  logic in_valid = 0, in_ready, out_valid, out_ready = 0;
  logic [Width-1:0] in_data = '0, out_data;
  logic [3:0] level;
  always #1 clk = !clk;

  rnic_fifo #(.Width(Width), .Depth(Depth)) dut (
    .clk_i(clk), .rst_ni(rst_n),
    .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in_data),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(out_data), .level_o(level)
  );

  logic [Width-1:0] expected[$];
  int full_seen = 0, empty_seen = 0, done = 0;
  int phase;

  always @(posedge clk) begin
    if (rst_n) begin
      if (in_valid && in_ready) expected.push_back(in_data);
      if (out_valid && out_ready) begin
        if (expected.size() == 0) $fatal(1, "word out of an empty FIFO");
        if (out_data !== expected[0]) $fatal(1, "got %h, want %h", out_data, expected[0]);
        void'(expected.pop_front());
        done++;
      end
      if (int'(level) == Depth) begin
        full_seen++;
        if (in_ready) $fatal(1, "ready while full");
      end
      if (level == 0) begin
        empty_seen++;
        if (out_valid) $fatal(1, "valid while empty");
      end
    end
  end

  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < 20000; i++) begin
      @(negedge clk);
      phase = (i / 500) % 3;
      in_valid = phase == 0 || (phase == 1 && ($urandom() % 2) == 0);
      out_ready = phase == 2 || (phase == 1 && ($urandom() % 2) == 0);
      in_data = {(Width / 32) {$urandom()}};
    end
    if (full_seen == 0 || empty_seen == 0 || done < 1000) $fatal(1, "corner not reached");
    $display("PASS %0d words", done);
    $finish;
  end
endmodule
