// SPDX-License-Identifier: Apache-2.0
//
// Doorbells of objects whose contexts may be in host memory (CQs, SRQs), by number.
//
// A doorbell never waits for host memory (a read of it may have to wait for doorbells that are behind on the bus): its index and
// its flags are kept by number, the number stands in a list. A newer doorbell of an object that waits replaces the index and adds its
// flags. So the list has room for all, and what leaves is in the order of the first doorbells.
//
// The index stays after the doorbell has left. It can be looked at (peek_i; peek_idx_o from the next cycle to the next peek): what
// overtakes a doorbell may know what the program has told. clear_* makes it 0, for a new object.
//
// Throughput: one doorbell in or out every 2 cycles. Latency: 6 cycles. Back-pressure: in_ready_o is 0 for a cycle after each
// step, and for a peek; out_* waits. After reset nothing is taken for 2^NumW / Banks cycles. Memory: IdxW + FlagW + 1 + NumW bits for
// each number.

module doorbell_list #(
  parameter int unsigned NumW = 16,      // numbers
  parameter int unsigned IdxW = 24,
  parameter int unsigned FlagW = 2,
  parameter int unsigned Banks = 16
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             ready_o,       // cleared after reset
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [NumW-1:0]  in_num_i,
  input  logic [IdxW-1:0]  in_idx_i,
  input  logic [FlagW-1:0] in_flags_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [NumW-1:0]  out_num_o,
  output logic [IdxW-1:0]  out_idx_o,
  output logic [FlagW-1:0] out_flags_o,   // of all that it stands for
  input  logic             peek_i,
  input  logic [NumW-1:0]  peek_num_i,
  output logic [IdxW-1:0]  peek_idx_o,
  input  logic             clear_valid_i,
  output logic             clear_ready_o,
  input  logic [NumW-1:0]  clear_num_i,
  output logic             hold_o,        // one was taken that may be listed in this cycle
  output logic             ev_listed_o,   // one more will leave
  output logic             idle_o
);

  typedef enum logic [1:0] {
    StepIn,
    StepOut,
    StepClear
  } step_e;
  typedef struct packed {
    logic             listed;
    logic [FlagW-1:0] flags;
    logic [IdxW-1:0]  idx;
  } word_t;

  // ---- a step: the word is read, and written in the next cycle -----------------------------------
  logic s1_q, step, go_out, last_in_q, peek_q;
  step_e what, s1_what_q;
  logic [NumW-1:0] s1_num_q, num, first_q;
  logic [IdxW-1:0] s1_idx_q, peek_idx_q;
  logic [FlagW-1:0] s1_flags_q;
  word_t word, word_d;
  logic first_valid_q, first_read_q, list_any, list_re, out_step;
  logic [NumW:0] head_q, tail_q;
  logic [NumW-1:0] list_out;

  // in turn
  assign go_out = first_valid_q && !out_valid_o && (!in_valid_i || last_in_q);
  assign what = clear_valid_i ? StepClear : go_out ? StepOut : StepIn;
  assign step = ready_o && !s1_q && !peek_i && (clear_valid_i || in_valid_i || go_out);
  assign out_step = step && what == StepOut;
  assign clear_ready_o = ready_o && !s1_q && !peek_i;
  assign in_ready_o = clear_ready_o && !clear_valid_i && !go_out;
  always_comb begin
    unique case (what)
      StepClear: num = clear_num_i;
      StepOut: num = first_q;
      default: num = in_num_i;
    endcase
  end

  zero_ram #(.Width($bits(word_t)), .Depth(1 << NumW), .Banks(Banks)) u_words (
    .clk_i, .rst_ni, .ready_o,
    .we_i(s1_q), .waddr_i(s1_num_q), .wdata_i(word_d),
    .re_i(step || peek_i), .raddr_i(peek_i ? peek_num_i : num), .rdata_o(word)
  );
  always_comb begin
    word_d = '{listed: 1'b1, flags: s1_flags_q, idx: s1_idx_q};
    unique case (s1_what_q)
      StepClear: word_d = '{listed: word.listed, flags: '0, idx: '0};
      StepOut: word_d = '{listed: 1'b0, flags: '0, idx: word.idx};
      default: if (word.listed) word_d.flags = s1_flags_q | word.flags;
    endcase
  end
  assign hold_o = s1_q && s1_what_q == StepIn;
  assign ev_listed_o = hold_o && !word.listed;
  assign peek_idx_o = peek_q ? word.idx : peek_idx_q;

  // ---- the list ----------------------------------------------------------------------------------
  assign list_any = head_q != tail_q;
  assign list_re = list_any && !first_read_q && (!first_valid_q || out_step);
  rnic_ram #(.Width(NumW), .Depth(1 << NumW)) u_list (
    .clk_i, .we_i(ev_listed_o), .waddr_i(tail_q[NumW-1:0]), .wdata_i(s1_num_q),
    .re_i(list_re), .raddr_i(head_q[NumW-1:0]), .rdata_o(list_out)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_q <= 1'b0;
      peek_q <= 1'b0;
      last_in_q <= 1'b0;
      head_q <= '0;
      tail_q <= '0;
      first_read_q <= 1'b0;
      first_valid_q <= 1'b0;
      out_valid_o <= 1'b0;
    end else begin
      s1_q <= step;
      peek_q <= peek_i;
      if (step && what != StepClear) last_in_q <= what == StepIn;
      if (ev_listed_o) tail_q <= tail_q + 1'b1;
      if (list_re) head_q <= head_q + 1'b1;
      first_read_q <= list_re;
      if (out_step) first_valid_q <= 1'b0;
      else if (first_read_q) first_valid_q <= 1'b1;
      if (out_ready_i) out_valid_o <= 1'b0;
      if (s1_q && s1_what_q == StepOut) out_valid_o <= 1'b1;
    end
    if (peek_q) peek_idx_q <= word.idx;
    if (first_read_q) first_q <= list_out;
    if (step) begin
      s1_what_q <= what;
      s1_num_q <= num;
      s1_idx_q <= in_idx_i;
      s1_flags_q <= in_flags_i;
    end
    if (s1_q && s1_what_q == StepOut) begin
      out_num_o <= s1_num_q;
      out_idx_o <= word.idx;
      out_flags_o <= word.flags;
    end
  end
  assign idle_o = ready_o && !in_valid_i && !clear_valid_i && !s1_q && !list_any && !first_read_q && !first_valid_q && !out_valid_o;

endmodule
