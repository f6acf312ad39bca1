// SPDX-License-Identifier: Apache-2.0
//
// Links that go up and down at random, slowly and in every cycle, and a taker that waits at random: events tell the other state in turn,
// the first one the opposite of that at reset; one that was offered does not change; with a taker that never waits every change
// that lasts a cycle is told 2 cycles later; when all is quiet the state told last is that of the link. The width does not matter.

module port_events_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic link = 0, up, valid, ready = 0;
  async_ev_t ev, held_ev = '0;
  port_events dut (.clk_i(clk), .rst_ni(rst_n), .link_up_i(link), .link_up_o(up), .event_valid_o(valid), .event_ready_i(ready), .event_o(ev));

  logic held = 0, told = 0;
  logic [2:0] was = '0;        // the link in the cycles before
  int events = 0, n_prompt = 0, n_merged = 0, mode = 0;
  always @(posedge clk) begin
    if (up != was[0]) $fatal(1, "link_up_o %b, want %b", up, was[0]);
    if (rst_n) begin
      if (held && (!valid || ev !== held_ev)) $fatal(1, "an offered event changed");
      // a taker that never waits learns of each change, 2 cycles later
      if (mode == 0 && valid != (was[1] != was[2])) $fatal(1, "event %b, link %b", valid, was);
      if (mode == 0 && valid) n_prompt++;
      if (valid && !held) begin
        if (ev.ev_type != rnic_regs_pkg::EqeTypePort || ev.object != 32'd1) $fatal(1, "event %p", ev);
        if (ev.detail != 32'(!told)) $fatal(1, "told %0d after %0d", ev.detail, told);
      end
      if (held && was[1] != was[2]) n_merged++;
      if (valid && ready) begin
        told = ev.detail[0];
        events++;
      end
      held = valid && !ready;
      held_ev = ev;
    end else begin
      if (valid && was[2] !== 1'bx && held) $fatal(1, "event in reset");
      told = link;
      held = 0;
    end
    was = {was[1:0], link};
  end

  initial begin
    for (int round = 0; round < 40; round++) begin
      // reset with the link up or down is no event
      mode = round % 4;
      @(negedge clk);
      link = round[2];
      repeat (4) @(negedge clk);
      rst_n = 0;
      ready = mode == 0;
      repeat (4) @(negedge clk);
      rst_n = 1;
      repeat (4) @(negedge clk);
      if (valid) $fatal(1, "an event without a change");
      for (int i = 0; i < 3000; i++) begin
        if ($urandom() % (mode == 3 ? 20 : 2) == 0) link = !link;
        ready = mode == 0 || $urandom() % (mode == 1 ? 2 : 8) == 0;
        @(negedge clk);
      end
      ready = 1;
      repeat (10) @(negedge clk);
      if (valid || told != link) $fatal(1, "told %b at the end, the link is %b", told, link);
    end
    if (events < 5000 || n_prompt < 2000 || n_merged < 2000) $fatal(1, "%0d events, %0d prompt, %0d merged", events, n_prompt, n_merged);
    $display("PASS %0d events, %0d prompt, %0d changes while one waited", events, n_prompt, n_merged);
    $finish;
  end
endmodule
