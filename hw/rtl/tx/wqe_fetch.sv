// SPDX-License-Identifier: Apache-2.0
//
// Reads WQEs from host memory: tickets in, one WQE after the other out, in order of the tickets.
// Of a pushed WQE the copy is read when its ticket is the oldest, and its place given up.
//
// Every ticket is one AXI burst (at most 512 bytes, inside one 4 KiB page). Up to 16 are
// outstanding; room for the answer is reserved in a ring buffer before the read is issued. A ticket that went
// stale (its QP's fetch pointer was set back) is skipped and only its end is passed on.
//
// Throughput: a WQE of 64 bytes per 2 cycles at 512 bit, per 10 at 64 bit. Latency: last word of the WQE to
// item_valid_o 3 cycles; at 512 bit 3 cycles from the ticket of a pushed WQE. Back-pressure: tickets wait while 16 are outstanding or the buffer
// is reserved; items wait for item_ready_i.

module wqe_fetch
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned DataW = 512
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             tkt_valid_i,  // only while tkt_ready_o
  output logic             tkt_ready_o,
  input  ticket_t          tkt_i,
  input  logic [63:0]      tkt_base_i,
  input  logic [14:0]      tkt_slot_i,
  output logic             ar_valid_o,
  input  logic             ar_ready_i,
  output logic [63:0]      ar_addr_o,
  output logic [7:0]       ar_len_o,
  input  logic             r_valid_i,
  input  logic [DataW-1:0] r_data_i,
  input  logic             r_last_i,
  input  logic             r_err_i,
  // copies of pushed WQEs
  output logic             push_rd_en_o,
  output copy_idx_t        push_at_o,
  output logic [$clog2(1024/DataW)-1:0] push_row_o,
  input  logic [DataW-1:0] push_data_i,
  output logic             push_free_o,
  output logic             push_used_o,  // with push_free_o: it was read
  // generation of the QP at the head
  output qp_idx_t          gen_qp_o,
  input  gen_t             gen_i,
  output logic             item_valid_o,
  input  logic             item_ready_i,
  output wqe_item_t        item_o,
  output logic [1023:0]    item_wqe_o,
  output logic [3:0]       ev_wqe_o,
  output logic             ev_axi_err_o
);

  localparam int unsigned LogBytes = $clog2(DataW / 8);
  localparam int unsigned TicketWords = TicketWqes * 1024 / DataW;
  localparam int unsigned BufWords = NumTickets * TicketWords;
  localparam int unsigned PtrW = $clog2(BufWords) + 1;
  localparam int unsigned WordW = $clog2(1024 / DataW);  // word of a 128-byte WQE

  function automatic logic [PtrW-1:0] words(input logic [2:0] count, input logic stride128);
    return PtrW'((32'(count) << (stride128 ? 7 : 6)) >> LogBytes);
  endfunction

  // ---- read requests -----------------------------------------------------------------------------
  logic fifo_ready, ar_valid_q;
  logic [63:0] ar_addr_q;
  logic [7:0] ar_len_q;
  logic [PtrW-1:0] reserved_q, wptr_q, rptr_q;
  logic [PtrW-1:0] tkt_words;

  assign tkt_words = tkt_i.pushed ? '0 : words(tkt_i.count, tkt_i.stride128);
  assign tkt_ready_o = !ar_valid_q && fifo_ready &&
                       PtrW'(reserved_q - rptr_q) <= PtrW'(BufWords - TicketWords);
  assign ar_valid_o = ar_valid_q;
  assign ar_addr_o = ar_addr_q;
  assign ar_len_o = ar_len_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
      reserved_q <= '0;
    end else begin
      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (tkt_valid_i) begin
        ar_valid_q <= !tkt_i.pushed;
        reserved_q <= reserved_q + tkt_words;
      end
    end
    if (tkt_valid_i) begin
      // the address is aligned to the stride whatever was configured, so that a burst stays in its page
      ar_addr_q <= tkt_i.stride128 ? {tkt_base_i[63:7], 7'd0} + {42'd0, tkt_slot_i, 7'd0} :
                                     {tkt_base_i[63:6], 6'd0} + {43'd0, tkt_slot_i, 6'd0};
      ar_len_q <= 8'(tkt_words) - 8'd1;
    end
  end

  // ---- answers ------------------------------------------------------------------------------------
  logic read, burst_err_q, ev_axi_err_q;
  logic [DataW:0] rdata, buf_rdata;

  rnic_ram #(.Width(DataW + 1), .Depth(BufWords)) u_buffer (
    .clk_i,
    .we_i(r_valid_i), .waddr_i(wptr_q[PtrW-2:0]), .wdata_i({r_err_i, r_data_i}),
    .re_i(read), .raddr_i(rptr_q[PtrW-2:0]), .rdata_o(buf_rdata)
  );

  assign ev_axi_err_o = ev_axi_err_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      burst_err_q <= 1'b0;
      ev_axi_err_q <= 1'b0;
    end else begin
      ev_axi_err_q <= r_valid_i && r_last_i && (r_err_i || burst_err_q);
      if (r_valid_i) begin
        wptr_q <= wptr_q + 1'b1;
        burst_err_q <= !r_last_i && (r_err_i || burst_err_q);
      end
    end
  end

  // ---- tickets in order ---------------------------------------------------------------------------
  ticket_t head;
  logic head_valid, head_pop;
  logic [$clog2(NumTickets):0] level;

  rnic_fifo #(.Width($bits(ticket_t)), .Depth(NumTickets)) u_tickets (
    .clk_i, .rst_ni,
    .in_valid_i(tkt_valid_i), .in_ready_o(fifo_ready), .in_data_i(tkt_i),
    .out_valid_o(head_valid), .out_ready_i(head_pop), .out_data_o(head), .level_o(level)
  );
  assign gen_qp_o = head.qp;

  // ---- WQEs out of the buffer ----------------------------------------------------------------------
  typedef enum logic [1:0] {LoadStart, LoadWords, LoadSkip} load_state_e;
  load_state_e state_q;
  logic [1:0] pos_q;            // WQE in the ticket
  logic [WordW-1:0] word_q;     // next word of the WQE to read
  logic [WordW-1:0] word_last;
  logic rd_q, rd_last_q;        // word read in the cycle before
  logic [WordW-1:0] rd_word_q;
  logic item_valid_q, slot_free, skip_done, err_q;
  wqe_item_t item_q;
  logic [1023:0] wqe_q;
  logic [PtrW-1:0] arrived, head_words;
  logic pos_last, fresh, loading;

  assign arrived = wptr_q - rptr_q;
  assign word_last = head.stride128 ? WordW'(1024 / DataW - 1) : WordW'(512 / DataW - 1);
  assign pos_last = 3'(pos_q) + 3'd1 == head.count;
  assign slot_free = (!item_valid_q || item_ready_i) && !(rd_q && rd_last_q);
  assign fresh = head.gen == gen_i;
  assign loading = state_q == LoadWords || (state_q == LoadStart && head_valid && fresh);
  assign read = loading && slot_free && (head.pushed || arrived != '0);
  assign head_words = head.pushed ? '0 : words(head.count, head.stride128);
  assign skip_done = state_q == LoadSkip && slot_free && arrived >= head_words;
  assign push_rd_en_o = read && head.pushed;
  assign push_at_o = head.copy_at;
  assign push_row_o = word_q;
  assign push_free_o = head_pop && head.pushed;
  assign push_used_o = !skip_done;
  assign rdata = head.pushed ? {1'b0, push_data_i} : buf_rdata;
  assign head_pop = (rd_q && rd_last_q && pos_last) || skip_done;
  assign item_valid_o = item_valid_q;
  assign item_o = item_q;
  assign item_wqe_o = wqe_q;
  assign ev_wqe_o = tkt_valid_i && !tkt_i.pushed ? 4'(tkt_i.count) : 4'd0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= LoadStart;
      rptr_q <= '0;
      pos_q <= '0;
      word_q <= '0;
      rd_q <= 1'b0;
      rd_last_q <= 1'b0;
      item_valid_q <= 1'b0;
    end else begin
      if (item_ready_i) item_valid_q <= 1'b0;
      rd_q <= read;
      rd_last_q <= read && word_q == word_last;
      if (read) begin
        if (!head.pushed) rptr_q <= rptr_q + 1'b1;
        word_q <= word_q == word_last ? '0 : word_q + 1'b1;
      end
      unique case (state_q)
        LoadStart: if (head_valid) state_q <= fresh ? LoadWords : LoadSkip;
        LoadWords: begin
          if (rd_q && rd_last_q) begin
            item_valid_q <= 1'b1;
            pos_q <= pos_last ? '0 : pos_q + 1'b1;
            if (pos_last) state_q <= LoadStart;
          end
        end
        default: if (skip_done) begin
          rptr_q <= rptr_q + head_words;
          item_valid_q <= 1'b1;
          state_q <= LoadStart;
        end
      endcase
    end
    if (read) rd_word_q <= word_q;
    if (rd_q) begin
      wqe_q[32'(rd_word_q) * DataW +: DataW] <= rdata[DataW-1:0];
      err_q <= !rd_last_q && (rdata[DataW] || (rd_word_q != '0 && err_q));
    end
    if ((rd_q && rd_last_q) || skip_done) begin
      item_q <= '{skip: skip_done, err: rdata[DataW] || (rd_word_q != '0 && err_q),
                  last: skip_done || pos_last, qp: head.qp, gen: head.gen, turn: head.turn,
                  turn_end: head.turn_end && !skip_done && pos_last,
                  idx: head.first + 16'(pos_q), stride128: head.stride128, qp_type: head.qp_type, mtu: head.mtu,
                  timeout: head.timeout, max_rd: head.max_rd, flow: head.flow, pd: head.pd};
    end
  end

  logic unused;
  assign unused = ^{level, tkt_base_i[5:0]};

endmodule
