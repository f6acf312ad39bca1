// SPDX-License-Identifier: Apache-2.0
//
// Acknowledges waiting to be sent: at most one per QP, the newest.
//
// Input: one per cycle, always taken. Output: one per cycle, QPs in the order in which they began
// to wait; latency 3 cycles. Back-pressure: the output may stall for ever, newer acknowledges then
// replace older ones of the same QP (an ACK covers all earlier PSNs, IBTA 9.7.5.1.2).
// One exception: an ACK of a PSN before that of a waiting NAK says nothing that the NAK does not
// say, so the NAK stays (a duplicate request behind a gap must not wipe out the gap's only NAK).

module ack_queue
  import rnic_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic in_valid_i,
  input  ack_t in_i,
  output logic out_valid_o,
  input  logic out_ready_i,
  output ack_t out_o,
  output logic idle_o,
  input  logic drain_i,
  output logic drain_done_o
);

  localparam int unsigned CntW = QpIdxW + 2;

  // What waits, without the QP, which is the address.
  typedef struct packed {
    psn_t        psn;
    logic [23:0] msn;
    logic [7:0]  syndrome;
  } body_t;

  // ---- step 1: read what waits for the same QP --------------------------------------------------
  logic             in_q;
  ack_t             ack_q;
  body_t            ack_body, stored_ram, last_body_q, out_body;
  // verilator lint_off UNUSEDSIGNAL
  body_t            stored;          // its MSN does not matter
  // verilator lint_on UNUSEDSIGNAL
  logic             bypass_q;        // the word read was written in the same cycle
  logic             pending, write, keep;
  logic [NumQp-1:0] pending_q;

  assign ack_body = '{psn: ack_q.psn, msn: ack_q.msn, syndrome: ack_q.syndrome};

  rnic_ram #(.Width($bits(body_t)), .Depth(NumQp)) u_compare (
    .clk_i,
    .we_i(write), .waddr_i(ack_q.qp), .wdata_i(ack_body),
    .re_i(in_valid_i), .raddr_i(in_i.qp), .rdata_o(stored_ram)
  );

  // ---- step 2: write it unless the waiting NAK stays --------------------------------------------
  logic    fifo_valid, fetch, full_ready;
  qp_idx_t fifo_qp, out_qp_q;
  logic [QpIdxW:0] level;

  assign stored = bypass_q ? last_body_q : stored_ram;
  assign pending = pending_q[ack_q.qp] && !(fetch && fifo_qp == ack_q.qp);
  assign keep = pending && stored.syndrome[5] && ack_q.syndrome[6:5] == 2'b00 &&
                psn_gt(stored.psn, ack_q.psn);
  assign write = in_q && !keep;

  rnic_fifo #(.Width(QpIdxW), .Depth(NumQp)) u_fifo (
    .clk_i, .rst_ni,
    .in_valid_i(in_q && !pending), .in_ready_o(full_ready), .in_data_i(ack_q.qp),
    .out_valid_o(fifo_valid), .out_ready_i(fetch), .out_data_o(fifo_qp), .level_o(level)
  );

  // ---- output -----------------------------------------------------------------------------------
  rnic_ram #(.Width($bits(body_t)), .Depth(NumQp)) u_out (
    .clk_i,
    .we_i(write), .waddr_i(ack_q.qp), .wdata_i(ack_body),
    .re_i(fetch), .raddr_i(fifo_qp), .rdata_o(out_body)
  );

  logic out_v_q;
  assign fetch = fifo_valid && (!out_v_q || out_ready_i);
  assign out_valid_o = out_v_q;
  assign out_o = '{
    qp: out_qp_q, psn: out_body.psn, msn: out_body.msn, syndrome: out_body.syndrome
  };
  assign idle_o = !in_q && !fifo_valid && !out_v_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q <= 1'b0;
      bypass_q <= 1'b0;
      pending_q <= '0;
      out_v_q <= 1'b0;
    end else begin
      in_q <= in_valid_i;
      if (in_valid_i) begin
        ack_q <= in_i;
        bypass_q <= write && ack_q.qp == in_i.qp;
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
  // One cycle after the rise the word of the rise is in the FIFO: count what is ahead of the end.
  logic drain_q, drain_qq;
  logic [CntW-1:0] left_q;
  assign drain_done_o = drain_i && drain_qq && left_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= 1'b0;
      drain_qq <= 1'b0;
      left_q <= '0;
    end else begin
      drain_q <= drain_i;
      drain_qq <= drain_q && drain_i;
      if (drain_q && !drain_qq) begin
        left_q <= CntW'(level) + CntW'(out_v_q && !out_ready_i);
      end else if (out_v_q && out_ready_i && left_q != '0) begin
        left_q <= left_q - 1'b1;
      end
    end
  end

`ifdef VERILATOR
  // at most one entry per QP: the FIFO is never full when something is pushed
  always_ff @(posedge clk_i) begin
    if (rst_ni && in_q && !pending) assert (full_ready);
  end
`endif

endmodule
