// SPDX-License-Identifier: Apache-2.0
//
// qp_cache against a model of the modules, of a mover and of host memory. A few slots, more QPs than slots. A part of a context is a number:
// what is right for the QP, what the modules hold in the slot, what memory holds. Ports look QPs up at random, change the parts that they asked for
// while they have their pin, and leave work behind that changes them later. The mover saves, scrambles, reads and writes late. Every
// pin must find the newest numbers; every look-up must be answered in bounded time, whatever the others do; QPs are made and
// forgotten meanwhile, and memory refuses now and then. A burst of hints, as many as the queue holds, fetches every QP once that is not here.

module qp_cache_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam bit Wide = DataW > 64;
  localparam int QpnW = 7;
  localparam int LogNum = Wide ? 6 : 4;
  localparam int N = 1 << LogNum;
  localparam int LogSets = Wide ? 2 : 1;
  localparam int LogWays = Wide ? 2 : 1;
  localparam int Sets = 1 << LogSets;
  localparam int LogMoves = Wide ? 2 : 1;
  localparam int SlotW = LogSets + LogWays;
  localparam int Slots = 1 << SlotW;
  localparam int P = 6;
  localparam int NumHold = Wide ? 3 : 1;   // ports whose pins last, in hot times: port 2 while port 1 waits, port 0 while either does

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic mem_on = 0;
  logic [P-1:0] req_valid = '0, req_ready, rsp_valid, rel_valid = '0;
  logic [P-1:0][23:0] req_qpn = '0;
  logic [P-1:0][1:0] req_need = '0;
  qpc_status_e [P-1:0] rsp_status;
  logic [P-1:0][SlotW-1:0] rsp_slot;
  logic req_create = 0, rel_forget = 0, pf_valid = 0;
  logic [23:0] pf_qpn = '0;
  logic [1:0] pf_need = 2'b01;
  logic probe_valid, probe_busy = 0, probe_dirty = 0;
  logic [SlotW-1:0] probe_slot, mv_slot;
  logic [Slots-1:0] dear = '0;
  logic mv_valid, mv_ready = 0, mv_common, mv_zero, fd_valid = 0, fd_ready, fd_err = 0, sd_valid = 0, sd_ready, sd_err = 0;
  logic [2:0] mv_save;
  logic [1:0] mv_fill;
  logic [QpnW-1:0] mv_save_qpn, mv_fill_qpn, bad_qpn;
  logic bad_valid, bad_ready = 0, idle, closed;
  ctx_ev_t ev;

  qp_cache #(.QpnW(QpnW), .LogSets(LogSets), .LogWays(LogWays), .NumPorts(P), .NumHold(NumHold), .LogMoves(LogMoves)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mem_on_i(mem_on), .mem_log_num_i(5'(LogNum)),
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_qpn_i(req_qpn), .req_need_i(req_need), .req_create_i(req_create),
    .rsp_valid_o(rsp_valid), .rsp_status_o(rsp_status), .rsp_slot_o(rsp_slot), .rel_valid_i(rel_valid), .rel_forget_i(rel_forget),
    .pf_valid_i(pf_valid), .pf_qpn_i(pf_qpn), .pf_need_i(pf_need),
    .probe_valid_o(probe_valid), .probe_slot_o(probe_slot), .probe_busy_i(probe_busy), .probe_dirty_i(probe_dirty),
    .dear_i(dear),
    .mv_valid_o(mv_valid), .mv_ready_i(mv_ready), .mv_slot_o(mv_slot), .mv_save_o(mv_save), .mv_save_qpn_o(mv_save_qpn),
    .mv_fill_o(mv_fill), .mv_common_o(mv_common), .mv_zero_o(mv_zero), .mv_fill_qpn_o(mv_fill_qpn),
    .fd_valid_i(fd_valid), .fd_ready_o(fd_ready), .fd_err_i(fd_err), .sd_valid_i(sd_valid), .sd_ready_o(sd_ready), .sd_err_i(sd_err),
    .bad_valid_o(bad_valid), .bad_ready_i(bad_ready), .bad_qpn_o(bad_qpn), .closed_o(closed), .ev_o(ev), .idle_o(idle));

  int now = 0;
  int uid = 0;
  // ---- QPs: numbers of the parts (requester, responder, common) that are right, and in memory ----
  int cur[N][3], mem[N][3];
  bit ex[N];            // exists
  bit creating[N];
  int epoch[N];         // of the QP that has this QPN
  int changed[N];       // when it was made, forgotten or lost
  int refused_at[N];    // when memory refused to give it
  // ---- slots ----
  int st[Slots][3];
  bit cdirty[Slots];    // common part
  bit [1:0] granted[Slots];
  int owner[Slots];     // QPN loaded, -1 none
  typedef struct packed {int slot; int qpn; int epoch; bit [1:0] need; int left;} work_t;
  work_t work[$];
  function automatic bit is_busy(int s);
    foreach (work[i]) if (work[i].slot == s) return 1;
    return 0;
  endfunction

  function automatic bit is_closed(int s);
    for (int c = 0; c < dut.NumClosed; c++) if (dut.closed_q[c] && int'(dut.closed_slot_q[c]) == s) return 1;
    return 0;
  endfunction

  // ---- mover ----
  typedef struct packed {int slot; bit [2:0] save; int save_qpn; bit [1:0] fill; bit common; bit zero; int fill_qpn;} move_t;
  typedef struct packed {int qpn; bit [2:0] mask; bit [2:0][31:0] val;} write_t;
  typedef struct packed {int slot; bit [2:0] mask; bit zero; int qpn; bit sampled; bit [2:0][31:0] val;} read_t;
  move_t moves[$];
  write_t writes[$];
  read_t reads[$];
  int pace = 3;         // 1 in `pace` cycles something moves in the mover
  int err_rd = 0, err_wr = 0;   // in 1000
  bit fd_load = 0, sd_done = 0;
  int bads[$];
  int fetched[N];       // read from memory so often
  int n_ok, n_none, n_refused, n_exists, n_hit, n_miss, n_evict, n_wb, n_lost, n_forget, n_create, n_rd_err, n_closed, n_half, n_pf, max_age, n_stall, n_hints, n_dear, n_spared;

  // ---- ports ----
  typedef enum int {PIdle, PAsk, PWait, PHold} pstate_e;
  pstate_e ps[P];
  int pq[P], page[P], pfrom[P], pleft[P], pslot[P], pepoch[P];
  bit [1:0] pn[P];
  bit pcreate, pforget;
  bit ghost[P];         // pin on a QP that is being forgotten: its numbers count no more
  int phot[P];          // cycles that it waits while it is hot
  int range = N + 2, stride = 1, duty = 3;
  bit quiet = 0;
  bit hot = 0;          // every slot is in use until it is closed, and ports 0 and, of those that hold, 1 want another QP than those here

  function automatic int fresh();
    uid++;
    return uid;
  endfunction
  task automatic change(int s, int q, int e, bit [1:0] need, bit com);
    for (int h = 0; h < 3; h++) begin
      if (h < 2 ? need[h] : com) begin
        st[s][h] = fresh();
        if (epoch[q] == e) cur[q][h] = st[s][h];
        if (h == 2) cdirty[s] = 1;
      end
    end
  endtask

  always @(posedge clk) if (rst_n) begin
    now++;
    n_hit += int'(ev.hit); n_miss += int'(ev.miss); n_evict += int'(ev.evict); n_wb += int'(ev.writeback); n_rd_err += int'(ev.rd_err);
    n_stall += int'(ev.stall); n_lost += int'(ev.wr_err);
    // probe: of this cycle, before what happens at its end
    probe_busy <= probe_valid ? is_busy(int'(probe_slot)) || (hot && !is_closed(int'(probe_slot))) : 1'($urandom());
    probe_dirty <= probe_valid ? cdirty[probe_slot] : 1'($urandom());
    // one that is wanted again soon goes only if all others that could go are that, too, or it was closed for this one
    if (probe_valid && dear[probe_slot] && dut.lines[probe_slot[LogWays-1:0]].here != '0 && !dut.mine[probe_slot[LogWays-1:0]]) begin
      n_dear++;
      for (int w = 0; w < (1 << LogWays); w++)
        if (dut.able[w] && !dear[{probe_slot[SlotW-1:LogWays], LogWays'(w)}]) $fatal(1, "slot %0d is to go, and way %0d could", probe_slot, w);
    end
    if (probe_valid && !dear[probe_slot]) for (int w = 0; w < (1 << LogWays); w++)
      if (dut.able[w] && dear[{probe_slot[SlotW-1:LogWays], LogWays'(w)}] && owner[{probe_slot[SlotW-1:LogWays], LogWays'(w)}] >= 0) n_spared++;
    if (probe_valid) for (int p = 0; p < P; p++)
      if (ps[p] == PHold && pslot[p] == int'(probe_slot)) $fatal(1, "slot %0d is asked about, but port %0d has a pin", probe_slot, p);
    // mover
    if (mv_valid && mv_ready) begin
      move_t m;
      if (mv_common) for (int p = 0; p < P; p++)
        if (ps[p] == PHold && pslot[p] == int'(mv_slot)) $fatal(1, "slot %0d taken away from port %0d", mv_slot, p);
      if (mv_common && is_busy(int'(mv_slot))) $fatal(1, "slot %0d taken away from its work", mv_slot);
      if (!mv_common && mv_save != 0) $fatal(1, "save without a new QP");
      if (mv_zero && !mv_common) $fatal(1, "half a new QP");
      if (!mv_common) n_half++;
      if (mv_fill == 0) $fatal(1, "a move that fills nothing");
      if (int'(mv_fill_qpn) >= N) $fatal(1, "QP %0d cannot exist, and is fetched", mv_fill_qpn);
      if (!mv_zero) fetched[mv_fill_qpn]++;
      m = '{int'(mv_slot), mv_save, int'(mv_save_qpn), mv_fill, mv_common, mv_zero, int'(mv_fill_qpn)};
      moves.push_back(m);
    end
    if (fd_valid && fd_ready) begin
      if (fd_err) begin
        refused_at[reads[0].qpn] = now;
        bads.push_back(reads[0].qpn);
      end
      fd_valid <= 0;
      fd_load = 0;
      void'(reads.pop_front());
    end
    if (sd_valid && sd_ready) begin
      if (sd_err) begin
        ex[writes[0].qpn] = 0;
        changed[writes[0].qpn] = now;
        epoch[writes[0].qpn]++;
        bads.push_back(writes[0].qpn);
      end
      sd_valid <= 0;
      sd_done = 0;
      void'(writes.pop_front());
    end
    if (moves.size() != 0 && $urandom() % pace == 0) begin
      move_t m;
      write_t w;
      read_t r;
      m = moves.pop_front();
      w.qpn = m.save_qpn;
      w.mask = m.save;
      for (int h = 0; h < 3; h++) w.val[h] = st[m.slot][h];
      if (m.save != 0) begin
        if (owner[m.slot] != m.save_qpn) $fatal(1, "slot %0d saved as QP %0d, it is that of %0d", m.slot, m.save_qpn, owner[m.slot]);
        for (int h = 0; h < 3; h++) if (m.save[h] && !(h == 2 ? cdirty[m.slot] : granted[m.slot][h])) $fatal(1, "part %0d saved for nothing", h);
        writes.push_back(w);
      end
      if (m.common) begin
        for (int h = 0; h < 3; h++) st[m.slot][h] = fresh();
        owner[m.slot] = -1;
        granted[m.slot] = 0;
      end
      r.slot = m.slot;
      r.mask = {m.common, m.fill};
      r.zero = m.zero;
      r.qpn = m.fill_qpn;
      r.sampled = 0;
      reads.push_back(r);
    end
    foreach (reads[i]) if (!reads[i].sampled && $urandom() % (2 * pace) == 0) begin
      read_t r;
      r = reads[i];
      r.sampled = 1;
      for (int h = 0; h < 3; h++) r.val[h] = r.zero ? 0 : mem[r.qpn][h];
      reads[i] = r;
    end
    if (reads.size() != 0 && reads[0].sampled && !fd_load && $urandom() % pace == 0) begin
      bit e;
      read_t r;
      r = reads[0];
      e = !r.zero && $urandom() % 1000 < err_rd;
      fd_load = 1;
      fd_valid <= 1;
      fd_err <= e;
      if (!e) begin
        owner[r.slot] = r.qpn;
        for (int h = 0; h < 3; h++) if (r.mask[h]) begin
          st[r.slot][h] = r.val[h];
          if (h < 2) granted[r.slot][h] = 0;
          if (h == 2) cdirty[r.slot] = r.zero;
          if (r.zero) cur[r.qpn][h] = 0;
        end
        if (r.zero) begin
          creating[r.qpn] = 0;
          ex[r.qpn] = 1;
          epoch[r.qpn]++;
          changed[r.qpn] = now;
          granted[r.slot] = 2'b11;
        end
      end
    end
    if (writes.size() != 0 && !sd_done && $urandom() % (2 * pace) == 0) begin
      bit e;
      write_t w;
      w = writes[0];
      e = $urandom() % 1000 < err_wr;
      sd_done = 1;
      sd_valid <= 1;
      sd_err <= e;
      if (!e) for (int h = 0; h < 3; h++) if (w.mask[h]) mem[w.qpn][h] = w.val[h];
    end
    if (bad_valid && bad_ready) begin
      if (bads.size() == 0 || bads[0] != int'(bad_qpn)) $fatal(1, "event of QP %0d", bad_qpn);
      void'(bads.pop_front());
    end
    // work that was left behind
    for (int i = 0; i < work.size(); i++) begin
      work[i].left--;
      if (work[i].left == 0 || $urandom() % 8 == 0) change(work[i].slot, work[i].qpn, work[i].epoch, work[i].need, 0);
      if (work[i].left == 0) begin
        work.delete(i);
        i--;
      end
    end
    // ports
    for (int p = 0; p < P; p++) begin
      if (rsp_valid[p]) begin
        if (ps[p] != PWait) $fatal(1, "port %0d: an answer that nobody asked for", p);
        page[p] = 0;
        phot[p] = 0;
        ps[p] = PIdle;
        unique case (rsp_status[p])
          QpcOk: begin
            n_ok++;
            if (pq[p] >= N || !mem_on) $fatal(1, "port %0d: QP %0d cannot exist", p, pq[p]);
            if (p == 0 && pcreate) begin
              n_create++;
              if (changed[pq[p]] < pfrom[p]) $fatal(1, "QP %0d was not made, it is the old one", pq[p]);
            end
            pslot[p] = int'(rsp_slot[p]);
            ghost[p] = !ex[pq[p]];
            if (ghost[p] && changed[pq[p]] < pfrom[p]) $fatal(1, "port %0d: QP %0d does not exist", p, pq[p]);
            pepoch[p] = epoch[pq[p]];
            if (!ghost[p]) begin
              if (owner[pslot[p]] != pq[p]) $fatal(1, "port %0d: slot %0d is that of QP %0d, not %0d", p, pslot[p], owner[pslot[p]], pq[p]);
              for (int h = 0; h < 3; h++)
                if ((h == 2 || pn[p][h]) && st[pslot[p]][h] != cur[pq[p]][h])
                  $fatal(1, "port %0d: QP %0d part %0d is %0d, want %0d", p, pq[p], h, st[pslot[p]][h], cur[pq[p]][h]);
              granted[pslot[p]] |= pn[p];
            end
            ps[p] = PHold;
            pleft[p] = 1 + int'($urandom() % 12);
          end
          QpcNone: begin
            n_none++;
            if (p == 0 && pcreate && pq[p] < N && mem_on) $fatal(1, "QP %0d not made", pq[p]);
            if (pq[p] < N && mem_on && ex[pq[p]] && changed[pq[p]] < pfrom[p]) $fatal(1, "port %0d: QP %0d exists", p, pq[p]);
          end
          QpcRefused: begin
            n_refused++;
            if (refused_at[pq[p]] < pfrom[p]) $fatal(1, "port %0d: QP %0d refused", p, pq[p]);
          end
          default: begin
            n_exists++;
            if (p != 0 || !pcreate || (!ex[pq[p]] && changed[pq[p]] < pfrom[p])) $fatal(1, "port %0d: QP %0d exists?", p, pq[p]);
          end
        endcase
      end
      if (ps[p] == PWait) begin
        page[p]++;
        if (page[p] > max_age) max_age = page[p];
        if (page[p] > 9000) $fatal(1, "port %0d: QP %0d is not answered", p, pq[p]);
        phot[p] = hot ? phot[p] + 1 : 0;
        if (phot[p] > 2000) $fatal(1, "port %0d: QP %0d starves", p, pq[p]);
      end
      if (ps[p] == PHold) begin
        if (rel_valid[p]) begin
          if (!ghost[p] && !(p == 0 && rel_forget) && (hot || $urandom() % 2 == 0)) begin
            work_t k;
            k = '{pslot[p], pq[p], pepoch[p], pn[p], (hot ? 30 : 1) + int'($urandom() % 40)};
            work.push_back(k);
          end
          ps[p] = PIdle;
          if (p == 0 && rel_forget) begin
            n_forget++;
            owner[pslot[0]] = -1;
            ex[pq[p]] = 0;
            epoch[pq[p]]++;
            changed[pq[p]] = now + 40;
          end
        end else begin
          pleft[p]--;
          if ($urandom() % 3 == 0) change(pslot[p], pq[p], ghost[p] ? -1 : pepoch[p], pn[p], p == 0 && $urandom() % 4 == 0);
        end
      end
      if (req_valid[p] && req_ready[p]) begin
        if (ps[p] != PAsk) $fatal(1, "port %0d taken twice", p);
        ps[p] = PWait;
        pfrom[p] = now;
        page[p] = 0;
      end else if (ps[p] == PAsk) begin
        page[p]++;
        if (page[p] > 9000) $fatal(1, "port %0d is not taken", p);
      end
    end
  end

  // ---- drive ----
  int q;
  int burst[$];         // hints, one per cycle
  bit hinting = 1;
  always @(negedge clk) if (rst_n) begin
    for (int p = 0; p < P; p++) begin
      if (ps[p] == PIdle && !quiet && $urandom() % duty == 0) begin
        q = (int'($urandom()) % range) * stride;
        if (q < 0) q = -q;
        if (hot && p != 0 && !(p == 1 && NumHold > 1)) q = int'($urandom() % (1 << LogWays)) * stride;
        else if ($urandom() % 60 == 0) q = int'($urandom() % 1000);
        pq[p] = q;
        pn[p] = 2'(1 + $urandom() % 3);
        if (p == 0) begin
          pn[p] = 2'b11;
          pcreate = $urandom() % 3 == 0 || (q < N && !ex[q]);
        end
        ps[p] = PAsk;
      end
      req_valid[p] = ps[p] == PAsk;
      req_qpn[p] = ps[p] == PAsk ? 24'(pq[p]) : 24'($urandom());
      req_need[p] = ps[p] == PAsk ? pn[p] : 2'($urandom());
      rel_valid[p] = ps[p] == PHold && pleft[p] <= 0 &&
                     !(hot && p < NumHold && ((p == 2 && ps[1] == PWait) || (p == 0 && NumHold > 1 && (ps[1] == PWait || ps[2] == PWait))));
      if (p == 0) begin
        req_create = pcreate;
        rel_forget = rel_valid[0] && !ghost[0] && !hot && $urandom() % 3 == 0;
      end
    end
    if (quiet && burst.size() != 0) begin
      pf_valid = 1;
      pf_qpn = 24'(burst.pop_front());
    end else begin
      pf_valid = !quiet && hinting && $urandom() % 8 == 0;
      pf_qpn = 24'($urandom() % (N + 2));
    end
    pf_need = 2'(1 + $urandom() % 3);
    n_pf += int'(pf_valid);
    mv_ready = $urandom() % 4 != 0 && moves.size() < 3;
    bad_ready = $urandom() % 6 == 0;
    if ($urandom() % 16 == 0) dear = Slots'($urandom());
  end

  task automatic settle();
    int n;
    quiet = 1;
    n = 0;
    while (!idle || work.size() != 0 || moves.size() != 0 || reads.size() != 0 || writes.size() != 0 || ps[0] != PIdle || ps[P-1] != PIdle) begin
      @(negedge clk);
      n++;
      if (n > 40000) $fatal(1, "not idle");
    end
    repeat (20) @(negedge clk);
    if (!idle) $fatal(1, "not idle any more");
    if (bads.size() != 0) $fatal(1, "an event is missing");
    quiet = 0;
  endtask

  // idle: hints of QPs that have no slot, and of numbers that cannot be
  task automatic hints();
    int at, n, was[N];
    bit here, wanted[N];
    at = int'($urandom() % N);
    n = 0;
    for (int i = 0; i < N; i++) begin
      int c;
      c = (at + i) % N;
      here = 0;
      for (int s = 0; s < Slots; s++) if (owner[s] == c) here = 1;
      was[c] = fetched[c];
      wanted[c] = 0;
      if (n < 8 && ex[c] && !here) begin
        wanted[c] = 1;
        n++;
      end
    end
    quiet = 1;
    for (int i = 0; i < N; i++) if (wanted[i]) burst.push_back(i);
    if (n < 8) burst.push_back(N + int'($urandom() % 1000));
    n_hints += n;
    repeat (16) @(negedge clk);
    settle();
    for (int i = 0; i < N; i++)
      if (fetched[i] - was[i] != int'(wanted[i])) $fatal(1, "QP %0d fetched %0d times for %0d hints", i, fetched[i] - was[i], wanted[i]);
  endtask

  initial begin
    for (int s = 0; s < Slots; s++) begin
      owner[s] = -1;
      for (int h = 0; h < 3; h++) st[s][h] = fresh();
    end
    for (int i = 0; i < N; i++) begin
      changed[i] = -1;
      refused_at[i] = -1;
      for (int h = 0; h < 3; h++) mem[i][h] = fresh();   // as it was before
    end
    repeat (3) @(negedge clk);
    rst_n = 1;
    repeat (200) @(negedge clk);       // nothing exists without memory
    settle();
    mem_on = 1;
    for (int n = 0; n < 60; n++) begin
      range = n % 5 == 1 ? 3 : n % 5 == 2 ? 8 : n % 5 == 3 ? (1 << LogWays) + 2 : N + 2;
      stride = n % 5 == 3 ? Sets : 1;      // all in one set
      hot = n % 10 == 3;
      hinting = n % 10 < 4 || n % 10 > 6;  // nothing is left of those that came while all was in use
      duty = hot || n % 3 == 0 ? 1 : n % 3 == 1 ? 3 : 20;
      pace = n % 4 == 0 ? 1 : n % 4 == 1 ? 3 : n % 4 == 2 ? 12 : 40;
      if (hot) pace = 1;
      err_rd = n % 6 == 5 ? 100 : 0;
      err_wr = n % 12 == 11 ? 100 : 0;
      repeat (4000) @(negedge clk);
      if (n % 10 == 9) settle();
      if (n % 10 == 9 || n % 10 == 6) begin
        err_rd = 0;
        err_wr = 0;
        settle();
        hints();
      end
    end
    err_rd = 0;
    err_wr = 0;
    settle();
    if (n_ok < 5000 || n_none < 1000 || n_refused < 30 || n_exists < 100 || n_miss < 2000 || n_evict < 1500 || n_wb < 1000 || n_lost < 4 ||
        n_forget < 200 || n_create < 200 || n_half < 150 || n_hit < 2000 || n_hints < 30 || n_dear < 100 || n_spared < 100)
      $fatal(1, "too little: %0d ok %0d none %0d refused %0d exists %0d misses %0d evicted %0d written %0d lost %0d forgotten %0d made %0d halves %0d hits %0d hints %0d dear %0d spared",
             n_ok, n_none, n_refused, n_exists, n_miss, n_evict, n_wb, n_lost, n_forget, n_create, n_half, n_hit, n_hints, n_dear, n_spared);
    $display("PASS %0d pins, %0d hits, %0d misses (%0d halves), %0d evicted, %0d written back, %0d made, %0d forgotten, %0d lost, %0d refused; longest wait %0d",
             n_ok, n_hit, n_miss, n_half, n_evict, n_wb, n_create, n_forget, n_lost, n_refused, max_age);
    $finish;
  end
endmodule
