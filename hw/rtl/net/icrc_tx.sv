// SPDX-License-Identifier: Apache-2.0
//
// ICRC of frames to be sent (IBTA A17.3.3): watches the beats of a whole Ethernet frame and
// delivers its ICRC a fixed time later.
//
// Interface:
// - valid_i, last_i, data_i, cnt_i: the beats of the frame, byte 0 in bits 7:0. All beats but the
//   last are full; cnt_i is the number of valid bytes in the last beat (1 to DataW/8), ignored
//   before it; bytes behind cnt_i need not be zero. Gaps between beats are allowed.
// - The frame ends with the four bytes of the ICRC field, and these must be zero (they may straddle
//   the last two beats).
// - l3_i (offset of the IP header; 0: 14, 1: 18, 2: 22 bytes) and ipv6_i are sampled with the first
//   beat. There is nothing behind the ICRC: no MAC padding.
// - crc_valid_o, crc_o: one pulse per frame, in order; crc_o[7:0] is the first byte on the wire.
//
// One beat per cycle, frames without a gap, no back-pressure (the result is there for one cycle).
// Latency from the cycle of the last beat to the pulse: 7, 9, 10, 11 cycles at 64, 128, 256, 512
// bit.

module icrc_tx #(
  parameter int unsigned DataW = 512,
  localparam int unsigned CntW = $clog2(DataW / 8) + 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  input  logic             last_i,
  input  logic [DataW-1:0] data_i,
  input  logic [CntW-1:0]  cnt_i,
  input  logic [1:0]       l3_i,
  input  logic             ipv6_i,
  output logic             crc_valid_o,
  output logic [31:0]      crc_o
);

  localparam int unsigned Bytes = DataW / 8;
  localparam int unsigned TailW = CntW - 1;

  logic [3:0] beat_q;
  logic [1:0] l3_q, l3;
  logic ipv6_q, ipv6, first;

  assign first = beat_q == '0;
  assign l3 = first ? l3_i : l3_q;
  assign ipv6 = first ? ipv6_i : ipv6_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) beat_q <= '0;
    else if (valid_i) beat_q <= last_i ? '0 : (beat_q == '1 ? beat_q : beat_q + 4'd1);
    if (valid_i && first) begin
      l3_q <= l3_i;
      ipv6_q <= ipv6_i;
    end
  end

  logic m_valid, m_first, m_last, m_skip;
  logic [DataW-1:0] m_data;
  logic [TailW-1:0] m_tail_q;

  always_ff @(posedge clk_i) if (valid_i && last_i) m_tail_q <= TailW'(Bytes - 32'(cnt_i));

  icrc_mask #(.DataW(DataW)) u_mask (
    .clk_i, .rst_ni, .valid_i, .first_i(first), .last_i, .skip_i(1'b0), .end_i(last_i), .cnt_i,
    .beat_i(beat_q), .l3_i(l3), .ipv6_i(ipv6), .data_i,
    .valid_o(m_valid), .first_o(m_first), .last_o(m_last), .skip_o(m_skip), .data_o(m_data)
  );

  logic s_valid;
  logic [31:0] s_state;
  logic [TailW-1:0] s_tail;

  icrc_engine #(.DataW(DataW), .UserW(TailW)) u_engine (
    .clk_i, .rst_ni, .valid_i(m_valid), .first_i(m_first), .last_i(m_last), .skip_i(m_skip),
    .data_i(m_data), .user_i(m_tail_q), .valid_o(s_valid), .state_o(s_state), .user_o(s_tail)
  );

  icrc_unshift #(.DataW(DataW), .Placeholder(1'b1)) u_unshift (
    .clk_i, .rst_ni, .valid_i(s_valid), .state_i(s_state), .tail_i(s_tail), .crc_valid_o, .crc_o
  );

endmodule
