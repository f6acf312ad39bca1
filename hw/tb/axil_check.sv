// SPDX-License-Identifier: Apache-2.0
//
// Checker of an AXI4-Lite port (IHI 0022 A3.2, B1.1): the five channels' handshakes; a B for an AW and a W that were
// taken in earlier cycles, an R for such an AR; no EXOKAY. The slave takes at most MaxOpen (a power of two) of each
// before it has answered.

`include "check.svh"
module axil_check #(
  parameter int unsigned AddrW = 17,
  parameter int unsigned DataW = 64,
  parameter int unsigned MaxOpen = 2,
  parameter bit AssumeMaster = 1'b0,
  parameter bit AssumeSlave = 1'b0,
  localparam int unsigned OpenW = $clog2(MaxOpen)
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               aw_valid_i,
  input logic               aw_ready_i,
  input logic [AddrW-1:0]   aw_addr_i,
  input logic [2:0]         aw_prot_i,
  input logic               w_valid_i,
  input logic               w_ready_i,
  input logic [DataW-1:0]   w_data_i,
  input logic [DataW/8-1:0] w_strb_i,
  input logic               b_valid_i,
  input logic               b_ready_i,
  input logic [1:0]         b_resp_i,
  input logic               ar_valid_i,
  input logic               ar_ready_i,
  input logic [AddrW-1:0]   ar_addr_i,
  input logic [2:0]         ar_prot_i,
  input logic               r_valid_i,
  input logic               r_ready_i,
  input logic [DataW-1:0]   r_data_i,
  input logic [1:0]         r_resp_i
);

  stream_check #(.Width(AddrW + 3), .Assume(AssumeMaster)) u_aw (
    .clk_i, .rst_ni, .valid_i(aw_valid_i), .ready_i(aw_ready_i), .data_i({aw_addr_i, aw_prot_i}));
  stream_check #(.Width(DataW + DataW / 8), .Assume(AssumeMaster)) u_w (
    .clk_i, .rst_ni, .valid_i(w_valid_i), .ready_i(w_ready_i), .data_i({w_data_i, w_strb_i}));
  stream_check #(.Width(2), .Assume(AssumeSlave)) u_b (
    .clk_i, .rst_ni, .valid_i(b_valid_i), .ready_i(b_ready_i), .data_i(b_resp_i));
  stream_check #(.Width(AddrW + 3), .Assume(AssumeMaster)) u_ar (
    .clk_i, .rst_ni, .valid_i(ar_valid_i), .ready_i(ar_ready_i), .data_i({ar_addr_i, ar_prot_i}));
  stream_check #(.Width(DataW + 2), .Assume(AssumeSlave)) u_r (
    .clk_i, .rst_ni, .valid_i(r_valid_i), .ready_i(r_ready_i), .data_i({r_data_i, r_resp_i}));

  // taken and not answered
  logic [OpenW:0] aw_q, w_q, ar_q;
  logic aw, w, b, ar, r;
  assign aw = aw_valid_i && aw_ready_i;
  assign w = w_valid_i && w_ready_i;
  assign b = b_valid_i && b_ready_i;
  assign ar = ar_valid_i && ar_ready_i;
  assign r = r_valid_i && r_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_q <= '0;
      w_q <= '0;
      ar_q <= '0;
    end else begin
      aw_q <= aw_q + (OpenW + 1)'(aw) - (OpenW + 1)'(b);
      w_q <= w_q + (OpenW + 1)'(w) - (OpenW + 1)'(b);
      ar_q <= ar_q + (OpenW + 1)'(ar) - (OpenW + 1)'(r);
      `RNIC_CHECK(AssumeSlave, aw_bound, !aw || b || !aw_q[OpenW])
      `RNIC_CHECK(AssumeSlave, w_bound, !w || b || !w_q[OpenW])
      `RNIC_CHECK(AssumeSlave, ar_bound, !ar || r || !ar_q[OpenW])
      if (b_valid_i) begin
        `RNIC_CHECK(AssumeSlave, b_has_aw, aw_q != '0)
        `RNIC_CHECK(AssumeSlave, b_has_w, w_q != '0)
        `RNIC_CHECK(AssumeSlave, b_no_exokay, b_resp_i != 2'b01)
      end
      if (r_valid_i) begin
        `RNIC_CHECK(AssumeSlave, r_asked_for, ar_q != '0)
        `RNIC_CHECK(AssumeSlave, r_no_exokay, r_resp_i != 2'b01)
      end
    end
  end

endmodule
