// SPDX-License-Identifier: Apache-2.0
//
// qp_cache, for any one QP (watch_q) and any one slot (slot_q) beside others that do as they like: a pin is given only on the slot of
// the QP, with the halves asked for in place; a slot with a pin, or one that said busy, is never taken away; what was used is
// saved; nothing is fetched while it is being written; a QP has one slot at most; QPs that exist are found, others are not.

module qp_cache_proof
  import rnic_pkg::*;
#(
  parameter int unsigned QpnW = 3,
  parameter int unsigned LogSets = 1,
  parameter int unsigned LogWays = 1,
  parameter int unsigned LogMoves = 1,
  localparam int unsigned P = 2,
  localparam int unsigned SlotW = LogSets + LogWays,
  localparam int unsigned NumMoves = 1 << LogMoves
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic [P-1:0]        req_valid_i,
  input logic [P-1:0][QpnW-1:0] req_qpn_i,
  input logic                req_create_i,
  input logic [P-1:0]        rel_valid_i,
  input logic                rel_forget_i,
  input logic                pf_valid_i,
  input logic [QpnW-1:0]     pf_qpn_i,
  input logic                probe_busy_i,
  input logic                probe_dirty_i,
  input logic [(1<<SlotW)-1:0] dear_i,
  input logic                mv_ready_i,
  input logic                fd_valid_i,
  input logic                fd_err_i,
  input logic                sd_valid_i,
  input logic                sd_err_i,
  input logic                bad_ready_i,
  input logic [QpnW-1:0]     watch_i,
  input logic [SlotW-1:0]    slot_i
);

  logic [P-1:0] req_ready, rsp_valid;
  qpc_status_e [P-1:0] rsp_status;
  logic [P-1:0][SlotW-1:0] rsp_slot;
  logic probe_valid, mv_valid, mv_common, mv_zero, fd_ready, sd_ready, bad_valid, idle, closed;
  logic [SlotW-1:0] probe_slot, mv_slot;
  logic [2:0] mv_save;
  logic [1:0] mv_fill;
  logic [QpnW-1:0] mv_save_qpn, mv_fill_qpn, bad_qpn;
  ctx_ev_t ev;
  logic [P-1:0][23:0] req_qpn;
  always_comb for (int p = 0; p < int'(P); p++) req_qpn[p] = 24'(req_qpn_i[p]);

  qp_cache #(.QpnW(QpnW), .LogSets(LogSets), .LogWays(LogWays), .NumPorts(P), .NumHold(1), .LogMoves(LogMoves)) dut (
    .clk_i, .rst_ni, .mem_on_i(1'b1), .mem_log_num_i(5'(QpnW)),
    .req_valid_i, .req_ready_o(req_ready), .req_qpn_i(req_qpn), .req_need_i('1), .req_create_i,
    .rsp_valid_o(rsp_valid), .rsp_status_o(rsp_status), .rsp_slot_o(rsp_slot), .rel_valid_i, .rel_forget_i,
    .pf_valid_i, .pf_qpn_i(24'(pf_qpn_i)), .pf_need_i(2'b11),
    .probe_valid_o(probe_valid), .probe_slot_o(probe_slot), .probe_busy_i, .probe_dirty_i, .dear_i,
    .mv_valid_o(mv_valid), .mv_ready_i, .mv_slot_o(mv_slot), .mv_save_o(mv_save), .mv_save_qpn_o(mv_save_qpn), .mv_fill_o(mv_fill),
    .mv_common_o(mv_common), .mv_zero_o(mv_zero), .mv_fill_qpn_o(mv_fill_qpn),
    .fd_valid_i, .fd_ready_o(fd_ready), .fd_err_i, .sd_valid_i, .sd_ready_o(sd_ready), .sd_err_i,
    .bad_valid_o(bad_valid), .bad_ready_i, .bad_qpn_o(bad_qpn), .closed_o(closed), .ev_o(ev), .idle_o(idle));

  stream_check #(.Width(2 * QpnW + SlotW + 7)) u_move (
    .clk_i, .rst_ni, .valid_i(mv_valid), .ready_i(mv_ready_i),
    .data_i({mv_slot, mv_save, mv_save_qpn, mv_fill, mv_common, mv_zero, mv_fill_qpn}));

  logic first_q = 1'b1;
  logic [QpnW-1:0] watch_q;
  logic [SlotW-1:0] slot_q;

  // ---- the mover: moves that fill, and those that save, in order; told in the cycle in which they are first offered ----
  logic mv_new, mv_open_q, fd, sd;
  typedef struct packed {
    logic             mine, zero, watch;   // to slot_q; of watch_q
    logic [1:0]       halves;
  } fill_t;
  fill_t fills_q[NumMoves], fill;
  logic  saves_q[NumMoves];          // of watch_q
  logic [LogMoves:0] fh_q, ft_q, sh_q, st_q;
  assign mv_new = mv_valid && !mv_open_q;
  assign fd = fd_valid_i && fd_ready;
  assign sd = sd_valid_i && sd_ready;
  assign fill = fills_q[fh_q[LogMoves-1:0]];

  // ---- slot_q ----
  logic             own_q, clean_q;        // it is that of watch_q; the load under way or done is not of a QP that was forgotten
  logic [1:0]       here_q, used_q, coming_q;
  logic             asked_q, asked_qq, said_q, dirty_q, any_q;  // any: it is that of some QP
  // ---- watch_q ----
  logic             exists_q, writing_q;
  // ---- ports ----
  logic [P-1:0]     wait_q, pin_q, watch_p_q, there_q, away_q, refuse_q;   // there, away: it existed, or not, all the time
  logic             create_q, forget_q, zero_q;   // zero: a QP was made since port 0 asked
  logic [P-1:0]     pin_mine;              // pin on slot_q
  always_comb for (int p = 0; p < int'(P); p++) pin_mine[p] = pin_q[p] && rsp_slot[p] == slot_q;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    slot_q <= slot_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end else begin
      chosen_once: assume (watch_i == watch_q && slot_i == slot_q);
      reset_once: assume (rst_ni);
    end
    // ports
    pin_first: assume ((rel_valid_i & ~pin_q) == '0);
    forgets_once: assume (!forget_q || !rel_valid_i[0]);
    fills_open: assume (!fd_valid_i || fh_q != ft_q);
    saves_open: assume (!sd_valid_i || sh_q != st_q);
    zero_is_there: assume (!(fd_valid_i && fill.zero && fd_err_i));
    if (!rst_ni) begin
      mv_open_q <= 1'b0;
      fh_q <= '0;
      ft_q <= '0;
      sh_q <= '0;
      st_q <= '0;
      // the sweep leaves QP {way, set} in every slot, unchanged since it came
      own_q <= watch_i == {{(QpnW-SlotW){1'b0}}, slot_i[LogWays-1:0], slot_i[SlotW-1:LogWays]};
      any_q <= 1'b1;
      here_q <= 2'b11;
      used_q <= '0;
      coming_q <= '0;
      asked_q <= 1'b0;
      asked_qq <= 1'b0;
      exists_q <= watch_i < QpnW'(1 << SlotW);
      writing_q <= 1'b0;
      wait_q <= '0;
      pin_q <= '0;
      create_q <= 1'b0;
      forget_q <= 1'b0;
    end else begin
      mv_open_q <= mv_valid && !mv_ready_i;
      asked_q <= probe_valid && probe_slot == slot_q;
      asked_qq <= asked_q;
      said_q <= probe_busy_i;
      dirty_q <= probe_dirty_i;

      if (probe_valid && probe_slot == slot_q) begin
        asks_free_slots: assert (pin_mine == '0 && coming_q == '0);
      end
      if (mv_new) begin
        ft_q <= ft_q + 1'b1;
        fills_q[ft_q[LogMoves-1:0]] <= '{mine: mv_slot == slot_q, zero: mv_zero, watch: mv_fill_qpn == watch_q, halves: mv_fill};
        ring_has_room: assert ((LogMoves+1)'(ft_q - fh_q) != (LogMoves+1)'(NumMoves));
        whole: assert (mv_fill == 2'b11 && mv_common);
        if (mv_save != '0) begin
          st_q <= st_q + 1'b1;
          saves_q[st_q[LogMoves-1:0]] <= mv_save_qpn == watch_q;
          save_ring_has_room: assert ((LogMoves+1)'(st_q - sh_q) != (LogMoves+1)'(NumMoves));
        end
        if (mv_fill_qpn == watch_q) begin
          not_while_written: assert (!writing_q);
          fetch_what_exists: assert (mv_zero ? !exists_q : exists_q);
          // of the same QP in this slot, or in no slot
          one_slot: assert (mv_slot == slot_q || !own_q);
        end
        if (mv_slot == slot_q) begin
          set_of_qpn: assert (mv_fill_qpn[LogSets-1:0] == slot_q[SlotW-1:LogWays]);
          if (mv_common) begin
            nobody_in_it: assert (pin_mine == '0);
            was_asked: assert (asked_qq && !said_q);
            nothing_coming: assert (coming_q == '0);
            saves_used: assert (mv_save[1:0] == used_q);
            saves_common: assert (mv_save[2] == (dirty_q && any_q));
            saves_as_owner: assert (mv_save == '0 || (mv_save_qpn == watch_q) == own_q);
            own_q <= mv_fill_qpn == watch_q;
            any_q <= 1'b1;
            here_q <= '0;
            used_q <= '0;
            coming_q <= mv_fill;
          end
        end
        if (mv_zero) zero_q <= 1'b1;
        if (mv_zero && mv_fill_qpn == watch_q) exists_q <= 1'b1;
        if (mv_save != '0 && mv_save_qpn == watch_q) writing_q <= 1'b1;
      end
      if (fd) begin
        fh_q <= fh_q + 1'b1;
        if (fill.mine) begin
          coming_q <= coming_q & ~fill.halves;
          if (!fd_err_i) here_q <= here_q | fill.halves;
          else if (here_q == '0) begin
            own_q <= 1'b0;
            any_q <= 1'b0;
          end
        end
      end
      if (sd) begin
        sh_q <= sh_q + 1'b1;
        if (saves_q[sh_q[LogMoves-1:0]]) begin
          writing_q <= 1'b0;
          if (sd_err_i) exists_q <= 1'b0;
        end
      end

      for (int p = 0; p < int'(P); p++) begin
        if (!exists_q) there_q[p] <= 1'b0;
        else away_q[p] <= 1'b0;
        if (fd && fill.watch && fd_err_i) refuse_q[p] <= 1'b1;
        if (rsp_valid[p]) begin
          wait_q[p] <= 1'b0;
          if (rsp_status[p] == QpcOk) begin
            pin_q[p] <= 1'b1;
            if (rsp_slot[p] == slot_q) begin
              used_q <= 2'b11;
            end
          end
        end
        if (req_valid_i[p] && req_ready[p]) begin
          wait_q[p] <= 1'b1;
          watch_p_q[p] <= req_qpn_i[p] == watch_q;
          there_q[p] <= 1'b1;
          away_q[p] <= 1'b1;
          refuse_q[p] <= 1'b0;
          if (p == 0) begin
            create_q <= req_create_i;
            zero_q <= 1'b0;
          end
        end
        if (rel_valid_i[p] && !(p == 0 && rel_forget_i)) pin_q[p] <= 1'b0;
      end
      if (rel_valid_i[0] && rel_forget_i) forget_q <= 1'b1;
      // a QP ends when the design takes note of it, with no other answer in the same cycle
      if (forget_q && dut.do_forget) begin
        forget_q <= 1'b0;
        pin_q[0] <= 1'b0;
        if (watch_p_q[0]) exists_q <= 1'b0;
        if (rsp_slot[0] == slot_q) begin
          own_q <= 1'b0;
          any_q <= 1'b0;
          here_q <= '0;
          used_q <= '0;
        end
      end
      none: cover (rsp_valid[1] && rsp_status[1] == QpcNone && watch_p_q[1]);
      refused: cover (rsp_valid[1] && rsp_status[1] == QpcRefused);
      evicted: cover (mv_new && mv_slot == slot_q && mv_save == 3'b011 && mv_common);
      back_again: cover (rsp_valid[1] && rsp_status[1] == QpcOk && watch_p_q[1] && own_q && writing_q == 1'b0 && st_q != '0 && sh_q == st_q);
      lost: cover (sd && sd_err_i && saves_q[sh_q[LogMoves-1:0]]);
    end
  end

  for (genvar p = 0; p < int'(P); p++) begin : gen_port
    always_ff @(posedge clk_i) begin
      if (rst_ni && rsp_valid[p]) begin
        asked_for: assert (wait_q[p]);
        if (rsp_status[p] == QpcOk) begin
          if (rsp_slot[p] == slot_q) begin
            right_slot: assert (own_q == watch_p_q[p] && any_q);
            in_place: assert (here_q == 2'b11);
          end else if (watch_p_q[p]) begin
            no_other_slot: assert (!own_q);
          end
        end
        if (watch_p_q[p]) begin
          none_is_right: assert (rsp_status[p] != QpcNone || !there_q[p] || !exists_q);
          found_is_right: assert (!(rsp_status[p] inside {QpcOk, QpcExists}) || !away_q[p] || exists_q);
          refused_is_right: assert (rsp_status[p] != QpcRefused || refuse_q[p]);
          made: assert (!(p == 0 && create_q) || rsp_status[p] inside {QpcOk, QpcExists});
          made_anew: assert (rsp_status[p] != QpcOk || p != 0 || create_q == zero_q);
          made_once: assert (rsp_status[p] != QpcExists || (p == 0 && create_q));
        end
      end
      if (rst_ni && req_valid_i[p] && req_ready[p]) begin
        one_at_a_time: assert ((!wait_q[p] || rsp_valid[p]) && !pin_q[p]);
      end
    end
  end

endmodule
