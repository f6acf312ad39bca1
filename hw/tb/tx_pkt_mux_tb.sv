// SPDX-License-Identifier: Apache-2.0
//
// tx_pkt_mux: packets of both sides with none, one or several fragments, with stalls everywhere: each side keeps its order, fragments
// come in the order of the packets and of one packet at a time, what is shown stays, and neither side starves. DataW does
// not matter to this block.

module tx_pkt_mux_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [1:0] pkt_valid = '0, pkt_ready, frag_valid = '0, frag_ready;
  tx_pkt_t  pkt_a = '0, pkt_b = '0, pkt, pkt_last;
  tx_frag_t frag_a = '0, frag_b = '0, frag;
  logic o_valid, o_ready = 0, f_valid, f_ready = 0;

  tx_pkt_mux dut (
    .clk_i(clk), .rst_ni(rst_n),
    .rsp_pkt_valid_i(pkt_valid[1]), .rsp_pkt_ready_o(pkt_ready[1]), .rsp_pkt_i(pkt_b),
    .rsp_frag_valid_i(frag_valid[1]), .rsp_frag_ready_o(frag_ready[1]), .rsp_frag_i(frag_b),
    .req_pkt_valid_i(pkt_valid[0]), .req_pkt_ready_o(pkt_ready[0]), .req_pkt_i(pkt_a),
    .req_frag_valid_i(frag_valid[0]), .req_frag_ready_o(frag_ready[0]), .req_frag_i(frag_a),
    .pkt_valid_o(o_valid), .pkt_ready_i(o_ready), .pkt_o(pkt),
    .frag_valid_o(f_valid), .frag_ready_i(f_ready), .frag_o(frag)
  );

  // Packet n of a side: length, and number of fragments, by a rule. wqe is its number, dma_len its side.
  function automatic int frags_of(int side, int n);
    int h;
    h = ((n * 7919 + side * 104729) >> 3) % 11;
    return h < 3 ? 0 : h < 8 ? 1 : h - 6;
  endfunction
  function automatic bit inl_of(int side, int n);
    return side == 0 && frags_of(side, n) == 0 && n % 2 == 0;
  endfunction

  int sent_p[2], sent_f[2], part[2];   // packets offered; fragments: of packet sent_f the part
  int got_p[2], cur_side = 0, cur_n = 0, cur_left = 0, cur_part = 0, total = 0, alone[2], waited = 0, max_wait = 0, cycles = 0, first = 0;
  int stall = 0, rounds = 60000, frags = 0, side;
  bit want_rsp = 1, want_req = 1, was_shown = 0;
  function automatic bit go();
    return int'($urandom() % 100) >= stall;
  endfunction

  task automatic make(output tx_pkt_t p, input int s, input int n);
    p = '0;
    p.wqe = 16'(n);
    p.dma_len = 32'(s);
    p.inl = inl_of(s, n);
    p.len = frags_of(s, n) == 0 && !inl_of(s, n) ? 13'd0 : 13'd100;
  endtask

  logic [1:0] p_took = '0, f_took = '0;
  always @(posedge clk) if (rst_n) begin
    p_took = pkt_valid & pkt_ready;
    f_took = frag_valid & frag_ready;
    if (was_shown && (!o_valid || pkt !== pkt_last)) $fatal(1, "packet changed while it waited");
    was_shown = o_valid && !o_ready;
    pkt_last = pkt;
    if ((o_valid && o_ready) != (|p_took)) $fatal(1, "packet taken on one side only");
    if (o_valid && o_ready) begin
      if (cur_left != 0) $fatal(1, "packet before the fragments of the last one");
      side = int'(pkt.dma_len);
      if (int'(pkt.wqe) != (got_p[side] & 16'hffff)) $fatal(1, "side %0d: packet %0d, want %0d", side, pkt.wqe, got_p[side]);
      cur_side = side;
      cur_n = got_p[side];
      cur_part = 0;
      cur_left = inl_of(side, cur_n) ? 0 : frags_of(side, cur_n);
      got_p[side]++;
      total++;
      if (side == 1 && pkt_valid[0]) waited++;
      else waited = 0;
      if (waited > max_wait) max_wait = waited;
    end
    if ((f_valid && f_ready) != (|f_took)) $fatal(1, "fragment taken on one side only");
    if (f_valid && f_ready) begin
      if (cur_left == 0) $fatal(1, "fragment of no packet");
      if (frag.iova != {8'(cur_side), 24'(cur_n), 32'(cur_part)} || frag.last != (cur_left == 1)) $fatal(1, "fragment %p of %0d %0d %0d", frag, cur_side, cur_n, cur_part);
      cur_left--;
      cur_part++;
      frags++;
    end
  end

  always @(negedge clk) if (rst_n) begin
    for (int s = 0; s < 2; s++) begin
      if (p_took[s]) pkt_valid[s] = 0;
      if (f_took[s]) frag_valid[s] = 0;
      if (!pkt_valid[s] && (s == 1 ? want_rsp : want_req) && go()) begin
        if (s == 0) make(pkt_a, 0, sent_p[0]);
        else make(pkt_b, 1, sent_p[1]);
        pkt_valid[s] = 1;
        sent_p[s]++;
      end
      // fragments up to those of the packets offered
      while (!frag_valid[s] && sent_f[s] < sent_p[s] && frags_of(s, sent_f[s]) == part[s]) begin
        sent_f[s]++;
        part[s] = 0;
      end
      if (!frag_valid[s] && sent_f[s] < sent_p[s] && go()) begin
        if (s == 0) frag_a = '{iova: {8'd0, 24'(sent_f[0]), 32'(part[0])}, len: 13'd1, last: part[0] + 1 == frags_of(0, sent_f[0])};
        else frag_b = '{iova: {8'd1, 24'(sent_f[1]), 32'(part[1])}, len: 13'd1, last: part[1] + 1 == frags_of(1, sent_f[1])};
        frag_valid[s] = 1;
        part[s]++;
      end
    end
    o_ready = go();
    f_ready = go();
  end

  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < rounds; i++) begin
      @(negedge clk);
      if (i % 500 == 0) begin
        stall = i % 1500 == 0 ? 0 : int'($urandom() % 80);
        want_rsp = i % 3500 != 500;
        want_req = i % 3500 != 1000;
      end
    end
    // everything at full speed
    stall = 0;
    {want_rsp, want_req} = '1;
    first = total;
    cycles = got_p[0];
    repeat (1000) @(negedge clk);
    if (total - first < 500) $fatal(1, "%0d packets in 1000 cycles", total - first);
    if (got_p[0] - cycles < (total - first) / 4 - 2) $fatal(1, "requester: %0d of %0d packets", got_p[0] - cycles, total - first);
    {want_rsp, want_req} = '0;
    repeat (200) @(negedge clk);
    if (got_p[0] != sent_p[0] || got_p[1] != sent_p[1] || cur_left != 0) $fatal(1, "packets are missing");
    if (max_wait != 3) $fatal(1, "the requester waited for %0d packets", max_wait);
    $display("PASS %0d and %0d packets, %0d fragments", got_p[0], got_p[1], frags);
    $finish;
  end
endmodule
