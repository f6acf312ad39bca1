// SPDX-License-Identifier: Apache-2.0
//
// tx_frame_mux with random frames of both sides, with and without gaps in_frame them, and a receiver that stops: every frame comes out whole, as it went in, in the
// order of its side; stream 0 goes first, but not twice in a row while stream 1 waits. What is shown stays.

module tx_frame_mux_tb #(
  parameter int unsigned DataW = 64
);
  localparam int B = DataW / 8;
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [1:0] in_valid = '0, in_ready, in_last = '0;
  logic [1:0][DataW-1:0] in_data = '0;
  logic [1:0][B-1:0] in_keep = '0;
  logic out_valid, out_ready = 0, out_last;
  logic [DataW-1:0] out_data;
  logic [B-1:0] out_keep;
  tx_frame_mux #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in_data), .in_keep_i(in_keep), .in_last_i(in_last),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(out_data), .out_keep_o(out_keep), .out_last_o(out_last));

  typedef struct packed {
    logic last;
    logic [B-1:0] keep;
    logic [DataW-1:0] data;
  } beat_t;
  beat_t want[2][$];
  beat_t got, was;
  int left[2];                 // beats of the frame under way
  int load[2];
  int n_frames[2], n_first = 0, n_turn = 0, n_held = 0;
  bit in_frame = 0, shown = 0;
  int side = 0, last_side = 1;
  bit [1:0] fire;

  always @(posedge clk) begin
    fire = rst_n ? in_valid & in_ready : '0;
    if (rst_n) begin
      got = '{last: out_last, keep: out_keep, data: out_data};
      if (fire == 2'b11) $fatal(1, "both taken");
      if (shown && (!out_valid || got != was)) $fatal(1, "what was shown went");
      if (out_valid && !in_frame && !shown) begin
        side = in_ready[1] || (!out_ready && got.data == in_data[1] && in_valid[1]) ? 1 : 0;
        if (out_ready) begin
          if (side == 1 && in_valid[0] && last_side == 1) $fatal(1, "stream 1 twice, stream 0 waits");
          if (side == 0 && in_valid[1] && last_side == 0) $fatal(1, "stream 0 twice, stream 1 waits");
          if (side == 0 && in_valid[1]) n_first++;
          if (side == 1 && in_valid[0]) n_turn++;
        end
      end
      if (out_valid && out_ready) begin
        if (fire == '0) $fatal(1, "a beat of nobody");
        if (in_frame && int'(fire[1]) != side) $fatal(1, "a frame in a frame");
        side = int'(fire[1]);
        if (got != want[side][0]) $fatal(1, "beat of stream %0d: %h, want %h", side, got, want[side][0]);
        void'(want[side].pop_front());
        in_frame = !out_last;
        if (out_last) begin
          n_frames[side]++;
          last_side = side;
        end
      end else if (fire != '0) $fatal(1, "taken and not handed on");
      shown = out_valid && !out_ready;
      was = got;
      if (shown) n_held++;
    end
  end
  always @(negedge clk) if (rst_n) begin
    for (int s = 0; s < 2; s++) begin
      if (fire[s]) in_valid[s] = 0;
      if (!in_valid[s] && $urandom_range(0, 99) < load[s]) begin
        if (left[s] == 0) left[s] = $urandom_range(1, 5);
        in_valid[s] = 1;
        for (int i = 0; i < DataW; i += 32) in_data[s][i+:32] = $urandom;
        in_data[s][0] = s[0];
        in_keep[s] = B'($urandom);
        in_last[s] = left[s] == 1;
        left[s]--;
        want[s].push_back({in_last[s], in_keep[s], in_data[s]});
      end
    end
    out_ready = $urandom_range(0, 3) != 0;
  end
  initial begin
    for (int s = 0; s < 2; s++) begin
      left[s] = 0;
      n_frames[s] = 0;
      load[s] = 0;
    end
    repeat (3) @(posedge clk);
    rst_n = 1;
    for (int round = 0; round < 100; round++) begin
      for (int s = 0; s < 2; s++) load[s] = $urandom_range(0, 2) == 0 ? 100 : $urandom_range(0, 100);
      repeat (200) @(posedge clk);
    end
    if (n_frames[0] < 500 || n_frames[1] < 500 || n_first < 100 || n_turn < 100 || n_held < 500) $fatal(1, "corners: %0d %0d %0d %0d %0d", n_frames[0], n_frames[1], n_first, n_turn, n_held);
    $display("PASS %0d and %0d frames, %0d times stream 0 went first, %0d times it let stream 1 go", n_frames[0], n_frames[1], n_first, n_turn);
    $finish;
  end
endmodule
