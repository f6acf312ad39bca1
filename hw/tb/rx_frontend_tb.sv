// SPDX-License-Identifier: Apache-2.0
//
// The receive front end on frames made by hw/tb/vec/rx_frontend_tb (valid packets of every opcode, broken
// ones of every kind, truncations at every byte, jumbo frames, captures): verdict, metadata and payload of
// each are compared. Phases: back to back; gaps and stalled consumers; overflow; minimum frames at the
// packet rate promised; enable; drain. Once all frames are sent with a raw packet QP present: those that are not RoCEv2 (marked by the vectors)
// come out whole.

module rx_frontend_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;
  import rnic_regs_pkg::*;

  localparam int unsigned Bytes = DataW / 8;
  localparam int unsigned LaneW = $clog2(Bytes);
  localparam int unsigned Words = 700000;
  localparam int unsigned HeadWords = 33;
  localparam logic [47:0] Mac = 48'h554433221102;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [63:0] mem[Words];

  logic enable = 1, promisc = 0, raw_en = 0;
  logic rx_valid = 0, rx_last = 0, rx_user = 0;
  logic [DataW-1:0] rx_data = '0;
  logic [Bytes-1:0] rx_keep = '0;
  logic meta_valid, meta_ready = 0, pcmd_valid = 0, pcmd_ready;
  rx_meta_t meta;
  payload_cmd_e pcmd = PayloadDrop;
  logic pl_valid, pl_ready = 0, pl_last;
  logic [DataW-1:0] pl_data;
  logic [LaneW-1:0] pl_off;
  logic [LaneW:0] pl_cnt;
  logic verdict_valid, drain = 0, drain_done, idle;
  rx_verdict_t verdict;

  prio_map_t prio_map = '0;
  logic [7:0] lossless = '1;
  logic full = 0;
  logic [15:0] units, frames;
  int refused = 0, kept = 0;

  localparam int Ahead = 5;
  logic pf_valid, pf_qp_valid;
  mr_idx_t pf_idx;
  logic [23:0] pf_qpn;

  rx_frontend #(.DataW(DataW), .Ahead(Ahead)) dut (
    .clk_i(clk), .rst_ni(rst_n), .enable_i(enable), .promisc_i(promisc), .raw_en_i(raw_en), .mac_addr_i(Mac),
    .prio_map_i(prio_map), .lossless_i(lossless), .full_i(full), .units_o(units), .frames_o(frames),
    .rx_valid_i(rx_valid), .rx_data_i(rx_data), .rx_keep_i(rx_keep), .rx_last_i(rx_last),
    .rx_user_i(rx_user),
    .meta_valid_o(meta_valid), .meta_ready_i(meta_ready), .meta_o(meta),
    .pcmd_valid_i(pcmd_valid), .pcmd_ready_o(pcmd_ready), .pcmd_i(pcmd),
    .pl_valid_o(pl_valid), .pl_ready_i(pl_ready), .pl_data_o(pl_data), .pl_off_o(pl_off),
    .pl_cnt_o(pl_cnt), .pl_last_o(pl_last),
    .verdict_valid_o(verdict_valid), .verdict_o(verdict),
    .pf_valid_o(pf_valid), .pf_idx_o(pf_idx), .pf_qp_valid_o(pf_qp_valid), .pf_qpn_o(pf_qpn),
    .drain_i(drain), .drain_done_o(drain_done), .idle_o(idle)
  );

  // ---- what must come -------------------------------------------------------------------------
  int want_verdict[$], want_meta[$], want_payload[$];   // word addresses of frames
  payload_cmd_e commands[$];
  bit may_overflow = 0, only_stream = 0;
  int prios = 0, raws = 0, verdicts = 0, accepted = 0, overflows = 0, metas = 0, streamed = 0, finished = 0;
  int held = 0;                                          // bytes of frames not finished
  int reasons[24];
  longint unsigned cycle = 0;
  longint unsigned last_at[$];
  int latency = 0;
  int pl_pos = -1;                                       // byte of the frame expected next

  function automatic logic [7:0] frame_byte(input int at, input int n);
    return mem[at + HeadWords + n / 8][8*(n%8)+:8];
  endfunction
  function automatic rx_verdict_t word16(input int at);
    rx_verdict_t v;
    for (int i = 0; i < 16; i++) v[64*i+:64] = mem[at+i];
    return v;
  endfunction
  function automatic int frame_len(input int at);
    return int'(mem[at][19:0]);
  endfunction
  function automatic bit is_raw(input int at);
    return raw_en && mem[at][22];
  endfunction
  function automatic rx_verdict_t want_of(input int at);
    rx_verdict_t v;
    v = word16(at + 1);
    if (is_raw(at)) begin
      v.reason = DropReasonNone;
      v.raw = 1;
      v.payload_off = 0;
      v.payload_len = 16'(frame_len(at));
    end
    return v;
  endfunction
  function automatic rx_verdict_t mask_of(input int at);
    rx_verdict_t v;
    v = word16(at + 17);
    if (is_raw(at)) {v.payload_off, v.payload_len} = '1;
    return v;
  endfunction
  function automatic int room_of(input int at);
    return (frame_len(at) > 9216 ? 9216 : frame_len(at)) + 64;
  endfunction
  function automatic void finish_frame(input int at);
    held -= room_of(at);
    finished++;
  endfunction

  function automatic logic [2:0] prio_of(input int at);
    int l3;
    logic [15:0] t;
    l3 = 14;
    t = {frame_byte(at, 12), frame_byte(at, 13)};
    for (int i = 0; i < 2 && t inside {EthVlan, EthQinq}; i++) begin
      t = {frame_byte(at, l3 + 2), frame_byte(at, l3 + 3)};
      l3 += 4;
    end
    if (prio_map.trust_dscp && t == EthIpv4) return 3'(frame_byte(at, l3 + 1) >> 5);
    if (prio_map.trust_dscp && t == EthIpv6) return 3'(frame_byte(at, l3) >> 1);
    if (!prio_map.trust_dscp && l3 != 14) return 3'(frame_byte(at, 14) >> 5);
    return prio_map.default_prio;
  endfunction

  // Hints come in the order of the packets, of each packet that has a key or a QP that is not looked up at once, and not too early.
  typedef struct packed {int at; bit direct;} hint_t;
  hint_t hints[$], hint_of;
  int hinted = 0, early = 0;                             // packets passed; hints for the last one that may have one
  function automatic void check_verdict();
    rx_verdict_t want, mask, diff;
    int at;
    if (want_verdict.size() == 0) $fatal(1, "verdict without a frame");
    at = want_verdict.pop_front();
    want = want_of(at);
    mask = mask_of(at);
    mask.raw = 1;
    verdicts++;
    if (latency == 0) latency = int'(cycle - last_at[0]);
    if (int'(cycle - last_at.pop_front()) != latency) $fatal(1, "verdict latency varies");
    reasons[int'(verdict.reason)]++;
    // a full buffer is for lossless priorities only
    if (full && frame_len(at) >= 26 && want.reason != DropReasonFrameError && want.reason != DropReasonFrameTooLong) begin
      if ((verdict.reason == DropReasonOverflow) == lossless[prio_of(at)])
        $fatal(1, "priority %0d of %b: reason %0d", prio_of(at), lossless, verdict.reason);
      if (lossless[prio_of(at)]) kept++;
      else refused++;
    end
    if (may_overflow && verdict.reason == DropReasonOverflow && want.reason != DropReasonFrameError &&
        want.reason != DropReasonFrameTooLong) begin
      overflows++;
      finish_frame(at);
      return;
    end
    diff = (verdict ^ want) & mask;
    if (diff != '0) begin
      $display("frame at word %0d, %0d bytes, verdict %0d:", at, frame_len(at), verdicts);
      $display("got  reason %0d %h", verdict.reason, verdict);
      $display("want reason %0d %h", want.reason, want);
      $display("mask           %h", mask);
      $fatal(1, "wrong verdict");
    end
    if (want.reason == DropReasonNone) begin
      accepted++;
      // nothing before it: its QP is looked up at once, and not announced
      hint_of.at = at;
      hint_of.direct = want_meta.size() == 0 || (want_meta.size() == 1 && meta_valid && meta_ready);
      hints.push_back(hint_of);
      want_meta.push_back(at);
    end else begin
      finish_frame(at);
    end
  endfunction

  function automatic bit has_key(input int at);
    rx_verdict_t v;
    v = want_of(at);
    return !is_raw(at) && v.opcode[7:6] == 0 && v.opcode[4:0] inside {5'd6, 5'd10, 5'd11, 5'd12, 5'd19, 5'd20};
  endfunction
  function automatic bit has_qp(input hint_t h);
    rx_verdict_t v;
    v = want_of(h.at);
    return !h.direct && !is_raw(h.at) && v.dest_qp != 1;
  endfunction
  function automatic void pass_silent();
    bit key, qp;
    while (hints.size() != 0) begin
      key = has_key(hints[0].at);
      qp = has_qp(hints[0]);
      if (key || qp) break;
      void'(hints.pop_front());
      hinted++;
    end
  endfunction
  function automatic void check_hint();
    rx_verdict_t v;
    hint_t h;
    bit key, qp;
    mr_idx_t idx;
    pass_silent();
    if (hints.size() == 0) $fatal(1, "a hint without a packet");
    h = hints.pop_front();
    v = want_of(h.at);
    key = has_key(h.at);
    qp = has_qp(h);
    if (pf_valid != key || pf_qp_valid != qp) $fatal(1, "hints key %b QP %b of frame at word %0d", pf_valid, pf_qp_valid, h.at);
    idx = mr_key_idx(v.rkey);
    if (pf_valid && pf_idx != idx) $fatal(1, "hint for key %h, want that of %h", pf_idx, v.rkey);
    if (pf_qp_valid && pf_qpn != v.dest_qp) $fatal(1, "hint for QP %h, want %h", pf_qpn, v.dest_qp);
    if (hinted - metas > Ahead + 1) $fatal(1, "hint %0d packets ahead", hinted - metas);
    if (hinted - metas >= Ahead) early++;
    hinted++;
  endfunction

  function automatic void check_meta();
    rx_verdict_t want, mask;
    bit bad;
    int at;
    if (want_meta.size() == 0) $fatal(1, "metadata without a verdict");
    at = want_meta.pop_front();
    want = want_of(at);
    mask = mask_of(at);
    metas++;
    pass_silent();
    if (hinted < metas) $fatal(1, "frame at word %0d was not announced", at);
    if (meta.prio != prio_of(at)) $fatal(1, "priority %0d, want %0d", meta.prio, prio_of(at));
    if (meta.prio != 0) prios++;
    if (meta.raw != is_raw(at)) $fatal(1, "raw %b", meta.raw);
    bad = meta.raw ? meta.payload_len != 13'(frame_len(at)) || meta.payload_off != 0 : meta.opcode != want.opcode || meta.pad != want.bth_flags[5:4] ||
          meta.solicited != want.bth_flags[7] || meta.ack_req != want.ack_req ||
          meta.fecn != want.fecn || meta.becn != want.becn || meta.ecn != want.tos[1:0] ||
          meta.pkey != want.pkey || meta.dest_qp != want.dest_qp || meta.psn != want.psn ||
          meta.ipv6 != want.ipv6 || meta.sip != want.sip || meta.dip != want.dip ||
          meta.payload_len != (want.payload_len > 4096 ? 13'd8191 : want.payload_len[12:0]) ||
          meta.payload_off != want.payload_off;
    bad = bad || (!meta.raw && (((meta.va ^ want.va) & mask.va) != 0 || ((meta.rkey ^ want.rkey) & mask.rkey) != 0 ||
          ((meta.dma_len ^ want.dma_len) & mask.dma_len) != 0 || ((meta.imm ^ want.imm) & mask.imm) != 0 ||
          ((meta.syndrome ^ want.syndrome) & mask.syndrome) != 0 || ((meta.msn ^ want.msn) & mask.msn) != 0 ||
          ((meta.swap_add ^ want.swap_add) & mask.swap_add) != 0 ||
          ((meta.compare ^ want.compare) & mask.compare) != 0));
    if (meta.raw) raws++;
    else if (want.opcode[7:5] == 3'd3)
      bad = bad || meta.qkey != want.va[31:0] || meta.src_qp != want.va[55:32];
    if (bad) $fatal(1, "wrong metadata of frame at word %0d: %h, verdict %h", at, meta, want);
    if (want.payload_len == 0) finish_frame(at);
    else begin
      payload_cmd_e c;
      c = !only_stream && ($urandom() % 4) == 0 ? PayloadDrop : PayloadStream;
      commands.push_back(c);
      if (c == PayloadStream) want_payload.push_back(at);
      else finish_frame(at);
    end
  endfunction

  function automatic void check_payload();
    rx_verdict_t want;
    int at, first, total;
    if (want_payload.size() == 0) $fatal(1, "payload without a command");
    at = want_payload[0];
    want = want_of(at);
    first = int'(want.payload_off);
    total = int'(want.payload_len);
    if (pl_pos < 0) begin
      pl_pos = first;
      if (int'(pl_off) != first % Bytes) $fatal(1, "first beat: offset %0d", pl_off);
    end else if (pl_off != '0) $fatal(1, "offset inside of a packet");
    if (pl_cnt == 0 || int'(pl_off) + int'(pl_cnt) > Bytes || pl_pos + int'(pl_cnt) > first + total)
      $fatal(1, "count %0d at byte %0d", pl_cnt, pl_pos);
    if (!pl_last && int'(pl_off) + int'(pl_cnt) != Bytes) $fatal(1, "beat not full");
    for (int i = 0; i < int'(pl_cnt); i++) begin
      if (pl_data[8*(int'(pl_off)+i)+:8] !== frame_byte(at, pl_pos + i))
        $fatal(1, "payload of frame at word %0d, byte %0d", at, pl_pos + i);
    end
    pl_pos += int'(pl_cnt);
    if (pl_last != (pl_pos == first + total)) $fatal(1, "last at byte %0d of %0d", pl_pos - first, total);
    if (pl_last) begin
      pl_pos = -1;
      void'(want_payload.pop_front());
      streamed++;
      finish_frame(at);
    end
  endfunction

  // Streams must stay until taken.
  logic meta_hold = 0, pl_hold = 0;
  rx_meta_t meta_was;
  logic [DataW-1:0] pl_was;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n) begin
      if (rx_valid && rx_last && want_verdict.size() > last_at.size()) last_at.push_back(cycle);
      if (meta_hold && (!meta_valid || meta != meta_was)) $fatal(1, "metadata did not stay");
      if (pl_hold && (!pl_valid || pl_data != pl_was)) $fatal(1, "payload did not stay");
      meta_hold = meta_valid && !meta_ready;
      meta_was = meta;
      pl_hold = pl_valid && !pl_ready;
      pl_was = pl_data;
      if (verdict_valid) check_verdict();
      if (pf_valid || pf_qp_valid) check_hint();
      if (pcmd_valid && pcmd_ready) void'(commands.pop_front());
      if (pl_valid && pl_ready) check_payload();
      if (meta_valid && meta_ready) check_meta();
    end
  end

  // Consumer: 0 always ready, 1 random, 2 stalled, 3 one packet per 4 cycles, 4 only payload stalled
  int consumer = 0;
  always @(negedge clk) begin
    case (consumer)
      0: {meta_ready, pl_ready} = 2'b11;
      1: {meta_ready, pl_ready} = 2'($urandom());
      2: {meta_ready, pl_ready} = 2'b00;
      4: {meta_ready, pl_ready} = 2'b10;
      default: {meta_ready, pl_ready} = {cycle[1:0] == 2'd0, 1'b1};
    endcase
    if (commands.size() != 0 && (consumer == 0 || consumer >= 3 || pcmd_valid ||
                                 ($urandom() % 2) == 0)) begin
      pcmd_valid = 1;
      pcmd = commands[0];
    end else begin
      pcmd_valid = 0;
    end
  end

  // ---- frames in --------------------------------------------------------------------------------
  task automatic send(input int at, input bit gaps, input bit expected);
    int len, beats;
    len = frame_len(at);
    beats = (len + Bytes - 1) / Bytes;
    for (int k = 0; k < beats; k++) begin
      @(negedge clk);
      for (int w = 0; w < Bytes / 8; w++) begin
        if (k * Bytes + 8 * w < len) rx_data[64*w+:64] = mem[at + HeadWords + k * (Bytes / 8) + w];
        else rx_data[64*w+:64] = {$urandom(), $urandom()};
      end
      rx_last = k == beats - 1;
      rx_keep = '1;
      if (rx_last) begin
        for (int i = 0; i < Bytes; i++) begin
          rx_keep[i] = k * Bytes + i < len;
          if (!rx_keep[i]) rx_data[8*i+:8] = 8'($urandom());
        end
        if (expected) begin
          want_verdict.push_back(at);
          held += room_of(at);
        end
      end
      rx_user = rx_last ? mem[at][20] : 1'($urandom());
      rx_valid = 1;
      while (gaps && ($urandom() % 4) == 0) begin
        @(negedge clk);
        rx_valid = 0;
        rx_last = 1'($urandom());
      end
    end
  endtask

  task automatic quiet();
    @(negedge clk);
    rx_valid = 0;
  endtask

  task automatic settle();
    quiet();
    for (int i = 0; i < 100000 && !(idle && want_verdict.size() == 0 && commands.size() == 0); i++)
      @(negedge clk);
    if (!idle || want_verdict.size() != 0 || want_meta.size() != 0 || want_payload.size() != 0 ||
        held != 0) $fatal(1, "does not come to rest: %0d %0d %0d", want_verdict.size(),
                          want_meta.size(), want_payload.size());
  endtask

  // Frames from word `at` on, at most `count`; waits where more would overflow.
  task automatic pass(input int from, input int count, input bit gaps, input bit throttle);
    int at;
    at = from;
    for (int n = 0; n < count && mem[at] != '1; n++) begin
      if (promisc != mem[at][21]) begin
        if (throttle) settle();
        else return;
        promisc = mem[at][21];
      end
      while (throttle && (held > 28000 || (want_verdict.size() + want_meta.size() +
             want_payload.size() + commands.size()) > 20)) quiet();
      send(at, gaps, 1);
      at += HeadWords + (frame_len(at) + 7) / 8;
    end
    quiet();
  endtask

  // Word address of the n-th accepted frame for our MAC with payload in [lo, hi].
  function automatic int find(input int lo, input int hi, input int nth);
    int at, n;
    rx_verdict_t v;
    at = 0;
    n = nth;
    while (mem[at] != '1) begin
      v = word16(at + 1);
      if (!mem[at][21] && v.reason == 0 && int'(v.payload_len) >= lo && int'(v.payload_len) <= hi) begin
        if (n == 0) return at;
        n--;
      end
      at += HeadWords + (frame_len(at) + 7) / 8;
    end
    $fatal(1, "no such frame");
  endfunction
  // Word address of a frame of at most 100 bytes with a bad ICRC.
  function automatic int find_bad();
    int at;
    rx_verdict_t v;
    at = 0;
    while (mem[at] != '1) begin
      v = word16(at + 1);
      if (!mem[at][21] && v.reason == DropReasonIcrc && frame_len(at) <= 100) return at;
      at += HeadWords + (frame_len(at) + 7) / 8;
    end
    $fatal(1, "no such frame");
  endfunction
  function automatic int find_len(input int len);
    int at;
    rx_verdict_t v;
    at = 0;
    while (mem[at] != '1) begin
      v = word16(at + 1);
      if (frame_len(at) == len && v.reason == 0) return at;
      at += HeadWords + (frame_len(at) + 7) / 8;
    end
    $fatal(1, "no frame of %0d bytes", len);
  endfunction

  string vec;
  int at, big, bad, mark, n, minis[7];
  initial begin
    if (!$value$plusargs("vec=%s", vec)) $fatal(1, "+vec=FILE missing");
    $readmemh(vec, mem);
    repeat (4) @(negedge clk);
    rst_n = 1;
    repeat (2) @(negedge clk);
    if (!idle) $fatal(1, "not idle after reset");

    // back to back; then with gaps and stalls
    consumer = 0;
    pass(0, 1000000, 0, 1);
    settle();
    consumer = 1;
    promisc = 0;
    pass(0, 1000000, 1, 1);
    settle();
    raw_en = 1;
    promisc = 0;
    pass(0, 1000000, 1, 1);
    settle();
    raw_en = 0;
    if (raws < 300) $fatal(1, "%0d raw frames", raws);
    foreach (reasons[i]) if (i != 3 && reasons[i] == 0) $fatal(1, "reason %0d never seen", i);
    if (reasons[3] != 0) $fatal(1, "overflow");

    // overflow, by bytes and by number of frames; and that the buffer recovers
    promisc = 0;
    may_overflow = 1;
    big = find(3000, 4096, 0);
    bad = find_bad();
    for (int r = 0; r < 4; r++) begin
      consumer = 2;
      mark = overflows;
      for (int i = 0; i < 30; i++) send(big, 0, 1);
      if (r != 0) pass(0, 60, 0, 0);
      repeat (20) quiet();
      if (overflows - mark < 8) $fatal(1, "%0d overflows", overflows - mark);
      consumer = r % 2;
      settle();
    end
    mark = overflows;
    consumer = 2;
    n = find(0, 60, 0);
    for (int i = 0; i < 7; i++) minis[i] = find(0, 60, i);
    for (int i = 0; i < 700; i++) send(minis[i%7], 0, 1);
    repeat (20) quiet();
    if (overflows - mark < 100) $fatal(1, "frames without end are held");
    consumer = 1;
    settle();
    // the frame that is being streamed out keeps its place
    for (int r = 0; r < 6; r++) begin
      mark = overflows;
      consumer = 4;
      for (int i = 0; i < 40; i++) send(big, 0, 1);
      repeat (20) quiet();
      if (overflows - mark < 8) $fatal(1, "%0d overflows while streaming", overflows - mark);
      consumer = r % 2;
      settle();
    end
    // refused frames wait behind it, too: no more than there are descriptors
    for (int r = 0; r < 2; r++) begin
      mark = overflows;
      consumer = 4;
      only_stream = 1;
      send(big, 0, 1);
      for (int i = 0; i < 700; i++) send(bad, 0, 1);
      repeat (20) quiet();
      if (overflows - mark < 60) $fatal(1, "%0d overflows of refused frames", overflows - mark);
      consumer = r;
      only_stream = 0;
      settle();
    end
    // a full buffer: priorities without flow control are refused
    consumer = 0;
    for (int r = 0; r < 8; r++) begin
      settle();
      lossless = r == 7 ? 8'hff : 8'($urandom());
      prio_map = '{trust_dscp: 1'(r), default_prio: 3'($urandom())};
      full = 1;
      pass(0, 400, 0, 1);
      settle();
      full = 0;
    end
    if (prios < 200) $fatal(1, "%0d packets with a priority", prios);
    if (kept < 200 || refused < 200) $fatal(1, "%0d kept, %0d refused of a full buffer", kept, refused);
    if (units != 0 || frames != 0) $fatal(1, "an empty buffer has %0d, %0d", units, frames);
    consumer = 2;
    for (int i = 0; i < 5; i++) send(find(0, 60, i), 0, 1);
    repeat (40) quiet();
    if (frames != 5 || units < 5 || units > 10) $fatal(1, "5 small frames are %0d, %0d", units, frames);
    consumer = 1;
    settle();
    may_overflow = 0;
    pass(0, 100, 0, 1);
    settle();

    // minimum frames: 62-byte acknowledges, one per 4 cycles (or as fast as the width allows)
    promisc = 1;
    at = find_len(62);
    consumer = 3;
    mark = accepted;
    for (int i = 0; i < 2000; i++) begin
      send(at, 0, 1);
      for (int g = (62 + Bytes - 1) / Bytes; g < 4; g++) quiet();
    end
    settle();
    if (accepted - mark != 2000) $fatal(1, "minimum frames lost");
    for (int i = 0; i < 20; i++) send(at, 0, 1);   // a burst without gaps
    settle();
    if (accepted - mark != 2020) $fatal(1, "burst lost");

    // enable: sampled at the first beat
    promisc = 0;
    consumer = 0;
    mark = verdicts;
    @(negedge clk);
    enable = 0;
    send(big, 0, 0);
    fork
      send(big, 0, 0);
      begin
        repeat (8) @(negedge clk);
        enable = 1;
      end
    join
    fork
      send(big, 0, 1);
      begin
        repeat (8) @(negedge clk);
        enable = 0;
      end
    join
    send(n, 0, 0);
    settle();
    if (verdicts - mark != 1) $fatal(1, "enable: %0d verdicts", verdicts - mark);
    enable = 1;

    // drain
    consumer = 2;
    mark = finished;
    for (int i = 0; i < 3; i++) send(big, 0, 1);
    quiet();
    drain = 1;
    repeat (60) quiet();
    if (drain_done) $fatal(1, "drained although nothing left");
    for (int i = 0; i < 4; i++) send(big, 0, 1);
    consumer = 1;
    while (!drain_done) quiet();
    if (finished - mark < 3) $fatal(1, "drained too early: %0d", finished - mark);
    settle();
    if (!drain_done) $fatal(1, "drain_done fell");
    drain = 0;
    quiet();
    quiet();
    if (drain_done) $fatal(1, "drain_done stays");
    drain = 1;
    repeat (40) quiet();
    if (!drain_done) $fatal(1, "an empty block does not drain");

    $display("PASS %0d frames, %0d accepted, %0d overflows, %0d payloads, latency %0d", verdicts,
             accepted, overflows, streamed, latency);
    $finish;
  end
endmodule
