// SPDX-License-Identifier: Apache-2.0
//
// reset_ctrl: waits for AXI and for the end of the frame on its way out, gives up on a stuck MAC, hides the rest of a frame
// that arrives across the reset, does nothing without a trigger. The width does not matter here.

module reset_ctrl_tb #(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic trigger = 0, axi_busy = 0, tx_valid = 0, tx_valid_o, tx_ready = 0, tx_last = 0;
  logic rx_valid = 0, rx_last = 0, rx_skip, stop, core_rst_n;
  reset_ctrl dut (
    .clk_i(clk), .rst_ni(rst_n), .trigger_i(trigger), .axi_busy_i(axi_busy),
    .tx_valid_i(tx_valid), .tx_valid_o, .tx_ready_i(tx_ready), .tx_last_i(tx_last),
    .rx_valid_i(rx_valid), .rx_last_i(rx_last), .rx_skip_o(rx_skip), .stop_o(stop), .core_rst_no(core_rst_n));

  int resets = 0, low = 0, min_low = 1000;
  logic was = 1;
  always @(posedge clk) if (rst_n) begin
    if (!core_rst_n) low++;
    if (was && !core_rst_n) resets++;
    if (!was && core_rst_n) begin
      if (low < min_low) min_low = low;
      low = 0;
    end
    was = core_rst_n;
    if (!core_rst_n && !stop && was) $fatal(1, "reset without stop");
  end

  task automatic pulse();
    trigger = 1;
    @(negedge clk);
    trigger = 0;
  endtask
  task automatic wait_run();
    int n;
    n = 0;
    while ((stop || !core_rst_n) && n < 200) begin
      @(negedge clk);
      n++;
    end
    if (stop || !core_rst_n) $fatal(1, "reset never ends");
  endtask

  initial begin
    repeat (4) @(negedge clk);
    if (core_rst_n) $fatal(1, "core runs in reset");
    rst_n = 1;
    @(negedge clk);
    wait_run();
    @(negedge clk);
    resets = 0;
    min_low = 1000;
    repeat (100) @(negedge clk);
    if (resets != 0 || stop) $fatal(1, "reset without trigger");
    // plain
    pulse();
    if (!stop) $fatal(1, "no stop");
    repeat (10) @(negedge clk);
    wait_run();
    if (resets != 1 || min_low < 8) $fatal(1, "%0d resets of %0d cycles", resets, min_low);
    // bursts outstanding
    axi_busy = 1;
    pulse();
    repeat (100000) @(negedge clk);
    if (resets != 1) $fatal(1, "reset with an open burst");
    axi_busy = 0;
    repeat (10) @(negedge clk);
    wait_run();
    if (resets != 2) $fatal(1, "no reset after the burst");
    // a frame of which the first beat is offered: stays offered, ends, and no other begins
    tx_valid = 1;
    @(negedge clk);
    pulse();
    repeat (20) begin
      @(negedge clk);
      if (!tx_valid_o) $fatal(1, "offered beat taken back");
    end
    if (resets != 2) $fatal(1, "reset inside a frame");
    tx_ready = 1;
    repeat (3) @(negedge clk);
    if (!tx_valid_o) $fatal(1, "frame cut");
    tx_last = 1;
    @(negedge clk);
    tx_last = 0;
    repeat (3) begin
      if (tx_valid_o) $fatal(1, "new frame while stopped");
      @(negedge clk);
    end
    tx_valid = 0;
    tx_ready = 0;
    repeat (10) @(negedge clk);
    wait_run();
    if (resets != 3) $fatal(1, "no reset after the frame");
    // a MAC that does not take the frame
    tx_valid = 1;
    @(negedge clk);
    pulse();
    repeat (60000) @(negedge clk);
    if (resets != 3) $fatal(1, "gave up too early");
    repeat (10000) @(negedge clk);
    tx_valid = 0;
    wait_run();
    if (resets != 4) $fatal(1, "stuck MAC blocks the reset");
    // a frame arrives across the reset: its rest is skipped, the next one is not
    rx_valid = 1;
    @(negedge clk);
    if (rx_skip) $fatal(1, "skip without reset");
    pulse();
    repeat (10) @(negedge clk);
    rx_valid = 0;
    wait_run();
    repeat (20) @(negedge clk);
    if (!rx_skip) $fatal(1, "rest of the frame not skipped");
    rx_valid = 1;
    @(negedge clk);
    if (!rx_skip) $fatal(1, "rest of the frame not skipped");
    rx_last = 1;
    #0.5 if (!rx_skip) $fatal(1, "last beat not skipped");
    @(negedge clk);
    rx_last = 0;
    if (rx_skip) $fatal(1, "next frame skipped");
    repeat (5) @(negedge clk);
    if (rx_skip) $fatal(1, "next frame skipped");
    if (resets != 5) $fatal(1, "%0d resets", resets);
    $display("PASS %0d resets", resets);
    $finish;
  end
endmodule
