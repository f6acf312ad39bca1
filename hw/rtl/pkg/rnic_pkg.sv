// SPDX-License-Identifier: Apache-2.0
//
// Sizes, types and shared functions of the NIC: the contracts between its blocks.
// docs/architecture.md tells how a packet walks through the modules that speak these types.

package rnic_pkg;

  // ---- sizes ---------------------------------------------------------------------------------
`ifndef RNIC_NUM_QP
`define RNIC_NUM_QP 256
`endif
  localparam int unsigned NumQp = `RNIC_NUM_QP;  // slots: QPs with their state on chip; a power of two
  localparam int unsigned CqIdxW = 16;           // CQNs are below 2^CqIdxW; host memory is the limit
  localparam int unsigned CqLogSets = 6;         // of the cache of CQs
  localparam int unsigned CqLogWays = 2;
  localparam int unsigned LogMaxMr = 24;         // all that a key can name; host memory is the limit
  localparam int unsigned MrLogSets = 8;         // of the cache of memory regions
  localparam int unsigned MrLogWays = 2;
  localparam int unsigned SrqIdxW = 16;          // SRQNs are below 2^SrqIdxW; host memory is the limit
  localparam int unsigned SrqLogSets = 4;        // of the cache of SRQs
  localparam int unsigned SrqLogWays = 2;
  localparam int unsigned SrqLogPlaces = 6;      // SRQs with WQEs on chip
  localparam int unsigned NumEq = 32;
  localparam int unsigned NumVec = 4;            // interrupt vectors
  localparam int unsigned QpIdxW = $clog2(NumQp);
  localparam int unsigned QpLogWays = 2;         // of the QP cache; at least 2: a received packet waits for a slot beside the pin of a command
  localparam int unsigned QpnW = 16;             // QPNs are below 2^QpnW
  localparam int unsigned EqIdxW = $clog2(NumEq);
  localparam int unsigned VecW = $clog2(NumVec);
  localparam logic [7:0] NoEq = 8'hff;           // EQN of a CQ without events
  localparam int unsigned NumAh = 1024;
  localparam int unsigned AhIdxW = $clog2(NumAh);
  localparam int unsigned MinRaw = 14;           // bytes of a frame of the raw packet QP
  localparam int unsigned MaxRaw = 4096;
  localparam int unsigned GrhBytes = 40;         // in front of a received UD payload
  localparam int unsigned FirstQpn = 2;          // QP0 and QP1 (SMI, GSI) are never ordinary QPs
  localparam logic [23:0] QpnGsi = 24'd1;
  localparam int unsigned MaxSge = 4;
  localparam int unsigned LogMaxQueue = 15;
  localparam int unsigned MaxFrame = 9216;       // bytes without FCS
  localparam int unsigned PktBufBytes = 65536;   // RX packet buffer
  localparam int unsigned LogInflight = 7;       // messages in flight per QP
  localparam int unsigned MaxDestRdAtomic = 8;   // READs and atomics of a peer at a time, per QP
  localparam int unsigned LogRspSlots = 4;       // response queue of a QP: these, 7 duplicates, an error
  localparam int unsigned LogMaxRd = 3;          // READs and atomics outstanding per QP
  localparam int unsigned MaxRdAtomic = 1 << LogMaxRd;
  localparam int unsigned AxiIdW = 4;
  localparam int unsigned BurstBeats = 64;       // longest AXI burst; bursts never cross 4 KiB

  typedef logic [QpIdxW-1:0] qp_idx_t;
  typedef logic [QpnW-1:0] qpn_t;
  typedef logic [CqIdxW-1:0] cq_idx_t;
  typedef logic [23:0] cq_ptr_t;   // free-running index of a CQE
  typedef logic [LogMaxMr-1:0] mr_idx_t;
  typedef logic [EqIdxW-1:0] eq_idx_t;
  typedef logic [VecW-1:0] vec_t;
  typedef logic [AhIdxW-1:0] ah_idx_t;
  typedef logic [SrqIdxW-1:0] srq_idx_t;
  typedef logic [23:0] psn_t;
  typedef logic [15:0] wqe_idx_t;  // free-running producer index

  // AXI IDs, one per client: a client's transfers stay in order, clients may overtake each other.
  typedef enum logic [AxiIdW-1:0] {
    RdIdCmd = 4'd0,
    RdIdWqe = 4'd1,
    RdIdPayload = 4'd2,
    RdIdRq = 4'd3,
    RdIdAtomic = 4'd4,
    RdIdMr = 4'd5,
    RdIdQp = 4'd6,
    RdIdCq = 4'd7,
    RdIdSrq = 4'd8,
    RdIdSrqWqe = 4'd9
  } rd_id_e;
  typedef enum logic [AxiIdW-1:0] {
    WrIdPayload = 4'd0,
    WrIdCqe = 4'd1,
    WrIdRsp = 4'd2,
    WrIdEqe = 4'd3,
    WrIdAtomic = 4'd4,
    WrIdMr = 4'd5,
    WrIdQp = 4'd6,
    WrIdCq = 4'd7,
    WrIdSrq = 4'd8
  } wr_id_e;
  localparam int unsigned NumRdClients = 10;
  localparam int unsigned NumWrClients = 9;

  typedef logic [3:0] db_page_t;  // doorbell page

  // A copy of a send WQE that came with its doorbell (wqe_push). Whoever has it uses it, passes it on, or gives its place up.
  localparam int unsigned NumCopy = 512;
  typedef logic [$clog2(NumCopy)-1:0] copy_idx_t;
  typedef struct packed {
    logic      valid;
    logic      long_wqe;   // 128 bytes
    copy_idx_t at;
  } wqe_copy_t;

  // ---- PSN arithmetic, modulo 2^24 (IBTA 9.7.1) ----------------------------------------------
  // Distance from b to a, signed: positive when a is after b. The one compare of the design.
  function automatic logic signed [23:0] psn_diff(input psn_t a, input psn_t b);
    return signed'(a - b);
  endfunction
  function automatic logic psn_ge(input psn_t a, input psn_t b);
    return psn_diff(a, b) >= 0;
  endfunction
  function automatic logic psn_gt(input psn_t a, input psn_t b);
    return psn_diff(a, b) > 0;
  endfunction

  // path MTU code (1..5) -> bytes
  function automatic logic [12:0] mtu_bytes(input logic [2:0] code);
    return 13'd128 << code;
  endfunction

  // ---- wire constants ------------------------------------------------------------------------
  localparam logic [15:0] EthIpv4 = 16'h0800;
  localparam logic [15:0] EthIpv6 = 16'h86dd;
  localparam logic [15:0] EthVlan = 16'h8100;
  localparam logic [15:0] EthQinq = 16'h88a8;
  localparam logic [15:0] RoceUdpPort = 16'd4791;

  // BTH opcodes (IBTA table 38)
  localparam logic [7:0] OpRcSendFirst = 8'h00;
  localparam logic [7:0] OpRcSendMiddle = 8'h01;
  localparam logic [7:0] OpRcSendLast = 8'h02;
  localparam logic [7:0] OpRcSendLastImm = 8'h03;
  localparam logic [7:0] OpRcSendOnly = 8'h04;
  localparam logic [7:0] OpRcSendOnlyImm = 8'h05;
  localparam logic [7:0] OpRcSendLastInv = 8'h16;
  localparam logic [7:0] OpRcSendOnlyInv = 8'h17;
  localparam logic [7:0] OpRcWriteFirst = 8'h06;
  localparam logic [7:0] OpRcWriteMiddle = 8'h07;
  localparam logic [7:0] OpRcWriteLast = 8'h08;
  localparam logic [7:0] OpRcWriteLastImm = 8'h09;
  localparam logic [7:0] OpRcWriteOnly = 8'h0a;
  localparam logic [7:0] OpRcWriteOnlyImm = 8'h0b;
  localparam logic [7:0] OpRcReadRequest = 8'h0c;
  localparam logic [7:0] OpRcReadRespFirst = 8'h0d;
  localparam logic [7:0] OpRcReadRespMiddle = 8'h0e;
  localparam logic [7:0] OpRcReadRespLast = 8'h0f;
  localparam logic [7:0] OpRcReadRespOnly = 8'h10;
  localparam logic [7:0] OpRcAck = 8'h11;
  localparam logic [7:0] OpRcAtomicAck = 8'h12;
  localparam logic [7:0] OpUdSendOnly = 8'h64;
  localparam logic [7:0] OpRcCmpSwap = 8'h13;
  localparam logic [7:0] OpRcFetchAdd = 8'h14;
  localparam logic [7:0] OpCnp = 8'h81;

  localparam logic [7:0] SynAck = 8'h1f;      // without credits
  localparam logic [7:0] SynRnr = 8'h20;      // timer code in 4:0
  localparam logic [7:0] SynNakSeq = 8'h60;
  localparam logic [7:0] SynNakInvReq = 8'h61;
  localparam logic [7:0] SynNakAccess = 8'h62;
  localparam logic [7:0] SynNakOp = 8'h63;

  // Credit counts of an AETH (IBTA 9.7.7.2): 0, 1, 2, 3, 4, 6, 8, 12 .. 32768 are codes 0 to 30.
  localparam logic [4:0] CreditsInvalid = 5'd31;
  // the largest code whose count is not above n
  function automatic logic [4:0] credit_code(input logic [15:0] n);
    logic [4:0] code;
    code = {4'd0, n[0]};
    for (int unsigned i = 1; i < 16; i++) if (n[i]) code = {4'(i), n[i-1]};
    return code;
  endfunction
  function automatic logic [15:0] credit_count(input logic [4:0] code);
    if (code < 5'd2) return 16'(code);
    return {14'd0, 1'b1, code[0]} << (code[4:1] - 4'd1);
  endfunction

  // QP states (qp_state of hw/regs/layouts.yaml, 3 bits)
  typedef enum logic [2:0] {
    QpReset = 3'd0,
    QpInit = 3'd1,
    QpRtr = 3'd2,
    QpRts = 3'd3,
    QpSqd = 3'd4,
    QpSqe = 3'd5,
    QpErr = 3'd6,
    QpNone = 3'd7
  } qp_state_e;

  // numbers of enum ibv_qp_type
  localparam logic [3:0] QpTypeRc = 4'd2;
  localparam logic [3:0] QpTypeUc = 4'd3;
  localparam logic [3:0] QpTypeUd = 4'd4;
  localparam logic [3:0] QpTypeRaw = 4'd8;  // Ethernet frames

  // ---- QP attributes: written by the command processor, read by everyone ----------------------
  typedef struct packed {
    qp_state_e    state;
    logic [3:0]   qp_type;
    logic [2:0]   path_mtu;
    logic         remote_write;
    logic         remote_read;
    logic         remote_atomic;
    logic         sq_stride128;
    logic         rq_stride128;
    logic         has_srq;    // receives from the shared receive queue srqn, not from its own
    srq_idx_t     srqn;
    logic         ipv6;
    logic         vlan;
    logic [23:0]  pd;
    logic [23:0]  dest_qpn;
    cq_idx_t      send_cqn;
    cq_idx_t      recv_cqn;
    logic [15:0]  pkey;
    logic [63:0]  sq_addr;
    logic [3:0]   log_sq_size;
    logic [15:0]  udp_sport;
    logic [47:0]  dmac;       // first byte on the wire in [7:0]
    logic [15:0]  vlan_tci;   // number (PCP in [15:13])
    logic [7:0]   hop_limit;
    logic [7:0]   traffic_class;
    logic [19:0]  flow_label;
    logic [127:0] sgid;       // byte 0 in [7:0]
    logic [127:0] dgid;
    // kept for query and for the transport
    psn_t         sq_psn;
    psn_t         rq_psn;
    logic [63:0]  rq_addr;    // with has_srq: PD of the SRQ
    logic [3:0]   log_rq_size;
    logic [4:0]   timeout;
    logic [2:0]   retry_cnt;
    logic [2:0]   rnr_retry;
    logic [4:0]   min_rnr_timer;
    logic [7:0]   max_rd_atomic;
    logic [7:0]   max_dest_rd_atomic;
    logic [31:0]  qkey;
    logic         gsi;        // QP1 on the wire
    logic         flow_control;  // RC: credits in acknowledges, ours and the peer's (IBTA 9.7.7.2)
    qpn_t         qpn;        // its own number
  } qp_attr_t;

  // ---- address handles -----------------------------------------------------------------------
  typedef struct packed {
    logic         valid;
    logic [23:0]  pd;
    logic         ipv6;
    logic         vlan;
    logic [15:0]  udp_sport;
    logic [47:0]  dmac;
    logic [15:0]  vlan_tci;
    logic [7:0]   hop_limit;
    logic [7:0]   traffic_class;
    logic [19:0]  flow_label;
    logic [127:0] sgid;
    logic [127:0] dgid;
  } ah_t;

  // ---- contexts in host memory, cached on chip (lib/ctx_cache) ---------------------------------
  typedef struct packed {
    logic        on;            // the driver has given memory
    logic [63:6] base;          // 64 bytes per context
    logic [4:0]  log_num;       // contexts, log2
  } ctx_mem_t;
  typedef struct packed {       // counters: pulses; stall: level
    logic        hit;
    logic        miss;
    logic        evict;
    logic        writeback;
    logic        stall;
    logic        rd_err;        // host memory refused a read, a write-back
    logic        wr_err;
  } ctx_ev_t;

  // ---- QPN -> slot (qp/qp_cache) ---------------------------------------------------------------
  typedef enum logic [1:0] {
    QpcOk,
    QpcNone,                    // no such QP
    QpcRefused,                 // host memory did not give its context
    QpcExists                   // to be made, but it is there
  } qpc_status_e;

  // ---- memory regions and memory windows (type 2B) -------------------------------------------
  typedef struct packed {
    logic        exists;
    logic        valid;         // may be accessed; else it was invalidated, or is a window that is not bound
    logic        mw;            // a window
    logic        mw_bind;       // windows may be bound to it
    logic        remote_inv;    // a peer may invalidate it (a window: always)
    qpn_t        qpn;           // window: bound to this QP
    mr_idx_t     parent;        // window: of this MR
    logic [7:0]  variant;
    logic [23:0] pd;
    logic        local_write;
    logic        remote_write;
    logic        remote_read;
    logic        remote_atomic;
    logic [63:0] va;
    logic [63:0] length;
    logic [63:0] iova;
  } mr_t;

  typedef enum logic [2:0] {
    MrLocalRead,
    MrLocalWrite,
    MrRemoteWrite,
    MrRemoteRead,
    MrRemoteAtomic
  } mr_need_e;

  // 1 when [va, va+len) of the key lies in the MR, PD and right fit, and QP of a window. len 0 is not passed here:
  // zero-length accesses are not checked (IBTA 9.7.4.1.4 and Linux rxe agree).
  // Functions look at part of their arguments.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic mr_check(input mr_t mr, input logic [31:0] key, input logic [23:0] pd,
                                    input qpn_t qpn, input logic [63:0] va, input logic [31:0] len,
                                    input mr_need_e need);
    logic [63:0] off;
    logic right;
    off = va - mr.va;
    unique case (need)
      MrLocalRead: right = !mr.mw;
      MrLocalWrite: right = !mr.mw && mr.local_write;
      MrRemoteWrite: right = mr.remote_write;
      MrRemoteRead: right = mr.remote_read;
      default: right = mr.remote_atomic;
    endcase
    return mr.valid && (!mr.mw || mr.qpn == qpn) && mr.variant == key[7:0] && mr.pd == pd &&
           right && va >= mr.va && off < mr.length && 64'(len) <= mr.length - off;
  endfunction
  function automatic mr_idx_t mr_key_idx(input logic [31:0] key);
    return key[8+:LogMaxMr];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Commands of the command processor.
  typedef enum logic [1:0] {
    MrCmdRead,
    MrCmdWrite,
    MrCmdPurge      // the windows of a QP become free
  } mr_cmd_e;
  // What work requests and peers change.
  typedef enum logic [1:0] {
    MrInvalidate,
    MrInvalidateRemote,
    MrBind
  } mr_change_op_e;
  typedef struct packed {
    mr_change_op_e op;
    qpn_t          qpn;
    logic [23:0]   pd;
    logic [31:0]   key;         // bind: of the window, with its new variant
    logic [31:0]   lkey;        // bind: of the MR, and what the window covers of it
    logic [63:0]   addr;
    logic [31:0]   length;
    logic          remote_write;
    logic          remote_read;
    logic          remote_atomic;
    logic          zero_based;  // the window begins at address 0
  } mr_change_t;
  typedef enum logic [1:0] {
    MrDone,
    MrBadKey,                   // no such key, PD or QP, or not to be invalidated
    MrNotBound                  // bind: refused; invalidate: windows are bound to the MR
  } mr_result_e;

  // ---- priority of a frame ---------------------------------------------------------------------
  typedef struct packed {
    logic       trust_dscp;     // of an IP packet the upper 3 bits of its DSCP; else the PCP of a tagged frame
    logic [2:0] default_prio;   // of every other frame
  } prio_map_t;

  // ---- between the receive front end and the transport -----------------------------------------
  typedef struct packed {
    logic [7:0]   opcode;
    logic [1:0]   pad;
    logic         solicited;
    logic         ack_req;
    logic         fecn;
    logic         becn;
    logic [1:0]   ecn;
    logic [2:0]   prio;         // of the frame (prio_map_t)
    logic [15:0]  pkey;
    logic [23:0]  dest_qp;
    psn_t         psn;
    logic [63:0]  va;
    logic [31:0]  rkey;
    logic [31:0]  dma_len;
    logic [31:0]  imm;
    logic [7:0]   syndrome;
    logic [23:0]  msn;
    logic [23:0]  src_qp;
    logic [31:0]  qkey;
    logic [63:0]  swap_add;
    logic [63:0]  compare;
    logic         ipv6;
    logic [127:0] sip;
    logic [127:0] dip;
    logic [12:0]  payload_len;  // without pad; > 4096 is saturated to 8191
    logic [15:0]  payload_off;
    logic         raw;          // not RoCEv2: payload is the whole frame, nothing else counts
    logic [95:0]  ip_head;      // the IP header in front of the addresses: 12 bytes of IPv4, 8 of IPv6
  } rx_meta_t;

  // What becomes of the payload of the packet whose metadata was popped last.
  typedef enum logic {
    PayloadDrop,
    PayloadStream
  } payload_cmd_e;

  // ---- transport -> payload stream: 40 bytes to go in front of a payload (UD) -------------------
  typedef struct packed {
    logic [7:0]            seq;   // payloads streamed before this packet, modulo 256
    logic [8*GrhBytes-1:0] data;  // byte 0 in [7:0]
  } rx_grh_t;

  // ---- completions ------------------------------------------------------------------------------------
  typedef struct packed {
    cq_idx_t     cqn;
    wqe_idx_t    index;
    logic [7:0]  opcode;
    logic [7:0]  status;
    qp_idx_t     qp;
    logic [7:0]  syndrome;
    logic [31:0] byte_len;
    logic [31:0] imm;
    logic [23:0] src_qp;
    logic        with_imm;
    logic        with_inv;
    logic        with_grh;
    logic        solicited;   // of a receive: the sender asked for an event
    logic        last_wqe;    // no CQE: the event last WQE reached of the QP, behind its CQEs
    logic        drained;     // with last_wqe: the event send queue drained instead
  } cqe_ev_t;

  // ---- events -------------------------------------------------------------------------------------
  // An armed CQ has completions: to the EQ that it names.
  typedef struct packed {
    eq_idx_t     eqn;
    cq_idx_t     cqn;
  } comp_ev_t;
  // A CQE on its way to memory, and events behind it or by themselves (cq_events).
  typedef struct packed {
    logic        cqe;
    logic        comp;        // completion event
    logic        overrun;     // event: the CQ takes no more
    logic        fatal;       // likewise: host memory refused its context
    logic        last;        // event of a QP: last WQE reached, or send queue drained
    logic        drained;
    eq_idx_t     eqn;
    cq_idx_t     cqn;
    qpn_t        qpn;
  } cq_flight_t;
  // Everything else: to EQ 0. Sources join at event_arb.
  typedef struct packed {
    logic [7:0]  ev_type;     // eqe_type
    logic [31:0] object;
    logic [31:0] detail;
  } async_ev_t;
  // Why a QP went to ERR
  typedef enum logic [1:0] {
    QpErrCmd,      // by command
    QpErrFatal,    // by itself
    QpErrAccess    // by itself, after a remote access violation
  } qp_err_e;

  // ---- receive queues -> responder: the WQE that a message goes to ------------------------------
  typedef struct packed {
    qp_idx_t     qp;
    logic        has_srq;       // of the QP
    srq_idx_t    srqn;
    logic        start;         // take the next WQE; else the one that a start without last took
    logic        last;          // nothing more comes for this WQE
  } rq_req_t;
  typedef enum logic [1:0] {
    RqOk,
    RqNone,                     // nothing is posted
    RqGone,                     // the QP is in ERR (the WQE was flushed) or being reset
    RqBad                       // a WQE was taken, but it is malformed or could not be read
  } rq_status_e;
  typedef struct packed {       // as in memory
    logic [31:0] lkey;
    logic [31:0] length;
    logic [63:0] addr;
  } rq_sge_t;
  typedef struct packed {
    rq_status_e          status;
    wqe_idx_t            index;    // of an SRQ: the WQE's tag
    logic [2:0]          num_sge;
    rq_sge_t [MaxSge-1:0] sge;
  } rq_rsp_t;
  // What is kept of a QP (docs/qp-cache.md), and a WQE as it is held on chip.
  typedef struct packed {
    logic        srq;           // to be loaded: the QP has an SRQ
    logic        open;          // a WQE belongs to a message under way
    logic        failed;        // seen in ERR: WQEs are only flushed
    logic        told;          // last WQE reached was told
    logic        none;          // the peer was told that there are no credits
    wqe_idx_t    pi;
    wqe_idx_t    ci;
  } rq_keep_t;
  typedef struct packed {
    logic        bad;
    logic [2:0]  num_sge;
    rq_sge_t [MaxSge-1:0] sge;
  } rq_entry_t;
  // A WQE of an SRQ is known by its tag, because its place in the ring may be posted again before it is done.
  localparam logic [15:0] NoTag = 16'hffff;  // of a WQE that is malformed or could not be read
  typedef struct packed {
    wqe_idx_t    tag;
    rq_entry_t   e;
  } srq_entry_t;
  typedef struct packed {       // srq_cache -> rq_cache
    rq_status_e  status;        // RqOk (also of a bad one) or RqNone
    srq_entry_t  wqe;
  } srq_rsp_t;
  // a receive WQE that was flushed
  typedef struct packed {
    logic        credits;       // no WQE: one was posted to a QP whose peer knows of none
    logic        last_wqe;      // no WQE: a QP in ERR has done with its SRQ
    qp_idx_t     qp;
    cq_idx_t     cqn;
    wqe_idx_t    index;
  } rq_flush_t;
  typedef struct packed {
    logic        open;          // a WQE belongs to a message under way
    wqe_idx_t    pi;
    wqe_idx_t    ci;
  } rq_query_t;

  // ---- what an acknowledge for our requester comes from ------------------------------------------
  typedef enum logic [1:0] {
    AckPacket,                  // ACK, NAK or RNR NAK
    AckResponse,                // READ response or ATOMIC ACK that was taken
    AckImplied,                 // something behind a response that did not come: NAK of that one
    AckLocal                    // a response that cannot be used: its WQE fails with `fail`
  } ack_src_e;

  // ---- responder -> payload writer: one per packet that has an effect, in order -----------------
  typedef enum logic [1:0] {
    RxData,                     // SEND, RDMA WRITE and all that leads to an acknowledge only
    RxRead,
    RxAtomic,
    RxError                     // the QP goes to ERR when the responses before this have left
  } rx_kind_e;
  typedef logic [LogRspSlots:0] rsp_slot_t;  // free-running place in the response queue of a QP
  typedef struct packed {
    rx_kind_e    kind;
    qp_idx_t     qp;
    logic        has_payload;   // stream `len` bytes to `iova`
    logic [63:0] iova;
    logic [12:0] len;
    logic        more;          // the packet's payload goes on with the next one of these
    logic        ack;           // acknowledge when the write has finished
    logic        last;          // ends a message (counted as rx_write_requests or rx_send_requests)
    logic        barrier;       // no packet: tell the requester when all before it is written
    logic        flush;         // no packet: the requester flushes this QP when all before it is written
    logic        init;          // no packet: a new connection, the writer forgets errors of this QP
    logic        silent;        // unreliable service: a failed write is not answered by a NAK
    psn_t        psn;
    logic [23:0] msn;
    logic [7:0]  syndrome;
    logic        has_cqe;       // complete a receive WQE when the write has finished, before the ACK
    cqe_ev_t     cqe;
    logic        to_req;        // not an acknowledge to send but one for our requester, in order
    logic        credits;       // to_req: `syndrome` came with the packet, and tells credits if it is an ACK
    ack_src_e    src;
    logic [3:0]  fail;
    logic        has_value;     // the payload is `value` (8 bytes, low byte first), not the stream
    logic [63:0] value;
  } rx_write_t;

  // READ and atomic requests (and RxError: slot only), beside the above.
  typedef struct packed {
    rsp_slot_t   slot;
    logic        dup;           // executed before: it is answered again
    logic        fetch_add;     // FetchAdd, else CmpSwap
    logic [63:0] va;            // READ
    logic [31:0] rkey;
    logic [31:0] len;
    logic [63:0] swap_add;      // atomic, on the 8 bytes at rx_write_t.iova
    logic [63:0] compare;
  } rx_read_t;

  // ---- payload writer -> atomic unit ---------------------------------------------------------------
  typedef struct packed {
    logic        fetch_add;
    logic [63:0] iova;          // multiple of 8
    logic [63:0] swap_add;
    logic [63:0] compare;
  } atomic_t;

  // ---- payload writer -> read responder: in the order of the requests --------------------------------
  typedef enum logic [1:0] {
    RspInit,                    // a new connection: nothing of the old one is remembered; takes no slot
    RspRead,
    RspAtomic,
    RspError                    // ask for the QP's ERR state
  } rsp_kind_e;
  typedef struct packed {
    rsp_kind_e   kind;
    qp_idx_t     qp;
    rsp_slot_t   slot;
    logic        dup;
    logic        access;        // RspError: after a remote access violation
    psn_t        psn;
    logic [23:0] msn;
    logic [4:0]  credits;       // credit code of the response's AETH
    logic [63:0] va;            // atomic: the original value (dup: unknown)
    logic [31:0] rkey;
    logic [31:0] len;
  } rsp_job_t;

  // How far the response queue of a QP has come (free-running).
  typedef struct packed {
    rsp_slot_t   done;          // requests that have left the queue
    rsp_slot_t   fresh;         // of these, first executions
  } rsp_done_t;

  // What is kept of it while the queue is empty, and of each of the last atomics (docs/qp-cache.md).
  typedef struct packed {
    rsp_done_t   done;
    logic [3:0]  kept;          // values of atomics: counts to 15, then 8 to 15 again
    logic        dead;          // a NAK ended the connection
  } rsp_keep_t;
  typedef struct packed {
    psn_t        psn;
    logic [63:0] value;
  } rsp_value_t;

  // Responder state of one QP.
  typedef struct packed {
    logic        dead;        // a fatal NAK was sent: nothing more until the next connection
    logic        nak_sent;    // NAK sequence error sent, expected PSN not seen since
    logic        in_msg;      // First seen, Last not yet
    logic        in_send;     // of a SEND
    logic [7:0]  since_ack;   // request packets executed since the last acknowledge
    psn_t        epsn;        // expected PSN
    logic [23:0] msn;         // messages completed
    logic [31:0] rkey;        // of the message under way
    logic [63:0] va;          // where its next byte goes; SEND: offset in the SGE
    logic [31:0] remaining;   // bytes still to come
    logic [31:0] total;       // bytes of the message; SEND: bytes so far
    logic [2:0]  sge;         // SEND: where its next byte goes
    rsp_done_t   rd;          // requests ever put into the response queue; of these, not duplicates
  } rsp_state_t;

  // ---- acknowledges to send --------------------------------------------------------------------
  typedef struct packed {
    qp_idx_t     qp;
    psn_t        psn;
    logic [23:0] msn;
    logic [7:0]  syndrome;
  } ack_t;

  // ---- acknowledges: transport (from the peer) or egress (packets that need none) -> completion engine ----
  typedef struct packed {
    qp_idx_t     qp;
    psn_t        psn;
    logic [23:0] msn;
    logic [7:0]  syndrome;
    logic        own;           // nobody acknowledged: the packets have been sent (UC)
    logic        credits;       // if it is an ACK, its syndrome tells credits
    ack_src_e    src;
    logic [3:0]  fail;          // wc_status, with AckLocal
  } ack_rx_t;

  // ---- READs and atomics whose responses are awaited: requester -> transport ----------------------
  typedef struct packed {
    psn_t                 base;    // PSN of its first response
    psn_t                 last;
    logic [31:0]          len;     // bytes
    logic                 atomic;
    rq_sge_t [MaxSge-1:0] sge;     // where they go
  } rd_entry_t;
  typedef struct packed {
    logic        incomplete;    // some are not completed
    logic        waiting;       // responses are awaited, the next one is that of `psn`
    logic        gap;           // the requester was told to ask for it again
    psn_t        psn;
    psn_t        max_psn;       // behind the newest PSN sent
    rd_entry_t   entry;         // that it belongs to
  } rd_view_t;
  typedef struct packed {
    qp_idx_t     qp;
    logic        take;          // the response of `psn` was taken; else: the requester asks for it again
    logic        last;          // it was the last one of its entry
    psn_t        psn;
  } rd_update_t;

  // ---- requester -> egress: one per packet --------------------------------------------------------
  typedef struct packed {
    qp_idx_t     qp;
    wqe_idx_t    wqe;
    logic [7:0]  opcode;
    psn_t        psn;
    logic        ack_req;
    logic        report;        // tell the requester when it was sent: nobody will acknowledge it
    logic        solicited;
    logic        has_reth;
    logic        has_imm;
    logic        has_ieth;      // key to invalidate in imm
    logic        raw;           // a whole frame: no headers, no ICRC
    logic        has_deth;      // UD: Q_Key in rkey, destination QP in va[23:0], address handle above it
    logic        has_aeth;      // syndrome and MSN in imm
    logic        has_value;     // AtomicAckETH: original value in va
    logic        response;      // READ response or ATOMIC ACK; imm is syndrome and MSN, also without AETH
    logic        has_atomic;    // AtomicETH: va, rkey, swap_add, compare
    logic        inl;           // payload comes from the WQE (inline data)
    logic [63:0] va;
    logic [31:0] rkey;
    logic [31:0] dma_len;
    logic [31:0] imm;
    logic [63:0] swap_add;
    logic [63:0] compare;
    logic [12:0] len;           // payload bytes without pad
  } tx_pkt_t;

  // ---- requester -> payload reader: fragments of the packets above, in order ------------------------
  typedef struct packed {
    logic [63:0] iova;
    logic [12:0] len;           // 1 to 4096
    logic        last;          // last fragment of its packet
  } tx_frag_t;

  // A packet could not be sent: host memory answered a payload read with an error.
  typedef struct packed {
    qp_idx_t     qp;
    logic        response;     // of the responder's, else of the requester's
    wqe_idx_t    wqe;
    psn_t        psn;
    logic [23:0] msn;          // of a response
  } tx_err_t;

  // ---- command processor -> owners of per-QP state (responder, requester) -----------------------------
  typedef enum logic [2:0] {
    QpStateInit,   // set everything for a new connection; psn = first PSN
    QpStateQuery,
    QpStateReset,  // responder: like Init, at create and RESET; the receive queue is emptied too
    QpStateDrain,  // requester: begin no message any more
    QpStateResume  // requester: go on
  } qp_admin_e;
  typedef struct packed {
    qp_admin_e op;
    qp_idx_t   qp;
    psn_t      psn;
    logic      notify;       // QpStateDrain: tell when all that was begun is complete
  } qp_admin_t;
  typedef struct packed {
    psn_t        expected_psn;
    logic [23:0] msn;
    rq_query_t   rq;
  } rsp_query_t;
  typedef struct packed {
    psn_t     next_psn;
    psn_t     una_psn;
    wqe_idx_t pi;
    wqe_idx_t next;
    wqe_idx_t ci;
    logic     draining;      // QpStateDrain, and something that was begun is not complete
  } req_query_t;

  // ---- command processor -> tables ------------------------------------------------------------------------
  typedef enum logic [1:0] {
    QpCmdRead,
    QpCmdWrite,    // attributes and state, if the QP is in the state given
    QpCmdState     // the state, whatever it was
  } qp_cmd_e;
  typedef enum logic [1:0] {
    CqCmdQuery,
    CqCmdCreate,
    CqCmdDestroy,
    CqCmdModify    // moderation
  } cq_cmd_e;
  typedef enum logic [1:0] {
    EqCmdQuery,
    EqCmdCreate,
    EqCmdDestroy
  } eq_cmd_e;
  typedef struct packed {
    logic        any;          // at the next CQE
    logic        solicited;    // at the next solicited or failed one
  } cq_arm_t;
  typedef struct packed {
    logic [15:0] count;        // CQEs that make an event; 0: no bound
    logic [15:0] period;       // microseconds after the first of them; 0: no moderation
  } cq_mod_t;
  typedef enum logic [1:0] {
    SrqCmdQuery,
    SrqCmdCreate,
    SrqCmdLimit,
    SrqCmdDestroy
  } srq_cmd_e;
  typedef struct packed {
    logic [63:6] addr;
    logic [3:0]  log_size;
    logic        stride128;
    logic [23:0] pd;
  } srq_attr_t;
  typedef struct packed {
    logic        exists;
    logic        dead;        // host memory refused its context: no message gets a WQE of it
    srq_attr_t   attr;
    logic [15:0] limit;       // 0: not armed
    wqe_idx_t    pi;
    wqe_idx_t    ci;
  } srq_ctx_t;
  typedef struct packed {
    logic        exists;
    logic        overrun;
    logic [3:0]  log_size;
    logic [7:0]  eqn;
    logic [63:0] addr;
    logic [23:0] pi;
    logic [23:0] ci;
    cq_arm_t     arm;
    cq_mod_t     moderation;
  } cq_ctx_t;
  typedef struct packed {
    logic        exists;
    logic        overrun;
    logic        armed;
    logic [3:0]  log_size;
    vec_t        irq_vec;
    logic [63:0] addr;
    logic [23:0] pi;
    logic [23:0] ci;
  } eq_ctx_t;

endpackage
