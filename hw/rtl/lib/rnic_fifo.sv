// SPDX-License-Identifier: Apache-2.0
//
// Synchronous show-ahead FIFO with valid/ready on both sides.
//
// One word in and one word out per cycle; a word written to an empty FIFO is visible one cycle later.
// in_ready_o falls only when all Depth words are used; level_o counts stored words.
// Depth is a power of two. Asynchronous-read memory (LUTRAM): meant for depths up to some hundred.

module rnic_fifo #(
  parameter int unsigned Width = 32,
  parameter int unsigned Depth = 4,
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o,
  output logic [AddrW:0]   level_o
);

  logic [Width-1:0] mem[Depth];
  logic [AddrW:0] wptr_q, rptr_q;

  assign level_o = wptr_q - rptr_q;
  assign in_ready_o = !level_o[AddrW];
  assign out_valid_o = wptr_q != rptr_q;
  assign out_data_o = mem[rptr_q[AddrW-1:0]];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
    end else begin
      if (in_valid_i && in_ready_o) begin
        mem[wptr_q[AddrW-1:0]] <= in_data_i;
        wptr_q <= wptr_q + 1'b1;
      end
      if (out_valid_o && out_ready_i) rptr_q <= rptr_q + 1'b1;
    end
  end

endmodule
