// SPDX-License-Identifier: Apache-2.0
//
// The structs of rnic_regs_pkg against the Go codec of the same layouts: bytes written by Go, cast
// to the struct, must give Go's value in every field, and no bit of the bytes lies outside of them.

module rnic_layout_tb
  import rnic_regs_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  `include "rnic_layout_table.svh"

  string file;
  int fd, layout, fields, vectors = 0, checked = 0;
  int seen [NumLayouts];
  logic [MaxLayoutBits-1:0] mem;
  logic [127:0] want, got;
  int ones, field_ones;

  initial begin
    if (!$value$plusargs("vec=%s", file)) $fatal(1, "no +vec=FILE");
    fd = $fopen(file, "r");
    if (fd == 0) $fatal(1, "cannot open %s", file);
    for (int i = 0; i < NumLayouts; i++) seen[i] = 0;
    layout = 0;
    while (layout >= 0) begin
      if ($fscanf(fd, "%d", layout) != 1) $fatal(1, "vector file ends early");
      if (layout >= 0) begin
        if (layout >= NumLayouts || $fscanf(fd, "%h", mem) != 1 || $fscanf(fd, "%d", fields) != 1)
          $fatal(1, "bad vector");
        if (fields != layout_fields(layout))
          $fatal(1, "layout %0d has %0d fields in Go, %0d here", layout, fields,
                 layout_fields(layout));
        field_ones = 0;
        for (int f = 0; f < fields; f++) begin
          if ($fscanf(fd, "%h", want) != 1) $fatal(1, "bad field value");
          got = layout_field(layout, f, mem);
          if (got !== want)
            $fatal(1, "layout %0d field %0d: struct %h, Go %h", layout, f, got, want);
          field_ones += $countones(got);
          checked++;
        end
        ones = $countones(mem);
        if (ones != field_ones)
          $fatal(1, "layout %0d: %0d ones in memory, %0d in fields", layout, ones, field_ones);
        seen[layout]++;
        vectors++;
      end
    end
    for (int i = 0; i < NumLayouts; i++)
      if (seen[i] < 100) $fatal(1, "layout %0d: only %0d vectors", i, seen[i]);
    $display("PASS %0d structures, %0d fields", vectors, checked);
    $finish;
  end
endmodule
