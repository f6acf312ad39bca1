// SPDX-License-Identifier: Apache-2.0
//
// qp_mover against a model: a few slots of 32 lines each, more QPs than slots, host memory. Moves as qp_cache makes them: a QP goes, saved if it
// was changed, line 2 only if that was, and another one comes, or a new one. Lines that are live
// follow from the contents of lines 0 and 1. What is not to be kept is overwritten at once. At the end of a load every line must be what it was when
// it was saved, or left alone; memory stalls, and refuses the lines of one QP for a while.

module qp_mover_tb #(
  parameter int unsigned DataW = 64
);
  localparam int QpnW = 6, SlotW = 3, LogMoves = DataW == 64 ? 1 : 2;
  localparam int N = 12, S = 6, Bad = 5;
  localparam logic [63:0] Base = 64'h0000_0012_3456_7000;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic mv_valid = 0, mv_ready, mv_save_attr = 0, mv_save = 0, mv_zero = 0, fd_valid, fd_ready = 0, fd_err, sd_valid, sd_ready = 0, sd_err;
  logic [SlotW-1:0] mv_slot = '0, ln_slot;
  logic [QpnW-1:0] mv_save_qpn = '0, mv_fill_qpn = '0;
  logic ln_valid, ln_load, ln_zero, ln_rsp_valid = 0, idle;
  logic [4:0] ln_no;
  logic [QpnW-1:0] ln_qpn;
  logic [2:0][511:0] ln_ctx, ctx_back = '0, live_ctx;
  logic [511:0] ln_data, ln_back = '0;
  logic [31:0] ln_live, live;
  logic ar_valid, ar_ready, aw_valid, aw_ready, w_valid, w_ready, w_last, r_valid, r_last, b_valid;
  logic [63:0] ar_addr, aw_addr;
  logic [7:0] ar_len, aw_len;
  logic [1:0] rresp, bresp;
  logic [DataW-1:0] r_data, w_data;
  logic [DataW/8-1:0] w_strb;
  logic [3:0] rid, bid;

  qp_mover #(.DataW(DataW), .QpnW(QpnW), .SlotW(SlotW), .LogMoves(LogMoves)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mem_base_i(Base[63:11]),
    .mv_valid_i(mv_valid), .mv_ready_o(mv_ready), .mv_slot_i(mv_slot), .mv_save_i(mv_save), .mv_save_attr_i(mv_save_attr),
    .mv_save_qpn_i(mv_save_qpn), .mv_zero_i(mv_zero), .mv_fill_qpn_i(mv_fill_qpn),
    .fd_valid_o(fd_valid), .fd_ready_i(fd_ready), .fd_err_o(fd_err), .sd_valid_o(sd_valid), .sd_ready_i(sd_ready), .sd_err_o(sd_err),
    .ln_valid_o(ln_valid), .ln_load_o(ln_load), .ln_zero_o(ln_zero), .ln_slot_o(ln_slot), .ln_qpn_o(ln_qpn), .ln_no_o(ln_no), .ln_ctx_o(ln_ctx),
    .ln_data_o(ln_data), .ln_rsp_valid_i(ln_rsp_valid), .ln_ctx_i(ctx_back), .ln_live_i(ln_live), .ln_data_i(ln_back),
    .live_ctx_o(live_ctx), .live_i(live),
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i(r_valid), .r_data_i(r_data), .r_last_i(r_last), .r_err_i(rresp[1]),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last),
    .b_valid_i(b_valid), .b_err_i(bresp[1]), .idle_o(idle));

  axi_rd_check #(.DataW(DataW), .IdW(1), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(64)) u_rd_check (
    .clk_i(clk), .rst_ni(rst_n), .ar_valid_i(ar_valid), .ar_ready_i(ar_ready), .ar_id_i(1'b0), .ar_addr_i(ar_addr), .ar_len_i(ar_len),
    .ar_size_i(3'($clog2(DataW / 8))), .ar_burst_i(2'b01), .r_valid_i(r_valid), .r_ready_i(1'b1), .r_id_i(1'b0), .r_data_i(r_data),
    .r_resp_i(rresp), .r_last_i(r_last));
  axi_wr_check #(.DataW(DataW), .IdW(1), .MaxBeats(rnic_pkg::BurstBeats), .MaxOpen(64), .MaxAhead(64)) u_wr_check (
    .clk_i(clk), .rst_ni(rst_n), .aw_valid_i(aw_valid), .aw_ready_i(aw_ready), .aw_id_i(1'b0), .aw_addr_i(aw_addr), .aw_len_i(aw_len),
    .aw_size_i(3'($clog2(DataW / 8))), .aw_burst_i(2'b01), .w_valid_i(w_valid), .w_ready_i(w_ready), .w_data_i(w_data),
    .w_strb_i(w_strb), .w_last_i(w_last), .b_valid_i(b_valid), .b_ready_i(1'b1), .b_id_i(1'b0), .b_resp_i(bresp));

  axi_mem #(.DataW(DataW), .NumIds(1)) mem (
    .clk_i(clk), .rst_ni(rst_n),
    .awid_i(4'd0), .awaddr_i(aw_addr), .awlen_i(aw_len), .awsize_i(3'($clog2(DataW/8))), .awburst_i(2'b01), .awvalid_i(aw_valid), .awready_o(aw_ready),
    .wdata_i(w_data), .wstrb_i(w_strb), .wlast_i(w_last), .wvalid_i(w_valid), .wready_o(w_ready),
    .bid_o(bid), .bresp_o(bresp), .bvalid_o(b_valid), .bready_i(1'b1),
    .arid_i(4'd0), .araddr_i(ar_addr), .arlen_i(ar_len), .arsize_i(3'($clog2(DataW/8))), .arburst_i(2'b01), .arvalid_i(ar_valid), .arready_o(ar_ready),
    .rid_o(rid), .rdata_o(r_data), .rresp_o(rresp), .rlast_o(r_last), .rvalid_o(r_valid), .rready_i(1'b1));

  // lines that go with line 0 (8 to 31) or line 1 (4 to 7)
  function automatic logic [31:0] live_of(logic [2:0][511:0] d);
    return {d[0][31:8] & d[0][63:40] & d[0][95:72], d[1][7:4] & d[1][15:12], 4'd0};
  endfunction
  assign live = live_of(live_ctx);
  assign ln_live = live_of(ctx_back);
  function automatic logic [511:0] rand512();
    logic [511:0] v;
    for (int i = 0; i < 16; i++) v[32*i+:32] = $urandom();
    return v;
  endfunction

  // ---- model ----
  logic [511:0] truth[N][32];    // as saved last
  bit lost[N], used[N], saving[N];
  logic [511:0] line[S][32];     // in the modules
  int owner[S];
  bit changed[S], attr_changed[S];
  bit moving[S];
  typedef struct packed {int slot; int qpn; bit zero;} fill_t;
  fill_t fills[$], f;
  int saves[$];
  int n_fill, n_zero, n_save, n_attr, n_live, n_fd_err, n_sd_err, n_lines, max_open;
  logic [31:0] m;

  // ---- lines ----
  int ln_wait = -1, ln_s, ln_n;
  bit ln_l, ln_z, ln_open = 0;
  logic [511:0] ln_d;
  logic [2:0][511:0] ln_c;
  logic [SlotW+QpnW+6:0] ln_who, who;
  bit calm = 0;
  assign who = {ln_load, ln_zero && ln_load, ln_slot, ln_load ? ln_qpn : QpnW'(0), ln_no};
  always @(posedge clk) if (rst_n) begin
    if (ln_open && (!ln_valid || who != ln_who)) $fatal(1, "a line changed while it was asked for");
    if (ln_valid && !ln_open) begin
      ln_s = int'(ln_slot);
      ln_n = int'(ln_no);
      ln_l = ln_load;
      ln_z = ln_zero;
      ln_d = ln_data;
      ln_c = ln_ctx;
      ln_who = who;
      ln_wait = calm ? 0 : int'($urandom() % 4);
      ln_open = 1;
      n_lines++;
      if (!moving[ln_s]) $fatal(1, "line %0d of slot %0d, which rests", ln_n, ln_s);
      if (ln_n inside {1, 2, 3}) $fatal(1, "line %0d alone", ln_n);
      if (ln_l && (fills.size() == 0 || ln_s != fills[0].slot || int'(ln_qpn) != fills[0].qpn)) $fatal(1, "load of QP %0d", ln_qpn);
      if (ln_l && ln_n > 2) begin
        n_live++;
        m = live_of(ln_c);
        if (!m[ln_n]) $fatal(1, "line %0d is not live", ln_n);
      end
    end
    if (ln_open && ln_rsp_valid) ln_open = 0;
    if (mv_valid && mv_ready) begin
      f = '{slot: int'(mv_slot), qpn: int'(mv_fill_qpn), zero: mv_zero};
      fills.push_back(f);
      if (fills.size() > max_open) max_open = fills.size();
      if (mv_save) begin
        saves.push_back(int'(mv_save_qpn));
        n_save++;
        n_attr += int'(mv_save_attr);
      end
      mv_valid <= 0;
    end
    if (fd_valid && fd_ready) begin
      if (fills.size() == 0) $fatal(1, "an end too much");
      f = fills.pop_front();
      if (fd_err) begin
        n_fd_err++;
        if (f.qpn != Bad) $fatal(1, "QP %0d refused", f.qpn);
        owner[f.slot] = -1;
      end else begin
        m = f.zero ? '0 : live_of({line[f.slot][2], line[f.slot][1], line[f.slot][0]});
        m[2:0] = '1;
        for (int l = 0; l < 32; l++) if (m[l] && line[f.slot][l] != (f.zero ? 512'd0 : truth[f.qpn][l]))
          $fatal(1, "QP %0d in slot %0d: line %0d is not what it was", f.qpn, f.slot, l);
        n_fill++;
        n_zero += int'(f.zero);
        changed[f.slot] = f.zero;
        attr_changed[f.slot] = f.zero;
      end
      moving[f.slot] = 0;
    end
    if (sd_valid && sd_ready) begin
      if (saves.size() == 0) $fatal(1, "a save too much");
      if (sd_err) begin
        n_sd_err++;
        if (saves[0] != Bad) $fatal(1, "write of QP %0d refused", saves[0]);
        lost[saves[0]] = 1;
      end
      saving[saves[0]] = 0;
      void'(saves.pop_front());
    end
  end
  // answered some time later, what was read stays until the next of its kind; read once, it is gone
  always @(negedge clk) begin
    ln_rsp_valid = 0;
    if (ln_answered && ln_n == 0 && !ln_l) for (int l = 0; l < 3; l++) begin
      ctx_back[l] = line[ln_s][l];
      line[ln_s][l] = rand512();
    end
    if (ln_answered && ln_n != 0 && !ln_l) begin
      ln_back = line[ln_s][ln_n];
      line[ln_s][ln_n] = rand512();
    end
    ln_answered = 0;
    if (ln_wait == 0) begin
      ln_rsp_valid = 1;
      ln_answered = 1;
      if (ln_l && ln_n == 0) for (int l = 0; l < 3; l++) line[ln_s][l] = ln_z ? '0 : ln_c[l];
      else if (ln_l) line[ln_s][ln_n] = ln_d;
      else if (ln_n == 0) ctx_back = {rand512(), rand512(), rand512()};
      else ln_back = rand512();
    end
    if (ln_wait >= 0) ln_wait--;
    fd_ready = calm || $urandom() % 3 == 0;
    sd_ready = calm || $urandom() % 3 == 0;
  end
  bit ln_answered = 0;

  // ---- moves ----
  int s, q, n;
  bit [31:0] alive;
  bit free_qpn, failing = 0;
  task automatic move_step();
    s = int'($urandom() % S);
    q = failing && $urandom() % 3 == 0 ? Bad : int'($urandom() % N);
    if (!mv_valid && !moving[s] && fills.size() < (1 << LogMoves) && saves.size() < (1 << LogMoves)) begin
      free_qpn = !saving[q];
      for (int i = 0; i < S; i++) if (owner[i] == q) free_qpn = 0;
      if (free_qpn) begin
        mv_slot = SlotW'(s);
        mv_zero = !used[q] || lost[q];
        mv_fill_qpn = QpnW'(q);
        mv_save = owner[s] >= 0 && changed[s];
        mv_save_attr = mv_save ? attr_changed[s] : 1'($urandom());
        mv_save_qpn = owner[s] >= 0 ? QpnW'(owner[s]) : QpnW'($urandom());
        // what is saved: the three and the lines that are live with them
        alive = '0;
        if (mv_save) begin
          alive = live_of({line[s][2], line[s][1], line[s][0]});
          alive[2:0] = '1;
          saving[owner[s]] = 1;
          for (int l = 0; l < 32; l++) if (alive[l]) truth[owner[s]][l] = line[s][l];
        end
        for (int l = 0; l < 32; l++) if (!alive[l]) line[s][l] = rand512();
        used[q] = 1;
        lost[q] = 0;
        owner[s] = q;
        moving[s] = 1;
        mv_valid = 1;
      end
    end else if (!moving[s] && owner[s] >= 0 && $urandom() % 4 == 0) begin
      // the modules change something
      line[s][0] = rand512();
      line[s][1] = rand512();
      if ($urandom() % 3 != 0) line[s][0][31:4] = '0;
      if ($urandom() % 2 == 0) line[s][1][31:4] = '0;
      alive = live_of({line[s][2], line[s][1], line[s][0]});
      for (int l = 3; l < 32; l++) if (alive[l]) line[s][l] = rand512();
      changed[s] = 1;
      if ($urandom() % 2 == 0) begin
        line[s][2] = rand512();
        attr_changed[s] = 1;
      end
    end
  endtask
  task automatic settle();
    n = 0;
    while (mv_valid || fills.size() != 0 || saves.size() != 0 || !idle) begin
      @(negedge clk);
      n++;
      if (n > 20000) $fatal(1, "not idle");
    end
  endtask

  int rounds = 40;
  initial begin
    for (int i = 0; i < S; i++) begin
      owner[i] = -1;
      for (int l = 0; l < 32; l++) line[i][l] = rand512();
    end
    repeat (3) @(negedge clk);
    rst_n = 1;
    for (int r = 0; r < rounds; r++) begin
      mem.stall = r % 3 == 0 ? 0 : r % 3 == 1 ? 40 : 80;
      calm = r % 4 == 0;
      failing = r % 5 == 4;
      if (failing) begin
        mem.err_lo = Base + 2048 * Bad;
        mem.err_hi = Base + 2048 * Bad + 2048;
      end
      repeat (1500) begin
        @(negedge clk);
        move_step();
      end
      settle();
      mem.err_lo = '1;
      mem.err_hi = '0;
    end
    if (n_fill < 500 || n_attr < 100 || n_save - n_attr < 20 || n_zero < 10 || n_save < 300 || n_live < 300 || n_fd_err < 3 || n_sd_err < 3 || max_open < 2)
      $fatal(1, "corners: %0d loads, %0d with attributes, %0d new, %0d saves, %0d live lines, %0d and %0d refused, %0d open", n_fill, n_attr, n_zero, n_save, n_live,
             n_fd_err, n_sd_err, max_open);
    $display("PASS %0d loads (%0d new), %0d saves (%0d with line 2), %0d lines, %0d live ones loaded, %0d loads and %0d saves refused, %0d at a time",
             n_fill, n_zero, n_save, n_attr, n_lines, n_live, n_fd_err, n_sd_err, max_open);
    $finish;
  end
endmodule
