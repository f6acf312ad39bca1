// SPDX-License-Identifier: Apache-2.0
//
// Decides when a QP sends again, waits or gives up (IBTA 9.7.5.2, 9.7.6, 9.9.2.4.2), and keeps its timer.
//
// The completer asks once per job, when it has taken over everything that was acknowledged (ask_valid_i); the answer
// is there in the same cycle:
//   progress             both retry counts start again; the transport timer starts again, or stops when
//                        nothing is outstanding
//   NAK sequence error   (also implied by something behind a missing response) one restart, counted; not counted and ignored when the place was set back already
//                        and nothing was sent since, and while the RNR timer runs (unless packets at or after the refused
//                        one were acknowledged meanwhile)
//   RNR NAK              restart and pause until the RNR timer expires (table 46 by code); counted, 7 = for ever
//   credit timer         (nothing is outstanding) restart: a message may go without a credit
//   transport timer      restart, counted. 4.096 us * 2^timeout, timeout 0: none
// `retry_cnt` and `rnr_retry` bound restarts without progress; the one after that fails the oldest WQE.
//
// Timers: one per QPN, in ticks of 256 cycles of time_i, in a timer_tree: what a timer costs does not grow with the number of
// QPs, and it runs whether or not its QP has a slot. The tree hands out the QPN (exp_*); who takes it gets the QP a slot and asks the
// completer to look. Kept with the QP's state are whether its timer was started, and the deadline: fired_o. So an expiry that was
// overtaken by another start or a stop has no effect, nor has one that comes twice. A timer never fires early; it fires at most 2 ticks (512 cycles) late, plus the time that timers which fire at once
// wait for each other and for exp_ready_i. Only time_i is looked at, so time may jump. The transport timer starts with the first packet sent
// while it is off; a restart stops it, its first packet starts it again. With nothing outstanding it is the credit timer of a QP that
// waits for credits: it starts when the QP goes to sleep and stops with whatever wakes the QP.
//
// wake_o: the time of the earliest timer. wake_valid_o is 0 for some cycles after a timer was started, moved or stopped, and
// when that time has come.
//
// Throughput: one decision and one start per cycle, never both. Back-pressure: exp waits, and no timer fires then. After reset nothing is
// to be started before ready_o, some thousand cycles.
// State per slot: two words, and two bits that say together whether the timer was started; each has one writer.

module retry_ctl
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned ClkPs = 4000,
  parameter int unsigned TimerW = QpnW   // bits of a QPN that tell timers apart
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [63:0]  time_i,   // ticks of 256 cycles
  // verilator lint_on UNUSEDSIGNAL
  output logic         ready_o,
  // a packet was sent; not in the same cycle as ask_valid_i
  input  logic         sent_valid_i,
  input  qp_idx_t      sent_qp_i,
  input  logic [4:0]   sent_timeout_i,
  // the slot that all of the following is about
  input  qp_idx_t      qp_i,
  // decisions
  input  logic         ask_valid_i,
  input  retry_ask_t   ask_i,
  output retry_act_t   act_o,
  // QP failed or is new: no timer, no counts
  input  logic         off_valid_i,
  // what is kept; load_i writes it, and whose it is, when nothing else happens. The timer itself goes on
  input  logic         load_i,
  input  qpn_t         load_qpn_i,
  input  retry_keep_t  keep_i,
  output retry_keep_t  keep_o,
  output logic         fired_o,      // the timer was started, and its deadline has come
  // a timer expired
  output logic         exp_valid_o,
  input  logic         exp_ready_i,
  output qpn_t         exp_qpn_o,
  output logic         wake_valid_o,
  output logic [63:0]  wake_o,
  output logic         ev_timeout_o,
  output logic         ev_nak_seq_o,
  output logic         ev_rnr_o
);

  // Ticks per 4.096 us and per 10 us in 1/65536, rounded up: 4.096 us = 16000 ps * 256, 10 us = 39062.5 ps * 256.
  localparam logic [47:0] TransportStep = 48'((64'd1_048_576_000 + 64'(ClkPs) - 1) / 64'(ClkPs));
  localparam logic [47:0] RnrStep = 48'((64'd2_560_000_000 + 64'(ClkPs) - 1) / 64'(ClkPs));

  // verilator lint_off UNUSEDSIGNAL
  // Fractions of a tick end in the low bits.
  // Ticks of a transport timeout, rounded up; one more because the present tick has begun.
  function automatic tick_t transport_ticks(input logic [4:0] code);
    logic [79:0] t;
    t = (80'(TransportStep) << code) + 80'h1ffff;
    return t[16+:TickW];
  endfunction
  // IBTA table 46: code 1 is 10 us, code n above is 20 or 30 us times a power of two, code 0 the 32nd.
  function automatic tick_t rnr_ticks(input logic [4:0] code);
    logic [5:0] n;
    logic [49:0] unit;
    logic [79:0] t;
    n = code == '0 ? 6'd32 : {1'b0, code};
    unit = n[0] && code != 5'd1 ? 50'(RnrStep) + (50'(RnrStep) << 1) : 50'(RnrStep) << 1;
    if (code == 5'd1) t = 80'(RnrStep);
    else t = 80'(unit) << (n[5:1] - 5'd1);
    t = t + 80'h1ffff;
    return t[16+:TickW];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  tick_t now;
  assign now = time_i[8+:TickW];

  // ---- state per slot ------------------------------------------------------------------------------
  typedef struct packed {
    retry_count_t count;
    logic         waiting;   // for the RNR timer
  } count_t;
  count_t count_mem[NumQp];
  tick_t deadline_mem[NumQp];
  qpn_t qpn_mem[NumQp];
  // started: one of these is 1, not both. A packet writes the first, everything else the second.
  logic sent_mem[NumQp];
  logic other_mem[NumQp];
  count_t kept;
  logic armed, sent_armed;
  assign kept = count_mem[qp_i];
  assign armed = sent_mem[qp_i] ^ other_mem[qp_i];
  assign sent_armed = sent_mem[sent_qp_i] ^ other_mem[sent_qp_i];

  // ---- decision ------------------------------------------------------------------------------------
  retry_count_t cnt, cnt_d;
  logic waiting, waiting_d, arm, disarm;
  retry_act_t act;
  assign waiting = kept.waiting;
  assign cnt = kept.count;
  assign act_o = act;

  always_comb begin
    act = '0;
    arm = 1'b0;
    disarm = 1'b0;
    waiting_d = waiting;
    cnt_d = ask_i.progress ? '0 : cnt;
    if (ask_valid_i) begin
      unique case (ask_i.cause)
        CauseAck: begin
          act.restart = waiting ? ask_i.progress : ask_i.behind;
          if (ask_i.progress) begin
            waiting_d = 1'b0;
            arm = ask_i.outstanding;
            disarm = !ask_i.outstanding;
          end else if (!waiting && !ask_i.outstanding) begin
            disarm = 1'b1;
          end
        end
        CauseNakSeq: begin
          if (!waiting && ask_i.rewound && !ask_i.progress) begin
            act.restart = ask_i.behind;
          end else if (!waiting || ask_i.progress) begin
            act.fail = cnt_d.retry >= ask_i.retry_cnt;
            act.restart = !act.fail;
            cnt_d.retry = cnt_d.retry + 1'b1;
            waiting_d = 1'b0;
            disarm = 1'b1;
          end
        end
        CauseRnr: begin
          if (!waiting || ask_i.progress) begin
            act.fail_rnr = ask_i.rnr_retry != 3'd7 && cnt_d.rnr >= ask_i.rnr_retry;
            act.fail = act.fail_rnr;
            act.restart = !act.fail;
            act.pause = !act.fail;
            cnt_d.rnr = cnt_d.rnr == 3'd7 ? 3'd7 : cnt_d.rnr + 1'b1;
            waiting_d = !act.fail;
            arm = !act.fail;
            disarm = act.fail;
          end
        end
        default: begin
          disarm = 1'b1;
          waiting_d = 1'b0;
          if (waiting) begin
            act.restart = 1'b1;
          end else if (ask_i.outstanding) begin
            act.fail = cnt.retry >= ask_i.retry_cnt;
            act.restart = !act.fail;
            cnt_d.retry = cnt.retry + 1'b1;
          end else begin
            act.restart = 1'b1;
          end
        end
      endcase
    end
  end

  // ---- deadlines -----------------------------------------------------------------------------------
  logic ask_arm, sent_arm, on, off;
  qp_idx_t set_qp;
  qpn_t qpn, set_qpn;
  tick_t deadline;
  assign ask_arm = arm && (ask_i.cause == CauseRnr || ask_i.timeout != '0);
  assign sent_arm = sent_valid_i && sent_timeout_i != '0 && !sent_armed;
  assign on = ask_arm || sent_arm;
  assign off = disarm || (arm && !ask_arm);
  assign set_qp = ask_valid_i || load_i ? qp_i : sent_qp_i;
  assign qpn = qpn_mem[qp_i];
  assign set_qpn = ask_valid_i ? qpn : qpn_mem[sent_qp_i];
  always_comb begin
    if (ask_arm && ask_i.cause == CauseRnr) deadline = now + rnr_ticks(ask_i.rnr_code);
    else deadline = now + transport_ticks(ask_arm ? ask_i.timeout : sent_timeout_i);
  end

  // `sent_mem` of this slot as it will be: a QP that is off while a packet of it starts the timer is off
  logic sent_same;
  assign sent_same = sent_arm && sent_qp_i == qp_i ? !other_mem[sent_qp_i] : sent_mem[qp_i];

  // A QP that is off while another one's timer is set waits a cycle. Were it forgotten, its timer would fire, and be ignored.
  logic drop_q, drop_now;
  qpn_t drop_qpn_q;
  assign drop_now = !on && !off && (drop_q || off_valid_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) drop_q <= 1'b0;
    else if (off_valid_i) drop_q <= !drop_now || drop_q;
    else if (drop_now || (on && set_qpn == drop_qpn_q)) drop_q <= 1'b0;
    if (off_valid_i) drop_qpn_q <= qpn;
  end

  logic fire_valid, next_valid, any, exp_valid_q;
  logic [TimerW-1:0] fire_qpn, exp_qpn_q;
  tick_t next;
  timer_tree #(.Num(1 << TimerW), .TickW(TickW)) u_timers (
    .clk_i, .rst_ni, .ready_o, .now_i(now),
    .set_valid_i(on || off || drop_now), .set_on_i(on),
    .set_idx_i(TimerW'(on || off ? set_qpn : drop_q ? drop_qpn_q : qpn)), .set_deadline_i(deadline),
    .fire_ready_i(!exp_valid_q && !fire_valid), .fire_valid_o(fire_valid), .fire_idx_o(fire_qpn),
    .next_valid_o(next_valid), .any_o(any), .next_o(next)
  );

  assign exp_valid_o = exp_valid_q;
  assign exp_qpn_o = QpnW'(exp_qpn_q);
  assign keep_o = '{count: kept.count, waiting: kept.waiting, armed: armed, deadline: deadline_mem[qp_i]};
  assign fired_o = armed && now >= deadline_mem[qp_i];
  assign wake_valid_o = next_valid && !drop_q && (!any || next > now);
  assign wake_o = any ? 64'({next, 8'd0}) : '1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      exp_valid_q <= 1'b0;
      ev_timeout_o <= 1'b0;
      ev_nak_seq_o <= 1'b0;
      ev_rnr_o <= 1'b0;
    end else begin
      if (exp_ready_i) exp_valid_q <= 1'b0;
      if (fire_valid) exp_valid_q <= 1'b1;
      ev_timeout_o <= ask_valid_i && ask_i.cause == CauseTimer && !waiting && ask_i.outstanding;
      ev_nak_seq_o <= ask_valid_i && ask_i.cause == CauseNakSeq && !ask_i.implied;
      ev_rnr_o <= ask_valid_i && ask_i.cause == CauseRnr;
    end
    if (fire_valid) exp_qpn_q <= fire_qpn;
    if (load_i) qpn_mem[qp_i] <= load_qpn_i;
    if (ask_valid_i || off_valid_i || load_i)
      count_mem[qp_i] <= load_i ? '{count: keep_i.count, waiting: keep_i.waiting} :
                         off_valid_i ? '0 : '{count: cnt_d, waiting: waiting_d};
    if (on || load_i) deadline_mem[set_qp] <= load_i ? keep_i.deadline : deadline;
    if (sent_arm || load_i) sent_mem[set_qp] <= load_i ? keep_i.armed : !other_mem[sent_qp_i];
    if (ask_arm || off || off_valid_i || load_i) other_mem[qp_i] <= !load_i && (sent_same ^ ask_arm);
  end

endmodule
