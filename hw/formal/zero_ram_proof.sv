// SPDX-License-Identifier: Apache-2.0
//
// zero_ram, for any one address (watch_q) beside writes and reads of others, before it is ready too: ready after Depth / Banks cycles, then a
// read gives zero or what was written last before the cycle of the read, and keeps it until the next read.

module zero_ram_proof #(
  parameter int unsigned Width = 2,
  parameter int unsigned Depth = 8,
  parameter int unsigned Banks = 2,
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             we_i,
  input logic [AddrW-1:0] waddr_i,
  input logic [Width-1:0] wdata_i,
  input logic             re_i,
  input logic [AddrW-1:0] raddr_i,
  input logic [AddrW-1:0] watch_i
);

  logic ready;
  logic [Width-1:0] rdata;
  zero_ram #(.Width(Width), .Depth(Depth), .Banks(Banks)) dut (
    .clk_i, .rst_ni, .ready_o(ready), .we_i, .waddr_i, .wdata_i, .re_i, .raddr_i, .rdata_o(rdata));

  logic first_q = 1'b1;
  logic [AddrW-1:0] watch_q;         // chosen at the start
  logic [AddrW:0] cycles_q;          // since reset
  logic [Width-1:0] word_q, want_q;  // what the address holds, what was read
  logic read_q;                      // the last read was of it

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end else begin
      chosen_once: assume (watch_i == watch_q);
    end
    if (!rst_ni) begin
      cycles_q <= '0;
      word_q <= '0;
      read_q <= 1'b0;
    end else begin
      if (cycles_q != '1) cycles_q <= cycles_q + 1'b1;
      if (ready && we_i && waddr_i == watch_q) word_q <= wdata_i;
      if (re_i) begin
        read_q <= ready && raddr_i == watch_q;
        want_q <= word_q;
      end
      ready_in_time: assert (ready == (cycles_q >= (AddrW + 1)'(Depth / Banks)));
      if (read_q) begin
        read_right: assert (rdata == want_q);
      end
      zero: cover (ready && read_q && rdata == '0 && word_q != '0);
      written: cover (ready && read_q && !re_i && rdata == '1 && word_q == '1);
    end
  end

endmodule
