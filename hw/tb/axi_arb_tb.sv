// SPDX-License-Identifier: Apache-2.0
//
// axi_rd_arb and axi_wr_mux with random clients against a memory that stalls, re-orders and fails: every
// client sees its own answers in order with the right data; memory holds what was written; nobody
// starves; a stop ends with nothing outstanding.

module axi_arb_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int NumB = DataW / 8;
  localparam int N = 3;
  localparam int Bursts = 1500;

  logic clk = 0, rst_n = 0, stop = 0;
  always #1 clk = !clk;

  logic [N-1:0] ar_valid = '0, ar_ready, r_valid, aw_valid = '0, aw_ready, w_valid = '0, w_ready, w_last, b_valid;
  logic [N-1:0][63:0] ar_addr = '0, aw_addr = '0;
  logic [N-1:0][7:0] ar_len = '0, aw_len = '0;
  logic [DataW-1:0] r_data, w_data[N];
  logic [NumB-1:0] w_strb[N];
  logic r_last, r_err, b_err, rd_busy, wr_busy;

  logic [3:0] awid, bid, arid, rid;
  logic [63:0] awaddr, araddr;
  logic [7:0] awlen, arlen;
  logic [2:0] awsize, arsize;
  logic [1:0] awburst, arburst, bresp, rresp;
  logic awvalid, awready, wlast, wvalid, wready, bvalid, bready, arvalid, arready, rlast, rvalid, rready;
  logic [DataW-1:0] wdata, rdata;
  logic [NumB-1:0] wstrb;

  axi_rd_arb #(.DataW(DataW)) dut_rd (
    .clk_i(clk), .rst_ni(rst_n), .stop_i(stop), .busy_o(rd_busy),
    .ar_valid_i(ar_valid), .ar_ready_o(ar_ready), .ar_addr_i(ar_addr), .ar_len_i(ar_len),
    .r_valid_o(r_valid), .r_data_o(r_data), .r_last_o(r_last), .r_err_o(r_err),
    .m_axi_arid_o(arid), .m_axi_araddr_o(araddr), .m_axi_arlen_o(arlen), .m_axi_arsize_o(arsize),
    .m_axi_arburst_o(arburst), .m_axi_arvalid_o(arvalid), .m_axi_arready_i(arready), .m_axi_rid_i(rid),
    .m_axi_rdata_i(rdata), .m_axi_rresp_i(rresp), .m_axi_rlast_i(rlast), .m_axi_rvalid_i(rvalid),
    .m_axi_rready_o(rready));
  axi_wr_mux #(.DataW(DataW), .NumClients(N)) dut_wr (
    .clk_i(clk), .rst_ni(rst_n), .stop_i(stop), .busy_o(wr_busy),
    .aw_valid_i(aw_valid), .aw_ready_o(aw_ready), .aw_addr_i(aw_addr), .aw_len_i(aw_len),
    .w_valid_i(w_valid), .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb), .w_last_i(w_last),
    .b_valid_o(b_valid), .b_err_o(b_err),
    .m_axi_awid_o(awid), .m_axi_awaddr_o(awaddr), .m_axi_awlen_o(awlen), .m_axi_awsize_o(awsize),
    .m_axi_awburst_o(awburst), .m_axi_awvalid_o(awvalid), .m_axi_awready_i(awready),
    .m_axi_wdata_o(wdata), .m_axi_wstrb_o(wstrb), .m_axi_wlast_o(wlast), .m_axi_wvalid_o(wvalid),
    .m_axi_wready_i(wready), .m_axi_bid_i(bid), .m_axi_bresp_i(bresp), .m_axi_bvalid_i(bvalid),
    .m_axi_bready_o(bready));
  axi_mem #(.DataW(DataW), .NumIds(N)) u_mem (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(awid), .awaddr_i(awaddr), .awlen_i(awlen), .awsize_i(awsize), .awburst_i(awburst),
    .awvalid_i(awvalid), .awready_o(awready), .wdata_i(wdata), .wstrb_i(wstrb), .wlast_i(wlast),
    .wvalid_i(wvalid), .wready_o(wready), .bid_o(bid), .bresp_o(bresp), .bvalid_o(bvalid), .bready_i(bready),
    .arid_i(arid), .araddr_i(araddr), .arlen_i(arlen), .arsize_i(arsize), .arburst_i(arburst),
    .arvalid_i(arvalid), .arready_o(arready), .rid_o(rid), .rdata_o(rdata), .rresp_o(rresp), .rlast_o(rlast),
    .rvalid_o(rvalid), .rready_i(rready));

  // Reads: memory at [0, 64 Ki) holds a pattern; [0xf000, 0x10000) fails.
  function automatic logic [7:0] pat(input logic [63:0] a);
    return 8'(a * 64'd197 + (a >> 8) * 64'd31 + 64'd5);
  endfunction

  int want_id[$];
  logic [63:0] want_addr[$];
  int want_left[$];
  int asked[N];
  int at;
  int rd_done[N], rd_errs = 0;
  int wr_done[N], wr_errs = 0, wr_begun[N];
  int exp_id[$];
  logic exp_err[$];
  // writer state
  int w_left[N];
  logic [63:0] w_at[N];
  logic [7:0] model[logic [63:0]];
  int rd_skips[N], wr_skips[N];
  logic begun = 0;

  function automatic logic [63:0] pick(input int base, input int beats);
    // an address whose burst of `beats` stays in a 4 KiB page
    int page, slot;
    page = int'($urandom() % 16);
    slot = int'($urandom() % (4096 / NumB - beats + 1));
    return 64'(base) + 64'(page * 4096 + slot * NumB);
  endfunction

  task automatic new_beat(input int i);
    for (int k = 0; k < NumB / 4; k++) w_data[i][32*k+:32] = $urandom();
    w_strb[i] = NumB'({$urandom(), $urandom()});
    w_last[i] = w_left[i] == 1;
  endtask

  // drivers act on the falling edge, monitors on the rising one
  logic [N-1:0] ar_acc = '0, aw_acc = '0, w_acc = '0;
  int beats;
  always @(negedge clk) if (begun) begin
    for (int i = 0; i < N; i++) begin
      if (ar_acc[i]) ar_valid[i] = 0;
      if (!ar_valid[i] && ($urandom() % 3) == 0 && asked[i] < Bursts &&
          want_id.size() < 16) begin
        beats = 1 + int'($urandom() % (64 < 4096 / NumB ? 64 : 4096 / NumB));
        ar_valid[i] = 1;
        ar_addr[i] = pick(0, beats);
        ar_len[i] = 8'(beats - 1);
      end
      // writer i owns [0x100000 * (i + 1), + 64 Ki)
      if (aw_acc[i]) begin
        aw_valid[i] = 0;
        w_left[i] = int'(aw_len[i]) + 1;
        w_at[i] = aw_addr[i];
      end
      if (w_acc[i]) begin
        w_valid[i] = 0;
        w_left[i]--;
        w_at[i] += 64'(NumB);
      end
      if (!w_valid[i] && w_left[i] > 0 && ($urandom() % 4) != 0) begin
        w_valid[i] = 1;
        new_beat(i);
      end
      if (!aw_valid[i] && w_left[i] == 0 && wr_begun[i] < Bursts && ($urandom() % 3) == 0) begin
        beats = 1 + int'($urandom() % 8);
        aw_valid[i] = 1;
        aw_addr[i] = pick((i + 1) * 32'h100000, beats);
        aw_len[i] = 8'(beats - 1);
      end
    end
  end

  logic e;
  always @(posedge clk) if (rst_n) begin
    ar_acc = ar_valid & ar_ready;
    aw_acc = aw_valid & aw_ready;
    w_acc = w_valid & w_ready;
    for (int i = 0; i < N; i++) begin
      if (ar_acc[i]) begin
        asked[i]++;
        want_id.push_back(i);
        want_addr.push_back(ar_addr[i]);
        want_left.push_back(int'(ar_len[i]) + 1);
        for (int j = 0; j < N; j++) if (j != i && ar_valid[j]) rd_skips[j]++;
        rd_skips[i] = 0;
      end
      if (rd_skips[i] > N || wr_skips[i] > N) $fatal(1, "client %0d starves", i);
      if (aw_acc[i]) begin
        wr_begun[i]++;
        e = 0;
        for (int k = 0; k <= int'(aw_len[i]); k++) e = e || u_mem.bad(aw_addr[i] + 64'(k * NumB));
        exp_id.push_back(i);
        exp_err.push_back(e);
        for (int j = 0; j < N; j++) if (j != i && aw_valid[j]) wr_skips[j]++;
        wr_skips[i] = 0;
      end
      if (w_acc[i]) begin
        for (int k = 0; k < NumB; k++)
          if (w_strb[i][k] && !u_mem.bad(w_at[i])) model[w_at[i] + 64'(k)] = w_data[i][8*k+:8];
      end
      if (r_valid[i]) begin
        at = -1;
        for (int k = want_id.size() - 1; k >= 0; k--) if (want_id[k] == i) at = k;
        if (at < 0) $fatal(1, "read data nobody asked for");
        if (r_err != u_mem.bad(want_addr[at])) $fatal(1, "read error flag");
        if (r_err) rd_errs++;
        for (int k = 0; k < NumB; k++)
          if (r_data[8*k+:8] != pat(want_addr[at] + 64'(k)))
            $fatal(1, "client %0d addr %h: %h", i, want_addr[at] + 64'(k), r_data[8*k+:8]);
        if (r_last != (want_left[at] == 1)) $fatal(1, "r_last");
        want_addr[at] += 64'(NumB);
        want_left[at]--;
        if (r_last) begin
          want_id.delete(at);
          want_addr.delete(at);
          want_left.delete(at);
          rd_done[i]++;
        end
      end
      if (b_valid[i]) begin
        at = -1;
        for (int k = exp_id.size() - 1; k >= 0; k--) if (exp_id[k] == i) at = k;
        if (at < 0) $fatal(1, "B nobody asked for");
        if (b_err != exp_err[at]) $fatal(1, "write error flag");
        if (b_err) wr_errs++;
        exp_id.delete(at);
        exp_err.delete(at);
        wr_done[i]++;
      end
    end
  end

  logic [63:0] a;
  int waits;
  initial begin
    for (int i = 0; i < N; i++) begin
      asked[i] = 0; rd_done[i] = 0; wr_done[i] = 0; wr_begun[i] = 0; w_left[i] = 0; rd_skips[i] = 0; wr_skips[i] = 0;
    end
    for (int i = 0; i < 65536; i++) u_mem.mem[64'(i)] = pat(64'(i));
    u_mem.err_lo = 64'hf000;
    u_mem.err_hi = 64'h102000;
    repeat (4) @(negedge clk);
    rst_n = 1;
    begun = 1;
    repeat (2000) @(negedge clk);
    // stop: what was begun is finished, nothing new begins
    stop = 1;
    waits = 0;
    while ((rd_busy || wr_busy) && waits < 20000) begin
      @(negedge clk);
      waits++;
      if (|(ar_valid & ar_ready) || |(aw_valid & aw_ready)) $fatal(1, "granted while stopped");
    end
    if (rd_busy || wr_busy) $fatal(1, "still busy after a stop");
    if (want_id.size() != 0 || exp_id.size() != 0) $fatal(1, "not busy, but answers are owed");
    stop = 0;
    u_mem.stall = 5;
    waits = 0;
    while ((rd_done[0] < Bursts || rd_done[1] < Bursts || rd_done[2] < Bursts || wr_done[0] < Bursts ||
            wr_done[1] < Bursts || wr_done[2] < Bursts) && waits < 2000000) begin
      @(negedge clk);
      waits++;
    end
    for (int i = 0; i < N; i++)
      if (rd_done[i] != Bursts || wr_done[i] != Bursts)
        $fatal(1, "client %0d: %0d reads, %0d writes done", i, rd_done[i], wr_done[i]);
    if (rd_busy || wr_busy) $fatal(1, "busy at the end");
    if (model.first(a) == 0) $fatal(1, "nothing written");
    do if (u_mem.get(a) != model[a]) $fatal(1, "memory at %h", a); while (model.next(a) != 0);
    if (rd_errs == 0 || wr_errs == 0) $fatal(1, "no error answers seen");
    $display("PASS %0d reads, %0d writes", N * Bursts, N * Bursts);
    $finish;
  end
endmodule
