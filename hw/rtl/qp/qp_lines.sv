// SPDX-License-Identifier: Apache-2.0
//
// Between qp_mover and the modules that keep state per QP (docs/qp-cache.md): packs what they save and load through their ctx_* ports into lines of 64
// bytes, tells which of the lines that are not always there are live, and asks all modules about one slot (probe).
//
//   line 0      requester half, and the first attributes   4, 5     WQE of an SRQ that is open
//   line 1      responder half, and the other attributes   6, 7     values of atomics, four each
//   line 2      attributes                                 8 to 15  messages in flight, 16 each
//                                                          16 to 31 READs and atomics outstanding, two lines each
//
// Line 2 holds attributes only: it changes with a command or an error only. Attributes in lines 0 and 1 change with those too; these lines are
// saved whenever line 2 is.
//
// ln_*: lines 0 to 2 at once (ln_no_i 0), which asks all modules at the same time, or one of the others, which takes one entry after the other, live ones only.
// A request stays until ln_rsp_valid_o. What was read is in ln_ctx_o or ln_data_o from the next cycle on, until the next of its kind is
// read. A live line is read behind lines 0 to 2 of its QP, and loaded before them. Of two lines that hold one entry the first is loaded first.
// A load gives the attributes to qp_table before the other modules have theirs: these may go to work at once. ln_zero_i loads a QP that is made: all zero, with its
// QPN, in state NONE.
//
// probe_*: the answers are those of all modules of one cycle, a cycle later.
//
// Throughput, if no module refuses: lines 0 to 2 read in 3 cycles, loaded in 4; another line 2 cycles and 3 for each entry that is live. A module may
// refuse for some cycles.

module qp_lines
  import rnic_pkg::*;
  import requester_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  // lines of slots (qp_mover)
  input  logic                   ln_valid_i,
  input  logic                   ln_load_i,
  input  logic                   ln_zero_i,
  input  qp_idx_t                ln_slot_i,
  input  qpn_t                   ln_qpn_i,
  input  logic [4:0]             ln_no_i,
  input  logic [2:0][511:0]      ln_ctx_i,
  input  logic [511:0]           ln_data_i,
  output logic                   ln_rsp_valid_o,
  output logic [2:0][511:0]      ln_ctx_o,
  output logic [31:0]            ln_live_o,
  output logic [511:0]           ln_data_o,
  input  logic [2:0][511:0]      live_ctx_i,
  output logic [31:0]            live_o,
  // what is under way (qp_cache)
  input  qp_idx_t                probe_slot_i,
  output logic                   probe_busy_o,
  output logic                   probe_dirty_o,
  // modules
  output qp_idx_t                qp_table_probe_qp_o,
  input  logic                   qp_table_busy_i,
  input  logic                   qp_table_dirty_i,
  output logic                   qp_table_ctx_valid_o,
  input  logic                   qp_table_ctx_ready_i,
  output logic                   qp_table_ctx_load_o,
  output qp_idx_t                qp_table_ctx_qp_o,
  output qp_attr_t               qp_table_ctx_o,
  input  qp_attr_t               qp_table_ctx_i,

  output qp_idx_t                rx_transport_probe_qp_o,
  input  logic                   rx_transport_busy_i,
  output logic                   rx_transport_ctx_valid_o,
  input  logic                   rx_transport_ctx_ready_i,
  output logic                   rx_transport_ctx_load_o,
  output qp_idx_t                rx_transport_ctx_qp_o,
  output rsp_state_t             rx_transport_ctx_o,
  input  rsp_state_t             rx_transport_ctx_i,

  output qp_idx_t                rq_cache_probe_qp_o,
  input  logic                   rq_cache_busy_i,
  output logic                   rq_cache_ctx_valid_o,
  input  logic                   rq_cache_ctx_ready_i,
  output logic                   rq_cache_ctx_load_o,
  output logic                   rq_cache_ctx_word_o,
  output qp_idx_t                rq_cache_ctx_qp_o,
  output rq_keep_t               rq_cache_ctx_o,
  input  rq_keep_t               rq_cache_ctx_i,
  output logic [3:0]             rq_cache_ctx_at_o,
  output rq_entry_t              rq_cache_ctx_entry_o,
  input  rq_entry_t              rq_cache_ctx_entry_i,

  output qp_idx_t                rx_payload_writer_probe_qp_o,
  input  logic                   rx_payload_writer_busy_i,
  output logic                   rx_payload_writer_ctx_load_o,
  output qp_idx_t                rx_payload_writer_ctx_qp_o,
  output logic                   rx_payload_writer_ctx_o,
  input  logic                   rx_payload_writer_ctx_i,

  output qp_idx_t                read_responder_probe_qp_o,
  input  logic                   read_responder_busy_i,
  output logic                   read_responder_ctx_valid_o,
  input  logic                   read_responder_ctx_ready_i,
  output logic                   read_responder_ctx_load_o,
  output logic                   read_responder_ctx_word_o,
  output qp_idx_t                read_responder_ctx_qp_o,
  output rsp_keep_t              read_responder_ctx_o,
  input  rsp_keep_t              read_responder_ctx_i,
  output logic [2:0]             read_responder_ctx_at_o,
  output rsp_value_t             read_responder_ctx_value_o,
  input  rsp_value_t             read_responder_ctx_value_i,

  output qp_idx_t                requester_probe_qp_o,
  input  logic                   requester_busy_i,
  output logic                   requester_ctx_valid_o,
  input  logic                   requester_ctx_ready_i,
  output logic                   requester_ctx_load_o,
  output keep_e                  requester_ctx_what_o,
  output qp_idx_t                requester_ctx_qp_o,
  output qpn_t                   requester_ctx_qpn_o,     // with a load of KeepState
  output logic [LogInflight-1:0] requester_ctx_at_o,
  output req_keep_t              requester_ctx_o,
  output flight_t                requester_ctx_flight_o,
  output rd_entry_t              requester_ctx_entry_o,
  input  logic                   requester_ctx_rsp_valid_i,
  input  req_keep_t              requester_ctx_i,
  input  flight_t                requester_ctx_flight_i,
  input  rd_entry_t              requester_ctx_entry_i,

  output qp_idx_t                ack_queue_probe_qp_o,
  input  logic                   ack_queue_busy_i,

  output qp_idx_t                tx_egress_probe_qp_o,
  input  logic                   tx_egress_busy_i
);

  // ---- probe ---------------------------------------------------------------------------------------------------
  assign qp_table_probe_qp_o = probe_slot_i;
  assign rx_transport_probe_qp_o = probe_slot_i;
  assign rq_cache_probe_qp_o = probe_slot_i;
  assign rx_payload_writer_probe_qp_o = probe_slot_i;
  assign read_responder_probe_qp_o = probe_slot_i;
  assign requester_probe_qp_o = probe_slot_i;
  assign ack_queue_probe_qp_o = probe_slot_i;
  assign tx_egress_probe_qp_o = probe_slot_i;
  always_ff @(posedge clk_i) begin
    probe_busy_o <= qp_table_busy_i || rx_transport_busy_i || rq_cache_busy_i || rx_payload_writer_busy_i || read_responder_busy_i ||
                    requester_busy_i || ack_queue_busy_i || tx_egress_busy_i;
    probe_dirty_o <= qp_table_dirty_i;
  end

  // ---- layout ---------------------------------------------------------------------------------------------------
  typedef struct packed {
    rsp_state_t state;
    rq_keep_t   rq;       // srq is not kept: the attributes tell it
    rsp_keep_t  reads;
    logic       bad;      // rx_payload_writer
  } rsp_half_t;
  typedef struct packed {
    qp_attr_t   attr;
    req_keep_t  req;
    rsp_half_t  rsp;
  } ctx_t;
  typedef logic [2:0][511:0] lines_t;

  localparam int unsigned AttrW = $bits(qp_attr_t);
  localparam int unsigned Attr0W = 512 - $bits(req_keep_t);   // of them in line 0; line 2 has the last 512
  localparam int unsigned Attr1W = AttrW - 512 - Attr0W;      // in line 1
  // a message in flight has a PSN or a status
  localparam int unsigned FlightW = $bits(flight_t) - 4;
  localparam int unsigned ReadW = $bits(rd_entry_t);
  localparam int unsigned WqeW = $bits(rq_entry_t);
  if ($bits(req_keep_t) >= 512 || AttrW <= 512 + Attr0W || Attr1W + $bits(rsp_half_t) > 512)
    $error("a context does not fit into its three lines");
  if (FlightW > 32 || ReadW > 1024 || WqeW > 1024 || $bits(rsp_value_t) > 128 || LogInflight > 7 || LogMaxRd > 3)
    $error("an entry does not fit into its place");

  function automatic lines_t pack(input ctx_t c);
    lines_t l;
    l[0] = {c.attr[AttrW-1-:Attr0W], c.req};
    l[1] = 512'({c.attr[512+:Attr1W], c.rsp});
    l[2] = c.attr[511:0];
    return l;
  endfunction
  // Functions look at part of their arguments.
  // verilator lint_off UNUSEDSIGNAL
  function automatic ctx_t unpack(input lines_t l);
    ctx_t c;
    c.attr = {l[0][511-:Attr0W], l[1][$bits(rsp_half_t)+:Attr1W], l[2]};
    c.req = l[0][$bits(req_keep_t)-1:0];
    c.rsp = l[1][$bits(rsp_half_t)-1:0];
    return c;
  endfunction

  // What is live: messages in flight are `num` from `first` on; READs and atomics likewise; the first `values` atomics.
  typedef struct packed {
    logic                   wqe;
    logic [3:0]             wqe_at;
    logic [3:0]             values;
    logic [LogMaxRd-1:0]    rd_first;
    logic [LogMaxRd:0]      rd_num;
    logic [LogInflight-1:0] first;
    logic [LogInflight:0]   num;
  } live_t;
  function automatic logic is_flight(input live_t l, input logic [LogInflight-1:0] at);
    return {1'b0, LogInflight'(at - l.first)} < l.num;
  endfunction
  function automatic logic is_read(input live_t l, input logic [LogMaxRd-1:0] at);
    return {1'b0, LogMaxRd'(at - l.rd_first)} < l.rd_num;
  endfunction
  // verilator lint_on UNUSEDSIGNAL
  function automatic logic [31:0] lines_of(input live_t l);
    logic [31:0] m;
    logic [LogInflight+1:0] past;    // behind the last one, from the first of the first one's line on
    m = '0;
    m[5:4] = {2{l.wqe}};
    m[6] = l.values != '0;
    m[7] = l.values > 4'd4;
    past = (LogInflight+2)'(l.first[3:0]) + (LogInflight+2)'(l.num);
    for (int i = 0; i < 8; i++)
      m[8+i] = l.num != '0 && {{(LogInflight-1){1'b0}}, 3'(3'(i) - l.first[6:4])} < (LogInflight+2)'((past + (LogInflight+2)'(15)) >> 4);
    for (int i = 0; i < int'(MaxRdAtomic); i++) m[16+2*i+:2] = {2{is_read(l, LogMaxRd'(i))}};
    return m;
  endfunction

  // ---- what was read, what is loaded --------------------------------------------------------------------------------------
  ctx_t  saved_q, load, load_in;
  live_t saved_live, load_live, live, came_live;
  // of what is saved, what is loaded, and what came from memory. No function: activity.pl takes models apart by their variables, and one
  // that holds a whole context would tie them all together.
  ctx_t  live_in[3];
  live_t live_out[3];
  assign live_in[0] = saved_q;
  assign live_in[1] = load_in;
  assign live_in[2] = unpack(live_ctx_i);
  assign saved_live = live_out[0];
  assign load_live = live_out[1];
  assign came_live = live_out[2];
  for (genvar i = 0; i < 3; i++) begin : gen_live
    wqe_idx_t ahead;
    // a flush may have completed what was never sent; the one behind the newest may have begun, if it is posted
    assign ahead = live_in[i].req.seg.max_next - live_in[i].req.cpl.ci;
    assign live_out[i] = '{
      wqe: live_in[i].rsp.rq.open && live_in[i].attr.has_srq,
      wqe_at: live_in[i].rsp.rq.ci[3:0] - 4'd1,
      values: live_in[i].rsp.reads.kept[3] ? 4'd8 : live_in[i].rsp.reads.kept,
      rd_first: live_in[i].req.rd.done[LogMaxRd-1:0],
      rd_num: live_in[i].req.rd.made - live_in[i].req.rd.done,
      first: live_in[i].req.cpl.ci[LogInflight-1:0],
      num: ahead < 16'(1 << LogInflight) ? ahead[LogInflight:0] + (LogInflight+1)'(live_in[i].req.sched.pi != live_in[i].req.seg.max_next) :
           ahead == 16'(1 << LogInflight) ? ahead[LogInflight:0] : '0
    };
  end
  assign live = ln_load_i ? load_live : saved_live;
  assign ln_ctx_o = pack(saved_q);
  assign ln_live_o = lines_of(saved_live);
  assign live_o = lines_of(came_live);
  assign load_in = unpack(ln_ctx_i);
  always_comb begin
    load = load_in;
    if (ln_zero_i) begin
      load = '0;
      load.attr.state = QpNone;
    end
    load.attr.qpn = ln_qpn_i;
    load.rsp.rq.srq = load.attr.has_srq;
  end

  // ---- lines 0 to 2: all modules at once --------------------------------------------------------------------------------
  localparam int unsigned Table = 0;
  localparam int unsigned Transport = 1;
  localparam int unsigned Rq = 2;
  localparam int unsigned Responder = 3;
  localparam int unsigned Requester = 4;
  localparam int unsigned Writer = 5;
  logic [5:0] sent_q, ask, ready, fire, fire_q;   // had it; has it in this cycle
  logic       ctx_op, ctx_end, req_end_q;
  assign ctx_op = ln_valid_i && ln_no_i == '0;
  assign ask = ~sent_q & {6{ctx_op}} & {{5{!ln_load_i || sent_q[Table]}}, 1'b1};
  always_comb begin
    ready = '1;
    ready[Table] = qp_table_ctx_ready_i;
    ready[Transport] = rx_transport_ctx_ready_i;
    ready[Rq] = rq_cache_ctx_ready_i;
    ready[Responder] = read_responder_ctx_ready_i;
    ready[Requester] = requester_ctx_ready_i;
  end
  assign fire = ask & ready;
  assign ctx_end = &sent_q && (req_end_q || requester_ctx_rsp_valid_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q <= '0;
      fire_q <= '0;
      req_end_q <= 1'b0;
    end else begin
      sent_q <= ctx_end ? '0 : sent_q | fire;
      fire_q <= fire & {6{!ln_load_i}};
      req_end_q <= !ctx_end && (req_end_q || (sent_q[Requester] && requester_ctx_rsp_valid_i));
    end
    // answers come one cycle later
    if (fire_q[Table]) saved_q.attr <= qp_table_ctx_i;
    if (fire_q[Transport]) saved_q.rsp.state <= rx_transport_ctx_i;
    if (fire_q[Rq]) saved_q.rsp.rq <= rq_cache_ctx_i;
    if (fire_q[Responder]) saved_q.rsp.reads <= read_responder_ctx_i;
    if (fire[Writer] && !ln_load_i) saved_q.rsp.bad <= rx_payload_writer_ctx_i;
    if (sent_q[Requester] && requester_ctx_rsp_valid_i && !ln_load_i) saved_q.req <= requester_ctx_i;
  end

  // ---- the other lines: one entry after the other --------------------------------------------------------------------
  typedef enum logic [2:0] {WordIdle, WordAsk, WordWait, WordTake, WordEnd} word_e;
  word_e        word_q;
  logic         is_wqe, is_value, is_msg, is_rd, word_ready;
  logic [15:0]  word_mask, mask_q;    // entries of the line still to be done
  logic [3:0]   at;
  logic [511:0] stash_q, line_q;
  logic [1023:0] rd_wide, wqe_wide;
  logic [31:0]  msg_out;
  logic [FlightW-1:0] msg_word;
  flight_t      msg_in;
  assign is_wqe = ln_no_i[4:1] == 4'd2;
  assign is_value = ln_no_i[4:1] == 4'd3;
  assign is_msg = ln_no_i[4:3] == 2'd1;
  assign is_rd = ln_no_i[4];
  always_comb begin
    word_mask = '0;
    for (int i = 0; i < 16; i++) begin
      if (is_msg) word_mask[i] = is_flight(live, {ln_no_i[2:0], 4'(i)});
      else if (is_value && i < 4) word_mask[i] = {1'b0, ln_no_i[0], 2'(i)} < live.values;
      // the first half of an entry waits for the other one
      else if (!is_value && i == 0) word_mask[i] = !ln_load_i || ln_no_i[0];
    end
    at = '0;
    for (int i = 15; i >= 0; i--) if (mask_q[i]) at = 4'(i);
  end
  assign word_ready = is_wqe ? rq_cache_ctx_ready_i : is_value ? read_responder_ctx_ready_i : requester_ctx_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_q <= WordIdle;
    end else begin
      unique case (word_q)
        WordIdle: if (ln_valid_i && ln_no_i != '0) word_q <= word_mask == '0 ? WordEnd : WordAsk;
        WordAsk: if (word_ready) word_q <= is_msg || is_rd ? WordWait : WordTake;
        WordWait: if (requester_ctx_rsp_valid_i) word_q <= (mask_q & (mask_q - 16'd1)) == '0 ? WordEnd : WordAsk;
        WordTake: word_q <= (mask_q & (mask_q - 16'd1)) == '0 ? WordEnd : WordAsk;
        default: word_q <= WordIdle;  // WordEnd
      endcase
    end
    if (word_q == WordIdle) mask_q <= word_mask;
    else if (word_q == WordTake || (word_q == WordWait && requester_ctx_rsp_valid_i)) mask_q <= mask_q & (mask_q - 16'd1);
    if (word_q == WordEnd && ln_load_i) stash_q <= ln_data_i;
    if (word_q == WordIdle && ln_valid_i && ln_no_i != '0 && !ln_load_i) line_q <= '0;
    if ((word_q == WordTake || word_q == WordWait) && !ln_load_i) begin
      if (is_msg) line_q[32*at+:32] <= msg_out;
      else if (is_value) line_q[128*at[1:0]+:128] <= 128'(read_responder_ctx_value_i);
      else if (is_wqe) line_q <= ln_no_i[0] ? wqe_wide[1023:512] : wqe_wide[511:0];
      else line_q <= ln_no_i[0] ? rd_wide[1023:512] : rd_wide[511:0];
    end
  end
  assign wqe_wide = 1024'(rq_cache_ctx_entry_i);
  assign rd_wide = 1024'(requester_ctx_entry_i);
  assign msg_out = 32'({requester_ctx_flight_i.kind, requester_ctx_flight_i.signaled, requester_ctx_flight_i.credit, requester_ctx_flight_i.op,
                        requester_ctx_flight_i.kind == FlightError ? 24'(requester_ctx_flight_i.status) : requester_ctx_flight_i.last_psn});
  assign msg_word = ln_data_i[32*at+:FlightW];
  always_comb begin
    msg_in = '0;
    {msg_in.kind, msg_in.signaled, msg_in.credit, msg_in.op, msg_in.last_psn} = msg_word;
    if (msg_in.kind == FlightError) begin
      msg_in.status = msg_word[3:0];
      msg_in.last_psn = '0;
    end
  end
  assign ln_data_o = line_q;
  assign ln_rsp_valid_o = ctx_end || word_q == WordEnd;

  // ---- modules ------------------------------------------------------------------------------------------------------------
  logic word_ask;
  assign word_ask = word_q == WordAsk;
  assign qp_table_ctx_valid_o = ask[Table];
  assign qp_table_ctx_load_o = ln_load_i;
  assign qp_table_ctx_qp_o = ln_slot_i;
  assign qp_table_ctx_o = load.attr;
  assign rx_transport_ctx_valid_o = ask[Transport];
  assign rx_transport_ctx_load_o = ln_load_i;
  assign rx_transport_ctx_qp_o = ln_slot_i;
  assign rx_transport_ctx_o = load.rsp.state;
  assign rq_cache_ctx_valid_o = ask[Rq] || (word_ask && is_wqe);
  assign rq_cache_ctx_load_o = ln_load_i;
  assign rq_cache_ctx_word_o = word_ask;
  assign rq_cache_ctx_qp_o = ln_slot_i;
  assign rq_cache_ctx_o = load.rsp.rq;
  assign rq_cache_ctx_at_o = live.wqe_at;
  assign rq_cache_ctx_entry_o = WqeW'({ln_data_i, stash_q});
  assign rx_payload_writer_ctx_load_o = fire[Writer] && ln_load_i;
  assign rx_payload_writer_ctx_qp_o = ln_slot_i;
  assign rx_payload_writer_ctx_o = load.rsp.bad;
  assign read_responder_ctx_valid_o = ask[Responder] || (word_ask && is_value);
  assign read_responder_ctx_load_o = ln_load_i;
  assign read_responder_ctx_word_o = word_ask;
  assign read_responder_ctx_qp_o = ln_slot_i;
  assign read_responder_ctx_o = load.rsp.reads;
  assign read_responder_ctx_at_o = {ln_no_i[0], at[1:0]};
  assign read_responder_ctx_value_o = ln_data_i[128*at[1:0]+:$bits(rsp_value_t)];
  assign requester_ctx_valid_o = ask[Requester] || (word_ask && (is_msg || is_rd));
  assign requester_ctx_load_o = ln_load_i;
  assign requester_ctx_what_o = !word_ask ? KeepState : is_rd ? KeepRead : KeepFlight;
  assign requester_ctx_qp_o = ln_slot_i;
  assign requester_ctx_qpn_o = ln_qpn_i;
  assign requester_ctx_at_o = is_rd ? LogInflight'(ln_no_i[3:1]) : {ln_no_i[2:0], at};
  assign requester_ctx_o = load.req;
  assign requester_ctx_flight_o = msg_in;
  assign requester_ctx_entry_o = ReadW'({ln_data_i, stash_q});

endmodule
