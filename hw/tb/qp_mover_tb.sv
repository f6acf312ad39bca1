// SPDX-License-Identifier: Apache-2.0
//
// qp_mover against a model: a few slots of 32 lines each, more QPs than slots, host memory. Moves as qp_cache makes them: a QP goes, with the
// parts that were changed, another one comes, with one half or both, or the other half of one that is there, or a new one. Lines that are live
// follow from the contents of lines 0 and 2. What is not to be kept is overwritten at once. At the end of a load every line must be what it was when
// it was saved, or left alone; memory stalls, and refuses the lines of one QP for a while.

module qp_mover_tb #(
  parameter int unsigned DataW = 64
);
  localparam int QpnW = 6, SlotW = 3, LogMoves = DataW == 64 ? 1 : 2;
  localparam int N = 12, S = 6, Bad = 5;
  localparam logic [63:0] Base = 64'h0000_0012_3456_7000;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic mv_valid = 0, mv_ready, mv_common = 0, mv_zero = 0, fd_valid, fd_ready = 0, fd_err, sd_valid, sd_ready = 0, sd_err;
  logic [SlotW-1:0] mv_slot = '0, ln_slot;
  logic [2:0] mv_save = '0;
  logic [1:0] mv_fill = '0;
  logic [QpnW-1:0] mv_save_qpn = '0, mv_fill_qpn = '0;
  logic ln_valid, ln_ready = 0, ln_load, ln_rsp_valid = 0, idle;
  logic [4:0] ln_no, live_no;
  logic [511:0] ln_data, ln_back = '0, live_data;
  logic [31:0] live;
  logic ar_valid, ar_ready, aw_valid, aw_ready, w_valid, w_ready, w_last, r_valid, r_last, b_valid;
  logic [63:0] ar_addr, aw_addr;
  logic [7:0] ar_len, aw_len;
  logic [1:0] rresp, bresp;
  logic [DataW-1:0] r_data, w_data;
  logic [DataW/8-1:0] w_strb;
  logic [3:0] rid, bid;

  qp_mover #(.DataW(DataW), .QpnW(QpnW), .SlotW(SlotW), .LogMoves(LogMoves)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mem_base_i(Base[63:11]),
    .mv_valid_i(mv_valid), .mv_ready_o(mv_ready), .mv_slot_i(mv_slot), .mv_save_i(mv_save), .mv_save_qpn_i(mv_save_qpn),
    .mv_fill_i(mv_fill), .mv_common_i(mv_common), .mv_zero_i(mv_zero), .mv_fill_qpn_i(mv_fill_qpn),
    .fd_valid_o(fd_valid), .fd_ready_i(fd_ready), .fd_err_o(fd_err), .sd_valid_o(sd_valid), .sd_ready_i(sd_ready), .sd_err_o(sd_err),
    .ln_valid_o(ln_valid), .ln_ready_i(ln_ready), .ln_load_o(ln_load), .ln_slot_o(ln_slot), .ln_no_o(ln_no), .ln_data_o(ln_data),
    .ln_rsp_valid_i(ln_rsp_valid), .ln_data_i(ln_back), .live_no_o(live_no), .live_data_o(live_data), .live_i(live),
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

  // lines that go with line 0 (8 to 31) or line 2 (4 to 7)
  function automatic logic [31:0] live_of(logic [4:0] no, logic [511:0] d);
    return no == 5'd0 ? {d[31:8] & d[63:40] & d[95:72], 8'd0} : no == 5'd2 ? {24'd0, d[7:4], 4'd0} : '0;
  endfunction
  function automatic bit has(int l, logic [4:0] no, logic [511:0] d);
    logic [31:0] m;
    m = live_of(no, d);
    return m[l];
  endfunction
  assign live = live_of(live_no, live_data);
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
  bit [2:0] here[S];             // parts of it
  bit [2:0] changed[S];
  bit moving[S];
  typedef struct packed {int slot; int qpn; bit [2:0] parts; bit zero;} fill_t;
  typedef struct packed {int qpn;} save_t;
  fill_t fills[$], f;
  int saves[$];
  int n_fill, n_half, n_zero, n_save, n_live, n_fd_err, n_sd_err, n_lines, max_open;

  function automatic logic [4:0] line_of(int part);   // of requester, responder, common
    return part == 0 ? 5'd0 : part == 1 ? 5'd2 : 5'd1;
  endfunction

  // ---- lines ----
  int ln_wait = -1, ln_s, ln_n;
  bit ln_l;
  logic [511:0] ln_d;
  bit calm = 0, quiet = 0;
  always @(posedge clk) if (rst_n) begin
    if (ln_valid && ln_ready) begin
      if (ln_wait >= 0) $fatal(1, "two lines at once");
      ln_s = int'(ln_slot);
      ln_n = int'(ln_no);
      ln_l = ln_load;
      ln_d = ln_data;
      ln_wait = calm ? 0 : int'($urandom() % 4);
      n_lines++;
      if (!moving[ln_s]) $fatal(1, "line %0d of slot %0d, which rests", ln_n, ln_s);
      if (ln_l && ln_n > 2) n_live++;
    end
    if (mv_valid && mv_ready) begin
      // parts that are not saved are lost now
      f = '{slot: int'(mv_slot), qpn: int'(mv_fill_qpn), parts: {mv_common, mv_fill}, zero: mv_zero};
      fills.push_back(f);
      if (fills.size() > max_open) max_open = fills.size();
      if (mv_save != 0) begin
        saves.push_back(int'(mv_save_qpn));
        n_save++;
      end
      mv_valid <= 0;
    end
    if (fd_valid && fd_ready) begin
      if (fills.size() == 0) $fatal(1, "an end too much");
      f = fills.pop_front();
      if (fd_err) begin
        n_fd_err++;
        if (f.qpn != Bad) $fatal(1, "QP %0d refused", f.qpn);
        if (f.parts[2]) owner[f.slot] = -1;
      end else begin
        for (int p = 0; p < 3; p++) if (f.parts[p]) begin
          if (line[f.slot][line_of(p)] != (f.zero ? 512'd0 : truth[f.qpn][line_of(p)]))
            $fatal(1, "QP %0d in slot %0d: part %0d is not what it was", f.qpn, f.slot, p);
          for (int l = 3; l < 32; l++) if (has(l, line_of(p), line[f.slot][line_of(p)]) && line[f.slot][l] != truth[f.qpn][l])
            $fatal(1, "QP %0d in slot %0d: line %0d is not what it was", f.qpn, f.slot, l);
          here[f.slot][p] = 1;
        end
        n_fill++;
        n_half += int'(!f.parts[2]);
        n_zero += int'(f.zero);
        if (f.zero) changed[f.slot] = 3'b111;
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
  // a line is answered some time later; read once, it is gone
  always @(negedge clk) begin
    ln_rsp_valid = 0;
    ln_back = rand512();
    if (ln_wait == 0) begin
      ln_rsp_valid = 1;
      if (ln_l) line[ln_s][ln_n] = ln_d;
      else begin
        ln_back = line[ln_s][ln_n];
        line[ln_s][ln_n] = rand512();
      end
    end
    if (ln_wait >= 0) ln_wait--;
    ln_ready = (calm || $urandom() % 2 == 0) && ln_wait < 0;
    fd_ready = calm || $urandom() % 3 == 0;
    sd_ready = calm || $urandom() % 3 == 0;
  end

  // ---- moves ----
  int s, q, how, n;
  bit [31:0] alive;
  bit free_qpn, failing = 0;
  task automatic move_step();
    s = int'($urandom() % S);
    q = failing && $urandom() % 3 == 0 ? Bad : int'($urandom() % N);
    if (!mv_valid && !moving[s] && fills.size() < (1 << LogMoves) && saves.size() < (1 << LogMoves)) begin
      how = int'($urandom() % 4);
      if (how == 0 && owner[s] >= 0 && here[s][1:0] != 2'b11 && used[owner[s]]) begin
        // the other half
        mv_slot = SlotW'(s);
        mv_save = '0;
        mv_fill = ~here[s][1:0];
        mv_common = 0;
        mv_zero = 0;
        mv_fill_qpn = QpnW'(owner[s]);
        moving[s] = 1;
        mv_valid = 1;
      end else begin
        free_qpn = !saving[q];
        for (int i = 0; i < S; i++) if (owner[i] == q) free_qpn = 0;
        if (free_qpn) begin
          mv_slot = SlotW'(s);
          mv_zero = !used[q] || lost[q];
          mv_common = 1;
          mv_fill = mv_zero ? 2'b11 : 2'(1 + $urandom() % 3);
          mv_fill_qpn = QpnW'(q);
          mv_save = owner[s] >= 0 ? {changed[s][2] & here[s][2], changed[s][1:0] & here[s][1:0]} : 3'd0;
          mv_save_qpn = owner[s] >= 0 ? QpnW'(owner[s]) : QpnW'($urandom());
          // what is saved: the parts and the lines that are live with them
          alive = '0;
          for (int p = 0; p < 3; p++) if (mv_save[p]) begin
            alive[line_of(p)] = 1;
            alive |= live_of(line_of(p), line[s][line_of(p)]);
          end
          if (mv_save != 0) begin
            saving[owner[s]] = 1;
            for (int l = 0; l < 32; l++) if (alive[l]) truth[owner[s]][l] = line[s][l];
          end
          for (int l = 0; l < 32; l++) if (!alive[l]) line[s][l] = rand512();
          used[q] = 1;
          lost[q] = 0;
          owner[s] = q;
          here[s] = 0;
          changed[s] = 0;
          moving[s] = 1;
          mv_valid = 1;
        end
      end
    end else if (!moving[s] && owner[s] >= 0 && $urandom() % 4 == 0) begin
      // the modules change something
      for (int p = 0; p < 3; p++) if (here[s][p] && $urandom() % 2 == 0) begin
        line[s][line_of(p)] = rand512();
        if ($urandom() % 2 == 0) line[s][line_of(p)][31:4] = '0;
        for (int l = 3; l < 32; l++) if (has(l, line_of(p), line[s][line_of(p)])) line[s][l] = rand512();
        changed[s][p] = 1;
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
    if (n_fill < 500 || n_half < 30 || n_zero < 10 || n_save < 300 || n_live < 300 || n_fd_err < 3 || n_sd_err < 3 || max_open < 2)
      $fatal(1, "corners: %0d loads, %0d halves, %0d new, %0d saves, %0d live lines, %0d and %0d refused, %0d open", n_fill, n_half, n_zero, n_save, n_live,
             n_fd_err, n_sd_err, max_open);
    $display("PASS %0d loads (%0d of a half, %0d new), %0d saves, %0d lines, %0d live ones loaded, %0d loads and %0d saves refused, %0d at a time",
             n_fill, n_half, n_zero, n_save, n_lines, n_live, n_fd_err, n_sd_err, max_open);
    $finish;
  end
endmodule
