// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous events of the port: its link came up or went down (IBTA 11.6.3.3).
//
// An event is offered 2 cycles after the change and stays until it is taken. Changes while one waits are told afterwards if
// the link is not as it was told last. The state at the end of reset is not an event.

module port_events
  import rnic_pkg::*;
(
  input  logic      clk_i,
  input  logic      rst_ni,
  input  logic      link_up_i,
  output logic      link_up_o,
  output logic      event_valid_o,
  input  logic      event_ready_i,
  output async_ev_t event_o
);

  logic up_q, told_q, valid_q;
  assign link_up_o = up_q;
  assign event_valid_o = valid_q;
  assign event_o = '{ev_type: rnic_regs_pkg::EqeTypePort, object: 32'd1, detail: 32'(told_q)};

  always_ff @(posedge clk_i) begin
    up_q <= link_up_i;
    if (!rst_ni) begin
      told_q <= link_up_i;
      valid_q <= 1'b0;
    end else if (!valid_q || event_ready_i) begin
      told_q <= up_q;
      valid_q <= up_q != told_q;
    end
  end

endmodule
