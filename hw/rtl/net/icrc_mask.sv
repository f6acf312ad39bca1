// SPDX-License-Identifier: Apache-2.0
//
// Prepares the beats of a frame for the ICRC engine (IBTA A17.3.3): the Ethernet header becomes
// zero, the fields that may change on the way become ones (IPv4 ToS, TTL, checksum; IPv6 traffic
// class, flow label, hop limit; UDP checksum; BTH byte 4), everything behind the covered end
// becomes zero, and the seed of the CRC is XORed into the first four bytes of the IP header. The
// engine then starts from zero, so leading zero bytes do not matter.
//
// One beat per cycle, latency 1, no back-pressure. Frames may follow each other without a gap.
// l3_i: offset of the IP header, 0: 14, 1: 18, 2: 22 bytes. l3_i and ipv6_i must be right from the
// beat on that holds the first byte of the IP header. beat_i is the index of the beat in its frame,
// saturated at 15. With end_i the covered data ends in this beat behind byte cnt_i-1 (1 to
// DataW/8); later beats of the frame come with skip_i.

module icrc_mask #(
  parameter int unsigned DataW = 512,
  localparam int unsigned CntW = $clog2(DataW / 8) + 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  input  logic             first_i,
  input  logic             last_i,
  input  logic             skip_i,
  input  logic             end_i,
  input  logic [CntW-1:0]  cnt_i,
  input  logic [3:0]       beat_i,
  input  logic [1:0]       l3_i,
  input  logic             ipv6_i,
  input  logic [DataW-1:0] data_i,
  output logic             valid_o,
  output logic             first_o,
  output logic             last_o,
  output logic             skip_o,
  output logic [DataW-1:0] data_o
);

  localparam int unsigned Bytes = DataW / 8;
  // Header beats: up to BTH byte 4 behind two VLAN tags and IPv6, 22 + 40 + 8 + 5 bytes.
  localparam int unsigned HdrBeats = (75 + Bytes - 1) / Bytes;
  localparam int unsigned HdrW = HdrBeats * DataW;
  localparam int unsigned IdxW = HdrBeats > 1 ? $clog2(HdrBeats) : 1;

  typedef logic [HdrBeats-1:0][DataW-1:0] hdr_t;

  // Bits forced to one, relative to the IP header.
  localparam logic [HdrW-1:0] OrV4 =
      (HdrW'(8'hff) << (8 * 1)) | (HdrW'(24'hffff00) << (8 * 9)) | (HdrW'(8'hff) << (8 * 8)) |
      (HdrW'(16'hffff) << (8 * 26)) | (HdrW'(8'hff) << (8 * 32));
  localparam logic [HdrW-1:0] OrV6 =
      HdrW'(32'hffffff0f) | (HdrW'(8'hff) << (8 * 7)) |
      (HdrW'(16'hffff) << (8 * 46)) | (HdrW'(8'hff) << (8 * 52));
  localparam hdr_t [7:0] OrTab = {
    HdrW'(0), OrV6 << (8 * 22), OrV6 << (8 * 18), OrV6 << (8 * 14),
    HdrW'(0), OrV4 << (8 * 22), OrV4 << (8 * 18), OrV4 << (8 * 14)
  };
  localparam logic [HdrW-1:0] Ones = '1;
  localparam hdr_t [3:0] AndTab = {
    Ones, Ones << (8 * 22), Ones << (8 * 18), Ones << (8 * 14)
  };
  localparam logic [HdrW-1:0] Seed = HdrW'(rnic_crc_pkg::CrcIcrcSeed);
  localparam hdr_t [3:0] SeedTab = {
    HdrW'(0), Seed << (8 * 22), Seed << (8 * 18), Seed << (8 * 14)
  };

  // Written without functions: Verilator clears the wide locals of a function in every cycle.
  localparam logic [DataW-1:0] BeatOnes = '1;
  logic [IdxW-1:0] idx;
  logic [9:0] drop_bits;   // bits of the beat behind the end
  assign idx = beat_i[IdxW-1:0];
  assign drop_bits = 10'((Bytes - 32'(cnt_i)) * 8);

  logic header;
  assign header = 32'(beat_i) < HdrBeats;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_o <= 1'b0;
    else valid_o <= valid_i;
    if (valid_i) begin
      first_o <= first_i;
      last_o <= last_i;
      skip_o <= skip_i;
    end
    if (valid_i && !skip_i) begin
      if (header && end_i)
        data_o <= (((data_i | OrTab[{ipv6_i, l3_i}][idx]) & AndTab[l3_i][idx]) ^
                   SeedTab[l3_i][idx]) & (BeatOnes >> drop_bits);
      else if (header)
        data_o <= ((data_i | OrTab[{ipv6_i, l3_i}][idx]) & AndTab[l3_i][idx]) ^ SeedTab[l3_i][idx];
      else if (end_i) data_o <= data_i & (BeatOnes >> drop_bits);
      else data_o <= data_i;
    end
  end

endmodule
