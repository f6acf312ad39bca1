// SPDX-License-Identifier: Apache-2.0
//
// mr_table against a model: random writes, invalidations and reads on all ports; reset invalidates. The width does not
// matter here.

module mr_table_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int Ports = 2;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [Ports-1:0] req_valid = '0, req_ready, rsp_valid;
  mr_idx_t [Ports-1:0] req_idx = '0;
  mr_t rsp[Ports];
  logic cmd_valid = 0, cmd_we = 0, cmd_rsp_valid;
  mr_idx_t cmd_idx = '0;
  mr_t cmd_mr = '0, cmd_rsp;

  mr_table #(.NumPorts(Ports)) dut (
    .clk_i(clk), .rst_ni(rst_n), .req_valid_i(req_valid), .req_ready_o(req_ready), .req_idx_i(req_idx),
    .rsp_valid_o(rsp_valid), .rsp_o(rsp), .cmd_valid_i(cmd_valid), .cmd_we_i(cmd_we), .cmd_idx_i(cmd_idx),
    .cmd_mr_i(cmd_mr), .cmd_rsp_valid_o(cmd_rsp_valid), .cmd_rsp_o(cmd_rsp));

  mr_t model[1024];
  logic written[1024];
  logic [Ports-1:0] want_valid = '0, want_known;
  mr_t want[Ports], cmd_want_mr;
  logic cmd_want = 0, cmd_known;
  int reads = 0, valids = 0;

  always @(posedge clk) if (rst_n) begin
    if (rsp_valid != want_valid || req_ready != '1) $fatal(1, "answers %b, want %b", rsp_valid, want_valid);
    for (int p = 0; p < Ports; p++) if (rsp_valid[p]) begin
      reads++;
      if (rsp[p].valid) valids++;
      if (want_known[p] ? rsp[p] != want[p] : rsp[p].valid) $fatal(1, "port %0d: %h, want %h", p, rsp[p], want[p]);
    end
    if (cmd_rsp_valid != cmd_want) $fatal(1, "command answer");
    if (cmd_want && (cmd_known ? cmd_rsp != cmd_want_mr : cmd_rsp.valid)) $fatal(1, "command port");
    want_valid = req_valid;
    for (int p = 0; p < Ports; p++) begin
      want[p] = model[req_idx[p]];
      want_known[p] = written[req_idx[p]];
    end
    cmd_want = cmd_valid;
    cmd_want_mr = model[cmd_idx];
    cmd_known = written[cmd_idx];
    if (cmd_valid && cmd_we) begin
      model[cmd_idx] = cmd_mr;
      written[cmd_idx] = 1;
    end
  end

  int span;
  initial begin
    for (int i = 0; i < 1024; i++) written[i] = 0;
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int n = 0; n < 60000; n++) begin
      @(negedge clk);
      if (n == 40000) begin
        rst_n = 0;
        req_valid = '0;
        cmd_valid = 0;
        @(negedge clk);
        rst_n = 1;
        want_valid = '0;
        cmd_want = 0;
        for (int i = 0; i < 1024; i++) begin
          written[i] = 0;
        end
      end
      span = (n / 3000) % 2 == 0 ? 1024 : 4;
      for (int p = 0; p < Ports; p++) begin
        req_valid[p] = ($urandom() % 4) != 0;
        req_idx[p] = 10'(int'($urandom() & 32'hffff) % span);
      end
      cmd_valid = ($urandom() % 2) == 0;
      cmd_we = ($urandom() % 2) == 0;
      cmd_idx = 10'(int'($urandom() & 32'hffff) % span);
      cmd_mr = mr_t'({$urandom(), $urandom(), $urandom(), $urandom(), $urandom(), $urandom(), $urandom(), $urandom()});
    end
    if (reads < 10000 || valids < 1000) $fatal(1, "%0d reads, %0d valid", reads, valids);
    $display("PASS %0d reads", reads);
    $finish;
  end
endmodule
