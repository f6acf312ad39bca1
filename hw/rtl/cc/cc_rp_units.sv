// SPDX-License-Identifier: Apache-2.0
//
// Parameters of DCQCN's reaction point from the units of a program (Mb/s, us, percent) to those of cc_rp: bytes per clock, clocks.
//
// One multiplier takes the parameters in turn: what is written is in force Num + 2 clocks later at most, settled_o says that all
// of it is. Rates are to the nearest 2^-16 byte per clock (30.5 kb/s at 250 MHz), at least 1 if they are not 0; times are to the nearest clock. Both
// stop at the largest value that fits. The constants have 20 fraction bits: a rate is off by 2e-8 of itself at most.
//
// Throughput: all parameters every Num clocks. Back-pressure: none.

module cc_rp_units
  import cc_rp_pkg::*;
#(
  parameter int unsigned ClkPs = 4000   // clock period in picoseconds
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  rp_regs_t   regs_i,
  output rp_params_t params_o,
  output logic       settled_o
);

  // per Mb/s: 10^6 / 8 * ClkPs / 10^12 * 2^16 units; per us: 10^6 / ClkPs clocks; both with 20 fraction bits
  localparam logic [31:0] RateStep = 32'((64'(ClkPs) * 64'd8192 * 64'd1048576 + 64'd500_000) / 64'd1_000_000);
  localparam logic [31:0] TimeStep = 32'((64'd1_000_000 * 64'd1048576 + 64'(ClkPs) / 2) / 64'(ClkPs));
  localparam logic [31:0] CutStep = 32'((64'd65536 * 64'd1048576 + 64'd50) / 64'd100);   // per percent
  localparam int unsigned Num = 10;

  rp_regs_t regs_q;
  logic [3:0] at_q, prod_at_q;
  logic [4:0] left_q;        // clocks until all is done
  logic prod_valid_q;
  logic [19:0] value;
  logic [31:0] factor;
  logic [51:0] prod_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [51:0] rounded;      // the fraction is dropped
  // verilator lint_on UNUSEDSIGNAL
  logic [31:0] whole;
  rate_t rate;
  span_t span;

  always_comb begin
    factor = RateStep;
    unique case (at_q)
      4'd0: value = regs_q.line_rate;
      4'd1: value = regs_q.rpg_max_rate;
      4'd2: value = regs_q.rpg_min_rate;
      4'd3: value = regs_q.rate_to_set_on_first_cnp;
      4'd4: value = regs_q.rpg_ai_rate;
      4'd5: value = regs_q.rpg_hai_rate;
      4'd6: begin
        value = 20'(regs_q.dce_tcp_rtt);
        factor = TimeStep;
      end
      4'd7: begin
        value = 20'(regs_q.rate_reduce_monitor_period);
        factor = TimeStep;
      end
      4'd8: begin
        value = 20'(regs_q.rpg_time_reset);
        factor = TimeStep;
      end
      default: begin
        value = regs_q.rpg_min_dec_fac > 7'd100 ? '0 : 20'd100 - 20'(regs_q.rpg_min_dec_fac);
        factor = CutStep;
      end
    endcase
  end

  assign rounded = prod_q + 52'h80000;
  assign whole = rounded[51:20];
  assign rate = whole[31:24] != '0 ? '1 : whole == '0 && prod_q != '0 ? rate_t'(1) : whole[23:0];
  assign span = whole[31:27] != '0 ? '1 : whole[26:0];
  assign settled_o = left_q == '0 && regs_q == regs_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      at_q <= '0;
      prod_valid_q <= 1'b0;
      left_q <= 5'(Num + 1);
    end else begin
      at_q <= at_q == 4'(Num - 1) ? '0 : at_q + 1'b1;
      prod_valid_q <= 1'b1;
      if (regs_q != regs_i) left_q <= 5'(Num + 1);
      else if (left_q != '0) left_q <= left_q - 1'b1;
    end
    regs_q <= regs_i;
    prod_at_q <= at_q;
    prod_q <= 52'(value) * 52'(factor);
    if (prod_valid_q) begin
      unique case (prod_at_q)
        4'd0: params_o.line_rate <= rate;
        4'd1: params_o.max_rate <= rate;
        4'd2: params_o.min_rate <= rate;
        4'd3: params_o.first_rate <= rate;
        4'd4: params_o.ai_rate <= rate;
        4'd5: params_o.hai_rate <= rate;
        4'd6: params_o.alpha_period <= span;
        4'd7: params_o.monitor_period <= span;
        4'd8: params_o.time_reset <= span;
        default: params_o.max_cut <= whole[16:0];
      endcase
    end
    params_o.enable <= regs_q.enable;
    params_o.windowed <= regs_q.windowed;
    params_o.hai_by_stage <= regs_q.hai_by_stage;
    params_o.clamp_tgt <= regs_q.clamp_tgt_rate;
    params_o.clamp_tgt_ati <= regs_q.clamp_tgt_rate_after_time_inc;
    params_o.gd <= regs_q.rpg_gd < 5'd10 ? '0 : regs_q.rpg_gd > 5'd25 ? 4'd15 : 4'(regs_q.rpg_gd - 5'd10);
    params_o.threshold <= regs_q.rpg_threshold;
    params_o.resolution <= regs_q.resolution;
    // g of 1 does not fit
    params_o.gain <= regs_q.dce_tcp_g == '0 ? '1 : {10'd0 - regs_q.dce_tcp_g, 6'd0};
    params_o.initial_alpha <= regs_q.initial_alpha_value == '1 && !regs_q.windowed ? 17'h10000 : {1'b0, regs_q.initial_alpha_value, 6'd0};
    params_o.byte_reset <= 32'({regs_q.rpg_byte_reset, 6'd0});
    params_o.burst <= regs_q.burst;
  end

endmodule
