// SPDX-License-Identifier: Apache-2.0
//
// rx_lookup with random packets and a cache that takes questions and answers them when it likes: order, slots, QP1 and frames that are not
// RoCEv2, packets without a QP, pins given up once, with the packet; drains; a packet per two cycles when nothing waits.

module rx_lookup_tb #(
  parameter int unsigned DataW = 64
);
  import rnic_pkg::*;

  logic clk = 0, rst_n = 0, paused = 0;
  always #1 clk = !clk;

  logic gsi_valid = 0, raw_valid = 0, in_valid = 0, in_ready, out_valid, out_ready = 0, none, late, drain = 0, drain_done, idle;
  logic [23:0] gsi_qpn = 24'h77, raw_qpn = 24'h88;
  rx_meta_t in = '0, out;
  logic [1:0] req_valid, req_ready = 0, rsp_valid = 0, rel_valid;
  logic [1:0][23:0] req_qpn;
  qpc_status_e [1:0] rsp_status;
  qp_idx_t [1:0] rsp_slot;
  qp_idx_t qp;

  localparam int Patience = 64;
  rx_lookup #(.LogPatience(6)) dut (
    .clk_i(clk), .rst_ni(rst_n), .gsi_valid_i(gsi_valid), .gsi_qpn_i(gsi_qpn), .raw_valid_i(raw_valid), .raw_qpn_i(raw_qpn), .paused_i(paused),
    .meta_valid_i(in_valid), .meta_ready_o(in_ready), .meta_i(in),
    .req_valid_o(req_valid), .req_ready_i(req_ready), .req_qpn_o(req_qpn), .rsp_valid_i(rsp_valid), .rsp_status_i(rsp_status), .rsp_slot_i(rsp_slot),
    .rel_valid_o(rel_valid), .meta_valid_o(out_valid), .meta_ready_i(out_ready), .meta_o(out), .qp_o(qp), .none_o(none), .late_o(late),
    .drain_i(drain), .drain_done_o(drain_done), .idle_o(idle));

  typedef struct packed {rx_meta_t meta; bit lookup; bit lost; logic [23:0] qpn;} want_t;
  want_t want[$];
  bit had_question[2];               // the cache, of the packet at this port
  int deaf = 0;                      // cycles in which it takes no question
  bit pinned[2], asked[2], gone[2];  // gone: the packet of the question was given up
  int waited = 0, lates = 0, late_ones = 0;  // waited: cycles of a pause without a break
  int first_at = 0, patient = 0, pause_left = 0;
  int left[2];
  logic [23:0] asked_qpn[2];
  int now = 0, taken = 0, given = 0, drain_target = 0, nones = 0, gsis = 0, raws = 0, held_up = 0;
  bit fast = 0, was_valid = 0;
  rx_meta_t was;

  function automatic qpc_status_e status_of(logic [23:0] qpn);
    return qpn[2:0] == 0 ? QpcNone : qpn[2:0] == 1 ? QpcRefused : QpcOk;
  endfunction

  always @(posedge clk) begin
    now <= now + 1;
    waited = paused || waited >= Patience ? waited + 1 : 0;
    if (rst_n) begin
      for (int i = 0; i < 2; i++) begin
        if (rel_valid[i]) begin
          if (!pinned[i]) $fatal(1, "port %0d gives up a pin that it has not", i);
          if (gone[i]) begin
            if (!rsp_valid[i]) $fatal(1, "pin of a packet that is gone is kept");
          end else if (!(out_valid && out_ready)) $fatal(1, "pin given up, and no packet goes");
          pinned[i] = 0;
        end
        if (req_valid[i] && req_ready[i]) begin
          if (pinned[i] || asked[i]) $fatal(1, "port %0d asks again", i);
          asked[i] = 1;
          had_question[i] = 1;
          left[i] = fast ? 0 : $urandom_range(0, 3) == 0 ? $urandom_range(0, 40) : $urandom_range(0, 60) == 0 ? $urandom_range(40, 400) : 0;
          asked_qpn[i] = req_qpn[i];
        end
      end
      if (out_valid && out_ready) begin
        want_t w;
        if (want.size() == 0) $fatal(1, "a packet that never came");
        w = want.pop_front();
        if (out != w.meta) $fatal(1, "packet changed, or order");
        if (w.lost && w.lookup && !late) $fatal(1, "not given up with the packet before");
        if (late) begin
          if (!none || !w.lookup) $fatal(1, "late, and not without a slot");
          // it has waited, or its port waits for one that has
          if (w.lost) late_ones++;
          else if (waited >= Patience && !gone[given % 2]) begin
            if (!had_question[given % 2]) $fatal(1, "given up before the cache has its question");
            gone[given % 2] = 1;
            lates++;
          end else $fatal(1, "given up after %0d cycles of a pause", waited);
        end else if (none != !(w.lookup && status_of(w.qpn) == QpcOk)) $fatal(1, "none %b of QPN %h", none, w.qpn);
        if (!late && !none && waited > Patience + 100) $fatal(1, "waited %0d cycles", waited);
        if (!late && !none && now - first_at > Patience + 100) patient++;
        first_at = now;
        waited = 0;
        had_question[given % 2] = 0;
        if (!none && qp != qp_idx_t'(w.qpn ^ 24'h5a)) $fatal(1, "slot %h of QPN %h", qp, w.qpn);
        if (none) nones++;
        given++;
      end
      if (was_valid && (!out_valid || out != was)) $fatal(1, "a packet at the output was taken back");
      was_valid = out_valid && !out_ready;
      was = out;
      if (in_valid && in_ready) begin
        want_t w;
        w.meta = in;
        w.lost = gone[taken % 2] && !rsp_valid[taken % 2];
        w.lookup = in.raw ? raw_valid : in.dest_qp == 1 ? gsi_valid : 1;
        w.qpn = in.raw ? raw_qpn : in.dest_qp == 1 ? gsi_qpn : in.dest_qp;
        if (in.raw && raw_valid) raws++;
        if (!in.raw && in.dest_qp == 1 && gsi_valid) gsis++;
        if (want.size() == 0) begin
          first_at = now;
          waited = 0;
        end
        want.push_back(w);
        taken++;
      end
      if (in_valid && !in_ready) held_up++;
      if (drain && drain_done && given < drain_target) $fatal(1, "drain is done too early");
      if (idle && (want.size() != 0 || asked[0] || asked[1])) $fatal(1, "idle with a packet inside, or its look-up under way");
      if (want.size() > 2) $fatal(1, "%0d packets inside", want.size());
    end
  end

  // the answer that nobody needs has come
  always @(posedge clk) for (int i = 0; i < 2; i++) if (rsp_valid[i]) gone[i] <= 0;
  always @(negedge clk) begin
    rsp_valid = '0;
    for (int i = 0; i < 2; i++) begin
      if (asked[i]) begin
        if (left[i] > 0) left[i]--;
        else begin
          asked[i] = 0;
          rsp_valid[i] = 1;
          rsp_status[i] = status_of(asked_qpn[i]);
          rsp_slot[i] = qp_idx_t'(asked_qpn[i] ^ 24'h5a);
          pinned[i] = rsp_status[i] == QpcOk;

        end
      end else if (!pinned[i]) rsp_slot[i] = qp_idx_t'($urandom);
    end
    if (pause_left == 0) begin
      paused = !paused;
      pause_left = $urandom_range(0, 4) == 0 ? $urandom_range(1, 3) : $urandom_range(20, 400);
    end else pause_left--;
    if (deaf > 0) deaf--;
    else if (!fast && $urandom_range(0, 999) == 0) deaf = Patience + 20;
    req_ready = fast ? 2'b11 : deaf > 0 ? 2'b00 : 2'($urandom);
    out_ready = fast || $urandom_range(0, 2) != 0;
    // a new packet only when the last one was taken
    if (rst_n && !(in_valid && !in_taken)) begin
      in_valid = fast || $urandom_range(0, 2) != 0;
      if (in_valid) begin
        in = '0;
        in.psn = 24'($urandom);
        in.rkey = $urandom;
        in.raw = $urandom_range(0, 9) == 0;
        in.dest_qp = $urandom_range(0, 9) == 0 ? 24'd1 : 24'($urandom_range(2, 200));
        in.opcode = 8'($urandom);
        gsi_valid = $urandom_range(0, 3) != 0;
        raw_valid = $urandom_range(0, 3) != 0;
        gsi_qpn = 24'h7a + 24'($urandom_range(0, 3));
        raw_qpn = 24'h8a + 24'($urandom_range(0, 3));
      end
    end
  end
  bit in_taken;
  always @(posedge clk) in_taken = in_valid && in_ready;

  int t0, n0;
  initial begin
    repeat (3) @(posedge clk);
    rst_n = 1;
    for (int round = 0; round < 700; round++) begin
      repeat ($urandom_range(5, 100)) @(posedge clk);
      @(negedge clk) #0.1 drain_target = taken;
      drain = 1;
      t0 = now;
      while (!drain_done) begin
        @(negedge clk);
        if (now - t0 > 1000) $fatal(1, "drain takes too long");
      end
      repeat ($urandom_range(0, 5)) @(negedge clk);
      #0.1 drain = 0;
      repeat (2) @(negedge clk);
    end
    fast = 1;
    repeat (450) @(posedge clk);   // look-ups from before take 400 cycles at most
    n0 = given;
    t0 = now;
    repeat (1000) @(posedge clk);
    if (given - n0 < 990) $fatal(1, "%0d packets in 1000 cycles", given - n0);
    if (nones < 50 || gsis < 50 || raws < 50 || held_up < 100 || lates < 5 || late_ones < 5 || patient < 5) $fatal(1, "corners: %0d none, %0d QP1, %0d raw, %0d held up, %0d given up, %0d with them, %0d waited", nones, gsis, raws, held_up, lates, late_ones, patient);
    $display("PASS %0d packets, %0d without a QP, %0d to QP1, %0d frames that are not RoCEv2, %0d given up, %0d with them, %0d waited as long without a pause", given, nones, gsis, raws, lates, late_ones, patient);
    $finish;
  end
endmodule
