// SPDX-License-Identifier: Apache-2.0
//
// Carries contexts between the modules and host memory, as qp_cache says (docs/qp-cache.md).
//
// A context is 32 lines of 64 bytes at mem_base + 2048 * QPN. Lines 0 to 2 always come (together: ctx); of the others those that are live,
// which follows from the three: of what was read out ln_live_i tells them, of what came from memory live_ctx_o asks and live_i answers in the same cycle.
//
// Lines of a slot are read and written at ln_*: one thing at a time, lines 0 to 2 at once (ln_no_o 0) or one of the others. What is asked for stays
// until ln_rsp_valid_i ends it. What was read is there from the next cycle on until the next of its kind is read.
//
// Moves (mv_*) are carried out in order: what is to be saved is read out and written (line 2 only if mv_save_attr_i); then memory is asked for what is to
// be loaded. Up to 2^LogMoves loads and as many saves are under way. Of a load the live lines come first, then the other three, and
// nothing of those when memory refuses one line; with mv_zero_i they are zeros and memory is not asked. fd_* and sd_* tell the ends, each in order.
// Live lines are asked for as soon as lines 0 to 2 have come, those of several loads one behind the other: what is live costs a second
// latency of memory, but no time for others.
//
// Throughput: a move without live lines (save and load) per 10 cycles at 512 bit, 3 * 512 / DataW if that is more. Latency of a load behind the
// answer of memory: 6 cycles. Back-pressure: mv_ready_o; none towards AXI reads (room is reserved).

module qp_mover #(
  parameter int unsigned DataW = 512,
  parameter int unsigned QpnW = 16,
  parameter int unsigned SlotW = 8,
  parameter int unsigned LogMoves = 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [63:11]      mem_base_i,
  // moves
  input  logic              mv_valid_i,
  output logic              mv_ready_o,
  input  logic [SlotW-1:0]  mv_slot_i,
  input  logic              mv_save_i,
  input  logic              mv_save_attr_i,   // with mv_save_i: line 2 too
  input  logic [QpnW-1:0]   mv_save_qpn_i,
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
  output logic              ln_load_o,
  output logic              ln_zero_o,        // with ln_load_o: a QP that is made
  output logic [SlotW-1:0]  ln_slot_o,
  output logic [QpnW-1:0]   ln_qpn_o,         // of the QP that is loaded
  output logic [4:0]        ln_no_o,
  output logic [2:0][511:0] ln_ctx_o,         // of a load, also with a live line
  output logic [511:0]      ln_data_o,
  input  logic              ln_rsp_valid_i,
  input  logic [2:0][511:0] ln_ctx_i,
  input  logic [31:0]       ln_live_i,        // of ln_ctx_i
  input  logic [511:0]      ln_data_i,
  output logic [2:0][511:0] live_ctx_o,
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
  localparam int unsigned NumMore = 16;      // live lines asked for and not loaded
  localparam int unsigned Beats = 512 / DataW;
  localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1;

  typedef logic [SlotW-1:0] slot_t;
  typedef logic [QpnW-1:0] qpn_t;
  typedef struct packed {
    slot_t slot;
    qpn_t  qpn;
    logic  zero;
  } fill_t;
  typedef struct packed {
    logic              bad;
    logic [31:0]       live;
    logic [2:0][511:0] ctx;
  } base_t;

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
  typedef enum logic [2:0] {OutIdle, OutCtx, OutLook, OutLive, OutFill} out_e;
  out_e        out_q;
  slot_t       out_slot_q;
  qpn_t        out_qpn_q;
  logic        out_attr_q;
  logic [31:0] out_live_q;   // lines still to be read out
  logic [4:0]  out_no;
  fill_t       fill_q;
  logic        out_ask, out_rsp, fill_push;
  logic        ln_busy_q, ln_in_q, ln_in;   // something is under way; for the way in
  logic [2:0]  wr_ctx_q;     // lines still to be written of what was read out last
  logic        wr_line_q;
  assign out_no = out_q == OutLive ? lowest(out_live_q) : '0;
  assign mv_ready_o = out_q == OutIdle;
  // what was read out stays where it is until it is written
  assign out_ask = (out_q inside {OutCtx, OutLive}) && wr_ctx_q == '0 && !wr_line_q;
  assign out_rsp = ln_rsp_valid_i && !ln_in;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q <= OutIdle;
      out_live_q <= '0;
    end else begin
      unique case (out_q)
        OutIdle: if (mv_valid_i) out_q <= mv_save_i ? OutCtx : OutFill;
        OutCtx: if (out_rsp) out_q <= OutLook;
        OutLook: out_q <= ln_live_i != '0 ? OutLive : OutFill;
        OutLive: if (out_rsp && (out_live_q & (out_live_q - 32'd1)) == '0) out_q <= OutFill;
        default: if (fill_push) out_q <= OutIdle;  // OutFill
      endcase
      if (out_q == OutLook) out_live_q <= ln_live_i;
      else if (out_q == OutLive && out_rsp) out_live_q <= out_live_q & (out_live_q - 32'd1);
    end
    if (out_q == OutIdle) begin
      out_slot_q <= mv_slot_i;
      out_qpn_q <= mv_save_qpn_i;
      out_attr_q <= mv_save_attr_i;
      fill_q <= '{slot: mv_slot_i, qpn: mv_fill_qpn_i, zero: mv_zero_i};
    end
  end

  // ---- writes: lines 0 to 2 in a burst, the others one at a time; whose answers end a save -----------------------------
  logic             wr_valid, wr_fire, wr_ready, wr_idle, wr_first, wr_end, wr_last, ends_ready, ends_valid, ends, b_bad_q;
  logic [4:0]       wr_no, wr_no_q;
  logic [1:0]       wr_ctx_no;
  qpn_t             wr_qpn_q;
  assign wr_valid = (wr_ctx_q != '0 || wr_line_q) && ends_ready;
  assign wr_fire = wr_valid && wr_ready;
  assign wr_ctx_no = wr_ctx_q[0] ? 2'd0 : wr_ctx_q[1] ? 2'd1 : 2'd2;
  assign wr_no = wr_line_q ? wr_no_q : 5'(wr_ctx_no);
  assign wr_first = wr_line_q || wr_ctx_q[0];
  assign wr_end = (wr_ctx_q & (wr_ctx_q - 3'd1)) == '0;
  // lines 0 and 1 are written at least: whether there are live lines is known before the last of them
  assign wr_last = out_live_q == '0;
  line_writer #(.DataW(DataW)) u_write (
    .clk_i, .rst_ni, .in_valid_i(wr_valid), .in_ready_o(wr_ready), .in_data_i(wr_line_q ? ln_data_i : ln_ctx_i[wr_ctx_no]),
    .in_first_i(wr_first), .in_more_i(wr_line_q ? 2'd0 : {wr_ctx_q[2], !wr_ctx_q[2]}), .in_addr_i(line_at(mem_base_i, wr_qpn_q, wr_no)),
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .idle_o(wr_idle)
  );
  // verilator lint_off PINCONNECTEMPTY
  // levels, and the ready of a FIFO that cannot be full: a place for each save under way
  rnic_fifo #(.Width(1), .Depth(64)) u_ends (
    .clk_i, .rst_ni, .in_valid_i(wr_fire && wr_end), .in_ready_o(ends_ready), .in_data_i(wr_last),
    .out_valid_o(ends_valid), .out_ready_i(b_valid_i), .out_data_o(ends), .level_o()
  );
  rnic_fifo #(.Width(1), .Depth(NumMoves)) u_saved (
    .clk_i, .rst_ni, .in_valid_i(b_valid_i && ends), .in_ready_o(), .in_data_i(b_bad_q || b_err_i),
    .out_valid_o(sd_valid_o), .out_ready_i(sd_ready_i), .out_data_o(sd_err_o), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_bad_q <= 1'b0;
      wr_ctx_q <= '0;
      wr_line_q <= 1'b0;
    end else begin
      if (b_valid_i) b_bad_q <= !ends && (b_bad_q || b_err_i);
      if (wr_fire) begin
        wr_line_q <= 1'b0;
        wr_ctx_q <= wr_ctx_q & (wr_ctx_q - 3'd1);
      end
      if (out_rsp && out_q == OutCtx) wr_ctx_q <= {out_attr_q, 2'b11};
      if (out_rsp && out_q == OutLive) wr_line_q <= 1'b1;
    end
    if (out_rsp) begin
      wr_no_q <= out_no;
      wr_qpn_q <= out_qpn_q;
    end
  end

  // ---- reads: lines 0 to 2 in one burst, in advance; live lines one at a time, when it is known which ------------------
  logic             more_push, order_ready, order_valid, order_pop, order_more, line_done, line_bad, r_bad_q, more_room;
  logic [1:0]       lines_q;
  qpn_t             order_qpn, asks_qpn, ask_qpn_q;
  logic             ar_valid_q, ar_free, asks_valid, asks_pop;
  logic [511:0]     line;
  logic [BeatW-1:0] r_beat_q;
  logic [31:0]      asks_live, ask_q;        // live lines to be asked for
  logic [$clog2(NumMore):0] more_cnt_q;
  logic             more_valid, more_pop, more_bad;
  logic [511:0]     more;
  assign ar_free = !ar_valid_q || ar_ready_i;
  assign more_room = more_cnt_q != ($clog2(NumMore)+1)'(NumMore);
  // loads that have begun go first
  assign more_push = ask_q != '0 && more_room && ar_free && order_ready;
  assign fill_push = out_q == OutFill && (fill_q.zero || (ar_free && order_ready && !(ask_q != '0 && more_room)));
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(1 + QpnW), .Depth(2 * NumMoves)) u_order (
    .clk_i, .rst_ni, .in_valid_i(more_push || (fill_push && !fill_q.zero)), .in_ready_o(order_ready),
    .in_data_i({more_push, fill_q.qpn}),
    .out_valid_o(order_valid), .out_ready_i(order_pop), .out_data_o({order_more, order_qpn}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign line_done = r_valid_i && r_beat_q == BeatW'(Beats - 1);
  assign line_bad = r_err_i || r_bad_q;
  assign order_pop = line_done && (order_more || lines_q == 2'd2);
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
      ask_q <= '0;
      more_cnt_q <= '0;
    end else begin
      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (more_push || (fill_push && !fill_q.zero)) ar_valid_q <= 1'b1;
      if (r_valid_i) begin
        r_beat_q <= line_done ? '0 : r_beat_q + 1'b1;
        r_bad_q <= !line_done && line_bad;
      end
      if (line_done && !order_more) lines_q <= order_pop ? '0 : lines_q + 2'd1;
      if (asks_pop) ask_q <= asks_live;
      else if (more_push) ask_q <= ask_q & (ask_q - 32'd1);
      more_cnt_q <= more_cnt_q + ($clog2(NumMore)+1)'(more_push) - ($clog2(NumMore)+1)'(more_pop);
    end
    if (asks_pop) ask_qpn_q <= asks_qpn;
    if (more_push) begin
      ar_addr_o <= {line_at(mem_base_i, ask_qpn_q, lowest(ask_q)), 6'd0};
      ar_len_o <= 8'(Beats - 1);
    end else if (fill_push && !fill_q.zero) begin
      ar_addr_o <= {line_at(mem_base_i, fill_q.qpn, 5'd0), 6'd0};
      ar_len_o <= 8'(3 * Beats - 1);
    end
  end
  assign ar_valid_o = ar_valid_q;

  // lines 0 to 2 have come: which ones are live
  base_t base_in, base;
  logic  came_q, came_bad_q, base_valid, base_pop;
  logic [2:0][511:0] came_ctx_q;
  qpn_t  came_qpn_q;
  assign live_ctx_o = came_ctx_q;
  always_comb begin
    base_in = '{bad: came_bad_q, live: came_bad_q ? '0 : live_i & ~32'd15, ctx: came_ctx_q};
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) came_q <= 1'b0;
    else came_q <= line_done && order_valid && !order_more && order_pop;
    if (line_done && !order_more) begin
      came_ctx_q[lines_q] <= line;
      came_bad_q <= line_bad || (lines_q != '0 && came_bad_q);
      came_qpn_q <= order_qpn;
    end
  end
  assign asks_pop = asks_valid && (ask_q == '0 || (more_push && (ask_q & (ask_q - 32'd1)) == '0));
  // verilator lint_off PINCONNECTEMPTY
  // levels; room was reserved: loads under way are at most NumMoves
  rnic_fifo #(.Width(QpnW + 32), .Depth(NumMoves)) u_asks (
    .clk_i, .rst_ni, .in_valid_i(came_q && base_in.live != '0), .in_ready_o(), .in_data_i({came_qpn_q, base_in.live}),
    .out_valid_o(asks_valid), .out_ready_i(asks_pop), .out_data_o({asks_qpn, asks_live}), .level_o()
  );
  rnic_fifo #(.Width($bits(base_t)), .Depth(NumMoves)) u_base (
    .clk_i, .rst_ni, .in_valid_i(came_q), .in_ready_o(), .in_data_i(base_in),
    .out_valid_o(base_valid), .out_ready_i(base_pop), .out_data_o(base), .level_o()
  );
  rnic_fifo #(.Width(513), .Depth(NumMore)) u_more (
    .clk_i, .rst_ni, .in_valid_i(line_done && order_valid && order_more), .in_ready_o(), .in_data_i({line_bad, line}),
    .out_valid_o(more_valid), .out_ready_i(more_pop), .out_data_o({more_bad, more}), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- the way in ---------------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {InIdle, InLive, InCtx, InDone} in_e;
  in_e         in_q;
  fill_t       fill;
  logic        fill_valid, fill_pop, in_ask, in_rsp, in_bad_q, in_skip;
  logic [31:0] in_live_q;       // live lines still to be loaded
  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(fill_t)), .Depth(NumMoves)) u_fills (
    .clk_i, .rst_ni, .in_valid_i(fill_push), .in_ready_o(), .in_data_i(fill_q),
    .out_valid_o(fill_valid), .out_ready_i(fill_pop), .out_data_o(fill), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign fill_pop = fd_valid_o && fd_ready_i;
  assign base_pop = fill_pop && !fill.zero;
  // behind a line that memory refused the others are only taken
  assign in_skip = in_q == InLive && more_valid && (more_bad || in_bad_q);
  assign in_ask = (in_q == InLive && more_valid && !in_skip) || in_q == InCtx;
  assign in_rsp = ln_rsp_valid_i && ln_in;
  assign more_pop = in_q == InLive && (in_skip || in_rsp);
  assign fd_valid_o = in_q == InDone;
  assign fd_err_o = in_bad_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q <= InIdle;
    end else begin
      unique case (in_q)
        InIdle: if (fill_valid && (fill.zero || base_valid))
          in_q <= fill.zero ? InCtx : base.bad ? InDone : base.live != '0 ? InLive : InCtx;
        InLive: if (more_pop && (in_live_q & (in_live_q - 32'd1)) == '0) in_q <= in_skip ? InDone : InCtx;
        InCtx: if (in_rsp) in_q <= InDone;
        default: if (fd_ready_i) in_q <= InIdle;  // InDone
      endcase
    end
    if (in_q == InIdle) begin
      in_live_q <= base.live;
      in_bad_q <= !fill.zero && base.bad;
    end else if (more_pop) begin
      in_live_q <= in_live_q & (in_live_q - 32'd1);
      in_bad_q <= in_skip;
    end
  end

  // ---- lines: one thing at a time, loads first --------------------------------------------------------------------------
  assign ln_in = ln_busy_q ? ln_in_q : in_ask;
  assign ln_valid_o = ln_busy_q || in_ask || out_ask;
  assign ln_load_o = ln_in;
  assign ln_zero_o = fill.zero;
  assign ln_slot_o = ln_in ? fill.slot : out_slot_q;
  assign ln_qpn_o = fill.qpn;
  assign ln_no_o = !ln_in ? out_no : in_q == InLive ? lowest(in_live_q) : '0;
  assign ln_ctx_o = base.ctx;
  assign ln_data_o = more;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ln_busy_q <= 1'b0;
    else ln_busy_q <= ln_valid_o && !ln_rsp_valid_i;
    if (!ln_busy_q) ln_in_q <= in_ask;
  end

  assign idle_o = out_q == OutIdle && !mv_valid_i && !fill_valid && wr_ctx_q == '0 && !wr_line_q && !ends_valid && !sd_valid_o && wr_idle;

  // bursts end where lines end
  logic unused;
  assign unused = ^{r_last_i, live_i[3:0]};

endmodule
