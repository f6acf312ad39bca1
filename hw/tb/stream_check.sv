// SPDX-License-Identifier: Apache-2.0
//
// Checker of one valid/ready channel (AXI4 IHI 0022 A3.2.1, AXI-Stream IHI 0051 2.2): what is offered stays
// offered, with the same payload, until it is taken; nothing is offered in the cycle after a reset.
// Assume: proofs take the rules as given (hw/tb/check.svh).

`include "check.svh"
module stream_check #(
  parameter int unsigned Width = 8,
  parameter bit Assume = 1'b0
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_i,
  input logic [Width-1:0] data_i
);

  logic reset_q = 1'b1, wait_q = 1'b0;
  logic [Width-1:0] data_q;

  always_ff @(posedge clk_i) begin
    reset_q <= !rst_ni;
    wait_q <= rst_ni && valid_i && !ready_i;
    data_q <= data_i;
    if (rst_ni) begin
      `RNIC_CHECK(Assume, quiet_after_reset, !reset_q || !valid_i)
      `RNIC_CHECK(Assume, valid_held, !wait_q || valid_i)
      `RNIC_CHECK(Assume, payload_stable, !wait_q || data_i == data_q)
    end
  end

endmodule
