// SPDX-License-Identifier: Apache-2.0
//
// Which QP has which slot: QPN -> slot, set-associative, and who has to go when another one comes. docs/qp-cache.md has the whole picture.
//
// Ports: one look-up at a time, answered when the QP has a slot and the halves of its context that are needed (req_need_i:
// 0 requester, 1 responder) are in the modules. With the answer QpcOk the port has a pin on the slot, until rel_valid_i; it asks
// again only then. QpcNone: there is no such QP; QpcRefused: host memory did not give the context (the next look-up tries again). A port that waits does not stop
// the others. Port 0 belongs to commands: req_create_i makes a QP (without reading memory; QpcExists if there is one), rel_forget_i beside its
// release takes the QP away: later look-ups find nothing. It has both halves then.
// Prefetch: a hint, without a pin; a few wait in a queue, and for a move. Dropped when the queue is full or no slot is free to take.
//
// A slot changes hands only when no port has a pin on it and all modules said, of one and the same cycle, that nothing of it is under
// way (probe_*; the answers come one cycle later). No pin is given meanwhile. When a look-up finds no slot to take in its set, it closes one: no more pins on it, so that it falls free; the port
// tries again every 16 cycles, and when a move is done. The first NumHold ports may keep their pin until another look-up is answered: what
// they have is not closed. Who waited has its pin in the cycle in which its context has arrived.
//
// Moves (mv_*): what to save of the QP that goes, what to fetch for the one that comes. mv_save_o: requester half, responder half,
// common part; mv_fill_o: halves, with mv_common_o the common part too, all zero with mv_zero_o. fd_*: the next move that fills is done, in order;
// sd_*: the next one that saves. No context is fetched while it is being written. When memory refused a write the QP is taken out of those
// that exist; bad_*: that, or a refused read, for an event.
//
// QPNs are those below 2^mem_log_num_i, once mem_on_i; which of them exist is kept in one bit each, cleared then.
//
// Throughput: one look-up per cycle if it hits; a miss takes 4 cycles of all, 2 more for each slot that is asked for in vain. Latency: 1 cycle
// for a hit. Back-pressure: req_ready_o, fd_ready_o, sd_ready_o (bounded, but for an event that is not taken).

module qp_cache
  import rnic_pkg::*;
#(
  // verilator lint_off VARHIDDEN
  parameter int unsigned QpnW = rnic_pkg::QpnW,   // its bench has few
  // verilator lint_on VARHIDDEN
  parameter int unsigned LogSets = 6,
  parameter int unsigned LogWays = 2,    // at least 1
  parameter int unsigned NumPorts = 4,
  parameter int unsigned NumHold = 3,    // less than the ways
  parameter int unsigned LogMoves = 3,   // fetches under way, and write-backs
  localparam int unsigned SlotW = LogSets + LogWays
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           mem_on_i,        // fixed once on
  input  logic [4:0]                     mem_log_num_i,   // at most QpnW
  // look-ups
  input  logic        [NumPorts-1:0]     req_valid_i,
  output logic        [NumPorts-1:0]     req_ready_o,
  input  logic        [NumPorts-1:0][23:0] req_qpn_i,
  input  logic        [NumPorts-1:0][1:0] req_need_i,     // at least one
  input  logic                           req_create_i,
  output logic        [NumPorts-1:0]     rsp_valid_o,
  output qpc_status_e [NumPorts-1:0]     rsp_status_o,
  output logic        [NumPorts-1:0][SlotW-1:0] rsp_slot_o,   // stays while the port has its pin
  input  logic        [NumPorts-1:0]     rel_valid_i,
  input  logic                           rel_forget_i,
  input  logic                           pf_valid_i,
  input  logic [23:0]                    pf_qpn_i,
  input  logic [1:0]                     pf_need_i,
  // modules
  output logic                           probe_valid_o,
  output logic [SlotW-1:0]               probe_slot_o,
  input  logic                           probe_busy_i,
  input  logic                           probe_dirty_i,   // the common part was changed
  input  logic [(1<<SlotW)-1:0]          dear_i,          // those that are wanted again soon: others go first
  // moves
  output logic                           mv_valid_o,
  input  logic                           mv_ready_i,
  output logic [SlotW-1:0]               mv_slot_o,
  output logic [2:0]                     mv_save_o,
  output logic [QpnW-1:0]                mv_save_qpn_o,
  output logic [1:0]                     mv_fill_o,
  output logic                           mv_common_o,
  output logic                           mv_zero_o,
  output logic [QpnW-1:0]                mv_fill_qpn_o,
  input  logic                           fd_valid_i,
  output logic                           fd_ready_o,
  input  logic                           fd_err_i,
  input  logic                           sd_valid_i,
  output logic                           sd_ready_o,
  input  logic                           sd_err_i,
  // QPs whose context could not be moved
  output logic                           bad_valid_o,
  input  logic                           bad_ready_i,
  output logic [QpnW-1:0]                bad_qpn_o,
  output logic                           closed_o,      // some slot gets no new pin: a look-up waits for it
  output ctx_ev_t                        ev_o,
  output logic                           idle_o
);

  localparam int unsigned Sets = 1 << LogSets;
  localparam int unsigned Ways = 1 << LogWays;
  localparam int unsigned TagW = QpnW - LogSets;
  localparam int unsigned NumMoves = 1 << LogMoves;
  localparam int unsigned AskW = $clog2(NumPorts + 1);   // ports, and the prefetch as the last one
  localparam int unsigned Pf = NumPorts;
  localparam int unsigned NumClosed = 4;
  localparam int unsigned NumPf = 8;     // prefetches that wait
  if (NumHold >= Ways) $error("all ways of a set may be held");

  typedef logic [QpnW-1:0] qpn_t;
  typedef logic [LogSets-1:0] set_t;
  typedef logic [LogWays-1:0] way_t;
  typedef logic [SlotW-1:0] slot_t;
  // of the QP `tag`: halves in the modules, halves on their way there; none of them: no QP
  typedef struct packed {
    logic [1:0]      here;
    logic [1:0]      coming;
    logic [TagW-1:0] tag;
  } line_t;
  typedef struct packed {
    slot_t      slot;
    qpn_t       qpn;
    logic [1:0] halves;
  } fill_t;

  // Functions look at part of their arguments.
  // verilator lint_off UNUSEDSIGNAL
  function automatic set_t set_of(input qpn_t qpn);
    return qpn[LogSets-1:0];
  endfunction
  function automatic logic [TagW-1:0] tag_of(input qpn_t qpn);
    return qpn[QpnW-1:LogSets];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- one thing per cycle ---------------------------------------------------------------------------
  // In StIdle a look-up of a port, the end of a move, or the end of a QP; else a look-up that missed.
  typedef enum logic [2:0] {StSweep, StIdle, StLook, StPick, StProbe} state_e;
  state_e state_q;
  logic do_fd, do_sd, do_forget, do_new, do_miss;

  // ---- ports -----------------------------------------------------------------------------------------
  logic  [NumPorts-1:0] wait_q, fetch_q, pin_q;   // fetch: what it waits for is on its way
  logic  [NumPorts:0]   try_q;                    // to be looked at again
  qpn_t                 qpn_q[NumPorts+1];
  logic  [1:0]          need_q[NumPorts+1];
  slot_t                pin_slot_q[NumPorts];
  logic                 create_q, forget_q;
  logic  [NumPorts-1:0] new_valid;
  logic                 any_new, any_try;
  logic  [AskW-1:0]     new_sel, try_sel, new_last_q, try_last_q;
  always_comb begin
    for (int i = 0; i < int'(NumPorts); i++) new_valid[i] = req_valid_i[i] && !wait_q[i] && !pin_q[i];
    any_new = |new_valid;
    any_try = |try_q;
    new_sel = '0;
    try_sel = '0;
    // the lowest one behind the one served last, else the lowest
    for (int i = int'(NumPorts) - 1; i >= 0; i--) if (new_valid[i]) new_sel = AskW'(i);
    for (int i = int'(NumPorts) - 1; i >= 0; i--) if (new_valid[i] && AskW'(i) > new_last_q) new_sel = AskW'(i);
    for (int i = int'(NumPorts); i >= 0; i--) if (try_q[i]) try_sel = AskW'(i);
    for (int i = int'(NumPorts); i >= 0; i--) if (try_q[i] && AskW'(i) > try_last_q) try_sel = AskW'(i);
  end

  // ---- the question: of a port, or the one that missed -------------------------------------------------
  logic            is_pf;
  logic [AskW-1:0] e_q;                 // who missed
  qpn_t            e_qpn_q, qpn;
  logic [1:0]      e_need_q, need;
  logic [23:0]     new_qpn;
  logic            none;                // not a QPN of this memory
  fill_t           fill;                // the move that is done
  set_t            row;
  always_comb begin
    new_qpn = '0;
    need = e_need_q;
    qpn = e_qpn_q;
    if (state_q == StIdle) begin
      need = '0;
      for (int i = 0; i < int'(NumPorts); i++) begin
        if (new_sel == AskW'(i)) begin
          new_qpn = req_qpn_i[i];
          need = req_need_i[i];
        end
      end
      qpn = new_qpn[QpnW-1:0];
    end
  end
  assign none = !mem_on_i || (new_qpn >> mem_log_num_i) != 24'd0;
  assign row = do_fd ? fill.slot[SlotW-1:LogWays] : do_forget ? pin_slot_q[0][SlotW-1:LogWays] : set_of(qpn);

  // ---- tags --------------------------------------------------------------------------------------------
  set_t             sweep_set_q;
  line_t [Ways-1:0] lines;
  logic  [Ways-1:0] line_we;
  line_t            line_d;
  logic  [Ways-1:0] ref_mem[Sets];             // looked up since the others were
  logic  [Ways-1:0][1:0] dirty_mem[Sets];      // halves that somebody may have changed
  logic  [Ways-1:0] refs;
  logic  [Ways-1:0][1:0] dirty, dirty_d;
  assign refs = ref_mem[row];
  assign dirty = dirty_mem[row];
  for (genvar w = 0; w < int'(Ways); w++) begin : gen_way
    line_t mem[Sets];
    assign lines[w] = mem[row];
    always_ff @(posedge clk_i) if (line_we[w]) mem[state_q == StSweep ? sweep_set_q : row] <= line_d;
  end

  // ---- prefetches: packets come faster than misses are dealt with, for a while --------------------------------
  logic        pf_valid, pf_pop, pf_wait_q;     // pf_wait: no move could begin
  qpn_t        pf_qpn;
  logic [1:0]  pf_need;
  assign is_pf = e_q == AskW'(Pf);
  assign pf_pop = !try_q[Pf] && !pf_wait_q && !(state_q != StIdle && is_pf);
  // verilator lint_off PINCONNECTEMPTY
  // one that finds the queue full is dropped
  rnic_fifo #(.Width(QpnW + 2), .Depth(NumPf)) u_prefetch (
    .clk_i, .rst_ni, .in_valid_i(pf_valid_i && mem_on_i && (pf_qpn_i >> mem_log_num_i) == 24'd0), .in_ready_o(),
    .in_data_i({pf_need_i, pf_qpn_i[QpnW-1:0]}),
    .out_valid_o(pf_valid), .out_ready_i(pf_pop), .out_data_o({pf_need, pf_qpn}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- slots that are closed -----------------------------------------------------------------------------
  logic  [NumClosed-1:0] closed_q;
  slot_t                 closed_slot_q[NumClosed];
  logic  [AskW-1:0]      closed_for_q[NumClosed];   // this port waits for it
  logic  [Ways-1:0]      closed, mine;              // ways of the row; for the one that missed
  logic                  have_closed, closed_room;
  logic  [$clog2(NumClosed)-1:0] closed_free;
  always_comb begin
    closed = '0;
    mine = '0;
    have_closed = 1'b0;
    closed_room = 1'b0;
    closed_free = '0;
    for (int c = 0; c < int'(NumClosed); c++) begin
      for (int w = 0; w < int'(Ways); w++) begin
        if (closed_q[c] && closed_slot_q[c] == {row, way_t'(w)}) begin
          closed[w] = 1'b1;
          mine[w] = closed_for_q[c] == e_q;
        end
      end
      if (closed_q[c] && closed_for_q[c] == e_q) have_closed = 1'b1;
      if (!closed_q[c]) begin
        closed_room = 1'b1;
        closed_free = ($clog2(NumClosed))'(c);
      end
    end
  end

  // ---- the look-up ----------------------------------------------------------------------------------------
  logic found, hit, on_way, whole;
  way_t hit_way;
  logic [1:0] lacking;
  always_comb begin
    found = 1'b0;
    hit_way = '0;
    for (int w = 0; w < int'(Ways); w++) begin
      if (lines[w].tag == tag_of(qpn) && (lines[w].here != '0 || lines[w].coming != '0)) begin
        found = 1'b1;
        hit_way = way_t'(w);
      end
    end
  end
  assign hit = found && (need & ~lines[hit_way].here) == '0 && !closed[hit_way];
  assign lacking = need & ~(lines[hit_way].here | lines[hit_way].coming);
  assign on_way = found && lacking == '0 && !hit && !closed[hit_way];

  // ---- moves under way: rings in the order of the moves ------------------------------------------------------
  fill_t               fill_ring_q[NumMoves];
  qpn_t                save_ring_q[NumMoves];
  logic [LogMoves:0]   fill_head_q, fill_tail_q, save_head_q, save_tail_q;
  logic [LogMoves-1:0] save_pos[NumMoves];
  logic                room, blocked;       // blocked: what is asked for is being written
  assign fill = fill_ring_q[fill_head_q[LogMoves-1:0]];
  always_comb begin
    blocked = 1'b0;
    for (int i = 0; i < int'(NumMoves); i++) begin
      save_pos[i] = LogMoves'(i) - save_head_q[LogMoves-1:0];
      if ({1'b0, save_pos[i]} < (LogMoves+1)'(save_tail_q - save_head_q) && save_ring_q[i] == e_qpn_q) blocked = 1'b1;
    end
  end
  assign room = !mv_valid_o && (fill_tail_q - fill_head_q) != (LogMoves+1)'(NumMoves) &&
                (save_tail_q - save_head_q) != (LogMoves+1)'(NumMoves);

  // ---- QPNs that exist ------------------------------------------------------------------------------------------
  logic swept_q, exists, ex_we, ex_d, ex_sweep;
  qpn_t ex_addr, ex_sweep_q;
  assign ex_sweep = mem_on_i && !swept_q;
  rnic_ram #(.Width(1), .Depth(1 << QpnW)) u_exists (
    .clk_i, .we_i(ex_we), .waddr_i(ex_addr), .wdata_i(ex_d),
    .re_i(do_miss), .raddr_i(qpn_q[try_sel]), .rdata_o(exists)
  );

  // ---- victim -----------------------------------------------------------------------------------------------------
  logic [Ways-1:0] tried_q, pinned, held, able, closable, dear;
  way_t victim, victim_q, close_way, close_rr_q;
  logic claim, claim_half, claim_new, deny, grant, close;
  always_comb begin
    pinned = '0;
    held = '0;
    for (int p = 0; p < int'(NumPorts); p++) begin
      for (int w = 0; w < int'(Ways); w++) begin
        if (pin_q[p] && pin_slot_q[p] == {row, way_t'(w)}) begin
          pinned[w] = 1'b1;
          if (p < int'(NumHold)) held[w] = 1'b1;
        end
      end
    end
    for (int w = 0; w < int'(Ways); w++) begin
      able[w] = !pinned[w] && lines[w].coming == '0 && !tried_q[w] && (!closed[w] || mine[w]);
      closable[w] = lines[w].coming == '0 && !closed[w] && !held[w];
      dear[w] = dear_i[{row, way_t'(w)}];
    end
    victim = '0;
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w]) victim = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w] && !refs[w]) victim = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w] && !dear[w]) victim = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w] && !dear[w] && !refs[w]) victim = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w] && lines[w].here == '0) victim = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w] && mine[w]) victim = way_t'(w);
    close_way = close_rr_q;
    for (int w = int'(Ways) - 1; w >= 0; w--) if (closable[w]) close_way = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (closable[w] && way_t'(w) > close_rr_q) close_way = way_t'(w);
  end

  // ---- what happens in this cycle -----------------------------------------------------------------------------------
  logic turn_q;    // misses and new look-ups in turn
  assign fd_ready_o = state_q == StIdle && (!fd_err_i || !bad_valid_o);
  assign do_fd = fd_valid_i && fd_ready_o;
  assign sd_ready_o = state_q == StIdle && !fd_valid_i && (!sd_err_i || !bad_valid_o);
  assign do_sd = sd_valid_i && sd_ready_o;
  assign do_forget = state_q == StIdle && forget_q && !fd_valid_i && !sd_valid_i;
  // a miss is dealt with when its move can be handed over: looked at before, it would be put off
  assign do_miss = state_q == StIdle && any_try && (turn_q || !any_new) && !ex_sweep && !mv_valid_o &&
                   !fd_valid_i && !sd_valid_i && !forget_q;
  assign do_new = state_q == StIdle && any_new && !do_miss && !ex_sweep && !fd_valid_i && !sd_valid_i && !forget_q;
  always_comb begin
    req_ready_o = '0;
    for (int i = 0; i < int'(NumPorts); i++) req_ready_o[i] = do_new && new_sel == AskW'(i);
  end

  logic creates, new_hit, touch;   // touch: a prefetch of what is there
  assign creates = create_q && e_q == '0;
  assign new_hit = do_new && !none && hit && !(new_sel == '0 && req_create_i);
  // verdict on a miss, in StLook
  assign grant = state_q == StLook && hit && !is_pf && !creates;
  assign touch = state_q == StLook && hit && is_pf;
  assign deny = state_q == StLook && (creates ? found || exists : !found && !exists);
  // the other half only when the common part has come: memory may refuse that
  assign claim_half = state_q == StLook && !creates && found && lines[hit_way].here != '0 && lacking != '0 && !closed[hit_way] && room;
  // in StProbe; StPick chose the victim
  assign claim_new = state_q == StProbe && !probe_busy_i;
  assign claim = claim_half || claim_new;
  assign probe_valid_o = state_q == StPick && able != '0;
  assign probe_slot_o = {row, victim};
  assign close = state_q == StPick && able == '0 && !is_pf && !have_closed && closed_room && closable != '0;

  line_t old;         // what the claimed slot holds
  way_t  claim_way;
  logic [2:0] save;
  assign claim_way = claim_half ? hit_way : victim_q;
  assign old = lines[claim_way];
  assign whole = old.here != '0;
  assign save = claim_new && whole ? {probe_dirty_i, dirty[claim_way]} : '0;

  // ports that waited for what has come
  logic [NumPorts-1:0] served, refused, match;
  logic [1:0] here_d;
  way_t fill_way, used_way;
  logic [Ways-1:0] refs_d;
  assign fill_way = fill.slot[LogWays-1:0];
  assign here_d = lines[fill_way].here | (fd_err_i ? 2'b00 : fill.halves);
  always_comb begin
    for (int p = 0; p < int'(NumPorts); p++) begin
      // to make a QP that is being fetched for others is refused, when its turn comes
      match[p] = do_fd && wait_q[p] && qpn_q[p] == fill.qpn && !(p == 0 && create_q && !fetch_q[0]);
      served[p] = match[p] && (need_q[p] & ~here_d) == '0;
      refused[p] = match[p] && fd_err_i && (need_q[p] & fill.halves) != '0;
    end
  end

  always_comb begin
    line_we = '0;
    line_d = '0;
    if (state_q == StSweep) begin
      line_we = '1;
    end else if (do_fd) begin
      line_we[fill_way] = 1'b1;
      line_d = lines[fill_way];
      line_d.here = here_d;
      line_d.coming = line_d.coming & ~fill.halves;
    end else if (do_forget) begin
      line_we[pin_slot_q[0][LogWays-1:0]] = 1'b1;
    end else if (claim_half) begin
      line_we[hit_way] = 1'b1;
      line_d = old;
      line_d.coming = old.coming | lacking;
    end else if (claim_new) begin
      line_we[victim_q] = 1'b1;
      line_d = '{here: '0, coming: e_need_q, tag: tag_of(e_qpn_q)};
    end
    dirty_d = dirty;
    if (new_hit || grant) dirty_d[hit_way] = dirty[hit_way] | need;
    if (claim_new) dirty_d[victim_q] = '0;
    for (int p = 0; p < int'(NumPorts); p++)
      if (served[p]) dirty_d[fill_way] = dirty_d[fill_way] | need_q[p];
    used_way = claim_new ? victim_q : hit_way;
    refs_d = refs | (Ways'(1) << used_way);
    if (&refs_d) refs_d = Ways'(1) << used_way;
  end

  // those that exist: none at first, made, forgotten, lost
  assign ex_we = ex_sweep || (claim_new && creates) || do_forget || (do_sd && sd_err_i);
  assign ex_d = claim_new && creates;
  always_comb begin
    ex_addr = e_qpn_q;
    if (ex_sweep) ex_addr = ex_sweep_q;
    else if (do_forget) ex_addr = {lines[pin_slot_q[0][LogWays-1:0]].tag, row};
    else if (do_sd) ex_addr = save_ring_q[save_head_q[LogMoves-1:0]];
  end

  logic [3:0] poll_q;       // those that wait are looked at again every 16 cycles
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StSweep;
      sweep_set_q <= '0;
      swept_q <= 1'b0;
      ex_sweep_q <= '0;
      wait_q <= '0;
      fetch_q <= '0;
      try_q <= '0;
      pin_q <= '0;
      forget_q <= 1'b0;
      closed_q <= '0;
      rsp_valid_o <= '0;
      new_last_q <= '0;
      try_last_q <= '0;
      turn_q <= 1'b0;
      poll_q <= '0;
      pf_wait_q <= 1'b0;
      mv_valid_o <= 1'b0;
      bad_valid_o <= 1'b0;
      fill_head_q <= '0;
      fill_tail_q <= '0;
      save_head_q <= '0;
      save_tail_q <= '0;
      ev_o <= '0;
    end else begin
      rsp_valid_o <= '0;
      if (mv_ready_i) mv_valid_o <= 1'b0;
      if (bad_ready_i) bad_valid_o <= 1'b0;
      if (ex_sweep) begin
        ex_sweep_q <= ex_sweep_q + 1'b1;
        swept_q <= ((QpnW+1)'({1'b0, ex_sweep_q} + 1'b1) >> mem_log_num_i) != '0;
      end
      if (wait_q != '0 || pf_wait_q) poll_q <= poll_q + 1'b1;
      if (poll_q == '0 || do_fd || do_sd) try_q[NumPorts-1:0] <= try_q[NumPorts-1:0] | (wait_q & ~fetch_q);
      pin_q <= pin_q & ~rel_valid_i;
      if (rel_valid_i[0] && rel_forget_i) begin
        pin_q[0] <= 1'b1;
        forget_q <= 1'b1;
      end
      // nobody waits for it any more
      for (int c = 0; c < int'(NumClosed); c++)
        for (int p = 0; p < int'(NumPorts); p++)
          if (closed_for_q[c] == AskW'(p) && !wait_q[p]) closed_q[c] <= 1'b0;

      unique case (state_q)
        StSweep: begin
          sweep_set_q <= sweep_set_q + 1'b1;
          if (sweep_set_q == '1) state_q <= StIdle;
        end
        StIdle: begin
          if (do_miss) begin
            state_q <= StLook;
            try_q[try_sel] <= 1'b0;
            try_last_q <= try_sel;
            turn_q <= 1'b0;
          end
          if (do_new) begin
            turn_q <= 1'b1;
            new_last_q <= new_sel;
          end
        end
        StLook: begin
          state_q <= StIdle;
          if (!deny && !found && !blocked && room) state_q <= StPick;
        end
        StPick: state_q <= able != '0 ? StProbe : StIdle;
        default: state_q <= claim_new ? StIdle : StPick;  // StProbe
      endcase

      if (do_forget) begin
        forget_q <= 1'b0;
        pin_q[0] <= 1'b0;
      end
      for (int p = 0; p < int'(NumPorts); p++) begin
        if (do_new && new_sel == AskW'(p)) begin
          rsp_valid_o[p] <= none || new_hit;
          pin_q[p] <= new_hit;
          wait_q[p] <= !none && !new_hit;
          try_q[p] <= !none && !new_hit;
          fetch_q[p] <= 1'b0;
        end
        if ((grant || deny) && e_q == AskW'(p)) begin
          rsp_valid_o[p] <= 1'b1;
          pin_q[p] <= grant;
          wait_q[p] <= 1'b0;
          try_q[p] <= 1'b0;
        end
        if ((claim || (state_q == StLook && on_way && !creates)) && e_q == AskW'(p)) begin
          fetch_q[p] <= 1'b1;
          try_q[p] <= 1'b0;
        end
        if (match[p]) begin
          fetch_q[p] <= 1'b0;
          if (served[p] || refused[p]) begin
            rsp_valid_o[p] <= 1'b1;
            pin_q[p] <= !refused[p];
            wait_q[p] <= 1'b0;
            try_q[p] <= 1'b0;
          end else begin
            try_q[p] <= 1'b1;
          end
        end
      end
      if (pf_pop && pf_valid) try_q[Pf] <= 1'b1;
      if (state_q == StLook && is_pf && !deny && !found && (blocked || !room)) pf_wait_q <= 1'b1;
      if (pf_wait_q && (poll_q == '0 || do_fd || do_sd)) begin
        pf_wait_q <= 1'b0;
        try_q[Pf] <= 1'b1;
      end

      // closed slots
      if (close) begin
        closed_q[closed_free] <= 1'b1;
      end
      for (int c = 0; c < int'(NumClosed); c++)
        if (claim_new && closed_slot_q[c] == {row, victim_q}) closed_q[c] <= 1'b0;

      if (claim) begin
        mv_valid_o <= 1'b1;
        fill_tail_q <= fill_tail_q + 1'b1;
        if (save != '0) save_tail_q <= save_tail_q + 1'b1;
      end
      if (do_fd) fill_head_q <= fill_head_q + 1'b1;
      if (do_sd) save_head_q <= save_head_q + 1'b1;
      if ((do_fd && fd_err_i) || (do_sd && sd_err_i)) bad_valid_o <= 1'b1;
      ev_o <= '{
        hit: new_hit,
        miss: claim,
        evict: claim_new && whole,
        writeback: save != '0,
        stall: |wait_q,
        rd_err: do_fd && fd_err_i,
        wr_err: do_sd && sd_err_i
      };
    end
    // who asks
    for (int p = 0; p < int'(NumPorts); p++) begin
      if (do_new && new_sel == AskW'(p)) begin
        qpn_q[p] <= qpn;
        need_q[p] <= need;
        pin_slot_q[p] <= {row, hit_way};
        rsp_status_o[p] <= none ? QpcNone : QpcOk;
      end
      if ((grant || deny) && e_q == AskW'(p)) begin
        pin_slot_q[p] <= {row, hit_way};
        rsp_status_o[p] <= grant ? QpcOk : creates ? QpcExists : QpcNone;
      end
      if (served[p] || refused[p]) begin
        pin_slot_q[p] <= fill.slot;
        rsp_status_o[p] <= refused[p] ? QpcRefused : QpcOk;
      end
    end
    if (do_new && new_sel == '0) create_q <= req_create_i;
    if (pf_pop && pf_valid) begin
      qpn_q[Pf] <= pf_qpn;
      need_q[Pf] <= pf_need;
    end
    if (do_miss) begin
      e_q <= try_sel;
      e_qpn_q <= qpn_q[try_sel];
      e_need_q <= need_q[try_sel];
    end
    if (state_q == StLook) tried_q <= '0;
    if (state_q == StPick) victim_q <= victim;
    if (state_q == StProbe) tried_q[victim_q] <= 1'b1;
    if (close) begin
      closed_slot_q[closed_free] <= {row, close_way};
      closed_for_q[closed_free] <= e_q;
      close_rr_q <= close_way;
    end
    if (claim) begin
      mv_slot_o <= {row, claim_way};
      mv_save_o <= save;
      mv_save_qpn_o <= {old.tag, row};
      mv_fill_o <= claim_half ? lacking : e_need_q;
      mv_common_o <= claim_new;
      mv_zero_o <= creates;
      mv_fill_qpn_o <= e_qpn_q;
      fill_ring_q[fill_tail_q[LogMoves-1:0]] <= '{slot: {row, claim_way}, qpn: e_qpn_q, halves: claim_half ? lacking : e_need_q};
      if (save != '0) save_ring_q[save_tail_q[LogMoves-1:0]] <= {old.tag, row};
    end
    if (do_fd && fd_err_i) bad_qpn_o <= fill.qpn;
    if (do_sd && sd_err_i) bad_qpn_o <= save_ring_q[save_head_q[LogMoves-1:0]];
    // references and changes
    if (state_q == StSweep) begin
      ref_mem[sweep_set_q] <= '0;
      dirty_mem[sweep_set_q] <= '0;
    end else begin
      if (new_hit || grant || touch || claim_new) ref_mem[row] <= refs_d;
      if (new_hit || grant || claim_new || do_fd) dirty_mem[row] <= dirty_d;
    end
  end
  always_comb for (int p = 0; p < int'(NumPorts); p++) rsp_slot_o[p] = pin_slot_q[p];
  assign closed_o = |closed_q;

  assign idle_o = state_q == StIdle && !ex_sweep && !any_new && wait_q == '0 && try_q == '0 && fill_head_q == fill_tail_q &&
                  save_head_q == save_tail_q && !mv_valid_o && !bad_valid_o && !forget_q && !pf_valid_i && !pf_valid && !pf_wait_q;

endmodule
