// SPDX-License-Identifier: Apache-2.0
//
// cc_rp_units at 250 and 322 MHz: NVIDIA's defaults and the paper's values by hand, random ones against real numbers, the ends of every range; how long a change takes.

module cc_rp_units_tb #(
  parameter int unsigned DataW = 64
);
  import cc_rp_pkg::*;
  localparam int ClkPs = DataW == 64 ? 4000 : 3103;
  logic clk = 0, rst_n = 0, settled;
  always #1 clk = !clk;
  rp_regs_t r = '0;
  rp_params_t p, old;
  cc_rp_units #(.ClkPs(ClkPs)) dut (.clk_i(clk), .rst_ni(rst_n), .regs_i(r), .params_o(p), .settled_o(settled));

  int n_check = 0, n_full = 0, n_slow = 0;
  task automatic settle();
    int n;
    n = 0;
    do begin
      @(negedge clk);
      n++;
    end while (!settled);
    if (n > 13) $fatal(1, "settled after %0d clocks", n);
    if (n > n_slow) n_slow = n;
    old = p;
    repeat (30) begin
      @(negedge clk);
      if (p != old) $fatal(1, "settled, and changes");
    end
  endtask
  // to the nearest, with what the constant costs
  task automatic near(input string what, input longint got, input real want, input longint most, input bit not_zero);
    real off;
    n_check++;
    if (want > real'(most)) begin
      n_full++;
      if (got != most) $fatal(1, "%s: %0d, want the largest, %0d", what, got, most);
    end else if (not_zero && want > 0.0 && want < 0.5) begin
      if (got != 1) $fatal(1, "%s: %0d for %f", what, got, want);
    end else begin
      off = real'(got) - want;
      if (off < 0.0) off = -off;
      if (off > 0.5 + want * 2.0e-8) $fatal(1, "%s: %0d, want %f", what, got, want);
    end
  endtask
  task automatic check();
    settle();
    near("line", longint'(p.line_rate), real'(r.line_rate) * real'(ClkPs) * 0.008192, 24'hffffff, 1);
    near("max", longint'(p.max_rate), real'(r.rpg_max_rate) * real'(ClkPs) * 0.008192, 24'hffffff, 1);
    near("min", longint'(p.min_rate), real'(r.rpg_min_rate) * real'(ClkPs) * 0.008192, 24'hffffff, 1);
    near("first", longint'(p.first_rate), real'(r.rate_to_set_on_first_cnp) * real'(ClkPs) * 0.008192, 24'hffffff, 1);
    near("ai", longint'(p.ai_rate), real'(r.rpg_ai_rate) * real'(ClkPs) * 0.008192, 24'hffffff, 1);
    near("hai", longint'(p.hai_rate), real'(r.rpg_hai_rate) * real'(ClkPs) * 0.008192, 24'hffffff, 1);
    near("alpha period", longint'(p.alpha_period), real'(r.dce_tcp_rtt) * 1.0e6 / real'(ClkPs), 27'h7ffffff, 0);
    near("monitor period", longint'(p.monitor_period), real'(r.rate_reduce_monitor_period) * 1.0e6 / real'(ClkPs), 27'h7ffffff, 0);
    near("time reset", longint'(p.time_reset), real'(r.rpg_time_reset) * 1.0e6 / real'(ClkPs), 27'h7ffffff, 0);
    near("largest cut", longint'(p.max_cut), r.rpg_min_dec_fac > 100 ? 0.0 : real'(100 - int'(r.rpg_min_dec_fac)) * 655.36, 65536, 0);
    if (int'(p.gain) != (r.dce_tcp_g == 0 ? 65535 : (1024 - int'(r.dce_tcp_g)) * 64)) $fatal(1, "gain %0d of %0d", p.gain, r.dce_tcp_g);
    if (int'(p.initial_alpha) != (r.initial_alpha_value == 1023 && !r.windowed ? 65536 : int'(r.initial_alpha_value) * 64)) $fatal(1, "initial alpha %0d", p.initial_alpha);
    if (longint'(p.byte_reset) != longint'(r.rpg_byte_reset) * 64) $fatal(1, "byte reset %0d", p.byte_reset);
    if (int'(p.gd) != (r.rpg_gd < 10 ? 0 : r.rpg_gd > 25 ? 15 : int'(r.rpg_gd) - 10)) $fatal(1, "gd %0d of %0d", p.gd, r.rpg_gd);
    if ({p.enable, p.windowed, p.hai_by_stage, p.clamp_tgt, p.clamp_tgt_ati} !=
        {r.enable, r.windowed, r.hai_by_stage, r.clamp_tgt_rate, r.clamp_tgt_rate_after_time_inc}) $fatal(1, "flags");
    if (p.threshold != r.rpg_threshold || p.resolution != r.resolution || p.burst != r.burst) $fatal(1, "threshold, resolution, burst");
  endtask

  logic [$bits(rp_regs_t)-1:0] x;
  initial begin
    repeat (3) @(negedge clk);
    rst_n = 1;
    // NVIDIA's defaults
    r.enable = 1;
    r.windowed = 1;
    r.clamp_tgt_rate_after_time_inc = 1;
    r.rpg_gd = 11;
    r.rpg_threshold = 1;
    r.line_rate = 100000;
    r.rpg_min_rate = 1;
    r.rpg_ai_rate = 5;
    r.rpg_hai_rate = 50;
    r.dce_tcp_g = 1019;
    r.initial_alpha_value = 1023;
    r.rpg_min_dec_fac = 50;
    r.dce_tcp_rtt = 1;
    r.rate_reduce_monitor_period = 4;
    r.rpg_time_reset = 300;
    r.rpg_byte_reset = 32767;
    r.resolution = 64;
    r.burst = 4096;
    check();
    if (ClkPs == 4000 && (p.line_rate != 3276800 || p.min_rate != 33 || p.ai_rate != 164 || p.hai_rate != 1638 || p.gain != 320 ||
        p.initial_alpha != 65472 || p.max_cut != 32768 || p.alpha_period != 250 || p.monitor_period != 1000 || p.time_reset != 75000 ||
        p.byte_reset != 2097088 || p.gd != 1)) $fatal(1, "NVIDIA's defaults");
    // the paper's values at 40 Gb/s
    r.windowed = 0;
    r.line_rate = 40000;
    r.rpg_ai_rate = 40;
    r.rpg_hai_rate = 200;
    r.dce_tcp_g = 1020;
    r.dce_tcp_rtt = 55;
    r.rpg_time_reset = 55;
    r.rpg_threshold = 5;
    r.rpg_byte_reset = 156250;
    check();
    if (ClkPs == 4000 && (p.line_rate != 1310720 || p.ai_rate != 1311 || p.hai_rate != 6554 || p.gain != 256 || p.initial_alpha != 65536 ||
        p.alpha_period != 13750 || p.time_reset != 13750 || p.byte_reset != 10_000_000)) $fatal(1, "the paper's values");
    for (int n = 0; n < 2000; n++) begin
      for (int i = 0; i < $bits(rp_regs_t); i++) x[i] = 1'($urandom());
      if (n % 4 == 0) x = n % 8 == 0 ? '1 : '0;
      r = x;
      if (n % 4 == 1) begin   // small ones
        r.line_rate = r.line_rate % 100;
        r.rpg_min_rate = r.rpg_min_rate % 4;
        r.rpg_ai_rate = r.rpg_ai_rate % 4;
        r.rpg_time_reset = r.rpg_time_reset % 20;
      end
      check();
      // two changes close to each other
      if (n % 5 == 0) begin
        r.rpg_ai_rate = r.rpg_ai_rate ^ 20'h55;
        repeat ($urandom() % 14) @(negedge clk);
        r.rpg_time_reset = r.rpg_time_reset ^ 17'h33;
        check();
      end
    end
    if (n_full == 0) $fatal(1, "nothing at its largest value");
    $display("PASS %0d values, %0d at the largest, settled after %0d clocks at most", n_check, n_full, n_slow);
    $finish;
  end
endmodule
