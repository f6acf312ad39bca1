// SPDX-License-Identifier: Apache-2.0
//
// rnic_csr: any master that keeps AXI4-Lite's rules sees a slave that does; doorbells keep the stream rules.

module rnic_csr_proof
  import rnic_regs_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic        clear_i,
  input logic [16:0] awaddr_i,
  input logic        awvalid_i,
  input logic [63:0] wdata_i,
  input logic [7:0]  wstrb_i,
  input logic        wvalid_i,
  input logic        bready_i,
  input logic [16:0] araddr_i,
  input logic        arvalid_i,
  input logic        rready_i,
  input csr_hw2reg_t hw2reg_i,
  input logic        db_ready_i
);

  logic awready, wready, bvalid, arready, rvalid, db_valid;
  logic [1:0] bresp, rresp;
  logic [63:0] rdata, db_data;
  logic [3:0] db_page;
  logic [11:0] db_offset;
  csr_reg2hw_t reg2hw;
  rnic_csr dut (
    .clk_i, .rst_ni, .clear_i,
    .s_axil_awaddr_i(awaddr_i), .s_axil_awprot_i(3'b000), .s_axil_awvalid_i(awvalid_i), .s_axil_awready_o(awready),
    .s_axil_wdata_i(wdata_i), .s_axil_wstrb_i(wstrb_i), .s_axil_wvalid_i(wvalid_i), .s_axil_wready_o(wready),
    .s_axil_bresp_o(bresp), .s_axil_bvalid_o(bvalid), .s_axil_bready_i(bready_i),
    .s_axil_araddr_i(araddr_i), .s_axil_arprot_i(3'b000), .s_axil_arvalid_i(arvalid_i), .s_axil_arready_o(arready),
    .s_axil_rdata_o(rdata), .s_axil_rresp_o(rresp), .s_axil_rvalid_o(rvalid), .s_axil_rready_i(rready_i),
    .reg2hw_o(reg2hw), .hw2reg_i, .db_valid_o(db_valid), .db_ready_i, .db_page_o(db_page), .db_offset_o(db_offset),
    .db_data_o(db_data));

  axil_check #(.AssumeMaster(1'b1)) u_bus (
    .clk_i, .rst_ni,
    .aw_valid_i(awvalid_i), .aw_ready_i(awready), .aw_addr_i(awaddr_i), .aw_prot_i(3'b000),
    .w_valid_i(wvalid_i), .w_ready_i(wready), .w_data_i(wdata_i), .w_strb_i(wstrb_i),
    .b_valid_i(bvalid), .b_ready_i(bready_i), .b_resp_i(bresp),
    .ar_valid_i(arvalid_i), .ar_ready_i(arready), .ar_addr_i(araddr_i), .ar_prot_i(3'b000),
    .r_valid_i(rvalid), .r_ready_i(rready_i), .r_data_i(rdata), .r_resp_i(rresp));
  stream_check #(.Width(80)) u_db (
    .clk_i, .rst_ni, .valid_i(db_valid), .ready_i(db_ready_i), .data_i({db_page, db_offset, db_data}));

  logic first_q = 1'b1;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (rst_ni) begin
      doorbell: cover (bvalid && bready_i && bresp == 2'b00 && db_page == 4'd3);
      read: cover (rvalid && rready_i && rresp == 2'b00 && rdata != '0);
      read_error: cover (rvalid && rready_i && rresp == 2'b10 && bvalid && bresp == 2'b10);
    end
  end

endmodule
