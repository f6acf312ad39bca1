// SPDX-License-Identifier: Apache-2.0
//
// Transport layer, receive side: takes accepted packets one after the other and decides what each
// of them does. RC SEND and RDMA WRITE requests, with or without immediate, are executed (responder:
// IBTA 9.7.4, 9.9), RDMA READ and atomic requests are checked and passed on (rd_o beside wr_o),
// acknowledges go to the requester, all other packets are refused or dropped, each
// with one transport_drop event (a request without a receive WQE: ev_rnr_o).
//
// UC (IBTA 9.8.2.2, 9.8.3): a First or Only packet begins a new message whatever its PSN; any other packet must have the
// PSN behind its predecessor, or its message is given up until the next First or Only. Nothing is answered. The receive WQE
// of a message given up stays open in rq_cache, and the next message that needs one gets it again. A message that
// is too long for its receive WQE ends it with loc_len_err and the QP in ERR, like other faults of the receive WQE.
//
// UD (IBTA 9.8.4): single packets from anybody with the right Q_Key. The receive begins with 40 bytes for the GRH: the IPv6
// header as it came, or 20 zero bytes and the IPv4 header; they go out on grh_o, in front of the payload and as pieces of their own. A
// packet that does not fit is dropped and leaves its receive WQE to the next one (as Linux rxe does: a peer that nobody chose
// must not stop the QP). Therefore the WQE is taken without `last` and closed (Rq again) when the whole packet has its places. Only a QP
// that is QP1 on the wire answers to QPN 1. Frames that are not RoCEv2 go to the raw packet QP like datagrams without a GRH. Which slot that is, and whether there is one,
// comes with the metadata (rx_lookup).
//
// Throughput: one packet per 3 cycles when the QP and MR ports answer in the cycle after the
// request; latency 5 cycles from metadata at the input to the outputs, because the QP attributes and the responder state
// of a waiting packet are read ahead while its predecessor is being
// decided. Back-pressure: one register in front of each output; a packet is decided only when all
// of these are free, so a stalled output stalls the block and, through meta_ready_o, the packet
// buffer. Packets that use a receive WQE take 2 cycles more for the WQE, and SENDs 3 for each SGE that they touch (less 1 for the
// first: 6 cycles for a SEND of one SGE) and one for each piece but the last; a WQE still on its way from host memory is waited for.
//
// Steps of a packet: launch (metadata, QP attributes and responder state are taken) - Lookup (its MR, or the entry of
// read_table, is answered; not needed by SENDs) - Check (compares, registered) - Act (verdict, new state, outputs;
// the next packet is launched in the same cycle). The state RAM is written one cycle after Act.
// Attributes read ahead are read again when a drain begins: after it nothing is done with those of before.
// Before Act, packets that use a receive WQE get it (Rq), translate the part of the list that the
// payload goes to (Sge, Mr, MrCheck) and hand out all pieces but the last (Pieces). The whole packet is checked before a
// byte of it is written. An error completes the WQE: it is closed first (again Rq).
//
// Responses to our READs and atomics (IBTA 9.7.5): read_table says which one is the next and where it goes. It is taken
// in order only, with the right opcode and length, its part of the scatter list checked as for a SEND; then the payload
// writer hands it to the requester as an acknowledge when its data are in memory. One behind is a duplicate, one without a request
// a ghost. One ahead, or an acknowledge at or behind it, means that the next one was lost: once per gap the requester
// is told to ask again. While READs or atomics are not complete, all acknowledges go the way of the
// responses, so that none overtakes data.
//
// Order is kept by sending everything that leads to an acknowledge, also duplicates and NAKs,
// through wr_o: the payload writer acknowledges and completes after all earlier writes have finished.
// Flushed receive WQEs, the end of a QP's use of its SRQ, and the flush of a send queue go the same way, between packets: the
// CQEs of a QP in ERR come behind everything that was taken for it. A fatal NAK
// asks for the QP's error state and sets `dead`, so that nothing of this QP is executed even before
// the QP table has changed. While responses of earlier requests are to come, the error state is asked for
// behind them (RxError), because they do not leave in ERR.
//
// Credits (IBTA 9.7.7.2): an ACK or response of a QP with flow control and a receive queue of its own tells the receive WQEs
// that its peer may count on behind the MSN beside it; all others say that they tell none. When the peer was told that there are none and one is posted
// (rq_flush_t.credits), the last acknowledge is repeated, with the number of now.
//
// Data packets of RC and UC with a CE mark (ECN 11) are told to the notification point, mark_*: SENDs and WRITEs that pass the checks of QP, state and
// address, also those out of sequence and repeated ones, which tell of congestion too, and responses to READs that were asked for.
//
// Every READ and atomic takes a place in its QP's response queue: at most min(max_dest_rd_atomic, 8) that
// were never executed, else NAK, and 7 duplicates, else they are dropped like lost ones. A duplicate READ may ask for any part of
// what was answered before; its memory is checked again.

module rx_transport
  import rnic_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [7:0]   coalesce_i,

  input  logic         meta_valid_i,
  output logic         meta_ready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  rx_meta_t     meta_i,          // fields of services this block does not offer stay unread
  // verilator lint_on UNUSEDSIGNAL
  input  qp_idx_t      meta_qp_i,       // slot of its QP (rx_lookup)
  input  logic         meta_none_i,     // it has none
  input  logic         meta_late_i,     // or none could be had in time
  output logic         pcmd_valid_o,
  input  logic         pcmd_ready_i,
  output payload_cmd_e pcmd_o,
  output logic         grh_valid_o,
  input  logic         grh_ready_i,
  output rx_grh_t      grh_o,

  output logic         qp_req_valid_o,
  input  logic         qp_req_ready_i,
  output qp_idx_t      qp_req_idx_o,
  input  logic         qp_rsp_valid_i,
  // verilator lint_off UNUSEDSIGNAL
  input  qp_attr_t     qp_rsp_i,        // only the attributes that a receiver compares are read
  // verilator lint_on UNUSEDSIGNAL

  output logic         mr_req_valid_o,
  input  logic         mr_req_ready_i,
  output mr_idx_t      mr_req_idx_o,
  input  logic         mr_rsp_valid_i,
  input  mr_t          mr_rsp_i,

  output logic         rq_req_valid_o,
  input  logic         rq_req_ready_i,
  output rq_req_t      rq_req_o,
  input  logic         rq_rsp_valid_i,
  input  rq_rsp_t      rq_rsp_i,        // stays until the next request
  input  logic         flush_valid_i,
  output logic         flush_ready_o,
  input  rq_flush_t    flush_i,
  output qp_idx_t      cr_qp_o,         // credits of this QP
  output logic         cr_tell_o,       // the peer is told
  input  logic [4:0]   cr_code_i,
  output logic         rq_adm_valid_o,
  input  logic         rq_adm_ready_i,
  output logic         rq_adm_init_o,
  output qp_idx_t      rq_adm_qp_o,
  input  logic         rq_adm_rsp_valid_i,
  input  rq_query_t    rq_adm_rsp_i,

  output logic         wr_valid_o,
  input  logic         wr_ready_i,
  output rx_write_t    wr_o,
  output rx_read_t     rd_o,            // valid with wr_o if that is not RxData
  output qp_idx_t      rd_qp_o,         // response queue of this QP:
  input  logic         rd_done_valid_i,
  input  rsp_done_t    rd_done_i,
  input  rsp_slot_t    rd_left_i,       // responses of requests before this have left

  // SEND with invalidate
  output logic         chg_valid_o,
  input  logic         chg_ready_i,
  output mr_change_t   chg_o,
  input  logic         chg_rsp_valid_i,
  input  mr_result_e   chg_rsp_i,
  // a QP went to ERR: goes on to the writer, and from there to the requester
  input  logic         sq_flush_valid_i,
  output logic         sq_flush_ready_o,
  input  qp_idx_t      sq_flush_idx_i,
  // a barrier of the requester: goes on to the writer
  input  logic         bar_valid_i,
  output logic         bar_ready_o,

  output logic         ackrx_valid_o,
  input  logic         ackrx_ready_i,
  output ack_rx_t      ackrx_o,

  output logic         qp_err_valid_o,
  input  logic         qp_err_ready_i,
  output qp_idx_t      qp_err_idx_o,
  output logic         qp_err_access_o,   // after a NAK for a remote access violation

  input  logic         adm_valid_i,
  output logic         adm_ready_o,
  input  qp_admin_t    adm_i,
  output logic         adm_rsp_valid_o,
  output rsp_query_t   adm_rsp_o,

  // contexts (docs/qp-cache.md): the responder state of a slot, read (there one cycle later) or written while busy_o is 0 for it. A packet of
  // the slot is not at the input then
  input  qp_idx_t      probe_qp_i,
  output logic         busy_o,          // something of probe_qp_i is under way
  input  logic         ctx_valid_i,
  output logic         ctx_ready_o,
  input  logic         ctx_load_i,
  input  qp_idx_t      ctx_qp_i,
  input  rsp_state_t   ctx_i,
  output rsp_state_t   ctx_o,

  input  logic         drain_i,
  output logic         drain_done_o,
  output logic         idle_o,

  // read_table of the requester
  output logic         rt_re_o,
  output qp_idx_t      rt_qp_o,
  input  rd_view_t     rt_view_i,       // one cycle after rt_re_o, until the next
  output logic         rt_update_valid_o,
  output rd_update_t   rt_update_o,

  // a data packet with a CE mark
  output logic         mark_valid_o,
  output qpn_t         mark_qpn_o,
  output logic [2:0]   mark_prio_o,

  output logic         ev_implied_o,    // a lost response was noticed
  output logic         ev_dup_rsp_o,
  output logic         ev_ghost_rsp_o,
  output logic         ev_drop_valid_o,
  output logic [4:0]   ev_drop_o,
  output logic         ev_rnr_o,
  output logic         ev_credit_update_o,    // an acknowledge repeated for its credits
  output logic         ev_read_o,       // READ request executed for the first time
  output logic         ev_atomic_o
);

  // transport_drop of hw/regs/csr.yaml, in the 5 bits of ev_drop_o
  typedef enum logic [4:0] {
    DropQpn = 5'd0,
    DropQpState = 5'd1,
    DropService = 5'd2,
    DropAddress = 5'd3,
    DropPkey = 5'd4,
    DropDuplicate = 5'd5,
    DropOutOfSequence = 5'd6,
    DropUnsupported = 5'd7,
    DropNakInvReq = 5'd8,
    DropNakAccess = 5'd9,
    DropNakOp = 5'd10,
    DropGhost = 5'd11,
    DropReservedAeth = 5'd12,
    DropCnp = 5'd13,
    DropQkey = 5'd14,
    DropBadRequest = 5'd15,
    DropBadAccess = 5'd16,
    DropRecvError = 5'd17,
    DropRecvLength = 5'd18,
    DropNoSlot = 5'd19
  } drop_e;

  // What a packet keeps while it is decided.
  typedef struct packed {
    logic         none;       // no QP
    logic         late;       // or no slot for it
    logic         gsi;        // QP1
    logic         raw;
    logic         ce;         // ECN 11
    logic [2:0]   prio;
    qp_idx_t      qp;
    logic [7:0]   opcode;
    logic [1:0]   pad;
    logic         solicited;
    logic         ack_req;
    logic [15:0]  pkey;
    psn_t         psn;
    logic [63:0]  va;
    logic [31:0]  rkey;
    logic [31:0]  dma_len;
    logic [31:0]  imm;
    logic [7:0]   syndrome;
    logic [23:0]  msn;
    logic         ipv6;
    logic [127:0] sip;
    logic [127:0] dip;
    logic [12:0]  payload_len;
    logic [23:0]  src_qp;
    logic [31:0]  qkey;
    logic [95:0]  ip_head;
    logic [63:0]  swap_add;
    logic [63:0]  compare;
  } pkt_t;

  typedef struct packed {
    logic first;       // SEND or RDMA WRITE First ..
    logic middle;
    logic last;
    logic only;
    logic write;       // of RDMA WRITE
    logic send;        // of SEND
    logic imm;
    logic inv;         // with a key to invalidate
    logic read;        // RDMA READ
    logic atomic;
    logic ack;
    logic rd_rsp;      // READ response
    logic at_rsp;      // ATOMIC ACK
    logic response;    // ACK, READ response, ATOMIC ACK
    logic cnp;
  } class_t;

  // QP attributes and compares with them
  typedef struct packed {
    qp_state_e   state;
    logic [3:0]  qp_type;
    logic [2:0]  path_mtu;
    logic        remote_write;
    logic        remote_read;
    logic        remote_atomic;
    logic [7:0]  max_dest_rd_atomic;
    logic [23:0] pd;
    logic [23:0] recv_pd;     // of receive WQEs
    logic [23:0] dest_qpn;
    cq_idx_t     recv_cqn;
    logic        has_srq;
    srq_idx_t    srqn;
    logic        credits;     // are told to the peer
    logic [4:0]  min_rnr_timer;
    logic        addr_ok;     // also on UD: there it does not matter
    logic        pkey_ok;
    logic        qkey_ok;     // also where there is none
    logic        gsi;
    qpn_t        qpn;
  } qp_view_t;

  // What becomes of an acknowledge or a response.
  typedef enum logic [3:0] {
    AnsNone,       // it is a request
    AnsDirect,     // acknowledge, to the requester at once
    AnsOrdered,    // acknowledge, behind the responses
    AnsTake,       // the next response
    AnsBad,        // in its place, but of wrong opcode or length
    AnsImplied,    // shows that the next response was lost
    AnsSilent,     // shows it again
    AnsDuplicate,
    AnsGhost
  } answer_e;

  typedef struct packed {
    logic        drop;        // without any answer, for `reason`
    drop_e       reason;
    logic        lost;        // with drop: a packet of the message under way is missing (UC)
    logic        mark;        // data with a CE mark
    logic        rc;          // answered, and in order
    logic        ud;
    logic        keep;        // a receive WQE that is too short for it stays (UD, raw packets)
    answer_e     answer;
    logic [31:0] off;         // AnsTake: place of the payload in the message
    logic        rd_last;     // AnsTake: last response of its request
    logic        duplicate;
    logic        ahead;
    logic        op_ok;       // executed, allowed, in its place in the message, of right lengths
    logic        access_ok;
    logic [63:0] iova;
    psn_t        psns;        // that the request takes
    logic        again;       // a duplicate READ or atomic is answered
    logic        pending;     // responses of earlier requests are to come
    logic        recv;        // uses a receive WQE
    logic        rq_start;    // takes the next one
    logic        rq_last;     // is done with it
  } check_t;

  localparam int unsigned NumDup = 7;  // duplicates in a response queue

  // What became of the receive WQE.
  typedef enum logic [2:0] {
    RecvOk,
    RecvNone,     // nothing posted
    RecvGone,     // the QP went to ERR
    RecvWqe,      // WQE malformed
    RecvLen,      // message too long
    RecvProt,     // SGE not covered
    RecvInv       // key cannot be invalidated
  } recv_e;

  // Part of a payload in one SGE.
  typedef struct packed {
    logic [63:0] iova;
    logic [12:0] len;
  } piece_t;

  typedef struct packed {
    logic       has_drop;
    drop_e      reason;
    logic       has_wr;
    rx_write_t  wr;
    logic       fwd_ack;
    logic       update;       // read_table
    rd_update_t rt;
    logic       fatal;     // the QP goes to ERR at once
    logic       rnr;
    logic       tell;      // credits
    logic       read;
    logic       atomic;
    logic       set_state;
    rsp_state_t st;
  } act_t;

  typedef enum logic [4:0] {
    StIdle,
    StLookup,
    StCheck,
    StRq,
    StRqWait,
    StSge,
    StMr,
    StMrCheck,
    StInv,
    StInvWait,
    StPieces,
    StAct,
    StCredits,
    StAdmin,
    StAdminRq,
    StAdminWait
  } state_e;

  // ---- functions: what one step computes --------------------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  // (each function takes whole structs and reads the fields that it needs)
  function automatic class_t classify(input logic [7:0] op);
    class_t c;
    logic [7:0] o;
    // the services number their operations alike
    o = op[7:5] inside {3'd0, 3'd1, 3'd3} ? {3'd0, op[4:0]} : 8'hff;
    // on RC only
    c.inv = op inside {OpRcSendLastInv, OpRcSendOnlyInv};
    c.send = o inside {[OpRcSendFirst : OpRcSendOnlyImm]} || c.inv;
    c.write = o inside {[OpRcWriteFirst : OpRcWriteOnlyImm]};
    c.first = o == OpRcSendFirst || o == OpRcWriteFirst;
    c.middle = o == OpRcSendMiddle || o == OpRcWriteMiddle;
    c.last = o inside {OpRcSendLast, OpRcSendLastImm, OpRcWriteLast, OpRcWriteLastImm} ||
             op == OpRcSendLastInv;
    c.only = o inside {OpRcSendOnly, OpRcSendOnlyImm, OpRcWriteOnly, OpRcWriteOnlyImm} ||
             op == OpRcSendOnlyInv;
    c.imm = o inside {OpRcSendLastImm, OpRcSendOnlyImm, OpRcWriteLastImm, OpRcWriteOnlyImm};
    c.read = o == OpRcReadRequest;
    c.atomic = o == OpRcCmpSwap || o == OpRcFetchAdd;
    c.ack = o == OpRcAck;
    c.rd_rsp = op inside {[OpRcReadRespFirst : OpRcReadRespOnly]};
    c.at_rsp = op == OpRcAtomicAck;
    c.response = op inside {[OpRcReadRespFirst : OpRcAtomicAck]};
    c.cnp = op == OpCnp;
    return c;
  endfunction

  function automatic logic needs_mr(input class_t c, input logic [31:0] dma_len);
    return c.atomic || ((c.write || c.read) && !((c.only || c.read) && dma_len == 0));
  endfunction

  // IBTA 10.9.3: the same partition (15 bits, 0 is no partition), at least one side a full member.
  function automatic logic pkey_match(input logic [15:0] a, input logic [15:0] b);
    return a[14:0] == b[14:0] && a[14:0] != 0 && (a[15] || b[15]);
  endfunction

  // What a UD receive begins with: the IPv6 header, or 20 zero bytes and the IPv4 header, as they came.
  function automatic logic [8*GrhBytes-1:0] grh(input pkt_t p);
    if (p.ipv6) return {p.dip, p.sip, p.ip_head[63:0]};
    return {p.dip[127:96], p.sip[127:96], p.ip_head, 160'd0};
  endfunction

  function automatic logic [31:0] swap32(input logic [31:0] v);
    return {v[7:0], v[15:8], v[23:16], v[31:24]};
  endfunction

  // IBTA table 45: 000 ACK, 001 RNR NAK, 011 NAK with codes 0 to 3 on RC; all else is reserved.
  function automatic logic aeth_reserved(input logic [7:0] syn);
    return syn[7] || syn[6:5] == 2'b10 || (syn[6:5] == 2'b11 && syn[4:0] > 5'd3);
  endfunction

  function automatic logic service_ok(input logic [3:0] qp_type, input logic [2:0] op_service);
    return (qp_type == QpTypeRc && op_service == 3'b000) ||
           (qp_type == QpTypeUc && op_service == 3'b001) ||
           (qp_type == QpTypeUd && op_service == 3'b011);
  endfunction

  // 1 when the request may be executed as far as the packet and the QP go.
  function automatic logic read_ok(input class_t c, input pkt_t p, input qp_view_t q);
    return p.payload_len == 0 && p.pad == 2'd0 &&
           (c.read ? q.remote_read && p.dma_len <= 32'h8000_0000 :
                     q.remote_atomic && p.va[2:0] == 3'd0);
  endfunction

  function automatic answer_e answer(input pkt_t p, input class_t c, input rd_view_t v,
                                     input logic [12:0] mtu, input logic [31:0] rest);
    logic final_rsp, start, ok;
    start = p.psn == v.entry.base;
    final_rsp = p.psn == v.entry.last;
    if (c.ack) begin
      if (v.waiting && psn_ge(p.psn, v.psn) && !(p.syndrome[5] && p.psn == v.psn)) begin
        if (psn_ge(p.psn, v.max_psn)) return AnsGhost;
        return v.gap ? AnsSilent : AnsImplied;
      end
      return v.incomplete ? AnsOrdered : AnsDirect;
    end
    if (!v.waiting) return v.incomplete ? AnsDuplicate : AnsGhost;
    if (psn_gt(v.psn, p.psn)) return AnsDuplicate;
    if (psn_ge(p.psn, v.max_psn)) return AnsGhost;
    if (p.psn != v.psn) return v.gap ? AnsSilent : AnsImplied;
    // Asked for again, the rest begins with First or Only, but late originals are as good.
    unique case (p.opcode)
      OpRcReadRespFirst: ok = !final_rsp;
      OpRcReadRespMiddle: ok = !final_rsp && !start;
      OpRcReadRespLast: ok = final_rsp && !start;
      OpRcReadRespOnly: ok = final_rsp;
      default: ok = 1'b1;
    endcase
    ok = ok && c.at_rsp == v.entry.atomic;
    if (c.at_rsp) ok = ok && p.payload_len == '0 && p.pad == '0;
    if (c.rd_rsp) begin
      ok = ok && 2'(p.payload_len[1:0] + p.pad) == 2'd0 && p.payload_len <= mtu &&
           (final_rsp ? 32'(p.payload_len) == rest : p.payload_len == mtu);
    end
    return ok ? AnsTake : AnsBad;
  endfunction

  function automatic check_t check(input pkt_t p, input qp_view_t q, input mr_t mr,
                                   input rsp_state_t st, input rsp_done_t done,
                                   input rsp_slot_t left, input rd_view_t v);
    check_t k;
    class_t c;
    logic [12:0] mtu;
    logic [63:0] va;
    logic [31:0] len;
    logic seq_ok, len_ok, state_ok, start, rd;
    rsp_slot_t rd_open, rd_fresh;   // requests in the response queue; of these, not duplicates
    c = classify(p.opcode);
    mtu = mtu_bytes(q.path_mtu);
    rd = c.read || c.atomic;
    start = c.first || c.only || rd;
    state_ok = (q.state == QpRts || q.state == QpSqd || (q.state == QpRtr && !c.response)) &&
               !st.dead;

    k = '0;
    k.rc = q.qp_type == QpTypeRc;
    k.ud = q.qp_type == QpTypeUd;
    k.keep = k.ud || q.qp_type == QpTypeRaw;
    k.drop = 1'b1;
    if (p.none || q.state == QpNone || p.gsi != q.gsi ||
        (p.raw && q.qp_type != QpTypeRaw)) k.reason = p.late ? DropNoSlot : DropQpn;
    else if (c.cnp) k.reason = DropCnp;
    else if (!state_ok) k.reason = DropQpState;
    else if (!p.raw && !service_ok(q.qp_type, p.opcode[7:5])) k.reason = DropService;
    else if (!q.addr_ok) k.reason = DropAddress;
    else if (!q.pkey_ok) k.reason = DropPkey;
    else if (!q.qkey_ok) k.reason = DropQkey;
    else if (k.rc && c.ack && aeth_reserved(p.syndrome)) k.reason = DropReservedAeth;
    else if (k.rc && c.response && !c.ack && p.opcode != OpRcReadRespMiddle &&
             p.syndrome[7:5] != 3'b000) k.reason = DropReservedAeth;
    else if (k.keep ? !(c.send && c.only) :
             !(c.write || c.send || (k.rc && (c.response || rd)))) k.reason = DropUnsupported;
    else if (!k.rc && !start && !(st.in_msg && p.psn == st.epsn && c.send == st.in_send)) begin
      k.reason = DropOutOfSequence;
      k.lost = 1'b1;
    end else k.drop = 1'b0;

    k.off = 32'(24'(p.psn - v.entry.base)) << (4'd7 + 4'(q.path_mtu));
    k.rd_last = p.psn == v.entry.last;
    if (c.response && !k.drop) k.answer = answer(p, c, v, mtu, v.entry.len - k.off);
    k.mark = p.ce && !k.keep && (!k.drop || k.lost) && (c.write || c.send || (c.rd_rsp && k.answer != AnsGhost));
    k.duplicate = k.rc && (psn_gt(st.epsn, p.psn) || (p.psn ^ st.epsn) == 24'h800000);
    k.ahead = k.rc && psn_gt(p.psn, st.epsn);

    seq_ok = (c.write || c.send) &&
             (!k.rc || (start == !st.in_msg && (start || c.send == st.in_send)));
    len_ok = 2'(p.payload_len[1:0] + p.pad) == 2'd0 && p.payload_len <= (k.keep ? 13'd4096 : mtu);
    if (c.first || c.middle) len_ok = len_ok && p.payload_len == mtu;
    if (c.last) len_ok = len_ok && p.payload_len != 0;
    if (c.write) begin
      if (c.first) len_ok = len_ok && p.dma_len > 32'(mtu) && p.dma_len <= 32'h8000_0000;
      if (c.middle) len_ok = len_ok && st.remaining > 32'(mtu);
      if (c.last) len_ok = len_ok && st.remaining == 32'(p.payload_len);
      if (c.only) len_ok = len_ok && p.dma_len == 32'(p.payload_len);
    end
    k.op_ok = (q.remote_write || c.send) && seq_ok && len_ok;

    va = start ? p.va : st.va;
    len = c.atomic ? 32'd8 : start ? p.dma_len : st.remaining;
    k.iova = mr.iova + (va - mr.va);
    k.access_ok = !needs_mr(c, p.dma_len) ||
                  mr_check(mr, start ? p.rkey : st.rkey, q.pd, q.qpn, va, len,
                           c.atomic ? MrRemoteAtomic : c.read ? MrRemoteRead : MrRemoteWrite);

    k.psns = 24'd1;
    rd_open = st.rd.done - done.done;
    rd_fresh = st.rd.fresh - done.fresh;
    k.pending = st.rd.done != left;
    if (rd) begin
      if (c.read && p.dma_len != 0)
        k.psns = 24'((33'(p.dma_len) + 33'(mtu) - 33'd1) >> (4'd7 + 4'(q.path_mtu)));
      // the 8 bytes must lie in one beat of host memory too
      if (c.atomic && k.iova[2:0] != 3'd0) k.access_ok = 1'b0;
      k.op_ok = read_ok(c, p, q) && !st.in_msg && 8'(rd_fresh) < q.max_dest_rd_atomic &&
                32'(rd_fresh) < MaxDestRdAtomic;
      // behind it nothing may be that was not executed
      k.again = read_ok(c, p, q) && (c.atomic || k.access_ok) && k.psns <= st.epsn - p.psn &&
                rd_open - rd_fresh < rsp_slot_t'(NumDup);
    end
    k.recv = !k.drop && !c.response && !k.duplicate && !k.ahead && k.op_ok && k.access_ok &&
             (c.send || c.imm);
    k.rq_start = start || c.write;
    k.rq_last = ((c.last || c.only) && !k.keep) || c.response;
    return k;
  endfunction

  function automatic act_t act(input pkt_t p, input qp_view_t q, input check_t k,
                               input rsp_state_t st, input logic [7:0] coalesce,
                               input recv_e rv, input wqe_idx_t index, input piece_t piece,
                               input logic [2:0] sge, input logic [31:0] off,
                               input logic [31:0] total, input rd_view_t v, input logic [4:0] credits);
    act_t a;
    class_t c;
    logic start, ends, rd;
    logic [8:0] since;
    c = classify(p.opcode);
    rd = c.read || c.atomic;
    start = c.first || c.only;
    ends = c.last || c.only || rd;
    since = 9'(st.since_ack) + 9'd1;

    a = '0;
    a.st = st;
    a.reason = k.reason;
    a.wr.qp = p.qp;
    a.wr.iova = c.send || c.response ? piece.iova : k.iova;
    a.wr.len = (c.send && (p.payload_len != 0 || k.ud)) || c.response ? piece.len : p.payload_len;
    a.wr.cqe.cqn = q.recv_cqn;
    a.wr.cqe.index = index;
    a.wr.cqe.opcode = c.send ? rnic_regs_pkg::CqeOpcodeRecv : rnic_regs_pkg::CqeOpcodeRecvRdmaImm;
    a.wr.cqe.qp = p.qp;
    a.wr.cqe.src_qp = k.ud ? p.src_qp : k.keep ? 24'd0 : q.dest_qpn;
    a.wr.psn = p.psn;
    a.wr.msn = st.msn;
    a.wr.ack = k.rc;
    a.wr.silent = !k.rc;
    a.wr.syndrome = {3'd0, q.credits ? credits : CreditsInvalid};
    if (k.drop) begin
      a.has_drop = 1'b1;
      a.set_state = k.lost;
      a.st.in_msg = st.in_msg && !k.lost;
    end else if (c.response) begin
      a.wr.ack = 1'b0;
      a.wr.to_req = 1'b1;
      a.wr.syndrome = p.opcode == OpRcReadRespMiddle ? SynAck : p.syndrome;
      a.wr.credits = p.opcode != OpRcReadRespMiddle;
      a.rt = '{qp: p.qp, take: 1'b0, last: k.rd_last, psn: p.psn};
      unique case (k.answer)
        AnsDirect: a.fwd_ack = 1'b1;
        AnsOrdered: begin
          a.has_wr = 1'b1;
          a.wr.msn = p.msn;
        end
        AnsTake: begin
          a.has_wr = 1'b1;
          if (rv == RecvOk) begin
            a.wr.src = AckResponse;
            a.wr.has_payload = p.payload_len != 0 || c.at_rsp;
            a.wr.has_value = c.at_rsp;
            a.wr.value = p.compare;
            a.update = 1'b1;
            a.rt.take = 1'b1;
          end else begin
            a.wr.src = AckLocal;
            a.wr.fail = rnic_regs_pkg::WcStatusLocProtErr[3:0];
          end
        end
        AnsBad: begin
          a.has_wr = 1'b1;
          a.wr.src = AckLocal;
          a.wr.fail = rnic_regs_pkg::WcStatusBadRespErr[3:0];
        end
        AnsImplied: begin
          a.has_drop = !c.ack;
          a.reason = DropOutOfSequence;
          a.has_wr = 1'b1;
          a.wr.src = AckImplied;
          a.wr.psn = v.psn;
          a.wr.syndrome = SynNakSeq;
          a.wr.credits = 1'b0;
          a.update = 1'b1;
        end
        AnsSilent: begin
          a.has_drop = 1'b1;
          a.reason = DropOutOfSequence;
        end
        AnsDuplicate: begin
          a.has_drop = 1'b1;
          a.reason = DropDuplicate;
        end
        default: begin  // AnsGhost
          a.has_drop = 1'b1;
          a.reason = DropGhost;
        end
      endcase
    end else if (k.duplicate) begin
      a.has_drop = 1'b1;
      a.reason = DropDuplicate;
      if (rd) begin
        a.has_wr = k.again;
        a.wr.kind = c.read ? RxRead : RxAtomic;
        a.wr.ack = 1'b0;
        a.set_state = k.again;
        a.st.rd.done = st.rd.done + 1'b1;
      end else begin
        a.has_wr = 1'b1;
        a.wr.psn = st.epsn - 24'd1;
      end
    end else if (k.ahead) begin
      a.has_drop = 1'b1;
      a.reason = DropOutOfSequence;
      a.has_wr = !st.nak_sent;
      a.wr.psn = st.epsn;
      a.wr.syndrome = SynNakSeq;
      a.set_state = 1'b1;
      a.st.nak_sent = 1'b1;
    end else if (!k.rc && (!k.op_ok || !k.access_ok || rv == RecvNone)) begin
      a.rnr = k.op_ok && k.access_ok;
      a.has_drop = !a.rnr;
      a.reason = k.op_ok ? DropBadAccess : DropBadRequest;
      a.set_state = 1'b1;
      a.st.in_msg = 1'b0;
    end else if (!k.op_ok || !k.access_ok) begin
      a.has_drop = 1'b1;
      a.reason = k.op_ok ? DropNakAccess : DropNakInvReq;
      a.has_wr = 1'b1;
      a.wr.syndrome = k.op_ok ? SynNakAccess : SynNakInvReq;
      a.fatal = !k.pending;
      if (k.pending) a.wr.kind = RxError;
      a.set_state = 1'b1;
      a.st.dead = 1'b1;
      a.st.in_msg = 1'b0;
    end else if (rv == RecvNone) begin
      // the PSN is expected again; what follows until then is not answered (IBTA 9.7.5.2.8)
      a.has_wr = 1'b1;
      a.wr.syndrome = SynRnr | 8'(q.min_rnr_timer);
      a.rnr = 1'b1;
      a.set_state = 1'b1;
      a.st.nak_sent = 1'b1;
    end else if (rv == RecvGone) begin
      a.has_drop = 1'b1;
      a.reason = DropQpState;
    end else if (k.keep && rv == RecvLen) begin
      a.has_drop = 1'b1;
      a.reason = DropRecvLength;
    end else if (rv != RecvOk) begin
      a.has_drop = 1'b1;
      if (!k.rc) a.reason = DropRecvError;
      else a.reason = rv == RecvLen ? DropNakInvReq : rv == RecvInv ? DropNakAccess : DropNakOp;
      a.has_wr = 1'b1;
      a.wr.syndrome = rv == RecvLen ? SynNakInvReq : rv == RecvInv ? SynNakAccess : SynNakOp;
      a.wr.has_cqe = 1'b1;
      unique case (rv)
        RecvLen: a.wr.cqe.status = rnic_regs_pkg::WcStatusLocLenErr;
        RecvProt: a.wr.cqe.status = rnic_regs_pkg::WcStatusLocProtErr;
        RecvInv: a.wr.cqe.status = rnic_regs_pkg::WcStatusRemInvReqErr;
        default: a.wr.cqe.status = rnic_regs_pkg::WcStatusLocQpOpErr;
      endcase
      a.fatal = !k.pending;
      if (k.pending) a.wr.kind = RxError;
      a.set_state = 1'b1;
      a.st.dead = 1'b1;
      a.st.in_msg = 1'b0;
    end else begin
      a.has_wr = 1'b1;
      a.wr.has_payload = p.payload_len != 0 || k.ud;
      a.wr.cqe.with_grh = k.ud;
      a.wr.has_cqe = ends && (c.send || c.imm);
      a.wr.cqe.byte_len = total;
      a.wr.cqe.imm = c.imm ? swap32(p.imm) : c.inv ? p.rkey : 32'd0;
      a.wr.cqe.with_imm = c.imm;
      a.wr.cqe.with_inv = c.inv;
      a.wr.cqe.solicited = p.solicited;
      a.wr.last = ends;
      a.wr.ack = k.rc && (p.ack_req || (coalesce != 0 && since >= 9'(coalesce)));
      if (rd) begin  // the response says what an acknowledge would
        a.wr.kind = c.read ? RxRead : RxAtomic;
        a.wr.ack = 1'b0;
        a.read = c.read;
        a.atomic = c.atomic;
        a.st.rd.done = st.rd.done + 1'b1;
        a.st.rd.fresh = st.rd.fresh + 1'b1;
      end
      a.set_state = 1'b1;
      a.st.nak_sent = 1'b0;
      a.st.epsn = p.psn + k.psns;
      a.st.in_msg = !ends;
      a.st.in_send = c.send;
      if (ends) begin
        a.st.msn = st.msn + 24'd1;
        a.wr.msn = st.msn + 24'd1;
      end
      if (a.wr.ack || rd) a.st.since_ack = 8'd0;
      else if (!since[8]) a.st.since_ack = since[7:0];
      if (start) a.st.rkey = p.rkey;
      a.st.va = c.send ? 64'(off) : (start ? p.va : st.va) + 64'(p.payload_len);
      a.st.remaining = (start ? p.dma_len : st.remaining) - 32'(p.payload_len);
      a.st.total = total;
      a.st.sge = sge;
    end
    a.tell = q.credits && a.has_wr && !a.wr.to_req && (a.wr.ack || a.wr.kind inside {RxRead, RxAtomic}) &&
             a.wr.syndrome[7:5] == 3'd0;
    return a;
  endfunction

  // verilator lint_on UNUSEDSIGNAL

  // ---- registers --------------------------------------------------------------------------------
  state_e     state_q;
  pkt_t       p_q;
  rsp_state_t st_q;
  qp_view_t   q_q;
  mr_t        mr_q;
  check_t     k_q;
  // verilator lint_off UNUSEDSIGNAL
  qp_admin_t  adm_q;                 // notify is for the requester
  // verilator lint_on UNUSEDSIGNAL
  logic       rt_req_q;
  logic       mr_req_q;              // request not taken yet
  logic       mr_wait_q;             // answer outstanding
  logic       ahead_ok_q;            // the RAM's output is the state of the packet at the input
  rsp_state_t st_in;                 // responder state of the packet at the input
  // QP attributes of the packet at the input: asked for, there, not to be used
  logic       pre_wait_q, pre_ok_q, pre_stale_q;
  qp_idx_t    pre_qp_q;
  qp_view_t   pre_q;
  logic       pre_have, drain_q, drain_rise;

  // receive WQE of the packet
  recv_e        recv_q;
  logic         close_q;             // the request is to close the WQE after an error
  logic         commit_q;            // to close the WQE of a packet that fits (UD, raw packets)
  logic         grh_q;               // the GRH is being placed
  wqe_idx_t     index_q;
  logic [2:0]   sge_q;               // SGE that the next byte goes to
  logic [31:0]  off_q;               // and where in it
  logic [12:0]  left_q;              // bytes of the payload not yet placed
  logic [12:0]  run_q;               // of these, into this SGE
  logic [31:0]  total_q;             // bytes of the message with this packet
  logic [2:0]   num_q;               // pieces
  logic         pieces_q;            // the first of several is out, and the payload's command
  piece_t [MaxSge:0] piece_q;        // the next one to hand out at 0; one border more on UD: GRH and payload
  rq_sge_t      sge;
  logic [31:0]  sge_room;
  // verilator lint_off UNUSEDSIGNAL
  class_t       c_in, c_p;           // of the packets at the input and inside; some bits are used
  // verilator lint_on UNUSEDSIGNAL
  logic         start_p, start_in;

  logic       pcmd_v_q, grh_v_q, wr_v_q, ackrx_v_q, err_v_q;
  logic [7:0] streamed_q;            // payloads told to stream
  rx_grh_t    grh_out_q;
  payload_cmd_e pcmd_q;
  rx_write_t  wr_q;
  rx_read_t   rd_q;
  ack_rx_t    ackrx_q;
  qp_idx_t    err_q;
  logic       err_access_q;

  // ---- responder state RAM ----------------------------------------------------------------------
  logic       wb_q;                  // write-back of wb_st_q
  qp_idx_t    wb_idx_q;
  rsp_state_t wb_st_q, ram_st;
  logic       ctx_re, ctx_we;
  logic       ram_re, adm_fire, update;  // update: an acknowledge is to be repeated
  logic [7:0] head_opcode;
  assign adm_fire = adm_valid_i && adm_ready_o;
  assign update = flush_valid_i && flush_ready_o && flush_i.credits;
  assign ram_re = adm_fire || update || (meta_valid_i && !ahead_ok_q && !wb_q && state_q != StAct &&
                              !(state_q inside {StAdmin, StAdminRq, StAdminWait}));

  rnic_ram #(.Width($bits(rsp_state_t)), .Depth(NumQp)) u_state (
    .clk_i,
    .we_i(wb_q || ctx_we), .waddr_i(wb_q ? wb_idx_q : ctx_qp_i), .wdata_i(wb_q ? wb_st_q : ctx_i),
    .re_i(ram_re || ctx_re), .raddr_i(adm_fire ? adm_i.qp : update ? flush_i.qp : ram_re ? meta_qp_i : ctx_qp_i), .rdata_o(ram_st)
  );
  // in the gaps: the look-ahead is repeated when the RAM was read meanwhile
  assign ctx_ready_o = ctx_load_i ? !wb_q : !ram_re && !(state_q inside {StAdmin, StCredits});
  assign ctx_we = ctx_valid_i && ctx_load_i && ctx_ready_o;
  assign ctx_re = ctx_valid_i && !ctx_load_i && ctx_ready_o;
  assign ctx_o = ram_st;

  // ---- control ----------------------------------------------------------------------------------
  logic outs_free, act_go, launch, launch_mr, sge_go, sge_none, sge_here, pcmd_fire;
  assign pcmd_fire = pcmd_valid_o && pcmd_ready_i;
  assign outs_free = (!pcmd_v_q || pcmd_fire) && (!grh_v_q || grh_ready_i) && (!wr_v_q || wr_ready_i) &&
                     (!ackrx_v_q || ackrx_ready_i) && (!err_v_q || qp_err_ready_i);
  assign act_go = state_q == StAct && outs_free;
  assign drain_rise = drain_i && !drain_q;
  assign pre_have = pre_ok_q && pre_qp_q == meta_qp_i && !drain_rise;
  assign launch = meta_valid_i && ahead_ok_q && !pre_wait_q && (pre_have || meta_none_i) &&
                  !adm_valid_i && !flush_valid_i && !sq_flush_valid_i && !bar_valid_i && (state_q == StIdle || act_go);
  assign launch_mr = launch && !meta_none_i && needs_mr(c_in, meta_i.dma_len);

  assign meta_ready_o = launch;
  assign adm_ready_o = state_q == StIdle && !wb_q;
  // not before the GRH: it must be there when the payload comes
  assign pcmd_valid_o = pcmd_v_q && !grh_v_q;
  assign grh_valid_o = grh_v_q;
  assign grh_o = grh_out_q;
  assign pcmd_o = pcmd_q;
  assign wr_valid_o = wr_v_q;
  assign wr_o = wr_q;
  assign rd_o = rd_q;
  assign rd_qp_o = state_q == StAdmin ? adm_q.qp : p_q.qp;
  assign ackrx_valid_o = ackrx_v_q;
  assign ackrx_o = ackrx_q;
  assign qp_err_valid_o = err_v_q;
  assign qp_err_idx_o = err_q;
  assign qp_err_access_o = err_access_q;
  assign qp_req_valid_o = meta_valid_i && !meta_none_i && !pre_wait_q && !pre_have;
  assign qp_req_idx_o = meta_qp_i;
  // asked for when the report of the packet before has arrived, there when the QP's attributes are
  assign rt_re_o = rt_req_q;
  assign rt_qp_o = p_q.qp;
  assign mr_req_valid_o = launch_mr || sge_here || mr_req_q;
  always_comb begin
    if (launch_mr) mr_req_idx_o = mr_key_idx(start_in ? meta_i.rkey : st_in.rkey);
    else if (sge_go || state_q == StMr) mr_req_idx_o = mr_key_idx(sge.lkey);
    else mr_req_idx_o = mr_key_idx(start_p ? p_q.rkey : st_q.rkey);
  end
  // a frame that is not RoCEv2 is like a datagram
  assign head_opcode = meta_i.raw ? OpUdSendOnly : meta_i.opcode;
  assign c_in = classify(head_opcode);
  assign c_p = classify(p_q.opcode);
  assign start_p = c_p.first || c_p.only || c_p.read || c_p.atomic;
  assign start_in = c_in.first || c_in.only || c_in.read || c_in.atomic;
  assign rq_req_valid_o = state_q == StRq;
  assign rq_req_o = '{
    qp: p_q.qp, has_srq: q_q.has_srq, srqn: q_q.srqn,
    start: k_q.rq_start && !close_q && !commit_q,
    last: k_q.rq_last || close_q || commit_q
  };
  assign sge = c_p.response ? rt_view_i.entry.sge[sge_q[1:0]] : rq_rsp_i.sge[sge_q[1:0]];
  assign sge_room = sge.length - off_q;
  // the next part of the payload is placed: as soon as the WQE is there
  assign sge_go = state_q == StSge ||
                  (state_q == StRqWait && rq_rsp_valid_i && rq_rsp_i.status == RqOk && !commit_q && !close_q &&
                   c_p.send && (p_q.payload_len != 0 || k_q.ud));
  assign sge_none = !c_p.response && (sge_q == rq_rsp_i.num_sge || total_q > 32'h8000_0000);
  assign sge_here = sge_go && !sge_none && off_q < sge.length;
  logic between;   // packets
  assign between = state_q == StIdle && !adm_valid_i && (!wr_v_q || wr_ready_i);
  // the state read for a repeated acknowledge must not be on its way to the RAM
  assign flush_ready_o = between && !(flush_i.credits && wb_q);
  assign sq_flush_ready_o = between && !flush_valid_i;
  assign bar_ready_o = sq_flush_ready_o && !sq_flush_valid_i;
  assign cr_qp_o = state_q == StCredits ? adm_q.qp : p_q.qp;
  assign chg_valid_o = state_q == StInv;
  always_comb begin
    chg_o = '0;
    if (state_q == StInv) begin
      chg_o.op = MrInvalidateRemote;
      chg_o.qpn = q_q.qpn;
      chg_o.pd = q_q.pd;
      chg_o.key = p_q.rkey;
    end
  end
  assign rq_adm_valid_o = state_q == StAdminRq;
  assign rq_adm_init_o = adm_q.op == QpStateReset;
  assign rq_adm_qp_o = adm_q.qp;
  assign idle_o = state_q == StIdle && !pcmd_v_q && !grh_v_q && !wr_v_q && !ackrx_v_q && !err_v_q;

  act_t a;  // of the packet in StAct
  assign cr_tell_o = (act_go && a.tell) || (state_q == StCredits && !ram_st.dead);
  always_comb begin
    a = '0;
    if (state_q == StAct) begin
      a = act(p_q, q_q, k_q, st_q, coalesce_i, recv_q, index_q, piece_q[0], sge_q, off_q, total_q,
              rt_view_i, cr_code_i);
    end
  end
  // read ahead before the packet in StAct changed it: take the new state of the same QP
  assign st_in = state_q == StAct && a.set_state && p_q.qp == meta_qp_i ? a.st : ram_st;
  assign rt_update_valid_o = act_go && a.update;
  assign rt_update_o = a.rt;

  check_t k;  // of the packet in StCheck
  always_comb begin
    k = '0;
    if (state_q == StCheck) k = check(p_q, q_q, mr_q, st_q, rd_done_i, rd_left_i, rt_view_i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      rt_req_q <= 1'b0;
      mr_req_q <= 1'b0;
      mr_wait_q <= 1'b0;
      pre_wait_q <= 1'b0;
      pre_ok_q <= 1'b0;
      pre_stale_q <= 1'b0;
      ahead_ok_q <= 1'b0;
      wb_q <= 1'b0;
      pcmd_v_q <= 1'b0;
      grh_v_q <= 1'b0;
      streamed_q <= '0;
      wr_v_q <= 1'b0;
      ackrx_v_q <= 1'b0;
      err_v_q <= 1'b0;
      adm_rsp_valid_o <= 1'b0;
      ev_drop_valid_o <= 1'b0;
      ev_rnr_o <= 1'b0;
      ev_credit_update_o <= 1'b0;
      ev_read_o <= 1'b0;
      ev_atomic_o <= 1'b0;
      ev_implied_o <= 1'b0;
      ev_dup_rsp_o <= 1'b0;
      ev_ghost_rsp_o <= 1'b0;
      mark_valid_o <= 1'b0;
    end else begin
      rt_req_q <= 1'b0;
      ev_implied_o <= 1'b0;
      ev_dup_rsp_o <= 1'b0;
      ev_ghost_rsp_o <= 1'b0;
      mark_valid_o <= 1'b0;
      wb_q <= 1'b0;
      adm_rsp_valid_o <= 1'b0;
      ev_drop_valid_o <= 1'b0;
      ev_rnr_o <= 1'b0;
      ev_credit_update_o <= 1'b0;
      ev_read_o <= 1'b0;
      ev_atomic_o <= 1'b0;
      if (pcmd_fire) pcmd_v_q <= 1'b0;
      if (grh_ready_i) grh_v_q <= 1'b0;
      if (wr_ready_i) wr_v_q <= 1'b0;
      if (ackrx_ready_i) ackrx_v_q <= 1'b0;
      if (qp_err_ready_i) err_v_q <= 1'b0;
      if (mr_req_ready_i) mr_req_q <= 1'b0;
      if (qp_req_valid_o && qp_req_ready_i) pre_wait_q <= 1'b1;
      else if (qp_rsp_valid_i) pre_wait_q <= 1'b0;
      if (pre_wait_q && qp_rsp_valid_i) pre_ok_q <= !pre_stale_q && !drain_rise;
      else if (launch || drain_rise) pre_ok_q <= 1'b0;
      pre_stale_q <= pre_wait_q && !qp_rsp_valid_i && (pre_stale_q || drain_rise);
      if (ram_re || ctx_re) ahead_ok_q <= !adm_fire && !update && !ctx_re;

      unique case (state_q)
        StIdle: begin
          if (adm_fire) begin
            adm_q <= adm_i;
            state_q <= StAdmin;
          end else if (update) begin
            adm_q.qp <= flush_i.qp;
            state_q <= StCredits;
          end else if (flush_valid_i && flush_ready_o) begin
            wr_v_q <= 1'b1;
            wr_q <= '0;
            wr_q.qp <= flush_i.qp;
            wr_q.has_cqe <= 1'b1;
            wr_q.cqe.last_wqe <= flush_i.last_wqe;
            wr_q.cqe.cqn <= flush_i.cqn;
            wr_q.cqe.qp <= flush_i.qp;
            wr_q.cqe.index <= flush_i.index;
            wr_q.cqe.opcode <= rnic_regs_pkg::CqeOpcodeRecv;
            wr_q.cqe.status <= rnic_regs_pkg::WcStatusWrFlushErr;
          end else if (sq_flush_valid_i && sq_flush_ready_o) begin
            wr_v_q <= 1'b1;
            wr_q <= '0;
            wr_q.qp <= sq_flush_idx_i;
            wr_q.flush <= 1'b1;
          end else if (bar_valid_i && bar_ready_o) begin
            wr_v_q <= 1'b1;
            wr_q <= '0;
            wr_q.barrier <= 1'b1;
          end
        end

        StLookup: begin
          if (mr_wait_q && mr_rsp_valid_i) begin
            mr_wait_q <= 1'b0;
            mr_q <= mr_rsp_i;
          end
          if (!mr_wait_q || mr_rsp_valid_i) state_q <= StCheck;
        end

        StCheck: begin
          k_q <= k;
          recv_q <= RecvOk;
          close_q <= 1'b0;
          commit_q <= 1'b0;
          grh_q <= k.ud;
          num_q <= '0;
          pieces_q <= 1'b0;
          sge_q <= start_p || c_p.response ? 3'd0 : st_q.sge;
          off_q <= c_p.at_rsp ? 32'd0 : c_p.response ? k.off : start_p ? 32'd0 : st_q.va[31:0];
          left_q <= k.ud ? 13'(GrhBytes) : c_p.at_rsp ? 13'd8 : p_q.payload_len;
          total_q <= k.ud ? 32'(p_q.payload_len) + GrhBytes : c_p.send ? (start_p ? 32'd0 : st_q.total) + 32'(p_q.payload_len) :
                                start_p ? p_q.dma_len : st_q.total;
          if (k.answer == AnsTake && (p_q.payload_len != 0 || c_p.at_rsp)) state_q <= StSge;
          else state_q <= k.recv ? StRq : StAct;
        end

        StRq: if (rq_req_ready_i) state_q <= StRqWait;

        StRqWait: if (rq_rsp_valid_i) begin
          state_q <= StAct;
          if (rq_rsp_i.status == RqGone) recv_q <= RecvGone;
          else if (rq_rsp_i.status == RqNone) recv_q <= RecvNone;
          else if (commit_q) state_q <= num_q == 3'd1 ? StAct : StPieces;
          else if (!close_q) begin
            index_q <= rq_rsp_i.index;
            if (rq_rsp_i.status == RqBad) begin
              recv_q <= RecvWqe;
              close_q <= 1'b1;
              if (!k_q.rq_last) state_q <= StRq;
            end else if (c_p.inv) begin  // a SEND with payload: sge_go
              state_q <= StInv;
            end
          end
        end

        StSge: ;  // below

        StMr: if (mr_rsp_valid_i) begin
          mr_wait_q <= 1'b0;
          mr_q <= mr_rsp_i;
          state_q <= StMrCheck;
        end

        StMrCheck: begin
          if (!mr_check(mr_q, sge.lkey, c_p.response ? q_q.pd : q_q.recv_pd, '0,
                        sge.addr + 64'(off_q), 32'(run_q), MrLocalWrite)) begin
            recv_q <= RecvProt;
            close_q <= 1'b1;
            state_q <= k_q.rq_last ? StAct : StRq;
          end else begin
            piece_q[num_q] <= '{
              iova: mr_q.iova + (sge.addr + 64'(off_q) - mr_q.va), len: run_q
            };
            num_q <= num_q + 3'd1;
            off_q <= off_q + 32'(run_q);
            left_q <= left_q - run_q;
            if (left_q != run_q) begin
              state_q <= StSge;
            end else if (grh_q && p_q.payload_len != 0) begin
              grh_q <= 1'b0;
              left_q <= p_q.payload_len;
              state_q <= StSge;
            end else if (k_q.keep) begin
              commit_q <= 1'b1;
              state_q <= StRq;
            end else if (c_p.inv) begin
              state_q <= StInv;
            end else begin
              state_q <= num_q == 3'd0 ? StAct : StPieces;
            end
          end
        end

        // before a byte is handed out: a message with a wrong key has no effect at its end
        StInv: if (chg_ready_i) state_q <= StInvWait;

        StInvWait: if (chg_rsp_valid_i) begin
          if (chg_rsp_i != MrDone) recv_q <= RecvInv;
          state_q <= chg_rsp_i == MrDone && num_q > 3'd1 ? StPieces : StAct;
        end

        // the payload goes with the first piece: the writer does not take all of them before it
        StPieces: if ((!wr_v_q || wr_ready_i) &&
                      (pieces_q || ((!pcmd_v_q || pcmd_fire) && (!grh_v_q || grh_ready_i)))) begin
          pieces_q <= 1'b1;
          if (!pieces_q) begin
            pcmd_v_q <= p_q.payload_len != 0;
            pcmd_q <= PayloadStream;
            if (p_q.payload_len != 0) streamed_q <= streamed_q + 8'd1;
            grh_v_q <= k_q.ud;
            grh_out_q <= '{seq: streamed_q, data: grh(p_q)};
          end
          wr_v_q <= 1'b1;
          wr_q <= '0;
          wr_q.qp <= p_q.qp;
          wr_q.has_payload <= 1'b1;
          wr_q.more <= 1'b1;
          wr_q.iova <= piece_q[0].iova;
          wr_q.len <= piece_q[0].len;
          piece_q <= {piece_q[MaxSge], piece_q[MaxSge:1]};
          num_q <= num_q - 3'd1;
          if (num_q == 3'd2) state_q <= StAct;
        end

        StAct: begin
          if (outs_free) begin
            state_q <= StIdle;
            ahead_ok_q <= 1'b0;
            if (p_q.payload_len != 0 && !pieces_q) begin
              pcmd_v_q <= 1'b1;
              pcmd_q <= a.has_wr && a.wr.has_payload ? PayloadStream : PayloadDrop;
              if (a.has_wr && a.wr.has_payload) streamed_q <= streamed_q + 8'd1;
            end
            if (a.has_wr && a.wr.has_payload && k_q.ud && !pieces_q) begin
              grh_v_q <= 1'b1;
              grh_out_q <= '{seq: streamed_q, data: grh(p_q)};
            end
            if (a.has_wr) begin
              wr_v_q <= 1'b1;
              wr_q <= a.wr;
              if (a.wr.kind != RxData) begin
                rd_q <= '{
                  slot: st_q.rd.done,
                  dup: k_q.duplicate,
                  fetch_add: p_q.opcode == OpRcFetchAdd,
                  va: p_q.va,
                  rkey: p_q.rkey,
                  len: p_q.dma_len,
                  swap_add: p_q.swap_add,
                  compare: p_q.compare
                };
              end
            end
            if (a.fwd_ack) begin
              ackrx_v_q <= 1'b1;
              ackrx_q <= '{
                qp: p_q.qp, psn: p_q.psn, msn: p_q.msn, syndrome: p_q.syndrome, own: 1'b0, credits: 1'b1,
                src: AckPacket, fail: '0
              };
            end
            if (a.fatal) begin
              err_v_q <= 1'b1;
              err_q <= p_q.qp;
              err_access_q <= a.wr.syndrome == SynNakAccess;
            end
            if (a.set_state) begin
              wb_q <= 1'b1;
              wb_idx_q <= p_q.qp;
              wb_st_q <= a.st;
            end
            ev_rnr_o <= a.rnr;
            ev_read_o <= a.read;
            ev_atomic_o <= a.atomic;
            ev_implied_o <= k_q.answer == AnsImplied;
            ev_dup_rsp_o <= k_q.answer == AnsDuplicate;
            ev_ghost_rsp_o <= k_q.answer == AnsGhost && !c_p.ack;
            mark_valid_o <= k_q.mark;
            mark_qpn_o <= q_q.qpn;
            mark_prio_o <= p_q.prio;
            if (a.has_drop) begin
              ev_drop_valid_o <= 1'b1;
              ev_drop_o <= a.reason;
            end
          end
        end

        StCredits: begin
          state_q <= StIdle;
          if (!ram_st.dead) begin
            wr_v_q <= 1'b1;
            wr_q <= '0;
            wr_q.qp <= adm_q.qp;
            wr_q.ack <= 1'b1;
            wr_q.psn <= ram_st.epsn - 24'd1;
            wr_q.msn <= ram_st.msn;
            wr_q.syndrome <= {3'd0, cr_code_i};
            ev_credit_update_o <= 1'b1;
          end
        end

        StAdmin: begin
          adm_rsp_o.expected_psn <= adm_q.op == QpStateQuery ? ram_st.epsn : adm_q.psn;
          adm_rsp_o.msn <= adm_q.op == QpStateQuery ? ram_st.msn : 24'd0;
          if (adm_q.op == QpStateQuery) begin
            state_q <= StAdminRq;
          end else if (rd_done_valid_i && (!wr_v_q || wr_ready_i)) begin
            // the writer forgets the errors of the QP's former connection
            wr_v_q <= 1'b1;
            wr_q <= '0;
            wr_q.qp <= adm_q.qp;
            wr_q.init <= 1'b1;
            wb_q <= 1'b1;
            wb_idx_q <= adm_q.qp;
            wb_st_q <= '0;
            wb_st_q.epsn <= adm_q.psn;
            wb_st_q.rd <= rd_done_i;  // its response queue is empty
            state_q <= StAdminRq;
          end
        end

        StAdminRq: if (rq_adm_ready_i) state_q <= StAdminWait;

        default: begin  // StAdminWait
          if (rq_adm_rsp_valid_i) begin
            adm_rsp_valid_o <= 1'b1;
            adm_rsp_o.rq <= rq_adm_rsp_i;
            state_q <= StIdle;
          end
        end
      endcase

      if (sge_go) begin
        run_q <= sge_room < 32'(left_q) ? sge_room[12:0] : left_q;
        if (sge_none) begin
          recv_q <= RecvLen;
          close_q <= !k_q.keep;
          state_q <= k_q.rq_last || k_q.keep ? StAct : StRq;
        end else if (!sge_here) begin
          sge_q <= sge_q + 3'd1;
          off_q <= off_q - sge.length;
          state_q <= StSge;
        end else begin
          mr_req_q <= !mr_req_ready_i;
          mr_wait_q <= 1'b1;
          state_q <= StMr;
        end
      end

      if (launch) begin
        state_q <= launch_mr || c_in.response ? StLookup : StCheck;
        q_q <= pre_q;
        ahead_ok_q <= 1'b0;
        p_q <= '{
          none: meta_none_i,
          late: meta_late_i,
          gsi: meta_i.dest_qp == QpnGsi && !meta_i.raw,
          raw: meta_i.raw,
          ce: meta_i.ecn == 2'b11 && !meta_i.raw,
          prio: meta_i.prio,
          qp: meta_qp_i,
          opcode: head_opcode,
          pad: meta_i.raw ? -meta_i.payload_len[1:0] : meta_i.pad,
          solicited: meta_i.solicited && !meta_i.raw,
          ack_req: meta_i.ack_req,
          pkey: meta_i.pkey,
          psn: meta_i.psn,
          va: meta_i.va,
          rkey: meta_i.rkey,
          dma_len: meta_i.dma_len,
          imm: meta_i.imm,
          syndrome: meta_i.syndrome,
          msn: meta_i.msn,
          ipv6: meta_i.ipv6,
          sip: meta_i.sip,
          dip: meta_i.dip,
          payload_len: meta_i.payload_len,
          src_qp: meta_i.src_qp,
          qkey: meta_i.qkey,
          ip_head: meta_i.ip_head,
          swap_add: meta_i.swap_add,
          compare: meta_i.compare
        };
        rt_req_q <= c_in.response;
        st_q <= st_in;
        mr_req_q <= launch_mr && !mr_req_ready_i;
        mr_wait_q <= launch_mr;
      end
    end
    if (qp_req_valid_o) pre_qp_q <= meta_qp_i;
    if (qp_rsp_valid_i) begin
      pre_q <= '{
        state: qp_rsp_i.state,
        qp_type: qp_rsp_i.qp_type,
        path_mtu: qp_rsp_i.path_mtu,
        remote_write: qp_rsp_i.remote_write,
        remote_read: qp_rsp_i.remote_read,
        remote_atomic: qp_rsp_i.remote_atomic,
        max_dest_rd_atomic: qp_rsp_i.max_dest_rd_atomic,
        pd: qp_rsp_i.pd,
        recv_pd: qp_rsp_i.has_srq ? qp_rsp_i.rq_addr[23:0] : qp_rsp_i.pd,
        dest_qpn: qp_rsp_i.dest_qpn,
        recv_cqn: qp_rsp_i.recv_cqn,
        has_srq: qp_rsp_i.has_srq,
        srqn: qp_rsp_i.srqn,
        credits: qp_rsp_i.flow_control && qp_rsp_i.qp_type == QpTypeRc && !qp_rsp_i.has_srq,
        min_rnr_timer: qp_rsp_i.min_rnr_timer,
        addr_ok: qp_rsp_i.qp_type inside {QpTypeUd, QpTypeRaw} ||
                 (meta_i.sip == qp_rsp_i.dgid && meta_i.dip == qp_rsp_i.sgid &&
                  meta_i.ipv6 == qp_rsp_i.ipv6),
        pkey_ok: meta_i.raw || pkey_match(meta_i.pkey, qp_rsp_i.pkey),
        qkey_ok: qp_rsp_i.qp_type != QpTypeUd || meta_i.qkey == qp_rsp_i.qkey,
        gsi: qp_rsp_i.gsi,
        qpn: qp_rsp_i.qpn
      };
    end
  end

  // ---- what is under way of a QP ----------------------------------------------------------------
  assign busy_o = (state_q inside {StCredits, StAdmin, StAdminRq, StAdminWait} ? adm_q.qp == probe_qp_i :
                   state_q != StIdle && !p_q.none && p_q.qp == probe_qp_i) ||
                  (wb_q && wb_idx_q == probe_qp_i) || (wr_v_q && wr_q.qp == probe_qp_i) ||
                  (ackrx_v_q && ackrx_q.qp == probe_qp_i) || (err_v_q && err_q == probe_qp_i);

  // ---- drain ------------------------------------------------------------------------------------
  // One mark on the packet inside and on each output register that was full at the rise; the marks
  // of the packet move on to the outputs that it fills.
  logic       mark_pkt_q;
  logic [4:0] mark_out_q, out_v, out_rdy, out_load;
  assign out_v = {grh_v_q, pcmd_v_q, wr_v_q, ackrx_v_q, err_v_q};
  assign out_rdy = {grh_ready_i, pcmd_fire, wr_ready_i, ackrx_ready_i, qp_err_ready_i};
  assign out_load = {a.has_wr && a.wr.has_payload && k_q.ud && !pieces_q, p_q.payload_len != 0 && !pieces_q,
                     a.has_wr, a.fwd_ack, a.fatal};
  assign drain_done_o = drain_i && drain_q && !mark_pkt_q && mark_out_q == 5'd0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= 1'b0;
      mark_pkt_q <= 1'b0;
      mark_out_q <= 5'd0;
    end else begin
      drain_q <= drain_i;
      if (drain_i && !drain_q) begin
        mark_pkt_q <= !(state_q inside {StIdle, StCredits, StAdmin, StAdminRq, StAdminWait}) && !act_go;
        mark_out_q <= (out_v & ~out_rdy) | (act_go ? out_load : 5'd0);
      end else begin
        if (act_go) mark_pkt_q <= 1'b0;
        mark_out_q <= (mark_out_q & ~out_rdy) | (act_go && mark_pkt_q ? out_load : 5'd0);
      end
    end
  end

endmodule
