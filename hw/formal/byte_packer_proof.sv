// SPDX-License-Identifier: Apache-2.0
//
// byte_packer: any byte that goes in, and the last of any packet, comes out once, in its lane of its beat, unchanged; last beats
// are last beats; lanes behind the end are zero; the output keeps the stream rules.

module byte_packer_proof #(
  parameter int unsigned DataW = 32,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic [DataW-1:0] in_data_i,
  input logic [LaneW-1:0] in_off_i,
  input logic [LaneW:0]   in_cnt_i,
  input logic             in_last_i,
  input logic [LaneW-1:0] in_lane_i,
  input logic             in_user_i,
  input logic             out_ready_i,
  input logic             mark_i,       // follow a byte of this piece
  input logic [LaneW-1:0] mark_at_i     // which: counted from the first
);

  logic in_ready, out_valid, out_last, out_user;
  logic [DataW-1:0] out_data;
  logic [LaneW:0] out_cnt;
  byte_packer #(.DataW(DataW)) dut (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o(in_ready), .in_data_i, .in_off_i, .in_cnt_i, .in_last_i, .in_lane_i,
    .in_user_i, .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .out_cnt_o(out_cnt), .out_last_o(out_last),
    .out_user_o(out_user));

  stream_check #(.Width(DataW + LaneW + 2)) u_out (
    .clk_i, .rst_ni, .valid_i(out_valid), .ready_i(out_ready_i), .data_i({out_data, out_cnt, out_last}));

  logic first_q = 1'b1, open_q;
  logic [7:0] held_q, mark_ahead_q;      // lanes that went in and are not out, those before the marked byte
  logic marked_q, mark_last_q, mark_user_q;
  logic [7:0] mark_data_q;
  logic push, pop;
  logic [7:0] lanes_in, lanes_out, mark_pos;
  assign push = in_valid_i && in_ready;
  assign pop = out_valid && out_ready_i;
  assign lanes_in = push ? 8'(in_cnt_i) + (open_q ? 8'd0 : 8'(in_lane_i)) : 8'd0;
  assign lanes_out = pop ? 8'(out_cnt) : 8'd0;
  assign mark_pos = held_q + (open_q ? 8'd0 : 8'(in_lane_i)) + 8'(mark_at_i);

  logic [DataW-1:0] behind;              // lanes from out_cnt on
  assign behind = out_data >> {out_cnt, 3'b000};

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (in_valid_i) begin
      piece_fits: assume (in_cnt_i != '0 && 32'(in_cnt_i) + 32'(in_off_i) <= NumB);
    end
    if (!rst_ni) begin
      open_q <= 1'b0;
      held_q <= '0;
      marked_q <= 1'b0;
    end else begin
      if (push) open_q <= !in_last_i;
      held_q <= held_q + lanes_in - lanes_out;
      if (push && mark_i && !marked_q && 32'(mark_at_i) < 32'(in_cnt_i)) begin
        marked_q <= 1'b1;
        mark_ahead_q <= mark_pos - lanes_out;
        mark_data_q <= in_data_i[8*(32'(in_off_i) + 32'(mark_at_i))+:8];
        mark_last_q <= in_last_i && 32'(mark_at_i) + 1 == 32'(in_cnt_i);
        mark_user_q <= in_user_i;
      end else if (marked_q && pop) begin
        if (mark_ahead_q < 8'(out_cnt)) marked_q <= 1'b0;
        else mark_ahead_q <= mark_ahead_q - 8'(out_cnt);
      end
      if (out_valid) begin
        beat_full: assert (out_last ? out_cnt != '0 && 32'(out_cnt) <= NumB : 32'(out_cnt) == NumB);
        zero_behind: assert (!out_last || 32'(out_cnt) == NumB || behind == '0);
        if (marked_q && mark_ahead_q < 8'(out_cnt)) begin
          mark_unchanged: assert (out_data[8*mark_ahead_q[LaneW-1:0]+:8] == mark_data_q);
          mark_last: assert ((out_last && mark_ahead_q + 8'd1 == 8'(out_cnt)) == mark_last_q);
          mark_user: assert (!mark_last_q || out_user == mark_user_q);
        end
      end
      bounded: assert (32'(held_q) <= 4 * NumB);
      never_less: assert (32'(lanes_out) <= 32'(held_q));
      overflow_beat: cover (pop && out_last && marked_q && mark_last_q && mark_ahead_q == 8'd0 && held_q > 8'(NumB));
      gap_lane: cover (pop && !out_last && marked_q && mark_ahead_q == 8'd2);
    end
  end

  // Where the held lanes are: lemmas, proved with the rest.
  logic [7:0] in_o, in_flush, at;        // lanes in the output beat and in the rest of a packet; the marked one behind these
  logic [DataW-1:0] at_data;
  assign in_o = out_valid ? 8'(out_cnt) : 8'd0;
  assign in_flush = dut.flush_q ? 8'(dut.flush_cnt_q) : 8'd0;
  assign at = mark_ahead_q - in_o - in_flush;
  assign at_data = !dut.a_valid_q || at < 8'(dut.a_pos_q) ? dut.acc_q : dut.a_data_q;

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      all_lanes: assert (held_q == in_o + in_flush +
                         (dut.a_valid_q ? 8'(dut.a_end_q) : dut.first_q ? 8'd0 : 8'(dut.fill_q)));
      same_open: assert (open_q == !dut.first_q);
      flush_some: assert (!dut.flush_q || dut.flush_cnt_q != '0);
      if (dut.a_valid_q) begin
        a_some: assert (dut.a_end_q > (LaneW + 1)'(dut.a_pos_q));
        a_first: assert (dut.a_last_q == dut.first_q);
        a_fill: assert (dut.fill_q == dut.a_end_q[LaneW-1:0]);
      end
      if (marked_q) begin
        mark_held: assert (mark_ahead_q < held_q);
        if (mark_ahead_q >= in_o && mark_ahead_q < in_o + in_flush) begin
          in_flush_data: assert (dut.acc_q[8*(mark_ahead_q-in_o)+:8] == mark_data_q);
          in_flush_last: assert ((mark_ahead_q + 8'd1 == in_o + in_flush) == mark_last_q);
          in_flush_user: assert (!mark_last_q || dut.flush_user_q == mark_user_q);
        end else if (mark_ahead_q >= in_o) begin
          in_a_data: assert (at_data[8*at[LaneW-1:0]+:8] == mark_data_q);
          in_a_last: assert ((dut.a_valid_q && dut.a_last_q && at + 8'd1 == 8'(dut.a_end_q)) == mark_last_q);
          in_a_user: assert (!mark_last_q || dut.a_user_q == mark_user_q);
        end
      end
    end
  end

endmodule
