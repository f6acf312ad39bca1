// SPDX-License-Identifier: Apache-2.0
//
// Requester: from doorbells to packets, and from acknowledges to completions (IBTA 9.7).
//
//   doorbell -> tx_scheduler -> wqe_fetch -> wqe_check -> segmenter -> packets, fragments
//                     ^ stop ----------------------------------'  |
//                     '--- wake --- completer <--- messages in flight
//                      restart        ^  ^ acknowledges, errors, flushes; CQEs leave here
//                                     '- retry_ctl: timers, retry counts
// What may happen to a QP that has no slot goes by way of a list outside (docs/qp-cache.md), by QPN: timers that expired (exp_*), which come
// back as tmr_* when the QP has a slot, and turns to send (leave_*, back as turn_*).
//
// Loss recovery is go-back-N without a copy of what was sent: the completer sets the sending position back to
// WQE ci and byte (una - its first PSN) * MTU, and ring and memory are read again.
//
// This module wires the parts, clears all per-QP state after reset and on QpStateInit, and answers drains.
// QpStateInit belongs to a QP's way into RESET as well as to its way into RTS: what the QP's earlier life left
// behind (producer index, queue position) is gone only then.
//
// Throughput: a single-packet WQE per 4 cycles at 512 bit; see the parts. Latency: doorbell to the WQE's read
// request 3 cycles, if nobody waits in the rotation; WQE's last beat to packet 9 cycles. Back-pressure: every stream waits for its taker;
// acknowledges wait only for the completer, which waits only for cqe_ready_i and qp_err_ready_i.
// exp_*, leave_*: whoever takes them becomes ready by himself, whatever tmr_* and turn_* wait for.
// After reset it takes doorbells and commands when the timers are cleared, some thousand cycles.
// idle_o is 1 while nothing but timers runs; wake_valid_o with wake_o tells when the next may fire (retry_ctl).

module requester
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned ClkPs = 4000,  // clock period in picoseconds
  parameter int unsigned TimerW = QpnW, // bits of a QPN that tell timers apart
  parameter int unsigned RotMax = 32    // QPs in the rotation
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [63:0]      time_i,      // cycles; may jump while idle_o
  // configuration
  input  logic [15:0]      window_i,
  input  logic [7:0]       req_interval_i,
  input  logic [3:0]       quantum_log_i,
  // doorbells
  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  qp_idx_t          db_qp_i,
  input  logic [15:0]      db_pi_i,
  input  wqe_copy_t        db_copy_i,    // of its newest WQE
  // push windows: words, taken at once; a doorbell that comes with `pushed` claims the copy, with its QPN; copies claimed that find no use
  input  logic             push_valid_i,
  input  db_page_t         push_page_i,
  input  logic [3:0]       push_word_i,
  input  logic [63:0]      push_data_i,
  input  logic             claim_valid_i,
  input  logic [7:0]       claim_qpn_low_i,
  input  logic [15:0]      claim_pi_i,
  output wqe_copy_t        claim_copy_o,
  input  logic [2:0]       drop_valid_i,
  input  copy_idx_t [2:0]  drop_at_i,
  // acknowledges; failed payload reads; QPs that went to ERR, behind their last acknowledge
  input  logic             ackrx_valid_i,
  output logic             ackrx_ready_o,
  input  ack_rx_t          ackrx_i,
  input  logic             err_valid_i,
  output logic             err_ready_o,
  input  tx_err_t          err_i,
  input  logic             flush_valid_i,
  output logic             flush_ready_o,
  input  qp_idx_t          flush_idx_i,
  // QP read ports: a doorbells, b WQE fetch, c completion
  output logic             qpa_req_valid_o,
  input  logic             qpa_req_ready_i,
  output qp_idx_t          qpa_req_idx_o,
  input  logic             qpa_rsp_valid_i,
  input  qp_attr_t         qpa_rsp_i,
  output logic             qpb_req_valid_o,
  input  logic             qpb_req_ready_i,
  output qp_idx_t          qpb_req_idx_o,
  input  logic             qpb_rsp_valid_i,
  input  qp_attr_t         qpb_rsp_i,
  output logic             qpc_req_valid_o,
  input  logic             qpc_req_ready_i,
  output qp_idx_t          qpc_req_idx_o,
  input  logic             qpc_rsp_valid_i,
  input  qp_attr_t         qpc_rsp_i,
  // AH read port
  output logic             ah_req_valid_o,
  output ah_idx_t          ah_req_idx_o,
  input  logic             ah_rsp_valid_i,
  input  ah_t              ah_rsp_i,
  // MR read port
  output logic             mr_req_valid_o,
  input  logic             mr_req_ready_i,
  output mr_idx_t          mr_req_idx_o,
  input  logic             mr_rsp_valid_i,
  input  mr_t              mr_rsp_i,
  // AXI read client for WQEs
  output logic             ar_valid_o,
  input  logic             ar_ready_i,
  output logic [63:0]      ar_addr_o,
  output logic [7:0]       ar_len_o,
  input  logic             r_valid_i,
  input  logic [DataW-1:0] r_data_i,
  input  logic             r_last_i,
  input  logic             r_err_i,
  // packets and where their payload is
  output logic             pkt_valid_o,
  input  logic             pkt_ready_i,
  output tx_pkt_t          pkt_o,
  output logic             frag_valid_o,
  input  logic             frag_ready_i,
  output tx_frag_t         frag_o,
  output logic             inl_valid_o,
  input  logic             inl_ready_i,
  output logic [InlineBytes*8-1:0] inl_data_o,
  output logic [6:0]       inl_len_o,
  // completions
  output logic             cqe_valid_o,
  input  logic             cqe_ready_i,
  output cqe_ev_t          cqe_o,
  output logic             qp_err_valid_o,
  input  logic             qp_err_ready_i,
  output qp_idx_t          qp_err_idx_o,
  // changes of the MR table; barrier on the responder's writes
  output logic             chg_valid_o,
  output qp_idx_t          chg_qp_o,          // whose; chg_o.qpn is not filled in
  input  logic             chg_ready_i,
  output mr_change_t       chg_o,
  input  logic             chg_rsp_valid_i,
  input  mr_result_e       chg_rsp_i,
  output logic             bar_valid_o,
  input  logic             bar_ready_i,
  input  logic             bar_done_i,
  // administration
  input  logic             adm_valid_i,
  output logic             adm_ready_o,
  input  qp_admin_t        adm_i,
  output logic             adm_rsp_valid_o,
  output req_query_t       adm_rsp_o,
  // contexts (docs/qp-cache.md): what is kept of a slot that has nothing under way, or one of its messages in flight, or one of its READs
  // and atomics; read or (ctx_load_i) written; ctx_rsp_valid_o ends it, and what was read is there in that cycle
  input  qp_idx_t          probe_qp_i,
  output logic             busy_o,         // something of probe_qp_i is under way
  output logic [NumQp-1:0] open_o,         // has WQEs that are not complete (for a choice: right when nothing is under way)
  input  logic             ctx_valid_i,
  output logic             ctx_ready_o,
  input  logic             ctx_load_i,
  input  keep_e            ctx_what_i,
  input  qp_idx_t          ctx_qp_i,
  input  logic [LogInflight-1:0] ctx_at_i, // of the message; READ: its number modulo MaxRdAtomic
  input  qpn_t             ctx_qpn_i,      // with ctx_load_i and KeepState: whose slot it is now
  input  req_keep_t        ctx_i,
  input  flight_t          ctx_flight_i,
  input  rd_entry_t        ctx_entry_i,
  output logic             ctx_rsp_valid_o,
  output req_keep_t        ctx_o,
  output flight_t          ctx_flight_o,
  output rd_entry_t        ctx_entry_o,
  input  logic             drain_i,
  output logic             drain_done_o,
  output logic [3:0]       ev_wqe_o,
  output logic             ev_push_o,         // a WQE was taken from a push window
  output logic [2:0]       ev_push_unused_o,  // doorbells with `pushed` that found no use for it
  output logic             ev_bad_db_o,
  output logic             ev_ack_o,
  output logic             ev_nak_o,
  output logic             ev_ghost_o,
  output logic             ev_window_o,
  output logic             ev_credit_o,   // a QP waits for credits
  output logic             ev_axi_err_o,
  output logic             ev_timeout_o,  // transport timer expired with packets outstanding
  output logic             ev_nak_seq_o,  // NAK sequence error
  output logic             ev_rnr_o,      // RNR NAK
  output logic             ev_again_o,    // a packet is sent again
  output logic             ev_read_o,     // a READ request goes
  output logic             ev_atomic_o,   // an atomic request goes
  // responses awaited: view for the receive side, and what became of them (read_table)
  input  logic             rd_re_i,
  input  qp_idx_t          rd_qp_i,
  output rd_view_t         rd_view_o,
  input  logic             rd_update_valid_i,
  input  rd_update_t       rd_update_i,
  // the list of QPs to which something happened: somebody is there; timers that expired, QPs that want a turn; from its head, with a slot
  input  logic             list_busy_i,
  input  logic             closed_i,       // somebody waits for a slot in use: turns are short, and everybody leaves the rotation after one
  output logic             exp_valid_o,
  input  logic             exp_ready_i,
  output qpn_t             exp_qpn_o,
  input  logic             tmr_valid_i,
  output logic             tmr_ready_o,
  input  qp_idx_t          tmr_qp_i,
  output logic             leave_valid_o,
  input  logic             leave_ready_i,
  output qp_idx_t          leave_qp_o,
  input  logic             turn_valid_i,
  output logic             turn_ready_o,
  input  qp_idx_t          turn_qp_i,
  output logic             wake_valid_o,
  output logic [63:0]      wake_o,
  output logic             idle_o
);

  // ---- administration: one cycle in which nothing else changes state ------------------------------------
  logic [QpIdxW:0] sweep_q;  // after reset every QP is cleared; the top bit says done
  logic swept, adm_q, adm_rsp_valid_q, hold, init, resume, draining, sqd_busy;
  logic [NumQp-1:0] sqd_q;     // SQD: no message is begun
  qp_admin_t adm_cmd_q;
  req_query_t adm_rsp_q;
  qp_idx_t adm_qp;
  psn_t init_psn;
  wqe_idx_t adm_pi, adm_next, adm_ci;
  psn_t adm_psn, adm_una;
  logic adm_err;

  logic timers_ready, room;
  assign swept = sweep_q[QpIdxW] && timers_ready;
  // a context is read or written in such a cycle too; an entry of the read table when no view is asked for
  logic ctx_q, ctx_load_q, ctx_fire, ctx_state, ctx_flight, ctx_read, load;
  keep_e ctx_what_q;
  qp_idx_t ctx_qp_q;
  qpn_t ctx_qpn_q;
  logic [LogInflight-1:0] ctx_at_q;
  req_keep_t ctx_in_q, keep;
  flight_t ctx_flight_in_q;
  rd_entry_t ctx_entry_in_q;
  assign keep.sqd = sqd_q[adm_qp];
  assign ctx_ready_o = swept && !adm_q && !adm_valid_i && !ctx_q;
  assign ctx_fire = ctx_q && (ctx_what_q != KeepRead || ctx_load_q || !rd_re_i);
  assign ctx_state = ctx_q && ctx_what_q == KeepState;
  assign ctx_flight = ctx_q && ctx_what_q == KeepFlight;
  assign ctx_read = ctx_q && ctx_what_q == KeepRead;
  assign load = ctx_state && ctx_load_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ctx_q <= 1'b0;
      ctx_rsp_valid_o <= 1'b0;
    end else begin
      ctx_q <= ctx_q ? !ctx_fire : ctx_valid_i && ctx_ready_o;
      ctx_rsp_valid_o <= ctx_fire;
    end
    if (ctx_valid_i && ctx_ready_o) begin
      ctx_load_q <= ctx_load_i;
      ctx_what_q <= ctx_what_i;
      ctx_qp_q <= ctx_qp_i;
      ctx_at_q <= ctx_at_i;
      ctx_qpn_q <= ctx_qpn_i;
      ctx_in_q <= ctx_i;
      ctx_flight_in_q <= ctx_flight_i;
      ctx_entry_in_q <= ctx_entry_i;
    end
    if (ctx_state) ctx_o <= keep;
  end

  assign adm_ready_o = swept && !adm_q && !sqd_busy && !ctx_q && room;
  assign hold = adm_q || !swept || ctx_q;
  assign init = !swept || (adm_q && adm_cmd_q.op == QpStateInit);
  assign resume = adm_q && adm_cmd_q.op == QpStateResume;
  assign adm_qp = !swept ? sweep_q[QpIdxW-1:0] : ctx_q ? ctx_qp_q : adm_cmd_q.qp;
  assign init_psn = swept ? adm_cmd_q.psn : '0;
  assign adm_rsp_valid_o = adm_rsp_valid_q;
  assign adm_rsp_o = adm_rsp_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweep_q <= '0;
      adm_q <= 1'b0;
      adm_rsp_valid_q <= 1'b0;
      sqd_q <= '0;
    end else begin
      if (init || resume || load) sqd_q[adm_qp] <= load && ctx_in_q.sqd;
      else if (adm_q && adm_cmd_q.op == QpStateDrain) sqd_q[adm_qp] <= 1'b1;
      if (!sweep_q[QpIdxW]) sweep_q <= sweep_q + 1'b1;
      adm_q <= adm_valid_i && adm_ready_o;
      adm_rsp_valid_q <= adm_q;
    end
    if (adm_valid_i && adm_ready_o) adm_cmd_q <= adm_i;
    if (adm_q) begin
      // a failed QP was flushed up to its producer index, whatever had been sent
      adm_rsp_q <= init ? '{next_psn: init_psn, una_psn: init_psn, default: '0} :
                   '{next_psn: adm_psn, una_psn: adm_una, pi: adm_pi,
                     next: adm_err ? adm_pi : adm_next, ci: adm_ci, draining: sqd_q[adm_qp] && draining};
    end
  end

  // ---- wires ------------------------------------------------------------------------------------------------
  logic db_busy, db_ready, db_flush_valid, db_flush_ready, posted;
  qp_idx_t db_flush_idx;
  qp_idx_t op_qp;
  wqe_idx_t op_ci;
  logic op_err;
  logic stop_valid, stop_ready, stop_closed, again_valid, again_ready;
  wqe_idx_t stop_next;
  logic wake_valid, wake_ready;
  qp_idx_t wake_qp;
  qp_idx_t gen_qp, seg_qp, cpl_qp;
  gen_t gen_head, gen_seg;
  wqe_idx_t cpl_pi, seg_ci;
  sent_t cpl_sent;
  logic gen_seg_paused;
  logic [InlineBytes*8-1:0] msg_inline;
  logic sync, off, fired, rst_valid, rst_pause, sent_valid;
  retry_ask_t ask;
  retry_act_t act;
  wqe_idx_t rst_next;
  logic [31:0] rst_off;
  rd_num_t rst_rd, rd_num, seg_rd_done, cpl_rd_done;
  credit_t rst_used, seg_limit;
  logic rst_probe, seg_unlimited;
  logic rd_we, rd_pop, cpl_rd_re;
  logic [LogMaxRd-1:0] cpl_rd_num;
  logic [31:0] cpl_rd_len;
  rd_entry_t rd_entry;
  psn_t rx_max_psn;
  psn_t rst_psn;
  qp_idx_t sent_qp;
  logic [4:0] sent_timeout;
  turn_t seg_turn;
  logic others, size_we;
  logic [3:0] size_lg;
  logic tkt_valid, tkt_ready, fetching, sched_idle;
  ticket_t tkt;
  logic [63:0] tkt_base;
  logic [14:0] tkt_slot;
  logic item_valid, item_ready, msg_valid, msg_ready;
  wqe_item_t item;
  logic [1023:0] item_wqe;
  msg_t msg;
  psn_t seg_una;
  logic seg_idle;
  logic seg_err;
  logic flight_we;
  logic [QpIdxW+LogInflight-1:0] flight_addr;
  flight_t flight;
  logic kick_valid, kick_ready, retire;
  qp_idx_t retire_qp;
  logic sched_busy, seg_busy, cpl_busy, tkt_busy;
  logic [2:0] jobs;
  logic job_done, cpl_idle;

  logic push_rd_en, push_used;
  logic [1:0] push_free;
  copy_idx_t [1:0] push_free_at;
  logic [$clog2(1024/DataW)-1:0] push_row;
  logic [DataW-1:0] push_data;

  assign db_ready_o = db_ready && swept;
  assign ev_push_o = push_free[1] && push_used;
  assign ev_push_unused_o = 3'(claim_valid_i && !claim_copy_o.valid) + 3'(push_free[0]) + 3'(push_free[1] && !push_used) +
                            3'(drop_valid_i[0]) + 3'(drop_valid_i[1]) + 3'(drop_valid_i[2]);

  wqe_push #(.DataW(DataW)) u_push (
    .clk_i, .rst_ni, .clear_i(init),
    .wr_valid_i(push_valid_i), .wr_page_i(push_page_i), .wr_word_i(push_word_i), .wr_data_i(push_data_i),
    .db_valid_i(claim_valid_i), .db_page_i(push_page_i), .db_qpn_low_i(claim_qpn_low_i), .db_pi_i(claim_pi_i),
    .db_copy_o(claim_copy_o),
    .rd_en_i(push_rd_en), .rd_at_i(push_free_at[1]), .rd_row_i(push_row), .rd_data_o(push_data),
    .free_valid_i({drop_valid_i, push_free}), .free_at_i({drop_at_i, push_free_at})
  );

  tx_scheduler #(.RotMax(RotMax)) u_scheduler (
    .clk_i, .rst_ni, .quantum_log_i,
    .db_valid_i(db_valid_i && swept), .db_ready_o(db_ready), .db_qp_i, .db_pi_i, .ev_bad_db_o,
    .db_copy_i, .copy_free_o(push_free[0]), .copy_at_o(push_free_at[0]),
    .db_busy_o(db_busy), .posted_o(posted),
    .flush_valid_o(db_flush_valid), .flush_ready_i(db_flush_ready), .flush_idx_o(db_flush_idx),
    .qpa_req_valid_o, .qpa_req_ready_i, .qpa_req_idx_o, .qpa_rsp_valid_i, .qpa_rsp_i,
    .qpb_req_valid_o, .qpb_req_ready_i, .qpb_req_idx_o, .qpb_rsp_valid_i, .qpb_rsp_i,
    .hold_i(hold), .init_i(init), .resume_i(resume), .adm_qp_i(adm_qp), .adm_pi_o(adm_pi),
    .load_i(load), .keep_i(ctx_in_q.sched), .keep_o(keep.sched), .probe_qp_i, .busy_o(sched_busy), .room_o(room),
    .list_busy_i(list_busy_i || closed_i), .leave_valid_o, .leave_ready_i, .leave_qp_o, .turn_valid_i, .turn_ready_o, .turn_qp_i,
    .op_qp_o(op_qp), .op_ci_i(op_ci), .op_err_i(op_err),
    .stop_valid_i(stop_valid), .stop_ready_o(stop_ready), .stop_qp_i(seg_qp),
    .stop_next_i(stop_next), .stop_closed_i(stop_closed),
    .again_valid_i(again_valid), .again_ready_o(again_ready),
    .rst_valid_i(rst_valid), .rst_qp_i(cpl_qp), .rst_next_i(rst_next), .rst_pause_i(rst_pause),
    .wake_valid_i(wake_valid), .wake_ready_o(wake_ready), .wake_qp_i(wake_qp),
    .gen_a_qp_i(gen_qp), .gen_a_o(gen_head), .gen_b_qp_i(seg_qp), .gen_b_o(gen_seg),
    .gen_b_paused_o(gen_seg_paused),
    .pi_qp_i(cpl_qp), .pi_o(cpl_pi),
    .seg_qp_i(seg_qp), .seg_turn_i(seg_turn), .others_o(others),
    .size_we_i(size_we), .size_qp_i(seg_qp), .size_lg_i(size_lg),
    .tkt_valid_o(tkt_valid), .tkt_ready_i(tkt_ready), .tkt_o(tkt), .tkt_base_o(tkt_base),
    .tkt_slot_o(tkt_slot), .fetching_o(fetching), .idle_o(sched_idle)
  );

  wqe_fetch #(.DataW(DataW)) u_fetch (
    .clk_i, .rst_ni,
    .tkt_valid_i(tkt_valid), .tkt_ready_o(tkt_ready), .tkt_i(tkt), .tkt_base_i(tkt_base),
    .tkt_slot_i(tkt_slot),
    .ar_valid_o, .ar_ready_i, .ar_addr_o, .ar_len_o, .r_valid_i, .r_data_i, .r_last_i, .r_err_i,
    .push_rd_en_o(push_rd_en), .push_at_o(push_free_at[1]), .push_row_o(push_row),
    .push_data_i(push_data), .push_free_o(push_free[1]), .push_used_o(push_used),
    .gen_qp_o(gen_qp), .gen_i(gen_head),
    .item_valid_o(item_valid), .item_ready_i(item_ready), .item_o(item), .item_wqe_o(item_wqe),
    .ev_wqe_o, .ev_axi_err_o
  );

  wqe_check u_check (
    .clk_i, .rst_ni,
    .item_valid_i(item_valid), .item_ready_o(item_ready), .item_i(item), .item_wqe_i(item_wqe),
    .ah_req_valid_o, .ah_req_idx_o, .ah_rsp_valid_i, .ah_rsp_i,
    .mr_req_valid_o, .mr_req_ready_i, .mr_req_idx_o, .mr_rsp_valid_i, .mr_rsp_i,
    .msg_valid_o(msg_valid), .msg_ready_i(msg_ready), .msg_o(msg), .inline_o(msg_inline),
    .seg_idle_i(seg_idle)
  );

  segmenter u_segmenter (
    .clk_i, .rst_ni, .window_i, .req_interval_i, .quantum_log_i,
    .msg_valid_i(msg_valid), .msg_ready_o(msg_ready), .msg_i(msg), .inline_i(msg_inline),
    .hold_i(hold), .init_i(init), .adm_qp_i(adm_qp), .init_psn_i(init_psn),
    .adm_next_o(adm_next), .adm_psn_o(adm_psn),
    .load_i(load), .keep_i(ctx_in_q.seg), .keep_o(keep.seg), .probe_qp_i, .busy_o(seg_busy), .retire_qp_o(retire_qp),
    .sync_i(sync), .rst_valid_i(rst_valid), .rst_next_i(rst_next), .rst_off_i(rst_off),
    .rst_psn_i(rst_psn),
    .qp_o(seg_qp), .turn_o(seg_turn), .sqd_i(sqd_q[seg_qp]), .gen_i(gen_seg), .paused_i(gen_seg_paused),
    .una_i(seg_una), .ci_i(seg_ci), .err_i(seg_err), .others_i(others), .short_i(closed_i),
    .unlimited_i(seg_unlimited), .limit_i(seg_limit), .rst_used_i(rst_used), .rst_probe_i(rst_probe),
    .cpl_qp_i(cpl_qp), .cpl_sent_o(cpl_sent), .rx_qp_i(rd_qp_i), .rx_max_psn_o(rx_max_psn),
    .rd_done_i(seg_rd_done), .rst_rd_i(rst_rd), .rd_we_o(rd_we), .rd_num_o(rd_num),
    .rd_entry_o(rd_entry),
    .stop_valid_o(stop_valid), .stop_ready_i(stop_ready), .stop_next_o(stop_next),
    .stop_closed_o(stop_closed), .again_valid_o(again_valid), .again_ready_i(again_ready),
    .size_we_o(size_we), .size_lg_o(size_lg),
    .flight_we_o(flight_we), .flight_addr_o(flight_addr), .flight_o(flight),
    .kick_valid_o(kick_valid), .kick_ready_i(kick_ready),
    .chg_valid_o, .chg_ready_i, .chg_o, .chg_rsp_valid_i, .chg_rsp_i,
    .bar_valid_o, .bar_ready_i, .bar_done_i, .idle_o(seg_idle),
    .pkt_valid_o, .pkt_ready_i, .pkt_o, .frag_valid_o, .frag_ready_i, .frag_o,
    .inl_valid_o, .inl_ready_i, .inl_data_o, .inl_len_o,
    .sent_valid_o(sent_valid), .sent_qp_o(sent_qp), .sent_timeout_o(sent_timeout), .ev_again_o,
    .retire_o(retire), .ev_window_o, .ev_credit_o, .ev_read_o, .ev_atomic_o
  );

  read_table u_read_table (
    .clk_i, .rst_ni, .init_i(init), .init_qp_i(adm_qp),
    .load_i(load), .keep_i(ctx_in_q.rd), .keep_o(keep.rd),
    .ctx_re_i(ctx_read && ctx_fire && !ctx_load_q), .ctx_we_i(ctx_read && ctx_load_q), .ctx_num_i(ctx_at_q[LogMaxRd-1:0]),
    .ctx_entry_i(ctx_entry_in_q), .ctx_entry_o,
    .seg_qp_i(seg_qp), .seg_done_o(seg_rd_done),
    .seg_we_i(rd_we), .seg_num_i(rd_num), .seg_entry_i(rd_entry),
    .cpl_qp_i(cpl_qp), .cpl_done_o(cpl_rd_done), .cpl_pop_i(rd_pop), .cpl_re_i(cpl_rd_re),
    .cpl_num_i(cpl_rd_num), .cpl_len_o(cpl_rd_len),
    .rx_re_i(rd_re_i), .rx_qp_i(rd_qp_i), .rx_max_psn_i(rx_max_psn), .rx_view_o(rd_view_o),
    .rx_update_valid_i(rd_update_valid_i), .rx_update_i(rd_update_i)
  );

  completer u_completer (
    .clk_i, .rst_ni,
    .ackrx_valid_i, .ackrx_ready_o, .ackrx_i, .err_valid_i, .err_ready_o, .err_i,
    .flush_valid_i, .flush_ready_o, .flush_idx_i,
    .db_flush_valid_i(db_flush_valid), .db_flush_ready_o(db_flush_ready),
    .db_flush_idx_i(db_flush_idx),
    .kick_valid_i(kick_valid), .kick_ready_o(kick_ready), .kick_idx_i(seg_qp),
    .tmr_valid_i, .tmr_ready_o, .tmr_idx_i(tmr_qp_i),
    .qpc_req_valid_o, .qpc_req_ready_i, .qpc_req_idx_o, .qpc_rsp_valid_i, .qpc_rsp_i,
    .hold_i(hold), .init_i(init), .adm_qp_i(adm_qp), .init_psn_i(init_psn),
    .adm_una_o(adm_una), .adm_ci_o(adm_ci), .adm_err_o(adm_err), .draining_o(draining),
    .sqd_valid_i(adm_q && adm_cmd_q.op == QpStateDrain), .sqd_notify_i(adm_cmd_q.notify), .sqd_end_i(init || resume),
    .sqd_busy_o(sqd_busy),
    .load_i(load), .keep_i(ctx_in_q.cpl), .keep_o(keep.cpl),
    .ctx_re_i(ctx_flight && !ctx_load_q), .ctx_we_i(ctx_flight && ctx_load_q), .ctx_at_i(ctx_at_q),
    .ctx_flight_i(ctx_flight_in_q), .ctx_flight_o, .probe_qp_i, .busy_o(cpl_busy),
    .seg_qp_i(seg_qp), .seg_una_o(seg_una), .seg_ci_o(seg_ci), .seg_err_o(seg_err),
    .seg_unlimited_o(seg_unlimited), .seg_limit_o(seg_limit), .rst_used_o(rst_used), .rst_probe_o(rst_probe),
    .sch_qp_i(op_qp), .sch_ci_o(op_ci), .sch_err_o(op_err),
    .qp_o(cpl_qp), .sent_i(cpl_sent), .pi_i(cpl_pi),
    .room_i(room), .sync_o(sync), .ask_o(ask), .act_i(act), .off_o(off), .fired_i(fired),
    .rst_valid_o(rst_valid), .rst_next_o(rst_next), .rst_off_o(rst_off), .rst_psn_o(rst_psn),
    .rst_pause_o(rst_pause), .rst_rd_o(rst_rd),
    .rd_done_i(cpl_rd_done), .rd_pop_o(rd_pop), .rd_re_o(cpl_rd_re), .rd_num_o(cpl_rd_num),
    .rd_len_i(cpl_rd_len),
    .flight_we_i(flight_we), .flight_addr_i(flight_addr), .flight_i(flight),
    .wake_valid_o(wake_valid), .wake_ready_i(wake_ready), .wake_qp_o(wake_qp),
    .cqe_valid_o, .cqe_ready_i, .cqe_o,
    .qp_err_valid_o, .qp_err_ready_i, .qp_err_idx_o,
    .ev_ack_o, .ev_nak_o, .ev_ghost_o,
    .jobs_o(jobs), .job_done_o(job_done), .idle_o(cpl_idle)
  );

  assign chg_qp_o = seg_qp;

  // after reset a slot belongs to the QPN that ends like its number
  retry_ctl #(.ClkPs(ClkPs), .TimerW(TimerW)) u_retry (
    .clk_i, .rst_ni, .time_i, .ready_o(timers_ready),
    .sent_valid_i(sent_valid), .sent_qp_i(sent_qp), .sent_timeout_i(sent_timeout),
    .qp_i(cpl_qp), .ask_valid_i(sync), .ask_i(ask), .act_o(act),
    .off_valid_i(off || (init && swept)),
    .load_i(load || !swept), .load_qpn_i(swept ? ctx_qpn_q : qpn_t'(adm_qp)),
    .keep_i(swept ? ctx_in_q.retry : '0), .keep_o(keep.retry), .fired_o(fired),
    .exp_valid_o, .exp_ready_i, .exp_qpn_o,
    .wake_valid_o, .wake_o, .ev_timeout_o, .ev_nak_seq_o, .ev_rnr_o
  );

  // ---- what is under way of a slot -------------------------------------------------------------------------
  slot_count #(.Width(5)) u_tickets (
    .clk_i, .rst_ni, .begin_i(tkt_valid), .begin_qp_i(tkt.qp), .end_i(retire), .end_qp_i(retire_qp), .probe_qp_i, .busy_o(tkt_busy)
  );
  assign busy_o = sched_busy || seg_busy || cpl_busy || tkt_busy;

  // ---- what is posted and not complete --------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_o <= '0;
    end else begin
      if (job_done) open_o[cpl_qp] <= cpl_pi != adm_ci;
      if (posted) open_o[op_qp] <= 1'b1;
      if (init || load) open_o[adm_qp] <= load && ctx_in_q.sched.pi != ctx_in_q.cpl.ci;
    end
  end

  // ---- drain --------------------------------------------------------------------------------------------------
  // Work flows one way: doorbell and fetch decisions, tickets, packets, completion jobs, CQEs. Each step
  // remembers what is there when the step before has ended.
  typedef enum logic [2:0] {
    DrainOff, DrainDecisions, DrainTickets, DrainPackets, DrainJobs, DrainCqes, DrainDone
  } drain_state_e;
  drain_state_e drain_q;
  logic [4:0] tickets_q, left_q;
  logic seen_a_q, seen_b_q;   // the two places of this step were seen free
  logic seen_a, seen_b;

  always_comb begin
    seen_a = seen_a_q;
    seen_b = seen_b_q;
    unique case (drain_q)
      DrainDecisions: begin
        seen_a = seen_a_q || !db_busy;
        seen_b = seen_b_q || !fetching;
      end
      DrainPackets: begin
        seen_a = seen_a_q || !pkt_valid_o || pkt_ready_i;
        seen_b = seen_b_q || !frag_valid_o || frag_ready_i;
      end
      DrainCqes: begin
        seen_a = seen_a_q || !cqe_valid_o || cqe_ready_i;
        seen_b = seen_b_q || !qp_err_valid_o || qp_err_ready_i;
      end
      default: ;
    endcase
  end
  assign drain_done_o = drain_q == DrainDone && drain_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= DrainOff;
      tickets_q <= '0;
      seen_a_q <= 1'b0;
      seen_b_q <= 1'b0;
    end else begin
      tickets_q <= tickets_q + 5'(tkt_valid) - 5'(retire);
      seen_a_q <= seen_a && !(seen_a && seen_b);
      seen_b_q <= seen_b && !(seen_a && seen_b);
      if (!drain_i) begin
        drain_q <= DrainOff;
        seen_a_q <= 1'b0;
        seen_b_q <= 1'b0;
      end else begin
        unique case (drain_q)
          DrainOff: drain_q <= DrainDecisions;
          DrainDecisions: if (seen_a && seen_b) begin
            drain_q <= DrainTickets;
            left_q <= tickets_q + 5'(tkt_valid) - 5'(retire);
          end
          DrainTickets: begin
            left_q <= left_q - 5'(retire);
            if (left_q == '0) drain_q <= DrainPackets;
          end
          DrainPackets: if (seen_a && seen_b) begin
            drain_q <= DrainJobs;
            left_q <= 5'(jobs) - 5'(job_done);
          end
          DrainJobs: begin
            left_q <= left_q - 5'(job_done);
            if (left_q == '0) drain_q <= DrainCqes;
          end
          DrainCqes: if (seen_a && seen_b) drain_q <= DrainDone;
          default: ;
        endcase
      end
    end
  end

  assign idle_o = swept && !adm_q && !ctx_q && !adm_rsp_valid_q && !db_valid_i && !db_busy && sched_idle &&
                  tickets_q == '0 && !stop_valid && !again_valid && cpl_idle && !pkt_valid_o &&
                  !frag_valid_o && !inl_valid_o && !exp_valid_o && !tmr_valid_i &&
                  !ackrx_valid_i && !err_valid_i && !flush_valid_i && !adm_valid_i;

endmodule
