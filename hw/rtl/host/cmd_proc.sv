// SPDX-License-Identifier: Apache-2.0
//
// Command processor: takes commands from a ring in host memory, executes them one after the other
// on the tables and the owners of QP state, and writes an answer into a second ring.
//
// A slot has 256 bytes; slot i of the answer ring answers slot i of the command ring. The answer's
// body is written and acknowledged by host memory before its header, and the header's last byte
// holds the phase bit (1 on the first pass), so that a reader that sees the phase sees the whole
// answer. About 60 cycles plus three memory round trips per command at 512 bit; commands that take
// something away also wait for seven rounds of drain over all blocks, after which no access to its
// memory is in flight. Two rounds before a QP is destroyed or reset carry out its doorbells from before the command. cmdq enable 0 -> 1 restarts both rings at slot 0. A producer index more than
// one ring ahead is refused (ev_error_o). Host memory that answers with an error: status
// exec_error, ev_error_o.
//
// At most one raw packet QP exists; raw_rx_o: it wants frames (from RTR on). One UD QP may be the GSI QP (flag `gsi` at its creation): it is QP1 on the wire. QP states and transitions: IBTA 10.3.1. What a transition takes from the slot (everything
// else stays as it was; to RESET and to ERR take nothing):
//   create       type, CQs, PD, SRQ, SQ and RQ geometry; those cannot change later
//   to INIT      P_Key, rights; Q_Key (UD: in all transitions)
//   INIT to RTR  rights, address vector, path MTU, destination QPN (not looked at on UD), PSN to expect, RNR timer,
//                max_dest_rd_atomic, flow control; the responder starts
//   RTR to RTS   rights, RNR timer, first PSN to send, timers and retry counts, max_rd_atomic; the requester
//                starts (timers and retry counts are those of RC; without acknowledges there are none)
//   RTS, SQD     to themselves and each other: rights, RNR timer; SQD to SQD also P_Key, address vector, timers and retry counts,
//                max_rd_atomic, max_dest_rd_atomic. Into SQD the requester begins no message any more (sqd_event: event when all
//                that was begun is complete), out of it it goes on

module cmd_proc
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned NumDrain = 8
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  // registers
  input  logic                 enable_i,
  input  logic [3:0]           log_size_i,
  input  logic [63:8]          cmdq_base_i,
  input  logic [63:8]          cmdr_base_i,
  input  logic [15:0]          pi_i,
  output logic [15:0]          ci_o,
  input  logic                 stop_i,        // begin no further command
  // AXI read client
  output logic                 ar_valid_o,
  input  logic                 ar_ready_i,
  output logic [63:0]          ar_addr_o,
  output logic [7:0]           ar_len_o,
  input  logic                 r_valid_i,
  input  logic [DataW-1:0]     r_data_i,
  input  logic                 r_last_i,
  input  logic                 r_err_i,
  // AXI write client
  output logic                 aw_valid_o,
  input  logic                 aw_ready_i,
  output logic [63:0]          aw_addr_o,
  output logic [7:0]           aw_len_o,
  output logic                 w_valid_o,
  input  logic                 w_ready_i,
  output logic [DataW-1:0]     w_data_o,
  output logic [DataW/8-1:0]   w_strb_o,
  output logic                 w_last_o,
  input  logic                 b_valid_i,
  input  logic                 b_err_i,
  // QP table
  output logic                 qp_cmd_valid_o,
  output qp_cmd_e              qp_cmd_op_o,
  output qp_idx_t              qp_cmd_idx_o,
  // the slot of the QP (qp_cache): held from its look-up to the end of the command
  output logic                 qpl_req_valid_o,
  input  logic                 qpl_req_ready_i,
  output logic [23:0]          qpl_req_qpn_o,
  output logic                 qpl_req_create_o,
  input  logic                 qpl_rsp_valid_i,
  input  qpc_status_e          qpl_rsp_status_i,
  input  qp_idx_t              qpl_rsp_slot_i,
  output logic                 qpl_rel_valid_o,
  output logic                 qpl_rel_forget_o,
  output qp_state_e            qp_cmd_from_o,
  output qp_attr_t             qp_cmd_attr_o,
  input  logic                 qp_cmd_rsp_valid_i,
  input  logic                 qp_cmd_rsp_ok_i,
  input  qp_attr_t             qp_cmd_rsp_i,   // stays until the next command
  // MR table
  output logic                 mr_cmd_valid_o,
  input  logic                 mr_cmd_ready_i,
  output logic                 mr_cmd_lock_o,
  output mr_cmd_e              mr_cmd_op_o,
  output mr_idx_t              mr_cmd_idx_o,
  output mr_t                  mr_cmd_mr_o,
  output qpn_t                 mr_cmd_qpn_o,
  input  logic                 mr_cmd_rsp_valid_i,
  input  mr_t                  mr_cmd_rsp_i,
  input  logic                 mr_cmd_rsp_bound_i,
  input  logic                 mr_cmd_rsp_err_i,
  output ctx_mem_t             mr_mem_o,
  output ctx_mem_t             qp_mem_o,
  output ctx_mem_t             cq_mem_o,
  output ctx_mem_t             srq_mem_o,
  // AH table
  output logic                 ah_cmd_valid_o,
  output logic                 ah_cmd_we_o,
  output ah_idx_t              ah_cmd_idx_o,
  output ah_t                  ah_cmd_ah_o,
  input  logic                 ah_cmd_rsp_valid_i,
  input  ah_t                  ah_cmd_rsp_i,
  // the GSI QP
  output logic                 gsi_valid_o,
  output logic [23:0]          gsi_qpn_o,
  // the raw packet QP
  output logic                 raw_valid_o,
  output logic [23:0]          raw_qpn_o,
  output logic                 raw_rx_o,
  // CQE writer
  output logic                 cq_cmd_valid_o,
  input  logic                 cq_cmd_ready_i,
  output cq_cmd_e              cq_cmd_op_o,
  output cq_idx_t              cq_cmd_idx_o,
  output logic [63:6]          cq_cmd_addr_o,
  output logic [3:0]           cq_cmd_log_size_o,
  output logic [7:0]           cq_cmd_eqn_o,
  output cq_mod_t              cq_cmd_mod_o,
  input  logic                 cq_cmd_rsp_valid_i,
  input  logic                 cq_cmd_rsp_err_i,
  input  cq_ctx_t              cq_cmd_rsp_i,   // stays until the next command
  // EQ writer
  output logic                 eq_cmd_valid_o,
  input  logic                 eq_cmd_ready_i,
  output eq_cmd_e              eq_cmd_op_o,
  output eq_idx_t              eq_cmd_idx_o,
  output logic [63:6]          eq_cmd_addr_o,
  output logic [3:0]           eq_cmd_log_size_o,
  output vec_t                 eq_cmd_vector_o,
  input  logic                 eq_cmd_rsp_valid_i,
  input  eq_ctx_t              eq_cmd_rsp_i,
  // events of commands that ask for one
  output logic                 event_valid_o,
  input  logic                 event_ready_i,
  output async_ev_t            event_o,
  // shared receive queues
  output logic                 srq_cmd_valid_o,
  input  logic                 srq_cmd_ready_i,
  output srq_cmd_e             srq_cmd_op_o,
  output srq_idx_t             srq_cmd_idx_o,
  output srq_attr_t            srq_cmd_attr_o,
  output logic [15:0]          srq_cmd_limit_o,
  input  logic                 srq_cmd_rsp_valid_i,
  input  logic                 srq_cmd_rsp_err_i,
  input  srq_ctx_t             srq_cmd_rsp_i,   // stays until the next command
  // owners of per-QP state
  output logic                 rsp_adm_valid_o,
  input  logic                 rsp_adm_ready_i,
  output qp_admin_t            rsp_adm_o,
  input  logic                 rsp_adm_rsp_valid_i,
  input  rsp_query_t           rsp_adm_rsp_i,
  output logic                 req_adm_valid_o,
  input  logic                 req_adm_ready_i,
  output qp_admin_t            req_adm_o,
  input  logic                 req_adm_rsp_valid_i,
  input  req_query_t           req_adm_rsp_i,
  // all blocks
  output logic                 drain_o,
  input  logic [NumDrain-1:0]  drain_done_i,
  // events
  output logic                 ev_done_o,      // a command was answered
  output logic                 ev_error_o,
  output logic                 ev_axi_rd_err_o,
  output logic                 ev_axi_wr_err_o,
  output logic                 idle_o
);

  // ---- geometry ---------------------------------------------------------------------------------
  localparam int unsigned HdrW = 128;
  localparam int unsigned SlotW = 2048;
  localparam int unsigned CmdBytes = 144;       // header, and the part of qp_context that is read
  localparam int unsigned BeatBytes = DataW / 8;
  localparam int unsigned CmdBeats = (CmdBytes + BeatBytes - 1) / BeatBytes;
  localparam int unsigned RspBeats = SlotW / DataW;
  localparam int unsigned HdrBeats = HdrW > DataW ? HdrW / DataW : 1;
  localparam int unsigned BeatW = $clog2(RspBeats);
  localparam int unsigned RoundWait = 4;        // cycles a block may take to see a change of drain
  localparam logic [2:0]  AllRounds = 3'd7;     // until nothing of before is in any block
  localparam logic [2:0]  DoorbellRounds = 2;   // until the doorbells of before are applied: out of the service list, into their queue

  typedef enum logic [5:0] {
    StIdle,
    StCmdAr, StCmdR, StParse, StDispatch,
    StMrRead, StMrCheck, StMrWrite, StMrDone, StCtxMem,
    StCqRead, StCqCheck, StCqEq, StCqEqRsp, StCqWrite, StCqDone,
    StEqRead, StEqCheck, StEqWrite,
    StAhRead, StAhCheck, StAhWrite,
    StSrqRead, StSrqCheck, StSrqWrite, StSrqDone,
    StQpLook, StQpLookWait, StQpRead, StQpCheck,
    StQpSrq, StQpSrqRsp, StUseSrq,
    StQpCqSend, StQpCqSendRsp, StQpCqRecv, StQpCqRecvRsp,
    StPurge, StPurgeWait,
    StUseSend, StUseRecv,
    StAdmin, StAdminWait,
    StQpWrite, StQpWriteWait,
    StRoundLow, StRoundHigh,
    StRspLoad, StRspAw, StRspW, StRspB, StEvent
  } state_e;
  state_e state_q, after_drain_q;

  // ---- ring -------------------------------------------------------------------------------------
  logic [15:0] ci_q;
  logic [3:0]  log_size;
  logic [15:0] ahead, ring_size;
  logic [63:8] slot_off;
  logic        enable_q, restart_q, pending, too_far, too_far_q, phase;

  assign log_size = log_size_i > 4'd8 ? 4'd8 : log_size_i;
  assign ring_size = 16'd1 << log_size;
  assign ahead = pi_i - ci_q;
  assign too_far = enable_q && !restart_q && ahead > ring_size;
  assign pending = enable_q && !restart_q && ahead != 0 && !too_far;
  assign slot_off = {40'd0, ci_q & (ring_size - 16'd1)};
  assign phase = ~|(ci_q & ring_size);
  assign ci_o = ci_q;

  // ---- the command ------------------------------------------------------------------------------
  logic [DataW-1:0] slot_q[CmdBeats];
  logic [BeatW-1:0] beat_q;
  logic             rd_err_q;

  function automatic logic [CmdBeats*DataW-1:0] slot_bits();
    logic [CmdBeats*DataW-1:0] bits;
    for (int i = 0; i < int'(CmdBeats); i++) bits[i*DataW+:DataW] = slot_q[i];
    return bits;
  endfunction

  // The part of a command that is kept, whatever its kind.
  logic [7:0]  opcode_q;
  logic [15:0] seq_q;
  logic [31:0] object_q;
  qp_attr_t    attr_q;       // from the slot, later what is written to the table
  logic [7:0]  new_state_q;
  logic        sqd_event_q;
  logic        bad_type_q, bad_mtu_q, bad_sq_addr_q, bad_sq_size_q, bad_rq_addr_q, bad_rq_size_q;
  logic        bad_dest_q, bad_send_q, bad_recv_q;
  mr_t         mr_q;
  ctx_mem_t    ctx_mem_q;
  logic        bad_ctx_addr_q, bad_ctx_num_q, ctx_on;
  logic        bad_key_q, bad_len_q, bad_access_q;
  ah_t         ah_q;
  logic        gsi_valid_q;
  logic [23:0] gsi_qpn_q;
  logic        raw_valid_q, raw_rx_q;
  logic [23:0] raw_qpn_q;
  logic        qp_pin_q, qp_forget_q;   // its slot is held; the QP is made or goes away
  logic [63:6] cq_addr_q;
  logic [3:0]  cq_log_size_q;
  logic [7:0]  cq_eqn_q;
  logic        bad_cq_addr_q, bad_cq_size_q, bad_cq_eqn_q, bad_cq_mod_q;
  cq_mod_t     cq_mod_q;
  logic        notify_q;
  // of an EQ: address and size are those of the CQ layout
  vec_t        eq_vector_q;
  logic        bad_eq_vector_q;
  logic        bad_srqn_q;   // of a QP
  srq_attr_t   srq_q;
  logic [15:0] srq_limit_q;
  logic        bad_srq_addr_q, bad_srq_size_q, bad_srq_limit_q;

  // The slot of the command, parsed as each kind of object (used in one state only).
  // Reserved and query-only fields are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic qp_attr_t ctx_attr(input rnic_regs_pkg::qp_context_t c);
    qp_attr_t a;
    a.state = QpReset;
    a.qp_type = c.qp_type[3:0];
    a.path_mtu = c.path_mtu[2:0];
    a.remote_write = c.remote_write;
    a.remote_read = c.remote_read;
    a.remote_atomic = c.remote_atomic;
    a.sq_stride128 = c.sq_stride128;
    a.rq_stride128 = c.rq_stride128;
    a.has_srq = c.has_srq;
    a.srqn = c.srqn[SrqIdxW-1:0];
    a.ipv6 = c.ipv6;
    a.vlan = c.vlan;
    a.pd = c.pd;
    a.dest_qpn = c.dest_qpn;
    a.send_cqn = c.send_cqn[CqIdxW-1:0];
    a.recv_cqn = c.recv_cqn[CqIdxW-1:0];
    a.pkey = c.pkey;
    a.sq_addr = c.sq_addr;
    a.log_sq_size = c.log_sq_size[3:0];
    a.udp_sport = c.udp_sport;
    a.dmac = c.dmac;
    a.vlan_tci = c.vlan_tci;
    a.hop_limit = c.hop_limit;
    a.traffic_class = c.traffic_class;
    a.flow_label = c.flow_label[19:0];
    a.sgid = c.sgid;
    a.dgid = c.dgid;
    a.sq_psn = c.sq_psn;
    a.rq_psn = c.rq_psn;
    a.rq_addr = c.rq_addr;
    a.log_rq_size = c.log_rq_size[3:0];
    a.timeout = c.timeout[4:0];
    a.retry_cnt = c.retry_cnt[2:0];
    a.rnr_retry = c.rnr_retry[2:0];
    a.min_rnr_timer = c.min_rnr_timer[4:0];
    a.max_rd_atomic = c.max_rd_atomic;
    a.max_dest_rd_atomic = c.max_dest_rd_atomic;
    a.qkey = c.qkey;
    a.gsi = c.gsi;
    a.flow_control = c.flow_control;
    a.qpn = '0;  // from the command
    return a;
  endfunction

  // The other way; the QPN is not in it.
  function automatic rnic_regs_pkg::qp_context_t attr_ctx(input qp_attr_t a, input rsp_query_t r,
                                                          input req_query_t q);
    rnic_regs_pkg::qp_context_t c;
    c = '0;
    c.state = 8'(a.state);
    c.qp_type = 8'(a.qp_type);
    c.path_mtu = 8'(a.path_mtu);
    c.remote_write = a.remote_write;
    c.remote_read = a.remote_read;
    c.remote_atomic = a.remote_atomic;
    c.sq_stride128 = a.sq_stride128;
    c.rq_stride128 = a.rq_stride128;
    c.has_srq = a.has_srq;
    c.srqn = 24'(a.srqn);
    c.rq_open = r.rq.open;
    c.ipv6 = a.ipv6;
    c.vlan = a.vlan;
    c.pd = a.pd;
    c.dest_qpn = a.dest_qpn;
    c.send_cqn = 24'(a.send_cqn);
    c.recv_cqn = 24'(a.recv_cqn);
    c.pkey = a.pkey;
    c.sq_addr = a.sq_addr;
    c.log_sq_size = 8'(a.log_sq_size);
    c.udp_sport = a.udp_sport;
    c.dmac = a.dmac;
    c.vlan_tci = a.vlan_tci;
    c.hop_limit = a.hop_limit;
    c.traffic_class = a.traffic_class;
    c.flow_label = 24'(a.flow_label);
    c.sgid = a.sgid;
    c.dgid = a.dgid;
    c.sq_psn = a.sq_psn;
    c.rq_psn = a.rq_psn;
    c.rq_addr = a.has_srq ? '0 : a.rq_addr;
    c.log_rq_size = 8'(a.log_rq_size);
    c.timeout = 8'(a.timeout);
    c.retry_cnt = 8'(a.retry_cnt);
    c.rnr_retry = 8'(a.rnr_retry);
    c.min_rnr_timer = 8'(a.min_rnr_timer);
    c.max_rd_atomic = a.max_rd_atomic;
    c.max_dest_rd_atomic = a.max_dest_rd_atomic;
    c.qkey = a.qkey;
    c.gsi = a.gsi;
    c.flow_control = a.flow_control;
    c.next_psn = q.next_psn;
    c.una_psn = q.una_psn;
    c.sq_draining = q.draining && a.state == QpSqd;
    c.sq_pi = q.pi;
    c.sq_next = q.next;
    c.sq_ci = q.ci;
    c.expected_psn = r.expected_psn;
    c.msn = r.msn;
    c.rq_pi = r.rq.pi;
    c.rq_ci = r.rq.ci;
    return c;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // What the transition takes from the slot (n) into the attributes of before (o).
  // verilator lint_off UNUSEDSIGNAL
  function automatic qp_attr_t merge(input qp_attr_t o, input qp_attr_t n, input qp_state_e to);
    qp_attr_t a;
    logic stopped;
    stopped = o.state == QpSqd && to == QpSqd;
    a = o;
    a.state = to;
    a.remote_write = n.remote_write;
    a.remote_read = n.remote_read;
    a.remote_atomic = n.remote_atomic;
    if (to == QpInit || stopped) a.pkey = n.pkey;
    if (o.qp_type == QpTypeUd) a.qkey = n.qkey;
    if (to == QpRtr) begin
      a.path_mtu = n.path_mtu;
      a.dest_qpn = n.dest_qpn;
      a.rq_psn = n.rq_psn;
      a.flow_control = n.flow_control;
    end
    if (to inside {QpRtr, QpRts, QpSqd}) a.min_rnr_timer = n.min_rnr_timer;
    if (to == QpRtr || stopped) begin
      a.max_dest_rd_atomic = n.max_dest_rd_atomic;
      a.ipv6 = n.ipv6;
      a.vlan = n.vlan;
      a.udp_sport = n.udp_sport;
      a.dmac = n.dmac;
      a.vlan_tci = n.vlan_tci;
      a.hop_limit = n.hop_limit;
      a.traffic_class = n.traffic_class;
      a.flow_label = n.flow_label;
      a.sgid = n.sgid;
      a.dgid = n.dgid;
    end
    if (to == QpRts && o.state == QpRtr) a.sq_psn = n.sq_psn;
    if (stopped || (to == QpRts && o.state == QpRtr)) begin
      a.timeout = o.qp_type == QpTypeRc ? n.timeout : 5'd0;
      a.retry_cnt = n.retry_cnt;
      a.rnr_retry = n.rnr_retry;
      a.max_rd_atomic = n.max_rd_atomic;
    end
    return a;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  function automatic logic transition_ok(input qp_state_e from, input logic [7:0] to);
    unique case (from)
      QpReset: return to == 8'(QpInit);
      QpInit: return to inside {8'(QpInit), 8'(QpRtr)};
      QpRtr: return to == 8'(QpRts);
      QpRts, QpSqd: return to inside {8'(QpRts), 8'(QpSqd)};
      default: return 1'b0;
    endcase
  endfunction

  // ---- kinds ------------------------------------------------------------------------------------
  logic is_create, is_query, is_destroy, is_modify_cq;
  assign is_modify_cq = opcode_q == rnic_regs_pkg::CmdOpcodeModifyCq;
  logic is_mw;
  assign is_mw = opcode_q inside {rnic_regs_pkg::CmdOpcodeCreateMw,
                                  rnic_regs_pkg::CmdOpcodeQueryMw,
                                  rnic_regs_pkg::CmdOpcodeDestroyMw};
  assign is_create = opcode_q inside {rnic_regs_pkg::CmdOpcodeCreateMr,
                                      rnic_regs_pkg::CmdOpcodeCreateAh,
                                      rnic_regs_pkg::CmdOpcodeCreateMw,
                                      rnic_regs_pkg::CmdOpcodeCreateCq,
                                      rnic_regs_pkg::CmdOpcodeCreateEq,
                                      rnic_regs_pkg::CmdOpcodeCreateSrq,
                                      rnic_regs_pkg::CmdOpcodeCreateQp};
  assign is_query = opcode_q inside {rnic_regs_pkg::CmdOpcodeQueryMr,
                                     rnic_regs_pkg::CmdOpcodeQueryAh,
                                     rnic_regs_pkg::CmdOpcodeQueryMw,
                                     rnic_regs_pkg::CmdOpcodeQueryCq,
                                     rnic_regs_pkg::CmdOpcodeQueryEq,
                                     rnic_regs_pkg::CmdOpcodeQuerySrq,
                                     rnic_regs_pkg::CmdOpcodeQueryQp};
  assign is_destroy = opcode_q inside {rnic_regs_pkg::CmdOpcodeDestroyMr,
                                       rnic_regs_pkg::CmdOpcodeDestroyAh,
                                       rnic_regs_pkg::CmdOpcodeDestroyMw,
                                       rnic_regs_pkg::CmdOpcodeDestroyCq,
                                       rnic_regs_pkg::CmdOpcodeDestroyEq,
                                       rnic_regs_pkg::CmdOpcodeDestroySrq,
                                       rnic_regs_pkg::CmdOpcodeDestroyQp};

  // ---- answer -----------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    BodyNone,
    BodyCaps,
    BodyMr,
    BodyCq,
    BodyEq,
    BodyAh,
    BodySrq,
    BodyQp
  } body_e;
  body_e      body_q;
  logic [7:0] status_q, syndrome_q;
  logic       header_q;         // the header is being written, not the body
  logic       w_last_q, wr_err_q;
  logic [BeatW-1:0] wbeat_q;
  rsp_query_t rsp_query_q;
  req_query_t req_query_q;

  function automatic logic [SlotW-1:0] rsp_bits();
    rnic_regs_pkg::rsp_header_t h;
    rnic_regs_pkg::device_caps_t d;
    rnic_regs_pkg::mr_entry_t m;
    rnic_regs_pkg::ah_entry_t ahe;
    rnic_regs_pkg::cq_context_t c;
    rnic_regs_pkg::eq_context_t e;
    rnic_regs_pkg::srq_context_t s;
    rnic_regs_pkg::qp_context_t q;
    logic [SlotW-1:0] bits;
    bits = '0;
    h = '0;
    h.status = status_q;
    h.syndrome = syndrome_q;
    h.seq = seq_q;
    h.object = object_q;
    h.phase = phase;
    bits[HdrW-1:0] = h;
    unique case (body_q)
      BodyCaps: begin
        d = '0;
        d.num_qp = 32'd1 << QpnW;
        d.num_cq = 32'd1 << CqIdxW;
        d.num_mr = 32'd1 << LogMaxMr;
        d.num_ah = NumAh;
        d.first_qpn = 32'(FirstQpn);
        d.max_sge = MaxSge;
        d.log_max_queue = LogMaxQueue;
        d.max_inflight = 32'd1 << LogInflight;
        d.data_width = DataW;
        d.max_frame = MaxFrame;
        d.num_eq = NumEq;
        d.num_vectors = NumVec;
        d.num_srq = 32'd1 << SrqIdxW;
        d.max_dest_rd_atomic = MaxDestRdAtomic;
        d.max_rd_atomic = MaxRdAtomic;
        d.max_push = 32'd128;
        bits[HdrW+:$bits(d)] = d;
      end
      BodyMr: begin
        m = '0;
        m.key = {object_q[23:0], mr_cmd_rsp_i.variant};
        m.pd = mr_cmd_rsp_i.pd;
        m.local_write = mr_cmd_rsp_i.local_write;
        m.remote_write = mr_cmd_rsp_i.remote_write;
        m.remote_read = mr_cmd_rsp_i.remote_read;
        m.remote_atomic = mr_cmd_rsp_i.remote_atomic;
        m.mw_bind = mr_cmd_rsp_i.mw_bind;
        m.remote_inv = mr_cmd_rsp_i.remote_inv;
        m.valid = mr_cmd_rsp_i.valid;
        if (is_mw) begin
          m.qpn = 24'(mr_cmd_rsp_i.qpn);
          m.parent = 32'(mr_cmd_rsp_i.parent);
        end
        m.va = mr_cmd_rsp_i.va;
        m.length = mr_cmd_rsp_i.length;
        m.iova = mr_cmd_rsp_i.iova;
        bits[HdrW+:$bits(m)] = m;
      end
      BodyCq: begin
        c = '0;
        c.addr = cq_cmd_rsp_i.addr;
        c.log_size = 8'(cq_cmd_rsp_i.log_size);
        c.eqn = cq_cmd_rsp_i.eqn;
        c.overrun = cq_cmd_rsp_i.overrun;
        c.pi = cq_cmd_rsp_i.pi;
        c.ci = cq_cmd_rsp_i.ci;
        c.armed = cq_cmd_rsp_i.arm.any;
        c.armed_solicited = cq_cmd_rsp_i.arm.solicited;
        c.moderation_count = cq_cmd_rsp_i.moderation.count;
        c.moderation_period = cq_cmd_rsp_i.moderation.period;
        bits[HdrW+:$bits(c)] = c;
      end
      BodyEq: begin
        e = '0;
        e.addr = eq_cmd_rsp_i.addr;
        e.log_size = 8'(eq_cmd_rsp_i.log_size);
        e.irq_vec = 8'(eq_cmd_rsp_i.irq_vec);
        e.overrun = eq_cmd_rsp_i.overrun;
        e.armed = eq_cmd_rsp_i.armed;
        e.pi = eq_cmd_rsp_i.pi;
        e.ci = eq_cmd_rsp_i.ci;
        bits[HdrW+:$bits(e)] = e;
      end
      BodyAh: begin
        ahe = '0;
        ahe.pd = ah_cmd_rsp_i.pd;
        ahe.ipv6 = ah_cmd_rsp_i.ipv6;
        ahe.vlan = ah_cmd_rsp_i.vlan;
        ahe.hop_limit = ah_cmd_rsp_i.hop_limit;
        ahe.traffic_class = ah_cmd_rsp_i.traffic_class;
        ahe.vlan_tci = ah_cmd_rsp_i.vlan_tci;
        ahe.dmac = ah_cmd_rsp_i.dmac;
        ahe.udp_sport = ah_cmd_rsp_i.udp_sport;
        ahe.flow_label = 24'(ah_cmd_rsp_i.flow_label);
        ahe.sgid = ah_cmd_rsp_i.sgid;
        ahe.dgid = ah_cmd_rsp_i.dgid;
        bits[HdrW+:$bits(ahe)] = ahe;
      end
      BodySrq: begin
        s = '0;
        s.addr = {srq_cmd_rsp_i.attr.addr, 6'd0};
        s.log_size = 8'(srq_cmd_rsp_i.attr.log_size);
        s.stride128 = srq_cmd_rsp_i.attr.stride128;
        s.dead = srq_cmd_rsp_i.dead;
        s.pd = srq_cmd_rsp_i.attr.pd;
        s.limit = srq_cmd_rsp_i.limit;
        s.pi = srq_cmd_rsp_i.pi;
        s.ci = srq_cmd_rsp_i.ci;
        bits[HdrW+:$bits(s)] = s;
      end
      BodyQp: begin
        q = attr_ctx(qp_cmd_rsp_i, rsp_query_q, req_query_q);
        bits[HdrW+:$bits(q)] = q;
      end
      default: bits[SlotW-1:HdrW] = '0;
    endcase
    return bits;
  endfunction

  function automatic logic [DataW-1:0] rsp_beat(input logic [BeatW-1:0] n);
    logic [SlotW-1:0] bits;
    bits = rsp_bits();
    return bits[n*DataW+:DataW];
  endfunction

  // ---- users of CQs: QPs that name a CQ, twice each; set to zero when a CQ is created ------------
  localparam int unsigned UseW = QpnW + 1;
  logic [UseW-1:0] users_rd;
  cq_idx_t         users_idx;
  logic            use_step, use_cq, users_we;
  logic            use_q;      // read, now to be written

  assign use_cq = state_q == StUseSend || state_q == StUseRecv;
  assign use_step = use_cq || state_q == StUseSrq;
  always_comb begin
    unique case (state_q)
      StUseSend: users_idx = attr_q.send_cqn;
      StUseRecv: users_idx = attr_q.recv_cqn;
      default: users_idx = object_q[CqIdxW-1:0];
    endcase
  end
  assign users_we = (use_cq && use_q) || (state_q == StCqWrite && is_create);
  rnic_ram #(.Width(UseW), .Depth(1 << CqIdxW)) u_users (
    .clk_i, .we_i(users_we), .waddr_i(users_idx),
    .wdata_i(!use_cq ? '0 : is_create ? users_rd + 1'b1 : users_rd - 1'b1),
    .re_i(state_q == StCqRead || (use_cq && !use_q)), .raddr_i(users_idx), .rdata_o(users_rd)
  );
  always_ff @(posedge clk_i) use_q <= use_step && !use_q;

  // ---- users of SRQs: QPs; likewise ----------------------------------------------------------------
  logic [QpnW-1:0] srq_users_rd;
  srq_idx_t        srq_users_idx;
  assign srq_users_idx = state_q == StUseSrq ? attr_q.srqn : object_q[SrqIdxW-1:0];
  rnic_ram #(.Width(QpnW), .Depth(1 << SrqIdxW)) u_srq_users (
    .clk_i, .we_i((state_q == StUseSrq && use_q && attr_q.has_srq) || (state_q == StSrqWrite && is_create)), .waddr_i(srq_users_idx),
    .wdata_i(state_q != StUseSrq ? '0 : is_create ? srq_users_rd + 1'b1 : srq_users_rd - 1'b1),
    .re_i(state_q == StSrqRead || (state_q == StUseSrq && !use_q)), .raddr_i(srq_users_idx), .rdata_o(srq_users_rd)
  );

  // ---- users of EQs: CQs that name one; set to zero when an EQ is created -----------------------
  logic [CqIdxW:0] eq_users[NumEq];
  logic [CqIdxW:0] eq_users_rd;
  eq_idx_t         eq_users_idx;
  logic            eq_users_step;

  always_comb begin
    eq_users_idx = object_q[EqIdxW-1:0];
    if (state_q == StCqDone) eq_users_idx = cq_eqn_q[EqIdxW-1:0];
  end
  assign eq_users_rd = eq_users[eq_users_idx];
  assign eq_users_step = state_q == StCqDone && cq_cmd_rsp_valid_i && !cq_cmd_rsp_err_i && !is_modify_cq && cq_eqn_q != NoEq;
  always_ff @(posedge clk_i) begin
    if (eq_users_step) eq_users[eq_users_idx] <= is_create ? eq_users_rd + 1'b1 : eq_users_rd - 1'b1;
    else if (state_q == StEqWrite && is_create) eq_users[eq_users_idx] <= '0;
  end

  // ---- machine ----------------------------------------------------------------------------------
  logic [2:0] rounds_q;      // drain rounds to go
  logic [2:0] wait_q;
  logic       adm_rsp_q, adm_req_q;        // operations to begin
  logic       adm_rsp_wait_q, adm_req_wait_q;
  qp_admin_e  adm_op_q;
  logic       adm_then_write_q;
  logic       sqd_to_sqd;
  assign sqd_to_sqd = qp_cmd_rsp_i.state == QpSqd && new_state_q == rnic_regs_pkg::QpStateSqd;
  logic       qp_wr_state_q;               // write the state only

  task automatic answer(input logic [7:0] status, input logic [7:0] syndrome);
    status_q <= status;
    syndrome_q <= syndrome;
    state_q <= StRspLoad;
  endtask
  task automatic drain(input logic [2:0] rounds, input state_e then_state);
    rounds_q <= rounds;
    wait_q <= '0;
    after_drain_q <= then_state;
    state_q <= StRoundLow;
  endtask

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      enable_q <= 1'b0;
      restart_q <= 1'b0;
      ci_q <= '0;
      ar_valid_o <= 1'b0;
      aw_valid_o <= 1'b0;
      w_valid_o <= 1'b0;
      drain_o <= 1'b0;
      ev_done_o <= 1'b0;
      ev_error_o <= 1'b0;
      ev_axi_rd_err_o <= 1'b0;
      ev_axi_wr_err_o <= 1'b0;
      adm_rsp_q <= 1'b0;
      adm_req_q <= 1'b0;
      too_far_q <= 1'b0;
      gsi_valid_q <= 1'b0;
      raw_valid_q <= 1'b0;
      raw_rx_q <= 1'b0;
      mr_mem_o <= '0;
      qp_mem_o <= '0;
      cq_mem_o <= '0;
      srq_mem_o <= '0;
      qp_pin_q <= 1'b0;
      qp_forget_q <= 1'b0;
    end else begin
      ev_done_o <= 1'b0;
      ev_error_o <= too_far && !too_far_q;
      ev_axi_rd_err_o <= 1'b0;
      ev_axi_wr_err_o <= 1'b0;
      too_far_q <= too_far;
      enable_q <= enable_i;
      unique case (state_q)
        StIdle: begin
          beat_q <= '0;
          rd_err_q <= 1'b0;
          if (restart_q) begin
            restart_q <= 1'b0;
            ci_q <= '0;
          end else if (pending && !stop_i) begin
            ar_valid_o <= 1'b1;
            state_q <= StCmdAr;
          end
        end
        // -- fetch
        StCmdAr: if (ar_ready_i) begin
          ar_valid_o <= 1'b0;
          state_q <= StCmdR;
        end
        StCmdR: if (r_valid_i) begin
          slot_q[beat_q] <= r_data_i;
          beat_q <= beat_q + 1'b1;
          rd_err_q <= rd_err_q || r_err_i;
          if (r_last_i) state_q <= StParse;
        end
        StParse: begin
          // Reserved fields, those of other objects and the end of the slot are not looked at.
          // verilator lint_off UNUSEDSIGNAL
          automatic logic [CmdBeats*DataW-1:0] bits = slot_bits();
          automatic rnic_regs_pkg::cmd_header_t h = bits[HdrW-1:0];
          automatic rnic_regs_pkg::qp_context_t qc =
              {512'd0, bits[HdrW+:8*(CmdBytes-16)]};
          automatic rnic_regs_pkg::mr_entry_t mc = bits[HdrW+:8*rnic_regs_pkg::MrEntryBytes];
          automatic rnic_regs_pkg::ah_entry_t hc = bits[HdrW+:8*rnic_regs_pkg::AhEntryBytes];
          automatic rnic_regs_pkg::srq_context_t sc = bits[HdrW+:8*rnic_regs_pkg::SrqContextBytes];
          automatic rnic_regs_pkg::cq_context_t cc = bits[HdrW+:8*rnic_regs_pkg::CqContextBytes];
          automatic rnic_regs_pkg::ctx_mem_t xc = bits[HdrW+:8*rnic_regs_pkg::CtxMemBytes];
          automatic rnic_regs_pkg::eq_context_t ec = bits[HdrW+:8*rnic_regs_pkg::EqContextBytes];
          // verilator lint_on UNUSEDSIGNAL
          opcode_q <= rd_err_q ? rnic_regs_pkg::CmdOpcodeNop : h.opcode;
          seq_q <= rd_err_q ? 16'd0 : h.seq;
          object_q <= rd_err_q ? 32'd0 : h.object;
          notify_q <= !rd_err_q && h.notify;
          attr_q <= ctx_attr(qc);
          new_state_q <= qc.state;
          sqd_event_q <= qc.sqd_event;
          bad_type_q <= !(qc.qp_type inside {rnic_regs_pkg::QpTypeRc, rnic_regs_pkg::QpTypeUc,
                                             rnic_regs_pkg::QpTypeUd,
                                             rnic_regs_pkg::QpTypeRawPacket});
          bad_mtu_q <= qc.path_mtu < rnic_regs_pkg::MtuM256 ||
                       qc.path_mtu > rnic_regs_pkg::MtuM4096;
          bad_sq_addr_q <= qc.sq_stride128 ? |qc.sq_addr[6:0] : |qc.sq_addr[5:0];
          bad_sq_size_q <= qc.log_sq_size > 8'(LogMaxQueue);
          bad_rq_addr_q <= !qc.has_srq && (qc.rq_stride128 ? |qc.rq_addr[6:0] : |qc.rq_addr[5:0]);
          bad_rq_size_q <= !qc.has_srq && qc.log_rq_size > 8'(LogMaxQueue);
          bad_srqn_q <= qc.has_srq && (!srq_mem_o.on || qc.srqn >> srq_mem_o.log_num != 0);
          bad_dest_q <= qc.qp_type inside {rnic_regs_pkg::QpTypeRc, rnic_regs_pkg::QpTypeUc} &&
                        (qc.dest_qpn < 24'd2 || qc.dest_qpn == 24'hffffff || |qc.rsvd_2);
          bad_send_q <= !cq_mem_o.on || qc.send_cqn >> cq_mem_o.log_num != 0 || |qc.rsvd_5;
          bad_recv_q <= !cq_mem_o.on || qc.recv_cqn >> cq_mem_o.log_num != 0 || |qc.rsvd_6;
          mr_q <= '{exists: 1'b1, valid: 1'b1, mw: 1'b0, qpn: '0, parent: '0, mw_bind: mc.mw_bind,
                    remote_inv: mc.remote_inv, variant: mc.key[7:0], pd: mc.pd,
                    local_write: mc.local_write,
                    remote_write: mc.remote_write, remote_read: mc.remote_read,
                    remote_atomic: mc.remote_atomic, va: mc.va, length: mc.length, iova: mc.iova};
          ah_q <= '{valid: 1'b1, pd: hc.pd, ipv6: hc.ipv6, vlan: hc.vlan, udp_sport: hc.udp_sport,
                    dmac: hc.dmac, vlan_tci: hc.vlan_tci, hop_limit: hc.hop_limit,
                    traffic_class: hc.traffic_class, flow_label: hc.flow_label[19:0],
                    sgid: hc.sgid, dgid: hc.dgid};
          if (h.opcode == rnic_regs_pkg::CmdOpcodeCreateMw) begin
            mr_q <= '0;
            mr_q.exists <= 1'b1;
            mr_q.mw <= 1'b1;
            mr_q.variant <= mc.key[7:0];
            mr_q.pd <= mc.pd;
          end
          ctx_mem_q <= '{on: 1'b1, base: xc.addr[63:6], log_num: xc.log_num[4:0]};
          bad_ctx_addr_q <= |xc.addr[11:0];
          unique case (h.object)
            32'(rnic_regs_pkg::CtxKindQp): bad_ctx_num_q <= 32'(xc.log_num) > QpnW;
            32'(rnic_regs_pkg::CtxKindCq): bad_ctx_num_q <= 32'(xc.log_num) > CqIdxW;
            32'(rnic_regs_pkg::CtxKindSrq): bad_ctx_num_q <= 32'(xc.log_num) > SrqIdxW;
            default: bad_ctx_num_q <= 32'(xc.log_num) > LogMaxMr;
          endcase
          bad_key_q <= 32'(mc.key[31:8]) != h.object;
          bad_len_q <= mc.length == 0 || mc.length > (64'd1 << 48) ||
                       mc.va > ~mc.length || mc.iova > ~mc.length;
          bad_access_q <= (mc.remote_write || mc.remote_atomic) && !mc.local_write;
          cq_addr_q <= cc.addr[63:6];
          cq_log_size_q <= cc.log_size[3:0];
          cq_eqn_q <= cc.eqn;
          bad_cq_addr_q <= |cc.addr[5:0];
          srq_q <= '{addr: sc.addr[63:6], log_size: sc.log_size[3:0], stride128: sc.stride128,
                     pd: sc.pd};
          srq_limit_q <= sc.limit;
          bad_srq_addr_q <= sc.stride128 ? |sc.addr[6:0] : |sc.addr[5:0];
          bad_srq_size_q <= sc.log_size > 8'(LogMaxQueue);
          bad_srq_limit_q <= sc.limit > 16'd1 << sc.log_size[3:0];
          bad_cq_size_q <= cc.log_size == 0 || cc.log_size > 8'(LogMaxQueue);
          bad_cq_eqn_q <= cc.eqn != NoEq && 32'(cc.eqn) >= NumEq;
          cq_mod_q <= '{count: cc.moderation_count, period: cc.moderation_period};
          // without a period the last CQEs would never be told
          bad_cq_mod_q <= cc.moderation_count > 16'd1 && cc.moderation_period == 0;
          eq_vector_q <= ec.irq_vec[VecW-1:0];
          bad_eq_vector_q <= 32'(ec.irq_vec) >= NumVec;
          body_q <= BodyNone;
          syndrome_q <= rnic_regs_pkg::CmdSyndromeNone;
          state_q <= StDispatch;
          if (rd_err_q) begin
            ev_error_o <= 1'b1;
            ev_axi_rd_err_o <= 1'b1;
            answer(rnic_regs_pkg::CmdStatusExecError, rnic_regs_pkg::CmdSyndromeNone);
          end
        end
        StDispatch: begin
          unique case (opcode_q)
            rnic_regs_pkg::CmdOpcodeNop:
              answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
            rnic_regs_pkg::CmdOpcodeQueryDevice: begin
              body_q <= BodyCaps;
              answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
            end
            rnic_regs_pkg::CmdOpcodeSetCtxMem:
              if (object_q inside {32'(rnic_regs_pkg::CtxKindMr), 32'(rnic_regs_pkg::CtxKindQp), 32'(rnic_regs_pkg::CtxKindCq),
                                   32'(rnic_regs_pkg::CtxKindSrq)}) state_q <= StCtxMem;
              else answer(rnic_regs_pkg::CmdStatusBadIndex, rnic_regs_pkg::CmdSyndromeNone);
            rnic_regs_pkg::CmdOpcodeCreateMr, rnic_regs_pkg::CmdOpcodeQueryMr,
            rnic_regs_pkg::CmdOpcodeDestroyMr, rnic_regs_pkg::CmdOpcodeCreateMw,
            rnic_regs_pkg::CmdOpcodeQueryMw, rnic_regs_pkg::CmdOpcodeDestroyMw:
              if (mr_mem_o.on && object_q >> mr_mem_o.log_num == 0) state_q <= StMrRead;
              else answer(rnic_regs_pkg::CmdStatusBadIndex, rnic_regs_pkg::CmdSyndromeNone);
            rnic_regs_pkg::CmdOpcodeCreateAh, rnic_regs_pkg::CmdOpcodeQueryAh,
            rnic_regs_pkg::CmdOpcodeDestroyAh:
              if (object_q < NumAh) state_q <= StAhRead;
              else answer(rnic_regs_pkg::CmdStatusBadIndex, rnic_regs_pkg::CmdSyndromeNone);
            rnic_regs_pkg::CmdOpcodeCreateCq, rnic_regs_pkg::CmdOpcodeQueryCq,
            rnic_regs_pkg::CmdOpcodeDestroyCq, rnic_regs_pkg::CmdOpcodeModifyCq:
              if (cq_mem_o.on && object_q >> cq_mem_o.log_num == 0) state_q <= StCqRead;
              else answer(rnic_regs_pkg::CmdStatusBadIndex, rnic_regs_pkg::CmdSyndromeNone);
            rnic_regs_pkg::CmdOpcodeCreateEq, rnic_regs_pkg::CmdOpcodeQueryEq,
            rnic_regs_pkg::CmdOpcodeDestroyEq:
              if (object_q < NumEq) state_q <= StEqRead;
              else answer(rnic_regs_pkg::CmdStatusBadIndex, rnic_regs_pkg::CmdSyndromeNone);
            rnic_regs_pkg::CmdOpcodeCreateSrq, rnic_regs_pkg::CmdOpcodeModifySrq,
            rnic_regs_pkg::CmdOpcodeQuerySrq, rnic_regs_pkg::CmdOpcodeDestroySrq:
              if (srq_mem_o.on && object_q >> srq_mem_o.log_num == 0) state_q <= StSrqRead;
              else answer(rnic_regs_pkg::CmdStatusBadIndex, rnic_regs_pkg::CmdSyndromeNone);
            rnic_regs_pkg::CmdOpcodeCreateQp, rnic_regs_pkg::CmdOpcodeModifyQp,
            rnic_regs_pkg::CmdOpcodeQueryQp, rnic_regs_pkg::CmdOpcodeDestroyQp:
              if (qp_mem_o.on && object_q >= 32'(FirstQpn) && object_q >> qp_mem_o.log_num == 0) state_q <= StQpLook;
              else answer(rnic_regs_pkg::CmdStatusBadIndex, rnic_regs_pkg::CmdSyndromeNone);
            default: answer(rnic_regs_pkg::CmdStatusBadOpcode, rnic_regs_pkg::CmdSyndromeNone);
          endcase
        end
        // -- memory for contexts
        StCtxMem: begin
          if (ctx_on)
            answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeNone);
          else if (bad_ctx_addr_q)
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCtxAddr);
          else if (bad_ctx_num_q)
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCtxNum);
          else begin
            unique case (object_q)
              32'(rnic_regs_pkg::CtxKindQp): qp_mem_o <= ctx_mem_q;
              32'(rnic_regs_pkg::CtxKindCq): cq_mem_o <= ctx_mem_q;
              32'(rnic_regs_pkg::CtxKindSrq): srq_mem_o <= ctx_mem_q;
              default: mr_mem_o <= ctx_mem_q;
            endcase
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          end
        end
        // -- memory regions and windows
        StMrRead: if (mr_cmd_ready_i) state_q <= StMrCheck;
        StMrCheck: if (mr_cmd_rsp_valid_i) begin
          if (mr_cmd_rsp_err_i) begin
            ev_error_o <= 1'b1;
            answer(rnic_regs_pkg::CmdStatusExecError, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_create) begin
            if (mr_cmd_rsp_i.exists)
              answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeNone);
            else if (bad_key_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeMrKey);
            else if (!is_mw && bad_len_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeMrLength);
            else if (!is_mw && bad_access_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeMrAccess);
            else state_q <= StMrWrite;
          end else if (!mr_cmd_rsp_i.exists || mr_cmd_rsp_i.mw != is_mw) begin
            answer(rnic_regs_pkg::CmdStatusNotFound, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_query) begin
            body_q <= BodyMr;
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          end else if (!is_mw && mr_cmd_rsp_bound_i) begin
            answer(rnic_regs_pkg::CmdStatusBusy, rnic_regs_pkg::CmdSyndromeNone);
          end else begin
            state_q <= StMrWrite;
          end
        end
        StMrWrite: if (mr_cmd_ready_i) state_q <= StMrDone;
        StMrDone: if (mr_cmd_rsp_valid_i) begin
          ev_error_o <= mr_cmd_rsp_err_i;
          answer(mr_cmd_rsp_err_i ? rnic_regs_pkg::CmdStatusExecError : rnic_regs_pkg::CmdStatusOk,
                 rnic_regs_pkg::CmdSyndromeNone);
          if (is_destroy) drain(AllRounds, StRspLoad);
        end
        // -- address handles
        StAhRead: state_q <= StAhCheck;
        StAhCheck: if (ah_cmd_rsp_valid_i) begin
          if (ah_cmd_rsp_i.valid == is_create) begin
            answer(is_create ? rnic_regs_pkg::CmdStatusExists : rnic_regs_pkg::CmdStatusNotFound,
                   rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_query) begin
            body_q <= BodyAh;
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          end else begin
            state_q <= StAhWrite;
          end
        end
        StAhWrite: begin
          answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          if (is_destroy) drain(AllRounds, StRspLoad);  // packets on their way still use its contents
        end
        // -- completion queues
        StCqRead: if (cq_cmd_ready_i) state_q <= StCqCheck;
        StCqCheck: if (cq_cmd_rsp_valid_i) begin
          if (cq_cmd_rsp_err_i) begin
            ev_error_o <= 1'b1;
            answer(rnic_regs_pkg::CmdStatusExecError, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_create) begin
            if (cq_cmd_rsp_i.exists)
              answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeNone);
            else if (bad_cq_addr_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCqAddr);
            else if (bad_cq_size_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCqSize);
            else if (bad_cq_eqn_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCqEqn);
            else if (bad_cq_mod_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCqModeration);
            else if (cq_eqn_q == NoEq) state_q <= StCqWrite;
            else state_q <= StCqEq;
          end else if (!cq_cmd_rsp_i.exists) begin
            answer(rnic_regs_pkg::CmdStatusNotFound, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_query) begin
            body_q <= BodyCq;
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_modify_cq) begin
            if (bad_cq_mod_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCqModeration);
            else state_q <= StCqWrite;
          end else if (users_rd != 0) begin
            answer(rnic_regs_pkg::CmdStatusBusy, rnic_regs_pkg::CmdSyndromeNone);
          end else begin
            cq_eqn_q <= cq_cmd_rsp_i.eqn;
            state_q <= StCqWrite;
          end
        end
        StCqEq: if (eq_cmd_ready_i) state_q <= StCqEqRsp;
        StCqEqRsp: if (eq_cmd_rsp_valid_i) begin
          if (eq_cmd_rsp_i.exists) state_q <= StCqWrite;
          else answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeCqEqn);
        end
        StCqWrite: if (cq_cmd_ready_i) state_q <= StCqDone;
        StCqDone: if (cq_cmd_rsp_valid_i) begin
          ev_error_o <= cq_cmd_rsp_err_i;
          answer(cq_cmd_rsp_err_i ? rnic_regs_pkg::CmdStatusExecError : rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          if (is_destroy) drain(AllRounds, StRspLoad);
        end
        // -- event queues
        StEqRead: if (eq_cmd_ready_i) state_q <= StEqCheck;
        StEqCheck: if (eq_cmd_rsp_valid_i) begin
          if (is_create) begin
            if (eq_cmd_rsp_i.exists)
              answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeNone);
            else if (bad_cq_addr_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeEqAddr);
            else if (bad_cq_size_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeEqSize);
            else if (bad_eq_vector_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeEqVector);
            else state_q <= StEqWrite;
          end else if (!eq_cmd_rsp_i.exists) begin
            answer(rnic_regs_pkg::CmdStatusNotFound, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_query) begin
            body_q <= BodyEq;
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          end else if (eq_users_rd != 0) begin
            answer(rnic_regs_pkg::CmdStatusBusy, rnic_regs_pkg::CmdSyndromeNone);
          end else begin
            state_q <= StEqWrite;
          end
        end
        StEqWrite: if (eq_cmd_ready_i) begin
          answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          if (is_destroy) drain(AllRounds, StRspLoad);
        end
        // -- shared receive queues
        StSrqRead: if (srq_cmd_ready_i) state_q <= StSrqCheck;
        StSrqCheck: if (srq_cmd_rsp_valid_i) begin
          if (srq_cmd_rsp_err_i) begin
            ev_error_o <= 1'b1;
            answer(rnic_regs_pkg::CmdStatusExecError, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_create && srq_cmd_rsp_i.exists) begin
            answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeNone);
          end else if (!is_create && !srq_cmd_rsp_i.exists) begin
            answer(rnic_regs_pkg::CmdStatusNotFound, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_query) begin
            body_q <= BodySrq;
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_destroy) begin
            if (srq_users_rd != 0)
              answer(rnic_regs_pkg::CmdStatusBusy, rnic_regs_pkg::CmdSyndromeNone);
            else state_q <= StSrqWrite;
          end else if (is_create && bad_srq_addr_q) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSrqAddr);
          end else if (is_create && bad_srq_size_q) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSrqSize);
          end else if (is_create ? bad_srq_limit_q :
                       srq_limit_q > 16'd1 << srq_cmd_rsp_i.attr.log_size) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSrqLimit);
          end else begin
            state_q <= StSrqWrite;
          end
        end
        StSrqWrite: if (srq_cmd_ready_i) state_q <= StSrqDone;
        StSrqDone: if (srq_cmd_rsp_valid_i) begin
          ev_error_o <= srq_cmd_rsp_err_i;
          answer(srq_cmd_rsp_err_i ? rnic_regs_pkg::CmdStatusExecError : rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          if (is_destroy) drain(AllRounds, StRspLoad);
        end
        // -- queue pairs
        StQpLook: if (qpl_req_ready_i) state_q <= StQpLookWait;
        StQpLookWait: if (qpl_rsp_valid_i) begin
          qp_pin_q <= qpl_rsp_status_i == QpcOk;
          // a QP that is made exists from here on; if the command is refused, it goes again
          qp_forget_q <= qpl_rsp_status_i == QpcOk && is_create;
          unique case (qpl_rsp_status_i)
            QpcOk: state_q <= StQpRead;
            QpcNone: answer(rnic_regs_pkg::CmdStatusNotFound, rnic_regs_pkg::CmdSyndromeNone);
            QpcExists: answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeNone);
            default: begin
              ev_error_o <= 1'b1;
              answer(rnic_regs_pkg::CmdStatusExecError, rnic_regs_pkg::CmdSyndromeNone);
            end
          endcase
        end
        StQpRead: state_q <= StQpCheck;
        StQpCheck: if (qp_cmd_rsp_valid_i) begin
          adm_then_write_q <= 1'b0;
          qp_wr_state_q <= 1'b0;
          adm_op_q <= QpStateInit;
          if (opcode_q == rnic_regs_pkg::CmdOpcodeCreateQp) begin
            if (qp_cmd_rsp_i.state != QpNone)
              answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeNone);
            else if (new_state_q != rnic_regs_pkg::QpStateReset)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeState);
            else if (bad_type_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeType);
            else if (attr_q.gsi && (attr_q.qp_type != QpTypeUd || gsi_valid_q))
              answer(gsi_valid_q ? rnic_regs_pkg::CmdStatusExists : rnic_regs_pkg::CmdStatusBadParam,
                     rnic_regs_pkg::CmdSyndromeGsi);
            else if (attr_q.qp_type == QpTypeRaw && raw_valid_q)
              answer(rnic_regs_pkg::CmdStatusExists, rnic_regs_pkg::CmdSyndromeRawPacket);
            else if (bad_send_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSendCqn);
            else if (bad_recv_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeRecvCqn);
            else if (bad_sq_addr_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSqAddr);
            else if (bad_sq_size_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSqSize);
            else if (bad_rq_addr_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeRqAddr);
            else if (bad_rq_size_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeRqSize);
            else if (bad_srqn_q)
              answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSrqn);
            else state_q <= StQpSrq;
          end else if (qp_cmd_rsp_i.state == QpNone) begin
            answer(rnic_regs_pkg::CmdStatusNotFound, rnic_regs_pkg::CmdSyndromeNone);
          end else if (is_query) begin
            body_q <= BodyQp;
            adm_op_q <= QpStateQuery;
            adm_rsp_q <= 1'b1;
            adm_req_q <= 1'b1;
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
            state_q <= StAdmin;
          end else if (is_destroy) begin
            attr_q <= qp_cmd_rsp_i;
            attr_q.state <= QpNone;
            qp_wr_state_q <= 1'b1;
            // doorbells from before the command are for the state from before it: they are not bad ones
            drain(DoorbellRounds, StQpWrite);
          end else if (new_state_q inside {rnic_regs_pkg::QpStateReset,
                                           rnic_regs_pkg::QpStateErr}) begin
            attr_q <= qp_cmd_rsp_i;
            attr_q.state <= new_state_q[2] ? QpErr : QpReset;
            qp_wr_state_q <= 1'b1;
            if (new_state_q[2]) state_q <= StQpWrite;  // takes doorbells
            else drain(DoorbellRounds, StQpWrite);
          end else if (new_state_q > rnic_regs_pkg::QpStateErr) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeState);
          end else if (!transition_ok(qp_cmd_rsp_i.state, new_state_q)) begin
            answer(rnic_regs_pkg::CmdStatusBadState, rnic_regs_pkg::CmdSyndromeState);
          end else if (bad_type_q || attr_q.qp_type != qp_cmd_rsp_i.qp_type) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeType);
          end else if (new_state_q == rnic_regs_pkg::QpStateRtr && bad_mtu_q) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromePathMtu);
          end else if (bad_send_q || attr_q.send_cqn != qp_cmd_rsp_i.send_cqn) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSendCqn);
          end else if (bad_recv_q || attr_q.recv_cqn != qp_cmd_rsp_i.recv_cqn) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeRecvCqn);
          end else if (attr_q.sq_addr != qp_cmd_rsp_i.sq_addr ||
                       attr_q.sq_stride128 != qp_cmd_rsp_i.sq_stride128) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSqAddr);
          end else if (bad_sq_size_q || attr_q.log_sq_size != qp_cmd_rsp_i.log_sq_size) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSqSize);
          end else if ((!qp_cmd_rsp_i.has_srq && attr_q.rq_addr != qp_cmd_rsp_i.rq_addr) ||
                       attr_q.rq_stride128 != qp_cmd_rsp_i.rq_stride128) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeRqAddr);
          end else if (bad_rq_size_q || attr_q.log_rq_size != qp_cmd_rsp_i.log_rq_size) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeRqSize);
          end else if (bad_srqn_q || attr_q.has_srq != qp_cmd_rsp_i.has_srq ||
                       attr_q.srqn != qp_cmd_rsp_i.srqn) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSrqn);
          end else if (new_state_q == rnic_regs_pkg::QpStateRtr && bad_dest_q) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeDestQpn);
          end else if ((new_state_q == rnic_regs_pkg::QpStateRtr || sqd_to_sqd) &&
                       attr_q.max_dest_rd_atomic > 8'(MaxDestRdAtomic)) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeMaxDestRdAtomic);
          end else if ((sqd_to_sqd ||
                        (new_state_q == rnic_regs_pkg::QpStateRts && qp_cmd_rsp_i.state == QpRtr)) &&
                       attr_q.max_rd_atomic > 8'(MaxRdAtomic)) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeMaxRdAtomic);
          end else begin
            attr_q <= merge(qp_cmd_rsp_i, attr_q, qp_state_e'(new_state_q[2:0]));
            adm_rsp_q <= new_state_q == rnic_regs_pkg::QpStateRtr;
            adm_req_q <= qp_cmd_rsp_i.state inside {QpRtr, QpRts, QpSqd} && new_state_q != 8'(qp_cmd_rsp_i.state);
            if (new_state_q == rnic_regs_pkg::QpStateSqd) adm_op_q <= QpStateDrain;
            else if (qp_cmd_rsp_i.state == QpSqd) adm_op_q <= QpStateResume;
            adm_then_write_q <= 1'b1;
            state_q <= StAdmin;
          end
        end
        StQpSrq: if (!attr_q.has_srq) state_q <= StQpCqSend;
        else if (srq_cmd_ready_i) state_q <= StQpSrqRsp;
        StQpSrqRsp: if (srq_cmd_rsp_valid_i) begin
          attr_q.rq_addr <= 64'(srq_cmd_rsp_i.attr.pd);
          if (srq_cmd_rsp_err_i) begin
            ev_error_o <= 1'b1;
            answer(rnic_regs_pkg::CmdStatusExecError, rnic_regs_pkg::CmdSyndromeNone);
          end else if (srq_cmd_rsp_i.exists) state_q <= StQpCqSend;
          else answer(rnic_regs_pkg::CmdStatusBadParam, rnic_regs_pkg::CmdSyndromeSrqn);
        end
        StQpCqSend: if (cq_cmd_ready_i) state_q <= StQpCqSendRsp;
        StQpCqRecv: if (cq_cmd_ready_i) state_q <= StQpCqRecvRsp;
        StQpCqSendRsp, StQpCqRecvRsp: if (cq_cmd_rsp_valid_i) begin
          if (cq_cmd_rsp_err_i) begin
            ev_error_o <= 1'b1;
            answer(rnic_regs_pkg::CmdStatusExecError, rnic_regs_pkg::CmdSyndromeNone);
          end else if (!cq_cmd_rsp_i.exists) begin
            answer(rnic_regs_pkg::CmdStatusBadParam, state_q == StQpCqSendRsp ?
                   rnic_regs_pkg::CmdSyndromeSendCqn : rnic_regs_pkg::CmdSyndromeRecvCqn);
          end else if (state_q == StQpCqSendRsp) begin
            state_q <= StQpCqRecv;
          end else begin
            state_q <= StUseSend;
          end
        end
        StUseSend: if (use_q) state_q <= StUseRecv;
        StUseRecv: if (use_q) state_q <= StUseSrq;
        StUseSrq: if (use_q) begin
          if (is_create) begin
            adm_rsp_q <= 1'b1;
            adm_req_q <= 1'b1;
            adm_then_write_q <= 1'b1;
            state_q <= StAdmin;
          end else begin
            answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          end
        end
        StAdmin: begin
          adm_rsp_wait_q <= adm_rsp_q;
          adm_req_wait_q <= adm_req_q;
          state_q <= StAdminWait;
        end
        StAdminWait: begin
          if (rsp_adm_ready_i) adm_rsp_q <= 1'b0;
          if (req_adm_ready_i) adm_req_q <= 1'b0;
          if (rsp_adm_rsp_valid_i) begin
            adm_rsp_wait_q <= 1'b0;
            rsp_query_q <= rsp_adm_rsp_i;
          end
          if (req_adm_rsp_valid_i) begin
            adm_req_wait_q <= 1'b0;
            req_query_q <= req_adm_rsp_i;
          end
          if (!adm_rsp_wait_q && !adm_req_wait_q)
            state_q <= adm_then_write_q ? StQpWrite : StRspLoad;
        end
        StQpWrite: state_q <= StQpWriteWait;
        StQpWriteWait: if (qp_cmd_rsp_valid_i) begin
          if (!qp_cmd_rsp_ok_i)  // the QP failed meanwhile
            answer(rnic_regs_pkg::CmdStatusBadState, rnic_regs_pkg::CmdSyndromeState);
          else answer(rnic_regs_pkg::CmdStatusOk, rnic_regs_pkg::CmdSyndromeNone);
          qp_forget_q <= is_destroy;
          if (attr_q.gsi && (is_create || is_destroy)) begin
            gsi_valid_q <= is_create;
            gsi_qpn_q <= object_q[23:0];
          end
          if (attr_q.qp_type == QpTypeRaw) begin
            raw_rx_q <= qp_cmd_rsp_ok_i && attr_q.state inside {QpRtr, QpRts, QpSqd};
            if (is_create || is_destroy) begin
              raw_valid_q <= is_create;
              raw_qpn_q <= object_q[23:0];
            end
          end
          if (is_destroy || (qp_wr_state_q && attr_q.state == QpReset)) drain(AllRounds, StPurge);
        end
        // its windows are taken away from the QP
        StPurge: if (mr_cmd_ready_i) state_q <= StPurgeWait;
        StPurgeWait: if (mr_cmd_rsp_valid_i) begin
          state_q <= StUseSend;
          if (!is_destroy) begin
            // then the owners of QP state forget the old connection
            adm_rsp_q <= 1'b1;
            adm_req_q <= 1'b1;
            state_q <= StAdmin;
          end
        end
        // -- rounds of drain
        StRoundLow: begin
          wait_q <= wait_q + 1'b1;
          if (wait_q == 3'(RoundWait - 1)) begin
            wait_q <= '0;
            drain_o <= 1'b1;
            state_q <= StRoundHigh;
          end
        end
        StRoundHigh: begin
          if (wait_q != 3'(RoundWait)) begin
            wait_q <= wait_q + 1'b1;
          end else if (&drain_done_i) begin
            wait_q <= '0;
            drain_o <= 1'b0;
            rounds_q <= rounds_q - 1'b1;
            state_q <= rounds_q == 3'd1 ? after_drain_q : StRoundLow;
          end
        end
        // -- answer: body, then header
        StRspLoad: begin
          header_q <= 1'b0;
          wbeat_q <= BeatW'(HdrBeats);
          wr_err_q <= 1'b0;
          aw_valid_o <= 1'b1;
          state_q <= StRspAw;
        end
        StRspAw: if (aw_ready_i) begin
          aw_valid_o <= 1'b0;
          w_valid_o <= 1'b1;
          w_data_o <= rsp_beat(wbeat_q);
          w_last_q <= header_q ? HdrBeats == 1 : RspBeats == HdrBeats + 1;
          wbeat_q <= wbeat_q + 1'b1;
          state_q <= StRspW;
        end
        StRspW: if (w_ready_i) begin
          w_data_o <= rsp_beat(wbeat_q);
          w_last_q <= wbeat_q == (header_q ? BeatW'(HdrBeats - 1) : BeatW'(RspBeats - 1));
          wbeat_q <= wbeat_q + 1'b1;
          if (w_last_q) begin
            w_valid_o <= 1'b0;
            state_q <= StRspB;
          end
        end
        StRspB: if (b_valid_i) begin
          wr_err_q <= wr_err_q || b_err_i;
          ev_axi_wr_err_o <= b_err_i;
          wbeat_q <= '0;
          if (header_q) begin
            ci_q <= ci_q + 16'd1;
            ev_done_o <= 1'b1;
            qp_pin_q <= 1'b0;
            qp_forget_q <= 1'b0;
            if (wr_err_q || b_err_i) ev_error_o <= 1'b1;
            state_q <= notify_q ? StEvent : StIdle;
          end else begin
            header_q <= 1'b1;
            aw_valid_o <= 1'b1;
            state_q <= StRspAw;
          end
        end
        StEvent: if (event_ready_i) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
      if (enable_i && !enable_q) restart_q <= 1'b1;
    end
  end

  // ---- ports ------------------------------------------------------------------------------------
  assign ar_addr_o = {cmdq_base_i + slot_off, 8'd0};
  assign ar_len_o = 8'(CmdBeats - 1);
  assign aw_addr_o = {cmdr_base_i + slot_off, header_q ? 8'd0 : 8'(HdrBeats * BeatBytes)};
  assign aw_len_o = header_q ? 8'(HdrBeats - 1) : 8'(RspBeats - HdrBeats - 1);
  assign w_last_o = w_last_q;
  assign w_strb_o = '1;

  assign qp_cmd_valid_o = state_q == StQpRead || state_q == StQpWrite;
  assign qp_cmd_op_o = state_q == StQpRead ? QpCmdRead : qp_wr_state_q ? QpCmdState : QpCmdWrite;
  assign qp_cmd_idx_o = qpl_rsp_slot_i;
  always_comb begin
    unique case (object_q)
      32'(rnic_regs_pkg::CtxKindQp): ctx_on = qp_mem_o.on;
      32'(rnic_regs_pkg::CtxKindCq): ctx_on = cq_mem_o.on;
      32'(rnic_regs_pkg::CtxKindSrq): ctx_on = srq_mem_o.on;
      default: ctx_on = mr_mem_o.on;
    endcase
  end
  assign qpl_req_valid_o = state_q == StQpLook;
  assign qpl_req_qpn_o = object_q[23:0];
  assign qpl_req_create_o = is_create;
  assign qpl_rel_valid_o = qp_pin_q && state_q == StRspB && b_valid_i && header_q;
  assign qpl_rel_forget_o = qp_forget_q;
  assign qp_cmd_from_o = qp_cmd_rsp_i.state;
  always_comb begin
    qp_cmd_attr_o = attr_q;
    qp_cmd_attr_o.qpn = object_q[QpnW-1:0];
  end

  assign mr_cmd_valid_o = state_q inside {StMrRead, StMrWrite, StPurge};
  assign mr_cmd_lock_o = state_q inside {StMrCheck, StMrWrite, StMrDone};
  assign mr_cmd_op_o = state_q == StMrRead ? MrCmdRead : state_q == StMrWrite ? MrCmdWrite : MrCmdPurge;
  assign mr_cmd_qpn_o = object_q[QpnW-1:0];
  assign mr_cmd_idx_o = object_q[LogMaxMr-1:0];
  always_comb begin
    mr_cmd_mr_o = mr_q;
    if (!is_create) begin
      mr_cmd_mr_o.exists = 1'b0;
      mr_cmd_mr_o.valid = 1'b0;
    end
  end

  assign ah_cmd_valid_o = state_q == StAhRead || state_q == StAhWrite;
  assign ah_cmd_we_o = state_q == StAhWrite;
  assign ah_cmd_idx_o = object_q[AhIdxW-1:0];
  always_comb begin
    ah_cmd_ah_o = ah_q;
    ah_cmd_ah_o.valid = is_create;
  end
  assign gsi_valid_o = gsi_valid_q;
  assign gsi_qpn_o = gsi_qpn_q;
  assign raw_valid_o = raw_valid_q;
  assign raw_qpn_o = raw_qpn_q;
  assign raw_rx_o = raw_rx_q;

  assign cq_cmd_valid_o = state_q inside {StCqRead, StCqWrite, StQpCqSend, StQpCqRecv};
  assign cq_cmd_addr_o = cq_addr_q;
  assign cq_cmd_log_size_o = cq_log_size_q;
  assign cq_cmd_eqn_o = cq_eqn_q;
  assign cq_cmd_mod_o = cq_mod_q;
  always_comb begin
    cq_cmd_op_o = CqCmdQuery;
    if (state_q == StCqWrite)
      cq_cmd_op_o = is_create ? CqCmdCreate : is_modify_cq ? CqCmdModify : CqCmdDestroy;
    unique case (state_q)
      StQpCqSend: cq_cmd_idx_o = attr_q.send_cqn;
      StQpCqRecv: cq_cmd_idx_o = attr_q.recv_cqn;
      default: cq_cmd_idx_o = object_q[CqIdxW-1:0];
    endcase
  end

  assign eq_cmd_valid_o = state_q inside {StEqRead, StEqWrite, StCqEq};
  assign eq_cmd_idx_o = state_q == StCqEq ? cq_eqn_q[EqIdxW-1:0] : object_q[EqIdxW-1:0];
  assign eq_cmd_op_o = state_q != StEqWrite ? EqCmdQuery : is_create ? EqCmdCreate : EqCmdDestroy;
  assign eq_cmd_addr_o = cq_addr_q;
  assign eq_cmd_log_size_o = cq_log_size_q;
  assign eq_cmd_vector_o = eq_vector_q;

  assign event_valid_o = state_q == StEvent;
  assign event_o = '{ev_type: rnic_regs_pkg::EqeTypeCommand, object: object_q, detail: 32'(seq_q)};

  assign srq_cmd_valid_o = state_q == StSrqRead || state_q == StSrqWrite ||
                           (state_q == StQpSrq && attr_q.has_srq);
  assign srq_cmd_idx_o = state_q == StQpSrq ? attr_q.srqn : object_q[SrqIdxW-1:0];
  assign srq_cmd_attr_o = srq_q;
  assign srq_cmd_limit_o = srq_limit_q;
  always_comb begin
    srq_cmd_op_o = SrqCmdQuery;
    if (state_q == StSrqWrite) begin
      srq_cmd_op_o = is_create ? SrqCmdCreate : is_destroy ? SrqCmdDestroy : SrqCmdLimit;
    end
  end

  assign rsp_adm_valid_o = state_q == StAdminWait && adm_rsp_q;
  assign req_adm_valid_o = state_q == StAdminWait && adm_req_q;
  assign rsp_adm_o = '{
    op: adm_op_q == QpStateInit && attr_q.state == QpReset ? QpStateReset : adm_op_q,
    qp: qpl_rsp_slot_i, psn: attr_q.rq_psn, notify: 1'b0
  };
  assign req_adm_o = '{op: adm_op_q, qp: qpl_rsp_slot_i, psn: attr_q.sq_psn, notify: sqd_event_q};

  assign idle_o = state_q == StIdle && !restart_q && (!pending || stop_i) && enable_i == enable_q;

endmodule
