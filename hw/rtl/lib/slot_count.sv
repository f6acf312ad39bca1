// SPDX-License-Identifier: Apache-2.0
//
// How much is under way for each QP slot: something begins, something ends, is there any? (docs/qp-cache.md, Pins)
//
// Counts what began and what ended, both modulo 2^Width, in a small memory each: at most 2^Width - 1 at a time per slot. busy_o is of this
// cycle: what begins or ends in it shows in the next. No sweep after reset: a slot that was never written counts as zero.

module slot_count
  import rnic_pkg::*;
#(
  parameter int unsigned Width = 4
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  logic    begin_i,
  input  qp_idx_t begin_qp_i,
  input  logic    end_i,
  input  qp_idx_t end_qp_i,
  input  qp_idx_t probe_qp_i,
  output logic    busy_o
);

  logic [Width-1:0] begun_mem[NumQp];
  logic [Width-1:0] ended_mem[NumQp];
  logic [NumQp-1:0] begun_q, ended_q;   // written since reset
  logic [Width-1:0] begun, ended;
  assign begun = begun_q[probe_qp_i] ? begun_mem[probe_qp_i] : '0;
  assign ended = ended_q[probe_qp_i] ? ended_mem[probe_qp_i] : '0;
  assign busy_o = begun != ended;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= '0;
      ended_q <= '0;
    end else begin
      if (begin_i) begun_q[begin_qp_i] <= 1'b1;
      if (end_i) ended_q[end_qp_i] <= 1'b1;
    end
    if (begin_i) begun_mem[begin_qp_i] <= begun_q[begin_qp_i] ? begun_mem[begin_qp_i] + 1'b1 : Width'(1);
    if (end_i) ended_mem[end_qp_i] <= ended_q[end_qp_i] ? ended_mem[end_qp_i] + 1'b1 : Width'(1);
  end

endmodule
