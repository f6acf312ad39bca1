// SPDX-License-Identifier: Apache-2.0
//
// Memory regions and memory windows: key variant, PD, rights, address range. Indexed by bits 31:8 of a key. They live in host
// memory, 64 bytes each (mr_ctx_t below; not for software to read or write); the ones in
// use are in a cache. The one place where entries change: every change is checked and made in one go.
//
// Read ports: in order per port, at least one cycle later; a port that waits for host memory does not stop the others. The check
// itself is rnic_pkg::mr_check (IBTA 10.6.3, 9.7.4.1.4). pf: a hint that this entry will be read.
// Command port: one operation at a time, taken while cmd_ready_o. Read; Write stores an entry (cmd_mr_i.exists = 0 takes it away,
// and a window that was bound away from its MR); Purge takes the windows of a QP away from it: without windows at once, else it
// looks at entry after entry up to the highest one made, until all are found (from 255 windows on always all entries). cmd_lock_i keeps changes out between a read and the
// write that follows from it. cmd_rsp_err_o: host memory refused to give the entry.
// Changes (mr_change_t), by QPs: one after the other, answered when they are made or refused.
//   invalidate  a valid entry of the PD with this key, by its QP if it is a window, not an MR that windows are bound to;
//               by a peer (SEND with invalidate, IBTA 9.4.1.1.3) only windows and MRs that allow it. The entry
//               stays, as a free one.
//   bind        a free window of the PD gets a new key, a range of an MR and rights (type 2B, IBTA 10.6.7.2):
//               the MR is valid, of the PD, allows binding, has local write if the window gives remote write or
//               atomic, and covers the range, which is not empty. A zero-based window begins at address 0.
// The windows bound to an MR are counted; the command processor does not destroy an MR before its windows.
// After reset there are no entries, and there is no memory for any (mem_on_i).
//
// Throughput: one read per cycle over all ports. Latency: 1 cycle if the entry is in the cache, else that of host memory.

module mr_table
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned NumPorts = 2,
  parameter int unsigned NumChg = 2,
  parameter int unsigned LogSets = MrLogSets,
  parameter int unsigned LogWays = MrLogWays,
  parameter int unsigned NumW = QpnW,       // bits of a QPN that are looked at
  parameter int unsigned Banks = 16         // of what is kept by QPN
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  // the memory of the entries
  input  ctx_mem_t                  mem_i,
  // read ports
  input  logic       [NumPorts-1:0] req_valid_i,
  output logic       [NumPorts-1:0] req_ready_o,
  input  mr_idx_t    [NumPorts-1:0] req_idx_i,
  output logic       [NumPorts-1:0] rsp_valid_o,
  output mr_t                       rsp_o[NumPorts],
  input  logic                      pf_valid_i,
  input  mr_idx_t                   pf_idx_i,
  // command port
  input  logic                      cmd_valid_i,
  output logic                      cmd_ready_o,
  input  logic                      cmd_lock_i,
  input  mr_cmd_e                   cmd_op_i,
  input  mr_idx_t                   cmd_idx_i,
  input  mr_t                       cmd_mr_i,
  input  qpn_t                      cmd_qpn_i,      // Purge
  output logic                      cmd_rsp_valid_o,
  output mr_t                       cmd_rsp_o,      // stays until the next command
  output logic                      cmd_rsp_bound_o, // windows are bound to this MR
  output logic                      cmd_rsp_err_o,
  // changes by QPs; the answer is for the one taken last
  input  logic       [NumChg-1:0]   chg_valid_i,
  output logic       [NumChg-1:0]   chg_ready_o,
  input  mr_change_t [NumChg-1:0]   chg_i,
  output logic       [NumChg-1:0]   chg_rsp_valid_o,
  output mr_result_e                chg_rsp_o,
  // AXI clients
  output logic                      ar_valid_o,
  input  logic                      ar_ready_i,
  output logic [63:0]               ar_addr_o,
  output logic [7:0]                ar_len_o,
  input  logic                      r_valid_i,
  input  logic [DataW-1:0]          r_data_i,
  input  logic                      r_last_i,
  input  logic                      r_err_i,
  output logic                      aw_valid_o,
  input  logic                      aw_ready_i,
  output logic [63:0]               aw_addr_o,
  output logic [7:0]                aw_len_o,
  output logic                      w_valid_o,
  input  logic                      w_ready_i,
  output logic [DataW-1:0]          w_data_o,
  output logic [DataW/8-1:0]        w_strb_o,
  output logic                      w_last_o,
  input  logic                      b_valid_i,
  input  logic                      b_err_i,
  output ctx_ev_t                   ev_o,
  output logic                      idle_o
);

  localparam int unsigned ChgW = NumChg > 1 ? $clog2(NumChg) : 1;
  localparam int unsigned CntW = $bits(mr_idx_t) + 1;
  typedef struct packed {
    logic [CntW-1:0] bound;   // windows bound to an MR
    mr_t             mr;
  } mr_ctx_t;

  // an address is never beyond the end of an MR, whose range does not wrap; functions look at part of their arguments
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic bind_ok(input mr_t mr, input mr_change_t c);
    return mr.valid && !mr.mw && mr.variant == c.lkey[7:0] && mr.pd == c.pd && mr.mw_bind &&
           (mr.local_write || !(c.remote_write || c.remote_atomic)) && c.length != 0 &&
           c.addr >= mr.va && c.addr - mr.va < mr.length &&
           64'(c.length) <= mr.length - (c.addr - mr.va);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- cache --------------------------------------------------------------------------------------
  logic own_valid, own_ready, own_pin, own_done, own_ok, own_we, own_we_ready, own_we_pin, own_release;
  mr_idx_t own_idx;
  mr_ctx_t own_entry, rsp;
  logic cache_idle, pf_valid;
  mr_idx_t pf_idx;

  // verilator lint_off PINCONNECTEMPTY
  // hints that are dropped are not given again
  ctx_cache #(.DataW(DataW), .EntryW($bits(mr_ctx_t)), .IdxW($bits(mr_idx_t)), .LogSets(LogSets), .LogWays(LogWays),
              .NumPorts(NumPorts)) u_cache (
    .clk_i, .rst_ni, .mem_on_i(mem_i.on), .mem_base_i(mem_i.base), .mem_log_num_i(mem_i.log_num),
    .req_valid_i, .req_ready_o, .req_idx_i, .rsp_valid_o, .rsp_o(rsp),
    .pf_valid_i(pf_valid), .pf_idx_i(pf_idx), .pf_done_o(), .pf_hit_o(),
    .own_valid_i(own_valid), .own_ready_o(own_ready), .own_idx_i(own_idx), .own_pin_i(own_pin), .own_done_o(own_done),
    .own_ok_o(own_ok), .own_we_i(own_we), .own_we_ready_o(own_we_ready), .own_we_pin_i(own_we_pin), .own_entry_i(own_entry),
    .own_release_i(own_release),
    .ar_valid_o, .ar_ready_i, .ar_addr_o, .ar_len_o, .r_valid_i, .r_data_i, .r_last_i, .r_err_i,
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .b_valid_i, .b_err_i,
    .ev_hit_o(ev_o.hit), .ev_miss_o(ev_o.miss), .ev_evict_o(ev_o.evict), .ev_writeback_o(ev_o.writeback),
    .ev_stall_o(ev_o.stall), .ev_rd_err_o(ev_o.rd_err), .ev_wr_err_o(ev_o.wr_err), .idle_o(cache_idle)
  );
  // verilator lint_on PINCONNECTEMPTY
  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    assign rsp_o[p] = rsp.mr;
  end

  // ---- machine ------------------------------------------------------------------------------------
  // An operation looks up one entry (pin 0) and, if windows are concerned, the MR of the window (pin 1); then it writes.
  typedef enum logic [3:0] {
    StIdle, StAsk, StEntry, StVerdict, StAskMr, StMr, StMrVerdict, StWriteMr, StWrite, StEnd, StPurge
  } state_e;
  typedef enum logic [1:0] {DoRead, DoWrite, DoPurge, DoChange} op_e;
  state_e state_q;
  op_e op_q;
  mr_change_t chg_q;
  logic [ChgW-1:0] sel, sel_q;
  logic chg_any, take, cmd_take;
  mr_idx_t idx_q, top_q;              // top: the highest entry ever written by a command
  mr_ctx_t ent_q, par_q;              // the two entries
  logic ent_ok_q, par_ok_q;           // host memory gave them
  mr_t wr_q;
  qpn_t qpn_q;

  // what is kept by QPN below, cleared after reset; purges and binds wait for that
  logic swept;

  always_comb begin
    chg_any = |chg_valid_i;
    sel = '0;
    for (int i = int'(NumChg) - 1; i >= 0; i--) if (chg_valid_i[i]) sel = ChgW'(i);
  end
  assign cmd_ready_o = state_q == StIdle && (swept || cmd_op_i != MrCmdPurge);
  assign cmd_take = cmd_valid_i && cmd_ready_o;
  assign take = state_q == StIdle && !cmd_valid_i && !cmd_lock_i && chg_any && (swept || chg_i[sel].op != MrBind);
  always_comb begin
    chg_ready_o = '0;
    chg_ready_o[sel] = take;
  end

  // ---- verdict on the entry, and on the MR of a window ------------------------------------------------
  logic is_bind, inv_key_ok, inv_ok, win_ok, mr_ok, unbound, unbound_q;
  mr_idx_t mr_idx;
  assign is_bind = op_q == DoChange && chg_q.op == MrBind;
  assign inv_key_ok = ent_q.mr.valid && ent_q.mr.variant == chg_q.key[7:0] && ent_q.mr.pd == chg_q.pd &&
                      (!ent_q.mr.mw || ent_q.mr.qpn == chg_q.qpn) &&
                      (chg_q.op == MrInvalidate || ent_q.mr.mw || ent_q.mr.remote_inv);
  assign inv_ok = inv_key_ok && (ent_q.mr.mw || ent_q.bound == '0);
  assign win_ok = ent_q.mr.exists && ent_q.mr.mw && !ent_q.mr.valid && ent_q.mr.pd == chg_q.pd;
  assign mr_ok = par_ok_q && bind_ok(par_q.mr, chg_q);
  assign mr_idx = is_bind ? mr_key_idx(chg_q.lkey) : ent_q.mr.parent;
  // a bound window becomes free, or goes away
  always_comb begin
    unbound = ent_q.mr.mw && ent_q.mr.valid;
    unique case (op_q)
      DoRead: unbound = 1'b0;
      DoWrite: if (wr_q.exists) unbound = 1'b0;
      DoPurge: if (ent_q.mr.qpn != qpn_q) unbound = 1'b0;
      default: if (is_bind || !inv_ok) unbound = 1'b0;
    endcase
  end

  // ---- windows bound to a QP: how many, up to 255, which stands for any number from there on ----------------
  logic [7:0] windows, windows_d, left_q;   // left: of the QP of a purge
  logic windows_we, purge_on, purge_done;
  assign purge_on = op_q == DoPurge && left_q != '0 && idx_q != top_q;
  assign purge_done = state_q == StEnd && op_q == DoPurge && !purge_on;
  assign windows_we = state_q == StMrVerdict && (unbound_q || mr_ok);
  assign windows_d = windows == '1 ? windows : unbound_q ? windows - 1'b1 : windows + 1'b1;
  qpn_t windows_qpn;
  assign windows_qpn = state_q == StIdle ? cmd_qpn_i : is_bind ? chg_q.qpn : purge_done ? qpn_q : ent_q.mr.qpn;
  zero_ram #(.Width(8), .Depth(1 << NumW), .Banks(Banks)) u_windows (
    .clk_i, .rst_ni, .ready_o(swept), .we_i(windows_we || purge_done), .waddr_i(windows_qpn[NumW-1:0]), .wdata_i(purge_done ? '0 : windows_d),
    .re_i(cmd_take || state_q == StAskMr), .raddr_i(windows_qpn[NumW-1:0]), .rdata_o(windows)
  );

  // ---- asks the cache -------------------------------------------------------------------------------------
  mr_ctx_t ent_d, par_d;
  // a purge fetches ahead
  assign pf_valid = pf_valid_i || (op_q == DoPurge && state_q == StVerdict);
  assign pf_idx = pf_valid_i ? pf_idx_i : idx_q + mr_idx_t'(6);
  assign own_valid = state_q == StAsk || state_q == StAskMr;
  assign own_idx = state_q == StAsk ? idx_q : mr_idx;
  assign own_pin = state_q == StAskMr;
  assign own_we = state_q == StWriteMr || state_q == StWrite;
  assign own_we_pin = state_q == StWriteMr;
  assign own_entry = state_q == StWriteMr ? par_d : ent_d;
  assign own_release = state_q == StEnd;

  always_comb begin
    par_d = par_q;
    par_d.bound = unbound_q ? par_q.bound - 1'b1 : par_q.bound + 1'b1;
    ent_d = ent_q;
    ent_d.mr.valid = 1'b0;
    if (op_q == DoWrite) begin
      ent_d.bound = '0;
      ent_d.mr = wr_q;
    end else if (is_bind) begin
      ent_d.mr = '0;
      ent_d.mr.exists = 1'b1;
      ent_d.mr.valid = 1'b1;
      ent_d.mr.mw = 1'b1;
      ent_d.mr.variant = chg_q.key[7:0];
      ent_d.mr.pd = chg_q.pd;
      ent_d.mr.remote_write = chg_q.remote_write;
      ent_d.mr.remote_read = chg_q.remote_read;
      ent_d.mr.remote_atomic = chg_q.remote_atomic;
      ent_d.mr.qpn = chg_q.qpn;
      ent_d.mr.parent = mr_key_idx(chg_q.lkey);
      ent_d.mr.va = chg_q.zero_based ? 64'd0 : chg_q.addr;
      ent_d.mr.length = 64'(chg_q.length);
      ent_d.mr.iova = par_q.mr.iova + (chg_q.addr - par_q.mr.va);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      op_q <= DoRead;
      cmd_rsp_valid_o <= 1'b0;
      chg_rsp_valid_o <= '0;
      top_q <= '0;
    end else begin
      cmd_rsp_valid_o <= 1'b0;
      chg_rsp_valid_o <= '0;
      unique case (state_q)
        StIdle: begin
          if (cmd_take) begin
            op_q <= cmd_op_i == MrCmdRead ? DoRead : cmd_op_i == MrCmdWrite ? DoWrite : DoPurge;
            state_q <= cmd_op_i == MrCmdPurge ? StPurge : StAsk;
            if (cmd_op_i == MrCmdWrite && cmd_idx_i > top_q) top_q <= cmd_idx_i;
          end else if (take) begin
            op_q <= DoChange;
            state_q <= StAsk;
          end
        end
        StPurge: begin
          state_q <= windows != '0 ? StAsk : StIdle;
          cmd_rsp_valid_o <= windows == '0;
        end
        StAsk: if (own_ready) state_q <= StEntry;
        StEntry: if (own_done) state_q <= StVerdict;
        StVerdict: begin
          if (!ent_ok_q || op_q == DoRead) state_q <= StEnd;
          else if (unbound || (is_bind && win_ok)) state_q <= StAskMr;
          else if (op_q == DoWrite || (op_q == DoChange && !is_bind && inv_ok)) state_q <= StWrite;
          else state_q <= StEnd;
        end
        StAskMr: if (own_ready) state_q <= StMr;
        StMr: if (own_done) state_q <= StMrVerdict;
        // an MR that host memory does not give any more cannot be counted down
        StMrVerdict: begin
          if (unbound_q) state_q <= par_ok_q ? StWriteMr : StWrite;
          else state_q <= mr_ok ? StWriteMr : StEnd;
        end
        StWriteMr: if (own_we_ready) state_q <= StWrite;
        StWrite: if (own_we_ready) state_q <= StEnd;
        default: begin  // StEnd
          if (op_q == DoChange) chg_rsp_valid_o[sel_q] <= 1'b1;
          else if (!purge_on) cmd_rsp_valid_o <= 1'b1;
          state_q <= purge_on ? StAsk : StIdle;
        end
      endcase
    end
    if (state_q == StPurge) left_q <= windows;
    else if (windows_we) left_q <= windows_d;
    if (state_q == StIdle) begin
      idx_q <= !cmd_take ? mr_key_idx(chg_i[sel].key) : cmd_op_i == MrCmdPurge ? '0 : cmd_idx_i;
      wr_q <= cmd_mr_i;
      qpn_q <= cmd_qpn_i;
    end else if (state_q == StEnd) begin
      idx_q <= idx_q + 1'b1;
    end
    if (take) begin
      chg_q <= chg_i[sel];
      sel_q <= sel;
    end
    if (state_q == StEntry && own_done) begin
      ent_q <= rsp;
      ent_ok_q <= own_ok;
    end
    if (state_q == StMr && own_done) begin
      par_q <= rsp;
      par_ok_q <= own_ok;
    end
    if (state_q == StVerdict) begin
      unbound_q <= unbound;
      if (is_bind) chg_rsp_o <= MrNotBound;
      else chg_rsp_o <= !ent_ok_q || !inv_key_ok ? MrBadKey : inv_ok ? MrDone : MrNotBound;
    end
    if (state_q == StMrVerdict && is_bind && mr_ok) chg_rsp_o <= MrDone;
    if (state_q == StVerdict && op_q inside {DoRead, DoWrite}) begin
      cmd_rsp_o <= ent_q.mr;
      cmd_rsp_bound_o <= ent_q.bound != '0;
      cmd_rsp_err_o <= !ent_ok_q;
    end
  end
  assign idle_o = state_q == StIdle && swept && !chg_any && !cmd_valid_i && chg_rsp_valid_o == '0 && cache_idle;

endmodule
