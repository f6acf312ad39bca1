// SPDX-License-Identifier: Apache-2.0
//
// Push windows against a model: words in and out of order on several pages, doorbells that fit and that do not, a new life of a QP; what a
// hit promises is read back, also long after, while words go on coming. A place is with one window or one copy at a time; few places: windows
// find none at times, and they are found again when they are given up.

module wqe_push_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int Rows = 1024 / int'(DataW);
  localparam int Places = 8;

  logic clk = 0, rst_n = 0, clear = 0;
  always #1 clk = !clk;
  logic wr_valid = 0, db_valid = 0, rd_en = 0;
  db_page_t wr_page = 0, db_page = 0;
  wqe_copy_t db_copy;
  copy_idx_t rd_at = 0;
  logic [3:0] wr_word = 0;
  logic [63:0] wr_data = 0;
  logic [7:0] db_qpn_low = 0;
  logic [15:0] db_pi = 0;
  logic [$clog2(Rows)-1:0] rd_row = 0;
  logic [DataW-1:0] rd_data;
  logic [4:0] free_valid = 0;
  copy_idx_t [4:0] free_at = 0;

  wqe_push #(.DataW(DataW), .NumPlaces(Places)) dut (
    .clk_i(clk), .rst_ni(rst_n), .clear_i(clear),
    .wr_valid_i(wr_valid), .wr_page_i(wr_page), .wr_word_i(wr_word), .wr_data_i(wr_data),
    .db_valid_i(db_valid), .db_page_i(db_page), .db_qpn_low_i(db_qpn_low), .db_pi_i(db_pi), .db_copy_o(db_copy),
    .rd_en_i(rd_en), .rd_at_i(rd_at), .rd_row_i(rd_row), .rd_data_o(rd_data),
    .free_valid_i(free_valid), .free_at_i(free_at)
  );

  // model: the words since word 0, while they are in order; places of copies
  int there[16], len[Places], n_hit = 0, n_long = 0, n_miss = 0, n_read = 0, n_none = 0, n_free = 0, n_out = 0, free_pct = 10, p, a, b;
  bit held[Places], window[16], expect_read = 0;
  logic [63:0] word[16][16], copy[Places][16];
  logic [DataW-1:0] want;

  function automatic int rnd(int lo, int hi);
    return lo + int'($urandom() % (hi - lo + 1));
  endfunction
  function automatic bit chance(int percent);
    return int'($urandom() % 100) < percent;
  endfunction
  // places that nobody has, the one ahead included
  function automatic int unused();
    int n;
    n = Places;
    for (int i = 0; i < Places; i++) n -= int'(held[i]);
    for (int i = 0; i < 16; i++) n -= int'(window[i]);
    return n;
  endfunction

  initial begin
    for (int i = 0; i < 16; i++) begin
      there[i] = 0;
      window[i] = 0;
    end
    for (int i = 0; i < Places; i++) held[i] = 0;
    repeat (3) @(negedge clk);
    rst_n = 1;
    for (int k = 0; k < 400000; k++) begin
      @(negedge clk);
      if (expect_read && rd_data !== want) $fatal(1, "read %h, want %h", rd_data, want);
      {wr_valid, db_valid, rd_en, free_valid, clear, expect_read} = '0;
      if (k % 10000 == 0) free_pct = free_pct == 10 ? 2 : free_pct == 2 ? 40 : 10;   // now and then copies stay for long
      p = rnd(0, 3) * 5;
      // the bus brings a word or a doorbell
      if (chance(85)) begin
        wr_valid = 1;
        wr_page = db_page_t'(p);
        a = there[p] == 16 ? 0 : there[p];
        wr_word = 4'(chance(97) ? a : rnd(0, 15));
        if (chance(2)) wr_word = 4'(a + 8);
        wr_data = {$urandom(), $urandom()};
        wr_data[31:24] = 8'(rnd(0, 2));
        wr_data[47:32] = 16'(rnd(-1, 1));
      end
      if (!wr_valid || (there[p] inside {8, 16} && chance(70))) begin
        wr_valid = 0;
        db_valid = chance(90);
        db_page = db_page_t'(p);
        db_qpn_low = chance(80) ? word[p][0][31:24] : 8'(rnd(0, 2));
        db_pi = chance(80) ? word[p][1][47:32] + 16'd1 : 16'(rnd(-1, 2));
      end
      // copies are read, and given up in the end, up to five in a cycle
      a = rnd(0, Places - 1);
      if (held[a] && chance(50)) begin
        rd_en = 1;
        rd_at = copy_idx_t'(a);
        b = rnd(0, len[a] * 64 / int'(DataW) - 1);
        rd_row = ($clog2(Rows))'(b);
        for (int i = 0; i < int'(DataW) / 64; i++) want[64*i +: 64] = copy[a][b * int'(DataW) / 64 + i];
        expect_read = 1;
        n_read++;
      end
      b = 0;
      for (int i = 0; i < 5; i++) begin
        a = rnd(0, Places - 1);
        if (held[a] && chance(free_pct)) begin
          free_valid[i] = 1;
          free_at[i] = copy_idx_t'(a);
          held[a] = 0;
          b++;
        end
      end
      if (b > 1) n_free++;
      clear = chance(1) && chance(30);
      #0.5;
      if (wr_valid) begin
        if (int'(wr_word) == 0 && !window[p] && !dut.spare_valid_q) begin
          // there may be one just now given up or just now taken, but not more
          if (unused() > b + 1 + n_out) $fatal(1, "no place for page %0d, and %0d are free", p, unused());
          n_none++;
          there[p] = 0;
        end else if (int'(wr_word) == 0 || (there[p] != 0 && there[p] == int'(wr_word))) begin
          window[p] = 1;
          word[p][wr_word] = wr_data;
          there[p] = int'(wr_word) + 1;
        end else begin
          there[p] = 0;
        end
      end
      n_out = b;               // given up a cycle ago: on their way
      if (db_valid) begin
        if (db_copy.valid !== ((there[p] == 8 || there[p] == 16) && word[p][0][31:24] == db_qpn_low &&
                        word[p][1][47:32] == db_pi - 16'd1)) $fatal(1, "page %0d: hit %b with %0d words", p, db_copy.valid, there[p]);
        if (db_copy.valid) begin
          if (db_copy.long_wqe !== (there[p] == 16)) $fatal(1, "long %b", db_copy.long_wqe);
          if (int'(db_copy.at) >= Places || held[db_copy.at]) $fatal(1, "place %0d of page %0d has a copy already", db_copy.at, p);
          held[db_copy.at] = 1;
          window[p] = 0;
          len[db_copy.at] = there[p];
          copy[db_copy.at] = word[p];
          n_hit++;
          n_long += int'(db_copy.long_wqe);
        end else begin
          n_miss++;
        end
        there[p] = 0;
      end
      if (clear) for (int i = 0; i < 16; i++) there[i] = 0;
    end
    // all are found again
    repeat (3) @(negedge clk);
    {wr_valid, db_valid, rd_en, free_valid, clear} = '0;
    for (int i = 0; i < Places; i++) begin
      @(negedge clk);
      free_valid = 5'(held[i]);
      free_at[0] = copy_idx_t'(i);
      held[i] = 0;
    end
    @(negedge clk);
    free_valid = '0;
    @(negedge clk);
    if ($countones(dut.free_q) + int'(dut.spare_valid_q) != unused()) $fatal(1, "%0d places are free, %0d unused", $countones(dut.free_q), unused());
    if (n_hit < 1000 || n_long < 100 || n_miss < 1000 || n_read < 1000 || n_none < 500 || n_free < 50)
      $fatal(1, "corners: %0d hits, %0d of 16 words, %0d misses, %0d reads, %0d windows without a place, %0d times several given up", n_hit, n_long, n_miss, n_read, n_none, n_free);
    $display("PASS %0d copies used, %0d not, %0d windows without a place", n_hit, n_miss, n_none);
    $finish;
  end
endmodule
