// SPDX-License-Identifier: Apache-2.0
//
// read_table against a model that counts without wrapping: requests made, sent again, answered in parts, taken, lost and
// asked for again, completed with and without a response, QPs cleared among the work of others. Every view is compared
// and must stay until the next one, whatever happens meanwhile. QPs change their slots: what is kept of one is read out, overwritten,
// and loaded into another slot. The width does not matter here.

module read_table_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  import requester_pkg::*;
  localparam int N = 6;          // QPs in use
  localparam int Max = 1 << LogMaxRd;

  logic clk = 0;
  always #1 clk = !clk;
  logic init = 0, seg_we = 0, cpl_pop = 0, cpl_re = 0, rx_re = 0, upd_valid = 0;
  qp_idx_t init_qp = '0, seg_qp = '0, cpl_qp = '0, rx_qp = '0;
  rd_num_t seg_done, seg_num = '0, cpl_done;
  rd_entry_t seg_entry = '0;
  logic [LogMaxRd-1:0] cpl_num = '0;
  logic [31:0] cpl_len;
  psn_t max_psn = '0;
  rd_view_t view;
  rd_update_t upd = '0;

  logic rst_n = 0, load = 0, ctx_re = 0, ctx_we = 0;
  rd_keep_t keep_in = '0, keep_out, moved;
  logic [LogMaxRd-1:0] ctx_num = '0;
  rd_entry_t ctx_in = '0, ctx_out, moved_entry[Max];
  int mstep = 0, mq = -1, n_moves = 0;
  bit reading = 0;
  qp_idx_t to;

  read_table dut (
    .load_i(load), .keep_i(keep_in), .keep_o(keep_out), .ctx_re_i(ctx_re), .ctx_we_i(ctx_we), .ctx_num_i(ctx_num),
    .ctx_entry_i(ctx_in), .ctx_entry_o(ctx_out),
    .clk_i(clk), .rst_ni(rst_n), .init_i(init), .init_qp_i(init_qp),
    .seg_qp_i(seg_qp), .seg_done_o(seg_done), .seg_we_i(seg_we), .seg_num_i(seg_num), .seg_entry_i(seg_entry),
    .cpl_qp_i(cpl_qp), .cpl_done_o(cpl_done), .cpl_pop_i(cpl_pop), .cpl_re_i(cpl_re), .cpl_num_i(cpl_num),
    .cpl_len_o(cpl_len),
    .rx_re_i(rx_re), .rx_qp_i(rx_qp), .rx_max_psn_i(max_psn), .rx_view_o(view),
    .rx_update_valid_i(upd_valid), .rx_update_i(upd));

  // ---- model: numbers since the QP was cleared ---------------------------------------------------------------
  int made[N], taken[N], done[N], left[N];   // left: responses of entry `taken` that are missing
  logic part[N], gap[N], open[N];            // open: entry `taken` has begun
  psn_t psn[N];
  rd_entry_t entry[N][256];
  int responses[N][256];
  qp_idx_t qidx[N] = '{0, 1, 7, 128, 254, 255};
  // the view asked for last
  rd_view_t want;
  logic want_valid = 0, want_waiting = 0;
  int v = -1, v_num = 0;
  logic [31:0] want_len = '0;
  logic len_valid = 0;
  int n_views = 0, full = 0, wraps = 0, middle = 0, again = 0, gaps = 0, regot = 0, passed = 0, beside = 0, inits = 0, lasts = 0,
      num_wraps = 0, old_view = 0;

  int q, k, r;
  logic [2:0] wait_upd = 0;
  initial begin
    repeat (2) @(negedge clk);
    rst_n = 1;
    // what the requester does after reset
    for (int i = 0; i < 256; i++) begin
      @(negedge clk);
      init = 1;
      init_qp = 8'(i);
    end
    @(negedge clk);
    init = 0;
    for (int i = 0; i < N; i++) begin
      made[i] = 0; taken[i] = 0; done[i] = 0; part[i] = 0; gap[i] = 0; psn[i] = '0; left[i] = 0; open[i] = 0;
    end
    for (int n = 0; n < 400000; n++) begin
      @(negedge clk);
      // look-ups are combinational
      if (int'(seg_done) != (qn(seg_qp) < 0 ? 0 : done[qn(seg_qp)] % (2 * Max))) $fatal(1, "done of QP %0d for the segmenter", seg_qp);
      if (int'(cpl_done) != (qn(cpl_qp) < 0 ? 0 : done[qn(cpl_qp)] % (2 * Max))) $fatal(1, "done of QP %0d for the completer", cpl_qp);
      if (want_valid) begin
        if (view.incomplete != want.incomplete || view.waiting != want.waiting || view.max_psn != want.max_psn || view.gap != want.gap)
          $fatal(1, "view of QP %0d: %p, want %p", v, view, want);
        if (want.waiting && (view.entry != want.entry || view.psn != want.psn))
          $fatal(1, "view of QP %0d, entry %0d: base %h last %h len %h psn %h, want %h %h %h %h; moving %0d step %0d", v, v_num, view.entry.base, view.entry.last, view.entry.len, view.psn, want.entry.base, want.entry.last, want.entry.len, want.psn, mq, mstep);
      end
      if (len_valid && cpl_len != want_len) $fatal(1, "length %0d, want %0d", cpl_len, want_len);
      if (reading) moved_entry[mstep-2] = ctx_out;
      reading = 0;
      if (mstep == 10) moved = keep_out;
      load = 0; ctx_re = 0; ctx_we = 0;
      init = 0; seg_we = 0; cpl_pop = 0; cpl_re = 0; rx_re = 0; upd_valid = 0;

      // receive side: read, wait, report or not
      if (v < 0 && ($urandom() % 3) != 0) begin
        do v = int'($urandom() % N); while (v == mq);
        rx_re = 1;
        rx_qp = qidx[v];
        max_psn = 24'($urandom());
        n_views++;
        v_num = taken[v] < done[v] ? done[v] : taken[v];
        if (taken[v] < done[v]) passed++;
        want_valid = 1;
        want.incomplete = made[v] != done[v];
        want.waiting = v_num != made[v];
        want.gap = taken[v] < done[v] ? 1'b0 : gap[v];
        want.max_psn = max_psn;
        want.entry = entry[v][v_num % 256];
        want.psn = taken[v] >= done[v] && part[v] ? psn[v] : want.entry.base;
        wait_upd = 3'(1 + $urandom() % 6);
      end else if (v >= 0) begin
        wait_upd--;
        if (wait_upd == 0) begin
          if (want.waiting && ($urandom() % 4) != 0) begin
            if (v_num != taken[v] || !open[v]) begin
              left[v] = responses[v][v_num % 256];
              open[v] = 1;
            end
            upd_valid = 1;
            upd.qp = qidx[v];
            upd.psn = want.psn;
            upd.take = ($urandom() % 4) != 0 && !(want.gap && ($urandom() % 2) == 0);
            upd.last = left[v] == 1 && upd.take;
            if (!upd.take) begin
              // asks again: the place stays
              gap[v] = 1;
              gaps++;
              upd.last = 1'($urandom());
              upd.psn = 24'($urandom());
              part[v] = want.psn != want.entry.base || (taken[v] >= done[v] && part[v] && v_num == taken[v]);
              psn[v] = want.psn;
              if (v_num < done[v]) old_view++;
              taken[v] = v_num;
            end else begin
              if (want.gap) regot++;
              if (want.psn == 24'hffffff) wraps++;
              gap[v] = 0;
              left[v]--;
              if (v_num < done[v]) old_view++;
              part[v] = !upd.last;
              psn[v] = want.psn + 1'b1;
              taken[v] = v_num + int'(upd.last);
              if (upd.last) begin
                lasts++;
                open[v] = 0;
                if (taken[v] % (2 * Max) == 0) num_wraps++;
              end
            end
          end
          // the view stays
          v = -1;
        end
      end

      // moves: read the entries and the rest, overwrite all, load all into a slot that nobody has
      if (mstep == 0 && $urandom() % 20 == 0) begin
        mq = int'($urandom() % N);
        do to = 8'($urandom()); while (qn(to) >= 0);
        mstep = mq != v && !(upd_valid && upd.qp == qidx[mq]);
        if (mstep == 0) mq = -1;
      end else if (mstep == 28) begin
        qidx[mq] = to;
        n_moves++;
        mq = -1;
        mstep = 0;
      end
      if (mstep != 0) init_qp = mstep < 19 ? qidx[mq] : to;
      if (mstep inside {18, 27}) begin
        load = 1;
        keep_in = mstep == 27 ? moved : rd_keep_t'({$urandom(), $urandom()});
        mstep++;
      end
      if (mstep == 0 && ($urandom() % 200) == 0) begin
        // nothing else changes state in this cycle, but for a report on another QP
        q = int'($urandom() % N);
        if (q != v && !(upd_valid && upd.qp == qidx[q])) begin
          init = 1;
          init_qp = qidx[q];
          inits++;
          if (upd_valid) beside++;
          if (rx_re && rx_qp == qidx[q]) $fatal(1, "bench");
          made[q] = 0; taken[q] = 0; done[q] = 0; part[q] = 0; gap[q] = 0; psn[q] = '0; open[q] = 0;
        end
      end
      if (!init && !load) begin
        // segmenter: a new request, or one sent again
        do q = int'($urandom() % N); while (q == mq);
        if (($urandom() % 3) == 0) begin
          if (made[q] - done[q] < Max && ($urandom() % 3) != 0) begin
            k = made[q];
            for (int i = 0; i < $bits(rd_entry_t); i += 32) seg_entry = rd_entry_t'({seg_entry, $urandom()});
            if (($urandom() % 4) == 0) seg_entry.base = 24'hfffffc + 24'($urandom() % 4);
            entry[q][k % 256] = seg_entry;
            responses[q][k % 256] = 1 + int'($urandom() % 6);
            seg_we = 1;
            made[q]++;
            if (made[q] - done[q] == Max) full++;
          end else if (made[q] != done[q]) begin
            k = done[q] + int'($urandom() % 32'(made[q] - done[q]));
            seg_entry = entry[q][k % 256];
            seg_we = 1;
            again++;
            if (k == taken[q] && part[q]) middle++;
          end
          seg_qp = qidx[q];
          seg_num = rd_num_t'(k);
        end else begin
          do q = int'($urandom() % N); while (q == mq);
          seg_qp = qidx[q];
        end
        // completer
        do q = int'($urandom() % N); while (q == mq);
        cpl_qp = qidx[q];
        if (done[q] < made[q] && (done[q] < taken[q] ? ($urandom() % 4) == 0 : ($urandom() % 400) == 0 && done[q] - taken[q] < Max - 1) &&
            !(seg_we && seg_qp == cpl_qp)) begin
          cpl_pop = 1;
          done[q]++;
        end
      end else begin
        do q = int'($urandom() % N); while (q == mq);
        seg_qp = qidx[q];
        cpl_qp = qidx[q];
      end
      len_valid = 0;
      q = qn(cpl_qp);
      if (!seg_we && made[q] != done[q] && ($urandom() % 2) == 0) begin
        k = done[q] + int'($urandom() % 32'(made[q] - done[q]));
        cpl_re = 1;
        cpl_num = LogMaxRd'(k);
        want_len = entry[q][k % 256].len;
        len_valid = 1;
      end
      if (mstep inside {[1:8]} && !rx_re) begin
        ctx_re = 1;
        ctx_num = LogMaxRd'(mstep - 1);
        reading = 1;
        mstep++;
      end else if (mstep == 9) begin
        mstep++;
      end else if (mstep > 9 && mstep != 28 && !(mstep inside {18, 27}) && !load && !seg_we) begin
        ctx_we = 1;
        ctx_num = LogMaxRd'((mstep - 10) % 9);
        ctx_in = moved_entry[ctx_num];
        if (mstep < 18) ctx_in = ~ctx_in;
        mstep++;
      end
      // the model moves now, the block at the edge: look-ups are compared behind it
    end
    if (n_moves < 1000) $fatal(1, "%0d moves", n_moves);
    if (n_views < 10000 || full < 100 || wraps < 100 || middle < 100 || again < 1000 || gaps < 1000 || regot < 1000 || passed < 100 ||
        beside < 10 || inits < 100 || lasts < 1000 || num_wraps < 10 || old_view < 10)
      $fatal(1, "corners: %0d views, %0d full, %0d PSN wraps, %0d in the middle, %0d again, %0d gaps, %0d closed, %0d passed, %0d beside, %0d cleared, %0d last, %0d wraps, %0d old",
             n_views, full, wraps, middle, again, gaps, regot, passed, beside, inits, lasts, num_wraps, old_view);
    $display("PASS %0d moves, %0d views, %0d responses that end a request, %0d passed over", n_moves, n_views, lasts, passed);
    $finish;
  end
  function automatic int qn(input qp_idx_t i);
    for (int j = 0; j < N; j++) if (qidx[j] == i) return j;
    return -1;
  endfunction
endmodule
