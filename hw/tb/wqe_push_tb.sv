// SPDX-License-Identifier: Apache-2.0
//
// Push windows against a model: words in and out of order on all pages, doorbells that fit and that do not, windows held and
// released, a new life of a QP; what a hit promises is read back, also long after, while words go on coming.

module wqe_push_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int Rows = 1024 / int'(DataW);

  logic clk = 0, rst_n = 0, clear = 0;
  always #1 clk = !clk;
  logic wr_valid = 0, db_valid = 0, db_hit, db_long, rd_en = 0;
  db_page_t wr_page = 0, db_page = 0, rd_page = 0;
  logic [3:0] wr_word = 0;
  logic [63:0] wr_data = 0;
  logic [7:0] db_qpn_low = 0;
  logic [15:0] db_pi = 0;
  logic [$clog2(Rows)-1:0] rd_row = 0;
  logic [DataW-1:0] rd_data;
  logic [3:0] free_valid = 0;
  db_page_t [3:0] free_page = 0;

  wqe_push #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .clear_i(clear),
    .wr_valid_i(wr_valid), .wr_page_i(wr_page), .wr_word_i(wr_word), .wr_data_i(wr_data),
    .db_valid_i(db_valid), .db_page_i(db_page), .db_qpn_low_i(db_qpn_low), .db_pi_i(db_pi),
    .db_hit_o(db_hit), .db_long_o(db_long),
    .rd_en_i(rd_en), .rd_page_i(rd_page), .rd_row_i(rd_row), .rd_data_o(rd_data),
    .free_valid_i(free_valid), .free_page_i(free_page)
  );

  // model: the words since word 0, while they are in order
  int there[16], len[16], n_hit = 0, n_long = 0, n_miss = 0, n_read = 0, n_dropped = 0, p, a, b;
  bit held[16], expect_read = 0;
  logic [63:0] word[16][16];
  logic [DataW-1:0] want;

  function automatic int rnd(int lo, int hi);
    return lo + int'($urandom() % (hi - lo + 1));
  endfunction
  function automatic bit chance(int percent);
    return int'($urandom() % 100) < percent;
  endfunction

  initial begin
    for (int i = 0; i < 16; i++) begin
      there[i] = 0;
      held[i] = 0;
      len[i] = 0;
    end
    repeat (3) @(negedge clk);
    rst_n = 1;
    for (int k = 0; k < 400000; k++) begin
      @(negedge clk);
      if (expect_read && rd_data !== want) $fatal(1, "read %h, want %h", rd_data, want);
      {wr_valid, db_valid, rd_en, free_valid, clear, expect_read} = '0;
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
      // windows that are held are read, and released in the end
      a = rnd(0, 3) * 5;
      if (held[a]) begin
        if (chance(50)) begin
          rd_en = 1;
          rd_page = db_page_t'(a);
          b = rnd(0, len[a] * 64 / int'(DataW) - 1);
          rd_row = ($clog2(Rows))'(b);
          for (int i = 0; i < int'(DataW) / 64; i++) want[64*i +: 64] = word[a][b * int'(DataW) / 64 + i];
          expect_read = 1;
          n_read++;
        end else if (chance(10)) begin
          free_valid = 4'd1 << ($urandom() % 4);
          free_page = {4{db_page_t'(a)}};
        end
      end
      clear = chance(1) && chance(30);
      #0.5;
      if (wr_valid) begin
        if (held[p]) begin
          n_dropped++;
          there[p] = 0;
        end else if (int'(wr_word) == 0 || (there[p] != 0 && there[p] == int'(wr_word))) begin
          word[p][wr_word] = wr_data;
          there[p] = int'(wr_word) + 1;
        end else begin
          there[p] = 0;
        end
      end
      if (db_valid) begin
        if (db_hit !== ((there[p] == 8 || there[p] == 16) && word[p][0][31:24] == db_qpn_low &&
                        word[p][1][47:32] == db_pi - 16'd1)) $fatal(1, "page %0d: hit %b with %0d words", p, db_hit, there[p]);
        if (db_hit && db_long !== (there[p] == 16)) $fatal(1, "long %b", db_long);
        if (db_hit) begin
          held[p] = 1;
          len[p] = there[p];
          n_hit++;
          n_long += int'(db_long);
        end else begin
          n_miss++;
        end
        there[p] = 0;
      end
      for (int i = 0; i < 4; i++) if (free_valid[i]) held[free_page[i]] = 0;
      if (clear) for (int i = 0; i < 16; i++) there[i] = 0;
    end
    if (n_hit < 1000 || n_long < 100 || n_miss < 1000 || n_read < 1000 || n_dropped < 1000)
      $fatal(1, "corners: %0d hits, %0d of 16 words, %0d misses, %0d reads, %0d words while held", n_hit, n_long, n_miss, n_read, n_dropped);
    $display("PASS %0d copies used, %0d not", n_hit, n_miss);
    $finish;
  end
endmodule
