// SPDX-License-Identifier: Apache-2.0
//
// Random commands and reads of all handles against a shadow copy: answers one cycle later on both ports and the command port, never
// refused; a handle that was taken away answers valid = 0 and still its contents. DataW does not matter.

module ah_table_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [1:0] req_valid = '0, rsp_valid;
  ah_idx_t [1:0] req_idx = '0;
  ah_t [1:0] rsp;
  logic cmd_valid = 0, cmd_we = 0, cmd_rsp_valid;
  ah_idx_t cmd_idx = '0;
  ah_t cmd_ah = '0, cmd_rsp;

  ah_table dut (
    .clk_i(clk), .rst_ni(rst_n), .req_valid_i(req_valid), .req_idx_i(req_idx), .rsp_valid_o(rsp_valid), .rsp_o(rsp),
    .cmd_valid_i(cmd_valid), .cmd_we_i(cmd_we), .cmd_idx_i(cmd_idx), .cmd_ah_i(cmd_ah),
    .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_o(cmd_rsp)
  );

  ah_t shadow[NumAh], want[2], want_cmd;
  bit known[NumAh], want_known[2], cmd_known;
  logic [1:0] asked = '0;
  bit cmd_asked = 0;
  int reads = 0, writes = 0, gone = 0, cycles = 40000;

  task automatic check(ah_t got, ah_t w, bit k, string who);
    if (got.valid !== w.valid) $fatal(1, "%s: valid %b, want %b", who, got.valid, w.valid);
    if (k && got !== w) $fatal(1, "%s: %p, want %p", who, got, w);
    reads++;
    if (k && !w.valid) gone++;
  endtask

  always @(posedge clk) if (rst_n) begin
    if (rsp_valid !== asked || cmd_rsp_valid !== cmd_asked) $fatal(1, "answers %b %b", rsp_valid, cmd_rsp_valid);
    for (int p = 0; p < 2; p++) if (asked[p]) check(rsp[p], want[p], want_known[p], "port");
    if (cmd_asked) check(cmd_rsp, want_cmd, cmd_known, "command");
    asked = req_valid;
    cmd_asked = cmd_valid;
    for (int p = 0; p < 2; p++) begin
      want[p] = shadow[req_idx[p]];
      want_known[p] = known[req_idx[p]];
    end
    want_cmd = shadow[cmd_idx];
    cmd_known = known[cmd_idx];
    if (cmd_valid && cmd_we) begin
      if (cmd_ah.valid) shadow[cmd_idx] = cmd_ah;
      if (cmd_ah.valid) known[cmd_idx] = 1;
      shadow[cmd_idx].valid = cmd_ah.valid;
      writes++;
    end
  end

  initial begin
    for (int i = 0; i < int'(NumAh); i++) shadow[i] = '0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < cycles; i++) begin
      @(negedge clk);
      req_valid = 2'($urandom());
      // few handles at a time, so that they meet; all of them in the end
      for (int p = 0; p < 2; p++) req_idx[p] = ah_idx_t'((i / 400) * 11 + int'($urandom() % 12));
      cmd_valid = $urandom() % 2 == 0;
      cmd_we = $urandom() % 2 == 0;
      cmd_idx = ah_idx_t'((i / 400) * 11 + int'($urandom() % 12));
      for (int k = 0; k < $bits(ah_t); k += 32) cmd_ah = $bits(ah_t)'({cmd_ah, $urandom()});
      if (i == cycles / 2) begin
        cmd_valid = 0;
        req_valid = '0;
        rst_n = 0;
        @(negedge clk);
        for (int k = 0; k < int'(NumAh); k++) shadow[k].valid = 0;
        asked = '0;
        cmd_asked = 0;
        rst_n = 1;
      end
    end
    if (reads < 20000 || writes < 5000 || gone < 500) $fatal(1, "%0d reads, %0d writes, %0d of what is gone", reads, writes, gone);
    $display("PASS %0d reads, %0d writes", reads, writes);
    $finish;
  end
endmodule
