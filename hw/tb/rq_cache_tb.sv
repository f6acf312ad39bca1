// SPDX-License-Identifier: Apache-2.0
//
// Receive queues with random doorbells (right and wrong), requests of messages of several packets, QPs that fail
// and are reset, against rings in a model of host memory with random latency and read errors. Every WQE must come
// once, in order, with the content of its slot: answered or flushed; nothing may be read outside a ring
// or, after a drain, for a QP that was reset.

module rq_cache_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int unsigned BytesW = DataW / 8;
  localparam int NQ = 6;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic db_valid = 0, db_ready, err_valid = 0, err_ready;
  logic [23:0] db_qpn = '0;
  logic [15:0] db_pi = '0;
  qp_idx_t err_idx = '0, qp_idx;
  logic qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0;
  qp_attr_t qp_rsp;
  logic ar_valid, ar_ready = 0, r_valid = 0, r_last = 0, r_err = 0;
  logic [63:0] ar_addr;
  logic [7:0] ar_len;
  logic [DataW-1:0] r_data = '0;
  logic req_valid = 0, req_ready, rsp_valid, flush_valid, flush_ready = 0;
  rq_req_t req;
  rq_rsp_t rsp;
  rq_flush_t flush;
  logic adm_valid = 0, adm_ready, adm_init = 0, adm_rsp_valid, drain = 0, drain_done, idle;
  qp_idx_t adm_qp = '0;
  rq_query_t adm_rsp;
  logic [2:0] ev_wqe;
  logic ev_bad_db, ev_axi_err;

  rq_cache #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n),
    .db_valid_i(db_valid), .db_ready_o(db_ready), .db_qpn_i(db_qpn), .db_pi_i(db_pi),
    .err_valid_i(err_valid), .err_ready_o(err_ready), .err_idx_i(err_idx),
    .qp_req_valid_o(qp_req_valid), .qp_req_ready_i(qp_req_ready), .qp_req_idx_o(qp_idx),
    .qp_rsp_valid_i(qp_rsp_valid), .qp_rsp_i(qp_rsp),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .rq_req_valid_i(req_valid), .rq_req_ready_o(req_ready), .rq_req_i(req),
    .rq_rsp_valid_o(rsp_valid), .rq_rsp_o(rsp),
    .flush_valid_o(flush_valid), .flush_ready_i(flush_ready), .flush_o(flush),
    .adm_valid_i(adm_valid), .adm_ready_o(adm_ready), .adm_init_i(adm_init), .adm_qp_i(adm_qp),
    .adm_rsp_valid_o(adm_rsp_valid), .adm_rsp_o(adm_rsp),
    .drain_i(drain), .drain_done_o(drain_done),
    .ev_wqe_o(ev_wqe), .ev_bad_db_o(ev_bad_db), .ev_axi_err_o(ev_axi_err), .idle_o(idle)
  );

  int stall = 30, hold_r = 0, cycle = 0;
  function automatic bit go();
    return int'($urandom() % 100) >= stall;
  endfunction

  // ---- queue pairs and rings ----
  qp_state_e state[NQ];
  logic [63:0] base[NQ];
  int log_size[NQ];
  bit stride128[NQ];
  logic [7:0] mem[logic [63:0]];
  bit rd_err[NQ][64], bad[NQ][64];
  logic [2:0] num[NQ][64];
  logic [511:0] sges[NQ][64];
  int sw_pi[NQ], hw_pi[NQ], db_cycle[NQ], next[NQ], n_sge;
  bit open[NQ], flushed[NQ], told[NQ];

  function automatic int qp_of(int i);  // numbers apart from each other
    return i * 43 + 3;
  endfunction
  function automatic int stride(int i);
    return stride128[i] ? 128 : 64;
  endfunction

  function automatic void fresh_qp(int i);
    log_size[i] = int'($urandom() % 7);
    stride128[i] = 1'($urandom());
    base[i] = {12'h123, 20'(i), 20'h0, 12'($urandom() % 32) << 7};
    sw_pi[i] = 0;
    hw_pi[i] = 0;
    next[i] = 0;
    open[i] = 0;
    flushed[i] = 0;
    told[i] = 0;
  endfunction

  function automatic void write_wqe(int i, int idx);
    logic [1023:0] w;
    int slot;
    slot = idx % (1 << log_size[i]);
    for (int k = 0; k < 32; k++) w[32*k+:32] = $urandom();
    n_sge = int'($urandom() % (stride128[i] ? 5 : 3));
    bad[i][slot] = 0;
    rd_err[i][slot] = 0;
    w[111:96] = 16'(idx);
    w[23:16] = 8'(n_sge);
    if ($urandom() % 12 == 0) begin
      bad[i][slot] = 1;
      case ($urandom() & 32'h3)
        0: w[111:96] = 16'(idx - (1 << log_size[i]));
        1: w[23:16] = stride128[i] ? 8'd5 : 8'd3;
        2: w[23:16] = 8'h81;
        default: rd_err[i][slot] = 1;
      endcase
    end
    num[i][slot] = 3'(n_sge);
    sges[i][slot] = w[767:256];
    for (int k = 0; k < stride(i); k++) begin
      mem[base[i] + 64'(slot * stride(i) + k)] = w[8*k+:8];
    end
  endfunction

  // ---- QP port and memory ----
  qp_idx_t qp_pend[$];
  qp_idx_t qp_now;
  logic [63:0] rd_addr[$];
  int rd_beats[$];
  int n_read, n_rd_err, slot_at, beats_left, max_open;
  logic [63:0] at;
  always @(negedge clk) begin
    qp_rsp_valid = 0;
    qp_rsp = {($bits(qp_attr_t) / 32 + 1) {$urandom()}};
    r_valid = 0;
    r_data = {(DataW / 32) {$urandom()}};
    if (rst_n) begin
      if (qp_pend.size() != 0 && go()) begin
        qp_now = qp_pend.pop_front();
        qp_rsp_valid = 1;
        qp_rsp = '0;
        qp_rsp.state = QpNone;
        for (int i = 0; i < NQ; i++) if (qp_of(i) == int'(qp_now)) begin
          qp_rsp.state = state[i];
          qp_rsp.rq_stride128 = stride128[i];
          qp_rsp.rq_addr = base[i];
          qp_rsp.log_rq_size = 4'(log_size[i]);
          qp_rsp.recv_cqn = cq_idx_t'(i + 7);
        end
      end
      qp_req_ready = go();
      ar_ready = go();
      flush_ready = go();
      if (rd_beats.size() != 0 && hold_r == 0 && go()) begin
        at = rd_addr[0];
        r_valid = 1;
        r_err = 0;
        for (int i = 0; i < NQ; i++) if (at >= base[i] && at < base[i] + 64'(stride(i) << log_size[i])) begin
          slot_at = int'(at - base[i]) / stride(i);
          r_err = rd_err[i][slot_at] && (at - base[i]) % 64'(stride(i)) < 64'(BytesW);
        end
        for (int k = 0; k < int'(BytesW); k++) r_data[8*k+:8] = mem[at + 64'(k)];
        rd_addr[0] = at + 64'(BytesW);
        rd_beats[0] = rd_beats[0] - 1;
        r_last = rd_beats[0] == 0;
        if (r_last) begin
          void'(rd_addr.pop_front());
          void'(rd_beats.pop_front());
        end
      end
      if (hold_r > 0) hold_r--;
      else if ($urandom() % 50 == 0) hold_r = int'($urandom() % 100);
    end
  end

  bit in_ring;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n) begin
      if (qp_req_valid && qp_req_ready) qp_pend.push_back(qp_idx);
      if (ev_axi_err) n_rd_err++;
      if (ar_valid && ar_ready) begin
        in_ring = 0;
        for (int i = 0; i < NQ; i++) begin
          if (ar_addr >= base[i] && ar_addr + (64'(ar_len) + 1) * 64'(BytesW) <= base[i] + 64'(stride(i) << log_size[i])) in_ring = 1;
        end
        if (!in_ring) $fatal(1, "read of %h len %0d outside the rings", ar_addr, ar_len);
        if (ar_addr % 64'(BytesW) != 0) $fatal(1, "address %h not aligned", ar_addr);
        if (ar_addr[63:12] != 52'((ar_addr + (64'(ar_len) + 1) * 64'(BytesW) - 1) >> 12)) $fatal(1, "burst crosses a page");
        rd_addr.push_back(ar_addr);
        rd_beats.push_back(int'(ar_len) + 1);
        n_read++;
        if (rd_beats.size() > max_open) max_open = rd_beats.size();
      end
    end
  end

  // ---- what comes out ----
  bit fresh;
  int n_again, n_ok, n_bad, n_none, n_gone, n_flush, n_bad_db, want_bad_db, n_multi;
  int rq_i;            // QP of the request
  bit req_busy = 0, none_ok, resetting = 0;  // a reset began, its drain is not over
  int req_cycle, slow;
  int fi, slot;
  always @(posedge clk) if (rst_n) begin
    if (ev_bad_db) n_bad_db++;
    if (rsp_valid) begin
      if (!req_busy) $fatal(1, "answer nobody asked for");
      if (cycle - req_cycle > slow) slow = cycle - req_cycle;
      // a start while a WQE is open gives that one again
      fresh = req.start && !open[rq_i];
      slot = (fresh ? next[rq_i] : next[rq_i] - 1) % (1 << log_size[rq_i]);
      case (rsp.status)
        RqNone: begin
          n_none++;
          if (!fresh || !none_ok) $fatal(1, "QP %0d: nothing posted, but %0d of %0d were", rq_i, next[rq_i], hw_pi[rq_i]);
        end
        RqGone: begin
          n_gone++;
          if (state[rq_i] != QpErr) $fatal(1, "QP %0d: WQE gone", rq_i);
        end
        default: begin
          if (flushed[rq_i]) $fatal(1, "QP %0d: answer behind a flush", rq_i);
          if (fresh && next[rq_i] == hw_pi[rq_i]) $fatal(1, "QP %0d: WQE never posted", rq_i);
          if (int'(rsp.index) != (fresh ? next[rq_i] : next[rq_i] - 1) % 65536) $fatal(1, "QP %0d: index %0d, want %0d", rq_i, rsp.index, next[rq_i]);
          if ((rsp.status == RqBad) != bad[rq_i][slot]) $fatal(1, "QP %0d: status %0d of WQE %0d", rq_i, rsp.status, rsp.index);
          if (rsp.status == RqOk) begin
            if (rsp.num_sge != num[rq_i][slot]) $fatal(1, "QP %0d: %0d SGEs", rq_i, rsp.num_sge);
            for (int k = 0; k < int'(rsp.num_sge); k++) begin
              if (rsp.sge[k] !== sges[rq_i][slot][128*k+:128]) $fatal(1, "QP %0d: SGE %0d %h", rq_i, k, rsp.sge[k]);
            end
          end
          if (rsp.status == RqBad) n_bad++;
          else n_ok++;
          if (!fresh) n_multi++;
          if (req.start && !fresh) n_again++;
          if (fresh) next[rq_i]++;
          open[rq_i] = !req.last;
        end
      endcase
      req_busy = 0;
    end
    if (flush_valid && flush_ready) begin
      fi = (int'(flush.qp) - 3) / 43;
      n_flush++;
      if (int'(flush.qp) != qp_of(fi) || int'(flush.cqn) != fi + 7) $fatal(1, "flush of QP %0d to CQ %0d", flush.qp, flush.cqn);
      if (state[fi] != QpErr && !resetting) $fatal(1, "flush of a QP in state %0d", state[fi]);
      flushed[fi] = 1;
      if (open[fi]) begin
        if (int'(flush.index) != (next[fi] - 1) % 65536) $fatal(1, "QP %0d: flush of %0d, open is %0d", fi, flush.index, next[fi] - 1);
        open[fi] = 0;
      end else begin
        if (next[fi] == hw_pi[fi] || int'(flush.index) != next[fi] % 65536) $fatal(1, "QP %0d: flush of %0d, want %0d", fi, flush.index, next[fi]);
        next[fi]++;
      end
    end
  end

  // ---- software and responder ----
  int db_i = -1, k, room, drain_q, n_reset, n_err, q0;
  bit db_good;
  task automatic doorbell_step();
    if (db_valid) begin
      if (db_taken) begin
        db_valid = 0;
      end
    end else if ($urandom() % 12 == 0) begin
      db_i = int'($urandom() % NQ);
      room = (1 << log_size[db_i]) - (sw_pi[db_i] - next[db_i] + int'(open[db_i]));
      k = int'($urandom() % 10);
      db_good = state[db_i] != QpReset;
      db_qpn = QpnBase + 24'(qp_of(db_i));
      if (k == 0 && db_good) begin  // too far, or backwards
        db_good = 0;
        db_pi = 16'($urandom() % 2 == 0 ? hw_pi[db_i] + 3000 : hw_pi[db_i] - 1 - int'($urandom() % 1000));
      end else if (k == 1) begin
        db_good = 0;
        db_qpn = $urandom() % 2 == 0 ? 24'd1 : QpnBase + 24'd1000;
        if ($urandom() % 2 == 0) db_qpn = QpnBase + 24'd2;
        db_pi = 16'd1;
      end else begin
        k = room == 0 ? 0 : int'($urandom() % 32'(room + 1));
        if (state[db_i] == QpReset) k = 1;
        else for (int n = 0; n < k; n++) write_wqe(db_i, sw_pi[db_i] + n);
        db_pi = 16'(sw_pi[db_i] + k);
        if (db_good) sw_pi[db_i] += k;
      end
      if (db_good) begin
        hw_pi[db_i] = sw_pi[db_i];
        db_cycle[db_i] = cycle;
      end else begin
        want_bad_db++;
      end
      db_valid = 1;
    end
  endtask
  bit db_taken = 0, req_taken = 0, err_taken = 0;
  always @(posedge clk) begin
    db_taken = db_valid && db_ready;
    if (db_taken && db_good) db_cycle[db_i] = cycle;
    req_taken = req_valid && req_ready;
    err_taken = err_valid && err_ready;
  end

  task automatic request_step(int percent);
    if (req_valid) begin
      if (req_taken) req_valid = 0;
    end else if (!req_busy && int'($urandom() % 100) < percent) begin
      rq_i = int'($urandom() % NQ);
      if (state[rq_i] != QpReset) begin
        req.qp = qp_idx_t'(qp_of(rq_i));
        req.start = !open[rq_i] || $urandom() % 4 == 0;
        req.last = $urandom() % 3 != 0;
        none_ok = next[rq_i] == hw_pi[rq_i] || cycle - db_cycle[rq_i] < 200;
        req_valid = 1;
        req_busy = 1;
        req_cycle = cycle;
      end
    end
  endtask

  // a QP fails; the event comes some time later
  task automatic fail_step();
    if (err_valid) begin
      if (err_taken) err_valid = 0;
    end else begin
      q0 = int'($urandom() % NQ);
      if ($urandom() % 600 == 0 && state[q0] != QpReset) begin
        n_err += int'(state[q0] != QpErr);
        state[q0] = QpErr;
      end
      if (state[q0] == QpErr && !told[q0]) begin
        err_valid = 1;
        err_idx = qp_idx_t'(qp_of(q0));
        told[q0] = 1;
      end
    end
  endtask

  task automatic reset_qp(int i);
    int n;
    state[i] = QpReset;
    resetting = 1;
    n = 0;
    for (int round = 0; round < 2; round++) begin
      @(negedge clk);
      drain = 0;
      repeat (3) @(negedge clk);
      drain = 1;
      do begin
        @(negedge clk);
        if (req_taken) req_valid = 0;
        if (err_taken) err_valid = 0;
        if (db_taken) db_valid = 0;
        n++;
        if (n > 5000) $fatal(1, "drain not done");
      end while (!drain_done);
      for (int r = 0; r < rd_addr.size(); r++) begin
        if (rd_addr[r] >= base[i] && rd_addr[r] < base[i] + 64'h100000) $fatal(1, "reads of a QP in RESET after a drain");
      end
    end
    drain = 0;
    resetting = 0;
    fresh_qp(i);
    administer(i, 1);
    if (adm_rsp != '0) $fatal(1, "after init: %p", adm_rsp);
    state[i] = qp_state_e'(1 + $urandom() % 4);
    n_reset++;
  endtask

  task automatic administer(int i, bit init);
    int n;
    n = 0;
    adm_valid = 1;
    adm_init = init;
    adm_qp = qp_idx_t'(qp_of(i));
    do begin
      @(posedge clk);
      n++;
      if (n > 2000) $fatal(1, "admin not taken");
    end while (!adm_ready);
    @(negedge clk);
    if (req_taken) req_valid = 0;
    if (err_taken) err_valid = 0;
    if (db_taken) db_valid = 0;
    adm_valid = 0;
    if (!adm_rsp_valid) $fatal(1, "admin not answered");
  endtask

  int cycles = 60000, first;
  initial begin
    for (int i = 0; i < NQ; i++) begin
      fresh_qp(i);
      state[i] = QpReset;
    end
    repeat (4) @(negedge clk);
    rst_n = 1;
    // the rings are made before anything is asked
    for (int i = 0; i < NQ; i++) state[i] = qp_state_e'(1 + i % 4);
    for (int n = 0; n < cycles; n++) begin
      @(negedge clk);
      stall = (n / 3000) % 3 == 0 ? 0 : (n / 3000) % 3 == 1 ? 30 : 70;
      doorbell_step();
      request_step((n / 5000) % 2 == 0 ? 60 : 5);
      fail_step();
      if ($urandom() % 300 == 0 && !req_busy && !db_valid && !err_valid) begin
        q0 = int'($urandom() % NQ);
        if (state[q0] == QpErr || $urandom() % 8 == 0) begin
          repeat (60) begin  // its doorbell is through
            @(negedge clk);
          end
          reset_qp(q0);
        end
      end
    end
    // in the end all fail, and everything posted is flushed
    while (req_busy || db_valid || err_valid) begin
      @(negedge clk);
      if (req_taken) req_valid = 0;
      if (err_taken) err_valid = 0;
      if (db_taken) db_valid = 0;
    end
    stall = 20;
    for (int i = 0; i < NQ; i++) begin
      if (state[i] != QpErr) begin
        state[i] = QpErr;
        told[i] = 0;
      end
      if (!told[i]) begin
        err_valid = 1;
        err_idx = qp_idx_t'(qp_of(i));
        do @(negedge clk); while (!err_taken);
        err_valid = 0;
      end
    end
    first = 0;
    while (!idle) begin
      @(negedge clk);
      first++;
      if (first > 20000) $fatal(1, "does not come to rest");
    end
    for (int i = 0; i < NQ; i++) begin
      if (open[i] || next[i] != hw_pi[i]) $fatal(1, "QP %0d: %0d of %0d done, open %0d", i, next[i], hw_pi[i], open[i]);
      administer(i, 0);
      if (adm_rsp.pi != 16'(hw_pi[i]) || adm_rsp.ci != 16'(next[i])) $fatal(1, "QP %0d: query %p", i, adm_rsp);
    end
    if (n_bad_db != want_bad_db) $fatal(1, "%0d bad doorbells, want %0d", n_bad_db, want_bad_db);
    if (n_ok < 1000 || n_multi < 300 || n_again < 50 || n_bad < 50 || n_none < 100 || n_gone < 20 || n_flush < 200 ||
        n_reset < 20 || n_err < 10 || n_rd_err < 10 || want_bad_db < 50) begin
      $fatal(1, "corner not reached: ok %0d multi %0d bad %0d none %0d gone %0d flush %0d reset %0d err %0d rd %0d db %0d",
             n_ok, n_multi, n_bad, n_none, n_gone, n_flush, n_reset, n_err, n_rd_err, want_bad_db);
    end
    $display("PASS %0d WQEs, %0d malformed, %0d times none, %0d flushed, %0d reads (%0d open), %0d resets, slowest answer %0d",
             n_ok, n_bad, n_none, n_flush, n_read, max_open, n_reset, slow);
    $finish;
  end
endmodule
