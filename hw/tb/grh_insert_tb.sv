// SPDX-License-Identifier: Apache-2.0
//
// Payloads of all lengths and offsets, some with a GRH in front, some with a GRH and no payload: every byte comes out once, in
// order, the GRH's beats begin at lane 0; payload beats are not changed. Entries come early or just in time, and stall at the input
// when there are too many. Random stalls on all sides.

module grh_insert_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int unsigned NumB = DataW / 8;
  localparam int unsigned LaneW = $clog2(NumB);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic grh_valid = 0, grh_ready, in_valid = 0, in_ready, in_last = 0, out_valid, out_ready = 0, out_last;
  rx_grh_t grh = '0;
  logic [DataW-1:0] in_data = '0, out_data;
  logic [LaneW-1:0] in_off = '0, out_off;
  logic [LaneW:0] in_cnt = '0, out_cnt;

  grh_insert #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .grh_valid_i(grh_valid), .grh_ready_o(grh_ready), .grh_i(grh),
    .pl_valid_i(in_valid), .pl_ready_o(in_ready), .pl_data_i(in_data), .pl_off_i(in_off), .pl_cnt_i(in_cnt), .pl_last_i(in_last),
    .pl_valid_o(out_valid), .pl_ready_i(out_ready), .pl_data_o(out_data), .pl_off_o(out_off), .pl_cnt_o(out_cnt),
    .pl_last_o(out_last)
  );

  typedef struct packed {
    logic [DataW-1:0] data;
    logic [LaneW-1:0] off;
    logic [LaneW:0]   cnt;
    logic             last;
    logic [31:0]      need;    // GRHs that must be in before it
  } beat_t;
  beat_t beats[$], want[$], b;
  rx_grh_t grhs[$], g;
  int streams = 0, grhs_in = 0, grhs_made = 0, made_beats = 0, out_beats = 0, stall = 0, left, lane, n, held_up = 0;
  bit taken = 0, grh_taken = 0;

  function automatic bit go();
    return int'($urandom() % 100) >= stall;
  endfunction

  task automatic make_packet;
    bit with_grh;
    with_grh = $urandom() % 2 == 0;
    left = with_grh && $urandom() % 4 == 0 ? 0 : 1 + int'($urandom() % ($urandom() % 4 == 0 ? 4096 : 100));
    if (with_grh) begin
      for (int k = 0; k < 10; k++) g.data[32*k+:32] = $urandom();
      g.seq = 8'(streams);
      grhs.push_back(g);
      grhs_made++;
      for (int k = 0; k < int'(GrhBytes); k += int'(NumB)) begin
        b = '0;
        b.cnt = (LaneW + 1)'(int'(GrhBytes) - k < int'(NumB) ? int'(GrhBytes) - k : int'(NumB));
        for (int i = 0; i < int'(b.cnt); i++) b.data[8*i+:8] = g.data[8*(k+i)+:8];
        b.last = k + int'(NumB) >= int'(GrhBytes);
        want.push_back(b);
      end
    end
    lane = int'($urandom() % NumB);
    if (left != 0) streams++;
    while (left > 0) begin
      n = int'(NumB) - lane < left ? int'(NumB) - lane : left;
      for (int k = 0; k < int'(DataW / 32); k++) b.data[32*k+:32] = $urandom();
      b.off = LaneW'(lane);
      b.cnt = (LaneW + 1)'(n);
      left -= n;
      lane = 0;
      b.last = left == 0;
      b.need = grhs_made;
      beats.push_back(b);
      b.need = 0;
      want.push_back(b);
    end
  endtask

  always @(posedge clk) begin
    taken = in_valid && in_ready;
    grh_taken = grh_valid && grh_ready;
    if (rst_n && grh_valid && !grh_ready) held_up++;
    if (rst_n && out_valid && out_ready) begin
      if (want.size() == 0) $fatal(1, "beat nobody sent");
      b = want.pop_front();
      if (out_off !== b.off || out_cnt !== b.cnt || out_last !== b.last) $fatal(1, "beat %0d: off %0d cnt %0d last %b, want %0d %0d %b",
                                                                               out_beats, out_off, out_cnt, out_last, b.off, b.cnt, b.last);
      for (int i = 0; i < int'(b.cnt); i++)
        if (out_data[8*(int'(b.off)+i)+:8] !== b.data[8*(int'(b.off)+i)+:8]) $fatal(1, "beat %0d byte %0d", out_beats, i);
      out_beats++;
    end
  end
  always @(negedge clk) if (rst_n) begin
    if (grh_taken) begin
      grhs_in++;
      grh_valid = 0;
    end
    if (taken) in_valid = 0;
    if (!grh_valid && grhs.size() != 0 && go()) begin
      grh = grhs.pop_front();
      grh_valid = 1;
    end
    if (!in_valid && beats.size() != 0 && go()) begin
      b = beats[0];
      if (grhs_in >= int'(b.need)) begin
        void'(beats.pop_front());
        {in_data, in_off, in_cnt, in_last} = {b.data, b.off, b.cnt, b.last};
        in_valid = 1;
      end
    end
    out_ready = go();
  end

  int packets = 2000, waits;
  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < packets; i++) begin
      stall = i < packets / 4 ? 0 : i < packets / 2 ? 30 : i < 3 * packets / 4 ? 70 : 0;
      make_packet();
      if ($urandom() % 3 == 0) repeat (int'($urandom() % 60)) @(negedge clk);
    end
    waits = 0;
    while (want.size() != 0 && waits < 2000000) begin
      @(negedge clk);
      waits++;
    end
    if (want.size() != 0 || grhs.size() != 0) $fatal(1, "%0d beats missing", want.size());
    repeat (10) @(negedge clk);
    if (grhs_made < 500 || held_up == 0 || streams < 600) $fatal(1, "corner not reached");
    $display("PASS %0d GRHs, %0d payloads, %0d beats", grhs_made, streams, out_beats);
    $finish;
  end
endmodule
