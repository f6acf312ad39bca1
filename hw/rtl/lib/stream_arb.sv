// SPDX-License-Identifier: Apache-2.0
//
// Two streams into one: in turn when both have a word.
//
// One word per cycle, latency 0. Back-pressure: a word stays with its source until it is taken; one that was offered
// stays offered.

module stream_arb #(
  parameter int unsigned Width = 8
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [1:0]            in_valid_i,
  output logic [1:0]            in_ready_o,
  input  logic [1:0][Width-1:0] in_data_i,
  output logic                  out_valid_o,
  input  logic                  out_ready_i,
  output logic [Width-1:0]      out_data_o
);

  logic sel, sel_q, held_q;

  assign sel = held_q ? sel_q : sel_q ? in_valid_i[1] && !in_valid_i[0] : in_valid_i[1];
  assign out_valid_o = |in_valid_i;
  assign out_data_o = in_data_i[sel];
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
