// SPDX-License-Identifier: Apache-2.0
//
// Push windows of the doorbell pages: copies of WQEs that need not be read from host memory.
//
// A copy counts if it was written from the first word on, word by word (8 or 16 words of 8 bytes), and
// if its index and the low byte of its QPN are those of the doorbell. The first word of a copy says
// whose it is, and each word of another writer breaks the order of one of the two: copies that tear
// each other never count. A doorbell uses a copy up, whether it counts or not; a copy that counts
// stays as it is, and the window takes nothing, until the requester releases it.
//
// Throughput: a word per cycle in, DataW bits per cycle out. Latency: db_hit_o in the cycle of the
// doorbell, rd_data_o one cycle after rd_en_i. Back-pressure: none, nothing waits.

module wqe_push
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  localparam int unsigned Banks = DataW / 64,
  localparam int unsigned Rows = 16 / Banks,             // of a window
  localparam int unsigned RowW = $clog2(1024 / DataW)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clear_i,       // a QP begins a new life: no copy counts any more
  // words
  input  logic             wr_valid_i,
  input  db_page_t         wr_page_i,
  input  logic [3:0]       wr_word_i,
  input  logic [63:0]      wr_data_i,
  // doorbell with `pushed`, in the cycle in which the requester takes it
  input  logic             db_valid_i,
  input  db_page_t         db_page_i,
  input  logic [7:0]       db_qpn_low_i,
  input  logic [15:0]      db_pi_i,
  output logic             db_hit_o,      // of the doorbell shown, db_valid_i or not
  output logic             db_long_o,     // 16 words
  // requester: reads, and is done with a window (also who drops a doorbell)
  input  logic             rd_en_i,
  input  db_page_t         rd_page_i,
  input  logic [RowW-1:0]  rd_row_i,
  output logic [DataW-1:0] rd_data_o,
  input  logic [3:0]       free_valid_i,
  input  db_page_t [3:0]   free_page_i
);

  localparam int unsigned NumPages = 1 << $bits(db_page_t);

  logic [4:0]          next_q[NumPages];   // words there, in order; 0: nothing that could count
  logic [7:0]          qpn_q[NumPages];
  logic [15:0]         index_q[NumPages];
  logic [NumPages-1:0] held_q;             // the requester has it

  logic wr_ok;
  assign wr_ok = wr_valid_i && !held_q[wr_page_i] &&
                 (wr_word_i == '0 || (next_q[wr_page_i] != '0 && next_q[wr_page_i] == 5'(wr_word_i)));

  assign db_long_o = next_q[db_page_i][4];
  assign db_hit_o = next_q[db_page_i] inside {5'd8, 5'd16} && qpn_q[db_page_i] == db_qpn_low_i &&
                    index_q[db_page_i] == db_pi_i - 16'd1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < NumPages; i++) next_q[i] <= '0;
      held_q <= '0;
    end else begin
      if (wr_valid_i) next_q[wr_page_i] <= wr_ok ? 5'(wr_word_i) + 5'd1 : '0;
      for (int i = 0; i < 4; i++) if (free_valid_i[i]) held_q[free_page_i[i]] <= 1'b0;
      if (db_valid_i) begin
        next_q[db_page_i] <= '0;
        if (db_hit_o) held_q[db_page_i] <= 1'b1;
      end
      if (clear_i) for (int i = 0; i < NumPages; i++) next_q[i] <= '0;
    end
    if (wr_ok && wr_word_i == 4'd0) qpn_q[wr_page_i] <= wr_data_i[31:24];
    if (wr_ok && wr_word_i == 4'd1) index_q[wr_page_i] <= wr_data_i[47:32];
  end

  // ---- words: bank b holds words b, b + Banks, ... ------------------------------------------------
  for (genvar b = 0; b < int'(Banks); b++) begin : gen_bank
    rnic_ram #(.Width(64), .Depth(NumPages * Rows)) u_words (
      .clk_i,
      .we_i(wr_ok && 32'(wr_word_i) % Banks == b),
      .waddr_i({wr_page_i, RowW'(32'(wr_word_i) / Banks)}), .wdata_i(wr_data_i),
      .re_i(rd_en_i), .raddr_i({rd_page_i, rd_row_i}), .rdata_o(rd_data_o[64*b+:64])
    );
  end

endmodule
