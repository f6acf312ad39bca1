// SPDX-License-Identifier: Apache-2.0
//
// Receive transport (RC, UC, UD and raw frames) with models of its QP and MR ports (random latency): every rule alone with
// literal expectations, then random sequences of right and wrong packets on several QPs against a
// reference model, then throughput, admin port and drain. Receive WQEs come from a model of the receive queues
// (good, malformed, none, flushed) with random latency. Responses to READs and atomics come in order, doubled, with gaps, wrong
// and unasked for, against entries of random scatter lists. The response queues answer at once, or, in some directed
// tests, not at all. Credits change in every cycle; reports of posted receives come between packets. DataW does not matter to this block.

module rx_transport_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [7:0] coalesce = 8'd0;
  logic meta_valid = 0, meta_ready, pcmd_valid, pcmd_ready = 0;
  rx_meta_t meta;
  payload_cmd_e pcmd;
  logic raw_valid = 0, gsi_valid = 0, grh_valid, grh_ready = 0;
  qp_idx_t gsi_idx = '0, raw_idx = '0;
  rx_grh_t grh;
  logic qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0;
  logic mr_req_valid, mr_req_ready = 0, mr_rsp_valid = 0;
  qp_idx_t qp_req_idx;
  mr_idx_t mr_req_idx;
  qp_attr_t qp_rsp;
  mr_t mr_rsp;
  logic rq_req_valid, rq_req_ready = 0, rq_rsp_valid = 0, flush_valid = 0, flush_ready;
  rq_req_t rq_req;
  rq_rsp_t rq_rsp;
  rq_flush_t flush;
  logic rq_adm_valid, rq_adm_ready = 0, rq_adm_init, rq_adm_rsp_valid = 0, ev_rnr;
  qp_idx_t rq_adm_qp;
  rq_query_t rq_adm_rsp;
  logic wr_valid, wr_ready = 0, ackrx_valid, ackrx_ready = 0, err_valid, err_ready = 0;
  rx_write_t wr;
  ack_rx_t ackrx;
  qp_idx_t err_idx;
  logic adm_valid = 0, adm_ready, adm_rsp_valid, drain = 0, drain_done, idle, ev_valid;
  qp_admin_t adm;
  rsp_query_t adm_rsp;
  logic [4:0] ev;
  rx_read_t rd;
  qp_idx_t rs_qp;
  rsp_done_t rd_done;
  logic ev_read, ev_atomic, cr_tell, ev_update;
  qp_idx_t cr_qp;
  logic [4:0] cr_code = '0;
  logic rd_re, rd_update_valid, ev_implied, ev_dup_rsp, ev_ghost_rsp;
  qp_idx_t rd_qp;
  rd_view_t rd_view;
  rd_update_t rd_update;

  logic mark_valid;
  qpn_t mark_qpn;
  logic [2:0] mark_prio;
  // CE marks to be told: QPN and priority
  logic [31:0] mark_rand = 32'h0bad_cafe;
  logic [18:0] exp_mark[$], one_mark;
  int n_mark_data = 0, n_mark_rsp = 0, n_mark_uc = 0, n_mark_lost = 0, n_mark_dup = 0, n_no_mark = 0;

  // keys to invalidate: odd ones are wrong
  logic chg_valid, chg_ready = 0, chg_rsp_valid = 0, bar_valid = 0, bar_ready;
  mr_change_t chg, chg_now;
  mr_result_e chg_rsp = MrDone;
  int chg_wait = 0, n_chg, want_chg, n_bar, want_bar;
  // flushes of send queues: behind the writes of all packets taken before
  logic sq_flush_valid = 0, sq_flush_ready;
  qp_idx_t sq_flush_idx = '0;
  qp_idx_t exp_sq_flush[$];
  int sq_flush_behind[$], made_at[$], wr_done = 0, n_sq_flush = 0;
  bit sq_flush_taken = 0;
  bit bar_taken = 0, timed = 0;  // timed: throughput or drain is being measured
  bit moving = 0;
  logic meta_held, flush_held, adm_held, meta_ready_d, flush_ready_d, adm_ready_d, slot_busy, ctx_valid = 0, ctx_ready, ctx_load = 0;
  qp_idx_t mv_qp = '0, probe_qp = '0, ctx_qp = '0;
  rsp_state_t ctx_in = '0, ctx_out;

  // what rx_lookup says; QPN is 256 and the number of the QP
  localparam logic [23:0] QpnBase = 24'd256;
  bit late_on = 0;   // packets without a QP and with an odd PSN are said to be late
  function automatic qp_idx_t for_qp(rx_meta_t m);
    return m.raw ? raw_idx : m.dest_qp == 24'd1 ? gsi_idx : qp_idx_t'(m.dest_qp);
  endfunction
  function automatic bit no_qp(rx_meta_t m);
    return m.raw ? !raw_valid : m.dest_qp == 24'd1 ? !gsi_valid : m.dest_qp[23:8] != 16'd1;
  endfunction

  rx_transport dut (
    .clk_i(clk), .rst_ni(rst_n), .coalesce_i(coalesce),
    .meta_valid_i(meta_valid && !meta_held), .meta_ready_o(meta_ready_d), .meta_i(meta),
    .meta_qp_i(for_qp(meta)), .meta_none_i(no_qp(meta)), .meta_late_i(late_on && no_qp(meta) && meta.psn[0]),
    .pcmd_valid_o(pcmd_valid), .pcmd_ready_i(pcmd_ready), .pcmd_o(pcmd),
    .grh_valid_o(grh_valid), .grh_ready_i(grh_ready), .grh_o(grh),
    .qp_req_valid_o(qp_req_valid), .qp_req_ready_i(qp_req_ready), .qp_req_idx_o(qp_req_idx),
    .qp_rsp_valid_i(qp_rsp_valid), .qp_rsp_i(qp_rsp),
    .mr_req_valid_o(mr_req_valid), .mr_req_ready_i(mr_req_ready), .mr_req_idx_o(mr_req_idx),
    .mr_rsp_valid_i(mr_rsp_valid), .mr_rsp_i(mr_rsp),
    .rq_req_valid_o(rq_req_valid), .rq_req_ready_i(rq_req_ready), .rq_req_o(rq_req),
    .rq_rsp_valid_i(rq_rsp_valid), .rq_rsp_i(rq_rsp),
    .flush_valid_i(flush_valid && !flush_held), .flush_ready_o(flush_ready_d), .flush_i(flush),
    .cr_qp_o(cr_qp), .cr_tell_o(cr_tell), .cr_code_i(cr_code), .ev_credit_update_o(ev_update),
    .rq_adm_valid_o(rq_adm_valid), .rq_adm_ready_i(rq_adm_ready), .rq_adm_init_o(rq_adm_init),
    .rq_adm_qp_o(rq_adm_qp), .rq_adm_rsp_valid_i(rq_adm_rsp_valid), .rq_adm_rsp_i(rq_adm_rsp),
    .wr_valid_o(wr_valid), .wr_ready_i(wr_ready), .wr_o(wr), .rd_o(rd),
    .rd_qp_o(rs_qp), .rd_done_valid_i(1'b1), .rd_done_i(rd_done), .rd_left_i(rd_done.done),
    .chg_valid_o(chg_valid), .chg_ready_i(chg_ready), .chg_o(chg), .chg_rsp_valid_i(chg_rsp_valid),
    .chg_rsp_i(chg_rsp), .bar_valid_i(bar_valid), .bar_ready_o(bar_ready),
    .sq_flush_valid_i(sq_flush_valid), .sq_flush_ready_o(sq_flush_ready), .sq_flush_idx_i(sq_flush_idx),
    .ackrx_valid_o(ackrx_valid), .ackrx_ready_i(ackrx_ready), .ackrx_o(ackrx),
    .qp_err_valid_o(err_valid), .qp_err_ready_i(err_ready), .qp_err_idx_o(err_idx),
    .adm_valid_i(adm_valid && !adm_held), .adm_ready_o(adm_ready_d), .adm_i(adm),
    .probe_qp_i(probe_qp), .busy_o(slot_busy), .ctx_valid_i(ctx_valid), .ctx_ready_o(ctx_ready), .ctx_load_i(ctx_load), .ctx_qp_i(ctx_qp),
    .ctx_i(ctx_in), .ctx_o(ctx_out),
    .adm_rsp_valid_o(adm_rsp_valid), .adm_rsp_o(adm_rsp),
    .drain_i(drain), .drain_done_o(drain_done), .idle_o(idle),
    .rt_re_o(rd_re), .rt_qp_o(rd_qp), .rt_view_i(rd_view),
    .rt_update_valid_o(rd_update_valid), .rt_update_o(rd_update),
    .mark_valid_o(mark_valid), .mark_qpn_o(mark_qpn), .mark_prio_o(mark_prio),
    .ev_implied_o(ev_implied), .ev_dup_rsp_o(ev_dup_rsp), .ev_ghost_rsp_o(ev_ghost_rsp),
    .ev_drop_valid_o(ev_valid), .ev_drop_o(ev), .ev_rnr_o(ev_rnr),
    .ev_read_o(ev_read), .ev_atomic_o(ev_atomic)
  );

  // ---- moves: the state of a QP with nothing under way is read, loaded into a slot that nobody uses, overwritten, and brought back.
  // What comes for the QP waits meanwhile. Random numbers of its own, so that the rest is what it would be without.
  localparam qp_idx_t Spare = qp_idx_t'(253);
  assign meta_held = moving && for_qp(meta) == mv_qp;
  assign flush_held = moving && flush.qp == mv_qp;
  assign adm_held = moving && adm.qp == mv_qp;
  assign meta_ready = meta_ready_d && !meta_held;
  assign flush_ready = flush_ready_d && !flush_held;
  assign adm_ready = adm_ready_d && !adm_held;
  bit mv_took, mv_busy;
  int n_moves, n_mv_busy;
  logic [31:0] mv_rand = 32'h1234_5678;
  rsp_state_t mv_state;
  function automatic logic [31:0] mv_next(logic [31:0] v);
    v = v ^ (v << 13);
    v = v ^ (v >> 17);
    return v ^ (v << 5);
  endfunction
  task automatic access(bit load, qp_idx_t slot);
    ctx_valid = 1;
    ctx_load = load;
    ctx_qp = slot;
    do begin
      @(posedge clk);
      mv_took = ctx_ready;
      @(negedge clk);
    end while (!mv_took);
    ctx_valid = 0;
  endtask
  initial forever begin
    @(negedge clk);
    mv_rand = mv_next(mv_rand);
    if (rst_n && !timed && mv_rand[1:0] == 0) begin
      mv_qp = mv_rand[8] ? 8'd5 : qp_idx_t'(31 * (mv_rand[31:16] % 8));
      if (!(meta_valid && for_qp(meta) == mv_qp) && !(flush_valid && flush.qp == mv_qp) && !(adm_valid && adm.qp == mv_qp) &&
          qps[Spare].state == QpNone) begin
        moving = 1;
        probe_qp = mv_qp;
        @(posedge clk);
        mv_busy = slot_busy;
        @(negedge clk);
        n_mv_busy += int'(mv_busy);
        if (!mv_busy) begin
          access(0, mv_qp);
          mv_state = ctx_out;
          ctx_in = mv_state;
          access(1, Spare);
          ctx_in = ~mv_state;
          access(1, mv_qp);
          access(0, Spare);
          ctx_in = ctx_out;
          access(1, mv_qp);
          if (ctx_in != mv_state) $fatal(1, "QP %0d: %p, was %p", mv_qp, ctx_in, mv_state);
          n_moves++;
        end
        moving = 0;
      end
    end
  end

  // ---- tables behind the ports ----
  qp_attr_t qps[NumQp];
  localparam int NumMr = 1024;
  mr_t mrs[NumMr];
  // response queues: requests done of each QP; those that do not leave at once wait in the block's count
  rsp_done_t dones[NumQp];
  bit hold_rsp = 0;
  assign rd_done = dones[rs_qp];
  int stall = 0;
  bit hold_wr = 0;
  qp_idx_t qp_pend[$];
  mr_idx_t mr_pend[$];
  qp_idx_t qp_idx;
  mr_idx_t mr_idx;
  rx_meta_t todo[$];
  bit meta_taken = 0;

  function automatic bit go();
    return int'($urandom() % 100) >= stall;
  endfunction

  // ---- receive queues: what is posted, WQE 0 at the head ----
  typedef struct packed {
    logic        bad;
    logic [31:0] seq;            // packets made before it was posted
    rq_rsp_t     r;
  } posted_t;
  // (indexed by exactly 8 bits: Verilator 5.006 dies on a queue out of range)
  posted_t  rqs[NumQp][$];       // as the block must see them, taken by requests
  posted_t  r_rqs[NumQp][$];     // as the reference takes them
  posted_t  rq_cur[NumQp];       // open
  posted_t  rq_head;
  bit       rq_open[NumQp], rq_gone[NumQp];
  int       rq_index[NumQp];
  rq_rsp_t  rq_next;
  int       gen_total = 0, taken_total = 0;
  int       rq_wait = 0, rq_adm_wait = 0, n_req, n_again;
  rq_flush_t flush_todo[$];
  bit       flush_taken = 0;

  function automatic void post(int q, int num, logic [127:0] s0, logic [127:0] s1, logic [127:0] s2, logic [127:0] s3, bit isbad);
    posted_t p;
    p.bad = isbad;
    p.seq = gen_total;
    p.r.status = isbad ? RqBad : RqOk;
    p.r.index = 16'(rq_index[q]);
    p.r.num_sge = 3'(num);
    p.r.sge = {s3, s2, s1, s0};
    rq_index[q]++;
    rqs[8'(q)].push_back(p);
    r_rqs[8'(q)].push_back(p);
  endfunction
  function automatic logic [127:0] sge_of(logic [63:0] addr, int len, logic [31:0] key);
    return {key, 32'(len), addr};
  endfunction

  function automatic void rq_serve(rq_req_t r);
    int q;
    q = int'(r.qp);
    n_req++;
    if (r.has_srq != qps[q].has_srq || (r.has_srq && r.srqn != qps[q].srqn)) $fatal(1, "QP %0d: SRQ %0d", q, r.srqn);
    rq_next = {($bits(rq_rsp_t) / 32 + 1) {$urandom()}};
    if (rq_gone[q]) rq_next.status = RqGone;
    else if (r.start) begin
      if (rq_open[q] && qps[q].qp_type == QpTypeRc) $fatal(1, "QP %0d: start while a WQE is open", q);
      if (rqs[8'(q)].size() != 0) rq_head = rqs[8'(q)][0];
      if (rq_open[q]) begin
        // its message was given up
        rq_next = rq_cur[q].r;
        rq_open[q] = !r.last;
        n_again++;
      end else if (rqs[8'(q)].size() == 0 || int'(rq_head.seq) >= taken_total) rq_next.status = RqNone;
      else begin
        rq_cur[q] = rqs[8'(q)].pop_front();
        rq_next = rq_cur[q].r;
        rq_open[q] = !r.last;
      end
    end else begin
      if (!rq_open[q]) $fatal(1, "QP %0d: no WQE is open", q);
      rq_next = rq_cur[q].r;
      rq_open[q] = !r.last;
    end
  endfunction
  always @(posedge clk) if (rst_n) begin
    if (rq_req_valid && rq_req_ready) begin
      rq_serve(rq_req);
      rq_wait = 1 + (stall == 0 ? 0 : int'($urandom() % 20));
      rq_rsp = {($bits(rq_rsp_t) / 32 + 1) {$urandom()}};
    end
    if (rq_adm_valid && rq_adm_ready) rq_adm_wait = 1;
    flush_taken = flush_valid && flush_ready;
  end
  always @(negedge clk) begin
    rq_rsp_valid = 0;
    rq_adm_rsp_valid = 0;
    rq_adm_rsp = {$urandom()};
    if (rst_n) begin
      rq_req_ready = rq_wait == 0 && !rq_rsp_valid && go();
      if (rq_wait == 1) begin
        rq_rsp_valid = 1;
        rq_rsp = rq_next;
        rq_req_ready = 0;
      end
      if (rq_wait > 0) rq_wait--;
      rq_adm_ready = rq_adm_wait == 0 && go();
      if (rq_adm_wait > 0) begin
        rq_adm_wait = 0;
        rq_adm_rsp_valid = 1;
        rq_adm_rsp = '{open: 1'b1, pi: 16'h1234, ci: {8'h56, rq_adm_qp}};
      end
      if (flush_taken) flush_valid = 0;
      if (!flush_valid && flush_todo.size() != 0) begin
        flush = flush_todo.pop_front();
        flush_valid = 1;
      end
    end
  end

  always @(negedge clk) begin
    if (rst_n) begin
      qp_rsp_valid = 0;
      mr_rsp_valid = 0;
      qp_rsp = {($bits(qp_attr_t) / 32 + 1) {$urandom()}};  // nobody may look when it is not valid
      mr_rsp = {($bits(mr_t) / 32 + 1) {$urandom()}};
      if (qp_pend.size() != 0 && go()) begin
        qp_rsp_valid = 1;
        qp_idx = qp_pend.pop_front();
        qp_rsp = qps[qp_idx];
      end
      if (mr_pend.size() != 0 && go()) begin
        mr_rsp_valid = 1;
        mr_idx = mr_pend.pop_front();
        mr_rsp = mr_idx < NumMr ? mrs[mr_idx[9:0]] : '0;
      end
      qp_req_ready = go();
      mr_req_ready = go();
      pcmd_ready = go();
      grh_ready = go();
      wr_ready = go() && !hold_wr;
      ackrx_ready = go();
      err_ready = go();
      if (meta_taken) meta_valid = 0;
      meta_taken = 0;
      if (!meta_valid && todo.size() != 0 && go()) begin
        meta = todo.pop_front();
        meta_valid = 1;
      end
    end
  end

  // ---- READs and atomics: l_ as the block must see them, r_ as the reference takes responses ----
  rd_entry_t l_rd[NumQp][$], r_rd[NumQp][$];
  psn_t l_exp[NumQp], r_exp[NumQp], v_max[NumQp];
  bit l_gap[NumQp], r_gap[NumQp], v_inc[NumQp];
  rd_update_t exp_update[$];
  rd_view_t rd_next;
  int n_implied, n_dup_rsp, n_ghost_rsp, n_rsp_bad, n_rsp_prot, n_taken, n_rsp_split, n_atomic, n_ordered;
  int want_implied, want_dup_rsp, want_ghost_rsp;
  always @(posedge clk) if (rst_n) begin
    if (ev_implied) n_implied++;
    if (ev_dup_rsp) n_dup_rsp++;
    if (ev_ghost_rsp) n_ghost_rsp++;
    if (mark_valid) begin
      if (exp_mark.size() == 0) $fatal(1, "%s: mark of QPN %0d nobody expects", test, mark_qpn);
      one_mark = exp_mark.pop_front();
      if ({mark_qpn, mark_prio} != one_mark) $fatal(1, "%s: mark of QPN %0d, priority %0d; want %h", test, mark_qpn, mark_prio, one_mark);
    end
    if (rd_update_valid) begin
      if (exp_update.size() == 0 || rd_update !== exp_update[0]) $fatal(1, "update %p, want %p", rd_update, u_new);
      void'(exp_update.pop_front());
      if (rd_update.take) begin
        l_exp[rd_update.qp] = l_exp[rd_update.qp] + 1;
        l_gap[rd_update.qp] = 0;
        if (rd_update.last) begin
          void'(l_rd[8'(rd_update.qp)].pop_front());
          if (l_rd[8'(rd_update.qp)].size() != 0) l_exp[rd_update.qp] = l_rd[8'(rd_update.qp)][0].base;
        end
      end else begin
        l_gap[rd_update.qp] = 1;
      end
    end
    if (rd_re) begin
      rd_next = {($bits(rd_view_t) / 32 + 1) {$urandom()}};
      rd_next.waiting = l_rd[8'(rd_qp)].size() != 0;
      rd_next.incomplete = rd_next.waiting || v_inc[rd_qp];
      rd_next.gap = l_gap[rd_qp];
      rd_next.max_psn = v_max[rd_qp];
      if (rd_next.waiting) begin
        rd_next.psn = l_exp[rd_qp];
        rd_next.entry = l_rd[8'(rd_qp)][0];
      end
    end
  end
  always @(negedge clk) rd_view = rd_next;

  // ---- what the block did, and what it must do ----
  rx_write_t    exp_wr[$];
  rx_read_t     exp_rd[$], last_rd, r5;
  int           n_reads, n_atomics, want_reads, want_atomics, n_later, n_dup_rd, n_part_rd;
  ack_rx_t      exp_ackrx[$];
  payload_cmd_e exp_pcmd[$];
  rx_grh_t      exp_grh[$];
  int           exp_after[$];     // with each command: GRHs that must be out before it
  int           n_grh, want_grh, want_streams;
  qp_idx_t      exp_err[$];
  int           exp_drop[$];
  rq_flush_t    exp_flush[$];
  rx_write_t    w5;
  rq_flush_t    some_flush, f5;
  rx_write_t    last_wr;
  ack_rx_t      last_ackrx;
  payload_cmd_e last_pcmd;
  int n_wr, n_ackrx, n_pcmd, n_err, n_drop, last_drop, n_meta, cycle, seen_drop[32], n_stream;
  int first_meta_cycle, last_meta_cycle;

  // ---- credits: what the block tells is the count of the cycle in which it says so; each ACK or response of a QP with credits tells
  typedef struct packed {
    logic [31:0] q;
    psn_t        epsn;
    logic [23:0] msn;
    logic        dead;
  } snap_t;
  snap_t snaps[$], snap;         // of each packet made: the state behind it
  psn_t d_epsn[NumQp];           // the same, of the packets that the block has taken
  logic [23:0] d_msn[NumQp];
  bit d_dead[NumQp];
  bit tell_q = 0, upd_wr = 0;  // upd_wr: the next write is a repeated acknowledge
  qp_idx_t tell_qp, upd_qp;
  psn_t upd_psn;
  logic [23:0] upd_msn;
  logic [4:0] tell_code;
  int n_tell, want_tell, n_upd, n_upd_dead, n_ev_upd;
  function automatic bit flow(int q);
    return qps[8'(q)].flow_control && qps[8'(q)].qp_type == QpTypeRc && !qps[8'(q)].has_srq;
  endfunction
  always @(negedge clk) cr_code = 5'($urandom() % 31);
  always @(posedge clk) if (rst_n) begin
    if (tell_q && (!wr_valid || wr.qp != tell_qp || wr.syndrome != {3'd0, tell_code})) $fatal(1, "told %0d to QP %0d: %p", tell_code, tell_qp, wr);
    tell_q = cr_tell;
    tell_qp = cr_qp;
    tell_code = cr_code;
    n_tell += int'(cr_tell);
    n_ev_upd += int'(ev_update);
  end

  // has_payload 0 leaves iova without a meaning
  function automatic bit same_wr(rx_write_t a, rx_write_t b);
    // asked for behind responses: compared as what it would be without them
    if (a.kind == RxError) a.kind = RxData;
    if (flow(int'(b.qp)) && !b.to_req && b.syndrome == 8'h1f && a.syndrome < 8'h1f && (a.ack || a.kind inside {RxRead, RxAtomic}))
      a.syndrome = 8'h1f;
    if (!a.has_payload) begin
      if (a.kind != RxAtomic || !a.last) a.iova = b.iova;  // (an atomic that comes again is not executed)
      if (a.syndrome != SynAck || !a.last) a.len = b.len;
    end
    if (!a.ack && a.kind == RxData && (!a.to_req || a.src == AckLocal)) a.syndrome = b.syndrome;
    if (a.src == AckLocal) a.credits = b.credits;
    if (!a.has_value) a.value = b.value;
    if (a.to_req && a.src != AckPacket) a.msn = b.msn;
    if (!a.has_cqe) a.cqe = b.cqe;
    if (!a.to_req) a.credits = b.credits;
    if (a.more) {a.psn, a.msn, a.syndrome} = {b.psn, b.msn, b.syndrome};
    return a === b;
  endfunction

  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n) begin
      if (qp_req_valid && qp_req_ready) qp_pend.push_back(qp_req_idx);
      if (mr_req_valid && mr_req_ready) mr_pend.push_back(mr_req_idx);
      meta_taken = meta_valid && meta_ready;
      if (meta_taken) begin
        if (n_meta == 0) first_meta_cycle = cycle;
        last_meta_cycle = cycle;
        n_meta++;
        taken_total++;
        snap = snaps.pop_front();
        if (snap.q < 256) begin
          d_epsn[snap.q[7:0]] = snap.epsn;
          d_msn[snap.q[7:0]] = snap.msn;
          d_dead[snap.q[7:0]] = snap.dead;
        end
      end
      if (wr_valid && wr_ready && wr.barrier) begin
        n_bar++;
        w5 = '0;
        w5.barrier = 1;
        if (wr !== w5) $fatal(1, "barrier %p", wr);
      end else if (wr_valid && wr_ready && wr.flush) begin
        n_sq_flush++;
        if (exp_sq_flush.size() == 0) $fatal(1, "flush of a send queue nobody asked for");
        w5 = '0;
        w5.qp = exp_sq_flush[0];
        w5.flush = 1;
        if (wr !== w5) $fatal(1, "flush of a send queue %p", wr);
        if (wr_done < sq_flush_behind[0]) $fatal(1, "flush of a send queue behind %0d writes, want %0d", wr_done, sq_flush_behind[0]);
        void'(exp_sq_flush.pop_front());
        void'(sq_flush_behind.pop_front());
      end else if (wr_valid && wr_ready) begin
        if (!upd_wr) begin
          n_wr++;
          last_wr = wr;
        end
        if (flow(int'(wr.qp)) && !wr.more && !wr.to_req && wr.syndrome < 8'h20 && (wr.ack || wr.kind inside {RxRead, RxAtomic})) want_tell++;
        if (upd_wr) begin
          upd_wr = 0;
          w5 = '0;
          w5.qp = upd_qp;
          w5.ack = 1;
          w5.psn = upd_psn;
          w5.msn = upd_msn;
          w5.syndrome = wr.syndrome;
          if (wr !== w5) $fatal(1, "repeated QP %0d psn %h msn %h syn %h, want QP %0d psn %h msn %h: %h %h", wr.qp, wr.psn, wr.msn, wr.syndrome, w5.qp, w5.psn, w5.msn, wr, w5);
          n_upd++;
        end else if (wr.has_cqe && wr.cqe.status == 8'd5) begin
          // a flush comes between packets, whatever is under way
          if (exp_flush.size() == 0) $fatal(1, "flush nobody asked for");
          f5 = exp_flush[0];
          w5 = '0;
          w5.qp = f5.qp;
          w5.has_cqe = 1;
          w5.cqe.last_wqe = f5.last_wqe;
          w5.cqe.cqn = f5.cqn;
          w5.cqe.qp = f5.qp;
          w5.cqe.index = f5.index;
          w5.cqe.opcode = 8'd128;
          w5.cqe.status = 8'd5;
          if (exp_flush.size() == 0 || wr !== w5) $fatal(1, "flush %p\nwant  %p", wr, w5);
          void'(exp_flush.pop_front());
          n_flushed++;
        end else begin
        if (exp_wr.size() == 0) $fatal(1, "write nobody expects: %p", wr);
        if (!same_wr(wr, exp_wr[0])) begin
          w5 = exp_wr[0];
          $fatal(1, "%s: write kind %0d qp %0d pl %0d iova %h len %0d ack %0d last %0d psn %h msn %h syn %h cqe %0d req %0d src %0d fail %0d value %0d\nwant kind %0d qp %0d pl %0d iova %h len %0d ack %0d last %0d psn %h msn %h syn %h cqe %0d req %0d src %0d fail %0d value %0d", test,
                 wr.kind, wr.qp, wr.has_payload, wr.iova, wr.len, wr.ack, wr.last, wr.psn, wr.msn, wr.syndrome, wr.has_cqe, wr.to_req, wr.src, wr.fail, wr.has_value,
                 w5.kind, w5.qp, w5.has_payload, w5.iova, w5.len, w5.ack, w5.last, w5.psn, w5.msn, w5.syndrome, w5.has_cqe, w5.to_req, w5.src, w5.fail, w5.has_value);
        end
        void'(exp_wr.pop_front());
        wr_done++;
        last_rd = rd;
        if (wr.kind == RxRead || wr.kind == RxAtomic) begin
          r5 = exp_rd.pop_front();
          if (wr.kind == RxRead) {r5.fetch_add, r5.swap_add, r5.compare} = {rd.fetch_add, rd.swap_add, rd.compare};
          else {r5.va, r5.rkey, r5.len} = {rd.va, rd.rkey, rd.len};
          if (rd !== r5) $fatal(1, "request %p\nwant    %p", rd, r5);
          if (rd.dup) n_dup_rd++;
          if (!hold_rsp) begin
            dones[wr.qp].done = dones[wr.qp].done + 1'b1;
            if (!rd.dup) dones[wr.qp].fresh = dones[wr.qp].fresh + 1'b1;
          end
        end
        if (wr.kind == RxError) begin
          n_later++;
          if (exp_err.size() == 0 || wr.qp !== exp_err[0]) $fatal(1, "error behind the responses of %0d", wr.qp);
          if (rd.slot != rsp_slot_t'(r_slot[wr.qp])) $fatal(1, "slot of an error: %0d, want %0d", rd.slot, r_slot[wr.qp] % 32);
          void'(exp_err.pop_front());
          qps[wr.qp].state = QpErr;
        end
        end
      end
      if (flush_valid && flush_ready && flush.credits) begin
        upd_wr = !d_dead[flush.qp];
        upd_qp = flush.qp;
        // the next packet may be taken before this leaves
        upd_psn = d_epsn[flush.qp] - 24'd1;
        upd_msn = d_msn[flush.qp];
        n_upd_dead += int'(d_dead[flush.qp]);
      end
      if (ackrx_valid && ackrx_ready) begin
        n_ackrx++;
        last_ackrx = ackrx;
        if (exp_ackrx.size() == 0 || ackrx !== exp_ackrx[0]) $fatal(1, "acknowledge %p", ackrx);
        void'(exp_ackrx.pop_front());
      end
      if (grh_valid && grh_ready) begin
        n_grh++;
        if (exp_grh.size() == 0 || grh !== exp_grh[0]) $fatal(1, "GRH %p", grh);
        void'(exp_grh.pop_front());
      end
      if (pcmd_valid && pcmd_ready) begin
        if (n_grh < exp_after[0]) $fatal(1, "payload before its GRH");
        void'(exp_after.pop_front());
        n_pcmd++;
        last_pcmd = pcmd;
        if (pcmd == PayloadStream) n_stream++;
        if (exp_pcmd.size() == 0 || pcmd !== exp_pcmd[0]) $fatal(1, "payload command %0d", pcmd);
        void'(exp_pcmd.pop_front());
      end
      if (err_valid && err_ready) begin
        n_err++;
        if (exp_err.size() == 0 || err_idx !== exp_err[0]) $fatal(1, "QP error of %0d", err_idx);
        void'(exp_err.pop_front());
        qps[err_idx].state = QpErr;
      end
      if (ev_valid) begin
        n_drop++;
        last_drop = int'(ev);
        seen_drop[ev]++;
        if (exp_drop.size() == 0 || int'(ev) != exp_drop[0]) begin
          $fatal(1, "drop reason %0d, want %0d", ev, exp_drop.size() == 0 ? -1 : exp_drop[0]);
        end
        void'(exp_drop.pop_front());
      end
    end
  end

  always @(posedge clk) if (rst_n) begin
    if (chg_valid && chg_ready) begin
      n_chg++;
      chg_now = chg;
      chg_wait = 2 + (stall == 0 ? 0 : int'($urandom() % 10));
      if (chg.op != MrInvalidateRemote || chg.qpn[15:8] != 8'd1 || chg.pd != qps[qp_idx_t'(chg.qpn)].pd) $fatal(1, "change %p", chg);
    end
    bar_taken = bar_valid && bar_ready;
    sq_flush_taken = sq_flush_valid && sq_flush_ready;
    if (sq_flush_taken) begin
      exp_sq_flush.push_back(sq_flush_idx);
      sq_flush_behind.push_back(taken_total == 0 ? 0 : made_at[taken_total-1]);
    end
  end
  always @(negedge clk) if (rst_n) begin
    chg_rsp_valid = chg_wait == 1;
    chg_rsp = chg_wait != 1 ? mr_result_e'($urandom() % 3) : !chg_now.key[0] ? MrDone : chg_now.key[1] ? MrBadKey : MrNotBound;
    if (chg_wait > 0) chg_wait--;
    chg_ready = chg_wait == 0 && go();
    if (sq_flush_taken) sq_flush_valid = 0;
    else if (!sq_flush_valid && !timed && todo.size() > 3 && $urandom() % 100 == 0) begin
      sq_flush_valid = 1;
      sq_flush_idx = qp_idx_t'($urandom());
    end
    if (bar_taken) bar_valid = 0;
    else if (!bar_valid && !timed && todo.size() > 3 && $urandom() % 100 == 0) begin
      bar_valid = 1;
      want_bar++;
    end
  end

  int want_rnr, n_rnr, n_fault[8], n_split, n_cqe, n_flushed;
  always @(posedge clk) if (rst_n) begin
    if (ev_rnr) n_rnr++;
    if (ev_read) n_reads++;
    if (ev_atomic) n_atomics++;
  end

  // Loop bounds kept in variables: Verilator would unroll the loops and compile for minutes.
  int n4 = 4, n8 = 8, n18 = 18, rounds = 126;

  // ---- reference model: one packet at a time, in integers ----
  bit psn_open[NumQp];  // UC: the state after a refused packet does not matter
  int n_uc, n_uc_none, n_raw, n_ud, n_kept, one = 1;
  int r_slot[NumQp];            // requests ever put into the response queue
  longint r_epsn[NumQp], r_msn[NumQp], r_rem[NumQp], r_since[NumQp];
  logic [63:0] r_va[NumQp];
  logic [31:0] r_rkey[NumQp];
  bit r_send[NumQp];
  longint r_total[NumQp];
  posted_t r_wqe[NumQp];
  bit r_in[NumQp], r_nak[NumQp], r_dead[NumQp];
  bit r_open[NumQp];  // a receive WQE is taken for a message under way, or for one that was given up

  function automatic bit ref_access(logic [31:0] key, logic [23:0] pd, logic [63:0] va,
                                    longint len, int right = 1);
    mr_t m;
    logic [64:0] from, to, mfrom, mto;
    if (key[31:18] != 0) return 0;
    m = mrs[key[17:8]];
    from = {1'b0, va};
    to = from + 65'(len);
    mfrom = {1'b0, m.va};
    mto = mfrom + {1'b0, m.length};
    return m.valid && m.variant == key[7:0] && m.pd == pd &&
           (right == 1 ? m.remote_write : right == 0 ? m.local_write : right == 2 ? m.remote_read : m.remote_atomic) && from >= mfrom &&
           to <= mto;
  endfunction

  task automatic respond(int q, longint psn, int syndrome);
    rx_write_t w;
    w = '0;
    w.qp = qp_idx_t'(q);
    w.ack = 1;
    w.psn = psn_t'(psn);
    w.msn = 24'(r_msn[q]);
    w.syndrome = 8'(syndrome);
    exp_wr.push_back(w);
  endtask

  // Completes the WQE with an error.
  task automatic refuse_recv(int q, rx_meta_t m, int syndrome, int reason, int status, bit is_send);
    rx_write_t w;
    respond(q, longint'(m.psn), syndrome);
    w = exp_wr.pop_back();
    w.has_cqe = 1;
    w.cqe.cqn = qps[q].recv_cqn;
    w.cqe.index = r_wqe[q].r.index;
    w.cqe.opcode = is_send ? 8'd128 : 8'd129;
    w.cqe.status = 8'(status);
    w.cqe.qp = qp_idx_t'(q);
    w.cqe.src_qp = qps[q].qp_type == QpTypeUd ? m.src_qp : qps[q].qp_type == QpTypeRaw ? 24'd0 : qps[q].dest_qpn;
    w.ack = qps[q].qp_type == QpTypeRc;
    w.silent = !w.ack;
    exp_wr.push_back(w);
    exp_err.push_back(qp_idx_t'(q));
    exp_drop.push_back(w.ack ? reason : 17);
    r_dead[q] = 1;
    r_in[q] = 0;
    r_open[q] = 0;
  endtask

  task automatic refuse(int q, rx_meta_t m, int syndrome, int reason);
    respond(q, longint'(m.psn), syndrome);
    exp_err.push_back(qp_idx_t'(q));
    exp_drop.push_back(reason);
    r_dead[q] = 1;
    r_in[q] = 0;
  endtask

  bit full_new = 0, full_dup = 0;  // of a directed test: the response queue is full
  function automatic rx_write_t to_req(int q, ack_src_e src, psn_t psn, int syndrome, bit credits = 0);
    rx_write_t w;
    w = '0;
    w.qp = qp_idx_t'(q);
    w.to_req = 1;
    w.src = src;
    w.psn = psn;
    w.syndrome = 8'(syndrome);
    w.credits = credits;
    return w;
  endfunction

  rd_update_t u_new;
  snap_t snap_new;
  task automatic lost(int q, psn_t psn, bit last);
    exp_wr.push_back(to_req(q, AckImplied, r_exp[q], 'h60));
    u_new = '0;
    u_new.qp = qp_idx_t'(q);
    u_new.psn = psn;
    u_new.last = last;
    exp_update.push_back(u_new);
    r_gap[q] = 1;
    want_implied++;
  endtask

  // acknowledges and responses behind the general checks; gives 1 if the payload is used
  task automatic ref_response(int q, rx_meta_t m, output bit stream);
    longint mtu, off, rest, pos, n, len;
    int op;
    bit waiting, ahead, isfinal, ok, prot;
    rd_entry_t e;
    rq_sge_t g;
    rx_write_t w, parts[$];
    ack_rx_t k;
    stream = 0;
    op = int'(m.opcode);
    mtu = 128 << qps[q].path_mtu;
    waiting = r_rd[8'(q)].size() != 0;
    ahead = waiting && 24'(m.psn - r_exp[q]) < 24'h800000;
    parts.delete();
    if (waiting) e = r_rd[8'(q)][0];
    if (op == 'h11) begin
      if (ahead && !(m.syndrome[5] && m.psn == r_exp[q])) begin
        if (24'(m.psn - v_max[q]) < 24'h800000) exp_drop.push_back(11);
        else if (r_gap[q]) exp_drop.push_back(6);
        else lost(q, m.psn, m.psn == e.last);
      end else if (waiting || v_inc[q]) begin
        w = to_req(q, AckPacket, m.psn, int'(m.syndrome), 1);
        w.msn = m.msn;
        exp_wr.push_back(w);
        n_ordered++;
      end else begin
        k = '{qp: qp_idx_t'(q), psn: m.psn, msn: m.msn, syndrome: m.syndrome, own: 1'b0, credits: 1'b1, src: AckPacket, fail: '0};
        exp_ackrx.push_back(k);
      end
    end else if (!waiting ? !v_inc[q] : ahead && 24'(m.psn - v_max[q]) < 24'h800000) begin
      exp_drop.push_back(11);
      want_ghost_rsp++;
    end else if (!ahead) begin
      exp_drop.push_back(5);
      want_dup_rsp++;
    end else if (m.psn != r_exp[q]) begin
      exp_drop.push_back(6);
      if (!r_gap[q]) lost(q, m.psn, m.psn == e.last);
    end else begin
      off = longint'(24'(m.psn - e.base)) * mtu;
      rest = longint'(e.len) - off;
      isfinal = m.psn == e.last;
      len = longint'(m.payload_len);
      if (e.atomic) ok = op == 'h12 && len == 0 && m.pad == 0;
      else begin
        ok = op != 'h12 && (len + longint'(m.pad)) % 4 == 0;
        if (isfinal) ok = ok && len == rest && (op == 'h10 || (op == 'h0f && m.psn != e.base));
        else ok = ok && len == mtu && (op == 'h0d || (op == 'h0e && m.psn != e.base));
      end
      if (!ok) begin
        w = to_req(q, AckLocal, m.psn, 0);
        w.fail = 7;
        exp_wr.push_back(w);
        n_rsp_bad++;
      end else begin
        if (e.atomic) len = 8;
        stream = len != 0 && !e.atomic;
        pos = 0;
        prot = 0;
        for (int i = 0; i < n4 && len > 0; i++) begin
          g = e.sge[2'(i)];
          if (off >= pos && off < pos + longint'(g.length)) begin
            n = pos + longint'(g.length) - off;
            if (n > len) n = len;
            if (!ref_access(g.lkey, qps[q].pd, g.addr + 64'(off - pos), n, 0)) prot = 1;
            w = '0;
            w.qp = qp_idx_t'(q);
            w.has_payload = 1;
            w.more = 1;
            w.iova = g.addr + 64'(off - pos) - mrs[g.lkey[17:8]].va + mrs[g.lkey[17:8]].iova;
            w.len = 13'(n);
            parts.push_back(w);
            off += n;
            len -= n;
          end
          pos += longint'(g.length);
        end
        if (prot) begin
          w = to_req(q, AckLocal, m.psn, 0);
          w.fail = 4;
          exp_wr.push_back(w);
          n_rsp_prot++;
          stream = 0;
        end else begin
          if (parts.size() > 1) n_rsp_split++;
          while (parts.size() > 1) exp_wr.push_back(parts.pop_front());
          w = to_req(q, AckResponse, m.psn, op == 'h0e ? 'h1f : int'(m.syndrome), op != 'h0e);
          if (parts.size() != 0) begin
            w.has_payload = 1;
            w.iova = parts[0].iova;
            w.len = parts[0].len;
          end
          if (e.atomic) begin
            w.has_value = 1;
            w.value = m.compare;
            n_atomic++;
          end
          exp_wr.push_back(w);
          u_new = '{qp: qp_idx_t'(q), take: 1'b1, last: isfinal, psn: m.psn};
          exp_update.push_back(u_new);
          n_taken++;
          r_gap[q] = 0;
          r_exp[q] = r_exp[q] + 1;
          if (isfinal) begin
            void'(r_rd[8'(q)].pop_front());
            if (r_rd[8'(q)].size() != 0) r_exp[q] = r_rd[8'(q)][0].base;
          end
        end
      end
    end
  endtask

  task automatic ref_packet(rx_meta_t m_in);
    rx_meta_t m;
    bit keep;
    int q, op, reason, ghosts;
    longint ahead, mtu, len, total;
    bit uc, ud, takes, is_req, is_rsp, is_write, is_send, is_read, is_atomic, imm, inv, first, middle, last, only, seq_ok, len_ok, stream;
    longint pos, want, skip, n;
    int fault;
    rq_sge_t g;
    rx_write_t parts[$], w2;
    logic [63:0] va;
    logic [31:0] key;
    qp_attr_t a;
    rx_write_t w;
    rx_read_t rr;
    mark_rand = mv_next(mark_rand);
    m_in.ecn = mark_rand[1:0];
    m_in.prio = mark_rand[4:2];
    m = m_in;
    if (m.raw) begin  // nothing else of it counts
      m.opcode = 8'h64;
      m.pad = 2'(-m.payload_len);
      m.solicited = 0;
      m.dest_qp = raw_valid ? 24'd256 + 24'(raw_idx) : 24'd0;
    end
    q = m.dest_qp == 24'd1 ? (gsi_valid ? int'(gsi_idx) : -1) : int'(m.dest_qp) - 256;
    op = int'(m.opcode);
    if (op >= 'h20 && op < 'h40) op -= 'h20;
    else if (op >= 'h60 && op < 'h80) op -= 'h60;
    else if (op >= 'h20) op = 255;
    stream = 0;
    reason = -1;
    ghosts = want_ghost_rsp;
    parts.delete();
    is_rsp = m.opcode inside {[8'h0d : 8'h12]};
    inv = (op == 'h16 || op == 'h17) && m.opcode < 8'h20;  // of RC only
    is_send = op <= 'h05 || inv;
    is_write = op >= 'h06 && op <= 'h0b;
    is_read = op == 'h0c;
    is_atomic = op == 'h13 || op == 'h14;
    first = op == 'h00 || op == 'h06;
    middle = op == 'h01 || op == 'h07;
    last = op == 'h02 || op == 'h03 || op == 'h08 || op == 'h09 || op == 'h16;
    only = op == 'h04 || op == 'h05 || op == 'h0a || op == 'h0b || op == 'h17;
    imm = op == 'h03 || op == 'h05 || op == 'h09 || op == 'h0b;
    is_req = op <= 'h0c || op == 'h13 || op == 'h14 || op == 'h16 || op == 'h17;
    if (q >= 0 && q < 256) a = qps[q];
    ud = q >= 0 && q < 256 && a.qp_type == QpTypeUd;
    keep = ud || m.raw;
    uc = q >= 0 && q < 256 && a.qp_type != QpTypeRc;  // nothing is answered
    if (q < 0 || q > 255 || a.state == QpNone || a.gsi != (m.dest_qp == 24'd1) ||
        (m.raw && a.qp_type != 8)) reason = late_on && (q < 0 || q > 255) && m.psn[0] ? 19 : 0;
    else if (m.opcode == 8'h81) reason = 13;
    else if (r_dead[q] || a.state == QpReset || a.state == QpInit || a.state == QpErr ||
             a.state == QpSqe || (a.state == QpRtr && is_rsp)) reason = 1;
    else if ((a.qp_type == 2) != (m.opcode < 8'h20)) reason = 2;
    else if ((a.qp_type == 3) != (m.opcode inside {[8'h20 : 8'h3f]})) reason = 2;
    else if (a.qp_type == 8 && !m.raw) reason = 2;
    else if (!m.raw && (a.qp_type == 4) != (m.opcode inside {[8'h60 : 8'h7f]})) reason = 2;
    else if (!keep && (m.sip != a.dgid || m.dip != a.sgid || m.ipv6 != a.ipv6)) reason = 3;
    else if (!m.raw && (m.pkey % 32768 != a.pkey % 32768 || m.pkey % 32768 == 0 ||
             (m.pkey < 32768 && a.pkey < 32768))) reason = 4;
    else if (ud && m.qkey != a.qkey) reason = 14;
    else if (op == 'h11 && !uc && ((m.syndrome >= 64 && m.syndrome < 96) || m.syndrome > 99)) reason = 12;
    else if (is_rsp && !uc && op != 'h11 && op != 'h0e && m.syndrome >= 32) reason = 12;
    else if (is_rsp && !uc) ref_response(q, m, stream);
    else if (!is_req || (uc && !is_send && !is_write) || (ud && op != 4 && op != 5)) reason = 7;
    else if (uc && !first && !only && !(r_in[q] && longint'(m.psn) == r_epsn[q] && r_send[q] == is_send)) begin
      reason = 6;
      r_in[q] = 0;
    end
    // a CE mark is told of data: SENDs and WRITEs that belong to the QP, whatever their PSN, and responses that were asked for
    if (m.ecn == 2'd3 && !keep) begin
      if ((is_send || is_write) && (reason < 0 || (uc && reason == 6))) begin
        exp_mark.push_back({qps[q].qpn, m.prio});
        n_mark_data++;
        if (uc) n_mark_uc++;
        if (reason == 6) n_mark_lost++;
        if (!uc && longint'(m.psn) != r_epsn[q]) n_mark_dup++;
      end else if (!uc && reason < 0 && op >= 'h0d && op <= 'h10 && want_ghost_rsp == ghosts) begin
        exp_mark.push_back({qps[q].qpn, m.prio});
        n_mark_rsp++;
      end else n_no_mark++;
    end
    if (reason >= 0) exp_drop.push_back(reason);
    else if (is_req) begin
      ahead = (longint'(m.psn) - r_epsn[q] + (1 << 24)) % (1 << 24);
      if (uc) ahead = 0;
      // READ and atomic: is the packet as it must be, may it be done, how many PSNs
      mtu = 128 << a.path_mtu;
      len_ok = m.payload_len == 0 && m.pad == 0;
      if (is_read) len_ok = len_ok && a.remote_read && m.dma_len <= 32'h80000000;
      if (is_atomic) len_ok = len_ok && a.remote_atomic && m.va % 8 == 0;
      seq_ok = is_read ? m.dma_len == 0 || ref_access(m.rkey, a.pd, m.va, longint'(m.dma_len), 2) :
                         ref_access(m.rkey, a.pd, m.va, 8, 3) && (m.va - mrs[m.rkey[17:8]].va + mrs[m.rkey[17:8]].iova) % 8 == 0;
      n = 1;
      if (is_read && m.dma_len != 0) n = (longint'(m.dma_len) + mtu - 1) / mtu;
      w = '0;
      w.qp = qp_idx_t'(q);
      w.kind = is_read ? RxRead : RxAtomic;
      w.psn = m.psn;
      w.iova = m.va - mrs[m.rkey[17:8]].va + mrs[m.rkey[17:8]].iova;
      w.syndrome = 8'h1f;
      w.last = ahead == 0;
      rr = '0;
      rr.slot = rsp_slot_t'(r_slot[q]);
      rr.dup = ahead != 0;
      rr.fetch_add = op == 'h14;
      {rr.va, rr.rkey, rr.len, rr.swap_add, rr.compare} = {m.va, m.rkey, m.dma_len, m.swap_add, m.compare};
      if (ahead >= (1 << 23)) begin
        exp_drop.push_back(5);
        if (!is_read && !is_atomic) begin
          respond(q, (r_epsn[q] + (1 << 24) - 1) % (1 << 24), 'h1f);
        end else if (len_ok && (is_atomic || seq_ok) && n <= (1 << 24) - ahead && !full_dup) begin
          w.msn = 24'(r_msn[q]);
          exp_wr.push_back(w);
          exp_rd.push_back(rr);
          r_slot[q]++;
          if (n < (1 << 24) - ahead) n_part_rd++;
        end
      end else if (ahead > 0) begin
        exp_drop.push_back(6);
        if (!r_nak[q]) respond(q, r_epsn[q], 'h60);
        r_nak[q] = 1;
      end else if ((is_read || is_atomic) && (!len_ok || r_in[q] || full_new)) begin
        refuse(q, m, 'h61, 8);
      end else if ((is_read || is_atomic) && !seq_ok) begin
        refuse(q, m, 'h62, 9);
      end else if (is_read || is_atomic) begin
        r_nak[q] = 0;
        r_since[q] = 0;
        r_epsn[q] = (r_epsn[q] + n) % (1 << 24);
        r_msn[q] = (r_msn[q] + 1) % (1 << 24);
        w.msn = 24'(r_msn[q]);
        exp_wr.push_back(w);
        exp_rd.push_back(rr);
        r_slot[q]++;
        if (is_read) want_reads++;
        else want_atomics++;
      end else if (!is_write && !is_send) begin
        refuse(q, m, 'h61, 7);
      end else begin
        mtu = 128 << a.path_mtu;
        len = longint'(m.payload_len);
        seq_ok = uc || ((first || only) ? !r_in[q] : r_in[q] && r_send[q] == is_send);
        total = (first || only) ? longint'(m.dma_len) : r_rem[q];
        va = (first || only) ? m.va : r_va[q];
        key = (first || only) ? m.rkey : r_rkey[q];
        len_ok = (len + longint'(m.pad)) % 4 == 0;
        if (first || middle) len_ok = len_ok && len == mtu;
        if (last) len_ok = len_ok && len >= 1 && len <= mtu;
        if (only) len_ok = len_ok && len <= (keep ? 4096 : mtu);
        if (is_write) begin
          if (first) len_ok = len_ok && total > mtu && total <= 64'h80000000;
          if (middle) len_ok = len_ok && total > mtu;
          if (last || only) len_ok = len_ok && total == len;
        end
        fault = 0;
        takes = (is_send && (first || only)) || (is_write && imm);
        if (uc && ((is_write && !a.remote_write) || !seq_ok || !len_ok)) begin
          exp_drop.push_back(15);
          r_in[q] = 0;
          r_epsn[q] = (longint'(m.psn) + 1) % (1 << 24);
          psn_open[q] = 1;
        end else if (uc && is_write && total != 0 && !ref_access(key, a.pd, va, total)) begin
          exp_drop.push_back(16);
          r_in[q] = 0;
          psn_open[q] = 1;
        end else if (is_write && !a.remote_write) refuse(q, m, 'h61, 8);
        else if (!seq_ok || !len_ok) refuse(q, m, 'h61, 8);
        else if (is_write && total != 0 && !ref_access(key, a.pd, va, total)) refuse(q, m, 'h62, 9);
        else if ((is_send || imm) && rq_gone[q]) exp_drop.push_back(1);
        else if (takes && !r_open[q] && r_rqs[8'(q)].size() == 0) begin
          if (uc) begin
            r_in[q] = 0;
            psn_open[q] = 1;
            n_uc_none++;
          end else begin
            respond(q, longint'(m.psn), 'h20 + int'(a.min_rnr_timer));
            r_nak[q] = 1;
          end
          want_rnr++;
        end else begin
          if (takes && !r_open[q]) r_wqe[q] = r_rqs[8'(q)].pop_front();
          if (takes) r_open[q] = 1;
          if (first || only) r_total[q] = is_send ? 0 : total;
          // where the bytes of a SEND go: walk the list from its start; on UD first those of the GRH
          for (int area = ud ? 0 : 1; area < 2 * one && is_send && fault == 0; area++) begin
            pos = r_total[q];
            want = area == 0 ? 40 : len;
            skip = pos;
            r_total[q] = r_total[q] + want;
            for (int e = 0; e < int'(r_wqe[q].r.num_sge) && want > 0 && fault == 0; e++) begin
              g = r_wqe[q].r.sge[2'(e)];
              if (skip >= longint'(g.length)) begin
                skip -= longint'(g.length);
              end else begin
                n = longint'(g.length) - skip;
                if (n > want) n = want;
                if (!ref_access(g.lkey, a.has_srq ? a.rq_addr[23:0] : a.pd, g.addr + 64'(skip), n, 0)) fault = 4;
                w = '0;
                w.qp = qp_idx_t'(q);
                w.has_payload = 1;
                w.more = 1;
                w.iova = g.addr + 64'(skip) - mrs[g.lkey[17:8]].va + mrs[g.lkey[17:8]].iova;
                w.len = 13'(n);
                parts.push_back(w);
                want -= n;
                skip = 0;
              end
            end
            if (fault == 0 && want > 0) fault = 1;
          end
          if ((is_send || imm) && r_wqe[q].bad) fault = 2;
          if (fault == 0 && inv) begin
            want_chg++;
            if (m.rkey[0]) fault = 6;
          end
          if (keep && fault == 1) begin
            exp_drop.push_back(18);
            n_kept++;
          end else if (fault != 0) begin
            refuse_recv(q, m, fault == 1 ? 'h61 : fault == 6 ? 'h62 : 'h63, fault == 1 ? 8 : fault == 6 ? 9 : 10,
                        fault == 6 ? 9 : fault, is_send);
            n_fault[3'(fault)]++;
          end else begin
            stream = len != 0;
            r_nak[q] = 0;
            r_epsn[q] = (longint'(m.psn) + 1) % (1 << 24);
            psn_open[q] = 0;
            if (uc) n_uc++;
            if ((last || only) && (is_send || imm)) r_open[q] = 0;
            r_in[q] = first || middle;
            r_send[q] = is_send;
            r_rkey[q] = key;
            r_va[q] = va + 64'(len);
            r_rem[q] = total - len;
            if (last || only) r_msn[q] = (r_msn[q] + 1) % (1 << 24);
            r_since[q]++;
            w = '0;
            w.qp = qp_idx_t'(q);
            w.has_payload = stream || ud;
            w.iova = va - mrs[key[17:8]].va + mrs[key[17:8]].iova;
            w.len = 13'(len);
            if (is_send && (stream || ud)) begin
              if (parts.size() > 1) n_split++;
              while (parts.size() > 1) exp_wr.push_back(parts.pop_front());
              w2 = parts[0];
              w.iova = w2.iova;
              w.len = w2.len;
            end
            if (is_send && !stream && !ud) w.iova = '0;
            w.ack = !uc && (m.ack_req || (coalesce != 0 && r_since[q] >= longint'(coalesce)));
            w.silent = uc;
            w.last = last || only;
            w.psn = m.psn;
            w.msn = 24'(r_msn[q]);
            w.syndrome = 8'h1f;
            if ((last || only) && (is_send || imm)) begin
              n_cqe++;
              w.has_cqe = 1;
              w.cqe.cqn = a.recv_cqn;
              w.cqe.index = r_wqe[q].r.index;
              w.cqe.opcode = is_send ? 8'd128 : 8'd129;
              w.cqe.qp = qp_idx_t'(q);
              w.cqe.byte_len = 32'(r_total[q]);
              w.cqe.src_qp = ud ? m.src_qp : m.raw ? 24'd0 : a.dest_qpn;
              if (m.raw) n_raw++;
              w.cqe.with_grh = ud;
              w.cqe.with_imm = imm;
              w.cqe.with_inv = inv;
              if (inv) w.cqe.imm = m.rkey;
              if (imm) w.cqe.imm = {m.imm[7:0], m.imm[15:8], m.imm[23:16], m.imm[31:24]};
              w.cqe.solicited = m.solicited;
            end
            if (w.ack) r_since[q] = 0;
            if (ud) begin
              n_ud++;
              exp_grh.push_back({8'(want_streams), m.ipv6 ? {m.dip, m.sip, m.ip_head[63:0]} :
                                 {m.dip[127:96], m.sip[127:96], m.ip_head, 160'd0}});
              want_grh++;
            end
            exp_wr.push_back(w);
          end
        end
      end
    end
    if (m.payload_len != 0) begin
      exp_pcmd.push_back(stream ? PayloadStream : PayloadDrop);
      exp_after.push_back(want_grh);
    end
    want_streams += int'(stream);
    todo.push_back(m_in);
    snap_new = '{q: 32'(q), epsn: 24'd0, msn: 24'd0, dead: 1'b0};
    if (q >= 0 && q < 256) begin
      snap_new.epsn = psn_t'(r_epsn[q]);
      snap_new.msn = 24'(r_msn[q]);
      snap_new.dead = r_dead[q];
    end
    snaps.push_back(snap_new);
    gen_total++;
    made_at.push_back(wr_done + exp_wr.size());
  endtask

  // In one place, because Verilator copies a task to each of its calls: m_next, then a change of ref_go and a cycle.
  rx_meta_t m_next;
  bit ref_go = 0;
  always @(ref_go) if (rst_n) ref_packet(m_next);

  task automatic settle(string what);
    int n;
    n = 0;
    while (todo.size() != 0 || meta_valid || !idle || bar_valid || sq_flush_valid || flush_valid || flush_todo.size() != 0) begin
      @(negedge clk);
      n++;
      if (n > 200000) $fatal(1, "%s: does not come to rest", what);
    end
    repeat (3) @(negedge clk);
    if (exp_wr.size() + exp_ackrx.size() + exp_pcmd.size() + exp_err.size() +
        exp_grh.size() + exp_drop.size() + exp_update.size() != 0 || n_implied != want_implied || n_dup_rsp != want_dup_rsp ||
        n_ghost_rsp != want_ghost_rsp || n_rnr != want_rnr || exp_flush.size() + exp_sq_flush.size() != 0 || exp_rd.size() != 0 || exp_mark.size() != 0 ||
        n_reads != want_reads || n_atomics != want_atomics || n_tell != want_tell || n_ev_upd != n_upd || upd_wr) begin
      $display("told %0d of %0d, repeated %0d of %0d", n_tell, want_tell, n_ev_upd, n_upd);
      $fatal(1, "%s: missing: %0d writes %0d acknowledges %0d commands %0d errors %0d drops", what,
             exp_wr.size(), exp_ackrx.size(), exp_pcmd.size(), exp_err.size(), exp_drop.size());
    end
  endtask

  task automatic admin(qp_admin_e op, int q, psn_t psn);
    int n;
    n = 0;
    @(negedge clk);
    adm = '{op: op, qp: qp_idx_t'(q), psn: psn, notify: 1'b0};
    adm_valid = 1;
    do begin
      @(posedge clk);
      n++;
      if (n > 10000) $fatal(1, "admin request not taken");
    end while (!adm_ready);
    @(negedge clk);
    adm_valid = 0;
    while (!adm_rsp_valid) begin
      if (rq_adm_valid && (rq_adm_init != (op == QpStateReset) || int'(rq_adm_qp) != q)) $fatal(1, "queue told %0d of %0d", rq_adm_init, rq_adm_qp);
      @(negedge clk);
      n++;
      if (n > 10000) $fatal(1, "admin request not answered");
    end
    if (adm_rsp.rq != {1'b1, 16'h1234, 8'h56, 8'(q)}) $fatal(1, "admin answer %p", adm_rsp);
  endtask

  // A new connection of QP q.
  task automatic connect(int q, psn_t psn);
    rx_write_t w;
    w = '0;
    w.qp = qp_idx_t'(q);
    w.init = 1;
    exp_wr.push_back(w);
    r_epsn[q] = longint'(psn);
    r_slot[q] = int'(dones[q].done);
    r_msn[q] = 0;
    r_in[q] = 0;
    r_nak[q] = 0;
    r_dead[q] = 0;
    d_epsn[q] = psn;
    d_msn[q] = 0;
    d_dead[q] = 0;
    r_open[q] = 0;
    psn_open[q] = 0;
    r_since[q] = 0;
    rqs[8'(q)].delete();
    r_rqs[8'(q)].delete();
    rq_open[q] = 0;
    rq_gone[q] = 0;
    rq_index[q] = int'($urandom() % 65536);
    admin($urandom() % 2 == 0 ? QpStateInit : QpStateReset, q, psn);
    if (adm_rsp.expected_psn !== psn || adm_rsp.msn !== 0) $fatal(1, "init answered %p", adm_rsp);
  endtask


  // ---- directed tests: a script of steps, built first, played by one loop ----
  // QP 5 as every test finds it: RTR, MTU 256, expected PSN 0xfffffe, MR 3 of 64 KiB.
  localparam int Q = 5;
  localparam logic [127:0] Us = 128'h0100000a_ffff0000_00000000_00000000;
  localparam logic [127:0] Them = 128'h0200000a_ffff0000_00000000_00000000;
  localparam logic [63:0] Va = 64'h0000_5555_0000_0123;
  localparam logic [63:0] Iova = 64'hffff_0000_0000_0077;
  localparam logic [31:0] Key = 32'h0000_03a7;

  typedef enum logic [5:0] {
    Fresh, Silent, Fatal, Good, Dup, NakSeq, Forward, Query, Recv, Rnr, NoWqe, FatalRecv, Post, SetGone,
    SetQpState, SetQpType, SetQpQkey, SetQpGsi, SetGsi, SetRaw, SetQpPkey, SetQpWrite, SetQpSrq,
    SetMrLength, SetMrPd, SetMrWrite, SetMrLocal, SetMrValid, SetCoalesce,
    Read, FatalLater, SetQpRead, SetQpAtomic, SetQpMax, SetMrRead, SetMrAtomic, SetMrIova, SetHoldRsp, SetFull
  } kind_e;
  typedef struct packed {
    kind_e       kind;
    rx_meta_t    m;
    logic [63:0] a;
    logic [31:0] b;
    logic        c;
  } step_t;
  // A class, because its methods stay functions: inlined they would make a program of many megabytes.
  class script_t;
  step_t steps[$];
  string names[$];
  rx_meta_t p;  // of make
  int n8 = 8, n24 = 24, n256 = 256;

  function void make(logic [7:0] op, psn_t psn, int len);
    p = '0;
    p.opcode = op;
    p.pad = 2'(-len);
    p.pkey = 16'hffff;
    p.dest_qp = QpnBase + 24'(Q);
    p.psn = psn;
    p.va = Va;
    p.rkey = Key;
    p.dma_len = 32'(len);
    p.sip = Them;
    p.dip = Us;
    p.payload_len = 13'(len);
  endfunction

  function void add(kind_e kind, rx_meta_t m, logic [63:0] a, int b, bit c);
    step_t t;
    t = {kind, m, a, b, c};
    steps.push_back(t);
  endfunction
  function void set(kind_e kind, logic [63:0] value);
    add(kind, '0, value, 0, 0);
  endfunction
  function void fresh(string name);
    add(Fresh, '0, 64'(names.size()), 0, 0);
    names.push_back(name);
  endfunction
  // Dropped without an answer.
  function void silent(rx_meta_t m, int reason);
    add(Silent, m, 0, reason, 0);
  endfunction
  // Refused by a NAK that ends the connection; then even the same packet is dropped.
  function void fatal_nak(rx_meta_t m, int syndrome, int reason);
    add(Fatal, m, 64'(syndrome), reason, 0);
    silent(m, 1);
  endfunction
  function void good(rx_meta_t m, logic [63:0] iova, int msn, bit acked);
    add(Good, m, iova, msn, acked);
  endfunction
  // A receive WQE of two SGEs of the MR: the first of n0 bytes at its start, the second at 0x8000.
  function void recv(int num, int n0, int n1, bit isbad);
    rx_meta_t p;
    p = '0;
    p.dma_len = 32'(n0);
    p.qkey = 32'(n1);
    p.rkey = Key;
    add(Post, p, 64'(num), 0, isbad);
  endfunction
  // Last packet of a message: completes a receive with this length; iova is that of its last piece.
  function void done(rx_meta_t m, logic [63:0] iova, int bytes, bit acked);
    add(Recv, m, iova, bytes, acked);
  endfunction
  function void fatal_recv(rx_meta_t m, int syndrome, int status);
    add(FatalRecv, m, 64'(syndrome), status, 0);
    silent(m, 1);
  endfunction
  // Dropped, because no receive WQE is posted.
  function void no_wqe(rx_meta_t m);
    add(NoWqe, m, 0, 0, 0);
  endfunction
  // Not executed, acknowledged with the newest PSN executed and the current MSN.
  function void silent_dup(psn_t psn, psn_t newest, int msn);
    begin make(8'h0a, psn, 4); add(Dup, p, 64'(newest), msn, 0); end
  endfunction
  // READ of len bytes; atomic at an offset
  function void read_of(psn_t psn, int len);
    make(8'h0c, psn, 0);
    p.dma_len = 32'(len);
  endfunction
  function void atomic_at(logic [7:0] op, psn_t psn, int off);
    make(op, psn, 0);
    p.va = Va + 64'(off);
    p.dma_len = 32'hdead;
    p.swap_add = 64'h0102030405060708;
    p.compare = 64'h1112131415161718;
  endfunction
  // Executed: passed on, with this MSN in its response. dup: for the second time.
  function void read_go(rx_meta_t m, int msn, bit dup);
    add(Read, m, 0, msn, dup);
  endfunction
  // A QP that allows everything, and a queue that does not answer
  function void fresh_read(string name);
    fresh(name);
    set(SetQpRead, 64'(1));
    set(SetQpAtomic, 64'(1));
    set(SetMrRead, 64'(1));
    set(SetMrAtomic, 64'(1));
  endfunction
  function void fatal_later(rx_meta_t m, int syndrome, int reason);
    add(FatalLater, m, 64'(syndrome), reason, 0);
    silent(m, 1);
  endfunction
  function void start_message();
    rx_meta_t f;
    make(8'h06, 24'hfffffe, 256);
    f = p;
    f.dma_len = 257;
    good(f, Iova, 0, 0);
  endfunction

  // UC: the service on top of the operation code
  function void uc(logic [7:0] op, psn_t psn, int len);
    make(op | 8'h20, psn, len);
    p.ack_req = 1;  // does not matter
  endfunction

  rx_meta_t m, m2;
  function void uc_script();
    // who is not in the sequence begins anew: any PSN
    fresh("UC: only, any PSN");
    set(SetQpType, 3);
    uc(8'h0a, 24'h123456, 13);
    good(p, Iova, 1, 0);
    uc(8'h0a, 24'h000001, 256);
    good(p, Iova, 2, 0);
    uc(8'h0a, 24'h000001, 4);  // a duplicate is a message of its own
    good(p, Iova, 3, 0);
    add(Query, '0, 64'h2, 3, 0);

    fresh("UC: WRITE of three packets, the middle one missing, twice, out of order");
    set(SetQpType, 3);
    for (int k = 0; k < 4; k++) begin
      uc(8'h06, 24'd10 + 24'(10 * k), 256);
      p.dma_len = 600;
      good(p, Iova, k == 3 ? 0 : 0, 0);
      case (k)
        0: begin  // missing
          uc(8'h08, 24'd12, 88);
          silent(p, 6);
          uc(8'h07, 24'd11, 256);  // and it is too late
          silent(p, 6);
        end
        1: begin  // twice: the second one belongs to nothing
          uc(8'h07, 24'd21, 256);
          good(p, Iova + 256, 0, 0);
          silent(p, 6);
          uc(8'h08, 24'd22, 88);
          silent(p, 6);
        end
        2: begin  // of a SEND
          uc(8'h01, 24'd31, 256);
          silent(p, 6);
          uc(8'h07, 24'd31, 256);
          silent(p, 6);
        end
        default: begin
          uc(8'h07, 24'd41, 256);
          good(p, Iova + 256, 0, 0);
          uc(8'h08, 24'd42, 88);
          good(p, Iova + 512, 1, 0);
        end
      endcase
    end

    fresh("UC: SEND given up, its receive WQE goes to the next message");
    set(SetQpType, 3);
    recv(2, 300, 1000, 0);
    recv(1, 64, 0, 0);
    uc(8'h00, 24'd5, 256);
    good(p, Iova, 0, 0);
    uc(8'h00, 24'd6, 256);  // the last of the former is missing
    good(p, Iova, 0, 0);
    uc(8'h02, 24'd8, 4);
    silent(p, 6);
    uc(8'h04, 24'd9, 20);
    done(p, Iova, 20, 0);
    uc(8'h05, 24'd10, 8);
    p.imm = 32'h01020304;
    done(p, Iova, 8, 0);
    uc(8'h04, 24'd11, 8);
    no_wqe(p);
    uc(8'h00, 24'd12, 256);
    no_wqe(p);
    uc(8'h02, 24'd13, 8);
    silent(p, 6);

    fresh("UC: WRITE with immediate takes the WQE of a SEND given up");
    set(SetQpType, 3);
    recv(1, 300, 0, 0);
    uc(8'h00, 24'd5, 256);
    good(p, Iova, 0, 0);
    uc(8'h0b, 24'd7, 16);
    p.imm = 32'hcafe0001;
    done(p, Iova, 16, 0);
    uc(8'h06, 24'd9, 256);
    p.dma_len = 260;
    good(p, Iova, 1, 0);
    uc(8'h09, 24'd10, 4);
    no_wqe(p);

    fresh("UC: refused without a word, and the QP goes on");
    set(SetQpType, 3);
    uc(8'h0a, 24'd1, 8);
    p.rkey = Key ^ 32'h1;
    silent(p, 16);
    uc(8'h0a, 24'd2, 8);
    p.dma_len = 9;
    silent(p, 15);
    uc(8'h06, 24'd3, 256);
    p.dma_len = 32'h10001;
    silent(p, 16);
    uc(8'h08, 24'd4, 1);
    silent(p, 6);
    set(SetQpWrite, 0);
    uc(8'h0a, 24'd5, 8);
    silent(p, 15);
    set(SetQpWrite, 1);
    make(8'h0a, 24'd6, 8);
    silent(p, 2);
    uc(8'h0a, 24'd6, 8);
    good(p, Iova, 1, 0);
    uc(8'h06, 24'd7, 256);
    p.dma_len = 512;
    good(p, Iova, 1, 0);
    uc(8'h07, 24'd8, 256);  // all of the rest in a middle
    silent(p, 15);
    uc(8'h08, 24'd9, 256);
    silent(p, 6);

    fresh("UC: SEND longer than its receive");
    set(SetQpType, 3);
    recv(1, 300, 0, 0);
    uc(8'h00, 24'd5, 256);
    good(p, Iova, 0, 0);
    uc(8'h02, 24'd6, 45);
    fatal_recv(p, 8'h61, 1);

    fresh("UC: malformed receive WQE");
    set(SetQpType, 3);
    recv(1, 300, 0, 1);
    uc(8'h04, 24'd5, 4);
    fatal_recv(p, 8'h63, 2);
  endfunction

  function void ud(logic [7:0] op, int len);
    make(op, 24'h000777, len);
    p.src_qp = 24'h0abcde;
    p.qkey = 32'h11223344;
    p.sip = ~p.sip;  // anybody
    p.ip_head = 96'h0c0b0a090807060504030201;
  endfunction
  function void ud_fresh(string name);
    fresh(name);
    set(SetQpType, 4);
    set(SetQpQkey, 64'h11223344);
  endfunction
  function void ud_script();
    ud_fresh("UD: GRH and payload in one place, in two, split in either");
    recv(1, 1000, 0, 0);
    recv(2, 40, 1000, 0);
    recv(2, 17, 1000, 0);
    recv(2, 50, 1000, 0);
    recv(1, 40, 0, 0);
    ud(8'h64, 100);
    done(p, Iova + 40, 140, 0);
    ud(8'h65, 100);
    p.imm = 32'h01020304;
    p.ack_req = 1;
    done(p, Iova + 64'h8000, 140, 0);
    ud(8'h64, 4096);
    silent(p, 18);
    ud(8'h64, 960);
    done(p, Iova + 64'h8000 + 23, 1000, 0);
    ud(8'h64, 960);
    p.ipv6 = 1;
    done(p, Iova + 64'h8000, 1000, 0);
    ud(8'h64, 1);
    silent(p, 18);
    ud(8'h64, 0);
    done(p, Iova, 40, 0);
    ud(8'h64, 0);
    no_wqe(p);

    ud_fresh("UD: Q_Key, P_Key, length, opcode, state");
    recv(1, 5000, 0, 0);
    ud(8'h64, 8);
    p.qkey ^= 32'h80000000;
    silent(p, 14);
    ud(8'h64, 8);
    p.pkey = 16'h8001;
    silent(p, 4);
    ud(8'h64, 8);
    p.pad = 2'd1;
    silent(p, 15);
    ud(8'h64, 4100);
    silent(p, 15);
    ud(8'h60, 256);
    silent(p, 7);
    ud(8'h6a, 8);
    silent(p, 7);
    ud(8'h44, 8);
    silent(p, 2);
    set(SetQpState, 64'(QpInit));
    ud(8'h64, 8);
    silent(p, 1);
    set(SetQpState, 64'(QpRts));
    ud(8'h64, 4096);
    done(p, Iova + 40, 4136, 0);

    ud_fresh("UD: memory of the receive");
    recv(2, 60, 100, 0);
    set(SetMrLocal, 0);
    ud(8'h64, 8);
    fatal_recv(p, 8'h63, 4);
    ud_fresh("UD: malformed receive WQE");
    recv(1, 60, 100, 1);
    ud(8'h64, 8);
    fatal_recv(p, 8'h63, 2);
    ud_fresh("UD: the QP failed");
    set(SetGone, 1);
    ud(8'h64, 8);
    silent(p, 1);

    fresh("raw frames");
    set(SetQpType, 8);
    recv(2, 20, 1000, 0);
    recv(1, 5000, 0, 0);
    make(8'h81, 24'd5, 100);
    p.raw = 1;
    p.pad = 2'd3;
    p.pkey = 16'h0;
    p.dest_qp = 24'h1;
    p.solicited = 1;
    silent(p, 0);  // there is no such QP
    set(SetRaw, 64'h100 | 64'(Q));
    done(p, Iova + 64'h8000, 100, 0);
    p.payload_len = 13'd4096;
    done(p, Iova, 4096, 0);
    no_wqe(p);
    recv(1, 60, 0, 0);
    p.payload_len = 13'd61;
    silent(p, 18);
    p.payload_len = 13'd60;
    done(p, Iova, 60, 0);
    begin make(8'h0a, 24'd5, 100); silent(p, 2); end
    begin make(8'h64, 24'd5, 100); silent(p, 2); end
    begin make(8'h44, 24'd5, 100); silent(p, 2); end
    set(SetQpState, 64'(QpInit));
    make(8'h64, 24'd5, 100);
    p.raw = 1;
    silent(p, 1);
    set(SetQpType, 4);
    silent(p, 0);

    ud_fresh("GSI");
    recv(1, 500, 0, 0);
    recv(1, 500, 0, 0);
    ud(8'h64, 256);
    p.dest_qp = 1;
    silent(p, 0);
    set(SetGsi, 64'h100 | 64'(Q));
    ud(8'h64, 256);
    p.dest_qp = 1;
    silent(p, 0);  // not a GSI QP
    set(SetQpGsi, 1);
    ud(8'h64, 256);
    p.dest_qp = 1;
    done(p, Iova + 40, 296, 0);
    ud(8'h64, 256);
    silent(p, 0);  // by its own number
    set(SetGsi, 0);
    ud(8'h64, 256);
    p.dest_qp = 1;
    silent(p, 0);
  endfunction

  function void script();
    uc_script();
    ud_script();
    fresh("only, PSN wrap, MSN, AckReq");
    make(8'h0a, 24'hfffffe, 13);
    m = p;
    good(m, Iova, 1, 0);
    make(8'h0a, 24'hffffff, 256);
    m = p;
    m.ack_req = 1;
    m.va = Va + 64'h10000 - 256;
    good(m, Iova + 64'h10000 - 256, 2, 1);
    make(8'h0a, 24'h000000, 1);
    m = p;
    good(m, Iova, 3, 0);
    silent_dup(24'hffffff, 24'h000000, 3);
    add(Query, '0, 64'h000001, 3, 0);

    fresh("message of three packets");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 517;
    good(m, Iova, 0, 0);
    make(8'h07, 24'hffffff, 256);
    m = p;
    m.va = 64'hdead;  // has no RETH: these fields mean nothing
    m.rkey = 32'hdead;
    m.dma_len = 32'hdead;
    m.ack_req = 1;
    good(m, Iova + 256, 0, 1);
    make(8'h08, 24'h000000, 5);
    m = p;
    m.rkey = 32'hbeef;
    good(m, Iova + 512, 1, 0);

    fresh("zero length looks at no key");
    make(8'h0a, 24'hfffffe, 0);
    m = p;
    m.rkey = 32'hdeadbeef;
    m.va = '1;
    m.ack_req = 1;
    good(m, 0, 1, 1);

    fresh("SEND only, with immediate, empty");
    recv(1, 100, 0, 0);
    recv(2, 10, 200, 0);
    recv(0, 0, 0, 0);
    begin make(8'h04, 24'hfffffe, 100); done(p, Iova, 100, 0); end
    make(8'h05, 24'hffffff, 30);
    m = p;
    m.imm = 32'h01020304;
    m.solicited = 1;
    m.ack_req = 1;
    done(m, Iova + 64'h8000, 30, 1);
    begin make(8'h04, 24'h000000, 0); done(p, 0, 0, 0); end
    add(Query, '0, 64'h000001, 3, 0);

    fresh("SEND of three packets into two SGEs");
    recv(2, 300, 300, 0);
    begin make(8'h00, 24'hfffffe, 256); good(p, Iova, 0, 0); end
    begin make(8'h01, 24'hffffff, 256); good(p, Iova + 64'h8000, 0, 0); end
    begin make(8'h02, 24'h000000, 88); done(p, Iova + 64'h8000 + 212, 600, 0); end

    fresh("SEND that ends at the border of an SGE");
    recv(2, 256, 5, 0);
    begin make(8'h00, 24'hfffffe, 256); good(p, Iova, 0, 0); end
    begin make(8'h03, 24'hffffff, 5); done(p, Iova + 64'h8000, 261, 0); end

    fresh("SEND with invalidate");
    recv(1, 100, 0, 0);
    recv(2, 256, 100, 0);
    recv(0, 0, 0, 0);
    recv(1, 100, 0, 0);
    make(8'h17, 24'hfffffe, 100);
    m = p;
    m.rkey = 32'hcafe0000;
    done(m, Iova, 100, 0);
    begin make(8'h00, 24'hffffff, 256); good(p, Iova, 1, 0); end
    make(8'h16, 24'h000000, 30);
    m = p;
    m.rkey = 32'h00000302;
    done(m, Iova + 64'h8000, 286, 0);
    make(8'h17, 24'h000001, 0);
    m = p;
    m.rkey = 32'h2;
    done(m, 0, 0, 0);
    make(8'h17, 24'h000002, 8);
    m = p;
    m.rkey = 32'h3;
    fatal_recv(m, 'h62, 9);

    fresh("WRITE with immediate");
    recv(0, 0, 0, 0);
    recv(0, 0, 0, 0);
    make(8'h0b, 24'hfffffe, 13);
    m = p;
    m.imm = 32'hcafe0001;
    done(m, Iova, 13, 0);
    make(8'h06, 24'hffffff, 256);
    m = p;
    m.dma_len = 300;
    good(m, Iova, 1, 0);
    begin make(8'h09, 24'h000000, 44); done(p, Iova + 256, 300, 0); end

    fresh("no receive WQE: RNR NAK each time it comes, nothing between");
    begin make(8'h04, 24'hfffffe, 8); add(Rnr, p, 64'h2b, 0, 0); end
    begin make(8'h04, 24'hffffff, 8); silent(p, 6); end
    begin make(8'h0a, 24'h000000, 8); silent(p, 6); end
    begin make(8'h04, 24'hfffffe, 8); add(Rnr, p, 64'h2b, 0, 0); end
    recv(1, 8, 0, 0);
    begin make(8'h04, 24'hfffffe, 8); done(p, Iova, 8, 0); end
    begin make(8'h0a, 24'hffffff, 8); good(p, Iova, 2, 0); end
    begin make(8'h0b, 24'h000000, 8); add(Rnr, p, 64'h2b, 0, 0); end
    begin make(8'h0a, 24'h000000, 8); good(p, Iova, 3, 0); end
    make(8'h06, 24'h000001, 256);
    m = p;
    m.dma_len = 257;
    good(m, Iova, 3, 0);
    begin make(8'h09, 24'h000002, 1); add(Rnr, p, 64'h2b, 0, 0); end
    recv(0, 0, 0, 0);
    begin make(8'h09, 24'h000002, 1); done(p, Iova + 256, 257, 0); end
    add(Query, '0, 64'h000003, 4, 0);

    fresh("SEND longer than its WQE");
    recv(2, 4, 4, 0);
    begin make(8'h04, 24'hfffffe, 9); fatal_recv(p, 'h61, 1); end
    fresh("SEND into no SGE");
    recv(0, 4, 4, 0);
    begin make(8'h04, 24'hfffffe, 1); fatal_recv(p, 'h61, 1); end
    fresh("SEND, its middle longer than the WQE");
    recv(2, 256, 255, 0);
    begin make(8'h00, 24'hfffffe, 256); good(p, Iova, 0, 0); end
    begin make(8'h01, 24'hffffff, 256); fatal_recv(p, 'h61, 1); end
    fresh("SEND, its last longer than the WQE");
    recv(1, 256, 0, 0);
    begin make(8'h00, 24'hfffffe, 256); good(p, Iova, 0, 0); end
    begin make(8'h02, 24'hffffff, 1); fatal_recv(p, 'h61, 1); end
    fresh("SEND into an SGE beyond the MR");
    recv(2, 8, 64'h8001, 0);
    begin make(8'h04, 24'hfffffe, 9); done(p, Iova + 64'h8000, 9, 0); end
    recv(2, 8, 64'h8001, 0);
    set(SetMrLength, 64'h8002);
    begin make(8'h04, 24'hffffff, 11); fatal_recv(p, 'h63, 4); end
    fresh("SEND into an MR without local write");
    recv(1, 8, 0, 0);
    set(SetMrLocal, 64'(0));
    begin make(8'h00, 24'hfffffe, 256); fatal_recv(p, 'h63, 4); end
    fresh("SEND into an MR of another PD");
    recv(1, 8, 0, 0);
    set(SetMrPd, 64'(24'd8));
    begin make(8'h04, 24'hfffffe, 8); fatal_recv(p, 'h63, 4); end
    fresh("empty SEND looks at no key");
    recv(1, 8, 0, 0);
    set(SetMrValid, 64'(0));
    begin make(8'h04, 24'hfffffe, 0); done(p, 0, 0, 0); end
    fresh("SRQ: its PD counts for SGEs, the QP's for rkeys");
    set(SetQpSrq, 64'h7e);
    recv(2, 200, 200, 0);
    recv(1, 200, 0, 0);
    begin make(8'h0a, 24'hfffffe, 8); good(p, Iova, 1, 0); end
    set(SetMrPd, 64'(24'd55));
    begin make(8'h00, 24'hffffff, 256); good(p, Iova + 64'h8000, 1, 0); end
    begin make(8'h02, 24'h000000, 20); done(p, Iova + 64'h8000 + 56, 276, 0); end
    set(SetMrPd, 64'(24'd9));
    begin make(8'h04, 24'h000001, 8); fatal_recv(p, 'h63, 4); end
    fresh("SRQ: rkey of its PD");
    set(SetQpSrq, 64'h40);
    set(SetMrPd, 64'(24'd55));
    begin make(8'h0a, 24'hfffffe, 8); fatal_nak(p, 'h62, 9); end
    fresh("malformed WQE");
    recv(1, 8, 0, 1);
    begin make(8'h04, 24'hfffffe, 0); fatal_recv(p, 'h63, 2); end
    fresh("malformed WQE of a long message");
    recv(1, 8, 0, 1);
    begin make(8'h00, 24'hfffffe, 256); fatal_recv(p, 'h63, 2); end
    fresh("malformed WQE, WRITE with immediate");
    recv(1, 8, 0, 1);
    begin make(8'h0b, 24'hfffffe, 8); fatal_recv(p, 'h63, 2); end
    fresh("flushed meanwhile");
    recv(1, 300, 0, 0);
    begin make(8'h00, 24'hfffffe, 256); good(p, Iova, 0, 0); end
    set(SetGone, 64'(1));
    begin make(8'h02, 24'hffffff, 4); silent(p, 1); end
    fresh("flushed before");
    set(SetGone, 64'(1));
    begin make(8'h04, 24'hfffffe, 4); silent(p, 1); end
    begin make(8'h0b, 24'hfffffe, 4); silent(p, 1); end
    begin make(8'h0a, 24'hfffffe, 8); good(p, Iova, 1, 0); end
    fresh("WRITE inside a SEND");
    recv(1, 1000, 0, 0);
    begin make(8'h00, 24'hfffffe, 256); good(p, Iova, 0, 0); end
    begin make(8'h07, 24'hffffff, 256); fatal_nak(p, 'h61, 8); end
    fresh("SEND inside a WRITE");
    start_message();
    begin make(8'h02, 24'hffffff, 1); fatal_nak(p, 'h61, 8); end
    fresh("SEND needs no remote write");
    set(SetQpWrite, 64'(0));
    set(SetMrWrite, 64'(0));
    recv(1, 8, 0, 0);
    begin make(8'h04, 24'hfffffe, 8); done(p, Iova, 8, 0); end
    make(8'h0b, 24'hffffff, 0);
    m = p;
    fatal_nak(m, 'h61, 8);
    fresh("SEND: lengths");
    recv(1, 1000, 0, 0);
    make(8'h00, 24'hfffffe, 252);
    m = p;
    fatal_nak(m, 'h61, 8);
    fresh("SEND: last empty");
    recv(1, 1000, 0, 0);
    begin make(8'h00, 24'hfffffe, 256); good(p, Iova, 0, 0); end
    begin make(8'h02, 24'hffffff, 0); fatal_nak(p, 'h61, 8); end
    fresh("SEND: only longer than the MTU");
    recv(1, 1000, 0, 0);
    begin make(8'h04, 24'hfffffe, 260); fatal_nak(p, 'h61, 8); end
    fresh("SEND: duplicates and gaps");
    recv(1, 1000, 0, 0);
    begin make(8'h04, 24'hfffffe, 8); done(p, Iova, 8, 0); end
    begin make(8'h04, 24'hfffffe, 8); add(Dup, p, 64'hfffffe, 1, 0); end
    begin make(8'h04, 24'h000000, 4); add(NakSeq, p, 64'hffffff, 0, 0); end

    fresh("coalescing");
    set(SetCoalesce, 64'(3));
    begin make(8'h0a, 24'hfffffe, 4); good(p, Iova, 1, 0); end
    begin make(8'h0a, 24'hffffff, 4); good(p, Iova, 2, 0); end
    begin make(8'h0a, 24'h000000, 4); good(p, Iova, 3, 1); end
    begin make(8'h0a, 24'h000001, 4); good(p, Iova, 4, 0); end
    make(8'h0a, 24'h000002, 4);
    m = p;
    m.ack_req = 1;
    good(m, Iova, 5, 1);
    begin make(8'h0a, 24'h000003, 4); good(p, Iova, 6, 0); end
    begin make(8'h0a, 24'h000004, 4); good(p, Iova, 7, 0); end
    begin make(8'h0a, 24'h000005, 4); good(p, Iova, 8, 1); end
    set(SetCoalesce, 64'(0));

    fresh("gap: one NAK, again after the expected PSN");
    begin make(8'h0a, 24'h000001, 4); add(NakSeq, p, 64'hfffffe, 0, 0); end
    begin make(8'h0a, 24'h000002, 4); silent(p, 6); end
    begin make(8'h0a, 24'h7ffffd, 4); silent(p, 6); end  // 2^23 - 1 ahead
    begin make(8'h0a, 24'hfffffe, 4); good(p, Iova, 1, 0); end
    begin make(8'h0a, 24'h000001, 4); add(NakSeq, p, 64'hffffff, 0, 0); end

    fresh("duplicates, as far as 2^23 behind");
    begin make(8'h0a, 24'hfffffe, 4); good(p, Iova, 1, 0); end
    silent_dup(24'hfffffe, 24'hfffffe, 1);
    silent_dup(24'h7fffff, 24'hfffffe, 1);
    make(8'h0c, 24'hfffffe, 0);
    m = p;
    silent(m, 5);  // READ: nothing remembered, no ACK

    fresh_read("READ: PSNs, MSN, lengths");
    begin read_of(24'hfffffe, 0); read_go(p, 1, 0); end      // takes a PSN; looks at no key
    p.psn = 24'hffffff;
    p.rkey = 32'hdeadbeef;
    p.va = '1;
    read_go(p, 2, 0);
    begin read_of(24'h000000, 1); read_go(p, 3, 0); end
    begin read_of(24'h000001, 256); read_go(p, 4, 0); end
    begin read_of(24'h000002, 257); read_go(p, 5, 0); end    // 2 PSNs
    begin read_of(24'h000004, 65536); read_go(p, 6, 0); end  // 256 PSNs
    begin make(8'h0a, 24'h000104, 4); good(p, Iova, 7, 0); end
    add(Query, '0, 64'h000105, 7, 0);
    begin read_of(24'h000106, 4); add(NakSeq, p, 64'h000105, 0, 0); end
    begin read_of(24'h000107, 4); silent(p, 6); end
    begin read_of(24'h000105, 4); read_go(p, 8, 0); end
    begin read_of(24'h000107, 4); add(NakSeq, p, 64'h000106, 0, 0); end

    fresh_read("READ again: whole, in part, not beyond what was executed");
    begin read_of(24'hfffffe, 1024); read_go(p, 1, 0); end
    begin read_of(24'h000002, 100); read_go(p, 2, 0); end
    begin read_of(24'hfffffe, 1024); read_go(p, 2, 1); end
    begin read_of(24'hffffff, 768); read_go(p, 2, 1); end
    begin read_of(24'h000001, 256); read_go(p, 2, 1); end
    begin read_of(24'hfffffe, 1280); read_go(p, 2, 1); end   // up to the newest
    begin read_of(24'hfffffe, 1281); silent(p, 5); end
    begin read_of(24'h000002, 257); silent(p, 5); end
    begin read_of(24'hfffffe, 32'h80000000); silent(p, 5); end
    p.dma_len = 32'h80000100;
    silent(p, 5);
    begin read_of(24'h800003, 4); read_go(p, 2, 1); end      // 2^23 behind
    set(SetMrRead, 64'(0));
    begin read_of(24'hfffffe, 1024); silent(p, 5); end
    begin read_of(24'hfffffe, 0); read_go(p, 2, 1); end
    set(SetQpRead, 64'(0));
    begin read_of(24'hfffffe, 0); silent(p, 5); end
    silent_dup(24'hfffffe, 24'h000002, 2);
    add(Query, '0, 64'h000003, 2, 0);

    fresh_read("READ: refused");
    begin read_of(24'hfffffe, 4); p.payload_len = 4; fatal_nak(p, 'h61, 8); end
    fresh_read("READ with pad");
    begin read_of(24'hfffffe, 4); p.pad = 1; fatal_nak(p, 'h61, 8); end
    fresh_read("READ longer than 2^31");
    set(SetMrLength, 64'h1_0000_0000);
    begin read_of(24'hfffffe, 32'h80000001); fatal_nak(p, 'h61, 8); end
    fresh_read("READ of 2^31");
    set(SetMrLength, 64'h1_0000_0000);
    begin read_of(24'hfffffe, 32'h80000000); read_go(p, 1, 0); end
    add(Query, '0, 64'h7ffffe, 1, 0);
    fresh_read("READ inside a message");
    start_message();
    begin read_of(24'hffffff, 4); fatal_nak(p, 'h61, 8); end
    fresh_read("READ again inside a message");
    begin read_of(24'hfffffe, 4); read_go(p, 1, 0); end
    begin make(8'h06, 24'hffffff, 256); p.dma_len = 257; good(p, Iova, 1, 0); end
    begin read_of(24'hfffffe, 4); read_go(p, 1, 1); end
    begin make(8'h08, 24'h000000, 1); good(p, Iova + 256, 2, 0); end
    fresh_read("READ: QP without remote read");
    set(SetQpRead, 64'(0));
    begin read_of(24'hfffffe, 4); fatal_nak(p, 'h61, 8); end
    fresh_read("READ: MR without remote read");
    set(SetMrRead, 64'(0));
    begin read_of(24'hfffffe, 4); fatal_nak(p, 'h62, 9); end
    fresh_read("READ: beyond the MR");
    begin read_of(24'hfffffe, 65537); fatal_nak(p, 'h62, 9); end
    fresh_read("READ: other PD");
    set(SetMrPd, 64'(24'd8));
    begin read_of(24'hfffffe, 4); fatal_nak(p, 'h62, 9); end

    fresh_read("atomics");
    set(SetMrIova, 64'hffff_0000_0000_0003);
    begin atomic_at(8'h13, 24'hfffffe, 5); read_go(p, 1, 0); end
    begin atomic_at(8'h14, 24'hffffff, 65525); read_go(p, 2, 0); end
    begin atomic_at(8'h13, 24'hfffffe, 5); read_go(p, 2, 1); end
    begin atomic_at(8'h14, 24'hffffff, 65525); read_go(p, 2, 1); end
    add(Query, '0, 64'h000000, 2, 0);
    set(SetMrAtomic, 64'(0));
    begin atomic_at(8'h13, 24'hfffffe, 5); read_go(p, 2, 1); end   // answered from memory of the value
    begin atomic_at(8'h13, 24'h000000, 5); fatal_nak(p, 'h62, 9); end
    fresh_read("atomic: not aligned");
    set(SetMrIova, 64'hffff_0000_0000_0003);
    begin atomic_at(8'h13, 24'hfffffe, 4); fatal_nak(p, 'h61, 8); end
    fresh_read("atomic: aligned here, but not in memory");
    set(SetMrIova, 64'hffff_0000_0000_0002);
    begin atomic_at(8'h14, 24'hfffffe, 5); fatal_nak(p, 'h62, 9); end
    fresh_read("atomic: beyond the MR");
    set(SetMrIova, 64'hffff_0000_0000_0003);
    set(SetMrLength, 64'd12);
    begin atomic_at(8'h14, 24'hfffffe, 5); fatal_nak(p, 'h62, 9); end
    fresh_read("atomic: QP without remote atomic");
    set(SetQpAtomic, 64'(0));
    set(SetMrIova, 64'hffff_0000_0000_0003);
    begin atomic_at(8'h14, 24'hfffffe, 5); fatal_nak(p, 'h61, 8); end
    fresh_read("atomic inside a message");
    start_message();
    begin atomic_at(8'h14, 24'hffffff, 5); fatal_nak(p, 'h61, 8); end

    fresh_read("as many READs as the QP offers");
    set(SetHoldRsp, 64'(1));
    set(SetQpMax, 64'(2));
    begin read_of(24'hfffffe, 4); read_go(p, 1, 0); end
    begin read_of(24'hffffff, 4); read_go(p, 2, 0); end
    begin read_of(24'hfffffe, 4); read_go(p, 2, 1); end
    set(SetFull, 64'(1));
    begin read_of(24'h000000, 4); fatal_later(p, 'h61, 8); end
    fresh_read("READ of a QP that offers none");
    set(SetQpMax, 64'(0));
    set(SetFull, 64'(1));
    begin read_of(24'hfffffe, 4); fatal_nak(p, 'h61, 8); end
    fresh_read("as many READs as the queue takes, and duplicates");
    set(SetHoldRsp, 64'(1));
    set(SetQpMax, 64'(255));
    for (int i = 0; i < n8; i++) begin read_of(24'hfffffe + psn_t'(i), 4); read_go(p, i + 1, 0); end
    for (int i = 0; i < n8 - 1; i++) begin read_of(24'hfffffe + psn_t'(i), 4); read_go(p, 8, 1); end
    set(SetFull, 64'(2));
    begin read_of(24'hfffffe, 4); silent(p, 5); end
    set(SetFull, 64'(3));
    begin make(8'h0a, 24'h000006, 4); good(p, Iova, 9, 0); end
    begin read_of(24'h000007, 4); fatal_later(p, 'h61, 8); end
    fresh_read("the error of a WRITE behind a READ");
    set(SetHoldRsp, 64'(1));
    begin read_of(24'hfffffe, 4); read_go(p, 1, 0); end
    begin make(8'h0a, 24'hffffff, 4); p.rkey = 0; fatal_later(p, 'h62, 9); end
    fresh_read("the error of a SEND behind a READ");
    set(SetHoldRsp, 64'(1));
    begin read_of(24'hfffffe, 4); read_go(p, 1, 0); end
    recv(1, 4, 0, 0);
    begin make(8'h04, 24'hffffff, 5); add(FatalLater, p, 64'h61, 8, 1); end
    silent(p, 1);

    fresh("first inside a message");
    start_message();
    make(8'h06, 24'hffffff, 256);
    m = p;
    m.dma_len = 1000;
    fatal_nak(m, 'h61, 8);
    fresh("only inside a message");
    start_message();
    begin make(8'h0a, 24'hffffff, 4); fatal_nak(p, 'h61, 8); end
    fresh("middle without first");
    begin make(8'h07, 24'hfffffe, 256); fatal_nak(p, 'h61, 8); end
    fresh("last without first");
    begin make(8'h08, 24'hfffffe, 4); fatal_nak(p, 'h61, 8); end
    fresh("message ends: last twice");
    start_message();
    begin make(8'h08, 24'hffffff, 1); good(p, Iova + 256, 1, 0); end
    begin make(8'h08, 24'h000000, 1); fatal_nak(p, 'h61, 8); end

    fresh("first shorter than the MTU");
    make(8'h06, 24'hfffffe, 252);
    m = p;
    m.dma_len = 1000;
    fatal_nak(m, 'h61, 8);
    fresh("first of the length of the message");
    begin make(8'h06, 24'hfffffe, 256); fatal_nak(p, 'h61, 8); end
    fresh("first with pad");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 1000;
    m.pad = 1;
    fatal_nak(m, 'h61, 8);
    fresh("longer than 2^31");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 32'h80000001;
    set(SetMrLength, 64'(64'h1_0000_0000));
    fatal_nak(m, 'h61, 8);
    fresh("2^31");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 32'h80000000;
    set(SetMrLength, 64'(64'h1_0000_0000));
    good(m, Iova, 0, 0);
    fresh("middle longer than the MTU");
    start_message();
    begin make(8'h07, 24'hffffff, 512); fatal_nak(p, 'h61, 8); end
    fresh("middle where the last is due");
    start_message();
    begin make(8'h07, 24'hffffff, 256); fatal_nak(p, 'h61, 8); end
    fresh("middle where one MTU is left");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 512;
    good(m, Iova, 0, 0);
    begin make(8'h07, 24'hffffff, 256); fatal_nak(p, 'h61, 8); end
    fresh("last of one MTU");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 512;
    good(m, Iova, 0, 0);
    begin make(8'h08, 24'hffffff, 256); good(p, Iova + 256, 1, 0); end
    fresh("last empty");
    start_message();
    begin make(8'h08, 24'hffffff, 0); fatal_nak(p, 'h61, 8); end
    fresh("last longer than announced");
    start_message();
    begin make(8'h08, 24'hffffff, 2); fatal_nak(p, 'h61, 8); end
    fresh("last shorter than announced");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 300;
    good(m, Iova, 0, 0);
    begin make(8'h08, 24'hffffff, 43); fatal_nak(p, 'h61, 8); end
    fresh("last with a wrong pad");
    start_message();
    make(8'h08, 24'hffffff, 1);
    m = p;
    m.pad = 2;
    fatal_nak(m, 'h61, 8);
    fresh("only longer than the MTU");
    begin make(8'h0a, 24'hfffffe, 260); fatal_nak(p, 'h61, 8); end
    fresh("only longer than any MTU");
    make(8'h0a, 24'hfffffe, 8191);
    m = p;
    fatal_nak(m, 'h61, 8);
    fresh("only of another length than its RETH");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    m.dma_len = 7;
    fatal_nak(m, 'h61, 8);
    fresh("only without payload but with a length");
    make(8'h0a, 24'hfffffe, 0);
    m = p;
    m.dma_len = 4;
    fatal_nak(m, 'h61, 8);
    fresh("QP without remote write");
    set(SetQpWrite, 64'(0));
    begin make(8'h0a, 24'hfffffe, 8); fatal_nak(p, 'h61, 8); end

    for (int op = 0; op < n256; op++) begin
      if (op inside {'h0c, 'h13, 'h14}) begin
        fresh("refused request");
        begin make(8'(op), 24'hfffffe, 8); fatal_nak(p, 'h61, 8); end
      end
      if (op inside {'h0d, 'h0e, 'h0f, 'h10, 'h12, 'h15, ['h18 : 'h1f]}) begin
        fresh("unsupported");
        set(SetQpState, 64'(QpRts));
        begin make(8'(op), 24'hfffffe, 8); silent(p, op <= 'h12 ? 11 : 7); end
      end
      if (op inside {['h20 : 'h80], ['h82 : 'hff]}) begin
        if (op == 'h20) fresh("service");
        begin make(8'(op), 24'hfffffe, 8); silent(p, 2); end
      end
    end
    fresh("UC and UD");
    set(SetQpType, 64'(QpTypeUc));
    begin make(8'h0a, 24'hfffffe, 8); silent(p, 2); end
    begin make(8'h64, 24'hfffffe, 8); silent(p, 2); end
    set(SetQpType, 64'(QpTypeUd));
    begin make(8'h2a, 24'hfffffe, 8); silent(p, 2); end

    fresh("key of another variant");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    m.rkey = Key ^ 32'h1;
    fatal_nak(m, 'h62, 9);
    fresh("key of an empty slot");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    m.rkey = 32'h4a7;
    fatal_nak(m, 'h62, 9);
    fresh("key beyond the table");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    m.rkey = Key | 32'h00040000;
    fatal_nak(m, 'h62, 9);
    fresh("other PD");
    set(SetMrPd, 64'(24'd8));
    begin make(8'h0a, 24'hfffffe, 8); fatal_nak(p, 'h62, 9); end
    fresh("MR without remote write");
    set(SetMrWrite, 64'(0));

    begin make(8'h0a, 24'hfffffe, 8); fatal_nak(p, 'h62, 9); end
    fresh("below the MR");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    m.va = Va - 1;
    fatal_nak(m, 'h62, 9);
    fresh("beyond the MR");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    m.va = Va + 64'h10000 - 7;
    fatal_nak(m, 'h62, 9);
    fresh("address wraps");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    m.va = 64'hffff_ffff_ffff_fffc;
    fatal_nak(m, 'h62, 9);
    fresh("message beyond the MR, seen at its first packet");
    make(8'h06, 24'hfffffe, 256);
    m = p;
    m.dma_len = 32'h10001;
    fatal_nak(m, 'h62, 9);
    fresh("MR destroyed inside a message");
    start_message();
    set(SetMrValid, 64'(0));
    begin make(8'h08, 24'hffffff, 1); fatal_nak(p, 'h62, 9); end

    for (int s = 0; s < n8; s++) begin
      fresh("states");
      set(SetQpState, 64'(s));
      if (s == 2 || s == 3 || s == 4) begin make(8'h0a, 24'hfffffe, 8); good(p, Iova, 1, 0); end
      else begin make(8'h0a, 24'hfffffe, 8); silent(p, s == 7 ? 0 : 1); end
      begin make(8'h11, 24'h123456, 0); m = p; end
      m.syndrome = 8'h1f;
      m.msn = 24'habcdef;
      if (s == 3 || s == 4) add(Forward, m, 0, 0, 0);
      else silent(m, s == 7 ? 0 : 1);
    end
    fresh("AETH");
    set(SetQpState, 64'(QpRts));
    for (int s = 0; s < n256; s++) begin
      begin make(8'h11, 24'h123456, 0); m = p; end
      m.syndrome = 8'(s);
      if (s < 'h40 || s inside {'h60, 'h61, 'h62, 'h63}) add(Forward, m, 0, 0, 0);
      else silent(m, 12);
    end
    begin make(8'h11, 24'h123456, 12); m = p; end  // payload behind an AETH is thrown away
    add(Forward, m, 0, 0, 0);

    fresh("QP number");
    make(8'h0a, 24'hfffffe, 8);
    m = p;
    for (int i = 0; i < n24; i++) begin
      m2 = m;
      m2.dest_qp = m.dest_qp ^ (24'd1 << i);
      if (i >= 8) silent(m2, 0);
    end
    m2 = m;
    m2.dest_qp = 24'd1;
    silent(m2, 0);
    fresh("addresses");
    m2 = m;
    m2.sip[127] = !m2.sip[127];
    silent(m2, 3);
    m2 = m;
    m2.dip[0] = !m2.dip[0];
    silent(m2, 3);
    m2 = m;
    m2.ipv6 = 1;
    silent(m2, 3);
    fresh("P_Key");
    m2 = m;
    m2.pkey = 16'h0000;
    silent(m2, 4);
    m2.pkey = 16'h8001;
    silent(m2, 4);
    m2.pkey = 16'h7fff;  // limited to full
    good(m2, Iova, 1, 0);
    set(SetQpPkey, 64'(16'h7fff));
    m2.psn = 24'hffffff;
    silent(m2, 4);       // limited to limited
    m2.pkey = 16'hffff;
    good(m2, Iova, 2, 0);
    set(SetQpPkey, 64'(16'h8000));
    m2.pkey = 16'h8000;
    m2.psn = 24'h000000;
    silent(m2, 4);       // not a partition
    fresh("CNP");
    make(8'h81, 24'h0, 16);
    m2 = p;
    silent(m2, 13);
    fresh("nothing after a fatal NAK although the QP table still says RTR");
    make(8'h07, 24'hfffffe, 256);
    m2 = p;
    fatal_nak(m2, 'h61, 8);
    set(SetQpState, 64'(QpRts));
    begin make(8'h0a, 24'hfffffe, 8); silent(p, 1); end
    begin make(8'h11, 24'h0, 0); silent(p, 1); end
    fresh("connected again");
    begin make(8'h0a, 24'hfffffe, 8); good(p, Iova, 1, 0); end
  endfunction
  endclass
  script_t sc = new;
  string test;

  task automatic play();
    step_t t;
    int b_wr, b_ackrx, b_pcmd, b_err, b_drop, b_rnr;
    bit quiet, ok, is_packet;
    int at;
    for (int i = 0; i < sc.steps.size(); i++) begin
      t = sc.steps[i];
      is_packet = t.kind inside {Silent, Fatal, Good, Dup, NakSeq, Forward, Recv, Rnr, NoWqe, FatalRecv, Read, FatalLater};
      b_wr = n_wr;
      b_ackrx = n_ackrx;
      b_pcmd = n_pcmd;
      b_err = n_err;
      b_drop = n_drop;
      b_rnr = n_rnr;
      case (t.kind)
        Fresh: begin
          at = t.a[31:0];
          test = sc.names[at];
          coalesce = 0;
          gsi_valid = 0;
          raw_valid = 0;
          hold_rsp = 0;
          full_new = 0;
          full_dup = 0;
          dones[Q].done = rsp_slot_t'(r_slot[Q]);
          dones[Q].fresh = rsp_slot_t'($urandom());
          qps[Q] = '0;
          qps[Q].qpn = 16'd256 + qpn_t'(Q);
          qps[Q].max_dest_rd_atomic = 8'd8;
          qps[Q].state = QpRtr;
          qps[Q].qp_type = QpTypeRc;
          qps[Q].path_mtu = 1;
          qps[Q].remote_write = 1;
          qps[Q].pd = 24'd9;
          qps[Q].recv_cqn = 8'h77;
          qps[Q].dest_qpn = 24'h445566;
          qps[Q].min_rnr_timer = 5'd11;
          qps[Q].pkey = 16'hffff;
          qps[Q].sgid = Us;
          qps[Q].dgid = Them;
          mrs[3] = '0;
          mrs[3].valid = 1;
          mrs[3].variant = 8'ha7;
          mrs[3].pd = 24'd9;
          mrs[3].local_write = 1;
          mrs[3].remote_write = 1;
          mrs[3].va = Va;
          mrs[3].length = 64'h10000;
          mrs[3].iova = Iova;
          connect(Q, 24'hfffffe);
        end
        SetQpState: qps[Q].state = qp_state_e'(t.a[2:0]);
        SetQpType: qps[Q].qp_type = t.a[3:0];
        SetQpQkey: qps[Q].qkey = t.a[31:0];
        SetQpGsi: qps[Q].gsi = t.a[0];
        SetGsi: begin
          gsi_valid = t.a[8];
          gsi_idx = t.a[7:0];
        end
        SetRaw: begin
          raw_valid = t.a[8];
          raw_idx = t.a[7:0];
        end
        SetQpPkey: qps[Q].pkey = t.a[15:0];
        SetQpSrq: begin
          qps[Q].has_srq = t.a[6];
          qps[Q].srqn = srq_idx_t'(t.a[5:0]);
          qps[Q].rq_addr = 64'd55;
        end
        SetQpWrite: qps[Q].remote_write = t.a[0];
        SetMrLength: mrs[3].length = t.a;
        SetMrPd: mrs[3].pd = t.a[23:0];
        SetMrWrite: mrs[3].remote_write = t.a[0];
        SetMrLocal: mrs[3].local_write = t.a[0];
        SetGone: rq_gone[Q] = t.a[0];
        Post: post(Q, t.a[31:0], sge_of(Va, t.m.dma_len, Key), sge_of(Va + 64'h8000, t.m.qkey, Key), '0,
                   '0, t.c);
        SetMrValid: mrs[3].valid = t.a[0];
        SetCoalesce: coalesce = t.a[7:0];
        SetQpRead: qps[Q].remote_read = t.a[0];
        SetQpAtomic: qps[Q].remote_atomic = t.a[0];
        SetQpMax: qps[Q].max_dest_rd_atomic = t.a[7:0];
        SetMrRead: mrs[3].remote_read = t.a[0];
        SetMrAtomic: mrs[3].remote_atomic = t.a[0];
        SetMrIova: mrs[3].iova = t.a;
        SetHoldRsp: hold_rsp = t.a[0];
        SetFull: {full_dup, full_new} = t.a[1:0];
        Query: admin(QpStateQuery, Q, 0);
        default: begin
          m_next = t.m;
          ref_go = !ref_go;
          @(negedge clk);
        end
      endcase
      settle(test);
      ok = 1;
      quiet = n_wr == b_wr && n_ackrx == b_ackrx && n_err == b_err && n_drop == b_drop;
      case (t.kind)
        Silent: ok = n_wr == b_wr && n_ackrx == b_ackrx && n_err == b_err && n_drop == b_drop + 1 &&
                     last_drop == int'(t.b);
        Fatal: ok = n_wr == b_wr + 1 && n_err == b_err + 1 && n_ackrx == b_ackrx &&
                    last_drop == int'(t.b) && last_wr.ack && !last_wr.has_payload &&
                    last_wr.syndrome == t.a[7:0] && last_wr.psn == t.m.psn;
        Read: ok = n_wr == b_wr + 1 && n_err == b_err && n_drop == b_drop + int'(t.c) && !last_wr.ack && !last_wr.has_payload &&
                   !last_wr.has_cqe && last_wr.kind == (t.m.opcode == 8'h0c ? RxRead : RxAtomic) && last_wr.psn == t.m.psn &&
                   last_wr.msn == t.b[23:0] && last_wr.syndrome == SynAck && last_rd.dup == t.c &&
                   (t.m.opcode == 8'h0c ? last_rd.va == t.m.va && last_rd.rkey == t.m.rkey && last_rd.len == t.m.dma_len :
                    last_rd.swap_add == t.m.swap_add && last_rd.compare == t.m.compare &&
                    last_rd.fetch_add == (t.m.opcode == 8'h14) && last_wr.iova == mrs[3].iova + (t.m.va - Va));
        // the error state comes behind the responses: not asked for here
        FatalLater: ok = n_wr == b_wr + 1 && n_err == b_err && last_drop == int'(t.b) && last_wr.ack && !last_wr.has_payload &&
                    last_wr.kind == RxError && last_wr.syndrome == t.a[7:0] && last_wr.psn == t.m.psn && last_wr.has_cqe == t.c;
        Good: ok = n_wr > b_wr && !last_wr.has_cqe && !last_wr.more && n_drop == b_drop && n_err == b_err && n_ackrx == b_ackrx &&
                   last_wr.ack == t.c && last_wr.psn == t.m.psn && last_wr.msn == t.b[23:0] &&
                   last_wr.syndrome == SynAck && last_wr.has_payload == (t.m.payload_len != 0) &&
                   (t.m.payload_len == 0 ||
                    (last_wr.iova == t.a && (t.m.opcode[4:0] < 5'h06 || last_wr.len == t.m.payload_len)));
        Recv: ok = n_wr > b_wr && last_wr.has_cqe && !last_wr.more && last_wr.last && n_drop == b_drop &&
                   n_err == b_err && last_wr.ack == t.c && last_wr.psn == t.m.psn &&
                   last_wr.cqe.status == 0 && last_wr.cqe.byte_len == t.b &&
                   last_wr.cqe.cqn == 8'h77 && last_wr.cqe.src_qp == (qps[Q].qp_type == QpTypeUd ? t.m.src_qp : t.m.raw ? 24'd0 : 24'h445566) &&
                   last_wr.cqe.with_grh == (qps[Q].qp_type == QpTypeUd) &&
                   int'(last_wr.cqe.index) == (rq_index[Q] - rqs[Q].size() - 1) % 65536 &&
                   last_wr.cqe.opcode == (t.m.raw || t.m.opcode[4:0] < 5'h06 || t.m.opcode[4] ? 8'd128 : 8'd129) &&
                   last_wr.cqe.with_imm == (t.m.opcode[0] && !t.m.raw && !t.m.opcode[4]) &&
                   last_wr.cqe.with_inv == (t.m.opcode[4] && !t.m.raw) &&
                   (!t.m.opcode[4] || t.m.raw || last_wr.cqe.imm == t.m.rkey) &&
                   (t.m.imm == 0 || t.m.raw || last_wr.cqe.imm == {t.m.imm[7:0], t.m.imm[15:8], t.m.imm[23:16],
                                                        t.m.imm[31:24]}) &&
                   last_wr.cqe.solicited == (t.m.solicited && !t.m.raw) && last_wr.has_payload == (t.m.payload_len != 0 || qps[Q].qp_type == QpTypeUd) &&
                   (!last_wr.has_payload || last_wr.iova == t.a);
        NoWqe: ok = n_wr == b_wr && n_drop == b_drop && n_err == b_err && n_ackrx == b_ackrx && n_rnr == b_rnr + 1;
        Rnr: ok = n_wr == b_wr + 1 && n_drop == b_drop && n_err == b_err && last_wr.ack &&
                  !last_wr.has_payload && !last_wr.has_cqe && last_wr.syndrome == t.a[7:0] && last_wr.psn == t.m.psn;
        // the WQE was closed, so that it is not flushed as well
        FatalRecv: ok = !rq_open[Q] && n_wr == b_wr + 1 && n_err == b_err + 1 && n_drop == b_drop + 1 &&
                    last_wr.ack == (qps[Q].qp_type == QpTypeRc) && !last_wr.has_payload && last_wr.has_cqe && !last_wr.last &&
                    last_wr.cqe.status == t.b[7:0] && last_wr.cqe.cqn == 8'h77 &&
                    last_wr.syndrome == t.a[7:0] && last_wr.psn == t.m.psn;
        Dup: ok = n_wr == b_wr + 1 && n_err == b_err && n_ackrx == b_ackrx && last_drop == 5 &&
                  last_wr.ack && !last_wr.has_payload && !last_wr.last &&
                  last_wr.syndrome == SynAck &&
                  last_wr.psn == t.a[23:0] && last_wr.msn == t.b[23:0];
        NakSeq: ok = n_wr == b_wr + 1 && n_err == b_err && n_ackrx == b_ackrx && last_drop == 6 &&
                     last_wr.ack && !last_wr.has_payload && last_wr.syndrome == 8'h60 &&
                     last_wr.psn == t.a[23:0];
        Forward: ok = n_ackrx == b_ackrx + 1 && n_wr == b_wr && n_drop == b_drop &&
                      n_err == b_err &&
                      int'(last_ackrx.qp) == Q && last_ackrx.psn == t.m.psn &&
                      last_ackrx.msn == t.m.msn && last_ackrx.syndrome == t.m.syndrome;
        Query: ok = adm_rsp.expected_psn == t.a[23:0] && adm_rsp.msn == t.b[23:0];
        Fresh: ok = n_wr == b_wr + 1 && last_wr.init && !last_wr.ack;
        default: ok = quiet;
      endcase
      if (is_packet) begin
        ok = ok && n_pcmd == b_pcmd + int'(t.m.payload_len != 0);
        if (t.m.payload_len != 0) begin
          ok = ok && last_pcmd == (t.kind inside {Good, Recv} ? PayloadStream : PayloadDrop);
        end
      end
      if (!ok) begin
        $fatal(1, "%s: step %0d %p\nwr %p ackrx %p drop %0d", test, i, t, last_wr, last_ackrx,
               last_drop);
      end
    end
  endtask

  // ---- random traffic ----
  int total_bad, reached_middle;
  function automatic psn_t random_psn();
    int pick;
    pick = int'($urandom() % 3);
    case (pick)
      0: return 24'hfffff0 + psn_t'($urandom() % 32);
      1: return 24'h7ffff0 + psn_t'($urandom() % 32);
      default: return psn_t'($urandom());
    endcase
  endfunction

  // READs and atomics of QP q: nothing is under way.
  task automatic make_reads(int q, bit wrong);
    rd_entry_t e;
    int n, left, part, mtu, k;
    psn_t psn;
    mtu = 128 << qps[q].path_mtu;
    l_rd[8'(q)].delete();
    r_rd[8'(q)].delete();
    psn = random_psn();
    n = int'($urandom() % 9);
    for (int i = 0; i < n; i++) begin
      psn += psn_t'($urandom() % 4 == 0 ? $urandom() % 20 : 0);
      e = {($bits(rd_entry_t) / 32 + 1) {$urandom()}};
      e.atomic = $urandom() % 3 == 0;
      e.base = psn;
      left = $urandom() % 3 == 0 ? int'($urandom() % 5) : $urandom() % 3 == 0 ? int'($urandom() % 3) - 1 + mtu : int'($urandom() % 32'(5 * mtu));
      if (e.atomic) left = 8;
      e.len = 32'(left);
      e.last = left == 0 ? psn : psn + psn_t'((left - 1) / mtu);
      psn = e.last + 1;
      for (int j = 0; j < n4; j++) begin
        part = j == 3 || e.atomic ? left : int'($urandom() % 32'(left + 1));
        if (j == 3 - i % 4) part = left;
        k = int'($urandom() % 4);
        if (part != 0) e.sge[2'(j)] = '{lkey: {14'd0, 10'(k), mrs[k].variant}, length: 32'(part), addr: mrs[k].va + 64'($urandom() % 8000)};
        if (left == 0 && part == 0 && $urandom() % 2 == 0) e.sge[2'(j)].length = 0;
        left -= part;
        if (wrong && $urandom() % 60 == 0) e.sge[2'(j)].lkey ^= 32'd1 << ($urandom() % 20);
        if (wrong && $urandom() % 60 == 0) e.sge[2'(j)].addr = mrs[k].va + mrs[k].length - 64'(e.sge[2'(j)].length) + 64'($urandom() % 3);
      end
      l_rd[8'(q)].push_back(e);
      r_rd[8'(q)].push_back(e);
    end
    v_max[q] = psn + psn_t'($urandom() % 6);
    v_inc[q] = $urandom() % 3 == 0;
    l_gap[q] = 0;
    if (n != 0) begin
      // some responses may have been taken already
      l_exp[q] = l_rd[8'(q)][0].base;
      if ($urandom() % 2 == 0) l_exp[q] += psn_t'($urandom() % 32'(24'(l_rd[8'(q)][0].last - l_exp[q]) + 1));
    end
    r_gap[q] = 0;
    r_exp[q] = l_exp[q];
  endtask

  rx_meta_t rp;  // made by the two below
  task automatic random_response(int q, int wrong_percent);
    rx_meta_t p;
    rd_entry_t e;
    int mtu, len, k;
    mtu = 128 << qps[q].path_mtu;
    p = {($bits(rx_meta_t) / 32 + 1) {$urandom()}};
    p.raw = 0;
    p.dest_qp = QpnBase + 24'(q);
    p.pkey = 16'hffff;
    p.sip = qps[q].dgid;
    p.dip = qps[q].sgid;
    p.ipv6 = qps[q].ipv6;
    p.syndrome = 8'($urandom() % 32);
    p.psn = r_exp[q];
    p.opcode = 8'('h0d + $urandom() % 6);
    p.payload_len = 13'($urandom() % 300);
    p.pad = 2'(-p.payload_len);
    if (r_rd[8'(q)].size() != 0) begin
      e = r_rd[8'(q)][0];
      len = int'(e.len) - int'(24'(p.psn - e.base)) * mtu;
      if (p.psn == e.last) p.opcode = p.psn != e.base && $urandom() % 2 == 0 ? 8'h0f : 8'h10;
      else begin
        p.opcode = p.psn != e.base && $urandom() % 2 == 0 ? 8'h0e : 8'h0d;
        len = mtu;
      end
      if (e.atomic) begin
        p.opcode = 8'h12;
        len = 0;
      end
      p.payload_len = 13'(len);
      p.pad = 2'(-len);
    end
    if (int'($urandom() % 100) < wrong_percent) begin
      k = int'($urandom() % 12);
      case (k)
        0, 1: p.psn += psn_t'($urandom() % 8);
        2, 3: p.psn -= psn_t'($urandom() % 8);
        4: p.psn = psn_t'($urandom());
        5, 6: begin
          p.opcode = 8'h11;
          p.psn += psn_t'($urandom() % 9) - 24'd4;
          p.syndrome = $urandom() % 2 == 0 ? 8'h1f : 8'($urandom());
        end
        7: p.syndrome = 8'($urandom());
        8: p.opcode = 8'('h0d + $urandom() % 6);
        9: p.payload_len = p.payload_len + 13'($urandom() % 3) - 13'd1;
        10: p.pad = 2'($urandom());
        default: p.psn = v_max[q] + psn_t'($urandom() % 3) - 24'd1;
      endcase
    end
    rp = p;
  endtask

  // The packet that QP q must take next, or one that is wrong in one place.
  longint s_plan[NumQp];  // length of the SEND under way
  task automatic random_post(int q, bit wrong);
    logic [127:0] g[4], one;
    int num, len;
    num = int'($urandom() % 5);
    if (!wrong && num == 0) num = 1;
    for (int i = 0; i < 4; i++) begin
      len = $urandom() % 4 == 0 ? 0 : $urandom() % 3 == 0 ? int'($urandom() % 20) : int'($urandom() % 3000);
      if (i == num - 1 && (!wrong || $urandom() % 8 != 0)) len = 13000 + int'($urandom() % 100);
      one = sge_of(mrs[i].va + 64'($urandom() % 16000), len,
                   {14'd0, 10'(qps[q].has_srq ? i + 4 : i), 8'(mrs[i].variant)});
      if (wrong && $urandom() % 30 == 0) one = one ^ (128'd1 << 96);
      if (wrong && $urandom() % 30 == 0) one = one ^ (128'd1 << 62);
      g[2'(i)] = one;
    end
    post(q, num, g[0], g[1], g[2], g[3], wrong && $urandom() % 30 == 0);
  endtask

  task automatic random_packet(int q, int wrong_percent, bit recv_too);
    rx_meta_t p;
    longint mtu, len;
    int k, at, pick;  // drawn before each case: Verilator 5.006 evaluates a case's expression per item
    mtu = 128 << qps[q].path_mtu;
    p = '0;
    p.dest_qp = QpnBase + 24'(q);
    p.psn = psn_t'(r_epsn[q]);
    p.pkey = $urandom() % 2 == 0 ? 16'hffff : 16'h7fff;
    p.ack_req = $urandom() % 4 == 0;
    p.sip = qps[q].dgid;
    p.dip = qps[q].sgid;
    p.ipv6 = qps[q].ipv6;
    p.syndrome = 8'($urandom());
    p.msn = 24'($urandom());
    p.imm = $urandom();
    p.solicited = 1'($urandom());
    p.swap_add = {$urandom(), $urandom()};
    p.compare = {$urandom(), $urandom()};
    if (recv_too && r_rqs[8'(q)].size() < 2 && $urandom() % 5 != 0) random_post(q, wrong_percent != 0);
    if (r_in[q] ? r_send[q] : recv_too && $urandom() % 2 == 0) begin
      if (!r_in[q]) s_plan[q] = $urandom() % 3 == 0 ? longint'($urandom()) % 5 : longint'($urandom()) % (3 * mtu);
      len = s_plan[q] - (r_in[q] ? r_total[q] : 0);
      if (r_in[q] && len <= 0) len = 1;
      p.opcode = r_in[q] ? (len > mtu ? 8'h01 : 8'h02) : len > mtu ? 8'h00 : 8'h04;
      if (len > mtu) len = mtu;
      p.va = {$urandom(), $urandom()};
      p.rkey = $urandom();
      p.dma_len = $urandom();
    end else if (r_in[q]) begin
      if (r_rem[q] > mtu) begin
        p.opcode = 8'h07;
        len = mtu;
        reached_middle++;
      end else begin
        p.opcode = 8'h08;
        len = r_rem[q];
      end
      p.va = {$urandom(), $urandom()};
      p.rkey = $urandom();
      p.dma_len = $urandom();
    end else begin
      k = int'($urandom() % 4);
      p.rkey = {14'd0, 10'(k), 8'(mrs[k].variant)};
      pick = int'($urandom() % 5);
      case (pick)
        0: len = longint'($urandom()) % 5;
        1: len = mtu + longint'($urandom() % 3) - 1;
        2: len = longint'($urandom()) % (5 * mtu);
        default: len = longint'($urandom()) % (2 * mtu);
      endcase
      p.va = mrs[k].va + 64'($urandom() % 32'(mrs[k].length - 64'(len) + 1));
      p.dma_len = 32'(len);
      p.opcode = len <= mtu ? 8'h0a : 8'h06;
      if (len > mtu) len = mtu;
    end
    if (p.opcode inside {8'h06, 8'h0a} && $urandom() % 4 == 0) begin
      // a READ of the same range, or an atomic there
      pick = int'($urandom() % 3);
      p.opcode = pick == 0 ? 8'h0c : 8'h12 + 8'(pick);
      at = 8 * int'($urandom() % 3000);
      if (pick != 0) p.va = mrs[k].va + 64'(at);
      len = 0;
    end
    if (p.opcode inside {8'h02, 8'h04, 8'h08, 8'h0a} && recv_too && $urandom() % 3 == 0) p.opcode += 8'd1;
    else if (p.opcode inside {8'h02, 8'h04} && qps[q].qp_type == QpTypeRc && $urandom() % 3 == 0) begin
      p.opcode = p.opcode == 8'h02 ? 8'h16 : 8'h17;
      p.rkey[0] = $urandom() % 32 == 0;
    end
    p.qkey = qps[q].qkey;
    p.src_qp = 24'($urandom());
    p.ip_head = {$urandom(), $urandom(), $urandom()};
    if (qps[q].qp_type == QpTypeUd) begin
      p.opcode = $urandom() % 2 == 0 ? 8'h64 : 8'h65;
      p.psn = psn_t'($urandom());
      p.sip = {4{$urandom()}};
      p.dip = {4{$urandom()}};
      p.ipv6 = 1'($urandom());
      len = $urandom() % 4 == 0 ? longint'($urandom() % 5) : longint'($urandom() % 4097);
      if (wrong_percent != 0 && $urandom() % 20 == 0) p.qkey ^= 32'd1 << ($urandom() % 32);
    end
    if (qps[q].qp_type == QpTypeRaw || (wrong_percent != 0 && !raw_valid && $urandom() % 200 == 0)) begin
      p.raw = 1;
      p.opcode = 8'($urandom());
      p.dest_qp = 24'($urandom());
      p.pkey = 16'($urandom());
      p.psn = psn_t'($urandom());
      p.sip = {4{$urandom()}};
      len = 14 + longint'($urandom() % 4083);
    end
    if (qps[q].qp_type == QpTypeUc) begin
      p.opcode |= 8'h20;
      if (!r_in[q] && $urandom() % 2 == 0) p.psn = random_psn();
      // a new message inside another one
      if (wrong_percent != 0 && $urandom() % 4 == 0) begin
        p.opcode = $urandom() % 2 == 0 ? 8'h20 : 8'h24;
        len = p.opcode == 8'h20 ? mtu : len;
        s_plan[q] = mtu + longint'($urandom()) % (2 * mtu);
      end
    end
    p.payload_len = 13'(len);
    p.pad = 2'(-len);
    if (int'($urandom() % 100) < wrong_percent) begin
      total_bad++;
      k = int'($urandom() % 24);
      case (k)
        0, 1, 2: p.psn += psn_t'($urandom() % 8);
        3, 4, 5: p.psn -= psn_t'($urandom() % 8);
        6: p.psn = psn_t'($urandom());
        7, 8: p.opcode = 8'h11;
        9: p.opcode = 8'($urandom() % (recv_too ? 12 : 32));
        10: p.opcode = 8'($urandom());
        11: p.payload_len = p.payload_len + 13'($urandom() % 3) - 13'd1;
        12: p.pad = 2'($urandom());
        13: p.dma_len = p.dma_len + 32'($urandom() % 3) - 32'd1;
        14: p.rkey = p.rkey ^ (32'd1 << ($urandom() % 32));
        15: p.va = p.va ^ (64'd1 << ($urandom() % 64));
        16: p.pkey = 16'($urandom());
        17: p.sip = p.sip ^ (128'd1 << ($urandom() % 128));
        18: p.ipv6 = !p.ipv6;
        19: p.dest_qp = p.dest_qp ^ (24'd1 << ($urandom() % 24));
        20: p.opcode = 8'h81;
        21: p.payload_len = 13'h1fff;
        22: p.opcode = 8'h0a;
        default: p.opcode = 8'h07;
      endcase
    end
    rp = p;
  endtask

  // Rounds 0 to 119: traffic (in two of three with receives and flushes), right or with errors. 120 to 122: throughput on one QP, on eight, on
  // two in turn. 123, 124: drain with one packet in a held output, and with one more behind it.
  // 125: drain under new work.
  task automatic random_round(int round);
    int q, n, wr_begin, taken, pick;
    late_on = 1;
    for (int i = 0; i < n4; i++) begin
      mrs[i] = '0;
      mrs[i].valid = 1;
      mrs[i].variant = 8'($urandom());
      mrs[i].pd = 24'd77;
      mrs[i].remote_write = 1;
      mrs[i].local_write = 1;
      mrs[i].remote_read = round >= 120 || $urandom() % 8 != 0;
      mrs[i].remote_atomic = round >= 120 || $urandom() % 8 != 0;
      mrs[i].va = ({$urandom(), $urandom()} >> 1) & ~64'd7;
      mrs[i].length = 64'd30000 + 64'($urandom() % 100000);
      mrs[i].iova = {$urandom(), $urandom()} & (round % 8 == 0 && round < 120 ? '1 : ~64'd7);
      mrs[i+4] = mrs[i];
      mrs[i+4].pd = 24'd55;
    end
    for (int i = 0; i < n8; i++) begin
      q = i * 31;
      qps[q] = '0;
      qps[q].qpn = 16'd256 + qpn_t'(q);
      qps[q].remote_read = round >= 120 || $urandom() % 8 != 0;
      qps[q].remote_atomic = round >= 120 || $urandom() % 8 != 0;
      qps[q].max_dest_rd_atomic = 8'(6 + $urandom() % 3);
      qps[q].state = $urandom() % 4 == 0 ? QpRtr : $urandom() % 8 == 0 ? QpSqd : QpRts;
      pick = round < 120 ? int'($urandom() % 6) : 5;
      qps[q].qp_type = pick < 2 ? QpTypeUc : pick == 2 ? QpTypeUd : i == 3 && round < 120 && round % 2 == 1 ? QpTypeRaw : QpTypeRc;
      if (i == 3) begin
        raw_valid = qps[q].qp_type == QpTypeRaw;
        raw_idx = qp_idx_t'(q);
      end
      qps[q].qkey = $urandom();
      qps[q].path_mtu = 3'(1 + $urandom() % 5);
      qps[q].remote_write = 1;
      qps[q].pd = 24'd77;
      qps[q].pkey = 16'hffff;
      qps[q].recv_cqn = cq_idx_t'($urandom());
      qps[q].has_srq = i % 3 == 2;
      qps[q].srqn = srq_idx_t'($urandom());
      qps[q].rq_addr = qps[q].has_srq ? 64'd55 : {$urandom(), $urandom()};
      qps[q].flow_control = 1'($urandom());
      qps[q].dest_qpn = 24'($urandom());
      qps[q].min_rnr_timer = 5'($urandom());
      qps[q].ipv6 = 1'($urandom());
      qps[q].sgid = {4{$urandom()}};
      qps[q].dgid = {4{$urandom()}};
      connect(q, random_psn());
      l_rd[8'(q)].delete();
      r_rd[8'(q)].delete();
      v_inc[q] = 0;
    end
    while (!idle) @(negedge clk);
    coalesce = round % 3 == 0 ? 8'd0 : 8'($urandom() % 5);
    stall = round % 2 == 0 || round >= 120 ? 0 : int'($urandom() % 80);
    timed = round >= 120;
    n_meta = 0;
    wr_begin = n_wr;
    hold_wr = round == 123 || round == 124;
    for (int i = 0; i < (round == 123 ? 1 : round == 124 ? 3 : 300); i++) begin
      case (round)
        120, 123, 124, 125: q = 31;
        121: q = 31 * (i % 8);
        122: q = 31 * (i % 2);
        default: q = 31 * (round % 5 == 0 ? 3 : int'($urandom() % 8));
      endcase
      if (round < 120 && $urandom() % 4 != 0 && round % 2 == 1) random_response(q, round % 4 == 1 ? 5 : 25);
      else if (round >= 126) random_response(q, 0);
      else random_packet(q, round % 4 == 0 || round >= 120 ? 0 : 12, round < 120 && round % 3 != 1);
      ref_packet(rp);
      if (round < 120 && i % 50 == 0) begin
        settle("random");
        for (int j = 0; j < n8; j++) make_reads(j * 31, round % 4 != 0);
      end
      if (round < 120 && $urandom() % 20 == 0) begin
        some_flush = {$urandom(), $urandom()};
        some_flush.credits = 0;
        flush_todo.push_back(some_flush);
        exp_flush.push_back(some_flush);
      end
      if (round < 123 && !timed && $urandom() % 10 == 0 && flow(31 * (i % 8))) begin
        some_flush = '0;
        some_flush.credits = 1;
        some_flush.qp = qp_idx_t'(31 * (i % 8));
        flush_todo.push_back(some_flush);
      end
    end
    if (round >= 123) begin
      repeat (30) @(negedge clk);
      if (idle) $fatal(1, "nothing inside");
      drain = 1;
      taken = n_meta;  // each of them is one write
      if (hold_wr) begin
        repeat (50) @(negedge clk);
        if (drain_done) $fatal(1, "drain done although a write waits");
        hold_wr = 0;
      end
      n = 0;
      while (!drain_done) begin
        @(negedge clk);
        n++;
        if (n > 20) $fatal(1, "drain not done");
      end
      if (taken < (round == 123 ? 1 : 2)) $fatal(1, "%0d packets taken", taken);
      if (n_wr - wr_begin < taken) $fatal(1, "round %0d: drain done behind %0d writes, %0d packets were inside", round, n_wr - wr_begin, taken);
      if (round == 125 && todo.size() == 0) $fatal(1, "no new work");
      drain = 0;
    end
    // queries between packets do no harm; the last ones, behind all packets, must agree
    for (int i = 0; i < n18; i++) begin
      q = i < 10 ? int'($urandom() % 8) * 31 : (i - 10) * 31;
      if (i == 10 || round >= 120) settle("random");
      admin(QpStateQuery, q, 0);
      if (i >= 10 && ((longint'(adm_rsp.expected_psn) != r_epsn[q] && !psn_open[q]) ||
                      longint'(adm_rsp.msn) != r_msn[q])) begin
        $fatal(1, "qp %0d: query says psn %h msn %h, want %h %h", q, adm_rsp.expected_psn,
               adm_rsp.msn, r_epsn[q], r_msn[q]);
      end
    end
    if (round >= 120 && round <= 122) begin
      per_packet_x100[round-120] = (last_meta_cycle - first_meta_cycle) * 100 / (n_meta - 1);
      if (n_meta != 300 || per_packet_x100[round-120] > 320) begin
        $fatal(1, "%0d packets, %0d cycles for 100", n_meta, per_packet_x100[round-120]);
      end
    end
  endtask

  // A drain begins while a packet waits whose QP attributes may have been read already (wait_cycles before): with those of before it is
  // not executed any more.
  task automatic drain_changes_qp(int wait_cycles);
    int n;
    stall = wait_cycles % 2 == 0 ? 0 : 60;
    qps[31].state = QpRts;
    qps[62].state = QpRts;
    timed = 1;
    hold_wr = 1;
    for (int i = 0; i < n4 - 1; i++) begin
      // WRITEs, so that each is one write; the third one comes from another QP, which is in ERR when it is taken
      do random_packet(i == 2 ? 62 : 31, 0, 0);
      while (rp.opcode != 8'h0a);
      if (i == 2) qps[62].state = QpErr;
      ref_packet(rp);
    end
    qps[62].state = QpRts;  // what it is before the drain
    repeat (wait_cycles) @(negedge clk);
    qps[62].state = QpErr;
    drain = 1;
    repeat (10) @(negedge clk);
    hold_wr = 0;
    n = 0;
    while (!drain_done) begin
      @(negedge clk);
      n++;
      if (n > 2000) $fatal(1, "drain not done");
    end
    drain = 0;
    settle("drain");
    qps[62].state = QpRts;
  endtask

  int per_packet_x100[3];
  function automatic bit corners_missing();
    return n_rnr < 100 || n_fault[1] < 20 || n_fault[2] < 10 || n_fault[4] < 20 || n_fault[6] < 3 || n_chg < 100 || n_bar < 50 || n_sq_flush < 50 || n_split < 200 || n_cqe < 1000 ||
           n_flushed < 200 || n_uc < 1000 || n_uc_none < 20 || n_again < 20 || n_ud < 500 || n_raw < 20 || n_kept < 20 || seen_drop[14] < 10 || seen_drop[15] < 10 || seen_drop[16] < 10 ||
           seen_drop[17] < 10 || n_tell < 1000 || n_upd < 400 || n_upd_dead < 20 ||
           n_taken < 500 || n_atomic < 100 || n_rsp_bad < 100 || n_rsp_prot < 20 || n_rsp_split < 100 || n_implied < 50 || n_dup_rsp < 100 || n_ghost_rsp < 100 ||
           n_ordered < 20 || n_mark_data < 1000 || n_mark_rsp < 100 || n_mark_uc < 100 || n_mark_lost < 3 || n_mark_dup < 15 || n_no_mark < 100;
  endfunction

  initial begin
    for (int i = 0; i < int'(NumQp); i++) begin
      qps[i] = '0;
      qps[i].qpn = 16'd256 + qpn_t'(i);
      qps[i].state = QpNone;
    end
    for (int i = 0; i < int'(NumMr); i++) mrs[i] = '0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    sc.script();
    play();
    // and more of them until every corner was seen
    for (int r = 0; r < rounds || (r < rounds + 200 && corners_missing()); r++) begin
      random_round(r < rounds ? r : r - rounds);
      // with the QPs of the last round
      for (int i = 0; i < 40 && r == rounds - 1; i++) begin
        for (int j = 1; j < 3; j++) connect(31 * j, random_psn());
        while (!idle) @(negedge clk);
        drain_changes_qp(i % 20);
      end
    end

    for (int i = 0; i < 14; i++) begin
      if (seen_drop[i] < 4) $fatal(1, "drop %0d: seen %0d", i, seen_drop[i]);
    end
    if (corners_missing() || n_chg != want_chg) begin
      $display("UC %0d, without receive %0d, again %0d, UD %0d, raw %0d, kept %0d, drops %0d %0d %0d %0d", n_uc, n_uc_none, n_again, n_ud,
               n_raw, n_kept, seen_drop[14], seen_drop[15], seen_drop[16], seen_drop[17]);
      $display("responses %0d %0d %0d %0d %0d %0d %0d %0d %0d, marks %0d %0d %0d %0d %0d %0d", n_taken, n_atomic, n_rsp_bad, n_rsp_prot, n_rsp_split, n_implied, n_dup_rsp,
               n_ghost_rsp, n_ordered, n_mark_data, n_mark_rsp, n_mark_uc, n_mark_lost, n_mark_dup, n_no_mark);
      $display("keys %0d of %0d, refused %0d, barriers %0d", n_chg, want_chg, n_fault[6], n_bar);
      $fatal(1, "receives: corner not reached: %0d %0d %0d %0d %0d %0d %0d", n_rnr, n_fault[1], n_fault[2],
             n_fault[4], n_split, n_cqe, n_flushed);
    end
    if (n_tell < 1000 || n_upd < 400 || n_upd_dead < 20) $fatal(1, "credits: corner not reached: %0d %0d %0d", n_tell, n_upd, n_upd_dead);
    if (n_reads < 100 || n_atomics < 100 || n_dup_rd < 10 || n_part_rd < 10 || n_later < 2)
      $fatal(1, "READs: corner not reached: %0d %0d %0d %0d %0d", n_reads, n_atomics, n_dup_rd, n_part_rd, n_later);
    if (n_taken < 500 || n_atomic < 100 || n_rsp_bad < 100 || n_rsp_prot < 20 || n_rsp_split < 100 || n_implied < 50 ||
        n_dup_rsp < 100 || n_ghost_rsp < 100 || n_ordered < 20) begin
      $fatal(1, "responses: corner not reached: %0d %0d %0d %0d %0d %0d %0d %0d %0d", n_taken, n_atomic, n_rsp_bad, n_rsp_prot, n_rsp_split,
             n_implied, n_dup_rsp, n_ghost_rsp, n_ordered);
    end
    if (n_mark_data < 1000 || n_mark_rsp < 100 || n_mark_uc < 100 || n_mark_lost < 3 || n_mark_dup < 15 || n_no_mark < 100)
      $fatal(1, "marks: corner not reached: %0d %0d %0d %0d %0d %0d", n_mark_data, n_mark_rsp, n_mark_uc, n_mark_lost, n_mark_dup, n_no_mark);
    if (n_stream < 1000 || reached_middle < 100) $fatal(1, "corner not reached: %0d %0d", n_stream, reached_middle);
    if (n_moves < 1000 || n_mv_busy < 1000) $fatal(1, "%0d moves, %0d times busy", n_moves, n_mv_busy);
    $display("PASS %0d moves, %0d READs, %0d atomics (%0d again, %0d in part), %0d UC, %0d UD, %0d raw (%0d too long), %0d receive WQEs given again, %0d receives (%0d in pieces), %0d RNR, %0d written, %0d dropped, %0d acknowledges, %0d fatal, %0d marks, cycles x100: %0d %0d %0d",
             n_moves, n_reads, n_atomics, n_dup_rd, n_part_rd, n_uc, n_ud, n_raw, n_kept, n_again, n_cqe, n_split, n_rnr, n_stream, n_drop, n_ackrx, n_err, n_mark_data + n_mark_rsp, per_packet_x100[0], per_packet_x100[1],
             per_packet_x100[2]);
    $finish;
  end
endmodule
