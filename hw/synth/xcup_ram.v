// SPDX-License-Identifier: Apache-2.0
// Yosys offers single-port LUT memories of 16 address bits for UltraScale+ (lutrams_xcu.txt), but can only make those of 9
// (RAM512X1S, lutrams_xc5v_map.v): a memory of 257 to 512 words stops it. Its upper address bits are constant.
(* techmap_celltype = "$__XILINX_LUTRAM_SP_" *)
module xcup_ram512 (...);

parameter INIT = 0;
parameter OPTION_ABITS = 16;
parameter WIDTH = 1;
parameter BITS_USED = 1;
parameter _TECHMAP_CONSTMSK_PORT_RW_ADDR_ = 0;

output [WIDTH-1:0] PORT_RW_RD_DATA;
input [WIDTH-1:0] PORT_RW_WR_DATA;
input [OPTION_ABITS-1:0] PORT_RW_ADDR;
input PORT_RW_WR_EN;
input PORT_RW_CLK;

wire _TECHMAP_FAIL_ = OPTION_ABITS != 16 || (_TECHMAP_CONSTMSK_PORT_RW_ADDR_ >> 9) != 7'h7f;

RAM512X1S ram (
  .A(PORT_RW_ADDR[8:0]), .D(PORT_RW_WR_DATA[0]), .O(PORT_RW_RD_DATA[0]), .WE(PORT_RW_WR_EN), .WCLK(PORT_RW_CLK)
);

endmodule
