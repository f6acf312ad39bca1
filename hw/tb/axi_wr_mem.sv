// SPDX-License-Identifier: Apache-2.0
//
// An axi_mem (u_mem) behind the AXI write client of one block.

module axi_wr_mem #(
  parameter int unsigned DataW = 64
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               aw_valid_i,
  output logic               aw_ready_o,
  input  logic [63:0]        aw_addr_i,
  input  logic [7:0]         aw_len_i,
  input  logic               w_valid_i,
  output logic               w_ready_o,
  input  logic [DataW-1:0]   w_data_i,
  input  logic [DataW/8-1:0] w_strb_i,
  input  logic               w_last_i,
  output logic               b_valid_o,
  output logic               b_err_o
);
  logic [3:0] bid, rid;
  logic [1:0] bresp, rresp;
  logic arready, rlast, rvalid;
  logic [DataW-1:0] rdata;
  assign b_err_o = bresp != 2'b00;
  axi_mem #(.DataW(DataW), .NumIds(1)) u_mem (
    .clk_i, .rst_ni,
    .awid_i(4'd0), .awaddr_i(aw_addr_i), .awlen_i(aw_len_i), .awsize_i(3'($clog2(DataW / 8))), .awburst_i(2'd1),
    .awvalid_i(aw_valid_i), .awready_o(aw_ready_o), .wdata_i(w_data_i), .wstrb_i(w_strb_i), .wlast_i(w_last_i),
    .wvalid_i(w_valid_i), .wready_o(w_ready_o), .bid_o(bid), .bresp_o(bresp), .bvalid_o(b_valid_o), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(64'd0), .arlen_i(8'd0), .arsize_i(3'd0), .arburst_i(2'd1), .arvalid_i(1'b0),
    .arready_o(arready), .rid_o(rid), .rdata_o(rdata), .rresp_o(rresp), .rlast_o(rlast), .rvalid_o(rvalid),
    .rready_i(1'b1));
endmodule
