// SPDX-License-Identifier: Apache-2.0
//
// ctx_cache against a model: a cache of a few lines, more contexts than lines, three readers and the owner at once, at random. An
// entry holds its number and a version; every answer must be an entry as it was at some time between question and answer, never
// older. The owner pins one or two entries and writes them; memory stalls, answers out of turn, and refuses an address for a while.
// Every question is answered in bounded time. At the end all entries are read again.

module ctx_cache_tb #(
  parameter int unsigned DataW = 64
);
  localparam int Ports = 3;
  localparam int EntryW = 70;
  localparam int IdxW = 10;
  localparam int LogNum = 5;        // 32 contexts
  localparam int N = 32;
  localparam int Bad = 9;           // its memory fails at times
  localparam bit Wide = DataW > 64;
  localparam int LogSets = Wide ? 2 : 1;
  localparam int LogWays = Wide ? 2 : 1;
  localparam logic [63:0] Base = 64'h1234_5000;

  typedef struct packed {
    logic [15:0] idx;
    logic [21:0] fill;
    logic [31:0] version;
  } entry_t;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic mem_on = 0;
  logic [Ports-1:0] req_valid = '0, req_ready, rsp_valid;
  logic [Ports-1:0][IdxW-1:0] req_idx = '0;
  entry_t rsp, own_entry = '0;
  logic pf_valid = 0, pf_done, own_valid = 0, own_ready, own_pin = 0, own_done, own_ok, own_we = 0, own_we_ready, own_we_pin = 0, own_release = 0;
  logic [IdxW-1:0] pf_idx = '0, own_idx = '0;
  logic ev_hit, ev_miss, ev_evict, ev_wb, ev_stall, ev_rd_err, ev_wr_err, idle;

  logic ar_valid, ar_ready, aw_valid, aw_ready, w_valid, w_ready, w_last, r_valid, r_last, b_valid;
  logic [63:0] ar_addr, aw_addr;
  logic [7:0] ar_len, aw_len;
  logic [1:0] rresp, bresp;
  logic [DataW-1:0] r_data, w_data;
  logic [DataW/8-1:0] w_strb;
  logic [3:0] rid, bid;

  ctx_cache #(.DataW(DataW), .EntryW(EntryW), .IdxW(IdxW), .LogSets(LogSets), .LogWays(LogWays), .NumPorts(Ports), .LogFills(Wide ? 2 : 1)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mem_on_i(mem_on), .mem_base_i(Base[63:6]), .mem_log_num_i(5'(LogNum)),
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_idx_i(req_idx), .rsp_valid_o(rsp_valid), .rsp_o(rsp),
    .pf_valid_i(pf_valid), .pf_idx_i(pf_idx), .pf_done_o(pf_done), .pf_hit_o(),
    .own_valid_i(own_valid), .own_ready_o(own_ready), .own_idx_i(own_idx), .own_pin_i(own_pin), .own_done_o(own_done), .own_ok_o(own_ok),
    .own_we_i(own_we), .own_we_ready_o(own_we_ready), .own_we_pin_i(own_we_pin), .own_entry_i(own_entry), .own_release_i(own_release),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(rresp[1]),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last),
    .b_valid_i(b_valid), .b_err_i(bresp[1]),
    .ev_hit_o(ev_hit), .ev_miss_o(ev_miss), .ev_evict_o(ev_evict), .ev_writeback_o(ev_wb), .ev_stall_o(ev_stall), .ev_rd_err_o(ev_rd_err), .ev_wr_err_o(ev_wr_err),
    .idle_o(idle));

  // at times a write-back lies in wait: what is read from memory meanwhile is old
  logic hold_w = 0, mem_w_ready;
  assign w_ready = mem_w_ready && !hold_w;
  always @(posedge clk) begin
    if (hold_w) hold_w <= $urandom() % 150 != 0;
    else hold_w <= rst_n && !w_valid && $urandom() % 8 == 0;
  end

  axi_mem #(.DataW(DataW), .NumIds(1)) mem (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(4'd0), .awaddr_i(aw_addr), .awlen_i(aw_len), .awsize_i(3'($clog2(DataW/8))), .awburst_i(2'b01), .awvalid_i(aw_valid), .awready_o(aw_ready),
    .wdata_i(w_data), .wstrb_i(w_strb), .wlast_i(w_last), .wvalid_i(w_valid && !hold_w), .wready_o(mem_w_ready),
    .bid_o(bid), .bresp_o(bresp), .bvalid_o(b_valid), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(ar_addr), .arlen_i(ar_len), .arsize_i(3'($clog2(DataW/8))), .arburst_i(2'b01), .arvalid_i(ar_valid), .arready_o(ar_ready),
    .rid_o(rid), .rdata_o(r_data), .rresp_o(rresp), .rlast_o(r_last), .rvalid_o(r_valid), .rready_i(1'b1));

  // ---- model: version of each entry; 0: never written, the memory is zero ----
  int version[N];
  bit all_lost = 0;
  bit lost_ok = 0;               // the bad address failed: its entry may answer zero
  function automatic entry_t make(int idx, int v);
    entry_t e;
    e = '0;
    if (v != 0) e = '{idx: 16'(idx), fill: 22'h2a5a5a ^ 22'(v * 7), version: 32'(v)};
    return e;
  endfunction

  int n_read, n_none, n_zero, n_write, n_two, n_hit, n_miss, n_evict, n_wb, n_err, n_stall, n_fail, n_pf, n_pf_done, n_wr_err;
  always @(posedge clk) if (rst_n) begin
    n_hit += int'(ev_hit); n_miss += int'(ev_miss); n_evict += int'(ev_evict); n_wb += int'(ev_wb); n_err += int'(ev_rd_err); n_wr_err += int'(ev_wr_err);
    n_stall += int'(ev_stall);
    if (pf_done && !pf_valid) $fatal(1, "a hint that was not given");
    n_pf_done += int'(pf_done);
  end

  // ---- readers ----
  bit [Ports-1:0] busy = '0, taken = '0;
  int asked[Ports], from[Ports], age[Ports];
  always @(posedge clk) if (rst_n) begin
    if ((rsp_valid & (rsp_valid - 1'b1)) != 0) $fatal(1, "two answers at once");
    for (int p = 0; p < Ports; p++) begin
      if (rsp_valid[p]) begin
        if (!busy[p]) $fatal(1, "port %0d: an answer that nobody asked for", p);
        busy[p] = 0;
        n_read++;
        if (asked[p] >= N || !mem_on) begin
          n_none++;
          if (rsp != '0) $fatal(1, "port %0d: entry %0d does not exist, got %p", p, asked[p], rsp);
        end else if (rsp == '0 && asked[p] == Bad && lost_ok) begin
          n_fail++;
        end else begin
          if (rsp == '0) n_zero++;
          if (int'(rsp.version) < from[p] || int'(rsp.version) > version[asked[p]] || rsp != make(asked[p], int'(rsp.version)))
            $fatal(1, "port %0d: entry %0d is %p, want version %0d to %0d", p, asked[p], rsp, from[p], version[asked[p]]);
        end
      end
      if (busy[p]) age[p]++;
      if (busy[p] && age[p] > 4000) $fatal(1, "port %0d: entry %0d is not answered", p, asked[p]);
      taken[p] = req_valid[p] && req_ready[p];
      if (taken[p]) begin
        if (busy[p]) $fatal(1, "port %0d took a second question", p);
        busy[p] = 1;
        asked[p] = int'(req_idx[p]);
        from[p] = asked[p] < N ? version[asked[p]] : 0;
        age[p] = 0;
      end
    end
  end
  int range = N + 2;
  bit quiet = 0;
  logic [Ports-1:0] nv;
  logic [Ports-1:0][IdxW-1:0] ni;
  always @(negedge clk) begin
    nv = req_valid & ~taken;
    ni = req_idx;
    for (int p = 0; p < Ports; p++) if (!nv[p] && rst_n && !quiet && $urandom() % 3 == 0) begin
      nv[p] = 1;
      ni[p] = $urandom() % 50 == 0 ? IdxW'($urandom()) : IdxW'($urandom() % range);
    end
    req_valid = nv;
    req_idx = ni;
    pf_valid = rst_n && !quiet && $urandom() % 8 == 0;
    pf_idx = IdxW'($urandom() % range);
    n_pf += int'(pf_valid);
  end

  // ---- owner ----
  logic own_taken, we_taken;
  always @(posedge clk) begin
    own_taken = own_valid && own_ready;
    we_taken = own_we && own_we_ready;
    if (b_valid && bresp[1]) all_lost = 1;
    // readers of later cycles see the write
    if (we_taken) begin
      version[own_entry.idx[4:0]] <= int'(own_entry.version);
      n_write++;
    end
  end
  task automatic get(int pin, int idx, output bit ok);
    int n;
    entry_t e;
    n = 0;
    own_valid = 1;
    own_pin = 1'(pin);
    own_idx = IdxW'(idx);
    do begin
      @(negedge clk);
      n++;
      if (n > 4000) $fatal(1, "owner is not taken");
    end while (!own_taken);
    own_valid = 0;
    while (!own_done) begin
      // looked at with the question only
      own_pin = 1'($urandom());
      own_idx = IdxW'($urandom());
      @(negedge clk);
      n++;
      if (n > 4000) $fatal(1, "owner: entry %0d is not answered", idx);
    end
    ok = own_ok;
    e = rsp;
    if (!ok && idx < N && mem_on && !all_lost && !(idx == Bad && lost_ok)) $fatal(1, "owner: entry %0d refused", idx);
    if (idx >= N && ok) $fatal(1, "owner: entry %0d exists", idx);
    if (ok && e != make(idx, version[idx])) $fatal(1, "owner: entry %0d is %p, want version %0d", idx, e, version[idx]);
    if (!ok && e != '0) $fatal(1, "owner: refused entry is %p", e);
  endtask
  task automatic put(int pin, int idx);
    own_we = 1;
    own_we_pin = 1'(pin);
    own_entry = make(idx, version[idx] + 1);
    do @(negedge clk); while (!we_taken);
    own_we = 0;
  endtask

  int a, b, k;
  entry_t first, make_bad;
  assign make_bad = make(Bad, 1);
  bit ok_a, ok_b;
  initial begin
    repeat (3) @(negedge clk);
    rst_n = 1;
    repeat (60) @(negedge clk);       // nothing exists without memory
    get(0, 3, ok_a);
    if (ok_a) $fatal(1, "an entry without memory");
    quiet = 1;
    repeat (20) @(negedge clk);
    mem_on = 1;
    for (int i = 0; i < EntryW; i++) first[i] = make_bad[i];
    for (int i = 0; i < 9; i++) mem.mem[Base + 64 * Bad + 64'(i)] = first[8*i+:8];
    version[Bad] = 1;
    @(negedge clk);
    quiet = 0;
    for (int n = 0; n < 12000; n++) begin
      // phases: all contexts, few of them, slow memory, failing memory
      range = (n / 500) % 4 == 1 ? 4 : (n / 500) % 4 == 2 ? 10 : N + 2;
      mem.stall = (n / 1000) % 3 == 0 ? 0 : (n / 1000) % 3 == 1 ? 40 : 85;
      if (n % 1000 == 700) begin
        lost_ok = 1;
        mem.err_lo = Base + 64 * Bad;
        mem.err_hi = Base + 64 * Bad + 64;
      end
      if (n % 1000 == 800) begin
        quiet = 1;
        repeat (3000) @(negedge clk);
        if (!idle) $fatal(1, "not idle");
        mem.err_lo = '1;
        mem.err_hi = '0;
        lost_ok = 0;
        quiet = 0;
      end
      repeat ($urandom() % 6) @(negedge clk);
      a = int'($urandom() % range);
      get(0, a, ok_a);
      k = int'($urandom() % 4);
      // the bad one is never written, so it can only be lost at the end
      if (ok_a && k != 0 && a != Bad) put(0, a);
      if (ok_a && k == 2 && a != Bad) begin
        // one more, sometimes of the same set
        b = $urandom() % 2 == 0 ? (a + (1 << LogSets)) % N : int'($urandom() % N);
        if (b == a || b == Bad) b = (a + 1) % N;
        if (b == Bad) b = Bad + 1;
        get(1, b, ok_b);
        if (ok_b) begin
          put(1, b);
          n_two++;
        end
        repeat ($urandom() % 4) @(negedge clk);
        put(0, a);
      end
      own_release = 1;
      @(negedge clk);
      own_release = 0;
    end
    quiet = 1;
    mem.stall = 10;
    for (int i = 0; i < N; i++) begin
      get(0, i, ok_a);
      own_release = 1;
      @(negedge clk);
      own_release = 0;
    end
    // a write-back that memory refuses: nothing can be read any more
    get(0, Bad, ok_a);
    put(0, Bad);
    own_release = 1;
    @(negedge clk);
    own_release = 0;
    mem.err_lo = Base + 64 * Bad;
    mem.err_hi = Base + 64 * Bad + 64;
    lost_ok = 1;
    for (int i = 0; i < 200 && n_wr_err == 0; i++) begin
      get(0, i % 8 * (1 << LogSets) + Bad % (1 << LogSets), ok_a);
      own_release = 1;
      @(negedge clk);
      own_release = 0;
    end
    repeat (200) @(negedge clk);
    for (int i = 0; i < N; i++) begin
      get(0, i, ok_a);
      if (ok_a) $fatal(1, "entry %0d can be read after another was lost", i);
      own_release = 1;
      @(negedge clk);
      own_release = 0;
    end
    repeat (200) @(negedge clk);
    if (!idle || busy != '0) $fatal(1, "not idle at the end: %b", busy);
    if (n_hit < 3000 || n_miss < 3000 || n_evict < 3000 || n_wb < 1500 || n_err < 20 || n_two < 1500 || n_none < 500 || n_fail < 5 || n_wr_err != 1 || n_stall < 1000 ||
        n_pf_done < n_pf / 8 || n_pf_done >= n_pf)
      $fatal(1, "hits %0d misses %0d evicted %0d written %0d errors %0d two %0d none %0d fail %0d", n_hit, n_miss, n_evict, n_wb, n_err, n_two, n_none, n_fail);
    $display("PASS %0d reads, %0d writes, %0d hits, %0d misses, %0d evicted, %0d written back, %0d with two pins, %0d refused", n_read, n_write, n_hit,
             n_miss, n_evict, n_wb, n_two, n_fail);
    $finish;
  end
endmodule
