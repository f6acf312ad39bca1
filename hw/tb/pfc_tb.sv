// SPDX-License-Identifier: Apache-2.0
//
// pfc: random fill of the buffer and random pauses against a model of the marks, cycle by cycle; the times of the watchdog in
// both directions.

module pfc_tb #(
  parameter int unsigned DataW = 64
);
  localparam int unsigned ClkPs = DataW == 64 ? 8000 : 4000;
  localparam int PerUs = 1_000_000 / int'(ClkPs);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [7:0] enable = 8'h0f, pause = '0, pause_o, xoff, ev_rx, ev_tx;
  logic [15:0] xoff_u = 16'd100, xon_u = 16'd60, xoff_f = 16'd20, xon_f = 16'd10, units = '0, frames = '0;
  logic [23:0] wd = '0;
  logic full, held = 0, warn, storm, ignored, busy;
  logic [2:0] held_prio = '0;

  pfc #(.ClkPs(ClkPs)) dut (
    .clk_i(clk), .rst_ni(rst_n), .enable_i(enable), .xoff_units_i(xoff_u), .xon_units_i(xon_u), .xoff_frames_i(xoff_f),
    .xon_frames_i(xon_f), .watchdog_us_i(wd), .units_i(units), .frames_i(frames), .full_o(full), .held_i(held),
    .held_prio_i(held_prio), .pause_o(pause_o), .pause_i(pause), .xoff_o(xoff), .ev_rx_pause_o(ev_rx), .ev_tx_pause_o(ev_tx),
    .ev_storm_warning_o(warn), .ev_storm_error_o(storm), .ev_ignored_o(ignored), .busy_o(busy));

  bit level = 0;                  // of the model
  logic [7:0] was_xoff, was_pause, want;
  int rises = 0, falls = 0, n_warn = 0, n_storm = 0, n_ignored = 0, n_tx = 0, n_rx = 0, walk;

  always @(posedge clk) if (rst_n) begin
    n_warn += int'(warn);
    n_storm += int'(storm);
    n_ignored += int'(ignored);
    n_tx += $countones(ev_tx);
    n_rx += $countones(ev_rx);
  end

  // cycles until the condition holds, at most `most`
  task automatic wait_storm(input int most, output int took);
    took = 0;
    while (n_storm == 0 && n_ignored == 0 && took < most) begin
      @(negedge clk);
      took++;
    end
  endtask

  int took, sum_tx = 0, sum_rx = 0;
  initial begin
    repeat (3) @(negedge clk);
    rst_n = 1;
    @(negedge clk);
    // marks, masks, edges: without watchdog
    for (int k = 0; k < 40000; k++) begin
      was_xoff = xoff;
      was_pause = pause_o;
      walk = int'(units) + int'($urandom() % 21) - 10;
      units = 16'(walk < 0 ? 0 : walk > 140 ? 140 : walk);
      walk = int'(frames) + int'($urandom() % 7) - 3;
      frames = 16'(walk < 0 ? 0 : walk > 30 ? 30 : walk);
      if ($urandom() % 50 == 0) units = $urandom() % 2 == 0 ? 16'd0 : 16'd140;
      if ($urandom() % 50 == 0) frames = '0;
      if ($urandom() % 30 == 0) pause = 8'($urandom());
      if ($urandom() % 500 == 0) enable = 8'($urandom());
      if (units >= xoff_u || frames >= xoff_f) begin
        rises += int'(!level);
        level = 1;
      end else if (units <= xon_u && frames <= xon_f) begin
        falls += int'(level);
        level = 0;
      end
      @(negedge clk);
      want = level ? enable : 8'd0;
      if (xoff !== want) $fatal(1, "xoff %b, want %b: %0d units, %0d frames", xoff, want, units, frames);
      if (full !== (level && enable != 0)) $fatal(1, "full %b", full);
      if (pause_o !== (pause & enable)) $fatal(1, "pause %b, want %b", pause_o, pause & enable);
      if (ev_tx !== (want & ~was_xoff) || ev_rx !== (pause & enable & ~was_pause)) $fatal(1, "events %b %b", ev_tx, ev_rx);
      sum_tx += $countones(ev_tx);
      sum_rx += $countones(ev_rx);
    end
    if (rises < 100 || falls < 100 || sum_tx < 100 || sum_rx < 1000) $fatal(1, "%0d rises, %0d falls", rises, falls);
    if (n_warn + n_storm + n_ignored != 0) $fatal(1, "watchdog without a period");
    // the buffer stands full
    enable = 8'h81;
    pause = '0;
    frames = '0;
    units = '0;
    repeat (3) @(negedge clk);
    wd = 24'd20;
    units = 16'd100;
    took = 0;
    while (n_warn == 0 && took < 30 * PerUs) begin
      @(negedge clk);
      took++;
    end
    if (took < 10 * PerUs || took > 11 * PerUs + 5 || n_storm != 0) $fatal(1, "warning after %0d cycles", took);
    units = 16'd61;  // between the marks: goes on
    wait_storm(30 * PerUs, took);
    if (took < 9 * PerUs - 5 || took > 11 * PerUs + 5 || n_storm != 1) $fatal(1, "error after %0d cycles more", took);
    @(negedge clk);
    if (xoff != 0 || !full || busy) $fatal(1, "xoff %b full %b busy %b behind the storm", xoff, full, busy);
    units = 16'd140;
    repeat (50 * PerUs) @(negedge clk);
    if (n_storm != 1 || n_warn != 1 || xoff != 0) $fatal(1, "the storm comes again");
    units = 16'd60;
    repeat (2) @(negedge clk);
    units = 16'd100;
    repeat (2) @(negedge clk);
    if (xoff != 8'h81 || !busy) $fatal(1, "no XOFF behind the storm");
    // in between: never as long as the period
    for (int k = 0; k < 10; k++) begin
      units = 16'd100;
      repeat (15 * PerUs) @(negedge clk);
      units = 16'd0;
      repeat (2) @(negedge clk);
    end
    if (n_storm != 1) $fatal(1, "pauses add up");
    if (busy) $fatal(1, "busy without reason");
    // a frame is held
    n_storm = 0;
    pause = 8'h80;
    held = 1;
    held_prio = 3'd7;
    wait_storm(30 * PerUs, took);
    if (took < 20 * PerUs || took > 21 * PerUs + 5 || n_ignored != 1) $fatal(1, "ignored after %0d cycles", took);
    repeat (2) @(negedge clk);
    if (pause_o != 0 || busy) $fatal(1, "paused still");
    held = 0;
    repeat (10) @(negedge clk);
    pause = 8'h00;
    repeat (2) @(negedge clk);
    pause = 8'h80;
    repeat (2) @(negedge clk);
    if (pause_o != 8'h80) $fatal(1, "the next pause is ignored too");
    // held now and then
    n_ignored = 0;
    for (int k = 0; k < 10; k++) begin
      held = 1;
      repeat (15 * PerUs) @(negedge clk);
      held = 0;
      @(negedge clk);
    end
    if (n_ignored != 0) $fatal(1, "frames held add up");
    rst_n = 0;
    @(negedge clk);
    if (xoff != 0 || pause_o != 0) $fatal(1, "reset");
    $display("PASS %0d times XOFF, %0d pauses", rises, sum_rx);
    $finish;
  end
endmodule
