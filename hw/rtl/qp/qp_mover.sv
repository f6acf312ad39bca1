// SPDX-License-Identifier: Apache-2.0
//
// Carries contexts between the modules and host memory, as qp_cache says (docs/qp-cache.md).
//
// A context is 32 lines of 64 bytes at mem_base + 2048 * QPN: 0 requester half, 1 common part, 2 responder half; the others hold
// something only now and then, which their half tells: live_no_o, live_data_o ask, live_i answers in the same cycle, which lines go with line 0 or 2.
//
// Lines of a slot are read and written at ln_*: one at a time, ln_rsp_valid_i ends it (with the line, if it was read).
//
// Moves (mv_*) are carried out in order: what is to be saved is read out, line by line, and written; then memory is asked for what is to
// be loaded. Up to 2^LogMoves loads and as many saves are under way. Of a load the live lines come first, then the
// common part, then the halves, and nothing when memory refuses one of its lines; fd_* and sd_* tell the ends, each in order.
//
// Throughput: a line per 3 cycles or 512 / DataW. Latency: a load without live lines is over 5 cycles per line behind the answer of memory.
// Back-pressure: mv_ready_o; none towards AXI reads (room is reserved).

module qp_mover #(
  parameter int unsigned DataW = 512,
  parameter int unsigned QpnW = 16,
  parameter int unsigned SlotW = 8,
  parameter int unsigned LogMoves = 3
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [63:11]      mem_base_i,
  // moves
  input  logic              mv_valid_i,
  output logic              mv_ready_o,
  input  logic [SlotW-1:0]  mv_slot_i,
  input  logic [2:0]        mv_save_i,
  input  logic [QpnW-1:0]   mv_save_qpn_i,
  input  logic [1:0]        mv_fill_i,
  input  logic              mv_common_i,
  input  logic              mv_zero_i,
  input  logic [QpnW-1:0]   mv_fill_qpn_i,
  output logic              fd_valid_o,
  input  logic              fd_ready_i,
  output logic              fd_err_o,
  output logic              sd_valid_o,
  input  logic              sd_ready_i,
  output logic              sd_err_o,
  // lines of slots
  output logic              ln_valid_o,
  input  logic              ln_ready_i,
  output logic              ln_load_o,
  output logic [SlotW-1:0]  ln_slot_o,
  output logic [4:0]        ln_no_o,
  output logic [511:0]      ln_data_o,
  input  logic              ln_rsp_valid_i,
  input  logic [511:0]      ln_data_i,
  output logic [4:0]        live_no_o,
  output logic [511:0]      live_data_o,
  input  logic [31:0]       live_i,
  // AXI clients
  output logic              ar_valid_o,
  input  logic              ar_ready_i,
  output logic [63:0]       ar_addr_o,
  output logic [7:0]        ar_len_o,
  input  logic              r_valid_i,
  input  logic [DataW-1:0]  r_data_i,
  input  logic              r_last_i,
  input  logic              r_err_i,
  output logic              aw_valid_o,
  input  logic              aw_ready_i,
  output logic [63:0]       aw_addr_o,
  output logic [7:0]        aw_len_o,
  output logic              w_valid_o,
  input  logic              w_ready_i,
  output logic [DataW-1:0]  w_data_o,
  output logic [DataW/8-1:0] w_strb_o,
  output logic              w_last_o,
  input  logic              b_valid_i,
  input  logic              b_err_i,
  output logic              idle_o
);

  localparam int unsigned NumMoves = 1 << LogMoves;
  localparam int unsigned Beats = 512 / DataW;
  localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1;

  typedef logic [SlotW-1:0] slot_t;
  typedef logic [QpnW-1:0] qpn_t;
  typedef struct packed {
    slot_t      slot;
    qpn_t       qpn;
    logic [2:0] lines;      // 2: responder half, 1: common part, 0: requester half
    logic       zero;
  } fill_t;

  function automatic logic [63:6] line_at(input logic [63:11] base, input qpn_t qpn, input logic [4:0] line);
    return {base, 5'd0} + {(64-QpnW-11)'(0), qpn, line};
  endfunction
  function automatic logic [4:0] lowest(input logic [31:0] mask);
    logic [4:0] n;
    n = '0;
    for (int i = 31; i >= 0; i--) if (mask[i]) n = 5'(i);
    return n;
  endfunction

  // ---- the way out: read out what is to be saved, then ask for what is to be loaded ---------------------------------
  typedef enum logic [2:0] {OutIdle, OutAsk, OutWait, OutWrite, OutFill} out_e;
  out_e        out_q;
  slot_t       out_slot_q;
  qpn_t        out_qpn_q;
  logic [31:0] todo_q;       // lines still to be saved
  logic [4:0]  out_no;
  fill_t       fill_q;
  logic        out_ask, out_rsp, wr_room, fill_push;
  logic        ln_busy_q, ln_load_q;   // a line is under way, to be loaded
  assign out_no = lowest(todo_q);
  assign mv_ready_o = out_q == OutIdle;
  assign out_ask = out_q == OutAsk;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q <= OutIdle;
    end else begin
      unique case (out_q)
        OutIdle: if (mv_valid_i) out_q <= mv_save_i != '0 ? OutAsk : OutFill;
        OutAsk: if (ln_valid_o && ln_ready_i && !ln_load_o) out_q <= OutWait;
        OutWait: if (out_rsp) out_q <= OutWrite;
        OutWrite: if (wr_room) out_q <= todo_q != '0 ? OutAsk : OutFill;
        default: if (fill_push) out_q <= OutIdle;  // OutFill
      endcase
    end
    if (out_q == OutIdle) begin
      out_slot_q <= mv_slot_i;
      out_qpn_q <= mv_save_qpn_i;
      todo_q <= {29'd0, mv_save_i[1], mv_save_i[2], mv_save_i[0]};
      fill_q <= '{slot: mv_slot_i, qpn: mv_fill_qpn_i, lines: {mv_fill_i[1], mv_common_i, mv_fill_i[0]}, zero: mv_zero_i};
    end else if (out_rsp) begin
      // lines 3 to 31 that go with this half
      todo_q <= (todo_q & ~(32'd1 << out_no)) | (out_no == 5'd0 || out_no == 5'd2 ? live_i & ~32'd7 : '0);
    end
  end

  assign out_rsp = ln_rsp_valid_i && ln_busy_q && !ln_load_q;

  // ---- writes: one line at a time; whose answers end a save --------------------------------------------------------
  logic [511:0]     rd_data_q;   // read out while the one before is written
  logic             wr_ready, wr_idle, ends_ready, ends_valid, ends, b_bad_q;
  logic [4:0]       rd_no_q;
  assign wr_room = out_q == OutWrite && wr_ready && ends_ready;
  entry_writer #(.DataW(DataW), .EntryW(512)) u_write (
    .clk_i, .rst_ni, .in_valid_i(out_q == OutWrite && ends_ready), .in_ready_o(wr_ready), .in_data_i(rd_data_q),
    .in_addr_i(line_at(mem_base_i, out_qpn_q, rd_no_q)),
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .idle_o(wr_idle)
  );
  // verilator lint_off PINCONNECTEMPTY
  // levels, and the ready of a FIFO that cannot be full: a place for each save under way
  rnic_fifo #(.Width(1), .Depth(64)) u_ends (
    .clk_i, .rst_ni, .in_valid_i(wr_room), .in_ready_o(ends_ready), .in_data_i(todo_q == '0),
    .out_valid_o(ends_valid), .out_ready_i(b_valid_i), .out_data_o(ends), .level_o()
  );
  rnic_fifo #(.Width(1), .Depth(NumMoves)) u_saved (
    .clk_i, .rst_ni, .in_valid_i(b_valid_i && ends), .in_ready_o(), .in_data_i(b_bad_q || b_err_i),
    .out_valid_o(sd_valid_o), .out_ready_i(sd_ready_i), .out_data_o(sd_err_o), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  always_ff @(posedge clk_i) begin
    if (!rst_ni) b_bad_q <= 1'b0;
    else if (b_valid_i) b_bad_q <= !ends && (b_bad_q || b_err_i);
    if (out_rsp) begin
      rd_data_q <= ln_data_i;
      rd_no_q <= out_no;
    end
  end

  // ---- reads: of the lines that always come, one burst for a load, in advance; of the others one at a time --------------
  logic             ask_more, more_push, order_ready, order_valid, order_pop, order_more, line_done, line_bad, r_bad_q;
  logic [1:0]       order_lines, base_lines, lines_q;
  logic [4:0]       base_first, more_no;
  fill_t            fill;
  logic             ar_valid_q, ar_free;
  logic [511:0]     line;
  logic [BeatW-1:0] r_beat_q;
  assign base_first = fill_q.lines[0] ? 5'd0 : fill_q.lines[1] ? 5'd1 : 5'd2;
  assign base_lines = 2'(fill_q.lines[0]) + 2'(fill_q.lines[1]) + 2'(fill_q.lines[2]);
  assign ar_free = !ar_valid_q || ar_ready_i;
  // what is asked for by a load that is being carried out goes first
  assign more_push = ask_more && ar_free && order_ready;
  assign fill_push = out_q == OutFill && (fill_q.zero || (ar_free && order_ready && !ask_more));
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(3), .Depth(2 * NumMoves)) u_order (
    .clk_i, .rst_ni, .in_valid_i(more_push || (fill_push && !fill_q.zero)), .in_ready_o(order_ready),
    .in_data_i(more_push ? {1'b1, 2'd1} : {1'b0, base_lines}),
    .out_valid_o(order_valid), .out_ready_i(order_pop), .out_data_o({order_more, order_lines}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign line_done = r_valid_i && r_beat_q == BeatW'(Beats - 1);
  assign line_bad = r_err_i || r_bad_q;
  assign order_pop = line_done && lines_q + 2'd1 == order_lines;
  if (Beats > 1) begin : gen_collect
    logic [511-DataW:0] part_q;
    always_ff @(posedge clk_i) if (r_valid_i) part_q <= (512-DataW)'({r_data_i, part_q} >> DataW);
    assign line = {r_data_i, part_q};
  end else begin : gen_straight
    assign line = r_data_i;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
      r_beat_q <= '0;
      r_bad_q <= 1'b0;
      lines_q <= '0;
    end else begin
      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (more_push || (fill_push && !fill_q.zero)) ar_valid_q <= 1'b1;
      if (r_valid_i) begin
        r_beat_q <= line_done ? '0 : r_beat_q + 1'b1;
        r_bad_q <= !line_done && line_bad;
      end
      if (line_done) lines_q <= order_pop ? '0 : lines_q + 2'd1;
    end
    if (more_push) begin
      ar_addr_o <= {line_at(mem_base_i, fill.qpn, more_no), 6'd0};
      ar_len_o <= 8'(Beats - 1);
    end else if (fill_push && !fill_q.zero) begin
      ar_addr_o <= {line_at(mem_base_i, fill_q.qpn, base_first), 6'd0};
      ar_len_o <= 8'(32'(base_lines) * Beats - 1);
    end
  end
  assign ar_valid_o = ar_valid_q;

  // ---- the way in ---------------------------------------------------------------------------------------------------
  typedef enum logic [2:0] {InIdle, InTake, InMore, InMoreWait, InMoreLoad, InLoad, InDone} in_e;
  in_e          in_q;
  logic         fill_valid, base_valid, base_pop, base_bad, more_valid, more_pop, more_bad, in_ask, in_rsp, in_bad_q;
  logic [511:0] base, more;
  logic [511:0] base_q[3];
  logic [31:0]  live_q;          // lines still to be loaded beside the three
  logic [2:0]   take_q, load_q;  // of the three: to be taken from memory, to be loaded
  logic [1:0]   take_no, load_no;
  // verilator lint_off PINCONNECTEMPTY
  // levels; room was reserved: loads under way are at most NumMoves, of three lines
  rnic_fifo #(.Width($bits(fill_t)), .Depth(NumMoves)) u_fills (
    .clk_i, .rst_ni, .in_valid_i(fill_push), .in_ready_o(), .in_data_i(fill_q),
    .out_valid_o(fill_valid), .out_ready_i(fd_valid_o && fd_ready_i), .out_data_o(fill), .level_o()
  );
  rnic_fifo #(.Width(513), .Depth(4 * NumMoves)) u_base (
    .clk_i, .rst_ni, .in_valid_i(line_done && order_valid && !order_more), .in_ready_o(), .in_data_i({line_bad, line}),
    .out_valid_o(base_valid), .out_ready_i(base_pop), .out_data_o({base_bad, base}), .level_o()
  );
  rnic_fifo #(.Width(513), .Depth(2)) u_more (
    .clk_i, .rst_ni, .in_valid_i(line_done && order_valid && order_more), .in_ready_o(), .in_data_i({line_bad, line}),
    .out_valid_o(more_valid), .out_ready_i(more_pop), .out_data_o({more_bad, more}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign take_no = take_q[0] ? 2'd0 : take_q[1] ? 2'd1 : 2'd2;
  // attributes first: with them the rest may go to work
  assign load_no = load_q[1] ? 2'd1 : load_q[0] ? 2'd0 : 2'd2;
  assign more_no = lowest(live_q);
  assign ask_more = in_q == InMore;
  // the question for live lines is the other way's when a line to be saved comes
  assign base_pop = in_q == InTake && take_q != '0 && base_valid && !out_rsp;
  assign more_pop = (in_q == InMoreLoad && in_rsp) || (in_q == InMoreWait && more_valid && more_bad);
  assign in_ask = in_q == InMoreLoad || (in_q == InLoad && load_q != '0);
  assign in_rsp = ln_rsp_valid_i && ln_busy_q && ln_load_q;
  assign fd_valid_o = in_q == InDone;
  assign fd_err_o = in_bad_q;
  assign live_no_o = out_rsp ? out_no : 5'(take_no);
  assign live_data_o = out_rsp ? ln_data_i : base;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q <= InIdle;
    end else begin
      unique case (in_q)
        InIdle: if (fill_valid) in_q <= fill.zero ? InLoad : InTake;
        InTake: if (take_q == '0) in_q <= in_bad_q ? InDone : live_q != '0 ? InMore : InLoad;
        InMore: if (more_push) in_q <= InMoreWait;
        InMoreWait: if (more_valid) in_q <= more_bad ? InDone : InMoreLoad;
        InMoreLoad: if (in_rsp) in_q <= (live_q & (live_q - 32'd1)) != '0 ? InMore : InLoad;
        InLoad: if (load_q == '0) in_q <= InDone;
        default: if (fd_ready_i) in_q <= InIdle;  // InDone
      endcase
    end
    if (in_q == InIdle) begin
      take_q <= fill.lines;
      load_q <= fill.lines;
      live_q <= '0;
      in_bad_q <= 1'b0;
      for (int i = 0; i < 3; i++) base_q[i] <= '0;
    end
    if (base_pop) begin
      base_q[take_no] <= base;
      take_q[take_no] <= 1'b0;
      in_bad_q <= in_bad_q || base_bad;
      if (take_no != 2'd1) live_q <= live_q | (live_i & ~32'd7);
    end
    if (in_q == InMoreWait && more_valid && more_bad) in_bad_q <= 1'b1;
    if (in_q == InMoreLoad && in_rsp) live_q <= live_q & (live_q - 32'd1);
    if (in_q == InLoad && in_rsp) load_q[load_no] <= 1'b0;
  end

  // ---- lines: one at a time, loads first --------------------------------------------------------------------------------
  assign ln_valid_o = !ln_busy_q && (in_ask || out_ask);
  assign ln_load_o = in_ask;
  assign ln_slot_o = in_ask ? fill.slot : out_slot_q;
  assign ln_no_o = !in_ask ? out_no : in_q == InMoreLoad ? more_no : 5'(load_no);
  assign ln_data_o = in_q == InMoreLoad ? more : base_q[load_no];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ln_busy_q <= 1'b0;
    else if (ln_busy_q) ln_busy_q <= !ln_rsp_valid_i;
    else ln_busy_q <= ln_valid_o && ln_ready_i;
    if (!ln_busy_q) ln_load_q <= ln_load_o;
  end

  assign idle_o = out_q == OutIdle && !mv_valid_i && !fill_valid && !ends_valid && !sd_valid_o && wr_idle && !ln_busy_q;

  // bursts end where lines end
  logic unused;
  assign unused = ^{r_last_i, live_i[2:0]};

endmodule
