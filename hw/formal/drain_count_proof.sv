// SPDX-License-Identifier: Apache-2.0
//
// drain_count: done_o is 1 from the cycle in which all that had begun at the snapshot has ended until drain_i falls, however much begins and ends
// meanwhile; empty_o is exact. Assumed: what is on its way fits, and nothing ends that did not begin in an earlier cycle.

module drain_count_proof #(
  parameter int unsigned Most = 8,           // on their way
  localparam int unsigned CountW = $clog2(Most + 1)
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       begin_i,
  input logic [1:0] ended_i,
  input logic       hold_i,
  input logic       drain_i
);

  logic done, empty;
  drain_count dut (.clk_i, .rst_ni, .begin_i, .ended_i, .hold_i, .drain_i, .done_o(done), .empty_o(empty));

  logic first_q = 1'b1;
  logic [CountW-1:0] count_q, left_q, count;  // on their way; of the snapshot
  logic snap_q;
  logic [4:0] late_q;                         // what ended since the drain is done
  assign count = count_q - CountW'(ended_i);

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    ends_what_began: assume (CountW'(ended_i) <= count_q);
    some_at_most: assume (!begin_i || count_q < CountW'(Most));
    if (!rst_ni) begin
      count_q <= '0;
      snap_q <= 1'b0;
      late_q <= '0;
    end else begin
      count_q <= count + CountW'(begin_i);
      if (!drain_i) begin
        snap_q <= 1'b0;
      end else if (!snap_q && !hold_i) begin
        snap_q <= 1'b1;
        left_q <= count;
      end else begin
        left_q <= left_q < CountW'(ended_i) ? '0 : left_q - CountW'(ended_i);
      end
      if (!done) late_q <= '0;
      else if (late_q < 5'd28) late_q <= late_q + 5'(ended_i);
      done_exact: assert (done == (snap_q && left_q == '0));
      empty_exact: assert (empty == (count_q == '0));
      full: cover (count_q == CountW'(Most) && snap_q && left_q == CountW'(Most) && drain_i);
      goes_on: cover (late_q > 5'd20);
    end
  end

endmodule
