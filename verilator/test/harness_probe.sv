// SPDX-License-Identifier: Apache-2.0
//
// Test fixture of the harness: the ports of rnic_core, driven by registers. It is no NIC: software tells it
// which AXI burst to issue (also forbidden ones), which frame to send (also with a gap inside), and reads back
// what arrived. Received frames can be echoed. tests: cosim/probe_test.go.

module harness_probe #(
  parameter int unsigned DataW = 512
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [63:0]        time_i,

  input  logic [16:0]        s_axil_awaddr_i,
  input  logic [2:0]         s_axil_awprot_i,
  input  logic               s_axil_awvalid_i,
  output logic               s_axil_awready_o,
  input  logic [63:0]        s_axil_wdata_i,
  input  logic [7:0]         s_axil_wstrb_i,
  input  logic               s_axil_wvalid_i,
  output logic               s_axil_wready_o,
  output logic [1:0]         s_axil_bresp_o,
  output logic               s_axil_bvalid_o,
  input  logic               s_axil_bready_i,
  input  logic [16:0]        s_axil_araddr_i,
  input  logic [2:0]         s_axil_arprot_i,
  input  logic               s_axil_arvalid_i,
  output logic               s_axil_arready_o,
  output logic [63:0]        s_axil_rdata_o,
  output logic [1:0]         s_axil_rresp_o,
  output logic               s_axil_rvalid_o,
  input  logic               s_axil_rready_i,

  output logic [3:0]         m_axi_awid_o,
  output logic [63:0]        m_axi_awaddr_o,
  output logic [7:0]         m_axi_awlen_o,
  output logic [2:0]         m_axi_awsize_o,
  output logic [1:0]         m_axi_awburst_o,
  output logic               m_axi_awvalid_o,
  input  logic               m_axi_awready_i,
  output logic [DataW-1:0]   m_axi_wdata_o,
  output logic [DataW/8-1:0] m_axi_wstrb_o,
  output logic               m_axi_wlast_o,
  output logic               m_axi_wvalid_o,
  input  logic               m_axi_wready_i,
  input  logic [3:0]         m_axi_bid_i,
  input  logic [1:0]         m_axi_bresp_i,
  input  logic               m_axi_bvalid_i,
  output logic               m_axi_bready_o,
  output logic [3:0]         m_axi_arid_o,
  output logic [63:0]        m_axi_araddr_o,
  output logic [7:0]         m_axi_arlen_o,
  output logic [2:0]         m_axi_arsize_o,
  output logic [1:0]         m_axi_arburst_o,
  output logic               m_axi_arvalid_o,
  input  logic               m_axi_arready_i,
  input  logic [3:0]         m_axi_rid_i,
  input  logic [DataW-1:0]   m_axi_rdata_i,
  input  logic [1:0]         m_axi_rresp_i,
  input  logic               m_axi_rlast_i,
  input  logic               m_axi_rvalid_i,
  output logic               m_axi_rready_o,

  input  logic               rx_valid_i,
  input  logic [DataW-1:0]   rx_data_i,
  input  logic [DataW/8-1:0] rx_keep_i,
  input  logic               rx_last_i,
  input  logic               rx_user_i,
  output logic               tx_valid_o,
  input  logic               tx_ready_i,
  output logic [DataW-1:0]   tx_data_o,
  output logic [DataW/8-1:0] tx_keep_o,
  output logic               tx_last_o,
  output logic               tx_user_o,
  input  logic               link_up_i,
  input  logic [7:0]         pfc_pause_i,
  output logic [7:0]         pfc_xoff_o,
  output logic [47:0]        mac_addr_o,
  output logic [3:0]         irq_o,
  output logic               idle_o,
  output logic               wake_valid_o,
  output logic [63:0]        wake_o,
  output logic               verdict_valid_o,
  output logic [1023:0]      verdict_o
);

  localparam int unsigned Bytes = DataW / 8;

  // Writes: a register file of 32 64-bit words at 0x100; a write to some of them starts an action.
  // 0 AR address       1 AR go: id[3:0] len[15:8] size[18:16] burst[21:20] drop[24] (valid taken back)
  // 2 AW address       3 AW go: the same, beats[31:24] really sent minus one, pattern[63:32]
  // 4 TX go: length[15:0] gap[16] (one cycle in the middle) user[17] pattern[63:32]
  // 5 mode: echo[0] verdict per frame[1]      6 irq_o[3:0]   7 scratch   8 write strobes of the next AW (low bits)
  logic [63:0] reg_q[16];
  logic        start_ar, start_aw, start_tx;
  logic        wr;
  logic [3:0]  wr_idx;

  assign wr = s_axil_awvalid_i && s_axil_wvalid_i && !s_axil_bvalid_o;
  assign wr_idx = s_axil_awaddr_i[6:3];
  assign s_axil_awready_o = wr;
  assign s_axil_wready_o = wr;
  assign start_ar = wr && s_axil_awaddr_i[16:7] == 10'h2 && wr_idx == 4'd1;
  assign start_aw = wr && s_axil_awaddr_i[16:7] == 10'h2 && wr_idx == 4'd3;
  assign start_tx = wr && s_axil_awaddr_i[16:7] == 10'h2 && wr_idx == 4'd4;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s_axil_bvalid_o <= 1'b0;
      s_axil_bresp_o <= 2'd0;
      for (int i = 0; i < 16; i++) reg_q[i] <= '0;
    end else begin
      if (s_axil_bready_i) s_axil_bvalid_o <= 1'b0;
      if (wr) begin
        s_axil_bvalid_o <= 1'b1;
        s_axil_bresp_o <= s_axil_awaddr_i[16:7] == 10'h2 ? 2'd0 : 2'd2;
        for (int i = 0; i < 8; i++) begin
          if (s_axil_wstrb_i[i] && s_axil_awaddr_i[16:7] == 10'h2) reg_q[wr_idx][8*i+:8] <= s_axil_wdata_i[8*i+:8];
        end
      end
    end
  end

  // Reads: 0x000 magic, 0x200 + 8 n: results.
  logic [63:0] rd_beats_q, rd_errs_q, rd_sum_q, rd_order_q, wr_resps_q, wr_errs_q, rx_frames_q, rx_bytes_q;
  logic [63:0] rx_sum_q, rx_bad_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s_axil_rvalid_o <= 1'b0;
    end else begin
      if (s_axil_rready_i) s_axil_rvalid_o <= 1'b0;
      if (s_axil_arvalid_i && s_axil_arready_o) begin
        s_axil_rvalid_o <= 1'b1;
        s_axil_rresp_o <= 2'd0;
        case (s_axil_araddr_i)
          17'h00000: s_axil_rdata_o <= 64'h434e524f;
          17'h00138: s_axil_rdata_o <= reg_q[7];
          17'h00200: s_axil_rdata_o <= rd_beats_q;
          17'h00208: s_axil_rdata_o <= rd_errs_q;
          17'h00210: s_axil_rdata_o <= rd_sum_q;
          17'h00218: s_axil_rdata_o <= rd_order_q;
          17'h00220: s_axil_rdata_o <= wr_resps_q;
          17'h00228: s_axil_rdata_o <= wr_errs_q;
          17'h00230: s_axil_rdata_o <= rx_frames_q;
          17'h00238: s_axil_rdata_o <= rx_bytes_q;
          17'h00240: s_axil_rdata_o <= rx_sum_q;
          17'h00248: s_axil_rdata_o <= rx_bad_q;
          17'h00250: s_axil_rdata_o <= time_i;
          17'h00258: s_axil_rdata_o <= {56'd0, pfc_pause_i};
          default: begin
            s_axil_rdata_o <= '0;
            s_axil_rresp_o <= 2'd2;
          end
        endcase
      end
    end
  end
  assign s_axil_arready_o = !s_axil_rvalid_o;

  // Sum of the 64-bit words of a beat.
  function automatic logic [63:0] fold(input logic [DataW-1:0] d);
    logic [63:0] s;
    s = '0;
    for (int i = 0; i < DataW / 64; i++) s = s + d[64*i+:64];
    return s;
  endfunction

  // AXI reads
  logic ar_drop_q;
  assign m_axi_rready_o = 1'b1;
  assign m_axi_arid_o = reg_q[1][3:0];
  assign m_axi_araddr_o = reg_q[0];
  assign m_axi_arlen_o = reg_q[1][15:8];
  assign m_axi_arsize_o = reg_q[1][18:16];
  assign m_axi_arburst_o = reg_q[1][21:20];
  logic [15:0] rd_open_q, wr_open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      m_axi_arvalid_o <= 1'b0;
      ar_drop_q <= 1'b0;
      rd_beats_q <= '0;
      rd_errs_q <= '0;
      rd_sum_q <= '0;
      rd_order_q <= '0;
      rd_open_q <= '0;
    end else begin
      if (start_ar) m_axi_arvalid_o <= 1'b1;
      else if (m_axi_arready_i || reg_q[1][24]) m_axi_arvalid_o <= 1'b0;
      rd_open_q <= rd_open_q + 16'(start_ar && !s_axil_wdata_i[24]) - 16'(m_axi_rvalid_i && m_axi_rlast_i);
      if (m_axi_rvalid_i) begin
        rd_beats_q <= rd_beats_q + 64'd1;
        if (m_axi_rresp_i != 2'd0) rd_errs_q <= rd_errs_q + 64'd1;
        else rd_sum_q <= rd_sum_q + fold(m_axi_rdata_i);
        if (m_axi_rlast_i) rd_order_q <= {rd_order_q[59:0], m_axi_rid_i};
      end
    end
  end

  // AXI writes
  logic [7:0] w_left_q;
  logic [31:0] w_pat_q;
  assign m_axi_bready_o = 1'b1;
  assign m_axi_awid_o = reg_q[3][3:0];
  assign m_axi_awaddr_o = reg_q[2];
  assign m_axi_awlen_o = reg_q[3][15:8];
  assign m_axi_awsize_o = reg_q[3][18:16];
  assign m_axi_awburst_o = reg_q[3][21:20];
  assign m_axi_wstrb_o = reg_q[8][Bytes-1:0];
  assign m_axi_wlast_o = w_left_q == 8'd0;
  assign m_axi_wdata_o = {DataW / 32{w_pat_q}};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      m_axi_awvalid_o <= 1'b0;
      m_axi_wvalid_o <= 1'b0;
      wr_resps_q <= '0;
      wr_errs_q <= '0;
      wr_open_q <= '0;
    end else begin
      if (start_aw) m_axi_awvalid_o <= 1'b1;
      else if (m_axi_awready_i) m_axi_awvalid_o <= 1'b0;
      if (start_aw) begin
        m_axi_wvalid_o <= 1'b1;
        w_left_q <= s_axil_wdata_i[31:24];
        w_pat_q <= s_axil_wdata_i[63:32];
      end else if (m_axi_wvalid_o && m_axi_wready_i) begin
        m_axi_wvalid_o <= !m_axi_wlast_o;
        w_left_q <= w_left_q - 8'd1;
        w_pat_q <= w_pat_q + 32'd1;
      end
      wr_open_q <= wr_open_q + 16'(start_aw) - 16'(m_axi_bvalid_i);
      if (m_axi_bvalid_i) begin
        wr_resps_q <= wr_resps_q + 64'd1;
        if (m_axi_bresp_i != 2'd0) wr_errs_q <= wr_errs_q + 64'd1;
      end
    end
  end

  // Frames in
  logic [63:0] rx_keep_count;
  always_comb begin
    rx_keep_count = '0;
    for (int i = 0; i < Bytes; i++) rx_keep_count = rx_keep_count + 64'(rx_keep_i[i]);
  end
  logic [DataW-1:0] rx_masked;
  always_comb begin
    for (int i = 0; i < Bytes; i++) rx_masked[8*i+:8] = rx_keep_i[i] ? rx_data_i[8*i+:8] : 8'd0;
  end
  always_ff @(posedge clk_i) begin
    verdict_valid_o <= 1'b0;
    if (!rst_ni) begin
      rx_frames_q <= '0;
      rx_bytes_q <= '0;
      rx_sum_q <= '0;
      rx_bad_q <= '0;
    end else if (rx_valid_i) begin
      rx_bytes_q <= rx_bytes_q + rx_keep_count;
      rx_sum_q <= rx_sum_q + fold(rx_masked);
      if (rx_last_i) rx_frames_q <= rx_frames_q + 64'd1;
      if (rx_last_i && rx_user_i) rx_bad_q <= rx_bad_q + 64'd1;
      if (rx_last_i && reg_q[5][1]) begin
        verdict_valid_o <= 1'b1;
        verdict_o <= {960'd0, rx_frames_q};
      end
    end
  end

  // Frames out: pattern frames and echoes.
  logic [15:0] t_left_q;
  logic [31:0] t_pat_q;
  logic        t_run_q, t_gap_q;
  logic        e_valid, e_ready;
  logic [DataW+Bytes+1:0] e_out;
  rnic_fifo #(.Width(DataW + Bytes + 2), .Depth(8192)) u_echo (
    .clk_i,
    .rst_ni,
    .in_valid_i (rx_valid_i && reg_q[5][0]),
    .in_ready_o (),
    .in_data_i  ({rx_data_i, rx_keep_i, rx_last_i, rx_user_i}),
    .out_valid_o(e_valid),
    .out_ready_i(e_ready),
    .out_data_o (e_out),
    .level_o    ()
  );
  // An echoed frame leaves when it is whole; pattern and echo take turns at frame borders.
  logic [15:0] e_frames_q;
  logic        e_go, e_hold_q, t_pend_q;
  assign e_go = e_valid && e_frames_q != 0 && !t_run_q && (e_hold_q || !t_pend_q);
  assign e_ready = e_go && tx_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      t_run_q <= 1'b0;
      t_gap_q <= 1'b0;
      t_pend_q <= 1'b0;
      e_hold_q <= 1'b0;
      e_frames_q <= '0;
    end else begin
      e_frames_q <= e_frames_q + 16'(rx_valid_i && rx_last_i && reg_q[5][0]) - 16'(e_ready && e_out[1]);
      t_gap_q <= 1'b0;
      e_hold_q <= e_go && !(e_ready && e_out[1]);
      if (start_tx) t_pend_q <= 1'b1;
      if (t_pend_q && !t_run_q && (!e_go || (e_ready && e_out[1]))) begin
        t_pend_q <= 1'b0;
        t_run_q <= 1'b1;
        t_left_q <= reg_q[4][15:0];
        t_pat_q <= reg_q[4][63:32];
      end else if (t_run_q && !t_gap_q && tx_ready_i) begin
        t_left_q <= t_left_q - 16'(Bytes);
        t_pat_q <= t_pat_q + 32'd1;
        t_run_q <= !(t_left_q <= 16'(Bytes));
        t_gap_q <= reg_q[4][16] && t_pat_q == reg_q[4][63:32];
      end
    end
  end
  assign tx_valid_o = (t_run_q && !t_gap_q) || e_go;
  assign tx_data_o = t_run_q ? {DataW / 32{t_pat_q}} : e_out[DataW+Bytes+1-:DataW];
  assign tx_keep_o = t_run_q ? (t_left_q < 16'(Bytes) ? ~({Bytes{1'b1}} << t_left_q) : '1) : e_out[2+:Bytes];
  assign tx_last_o = t_run_q ? t_left_q <= 16'(Bytes) : e_out[1];
  assign tx_user_o = t_run_q ? reg_q[4][17] && tx_last_o : e_out[0];

  assign pfc_xoff_o = reg_q[9][7:0];
  assign mac_addr_o = 48'h665544332211;
  // one message per write and set bit
  always_ff @(posedge clk_i) begin
    if (!rst_ni) irq_o <= '0;
    else irq_o <= wr && s_axil_awaddr_i[16:7] == 10'h2 && wr_idx == 4'd6 ? s_axil_wdata_i[3:0] : '0;
  end
  assign wake_valid_o = 1'b1;
  assign wake_o = '1;
  assign idle_o = !m_axi_arvalid_o && !m_axi_wvalid_o && !m_axi_awvalid_o && rd_open_q == 0 && wr_open_q == 0 &&
                  !t_run_q && !t_pend_q && !e_valid && !s_axil_bvalid_o && !s_axil_rvalid_o && !wr && !s_axil_arvalid_i &&
                  !rx_valid_i && !verdict_valid_o && irq_o == '0;

  logic unused;
  assign unused = ^{s_axil_awprot_i, s_axil_arprot_i, s_axil_awaddr_i[2:0], m_axi_bid_i, ar_drop_q};

endmodule
