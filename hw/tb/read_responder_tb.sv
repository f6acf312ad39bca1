// SPDX-License-Identifier: Apache-2.0
//
// read_responder: READs and atomics of random lengths on random QPs against a model that cuts them packet by packet;
// random latency of QP and MR ports, stalled packets and fragments, duplicates of atomics remembered and forgotten, regions
// that go away, payload that fails, QPs that leave the states that answer, errors behind responses, new connections,
// fair turns, drain, throughput. QPs change their slots meanwhile: what is kept of them is read out, overwritten, and loaded into another one. DataW does not matter to this block.

module read_responder_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic job_valid = 0, job_ready, done_valid, hold, hold_other, qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0;
  logic mr_req_valid, mr_req_ready = 0, mr_rsp_valid = 0, pkt_valid, pkt_ready = 0, frag_valid, frag_ready = 0;
  logic err_valid = 0, err_ready, nak_valid, nak_ready = 0, qp_err_valid, qp_err_ready = 0, qp_err_access;
  logic ev_nak_access, ev_nak_op, idle, drain = 0, drain_done;
  rsp_job_t job = '0;
  qp_idx_t done_qp = 0, hold_qp = 0, qp_req_idx, qp_err_idx;
  rsp_done_t done;
  rsp_slot_t done_left;
  qp_attr_t qp_rsp = '0;
  mr_idx_t mr_req_idx;
  mr_t mr_rsp = '0;
  tx_pkt_t pkt;
  tx_frag_t frag;
  tx_err_t err = '0;
  ack_t nak;

  qp_idx_t slot_of[NumQp], qp_req_slot, qp_err_slot, move_qp = '0;
  rsp_job_t job_d;
  tx_pkt_t pkt_d;
  tx_err_t err_d;
  ack_t nak_d;
  logic job_ready_d, err_ready_d;
  bit moving = 0;

  read_responder dut (
    .clk_i(clk), .rst_ni(rst_n),
    .job_valid_i(job_valid && !(moving && job.qp == move_qp)), .job_ready_o(job_ready_d), .job_i(job_d),
    .done_qp_i(slot_of[done_qp]), .done_valid_o(done_valid), .done_o(done), .done_left_o(done_left),
    .hold_qp_i({slot_of[done_qp], slot_of[hold_qp]}), .hold_o({hold_other, hold}),
    .qp_req_valid_o(qp_req_valid), .qp_req_ready_i(qp_req_ready), .qp_req_idx_o(qp_req_slot),
    .qp_rsp_valid_i(qp_rsp_valid), .qp_rsp_i(qp_rsp),
    .mr_req_valid_o(mr_req_valid), .mr_req_ready_i(mr_req_ready), .mr_req_idx_o(mr_req_idx),
    .mr_rsp_valid_i(mr_rsp_valid), .mr_rsp_i(mr_rsp),
    .pkt_valid_o(pkt_valid), .pkt_ready_i(pkt_ready), .pkt_o(pkt_d),
    .frag_valid_o(frag_valid), .frag_ready_i(frag_ready), .frag_o(frag),
    .err_valid_i(err_valid && !(moving && err.qp == move_qp)), .err_ready_o(err_ready_d), .err_i(err_d),
    .nak_valid_o(nak_valid), .nak_ready_i(nak_ready), .nak_o(nak_d),
    .qp_err_valid_o(qp_err_valid), .qp_err_ready_i(qp_err_ready), .qp_err_idx_o(qp_err_slot), .qp_err_access_o(qp_err_access),
    .ev_nak_access_o(ev_nak_access), .ev_nak_op_o(ev_nak_op),
    .probe_qp_i(probe_qp), .busy_o(busy),
    .ctx_valid_i(ctx_valid), .ctx_ready_o(ctx_ready), .ctx_load_i(ctx_load), .ctx_word_i(ctx_word), .ctx_qp_i(ctx_qp),
    .ctx_i(ctx_in), .ctx_o(ctx_out), .ctx_at_i(ctx_at), .ctx_value_i(value_in), .ctx_value_o(value_out),
    .idle_o(idle), .drain_i(drain), .drain_done_o(drain_done)
  );

  // ---- slots: the model knows QPs, the design slots; a QP is moved when nothing of it is under way ----------
  qp_idx_t qp_of[NumQp];
  logic busy, ctx_valid = 0, ctx_ready, ctx_load = 0, ctx_word = 0;
  qp_idx_t probe_qp = '0, ctx_qp = '0;
  rsp_keep_t ctx_in = '0, ctx_out;
  logic [2:0] ctx_at = '0;
  rsp_value_t value_in = '0, value_out;
  always_comb begin
    job_d = job;
    job_d.qp = slot_of[job.qp];
    err_d = err;
    err_d.qp = slot_of[err.qp];
    job_ready = job_ready_d && !(moving && job.qp == move_qp);
    err_ready = err_ready_d && !(moving && err.qp == move_qp);
    pkt = pkt_d;
    pkt.qp = qp_of[pkt_d.qp];
    nak = nak_d;
    nak.qp = qp_of[nak_d.qp];
    qp_req_idx = qp_of[qp_req_slot];
    qp_err_idx = qp_of[qp_err_slot];
  end
  bit no_moves = 1;
  int n_moves = 0, n_busy = 0;
  task automatic access(bit load, bit word, qp_idx_t at_slot, int at_word);
    ctx_valid = 1;
    ctx_load = load;
    ctx_word = word;
    ctx_qp = at_slot;
    ctx_at = 3'(at_word);
    do begin
      @(posedge clk);
      ctx_took = ctx_ready;
      @(negedge clk);
    end while (!ctx_took);
    ctx_valid = 0;
    ctx_qp = qp_idx_t'($urandom());
    ctx_at = 3'($urandom());
  endtask
  bit ctx_took, was_busy;
  qp_idx_t from, to, other;
  rsp_keep_t moved;
  rsp_value_t moved_value[8];
  int n_values = 8;
  initial begin
    for (int i = 0; i < int'(NumQp); i++) begin
      slot_of[i] = qp_idx_t'(i);
      qp_of[i] = qp_idx_t'(i);
    end
    forever begin
      @(negedge clk);
      if (!no_moves && $urandom() % 4 == 0) begin
        move_qp = qp_idx_t'(21 * ($urandom() % NumTest));
        if (!(job_valid && job.qp == move_qp) && !(err_valid && err.qp == move_qp)) begin
          moving = 1;
          from = slot_of[move_qp];
          probe_qp = from;
          @(posedge clk);
          was_busy = busy;
          @(negedge clk);
          n_busy += int'(was_busy);
          if (!was_busy) begin
            do other = qp_idx_t'($urandom()); while (other % 21 == 0);
            to = slot_of[other];
            access(0, 0, from, 0);
            moved = ctx_out;
            for (int i = 0; i < n_values; i++) begin
              access(0, 1, from, i);
              moved_value[i] = value_out;
            end
            ctx_in = {$bits(rsp_keep_t){1'b1}} & $bits(rsp_keep_t)'($urandom());
            value_in = {$urandom(), $urandom(), $urandom()};
            access(1, 0, from, 0);
            for (int i = 0; i < n_values; i++) access(1, 1, from, i);
            ctx_in = moved;
            access(1, 0, to, 0);
            for (int i = 0; i < n_values; i++) begin
              value_in = moved_value[i];
              access(1, 1, to, i);
            end
            slot_of[move_qp] = to;
            qp_of[to] = move_qp;
            slot_of[other] = from;
            qp_of[from] = other;
            n_moves++;
          end
          moving = 0;
        end
      end
    end
  end

  int stall = 0;
  function automatic bit go();
    return int'($urandom() % 100) >= stall;
  endfunction

  // ---- tables -------------------------------------------------------------------------------------
  localparam int NumTest = 12;             // QPs in use: index 21 * i
  localparam logic [63:0] Va = 64'h0000_1234_5678_9abc;
  qp_attr_t qps[NumQp];
  mr_t      mrs[NumQp];                    // of the key with the number of the QP
  qp_idx_t  qp_at;
  mr_idx_t  mr_at;
  qp_idx_t  qp_pend[$];
  mr_idx_t  mr_pend[$];
  bit      look = 0;                       // settle looks at the hold of look_qp
  qp_idx_t look_qp = 0;

  // ---- model: what must leave, per QP -----------------------------------------------------------------
  typedef struct packed {
    logic [7:0]  opcode;
    psn_t        psn;
    logic [23:0] msn;
    logic [4:0]  credits;
    logic        aeth;
    logic        atomic;
    logic [63:0] value;
    logic [63:0] iova;
    logic [12:0] len;
    logic        last;       // of its request
    logic        dup;
  } want_t;
  want_t    want[NumQp][$];
  tx_frag_t want_frag[$], f1;
  logic [87:0] memo[NumQp][$];             // atomics: PSN, value; newest last
  int       issued[NumQp], fresh[NumQp];
  psn_t     psn[NumQp];
  bit       stopped[NumQp];                // nothing more may leave, but for what is being cut
  bit       expect_nak[NumQp], expect_err[NumQp], expect_access[NumQp];
  int       cycle, n_pkt, n_nak, n_qp_err, n_value, n_gone, n_replay, n_late, n_after_stop, n_access, n_op;
  int       run_qp = -1, run_len = 0, max_run = 0;
  bit       check_run = 0;
  want_t    w;

  rsp_job_t todo[$];
  want_t    todo_want[$];                  // packets of the jobs in todo, in order; the last of each has `last`
  int       todo_n[$];

  // What the script wants to be asked. It is carried out in one place, because Verilator copies a task to each of its calls.
  typedef enum logic [2:0] {DoRead, DoAtomic, DoReadAgain, DoAtomicAgain, DoError, DoConnect, DoRandom} do_e;
  typedef struct packed {
    do_e         what;
    logic [7:0]  q;
    logic [31:0] len;
  } cmd_t;
  cmd_t cmds[$];
  function automatic void ask(do_e what, int q, int len);
    cmd_t c;
    c = {what, 8'(q), 32'(len)};
    cmds.push_back(c);
  endfunction

  function automatic int random_len(int mtu);
    int pick;
    pick = int'($urandom() % 8);
    case (pick)
      0: return 0;
      1: return 1 + int'($urandom() % 4);
      2: return mtu + int'($urandom() % 3) - 1;
      3: return 4096 + int'($urandom() % 3) - 1;
      4: return 3 * mtu;
      5: return 4 * mtu + int'($urandom() % 3) - 1;
      default: return int'($urandom() % 32'(9 * mtu));
    endcase
  endfunction

  // Makes a request, if the queue has room for it (the transport's rule), and what it must lead to.
  cmd_t     c;
  rsp_job_t j;
  want_t    e;
  psn_t     at;
  logic [87:0] m1;
  int       aq, mtu, rest, n, pick, open, open_fresh, skipped;
  bit       dup, found, found_at;
  task automatic carry_out();
    aq = int'(c.q);
    mtu = 128 << qps[aq].path_mtu;
    if (c.what == DoRandom) begin
      pick = int'($urandom() % 10);
      c.what = pick < 5 ? DoRead : pick < 7 ? DoAtomic : pick == 7 ? DoReadAgain : DoAtomicAgain;
      c.len = 32'(random_len(mtu));
    end
    dup = c.what == DoReadAgain || c.what == DoAtomicAgain;
    open = (issued[aq] - int'(dut.head[slot_of[aq]].done)) & 31;
    open_fresh = (fresh[aq] - int'(dut.head[slot_of[aq]].fresh)) & 31;
    if (c.what inside {DoRead, DoAtomic} && open_fresh == 8) skipped++;
    else if (dup && open - open_fresh == 7) skipped++;
    else if (stopped[aq] && c.what != DoConnect) skipped++;
    else begin
      j = '0;
      j.qp = qp_idx_t'(aq);
      j.slot = rsp_slot_t'(issued[aq]);
      j.dup = dup;
      j.msn = 24'($urandom());
      j.credits = 5'($urandom());
      j.psn = psn[aq];
      j.va = Va + 64'($urandom() % 1000);
      j.rkey = {14'd0, 10'(aq), 8'h5a};
      j.len = c.len;
      n = 0;
      e = '0;
      e.msn = j.msn;
      e.credits = j.credits;
      e.dup = dup;
      e.last = 1;
      e.aeth = 1;
      case (c.what)
        DoRead, DoReadAgain: begin
          j.kind = RspRead;
          if (dup) j.psn = psn[aq] - psn_t'($urandom() % 100);
          e.psn = j.psn;
          e.iova = mrs[aq].iova + (j.va - mrs[aq].va);
          rest = int'(c.len);
          do begin
            e.len = 13'(rest < mtu ? rest : mtu);
            rest -= int'(e.len);
            e.last = rest == 0;
            e.opcode = n == 0 ? (e.last ? 8'h10 : 8'h0d) : e.last ? 8'h0f : 8'h0e;
            e.aeth = e.opcode != 8'h0e;
            todo_want.push_back(e);
            e.psn = e.psn + 1;
            e.iova = e.iova + 64'(e.len);
            n++;
          end while (rest != 0);
          if (!dup) psn[aq] = psn[aq] + psn_t'(n);
        end
        DoAtomic, DoAtomicAgain: begin
          j.kind = RspAtomic;
          j.va = {$urandom(), $urandom()};
          e.value = j.va;
          found = !dup;
          if (dup) begin
            at = psn[aq] - psn_t'($urandom() % 40);
            if (memo[aq].size() != 0 && $urandom() % 4 != 0) begin
              pick = int'($urandom() % 32'(memo[aq].size()));
              m1 = memo[aq][pick];
              at = m1[87:64];
            end
            for (int i = 0; i < memo[aq].size(); i++) begin
              m1 = memo[aq][i];
              if (m1[87:64] == at) begin
                found = 1;
                e.value = m1[63:0];
              end
            end
            j.psn = at;
            if (found) n_replay++;
            else n_gone++;
          end else begin
            memo[aq].push_back({j.psn, j.va});
            if (memo[aq].size() > 8) void'(memo[aq].pop_front());
            psn[aq] = psn[aq] + 1;
          end
          e.opcode = 8'h12;
          e.psn = j.psn;
          e.atomic = 1;
          if (found) begin
            todo_want.push_back(e);
            n = 1;
          end
        end
        DoError: begin
          j.kind = RspError;
          j.access = 1'($urandom());
          expect_access[aq] = j.access;
        end
        default: begin
          j.kind = RspInit;
          want[aq].delete();
          memo[aq].delete();
          stopped[aq] = 0;
          qps[aq].state = $urandom() % 3 == 0 ? QpRtr : $urandom() % 3 == 0 ? QpSqd : QpRts;
          mrs[aq].valid = 1;
          mrs[aq].variant = 8'h5a;
          mrs[aq].remote_read = 1;
          mrs[aq].length = 64'd200000;
          psn[aq] = $urandom() % 3 == 0 ? 24'hfffffc : psn_t'($urandom());
          fresh[aq] = int'(dut.head[slot_of[aq]].fresh);
        end
      endcase
      if (j.kind != RspInit) begin
        issued[aq]++;
        if (!dup) fresh[aq]++;
      end
      todo.push_back(j);
      todo_n.push_back(n);
    end
  endtask
  always @(negedge clk) if (rst_n && cmds.size() != 0 && todo.size() < 3 && !moving) begin
    c = cmds.pop_front();
    carry_out();
  end

  // ---- drivers -------------------------------------------------------------------------------------------
  bit job_taken = 0, hold_pkts = 0;
  int job_n;
  always @(negedge clk) if (rst_n) begin
    qp_rsp_valid = 0;
    mr_rsp_valid = 0;
    qp_rsp = {($bits(qp_attr_t) / 32 + 1) {$urandom()}};
    mr_rsp = {($bits(mr_t) / 32 + 1) {$urandom()}};
    if (qp_pend.size() != 0 && go()) begin
      qp_rsp_valid = 1;
      qp_at = qp_pend.pop_front();
      qp_rsp = qps[qp_at];
    end
    if (mr_pend.size() != 0 && go()) begin
      mr_rsp_valid = 1;
      mr_at = mr_pend.pop_front();
      mr_rsp = mrs[mr_at[7:0]];
    end
    qp_req_ready = go();
    mr_req_ready = go();
    pkt_ready = go() && !hold_pkts;
    frag_ready = go();
    nak_ready = go();
    qp_err_ready = go();
    if (job_taken) job_valid = 0;
    job_taken = 0;
    if (!job_valid && todo.size() != 0 && go()) begin
      job = todo.pop_front();
      job_n = todo_n.pop_front();
      job_valid = 1;
    end
    if (!look) done_qp = qp_idx_t'(21 * ($urandom() % NumTest));
    hold_qp = look ? look_qp : qp_idx_t'(21 * ($urandom() % NumTest));
  end

  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n) begin
      if (qp_req_valid && qp_req_ready) qp_pend.push_back(qp_req_idx);
      if (mr_req_valid && mr_req_ready) mr_pend.push_back(mr_req_idx);
      if (want[hold_qp].size() != 0 && !stopped[hold_qp] && !expect_nak[hold_qp] && !hold) $fatal(1, "QP %0d: not held, %0d packets to come, tail %0d left %0d head %0d", hold_qp, want[hold_qp].size(), dut.tail[hold_qp], dut.left[hold_qp], dut.head[hold_qp].done);
      if (!look && want[done_qp].size() != 0 && !stopped[done_qp] && !expect_nak[done_qp] && !hold_other) $fatal(1, "QP %0d: not held at the other port", done_qp);
      if (!look && want[done_qp].size() != 0 && !stopped[done_qp] && !expect_nak[done_qp] && done_left == rsp_slot_t'(issued[done_qp]))
        $fatal(1, "QP %0d: all is said to have left, %0d packets to come", done_qp, want[done_qp].size());
      if (pkt_valid && pkt_ready) begin
        n_pkt++;
        if (want[pkt.qp].size() == 0) $fatal(1, "packet of QP %0d nobody wants: %p", pkt.qp, pkt);
        w = want[pkt.qp].pop_front();
        // duplicates whose region is gone are passed over
        while (expect_nak[pkt.qp] && w.dup && (w.psn != pkt.psn || w.opcode != pkt.opcode) && want[pkt.qp].size() != 0)
          w = want[pkt.qp].pop_front();
        if (pkt.opcode !== w.opcode || pkt.psn !== w.psn || pkt.imm !== {3'd0, w.credits, w.msn} || pkt.has_aeth !== w.aeth ||
            pkt.has_value !== w.atomic || (w.atomic && pkt.va !== w.value) || pkt.len !== w.len || !pkt.response ||
            pkt.inl || pkt.has_reth || pkt.has_imm || pkt.has_ieth || pkt.ack_req || pkt.solicited)
          $fatal(1, "QP %0d: packet op %h psn %h imm %h len %0d va %h, want op %h psn %h msn %h len %0d value %h", pkt.qp, pkt.opcode,
                 pkt.psn, pkt.imm, pkt.len, pkt.va, w.opcode, w.psn, w.msn, w.len, w.value);
        if (w.atomic) n_value++;
        if (w.len != 0) begin
          f1 = '{iova: w.iova, len: w.len, last: 1'b1};
          want_frag.push_back(f1);
        end
        if (stopped[pkt.qp]) n_after_stop++;
        if (int'(pkt.qp) == run_qp) run_len++;
        else begin
          run_qp = int'(pkt.qp);
          run_len = 1;
        end
        if (check_run && run_len > max_run) max_run = run_len;
      end
      if (frag_valid && frag_ready) begin
        // a fragment may come with its packet or behind it
        if (want_frag.size() == 0 && !(pkt_valid)) $fatal(1, "fragment before its packet");
        seen_frag.push_back(frag);
      end
      while (seen_frag.size() != 0 && want_frag.size() != 0) begin
        if (seen_frag[0] !== want_frag[0]) $fatal(1, "fragment %p, want %p", seen_frag[0], want_frag[0]);
        void'(seen_frag.pop_front());
        void'(want_frag.pop_front());
      end
      if (nak_valid && nak_ready) begin
        n_nak++;
        if (!expect_nak[nak.qp]) $fatal(1, "NAK nobody expects: %p", nak);
        if (nak.syndrome == SynNakAccess) begin
          // duplicates whose region is gone are passed over
          w = want[nak.qp].pop_front();
          while (w.dup && want[nak.qp].size() != 0) w = want[nak.qp].pop_front();
          if (nak.psn !== w.psn || nak.msn !== w.msn - 24'd1) $fatal(1, "NAK psn %h msn %h, next packet psn %h msn %h", nak.psn, nak.msn, w.psn, w.msn);
          n_access++;
        end else begin
          if (nak.syndrome != SynNakOp || nak.psn !== err_psn || nak.msn !== err_msn - 24'd1) $fatal(1, "NAK %p of PSN %h", nak, err_psn);
          n_op++;
        end
        expect_nak[nak.qp] = 0;
        stopped[nak.qp] = 1;
        if (n_after_stop != 0 && nak.syndrome == SynNakAccess) $fatal(1, "packets behind a NAK");
      end
      if (qp_err_valid && qp_err_ready) begin
        n_qp_err++;
        if (!expect_err[qp_err_idx]) $fatal(1, "QP error of %0d", qp_err_idx);
        if (qp_err_access !== expect_access[qp_err_idx]) $fatal(1, "QP error of %0d: access %b", qp_err_idx, qp_err_access);
        expect_err[qp_err_idx] = 0;
      end
      if (ev_nak_access) ev_access++;
      if (ev_nak_op) ev_op++;
      job_taken = job_valid && job_ready;
      if (job_taken) begin
        repeat (job_n) begin
          w = todo_want.pop_front();
          want[job.qp].push_back(w);
        end
      end
    end
  end
  tx_frag_t seen_frag[$];
  psn_t err_psn;
  logic [23:0] err_msn;
  int ev_access, ev_op;

  int sq;
  task automatic settle(string what);
    t0 = 0;
    @(negedge clk);
    no_moves = 1;
    while (cmds.size() != 0 || todo.size() != 0 || job_valid || !idle || moving) begin
      @(negedge clk);
      t0++;
      if (t0 > 300000) $fatal(1, "%s: does not come to rest", what);
    end
    for (int i = 0; i < n_test; i++) begin
      sq = 21 * i;
      done_qp = qp_idx_t'(sq);
      look_qp = qp_idx_t'(sq);
      look = 1;
      @(negedge clk);
      @(negedge clk);
      if (want[sq].size() != 0 && !stopped[sq]) $fatal(1, "%s: QP %0d: %0d packets missing", what, sq, want[sq].size());
      if (expect_nak[sq] || expect_err[sq]) $fatal(1, "%s: QP %0d: NAK %0d, error %0d missing", what, sq, expect_nak[sq], expect_err[sq]);
      if (done.done != rsp_slot_t'(issued[sq])) $fatal(1, "%s: QP %0d: %0d of %0d left the queue", what, sq, done.done, rsp_slot_t'(issued[sq]));
      if (done.fresh != rsp_slot_t'(fresh[sq])) $fatal(1, "%s: QP %0d: %0d first executions, want %0d", what, sq, done.fresh, rsp_slot_t'(fresh[sq]));
      if (hold || hold_other || done_left != done.done) $fatal(1, "%s: QP %0d is held for nothing", what, sq);
    end
    look = 0;
    if (want_frag.size() != 0 || seen_frag.size() != 0) $fatal(1, "%s: %0d fragments missing, %0d too many", what, want_frag.size(), seen_frag.size());
  endtask

  always @(posedge clk) if (cycle > 1000000)
    $fatal(1, "stuck in mode %0d: QP %0d, %0d commands, %0d requests, turn %0d, %0d packets of it to come, NAK %0d", mode, q, cmds.size(), todo.size(),
           dut.turn_q, want[q].size(), expect_nak[q]);

  // Bounds in variables: Verilator would unroll the loops.
  int n_test = NumTest, n_rounds = 200, n_cmds = 60, n4 = 4, n8 = 8, n400 = 400, n_qp = NumQp;
  int t0, q, base, mode, v, c_small, c_one, c_big;
  initial begin
    for (int i = 0; i < n_qp; i++) begin
      qps[i] = {($bits(qp_attr_t) / 32 + 1) {$urandom()}};
      qps[i].state = QpNone;
      qps[i].path_mtu = 3'(1 + i % 5);
      qps[i].pd = 24'(i + 7);
      mrs[i] = {($bits(mr_t) / 32 + 1) {$urandom()}};
      mrs[i].pd = 24'(i + 7);
      mrs[i].va = Va;
      mrs[i].mw = 1'b0;
    end
    repeat (4) @(negedge clk);
    rst_n = 1;
    @(negedge clk);
    if (idle || done_valid) $fatal(1, "idle while the queues are being cleared");
    while (!done_valid) @(negedge clk);
    for (int i = 0; i < n_test; i++) ask(DoConnect, 21 * i, 0);

    // random requests, at the end of a round something happens to one QP
    for (int round = 0; round < n_rounds; round++) begin
      no_moves = round % 8 == 7;
      stall = round % 3 == 0 ? 0 : int'($urandom() % 80);
      for (int i = 0; i < n_cmds; i++) begin
        q = 21 * (round % 5 == 0 ? 3 : int'($urandom() % NumTest));
        ask(DoRandom, q, 0);
        if ($urandom() % 4 == 0) repeat (int'($urandom() % 60)) @(negedge clk);
      end
      while (cmds.size() != 0 || todo.size() != 0 || job_valid) @(negedge clk);
      mode = round % 5;
      if (mode != 4) ask(DoRead, q, 30000);
      if (mode == 2) for (int k = 0; k < n8; k++) ask(DoReadAgain, q, 5000);
      if (mode == 3) begin
        ask(DoError, q, 0);
        expect_err[q] = 1;
      end
      base = n_nak;
      while (cmds.size() != 0 || todo.size() != 0 || job_valid) @(negedge clk);
      if (mode != 3) repeat (int'($urandom() % 200)) @(negedge clk);
      n_after_stop = 0;
      case (mode)
        0: begin  // the region goes away: what is being answered is refused, if it is not too late
          expect_access[q] = 1;
          expect_nak[q] = 1;
          expect_err[q] = 1;
          v = int'($urandom() % 4);
          mrs[q].valid = v != 0;
          mrs[q].remote_read = v != 1;
          if (v == 2) mrs[q].length = 64'd1;
          if (v == 3) mrs[q].variant = 8'h5b;
          while (!idle) @(negedge clk);
          if (expect_nak[q]) begin
            n_late++;
            expect_nak[q] = 0;
            expect_err[q] = 0;
            stopped[q] = 1;
          end
        end
        1: begin  // payload of a response fails: nothing but what was being cut follows; a second report says nothing new
          err = '{qp: qp_idx_t'(q), response: 1'b1, wqe: 16'd0, psn: psn[q] - 24'd5, msn: 24'($urandom())};
          expect_access[q] = 0;
          err_psn = err.psn;
          err_msn = err.msn;
          expect_nak[q] = 1;
          expect_err[q] = 1;
          err_valid = 1;
          for (int k = 0; k < 2; k++) begin
            @(posedge clk);
            while (!err_ready) @(posedge clk);
            stopped[q] = 1;
            @(negedge clk);
          end
          err_valid = 0;
        end
        2: begin  // the QP leaves the states that answer
          qps[q].state = $urandom() % 2 == 0 ? QpErr : QpReset;
          stopped[q] = 1;
          if (want[q].size() == 0) n_late++;
        end
        default: ;
      endcase
      settle("random");
      if (n_after_stop > 9) $fatal(1, "%0d packets of a QP that must be silent (%0d)", n_after_stop, mode);
      if (n_nak != base && mode > 1) $fatal(1, "NAK for nothing");
      if (mode != 4) ask(DoConnect, q, 0);
    end
    if (n_access < 10 || n_op < 20 || ev_access != n_access || ev_op != n_op || n_replay < 50 || n_gone < 50 || n_value < 200 || n_late > 60)
      $fatal(1, "corner not reached: %0d %0d %0d %0d %0d %0d %0d late %0d", n_access, n_op, ev_access, ev_op, n_replay, n_gone, n_value, n_late);

    if (n_moves < 1000 || n_busy < 1000) $fatal(1, "%0d moves, %0d times busy", n_moves, n_busy);

    // turns are fair: four long READs, then a short one of another QP gets in between
    stall = 0;
    for (int i = 0; i < n8; i++) qps[21*i].path_mtu = 3'd1;
    for (int i = 0; i < n4; i++) ask(DoRead, 21 * i, 100000);
    repeat (100) @(negedge clk);
    check_run = 1;
    base = n_pkt;
    ask(DoRead, 21 * 4, 100);
    while (cmds.size() != 0 || todo.size() != 0 || job_valid) @(negedge clk);
    while (want[84].size() != 0) @(negedge clk);
    if (n_pkt - base > 40) $fatal(1, "a short READ waited for %0d packets", n_pkt - base);
    check_run = 0;
    if (max_run > 4) $fatal(1, "%0d packets in a row", max_run);

    // drain: done while long READs go on; everything of a QP in RESET is gone by then
    for (int i = 0; i < n4; i++) ask(DoRead, 21 * i, 150000);
    for (int k = 0; k < n8; k++) ask(DoRead, 105, 20000);
    for (int k = 0; k < n8; k++) ask(DoReadAgain, 105, 20000);
    while (cmds.size() != 0 || todo.size() != 0 || job_valid) @(negedge clk);
    qps[105].state = QpReset;
    stopped[105] = 1;
    @(negedge clk);
    for (int k = 0; k < 2; k++) begin
      // the second time a stalled egress holds the drain up
      hold_pkts = k == 1;
      if (hold_pkts) repeat (20) @(negedge clk);
      drain = 1;
      t0 = 0;
      while (!drain_done) begin
        @(negedge clk);
        t0++;
        if (t0 == 300) hold_pkts = 0;
        if (t0 > 1000) $fatal(1, "drain not done");
      end
      if (t0 < (k == 0 ? 10 : 300)) $fatal(1, "drain done too early: %0d", t0);
      // a turn that began before the QP left its state counts as its turn of the first round
      if (k == 1 && int'(dut.head[slot_of[105]].done) != (issued[105] & 31)) $fatal(1, "requests of a QP in RESET are left");
      if (k == 0) begin
        n_after_stop = 0;
        if (want[0].size() == 0) $fatal(1, "drain waited for the whole READ");
      end
      drain = 0;
      @(negedge clk);
      if (drain_done) $fatal(1, "drain_done without drain");
    end
    settle("drain");
    if (n_after_stop != 0) $fatal(1, "packets of a QP that was drained");
    drain = 1;
    repeat (5) @(negedge clk);
    if (!drain_done) $fatal(1, "nothing to drain, but not done");
    drain = 0;
    ask(DoConnect, 105, 0);

    // throughput: small READs of one and of eight QPs; MTU 1024
    for (int i = 0; i < n8; i++) qps[21*i].path_mtu = 3'd3;
    for (int k = 0; k < 3; k++) begin
      base = n_pkt;
      t0 = cycle;
      if (k < 2) begin
        for (int i = 0; i < n400; i++) begin
          q = k == 0 ? 21 : 21 * (i % 8);
          while (cmds.size() + todo.size() > 1 || ((fresh[q] - int'(dut.head[slot_of[q]].fresh)) & 31) > 6) @(negedge clk);
          ask(DoRead, q, 8);
        end
      end else begin
        for (int i = 0; i < n4; i++) ask(DoRead, 21, 150000);
      end
      while (cmds.size() != 0 || todo.size() != 0 || job_valid || !idle) @(negedge clk);
      v = (cycle - t0 - 20) * 100 / (n_pkt - base);
      if (k == 0) c_one = v;
      if (k == 1) c_small = v;
      if (k == 2) c_big = v;
    end
    settle("end");
    if (c_one > 560 || c_small > 560 || c_big > 220) $fatal(1, "too slow: %0d %0d %0d", c_one, c_small, c_big);
    $display("PASS %0d moves, %0d packets, %0d values, %0d replays, %0d forgotten, %0d+%0d NAKs, %0d QP errors; cycles/100: small %0d, of 8 QPs %0d, MTU 1024 %0d",
             n_moves, n_pkt, n_value, n_replay, n_gone, n_access, n_op, n_qp_err, c_one, c_small, c_big);
    $finish;
  end
endmodule
