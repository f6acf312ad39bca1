// SPDX-License-Identifier: Apache-2.0
//
// Acknowledges waiting to be sent: at most one per QP, the newest.
//
// Input: one per cycle, always taken. Output: one per cycle, QPs in the order in which they began
// to wait; latency 3 cycles. Back-pressure: the output may stall for ever, newer acknowledges then
// replace older ones of the same QP (an ACK covers all earlier PSNs, IBTA 9.7.5.1.2).
// Two exceptions: an ACK of a PSN before that of a waiting NAK says nothing that the NAK does not
// say, so the NAK stays (a duplicate request behind a gap must not wipe out the gap's only NAK); and a NAK that
// ends the connection stays whatever comes behind it (that of a READ is found when later requests are executed already).
//
// An acknowledge must not overtake READ responses and atomic acknowledges before it: that would say that they
// are lost (IBTA 9.7.5.1.2, 9.7.7.1.1). While hold_i is 1 for the QP at the head (hold_qp_o), that QP goes to the end of
// the queue instead. What waits meanwhile is not needed any more when a later response leaves.

module ack_queue
  import rnic_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic in_valid_i,
  input  ack_t in_i,
  // second source (read responder): taken when the first is silent
  input  logic nak_valid_i,
  output logic nak_ready_o,
  input  ack_t nak_i,
  // responses of this QP are to leave first
  output qp_idx_t hold_qp_o,
  input  logic hold_i,
  output logic out_valid_o,
  input  logic out_ready_i,
  output ack_t out_o,
  // something of this slot waits, or passes (docs/qp-cache.md)
  input  qp_idx_t probe_qp_i,
  output logic busy_o,
  output logic idle_o,
  input  logic drain_i,
  output logic drain_done_o
);

  // What waits, without the QP, which is the address.
  typedef struct packed {
    psn_t        psn;
    logic [23:0] msn;
    logic [7:0]  syndrome;
  } body_t;

  // ---- step 1: read what waits for the same QP --------------------------------------------------
  logic             in_q, take;
  ack_t             ack_q, take_ack;
  body_t            ack_body, stored_ram, last_body_q, out_body;
  // verilator lint_off UNUSEDSIGNAL
  body_t            stored;          // its MSN does not matter
  // verilator lint_on UNUSEDSIGNAL
  logic             bypass_q;        // the word read was written in the same cycle
  logic             pending, write, keep;
  logic [NumQp-1:0] pending_q;

  assign take = in_valid_i || nak_valid_i;
  assign take_ack = in_valid_i ? in_i : nak_i;
  assign nak_ready_o = !in_valid_i;
  assign ack_body = '{psn: ack_q.psn, msn: ack_q.msn, syndrome: ack_q.syndrome};

  rnic_ram #(.Width($bits(body_t)), .Depth(NumQp)) u_compare (
    .clk_i,
    .we_i(write), .waddr_i(ack_q.qp), .wdata_i(ack_body),
    .re_i(take), .raddr_i(take_ack.qp), .rdata_o(stored_ram)
  );

  // ---- step 2: write it unless the waiting NAK stays --------------------------------------------
  logic    fifo_valid, fetch, full_ready, push, turn;   // turn: the QP at the head goes to the end
  qp_idx_t fifo_qp, out_qp_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [QpIdxW+1:0] level;      // its top bits: a turn pushes before it pops
  // verilator lint_on UNUSEDSIGNAL

  assign stored = bypass_q ? last_body_q : stored_ram;
  assign pending = pending_q[ack_q.qp] && !(fetch && fifo_qp == ack_q.qp);
  assign keep = pending && stored.syndrome[5] &&
                ((ack_q.syndrome[6:5] == 2'b00 && psn_gt(stored.psn, ack_q.psn)) ||
                 stored.syndrome inside {SynNakInvReq, SynNakAccess, SynNakOp});
  assign write = in_q && !keep;

  assign push = in_q && !pending;
  rnic_fifo #(.Width(QpIdxW), .Depth(2 * NumQp)) u_fifo (
    .clk_i, .rst_ni,
    .in_valid_i(push || turn), .in_ready_o(full_ready), .in_data_i(push ? ack_q.qp : fifo_qp),
    .out_valid_o(fifo_valid), .out_ready_i(fetch || turn), .out_data_o(fifo_qp), .level_o(level)
  );

  // ---- output -----------------------------------------------------------------------------------
  rnic_ram #(.Width($bits(body_t)), .Depth(NumQp)) u_out (
    .clk_i,
    .we_i(write), .waddr_i(ack_q.qp), .wdata_i(ack_body),
    .re_i(fetch), .raddr_i(fifo_qp), .rdata_o(out_body)
  );

  logic out_v_q;
  assign hold_qp_o = fifo_qp;
  assign fetch = fifo_valid && !hold_i && (!out_v_q || out_ready_i);
  assign turn = fifo_valid && hold_i && !push;
  assign out_valid_o = out_v_q;
  assign out_o = '{
    qp: out_qp_q, psn: out_body.psn, msn: out_body.msn, syndrome: out_body.syndrome
  };
  assign idle_o = !in_q && !fifo_valid && !out_v_q;
  assign busy_o = pending_q[probe_qp_i] || (in_q && ack_q.qp == probe_qp_i) || (out_v_q && out_qp_q == probe_qp_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q <= 1'b0;
      bypass_q <= 1'b0;
      pending_q <= '0;
      out_v_q <= 1'b0;
    end else begin
      in_q <= take;
      if (take) begin
        ack_q <= take_ack;
        bypass_q <= write && ack_q.qp == take_ack.qp;
        last_body_q <= ack_body;
      end
      if (out_ready_i) out_v_q <= 1'b0;
      if (fetch) begin
        out_v_q <= 1'b1;
        out_qp_q <= fifo_qp;
        pending_q[fifo_qp] <= 1'b0;
      end
      if (in_q) pending_q[ack_q.qp] <= 1'b1;
    end
  end

  // ---- drain ------------------------------------------------------------------------------------
  // One cycle after the rise the word of the rise is in the FIFO: mark what waits. A mark goes when the
  // word leaves, or when its QP was at the head and held: the responses before it decide when it leaves, and
  // they may be many.
  logic drain_q, drain_qq, mark_out_q;
  logic [NumQp-1:0] mark_q;
  logic [QpIdxW:0] left_q;
  assign drain_done_o = drain_i && drain_qq && left_q == '0 && !mark_out_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= 1'b0;
      drain_qq <= 1'b0;
      mark_q <= '0;
      mark_out_q <= 1'b0;
      left_q <= '0;
    end else begin
      drain_q <= drain_i;
      drain_qq <= drain_q && drain_i;
      if (out_ready_i) mark_out_q <= 1'b0;
      if (drain_q && !drain_qq) begin
        mark_q <= pending_q;
        left_q <= level[QpIdxW:0];
        mark_out_q <= out_v_q && !out_ready_i;
        if (fetch || turn) begin
          mark_q[fifo_qp] <= 1'b0;
          left_q <= level[QpIdxW:0] - 1'b1;
          if (fetch) mark_out_q <= 1'b1;
        end
      end else if ((fetch || turn) && mark_q[fifo_qp]) begin
        mark_q[fifo_qp] <= 1'b0;
        left_q <= left_q - 1'b1;
        if (fetch) mark_out_q <= 1'b1;
      end
    end
  end

`ifdef VERILATOR
  // at most one entry per QP: the FIFO is never full when something is pushed
  always_ff @(posedge clk_i) begin
    if (rst_ni && push) assert (full_ready);
  end
`endif

endmodule
