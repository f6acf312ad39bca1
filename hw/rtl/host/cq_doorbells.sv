// SPDX-License-Identifier: Apache-2.0
//
// Doorbells of CQs whose contexts may be in host memory. Part of cqe_writer.
//
// A doorbell never waits for host memory (a read of it may have to wait for doorbells that are behind on the bus): index and
// arming are kept by CQN, the CQN stands in a list. A newer doorbell of a CQ that waits replaces the index and adds its
// arming. So the list has room for all, and what leaves is in the order of the first doorbells.
//
// The index stays after the doorbell has left. It can be looked at (peek_i; peek_ci_o from the next cycle to the next peek): a CQE that
// overtakes a doorbell need not find its ring full. clear_* makes it 0, for a new CQ.
//
// Throughput: one doorbell in or out every 2 cycles. Latency: 6 cycles. Back-pressure: in_ready_o is 0 for a cycle after each
// step, and for a peek; out_* waits. After reset nothing is taken for 2^NumW / Banks cycles. Memory: 27 + NumW bits for each CQN.

module cq_doorbells
  import rnic_pkg::*;
#(
  parameter int unsigned NumW = CqIdxW,
  parameter int unsigned Banks = 16
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  output logic            ready_o,       // cleared after reset
  input  logic            in_valid_i,
  output logic            in_ready_o,
  input  logic [NumW-1:0] in_cqn_i,
  input  cq_ptr_t         in_ci_i,
  input  cq_arm_t         in_arm_i,
  output logic            out_valid_o,
  input  logic            out_ready_i,
  output logic [NumW-1:0] out_cqn_o,
  output cq_ptr_t         out_ci_o,
  output cq_arm_t         out_arm_o,     // any and solicited may both be set
  input  logic            peek_i,
  input  logic [NumW-1:0] peek_cqn_i,
  output cq_ptr_t         peek_ci_o,
  input  logic            clear_valid_i,
  output logic            clear_ready_o,
  input  logic [NumW-1:0] clear_cqn_i,
  output logic            hold_o,        // one was taken that may be listed in this cycle
  output logic            ev_listed_o,   // one more will leave
  output logic            idle_o
);

  typedef enum logic [1:0] {
    StepIn,
    StepOut,
    StepClear
  } step_e;
  typedef struct packed {
    logic        listed;
    cq_arm_t     arm;
    cq_ptr_t     ci;
  } word_t;

  // ---- a step: the word is read, and written in the next cycle -----------------------------------
  logic s1_q, step, go_out, last_in_q, peek_q;
  step_e what, s1_what_q;
  logic [NumW-1:0] s1_cqn_q, cqn, first_q;
  cq_ptr_t s1_ci_q, peek_ci_q;
  cq_arm_t s1_arm_q;
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
      StepClear: cqn = clear_cqn_i;
      StepOut: cqn = first_q;
      default: cqn = in_cqn_i;
    endcase
  end

  zero_ram #(.Width($bits(word_t)), .Depth(1 << NumW), .Banks(Banks)) u_words (
    .clk_i, .rst_ni, .ready_o,
    .we_i(s1_q), .waddr_i(s1_cqn_q), .wdata_i(word_d),
    .re_i(step || peek_i), .raddr_i(peek_i ? peek_cqn_i : cqn), .rdata_o(word)
  );
  always_comb begin
    word_d = '{listed: 1'b1, arm: s1_arm_q, ci: s1_ci_q};
    unique case (s1_what_q)
      StepClear: word_d = '{listed: word.listed, arm: '0, ci: '0};
      StepOut: word_d = '{listed: 1'b0, arm: '0, ci: word.ci};
      default: if (word.listed) word_d.arm = s1_arm_q | word.arm;
    endcase
  end
  assign hold_o = s1_q && s1_what_q == StepIn;
  assign ev_listed_o = hold_o && !word.listed;
  assign peek_ci_o = peek_q ? word.ci : peek_ci_q;

  // ---- the list ----------------------------------------------------------------------------------
  assign list_any = head_q != tail_q;
  assign list_re = list_any && !first_read_q && (!first_valid_q || out_step);
  rnic_ram #(.Width(NumW), .Depth(1 << NumW)) u_list (
    .clk_i, .we_i(ev_listed_o), .waddr_i(tail_q[NumW-1:0]), .wdata_i(s1_cqn_q),
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
    if (peek_q) peek_ci_q <= word.ci;
    if (first_read_q) first_q <= list_out;
    if (step) begin
      s1_what_q <= what;
      s1_cqn_q <= cqn;
      s1_ci_q <= in_ci_i;
      s1_arm_q <= in_arm_i;
    end
    if (s1_q && s1_what_q == StepOut) begin
      out_cqn_o <= s1_cqn_q;
      out_ci_o <= word.ci;
      out_arm_o <= word.arm;
    end
  end
  assign idle_o = ready_o && !in_valid_i && !clear_valid_i && !s1_q && !list_any && !first_read_q && !first_valid_q && !out_valid_o;

endmodule
