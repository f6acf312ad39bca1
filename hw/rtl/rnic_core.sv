// SPDX-License-Identifier: Apache-2.0
//
// The NIC: registers and doorbells in, host memory on an AXI4 master, Ethernet on two streams.
//
// Wires the blocks together and nothing else, but for the gates of function enable and reset. DataW
// (64, 128, 256, 512) is the width of all data paths; the receive stream takes a beat per cycle and
// cannot be held; the transmit stream sends whole frames without gaps of its own. time_i is the
// cycle counter that registers and CQE timestamps show. idle_o: nothing in flight in any block, so
// that nothing happens before an input changes. docs/architecture.md walks a packet through.

module rnic_core
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned ClkPs = DataW == 64 ? 8000 : 4000,  // clock period in picoseconds, for timers
  parameter int unsigned QpLogSets = QpIdxW - QpLogWays      // sets of the QP cache, log2; fewer than that leave slots unused
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [63:0]         time_i,
  // registers and doorbells: AXI4-Lite slave
  input  logic [16:0]         s_axil_awaddr_i,
  input  logic [2:0]          s_axil_awprot_i,
  input  logic                s_axil_awvalid_i,
  output logic                s_axil_awready_o,
  input  logic [63:0]         s_axil_wdata_i,
  input  logic [7:0]          s_axil_wstrb_i,
  input  logic                s_axil_wvalid_i,
  output logic                s_axil_wready_o,
  output logic [1:0]          s_axil_bresp_o,
  output logic                s_axil_bvalid_o,
  input  logic                s_axil_bready_i,
  input  logic [16:0]         s_axil_araddr_i,
  input  logic [2:0]          s_axil_arprot_i,
  input  logic                s_axil_arvalid_i,
  output logic                s_axil_arready_o,
  output logic [63:0]         s_axil_rdata_o,
  output logic [1:0]          s_axil_rresp_o,
  output logic                s_axil_rvalid_o,
  input  logic                s_axil_rready_i,
  // host memory: AXI4 master
  output logic [AxiIdW-1:0]   m_axi_awid_o,
  output logic [63:0]         m_axi_awaddr_o,
  output logic [7:0]          m_axi_awlen_o,
  output logic [2:0]          m_axi_awsize_o,
  output logic [1:0]          m_axi_awburst_o,
  output logic                m_axi_awvalid_o,
  input  logic                m_axi_awready_i,
  output logic [DataW-1:0]    m_axi_wdata_o,
  output logic [DataW/8-1:0]  m_axi_wstrb_o,
  output logic                m_axi_wlast_o,
  output logic                m_axi_wvalid_o,
  input  logic                m_axi_wready_i,
  input  logic [AxiIdW-1:0]   m_axi_bid_i,
  input  logic [1:0]          m_axi_bresp_i,
  input  logic                m_axi_bvalid_i,
  output logic                m_axi_bready_o,
  output logic [AxiIdW-1:0]   m_axi_arid_o,
  output logic [63:0]         m_axi_araddr_o,
  output logic [7:0]          m_axi_arlen_o,
  output logic [2:0]          m_axi_arsize_o,
  output logic [1:0]          m_axi_arburst_o,
  output logic                m_axi_arvalid_o,
  input  logic                m_axi_arready_i,
  input  logic [AxiIdW-1:0]   m_axi_rid_i,
  input  logic [DataW-1:0]    m_axi_rdata_i,
  input  logic [1:0]          m_axi_rresp_i,
  input  logic                m_axi_rlast_i,
  input  logic                m_axi_rvalid_i,
  output logic                m_axi_rready_o,
  // Ethernet: frames without FCS
  input  logic                rx_valid_i,
  input  logic [DataW-1:0]    rx_data_i,
  input  logic [DataW/8-1:0]  rx_keep_i,
  input  logic                rx_last_i,
  input  logic                rx_user_i,
  output logic                tx_valid_o,
  input  logic                tx_ready_i,
  output logic [DataW-1:0]    tx_data_o,
  output logic [DataW/8-1:0]  tx_keep_o,
  output logic                tx_last_o,
  output logic                tx_user_o,
  input  logic                link_up_i,         // MAC and PHY have a link (synchronous to clk_i)
  // priority flow control, per priority
  input  logic [7:0]          pfc_pause_i,
  output logic [7:0]          pfc_xoff_o,
  output logic [47:0]         mac_addr_o,        // station address for the MAC, first byte on the wire in [7:0]
  output logic [NumVec-1:0]   irq_o,             // one message per cycle and vector
  output logic                idle_o,
  // while idle_o: nothing happens by itself before time_i reaches wake_o, so time may jump there (all
  // ones: nothing ever); not known now when wake_valid_o is 0
  output logic                wake_valid_o,
  output logic [63:0]         wake_o,
  // one pulse per received frame (rnic_regs_pkg::rx_verdict_t)
  output logic                verdict_valid_o,
  output logic [1023:0]       verdict_o
);

  localparam int unsigned LaneW = $clog2(DataW / 8);
  localparam int unsigned NumQpPorts = 8;
  localparam int unsigned NumMrPorts = 3;
  localparam int unsigned NumErr = 4;
  localparam int unsigned NumDrain = 16;
  localparam int unsigned NumWork = 16;         // QPs of the service list at a time
  localparam int unsigned NumLook = 3 + NumWork; // look-ups of QPs: 0 commands, 1 and 2 received packets, service list
  localparam logic [3:0] WrPayload = 4'(WrIdPayload);
  localparam logic [3:0] WrCqe = 4'(WrIdCqe);
  localparam logic [3:0] WrRsp = 4'(WrIdRsp);
  localparam logic [3:0] WrEqe = 4'(WrIdEqe);
  localparam logic [3:0] WrAtomic = 4'(WrIdAtomic);
  localparam logic [3:0] WrMr = 4'(WrIdMr);
  localparam logic [3:0] WrQp = 4'(WrIdQp);
  localparam logic [3:0] WrCq = 4'(WrIdCq);
  localparam logic [3:0] WrSrq = 4'(WrIdSrq);
  localparam logic [3:0] RdCmd = 4'(RdIdCmd);
  localparam logic [3:0] RdWqe = 4'(RdIdWqe);
  localparam logic [3:0] RdPayload = 4'(RdIdPayload);
  localparam logic [3:0] RdRq = 4'(RdIdRq);
  localparam logic [3:0] RdAtomic = 4'(RdIdAtomic);
  localparam logic [3:0] RdMr = 4'(RdIdMr);
  localparam logic [3:0] RdQp = 4'(RdIdQp);
  localparam logic [3:0] RdCq = 4'(RdIdCq);
  localparam logic [3:0] RdSrq = 4'(RdIdSrq);
  localparam logic [3:0] RdSrqWqe = 4'(RdIdSrqWqe);
  localparam logic [31:0] ResetMagic = 32'h52535421;

  // ---- reset ------------------------------------------------------------------------------------
  rnic_regs_pkg::csr_reg2hw_t reg2hw;
  rnic_regs_pkg::csr_hw2reg_t hw2reg;
  logic core_rst_n, stop, enable, rx_skip, rd_busy, wr_busy, tx_valid, reset_trigger;

  assign reset_trigger = reg2hw.reset.qe && reg2hw.reset.trigger == ResetMagic;
  reset_ctrl u_reset_ctrl (
    .clk_i, .rst_ni,
    .trigger_i(reset_trigger),
    .axi_busy_i(rd_busy || wr_busy),
    .tx_valid_i(tx_valid), .tx_valid_o, .tx_ready_i, .tx_last_i(tx_last_o),
    .rx_valid_i, .rx_last_i, .rx_skip_o(rx_skip),
    .stop_o(stop), .core_rst_no(core_rst_n)
  );
  assign enable = reg2hw.ctrl.enable && !stop;

  // ---- registers and doorbells ------------------------------------------------------------------
  logic db_valid, db_ready;
  db_page_t db_page;
  logic [11:0] db_offset;
  logic [63:0] db_data;

  rnic_csr u_csr (
    .clk_i, .rst_ni, .clear_i(!core_rst_n),
    .s_axil_awaddr_i, .s_axil_awprot_i, .s_axil_awvalid_i, .s_axil_awready_o,
    .s_axil_wdata_i, .s_axil_wstrb_i, .s_axil_wvalid_i, .s_axil_wready_o,
    .s_axil_bresp_o, .s_axil_bvalid_o, .s_axil_bready_i,
    .s_axil_araddr_i, .s_axil_arprot_i, .s_axil_arvalid_i, .s_axil_arready_o,
    .s_axil_rdata_o, .s_axil_rresp_o, .s_axil_rvalid_o, .s_axil_rready_i,
    .reg2hw_o(reg2hw), .hw2reg_i(hw2reg),
    .db_valid_o(db_valid), .db_ready_i(db_ready), .db_page_o(db_page),
    .db_offset_o(db_offset), .db_data_o(db_data)
  );

  // Doorbells that nobody takes are bad ones; a function that is not enabled has no queues at all.
  // Reserved fields are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  rnic_regs_pkg::db_sq_t db_sq;
  rnic_regs_pkg::db_rq_t db_rq;
  rnic_regs_pkg::db_cq_t db_cq;
  rnic_regs_pkg::db_eq_t db_eq;
  rnic_regs_pkg::db_srq_t db_srq;
  // verilator lint_on UNUSEDSIGNAL
  logic db_is_sq, db_is_rq, db_is_cq, db_is_eq, db_is_srq, db_is_push, db_is_bad;
  logic sq_db_ready, rq_db_ready, cq_db_ready, eq_db_ready, ev_db_refused;
  assign db_sq = db_data;
  assign db_rq = db_data;
  assign db_cq = db_data;
  assign db_eq = db_data;
  assign db_srq = db_data;
  assign db_is_sq = enable && db_offset == rnic_regs_pkg::DbSqOffset;
  assign db_is_rq = enable && db_offset == rnic_regs_pkg::DbRqOffset;
  assign db_is_cq = enable && db_offset == rnic_regs_pkg::DbCqOffset;
  assign db_is_eq = enable && db_offset == rnic_regs_pkg::DbEqOffset;
  assign db_is_srq = enable && db_offset == rnic_regs_pkg::DbSrqOffset;
  assign db_is_push = enable && db_offset[11:7] == rnic_regs_pkg::DbPushOffset[11:7];
  assign db_is_bad = !db_is_push && !db_is_sq && !db_is_rq && !db_is_cq && !db_is_eq && !db_is_srq;
  // doorbells of receive queues, from the service list
  logic     rqc_db_ready, hrq_valid, srq_db_ready;
  qp_idx_t  hrq_qp;
  wqe_idx_t hrq_pi;
  assign db_ready = (db_is_sq && sq_db_ready) || (db_is_rq && rq_db_ready) || (db_is_srq && srq_db_ready) ||
                    (db_is_cq && cq_db_ready) || (db_is_eq && eq_db_ready) || db_is_push || db_is_bad;
  assign ev_db_refused = db_valid && db_is_bad;

  // ---- tables -----------------------------------------------------------------------------------
  logic     [NumQpPorts-1:0] qp_req_valid, qp_req_ready, qp_rsp_valid;
  qp_idx_t  [NumQpPorts-1:0] qp_req_idx;
  qp_attr_t                  qp_rsp[NumQpPorts];
  logic     [NumMrPorts-1:0] mr_req_valid, mr_req_ready, mr_rsp_valid;
  mr_idx_t  [NumMrPorts-1:0] mr_req_idx;
  mr_t                       mr_rsp[NumMrPorts];
  logic     [NumErr-1:0]     qp_err_valid, qp_err_ready;
  qp_idx_t  [NumErr-1:0]     qp_err_idx;
  logic                      qp_err_access, rsp_err_access;
  logic                      errev_valid, errev_ready;
  qp_idx_t                   errev_idx;
  qp_err_e                   errev_why;
  logic                      drain;
  logic     [NumDrain-1:0]   drain_done;
  logic     [NumDrain+4:0]   block_idle;
  logic                      event_valid, event_ready;
  async_ev_t                 event_in;

  logic      qp_cmd_valid, qp_cmd_rsp_valid, qp_cmd_rsp_ok, ev_qp_fatal;
  qp_cmd_e   qp_cmd_op;
  qp_idx_t   qp_cmd_idx;
  qp_state_e qp_cmd_from;
  qp_attr_t  qp_cmd_attr, qp_cmd_rsp;

  // slots of QPs, and their contexts between host memory and the modules (docs/qp-cache.md); ctx_*: in into a module, out of it
  logic        [NumLook-1:0]       look_valid, look_ready, look_rsp_valid, look_rel;
  logic        [NumLook-1:0][23:0] look_qpn;
  qpc_status_e [NumLook-1:0]       look_status;
  qp_idx_t     [NumLook-1:0]       look_slot;
  logic                            look_create, look_forget, qp_pf_valid, qp_bad_valid, qp_bad_ready;
  logic        [23:0]              qp_pf_qpn;
  qpn_t                            qp_bad_qpn;
  ctx_mem_t                        qp_mem;
  ctx_ev_t                         ev_qp;
  qp_idx_t    qt_probe, rt_probe, rq_probe, pw_probe, rr_probe, req_probe, aq_probe, eg_probe;
  logic       qt_busy, qt_dirty, rt_busy, rq_busy, pw_busy, rr_busy, req_busy, aq_busy, eg_busy;
  logic [NumQp-1:0] req_open;
  logic       qt_ctx_valid, qt_ctx_ready, qt_ctx_load, rt_ctx_valid, rt_ctx_ready, rt_ctx_load;
  logic       rq_ctx_valid, rq_ctx_ready, rq_ctx_load, rq_ctx_word, pw_ctx_load, pw_ctx_in, pw_ctx_out;
  logic       rr_ctx_valid, rr_ctx_ready, rr_ctx_load, rr_ctx_word, req_ctx_valid, req_ctx_ready, req_ctx_load, req_ctx_rsp_valid;
  qp_idx_t    qt_ctx_qp, rt_ctx_qp, rq_ctx_qp, pw_ctx_qp, rr_ctx_qp, req_ctx_qp;
  qp_attr_t   qt_ctx_in, qt_ctx_out;
  rsp_state_t rt_ctx_in, rt_ctx_out;
  rq_keep_t   rq_ctx_in, rq_ctx_out;
  logic [3:0] rq_ctx_at;
  rq_entry_t  rq_entry_in, rq_entry_out;
  rsp_keep_t  rr_ctx_in, rr_ctx_out;
  logic [2:0] rr_ctx_at;
  rsp_value_t rr_value_in, rr_value_out;
  requester_pkg::keep_e req_ctx_what;
  qpn_t       req_ctx_qpn;
  logic [LogInflight-1:0] req_ctx_at;
  requester_pkg::req_keep_t req_ctx_in, req_ctx_out;
  requester_pkg::flight_t req_flight_in, req_flight_out;
  rd_entry_t  req_entry_in, req_entry_out;

  // attributes that come into a slot: at CREATE_QP, and from host memory
  logic     srq_slot_we;
  qp_idx_t  srq_slot;
  logic     srq_slot_has;
  srq_idx_t srq_slot_srqn;
  assign srq_slot_we = (qp_cmd_valid && qp_cmd_op == QpCmdWrite) || (qt_ctx_valid && qt_ctx_ready && qt_ctx_load);
  assign srq_slot = qp_cmd_valid ? qp_cmd_idx : qt_ctx_qp;
  assign srq_slot_has = qp_cmd_valid ? qp_cmd_attr.has_srq : qt_ctx_in.has_srq;
  assign srq_slot_srqn = qp_cmd_valid ? qp_cmd_attr.srqn : qt_ctx_in.srqn;

  qp_table #(.NumPorts(NumQpPorts), .NumErr(NumErr)) u_qp_table (
    .clk_i, .rst_ni(core_rst_n),
    .req_valid_i(qp_req_valid), .req_ready_o(qp_req_ready), .req_idx_i(qp_req_idx),
    .rsp_valid_o(qp_rsp_valid), .rsp_o(qp_rsp),
    .cmd_valid_i(qp_cmd_valid), .cmd_op_i(qp_cmd_op), .cmd_idx_i(qp_cmd_idx),
    .cmd_from_i(qp_cmd_from), .cmd_attr_i(qp_cmd_attr),
    .cmd_rsp_valid_o(qp_cmd_rsp_valid), .cmd_rsp_ok_o(qp_cmd_rsp_ok), .cmd_rsp_o(qp_cmd_rsp),
    .err_valid_i(qp_err_valid), .err_ready_o(qp_err_ready), .err_idx_i(qp_err_idx),
    .err_access_i({rsp_err_access, 2'b00, qp_err_access}),
    .errev_valid_o(errev_valid), .errev_ready_i(errev_ready), .errev_idx_o(errev_idx),
    .errev_why_o(errev_why),
    .probe_qp_i(qt_probe), .busy_o(qt_busy), .dirty_o(qt_dirty),
    .ctx_valid_i(qt_ctx_valid), .ctx_ready_o(qt_ctx_ready), .ctx_load_i(qt_ctx_load), .ctx_qp_i(qt_ctx_qp), .ctx_i(qt_ctx_in), .ctx_o(qt_ctx_out),
    .drain_i(drain), .drain_done_o(drain_done[0]),
    .ev_fatal_o(ev_qp_fatal), .idle_o(block_idle[0])
  );

  logic       mr_cmd_valid, mr_cmd_ready, mr_cmd_lock, mr_cmd_rsp_valid, mr_cmd_rsp_bound, mr_cmd_rsp_err;
  mr_cmd_e    mr_cmd_op;
  mr_idx_t    mr_cmd_idx;
  mr_t        mr_cmd_mr, mr_cmd_rsp;
  qpn_t       mr_cmd_qpn;
  // changes: 0 responder, 1 requester
  logic [1:0] chg_valid, chg_ready, chg_rsp_valid;
  mr_change_t [1:0] chg;
  mr_result_e chg_rsp;
  mr_change_t req_chg;
  logic       bar_valid, bar_ready, bar_done;
  ctx_mem_t   mr_mem;
  ctx_ev_t    ev_mr;
  logic       mr_pf_valid;
  mr_idx_t    mr_pf_idx;


  logic          ah_cmd_valid, ah_cmd_we, ah_cmd_rsp_valid, gsi_valid;
  ah_idx_t       ah_cmd_idx;
  ah_t           ah_cmd_ah, ah_cmd_rsp;
  logic    [1:0] ah_req_valid, ah_rsp_valid;  // requester, egress
  ah_idx_t [1:0] ah_req_idx;
  ah_t     [1:0] ah_rsp;
  logic [23:0]   gsi_qpn, raw_qpn;
  logic          raw_valid, raw_rx;

  ah_table u_ah_table (
    .clk_i, .rst_ni(core_rst_n),
    .req_valid_i(ah_req_valid), .req_idx_i(ah_req_idx), .rsp_valid_o(ah_rsp_valid), .rsp_o(ah_rsp),
    .cmd_valid_i(ah_cmd_valid), .cmd_we_i(ah_cmd_we), .cmd_idx_i(ah_cmd_idx), .cmd_ah_i(ah_cmd_ah),
    .cmd_rsp_valid_o(ah_cmd_rsp_valid), .cmd_rsp_o(ah_cmd_rsp)
  );

  // ---- AXI --------------------------------------------------------------------------------------
  logic [NumRdClients-1:0]       ar_valid, ar_ready, r_valid;
  logic [NumRdClients-1:0][63:0] ar_addr;
  logic [NumRdClients-1:0][7:0]  ar_len;
  logic [DataW-1:0]              r_data;
  logic                          r_last, r_err;

  axi_rd_arb #(.DataW(DataW)) u_rd_arb (
    .clk_i, .rst_ni(core_rst_n), .stop_i(stop), .busy_o(rd_busy),
    .ar_valid_i(ar_valid), .ar_ready_o(ar_ready), .ar_addr_i(ar_addr), .ar_len_i(ar_len),
    .r_valid_o(r_valid), .r_data_o(r_data), .r_last_o(r_last), .r_err_o(r_err),
    .m_axi_arid_o, .m_axi_araddr_o, .m_axi_arlen_o, .m_axi_arsize_o, .m_axi_arburst_o,
    .m_axi_arvalid_o, .m_axi_arready_i,
    .m_axi_rid_i, .m_axi_rdata_i, .m_axi_rresp_i, .m_axi_rlast_i, .m_axi_rvalid_i, .m_axi_rready_o
  );

  logic [NumWrClients-1:0]       aw_valid, aw_ready, w_valid, w_ready, w_last, b_valid;
  logic [NumWrClients-1:0][63:0] aw_addr;
  logic [NumWrClients-1:0][7:0]  aw_len;
  logic [DataW-1:0]              w_data[NumWrClients];
  logic [DataW/8-1:0]            w_strb[NumWrClients];
  logic                          b_err;

  axi_wr_mux #(.DataW(DataW)) u_wr_mux (
    .clk_i, .rst_ni(core_rst_n), .stop_i(stop), .busy_o(wr_busy),
    .aw_valid_i(aw_valid), .aw_ready_o(aw_ready), .aw_addr_i(aw_addr), .aw_len_i(aw_len),
    .w_valid_i(w_valid), .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb),
    .w_last_i(w_last), .b_valid_o(b_valid), .b_err_o(b_err),
    .m_axi_awid_o, .m_axi_awaddr_o, .m_axi_awlen_o, .m_axi_awsize_o, .m_axi_awburst_o,
    .m_axi_awvalid_o, .m_axi_awready_i,
    .m_axi_wdata_o, .m_axi_wstrb_o, .m_axi_wlast_o, .m_axi_wvalid_o, .m_axi_wready_i,
    .m_axi_bid_i, .m_axi_bresp_i, .m_axi_bvalid_i, .m_axi_bready_o
  );

  mr_table #(.DataW(DataW), .NumPorts(NumMrPorts), .NumChg(2)) u_mr_table (
    .clk_i, .rst_ni(core_rst_n), .mem_i(mr_mem),
    .req_valid_i(mr_req_valid), .req_ready_o(mr_req_ready), .req_idx_i(mr_req_idx),
    .rsp_valid_o(mr_rsp_valid), .rsp_o(mr_rsp),
    .pf_valid_i(mr_pf_valid), .pf_idx_i(mr_pf_idx),
    .cmd_valid_i(mr_cmd_valid), .cmd_ready_o(mr_cmd_ready), .cmd_lock_i(mr_cmd_lock),
    .cmd_op_i(mr_cmd_op), .cmd_idx_i(mr_cmd_idx), .cmd_mr_i(mr_cmd_mr), .cmd_qpn_i(mr_cmd_qpn),
    .cmd_rsp_valid_o(mr_cmd_rsp_valid), .cmd_rsp_o(mr_cmd_rsp),
    .cmd_rsp_bound_o(mr_cmd_rsp_bound), .cmd_rsp_err_o(mr_cmd_rsp_err),
    .chg_valid_i(chg_valid), .chg_ready_o(chg_ready), .chg_i(chg),
    .chg_rsp_valid_o(chg_rsp_valid), .chg_rsp_o(chg_rsp), 
    .ar_valid_o(ar_valid[RdMr]), .ar_ready_i(ar_ready[RdMr]), .ar_addr_o(ar_addr[RdMr]), .ar_len_o(ar_len[RdMr]),
    .r_valid_i(r_valid[RdMr]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .aw_valid_o(aw_valid[WrMr]), .aw_ready_i(aw_ready[WrMr]), .aw_addr_o(aw_addr[WrMr]), .aw_len_o(aw_len[WrMr]),
    .w_valid_o(w_valid[WrMr]), .w_ready_i(w_ready[WrMr]), .w_data_o(w_data[WrMr]), .w_strb_o(w_strb[WrMr]),
    .w_last_o(w_last[WrMr]), .b_valid_i(b_valid[WrMr]), .b_err_i(b_err),
    .ev_o(ev_mr), .idle_o(block_idle[NumDrain+1])
  );

  logic slot_closed;
  qp_ctx #(.DataW(DataW), .LogSets(QpLogSets), .LogWays(QpLogWays), .NumPorts(NumLook)) u_qp_ctx (
    .clk_i, .rst_ni(core_rst_n), .mem_on_i(qp_mem.on), .mem_base_i(qp_mem.base[63:11]), .mem_log_num_i(qp_mem.log_num),
    .req_valid_i(look_valid), .req_ready_o(look_ready), .req_qpn_i(look_qpn), .req_create_i(look_create),
    .rsp_valid_o(look_rsp_valid), .rsp_status_o(look_status), .rsp_slot_o(look_slot), .rel_valid_i(look_rel), .rel_forget_i(look_forget),
    .pf_valid_i(qp_pf_valid), .pf_qpn_i(qp_pf_qpn), .bad_valid_o(qp_bad_valid), .bad_ready_i(qp_bad_ready), .bad_qpn_o(qp_bad_qpn),
    .ar_valid_o(ar_valid[RdQp]), .ar_ready_i(ar_ready[RdQp]), .ar_addr_o(ar_addr[RdQp]), .ar_len_o(ar_len[RdQp]),
    .r_valid_i(r_valid[RdQp]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .aw_valid_o(aw_valid[WrQp]), .aw_ready_i(aw_ready[WrQp]), .aw_addr_o(aw_addr[WrQp]), .aw_len_o(aw_len[WrQp]),
    .w_valid_o(w_valid[WrQp]), .w_ready_i(w_ready[WrQp]), .w_data_o(w_data[WrQp]), .w_strb_o(w_strb[WrQp]),
    .w_last_o(w_last[WrQp]), .b_valid_i(b_valid[WrQp]), .b_err_i(b_err),
    .qp_table_probe_qp_o(qt_probe), .qp_table_busy_i(qt_busy), .qp_table_dirty_i(qt_dirty), .qp_table_ctx_valid_o(qt_ctx_valid),
    .qp_table_ctx_ready_i(qt_ctx_ready), .qp_table_ctx_load_o(qt_ctx_load), .qp_table_ctx_qp_o(qt_ctx_qp), .qp_table_ctx_o(qt_ctx_in),
    .qp_table_ctx_i(qt_ctx_out),
    .rx_transport_probe_qp_o(rt_probe), .rx_transport_busy_i(rt_busy), .rx_transport_ctx_valid_o(rt_ctx_valid),
    .rx_transport_ctx_ready_i(rt_ctx_ready), .rx_transport_ctx_load_o(rt_ctx_load), .rx_transport_ctx_qp_o(rt_ctx_qp),
    .rx_transport_ctx_o(rt_ctx_in), .rx_transport_ctx_i(rt_ctx_out),
    .rq_cache_probe_qp_o(rq_probe), .rq_cache_busy_i(rq_busy), .rq_cache_ctx_valid_o(rq_ctx_valid), .rq_cache_ctx_ready_i(rq_ctx_ready),
    .rq_cache_ctx_load_o(rq_ctx_load), .rq_cache_ctx_word_o(rq_ctx_word), .rq_cache_ctx_qp_o(rq_ctx_qp), .rq_cache_ctx_o(rq_ctx_in),
    .rq_cache_ctx_i(rq_ctx_out), .rq_cache_ctx_at_o(rq_ctx_at), .rq_cache_ctx_entry_o(rq_entry_in), .rq_cache_ctx_entry_i(rq_entry_out),
    .rx_payload_writer_probe_qp_o(pw_probe), .rx_payload_writer_busy_i(pw_busy), .rx_payload_writer_ctx_load_o(pw_ctx_load),
    .rx_payload_writer_ctx_qp_o(pw_ctx_qp), .rx_payload_writer_ctx_o(pw_ctx_in), .rx_payload_writer_ctx_i(pw_ctx_out),
    .read_responder_probe_qp_o(rr_probe), .read_responder_busy_i(rr_busy), .read_responder_ctx_valid_o(rr_ctx_valid),
    .read_responder_ctx_ready_i(rr_ctx_ready), .read_responder_ctx_load_o(rr_ctx_load), .read_responder_ctx_word_o(rr_ctx_word),
    .read_responder_ctx_qp_o(rr_ctx_qp), .read_responder_ctx_o(rr_ctx_in), .read_responder_ctx_i(rr_ctx_out),
    .read_responder_ctx_at_o(rr_ctx_at), .read_responder_ctx_value_o(rr_value_in), .read_responder_ctx_value_i(rr_value_out),
    .requester_probe_qp_o(req_probe), .requester_busy_i(req_busy), .requester_open_i(req_open), .requester_ctx_valid_o(req_ctx_valid),
    .requester_ctx_ready_i(req_ctx_ready), .requester_ctx_load_o(req_ctx_load), .requester_ctx_what_o(req_ctx_what),
    .requester_ctx_qp_o(req_ctx_qp), .requester_ctx_qpn_o(req_ctx_qpn), .requester_ctx_at_o(req_ctx_at), .requester_ctx_o(req_ctx_in),
    .requester_ctx_flight_o(req_flight_in), .requester_ctx_entry_o(req_entry_in), .requester_ctx_rsp_valid_i(req_ctx_rsp_valid),
    .requester_ctx_i(req_ctx_out), .requester_ctx_flight_i(req_flight_out), .requester_ctx_entry_i(req_entry_out),
    .ack_queue_probe_qp_o(aq_probe), .ack_queue_busy_i(aq_busy), .tx_egress_probe_qp_o(eg_probe), .tx_egress_busy_i(eg_busy),
    .closed_o(slot_closed), .ev_o(ev_qp), .idle_o(block_idle[NumDrain+2])
  );

  // what leaves with the number of its QP: CQEs of receives and sends, errors, turns, changes of MRs
  qp_idx_t [4:0] name_qp;
  qpn_t    [4:0] name;
  qp_names #(.NumPorts(5)) u_qp_names (
    .clk_i, .load_i(qt_ctx_valid && qt_ctx_ready && qt_ctx_load), .load_qp_i(qt_ctx_qp), .load_qpn_i(qt_ctx_in.qpn),
    .qp_i(name_qp), .qpn_o(name)
  );


  // ---- receive ----------------------------------------------------------------------------------
  logic                       in_meta_valid, in_meta_ready, meta_valid, meta_ready, meta_none, meta_late;
  rx_meta_t                   in_meta, meta;
  qp_idx_t                    meta_qp;
  logic                       pcmd_valid, pcmd_ready;
  payload_cmd_e               pcmd;
  logic                       grh_valid, grh_ready;
  rx_grh_t                    grh;
  logic                       rxpl_valid, rxpl_ready, rxpl_last, wrpl_valid, wrpl_ready, wrpl_last;
  logic [DataW-1:0]           wrpl_data;
  logic [LaneW-1:0]           wrpl_off;
  logic [LaneW:0]             wrpl_cnt;
  logic [DataW-1:0]           rxpl_data;
  logic [LaneW-1:0]           rxpl_off;
  logic [LaneW:0]             rxpl_cnt;
  rnic_regs_pkg::rx_verdict_t verdict;
  prio_map_t                  prio_map;
  logic                       rx_full, tx_held, pfc_busy, ev_storm_warning, ev_storm_error, ev_pause_ignored;
  logic [15:0]                rx_units, rx_frames;
  logic [2:0]                 tx_held_prio;
  logic [7:0]                 tx_pause, ev_rx_pause, ev_tx_pause;
  assign prio_map = '{trust_dscp: reg2hw.pfc_ctrl.trust_dscp, default_prio: reg2hw.pfc_ctrl.default_prio};

  rx_frontend #(.DataW(DataW)) u_rx_frontend (
    .clk_i, .rst_ni(core_rst_n),
    .enable_i(enable), .promisc_i(reg2hw.rx_ctrl.promisc), .raw_en_i(raw_rx), .mac_addr_i(reg2hw.mac_addr.addr),
    .prio_map_i(prio_map), .lossless_i(reg2hw.pfc_ctrl.enable), .full_i(rx_full), .units_o(rx_units), .frames_o(rx_frames),
    .rx_valid_i(rx_valid_i && !rx_skip), .rx_data_i, .rx_keep_i, .rx_last_i, .rx_user_i,
    .pf_valid_o(mr_pf_valid), .pf_idx_o(mr_pf_idx), .pf_qp_valid_o(qp_pf_valid), .pf_qpn_o(qp_pf_qpn),
    .meta_valid_o(in_meta_valid), .meta_ready_i(in_meta_ready), .meta_o(in_meta),
    .pcmd_valid_i(pcmd_valid), .pcmd_ready_o(pcmd_ready), .pcmd_i(pcmd),
    .pl_valid_o(rxpl_valid), .pl_ready_i(rxpl_ready), .pl_data_o(rxpl_data),
    .pl_off_o(rxpl_off), .pl_cnt_o(rxpl_cnt), .pl_last_o(rxpl_last),
    .verdict_valid_o, .verdict_o(verdict),
    .drain_i(drain), .drain_done_o(drain_done[1]), .idle_o(block_idle[1])
  );
  assign verdict_o = verdict;

  rx_lookup u_rx_lookup (
    .clk_i, .rst_ni(core_rst_n), .gsi_valid_i(gsi_valid), .gsi_qpn_i(gsi_qpn), .raw_valid_i(raw_valid), .raw_qpn_i(raw_qpn), .paused_i(tx_held),
    .meta_valid_i(in_meta_valid), .meta_ready_o(in_meta_ready), .meta_i(in_meta),
    .req_valid_o(look_valid[2:1]), .req_ready_i(look_ready[2:1]), .req_qpn_o(look_qpn[2:1]), .rsp_valid_i(look_rsp_valid[2:1]),
    .rsp_status_i(look_status[2:1]), .rsp_slot_i(look_slot[2:1]), .rel_valid_o(look_rel[2:1]),
    .meta_valid_o(meta_valid), .meta_ready_i(meta_ready), .meta_o(meta), .qp_o(meta_qp), .none_o(meta_none), .late_o(meta_late),
    .drain_i(drain), .drain_done_o(drain_done[13]), .idle_o(block_idle[14])
  );

  logic       rsp_adm_valid, rsp_adm_ready, rsp_adm_rsp_valid;
  qp_admin_t  rsp_adm;
  rsp_query_t rsp_adm_rsp;
  logic       wr_valid, wr_ready;
  rx_write_t  wr;
  logic       ackrx_valid, ackrx_ready;
  ack_rx_t    ackrx, txsent, reqack;
  logic       txsent_valid, txsent_ready, reqack_valid, reqack_ready;
  logic       ev_drop_valid, ev_no_buffer, ev_read, ev_atomic;
  rx_read_t   rd;
  qp_idx_t    rd_qp;
  logic       rd_done_valid;
  rsp_done_t  rd_done;
  rsp_slot_t  rd_left;
  logic       wrack_valid, wrack_ready, rxack_valid, rxack_ready, sq_flush_valid, sq_flush_ready;
  qp_idx_t    sq_flush_idx;
  ack_rx_t    wrack, rxack;
  logic       rt_re, rt_update_valid, ev_implied, ev_dup_rsp, ev_ghost_rsp;
  qp_idx_t    rt_qp;
  rd_view_t   rt_view;
  rd_update_t rt_update;
  logic [4:0] ev_drop;
  logic       mark_valid;
  qpn_t       mark_qpn;
  logic [2:0] mark_prio;
  logic       rq_req_valid, rq_req_ready, rq_rsp_valid, rq_flush_valid, rq_flush_ready;
  rq_req_t    rq_req;
  rq_rsp_t    rq_rsp;
  rq_flush_t  rq_flush;
  qp_idx_t    cr_qp;
  logic       cr_tell, ev_credit_update;
  logic [4:0] cr_code;
  logic       rq_adm_valid, rq_adm_ready, rq_adm_init, rq_adm_rsp_valid;
  qp_idx_t    rq_adm_qp;
  rq_query_t  rq_adm_rsp;
  logic [2:0] ev_rq_wqe;
  logic       ev_rq_bad_db, ev_rq_axi_err;
  logic        srq_cmd_valid, srq_cmd_ready, srq_cmd_rsp_valid;
  srq_cmd_e    srq_cmd_op;
  srq_idx_t    srq_cmd_idx;
  srq_attr_t   srq_cmd_attr;
  logic [15:0] srq_cmd_limit;
  srq_ctx_t    srq_cmd_rsp;
  logic        srq_cmd_rsp_err, srq_req_valid, srq_req_ready, srq_rsp_valid, srqev_valid, srqev_ready, srq_swept;
  srq_idx_t    srq_req_srqn;
  srq_rsp_t    srq_rsp;
  async_ev_t   srqev;
  ctx_mem_t    srq_mem;
  ctx_ev_t     ev_srq;
  logic [2:0]  ev_srq_wqe;
  logic        ev_srq_limit, ev_srq_fatal, ev_srq_bad_db, ev_srq_axi_err, srq_hint_valid;
  qp_idx_t     srq_hint_slot;

  // QPs that went to ERR: told to the requester (by way of the payload writer), to the receive queues and, if by itself, as an
  // event.
  logic errev_req_q, errev_rq_q, errev_ev_q, errev_req_ready, errev_rq_ready;
  logic qpev_valid, qpev_ready, errev_ev_ready;
  async_ev_t qpev;
  assign qpev_valid = errev_valid && !errev_ev_q && errev_why != QpErrCmd;
  assign errev_ev_ready = qpev_ready || errev_why == QpErrCmd;
  assign qpev = '{
    ev_type: errev_why == QpErrAccess ? rnic_regs_pkg::EqeTypeQpAccessErr : rnic_regs_pkg::EqeTypeQpFatal,
    object: 32'(name[2]), detail: '0
  };
  assign name_qp[2] = errev_idx;
  assign errev_ready = (errev_req_q || errev_req_ready) && (errev_rq_q || errev_rq_ready) &&
                       (errev_ev_q || errev_ev_ready);
  always_ff @(posedge clk_i) begin
    if (!core_rst_n || !errev_valid || errev_ready) begin
      errev_req_q <= 1'b0;
      errev_rq_q <= 1'b0;
      errev_ev_q <= 1'b0;
    end else begin
      if (errev_req_ready) errev_req_q <= 1'b1;
      if (errev_rq_ready) errev_rq_q <= 1'b1;
      if (errev_ev_ready) errev_ev_q <= 1'b1;
    end
  end

  rq_cache #(.DataW(DataW)) u_rq_cache (
    .clk_i, .rst_ni(core_rst_n),
    .probe_qp_i(rq_probe), .busy_o(rq_busy), .ctx_valid_i(rq_ctx_valid), .ctx_ready_o(rq_ctx_ready), .ctx_load_i(rq_ctx_load),
    .ctx_word_i(rq_ctx_word), .ctx_qp_i(rq_ctx_qp), .ctx_i(rq_ctx_in), .ctx_o(rq_ctx_out), .ctx_at_i(rq_ctx_at), .ctx_entry_i(rq_entry_in),
    .ctx_entry_o(rq_entry_out),
    .db_valid_i(hrq_valid), .db_ready_o(rqc_db_ready), .db_qp_i(hrq_qp), .db_pi_i(hrq_pi),
    .err_valid_i(errev_valid && !errev_rq_q), .err_ready_o(errev_rq_ready),
    .err_idx_i(errev_idx),
    .qp_req_valid_o(qp_req_valid[5]), .qp_req_ready_i(qp_req_ready[5]),
    .qp_req_idx_o(qp_req_idx[5]), .qp_rsp_valid_i(qp_rsp_valid[5]), .qp_rsp_i(qp_rsp[5]),
    .ar_valid_o(ar_valid[RdRq]), .ar_ready_i(ar_ready[RdRq]),
    .ar_addr_o(ar_addr[RdRq]), .ar_len_o(ar_len[RdRq]),
    .r_valid_i(r_valid[RdRq]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .rq_req_valid_i(rq_req_valid), .rq_req_ready_o(rq_req_ready), .rq_req_i(rq_req),
    .rq_rsp_valid_o(rq_rsp_valid), .rq_rsp_o(rq_rsp),
    .cr_qp_i(cr_qp), .cr_tell_i(cr_tell), .cr_code_o(cr_code),
    .flush_valid_o(rq_flush_valid), .flush_ready_i(rq_flush_ready), .flush_o(rq_flush),
    .adm_valid_i(rq_adm_valid), .adm_ready_o(rq_adm_ready), .adm_init_i(rq_adm_init),
    .adm_qp_i(rq_adm_qp), .adm_rsp_valid_o(rq_adm_rsp_valid), .adm_rsp_o(rq_adm_rsp),
    .srq_req_valid_o(srq_req_valid), .srq_req_ready_i(srq_req_ready), .srq_req_srqn_o(srq_req_srqn),
    .srq_rsp_valid_i(srq_rsp_valid), .srq_rsp_i(srq_rsp),
    .drain_i(drain), .drain_done_o(drain_done[9]), .idle_o(block_idle[10]),
    .ev_wqe_o(ev_rq_wqe), .ev_bad_db_o(ev_rq_bad_db), .ev_axi_err_o(ev_rq_axi_err)
  );

  // a packet has its slot, some time before it is at work
  assign srq_hint_valid = |look_rsp_valid[2:1];
  assign srq_hint_slot = look_rsp_valid[1] ? look_slot[1] : look_slot[2];
  srq_cache #(.DataW(DataW)) u_srq_cache (
    .clk_i, .rst_ni(core_rst_n), .ready_o(srq_swept), .mem_i(srq_mem),
    .db_valid_i(db_valid && db_is_srq), .db_ready_o(srq_db_ready), .db_srqn_i(db_srq.srqn), .db_pi_i(db_srq.pi),
    .slot_we_i(srq_slot_we), .slot_i(srq_slot), .slot_has_srq_i(srq_slot_has), .slot_srqn_i(srq_slot_srqn),
    .hint_valid_i(srq_hint_valid), .hint_slot_i(srq_hint_slot),
    .req_valid_i(srq_req_valid), .req_ready_o(srq_req_ready), .req_srqn_i(srq_req_srqn), .rsp_valid_o(srq_rsp_valid), .rsp_o(srq_rsp),
    .cmd_valid_i(srq_cmd_valid), .cmd_ready_o(srq_cmd_ready), .cmd_op_i(srq_cmd_op), .cmd_idx_i(srq_cmd_idx),
    .cmd_attr_i(srq_cmd_attr), .cmd_limit_i(srq_cmd_limit),
    .cmd_rsp_valid_o(srq_cmd_rsp_valid), .cmd_rsp_err_o(srq_cmd_rsp_err), .cmd_rsp_o(srq_cmd_rsp),
    .ar_valid_o(ar_valid[RdSrqWqe]), .ar_ready_i(ar_ready[RdSrqWqe]), .ar_addr_o(ar_addr[RdSrqWqe]), .ar_len_o(ar_len[RdSrqWqe]),
    .r_valid_i(r_valid[RdSrqWqe]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .ctx_ar_valid_o(ar_valid[RdSrq]), .ctx_ar_ready_i(ar_ready[RdSrq]), .ctx_ar_addr_o(ar_addr[RdSrq]), .ctx_ar_len_o(ar_len[RdSrq]),
    .ctx_r_valid_i(r_valid[RdSrq]), .ctx_r_data_i(r_data), .ctx_r_last_i(r_last), .ctx_r_err_i(r_err),
    .ctx_aw_valid_o(aw_valid[WrSrq]), .ctx_aw_ready_i(aw_ready[WrSrq]), .ctx_aw_addr_o(aw_addr[WrSrq]), .ctx_aw_len_o(aw_len[WrSrq]),
    .ctx_w_valid_o(w_valid[WrSrq]), .ctx_w_ready_i(w_ready[WrSrq]), .ctx_w_data_o(w_data[WrSrq]), .ctx_w_strb_o(w_strb[WrSrq]),
    .ctx_w_last_o(w_last[WrSrq]), .ctx_b_valid_i(b_valid[WrSrq]), .ctx_b_err_i(b_err),
    .event_valid_o(srqev_valid), .event_ready_i(srqev_ready), .event_o(srqev),
    .drain_i(drain), .drain_done_o(drain_done[15]),
    .ev_wqe_o(ev_srq_wqe), .ev_limit_o(ev_srq_limit), .ev_fatal_o(ev_srq_fatal), .ev_bad_db_o(ev_srq_bad_db), .ev_axi_err_o(ev_srq_axi_err),
    .ev_ctx_o(ev_srq), .idle_o(block_idle[16])
  );

  rx_transport u_rx_transport (
    .clk_i, .rst_ni(core_rst_n), .coalesce_i(reg2hw.ack_ctrl.coalesce),
    .probe_qp_i(rt_probe), .busy_o(rt_busy), .ctx_valid_i(rt_ctx_valid), .ctx_ready_o(rt_ctx_ready), .ctx_load_i(rt_ctx_load),
    .ctx_qp_i(rt_ctx_qp), .ctx_i(rt_ctx_in), .ctx_o(rt_ctx_out),
    .meta_valid_i(meta_valid), .meta_ready_o(meta_ready), .meta_i(meta), .meta_qp_i(meta_qp), .meta_none_i(meta_none), .meta_late_i(meta_late),
    .pcmd_valid_o(pcmd_valid), .pcmd_ready_i(pcmd_ready), .pcmd_o(pcmd),
    .grh_valid_o(grh_valid), .grh_ready_i(grh_ready), .grh_o(grh),
    .qp_req_valid_o(qp_req_valid[0]), .qp_req_ready_i(qp_req_ready[0]),
    .qp_req_idx_o(qp_req_idx[0]), .qp_rsp_valid_i(qp_rsp_valid[0]), .qp_rsp_i(qp_rsp[0]),
    .mr_req_valid_o(mr_req_valid[0]), .mr_req_ready_i(mr_req_ready[0]),
    .mr_req_idx_o(mr_req_idx[0]), .mr_rsp_valid_i(mr_rsp_valid[0]), .mr_rsp_i(mr_rsp[0]),
    .rq_req_valid_o(rq_req_valid), .rq_req_ready_i(rq_req_ready), .rq_req_o(rq_req),
    .rq_rsp_valid_i(rq_rsp_valid), .rq_rsp_i(rq_rsp),
    .cr_qp_o(cr_qp), .cr_tell_o(cr_tell), .cr_code_i(cr_code),
    .flush_valid_i(rq_flush_valid), .flush_ready_o(rq_flush_ready), .flush_i(rq_flush),
    .rq_adm_valid_o(rq_adm_valid), .rq_adm_ready_i(rq_adm_ready), .rq_adm_init_o(rq_adm_init),
    .rq_adm_qp_o(rq_adm_qp), .rq_adm_rsp_valid_i(rq_adm_rsp_valid), .rq_adm_rsp_i(rq_adm_rsp),
    .wr_valid_o(wr_valid), .wr_ready_i(wr_ready), .wr_o(wr), .rd_o(rd),
    .rd_qp_o(rd_qp), .rd_done_valid_i(rd_done_valid), .rd_done_i(rd_done), .rd_left_i(rd_left),
    .chg_valid_o(chg_valid[0]), .chg_ready_i(chg_ready[0]), .chg_o(chg[0]),
    .chg_rsp_valid_i(chg_rsp_valid[0]), .chg_rsp_i(chg_rsp),
    .sq_flush_valid_i(errev_valid && !errev_req_q), .sq_flush_ready_o(errev_req_ready),
    .sq_flush_idx_i(errev_idx),
    .bar_valid_i(bar_valid), .bar_ready_o(bar_ready),
    .ackrx_valid_o(ackrx_valid), .ackrx_ready_i(ackrx_ready), .ackrx_o(ackrx),
    .qp_err_valid_o(qp_err_valid[0]), .qp_err_ready_i(qp_err_ready[0]),
    .qp_err_idx_o(qp_err_idx[0]), .qp_err_access_o(qp_err_access),
    .adm_valid_i(rsp_adm_valid), .adm_ready_o(rsp_adm_ready), .adm_i(rsp_adm),
    .adm_rsp_valid_o(rsp_adm_rsp_valid), .adm_rsp_o(rsp_adm_rsp),
    .rt_re_o(rt_re), .rt_qp_o(rt_qp), .rt_view_i(rt_view),
    .rt_update_valid_o(rt_update_valid), .rt_update_o(rt_update),
    .mark_valid_o(mark_valid), .mark_qpn_o(mark_qpn), .mark_prio_o(mark_prio),
    .ev_implied_o(ev_implied), .ev_dup_rsp_o(ev_dup_rsp), .ev_ghost_rsp_o(ev_ghost_rsp),
    .drain_i(drain), .drain_done_o(drain_done[2]), .idle_o(block_idle[2]),
    .ev_drop_valid_o(ev_drop_valid), .ev_drop_o(ev_drop), .ev_rnr_o(ev_no_buffer), .ev_credit_update_o(ev_credit_update),
    .ev_read_o(ev_read), .ev_atomic_o(ev_atomic)
  );

  // DCQCN, notification point: CE marks to CNPs. What becomes of a QPN begins when its QP is made or connected.
  logic        np_forget, cnp_valid, cnp_ready, hcnp_valid, hcnp_ready, np_wake_valid;
  qpn_t        cnp_qpn;
  qp_idx_t     hcnp_qp;
  logic [63:0] np_wake;
  assign np_forget = qp_cmd_valid && qp_cmd_op != QpCmdRead && qp_cmd_attr.state inside {QpReset, QpInit, QpRtr, QpNone};
  cc_np #(.ClkPs(ClkPs)) u_cc_np (
    .clk_i, .rst_ni(core_rst_n), .time_i,
    .enable_i(reg2hw.np_ctrl.enable), .per_port_i(reg2hw.np_ctrl.per_port), .prio_mask_i(reg2hw.np_ctrl.prio_mask),
    .min_us_i(reg2hw.np_min_time_between_cnps.us),
    .mark_valid_i(mark_valid), .mark_qpn_i(mark_qpn), .mark_prio_i(mark_prio),
    .forget_valid_i(np_forget), .forget_qpn_i(qp_cmd_attr.qpn),
    .cnp_valid_o(cnp_valid), .cnp_ready_i(cnp_ready), .cnp_qpn_o(cnp_qpn),
    .wake_valid_o(np_wake_valid), .wake_o(np_wake), .idle_o(block_idle[NumDrain+3])
  );

  logic        ackq_valid, ackin_ready, ackin_valid;
  ack_t        ackq, ackin;
  logic        rx_cqe_valid, rx_cqe_ready;
  cqe_ev_t     rx_cqe;
  logic        ev_rx_bytes_valid, ev_rx_message, ev_rx_send, ev_wr_axi_err, ev_nak_op, ev_stall_rx_dma;
  logic [12:0] ev_rx_bytes;
  logic        at_valid, at_ready, at_done, at_err, ev_at_rd_err, ev_at_wr_err;
  atomic_t     at;
  logic [63:0] at_value;
  logic        rspjob_valid, rspjob_ready;
  rsp_job_t    rspjob;
  logic        rspnak_valid, rspnak_ready, ev_rsp_nak_access, ev_rsp_nak_op;
  ack_t        rspnak;
  qp_idx_t [1:0] hold_qp;
  logic [1:0]  hold;

  grh_insert #(.DataW(DataW)) u_grh_insert (
    .clk_i, .rst_ni(core_rst_n),
    .grh_valid_i(grh_valid), .grh_ready_o(grh_ready), .grh_i(grh),
    .pl_valid_i(rxpl_valid), .pl_ready_o(rxpl_ready), .pl_data_i(rxpl_data),
    .pl_off_i(rxpl_off), .pl_cnt_i(rxpl_cnt), .pl_last_i(rxpl_last),
    .pl_valid_o(wrpl_valid), .pl_ready_i(wrpl_ready), .pl_data_o(wrpl_data),
    .pl_off_o(wrpl_off), .pl_cnt_o(wrpl_cnt), .pl_last_o(wrpl_last)
  );

  rx_payload_writer #(.DataW(DataW)) u_rx_payload_writer (
    .clk_i, .rst_ni(core_rst_n),
    .wr_valid_i(wr_valid), .wr_ready_o(wr_ready), .wr_i(wr), .rd_i(rd),
    .pl_valid_i(wrpl_valid), .pl_ready_o(wrpl_ready), .pl_data_i(wrpl_data),
    .pl_off_i(wrpl_off), .pl_cnt_i(wrpl_cnt), .pl_last_i(wrpl_last),
    .aw_valid_o(aw_valid[WrPayload]), .aw_ready_i(aw_ready[WrPayload]),
    .aw_addr_o(aw_addr[WrPayload]), .aw_len_o(aw_len[WrPayload]),
    .w_valid_o(w_valid[WrPayload]), .w_ready_i(w_ready[WrPayload]),
    .w_data_o(w_data[WrPayload]), .w_strb_o(w_strb[WrPayload]),
    .w_last_o(w_last[WrPayload]), .b_valid_i(b_valid[WrPayload]), .b_err_i(b_err),
    .ack_valid_o(ackin_valid), .ack_o(ackin),
    .atomic_valid_o(at_valid), .atomic_ready_i(at_ready), .atomic_o(at),
    .atomic_done_i(at_done), .atomic_err_i(at_err), .atomic_value_i(at_value),
    .hold_qp_o(hold_qp[1]), .hold_i(hold[1]), .rsp_valid_o(rspjob_valid), .rsp_ready_i(rspjob_ready), .rsp_o(rspjob),
    .ackrx_valid_o(wrack_valid), .ackrx_ready_i(wrack_ready), .ackrx_o(wrack),
    .sq_flush_valid_o(sq_flush_valid), .sq_flush_ready_i(sq_flush_ready), .sq_flush_idx_o(sq_flush_idx),
    .cqe_valid_o(rx_cqe_valid), .cqe_ready_i(rx_cqe_ready), .cqe_o(rx_cqe),
    .qp_err_valid_o(qp_err_valid[1]), .qp_err_ready_i(qp_err_ready[1]),
    .qp_err_idx_o(qp_err_idx[1]),
    .bar_done_o(bar_done), .ev_bytes_valid_o(ev_rx_bytes_valid), .ev_bytes_o(ev_rx_bytes), .ev_message_o(ev_rx_message),
    .ev_send_o(ev_rx_send),
    .ev_axi_err_o(ev_wr_axi_err), .ev_nak_op_o(ev_nak_op), .ev_stall_o(ev_stall_rx_dma),
    .probe_qp_i(pw_probe), .busy_o(pw_busy), .ctx_load_i(pw_ctx_load), .ctx_qp_i(pw_ctx_qp), .ctx_i(pw_ctx_in), .ctx_o(pw_ctx_out),
    .drain_i(drain), .drain_done_o(drain_done[3]), .idle_o(block_idle[3])
  );

  atomic_unit #(.DataW(DataW)) u_atomic_unit (
    .clk_i, .rst_ni(core_rst_n),
    .req_valid_i(at_valid), .req_ready_o(at_ready), .req_i(at),
    .done_o(at_done), .err_o(at_err), .value_o(at_value),
    .ar_valid_o(ar_valid[RdAtomic]), .ar_ready_i(ar_ready[RdAtomic]),
    .ar_addr_o(ar_addr[RdAtomic]), .ar_len_o(ar_len[RdAtomic]),
    .r_valid_i(r_valid[RdAtomic]), .r_data_i(r_data), .r_err_i(r_err),
    .aw_valid_o(aw_valid[WrAtomic]), .aw_ready_i(aw_ready[WrAtomic]),
    .aw_addr_o(aw_addr[WrAtomic]), .aw_len_o(aw_len[WrAtomic]),
    .w_valid_o(w_valid[WrAtomic]), .w_ready_i(w_ready[WrAtomic]),
    .w_data_o(w_data[WrAtomic]), .w_strb_o(w_strb[WrAtomic]),
    .w_last_o(w_last[WrAtomic]), .b_valid_i(b_valid[WrAtomic]), .b_err_i(b_err),
    .ev_rd_err_o(ev_at_rd_err), .ev_wr_err_o(ev_at_wr_err)
  );

  ack_queue u_ack_queue (
    .clk_i, .rst_ni(core_rst_n),
    .in_valid_i(ackin_valid), .in_i(ackin),
    .nak_valid_i(rspnak_valid), .nak_ready_o(rspnak_ready), .nak_i(rspnak),
    .hold_qp_o(hold_qp[0]), .hold_i(hold[0]),
    .out_valid_o(ackq_valid), .out_ready_i(ackin_ready), .out_o(ackq),
    .probe_qp_i(aq_probe), .busy_o(aq_busy),
    .idle_o(block_idle[4]), .drain_i(drain), .drain_done_o(drain_done[4])
  );

  // ---- transmit ---------------------------------------------------------------------------------
  // packets and fragments of requester and responder, joined, and behind inline_mux
  logic             reqpkt_valid, reqpkt_ready, rsppkt_valid, rsppkt_ready;
  logic             bothpkt_valid, bothpkt_ready, pkt_valid, pkt_ready;
  logic             reqfrag_valid, reqfrag_ready, rspfrag_valid, rspfrag_ready, frag_valid, frag_ready;
  tx_pkt_t          reqpkt, rsppkt, pkt;
  tx_frag_t         reqfrag, rspfrag, frag;
  logic             txpl_valid, txpl_ready, txpl_last, txpl_err;
  logic [DataW-1:0] txpl_data;
  logic [LaneW:0]   txpl_cnt;
  logic             txerr_valid, reqerr_ready, rsperr_ready;
  tx_err_t          txerr;
  logic             req_cqe_valid, req_cqe_ready, cqe_valid, cqe_ready;
  cqe_ev_t          req_cqe, cqe;
  logic             req_adm_valid, req_adm_ready, req_adm_rsp_valid;
  qp_admin_t        req_adm;
  req_query_t       req_adm_rsp;
  logic [3:0]       ev_wqe;
  logic             ev_push;
  logic [2:0]       ev_push_unused;
  logic             ev_sq_bad_db, ev_ack, ev_nak, ev_ghost, ev_window, ev_credit, ev_wqe_axi_err;
  logic             ev_timeout, ev_nak_seq, ev_rnr, ev_again, ev_tx_read, ev_tx_atomic;
  logic             req_wake_valid, cq_wake_valid;
  logic [63:0]      req_wake, cq_wake;
  logic             inl_valid, inl_ready;
  logic [requester_pkg::InlineBytes*8-1:0] inl_data;
  logic [6:0]       inl_len;
  logic             mempl_valid, mempl_ready, mempl_last, mempl_err;
  logic [DataW-1:0] mempl_data;
  logic [LaneW:0]   mempl_cnt;

  // What happens to QPs that may have no slot: doorbells, timers, turns to send, CNPs.
  logic             exp_valid, exp_ready, leave_valid, leave_ready, list_busy, cleared;
  logic             hsq_valid, hsq_ready, htmr_valid, htmr_ready, hturn_valid, hturn_ready;
  qpn_t             exp_qpn;
  qp_idx_t          leave_qp, hsq_qp, htmr_qp, hturn_qp;
  wqe_idx_t         hsq_pi;
  wqe_copy_t        claim_copy, sq_copy, hsq_copy;
  logic [2:0]       drop_valid;
  logic [1:0]       ev_bad_qpn;
  copy_idx_t [2:0]  drop_at;
  always_comb begin
    sq_copy = claim_copy;
    sq_copy.valid = db_sq.pushed && claim_copy.valid;
  end
  assign name_qp[3] = leave_qp;
  qp_service #(.NumWork(NumWork)) u_qp_service (
    .clk_i, .rst_ni(core_rst_n), .ready_o(cleared),
    .sq_valid_i(db_valid && db_is_sq), .sq_ready_o(sq_db_ready), .sq_qpn_i(db_sq.qpn), .sq_pi_i(db_sq.pi),
    .sq_copy_i(sq_copy),
    .rq_valid_i(db_valid && db_is_rq), .rq_ready_o(rq_db_ready), .rq_qpn_i(db_rq.qpn), .rq_pi_i(db_rq.pi),
    .tmr_valid_i(exp_valid), .tmr_ready_o(exp_ready), .tmr_qpn_i(exp_qpn),
    .turn_valid_i(leave_valid), .turn_ready_o(leave_ready), .turn_qpn_i(name[3]),
    .cnp_valid_i(cnp_valid), .cnp_ready_o(cnp_ready), .cnp_qpn_i(cnp_qpn),
    .req_valid_o(look_valid[NumLook-1:3]), .req_ready_i(look_ready[NumLook-1:3]), .req_qpn_o(look_qpn[NumLook-1:3]),
    .rsp_valid_i(look_rsp_valid[NumLook-1:3]), .rsp_status_i(look_status[NumLook-1:3]), .rsp_slot_i(look_slot[NumLook-1:3]),
    .rel_valid_o(look_rel[NumLook-1:3]),
    .hsq_valid_o(hsq_valid), .hsq_ready_i(hsq_ready), .hsq_qp_o(hsq_qp), .hsq_pi_o(hsq_pi), .hsq_copy_o(hsq_copy),
    .hrq_valid_o(hrq_valid), .hrq_ready_i(rqc_db_ready), .hrq_qp_o(hrq_qp), .hrq_pi_o(hrq_pi),
    .htmr_valid_o(htmr_valid), .htmr_ready_i(htmr_ready), .htmr_qp_o(htmr_qp),
    .hturn_valid_o(hturn_valid), .hturn_ready_i(hturn_ready), .hturn_qp_o(hturn_qp),
    .hcnp_valid_o(hcnp_valid), .hcnp_ready_i(hcnp_ready), .hcnp_qp_o(hcnp_qp),
    .drop_valid_o(drop_valid), .drop_at_o(drop_at), .list_busy_o(list_busy),
    .drain_i(drain), .drain_done_o(drain_done[14]), .ev_bad_db_o(ev_bad_qpn), .idle_o(block_idle[15])
  );

  requester #(.DataW(DataW), .ClkPs(ClkPs)) u_requester (
    .probe_qp_i(req_probe), .busy_o(req_busy), .open_o(req_open), .ctx_valid_i(req_ctx_valid), .ctx_ready_o(req_ctx_ready), .ctx_load_i(req_ctx_load),
    .ctx_what_i(req_ctx_what), .ctx_qp_i(req_ctx_qp), .ctx_at_i(req_ctx_at), .ctx_qpn_i(req_ctx_qpn), .ctx_i(req_ctx_in),
    .ctx_flight_i(req_flight_in), .ctx_entry_i(req_entry_in), .ctx_rsp_valid_o(req_ctx_rsp_valid), .ctx_o(req_ctx_out),
    .ctx_flight_o(req_flight_out), .ctx_entry_o(req_entry_out),
    .clk_i, .rst_ni(core_rst_n), .time_i,
    .window_i(reg2hw.tx_ctrl.window), .req_interval_i(reg2hw.ack_ctrl.req_interval),
    .quantum_log_i(reg2hw.tx_ctrl.quantum_log),
    .list_busy_i(list_busy), .closed_i(slot_closed), .exp_valid_o(exp_valid), .exp_ready_i(exp_ready), .exp_qpn_o(exp_qpn),
    .tmr_valid_i(htmr_valid), .tmr_ready_o(htmr_ready), .tmr_qp_i(htmr_qp),
    .leave_valid_o(leave_valid), .leave_ready_i(leave_ready), .leave_qp_o(leave_qp),
    .turn_valid_i(hturn_valid), .turn_ready_o(hturn_ready), .turn_qp_i(hturn_qp),
    .db_valid_i(hsq_valid), .db_ready_o(hsq_ready), .db_qp_i(hsq_qp), .db_pi_i(hsq_pi), .db_copy_i(hsq_copy),
    .push_valid_i(db_valid && db_is_push), .push_page_i(db_page), .push_word_i(db_offset[6:3]), .push_data_i(db_data),
    .claim_valid_i(db_valid && db_is_sq && sq_db_ready && db_sq.pushed), .claim_qpn_low_i(db_sq.qpn[7:0]), .claim_pi_i(db_sq.pi),
    .claim_copy_o(claim_copy), .drop_valid_i(drop_valid), .drop_at_i(drop_at),
    .ackrx_valid_i(reqack_valid), .ackrx_ready_o(reqack_ready), .ackrx_i(reqack),
    .err_valid_i(txerr_valid && !txerr.response), .err_ready_o(reqerr_ready), .err_i(txerr),
    .flush_valid_i(sq_flush_valid), .flush_ready_o(sq_flush_ready), .flush_idx_i(sq_flush_idx),
    .qpa_req_valid_o(qp_req_valid[2]), .qpa_req_ready_i(qp_req_ready[2]),
    .qpa_req_idx_o(qp_req_idx[2]), .qpa_rsp_valid_i(qp_rsp_valid[2]), .qpa_rsp_i(qp_rsp[2]),
    .qpb_req_valid_o(qp_req_valid[3]), .qpb_req_ready_i(qp_req_ready[3]),
    .qpb_req_idx_o(qp_req_idx[3]), .qpb_rsp_valid_i(qp_rsp_valid[3]), .qpb_rsp_i(qp_rsp[3]),
    .qpc_req_valid_o(qp_req_valid[4]), .qpc_req_ready_i(qp_req_ready[4]),
    .qpc_req_idx_o(qp_req_idx[4]), .qpc_rsp_valid_i(qp_rsp_valid[4]), .qpc_rsp_i(qp_rsp[4]),
    .ah_req_valid_o(ah_req_valid[0]), .ah_req_idx_o(ah_req_idx[0]),
    .ah_rsp_valid_i(ah_rsp_valid[0]), .ah_rsp_i(ah_rsp[0]),
    .mr_req_valid_o(mr_req_valid[1]), .mr_req_ready_i(mr_req_ready[1]),
    .mr_req_idx_o(mr_req_idx[1]), .mr_rsp_valid_i(mr_rsp_valid[1]), .mr_rsp_i(mr_rsp[1]),
    .ar_valid_o(ar_valid[RdWqe]), .ar_ready_i(ar_ready[RdWqe]),
    .ar_addr_o(ar_addr[RdWqe]), .ar_len_o(ar_len[RdWqe]),
    .r_valid_i(r_valid[RdWqe]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .pkt_valid_o(reqpkt_valid), .pkt_ready_i(reqpkt_ready), .pkt_o(reqpkt),
    .frag_valid_o(reqfrag_valid), .frag_ready_i(reqfrag_ready), .frag_o(reqfrag),
    .inl_valid_o(inl_valid), .inl_ready_i(inl_ready), .inl_data_o(inl_data), .inl_len_o(inl_len),
    .cqe_valid_o(req_cqe_valid), .cqe_ready_i(req_cqe_ready), .cqe_o(req_cqe),
    .qp_err_valid_o(qp_err_valid[2]), .qp_err_ready_i(qp_err_ready[2]),
    .qp_err_idx_o(qp_err_idx[2]),
    .chg_valid_o(chg_valid[1]), .chg_ready_i(chg_ready[1]), .chg_o(req_chg), .chg_qp_o(name_qp[4]),
    .chg_rsp_valid_i(chg_rsp_valid[1]), .chg_rsp_i(chg_rsp),
    .bar_valid_o(bar_valid), .bar_ready_i(bar_ready), .bar_done_i(bar_done),
    .adm_valid_i(req_adm_valid), .adm_ready_o(req_adm_ready), .adm_i(req_adm),
    .adm_rsp_valid_o(req_adm_rsp_valid), .adm_rsp_o(req_adm_rsp),
    .drain_i(drain), .drain_done_o(drain_done[5]), .idle_o(block_idle[5]),
    .ev_wqe_o(ev_wqe), .ev_push_o(ev_push), .ev_push_unused_o(ev_push_unused),
    .ev_bad_db_o(ev_sq_bad_db), .ev_ack_o(ev_ack), .ev_nak_o(ev_nak),
    .ev_ghost_o(ev_ghost), .ev_window_o(ev_window), .ev_credit_o(ev_credit), .ev_axi_err_o(ev_wqe_axi_err),
    .ev_timeout_o(ev_timeout), .ev_nak_seq_o(ev_nak_seq), .ev_rnr_o(ev_rnr), .ev_again_o(ev_again),
    .ev_read_o(ev_tx_read), .ev_atomic_o(ev_tx_atomic),
    .rd_re_i(rt_re), .rd_qp_i(rt_qp), .rd_view_o(rt_view),
    .rd_update_valid_i(rt_update_valid), .rd_update_i(rt_update),
    .wake_valid_o(req_wake_valid), .wake_o(req_wake)
  );

  read_responder u_read_responder (
    .clk_i, .rst_ni(core_rst_n),
    .job_valid_i(rspjob_valid), .job_ready_o(rspjob_ready), .job_i(rspjob),
    .done_qp_i(rd_qp), .done_valid_o(rd_done_valid), .done_o(rd_done), .done_left_o(rd_left),
    .hold_qp_i(hold_qp), .hold_o(hold),
    .qp_req_valid_o(qp_req_valid[6]), .qp_req_ready_i(qp_req_ready[6]),
    .qp_req_idx_o(qp_req_idx[6]), .qp_rsp_valid_i(qp_rsp_valid[6]), .qp_rsp_i(qp_rsp[6]),
    .mr_req_valid_o(mr_req_valid[2]), .mr_req_ready_i(mr_req_ready[2]),
    .mr_req_idx_o(mr_req_idx[2]), .mr_rsp_valid_i(mr_rsp_valid[2]), .mr_rsp_i(mr_rsp[2]),
    .pkt_valid_o(rsppkt_valid), .pkt_ready_i(rsppkt_ready), .pkt_o(rsppkt),
    .frag_valid_o(rspfrag_valid), .frag_ready_i(rspfrag_ready), .frag_o(rspfrag),
    .err_valid_i(txerr_valid && txerr.response), .err_ready_o(rsperr_ready), .err_i(txerr),
    .nak_valid_o(rspnak_valid), .nak_ready_i(rspnak_ready), .nak_o(rspnak),
    .qp_err_valid_o(qp_err_valid[3]), .qp_err_ready_i(qp_err_ready[3]),
    .qp_err_idx_o(qp_err_idx[3]), .qp_err_access_o(rsp_err_access),
    .ev_nak_access_o(ev_rsp_nak_access), .ev_nak_op_o(ev_rsp_nak_op),
    .probe_qp_i(rr_probe), .busy_o(rr_busy), .ctx_valid_i(rr_ctx_valid), .ctx_ready_o(rr_ctx_ready), .ctx_load_i(rr_ctx_load),
    .ctx_word_i(rr_ctx_word), .ctx_qp_i(rr_ctx_qp), .ctx_i(rr_ctx_in), .ctx_o(rr_ctx_out), .ctx_at_i(rr_ctx_at), .ctx_value_i(rr_value_in),
    .ctx_value_o(rr_value_out),
    .idle_o(block_idle[13]), .drain_i(drain), .drain_done_o(drain_done[12])
  );

  tx_pkt_mux u_tx_pkt_mux (
    .clk_i, .rst_ni(core_rst_n),
    .rsp_pkt_valid_i(rsppkt_valid), .rsp_pkt_ready_o(rsppkt_ready), .rsp_pkt_i(rsppkt),
    .rsp_frag_valid_i(rspfrag_valid), .rsp_frag_ready_o(rspfrag_ready), .rsp_frag_i(rspfrag),
    .req_pkt_valid_i(reqpkt_valid), .req_pkt_ready_o(reqpkt_ready), .req_pkt_i(reqpkt),
    .req_frag_valid_i(reqfrag_valid), .req_frag_ready_o(reqfrag_ready), .req_frag_i(reqfrag),
    .pkt_valid_o(bothpkt_valid), .pkt_ready_i(bothpkt_ready), .pkt_o(pkt),
    .frag_valid_o(frag_valid), .frag_ready_i(frag_ready), .frag_o(frag)
  );

  logic ev_pl_axi_err;

  payload_reader #(.DataW(DataW)) u_payload_reader (
    .clk_i, .rst_ni(core_rst_n),
    .frag_valid_i(frag_valid), .frag_ready_o(frag_ready), .frag_i(frag),
    .ar_valid_o(ar_valid[RdPayload]), .ar_ready_i(ar_ready[RdPayload]),
    .ar_addr_o(ar_addr[RdPayload]), .ar_len_o(ar_len[RdPayload]),
    .r_valid_i(r_valid[RdPayload]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .pl_valid_o(mempl_valid), .pl_ready_i(mempl_ready), .pl_data_o(mempl_data),
    .pl_cnt_o(mempl_cnt), .pl_last_o(mempl_last), .pl_err_o(mempl_err),
    .ev_axi_err_o(ev_pl_axi_err), .idle_o(block_idle[6]),
    .drain_i(drain), .drain_done_o(drain_done[6])
  );

  inline_mux #(.DataW(DataW)) u_inline_mux (
    .clk_i, .rst_ni(core_rst_n),
    .pkt_valid_i(bothpkt_valid), .pkt_ready_o(bothpkt_ready), .pkt_i(pkt),
    .pkt_valid_o(pkt_valid), .pkt_ready_i(pkt_ready),
    .inl_valid_i(inl_valid), .inl_ready_o(inl_ready), .inl_data_i(inl_data), .inl_len_i(inl_len),
    .pl_valid_i(mempl_valid), .pl_ready_o(mempl_ready), .pl_data_i(mempl_data),
    .pl_cnt_i(mempl_cnt), .pl_last_i(mempl_last), .pl_err_i(mempl_err),
    .pl_valid_o(txpl_valid), .pl_ready_i(txpl_ready), .pl_data_o(txpl_data),
    .pl_cnt_o(txpl_cnt), .pl_last_o(txpl_last), .pl_err_o(txpl_err)
  );

  // frames: 0 CNPs, 1 all others
  logic [1:0]              lane_valid, lane_ready, lane_last;
  logic [1:0][DataW-1:0]   lane_data;
  logic [1:0][DataW/8-1:0] lane_keep;
  logic        ev_frame_valid, ev_abort, ev_stall_mac, ev_stall_read, ev_cnp_valid, ev_cnp_drop;
  logic [15:0] ev_frame_len, ev_cnp_len;
  logic [2:0]  ev_frame_kind, ev_cnp_kind;
  assign ev_stall_mac = tx_valid && !(tx_ready_i && tx_valid_o);

  cc_cnp_tx #(.DataW(DataW)) u_cc_cnp_tx (
    .clk_i, .rst_ni(core_rst_n), .mac_addr_i(reg2hw.mac_addr.addr),
    .dscp_i(reg2hw.np_cnp_dscp.dscp), .prio_i(reg2hw.np_cnp_prio.prio), .pfc_pause_i(tx_pause),
    .in_valid_i(hcnp_valid), .in_ready_o(hcnp_ready), .in_qp_i(hcnp_qp),
    .qp_req_valid_o(qp_req_valid[7]), .qp_req_ready_i(qp_req_ready[7]),
    .qp_req_idx_o(qp_req_idx[7]), .qp_rsp_valid_i(qp_rsp_valid[7]), .qp_rsp_i(qp_rsp[7]),
    .tx_valid_o(lane_valid[0]), .tx_ready_i(lane_ready[0]), .tx_data_o(lane_data[0]), .tx_keep_o(lane_keep[0]), .tx_last_o(lane_last[0]),
    .ev_frame_valid_o(ev_cnp_valid), .ev_frame_len_o(ev_cnp_len), .ev_frame_kind_o(ev_cnp_kind), .ev_drop_o(ev_cnp_drop),
    .idle_o(block_idle[NumDrain+4])
  );

  tx_frame_mux #(.DataW(DataW)) u_tx_frame_mux (
    .clk_i, .rst_ni(core_rst_n),
    .in_valid_i(lane_valid), .in_ready_o(lane_ready), .in_data_i(lane_data), .in_keep_i(lane_keep), .in_last_i(lane_last),
    .out_valid_o(tx_valid), .out_ready_i(tx_ready_i && tx_valid_o), .out_data_o(tx_data_o), .out_keep_o(tx_keep_o), .out_last_o(tx_last_o)
  );


  // verilator lint_off PINCONNECTEMPTY
  // that a frame of its own waits for the MAC is counted for both
  tx_egress #(.DataW(DataW)) u_tx_egress (
    .clk_i, .rst_ni(core_rst_n), .probe_qp_i(eg_probe), .busy_o(eg_busy),
    .mac_addr_i(reg2hw.mac_addr.addr), .prio_map_i(prio_map), .pfc_pause_i(tx_pause),
    .held_o(tx_held), .held_prio_o(tx_held_prio),
    .ack_valid_i(ackq_valid), .ack_ready_o(ackin_ready), .ack_i(ackq),
    .pkt_valid_i(pkt_valid), .pkt_ready_o(pkt_ready), .pkt_i(pkt),
    .pl_valid_i(txpl_valid), .pl_ready_o(txpl_ready), .pl_data_i(txpl_data),
    .pl_cnt_i(txpl_cnt), .pl_last_i(txpl_last), .pl_err_i(txpl_err),
    .qp_req_valid_o(qp_req_valid[1]), .qp_req_ready_i(qp_req_ready[1]),
    .qp_req_idx_o(qp_req_idx[1]), .qp_rsp_valid_i(qp_rsp_valid[1]), .qp_rsp_i(qp_rsp[1]),
    .ah_req_valid_o(ah_req_valid[1]), .ah_req_idx_o(ah_req_idx[1]),
    .ah_rsp_valid_i(ah_rsp_valid[1]), .ah_rsp_i(ah_rsp[1]),
    .tx_valid_o(lane_valid[1]), .tx_ready_i(lane_ready[1]), .tx_data_o(lane_data[1]), .tx_keep_o(lane_keep[1]),
    .tx_last_o(lane_last[1]), .tx_user_o,
    .err_valid_o(txerr_valid), .err_ready_i(txerr.response ? rsperr_ready : reqerr_ready), .err_o(txerr),
    .sent_valid_o(txsent_valid), .sent_ready_i(txsent_ready), .sent_o(txsent),
    .ev_frame_valid_o(ev_frame_valid), .ev_frame_len_o(ev_frame_len),
    .ev_frame_kind_o(ev_frame_kind), .ev_abort_o(ev_abort),
    .ev_stall_mac_o(), .ev_stall_read_o(ev_stall_read),
    .idle_o(block_idle[7]), .drain_i(drain), .drain_done_o(drain_done[7])
  );
  // verilator lint_on PINCONNECTEMPTY

  pfc #(.ClkPs(ClkPs)) u_pfc (
    .clk_i, .rst_ni(core_rst_n), .enable_i(reg2hw.pfc_ctrl.enable),
    .xoff_units_i(reg2hw.pfc_buffer.xoff), .xon_units_i(reg2hw.pfc_buffer.xon),
    .xoff_frames_i(reg2hw.pfc_frames.xoff), .xon_frames_i(reg2hw.pfc_frames.xon),
    .watchdog_us_i(reg2hw.pfc_watchdog.period), .units_i(rx_units), .frames_i(rx_frames), .full_o(rx_full),
    .held_i(tx_held), .held_prio_i(tx_held_prio), .pause_o(tx_pause),
    .pause_i(pfc_pause_i), .xoff_o(pfc_xoff_o), .ev_rx_pause_o(ev_rx_pause), .ev_tx_pause_o(ev_tx_pause),
    .ev_storm_warning_o(ev_storm_warning), .ev_storm_error_o(ev_storm_error), .ev_ignored_o(ev_pause_ignored),
    .busy_o(pfc_busy)
  );
  assign mac_addr_o = reg2hw.mac_addr.addr;

  // acknowledges of peers, at once and behind data, and of packets that nobody acknowledges
  stream_arb #(.Width($bits(ack_rx_t))) u_rxack_arb (
    .clk_i, .rst_ni(core_rst_n),
    .in_valid_i({wrack_valid, ackrx_valid}), .in_ready_o({wrack_ready, ackrx_ready}),
    .in_data_i({wrack, ackrx}),
    .out_valid_o(rxack_valid), .out_ready_i(rxack_ready), .out_data_o(rxack)
  );
  stream_arb #(.Width($bits(ack_rx_t))) u_ack_arb (
    .clk_i, .rst_ni(core_rst_n),
    .in_valid_i({txsent_valid, rxack_valid}), .in_ready_o({txsent_ready, rxack_ready}),
    .in_data_i({txsent, rxack}),
    .out_valid_o(reqack_valid), .out_ready_i(reqack_ready), .out_data_o(reqack)
  );

  always_comb begin
    chg[1] = req_chg;
    chg[1].qpn = name[4];
  end

  // ---- host -------------------------------------------------------------------------------------
  logic        cq_cmd_valid, cq_cmd_ready, cq_cmd_rsp_valid;
  cq_cmd_e     cq_cmd_op;
  cq_idx_t     cq_cmd_idx;
  logic [63:6] cq_cmd_addr;
  logic [3:0]  cq_cmd_log_size;
  logic [7:0]  cq_cmd_eqn;
  cq_ctx_t     cq_cmd_rsp;
  logic        ev_cqe, ev_cqe_lost, ev_cq_overrun;
  logic [1:0]  ev_cqe_error, ev_cqe_flush;
  logic        ev_cq_bad_db, ev_cqe_axi_err, last_valid, last_ready, last_drained;
  qpn_t        last_qpn, cqe_qpn;
  cq_mod_t     cq_cmd_mod;
  logic        comp_valid, comp_ready, cqerr_valid, cqerr_ready, cq_swept, ev_cq_fatal, cq_cmd_rsp_err;
  comp_ev_t    comp;
  async_ev_t   cqerr;
  ctx_mem_t    cq_mem;
  ctx_ev_t     ev_cq;

  assign name_qp[0] = rx_cqe.qp;
  assign name_qp[1] = req_cqe.qp;
  stream_arb #(.Width(QpnW + $bits(cqe_ev_t))) u_cqe_arb (
    .clk_i, .rst_ni(core_rst_n),
    .in_valid_i({rx_cqe_valid, req_cqe_valid}), .in_ready_o({rx_cqe_ready, req_cqe_ready}),
    .in_data_i({name[0], rx_cqe, name[1], req_cqe}),
    .out_valid_o(cqe_valid), .out_ready_i(cqe_ready), .out_data_o({cqe_qpn, cqe})
  );

  cqe_writer #(.DataW(DataW), .ClkPs(ClkPs)) u_cqe_writer (
    .clk_i, .rst_ni(core_rst_n), .time_i, .ready_o(cq_swept), .mem_i(cq_mem),
    .in_valid_i(cqe_valid), .in_ready_o(cqe_ready), .in_i(cqe), .in_qpn_i(cqe_qpn),
    .db_valid_i(db_valid && db_is_cq), .db_ready_o(cq_db_ready),
    .db_cqn_i(db_cq.cqn), .db_ci_i(db_cq.ci),
    .db_arm_i('{any: db_cq.arm, solicited: db_cq.arm_solicited}),
    .cmd_valid_i(cq_cmd_valid), .cmd_ready_o(cq_cmd_ready), .cmd_op_i(cq_cmd_op),
    .cmd_idx_i(cq_cmd_idx), .cmd_addr_i(cq_cmd_addr), .cmd_log_size_i(cq_cmd_log_size),
    .cmd_eqn_i(cq_cmd_eqn), .cmd_mod_i(cq_cmd_mod),
    .cmd_rsp_valid_o(cq_cmd_rsp_valid), .cmd_rsp_err_o(cq_cmd_rsp_err), .cmd_rsp_o(cq_cmd_rsp),
    .aw_valid_o(aw_valid[WrCqe]), .aw_ready_i(aw_ready[WrCqe]),
    .aw_addr_o(aw_addr[WrCqe]), .aw_len_o(aw_len[WrCqe]),
    .w_valid_o(w_valid[WrCqe]), .w_ready_i(w_ready[WrCqe]),
    .w_data_o(w_data[WrCqe]), .w_strb_o(w_strb[WrCqe]), .w_last_o(w_last[WrCqe]),
    .b_valid_i(b_valid[WrCqe]), .b_err_i(b_err),
    .ctx_ar_valid_o(ar_valid[RdCq]), .ctx_ar_ready_i(ar_ready[RdCq]), .ctx_ar_addr_o(ar_addr[RdCq]), .ctx_ar_len_o(ar_len[RdCq]),
    .ctx_r_valid_i(r_valid[RdCq]), .ctx_r_data_i(r_data), .ctx_r_last_i(r_last), .ctx_r_err_i(r_err),
    .ctx_aw_valid_o(aw_valid[WrCq]), .ctx_aw_ready_i(aw_ready[WrCq]), .ctx_aw_addr_o(aw_addr[WrCq]), .ctx_aw_len_o(aw_len[WrCq]),
    .ctx_w_valid_o(w_valid[WrCq]), .ctx_w_ready_i(w_ready[WrCq]), .ctx_w_data_o(w_data[WrCq]), .ctx_w_strb_o(w_strb[WrCq]),
    .ctx_w_last_o(w_last[WrCq]), .ctx_b_valid_i(b_valid[WrCq]), .ctx_b_err_i(b_err),
    .comp_valid_o(comp_valid), .comp_ready_i(comp_ready), .comp_o(comp),
    .cqerr_valid_o(cqerr_valid), .cqerr_ready_i(cqerr_ready), .cqerr_o(cqerr),
    .wake_valid_o(cq_wake_valid), .wake_o(cq_wake),
    .drain_i(drain), .drain_done_o(drain_done[8]),
    .ev_cqe_o(ev_cqe), .ev_lost_o(ev_cqe_lost), .ev_overrun_o(ev_cq_overrun), .ev_fatal_o(ev_cq_fatal), .ev_ctx_o(ev_cq),
    .ev_error_o(ev_cqe_error), .ev_flush_o(ev_cqe_flush), .ev_bad_db_o(ev_cq_bad_db),
    .ev_axi_err_o(ev_cqe_axi_err), .last_valid_o(last_valid), .last_ready_i(last_ready), .last_qpn_o(last_qpn),
    .last_drained_o(last_drained), .idle_o(block_idle[8])
  );

  logic [63:0] host_wake;
  assign host_wake = cq_wake < req_wake ? cq_wake : req_wake;
  assign wake_valid_o = req_wake_valid && cq_wake_valid && np_wake_valid;
  assign wake_o = np_wake < host_wake ? np_wake : host_wake;

  // Asynchronous events: sources in the order of in_valid_i.
  logic        cmdev_valid, cmdev_ready;
  async_ev_t   cmdev, lastev, portev, ctxev;
  logic        portev_valid, portev_ready, link_up;
  port_events u_port_events (
    .clk_i, .rst_ni(core_rst_n), .link_up_i, .link_up_o(link_up),
    .event_valid_o(portev_valid), .event_ready_i(portev_ready), .event_o(portev)
  );
  assign lastev = '{
    ev_type: last_drained ? rnic_regs_pkg::EqeTypeSqDrained : rnic_regs_pkg::EqeTypeQpLastWqe,
    object: 32'(last_qpn), detail: '0
  };
  assign ctxev = '{ev_type: rnic_regs_pkg::EqeTypeQpFatal, object: 32'(qp_bad_qpn), detail: '0};
  event_arb #(.NumSrc(7)) u_event_arb (
    .clk_i, .rst_ni(core_rst_n),
    .in_valid_i({qp_bad_valid, portev_valid, last_valid, srqev_valid, cmdev_valid, cqerr_valid, qpev_valid}),
    .in_ready_o({qp_bad_ready, portev_ready, last_ready, srqev_ready, cmdev_ready, cqerr_ready, qpev_ready}),
    .in_i({ctxev, portev, lastev, srqev, cmdev, cqerr, qpev}),
    .out_valid_o(event_valid), .out_ready_i(event_ready), .out_o(event_in),
    .drain_i(drain), .drain_done_o(drain_done[10]), .idle_o(block_idle[11])
  );

  logic        eq_cmd_valid, eq_cmd_ready, eq_cmd_rsp_valid, irq_valid;
  eq_cmd_e     eq_cmd_op;
  eq_idx_t     eq_cmd_idx;
  logic [63:6] eq_cmd_addr;
  logic [3:0]  eq_cmd_log_size;
  vec_t        eq_cmd_vector, irq_vec;
  eq_ctx_t     eq_cmd_rsp;
  logic        ev_eqe, ev_eqe_lost, ev_eq_bad_db, ev_eqe_axi_err;

  eq_writer #(.DataW(DataW)) u_eq_writer (
    .clk_i, .rst_ni(core_rst_n),
    .comp_valid_i(comp_valid), .comp_ready_o(comp_ready), .comp_i(comp),
    .async_valid_i(event_valid), .async_ready_o(event_ready), .async_i(event_in),
    .db_valid_i(db_valid && db_is_eq), .db_ready_o(eq_db_ready),
    .db_eqn_i(db_eq.eqn), .db_arm_i(db_eq.arm), .db_ci_i(db_eq.ci),
    .cmd_valid_i(eq_cmd_valid), .cmd_ready_o(eq_cmd_ready), .cmd_op_i(eq_cmd_op),
    .cmd_idx_i(eq_cmd_idx), .cmd_addr_i(eq_cmd_addr), .cmd_log_size_i(eq_cmd_log_size),
    .cmd_vector_i(eq_cmd_vector), .cmd_rsp_valid_o(eq_cmd_rsp_valid), .cmd_rsp_o(eq_cmd_rsp),
    .aw_valid_o(aw_valid[WrEqe]), .aw_ready_i(aw_ready[WrEqe]),
    .aw_addr_o(aw_addr[WrEqe]), .aw_len_o(aw_len[WrEqe]),
    .w_valid_o(w_valid[WrEqe]), .w_ready_i(w_ready[WrEqe]),
    .w_data_o(w_data[WrEqe]), .w_strb_o(w_strb[WrEqe]), .w_last_o(w_last[WrEqe]),
    .b_valid_i(b_valid[WrEqe]), .b_err_i(b_err),
    .irq_valid_o(irq_valid), .irq_vec_o(irq_vec),
    .drain_i(drain), .drain_done_o(drain_done[11]),
    .ev_eqe_o(ev_eqe), .ev_lost_o(ev_eqe_lost), .ev_bad_db_o(ev_eq_bad_db),
    .ev_axi_err_o(ev_eqe_axi_err), .idle_o(block_idle[12])
  );

  // Interrupts: pending until irq_enable, then requested once.
  logic [NumVec-1:0] irq_pend_q, irq_set;
  logic              irq_busy;
  always_comb begin
    irq_set = '0;
    irq_set[irq_vec] = irq_valid;
  end
  always_ff @(posedge clk_i) begin
    if (!core_rst_n) begin
      irq_pend_q <= '0;
      irq_o <= '0;
    end else begin
      irq_pend_q <= irq_set | (reg2hw.ctrl.irq_enable ? '0 : irq_pend_q);
      irq_o <= reg2hw.ctrl.irq_enable ? irq_pend_q : '0;
    end
  end
  assign irq_busy = irq_o != '0 || (irq_pend_q != '0 && reg2hw.ctrl.irq_enable);

  logic [15:0] cmdq_ci;
  logic        ev_cmd, ev_cmd_error, ev_cmd_rd_err, ev_cmd_wr_err;

  cmd_proc #(.DataW(DataW), .NumDrain(NumDrain)) u_cmd_proc (
    .clk_i, .rst_ni(core_rst_n),
    .enable_i(reg2hw.cmdq_cfg.enable), .log_size_i(reg2hw.cmdq_cfg.log_size),
    .cmdq_base_i(reg2hw.cmdq_base.addr[63:8]), .cmdr_base_i(reg2hw.cmdr_base.addr[63:8]),
    .pi_i(reg2hw.cmdq_pi.pi), .ci_o(cmdq_ci), .stop_i(stop),
    .ar_valid_o(ar_valid[RdCmd]), .ar_ready_i(ar_ready[RdCmd]),
    .ar_addr_o(ar_addr[RdCmd]), .ar_len_o(ar_len[RdCmd]),
    .r_valid_i(r_valid[RdCmd]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .aw_valid_o(aw_valid[WrRsp]), .aw_ready_i(aw_ready[WrRsp]),
    .aw_addr_o(aw_addr[WrRsp]), .aw_len_o(aw_len[WrRsp]),
    .w_valid_o(w_valid[WrRsp]), .w_ready_i(w_ready[WrRsp]),
    .w_data_o(w_data[WrRsp]), .w_strb_o(w_strb[WrRsp]), .w_last_o(w_last[WrRsp]),
    .b_valid_i(b_valid[WrRsp]), .b_err_i(b_err),
    .qp_cmd_valid_o(qp_cmd_valid), .qp_cmd_op_o(qp_cmd_op), .qp_cmd_idx_o(qp_cmd_idx),
    .qpl_req_valid_o(look_valid[0]), .qpl_req_ready_i(look_ready[0]), .qpl_req_qpn_o(look_qpn[0]), .qpl_req_create_o(look_create),
    .qpl_rsp_valid_i(look_rsp_valid[0]), .qpl_rsp_status_i(look_status[0]), .qpl_rsp_slot_i(look_slot[0]), .qpl_rel_valid_o(look_rel[0]),
    .qpl_rel_forget_o(look_forget), .qp_mem_o(qp_mem), .cq_mem_o(cq_mem), .srq_mem_o(srq_mem),
    .qp_cmd_from_o(qp_cmd_from), .qp_cmd_attr_o(qp_cmd_attr),
    .qp_cmd_rsp_valid_i(qp_cmd_rsp_valid), .qp_cmd_rsp_ok_i(qp_cmd_rsp_ok),
    .qp_cmd_rsp_i(qp_cmd_rsp),
    .mr_cmd_valid_o(mr_cmd_valid), .mr_cmd_ready_i(mr_cmd_ready), .mr_cmd_lock_o(mr_cmd_lock),
    .mr_cmd_op_o(mr_cmd_op), .mr_cmd_idx_o(mr_cmd_idx), .mr_cmd_mr_o(mr_cmd_mr),
    .mr_cmd_qpn_o(mr_cmd_qpn), .mr_cmd_rsp_valid_i(mr_cmd_rsp_valid), .mr_cmd_rsp_i(mr_cmd_rsp),
    .mr_cmd_rsp_bound_i(mr_cmd_rsp_bound), .mr_cmd_rsp_err_i(mr_cmd_rsp_err), .mr_mem_o(mr_mem),
    .ah_cmd_valid_o(ah_cmd_valid), .ah_cmd_we_o(ah_cmd_we), .ah_cmd_idx_o(ah_cmd_idx),
    .ah_cmd_ah_o(ah_cmd_ah), .ah_cmd_rsp_valid_i(ah_cmd_rsp_valid), .ah_cmd_rsp_i(ah_cmd_rsp),
    .gsi_valid_o(gsi_valid), .gsi_qpn_o(gsi_qpn),
    .raw_valid_o(raw_valid), .raw_qpn_o(raw_qpn), .raw_rx_o(raw_rx),
    .cq_cmd_valid_o(cq_cmd_valid), .cq_cmd_ready_i(cq_cmd_ready), .cq_cmd_op_o(cq_cmd_op),
    .cq_cmd_idx_o(cq_cmd_idx), .cq_cmd_addr_o(cq_cmd_addr),
    .cq_cmd_log_size_o(cq_cmd_log_size), .cq_cmd_eqn_o(cq_cmd_eqn), .cq_cmd_mod_o(cq_cmd_mod),
    .cq_cmd_rsp_valid_i(cq_cmd_rsp_valid), .cq_cmd_rsp_err_i(cq_cmd_rsp_err), .cq_cmd_rsp_i(cq_cmd_rsp),
    .eq_cmd_valid_o(eq_cmd_valid), .eq_cmd_ready_i(eq_cmd_ready), .eq_cmd_op_o(eq_cmd_op),
    .eq_cmd_idx_o(eq_cmd_idx), .eq_cmd_addr_o(eq_cmd_addr),
    .eq_cmd_log_size_o(eq_cmd_log_size), .eq_cmd_vector_o(eq_cmd_vector),
    .eq_cmd_rsp_valid_i(eq_cmd_rsp_valid), .eq_cmd_rsp_i(eq_cmd_rsp),
    .event_valid_o(cmdev_valid), .event_ready_i(cmdev_ready), .event_o(cmdev),
    .srq_cmd_valid_o(srq_cmd_valid), .srq_cmd_ready_i(srq_cmd_ready),
    .srq_cmd_op_o(srq_cmd_op), .srq_cmd_idx_o(srq_cmd_idx), .srq_cmd_attr_o(srq_cmd_attr),
    .srq_cmd_limit_o(srq_cmd_limit),
    .srq_cmd_rsp_valid_i(srq_cmd_rsp_valid), .srq_cmd_rsp_err_i(srq_cmd_rsp_err), .srq_cmd_rsp_i(srq_cmd_rsp),
    .rsp_adm_valid_o(rsp_adm_valid), .rsp_adm_ready_i(rsp_adm_ready), .rsp_adm_o(rsp_adm),
    .rsp_adm_rsp_valid_i(rsp_adm_rsp_valid), .rsp_adm_rsp_i(rsp_adm_rsp),
    .req_adm_valid_o(req_adm_valid), .req_adm_ready_i(req_adm_ready), .req_adm_o(req_adm),
    .req_adm_rsp_valid_i(req_adm_rsp_valid), .req_adm_rsp_i(req_adm_rsp),
    .drain_o(drain), .drain_done_i(drain_done),
    .ev_done_o(ev_cmd), .ev_error_o(ev_cmd_error),
    .ev_axi_rd_err_o(ev_cmd_rd_err), .ev_axi_wr_err_o(ev_cmd_wr_err), .idle_o(block_idle[9])
  );
  // Registers written, but not seen by the blocks yet.
  logic csr_busy, idle_q;
  assign csr_busy = s_axil_awvalid_i || s_axil_wvalid_i || s_axil_bvalid_o ||
                    s_axil_arvalid_i || s_axil_rvalid_o || db_valid || irq_busy ||
                    reg2hw.reset.qe || reg2hw.cmdq_pi.qe || reg2hw.cmdq_cfg.qe || link_up_i != link_up;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) idle_q <= 1'b0;
    else idle_q <= &block_idle && !pfc_busy && !csr_busy && !stop && core_rst_n && !rd_busy && !wr_busy;
  end
  assign idle_o = idle_q && &block_idle && !csr_busy && !rx_valid_i && !stop;

  rnic_counters #(.DataW(DataW), .ClkPs(ClkPs)) u_counters (
    .clk_i, .rst_ni(core_rst_n), .time_i, .time_read_i(s_axil_arvalid_i),
    .ready_i(!stop && !reset_trigger && cleared && cq_swept && srq_swept), .idle_i(&block_idle && !rd_busy && !wr_busy),
    .link_up_i(link_up), .cmdq_ci_i(cmdq_ci), .irq_pend_i(irq_pend_q), .irq_i(irq_o),
    .capture_drops_only_i(reg2hw.rx_ctrl.capture_drops_only),
    .verdict_valid_i(verdict_valid_o), .verdict_i(verdict),
    .ev_drop_valid_i(ev_drop_valid), .ev_drop_i(ev_drop), .ev_nak_op_i(ev_nak_op),
    .ev_rsp_nak_access_i(ev_rsp_nak_access), .ev_rsp_nak_op_i(ev_rsp_nak_op),
    .ev_read_i(ev_read), .ev_atomic_i(ev_atomic),
    .ev_rx_message_i(ev_rx_message), .ev_rx_send_i(ev_rx_send), .ev_no_buffer_i(ev_no_buffer),
    .ev_rq_wqe_i(ev_rq_wqe), .ev_srq_wqe_i(ev_srq_wqe), .ev_rx_bytes_valid_i(ev_rx_bytes_valid),
    .ev_rx_bytes_i(ev_rx_bytes), .ev_stall_rx_dma_i(ev_stall_rx_dma),
    .ev_frame_valid_i(ev_frame_valid || ev_cnp_valid), .ev_frame_len_i(ev_cnp_valid ? ev_cnp_len : ev_frame_len),
    .ev_frame_kind_i(ev_cnp_valid ? ev_cnp_kind : ev_frame_kind), .ev_mark_i(mark_valid), .ev_cnp_drop_i(ev_cnp_drop), .ev_abort_i(ev_abort),
    .ev_stall_mac_i(ev_stall_mac), .ev_stall_read_i(ev_stall_read),
    .ev_wqe_i(ev_wqe), .ev_push_i(ev_push), .ev_push_unused_i(ev_push_unused), .ev_ack_i(ev_ack), .ev_nak_i(ev_nak), .ev_ghost_i(ev_ghost),
    .ev_credit_i(ev_credit), .ev_credit_update_i(ev_credit_update), .ev_window_i(ev_window), .ev_timeout_i(ev_timeout), .ev_nak_seq_i(ev_nak_seq),
    .ev_rnr_i(ev_rnr), .ev_again_i(ev_again), .ev_tx_read_i(ev_tx_read), .ev_tx_atomic_i(ev_tx_atomic),
    .ev_implied_i(ev_implied), .ev_dup_rsp_i(ev_dup_rsp), .ev_ghost_rsp_i(ev_ghost_rsp),
    .ev_rx_pause_i(ev_rx_pause), .ev_tx_pause_i(ev_tx_pause), .ev_storm_warning_i(ev_storm_warning),
    .ev_storm_error_i(ev_storm_error), .ev_pause_ignored_i(ev_pause_ignored), .ev_stall_pause_i(tx_held),
    .ev_cqe_i(ev_cqe), .ev_cqe_lost_i(ev_cqe_lost), .ev_cq_overrun_i(ev_cq_overrun),
    .ev_cqe_error_i(ev_cqe_error), .ev_cqe_flush_i(ev_cqe_flush),
    .ev_eqe_i(ev_eqe), .ev_eqe_lost_i(ev_eqe_lost),
    .ev_srq_limit_i(ev_srq_limit), .ev_last_wqe_i(last_valid && last_ready && !last_drained),
    .ev_cmd_i(ev_cmd), .ev_cmd_error_i(ev_cmd_error), .ev_qp_fatal_i(ev_qp_fatal),
    .ev_bad_db_i({ev_srq_bad_db, ev_db_refused, ev_sq_bad_db, ev_rq_bad_db, ev_cq_bad_db, ev_eq_bad_db}),
    .ev_mr_i(ev_mr), .ev_qp_i(ev_qp), .ev_cq_i(ev_cq), .ev_srq_i(ev_srq), .ev_cq_fatal_i(ev_cq_fatal), .ev_srq_fatal_i(ev_srq_fatal), .ev_bad_qpn_i(ev_bad_qpn),
    .ev_axi_rd_err_i({ev_srq_axi_err, ev_at_rd_err, ev_cmd_rd_err, ev_wqe_axi_err, ev_rq_axi_err, ev_pl_axi_err}),
    .ev_axi_wr_err_i({ev_at_wr_err, ev_cmd_wr_err, ev_cqe_axi_err, ev_eqe_axi_err, ev_wr_axi_err}),
    .hw2reg_o(hw2reg)
  );

endmodule
