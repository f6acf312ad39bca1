// SPDX-License-Identifier: Apache-2.0
//
// Store-and-forward buffer of the receive side: frames are written while they arrive and read, or
// forgotten, when their verdict and the transport's command are there.
//
// Write side: one beat per cycle, no back-pressure. One cycle behind the last beat, end_valid_o
// tells whether the frame is held; if not, too_long_o, overflow_o or the MAC's error says why, and
// the frame takes no room any more. A frame longer than rnic_pkg::MaxFrame stops being written
// there. Each held frame must get one descriptor (desc_*) later, in order; room for it is reserved.
//
// Read side: a descriptor without desc_stream_i frees its frame in one cycle. Else a command is
// taken from pcmd: drop, or stream out the payload, one beat per cycle as long as pl_ready_i is 1;
// one idle cycle between packets at most. Latency from command to first beat: 3 cycles (command
// FIFO, start, RAM). pl_off_o is non-zero only in the first beat.
//
// Drain: frames that have a descriptor when drain_i has been seen for SettleCycles cycles are
// waited for (the verdict pipeline is shorter).

module pkt_buffer
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned BufBytes = PktBufBytes,
  parameter int unsigned DescDepth = 64,
  localparam int unsigned Bytes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Bytes),
  localparam int unsigned Words = BufBytes / Bytes,
  localparam int unsigned AddrW = $clog2(Words),
  localparam int unsigned BeatsW = $clog2(MaxFrame / Bytes + 1) + 1,
  localparam int unsigned DescW = $clog2(DescDepth) + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              wr_valid_i,
  input  logic              wr_first_i,
  input  logic              wr_last_i,
  input  logic [DataW-1:0]  wr_data_i,
  input  logic [15:0]       wr_len_i,     // bytes of the frame with this beat, saturated
  input  logic              wr_err_i,     // with last: MAC error
  input  logic              wr_admit_i,   // the frame may stay; with last
  output logic [AddrW:0]    used_o,       // words that are not free
  output logic [DescW-1:0]  frames_o,     // frames held whose payload has not begun to leave
  output logic              end_valid_o,
  output logic              end_too_long_o,
  output logic              end_overflow_o,
  output logic              end_held_o,
  output logic [BeatsW-1:0] end_beats_o,

  input  logic              desc_valid_i,
  input  logic              desc_stream_i,
  input  logic [BeatsW-1:0] desc_beats_i,
  input  logic [6:0]        desc_off_i,   // of the payload in the frame
  input  logic [15:0]       desc_len_i,   // of the payload

  input  logic              pcmd_valid_i,
  output logic              pcmd_ready_o,
  input  payload_cmd_e      pcmd_i,

  output logic              pl_valid_o,
  input  logic              pl_ready_i,
  output logic [DataW-1:0]  pl_data_o,
  output logic [LaneW-1:0]  pl_off_o,
  output logic [LaneW:0]    pl_cnt_o,
  output logic              pl_last_o,

  input  logic              drain_i,
  output logic              drain_done_o,
  output logic              idle_o
);

  typedef logic [AddrW:0] ptr_t;
  localparam int unsigned SettleCycles = 15;
  localparam int unsigned SeqW = DescW + 2;       // a sign, and room
  typedef logic [SeqW-1:0] seq_t;

  // ---- write --------------------------------------------------------------------------------
  ptr_t wptr_q, base_q, free_q, base, next;
  logic lost_q, lost, too_long, full, we, room, hold;
  logic [DescW-1:0] reserved_q;   // descriptors of held frames, here or on their way
  logic desc_pop;

  assign used_o = wptr_q - free_q;
  assign frames_o = reserved_q;
  assign base = wr_first_i ? wptr_q : base_q;
  assign full = ptr_t'(wptr_q - free_q) == ptr_t'(Words);
  assign too_long = wr_len_i > 16'(MaxFrame);
  assign lost = full || (!wr_first_i && lost_q);
  assign we = wr_valid_i && !lost && !too_long;
  assign next = wptr_q + 1'b1;
  assign room = wr_admit_i && reserved_q != DescW'(DescDepth);
  assign hold = we && wr_last_i && !wr_err_i && room;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      reserved_q <= '0;
      end_valid_o <= 1'b0;
    end else begin
      if (wr_valid_i && wr_last_i && !hold) wptr_q <= base;
      else if (we) wptr_q <= next;
      if (hold != desc_pop) reserved_q <= hold ? reserved_q + 1'b1 : reserved_q - 1'b1;
      end_valid_o <= wr_valid_i && wr_last_i;
    end
    if (wr_valid_i) begin
      base_q <= base;
      lost_q <= lost;
      if (wr_last_i) begin
        end_too_long_o <= too_long;
        end_overflow_o <= lost || !room;
        end_held_o <= hold;
        end_beats_o <= BeatsW'(next - base);
      end
    end
  end

  logic rd_en;
  ptr_t addr_q;
  rnic_ram #(.Width(DataW), .Depth(Words)) u_ram (
    .clk_i, .we_i(we), .waddr_i(wptr_q[AddrW-1:0]), .wdata_i(wr_data_i),
    .re_i(rd_en), .raddr_i(addr_q[AddrW-1:0]), .rdata_o(pl_data_o)
  );

  // ---- descriptors and commands -------------------------------------------------------------
  typedef struct packed {
    logic              stream;
    logic [BeatsW-1:0] beats;
    logic [6:0]        off;
    logic [15:0]       len;
  } desc_t;
  desc_t desc;
  logic desc_valid, cmd_valid, cmd_pop;
  logic [$clog2(DescDepth):0] desc_level;
  payload_cmd_e cmd;
  logic [$bits(payload_cmd_e)-1:0] cmd_bits;
  // verilator lint_off UNUSEDSIGNAL
  logic desc_in_ready;               // room was reserved when the frame was held
  logic [4:0] cmd_level;
  // verilator lint_on UNUSEDSIGNAL

  rnic_fifo #(.Width($bits(desc_t)), .Depth(DescDepth)) u_desc (
    .clk_i, .rst_ni, .in_valid_i(desc_valid_i), .in_ready_o(desc_in_ready),
    .in_data_i({desc_stream_i, desc_beats_i, desc_off_i, desc_len_i}),
    .out_valid_o(desc_valid), .out_ready_i(desc_pop), .out_data_o(desc), .level_o(desc_level)
  );
  rnic_fifo #(.Width($bits(payload_cmd_e)), .Depth(16)) u_cmd (
    .clk_i, .rst_ni, .in_valid_i(pcmd_valid_i), .in_ready_o(pcmd_ready_o), .in_data_i(pcmd_i),
    .out_valid_o(cmd_valid), .out_ready_i(cmd_pop), .out_data_o(cmd_bits), .level_o(cmd_level)
  );
  assign cmd = payload_cmd_e'(cmd_bits);

  // ---- read ---------------------------------------------------------------------------------
  logic cur_q, out_q, final_beat, start, can_take;
  ptr_t head_q;              // first word of the frame of the next descriptor
  ptr_t head_next;
  logic [LaneW-1:0] off_q;
  logic [15:0] left_q;
  logic [LaneW:0] avail;     // bytes of the current word that may be payload
  seq_t seq_push_q, seq_pop_q, seq_cur_q, seq_out_q, seq_done;

  assign rd_en = cur_q && (!out_q || pl_ready_i);
  assign avail = (LaneW + 1)'(Bytes) - (LaneW + 1)'(off_q);
  assign final_beat = left_q <= 16'(avail);
  assign can_take = !cur_q || (rd_en && final_beat);
  assign desc_pop = desc_valid && can_take && (!desc.stream || cmd_valid);
  assign cmd_pop = desc_pop && desc.stream;
  assign start = cmd_pop && cmd == PayloadStream;
  assign head_next = head_q + ptr_t'(desc.beats);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      cur_q <= 1'b0;
      out_q <= 1'b0;
      head_q <= '0;
      free_q <= '0;
      seq_push_q <= '0;
      seq_pop_q <= '0;
    end else begin
      if (desc_valid_i) seq_push_q <= seq_push_q + 1'b1;
      if (desc_pop) begin
        head_q <= head_next;
        seq_pop_q <= seq_pop_q + 1'b1;
      end
      if (start) cur_q <= 1'b1;
      else if (rd_en && final_beat) cur_q <= 1'b0;
      if (rd_en) out_q <= 1'b1;
      else if (pl_ready_i) out_q <= 1'b0;
      // Everything in front of the frame being streamed is free.
      if (start) free_q <= head_q;
      else if (desc_pop) free_q <= head_next;
      else if (rd_en && final_beat) free_q <= head_q;
    end
    if (start) begin
      addr_q <= head_q + ptr_t'(32'(desc.off) >> LaneW);
      off_q <= desc.off[LaneW-1:0];
      left_q <= desc.len;
      seq_cur_q <= seq_pop_q;
    end else if (rd_en) begin
      addr_q <= addr_q + 1'b1;
      off_q <= '0;
      left_q <= left_q - 16'(avail);
    end
    if (rd_en) begin
      pl_off_o <= off_q;
      pl_cnt_o <= final_beat ? left_q[LaneW:0] : avail;
      pl_last_o <= final_beat;
      seq_out_q <= seq_cur_q;
    end
  end

  assign pl_valid_o = out_q;

  // ---- drain --------------------------------------------------------------------------------
  logic [3:0] settle_q;
  logic snap_q, done_q;
  seq_t snap_seq_q;
  // verilator lint_off UNUSEDSIGNAL
  seq_t behind;                // only the sign counts
  // verilator lint_on UNUSEDSIGNAL
  assign seq_done = out_q ? seq_out_q : cur_q ? seq_cur_q : seq_pop_q;
  assign behind = seq_done - snap_seq_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !drain_i) begin
      settle_q <= '0;
      snap_q <= 1'b0;
      done_q <= 1'b0;
    end else begin
      if (settle_q != 4'(SettleCycles)) settle_q <= settle_q + 4'd1;
      else snap_q <= 1'b1;
      if (snap_q && !behind[SeqW-1]) done_q <= 1'b1;
    end
    if (!snap_q) snap_seq_q <= seq_push_q;
  end
  assign drain_done_o = done_q;
  assign idle_o = reserved_q == '0 && !cur_q && !out_q && desc_level == '0;

endmodule
