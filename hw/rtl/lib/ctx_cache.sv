// SPDX-License-Identifier: Apache-2.0
//
// Cache of contexts that live in host memory: set-associative, write-back, with several misses under way.
//
// Entry i is EntryW bits at mem_base + 64 * i, a line of its own. Entries outside mem_log_num, and all of them before
// mem_on_i, read as zero: "no such object". The memory has to be zero before it is handed over.
//
// Read ports: one look-up at a time per port; answers of a port in order; a port that misses does not stop the others.
// Prefetch: a hint, dropped when there is no room at once or somebody asks (pf_done_o = 0; it may be given again).
// Owner: the one port that changes entries. A look-up with own_pin_i puts a pin (there are two) into the entry: it stays until
// own_release_i, and may be written meanwhile (own_we_i, any number of times). Readers see a write in the next cycle. An owner that
// holds a pin may ask for one more entry, so there have to be two ways.
// A read that host memory refuses answers zero (own_ok_o = 0) and is tried again by the next look-up. After a refused write-back
// memory holds what an entry was before, perhaps a right that was taken back: from then on all entries read as zero, until reset.
//
// A victim is a line that is neither pinned nor being filled: an empty one, else one not looked up since all the others were, else
// the next one. Its contents go to a buffer; until their write is answered nobody reads the entry again. Who waited for a
// line gets it before anyone may take it away, so nobody starves.
//
// Throughput: one look-up per cycle over all ports. Latency: 1 cycle for a hit. After reset the cache is swept for 2^LogSets cycles.
// Back-pressure: req_ready_o; none towards AXI reads (room is reserved).

module ctx_cache #(
  parameter int unsigned DataW = 512,
  parameter int unsigned EntryW = 320,   // at most 512
  parameter int unsigned IdxW = 24,
  parameter int unsigned LogSets = 8,
  parameter int unsigned LogWays = 2,    // at least 1
  parameter int unsigned NumPorts = 3,
  parameter int unsigned LogFills = 3,   // misses under way
  localparam int unsigned Ways = 1 << LogWays
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,
  // the memory of the contexts; fixed once on
  input  logic                              mem_on_i,
  input  logic [63:6]                       mem_base_i,
  input  logic [4:0]                        mem_log_num_i,
  // read ports
  input  logic [NumPorts-1:0]               req_valid_i,
  output logic [NumPorts-1:0]               req_ready_o,
  input  logic [NumPorts-1:0][IdxW-1:0]     req_idx_i,
  output logic [NumPorts-1:0]               rsp_valid_o,
  output logic [EntryW-1:0]                 rsp_o,
  input  logic                              pf_valid_i,
  input  logic [IdxW-1:0]                   pf_idx_i,
  output logic                              pf_done_o,      // taken up, or not needed
  output logic                              pf_hit_o,       // a look-up would be answered at once
  // owner
  input  logic                              own_valid_i,
  output logic                              own_ready_o,
  input  logic [IdxW-1:0]                   own_idx_i,
  input  logic                              own_pin_i,      // which pin
  output logic                              own_done_o,     // with the entry in rsp_o
  output logic                              own_ok_o,       // pinned; else there is no such entry, or memory refused it
  input  logic                              own_we_i,
  output logic                              own_we_ready_o,
  input  logic                              own_we_pin_i,
  input  logic [EntryW-1:0]                 own_entry_i,
  input  logic                              own_release_i,
  // AXI clients
  output logic                              ar_valid_o,
  input  logic                              ar_ready_i,
  output logic [63:0]                       ar_addr_o,
  output logic [7:0]                        ar_len_o,
  input  logic                              r_valid_i,
  input  logic [DataW-1:0]                  r_data_i,
  input  logic                              r_last_i,
  input  logic                              r_err_i,
  output logic                              aw_valid_o,
  input  logic                              aw_ready_i,
  output logic [63:0]                       aw_addr_o,
  output logic [7:0]                        aw_len_o,
  output logic                              w_valid_o,
  input  logic                              w_ready_i,
  output logic [DataW-1:0]                  w_data_o,
  output logic [DataW/8-1:0]                w_strb_o,
  output logic                              w_last_o,
  input  logic                              b_valid_i,
  input  logic                              b_err_i,
  // counters: one-cycle pulses; ev_stall_o is a level
  output logic                              ev_hit_o,
  output logic                              ev_miss_o,
  output logic                              ev_evict_o,
  output logic                              ev_writeback_o,
  output logic                              ev_stall_o,
  output logic                              ev_rd_err_o,
  output logic                              ev_wr_err_o,
  output logic                              idle_o
);

  localparam int unsigned Sets = 1 << LogSets;
  localparam int unsigned TagW = IdxW - LogSets;
  localparam int unsigned NumFills = 1 << LogFills;
  localparam int unsigned Beats = 512 / DataW;
  localparam int unsigned NumAsk = NumPorts + 1;   // read ports and, as the last one, the owner
  localparam int unsigned AskW = $clog2(NumAsk);
  localparam int unsigned Own = NumPorts;

  typedef logic [IdxW-1:0] idx_t;
  typedef logic [LogSets-1:0] set_t;
  typedef logic [LogWays-1:0] way_t;
  typedef struct packed {
    logic            valid;
    logic            filling;
    logic            dirty;
    logic [TagW-1:0] tag;
  } line_t;
  typedef struct packed {
    way_t way;
    idx_t idx;
  } fill_t;

  // Functions look at part of their arguments.
  // verilator lint_off UNUSEDSIGNAL
  function automatic set_t set_of(input idx_t idx);
    return idx[LogSets-1:0];
  endfunction
  function automatic logic [TagW-1:0] tag_of(input idx_t idx);
    return idx[IdxW-1:LogSets];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- sweep after reset -----------------------------------------------------------------------------
  logic sweep_q;
  set_t sweep_set_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweep_q <= 1'b1;
      sweep_set_q <= '0;
    end else if (sweep_q) begin
      sweep_set_q <= sweep_set_q + 1'b1;
      sweep_q <= sweep_set_q != '1;
    end
  end

  // ---- who asks: waiting ones that have their line, then other waiting ones, then new ones ------------
  logic [NumAsk-1:0] wait_q, retry_q, sure_q, fail_q;
  logic              own_wait_pin_q;
  idx_t              idx_q[NumAsk];
  logic [NumAsk-1:0] new_valid;
  logic              any_sure, any_retry, any_new, go, from_wait, is_pf;
  logic [AskW-1:0]   sure_sel, retry_sel, new_sel, sel, last_q;
  idx_t              idx;
  always_comb begin
    new_valid[Own] = own_valid_i && !wait_q[Own];
    for (int i = 0; i < int'(NumPorts); i++) new_valid[i] = req_valid_i[i] && !wait_q[i];
  end
  assign any_sure = |sure_q;
  assign any_retry = |retry_q;
  assign any_new = |new_valid;
  always_comb begin
    sure_sel = '0;
    retry_sel = '0;
    new_sel = '0;
    for (int i = int'(NumAsk) - 1; i >= 0; i--) begin
      if (sure_q[i]) sure_sel = AskW'(i);
      if (retry_q[i]) retry_sel = AskW'(i);
      if (new_valid[i]) new_sel = AskW'(i);
    end
    // in turns
    for (int i = int'(NumAsk) - 1; i >= 0; i--) begin
      if (retry_q[i] && AskW'(i) > last_q) retry_sel = AskW'(i);
      if (new_valid[i] && AskW'(i) > last_q) new_sel = AskW'(i);
    end
  end
  assign from_wait = any_sure || any_retry;
  assign go = !sweep_q && (from_wait || any_new);
  assign is_pf = !sweep_q && !from_wait && !any_new && pf_valid_i;
  assign sel = any_sure ? sure_sel : any_retry ? retry_sel : new_sel;
  always_comb begin
    idx = pf_idx_i;
    if (from_wait) idx = idx_q[sel];
    else if (any_new) begin
      idx = own_idx_i;
      for (int i = 0; i < int'(NumPorts); i++) if (sel == AskW'(i)) idx = req_idx_i[i];
    end
  end
  always_comb begin
    req_ready_o = '0;
    for (int i = 0; i < int'(NumPorts); i++) req_ready_o[i] = go && !from_wait && sel == AskW'(i);
  end
  assign own_ready_o = go && !from_wait && sel == AskW'(Own);

  // ---- tags ------------------------------------------------------------------------------------------
  line_t [Ways-1:0] lines;
  logic  [Ways-1:0] line_we;
  set_t  line_set, row;
  line_t line_d;
  logic  [Ways-1:0] ref_mem[Sets];   // looked up since the others were
  logic  [Ways-1:0] refs;
  assign row = set_of(idx);
  assign refs = ref_mem[row];
  for (genvar w = 0; w < int'(Ways); w++) begin : gen_way
    line_t mem[Sets];
    assign lines[w] = mem[row];
    always_ff @(posedge clk_i) if (line_we[w]) mem[line_set] <= line_d;
  end

  // ---- pins ------------------------------------------------------------------------------------------
  logic [1:0] pin_q;
  idx_t pin_idx_q[2];
  way_t pin_way_q[2];

  // ---- write-backs -----------------------------------------------------------------------------------
  // ring of those under way, oldest at wb_head; the data of the newest is in the RAM's output, then in the buffer
  idx_t                 wb_idx_q[NumFills];
  logic [LogFills:0]    wb_head_q, wb_tail_q;
  logic                 wb_load_q, wb_ready;
  logic                 wb_push;
  logic                 blocked;    // the entry is being written back
  logic [LogFills-1:0]  wb_pos[NumFills];   // place in the ring, behind the oldest
  always_comb begin
    blocked = 1'b0;
    for (int i = 0; i < int'(NumFills); i++) begin
      wb_pos[i] = LogFills'(i) - wb_head_q[LogFills-1:0];
      if ({1'b0, wb_pos[i]} < (LogFills+1)'(wb_tail_q - wb_head_q) && wb_idx_q[i] == idx) blocked = 1'b1;
    end
  end

  // ---- the look-up -----------------------------------------------------------------------------------
  logic hit, found, none, answer_zero, lookup, can, alloc, lost_q;
  way_t hit_way, victim, way;
  logic [Ways-1:0] pinned, able;
  logic fill_done, fill_room, wb_room, own_write;
  assign lookup = go || is_pf;
  assign none = !mem_on_i || lost_q || (IdxW+1)'({1'b0, idx} >> mem_log_num_i) != 0;
  assign answer_zero = none || (from_wait && fail_q[sel]);
  always_comb begin
    hit = 1'b0;
    found = 1'b0;
    hit_way = '0;
    pinned = '0;
    for (int w = 0; w < int'(Ways); w++) begin
      if (lines[w].tag == tag_of(idx) && (lines[w].valid || lines[w].filling)) begin
        found = 1'b1;
        hit = lines[w].valid;
        hit_way = way_t'(w);
      end
      for (int p = 0; p < 2; p++)
        if (pin_q[p] && set_of(pin_idx_q[p]) == row && pin_way_q[p] == way_t'(w)) pinned[w] = 1'b1;
      able[w] = !pinned[w] && !lines[w].filling && (!(lines[w].valid && lines[w].dirty) || wb_room);
    end
    victim = '0;
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w]) victim = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w] && !refs[w]) victim = way_t'(w);
    for (int w = int'(Ways) - 1; w >= 0; w--) if (able[w] && !lines[w].valid) victim = way_t'(w);
  end
  assign can = |able && fill_room && !blocked && !fill_done && !own_write;
  assign alloc = lookup && !answer_zero && !found && can;
  assign pf_done_o = is_pf && (answer_zero || found || can);
  assign pf_hit_o = is_pf && (answer_zero || hit);
  assign wb_push = alloc && lines[victim].valid && lines[victim].dirty;
  assign way = found ? hit_way : victim;

  // ---- fills: a ring in the order of the reads ---------------------------------------------------------
  fill_t             fill_q[NumFills];
  fill_t             fill;
  logic [LogFills:0] fill_head_q, fill_tail_q;
  logic              ar_valid_q, fill_err_q, fill_bad;
  logic [63:0]       ar_addr_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [511:0]      fill_data;   // an entry, and what is left of its line
  // verilator lint_on UNUSEDSIGNAL
  assign fill = fill_q[fill_head_q[LogFills-1:0]];
  assign fill_room = (fill_tail_q - fill_head_q) != (LogFills+1)'(NumFills) && (!ar_valid_q || ar_ready_i);
  assign fill_done = r_valid_i && r_last_i;
  assign fill_bad = fill_err_q || r_err_i;
  assign wb_room = (wb_tail_q - wb_head_q) != (LogFills+1)'(NumFills) && !wb_load_q && wb_ready;
  if (Beats > 1) begin : gen_collect
    logic [511-DataW:0] part_q;
    always_ff @(posedge clk_i) if (r_valid_i) part_q <= (512-DataW)'({r_data_i, part_q} >> DataW);
    assign fill_data = {r_data_i, part_q};
  end else begin : gen_straight
    assign fill_data = r_data_i;
  end

  // ---- the entries -------------------------------------------------------------------------------------
  // written by the end of a fill, or by the owner
  logic [EntryW-1:0] ram_out;
  logic none_q;
  idx_t wr_idx;
  way_t wr_way;
  assign wr_idx = fill_done ? fill.idx : pin_idx_q[own_we_pin_i];
  assign wr_way = fill_done ? fill.way : pin_way_q[own_we_pin_i];
  rnic_ram #(.Width(EntryW), .Depth(Sets * Ways)) u_ram (
    .clk_i,
    .we_i(fill_done || own_write),
    .waddr_i({set_of(wr_idx), wr_way}),
    .wdata_i(fill_done ? fill_data[EntryW-1:0] : own_entry_i),
    .re_i(lookup), .raddr_i({row, way}), .rdata_o(ram_out)
  );
  assign own_we_ready_o = !fill_done && !sweep_q;
  assign own_write = own_we_i && own_we_ready_o;
  assign rsp_o = none_q ? '0 : ram_out;

  // one change of a tag per cycle: end of a fill, write of the owner, begin of a fill
  always_comb begin
    line_we = '0;
    line_set = row;
    line_d = '{valid: 1'b0, filling: 1'b1, dirty: 1'b0, tag: tag_of(idx)};
    if (sweep_q) begin
      line_we = '1;
      line_set = sweep_set_q;
      line_d = '0;
    end else if (fill_done || own_write) begin
      line_we[wr_way] = 1'b1;
      line_set = set_of(wr_idx);
      line_d = '{valid: !(fill_done && fill_bad), filling: 1'b0, dirty: !fill_done, tag: tag_of(wr_idx)};
    end else if (alloc) begin
      line_we[victim] = 1'b1;
    end
  end

  // ---- answers -------------------------------------------------------------------------------------------
  logic answer, progress;
  assign answer = go && (answer_zero || hit);
  // something that a look-up may have waited for
  assign progress = fill_done || b_valid_i || own_release_i || own_write || (ar_valid_q && ar_ready_i) ||
                    (w_valid_o && w_ready_i && w_last_o);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wait_q <= '0;
      retry_q <= '0;
      sure_q <= '0;
      fail_q <= '0;
      rsp_valid_o <= '0;
      own_done_o <= 1'b0;
      own_ok_o <= 1'b0;
      pin_q <= '0;
      last_q <= '0;
    end else begin
      rsp_valid_o <= '0;
      own_done_o <= 1'b0;
      if (go) begin
        last_q <= sel;
        wait_q[sel] <= !answer;
        retry_q[sel] <= 1'b0;
        sure_q[sel] <= 1'b0;
        fail_q[sel] <= 1'b0;
        for (int i = 0; i < int'(NumPorts); i++) rsp_valid_o[i] <= answer && sel == AskW'(i);
        own_done_o <= answer && sel == AskW'(Own);
        own_ok_o <= !answer_zero;
      end
      if (own_release_i) pin_q <= '0;
      if (go && answer && !answer_zero && sel == AskW'(Own)) pin_q[from_wait ? own_wait_pin_q : own_pin_i] <= 1'b1;
      for (int i = 0; i < int'(NumAsk); i++) begin
        // what a look-up of this cycle missed may be there now
        if (progress && (wait_q[i] || (go && sel == AskW'(i))) && !(go && answer && sel == AskW'(i))) retry_q[i] <= 1'b1;
        if (fill_done && !(go && answer && sel == AskW'(i)) &&
            (wait_q[i] ? idx_q[i] == fill.idx : go && sel == AskW'(i) && idx == fill.idx)) begin
          sure_q[i] <= 1'b1;
          fail_q[i] <= fill_bad;
        end
      end
    end
    none_q <= answer_zero;
    if (go && !from_wait) idx_q[sel] <= idx;
    if (own_valid_i && own_ready_o) own_wait_pin_q <= own_pin_i;
    if (go && answer && sel == AskW'(Own)) begin
      pin_idx_q[from_wait ? own_wait_pin_q : own_pin_i] <= idx;
      pin_way_q[from_wait ? own_wait_pin_q : own_pin_i] <= hit_way;
    end
    if (sweep_q) ref_mem[sweep_set_q] <= '0;
    else if ((go && hit) || alloc) ref_mem[row] <= &(refs | (Ways'(1) << way)) ? Ways'(1) << way : refs | (Ways'(1) << way);
  end

  // ---- towards memory ------------------------------------------------------------------------------------
  // verilator lint_off PINCONNECTEMPTY
  // not idle: its answer is waited for in the ring
  entry_writer #(.DataW(DataW), .EntryW(512)) u_write (
    .clk_i, .rst_ni, .in_valid_i(wb_load_q), .in_ready_o(wb_ready), .in_data_i(512'(ram_out)),
    .in_addr_i(mem_base_i + 58'(wb_idx_q[LogFills'(wb_tail_q[LogFills-1:0] - 1'b1)])),
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .idle_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fill_head_q <= '0;
      fill_tail_q <= '0;
      fill_err_q <= 1'b0;
      ar_valid_q <= 1'b0;
      wb_head_q <= '0;
      lost_q <= 1'b0;
      wb_tail_q <= '0;
      wb_load_q <= 1'b0;
    end else begin
      if (ar_ready_i) ar_valid_q <= 1'b0;
      if (alloc) begin
        ar_valid_q <= 1'b1;
        fill_tail_q <= fill_tail_q + 1'b1;
      end
      if (r_valid_i) fill_err_q <= !r_last_i && fill_bad;
      if (fill_done) fill_head_q <= fill_head_q + 1'b1;
      wb_load_q <= wb_push;
      if (wb_push) wb_tail_q <= wb_tail_q + 1'b1;
      if (b_valid_i) wb_head_q <= wb_head_q + 1'b1;
      if (b_valid_i && b_err_i) lost_q <= 1'b1;
    end
    if (alloc) begin
      ar_addr_q <= {mem_base_i + 58'(idx), 6'd0};
      fill_q[fill_tail_q[LogFills-1:0]] <= '{way: victim, idx: idx};
    end
    if (wb_push) wb_idx_q[wb_tail_q[LogFills-1:0]] <= {lines[victim].tag, row};
  end
  assign ar_valid_o = ar_valid_q;
  assign ar_addr_o = ar_addr_q;
  assign ar_len_o = 8'(Beats - 1);

  always_ff @(posedge clk_i) begin
    ev_hit_o <= rst_ni && go && !from_wait && !none && hit;
    ev_miss_o <= rst_ni && alloc;
    ev_evict_o <= rst_ni && alloc && lines[victim].valid;
    ev_writeback_o <= rst_ni && wb_push;
    ev_stall_o <= rst_ni && |wait_q;
    ev_rd_err_o <= rst_ni && fill_done && fill_bad;
    ev_wr_err_o <= rst_ni && b_valid_i && b_err_i;
  end
  assign idle_o = !sweep_q && wait_q == '0 && fill_head_q == fill_tail_q && wb_head_q == wb_tail_q && !any_new && !pf_valid_i && !own_we_i;

endmodule
