// SPDX-License-Identifier: Apache-2.0
//
// What happens to QPs that may have no slot: doorbells, expired timers, turns to send, CNPs that are due (docs/qp-cache.md).
//
// An event names a QP by its number. It waits in one list of QPNs, in which a QP stands once however much happens to it: what happened is kept in a
// memory by QPN, and of two doorbells the newer one. Workers, each with a port of the cache, take QPs from the head of the list,
// look up their slots, all at the same time, and hand out what happened when the slot is there; then they give the slot up. One that waits for
// its context does not hold the others. What happens to a QP that a worker has already is added to that worker's part, so things
// of one QP are handed out in the order in which they came. With nothing in the list an event goes to a free worker at once.
//
// A doorbell, timer or CNP of a QP that does not exist has no effect (ev_bad_db_o for doorbells); neither has one of a QP whose context memory refuses:
// the cache has told that. A copy of a WQE goes with its doorbell (sq_copy_i), or is dropped with it (drop_*).
//
// drain: done when all that had been taken at its beginning is handed out.
//
// After reset the memory is cleared, which takes 2^NumW / Banks cycles; nothing is taken meanwhile.
// Throughput: an event in and a QP out of the list in 2 cycles together. Latency: event to look-up 1 cycle if nothing waits. Back-pressure: events wait 4
// cycles at most; hand-outs wait for their takers.

module qp_service
  import rnic_pkg::*;
#(
  parameter int unsigned NumW = QpnW,   // bits of a QPN
  parameter int unsigned NumWork = 4,
  parameter int unsigned Banks = 16     // of the memory
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             ready_o,       // the memory is cleared
  // events: doorbells, a timer that expired, a turn that a QP wants, a CNP to its peer
  input  logic             sq_valid_i,
  output logic             sq_ready_o,
  input  logic [23:0]      sq_qpn_i,
  input  wqe_idx_t         sq_pi_i,
  input  wqe_copy_t        sq_copy_i,
  input  logic             rq_valid_i,
  output logic             rq_ready_o,
  input  logic [23:0]      rq_qpn_i,
  input  wqe_idx_t         rq_pi_i,
  input  logic             tmr_valid_i,
  output logic             tmr_ready_o,
  input  logic [NumW-1:0]  tmr_qpn_i,
  input  logic             turn_valid_i,
  output logic             turn_ready_o,
  input  logic [NumW-1:0]  turn_qpn_i,
  input  logic             cnp_valid_i,
  output logic             cnp_ready_o,
  input  logic [NumW-1:0]  cnp_qpn_i,
  // look-ups (qp_cache)
  output logic        [NumWork-1:0]       req_valid_o,
  input  logic        [NumWork-1:0]       req_ready_i,
  output logic        [NumWork-1:0][23:0] req_qpn_o,
  input  logic        [NumWork-1:0]       rsp_valid_i,
  input  qpc_status_e [NumWork-1:0]       rsp_status_i,
  input  qp_idx_t     [NumWork-1:0]       rsp_slot_i,     // stays until rel_valid_o
  output logic        [NumWork-1:0]       rel_valid_o,
  // hand-outs, with their slots
  output logic             hsq_valid_o,
  input  logic             hsq_ready_i,
  output qp_idx_t          hsq_qp_o,
  output wqe_idx_t         hsq_pi_o,
  output wqe_copy_t        hsq_copy_o,
  output logic             hrq_valid_o,
  input  logic             hrq_ready_i,
  output qp_idx_t          hrq_qp_o,
  output wqe_idx_t         hrq_pi_o,
  output logic             htmr_valid_o,
  input  logic             htmr_ready_i,
  output qp_idx_t          htmr_qp_o,
  output logic             hturn_valid_o,
  input  logic             hturn_ready_i,
  output qp_idx_t          hturn_qp_o,
  output logic             hcnp_valid_o,
  input  logic             hcnp_ready_i,
  output qp_idx_t          hcnp_qp_o,
  // copies that no doorbell has a use for: of a QPN that cannot be, of a doorbell that a newer one replaces, of one without a QP
  output logic [2:0]       drop_valid_o,
  output copy_idx_t [2:0]  drop_at_o,
  output logic             list_busy_o,    // QPs wait
  input  logic             drain_i,
  output logic             drain_done_o,
  output logic [1:0]       ev_bad_db_o,    // how many
  output logic             idle_o
);

  localparam int unsigned WorkW = NumWork > 1 ? $clog2(NumWork) : 1;
  localparam int unsigned Sq = 0;
  localparam int unsigned Rq = 1;
  localparam int unsigned Tmr = 2;
  localparam int unsigned Turn = 3;
  localparam int unsigned Cnp = 4;
  localparam int unsigned Kinds = 5;
  typedef logic [NumW-1:0] num_t;
  typedef struct packed {
    logic [Kinds-1:0] what;
    wqe_idx_t         rq_pi;
    wqe_idx_t         sq_pi;
    wqe_copy_t        sq_copy;
  } news_t;

  // what is added to older news of the same QP
  function automatic news_t add(input news_t old, input news_t n);
    news_t r;
    r = n;
    r.what = old.what | n.what;
    if (!n.what[Sq]) begin
      r.sq_pi = old.sq_pi;
      r.sq_copy = old.sq_copy;
    end
    if (!n.what[Rq]) r.rq_pi = old.rq_pi;
    return r;
  endfunction

  // ---- events: one per cycle, in turn --------------------------------------------------------------
  logic       in_any, in_bad, in_take;
  logic [Kinds-1:0] in_valid, in_ready;
  logic [2:0] in_sel, in_last_q;
  num_t       in_qpn;
  news_t      in_news;
  assign in_valid = {cnp_valid_i, turn_valid_i, tmr_valid_i, rq_valid_i, sq_valid_i};
  assign {cnp_ready_o, turn_ready_o, tmr_ready_o, rq_ready_o, sq_ready_o} = in_ready;
  always_comb begin
    in_any = |in_valid;
    in_sel = '0;
    for (int i = int'(Kinds) - 1; i >= 0; i--) if (in_valid[i]) in_sel = 3'(i);
    for (int i = int'(Kinds) - 1; i >= 0; i--) if (in_valid[i] && 3'(i) > in_last_q) in_sel = 3'(i);
    in_news = '{what: Kinds'(1) << in_sel, sq_pi: sq_pi_i, sq_copy: sq_copy_i, rq_pi: rq_pi_i};
    unique case (in_sel)
      3'(Sq): in_qpn = sq_qpn_i[NumW-1:0];
      3'(Rq): in_qpn = rq_qpn_i[NumW-1:0];
      3'(Tmr): in_qpn = tmr_qpn_i;
      3'(Turn): in_qpn = turn_qpn_i;
      default: in_qpn = cnp_qpn_i;
    endcase
  end
  // a doorbell of a QPN that cannot be
  assign in_bad = (in_sel == 3'(Sq) && (sq_qpn_i >> NumW) != '0) || (in_sel == 3'(Rq) && (rq_qpn_i >> NumW) != '0);
  assign in_ready = in_take ? Kinds'(1) << in_sel : '0;

  // ---- workers -------------------------------------------------------------------------------------
  logic  [NumWork-1:0] active_q, asked_q, have_q, orphan_q, finish, fail;
  num_t                work_qpn_q[NumWork];
  news_t               work_q[NumWork];
  news_t               left[NumWork];       // of its part, without what is handed out in this cycle
  logic                any_free, in_same;   // in_same: a worker has the QP of the event
  logic  [WorkW-1:0]   free;
  always_comb begin
    any_free = !(&(active_q | orphan_q));
    free = '0;
    in_same = 1'b0;
    for (int w = int'(NumWork) - 1; w >= 0; w--) begin
      if (!active_q[w] && !orphan_q[w]) free = WorkW'(w);
      if (active_q[w] && work_qpn_q[w] == in_qpn) in_same = 1'b1;
      finish[w] = have_q[w] && work_q[w].what == '0;
      fail[w] = rsp_valid_i[w] && rsp_status_i[w] != QpcOk;
    end
  end

  // ---- list, and what happened to those in it ---------------------------------------------------------
  // Stage A chooses an event or the head of the list and reads the QP's word; stage B writes it back.
  logic          b_valid_q, b_pop_q, direct, pop, pop_turn_q, can_pop, insert, swept, head_same;
  num_t          b_qpn_q, head_qpn;
  news_t         b_news_q, word, b_word;
  logic          list_push, head_valid_q, head_read, head_coming_q, head_fails;
  logic [NumW:0] wptr_q, rptr_q;
  num_t          ram_head, head_keep_q;
  assign ready_o = swept;
  assign insert = in_any && !in_bad && swept && !direct && !(can_pop && pop_turn_q) && !pop && !(b_valid_q && b_qpn_q == in_qpn);
  assign direct = in_any && !in_bad && swept && !b_valid_q && !list_busy_o && any_free && !in_same;
  assign in_take = swept && in_any && (in_bad || direct || insert);
  // the QP of the head goes to a free worker, or to the one that has it, unless that one fails just now: it may not be free then
  assign head_qpn = head_coming_q ? ram_head : head_keep_q;
  always_comb begin
    head_same = 1'b0;
    head_fails = 1'b0;
    for (int w = 0; w < int'(NumWork); w++) begin
      if (active_q[w] && work_qpn_q[w] == head_qpn) begin
        head_same = 1'b1;
        head_fails = fail[w];
      end
    end
  end
  // events and the head of the list in turn
  assign can_pop = (head_valid_q || head_coming_q) && (head_same ? !drain_i && !head_fails : any_free);
  assign pop = can_pop && !b_valid_q && (pop_turn_q || !in_any || in_bad);

  zero_ram #(.Width($bits(news_t)), .Depth(1 << NumW), .Banks(Banks)) u_news (
    .clk_i, .rst_ni, .ready_o(swept), .we_i(b_valid_q), .waddr_i(b_qpn_q), .wdata_i(b_pop_q ? '0 : b_word), .re_i(pop || insert), .raddr_i(pop ? head_qpn : in_qpn), .rdata_o(word)
  );
  assign b_word = add(word, b_news_q);
  assign list_push = b_valid_q && !b_pop_q && word.what == '0;
  assign head_read = rptr_q != wptr_q && !head_valid_q && !head_coming_q;
  rnic_ram #(.Width(NumW), .Depth(1 << NumW)) u_list (
    .clk_i, .we_i(list_push), .waddr_i(wptr_q[NumW-1:0]), .wdata_i(b_qpn_q),
    .re_i(head_read), .raddr_i(rptr_q[NumW-1:0]), .rdata_o(ram_head)
  );
  assign list_busy_o = rptr_q != wptr_q || head_valid_q || head_coming_q || (b_valid_q && !b_pop_q);

  // which worker takes what comes from the list
  logic              b_give, b_add;
  logic [WorkW-1:0]  b_work;
  assign b_give = b_valid_q && b_pop_q;
  always_comb begin
    b_add = 1'b0;
    b_work = free;
    // one that ends in this cycle is as good as free
    for (int w = 0; w < int'(NumWork); w++) begin
      if (active_q[w] && work_qpn_q[w] == b_qpn_q) begin
        b_work = WorkW'(w);
        b_add = !finish[w] && !fail[w];
      end
    end
  end

  // ---- hand-outs: of each kind one at a time, which stays until it is taken ------------------------------
  logic [Kinds-1:0]            out_valid, out_ready, out_fire, hold_q;
  logic [Kinds-1:0][WorkW-1:0] out_sel, hold_sel_q, out_last_q;
  assign out_ready = {hcnp_ready_i, hturn_ready_i, htmr_ready_i, hrq_ready_i, hsq_ready_i};
  assign {hcnp_valid_o, hturn_valid_o, htmr_valid_o, hrq_valid_o, hsq_valid_o} = out_valid;
  assign out_fire = out_valid & out_ready;
  always_comb begin
    for (int t = 0; t < int'(Kinds); t++) begin
      out_valid[t] = 1'b0;
      out_sel[t] = '0;
      for (int w = int'(NumWork) - 1; w >= 0; w--) begin
        if (have_q[w] && work_q[w].what[t]) begin
          out_valid[t] = 1'b1;
          out_sel[t] = WorkW'(w);
        end
      end
      for (int w = int'(NumWork) - 1; w >= 0; w--)
        if (have_q[w] && work_q[w].what[t] && WorkW'(w) > out_last_q[t]) out_sel[t] = WorkW'(w);
      if (hold_q[t]) out_sel[t] = hold_sel_q[t];
    end
  end
  assign hsq_qp_o = rsp_slot_i[out_sel[Sq]];
  assign hsq_pi_o = work_q[out_sel[Sq]].sq_pi;
  assign hsq_copy_o = work_q[out_sel[Sq]].sq_copy;
  assign hrq_qp_o = rsp_slot_i[out_sel[Rq]];
  assign hrq_pi_o = work_q[out_sel[Rq]].rq_pi;
  assign htmr_qp_o = rsp_slot_i[out_sel[Tmr]];
  assign hturn_qp_o = rsp_slot_i[out_sel[Turn]];
  assign hcnp_qp_o = rsp_slot_i[out_sel[Cnp]];

  // ---- workers: state -----------------------------------------------------------------------------------
  always_comb begin
    for (int w = 0; w < int'(NumWork); w++) begin
      req_valid_o[w] = active_q[w] && !asked_q[w];
      req_qpn_o[w] = 24'(work_qpn_q[w]);
      left[w] = work_q[w];
      for (int t = 0; t < int'(Kinds); t++) if (out_fire[t] && out_sel[t] == WorkW'(w)) left[w].what[t] = 1'b0;
    end
  end
  assign rel_valid_o = finish;

  // Copies are dropped when a newer doorbell comes to an older one, in the list or at a worker, or gets the worker of one that failed; those of
  // other workers that fail one per cycle, and such a worker has nothing new meanwhile.
  logic [NumWork-1:0] orphan, orphaned;
  copy_idx_t          orphan_at_q[NumWork];
  logic [WorkW-1:0]   orphan_sel;
  logic               replace;
  always_comb begin
    orphan_sel = '0;
    for (int w = int'(NumWork) - 1; w >= 0; w--) if (orphan_q[w]) orphan_sel = WorkW'(w);
    orphan = '0;
    orphan[orphan_sel] = |orphan_q;
    for (int w = 0; w < int'(NumWork); w++) orphaned[w] = fail[w] && work_q[w].what[Sq] && work_q[w].sq_copy.valid && !(b_give && b_work == WorkW'(w));
    if (b_give) replace = left[b_work].what[Sq] && left[b_work].sq_copy.valid && (fail[b_work] || (b_add && word.what[Sq]));
    else replace = b_valid_q && word.what[Sq] && word.sq_copy.valid && b_news_q.what[Sq];
  end
  assign drop_valid_o = {|orphan_q, replace, in_take && in_bad && in_sel == 3'(Sq) && sq_copy_i.valid};
  assign drop_at_o = {orphan_at_q[orphan_sel], b_give ? left[b_work].sq_copy.at : word.sq_copy.at, sq_copy_i.at};

  // one look-up is refused per cycle
  logic [1:0] bad;
  always_comb begin
    bad = 2'(in_take && in_bad);
    for (int w = 0; w < int'(NumWork); w++)
      if (fail[w] && rsp_status_i[w] == QpcNone) bad = bad + 2'(work_q[w].what[Sq]) + 2'(work_q[w].what[Rq]);
  end

  // drain: the list is done when as many have left it as had come; then the workers of that moment
  logic [NumW:0]      pops_q, target_q;
  logic               snap_q, list_done;
  logic               workers_q;     // the list was done before: the counters go on, and around; wait_for_q counts
  assign list_done = snap_q && (workers_q || signed'(pops_q - target_q) >= 0);
  logic [NumWork-1:0] wait_for_q;    // drain: workers that had something when the list was done
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_last_q <= '0;
      b_valid_q <= 1'b0;
      pop_turn_q <= 1'b0;
      wptr_q <= '0;
      rptr_q <= '0;
      pops_q <= '0;
      snap_q <= 1'b0;
      head_valid_q <= 1'b0;
      head_coming_q <= 1'b0;
      active_q <= '0;
      asked_q <= '0;
      have_q <= '0;
      orphan_q <= '0;
      hold_q <= '0;
      out_last_q <= '0;
      workers_q <= 1'b0;
      wait_for_q <= '0;
      ev_bad_db_o <= '0;
    end else begin
      if (in_take) in_last_q <= in_sel;
      if (pop) pop_turn_q <= 1'b0;
      else if (insert) pop_turn_q <= 1'b1;
      b_valid_q <= pop || insert;
      if (list_push) wptr_q <= wptr_q + 1'b1;
      if (head_read) rptr_q <= rptr_q + 1'b1;
      head_coming_q <= head_read;
      if (pop) head_valid_q <= 1'b0;
      else if (head_coming_q) head_valid_q <= 1'b1;
      ev_bad_db_o <= bad;
      orphan_q <= (orphan_q & ~orphan) | orphaned;

      for (int w = 0; w < int'(NumWork); w++) begin
        if (req_valid_o[w] && req_ready_i[w]) asked_q[w] <= 1'b1;
        if (rsp_valid_i[w]) have_q[w] <= !fail[w];
        if (finish[w] || fail[w]) begin
          active_q[w] <= 1'b0;
          asked_q[w] <= 1'b0;
          have_q[w] <= 1'b0;
        end
      end
      if (direct) active_q[free] <= 1'b1;
      if (b_give && !b_add) active_q[b_work] <= 1'b1;

      hold_q <= out_valid & ~out_ready;
      for (int t = 0; t < int'(Kinds); t++) if (out_fire[t]) out_last_q[t] <= out_sel[t];

      if (b_give) pops_q <= pops_q + 1'b1;
      // what is in stage B comes into the list first
      snap_q <= drain_i && (snap_q || !b_valid_q || b_pop_q);
      workers_q <= drain_i && list_done;
      if (!workers_q) wait_for_q <= active_q | ((b_give || direct) ? '1 : '0);
      else wait_for_q <= wait_for_q & active_q;
    end
    if (!snap_q) target_q <= wptr_q;
    b_pop_q <= pop;
    b_qpn_q <= pop ? head_qpn : in_qpn;
    b_news_q <= in_news;
    head_keep_q <= head_qpn;
    hold_sel_q <= out_sel;
    for (int w = 0; w < int'(NumWork); w++) begin
      work_q[w] <= left[w];
      if (b_give && b_work == WorkW'(w)) begin
        work_qpn_q[w] <= b_qpn_q;
        work_q[w] <= b_add ? add(left[w], word) : word;
      end
      if (direct && free == WorkW'(w)) begin
        work_qpn_q[w] <= in_qpn;
        work_q[w] <= in_news;
      end
      if (orphaned[w]) orphan_at_q[w] <= work_q[w].sq_copy.at;
    end
  end

  assign drain_done_o = workers_q && wait_for_q == '0;
  assign idle_o = swept && !in_any && !b_valid_q && !list_busy_o && active_q == '0 && orphan_q == '0 && ev_bad_db_o == '0;

endmodule
