// SPDX-License-Identifier: Apache-2.0
//
// Gathers the payload of packets from host memory.
//
// Every fragment is cut into INCR bursts (at most BurstBeats beats, never across 4 KiB). A burst is
// asked for as soon as the receive memory (RamBeats beats) has room for all of it, so RamBeats *
// DataW/8 bytes can be in flight: 32 KiB at 512 bits, 4 KiB at 64. Answers come in order (one AXI
// ID). The fragments of a packet, of any number and alignment, leave as dense beats from lane 0 on;
// lanes behind the last byte are zero. A failed read beat marks its packet with pl_err_o at the
// last beat; the packet keeps its length.
//
// Throughput: one burst asked for per cycle, one host beat per cycle. Latency from a host beat to
// the packet beat that it completes: 4 cycles. Back-pressure: pl_ready_i stops the receive memory,
// and that stops new bursts; the read channel itself is never stopped.

module payload_reader
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBeats = 512,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  // fragments of packets, in order
  input  logic             frag_valid_i,
  output logic             frag_ready_o,
  input  tx_frag_t         frag_i,
  // AXI read client
  output logic             ar_valid_o,
  input  logic             ar_ready_i,
  output logic [63:0]      ar_addr_o,
  output logic [7:0]       ar_len_o,
  input  logic             r_valid_i,
  input  logic [DataW-1:0] r_data_i,
  input  logic             r_last_i,
  input  logic             r_err_i,
  // payload
  output logic             pl_valid_o,
  input  logic             pl_ready_i,
  output logic [DataW-1:0] pl_data_o,
  output logic [LaneW:0]   pl_cnt_o,
  output logic             pl_last_o,
  output logic             pl_err_o,
  output logic             ev_axi_err_o,
  output logic             idle_o,
  input  logic             drain_i,
  output logic             drain_done_o
);

  localparam int unsigned AddrW = $clog2(RamBeats);
  localparam int unsigned NumFrag = 256;            // fragments in flight
  localparam int unsigned PageW = 12 - LaneW;       // log2 of the beats in 4 KiB
  localparam int unsigned BeatsW = PageW + 1;       // a fragment has at most 4096/NB + 1 beats
  localparam int unsigned HeldW = $clog2(NumFrag) + 2;

  typedef struct packed {
    logic [LaneW-1:0] off;
    logic [12:0]      len;
    logic             last;
  } desc_t;

  // ---- fragments to bursts ----------------------------------------------------------------------
  logic                desc_ready, desc_valid, desc_pop;
  desc_t               desc_in, desc;
  logic                cur_valid_q;
  logic [63:LaneW]     cur_addr_q;
  logic [BeatsW-1:0]   cur_beats_q;   // still to be asked for
  logic [BeatsW-1:0]   to_page, burst;
  logic                burst_all, ask, frag_take;
  logic                ar_valid_q;
  logic [63:LaneW]     ar_addr_q;
  logic [7:0]          ar_len_q;
  logic [AddrW:0]      used_q;        // beats of the receive memory promised or filled
  logic                ram_re;

  assign frag_take = frag_valid_i && frag_ready_o;
  assign frag_ready_o = desc_ready && (!cur_valid_q || (ask && burst_all));
  assign desc_in = '{off: frag_i.iova[LaneW-1:0], len: frag_i.len, last: frag_i.last};

  assign to_page = BeatsW'(1 << PageW) - {1'b0, cur_addr_q[11:LaneW]};
  always_comb begin
    burst = cur_beats_q < to_page ? cur_beats_q : to_page;
    if (32'(burst) > BurstBeats) burst = BeatsW'(BurstBeats);
  end
  assign burst_all = burst == cur_beats_q;
  assign ask = cur_valid_q && (!ar_valid_q || ar_ready_i) &&
               32'(used_q) + 32'(burst) <= RamBeats;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cur_valid_q <= 1'b0;
      ar_valid_q <= 1'b0;
      used_q <= '0;
    end else begin
      if (frag_take) cur_valid_q <= 1'b1;
      else if (ask && burst_all) cur_valid_q <= 1'b0;
      if (ask) ar_valid_q <= 1'b1;
      else if (ar_ready_i) ar_valid_q <= 1'b0;
      used_q <= used_q + (ask ? (AddrW + 1)'(burst) : '0) - (AddrW + 1)'(ram_re);
    end
    if (frag_take) begin
      cur_addr_q <= frag_i.iova[63:LaneW];
      cur_beats_q <= BeatsW'((32'(frag_i.iova[LaneW-1:0]) + 32'(frag_i.len) + NumB - 1) >> LaneW);
    end else if (ask) begin
      cur_addr_q <= cur_addr_q + (64 - LaneW)'(burst);
      cur_beats_q <= cur_beats_q - burst;
    end
    if (ask) begin
      ar_addr_q <= cur_addr_q;
      ar_len_q <= 8'(burst) - 8'd1;
    end
  end

  assign ar_valid_o = ar_valid_q;
  assign ar_addr_o = {ar_addr_q, LaneW'(0)};
  assign ar_len_o = ar_len_q;

  // verilator lint_off PINCONNECTEMPTY
  // the level is not needed
  rnic_fifo #(.Width($bits(desc_t)), .Depth(NumFrag)) u_desc (
    .clk_i, .rst_ni,
    .in_valid_i(frag_take), .in_ready_o(desc_ready), .in_data_i(desc_in),
    .out_valid_o(desc_valid), .out_ready_i(desc_pop), .out_data_o(desc),
    .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- receive memory ---------------------------------------------------------------------------
  logic [AddrW:0]   wptr_q, rptr_q;
  logic             word_valid_q, word_take, word_err;
  logic [DataW-1:0] word;
  logic             burst_err_q;

  assign ram_re = wptr_q != rptr_q && (!word_valid_q || word_take);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
      word_valid_q <= 1'b0;
      burst_err_q <= 1'b0;
      ev_axi_err_o <= 1'b0;
    end else begin
      wptr_q <= wptr_q + (AddrW + 1)'(r_valid_i);
      rptr_q <= rptr_q + (AddrW + 1)'(ram_re);
      if (ram_re) word_valid_q <= 1'b1;
      else if (word_take) word_valid_q <= 1'b0;
      if (r_valid_i) burst_err_q <= !r_last_i && (burst_err_q || r_err_i);
      ev_axi_err_o <= r_valid_i && r_last_i && (burst_err_q || r_err_i);
    end
  end

  rnic_ram #(.Width(DataW + 1), .Depth(RamBeats)) u_ram (
    .clk_i,
    .we_i(r_valid_i), .waddr_i(wptr_q[AddrW-1:0]), .wdata_i({r_err_i, r_data_i}),
    .re_i(ram_re), .raddr_i(rptr_q[AddrW-1:0]), .rdata_o({word_err, word})
  );

  // ---- beats to pieces --------------------------------------------------------------------------
  logic             inside_q;         // not the first beat of the fragment
  logic [12:0]      rem_q, rem, room;
  logic [LaneW-1:0] off;
  logic [LaneW:0]   cnt;
  logic             frag_end, pkt_end, pack_ready, pack_valid, err_q;

  assign off = inside_q ? '0 : desc.off;
  assign rem = inside_q ? rem_q : desc.len;
  assign room = 13'(NumB) - 13'(off);
  assign frag_end = rem <= room;
  assign cnt = frag_end ? rem[LaneW:0] : room[LaneW:0];
  assign pkt_end = frag_end && desc.last;
  assign pack_valid = word_valid_q && desc_valid;
  assign word_take = pack_valid && pack_ready;
  assign desc_pop = word_take && frag_end;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
      err_q <= 1'b0;
    end else if (word_take) begin
      inside_q <= !frag_end;
      err_q <= !pkt_end && (err_q || word_err);
    end
    if (word_take) rem_q <= rem - 13'(cnt);
  end

  byte_packer #(.DataW(DataW)) u_pack (
    .clk_i, .rst_ni,
    .in_valid_i(pack_valid), .in_ready_o(pack_ready), .in_data_i(word), .in_off_i(off),
    .in_cnt_i(cnt),
    .in_last_i(pkt_end), .in_lane_i('0), .in_user_i(err_q || word_err),
    .out_valid_o(pl_valid_o), .out_ready_i(pl_ready_i), .out_data_o(pl_data_o),
    .out_cnt_o(pl_cnt_o),
    .out_last_o(pl_last_o), .out_user_o(pl_err_o)
  );

  // ---- what is held: packets from their first fragment taken to their last beat gone ------------
  logic [HeldW-1:0] held_q, held_d, drain_q;
  logic             more_q, drain_seen_q;  // more_q: the next fragment continues a packet
  logic             leave;

  assign leave = pl_valid_o && pl_ready_i && pl_last_o;
  assign held_d = held_q + HeldW'(frag_take && !more_q) - HeldW'(leave);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= '0;
      more_q <= 1'b0;
      drain_seen_q <= 1'b0;
      drain_q <= '0;
    end else begin
      held_q <= held_d;
      if (frag_take) more_q <= !frag_i.last;
      drain_seen_q <= drain_i;
      if (drain_i && !drain_seen_q) drain_q <= held_d;
      else if (drain_q != '0) drain_q <= drain_q - HeldW'(leave);
    end
  end

  assign idle_o = held_q == '0;
  assign drain_done_o = drain_i && drain_seen_q && drain_q == '0;

endmodule
