// SPDX-License-Identifier: Apache-2.0
//
// entry_writer for EQEs and CQEs against a memory that stalls: random entries to random places, the memory
// compared byte by byte; AW before W and W before AW; one entry per cycle, if it fits in a beat, when nothing stalls.

module entry_writer_tb #(
  parameter int unsigned DataW = 64
);
  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;
  logic [1:0] done = '0;
  int total = 0;

  for (genvar g = 0; g < 2; g++) begin : gen_size
    localparam int EntryB = g == 0 ? 16 : 32;
    localparam int Beats = EntryB * 8 > DataW ? EntryB * 8 / DataW : 1;
    localparam logic [63:0] Base = 64'h7fff_ffff_0000 + 64'(g) * 64'h10_0000;
    logic in_valid = 0, in_ready, aw_valid, aw_ready, w_valid, w_ready, w_last, b_valid, b_err, idle;
    logic [8*EntryB-1:0] in_data = '0;
    logic [63:0] in_addr = Base, aw_addr;
    logic [7:0] aw_len;
    logic [DataW-1:0] w_data;
    logic [DataW/8-1:0] w_strb;

    entry_writer #(.DataW(DataW), .EntryW(8 * EntryB)) dut (
      .clk_i(clk), .rst_ni(rst_n), .in_valid_i(in_valid), .in_ready_o(in_ready), .in_data_i(in_data),
      .in_addr_i(in_addr[63:$clog2(EntryB)]), .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o(aw_addr),
      .aw_len_o(aw_len), .w_valid_o(w_valid), .w_ready_i(w_ready), .w_data_o(w_data), .w_strb_o(w_strb),
      .w_last_o(w_last), .idle_o(idle));
    axi_wr_mem #(.DataW(DataW)) u_wr (
      .clk_i(clk), .rst_ni(rst_n), .aw_valid_i(aw_valid), .aw_ready_o(aw_ready), .aw_addr_i(aw_addr),
      .aw_len_i(aw_len), .w_valid_i(w_valid), .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb),
      .w_last_i(w_last), .b_valid_o(b_valid), .b_err_o(b_err));

    logic [7:0] model[logic [63:0]];
    int n_in = 0, n_aw = 0, n_w = 0, n_b = 0, aw_first = 0, w_first = 0, waits = 0, t0;
    always @(posedge clk) if (rst_n) begin
      if (b_valid) n_b++;
      if (aw_valid && aw_ready) n_aw++;
      if (w_valid && w_ready && w_last) n_w++;
      if (n_aw > n_w) aw_first++;
      if (n_w > n_aw) w_first++;
      if (idle != (n_aw == n_in && n_w == n_in) && !(aw_valid || w_valid)) $fatal(1, "idle %b", idle);
      if ((aw_valid || w_valid) && idle) $fatal(1, "idle with a request");
      if (n_aw > n_in || n_w > n_in) $fatal(1, "a write that nobody asked for");
      if (in_valid && in_ready) begin
        n_in++;
        for (int i = 0; i < EntryB; i++) model[in_addr + 64'(i)] = in_data[8*i+:8];
      end
    end
    task automatic pick();
      in_valid = 1;
      in_addr = Base + 64'(EntryB) * 64'($urandom() % 256);
      for (int i = 0; i < EntryB / 4; i++) in_data[32*i+:32] = $urandom();
    endtask
    initial begin
      wait (rst_n);
      // what is not written stays
      for (int i = 0; i < 256 * EntryB; i++) begin
        u_wr.u_mem.mem[Base + 64'(i)] = 8'($urandom());
        model[Base + 64'(i)] = u_wr.u_mem.mem[Base + 64'(i)];
      end
      for (int k = 0; k < 20000; k++) begin
        @(negedge clk);
        u_wr.u_mem.stall = (k / 4000) % 2 == 0 ? 30 : 85;
        if (!in_valid || in_acc) begin
          in_valid = 0;
          if (($urandom() % 4) != 0) pick();
        end
      end
      while (in_valid && !in_acc) @(negedge clk);
      in_valid = 0;
      while (n_b != n_in && waits < 10000) begin
        @(negedge clk);
        waits++;
      end
      if (n_b != n_in || n_in < 1000 || !idle) $fatal(1, "%0d of %0d entries", n_b, n_in);
      for (int i = 0; i < 256 * EntryB; i++)
        if (u_wr.u_mem.mem[Base + 64'(i)] != model[Base + 64'(i)]) $fatal(1, "%0d bytes each: memory at %0d", EntryB, i);
      if (aw_first < 100 || w_first < 100) $fatal(1, "AW first %0d, W first %0d", aw_first, w_first);
      // nothing stalls
      u_wr.u_mem.stall = 0;
      repeat (4) @(negedge clk);
      t0 = n_in;
      pick();
      repeat (100 * Beats) begin
        @(negedge clk);
        if (in_acc) pick();
      end
      if (n_in - t0 != 100) $fatal(1, "%0d entries in %0d cycles", n_in - t0, 100 * Beats);
      in_valid = 0;
      repeat (20) @(negedge clk);
      if (n_b != n_in) $fatal(1, "lost");
      total += n_in;
      done[g] = 1;
    end
    logic in_acc = 0;
    always @(posedge clk) in_acc = in_valid && in_ready;
  end

  initial begin
    repeat (4) @(negedge clk);
    rst_n = 1;
    wait (&done);
    $display("PASS %0d entries", total);
    $finish;
  end
endmodule
