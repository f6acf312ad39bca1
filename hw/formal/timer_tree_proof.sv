// SPDX-License-Identifier: Apache-2.0
//
// timer_tree, for any one timer (watch_q) beside others that do as they like: it fires only if it runs and its deadline has come, once;
// if nothing else is set and the port is ready it fires within Bound cycles; `next`, when it is known, is not behind its deadline.

module timer_tree_proof #(
  parameter int unsigned Num = 8,
  parameter int unsigned TickW = 2,
  parameter int unsigned LogTrees = 1,
  parameter int unsigned Bound = 20,
  localparam int unsigned IdxW = $clog2(Num)
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [TickW-1:0] now_i,
  input logic             set_valid_i,
  input logic             set_on_i,
  input logic [IdxW-1:0]  set_idx_i,
  input logic [TickW-1:0] set_deadline_i,
  input logic             fire_ready_i,
  input logic [IdxW-1:0]  watch_i
);
  logic ready, fire_valid, next_valid, any;
  logic [IdxW-1:0] fire_idx;
  logic [TickW-1:0] next;
  timer_tree #(.Num(Num), .TickW(TickW), .LogTrees(LogTrees)) dut (
    .clk_i, .rst_ni, .ready_o(ready), .now_i, .set_valid_i, .set_on_i, .set_idx_i, .set_deadline_i,
    .fire_ready_i, .fire_valid_o(fire_valid), .fire_idx_o(fire_idx),
    .next_valid_o(next_valid), .any_o(any), .next_o(next));

  logic first_q = 1'b1;
  logic [IdxW-1:0] watch_q;          // chosen at the start
  logic [TickW-1:0] now_q;
  logic on_q, could_q;               // it runs; it may have been tested
  logic [TickW-1:0] deadline_q;
  logic [$clog2(Bound+1)-1:0] wait_q;
  logic fires, set;
  assign fires = fire_valid && fire_idx == watch_q;
  assign set = set_valid_i && ready && set_idx_i == watch_q;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    now_q <= now_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end else begin
      chosen_once: assume (watch_i == watch_q);
      time_goes_on: assume (now_i >= now_q);
      one_reset: assume (rst_ni);
    end
    if (!rst_ni) begin
      on_q <= 1'b0;
      could_q <= 1'b0;
      wait_q <= '0;
    end else begin
      could_q <= fire_ready_i && !set_valid_i && ready;
      if (set) begin
        on_q <= set_on_i;
        deadline_q <= set_deadline_i;
      end else if (fires) begin
        on_q <= 1'b0;
      end
      if (!on_q || deadline_q > now_i || set_valid_i || !fire_ready_i || fires) wait_q <= '0;
      else wait_q <= wait_q + 1'b1;
      fires_when_due: assert (!fires || (on_q && deadline_q <= now_i));
      fires_when_ready: assert (!fire_valid || could_q);
      fires_in_time: assert (wait_q < ($clog2(Bound+1))'(Bound));
      next_not_late: assert (!next_valid || !on_q || (any && next <= deadline_q));
      fire: cover (fires && set_valid_i);
      waits: cover (wait_q > 5);
      moves: cover (set && on_q && set_on_i && deadline_q <= now_i && fire_valid && !fires);
      known: cover (next_valid && on_q && next < deadline_q);
    end
  end

endmodule
