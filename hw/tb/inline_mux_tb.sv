// SPDX-License-Identifier: Apache-2.0
//
// inline_mux: packets with payload from memory, from the WQE, and without, in random order, with stalls on every
// stream; each packet's bytes, beat by beat, with zeros behind the last one.

module inline_mux_tb
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int NumB = DataW / 8;
  localparam int Packets = 4000;
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic pkt_valid_i = 0, pkt_ready_o, pkt_valid_o, pkt_ready_i = 0;
  tx_pkt_t pkt = '0;
  logic inl_valid = 0, inl_ready;
  logic [InlineBytes*8-1:0] inl_data = '0;
  logic [6:0] inl_len = 0;
  logic mem_valid = 0, mem_ready, mem_last = 0, mem_err = 0;
  logic [DataW-1:0] mem_data = '0;
  logic [$clog2(NumB):0] mem_cnt = 0;
  logic pl_valid, pl_ready = 0, pl_last, pl_err;
  logic [DataW-1:0] pl_data;
  logic [$clog2(NumB):0] pl_cnt;

  inline_mux #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n),
    .pkt_valid_i, .pkt_ready_o, .pkt_i(pkt), .pkt_valid_o, .pkt_ready_i,
    .inl_valid_i(inl_valid), .inl_ready_o(inl_ready), .inl_data_i(inl_data), .inl_len_i(inl_len),
    .pl_valid_i(mem_valid), .pl_ready_o(mem_ready), .pl_data_i(mem_data), .pl_cnt_i(mem_cnt),
    .pl_last_i(mem_last), .pl_err_i(mem_err),
    .pl_valid_o(pl_valid), .pl_ready_i(pl_ready), .pl_data_o(pl_data), .pl_cnt_o(pl_cnt),
    .pl_last_o(pl_last), .pl_err_o(pl_err)
  );

  // plan: everything is known at the start
  int len[Packets], n_inl = 0, n_mem = 0, n_none = 0;
  bit inl[Packets], err[Packets];
  // byte k of packet i, by a rule
  function automatic logic [7:0] byte_of(int i, int k);
    return 8'(i * 7 + k * 13 + (i >> 3));
  endfunction

  int pkt_i_n = 0, inl_n = 0, mem_n = 0, mem_pos = 0, out_n = 0, out_pos = 0, pass_n = 0;
  logic [DataW-1:0] want;
  int cnt;

  initial begin
    for (int i = 0; i < Packets; i++) begin
      inl[i] = $urandom() % 2 == 0;
      len[i] = $urandom() % 5 == 0 ? 0 : inl[i] ? 1 + int'($urandom() % InlineBytes) : 1 + int'($urandom() % 300);
      if (len[i] == 0) n_none++; else if (inl[i]) n_inl++; else n_mem++;
      err[i] = !inl[i] && $urandom() % 8 == 0;
    end
    repeat (4) @(posedge clk);
    rst_n <= 1;
  end

  always @(posedge clk) if (rst_n) begin
    // packets
    if (pkt_valid_i && pkt_ready_o) begin
      pkt_valid_i <= 0;
      pkt_i_n++;
    end
    if ((!pkt_valid_i || pkt_ready_o) && pkt_i_n < Packets && $urandom() % 3 != 0) begin
      pkt_valid_i <= 1;
      pkt.len <= 13'(len[pkt_i_n]);
      pkt.inl <= inl[pkt_i_n];
    end
    pkt_ready_i <= $urandom() % 4 != 0;
    if (pkt_valid_o && pkt_ready_i) pass_n++;
    // the egress holds some packets only
    if (pkt_valid_o !== (pkt_valid_i && dut.order_ready)) $fatal(1, "packet valid");

    // inline data come no later than their packet is offered
    if (inl_valid && inl_ready) begin
      inl_valid <= 0;
      inl_n++;
    end
    if (!inl_valid || inl_ready) begin
      while (inl_n < Packets && (!inl[inl_n] || len[inl_n] == 0)) inl_n++;
      if (inl_n < Packets && inl_n <= pkt_i_n && $urandom() % 3 != 0) begin
        inl_valid <= 1;
        inl_len <= 7'(len[inl_n]);
        for (int k = 0; k < InlineBytes; k++) inl_data[8*k +: 8] <= k < len[inl_n] ? byte_of(inl_n, k) : 8'($urandom());
      end
    end

    // memory
    if (mem_valid && mem_ready) begin
      mem_valid <= 0;
      mem_pos += NumB;
      if (mem_last) begin
        mem_n++;
        mem_pos = 0;
      end
    end
    if (!mem_valid || mem_ready) begin
      while (mem_n < Packets && (inl[mem_n] || len[mem_n] == 0)) mem_n++;
      if (mem_n < Packets && $urandom() % 4 != 0) begin
        mem_valid <= 1;
        mem_last <= len[mem_n] - mem_pos <= NumB;
        mem_cnt <= ($clog2(NumB) + 1)'(len[mem_n] - mem_pos > NumB ? NumB : len[mem_n] - mem_pos);
        mem_err <= err[mem_n] && len[mem_n] - mem_pos <= NumB;
        for (int k = 0; k < NumB; k++) mem_data[8*k +: 8] <= mem_pos + k < len[mem_n] ? byte_of(mem_n, mem_pos + k) : 8'd0;
      end
    end

    // payload out
    pl_ready <= $urandom() % 4 != 0;
    if (pl_valid && pl_ready) begin
      while (len[out_n] == 0) out_n++;
      want = '0;
      cnt = len[out_n] - out_pos > NumB ? NumB : len[out_n] - out_pos;
      for (int k = 0; k < cnt; k++) want[8*k +: 8] = byte_of(out_n, out_pos + k);
      if (out_n > pass_n) $fatal(1, "payload of packet %0d before the packet", out_n);
      if (pl_data !== want || int'(pl_cnt) != cnt) $fatal(1, "packet %0d (inline %b, %0d bytes) at %0d: %h %0d, want %h %0d", out_n, inl[out_n], len[out_n], out_pos, pl_data, pl_cnt, want, cnt);
      if (pl_last !== (len[out_n] - out_pos <= NumB)) $fatal(1, "last");
      if (pl_err !== (pl_last && err[out_n])) $fatal(1, "error flag");
      out_pos += NumB;
      if (pl_last) begin
        out_n++;
        out_pos = 0;
      end
    end
    while (out_n < Packets && len[out_n] == 0 && out_n < pass_n) out_n++;
    if (out_n == Packets && pass_n == Packets) begin
      if (n_inl < Packets / 4 || n_mem < Packets / 4) $fatal(1, "mix");
      $display("PASS %0d packets inline, %0d from memory, %0d without payload", n_inl, n_mem, n_none);
      $finish;
    end
  end

  initial begin
    #(2000 * Packets);
    $fatal(1, "stuck: packets %0d, inline %0d, memory %0d, out %0d", pkt_i_n, inl_n, mem_n, out_n);
  end
endmodule
