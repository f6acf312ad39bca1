// SPDX-License-Identifier: Apache-2.0
//
// tx_frame_fifo: the MAC sees whole frames without gaps that keep the stream rules; a frame leaves only when it is all
// there; any beat of a frame that is not taken back leaves once, in its turn, and (of a frame without ICRC) unchanged.

module tx_frame_fifo_proof #(
  parameter int unsigned DataW = 64,
  parameter int unsigned Depth = 8,
  parameter int unsigned MaxFrames = 4,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB),
  localparam int unsigned CountW = $clog2(Depth) + 2
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic [DataW-1:0] in_data_i,
  input logic [LaneW:0]   in_cnt_i,
  input logic             in_last_i,
  input logic             in_abort_i,
  input logic [2:0]       in_prio_i,
  input logic [2:0]       in_kind_i,
  input logic             in_raw_i,
  input logic [1:0]       in_l3_i,
  input logic             in_ipv6_i,
  input logic [7:0]       pfc_pause_i,
  input logic             tx_ready_i,
  input logic             mark_i          // follow the beat that is written now
);

  logic in_ready, held, tx_valid, tx_last, leave, ev_valid;
  logic [DataW-1:0] tx_data;
  logic [NumB-1:0] tx_keep;
  logic [15:0] ev_len;
  logic [2:0] ev_kind, held_prio;
  tx_frame_fifo #(.DataW(DataW), .FifoBytes(Depth * NumB), .MaxFrames(MaxFrames)) dut (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o(in_ready), .in_data_i, .in_cnt_i, .in_last_i, .in_abort_i, .in_prio_i,
    .in_kind_i, .in_raw_i, .in_l3_i, .in_ipv6_i, .pfc_pause_i, .held_o(held), .held_prio_o(held_prio), .tx_valid_o(tx_valid),
    .tx_ready_i, .tx_data_o(tx_data), .tx_keep_o(tx_keep), .tx_last_o(tx_last), .leave_o(leave), .ev_frame_valid_o(ev_valid), .ev_frame_len_o(ev_len),
    .ev_frame_kind_o(ev_kind));

  axis_check #(.DataW(DataW), .NoGaps(1'b1), .MaxBytes(Depth * NumB)) u_tx (
    .clk_i, .rst_ni, .valid_i(tx_valid), .ready_i(tx_ready_i), .data_i(tx_data), .keep_i(tx_keep), .last_i(tx_last),
    .user_i(1'b0));

  logic first_q = 1'b1, marked_q, mark_last_q, mark_raw_q, raw_q;
  logic [CountW-1:0] held_q, frame_q, ahead_q, frames_q;   // beats held; of these of the frame that comes in; before the
  logic [DataW-1:0] mark_data_q;                           // marked one; frames held whole
  logic [LaneW:0] mark_cnt_q;
  logic push, pop, back;                                   // back: the frame is taken back
  assign push = in_valid_i && in_ready;
  assign pop = tx_valid && tx_ready_i;
  assign back = push && in_last_i && in_abort_i;

  logic [DataW-1:0] lanes;         // those of TKEEP
  always_comb for (int i = 0; i < int'(NumB); i++) lanes[8*i+:8] = {8{tx_keep[i]}};

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (in_valid_i) begin
      cnt_fits: assume (in_cnt_i != '0 && 32'(in_cnt_i) <= NumB && (in_last_i || 32'(in_cnt_i) == NumB));
      one_kind: assume (frame_q == '0 || in_raw_i == raw_q);
      room_for_icrc: assume (in_raw_i || !in_last_i || (frame_q != '0 && in_cnt_i[1:0] == 2'd2));
      frame_fits: assume (32'(frame_q) < Depth - 1 || in_last_i);
    end
    if (!rst_ni) begin
      marked_q <= 1'b0;
      held_q <= '0;
      frame_q <= '0;
      frames_q <= '0;
    end else begin
      if (push) begin
        frame_q <= in_last_i ? '0 : frame_q + 1'b1;
        raw_q <= in_raw_i;
      end
      held_q <= held_q + CountW'(push && !back) - (back ? frame_q : '0) - CountW'(pop);
      frames_q <= frames_q + CountW'(push && in_last_i && !in_abort_i) - CountW'(pop && tx_last);
      if (push && mark_i && !marked_q && !back) begin
        marked_q <= 1'b1;
        ahead_q <= held_q - CountW'(pop);
        mark_data_q <= in_data_i;
        mark_raw_q <= in_raw_i;
        mark_cnt_q <= in_cnt_i;
        mark_last_q <= in_last_i;
      end else if (marked_q) begin
        if (back && ahead_q >= held_q - frame_q) marked_q <= 1'b0;
        if (pop && ahead_q == '0) marked_q <= 1'b0;
        if (pop) ahead_q <= ahead_q - 1'b1;
      end
      if (tx_valid) begin
        whole_frames: assert (frames_q != '0 && held_q > frame_q);
        if (marked_q && ahead_q == '0) begin
          mark_last: assert (tx_last == mark_last_q);
          mark_bytes: assert (tx_keep == ~({NumB{1'b1}} << mark_cnt_q));
          // the ICRC is written into frames that are not raw
          mark_data: assert (!mark_raw_q || ((tx_data ^ mark_data_q) & lanes) == '0);
        end
      end
      held_by_pause: assert (!held || pfc_pause_i[held_prio]);
      bounded: assert (32'(held_q) <= Depth + 2);
      frame_leaves: cover (pop && tx_last && frames_q == CountW'(2));
      mark_leaves: cover (pop && marked_q && ahead_q == '0 && held_q > CountW'(2));
      after_abort: cover (pop && tx_last && frame_q == CountW'(2));
    end
  end

endmodule
