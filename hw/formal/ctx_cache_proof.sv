// SPDX-License-Identifier: Apache-2.0
//
// ctx_cache, for any one entry (watch_q) beside others that do as they like, with a memory that answers when it likes, refuses what
// it likes, and shows a write at any time between its data and its answer. Any look-up of the entry sees what its owner wrote
// last, or memory's first contents; zero only where an error, the size or mem_on_i says so, and always after a lost
// write-back. A pinned entry stays. Memory is read only when no write-back of the entry is open, and written only with what was changed.

module ctx_cache_proof #(
  parameter int unsigned EntryW = 2,
  parameter int unsigned IdxW = 3,
  localparam int unsigned DataW = 512
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic              mem_on_i,
  input logic [4:0]        mem_log_num_i,
  input logic              req_valid_i,
  input logic [IdxW-1:0]   req_idx_i,
  input logic              pf_valid_i,
  input logic [IdxW-1:0]   pf_idx_i,
  input logic              own_valid_i,
  input logic [IdxW-1:0]   own_idx_i,
  input logic              own_pin_i,
  input logic              own_we_i,
  input logic              own_we_pin_i,
  input logic [EntryW-1:0] own_entry_i,
  input logic              own_release_i,
  input logic              ar_ready_i,
  input logic              r_valid_i,
  input logic [EntryW-1:0] r_entry_i,
  input logic              r_err_i,
  input logic              aw_ready_i,
  input logic              w_ready_i,
  input logic              b_valid_i,
  input logic              b_err_i,
  input logic [IdxW-1:0]   watch_i
);

  logic req_ready, rsp_valid, own_ready, own_done, own_ok, own_we_ready, ar_valid, aw_valid, w_valid, w_last;
  logic ev_hit, ev_miss, ev_evict, ev_writeback, ev_stall, ev_rd_err, ev_wr_err, idle;
  logic [EntryW-1:0] rsp;
  logic [63:0] ar_addr, aw_addr;
  logic [7:0] ar_len, aw_len;
  logic [DataW-1:0] w_data;
  logic [DataW/8-1:0] w_strb;
  ctx_cache #(
    .DataW(DataW), .EntryW(EntryW), .IdxW(IdxW), .LogSets(1), .LogWays(1), .NumPorts(1), .LogFills(1)
  ) dut (
    .clk_i, .rst_ni, .mem_on_i, .mem_base_i('0), .mem_log_num_i,
    .req_valid_i, .req_ready_o(req_ready), .req_idx_i, .rsp_valid_o(rsp_valid), .rsp_o(rsp),
    .pf_valid_i, .pf_idx_i,
    .own_valid_i, .own_ready_o(own_ready), .own_idx_i, .own_pin_i, .own_done_o(own_done), .own_ok_o(own_ok),
    .own_we_i, .own_we_ready_o(own_we_ready), .own_we_pin_i, .own_entry_i, .own_release_i,
    .ar_valid_o(ar_valid), .ar_ready_i, .ar_addr_o(ar_addr), .ar_len_o(ar_len),
    .r_valid_i, .r_data_i(DataW'(r_entry_i)), .r_last_i(1'b1), .r_err_i,
    .aw_valid_o(aw_valid), .aw_ready_i, .aw_addr_o(aw_addr), .aw_len_o(aw_len),
    .w_valid_o(w_valid), .w_ready_i, .w_data_o(w_data), .w_strb_o(w_strb), .w_last_o(w_last), .b_valid_i, .b_err_i,
    .ev_hit_o(ev_hit), .ev_miss_o(ev_miss), .ev_evict_o(ev_evict), .ev_writeback_o(ev_writeback), .ev_stall_o(ev_stall),
    .ev_rd_err_o(ev_rd_err), .ev_wr_err_o(ev_wr_err), .idle_o(idle));

  stream_check #(.Width(IdxW), .Assume(1'b1)) u_req (.clk_i, .rst_ni, .valid_i(req_valid_i), .ready_i(req_ready), .data_i(req_idx_i));
  stream_check #(.Width(IdxW + 1), .Assume(1'b1)) u_own (.clk_i, .rst_ni, .valid_i(own_valid_i), .ready_i(own_ready), .data_i({own_idx_i, own_pin_i}));
  stream_check #(.Width(64)) u_ar (.clk_i, .rst_ni, .valid_i(ar_valid), .ready_i(ar_ready_i), .data_i(ar_addr));
  stream_check #(.Width(64)) u_aw (.clk_i, .rst_ni, .valid_i(aw_valid), .ready_i(aw_ready_i), .data_i(aw_addr));
  stream_check #(.Width(EntryW)) u_w (.clk_i, .rst_ni, .valid_i(w_valid), .ready_i(w_ready_i), .data_i(w_data[EntryW-1:0]));

  logic first_q = 1'b1;
  logic [IdxW-1:0] watch_q;          // chosen at the start, any value, like the size
  logic [4:0] log_num_q;
  logic in_range, on_q, was_on_q;

  // memory: of the watched entry what it holds, and what is being written
  logic [EntryW-1:0] mem_q, new_q;
  logic [1:0] rd_num_q;              // reads asked for; of each, oldest first: is it of the watched entry
  logic [1:0] rd_watch_q;
  logic [1:0] aw_num_q, w_num_q;     // writes without an answer: addresses, data
  logic [1:0] wr_watch_q;
  logic [1:0][EntryW-1:0] wr_data_q;
  logic open_write;                  // one of the watched entry has its data and no answer
  logic ar_watch, aw_watch, ar_take, aw_take, w_take;
  assign ar_watch = ar_addr == 64'({watch_q, 6'd0});
  assign aw_watch = aw_addr == 64'({watch_q, 6'd0});
  assign ar_take = ar_valid && ar_ready_i;
  assign aw_take = aw_valid && aw_ready_i;
  assign w_take = w_valid && w_ready_i;
  assign open_write = (aw_num_q > 2'd0 && wr_watch_q[0]) || (aw_num_q > 2'd1 && wr_watch_q[1]);
  always_comb begin
    new_q = wr_data_q[0];
    if (!(aw_num_q > 2'd0 && wr_watch_q[0])) new_q = wr_data_q[1];
  end

  // the owner
  logic asks_q, ask_pin_q;
  logic [IdxW-1:0] ask_idx_q;
  logic [1:0] pin_q;
  logic [1:0][IdxW-1:0] pin_idx_q;
  logic pinned, dirty_q, own_write;
  // with the answer of this cycle, which the owner may use at once
  logic asks;
  logic [1:0] pin;
  logic [1:0][IdxW-1:0] pin_idx;
  logic [EntryW-1:0] ref_q, was_q;   // what the entry is now, and was in the cycle before
  logic err_q, lost_q, was_lost_q;
  assign pinned = (pin_q[0] && pin_idx_q[0] == watch_q) || (pin_q[1] && pin_idx_q[1] == watch_q);
  always_comb begin
    asks = asks_q && !own_done;
    pin = pin_q;
    pin_idx = pin_idx_q;
    if (own_done && own_ok) begin
      pin[ask_pin_q] = 1'b1;
      pin_idx[ask_pin_q] = ask_idx_q;
    end
  end
  assign own_write = own_we_i && own_we_ready && pin_idx[own_we_pin_i] == watch_q;
  assign in_range = 32'(watch_q) >> log_num_q == 0;

  // the sweep leaves entry {way, set} in every line, changed: a cache in the middle of its work
  logic begins_in;
  assign begins_in = watch_i[IdxW-1:2] == '0;

  // the reader
  logic reads_q;
  logic [IdxW-1:0] read_idx_q;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    log_num_q <= mem_log_num_i;
    on_q <= mem_on_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
      off_in_reset: assume (!mem_on_i);
      quiet_in_reset: assume (!r_valid_i && !own_we_i);
    end else begin
      one_reset: assume (rst_ni);
      chosen_once: assume (watch_i == watch_q && mem_log_num_i == log_num_q);
      stays_on: assume (!on_q || mem_on_i);
    end
    // memory
    r_of_a_read: assume (!r_valid_i || rd_num_q != '0);
    r_data: assume (!r_valid_i || r_err_i || !rd_watch_q[0] || r_entry_i == mem_q || (open_write && r_entry_i == new_q));
    b_of_a_write: assume (!b_valid_i || (aw_num_q != '0 && w_num_q != '0));
    // owner: one thing at a time, writes where it holds a pin
    asks_one: assume (!own_valid_i || (!asks_q && !pin_q[own_pin_i]));
    writes_pinned: assume (!own_we_i || (pin[own_we_pin_i] && !asks && !own_valid_i));
    releases_idle: assume (!own_release_i || (!asks && !own_valid_i && (!own_we_i || own_we_ready)));
    if (!rst_ni) begin
      rd_num_q <= '0;
      aw_num_q <= '0;
      w_num_q <= '0;
      asks_q <= 1'b0;
      pin_q <= '0;
      dirty_q <= begins_in;
      err_q <= 1'b0;
      lost_q <= 1'b0;
      was_lost_q <= 1'b0;
      was_on_q <= 1'b0;
      reads_q <= 1'b0;
      ref_q <= begins_in ? dut.u_ram.words[{watch_i[0], watch_i[1]}] : mem_q;
    end else begin
      rd_num_q <= rd_num_q + 2'(ar_take) - 2'(r_valid_i);
      aw_num_q <= aw_num_q + 2'(aw_take) - 2'(b_valid_i);
      w_num_q <= w_num_q + 2'(w_take) - 2'(b_valid_i);
      if (r_valid_i) rd_watch_q[0] <= rd_watch_q[1];
      if (ar_take) rd_watch_q[1'(rd_num_q - 2'(r_valid_i))] <= ar_watch;
      if (b_valid_i) begin
        wr_watch_q[0] <= wr_watch_q[1];
        wr_data_q[0] <= wr_data_q[1];
        if (wr_watch_q[0] && !b_err_i) mem_q <= wr_data_q[0];
      end
      if (aw_take) wr_watch_q[1'(aw_num_q - 2'(b_valid_i))] <= aw_watch;
      if (w_take) wr_data_q[1'(w_num_q - 2'(b_valid_i))] <= w_data[EntryW-1:0];
      if (aw_take && aw_watch) dirty_q <= 1'b0;
      if (own_write) begin
        ref_q <= own_entry_i;
        dirty_q <= 1'b1;
      end
      was_q <= ref_q;
      if ((r_valid_i && r_err_i) || (b_valid_i && b_err_i)) err_q <= 1'b1;
      if (b_valid_i && b_err_i) lost_q <= 1'b1;
      was_lost_q <= lost_q;
      was_on_q <= mem_on_i;
      if (own_valid_i && own_ready) begin
        asks_q <= 1'b1;
        ask_pin_q <= own_pin_i;
        ask_idx_q <= own_idx_i;
      end else if (own_done) begin
        asks_q <= 1'b0;
      end
      pin_q <= own_release_i ? '0 : pin;
      pin_idx_q <= pin_idx;
      if (req_valid_i && req_ready) begin
        reads_q <= 1'b1;
        read_idx_q <= req_idx_i;
      end else if (rsp_valid) begin
        reads_q <= 1'b0;
      end

      one_answer: assert (!rsp_valid || reads_q);
      one_lookup: assert (!(req_valid_i && req_ready) || !reads_q || rsp_valid);
      owner_answer: assert (!own_done || asks_q);
      rooms: assert (rd_num_q <= 2'd2 && aw_num_q <= 2'd2 && w_num_q <= 2'd2);
      in_memory: assert (!ar_valid || 64'(ar_addr[63:6]) >> log_num_q == 0);
      if ((rsp_valid && read_idx_q == watch_q) || (own_done && ask_idx_q == watch_q)) begin
        coherent: assert (rsp == was_q || rsp == '0);
        there: assert (rsp == was_q || err_q || !was_on_q || !in_range);
        not_there: assert (rsp == '0 || (was_on_q && in_range));
        fails_closed: assert (rsp == '0 || !was_lost_q);
      end
      if (own_done && ask_idx_q == watch_q) begin
        ok_says_so: assert (own_ok ? rsp == was_q && in_range : err_q || !was_on_q || !in_range);
      end
      pinned_stays: assert (!(pinned && ar_valid && ar_watch) && !(pinned && dut.wb_load_q && dut.wb_idx_q[~dut.wb_tail_q[0]] == watch_q));
      no_stale_read: assert (!(open_write && ar_valid && ar_watch));
      only_changed: assert (!(aw_valid && aw_watch) || dirty_q);
      one_write: assert (!(aw_valid && aw_watch && open_write));
      quiet: assert (!idle || (!reads_q || rsp_valid) && rd_num_q == '0 && aw_num_q == '0 && !ar_valid);

      evicts_dirty: cover (aw_take && aw_watch);
      reads_back: cover (rsp_valid && read_idx_q == watch_q && mem_q == ref_q && ref_q == 2'd2 && !dirty_q && own_entry_i == 2'd1 && ev_hit && aw_num_q == '0 && ar_take);
      at_once: cover (own_done && own_write && own_release_i);
      both_pinned: cover (pin_q == 2'b11 && pin_idx_q[0] != pin_idx_q[1] && pin_idx_q[0][0] == pin_idx_q[1][0] && reads_q && !rsp_valid && own_we_i);
      closed: cover (lost_q && rsp_valid && read_idx_q == watch_q);
    end
  end

endmodule
