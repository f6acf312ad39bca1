// SPDX-License-Identifier: Apache-2.0
//
// qp_names against an array: loads and reads of random slots, often of one that was just loaded.

module qp_names_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  localparam int P = 3;
  logic clk = 0, load = 0;
  always #1 clk = !clk;
  qp_idx_t load_qp = '0;
  qpn_t load_qpn = '0, model[NumQp];
  bit known[NumQp];
  qp_idx_t [P-1:0] qp = '0;
  qpn_t [P-1:0] qpn;
  int reads = 0;

  qp_names #(.NumPorts(P)) dut (.clk_i(clk), .load_i(load), .load_qp_i(load_qp), .load_qpn_i(load_qpn), .qp_i(qp), .qpn_o(qpn));

  initial begin
    for (int t = 0; t < 20000; t++) begin
      @(negedge clk);
      if (load) begin
        model[load_qp] = load_qpn;
        known[load_qp] = 1;
      end
      for (int p = 0; p < P; p++) if (known[qp[p]]) begin
        if (qpn[p] !== model[qp[p]]) $fatal(1, "slot %0d: %h, want %h", qp[p], qpn[p], model[qp[p]]);
        reads++;
      end
      load = 1'($urandom());
      load_qp = qp_idx_t'($urandom());
      load_qpn = qpn_t'($urandom());
      for (int p = 0; p < P; p++) qp[p] = $urandom() % 4 == 0 ? load_qp : qp_idx_t'($urandom());
    end
    if (reads < 30000) $fatal(1, "%0d reads", reads);
    $display("PASS %0d reads", reads);
    $finish;
  end
endmodule
