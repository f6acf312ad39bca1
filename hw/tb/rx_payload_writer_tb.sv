// SPDX-License-Identifier: Apache-2.0
//
// Payload writer against a byte-exact memory: every lane in memory x every lane in the frame x
// small lengths, lengths up to 4096, packets without payload, random stalls on every side, random B
// latency, READs and atomics in their places behind the writes, packets in pieces (split at every byte), CQEs that wait for their turn, acknowledges for the requester (behind the last B
// of all that came before), values of atomics, refused writes, drain; QPs change their slots. Burst rules (4 KiB, BurstBeats, last) are checked on every
// transfer; throughput is measured without stalls.

module rx_payload_writer_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int unsigned BytesW = DataW / 8;
  localparam int unsigned LaneW = $clog2(BytesW);
  localparam int unsigned MemW = 16;           // the memory is 64 KiB, addresses wrap into it
  localparam logic [63:0] Base = 64'h0000_7f12_3450_0000;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic wr_valid = 0, wr_ready;
  rx_write_t wr;
  rx_read_t rd;
  logic at_valid, at_ready = 0, at_done = 0, at_err = 0, rsp_valid, rsp_ready = 0;
  atomic_t at;
  logic [63:0] at_value = '0;
  rsp_job_t rsp;
  logic pl_valid = 0, pl_ready, pl_last = 0;
  logic [DataW-1:0] pl_data = '0;
  logic [LaneW-1:0] pl_off = '0;
  logic [LaneW:0] pl_cnt = '0;
  logic aw_valid, aw_ready = 0, w_valid, w_ready = 0, w_last, b_valid = 0, b_err = 0;
  logic [63:0] aw_addr;
  logic [7:0] aw_len;
  logic [DataW-1:0] w_data;
  logic [BytesW-1:0] w_strb;
  logic ack_valid, qp_err_valid, qp_err_ready = 0;
  ack_t ack;
  logic cqe_valid, cqe_ready = 0, ev_send, ackrx_valid, ackrx_ready = 0;
  ack_rx_t ackrx;
  cqe_ev_t cqe;
  logic bar_done, sq_flush_valid, sq_flush_ready = 0;
  qp_idx_t sq_flush_idx;
  qp_idx_t qp_err_idx, hold_qp;
  // slots with responses that have not left; in the cycle before
  bit [NumQp-1:0] held = '0, held_before = '0;
  bit err_before = 0;
  int held_back = 0;
  logic ev_bytes_valid, ev_message, ev_axi_err, ev_nak_op, ev_stall, drain = 0, drain_done, idle;
  logic [12:0] ev_bytes;

  qp_idx_t slot_of[NumQp], qp_err_slot, sq_flush_slot, move_qp = '0, probe_qp = '0, ctx_qp = '0;
  rx_write_t wr_d;
  rsp_job_t rsp_d;
  ack_t ack_d;
  ack_rx_t ackrx_d;
  logic wr_ready_d, slot_busy, ctx_load = 0, ctx_in = 0, ctx_out;
  bit moving = 0;

  rx_payload_writer #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n),
    .wr_valid_i(wr_valid && !(moving && wr.qp == move_qp)), .wr_ready_o(wr_ready_d), .wr_i(wr_d), .rd_i(rd),
    .atomic_valid_o(at_valid), .atomic_ready_i(at_ready), .atomic_o(at), .atomic_done_i(at_done), .atomic_err_i(at_err),
    .atomic_value_i(at_value), .hold_qp_o(hold_qp), .hold_i(held[hold_qp]), .rsp_valid_o(rsp_valid), .rsp_ready_i(rsp_ready), .rsp_o(rsp_d),
    .pl_valid_i(pl_valid), .pl_ready_o(pl_ready), .pl_data_i(pl_data), .pl_off_i(pl_off),
    .pl_cnt_i(pl_cnt), .pl_last_i(pl_last),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb),
    .w_last_o(w_last), .b_valid_i(b_valid), .b_err_i(b_err),
    .ack_valid_o(ack_valid), .ack_o(ack_d),
    .ackrx_valid_o(ackrx_valid), .ackrx_ready_i(ackrx_ready), .ackrx_o(ackrx_d),
    .cqe_valid_o(cqe_valid), .cqe_ready_i(cqe_ready), .cqe_o(cqe),
    .qp_err_valid_o(qp_err_valid), .qp_err_ready_i(qp_err_ready), .qp_err_idx_o(qp_err_slot),
    .sq_flush_valid_o(sq_flush_valid), .sq_flush_ready_i(sq_flush_ready), .sq_flush_idx_o(sq_flush_slot),
    .bar_done_o(bar_done), .ev_bytes_valid_o(ev_bytes_valid), .ev_bytes_o(ev_bytes), .ev_message_o(ev_message), .ev_send_o(ev_send),
    .ev_axi_err_o(ev_axi_err), .ev_nak_op_o(ev_nak_op), .ev_stall_o(ev_stall),
    .probe_qp_i(probe_qp), .busy_o(slot_busy), .ctx_load_i(ctx_load), .ctx_qp_i(ctx_qp), .ctx_i(ctx_in), .ctx_o(ctx_out),
    .drain_i(drain), .drain_done_o(drain_done), .idle_o(idle)
  );

  // ---- slots: the model knows QPs, the design slots; a QP is moved when nothing of it is under way ----
  qp_idx_t qp_of[NumQp];
  always_comb begin
    wr_d = wr;
    wr_d.qp = slot_of[wr.qp];
    wr_ready = wr_ready_d && !(moving && wr.qp == move_qp);
    rsp = rsp_d;
    rsp.qp = qp_of[rsp_d.qp];
    ack = ack_d;
    ack.qp = qp_of[ack_d.qp];
    ackrx = ackrx_d;
    ackrx.qp = qp_of[ackrx_d.qp];
    qp_err_idx = qp_of[qp_err_slot];
    sq_flush_idx = qp_of[sq_flush_slot];
  end
  bit no_moves = 1, was_busy;
  int n_moves = 0, n_busy = 0, n_bad = 0;
  qp_idx_t from, to, other;
  initial begin
    for (int i = 0; i < int'(NumQp); i++) begin
      slot_of[i] = qp_idx_t'(i);
      qp_of[i] = qp_idx_t'(i);
    end
    forever begin
      @(negedge clk);
      move_qp = qp_idx_t'($urandom() % 8);
      if (!no_moves && $urandom() % 4 == 0 && !(wr_valid && wr.qp == move_qp)) begin
        moving = 1;
        from = slot_of[move_qp];
        probe_qp = from;
        @(posedge clk);
        was_busy = slot_busy;
        @(negedge clk);
        n_busy += int'(was_busy);
        if (!was_busy) begin
          other = qp_idx_t'(64 + $urandom() % (NumQp - 64));
          to = slot_of[other];
          ctx_qp = from;
          @(posedge clk);
          ctx_in = ctx_out;
          n_bad += int'(ctx_out);
          @(negedge clk);
          ctx_qp = to;
          ctx_load = 1;
          @(negedge clk);
          ctx_qp = from;
          ctx_in = 1'($urandom());
          @(negedge clk);
          ctx_load = 0;
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

  // ---- what is to be sent: packets and their payload beats ----
  typedef struct packed {
    logic [DataW-1:0] data;
    logic [LaneW-1:0] off;
    logic [LaneW:0]   cnt;
    logic             last;
  } beat_t;
  rx_write_t wr_todo[$];
  rx_read_t rd_todo[$];
  beat_t pl_todo[$];
  int pl_allowed = 0;           // beats of packets whose wr has been offered (they leave together)
  int beats_of[$];              // beats of each packet not yet handed to the writer

  byte unsigned mem[1 << MemW];   // written by the device
  byte unsigned want[1 << MemW];  // as it must be
  logic [7:0] gen = 8'h01;

  // ---- expected ----
  bit bad[NumQp];
  longint unsigned bytes_seen, bytes_want, msgs_seen, msgs_want, naks_seen, naks_want, errs_want;
  int qp_errs_seen, packets, acks_seen;
  ack_t ack_want[$];
  cqe_ev_t cqe_want[$];
  int cqe_acks[$];              // acknowledges that must have been sent before it
  int silent_seen, acks_made, cqes_seen, pieces_made, flushed_seen;
  longint unsigned sends_seen, sends_want;
  qp_idx_t err_want[$];

  // burst list per packet, to know which B fails
  bit b_plan[$];                // one per burst in order: error?
  int stall = 0;                // percent of cycles without ready/valid
  int stall_b = 0;

  function automatic bit go(int percent);
    return int'($urandom() % 100) >= percent;
  endfunction

  // ---- requests that go on: their jobs, with the acknowledges made and the bursts answered before them
  rsp_job_t rsp_want[$];
  atomic_t  at_want[$];
  bit       at_fail[$];
  int       rsp_acks[$], rsp_bursts[$], at_bursts[$];
  int       bursts_made = 0, bursts_seen = 0, at_wait = 0, atomics = 0, at_errs = 0, rsps = 0;
  logic [63:0] at_values[$];

  function automatic rx_read_t a_read();
    return {($bits(rx_read_t) / 32 + 1) {$urandom()}};
  endfunction
  function automatic void expect_rsp(rsp_job_t j);
    rsp_want.push_back(j);
    rsp_acks.push_back(acks_made);
    rsp_bursts.push_back(bursts_made);
  endfunction

  // Queue one READ, atomic or error request.
  task automatic queue_read(qp_idx_t qp, rx_kind_e kind, bit dup, bit fail, bit with_cqe);
    rx_write_t w;
    rx_read_t r;
    rsp_job_t j;
    atomic_t a;
    ack_t x;
    cqe_ev_t c;
    logic [63:0] v;
    w = '0;
    w.kind = kind;
    w.qp = qp;
    w.psn = psn_t'($urandom());
    w.msn = 24'($urandom());
    w.iova = {$urandom(), $urandom()};
    w.last = kind != RxError;
    w.ack = kind == RxError;
    w.syndrome = kind != RxError ? 8'($urandom() % 32) : $urandom() % 2 == 0 ? SynNakInvReq : SynNakAccess;
    r = a_read();
    r.dup = dup;
    v = {$urandom(), $urandom()};
    if (with_cqe) begin
      w.has_cqe = 1;
      w.cqe.opcode = 8'd128;
      w.cqe.status = 8'd1;
      w.cqe.index = 16'($urandom());
      cqe_want.push_back(w.cqe);
      cqe_acks.push_back(acks_made);
    end
    wr_todo.push_back(w);
    rd_todo.push_back(r);
    beats_of.push_back(0);
    packets++;
    if (!bad[qp]) begin
      j = '{kind: kind == RxRead ? RspRead : kind == RxAtomic ? RspAtomic : RspError, qp: qp, slot: r.slot, dup: dup, access: w.syndrome == SynNakAccess, psn: w.psn,
            msn: w.msn, credits: w.syndrome[4:0], va: kind == RxAtomic ? v : r.va, rkey: r.rkey, len: r.len};
      if (kind == RxAtomic && !dup) begin
        a = '{fetch_add: r.fetch_add, iova: w.iova, swap_add: r.swap_add, compare: r.compare};
        at_want.push_back(a);
        at_fail.push_back(fail);
        at_values.push_back(v);
        at_bursts.push_back(bursts_made);
        if (fail) at_errs++;
      end
      if (kind == RxAtomic && !dup && fail) begin
        bad[qp] = 1;
        naks_want++;
        j.kind = RspError;
        expect_rsp(j);
        x = '{qp: qp, psn: w.psn, msn: w.msn - 24'd1, syndrome: SynNakOp};
        ack_want.push_back(x);
        acks_made++;
      end else begin
        expect_rsp(j);
        if (kind == RxError) begin
          x = '{qp: qp, psn: w.psn, msn: w.msn, syndrome: w.syndrome};
          ack_want.push_back(x);
          acks_made++;
        end
      end
    end
  endtask

  // acknowledges for the requester, and how many B must have come
  ack_rx_t req_want[$];
  int req_b[$], b_made = 0, b_seen = 0, reqs_seen = 0, values_seen = 0, req_fails = 0;

  // An acknowledge for the requester: without payload, or with a value of 8 bytes.
  task automatic queue_value(qp_idx_t qp, logic [63:0] iova, bit value, bit fail);
    rx_write_t w;
    ack_rx_t r;
    int n;
    w = {($bits(rx_write_t) / 32 + 1) {$urandom()}};
    w.qp = qp;
    {w.ack, w.last, w.init, w.more, w.has_cqe, w.silent, w.barrier, w.flush} = '0;
    w.to_req = 1;
    w.kind = RxData;
    w.has_payload = value;
    w.has_value = value;
    w.iova = iova;
    w.len = 13'd8;
    n = 0;
    if (value) begin
      n = int'(((iova & 64'hfff) + 7) / (BurstBeats * BytesW) - (iova & 64'hfff) / (BurstBeats * BytesW)) + 1;
      for (int m = 1; m <= n; m++) b_plan.push_back(fail && m == n);
      for (int m = 0; m < 8; m++) want[MemW'(iova + 64'(m))] = w.value[8*m+:8];
      b_made += n;
      bytes_want += fail ? 0 : 8;
      if (fail) errs_want++;
    end
    beats_of.push_back(0);
    wr_todo.push_back(w);
    rd_todo.push_back(a_read());
    r = '{qp: qp, psn: w.psn, msn: w.msn, syndrome: w.syndrome, own: 1'b0, credits: w.credits, src: w.src, fail: w.fail};
    if (value && fail) begin
      r.syndrome = 0;
      r.credits = 0;
      r.src = AckLocal;
      r.fail = 4'd2;
      req_fails++;
    end
    req_want.push_back(r);
    req_b.push_back(b_made);
    packets++;
    values_seen += int'(value);
  endtask

  // Queue the flush of a send queue: it leaves behind all writes and all acknowledges for the requester.
  qp_idx_t sqf_want[$];
  int      sqf_b[$], sqf_reqs[$], sqfs_seen = 0;
  task automatic queue_sq_flush(qp_idx_t qp);
    rx_write_t w;
    w = '0;
    w.qp = qp;
    w.flush = 1;
    wr_todo.push_back(w);
    rd_todo.push_back(a_read());
    beats_of.push_back(0);
    sqf_want.push_back(qp);
    sqf_b.push_back(b_made);
    sqf_reqs.push_back(reqs_seen + req_want.size());
  endtask

  // Queue one packet. fail: 0 none, else the n-th burst fails. pieces: the payload goes to so many places. cqe_kind:
  // 0 none, 1 of a SEND, 2 of a WRITE with immediate, 3 a flush; 4: no CQE, a response for the requester.
  task automatic queue_packet(qp_idx_t qp, logic [63:0] iova, int len, int off0, bit with_ack,
                              bit last,
                              int fail, bit init = 0, int pieces = 1, int cqe_kind = 0);
    rx_write_t w;
    beat_t b;
    ack_t x;
    ack_rx_t r;
    cqe_ev_t c;
    rsp_job_t j;
    int pos, lane, n, nb, first, done_len, part, good_bytes;
    bit failed;
    logic [63:0] at;
    w = '0;
    w.qp = qp;
    w.ack = with_ack;
    w.last = last;
    w.init = init;
    w.silent = $urandom() % 4 == 0;
    w.psn = psn_t'($urandom());
    w.msn = 24'($urandom());
    w.syndrome = len == 0 && ($urandom() % 2) == 0 ? SynNakSeq : 8'($urandom() % 32);
    w.credits = 1'($urandom());
    if (cqe_kind == 4) begin
      w.to_req = 1;
      w.src = ack_src_e'($urandom());
      w.fail = 4'($urandom());
      {w.ack, w.last, w.silent} = '0;
      with_ack = 0;
      last = 0;
    end else if (cqe_kind != 0) begin
      for (int k = 0; k < $bits(cqe_ev_t) / 32 + 1; k++) w.cqe = $bits(cqe_ev_t)'({w.cqe, $urandom()});
      w.cqe.opcode = cqe_kind == 2 ? 8'd129 : 8'd128;
      w.cqe.status = cqe_kind == 3 ? 8'd5 : 8'd0;
    end
    if (len < pieces) pieces = len == 0 ? 1 : len;
    // payload beats
    done_len = 0;
    first = 0;
    lane = off0;
    nb = 0;
    failed = 0;
    good_bytes = 0;
    at = iova;
    b = '0;
    for (int k = pieces; k > 0; k--) begin
      part = $urandom() % 3 == 0 ? 1 : 1 + int'($urandom() % 32'(len - done_len - k + 2));
      if (part > len - done_len - k + 1) part = len - done_len - k + 1;
      if (k == 1) part = len - done_len;
      w.has_payload = len != 0;
      w.iova = at;
      w.len = 13'(part);
      w.more = k != 1;
      w.has_cqe = cqe_kind != 0 && cqe_kind != 4 && k == 1;
      if (w.more) pieces_made++;
      wr_todo.push_back(w);
      rd_todo.push_back(a_read());
      // bursts as the contract wants them: aligned borders every BurstBeats beats
      if (part != 0) begin
        n = int'(((at & 64'hfff) + 64'(part) - 1) / (BurstBeats * BytesW) -
                 (at & 64'hfff) / (BurstBeats * BytesW)) + 1;
        for (int m = 1; m <= n; m++) begin
          nb++;
          b_made++;
          b_plan.push_back(fail == nb);
          if (fail == nb) failed = 1;
        end
      end
      if (!failed) good_bytes += part;
      pos = 0;
      while (pos < part) begin
        // the packet's beats do not end where its pieces end
        n = int'(BytesW) - lane < len - done_len - pos ? int'(BytesW) - lane : len - done_len - pos;
        if (b.cnt == 0) begin
          for (int m = 0; m < int'(BytesW / 4); m++) b.data[32*m+:32] = $urandom();
          b.off = first == 0 ? LaneW'(off0) : LaneW'(0);
          b.cnt = (LaneW + 1)'(n);
          b.last = done_len + pos + n == len;
        end
        if (n > part - pos) n = part - pos;
        for (int m = 0; m < n; m++) want[MemW'(at + 64'(pos + m))] = b.data[8*(lane+m)+:8];
        pos += n;
        lane += n;
        if (lane == int'(BytesW) || done_len + pos == len) begin
          pl_todo.push_back(b);
          first++;
          lane = 0;
          b.cnt = 0;
        end
      end
      done_len += part;
      // the next piece somewhere behind, in the same memory
      at = Base + ((at - Base + 64'(part) + 64'($urandom() % 200)) % 60000);
    end
    for (int k = 1; k < pieces; k++) beats_of.push_back(0);
    beats_of.push_back(first);
    bursts_made += nb;
    // outcome
    packets++;
    if (init) begin
      bad[qp] = 0;
      j = '0;
      j.kind = RspInit;
      j.qp = qp;
      expect_rsp(j);
    end else if (cqe_kind == 4) begin
      bytes_want += 64'(good_bytes);
      if (failed) begin
        errs_want++;
        req_fails++;
      end
      r = '{qp: qp, psn: w.psn, msn: w.msn, syndrome: failed ? 8'd0 : w.syndrome, own: 1'b0, credits: w.credits && !failed, src: failed ? AckLocal : w.src,
            fail: failed ? 4'd2 : w.fail};
      req_want.push_back(r);
      req_b.push_back(b_made);
    end else begin
      c = w.cqe;
      if (c.status == 0 && bad[qp]) c.status = 8'd5;
      else if (c.status == 0 && failed) c.status = 8'd2;
      if (cqe_kind != 0) begin
        cqe_want.push_back(c);
        cqe_acks.push_back(acks_made);
        if (c.status == 8'd5) flushed_seen++;
      end
      bytes_want += 64'(good_bytes);
      if (failed) begin
        errs_want++;
        if (!bad[qp]) begin
          bad[qp] = 1;
          err_want.push_back(qp);
          naks_want += longint'(!w.silent);
          silent_seen += int'(w.silent);
          x = '{qp: qp, psn: w.psn, msn: w.msn - 24'(last), syndrome: SynNakOp};
          if (!w.silent) begin
            ack_want.push_back(x);
            acks_made++;
          end
        end
      end else if (!bad[qp]) begin
        if (last && (cqe_kind == 1 || cqe_kind == 3)) sends_want++;
        else if (last) msgs_want++;
        x = '{qp: qp, psn: w.psn, msn: w.msn, syndrome: w.syndrome};
        if (with_ack) begin
          ack_want.push_back(x);
          acks_made++;
        end
      end
    end
  endtask

  // ---- drivers: values change at negedge ----
  bit wr_taken = 0, pl_taken = 0;
  beat_t beat;
  always @(negedge clk) begin
    if (rst_n) begin
      if (wr_taken) wr_valid = 0;
      if (pl_taken) pl_valid = 0;
      wr_taken = 0;
      pl_taken = 0;
      if (!wr_valid && wr_todo.size() != 0 && go(stall)) begin
        wr = wr_todo.pop_front();
        rd = rd_todo.pop_front();
        wr_valid = 1;
        pl_allowed += beats_of.pop_front();
      end
      if (!pl_valid && pl_allowed != 0 && go(stall)) begin
        beat = pl_todo.pop_front();
        {pl_data, pl_off, pl_cnt, pl_last} = beat;
        pl_valid = 1;
        pl_allowed--;
      end
      aw_ready = go(stall);
      w_ready = go(stall);
      qp_err_ready = go(stall);
      cqe_ready = go(stall);
      at_ready = go(stall) && at_wait == 0;
      rsp_ready = go(stall);
      at_done = at_wait == 1;
      at_value = {$urandom(), $urandom()};
      at_err = 1'($urandom());
      if (at_done) begin
        at_value = at_values.pop_front();
        at_err = at_fail.pop_front();
      end
      if (at_wait != 0) at_wait--;
      if (go(70)) held[$urandom() % NumQp] = 0;
      if (go(90)) held[hold_qp] = !go(50);
      ackrx_ready = go(stall);
      sq_flush_ready = go(stall);
    end
  end

  // ---- AXI memory ----
  typedef struct packed {
    logic [63:0] addr;
    logic [8:0]  beats;
  } burst_t;
  burst_t bursts[$];            // addresses taken, data not complete
  burst_t cur;
  logic [DataW+BytesW:0] w_q[$];
  logic [DataW+BytesW:0] word;
  int cur_left = 0, b_ready_cnt = 0;
  int outstanding = 0, max_outstanding = 0, cycle = 0;
  int w_beats = 0, w_first_cycle = 0, w_last_cycle = 0;

  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n) begin
      if (aw_valid && aw_ready) begin
        if ((aw_addr % 64'(BytesW)) != 0) $fatal(1, "AW address %h not aligned", aw_addr);
        if (int'(aw_len) >= int'(BurstBeats)) $fatal(1, "burst of %0d beats", int'(aw_len) + 1);
        if ((aw_addr >> 12) != ((aw_addr + (64'(aw_len) + 1) * 64'(BytesW) - 1) >> 12)) begin
          $fatal(1, "burst at %h len %0d crosses 4 KiB", aw_addr, aw_len);
        end
        bursts.push_back({aw_addr, 9'(aw_len) + 9'd1});
        outstanding++;
        if (outstanding > max_outstanding) max_outstanding = outstanding;
      end
      if (w_valid && w_ready) begin
        w_beats++;
        if (w_first_cycle == 0) w_first_cycle = cycle;
        w_last_cycle = cycle;
        w_q.push_back({w_data, w_strb, w_last});
      end
      // match data with addresses
      while (w_q.size() != 0 && (cur_left != 0 || bursts.size() != 0)) begin
        automatic logic [DataW-1:0] d;
        automatic logic [BytesW-1:0] s;
        automatic logic l;
        if (cur_left == 0) begin
          cur = bursts.pop_front();
          cur_left = int'(cur.beats);
        end
        word = w_q.pop_front();
        {d, s, l} = word;
        if (l != (cur_left == 1)) $fatal(1, "W last %b with %0d beats left", l, cur_left);
        if (s == '0) $fatal(1, "beat without a byte at %h", cur.addr);
        for (int k = 0; k < int'(BytesW); k++) begin
          if (s[k]) mem[MemW'(cur.addr + 64'(k))] = d[8*k+:8];
        end
        cur.addr += 64'(BytesW);
        cur_left--;
        if (cur_left == 0) b_ready_cnt++;
      end
      if (b_valid) begin
        outstanding--;
        bursts_seen++;
        b_seen++;
      end
    end
  end

  always @(negedge clk) begin
    b_valid = 0;
    if (rst_n && b_ready_cnt != 0 && go(stall_b)) begin
      b_valid = 1;
      if (b_plan.size() == 0) $fatal(1, "more bursts than expected");
      b_err = b_plan.pop_front();
      b_ready_cnt--;
    end
  end

  // ---- handshakes and outcome ----
  always @(posedge clk) begin
    if (rst_n) begin
      wr_taken = wr_valid && wr_ready;
      pl_taken = pl_valid && pl_ready;
      if (ack_valid) begin
        acks_seen++;
        if (ack_want.size() == 0) $fatal(1, "ack nobody asked for: qp %0d psn %h", ack.qp, ack.psn);
        if (ack !== ack_want[0]) $fatal(1, "ack %h, want %h", ack, ack_want[0]);
        void'(ack_want.pop_front());
      end
      if (at_valid && at_ready) begin
        atomics++;
        if (at_wait != 0) $fatal(1, "two atomics at once");
        if (at_want.size() == 0 || at !== at_want[0]) $fatal(1, "atomic %p, want %p", at, at_want[0]);
        if (bursts_seen < at_bursts[0]) $fatal(1, "atomic before %0d answers of %0d", bursts_seen, at_bursts[0]);
        void'(at_want.pop_front());
        void'(at_bursts.pop_front());
        at_wait = 1 + (stall == 0 ? 0 : int'($urandom() % 30));
      end
      if (rsp_valid && rsp_ready) begin
        rsps++;
        if (rsp_want.size() == 0) $fatal(1, "job nobody asked for: %p", rsp);
        r2 = rsp;
        if (rsp_want[0].kind == RspInit) begin
          r2 = '0;
          r2.kind = rsp.kind;
          r2.qp = rsp.qp;
        end
        if (rsp_want[0].kind == RspAtomic && rsp.dup) r2.va = rsp_want[0].va;
        if (rsp_want[0].kind == RspError) {r2.dup, r2.va, r2.rkey, r2.len} = {rsp_want[0].dup, rsp_want[0].va, rsp_want[0].rkey, rsp_want[0].len};
        if (r2 !== rsp_want[0]) $fatal(1, "job %p\nwant %p", r2, rsp_want[0]);
        if (acks_seen != rsp_acks[0] || bursts_seen < rsp_bursts[0])
          $fatal(1, "job behind %0d acknowledges and %0d answers, want %0d and %0d", acks_seen, bursts_seen, rsp_acks[0], rsp_bursts[0]);
        void'(rsp_want.pop_front());
        void'(rsp_acks.pop_front());
        void'(rsp_bursts.pop_front());
      end
      if (cqe_valid && cqe_ready) begin
        cqes_seen++;
        if (cqe_want.size() == 0) $fatal(1, "CQE nobody asked for");
        if (cqe !== cqe_want[0]) $fatal(1, "cqe %h, want %h", cqe, cqe_want[0]);
        // acknowledges of earlier packets are out (or are in this cycle), its own is not
        if (acks_seen != cqe_acks[0]) $fatal(1, "CQE behind %0d acknowledges, want %0d", acks_seen, cqe_acks[0]);
        void'(cqe_want.pop_front());
        void'(cqe_acks.pop_front());
      end
      if (ackrx_valid && ackrx_ready) begin
        reqs_seen++;
        if (req_want.size() == 0 || ackrx !== req_want[0]) $fatal(1, "for the requester: %p, want %p", ackrx, req_want[0]);
        if (b_seen < req_b[0]) $fatal(1, "for the requester: %0d of %0d B", b_seen, req_b[0]);
        void'(req_want.pop_front());
        void'(req_b.pop_front());
      end
      if (sq_flush_valid && sq_flush_ready) begin
        sqfs_seen++;
        if (sqf_want.size() == 0 || sq_flush_idx !== sqf_want[0]) $fatal(1, "flush of %0d", sq_flush_idx);
        if (b_seen < sqf_b[0] || reqs_seen != sqf_reqs[0])
          $fatal(1, "flush behind %0d of %0d B and %0d of %0d for the requester", b_seen, sqf_b[0], reqs_seen, sqf_reqs[0]);
        void'(sqf_want.pop_front());
        void'(sqf_b.pop_front());
        void'(sqf_reqs.pop_front());
      end
      if (qp_err_valid && !err_before && held_before[qp_err_slot]) $fatal(1, "QP %0d fails before its responses have left", qp_err_idx);
      err_before = qp_err_valid && !qp_err_ready;
      held_before = held;
      held_back += int'(dut.done && dut.err_new && held[hold_qp]);
      if (qp_err_valid && qp_err_ready) begin
        qp_errs_seen++;
        if (err_want.size() == 0 || qp_err_idx !== err_want[0]) begin
          $fatal(1, "QP error of %0d", qp_err_idx);
        end
        void'(err_want.pop_front());
      end
      if (ev_bytes_valid) bytes_seen += 64'(ev_bytes);
      if (ev_message) msgs_seen++;
      if (ev_send) sends_seen++;
      if (ev_nak_op) naks_seen++;
      if (ev_axi_err) errs_seen++;
      if (ev_stall) stalls_seen++;
    end
  end
  longint unsigned errs_seen, stalls_seen;
  rsp_job_t r2;

  function automatic bit busy();
    return wr_todo.size() != 0 || pl_todo.size() != 0 || wr_valid || pl_valid || !idle;
  endfunction

  task automatic settle(string what);
    int n = 0;
    while (busy()) begin
      @(negedge clk);
      n++;
      if (n > 400000) $fatal(1, "%s: does not come to rest", what);
    end
    repeat (3) @(negedge clk);
    if (ack_want.size() != 0) $fatal(1, "%s: %0d acknowledges missing", what, ack_want.size());
    if (err_want.size() != 0) $fatal(1, "%s: QP error missing", what);
    if (rsp_want.size() != 0 || at_want.size() != 0) $fatal(1, "%s: %0d jobs, %0d atomics missing", what, rsp_want.size(), at_want.size());
    if (req_want.size() != 0) $fatal(1, "%s: %0d for the requester missing", what, req_want.size());
    if (sqf_want.size() != 0) $fatal(1, "%s: %0d flushes missing", what, sqf_want.size());
    if (cqe_want.size() != 0) $fatal(1, "%s: %0d CQEs missing", what, cqe_want.size());
    if (sends_seen != sends_want) $fatal(1, "%s: SENDs %0d, want %0d", what, sends_seen, sends_want);
    if (b_plan.size() != 0) $fatal(1, "%s: %0d bursts fewer than expected", what, b_plan.size());
    if (bytes_seen != bytes_want) $fatal(1, "%s: %0d bytes of %0d", what, bytes_seen, bytes_want);
    if (msgs_seen != msgs_want) $fatal(1, "%s: messages %0d, want %0d", what, msgs_seen, msgs_want);
    if (naks_seen != naks_want) $fatal(1, "%s: NAKs %0d, want %0d", what, naks_seen, naks_want);
    if (errs_seen != errs_want) $fatal(1, "%s: errors %0d, want %0d", what, errs_seen, errs_want);
    for (int i = 0; i < (1 << MemW); i++) begin
      if (mem[i] != want[i]) $fatal(1, "%s: memory[%h] is %h, want %h", what, i, mem[i], want[i]);
    end
  endtask

  longint unsigned next_addr;
  int l, t0, n_in, taken, k0;
  initial begin
    for (int i = 0; i < (1 << MemW); i++) begin
      mem[i] = 8'(i ^ (i >> 8));
      want[i] = mem[i];
    end
    repeat (4) @(negedge clk);
    rst_n = 1;

    // every memory lane x frame lane, short lengths; then all lengths
    for (int a = 0; a < int'(BytesW); a++) begin
      for (int o = 0; o < int'(BytesW); o++) begin
        l = 1 + int'($urandom() % (3 * BytesW));
        next_addr = Base + 64'(($urandom() % 256) * BytesW) + 64'(a);
        queue_packet(qp_idx_t'($urandom()), next_addr, l, o, 1, 1, 0);
      end
      settle("lanes");
    end
    for (int n = 0; n <= 300; n++) begin
      queue_packet(qp_idx_t'($urandom()), Base + 64'($urandom() % 61000), n,
                   int'($urandom() % BytesW), 1, 1'($urandom()), 0);
    end
    settle("lengths");
    // pieces of every length at every border
    for (int n = 1; n <= 300; n++) begin
      queue_packet(qp_idx_t'($urandom()), Base + 64'($urandom() % 61000), n, int'($urandom() % BytesW), 1, 1'($urandom()), 0,
                   0, 2 + n % 3, n % 3);
      if (n % 20 == 0) settle("pieces");
    end
    // values at every lane and over page and burst borders
    for (int a = 0; a < 2 * int'(BytesW); a++) queue_value(qp_idx_t'($urandom()), Base + 64'(a * 13), 1, 0);
    for (int a = 0; a < 8; a++) queue_value(qp_idx_t'($urandom()), Base + 64'(4096 * (a + 1) - a), 1, 0);
    settle("values");
    // random, with stalls, up to 4096 bytes, errors
    no_moves = 0;
    for (int round = 0; round < 12; round++) begin
      stall = round % 3 == 0 ? 0 : round % 3 == 1 ? 30 : 80;
      stall_b = round % 4 == 0 ? 0 : round % 4 == 1 ? 95 : 50;
      for (int i = 0; i < 60; i++) begin
        t0 = int'($urandom() % 8);
        if ($urandom() % 2 == 0) begin
          k0 = int'($urandom() % 5);
          queue_read(qp_idx_t'($urandom() % 8), k0 < 2 ? RxRead : k0 < 4 ? RxAtomic : RxError, 1'($urandom()),
                     round >= 4 && $urandom() % 4 == 0, k0 == 4 && $urandom() % 2 == 0);
        end
        case (t0)
          0: l = 0;
          1: l = 4096;
          2: l = 256 << ($urandom() % 5);
          default: l = int'($urandom() % 700);
        endcase
        queue_packet(qp_idx_t'($urandom() % 8), Base + 64'($urandom() % 61000), l,
                     int'($urandom() % BytesW), 1'($urandom()), 1'($urandom()),
                     round >= 4 && $urandom() % 10 == 0 ? 1 + int'($urandom() % 2) : 0, 0,
                     $urandom() % 3 == 0 ? 1 + int'($urandom() % 4) : 1,
                     round % 2 == 1 && $urandom() % 3 == 0 ? 4 : $urandom() % 2 == 0 ? int'($urandom() % (l == 0 ? 4 : 3)) : 0);
        if ($urandom() % 8 == 0) queue_sq_flush(qp_idx_t'($urandom() % 8));
        if (round % 2 == 1 && $urandom() % 3 == 0)
          queue_value(qp_idx_t'($urandom() % 8), Base + 64'($urandom() % 61000), 1'($urandom()), round >= 4 && $urandom() % 10 == 0);
      end
      settle("random");
      for (int q = 0; q < 8; q++) begin
        if ($urandom() % 2 == 0) queue_packet(qp_idx_t'(q), 0, 0, 0, 0, 0, 0, 1);
      end
    end
    for (int q = 0; q < 8; q++) queue_packet(qp_idx_t'(q), 0, 0, 0, 0, 0, 0, 1);
    settle("init");
    no_moves = 1;
    while (moving) @(negedge clk);
    if (n_moves < 200 || n_busy < 200 || n_bad < 3) $fatal(1, "moves: corner not reached: %0d %0d %0d", n_moves, n_busy, n_bad);

    // drain: done only after what was inside at the rise, in spite of new work
    stall = 0;
    stall_b = 90;
    for (int i = 0; i < 40; i++) queue_packet(qp_idx_t'(i), Base + 64'(256 * i), 100, 0, 1, 1, 0);
    repeat (30) @(negedge clk);
    taken = 40 - wr_todo.size() - int'(wr_valid);
    n_in = taken - (40 - ack_want.size());
    drain = 1;
    t0 = 0;
    if (n_in == 0) $fatal(1, "nothing to drain");
    if (drain_done) $fatal(1, "drain done at once");
    while (!drain_done) begin
      @(negedge clk);
      t0++;
      if (t0 > 20000) $fatal(1, "drain never done");
    end
    if (ack_want.size() > 40 - taken) $fatal(1, "drain done, %0d of 40 open", ack_want.size());
    drain = 0;
    settle("drain");

    // throughput without stalls: 64 packets of 4096 bytes, first at the worst alignment
    stall_b = 0;
    w_first_cycle = 0;
    w_beats = 0;
    for (int i = 0; i < 64; i++) begin
      queue_packet(1, Base + 64'(4096 * (i % 14)) + 3, 4096, int'(BytesW) - 2, 1, 1, 0);
    end
    settle("throughput");
    l = w_last_cycle - w_first_cycle + 1;
    if (l > w_beats + 64) $fatal(1, "%0d beats took %0d cycles", w_beats, l);
    if (max_outstanding < 16 || max_outstanding > 64) begin
      $fatal(1, "%0d bursts outstanding", max_outstanding);
    end
    if (atomics < 25 || at_errs < 2 || rsps < 150) $fatal(1, "requests: corner not reached: %0d %0d %0d", atomics, at_errs, rsps);
    if (naks_want < 5 || stalls_seen == 0) $fatal(1, "corner not reached");
    if (pieces_made < 500 || cqes_seen < 200 || flushed_seen < 10 || sends_seen < 50) $fatal(1, "CQEs: corner not reached");
    if (reqs_seen < 100 || values_seen < 50 || req_fails < 3) $fatal(1, "for the requester: corner not reached");
    if (sqfs_seen < 40) $fatal(1, "flushes: corner not reached");
    if (silent_seen == 0) $fatal(1, "no silent failure");
    if (held_back < 10) $fatal(1, "no failure held back");
    $display("PASS %0d packets, %0d moves, %0d jobs, %0d atomics (%0d failed), %0d pieces, %0d CQEs, %0d bytes, %0d refused, %0d bursts open, %0d beats in %0d cycles",
             packets, n_moves, rsps, atomics, at_errs, pieces_made, cqes_seen, bytes_seen, naks_seen, max_outstanding, w_beats, l);
    $finish;
  end
endmodule
