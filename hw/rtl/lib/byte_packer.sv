// SPDX-License-Identifier: Apache-2.0
//
// Packs pieces of beats into one dense byte stream per packet.
//
// A piece is the bytes in_off_i .. in_off_i+in_cnt_i-1 of in_data_i (cnt 1 to NB-off, NB =
// DataW/8). The pieces of a packet follow each other without holes; the first byte of the packet
// lies in lane in_lane_i (looked at with the first piece only; lanes below it are undefined in the
// first output beat). in_last_i ends the packet: what is left goes out as a last, possibly partial
// beat, and the next piece begins a new packet. out_cnt_o counts the lanes used from lane 0 on (NB
// in all beats but the last); lanes behind the end of the packet are zero. in_user_i of the last
// piece comes out on out_user_o with the last beat (undefined in the others).
//
// Throughput: one piece per cycle. A packet whose last piece overflows its beat needs one more
// cycle, unless the first piece of the next packet leaves its beat unfilled. Latency: 2 cycles.
// Back-pressure: in_ready_o follows out_ready_i within the cycle when both registers are full.

module byte_packer #(
  parameter int unsigned DataW = 64,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [DataW-1:0] in_data_i,
  input  logic [LaneW-1:0] in_off_i,
  input  logic [LaneW:0]   in_cnt_i,
  input  logic             in_last_i,
  input  logic [LaneW-1:0] in_lane_i,
  input  logic             in_user_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [DataW-1:0] out_data_o,
  output logic [LaneW:0]   out_cnt_o,
  output logic             out_last_o,
  output logic             out_user_o
);

  // lanes 0 .. n-1 set (n < NB)
  function automatic logic [DataW-1:0] low_lanes(input logic [LaneW-1:0] n);
    return ~({DataW{1'b1}} << {n, 3'b000});
  endfunction

  // byte lane i of the result is byte lane i-n of d, modulo NB
  function automatic logic [DataW-1:0] rotate(input logic [DataW-1:0] d, input logic [LaneW-1:0] n);
    logic [LaneW-1:0] down;
    down = -n;
    return DataW'({d, d} >> {down, 3'b000});
  endfunction

  // ---- stage A: the piece turned to its lane ----------------------------------------------------
  logic             first_q;           // the next piece opens a packet
  logic [LaneW-1:0] fill_q;            // lanes already used in the open beat
  logic [LaneW-1:0] pos;
  logic [LaneW:0]   end_pos;
  logic             a_valid_q, a_last_q, a_user_q, a_take;
  logic [LaneW-1:0] a_pos_q;
  logic [LaneW:0]   a_end_q;           // pos + cnt modulo 2 NB; values from NB on: the beat is full
  logic [DataW-1:0] a_data_q;

  assign pos = first_q ? in_lane_i : fill_q;
  assign end_pos = {1'b0, pos} + in_cnt_i;
  assign in_ready_o = !a_valid_q || a_take;

  // pos <= NB-1 and cnt <= NB, so end_pos <= 2 NB - 1 fits.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      a_valid_q <= 1'b0;
    end else if (in_ready_o) begin
      a_valid_q <= in_valid_i;
      if (in_valid_i) first_q <= in_last_i;
    end
    if (in_valid_i && in_ready_o) begin
      fill_q <= end_pos[LaneW-1:0];
      a_last_q <= in_last_i;
      a_user_q <= in_user_i;
      a_pos_q <= pos;
      a_end_q <= end_pos;
      a_data_q <= rotate(in_data_i, pos - in_off_i);
    end
  end

  // ---- stage B: the open beat -------------------------------------------------------------------
  logic [DataW-1:0] acc_q;             // lanes below the fill level are valid
  logic             flush_q;           // acc holds the last bytes of a packet
  logic [LaneW-1:0] flush_cnt_q;
  logic             flush_user_q;
  logic             b_ready, a_full, a_over, a_emit;
  logic             o_valid_q, o_last_q, o_user_q;
  logic [LaneW:0]   o_cnt_q;
  logic [DataW-1:0] o_data_q;

  assign b_ready = !o_valid_q || out_ready_i;
  assign a_full = a_end_q[LaneW];
  assign a_over = a_full && a_end_q[LaneW-1:0] != '0;
  assign a_emit = a_full || a_last_q;
  // While the rest of a packet goes out, only a piece that yields no beat can be taken.
  assign a_take = b_ready && a_valid_q && !(flush_q && a_emit);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flush_q <= 1'b0;
      o_valid_q <= 1'b0;
    end else if (b_ready) begin
      flush_q <= a_take && a_last_q && a_over;
      o_valid_q <= flush_q || (a_take && a_emit);
    end
    if (b_ready && flush_q) begin
      o_last_q <= 1'b1;
      o_user_q <= flush_user_q;
      o_cnt_q <= {1'b0, flush_cnt_q};
      o_data_q <= acc_q & low_lanes(flush_cnt_q);
    end else if (a_take && a_emit) begin
      o_last_q <= a_last_q && !a_over;
      o_user_q <= a_user_q;
      if (a_full) begin
        o_cnt_q <= (LaneW + 1)'(NumB);
        o_data_q <= (acc_q & low_lanes(a_pos_q)) | (a_data_q & ~low_lanes(a_pos_q));
      end else begin
        o_cnt_q <= a_end_q;
        o_data_q <= ((acc_q & low_lanes(a_pos_q)) | (a_data_q & ~low_lanes(a_pos_q))) &
                    low_lanes(a_end_q[LaneW-1:0]);
      end
    end
    if (a_take) begin
      flush_cnt_q <= a_end_q[LaneW-1:0];
      flush_user_q <= a_user_q;
      // When a full beat leaves, what went round to the low lanes stays.
      if (a_full) acc_q <= a_data_q;
      else acc_q <= (acc_q & low_lanes(a_pos_q)) | (a_data_q & ~low_lanes(a_pos_q));
    end
  end

  assign out_valid_o = o_valid_q;
  assign out_data_o = o_data_q;
  assign out_cnt_o = o_cnt_q;
  assign out_last_o = o_last_q;
  assign out_user_o = o_user_q;

endmodule
