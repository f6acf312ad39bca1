// SPDX-License-Identifier: Apache-2.0
//
// slot_count, for any one slot (watch_q) beside others that do as they like: busy_o says of any slot that is asked about whether more began than
// ended. Assumed: at most 2^Width - 1 at a time, and nothing ends that did not begin (in the same cycle at the latest).

module slot_count_proof
  import rnic_pkg::*;
#(
  parameter int unsigned Width = 2
) (
  input logic    clk_i,
  input logic    rst_ni,
  input logic    begin_i,
  input qp_idx_t begin_qp_i,
  input logic    end_i,
  input qp_idx_t end_qp_i,
  input qp_idx_t probe_qp_i,
  input qp_idx_t watch_i
);

  logic busy;
  slot_count #(.Width(Width)) dut (.clk_i, .rst_ni, .begin_i, .begin_qp_i, .end_i, .end_qp_i, .probe_qp_i, .busy_o(busy));

  logic first_q = 1'b1;
  qp_idx_t watch_q;                  // chosen at the start
  logic [Width-1:0] count_q;
  logic begins, ends;
  assign begins = begin_i && begin_qp_i == watch_q;
  assign ends = end_i && end_qp_i == watch_q;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end else begin
      chosen_once: assume (watch_i == watch_q);
    end
    some_at_most: assume (!begins || ends || count_q != '1);
    ends_what_began: assume (!ends || begins || count_q != '0);
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      count_q <= count_q + Width'(begins) - Width'(ends);
      if (probe_qp_i == watch_q) begin
        busy_exact: assert (busy == (count_q != '0));
      end
      full: cover (count_q == '1 && begins && ends);
      passes: cover (count_q == '0 && begins && ends);
      again: cover (count_q == '0 && !begins && dut.begun != '0 && probe_qp_i == watch_q);
    end
  end

endmodule
