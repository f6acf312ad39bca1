// SPDX-License-Identifier: Apache-2.0
//
// Two sources and a taker, all random: every word comes out once, each source's in order; one that was offered
// does not change until it is taken; when both always have one they alternate.

module stream_arb_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [1:0] in_valid = '0, offer, in_ready;
  cqe_ev_t [1:0] in_ev;
  logic [31:0] number0 = 0, number1 = 0;
  always_comb begin
    in_ev = '0;
    in_ev[0].byte_len = number0;
    in_ev[1].byte_len = number1;
    in_ev[1].qp = 8'd1;
  end
  logic out_valid, out_ready = 0;
  cqe_ev_t out_ev, shown;
  logic held = 0;

  stream_arb #(.Width($bits(cqe_ev_t))) dut (
    .clk_i(clk), .rst_ni(rst_n), .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in_ev),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(out_ev)
  );

  int sent[2] = '{0, 0};
  int got[2] = '{0, 0};
  int src, last_source = -1, streak = 0, phase = 0;

  always @(posedge clk) begin
    if (rst_n) begin
      if (out_valid != |in_valid) $fatal(1, "valid out %b, in %b", out_valid, in_valid);
      if (held && (!out_valid || out_ev !== shown)) $fatal(1, "an offered completion changed");
      if (out_valid && out_ready) begin
        src = int'(out_ev.qp[0]);
        if (int'(out_ev.byte_len) != got[src]) $fatal(1, "source %0d: got %0d, want %0d", src, out_ev.byte_len, got[src]);
        if (in_ready != (src == 1 ? 2'b10 : 2'b01)) $fatal(1, "taken from %0d, ready %b", src, in_ready);
        got[src] <= got[src] + 1;
        streak = in_valid == 2'b11 && src == last_source ? streak + 1 : 1;
        last_source = src;
        if (phase == 1 && in_valid == 2'b11 && streak > 2)
          $fatal(1, "source %0d took %0d turns in a row while the other waited", src, streak);
      end else if (in_ready & in_valid & {2{!out_ready}}) begin
        $fatal(1, "ready to a source while the writer is not");
      end
      held <= out_valid && !out_ready;
      shown <= out_ev;
    end
  end

  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < 20000; i++) begin
      @(negedge clk);
      phase = (i / 1000) % 2;
      offer = in_valid;
      for (int s = 0; s < 2; s++) begin
        // taken at the last edge, or none offered: the next one, perhaps
        if (offer[s] && got[s] == sent[s]) offer[s] = 0;
        if (!offer[s] && (phase == 1 || $urandom() % 3 == 0)) begin
          offer[s] = 1;
          if (s == 0) number0 = 32'(sent[0]);
          else number1 = 32'(sent[1]);
          sent[s] = sent[s] + 1;
        end
      end
      in_valid = offer;
      out_ready = $urandom() % 4 != 0;
    end
    if (got[0] < 4000 || got[1] < 4000) $fatal(1, "only %0d and %0d", got[0], got[1]);
    $display("PASS %0d and %0d completions", got[0], got[1]);
    $finish;
  end
endmodule
