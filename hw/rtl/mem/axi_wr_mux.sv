// SPDX-License-Identifier: Apache-2.0
//
// Write side of the AXI4 master: NumClients writers share one port, each with its own ID.
//
// Turns change per burst: the mux takes an AW (into a register, latency 1 cycle), passes that
// client's W beats straight through until the last, and takes the next AW in the cycle of that last
// beat: one W beat per cycle without gaps. AWID = client number (rnic_pkg::wr_id_e); B is always
// taken and goes to the client of its ID. stop_i: no further AW is taken; bursts begun are
// finished, busy_o falls when all are answered. AMBA AXI4 (IHI 0022) A3, A5: W beats come in the
// order of the AWs.

module axi_wr_mux
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned NumClients = NumWrClients
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         stop_i,
  output logic                         busy_o,
  // clients
  input  logic [NumClients-1:0]        aw_valid_i,
  output logic [NumClients-1:0]        aw_ready_o,
  input  logic [NumClients-1:0][63:0]  aw_addr_i,
  input  logic [NumClients-1:0][7:0]   aw_len_i,
  input  logic [NumClients-1:0]        w_valid_i,
  output logic [NumClients-1:0]        w_ready_o,
  input  logic [DataW-1:0]             w_data_i[NumClients],
  input  logic [DataW/8-1:0]           w_strb_i[NumClients],
  input  logic [NumClients-1:0]        w_last_i,
  output logic [NumClients-1:0]        b_valid_o,
  output logic                         b_err_o,
  // AXI4
  output logic [AxiIdW-1:0]            m_axi_awid_o,
  output logic [63:0]                  m_axi_awaddr_o,
  output logic [7:0]                   m_axi_awlen_o,
  output logic [2:0]                   m_axi_awsize_o,
  output logic [1:0]                   m_axi_awburst_o,
  output logic                         m_axi_awvalid_o,
  input  logic                         m_axi_awready_i,
  output logic [DataW-1:0]             m_axi_wdata_o,
  output logic [DataW/8-1:0]           m_axi_wstrb_o,
  output logic                         m_axi_wlast_o,
  output logic                         m_axi_wvalid_o,
  input  logic                         m_axi_wready_i,
  input  logic [AxiIdW-1:0]            m_axi_bid_i,
  input  logic [1:0]                   m_axi_bresp_i,
  input  logic                         m_axi_bvalid_i,
  output logic                         m_axi_bready_o
);

  localparam int unsigned SelW = NumClients > 1 ? $clog2(NumClients) : 1;

  logic [SelW-1:0] sel, cur_q;   // next owner, owner of the W channel (also the last one served)
  logic data_q;                  // a burst's W beats are under way
  logic last_beat, take;

  always_comb begin
    sel = '0;
    for (int i = int'(NumClients) - 1; i >= 0; i--) if (aw_valid_i[i]) sel = SelW'(i);
    for (int i = int'(NumClients) - 1; i >= 0; i--)
      if (aw_valid_i[i] && SelW'(i) > cur_q) sel = SelW'(i);
  end

  assign last_beat = m_axi_wvalid_o && m_axi_wready_i && m_axi_wlast_o;
  assign take = |aw_valid_i && !stop_i && (!m_axi_awvalid_o || m_axi_awready_i) &&
                (!data_q || last_beat);
  always_comb begin
    aw_ready_o = '0;
    aw_ready_o[sel] = take;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      m_axi_awvalid_o <= 1'b0;
      data_q <= 1'b0;
      cur_q <= '0;
    end else begin
      if (m_axi_awready_i) m_axi_awvalid_o <= 1'b0;
      if (last_beat) data_q <= 1'b0;
      if (take) begin
        m_axi_awvalid_o <= 1'b1;
        data_q <= 1'b1;
        cur_q <= sel;
      end
    end
    if (take) begin
      m_axi_awid_o <= AxiIdW'(sel);
      m_axi_awaddr_o <= aw_addr_i[sel];
      m_axi_awlen_o <= aw_len_i[sel];
    end
  end
  assign m_axi_awsize_o = 3'($clog2(DataW / 8));
  assign m_axi_awburst_o = 2'b01;

  assign m_axi_wvalid_o = data_q && w_valid_i[cur_q];
  assign m_axi_wdata_o = w_data_i[cur_q];
  assign m_axi_wstrb_o = w_strb_i[cur_q];
  assign m_axi_wlast_o = w_last_i[cur_q];
  always_comb begin
    w_ready_o = '0;
    w_ready_o[cur_q] = data_q && m_axi_wready_i;
  end

  assign m_axi_bready_o = 1'b1;
  assign b_err_o = m_axi_bresp_i[1];
  for (genvar i = 0; i < int'(NumClients); i++) begin : gen_b
    assign b_valid_o[i] = m_axi_bvalid_i && m_axi_bid_i == AxiIdW'(i);
  end
  logic unused_bresp;
  assign unused_bresp = m_axi_bresp_i[0];  // EXOKAY does not occur, SLVERR and DECERR are alike

  logic [15:0] open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= '0;
    else if (take != m_axi_bvalid_i) open_q <= take ? open_q + 16'd1 : open_q - 16'd1;
  end
  assign busy_o = open_q != 0;

endmodule
