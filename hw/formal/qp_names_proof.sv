// SPDX-License-Identifier: Apache-2.0
//
// qp_names: at any port, any slot (watch_q) has the QPN that was loaded last, from the cycle behind the load on.

module qp_names_proof
  import rnic_pkg::*;
#(
  parameter int unsigned NumPorts = 2
) (
  input logic                   clk_i,
  input logic                   load_i,
  input qp_idx_t                load_qp_i,
  input qpn_t                   load_qpn_i,
  input qp_idx_t [NumPorts-1:0] qp_i,
  input qp_idx_t                watch_i
);

  qpn_t [NumPorts-1:0] qpn;
  qp_names #(.NumPorts(NumPorts)) dut (.clk_i, .load_i, .load_qp_i, .load_qpn_i, .qp_i, .qpn_o(qpn));

  logic first_q = 1'b1, loaded_q = 1'b0;
  qp_idx_t watch_q;                  // chosen at the start
  qpn_t qpn_q;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    if (!first_q) begin
      chosen_once: assume (watch_i == watch_q);
      if (load_i && load_qp_i == watch_q) begin
        loaded_q <= 1'b1;
        qpn_q <= load_qpn_i;
      end
    end
    reloaded: cover (loaded_q && load_i && load_qp_i == watch_q && load_qpn_i != qpn_q);
  end

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    always_ff @(posedge clk_i) begin
      if (loaded_q && qp_i[p] == watch_q) begin
        loaded_last: assert (qpn[p] == qpn_q);
      end
    end
  end

endmodule
