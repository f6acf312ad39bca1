// SPDX-License-Identifier: Apache-2.0
//
// ICRC of frames made by hw/tb/vec/icrc_tb: icrc_tx on frames with an empty ICRC field, without and
// with gaps; and the receiver's check: mask and engine on complete frames against the residue table,
// with trailing bytes behind the ICRC, and with a bit flipped.

module icrc_tb #(
  parameter int unsigned DataW = 64
);
  localparam int unsigned Bytes = DataW / 8;
  localparam int unsigned CntW = $clog2(Bytes) + 1;
  localparam int unsigned Words = 400000;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [63:0] mem[Words];

  logic valid = 0, last = 0, ipv6 = 0, crc_valid;
  logic [DataW-1:0] data = '0;
  logic [CntW-1:0] cnt = '0;
  logic [1:0] l3 = '0;
  logic [31:0] crc;

  icrc_tx #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .valid_i(valid), .last_i(last), .data_i(data), .cnt_i(cnt),
    .l3_i(l3), .ipv6_i(ipv6), .crc_valid_o(crc_valid), .crc_o(crc)
  );

  // receiver's use
  logic rx_valid = 0, rx_first = 0, rx_last = 0, rx_skip = 0, rx_end = 0;
  logic [3:0] rx_beat = '0;
  logic [CntW-2:0] rx_tail = '0, rx_tail_q, r_tail;
  logic m_valid, m_first, m_last, m_skip, r_valid;
  logic [DataW-1:0] m_data;
  logic [31:0] r_state;

  icrc_mask #(.DataW(DataW)) u_mask (
    .clk_i(clk), .rst_ni(rst_n), .valid_i(rx_valid), .first_i(rx_first), .last_i(rx_last),
    .skip_i(rx_skip), .end_i(rx_end), .cnt_i(cnt), .beat_i(rx_beat), .l3_i(l3), .ipv6_i(ipv6),
    .data_i(data), .valid_o(m_valid), .first_o(m_first), .last_o(m_last), .skip_o(m_skip),
    .data_o(m_data)
  );
  always_ff @(posedge clk) rx_tail_q <= rx_tail;
  icrc_engine #(.DataW(DataW), .UserW(CntW - 1)) u_engine (
    .clk_i(clk), .rst_ni(rst_n), .valid_i(m_valid), .first_i(m_first), .last_i(m_last),
    .skip_i(m_skip), .data_i(m_data), .user_i(rx_tail_q), .valid_o(r_valid), .state_o(r_state),
    .user_o(r_tail)
  );

  logic [31:0] want_crc[$];
  logic want_ok[$];
  int got_crc = 0, got_good = 0, got_bad = 0;
  longint unsigned cycle = 0;
  longint unsigned last_at[$];
  int latency = 0;

  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (rst_n && valid && last) last_at.push_back(cycle);
    if (rst_n && crc_valid) begin
      if (want_crc.size() == 0 || last_at.size() == 0) $fatal(1, "CRC without a frame");
      if (crc !== want_crc[0]) $fatal(1, "frame %0d: got %h, want %h", got_crc, crc, want_crc[0]);
      if (latency != 0 && int'(cycle - last_at[0]) != latency) $fatal(1, "latency varies");
      latency = int'(cycle - last_at[0]);
      void'(want_crc.pop_front());
      void'(last_at.pop_front());
      got_crc++;
    end
    if (rst_n && r_valid) begin
      if (want_ok.size() == 0) $fatal(1, "result without a frame");
      if ((r_state == rnic_crc_pkg::crc_residue(6'(r_tail))) !== want_ok[0])
        $fatal(1, "check of frame %0d wrong", got_good + got_bad);
      if (want_ok[0]) got_good++;
      else got_bad++;
      void'(want_ok.pop_front());
    end
  end

  // Frame at word `at`, `len` bytes; `extra` bytes follow it (receiver only); byte `flip` is inverted.
  task automatic send(input int at, input int len, input bit tx, input int extra, input int flip,
                      input int gap, input logic [31:0] icrc);
    int total, nbeats, lastcov;
    logic [7:0] b;
    total = tx ? len : len + extra;
    nbeats = (total + Bytes - 1) / Bytes;
    lastcov = (len - 1) / Bytes;
    for (int k = 0; k < nbeats; k++) begin
      @(negedge clk);
      for (int i = 0; i < Bytes; i++) begin
        int n;
        n = k * Bytes + i;
        b = 8'($urandom());
        if (n < len) b = mem[at + n / 8][8*(n%8)+:8];
        if (!tx && n >= len - 4 && n < len) b = icrc[8*(n-(len-4))+:8];
        if (!tx && n == flip) b = b ^ (8'd1 << ($urandom() % 8));
        data[8*i+:8] = b;
      end
      // icrc_tx has to remember l3 and ipv6 of the first beat
      l3 = (tx && k != 0) ? 2'($urandom()) : mem[at-1][24:23];
      ipv6 = (tx && k != 0) ? 1'($urandom()) : mem[at-1][25];
      valid = tx;
      rx_valid = !tx;
      last = k == nbeats - 1;
      rx_first = k == 0;
      rx_last = last;
      rx_beat = k > 15 ? 4'd15 : 4'(k);
      rx_end = k == lastcov;
      rx_skip = k > lastcov;
      cnt = CntW'(tx ? (last ? len - k * Bytes : 0) : (rx_end ? len - k * Bytes : 0));
      if (rx_end) rx_tail = (CntW - 1)'(Bytes - (len - k * Bytes));
      while (gap != 0 && ($urandom() % 4) == 0) begin
        @(negedge clk);
        valid = 0;
        rx_valid = 0;
      end
    end
  endtask

  task automatic pass_all(input bit tx, input int gap, input int mode);
    int at, len, flip, hdr;
    logic [31:0] c;
    at = 0;
    while (mem[at] != '1) begin
      len = int'(mem[at][15:0]);
      c = mem[at][63:32];
      hdr = 14 + 4 * int'(mem[at][24:23]) + (mem[at][25] ? 53 : 33);
      flip = -1;
      if (tx) want_crc.push_back(c);
      else begin
        if (mode == 1) flip = hdr + ($urandom() % (len - hdr));
        want_ok.push_back(flip < 0);
      end
      send(at + 1, len, tx, mode == 2 ? ($urandom() % 200) : 0, flip, gap, c);
      at += 1 + (len + 7) / 8;
    end
    @(negedge clk);
    valid = 0;
    rx_valid = 0;
    repeat (20) @(negedge clk);
  endtask

  string vec;
  initial begin
    if (!$value$plusargs("vec=%s", vec)) $fatal(1, "+vec=FILE missing");
    $readmemh(vec, mem);
    repeat (4) @(negedge clk);
    rst_n = 1;
    pass_all(1, 0, 0);
    pass_all(1, 1, 0);
    pass_all(0, 0, 0);
    pass_all(0, 1, 2);
    pass_all(0, 0, 1);
    if (want_crc.size() != 0 || want_ok.size() != 0) $fatal(1, "results missing");
    if (got_crc < 1000 || got_good < 1000 || got_bad < 500) $fatal(1, "too few frames");
    $display("PASS %0d sent, %0d good, %0d bad, latency %0d", got_crc, got_good, got_bad, latency);
    $finish;
  end
endmodule
