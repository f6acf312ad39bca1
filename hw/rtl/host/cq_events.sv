// SPDX-License-Identifier: Apache-2.0
//
// CQEs on their way to memory, and the events that must not overtake them. Part of cqe_writer.
//
// A queue of both, in order. A CQE passes when its write was acknowledged (done_i, in order), then the events that came with it
// or behind it are offered, each until it is taken. Nobody else waits for an acknowledge.
//
// Throughput: one per cycle in and out. Latency: 1 cycle. Back-pressure: in_ready_o, with Depth on their way; events
// wait for their takers.

module cq_events
  import rnic_pkg::*;
#(
  parameter int unsigned Depth = 64
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       in_valid_i,
  output logic       in_ready_o,
  input  cq_flight_t in_i,
  input  logic       done_i,       // the oldest CQE was acknowledged
  output logic       comp_valid_o,
  input  logic       comp_ready_i,
  output comp_ev_t   comp_o,
  output logic       cqerr_valid_o,
  input  logic       cqerr_ready_i,
  output async_ev_t  cqerr_o,
  output logic       last_valid_o,
  input  logic       last_ready_i,
  output qpn_t       last_qpn_o,
  output logic       last_drained_o,
  input  logic       drain_i,
  output logic       drain_done_o,
  output logic       idle_o
);

  localparam int unsigned LevelW = $clog2(Depth) + 1;

  cq_flight_t head;
  logic head_valid, leave, due, comp_sent_q, cqerr_sent_q;
  logic [LevelW-1:0] arrived_q;

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(cq_flight_t)), .Depth(Depth)) u_flights (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o, .in_data_i(in_i),
    .out_valid_o(head_valid), .out_ready_i(leave), .out_data_o(head), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  assign due = head_valid && (!head.cqe || arrived_q != 0);
  assign comp_valid_o = due && head.comp && !comp_sent_q;
  assign comp_o = '{eqn: head.eqn, cqn: head.cqn};
  assign cqerr_valid_o = due && (head.overrun || head.fatal) && !cqerr_sent_q;
  assign cqerr_o = '{
    ev_type: head.fatal ? rnic_regs_pkg::EqeTypeCqFatal : rnic_regs_pkg::EqeTypeCqOverrun,
    object: 32'(head.cqn), detail: '0
  };
  assign last_valid_o = due && head.last;
  assign last_qpn_o = head.qpn;
  assign last_drained_o = head.drained;
  assign leave = due && (!comp_valid_o || comp_ready_i) && (!cqerr_valid_o || cqerr_ready_i) && (!last_valid_o || last_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      arrived_q <= '0;
      comp_sent_q <= 1'b0;
      cqerr_sent_q <= 1'b0;
    end else begin
      arrived_q <= arrived_q + LevelW'(done_i) - LevelW'(leave && head.cqe);
      comp_sent_q <= !leave && (comp_sent_q || (comp_valid_o && comp_ready_i));
      cqerr_sent_q <= !leave && (cqerr_sent_q || (cqerr_valid_o && cqerr_ready_i));
    end
  end

  logic none;
  drain_count u_drain (
    .clk_i, .rst_ni, .begin_i(in_valid_i && in_ready_o), .ended_i({1'b0, leave}), .hold_i(1'b0),
    .drain_i, .done_o(drain_done_o), .empty_o(none)
  );
  assign idle_o = none && !in_valid_i;

endmodule
