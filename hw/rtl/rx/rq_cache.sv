// SPDX-License-Identifier: Apache-2.0
//
// Receive queues of QPs and shared receive queues (SRQ): doorbells, prefetch of receive WQEs, the WQE for a message,
// flush in ERR, SRQ limit.
//
// Up to 16 WQEs per QP and per SRQ are held on chip, which at 40 million messages per second hides 400 ns of host memory on one
// QP: after a doorbell, and when there is room for 4 more, they are read from the ring
// (one AXI burst of at most 4 WQEs inside one 4 KiB page; 16 bursts outstanding). The responder
// asks by rq_req: `start` takes the next WQE; without `last` it stays open, so that later requests without
// `start` get it again until `last` closes it. `start` while a WQE is open (the message that it was taken for was given up:
// UC) gives that WQE again. A request is answered in the cycle after it was taken if the WQE is
// here or nothing is posted; a WQE on its way from memory is waited for.
//
// When a QP is in ERR its WQEs, first the open one, leave one by one at flush_o for their CQEs; a WQE is either
// answered to a closing request or flushed, never both; when the first was flushed, requests find nothing (IBTA
// 10.3.1, 10.8.2.3). Doorbells in ERR
// are taken and flushed. Nothing is read for a QP in RESET or NONE; QpStateReset empties the queue.
//
// Queues are numbered: QP i has queue i, SRQ n queue NumQp + n. A QP with has_srq has no queue of its own: a request with
// start takes the next WQE of the SRQ, and one without last moves it into the QP's own place, so that other QPs go on
// with the WQEs behind it. It is known by its tag (wqe.imm, bits 15:0) from then on, because its ring slot
// may be posted again before it is done. A malformed WQE, whose tag is not to be trusted, has the tag 0xffff.
// In ERR such a QP flushes only the WQE that it holds, and then says last WQE reached (IBTA 10.9.3, 11.6.3.4); the SRQ
// is not touched. When fewer than `limit` WQEs are left, or are there when the limit is set, lim_* tells it once
// and the limit is off (IBTA 10.2.9.3).
//
// Flow control (IBTA 9.7.7.2): cr_* tells the responder how many receive WQEs the peer may count on, behind the messages that
// are completed: those posted and not taken, and the open one. When it tells the peer (cr_tell_i) that there are none, the next
// one posted is reported (rq_flush_t.credits), so that the peer need not try.
//
// Context of a slot (docs/qp-cache.md): ctx_* reads or, with ctx_load_i, writes it, or (ctx_word_i) the WQE of an SRQ that the QP
// holds, at its tag modulo 16, while busy_o is 0 for it; ctx_o and ctx_entry_o come one cycle later. WQEs on chip are not kept: they are read
// again, as after a doorbell, also one that is open.
//
// Throughput: one request per 2 cycles, one more for a WQE of an SRQ that stays open. Back-pressure: doorbells and QPs to look at wait in turn for the QP read port
// (3 cycles each); read data is always taken, its place was reserved. A flush that is not taken
// keeps other flushes back, nothing else.

module rq_cache
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  // doorbells
  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  logic             db_srq_i,        // of an SRQ
  input  qp_idx_t          db_qp_i,
  input  logic [23:0]      db_srqn_i,
  input  logic [15:0]      db_pi_i,
  // QPs that went to ERR
  input  logic             err_valid_i,
  output logic             err_ready_o,
  input  qp_idx_t          err_idx_i,
  // QP read port
  output logic             qp_req_valid_o,
  input  logic             qp_req_ready_i,
  output qp_idx_t          qp_req_idx_o,
  input  logic             qp_rsp_valid_i,
  // verilator lint_off UNUSEDSIGNAL
  input  qp_attr_t         qp_rsp_i,        // what belongs to the receive queue is read
  // verilator lint_on UNUSEDSIGNAL
  // AXI read client
  output logic             ar_valid_o,
  input  logic             ar_ready_i,
  output logic [63:0]      ar_addr_o,
  output logic [7:0]       ar_len_o,
  input  logic             r_valid_i,
  input  logic [DataW-1:0] r_data_i,
  input  logic             r_last_i,
  input  logic             r_err_i,
  // requests of the responder; the answer stays until the next request
  input  logic             rq_req_valid_i,
  output logic             rq_req_ready_o,
  input  rq_req_t          rq_req_i,
  output logic             rq_rsp_valid_o,
  output rq_rsp_t          rq_rsp_o,
  // credits of a QP with a queue of its own; cr_tell_i: the peer is told
  input  qp_idx_t          cr_qp_i,
  input  logic             cr_tell_i,
  output logic [4:0]       cr_code_o,
  // flushed WQEs
  output logic             flush_valid_o,
  input  logic             flush_ready_i,
  output rq_flush_t        flush_o,
  // administration, by way of the responder
  input  logic             adm_valid_i,
  output logic             adm_ready_o,
  input  logic             adm_init_i,      // empty the queue; else only answer
  input  qp_idx_t          adm_qp_i,
  output logic             adm_rsp_valid_o,
  output rq_query_t        adm_rsp_o,
  // contexts
  input  qp_idx_t          probe_qp_i,
  output logic             busy_o,          // something of probe_qp_i is under way
  input  logic             ctx_valid_i,
  output logic             ctx_ready_o,
  input  logic             ctx_load_i,
  input  logic             ctx_word_i,
  input  qp_idx_t          ctx_qp_i,
  input  rq_keep_t         ctx_i,
  output rq_keep_t         ctx_o,
  input  logic [3:0]       ctx_at_i,
  input  rq_entry_t        ctx_entry_i,
  output rq_entry_t        ctx_entry_o,
  // SRQ commands, answered one cycle after they were taken, with what was there before
  input  logic             srq_cmd_valid_i,
  output logic             srq_cmd_ready_o,
  input  srq_cmd_e         srq_cmd_op_i,
  input  srq_idx_t         srq_cmd_idx_i,
  input  srq_attr_t        srq_cmd_attr_i,
  input  logic [15:0]      srq_cmd_limit_i,
  output logic             srq_cmd_rsp_valid_o,
  output srq_ctx_t         srq_cmd_rsp_o,
  // SRQs that fell below their limit
  output logic             lim_valid_o,
  input  logic             lim_ready_i,
  output srq_idx_t         lim_srqn_o,
  input  logic             drain_i,
  output logic             drain_done_o,
  output logic [2:0]       ev_wqe_o,        // WQEs asked for this cycle
  output logic             ev_bad_db_o,
  output logic             ev_axi_err_o,
  output logic             idle_o
);

  localparam int unsigned LogStore = 4;               // WQEs held per QP and per SRQ
  localparam int unsigned MaxBurst = 4;               // WQEs of a read
  localparam int unsigned RqIdxW = QpIdxW + 1;        // queue number
  localparam int unsigned NumRq = 1 << RqIdxW;
  localparam int unsigned NumTickets = 16;
  localparam int unsigned LogBytes = $clog2(DataW / 8);
  localparam int unsigned AsmW = 768;                 // header and 4 SGEs of a WQE
  localparam int unsigned AsmWords = (AsmW + DataW - 1) / DataW;
  localparam int unsigned WordW = $clog2(1024 / DataW);

  typedef logic [RqIdxW-1:0] rq_idx_t;
  function automatic rq_idx_t srq_queue(input srq_idx_t srqn);
    return {1'b1, QpIdxW'(srqn)};
  endfunction
  typedef struct packed {
    wqe_idx_t tag;
    rq_entry_t e;
  } srq_entry_t;
  typedef struct packed {
    rq_idx_t    rq;
    wqe_idx_t   first;
    logic [2:0] count;
    logic       stride128;
  } ticket_t;

  // ---- indices per queue: ci <= have <= fetch <= pi, but in ERR, where ci runs ahead ---------------
  // A QP with an SRQ uses ci only: behind the tag of the WQE it holds.
  wqe_idx_t pi_mem[NumRq];      // posted
  wqe_idx_t fetch_mem[NumRq];   // asked for
  wqe_idx_t have_mem[NumRq];    // arrived
  wqe_idx_t ci_mem[NumRq];      // taken or flushed
  logic [NumQp-1:0] open_q;     // WQE ci-1 belongs to a message under way
  logic [NumQp-1:0] failed_q;   // seen in ERR: WQEs are only flushed
  logic [NumQp-1:0] told_q;     // last WQE reached was told
  logic [NumQp-1:0] none_q;     // the peer was told that there are no credits
  logic [NumRq-1:0] queued_q;   // in the rotation

  typedef enum logic [3:0] {
    OpNone, OpFill, OpInit, OpSrq, OpTake, OpHold, OpErr, OpCtx, OpDoorbell, OpVisit
  } op_e;
  op_e      op;
  rq_idx_t  op_rq;
  qp_idx_t  op_qp;              // of a QP's queue, or the one that takes a WQE
  wqe_idx_t op_pi, op_fetch, op_have, op_ci;
  logic     op_open, op_queued, op_failed, push, load;

  // ---- administration; after reset every QP is cleared ----------------------------------------------
  logic [RqIdxW:0] sweep_q;
  logic swept, init, srq_make, clear;
  assign swept = sweep_q[RqIdxW];
  assign adm_ready_o = op == OpInit && swept;
  assign init = op == OpInit && (!swept || adm_init_i);
  assign srq_make = op == OpSrq && srq_cmd_op_i == SrqCmdCreate;
  assign clear = init || srq_make;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweep_q <= '0;
      adm_rsp_valid_o <= 1'b0;
    end else begin
      if (!swept) sweep_q <= sweep_q + 1'b1;
      adm_rsp_valid_o <= adm_ready_o;
    end
    if (adm_ready_o) adm_rsp_o <= init ? '0 : '{open: op_open, pi: op_pi, ci: op_ci};
  end

  // ---- shared receive queues ----------------------------------------------------------------------------
  logic [NumSrq-1:0] srq_exists_q;
  srq_attr_t srq_mem[NumSrq];
  logic [15:0] lim_mem[NumSrq];
  srq_idx_t srqn;                 // of the operation
  assign srq_cmd_ready_o = op == OpSrq;
  assign srqn = op_rq[SrqIdxW-1:0];

  // ---- answers of host memory -------------------------------------------------------------------------
  ticket_t tkt, head;
  logic tkt_valid, tkt_ready, head_valid, head_pop;
  logic [$clog2(NumTickets):0] tkt_level;

  rnic_fifo #(.Width($bits(ticket_t)), .Depth(NumTickets)) u_tickets (
    .clk_i, .rst_ni,
    .in_valid_i(tkt_valid), .in_ready_o(tkt_ready), .in_data_i(tkt),
    .out_valid_o(head_valid), .out_ready_i(head_pop), .out_data_o(head), .level_o(tkt_level)
  );

  logic [WordW-1:0] word_q, word_last;
  logic [1:0] pos_q;                // WQE in the ticket
  logic wqe_last, err_q, burst_err_q;
  logic [AsmWords*DataW-1:0] asm_q;
  logic fill_q, fill_err_q, fill_stride128_q;
  rq_idx_t fill_rq_q;
  wqe_idx_t fill_idx_q;

  assign word_last = head.stride128 ? WordW'(1024 / DataW - 1) : WordW'(512 / DataW - 1);
  assign wqe_last = r_valid_i && word_q == word_last;
  assign head_pop = wqe_last && 3'(pos_q) + 3'd1 == head.count;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_q <= '0;
      pos_q <= '0;
      fill_q <= 1'b0;
      burst_err_q <= 1'b0;
      ev_axi_err_o <= 1'b0;
    end else begin
      fill_q <= wqe_last;
      ev_axi_err_o <= r_valid_i && r_last_i && (r_err_i || burst_err_q);
      if (r_valid_i) begin
        word_q <= wqe_last ? '0 : word_q + 1'b1;
        burst_err_q <= !r_last_i && (r_err_i || burst_err_q);
      end
      if (wqe_last) pos_q <= head_pop ? '0 : pos_q + 1'b1;
    end
    if (r_valid_i) begin
      err_q <= r_err_i || (word_q != '0 && err_q);
      if (32'(word_q) < AsmWords) asm_q[32'(word_q)*DataW+:DataW] <= r_data_i;
    end
    if (wqe_last) begin
      fill_rq_q <= head.rq;
      fill_idx_q <= head.first + 16'(pos_q);
      fill_stride128_q <= head.stride128;
      fill_err_q <= r_err_i || (word_q != '0 && err_q);
    end
  end

  // ---- store --------------------------------------------------------------------------------------------
  rq_entry_t fill_entry, store_entry, store_out, store_q;
  srq_entry_t srq_entry;
  logic [7:0] fill_num;
  logic take_read, ctx_word;
  wqe_idx_t take_idx;

  assign fill_num = asm_q[23:16];
  assign fill_entry = '{
    bad: fill_err_q || asm_q[111:96] != fill_idx_q ||
         fill_num > (fill_stride128_q ? 8'd4 : 8'd2),
    num_sge: fill_num[2:0],
    sge: asm_q[256+:512]
  };
  rnic_ram #(.Width($bits(rq_entry_t)), .Depth(NumQp << LogStore)) u_store (
    .clk_i,
    .we_i((fill_q && !fill_rq_q[QpIdxW]) || op == OpHold || (ctx_word && ctx_load_i)),
    .waddr_i(ctx_word ? {ctx_qp_i, ctx_at_i} : fill_q ? {fill_rq_q[QpIdxW-1:0], fill_idx_q[LogStore-1:0]} :
                      {op_qp, srq_entry.tag[LogStore-1:0]}),
    .wdata_i(ctx_word ? ctx_entry_i : fill_q ? fill_entry : srq_entry.e),
    .re_i((take_read && !op_rq[QpIdxW]) || ctx_word), .raddr_i(ctx_word ? {ctx_qp_i, ctx_at_i} : {op_qp, take_idx[LogStore-1:0]}),
    .rdata_o(store_out)
  );
  // an answer stays while a context is read
  logic store_live_q;
  assign store_entry = store_live_q ? store_out : store_q;
  assign ctx_entry_o = store_out;
  always_ff @(posedge clk_i) begin
    if (take_read || ctx_word) store_live_q <= !ctx_word;
    if (store_live_q) store_q <= store_out;
  end
  rnic_ram #(.Width($bits(srq_entry_t)), .Depth(NumSrq << LogStore)) u_srq_store (
    .clk_i,
    .we_i(fill_q && fill_rq_q[QpIdxW]),
    .waddr_i({fill_rq_q[SrqIdxW-1:0], fill_idx_q[LogStore-1:0]}),
    .wdata_i({fill_entry.bad ? 16'hffff : asm_q[47:32], fill_entry}),
    .re_i(take_read && op_rq[QpIdxW]), .raddr_i({srqn, take_idx[LogStore-1:0]}),
    .rdata_o(srq_entry)
  );

  // ---- requests -------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {TakeIdle, TakeTry, TakeWait, TakeHold} take_state_e;
  take_state_e take_state_q;
  rq_req_t req_q, req;
  wqe_idx_t rsp_idx_q;
  rq_status_e rsp_status_q;
  logic rsp_srq_q;                // the answer comes from an SRQ's store
  logic [23:0] rsp_pd_q;
  rq_idx_t take_rq;
  rq_entry_t rsp_entry;
  logic take_new, take_here, take_none, take_gone, take_done, take_hold, kick;

  assign rq_req_ready_o = take_state_q == TakeIdle && swept;
  assign req = take_state_q == TakeIdle ? rq_req_i : req_q;
  assign take_rq = req.has_srq && req.start && !open_q[req.qp] ? srq_queue(req.srqn) : {1'b0, req.qp};
  assign take_new = req.start && !op_open;
  assign take_idx = take_new ? op_ci : op_ci - 16'd1;
  assign take_read = op == OpTake;
  assign take_gone = op_failed || (!req.start && !op_open);
  assign take_none = !take_gone && take_new && op_pi == op_ci;
  // a WQE of an SRQ that the QP holds is here; an open one of its own may have to be read again
  assign take_here = !take_gone && ((req.has_srq && !take_new) || signed'(op_have - take_idx) > 0);
  assign take_done = op == OpTake && (take_here || take_none || take_gone);
  // a WQE of an SRQ that stays open moves to the QP
  assign take_hold = take_done && take_here && op_rq[QpIdxW] && !req.last;
  always_comb begin
    rsp_entry = rsp_srq_q ? srq_entry.e : store_entry;
    rq_rsp_o.status = rsp_status_q;
    if (rsp_status_q == RqOk && rsp_entry.bad) rq_rsp_o.status = RqBad;
    rq_rsp_o.index = rsp_srq_q ? srq_entry.tag : rsp_idx_q;
    rq_rsp_o.pd = rsp_pd_q;
    rq_rsp_o.num_sge = rsp_entry.num_sge;
    rq_rsp_o.sge = rsp_entry.sge;
  end

  // ---- commands and limits of SRQs -----------------------------------------------------------------------
  logic [NumSrq-1:0] lim_pend_q;
  logic lim_hit, lim_push, lim_pop, lim_full_n;
  logic [SrqIdxW:0] lim_level;
  logic [15:0] lim, left;
  assign lim = op == OpSrq ? srq_cmd_limit_i : lim_mem[srqn];
  assign left = (srq_make ? 16'd0 : op_pi - op_ci) - 16'(op == OpTake);
  assign lim_hit = ((op == OpTake && take_done && op_rq[QpIdxW] && take_here) ||
                    (op == OpSrq && srq_cmd_op_i inside {SrqCmdCreate, SrqCmdLimit})) && left < lim;
  assign lim_push = lim_hit && !lim_pend_q[srqn];
  assign lim_pop = lim_valid_o && lim_ready_i;

  rnic_fifo #(.Width(SrqIdxW), .Depth(NumSrq)) u_limit (
    .clk_i, .rst_ni,
    .in_valid_i(lim_push), .in_ready_o(lim_full_n), .in_data_i(srqn),
    .out_valid_o(lim_valid_o), .out_ready_i(lim_ready_i), .out_data_o(lim_srqn_o),
    .level_o(lim_level)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      srq_exists_q <= '0;
      lim_pend_q <= '0;
      srq_cmd_rsp_valid_o <= 1'b0;
    end else begin
      srq_cmd_rsp_valid_o <= srq_cmd_ready_o;
      if (op == OpSrq && srq_cmd_op_i inside {SrqCmdCreate, SrqCmdDestroy})
        srq_exists_q[srqn] <= srq_make;
      if (lim_pop) lim_pend_q[lim_srqn_o] <= 1'b0;
      if (lim_push) lim_pend_q[srqn] <= 1'b1;
    end
    if (srq_make) srq_mem[srqn] <= srq_cmd_attr_i;
    if (lim_hit || srq_make || (op == OpSrq && srq_cmd_op_i == SrqCmdLimit))
      lim_mem[srqn] <= lim_hit ? '0 : srq_cmd_limit_i;
    if (op == OpSrq) begin
      srq_cmd_rsp_o <= '{exists: srq_exists_q[srqn], attr: srq_mem[srqn], limit: lim_mem[srqn],
                         pi: op_pi, ci: op_ci};
    end
  end

  // ---- doorbells and visits, one after the other -----------------------------------------------------------
  typedef enum logic [1:0] {VisIdle, VisRequest, VisAnswer, VisApply} vis_state_e;
  vis_state_e vis_state_q;
  logic vis_db_q;                 // a doorbell, else a QP of the rotation
  rq_idx_t vis_rq_q;
  wqe_idx_t vis_pi_q;
  qp_state_e att_state_q;
  logic att_stride128_q;
  logic [63:0] att_base_q;
  logic [3:0] att_log_q;
  cq_idx_t att_cqn_q;
  logic att_srq_q;                // a QP that has an SRQ
  logic rot_valid, rot_pop, rot_ready, vis_done, att_ok;
  rq_idx_t rot_rq, vis_rq;
  logic [RqIdxW:0] rot_level;
  srq_attr_t vis_srq;

  rnic_fifo #(.Width(RqIdxW), .Depth(NumRq)) u_rotation (
    .clk_i, .rst_ni,
    .in_valid_i(push), .in_ready_o(rot_ready), .in_data_i(op_rq),
    .out_valid_o(rot_valid), .out_ready_i(rot_pop), .out_data_o(rot_rq), .level_o(rot_level)
  );

  // doorbells and the rotation in turn
  logic last_db_q, take_db, db_in_range;
  assign db_in_range = !db_srq_i || db_srqn_i < 24'(NumSrq);
  assign vis_rq = !take_db ? rot_rq : db_srq_i ? srq_queue(db_srqn_i[SrqIdxW-1:0]) : {1'b0, db_qp_i};
  assign vis_srq = srq_mem[vis_rq[SrqIdxW-1:0]];
  assign take_db = db_valid_i && swept && (!rot_valid || !last_db_q);
  assign db_ready_o = vis_state_q == VisIdle && take_db;
  assign rot_pop = vis_state_q == VisIdle && !take_db && rot_valid;
  logic vis_ask;
  assign vis_ask = (rot_pop || (db_ready_o && db_in_range)) && !vis_rq[QpIdxW];
  assign qp_req_valid_o = vis_ask || vis_state_q == VisRequest;
  assign qp_req_idx_o = vis_ask ? vis_rq[QpIdxW-1:0] : vis_rq_q[QpIdxW-1:0];
  assign att_ok = att_state_q inside {QpInit, QpRtr, QpRts, QpSqd};

  // doorbell
  wqe_idx_t db_new_span, db_old_span;
  logic db_ok;
  assign db_new_span = vis_pi_q - op_ci;
  assign db_old_span = op_pi - op_ci;
  assign db_ok = (att_ok || att_state_q == QpErr) && !att_srq_q && db_new_span >= db_old_span &&
                 db_new_span <= (16'd1 << att_log_q);

  // read
  function automatic logic [2:0] sat4(input logic [15:0] v);
    return v >= 16'd4 ? 3'd4 : v[2:0];
  endfunction
  function automatic logic [2:0] min3(input logic [2:0] a, input logic [2:0] b);
    return a < b ? a : b;
  endfunction
  wqe_idx_t avail, room, to_end;
  logic [14:0] slot;
  logic [5:0] page_slot, page_left64;
  logic [4:0] page_left128;
  logic [2:0] count;
  logic fetch, flush, flush_wqe, vis_again, credits;
  logic ar_valid_q, ar_free, read_free;

  assign avail = op_pi - op_fetch;
  // the open WQE keeps its place
  assign room = op_ci + (op_rq[QpIdxW] ? 16'(1 << LogStore) : 16'(1 << LogStore) - 16'(op_open)) -
                op_fetch;
  assign slot = op_fetch[14:0] & 15'((16'd1 << att_log_q) - 16'd1);
  assign to_end = (16'd1 << att_log_q) - 16'(slot);
  assign page_slot = att_stride128_q ? {1'b0, att_base_q[11:7] + slot[4:0]} :
                                       att_base_q[11:6] + slot[5:0];
  assign page_left64 = 6'd63 - page_slot;
  assign page_left128 = 5'd31 - page_slot[4:0];
  assign count = min3(min3(sat4(avail), sat4(room)),
                      min3(sat4(to_end),
                           sat4(16'd1 + (att_stride128_q ? 16'(page_left128) : 16'(page_left64)))));
  assign fetch = att_ok && count != 3'd0;
  assign flush_wqe = op_open || (!att_srq_q && op_pi != op_ci);
  assign flush = att_state_q == QpErr && (flush_wqe || (att_srq_q && !told_q[op_qp]));
  assign credits = att_ok && !op_rq[QpIdxW] && none_q[op_qp] && (op_open || op_pi != op_ci);
  assign ar_free = !ar_valid_q || ar_ready_i;

  logic flush_v_q, flush_free;
  rq_flush_t flush_q;
  assign flush_free = !flush_v_q || flush_ready_i;
  assign flush_valid_o = flush_v_q;
  assign flush_o = flush_q;
  // look again: more to read than one burst, more to flush than one WQE, no room for the report,
  // or the reads outstanding leave no place: nobody waits behind this queue meanwhile
  assign vis_again = (fetch && (!read_free || (avail != 16'(count) && room != 16'(count)))) || flush || (credits && !flush_free);

  assign read_free = ar_free && tkt_ready;
  assign tkt_valid = op == OpVisit && fetch && read_free;
  assign tkt = '{rq: vis_rq_q, first: op_fetch, count: count, stride128: att_stride128_q};
  assign ev_wqe_o = tkt_valid ? count : 3'd0;
  assign ar_valid_o = ar_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
    end else begin
      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (tkt_valid) ar_valid_q <= 1'b1;
    end
    if (tkt_valid) begin
      ar_addr_o <= att_stride128_q ? {att_base_q[63:7], 7'd0} + {42'd0, slot, 7'd0} :
                                     {att_base_q[63:6], 6'd0} + {43'd0, slot, 6'd0};
      ar_len_o <= 8'((32'(count) << (att_stride128_q ? 7 : 6)) >> LogBytes) - 8'd1;
    end
  end

  // ---- one operation per cycle ------------------------------------------------------------------------------
  always_comb begin
    op = OpNone;
    op_rq = vis_rq_q;
    if (fill_q) begin
      op = OpFill;
      op_rq = fill_rq_q;
    end else if (!swept || adm_valid_i) begin
      op = OpInit;
      op_rq = swept ? {1'b0, adm_qp_i} : sweep_q[RqIdxW-1:0];
    end else if (srq_cmd_valid_i) begin
      op = OpSrq;
      op_rq = srq_queue(srq_cmd_idx_i);
    end else if (take_state_q == TakeTry || (take_state_q == TakeIdle && rq_req_valid_i)) begin
      op = OpTake;
      op_rq = take_rq;
    end else if (take_state_q == TakeHold) begin
      op = OpHold;
      op_rq = {1'b0, req_q.qp};
    end else if (err_valid_i) begin
      op = OpErr;
      op_rq = {1'b0, err_idx_i};
    end else if (ctx_valid_i) begin
      op = OpCtx;
      op_rq = {1'b0, ctx_qp_i};
    end else if (vis_state_q == VisApply) begin
      if (vis_db_q) op = OpDoorbell;
      else op = OpVisit;
    end
  end
  assign op_qp = op == OpTake ? req.qp : op_rq[QpIdxW-1:0];
  assign op_pi = pi_mem[op_rq];
  assign op_fetch = fetch_mem[op_rq];
  assign op_have = have_mem[op_rq];
  assign op_ci = ci_mem[op_rq];
  assign op_open = open_q[op_qp] && (op == OpTake || !op_rq[QpIdxW]);
  assign op_queued = queued_q[op_rq];
  assign op_failed = failed_q[op_qp];
  assign err_ready_o = op == OpErr;
  assign ctx_ready_o = op == OpCtx;
  assign ctx_word = op == OpCtx && ctx_word_i;
  assign load = op == OpCtx && ctx_load_i && !ctx_word_i;
  always_ff @(posedge clk_i)
    if (op == OpCtx) ctx_o <= '{srq: 1'b0, open: op_open, failed: op_failed, told: told_q[op_qp], none: none_q[op_qp], pi: op_pi, ci: op_ci};
  assign vis_done = op inside {OpDoorbell, OpVisit};

  wqe_idx_t cr_count;
  assign cr_count = pi_mem[{1'b0, cr_qp_i}] - ci_mem[{1'b0, cr_qp_i}] + 16'(open_q[cr_qp_i]);
  assign cr_code_o = credit_code(cr_count);

  wqe_idx_t load_from;   // what was on chip is read again
  assign load_from = ctx_i.srq ? '0 : ctx_i.ci - 16'(ctx_i.open);

  // few enough are here or on their way that a whole burst has room, when one of them is taken
  logic op_low;
  assign op_low = signed'(op_fetch - op_ci) <= signed'(16'((1 << LogStore) + 1 - MaxBurst));

  // what makes a waiting request try again
  assign kick = op_rq == take_rq && (op == OpFill || (op == OpVisit && !att_ok));

  always_comb begin
    unique case (op)
      OpErr: push = !op_queued;
      // a WQE taken makes room; one that is posted but not here may need a visit
      OpTake: push = !op_queued && !take_none && !take_gone && (!req.has_srq || op_rq[QpIdxW]) && op_low;
      OpCtx: push = load && !op_queued && !ctx_i.srq && (ctx_i.pi != ctx_i.ci || ctx_i.open);
      OpDoorbell: push = db_ok && !op_queued;
      OpVisit: push = vis_again && !op_queued;
      default: push = 1'b0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      queued_q <= '0;
      open_q <= '0;
      failed_q <= '0;
      told_q <= '0;
      none_q <= '0;
      take_state_q <= TakeIdle;
      vis_state_q <= VisIdle;
      last_db_q <= 1'b0;
      flush_v_q <= 1'b0;
      rq_rsp_valid_o <= 1'b0;
      ev_bad_db_o <= 1'b0;
    end else begin
      rq_rsp_valid_o <= (take_done && !take_hold) || op == OpHold;
      ev_bad_db_o <= (op == OpDoorbell && !db_ok) ||
                     (db_valid_i && db_ready_o && !db_in_range);
      if (flush_ready_i) flush_v_q <= 1'b0;
      if (rot_pop) queued_q[rot_rq] <= 1'b0;
      if (push) queued_q[op_rq] <= 1'b1;

      unique case (take_state_q)
        TakeIdle, TakeTry: begin
          if (op == OpTake) begin
            if (!take_done) take_state_q <= TakeWait;
            else take_state_q <= take_hold ? TakeHold : TakeIdle;
          end else if (rq_req_valid_i && rq_req_ready_o) begin
            take_state_q <= TakeTry;
          end
        end
        TakeHold: if (op == OpHold) take_state_q <= TakeIdle;
        default: begin  // TakeWait
          if (kick && op == OpFill) begin
            take_state_q <= TakeTry;
          end else if (kick) begin
            take_state_q <= TakeIdle;
            rq_rsp_valid_o <= 1'b1;
          end
        end
      endcase

      unique case (vis_state_q)
        VisIdle: begin
          if (db_ready_o) begin
            last_db_q <= 1'b1;
            if (db_in_range) vis_state_q <= vis_rq[QpIdxW] ? VisApply : qp_req_ready_i ? VisAnswer : VisRequest;
          end else if (rot_pop) begin
            last_db_q <= 1'b0;
            vis_state_q <= vis_rq[QpIdxW] ? VisApply : qp_req_ready_i ? VisAnswer : VisRequest;
          end
        end
        VisRequest: if (qp_req_ready_i) vis_state_q <= VisAnswer;
        VisAnswer: if (qp_rsp_valid_i) vis_state_q <= VisApply;
        default: if (vis_done) vis_state_q <= VisIdle;
      endcase

      if (load) begin
        open_q[op_qp] <= ctx_i.open;
        failed_q[op_qp] <= ctx_i.failed;
        told_q[op_qp] <= ctx_i.told;
        none_q[op_qp] <= ctx_i.none;
      end
      if (init && !op_rq[QpIdxW]) open_q[op_qp] <= 1'b0;
      if ((init && !op_rq[QpIdxW]) || (op == OpVisit && att_state_q == QpErr)) begin
        failed_q[op_qp] <= !init;
      end
      if (init && !op_rq[QpIdxW]) told_q[op_qp] <= 1'b0;
      if (take_done && !take_gone && !take_none) open_q[op_qp] <= !req.last;
      if (op == OpVisit && flush && flush_free) begin
        open_q[op_qp] <= 1'b0;
        told_q[op_qp] <= !flush_wqe;
        flush_v_q <= 1'b1;
      end
      if (op == OpVisit && credits && flush_free) begin
        none_q[op_qp] <= 1'b0;
        flush_v_q <= 1'b1;
      end
      if (cr_tell_i) none_q[cr_qp_i] <= cr_count == '0;
      if (init && !op_rq[QpIdxW]) none_q[op_qp] <= 1'b0;
    end

    if (rq_req_valid_i && rq_req_ready_o) req_q <= rq_req_i;
    if (op == OpTake) begin
      rsp_idx_q <= take_idx;
      rsp_status_q <= take_here ? RqOk : take_none ? RqNone : RqGone;
      rsp_srq_q <= op_rq[QpIdxW];
      rsp_pd_q <= srq_mem[req.srqn].pd;
    end
    if (vis_state_q == VisIdle) begin
      vis_db_q <= take_db;
      vis_rq_q <= vis_rq;
      vis_pi_q <= db_pi_i;
      // of an SRQ; a QP's are asked for
      att_state_q <= srq_exists_q[vis_rq[SrqIdxW-1:0]] ? QpRts : QpNone;
      att_stride128_q <= vis_srq.stride128;
      att_base_q <= {vis_srq.addr, 6'd0};
      att_log_q <= vis_srq.log_size;
      att_srq_q <= 1'b0;
    end
    if (vis_state_q == VisAnswer) begin
      att_state_q <= qp_rsp_i.state;
      att_stride128_q <= qp_rsp_i.rq_stride128;
      att_base_q <= qp_rsp_i.rq_addr;
      att_log_q <= qp_rsp_i.log_rq_size;
      att_cqn_q <= qp_rsp_i.recv_cqn;
      att_srq_q <= qp_rsp_i.has_srq;
    end
    if (op == OpVisit && (flush || credits) && flush_free) begin
      flush_q <= '{credits: credits, last_wqe: flush && !flush_wqe, qp: op_qp, cqn: att_cqn_q,
                   index: op_open ? op_ci - 16'd1 : op_ci};
    end

    // indices
    if (clear || load || (op == OpDoorbell && db_ok)) pi_mem[op_rq] <= clear ? '0 : load ? ctx_i.pi : vis_pi_q;
    if (clear || load || tkt_valid) fetch_mem[op_rq] <= clear ? '0 : load ? load_from : op_fetch + 16'(count);
    if (clear || load || op == OpFill) have_mem[op_rq] <= clear ? '0 : load ? load_from : op_have + 16'd1;
    if (clear || load || op == OpHold || (take_done && take_new && take_here) ||
        (op == OpVisit && flush && flush_free && flush_wqe && !op_open)) begin
      ci_mem[op_rq] <= clear ? '0 : load ? ctx_i.ci : (op == OpHold ? srq_entry.tag : op_ci) + 16'd1;
    end
  end

  // ---- what is under way of a QP -------------------------------------------------------------------------------
  logic reads;
  slot_count #(.Width($clog2(NumTickets) + 1)) u_reads (
    .clk_i, .rst_ni, .begin_i(tkt_valid && !tkt.rq[QpIdxW]), .begin_qp_i(tkt.rq[QpIdxW-1:0]),
    .end_i(head_pop && !head.rq[QpIdxW]), .end_qp_i(head.rq[QpIdxW-1:0]), .probe_qp_i, .busy_o(reads)
  );
  assign busy_o = reads || (fill_q && fill_rq_q == {1'b0, probe_qp_i}) || queued_q[{1'b0, probe_qp_i}] ||
                  (vis_state_q != VisIdle && vis_rq_q == {1'b0, probe_qp_i}) || (take_state_q != TakeIdle && req_q.qp == probe_qp_i) ||
                  (flush_v_q && flush_q.qp == probe_qp_i);

  // ---- drain -------------------------------------------------------------------------------------------------
  // A visit, then the reads asked for until it ended, then the flush it may have left.
  typedef enum logic [2:0] {DrainOff, DrainVisit, DrainTickets, DrainFill, DrainFlush, DrainDone} drain_e;
  drain_e drain_q;
  logic [$clog2(NumTickets):0] left_q;
  assign drain_done_o = drain_q == DrainDone && drain_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= DrainOff;
    end else if (!drain_i) begin
      drain_q <= DrainOff;
    end else begin
      unique case (drain_q)
        DrainOff: drain_q <= DrainVisit;
        DrainVisit: if (vis_state_q inside {VisIdle, VisRequest}) begin
          drain_q <= DrainTickets;
          left_q <= tkt_level - ($bits(tkt_level))'(head_pop);
        end
        DrainTickets: begin
          if (head_pop) left_q <= left_q - 1'b1;
          if (left_q == '0) drain_q <= DrainFill;
        end
        DrainFill: drain_q <= DrainFlush;
        DrainFlush: if (flush_free) drain_q <= DrainDone;
        default: ;
      endcase
    end
  end

  assign idle_o = swept && vis_state_q == VisIdle && !rot_valid && !db_valid_i && !err_valid_i &&
                  !head_valid && !fill_q && !flush_v_q && !ar_valid_q && !adm_valid_i &&
                  !srq_cmd_valid_i && !srq_cmd_rsp_valid_o && !lim_valid_o && take_state_q == TakeIdle && !rq_req_valid_i && !rq_rsp_valid_o &&
                  !adm_rsp_valid_o;

  // Rotation and limits hold a queue at most once: never full when one is pushed. Unread parts of WQEs and addresses.
  logic unused;
  assign unused = ^{rot_ready, rot_level, lim_full_n, lim_level, vis_srq, asm_q, att_base_q[5:0]};

endmodule
