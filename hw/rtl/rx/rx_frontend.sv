// SPDX-License-Identifier: Apache-2.0
//
// Receive front end: takes whatever the MAC delivers, checks it layer by layer up to the BTH and
// its extended headers (drop reasons and their order: enum drop_reason of hw/regs/csr.yaml), says
// its verdict on every frame, and hands metadata and payload of good RoCEv2 packets (IBTA A17) on, and whole frames that are not
// RoCEv2 for the raw packet QP, if there is one (raw_en_i).
//
//   rx_predecode (3 cycles) -+- header capture (1) - rx_parser (4) ---------+- verdict, metadata
//                            +- icrc_mask - icrc_engine - compare (5) ------+
//                            +- udp_csum (5) -------------------------------+
//                            +- pkt_buffer ................ payload, when the transport asks for it
//
// Throughput: a beat every cycle; at 512 bit a frame every cycle as long as the transport keeps up.
// Latency from the last beat at the input to the verdict 9 cycles, to the metadata 10.
// units_o and frames_o say how full it is; a peer that is stopped in time (pfc) loses nothing.
// No back-pressure at the input: a frame that finds no room in the packet buffer
// (BufBytes), for its metadata (MetaDepth) or for its descriptor (DescDepth) is dropped whole with
// reason overflow. Back-pressure at meta, pcmd and payload only fills these queues.
//
// Nothing in here can be stopped by a frame: every stage is a pipeline that moves each cycle, and
// an endless frame is cut in the packet buffer.

module rx_frontend
  import rnic_pkg::*;
  import rnic_regs_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned BufBytes = PktBufBytes,
  parameter int unsigned MetaDepth = 512,
  parameter int unsigned DescDepth = 512,
  parameter int unsigned Ahead = 16,     // packets before the next one whose look-ups are announced
  localparam int unsigned Bytes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Bytes)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             enable_i,
  input  logic             promisc_i,
  input  logic             raw_en_i,   // a raw packet QP takes frames that are not RoCEv2
  // flow control: how full the buffer is; when full_i, frames of priorities not in lossless_i are refused
  input  prio_map_t        prio_map_i,
  input  logic [7:0]       lossless_i,
  input  logic             full_i,
  output logic [15:0]      units_o,    // of 64 bytes
  output logic [15:0]      frames_o,
  input  logic [47:0]      mac_addr_i,

  input  logic             rx_valid_i,
  input  logic [DataW-1:0] rx_data_i,
  input  logic [Bytes-1:0] rx_keep_i,
  input  logic             rx_last_i,
  input  logic             rx_user_i,

  output logic             meta_valid_o,
  input  logic             meta_ready_i,
  output rx_meta_t         meta_o,

  input  logic             pcmd_valid_i,
  output logic             pcmd_ready_o,
  input  payload_cmd_e     pcmd_i,

  output logic             pl_valid_o,
  input  logic             pl_ready_i,
  output logic [DataW-1:0] pl_data_o,
  output logic [LaneW-1:0] pl_off_o,
  output logic [LaneW:0]   pl_cnt_o,
  output logic             pl_last_o,

  output logic             verdict_valid_o,
  output rx_verdict_t      verdict_o,

  output logic             pf_valid_o,    // metadata with this key are among the next ones
  output mr_idx_t          pf_idx_o,
  output logic             pf_qp_valid_o, // or a QPN, of a packet that is not QP1's
  output logic [23:0]      pf_qpn_o,

  input  logic             drain_i,
  output logic             drain_done_o,
  output logic             idle_o
);

  // Longest header: Ethernet, two tags, IPv6, UDP, BTH, AtomicETH.
  localparam int unsigned HdrBeats = (14 + 8 + 40 + 8 + 12 + 28 + Bytes - 1) / Bytes;
  localparam int unsigned BeatsW = $clog2(MaxFrame / Bytes + 1) + 1;
  localparam int unsigned ParseCycles = 4;

  // ---- beats with attributes ------------------------------------------------------------------
  logic c_valid, c_first, c_last, c_user, c_ip6, c_end, c_skip, pre_busy;
  logic [DataW-1:0] c_data;
  logic [3:0] c_beat;
  logic [15:0] c_len, c_type, c_l4_len;
  logic [1:0] c_l3;
  logic [LaneW:0] c_cnt;

  rx_predecode #(.DataW(DataW)) u_predecode (
    .clk_i, .rst_ni, .enable_i, .rx_valid_i, .rx_data_i, .rx_keep_i, .rx_last_i, .rx_user_i,
    .valid_o(c_valid), .first_o(c_first), .last_o(c_last), .data_o(c_data), .beat_o(c_beat),
    .len_o(c_len), .user_o(c_user), .l3_o(c_l3), .ethertype_o(c_type),
    .ip6_o(c_ip6), .end_o(c_end), .cov_cnt_o(c_cnt), .skip_o(c_skip), .l4_len_o(c_l4_len),
    .busy_o(pre_busy)
  );

  // ---- header capture -------------------------------------------------------------------------
  logic [HdrBeats-1:0][DataW-1:0] hdr_q;
  logic e_user_q;
  logic [15:0] e_len_q, e_type_q;
  logic [1:0] e_l3_q;
  logic [2:0] e_prio_q;

  for (genvar b = 0; b < HdrBeats; b++) begin : gen_hdr
    always_ff @(posedge clk_i) if (c_valid && c_beat == 4'(b)) hdr_q[b] <= c_data;
  end
  always_ff @(posedge clk_i) begin
    if (c_valid && c_last) begin
      e_user_q <= c_user;
      e_len_q <= c_len;
      e_type_q <= c_type;
      e_l3_q <= c_l3;
    end
  end

  // ---- priority -------------------------------------------------------------------------------
  // PCP of the outer tag (bytes 14, 15), or the DSCP in bytes 0 and 1 of the IP header. All lie in one beat each.
  localparam int unsigned TagBeat = 14 / Bytes;
  logic [2:0] c_prio, prio_q, c_pcp, c_dscp;
  logic c_ip;
  // verilator lint_off UNUSEDSIGNAL
  logic [15:0] c_tos_word;            // first two bytes of the IP header; the upper bits of the DSCP are read
  // verilator lint_on UNUSEDSIGNAL
  logic [4:0] c_ip_off;

  assign c_ip_off = 5'd14 + {1'b0, c_l3, 2'b00};
  assign c_ip = (c_type == EthIpv4 || c_type == EthIpv6) && 32'(c_beat) == 32'(c_ip_off) / Bytes;
  assign c_pcp = c_data[(14 % Bytes) * 8 + 5 +: 3];
  if (Bytes >= 32) begin : gen_tos_wide
    always_comb begin
      unique case (c_l3)
        2'd0: c_tos_word = c_data[8*14+:16];
        2'd1: c_tos_word = c_data[8*18+:16];
        default: c_tos_word = c_data[8*22+:16];
      endcase
    end
  end else begin : gen_tos_narrow
    assign c_tos_word = c_data[8*c_ip_off[LaneW-1:0]+:16];
  end
  assign c_dscp = c_ip6 ? c_tos_word[3:1] : c_tos_word[15:13];
  always_comb begin
    c_prio = c_first ? prio_map_i.default_prio : prio_q;
    if (prio_map_i.trust_dscp) begin
      if (c_ip) c_prio = c_dscp;
    end else if (32'(c_beat) == TagBeat && c_l3 != 2'd0) begin
      c_prio = c_pcp;
    end
  end
  always_ff @(posedge clk_i) begin
    if (c_valid) prio_q <= c_prio;
    if (c_valid && c_last) e_prio_q <= c_prio;
  end

  // ---- packet buffer --------------------------------------------------------------------------
  logic e_valid, e_too_long, e_overflow, e_held, meta_room;
  logic [BeatsW-1:0] e_beats;
  logic desc_valid, desc_stream, buf_drained, buf_idle;
  logic v_valid, v_accept, v_held;
  logic [BeatsW-1:0] v_beats;
  logic [$clog2(BufBytes / Bytes):0] buf_used;
  logic [$clog2(DescDepth):0] buf_frames;
  rx_verdict_t v_verdict;
  rx_meta_t p_meta, v_meta;           // as the parser says, and with the priority

  pkt_buffer #(.DataW(DataW), .BufBytes(BufBytes), .DescDepth(DescDepth)) u_buffer (
    .clk_i, .rst_ni,
    .wr_valid_i(c_valid), .wr_first_i(c_first), .wr_last_i(c_last), .wr_data_i(c_data),
    .wr_len_i(c_len), .wr_err_i(c_user), .wr_admit_i(meta_room && !(full_i && !lossless_i[c_prio])),
    .used_o(buf_used), .frames_o(buf_frames),
    .end_valid_o(e_valid), .end_too_long_o(e_too_long), .end_overflow_o(e_overflow),
    .end_held_o(e_held), .end_beats_o(e_beats),
    .desc_valid_i(desc_valid), .desc_stream_i(desc_stream), .desc_beats_i(v_beats),
    .desc_off_i(v_verdict.payload_off[6:0]), .desc_len_i(v_verdict.payload_len),
    .pcmd_valid_i, .pcmd_ready_o, .pcmd_i,
    .pl_valid_o, .pl_ready_i, .pl_data_o, .pl_off_o, .pl_cnt_o, .pl_last_o,
    .drain_i, .drain_done_o(buf_drained), .idle_o(buf_idle)
  );

  // ---- parser, with the buffer's answer beside it ----------------------------------------------
  logic [7:0] v_early, v_late;
  logic v_ip_sum_ok, v_udp_zero, parse_busy;

  rx_parser #(.HdrW(HdrBeats * DataW)) u_parser (
    .clk_i, .rst_ni, .promisc_i, .raw_en_i, .mac_addr_i,
    .valid_i(e_valid), .hdr_i(hdr_q), .frame_len_i(e_len_q), .l3_i(e_l3_q), .ethertype_i(e_type_q),
    .user_err_i(e_user_q), .too_long_i(e_too_long), .overflow_i(e_overflow),
    .valid_o(v_valid), .early_o(v_early), .late_o(v_late), .ip_sum_ok_o(v_ip_sum_ok),
    .udp_sum_zero_o(v_udp_zero), .verdict_o(v_verdict), .meta_o(p_meta), .busy_o(parse_busy)
  );

  typedef struct packed {
    logic              held;
    logic [BeatsW-1:0] beats;
    logic [2:0]        prio;
  } side_t;
  side_t [ParseCycles-1:0] side_q;
  always_ff @(posedge clk_i) begin
    if (e_valid || parse_busy) side_q <= {side_q[ParseCycles-2:0], e_held, e_beats, e_prio_q};
  end
  assign v_held = side_q[ParseCycles-1].held;
  assign v_beats = side_q[ParseCycles-1].beats;
  always_comb begin
    v_meta = p_meta;
    v_meta.prio = side_q[ParseCycles-1].prio;
  end

  // ---- ICRC -----------------------------------------------------------------------------------
  logic m_valid, m_first, m_last, m_skip, s_valid;
  logic [DataW-1:0] m_data;
  logic [31:0] m_residue_q, s_state, s_residue;
  logic [LaneW-1:0] c_tail;
  logic v_icrc_ok, v_udp_ok;

  icrc_mask #(.DataW(DataW)) u_mask (
    .clk_i, .rst_ni, .valid_i(c_valid), .first_i(c_first), .last_i(c_last), .skip_i(c_skip),
    .end_i(c_end), .cnt_i(c_cnt), .beat_i(c_beat), .l3_i(c_l3), .ipv6_i(c_ip6), .data_i(c_data),
    .valid_o(m_valid), .first_o(m_first), .last_o(m_last), .skip_o(m_skip), .data_o(m_data)
  );
  // A right ICRC is part of the data: what is expected depends on the zeros behind it only.
  assign c_tail = LaneW'(Bytes - 32'(c_cnt));
  always_ff @(posedge clk_i) begin
    if (c_valid && c_last) m_residue_q <= rnic_crc_pkg::crc_residue(6'(c_tail));
  end
  icrc_engine #(.DataW(DataW), .UserW(32)) u_engine (
    .clk_i, .rst_ni, .valid_i(m_valid), .first_i(m_first), .last_i(m_last), .skip_i(m_skip),
    .data_i(m_data), .user_i(m_residue_q), .valid_o(s_valid), .state_o(s_state), .user_o(s_residue)
  );
  if (DataW == 64) begin : gen_icrc_late
    logic ok_q, ok_late_q;
    always_ff @(posedge clk_i) begin
      if (s_valid) ok_q <= s_state == s_residue;
      ok_late_q <= ok_q;
    end
    assign v_icrc_ok = ok_late_q;
  end else begin : gen_icrc
    logic ok_q;
    always_ff @(posedge clk_i) if (s_valid) ok_q <= s_state == s_residue;
    assign v_icrc_ok = ok_q;
  end

  // ---- UDP checksum ---------------------------------------------------------------------------
  udp_csum #(.DataW(DataW)) u_csum (
    .clk_i, .rst_ni, .valid_i(c_valid), .first_i(c_first), .skip_i(c_skip), .end_i(c_end),
    .cov_cnt_i(c_cnt), .beat_i(c_beat), .l3_i(c_l3), .ip6_i(c_ip6), .l4_len_i(c_l4_len),
    .data_i(c_data), .ok_o(v_udp_ok)
  );

  // ---- verdict --------------------------------------------------------------------------------
  logic [7:0] reason;
  always_comb begin
    if (v_early != DropReasonNone) reason = v_early;
    else if (v_verdict.raw) reason = DropReasonNone;
    else if (!v_icrc_ok) reason = DropReasonIcrc;
    else if (!v_ip_sum_ok) reason = DropReasonIpChecksum;
    else if (!v_udp_zero && !v_udp_ok) reason = DropReasonUdpChecksum;
    else reason = v_late;
  end
  assign v_accept = v_valid && reason == DropReasonNone;
  assign desc_valid = v_valid && v_held;
  assign desc_stream = v_accept && v_verdict.payload_len != '0;

  rx_verdict_t verdict_q;
  logic verdict_valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) verdict_valid_q <= 1'b0;
    else verdict_valid_q <= v_valid;
    if (v_valid) begin
      verdict_q <= v_verdict;
      verdict_q.reason <= reason;
      verdict_q.icrc_ok <= v_icrc_ok;
    end
  end
  assign verdict_valid_o = verdict_valid_q;
  assign verdict_o = verdict_q;

  // ---- metadata -------------------------------------------------------------------------------
  localparam int unsigned MetaAddrW = $clog2(MetaDepth);
  localparam int unsigned MetaW = $bits(rx_meta_t);
  logic [MetaW-1:0] meta_mem[MetaDepth];
  logic [MetaAddrW:0] meta_wptr_q, meta_rptr_q, meta_used_q;
  logic meta_valid_q, meta_load, meta_leave, meta_gone;
  rx_meta_t meta_q;

  // Places are reserved when a frame is held, and given back by a refused frame or by the
  // transport. The count is one cycle late, so the last place stays free for the frame just held.
  assign meta_room = meta_used_q < (MetaAddrW + 1)'(MetaDepth - 1);
  assign meta_leave = meta_valid_q && meta_ready_i;
  assign meta_gone = v_valid && v_held && !v_accept;
  assign meta_load = meta_wptr_q != meta_rptr_q && (!meta_valid_q || meta_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      meta_wptr_q <= '0;
      meta_rptr_q <= '0;
      meta_used_q <= '0;
      meta_valid_q <= 1'b0;
    end else begin
      if ((e_valid && e_held) || meta_gone || meta_leave) begin
        meta_used_q <= meta_used_q + (MetaAddrW + 1)'(e_valid && e_held) -
                       (MetaAddrW + 1)'(meta_gone) - (MetaAddrW + 1)'(meta_leave);
      end
      if (v_accept) meta_wptr_q <= meta_wptr_q + 1'b1;
      if (meta_load) begin
        meta_rptr_q <= meta_rptr_q + 1'b1;
        meta_valid_q <= 1'b1;
      end else if (meta_leave) begin
        meta_valid_q <= 1'b0;
      end
    end
    if (v_accept) meta_mem[meta_wptr_q[MetaAddrW-1:0]] <= v_meta;
    if (meta_load) meta_q <= rx_meta_t'(meta_mem[meta_rptr_q[MetaAddrW-1:0]]);
  end
  // Hints: the key and the QP of one of the next Ahead packets will be looked up soon. Not earlier: what waits behind hundreds of others
  // would have been displaced again. The QP of a packet that is next is looked up at once.
  typedef struct packed {
    logic        key;
    logic        qp;
    mr_idx_t     idx;
    logic [23:0] qpn;
  } hint_t;
  logic [MetaAddrW:0] hint_ptr_q, hint_ahead;
  logic hint_next, hint_valid_q, hint_qp_q;
  hint_t hint_in, hint;
  assign hint_in = '{
    key: !v_verdict.raw && v_meta.opcode[7:6] == 2'b00 &&
         v_meta.opcode[4:0] inside {OpRcWriteFirst[4:0], OpRcWriteOnly[4:0], OpRcWriteOnlyImm[4:0],
                                    OpRcReadRequest[4:0], OpRcCmpSwap[4:0], OpRcFetchAdd[4:0]},
    qp: !v_verdict.raw && v_meta.dest_qp != QpnGsi,
    idx: mr_key_idx(v_meta.rkey),
    qpn: v_meta.dest_qp
  };
  assign hint_ahead = hint_ptr_q - meta_rptr_q;
  assign hint_next = hint_ptr_q != meta_wptr_q && hint_ahead < (MetaAddrW+1)'(Ahead);
  rnic_ram #(.Width($bits(hint_t)), .Depth(MetaDepth)) u_hints (
    .clk_i, .we_i(v_accept), .waddr_i(meta_wptr_q[MetaAddrW-1:0]), .wdata_i(hint_in),
    .re_i(hint_next), .raddr_i(hint_ptr_q[MetaAddrW-1:0]), .rdata_o(hint)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      hint_ptr_q <= '0;
      hint_valid_q <= 1'b0;
      hint_qp_q <= 1'b0;
    end else begin
      if (hint_next) hint_ptr_q <= hint_ptr_q + 1'b1;
      hint_valid_q <= hint_next;
      hint_qp_q <= hint_next && !(meta_load && hint_ahead == '0);
    end
  end
  assign pf_valid_o = hint_valid_q && hint.key;
  assign pf_idx_o = hint.idx;
  assign pf_qp_valid_o = hint_qp_q && hint.qp;
  assign pf_qpn_o = hint.qpn;
  assign meta_valid_o = meta_valid_q;
  assign meta_o = meta_q;

  assign units_o = 16'(32'(buf_used) * Bytes / 64);
  always_comb frames_o = 32'(buf_frames) > 32'(meta_used_q) ? 16'(buf_frames) : 16'(meta_used_q);

  // ---- drain, idle ------------------------------------------------------------------------------
  // Frames complete at the rise of drain_i have their verdict SettleCycles later; then their
  // metadata must leave, and the packet buffer knows of its part.
  localparam int unsigned SettleCycles = 15;
  localparam int unsigned SeqW = MetaAddrW + 3;   // a sign, and room
  typedef logic [SeqW-1:0] seq_t;
  seq_t push_seq_q, leave_seq_q, snap_seq_q;
  // verilator lint_off UNUSEDSIGNAL
  seq_t behind;                // only the sign counts
  // verilator lint_on UNUSEDSIGNAL
  logic [3:0] settle_q;
  logic snap_q, done_q;
  assign behind = leave_seq_q - snap_seq_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      push_seq_q <= '0;
      leave_seq_q <= '0;
    end else begin
      if (v_accept) push_seq_q <= push_seq_q + 1'b1;
      if (meta_leave) leave_seq_q <= leave_seq_q + 1'b1;
    end
    if (!rst_ni || !drain_i) begin
      settle_q <= '0;
      snap_q <= 1'b0;
      done_q <= 1'b0;
    end else begin
      if (settle_q != 4'(SettleCycles)) settle_q <= settle_q + 4'd1;
      else snap_q <= 1'b1;
      if (snap_q && !behind[SeqW-1]) done_q <= 1'b1;
    end
    if (!snap_q) snap_seq_q <= push_seq_q;
  end
  assign drain_done_o = done_q && buf_drained;
  assign idle_o = !pre_busy && !e_valid && !parse_busy && !verdict_valid_q && meta_used_q == '0 &&
                  buf_idle;

endmodule
