// SPDX-License-Identifier: Apache-2.0
//
// Reads receive WQEs from rings in host memory, for rq_cache and srq_cache.
//
// ask_*: the next WQEs of a ring, which begin at ask_next_i (free-running), of which `avail` are posted and for which there is `room`. One
// AXI burst reads as many as lie in one 4 KiB page in front of the end of the ring, at most 4 (ask_count_o; 0: there is nothing to be
// read, and the question is not to be asked). 16 bursts may be on their way; they come back in order. Each WQE is given out once
// (fill_*), with the ask_id_i of its burst. One that is malformed or could not be read is `bad`; its tag is 0xffff.
//
// Throughput: a burst per cycle. Latency: AR one cycle after the question, a WQE one cycle after its last beat. Back-pressure: ask_ready_o;
// none towards read data, whose place the asker has kept.

module rq_reads
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned IdW = 8,
  parameter int unsigned NumTickets = 16,
  localparam int unsigned LevelW = $clog2(NumTickets) + 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             ask_valid_i,
  output logic             ask_ready_o,
  input  logic [IdW-1:0]   ask_id_i,
  input  logic [63:6]      ask_base_i,
  input  logic [3:0]       ask_log_size_i,
  input  logic             ask_stride128_i,
  input  wqe_idx_t         ask_next_i,
  input  wqe_idx_t         ask_avail_i,
  input  wqe_idx_t         ask_room_i,
  output logic [2:0]       ask_count_o,
  // AXI read client
  output logic             ar_valid_o,
  input  logic             ar_ready_i,
  output logic [63:0]      ar_addr_o,
  output logic [7:0]       ar_len_o,
  input  logic             r_valid_i,
  input  logic [DataW-1:0] r_data_i,
  input  logic             r_last_i,
  input  logic             r_err_i,
  // WQEs
  output logic             fill_valid_o,
  output logic [IdW-1:0]   fill_id_o,
  output logic [3:0]       fill_at_o,       // low bits of its index
  output srq_entry_t       fill_o,
  // bursts
  output logic             done_o,          // one came back
  output logic [IdW-1:0]   done_id_o,
  output logic [LevelW-1:0] level_o,        // on their way
  output logic             ev_axi_err_o,
  output logic             idle_o
);

  localparam int unsigned LogBytes = $clog2(DataW / 8);
  localparam int unsigned AsmW = 768;                 // header and 4 SGEs of a WQE
  localparam int unsigned AsmWords = (AsmW + DataW - 1) / DataW;
  localparam int unsigned WordW = $clog2(1024 / DataW);

  typedef struct packed {
    logic [IdW-1:0] id;
    wqe_idx_t       first;
    logic [2:0]     count;
    logic           stride128;
  } ticket_t;

  // ---- the question ----------------------------------------------------------------------------------
  function automatic logic [2:0] sat4(input logic [15:0] v);
    return v >= 16'd4 ? 3'd4 : v[2:0];
  endfunction
  function automatic logic [2:0] min3(input logic [2:0] a, input logic [2:0] b);
    return a < b ? a : b;
  endfunction
  wqe_idx_t to_end;
  logic [14:0] slot;
  logic [5:0] page_slot, page_left64;
  logic [4:0] page_left128;
  logic [2:0] count;
  logic take, ar_valid_q, tkt_ready;
  assign slot = ask_next_i[14:0] & 15'((16'd1 << ask_log_size_i) - 16'd1);
  assign to_end = (16'd1 << ask_log_size_i) - 16'(slot);
  assign page_slot = ask_stride128_i ? {1'b0, ask_base_i[11:7] + slot[4:0]} : ask_base_i[11:6] + slot[5:0];
  assign page_left64 = 6'd63 - page_slot;
  assign page_left128 = 5'd31 - page_slot[4:0];
  assign count = min3(min3(sat4(ask_avail_i), sat4(ask_room_i)),
                      min3(sat4(to_end), sat4(16'd1 + (ask_stride128_i ? 16'(page_left128) : 16'(page_left64)))));
  assign ask_count_o = count;
  assign ask_ready_o = (!ar_valid_q || ar_ready_i) && tkt_ready;
  assign take = ask_valid_i && ask_ready_o;
  assign ar_valid_o = ar_valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
    end else begin
      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (take) ar_valid_q <= 1'b1;
    end
    if (take) begin
      ar_addr_o <= ask_stride128_i ? {ask_base_i[63:7], 7'd0} + {42'd0, slot, 7'd0} : {ask_base_i, 6'd0} + {43'd0, slot, 6'd0};
      ar_len_o <= 8'((32'(count) << (ask_stride128_i ? 7 : 6)) >> LogBytes) - 8'd1;
    end
  end

  // ---- on their way -----------------------------------------------------------------------------------
  ticket_t head;
  logic head_valid;
  rnic_fifo #(.Width($bits(ticket_t)), .Depth(NumTickets)) u_tickets (
    .clk_i, .rst_ni,
    .in_valid_i(take), .in_ready_o(tkt_ready), .in_data_i({ask_id_i, ask_next_i, count, ask_stride128_i}),
    .out_valid_o(head_valid), .out_ready_i(done_o), .out_data_o(head), .level_o
  );

  // ---- answers ----------------------------------------------------------------------------------------
  logic [WordW-1:0] word_q, word_last;
  logic [1:0] pos_q;                // WQE in the ticket
  wqe_idx_t idx_q;
  logic wqe_last, err_q, burst_err_q, fill_err_q, fill_stride128_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [AsmWords*DataW-1:0] asm_q;  // not all of a WQE belongs to a receive
  // verilator lint_on UNUSEDSIGNAL
  assign word_last = head.stride128 ? WordW'(1024 / DataW - 1) : WordW'(512 / DataW - 1);
  assign wqe_last = r_valid_i && word_q == word_last;
  assign done_o = wqe_last && 3'(pos_q) + 3'd1 == head.count;
  assign done_id_o = head.id;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      word_q <= '0;
      pos_q <= '0;
      fill_valid_o <= 1'b0;
      burst_err_q <= 1'b0;
      ev_axi_err_o <= 1'b0;
    end else begin
      fill_valid_o <= wqe_last;
      ev_axi_err_o <= r_valid_i && r_last_i && (r_err_i || burst_err_q);
      if (r_valid_i) begin
        word_q <= wqe_last ? '0 : word_q + 1'b1;
        burst_err_q <= !r_last_i && (r_err_i || burst_err_q);
      end
      if (wqe_last) pos_q <= done_o ? '0 : pos_q + 1'b1;
    end
    if (r_valid_i) begin
      err_q <= r_err_i || (word_q != '0 && err_q);
      if (32'(word_q) < AsmWords) asm_q[32'(word_q)*DataW+:DataW] <= r_data_i;
    end
    if (wqe_last) begin
      fill_id_o <= head.id;
      idx_q <= head.first + 16'(pos_q);
      fill_stride128_q <= head.stride128;
      fill_err_q <= r_err_i || (word_q != '0 && err_q);
    end
  end

  logic [7:0] num;
  logic bad;
  assign num = asm_q[23:16];
  assign bad = fill_err_q || asm_q[111:96] != idx_q || num > (fill_stride128_q ? 8'd4 : 8'd2);
  assign fill_o = '{tag: bad ? NoTag : asm_q[47:32], e: '{bad: bad, num_sge: num[2:0], sge: asm_q[256+:512]}};
  assign fill_at_o = idx_q[3:0];
  assign idle_o = !ar_valid_q && !head_valid && !fill_valid_o;

endmodule
