// SPDX-License-Identifier: Apache-2.0
//
// Builds all headers of one RoCEv2 frame: Ethernet, optional 802.1Q tag, IPv4 or IPv6, UDP, BTH,
// then RETH, AtomicETH, DETH, ImmDt, IETH or AETH, AtomicAckETH (IBTA 9.2, 9.3 and annex A17). attr_i carries the address part of the packet: that of the
// QP, or of its address handle. An acknowledge comes as a packet with
// is_ack_i, has_aeth and its AETH in `imm`; a CNP (BECN, A17.9.3) with is_ack_i and a RETH of zeros. `imm` is a number: its high byte goes to the wire first.
//
// The head is a row of beats, zero behind its end. Without payload the head contains the four zero
// bytes of the ICRC field too and is the whole frame. IPv4: DF set, IHL 5, ID counts frames (never
// 0), header checksum computed; UDP checksum 0 in both families. Lengths: UDP length = 8 + BTH 12 +
// extended headers + payload + pad + ICRC 4.
//
// drop_o: the QP is in a state that may not send this: requests need RTS or SQD (in SQD the
// requester finishes what it began), responses of READs and atomics RTR too, acknowledges any state from RTR on,
// ERR included, because the NAK of a failed request leaves when its QP is already in ERR (IBTA 10.3.1).
//
// Throughput: a head per 2 cycles; latency 3 cycles. Back-pressure: a head stays until out_ready_i.

module hdr_builder
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB),
  localparam int unsigned HeadBeats = (110 + NumB - 1) / NumB,
  localparam int unsigned BeatW = $clog2(HeadBeats)
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [47:0]                     mac_addr_i,     // first byte on the wire in [7:0]
  input  prio_map_t                       prio_map_i,
  input  logic                            in_valid_i,
  output logic                            in_ready_o,
  input  tx_pkt_t                         pkt_i,
  input  logic                            is_ack_i,
  input  qp_attr_t                        attr_i,
  output logic                            out_valid_o,
  input  logic                            out_ready_i,
  output logic [HeadBeats-1:0][DataW-1:0] head_o,
  output logic [BeatW-1:0]                last_beat_o,    // index of the last beat of the head
  output logic [LaneW:0]                  last_cnt_o,     // bytes in it, 1 to NumB
  output logic                            drop_o,
  output logic                            has_payload_o,
  output logic [1:0]                      pad_o,          // bytes between payload and ICRC
  output logic                            vlan_o,
  output logic                            ipv6_o,
  output logic [2:0]                      prio_o,
  output logic [2:0]                      kind_o,         // 0 WRITE or SEND, 1 ACK, 2 NAK, 3 response, 4 raw frame, 5 READ or atomic
  output tx_err_t                         err_o,          // who made it, should its payload fail
  output logic                            report_o,       // of tx_pkt_t
  output logic                            raw_o           // of tx_pkt_t: there is no head
);

  // numbers to wire order (first byte in [7:0])
  function automatic logic [15:0] be16(input logic [15:0] x);
    return {x[7:0], x[15:8]};
  endfunction
  function automatic logic [23:0] be24(input logic [23:0] x);
    return {x[7:0], x[15:8], x[23:16]};
  endfunction
  function automatic logic [31:0] be32(input logic [31:0] x);
    return {be16(x[15:0]), be16(x[31:16])};
  endfunction
  function automatic logic [63:0] be64(input logic [63:0] x);
    return {be32(x[31:0]), be32(x[63:32])};
  endfunction

  localparam int unsigned HeadBits = HeadBeats * DataW;

  // ---- the packet in work: step 1 adds the checksum up, step 2 folds it and loads the head ------
  typedef enum logic [1:0] {
    WaitPkt,
    WaitSum,
    WaitHead
  } step_e;

  step_e       step_q;
  // verilator lint_off UNUSEDSIGNAL
  // only the part of the QP's attributes that headers are made of is looked at
  qp_attr_t    attr_q;
  tx_pkt_t     pkt_q;
  // verilator lint_on UNUSEDSIGNAL
  logic        is_ack_q, drop_q, drop;
  logic [15:0] udp_len, ip_len, udp_len_q, ip_len_q, id_q;
  logic [4:0]  ext_len, ext_len_q;
  logic [17:0] sum_addr_q;
  logic [17:0] sum_rest_q;
  logic [19:0] sum_q;
  logic        load, take;

  assign take = in_valid_i && in_ready_o;
  assign load = step_q == WaitHead && (!out_valid_o || out_ready_i);
  assign in_ready_o = step_q == WaitPkt || load;

  assign ext_len = (pkt_i.has_atomic ? 5'd28 : pkt_i.has_reth ? 5'd16 : pkt_i.has_deth ? 5'd8 : 5'd0) + (pkt_i.has_value ? 5'd8 : 5'd0) +
                   (pkt_i.has_imm || pkt_i.has_ieth || pkt_i.has_aeth ? 5'd4 : 5'd0);
  assign udp_len = 16'd24 + 16'(ext_len) + ((16'(pkt_i.len) + 16'd3) & ~16'd3);
  assign ip_len = udp_len + 16'd20;
  always_comb begin
    if (is_ack_i) drop = attr_i.state inside {QpReset, QpInit, QpNone};
    else drop = !(attr_i.state inside {QpRts, QpSqd} || (pkt_i.response && attr_i.state == QpRtr));
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= WaitPkt;
      id_q <= 16'd1;
    end else begin
      if (take) step_q <= WaitSum;
      else if (load) step_q <= WaitPkt;
      else if (step_q == WaitSum) step_q <= WaitHead;
      if (load && !attr_q.ipv6 && !drop_q) id_q <= (id_q == '1) ? 16'd1 : id_q + 16'd1;
    end
    if (take) begin
      attr_q <= attr_i;
      pkt_q <= pkt_i;
      is_ack_q <= is_ack_i;
      drop_q <= drop;
      ext_len_q <= ext_len;
      udp_len_q <= udp_len;
      ip_len_q <= ip_len;
      sum_addr_q <= 18'(be16(attr_i.sgid[111:96])) + 18'(be16(attr_i.sgid[127:112])) +
                    18'(be16(attr_i.dgid[111:96])) + 18'(be16(attr_i.dgid[127:112]));
      sum_rest_q <= {2'b00, 8'h45, attr_i.traffic_class} + {2'b00, attr_i.hop_limit, 8'd17} +
                    18'(ip_len) + 18'h4000;
    end
    if (step_q == WaitSum) sum_q <= 20'(sum_addr_q) + 20'(sum_rest_q) + 20'(id_q);
  end

  // ---- the head ---------------------------------------------------------------------------------
  // A function, so that the wide work is done only when a head is loaded.
  // verilator lint_off UNUSEDSIGNAL
  // not every attribute goes into a header
  function automatic logic [HeadBits-1:0] build(input qp_attr_t a, input tx_pkt_t p,
                                                input logic [47:0] mac, input logic [15:0] id,
                                                input logic [15:0] ip_bytes,
                                                input logic [15:0] udp_bytes,
                                                input logic [19:0] sum);
    logic [15:0]  fold, ethertype;
    logic [16:0]  once;
    logic [1:0]   pad;
    logic [7:0]   becn;
    logic [159:0] ip4;
    logic [319:0] ip6;
    logic [63:0]  udp;
    logic [95:0]  bth;
    logic [223:0] ext;
    logic [383:0] l4;                  // UDP, BTH, extended headers
    logic [703:0] l3;
    once = 17'(sum[15:0]) + 17'(sum[19:16]);
    fold = ~(once[15:0] + 16'(once[16]));
    pad = -p.len[1:0];
    ip4 = {a.dgid[127:96], a.sgid[127:96], be16(fold), 8'd17, a.hop_limit, 16'h0040,
           be16(id), be16(ip_bytes), a.traffic_class, 8'h45};
    ip6 = {a.dgid, a.sgid, a.hop_limit, 8'd17, be16(udp_bytes),
           be32({4'd6, a.traffic_class, a.flow_label})};
    becn = p.opcode == OpCnp ? 8'h40 : 8'h00;
    udp = {16'd0, be16(udp_bytes), be16(RoceUdpPort), be16(a.udp_sport)};
    bth = {be24(p.psn), p.ack_req, 7'd0, be24(p.has_deth ? p.va[23:0] : a.dest_qpn), becn, be16(a.pkey),
           p.solicited, 1'b0, pad, 4'd0, p.opcode};
    ext = {192'd0, p.has_imm || p.has_ieth || p.has_aeth ? be32(p.imm) : 32'd0};
    if (p.has_value) ext[95:32] = be64(p.va);
    if (p.has_atomic) ext = {be64(p.compare), be64(p.swap_add), be32(p.rkey), be64(p.va)};
    else if (p.has_reth) ext = {64'd0, ext[31:0], be32(p.dma_len), be32(p.rkey), be64(p.va)};
    // a Q_Key with its high bit set stands for the QP's own (IBTA 10.2.5)
    if (p.has_deth) ext = {128'd0, ext[31:0], be24(a.gsi ? QpnGsi : 24'(a.qpn)), 8'd0,
                           be32(p.rkey[31] ? a.qkey : p.rkey)};
    l4 = {ext, bth, udp};
    l3 = a.ipv6 ? {l4, ip6} : {160'd0, l4, ip4};
    ethertype = be16(a.ipv6 ? EthIpv6 : EthIpv4);
    if (a.vlan) return HeadBits'({l3, ethertype, be16(a.vlan_tci), be16(EthVlan), mac, a.dmac});
    return HeadBits'({l3, ethertype, mac, a.dmac});
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic             valid_q;
  logic [HeadBeats-1:0][DataW-1:0] head_q;
  logic [BeatW-1:0] last_beat_q;
  logic [LaneW:0]   last_cnt_q;
  logic             o_drop_q, has_payload_q, vlan_q, ipv6_q;
  logic [1:0]       pad_q;
  logic [2:0]       kind_q;
  logic [2:0]       prio_q;
  tx_err_t          err_q;
  logic             report_q, raw_q;
  logic [6:0]       last_byte;

  assign last_byte = (attr_q.vlan ? 7'd17 : 7'd13) + (attr_q.ipv6 ? 7'd60 : 7'd40) +
                     7'(ext_len_q) + (pkt_q.len == '0 ? 7'd4 : 7'd0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (load) valid_q <= 1'b1;
    else if (out_ready_i) valid_q <= 1'b0;
    if (load) begin
      head_q <= build(attr_q, pkt_q, mac_addr_i, id_q, ip_len_q, udp_len_q, sum_q);
      last_beat_q <= BeatW'(last_byte >> LaneW);
      last_cnt_q <= (LaneW + 1)'(last_byte[LaneW-1:0]) + (LaneW + 1)'(1);
      o_drop_q <= drop_q;
      has_payload_q <= pkt_q.len != '0;
      pad_q <= -pkt_q.len[1:0];
      vlan_q <= attr_q.vlan;
      ipv6_q <= attr_q.ipv6;
      prio_q <= pkt_q.raw ? prio_map_i.default_prio : prio_map_i.trust_dscp ? attr_q.traffic_class[7:5] :
                attr_q.vlan ? attr_q.vlan_tci[15:13] : prio_map_i.default_prio;
      if (pkt_q.response) kind_q <= 3'd3;
      else kind_q <= pkt_q.raw ? 3'd4 : !is_ack_q ? (pkt_q.has_atomic || pkt_q.opcode == OpRcReadRequest ? 3'd5 : 3'd0) :
                      pkt_q.imm[30:29] == 2'b00 ? 3'd1 : 3'd2;
      err_q <= '{
        qp: pkt_q.qp, response: pkt_q.response, wqe: pkt_q.wqe, psn: pkt_q.psn, msn: pkt_q.imm[23:0]
      };
      report_q <= pkt_q.report;
      raw_q <= pkt_q.raw;
    end
  end

  assign out_valid_o = valid_q;
  assign head_o = head_q;
  assign last_beat_o = last_beat_q;
  assign last_cnt_o = last_cnt_q;
  assign drop_o = o_drop_q;
  assign has_payload_o = has_payload_q;
  assign pad_o = pad_q;
  assign vlan_o = vlan_q;
  assign ipv6_o = ipv6_q;
  assign prio_o = prio_q;
  assign kind_o = kind_q;
  assign err_o = err_q;
  assign report_o = report_q;
  assign raw_o = raw_q;

endmodule
