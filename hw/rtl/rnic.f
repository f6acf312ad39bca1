// SPDX-License-Identifier: Apache-2.0
// Packages in order; modules are found by name (one per file) in the library folders.
// Paths are relative to the top of the repository.
hw/rtl/gen/rnic_regs_pkg.sv
hw/rtl/gen/rnic_crc_pkg.sv
hw/rtl/pkg/rnic_pkg.sv
hw/rtl/pkg/requester_pkg.sv
hw/rtl/pkg/cc_rp_pkg.sv
-y hw/rtl/gen
-y hw/rtl/lib
-y hw/rtl/net
-y hw/rtl/rx
-y hw/rtl/tx
-y hw/rtl/cc
-y hw/rtl/qp
-y hw/rtl/mem
-y hw/rtl/cc
-y hw/rtl/host
-y hw/rtl
+libext+.sv
