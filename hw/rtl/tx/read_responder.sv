// SPDX-License-Identifier: Apache-2.0
//
// Answers RDMA READ and atomic requests (IBTA 9.7.5.1, 9.7.7.3, 9.4.4, 9.4.5).
//
// Requests come in the order of their PSNs, behind all earlier writes, into the response queue of their QP. QPs
// with work take turns; in a turn up to TurnPackets packets of one request (at most TurnBytes) are cut by the
// path MTU: the QP's attributes and, for READs, the MR are looked up at every turn, so that
// the memory of a region that was destroyed, or of a QP that may not answer any more, is left alone from the next turn on.
// A region that no longer covers the request gives a NAK remote access error, payload that could not be read
// (err_i) a NAK remote operational error; both end the connection: the QP is asked into ERR, and nothing of
// its queue is answered until RspInit.
//
// The values that atomics returned are kept, the newest CacheSlots of each QP; a duplicate atomic is answered from
// them, or not at all. done_o tells the transport how far a QP's queue has come; hold_o tells the acknowledge queue that
// responses of a QP, which an acknowledge must not overtake, have not left yet: a response has left when the egress has
// taken its packet (nothing stores packets between here and there).
//
// Context of a slot (docs/qp-cache.md): ctx_* reads or, with ctx_load_i, writes it in one cycle, or (ctx_word_i) the value of one atomic, while busy_o
// is 0 for it; ctx_o and ctx_value_o come one cycle later. Its queue is empty then, so three numbers are one.
//
// Throughput: a turn per 5 cycles, a packet with its fragment per cycle. Latency: from a request to its first packet 7
// cycles with ports that answer in one. Back-pressure: pkt and frag are single registers; a request is taken unless
// the queue's memory is busy with the end of a turn, or a duplicate atomic is looked for (up to 10 cycles).

module read_responder
  import rnic_pkg::*;
#(
  parameter int unsigned TurnPackets = 4,
  parameter int unsigned TurnBytes = 4096
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  // requests
  input  logic        job_valid_i,
  output logic        job_ready_o,
  input  rsp_job_t    job_i,
  // progress, for the transport; not known while done_valid_o is 0 (256 cycles behind reset)
  input  qp_idx_t     done_qp_i,
  output logic        done_valid_o,
  output rsp_done_t   done_o,
  output rsp_slot_t   done_left_o,   // responses of requests before this have left
  // responses to leave: for the acknowledge queue, and for failed writes
  input  qp_idx_t [1:0] hold_qp_i,
  output logic [1:0]    hold_o,
  // QP attributes, MRs
  output logic        qp_req_valid_o,
  input  logic        qp_req_ready_i,
  output qp_idx_t     qp_req_idx_o,
  input  logic        qp_rsp_valid_i,
  // verilator lint_off UNUSEDSIGNAL
  input  qp_attr_t    qp_rsp_i,      // state, PD and MTU
  // verilator lint_on UNUSEDSIGNAL
  output logic        mr_req_valid_o,
  input  logic        mr_req_ready_i,
  output mr_idx_t     mr_req_idx_o,
  input  logic        mr_rsp_valid_i,
  input  mr_t         mr_rsp_i,
  // packets
  output logic        pkt_valid_o,
  input  logic        pkt_ready_i,
  output tx_pkt_t     pkt_o,
  output logic        frag_valid_o,
  input  logic        frag_ready_i,
  output tx_frag_t    frag_o,
  // responses whose payload failed
  input  logic        err_valid_i,
  output logic        err_ready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  tx_err_t     err_i,         // of a response
  // verilator lint_on UNUSEDSIGNAL
  // refusals
  output logic        nak_valid_o,
  input  logic        nak_ready_i,
  output ack_t        nak_o,
  output logic        qp_err_valid_o,
  input  logic        qp_err_ready_i,
  output qp_idx_t     qp_err_idx_o,
  output logic        qp_err_access_o,   // after a remote access violation
  output logic        ev_nak_access_o,
  output logic        ev_nak_op_o,
  // contexts
  input  qp_idx_t     probe_qp_i,
  output logic        busy_o,        // something of probe_qp_i is under way
  input  logic        ctx_valid_i,
  output logic        ctx_ready_o,
  input  logic        ctx_load_i,
  input  logic        ctx_word_i,
  input  qp_idx_t     ctx_qp_i,
  input  rsp_keep_t   ctx_i,
  output rsp_keep_t   ctx_o,
  input  logic [2:0]  ctx_at_i,      // number of the value
  input  rsp_value_t  ctx_value_i,
  output rsp_value_t  ctx_value_o,
  output logic        idle_o,
  input  logic        drain_i,
  output logic        drain_done_o
);

  localparam int unsigned NumSlots = 1 << LogRspSlots;
  localparam int unsigned CacheSlots = 8;
  localparam int unsigned CacheW = $clog2(CacheSlots);

  // A request in the queue; a READ under way stands there as what is left of it.
  typedef struct packed {
    rsp_kind_e   kind;
    logic        nothing;    // a duplicate that is not remembered: leaves without an answer
    logic        fresh;      // not a duplicate
    logic        begun;      // its First has been made
    logic        access;     // RspError: after a remote access violation
    psn_t        psn;
    logic [23:0] msn;
    logic [4:0]  credits;
    logic [63:0] va;
    logic [31:0] rkey;
    logic [31:0] len;
  } item_t;

  // ---- per-QP pointers, cleared after reset -----------------------------------------------------
  logic [QpIdxW:0] clear_q;          // QP to clear; done when its top bit is set
  logic            clearing;
  rsp_slot_t       tail[NumQp];      // behind the newest request
  rsp_done_t       head[NumQp];      // oldest request (done), and how many of those before it were first executions
  rsp_slot_t       left[NumQp];      // responses of requests before this have left
  logic [3:0]      kept[NumQp];      // atomics remembered: counts to 15, then 8 to 15 again
  logic [NumQp-1:0] listed_q;        // has requests and stands in the list, or has its turn
  logic [NumQp-1:0] dead_q;          // a NAK ended the connection

  assign clearing = !clear_q[QpIdxW];
  assign done_valid_o = !clearing;
  assign done_o = head[done_qp_i];
  assign done_left_o = left[done_qp_i];
  for (genvar i = 0; i < 2; i++) begin : gen_hold
    assign hold_o[i] = tail[hold_qp_i[i]] != left[hold_qp_i[i]];
  end

  // ---- turns: control signals -------------------------------------------------------------------
  typedef enum logic [2:0] {
    WaitWork,
    WaitItem,      // memory of the queue
    WaitLookup,    // QP and MR
    WaitPlan,
    WaitSend,      // the packet cutter
    WaitFlush,     // what was made before has left
    WaitRefuse     // NAK, or only the QP error
  } turn_e;
  turn_e       turn_q;
  qp_idx_t     qp_q;
  logic        write_back, retire, turn_end, list_push, list_valid, list_pop, more;
  logic        send_fire, flush_fire, purge_more;
  rsp_slot_t   retire_to;
  qp_idx_t     list_qp;
  logic [QpIdxW:0] list_level;
  item_t       item_q, item_ram, item_back;

  // ---- requests in ------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    WaitJob,
    WaitCache,     // memory of the values
    WaitStore      // write the duplicate atomic
  } in_e;
  in_e              in_q;
  logic             in_take, in_dup, in_store, kept_we;
  logic [3:0]       kept_in, look_q;     // entries still to compare
  logic [CacheW-1:0] at_q;
  psn_t             cache_psn;
  logic [63:0]      cache_value, found_q;
  logic             hit_q;
  item_t            item_in;

  assign kept_in = kept[job_i.qp];
  assign in_dup = job_i.kind == RspAtomic && job_i.dup;
  // the end of a turn writes the queue's memory and the list
  assign job_ready_o = !clearing && !turn_end && !write_back &&
                       (in_q == WaitStore || (in_q == WaitJob && !in_dup));
  assign in_take = job_valid_i && job_ready_o;
  assign in_store = in_take && job_i.kind != RspInit;
  assign item_in = '{
    kind: job_i.kind,
    nothing: in_q == WaitStore && !hit_q,
    fresh: !job_i.dup,
    begun: 1'b0,
    access: job_i.access,
    psn: job_i.psn,
    msn: job_i.msn,
    credits: job_i.credits,
    va: in_q == WaitStore ? found_q : job_i.va,
    rkey: job_i.rkey,
    len: job_i.len
  };
  logic cache_look, ctx_fire;
  assign cache_look = in_q == WaitCache || (job_valid_i && in_dup);
  assign kept_we = in_take && job_i.kind == RspAtomic && !job_i.dup;

  rnic_ram #(.Width(24 + 64), .Depth(NumQp * CacheSlots)) u_cache (
    .clk_i,
    .we_i(kept_we || (ctx_fire && ctx_word_i && ctx_load_i)),
    .waddr_i(kept_we ? {job_i.qp, kept_in[CacheW-1:0]} : {ctx_qp_i, ctx_at_i}),
    .wdata_i(kept_we ? {job_i.psn, job_i.va} : ctx_value_i),
    .re_i(cache_look || (ctx_fire && ctx_word_i)),
    .raddr_i(cache_look ? {job_i.qp, in_q == WaitJob ? kept_in[CacheW-1:0] - CacheW'(1) : at_q} : {ctx_qp_i, ctx_at_i}),
    .rdata_o({cache_psn, cache_value})
  );
  assign ctx_value_o = {cache_psn, cache_value};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q <= WaitJob;
    end else begin
      unique case (in_q)
        // the newest value is being read
        WaitJob: if (!clearing && job_valid_i && in_dup) begin
          at_q <= kept_in[CacheW-1:0] - CacheW'(2);
          look_q <= kept_in[3] ? 4'(CacheSlots) : kept_in;
          hit_q <= 1'b0;
          in_q <= WaitCache;
        end
        WaitCache: begin
          found_q <= cache_value;
          hit_q <= look_q != '0 && cache_psn == job_i.psn;
          at_q <= at_q - CacheW'(1);
          look_q <= look_q - 4'd1;
          if (look_q == '0 || cache_psn == job_i.psn) in_q <= WaitStore;
        end
        default: if (job_ready_o) in_q <= WaitJob;  // WaitStore
      endcase
    end
  end

  // ---- the queue ----------------------------------------------------------------------------------
  rnic_ram #(.Width($bits(item_t)), .Depth(NumQp * NumSlots)) u_items (
    .clk_i,
    .we_i(in_store || write_back),
    .waddr_i(write_back ? {qp_q, head[qp_q].done[LogRspSlots-1:0]} :
                          {job_i.qp, job_i.slot[LogRspSlots-1:0]}),
    .wdata_i(write_back ? item_back : item_in),
    .re_i(list_pop || (retire && !turn_end)),
    .raddr_i({list_pop ? list_qp : qp_q,
              list_pop ? head[list_qp].done[LogRspSlots-1:0] : retire_to[LogRspSlots-1:0]}),
    .rdata_o(item_ram)
  );

  // verilator lint_off PINCONNECTEMPTY
  // never full: a QP stands in it once
  rnic_fifo #(.Width(QpIdxW), .Depth(NumQp)) u_list (
    .clk_i, .rst_ni,
    .in_valid_i(list_push), .in_ready_o(), .in_data_i(turn_end ? qp_q : job_i.qp),
    .out_valid_o(list_valid), .out_ready_i(list_pop), .out_data_o(list_qp), .level_o(list_level)
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- turns --------------------------------------------------------------------------------------
  // What a turn sends.
  typedef struct packed {
    logic        atomic;
    logic        start;      // its first packet begins the response
    logic        ends;       // its last packet ends the response
    qp_idx_t     qp;
    rsp_slot_t   slot;
    psn_t        psn;
    logic [23:0] msn;
    logic [4:0]  credits;
    logic [63:0] iova;       // atomic: the value
    logic [12:0] len;
    logic [2:0]  mtu;
  } cut_t;

  logic        qp_req_q, mr_req_q, qp_wait_q, mr_wait_q;
  logic        alive_q, purge_q, refuse_q, whole, mr_ask;
  logic [2:0]  mtu_q;
  logic [23:0] pd_q;
  qpn_t        qpn_q;
  mr_t         mr_q;
  cut_t        plan, plan_q, cut_q;
  logic        cut_v_q, cut_free, flushed, refuse_take, needs_mr;
  logic        pkt_v_q, frag_v_q, pkt_end_q, covered;
  tx_pkt_t     pkt_q;
  tx_frag_t    frag_q;

  // verilator lint_off UNUSEDSIGNAL
  function automatic cut_t make_plan(input item_t it, input qp_idx_t qp, input rsp_slot_t slot,
                                     input logic [2:0] mtu, input mr_t mr);
    cut_t c;
    logic [31:0] most;
    most = 32'(mtu_bytes(mtu)) * TurnPackets;
    if (most > TurnBytes) most = TurnBytes;
    c.atomic = it.kind == RspAtomic;
    c.start = !it.begun;
    c.ends = c.atomic || it.len <= most;
    c.qp = qp;
    c.slot = slot;
    c.psn = it.psn;
    c.msn = it.msn;
    c.credits = it.credits;
    c.iova = c.atomic ? it.va : mr.iova + (it.va - mr.va);
    c.len = c.atomic ? 13'd0 : c.ends ? it.len[12:0] : most[12:0];
    c.mtu = mtu;
    return c;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  always_comb begin
    plan = '0;
    covered = 1'b1;
    if (turn_q == WaitPlan) begin
      plan = make_plan(item_q, qp_q, head[qp_q].done, mtu_q, mr_q);
      covered = !needs_mr || mr_check(mr_q, item_q.rkey, pd_q, qpn_q, item_q.va, item_q.len, MrRemoteRead);
    end
  end

  assign needs_mr = item_q.kind == RspRead && item_q.len != 0;
  assign whole = plan_q.ends;
  assign cut_free = !cut_v_q;
  assign flushed = !cut_v_q && !pkt_v_q;
  assign list_pop = turn_q == WaitWork && list_valid;
  assign send_fire = turn_q == WaitSend && cut_free;
  assign flush_fire = turn_q == WaitFlush && flushed && !refuse_q;
  assign retire = (send_fire && whole) || flush_fire;
  assign retire_to = head[qp_q].done + 1'b1;
  assign more = tail[qp_q] != retire_to;
  assign purge_more = flush_fire && purge_q && more;
  assign turn_end = send_fire || (flush_fire && !purge_more);
  assign write_back = send_fire && !whole;
  assign list_push = (in_store && !listed_q[job_i.qp]) || (turn_end && (write_back || more));
  always_comb begin
    item_back = item_q;
    item_back.begun = 1'b1;
    item_back.psn = item_q.psn + ((24'(plan_q.len) + 24'(mtu_bytes(plan_q.mtu)) - 24'd1) >> (4'd7 + 4'(plan_q.mtu)));
    item_back.va = item_q.va + 64'(plan_q.len);
    item_back.len = item_q.len - 32'(plan_q.len);
  end

  assign qp_req_valid_o = qp_req_q;
  assign qp_req_idx_o = qp_q;
  // in the cycle in which the item comes out of the memory already
  assign mr_ask = turn_q == WaitItem && !purge_q && item_ram.kind == RspRead && item_ram.len != 0;
  assign mr_req_valid_o = mr_ask || mr_req_q;
  assign mr_req_idx_o = mr_key_idx(mr_ask ? item_ram.rkey : item_q.rkey);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= WaitWork;
      qp_req_q <= 1'b0;
      mr_req_q <= 1'b0;
      qp_wait_q <= 1'b0;
      mr_wait_q <= 1'b0;
    end else begin
      if (qp_req_ready_i) qp_req_q <= 1'b0;
      if (mr_req_ready_i) mr_req_q <= 1'b0;
      if (qp_wait_q && qp_rsp_valid_i) begin
        qp_wait_q <= 1'b0;
        alive_q <= qp_rsp_i.state inside {QpRtr, QpRts, QpSqd};
        mtu_q <= qp_rsp_i.path_mtu;
        pd_q <= qp_rsp_i.pd;
        qpn_q <= qp_rsp_i.qpn;
      end
      if (mr_wait_q && mr_rsp_valid_i) begin
        mr_wait_q <= 1'b0;
        mr_q <= mr_rsp_i;
      end
      unique case (turn_q)
        WaitWork: if (list_pop) begin
          qp_q <= list_qp;
          qp_req_q <= 1'b1;
          qp_wait_q <= 1'b1;
          purge_q <= 1'b0;
          refuse_q <= 1'b0;
          turn_q <= WaitItem;
        end
        WaitItem: begin
          item_q <= item_ram;
          mr_req_q <= mr_ask && !mr_req_ready_i;
          mr_wait_q <= mr_ask;
          turn_q <= purge_q ? WaitFlush : WaitLookup;
        end
        WaitLookup: begin
          if ((!qp_wait_q || qp_rsp_valid_i) && (!mr_wait_q || mr_rsp_valid_i)) turn_q <= WaitPlan;
        end
        WaitPlan: begin
          plan_q <= plan;
          turn_q <= WaitFlush;
          if (dead_q[qp_q] || !alive_q) purge_q <= 1'b1;
          else if (item_q.kind == RspError || (!covered && item_q.fresh)) refuse_q <= 1'b1;
          else if (!item_q.nothing && covered) turn_q <= WaitSend;
        end
        WaitSend: if (cut_free) turn_q <= WaitWork;
        WaitFlush: begin
          if (flushed && refuse_q) turn_q <= WaitRefuse;
          else if (flush_fire) turn_q <= purge_more ? WaitItem : WaitWork;
        end
        default: if (refuse_take) begin  // WaitRefuse
          refuse_q <= 1'b0;
          purge_q <= 1'b1;
          turn_q <= WaitFlush;
        end
      endcase
    end
  end

  // ---- contexts ---------------------------------------------------------------------------------
  logic left_we, ctx_load;
  assign left_we = flush_fire || (pkt_v_q && pkt_ready_i && pkt_end_q);
  assign ctx_ready_o = !clearing && (ctx_word_i ? !kept_we && !cache_look : !in_take && !retire && !left_we);
  assign ctx_fire = ctx_valid_i && ctx_ready_o;
  assign ctx_load = ctx_fire && ctx_load_i && !ctx_word_i;
  always_ff @(posedge clk_i)
    if (ctx_fire) ctx_o <= '{done: head[ctx_qp_i], kept: kept[ctx_qp_i], dead: dead_q[ctx_qp_i]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clear_q <= '0;
      listed_q <= '0;
    end else begin
      if (clearing) clear_q <= clear_q + 1'b1;
      if (turn_end) listed_q[qp_q] <= write_back || more;
      if (in_store) listed_q[job_i.qp] <= 1'b1;
    end
    if (clearing) tail[clear_q[QpIdxW-1:0]] <= '0;
    else if (in_store) tail[job_i.qp] <= job_i.slot + 1'b1;
    else if (ctx_load) tail[ctx_qp_i] <= ctx_i.done.done;
    if (clearing) head[clear_q[QpIdxW-1:0]] <= '0;
    else if (retire) head[qp_q] <= '{done: retire_to, fresh: head[qp_q].fresh + rsp_slot_t'(item_q.fresh)};
    else if (ctx_load) head[ctx_qp_i] <= ctx_i.done;
    if (clearing) left[clear_q[QpIdxW-1:0]] <= '0;
    else if (flush_fire) left[qp_q] <= retire_to;
    else if (pkt_v_q && pkt_ready_i && pkt_end_q) left[pkt_q.qp] <= rsp_slot_t'(pkt_q.wqe) + 1'b1;
    else if (ctx_load) left[ctx_qp_i] <= ctx_i.done.done;
    if (clearing) kept[clear_q[QpIdxW-1:0]] <= '0;
    else if (in_take && job_i.kind == RspInit) kept[job_i.qp] <= '0;
    else if (kept_we) kept[job_i.qp] <= kept_in == '1 ? 4'(CacheSlots) : kept_in + 4'd1;
    else if (ctx_load) kept[ctx_qp_i] <= ctx_i.kept;
  end

  // ---- packets ------------------------------------------------------------------------------------
  logic        step, turn_last, frag_push;
  logic [12:0] bytes;
  assign turn_last = cut_q.len <= mtu_bytes(cut_q.mtu);
  assign bytes = turn_last ? cut_q.len : mtu_bytes(cut_q.mtu);
  assign step = cut_v_q && (!pkt_v_q || pkt_ready_i) && (!frag_v_q || frag_ready_i);
  assign frag_push = step && bytes != '0;

  // verilator lint_off UNUSEDSIGNAL
  function automatic tx_pkt_t make_pkt(input cut_t c, input logic [12:0] len, input logic final_pkt);
    tx_pkt_t p;
    p = '0;
    p.qp = c.qp;
    p.wqe = wqe_idx_t'(c.slot);
    p.psn = c.psn;
    p.response = 1'b1;
    p.imm = {3'd0, c.credits, c.msn};
    p.len = len;
    if (c.atomic) begin
      p.opcode = OpRcAtomicAck;
      p.has_value = 1'b1;
      p.va = c.iova;
    end else if (c.start) begin
      p.opcode = final_pkt ? OpRcReadRespOnly : OpRcReadRespFirst;
    end else begin
      p.opcode = final_pkt ? OpRcReadRespLast : OpRcReadRespMiddle;
    end
    p.has_aeth = p.opcode != OpRcReadRespMiddle;
    return p;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cut_v_q <= 1'b0;
      pkt_v_q <= 1'b0;
      frag_v_q <= 1'b0;
    end else begin
      if (pkt_ready_i) pkt_v_q <= 1'b0;
      if (frag_ready_i) frag_v_q <= 1'b0;
      if (send_fire) cut_v_q <= 1'b1;
      else if (step && turn_last) cut_v_q <= 1'b0;
      if (step) pkt_v_q <= 1'b1;
      if (frag_push) frag_v_q <= 1'b1;
    end
    if (send_fire) begin
      cut_q <= plan_q;
    end else if (step) begin
      cut_q.start <= 1'b0;
      cut_q.psn <= cut_q.psn + 24'd1;
      cut_q.iova <= cut_q.iova + 64'(bytes);
      cut_q.len <= cut_q.len - bytes;
    end
    if (step) begin
      pkt_q <= make_pkt(cut_q, bytes, turn_last && cut_q.ends);
      pkt_end_q <= turn_last && cut_q.ends;
    end
    if (frag_push) frag_q <= '{iova: cut_q.iova, len: bytes, last: 1'b1};
  end

  assign pkt_valid_o = pkt_v_q;
  assign pkt_o = pkt_q;
  assign frag_valid_o = frag_v_q;
  assign frag_o = frag_q;

  // ---- refusals -------------------------------------------------------------------------------------
  // Errors of the egress are always taken in time: it must not wait for a turn that waits for it.
  logic nak_v_q, qp_err_v_q, qp_err_access_q, refuse_free, err_new;
  ack_t nak_q;

  assign refuse_free = !nak_v_q && !qp_err_v_q;
  assign err_ready_o = refuse_free;
  assign err_new = err_valid_i && refuse_free && !dead_q[err_i.qp];
  assign refuse_take = turn_q == WaitRefuse && refuse_free && !err_valid_i;
  assign nak_valid_o = nak_v_q;
  assign nak_o = nak_q;
  assign qp_err_valid_o = qp_err_v_q;
  assign qp_err_idx_o = nak_q.qp;
  assign qp_err_access_o = qp_err_access_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      nak_v_q <= 1'b0;
      qp_err_v_q <= 1'b0;
      dead_q <= '0;
      ev_nak_access_o <= 1'b0;
      ev_nak_op_o <= 1'b0;
    end else begin
      if (nak_ready_i) nak_v_q <= 1'b0;
      if (qp_err_ready_i) qp_err_v_q <= 1'b0;
      ev_nak_access_o <= 1'b0;
      ev_nak_op_o <= err_new;
      if (in_take && job_i.kind == RspInit) dead_q[job_i.qp] <= 1'b0;
      if (ctx_load) dead_q[ctx_qp_i] <= ctx_i.dead;
      // the request did not complete: its MSN is not counted
      if (err_new) begin
        qp_err_access_q <= 1'b0;
        nak_v_q <= 1'b1;
        qp_err_v_q <= 1'b1;
        dead_q[err_i.qp] <= 1'b1;
        nak_q <= '{qp: err_i.qp, psn: err_i.psn, msn: err_i.msn - 24'd1, syndrome: SynNakOp};
      end else if (refuse_take) begin
        nak_v_q <= item_q.kind != RspError;
        qp_err_access_q <= item_q.kind != RspError || item_q.access;
        qp_err_v_q <= 1'b1;
        dead_q[qp_q] <= 1'b1;
        nak_q <= '{qp: qp_q, psn: item_q.psn, msn: item_q.msn - 24'd1, syndrome: SynNakAccess};
        ev_nak_access_o <= item_q.kind != RspError;
      end
    end
  end

  // ---- what is under way of a QP: the rest of a packet is with its takers --------------------------
  assign busy_o = tail[probe_qp_i] != left[probe_qp_i] || listed_q[probe_qp_i] ||
                  ((nak_v_q || qp_err_v_q) && nak_q.qp == probe_qp_i);

  // ---- drain ------------------------------------------------------------------------------------
  // Every QP with work at the rise has had a turn, then what was being cut and offered has left.
  typedef enum logic [1:0] {
    DrainNone,
    DrainTurns,
    DrainCut,
    DrainOut
  } drain_e;
  drain_e          drain_q;
  logic [QpIdxW:0] turns_q;
  logic [3:0]      out_q, out_v, out_rdy;
  assign out_v = {pkt_v_q, frag_v_q, nak_v_q, qp_err_v_q};
  assign out_rdy = {pkt_ready_i, frag_ready_i, nak_ready_i, qp_err_ready_i};
  assign drain_done_o = drain_i && drain_q == DrainOut && out_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= DrainNone;
    end else begin
      unique case (drain_q)
        DrainNone: begin
          turns_q <= list_level + (QpIdxW + 1)'(turn_q != WaitWork) - (QpIdxW + 1)'(turn_end);
          if (drain_i) drain_q <= DrainTurns;
        end
        DrainTurns: begin
          if (turns_q == '0) drain_q <= DrainCut;
          else turns_q <= turns_q - (QpIdxW + 1)'(turn_end);
        end
        DrainCut: if (!cut_v_q) begin
          drain_q <= DrainOut;
          out_q <= out_v & ~out_rdy;
        end
        default: out_q <= out_q & ~out_rdy;  // DrainOut
      endcase
      if (!drain_i) drain_q <= DrainNone;
    end
  end

  assign idle_o = !clearing && in_q == WaitJob && !list_valid && turn_q == WaitWork && !cut_v_q && out_v == '0;

`ifdef VERILATOR
  always_ff @(posedge clk_i) begin
    if (rst_ni && in_store) begin
      assert (job_i.slot == tail[job_i.qp]) else $error("slot %0d of QP %0d, want %0d", job_i.slot, job_i.qp, tail[job_i.qp]);
      assert (rsp_slot_t'(tail[job_i.qp] - head[job_i.qp].done) < rsp_slot_t'(NumSlots));
    end
  end
`endif

endmodule
