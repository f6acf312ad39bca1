// SPDX-License-Identifier: Apache-2.0
//
// Puts an expected frame together, for benches: fb[] is that of the bench, and has fl bytes; crc is a CRC-32 under way.

  int fl;
  logic [31:0] crc;
  task automatic put(input logic [127:0] x, input int n);       // number, high byte first
    for (int i = n - 1; i >= 0; i--) begin
      fb[fl] = x[8*i+:8];
      fl++;
    end
  endtask
  task automatic put_raw(input logic [127:0] x, input int n);   // byte 0 in [7:0]
    for (int i = 0; i < n; i++) begin
      fb[fl] = x[8*i+:8];
      fl++;
    end
  endtask
  task automatic crc_byte(input logic [7:0] x);
    for (int i = 0; i < 8; i++) crc = (crc[0] ^ x[i]) ? (crc >> 1) ^ 32'hedb88320 : crc >> 1;
  endtask
