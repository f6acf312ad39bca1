// SPDX-License-Identifier: Apache-2.0
//
// Push windows of the doorbell pages: copies of WQEs that need not be read from host memory.
//
// A copy counts if it was written from the first word on, word by word (8 or 16 words of 8 bytes), and
// if its index and the low byte of its QPN are those of the doorbell. The first word of a copy says
// whose it is, and each word of another writer breaks the order of one of the two: copies that tear
// each other never count. A doorbell uses a copy up, whether it counts or not.
//
// The words of a window go into one of NumCopy places. A copy that counts goes on with its doorbell, by its place, and stays
// there until the place is given up; the window takes another place with the next first word. If there is none, a copy does not count.
//
// Throughput: a word per cycle in, DataW bits per cycle out; a place is found again 1 cycle after one was taken. Latency: db_copy_o in the cycle of
// the doorbell, rd_data_o one cycle after rd_en_i. Back-pressure: none, nothing waits.

module wqe_push
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned NumPlaces = NumCopy,            // a power of two, at most NumCopy
  localparam int unsigned Banks = DataW / 64,
  localparam int unsigned Rows = 16 / Banks,             // of a copy
  localparam int unsigned RowW = $clog2(1024 / DataW)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clear_i,       // a QP begins a new life: no copy in a window counts any more
  // words
  input  logic             wr_valid_i,
  input  db_page_t         wr_page_i,
  input  logic [3:0]       wr_word_i,
  input  logic [63:0]      wr_data_i,
  // doorbell with `pushed`, in the cycle in which it is taken
  input  logic             db_valid_i,
  input  db_page_t         db_page_i,
  input  logic [7:0]       db_qpn_low_i,
  input  logic [15:0]      db_pi_i,
  output wqe_copy_t        db_copy_o,     // of the doorbell shown, db_valid_i or not
  // reads, and places that are given up
  input  logic             rd_en_i,
  input  copy_idx_t        rd_at_i,
  input  logic [RowW-1:0]  rd_row_i,
  output logic [DataW-1:0] rd_data_o,
  input  logic [4:0]       free_valid_i,
  input  copy_idx_t [4:0]  free_at_i
);

  localparam int unsigned NumPages = 1 << $bits(db_page_t);

  // ---- windows ---------------------------------------------------------------------------------------
  logic [4:0]          next_q[NumPages];   // words there, in order; 0: nothing that could count
  logic [7:0]          qpn_q[NumPages];
  logic [15:0]         index_q[NumPages];
  logic [NumPages-1:0] has_q;              // a place
  copy_idx_t           at_q[NumPages];

  logic      wr_ok, take, hit, spare_valid_q;
  copy_idx_t spare_q, wr_at;
  assign wr_ok = wr_valid_i && (wr_word_i == '0 ? has_q[wr_page_i] || spare_valid_q :
                                next_q[wr_page_i] != '0 && next_q[wr_page_i] == 5'(wr_word_i));
  assign take = wr_ok && !has_q[wr_page_i];
  assign wr_at = has_q[wr_page_i] ? at_q[wr_page_i] : spare_q;

  assign hit = next_q[db_page_i] inside {5'd8, 5'd16} && qpn_q[db_page_i] == db_qpn_low_i && index_q[db_page_i] == db_pi_i - 16'd1;
  assign db_copy_o = '{valid: hit, long_wqe: next_q[db_page_i][4], at: at_q[db_page_i]};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < NumPages; i++) next_q[i] <= '0;
      has_q <= '0;
    end else begin
      if (wr_valid_i) next_q[wr_page_i] <= wr_ok ? 5'(wr_word_i) + 5'd1 : '0;
      if (take) has_q[wr_page_i] <= 1'b1;
      if (db_valid_i) begin
        next_q[db_page_i] <= '0;
        if (hit) has_q[db_page_i] <= 1'b0;
      end
      if (clear_i) for (int i = 0; i < NumPages; i++) next_q[i] <= '0;
    end
    if (take) at_q[wr_page_i] <= spare_q;
    if (wr_ok && wr_word_i == 4'd0) qpn_q[wr_page_i] <= wr_data_i[31:24];
    if (wr_ok && wr_word_i == 4'd1) index_q[wr_page_i] <= wr_data_i[47:32];
  end

  // ---- places: free ones, and one of them ahead --------------------------------------------------------
  localparam int unsigned PerGroup = NumPlaces < 16 ? NumPlaces : 16;
  localparam int unsigned Groups = NumPlaces / PerGroup;
  logic [NumPlaces-1:0] free_q;
  logic                 any_free, refill;
  copy_idx_t            found;
  // the first place that is free, of the first group that has one
  function automatic copy_idx_t lowest(input logic [NumPlaces-1:0] places);
    logic [PerGroup-1:0] some;
    copy_idx_t           base, at;
    some = '0;
    base = '0;
    at = '0;
    for (int g = int'(Groups) - 1; g >= 0; g--) begin
      if (places[g * int'(PerGroup) +: PerGroup] != '0) begin
        base = copy_idx_t'(g * int'(PerGroup));
        some = places[g * int'(PerGroup) +: PerGroup];
      end
    end
    for (int i = int'(PerGroup) - 1; i >= 0; i--) if (some[i]) at = copy_idx_t'(i);
    return base | at;
  endfunction
  assign found = lowest(free_q);
  assign any_free = |free_q;
  assign refill = any_free && (!spare_valid_q || take);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      free_q <= '1;
      spare_valid_q <= 1'b0;
    end else begin
      if (take) spare_valid_q <= 1'b0;
      if (refill) begin
        spare_valid_q <= 1'b1;
        free_q[found] <= 1'b0;
      end
      for (int i = 0; i < 5; i++) if (free_valid_i[i]) free_q[free_at_i[i]] <= 1'b1;
    end
    if (refill) spare_q <= found;
  end

  // ---- words: bank b holds words b, b + Banks, ... ------------------------------------------------
  for (genvar b = 0; b < int'(Banks); b++) begin : gen_bank
    rnic_ram #(.Width(64), .Depth(NumPlaces * Rows)) u_words (
      .clk_i,
      .we_i(wr_ok && 32'(wr_word_i) % Banks == b),
      .waddr_i({wr_at, RowW'(32'(wr_word_i) / Banks)}), .wdata_i(wr_data_i),
      .re_i(rd_en_i), .raddr_i({rd_at_i, rd_row_i}), .rdata_o(rd_data_o[64*b+:64])
    );
  end

endmodule
