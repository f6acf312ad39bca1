// SPDX-License-Identifier: Apache-2.0
//
// One rule of a protocol checker, inside a clocked block. ASSUME = 1 makes it an assumption of a proof (hw/formal);
// simulation asserts it either way. NAME is the label that a violation is reported under.

`ifndef RNIC_CHECK
`ifdef VERILATOR
`define RNIC_CHECK(ASSUME, NAME, COND) NAME: assert (COND) else $fatal(1, "%m");
`else
`define RNIC_CHECK(ASSUME, NAME, COND) \
  if (ASSUME) begin NAME``_env: assume (COND); end else begin NAME: assert (COND); end
`endif
`endif
