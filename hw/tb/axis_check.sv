// SPDX-License-Identifier: Apache-2.0
//
// Checker of an AXI-Stream of packets (IHI 0051): the handshake; TKEEP without holes from lane 0, at least one lane, all
// lanes in every beat but the last; at most MaxBytes. NoGaps: valid stays from the first beat of a packet to its last.
// Lanes that TKEEP leaves out, and TUSER before the last beat, may change while a beat waits.

`include "check.svh"
module axis_check #(
  parameter int unsigned DataW = 64,
  parameter int unsigned MaxBytes = 9216,
  parameter bit NoGaps = 1'b0,
  parameter bit Assume = 1'b0,
  localparam int unsigned NumB = DataW / 8
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_i,
  input logic [DataW-1:0] data_i,
  input logic [NumB-1:0]  keep_i,
  input logic             last_i,
  input logic             user_i
);

  logic [DataW-1:0] kept;
  for (genvar i = 0; i < int'(NumB); i++) begin : gen_kept
    assign kept[8*i+:8] = keep_i[i] ? data_i[8*i+:8] : 8'h00;
  end

  stream_check #(.Width(DataW + NumB + 2), .Assume(Assume)) u_beat (
    .clk_i, .rst_ni, .valid_i, .ready_i, .data_i({kept, keep_i, last_i, last_i && user_i}));

  logic open_q;              // inside a packet
  logic [31:0] bytes_q, bytes;   // before this beat, with it

  always_comb begin
    bytes = bytes_q;
    for (int unsigned i = 0; i < NumB; i++) bytes = bytes + 32'(keep_i[i]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q <= 1'b0;
      bytes_q <= '0;
    end else begin
      if (valid_i) begin
        `RNIC_CHECK(Assume, keep_no_holes, (keep_i & (keep_i + 1'b1)) == '0 && keep_i != '0)
        `RNIC_CHECK(Assume, keep_full, last_i || (&keep_i))
        `RNIC_CHECK(Assume, length_bound, bytes <= MaxBytes)
        if (ready_i) begin
          open_q <= !last_i;
          bytes_q <= last_i ? '0 : bytes;
        end
      end
      if (NoGaps) begin
        `RNIC_CHECK(Assume, no_gap, !open_q || valid_i)
      end
    end
  end

endmodule
