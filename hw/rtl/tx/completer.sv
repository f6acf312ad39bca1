// SPDX-License-Identifier: Apache-2.0
//
// Completes WQEs: takes acknowledges, NAKs, failed payload reads, local errors and flushes, and writes CQEs
// in the order of the send queue (IBTA 9.7.5.1, 9.7.7.2, 10.3.1.6, 11.6.2).
//
// An acknowledge is cumulative; duplicates change nothing; one outside una-1 .. newest PSN ever sent is a ghost,
// counted and ignored. The MSN is not looked at. A NAK acknowledges everything before its PSN. What then becomes of
// a sequence NAK, an RNR NAK or an expired timer is retry_ctl's decision: the sending position is set back to the oldest
// unacknowledged PSN, or the WQE that holds it fails; after any other NAK it fails (nak_status). An
// acknowledge that passes a position that was set back moves it forward (IBTA 9.7.5.1.2: late acknowledges
// are good). The first error puts the QP into ERR; nothing more completes until the QP table's flush arrives (flush_valid_i).
// It comes behind all responses that were taken for this QP, so that nothing is written to the buffer of a READ when its CQE
// is there. Then the WQE that failed gets its CQE, and every other one up to the producer index is flushed,
// 16 at a time so that other QPs are not held up. A WQE found bad before it was sent, all before it complete, has its CQE at
// once. So has a WQE whose payload cannot be read, of an RC QP when those before it are acknowledged. Only signaled WQEs and errors make a CQE.
//
// A response of a READ or atomic is an acknowledge too (AckResponse); one that cannot be used fails its WQE (AckLocal).
// Something behind a response that is missing is a sequence NAK of that one (AckImplied, IBTA 9.7.5.1.3).
//
// Credits (IBTA 9.7.7.2): each ACK, also one repeated, and each response with an AETH may move the limit forward, and wakes the QP; an ACK without
// credits ends flow control for the connection.
//
// A QP in SQD (sqd_*) that is to tell when it is drained does so once, behind its CQEs, at the end of the first job that leaves nothing of
// what was begun incomplete; the command itself is such a job. A QP that fails before tells nothing.
//
// State per QP: una (oldest unacknowledged PSN), ci (WQEs completed), base (first PSN of WQE ci), err. The
// messages in flight live in one RAM, 2^LogInflight per QP, written by the segmenter; those below max_next count,
// wherever the sending position is. Positions change in state RunSync only, in which nobody sends.
//
// Throughput: one acknowledge per 3 cycles, one more cycle per further message it completes.
// Latency: acknowledge to CQE 5 cycles with a QP answer after one. Back-pressure: waits for cqe_ready_i.

module completer
  import rnic_pkg::*;
  import requester_pkg::*;
  import rnic_regs_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,
  // jobs
  input  logic       ackrx_valid_i,
  output logic       ackrx_ready_o,
  input  ack_rx_t    ackrx_i,
  input  logic       err_valid_i,
  output logic       err_ready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  tx_err_t    err_i,         // of a request: its QP and WQE
  // verilator lint_on UNUSEDSIGNAL
  input  logic       flush_valid_i,      // this QP is in ERR, and what was received for it is in memory
  output logic       flush_ready_o,
  input  qp_idx_t    flush_idx_i,
  input  logic       db_flush_valid_i,   // doorbell of a QP in ERR
  output logic       db_flush_ready_o,
  input  qp_idx_t    db_flush_idx_i,
  input  logic       kick_valid_i,       // segmenter: a WQE that needs no acknowledge
  output logic       kick_ready_o,
  input  qp_idx_t    kick_idx_i,
  input  logic       tmr_valid_i,        // the timer of this QP expired, some time ago: fired_i says whether that still holds
  output logic       tmr_ready_o,
  input  qp_idx_t    tmr_idx_i,
  // QP read port
  output logic       qpc_req_valid_o,
  input  logic       qpc_req_ready_i,
  output qp_idx_t    qpc_req_idx_o,
  input  logic       qpc_rsp_valid_i,
  input  qp_attr_t   qpc_rsp_i,
  // administration: while hold_i no state changes; init_i clears QP adm_qp_i
  input  logic       hold_i,
  input  logic       init_i,
  input  qp_idx_t    adm_qp_i,
  input  psn_t       init_psn_i,
  output psn_t       adm_una_o,
  output wqe_idx_t   adm_ci_o,
  output logic       adm_err_o,
  // SQD: tell by a cqe_o with `drained` when all that was begun is complete; draining_o: it is not, of adm_qp_i
  output logic       draining_o,
  input  logic       sqd_valid_i,
  input  logic       sqd_notify_i,
  input  logic       sqd_end_i,
  output logic       sqd_busy_o,         // the command has not been looked at
  // contexts (docs/qp-cache.md), with hold_i: what is kept of adm_qp_i, load_i writes it; message ctx_at_i of its ring, out one cycle later
  input  logic       load_i,
  input  cpl_keep_t  keep_i,
  output cpl_keep_t  keep_o,
  input  logic       ctx_re_i,
  input  logic       ctx_we_i,
  input  logic [LogInflight-1:0] ctx_at_i,
  input  flight_t    ctx_flight_i,
  output flight_t    ctx_flight_o,
  input  qp_idx_t    probe_qp_i,
  output logic       busy_o,           // something of probe_qp_i is under way
  // look-ups by others
  input  qp_idx_t    seg_qp_i,
  output psn_t       seg_una_o,
  output wqe_idx_t   seg_ci_o,
  output logic       seg_err_o,
  output logic       seg_unlimited_o,
  output credit_t    seg_limit_o,
  input  qp_idx_t    sch_qp_i,
  output wqe_idx_t   sch_ci_o,
  output logic       sch_err_o,
  // look-ups at others
  output qp_idx_t    qp_o,
  input  sent_t      sent_i,
  input  wqe_idx_t   pi_i,
  // retries: sync_o: nobody sends in this cycle; ask to act in it
  input  logic       room_i,        // the scheduler can take a restart
  output logic       sync_o,
  output retry_ask_t ask_o,
  input  retry_act_t act_i,
  output logic       off_o,
  input  logic       fired_i,
  output logic       rst_valid_o,
  output wqe_idx_t   rst_next_o,
  output logic [31:0] rst_off_o,
  output rd_num_t    rst_rd_o,
  output credit_t    rst_used_o,
  output logic       rst_probe_o,
  output psn_t       rst_psn_o,
  output logic       rst_pause_o,
  // READs and atomics complete, of qp_o; one more is; length of one, a cycle later
  input  rd_num_t    rd_done_i,
  output logic       rd_pop_o,
  output logic       rd_re_o,
  output logic [LogMaxRd-1:0] rd_num_o,
  input  logic [31:0] rd_len_i,
  // messages in flight
  input  logic       flight_we_i,
  input  logic [QpIdxW+LogInflight-1:0] flight_addr_i,
  input  flight_t    flight_i,
  output logic       wake_valid_o,
  input  logic       wake_ready_i,
  output qp_idx_t    wake_qp_o,
  output logic       cqe_valid_o,
  input  logic       cqe_ready_i,
  output cqe_ev_t    cqe_o,
  output logic       qp_err_valid_o,
  input  logic       qp_err_ready_i,
  output qp_idx_t    qp_err_idx_o,
  output logic       ev_ack_o,
  output logic       ev_nak_o,
  output logic       ev_ghost_o,
  output logic [2:0] jobs_o,       // jobs under way
  output logic       job_done_o,   // one of them ended, oldest first
  output logic       idle_o
);

  // Which status a NAK that ends the connection gives the WQE it names (codes 4 to 31 are reserved).
  function automatic logic [7:0] nak_status(input logic [7:0] syndrome);
    unique case (syndrome)
      SynNakInvReq: return WcStatusRemInvReqErr;
      SynNakAccess: return WcStatusRemAccessErr;
      default: return WcStatusRemOpErr;
    endcase
  endfunction
  function automatic logic [7:0] op_code(input msg_op_e op);
    unique case (op)
      OpWrite: return CqeOpcodeRdmaWrite;
      OpSend: return CqeOpcodeSend;
      OpLocalInv: return CqeOpcodeLocalInv;
      OpBindMw: return CqeOpcodeBindMw;
      OpRead: return CqeOpcodeRdmaRead;
      OpCmpSwap: return CqeOpcodeCmpSwap;
      OpFetchAdd: return CqeOpcodeFetchAdd;
      default: return CqeOpcodeError;
    endcase
  endfunction

  // ---- types -------------------------------------------------------------------------------------
  typedef enum logic [2:0] {JobAck, JobKick, JobFlush, JobTxErr, JobTimer} job_kind_e;
  typedef struct packed {
    job_kind_e  kind;
    qp_idx_t    qp;
    psn_t       psn;
    logic [7:0] syndrome;
    logic       own;
    logic       credits;
    wqe_idx_t   wqe;
    ack_src_e   src;
    logic [3:0] fail;
  } job_t;

  // ---- QPs to be flushed, each at most once ----------------------------------------------------------
  logic [NumQp-1:0] flush_pending_q;
  logic [NumQp-1:0] flushed_q;      // the first flush has come
  logic flush_push, flush_pop, flush_any, flush_space;
  qp_idx_t flush_in, flush_head;
  logic again_valid;                // rest of a long flush
  logic [QpIdxW:0] flush_level;
  job_t run_q;                      // the job at work
  qp_idx_t qp;

  assign flush_ready_o = !again_valid;
  assign db_flush_ready_o = !again_valid && !flush_valid_i;
  assign flush_in = again_valid ? run_q.qp : flush_valid_i ? flush_idx_i : db_flush_idx_i;
  // a doorbell before the first flush is covered by it
  assign flush_push = (again_valid || flush_valid_i || (db_flush_valid_i && flushed_q[flush_in])) &&
                      !flush_pending_q[flush_in];

  rnic_fifo #(.Width(QpIdxW), .Depth(NumQp)) u_flush (
    .clk_i, .rst_ni,
    .in_valid_i(flush_push), .in_ready_o(flush_space), .in_data_i(flush_in),
    .out_valid_o(flush_any), .out_ready_i(flush_pop), .out_data_o(flush_head), .level_o(flush_level)
  );

  // A QP pushed in the cycle in which it is popped is pushed again or was not needed: the bit falls first.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      flush_pending_q <= '0;
    end else begin
      if (flush_pop) flush_pending_q[flush_head] <= 1'b0;
      if (flush_push) flush_pending_q[flush_in] <= 1'b1;
    end
    if (!rst_ni) begin
      flushed_q <= '0;
    end else begin
      if (flush_valid_i && flush_ready_o) flushed_q[flush_idx_i] <= 1'b1;
      if (hold_i && (init_i || load_i)) flushed_q[qp] <= load_i && keep_i.flushed;
    end
  end

  // ---- choice of a job ---------------------------------------------------------------------------------
  job_t pick, sel_q, wait_q, job_q;
  logic sel_valid_q, wait_valid_q, job_valid_q;
  logic pick_ready, pick_valid, other_turn_q, take_other, other_valid;
  logic job_take;
  // SQD: QPs that are to tell that they are drained; the command for this one was not looked at yet
  logic [NumQp-1:0] notify_q;
  logic check_q, check_pop, tell;
  qp_idx_t check_qp_q;
  qp_state_e job_state_q;
  cq_idx_t job_cqn_q;
  logic [2:0] job_mtu_q, job_retry_cnt_q, job_rnr_retry_q;
  logic [4:0] job_timeout_q;

  assign pick_ready = !sel_valid_q || (qpc_req_valid_o && qpc_req_ready_i);
  assign other_valid = err_valid_i || flush_any || tmr_valid_i || check_q || kick_valid_i;
  assign take_other = other_valid && (other_turn_q || !ackrx_valid_i);
  assign pick_valid = pick_ready && (other_valid || ackrx_valid_i);
  assign ackrx_ready_o = pick_ready && !take_other;
  assign err_ready_o = pick_ready && take_other;
  assign flush_pop = pick_ready && take_other && !err_valid_i && flush_any;
  assign tmr_ready_o = pick_ready && take_other && !err_valid_i && !flush_any;
  assign check_pop = pick_ready && take_other && !err_valid_i && !flush_any && !tmr_valid_i && check_q;
  assign kick_ready_o = pick_ready && take_other && !err_valid_i && !flush_any && !tmr_valid_i && !check_q;
  assign sqd_busy_o = check_q;

  always_comb begin
    pick = '0;
    if (!take_other) begin
      pick = '{kind: JobAck, qp: ackrx_i.qp, psn: ackrx_i.psn, syndrome: ackrx_i.syndrome, own: ackrx_i.own,
               credits: ackrx_i.credits, wqe: '0,
               src: ackrx_i.src, fail: ackrx_i.fail};
    end else if (err_valid_i) begin
      pick.kind = JobTxErr;
      pick.qp = err_i.qp;
      pick.wqe = err_i.wqe;
    end else if (flush_any) begin
      pick.kind = JobFlush;
      pick.qp = flush_head;
    end else if (tmr_valid_i) begin
      pick.kind = JobTimer;
      pick.qp = tmr_idx_i;
    end else begin
      pick.kind = JobKick;
      pick.qp = check_q ? check_qp_q : kick_idx_i;
    end
  end

  // ---- the job's QP attributes -------------------------------------------------------------------------
  // One question at a time, and only when the answer has a place to go.
  assign qpc_req_valid_o = sel_valid_q && !wait_valid_q && !job_valid_q;
  assign qpc_req_idx_o = sel_q.qp;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sel_valid_q <= 1'b0;
      wait_valid_q <= 1'b0;
      job_valid_q <= 1'b0;
      other_turn_q <= 1'b0;
    end else begin
      if (qpc_req_valid_o && qpc_req_ready_i) begin
        sel_valid_q <= 1'b0;
        wait_valid_q <= 1'b1;
      end
      if (pick_valid) begin
        sel_valid_q <= 1'b1;
        other_turn_q <= !take_other;
      end
      if (job_take) job_valid_q <= 1'b0;
      if (qpc_rsp_valid_i) begin
        wait_valid_q <= 1'b0;
        job_valid_q <= 1'b1;
      end
    end
    if (pick_valid) sel_q <= pick;
    if (qpc_req_valid_o && qpc_req_ready_i) wait_q <= sel_q;
    if (qpc_rsp_valid_i) begin
      job_q <= wait_q;
      job_state_q <= qpc_rsp_i.state;
      job_cqn_q <= qpc_rsp_i.send_cqn;
      job_mtu_q <= qpc_rsp_i.path_mtu;
      job_timeout_q <= qpc_rsp_i.timeout;
      job_retry_cnt_q <= qpc_rsp_i.retry_cnt;
      job_rnr_retry_q <= qpc_rsp_i.rnr_retry;
    end
  end

  // ---- state per QP --------------------------------------------------------------------------------------
  psn_t una_mem[NumQp];
  psn_t base_mem[NumQp];
  wqe_idx_t ci_mem[NumQp];
  logic [NumQp-1:0] err_q;
  fate_t fate_mem[NumQp];
  logic [NumQp-1:0] fated_q;
  fate_t fate, fate_new;
  logic fate_we;
  // messages complete that took a credit, those that have one, or all have
  credit_t used_mem[NumQp];
  credit_t limit_mem[NumQp];
  logic [NumQp-1:0] unlimited_q;

  typedef enum logic [2:0] {RunIdle, RunPop, RunSync, RunFail, RunError, RunFlush} run_state_e;
  run_state_e state_q, state_d;
  cq_idx_t cqn_q;
  wqe_idx_t ci_q;
  logic have_q;        // the RAM shows the message at ci
  logic nak_q;         // the WQE left oldest fails
  logic [7:0] fail_q;  // by this status
  retry_cause_e cause_q;
  logic progress_q;
  logic [2:0] mtu_q, retry_cnt_q, rnr_retry_q;
  logic [4:0] timeout_q;
  logic target_q;      // fate.wqe is still to come
  logic [4:0] batch_q;
  logic wake_valid_q, cqe_valid_q, qp_err_valid_q;
  qp_idx_t wake_qp_q, qp_err_qp_q;
  cqe_ev_t cqe_q;

  psn_t una;
  wqe_idx_t ci;
  assign qp = hold_i ? adm_qp_i : state_q == RunIdle ? job_q.qp : run_q.qp;
  assign una = una_mem[qp];
  assign ci = state_q == RunIdle || hold_i ? ci_mem[qp] : ci_q;
  assign qp_o = qp;
  assign adm_una_o = una;
  assign adm_ci_o = ci;
  assign adm_err_o = err_q[qp];
  assign seg_una_o = una_mem[seg_qp_i];
  assign seg_ci_o = ci_mem[seg_qp_i];
  assign seg_err_o = err_q[seg_qp_i];
  assign seg_unlimited_o = unlimited_q[seg_qp_i];
  assign seg_limit_o = limit_mem[seg_qp_i];
  assign sch_ci_o = ci_mem[sch_qp_i];
  assign sch_err_o = err_q[sch_qp_i];

  // ---- messages in flight ----------------------------------------------------------------------------------
  logic flight_re;
  wqe_idx_t flight_idx;
  flight_t flight;
  logic restore_q, restore, halt;
  assign restore = restore_q && !hold_i;
  rnic_ram #(.Width($bits(flight_t)), .Depth(NumQp * (1 << LogInflight))) u_flight (
    .clk_i,
    .we_i(flight_we_i || ctx_we_i), .waddr_i(ctx_we_i ? {qp, ctx_at_i} : flight_addr_i), .wdata_i(ctx_we_i ? ctx_flight_i : flight_i),
    .re_i(flight_re || ctx_re_i || restore), .raddr_i({qp, ctx_re_i ? ctx_at_i : flight_idx[LogInflight-1:0]}), .rdata_o(flight)
  );
  assign ctx_flight_o = flight;
  // the job at work reads its message again; it waits until then
  assign halt = hold_i || restore_q;
  always_ff @(posedge clk_i) restore_q <= rst_ni && hold_i && (restore_q || (ctx_re_i && state_q != RunIdle));

  // ---- verdict on a new job ----------------------------------------------------------------------------------
  logic live, is_ack, is_nak, ack_ok, nak_ok, ack_news, flush_ok, tx_err_ok, timer_ok;
  logic is_retry, is_local, ack_credits;
  psn_t sent, ack_dist, nak_dist;
  assign job_take = job_valid_q && state_q == RunIdle && !hold_i;
  assign live = (job_state_q inside {QpRts, QpSqd}) && !err_q[qp];
  assign sent = sent_i.max_psn - una;      // packets not acknowledged
  assign ack_dist = job_q.psn + 1'b1 - una;
  assign nak_dist = job_q.psn - una;
  assign is_local = job_q.src == AckLocal;
  assign is_ack = job_q.syndrome[6:5] == 2'b00 && !is_local;
  assign is_nak = (job_q.syndrome[5] && !job_q.syndrome[7]) || is_local;
  assign ack_ok = is_ack && !job_q.syndrome[7] && ack_dist <= sent;
  assign nak_ok = is_nak && nak_dist < sent;
  assign ack_news = ack_ok && ack_dist != '0;
  assign ack_credits = ack_ok && job_q.credits && !unlimited_q[qp];
  assign is_retry = (job_q.syndrome[6:5] == 2'b01 || job_q.syndrome == SynNakSeq) && !is_local;
  assign timer_ok = job_q.kind == JobTimer && live && fired_i;
  assign flush_ok = job_q.kind == JobFlush && job_state_q == QpErr && flushed_q[qp];
  assign tx_err_ok = job_q.kind == JobTxErr && (job_state_q inside {QpRts, QpSqd, QpErr}) &&
                     !err_q[qp] && 16'(job_q.wqe - ci) < (fated_q[qp] ? 16'(fate.wqe - ci) : 16'(pi_i - ci));

  logic take_pop, take_flush, take_fail, take_timer, una_we;
  assign una_we = job_take && job_q.kind == JobAck && live && (ack_news || nak_ok);
  assign take_pop = una_we || (job_take && live && (job_q.kind == JobKick || (job_q.kind == JobAck && ack_credits)));
  assign take_flush = job_take && flush_ok;
  assign take_fail = job_take && tx_err_ok;
  assign take_timer = job_take && timer_ok;

  // ---- the job at work ---------------------------------------------------------------------------------------
  logic cqe_free, pop, cqe_push, cqe_want, step, have_d, job_end, wake_push, err_set, own_err;
  logic acked, good, bad, at_target, doomed;
  logic [7:0] cqe_status, cqe_opcode;
  logic sync, behind, begun;
  wqe_idx_t ahead;

  assign cqe_free = !cqe_valid_q || cqe_ready_i;
  assign acked = flight.kind == FlightPackets ? psn_gt(una, flight.last_psn) : flight.kind == FlightNop;
  assign doomed = state_q == RunPop && fated_q[qp] && ci_q == fate.wqe;
  assign good = state_q == RunPop && have_q && acked && !doomed;
  assign bad = state_q == RunPop && have_q && flight.kind == FlightError && !doomed;
  assign at_target = state_q == RunFlush && target_q && ci_q == fate.wqe;
  assign fate = fate_mem[qp];
  assign fate_we = take_fail || (state_q == RunFail && ci_q != pi_i && !halt);
  assign fate_new = take_fail ? '{wqe: job_q.wqe, status: WcStatusLocQpOpErr, syndrome: '0} :
                    '{wqe: ci_q, status: fail_q, syndrome: run_q.src == AckPacket ? run_q.syndrome : 8'd0};

  always_comb begin
    cqe_want = 1'b0;
    cqe_status = WcStatusWrFlushErr;
    cqe_opcode = CqeOpcodeError;
    step = 1'b0;
    unique case (state_q)
      RunPop: begin
        step = good || bad;
        cqe_want = bad || flight.signaled;
        cqe_status = bad ? {4'd0, flight.status} : WcStatusSuccess;
        // the completion of a NOP carries its WQE opcode
        cqe_opcode = flight.kind == FlightNop && flight.op == OpNone ? WqeOpcodeNop : op_code(flight.op);
      end
      RunFlush: begin
        step = ci_q != pi_i && !batch_q[4];
        cqe_want = 1'b1;
        if (at_target) begin
          cqe_status = fate.status;
          cqe_opcode = op_code(flight.op);
        end
      end
      default: ;
    endcase
  end

  assign pop = step && !halt && (!cqe_want || cqe_free);
  assign cqe_push = pop && cqe_want;
  wqe_idx_t ci_next;
  assign ci_next = ci_q + 1'b1;
  assign have_d = ci_next != sent_i.max_next;
  assign flight_re = take_pop || take_timer || take_flush || pop;
  assign flight_idx = state_q == RunIdle ? ci : restore ? ci_q : ci_next;
  assign rd_pop_o = pop && good && op_is_rd(flight.op);
  assign rd_re_o = flight_re;
  assign rd_num_o = rd_done_i[LogMaxRd-1:0] + LogMaxRd'(rd_pop_o);

  // ---- the sending position ----------------------------------------------------------------------------------
  // something was sent that is not acknowledged, or belongs to a WQE that is not complete
  assign begun = ci != sent_i.max_next || una != sent_i.max_psn || una != base_mem[qp] || sent_i.changing;
  assign draining_o = begun;
  assign tell = state_q == RunSync && notify_q[qp] && !begun;
  assign sync = state_q == RunSync && !halt && room_i && !wake_valid_q && (!tell || cqe_free);
  assign ahead = ci_q - sent_i.next;
  // completed WQEs may be NOPs behind the last packet: the PSN alone does not tell
  assign behind = psn_gt(una, sent_i.psn) || (ahead != '0 && !ahead[15]);
  assign sync_o = sync;
  assign ask_o = '{cause: cause_q, progress: progress_q, implied: run_q.src == AckImplied, outstanding: sent_i.max_psn != una,
                   behind: behind, rewound: sent_i.psn == una, rnr_code: run_q.syndrome[4:0],
                   timeout: timeout_q, retry_cnt: retry_cnt_q, rnr_retry: rnr_retry_q};
  assign rst_valid_o = sync && act_i.restart;
  assign rst_pause_o = act_i.pause;
  assign rst_next_o = ci_q;
  assign rst_psn_o = una;
  assign rst_rd_o = rd_done_i;

  // ---- credits ---------------------------------------------------------------------------------------------
  credit_t used, limit, limit_d;
  logic credits_q, invalid;          // the job's syndrome tells credits / that there are none to tell
  assign used = used_mem[qp];
  assign limit = limit_mem[qp];
  assign invalid = run_q.syndrome[4:0] == CreditsInvalid;
  always_comb begin
    limit_d = limit;
    if (credits_q && !invalid && psn_gt(used + 24'(credit_count(run_q.syndrome[4:0])), limit))
      limit_d = used + 24'(credit_count(run_q.syndrome[4:0]));
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) unlimited_q <= '0;
    else if (init_i || load_i) unlimited_q[qp] <= load_i && keep_i.unlimited;
    else if (sync && credits_q && invalid) unlimited_q[qp] <= 1'b1;
    if ((pop && good && flight.credit) || init_i || load_i) used_mem[qp] <= init_i ? '0 : load_i ? keep_i.used : used + 1'b1;
    if (sync || init_i || load_i) limit_mem[qp] <= init_i ? '0 : load_i ? keep_i.limit : limit_d;
    if (job_take) credits_q <= job_q.kind == JobAck && live && ack_ok && job_q.credits;
  end
  assign rst_used_o = used;
  // not where an acknowledge brought the position forward: nothing there was ever tried
  assign rst_probe_o = !psn_gt(limit_d, used) && cause_q == CauseTimer && !ask_o.outstanding;
  assign rst_off_o = 32'(24'(una - base_mem[qp])) << (4'd7 + 4'(mtu_q));
  assign off_o = take_flush || (job_take && job_q.kind == JobTimer && !live) || own_err;

  always_comb begin
    state_d = state_q;
    job_end = 1'b0;
    again_valid = 1'b0;
    err_set = take_flush;
    own_err = 1'b0;
    unique case (state_q)
      RunIdle: begin
        if (take_flush) state_d = RunFlush;
        else if (take_fail && (!live || job_q.wqe == ci)) state_d = RunError;
        else if (take_pop) state_d = RunPop;
        else if (take_timer) state_d = RunSync;
        else job_end = job_take;
      end
      RunPop: if (!halt) begin  // una is that of another QP meanwhile
        if ((pop && bad) || doomed) state_d = RunError;
        else if (nak_q) begin
          if (!good && !bad) state_d = RunFail;
        end else if ((pop && !have_d && !(fated_q[qp] && fate.wqe == ci_next)) || (!good && !bad)) begin
          state_d = RunSync;
        end
      end
      RunSync: if (sync) begin
        // the wake-up looks one cycle after the last change of una and ci
        if (act_i.fail) begin
          state_d = RunFail;
        end else begin
          job_end = 1'b1;
          state_d = RunIdle;
        end
      end
      RunFail: if (!halt) begin
        if (fate_we) begin
          state_d = RunError;
        end else begin
          job_end = 1'b1;
          state_d = RunIdle;
        end
      end
      // the QP table's flush does the rest
      RunError: if (!qp_err_valid_q && !halt) begin
        err_set = 1'b1;
        own_err = 1'b1;
        job_end = 1'b1;
        state_d = RunIdle;
      end
      default: begin
        if (!step && !halt) begin
          job_end = 1'b1;
          state_d = RunIdle;
          again_valid = ci_q != pi_i;
        end
      end
    endcase
  end
  assign wake_push = job_end && state_q == RunSync;
  assign job_done_o = job_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= RunIdle;
      err_q <= '0;
      notify_q <= '0;
      check_q <= 1'b0;
      fated_q <= '0;
      wake_valid_q <= 1'b0;
      cqe_valid_q <= 1'b0;
      qp_err_valid_q <= 1'b0;
      ev_ack_o <= 1'b0;
      ev_nak_o <= 1'b0;
      ev_ghost_o <= 1'b0;
    end else begin
      state_q <= state_d;
      if (hold_i && (init_i || load_i)) err_q[qp] <= load_i && keep_i.err;
      else if (err_set) err_q[qp] <= 1'b1;
      if ((hold_i && (init_i || load_i)) || (pop && at_target)) fated_q[qp] <= hold_i && load_i && keep_i.fated;
      else if (fate_we) fated_q[qp] <= 1'b1;
      if (wake_ready_i) wake_valid_q <= 1'b0;
      if (wake_push) wake_valid_q <= 1'b1;
      if (cqe_ready_i) cqe_valid_q <= 1'b0;
      if (cqe_push || (sync && tell)) cqe_valid_q <= 1'b1;
      if (check_pop) check_q <= 1'b0;
      if (sqd_valid_i) begin
        notify_q[qp] <= sqd_notify_i;
        check_q <= 1'b1;
      end else if (sqd_end_i || load_i || (sync && tell)) begin
        notify_q[qp] <= load_i && keep_i.notify;
      end
      if (qp_err_ready_i) qp_err_valid_q <= 1'b0;
      if (own_err) qp_err_valid_q <= 1'b1;
      ev_ack_o <= job_take && job_q.kind == JobAck && live && ack_ok && job_q.src == AckPacket && !job_q.own;
      ev_nak_o <= job_take && job_q.kind == JobAck && live && nak_ok && job_q.src == AckPacket;
      ev_ghost_o <= job_take && job_q.kind == JobAck && live && !ack_ok && !nak_ok && job_q.src == AckPacket;
    end
    if (una_we || init_i || load_i) una_mem[qp] <= init_i ? init_psn_i : load_i ? keep_i.una : is_ack ? job_q.psn + 1'b1 : job_q.psn;
    if (pop || init_i || load_i) ci_mem[qp] <= init_i ? '0 : load_i ? keep_i.ci : ci_next;
    if ((pop && good && flight.kind == FlightPackets) || init_i || load_i)
      base_mem[qp] <= init_i ? init_psn_i : load_i ? keep_i.base : flight.last_psn + 1'b1;
    if (job_take) begin
      run_q <= job_q;
      cqn_q <= job_cqn_q;
      ci_q <= ci;
      have_q <= ci != sent_i.max_next;
      nak_q <= job_q.kind == JobAck && is_nak && !is_retry;
      fail_q <= is_local ? {4'd0, job_q.fail} : nak_status(job_q.syndrome);
      cause_q <= job_q.kind == JobTimer ? CauseTimer :
                 job_q.kind != JobAck || !is_nak ? CauseAck :
                 job_q.syndrome == SynNakSeq ? CauseNakSeq : CauseRnr;
      progress_q <= job_q.kind == JobAck && (is_nak ? nak_dist != '0 : ack_news);
      mtu_q <= job_mtu_q;
      timeout_q <= job_timeout_q;
      retry_cnt_q <= job_retry_cnt_q;
      rnr_retry_q <= job_rnr_retry_q;
      target_q <= fated_q[qp];
      batch_q <= '0;
    end
    if (pop) begin
      ci_q <= ci_next;
      have_q <= have_d;
      if (state_q == RunFlush && !target_q) batch_q <= batch_q + 1'b1;
      if (at_target) target_q <= 1'b0;
    end
    if (sync && act_i.fail)
      fail_q <= act_i.fail_rnr ? WcStatusRnrRetryExcErr : WcStatusRetryExcErr;
    if (wake_push) wake_qp_q <= run_q.qp;
    if (own_err) qp_err_qp_q <= run_q.qp;
    if (sqd_valid_i) check_qp_q <= qp;
    if (sync && tell) cqe_q <= '{cqn: cqn_q, qp: run_q.qp, last_wqe: 1'b1, drained: 1'b1, default: '0};
    if (fate_we || load_i) fate_mem[qp] <= load_i ? keep_i.fate : fate_new;
    if (cqe_push) begin
      cqe_q <= '{cqn: cqn_q, index: ci_q, opcode: cqe_opcode, status: cqe_status, qp: run_q.qp,
                 syndrome: at_target ? fate.syndrome : 8'd0,
                 byte_len: !good ? 32'd0 : flight.op == OpRead ? rd_len_i :
                           op_is_rd(flight.op) ? 32'd8 : 32'd0, default: '0};
    end
  end

  assign keep_o = '{una: una, base: base_mem[qp], ci: ci, err: err_q[qp], flushed: flushed_q[qp], fated: fated_q[qp], fate: fate,
                    used: used, limit: limit, unlimited: unlimited_q[qp], notify: notify_q[qp]};
  assign busy_o = (sel_valid_q && sel_q.qp == probe_qp_i) || (wait_valid_q && wait_q.qp == probe_qp_i) ||
                  (job_valid_q && job_q.qp == probe_qp_i) || (state_q != RunIdle && run_q.qp == probe_qp_i) ||
                  flush_pending_q[probe_qp_i] || (check_q && check_qp_q == probe_qp_i) || (wake_valid_q && wake_qp_q == probe_qp_i) ||
                  (cqe_valid_q && cqe_q.qp == probe_qp_i) || (qp_err_valid_q && qp_err_qp_q == probe_qp_i);
  assign wake_valid_o = wake_valid_q;
  assign wake_qp_o = wake_qp_q;
  assign cqe_valid_o = cqe_valid_q;
  assign cqe_o = cqe_q;
  assign qp_err_valid_o = qp_err_valid_q;
  assign qp_err_idx_o = qp_err_qp_q;
  assign jobs_o = 3'(sel_valid_q) + 3'(wait_valid_q) + 3'(job_valid_q) + 3'(state_q != RunIdle);
  assign idle_o = jobs_o == '0 && !wake_valid_q && !cqe_valid_q && !qp_err_valid_q && !flush_any && !check_q;

  // each QP is in the flush queue at most once, so there is always room
  logic unused;
  assign unused = ^{flush_space, flush_level, qpc_rsp_i, ackrx_i.msn, run_q.kind, run_q.psn, run_q.own, run_q.credits, run_q.fail, run_q.wqe,
                    flight_idx[15:LogInflight]};

endmodule
