// SPDX-License-Identifier: Apache-2.0
//
// reset_ctrl: the reset begins only when AXI owes nothing and no frame is half sent (or the MAC is stuck), lasts as long as it
// should, no frame begins while stopped, none is cut, and of a frame that arrives across the reset nothing is looked at.

module reset_ctrl_proof #(
  parameter int unsigned ResetCycles = 3,
  parameter int unsigned StuckCycles = 16      // as the design is cut down for the proof
) (
  input logic clk_i,
  input logic rst_ni,
  input logic trigger_i,
  input logic axi_busy_i,
  input logic tx_valid_i,
  input logic tx_ready_i,
  input logic tx_last_i,
  input logic rx_valid_i,
  input logic rx_last_i
);

  logic tx_valid, rx_skip, stop, core_rst_n;
  reset_ctrl #(.ResetCycles(ResetCycles)) dut (
    .clk_i, .rst_ni, .trigger_i, .axi_busy_i, .tx_valid_i, .tx_valid_o(tx_valid), .tx_ready_i, .tx_last_i,
    .rx_valid_i, .rx_last_i, .rx_skip_o(rx_skip), .stop_o(stop), .core_rst_no(core_rst_n));

  // the egress: whole frames without gaps, nothing in reset
  axis_check #(.DataW(8), .NoGaps(1'b1), .MaxBytes(32'hffffffff), .Assume(1'b1)) u_in (
    .clk_i, .rst_ni(rst_ni && core_rst_n), .valid_i(tx_valid_i), .ready_i(tx_ready_i), .data_i(8'h00), .keep_i(1'b1),
    .last_i(tx_last_i), .user_i(1'b0));

  logic first_q = 1'b1, core_q, open_q, was_open_q, busy_q, busy_qq, wait_q, stop_q, mid_q, timed_q;   // timed_q: in a reset that was asked for
  logic [7:0] stop_cycles_q, low_q;
  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    core_q <= rst_ni && core_rst_n;
    busy_q <= axi_busy_i;
    busy_qq <= busy_q;
    stop_q <= rst_ni && stop;
    was_open_q <= open_q;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (!core_rst_n) begin
      egress_reset: assume (!tx_valid_i);
    end
    if (!rst_ni) begin
      open_q <= 1'b0;
      wait_q <= 1'b0;
      mid_q <= 1'b0;
      timed_q <= 1'b0;
      stop_cycles_q <= '0;
      low_q <= '0;
    end else begin
      open_q <= core_rst_n && (tx_valid ? !(tx_ready_i && tx_last_i) : open_q);
      wait_q <= core_rst_n && tx_valid && !tx_ready_i;
      stop_cycles_q <= !stop ? '0 : stop_cycles_q == 8'hff ? 8'hff : stop_cycles_q + 1'b1;
      timed_q <= !core_rst_n && (timed_q || core_q);
      low_q <= core_rst_n ? '0 : low_q + 1'b1;
      // a frame is coming in of which a beat arrived in reset
      if (rx_valid_i) mid_q <= !rx_last_i && (mid_q || !core_rst_n);
      if (core_q && core_rst_n) begin
        frames_not_cut: assert (!wait_q || tx_valid);
      end
      if (stop_q && !open_q) begin
        no_frame_begins: assert (!tx_valid);
      end
      if (core_q && !core_rst_n) begin
        axi_drained: assert (!busy_qq);
        stopped_before: assert (32'(stop_cycles_q) >= 3);
        frame_finished: assert (!was_open_q || 32'(stop_cycles_q) > StuckCycles);
      end
      if (timed_q) begin
        reset_length: assert (core_rst_n ? 32'(low_q) >= ResetCycles : 32'(low_q) < ResetCycles + 2);
      end
      if (core_rst_n && rx_valid_i) begin
        rx_rest_skipped: assert (!mid_q || rx_skip);
      end
      resets: cover (core_rst_n && low_q != '0);
      waits_for_frame: cover (stop && open_q && 32'(stop_cycles_q) > 6);
      gives_up: cover (!core_rst_n && was_open_q && core_q);
      skips: cover (core_rst_n && rx_valid_i && rx_skip);
      runs_again: cover (core_rst_n && tx_valid && stop_cycles_q == '0 && low_q == '0 && core_q && open_q);
    end
  end

endmodule
