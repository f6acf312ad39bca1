// SPDX-License-Identifier: Apache-2.0
//
// AXI4 slave for test benches: sparse byte memory, random stalls on every channel, answers of different IDs
// in random order (read beats interleave), error answers in an address range. Checks the rules a master must
// keep: aligned full-width INCR bursts inside 4 KiB, stable payload while waiting, wlast at the
// right beat. Stall is the chance of a stall per channel and cycle, in percent.

module axi_mem #(
  parameter int unsigned DataW = 64,
  parameter int unsigned NumIds = 3
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [3:0]         awid_i,
  input  logic [63:0]        awaddr_i,
  input  logic [7:0]         awlen_i,
  input  logic [2:0]         awsize_i,
  input  logic [1:0]         awburst_i,
  input  logic               awvalid_i,
  output logic               awready_o,
  input  logic [DataW-1:0]   wdata_i,
  input  logic [DataW/8-1:0] wstrb_i,
  input  logic               wlast_i,
  input  logic               wvalid_i,
  output logic               wready_o,
  output logic [3:0]         bid_o,
  output logic [1:0]         bresp_o,
  output logic               bvalid_o,
  input  logic               bready_i,
  input  logic [3:0]         arid_i,
  input  logic [63:0]        araddr_i,
  input  logic [7:0]         arlen_i,
  input  logic [2:0]         arsize_i,
  input  logic [1:0]         arburst_i,
  input  logic               arvalid_i,
  output logic               arready_o,
  output logic [3:0]         rid_o,
  output logic [DataW-1:0]   rdata_o,
  output logic [1:0]         rresp_o,
  output logic               rlast_o,
  output logic               rvalid_o,
  input  logic               rready_i
);

  localparam int NumB = DataW / 8;

  // set by the bench
  int stall = 30;
  logic [63:0] err_lo = '1, err_hi = '0;   // reads and writes of [err_lo, err_hi) fail
  logic freeze_w = 0;                      // no answers to writes
  logic freeze_r = 0;                      // no answers to reads

  logic [7:0] mem[logic [63:0]];
  int num_reads = 0, num_writes = 0;

  function automatic logic [7:0] get(input logic [63:0] addr);
    return mem.exists(addr) != 0 ? mem[addr] : 8'h00;
  endfunction

  function automatic logic bad(input logic [63:0] addr);
    return addr >= err_lo && addr < err_hi;
  endfunction

  function automatic logic go();
    return int'($urandom() % 100) >= stall;
  endfunction

  task automatic check_burst(input string ch, input logic [63:0] addr, input logic [7:0] len,
                             input logic [2:0] size, input logic [1:0] burst, input logic [3:0] id);
    if (int'(size) != $clog2(NumB) || burst != 2'b01) $fatal(1, "%s: size %0d burst %0d", ch, size, burst);
    if (addr % 64'(NumB) != 0) $fatal(1, "%s: address %h not aligned", ch, addr);
    if (addr[63:12] != 52'((addr + 64'(NumB) * (64'(len) + 1) - 1) >> 12)) $fatal(1, "%s: %h crosses 4 KiB", ch, addr);
    if (len >= 64) $fatal(1, "%s: %0d beats", ch, len + 1);
    if (int'(id) >= int'(NumIds)) $fatal(1, "%s: id %0d", ch, id);
  endtask

  // ---- reads
  logic [3:0] rd_id[$];
  logic [63:0] rd_addr[$];
  int rd_left[$];
  logic [3:0] id;
  int at;

  // ---- writes
  logic [3:0] aw_id[$];
  logic [63:0] aw_addr[$];
  int aw_len[$];
  logic [DataW-1:0] w_data[$];
  logic [NumB-1:0] w_strb[$];
  logic w_last[$];
  int beat = 0;
  logic wr_err = 0;
  logic [3:0] b_id[$];
  logic [1:0] b_resp[$];

  // waiting payload must stay
  logic aw_wait = 0, w_wait = 0, ar_wait = 0;
  logic [75:0] aw_old, ar_old;
  logic [DataW+NumB:0] w_old;

  always @(posedge clk_i) begin
    if (!rst_ni) begin
      awready_o <= 0;
      wready_o <= 0;
      arready_o <= 0;
      bvalid_o <= 0;
      rvalid_o <= 0;
      rd_id.delete(); rd_addr.delete(); rd_left.delete();
      b_id.delete(); b_resp.delete();
      aw_id.delete(); aw_addr.delete(); aw_len.delete();
      w_data.delete(); w_strb.delete(); w_last.delete();
      beat = 0;
      aw_wait = 0; w_wait = 0; ar_wait = 0;
    end else begin
      if (aw_wait && (!awvalid_i || aw_old != {awid_i, awaddr_i, awlen_i})) $fatal(1, "AW changed");
      if (ar_wait && (!arvalid_i || ar_old != {arid_i, araddr_i, arlen_i})) $fatal(1, "AR changed");
      if (w_wait && (!wvalid_i || w_old != {wlast_i, wstrb_i, wdata_i})) $fatal(1, "W changed");
      aw_wait = awvalid_i && !awready_o;
      ar_wait = arvalid_i && !arready_o;
      w_wait = wvalid_i && !wready_o;
      aw_old = {awid_i, awaddr_i, awlen_i};
      ar_old = {arid_i, araddr_i, arlen_i};
      w_old = {wlast_i, wstrb_i, wdata_i};

      if (awvalid_i && awready_o) begin
        check_burst("AW", awaddr_i, awlen_i, awsize_i, awburst_i, awid_i);
        aw_id.push_back(awid_i);
        aw_addr.push_back(awaddr_i);
        aw_len.push_back(int'(awlen_i));
      end
      if (wvalid_i && wready_o) begin
        w_data.push_back(wdata_i);
        w_strb.push_back(wstrb_i);
        w_last.push_back(wlast_i);
      end
      while (aw_id.size() > 0 && w_data.size() > 0) begin
        for (int i = 0; i < NumB; i++)
          if (w_strb[0][i] && !bad(aw_addr[0] + 64'(beat * NumB)))
            mem[aw_addr[0] + 64'(beat * NumB) + 64'(i)] = w_data[0][8*i+:8];
        wr_err = wr_err || bad(aw_addr[0] + 64'(beat * NumB));
        if (w_last[0] != (beat == aw_len[0])) $fatal(1, "wlast at beat %0d of %0d", beat, aw_len[0] + 1);
        if (beat == aw_len[0]) begin
          b_id.push_back(aw_id[0]);
          b_resp.push_back(wr_err ? 2'b10 : 2'b00);
          wr_err = 0;
          beat = 0;
          num_writes++;
          void'(aw_id.pop_front());
          void'(aw_addr.pop_front());
          void'(aw_len.pop_front());
        end else begin
          beat++;
        end
        void'(w_data.pop_front());
        void'(w_strb.pop_front());
        void'(w_last.pop_front());
      end
      if (bvalid_o && bready_i) bvalid_o <= 0;
      if ((!bvalid_o || bready_i) && !freeze_w) begin
        // the first answer of a random ID
        id = 4'($urandom() % NumIds);
        at = -1;
        for (int i = b_id.size() - 1; i >= 0; i--) if (b_id[i] == id) at = i;
        if (at >= 0 && go()) begin
          bvalid_o <= 1;
          bid_o <= id;
          bresp_o <= b_resp[at];
          b_id.delete(at);
          b_resp.delete(at);
        end
      end

      if (arvalid_i && arready_o) begin
        check_burst("AR", araddr_i, arlen_i, arsize_i, arburst_i, arid_i);
        rd_id.push_back(arid_i);
        rd_addr.push_back(araddr_i);
        rd_left.push_back(int'(arlen_i) + 1);
      end
      if (rvalid_o && rready_i) rvalid_o <= 0;
      if ((!rvalid_o || rready_i) && !freeze_r) begin
        id = 4'($urandom() % NumIds);
        at = -1;
        for (int i = rd_id.size() - 1; i >= 0; i--) if (rd_id[i] == id) at = i;
        if (at >= 0 && go()) begin
          rvalid_o <= 1;
          rid_o <= id;
          for (int i = 0; i < NumB; i++) rdata_o[8*i+:8] <= get(rd_addr[at] + 64'(i));
          rresp_o <= bad(rd_addr[at]) ? 2'b11 : 2'b00;
          rlast_o <= rd_left[at] == 1;
          rd_addr[at] = rd_addr[at] + 64'(NumB);
          rd_left[at] = rd_left[at] - 1;
          if (rd_left[at] == 0) begin
            num_reads++;
            rd_id.delete(at);
            rd_addr.delete(at);
            rd_left.delete(at);
          end
        end
      end
      awready_o <= go();
      wready_o <= go();
      arready_o <= go();
    end
  end
endmodule
