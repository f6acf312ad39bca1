// SPDX-License-Identifier: Apache-2.0
//
// Puts the 40 bytes that a UD receive begins with (IBTA 11.4.1.2: GRH) in front of the payload, on its way from the packet
// buffer to the payload writer. They come as beats of their own, byte 0 in lane 0, so that the payload's beats stay as
// they are; the writer is told of them as pieces of their own.
//
// An entry (rx_grh_t) must be here before the payload that it belongs to; `seq` counts the payloads before it. Throughput: a
// beat per cycle. Latency: none for payload. Back-pressure: that of the writer; FifoDepth entries wait.

module grh_insert
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned FifoDepth = 4,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             grh_valid_i,
  output logic             grh_ready_o,
  input  rx_grh_t          grh_i,
  input  logic             pl_valid_i,
  output logic             pl_ready_o,
  input  logic [DataW-1:0] pl_data_i,
  input  logic [LaneW-1:0] pl_off_i,
  input  logic [LaneW:0]   pl_cnt_i,
  input  logic             pl_last_i,
  output logic             pl_valid_o,
  input  logic             pl_ready_i,
  output logic [DataW-1:0] pl_data_o,
  output logic [LaneW-1:0] pl_off_o,
  output logic [LaneW:0]   pl_cnt_o,
  output logic             pl_last_o
);

  localparam int unsigned Beats = (GrhBytes + NumB - 1) / NumB;
  localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1;
  localparam int unsigned TailCnt = GrhBytes - (Beats - 1) * NumB;

  rx_grh_t head;
  logic    head_valid, insert, last_beat, pop;
  logic [7:0] seq_q;           // payloads that have passed
  logic [BeatW-1:0] beat_q;
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(rx_grh_t)), .Depth(FifoDepth)) u_fifo (
    .clk_i, .rst_ni,
    .in_valid_i(grh_valid_i), .in_ready_o(grh_ready_o), .in_data_i(grh_i),
    .out_valid_o(head_valid), .out_ready_i(pop), .out_data_o(head), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  logic [511:0] grh;           // whole beats
  assign grh = 512'(head.data);
  assign insert = head_valid && head.seq == seq_q;
  assign last_beat = beat_q == BeatW'(Beats - 1);
  assign pop = insert && pl_ready_i && last_beat;
  assign pl_valid_o = insert || pl_valid_i;
  assign pl_ready_o = pl_ready_i && !insert;
  always_comb begin
    pl_data_o = pl_data_i;
    pl_off_o = pl_off_i;
    pl_cnt_o = pl_cnt_i;
    pl_last_o = pl_last_i;
    if (insert) begin
      pl_data_o = grh[32'(beat_q)*DataW+:DataW];
      pl_off_o = '0;
      pl_cnt_o = last_beat ? (LaneW + 1)'(TailCnt) : (LaneW + 1)'(NumB);
      pl_last_o = last_beat;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      seq_q <= '0;
      beat_q <= '0;
    end else begin
      if (insert && pl_ready_i) beat_q <= last_beat ? '0 : beat_q + 1'b1;
      if (pl_valid_i && pl_ready_o && pl_last_i) seq_q <= seq_q + 8'd1;
    end
  end

endmodule
