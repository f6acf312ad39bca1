// SPDX-License-Identifier: Apache-2.0
//
// Completions of two sources, requester and responder, to the one CQE writer: in turn when both have one.
//
// One completion per cycle, latency 0. Back-pressure: a source's completion stays with it until the writer takes it;
// one that was offered stays offered.

module cqe_arb
  import rnic_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic    [1:0] in_valid_i,
  output logic    [1:0] in_ready_o,
  input  cqe_ev_t [1:0] in_i,
  output logic          out_valid_o,
  input  logic          out_ready_i,
  output cqe_ev_t       out_o
);

  logic sel, sel_q, held_q;

  assign sel = held_q ? sel_q : sel_q ? in_valid_i[1] && !in_valid_i[0] : in_valid_i[1];
  assign out_valid_o = |in_valid_i;
  assign out_o = in_i[sel];
  assign in_ready_o = {sel && out_ready_i, !sel && out_ready_i};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sel_q <= 1'b0;
      held_q <= 1'b0;
    end else begin
      held_q <= out_valid_o && !out_ready_i;
      if (out_valid_o) sel_q <= sel;
    end
  end

endmodule
