// SPDX-License-Identifier: Apache-2.0
//
// Binds the protocol checkers to AXI4, AXI4-Lite and AXI-Stream ports of the design, wherever it is instantiated: hw/tb/run.sh
// compiles this file along.

// Client side of axi_rd_arb and of axi_wr_mux (docs/blocks.md): one ID, answers always taken. LAST: its r_last.
`define RNIC_BIND_RD(MODULE, OPEN, LAST) \
  bind MODULE axi_rd_check #(.DataW(DataW), .IdW(1), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(OPEN)) u_rd_check ( \
    .clk_i, .rst_ni, .ar_valid_i(ar_valid_o), .ar_ready_i, .ar_id_i(1'b0), .ar_addr_i(ar_addr_o), .ar_len_i(ar_len_o), \
    .ar_size_i(3'($clog2(DataW / 8))), .ar_burst_i(2'b01), .r_valid_i, .r_ready_i(1'b1), .r_id_i(1'b0), .r_data_i, \
    .r_resp_i({r_err_i, 1'b0}), .r_last_i(LAST));
`define RNIC_BIND_WR(MODULE, OPEN) \
  bind MODULE axi_wr_check #(.DataW(DataW), .IdW(1), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(OPEN), .MaxAhead(OPEN)) u_wr_check ( \
    .clk_i, .rst_ni, .aw_valid_i(aw_valid_o), .aw_ready_i, .aw_id_i(1'b0), .aw_addr_i(aw_addr_o), .aw_len_i(aw_len_o), \
    .aw_size_i(3'($clog2(DataW / 8))), .aw_burst_i(2'b01), .w_valid_i(w_valid_o), .w_ready_i, .w_data_i(w_data_o), \
    .w_strb_i(w_strb_o), .w_last_i(w_last_o), .b_valid_i, .b_ready_i(1'b1), .b_id_i(1'b0), .b_resp_i({b_err_i, 1'b0}));

`RNIC_BIND_RD(cmd_proc, 64, r_last_i)
`RNIC_BIND_RD(atomic_unit, 2, 1'b1)
`RNIC_BIND_RD(payload_reader, 512, r_last_i)
`RNIC_BIND_RD(rq_cache, 64, r_last_i)
`RNIC_BIND_WR(cmd_proc, 64)
`RNIC_BIND_WR(cqe_writer, 64)
`RNIC_BIND_WR(eq_writer, 16)
`RNIC_BIND_WR(atomic_unit, 2)
`RNIC_BIND_WR(rx_payload_writer, 64)

// Master side.
bind axi_rd_arb axi_rd_check #(
  .DataW(DataW), .IdW(rnic_pkg::AxiIdW), .NumIds(NumClients), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(512)
) u_check (
  .clk_i, .rst_ni,
  .ar_valid_i(m_axi_arvalid_o), .ar_ready_i(m_axi_arready_i), .ar_id_i(m_axi_arid_o), .ar_addr_i(m_axi_araddr_o),
  .ar_len_i(m_axi_arlen_o), .ar_size_i(m_axi_arsize_o), .ar_burst_i(m_axi_arburst_o),
  .r_valid_i(m_axi_rvalid_i), .r_ready_i(m_axi_rready_o), .r_id_i(m_axi_rid_i), .r_data_i(m_axi_rdata_i),
  .r_resp_i(m_axi_rresp_i), .r_last_i(m_axi_rlast_i));
bind axi_wr_mux axi_wr_check #(
  .DataW(DataW), .IdW(rnic_pkg::AxiIdW), .NumIds(NumClients), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(64)
) u_check (
  .clk_i, .rst_ni,
  .aw_valid_i(m_axi_awvalid_o), .aw_ready_i(m_axi_awready_i), .aw_id_i(m_axi_awid_o), .aw_addr_i(m_axi_awaddr_o),
  .aw_len_i(m_axi_awlen_o), .aw_size_i(m_axi_awsize_o), .aw_burst_i(m_axi_awburst_o),
  .w_valid_i(m_axi_wvalid_o), .w_ready_i(m_axi_wready_i), .w_data_i(m_axi_wdata_o), .w_strb_i(m_axi_wstrb_o),
  .w_last_i(m_axi_wlast_o), .b_valid_i(m_axi_bvalid_i), .b_ready_i(m_axi_bready_o), .b_id_i(m_axi_bid_i),
  .b_resp_i(m_axi_bresp_i));

bind rnic_csr axil_check u_check (
  .clk_i, .rst_ni,
  .aw_valid_i(s_axil_awvalid_i), .aw_ready_i(s_axil_awready_o), .aw_addr_i(s_axil_awaddr_i), .aw_prot_i(s_axil_awprot_i),
  .w_valid_i(s_axil_wvalid_i), .w_ready_i(s_axil_wready_o), .w_data_i(s_axil_wdata_i), .w_strb_i(s_axil_wstrb_i),
  .b_valid_i(s_axil_bvalid_o), .b_ready_i(s_axil_bready_i), .b_resp_i(s_axil_bresp_o),
  .ar_valid_i(s_axil_arvalid_i), .ar_ready_i(s_axil_arready_o), .ar_addr_i(s_axil_araddr_i), .ar_prot_i(s_axil_arprot_i),
  .r_valid_i(s_axil_rvalid_o), .r_ready_i(s_axil_rready_i), .r_data_i(s_axil_rdata_o), .r_resp_i(s_axil_rresp_o));

// Ethernet: the egress sends frames without gaps.
bind tx_egress axis_check #(.DataW(DataW), .MaxBytes(rnic_pkg::MaxFrame), .NoGaps(1'b1)) u_check (
  .clk_i, .rst_ni, .valid_i(tx_valid_o), .ready_i(tx_ready_i), .data_i(tx_data_o), .keep_i(tx_keep_o), .last_i(tx_last_o),
  .user_i(tx_user_o));
