// SPDX-License-Identifier: Apache-2.0
//
// Receive queues of QPs: doorbells, prefetch of receive WQEs, the WQE for a message, flush in ERR. Shared receive queues
// (SRQ): the WQE that a QP holds; all else is srq_cache's.
//
// Up to 16 WQEs per QP are held on chip, which at 40 million messages per second hides 400 ns of host memory on one
// QP: after a doorbell, and when there is room for 4 more, they are read from the ring (rq_reads). The responder
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
// A QP with has_srq has no queue of its own: a request with start takes the next WQE of the SRQ (srq_*: a question to srq_cache, whose
// answer comes in the next cycle or when host memory has given what it needs), and one without last moves it into the QP's own place, so that other QPs go on
// with the WQEs behind it. It is known by its tag (wqe.imm, bits 15:0) from then on, because its ring slot
// may be posted again before it is done. A malformed WQE, whose tag is not to be trusted, has the tag 0xffff.
// In ERR such a QP flushes only the WQE that it holds, and then says last WQE reached (IBTA 10.9.3, 11.6.3.4); the SRQ
// is not touched. What happens to a QP that waits for a WQE of its SRQ happens after that.
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
  input  qp_idx_t          db_qp_i,
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
  // WQEs of SRQs; the answer stays until the next request
  output logic             srq_req_valid_o,
  input  logic             srq_req_ready_i,
  output srq_idx_t         srq_req_srqn_o,
  input  logic             srq_rsp_valid_i,
  input  srq_rsp_t         srq_rsp_i,
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
  input  logic             drain_i,
  output logic             drain_done_o,
  output logic [2:0]       ev_wqe_o,        // WQEs asked for this cycle
  output logic             ev_bad_db_o,
  output logic             ev_axi_err_o,
  output logic             idle_o
);

  localparam int unsigned LogStore = 4;               // WQEs held per QP
  localparam int unsigned MaxBurst = 4;               // WQEs of a read
  localparam int unsigned NumTickets = 16;

  // ---- indices per queue: ci <= have <= fetch <= pi, but in ERR, where ci runs ahead ---------------
  // A QP with an SRQ uses ci only: behind the tag of the WQE it holds.
  wqe_idx_t pi_mem[NumQp];      // posted
  wqe_idx_t fetch_mem[NumQp];   // asked for
  wqe_idx_t have_mem[NumQp];    // arrived
  wqe_idx_t ci_mem[NumQp];      // taken or flushed
  logic [NumQp-1:0] open_q;     // WQE ci-1 belongs to a message under way
  logic [NumQp-1:0] failed_q;   // seen in ERR: WQEs are only flushed
  logic [NumQp-1:0] told_q;     // last WQE reached was told
  logic [NumQp-1:0] none_q;     // the peer was told that there are no credits
  logic [NumQp-1:0] queued_q;   // in the rotation

  typedef enum logic [3:0] {
    OpNone, OpFill, OpInit, OpTake, OpHold, OpErr, OpCtx, OpDoorbell, OpVisit
  } op_e;
  op_e      op;
  qp_idx_t  op_qp;
  wqe_idx_t op_pi, op_fetch, op_have, op_ci;
  logic     op_open, op_queued, op_failed, push, load;

  // ---- administration; after reset every QP is cleared ----------------------------------------------
  logic [QpIdxW:0] sweep_q;
  logic swept, init;
  assign swept = sweep_q[QpIdxW];
  assign adm_ready_o = op == OpInit && swept;
  assign init = op == OpInit && (!swept || adm_init_i);
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

  // ---- WQEs that come ----------------------------------------------------------------------------------
  logic fill_valid, rd_done, rd_ready, reads_idle;
  qp_idx_t fill_qp, rd_done_qp;
  logic [LogStore-1:0] fill_at;
  // verilator lint_off UNUSEDSIGNAL
  srq_entry_t fill;             // tags are those of SRQs
  // verilator lint_on UNUSEDSIGNAL
  logic [$clog2(NumTickets):0] tkt_level;

  // ---- store --------------------------------------------------------------------------------------------
  rq_entry_t store_entry, store_out, store_q;
  logic take_read, ctx_word;
  wqe_idx_t take_idx;

  rnic_ram #(.Width($bits(rq_entry_t)), .Depth(NumQp << LogStore)) u_store (
    .clk_i,
    .we_i(fill_valid || op == OpHold || (ctx_word && ctx_load_i)),
    .waddr_i(ctx_word ? {ctx_qp_i, ctx_at_i} : fill_valid ? {fill_qp, fill_at} :
                      {op_qp, srq_rsp_i.wqe.tag[LogStore-1:0]}),
    .wdata_i(ctx_word ? ctx_entry_i : fill_valid ? fill.e : srq_rsp_i.wqe.e),
    .re_i(take_read || ctx_word), .raddr_i(ctx_word ? {ctx_qp_i, ctx_at_i} : {op_qp, take_idx[LogStore-1:0]}),
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
  // ---- requests -------------------------------------------------------------------------------------------
  typedef enum logic [2:0] {TakeIdle, TakeTry, TakeWait, TakeSrq, TakeHold} take_state_e;
  take_state_e take_state_q;
  rq_req_t req_q, req;
  wqe_idx_t rsp_idx_q;
  rq_status_e rsp_status, rsp_status_q;
  logic rsp_srq_q;                // the answer is srq_cache's
  logic rsp_valid_q;
  rq_entry_t rsp_entry;
  logic take_new, take_here, take_none, take_gone, take_srq, take_done, srq_held, kick;

  assign rq_req_ready_o = take_state_q == TakeIdle && swept;
  assign req = take_state_q == TakeIdle ? rq_req_i : req_q;
  assign take_new = req.start && !op_open;
  assign take_idx = take_new ? op_ci : op_ci - 16'd1;
  assign take_read = op == OpTake;
  assign take_gone = op_failed || (!req.start && !op_open);
  assign take_srq = !take_gone && req.has_srq && take_new;
  assign take_none = !take_gone && !req.has_srq && take_new && op_pi == op_ci;
  // a WQE of an SRQ that the QP holds is here; an open one of its own may have to be read again
  assign take_here = !take_gone && !take_srq && (req.has_srq || signed'(op_have - take_idx) > 0);
  assign take_done = op == OpTake && (take_here || take_none || take_gone);
  assign srq_req_valid_o = op == OpTake && take_srq;
  assign srq_req_srqn_o = req.srqn;
  // a WQE of an SRQ that stays open moves to the QP
  assign srq_held = take_state_q == TakeSrq && srq_rsp_valid_i && srq_rsp_i.status == RqOk && !req_q.last;
  assign rq_rsp_valid_o = rsp_valid_q || (take_state_q == TakeSrq && srq_rsp_valid_i && !srq_held);
  assign rsp_status = rsp_srq_q ? srq_rsp_i.status : rsp_status_q;
  always_comb begin
    rsp_entry = rsp_srq_q ? srq_rsp_i.wqe.e : store_entry;
    rq_rsp_o.status = rsp_status;
    if (rsp_status == RqOk && rsp_entry.bad) rq_rsp_o.status = RqBad;
    rq_rsp_o.index = rsp_srq_q ? srq_rsp_i.wqe.tag : rsp_idx_q;
    rq_rsp_o.num_sge = rsp_entry.num_sge;
    rq_rsp_o.sge = rsp_entry.sge;
  end

  // ---- doorbells and visits, one after the other -----------------------------------------------------------
  typedef enum logic [1:0] {VisIdle, VisRequest, VisAnswer, VisApply} vis_state_e;
  vis_state_e vis_state_q;
  logic vis_db_q;                 // a doorbell, else a QP of the rotation
  qp_idx_t vis_qp_q;
  wqe_idx_t vis_pi_q;
  qp_state_e att_state_q;
  logic att_stride128_q;
  logic [63:6] att_base_q;
  logic [3:0] att_log_q;
  cq_idx_t att_cqn_q;
  logic att_srq_q;                // a QP that has an SRQ
  logic rot_valid, rot_pop, vis_done, att_ok;
  qp_idx_t rot_qp, vis_qp;

  // verilator lint_off PINCONNECTEMPTY
  // it holds a QP at most once: never full when one is pushed
  rnic_fifo #(.Width(QpIdxW), .Depth(NumQp)) u_rotation (
    .clk_i, .rst_ni,
    .in_valid_i(push), .in_ready_o(), .in_data_i(op_qp),
    .out_valid_o(rot_valid), .out_ready_i(rot_pop), .out_data_o(rot_qp), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // doorbells and the rotation in turn
  logic last_db_q, take_db, vis_ask;
  assign vis_qp = take_db ? db_qp_i : rot_qp;
  assign take_db = db_valid_i && swept && (!rot_valid || !last_db_q);
  assign db_ready_o = vis_state_q == VisIdle && take_db;
  assign rot_pop = vis_state_q == VisIdle && !take_db && rot_valid;
  assign vis_ask = rot_pop || db_ready_o;
  assign qp_req_valid_o = vis_ask || vis_state_q == VisRequest;
  assign qp_req_idx_o = vis_ask ? vis_qp : vis_qp_q;
  assign att_ok = att_state_q inside {QpInit, QpRtr, QpRts, QpSqd};

  // doorbell
  wqe_idx_t db_new_span, db_old_span;
  logic db_ok;
  assign db_new_span = vis_pi_q - op_ci;
  assign db_old_span = op_pi - op_ci;
  assign db_ok = (att_ok || att_state_q == QpErr) && !att_srq_q && db_new_span >= db_old_span &&
                 db_new_span <= (16'd1 << att_log_q);

  // read
  wqe_idx_t avail, room;
  logic [2:0] count;
  logic fetch, read, flush, flush_wqe, vis_again, credits;
  assign avail = op_pi - op_fetch;
  // the open WQE keeps its place
  assign room = op_ci + 16'(1 << LogStore) - 16'(op_open) - op_fetch;
  assign read = op == OpVisit && fetch && rd_ready;
  assign ev_wqe_o = read ? count : 3'd0;
  rq_reads #(.DataW(DataW), .IdW(QpIdxW), .NumTickets(NumTickets)) u_reads (
    .clk_i, .rst_ni,
    .ask_valid_i(op == OpVisit && fetch), .ask_ready_o(rd_ready), .ask_id_i(vis_qp_q), .ask_base_i(att_base_q), .ask_log_size_i(att_log_q),
    .ask_stride128_i(att_stride128_q), .ask_next_i(op_fetch), .ask_avail_i(avail), .ask_room_i(room), .ask_count_o(count),
    .ar_valid_o, .ar_ready_i, .ar_addr_o, .ar_len_o, .r_valid_i, .r_data_i, .r_last_i, .r_err_i,
    .fill_valid_o(fill_valid), .fill_id_o(fill_qp), .fill_at_o(fill_at), .fill_o(fill),
    .done_o(rd_done), .done_id_o(rd_done_qp), .level_o(tkt_level), .ev_axi_err_o, .idle_o(reads_idle)
  );

  assign fetch = att_ok && count != 3'd0;
  assign flush_wqe = op_open || (!att_srq_q && op_pi != op_ci);
  assign flush = att_state_q == QpErr && (flush_wqe || (att_srq_q && !told_q[op_qp]));
  assign credits = att_ok && none_q[op_qp] && (op_open || op_pi != op_ci);

  logic flush_v_q, flush_free;
  rq_flush_t flush_q;
  assign flush_free = !flush_v_q || flush_ready_i;
  assign flush_valid_o = flush_v_q;
  assign flush_o = flush_q;
  // look again: more to read than one burst, more to flush than one WQE, no room for the report,
  // or the reads outstanding leave no place: nobody waits behind this queue meanwhile
  assign vis_again = (fetch && (!rd_ready || (avail != 16'(count) && room != 16'(count)))) || flush || (credits && !flush_free);

  // ---- one operation per cycle ------------------------------------------------------------------------------
  always_comb begin
    op = OpNone;
    op_qp = vis_qp_q;
    if (fill_valid) begin
      op = OpFill;
      op_qp = fill_qp;
    end else if (!swept || adm_valid_i) begin
      op = OpInit;
      op_qp = swept ? adm_qp_i : sweep_q[QpIdxW-1:0];
    end else if (take_state_q == TakeTry || (take_state_q == TakeIdle && rq_req_valid_i)) begin
      op = OpTake;
      op_qp = req.qp;
    end else if (take_state_q == TakeHold || srq_held) begin
      op = OpHold;
      op_qp = req_q.qp;
    end else if (err_valid_i) begin
      op = OpErr;
      op_qp = err_idx_i;
    end else if (ctx_valid_i) begin
      op = OpCtx;
      op_qp = ctx_qp_i;
    end else if (vis_state_q == VisApply && !(take_state_q == TakeSrq && req_q.qp == vis_qp_q)) begin
      if (vis_db_q) op = OpDoorbell;
      else op = OpVisit;
    end
  end
  assign op_pi = pi_mem[op_qp];
  assign op_fetch = fetch_mem[op_qp];
  assign op_have = have_mem[op_qp];
  assign op_ci = ci_mem[op_qp];
  assign op_open = open_q[op_qp];
  assign op_queued = queued_q[op_qp];
  assign op_failed = failed_q[op_qp];
  assign err_ready_o = op == OpErr;
  assign ctx_ready_o = op == OpCtx;
  assign ctx_word = op == OpCtx && ctx_word_i;
  assign load = op == OpCtx && ctx_load_i && !ctx_word_i;
  always_ff @(posedge clk_i)
    if (op == OpCtx) ctx_o <= '{srq: 1'b0, open: op_open, failed: op_failed, told: told_q[op_qp], none: none_q[op_qp], pi: op_pi, ci: op_ci};
  assign vis_done = op inside {OpDoorbell, OpVisit};

  wqe_idx_t cr_count;
  assign cr_count = pi_mem[cr_qp_i] - ci_mem[cr_qp_i] + 16'(open_q[cr_qp_i]);
  assign cr_code_o = credit_code(cr_count);

  wqe_idx_t load_from;   // what was on chip is read again
  assign load_from = ctx_i.srq ? '0 : ctx_i.ci - 16'(ctx_i.open);

  // few enough are here or on their way that a whole burst has room, when one of them is taken
  logic op_low;
  assign op_low = signed'(op_fetch - op_ci) <= signed'(16'((1 << LogStore) + 1 - MaxBurst));

  // what makes a waiting request try again
  assign kick = op_qp == req_q.qp && (op == OpFill || (op == OpVisit && !att_ok));

  always_comb begin
    unique case (op)
      OpErr: push = !op_queued;
      // a WQE taken makes room; one that is posted but not here may need a visit
      OpTake: push = !op_queued && !take_none && !take_gone && !req.has_srq && op_low;
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
      rsp_valid_q <= 1'b0;
      ev_bad_db_o <= 1'b0;
    end else begin
      rsp_valid_q <= take_done || op == OpHold;
      ev_bad_db_o <= op == OpDoorbell && !db_ok;
      if (flush_ready_i) flush_v_q <= 1'b0;
      if (rot_pop) queued_q[rot_qp] <= 1'b0;
      if (push) queued_q[op_qp] <= 1'b1;

      unique case (take_state_q)
        TakeIdle, TakeTry: begin
          if (op == OpTake) begin
            if (take_srq) take_state_q <= srq_req_ready_i ? TakeSrq : TakeTry;
            else take_state_q <= take_done ? TakeIdle : TakeWait;
          end else if (rq_req_valid_i && rq_req_ready_o) begin
            take_state_q <= TakeTry;
          end
        end
        TakeSrq: if (srq_rsp_valid_i) take_state_q <= srq_held && op != OpHold ? TakeHold : TakeIdle;
        TakeHold: if (op == OpHold) take_state_q <= TakeIdle;
        default: begin  // TakeWait
          if (kick && op == OpFill) begin
            take_state_q <= TakeTry;
          end else if (kick) begin
            take_state_q <= TakeIdle;
            rsp_valid_q <= 1'b1;
          end
        end
      endcase

      unique case (vis_state_q)
        VisIdle: begin
          if (db_ready_o) begin
            last_db_q <= 1'b1;
            vis_state_q <= qp_req_ready_i ? VisAnswer : VisRequest;
          end else if (rot_pop) begin
            last_db_q <= 1'b0;
            vis_state_q <= qp_req_ready_i ? VisAnswer : VisRequest;
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
      if (init) open_q[op_qp] <= 1'b0;
      if (init || (op == OpVisit && att_state_q == QpErr)) failed_q[op_qp] <= !init;
      if (init) told_q[op_qp] <= 1'b0;
      if (take_done && take_here) open_q[op_qp] <= !req.last;
      if (op == OpHold) open_q[op_qp] <= 1'b1;
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
      if (init) none_q[op_qp] <= 1'b0;
    end

    if (rq_req_valid_i && rq_req_ready_o) req_q <= rq_req_i;
    if (op == OpTake) begin
      rsp_idx_q <= take_idx;
      rsp_status_q <= take_here ? RqOk : take_none ? RqNone : RqGone;
      rsp_srq_q <= take_srq;
    end
    if (vis_state_q == VisIdle) begin
      vis_db_q <= take_db;
      vis_qp_q <= vis_qp;
      vis_pi_q <= db_pi_i;
    end
    if (vis_state_q == VisAnswer) begin
      att_state_q <= qp_rsp_i.state;
      att_stride128_q <= qp_rsp_i.rq_stride128;
      att_base_q <= qp_rsp_i.rq_addr[63:6];
      att_log_q <= qp_rsp_i.log_rq_size;
      att_cqn_q <= qp_rsp_i.recv_cqn;
      att_srq_q <= qp_rsp_i.has_srq;
    end
    if (op == OpVisit && (flush || credits) && flush_free) begin
      flush_q <= '{credits: credits, last_wqe: flush && !flush_wqe, qp: op_qp, cqn: att_cqn_q,
                   index: op_open ? op_ci - 16'd1 : op_ci};
    end

    // indices
    if (init || load || (op == OpDoorbell && db_ok)) pi_mem[op_qp] <= init ? '0 : load ? ctx_i.pi : vis_pi_q;
    if (init || load || read) fetch_mem[op_qp] <= init ? '0 : load ? load_from : op_fetch + 16'(count);
    if (init || load || op == OpFill) have_mem[op_qp] <= init ? '0 : load ? load_from : op_have + 16'd1;
    if (init || load || op == OpHold || (take_done && take_new && take_here) ||
        (op == OpVisit && flush && flush_free && flush_wqe && !op_open)) begin
      ci_mem[op_qp] <= init ? '0 : load ? ctx_i.ci : (op == OpHold ? srq_rsp_i.wqe.tag : op_ci) + 16'd1;
    end
  end

  // ---- what is under way of a QP -------------------------------------------------------------------------------
  logic reads;
  slot_count #(.Width($clog2(NumTickets) + 1)) u_open (
    .clk_i, .rst_ni, .begin_i(read), .begin_qp_i(vis_qp_q), .end_i(rd_done), .end_qp_i(rd_done_qp), .probe_qp_i, .busy_o(reads)
  );
  assign busy_o = reads || (fill_valid && fill_qp == probe_qp_i) || queued_q[probe_qp_i] ||
                  (vis_state_q != VisIdle && vis_qp_q == probe_qp_i) || (take_state_q != TakeIdle && req_q.qp == probe_qp_i) ||
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
          left_q <= tkt_level - ($bits(tkt_level))'(rd_done);
        end
        DrainTickets: begin
          if (rd_done) left_q <= left_q - 1'b1;
          if (left_q == '0) drain_q <= DrainFill;
        end
        DrainFill: drain_q <= DrainFlush;
        DrainFlush: if (flush_free) drain_q <= DrainDone;
        default: ;
      endcase
    end
  end

  assign idle_o = swept && vis_state_q == VisIdle && !rot_valid && !db_valid_i && !err_valid_i &&
                  reads_idle && !flush_v_q && !adm_valid_i &&
                  take_state_q == TakeIdle && !rq_req_valid_i && !rq_rsp_valid_o &&
                  !adm_rsp_valid_o;

endmodule
