// SPDX-License-Identifier: Apache-2.0
//
// zero_ram against an array: random reads and writes, often of the same word in the same cycle, from random contents before each of several resets.

module zero_ram_tb #(
  parameter int unsigned DataW = 64
);
  localparam int Depth = DataW > 64 ? 256 : 32;
  localparam int Banks = DataW > 64 ? 16 : 2;
  localparam int AddrW = $clog2(Depth);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  logic ready, we = 0, re = 0;
  logic [AddrW-1:0] waddr = 0, raddr = 0;
  logic [12:0] wdata = 0, rdata, model[Depth], want;
  bit checked;
  int reads = 0, both = 0, cycles;

  zero_ram #(.Width(13), .Depth(Depth), .Banks(Banks)) dut (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(ready), .we_i(we), .waddr_i(waddr), .wdata_i(wdata), .re_i(re), .raddr_i(raddr), .rdata_o(rdata));

  initial begin
    for (int round = 0; round < 6; round++) begin
      rst_n = 0;
      repeat (3) @(negedge clk);
      rst_n = 1;
      cycles = 0;
      while (!ready) begin
        we = 1'($urandom());
        waddr = AddrW'($urandom());
        wdata = 13'($urandom());
        @(negedge clk);
        cycles++;
      end
      if (cycles != Depth / Banks) $fatal(1, "cleared in %0d cycles", cycles);
      for (int i = 0; i < Depth; i++) model[i] = '0;
      checked = 0;
      for (int t = 0; t < 4000; t++) begin
        if (checked && rdata !== want) $fatal(1, "read %h, want %h", rdata, want);
        we = 1'($urandom());
        re = 1'($urandom());
        waddr = AddrW'($urandom());
        raddr = $urandom() % 3 == 0 ? waddr : AddrW'($urandom());
        wdata = 13'($urandom());
        if (re) begin
          want = model[raddr];
          checked = 1;
          reads++;
          if (we && waddr == raddr) both++;
        end
        if (we) model[waddr] = wdata;
        @(negedge clk);
      end
    end
    if (both < 500) $fatal(1, "%0d reads of a word that is written", both);
    $display("PASS %0d reads, %0d in the cycle of a write", reads, both);
    $finish;
  end
endmodule
