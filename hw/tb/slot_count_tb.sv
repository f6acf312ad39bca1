// SPDX-License-Identifier: Apache-2.0
//
// slot_count against counters: all slots, up to 2^Width - 1 at a time, begin and end of the same slot in one cycle, reset in between.
// DataW does not matter.

module slot_count_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int Width = DataW == 64 ? 3 : 5;
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  logic begin_v = 0, end_v = 0, busy;
  qp_idx_t begin_qp = '0, end_qp = '0, probe_qp = '0;
  slot_count #(.Width(Width)) dut (
    .clk_i(clk), .rst_ni(rst_n), .begin_i(begin_v), .begin_qp_i(begin_qp), .end_i(end_v), .end_qp_i(end_qp), .probe_qp_i(probe_qp), .busy_o(busy));

  int count[NumQp], n_begin, n_full, n_same, n_empty, n_full_cnt, range;
  initial begin
    for (int r = 0; r < 3; r++) begin
      rst_n = 0;
      begin_v = 0;
      end_v = 0;
      for (int i = 0; i < int'(NumQp); i++) count[i] = 0;
      repeat (2) @(negedge clk);
      rst_n = 1;
      for (int n = 0; n < 200000; n++) begin
        range = (n / 10000) % 2 == 0 ? 4 : int'(NumQp);
        begin_qp = qp_idx_t'($urandom() % range);
        end_qp = $urandom() % 8 == 0 ? begin_qp : qp_idx_t'($urandom() % range);
        probe_qp = $urandom() % 4 == 0 ? begin_qp : qp_idx_t'($urandom() % range);
        begin_v = count[begin_qp] < (1 << Width) - 1 && $urandom() % 4 != 0;
        end_v = count[end_qp] != 0 && $urandom() % ((n / 3000) % 2 == 0 ? 2 : 5) != 0;
        @(posedge clk);
        if (busy != (count[probe_qp] != 0)) $fatal(1, "slot %0d: busy %b, %0d under way", probe_qp, busy, count[probe_qp]);
        n_empty += int'(count[probe_qp] == 0);
        n_full_cnt += int'(count[probe_qp] == (1 << Width) - 1);
        if (begin_v && end_v && begin_qp == end_qp) n_same++;
        if (begin_v) count[begin_qp]++;
        if (end_v) count[end_qp]--;
        n_begin += int'(begin_v);
        @(negedge clk);
      end
    end
    if (n_same < 1000 || n_empty < 10000 || n_full_cnt < 1000) $fatal(1, "%0d in one cycle, %0d empty, %0d full", n_same, n_empty, n_full_cnt);
    $display("PASS %0d begun, %0d begin and end in one cycle, %0d times all that fits", n_begin, n_same, n_full_cnt);
    $finish;
  end
endmodule
