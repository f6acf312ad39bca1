// SPDX-License-Identifier: Apache-2.0
//
// mr_table against a model: regions and windows made, read and destroyed by commands, bound, invalidated by work requests
// and by peers, at random with few keys, PDs and QPs, so that right and wrong ones meet; two sources of changes at once; reads
// on all ports; windows of a QP taken away; a cache with few lines, so that entries come and go; reset. A read gives the entry as it
// was at some time between question and answer: what was changed before the question is seen.

module mr_table_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int Ports = 2;
  localparam int N = 10;   // entries 0 to 9, and one at the end of the table

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [Ports-1:0] req_valid = '0, req_ready, rsp_valid;
  mr_idx_t [Ports-1:0] req_idx = '0;
  mr_t rsp[Ports];
  logic cmd_valid = 0, cmd_ready, cmd_lock = 0, cmd_rsp_valid, cmd_bound, idle;
  mr_cmd_e cmd_op = MrCmdRead;
  mr_idx_t cmd_idx = '0;
  mr_t cmd_mr = '0, cmd_rsp;
  qpn_t cmd_qpn = '0;
  logic cmd_err;
  logic [1:0] chg_valid = '0, chg_ready, chg_rsp_valid;
  mr_change_t [1:0] chg;
  mr_result_e chg_rsp;

  localparam bit Wide = DataW > 64;
  localparam logic [63:0] Base = 64'h7_0000_1000;
  ctx_mem_t ctx_mem = '{on: 1'b1, base: Base[63:6], log_num: 5'd10};
  ctx_ev_t ev;
  logic ar_valid, ar_ready, aw_valid, aw_ready, w_valid, w_ready, w_last, r_valid, r_last, b_valid;
  logic [63:0] ar_addr, aw_addr;
  logic [7:0] ar_len, aw_len;
  logic [1:0] rresp, bresp;
  logic [DataW-1:0] r_data, w_data;
  logic [DataW/8-1:0] w_strb;
  logic [3:0] rid, bid;
  logic pf_valid = 0;
  mr_idx_t pf_idx = '0;

  mr_table #(.DataW(DataW), .NumPorts(Ports), .NumChg(2), .LogSets(1), .LogWays(Wide ? 2 : 1), .NumW(10)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mem_i(ctx_mem), .req_valid_i(req_valid), .req_ready_o(req_ready), .req_idx_i(req_idx),
    .rsp_valid_o(rsp_valid), .rsp_o(rsp), .pf_valid_i(pf_valid), .pf_idx_i(pf_idx),
    .cmd_valid_i(cmd_valid), .cmd_ready_o(cmd_ready), .cmd_lock_i(cmd_lock), .cmd_op_i(cmd_op), .cmd_idx_i(cmd_idx),
    .cmd_mr_i(cmd_mr), .cmd_qpn_i(cmd_qpn), .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_o(cmd_rsp), .cmd_rsp_bound_o(cmd_bound),
    .cmd_rsp_err_o(cmd_err),
    .chg_valid_i(chg_valid), .chg_ready_o(chg_ready), .chg_i(chg), .chg_rsp_valid_o(chg_rsp_valid), .chg_rsp_o(chg_rsp),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(rresp[1]),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last),
    .b_valid_i(b_valid), .b_err_i(bresp[1]),
    .ev_o(ev), .idle_o(idle));

  axi_mem #(.DataW(DataW), .NumIds(1)) mem (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(4'd0), .awaddr_i(aw_addr), .awlen_i(aw_len), .awsize_i(3'($clog2(DataW/8))), .awburst_i(2'b01), .awvalid_i(aw_valid), .awready_o(aw_ready),
    .wdata_i(w_data), .wstrb_i(w_strb), .wlast_i(w_last), .wvalid_i(w_valid), .wready_o(w_ready),
    .bid_o(bid), .bresp_o(bresp), .bvalid_o(b_valid), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(ar_addr), .arlen_i(ar_len), .arsize_i(3'($clog2(DataW/8))), .arburst_i(2'b01), .arvalid_i(ar_valid), .arready_o(ar_ready),
    .rid_o(rid), .rdata_o(r_data), .rresp_o(rresp), .rlast_o(r_last), .rvalid_o(r_valid), .rready_i(1'b1));

  // bounds in variables and whole assignments: Verilator 5.006 unrolls the one and loses the other
  int n1024 = 1024, n64 = 64;

  // ---- model ----
  mr_t model[1024];
  function automatic int bound(int idx);  // windows of an MR
    int n;
    n = 0;
    for (int i = 0; i < n1024; i++) if (model[i].exists && model[i].valid && model[i].mw && int'(model[i].parent) == idx) n++;
    return n;
  endfunction

  mr_result_e m_result;
  int m_idx;
  mr_t m_entry, m_mr;
  // what a change does: its result, and the entry m_idx as it is then
  function automatic void decide(mr_change_t c);
    logic [64:0] from, to;
    m_idx = int'(c.key[17:8]);
    m_entry = model[m_idx];
    m_result = MrBadKey;
    if (c.op == MrBind) begin
      m_result = MrNotBound;
      m_mr = model[c.lkey[17:8]];
      from = {1'b0, c.addr};
      to = from + 65'(c.length);
      if (c.key[31:18] == 0 && m_entry.exists && m_entry.mw && !m_entry.valid && m_entry.pd == c.pd &&
          c.lkey[31:18] == 0 && m_mr.exists && m_mr.valid && !m_mr.mw && m_mr.variant == c.lkey[7:0] && m_mr.pd == c.pd &&
          m_mr.mw_bind && (m_mr.local_write || !(c.remote_write || c.remote_atomic)) && c.length != 0 &&
          from >= {1'b0, m_mr.va} && to <= {1'b0, m_mr.va} + {1'b0, m_mr.length}) begin
        m_result = MrDone;
        m_entry = '0;
        m_entry.exists = 1;
        m_entry.valid = 1;
        m_entry.mw = 1;
        m_entry.qpn = c.qpn;
        m_entry.parent = c.lkey[31:8];
        m_entry.variant = c.key[7:0];
        m_entry.pd = c.pd;
        m_entry.remote_write = c.remote_write;
        m_entry.remote_read = c.remote_read;
        m_entry.remote_atomic = c.remote_atomic;
        m_entry.va = c.zero_based ? 0 : c.addr;
        m_entry.length = 64'(c.length);
        m_entry.iova = m_mr.iova + c.addr - m_mr.va;
      end
    end else if (c.key[31:18] == 0 && m_entry.exists && m_entry.valid && m_entry.variant == c.key[7:0] && m_entry.pd == c.pd &&
                 (m_entry.mw ? m_entry.qpn == c.qpn : c.op == MrInvalidate || m_entry.remote_inv)) begin
      m_result = !m_entry.mw && bound(m_idx) != 0 ? MrNotBound : MrDone;
      if (m_result == MrDone) m_entry.valid = 0;
    end
  endfunction

  int who, n_result[3][4], n_purged, n_busy, n_read, n_valid, n_check, n_err, chg_age, n_two, n_miss, n_wb;
  mr_result_e want_result;
  bit chg_open = 0, cmd_open = 0, purging = 0;
  int cmd_at;
  mr_t cmd_new;

  function automatic bit same(mr_t a, mr_t b);
    return b.exists ? a === b : !a.exists && !a.valid;
  endfunction

  // ---- reads: what an entry was since the question, is, or will be when the changes under way are made ----
  bit [Ports-1:0] busy = '0, req_taken = '0;
  int asked[Ports], age[Ports], since[Ports];
  int n_change = 0, change_idx[64];       // the last changes, and what was before
  mr_t change_old[64];
  bit found;
  mr_t seen;
  task automatic change(int i, mr_t m);
    change_idx[n_change % 64] = i;
    change_old[n_change % 64] = model[i];
    n_change++;
    model[i] = m;
  endtask
  function automatic bit allowed(int idx, int from, mr_t got);
    bit ok;
    mr_t m;
    ok = 0;
    if (idx >= n1024) begin
      ok = got == '0;
    end else begin
      ok = same(got, model[idx]);
      if (chg_open && m_idx == idx && want_result == MrDone && same(got, m_entry)) ok = 1;
      if (cmd_open && cmd_at == idx && same(got, cmd_new)) ok = 1;
      m = model[idx];
      m.valid = 0;
      if (purging && model[idx].mw && model[idx].qpn == cmd_qpn && same(got, m)) ok = 1;
      for (int i = 0; i < n64; i++) if (from + i < n_change && change_idx[(from + i) % 64] == idx && same(got, change_old[(from + i) % 64])) ok = 1;
    end
    return ok;
  endfunction

  always @(posedge clk) if (!rst_n) begin
    busy = '0;
    req_taken = '0;
    chg_open = 0;
    cmd_open = 0;
  end else begin
    n_miss += int'(ev.miss);
    n_wb += int'(ev.writeback);
    for (int p = 0; p < Ports; p++) begin
      if (rsp_valid[p]) begin
        if (!busy[p]) $fatal(1, "port %0d: an answer that nobody asked for", p);
        busy[p] = 0;
        n_read++;
        if (rsp[p].valid) n_valid++;
        seen = rsp[p];
        if (n_change - since[p] > 60) $fatal(1, "port %0d: more changes than remembered", p);
        if (n_change != since[p]) n_two++;
        if (!allowed(asked[p], since[p], seen)) $fatal(1, "port %0d, entry %0d:\n got %h\nwant %h", p, asked[p], seen, model[asked[p][9:0]]);
      end
      age[p]++;
      if (busy[p] && age[p] > 3000) $fatal(1, "port %0d: no answer", p);
    end
    if (chg_rsp_valid != 0) begin
      if (!chg_open || chg_rsp_valid != 2'(1 << who)) $fatal(1, "answer %b, want from %0d", chg_rsp_valid, who);
      if (chg_rsp != want_result) $fatal(1, "result %0d, want %0d: %p", chg_rsp, want_result, dut.chg_q);
      if (want_result == MrDone) change(m_idx, m_entry);
      chg_open = 0;
    end
    chg_age++;
    if (chg_open && chg_age > 3000) $fatal(1, "no answer to a change");
    if (cmd_open && cmd_rsp_valid) begin
      change(cmd_at, cmd_new);
      cmd_open = 0;
    end
    for (int s = 0; s < 2; s++) if (chg_valid[s] && chg_ready[s]) begin
      if (cmd_lock || cmd_valid || chg_open || cmd_open) $fatal(1, "change at the wrong time");
      decide(chg[s]);
      want_result = m_result;
      who = s;
      n_result[chg[s].op][m_result]++;
      chg_open = 1;
      chg_age = 0;
    end
    if (cmd_valid && cmd_ready && cmd_op == MrCmdWrite) begin
      cmd_open = 1;
      cmd_at = int'(cmd_idx);
      cmd_new = cmd_mr;
    end
    for (int p = 0; p < Ports; p++) begin
      req_taken[p] = req_valid[p] && req_ready[p];
      if (req_taken[p]) begin
        if (busy[p]) $fatal(1, "port %0d took a second question", p);
        busy[p] = 1;
        age[p] = 0;
        asked[p] = int'(req_idx[p]);
        since[p] = n_change;
      end
    end
  end

  // ---- stimulus ----
  function automatic int some_idx();
    int i;
    i = int'($urandom() % (N + 1));
    return i == N ? 1023 : i;
  endfunction
  function automatic logic [31:0] some_key(int i);
    logic [31:0] k;
    k = {14'd0, 10'(i), 6'h2a, 2'($urandom())};
    if (model[i].exists && $urandom() % 4 != 0) k[7:0] = model[i].variant;
    if ($urandom() % 30 == 0) k[18 + $urandom() % 14] = 1;
    return k;
  endfunction
  function automatic mr_t some_mr(bit mw);
    mr_t m;
    m = '0;
    m.exists = 1;
    m.mw = mw;
    m.variant = {6'h2a, 2'($urandom())};
    m.pd = 24'd5 + 24'($urandom() % 8 == 0);
    if (!mw) begin
      m.valid = 1;
      {m.mw_bind, m.remote_inv} = 2'($urandom());
      {m.local_write, m.remote_write, m.remote_read, m.remote_atomic} = 4'($urandom());
      if ($urandom() % 2 == 0) m.mw_bind = 1;
      m.va = $urandom() % 4 == 0 ? 64'd0 : {$urandom(), $urandom()} >> 1;
      m.length = 64'(1 + $urandom() % 1000);
      m.iova = {$urandom(), $urandom()} >> 1;
    end
    return m;
  endfunction
  function automatic mr_change_t some_change();
    mr_change_t c;
    int w, m;
    c = {($bits(mr_change_t) / 32 + 1) {$urandom()}};
    w = some_idx();
    m = some_idx();
    c.op = mr_change_op_e'($urandom() % 3);
    // mostly a free window, and a region that allows it
    if (c.op == MrBind && $urandom() % 8 != 0) begin
      for (int t = 0; t < 20; t++) if (!(model[w].exists && model[w].mw && !model[w].valid)) w = some_idx();
      for (int t = 0; t < 20; t++) if (!(model[m].exists && !model[m].mw && model[m].valid)) m = some_idx();
    end
    c.qpn = qpn_t'($urandom() % 2) * 16'd700;
    if (model[w].mw && model[w].valid && $urandom() % 4 != 0) c.qpn = model[w].qpn;
    c.pd = 24'd5 + 24'($urandom() % 10 == 0);
    c.key = some_key(w);
    c.lkey = some_key(m);
    c.addr = model[m].va + 64'($urandom() % 32'(model[m].length + 1));
    c.length = 32'(model[m].length - (c.addr - model[m].va));
    if ($urandom() % 2 == 0 && c.length != 0) c.length = 1 + $urandom() % c.length;
    if ($urandom() % 10 == 0) c.length = c.length + 32'd1;
    if ($urandom() % 10 == 0) c.addr = c.addr - 64'd1;
    if ($urandom() % 20 == 0) c.length = 0;
    if ($urandom() % 3 == 0) {c.remote_write, c.remote_atomic} = '0;
    return c;
  endfunction

  logic [1:0] chg_taken = '0;
  bit cmd_taken = 0;
  always @(posedge clk) begin
    chg_taken = chg_valid & chg_ready;
    cmd_taken = cmd_valid && cmd_ready;
  end
  bit want_chg = 1, want_read = 1;
  logic [1:0] v;
  logic [Ports-1:0] r;
  mr_idx_t [Ports-1:0] ri;
  mr_change_t c2;
  int turn = 0;
  always @(negedge clk) begin
    v = chg_valid & ~chg_taken;
    turn = 1 - turn;
    if (rst_n && !v[turn] && want_chg && $urandom() % 2 == 0) begin
      c2 = some_change();
      v[turn] = 1;
      chg = turn == 0 ? {chg[1], c2} : {c2, chg[0]};
    end
    chg_valid = rst_n ? v : '0;
    r = rst_n ? req_valid & ~req_taken : '0;
    ri = req_idx;
    for (int p = 0; p < Ports; p++) if (rst_n && !r[p] && want_read && $urandom() % 4 != 0) begin
      r[p] = 1;
      ri[p] = $urandom() % 50 == 0 ? mr_idx_t'(1024 + $urandom() % 100000) : mr_idx_t'(some_idx());
    end
    pf_valid = rst_n && want_read && $urandom() % 8 == 0;
    pf_idx = mr_idx_t'(some_idx());
    req_valid = r;
    req_idx = ri;
  end
  mr_t e;
  task automatic command(mr_cmd_e op, int idx, mr_t m, int qp);
    int n;
    n = 0;
    cmd_op = op;
    cmd_idx = mr_idx_t'(idx);
    cmd_mr = m;
    cmd_qpn = qpn_t'(qp);
    cmd_valid = 1;
    purging = op == MrCmdPurge;
    if (purging) begin
      // what is on its way changes the model no more
      want_chg = 0;
    end
    do begin
      @(negedge clk);
      n++;
      if (n > 3000) $fatal(1, "command not taken");
    end while (!cmd_taken);
    cmd_valid = 0;
    if (op != MrCmdPurge) cmd_lock = 1;
    while (!cmd_rsp_valid) begin
      @(negedge clk);
      n++;
      if (n > 60000) $fatal(1, "command not answered");
    end
    if (op != MrCmdPurge && cmd_err) $fatal(1, "memory refused an entry");
    if (purging) begin
      for (int i = 0; i < n1024; i++) if (model[i].exists && model[i].mw && model[i].valid && int'(model[i].qpn) == qp) begin
        e = model[i];
        e.valid = 0;
        change(i, e);
        n_purged++;
      end
      purging = 0;
      want_chg = 1;
    end
  endtask

  // addresses at the border of mr_check: a window is for its QP only, and for peers only
  function automatic void check_function();
    mr_t m;
    bit w;
    for (int t = 0; t < 20000; t++) begin
      m = some_mr(0);
      m.mw = 1'($urandom());
      m.valid = $urandom() % 4 != 0;
      m.qpn = qpn_t'($urandom() % 2);
      w = m.valid && (!m.mw || m.qpn == 1) && m.remote_read;
      if (mr_check(m, {14'd0, 10'd3, m.variant}, m.pd, 8'd1, m.va, 32'(m.length), MrRemoteRead) != w) $fatal(1, "mr_check %p", m);
      if (mr_check(m, {14'd0, 10'd3, m.variant}, m.pd, 8'd1, m.va, 32'(m.length) + 32'd1, MrRemoteRead)) $fatal(1, "mr_check too long");
      w = m.valid && !m.mw;
      if (mr_check(m, {14'd0, 10'd3, m.variant}, m.pd, 8'd1, m.va, 32'd1, MrLocalRead) != w) $fatal(1, "mr_check local %p", m);
      if (w && m.local_write != mr_check(m, {14'd0, 10'd3, m.variant}, m.pd, 8'd1, m.va, 32'd1, MrLocalWrite)) $fatal(1, "mr_check write");
      n_check++;
    end
  endfunction

  int idx, kind;
  mr_t none;
  initial begin
    none = '0;
    for (int i = 0; i < n1024; i++) model[i] = '0;
    chg = '0;
    check_function();
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int n = 0; n < 8000; n++) begin
      if (n == 5000) begin
        want_chg = 0;
        repeat (10) @(negedge clk);
        rst_n = 0;
        @(negedge clk);
        rst_n = 1;
        want_chg = 1;
        for (int i = 0; i < n1024; i++) model[i] = '0;
        // new memory after a reset
        ctx_mem.base = ctx_mem.base + 58'(n1024);
      end
      repeat ($urandom() % 12) @(negedge clk);
      kind = int'($urandom() % 90);
      if (kind == 0) begin
        command(MrCmdPurge, 0, none, $urandom() % 2 == 0 ? 0 : 700);
      end else begin
        idx = some_idx();
        command(MrCmdRead, idx, none, 0);
        if (!same(cmd_rsp, model[idx])) $fatal(1, "command port:\n got %p\nwant %p", cmd_rsp, model[idx]);
        if (cmd_rsp.exists && !cmd_rsp.mw && cmd_bound != (bound(idx) != 0)) $fatal(1, "entry %0d: %0d windows, told %0d", idx, bound(idx), cmd_bound);
        repeat ($urandom() % 3) @(negedge clk);
        if (!model[idx].exists) command(MrCmdWrite, idx, some_mr($urandom() % 2 == 0), 0);
        else if (!model[idx].mw && cmd_bound) n_busy++;
        else if ($urandom() % 8 == 0) command(MrCmdWrite, idx, none, 0);
        cmd_lock = 0;
      end
    end
    want_chg = 0;
    repeat (10) @(negedge clk);
    rst_n = 1;
    want_read = 0;
    repeat (300) @(negedge clk);
    if (!idle || busy != '0 || chg_open) $fatal(1, "not idle");
    if (n_two < 100 || n_miss < 3000 || n_wb < 500) $fatal(1, "%0d reads beside a change, %0d misses, %0d written back", n_two, n_miss, n_wb);
    for (int o = 0; o < 3; o++) begin
      if (n_result[o][MrDone] < 200) $fatal(1, "changes %0d: %0d done", o, n_result[o][MrDone]);
      if (o != MrBind && (n_result[o][MrBadKey] < 200 || n_result[o][MrNotBound] < 20)) $fatal(1, "changes %0d: %0d %0d", o, n_result[o][MrBadKey], n_result[o][MrNotBound]);
    end
    if (n_result[MrBind][MrNotBound] < 200 || n_purged < 15 || n_busy < 50 || n_valid < 10000) $fatal(1, "%0d binds refused, %0d purged, %0d busy", n_result[MrBind][MrNotBound], n_purged, n_busy);
    $display("PASS %0d reads, %0d binds, %0d refused, %0d + %0d invalidated, %0d windows purged", n_read, n_result[MrBind][MrDone],
             n_result[MrBind][MrNotBound], n_result[0][MrDone], n_result[1][MrDone], n_purged);
    $finish;
  end
endmodule
