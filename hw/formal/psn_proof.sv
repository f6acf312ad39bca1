// SPDX-License-Identifier: Apache-2.0
//
// PSN arithmetic of rnic_pkg over all values, against numbers wide enough not to wrap. IBTA 9.7.1: of the 2^24 PSNs, the
// 2^23 - 1 after b are newer, the 2^23 before it are older.

module psn_proof
  import rnic_pkg::*;
(
  input logic        clk_i,
  input psn_t        a_i,
  input psn_t        b_i,
  input psn_t        c_i,
  input logic [22:0] step_i,
  input logic [22:0] more_i
);

  // steps from b to a, counted upwards from b: 0 to 2^24 - 1
  logic [25:0] ahead;
  assign ahead = a_i >= b_i ? 26'(a_i) - 26'(b_i) : 26'(a_i) + 26'h1000000 - 26'(b_i);

  logic signed [25:0] diff;
  assign diff = ahead < 26'h800000 ? signed'(ahead) : signed'(ahead) - 26'sh1000000;

  // step_i after b, and more_i after that, as the numbers wrap
  logic [25:0] sum1, sum2;
  psn_t s1, s2;
  assign sum1 = 26'(b_i) + 26'(step_i);
  assign s1 = sum1 >= 26'h1000000 ? psn_t'(sum1 - 26'h1000000) : psn_t'(sum1);
  assign sum2 = 26'(s1) + 26'(more_i);
  assign s2 = sum2 >= 26'h1000000 ? psn_t'(sum2 - 26'h1000000) : psn_t'(sum2);

  always_ff @(posedge clk_i) begin
    diff_right: assert (26'(psn_diff(a_i, b_i)) == diff);
    ge_right: assert (psn_ge(a_i, b_i) == (ahead < 26'h800000));
    gt_right: assert (psn_gt(a_i, b_i) == (ahead < 26'h800000 && ahead != '0));
    one_or_other: assert (ahead == 26'h800000 || psn_gt(a_i, b_i) == !psn_ge(b_i, a_i));
    shift_invariant: assert (psn_ge(a_i + c_i, b_i + c_i) == psn_ge(a_i, b_i));
    after: assert (psn_ge(s1, b_i) && psn_diff(s1, b_i) == 24'(step_i));
    // in a window of 2^23 the order is one
    transitive: assert (26'(step_i) + 26'(more_i) >= 26'h800000 || (psn_ge(s2, s1) && psn_ge(s2, b_i)));
    wraps: cover (psn_gt(24'h000003, a_i) && a_i > 24'hfffff0 && psn_gt(a_i, b_i));
    half: cover (ahead == 26'h800000);
  end

endmodule
