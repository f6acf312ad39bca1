// SPDX-License-Identifier: Apache-2.0
//
// Store and forward of whole frames on their way to the MAC.
//
// Beats of a frame come with a zero ICRC field at the end; the ICRC is computed meanwhile and put
// into its place when the frame leaves (IBTA A17.3.3, least significant byte first; it may lie
// across two beats). in_abort_i with the last beat takes the frame back: nothing of it leaves.
// prio, kind, raw, l3 and ipv6 stand with every beat of the frame. RoCEv2 frames are 2 modulo 4 bytes
// long (14 or 18, then multiples of 4), which the patch relies on.
//
// Throughput: one beat per cycle on both sides, frames without a bubble between them and without a
// gap inside. Latency: from the last beat in to the first beat out, that of icrc_tx plus 4 cycles.
// Back-pressure: in_ready_o falls when the memory is full (FifoBytes, more than three frames of
// 4096 + 102 bytes) or MaxFrames frames are held. A frame whose priority is paused (pfc_pause_i,
// 802.1Qbb) does not begin; those behind it wait too.

module tx_frame_fifo #(
  parameter int unsigned DataW = 64,
  parameter int unsigned FifoBytes = DataW >= 256 ? 32768 : 16384,
  parameter int unsigned MaxFrames = 64,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [DataW-1:0] in_data_i,
  input  logic [LaneW:0]   in_cnt_i,
  input  logic             in_last_i,
  input  logic             in_abort_i,
  input  logic [2:0]       in_prio_i,
  input  logic [2:0]       in_kind_i,
  input  logic             in_raw_i,      // leave its end alone: no ICRC
  input  logic [1:0]       in_l3_i,
  input  logic             in_ipv6_i,
  input  logic [7:0]       pfc_pause_i,
  output logic             held_o,          // a frame waits for the end of the pause of its priority
  output logic [2:0]       held_prio_o,
  output logic             tx_valid_o,
  input  logic             tx_ready_i,
  output logic [DataW-1:0] tx_data_o,
  output logic [NumB-1:0]  tx_keep_o,
  output logic             tx_last_o,
  // a frame has left: sent or taken back, one pulse each, in order
  output logic             leave_o,
  output logic             ev_frame_valid_o,
  output logic [15:0]      ev_frame_len_o,
  output logic [2:0]       ev_frame_kind_o
);

  localparam int unsigned Depth = FifoBytes / NumB;
  localparam int unsigned AddrW = $clog2(Depth);
  localparam int unsigned FrameW = $clog2(MaxFrames);
  localparam int unsigned BeatsW = AddrW;     // no frame fills the memory

  typedef struct packed {
    logic              cancel;                // taken back
    logic [BeatsW-1:0] beats;                 // number of beats - 1
    logic [LaneW:0]    cnt;                   // bytes in the last beat
    logic [2:0]        prio;
    logic [2:0]        kind;
    logic              raw;
  } frame_t;
  typedef struct packed {
    logic [31:0] crc;
    frame_t      f;
  } ready_t;

  // ---- in ---------------------------------------------------------------------------------------
  logic [AddrW:0]    wptr_q, base_q, rptr_q, used;
  logic [BeatsW-1:0] beats_q;
  logic [FrameW:0]   frames_q;
  logic              take, pend_ready, pend_valid, crc_valid, pop;
  logic [31:0]       crc;
  frame_t            pend_in, pend;

  assign used = wptr_q - rptr_q;
  assign in_ready_o = !used[AddrW] && !frames_q[FrameW] && pend_ready;
  assign take = in_valid_i && in_ready_o;
  assign pend_in = '{cancel: in_abort_i, beats: beats_q, cnt: in_cnt_i, prio: in_prio_i,
                     kind: in_kind_i, raw: in_raw_i};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      base_q <= '0;
      beats_q <= '0;
      frames_q <= '0;
    end else begin
      if (take && in_last_i && in_abort_i) begin
        wptr_q <= base_q;
      end else if (take) begin
        wptr_q <= wptr_q + 1'b1;
        if (in_last_i) base_q <= wptr_q + 1'b1;
      end
      if (take) beats_q <= in_last_i ? '0 : beats_q + 1'b1;
      frames_q <= frames_q + (FrameW + 1)'(take && in_last_i) - (FrameW + 1)'(pop);
    end
  end

  icrc_tx #(.DataW(DataW)) u_icrc (
    .clk_i, .rst_ni,
    .valid_i(take), .last_i(in_last_i), .data_i(in_data_i), .cnt_i(in_cnt_i),
    .l3_i(in_l3_i), .ipv6_i(in_ipv6_i), .crc_valid_o(crc_valid), .crc_o(crc)
  );

  // Frames whose ICRC is on its way, then frames ready to leave. The second never refuses:
  // MaxFrames bounds both.
  logic   ready_valid;
  ready_t head;
  // verilator lint_off PINCONNECTEMPTY
  // levels and the ready of a FIFO that cannot be full
  rnic_fifo #(.Width($bits(frame_t)), .Depth(16)) u_pend (
    .clk_i, .rst_ni,
    .in_valid_i(take && in_last_i), .in_ready_o(pend_ready), .in_data_i(pend_in),
    .out_valid_o(pend_valid), .out_ready_i(crc_valid), .out_data_o(pend), .level_o()
  );
  rnic_fifo #(.Width($bits(ready_t)), .Depth(MaxFrames)) u_ready (
    .clk_i, .rst_ni,
    .in_valid_i(crc_valid && pend_valid), .in_ready_o(), .in_data_i({crc, pend}),
    .out_valid_o(ready_valid), .out_ready_i(pop), .out_data_o(head), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- out: memory word (stage 1), then patched beat (stage 2) ----------------------------------
  logic [BeatsW-1:0] beat_q;
  logic              issue, issue_last, drop, advance;
  logic              s1_valid_q, s1_last_q, s1_before_q, s1_raw_q;
  logic [LaneW:0]    s1_cnt_q;
  logic [31:0]       s1_crc_q;
  logic [2:0]        s1_kind_q;
  logic [15:0]       s1_len_q;
  logic [DataW-1:0]  word;
  logic              o_valid_q, o_last_q;
  logic [DataW-1:0]  o_data_q;
  logic [NumB-1:0]   o_keep_q;
  logic [2:0]        o_kind_q;
  logic [15:0]       o_len_q;

  assign advance = !o_valid_q || tx_ready_i;
  assign held_o = ready_valid && !head.f.cancel && beat_q == '0 && pfc_pause_i[head.f.prio];
  assign held_prio_o = head.f.prio;
  assign issue = ready_valid && !head.f.cancel && !held_o &&
                 (!s1_valid_q || advance);
  assign issue_last = beat_q == head.f.beats;
  // behind all frames before it, so that leave_o keeps the order
  assign drop = ready_valid && head.f.cancel && !s1_valid_q && !o_valid_q;
  assign pop = (issue && issue_last) || drop;

  rnic_ram #(.Width(DataW), .Depth(Depth)) u_ram (
    .clk_i,
    .we_i(take), .waddr_i(wptr_q[AddrW-1:0]), .wdata_i(in_data_i),
    .re_i(issue), .raddr_i(rptr_q[AddrW-1:0]), .rdata_o(word)
  );

  // The ICRC lies at lane cnt-4 of the last beat; cnt is 2 modulo 4 and word_idx is cnt/4.
  // cnt == 2: its first half ends the beat before.
  function automatic logic [DataW-1:0] patch(input logic [31:0] c, input logic last,
                                             input logic before_last,
                                             input logic [LaneW:2] word_idx);
    logic [DataW-1:0] p;
    p = DataW'(c) << 16;
    if (last && word_idx == '0) return DataW'(c[31:16]);
    if (last) return p << {word_idx - (LaneW - 1)'(1), 5'd0};
    if (before_last && word_idx == '0) return {c[15:0], {(DataW - 16) {1'b0}}};
    return '0;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rptr_q <= '0;
      beat_q <= '0;
      s1_valid_q <= 1'b0;
      o_valid_q <= 1'b0;
    end else begin
      if (issue) rptr_q <= rptr_q + 1'b1;
      if (issue) beat_q <= issue_last ? '0 : beat_q + 1'b1;
      if (issue) s1_valid_q <= 1'b1;
      else if (advance) s1_valid_q <= 1'b0;
      if (advance) o_valid_q <= s1_valid_q;
    end
    if (issue) begin
      s1_last_q <= issue_last;
      s1_before_q <= beat_q + 1'b1 == head.f.beats;
      s1_cnt_q <= head.f.cnt;
      s1_crc_q <= head.crc;
      s1_kind_q <= head.f.kind;
      s1_raw_q <= head.f.raw;
      s1_len_q <= (16'(head.f.beats) << LaneW) + 16'(head.f.cnt);
    end
    if (advance && s1_valid_q) begin
      o_last_q <= s1_last_q;
      o_kind_q <= s1_kind_q;
      o_len_q <= s1_len_q;
      if ((s1_last_q || s1_before_q) && !s1_raw_q) begin
        o_data_q <= word | patch(s1_crc_q, s1_last_q, s1_before_q, s1_cnt_q[LaneW:2]);
      end else begin
        o_data_q <= word;
      end
      o_keep_q <= s1_last_q ? ~({NumB{1'b1}} << s1_cnt_q) : '1;
    end
  end

  assign tx_valid_o = o_valid_q;
  assign tx_data_o = o_data_q;
  assign tx_keep_o = o_keep_q;
  assign tx_last_o = o_last_q;
  assign ev_frame_valid_o = o_valid_q && tx_ready_i && o_last_q;
  assign ev_frame_len_o = o_len_q;
  assign ev_frame_kind_o = o_kind_q;
  assign leave_o = ev_frame_valid_o || drop;

endmodule
