// SPDX-License-Identifier: Apache-2.0
//
// atomic_unit on the AXI memory of the benches: random CmpSwap and FetchAdd at every place of a beat, stalls on every channel,
// refused reads and writes, and the bytes around it. Memory holds numbers in little endian.

module atomic_unit_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic req_valid = 0, req_ready, done, err, ar_valid, ar_ready, aw_valid, aw_ready, w_valid, w_ready, w_last;
  atomic_t req = '0;
  logic [63:0] value, ar_addr, aw_addr;
  logic [7:0] ar_len, aw_len;
  logic [DataW-1:0] w_data, r_data;
  logic [DataW/8-1:0] w_strb;
  logic r_valid, r_last, b_valid, ev_rd, ev_wr;
  logic [1:0] r_resp, b_resp;
  logic [3:0] r_id, b_id;

  atomic_unit #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .req_valid_i(req_valid), .req_ready_o(req_ready), .req_i(req),
    .done_o(done), .err_o(err), .value_o(value),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_err_i(r_resp[1]),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last),
    .b_valid_i(b_valid), .b_err_i(b_resp[1]), .ev_rd_err_o(ev_rd), .ev_wr_err_o(ev_wr)
  );
  axi_mem #(.DataW(DataW)) u_mem (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(4'd0), .awaddr_i(aw_addr), .awlen_i(aw_len), .awsize_i(3'($clog2(DataW / 8))), .awburst_i(2'b01),
    .awvalid_i(aw_valid), .awready_o(aw_ready), .wdata_i(w_data), .wstrb_i(w_strb), .wlast_i(w_last),
    .wvalid_i(w_valid), .wready_o(w_ready), .bid_o(b_id), .bresp_o(b_resp), .bvalid_o(b_valid), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(ar_addr), .arlen_i(ar_len), .arsize_i(3'($clog2(DataW / 8))), .arburst_i(2'b01),
    .arvalid_i(ar_valid), .arready_o(ar_ready), .rid_o(r_id), .rdata_o(r_data), .rresp_o(r_resp), .rlast_o(r_last),
    .rvalid_o(r_valid), .rready_i(1'b1)
  );

  localparam logic [63:0] Base = 64'h0000_4321_0000_0000;
  byte unsigned want[512];
  int rounds = 4000, n512 = 512, n8 = 8, off, n_swap = 0, n_miss = 0, n_err = 0, t, ev_rds = 0, ev_wrs = 0, want_rds = 0, want_wrs = 0;
  int writes;
  logic [63:0] now, next;
  bit bad_r, bad_w, hit;
  always @(posedge clk) if (rst_n) begin
    if (ev_rd) ev_rds++;
    if (ev_wr) ev_wrs++;
  end
  initial begin
    for (int i = 0; i < n512; i++) begin
      want[i] = 8'($urandom());
      u_mem.mem[Base+64'(i)] = want[i];
    end
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int k = 0; k < rounds; k++) begin
      if (k % 100 == 0) u_mem.stall = k % 300 == 0 ? 0 : int'($urandom() % 90);
      @(negedge clk);
      off = 8 * int'($urandom() % 64);
      for (int i = 0; i < n8; i++) now[8*i+:8] = want[off+i];
      req.fetch_add = 1'($urandom());
      req.iova = Base + 64'(off);
      req.swap_add = {$urandom(), $urandom()};
      req.compare = $urandom() % 2 == 0 ? now : $urandom() % 2 == 0 ? now ^ (64'd1 << ($urandom() % 64)) : {$urandom(), $urandom()};
      hit = req.fetch_add || req.compare == now;
      next = req.fetch_add ? now + req.swap_add : req.swap_add;
      bad_r = k % 10 == 7;
      u_mem.err_lo = bad_r ? Base : '1;
      u_mem.err_hi = bad_r ? Base + 64'd512 : '0;
      bad_w = k % 10 == 8 && hit;
      writes = u_mem.num_writes;
      req_valid = 1;
      @(posedge clk);
      while (!req_ready) @(posedge clk);
      @(negedge clk);
      req_valid = 0;
      t = 0;
      while (!done) begin
        if (bad_w && aw_valid) begin
          u_mem.err_lo = Base;
          u_mem.err_hi = Base + 64'd512;
        end
        @(negedge clk);
        t++;
        if (t > 5000) $fatal(1, "never done");
        if (req_ready && !done) $fatal(1, "ready while one is under way");
      end
      if (req_ready) $fatal(1, "ready in the cycle of done");
      if (err != (bad_r || bad_w)) $fatal(1, "error %0d, want %0d %0d", err, bad_r, bad_w);
      if (!bad_r && value != now) $fatal(1, "value %h, want %h", value, now);
      if (bad_r) want_rds++;
      if (bad_w) want_wrs++;
      if (err) n_err++;
      else if (hit) begin
        n_swap++;
        for (int i = 0; i < n8; i++) want[off+i] = next[8*i+:8];
      end else n_miss++;
      if (!err && u_mem.num_writes != writes + int'(hit)) $fatal(1, "%0d writes, want %0d", u_mem.num_writes - writes, hit);
      for (int i = 0; i < n512; i++)
        if (u_mem.get(Base + 64'(i)) != want[i]) $fatal(1, "byte %0d is %h, want %h", i, u_mem.get(Base + 64'(i)), want[i]);
      @(negedge clk);
      if (done) $fatal(1, "done twice");
    end
    if (ev_rds != want_rds || ev_wrs != want_wrs) $fatal(1, "events %0d %0d, want %0d %0d", ev_rds, ev_wrs, want_rds, want_wrs);
    if (n_swap < 1000 || n_miss < 200 || n_err < 400 || want_wrs < 100) $fatal(1, "corner not reached: %0d %0d %0d", n_swap, n_miss, n_err);
    $display("PASS %0d changed, %0d left, %0d refused", n_swap, n_miss, n_err);
    $finish;
  end
endmodule
