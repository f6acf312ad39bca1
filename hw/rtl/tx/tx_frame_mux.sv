// SPDX-License-Identifier: Apache-2.0
//
// Joins two streams of whole frames: stream 0 goes first, but never twice in a row while stream 1 waits. A frame that was
// begun, or shown, is finished before another one begins.
//
// Throughput: one beat per cycle, no bubble between frames. Latency: 0, everything passes through. Back-pressure: goes through.

module tx_frame_mux #(
  parameter int unsigned DataW = 64
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic [1:0]                 in_valid_i,
  output logic [1:0]                 in_ready_o,
  input  logic [1:0][DataW-1:0]      in_data_i,
  input  logic [1:0][DataW/8-1:0]    in_keep_i,
  input  logic [1:0]                 in_last_i,
  output logic                       out_valid_o,
  input  logic                       out_ready_i,
  output logic [DataW-1:0]           out_data_o,
  output logic [DataW/8-1:0]         out_keep_o,
  output logic                       out_last_o
);

  logic busy_q;          // in a frame, or it was shown
  logic sel_q, sel;      // whose; of the last frame
  assign sel = busy_q ? sel_q : in_valid_i[1] && (!in_valid_i[0] || !sel_q);
  assign out_valid_o = in_valid_i[sel];
  assign out_data_o = in_data_i[sel];
  assign out_keep_o = in_keep_i[sel];
  assign out_last_o = in_last_i[sel];
  assign in_ready_o = {sel && out_ready_i, !sel && out_ready_i};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      sel_q <= 1'b1;
    end else if (out_valid_o) begin
      busy_q <= !(out_ready_i && out_last_o);
      sel_q <= sel;
    end
  end

endmodule
