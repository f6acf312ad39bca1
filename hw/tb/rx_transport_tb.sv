// SPDX-License-Identifier: Apache-2.0
//
// Receive transport with models of its QP and MR ports (random latency): every rule alone with
// literal expectations, then random sequences of right and wrong packets on several QPs against a
// reference model, then throughput, admin port and drain. DataW does not matter to this block.

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
  logic qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0;
  logic mr_req_valid, mr_req_ready = 0, mr_rsp_valid = 0;
  qp_idx_t qp_req_idx;
  mr_idx_t mr_req_idx;
  qp_attr_t qp_rsp;
  mr_t mr_rsp;
  logic wr_valid, wr_ready = 0, ackrx_valid, ackrx_ready = 0, err_valid, err_ready = 0;
  rx_write_t wr;
  ack_rx_t ackrx;
  qp_idx_t err_idx;
  logic adm_valid = 0, adm_ready, adm_rsp_valid, drain = 0, drain_done, idle, ev_valid;
  qp_admin_t adm;
  rsp_query_t adm_rsp;
  logic [3:0] ev;

  rx_transport dut (
    .clk_i(clk), .rst_ni(rst_n), .coalesce_i(coalesce),
    .meta_valid_i(meta_valid), .meta_ready_o(meta_ready), .meta_i(meta),
    .pcmd_valid_o(pcmd_valid), .pcmd_ready_i(pcmd_ready), .pcmd_o(pcmd),
    .qp_req_valid_o(qp_req_valid), .qp_req_ready_i(qp_req_ready), .qp_req_idx_o(qp_req_idx),
    .qp_rsp_valid_i(qp_rsp_valid), .qp_rsp_i(qp_rsp),
    .mr_req_valid_o(mr_req_valid), .mr_req_ready_i(mr_req_ready), .mr_req_idx_o(mr_req_idx),
    .mr_rsp_valid_i(mr_rsp_valid), .mr_rsp_i(mr_rsp),
    .wr_valid_o(wr_valid), .wr_ready_i(wr_ready), .wr_o(wr),
    .ackrx_valid_o(ackrx_valid), .ackrx_ready_i(ackrx_ready), .ackrx_o(ackrx),
    .qp_err_valid_o(err_valid), .qp_err_ready_i(err_ready), .qp_err_idx_o(err_idx),
    .adm_valid_i(adm_valid), .adm_ready_o(adm_ready), .adm_i(adm),
    .adm_rsp_valid_o(adm_rsp_valid), .adm_rsp_o(adm_rsp),
    .drain_i(drain), .drain_done_o(drain_done), .idle_o(idle),
    .ev_drop_valid_o(ev_valid), .ev_drop_o(ev)
  );

  // ---- tables behind the ports ----
  qp_attr_t qps[NumQp];
  mr_t mrs[NumMr];
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
        mr_rsp = mrs[mr_idx];
      end
      qp_req_ready = go();
      mr_req_ready = go();
      pcmd_ready = go();
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

  // ---- what the block did, and what it must do ----
  rx_write_t    exp_wr[$];
  ack_rx_t      exp_ackrx[$];
  payload_cmd_e exp_pcmd[$];
  qp_idx_t      exp_err[$];
  int           exp_drop[$];
  rx_write_t    last_wr;
  ack_rx_t      last_ackrx;
  payload_cmd_e last_pcmd;
  int n_wr, n_ackrx, n_pcmd, n_err, n_drop, last_drop, n_meta, cycle, seen_drop[16], n_stream;
  int first_meta_cycle, last_meta_cycle;

  // has_payload 0 leaves iova without a meaning
  function automatic bit same_wr(rx_write_t a, rx_write_t b);
    if (!a.has_payload) begin
      a.iova = b.iova;
      if (a.syndrome != SynAck || !a.last) a.len = b.len;
    end
    if (!a.ack) a.syndrome = b.syndrome;
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
      end
      if (wr_valid && wr_ready) begin
        n_wr++;
        last_wr = wr;
        if (exp_wr.size() == 0) $fatal(1, "write nobody expects: %p", wr);
        if (!same_wr(wr, exp_wr[0])) $fatal(1, "write %p\nwant  %p", wr, exp_wr[0]);
        void'(exp_wr.pop_front());
      end
      if (ackrx_valid && ackrx_ready) begin
        n_ackrx++;
        last_ackrx = ackrx;
        if (exp_ackrx.size() == 0 || ackrx !== exp_ackrx[0]) $fatal(1, "acknowledge %p", ackrx);
        void'(exp_ackrx.pop_front());
      end
      if (pcmd_valid && pcmd_ready) begin
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

  // ---- reference model: one packet at a time, in integers ----
  longint r_epsn[NumQp], r_msn[NumQp], r_rem[NumQp], r_since[NumQp];
  logic [63:0] r_va[NumQp];
  logic [31:0] r_rkey[NumQp];
  bit r_in[NumQp], r_nak[NumQp], r_dead[NumQp];

  function automatic bit ref_access(logic [31:0] key, logic [23:0] pd, logic [63:0] va,
                                    longint len);
    mr_t m;
    logic [64:0] from, to, mfrom, mto;
    if (key[31:18] != 0) return 0;
    m = mrs[key[17:8]];
    from = {1'b0, va};
    to = from + 65'(len);
    mfrom = {1'b0, m.va};
    mto = mfrom + {1'b0, m.length};
    return m.valid && m.variant == key[7:0] && m.pd == pd && m.remote_write && from >= mfrom &&
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

  task automatic refuse(int q, rx_meta_t m, int syndrome, int reason);
    respond(q, longint'(m.psn), syndrome);
    exp_err.push_back(qp_idx_t'(q));
    exp_drop.push_back(reason);
    r_dead[q] = 1;
    r_in[q] = 0;
  endtask

  task automatic ref_packet(rx_meta_t m);
    int q, op, reason;
    longint ahead, mtu, len, total;
    bit is_req, is_rsp, is_write, first, middle, last, only, seq_ok, len_ok, exec, stream;
    logic [63:0] va;
    logic [31:0] key;
    qp_attr_t a;
    rx_write_t w;
    ack_rx_t k;
    q = int'(m.dest_qp) - 256;
    op = int'(m.opcode);
    stream = 0;
    reason = -1;
    is_rsp = op >= 'h0d && op <= 'h12;
    first = op == 'h06;
    middle = op == 'h07;
    last = op == 'h08;
    only = op == 'h0a;
    is_write = first || middle || last || only;
    is_req = op <= 'h0c || op == 'h13 || op == 'h14 || op == 'h16 || op == 'h17;
    if (q >= 0 && q < 256) a = qps[q];
    if (q < 0 || q > 255 || a.state == QpNone) reason = 0;
    else if (op == 'h81) reason = 13;
    else if (r_dead[q] || a.state == QpReset || a.state == QpInit || a.state == QpErr ||
             a.state == QpSqe || (a.state == QpRtr && is_rsp)) reason = 1;
    else if ((a.qp_type == 2) != (op < 'h20)) reason = 2;
    else if ((a.qp_type == 3) != (op >= 'h20 && op < 'h40)) reason = 2;
    else if (a.qp_type != 2) reason = 7;
    else if (m.sip != a.dgid || m.dip != a.sgid || m.ipv6 != a.ipv6) reason = 3;
    else if (m.pkey % 32768 != a.pkey % 32768 || m.pkey % 32768 == 0 ||
             (m.pkey < 32768 && a.pkey < 32768)) reason = 4;
    else if (op == 'h11) begin
      if ((m.syndrome >= 64 && m.syndrome < 96) || m.syndrome > 99) begin
        reason = 12;
      end else begin
        k = '{qp: qp_idx_t'(q), psn: m.psn, msn: m.msn, syndrome: m.syndrome};
        exp_ackrx.push_back(k);
      end
    end else if (!is_req) reason = 7;
    if (reason >= 0) exp_drop.push_back(reason);
    else if (is_req) begin
      ahead = (longint'(m.psn) - r_epsn[q] + (1 << 24)) % (1 << 24);
      if (ahead >= (1 << 23)) begin
        exp_drop.push_back(5);
        if (op != 'h0c && op != 'h13 && op != 'h14) begin
          respond(q, (r_epsn[q] + (1 << 24) - 1) % (1 << 24), 'h1f);
        end
      end else if (ahead > 0) begin
        exp_drop.push_back(6);
        if (!r_nak[q]) respond(q, r_epsn[q], 'h60);
        r_nak[q] = 1;
      end else if (!is_write) begin
        refuse(q, m, 'h61, 7);
      end else begin
        mtu = 128 << a.path_mtu;
        len = longint'(m.payload_len);
        seq_ok = (first || only) ? !r_in[q] : r_in[q];
        total = (first || only) ? longint'(m.dma_len) : r_rem[q];
        va = (first || only) ? m.va : r_va[q];
        key = (first || only) ? m.rkey : r_rkey[q];
        len_ok = (len + longint'(m.pad)) % 4 == 0;
        if (first) len_ok = len_ok && len == mtu && total > mtu && total <= 64'h80000000;
        if (middle) len_ok = len_ok && len == mtu && total > mtu;
        if (last) len_ok = len_ok && len >= 1 && len <= mtu && total == len;
        if (only) len_ok = len_ok && len <= mtu && total == len;
        if (!a.remote_write || !seq_ok || !len_ok) refuse(q, m, 'h61, 8);
        else if (total != 0 && !ref_access(key, a.pd, va, total)) refuse(q, m, 'h62, 9);
        else begin
          stream = len != 0;
          r_nak[q] = 0;
          r_epsn[q] = (r_epsn[q] + 1) % (1 << 24);
          r_in[q] = first || middle;
          r_rkey[q] = key;
          r_va[q] = va + 64'(len);
          r_rem[q] = total - len;
          if (last || only) r_msn[q] = (r_msn[q] + 1) % (1 << 24);
          r_since[q]++;
          w = '0;
          w.qp = qp_idx_t'(q);
          w.has_payload = stream;
          w.iova = va - mrs[key[17:8]].va + mrs[key[17:8]].iova;
          w.len = 13'(len);
          w.ack = m.ack_req || (coalesce != 0 && r_since[q] >= longint'(coalesce));
          w.last = last || only;
          w.psn = m.psn;
          w.msn = 24'(r_msn[q]);
          w.syndrome = 8'h1f;
          if (w.ack) r_since[q] = 0;
          exp_wr.push_back(w);
        end
      end
    end
    if (m.payload_len != 0) exp_pcmd.push_back(stream ? PayloadStream : PayloadDrop);
    todo.push_back(m);
  endtask

  task automatic settle(string what);
    int n;
    n = 0;
    while (todo.size() != 0 || meta_valid || !idle) begin
      @(negedge clk);
      n++;
      if (n > 200000) $fatal(1, "%s: does not come to rest", what);
    end
    repeat (3) @(negedge clk);
    if (exp_wr.size() + exp_ackrx.size() + exp_pcmd.size() + exp_err.size() +
        exp_drop.size() != 0) begin
      $fatal(1, "%s: missing: %0d writes %0d acknowledges %0d commands %0d errors %0d drops", what,
             exp_wr.size(), exp_ackrx.size(), exp_pcmd.size(), exp_err.size(), exp_drop.size());
    end
  endtask

  task automatic admin(qp_admin_e op, int q, psn_t psn);
    int n;
    n = 0;
    @(negedge clk);
    adm = '{op: op, qp: qp_idx_t'(q), psn: psn};
    adm_valid = 1;
    do begin
      @(posedge clk);
      n++;
      if (n > 10000) $fatal(1, "admin request not taken");
    end while (!adm_ready);
    @(negedge clk);
    adm_valid = 0;
    while (!adm_rsp_valid) begin
      @(negedge clk);
      n++;
      if (n > 10000) $fatal(1, "admin request not answered");
    end
  endtask

  // A new connection of QP q.
  task automatic connect(int q, psn_t psn);
    rx_write_t w;
    w = '0;
    w.qp = qp_idx_t'(q);
    w.init = 1;
    exp_wr.push_back(w);
    r_epsn[q] = longint'(psn);
    r_msn[q] = 0;
    r_in[q] = 0;
    r_nak[q] = 0;
    r_dead[q] = 0;
    r_since[q] = 0;
    admin(QpStateInit, q, psn);
    if (adm_rsp.expected_psn !== psn || adm_rsp.msn !== 0) $fatal(1, "init answered %p", adm_rsp);
  endtask

  // Loop bounds kept in variables: Verilator would unroll the loops and compile for minutes.
  int n4 = 4, n8 = 8, n18 = 18, rounds = 126;

  // ---- directed tests: a script of steps, built first, played by one loop ----
  // QP 5 as every test finds it: RTR, MTU 256, expected PSN 0xfffffe, MR 3 of 64 KiB.
  localparam int Q = 5;
  localparam logic [127:0] Us = 128'h0100000a_ffff0000_00000000_00000000;
  localparam logic [127:0] Them = 128'h0200000a_ffff0000_00000000_00000000;
  localparam logic [63:0] Va = 64'h0000_5555_0000_0123;
  localparam logic [63:0] Iova = 64'hffff_0000_0000_0077;
  localparam logic [31:0] Key = 32'h0000_03a7;

  typedef enum logic [4:0] {
    Fresh, Silent, Fatal, Good, Dup, NakSeq, Forward, Query,
    SetQpState, SetQpType, SetQpPkey, SetQpWrite,
    SetMrLength, SetMrPd, SetMrWrite, SetMrValid, SetCoalesce
  } kind_e;
  typedef struct packed {
    kind_e       kind;
    rx_meta_t    m;
    logic [63:0] a;
    logic [31:0] b;
    logic        c;
  } step_t;

  // A class because Verilator inlines the functions of a module at every call.
  class builder;
    step_t steps[$];
    string names[$];
    int    n8 = 8, n24 = 24, n256 = 256;

    // The packet that the steps change and use: m.
    rx_meta_t m;
    function void packet(logic [7:0] op, psn_t psn, int len);
      m = '0;
      m.opcode = op;
      m.pad = 2'(-len);
      m.pkey = 16'hffff;
      m.dest_qp = QpnBase + 24'(Q);
      m.psn = psn;
      m.va = Va;
      m.rkey = Key;
      m.dma_len = 32'(len);
      m.sip = Them;
      m.dip = Us;
      m.payload_len = 13'(len);
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
    // Not executed, acknowledged with the newest PSN executed and the current MSN.
    function void silent_dup(psn_t psn, psn_t newest, int msn);
      packet(8'h0a, psn, 4);
      add(Dup, m, 64'(newest), msn, 0);
    endfunction
    function void start_message();
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 257;
      good(m, Iova, 0, 0);
    endfunction

    function void script();
      rx_meta_t m2;
      fresh("only, PSN wrap, MSN, AckReq");
      packet(8'h0a, 24'hfffffe, 13);
      good(m, Iova, 1, 0);
      packet(8'h0a, 24'hffffff, 256);
      m.ack_req = 1;
      m.va = Va + 64'h10000 - 256;
      good(m, Iova + 64'h10000 - 256, 2, 1);
      packet(8'h0a, 24'h000000, 1);
      good(m, Iova, 3, 0);
      silent_dup(24'hffffff, 24'h000000, 3);
      add(Query, '0, 64'h000001, 3, 0);

      fresh("message of three packets");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 517;
      good(m, Iova, 0, 0);
      packet(8'h07, 24'hffffff, 256);
      m.va = 64'hdead;  // has no RETH: these fields mean nothing
      m.rkey = 32'hdead;
      m.dma_len = 32'hdead;
      m.ack_req = 1;
      good(m, Iova + 256, 0, 1);
      packet(8'h08, 24'h000000, 5);
      m.rkey = 32'hbeef;
      good(m, Iova + 512, 1, 0);

      fresh("zero length looks at no key");
      packet(8'h0a, 24'hfffffe, 0);
      m.rkey = 32'hdeadbeef;
      m.va = '1;
      m.ack_req = 1;
      good(m, 0, 1, 1);

      fresh("coalescing");
      set(SetCoalesce, 64'(3));
      packet(8'h0a, 24'hfffffe, 4);
      good(m, Iova, 1, 0);
      packet(8'h0a, 24'hffffff, 4);
      good(m, Iova, 2, 0);
      packet(8'h0a, 24'h000000, 4);
      good(m, Iova, 3, 1);
      packet(8'h0a, 24'h000001, 4);
      good(m, Iova, 4, 0);
      packet(8'h0a, 24'h000002, 4);
      m.ack_req = 1;
      good(m, Iova, 5, 1);
      packet(8'h0a, 24'h000003, 4);
      good(m, Iova, 6, 0);
      packet(8'h0a, 24'h000004, 4);
      good(m, Iova, 7, 0);
      packet(8'h0a, 24'h000005, 4);
      good(m, Iova, 8, 1);
      set(SetCoalesce, 64'(0));

      fresh("gap: one NAK, again after the expected PSN");
      packet(8'h0a, 24'h000001, 4);
      add(NakSeq, m, 64'hfffffe, 0, 0);
      packet(8'h0a, 24'h000002, 4);
      silent(m, 6);
      packet(8'h0a, 24'h7ffffd, 4);
      silent(m, 6);  // 2^23 - 1 ahead
      packet(8'h0a, 24'hfffffe, 4);
      good(m, Iova, 1, 0);
      packet(8'h0a, 24'h000001, 4);
      add(NakSeq, m, 64'hffffff, 0, 0);

      fresh("duplicates, as far as 2^23 behind");
      packet(8'h0a, 24'hfffffe, 4);
      good(m, Iova, 1, 0);
      silent_dup(24'hfffffe, 24'hfffffe, 1);
      silent_dup(24'h7fffff, 24'hfffffe, 1);
      packet(8'h0c, 24'hfffffe, 0);
      silent(m, 5);  // READ: nothing remembered, no ACK

      fresh("first inside a message");
      start_message();
      packet(8'h06, 24'hffffff, 256);
      m.dma_len = 1000;
      fatal_nak(m, 'h61, 8);
      fresh("only inside a message");
      start_message();
      packet(8'h0a, 24'hffffff, 4);
      fatal_nak(m, 'h61, 8);
      fresh("middle without first");
      packet(8'h07, 24'hfffffe, 256);
      fatal_nak(m, 'h61, 8);
      fresh("last without first");
      packet(8'h08, 24'hfffffe, 4);
      fatal_nak(m, 'h61, 8);
      fresh("message ends: last twice");
      start_message();
      packet(8'h08, 24'hffffff, 1);
      good(m, Iova + 256, 1, 0);
      packet(8'h08, 24'h000000, 1);
      fatal_nak(m, 'h61, 8);

      fresh("first shorter than the MTU");
      packet(8'h06, 24'hfffffe, 252);
      m.dma_len = 1000;
      fatal_nak(m, 'h61, 8);
      fresh("first of the length of the message");
      packet(8'h06, 24'hfffffe, 256);
      fatal_nak(m, 'h61, 8);
      fresh("first with pad");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 1000;
      m.pad = 1;
      fatal_nak(m, 'h61, 8);
      fresh("longer than 2^31");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 32'h80000001;
      set(SetMrLength, 64'(64'h1_0000_0000));
      fatal_nak(m, 'h61, 8);
      fresh("2^31");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 32'h80000000;
      set(SetMrLength, 64'(64'h1_0000_0000));
      good(m, Iova, 0, 0);
      fresh("middle longer than the MTU");
      start_message();
      packet(8'h07, 24'hffffff, 512);
      fatal_nak(m, 'h61, 8);
      fresh("middle where the last is due");
      start_message();
      packet(8'h07, 24'hffffff, 256);
      fatal_nak(m, 'h61, 8);
      fresh("middle where one MTU is left");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 512;
      good(m, Iova, 0, 0);
      packet(8'h07, 24'hffffff, 256);
      fatal_nak(m, 'h61, 8);
      fresh("last of one MTU");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 512;
      good(m, Iova, 0, 0);
      packet(8'h08, 24'hffffff, 256);
      good(m, Iova + 256, 1, 0);
      fresh("last empty");
      start_message();
      packet(8'h08, 24'hffffff, 0);
      fatal_nak(m, 'h61, 8);
      fresh("last longer than announced");
      start_message();
      packet(8'h08, 24'hffffff, 2);
      fatal_nak(m, 'h61, 8);
      fresh("last shorter than announced");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 300;
      good(m, Iova, 0, 0);
      packet(8'h08, 24'hffffff, 43);
      fatal_nak(m, 'h61, 8);
      fresh("last with a wrong pad");
      start_message();
      packet(8'h08, 24'hffffff, 1);
      m.pad = 2;
      fatal_nak(m, 'h61, 8);
      fresh("only longer than the MTU");
      packet(8'h0a, 24'hfffffe, 260);
      fatal_nak(m, 'h61, 8);
      fresh("only longer than any MTU");
      packet(8'h0a, 24'hfffffe, 8191);
      fatal_nak(m, 'h61, 8);
      fresh("only of another length than its RETH");
      packet(8'h0a, 24'hfffffe, 8);
      m.dma_len = 7;
      fatal_nak(m, 'h61, 8);
      fresh("only without payload but with a length");
      packet(8'h0a, 24'hfffffe, 0);
      m.dma_len = 4;
      fatal_nak(m, 'h61, 8);
      fresh("QP without remote write");
      set(SetQpWrite, 64'(0));
      packet(8'h0a, 24'hfffffe, 8);
      fatal_nak(m, 'h61, 8);

      for (int op = 0; op < n256; op++) begin
        if (op inside {['h00 : 'h05], 'h09, 'h0b, 'h0c, 'h13, 'h14, 'h16, 'h17}) begin
          fresh("refused request");
          packet(8'(op), 24'hfffffe, 8);
          fatal_nak(m, 'h61, 7);
        end
        if (op inside {'h0d, 'h0e, 'h0f, 'h10, 'h12, 'h15, ['h18 : 'h1f]}) begin
          fresh("unsupported");
          set(SetQpState, 64'(QpRts));
          packet(8'(op), 24'hfffffe, 8);
          silent(m, 7);
        end
        if (op inside {['h20 : 'h80], ['h82 : 'hff]}) begin
          if (op == 'h20) fresh("service");
          packet(8'(op), 24'hfffffe, 8);
          silent(m, 2);
        end
      end
      fresh("UC and UD");
      set(SetQpType, 64'(QpTypeUc));
      packet(8'h2a, 24'hfffffe, 8);
      silent(m, 7);
      packet(8'h0a, 24'hfffffe, 8);
      silent(m, 2);
      packet(8'h64, 24'hfffffe, 8);
      silent(m, 2);
      set(SetQpType, 64'(QpTypeUd));
      packet(8'h64, 24'hfffffe, 8);
      silent(m, 7);
      packet(8'h2a, 24'hfffffe, 8);
      silent(m, 2);

      fresh("key of another variant");
      packet(8'h0a, 24'hfffffe, 8);
      m.rkey = Key ^ 32'h1;
      fatal_nak(m, 'h62, 9);
      fresh("key of an empty slot");
      packet(8'h0a, 24'hfffffe, 8);
      m.rkey = 32'h4a7;
      fatal_nak(m, 'h62, 9);
      fresh("key beyond the table");
      packet(8'h0a, 24'hfffffe, 8);
      m.rkey = Key | 32'h00040000;
      fatal_nak(m, 'h62, 9);
      fresh("other PD");
      set(SetMrPd, 64'(24'd8));
      packet(8'h0a, 24'hfffffe, 8);
      fatal_nak(m, 'h62, 9);
      fresh("MR without remote write");
      set(SetMrWrite, 64'(0));

      packet(8'h0a, 24'hfffffe, 8);

      fatal_nak(m, 'h62, 9);
      fresh("below the MR");
      packet(8'h0a, 24'hfffffe, 8);
      m.va = Va - 1;
      fatal_nak(m, 'h62, 9);
      fresh("beyond the MR");
      packet(8'h0a, 24'hfffffe, 8);
      m.va = Va + 64'h10000 - 7;
      fatal_nak(m, 'h62, 9);
      fresh("address wraps");
      packet(8'h0a, 24'hfffffe, 8);
      m.va = 64'hffff_ffff_ffff_fffc;
      fatal_nak(m, 'h62, 9);
      fresh("message beyond the MR, seen at its first packet");
      packet(8'h06, 24'hfffffe, 256);
      m.dma_len = 32'h10001;
      fatal_nak(m, 'h62, 9);
      fresh("MR destroyed inside a message");
      start_message();
      set(SetMrValid, 64'(0));
      packet(8'h08, 24'hffffff, 1);
      fatal_nak(m, 'h62, 9);

      for (int s = 0; s < n8; s++) begin
        fresh("states");
        set(SetQpState, 64'(s));
        packet(8'h0a, 24'hfffffe, 8);
        if (s == 2 || s == 3 || s == 4) good(m, Iova, 1, 0);
        else silent(m, s == 7 ? 0 : 1);
        packet(8'h11, 24'h123456, 0);
        m.syndrome = 8'h1f;
        m.msn = 24'habcdef;
        if (s == 3 || s == 4) add(Forward, m, 0, 0, 0);
        else silent(m, s == 7 ? 0 : 1);
      end
      fresh("AETH");
      set(SetQpState, 64'(QpRts));
      for (int s = 0; s < n256; s++) begin
        packet(8'h11, 24'h123456, 0);
        m.syndrome = 8'(s);
        if (s < 'h40 || s inside {'h60, 'h61, 'h62, 'h63}) add(Forward, m, 0, 0, 0);
        else silent(m, 12);
      end
      packet(8'h11, 24'h123456, 12);  // payload behind an AETH is thrown away
      add(Forward, m, 0, 0, 0);

      fresh("QP number");
      packet(8'h0a, 24'hfffffe, 8);
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
      packet(8'h81, 24'h0, 16);
      m2 = m;
      silent(m2, 13);
      fresh("nothing after a fatal NAK although the QP table still says RTR");
      packet(8'h07, 24'hfffffe, 256);
      m2 = m;
      fatal_nak(m2, 'h61, 8);
      set(SetQpState, 64'(QpRts));
      packet(8'h0a, 24'hfffffe, 8);
      silent(m, 1);
      packet(8'h11, 24'h0, 0);
      silent(m, 1);
      fresh("connected again");
      packet(8'h0a, 24'hfffffe, 8);
      good(m, Iova, 1, 0);
    endfunction
  endclass

  builder b = new;
  string test;

  task automatic play();
    step_t t;
    int b_wr, b_ackrx, b_pcmd, b_err, b_drop;
    bit quiet, ok, is_packet;
    int at;
    for (int i = 0; i < b.steps.size(); i++) begin
      t = b.steps[i];
      is_packet = t.kind inside {Silent, Fatal, Good, Dup, NakSeq, Forward};
      b_wr = n_wr;
      b_ackrx = n_ackrx;
      b_pcmd = n_pcmd;
      b_err = n_err;
      b_drop = n_drop;
      case (t.kind)
        Fresh: begin
          at = t.a[31:0];
          test = b.names[at];
          coalesce = 0;
          qps[Q] = '0;
          qps[Q].state = QpRtr;
          qps[Q].qp_type = QpTypeRc;
          qps[Q].path_mtu = 1;
          qps[Q].remote_write = 1;
          qps[Q].pd = 24'd9;
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
        SetQpType: qps[Q].qp_type = t.a[2:0];
        SetQpPkey: qps[Q].pkey = t.a[15:0];
        SetQpWrite: qps[Q].remote_write = t.a[0];
        SetMrLength: mrs[3].length = t.a;
        SetMrPd: mrs[3].pd = t.a[23:0];
        SetMrWrite: mrs[3].remote_write = t.a[0];
        SetMrValid: mrs[3].valid = t.a[0];
        SetCoalesce: coalesce = t.a[7:0];
        Query: admin(QpStateQuery, Q, 0);
        default: ;
      endcase
      if (is_packet) ref_packet(t.m);
      settle(test);
      ok = 1;
      quiet = n_wr == b_wr && n_ackrx == b_ackrx && n_err == b_err && n_drop == b_drop;
      case (t.kind)
        Silent: ok = n_wr == b_wr && n_ackrx == b_ackrx && n_err == b_err && n_drop == b_drop + 1 &&
                     last_drop == int'(t.b);
        Fatal: ok = n_wr == b_wr + 1 && n_err == b_err + 1 && n_ackrx == b_ackrx &&
                    last_drop == int'(t.b) && last_wr.ack && !last_wr.has_payload &&
                    last_wr.syndrome == t.a[7:0] && last_wr.psn == t.m.psn;
        Good: ok = n_wr == b_wr + 1 && n_drop == b_drop && n_err == b_err && n_ackrx == b_ackrx &&
                   last_wr.ack == t.c && last_wr.psn == t.m.psn && last_wr.msn == t.b[23:0] &&
                   last_wr.syndrome == SynAck && last_wr.has_payload == (t.m.payload_len != 0) &&
                   (t.m.payload_len == 0 ||
                    (last_wr.iova == t.a && last_wr.len == t.m.payload_len));
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
          ok = ok && last_pcmd == (t.kind == Good ? PayloadStream : PayloadDrop);
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

  // The packet that QP q must take next, or one that is wrong in one place.
  task automatic random_packet(int q, int wrong_percent);
    rx_meta_t p;
    longint mtu, len;
    int k, pick;  // drawn before each case: Verilator 5.006 evaluates a case's expression per item
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
    if (r_in[q]) begin
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
        9: p.opcode = 8'($urandom() % 32);
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
    ref_packet(p);
  endtask

  // Rounds 0 to 119: traffic, right or with errors. 120 to 122: throughput on one QP, on eight, on
  // two in turn. 123, 124: drain with one packet in a held output, and with one more behind it.
  // 125: drain under new work.
  task automatic random_round(int round);
    int q, n, before_drain;
    for (int i = 0; i < n4; i++) begin
      mrs[i] = '0;
      mrs[i].valid = 1;
      mrs[i].variant = 8'($urandom());
      mrs[i].pd = 24'd77;
      mrs[i].remote_write = 1;
      mrs[i].va = {$urandom(), $urandom()} >> 1;
      mrs[i].length = 64'd30000 + 64'($urandom() % 100000);
      mrs[i].iova = {$urandom(), $urandom()};
    end
    for (int i = 0; i < n8; i++) begin
      q = i * 31;
      qps[q] = '0;
      qps[q].state = $urandom() % 4 == 0 ? QpRtr : $urandom() % 8 == 0 ? QpSqd : QpRts;
      qps[q].qp_type = QpTypeRc;
      qps[q].path_mtu = 3'(1 + $urandom() % 5);
      qps[q].remote_write = 1;
      qps[q].pd = 24'd77;
      qps[q].pkey = 16'hffff;
      qps[q].ipv6 = 1'($urandom());
      qps[q].sgid = {4{$urandom()}};
      qps[q].dgid = {4{$urandom()}};
      connect(q, random_psn());
    end
    while (!idle) @(negedge clk);
    coalesce = round % 3 == 0 ? 8'd0 : 8'($urandom() % 5);
    stall = round % 2 == 0 || round >= 120 ? 0 : int'($urandom() % 80);
    n_meta = 0;
    hold_wr = round == 123 || round == 124;
    for (int i = 0; i < (round == 123 ? 1 : round == 124 ? 3 : 300); i++) begin
      case (round)
        120, 123, 124, 125: q = 31;
        121: q = 31 * (i % 8);
        122: q = 31 * (i % 2);
        default: q = 31 * (round % 5 == 0 ? 3 : int'($urandom() % 8));
      endcase
      random_packet(q, round % 4 == 0 || round >= 120 ? 0 : 12);
    end
    if (round >= 123) begin
      repeat (30) @(negedge clk);
      if (idle) $fatal(1, "nothing inside");
      drain = 1;
      before_drain = n_wr;
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
      if (n_wr - before_drain < (round == 123 ? 1 : 2)) $fatal(1, "drain done too early");
      if (round == 125 && todo.size() == 0) $fatal(1, "no new work");
      drain = 0;
    end
    // queries between packets do no harm; the last ones, behind all packets, must agree
    for (int i = 0; i < n18; i++) begin
      q = i < 10 ? int'($urandom() % 8) * 31 : (i - 10) * 31;
      if (i == 10 || round >= 120) settle("random");
      admin(QpStateQuery, q, 0);
      if (i >= 10 && (longint'(adm_rsp.expected_psn) != r_epsn[q] ||
                      longint'(adm_rsp.msn) != r_msn[q])) begin
        $fatal(1, "qp %0d: query says psn %h msn %h, want %h %h", q, adm_rsp.expected_psn,
               adm_rsp.msn, r_epsn[q], r_msn[q]);
      end
    end
    if (round >= 120 && round <= 122) begin
      per_packet_x100[round-120] = (last_meta_cycle - first_meta_cycle) * 100 / (n_meta - 1);
      if (n_meta != 300 || per_packet_x100[round-120] > 400) begin
        $fatal(1, "%0d packets, %0d cycles for 100", n_meta, per_packet_x100[round-120]);
      end
    end
  endtask

  int per_packet_x100[3];
  initial begin
    for (int i = 0; i < int'(NumQp); i++) begin
      qps[i] = '0;
      qps[i].state = QpNone;
    end
    for (int i = 0; i < int'(NumMr); i++) mrs[i] = '0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    b.script();
    play();
    for (int r = 0; r < rounds; r++) random_round(r);

    for (int i = 0; i < 14; i++) begin
      if (i != 10 && i != 11 && seen_drop[i] < 4) $fatal(1, "drop %0d: seen %0d", i, seen_drop[i]);
    end
    if (n_stream < 5000 || reached_middle < 1000) $fatal(1, "corner not reached");
    $display("PASS %0d written, %0d dropped, %0d acknowledges, %0d fatal, cycles x100: %0d %0d %0d",
             n_stream, n_drop, n_ackrx, n_err, per_packet_x100[0], per_packet_x100[1],
             per_packet_x100[2]);
    $finish;
  end
endmodule
