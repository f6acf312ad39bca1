// SPDX-License-Identifier: Apache-2.0
//
// Address handles, on chip: how UD packets reach their destination (IBTA 11.2.2). Indexed by the number of the handle.
//
// Two read ports: one request per cycle per port, answer one cycle later, never refused. Command port: one read or write
// per cycle, never refused, answer (of a read) one cycle later; a write with valid = 0 takes the handle away: from then on
// checks (answers' `valid`) fail, while packets checked before still find its contents. After reset there is none.

module ah_table
  import rnic_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  // read ports
  input  logic    [1:0] req_valid_i,
  input  ah_idx_t [1:0] req_idx_i,
  output logic    [1:0] rsp_valid_o,
  output ah_t     [1:0] rsp_o,
  // command port
  input  logic          cmd_valid_i,
  input  logic          cmd_we_i,
  input  ah_idx_t       cmd_idx_i,
  input  ah_t           cmd_ah_i,
  output logic          cmd_rsp_valid_o,
  output ah_t           cmd_rsp_o
);

  localparam int unsigned AttrW = $bits(ah_t) - 1;  // without valid, which comes first

  logic [NumAh-1:0] valid_q;
  logic [AttrW-1:0] cmd_mem[NumAh];
  logic we, load;
  assign we = cmd_valid_i && cmd_we_i;
  assign load = we && cmd_ah_i.valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      rsp_valid_o <= '0;
      cmd_rsp_valid_o <= 1'b0;
    end else begin
      if (we) valid_q[cmd_idx_i] <= cmd_ah_i.valid;
      rsp_valid_o <= req_valid_i;
      cmd_rsp_valid_o <= cmd_valid_i;
    end
    if (load) cmd_mem[cmd_idx_i] <= cmd_ah_i[AttrW-1:0];
    if (cmd_valid_i) cmd_rsp_o <= {valid_q[cmd_idx_i], cmd_mem[cmd_idx_i]};
  end

  for (genvar p = 0; p < 2; p++) begin : gen_port
    logic [AttrW-1:0] attr_mem[NumAh];
    ah_t rsp_q;
    always_ff @(posedge clk_i) begin
      if (load) attr_mem[cmd_idx_i] <= cmd_ah_i[AttrW-1:0];
      if (req_valid_i[p]) rsp_q <= {valid_q[req_idx_i[p]], attr_mem[req_idx_i[p]]};
    end
    assign rsp_o[p] = rsp_q;
  end

endmodule
