// SPDX-License-Identifier: Apache-2.0
//
// Requester against models of host memory, QP and MR tables, egress, a peer that acknowledges, and a CQ.
//
// Every packet, fragment and completion is compared with what the posted WQEs call for: opcode, PSN,
// lengths, addresses, AckReq, order, status. Phases: random traffic at several windows and latencies, every
// error, failed QPs brought up again, bad doorbells, drain and reset under load, fairness, speed; loss recovery
// against a peer that receives as IBTA 9.7.4 says: lost packets, late, lost and doubled acknowledges, RNR, silence. RDMA
// READ and atomics: the bench looks into the read table as rx_transport does, compares the entries, and turns responses and
// acknowledges into what rx_transport makes of them; lost responses, fences, limits, responses that cannot be used; credits of a
// peer whose receives come slowly, with updates and without, over a link with loss and without: nothing that needs a credit goes
// without, but for what IBTA 9.7.7.2 lets pass. Time jumps to the next timer when nothing else is under way. Doorbells come with pushed
// WQEs, good ones, and others that would be noticed if they were used: torn, stale, of another QP or page, of the wrong size, behind
// WQEs that wait. QPs are stopped (SQD) and go on at random times: nothing is begun meanwhile, and the event comes once, behind the
// completions of all that was. QPs change
// their slots under traffic, losses, and failures, also while their timers run: what is kept of one that has nothing under way is read out,
// overwritten, and after some time loaded into another slot. Timers that expire and turns that are handed out wait in a list of QPs, where
// some overtake others, and come back when their QP has a slot; that list is busy at random.

module requester_tb
  import rnic_pkg::*;
  import rnic_regs_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int NQ = 12;      // QPs in use
  // variables as loop bounds keep Verilator from unrolling (and inlining tasks) many times over
  int nq = NQ, one = 1;
  localparam int Ring = 512;   // reference entries per QP
  localparam int Patience = 20000;
  localparam logic [23:0] QpnBase = 24'd256;  // QPN of slot 0

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  longint cyc = 0;
  bit verbose = $test$plusargs("verbose") != 0;

  // ---- device under test ---------------------------------------------------------------------------
  logic [15:0] window = 64;
  logic [7:0] req_interval = 4;
  logic [3:0] quantum_log = 10;
  logic db_valid = 0, db_ready;
  qp_idx_t db_qp = 0;
  logic [7:0] db_qpn_low = 0;
  logic [15:0] db_pi = 0;
  logic db_pushed = 0, push_valid = 0, ev_push;
  db_page_t db_page = 0;
  logic [3:0] push_word = 0;
  logic [63:0] push_data = 0;
  logic [2:0] ev_push_unused;
  wqe_copy_t claim_copy, db_copy;
  always_comb begin
    db_copy = claim_copy;
    db_copy.valid = db_pushed && claim_copy.valid;
  end
  logic ackrx_valid = 0, ackrx_ready;
  ack_rx_t ackrx = '0;
  logic err_valid = 0, err_ready;
  tx_err_t err = '0;
  logic flush_valid = 0, flush_ready;
  qp_idx_t flush_idx = 0;
  logic [2:0] qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0;
  qp_idx_t qp_req_idx[3];
  qp_attr_t qp_rsp[3];
  logic mr_req_valid, mr_req_ready = 0, mr_rsp_valid = 0;
  mr_idx_t mr_req_idx;
  mr_t mr_rsp = '0;
  logic ar_valid, ar_ready = 0, r_valid = 0, r_last = 0, r_err = 0;
  logic [63:0] ar_addr;
  logic [7:0] ar_len;
  logic [DataW-1:0] r_data = '0;
  logic pkt_valid, pkt_ready = 0, frag_valid, frag_ready = 0;
  tx_pkt_t pkt;
  tx_frag_t frag;
  logic cqe_valid, cqe_ready = 0;
  cqe_ev_t cqe;
  logic qp_err_valid, qp_err_ready = 0;
  qp_idx_t qp_err_idx, qp_err_old;
  bit qp_err_wait = 0, cqe_wait = 0, pkt_wait = 0;
  cqe_ev_t cqe_old;
  tx_pkt_t pkt_old;
  logic adm_valid = 0, adm_ready, adm_rsp_valid;
  qp_admin_t adm = '0;
  req_query_t adm_rsp;
  logic drain = 0, drain_done;
  logic [3:0] ev_wqe;
  logic ev_bad_db, ev_ack, ev_nak, ev_ghost, ev_window, ev_credit, ev_axi_err, idle;
  logic ev_timeout, ev_nak_seq, ev_rnr, ev_again, wake_valid;
  logic [63:0] tim = 64'h1234_5600, wake;
  logic inl_valid, inl_ready = 0, ah_req_valid, ah_rsp_valid = 0;
  ah_idx_t ah_req_idx;
  ah_t ah_rsp;
  logic ev_read, ev_atomic, rd_re = 0, rd_update_valid = 0;
  qp_idx_t rd_qp = '0;
  rd_view_t rd_view;
  rd_update_t rd_update = '0;
  logic [InlineBytes*8-1:0] inl_data;
  logic [6:0] inl_len;

  // changes of the MR table: always done; each WQE once
  logic chg_valid, chg_rsp_valid = 0, bar_valid, bar_done = 0, bar_taken = 0;
  mr_change_t chg, chg_now;
  qp_idx_t chg_qp;
  mr_result_e chg_rsp = MrDone;
  int chg_wait = 0, bar_wait = 0, n_change = 0, n_barrier = 0;

  qp_idx_t probe_qp = '0, ctx_qp = '0;
  qpn_t ctx_qpn = '0, exp_qpn;
  logic list_busy = 0, closed = 0, exp_valid, exp_ready = 0, tmr_valid = 0, tmr_ready, leave_valid, leave_ready = 0, turn_valid = 0, turn_ready;
  qp_idx_t tmr_qp = '0, leave_qp, turn_qp = '0;
  logic [NumQp-1:0] open;
  int n_open = 0;
  logic slot_busy, ctx_valid = 0, ctx_ready, ctx_load = 0, ctx_rsp_valid;
  keep_e ctx_what = KeepState;
  logic [LogInflight-1:0] ctx_at = '0;
  req_keep_t ctx_keep = '0, got_keep;
  flight_t ctx_flight = '0, got_flight;
  rd_entry_t ctx_entry = '0, got_entry;

  requester #(.DataW(DataW), .TimerW(DataW == 64 ? 10 : 16), .RotMax(DataW == 64 ? 4 : 2)) dut (
    .clk_i(clk), .rst_ni(rst_n), .time_i(tim), .window_i(window), .req_interval_i(req_interval),
    .quantum_log_i(quantum_log),
    .db_valid_i(db_valid), .db_ready_o(db_ready), .db_qp_i(db_qp), .db_pi_i(db_pi),
    .db_copy_i(db_copy), .claim_valid_i(db_valid && db_ready && db_pushed),
    .claim_qpn_low_i(db_qpn_low), .claim_pi_i(db_pi), .claim_copy_o(claim_copy), .drop_valid_i('0), .drop_at_i('0),
    .push_valid_i(push_valid), .push_page_i(db_page), .push_word_i(push_word), .push_data_i(push_data),
    .ev_push_o(ev_push), .ev_push_unused_o(ev_push_unused),
    .ackrx_valid_i(ackrx_valid), .ackrx_ready_o(ackrx_ready), .ackrx_i(ackrx),
    .err_valid_i(err_valid), .err_ready_o(err_ready), .err_i(err),
    .flush_valid_i(flush_valid), .flush_ready_o(flush_ready), .flush_idx_i(flush_idx),
    .qpa_req_valid_o(qp_req_valid[0]), .qpa_req_ready_i(qp_req_ready[0]),
    .qpa_req_idx_o(qp_req_idx[0]), .qpa_rsp_valid_i(qp_rsp_valid[0]), .qpa_rsp_i(qp_rsp[0]),
    .qpb_req_valid_o(qp_req_valid[1]), .qpb_req_ready_i(qp_req_ready[1]),
    .qpb_req_idx_o(qp_req_idx[1]), .qpb_rsp_valid_i(qp_rsp_valid[1]), .qpb_rsp_i(qp_rsp[1]),
    .qpc_req_valid_o(qp_req_valid[2]), .qpc_req_ready_i(qp_req_ready[2]),
    .qpc_req_idx_o(qp_req_idx[2]), .qpc_rsp_valid_i(qp_rsp_valid[2]), .qpc_rsp_i(qp_rsp[2]),
    .ah_req_valid_o(ah_req_valid), .ah_req_idx_o(ah_req_idx), .ah_rsp_valid_i(ah_rsp_valid), .ah_rsp_i(ah_rsp),
    .mr_req_valid_o(mr_req_valid), .mr_req_ready_i(mr_req_ready), .mr_req_idx_o(mr_req_idx),
    .mr_rsp_valid_i(mr_rsp_valid), .mr_rsp_i(mr_rsp),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .pkt_valid_o(pkt_valid), .pkt_ready_i(pkt_ready), .pkt_o(pkt),
    .frag_valid_o(frag_valid), .frag_ready_i(frag_ready), .frag_o(frag),
    .inl_valid_o(inl_valid), .inl_ready_i(inl_ready), .inl_data_o(inl_data), .inl_len_o(inl_len),
    .cqe_valid_o(cqe_valid), .cqe_ready_i(cqe_ready), .cqe_o(cqe),
    .qp_err_valid_o(qp_err_valid), .qp_err_ready_i(qp_err_ready), .qp_err_idx_o(qp_err_idx),
    .chg_qp_o(chg_qp),
    .chg_valid_o(chg_valid), .chg_ready_i(1'b1), .chg_o(chg), .chg_rsp_valid_i(chg_rsp_valid), .chg_rsp_i(chg_rsp),
    .bar_valid_o(bar_valid), .bar_ready_i(1'b1), .bar_done_i(bar_done),
    .adm_valid_i(adm_valid), .adm_ready_o(adm_ready), .adm_i(adm),
    .adm_rsp_valid_o(adm_rsp_valid), .adm_rsp_o(adm_rsp),
    .probe_qp_i(probe_qp), .busy_o(slot_busy), .open_o(open), .list_busy_i(list_busy), .closed_i(closed),
    .exp_valid_o(exp_valid), .exp_ready_i(exp_ready), .exp_qpn_o(exp_qpn), .tmr_valid_i(tmr_valid), .tmr_ready_o(tmr_ready), .tmr_qp_i(tmr_qp),
    .leave_valid_o(leave_valid), .leave_ready_i(leave_ready), .leave_qp_o(leave_qp), .turn_valid_i(turn_valid), .turn_ready_o(turn_ready), .turn_qp_i(turn_qp),
    .ctx_valid_i(ctx_valid), .ctx_ready_o(ctx_ready), .ctx_load_i(ctx_load), .ctx_what_i(ctx_what), .ctx_qp_i(ctx_qp), .ctx_at_i(ctx_at),
    .ctx_qpn_i(ctx_qpn), .ctx_i(ctx_keep), .ctx_flight_i(ctx_flight), .ctx_entry_i(ctx_entry),
    .ctx_rsp_valid_o(ctx_rsp_valid), .ctx_o(got_keep), .ctx_flight_o(got_flight), .ctx_entry_o(got_entry),
    .drain_i(drain), .drain_done_o(drain_done),
    .ev_wqe_o(ev_wqe), .ev_bad_db_o(ev_bad_db), .ev_ack_o(ev_ack), .ev_nak_o(ev_nak),
    .ev_ghost_o(ev_ghost), .ev_window_o(ev_window), .ev_credit_o(ev_credit), .ev_axi_err_o(ev_axi_err),
    .ev_timeout_o(ev_timeout), .ev_nak_seq_o(ev_nak_seq), .ev_rnr_o(ev_rnr), .ev_again_o(ev_again),
    .ev_read_o(ev_read), .ev_atomic_o(ev_atomic), .rd_re_i(rd_re), .rd_qp_i(rd_qp), .rd_view_o(rd_view),
    .rd_update_valid_i(rd_update_valid), .rd_update_i(rd_update),
    .wake_valid_o(wake_valid), .wake_o(wake), .idle_o(idle)
  );

  // ---- knobs -----------------------------------------------------------------------------------------
  bit calm = 0;                        // no random stalls
  int rd_lat_min = 20, rd_lat_max = 200;
  int ack_lat_min = 20, ack_lat_max = 300;
  int port_lat = 3;                    // QP and MR answers after 1..port_lat cycles
  bit noisy = 1;                       // duplicates, ghosts, acknowledges that were not asked for
  bit check_window = 1;
  int uc_pct = 0, ud_pct = 0, raw_pct = 0;  // QPs of service UC, UD, raw packets
  int bad_ah = -1;                     // handle of the next UD WQE, which is bad
  logic [7:0] force_op = 0;            // opcode to post
  int rd_default = 0;                  // percent of READs and atomics
  int query_pct = 3;                   // cycles with a query of some QP
  int push_pct = 60;                   // doorbells with `pushed`
  int push_kind = -1;                  // of push_e, -1: random

  function automatic int rnd(int lo, int hi);
    return lo + int'($urandom() % (hi - lo + 1));
  endfunction
  function automatic bit chance(int percent);
    return int'($urandom() % 100) < percent;
  endfunction

  // ---- QPs and regions ---------------------------------------------------------------------------------
  qp_attr_t qp_tab[NumQp];
  mr_t mr_tab[8];
  int qnum[NumQp];                     // QP index -> 0..NQ-1
  qp_idx_t qidx[NQ];
  localparam logic [23:0] OurPd = 24'h00a5a5;

  // what was posted
  int d_exec[NQ][Ring];                // changes carried out
  int d_kind[NQ][Ring];                // 0 write, 1 nop, else expected wc_status + 16 (local error)
  logic [31:0] d_total[NQ][Ring];
  int d_n[NQ][Ring];
  logic [63:0] d_iova[NQ][Ring][4];
  logic [31:0] d_len[NQ][Ring][4];
  logic [63:0] d_raddr[NQ][Ring];
  logic [31:0] d_rkey[NQ][Ring];
  bit d_signaled[NQ][Ring];
  bit d_se[NQ][Ring];
  bit d_known[NQ][Ring];               // the CQE shows the operation even if it fails
  logic [7:0] d_op[NQ][Ring];          // WQE opcode
  logic [31:0] d_imm[NQ][Ring];        // as on the wire, a number
  bit d_inl[NQ][Ring];
  bit d_fence[NQ][Ring];
  logic [31:0] d_lkey[NQ][Ring][4];
  logic [63:0] d_va[NQ][Ring][4], d_swap[NQ][Ring], d_cmp[NQ][Ring];
  logic [InlineBytes*8-1:0] d_data[NQ][Ring];
  psn_t d_last[NQ][Ring];

  logic [15:0] r_pi[NQ], r_rung[NQ], r_send[NQ], r_done[NQ];
  psn_t r_psn[NQ], r_una[NQ];
  logic [31:0] r_off[NQ];
  int r_since[NQ], since_signal[NQ];
  bit failed[NQ];                      // error CQE seen, only flushes follow
  bit flushing[NQ];                    // a flush was seen
  bit forced[NQ];                      // put into ERR from outside
  bit flush_come[NQ];                  // the QP table's flush came: all that was received for it is in memory
  bit silent[NQ];                      // peer answers nothing more
  int fail_idx[NQ];                    // WQE that NAK or read error was made for, -1 none
  logic [7:0] fail_status[NQ], fail_syn[NQ];
  int inject[NQ];                      // 0 none, else percent chance per packet; kind below
  logic [7:0] inject_syn[NQ];          // syndrome, or 0 for a failed payload read
  bit dead[NQ];                        // QP was reset: nothing of it may appear
  longint sent_bytes[NQ];

  // loss recovery
  localparam int Log = 4096;           // packets remembered per QP
  int p_wqe[NQ][Log];                  // WQE and offset by PSN
  logic [31:0] p_off[NQ][Log];
  psn_t next_psn[NQ];                  // PSN that follows the last packet
  bit lossy[NQ];                       // the peer is the receiver below
  int drop_pc[NQ], ackdrop_pc[NQ], rnr_pc[NQ];
  bit black[NQ];                       // the peer hears nothing
  int rnr_first[NQ];                   // refuse that many times, -1: for ever
  psn_t e_psn[NQ];                     // PSN the receiver expects
  bit e_nak[NQ];                       // it has sent its NAK for the gap
  int rnr_code[NQ];                    // -1: random short ones
  longint rnr_from[NQ], rnr_until[NQ], rnr_mute[NQ]; // nobody sends in between
  int n_una[NQ];                       // transmissions of the oldest packet
  longint una_time[NQ];
  int n_again = 0, n_timeout = 0, n_nak_seq = 0, n_rnr = 0, n_rewind = 0, n_jump = 0, n_inl = 0, n_late = 0;
  bit jump_ok = 0;

  // READs and atomics
  localparam int Rds = 64;             // remembered per QP
  int rd_pc[NQ];                       // that many percent of the WQEs
  int m_made[NQ], m_taken[NQ];         // requests sent, requests of which all responses were taken
  psn_t m_base[NQ][Rds], m_last[NQ][Rds], m_exp[NQ];
  int m_slot[NQ][Rds];
  bit m_gap[NQ];
  longint last_due[NQ];
  int rsp_fail[NQ];                    // percent of responses that cannot be used
  logic [3:0] rsp_status[NQ];
  int n_read = 0, n_atomic = 0, n_rsp = 0, n_implied = 0, n_dup_rsp = 0, n_fence_wait = 0, n_full_rd = 0, n_part = 0;

  // credits: the peer's receive queue, and what the device knows of it
  bit flow[NQ], flow_default = 0;      // both sides do flow control
  bit k_invalid[NQ];                   // the peer gives no credits
  bit k_updates[NQ];                   // the peer repeats its acknowledge when receives are posted again
  int k_posted[NQ], k_used[NQ], k_rate[NQ], k_burst[NQ];
  bit k_open[NQ], k_none[NQ];          // a SEND has its receive; the peer was told of none
  int c_sent[NQ], p_used[NQ][Log];     // messages that took a credit: sent whole, complete with the PSN
  int m_limit[NQ];
  bit m_unlimited[NQ];
  longint ack_time[NQ];
  bit set_back[NQ];                    // sent again since the last message without credit
  int n_probe = 0, n_starved = 0, n_no_recv = 0, n_update = 0, n_limited = 0, n_first_only = 0;
  int table_of[31] = '{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
                       8192, 12288, 16384, 24576, 32768};
  // SQD
  bit sqd_on = 0, sqd_run = 0;         // QPs are to be stopped now and then; one is stopped, or being asked
  bit d_sqd[NQ], d_tell[NQ];           // in SQD, by the device; its event is to come
  bit d_late[NQ];                      // it waited when the QP went on
  bit d_quiet[NQ];                     // all that was begun is complete
  wqe_idx_t d_limit[NQ];               // behind the last WQE that was begun
  int q_asked;                         // QP of the query under way
  int n_stop = 0, n_idle_stop = 0, n_part_stop = 0, n_told = 0, n_not_told = 0, n_sqd_again = 0, n_busy_query = 0, n_quiet_query = 0, n_sqd_fail = 0;

  logic [511:0] mem[longint unsigned];
  bit mem_bad[longint unsigned];

  // statistics that prove that corners were reached
  int n_uc = 0, n_ud = 0, n_raw = 0, n_pkt = 0, n_cqe = 0, n_flush = 0, n_window = 0, n_ghost = 0, n_nak = 0, n_wqe = 0, n_ack = 0;
  int n_multi = 0, n_bad_db = 0, n_axi_err = 0, n_local = 0, n_resume = 0, n_wqe_posted = 0;
  int unexplained_req = 0;
  int n_row = 0, row_q = -1;           // packets of one QP behind each other
  longint last_progress = 0;

  function automatic int mtu_of(int q);
    return qp_tab[qidx[q]].qp_type == QpTypeRaw ? 4096 : 128 << qp_tab[qidx[q]].path_mtu;
  endfunction
  function automatic logic [23:0] qpn_of(int q);
    return QpnBase | 24'(qp_idx_t'(q * 23));
  endfunction
  function automatic int stride_of(int q);
    return qp_tab[qidx[q]].sq_stride128 ? 128 : 64;
  endfunction
  function automatic bit is_uc(int q);
    return qp_tab[qidx[q]].qp_type != QpTypeRc;  // nobody acknowledges
  endfunction
  function automatic bit is_raw(int q);
    return qp_tab[qidx[q]].qp_type == QpTypeRaw;
  endfunction
  function automatic bit is_ud(int q);
    return qp_tab[qidx[q]].qp_type == QpTypeUd;
  endfunction
  function automatic int size_of(int q);
    return 1 << qp_tab[qidx[q]].log_sq_size;
  endfunction

  // ---- posting --------------------------------------------------------------------------------------
  typedef enum int {
    BadNone, BadOpcode, BadIndex, BadSge, BadKey, BadPd, BadBounds, BadInvalid, BadLong, BadRead, BadInline,
    BadRights, BadRdInline, BadRdLimit, BadAtomicSges, BadAtomicLen, BadAtomicAlign, BadRdLong
  } bad_e;

  logic [31:0] plan_len[4];

  task automatic post_body(int q, int nsge, bit nop, bit signaled, int bad);
    wqe_t w;
    logic [63:0] addr;
    int s, b, m, victim;
    bit is_rd;
    longint unsigned line;
    s = int'(r_pi[q]) % Ring;
    w = '0;
    w.opcode = nop ? WqeOpcodeNop : is_raw(q) ? WqeOpcodeSend : 8'(rnd(is_ud(q) ? 3 : 1, is_uc(q) ? 4 : 5));
    if (force_op != 0) w.opcode = force_op;
    w.fence = chance(10) && force_op == 0;
    is_rd = !nop && !is_uc(q) && (chance(rd_pc[q]) || bad >= BadRights);
    if (is_rd) begin
      w.opcode = bad inside {BadAtomicSges, BadAtomicLen, BadAtomicAlign} || (bad inside {BadNone, BadRights, BadRdLimit} && chance(40)) ?
                 8'(rnd(7, 8)) : WqeOpcodeRdmaRead;
      if (force_op != 0) w.opcode = force_op;
      if (w.opcode != WqeOpcodeRdmaRead) begin
        nsge = 1;
        plan_len[0] = 32'(chance(50) ? 8 : rnd(8, 100));
      end
      if (bad == BadRdLong) nsge = 2;
    end
    w.signaled = signaled;
    w.solicited = chance(30);
    w.index = r_pi[q];
    w.qpn_low = 8'(qpn_of(q));
    w.num_sge = 8'(nsge);
    w.remote_addr = {$urandom(), $urandom()};
    if (w.opcode > WqeOpcodeRdmaRead) w.remote_addr[2:0] = bad == BadAtomicAlign ? 3'(rnd(1, 7)) : 3'd0;
    w.rkey = $urandom();
    w.imm = $urandom();
    // local invalidate and bind are NOPs on the wire
    if (nop && bad == BadNone && !is_ud(q) && !is_raw(q) && chance(60)) begin
      w.opcode = chance(50) ? WqeOpcodeLocalInv : WqeOpcodeBindMw;
      w.imm = {8'(q), r_pi[q], 8'h5a};
      w.rkey = {8'(q), r_pi[q], 8'h5b};
      w.num_sge = 8'd1;
    end
    d_exec[q][s] = 0;
    d_kind[q][s] = nop ? 1 : 0;
    d_n[q][s] = 0;
    d_total[q][s] = 0;
    if (is_ud(q)) begin
      w.ah = bad_ah >= 0 ? 16'(bad_ah) : 16'(rnd(0, 15));
      w.remote_qpn = 24'($urandom());
    end
    d_raddr[q][s] = is_ud(q) ? {24'd0, w.ah, w.remote_qpn} : w.remote_addr;
    d_rkey[q][s] = w.rkey;
    d_signaled[q][s] = signaled;
    d_se[q][s] = w.solicited;
    d_known[q][s] = 1;
    d_op[q][s] = w.opcode;
    d_imm[q][s] = w.opcode == WqeOpcodeSendInv ? w.imm : {w.imm[7:0], w.imm[15:8], w.imm[23:16], w.imm[31:24]};
    d_inl[q][s] = 0;
    d_fence[q][s] = w.fence;
    victim = rnd(0, nsge > 0 ? nsge - 1 : 0);
    for (int i = 0; i < nsge && i < 4 * one; i++) begin
      m = rnd(0, 3);
      w.sge[i].length = plan_len[i];
      w.sge[i].lkey = {14'd0, 10'(m), mr_tab[m].variant};
      // bounds are used to the last byte now and then
      addr = chance(20) ? 64'd0 : chance(25) ? mr_tab[m].length - 64'(plan_len[i]) :
             64'($urandom()) % (mr_tab[m].length - 64'(plan_len[i]) + 1);
      w.sge[i].addr = mr_tab[m].va + addr;
      if (bad == BadLong) w.sge[i].length = i == 0 ? 32'h8000_0000 : 32'd1;
      if (i == victim) begin
        if (bad == BadKey) w.sge[i].lkey[7:0] = w.sge[i].lkey[7:0] + 8'd1;
        if (bad == BadPd) w.sge[i].lkey = {14'd0, 10'd4, mr_tab[4].variant};
        if (bad == BadPd) w.sge[i].addr = mr_tab[4].va;
        if (bad == BadInvalid) w.sge[i].lkey = {14'd0, 10'd5, mr_tab[5].variant};
        if (bad == BadRights) w.sge[i].lkey = {14'd0, 10'd6, mr_tab[6].variant};
        if (bad == BadRights) w.sge[i].addr = mr_tab[6].va;
        if (bad == BadRdLong) w.sge[i].length = 32'h4000_0001 - (i == 0 ? 32'd0 : plan_len[0]);
        if (bad == BadBounds) w.sge[i].addr = mr_tab[m].va + mr_tab[m].length - 64'(plan_len[i]) + 1;
      end
      if (plan_len[i] != 0) begin
        d_iova[q][s][d_n[q][s]] = mr_tab[m].iova + addr;
        d_len[q][s][d_n[q][s]] = plan_len[i];
        d_va[q][s][d_n[q][s]] = w.sge[i].addr;
        d_lkey[q][s][d_n[q][s]] = w.sge[i].lkey;
        d_n[q][s]++;
        d_total[q][s] += plan_len[i];
      end else if (chance(50)) begin
        w.sge[i].lkey = $urandom();  // an empty SGE is not checked
      end
    end
    if (w.opcode inside {WqeOpcodeCmpSwap, WqeOpcodeFetchAdd}) begin
      d_total[q][s] = 8;
      d_len[q][s][0] = 8;
      d_swap[q][s] = {$urandom(), $urandom()};
      d_cmp[q][s] = {$urandom(), $urandom()};
      w.sge[1] = {d_cmp[q][s], d_swap[q][s]};
      if (w.opcode == WqeOpcodeFetchAdd) d_cmp[q][s] = 0;
    end
    if (bad == BadNone && !nop && !is_rd && d_total[q][s] <= (stride_of(q) == 128 ? 32'd96 : 32'd32) && chance(60)) begin
      d_inl[q][s] = 1;
      d_n[q][s] = 0;
      w.inline_data = 1;
      w.inline_len = 16'(d_total[q][s]);
      w.num_sge = 8'($urandom());
      for (int i = 0; i < 24 * one; i++) w[256 + 32 * i +: 32] = $urandom();
      d_data[q][s] = w[1023:256];
    end
    case (bad)
      BadOpcode: begin
        w.opcode = 8'(rnd(11, 255));
        d_kind[q][s] = 16 + int'(WcStatusLocQpOpErr);
        d_known[q][s] = 0;
        if (is_uc(q) && chance(60)) begin  // not on this service
          w.opcode = (is_ud(q) || is_raw(q)) && chance(60) ? WqeOpcodeRdmaWrite : is_raw(q) && chance(50) ? WqeOpcodeSendImm : WqeOpcodeSendInv;
          d_op[q][s] = w.opcode;
          d_known[q][s] = 1;
        end
      end
      BadIndex: begin
        w.index = r_pi[q] + 16'(1 << qp_tab[qidx[q]].log_sq_size);
        d_kind[q][s] = 16 + int'(WcStatusLocQpOpErr);
      end
      BadSge: begin
        w.num_sge = 8'(stride_of(q) == 128 ? rnd(5, 255) : rnd(3, 255));
        d_kind[q][s] = 16 + int'(WcStatusLocQpOpErr);
      end
      BadInline: begin
        w.inline_data = 1;
        w.inline_len = 16'(stride_of(q) == 128 ? rnd(97, 65535) : rnd(33, 65535));
        d_kind[q][s] = 16 + int'(WcStatusLocQpOpErr);
      end
      BadKey, BadPd, BadBounds, BadInvalid: d_kind[q][s] = 16 + int'(WcStatusLocProtErr);
      BadLong: d_kind[q][s] = 16 + int'(WcStatusLocLenErr);
      BadRights: d_kind[q][s] = 16 + int'(WcStatusLocProtErr);
      BadRdLong: d_kind[q][s] = 16 + int'(WcStatusLocLenErr);
      BadRdInline, BadRdLimit, BadAtomicAlign, BadAtomicLen, BadAtomicSges: begin
        d_kind[q][s] = 16 + int'(WcStatusLocQpOpErr);
        if (bad == BadRdInline) begin
          w.inline_data = 1;
          w.inline_len = 16'd8;
        end
        if (bad == BadAtomicLen) w.sge[0].length = 32'(rnd(0, 7));
        if (bad == BadAtomicSges) w.num_sge = chance(50) ? 8'd0 : 8'd2;
      end
      BadRead: begin
        d_kind[q][s] = 16 + int'(WcStatusLocQpOpErr);
        d_known[q][s] = 0;
      end
      default: ;
    endcase
    b = (int'(r_pi[q]) % size_of(q)) * stride_of(q);
    line = (qp_tab[qidx[q]].sq_addr + 64'(b)) >> 6;
    mem[line] = w[511:0];
    mem_bad[line] = bad == BadRead;
    if (stride_of(q) == 128) mem[line + 1] = w[1023:512];
    r_pi[q] = r_pi[q] + 1;
    n_wqe_posted++;
  endtask

  // lengths worth trying, split over the SGEs
  task automatic plan(int q, int nsge, int mode);
    int mtu, total, left;
    mtu = mtu_of(q);
    case (mode == 0 ? rnd(0, 11) : mode)
      0: total = 0;
      1: total = 1;
      2: total = 3;
      3: total = mtu - 1;
      4: total = mtu;
      5: total = mtu + 1;
      6: total = 2 * mtu;
      7: total = 5 * mtu + 7;
      8: total = rnd(1, 64);
      9: total = rnd(1, 4 * mtu);
      10: total = rnd(1, 12 * mtu);
      11: total = 64;
      default: total = mode;
    endcase
    if ((is_ud(q) || is_raw(q)) && total > mtu) total = mtu;
    if (is_raw(q) && total < 14) total = 14;
    left = total;
    for (int i = 0; i < 4 * one; i++) plan_len[i] = 0;
    for (int i = 0; i < nsge; i++) begin
      plan_len[i] = i == nsge - 1 ? left : chance(25) ? 0 : chance(10) && left >= mtu ? mtu : rnd(0, left);
      left -= int'(plan_len[i]);
    end
  endtask

  int want_nsge;
  task automatic post_random_body(int q, int mode, bit must_signal);
    bit sig;
    want_nsge = rnd(mode == 0 && !is_raw(q) ? 0 : 1, stride_of(q) == 128 ? 4 : 2);
    plan(q, want_nsge, mode);
    since_signal[q]++;
    sig = must_signal || chance(40) || since_signal[q] >= (size_of(q) + 1) / 2;
    if (sig) since_signal[q] = 0;
    p_nsge = want_nsge;
    p_nop = mode == 0 && chance(8);
    p_sig = sig;
    p_bad = BadNone;
  endtask

  // Tasks are inlined by Verilator wherever they are called: the long ones run in processes of their own.
  bit post_go = 0, p_random, p_must, p_nop, p_sig;
  int p_q, p_nsge, p_mode, p_bad;
  task automatic post(int q, int nsge, bit nop, bit signaled, int bad);
    p_random = 0; p_q = q; p_nsge = nsge; p_nop = nop; p_sig = signaled; p_bad = bad;
    post_go = 1;
    while (post_go) @(posedge clk);
  endtask
  task automatic post_random(int q, int mode, bit must_signal);
    p_random = 1; p_q = q; p_mode = mode; p_must = must_signal;
    post_go = 1;
    while (post_go) @(posedge clk);
  endtask
  always begin
    while (!post_go) @(posedge clk);
    if (p_random) post_random_body(p_q, p_mode, p_must);
    post_body(p_q, p_nsge, p_nop, p_sig, p_bad);
    post_go = 0;
  end

  // what comes over the bus: doorbells, and words for push windows
  typedef struct packed {
    logic is_word, pushed;
    db_page_t page;
    logic [3:0] word;
    logic [63:0] data;
    logic [23:0] qpn;
    logic [15:0] pi;
  } ring_t;
  ring_t bells[$];
  typedef enum int {
    PushGood, PushTorn, PushTwice, PushNone, PushStale, PushOther, PushSize, PushPages, PushMixed, PushKinds
  } push_e;
  int n_push = 0, n_unused = 0, n_bells = 0;

  task automatic word(db_page_t page, int i, logic [63:0] data);
    ring_t r;
    r = '0;
    r.is_word = 1;
    r.page = page;
    r.word = 4'(i);
    r.data = data;
    bells.push_back(r);
  endtask
  task automatic ring(logic [23:0] qpn, logic [15:0] pi, bit pushed, db_page_t page);
    ring_t r;
    r = '0;
    r.pushed = pushed;
    r.page = page;
    r.qpn = qpn;
    r.pi = pi;
    bells.push_back(r);
  endtask

  // A copy that must not be used is wrong in its last words: in where a WRITE or SEND finds its data.
  task automatic bell(int q);
    longint unsigned line;
    logic [63:0] w[16];
    int n, kind, at;
    db_page_t page;
    page = db_page_t'(rnd(0, 2));
    line = (qp_tab[qidx[q]].sq_addr + 64'(((int'(r_pi[q]) + size_of(q) - 1) % size_of(q)) * stride_of(q))) >> 6;
    if (!chance(push_pct) || !mem.exists(line) || (stride_of(q) == 128 && !mem.exists(line + 1))) begin
      ring(qpn_of(q), r_pi[q], 0, page);
      r_rung[q] = r_pi[q];
      return;
    end
    n = stride_of(q) / 8;
    for (int i = 0; i < 16 * one; i++) w[i] = i < 8 || n == 16 ? mem[line + (i < 8 ? 0 : 1)][64 * (i % 8) +: 64] : 64'h0bad_0bad_0bad_0bad;
    kind = push_kind >= 0 ? push_kind : chance(50) ? PushGood : rnd(0, PushKinds - 1);
    if (kind == PushGood && mem_bad.exists(line) && mem_bad[line]) kind = PushTorn;  // memory shall be asked
    if (!(kind inside {PushGood, PushPages, PushMixed})) begin  // those leave a copy that may come true
      w[4] = {$urandom(), $urandom()};
      w[5] = ~w[5];
      w[2] = ~w[2];
    end
    at = rnd(0, n - 1);
    case (kind)
      PushTorn: for (int i = 0; i < n; i++) if (i != at) word(page, i, w[i]);
      PushTwice: for (int i = 0; i < n; i++) begin  // two writers of one window
        if (i == at) word(page, at == 0 ? 1 : chance(50) ? 0 : at - 1, w[i]);
        word(page, i, w[i]);
        if (i == n - 1) word(page, rnd(1, n - 1), w[i]);
      end
      PushNone: ;  // whatever is in the window
      PushStale: begin
        w[1][47:32] = w[1][47:32] - 16'(rnd(1, 3));
        for (int i = 0; i < n; i++) word(page, i, w[i]);
      end
      PushOther: begin
        w[0][31:24] = w[0][31:24] + 8'(rnd(1, 255));
        for (int i = 0; i < n; i++) word(page, i, w[i]);
      end
      PushSize: for (int i = 0; i < 24 - n; i++) word(page, i, w[i]);
      PushPages: for (int i = 0; i < n; i++) word(page ^ 1, i, w[i]);
      PushMixed: for (int i = 0; i < n; i++) begin  // of two pages: each has a part
        word(i < at ? page : page ^ 1, i, w[i]);
        word(i < at ? page ^ 1 : page, 1, w[i]);
      end
      default: for (int i = 0; i < n; i++) begin
        word(page, i, w[i]);
        if (chance(10)) word(page ^ 2, rnd(0, 15), ~w[i]);
      end
    endcase
    n_bells++;
    ring(qpn_of(q), r_pi[q], 1, page);
    r_rung[q] = r_pi[q];
  endtask

  // ---- models -----------------------------------------------------------------------------------------
  typedef struct packed {logic [63:0] due; qp_idx_t qp; psn_t psn; logic [7:0] syn; wqe_idx_t wqe;} reply_t;
  reply_t acks[$], errs[$], flushes[$];
  localparam logic [7:0] Response = 8'hff;  // in `syn`: not an acknowledge
  reply_t rx_q;
  longint rx_end = 0;                  // it came in this cycle
  int rx_step = 0, sn_made;
  psn_t sn_psn;
  bit sn_pkt;
  typedef struct packed {logic [63:0] due; logic [63:0] addr; logic [7:0] len;} read_t;
  read_t reads[$];
  int rd_beat = 0;
  longint rd_next_due = 0;
  typedef struct packed {logic [63:0] due; logic [15:0] idx;} ask_t;
  ask_t asks0[$], asks1[$], asks2[$], mr_asks[$];
  tx_frag_t frag_exp[$], frag_got[$];
  typedef struct packed {logic [6:0] len; logic [InlineBytes*8-1:0] data;} inl_t;
  inl_t inl_exp[$], inl_got[$];

  // what an acknowledge of now says
  function automatic logic [7:0] ack_syn(int q);
    int n, code;
    if (!flow[q] || k_invalid[q]) return SynAck;
    n = k_posted[q] - k_used[q] + int'(k_open[q]);
    code = 0;
    for (int c = 0; c < 31; c++) if (table_of[c] <= n) code = c;
    k_none[q] = code == 0;
    return 8'(code);
  endfunction

  task automatic schedule_ack(int q, psn_t psn, logic [7:0] syn, int extra);
    longint due;
    due = cyc + rnd(ack_lat_min, ack_lat_max) + extra;
    // with READs nothing overtakes on a network that loses nothing
    if (rd_pc[q] != 0 && due < last_due[q]) due = last_due[q];
    last_due[q] = due;
    acks.push_back({64'(due), qidx[q], psn_t'(psn), 8'(syn), syn == Response && chance(60) ? {8'd1, ack_syn(q)} : 16'd0});
  endtask

  // opcode by IBTA table 38
  function automatic logic [7:0] opcode_of(logic [7:0] wqe_op, bit first, bit last);
    if (wqe_op == WqeOpcodeRdmaRead) return 8'h0c;
    if (wqe_op == WqeOpcodeCmpSwap) return 8'h13;
    if (wqe_op == WqeOpcodeFetchAdd) return 8'h14;
    if (wqe_op == WqeOpcodeRdmaWrite || wqe_op == WqeOpcodeRdmaWriteImm) begin
      if (!last) return first ? 8'h06 : 8'h07;
      if (wqe_op == WqeOpcodeRdmaWriteImm) return first ? 8'h0b : 8'h09;
      return first ? 8'h0a : 8'h08;
    end
    if (!last) return first ? 8'h00 : 8'h01;
    case (wqe_op)
      WqeOpcodeSendImm: return first ? 8'h05 : 8'h03;
      WqeOpcodeSendInv: return first ? 8'h17 : 8'h16;
      default: return first ? 8'h04 : 8'h02;
    endcase
  endfunction

  // time of an RNR code in cycles of 4 ns (IBTA table 46, in units of 10 us)
  function automatic longint rnr_cycles(int code);
    automatic int table46[32] = '{65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
                                  1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return longint'(table46[code]) * 2500;
  endfunction

  task automatic reply(int q, psn_t psn, logic [7:0] syn);
    if (chance(ackdrop_pc[q])) return;
    schedule_ack(q, psn, syn, 0);
    if (noisy && chance(10)) schedule_ack(q, psn, syn, rnd(0, 3000));
  endtask

  task automatic respond(int q, psn_t psn, int n);
    for (int i = 0; i < n; i++) if (!chance(ackdrop_pc[q])) begin
      schedule_ack(q, psn + psn_t'(i), Response, 0);
      if (noisy && lossy[q] && chance(5)) schedule_ack(q, psn + psn_t'(i), Response, 0);
    end
    if (noisy && chance(5)) schedule_ack(q, psn - psn_t'(rnd(1, 20)), Response, 0);
    if (noisy && chance(5)) schedule_ack(q, psn + psn_t'(rnd(70000, 8000000)), Response, 0);
  endtask

  // the peer of a lossy QP
  task automatic receive(int q, int n);
    int code;
    if (black[q] || chance(drop_pc[q])) return;
    if (pkt.psn == e_psn[q]) begin
      e_nak[q] = 0;
      if (rnr_first[q] != 0 || chance(rnr_pc[q])) begin
        if (rnr_first[q] > 0) rnr_first[q]--;
        code = rnr_code[q] >= 0 ? rnr_code[q] : rnd(1, 4);
        reply(q, pkt.psn, 8'h20 | 8'(code));
        return;
      end
      if (flow[q] && !k_invalid[q] && pkt.opcode inside {8'h00, 8'h04, 8'h05, 8'h17, 8'h09, 8'h0b}) begin
        if (k_posted[q] == k_used[q]) begin
          n_no_recv++;
          e_nak[q] = 1;
          reply(q, pkt.psn, 8'h20 | 8'(rnd(1, 4)));
          return;
        end
        k_used[q]++;
        k_open[q] = pkt.opcode == 8'h00;
      end
      if (pkt.opcode inside {8'h02, 8'h03, 8'h16}) k_open[q] = 0;
      e_psn[q] = e_psn[q] + psn_t'(n);
      if (n != 0 && (pkt.has_atomic || pkt.opcode == OpRcReadRequest)) respond(q, pkt.psn, n);
      else if (pkt.ack_req || chance(5)) reply(q, pkt.psn, ack_syn(q));
    end else if (psn_gt(pkt.psn, e_psn[q])) begin
      if (!e_nak[q]) reply(q, e_psn[q], SynNakSeq);
      e_nak[q] = 1;
    end else if (pkt.has_atomic || pkt.opcode == OpRcReadRequest) begin
      respond(q, pkt.psn, n);
    end else begin
      reply(q, e_psn[q] - 1, ack_syn(q));
    end
  endtask

  task automatic check_packet;
    int q, s, len, mtu, need, run, pos, left, cut, slot, n, n_out;
    bit first, last, must, again, is_rd, asks, takes;
    psn_t w_base;
    logic [31:0] off;
    logic [7:0] op;
    if (qnum[pkt.qp] < 0) $fatal(1, "packet of an unknown QP %0d", pkt.qp);
    q = qnum[pkt.qp];
    if (dead[q]) $fatal(1, "packet of QP %0d after its reset", q);
    n_pkt++;
    n_row = q == row_q ? n_row + 1 : 1;
    row_q = q;
    last_progress = cyc;
    again = psn_gt(r_psn[q], pkt.psn);
    if (pkt.psn !== next_psn[q]) begin
      // set back, or forward to what was acknowledged
      if (!lossy[q]) $fatal(1, "QP %0d PSN %h, want %h", q, pkt.psn, next_psn[q]);
      n_rewind++;
      r_since[q] = 0;
      if (psn_gt(pkt.psn, next_psn[q])) n_late++;
      if (psn_gt(pkt.psn, r_una[q])) $fatal(1, "QP %0d goes to PSN %h, oldest %h", q, pkt.psn, r_una[q]);
    end
    slot = int'(pkt.psn) % Log;
    if (again) begin
      s = p_wqe[q][slot] % Ring;
      off = p_off[q][slot];
      if (pkt.wqe !== 16'(p_wqe[q][slot])) $fatal(1, "QP %0d PSN %h: WQE %0d, was %0d", q, pkt.psn, pkt.wqe, p_wqe[q][slot]);
      if (tim > rnr_from[q] && tim < rnr_until[q]) $fatal(1, "QP %0d sends %0d cycles before its RNR timer's end", q, rnr_until[q] - tim);
      // the wait is over, whatever was unsure about its end
      if (pkt.psn == r_una[q] && tim > rnr_from[q]) begin
        rnr_until[q] = 0;
        rnr_mute[q] = 0;
      end
    end else begin
      // NOPs have no packets
      while (d_kind[q][int'(r_send[q]) % Ring] == 1 && r_send[q] != r_rung[q]) r_send[q] = r_send[q] + 1;
      s = int'(r_send[q]) % Ring;
      off = r_off[q];
      p_wqe[q][slot] = int'(r_send[q]);
      p_off[q][slot] = off;
      if (pkt.wqe !== r_send[q] || r_send[q] == r_rung[q])
        $fatal(1, "QP %0d sends WQE %0d, next is %0d of %0d", q, pkt.wqe, r_send[q], r_rung[q]);
      if (pkt.psn !== r_psn[q]) $fatal(1, "QP %0d PSN %h, want %h", q, pkt.psn, r_psn[q]);
      if (d_sqd[q] && !below_limit(q, pkt.wqe)) $fatal(1, "QP %0d begins WQE %0d in SQD, limit %0d", q, pkt.wqe, d_limit[q]);
      if (d_quiet[q]) $fatal(1, "QP %0d sends WQE %0d after it was drained", q, pkt.wqe);
    end
    if (d_sqd[q] && again) n_sqd_again++;
    if (d_kind[q][s] != 0) $fatal(1, "QP %0d sends WQE %0d, which is bad", q, pkt.wqe);
    mtu = mtu_of(q);
    first = off == 0;
    len = int'(d_total[q][s]) - int'(off);
    last = len <= mtu;
    is_rd = d_op[q][s] inside {WqeOpcodeRdmaRead, WqeOpcodeCmpSwap, WqeOpcodeFetchAdd};
    n = 1;
    if (is_rd) begin
      last = 1;
      if (len > mtu) n = (len + mtu - 1) / mtu;
      if (off != 0) n_part++;
    end
    next_psn[q] = pkt.psn + psn_t'(n);
    if (!again && is_rd) begin
      for (int i = 1; i < n; i++) begin
        p_wqe[q][(slot + i) % Log] = int'(r_send[q]);
        p_off[q][(slot + i) % Log] = 32'(i * mtu);
      end
      m_base[q][m_made[q] % Rds] = pkt.psn;
      m_last[q][m_made[q] % Rds] = pkt.psn + psn_t'(n - 1);
      m_slot[q][m_made[q] % Rds] = s;
      if (m_made[q] == m_taken[q]) m_exp[q] = pkt.psn;
    end
    // fence, limit: by what was acknowledged
    n_out = 0;
    w_base = r_una[q];
    for (int i = m_made[q] - 1; i >= 0 && i >= m_made[q] - 20; i--) begin
      if (psn_ge(m_last[q][i % Rds], r_una[q]) && psn_gt(pkt.psn, m_last[q][i % Rds])) begin
        n_out++;
        if (psn_ge(m_last[q][i % Rds], w_base)) w_base = m_last[q][i % Rds] + 1;
      end
    end
    if (d_fence[q][s] && off == 0 && n_out != 0) $fatal(1, "QP %0d WQE %0d passes its fence", q, pkt.wqe);
    if (is_rd && n_out >= int'(qp_tab[qidx[q]].max_rd_atomic)) $fatal(1, "QP %0d: %0d READs and atomics before this one", q, n_out);
    if (is_rd && n_out + 1 == int'(qp_tab[qidx[q]].max_rd_atomic)) n_full_rd++;
    if (!again && is_rd) m_made[q]++;
    if (!last) len = mtu;
    op = opcode_of(d_op[q][s], first, last);
    if (pkt.opcode !== (op | (is_ud(q) ? 8'h60 : is_uc(q) && !is_raw(q) ? 8'h20 : 8'h00))) $fatal(1, "QP %0d WQE %0d off %0d: opcode %h, want %h", q, pkt.wqe, off, pkt.opcode, op);
    if (int'(pkt.len) != (is_rd ? 0 : len)) $fatal(1, "QP %0d WQE %0d off %0d: len %0d, want %0d", q, pkt.wqe, off, pkt.len, len);
    if (pkt.has_atomic !== (op inside {8'h13, 8'h14})) $fatal(1, "AtomicETH");
    if (pkt.has_atomic && (pkt.va !== d_raddr[q][s] || pkt.rkey !== d_rkey[q][s] || pkt.swap_add !== d_swap[q][s] || pkt.compare !== d_cmp[q][s]))
      $fatal(1, "QP %0d WQE %0d: AtomicETH", q, pkt.wqe);
    if (op == 8'h0c && (pkt.va !== d_raddr[q][s] + 64'(off) || pkt.rkey !== d_rkey[q][s] || pkt.dma_len !== 32'(len)))
      $fatal(1, "QP %0d WQE %0d: READ of %0d at %h", q, pkt.wqe, pkt.dma_len, pkt.va);
    if (pkt.has_reth !== (op inside {8'h06, 8'h0a, 8'h0b, 8'h0c}) || pkt.has_imm !== (op inside {8'h03, 8'h05, 8'h09, 8'h0b}) ||
        pkt.has_ieth !== (op inside {8'h16, 8'h17})) $fatal(1, "extended headers of %h", op);
    if (pkt.has_reth && op != 8'h0c && (pkt.va !== d_raddr[q][s] || pkt.rkey !== d_rkey[q][s] || pkt.dma_len !== d_total[q][s]))
      $fatal(1, "QP %0d WQE %0d: RETH", q, pkt.wqe);
    if ((pkt.has_imm || pkt.has_ieth) && pkt.imm !== d_imm[q][s]) $fatal(1, "QP %0d WQE %0d: immediate %h, want %h", q, pkt.wqe, pkt.imm, d_imm[q][s]);
    if (pkt.raw !== is_raw(q)) $fatal(1, "QP %0d WQE %0d: raw", q, pkt.wqe);
    if (is_raw(q)) n_raw++;
    if (pkt.has_deth !== is_ud(q) || (is_ud(q) && (pkt.va !== d_raddr[q][s] || pkt.rkey !== d_rkey[q][s]))) $fatal(1, "QP %0d WQE %0d: DETH", q, pkt.wqe);
    if (is_ud(q)) n_ud++;
    if (pkt.solicited !== (last && !is_rd && d_se[q][s])) $fatal(1, "QP %0d WQE %0d: SE", q, pkt.wqe);
    if (pkt.inl !== d_inl[q][s]) $fatal(1, "QP %0d WQE %0d: inline", q, pkt.wqe);
    // credits
    takes = d_op[q][s] inside {WqeOpcodeSend, WqeOpcodeSendImm, WqeOpcodeSendInv, WqeOpcodeRdmaWriteImm};
    if (again) begin
      set_back[q] = 1;
    end else begin
      if (flow[q] && takes && !m_unlimited[q] && c_sent[q] >= m_limit[q] && (first || d_op[q][s] != WqeOpcodeRdmaWriteImm)) begin
        n_limited++;
        if (!pkt.ack_req && d_op[q][s] != WqeOpcodeRdmaWriteImm) $fatal(1, "QP %0d WQE %0d: no credit and no AckReq", q, pkt.wqe);
        if (first && c_sent[q] != 0) begin
          n_probe++;
          // IBTA 9.7.7.2: one at a time; after a wait, or in place of what is sent again
          if (tim - ack_time[q] < 64'd262144 && !set_back[q]) $fatal(1, "QP %0d WQE %0d: goes without credit after %0d cycles", q, pkt.wqe, tim - ack_time[q]);
        end
        set_back[q] = 0;
        if ((!first || c_sent[q] != 0) && r_una[q] !== pkt.psn) $fatal(1, "QP %0d WQE %0d: no credit, PSN %h, oldest %h", q, pkt.wqe, pkt.psn, r_una[q]);
        if (first && !last) n_first_only++;
      end
      if (takes && last) c_sent[q]++;
      for (int i = 0; i < n; i++) p_used[q][(slot + i) % Log] = c_sent[q];
    end
    r_since[q]++;
    must = last || (req_interval != 0 && r_since[q] >= int'(req_interval));
    asks = is_uc(q) ? pkt.report : pkt.ack_req;
    if (is_uc(q) ? pkt.ack_req : pkt.report) $fatal(1, "QP %0d PSN %h: AckReq %b, report %b", q, pkt.psn, pkt.ack_req, pkt.report);
    if (must && !asks) $fatal(1, "QP %0d PSN %h: no AckReq", q, pkt.psn);
    if (!must && asks) unexplained_req++;
    if (asks) r_since[q] = 0;
    if (is_uc(q)) n_uc++;
    if (check_window && psn_ge(pkt.psn, w_base) && 24'(pkt.psn - w_base) >= 24'(window)) $fatal(1, "QP %0d: window passed", q);
    if (pkt.psn == r_una[q]) begin
      n_una[q]++;
      // a timeout is never early, and late by its tick, the way through the list, turns of others, and the way from memory only
      if (black[q] && n_una[q] > 1) begin
        if (tim - una_time[q] < (64'd1024 << qp_tab[pkt.qp].timeout)) $fatal(1, "QP %0d: timer early", q);
        if (tim - una_time[q] > (64'd1024 << qp_tab[pkt.qp].timeout) + 512 + 5000) $fatal(1, "QP %0d: timer %0d cycles late", q, tim - una_time[q] - (64'd1024 << qp_tab[pkt.qp].timeout));
      end
      una_time[q] = tim;
    end
    // payload of this packet
    if (d_inl[q][s] && len != 0) begin
      inl_exp.push_back({7'(len), d_data[q][s]});
      n_inl++;
    end
    pos = 0;
    left = is_rd ? 0 : len;
    need = int'(off);
    for (int i = 0; i < d_n[q][s]; i++) begin
      run = int'(d_len[q][s][i]);
      if (need >= pos && need < pos + run && left > 0) begin
        cut = pos + run - need;
        if (cut > left) cut = left;
        frag_exp.push_back({d_iova[q][s][i] + 64'(need - pos), 13'(cut), cut == left});
        if (cut != left) n_multi++;
        need += cut;
        left -= cut;
      end
      pos += run;
    end
    sent_bytes[q] += longint'(len);
    if (!again) begin
      r_psn[q] = r_psn[q] + psn_t'(n);
      if (last) begin
        d_last[q][s] = pkt.psn + psn_t'(n - 1);
        r_off[q] = 0;
        r_send[q] = r_send[q] + 1;
      end else begin
        r_off[q] += 32'(len);
      end
    end
    // the peer
    if (lossy[q]) begin
      if (chance(inject[q])) errs.push_back({64'(cyc + rnd(1, 100)), pkt.qp, psn_t'('0), 8'('0), 16'(pkt.wqe)});
      else receive(q, n);
      if (noisy && chance(2)) schedule_ack(q, pkt.psn + psn_t'(rnd(70000, 8000000)), SynAck, 0);
      if (noisy && chance(2)) schedule_ack(q, pkt.psn - psn_t'(rnd(70000, 8000000)), chance(50) ? SynNakSeq : 8'h21, 0);
    end else if (silent[q]) begin
    end else if (inject[q] != 0 && (!is_uc(q) || inject_syn[q] == 0) && chance(inject[q])) begin
      silent[q] = 1;
      fail_idx[q] = int'(pkt.wqe);
      fail_syn[q] = inject_syn[q];
      if (inject_syn[q] == 0) begin
        fail_status[q] = WcStatusLocQpOpErr;
        errs.push_back({64'(cyc + rnd(1, 100)), pkt.qp, psn_t'('0), 8'('0), 16'(pkt.wqe)});
      end else begin
        fail_status[q] = inject_syn[q] == 8'h61 ? WcStatusRemInvReqErr :
                         inject_syn[q] == 8'h62 ? WcStatusRemAccessErr :
                         inject_syn[q] == 8'h63 ? WcStatusRemOpErr :
                         inject_syn[q] == 8'h60 ? WcStatusRetryExcErr : WcStatusRnrRetryExcErr;
        schedule_ack(q, pkt.psn, inject_syn[q], ack_lat_max);
        if (inject_syn[q] == 8'h60) n_resume++;
      end
    end else if (is_rd) begin
      respond(q, pkt.psn, n);
    end else begin
      if (asks) schedule_ack(q, pkt.psn, SynAck, 0);
      if (noisy && !is_uc(q)) begin
        if (!pkt.ack_req && chance(10)) schedule_ack(q, pkt.psn, SynAck, 0);
        if (pkt.ack_req && chance(10)) schedule_ack(q, pkt.psn, SynAck, rnd(0, 500));
        if (chance(3)) schedule_ack(q, pkt.psn + psn_t'(rnd(70000, 8000000)), SynAck, 0);
        if (chance(3)) schedule_ack(q, pkt.psn - psn_t'(rnd(70000, 8000000)), chance(50) ? SynAck : SynNakAccess, 0);
      end
    end
  endtask

  function automatic logic [7:0] cqe_op(int q, int s);
    if (d_op[q][s] inside {WqeOpcodeNop, WqeOpcodeLocalInv, WqeOpcodeBindMw}) return d_op[q][s];
    if (d_op[q][s] inside {WqeOpcodeRdmaRead, WqeOpcodeCmpSwap, WqeOpcodeFetchAdd}) return d_op[q][s];
    return d_op[q][s] inside {WqeOpcodeRdmaWrite, WqeOpcodeRdmaWriteImm} ? CqeOpcodeRdmaWrite : CqeOpcodeSend;
  endfunction

  task automatic check_cqe;
    int q, s;
    bit acked;
    if (qnum[cqe.qp] < 0) $fatal(1, "CQE of an unknown QP");
    q = qnum[cqe.qp];
    if (dead[q]) $fatal(1, "CQE of QP %0d after its reset", q);
    last_progress = cyc;
    if (cqe.cqn !== qp_tab[cqe.qp].send_cqn) $fatal(1, "CQN");
    if (cqe.last_wqe || cqe.drained) begin
      if (!cqe.last_wqe || !cqe.drained) $fatal(1, "event %p", cqe);
      check_drained(q);
      return;
    end
    n_cqe++;
    if (d_sqd[q] && cqe.status != WcStatusWrFlushErr) begin
      if (d_quiet[q]) $fatal(1, "QP %0d: WQE %0d completes (%0d) after it was drained", q, cqe.index, cqe.status);
      if (!below_limit(q, cqe.index)) $fatal(1, "QP %0d: WQE %0d completes (%0d) in SQD, limit %0d", q, cqe.index, cqe.status, d_limit[q]);
    end
    if (d_sqd[q] && cqe.status != WcStatusSuccess && d_tell[q]) begin
      d_tell[q] = 0;  // it fails instead
      n_sqd_fail++;
    end
    if (cqe.byte_len !== (cqe.status == WcStatusSuccess && d_op[q][int'(cqe.index) % Ring] inside {[WqeOpcodeRdmaRead:WqeOpcodeFetchAdd]} ?
        d_total[q][int'(cqe.index) % Ring] : 32'd0)) $fatal(1, "QP %0d: byte_len %0d, opcode %0d", q, cqe.byte_len, d_op[q][int'(cqe.index) % Ring]);
    if (cqe.with_imm || cqe.with_inv || cqe.with_grh) $fatal(1, "CQE flags");
    // WQEs passed over: good and not signaled
    if (!failed[q] && !flushing[q]) begin
      while (r_done[q] != cqe.index) begin
        s = int'(r_done[q]) % Ring;
        if (r_done[q] == r_rung[q]) $fatal(1, "QP %0d: CQE index %0d, rung %0d", q, cqe.index, r_rung[q]);
        if (d_signaled[q][s] || d_kind[q][s] > 1) $fatal(1, "QP %0d: WQE %0d has no CQE", q, r_done[q]);
        if (d_kind[q][s] == 0 && !(psn_gt(r_una[q], d_last[q][s]))) $fatal(1, "QP %0d: WQE %0d passed over, not acknowledged", q, r_done[q]);
        r_done[q] = r_done[q] + 1;
      end
    end
    if (cqe.index !== r_done[q] || r_done[q] == r_rung[q])
      $fatal(1, "QP %0d: CQE index %0d, want %0d (rung %0d)", q, cqe.index, r_done[q], r_rung[q]);
    s = int'(cqe.index) % Ring;
    // responses taken for this QP may still be on their way to memory
    if (cqe.status != WcStatusSuccess && d_kind[q][s] <= 1 && !flush_come[q])
      $fatal(1, "QP %0d: WQE %0d fails (%0d) before the flush", q, cqe.index, cqe.status);
    if (cqe.status == WcStatusWrFlushErr && !flush_come[q]) $fatal(1, "QP %0d: WQE %0d flushed before the flush", q, cqe.index);
    if (cqe.status == WcStatusSuccess) begin
      if (failed[q]) $fatal(1, "QP %0d: success after failure", q);
      if (!d_signaled[q][s]) $fatal(1, "QP %0d: CQE of unsignaled WQE %0d", q, cqe.index);
      if (d_kind[q][s] > 1) $fatal(1, "QP %0d: bad WQE %0d succeeds", q, cqe.index);
      if (d_op[q][s] inside {WqeOpcodeLocalInv, WqeOpcodeBindMw} && d_exec[q][s] != 1) $fatal(1, "QP %0d: change %0d done %0d times", q, cqe.index, d_exec[q][s]);
      if (d_kind[q][s] == 0) begin
        // sent wholly and acknowledged
        if (16'(r_send[q] - cqe.index) == 0 || 16'(r_send[q] - cqe.index) > 16'd200) $fatal(1, "QP %0d: WQE %0d not sent", q, cqe.index);
        if (!psn_gt(r_una[q], d_last[q][s])) $fatal(1, "QP %0d: WQE %0d not acknowledged", q, cqe.index);
      end
      if (cqe.opcode !== cqe_op(q, s)) $fatal(1, "CQE opcode");
      if (lossy[q] && d_kind[q][s] == 0 && !psn_gt(e_psn[q], d_last[q][s])) $fatal(1, "QP %0d: WQE %0d completes, but was not received", q, cqe.index);
      if (fail_idx[q] >= 0 && cqe.index == 16'(fail_idx[q])) $fatal(1, "QP %0d: failing WQE succeeds", q);
    end else if (cqe.status == WcStatusWrFlushErr) begin
      n_flush++;
      flushing[q] = 1;
      if (cqe.opcode !== CqeOpcodeError) $fatal(1, "flush opcode");
      if (!failed[q] && !forced[q])
        $fatal(1, "QP %0d: flush of WQE %0d without a reason", q, cqe.index);
    end else begin
      if (failed[q]) $fatal(1, "QP %0d: second error", q);
      failed[q] = 1;
      if (d_kind[q][s] > 1) begin
        n_local++;
        if (int'(cqe.status) != d_kind[q][s] - 16) $fatal(1, "QP %0d of type %0d: status %0d, want %0d; WQE opcode %0d, %0d bytes", q, qp_tab[qidx[q]].qp_type, cqe.status, d_kind[q][s] - 16, d_op[q][s], d_total[q][s]);
        if (cqe.opcode !== (d_known[q][s] ? cqe_op(q, s) : CqeOpcodeError)) $fatal(1, "error opcode %0d", cqe.opcode);
        if (cqe.syndrome != 0) $fatal(1, "syndrome");
      end else begin
        if (fail_idx[q] != -2 && (16'(fail_idx[q]) !== cqe.index || fail_idx[q] < 0)) $fatal(1, "QP %0d: WQE %0d fails (%0d), expected %0d", q, cqe.index, cqe.status, fail_idx[q]);
        if (cqe.status !== fail_status[q]) $fatal(1, "QP %0d: status %0d, want %0d", q, cqe.status, fail_status[q]);
        if (cqe.syndrome !== fail_syn[q]) $fatal(1, "QP %0d: syndrome", q);
        if (cqe.opcode !== cqe_op(q, s)) $fatal(1, "error opcode %0d", cqe.opcode);
      end
    end
    r_done[q] = r_done[q] + 1;
  endtask

  function automatic bit below_limit(int q, wqe_idx_t idx);
    wqe_idx_t d;
    d = idx - d_limit[q];
    return d[15];
  endfunction

  // all that was begun is complete
  function automatic bit is_drained(int q);
    for (wqe_idx_t i = r_done[q]; below_limit(q, i); i++)
      if (d_signaled[q][int'(i) % Ring] || d_kind[q][int'(i) % Ring] > 1) return 0;
    return r_una[q] == r_psn[q] && r_off[q] == 0 && is_local(q, r_send[q]);
  endfunction

  // from there to the limit there are no packets
  function automatic bit is_local(int q, wqe_idx_t from);
    for (wqe_idx_t i = from; below_limit(q, i); i++) if (d_kind[q][int'(i) % Ring] == 0) return 0;
    return 1;
  endfunction

  task automatic check_drained(int q);
    if (d_late[q]) begin
      d_late[q] = 0;
      n_told++;
      return;
    end
    if (!d_sqd[q] || !d_tell[q]) $fatal(1, "QP %0d: drained, in SQD %b, asked for %b", q, d_sqd[q], d_tell[q]);
    if (failed[q] || flushing[q]) $fatal(1, "QP %0d: drained, but it failed", q);
    if (!is_drained(q)) $fatal(1, "QP %0d: not drained: done %0d limit %0d sent %0d off %0d una %h psn %h", q, r_done[q], d_limit[q], r_send[q], r_off[q], r_una[q], r_psn[q]);
    d_tell[q] = 0;
    d_quiet[q] = 1;
    n_told++;
  endtask

  // what rx_transport makes of a packet; the view of the read table is there
  task automatic receive_side;
    int q, s, pos;
    ack_rx_t a;
    rd_update_t u;
    bit waiting;
    q = qnum[rx_q.qp];
    waiting = sn_made != m_taken[q];
    if (dead[q] || !(qp_tab[rx_q.qp].state inside {QpRts, QpSqd})) begin
      if (rx_q.syn == Response) return;
    end else if (!failed[q] && !flushing[q]) begin
      // a request may be on its way to the bench
      if ((rd_view.waiting !== waiting && (waiting || !sn_pkt)) || (waiting && !rd_view.incomplete)) $fatal(1, "QP %0d: waiting %b, want %b; made %0d (bench %0d, now %0d) done %0d taken %0d (bench %0d)", q, rd_view.waiting, waiting,
        dut.u_read_table.made_mem[rx_q.qp], sn_made, m_made[q], dut.u_read_table.done_mem[rx_q.qp], dut.u_read_table.recv_mem[rx_q.qp].num, m_taken[q]);
      if (24'(rd_view.max_psn - sn_psn) > (sn_pkt ? 24'd2000 : 24'd0)) $fatal(1, "QP %0d: newest PSN %h, want %h", q, rd_view.max_psn, sn_psn);
      if (waiting) begin
        s = m_slot[q][m_taken[q] % Rds];
        if (rd_view.psn !== m_exp[q] || rd_view.gap !== m_gap[q]) $fatal(1, "QP %0d: response %h, want %h, gap %b %b", q, rd_view.psn, m_exp[q], rd_view.gap, m_gap[q]);
        if (rd_view.entry.base !== m_base[q][m_taken[q] % Rds] || rd_view.entry.last !== m_last[q][m_taken[q] % Rds] ||
            rd_view.entry.len !== d_total[q][s] || rd_view.entry.atomic !== (d_op[q][s] != WqeOpcodeRdmaRead)) $fatal(1, "QP %0d: entry %p", q, rd_view.entry);
        for (int i = 0; i < d_n[q][s]; i++)
          if (rd_view.entry.sge[i] !== {d_lkey[q][s][i], d_len[q][s][i], d_va[q][s][i]}) $fatal(1, "QP %0d: SGE %0d %p", q, i, rd_view.entry.sge[i]);
      end
    end
    a = '{qp: rx_q.qp, psn: rx_q.psn, msn: 24'($urandom()), syndrome: rx_q.syn,
          own: qp_tab[rx_q.qp].qp_type != QpTypeRc, credits: qp_tab[rx_q.qp].qp_type == QpTypeRc, src: AckPacket, fail: '0};
    u = '{qp: rx_q.qp, take: 1'b0, last: 1'b0, psn: rx_q.psn};
    if (rx_q.syn == Response) begin
      if (!waiting || psn_gt(m_exp[q], rx_q.psn) || psn_ge(rx_q.psn, r_psn[q])) begin
        n_dup_rsp++;
        return;
      end
      // who tells nothing has not told: the peer repeats its acknowledge later
      a.syndrome = rx_q.wqe[7:0];
      a.credits = rx_q.wqe[8];
      if (!a.credits) a.syndrome = SynAck;
      if (rx_q.psn == m_exp[q]) begin
        if (chance(rsp_fail[q])) begin
          a.src = AckLocal;
          a.fail = rsp_status[q];
          a.syndrome = 8'($urandom());
          rsp_fail[q] = 100;  // and all that follow
          if (fail_idx[q] < 0) begin
            fail_idx[q] = p_wqe[q][int'(rx_q.psn) % Log];
            fail_status[q] = 8'(a.fail);
            fail_syn[q] = 0;
          end
        end else begin
          n_rsp++;
          a.src = AckResponse;
          m_gap[q] = 0;
          rd_update_valid <= 1;
          u.take = 1;
          u.last = rx_q.psn == m_last[q][m_taken[q] % Rds];
          m_exp[q] = m_exp[q] + 1;
          if (rx_q.psn == m_last[q][m_taken[q] % Rds]) begin
            m_taken[q]++;
            m_exp[q] = m_base[q][m_taken[q] % Rds];
          end
        end
      end
    end
    if (waiting && a.src == AckPacket && psn_ge(rx_q.psn, m_exp[q]) && !(rx_q.syn != Response && rx_q.syn[5] && rx_q.psn == m_exp[q])) begin
      if (psn_ge(rx_q.psn, r_psn[q])) return;
      if (m_gap[q]) return;
      a.src = AckImplied;
      a.psn = m_exp[q];
      a.syndrome = SynNakSeq;
      a.credits = 0;
      m_gap[q] = 1;
      rd_update_valid <= 1;
      n_implied++;
    end
    rd_update <= u;
    ackrx_valid <= 1;
    ackrx <= a;
  endtask

  task automatic to_err(qp_idx_t i);
    if (qp_tab[i].state != QpErr && qp_tab[i].state inside {QpInit, QpRtr, QpRts, QpSqd}) begin
      qp_tab[i].state = QpErr;
      flushes.push_back({64'(cyc + rnd(1, chance(30) ? 400 : 40)), i, psn_t'('0), 8'('0), 16'('0)});
    end
  endtask

  int cq_, cs_;
  always @(posedge clk) if (rst_n) begin
    bar_taken = bar_valid;
    if (chg_valid) begin
      chg_now = chg;
      n_change++;
      cq_ = int'(chg.key[31:24]);
      cs_ = int'(chg.key[23:8]) % Ring;
      if (qidx[cq_] != chg_qp || chg.pd != OurPd) $fatal(1, "change %p", chg);
      if (chg.op != (d_op[cq_][cs_] == WqeOpcodeBindMw ? MrBind : MrInvalidate) || chg.key[7:0] != (chg.op == MrBind ? 8'h5b : 8'h5a))
        $fatal(1, "change %p of WQE %0d", chg, cs_);
      // it may be the first thing behind the end of SQD, which the bench learns in this cycle
      if (d_sqd[cq_] && !(adm_rsp_valid && q_asked == cq_ && adm_op inside {QpStateInit, QpStateResume})) $fatal(1, "QP %0d: change %p in SQD", cq_, chg);
      d_exec[cq_][cs_]++;
      chg_wait = rnd(2, 8);
    end
  end
  always @(negedge clk) begin
    chg_rsp_valid = chg_wait == 1;
    if (chg_wait > 0) chg_wait--;
    bar_done = bar_wait == 1;
    if (bar_wait > 0) bar_wait--;
    else if (bar_taken) begin
      bar_wait = rnd(1, 30);
      n_barrier++;
    end
  end

  function automatic bit is_change(int q, wqe_idx_t i);
    return d_kind[q][int'(i) % Ring] == 1 && d_op[q][int'(i) % Ring] inside {WqeOpcodeLocalInv, WqeOpcodeBindMw};
  endfunction

  req_query_t query;
  qp_admin_e adm_op;
  bit adm_notify;
  bit query_done = 0;
  bit adm_own = 0, adm_any = 0;        // the bench's own commands; a random query is under way

  always @(posedge clk) begin
    cyc <= cyc + 1;
    tim <= tim + 1;
    if (verbose && cyc % 5000 == 0) $display("cycle %0d: %0d packets, %0d CQEs", cyc, n_pkt, n_cqe);
    if (rst_n) begin
      if (cyc - last_progress > 200000) begin
        $display("move %0d of QP %0d in slot %0d: busy %b (%b %b %b %b) probe %0d, home %b", mv, mv_q, mv_from, slot_busy, dut.sched_busy, dut.seg_busy, dut.cpl_busy, dut.tkt_busy, probe_qp, all_home());
        for (int q = 0; q < nq; q++) $display("QP %0d: slot %0d state %0d queued %b flush %b", q, qidx[q], qp_tab[qidx[q]].state, dut.u_scheduler.queued_q[qidx[q]], dut.u_completer.flush_pending_q[qidx[q]]);
        $display("own %b any %b settle %b audit %b setup %b", adm_own, adm_any, settle_go, audit_go, setup_go);
        $fatal(1, "nothing moves any more");
      end
      // events
      if (ev_window) n_window++;
      if (ev_credit) n_starved++;
      if (ev_ghost) n_ghost++;
      if (ev_nak) n_nak++;
      if (ev_ack) n_ack++;
      if (ev_bad_db) n_bad_db++;
      if (ev_axi_err) n_axi_err++;
      if (ev_again) n_again++;
      if (ev_timeout) n_timeout++;
      if (ev_nak_seq) n_nak_seq++;
      if (ev_rnr) n_rnr++;
      if (ev_read) n_read++;
      if (ev_atomic) n_atomic++;
      // nothing but timers: go to the next one
      if (jump_ok && idle && wake_valid && wake != '1 && wake > tim && !db_valid && bells.size() == 0 && !ackrx_valid &&
          acks.size() == 0 && rx_step == 0 && flushes.size() == 0 && errs.size() == 0 && !post_go && !adm_valid && list_empty()) begin
        tim <= chance(50) ? wake : wake - 64'(rnd(0, int'(wake - tim > 1000 ? 1000 : wake - tim - 1)));
        n_jump++;
      end
      n_wqe += int'(ev_wqe);
      n_push += int'(ev_push);
      n_unused += int'(ev_push_unused);

      // doorbells
      if (db_valid && db_ready) db_valid <= 0;
      push_valid <= 0;
      if ((!db_valid || db_ready) && bells.size() > 0 && (calm || chance(50)) && !(in_move(slot_of(bells[0].qpn)) && !bells[0].is_word)) begin
        db_valid <= !bells[0].is_word;
        push_valid <= bells[0].is_word;
        db_pushed <= bells[0].pushed;
        db_page <= bells[0].page;
        push_word <= bells[0].word;
        push_data <= bells[0].data;
        db_qp <= slot_of(bells[0].qpn);
        db_qpn_low <= bells[0].qpn[7:0];
        db_pi <= bells[0].pi;
        void'(bells.pop_front());
      end

      // QP ports
      for (int p = 0; p < 3; p++) begin
        qp_req_ready[p] <= calm || chance(70);
        qp_rsp_valid[p] <= 0;
      end
      if (qp_req_valid[0] && qp_req_ready[0]) asks0.push_back({64'(cyc + (calm ? 0 : rnd(0, port_lat - 1))), 16'(qp_req_idx[0])});
      if (qp_req_valid[1] && qp_req_ready[1]) asks1.push_back({64'(cyc + (calm ? 0 : rnd(0, port_lat - 1))), 16'(qp_req_idx[1])});
      if (qp_req_valid[2] && qp_req_ready[2]) asks2.push_back({64'(cyc + (calm ? 0 : rnd(0, port_lat - 1))), 16'(qp_req_idx[2])});
      if (asks0.size() > 0 && asks0[0].due <= 64'(cyc)) begin
        qp_rsp_valid[0] <= 1;
        qp_rsp[0] <= qp_tab[asks0[0].idx[7:0]];
        void'(asks0.pop_front());
      end
      if (asks1.size() > 0 && asks1[0].due <= 64'(cyc)) begin
        qp_rsp_valid[1] <= 1;
        qp_rsp[1] <= qp_tab[asks1[0].idx[7:0]];
        void'(asks1.pop_front());
      end
      if (asks2.size() > 0 && asks2[0].due <= 64'(cyc)) begin
        qp_rsp_valid[2] <= 1;
        qp_rsp[2] <= qp_tab[asks2[0].idx[7:0]];
        void'(asks2.pop_front());
      end

      // handles: 0 to 15 are ours, 16 is of another PD; answered in the next cycle
      ah_rsp_valid <= ah_req_valid;
      ah_rsp <= '{valid: int'(ah_req_idx) <= 16, pd: int'(ah_req_idx) == 16 ? ~OurPd : OurPd, default: '0};

      // MR port
      mr_req_ready <= calm || chance(70);
      mr_rsp_valid <= 0;
      if (mr_req_valid && mr_req_ready) mr_asks.push_back({64'(cyc + (calm ? 0 : rnd(0, port_lat - 1))), 16'(mr_req_idx)});
      if (mr_asks.size() > 0 && mr_asks[0].due <= 64'(cyc)) begin
        mr_rsp_valid <= 1;
        mr_rsp <= mr_asks[0].idx < 8 ? mr_tab[mr_asks[0].idx[2:0]] : '0;
        void'(mr_asks.pop_front());
      end

      // host memory
      ar_ready <= calm || chance(60);
      if (ar_valid && ar_ready) begin
        if (64'(ar_addr[11:0]) + (64'(ar_len) + 1) * (DataW / 8) > 4096) $fatal(1, "burst crosses a page");
        if (ar_addr % (DataW / 8) != 0) $fatal(1, "read not aligned");
        if (int'(ar_len) >= BurstBeats) $fatal(1, "burst too long");
        if (dead[int'(ar_addr[31:24]) / 23]) $fatal(1, "read of a QP after its reset");
        if (rd_next_due < cyc + rd_lat_min) rd_next_due = cyc + rnd(rd_lat_min, rd_lat_max);
        reads.push_back({64'(calm ? cyc + rd_lat_min : rd_next_due), ar_addr, ar_len});
      end
      r_valid <= 0;
      if (reads.size() > 0 && reads[0].due <= 64'(cyc) && (calm || chance(80))) begin
        automatic logic [63:0] a = reads[0].addr + 64'(rd_beat * (DataW / 8));
        automatic longint unsigned line = a >> 6;
        r_valid <= 1;
        r_last <= rd_beat == int'(reads[0].len);
        r_err <= mem_bad.exists(line) ? mem_bad[line] : 1'b0;
        if (!mem.exists(line)) $fatal(1, "read of a WQE never written: %h", a);
        r_data <= mem[line][32'(a[5:0]) * 8 +: DataW];
        rd_beat = rd_beat + 1;
        if (rd_beat > int'(reads[0].len)) begin
          rd_beat = 0;
          void'(reads.pop_front());
        end
      end

      // egress
      pkt_ready <= calm || chance(60);
      frag_ready <= calm || chance(60);
      if (pkt_valid && pkt_ready) check_packet();
      if (frag_valid && frag_ready) frag_got.push_back(frag);
      while (frag_exp.size() > 0 && frag_got.size() > 0) begin
        if (frag_exp[0] !== frag_got[0]) $fatal(1, "fragment %h len %0d last %0d, want %h len %0d last %0d",
          frag_got[0].iova, frag_got[0].len, frag_got[0].last, frag_exp[0].iova, frag_exp[0].len, frag_exp[0].last);
        void'(frag_exp.pop_front());
        void'(frag_got.pop_front());
      end
      if (frag_got.size() > 8) $fatal(1, "fragments without a packet");
      inl_ready <= calm || chance(60);
      if (inl_valid && inl_ready) inl_got.push_back({inl_len, inl_data});
      while (inl_exp.size() > 0 && inl_got.size() > 0) begin
        if (inl_exp[0].len !== inl_got[0].len) $fatal(1, "inline length %0d, want %0d", inl_got[0].len, inl_exp[0].len);
        for (int i = 0; i < int'(inl_exp[0].len); i++)
          if (inl_exp[0].data[8*i +: 8] !== inl_got[0].data[8*i +: 8]) $fatal(1, "inline byte %0d", i);
        void'(inl_exp.pop_front());
        void'(inl_got.pop_front());
      end
      if (inl_got.size() > 4) $fatal(1, "inline data without a packet");

      // acknowledges
      if (ackrx_valid && ackrx_ready) begin
        automatic int q = qnum[ackrx.qp];
        automatic bit is_ack = ackrx.syndrome[7:5] == 3'd0 && ackrx.src != AckLocal;
        if (is_ack && ackrx.credits && 24'(ackrx.psn + 1 - r_una[q]) <= 24'(r_psn[q] - r_una[q])) begin
          if (ackrx.syndrome == SynAck) m_unlimited[q] = 1;
          else if (p_used[q][int'(ackrx.psn) % Log] + table_of[ackrx.syndrome[4:0]] > m_limit[q])
            m_limit[q] = p_used[q][int'(ackrx.psn) % Log] + table_of[ackrx.syndrome[4:0]];
        end
        // one that tells nothing new starts no wait again
        if (is_ack && 24'(ackrx.psn + 1 - r_una[q]) <= 24'(r_psn[q] - r_una[q]) && ackrx.psn + 24'd1 != r_una[q]) ack_time[q] = tim;
        if (ackrx.syndrome[7:5] == 3'b001 && 24'(ackrx.psn - r_una[q]) < 24'(r_psn[q] - r_una[q]) && (tim >= rnr_until[q] || ackrx.psn != r_una[q]) &&
            (tim >= rnr_mute[q] || ackrx.psn != r_una[q])) begin
          // a second one shortly after the end may still be within the first wait, and is ignored then
          if (tim < rnr_until[q] + 1500 && ackrx.psn == r_una[q]) begin
            rnr_until[q] = 0;
            rnr_from[q] = tim + 60;
            rnr_mute[q] = tim + rnr_cycles(int'(ackrx.syndrome[4:0])) + 1500;
          end else begin
            rnr_mute[q] = 0;
            rnr_from[q] = tim + 60;
            rnr_until[q] = tim + rnr_cycles(int'(ackrx.syndrome[4:0]));
          end
        end
        // what was acknowledged meanwhile ends the wait
        if (is_ack && 24'(ackrx.psn + 1 - r_una[q]) <= 24'(r_psn[q] - r_una[q]) && ackrx.psn + 24'd1 != r_una[q]) rnr_until[q] = 0;
        if (ackrx.syndrome == SynNakSeq && 24'(ackrx.psn - r_una[q]) < 24'(r_psn[q] - r_una[q]) && ackrx.psn != r_una[q]) rnr_until[q] = 0;
        if (24'(ackrx.psn + 24'(is_ack) - r_una[q]) <= 24'(r_psn[q] - r_una[q]) &&
            ackrx.psn + 24'(is_ack) != r_una[q]) n_una[q] = 0;
        if (is_ack && 24'(ackrx.psn + 1 - r_una[q]) <= 24'(r_psn[q] - r_una[q])) r_una[q] = ackrx.psn + 1;
        if (!is_ack && 24'(ackrx.psn - r_una[q]) < 24'(r_psn[q] - r_una[q])) r_una[q] = ackrx.psn;
        ackrx_valid <= 0;
      end
      rd_re <= 0;
      rd_update_valid <= 0;
      if (rx_step == 1) begin
        // the device looks now
        rx_step = 2;
        sn_made = m_made[qnum[rx_q.qp]];
        sn_psn = r_psn[qnum[rx_q.qp]];
        sn_pkt = pkt_valid;
      end
      else if (rx_step == 2 && (!ackrx_valid || ackrx_ready)) begin
        rx_step = 0;
        rx_end = cyc;
        receive_side();
      end else if (rx_step == 0 && acks.size() > 0) begin
        automatic int pick = -1;
        for (int i = 0; i < acks.size() && i < 8 * one; i++) if (pick < 0 && acks[i].due <= 64'(cyc) && !in_move(acks[i].qp)) begin
          pick = i;
          for (int j = 0; j < i; j++) if (rd_pc[qnum[acks[i].qp]] != 0 && acks[j].qp == acks[i].qp) pick = -1;
        end
        if (pick >= 0) begin
          rx_q = acks[pick];
          rx_step = 1;
          rd_re <= 1;
          rd_qp <= acks[pick].qp;
          acks.delete(pick);
        end
      end

      // failed payload reads
      if (err_valid && err_ready) err_valid <= 0;
      if ((!err_valid || err_ready) && errs.size() > 0 && errs[0].due <= 64'(cyc) && !in_move(errs[0].qp)) begin
        err_valid <= 1;
        err <= '{qp: errs[0].qp, response: 1'b0, wqe: errs[0].wqe, psn: '0, msn: '0};
        void'(errs.pop_front());
      end

      // QP table's errors
      qp_err_ready <= calm || chance(50);
      if (qp_err_valid && qp_err_ready) to_err(qp_err_idx);
      // what waits stays
      if (qp_err_wait && (!qp_err_valid || qp_err_idx != qp_err_old)) $fatal(1, "QP error of %h changed while it waited", qp_err_old);
      if (cqe_wait && (!cqe_valid || cqe != cqe_old)) $fatal(1, "CQE changed while it waited");
      if (pkt_wait && (!pkt_valid || pkt != pkt_old)) $fatal(1, "packet changed while it waited");
      qp_err_wait = qp_err_valid && !qp_err_ready;
      qp_err_old = qp_err_idx;
      cqe_wait = cqe_valid && !cqe_ready;
      cqe_old = cqe;
      pkt_wait = pkt_valid && !pkt_ready;
      pkt_old = pkt;
      if (flush_valid && flush_ready) begin
        flush_valid <= 0;
        if (qnum[flush_idx] >= 0) flush_come[qnum[flush_idx]] = 1;
      end
      if ((!flush_valid || flush_ready) && flushes.size() > 0 && flushes[0].due <= 64'(cyc) && !in_move(flushes[0].qp)) begin
        flush_valid <= 1;
        flush_idx <= flushes[0].qp;
        void'(flushes.pop_front());
      end

      // completions
      cqe_ready <= calm || chance(70);
      if (cqe_valid && cqe_ready) check_cqe();

      // administration: queries of any QP while others work, which must not see them
      if (adm_valid && adm_ready) adm_valid <= 0;
      if (adm_rsp_valid) begin
        query = adm_rsp;
        query_done = !adm_any;
        if (adm_op == QpStateDrain) begin
          // of a message that was begun a packet was taken or waits; local WQEs behind it may be done, and a change may be under way
          wqe_idx_t lim, i;
          lim = r_off[q_asked] != 0 ? r_send[q_asked] + 16'd1 : r_send[q_asked];
          if (pkt_valid && pkt.qp == qidx[q_asked] && psn_ge(pkt.psn, r_psn[q_asked])) begin
            lim = pkt.wqe + 16'd1;
            n_part_stop++;
          end
          if (r_off[q_asked] != 0) n_part_stop++;
          d_limit[q_asked] = lim;
          i = dut.u_segmenter.send_mem[qidx[q_asked]].max_next - lim;
          if (i != 0 && !i[15]) begin
            d_limit[q_asked] = lim + i;
            if (!failed[q_asked] && !forced[q_asked] && !is_local(q_asked, lim)) $fatal(1, "QP %0d: at %0d, want %0d", q_asked, lim + i, lim);
          end
          while (d_limit[q_asked] != r_rung[q_asked] && is_change(q_asked, d_limit[q_asked]) && d_exec[q_asked][int'(d_limit[q_asked]) % Ring] != 0)
            d_limit[q_asked]++;
          d_sqd[q_asked] = 1;
          d_tell[q_asked] = adm_notify;
          n_stop++;
          if (is_drained(q_asked)) n_idle_stop++;
        end else if (adm_op == QpStateQuery && !failed[q_asked] && !flushing[q_asked] && !forced[q_asked] && fail_idx[q_asked] == -1) begin
          if (adm_rsp.draining && (!d_sqd[q_asked] || d_quiet[q_asked])) $fatal(1, "QP %0d is draining", q_asked);
          if (adm_rsp.draining) n_busy_query++;
          if (d_sqd[q_asked] && !adm_rsp.draining) begin
            if (r_una[q_asked] != r_psn[q_asked] || r_off[q_asked] != 0) $fatal(1, "QP %0d is not draining", q_asked);
            n_quiet_query++;
          end
        end else if (adm_op inside {QpStateInit, QpStateResume}) begin
          d_late[q_asked] = d_tell[q_asked] && cqe_valid && cqe.drained && cqe.qp == qidx[q_asked];
          if (d_tell[q_asked] && !d_late[q_asked]) n_not_told++;
          d_sqd[q_asked] = 0;
          d_tell[q_asked] = 0;
          d_quiet[q_asked] = 0;
        end
        adm_any = 0;
      end else if (!adm_own && !adm_any && !calm && mv == 0 && chance(query_pct)) begin
        adm_any = 1;
        adm_valid <= 1;
        q_asked = rnd(0, nq - 1);
        adm_op = QpStateQuery;
        adm <= '{op: QpStateQuery, qp: qidx[q_asked], psn: '0, notify: 1'b0};
      end
      move_slots();
      serve();
    end
  end

  // ---- the list of QPs to which something happened, each once: in it they need no slot ----------------------------------
  int l_q[$];
  bit l_tmr[NQ], l_turn[NQ], l_away[NQ];
  qp_idx_t l_slot[NQ];                 // when the timer expired
  longint l_due[NQ];
  bit all_closed = 0;                  // somebody waits for a slot all the time
  int l_busy = 0, l_stop = 0, busy_pct = 1, list_lat = 20;
  int n_exp = 0, n_exp_away = 0, n_exp_back = 0, n_exp_moved = 0, n_over_arm = 0, n_over_stop = 0, n_leave = 0, n_leave_full = 0, n_leave_busy = 0,
      n_turn_none = 0, n_turn_wait = 0, n_room = 0;
  function automatic bit list_empty();
    return l_q.size() == 0 && !exp_valid && !tmr_valid && !leave_valid && !turn_valid;
  endfunction
  function automatic qp_idx_t slot_of(logic [23:0] qpn);
    for (int q = 0; q < NQ; q++) if (qpn_of(q) == qpn) return qidx[q];
    return qp_idx_t'(qpn);
  endfunction
  task automatic enlist(int q);
    if (l_tmr[q] || l_turn[q]) return;
    l_q.push_back(q);
    l_due[q] = cyc + (calm ? 0 : moves && chance(30) ? rnd(0, 3000) : rnd(0, list_lat));
  endtask
  task automatic serve;
    int q, i;
    // corners
    if (dut.u_completer.job_take && int'(dut.u_completer.job_q.kind) == 4 && dut.u_completer.live && !dut.fired) begin
      if (dut.u_retry.armed) n_over_arm++;
      else n_over_stop++;
    end
    if (dut.u_scheduler.want && !dut.u_scheduler.push) begin
      if (!dut.u_scheduler.rot_ready) n_leave_full++;
      else n_leave_busy++;
    end
    if (turn_valid && turn_ready && !dut.u_scheduler.want) n_turn_none++;
    if (turn_valid && !dut.u_scheduler.rot_ready) n_turn_wait++;
    if (!dut.room) n_room++;
    // what is handed out
    exp_ready <= calm || chance(60);
    if (exp_valid && exp_ready) begin
      q = -1;
      for (i = 0; i < nq; i++) if (24'(exp_qpn) == qpn_of(i)) q = i;
      if (q < 0) $fatal(1, "the timer of QPN %0d expires", exp_qpn);
      n_exp++;
      enlist(q);
      l_tmr[q] = 1;
      l_slot[q] = qidx[q];
      l_away[q] = mv > 1 && in_move(qidx[q]);
      if (l_away[q]) n_exp_away++;
    end
    if (l_stop > 0) l_stop--;
    else if (!calm && chance(1)) l_stop = rnd(1, 60);
    leave_ready <= calm || (l_stop == 0 && chance(70));
    if (leave_valid && leave_ready) begin
      q = qnum[leave_qp];
      if (q < 0 || (mv > 1 && in_move(leave_qp))) $fatal(1, "slot %0d of nobody leaves", leave_qp);
      n_leave++;
      enlist(q);
      l_turn[q] = 1;
    end
    // what comes back
    if (tmr_ready) tmr_valid <= 0;
    if (turn_ready) turn_valid <= 0;
    if (l_q.size() > 0 && (!tmr_valid || tmr_ready) && (!turn_valid || turn_ready)) begin
      i = calm ? 0 : rnd(0, l_q.size() > 3 ? 3 : l_q.size() - 1);
      q = l_q[i];
      if (l_due[q] <= cyc && !in_move(qidx[q])) begin
        if (l_tmr[q]) begin
          tmr_valid <= 1;
          tmr_qp <= qidx[q];
          if (l_away[q]) n_exp_back++;
          if (l_slot[q] != qidx[q]) n_exp_moved++;
        end
        if (l_turn[q]) begin
          turn_valid <= 1;
          turn_qp <= qidx[q];
        end
        l_tmr[q] = 0;
        l_turn[q] = 0;
        l_q.delete(i);
      end
    end
    if (l_busy > 0) l_busy--;
    else if (!calm && chance(busy_pct)) l_busy = rnd(1, 100);
    list_busy <= l_q.size() > 0 || l_busy > 0;
    closed <= all_closed || l_busy > 60;
  endtask

  // ---- slots: a QP that has nothing under way gets another one; what the bench has for it waits meanwhile -------------
  bit moves = 0;                       // else the QPs go home
  int park_pct = 0, mv_park = 0;       // a QP stays away for some time
  int mv = 0, mv_q, mv_wait, mv_op, mv_flights, mv_reads, mv_ops, mv_at, n_moves = 0, n_mv_busy = 0, n_mv_flights = 0, n_mv_reads = 0;
  qp_idx_t mv_from, mv_to;
  req_keep_t mv_keep;
  flight_t mv_flight[1 << LogInflight];
  rd_entry_t mv_entry[MaxRdAtomic];
  function automatic bit in_move(qp_idx_t i);
    return mv != 0 && i == mv_from;
  endfunction
  function automatic bit all_home();
    for (int q = 0; q < nq; q++) if (int'(qidx[q]) != q * 23) return 0;
    return mv == 0;
  endfunction
  task automatic move_slots;
    bit garbage;
    reply_t k;
    case (mv)
      0: if ((moves ? chance(20) : !all_home()) && !adm_own && !adm_any) begin
        mv_q = rnd(0, nq - 1);
        mv_from = qidx[mv_q];
        mv_to = qp_idx_t'(mv_q * 23);
        if (moves) do mv_to = qp_idx_t'($urandom()); while (qnum[mv_to] >= 0 || int'(mv_to) % 23 == 0);
        if (mv_to != mv_from) begin
          mv = 1;
          mv_wait = 0;
          probe_qp <= mv_from;
        end
      end
      1: begin
        mv_wait++;
        if (mv_wait == 4) begin
          if (slot_busy || (db_valid && db_qp == mv_from) || (tmr_valid && tmr_qp == mv_from) || (turn_valid && turn_qp == mv_from) || (ackrx_valid && ackrx.qp == mv_from) || (err_valid && err.qp == mv_from) ||
              (flush_valid && flush_idx == mv_from) || ((rx_step != 0 || rx_end == cyc) && rx_q.qp == mv_from) || rd_update_valid) begin
            mv = 0;
            n_mv_busy++;
          end else begin
            mv = 2;
            mv_op = 0;
            mv_ops = 1;
            mv_flights = 0;
            mv_reads = 0;
          end
        end
      end
      2: if (mv_park > 0) begin
        mv_park--;
      end else begin
        // first all is read, then overwritten, then loaded into the new slot
        mv_at = mv_op % mv_ops;
        garbage = mv_op / mv_ops == 1;
        ctx_valid <= 1;
        ctx_load <= mv_op >= mv_ops;
        ctx_qp <= mv_op / mv_ops == 2 ? mv_to : mv_from;
        ctx_what <= mv_at == 0 ? KeepState : mv_at <= mv_flights ? KeepFlight : KeepRead;
        ctx_keep <= garbage ? ~mv_keep : mv_keep;
        ctx_qpn <= garbage ? qpn_t'(rnd(0, 1023)) : qpn_t'(qpn_of(mv_q));
        if (mv_at > mv_flights) begin
          mv_at = (int'(mv_keep.rd.done) + mv_at - 1 - mv_flights) % MaxRdAtomic;
          ctx_entry <= garbage ? ~mv_entry[mv_at] : mv_entry[mv_at];
        end else if (mv_at > 0) begin
          mv_at = (int'(mv_keep.cpl.ci) + mv_at - 1) % (1 << LogInflight);
          ctx_flight <= garbage ? ~mv_flight[mv_at] : mv_flight[mv_at];
        end
        ctx_at <= LogInflight'(mv_at);
        mv = 3;
      end
      3: if (ctx_valid && ctx_ready) begin
        ctx_valid <= 0;
        mv = 4;
      end
      default: if (ctx_rsp_valid) begin
        if (mv_op == 0) begin
          mv_keep = got_keep;
          if (open[mv_from] != (got_keep.sched.pi != got_keep.cpl.ci)) $fatal(1, "QP %0d: open %b, pi %0d, ci %0d", mv_q, open[mv_from], got_keep.sched.pi, got_keep.cpl.ci);
          n_open += int'(open[mv_from]);
          // a flush may have gone beyond what was sent
          mv_flights = got_keep.cpl.err && 16'(got_keep.seg.max_next - got_keep.cpl.ci) >= 16'h8000 ? 0 :
                       int'(16'(got_keep.seg.max_next - got_keep.cpl.ci));
          mv_reads = int'(rd_num_t'(got_keep.rd.made - got_keep.rd.done));
          if (mv_flights > (1 << LogInflight) - 1 || mv_reads > MaxRdAtomic) $fatal(1, "QP %0d: %0d messages in flight, %0d READs", mv_q, mv_flights, mv_reads);
          // the next one may have begun
          if (got_keep.sched.pi != got_keep.seg.max_next) mv_flights++;
          mv_ops = 1 + mv_flights + mv_reads;
          n_mv_flights += mv_flights;
          n_mv_reads += mv_reads;
        end else if (mv_op < mv_ops) begin
          if (ctx_what == KeepFlight) mv_flight[ctx_at] = got_flight;
          else mv_entry[ctx_at[LogMaxRd-1:0]] = got_entry;
        end
        mv = 2;
        mv_op++;
        if (mv_op == 2 * mv_ops && chance(park_pct)) mv_park = rnd(1, 3000);
        if (mv_op == 3 * mv_ops) begin
          mv = 0;
          n_moves++;
          qidx[mv_q] = mv_to;
          qnum[mv_from] = -1;
          qnum[mv_to] = mv_q;
          qp_tab[mv_to] = qp_tab[mv_from];
          qp_tab[mv_from].state = QpNone;
          for (int i = 0; i < acks.size(); i++) if (acks[i].qp == mv_from) begin
            k = acks[i];
            k.qp = mv_to;
            acks[i] = k;
          end
          for (int i = 0; i < errs.size(); i++) if (errs[i].qp == mv_from) begin
            k = errs[i];
            k.qp = mv_to;
            errs[i] = k;
          end
          for (int i = 0; i < flushes.size(); i++) if (flushes[i].qp == mv_from) begin
            k = flushes[i];
            k.qp = mv_to;
            flushes[i] = k;
          end
        end
      end
    endcase
  endtask
  task automatic go_away;  // timers go on meanwhile
    moves = 1;
    park_pct = 30;
  endtask
  task automatic go_home;
    park_pct = 0;
    list_lat = 20;
    moves = 0;
    while (!all_home()) @(posedge clk);
    push_pct = 60;
  endtask

  // ---- driving ---------------------------------------------------------------------------------------
  task automatic admin(qp_admin_e op, int q, psn_t psn, bit notify);
    adm_own = 1;
    while (adm_any || mv != 0) @(posedge clk);
    query_done = 0;
    adm_valid <= 1;
    q_asked = q;
    adm_op = op;
    adm_notify = notify;
    adm <= '{op: op, qp: qidx[q], psn: psn, notify: notify};
    while (!query_done) @(posedge clk);
    query_done = 0;
    adm_own = 0;
  endtask

  bit setup_go = 0, su_s128;
  int su_q;
  logic [2:0] su_mtu;
  logic [3:0] su_lg;
  task automatic setup(int q, logic [2:0] mtu, bit s128, logic [3:0] lg);
    su_q = q; su_mtu = mtu; su_s128 = s128; su_lg = lg;
    setup_go = 1;
    while (setup_go) @(posedge clk);
  endtask
  always begin
    while (!setup_go) @(posedge clk);
    setup_body(su_q, su_mtu, su_s128, su_lg);
    setup_go = 0;
  end
  task automatic setup_body(int q, logic [2:0] mtu, bit s128, logic [3:0] lg);
    qp_attr_t a;
    psn_t psn;
    a = '0;
    a.qp_type = chance(uc_pct) ? QpTypeUc : chance(ud_pct) ? QpTypeUd : chance(raw_pct) ? QpTypeRaw : QpTypeRc;
    a.path_mtu = mtu;
    a.pd = OurPd;
    a.sq_stride128 = s128;
    a.log_sq_size = lg;
    a.send_cqn = cq_idx_t'($urandom());
    // rings begin anywhere in a page
    a.sq_addr = {32'h0000_0007, qp_idx_t'(q * 23), 24'(rnd(0, 1000) * (s128 ? 128 : 64))};
    a.state = QpReset;
    qp_tab[qidx[q]] = a;
    psn = chance(50) ? psn_t'($urandom()) : 24'hffffff - psn_t'(rnd(0, 40));  // wraps now and then
    r_pi[q] = 0; r_rung[q] = 0; r_send[q] = 0; r_done[q] = 0; r_off[q] = 0;
    next_psn[q] = psn; e_psn[q] = psn; e_nak[q] = 0; lossy[q] = 0; drop_pc[q] = 0; ackdrop_pc[q] = 0; rnr_pc[q] = 0;
    black[q] = 0; rnr_first[q] = 0; rnr_code[q] = -1; rnr_from[q] = 0; rnr_until[q] = 0; rnr_mute[q] = 0; n_una[q] = 0;
    r_psn[q] = psn; r_una[q] = psn; r_since[q] = 0; since_signal[q] = 0;
    failed[q] = 0; flushing[q] = 0; flush_come[q] = 0; forced[q] = 0; silent[q] = 0; fail_idx[q] = -1; inject[q] = 0;
    sent_bytes[q] = 0;
    rd_pc[q] = rd_default; m_made[q] = 0; m_taken[q] = 0; m_gap[q] = 0; last_due[q] = 0; rsp_fail[q] = 0;
    qp_tab[qidx[q]].max_rd_atomic = 8'(rnd(1, 8));
    flow[q] = flow_default;
    qp_tab[qidx[q]].flow_control = flow_default || a.qp_type != QpTypeRc;
    k_invalid[q] = 0; k_updates[q] = 1; k_posted[q] = 0; k_used[q] = 0; k_open[q] = 0; k_none[q] = 0; k_rate[q] = 100; k_burst[q] = 1;
    c_sent[q] = 0; m_limit[q] = 0; m_unlimited[q] = 0; p_used[q][int'(psn - 24'd1) % Log] = 0;
    admin(QpStateInit, q, psn, 0);
    dead[q] = 0;
    qp_tab[qidx[q]].state = QpRts;
  endtask

  task automatic setup_all(int log_min);
    for (int q = 0; q < nq; q++) setup(q, 3'(rnd(1, 5)), 1'(q), 4'(rnd(log_min, 8)));
  endtask

  function automatic bit all_done(int q);
    return r_done[q] == r_pi[q];
  endfunction

  task automatic stuck;
    for (int i = 0; i < nq; i++) if (flow[i])
      $display("QP %0d: receives posted %0d used %0d open %b told none %b updates %b | c_sent %0d limit %0d | RTL used %0d limit %0d seg used %0d probe %b armed %b exp %b wait %b e_psn %h lastack %0d of %0d dead %b",
        i, k_posted[i], k_used[i], k_open[i], k_none[i], k_updates[i], c_sent[i], m_limit[i], dut.u_completer.used_mem[qidx[i]], dut.u_completer.limit_mem[qidx[i]],
        dut.u_segmenter.send_mem[qidx[i]].used, dut.u_segmenter.send_mem[qidx[i]].probe, dut.u_retry.sent_mem[qidx[i]] ^ dut.u_retry.other_mem[qidx[i]], tim[8+:48] >= dut.u_retry.deadline_mem[qidx[i]], dut.u_retry.count_mem[qidx[i]].waiting, e_psn[i], ack_time[i], tim, dead[i]);
    for (int i = 0; i < nq; i++)
      $display("QP %0d: rung %0d sent %0d off %0d done %0d una %h psn %h | pi %0d fetch %0d gen %0d queued %b blocked %b next %0d off %0d psn %h una %h ci %0d err %b",
        i, r_rung[i], r_send[i], r_off[i], r_done[i], r_una[i], r_psn[i],
        dut.u_scheduler.pi_mem[qidx[i]], dut.u_scheduler.fetch_mem[qidx[i]], dut.u_scheduler.gen_mem[qidx[i]],
        dut.u_scheduler.queued_q[qidx[i]], dut.u_scheduler.blocked_q[qidx[i]],
        dut.u_segmenter.send_mem[qidx[i]].next, dut.u_segmenter.send_mem[qidx[i]].off,
        dut.u_segmenter.send_mem[qidx[i]].psn, dut.u_completer.una_mem[qidx[i]],
        dut.u_completer.ci_mem[qidx[i]], dut.u_completer.err_q[qidx[i]]);
    $display("scheduler db %0d fetch %0d cur %0d rotation %0d | loader %0d item %b check %0d seg %0d qp %0d | completer %0d jobs %0d wake %b | tickets %0d acks %0d reads %0d",
      dut.u_scheduler.db_state_q, dut.u_scheduler.fetch_state_q, dut.u_scheduler.cur_q, dut.u_scheduler.rot_level,
      dut.u_fetch.state_q, dut.u_fetch.item_valid_q, dut.u_check.state_q, dut.u_segmenter.state_q, dut.u_segmenter.qp,
      dut.u_completer.state_q, dut.u_completer.jobs_o, dut.u_completer.wake_valid_q, dut.tickets_q, acks.size(), reads.size());
    $display("ticket ready %b reserved %0d wptr %0d rptr %0d ar %b head %b gen %0d %0d others %b used %0d", dut.u_fetch.tkt_ready_o, dut.u_fetch.reserved_q, dut.u_fetch.wptr_q, dut.u_fetch.rptr_q, dut.u_fetch.ar_valid_q, dut.u_fetch.head_valid, dut.u_fetch.head.gen, dut.u_fetch.gen_i, dut.others, dut.u_segmenter.used_q);
    $fatal(1, "stuck");
  endtask

  // waits until QP q (or, -1, every one) has completions for all that was rung
  bit settle_go = 0, audit_go = 0;
  int se_q;
  task automatic settle(int q);
    se_q = q;
    settle_go = 1;
    while (settle_go) @(posedge clk);
  endtask
  always begin
    while (!settle_go) @(posedge clk);
    settle_body(se_q);
    settle_go = 0;
  end
  task automatic audit;
    audit_go = 1;
    while (audit_go) @(posedge clk);
  endtask
  always begin
    while (!audit_go) @(posedge clk);
    audit_body();
    audit_go = 0;
  end
  task automatic settle_body(int q);
    bit done;
    last_progress = cyc;
    done = 0;
    while (!done) begin
      @(posedge clk);
      done = bells.size() == 0;
      for (int i = 0; i < nq; i++) if ((q < 0 || i == q) && !dead[i] && r_done[i] != r_rung[i]) done = 0;
      if (cyc - last_progress > Patience) begin
        stuck();
      end
    end
  endtask

  // after all is over: the NIC says the same of its state, and is idle
  task automatic audit_body;
    int n;
    n = 0;
    while (!idle || !list_empty() || acks.size() > 0 || rx_step != 0 || flushes.size() > 0 || errs.size() > 0) begin
      @(posedge clk);
      n++;
      if (n > 20000) $fatal(1, "not idle");
    end
    repeat (20) @(posedge clk);
    if (frag_exp.size() != 0 || frag_got.size() != 0 || inl_exp.size() != 0 || inl_got.size() != 0) $fatal(1, "fragments left over");
    // each place for a copy is free, or has a window's words, or the copy of a QP
    n = $countones(dut.u_push.free_q) + int'(dut.u_push.spare_valid_q) + $countones(dut.u_push.has_q) + $countones(dut.u_scheduler.copy_q);
    if (n != int'(NumCopy)) $fatal(1, "%0d of %0d places for copies are accounted for", n, NumCopy);
    for (int q = 0; q < nq; q++) begin
      if (!dead[q]) begin
        admin(QpStateQuery, q, '0, 0);
        if (query.pi !== r_rung[q] || query.ci !== r_rung[q] || query.next !== r_rung[q])
          $fatal(1, "QP %0d: query pi %0d next %0d ci %0d, rung %0d", q, query.pi, query.next, query.ci, r_rung[q]);
        if (!failed[q] && !forced[q] && (query.next_psn !== r_psn[q] || query.una_psn !== r_psn[q]))
          $fatal(1, "QP %0d: query psn %h una %h, want %h", q, query.next_psn, query.una_psn, r_psn[q]);
      end
    end
  endtask

  // posts `count` WQEs on every QP, as room comes
  bit traffic_go = 0;
  int tr_count, tr_mode;
  task automatic traffic(int count, int mode);
    tr_count = count; tr_mode = mode;
    traffic_go = 1;
    while (traffic_go) @(posedge clk);
  endtask
  always begin
    while (!traffic_go) @(posedge clk);
    traffic_body(tr_count, tr_mode);
    traffic_go = 0;
  end
  task automatic traffic_body(int count, int mode);
    int left[NQ];
    int room, batch;
    bit more;
    for (int q = 0; q < nq; q++) left[q] = count;
    more = 1;
    last_progress = cyc;
    while (more) begin
      more = 0;
      for (int q = 0; q < nq; q++) begin
        room = size_of(q) - int'(16'(r_pi[q] - r_done[q]));
        if (left[q] > 0 && !dead[q]) begin
          more = 1;
          if (room > 0 && chance(20)) begin
            batch = rnd(1, room < left[q] ? room : left[q]);
            for (int i = 0; i < batch; i++) post_random(q, mode, left[q] == batch && i == batch - 1);
            left[q] -= batch;
            bell(q);
          end
        end
      end
      repeat (rnd(1, 40)) @(posedge clk);
      if (cyc - last_progress > Patience) begin
        stuck();
      end
    end
    settle(-1);
    end_stops();
    audit();
  endtask

  longint black_t[NQ];
  task automatic set_retry(int q, int timeout, int retry, int rnr);
    qp_tab[qidx[q]].timeout = 5'(timeout);
    qp_tab[qidx[q]].retry_cnt = 3'(retry);
    qp_tab[qidx[q]].rnr_retry = 3'(rnr);
  endtask

  // what cmd_proc does from RTS to SQD and back; a QP may fail meanwhile
  task automatic stop(int q, bit notify);
    admin(QpStateDrain, q, '0, notify);
    if (qp_tab[qidx[q]].state == QpRts) qp_tab[qidx[q]].state = QpSqd;
  endtask
  task automatic resume(int q);
    admin(QpStateResume, q, '0, 0);
    if (qp_tab[qidx[q]].state == QpSqd) qp_tab[qidx[q]].state = QpRts;
  endtask

  // stops QPs and lets them go on, while sqd_on
  bit end_now = 0;  // with sqd_on 0: leave them as they are
  task automatic end_stops;
    sqd_on = 0;
    while (sqd_run) @(posedge clk);
  endtask
  always begin
    while (!sqd_on) @(posedge clk);
    sqd_run = 1;
    while (sqd_on) begin
      sqd_body(rnd(0, nq - 1), 0);
      repeat (chance(90) ? rnd(1, 60) : rnd(1, 1000)) @(posedge clk);
    end
    for (int q = 0; q < nq && !end_now; q++) sqd_body(q, 1);
    sqd_run = 0;
  end
  task automatic sqd_body(int q, bit go_on);
    if (dead[q]) return;
    if (qp_tab[qidx[q]].state == QpRts && !go_on && chance(50)) begin
      stop(q, chance(75));
    end else if (qp_tab[qidx[q]].state == QpSqd && (go_on || chance(40))) begin
      if (go_on || chance(40)) begin
        // nothing but its failure keeps the event from coming
        for (int i = 0; i < 100000 * one && d_tell[q] && !dead[q] && qp_tab[qidx[q]].state == QpSqd; i++) @(posedge clk);
        if (d_tell[q] && !dead[q] && qp_tab[qidx[q]].state == QpSqd) $fatal(1, "QP %0d does not tell that it is drained", q);
        if (dead[q]) return;
      end
      if (qp_tab[qidx[q]].state == QpSqd) resume(q);
    end
  endtask

  int base, base_row, fetched, slowest = 0, slot;
  bit apart;
  longint t0, t1, lo, hi;

  bit ph_go = 0;
  int ph_n;
  task automatic read_phase_1;
    ph_n = 1; ph_go = 1;
    while (ph_go) @(posedge clk);
  endtask
  task automatic read_phase_2;
    ph_n = 2; ph_go = 1;
    while (ph_go) @(posedge clk);
  endtask
  task automatic credit_phase;
    ph_n = 3; ph_go = 1;
    while (ph_go) @(posedge clk);
  endtask
  task automatic sqd_phase;
    ph_n = 4; ph_go = 1;
    while (ph_go) @(posedge clk);
  endtask
  always begin
    while (!ph_go) @(posedge clk);
    if (ph_n == 1) phase_1_body();
    else if (ph_n == 2) phase_2_body();
    else if (ph_n == 3) phase_3_body();
    else phase_4_body();
    ph_go = 0;
  end

  task automatic phase_1_body;
    int b0;
    calm = 0; noisy = 1; window = 64; req_interval = 4; quantum_log = 11; rd_lat_min = 20; ack_lat_min = 20; ack_lat_max = 300;
    rd_default = 50;
    n_read = 0; n_atomic = 0;
    setup_all(3);
    traffic(100, 0);
    moves = 1;
    setup_all(3);
    ack_lat_min = 300; ack_lat_max = 900;
    traffic(100, 0);
    go_home();
    ack_lat_min = 20; ack_lat_max = 300;
    if (n_mv_reads < 100) $fatal(1, "corners: %0d READs moved", n_mv_reads);
    rd_default = 90;
    window = 2;
    setup_all(3);
    traffic(60, 0);
    window = 64;
    if (n_again != 0 || n_implied != 0) $fatal(1, "%0d sent again without a reason, %0d implied NAKs", n_again, n_implied);
    // local errors, with good WQEs before and behind
    for (int b = int'(BadOpcode); b <= int'(BadRdLong) * one; b++) begin
      for (int q = 0; q < nq; q++) begin
        setup(q, b == int'(BadRdLong) ? 3'd1 : 3'(rnd(1, 5)), 1'(q), 4'd5);
        if (b == int'(BadRdLimit)) begin
          rd_pc[q] = 0;
          qp_tab[qidx[q]].max_rd_atomic = 0;
        end
        for (int i = 0; i < q; i++) post_random(q, 0, 0);
        want_nsge = b == int'(BadLong) ? 2 : rnd(1, 2);
        for (int i = 0; i < 4 * one; i++) plan_len[i] = rnd(14, 100);  // two fit into a datagram, one is a frame
        post(q, want_nsge, 0, chance(50), b);
        for (int i = 0; i < rnd(0, 15); i++) post_random(q, 0, 0);
        bell(q);
      end
      settle(-1);
      audit();
      for (int q = 0; q < nq; q++) if (!failed[q] || qp_tab[qidx[q]].state != QpErr) $fatal(1, "QP %0d did not fail (%0d): failed %b state %0d", q, b, failed[q], qp_tab[qidx[q]].state);
    end
    // NAKs of READs and of others; responses that cannot be used
    for (int round = 0; round < 12 * one; round++) begin
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd6);
        if ((q + round) % 3 == 0) begin
          rsp_fail[q] = rnd(1, 20);
          rsp_status[q] = chance(50) ? WcStatusBadRespErr[3:0] : WcStatusLocProtErr[3:0];
        end else begin
          inject[q] = rnd(2, 30);
          inject_syn[q] = 8'h61 + 8'((q + round) % 3);
        end
        for (int i = 0; i < 60 * one; i++) post_random(q, 0, i == 59);
        bell(q);
      end
      settle(-1);
      audit();
    end
    // away under load
    for (int round = 0; round < 6 * one; round++) begin
      setup_all(5);
      for (int q = 0; q < nq; q++) begin
        for (int i = 0; i < 32 * one; i++) post_random(q, 0, i == 31);
        bell(q);
      end
      repeat (rnd(1, 2000)) @(posedge clk);
      for (int q = 0; q < nq; q += 2) qp_tab[qidx[q]].state = chance(50) ? QpReset : QpNone;
      for (int i = 0; i < 3 * one; i++) begin
        drain <= 1;
        @(posedge clk);
        while (!drain_done) @(posedge clk);
        drain <= 0;
        @(posedge clk);
      end
      for (int q = 0; q < nq; q += 2) begin
        dead[q] = 1;
        r_done[q] = r_rung[q];
      end
      settle(-1);
      repeat (600) @(posedge clk);
      audit();
    end
    // two long READs at the smallest MTU and a window's worth of WRITEs behind them are under way at once
    noisy = 0; window = 16;
    for (int q = 0; q < 2 * one; q++) begin
      setup(q, 3'd1, 1'(q), 4'd6);
      rd_pc[q] = 100;
      qp_tab[qidx[q]].max_rd_atomic = 8'd2;
      silent[q] = 1;
      force_op = WqeOpcodeRdmaRead;
      for (int i = 0; i < 2 * one; i++) begin
        plan(q, 1, 400000);
        post(q, 1, 0, 1, BadNone);
      end
      rd_pc[q] = 0;
      force_op = WqeOpcodeRdmaWrite;
      for (int i = 0; i < 20 * one; i++) begin
        plan(q, 1, 1);
        post(q, 1, 0, 1, BadNone);
      end
      force_op = 0;
      rd_pc[q] = 1;
      bell(q);
    end
    repeat (3000) @(posedge clk);
    for (int q = 0; q < 2 * one; q++) begin
      if (m_made[q] != 2 || r_psn[q] - m_last[q][1] != 17) $fatal(1, "QP %0d: %0d READs and %0d WRITEs out", q, m_made[q], r_psn[q] - m_last[q][1] - 1);
      silent[q] = 0;
      for (int i = 0; i < 2 * 1563 * one; i++) schedule_ack(q, m_base[q][0] + psn_t'(i), Response, 0);
      schedule_ack(q, r_psn[q] - 1, SynAck, 0);
    end
    for (int q = 0; q < 2 * one; q++) settle(q);
    for (int q = 2 * one; q < nq; q++) setup(q, 3'd1, 1'(q), 4'd4);
    audit();
    window = 64;
    rd_default = 0;
    n_again = 0; n_timeout = 0; n_rewind = 0; n_late = 0;
    $display("reads: %0d READs, %0d atomics, %0d responses, %0d duplicates, %0d implied, limit reached %0d", n_read, n_atomic, n_rsp, n_dup_rsp, n_implied, n_full_rd);
    if (n_read < 500 || n_atomic < 500 || n_full_rd < 200) $fatal(1, "corners");
    for (int q = 0; q < nq; q++) setup(q, 3'd1, 1'(q), 4'd4);
  endtask

  // receives are posted; who was told of none is told again
  bit posting = 0;
  int kq;
  always @(posedge clk) if (posting) begin
    kq = rnd(0, NQ - 1);
    if (int'($urandom() % 1000) < k_rate[kq] && k_posted[kq] - k_used[kq] < 40) begin
      k_posted[kq] += rnd(1, k_burst[kq]);
      if (k_none[kq] && k_updates[kq] && !dead[kq]) begin
        n_update++;
        reply(kq, e_psn[kq] - 1, ack_syn(kq));
      end
    end
  end

  // 0: no loss, updates: no RNR NAK, and nothing goes without credit but the first message. 1: the same with READs, of which
  // responses tell credits too. 2: no updates. 3: loss and lost updates. 4: some peers give no credits. 5: QPs go to ERR and to RESET while they wait.
  task automatic phase_3_body;
    int rnr0, probe0, round;
    calm = 0; noisy = 1; window = 64; req_interval = 4; quantum_log = 11; rd_lat_min = 20; ack_lat_min = 20; ack_lat_max = 300;
    go_away();
    // all of them, and again while too little has happened
    for (int k = 0; k < 6 * one || (k < 24 && (n_starved < 500 || n_update < 300 || n_probe < 50 || n_limited < 100 || n_first_only < 20 || n_no_recv < 30)); k++) begin
      round = k % 6;
      jump_ok = round > 1;
      flow_default = 1;
      rd_default = round == 1 ? 30 : 0;
      posting = 0;
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'(rnd(2, 7)));
        set_retry(q, round > 2 ? rnd(2, 3) : 8, 7, 7);
        lossy[q] = 1;
        drop_pc[q] = round == 3 ? 3 : 0;
        ackdrop_pc[q] = round == 3 ? 3 : 0;
        k_posted[q] = round < 2 ? 1 : 0;
        k_updates[q] = round != 2;
        k_invalid[q] = round == 4 && chance(40);
        k_rate[q] = q % 3 == 2 ? 300 : round < 2 ? 12 : 4;
        k_burst[q] = q % 2 == 0 ? 1 : 12;
      end
      posting = 1;
      rnr0 = n_no_recv;
      probe0 = n_probe;
      if (round < 5) begin
        traffic(120, 0);
        for (int q = 0; q < nq; q++) if (e_psn[q] != r_psn[q]) $fatal(1, "QP %0d: receiver at %h, sent %h", q, e_psn[q], r_psn[q]);
        if (round < 2 && (n_no_recv != rnr0 || n_probe != probe0)) $fatal(1, "%0d RNR NAKs, %0d messages without credit", n_no_recv - rnr0, n_probe - probe0);
      end else begin
        for (int q = 0; q < nq; q++) begin
          for (int i = 0; i < size_of(q); i++) post_random(q, 0, 1);
          bell(q);
        end
        repeat (3000) @(posedge clk);
        posting = 0;
        for (int q = 0; q < nq; q++) if (q % 2 == 0) begin
          forced[q] = 1;
          to_err(qidx[q]);
        end else begin
          qp_tab[qidx[q]].state = QpReset;
        end
        for (int i = 0; i < 3 * one; i++) begin
          drain <= 1;
          @(posedge clk);
          while (!drain_done) @(posedge clk);
          drain <= 0;
          @(posedge clk);
        end
        for (int q = 1; q < nq; q += 2) begin
          dead[q] = 1;
          r_done[q] = r_rung[q];
        end
        settle(-1);
        repeat (10000) @(posedge clk);
        if (wake != '1 || !wake_valid) $fatal(1, "a timer runs though nothing is outstanding");
        audit();
      end
      $display("credits %0d: %0d waits, %0d updates, %0d without credit (%0d after the timer, %0d first packets), %0d RNR NAKs", round, n_starved, n_update, n_limited, n_probe, n_first_only, n_no_recv);
    end
    posting = 0;
    flow_default = 0;
    rd_default = 0;
    jump_ok = 1;
    go_home();
    if (n_starved < 500 || n_update < 300 || n_probe < 50 || n_limited < 100 || n_first_only < 20 || n_no_recv < 30) $fatal(1, "corners: credits");
    for (int q = 0; q < nq; q++) setup(q, 3'(rnd(1, 5)), 1'(q), 4'd4);
  endtask

  task automatic phase_2_body;
    jump_ok = 1;
    go_away();
    calm = 0; noisy = 1; window = 64; req_interval = 4; quantum_log = 11; rd_lat_min = 20; ack_lat_min = 20; ack_lat_max = 300;
    for (int round = 0; round < 4 * one; round++) begin
      rd_default = round == 0 ? 30 : 60;
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'(rnd(2, 7)));
        set_retry(q, rnd(2, 3), 7, 7);
        lossy[q] = 1;
        drop_pc[q] = round == 0 ? 2 : 8;
        ackdrop_pc[q] = round == 3 ? 0 : round == 0 ? 2 : 6;
        rnr_pc[q] = round == 2 ? 3 : 0;
      end
      if (round == 3) begin
        ack_lat_min = 1000; ack_lat_max = 9000;
      end
      traffic(round == 0 ? 100 : 40, 0);
      $display("loss with READs %0d: %0d again, %0d set back, %0d rest of a READ, %0d implied NAKs, %0d timeouts", round, n_again, n_rewind, n_part, n_implied, n_timeout);
      for (int q = 0; q < nq; q++) if (e_psn[q] != r_psn[q]) $fatal(1, "QP %0d: receiver at %h, sent %h", q, e_psn[q], r_psn[q]);
    end
    go_home();
    if (n_part < 15 || n_implied < 50) $fatal(1, "corners: %0d rests, %0d implied", n_part, n_implied);
    rd_default = 0;
  endtask

  // QPs of every service are stopped (SQD) and go on at random times
  task automatic phase_4_body;
    calm = 0; noisy = 1; window = 64; req_interval = 4; quantum_log = 11; rd_lat_min = 20; ack_lat_min = 20; ack_lat_max = 300;
    // nothing is lost
    for (int round = 0; round < 4 * one; round++) begin
      uc_pct = 20; ud_pct = 20; raw_pct = 20; rd_default = round == 1 ? 60 : 20;
      window = round == 2 ? 2 : 64;
      setup_all(3);
      n_again = 0;
      sqd_on = 1;
      traffic(60, round == 3 ? 10 : 0);
      if (n_again != 0) $fatal(1, "%0d sent again without a reason", n_again);
    end
    window = 64;
    // errors and failed QPs, also put into ERR from outside
    for (int round = 0; round < 20 * one; round++) begin
      uc_pct = round % 2 == 0 ? 0 : 20;
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd6);
        if (round < 12 && !is_uc(q)) begin
          inject[q] = rnd(2, 30);
          inject_syn[q] = (q + round) % 4 == 0 ? 8'h00 : 8'h60 + 8'((q + round) % 4);
        end
      end
      for (int q = 0; q < nq; q++) begin
        for (int i = 0; i < 60 * one; i++) begin
          if (round < 12 && i == 30 && is_uc(q)) begin
            plan_len[0] = 64;
            post(q, 1, 0, 1, BadKey);
          end
          post_random(q, 0, i == 59);
        end
      end
      sqd_on = 1;
      for (int q = 0; q < nq; q++) bell(q);
      if (round >= 12) begin
        repeat (rnd(1, 2500)) @(posedge clk);
        for (int q = 0; q < nq; q++) begin
          forced[q] = 1;
          to_err(qidx[q]);
          repeat (rnd(0, 30)) @(posedge clk);
        end
      end
      settle(-1);
      end_stops();
      audit();
    end
    // away under load
    uc_pct = 20;
    for (int round = 0; round < 6 * one; round++) begin
      setup_all(5);
      sqd_on = 1;
      for (int q = 0; q < nq; q++) begin
        for (int i = 0; i < 32 * one; i++) post_random(q, 0, i == 31);
        bell(q);
      end
      repeat (rnd(1, 3000)) @(posedge clk);
      end_now = 1;
      end_stops();
      for (int q = 0; q < nq; q += 2) qp_tab[qidx[q]].state = chance(50) ? QpReset : QpNone;
      for (int i = 0; i < 3 * one; i++) begin
        drain <= 1;
        @(posedge clk);
        while (!drain_done) @(posedge clk);
        drain <= 0;
        @(posedge clk);
      end
      for (int q = 0; q < nq; q += 2) begin
        dead[q] = 1;
        r_done[q] = r_rung[q];
      end
      for (int q = 1; q < nq; q += 2) if (qp_tab[qidx[q]].state == QpSqd) resume(q);
      end_now = 0;
      settle(-1);
      repeat (600) @(posedge clk);
      audit();
    end
    $display("SQD: %0d stops, %0d at rest, %0d in the middle; told %0d, not before RTS %0d, failed instead %0d; %0d of %0d queries draining",
      n_stop, n_idle_stop, n_part_stop, n_told, n_not_told, n_sqd_fail, n_busy_query, n_busy_query + n_quiet_query);
    // losses, refusals, late acknowledges
    jump_ok = 1;
    uc_pct = 0; ud_pct = 0; raw_pct = 0;
    n_sqd_again = 0;
    go_away();
    for (int round = 0; round < 6 * one; round++) begin
      rd_default = 30 * (round % 2);
      flow_default = round > 3;  // the peer gives credits
      posting = 0;
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'(rnd(2, 7)));
        set_retry(q, rnd(2, 3), 7, 7);
        lossy[q] = 1;
        k_updates[q] = round == 4;
        k_rate[q] = 4;
        drop_pc[q] = round == 0 ? 2 : 8;
        ackdrop_pc[q] = round == 3 ? 0 : 6;
        rnr_pc[q] = round == 2 ? 3 : 0;
      end
      ack_lat_min = round == 3 ? 1000 : 20;
      ack_lat_max = round == 3 ? 6000 : 300;
      posting = flow_default;
      sqd_on = 1;
      traffic(40, 0);
    end
    posting = 0;
    flow_default = 0;
    go_home();
    $display("SQD with loss: %0d stops; told %0d, %0d packets again in SQD", n_stop, n_told, n_sqd_again);
    if (n_idle_stop < 50 || n_part_stop < 50 || n_not_told < 20 || n_told < 200 || n_sqd_fail < 5 || n_busy_query < 20 || n_quiet_query < 20 || n_sqd_again < 50)
      $fatal(1, "corners");
    rd_default = 0;
  endtask

  initial begin
    for (int i = 0; i < NumQp * one; i++) begin
      qnum[i] = -1;
      qp_tab[i] = '0;
      qp_tab[i].state = QpNone;
    end
    for (int q = 0; q < nq; q++) begin
      qidx[q] = qp_idx_t'(q * 23);
      qnum[q * 23] = q;
      dead[q] = 1;
    end
    for (int m = 0; m < 8 * one; m++) begin
      mr_tab[m] = '0;
      mr_tab[m].valid = m != 5;
      mr_tab[m].variant = 8'($urandom());
      mr_tab[m].local_write = m != 6;
      mr_tab[m].pd = m == 4 ? OurPd + 1 : OurPd;
      mr_tab[m].va = {16'h00ab, 16'($urandom()), $urandom()};
      mr_tab[m].length = 64'h0100_0000 + 64'($urandom() % 10000);
      mr_tab[m].iova = {16'h0012, 16'($urandom()), $urandom()};
    end
    repeat (4) @(posedge clk);
    rst_n <= 1;
    @(posedge clk);

    // random traffic: ordinary, tiny window, no AckReq inside messages, long messages
    uc_pct = 30;
    ud_pct = 30;
    raw_pct = 20;
    setup_all(3);
    traffic(150, 0);
    moves = 1;
    setup_all(3);
    traffic(150, 0);
    window = 3;
    ack_lat_min = 500; ack_lat_max = 1500;
    traffic(40, 0);
    ack_lat_min = 20; ack_lat_max = 300;
    go_home();
    if (n_moves < 300 || n_mv_flights < 100) $fatal(1, "corners: %0d moves, %0d messages in flight", n_moves, n_mv_flights);
    window = 1; req_interval = 0;
    traffic(12, 0);
    window = 3; quantum_log = 14;
    traffic(15, 0);
    window = 16; req_interval = 1; quantum_log = 6;
    traffic(30, 0);
    window = 256; req_interval = 16; quantum_log = 15; noisy = 0;
    unexplained_req = 0;
    base = n_pkt;
    for (int q = 0; q < nq; q++) setup(q, 3'(rnd(3, 5)), 1'(q), 4'(rnd(0, 8)));
    traffic(6, 70000);
    // at the end of a turn
    if (unexplained_req > (n_pkt - base) / 6) $fatal(1, "AckReq %0d times without a reason in %0d packets", unexplained_req, n_pkt - base);
    quantum_log = 12;
    noisy = 1;
    // rings of one to four WQEs; many messages in flight with a slow peer
    for (int q = 0; q < nq; q++) setup(q, 3'd3, 1'(q), 4'(q % 3));
    traffic(60, 0);
    for (int q = 0; q < nq; q++) setup(q, 3'd3, 1'(q), 4'd8);
    window = 32768; ack_lat_min = 3000; ack_lat_max = 5000;
    traffic(400, 11);
    window = 64; req_interval = 4; ack_lat_min = 20; ack_lat_max = 300;
    if (n_window < 100 || n_ghost < 100 || n_multi < 100) $fatal(1, "corners: window %0d ghost %0d fragments %0d", n_window, n_ghost, n_multi);
    $display("random: %0d packets, %0d CQEs, %0d windows closed, %0d ghosts, %0d of %0d WQEs fetched", n_pkt, n_cqe, n_window, n_ghost, n_wqe, n_wqe_posted);

    // a smaller window while messages are under way strands nobody
    for (int q = 0; q < nq; q++) setup(q, 3'd1, 1'(q), 4'd3);
    req_interval = 0; window = 200; noisy = 0;
    for (int q = 0; q < nq; q++) begin
      plan(q, 1, 40000);
      post(q, 1, 0, 1, BadNone);
      bell(q);
    end
    base = n_pkt;
    while (n_pkt < base + NQ * 20) @(posedge clk);
    check_window = 0;  // packets on their way may be beyond the new one
    window = 2;
    settle(-1);
    audit();
    check_window = 1;
    noisy = 1; window = 64; req_interval = 4;

    // every local error, with good WQEs before and behind it
    for (int b = int'(BadOpcode); b <= int'(BadInline) * one; b++) begin
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd5);
        for (int i = 0; i < q; i++) post_random(q, 0, 0);
        want_nsge = b == int'(BadLong) ? 2 : rnd(1, 2);
        for (int i = 0; i < 4 * one; i++) plan_len[i] = rnd(14, 100);  // two fit into a datagram, one is a frame
        post(q, want_nsge, 0, chance(50), b);
        for (int i = 0; i < rnd(0, 15); i++) post_random(q, 0, 0);
        bell(q);
      end
      settle(-1);
      audit();
      for (int q = 0; q < nq; q++) if (!failed[q] || qp_tab[qidx[q]].state != QpErr) $fatal(1, "QP %0d did not fail (%0d)", q, b);
      // a doorbell in ERR is flushed
      for (int q = 0; q < nq; q++) begin
        for (int i = 0; i < rnd(1, 20); i++) post_random(q, 0, 0);
        bell(q);
      end
      settle(-1);
      audit();
    end
    if (n_local != NQ * int'(BadInline)) $fatal(1, "local errors %0d", n_local);
    if (n_axi_err < NQ) $fatal(1, "read errors %0d", n_axi_err);

    // NAKs, RNR, failed payload reads
    moves = 1;
    for (int round = 0; round < 12 * one; round++) begin
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd6);
        inject[q] = rnd(2, 30);
        case ((q + round) % 6)
          0: inject_syn[q] = 8'h60;
          1: inject_syn[q] = 8'h61;
          2: inject_syn[q] = 8'h62;
          3: inject_syn[q] = 8'h63;
          4: inject_syn[q] = 8'h20 | 8'(rnd(0, 31));
          default: inject_syn[q] = 8'h00;
        endcase
        for (int i = 0; i < 60 * one; i++) post_random(q, 0, i == 59);
        bell(q);
      end
      settle(-1);
      audit();
    end
    go_home();
    if (n_nak < 30 || n_flush < 500) $fatal(1, "corners: NAK %0d flush %0d", n_nak, n_flush);

    // QP put into ERR from outside at any moment
    for (int round = 0; round < 8 * one; round++) begin
      for (int q = 0; q < nq; q++) setup(q, 3'(rnd(1, 5)), 1'(q), 4'd6);
      for (int q = 0; q < nq; q++) begin
        for (int i = 0; i < 60 * one; i++) post_random(q, 0, 0);
        bell(q);
      end
      repeat (rnd(1, 1500)) @(posedge clk);
      for (int q = 0; q < nq; q++) begin
        forced[q] = 1;
        to_err(qidx[q]);
        repeat (rnd(0, 30)) @(posedge clk);
        if (chance(50) && int'(16'(r_pi[q] - r_done[q])) < size_of(q)) begin
          post_random(q, 0, 1);
          bell(q);
        end
      end
      // unsignaled WQEs at the end that had been completed before have no CQE: wait for idleness instead
      repeat (50) @(posedge clk);
      for (int i = 0; i < 20000 * one && !(idle && list_empty() && bells.size() == 0 && flushes.size() == 0 && acks.size() == 0); i++) @(posedge clk);
      for (int q = 0; q < nq; q++) begin
        while (r_done[q] != r_rung[q] && d_kind[q][int'(r_done[q]) % Ring] <= 1 && !d_signaled[q][int'(r_done[q]) % Ring]) r_done[q] = r_done[q] + 1;
        if (r_done[q] != r_rung[q]) $fatal(1, "QP %0d: WQE %0d neither completed nor flushed", q, r_done[q]);
      end
      audit();
    end

    if (n_uc < 2000 || n_ud < 500) $fatal(1, "corners: UC and UD %0d, UD %0d", n_uc, n_ud);
    uc_pct = 0;

    // UD: a message of one byte more than the MTU, a handle that does not exist, of another PD, beyond the table; raw frames too short, too long
    for (int b = 0; b < 6 * one; b++) begin
      ud_pct = b < 4 ? 100 : 0;
      raw_pct = b < 4 ? 0 : 100;
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd5);
        for (int i = 0; i < q; i++) post_random(q, 0, 0);
        for (int i = 0; i < 4 * one; i++) plan_len[i] = 0;
        plan_len[0] = b == 0 || b == 4 ? mtu_of(q) + 1 : b == 5 ? 13 : rnd(0, mtu_of(q));
        bad_ah = b == 0 || b > 3 ? -1 : b == 1 ? 20 : b == 2 ? 16 : 16'h8000 | rnd(0, 15);
        post(q, 1, 0, chance(50), BadNone);
        bad_ah = -1;
        d_kind[q][int'(16'(r_pi[q] - 16'd1)) % Ring] = 16 + int'(b == 0 || b > 3 ? WcStatusLocLenErr : WcStatusLocQpOpErr);
        for (int i = 0; i < rnd(0, 15); i++) post_random(q, 0, 0);
        bell(q);
      end
      settle(-1);
      audit();
      for (int q = 0; q < nq; q++) if (!failed[q] || qp_tab[qidx[q]].state != QpErr) $fatal(1, "QP %0d did not fail (%0d)", q, b);
    end
    ud_pct = 0;
    raw_pct = 0;
    if (n_raw < 200) $fatal(1, "corners: %0d raw", n_raw);

    // bad doorbells change nothing
    setup_all(4);
    base = n_bad_db;
    ring(QpnBase + 24'd1, 16'd1, chance(50), 0);  // does not exist
    qp_tab[qidx[0]].state = QpInit;
    qp_tab[qidx[1]].state = QpReset;
    qp_tab[qidx[2]].state = QpRtr;
    for (int q = 0; q < 3 * one; q++) ring(qpn_of(q), 16'd1, chance(50), 0);
    for (int q = 3; q < nq; q++) ring(qpn_of(q), 16'(size_of(q) + 1), chance(50), 0);
    for (int q = 3; q < nq; q++) ring(qpn_of(q), 16'hffff, chance(50), 0);
    while (bells.size() > 0) @(posedge clk);
    repeat (200) @(posedge clk);
    if (n_bad_db - base != 4 + 2 * (NQ - 3)) $fatal(1, "bad doorbells: %0d", n_bad_db - base);
    for (int q = 0; q < 3 * one; q++) qp_tab[qidx[q]].state = QpRts;
    audit();
    traffic(20, 0);

    // the edges of what an acknowledge may name, with packets outstanding and without
    setup_all(4);
    for (int q = 0; q < nq; q++) begin
      silent[q] = 1;
      plan(q, 1, 7);
      post(q, 1, 0, 1, BadNone);
      bell(q);
    end
    for (int q = 0; q < nq; q++) while (16'(r_send[q]) != 16'd1) @(posedge clk);
    repeat (50) @(posedge clk);
    base = n_ghost;
    for (int q = 0; q < nq; q++) begin
      acks.push_back({64'(cyc), qidx[q], r_psn[q], SynAck, 16'd0});
      acks.push_back({64'(cyc), qidx[q], r_psn[q], SynNakSeq, 16'd0});
      acks.push_back({64'(cyc), qidx[q], psn_t'(r_una[q] - 1), SynNakAccess, 16'd0});
      acks.push_back({64'(cyc), qidx[q], psn_t'(r_una[q] - 2), SynAck, 16'd0});
      acks.push_back({64'(cyc), qidx[q], psn_t'(r_una[q] - 1), SynAck, 16'd0});  // a duplicate
      acks.push_back({64'(cyc), qidx[q], psn_t'(r_psn[q] - 2), SynAck, 16'd0});  // most of it
    end
    while (acks.size() > 0 || ackrx_valid || rx_step != 0) @(posedge clk);
    repeat (50) @(posedge clk);
    if (n_ghost - base != 4 * NQ) $fatal(1, "ghosts at the edge: %0d", n_ghost - base);
    for (int q = 0; q < nq; q++) begin
      if (r_done[q] != 0) $fatal(1, "completed by a ghost");
      silent[q] = 0;
      acks.push_back({64'(cyc), qidx[q], psn_t'(r_psn[q] - 1), SynAck, 16'd0});
    end
    settle(-1);
    audit();

    // QPs at rest: the event at once; what is posted then waits for RTS, and needs no other doorbell
    for (int q = 0; q < nq; q++) begin
      stop(q, 1);
      for (int i = 0; i < 100 * one && d_tell[q]; i++) @(posedge clk);
      if (d_tell[q]) $fatal(1, "QP %0d at rest is not drained", q);
      for (int i = 0; i < 8 * one; i++) post_random(q, 0, i == 7);
      bell(q);
    end
    base = n_pkt;
    repeat (3000) @(posedge clk);
    if (n_pkt != base) $fatal(1, "a stopped QP sends");
    for (int q = 0; q < nq; q++) resume(q);
    settle(-1);
    audit();
    // a change of the MR table that is under way is finished first
    for (int q = 0; q < nq; q++) for (int n = 0; n < 4 * one; n++) begin
      post(q, 1, 1, 1, BadNone);
      base = n_change;
      bell(q);
      for (int i = 0; i < 1000 * one && n_change == base && r_done[q] != r_pi[q]; i++) @(posedge clk);
      repeat (rnd(0, 10)) @(posedge clk);
      stop(q, 1);
      for (int i = 0; i < 200 * one && d_tell[q]; i++) @(posedge clk);
      if (d_tell[q]) $fatal(1, "QP %0d is not drained after its change", q);
      resume(q);
      settle(q);
    end
    audit();

    // reset under load: state first, three drains, then nothing of the QP moves; the others go on
    for (int round = 0; round < 10 * one; round++) begin
      setup_all(5);
      for (int q = 0; q < nq; q++) begin
        for (int i = 0; i < 32 * one; i++) post_random(q, 0, i == 31);
        bell(q);
      end
      repeat (rnd(1, 2000)) @(posedge clk);
      for (int q = 0; q < nq; q += 2) qp_tab[qidx[q]].state = chance(50) ? QpReset : QpNone;
      for (int i = 0; i < 3 * one; i++) begin
        drain <= 1;
        t0 = cyc;
        @(posedge clk);
        while (!drain_done) begin
          @(posedge clk);
          if (cyc - t0 > 20000) $fatal(1, "drain never ends");
        end
        drain <= 0;
        @(posedge clk);
      end
      for (int q = 0; q < nq; q += 2) begin
        dead[q] = 1;
        r_done[q] = r_rung[q];
      end
      // what is left in the fragment queue belongs to packets that were sent
      settle(-1);
      repeat (600) @(posedge clk);
      audit();
    end

    // fairness: equal shares while all want to send, whatever the message size
    quantum_log = 12; window = 32768; noisy = 0;
    calm = 1; rd_lat_min = 100; ack_lat_min = 50; ack_lat_max = 50;
    for (int q = 0; q < nq; q++) setup(q, 3'd3, 0, 4'd7);
    for (int q = 0; q < nq; q++) begin
      for (int i = 0; i < 40 * one; i++) begin
        plan(q, 1, q % 3 == 0 ? 4096 : q % 3 == 1 ? 65536 : 16384);
        post(q, 1, 0, 1, BadNone);
      end
      bell(q);
    end
    for (int q = 0; q < nq; q++) while (sent_bytes[q] == 0) @(posedge clk);
    for (int q = 0; q < nq; q++) sent_bytes[q] = 0;  // counts from here, where all want to send
    base = n_wqe;
    while (sent_bytes[0] < 100000) @(posedge clk);
    lo = sent_bytes[0];
    hi = lo;
    for (int q = 0; q < nq; q++) begin
      if (sent_bytes[q] < lo) lo = sent_bytes[q];
      if (sent_bytes[q] > hi) hi = sent_bytes[q];
    end
    $display("fairness: %0d to %0d bytes per QP, %0d WQEs fetched", lo, hi, n_wqe - base);
    if (hi - lo > 2 * 4096) $fatal(1, "unfair: %0d to %0d bytes", lo, hi);
    settle(-1);
    audit();

    // somebody waits for a slot: turns of one packet, whatever the quantum, with as few AckReq as in longer ones
    quantum_log = 15; req_interval = 0;
    all_closed = 1;
    for (int q = 0; q < nq; q++) sent_bytes[q] = 0;
    for (int q = 0; q < nq; q++) setup(q, 3'd1, 0, 4'd7);
    unexplained_req = 0;
    for (int q = 0; q < nq; q++) begin
      plan(q, 1, 60000);
      post(q, 1, 0, 1, BadNone);
      bell(q);
    end
    for (int q = 0; q < nq; q++) while (sent_bytes[q] == 0) @(posedge clk);
    base = n_pkt;
    lo = 0;
    while (n_pkt < base + NQ * 25) begin
      base_row = n_pkt;
      @(posedge clk);
      if (n_pkt != base_row && n_row > lo) lo = n_row;
    end
    if (lo > 1) $fatal(1, "%0d packets in a turn while somebody waits for a slot", lo);
    settle(-1);
    if (unexplained_req > 0) $fatal(1, "AckReq %0d times without a reason", unexplained_req);
    audit();
    all_closed = 0;
    req_interval = 4;

    // speed: one QP, then many, 64-byte messages, read latency 125 cycles
    quantum_log = 14; rd_lat_min = 125; ack_lat_min = 100; ack_lat_max = 100;
    for (int q = 0; q < nq; q++) setup(q, 3'd3, 0, 4'd9);
    begin
      for (int i = 0; i < 500 * one; i++) begin
        plan(0, 1, 11);
        post(0, 1, 0, 1, BadNone);
      end
      bell(0);
      base = n_pkt;
      while (n_pkt < base + 100) @(posedge clk);
      t0 = cyc;
      while (n_pkt < base + 400) @(posedge clk);
      t1 = cyc;
      settle(0);
      $display("one QP: %0d.%02d cycles per WQE", (t1 - t0) / 300, ((t1 - t0) % 300) / 3);
      if (DataW == 512 && t1 - t0 > 5 * 300) $fatal(1, "too slow");
      if (t1 - t0 > 12 * 300) $fatal(1, "too slow");
      for (int q = 0; q < nq; q++) begin
        for (int i = 0; i < 100 * one; i++) begin
          plan(q, 1, 11);
          post(q, 1, 0, 1, BadNone);
        end
        bell(q);
      end
      base = n_pkt;
      while (n_pkt < base + 200) @(posedge clk);
      t0 = cyc;
      while (n_pkt < base + 800) @(posedge clk);
      t1 = cyc;
      settle(-1);
      $display("%0d QPs: %0d.%02d cycles per WQE", NQ, (t1 - t0) / 600, ((t1 - t0) % 600) / 6);
      if (DataW == 512 && t1 - t0 > 5 * 600) $fatal(1, "too slow");
      if (t1 - t0 > 12 * 600) $fatal(1, "too slow");
    end
    audit();

    // single WQEs at rest: every good push is used and nothing is read, no other one is; doorbell to packet
    for (int round = 0; round < 8 * one; round++) begin
      for (int q = 0; q < nq; q++) setup(q, 3'd3, 1'(q), 4'(round % 4));
      for (int k = 0; k < PushKinds * one; k++) begin
        for (int q = 0; q < nq; q++) begin
          push_kind = k;
          push_pct = 100;
          base = n_push;
          fetched = n_wqe;
          plan(q, 1, chance(50) ? 8 : 4096);
          post(q, 1, 0, 1, BadNone);
          bell(q);
          t0 = cyc;
          for (int i = 0; i < 1000 * one && !(pkt_valid && pkt_ready); i++) @(posedge clk);
          t1 = cyc - t0;
          settle(q);
          if (n_push - base != (k == PushGood ? 1 : 0) || n_wqe - fetched != (k == PushGood ? 0 : 1))
            $fatal(1, "push kind %0d, QP %0d: %0d pushed, %0d fetched", k, q, n_push - base, n_wqe - fetched);
          // less the stores, and the words of the WQE that pass through wqe_fetch
          if (k == PushGood && int'(t1) - stride_of(q) / 8 - stride_of(q) * 8 / int'(DataW) > slowest)
            slowest = int'(t1) - stride_of(q) / 8 - stride_of(q) * 8 / int'(DataW);
        end
      end
      // one behind another that waits for memory, and two at once: read
      push_kind = PushGood;
      for (int q = 0; q < nq; q++) begin
        base = n_push;
        fetched = n_wqe;
        if (size_of(q) < 4) continue;
        for (int i = 0; i < 2 * one; i++) begin
          plan(q, 1, 8);
          post(q, 1, 0, 1, BadNone);
        end
        // they are fetched together, unless the ring or a page ends between them: then the second one alone, from its copy
        slot = (int'(r_pi[q]) + size_of(q) - 2) % size_of(q);
        apart = slot == size_of(q) - 1 || (qp_tab[qidx[q]].sq_addr + 64'((slot + 1) * stride_of(q))) % 4096 == 0;
        bell(q);
        settle(q);
        if (n_push - base != int'(apart) || n_wqe - fetched != 2 - int'(apart))
          $fatal(1, "two WQEs, QP %0d, slot %0d: %0d pushed, %0d fetched", q, slot, n_push - base, n_wqe - fetched);
      end
    end
    $display("pushed WQE: doorbell to packet in %0d cycles at most", slowest);
    if (slowest > 20) $fatal(1, "too slow");
    push_kind = -1;
    push_pct = 60;
    audit();

    // a message of several MB
    window = 256; req_interval = 16;
    for (int q = 0; q < nq; q++) setup(q, 3'd3, 0, 4'd9);
    unexplained_req = 0;
    plan(3, 1, 1000003);
    post(3, 1, 0, 1, BadNone);
    bell(3);
    settle(-1);
    if (unexplained_req > 1) $fatal(1, "a QP alone asks for %0d acknowledges without a reason", unexplained_req);
    plan(3, 1, 5000003);
    post(3, 1, 0, 1, BadNone);
    plan(4, 2, 3000000);
    post(4, 2, 0, 1, BadNone);
    bell(3);
    bell(4);
    settle(-1);
    audit();

    // ---- READ and atomics ----
    read_phase_1();

    // ---- loss recovery ----
    if (n_again != 0 || n_timeout != 0) $fatal(1, "%0d packets sent again without a reason, %0d timeouts", n_again, n_timeout);
    calm = 0; noisy = 1; window = 64; req_interval = 4; quantum_log = 11; rd_lat_min = 20; ack_lat_min = 20; ack_lat_max = 300;
    jump_ok = 1;
    go_away();
    for (int round = 0; round < 4 * one; round++) begin
      base = n_pkt;
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'(rnd(2, 7)));
        set_retry(q, rnd(1, 2), 7, 7);
        lossy[q] = 1;
        drop_pc[q] = round == 0 ? 2 : 10;
        ackdrop_pc[q] = round == 3 ? 0 : 10;
        rnr_pc[q] = round == 2 ? 3 : 0;
      end
      // late acknowledges: behind the timeout
      if (round == 3) begin
        ack_lat_min = 1000; ack_lat_max = 6000;
      end
      list_lat = round % 2 == 0 ? 20 : 1000;
      traffic(round == 0 ? 100 : 40, 0);
      $display("loss %0d: %0d packets, %0d again, %0d set back, %0d forward; %0d timeouts, %0d NAKs, %0d RNRs, %0d jumps",
        round, n_pkt - base, n_again, n_rewind, n_late, n_timeout, n_nak_seq, n_rnr, n_jump);
      for (int q = 0; q < nq; q++) if (e_psn[q] != r_psn[q]) $fatal(1, "QP %0d: receiver at %h, sent %h", q, e_psn[q], r_psn[q]);
    end
    ack_lat_min = 20; ack_lat_max = 300;
    go_home();
    if (n_again < 500 || n_timeout < 50 || n_nak_seq < 50 || n_rnr < 10 || n_late == 0 || n_inl < 100)
      $fatal(1, "corners: again %0d timeout %0d NAK %0d RNR %0d late %0d inline %0d", n_again, n_timeout, n_nak_seq, n_rnr, n_late, n_inl);

    // silence: retry_cnt + 1 transmissions, each not before the timeout and soon after it, then the oldest WQE fails
    noisy = 0;
    list_lat = 5;
    busy_pct = 0;
    for (int round = 0; round < 3 * one; round++) begin
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd4);
        set_retry(q, round == 0 ? 1 : rnd(1, 31), q % 8, 7);
        lossy[q] = 1;
        black[q] = 1;
        fail_idx[q] = -2; fail_status[q] = WcStatusRetryExcErr; fail_syn[q] = 0;
        post(q, 0, chance(50), 0, BadNone);
        want_nsge = 1;
        plan(q, 1, rnd(4, 10));
        post(q, 1, 0, 0, BadNone);
        plan(q, 1, rnd(1, 11));
        post(q, 1, 0, 1, BadNone);
        bell(q);
        black_t[q] = tim;
      end
      settle(-1);
      audit();
      for (int q = 0; q < nq; q++) begin
        if (n_una[q] != q % 8 + 1 || !failed[q]) $fatal(1, "QP %0d: %0d transmissions, retry_cnt %0d", q, n_una[q], q % 8);
        if (qp_tab[qidx[q]].state != QpErr) $fatal(1, "QP %0d not in ERR", q);
      end
    end

    list_lat = 20;
    busy_pct = 1;

    // RNR: rnr_retry + 1 transmissions, then failure; 7 goes on for ever; every code's time is kept. The sequence NAK
    // for the packets behind the refused one does not count, with retry_cnt 0 it would be fatal.
    ack_lat_min = 100; ack_lat_max = 100;
    for (int round = 0; round < 3 * one; round++) begin
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd4);
        set_retry(q, 14, 0, q % 8);
        lossy[q] = 1;
        rnr_code[q] = (round * NQ + q) % 32;
        rnr_first[q] = q % 8 == 7 ? 12 : -1;
        fail_idx[q] = -2; fail_status[q] = WcStatusRnrRetryExcErr; fail_syn[q] = 8'h20 | 8'(rnr_code[q]);
        plan(q, 1, rnd(4, 10));
        post(q, 1, 0, 0, BadNone);
        plan(q, 1, rnd(4, 10));
        post(q, 1, 0, 1, BadNone);
        bell(q);
      end
      settle(-1);
      audit();
      for (int q = 0; q < nq; q++) begin
        if (q % 8 == 7 ? failed[q] || rnr_first[q] != 0 : !failed[q] || n_una[q] != q % 8 + 1)
          $fatal(1, "QP %0d: failed %b after %0d transmissions, rnr_retry %0d", q, failed[q], n_una[q], q % 8);
      end
    end

    // failed QPs and QPs taken away while their timers run: nothing more happens, others go on
    for (int q = 0; q < nq; q++) begin
      setup(q, 3'(rnd(1, 5)), 1'(q), 4'd4);
      set_retry(q, 1, 7, 7);
      lossy[q] = 1;
      black[q] = q % 3 != 0;
      for (int i = 0; i < 10 * one; i++) post_random(q, 0, i == 9);
      bell(q);
    end
    go_away();
    repeat (6000) @(posedge clk);
    for (int q = 0; q < nq; q++) begin
      if (q % 3 == 1) begin
        forced[q] = 1;
        to_err(qidx[q]);
      end
      if (q % 3 == 2) qp_tab[qidx[q]].state = QpReset;
    end
    for (int i = 0; i < 3 * one; i++) begin
      drain <= 1;
      @(posedge clk);
      while (!drain_done) @(posedge clk);
      drain <= 0;
      @(posedge clk);
    end
    repeat (3000) @(posedge clk);  // flushes
    for (int q = 2; q < nq; q += 3) begin
      dead[q] = 1;
      r_done[q] = r_rung[q];
    end
    for (int q = 1; q < nq; q += 3) r_done[q] = r_rung[q];
    settle(-1);
    repeat (10000) @(posedge clk);
    if (wake != '1 || !wake_valid) $fatal(1, "a timer runs though nothing is outstanding");
    go_home();

    // payloads that cannot be read, while packets before them are lost: what is before them completes first
    base = 0;
    for (int round = 0; round < 3 * one; round++) begin
      for (int q = 0; q < nq; q++) begin
        setup(q, 3'(rnd(1, 5)), 1'(q), 4'd6);
        set_retry(q, rnd(1, 3), 7, 7);
        lossy[q] = 1;
        drop_pc[q] = 5;
        ackdrop_pc[q] = 5;
        inject[q] = rnd(1, 4);
        fail_idx[q] = -2; fail_status[q] = WcStatusLocQpOpErr; fail_syn[q] = 0;
        for (int i = 0; i < 30 * one; i++) post_random(q, 0, i == 29);
        bell(q);
      end
      settle(-1);
      for (int q = 0; q < nq; q++) base += int'(failed[q]);
      audit();
    end
    $display("unreadable payloads behind losses: %0d QPs failed", base);
    if (base < 20) $fatal(1, "corners: unreadable payloads behind losses");

    for (int q = 0; q < nq; q++) setup(q, 3'(rnd(1, 5)), 1'(q), 4'd4);
    traffic(10, 0);

    read_phase_2();
    sqd_phase();

    credit_phase();

    $display("pushes: %0d of %0d doorbells with one used", n_push, n_bells);
    if (n_push < 200 || n_unused < 500) $fatal(1, "corners: %0d pushes used, %0d not", n_push, n_unused);
    $display("list: %0d timers expired, %0d while away (%0d came back, %0d to another slot), overtaken by a start %0d, by a stop %0d; %0d turns left: %0d rotation full, %0d behind others; %0d turns not needed, waited %0d cycles; no room %0d cycles",
      n_exp, n_exp_away, n_exp_back, n_exp_moved, n_over_arm, n_over_stop, n_leave, n_leave_full, n_leave_busy, n_turn_none, n_turn_wait, n_room);
    if (n_exp < 1000 || n_exp_back < 30 || n_exp_moved < 50 || n_over_arm < 15 || n_over_stop < 10 || n_leave_full < 100 || n_leave_busy < 1000 ||
        n_turn_none < 100 || n_turn_wait < 100 || n_room < 100) $fatal(1, "corners: list");
    $display("PASS %0d moves with %0d messages in flight and %0d READs (%0d times busy), %0d packets, %0d CQEs (%0d flushed), %0d ACKs, %0d NAKs, %0d UC packets, %0d UD, %0d cycles", n_moves, n_mv_flights, n_mv_reads, n_mv_busy, n_pkt, n_cqe, n_flush, n_ack, n_nak, n_uc - n_ud, n_ud, cyc);
    $finish;
  end
endmodule
