// SPDX-License-Identifier: Apache-2.0
//
// First look at the beats of a frame: numbers them, measures the frame, finds the IP header behind
// at most two VLAN tags (IEEE 802.1Q) and the end of the IP packet, in time for the ICRC and the
// UDP checksum, which need both while the frame still streams by.
//
// One beat per cycle, frames without a gap, no back-pressure. Latency 3 cycles: input register,
// layer 2, layer 3. Frames whose first beat comes while enable_i is 0 are swallowed.
//
// Attributes beside each beat at the output: beat_o (index, saturated at 15), l3_o (offset of the
// IP header, 0: 14, 1: 18, 2: 22), ethertype_o, ip6_o: right from the beat on that holds the first
// byte of the IP header. end_o: the IP packet ends in this beat behind byte cov_cnt_o-1; skip_o: it
// has ended before. l4_len_o: length of the IP payload, right with end_o. A length field that makes
// no sense gives no end; such frames are refused by rx_parser. len_o (bytes of the frame up to and
// with this beat, saturated at 65535) and user_o belong to last_o.

module rx_predecode
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  localparam int unsigned Bytes = DataW / 8,
  localparam int unsigned CntW = $clog2(Bytes) + 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             enable_i,

  input  logic             rx_valid_i,
  input  logic [DataW-1:0] rx_data_i,
  input  logic [Bytes-1:0] rx_keep_i,
  input  logic             rx_last_i,
  input  logic             rx_user_i,

  output logic             valid_o,
  output logic             first_o,
  output logic             last_o,
  output logic [DataW-1:0] data_o,
  output logic [3:0]       beat_o,
  output logic [15:0]      len_o,
  output logic             user_o,
  output logic [1:0]       l3_o,
  output logic [15:0]      ethertype_o,
  output logic             ip6_o,
  output logic             end_o,
  output logic [CntW-1:0]  cov_cnt_o,
  output logic             skip_o,
  output logic [15:0]      l4_len_o,
  output logic             busy_o
);

  // Number of valid bytes of a last beat: keep is contiguous, so its length is found by halving.
  function automatic logic [6:0] keep_count(input logic [63:0] keep);
    logic [6:0] n;
    logic [30:0] k5;
    logic [14:0] k4;
    logic [6:0] k3;
    logic [2:0] k2;
    n = '0;
    n[6] = keep[63];
    n[5] = keep[31];
    k5 = keep[31] ? keep[62:32] : keep[30:0];
    n[4] = k5[15];
    k4 = k5[15] ? k5[30:16] : k5[14:0];
    n[3] = k4[7];
    k3 = k4[7] ? k4[14:8] : k4[6:0];
    n[2] = k3[3];
    k2 = k3[3] ? k3[6:4] : k3[2:0];
    n[1] = k2[1];
    n[0] = k2[1] ? k2[2] : k2[0];
    return keep[63] ? 7'd64 : n;
  endfunction

  // ---- input register -----------------------------------------------------------------------
  logic a_in_frame_q, a_ignore_q;
  logic a_valid_q, a_first_q, a_last_q, a_user_q;
  logic [DataW-1:0] a_data_q;
  logic [Bytes-1:0] a_keep_q;
  logic a_take;

  assign a_take = rx_valid_i && (a_in_frame_q ? !a_ignore_q : enable_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_in_frame_q <= 1'b0;
      a_ignore_q <= 1'b0;
      a_valid_q <= 1'b0;
    end else begin
      a_valid_q <= a_take;
      if (rx_valid_i) begin
        a_in_frame_q <= !rx_last_i;
        if (!a_in_frame_q) a_ignore_q <= !enable_i;
      end
    end
    if (a_take) begin
      a_first_q <= !a_in_frame_q;
      a_last_q <= rx_last_i;
      a_user_q <= rx_user_i;
      a_data_q <= rx_data_i;
      if (rx_last_i) a_keep_q <= rx_keep_i;
    end
  end

  // ---- layer 2 ------------------------------------------------------------------------------
  localparam int unsigned Beat12 = 12 / Bytes;
  localparam int unsigned Beat16 = 16 / Bytes;  // also holds byte 21
  localparam int unsigned Lane12 = (12 % Bytes) * 8;
  localparam int unsigned Lane16 = (16 % Bytes) * 8;
  localparam int unsigned Lane20 = (20 % Bytes) * 8;

  function automatic logic [15:0] be16(input logic [15:0] x);
    return {x[7:0], x[15:8]};
  endfunction
  function automatic logic is_vlan(input logic [15:0] t);
    return t == EthVlan || t == EthQinq;
  endfunction

  logic b_valid_q, b_first_q, b_last_q, b_user_q, b_tagged_q;
  logic [DataW-1:0] b_data_q;
  logic [3:0] b_beat_q, a_beat;
  logic [1:0] b_l3_q;
  logic [15:0] b_type_q, b_len_q;
  logic [16:0] a_len;
  logic [15:0] a_type0, a_type1, a_type2;
  logic a_tagged;

  assign a_beat = a_first_q ? '0 : (b_beat_q == '1 ? b_beat_q : b_beat_q + 4'd1);
  assign a_len = {1'b0, a_first_q ? 16'd0 : b_len_q} +
                 {10'd0, a_last_q ? keep_count(64'(a_keep_q)) : 7'(Bytes)};
  assign a_type0 = be16(a_data_q[Lane12+:16]);
  assign a_type1 = be16(a_data_q[Lane16+:16]);
  assign a_type2 = be16(a_data_q[Lane20+:16]);
  assign a_tagged = Beat12 == Beat16 ? is_vlan(a_type0) : b_tagged_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) b_valid_q <= 1'b0;
    else b_valid_q <= a_valid_q;
    if (a_valid_q) begin
      b_first_q <= a_first_q;
      b_last_q <= a_last_q;
      b_user_q <= a_user_q;
      b_data_q <= a_data_q;
      b_beat_q <= a_beat;
      b_len_q <= a_len[16] ? 16'hffff : a_len[15:0];
      if (32'(a_beat) == Beat12) begin
        b_tagged_q <= is_vlan(a_type0);
        b_l3_q <= is_vlan(a_type0) ? 2'd1 : 2'd0;
        b_type_q <= a_type0;
      end else if (a_first_q) begin
        b_l3_q <= 2'd0;
        b_type_q <= '0;
      end
      if (32'(a_beat) == Beat16 && a_tagged) begin
        b_l3_q <= is_vlan(a_type1) ? 2'd2 : 2'd1;
        b_type_q <= is_vlan(a_type1) ? a_type2 : a_type1;
      end
    end
  end

  // ---- layer 3: length of the IP packet -----------------------------------------------------
  // The length field is at 16, 20, 24 (IPv4) or 18, 22, 26 (IPv6).
  function automatic logic [4:0] len_pos(input logic ip6, input logic [1:0] l3);
    unique case ({ip6, l3})
      3'b000: return 5'd16;
      3'b001: return 5'd20;
      3'b010: return 5'd24;
      3'b100: return 5'd18;
      3'b101: return 5'd22;
      default: return 5'd26;
    endcase
  endfunction

  logic b_ip4, b_ip6, b_len_here, b_len_bad, b_known, b_end;
  logic [4:0] b_pos;
  logic [15:0] b_iplen;
  logic [17:0] b_rem;     // bytes of the frame up to the end of the IP packet, from this beat on
  logic c_valid_q, c_first_q, c_last_q, c_user_q, c_ip6_q, c_end_q, c_skip_q, c_known_q;
  logic [DataW-1:0] c_data_q;
  logic [3:0] c_beat_q;
  logic [15:0] c_len_q, c_type_q, c_l4_len_q;
  logic [1:0] c_l3_q;
  logic [CntW-1:0] c_cnt_q;
  logic [17:0] c_rem_q;   // the same behind the beat at the output
  logic c_ended_q;

  assign b_ip4 = b_type_q == EthIpv4;
  assign b_ip6 = b_type_q == EthIpv6;
  assign b_pos = len_pos(b_ip6, b_l3_q);

  if (Bytes >= 32) begin : gen_len_wide
    assign b_len_here = b_first_q;
    always_comb begin
      unique case (b_pos)
        5'd16: b_iplen = b_data_q[8*16+:16];
        5'd18: b_iplen = b_data_q[8*18+:16];
        5'd20: b_iplen = b_data_q[8*20+:16];
        5'd22: b_iplen = b_data_q[8*22+:16];
        5'd24: b_iplen = b_data_q[8*24+:16];
        default: b_iplen = b_data_q[8*26+:16];
      endcase
    end
  end else begin : gen_len_narrow
    localparam int unsigned LaneW = $clog2(Bytes);
    assign b_len_here = 32'(b_beat_q) == 32'(b_pos) >> LaneW;
    assign b_iplen = b_data_q[8*b_pos[LaneW-1:0]+:16];
  end

  // Offset of the IP header, and of the end of an IPv6 packet without payload, in its beat.
  logic [17:0] b_base;
  assign b_base = 18'd14 + {14'd0, b_l3_q, 2'b00} + (b_ip6 ? 18'd40 : 18'd0) -
                  18'(32'(b_beat_q) * Bytes);
  assign b_len_bad = b_ip4 && be16(b_iplen) < 16'd20;
  assign b_known = (b_first_q ? 1'b0 : c_known_q) ||
                   (b_len_here && (b_ip4 || b_ip6) && !b_len_bad);
  assign b_rem = b_len_here ? b_base + 18'(be16(b_iplen)) : c_rem_q;
  assign b_end = b_known && b_rem <= 18'(Bytes);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      c_valid_q <= 1'b0;
    end else begin
      c_valid_q <= b_valid_q;
    end
    if (b_valid_q) begin
      c_first_q <= b_first_q;
      c_last_q <= b_last_q;
      c_user_q <= b_user_q;
      c_data_q <= b_data_q;
      c_beat_q <= b_beat_q;
      c_len_q <= b_len_q;
      c_type_q <= b_type_q;
      c_l3_q <= b_l3_q;
      c_ip6_q <= b_ip6;
      c_known_q <= b_known;
      c_rem_q <= b_rem - 18'(Bytes);
      if (b_len_here) c_l4_len_q <= be16(b_iplen) - (b_ip4 ? 16'd20 : 16'd0);
      if (b_first_q) begin
        c_end_q <= b_end;
        c_ended_q <= b_end;
        c_skip_q <= 1'b0;
      end else begin
        c_end_q <= b_end && !c_ended_q;
        c_ended_q <= b_end || c_ended_q;
        c_skip_q <= c_ended_q;
      end
      if (b_end && (b_first_q || !c_ended_q)) c_cnt_q <= b_rem[CntW-1:0];
    end
  end

  assign valid_o = c_valid_q;
  assign first_o = c_first_q;
  assign last_o = c_last_q;
  assign data_o = c_data_q;
  assign beat_o = c_beat_q;
  assign len_o = c_len_q;
  assign user_o = c_user_q;
  assign l3_o = c_l3_q;
  assign ethertype_o = c_type_q;
  assign ip6_o = c_ip6_q;
  assign end_o = c_end_q;
  assign cov_cnt_o = c_cnt_q;
  assign skip_o = c_skip_q;
  assign l4_len_o = c_l4_len_q;
  assign busy_o = a_in_frame_q && !a_ignore_q || a_valid_q || b_valid_q || c_valid_q;

endmodule
