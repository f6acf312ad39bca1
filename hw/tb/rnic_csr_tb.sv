// SPDX-License-Identifier: Apache-2.0
//
// The generated register block against a table from the same source: reset values of every
// register, walking ones through every register by its access kind, pulses, partial strobes, every
// address of the space, doorbells with back-pressure, any order of AW and W, clear, 64-bit reads in
// halves. A reference model follows every access; a checker watches the handshakes.

module rnic_csr_tb
  import rnic_regs_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int Timeout = 2000;
  // Variables, so that the simulator does not unroll the loops.
  int num_csr = NumCsr, num_words = 32768;

  logic clk = 0, rst_n = 0, clear = 0;
  logic [16:0] awaddr = '0, araddr = '0;
  logic awvalid = 0, awready, wvalid = 0, wready, bvalid, bready = 0;
  logic arvalid = 0, arready, rvalid, rready = 0;
  logic [63:0] wdata = '0, rdata;
  logic [7:0] wstrb = '0;
  logic [1:0] bresp, rresp;
  csr_reg2hw_t reg2hw;
  csr_hw2reg_t hw2reg;
  `include "rnic_csr_table.svh"
  logic db_valid, db_ready = 0;
  logic [3:0] db_page;
  logic [11:0] db_offset;
  logic [63:0] db_data;
  always #1 clk = !clk;

  rnic_csr dut (
    .clk_i(clk), .rst_ni(rst_n), .clear_i(clear),
    .s_axil_awaddr_i(awaddr), .s_axil_awprot_i(3'b000), .s_axil_awvalid_i(awvalid),
    .s_axil_awready_o(awready), .s_axil_wdata_i(wdata), .s_axil_wstrb_i(wstrb),
    .s_axil_wvalid_i(wvalid), .s_axil_wready_o(wready), .s_axil_bresp_o(bresp),
    .s_axil_bvalid_o(bvalid), .s_axil_bready_i(bready), .s_axil_araddr_i(araddr),
    .s_axil_arprot_i(3'b000), .s_axil_arvalid_i(arvalid), .s_axil_arready_o(arready),
    .s_axil_rdata_o(rdata), .s_axil_rresp_o(rresp), .s_axil_rvalid_o(rvalid),
    .s_axil_rready_i(rready), .reg2hw_o(reg2hw), .hw2reg_i(hw2reg),
    .db_valid_o(db_valid), .db_ready_i(db_ready), .db_page_o(db_page), .db_offset_o(db_offset),
    .db_data_o(db_data)
  );

  // ---- what happened at the last rising edge ----------------------------------------------------
  logic aw_hs, w_hs, b_hs, ar_hs, r_hs;
  logic [1:0] b_resp_s, r_resp_s;
  logic [63:0] r_data_s;
  int cycle = 0;
  int b_cycle = 0, r_cycle = 0, ar_cycle = 0, aww_cycle = 0;
  int qe_count [NumCsr];
  logic [79:0] db_seen [$];
  logic db_stuck_q = 0, b_stuck_q = 0, r_stuck_q = 0;
  logic [79:0] db_prev_q;
  logic [1:0] b_prev_q;
  logic [65:0] r_prev_q;
  int db_mode = 1;  // 0: never ready, 1: always, 2: random

  always @(posedge clk) begin
    cycle <= cycle + 1;
    aw_hs <= awvalid && awready;
    w_hs <= wvalid && wready;
    b_hs <= bvalid && bready;
    ar_hs <= arvalid && arready;
    r_hs <= rvalid && rready;
    b_resp_s <= bresp;
    r_resp_s <= rresp;
    r_data_s <= rdata;
    if ((awvalid && awready) || (wvalid && wready)) aww_cycle <= cycle;
    if (bvalid && bready) b_cycle <= cycle;
    if (arvalid && arready) ar_cycle <= cycle;
    if (rvalid && rready) r_cycle <= cycle;
    if (rst_n) begin
      for (int i = 0; i < num_csr; i++) if (qe[i]) qe_count[i]++;
      if (db_valid && db_ready) db_seen.push_back({db_page, db_offset, db_data});
      if (db_stuck_q && (!db_valid || {db_page, db_offset, db_data} != db_prev_q))
        $fatal(1, "doorbell changed before it was taken");
      if (b_stuck_q && (!bvalid || bresp != b_prev_q)) $fatal(1, "B changed before it was taken");
      if (r_stuck_q && (!rvalid || {rdata, rresp} != r_prev_q))
        $fatal(1, "R changed before it was taken");
      db_stuck_q <= db_valid && !db_ready;
      db_prev_q <= {db_page, db_offset, db_data};
      b_stuck_q <= bvalid && !bready;
      b_prev_q <= bresp;
      r_stuck_q <= rvalid && !rready;
      r_prev_q <= {rdata, rresp};
    end
  end
  always @(negedge clk) db_ready = db_mode == 1 || (db_mode == 2 && ($urandom() % 4) == 0);

  // ---- reference model -------------------------------------------------------------------------
  csr_entry_t entry [NumCsr];
  logic [63:0] value [NumCsr];  // what a read gives (wo: what hardware sees)
  logic [1:0] map [8192];
  int want_qe [NumCsr];

  function automatic logic [63:0] random64();
    return {$urandom(), $urandom()};
  endfunction

  // ---- one access, delays as given; payload is garbage while valid is low ----------------------
  task automatic raw_write(input logic [16:0] addr, input logic [63:0] data,
                           input logic [7:0] strb, input int aw_delay, input int w_delay,
                           input int b_delay, output logic [1:0] resp);
    logic aw_done, w_done, done;
    int n;
    aw_done = 0;
    w_done = 0;
    done = 0;
    n = 0;
    while (!done) begin
      awvalid = !aw_done && n >= aw_delay;
      awaddr = awvalid ? addr : 17'($urandom());
      wvalid = !w_done && n >= w_delay;
      wdata = wvalid ? data : random64();
      wstrb = wvalid ? strb : 8'($urandom());
      bready = n >= b_delay;
      @(negedge clk);
      if (awvalid && aw_hs) aw_done = 1;
      if (wvalid && w_hs) w_done = 1;
      if (b_hs) begin
        if (!aw_done || !w_done) $fatal(1, "answer before the write was complete");
        done = 1;
        resp = b_resp_s;
      end
      n++;
      if (n > Timeout) $fatal(1, "write to %h hangs", addr);
    end
    awvalid = 0;
    wvalid = 0;
    bready = 0;
  endtask

  task automatic raw_read(input logic [16:0] addr, input int ar_delay, input int r_delay,
                          output logic [63:0] data, output logic [1:0] resp);
    logic ar_done, done;
    int n;
    ar_done = 0;
    done = 0;
    n = 0;
    while (!done) begin
      arvalid = !ar_done && n >= ar_delay;
      araddr = arvalid ? addr : 17'($urandom());
      rready = n >= r_delay;
      @(negedge clk);
      if (arvalid && ar_hs) ar_done = 1;
      if (r_hs) begin
        done = 1;
        data = r_data_s;
        resp = r_resp_s;
      end
      n++;
      if (n > Timeout) $fatal(1, "read of %h hangs", addr);
    end
    arvalid = 0;
    rready = 0;
  endtask

  // ---- accesses with check ---------------------------------------------------------------------
  task automatic check_state(input string what);
    for (int i = 0; i < num_csr; i++) begin
      if (int'(entry[i].access) == AccRw || int'(entry[i].access) == AccWo) begin
        if (seen[i] !== value[i])
          $fatal(1, "%s: hardware sees %h in register %h, want %h", what, seen[i],
                 entry[i].offset, value[i]);
        if (qe_count[i] != want_qe[i])
          $fatal(1, "%s: %0d pulses of register %h, want %0d", what, qe_count[i],
                 entry[i].offset, want_qe[i]);
      end
    end
  endtask

  task automatic do_write(input logic [16:0] addr, input logic [63:0] data, input logic [7:0] strb,
                       input int delay);
    logic [1:0] touch, resp;
    logic ok;
    logic [63:0] wmask, m, v;
    for (int b = 0; b < 8; b++) wmask[8*b+:8] = {8{strb[b]}};
    if (addr[16]) begin
      ok = addr[2:0] == '0 && strb == '1 && db_defined(addr[11:0]);
    end else begin
      touch = {|strb[7:4], |strb[3:0]};
      if (strb == '0) touch = addr[2] ? 2'b10 : 2'b01;
      ok = (touch & ~map[addr[15:3]]) == '0;
      if (ok) begin
        for (int i = 0; i < num_csr; i++) begin
          if (entry[i].offset[15:3] == addr[15:3]) begin
            m = entry[i].offset[2] ? wmask >> 32 : wmask;
            v = entry[i].offset[2] ? data >> 32 : data;
            if (!entry[i].wide) m = m & 64'hffffffff;
            case (int'(entry[i].access))
              AccRw: value[i] = (value[i] & ~(m & entry[i].mask)) | (v & m & entry[i].mask);
              AccRw1c: value[i] = value[i] & ~(v & m);
              AccWo: if (m != '0) value[i] = v & m & entry[i].mask;
              default: ;
            endcase
            if (m != '0 && (int'(entry[i].access) == AccRw || int'(entry[i].access) == AccWo))
              want_qe[i]++;
          end
        end
      end
    end
    raw_write(addr, data, strb, delay == 0 ? 0 : int'($urandom() % 4),
              delay == 0 ? 0 : int'($urandom() % 4), delay == 0 ? 0 : int'($urandom() % 8), resp);
    if (resp !== (ok ? 2'b00 : 2'b10))
      $fatal(1, "write to %h strobe %b: answer %b", addr, strb, resp);
    check_state("after a write");
    if (addr[16] && ok) begin
      if (db_seen.size() != 1 || db_seen[0] !== {addr[15:0], data})
        $fatal(1, "doorbell %h = %h did not come out", addr, data);
      void'(db_seen.pop_front());
    end
    if (db_seen.size() != 0) $fatal(1, "a doorbell that nobody rang");
  endtask

  task automatic do_read(input logic [16:0] addr, input int delay);
    logic [63:0] want, data;
    logic [1:0] resp;
    logic ok;
    want = '0;
    if (addr[16]) begin
      ok = db_defined({addr[11:3], 3'b000});
    end else begin
      ok = map[addr[15:3]][addr[2]];
      for (int i = 0; ok && i < num_csr; i++)
        if (entry[i].offset[15:3] == addr[15:3] && int'(entry[i].access) != AccWo)
          want |= entry[i].offset[2] ? value[i] << 32 : value[i];
    end
    raw_read(addr, delay == 0 ? 0 : int'($urandom() % 3), delay == 0 ? 0 : int'($urandom() % 8),
             data, resp);
    if (resp !== (ok ? 2'b00 : 2'b10)) $fatal(1, "read of %h: answer %b", addr, resp);
    if (data !== want) $fatal(1, "read of %h: got %h, want %h", addr, data, want);
  endtask

  // One process does all accesses, so that the simulator has one copy of the code above.
  typedef enum {
    OpNone,
    OpWrite,
    OpRead,
    OpRawWrite,
    OpRawRead
  } op_e;
  op_e op = OpNone;
  logic [16:0] op_addr;
  logic [63:0] op_data, raw_data;
  logic [7:0] op_strb;
  logic [1:0] raw_resp;
  int op_delay;
  initial begin
    forever begin
      while (op == OpNone) @(negedge clk);
      case (op)
        OpWrite: do_write(op_addr, op_data, op_strb, op_delay);
        OpRead: do_read(op_addr, op_delay);
        OpRawWrite: raw_write(op_addr, op_data, op_strb, op_delay, 0, 0, raw_resp);
        default: raw_read(op_addr, 0, 0, raw_data, raw_resp);
      endcase
      op = OpNone;
    end
  end

  task automatic start(input op_e kind, input logic [16:0] addr, input logic [63:0] data,
                       input logic [7:0] strb, input int delay);
    op_addr = addr;
    op_data = data;
    op_strb = strb;
    op_delay = delay;
    op = kind;
    while (op != OpNone) @(negedge clk);
  endtask
  task automatic write(input logic [16:0] addr, input logic [63:0] data, input logic [7:0] strb,
                       input int delay);
    start(OpWrite, addr, data, strb, delay);
  endtask
  task automatic read(input logic [16:0] addr, input int delay);
    start(OpRead, addr, '0, '0, delay);
  endtask

  task automatic write_reg(input int i, input logic [63:0] v);
    if (entry[i].wide) write(entry[i].offset, v, 8'hff, 0);
    else if (entry[i].offset[2]) write(entry[i].offset, v << 32, 8'hf0, 0);
    else write(entry[i].offset, v, 8'h0f, 0);
  endtask

  task automatic drive_ro(input int i, input logic [63:0] v);
    value[i] = v & entry[i].mask;
    drive[i] = v;
    csr_apply();
  endtask

  task automatic pulse_w1c(input int i, input logic [63:0] v);
    value[i] |= v & entry[i].mask;
    drive[i] = v;
    csr_apply();
    @(negedge clk);
    drive[i] = '0;
    csr_apply();
  endtask

  logic [63:0] d, high;
  logic [16:0] addr;
  int n, accesses = 0, e;

  initial begin
    for (int i = 0; i < 8192; i++) map[i] = '0;
    for (int i = 0; i < num_csr; i++) begin
      entry[i] = csr_entry(i);
      drive[i] = '0;
      csr_apply();
      value[i] = entry[i].reset;
      want_qe[i] = 0;
      map[entry[i].offset[15:3]] |= entry[i].wide ? 2'b11 : entry[i].offset[2] ? 2'b10 : 2'b01;
    end
    repeat (4) @(negedge clk);
    rst_n = 1;
    @(negedge clk);

    // Reset values, and that writes to registers that software cannot change are OKAY and ignored.
    check_state("reset");
    for (int i = 0; i < num_csr; i++) read(entry[i].offset, 0);
    for (int i = 0; i < num_csr; i++)
      if (int'(entry[i].access) == AccRo || int'(entry[i].access) == AccConst) begin
        write_reg(i, ~entry[i].reset);
        read(entry[i].offset, 0);
      end

    // Walking ones and zeros by access kind; every other register must keep its value.
    for (int i = 0; i < num_csr; i++) begin
      for (int b = 0; b < (entry[i].wide ? 64 : 32); b++) begin
        d = 64'd1 << b;
        case (int'(entry[i].access))
          AccRw, AccWo: begin
            write_reg(i, d);
            read(entry[i].offset, 0);
            write_reg(i, ~d);
            read(entry[i].offset, 0);
          end
          AccRo: begin
            drive_ro(i, d);
            read(entry[i].offset, 0);
            drive_ro(i, ~d);
            read(entry[i].offset, 0);
          end
          AccRw1c: begin
            pulse_w1c(i, d);
            read(entry[i].offset, 0);
            write_reg(i, ~d);
            read(entry[i].offset, 0);
            write_reg(i, d);
            read(entry[i].offset, 0);
          end
          default: ;
        endcase
      end
    end
    for (int i = 0; i < num_csr; i++) read(entry[i].offset, 0);

    // rw1c: a set pulse one cycle before the clear is cleared, in the same cycle it wins.
    for (int i = 0; i < num_csr; i++) begin
      if (int'(entry[i].access) == AccRw1c) begin
        for (int k = 0; k < 2; k++) begin
          awaddr = entry[i].offset;
          wdata = entry[i].offset[2] ? 64'hffffffff_00000000 : 64'h00000000_ffffffff;
          wstrb = entry[i].offset[2] ? 8'hf0 : 8'h0f;
          awvalid = 1;
          wvalid = 1;
          bready = 1;
          drive[i] = k == 0 ? entry[i].mask : '0;
          csr_apply();
          @(negedge clk);
          awvalid = 0;
          wvalid = 0;
          drive[i] = k == 1 ? entry[i].mask : '0;
          csr_apply();
          @(negedge clk);
          drive[i] = '0;
          csr_apply();
          repeat (2) @(negedge clk);
          bready = 0;
          value[i] = k == 1 ? entry[i].mask : '0;
          read(entry[i].offset, 0);
        end
      end
    end

    // The stated latencies and rates.
    start(OpRawWrite, CsrMacAddrOffset, '0, '0, 0);
    if (b_cycle - aww_cycle != 2) $fatal(1, "write takes %0d cycles", b_cycle - aww_cycle);
    start(OpRawWrite, CsrMacAddrOffset, '0, '0, 3);
    if (b_cycle - aww_cycle != 2) $fatal(1, "write, W first: %0d cycles", b_cycle - aww_cycle);
    start(OpRawRead, CsrMacAddrOffset, '0, '0, 0);
    if (r_cycle - ar_cycle != 3) $fatal(1, "read takes %0d cycles", r_cycle - ar_cycle);
    awaddr = CsrMacAddrOffset;
    wstrb = '0;
    araddr = CsrMacAddrOffset;
    {awvalid, wvalid, bready, arvalid, rready} = '1;
    n = 0;
    e = 0;
    for (int i = 0; i < 40; i++) begin
      @(negedge clk);
      if (b_hs) n++;
      if (r_hs) e++;
    end
    if (n < 38 || e < 9) $fatal(1, "%0d writes and %0d reads in 40 cycles", n, e);
    // what is offered is offered until it is taken
    while (awvalid || wvalid || arvalid) begin
      if (aw_hs) awvalid = 0;
      if (w_hs) wvalid = 0;
      if (ar_hs) arvalid = 0;
      @(negedge clk);
    end
    repeat (8) @(negedge clk);
    {bready, rready} = '0;

    // Every 4-byte word of the space by reads.
    for (int i = 0; i < num_words; i++) read(17'(4 * i), 0);

    // A counter read in halves: the high half belongs to the low half that was read before.
    for (int i = 0; i < num_csr; i++) begin
      if (int'(entry[i].access) == AccRo && entry[i].wide && entry[i].mask == '1) begin
        drive_ro(i, 64'h11111111_ffffffff);
        start(OpRawRead, entry[i].offset, '0, '0, 0);
        d = raw_data;
        drive_ro(i, 64'h22222222_00000000);
        start(OpRawRead, entry[i].offset + 4, '0, '0, 0);
        high = raw_data;
        if (high[63:32] !== 32'h11111111) $fatal(1, "torn read at %h: %h", entry[i].offset, high);
        start(OpRawRead, entry[i].offset + 4, '0, '0, 0);
        high = raw_data;
        if (high[63:32] !== 32'h22222222) $fatal(1, "stale high half: %h", high);
        start(OpRawRead, entry[i].offset, '0, '0, 0);
        d = raw_data;
        if (d !== 64'h22222222_00000000) $fatal(1, "8-byte read: %h", d);
        read(entry[i].offset ^ 17'h8, 0);
        drive_ro(i, 64'h33333333_00000000);
        read(entry[i].offset + 4, 0);  // another low half was read since: live value
      end
    end

    // A doorbell that is not taken holds writes and lets reads through.
    db_mode = 0;
    awaddr = DbBase + 17'h3000 + 17'(DbSqOffset);
    wdata = 64'h0123456789abcdef;
    wstrb = '1;
    {awvalid, wvalid, bready} = '1;
    @(negedge clk);
    awvalid = 0;
    wvalid = 0;
    for (int i = 0; i < 50; i++) begin
      @(negedge clk);
      if (bvalid || !db_valid || awready || wready) $fatal(1, "doorbell does not hold writes");
      if (i % 8 == 0) read(CsrIdOffset, 0);
    end
    db_mode = 1;
    repeat (2) @(negedge clk);
    if (!b_hs && !bvalid) $fatal(1, "no answer after the doorbell was taken");
    @(negedge clk);
    bready = 0;
    if (db_seen.size() != 1 || db_seen[0] !== {16'h3000, 64'h0123456789abcdef})
      $fatal(1, "held doorbell did not come out");
    void'(db_seen.pop_front());

    // Random accesses everywhere, with delays on every channel.
    db_mode = 2;
    for (int k = 0; k < 30000; k++) begin
      e = int'($urandom() % NumCsr);
      case ($urandom() % 8)
        0: addr = 17'($urandom() & 32'hffff);
        1: addr = DbBase | 17'($urandom() & 32'hf0ff);
        2: addr = DbBase | 17'($urandom() & 32'hffff);
        default: addr = entry[e].offset ^ 17'($urandom() & 32'h7);
      endcase
      case ($urandom() % 8)
        0, 1, 2: write(addr, random64(), 8'($urandom()), int'($urandom() % 2));
        3: write(addr & ~17'h7, random64(), 8'hff, int'($urandom() % 2));
        4: write(addr, random64(), addr[2] ? 8'hf0 : 8'h0f, 1);
        default: read(addr & ~17'h4, int'($urandom() % 2));
      endcase
      if (int'(entry[e].access) == AccRo) drive_ro(e, random64());
      if (int'(entry[e].access) == AccRw1c && k % 2 == 0) pulse_w1c(e, random64());
      accesses++;
    end

    // Clear: registers go back to reset values; transfers in flight are finished.
    db_mode = 1;
    for (int i = 0; i < num_csr; i++)
      if (int'(entry[i].access) == AccRw) write_reg(i, ~entry[i].reset);
    for (int i = 0; i < num_csr; i++) if (int'(entry[i].access) == AccRw1c) pulse_w1c(i, '1);
    // Clear in every cycle of a write of a register without effect and of a read beside it.
    for (int k = 0; k < 6; k++) begin
      awaddr = CsrIdOffset;
      araddr = CsrIdOffset;
      wdata = '1;
      wstrb = 8'h0f;
      {awvalid, wvalid, arvalid} = '1;
      for (int i = 0; i < 8; i++) begin
        clear = i == k;
        @(negedge clk);
        {awvalid, wvalid, arvalid} = '0;
      end
      if (!bvalid || bresp !== 2'b00 || !rvalid || rresp !== 2'b00 ||
          rdata[31:0] !== entry[0].reset[31:0])
        $fatal(1, "clear hurt a transfer");
      {bready, rready} = '1;
      @(negedge clk);
      {bready, rready} = '0;
    end
    for (int i = 0; i < num_csr; i++)
      if (int'(entry[i].access) != AccRo) value[i] = entry[i].reset;
    check_state("clear");
    for (int i = 0; i < num_csr; i++) read(entry[i].offset, 0);

    $display("PASS %0d registers, %0d random accesses, %0d cycles", NumCsr, accesses, cycle);
    $finish;
  end
endmodule
