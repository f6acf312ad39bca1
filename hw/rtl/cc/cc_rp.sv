// SPDX-License-Identifier: Apache-2.0
//
// DCQCN reaction point (Zhu et al., SIGCOMM 2015; NVIDIA's documentation of the parameters) and rate limiters: docs/dcqcn.md.
//
// A QP gets a limiter with its first CNP and loses it when its rate is back at the maximum (windowed form), with its end (end_*),
// or when it is parked and another QP needs it. In the paper's form alpha outlives the way back to the maximum, so the limiter
// is parked there: it costs no time and limits nothing. A CNP of a QP for which none is left is ignored (ev_ignored_o).
//
//   cnp    a CNP of a QP
//   end    the QP is destroyed or reset: as if it had never had a CNP
//   ask    may this QP send? Without a limiter: go_* two cycles later, in order. With one: ans_*, ok and how many bytes, or not; then
//          turn_* comes when it may, once, for the sides that asked (requester and responder of a QP send at one rate)
//   sent   bytes that a limited QP sent, 0 or more. more: it has more to send; as an ask whose answer is the turn, which comes at once if
//          the QP has no limiter any more. Who puts a QP to sleep does that first, then tells `more`: no turn can be missed
//   qry    state of a QP: view_*
//
// A QP has credit: its rate times the clocks that have passed, `burst` at most. It may send when that is more than 0, and
// what it sends is charged in full. Credit is counted up to every change of the rate, so a rate is as exact as its 24 bits,
// and a new rate is in force at once, for a QP that waits as well: its next look is computed again. That look comes early by
// 1/32 of the time at most, and is repeated; late by the clocks that the machine has work. What is earned meanwhile is not lost as long as it is less
// than `burst`.
//
// One machine does one event at a time: it reads the limiter's word, carries out in their order the cuts and increases that were due
// before (with their own times: how late it comes to them does not matter), then the event, and writes the word back. One timer per
// limiter stands at the earliest of increase, cut and look. alpha, which nobody needs between CNPs and cuts, is brought
// up to date when it is used: of n periods without a CNP, those that are a power of two go in one step, with (1-g)^(2^j) from a
// table that is computed when g changes. The sources take turns. Cycles per event: ask 8 to 10, sent 10 to 12, look 8 to 10, an increase 6 and a cut
// some 15 more, CNP 7 to 30; never more than 300 and 6 per increase.
//
// params_i may change at any time; an event is carried out with the values of its beginning. time_i counts clocks and may jump while idle_o, to
// wake_o at most.
//
// Throughput: ask one per cycle for QPs without a limiter, less those in which the machine looks up a QPN. Back-pressure: AskDepth asks of
// limited QPs wait, then all asks do; cnp, end, qry, sent wait for the machine, at most 6 events. turn_* may be blocked for
// any time without holding the machine. After reset ready_o rises after 2^NumW / Banks cycles; nothing is taken before.

module cc_rp
  import rnic_pkg::*;
  import cc_rp_pkg::*;
#(
  parameter int unsigned NumLimit = 1024,  // limiters; a power of two, 8 or more
  parameter int unsigned NumW = QpnW,      // bits of a QPN
  parameter int unsigned TimeW = 56,       // bits of the clock
  parameter int unsigned Banks = 16,       // of the memory by QPN
  parameter int unsigned AskDepth = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             ready_o,
  input  rp_params_t       params_i,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [63:0]      time_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic             cnp_valid_i,
  output logic             cnp_ready_o,
  input  logic [NumW-1:0]  cnp_qpn_i,
  input  logic             end_valid_i,
  output logic             end_ready_o,
  input  logic [NumW-1:0]  end_qpn_i,
  input  logic             qry_valid_i,
  output logic             qry_ready_o,
  input  logic [NumW-1:0]  qry_qpn_i,
  output logic             view_valid_o,   // for one cycle
  output rp_view_t         view_o,
  input  logic             sent_valid_i,
  output logic             sent_ready_o,
  input  logic [NumW-1:0]  sent_qpn_i,
  input  logic             sent_side_i,
  input  sent_t            sent_bytes_i,
  input  logic             sent_more_i,
  input  logic             ask_valid_i,
  output logic             ask_ready_o,
  input  logic [NumW-1:0]  ask_qpn_i,
  input  logic             ask_side_i,
  // answers, for one cycle
  output logic             go_valid_o,     // no limiter
  output logic [NumW-1:0]  go_qpn_o,
  output logic             go_side_o,
  output logic             ans_valid_o,
  output logic [NumW-1:0]  ans_qpn_o,
  output logic             ans_side_o,
  output logic             ans_ok_o,
  output logic             ans_limited_o,  // report what is sent
  output sent_t            ans_bytes_o,    // ok and limited: the credit, at least 1; the last packet may exceed it
  output logic             turn_valid_o,
  input  logic             turn_ready_i,
  output logic [NumW-1:0]  turn_qpn_o,
  output logic [1:0]       turn_sides_o,
  output logic             step_valid_o,   // for one cycle
  output rp_step_t         step_o,
  output logic             ev_handled_o,
  output logic             ev_ignored_o,
  output logic             wake_valid_o,
  output logic [63:0]      wake_o,
  output logic             idle_o
);

  localparam int unsigned LimW = $clog2(NumLimit);
  localparam int unsigned CreditW = 42;
  localparam int unsigned PowN = 20;      // (1-g)^(2^j) for j below; beyond it is 0
  localparam int unsigned MulW = 27;
  localparam int unsigned RetryClocks = 16;
  localparam alpha_t One = alpha_t'(1) << AlphaFrac;
  typedef logic [NumW-1:0] num_t;
  typedef logic [LimW-1:0] lim_t;
  typedef logic [TimeW-1:0] when_t;
  typedef logic signed [CreditW-1:0] credit_t;  // bytes, 16 fraction bits

  typedef struct packed {
    logic        active;
    logic        parked;
    logic [1:0]  waiting;     // sides that wait for their turn
    logic        noted;       // windowed: a CNP came in this alpha period
    logic        reduce;      // windowed: a CNP came in this monitor period
    num_t        qpn;
    rate_t       rate;
    rate_t       target;
    alpha_t      alpha;
    stage_t      time_stage;
    stage_t      byte_stage;
    logic [31:0] bytes;       // since the last increase by bytes
    when_t       alpha_at;    // beginning of the alpha period
    when_t       cut_at;      // beginning of the monitor period
    when_t       incr_at;     // next increase by time
    when_t       credit_at;   // the credit is that of this clock
    credit_t     credit;
    logic [15:0] cuts;
    logic [15:0] fast;
    logic [15:0] additive;
    logic [15:0] hyper;
  } word_t;

  typedef enum logic [2:0] {
    EvCnp  = 3'd0,
    EvEnd  = 3'd1,
    EvQry  = 3'd2,
    EvSent = 3'd3,
    EvAsk  = 3'd4,
    EvTime = 3'd5,
    EvScan = 3'd6
  } event_e;

  typedef enum logic [4:0] {
    StIdle, StPow, StMap, StLoad, StNext, StCredit, StInc, StInc2, StInc3, StRelease, StBytes,
    StCut, StCut2, StCut3, StCut4, StDo, StWalk, StWalk2, StFirst, StStep, StStep2,
    StCnp, StCnp2, StQry, StLook, StLook2, StWrite, StFree
  } state_e;

  // 2^15 / (m + 1) for m = 32 to 63
  localparam logic [31:0][9:0] Recip = {
    10'd512, 10'd520, 10'd528, 10'd537, 10'd546, 10'd555, 10'd564, 10'd574,
    10'd585, 10'd595, 10'd606, 10'd618, 10'd630, 10'd642, 10'd655, 10'd668,
    10'd682, 10'd697, 10'd712, 10'd728, 10'd744, 10'd762, 10'd780, 10'd799,
    10'd819, 10'd840, 10'd862, 10'd885, 10'd910, 10'd936, 10'd963, 10'd992
  };

  function automatic logic [5:0] msb(input logic [TimeW-1:0] v);
    logic [5:0] n;
    n = '0;
    for (int i = 0; i < int'(TimeW); i++) if (v[i]) n = 6'(i);
    return n;
  endfunction
  function automatic logic [4:0] rate_log(input rate_t v);
    logic [4:0] n;
    n = '0;
    for (int i = 0; i < int'(RateW); i++) if (v[i]) n = 5'(i);
    return n;
  endfunction
  function automatic stage_t more_stage(input stage_t s);
    return s == '1 ? s : s + 1'b1;
  endfunction

  // ---- parameters, as they are while an event is carried out -------------------------------------------
  rp_params_t p_q;
  rate_t top, low;
  span_t alpha_span, cut_span, incr_span;
  logic [31:0] byte_span;
  logic [4:0] threshold;
  credit_t cap;
  always_comb begin
    top = p_q.max_rate != '0 && p_q.max_rate < p_q.line_rate ? p_q.max_rate : p_q.line_rate;
    if (top == '0) top = rate_t'(1);
    low = p_q.min_rate == '0 ? rate_t'(1) : p_q.min_rate > top ? top : p_q.min_rate;
    alpha_span = p_q.alpha_period < 27'd16 ? 27'd16 : p_q.alpha_period;
    cut_span = p_q.monitor_period < 27'd64 ? 27'd64 : p_q.monitor_period;
    incr_span = p_q.time_reset < 27'd256 ? 27'd256 : p_q.time_reset;
    byte_span = p_q.byte_reset < 32'd64 ? 32'd64 : p_q.byte_reset;
    threshold = p_q.threshold == '0 ? 5'd1 : p_q.threshold;
    cap = credit_t'({p_q.burst == '0 ? sent_t'(1) : p_q.burst, 16'd0});
  end

  // ---- the machine's registers ---------------------------------------------------------------------------
  state_e state_q, state_d, back_q, back_d;   // back: behind a walk
  event_e ev_q, ev_d;
  word_t w_q, w_d;
  lim_t idx_q, idx_d;
  num_t qpn_q, qpn_d;
  when_t at_q, at_d;          // time of the event
  when_t step_q, step_d;      // of the cut or increase that is carried out
  logic is_cut_q, is_cut_d, is_inc_q, is_inc_d, by_byte_q, by_byte_d, side_q, side_d, more_q, more_d;
  logic was_parked_q, was_parked_d, first_q, first_d;
  sent_t bytes_q, bytes_d;
  rate_t add_q, add_d;
  rate_t cut_q, cut_d;
  rp_event_e what_q, what_d;
  logic look_on_q, look_on_d;
  when_t look_q, look_d;
  // walk over periods
  logic walk_cut_q, walk_cut_d;      // of the monitor, else of alpha
  when_t rem_q, rem_d;
  logic [TimeW:0] span_q, span_d;    // the period times 2^j
  logic [5:0] j_q, j_d;
  // multiplier: operands, a cycle later the product
  logic wait_q, mul;
  logic [MulW-1:0] a_q, a_d, b_q, b_d;
  logic [2*MulW-1:0] prod_q;
  // table of powers of 1-g
  alpha_t pow_q[PowN];
  logic [4:0] pow_j_q, pow_j_d;
  logic pow_we, pow_valid_q, pow_valid_d;
  alpha_t pow_val;
  logic [15:0] gain_q;

  when_t now;
  assign now = time_i[TimeW-1:0];

  // ---- limiters: words, those that are free, timers --------------------------------------------------------
  logic ram_we, ram_re;
  lim_t ram_raddr;
  word_t ram_rdata;
  rnic_ram #(.Width($bits(word_t)), .Depth(NumLimit)) u_words (
    .clk_i, .we_i(ram_we), .waddr_i(idx_q), .wdata_i(w_q), .re_i(ram_re), .raddr_i(ram_raddr), .rdata_o(ram_rdata));

  // never used ones first, then those that came back, in their order
  logic [LimW:0] fresh_q;
  logic [LimW:0] free_wptr_q, free_rptr_q, parked_q;
  logic free_valid_q, free_read_q, free_push, free_pop, any_free, take_fresh, free_coming;
  lim_t free_rdata, free_idx;
  assign take_fresh = !fresh_q[LimW];
  assign any_free = take_fresh || free_valid_q;
  assign free_idx = take_fresh ? fresh_q[LimW-1:0] : free_rdata;
  rnic_ram #(.Width(LimW), .Depth(NumLimit)) u_free (
    .clk_i, .we_i(free_push), .waddr_i(free_wptr_q[LimW-1:0]), .wdata_i(idx_q),
    .re_i(!free_valid_q && !free_read_q && free_wptr_q != free_rptr_q), .raddr_i(free_rptr_q[LimW-1:0]), .rdata_o(free_rdata));

  logic tmr_ready, set_valid, set_on, fire_valid, next_valid, any_timer, timed_q;
  lim_t fire_idx, timed_idx_q;
  when_t set_deadline, next;
  timer_tree #(.Num(NumLimit), .TickW(TimeW)) u_timers (
    .clk_i, .rst_ni, .ready_o(tmr_ready), .now_i(now),
    .set_valid_i(set_valid), .set_on_i(set_on), .set_idx_i(idx_q), .set_deadline_i(set_deadline),
    .fire_ready_i(!timed_q && !fire_valid), .fire_valid_o(fire_valid), .fire_idx_o(fire_idx),
    .next_valid_o(next_valid), .any_o(any_timer), .next_o(next));

  // ---- limiter of a QPN ---------------------------------------------------------------------------------
  logic map_ready, map_we, map_re, map_hit;
  logic [LimW:0] map_rdata;
  lim_t map_idx;
  num_t map_raddr;
  logic map_machine;      // the machine looks up
  logic map_set;
  zero_ram #(.Width(LimW + 1), .Depth(1 << NumW), .Banks(Banks)) u_map (
    .clk_i, .rst_ni, .ready_o(map_ready), .we_i(map_we), .waddr_i(map_set ? qpn_q : w_q.qpn), .wdata_i(map_set ? {1'b1, free_idx} : '0),
    .re_i(map_re), .raddr_i(map_raddr), .rdata_o(map_rdata));
  assign {map_hit, map_idx} = map_rdata;
  assign ready_o = map_ready && tmr_ready;

  // ---- asks: those of QPs without a limiter pass by the machine --------------------------------------------
  typedef struct packed {
    num_t qpn;
    logic side;
    lim_t idx;
  } ask_t;
  localparam int unsigned AskLevelW = $clog2(AskDepth) + 1;
  logic ask_take, ask_q, ask_side_q, ask_out_valid, ask_pop, ask_room;
  num_t ask_qpn_q;
  ask_t ask_out;
  logic [AskLevelW-1:0] ask_level;
  assign ask_ready_o = ready_o && !map_machine && ask_room && ask_level < AskLevelW'(AskDepth - 1);
  assign ask_take = ask_valid_i && ask_ready_o;
  assign map_re = map_machine || ask_take;
  rnic_fifo #(.Width($bits(ask_t)), .Depth(AskDepth)) u_asks (
    .clk_i, .rst_ni, .in_valid_i(ask_q && map_hit), 
    .in_ready_o(ask_room),
    .in_data_i({ask_qpn_q, ask_side_q, map_idx}),
    .out_valid_o(ask_out_valid), .out_ready_i(ask_pop), .out_data_o(ask_out), .level_o(ask_level));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ask_q <= 1'b0;
      go_valid_o <= 1'b0;
    end else begin
      ask_q <= ask_take;
      go_valid_o <= ask_q && !map_hit;
    end
    ask_qpn_q <= ask_qpn_i;
    ask_side_q <= ask_side_i;
    go_qpn_o <= ask_qpn_q;
    go_side_o <= ask_side_q;
  end

  // ---- choice of the next event: the sources take turns ------------------------------------------------------
  logic [6:0] src_valid;
  logic [4:0] src_ready;
  event_e src, src_last_q;
  logic src_any, take, pow_old, scan, turn_free;
  lim_t scan_q;
  // what may have to be answered by a turn at once waits until there is room for it
  assign turn_free = !turn_valid_o || turn_ready_i;
  assign free_coming = free_read_q || free_wptr_q != free_rptr_q;
  assign scan = !any_free && !free_coming && parked_q != '0;
  assign src_valid = {scan, timed_q, ask_out_valid, sent_valid_i && (!sent_more_i || turn_free), qry_valid_i, end_valid_i, cnp_valid_i};
  assign {ask_pop, sent_ready_o, qry_ready_o, end_ready_o, cnp_ready_o} = src_ready;
  assign pow_old = !pow_valid_q || gain_q != p_q.gain || params_i.gain != p_q.gain;
  // a limiter that has just come back can be had
  assign take = state_q == StIdle && !wait_q && ready_o && !pow_old && src_any && (any_free || !free_coming);
  assign src_ready = take ? 5'(7'd1 << src) : '0;
  always_comb begin
    src_any = src_valid != '0;
    src = EvCnp;
    for (int i = 6; i >= 0; i--) if (src_valid[i]) src = event_e'(3'(i));
    for (int i = 6; i >= 0; i--) if (src_valid[i] && 3'(i) > src_last_q) src = event_e'(3'(i));
  end
  assign map_machine = take && (src == EvCnp || src == EvEnd || src == EvQry || src == EvSent);
  always_comb begin
    unique case (src)
      EvCnp: map_raddr = cnp_qpn_i;
      EvEnd: map_raddr = end_qpn_i;
      EvQry: map_raddr = qry_qpn_i;
      default: map_raddr = sent_qpn_i;
    endcase
    if (!map_machine) map_raddr = ask_qpn_i;
  end

  // ---- what the states use ------------------------------------------------------------------------------
  when_t cut_time, limit, walk_span;
  logic cut_due, incr_due, cut_first, can_send;
  // a CNP, and what is sent, come before what is due in the same clock
  assign limit = ev_q == EvTime || ev_q == EvQry ? at_q : at_q - 1'b1;
  assign walk_span = walk_cut_q ? when_t'(cut_span) : when_t'(alpha_span);
  assign cut_time = w_q.cut_at + when_t'(cut_span);
  assign cut_due = w_q.reduce && cut_time <= limit;
  assign incr_due = w_q.incr_at <= limit;
  assign cut_first = cut_due && (!incr_due || cut_time <= w_q.incr_at);
  assign can_send = w_q.parked || w_q.credit > 0;

  logic [4:0] rlog;
  // verilator lint_off UNUSEDSIGNAL
  rate_t norm;            // leading one at the top
  // verilator lint_on UNUSEDSIGNAL
  credit_t debt;
  logic coarse;
  logic [9:0] recip;
  assign rlog = rate_log(w_q.rate);
  assign norm = w_q.rate << (5'(RateW - 1) - rlog);
  assign recip = Recip[norm[RateW-2-:5]];
  assign debt = -w_q.credit;
  assign coarse = debt[CreditW-1:24] != '0;     // in bytes, else in 1/65536

  when_t look_in;          // debt / rate, 1/32 too little at most
  assign look_in = coarse ? (when_t'(prod_q) << 6) >> rlog : (when_t'(prod_q) >> 10) >> rlog;

  stage_t least, most;
  logic [8:0] behind;     // signed: how far the lower stage is beyond fast recovery
  assign least = w_q.time_stage < w_q.byte_stage ? w_q.time_stage : w_q.byte_stage;
  assign most = w_q.time_stage < w_q.byte_stage ? w_q.byte_stage : w_q.time_stage;
  assign behind = {1'b0, least} - {4'd0, threshold};

  alpha_t pow_j;
  assign pow_j = j_q < 6'(PowN) ? pow_q[j_q[4:0]] : p_q.gain == '0 ? One : '0;

  logic [RateW:0] sum_target;
  rate_t mean;
  assign sum_target = {1'b0, w_q.target} + {1'b0, add_q};
  assign mean = (w_q.rate >> 1) + (w_q.target >> 1) + rate_t'({w_q.rate[0] && w_q.target[0]});
  credit_t earned;
  logic [2*MulW:0] credit_sum;
  assign credit_sum = {prod_q[2*MulW-1], prod_q} + (2 * MulW + 1)'(w_q.credit);
  assign earned = $signed(credit_sum) > $signed((2 * MulW + 1)'(cap)) ? cap : credit_t'(credit_sum);
  when_t since;
  assign since = step_d - w_q.credit_at;

  rate_t alpha_cut, rate_cut;  // alpha and max_cut are 1 at most
  assign alpha_cut = rate_t'((prod_q >> AlphaFrac) >> p_q.gd);
  assign rate_cut = p_q.max_cut[16] ? w_q.rate : rate_t'(prod_q >> 16);

  logic handled, ignored, view, ans, step, give_turn, turn_now;
  logic parked_up, parked_down, scan_next;

  // ---- the machine -------------------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    back_d = back_q;
    ev_d = ev_q;
    w_d = w_q;
    idx_d = idx_q;
    qpn_d = qpn_q;
    at_d = at_q;
    step_d = step_q;
    is_cut_d = is_cut_q;
    is_inc_d = is_inc_q;
    by_byte_d = by_byte_q;
    side_d = side_q;
    more_d = more_q;
    was_parked_d = was_parked_q;
    first_d = first_q;
    bytes_d = bytes_q;
    add_d = add_q;
    cut_d = cut_q;
    what_d = what_q;
    look_on_d = look_on_q;
    look_d = look_q;
    walk_cut_d = walk_cut_q;
    rem_d = rem_q;
    span_d = span_q;
    j_d = j_q;
    a_d = a_q;
    b_d = b_q;
    mul = 1'b0;
    pow_j_d = pow_j_q;
    pow_we = 1'b0;
    pow_val = '0;
    pow_valid_d = pow_valid_q;
    ram_we = 1'b0;
    ram_re = 1'b0;
    ram_raddr = idx_q;
    map_we = 1'b0;
    map_set = 1'b0;
    free_pop = 1'b0;
    free_push = 1'b0;
    set_valid = 1'b0;
    set_on = 1'b0;
    set_deadline = w_q.incr_at;
    handled = 1'b0;
    ignored = 1'b0;
    view = 1'b0;
    ans = 1'b0;
    step = 1'b0;
    give_turn = 1'b0;
    turn_now = 1'b0;
    parked_up = 1'b0;
    parked_down = 1'b0;
    scan_next = 1'b0;

    if (!wait_q) begin
      unique case (state_q)
        StIdle: begin
          if (pow_old) begin
            pow_j_d = '0;
            pow_we = 1'b1;
            pow_val = One - {1'b0, p_q.gain, 8'd0};
            a_d = MulW'(pow_val);
            b_d = MulW'(pow_val);
            mul = 1'b1;
            state_d = StPow;
          end else if (take) begin
            ev_d = src;
            at_d = now;
            first_d = 1'b0;
            by_byte_d = 1'b0;
            qpn_d = src == EvAsk ? ask_out.qpn : map_raddr;
            side_d = src == EvAsk ? ask_out.side : sent_side_i;
            bytes_d = sent_bytes_i;
            more_d = sent_more_i;
            look_on_d = 1'b0;
            idx_d = src == EvAsk ? ask_out.idx : src == EvTime ? timed_idx_q : scan_q;
            ram_re = !map_machine;
            ram_raddr = idx_d;
            state_d = map_machine ? StMap : StLoad;
          end
        end
        // powers of 1-g: squares, to the nearest
        StPow: begin
          pow_we = 1'b1;
          pow_j_d = pow_j_q + 1'b1;
          pow_val = alpha_t'((prod_q + (2 * MulW)'(1 << (AlphaFrac - 1))) >> AlphaFrac);
          a_d = MulW'(pow_val);
          b_d = MulW'(pow_val);
          mul = 1'b1;
          pow_valid_d = 1'b1;
          if (pow_j_d == 5'(PowN - 1)) state_d = StIdle;
        end
        StMap: begin
          if (map_hit) begin
            idx_d = map_idx;
            ram_re = 1'b1;
            ram_raddr = map_idx;
            state_d = StLoad;
          end else if (ev_q == EvCnp && p_q.enable && any_free) begin
            idx_d = free_idx;
            free_pop = 1'b1;
            map_we = 1'b1;
            map_set = 1'b1;
            w_d = '0;
            w_d.qpn = qpn_q;
            was_parked_d = 1'b0;
            state_d = StFirst;
          end else begin
            ignored = ev_q == EvCnp;
            view = ev_q == EvQry;
            turn_now = ev_q == EvSent && more_q;
            w_d.active = 1'b0;
            state_d = StIdle;
          end
        end
        StLoad: begin
          w_d = ram_rdata;
          if (w_d.target > top) w_d.target = top;
          if (w_d.target < low) w_d.target = low;
          if (w_d.rate > w_d.target) w_d.rate = w_d.target;
          if (w_d.rate < low) w_d.rate = low;
          was_parked_d = w_d.parked;
          state_d = w_d.parked ? StDo : StNext;
          if (ev_q == EvEnd) state_d = StFree;
          if (ev_q == EvCnp && !p_q.enable) begin
            ignored = 1'b1;
            state_d = StIdle;
          end
          if (ev_q == EvScan) begin
            scan_next = 1'b1;
            state_d = w_d.active && w_d.parked && w_d.waiting == '0 ? StFree : StIdle;
          end
          if ((ev_q == EvAsk || ev_q == EvTime) && (!w_d.active || (ev_q == EvAsk && w_d.qpn != qpn_q))) begin
            ans = ev_q == EvAsk;
            w_d.active = 1'b0;
            state_d = StIdle;
          end
        end
        // the first thing that was due
        StNext: begin
          is_cut_d = cut_first;
          is_inc_d = incr_due && !cut_first;
          step_d = cut_first ? cut_time : incr_due ? w_q.incr_at : at_q;
          a_d = MulW'(w_q.rate);
          b_d = since[TimeW-1] ? '0 : since[TimeW-1:MulW-1] != '0 ? {1'b0, {MulW-1{1'b1}}} : {1'b0, since[MulW-2:0]};
          // nothing more, and nobody waits: the credit can be counted later
          if (ev_q == EvTime && !cut_due && !incr_due && w_q.waiting == '0) begin
            state_d = StWrite;
          end else begin
            mul = 1'b1;
            state_d = StCredit;
          end
        end
        StCredit: begin
          w_d.credit = earned;
          if (step_q > w_q.credit_at) w_d.credit_at = step_q;
          by_byte_d = 1'b0;
          walk_cut_d = 1'b0;
          rem_d = step_q - w_q.alpha_at;
          back_d = StCut;
          state_d = is_cut_q ? StWalk : is_inc_q ? StInc : StDo;
        end
        // ---- increase: exactly `threshold` steps of fast recovery come first ----
        StInc: begin
          add_d = p_q.ai_rate;
          what_d = RpAdditive;
          state_d = StInc2;
          if (most < stage_t'(threshold)) begin
            add_d = '0;
            what_d = RpFast;
            w_d.fast = w_q.fast + 1'b1;
          end else if (!behind[8] && behind != '0) begin
            add_d = p_q.hai_rate;
            what_d = RpHyper;
            w_d.hyper = w_q.hyper + 1'b1;
            a_d = MulW'(p_q.hai_rate);
            b_d = p_q.hai_by_stage ? MulW'(behind) : MulW'(1);
            mul = 1'b1;
          end else begin
            w_d.additive = w_q.additive + 1'b1;
          end
        end
        StInc2: begin
          w_d.target = sum_target > {1'b0, top} ? top : sum_target[RateW-1:0];
          if (what_q == RpHyper)
            w_d.target = prod_q + (2 * MulW)'(w_q.target) > (2 * MulW)'(top) ? top : rate_t'(prod_q) + w_q.target;
          state_d = StInc3;
        end
        StInc3: begin
          w_d.rate = mean;
          if (by_byte_q) begin
            w_d.byte_stage = more_stage(w_q.byte_stage);
          end else begin
            w_d.time_stage = more_stage(w_q.time_stage);
            w_d.incr_at = step_q + when_t'(incr_span);
          end
          step = 1'b1;
          state_d = by_byte_q ? StBytes : StNext;
          if ({1'b0, w_d.rate} + (RateW + 1)'(p_q.resolution) >= {1'b0, top}) state_d = StRelease;
        end
        StRelease: begin
          w_d.rate = top;
          w_d.target = top;
          w_d.parked = 1'b1;
          w_d.reduce = 1'b0;
          what_d = RpReleased;
          step = 1'b1;
          state_d = by_byte_q ? StLook : StDo;
        end
        StBytes: begin
          state_d = StLook;
          if (w_q.bytes >= byte_span) begin
            w_d.bytes = w_q.bytes - byte_span;
            by_byte_d = 1'b1;
            state_d = StInc;
          end
        end
        // ---- cut, by the alpha of now ----
        StCut: begin
          if (!p_q.windowed || p_q.clamp_tgt || w_q.byte_stage != '0 || (p_q.clamp_tgt_ati && w_q.time_stage != '0) || w_q.rate == top)
            w_d.target = w_q.rate;
          a_d = MulW'(w_q.rate);
          b_d = MulW'(w_q.alpha);
          mul = 1'b1;
          state_d = StCut2;
        end
        StCut2: begin
          cut_d = alpha_cut;
          b_d = MulW'(p_q.max_cut);
          mul = 1'b1;
          state_d = StCut3;
        end
        StCut3: begin
          w_d.rate = w_q.rate - (rate_cut < cut_q ? rate_cut : cut_q);
          if (w_d.rate < low) w_d.rate = low;
          w_d.cuts = w_q.cuts + 1'b1;
          w_d.time_stage = '0;
          w_d.byte_stage = '0;
          w_d.bytes = '0;
          w_d.incr_at = step_q + when_t'(incr_span);
          a_d = MulW'(w_q.alpha);
          b_d = MulW'(pow_q[0]);
          mul = 1'b1;
          state_d = StCut4;
        end
        StCut4: begin
          step = 1'b1;
          if (ev_q == EvCnp && !is_cut_q) begin
            w_d.alpha = alpha_t'(prod_q >> AlphaFrac) + {1'b0, p_q.gain, 8'd0};
            w_d.alpha_at = at_q;
            what_d = RpCnpCut;
            handled = 1'b1;
            state_d = StLook;
          end else begin
            w_d.reduce = 1'b0;
            w_d.cut_at = step_q;
            what_d = RpCut;
            state_d = StNext;
          end
        end
        // ---- the event, when everything before it is done ----
        StDo: begin
          walk_cut_d = 1'b0;
          rem_d = limit - w_q.alpha_at;
          is_cut_d = 1'b0;
          step_d = at_q;
          state_d = StLook;
          unique case (ev_q)
            EvCnp: begin
              back_d = StCnp;
              state_d = StWalk;
              if (w_q.parked) begin
                w_d.parked = 1'b0;
                w_d.rate = top;
                w_d.target = top;
                w_d.credit = '0;
                w_d.credit_at = at_q;
                if (p_q.windowed) state_d = StFirst;
              end
            end
            EvSent: begin
              if (!w_q.parked) begin
                // far below any credit that can be: no lower
                if (w_q.credit[CreditW-1-:3] != 3'b100) w_d.credit = w_q.credit - credit_t'({bytes_q, 16'd0});
                w_d.bytes = w_q.bytes + 32'(bytes_q);
                state_d = StBytes;
              end
              w_d.waiting[side_q] = more_q;
            end
            EvAsk: begin
              ans = 1'b1;
              w_d.waiting[side_q] = !can_send;
            end
            EvQry: begin
              back_d = StQry;
              state_d = StWalk;
            end
            default: ;
          endcase
        end
        // ---- periods of alpha or of the monitor that are over ----
        StWalk: begin
          // the period in which a CNP came is the first
          j_d = msb(rem_q) - msb(walk_span);
          span_d = {1'b0, walk_span};
          state_d = StWalk2;
          if (rem_q[TimeW-1] || rem_q < walk_span) begin
            state_d = back_q;
          end else if (!walk_cut_q && w_q.noted) begin
            w_d.noted = 1'b0;
            w_d.alpha_at = w_q.alpha_at + walk_span;
            rem_d = rem_q - walk_span;
            a_d = MulW'(w_q.alpha);
            b_d = MulW'(pow_q[0]);
            mul = 1'b1;
            state_d = StStep;
          end else begin
            span_d = span_d << j_d;
          end
        end
        StStep: begin
          w_d.alpha = alpha_t'(prod_q >> AlphaFrac) + {1'b0, p_q.gain, 8'd0};
          state_d = StWalk;
        end
        StWalk2: begin
          if ({1'b0, rem_q} >= span_q) begin
            rem_d = rem_q - span_q[TimeW-1:0];
            if (walk_cut_q) begin
              w_d.cut_at = w_q.cut_at + span_q[TimeW-1:0];
            end else begin
              w_d.alpha_at = w_q.alpha_at + span_q[TimeW-1:0];
              a_d = MulW'(w_q.alpha);
              b_d = MulW'(pow_j);
              mul = 1'b1;
            end
          end
          span_d = span_q >> 1;
          j_d = j_q - 1'b1;
          state_d = mul ? StStep2 : j_q == '0 ? back_q : StWalk2;
        end
        StStep2: begin
          w_d.alpha = alpha_t'(prod_q >> AlphaFrac);
          state_d = j_q == '1 ? back_q : StWalk2;
        end
        // ---- CNP ----
        StFirst: begin
          first_d = 1'b1;
          w_d.active = 1'b1;
          w_d.rate = top;
          w_d.target = top;
          w_d.alpha = p_q.initial_alpha[16] ? One : {p_q.initial_alpha, 8'd0};
          w_d.noted = 1'b0;
          w_d.credit = '0;
          w_d.credit_at = at_q;
          w_d.alpha_at = at_q;
          w_d.cut_at = at_q;
          w_d.incr_at = at_q + when_t'(incr_span);
          w_d.time_stage = '0;
          w_d.byte_stage = '0;
          w_d.bytes = '0;
          if (p_q.first_rate != '0) begin
            w_d.rate = p_q.first_rate > top ? top : p_q.first_rate < low ? low : p_q.first_rate;
            w_d.target = w_d.rate;
          end
          step_d = at_q;
          is_cut_d = 1'b0;
          state_d = StCnp;
        end
        StCnp: begin
          walk_cut_d = 1'b1;
          rem_d = limit - w_q.cut_at;
          back_d = StCnp2;
          state_d = !p_q.windowed ? StCut : first_q ? StCnp2 : StWalk;
        end
        StCnp2: begin
          w_d.noted = !first_q;
          w_d.reduce = !first_q || p_q.first_rate == '0;
          what_d = RpCnp;
          step = 1'b1;
          handled = 1'b1;
          state_d = StLook;
        end
        StQry: begin
          view = 1'b1;
          state_d = StLook;
        end
        // ---- when it may send; end of the event ----
        StLook: begin
          state_d = StWrite;
          give_turn = w_q.waiting != '0 && can_send && turn_free;
          if (give_turn) w_d.waiting = '0;
          look_on_d = w_d.waiting != '0;
          look_d = at_q + when_t'(RetryClocks);
          if (w_q.parked && p_q.windowed && w_d.waiting == '0) begin
            state_d = StFree;
          end else if (w_q.waiting != '0 && !can_send) begin
            a_d = coarse ? MulW'(debt[CreditW-1:16]) : MulW'(debt[23:0]);
            b_d = MulW'(recip);
            mul = 1'b1;
            state_d = StLook2;
          end
        end
        StLook2: begin
          look_d = at_q + 1'b1 + look_in;
          state_d = StWrite;
        end
        StWrite: begin
          ram_we = 1'b1;
          set_valid = 1'b1;
          set_on = !w_q.parked || look_on_q;
          if (w_q.reduce && cut_time < set_deadline) set_deadline = cut_time;
          if (look_on_q && (w_q.parked || look_q < set_deadline)) set_deadline = look_q;
          parked_up = w_q.parked && !was_parked_q;
          parked_down = !w_q.parked && was_parked_q;
          state_d = StIdle;
        end
        StFree: begin
          w_d.active = 1'b0;
          if (!w_q.active) begin     // written a cycle later
            ram_we = 1'b1;
            set_valid = 1'b1;
            map_we = 1'b1;
            free_push = 1'b1;
            parked_down = was_parked_q;
            state_d = StIdle;
          end
        end
        default: state_d = StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      wait_q <= 1'b0;
      pow_valid_q <= 1'b0;
      timed_q <= 1'b0;
      fresh_q <= '0;
      free_wptr_q <= '0;
      free_rptr_q <= '0;
      free_valid_q <= 1'b0;
      free_read_q <= 1'b0;
      parked_q <= '0;
      scan_q <= '0;
      src_last_q <= EvCnp;
      turn_valid_o <= 1'b0;
      ans_valid_o <= 1'b0;
      view_valid_o <= 1'b0;
      step_valid_o <= 1'b0;
      ev_handled_o <= 1'b0;
      ev_ignored_o <= 1'b0;
    end else begin
      state_q <= state_d;
      wait_q <= mul;
      pow_valid_q <= pow_valid_d;
      if (take && src == EvTime) timed_q <= 1'b0;
      if (fire_valid) timed_q <= 1'b1;
      if (take) src_last_q <= src;
      if (free_pop && take_fresh) fresh_q <= fresh_q + 1'b1;
      if (free_push) free_wptr_q <= free_wptr_q + 1'b1;
      free_read_q <= !free_valid_q && !free_read_q && free_wptr_q != free_rptr_q;
      if (free_read_q) begin
        free_valid_q <= 1'b1;
        free_rptr_q <= free_rptr_q + 1'b1;
      end
      if (free_pop && !take_fresh) free_valid_q <= 1'b0;
      parked_q <= parked_q + (LimW + 1)'(parked_up) - (LimW + 1)'(parked_down);
      if (scan_next) scan_q <= scan_q + 1'b1;
      if (turn_ready_i) turn_valid_o <= 1'b0;
      if (give_turn || turn_now) turn_valid_o <= 1'b1;
      ans_valid_o <= ans;
      view_valid_o <= view;
      step_valid_o <= step;
      ev_handled_o <= handled;
      ev_ignored_o <= ignored;
    end
    if (state_q == StIdle && !wait_q) begin
      p_q <= params_i;
      gain_q <= p_q.gain;
    end
    if (fire_valid) timed_idx_q <= fire_idx;
    back_q <= back_d;
    ev_q <= ev_d;
    w_q <= w_d;
    idx_q <= idx_d;
    qpn_q <= qpn_d;
    at_q <= at_d;
    step_q <= step_d;
    is_cut_q <= is_cut_d;
    is_inc_q <= is_inc_d;
    by_byte_q <= by_byte_d;
    side_q <= side_d;
    more_q <= more_d;
    was_parked_q <= was_parked_d;
    first_q <= first_d;
    bytes_q <= bytes_d;
    add_q <= add_d;
    cut_q <= cut_d;
    what_q <= what_d;
    look_on_q <= look_on_d;
    look_q <= look_d;
    walk_cut_q <= walk_cut_d;
    rem_q <= rem_d;
    span_q <= span_d;
    j_q <= j_d;
    a_q <= a_d;
    b_q <= b_d;
    prod_q <= a_q * b_q;
    pow_j_q <= pow_j_d;
    if (pow_we) pow_q[pow_j_d] <= pow_val;

    if (give_turn || turn_now) begin
      turn_qpn_o <= turn_now ? qpn_q : w_q.qpn;
      turn_sides_o <= turn_now ? 2'b01 << side_q : w_q.waiting;
    end
    ans_qpn_o <= qpn_q;
    ans_side_o <= side_q;
    ans_ok_o <= !w_d.active || can_send;
    ans_limited_o <= w_d.active && !w_d.parked;
    ans_bytes_o <= w_q.credit[16+:SentW] + SentW'(w_q.credit[15:0] != '0);
    step_o <= '{what: what_d, by_byte: by_byte_q, qpn: qpn_t'(w_q.qpn), at: 64'(step_q), rate: w_d.rate, target: w_d.target,
                alpha: w_d.alpha, time_stage: w_d.time_stage, byte_stage: w_d.byte_stage};
    view_o <= '{found: w_d.active && !(w_d.parked && p_q.windowed), parked: w_q.parked, rate: w_q.rate, target: w_q.target, alpha: w_q.alpha,
                time_stage: w_q.time_stage, byte_stage: w_q.byte_stage, cuts: w_q.cuts, fast: w_q.fast,
                additive: w_q.additive, hyper: w_q.hyper};
  end

  assign idle_o = ready_o && state_q == StIdle && !take && !pow_old && p_q == params_i && !wait_q && !ask_valid_i && !ask_q && !timed_q && !fire_valid &&
                  !free_read_q && !turn_valid_o && !step_valid_o && !ans_valid_o && !view_valid_o && !go_valid_o && !ev_handled_o && !ev_ignored_o;
  assign wake_valid_o = idle_o && next_valid && (!any_timer || next > now);
  assign wake_o = any_timer ? 64'(next) : '1;

endmodule
