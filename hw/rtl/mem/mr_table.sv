// SPDX-License-Identifier: Apache-2.0
//
// Memory regions and memory windows, on chip: key variant, PD, rights, address range. Indexed by bits 31:8 of a key.
// The one place where entries change: every change is checked and made in one go.
//
// Read ports: one request per cycle per port, answer one cycle later, never refused. The check itself is
// rnic_pkg::mr_check (IBTA 10.6.3, 9.7.4.1.4).
// Command port: while cmd_ready_o, one operation per cycle, answer one cycle later. Read; Write stores an entry
// (cmd_mr_i.exists = 0 takes it away); Purge takes the windows of a QP away from it and is answered when that is done
// (a few cycles without windows, else NumMr). cmd_lock_i keeps changes out between a read and the write
// that follows from it.
// Changes (mr_change_t), by QPs: one after the other, answered 2 cycles (a bind 3) after they were taken.
//   invalidate  a valid entry of the PD with this key, by its QP if it is a window, not an MR that windows are bound to;
//               by a peer (SEND with invalidate, IBTA 9.4.1.1.3) only windows and MRs that allow it. The entry
//               stays, as a free one.
//   bind        a free window of the PD gets a new key, a range of an MR and rights (type 2B, IBTA 10.6.7.2):
//               the MR is valid, of the PD, allows binding, has local write if the window gives remote write or
//               atomic, and covers the range, which is not empty. A zero-based window begins at address 0.
// The windows bound to an MR are counted; the command processor does not destroy an MR before its windows.
// After reset there are no entries.

module mr_table
  import rnic_pkg::*;
#(
  parameter int unsigned NumPorts = 2,
  parameter int unsigned NumChg = 2
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  // read ports
  input  logic       [NumPorts-1:0] req_valid_i,
  output logic       [NumPorts-1:0] req_ready_o,
  input  mr_idx_t    [NumPorts-1:0] req_idx_i,
  output logic       [NumPorts-1:0] rsp_valid_o,
  output mr_t                       rsp_o[NumPorts],
  // command port
  input  logic                      cmd_valid_i,
  output logic                      cmd_ready_o,
  input  logic                      cmd_lock_i,
  input  mr_cmd_e                   cmd_op_i,
  input  mr_idx_t                   cmd_idx_i,
  input  mr_t                       cmd_mr_i,
  input  qp_idx_t                   cmd_qp_i,       // Purge
  output logic                      cmd_rsp_valid_o,
  output mr_t                       cmd_rsp_o,      // stays until the next command
  output logic                      cmd_rsp_bound_o, // windows are bound to this MR
  // changes by QPs; the answer is for the one taken last
  input  logic       [NumChg-1:0]   chg_valid_i,
  output logic       [NumChg-1:0]   chg_ready_o,
  input  mr_change_t [NumChg-1:0]   chg_i,
  output logic       [NumChg-1:0]   chg_rsp_valid_o,
  output mr_result_e                chg_rsp_o,
  output logic                      idle_o
);

  localparam int unsigned AttrW = $bits(mr_t) - 2;  // without exists and valid, which come first
  localparam int unsigned GrpW = 32;
  localparam int unsigned NumGrp = NumMr / GrpW;
  localparam int unsigned GrpIdxW = $clog2(NumGrp);
  localparam int unsigned ChgW = NumChg > 1 ? $clog2(NumChg) : 1;
  localparam int unsigned CntW = MrIdxW + 1;

  logic [GrpW-1:0] exists_q[NumGrp];
  logic [GrpW-1:0] valid_q[NumGrp];

  // Functions look at part of their arguments.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [GrpIdxW-1:0] grp(input mr_idx_t idx);
    return idx[MrIdxW-1-:GrpIdxW];
  endfunction
  function automatic logic [4:0] bit_of(input mr_idx_t idx);
    return idx[4:0];
  endfunction
  // an address is never beyond the end of an MR, whose range does not wrap
  function automatic logic bind_ok(input mr_t mr, input mr_change_t c);
    return mr.valid && !mr.mw && mr.variant == c.lkey[7:0] && (c.lkey >> (MrIdxW + 8)) == 0 &&
           mr.pd == c.pd && mr.mw_bind &&
           (mr.local_write || !(c.remote_write || c.remote_atomic)) && c.length != 0 &&
           c.addr >= mr.va && c.addr - mr.va < mr.length &&
           64'(c.length) <= mr.length - (c.addr - mr.va);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- machine ------------------------------------------------------------------------------------
  typedef enum logic [1:0] {ChgIdle, ChgEntry, ChgParent, ChgPurge} state_e;
  state_e state_q;
  mr_change_t chg_q;
  logic [ChgW-1:0] sel, sel_q;
  logic chg_any, take, re;
  mr_idx_t raddr, idx_q;
  mr_t ent;                        // the entry read
  logic [AttrW-1:0] ent_attr_q;
  logic ent_exists_q, ent_valid_q;
  qp_idx_t purge_qp_q;
  logic purge_end_q;
  logic [NumQp-1:0] windows_q;     // a window was bound to this QP

  always_comb begin
    chg_any = |chg_valid_i;
    sel = '0;
    for (int i = int'(NumChg) - 1; i >= 0; i--) if (chg_valid_i[i]) sel = ChgW'(i);
  end
  assign cmd_ready_o = state_q == ChgIdle;
  assign take = state_q == ChgIdle && !cmd_valid_i && !cmd_lock_i && chg_any;
  always_comb begin
    chg_ready_o = '0;
    chg_ready_o[sel] = take;
  end
  assign idle_o = state_q == ChgIdle && !chg_any && chg_rsp_valid_o == '0;

  // ---- windows bound to an MR -----------------------------------------------------------------------
  logic [CntW-1:0] cnt_mem[NumMr];
  logic [CntW-1:0] cnt;
  mr_idx_t cnt_idx;
  logic cnt_clear, cnt_up, cnt_down;
  assign cnt = cnt_mem[cnt_idx];
  always_ff @(posedge clk_i) begin
    if (cnt_clear) cnt_mem[cnt_idx] <= '0;
    else if (cnt_up || cnt_down) cnt_mem[cnt_idx] <= cnt_up ? cnt + 1'b1 : cnt - 1'b1;
  end

  // ---- verdict -----------------------------------------------------------------------------------------
  logic cmd_take, cmd_we, inv_ok, inv_key_ok, win_ok, par_ok, purge_hit, invalidate, bind_now;
  mr_result_e result;
  logic finish;
  assign ent = {ent_exists_q, ent_valid_q, ent_attr_q};
  assign cmd_take = cmd_valid_i && cmd_ready_o;
  assign cmd_we = cmd_take && cmd_op_i == MrCmdWrite;
  assign inv_key_ok = ent.valid && ent.variant == chg_q.key[7:0] &&
                      (chg_q.key >> (MrIdxW + 8)) == 0 && ent.pd == chg_q.pd &&
                      (!ent.mw || ent.qp == chg_q.qp) &&
                      (chg_q.op == MrInvalidate || ent.mw || ent.remote_inv);
  assign inv_ok = inv_key_ok && (ent.mw || cnt == '0);
  assign win_ok = ent.exists && ent.mw && !ent.valid && ent.pd == chg_q.pd &&
                  (chg_q.key >> (MrIdxW + 8)) == 0;
  assign par_ok = bind_ok(ent, chg_q);
  assign purge_hit = state_q == ChgPurge && ent.valid && ent.mw && ent.qp == purge_qp_q;
  assign invalidate = (state_q == ChgEntry && chg_q.op != MrBind && inv_ok) || purge_hit;
  assign bind_now = state_q == ChgParent && par_ok;
  assign finish = (state_q == ChgEntry && (chg_q.op != MrBind || !win_ok)) || state_q == ChgParent;
  always_comb begin
    if (state_q == ChgParent) result = par_ok ? MrDone : MrNotBound;
    else if (chg_q.op == MrBind) result = MrNotBound;
    else result = inv_ok ? MrDone : inv_key_ok ? MrNotBound : MrBadKey;
  end

  // count: of the entry itself (MR), or of the MR of a window
  always_comb begin
    cnt_idx = idx_q;
    if (state_q == ChgIdle) begin
      cnt_idx = cmd_we && !cmd_mr_i.exists && cmd_rsp_o.mw ? cmd_rsp_o.parent : cmd_idx_i;
    end
    else if (ent.mw && state_q != ChgParent) cnt_idx = ent.parent;
  end
  assign cnt_clear = cmd_we && cmd_mr_i.exists;
  assign cnt_up = bind_now;
  // a window destroyed: what was read before, under cmd_lock_i
  assign cnt_down = (invalidate && ent.mw) ||
                    (cmd_we && !cmd_mr_i.exists && cmd_rsp_o.mw && cmd_rsp_o.valid);

  // ---- memory --------------------------------------------------------------------------------------------
  logic we;
  mr_idx_t waddr, win_idx;
  // verilator lint_off UNUSEDSIGNAL
  mr_t wdata;                      // exists and valid have their own flops
  // verilator lint_on UNUSEDSIGNAL
  assign win_idx = mr_key_idx(chg_q.key);
  assign we = cmd_we || bind_now;
  assign waddr = bind_now ? win_idx : cmd_idx_i;
  always_comb begin
    wdata = cmd_mr_i;
    if (bind_now) begin
      wdata = '0;
      wdata.mw = 1'b1;
      wdata.variant = chg_q.key[7:0];
      wdata.pd = chg_q.pd;
      wdata.remote_write = chg_q.remote_write;
      wdata.remote_read = chg_q.remote_read;
      wdata.remote_atomic = chg_q.remote_atomic;
      wdata.qp = chg_q.qp;
      wdata.parent = idx_q;
      wdata.va = chg_q.zero_based ? 64'd0 : chg_q.addr;
      wdata.length = 64'(chg_q.length);
      wdata.iova = ent.iova + (chg_q.addr - ent.va);
    end
  end
  // a purge reads one entry ahead
  assign re = take || state_q != ChgIdle || cmd_take;
  always_comb begin
    unique case (state_q)
      ChgIdle: raddr = cmd_take ? '0 : mr_key_idx(chg_i[sel].key);
      ChgEntry: raddr = mr_key_idx(chg_q.lkey);
      default: raddr = idx_q + 1'b1;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < int'(NumGrp); i++) begin
        exists_q[i] <= '0;
        valid_q[i] <= '0;
      end
    end else if (cmd_we) begin
      exists_q[grp(cmd_idx_i)][bit_of(cmd_idx_i)] <= cmd_mr_i.exists;
      valid_q[grp(cmd_idx_i)][bit_of(cmd_idx_i)] <= cmd_mr_i.valid;
    end else if (bind_now) begin
      valid_q[grp(win_idx)][bit_of(win_idx)] <= 1'b1;
    end else if (invalidate) begin
      valid_q[grp(idx_q)][bit_of(idx_q)] <= 1'b0;
    end
  end

  assign req_ready_o = '1;
  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    logic [AttrW-1:0] attr_mem[NumMr];
    mr_t rsp_q;
    always_ff @(posedge clk_i) begin
      if (we) attr_mem[waddr] <= wdata[AttrW-1:0];
      if (req_valid_i[p]) begin
        rsp_q <= {exists_q[grp(req_idx_i[p])][bit_of(req_idx_i[p])],
                  valid_q[grp(req_idx_i[p])][bit_of(req_idx_i[p])], attr_mem[req_idx_i[p]]};
      end
    end
    assign rsp_o[p] = rsp_q;
  end

  logic [AttrW-1:0] chg_mem[NumMr];
  logic [AttrW-1:0] cmd_mem[NumMr];
  always_ff @(posedge clk_i) begin
    if (we) chg_mem[waddr] <= wdata[AttrW-1:0];
    if (we) cmd_mem[waddr] <= wdata[AttrW-1:0];
    if (re) begin
      ent_attr_q <= chg_mem[raddr];
      ent_exists_q <= exists_q[grp(raddr)][bit_of(raddr)];
      ent_valid_q <= valid_q[grp(raddr)][bit_of(raddr)];
      idx_q <= raddr;
    end
    if (cmd_take && cmd_op_i == MrCmdRead) begin
      cmd_rsp_o <= {exists_q[grp(cmd_idx_i)][bit_of(cmd_idx_i)],
                    valid_q[grp(cmd_idx_i)][bit_of(cmd_idx_i)], cmd_mem[cmd_idx_i]};
      cmd_rsp_bound_o <= cnt != '0;
    end
    if (take) begin
      chg_q <= chg_i[sel];
      sel_q <= sel;
    end
    if (cmd_take) purge_qp_q <= cmd_qp_i;
    chg_rsp_o <= result;
    if (!rst_ni) begin
      state_q <= ChgIdle;
      rsp_valid_o <= '0;
      cmd_rsp_valid_o <= 1'b0;
      chg_rsp_valid_o <= '0;
      windows_q <= '0;
      purge_end_q <= 1'b0;
    end else begin
      rsp_valid_o <= req_valid_i;
      cmd_rsp_valid_o <= 1'b0;
      chg_rsp_valid_o <= '0;
      purge_end_q <= 1'b0;
      if (finish) chg_rsp_valid_o[sel_q] <= 1'b1;
      if (bind_now) windows_q[chg_q.qp] <= 1'b1;
      unique case (state_q)
        ChgIdle: begin
          if (cmd_take && cmd_op_i == MrCmdPurge && windows_q[cmd_qp_i]) begin
            windows_q[cmd_qp_i] <= 1'b0;
            state_q <= ChgPurge;
          end else if (cmd_take) begin
            cmd_rsp_valid_o <= 1'b1;
          end else if (take) begin
            state_q <= ChgEntry;
          end
        end
        ChgEntry: state_q <= chg_q.op == MrBind && win_ok ? ChgParent : ChgIdle;
        ChgParent: state_q <= ChgIdle;
        default: begin  // ChgPurge
          purge_end_q <= idx_q == '1;
          if (purge_end_q) begin
            cmd_rsp_valid_o <= 1'b1;
            state_q <= ChgIdle;
          end
        end
      endcase
    end
  end

endmodule
