// SPDX-License-Identifier: Apache-2.0
//
// The command processor with the real tables, CQE writer and AXI arbiters against a memory that stalls:
// every command, every status and syndrome, both rings over several passes, drain, failing memory.

module cmd_proc_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  import rnic_regs_pkg::CmdOpcodeNop, rnic_regs_pkg::CmdOpcodeQueryDevice, rnic_regs_pkg::CmdOpcodeCreateMr,
      rnic_regs_pkg::CmdOpcodeQueryMr, rnic_regs_pkg::CmdOpcodeDestroyMr, rnic_regs_pkg::CmdOpcodeCreateCq,
      rnic_regs_pkg::CmdOpcodeQueryCq, rnic_regs_pkg::CmdOpcodeDestroyCq, rnic_regs_pkg::CmdOpcodeCreateQp,
      rnic_regs_pkg::CmdOpcodeModifyQp, rnic_regs_pkg::CmdOpcodeQueryQp, rnic_regs_pkg::CmdOpcodeDestroyQp,
      rnic_regs_pkg::CmdOpcodeModifyCq, rnic_regs_pkg::CmdOpcodeCreateEq, rnic_regs_pkg::CmdOpcodeQueryEq,
      rnic_regs_pkg::CmdOpcodeDestroyEq,
      rnic_regs_pkg::CmdOpcodeCreateAh, rnic_regs_pkg::CmdOpcodeQueryAh, rnic_regs_pkg::CmdOpcodeDestroyAh,
      rnic_regs_pkg::CmdOpcodeCreateSrq, rnic_regs_pkg::CmdOpcodeModifySrq, rnic_regs_pkg::CmdOpcodeQuerySrq,
      rnic_regs_pkg::CmdOpcodeDestroySrq, rnic_regs_pkg::CmdOpcodeCreateMw, rnic_regs_pkg::CmdOpcodeQueryMw,
      rnic_regs_pkg::CmdOpcodeDestroyMw, rnic_regs_pkg::CmdOpcodeSetCtxMem;
  localparam int NumDrain = 3;
  localparam logic [63:0] CmdBase = 64'h0000_0001_0000_0300;
  localparam logic [63:0] RspBase = 64'h0000_0002_0001_0100;

  localparam logic [7:0] Ok = 0, BadOpcode = 1, BadIndex = 2, Exists = 3, NotFound = 4, BadParam = 5, BadState = 6,
      Busy = 7, ExecError = 8;
  localparam logic [7:0] SynState = 1, SynType = 2, SynMtu = 3, SynSendCqn = 4, SynRecvCqn = 5, SynSqAddr = 6,
      SynSqSize = 7, SynRqAddr = 8, SynRqSize = 9, SynDest = 10, SynCqAddr = 11, SynCqSize = 12, SynMrKey = 13,
      SynMrLength = 14, SynMrAccess = 15, SynEqAddr = 16, SynEqSize = 17, SynEqVector = 18, SynCqEqn = 19,
      SynCqModeration = 20, SynSrqn = 32, SynSrqAddr = 33, SynSrqSize = 34, SynSrqLimit = 35, SynCtxAddr = 48, SynCtxNum = 49;
  localparam logic [63:0] MrBase = 64'h0000_0003_0004_5000;
  localparam logic [63:0] CqBase = 64'h0000_0003_0007_a000;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  logic [63:0] now = 0;
  always @(posedge clk) now <= now + 1;

  // ---- the units ---------------------------------------------------------------------------------
  logic enable = 0, stop = 0;
  logic [3:0] log_size = 2;
  logic [15:0] pi = 0, ci;
  logic [3:0] ar_valid, ar_ready, r_valid;
  logic [4:0] aw_valid, aw_ready, w_valid, w_ready, w_last, b_valid;
  logic [3:0][63:0] ar_addr;
  logic [4:0][63:0] aw_addr;
  logic [3:0][7:0] ar_len;
  logic [4:0][7:0] aw_len;
  logic [DataW-1:0] r_data, w_data[5];
  logic [DataW/8-1:0] w_strb[5];
  logic mr_cmd_err;
  ctx_mem_t mr_mem;
  ctx_ev_t ev_mr;
  logic r_last, r_err, b_err, rd_busy, wr_busy;

  logic qp_cmd_valid, qp_cmd_rsp_valid, qp_cmd_rsp_ok;
  qp_cmd_e qp_cmd_op;
  qp_idx_t qp_cmd_idx;
  qp_state_e qp_cmd_from;
  qp_attr_t qp_cmd_attr, qp_cmd_rsp;
  logic mr_cmd_valid, mr_cmd_ready, mr_cmd_lock, mr_cmd_rsp_valid, mr_cmd_bound;
  mr_cmd_e mr_cmd_op;
  qpn_t mr_cmd_qpn;
  mr_idx_t mr_cmd_idx;
  mr_t mr_cmd_mr, mr_cmd_rsp;
  logic ah_cmd_valid, ah_cmd_we, ah_cmd_rsp_valid, gsi_valid;
  ah_idx_t ah_cmd_idx;
  ah_t ah_cmd_ah, ah_cmd_rsp;
  logic [23:0] gsi_qpn, raw_qpn;
  ctx_mem_t qp_mem, cq_mem, srq_mem;
  ctx_ev_t ev_cq;
  logic cq_cmd_err;
  logic qpl_req_valid, qpl_req_ready = 0, qpl_create, qpl_rsp_valid = 0, qpl_rel, qpl_forget;
  logic [23:0] qpl_qpn;
  qpc_status_e qpl_status;
  qp_idx_t qpl_slot;
  logic raw_valid, raw_rx;
  rnic_regs_pkg::ah_entry_t hent, hgot;
  logic cq_cmd_valid, cq_cmd_ready, cq_cmd_rsp_valid;
  cq_cmd_e cq_cmd_op;
  cq_idx_t cq_cmd_idx;
  logic [63:6] cq_cmd_addr;
  logic [3:0] cq_cmd_log_size;
  logic [7:0] cq_cmd_eqn;
  cq_ctx_t cq_cmd_rsp;
  cq_mod_t cq_cmd_mod;
  logic eq_cmd_valid, eq_cmd_ready, eq_cmd_rsp_valid, eq_drain_done, eq_idle, irq_valid;
  eq_cmd_e eq_cmd_op;
  eq_idx_t eq_cmd_idx;
  logic [63:6] eq_cmd_addr;
  logic [3:0] eq_cmd_log_size;
  vec_t eq_cmd_vector, irq_vec;
  eq_ctx_t eq_cmd_rsp;
  logic event_valid, event_ready, comp_valid, comp_ready, ovr_valid, wake_valid;
  async_ev_t event_out, ovr;
  comp_ev_t comp;
  logic [63:0] wake;
  logic srq_cmd_valid, srq_cmd_ready = 0, srq_cmd_rsp_valid = 0;
  srq_cmd_e srq_cmd_op;
  srq_idx_t srq_cmd_idx;
  srq_attr_t srq_cmd_attr;
  logic [15:0] srq_cmd_limit;
  srq_ctx_t srq_cmd_rsp = '0;
  logic rsp_adm_valid, rsp_adm_ready = 0, rsp_adm_rsp_valid = 0, req_adm_valid, req_adm_ready = 0, req_adm_rsp_valid = 0;
  qp_admin_t rsp_adm, req_adm;
  rsp_query_t rsp_adm_rsp = '0;
  req_query_t req_adm_rsp = '0;
  logic drain, ev_done, ev_error, ev_rd_err, ev_wr_err, idle, cqe_drain_done, cqe_idle;
  logic [NumDrain-1:0] drain_done = '0;

  cmd_proc #(.DataW(DataW), .NumDrain(NumDrain + 2)) dut (
    .clk_i(clk), .rst_ni(rst_n), .enable_i(enable), .log_size_i(log_size), .cmdq_base_i(CmdBase[63:8]),
    .cmdr_base_i(RspBase[63:8]), .pi_i(pi), .ci_o(ci), .stop_i(stop),
    .ar_valid_o(ar_valid[0]), .ar_ready_i(ar_ready[0]), .ar_addr_o(ar_addr[0]), .ar_len_o(ar_len[0]),
    .r_valid_i(r_valid[0]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .aw_valid_o(aw_valid[2]), .aw_ready_i(aw_ready[2]), .aw_addr_o(aw_addr[2]), .aw_len_o(aw_len[2]),
    .w_valid_o(w_valid[2]), .w_ready_i(w_ready[2]), .w_data_o(w_data[2]), .w_strb_o(w_strb[2]),
    .w_last_o(w_last[2]), .b_valid_i(b_valid[2]), .b_err_i(b_err),
    .qp_cmd_valid_o(qp_cmd_valid), .qp_cmd_op_o(qp_cmd_op), .qp_cmd_idx_o(qp_cmd_idx),
    .qpl_req_valid_o(qpl_req_valid), .qpl_req_ready_i(qpl_req_ready), .qpl_req_qpn_o(qpl_qpn), .qpl_req_create_o(qpl_create),
    .qpl_rsp_valid_i(qpl_rsp_valid), .qpl_rsp_status_i(qpl_status), .qpl_rsp_slot_i(qpl_slot), .qpl_rel_valid_o(qpl_rel), .qpl_rel_forget_o(qpl_forget),
    .qp_mem_o(qp_mem), .cq_mem_o(cq_mem), .srq_mem_o(srq_mem),
    .qp_cmd_from_o(qp_cmd_from), .qp_cmd_attr_o(qp_cmd_attr), .qp_cmd_rsp_valid_i(qp_cmd_rsp_valid),
    .qp_cmd_rsp_ok_i(qp_cmd_rsp_ok), .qp_cmd_rsp_i(qp_cmd_rsp),
    .mr_cmd_valid_o(mr_cmd_valid), .mr_cmd_ready_i(mr_cmd_ready), .mr_cmd_lock_o(mr_cmd_lock), .mr_cmd_op_o(mr_cmd_op),
    .mr_cmd_idx_o(mr_cmd_idx), .mr_cmd_mr_o(mr_cmd_mr), .mr_cmd_qpn_o(mr_cmd_qpn),
    .mr_cmd_rsp_valid_i(mr_cmd_rsp_valid), .mr_cmd_rsp_i(mr_cmd_rsp), .mr_cmd_rsp_bound_i(mr_cmd_bound), .mr_cmd_rsp_err_i(mr_cmd_err), .mr_mem_o(mr_mem),
    .ah_cmd_valid_o(ah_cmd_valid), .ah_cmd_we_o(ah_cmd_we), .ah_cmd_idx_o(ah_cmd_idx), .ah_cmd_ah_o(ah_cmd_ah),
    .ah_cmd_rsp_valid_i(ah_cmd_rsp_valid), .ah_cmd_rsp_i(ah_cmd_rsp), .gsi_valid_o(gsi_valid), .gsi_qpn_o(gsi_qpn),
    .raw_valid_o(raw_valid), .raw_qpn_o(raw_qpn), .raw_rx_o(raw_rx),
    .cq_cmd_valid_o(cq_cmd_valid), .cq_cmd_ready_i(cq_cmd_ready), .cq_cmd_op_o(cq_cmd_op),
    .cq_cmd_idx_o(cq_cmd_idx), .cq_cmd_addr_o(cq_cmd_addr), .cq_cmd_log_size_o(cq_cmd_log_size),
    .cq_cmd_eqn_o(cq_cmd_eqn), .cq_cmd_mod_o(cq_cmd_mod),
    .eq_cmd_valid_o(eq_cmd_valid), .eq_cmd_ready_i(eq_cmd_ready), .eq_cmd_op_o(eq_cmd_op),
    .eq_cmd_idx_o(eq_cmd_idx), .eq_cmd_addr_o(eq_cmd_addr), .eq_cmd_log_size_o(eq_cmd_log_size),
    .eq_cmd_vector_o(eq_cmd_vector), .eq_cmd_rsp_valid_i(eq_cmd_rsp_valid), .eq_cmd_rsp_i(eq_cmd_rsp),
    .event_valid_o(event_valid), .event_ready_i(event_ready), .event_o(event_out), .cq_cmd_rsp_valid_i(cq_cmd_rsp_valid), .cq_cmd_rsp_err_i(cq_cmd_err), .cq_cmd_rsp_i(cq_cmd_rsp),
    .srq_cmd_valid_o(srq_cmd_valid), .srq_cmd_ready_i(srq_cmd_ready), .srq_cmd_op_o(srq_cmd_op),
    .srq_cmd_idx_o(srq_cmd_idx), .srq_cmd_attr_o(srq_cmd_attr), .srq_cmd_limit_o(srq_cmd_limit),
    .srq_cmd_rsp_valid_i(srq_cmd_rsp_valid), .srq_cmd_rsp_err_i(srq_cmd_err), .srq_cmd_rsp_i(srq_cmd_rsp),
    .rsp_adm_valid_o(rsp_adm_valid), .rsp_adm_ready_i(rsp_adm_ready), .rsp_adm_o(rsp_adm),
    .rsp_adm_rsp_valid_i(rsp_adm_rsp_valid), .rsp_adm_rsp_i(rsp_adm_rsp),
    .req_adm_valid_o(req_adm_valid), .req_adm_ready_i(req_adm_ready), .req_adm_o(req_adm),
    .req_adm_rsp_valid_i(req_adm_rsp_valid), .req_adm_rsp_i(req_adm_rsp),
    .drain_o(drain), .drain_done_i({eq_drain_done, cqe_drain_done, drain_done}),
    .ev_done_o(ev_done), .ev_error_o(ev_error), .ev_axi_rd_err_o(ev_rd_err), .ev_axi_wr_err_o(ev_wr_err),
    .idle_o(idle));

  logic qp_err_valid = 0, qp_err_ready, errev_valid;
  qp_idx_t qp_err_idx = '0, errev_idx;
  logic [0:0] qp_req_ready, qp_rsp_valid;
  qp_attr_t qp_rsp[1];
  logic qp_drain_done, qp_fatal, qp_idle;
  qp_table #(.NumPorts(1), .NumErr(1)) u_qp (
    .clk_i(clk), .rst_ni(rst_n), .req_valid_i(1'b0), .req_ready_o(qp_req_ready), .req_idx_i('0),
    .rsp_valid_o(qp_rsp_valid), .rsp_o(qp_rsp),
    .cmd_valid_i(qp_cmd_valid), .cmd_op_i(qp_cmd_op), .cmd_idx_i(qp_cmd_idx), .cmd_from_i(qp_cmd_from),
    .cmd_attr_i(qp_cmd_attr), .cmd_rsp_valid_o(qp_cmd_rsp_valid), .cmd_rsp_ok_o(qp_cmd_rsp_ok),
    .cmd_rsp_o(qp_cmd_rsp), .err_valid_i(qp_err_valid), .err_ready_o(qp_err_ready), .err_idx_i(qp_err_idx), .err_access_i(1'b0), .errev_why_o(),
    .errev_valid_o(errev_valid), .errev_ready_i(1'b1), .errev_idx_o(errev_idx),
    .probe_qp_i('0), .busy_o(), .dirty_o(), .ctx_valid_i(1'b0), .ctx_ready_o(), .ctx_load_i(1'b0), .ctx_qp_i('0), .ctx_i('0), .ctx_o(),
    .drain_i(drain), .drain_done_o(qp_drain_done), .ev_fatal_o(qp_fatal), .idle_o(qp_idle));
  logic [0:0] mr_req_ready, mr_rsp_valid;
  mr_t mr_rsp[1];
  logic [0:0] chg_valid = '0, chg_ready, chg_rsp_valid;
  mr_change_t [0:0] chg = '0;
  mr_change_t c0 = '0;
  mr_result_e chg_rsp;
  logic mr_idle;
  mr_table #(.DataW(DataW), .NumPorts(1), .NumChg(1), .LogSets(1), .LogWays(1), .NumW(9)) u_mr (
    .clk_i(clk), .rst_ni(rst_n), .mem_i(mr_mem), .pf_valid_i(1'b0), .pf_idx_i('0), .cmd_rsp_err_o(mr_cmd_err), .ev_o(ev_mr),
    .ar_valid_o(ar_valid[3]), .ar_ready_i(ar_ready[3]), .ar_addr_o(ar_addr[3]), .ar_len_o(ar_len[3]),
    .r_valid_i(r_valid[3]), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .aw_valid_o(aw_valid[3]), .aw_ready_i(aw_ready[3]), .aw_addr_o(aw_addr[3]), .aw_len_o(aw_len[3]),
    .w_valid_o(w_valid[3]), .w_ready_i(w_ready[3]), .w_data_o(w_data[3]), .w_strb_o(w_strb[3]), .w_last_o(w_last[3]),
    .b_valid_i(b_valid[3]), .b_err_i(b_err),
    .req_valid_i(1'b0), .req_ready_o(mr_req_ready), .req_idx_i('0),
    .rsp_valid_o(mr_rsp_valid), .rsp_o(mr_rsp),
    .cmd_valid_i(mr_cmd_valid), .cmd_ready_o(mr_cmd_ready), .cmd_lock_i(mr_cmd_lock), .cmd_op_i(mr_cmd_op),
    .cmd_idx_i(mr_cmd_idx), .cmd_mr_i(mr_cmd_mr), .cmd_qpn_i(mr_cmd_qpn),
    .cmd_rsp_valid_o(mr_cmd_rsp_valid), .cmd_rsp_o(mr_cmd_rsp), .cmd_rsp_bound_o(mr_cmd_bound),
    .chg_valid_i(chg_valid), .chg_ready_o(chg_ready), .chg_i(chg), .chg_rsp_valid_o(chg_rsp_valid), .chg_rsp_o(chg_rsp),
    .idle_o(mr_idle));
  ah_table u_ahs (.clk_i(clk), .rst_ni(rst_n), .req_valid_i('0), .req_idx_i('0), .rsp_valid_o(), .rsp_o(),
    .cmd_valid_i(ah_cmd_valid), .cmd_we_i(ah_cmd_we), .cmd_idx_i(ah_cmd_idx), .cmd_ah_i(ah_cmd_ah),
    .cmd_rsp_valid_o(ah_cmd_rsp_valid), .cmd_rsp_o(ah_cmd_rsp));
  logic cqe_ready, db_ready;
  logic [7:0] cqe_ev;
  logic [3:0] cqe_fail;
  qpn_t last_qpn;
  logic last_drained;
  cqe_writer #(.DataW(DataW), .LogSets(1), .LogWays(1)) u_cqe (
    .clk_i(clk), .rst_ni(rst_n), .time_i(now), .ready_o(), .mem_i(cq_mem),
    .ctx_ar_valid_o(ar_valid[2]), .ctx_ar_ready_i(ar_ready[2]), .ctx_ar_addr_o(ar_addr[2]), .ctx_ar_len_o(ar_len[2]),
    .ctx_r_valid_i(r_valid[2]), .ctx_r_data_i(r_data), .ctx_r_last_i(r_last), .ctx_r_err_i(r_err),
    .ctx_aw_valid_o(aw_valid[4]), .ctx_aw_ready_i(aw_ready[4]), .ctx_aw_addr_o(aw_addr[4]), .ctx_aw_len_o(aw_len[4]),
    .ctx_w_valid_o(w_valid[4]), .ctx_w_ready_i(w_ready[4]), .ctx_w_data_o(w_data[4]), .ctx_w_strb_o(w_strb[4]), .ctx_w_last_o(w_last[4]),
    .ctx_b_valid_i(b_valid[4]), .ctx_b_err_i(b_err), .ev_fatal_o(), .ev_ctx_o(ev_cq), .cmd_rsp_err_o(cq_cmd_err),
    .in_valid_i(1'b0), .in_ready_o(cqe_ready), .in_i('0),
    .db_valid_i(1'b0), .db_ready_o(db_ready), .db_cqn_i('0), .db_ci_i('0), .db_arm_i('0),
    .cmd_valid_i(cq_cmd_valid), .cmd_ready_o(cq_cmd_ready), .cmd_op_i(cq_cmd_op), .cmd_idx_i(cq_cmd_idx),
    .cmd_addr_i(cq_cmd_addr), .cmd_log_size_i(cq_cmd_log_size), .cmd_eqn_i(cq_cmd_eqn), .cmd_mod_i(cq_cmd_mod),
    .comp_valid_o(comp_valid), .comp_ready_i(comp_ready), .comp_o(comp), .cqerr_valid_o(ovr_valid), .cqerr_ready_i(1'b1),
    .cqerr_o(ovr), .wake_valid_o(wake_valid), .wake_o(wake),
    .cmd_rsp_valid_o(cq_cmd_rsp_valid), .cmd_rsp_o(cq_cmd_rsp),
    .aw_valid_o(aw_valid[1]), .aw_ready_i(aw_ready[1]), .aw_addr_o(aw_addr[1]), .aw_len_o(aw_len[1]),
    .w_valid_o(w_valid[1]), .w_ready_i(w_ready[1]), .w_data_o(w_data[1]), .w_strb_o(w_strb[1]),
    .w_last_o(w_last[1]), .b_valid_i(b_valid[1]), .b_err_i(b_err),
    .drain_i(drain), .drain_done_o(cqe_drain_done),
    .ev_cqe_o(cqe_ev[0]), .ev_lost_o(cqe_ev[1]), .ev_overrun_o(cqe_ev[2]), .ev_error_o(cqe_fail[1:0]),
    .ev_flush_o(cqe_fail[3:2]), .ev_bad_db_o(cqe_ev[5]), .ev_axi_err_o(cqe_ev[6]), .last_valid_o(cqe_ev[7]), .last_ready_i(1'b1), .last_qpn_o(last_qpn), .in_qpn_i('0), .last_drained_o(last_drained), .idle_o(cqe_idle));
  eq_writer #(.DataW(DataW)) u_eq (
    .clk_i(clk), .rst_ni(rst_n), .comp_valid_i(comp_valid), .comp_ready_o(comp_ready), .comp_i(comp),
    .async_valid_i(event_valid), .async_ready_o(event_ready), .async_i(event_out),
    .db_valid_i(1'b0), .db_ready_o(), .db_eqn_i('0), .db_arm_i(1'b0), .db_ci_i('0),
    .cmd_valid_i(eq_cmd_valid), .cmd_ready_o(eq_cmd_ready), .cmd_op_i(eq_cmd_op), .cmd_idx_i(eq_cmd_idx),
    .cmd_addr_i(eq_cmd_addr), .cmd_log_size_i(eq_cmd_log_size), .cmd_vector_i(eq_cmd_vector),
    .cmd_rsp_valid_o(eq_cmd_rsp_valid), .cmd_rsp_o(eq_cmd_rsp),
    .aw_valid_o(aw_valid[0]), .aw_ready_i(aw_ready[0]), .aw_addr_o(aw_addr[0]), .aw_len_o(aw_len[0]),
    .w_valid_o(w_valid[0]), .w_ready_i(w_ready[0]), .w_data_o(w_data[0]), .w_strb_o(w_strb[0]),
    .w_last_o(w_last[0]), .b_valid_i(b_valid[0]), .b_err_i(b_err), .irq_valid_o(irq_valid), .irq_vec_o(irq_vec),
    .drain_i(drain), .drain_done_o(eq_drain_done), .ev_eqe_o(), .ev_lost_o(), .ev_bad_db_o(), .ev_axi_err_o(),
    .idle_o(eq_idle));
  qp_attr_t last_attr;   // written to the table
  always @(posedge clk) if (qp_cmd_valid && qp_cmd_op == QpCmdWrite) last_attr = qp_cmd_attr;

  // ---- SRQs: a model ----
  srq_ctx_t srqs[512];
  logic srq_cmd_err = 0;
  int srq_refused = -1, srq_refused_op = -1;   // its context is refused, to all or to one kind of command
  logic srq_taken = 0;
  initial for (int i = 0; i < 512; i++) srqs[i] = '0;
  srq_cmd_e srq_op;
  srq_idx_t srq_idx;
  srq_attr_t srq_attr;
  logic [15:0] srq_limit;
  always @(posedge clk) begin
    srq_taken = srq_cmd_valid && srq_cmd_ready;
    srq_op = srq_cmd_op;
    srq_idx = srq_cmd_idx;
    srq_attr = srq_cmd_attr;
    srq_limit = srq_cmd_limit;
  end
  always @(negedge clk) if (rst_n) begin
    srq_cmd_rsp_valid = srq_taken;
    if (srq_taken) begin
      if (srq_idx >= 512) $fatal(1, "SRQ %0d", srq_idx);
      srq_cmd_err = int'(srq_idx) == srq_refused && (srq_refused_op < 0 || int'(srq_op) == srq_refused_op);
      srq_cmd_rsp = srq_cmd_err ? {($bits(srq_ctx_t) / 32 + 1) {$urandom()}} : srqs[srq_idx];
      if (!srq_cmd_err) case (srq_op)
        SrqCmdCreate: srqs[srq_idx] = '{exists: 1, dead: srq_idx == 300, attr: srq_attr, limit: srq_limit, pi: 16'h1234, ci: 16'h5678};
        SrqCmdLimit: srqs[srq_idx].limit = srq_limit;
        SrqCmdDestroy: srqs[srq_idx].exists = 0;
        default: ;
      endcase
    end
    srq_cmd_ready = srq_cmd_valid && !srq_taken && ($urandom() % 2) == 0;
  end

  assign ar_valid[1] = '0;
  assign ar_addr[1] = '0;
  assign ar_len[1] = '0;

  logic [3:0] awid, bid, arid, rid;
  logic [63:0] awaddr, araddr;
  logic [7:0] awlen, arlen;
  logic [2:0] awsize, arsize;
  logic [1:0] awburst, arburst, bresp, rresp;
  logic awvalid, awready, wlast, wvalid, wready, bvalid, bready, arvalid, arready, rlast, rvalid, rready;
  logic [DataW-1:0] wdata, rdata;
  logic [DataW/8-1:0] wstrb;
  axi_rd_arb #(.DataW(DataW), .NumClients(4)) u_rd (
    .clk_i(clk), .rst_ni(rst_n), .stop_i(stop), .busy_o(rd_busy),
    .ar_valid_i(ar_valid), .ar_ready_o(ar_ready), .ar_addr_i(ar_addr), .ar_len_i(ar_len),
    .r_valid_o(r_valid), .r_data_o(r_data), .r_last_o(r_last), .r_err_o(r_err),
    .m_axi_arid_o(arid), .m_axi_araddr_o(araddr), .m_axi_arlen_o(arlen), .m_axi_arsize_o(arsize),
    .m_axi_arburst_o(arburst), .m_axi_arvalid_o(arvalid), .m_axi_arready_i(arready), .m_axi_rid_i(rid),
    .m_axi_rdata_i(rdata), .m_axi_rresp_i(rresp), .m_axi_rlast_i(rlast), .m_axi_rvalid_i(rvalid),
    .m_axi_rready_o(rready));
  axi_wr_mux #(.DataW(DataW), .NumClients(5)) u_wr (
    .clk_i(clk), .rst_ni(rst_n), .stop_i(stop), .busy_o(wr_busy),
    .aw_valid_i(aw_valid), .aw_ready_o(aw_ready), .aw_addr_i(aw_addr), .aw_len_i(aw_len),
    .w_valid_i(w_valid), .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb), .w_last_i(w_last),
    .b_valid_o(b_valid), .b_err_o(b_err),
    .m_axi_awid_o(awid), .m_axi_awaddr_o(awaddr), .m_axi_awlen_o(awlen), .m_axi_awsize_o(awsize),
    .m_axi_awburst_o(awburst), .m_axi_awvalid_o(awvalid), .m_axi_awready_i(awready),
    .m_axi_wdata_o(wdata), .m_axi_wstrb_o(wstrb), .m_axi_wlast_o(wlast), .m_axi_wvalid_o(wvalid),
    .m_axi_wready_i(wready), .m_axi_bid_i(bid), .m_axi_bresp_i(bresp), .m_axi_bvalid_i(bvalid),
    .m_axi_bready_o(bready));
  axi_mem #(.DataW(DataW), .NumIds(5)) u_mem (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(awid), .awaddr_i(awaddr), .awlen_i(awlen), .awsize_i(awsize), .awburst_i(awburst),
    .awvalid_i(awvalid), .awready_o(awready), .wdata_i(wdata), .wstrb_i(wstrb), .wlast_i(wlast),
    .wvalid_i(wvalid), .wready_o(wready), .bid_o(bid), .bresp_o(bresp), .bvalid_o(bvalid), .bready_i(bready),
    .arid_i(arid), .araddr_i(araddr), .arlen_i(arlen), .arsize_i(arsize), .arburst_i(arburst),
    .arvalid_i(arvalid), .arready_o(arready), .rid_o(rid), .rdata_o(rdata), .rresp_o(rresp), .rlast_o(rlast),
    .rvalid_o(rvalid), .rready_i(rready));

  // ---- slots of QPs: the low bits of the QPN; memory refuses the context of 0x1ee ----------------------
  bit ex[512];
  bit qpl_pin = 0, qpl_asked = 0;
  int qpl_wait = 0, pins = 0;
  logic [23:0] qpl_asked_qpn;
  bit qpl_asked_create;
  always @(negedge clk) if (rst_n) begin
    qpl_rsp_valid = 0;
    if (qpl_asked) begin
      if (qpl_wait > 0) qpl_wait--;
      else begin
        qpl_asked = 0;
        qpl_rsp_valid = 1;
        qpl_slot = qpl_asked_qpn[7:0];
        if (qpl_asked_qpn == 24'h1ee) qpl_status = QpcRefused;
        else if (qpl_asked_create) qpl_status = ex[qpl_asked_qpn[8:0]] ? QpcExists : QpcOk;
        else qpl_status = ex[qpl_asked_qpn[8:0]] ? QpcOk : QpcNone;
        if (qpl_status == QpcOk) begin
          ex[qpl_asked_qpn[8:0]] = 1;
          qpl_pin = 1;
          pins++;
        end
      end
    end
    qpl_req_ready = 1'($urandom());
  end
  always @(posedge clk) if (rst_n) begin
    if (qpl_rel) begin
      if (!qpl_pin) $fatal(1, "slot given up that is not held");
      qpl_pin = 0;
      if (qpl_forget) ex[qpl_asked_qpn[8:0]] = 0;
    end
    if (qpl_req_valid && qpl_req_ready) begin
      if (qpl_pin || qpl_asked) $fatal(1, "asks for a second slot");
      qpl_asked = 1;
      qpl_asked_qpn = qpl_qpn;
      qpl_asked_create = qpl_create;
      qpl_wait = $urandom_range(0, 5);
    end
    if (qp_cmd_valid && !qpl_pin) $fatal(1, "QP table asked without a slot");
    if ((rsp_adm_valid || req_adm_valid) && !qpl_pin) $fatal(1, "state of a QP without a slot");
  end

  // ---- owners of QP state: remember what they were told, answer queries ------------------------------
  logic req_draining = 0;
  int adm_inits_rsp = 0, adm_inits_req = 0, adm_others_req = 0, rsp_wait = 0, req_wait = 0;
  qp_admin_t last_rsp, last_req;
  function automatic rsp_query_t rsp_answer(input qp_idx_t qp);
    return '{expected_psn: 24'h100000 | 24'(qp), msn: 24'h200000 | 24'(qp),
             rq: '{open: qp[0], pi: 16'h1000 | 16'(qp), ci: 16'h2000 | 16'(qp)}};
  endfunction
  function automatic req_query_t req_answer(input qp_idx_t qp);
    return '{next_psn: 24'h300000 | 24'(qp), una_psn: 24'h400000 | 24'(qp), pi: 16'h5000 | 16'(qp),
             next: 16'h6000 | 16'(qp), ci: 16'h7000 | 16'(qp), draining: req_draining};
  endfunction
  always @(negedge clk) if (rst_n) begin
    rsp_adm_rsp_valid = 0;
    req_adm_rsp_valid = 0;
    if (rsp_adm_ready) begin
      rsp_adm_ready = 0;
      rsp_wait = 1 + int'($urandom() % 5);
    end else if (rsp_wait > 0) begin
      rsp_wait--;
      if (rsp_wait == 0) begin
        rsp_adm_rsp_valid = 1;
        rsp_adm_rsp = rsp_answer(last_rsp.qp);
      end
    end else if (rsp_adm_valid && ($urandom() % 2) == 0) begin
      rsp_adm_ready = 1;
      last_rsp = rsp_adm;
      if (rsp_adm.op != QpStateQuery) adm_inits_rsp++;
    end
    if (req_adm_ready) begin
      req_adm_ready = 0;
      req_wait = 1 + int'($urandom() % 5);
    end else if (req_wait > 0) begin
      req_wait--;
      if (req_wait == 0) begin
        req_adm_rsp_valid = 1;
        req_adm_rsp = req_answer(last_req.qp);
      end
    end else if (req_adm_valid && ($urandom() % 2) == 0) begin
      req_adm_ready = 1;
      last_req = req_adm;
      if (req_adm.op == QpStateInit) adm_inits_req++;
      else if (req_adm.op != QpStateQuery) adm_others_req++;
    end
  end

  // ---- blocks that drain ------------------------------------------------------------------------------
  int drain_rounds = 0, state_round = 0, drain_wait[NumDrain];  // state_round: rounds when the state of a QP was written alone
  logic drain_old = 0, drain_block = 0;
  always @(negedge clk) if (rst_n) begin
    if (drain_old && !drain) begin
      drain_rounds++;
      if (!(&drain_done)) $fatal(1, "round ended before all blocks were done");
    end
    drain_old = drain;
    if (qp_cmd_valid && qp_cmd_op == QpCmdState) state_round = drain_rounds;
    for (int i = 0; i < NumDrain; i++) begin
      if (!drain) begin
        drain_done[i] = 0;
        drain_wait[i] = int'($urandom() % 20);
      end else if (drain_wait[i] > 0) drain_wait[i]--;
      else if (!(drain_block && i == 1)) drain_done[i] = 1;
    end
  end

  // ---- software --------------------------------------------------------------------------------------------
  rnic_regs_pkg::mr_entry_t mc;
  rnic_regs_pkg::ctx_mem_t xc;
  rnic_regs_pkg::cq_context_t cc;
  rnic_regs_pkg::srq_context_t sc, rs;
  rnic_regs_pkg::rsp_header_t rh;
  rnic_regs_pkg::qp_context_t rq;
  rnic_regs_pkg::mr_entry_t rm;
  rnic_regs_pkg::cq_context_t rc;
  rnic_regs_pkg::eq_context_t ec, re;
  rnic_regs_pkg::device_caps_t rd;
  logic [2047:0] slot, answer;
  int errors = 0, dones = 0, commands = 0, rd_errs = 0, wr_errs = 0, fatals = 0;
  always @(posedge clk) if (rst_n) begin
    if (ev_error) errors++;
    if (ev_done) dones++;
    if (ev_rd_err) rd_errs++;
    if (ev_wr_err) wr_errs++;
    if (qp_fatal) fatals++;
  end
  logic [15:0] sequence_no = 16'h7ff0;

  rnic_regs_pkg::qp_context_t a, b, want, old;

  // Tasks are copied to where they are called: the work is done once, in a process that they ask.
  logic t_go = 0, t_post = 0, t_check = 0, t_notify = 0;
  logic [7:0] t_op, t_status, t_syndrome;
  logic [31:0] t_object;
  logic [1535:0] t_body;
  rnic_regs_pkg::qp_context_t t_want;
  logic [63:0] t_at;
  logic t_phase;
  int t_waits;

  always @(negedge clk) if (t_go) begin
    t_at = RspBase + 64'(256 * (int'(pi) % (1 << log_size)));
    t_phase = ((int'(pi) >> log_size) & 1) == 0;
    if (u_mem.get(t_at + 15) >> 7 == 8'(t_phase)) $fatal(1, "slot %0d is valid before the command", pi);
    // answers must overwrite all of the slot
    for (int i = 0; i < 255; i++) if (i != 15) u_mem.mem[t_at + 64'(i)] = 8'hee;
    sequence_no++;
    slot = '0;
    slot[7:0] = t_op;
    slot[31:16] = sequence_no;
    slot[8] = t_notify;
    slot[63:32] = t_object;
    case (t_base)
      BaseMr: t_body = 1536'(mc);
      BaseCtx: t_body = 1536'(xc);
      BaseCq: t_body = 1536'(cc);
      BaseEq: t_body = 1536'(ec);
      BaseAh: t_body = 1536'(hent);
      BaseSrq: t_body = 1536'(sc);
      BaseA: t_body = a;
      BaseB: t_body = b;
      default: t_body = '0;
    endcase
    for (int i = 0; i < t_wid; i++) t_body[t_off+i] = t_val[i];
    if (t_op == CmdOpcodeModifyQp) t_body[7:0] = t_state;
    slot[128+:1536] = t_body;
    t_at = CmdBase + 64'(256 * (int'(pi) % (1 << log_size)));
    for (int i = 0; i < 256; i++) u_mem.mem[t_at + 64'(i)] = slot[8*i+:8];
    @(negedge clk);
    pi++;
    if (!t_post) begin
      t_waits = 0;
      while (ci != pi && t_waits < 20000) begin
        @(negedge clk);
        t_waits++;
      end
      if (ci != pi) $fatal(1, "op %0d of %h not answered: ci %0d, want %0d", t_op, t_object, ci, pi);
      commands++;
      t_at = RspBase + 64'(256 * (int'(pi - 16'd1) % (1 << log_size)));
      for (int i = 0; i < 256; i++) answer[8*i+:8] = u_mem.get(t_at + 64'(i));
      rh = answer[127:0];
      rm = answer[128+:384];
      rc = answer[128+:256];
      re = answer[128+:256];
      rs = answer[128+:256];
      rq = answer[128+:1536];
      rd = answer[128+:512];
      hgot = answer[128+:512];
      if (rh.status != t_status || rh.syndrome != t_syndrome)
        $fatal(1, "op %0d object %h: status %0d syndrome %0d, want %0d %0d", t_op, t_object, rh.status,
               rh.syndrome, t_status, t_syndrome);
      if (t_status != ExecError && (rh.seq != sequence_no || rh.object != t_object)) $fatal(1, "header %h", rh);
      if (rh.phase != t_phase) $fatal(1, "phase");
      if (answer[126:64] != 0 || answer[2047:1664] != 0) $fatal(1, "rest of the slot: %h", answer);
      if (!(t_op inside {CmdOpcodeQueryDevice, CmdOpcodeQueryMr, CmdOpcodeQueryCq, CmdOpcodeQueryEq, CmdOpcodeQueryQp, CmdOpcodeQuerySrq, CmdOpcodeQueryMw, CmdOpcodeQueryAh} &&
            t_status == Ok) && answer[1663:128] != 0) $fatal(1, "body without query");
      if (t_check) begin
        t_want = want;
        t_want.next_psn = 24'h300000 | 24'(t_object[7:0]);
        t_want.una_psn = 24'h400000 | 24'(t_object[7:0]);
        t_want.sq_pi = 16'h5000 | 16'(t_object[7:0]);
        t_want.sq_next = 16'h6000 | 16'(t_object[7:0]);
        t_want.sq_ci = 16'h7000 | 16'(t_object[7:0]);
        t_want.expected_psn = 24'h100000 | 24'(t_object[7:0]);
        t_want.rq_open = t_object[0];
        t_want.rq_pi = 16'h1000 | 16'(t_object[7:0]);
        t_want.rq_ci = 16'h2000 | 16'(t_object[7:0]);
        t_want.msn = 24'h200000 | 24'(t_object[7:0]);
        if (rq != t_want) $fatal(1, "QP %h:\n got %h\nwant %h", t_object, rq, t_want);
      end
    end
    t_go = 0;
  end

  typedef enum int {BaseNone, BaseMr, BaseCtx, BaseCq, BaseEq, BaseAh, BaseSrq, BaseA, BaseB} base_e;
  base_e t_base;
  int t_off, t_wid;
  logic [63:0] t_val;
  logic [7:0] t_state;

  task automatic ask(input logic post_only, input logic check, input logic [7:0] op, input logic [31:0] object,
                     input logic [7:0] status, input logic [7:0] syndrome);
    t_post = post_only;
    t_check = check;
    t_op = op;
    t_object = object;
    t_status = status;
    t_syndrome = syndrome;
    t_go = 1;
    do @(negedge clk); while (t_go);
  endtask

  task automatic post(input logic [7:0] op, input logic [31:0] object, input base_e base, input logic [7:0] state);
    t_base = base;
    t_wid = 0;
    t_state = state;
    ask(1, 0, op, object, 0, 0);
  endtask

  task automatic run(input logic [7:0] op, input logic [31:0] object, input base_e base, input logic [7:0] status,
                     input logic [7:0] syndrome);
    t_base = base;
    t_wid = 0;
    ask(0, 0, op, object, status, syndrome);
  endtask

  // the same with `wid` bits at byte `off` of the body set to `val`
  task automatic runp(input logic [7:0] op, input logic [31:0] object, input base_e base, input int off,
                      input int wid, input logic [63:0] val, input logic [7:0] status, input logic [7:0] syndrome);
    t_base = base;
    t_off = 8 * off;
    t_wid = wid;
    t_val = val;
    ask(0, 0, op, object, status, syndrome);
  endtask

  // a query of this QP must show what `want` says
  task automatic check_qp(input logic [31:0] qpn);
    t_base = BaseNone;
    t_wid = 0;
    ask(0, 1, CmdOpcodeQueryQp, qpn, Ok, 0);
  endtask

  task automatic modify(input logic [31:0] qpn, input base_e base, input logic [7:0] state, input logic [7:0] status,
                        input logic [7:0] syndrome);
    t_state = state;
    run(CmdOpcodeModifyQp, qpn, base, status, syndrome);
  endtask

  task automatic modifyp(input logic [31:0] qpn, input base_e base, input logic [7:0] state, input int off,
                         input int wid, input logic [63:0] val, input logic [7:0] status, input logic [7:0] syndrome);
    t_state = state;
    runp(CmdOpcodeModifyQp, qpn, base, off, wid, val, status, syndrome);
  endtask

  task automatic wait_answer(input logic [15:0] n);
    int waits;
    waits = 0;
    while (ci != n && waits < 20000) begin
      @(negedge clk);
      waits++;
    end
    if (ci != n) $fatal(1, "command not answered: ci %0d, want %0d", ci, n);
  endtask

  function automatic rnic_regs_pkg::qp_context_t rand_ctx();
    rnic_regs_pkg::qp_context_t c;
    c = '0;
    c.qp_type = 2;
    c.path_mtu = 8'(1 + $urandom() % 5);
    {c.remote_write, c.remote_read, c.remote_atomic, c.ipv6, c.vlan} = 5'($urandom());
    c.pd = 24'($urandom());
    c.dest_qpn = 24'(2 + $urandom() % 10000);
    c.sq_psn = 24'($urandom());
    c.rq_psn = 24'($urandom());
    c.send_cqn = 5;
    c.recv_cqn = 255;
    c.pkey = 16'($urandom());
    c.timeout = 8'($urandom() % 32);
    c.retry_cnt = 8'($urandom() % 8);
    c.sq_addr = {$urandom(), $urandom()} & ~64'h7f;
    c.rq_stride128 = 1'b1;
    c.rq_addr = {$urandom(), $urandom()} & ~64'h7f;
    c.log_sq_size = 8'($urandom() % 16);
    c.log_rq_size = 8'($urandom() % 16);
    c.rnr_retry = 8'($urandom() % 8);
    c.min_rnr_timer = 8'($urandom() % 32);
    c.max_rd_atomic = 8'($urandom() % 9);
    c.max_dest_rd_atomic = 8'($urandom() % 9);
    c.flow_control = 1'($urandom());
    c.udp_sport = 16'($urandom());
    c.dmac = 48'({$urandom(), $urandom()});
    c.vlan_tci = 16'($urandom());
    c.hop_limit = 8'($urandom());
    c.traffic_class = 8'($urandom());
    c.flow_label = 24'($urandom()) & 24'h0fffff;
    c.sgid = {$urandom(), $urandom(), $urandom(), $urandom()};
    c.dgid = {$urandom(), $urandom(), $urandom(), $urandom()};
    return c;
  endfunction

  localparam logic [31:0] Q = 32'h1ab;
  task automatic err_qp(input qp_idx_t idx);
    qp_err_valid = 1;
    qp_err_idx = idx;
    do @(posedge clk); while (!qp_err_ready);
    @(negedge clk);
    qp_err_valid = 0;
    @(negedge clk);
  endtask

  // a bind, that must succeed
  task automatic change();
    int waits;
    waits = 0;
    chg = c0;
    chg_valid = 1;
    do @(posedge clk); while (!chg_ready[0]);
    @(negedge clk);
    chg_valid = 0;
    while (!chg_rsp_valid[0] && waits < 2000) begin
      @(negedge clk);
      waits++;
    end
    if (!chg_rsp_valid[0] || chg_rsp != MrDone) $fatal(1, "bind refused");
  endtask
  int n, m, others;

  initial begin
    for (int i = 0; i < NumDrain; i++) drain_wait[i] = 0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    repeat (4) @(negedge clk);
    enable = 1;
    @(negedge clk);

    // device
    run(CmdOpcodeNop, 0, BaseNone, Ok, 0);
    run(CmdOpcodeQueryDevice, 0, BaseNone, Ok, 0);
    if (rd.num_qp != 65536 || rd.num_cq != 65536 || rd.num_mr != 1 << 24 || rd.first_qpn != 2 || rd.max_sge != 4 ||
        rd.log_max_queue != 15 || rd.max_inflight != 128 || rd.data_width != DataW || rd.max_frame != 9216 ||
        rd.num_eq != 32 || rd.num_vectors != 4 || rd.num_srq != 65536 || rd.max_dest_rd_atomic != 8 ||
        rd.max_rd_atomic != 8 || rd.max_push != 128)
      $fatal(1, "caps %h", rd);
    run(3, 0, BaseNone, BadOpcode, 0);
    run(8'hff, 0, BaseNone, BadOpcode, 0);
    run(52, 0, BaseNone, BadOpcode, 0);

    // memory regions
    mc = '{key: 32'h0003ff5a, pd: 24'habcdef, local_write: 1, remote_write: 1, remote_read: 1, remote_atomic: 0,
           va: 64'h7fff_1234_5678_9abc, length: 64'h0001_0000_0000_0000, iova: 64'h0000_1111_2222_3333, default: '0};
    // no MR without memory for it; given once
    run(CmdOpcodeQueryMr, 0, BaseNone, BadIndex, 0);
    run(CmdOpcodeCreateMr, 0, BaseMr, BadIndex, 0);
    xc = '0;
    xc.addr = MrBase;
    xc.log_num = 10;
    run(CmdOpcodeSetCtxMem, 4, BaseCtx, BadIndex, 0);
    runp(CmdOpcodeSetCtxMem, 0, BaseCtx, 0, 64, MrBase + 64'd2048, BadParam, SynCtxAddr);
    runp(CmdOpcodeSetCtxMem, 0, BaseCtx, 8, 8, 64'd25, BadParam, SynCtxNum);
    if (mr_mem.on) $fatal(1, "refused, but taken");
    run(CmdOpcodeSetCtxMem, 0, BaseCtx, Ok, 0);
    runp(CmdOpcodeSetCtxMem, 0, BaseCtx, 0, 64, MrBase + 64'd4096, Exists, 0);
    if (mr_mem != {1'b1, MrBase[63:6], 5'd10}) $fatal(1, "memory of MRs: %p", mr_mem);
    // the same for QPs
    run(CmdOpcodeQueryQp, Q, BaseNone, BadIndex, 0);
    runp(CmdOpcodeSetCtxMem, 1, BaseCtx, 8, 8, 64'd17, BadParam, SynCtxNum);
    if (qp_mem.on) $fatal(1, "refused, but taken");
    runp(CmdOpcodeSetCtxMem, 1, BaseCtx, 8, 8, 64'd9, Ok, 0);
    run(CmdOpcodeSetCtxMem, 1, BaseCtx, Exists, 0);
    if (qp_mem != {1'b1, MrBase[63:6], 5'd9}) $fatal(1, "memory of QPs: %p", qp_mem);
    // and for CQs
    run(CmdOpcodeQueryCq, 5, BaseNone, BadIndex, 0);
    run(CmdOpcodeCreateCq, 5, BaseCq, BadIndex, 0);
    xc.addr = CqBase;
    runp(CmdOpcodeSetCtxMem, 2, BaseCtx, 8, 8, 64'd17, BadParam, SynCtxNum);
    if (cq_mem.on) $fatal(1, "refused, but taken");
    runp(CmdOpcodeSetCtxMem, 2, BaseCtx, 8, 8, 64'd8, Ok, 0);
    run(CmdOpcodeSetCtxMem, 2, BaseCtx, Exists, 0);
    if (cq_mem != {1'b1, CqBase[63:6], 5'd8}) $fatal(1, "memory of CQs: %p", cq_mem);
    // and for SRQs
    run(CmdOpcodeQuerySrq, 5, BaseNone, BadIndex, 0);
    run(CmdOpcodeCreateSrq, 5, BaseSrq, BadIndex, 0);
    runp(CmdOpcodeSetCtxMem, 3, BaseCtx, 8, 8, 64'd17, BadParam, SynCtxNum);
    if (srq_mem.on) $fatal(1, "refused, but taken");
    runp(CmdOpcodeSetCtxMem, 3, BaseCtx, 8, 8, 64'd9, Ok, 0);
    run(CmdOpcodeSetCtxMem, 3, BaseCtx, Exists, 0);
    if (srq_mem != {1'b1, CqBase[63:6], 5'd9}) $fatal(1, "memory of SRQs: %p", srq_mem);
    if (cq_mem != {1'b1, CqBase[63:6], 5'd8} || qp_mem.log_num != 5'd9 || mr_mem.log_num != 5'd10) $fatal(1, "memory of others");
    run(CmdOpcodeQueryMr, 1023, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyMr, 1023, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateMr, 1024, BaseMr, BadIndex, 0);
    run(CmdOpcodeQueryMr, 32'h80000000, BaseNone, BadIndex, 0);
    run(CmdOpcodeDestroyMr, 1024, BaseNone, BadIndex, 0);
    run(CmdOpcodeCreateMr, 1022, BaseMr, BadParam, SynMrKey);
    runp(CmdOpcodeCreateMr, 1023, BaseMr, 0, 32, 64'h0103ff5a, BadParam, SynMrKey);
    runp(CmdOpcodeCreateMr, 1023, BaseMr, 16, 64, 64'd0, BadParam, SynMrLength);
    runp(CmdOpcodeCreateMr, 1023, BaseMr, 16, 64, (64'd1 << 48) + 64'd1, BadParam, SynMrLength);
    runp(CmdOpcodeCreateMr, 1023, BaseMr, 8, 64, 64'hffff_0000_0000_0000, BadParam, SynMrLength);
    runp(CmdOpcodeCreateMr, 1023, BaseMr, 24, 64, 64'hffff_0000_0000_0001, BadParam, SynMrLength);
    runp(CmdOpcodeCreateMr, 1023, BaseMr, 7, 4, 64'b0010, BadParam, SynMrAccess);
    runp(CmdOpcodeCreateMr, 1023, BaseMr, 7, 4, 64'b1000, BadParam, SynMrAccess);
    run(CmdOpcodeQueryMr, 1023, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateMr, 1023, BaseMr, Ok, 0);
    run(CmdOpcodeCreateMr, 1023, BaseMr, Exists, 0);
    run(CmdOpcodeQueryMr, 1023, BaseNone, Ok, 0);
    mc.valid = 1;
    if (rm != mc) $fatal(1, "MR %h, want %h", rm, mc);
    mc.key = 32'h00000001;
    mc.va = 64'hfffe_ffff_ffff_ffff;
    mc.iova = 0;
    mc.local_write = 0;
    mc.remote_write = 0;
    run(CmdOpcodeCreateMr, 0, BaseMr, Ok, 0);
    run(CmdOpcodeQueryMr, 0, BaseNone, Ok, 0);
    if (rm != mc) $fatal(1, "MR 0");
    n = drain_rounds;
    run(CmdOpcodeDestroyMr, 1023, BaseNone, Ok, 0);
    if (drain_rounds != n + 7) $fatal(1, "%0d drain rounds", drain_rounds - n);
    run(CmdOpcodeQueryMr, 1023, BaseNone, NotFound, 0);
    run(CmdOpcodeQueryMr, 0, BaseNone, Ok, 0);

    // event queues
    ec = '{addr: 64'h0000_0005_0000_1240, log_size: 15, irq_vec: 3, default: '0};
    run(CmdOpcodeQueryEq, 7, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyEq, 31, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateEq, 32, BaseEq, BadIndex, 0);
    run(CmdOpcodeQueryEq, 32'h100, BaseNone, BadIndex, 0);
    runp(CmdOpcodeCreateEq, 7, BaseEq, 0, 6, 64'h20, BadParam, SynEqAddr);
    runp(CmdOpcodeCreateEq, 7, BaseEq, 8, 8, 64'd0, BadParam, SynEqSize);
    runp(CmdOpcodeCreateEq, 7, BaseEq, 8, 8, 64'd16, BadParam, SynEqSize);
    runp(CmdOpcodeCreateEq, 7, BaseEq, 9, 8, 64'd4, BadParam, SynEqVector);
    run(CmdOpcodeQueryEq, 7, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateEq, 7, BaseEq, Ok, 0);
    run(CmdOpcodeCreateEq, 7, BaseEq, Exists, 0);
    run(CmdOpcodeQueryEq, 7, BaseNone, Ok, 0);
    if (re != ec) $fatal(1, "EQ %h, want %h", re, ec);
    ec.log_size = 4;
    run(CmdOpcodeCreateEq, 0, BaseEq, Ok, 0);
    n = drain_rounds;
    run(CmdOpcodeDestroyEq, 7, BaseNone, Ok, 0);
    if (drain_rounds != n + 7) $fatal(1, "EQ destroy drained %0d rounds", drain_rounds - n);
    run(CmdOpcodeQueryEq, 7, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateEq, 7, BaseEq, Ok, 0);
    // an event for a command that wants one
    t_notify = 1;
    run(CmdOpcodeQueryEq, 7, BaseNone, Ok, 0);
    t_notify = 0;
    repeat (200) @(negedge clk);
    if (u_mem.get(ec.addr) != 2 || u_mem.get(ec.addr + 4) != 7 || u_mem.get(ec.addr + 8) != sequence_no[7:0] ||
        u_mem.get(ec.addr + 15) != 8'h80 || u_mem.get(ec.addr + 31) != 0) $fatal(1, "command event");
    run(CmdOpcodeQueryEq, 0, BaseNone, Ok, 0);
    if (re.pi != 1) $fatal(1, "%0d command events", re.pi);

    // memory windows: a key and a PD, nothing else is looked at; bound by work requests
    mc = '0;
    mc.key = 32'h00000402;
    mc.pd = 24'h77; mc.local_write = 1; mc.mw_bind = 1; mc.va = 64'h10000; mc.length = 64'h1000; mc.iova = 64'h4_0000_0000;
    run(CmdOpcodeCreateMr, 4, BaseMr, Ok, 0);
    mc.valid = 1;
    run(CmdOpcodeQueryMr, 4, BaseNone, Ok, 0);
    if (rm != mc) $fatal(1, "MR 4 %h", rm);
    run(CmdOpcodeQueryMw, 4, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyMw, 4, BaseNone, NotFound, 0);
    mc.key = 32'h00000333;
    mc.length = 0; mc.remote_write = 1;
    run(CmdOpcodeCreateMw, 1024, BaseMr, BadIndex, 0);
    run(CmdOpcodeCreateMw, 2, BaseMr, BadParam, SynMrKey);
    runp(CmdOpcodeCreateMw, 4, BaseMr, 0, 32, 64'h401, Exists, 0);
    run(CmdOpcodeCreateMw, 3, BaseMr, Ok, 0);
    run(CmdOpcodeQueryMr, 3, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyMr, 3, BaseNone, NotFound, 0);
    run(CmdOpcodeQueryMw, 3, BaseNone, Ok, 0);
    if (rm.key != 32'h333 || rm.pd != 24'h77 || rm.valid || rm.remote_write || rm.va != 0) $fatal(1, "MW %h", rm);
    c0.op = MrBind; c0.qpn = Q[15:0]; c0.pd = 24'h77; c0.key = 32'h344; c0.lkey = 32'h402; c0.addr = 64'h10800; c0.length = 32'h800;
    c0.remote_write = 1;
    change();
    run(CmdOpcodeQueryMw, 3, BaseNone, Ok, 0);
    if (rm.key != 32'h344 || !rm.valid || !rm.remote_write || rm.va != 64'h10800 || rm.length != 64'h800 ||
        rm.iova != 64'h4_0000_0800 || rm.qpn != Q[23:0] || rm.parent != 4) $fatal(1, "MW bound %h", rm);
    run(CmdOpcodeDestroyMr, 4, BaseNone, Busy, 0);

    // completion queues
    cc = '{addr: 64'hfedc_ba98_7654_3240, log_size: 15, eqn: 8'h7, default: '0};
    run(CmdOpcodeQueryCq, 5, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyCq, 5, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateCq, 256, BaseCq, BadIndex, 0);
    run(CmdOpcodeQueryCq, 256, BaseNone, BadIndex, 0);
    run(CmdOpcodeDestroyCq, 256, BaseNone, BadIndex, 0);
    cc.addr[4] = 1;
    run(CmdOpcodeCreateCq, 5, BaseCq, BadParam, SynCqAddr);
    cc.addr[4] = 0; cc.log_size = 0;
    run(CmdOpcodeCreateCq, 5, BaseCq, BadParam, SynCqSize);
    cc.log_size = 16;
    run(CmdOpcodeCreateCq, 5, BaseCq, BadParam, SynCqSize);
    cc.log_size = 15;
    cc.moderation_count = 16'd2;
    run(CmdOpcodeCreateCq, 5, BaseCq, BadParam, SynCqModeration);
    cc.moderation_period = 16'd700;
    cc.eqn = 32;
    run(CmdOpcodeCreateCq, 5, BaseCq, BadParam, SynCqEqn);
    cc.eqn = 8'hfe;
    run(CmdOpcodeCreateCq, 5, BaseCq, BadParam, SynCqEqn);
    cc.eqn = 8;
    run(CmdOpcodeCreateCq, 5, BaseCq, BadParam, SynCqEqn);
    run(CmdOpcodeModifyCq, 5, BaseCq, NotFound, 0);
    run(CmdOpcodeModifyCq, 256, BaseCq, BadIndex, 0);
    cc.eqn = 7;
    run(CmdOpcodeCreateCq, 5, BaseCq, Ok, 0);
    run(CmdOpcodeCreateCq, 5, BaseCq, Exists, 0);
    run(CmdOpcodeQueryCq, 5, BaseNone, Ok, 0);
    if (rc != cc) $fatal(1, "CQ %h, want %h", rc, cc);
    cc.moderation_count = 16'd1;
    cc.moderation_period = 0;
    run(CmdOpcodeModifyCq, 5, BaseCq, Ok, 0);
    run(CmdOpcodeQueryCq, 5, BaseNone, Ok, 0);
    if (rc != cc) $fatal(1, "modified CQ %h, want %h", rc, cc);
    runp(CmdOpcodeModifyCq, 5, BaseCq, 20, 16, 64'd2, BadParam, SynCqModeration);
    run(CmdOpcodeQueryCq, 5, BaseNone, Ok, 0);
    if (rc != cc) $fatal(1, "refused modify changed the CQ");
    run(CmdOpcodeDestroyEq, 7, BaseNone, Busy, 0);
    run(CmdOpcodeDestroyEq, 0, BaseNone, Ok, 0);
    cc.log_size = 1;
    run(CmdOpcodeCreateCq, 255, BaseCq, Ok, 0);
    cc.eqn = 8'hff;
    run(CmdOpcodeCreateCq, 9, BaseCq, Ok, 0);

    // queue pairs: creation
    a = rand_ctx();
    a.state = 0;
    run(CmdOpcodeQueryQp, Q, BaseNone, NotFound, 0);
    run(CmdOpcodeModifyQp, Q, BaseA, NotFound, 0);
    run(CmdOpcodeDestroyQp, Q, BaseNone, NotFound, 0);
    run(CmdOpcodeQueryQp, 32'h1ee, BaseNone, ExecError, 0);
    run(CmdOpcodeCreateQp, 32'h1ee, BaseA, ExecError, 0);
    run(CmdOpcodeQueryQp, 32'h2, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateQp, 32'h200, BaseA, BadIndex, 0);
    run(CmdOpcodeQueryQp, 32'h010001ab, BaseNone, BadIndex, 0);
    run(CmdOpcodeModifyQp, 32'h0, BaseA, BadIndex, 0);
    run(CmdOpcodeDestroyQp, 32'h1, BaseNone, BadIndex, 0);
    runp(CmdOpcodeCreateQp, Q, BaseA, 0, 8, 64'd1, BadParam, SynState);
    runp(CmdOpcodeCreateQp, Q, BaseA, 1, 8, 64'd1, BadParam, SynType);
    runp(CmdOpcodeCreateQp, Q, BaseA, 1, 8, 64'd18, BadParam, SynType);
    runp(CmdOpcodeCreateQp, Q, BaseA, 20, 24, 64'd6, BadParam, SynSendCqn);
    runp(CmdOpcodeCreateQp, Q, BaseA, 20, 24, 64'h010005, BadParam, SynSendCqn);
    runp(CmdOpcodeCreateQp, Q, BaseA, 24, 24, 64'd254, BadParam, SynRecvCqn);
    runp(CmdOpcodeCreateQp, Q, BaseA, 24, 24, 64'h0001ff, BadParam, SynRecvCqn);
    runp(CmdOpcodeCreateQp, Q, BaseA, 32, 6, 64'h20, BadParam, SynSqAddr);
    a.sq_addr[6] = 1;
    runp(CmdOpcodeCreateQp, Q, BaseA, 3, 5, 64'h10, BadParam, SynSqAddr);
    a.sq_addr[6] = 0;
    runp(CmdOpcodeCreateQp, Q, BaseA, 23, 8, 64'd1, BadParam, SynSendCqn);
    runp(CmdOpcodeCreateQp, Q, BaseA, 48, 8, 64'd16, BadParam, SynSqSize);
    runp(CmdOpcodeCreateQp, Q, BaseA, 40, 1, 64'd1, BadParam, SynRqAddr);
    runp(CmdOpcodeCreateQp, Q, BaseA, 40, 8, 64'h40, BadParam, SynRqAddr);
    runp(CmdOpcodeCreateQp, Q, BaseA, 49, 8, 64'h80, BadParam, SynRqSize);
    run(CmdOpcodeQueryQp, Q, BaseNone, NotFound, 0);
    // a refused creation uses no CQ
    run(CmdOpcodeDestroyCq, 9, BaseNone, Ok, 0);
    n = adm_inits_rsp; m = adm_inits_req;
    run(CmdOpcodeCreateQp, Q, BaseA, Ok, 0);
    if (adm_inits_rsp != n + 1 || adm_inits_req != m + 1) $fatal(1, "creation does not initialise");
    if (last_rsp.op != QpStateReset) $fatal(1, "creation does not empty the receive queue");
    run(CmdOpcodeCreateQp, Q, BaseA, Exists, 0);
    run(CmdOpcodeQueryMw, 3, BaseNone, Ok, 0);
    if (!rm.valid) $fatal(1, "window lost");
    want = a;
    check_qp(Q);
    run(CmdOpcodeDestroyCq, 5, BaseNone, Busy, 0);
    run(CmdOpcodeDestroyCq, 255, BaseNone, Busy, 0);

    // transitions that are not allowed
    b = a;
    modify(Q, BaseB, 2, BadState, SynState);
    modify(Q, BaseB, 3, BadState, SynState);
    modify(Q, BaseB, 4, BadState, SynState);
    modify(Q, BaseB, 5, BadState, SynState);
    modify(Q, BaseB, 7, BadParam, SynState);
    modify(Q, BaseB, 8'h81, BadParam, SynState);

    // to INIT: takes P_Key and rights, nothing else
    b = rand_ctx();
    b.send_cqn = a.send_cqn; b.recv_cqn = a.recv_cqn; b.sq_addr = a.sq_addr; b.rq_addr = a.rq_addr;
    b.log_sq_size = a.log_sq_size; b.log_rq_size = a.log_rq_size;
    want = a;
    want.state = 1;
    want.pkey = b.pkey;
    {want.remote_write, want.remote_read, want.remote_atomic} = {b.remote_write, b.remote_read, b.remote_atomic};
    modifyp(Q, BaseB, 1, 1, 8, 64'd3, BadParam, SynType);
    modifyp(Q, BaseB, 1, 20, 24, 64'd255, BadParam, SynSendCqn);
    modifyp(Q, BaseB, 1, 24, 24, 64'd5, BadParam, SynRecvCqn);
    modifyp(Q, BaseB, 1, 37, 8, ~64'(b.sq_addr[47:40]), BadParam, SynSqAddr);
    modifyp(Q, BaseB, 1, 3, 5, 64'h10, BadParam, SynSqAddr);
    modifyp(Q, BaseB, 1, 48, 8, 64'(b.log_sq_size ^ 8'd1), BadParam, SynSqSize);
    modifyp(Q, BaseB, 1, 45, 8, ~64'(b.rq_addr[47:40]), BadParam, SynRqAddr);
    modifyp(Q, BaseB, 1, 49, 8, 64'(b.log_rq_size | 8'h10), BadParam, SynRqSize);
    old = want;
    want = a;
    check_qp(Q);
    want = old;
    modify(Q, BaseB, 1, Ok, 0);
    check_qp(Q);
    modify(Q, BaseB, 1, Ok, 0);
    modify(Q, BaseB, 3, BadState, SynState);

    // to RTR: the address vector; the responder starts
    b.path_mtu = 0;
    modify(Q, BaseB, 2, BadParam, SynMtu);
    b.path_mtu = 6;
    modify(Q, BaseB, 2, BadParam, SynMtu);
    b.path_mtu = 3; b.dest_qpn = 1;
    modify(Q, BaseB, 2, BadParam, SynDest);
    b.dest_qpn = 24'hffffff;
    modify(Q, BaseB, 2, BadParam, SynDest);
    b.dest_qpn = 24'h3ffe12;
    b.max_dest_rd_atomic = 9;
    modify(Q, BaseB, 2, BadParam, 8'd41);
    b.max_dest_rd_atomic = 255;
    modify(Q, BaseB, 2, BadParam, 8'd41);
    b.max_dest_rd_atomic = 8;
    b.pkey = ~b.pkey;
    check_qp(Q);
    n = adm_inits_rsp; m = adm_inits_req;
    modify(Q, BaseB, 2, Ok, 0);
    if (adm_inits_rsp != n + 1 || last_rsp.op != QpStateInit || adm_inits_req != m || last_rsp.psn != b.rq_psn || last_rsp.qp != Q[7:0])
      $fatal(1, "responder not started");
    old = want;
    want = b;
    want.state = 2;
    want.pd = old.pd; want.pkey = old.pkey; want.sq_psn = old.sq_psn; want.timeout = old.timeout;
    want.retry_cnt = old.retry_cnt; want.rnr_retry = old.rnr_retry; want.max_rd_atomic = old.max_rd_atomic;
    check_qp(Q);
    modify(Q, BaseB, 2, BadState, SynState);
    modify(Q, BaseB, 4, BadState, SynState);

    // to RTS: the requester starts
    n = adm_inits_rsp; m = adm_inits_req;
    b.max_rd_atomic = 9;
    modify(Q, BaseB, 3, BadParam, 40);
    b.max_rd_atomic = 255;
    modify(Q, BaseB, 3, BadParam, 40);
    b.max_rd_atomic = 8;
    b.sq_psn = 24'hfffff0;
    b.rq_psn = ~b.rq_psn;
    b.path_mtu = 5;
    b.dgid = ~b.dgid;
    b.udp_sport = ~b.udp_sport;
    b.dest_qpn = 24'h2;
    modify(Q, BaseB, 3, Ok, 0);
    if (adm_inits_rsp != n || adm_inits_req != m + 1 || last_req.psn != 24'hfffff0 || last_req.qp != Q[7:0])
      $fatal(1, "requester not started");
    want.state = 3; want.sq_psn = b.sq_psn; want.timeout = b.timeout; want.retry_cnt = b.retry_cnt;
    want.rnr_retry = b.rnr_retry; want.max_rd_atomic = b.max_rd_atomic;
    check_qp(Q);
    m = adm_inits_req;
    others = adm_others_req;
    b.sq_psn = 24'h123456;
    b.timeout = b.timeout ^ 8'd1;
    b.max_rd_atomic = ~b.max_rd_atomic;
    b.remote_write = !b.remote_write;
    want.remote_write = b.remote_write;
    b.min_rnr_timer = b.min_rnr_timer ^ 8'd3;
    want.min_rnr_timer = b.min_rnr_timer;
    modify(Q, BaseB, 3, Ok, 0);
    req_draining = 1;  // no matter in RTS
    check_qp(Q);
    if (adm_others_req != others) $fatal(1, "requester told without a reason");
    // to SQD: the requester is told, once, and whether to tell
    b.sqd_event = 1;
    modify(Q, BaseB, 4, Ok, 0);
    if (adm_others_req != others + 1 || last_req.op != QpStateDrain || last_req.qp != Q[7:0] || !last_req.notify) $fatal(1, "requester not stopped: %p", last_req);
    want.state = 4;
    req_draining = 1;
    want.sq_draining = 1;
    check_qp(Q);
    req_draining = 0;
    want.sq_draining = 0;
    check_qp(Q);
    others = adm_others_req;
    // in SQD most attributes of the send side can be changed
    modify(Q, BaseB, 4, BadParam, 40);
    b.max_rd_atomic = 3;
    b.max_dest_rd_atomic = 200;
    modify(Q, BaseB, 4, BadParam, 41);
    b.max_dest_rd_atomic = 2;
    b.pkey = ~b.pkey;
    b.rnr_retry = b.rnr_retry ^ 8'd1;
    b.retry_cnt = b.retry_cnt ^ 8'd1;
    b.sqd_event = 0;
    modify(Q, BaseB, 4, Ok, 0);
    old = want;
    want = b;
    want.state = 4;
    want.pd = old.pd; want.path_mtu = old.path_mtu; want.dest_qpn = old.dest_qpn; want.rq_psn = old.rq_psn; want.sq_psn = old.sq_psn;
    check_qp(Q);
    if (adm_others_req != others) $fatal(1, "requester told without a reason");
    modify(Q, BaseB, 1, BadState, SynState);
    // back to RTS only rights and the RNR timer
    b.pkey = ~b.pkey; b.timeout = b.timeout ^ 8'd1; b.dgid = ~b.dgid;
    b.remote_write = !b.remote_write; b.min_rnr_timer = b.min_rnr_timer ^ 8'd5;
    want.remote_write = b.remote_write; want.min_rnr_timer = b.min_rnr_timer;
    modify(Q, BaseB, 3, Ok, 0);
    if (adm_others_req != others + 1 || last_req.op != QpStateResume || last_req.qp != Q[7:0]) $fatal(1, "requester does not go on");
    want.state = 3;
    check_qp(Q);
    b.sqd_event = 0;
    modify(Q, BaseB, 4, Ok, 0);
    if (adm_others_req != others + 2 || last_req.op != QpStateDrain || last_req.notify) $fatal(1, "requester tells without being asked");
    modify(Q, BaseB, 3, Ok, 0);
    if (adm_inits_req != m) $fatal(1, "requester started again");
    modify(Q, BaseB, 2, BadState, SynState);
    modify(Q, BaseB, 5, BadState, SynState);

    // a QP that failed by itself
    err_qp(8'hab);
    want.state = 6;
    check_qp(Q);
    if (fatals != 1) $fatal(1, "fatals %0d", fatals);
    modify(Q, BaseB, 3, BadState, SynState);
    n = drain_rounds;
    modify(Q, BaseB, 6, Ok, 0);
    if (drain_rounds != n) $fatal(1, "a QP goes to ERR without a drain");
    modify(Q, BaseNone, 0, Ok, 0);
    if (drain_rounds != n + 9) $fatal(1, "reset drained %0d rounds", drain_rounds - n);
    if (state_round != n + 2) $fatal(1, "reset before the doorbells of before: %0d rounds", state_round - n);
    if (last_rsp.op != QpStateReset) $fatal(1, "reset does not empty the receive queue");
    // the QP has lost its window; another one goes with its destruction
    run(CmdOpcodeQueryMw, 3, BaseNone, Ok, 0);
    if (rm.valid) $fatal(1, "window of a QP in RESET");
    change();
    run(CmdOpcodeDestroyMr, 4, BaseNone, Busy, 0);
    want.state = 0;
    check_qp(Q);
    modify(Q, BaseNone, 6, Ok, 0);
    modify(Q, BaseNone, 0, Ok, 0);

    // a QP that fails while a transition is under way stays failed (the write of the table loses)
    modify(Q, BaseB, 1, Ok, 0);
    b.dest_qpn = 24'h77;
    post(CmdOpcodeModifyQp, Q, BaseB, 2);
    while (!rsp_adm_valid) @(negedge clk);
    err_qp(8'hab);
    wait_answer(pi);
    commands++;
    if (u_mem.get(RspBase + 64'(256 * (int'(pi - 1) % 4))) != BadState) $fatal(1, "late write went through");
    want.state = 6;
    want.pkey = b.pkey;
    {want.remote_write, want.remote_read, want.remote_atomic} = {b.remote_write, b.remote_read, b.remote_atomic};
    check_qp(Q);

    // destruction waits for every block
    drain_block = 1;
    n = drain_rounds;
    post(CmdOpcodeDestroyQp, Q, BaseNone, 0);
    repeat (500) @(negedge clk);
    if (ci == pi) $fatal(1, "QP destroyed while a block holds its work");
    drain_block = 0;
    wait_answer(pi);
    commands++;
    if (drain_rounds != n + 9) $fatal(1, "destroy drained %0d rounds", drain_rounds - n);
    if (state_round != n + 2) $fatal(1, "destroyed before the doorbells of before: %0d rounds", state_round - n);
    if (u_mem.get(RspBase + 64'(256 * (int'(pi - 1) % 4))) != Ok) $fatal(1, "destroy");
    run(CmdOpcodeQueryQp, Q, BaseNone, NotFound, 0);
    run(CmdOpcodeQueryMw, 3, BaseNone, Ok, 0);
    if (rm.valid) $fatal(1, "window of a QP that is gone");
    change();
    run(CmdOpcodeDestroyMr, 4, BaseNone, Busy, 0);
    n = drain_rounds;
    run(CmdOpcodeDestroyMw, 3, BaseNone, Ok, 0);
    if (drain_rounds != n + 7) $fatal(1, "MW destroy drained %0d rounds", drain_rounds - n);
    run(CmdOpcodeQueryMw, 3, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyMr, 4, BaseNone, Ok, 0);

    // address handles
    hent = '0;
    for (int k = 0; k < 16; k++) hent = 512'({hent, $urandom()});
    hent.rsvd_0 = '0; hent.rsvd_1 = '0;
    hent.flow_label[23:20] = 0;
    run(CmdOpcodeQueryAh, 5, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyAh, 5, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateAh, 1024, BaseAh, BadIndex, 0);
    run(CmdOpcodeQueryAh, 32'h400, BaseNone, BadIndex, 0);
    run(CmdOpcodeCreateAh, 1023, BaseAh, Ok, 0);
    run(CmdOpcodeCreateAh, 1023, BaseAh, Exists, 0);
    run(CmdOpcodeQueryAh, 1023, BaseNone, Ok, 0);
    if (hgot != hent) $fatal(1, "handle %h, want %h", hgot, hent);
    n = drain_rounds;
    run(CmdOpcodeDestroyAh, 1023, BaseNone, Ok, 0);
    if (drain_rounds != n + 7) $fatal(1, "handle destroyed with %0d rounds", drain_rounds - n);
    run(CmdOpcodeQueryAh, 1023, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateAh, 1023, BaseAh, Ok, 0);

    // UD: no destination, Q_Key in every transition; the GSI QP
    a = rand_ctx();
    a.state = 0; a.qp_type = 4; a.gsi = 1; a.dest_qpn = 0; a.qkey = 32'h11; a.timeout = 14;
    b = a;
    b.qp_type = 2;
    run(CmdOpcodeCreateQp, Q, BaseB, BadParam, 24);
    if (gsi_valid) $fatal(1, "GSI QP of a refused creation");
    run(CmdOpcodeCreateQp, Q, BaseA, Ok, 0);
    if (!gsi_valid || gsi_qpn != Q[23:0]) $fatal(1, "GSI QP %b %h", gsi_valid, gsi_qpn);
    run(CmdOpcodeCreateQp, 32'h1cd, BaseA, Exists, 24);
    want = a;
    check_qp(Q);
    for (int k = 1; k < 4; k++) begin
      a.qkey = 32'h80010000 + 32'(k);
      modify(Q, BaseA, 8'(k), Ok, 0);
      want.state = 8'(k);
      want.qkey = a.qkey;
      want.timeout = k == 3 ? 8'd0 : want.timeout;
      want.gsi = 1;
      check_qp(Q);
    end
    b.qp_type = 4; b.gsi = 0;
    run(CmdOpcodeCreateQp, 32'h1cd, BaseB, Ok, 0);
    run(CmdOpcodeDestroyQp, 32'h1cd, BaseNone, Ok, 0);
    if (!gsi_valid) $fatal(1, "GSI QP gone with another");
    run(CmdOpcodeDestroyQp, Q, BaseNone, Ok, 0);
    if (gsi_valid) $fatal(1, "GSI QP still there");

    // the raw packet QP: one, and it wants frames from RTR to SQD
    a = rand_ctx();
    a.state = 0; a.qp_type = 8; a.dest_qpn = 0;
    run(CmdOpcodeCreateQp, Q, BaseA, Ok, 0);
    if (!raw_valid || raw_qpn != Q[23:0] || raw_rx) $fatal(1, "raw packet QP %b %h %b", raw_valid, raw_qpn, raw_rx);
    run(CmdOpcodeCreateQp, 32'h1cd, BaseA, Exists, 25);
    modify(Q, BaseA, 1, Ok, 0);
    if (raw_rx) $fatal(1, "frames wanted in INIT");
    modify(Q, BaseA, 2, Ok, 0);
    if (!raw_rx) $fatal(1, "no frames wanted in RTR");
    modify(Q, BaseA, 3, Ok, 0);
    modify(Q, BaseA, 4, Ok, 0);
    if (!raw_rx) $fatal(1, "no frames wanted in SQD");
    modify(Q, BaseA, 6, Ok, 0);
    if (raw_rx) $fatal(1, "frames wanted in ERR");
    modify(Q, BaseNone, 0, Ok, 0);
    modify(Q, BaseA, 1, Ok, 0);
    modify(Q, BaseA, 2, Ok, 0);
    b = a;
    b.qp_type = 4;
    run(CmdOpcodeCreateQp, 32'h1cd, BaseB, Ok, 0);
    run(CmdOpcodeDestroyQp, 32'h1cd, BaseNone, Ok, 0);
    if (!raw_valid || !raw_rx) $fatal(1, "raw packet QP gone with another");
    run(CmdOpcodeDestroyQp, Q, BaseNone, Ok, 0);
    if (raw_valid || raw_rx) $fatal(1, "raw packet QP still there");

    // UC: the same transitions, but no timers
    a = rand_ctx();
    a.state = 0; a.qp_type = 3; a.timeout = 14;
    run(CmdOpcodeCreateQp, Q, BaseA, Ok, 0);
    for (int k = 1; k < 4; k++) modify(Q, BaseA, 8'(k), Ok, 0);
    want = a;
    want.state = 3;
    want.timeout = 0;
    check_qp(Q);
    run(CmdOpcodeDestroyQp, Q, BaseNone, Ok, 0);

    // CQs: users are counted per QP and direction
    a = rand_ctx();
    a.state = 0; a.send_cqn = 5; a.recv_cqn = 5;
    run(CmdOpcodeCreateQp, 32'h100, BaseA, Ok, 0);
    run(CmdOpcodeCreateQp, 32'h1ff, BaseA, Ok, 0);
    run(CmdOpcodeDestroyQp, 32'h100, BaseNone, Ok, 0);
    run(CmdOpcodeDestroyCq, 5, BaseNone, Busy, 0);
    run(CmdOpcodeDestroyCq, 255, BaseNone, Ok, 0);
    run(CmdOpcodeDestroyQp, 32'h1ff, BaseNone, Ok, 0);
    n = drain_rounds;
    run(CmdOpcodeDestroyCq, 5, BaseNone, Ok, 0);
    if (drain_rounds != n + 7) $fatal(1, "CQ destroy drained %0d rounds", drain_rounds - n);
    run(CmdOpcodeQueryCq, 5, BaseNone, NotFound, 0);
    run(CmdOpcodeDestroyEq, 7, BaseNone, Ok, 0);
    run(CmdOpcodeCreateQp, 32'h100, BaseA, BadParam, SynSendCqn);

    // shared receive queues
    sc = '0;
    sc.addr = 64'hfedc_ba98_7654_3280; sc.log_size = 5; sc.stride128 = 1; sc.pd = 24'h123456; sc.limit = 32;
    run(CmdOpcodeCreateSrq, 512, BaseSrq, BadIndex, 0);
    run(CmdOpcodeQuerySrq, 32'h10003f, BaseNone, BadIndex, 0);
    run(CmdOpcodeQuerySrq, 63, BaseNone, NotFound, 0);
    run(CmdOpcodeModifySrq, 63, BaseSrq, NotFound, 0);
    run(CmdOpcodeDestroySrq, 63, BaseNone, NotFound, 0);
    runp(CmdOpcodeCreateSrq, 63, BaseSrq, 0, 8, 64'h40, BadParam, SynSrqAddr);
    runp(CmdOpcodeCreateSrq, 63, BaseSrq, 8, 8, 64'd16, BadParam, SynSrqSize);
    runp(CmdOpcodeCreateSrq, 63, BaseSrq, 10, 16, 64'd33, BadParam, SynSrqLimit);
    run(CmdOpcodeQuerySrq, 63, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateSrq, 63, BaseSrq, Ok, 0);
    run(CmdOpcodeCreateSrq, 63, BaseSrq, Exists, 0);
    run(CmdOpcodeQuerySrq, 63, BaseNone, Ok, 0);
    sc.pi = 16'h1234; sc.ci = 16'h5678;
    if (rs != sc) $fatal(1, "SRQ %h, want %h", rs, sc);
    runp(CmdOpcodeModifySrq, 63, BaseSrq, 10, 16, 64'd33, BadParam, SynSrqLimit);
    sc.log_size = 15; sc.limit = 7; sc.stride128 = 0; sc.addr = 1; sc.pd = 2;  // only the limit is looked at
    run(CmdOpcodeModifySrq, 63, BaseSrq, Ok, 0);
    run(CmdOpcodeQuerySrq, 63, BaseNone, Ok, 0);
    if (rs.limit != 7 || rs.log_size != 5 || !rs.stride128 || rs.pd != 24'h123456) $fatal(1, "SRQ modified: %h", rs);
    sc.addr[6:0] = 7'h40;
    runp(CmdOpcodeCreateSrq, 0, BaseSrq, 10, 16, 64'd0, Ok, 0);
    // a QP uses one: no receive queue of its own, geometry is not looked at; never changes
    run(CmdOpcodeCreateCq, 5, BaseCq, Ok, 0);
    run(CmdOpcodeCreateCq, 255, BaseCq, Ok, 0);
    a = rand_ctx();
    a.state = 0; a.rq_addr = 64'h1; a.log_rq_size = 8'd16; a.has_srq = 1; a.srqn = 24'd63;
    runp(CmdOpcodeCreateQp, Q, BaseA, 76, 24, 64'd62, BadParam, SynSrqn);
    runp(CmdOpcodeCreateQp, Q, BaseA, 76, 24, 64'h10003f, BadParam, SynSrqn);
    run(CmdOpcodeDestroySrq, 0, BaseNone, Ok, 0);
    run(CmdOpcodeCreateQp, Q, BaseA, Ok, 0);
    run(CmdOpcodeCreateQp, 32'h1ff, BaseA, Ok, 0);
    want = a;
    want.log_rq_size = 0;
    want.rq_addr = 0;
    check_qp(Q);
    run(CmdOpcodeDestroySrq, 63, BaseNone, Busy, 0);
    b = a;
    modifyp(Q, BaseB, 1, 76, 24, 64'd0, BadParam, SynSrqn);
    modifyp(Q, BaseB, 1, 79, 1, 64'd0, BadParam, SynRqSize);
    b.log_rq_size = 0;
    modifyp(Q, BaseB, 1, 79, 1, 64'd0, BadParam, SynSrqn);
    modify(Q, BaseB, 1, Ok, 0);
    modify(Q, BaseB, 2, Ok, 0);
    modify(Q, BaseB, 3, Ok, 0);
    run(CmdOpcodeDestroyQp, Q, BaseNone, Ok, 0);
    run(CmdOpcodeDestroySrq, 63, BaseNone, Busy, 0);
    run(CmdOpcodeDestroyQp, 32'h1ff, BaseNone, Ok, 0);
    n = drain_rounds;
    run(CmdOpcodeDestroySrq, 63, BaseNone, Ok, 0);
    if (drain_rounds != n + 7) $fatal(1, "SRQ destroy drained %0d rounds", drain_rounds - n);
    run(CmdOpcodeQuerySrq, 63, BaseNone, NotFound, 0);
    run(CmdOpcodeCreateQp, Q, BaseA, BadParam, SynSrqn);
    // users are counted for each: 300 is 63's neighbour nowhere
    sc.addr = 64'h40; sc.log_size = 5; sc.stride128 = 0; sc.limit = 3; sc.pd = 24'h654321; sc.pi = 0; sc.ci = 0;
    run(CmdOpcodeCreateSrq, 300, BaseSrq, Ok, 0);
    run(CmdOpcodeCreateSrq, 44, BaseSrq, Ok, 0);
    run(CmdOpcodeQuerySrq, 300, BaseNone, Ok, 0);
    sc.pi = 16'h1234; sc.ci = 16'h5678; sc.dead = 1;
    if (rs != sc) $fatal(1, "SRQ %h, want %h", rs, sc);
    a = rand_ctx();
    a.state = 0; a.has_srq = 1; a.srqn = 24'd300; a.rq_addr = 64'h40;
    run(CmdOpcodeCreateQp, Q, BaseA, Ok, 0);
    if (last_attr.rq_addr != 64'h654321) $fatal(1, "PD of the SRQ");
    run(CmdOpcodeDestroySrq, 300, BaseNone, Busy, 0);
    run(CmdOpcodeDestroySrq, 44, BaseNone, Ok, 0);
    run(CmdOpcodeDestroyQp, Q, BaseNone, Ok, 0);
    // a context that host memory refuses
    n = errors;
    srq_refused = 300;
    run(CmdOpcodeQuerySrq, 300, BaseNone, ExecError, 0);
    run(CmdOpcodeDestroySrq, 300, BaseNone, ExecError, 0);
    run(CmdOpcodeModifySrq, 300, BaseSrq, ExecError, 0);
    run(CmdOpcodeCreateQp, Q, BaseA, ExecError, 0);
    srq_refused = 44;
    run(CmdOpcodeCreateSrq, 44, BaseSrq, ExecError, 0);
    srq_refused = 300;
    srq_refused_op = int'(SrqCmdDestroy);
    run(CmdOpcodeDestroySrq, 300, BaseNone, ExecError, 0);
    if (errors != n + 6) $fatal(1, "%0d errors of SRQs", errors - n);
    errors = n;
    srq_refused = -1;
    run(CmdOpcodeDestroySrq, 300, BaseNone, Ok, 0);

    // several at once, over the end of the ring
    for (int k = 0; k < 5; k++) begin
      n = int'(pi);
      for (int j = 0; j < 4; j++) begin
        post(CmdOpcodeNop, 32'(k * 4 + j), BaseNone, 0);
        commands++;
      end
      wait_answer(16'(n + 4));
      for (int j = 0; j < 4; j++)
        if (u_mem.get(RspBase + 64'(256 * ((n + j) % 4) + 4)) != 8'(k * 4 + j)) $fatal(1, "order of answers");
    end

    // memory that refuses the command, then the answer
    if (errors != 2) $fatal(1, "%0d errors so far, 2 contexts were refused", errors);
    errors = 0;
    u_mem.err_lo = CmdBase;
    u_mem.err_hi = CmdBase + 1024;
    run(CmdOpcodeCreateMr, 7, BaseMr, ExecError, 0);
    repeat (3) @(negedge clk);
    if (errors != 1 || rd_errs != 1) $fatal(1, "read error not told");
    u_mem.err_lo = MrBase + 64 * 500;
    u_mem.err_hi = MrBase + 64 * 501;
    run(CmdOpcodeQueryMr, 500, BaseNone, ExecError, 0);
    run(CmdOpcodeQueryMr, 501, BaseNone, NotFound, 0);
    if (errors != 2) $fatal(1, "MR that cannot be read: %0d errors", errors);
    errors = 0;
    u_mem.err_lo = CqBase + 64 * 200;
    u_mem.err_hi = CqBase + 64 * 201;
    run(CmdOpcodeQueryCq, 200, BaseNone, ExecError, 0);
    run(CmdOpcodeCreateCq, 200, BaseCq, ExecError, 0);
    a = rand_ctx();
    a.state = 0; a.send_cqn = 200; a.recv_cqn = 5;
    run(CmdOpcodeCreateQp, 32'h102, BaseA, ExecError, 0);
    if (errors != 3) $fatal(1, "CQ that cannot be read: %0d errors", errors);
    run(CmdOpcodeQueryCq, 201, BaseNone, NotFound, 0);
    errors = 1;
    u_mem.err_lo = RspBase;
    u_mem.err_hi = RspBase + 1024;
    post(CmdOpcodeNop, 0, BaseNone, 0);
    wait_answer(pi);
    commands++;
    repeat (3) @(negedge clk);
    if (errors != 2 || wr_errs != 2) $fatal(1, "write errors %0d %0d", errors, wr_errs);
    u_mem.err_lo = '1;
    u_mem.err_hi = '0;
    for (int i = 0; i < 256; i++) u_mem.mem[RspBase + 64'(256 * (int'(pi - 1) % 4) + i)] = 0;

    // a producer index too far ahead does nothing
    n = int'(pi);
    m = dones;
    pi = 16'(n + 5);
    repeat (1000) @(negedge clk);
    if (dones != m || errors != 3) $fatal(1, "index too far: %0d commands, %0d errors", dones - m, errors);
    pi = 16'(n);
    // stop: no new command; idle shows it
    stop = 1;
    post(CmdOpcodeNop, 0, BaseNone, 0);
    repeat (200) @(negedge clk);
    if (dones != m) $fatal(1, "command while stopped");
    stop = 0;
    wait_answer(pi);
    commands++;

    // the ring starts again at slot 0, phase 1, with another size
    enable = 0;
    repeat (5) @(negedge clk);
    if (!idle) $fatal(1, "not idle");
    pi = 0;
    log_size = 0;
    for (int i = 0; i < 1024; i++) u_mem.mem[RspBase + 64'(i)] = 0;
    enable = 1;
    repeat (5) @(negedge clk);
    if (ci != 0) $fatal(1, "ring not restarted");
    run(CmdOpcodeNop, 3, BaseNone, Ok, 0);
    run(CmdOpcodeNop, 4, BaseNone, Ok, 0);
    run(CmdOpcodeQueryMr, 0, BaseNone, Ok, 0);
    repeat (5) @(negedge clk);
    if (dones != commands) $fatal(1, "%0d done, %0d commands", dones, commands);
    if (!idle || rd_busy || wr_busy) $fatal(1, "not idle at the end");
    $display("PASS %0d commands", commands);
    $finish;
  end
endmodule
