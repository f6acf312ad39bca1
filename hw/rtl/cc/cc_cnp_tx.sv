// SPDX-License-Identifier: Apache-2.0
//
// Makes CNPs (IBTA A17.9.3): a whole frame for each QP that in_qp_i names, apart from all other packets (tx_egress), so that a CNP does not wait
// behind the data whose congestion it reports, nor for a pause of their priority.
//
// The QP's attributes are asked for while the one who names it holds its slot; in_ready_o comes with them. The frame is that of
// an acknowledge of the QP, with opcode 0x81, BECN, PSN 0, 16 zero bytes and the DSCP and priority of the registers; its ICRC is added in a small frame
// memory of its own. A QP that is not RC or UC, or in no state to receive (RTR, RTS, SQD, SQE), makes none; nor does one that comes while
// the priority of CNPs is paused and the memory is full (ev_drop_o): nobody waits for the end of a pause.
//
// Throughput: a CNP in about 10 cycles (64 bit: 15). Latency: about 25 cycles. Back-pressure: from the MAC, but for a pause.

module cc_cnp_tx
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [47:0]      mac_addr_i,
  input  logic [5:0]       dscp_i,
  input  logic [2:0]       prio_i,
  input  logic [7:0]       pfc_pause_i,
  // a QP, whose slot stays until it is taken
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  qp_idx_t          in_qp_i,
  // QP attributes
  output logic             qp_req_valid_o,
  input  logic             qp_req_ready_i,
  output qp_idx_t          qp_req_idx_o,
  input  logic             qp_rsp_valid_i,
  input  qp_attr_t         qp_rsp_i,
  // frames
  output logic             tx_valid_o,
  input  logic             tx_ready_i,
  output logic [DataW-1:0] tx_data_o,
  output logic [NumB-1:0]  tx_keep_o,
  output logic             tx_last_o,
  output logic             ev_frame_valid_o,
  output logic [15:0]      ev_frame_len_o,
  output logic [2:0]       ev_frame_kind_o,   // 6: CNP
  output logic             ev_drop_o,
  output logic             idle_o
);

  localparam int unsigned HeadBeats = (110 + NumB - 1) / NumB;
  localparam int unsigned BeatW = $clog2(HeadBeats);
  localparam int unsigned Frames = 8;

  typedef enum logic [1:0] {
    WaitQp,
    WaitAsk,
    WaitAttr,
    WaitBuild
  } state_e;

  // ---- attributes -------------------------------------------------------------------------------------
  state_e   state_q;
  qp_idx_t  qp_q;
  qp_attr_t attr_q, head_attr;
  logic     room, held, able, refuse, build_ready, build;

  assign able = qp_rsp_i.qp_type inside {QpTypeRc, QpTypeUc} && qp_rsp_i.state inside {QpRtr, QpRts, QpSqd, QpSqe};
  assign refuse = state_q == WaitQp && in_valid_i && !room && held;
  assign in_ready_o = refuse || (state_q == WaitAttr && qp_rsp_valid_i);
  assign qp_req_valid_o = state_q == WaitAsk;
  assign qp_req_idx_o = qp_q;
  assign build = state_q == WaitBuild && build_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= WaitQp;
      ev_drop_o <= 1'b0;
    end else begin
      ev_drop_o <= refuse || (state_q == WaitAttr && qp_rsp_valid_i && !able);
      unique case (state_q)
        WaitQp: if (in_valid_i && room) state_q <= WaitAsk;
        WaitAsk: if (qp_req_ready_i) state_q <= WaitAttr;
        WaitAttr: if (qp_rsp_valid_i) state_q <= able ? WaitBuild : WaitQp;
        default: if (build) state_q <= WaitQp;
      endcase
    end
    if (state_q == WaitQp) qp_q <= in_qp_i;
    if (state_q == WaitAttr) attr_q <= qp_rsp_i;
  end

  // ---- frame ------------------------------------------------------------------------------------------
  tx_pkt_t pkt;
  always_comb begin
    pkt = '0;
    pkt.qp = qp_q;
    pkt.opcode = OpCnp;
    pkt.has_reth = 1'b1;   // 16 bytes, all zero
    head_attr = attr_q;
    head_attr.traffic_class = {dscp_i, 2'b00};
    head_attr.vlan_tci[15:13] = prio_i;
  end

  logic                            head_valid, head_pop, frame_ready, last, vlan, ipv6;
  logic [HeadBeats-1:0][DataW-1:0] head;
  logic [BeatW-1:0]                last_beat, beat_q;
  logic [LaneW:0]                  last_cnt;
  // verilator lint_off PINCONNECTEMPTY
  // what only packets with a payload, or that may fail, have
  hdr_builder #(.DataW(DataW)) u_head (
    .clk_i, .rst_ni, .mac_addr_i, .prio_map_i('0),
    .in_valid_i(state_q == WaitBuild), .in_ready_o(build_ready),
    .pkt_i(pkt), .is_ack_i(1'b1), .attr_i(head_attr),
    .out_valid_o(head_valid), .out_ready_i(head_pop),
    .head_o(head), .last_beat_o(last_beat), .last_cnt_o(last_cnt),
    .drop_o(), .has_payload_o(), .pad_o(), .vlan_o(vlan), .ipv6_o(ipv6),
    .prio_o(), .kind_o(), .err_o(), .report_o(), .raw_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign last = beat_q == last_beat;
  assign head_pop = head_valid && frame_ready && last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) beat_q <= '0;
    else if (head_valid && frame_ready) beat_q <= last ? '0 : beat_q + 1'b1;
  end

  // CNPs from here to the MAC; room: one more finds a place in the memory
  localparam int unsigned CountW = $clog2(Frames + 1);
  logic              leave;
  logic [CountW-1:0] count_q;
  assign room = count_q != CountW'(Frames);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) count_q <= '0;
    else count_q <= count_q + CountW'(build) - CountW'(leave);
  end

  // verilator lint_off PINCONNECTEMPTY
  // all CNPs have the same priority
  tx_frame_fifo #(.DataW(DataW), .FifoBytes(1024), .MaxFrames(Frames)) u_frames (
    .clk_i, .rst_ni,
    .in_valid_i(head_valid), .in_ready_o(frame_ready), .in_data_i(head[beat_q]),
    .in_cnt_i(last ? last_cnt : (LaneW + 1)'(NumB)), .in_last_i(last), .in_abort_i(1'b0),
    .in_prio_i(prio_i), .in_kind_i(3'd6), .in_raw_i(1'b0), .in_l3_i({1'b0, vlan}), .in_ipv6_i(ipv6),
    .pfc_pause_i, .held_o(held), .held_prio_o(), .tx_valid_o, .tx_ready_i, .tx_data_o, .tx_keep_o, .tx_last_o,
    .leave_o(leave), .ev_frame_valid_o, .ev_frame_len_o, .ev_frame_kind_o
  );
  // verilator lint_on PINCONNECTEMPTY

  assign idle_o = state_q == WaitQp && !in_valid_i && count_q == '0 && !ev_drop_o;

endmodule
