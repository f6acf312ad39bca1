// SPDX-License-Identifier: Apache-2.0
//
// Payload of packets in their order: from host memory (payload_reader) or out of the WQE (inline data).
//
// It looks at the requester's packets on their way to the egress and remembers for each with payload where
// that comes from. Inline data wait here as a whole and leave as beats like those of payload_reader: byte 0
// at lane 0, all beats but the last full, lanes behind the last byte zero.
//
// Throughput: one beat per cycle. Latency: memory beats pass through; inline data one cycle after the packet.
// Back-pressure: packets wait while 16 (128 from 256 bits on) with payload are on their way, inline data while 4 are held.

module inline_mux
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned LaneW = $clog2(DataW / 8)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  // packets pass
  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  tx_pkt_t          pkt_i,       // only its length and the place of its payload are looked at
  // verilator lint_on UNUSEDSIGNAL
  output logic             pkt_valid_o,
  input  logic             pkt_ready_i,
  // inline data, one per packet that has some
  input  logic             inl_valid_i,
  output logic             inl_ready_o,
  input  logic [InlineBytes*8-1:0] inl_data_i,
  input  logic [6:0]       inl_len_i,   // 1 to InlineBytes
  // from payload_reader
  input  logic             pl_valid_i,
  output logic             pl_ready_o,
  input  logic [DataW-1:0] pl_data_i,
  input  logic [LaneW:0]   pl_cnt_i,
  input  logic             pl_last_i,
  input  logic             pl_err_i,
  // to the egress
  output logic             pl_valid_o,
  input  logic             pl_ready_i,
  output logic [DataW-1:0] pl_data_o,
  output logic [LaneW:0]   pl_cnt_o,
  output logic             pl_last_o,
  output logic             pl_err_o
);

  localparam int unsigned NumB = DataW / 8;
  localparam int unsigned Beats = (InlineBytes + NumB - 1) / NumB;
  localparam int unsigned BeatW = $clog2(Beats);
  localparam int unsigned HeldBits = Beats * DataW;
  localparam int unsigned NumOrder = DataW >= 256 ? 128 : 16;  // more than the egress takes

  // ---- order ---------------------------------------------------------------------------------------
  logic order_ready, order_valid, order_inl, order_push, order_pop;

  assign order_push = pkt_valid_i && pkt_ready_i && pkt_i.len != '0 && order_ready;
  assign pkt_valid_o = pkt_valid_i && order_ready;
  assign pkt_ready_o = pkt_ready_i && order_ready;
  // verilator lint_off PINCONNECTEMPTY
  // levels are not needed
  rnic_fifo #(.Width(1), .Depth(NumOrder)) u_order (
    .clk_i, .rst_ni,
    .in_valid_i(order_push), .in_ready_o(order_ready), .in_data_i(pkt_i.inl),
    .out_valid_o(order_valid), .out_ready_i(order_pop), .out_data_o(order_inl), .level_o()
  );

  // ---- inline data -----------------------------------------------------------------------------------
  logic held_valid, held_pop;
  logic [InlineBytes*8-1:0] held_data;
  logic [6:0] held_len;

  rnic_fifo #(.Width(InlineBytes * 8 + 7), .Depth(4)) u_held (
    .clk_i, .rst_ni,
    .in_valid_i(inl_valid_i), .in_ready_o(inl_ready_o), .in_data_i({inl_len_i, inl_data_i}),
    .out_valid_o(held_valid), .out_ready_i(held_pop), .out_data_o({held_len, held_data}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  logic [BeatW-1:0] beat_q;
  logic [6:0] left;           // bytes from this beat on
  logic inl, inl_last;
  logic [DataW-1:0] inl_beat;

  assign inl = order_valid && order_inl;
  assign left = held_len - 7'(32'(beat_q) * NumB);
  assign inl_last = 32'(left) <= NumB;
  // zero behind the last byte: beats are padded to a whole lane row first
  function automatic logic [DataW-1:0] pick(input logic [InlineBytes*8-1:0] d,
                                            input logic [BeatW-1:0] beat, input logic [6:0] n);
    logic [HeldBits-1:0] all;
    logic [DataW-1:0] row;
    all = HeldBits'(d);
    row = all[32'(beat) * DataW +: DataW];
    for (int unsigned i = 0; i < NumB; i++) if (i >= 32'(n)) row[8*i +: 8] = '0;
    return row;
  endfunction
  always_comb begin
    inl_beat = '0;
    if (inl && held_valid) inl_beat = pick(held_data, beat_q, left);
  end

  assign held_pop = inl && held_valid && pl_ready_i && inl_last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) beat_q <= '0;
    else if (inl && held_valid && pl_ready_i) beat_q <= inl_last ? '0 : beat_q + 1'b1;
  end

  // ---- choice ----------------------------------------------------------------------------------------
  assign pl_valid_o = inl ? held_valid : order_valid && pl_valid_i;
  assign pl_ready_o = order_valid && !order_inl && pl_ready_i;
  assign pl_data_o = inl ? inl_beat : pl_data_i;
  assign pl_cnt_o = !inl ? pl_cnt_i : inl_last ? left[LaneW:0] : (LaneW + 1)'(NumB);
  assign pl_last_o = inl ? inl_last : pl_last_i;
  assign pl_err_o = !inl && pl_err_i;
  assign order_pop = pl_valid_o && pl_ready_i && pl_last_o;

endmodule
