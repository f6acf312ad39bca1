// SPDX-License-Identifier: Apache-2.0
//
// QPNs of slots, for what leaves the modules that know a QP by its slot: CQEs, events, turns (docs/qp-cache.md).
//
// A slot has the QPN of the context that was loaded last. Reads are of this cycle; who reads holds the slot busy.

module qp_names
  import rnic_pkg::*;
#(
  parameter int unsigned NumPorts = 4
) (
  input  logic                   clk_i,
  input  logic                   load_i,
  input  qp_idx_t                load_qp_i,
  input  qpn_t                   load_qpn_i,
  input  qp_idx_t [NumPorts-1:0] qp_i,
  output qpn_t    [NumPorts-1:0] qpn_o
);

  qpn_t mem[NumQp];
  always_ff @(posedge clk_i) if (load_i) mem[load_qp_i] <= load_qpn_i;
  always_comb for (int p = 0; p < int'(NumPorts); p++) qpn_o[p] = mem[qp_i[p]];

endmodule
