// SPDX-License-Identifier: Apache-2.0
//
// Writes one entry (CQE, EQE, line of a context) after the other to host memory, each by one AXI burst.
//
// An entry is EntryW bits, aligned to its size. AW and W are offered the cycle after the entry was taken, and
// wait for each other nowhere. The next entry is taken in the cycle in which the last one's AW and W have
// both gone: one per cycle if an entry fits in a beat. Answers (B) are the user's business.

module entry_writer #(
  parameter int unsigned DataW = 512,
  parameter int unsigned EntryW = 256,
  localparam int unsigned OffW = $clog2(EntryW / 8)
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               in_valid_i,
  output logic               in_ready_o,
  input  logic [EntryW-1:0]  in_data_i,
  input  logic [63:OffW]     in_addr_i,
  // AXI write client
  output logic               aw_valid_o,
  input  logic               aw_ready_i,
  output logic [63:0]        aw_addr_o,
  output logic [7:0]         aw_len_o,
  output logic               w_valid_o,
  input  logic               w_ready_i,
  output logic [DataW-1:0]   w_data_o,
  output logic [DataW/8-1:0] w_strb_o,
  output logic               w_last_o,
  output logic               idle_o
);

  localparam int unsigned Beats = EntryW > DataW ? EntryW / DataW : 1;
  localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1;

  logic valid_q, aw_done_q, w_done_q, aw_end, w_end;
  logic [EntryW-1:0] data_q;
  logic [63:OffW] addr_q;
  logic [BeatW-1:0] beat_q;

  assign aw_end = aw_done_q || aw_ready_i;
  assign w_end = w_done_q || (w_ready_i && w_last_o);
  assign in_ready_o = !valid_q || (aw_end && w_end);
  assign idle_o = !valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      aw_done_q <= 1'b0;
      w_done_q <= 1'b0;
      beat_q <= '0;
    end else if (in_ready_o) begin
      valid_q <= in_valid_i;
      aw_done_q <= 1'b0;
      w_done_q <= 1'b0;
      beat_q <= '0;
    end else begin
      aw_done_q <= aw_end;
      w_done_q <= w_end;
      if (w_valid_o && w_ready_i && Beats > 1) beat_q <= beat_q + 1'b1;
    end
    if (in_valid_i && in_ready_o) begin
      data_q <= in_data_i;
      addr_q <= in_addr_i;
    end
  end

  assign aw_valid_o = valid_q && !aw_done_q;
  assign aw_len_o = 8'(Beats - 1);
  assign w_valid_o = valid_q && !w_done_q;
  if (DataW > EntryW) begin : gen_lane
    localparam int unsigned LaneW = $clog2(DataW / EntryW);
    assign aw_addr_o = {addr_q[63:OffW+LaneW], (OffW + LaneW)'(0)};
    assign w_data_o = {(DataW / EntryW) {data_q}};
    assign w_strb_o = (DataW / 8)'({(EntryW / 8) {1'b1}}) << {addr_q[OffW+:LaneW], OffW'(0)};
    assign w_last_o = 1'b1;
  end else begin : gen_beats
    assign aw_addr_o = {addr_q, OffW'(0)};
    assign w_data_o = data_q[beat_q*DataW+:DataW];
    assign w_strb_o = '1;
    assign w_last_o = beat_q == BeatW'(Beats - 1);
  end

endmodule
