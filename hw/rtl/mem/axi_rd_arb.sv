// SPDX-License-Identifier: Apache-2.0
//
// Read side of the AXI4 master: NumClients readers share one port, each with its own ID.
//
// One burst request per cycle, in turns, through one register (latency 1 cycle); a client's AR is
// taken when that register is free. Read data goes straight through (latency 0) to the client of
// the beat's ID and is always taken: clients reserve room before they ask. ARID = client number
// (rnic_pkg::rd_id_e), so answers of one client stay in order and clients overtake each other.
// stop_i: no further request is taken; busy_o falls when every burst asked for has come back. AMBA
// AXI4 (IHI 0022) A3, A5.

module axi_rd_arb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned NumClients = NumRdClients
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         stop_i,
  output logic                         busy_o,
  // clients
  input  logic [NumClients-1:0]        ar_valid_i,
  output logic [NumClients-1:0]        ar_ready_o,
  input  logic [NumClients-1:0][63:0]  ar_addr_i,
  input  logic [NumClients-1:0][7:0]   ar_len_i,
  output logic [NumClients-1:0]        r_valid_o,
  output logic [DataW-1:0]             r_data_o,
  output logic                         r_last_o,
  output logic                         r_err_o,
  // AXI4
  output logic [AxiIdW-1:0]            m_axi_arid_o,
  output logic [63:0]                  m_axi_araddr_o,
  output logic [7:0]                   m_axi_arlen_o,
  output logic [2:0]                   m_axi_arsize_o,
  output logic [1:0]                   m_axi_arburst_o,
  output logic                         m_axi_arvalid_o,
  input  logic                         m_axi_arready_i,
  input  logic [AxiIdW-1:0]            m_axi_rid_i,
  input  logic [DataW-1:0]             m_axi_rdata_i,
  input  logic [1:0]                   m_axi_rresp_i,
  input  logic                         m_axi_rlast_i,
  input  logic                         m_axi_rvalid_i,
  output logic                         m_axi_rready_o
);

  localparam int unsigned SelW = NumClients > 1 ? $clog2(NumClients) : 1;

  logic [SelW-1:0] sel, last_q;
  logic free, take;

  always_comb begin
    sel = '0;
    for (int i = int'(NumClients) - 1; i >= 0; i--) if (ar_valid_i[i]) sel = SelW'(i);
    for (int i = int'(NumClients) - 1; i >= 0; i--)
      if (ar_valid_i[i] && SelW'(i) > last_q) sel = SelW'(i);
  end
  assign free = !m_axi_arvalid_o || m_axi_arready_i;
  assign take = free && !stop_i && |ar_valid_i;
  always_comb begin
    ar_ready_o = '0;
    ar_ready_o[sel] = take;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      m_axi_arvalid_o <= 1'b0;
      last_q <= '0;
    end else begin
      if (free) m_axi_arvalid_o <= take;
      if (take) last_q <= sel;
    end
    if (take) begin
      m_axi_arid_o <= AxiIdW'(sel);
      m_axi_araddr_o <= ar_addr_i[sel];
      m_axi_arlen_o <= ar_len_i[sel];
    end
  end
  assign m_axi_arsize_o = 3'($clog2(DataW / 8));
  assign m_axi_arburst_o = 2'b01;

  // ---- answers ----------------------------------------------------------------------------------
  assign m_axi_rready_o = 1'b1;
  assign r_data_o = m_axi_rdata_i;
  assign r_last_o = m_axi_rlast_i;
  assign r_err_o = m_axi_rresp_i[1];
  for (genvar i = 0; i < int'(NumClients); i++) begin : gen_r
    assign r_valid_o[i] = m_axi_rvalid_i && m_axi_rid_i == AxiIdW'(i);
  end
  logic unused_rresp;
  assign unused_rresp = m_axi_rresp_i[0];  // EXOKAY does not occur, SLVERR and DECERR are alike

  logic [15:0] open_q;
  logic done;
  assign done = m_axi_rvalid_i && m_axi_rlast_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= '0;
    else if (take != done) open_q <= take ? open_q + 16'd1 : open_q - 16'd1;
  end
  assign busy_o = open_q != 0;

endmodule
