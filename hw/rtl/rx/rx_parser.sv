// SPDX-License-Identifier: Apache-2.0
//
// Takes the captured headers of one frame apart and makes all checks that do not need the whole
// frame: Ethernet, VLAN, IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768), BTH and extended headers
// (IBTA 9.2, 9.3, A17.3). The first failed check names the frame, in the order of enum drop_reason
// in hw/regs/csr.yaml.
//
// One frame per cycle, no back-pressure, latency 4 cycles:
//   1 layer 2, headers moved to the start of IP; 2 IP, headers moved to the start of UDP;
//   3 UDP, BTH, opcode table; 4 extended headers and lengths.
// hdr_i: the first bytes of the frame, byte 0 in bits 7:0; bytes behind the end of the frame are
// arbitrary: nothing that depends on them is used unless a length check has passed. At the output,
// early_o is the reason as far as it precedes the ICRC (0: none), late_o as far as it follows the
// UDP checksum; verdict_o and meta_o lack only what rx_frontend adds: reason and icrc_ok.
// While raw_en_i: a frame for us, for a group or (promisc_i) for anybody that is not RoCEv2 (not IP, IP options, fragment, extension
// header, not UDP, another port) and not longer than MaxRaw has early_o none and `raw`; its payload is the whole frame.

module rx_parser
  import rnic_pkg::*;
  import rnic_regs_pkg::*;
#(
  parameter int unsigned HdrW = 1024
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            promisc_i,
  input  logic            raw_en_i,       // frames that are not RoCEv2 are wanted
  input  logic [47:0]     mac_addr_i,

  input  logic            valid_i,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [HdrW-1:0] hdr_i,          // wider than the longest header, 110 bytes
  // verilator lint_on UNUSEDSIGNAL
  input  logic [15:0]     frame_len_i,    // saturated at 65535
  input  logic [1:0]      l3_i,           // offset of the IP header: 14, 18, 22
  input  logic [15:0]     ethertype_i,    // there
  input  logic            user_err_i,
  input  logic            too_long_i,
  input  logic            overflow_i,

  output logic            valid_o,
  output logic [7:0]      early_o,
  output logic [7:0]      late_o,
  output logic            ip_sum_ok_o,
  output logic            udp_sum_zero_o,
  output rx_verdict_t     verdict_o,
  output rx_meta_t        meta_o,
  output logic            busy_o
);

  function automatic logic [15:0] be16(input logic [15:0] x);
    return {x[7:0], x[15:8]};
  endfunction
  function automatic logic [23:0] be24(input logic [23:0] x);
    return {x[7:0], x[15:8], x[23:16]};
  endfunction
  function automatic logic [31:0] be32(input logic [31:0] x);
    return {x[7:0], x[15:8], x[23:16], x[31:24]};
  endfunction
  function automatic logic [63:0] be64(input logic [63:0] x);
    return {be32(x[31:0]), be32(x[63:32])};
  endfunction

  // What every stage passes on.
  typedef struct packed {
    logic [15:0] frame_len;
    logic        user_err;
    logic        too_long;
    logic        overflow;
    logic        l2_trunc;
    logic        dmac_bad;
    logic        group;
    logic        not_ip;
    logic [1:0]  l3;
    logic        ip6;
    logic [15:0] ethertype;
    logic [15:0] tci;
    logic [47:0] smac;
    logic [47:0] dmac;
  } l2_t;
  typedef struct packed {
    logic         l3_trunc;
    logic         ip_version;
    logic         ip_options;
    logic         ip_length;
    logic         ip_fragment;
    logic         ipv6_ext;
    logic         not_udp;
    logic [7:0]   tos;
    logic [7:0]   ttl;
    logic [127:0] sip;
    logic [127:0] dip;
    logic [95:0]  head;
  } ip_t;

  // ---- 1: layer 2 ---------------------------------------------------------------------------
  localparam int unsigned L3W = 88 * 8;
  logic s1_valid_q;
  l2_t s1_l2_q;
  logic [16:0] s1_l3_len_q;    // bytes from the IP header to the end of the frame
  logic [L3W-1:0] s1_l3_q;
  logic [4:0] l3_off;
  assign l3_off = 5'd14 + {1'b0, l3_i, 2'b00};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s1_valid_q <= 1'b0;
    else s1_valid_q <= valid_i;
    if (valid_i) begin
      s1_l2_q.frame_len <= frame_len_i;
      s1_l2_q.user_err <= user_err_i;
      s1_l2_q.too_long <= too_long_i;
      s1_l2_q.overflow <= overflow_i;
      s1_l2_q.l2_trunc <= frame_len_i < 16'(l3_off);
      s1_l2_q.dmac_bad <= !promisc_i && hdr_i[47:0] != mac_addr_i;
      s1_l2_q.group <= hdr_i[0];
      s1_l2_q.not_ip <= ethertype_i != EthIpv4 && ethertype_i != EthIpv6;
      s1_l2_q.l3 <= l3_i;
      s1_l2_q.ip6 <= ethertype_i == EthIpv6;
      s1_l2_q.ethertype <= ethertype_i;
      s1_l2_q.dmac <= hdr_i[47:0];
      s1_l2_q.smac <= hdr_i[95:48];
      s1_l3_len_q <= 17'(frame_len_i) - 17'(l3_off);
      unique case (l3_i)
        2'd0: begin
          s1_l3_q <= hdr_i[8*14+:L3W];
          s1_l2_q.tci <= '0;
        end
        2'd1: begin
          s1_l3_q <= hdr_i[8*18+:L3W];
          s1_l2_q.tci <= be16(hdr_i[8*14+:16]);
        end
        default: begin
          s1_l3_q <= hdr_i[8*22+:L3W];
          s1_l2_q.tci <= be16(hdr_i[8*18+:16]);
        end
      endcase
    end
  end

  // ---- 2: IP --------------------------------------------------------------------------------
  localparam int unsigned L4W = 48 * 8;
  logic s2_valid_q;
  l2_t s2_l2_q;
  ip_t s2_ip_q;
  logic [16:0] s2_l4_len_q;          // IP payload
  logic [L4W-1:0] s2_l4_q;
  logic [18:0] s2_sum0_q, s2_sum1_q; // halves of the IPv4 header checksum
  logic [16:0] ip_len;
  logic [7:0] proto;
  logic ext_proto;

  function automatic logic [18:0] sum5(input logic [79:0] w);
    return 19'(w[15:0]) + 19'(w[31:16]) + 19'(w[47:32]) + 19'(w[63:48]) + 19'(w[79:64]);
  endfunction

  assign ip_len = s1_l2_q.ip6 ? 17'(be16(s1_l3_q[8*4+:16])) + 17'd40 : 17'(be16(s1_l3_q[8*2+:16]));
  assign proto = s1_l2_q.ip6 ? s1_l3_q[8*6+:8] : s1_l3_q[8*9+:8];
  assign ext_proto = proto inside {8'd0, 8'd43, 8'd44, 8'd50, 8'd51, 8'd60, 8'd135, 8'd139, 8'd140};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s2_valid_q <= 1'b0;
    else s2_valid_q <= s1_valid_q;
    if (s1_valid_q) begin
      s2_l2_q <= s1_l2_q;
      s2_ip_q.ip_length <= ip_len > s1_l3_len_q || (!s1_l2_q.ip6 && ip_len < 17'd20);
      s2_ip_q.not_udp <= proto != 8'd17;
      s2_ip_q.head <= s1_l3_q[95:0];
      s2_sum0_q <= sum5(s1_l3_q[79:0]);
      s2_sum1_q <= sum5(s1_l3_q[159:80]);
      if (s1_l2_q.ip6) begin
        s2_ip_q.l3_trunc <= s1_l3_len_q < 17'd40;
        s2_ip_q.ip_version <= s1_l3_q[7:4] != 4'd6;
        s2_ip_q.ip_options <= 1'b0;
        s2_ip_q.ip_fragment <= 1'b0;
        s2_ip_q.ipv6_ext <= ext_proto;
        s2_ip_q.tos <= {s1_l3_q[3:0], s1_l3_q[15:12]};
        s2_ip_q.ttl <= s1_l3_q[8*7+:8];
        s2_ip_q.sip <= s1_l3_q[8*8+:128];
        s2_ip_q.dip <= s1_l3_q[8*24+:128];
        s2_l4_len_q <= ip_len - 17'd40;
        s2_l4_q <= s1_l3_q[8*40+:L4W];
      end else begin
        s2_ip_q.l3_trunc <= s1_l3_len_q < 17'd20;
        s2_ip_q.ip_version <= s1_l3_q[7:4] != 4'd4 || s1_l3_q[3:0] < 4'd5;
        s2_ip_q.ip_options <= s1_l3_q[3:0] > 4'd5;
        // MF is bit 5 of byte 6, the offset follows
        s2_ip_q.ip_fragment <= s1_l3_q[8*6+:6] != '0 || s1_l3_q[8*7+:8] != '0;
        s2_ip_q.ipv6_ext <= 1'b0;
        s2_ip_q.tos <= s1_l3_q[15:8];
        s2_ip_q.ttl <= s1_l3_q[8*8+:8];
        s2_ip_q.sip <= {s1_l3_q[8*12+:32], 16'hffff, 80'd0};
        s2_ip_q.dip <= {s1_l3_q[8*16+:32], 16'hffff, 80'd0};
        s2_l4_len_q <= ip_len - 17'd20;
        s2_l4_q <= s1_l3_q[8*20+:L4W];
      end
    end
  end

  // ---- 3: UDP, BTH --------------------------------------------------------------------------
  typedef struct packed {
    logic       known;
    logic       deth;        // what tells apart where fields are
    logic       reth;
    logic       atomic_ack;
    logic       ieth;
    logic       cnp;
    logic [4:0] len;         // of all extended headers
  } op_t;

  // Opcode table for RC (0x00), UC (0x20), UD (0x60) and the CNP (IBTA table 38, A17.9.3).
  function automatic op_t decode(input logic [7:0] op);
    op_t o;
    logic rc, uc;
    o = '0;
    rc = op[7:5] == 3'd0;
    uc = op[7:5] == 3'd1;
    if (rc || uc) begin
      unique case (op[4:0])
        5'h00, 5'h01, 5'h02, 5'h04, 5'h07, 5'h08: o.known = 1'b1;
        5'h03, 5'h05, 5'h09: begin
          o.known = 1'b1;
          o.len = 5'd4;
        end
        5'h06, 5'h0a: begin
          o.known = 1'b1;
          o.reth = 1'b1;
          o.len = 5'd16;
        end
        5'h0b: begin
          o.known = 1'b1;
          o.reth = 1'b1;
          o.len = 5'd20;
        end
        5'h0c: if (rc) begin
          o.known = 1'b1;
          o.reth = 1'b1;
          o.len = 5'd16;
        end
        5'h0d, 5'h0f, 5'h10, 5'h11: if (rc) begin
          o.known = 1'b1;
          o.len = 5'd4;
        end
        5'h0e: o.known = rc;
        5'h12: if (rc) begin
          o.known = 1'b1;
          o.atomic_ack = 1'b1;
          o.len = 5'd12;
        end
        5'h13, 5'h14: if (rc) begin
          o.known = 1'b1;
          o.len = 5'd28;
        end
        5'h16, 5'h17: if (rc) begin
          o.known = 1'b1;
          o.ieth = 1'b1;
          o.len = 5'd4;
        end
        default: o.known = 1'b0;
      endcase
    end else if (op == 8'h64) begin
      o.known = 1'b1;
      o.deth = 1'b1;
      o.len = 5'd8;
    end else if (op == 8'h65) begin
      o.known = 1'b1;
      o.deth = 1'b1;
      o.len = 5'd12;
    end else if (op == OpCnp) begin
      o.known = 1'b1;
      o.cnp = 1'b1;
    end
    return o;
  endfunction

  logic s3_valid_q;
  l2_t s3_l2_q;
  ip_t s3_ip_q;
  op_t s3_op_q;
  logic [16:0] s3_l4_len_q;
  logic [19:0] s3_sum_q;
  logic s3_udp_trunc_q, s3_not_roce_q, s3_udp_length_q, s3_bth_trunc_q, s3_udp_zero_q;
  logic [15:0] s3_sport_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [95:0] s3_bth_q;               // reserved bits stay unread
  // verilator lint_on UNUSEDSIGNAL
  logic [223:0] s3_ext_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s3_valid_q <= 1'b0;
    else s3_valid_q <= s2_valid_q;
    if (s2_valid_q) begin
      s3_l2_q <= s2_l2_q;
      s3_ip_q <= s2_ip_q;
      s3_l4_len_q <= s2_l4_len_q;
      s3_sum_q <= 20'(s2_sum0_q) + 20'(s2_sum1_q);
      s3_udp_trunc_q <= s2_l4_len_q < 17'd8;
      s3_not_roce_q <= be16(s2_l4_q[8*2+:16]) != RoceUdpPort;
      s3_udp_length_q <= 17'(be16(s2_l4_q[8*4+:16])) != s2_l4_len_q;
      s3_bth_trunc_q <= s2_l4_len_q < 17'd24;
      s3_udp_zero_q <= s2_l4_q[8*6+:16] == '0;
      s3_sport_q <= be16(s2_l4_q[15:0]);
      s3_op_q <= decode(s2_l4_q[8*8+:8]);
      s3_bth_q <= s2_l4_q[8*8+:96];
      s3_ext_q <= s2_l4_q[8*20+:224];
    end
  end

  // ---- 4: extended headers, lengths, reason ---------------------------------------------------
  logic s4_valid_q;
  logic [7:0] s4_early_q, s4_late_q;
  logic s4_ip_sum_ok_q, s4_udp_zero_q;
  // Both hold many of the same bits; synthesis merges equal registers.
  rx_verdict_t s4_verdict_q;
  rx_meta_t s4_meta_q;

  logic [7:0] early, late;
  logic [16:0] rest;    // payload with a sign: UDP payload less all headers
  logic [6:0] heads;    // offset of the payload

  assign rest = s3_l4_len_q - 17'd24 - 17'(s3_op_q.len) - 17'(s3_bth_q[13:12]);
  assign heads = 7'd34 + {3'd0, s3_l2_q.l3, 2'b00} + (s3_l2_q.ip6 ? 7'd40 : 7'd20) +
                 7'(s3_op_q.len);

  // not RoCEv2, and nothing wrong as far as it was looked at
  logic raw, no_roce;
  assign no_roce = s3_l2_q.not_ip || (!s3_ip_q.l3_trunc && !s3_ip_q.ip_version &&
                   (s3_ip_q.ip_options || (!s3_ip_q.ip_length &&
                    (s3_ip_q.ip_fragment || s3_ip_q.ipv6_ext || s3_ip_q.not_udp ||
                     (!s3_udp_trunc_q && s3_not_roce_q)))));
  assign raw = raw_en_i && !s3_l2_q.user_err && !s3_l2_q.too_long && !s3_l2_q.overflow &&
               !s3_l2_q.l2_trunc && (!s3_l2_q.dmac_bad || s3_l2_q.group) && no_roce &&
               s3_l2_q.frame_len <= 16'(MaxRaw);

  always_comb begin
    if (s3_l2_q.user_err) early = DropReasonFrameError;
    else if (s3_l2_q.too_long) early = DropReasonFrameTooLong;
    else if (s3_l2_q.overflow) early = DropReasonOverflow;
    else if (s3_l2_q.l2_trunc) early = DropReasonL2Truncated;
    else if (s3_l2_q.dmac_bad) early = DropReasonDmacMismatch;
    else if (s3_l2_q.not_ip) early = DropReasonNotIp;
    else if (s3_ip_q.l3_trunc) early = DropReasonL3Truncated;
    else if (s3_ip_q.ip_version) early = DropReasonIpVersion;
    else if (s3_ip_q.ip_options) early = DropReasonIpOptions;
    else if (s3_ip_q.ip_length) early = DropReasonIpLength;
    else if (s3_ip_q.ip_fragment) early = DropReasonIpFragment;
    else if (s3_ip_q.ipv6_ext) early = DropReasonIpv6Ext;
    else if (s3_ip_q.not_udp) early = DropReasonNotUdp;
    else if (s3_udp_trunc_q) early = DropReasonUdpTruncated;
    else if (s3_not_roce_q) early = DropReasonNotRoce;
    else if (s3_udp_length_q) early = DropReasonUdpLength;
    else if (s3_bth_trunc_q) early = DropReasonBthTruncated;
    else early = DropReasonNone;
    if (raw) early = DropReasonNone;

    if (s3_bth_q[11:8] != '0) late = DropReasonBthVersion;
    else if (!s3_op_q.known) late = DropReasonBthOpcode;
    else if (rest[16] || (s3_op_q.cnp && s3_l4_len_q != 17'd40)) late = DropReasonRoceLength;
    else late = DropReasonNone;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s4_valid_q <= 1'b0;
    else s4_valid_q <= s3_valid_q;
    if (s3_valid_q) begin
      s4_early_q <= early;
      s4_late_q <= late;
      s4_ip_sum_ok_q <= s3_l2_q.ip6 || 17'(s3_sum_q[15:0]) + 17'(s3_sum_q[19:16]) == 17'h0ffff;
      s4_udp_zero_q <= s3_udp_zero_q;
      s4_verdict_q.opcode <= s3_bth_q[7:0];
      s4_verdict_q.frame_len <= s3_l2_q.frame_len;
      s4_verdict_q.ipv6 <= s3_l2_q.ip6;
      s4_verdict_q.vlan_tags <= s3_l2_q.l3;
      s4_verdict_q.fecn <= s3_bth_q[39];
      s4_verdict_q.becn <= s3_bth_q[38];
      s4_verdict_q.ack_req <= s3_bth_q[71];
      s4_verdict_q.tos <= s3_ip_q.tos;
      s4_verdict_q.ttl <= s3_ip_q.ttl;
      s4_verdict_q.bth_flags <= s3_bth_q[15:8];
      s4_verdict_q.pkey <= be16(s3_bth_q[31:16]);
      s4_verdict_q.ethertype <= s3_l2_q.ethertype;
      s4_verdict_q.vlan_tci <= s3_l2_q.tci;
      s4_verdict_q.udp_sport <= s3_sport_q;
      s4_verdict_q.dest_qp <= be24(s3_bth_q[63:40]);
      s4_verdict_q.psn <= be24(s3_bth_q[95:72]);
      s4_verdict_q.raw <= raw;
      s4_verdict_q.payload_off <= raw ? 16'd0 : 16'(heads);
      s4_verdict_q.payload_len <= raw ? s3_l2_q.frame_len : rest[15:0];
      s4_verdict_q.syndrome <= s3_ext_q[7:0];
      s4_verdict_q.msn <= be24(s3_ext_q[31:8]);
      s4_verdict_q.va <= s3_op_q.deth ? {8'd0, be24(s3_ext_q[63:40]), be32(s3_ext_q[31:0])} :
                         be64(s3_ext_q[63:0]);
      s4_verdict_q.rkey <= s3_op_q.ieth ? be32(s3_ext_q[31:0]) : be32(s3_ext_q[95:64]);
      s4_verdict_q.dma_len <= be32(s3_ext_q[127:96]);
      s4_verdict_q.imm <= s3_op_q.reth ? be32(s3_ext_q[159:128]) :
                          s3_op_q.deth ? be32(s3_ext_q[95:64]) : be32(s3_ext_q[31:0]);
      s4_verdict_q.swap_add <= be64(s3_ext_q[159:96]);
      s4_verdict_q.compare <= s3_op_q.atomic_ack ? be64(s3_ext_q[95:32]) : be64(s3_ext_q[223:160]);
      s4_verdict_q.sip <= s3_ip_q.sip;
      s4_verdict_q.dip <= s3_ip_q.dip;
      s4_verdict_q.smac <= s3_l2_q.smac;
      s4_verdict_q.dmac <= s3_l2_q.dmac;
      s4_verdict_q.reason <= '0;
      s4_verdict_q.icrc_ok <= '0;
      s4_verdict_q.rsvd_0 <= '0;
      s4_verdict_q.rsvd_1 <= '0;
      s4_verdict_q.rsvd_2 <= '0;
      s4_verdict_q.rsvd_3 <= '0;
      s4_meta_q.prio <= '0;             // known to rx_frontend
      s4_meta_q.opcode <= s3_bth_q[7:0];
      s4_meta_q.pad <= s3_bth_q[13:12];
      s4_meta_q.solicited <= s3_bth_q[15];
      s4_meta_q.ack_req <= s3_bth_q[71];
      s4_meta_q.fecn <= s3_bth_q[39];
      s4_meta_q.becn <= s3_bth_q[38];
      s4_meta_q.ecn <= s3_ip_q.tos[1:0];
      s4_meta_q.pkey <= be16(s3_bth_q[31:16]);
      s4_meta_q.dest_qp <= be24(s3_bth_q[63:40]);
      s4_meta_q.psn <= be24(s3_bth_q[95:72]);
      s4_meta_q.va <= s3_op_q.deth ? {8'd0, be24(s3_ext_q[63:40]), be32(s3_ext_q[31:0])} :
                      be64(s3_ext_q[63:0]);
      s4_meta_q.rkey <= s3_op_q.ieth ? be32(s3_ext_q[31:0]) : be32(s3_ext_q[95:64]);
      s4_meta_q.dma_len <= be32(s3_ext_q[127:96]);
      s4_meta_q.imm <= s3_op_q.reth ? be32(s3_ext_q[159:128]) :
                       s3_op_q.deth ? be32(s3_ext_q[95:64]) : be32(s3_ext_q[31:0]);
      s4_meta_q.syndrome <= s3_ext_q[7:0];
      s4_meta_q.msn <= be24(s3_ext_q[31:8]);
      s4_meta_q.src_qp <= be24(s3_ext_q[63:40]);
      s4_meta_q.qkey <= be32(s3_ext_q[31:0]);
      s4_meta_q.swap_add <= be64(s3_ext_q[159:96]);
      s4_meta_q.compare <= s3_op_q.atomic_ack ? be64(s3_ext_q[95:32]) : be64(s3_ext_q[223:160]);
      s4_meta_q.ipv6 <= s3_l2_q.ip6;
      s4_meta_q.sip <= s3_ip_q.sip;
      s4_meta_q.dip <= s3_ip_q.dip;
      s4_meta_q.raw <= raw;
      s4_meta_q.payload_len <= raw ? s3_l2_q.frame_len[12:0] :
                               rest[15:0] > 16'd4096 ? 13'd8191 : rest[12:0];
      s4_meta_q.payload_off <= raw ? 16'd0 : 16'(heads);
      s4_meta_q.ip_head <= s3_ip_q.head;
    end
  end

  assign valid_o = s4_valid_q;
  assign early_o = s4_early_q;
  assign late_o = s4_late_q;
  assign ip_sum_ok_o = s4_ip_sum_ok_q;
  assign udp_sum_zero_o = s4_udp_zero_q;
  assign verdict_o = s4_verdict_q;
  assign meta_o = s4_meta_q;
  assign busy_o = s1_valid_q || s2_valid_q || s3_valid_q || s4_valid_q;

endmodule
