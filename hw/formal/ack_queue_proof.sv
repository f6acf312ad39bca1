// SPDX-License-Identifier: Apache-2.0
//
// ack_queue, for any one QP (watch_q) beside others that do as they like. With plain ACKs (plain_q): what leaves is newer than
// all that left before, and unchanged; when nothing waits, the newest has left. With NAKs: a NAK that ends the connection, or
// one that only ACKs of earlier PSNs follow, leaves, at most two words of the QP before it.

module ack_queue_proof
  import rnic_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,
  input logic in_valid_i,
  input ack_t in_i,
  input logic nak_valid_i,
  input ack_t nak_i,
  input logic hold_i,
  input logic out_ready_i,
  input logic drain_i,
  input logic mark_i,
  input qp_idx_t watch_i,
  input logic plain_i
);

  logic nak_ready, out_valid, busy, idle, drain_done;
  qp_idx_t hold_qp;
  ack_t out;
  ack_queue dut (
    .clk_i, .rst_ni, .in_valid_i, .in_i, .nak_valid_i, .nak_ready_o(nak_ready), .nak_i, .hold_qp_o(hold_qp), .hold_i,
    .out_valid_o(out_valid), .out_ready_i, .out_o(out),
    .probe_qp_i('0), .busy_o(busy), .idle_o(idle), .drain_i, .drain_done_o(drain_done));

  stream_check #(.Width($bits(ack_t))) u_out (
    .clk_i, .rst_ni, .valid_i(out_valid), .ready_i(out_ready_i), .data_i(out));

  logic first_q = 1'b1;
  // chosen at the start, any value
  qp_idx_t watch_q;
  logic plain_q;

  ack_t ack;
  logic in, leaves, fatal;
  assign ack = in_valid_i ? in_i : nak_i;
  assign in = (in_valid_i || (nak_valid_i && nak_ready)) && ack.qp == watch_q;
  assign leaves = out_valid && out_ready_i && out.qp == watch_q;
  assign fatal = ack.syndrome inside {SynNakInvReq, SynNakAccess, SynNakOp};

  logic [3:0] num_in_q, num_out_q;     // plain: ACKs are numbered in msn
  logic marked_q, shield_q, ended_q;
  logic [1:0] late_q;                  // words that left since
  ack_t mark_q, nak_q;                 // a marked ACK; the NAK that must leave
  logic nak_fatal_q;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    plain_q <= plain_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end else begin
      chosen_once: assume (watch_i == watch_q && plain_i == plain_q);
    end
    if (in && plain_q) begin
      plain_numbered: assume (ack.syndrome[6:5] == 2'b00 && ack.msn == 24'(num_in_q) + 24'd1 && num_in_q != 4'd15);
    end
    if (in && !plain_q && shield_q) begin
      only_earlier_follow: assume (nak_fatal_q || (ack.syndrome[6:5] == 2'b00 && psn_gt(nak_q.psn, ack.psn)));
    end
    if (!rst_ni) begin
      num_in_q <= '0;
      num_out_q <= '0;
      marked_q <= 1'b0;
      shield_q <= 1'b0;
      ended_q <= 1'b0;
      late_q <= '0;
    end else if (plain_q) begin
      if (in) num_in_q <= num_in_q + 1'b1;
      if (in && mark_i && !marked_q) begin
        marked_q <= 1'b1;
        mark_q <= ack;
      end
      if (leaves) begin
        num_out_q <= out.msn[3:0];
        newest: assert (out.msn > 24'(num_out_q) && out.msn <= 24'(num_in_q));
        unchanged: assert (!marked_q || out.msn != mark_q.msn || out == mark_q);
      end
      if (idle) begin
        none_lost: assert (num_out_q == num_in_q);
      end
      replaced: cover (leaves && out.msn == 24'd3 && num_out_q == 4'd1);
    end else begin
      if (in && fatal) ended_q <= 1'b1;
      if (in && !shield_q && !ended_q && ack.syndrome[5] && (fatal || mark_i)) begin
        shield_q <= 1'b1;
        nak_q <= ack;
        nak_fatal_q <= fatal;
        late_q <= '0;
      end else if (leaves && shield_q) begin
        if (out == nak_q) shield_q <= 1'b0;
        late_q <= late_q + 1'b1;
        nak_leaves: assert (out == nak_q || late_q < 2'd2);
      end
      if (idle) begin
        nak_not_lost: assert (!shield_q);
      end
      shielded: cover (leaves && shield_q && !nak_fatal_q && out == nak_q && late_q != '0);
    end
  end

endmodule
