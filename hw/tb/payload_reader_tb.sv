// SPDX-License-Identifier: Apache-2.0
//
// payload_reader against an AXI read model with random latency and stalls. Memory bytes are a hash of
// their address; pages with number 5 modulo 16 answer with errors. Checks burst rules, content, length,
// error mark, error events, drain, the amount in flight and the full rate.

module payload_reader_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int unsigned NumB = DataW / 8;
  localparam int unsigned LaneW = $clog2(NumB);
  localparam int unsigned RamBeats = 512;

  logic clk = 0, rst_n = 0;
  always #10 clk = !clk;

  logic frag_valid = 0, frag_ready, ar_valid, ar_ready = 0, r_valid = 0, r_last = 0, r_err = 0;
  logic pl_valid, pl_ready = 0, pl_last, pl_err, ev_axi_err, idle, drain = 0, drain_done;
  tx_frag_t frag = '0;
  logic [63:0] ar_addr;
  logic [7:0] ar_len;
  logic [DataW-1:0] r_data = '0, pl_data;
  logic [LaneW:0] pl_cnt;

  payload_reader #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n),
    .frag_valid_i(frag_valid), .frag_ready_o(frag_ready), .frag_i(frag),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(r_err),
    .pl_valid_o(pl_valid), .pl_ready_i(pl_ready), .pl_data_o(pl_data), .pl_cnt_o(pl_cnt),
    .pl_last_o(pl_last), .pl_err_o(pl_err), .ev_axi_err_o(ev_axi_err), .idle_o(idle),
    .drain_i(drain), .drain_done_o(drain_done)
  );

  function automatic logic [7:0] mem_byte(input logic [63:0] a);
    logic [31:0] h;
    h = (a[31:0] ^ {a[47:32], a[63:48]}) * 32'h9e3779b1;
    h = h ^ (h >> 15);
    return h[23:16] ^ h[7:0];
  endfunction
  function automatic logic bad_page(input logic [63:0] a);
    return a[15:12] == 4'd5;
  endfunction

  // ---- stimulus --------------------------------------------------------------------------------------
  tx_frag_t todo[$];                  // fragments not yet handed over
  tx_frag_t sent[$];                  // handed over, not yet checked
  int pkts_sent = 0, pkts_got = 0, errs_got = 0;
  int r_mode = 0;                     // 0 always, 1 random, 2 never
  int pl_mode = 0, in_mode = 0;
  int in_flight = 0, max_flight = 0, bad_bursts = 0, bad_events = 0, pl_beats = 0;
  int drain_mark = 0, drains = 0;

  task automatic push(input logic [63:0] a, input int len, input logic last);
    todo.push_back({a, 13'(len), last});
  endtask

  logic took = 0;
  always @(posedge clk) begin
    took = frag_valid && frag_ready;
    if (took) begin
      sent.push_back(frag);
      if (frag.last) pkts_sent++;
    end
  end
  always @(posedge clk) begin
    #2;
    if (took || !frag_valid) begin
      frag_valid = todo.size() != 0 && (in_mode == 0 || ($urandom() % 3) == 0);
      if (frag_valid) frag = todo.pop_front();
      else frag = {$urandom(), $urandom(), 14'($urandom())};
    end
    pl_ready = pl_mode == 0 || (pl_mode == 1 && ($urandom() % 3) != 0);
    ar_ready = r_mode != 1 || ($urandom() % 2) == 0;
  end

  // ---- AXI read model ----------------------------------------------------------------------------------
  typedef struct packed {
    logic [63:0] addr;
    logic [7:0]  len;
    logic [31:0] ready_at;
  } burst_t;
  burst_t bursts[$];
  burst_t b;
  int now = 0, beat = 0, latency = 20;
  logic [63:0] a0;
  always @(posedge clk) begin
    now++;
    if (rst_n && ar_valid && ar_ready) begin
      if (ar_addr[LaneW-1:0] != '0) $fatal(1, "unaligned burst %h", ar_addr);
      if (int'(ar_len) + 1 > BurstBeats) $fatal(1, "burst of %0d beats", int'(ar_len) + 1);
      if (int'(ar_addr[11:0]) + (int'(ar_len) + 1) * NumB > 4096) $fatal(1, "burst crosses 4 KiB");
      bursts.push_back({ar_addr, ar_len, 32'(now + latency + (r_mode == 1 ? $urandom() % 60 : 0))});
      in_flight += int'(ar_len) + 1;
      if (in_flight > max_flight) max_flight = in_flight;
      if (in_flight > RamBeats) $fatal(1, "%0d beats asked for", in_flight);
      if (bad_page(ar_addr)) bad_bursts++;
    end
    if (r_valid) in_flight--;
    if (ev_axi_err) bad_events++;
    #2;
    r_valid = 0;
    r_err = 1'($urandom());
    r_last = 1'($urandom());
    if (bursts.size() != 0 && r_mode != 2) begin
      b = bursts[0];
      if (int'(b.ready_at) <= now && (r_mode == 0 || ($urandom() % 4) != 0)) begin
        a0 = b.addr + 64'(beat * NumB);
        r_valid = 1;
        for (int i = 0; i < NumB; i++) r_data[8*i+:8] = mem_byte(a0 + 64'(i));
        r_err = bad_page(a0);
        r_last = beat == int'(b.len);
        beat++;
        if (r_last) begin
          beat = 0;
          void'(bursts.pop_front());
        end
      end
    end
  end

  // ---- checker -----------------------------------------------------------------------------------------
  tx_frag_t f;
  int pos = 0;                        // bytes of f already seen
  logic want_err = 0;
  logic hold = 0;
  logic [DataW-1:0] hold_data;
  always @(posedge clk) begin
    if (rst_n) begin
      if (hold && (!pl_valid || pl_data !== hold_data)) $fatal(1, "beat changed while it waited");
      hold = pl_valid && !pl_ready;
      hold_data = pl_data;
      if (drain && drain_done && pkts_got < drain_mark) $fatal(1, "drain done too early");
    end
    if (rst_n && pl_valid && pl_ready) begin
      pl_beats++;
      if (!pl_last && int'(pl_cnt) != NumB) $fatal(1, "short beat");
      for (int i = 0; i < NumB; i++) begin
        if (i >= int'(pl_cnt)) begin
          if (pl_data[8*i+:8] !== 8'd0) $fatal(1, "lane behind the end is not zero");
        end else begin
          if (sent.size() == 0) $fatal(1, "byte nobody asked for");
          f = sent[0];
          if (pl_data[8*i+:8] !== mem_byte(f.iova + 64'(pos)))
            $fatal(1, "packet %0d, address %h: got %h, want %h", pkts_got, f.iova + 64'(pos),
                   pl_data[8*i+:8], mem_byte(f.iova + 64'(pos)));
          if (bad_page(f.iova + 64'(pos))) want_err = 1;
          pos++;
          if (pos == int'(f.len)) begin
            pos = 0;
            void'(sent.pop_front());
            if (f.last != (pl_last && i == int'(pl_cnt) - 1)) $fatal(1, "packet %0d: wrong end", pkts_got);
          end else if (pl_last && i == int'(pl_cnt) - 1) $fatal(1, "packet %0d: early end", pkts_got);
        end
      end
      if (pl_last) begin
        if (pl_err !== want_err) $fatal(1, "packet %0d: error %0d, want %0d", pkts_got, pl_err, want_err);
        if (want_err) errs_got++;
        want_err = 0;
        pkts_got++;
      end
    end
  end

  always @(negedge clk) begin
    if (rst_n && idle && (pl_valid || sent.size() != 0)) $fatal(1, "idle while work is held");
  end

  task automatic wait_idle(input int limit);
    int n;
    n = 0;
    while ((todo.size() != 0 || frag_valid || !idle) && n < limit) begin
      @(negedge clk);
      n++;
    end
    if (n >= limit) $fatal(1, "stuck: %0d to send, %0d to check", todo.size(), sent.size());
    if (sent.size() != 0) $fatal(1, "idle with %0d fragments unanswered", sent.size());
  endtask

  int t0, b0, nf;
  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    // every alignment with every short length
    for (int off = 0; off < NumB; off += (DataW > 128 ? 3 : 1))
      for (int len = 1; len <= 3 * NumB + 1; len += (DataW > 128 ? 5 : 1))
        push(64'h0000_7f00_0001_0000 + 64'(off) + 64'(64 * len), len, 1'b1);
    wait_idle(100000);
    // across a page, and whole pages
    for (int i = 0; i < 40; i++) push(64'h1_0000_0000 + 64'(4096 * i + $urandom() % 4096), 4096, 1'b1);
    wait_idle(100000);
    // random packets of 1 to 4 fragments under random stalls
    for (int round = 0; round < 3; round++) begin
      r_mode = round == 0 ? 0 : 1;
      pl_mode = round == 2 ? 0 : 1;
      in_mode = round == 1 ? 1 : 0;
      for (int i = 0; i < 400; i++) begin
        nf = 1 + $urandom() % 4;
        for (int k = 0; k < nf; k++)
          push({16'h0, $urandom(), 16'($urandom())},
               ($urandom() % 8) == 0 ? 1 + $urandom() % (4096 / nf) : 1 + $urandom() % (2 * NumB), k == nf - 1);
      end
      for (int k = 0; k < 5; k++) begin
        repeat (100 + $urandom() % 300) @(negedge clk);
        #4;                              // behind the drivers
        drain = 1;
        @(posedge clk);
        #1;
        drain_mark = pkts_sent;          // all that was taken up to the rise has to leave
        t0 = 0;
        while (!drain_done && t0 < 20000) begin
          @(negedge clk);
          t0++;
        end
        if (!drain_done) $fatal(1, "drain does not end");
        @(posedge clk);                  // the checker above judges it here
        #4;
        if (!drain_done) $fatal(1, "drain_done fell while drain stayed");
        if (todo.size() != 0) drains++;
        drain = 0;
        @(negedge clk);
        if (drain_done) $fatal(1, "drain_done without drain");
      end
      wait_idle(400000);
    end
    pl_mode = 0;
    in_mode = 0;
    // amount in flight while the host does not answer
    r_mode = 2;
    max_flight = 0;
    for (int i = 0; i < 12; i++) push(64'h2_0000_0000 + 64'(4096 * 16 * i), 4096, 1'b1);
    repeat (400) @(negedge clk);
    if (max_flight < RamBeats - 63) $fatal(1, "only %0d beats in flight", max_flight);
    r_mode = 0;
    wait_idle(100000);
    // full rate
    latency = 100;
    for (int i = 0; i < 100; i++) push(64'h3_0000_0000 + 64'(4096 * 16 * i), 4096, 1'b1);
    b0 = pl_beats;
    while (pl_beats == b0) @(negedge clk);
    t0 = now;
    b0 = pl_beats;
    while (todo.size() != 0) @(negedge clk);
    t0 = now - t0;
    b0 = pl_beats - b0;
    if (b0 * 100 < t0 * 99) $fatal(1, "%0d beats in %0d cycles", b0, t0);
    wait_idle(100000);
    if (bad_bursts != bad_events) $fatal(1, "%0d failed bursts, %0d events", bad_bursts, bad_events);
    if (errs_got < 20 || drains < 3) $fatal(1, "too little happened: %0d errors, %0d drains", errs_got, drains);
    $display("PASS %0d packets, %0d with errors, %0d beats in %0d cycles, %0d beats in flight",
             pkts_got, errs_got, b0, t0, max_flight);
    $finish;
  end
endmodule
