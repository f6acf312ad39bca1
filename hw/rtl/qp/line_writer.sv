// SPDX-License-Identifier: Apache-2.0
//
// Writes lines of 64 bytes to host memory, those that follow each other in one burst; a few wait in a queue, so that whoever gives them
// goes on while the bus is taken by others.
//
// The first line of a burst (in_first_i) says how many there are, less one (in_more_i), and where they go; the others follow in any later cycles.
// Answers (B) are the user's business, one per burst.
//
// Throughput: DataW bits per cycle, and a cycle between two bursts. Latency: in to AW 2 cycles. Back-pressure: in_ready_o.

module line_writer #(
  parameter int unsigned DataW = 512,
  parameter int unsigned Depth = 8        // lines that wait, a power of two
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               in_valid_i,
  output logic               in_ready_o,
  input  logic               in_first_i,
  input  logic [1:0]         in_more_i,
  input  logic [63:6]        in_addr_i,
  input  logic [511:0]       in_data_i,
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

  localparam int unsigned Beats = 512 / DataW;
  localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1;
  if (DataW > 512) $error("a line is a beat at most");

  typedef struct packed {
    logic         first;
    logic [1:0]   more;
    logic [63:6]  addr;
  } place_t;
  place_t       place;
  logic [511:0] data;
  logic         valid, pop, start, w_fire, line_end;
  logic         aw_valid_q, started_q;      // started: AW of the burst at the head was given, or is in its register
  logic [1:0]   more_q, left;               // lines behind this one
  logic [BeatW-1:0] beat_q;
  // verilator lint_off PINCONNECTEMPTY
  // nobody asks how many wait
  rnic_fifo #(.Width($bits(place_t) + 512), .Depth(Depth)) u_lines (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .in_data_i({in_first_i, in_more_i, in_addr_i, in_data_i}),
    .out_valid_o(valid), .out_ready_i(pop), .out_data_o({place, data}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  assign start = valid && !started_q && (!aw_valid_q || aw_ready_i);
  assign left = place.first ? place.more : more_q;
  assign line_end = beat_q == BeatW'(Beats - 1);
  assign w_fire = w_valid_o && w_ready_i;
  assign pop = w_fire && line_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      started_q <= 1'b0;
      beat_q <= '0;
    end else begin
      if (aw_ready_i) aw_valid_q <= 1'b0;
      if (start) begin
        aw_valid_q <= 1'b1;
        started_q <= 1'b1;
      end
      if (w_fire) beat_q <= line_end ? '0 : beat_q + 1'b1;
      if (pop && left == '0) started_q <= 1'b0;
    end
    if (start) begin
      aw_addr_o <= {place.addr, 6'd0};
      aw_len_o <= 8'((32'(place.more) + 1) * Beats - 1);
    end
    if (pop) more_q <= left - 2'd1;
  end

  assign aw_valid_o = aw_valid_q;
  assign w_valid_o = valid && started_q;
  assign w_data_o = data[beat_q*DataW+:DataW];
  assign w_strb_o = '1;
  assign w_last_o = line_end && left == '0;
  assign idle_o = !valid && !aw_valid_q;

endmodule
