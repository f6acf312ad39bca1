// SPDX-License-Identifier: Apache-2.0
//
// READs and atomics of our requester that wait for their responses: where the payload of each response goes, and which
// response is the next one (IBTA 9.7.5.1, 9.4.4, 9.4.5).
//
// A QP has a ring of MaxRdAtomic entries. READs and atomics of a QP are numbered in the order of the send queue, modulo
// 2 * MaxRdAtomic. Three numbers per QP: `made` (requests sent), `taken` (all responses were taken), `done` (completed);
// done <= taken <= made <= done + MaxRdAtomic. The segmenter writes the entry of a request each time it sends it: sent again
// after a loss it is the same entry, because the place of a response in the message follows from its PSN. The completer counts
// `done`; what it completed without a response (it does so for a peer that acknowledges what was not sent yet) is passed over.
//
// rx_transport reads a view of one QP (rx_re_i; there one cycle later, until the next read) and reports what became of
// the packet; one packet at a time. A report is seen by a read in the next cycle.
//
// Throughput: one operation of each side per cycle. No back-pressure.

module read_table
  import rnic_pkg::*;
  import requester_pkg::*;
(
  input  logic        clk_i,
  // clears a QP
  input  logic        init_i,
  input  qp_idx_t     init_qp_i,
  // segmenter: look-up, and the entry of a request that goes
  input  qp_idx_t     seg_qp_i,
  output rd_num_t     seg_done_o,
  input  logic        seg_we_i,
  input  rd_num_t     seg_num_i,
  input  rd_entry_t   seg_entry_i,
  // completer: look-up, one more is complete; length of entry cpl_num_i, one cycle later
  input  qp_idx_t     cpl_qp_i,
  output rd_num_t     cpl_done_o,
  input  logic        cpl_pop_i,
  input  logic        cpl_re_i,
  input  logic [LogMaxRd-1:0] cpl_num_i,
  output logic [31:0] cpl_len_o,
  // receive side
  input  logic        rx_re_i,
  input  qp_idx_t     rx_qp_i,
  input  psn_t        rx_max_psn_i,   // of rx_qp_i: behind the newest PSN sent
  output rd_view_t    rx_view_o,
  input  logic        rx_update_valid_i,
  input  rd_update_t  rx_update_i
);

  localparam int unsigned Depth = NumQp * MaxRdAtomic;

  // ---- state per QP --------------------------------------------------------------------------------
  typedef struct packed {
    rd_num_t num;     // `taken`
    logic    part;    // some responses of entry `num` were taken, the next one is that of `psn`
    logic    gap;
    psn_t    psn;
  } recv_t;
  rd_num_t made_mem[NumQp];
  rd_num_t done_mem[NumQp];
  recv_t   recv_mem[NumQp];

  rd_num_t seg_done, seg_ahead, seg_made;
  assign seg_done = done_mem[seg_qp_i];
  assign seg_made = made_mem[seg_qp_i];
  assign seg_done_o = seg_done;
  // a request sent again is not a new one
  assign seg_ahead = seg_num_i - seg_done;
  assign cpl_done_o = done_mem[cpl_qp_i];

  always_ff @(posedge clk_i) begin
    if (init_i) begin
      made_mem[init_qp_i] <= '0;
      done_mem[init_qp_i] <= '0;
    end else begin
      if (seg_we_i && seg_ahead == seg_made - seg_done) made_mem[seg_qp_i] <= seg_made + 1'b1;
      if (cpl_pop_i) done_mem[cpl_qp_i] <= cpl_done_o + 1'b1;
    end
  end

  // ---- entries -------------------------------------------------------------------------------------
  logic [NumQp-1:0] fresh_q;   // recv_mem is as good as zero; another QP may be reported on while a QP is cleared
  rd_num_t   made, done, num;
  recv_t     recv;
  rd_entry_t entry;
  logic      stale;
  assign made = made_mem[rx_qp_i];
  assign done = done_mem[rx_qp_i];
  assign recv = fresh_q[rx_qp_i] ? '0 : recv_mem[rx_qp_i];
  // completed without a response
  assign stale = rd_num_t'(recv.num - done) > rd_num_t'(made - done);
  assign num = stale ? done : recv.num;

  rnic_ram #(.Width($bits(rd_entry_t)), .Depth(Depth)) u_entries (
    .clk_i,
    .we_i(seg_we_i), .waddr_i({seg_qp_i, seg_num_i[LogMaxRd-1:0]}), .wdata_i(seg_entry_i),
    .re_i(rx_re_i), .raddr_i({rx_qp_i, num[LogMaxRd-1:0]}), .rdata_o(entry)
  );

  rnic_ram #(.Width(32), .Depth(Depth)) u_lengths (
    .clk_i,
    .we_i(seg_we_i), .waddr_i({seg_qp_i, seg_num_i[LogMaxRd-1:0]}), .wdata_i(seg_entry_i.len),
    .re_i(cpl_re_i), .raddr_i({cpl_qp_i, cpl_num_i}), .rdata_o(cpl_len_o)
  );

  // ---- view of the receive side ----------------------------------------------------------------------
  logic    incomplete_q, waiting_q, part_q, gap_q;
  rd_num_t num_q;
  psn_t    psn_q, max_psn_q;

  assign rx_view_o = '{
    incomplete: incomplete_q, waiting: waiting_q, gap: gap_q, psn: part_q ? psn_q : entry.base,
    max_psn: max_psn_q, entry: entry
  };

  always_ff @(posedge clk_i) begin
    if (rx_re_i) begin
      incomplete_q <= made != done;
      waiting_q <= num != made;
      part_q <= recv.part && !stale;
      gap_q <= recv.gap && !stale;
      psn_q <= recv.psn;
      num_q <= num;
      max_psn_q <= rx_max_psn_i;
    end
    if (init_i) fresh_q[init_qp_i] <= 1'b1;
    if (rx_update_valid_i) begin
      fresh_q[rx_update_i.qp] <= 1'b0;
      recv_mem[rx_update_i.qp] <= rx_update_i.take ?
          '{num: num_q + rd_num_t'(rx_update_i.last), part: !rx_update_i.last, gap: 1'b0,
            psn: rx_update_i.psn + 1'b1} :
          '{num: num_q, part: part_q, gap: 1'b1, psn: psn_q};
    end
  end

endmodule
