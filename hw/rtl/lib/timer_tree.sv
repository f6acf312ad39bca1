// SPDX-License-Identifier: Apache-2.0
//
// Timers, any number, in a tree: every node knows the earliest deadline below it.
//
// The timers are the leaves, in pairs, of 2^LogTrees binary trees (the low bits of its number tell a timer's tree). Each level is
// one RAM of a word per node with what its two children say: whether any timer below runs, the earliest deadline, whose it is.
// Arming, moving, stopping and firing are the same operation: it enters at a leaf, replaces the child's half of the word
// in each level on its way, a level per cycle, and leaves the earlier half's deadline in the level above. The roots are registers.
//
//   set    arms (set_on_i) or stops a timer, whatever it did before; always taken after ready_o
//   fire   a timer whose deadline has come, once; it is off then. It is tested in the cycle after one with fire_ready_i and without
//          set, by its leaf: a timer that was moved or stopped before that cycle does not fire
//   next   earliest deadline, exact; not known (next_valid_o 0) while operations are on their way
//
// No timer fires before its deadline. The first one due fires in the second cycle of its tick, those of other trees in the cycles
// behind it, more of the same tree at intervals of L + 2 cycles, where L = log2(Num) - LogTrees: with four trees 8 cycles for 256 timers,
// 16 for 65536. Nothing but L depends on the number of timers. now_i never goes back and may jump.
//
// Throughput: one set per cycle. Latency: set to next L + 2 cycles. Back-pressure: none for set, which goes before fire;
// fire waits for fire_ready_i. After reset all timers are stopped; meanwhile nothing is taken. The memories are cleared side by side, in banks of
// Bank words: that takes min(Num / 2, Bank) cycles.

module timer_tree #(
  parameter int unsigned Num = 256,       // a power of two
  parameter int unsigned TickW = 48,
  parameter int unsigned LogTrees = 2,    // 1 to log2(Num) - 1
  parameter int unsigned Bank = 4096,     // words, a power of two, 2 or more
  localparam int unsigned IdxW = $clog2(Num)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  output logic             ready_o,
  input  logic [TickW-1:0] now_i,
  input  logic             set_valid_i,
  input  logic             set_on_i,
  input  logic [IdxW-1:0]  set_idx_i,
  input  logic [TickW-1:0] set_deadline_i,
  input  logic             fire_ready_i,
  output logic             fire_valid_o,  // for one cycle
  output logic [IdxW-1:0]  fire_idx_o,
  output logic             next_valid_o,
  output logic             any_o,         // a timer runs
  output logic [TickW-1:0] next_o
);

  localparam int unsigned Levels = IdxW - LogTrees;
  localparam int unsigned Trees = 1 << LogTrees;
  localparam int unsigned LeafW = 1 + TickW;     // runs, deadline: bit 0 and above
  localparam int unsigned SweepW = IdxW - 1 < $clog2(Bank) ? IdxW - 1 : $clog2(Bank);

  // a place: the number with the bits of the tree at the top
  function automatic logic [IdxW-1:0] place(input logic [IdxW-1:0] idx);
    return {idx[LogTrees-1:0], idx[IdxW-1:LogTrees]};
  endfunction

  // ---- what enters -------------------------------------------------------------------------------
  logic [SweepW-1:0] sweep_q;     // after reset, the word to be cleared
  logic swept_q;
  logic sweeping, test, in_valid;
  logic [IdxW-1:0] in_place;
  logic [LeafW-1:0] in_leaf;

  // one register per tree: its earliest deadline, and the place of its timer in the tree
  logic [LeafW+Levels-1:0] root_q[Trees];
  logic [Trees-1:0] testing_q;    // a test is on its way to this root
  logic [Trees-1:0] due;
  logic [LogTrees-1:0] tree;      // the one to be tested
  logic [Levels-1:0] whose;

  assign sweeping = !swept_q;
  assign ready_o = !sweeping;
  always_comb begin
    tree = '0;
    for (int unsigned i = 0; i < Trees; i++) begin
      due[i] = root_q[i][0] && root_q[i][TickW:1] <= now_i && !testing_q[i];
      if (due[i]) tree = LogTrees'(i);
    end
    whose = root_q[tree][LeafW+:Levels];
  end
  assign test = due != '0 && fire_ready_i && !set_valid_i && !sweeping;
  assign in_valid = (set_valid_i && !sweeping) || test;
  assign in_place = set_valid_i ? place(set_idx_i) : {tree, whose};
  assign in_leaf = {set_deadline_i, set_on_i};

  // ---- the levels --------------------------------------------------------------------------------
  logic [Levels:0] v;                     // an operation is in this level; the last one: it has reached the root
  logic [Levels:0] v_test;
  logic [IdxW-1:0] at[Levels+1];
  logic [LeafW+Levels-1:0] val[Levels+1]; // what the child says; only the bits that it needs are used
  logic fire;

  logic in_valid_q, in_test_q;
  logic [IdxW-1:0] in_place_q;
  logic [LeafW-1:0] in_leaf_q;
  assign v[0] = in_valid_q;
  assign v_test[0] = in_test_q;
  assign at[0] = in_place_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweep_q <= '0;
      swept_q <= 1'b0;
      in_valid_q <= 1'b0;
      in_test_q <= 1'b0;
    end else begin
      if (sweeping) begin
        sweep_q <= sweep_q + 1'b1;
        swept_q <= sweep_q == '1;
      end
      in_valid_q <= in_valid;
      in_test_q <= test;
    end
    in_place_q <= in_place;
    in_leaf_q <= in_leaf;
  end

  for (genvar k = 0; k < Levels; k++) begin : gen_level
    localparam int unsigned W = LeafW + k;              // of what a child says
    localparam int unsigned AddrW = IdxW - 1 - k;
    logic [AddrW-1:0] addr, raddr, last_addr_q;
    logic [2*W-1:0] rdata, word, word_d, last_word_q;
    logic last_q, re, right, left_wins;
    logic [W-1:0] child, l, r;

    // the read begins one cycle ahead
    if (k == 0) begin : gen_first
      assign re = in_valid;
      assign raddr = in_place[IdxW-1:1];
      // the test of a timer: off if its deadline has come
      logic [W-1:0] leaf;
      assign leaf = right ? word[W+:W] : word[0+:W];
      assign fire = v[0] && v_test[0] && leaf[0] && leaf[TickW:1] <= now_i;
      assign child = v_test[0] ? {leaf[W-1:1], leaf[0] && !fire} : in_leaf_q;
    end else begin : gen_other
      assign re = v[k-1];
      assign raddr = at[k-1][IdxW-1:k+1];
      assign child = val[k][W-1:0];
    end
    localparam int unsigned BankW = AddrW < SweepW ? AddrW : SweepW;
    localparam int unsigned Banks = 1 << (AddrW - BankW);
    logic [Banks-1:0][2*W-1:0] banks;
    for (genvar b = 0; b < Banks; b++) begin : gen_bank
      rnic_ram #(.Width(2 * W), .Depth(1 << BankW)) u_ram (
        .clk_i, .we_i(sweeping || (v[k] && AddrW'(addr >> BankW) == AddrW'(b))),
        .waddr_i(sweeping ? sweep_q[BankW-1:0] : addr[BankW-1:0]), .wdata_i(sweeping ? '0 : word_d),
        .re_i(re), .raddr_i(raddr[BankW-1:0]), .rdata_o(banks[b]));
    end
    if (Banks > 1) begin : gen_banks
      logic [AddrW-BankW-1:0] bank_q;
      always_ff @(posedge clk_i) if (re) bank_q <= raddr[AddrW-1:BankW];
      assign rdata = banks[bank_q];
    end else begin : gen_one_bank
      assign rdata = banks[0];
    end

    assign addr = at[k][IdxW-1:k+1];
    assign right = at[k][k];
    // the operation just ahead wrote this word while it was read
    assign word = last_q && last_addr_q == addr ? last_word_q : rdata;
    assign word_d = right ? {child, word[0+:W]} : {word[W+:W], child};
    assign {r, l} = word_d;
    assign left_wins = l[0] && (!r[0] || l[TickW:1] <= r[TickW:1]);

    logic up_q, up_test_q;
    logic [IdxW-1:0] up_at_q;
    logic [W:0] up_q_val;
    assign v[k+1] = up_q;
    assign v_test[k+1] = up_test_q;
    assign at[k+1] = up_at_q;
    assign val[k+1] = (LeafW + Levels)'(up_q_val);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        last_q <= 1'b0;
        up_q <= 1'b0;
        up_test_q <= 1'b0;
      end else begin
        last_q <= v[k];
        up_q <= v[k];
        up_test_q <= v[k] && v_test[k];
      end
      last_addr_q <= addr;
      last_word_q <= word_d;
      up_at_q <= at[k];
      up_q_val <= left_wins ? {1'b0, l} : {1'b1, r};
    end
  end

  assign fire_valid_o = fire;
  assign fire_idx_o = {at[0][Levels-1:0], at[0][IdxW-1:Levels]};

  // ---- the roots ---------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Trees; i++) root_q[i][0] <= 1'b0;
      testing_q <= '0;
    end else begin
      if (v[Levels]) begin
        root_q[at[Levels][IdxW-1:Levels]] <= val[Levels];
        if (v_test[Levels]) testing_q[at[Levels][IdxW-1:Levels]] <= 1'b0;
      end
      if (test) testing_q[tree] <= 1'b1;
    end
  end

  // ---- the earliest ------------------------------------------------------------------------------
  always_comb begin
    any_o = 1'b0;
    next_o = '1;
    for (int unsigned i = 0; i < Trees; i++) begin
      if (root_q[i][0]) begin
        any_o = 1'b1;
        if (root_q[i][TickW:1] < next_o) next_o = root_q[i][TickW:1];
      end
    end
  end
  assign next_valid_o = !sweeping && !in_valid && v == '0;

endmodule
