// SPDX-License-Identifier: Apache-2.0
//
// rnic_ram that is zero after reset: Banks RAMs side by side, by the low bits of the address, are cleared at the same time.
//
// Reset clears it in Depth / Banks cycles; ready_o: done. What is read or written before does not count.
// Read data one cycle after re_i, until the next read; a read in the cycle of a write to the same address gives the old word.

module zero_ram #(
  parameter int unsigned Width = 32,
  parameter int unsigned Depth = 65536,   // a power of two
  parameter int unsigned Banks = 16,      // likewise, at least 2, less than Depth
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             ready_o,
  input  logic             we_i,
  input  logic [AddrW-1:0] waddr_i,
  input  logic [Width-1:0] wdata_i,
  input  logic             re_i,
  input  logic [AddrW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o
);

  localparam int unsigned BankW = $clog2(Banks);
  localparam int unsigned RowW = AddrW - BankW;

  logic [RowW-1:0]               row_q;   // to be cleared
  logic                          done_q;
  logic [BankW-1:0]              bank_q;  // read last
  logic [Banks-1:0][Width-1:0]   rdata;
  assign ready_o = done_q;
  assign rdata_o = rdata[bank_q];

  for (genvar b = 0; b < int'(Banks); b++) begin : gen_bank
    rnic_ram #(.Width(Width), .Depth(Depth / Banks)) u_ram (
      .clk_i, .we_i(!ready_o || (we_i && waddr_i[BankW-1:0] == BankW'(b))),
      .waddr_i(ready_o ? waddr_i[AddrW-1:BankW] : row_q), .wdata_i(ready_o ? wdata_i : '0),
      .re_i(re_i && raddr_i[BankW-1:0] == BankW'(b)), .raddr_i(raddr_i[AddrW-1:BankW]), .rdata_o(rdata[b])
    );
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      row_q <= '0;
      done_q <= 1'b0;
    end else if (!done_q) begin
      row_q <= row_q + 1'b1;
      done_q <= row_q == '1;
    end
    if (re_i) bank_q <= raddr_i[BankW-1:0];
  end

endmodule
