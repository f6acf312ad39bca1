// SPDX-License-Identifier: Apache-2.0
//
// rnic_fifo: a word that is written, any one of them, comes out once, in its turn and unchanged; levels are exact.

module rnic_fifo_proof #(
  parameter int unsigned Width = 2,
  parameter int unsigned Depth = 4
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_ready_i,
  input logic             mark_i           // follow the word that is written now
);
  localparam int unsigned AddrW = $clog2(Depth);

  logic in_ready, out_valid;
  logic [Width-1:0] out_data;
  logic [AddrW:0] level;
  rnic_fifo #(.Width(Width), .Depth(Depth)) dut (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o(in_ready), .in_data_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .level_o(level));

  stream_check #(.Width(Width)) u_out (
    .clk_i, .rst_ni, .valid_i(out_valid), .ready_i(out_ready_i), .data_i(out_data));

  logic first_q = 1'b1, marked_q;
  logic [AddrW:0] count_q, ahead_q;        // words held, words before the marked one
  logic [Width-1:0] mark_data_q;
  logic push, pop;
  assign push = in_valid_i && in_ready;
  assign pop = out_valid && out_ready_i;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (!rst_ni) begin
      marked_q <= 1'b0;
      count_q <= '0;
    end else begin
      count_q <= count_q + (AddrW + 1)'(push) - (AddrW + 1)'(pop);
      if (push && mark_i && !marked_q) begin
        marked_q <= 1'b1;
        ahead_q <= count_q - (AddrW + 1)'(pop);
        mark_data_q <= in_data_i;
      end else if (marked_q && pop) begin
        if (ahead_q == '0) marked_q <= 1'b0;
        ahead_q <= ahead_q - 1'b1;
      end
      level_exact: assert (level == count_q);
      ready_until_full: assert (in_ready == (count_q != (AddrW + 1)'(Depth)));
      valid_when_any: assert (out_valid == (count_q != '0));
      if (marked_q) begin
        mark_inside: assert (ahead_q < count_q);
        if (ahead_q == '0) begin
          mark_unchanged: assert (out_data == mark_data_q);
        end
      end
      full: cover (count_q == (AddrW + 1)'(Depth));
      mark_leaves: cover (marked_q && pop && ahead_q == '0 && count_q > 1);
    end
  end

endmodule
