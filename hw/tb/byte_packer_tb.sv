// SPDX-License-Identifier: Apache-2.0
//
// Random packets (start lane, piece sizes and offsets, user bit) under random stalls against a byte
// queue; also measures that an unstalled packer takes one piece per cycle.

module byte_packer_tb #(
  parameter int unsigned DataW = 64
);
  localparam int unsigned NumB = DataW / 8;
  localparam int unsigned LaneW = $clog2(NumB);

  logic clk = 0, rst_n = 0;
  always #10 clk = !clk;

  logic in_valid = 0, in_ready, in_last = 0, in_user = 0, out_valid, out_ready = 0, out_last, out_user;
  logic [DataW-1:0] in_data = '0, out_data;
  logic [LaneW-1:0] in_off = '0, in_lane = '0;
  logic [LaneW:0] in_cnt = '0, out_cnt;

  byte_packer #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n),
    .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in_data), .in_off_i(in_off),
    .in_cnt_i(in_cnt), .in_last_i(in_last), .in_lane_i(in_lane), .in_user_i(in_user),
    .out_valid_o(out_valid), .out_ready_i(out_ready), .out_data_o(out_data), .out_cnt_o(out_cnt),
    .out_last_o(out_last), .out_user_o(out_user)
  );

  // expected stream: value, and marks for "undefined lane" and "last of packet"
  typedef struct packed {
    logic       skip;
    logic       last;
    logic       user;
    logic [7:0] value;
  } exp_t;
  exp_t want[$];
  exp_t w;
  int packets = 0, spills = 0, beats = 0, pieces_left = 0, got = 0;
  int mode = 0, stalled_in = 0, burst_pieces = 0;
  logic opened = 0;
  logic hold_q = 0;
  logic [DataW-1:0] hold_data;
  logic [LaneW:0] hold_cnt;

  // what the input means
  always @(posedge clk) begin
    if (rst_n && in_valid && in_ready) begin
      if (!opened) for (int i = 0; i < int'(in_lane); i++) want.push_back({1'b1, 10'd0});
      for (int i = 0; i < int'(in_cnt); i++) begin
        want.push_back({1'b0, in_last && i == int'(in_cnt) - 1, in_user,
                        in_data[8*(int'(in_off)+i)+:8]});
      end
      opened = !in_last;
      if (mode == 0) burst_pieces++;
    end
    if (rst_n && mode == 0 && in_valid && !in_ready) stalled_in++;
  end

  always @(negedge clk) begin
    #5;
    if (rst_n && out_valid && out_ready) begin
      beats++;
      if (int'(out_cnt) < 1 || int'(out_cnt) > NumB) $fatal(1, "count %0d", out_cnt);
      if (!out_last && int'(out_cnt) != NumB) $fatal(1, "short beat inside a packet");
      for (int i = 0; i < NumB; i++) begin
        if (i >= int'(out_cnt)) begin
          if (out_data[8*i+:8] !== 8'd0) $fatal(1, "lane %0d behind the end is not zero", i);
        end else begin
          if (want.size() == 0) $fatal(1, "byte nobody sent");
          w = want.pop_front();
          if (!w.skip && out_data[8*i+:8] !== w.value)
            $fatal(1, "packet %0d lane %0d: got %h, want %h", packets, i, out_data[8*i+:8], w.value);
          if (w.last != (out_last && i == int'(out_cnt) - 1))
            $fatal(1, "packet %0d lane %0d: end mismatch", packets, i);
          if (w.last && w.user !== out_user) $fatal(1, "packet %0d: user bit", packets);
        end
      end
      if (out_last) packets++;
    end
    // a waiting beat does not change
    if (rst_n && hold_q && (!out_valid || out_data !== hold_data || out_cnt !== hold_cnt))
      $fatal(1, "beat changed while it waited");
    hold_q = rst_n && out_valid && !out_ready;
    hold_data = out_data;
    hold_cnt = out_cnt;
  end

  task automatic new_piece();
    int off, cnt;
    for (int i = 0; i < DataW / 32; i++) in_data[32*i+:32] = $urandom();
    off = ($urandom() % 2) == 0 ? 0 : $urandom() % NumB;
    cnt = ($urandom() % 2) == 0 ? NumB - off : 1 + $urandom() % (NumB - off);
    in_off = LaneW'(off);
    in_cnt = (LaneW + 1)'(cnt);
    in_user = 1'($urandom());
    if (pieces_left == 0) pieces_left = 1 + (($urandom() % 4) == 0 ? $urandom() % 40 : $urandom() % 5);
    in_lane = ($urandom() % 2) == 0 ? '0 : LaneW'($urandom());
    pieces_left--;
    in_last = pieces_left == 0;
  endtask

  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    for (int i = 0; i < 30000; i++) begin
      @(posedge clk);
      #2;
      mode = (i / 1000) % 3;
      // the handshake of the edge just passed was judged with the values set before it
      if (!in_valid || took) begin
        in_valid = mode == 0 || ($urandom() % 3) != 0;
        if (in_valid) new_piece();
      end
      out_ready = mode == 0 || (mode == 1 ? ($urandom() % 4) == 0 : ($urandom() % 4) != 0);
    end
    out_ready = 1;
    if (!in_valid) new_piece();
    in_valid = 1;
    in_last = 1'b1;
    for (int i = 0; i < 20; i++) begin
      @(posedge clk);
      #2;
      if (took) in_valid = 0;
    end
    if (opened) $fatal(1, "bench: packet left open");
    if (want.size() != 0) $fatal(1, "%0d bytes did not come out", want.size());
    if (packets < 1000 || burst_pieces < 4000) $fatal(1, "too little happened");
    // Waits in the unstalled phases come only from packets that overflow with their last piece.
    if (stalled_in * 4 > burst_pieces) $fatal(1, "%0d waits in %0d pieces", stalled_in, burst_pieces);
    $display("PASS %0d packets, %0d beats, %0d waits in %0d pieces", packets, beats, stalled_in, burst_pieces);
    $finish;
  end

  // in_ready sampled at the edge, as the DUT sees it
  logic took = 0;
  always @(posedge clk) took = in_valid && in_ready;
endmodule
