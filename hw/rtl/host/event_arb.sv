// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous events of several sources, in turn, into a short queue before the EQ writer.
//
// One event per cycle, latency 1 cycle. Back-pressure: a source keeps its event until it is taken; that is
// while host memory takes no EQEs, never because an EQ is full. drain_done_o: events that were queued when
// drain_i rose have left.

module event_arb
  import rnic_pkg::*;
#(
  parameter int unsigned NumSrc = 2,
  parameter int unsigned Depth = 8
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic      [NumSrc-1:0] in_valid_i,
  output logic      [NumSrc-1:0] in_ready_o,
  input  async_ev_t [NumSrc-1:0] in_i,
  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output async_ev_t              out_o,
  input  logic                   drain_i,
  output logic                   drain_done_o,
  output logic                   idle_o
);

  localparam int unsigned SelW = NumSrc > 1 ? $clog2(NumSrc) : 1;
  localparam int unsigned LevelW = $clog2(Depth) + 1;

  logic [SelW-1:0] sel, last_q;
  logic ready;
  logic [LevelW-1:0] level, left_q;
  logic drain_q;

  // the lowest one after the one served last, else the lowest
  always_comb begin
    sel = '0;
    for (int i = int'(NumSrc) - 1; i >= 0; i--) if (in_valid_i[i]) sel = SelW'(i);
    for (int i = int'(NumSrc) - 1; i >= 0; i--)
      if (in_valid_i[i] && SelW'(i) > last_q) sel = SelW'(i);
    in_ready_o = '0;
    in_ready_o[sel] = ready;
  end

  rnic_fifo #(.Width($bits(async_ev_t)), .Depth(Depth)) u_fifo (
    .clk_i, .rst_ni,
    .in_valid_i(|in_valid_i), .in_ready_o(ready), .in_data_i(in_i[sel]),
    .out_valid_o, .out_ready_i, .out_data_o(out_o), .level_o(level)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      last_q <= '0;
      drain_q <= 1'b0;
      left_q <= '0;
    end else begin
      if (|in_valid_i && ready) last_q <= sel;
      drain_q <= drain_i;
      if (!drain_q) left_q <= drain_i ? level - LevelW'(out_valid_o && out_ready_i) : '0;
      else if (out_valid_o && out_ready_i && left_q != 0) left_q <= left_q - 1'b1;
    end
  end
  assign drain_done_o = drain_q && left_q == '0;
  assign idle_o = level == '0 && in_valid_i == '0;

endmodule
