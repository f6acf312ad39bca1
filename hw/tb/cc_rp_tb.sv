// SPDX-License-Identifier: Apache-2.0
//
// cc_rp.
//
// Vectors of hw/tb/vec/cc_rp_tb: random parameters of both forms, CNPs and bytes of up to eight QPs, the golden schedules; every step and
// every query is compared with the reference, within the error that comes with it. Once the time jumps from event to event, once
// only from stimulus to stimulus, so that the machine is late for everything that its timers do: the same must come.
//
// Pacing: a link, a scheduler and saturated senders. Each packet is compared with a token bucket of the bench; rates from 10 Mb/s to the line's;
// a gap that a new rate shortens; a QP that was idle; every limiter in use, and more QPs than limiters; QPs without a limiter meanwhile;
// turns that are not taken at once; parameters that change. What happens with jumps of time over idle clocks happens without.

module cc_rp_tb #(
  parameter int unsigned DataW = 64
);
  logic clk = 0;
  always #1 clk = !clk;
  bit vec_done, pace_done;
  cc_rp_vectors u_vec (.clk, .done(vec_done));
  cc_rp_pacing #(.NumLimit(DataW == 64 ? 1024 : 4096)) u_pace (.clk, .done(pace_done));
  initial begin
    while (!vec_done || !pace_done) @(posedge clk);
    $display("PASS %0d cases, %0d steps, %0d queries; rates worst by %0d ppm, packets late by one and %0d clocks at most; %0d limiters, %0d to %0d bytes each; %0d steps with and without jumps",
      u_vec.n_case, u_vec.n_step, u_vec.n_query, u_pace.worst_ppm, u_pace.alone_late, u_pace.NumLimit, u_pace.least, u_pace.most, u_pace.n_log);
    $finish;
  end
endmodule

// ---- against the reference ---------------------------------------------------------------------------
module cc_rp_vectors
  import rnic_pkg::*;
  import cc_rp_pkg::*;
(
  input logic clk,
  output bit done
);
  localparam int NumLimit = 16;
  logic rst_n = 0, ready;
  rp_params_t params = '0;
  longint now = 1000, at;
  logic cnp_valid = 0, cnp_ready, end_valid = 0, end_ready, qry_valid = 0, qry_ready, view_valid, sent_valid = 0, sent_ready;
  logic [15:0] qpn = '0;
  sent_t sent_bytes = '0;
  rp_view_t view;
  logic step_valid, handled, ignored, wake_valid, idle, turn_valid, go_valid, ans_valid, ask_ready;
  rp_step_t step;
  logic [63:0] wake;

  cc_rp #(.NumLimit(NumLimit)) dut (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(ready), .params_i(params), .time_i(64'(now)),
    .cnp_valid_i(cnp_valid), .cnp_ready_o(cnp_ready), .cnp_qpn_i(qpn),
    .end_valid_i(end_valid), .end_ready_o(end_ready), .end_qpn_i(qpn),
    .qry_valid_i(qry_valid), .qry_ready_o(qry_ready), .qry_qpn_i(qpn), .view_valid_o(view_valid), .view_o(view),
    .sent_valid_i(sent_valid), .sent_ready_o(sent_ready), .sent_qpn_i(qpn), .sent_side_i(1'b0), .sent_bytes_i(sent_bytes),
    .sent_more_i(1'b0), .ask_valid_i(1'b0), .ask_ready_o(ask_ready), .ask_qpn_i('0), .ask_side_i(1'b0),
    .go_valid_o(go_valid), .go_qpn_o(), .go_side_o(), .ans_valid_o(ans_valid), .ans_qpn_o(), .ans_side_o(), .ans_ok_o(), .ans_limited_o(),
    .ans_bytes_o(), .turn_valid_o(turn_valid), .turn_ready_i(1'b1), .turn_qpn_o(), .turn_sides_o(),
    .step_valid_o(step_valid), .step_o(step), .ev_handled_o(handled), .ev_ignored_o(ignored),
    .wake_valid_o(wake_valid), .wake_o(wake), .idle_o(idle));

  typedef struct packed {
    longint at;
    int what;
    int by_byte;
    longint rate, target, rate_err, target_err, alpha, alpha_err;
    int ts, bs;
  } want_t;
  want_t want[16][$];
  int slot_of[int];
  int n_case = 0, n_step = 0, n_query = 0, n_late = 0, n_cnp = 0, n_handled = 0, n_ignored = 0, kinds[8];

  function automatic int slot(input int q);
    if (!slot_of.exists(q)) begin
      int n;
      n = slot_of.num();
      slot_of[q] = n;
    end
    return slot_of[q];
  endfunction
  function automatic longint away(input longint a, input longint b);
    return a > b ? a - b : b - a;
  endfunction
  task automatic compare(input string what, input int q, input want_t w, input rate_t rate, input rate_t target, input alpha_t alpha);
    if (away(longint'(rate) * 256, w.rate) > w.rate_err || away(longint'(target) * 256, w.target) > w.target_err)
      $fatal(1, "case %0d, %s of QP %0d at %0d: rate %0d target %0d, want %0d/256 +- %0d, %0d/256 +- %0d", n_case, what, q, w.at, rate, target,
             w.rate, w.rate_err, w.target, w.target_err);
    if (w.alpha_err >= 0 && away(longint'(alpha) * 256, w.alpha) > w.alpha_err)
      $fatal(1, "case %0d, %s of QP %0d at %0d: alpha %0d/2^24, want %0d/2^32 +- %0d", n_case, what, q, w.at, alpha, w.alpha, w.alpha_err);
  endtask

  function automatic rate_t most_rate();
    return params.max_rate != 0 ? params.max_rate : params.line_rate;
  endfunction
  always @(posedge clk) if (rst_n) begin
    if (handled) n_handled++;
    if (ignored) n_ignored++;
    if (go_valid || ans_valid || turn_valid) $fatal(1, "an answer to nothing");
    if (step_valid && want_steps) begin
      automatic want_t w;
      automatic int s;
      s = slot(int'(step.qpn));
      if (want[s].size() == 0) $fatal(1, "case %0d: QP %0d: a step (%0d) at %0d that the reference has not", n_case, step.qpn, step.what, step.at);
      w = want[s].pop_front();
      if (longint'(step.at) != w.at || int'(step.what) != w.what || (int'(step.by_byte) != w.by_byte && w.what inside {4, 5, 6}))
        $fatal(1, "case %0d: QP %0d: step %0d (by byte %0d) at %0d, want %0d (%0d) at %0d", n_case, step.qpn, step.what, step.by_byte, step.at, w.what, w.by_byte, w.at);
      compare("step", int'(step.qpn), w, step.rate, step.target, step.alpha);
      if (w.what != 7 && (int'(step.time_stage) != w.ts || int'(step.byte_stage) != w.bs))
        $fatal(1, "case %0d: QP %0d at %0d: stages %0d %0d, want %0d %0d", n_case, step.qpn, step.at, step.time_stage, step.byte_stage, w.ts, w.bs);
      if (step.rate < params.min_rate || step.rate > step.target || step.target > most_rate())
        $fatal(1, "case %0d: QP %0d: rate %0d, target %0d, least %0d, most %0d", n_case, step.qpn, step.rate, step.target, params.min_rate, most_rate());
      n_step++;
      kinds[w.what]++;
    end
  end
  bit want_steps = 1;

  task automatic settle();
    @(negedge clk);
    while (!wake_valid) @(negedge clk);
  endtask
  // up to t: from timer to timer, or at once
  task automatic go(input longint t, input bit late);
    settle();
    while (!late && longint'(wake) < t && wake != '1) begin
      if (longint'(wake) <= now) $fatal(1, "wakes at %0d, it is %0d", wake, now);
      now = longint'(wake);
      settle();
    end
    if (late && longint'(wake) < t) n_late++;
    now = t;
  endtask
  task automatic send(input int which, input int q, input int n);
    bit ok;
    qpn = 16'(q);
    sent_bytes = sent_t'(n);
    cnp_valid = which == 0;
    end_valid = which == 1;
    qry_valid = which == 2;
    sent_valid = which == 3;
    ok = 0;
    while (!ok) begin
      @(posedge clk);
      ok = which == 0 ? cnp_ready : which == 1 ? end_ready : which == 2 ? qry_ready : sent_ready;
    end
    @(negedge clk);
    {cnp_valid, end_valid, qry_valid, sent_valid} = '0;
  endtask
  task automatic look(input int q, output rp_view_t v);
    send(2, q, 0);
    while (!view_valid) @(negedge clk);
    v = view;
  endtask

  string file, tag;
  longint f0, f1, f2, f3, f4, f5;
  int f6, f7;
  function automatic want_t state_of();
    want_t s;
    void'($fscanf(fd, " %d %d %d %d %d %d %d %d", f0, f1, f2, f3, f4, f5, f6, f7));
    s = '0;
    s.rate = f0;
    s.target = f1;
    s.rate_err = f2;
    s.target_err = f3;
    s.alpha = f4;
    s.alpha_err = f5;
    s.ts = f6;
    s.bs = f7;
    return s;
  endfunction
  int fd, q, n, kind, by_byte, limited, cuts, fast, slow, faster;
  want_t w;
  rp_view_t v;
  task automatic pass(input bit late);
    longint base;
    base = now + 1000;
    fd = $fopen(file, "r");
    if (fd == 0) $fatal(1, "cannot open %s", file);
    while ($fscanf(fd, " %s", tag) == 1) begin
      case (tag)
        "P": begin
          void'($fscanf(fd, " %h", params));
          slot_of.delete();
          base = now + 1000;
        end
        "E": begin
          void'($fscanf(fd, " %d %d %d %d", q, at, kind, by_byte));
          w = state_of();
          w.at = base + at;
          w.what = kind;
          w.by_byte = by_byte;
          want[slot(q)].push_back(w);
        end
        "C": begin
          void'($fscanf(fd, " %d %d", at, q));
          go(base + at, late);
          send(0, q, 0);
          n_cnp++;
        end
        "S": begin
          void'($fscanf(fd, " %d %d %d", at, q, n));
          go(base + at, late);
          send(3, q, n);
        end
        "X": begin
          void'($fscanf(fd, " %d %d", at, q));
          go(base + at, late);
          send(1, q, 0);
        end
        "Q": begin
          void'($fscanf(fd, " %d %d %d", at, q, limited));
          w = state_of();
          void'($fscanf(fd, " %d %d %d %d", cuts, fast, slow, faster));
          go(base + at, late);
          w.at = now;
          look(q, v);
          if (int'(v.found) != limited) $fatal(1, "case %0d: QP %0d at %0d: limited %0d, want %0d", n_case, q, now, v.found, limited);
          if (limited != 0) begin
            compare("query", q, w, v.rate, v.target, v.alpha);
            if (!v.parked && (int'(v.time_stage) != w.ts || int'(v.byte_stage) != w.bs))
              $fatal(1, "case %0d: QP %0d: stages %0d %0d, want %0d %0d", n_case, q, v.time_stage, v.byte_stage, w.ts, w.bs);
            if (int'(v.cuts) != cuts || int'(v.fast) != fast || int'(v.additive) != slow || int'(v.hyper) != faster)
              $fatal(1, "case %0d: QP %0d: counts %0d %0d %0d %0d, want %0d %0d %0d %0d", n_case, q, v.cuts, v.fast, v.additive, v.hyper, cuts, fast, slow, faster);
            n_query++;
          end
        end
        "Z": begin
          settle();
          for (int i = 0; i < 16; i++) if (want[i].size() != 0) $fatal(1, "case %0d: %0d steps did not come, the first at %0d", n_case, want[i].size(), want[i][0].at);
          n_case++;
        end
        default: $fatal(1, "line %s", tag);
      endcase
    end
    $fclose(fd);
  endtask

  initial begin
    if (!$value$plusargs("vec=%s", file)) $fatal(1, "no +vec");
    repeat (4) @(negedge clk);
    rst_n = 1;
    while (!ready) @(negedge clk);
    pass(0);
    pass(1);
    settle();
    if (n_handled != n_cnp || n_ignored != 0) $fatal(1, "%0d CNPs, %0d handled, %0d ignored", n_cnp, n_handled, n_ignored);
    if (n_late == 0) $fatal(1, "never late");
    foreach (kinds[i]) if (kinds[i] == 0 && i != 3) $fatal(1, "no step of kind %0d", i);

    // paper's form: limiters at the top go to others when none is left; one below the top does not
    want_steps = 0;
    params = '0;
    params.enable = 1;
    params.threshold = 5;
    params.line_rate = 24'h320000;
    params.min_rate = 24'd1000;
    params.ai_rate = 24'd1;
    params.gain = 16'd256;
    params.initial_alpha = 17'h08000;
    params.max_cut = 17'h08000;
    params.alpha_period = 27'd10000;
    params.time_reset = 27'd13750;
    params.byte_reset = 32'd10_000_000;
    params.burst = 20'd4096;
    go(now + 1000, 0);
    for (int i = 0; i < 3; i++) send(0, 300 + i, 0);       // stay below
    params.initial_alpha = '0;
    for (int i = 3; i < NumLimit; i++) send(0, 300 + i, 0); // are at the top soon
    settle();
    n_ignored = 0;
    send(0, 400, 0);
    settle();
    if (n_ignored != 1) $fatal(1, "a CNP with no limiter left: %0d ignored", n_ignored);
    go(now + 20000, 0);
    settle();
    for (int i = 0; i < NumLimit - 3; i++) begin
      send(0, 500 + i, 0);
      settle();
      if (i == 0) begin
        look(500, v);
        if (!v.found) $fatal(1, "no limiter at the top was given to another QP");
      end
    end
    if (n_ignored != 1) $fatal(1, "%0d CNPs ignored while limiters were at the top", n_ignored);
    for (int i = 0; i < NumLimit; i++) begin
      look(300 + i, v);
      if (v.found != (i < 3)) $fatal(1, "QP %0d: limiter %0d", 300 + i, v.found);
    end
    send(0, 600, 0);
    settle();
    if (n_ignored != 2) $fatal(1, "a CNP with no limiter left was not ignored");
    // not enabled
    params.enable = 0;
    send(0, 300, 0);
    settle();
    if (n_ignored != 3) $fatal(1, "a CNP was not ignored");
    done = 1;
  end
endmodule

// ---- pacing -------------------------------------------------------------------------------------------
module cc_rp_pacing
  import rnic_pkg::*;
  import cc_rp_pkg::*;
#(
  parameter int unsigned NumLimit = 1024
) (
  input logic clk,
  output bit done
);
  localparam int Extra = 16;
  localparam int Num = NumLimit + Extra;       // QPs 1000 and up
  localparam int First = 1000;
  localparam longint Line = 50 * 65536;        // bytes per clock
  logic rst_n = 0, ready;
  rp_params_t params = '0;
  longint now = 1000;
  logic cnp_valid = 0, cnp_ready, end_valid = 0, end_ready, sent_valid = 0, sent_ready, sent_more = 0, ask_valid = 0, ask_ready, go_valid, ans_valid;
  logic ans_ok, ans_limited, turn_valid, turn_ready = 0, step_valid, handled, ignored, wake_valid, idle;
  logic [15:0] cnp_qpn = '0, end_qpn = '0, sent_qpn = '0, ask_qpn = '0, go_qpn, ans_qpn, turn_qpn;
  logic sent_side = 0, ask_side = 0, ans_side, go_side;
  logic [1:0] turn_sides;
  sent_t sent_bytes = '0, ans_bytes;
  rp_step_t step;
  logic [63:0] wake;
  cc_rp #(.NumLimit(NumLimit)) dut (
    .clk_i(clk), .rst_ni(rst_n), .ready_o(ready), .params_i(params), .time_i(64'(now)),
    .cnp_valid_i(cnp_valid), .cnp_ready_o(cnp_ready), .cnp_qpn_i(cnp_qpn), .end_valid_i(end_valid), .end_ready_o(end_ready), .end_qpn_i(end_qpn),
    .qry_valid_i(1'b0), .qry_ready_o(), .qry_qpn_i('0), .view_valid_o(), .view_o(),
    .sent_valid_i(sent_valid), .sent_ready_o(sent_ready), .sent_qpn_i(sent_qpn), .sent_side_i(sent_side), .sent_bytes_i(sent_bytes), .sent_more_i(sent_more),
    .ask_valid_i(ask_valid), .ask_ready_o(ask_ready), .ask_qpn_i(ask_qpn), .ask_side_i(ask_side), .go_valid_o(go_valid), .go_qpn_o(go_qpn), .go_side_o(go_side),
    .ans_valid_o(ans_valid), .ans_qpn_o(ans_qpn), .ans_side_o(ans_side), .ans_ok_o(ans_ok), .ans_limited_o(ans_limited), .ans_bytes_o(ans_bytes),
    .turn_valid_o(turn_valid), .turn_ready_i(turn_ready), .turn_qpn_o(turn_qpn), .turn_sides_o(turn_sides),
    .step_valid_o(step_valid), .step_o(step), .ev_handled_o(handled), .ev_ignored_o(ignored),
    .wake_valid_o(wake_valid), .wake_o(wake), .idle_o(idle));

  // ---- senders: saturated, one packet on the link at a time --------------------------------------------
  int active = 0;                  // QPs that send
  int size = 1024;
  int ready_q[$];                  // have their turn
  int granted;                     // bytes that the QP on the link may begin
  int on_link = -1, asked = -1;
  bit ahead = 0;                   // a QP asks again while it sends, until it is refused; else it stops when it has sent what it may
  int begun, untold = 0;           // bytes that an answer need not know of; bytes begun and not told
  longint free_at = 0;             // of the link
  longint link_end = 0;            // the same, in bytes that it can carry
  longint bytes[Num], began[Num], packets[Num], bucket[Num], bucket_at[Num];
  bit check_bucket = 0, quiet[Num];
  longint rate_now[Num];
  longint worst_late = 0, alone_late;   // beyond the time of a packet
  int sent_fifo[$];                // to be told: {QP, bytes, more}
  int stall = 0;                   // turns wait
  int n_handled = 0, n_ignored = 0;
  bit flood = 0;                   // asks of QPs without a limiter
  int n_flood = 0, n_flood_cycles = 0;
  logic [15:0] flood_fifo[$];
  longint last_turn = 0;
  int n_turns = 0;
  bit fixed_rate = 0;
  longint fixed = 0;

  bit jump = 1;
  longint limit = 0;               // do not jump beyond
  // log of what happens
  longint log_a[$], log_b[$];
  bit log_on = 0, log_check = 0;
  int n_log = 0;
  function automatic void note(input longint what);
    longint x;
    if (!log_on) return;
    x = now * 1000003 + what;
    if (!log_check) begin
      log_a.push_back(x);
    end else begin
      if (log_a.size() == 0) $fatal(1, "more happens without jumps, at %0d", now);
      if (log_a.pop_front() != x) $fatal(1, "without jumps it is different, at %0d", now);
      n_log++;
    end
  endfunction

  function automatic int slot_clocks(input int n);
    return int'((longint'(n) * 65536 + Line - 1) / Line);
  endfunction

  function automatic rate_t most_rate();
    return params.max_rate != 0 ? params.max_rate : params.line_rate;
  endfunction
  bit calm = 1;                    // parameters do not change

  // a packet goes when the link is free
  function automatic void link();
    int i, size_before;
    longint credit;
    if (on_link >= 0 && now >= free_at) begin
      i = on_link;
      if (granted > 0) begin
        // a packet begins: the bucket has something
        if (check_bucket) begin
          credit = bucket[i] + fixed * (now - bucket_at[i]);
          if (credit > longint'(params.burst) * 65536) credit = longint'(params.burst) * 65536;
          if (credit <= 0) $fatal(1, "QP %0d sends at %0d, its credit is %0d/65536", i, now, credit);
          // how long it could have begun already
          if (!quiet[i] && packets[i] > 2 && credit / fixed - longint'(slot_clocks(size)) > worst_late) worst_late = credit / fixed - longint'(slot_clocks(size));
          bucket[i] = credit - longint'(size) * 65536;
          bucket_at[i] = now;
        end
        if (packets[i] == 400) began[i] = now;
        granted -= size;
        bytes[i] += longint'(size);
        packets[i]++;
        link_end = (link_end > now * 50 ? link_end : now * 50) + longint'(size);
        free_at = link_end / 50;
        // told at once, or with the next one if what was told before is not taken yet
        if (sent_fifo.size() != 0 && (sent_fifo[sent_fifo.size()-1] >> 16) == i && !sent_fifo[sent_fifo.size()-1][15]) size_before = sent_fifo.pop_back() & 32'h7fff;
        else size_before = 0;
        sent_fifo.push_back((i << 16) | (granted > 0 || ahead ? 0 : 32'h8000) | (size + size_before));
        note(1000 + longint'(i));
        begun += size;
        untold += size;
        if (granted <= 0 && !ahead) on_link = -1;
      end
    end
  endfunction

  // driven at the rising edge, seen by the DUT at the next one
  logic ask_out = 0;
  always @(posedge clk) begin
    automatic int i;
    if (!rst_n) begin
      ask_valid <= 0;
      sent_valid <= 0;
    end else begin
      if (handled) n_handled++;
      if (ignored) n_ignored++;
      if (step_valid) begin
        note(longint'(step.what) * 65536 + longint'(step.rate) + longint'(step.alpha));
        if (calm && (step.rate < params.min_rate || step.rate > step.target || step.target > most_rate())) $fatal(1, "rate %0d target %0d least %0d most %0d", step.rate, step.target, params.min_rate, most_rate());
        if (step.rate > step.target) $fatal(1, "rate %0d target %0d", step.rate, step.target);
      end
      // sent
      if (sent_valid && sent_ready) begin
        sent_valid <= 0;
        untold -= int'(sent_bytes);
      end
      if ((!sent_valid || sent_ready) && sent_fifo.size() != 0) begin
        i = sent_fifo.pop_front();
        sent_valid <= 1;
        sent_qpn <= 16'(First + (i >> 16));
        sent_bytes <= sent_t'(i & 32'h7fff);
        sent_more <= i[15] && !quiet[i >> 16];
        sent_side <= 1'((i >> 16) & 1);
      end
      // turns
      if (turn_valid && turn_ready) begin
        i = int'(turn_qpn) - First;
        note(5000 + longint'(i));
        if (i < 0 || i >= Num || turn_sides != (i[0] ? 2'b10 : 2'b01)) $fatal(1, "turn of QP %0d for sides %b", turn_qpn, turn_sides);
        ready_q.push_back(i);
        last_turn = now;
        n_turns++;
      end
      turn_ready <= stall == 0 || ((now >> 7) % longint'(stall)) == 0;
      // asks
      if (ask_valid && ask_ready) begin
        ask_valid <= 0;
        if (int'(ask_qpn) < First) begin
          flood_fifo.push_back(ask_qpn);
          n_flood++;
        end
      end
      if (flood) n_flood_cycles++;
      if (!ask_valid || ask_ready) begin
        if (asked < 0 && on_link < 0 && ready_q.size() != 0) begin
          asked = ready_q.pop_front();
          ask_valid <= 1;
          ask_qpn <= 16'(First + asked);
          ask_side <= 1'(asked & 1);
          begun = 0;
        end else if (ahead && asked < 0 && on_link >= 0) begin
          asked = on_link;
          ask_valid <= 1;
          ask_qpn <= 16'(First + asked);
          ask_side <= 1'(asked & 1);
          begun = untold;
        end else if (flood) begin
          ask_valid <= 1;
          ask_qpn <= 16'($urandom() % 500);
          ask_side <= 0;
        end
      end
      if (go_valid) begin
        if (int'(go_qpn) < First) begin
          if (flood_fifo.size() == 0 || flood_fifo.pop_front() != go_qpn) $fatal(1, "answers of QPs without a limiter are not in order");
        end else begin
          if (on_link == asked) on_link = -1;
          asked = -1;     // none for this one: it does not send
        end
      end
      if (ans_valid) begin
        i = int'(ans_qpn) - First;
        note(3000 + longint'(ans_ok) * 100000 + longint'(i));
        if (i != asked || ans_side != i[0]) $fatal(1, "answer for QP %0d", ans_qpn);
        asked = -1;
        if (ans_ok) begin
          if (ans_limited && (ans_bytes == 0 || ans_bytes > params.burst)) $fatal(1, "%0d bytes granted, burst %0d", ans_bytes, params.burst);
          if (ans_limited) begin
            on_link = i;
            granted = int'(ans_bytes) - begun;
          end
        end else if (on_link == i) begin
          on_link = -1;
        end
      end
    end
  end

  // ---- time -------------------------------------------------------------------------------------------
  function automatic bit all_idle();
    return wake_valid && !ask_valid && !sent_valid && sent_fifo.size() == 0 && ready_q.size() == 0 && asked < 0 && !cnp_valid && !end_valid && !turn_valid && turn_ready;
  endfunction
  task automatic tick();
    longint t;
    @(negedge clk);
    t = now + 1;
    if (jump && all_idle() && !flood) begin
      t = longint'(wake);
      if (wake == '1 || t > limit) t = limit;
      if (on_link >= 0 && free_at < t) t = free_at;
      if (t < now + 1) t = now + 1;
    end
    now = t;
    link();
  endtask
  task automatic run(input longint until_t);
    limit = until_t;
    while (now < until_t) tick();
  endtask
  task automatic event_of(input bit is_cnp, input int i);
    bit ok;
    if (is_cnp) begin
      cnp_valid = 1;
      cnp_qpn = 16'(First + i);
    end else begin
      end_valid = 1;
      end_qpn = 16'(First + i);
    end
    ok = 0;
    while (!ok) begin
      @(posedge clk);
      ok = is_cnp ? cnp_ready : end_ready;
      if (ok && is_cnp) begin
        bucket[i] = 0;
        bucket_at[i] = now;
      end
      tick();
    end
    cnp_valid = 0;
    end_valid = 0;
  endtask
  task automatic clear();
    for (int i = 0; i < Num; i++) begin
      bytes[i] = 0;
      packets[i] = 0;
      quiet[i] = 0;
    end
  endtask
  task automatic finish_all(input int n);
    for (int i = 0; i < n; i++) event_of(0, i);
    repeat (200) tick();
    ready_q.delete();
    on_link = -1;
    asked = -1;
  endtask

  longint rate, gone, start, expect_at;
  int worst_ppm = 0, ppm;
  longint least, most, sum;
  longint cnp_at[64];
  int cnp_to[64];

  task automatic scenario();
    // from a reset on, at the same time
    @(negedge clk);
    rst_n = 0;
    repeat (4) @(negedge clk);
    ready_q.delete();
    sent_fifo.delete();
    untold = 0;
    on_link = -1;
    asked = -1;
    free_at = 0;
    link_end = 0;
    now = 5000;
    rst_n = 1;
    while (!ready) @(negedge clk);
    // eight QPs, CNPs at given times, turns that wait, other parameters at times
    clear();
    params.windowed = 1;
    params.gain = 16'd320;
    params.initial_alpha = 17'h0ffc0;
    params.threshold = 2;
    params.ai_rate = 24'd20000;
    params.hai_rate = 24'd100000;
    params.first_rate = '0;
    params.time_reset = 27'd4000;
    params.alpha_period = 27'd250;
    params.monitor_period = 27'd1000;
    params.byte_reset = 32'd20000;
    params.burst = 20'd3000;
    params.resolution = 8'd200;
    params.max_rate = '0;
    stall = 3;
    calm = 0;
    start = now;
    for (int n = 0; n < 64; n++) begin
      run(start + cnp_at[n]);
      if (n % 16 == 8) params.windowed = !params.windowed;
      if (n % 16 == 4) params.gain = 16'd256;
      if (n % 16 == 12) params.gain = 16'd320;
      if (n % 16 == 6) params.max_rate = 24'h200000;
      if (n % 16 == 14) params.max_rate = '0;
      if (n % 16 == 10) params.time_reset = 27'd3000;
      event_of(1, cnp_to[n]);
      if (n < 16) ready_q.push_back(cnp_to[n]);
    end
    run(start + 400000);
    stall = 0;
    for (int i = 0; i < 8; i++) event_of(0, i);
    limit = start + 420000;
    run(start + 420000);
    ready_q.delete();
    on_link = -1;
    asked = -1;
    calm = 1;
  endtask

  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    while (!ready) @(negedge clk);
    params.enable = 1;
    params.windowed = 1;
    params.threshold = 5'd31;
    params.gd = 4'd1;
    params.line_rate = rate_t'(Line);
    params.min_rate = 24'd33;
    params.gain = 16'd320;
    params.initial_alpha = 17'h0ffc0;
    params.max_cut = 17'h08000;
    params.alpha_period = 27'd250;
    params.monitor_period = 27'd1000;
    params.time_reset = 27'h7fffff;
    params.byte_reset = '1;
    params.burst = 20'd4096;

    // ---- one sender, rates from 10 Mb/s to the line's; they do not change: first_rate, and nothing is added
    check_bucket = 1;
    ahead = 1;
    for (int n = 0; n < 48; n++) begin
      clear();
      size = n == 1 ? 256 : n == 2 ? 409 : n % 3 == 0 ? 1024 : 200 + int'($urandom() % 3900);
      rate = longint'(328.0 * $pow(real'(Line) / 328.0, n < 2 ? real'(n) : real'($urandom() % 10000) / 10000.0));
      if (n == 2) rate = Line - 1;
      if (n == 1) rate = Line;
      params.burst = 20'(4096 + $urandom() % 8000);
      params.first_rate = rate_t'(rate);
      fixed = rate;
      event_of(1, 0);
      ready_q.push_back(0);
      start = now;
      while (packets[0] < 521) begin
        limit = now + 100000000;
        tick();
      end
      gone = now - began[0];
      // what 120 packets take, after the first ones
      ppm = int'(1000000.0 * (real'(120 * size) * 65536.0 / (real'(rate) * real'(gone)) - 1.0));
      if (ppm < 0) ppm = -ppm;
      if (ppm > worst_ppm) worst_ppm = ppm;
      if (ppm > 10000) $fatal(1, "%0d packets of %0d bytes at %0d/65536 bytes per clock in %0d clocks: off by %0d ppm", 120, size, rate, gone, ppm);
      finish_all(1);
    end
    // a look that was a little early and its repetition, the turn and the ask, each behind another event
    alone_late = worst_late;
    if (alone_late > 64) $fatal(1, "a packet was late by a packet and %0d clocks", alone_late);

    ahead = 0;

    // ---- idle, then more than it may
    clear();
    params.burst = 20'd5000;
    params.first_rate = 24'd3000;
    fixed = 3000;
    size = 1500;
    event_of(1, 0);
    quiet[0] = 1;
    run(now + 3000000);
    for (int n = 0; n < 20; n++) begin
      ready_q.push_back(0);
      repeat (100) tick();
    end
    if (packets[0] != 4) $fatal(1, "%0d packets after a pause, burst %0d", packets[0], params.burst);
    finish_all(1);

    // ---- a rate that grows ends a gap that has begun
    clear();
    check_bucket = 0;
    params.first_rate = 24'd328;
    params.time_reset = 27'd20000;
    params.threshold = 5'd1;
    params.ai_rate = 24'd655360;
    params.resolution = '0;
    size = 4096;
    event_of(1, 0);
    start = now;
    ready_q.push_back(0);
    while (packets[0] < 1) tick();
    n_turns = 0;
    while (n_turns == 0) begin
      limit = now + 1000000;
      tick();
    end
    // steps at 20000 (fast recovery, no change) and 40000
    expect_at = start + 40000 + longint'((4096.0 - 40000.0 * 328.0 / 65536.0) * 65536.0 / (328.0 + 655360.0 / 2.0));
    if (last_turn < expect_at - 4 || last_turn > expect_at + 64) $fatal(1, "turn at %0d, want %0d", last_turn - start, expect_at - start);
    finish_all(1);

    // ---- all limiters, and more QPs
    clear();
    check_bucket = 1;
    params.threshold = 5'd31;
    params.time_reset = 27'd2000000;
    params.ai_rate = '0;
    params.burst = 20'd4096;
    rate = Line * 9 / 10 / longint'(NumLimit);
    params.first_rate = rate_t'(rate);
    fixed = rate;
    size = 1024;
    n_handled = 0;
    n_ignored = 0;
    for (int i = 0; i < Num; i++) event_of(1, i);
    repeat (10) tick();
    if (n_handled != int'(NumLimit) || n_ignored != Extra) $fatal(1, "%0d CNPs handled, %0d ignored", n_handled, n_ignored);
    worst_late = 0;
    flood = 1;
    for (int i = 0; i < Num; i++) begin
      ready_q.push_back(i);
      repeat (3) tick();
    end
    run(now + 22 * 1024 * 65536 / rate);
    flood = 0;
    if (n_flood * 10 < n_flood_cycles * 7) $fatal(1, "QPs without a limiter: %0d answers in %0d cycles", n_flood, n_flood_cycles);
    least = bytes[0];
    most = bytes[0];
    sum = 0;
    for (int i = 0; i < int'(NumLimit); i++) begin
      if (bytes[i] < least) least = bytes[i];
      if (bytes[i] > most) most = bytes[i];
      sum += bytes[i];
    end
    if (least < 19 * 1024 || most > 24 * 1024 + 1024) $fatal(1, "%0d to %0d bytes each", least, most);
    for (int i = int'(NumLimit); i < Num; i++) if (bytes[i] != 0) $fatal(1, "QP %0d has no limiter", i);
    finish_all(Num);
    // they can be had again
    n_handled = 0;
    for (int i = Extra; i < Num; i++) event_of(1, i);
    repeat (10) tick();
    if (n_handled != int'(NumLimit)) $fatal(1, "%0d limiters came back", n_handled);
    finish_all(Num);

    // ---- without a limiter: more to send is answered by a turn, if turns are blocked as well
    for (int n = 0; n < 2; n++) begin
      n_turns = 0;
      stall = n * 1000;
      for (int i = 0; i < 8; i++) sent_fifo.push_back((i << 16) | 32'h8000);
      repeat (300) tick();
      stall = 0;
      repeat (300) tick();
      if (n_turns != 8) $fatal(1, "%0d turns of QPs without a limiter, want 8", n_turns);
    end

    // ---- with and without jumps
    check_bucket = 0;
    size = 900;
    for (int n = 0; n < 64; n++) begin
      cnp_at[n] = n == 0 ? 1000 : cnp_at[n-1] + (n % 16 != 0 ? longint'($urandom() % 3000) + 200 : longint'($urandom() % 40000) + 200);
      cnp_to[n] = n < 8 ? n : int'($urandom() % 8);
    end
    log_on = 1;
    scenario();
    jump = 0;
    log_check = 1;
    scenario();
    if (log_a.size() != 0 || n_log < 2000) $fatal(1, "%0d things happened with jumps only, %0d with both", log_a.size(), n_log);
    done = 1;
  end
endmodule
