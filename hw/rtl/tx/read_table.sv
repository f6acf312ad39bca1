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
// Contexts (docs/qp-cache.md): keep_o is what is kept of QP init_qp_i; load_i writes it, in a cycle in which nothing else of that QP changes. Entries,
// one at a time: ctx_we_i writes entry ctx_num_i of QP init_qp_i when the segmenter does not, ctx_re_i reads it when rx_re_i is 0 (ctx_entry_o
// one cycle later); a view that is in use stays as it is.
//
// Throughput: one operation of each side per cycle. No back-pressure.

module read_table
  import rnic_pkg::*;
  import requester_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,      // of what is under way; what is kept is cleared by init_i
  // clears a QP
  input  logic        init_i,
  input  qp_idx_t     init_qp_i,
  input  logic        load_i,
  input  rd_keep_t    keep_i,
  output rd_keep_t    keep_o,
  input  logic        ctx_re_i,
  input  logic        ctx_we_i,
  input  logic [LogMaxRd-1:0] ctx_num_i,
  input  rd_entry_t   ctx_entry_i,
  output rd_entry_t   ctx_entry_o,
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
    if (init_i || load_i) begin
      made_mem[init_qp_i] <= init_i ? '0 : keep_i.made;
      done_mem[init_qp_i] <= init_i ? '0 : keep_i.done;
    end else begin
      if (seg_we_i && seg_ahead == seg_made - seg_done) made_mem[seg_qp_i] <= seg_made + 1'b1;
      if (cpl_pop_i) done_mem[cpl_qp_i] <= cpl_done_o + 1'b1;
    end
  end

  // ---- entries -------------------------------------------------------------------------------------
  logic [NumQp-1:0] fresh_q;   // recv_mem is as good as zero; another QP may be reported on while a QP is cleared
  logic      load_q;           // what was loaded is still to be written
  qp_idx_t   load_qp_q;
  recv_t     load_recv_q;
  rd_num_t   made, done, num;
  recv_t     recv;
  rd_entry_t entry, entry_q;
  logic      view_q;           // the RAM shows the entry of the view; else entry_q does
  qp_idx_t   seg_w_qp;
  logic [LogMaxRd-1:0] seg_w_num;
  rd_entry_t seg_w_entry, ram_entry;
  logic      seg_w;
  assign seg_w = seg_we_i || ctx_we_i;
  assign seg_w_qp = ctx_we_i ? init_qp_i : seg_qp_i;
  assign seg_w_num = ctx_we_i ? ctx_num_i : seg_num_i[LogMaxRd-1:0];
  assign seg_w_entry = ctx_we_i ? ctx_entry_i : seg_entry_i;
  logic      stale;
  assign made = made_mem[rx_qp_i];
  assign done = done_mem[rx_qp_i];
  assign recv = load_q && load_qp_q == rx_qp_i ? load_recv_q : fresh_q[rx_qp_i] ? '0 : recv_mem[rx_qp_i];
  // completed without a response
  assign stale = rd_num_t'(recv.num - done) > rd_num_t'(made - done);
  assign num = stale ? done : recv.num;

  rnic_ram #(.Width($bits(rd_entry_t)), .Depth(Depth)) u_entries (
    .clk_i,
    .we_i(seg_w), .waddr_i({seg_w_qp, seg_w_num}), .wdata_i(seg_w_entry),
    .re_i(rx_re_i || ctx_re_i),
    .raddr_i(rx_re_i ? {rx_qp_i, num[LogMaxRd-1:0]} : {init_qp_i, ctx_num_i}), .rdata_o(ram_entry)
  );
  assign entry = view_q ? ram_entry : entry_q;
  assign ctx_entry_o = ram_entry;
  always_ff @(posedge clk_i) begin
    view_q <= rx_re_i || (view_q && !ctx_re_i);
    if (view_q) entry_q <= ram_entry;
  end

  rnic_ram #(.Width(32), .Depth(Depth)) u_lengths (
    .clk_i,
    .we_i(seg_w), .waddr_i({seg_w_qp, seg_w_num}), .wdata_i(seg_w_entry.len),
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

  assign keep_o = '{made: made_mem[init_qp_i], done: done_mem[init_qp_i],
                    recv: fresh_q[init_qp_i] ? '0 : recv_mem[init_qp_i]};

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
    // what is loaded waits while another QP is reported on: at most one cycle, no two reports come one behind the other
    if (load_i) begin
      load_q <= 1'b1;
      load_qp_q <= init_qp_i;
      load_recv_q <= keep_i.recv;
    end
    if (!rst_ni || (init_i && load_qp_q == init_qp_i)) load_q <= 1'b0;
    else if (load_q && !rx_update_valid_i) begin
      load_q <= load_i;
      fresh_q[load_qp_q] <= 1'b0;
      recv_mem[load_qp_q] <= load_recv_q;
    end
    if (rx_update_valid_i) begin
      fresh_q[rx_update_i.qp] <= 1'b0;
      recv_mem[rx_update_i.qp] <= rx_update_i.take ?
          '{num: num_q + rd_num_t'(rx_update_i.last), part: !rx_update_i.last, gap: 1'b0,
            psn: rx_update_i.psn + 1'b1} :
          '{num: num_q, part: part_q, gap: 1'b1, psn: psn_q};
    end
  end

endmodule
