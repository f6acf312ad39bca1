// SPDX-License-Identifier: Apache-2.0
//
// qp_service with a few QPNs, so that most things happen to a QP that has something already: in the list, at a worker that waits,
// at one that hands out. Producer indices are numbers that grow by one per QP: a doorbell must be handed out newer than the last one and
// not older than the newest when it was taken. What was taken is handed out in bounded time, once; QPs that do not exist and
// contexts that memory refuses drop it. A QP is never at two workers; every copy of a WQE goes with its own doorbell or is
// dropped. A drain is done when everything taken before it is handed out, and not later than in bounded time under full load.

module qp_service_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int NumW = DataW > 64 ? 6 : 3;
  localparam int N = 1 << NumW;
  localparam int W = DataW > 64 ? 4 : 2;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic sq_valid = 0, sq_ready, rq_valid = 0, rq_ready, tmr_valid = 0, tmr_ready, turn_valid = 0, turn_ready, cnp_valid = 0, cnp_ready;
  logic [23:0] sq_qpn = 0, rq_qpn = 0;
  wqe_idx_t sq_pi = 0, rq_pi = 0, hsq_pi, hrq_pi;
  wqe_copy_t sq_copy = 0, hsq_copy;
  logic [NumW-1:0] tmr_qpn = 0, turn_qpn = 0, cnp_qpn = 0;
  logic [W-1:0] req_valid, req_ready = 0, rsp_valid = 0, rel_valid;
  logic [W-1:0][23:0] req_qpn;
  qpc_status_e [W-1:0] rsp_status;
  qp_idx_t [W-1:0] rsp_slot;
  logic hsq_valid, hsq_ready = 0, hrq_valid, hrq_ready = 0, htmr_valid, htmr_ready = 0, hturn_valid, hturn_ready = 0, hcnp_valid, hcnp_ready = 0;
  qp_idx_t hsq_qp, hrq_qp, htmr_qp, hturn_qp, hcnp_qp;
  logic [2:0] drop_valid;
  logic [1:0] ev_bad_db;
  copy_idx_t [2:0] drop_at;
  logic list_busy, drain = 0, drain_done, idle, ready;

  qp_service #(.NumW(NumW), .NumWork(W), .Banks(4)) dut (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(ready),
    .sq_valid_i(sq_valid), .sq_ready_o(sq_ready), .sq_qpn_i(sq_qpn), .sq_pi_i(sq_pi), .sq_copy_i(sq_copy),
    .rq_valid_i(rq_valid), .rq_ready_o(rq_ready), .rq_qpn_i(rq_qpn), .rq_pi_i(rq_pi),
    .tmr_valid_i(tmr_valid), .tmr_ready_o(tmr_ready), .tmr_qpn_i(tmr_qpn), .turn_valid_i(turn_valid), .turn_ready_o(turn_ready), .turn_qpn_i(turn_qpn),
    .req_valid_o(req_valid), .req_ready_i(req_ready), .req_qpn_o(req_qpn), .rsp_valid_i(rsp_valid), .rsp_status_i(rsp_status), .rsp_slot_i(rsp_slot),
    .rel_valid_o(rel_valid),
    .hsq_valid_o(hsq_valid), .hsq_ready_i(hsq_ready), .hsq_qp_o(hsq_qp), .hsq_pi_o(hsq_pi), .hsq_copy_o(hsq_copy),
    .hrq_valid_o(hrq_valid), .hrq_ready_i(hrq_ready), .hrq_qp_o(hrq_qp), .hrq_pi_o(hrq_pi),
    .htmr_valid_o(htmr_valid), .htmr_ready_i(htmr_ready), .htmr_qp_o(htmr_qp), .hturn_valid_o(hturn_valid), .hturn_ready_i(hturn_ready), .hturn_qp_o(hturn_qp),
    .cnp_valid_i(cnp_valid), .cnp_ready_o(cnp_ready), .cnp_qpn_i(cnp_qpn), .hcnp_valid_o(hcnp_valid), .hcnp_ready_i(hcnp_ready), .hcnp_qp_o(hcnp_qp),
    .drop_valid_o(drop_valid), .drop_at_o(drop_at), .list_busy_o(list_busy), .drain_i(drain), .drain_done_o(drain_done),
    .ev_bad_db_o(ev_bad_db), .idle_o(idle));

  // ---- model: kinds 0 SQ doorbell, 1 RQ doorbell, 2 timer, 3 turn, 4 CNP ----
  bit open[5][N];            // taken and not handed out
  int since[5][N];           // when the oldest of it was taken
  int count[5][N], last_in[5][N], last_out[5][N];
  int newest[2][N], told[2][N];
  bit exists[N];
  int bad_want = 0, bad_got = 0;
  bit held[NumCopy];         // places that hold a copy
  int copy_of[NumCopy], copy_pi[NumCopy];
  bit from_list[N];          // the newest doorbell waited in the list
  bit drain_open[5][N];      // taken before the drain
  int now = 0, drain_from = 0, last_wait = 0;
  // ---- workers as the cache sees them ----
  int wq[W], wleft[W];       // QPN, -1 none; cycles to the answer
  bit whave[W], wasked[W];
  int slot_of[N];
  bit fast = 0;              // hand-outs are taken at once
  bit refuse = 1;            // memory refuses at times
  int handed[5], n_list = 0, n_refused = 0, n_none = 0, n_drop = 0, n_copy = 0, n_kept = 0, n_drain = 0, n_direct = 0, n_same = 0;
  int longest = 0;

  function automatic int qpn_of_slot(qp_idx_t s);
    for (int w = 0; w < W; w++) if (whave[w] && rsp_slot[w] == s) return wq[w];
    return -1;
  endfunction

  task automatic hand_out(int kind, qp_idx_t s, wqe_idx_t pi);
    int q;
    q = qpn_of_slot(s);
    if (q < 0) $fatal(1, "kind %0d handed out with slot %0d that no worker has", kind, s);
    if (kind < 2 && !open[kind][q]) $fatal(1, "kind %0d of QPN %0d handed out, and none is open", kind, q);
    if (kind < 2) begin
      if (int'(pi) <= told[kind][q] || int'(pi) > newest[kind][q])
        $fatal(1, "doorbell %0d of QPN %0d: %0d, told %0d, newest %0d", kind, q, pi, told[kind][q], newest[kind][q]);
      told[kind][q] = int'(pi);
      // an older one was replaced: nothing of it is open
      open[kind][q] = int'(pi) != newest[kind][q];
    end else begin
      // one hand-out may stand for several; whether it stands for the newest is seen in the end
      if (count[kind][q] == 0) $fatal(1, "kind %0d of QPN %0d handed out more often than it came", kind, q);
      count[kind][q]--;
      last_out[kind][q] = now;
      open[kind][q] = 0;
    end
    if (now - since[kind][q] > longest) longest = now - since[kind][q];
    drain_open[kind][q] = 0;
    handed[kind]++;
  endtask

  task automatic taken(int kind, int q, int pi);
    if (kind < 2) newest[kind][q] = pi;
    if (!open[kind][q]) since[kind][q] = now;
    count[kind][q]++;
    last_in[kind][q] = now;
    open[kind][q] = 1;
  endtask

  logic [4:0] out_valid, out_ready, wait_q = '0;
  qp_idx_t [4:0] out_qp, qp_q;
  assign out_valid = {hcnp_valid, hturn_valid, htmr_valid, hrq_valid, hsq_valid};
  assign out_ready = {hcnp_ready, hturn_ready, htmr_ready, hrq_ready, hsq_ready};
  assign out_qp = {hcnp_qp, hturn_qp, htmr_qp, hrq_qp, hsq_qp};
  always @(posedge clk) begin
    wait_q <= rst_n ? out_valid & ~out_ready : '0;
    qp_q <= out_qp;
  end

  // all that is known of a QP whose look-up found nothing is dropped: what its worker had. The model cannot see the split between worker and
  // list, so such QPs have nothing checked but that nothing of them is handed out, and the number of bad doorbells in the end.
  always @(posedge clk) begin
    now <= now + 1;
    if (rst_n) begin
      // what is offered stays, of the same QP
      for (int k = 0; k < 5; k++)
        if (wait_q[k] && (!out_valid[k] || out_qp[k] != qp_q[k])) $fatal(1, "kind %0d was offered for slot %0d", k, qp_q[k]);
      // hand-outs first: they are older
      if (hsq_valid && hsq_ready) begin
        int q;
        q = qpn_of_slot(hsq_qp);
        if (hsq_copy.valid) begin
          if (!held[hsq_copy.at] || copy_of[hsq_copy.at] != q || copy_pi[hsq_copy.at] != int'(hsq_pi))
            $fatal(1, "doorbell %0d of QPN %0d with the copy in place %0d, which is of %0d of %0d", hsq_pi, q, hsq_copy.at, copy_pi[hsq_copy.at], copy_of[hsq_copy.at]);
          if (hsq_copy.long_wqe != copy_pi[hsq_copy.at][0]) $fatal(1, "length of a copy");
          held[hsq_copy.at] = 0;
          if (from_list[q]) n_kept++;
          n_copy++;
        end
        hand_out(0, hsq_qp, hsq_pi);
      end
      if (hrq_valid && hrq_ready) hand_out(1, hrq_qp, hrq_pi);
      if (htmr_valid && htmr_ready) hand_out(2, htmr_qp, 0);
      if (hturn_valid && hturn_ready) hand_out(3, hturn_qp, 0);
      if (hcnp_valid && hcnp_ready) hand_out(4, hcnp_qp, 0);
      if (sq_valid && sq_ready) begin
        if (sq_copy.valid) begin
          held[sq_copy.at] = 1;
          copy_of[sq_copy.at] = int'(sq_qpn);
          copy_pi[sq_copy.at] = int'(sq_pi);
        end
        if (sq_qpn < 24'(N)) from_list[sq_qpn[NumW-1:0]] = !dut.direct;
        if (sq_qpn < 24'(N) && exists[sq_qpn[NumW-1:0]]) taken(0, int'(sq_qpn), int'(sq_pi)); else bad_want++;
      end
      if (rq_valid && rq_ready) begin
        if (rq_qpn < 24'(N) && exists[rq_qpn[NumW-1:0]]) taken(1, int'(rq_qpn), int'(rq_pi)); else bad_want++;
      end
      if (tmr_valid && tmr_ready && exists[tmr_qpn]) taken(2, int'(tmr_qpn), 0);
      if (turn_valid && turn_ready && exists[turn_qpn]) taken(3, int'(turn_qpn), 0);
      if (cnp_valid && cnp_ready && exists[cnp_qpn]) taken(4, int'(cnp_qpn), 0);
      for (int i = 0; i < 3; i++) begin
        if (drop_valid[i]) begin
          if (!held[drop_at[i]]) $fatal(1, "place %0d given up, and holds nothing", drop_at[i]);
          held[drop_at[i]] = 0;
          n_drop++;
        end
      end
      bad_got += int'(ev_bad_db);
      if (list_busy) n_list++;
      else if (req_valid != 0) n_direct++;
      // workers
      for (int w = 0; w < W; w++) begin
        if (rel_valid[w]) begin
          if (!whave[w]) $fatal(1, "worker %0d gives up a slot that it has not", w);
          whave[w] = 0;
          wq[w] = -1;
        end
        if (req_valid[w] && req_ready[w]) begin
          if (wq[w] >= 0) $fatal(1, "worker %0d asks twice", w);
          wq[w] = int'(req_qpn[w]);
          for (int v = 0; v < W; v++) if (v != w && wq[v] == wq[w]) $fatal(1, "QPN %0d at two workers", wq[w]);
          wleft[w] = $urandom_range(0, 3) == 0 ? $urandom_range(0, 60) : 0;
          wasked[w] = 1;
        end
      end
      for (int k = 0; k < 5; k++)
        for (int q = 0; q < N; q++)
          if (open[k][q] && now - since[k][q] > 4000) $fatal(1, "kind %0d of QPN %0d waits since %0d", k, q, since[k][q]);
      if (drain && drain_done) begin
        for (int k = 0; k < 5; k++)
          for (int q = 0; q < N; q++)
            if (drain_open[k][q]) $fatal(1, "drain is done, kind %0d of QPN %0d is open", k, q);
      end
    end
  end

  // answers and back-pressure
  always @(negedge clk) begin
    rsp_valid = '0;
    for (int w = 0; w < W; w++) begin
      if (wasked[w]) begin
        if (wleft[w] > 0) wleft[w]--;
        else begin
          rsp_valid[w] = 1;
          wasked[w] = 0;
          rsp_slot[w] = qp_idx_t'(slot_of[wq[w]]);
          rsp_status[w] = QpcOk;
          if (!exists[wq[w]]) begin
            // memory may refuse several at once
            rsp_status[w] = !refuse || $urandom_range(0, 1) == 0 ? QpcNone : QpcRefused;
            if (rsp_status[w] == QpcNone) n_none++;
            else if (now % 8 != 0) begin
              rsp_valid[w] = 0;
              wasked[w] = 1;
            end else n_refused++;
          end
          // one refusal per cycle
          for (int v = 0; v < w; v++) if (rsp_valid[v] && rsp_status[v] == QpcNone && rsp_status[w] == QpcNone) begin
            rsp_valid[w] = 0;
            wasked[w] = 1;
          end
          if (rsp_valid[w]) begin
            whave[w] = rsp_status[w] == QpcOk;
            if (!whave[w]) wq[w] = -1;
          end
        end
      end
      req_ready[w] = $urandom_range(0, 2) != 0;
    end
    hsq_ready = fast || $urandom_range(0, 3) == 0;
    hrq_ready = fast || $urandom_range(0, 3) == 0;
    htmr_ready = fast || $urandom_range(0, 3) == 0;
    hturn_ready = fast || $urandom_range(0, 3) == 0;
    hcnp_ready = fast || $urandom_range(0, 3) == 0;
  end

  int next_pi[2][N];
  int load = 0;              // percent of cycles in which a source has something
  bit hot = 0;               // nearly all of it is of one QP
  function automatic logic [23:0] some_qpn(); return hot && $urandom_range(0, 19) != 0 ? 24'd1 : 24'($urandom_range(0, N - 1)); endfunction
  function automatic bit now_one(); return $urandom_range(0, 99) < load; endfunction

  // sources: what is offered stays until it is taken
  always @(negedge clk) begin
    #0.2;
    if (rst_n) begin
      if (!sq_valid && now_one()) begin
        sq_valid = 1;
        sq_qpn = $urandom_range(0, 40) == 0 ? (24'(N) << $urandom_range(0, 17)) | some_qpn() : some_qpn();
        sq_copy.at = copy_idx_t'($urandom);
        if (sq_qpn < 24'(N)) begin
          next_pi[0][sq_qpn[NumW-1:0]]++;
          sq_pi = wqe_idx_t'(next_pi[0][sq_qpn[NumW-1:0]]);
        end
        sq_copy.long_wqe = sq_pi[0];
        sq_copy.valid = $urandom_range(0, 1) == 0 && !held[sq_copy.at];
      end
      if (!rq_valid && now_one()) begin
        rq_valid = 1;
        rq_qpn = $urandom_range(0, 40) == 0 ? (24'(N) << $urandom_range(0, 17)) | some_qpn() : some_qpn();
        if (rq_qpn < 24'(N)) begin
          next_pi[1][rq_qpn[NumW-1:0]]++;
          rq_pi = wqe_idx_t'(next_pi[1][rq_qpn[NumW-1:0]]);
        end
      end
      if (!tmr_valid && now_one()) begin
        tmr_valid = 1;
        tmr_qpn = NumW'(some_qpn());
      end
      if (!turn_valid && now_one()) begin
        turn_valid = 1;
        turn_qpn = NumW'(some_qpn());
      end
      if (!cnp_valid && now_one()) begin
        cnp_valid = 1;
        cnp_qpn = NumW'(some_qpn());
      end
    end
  end
  always @(posedge clk) begin
    #0.1;
    if (sq_taken) sq_valid = 0;
    if (rq_taken) rq_valid = 0;
    if (tmr_taken) tmr_valid = 0;
    if (turn_taken) turn_valid = 0;
    if (cnp_taken) cnp_valid = 0;
  end
  bit sq_taken, rq_taken, tmr_taken, turn_taken, cnp_taken;
  always @(posedge clk) begin
    sq_taken = sq_valid && sq_ready;
    rq_taken = rq_valid && rq_ready;
    tmr_taken = tmr_valid && tmr_ready;
    turn_taken = turn_valid && turn_ready;
    cnp_taken = cnp_valid && cnp_ready;
  end

  // nothing else is there: one doorbell of a QP that is not there is counted once
  task automatic one_bad(bit rq, logic [23:0] qpn);
    int bad_was;
    refuse = 0;
    bad_was = bad_got;
    @(negedge clk);
    if (rq) begin
      rq_valid = 1;
      rq_qpn = qpn;
    end else begin
      sq_valid = 1;
      sq_qpn = qpn;
      sq_copy = '0;
    end
    repeat (200) @(negedge clk);
    if (bad_got != bad_was + 1) $fatal(1, "a bad doorbell (%0d) was counted %0d times", rq, bad_got - bad_was);
  endtask

  initial begin
    for (int q = 0; q < N; q++) begin
      exists[q] = $urandom_range(0, 3) != 0;
      slot_of[q] = q * 3 + 1;
      for (int k = 0; k < 2; k++) begin
        newest[k][q] = 0;
        told[k][q] = 0;
        next_pi[k][q] = 0;
      end
    end
    exists[0] = 0;
    exists[1] = 1;
    exists[2] = 0;
    for (int w = 0; w < W; w++) wq[w] = -1;
    repeat (4) @(posedge clk);
    rst_n = 1;
    for (int round = 0; round < 60; round++) begin
      load = round % 4 == 0 ? 100 : round % 4 == 1 ? 5 : round % 4 == 2 ? 30 : 1;
      fast = round % 3 == 0;
      hot = round % 8 == 4;
      repeat ($urandom_range(100, 1500)) @(posedge clk);
      // a drain in the middle of it
      @(negedge clk);
      drain = 1;
      drain_from = now;
      for (int k = 0; k < 5; k++) for (int q = 0; q < N; q++) drain_open[k][q] = open[k][q];
      while (!drain_done) begin
        @(negedge clk);
        if (now - drain_from > 8000) $fatal(1, "drain since %0d", drain_from);
      end
      n_drain++;
      // it stays done, whatever comes meanwhile
      repeat (round % 4 == 2 ? 400 : $urandom_range(0, 20)) begin
        @(negedge clk);
        if (!drain_done) $fatal(1, "a drain that was done is not");
      end
      drain = 0;
      repeat (4) @(negedge clk);
      if (round % 5 == 4) begin
        load = 0;
        for (int i = 0; !(idle && !sq_valid && !rq_valid && !tmr_valid && !turn_valid && !cnp_valid); i++) begin
          @(negedge clk);
          if (i > 8000) $fatal(1, "never idle");
        end
        repeat (3) @(negedge clk);
        for (int k = 0; k < 5; k++)
          for (int q = 0; q < N; q++) if (open[k][q]) $fatal(1, "idle, and kind %0d of QPN %0d is open", k, q);
        for (int p = 0; p < int'(NumCopy); p++) if (held[p]) $fatal(1, "idle, and place %0d holds a copy", p);
        // doorbells of QPs that do not exist are merged in the list like others
        if (bad_got > bad_want || (bad_want > 0 && bad_got == 0)) $fatal(1, "%0d bad doorbells, at most %0d wanted", bad_got, bad_want);
        for (int q = 0; q < N; q++) for (int k = 2; k < 5; k++) begin
          if (last_in[k][q] != 0 && last_out[k][q] <= last_in[k][q]) $fatal(1, "the last of kind %0d of QPN %0d was never handed out", k, q);
          count[k][q] = 0;
        end
        for (int q = 0; q < N; q++) if (exists[q]) for (int k = 0; k < 2; k++)
          if (told[k][q] != newest[k][q]) $fatal(1, "QPN %0d: told %0d, newest %0d", q, told[k][q], newest[k][q]);
      end
    end
    hot = 0;
    one_bad(0, 24'd0);
    one_bad(1, 24'd0);
    one_bad(0, 24'(N) + 24'd1);
    one_bad(1, 24'(N) + 24'd1);
    for (int k = 0; k < 5; k++) if (handed[k] < 300) $fatal(1, "kind %0d handed out %0d times only", k, handed[k]);
    if (n_list < 500 || n_direct < 50 || n_drop < 20 || n_copy < 20 || n_kept < 20 || n_none < 20 || n_refused < 20)
      $fatal(1, "corners: list %0d direct %0d dropped copies %0d copies %0d from the list %0d none %0d refused %0d", n_list, n_direct, n_drop, n_copy, n_kept, n_none, n_refused);
    $display("PASS %0d %0d %0d %0d %0d handed out, %0d copies used, %0d dropped, %0d look-ups found no QP, %0d drains, longest wait %0d cycles",
             handed[0], handed[1], handed[2], handed[3], handed[4], n_copy, n_drop, n_none, n_drain, longest);
    $finish;
  end
endmodule
