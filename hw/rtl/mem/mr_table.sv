// SPDX-License-Identifier: Apache-2.0
//
// Memory regions, on chip: key variant, PD, rights, address range. Indexed by bits 31:8 of a key.
//
// Read ports: one request per cycle per port, answer one cycle later, never refused. Command port:
// one read or write per cycle, never refused, answer (of a read) one cycle later; a write with
// cmd_mr_i.valid = 0 takes the region away. After reset no region is valid. The check itself is
// rnic_pkg::mr_check (IBTA 10.6.3, 9.7.4.1.4).

module mr_table
  import rnic_pkg::*;
#(
  parameter int unsigned NumPorts = 2
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  // read ports
  input  logic    [NumPorts-1:0]  req_valid_i,
  output logic    [NumPorts-1:0]  req_ready_o,
  input  mr_idx_t [NumPorts-1:0]  req_idx_i,
  output logic    [NumPorts-1:0]  rsp_valid_o,
  output mr_t                     rsp_o[NumPorts],
  // command port
  input  logic                    cmd_valid_i,
  input  logic                    cmd_we_i,
  input  mr_idx_t                 cmd_idx_i,
  input  mr_t                     cmd_mr_i,
  output logic                    cmd_rsp_valid_o,
  output mr_t                     cmd_rsp_o
);

  localparam int unsigned AttrW = $bits(mr_t) - 1;  // without valid, which comes first
  localparam int unsigned GrpW = 32;
  localparam int unsigned NumGrp = NumMr / GrpW;
  localparam int unsigned GrpIdxW = $clog2(NumGrp);

  logic [GrpW-1:0] valid_q[NumGrp];

  // Functions look at part of their arguments.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [GrpIdxW-1:0] grp(input mr_idx_t idx);
    return idx[MrIdxW-1-:GrpIdxW];
  endfunction
  function automatic logic [4:0] bit_of(input mr_idx_t idx);
    return idx[4:0];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic we;
  logic [AttrW-1:0] wdata;
  assign we = cmd_valid_i && cmd_we_i;
  assign wdata = cmd_mr_i[AttrW-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < int'(NumGrp); i++) valid_q[i] <= '0;
    end else if (we) begin
      valid_q[grp(cmd_idx_i)][bit_of(cmd_idx_i)] <= cmd_mr_i.valid;
    end
  end

  assign req_ready_o = '1;
  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    logic [AttrW-1:0] attr_mem[NumMr];
    mr_t rsp_q;
    always_ff @(posedge clk_i) begin
      if (we) attr_mem[cmd_idx_i] <= wdata;
      if (req_valid_i[p]) begin
        rsp_q[AttrW-1:0] <= attr_mem[req_idx_i[p]];
        rsp_q.valid <= valid_q[grp(req_idx_i[p])][bit_of(req_idx_i[p])];
      end
    end
    assign rsp_o[p] = rsp_q;
  end

  logic [AttrW-1:0] cmd_mem[NumMr];
  always_ff @(posedge clk_i) begin
    if (we) cmd_mem[cmd_idx_i] <= wdata;
    if (cmd_valid_i) begin
      cmd_rsp_o[AttrW-1:0] <= cmd_mem[cmd_idx_i];
      cmd_rsp_o.valid <= valid_q[grp(cmd_idx_i)][bit_of(cmd_idx_i)];
    end
    if (!rst_ni) begin
      rsp_valid_o <= '0;
      cmd_rsp_valid_o <= 1'b0;
    end else begin
      rsp_valid_o <= req_valid_i;
      cmd_rsp_valid_o <= cmd_valid_i;
    end
  end

endmodule
