// SPDX-License-Identifier: Apache-2.0
//
// qp_service, for any one QPN (watch_q) beside others that do as they like. Doorbells of the QP are handed out newer than the last one and not newer
// than the newest; when nothing waits the newest has been handed out. A timer, turn or CNP is handed out after it was taken, and not more often than it came.
// The QPN stands in the list once, leaves it in the order in which it came (other_q is any other one), and is at one worker at a time.
// Nothing is handed out without its slot, and of a QP that does not exist nothing. A copy of a WQE (in place 1, any doorbell) goes with its own
// doorbell, or is dropped, once. A drain is done when all that was taken before it is handed out, and stays so.
// Assumed: the cache answers a worker once per look-up; slot 1 is that of watch_q, slot 0 stands for all others.

module qp_service_proof
  import rnic_pkg::*;
#(
  parameter int unsigned NumW = 2,
  localparam int unsigned W = 2
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                sq_valid_i,
  input logic [NumW:0]       sq_qpn_i,
  input wqe_idx_t            sq_pi_i,
  input wqe_copy_t           sq_copy_i,
  input logic                rq_valid_i,
  input logic [NumW:0]       rq_qpn_i,
  input wqe_idx_t            rq_pi_i,
  input logic                tmr_valid_i,
  input logic [NumW-1:0]     tmr_qpn_i,
  input logic                turn_valid_i,
  input logic [NumW-1:0]     turn_qpn_i,
  input logic                cnp_valid_i,
  input logic [NumW-1:0]     cnp_qpn_i,
  input logic        [W-1:0] req_ready_i,
  input logic        [W-1:0] rsp_valid_i,
  input qpc_status_e [W-1:0] rsp_status_i,
  input qp_idx_t     [W-1:0] rsp_slot_i,
  input logic                hsq_ready_i,
  input logic                hrq_ready_i,
  input logic                htmr_ready_i,
  input logic                hturn_ready_i,
  input logic                hcnp_ready_i,
  input logic                drain_i,
  input logic [NumW-1:0]     watch_i,
  input logic [NumW-1:0]     other_i,
  input logic                exists_i
);

  logic sq_ready, rq_ready, tmr_ready, turn_ready, hsq_valid, hrq_valid, htmr_valid, hturn_valid, cnp_ready, hcnp_valid;
  logic list_busy, drain_done, idle, ready;
  wqe_idx_t hsq_pi, hrq_pi;
  qp_idx_t hsq_qp, hrq_qp, htmr_qp, hturn_qp, hcnp_qp;
  wqe_copy_t hsq_copy;
  copy_idx_t [2:0] drop_at;
  logic [2:0] drop_valid;
  logic [1:0] bad_db;
  logic [W-1:0] req_valid, rel_valid;
  logic [W-1:0][23:0] req_qpn;
  qp_service #(.NumW(NumW), .NumWork(W), .Banks(2)) dut (
    .clk_i, .rst_ni, .ready_o(ready),
    .sq_valid_i, .sq_ready_o(sq_ready), .sq_qpn_i(24'(sq_qpn_i)), .sq_pi_i, .sq_copy_i,
    .rq_valid_i, .rq_ready_o(rq_ready), .rq_qpn_i(24'(rq_qpn_i)), .rq_pi_i,
    .tmr_valid_i, .tmr_ready_o(tmr_ready), .tmr_qpn_i, .turn_valid_i, .turn_ready_o(turn_ready), .turn_qpn_i,
    .req_valid_o(req_valid), .req_ready_i, .req_qpn_o(req_qpn), .rsp_valid_i, .rsp_status_i, .rsp_slot_i, .rel_valid_o(rel_valid),
    .hsq_valid_o(hsq_valid), .hsq_ready_i, .hsq_qp_o(hsq_qp), .hsq_pi_o(hsq_pi), .hsq_copy_o(hsq_copy),
    .hrq_valid_o(hrq_valid), .hrq_ready_i, .hrq_qp_o(hrq_qp), .hrq_pi_o(hrq_pi),
    .htmr_valid_o(htmr_valid), .htmr_ready_i, .htmr_qp_o(htmr_qp), .hturn_valid_o(hturn_valid), .hturn_ready_i, .hturn_qp_o(hturn_qp),
    .cnp_valid_i, .cnp_ready_o(cnp_ready), .cnp_qpn_i, .hcnp_valid_o(hcnp_valid), .hcnp_ready_i, .hcnp_qp_o(hcnp_qp),
    .drop_valid_o(drop_valid), .drop_at_o(drop_at), .list_busy_o(list_busy), .drain_i, .drain_done_o(drain_done),
    .ev_bad_db_o(bad_db), .idle_o(idle));

  // a hand-out stays, of the same QP
  stream_check #(.Width(QpIdxW)) u_sq (.clk_i, .rst_ni, .valid_i(hsq_valid), .ready_i(hsq_ready_i), .data_i(hsq_qp));
  stream_check #(.Width(QpIdxW)) u_rq (.clk_i, .rst_ni, .valid_i(hrq_valid), .ready_i(hrq_ready_i), .data_i(hrq_qp));
  stream_check #(.Width(QpIdxW)) u_tmr (.clk_i, .rst_ni, .valid_i(htmr_valid), .ready_i(htmr_ready_i), .data_i(htmr_qp));
  stream_check #(.Width(QpIdxW)) u_turn (.clk_i, .rst_ni, .valid_i(hturn_valid), .ready_i(hturn_ready_i), .data_i(hturn_qp));
  stream_check #(.Width(QpIdxW)) u_cnp (.clk_i, .rst_ni, .valid_i(hcnp_valid), .ready_i(hcnp_ready_i), .data_i(hcnp_qp));

  logic first_q = 1'b1;
  logic [NumW-1:0] watch_q, other_q; // chosen at the start
  logic exists_q;                    // watch_q has a context, and memory gives it

  // ---- what comes and goes: SQ and RQ doorbells are numbered by their index, timers, turns and CNPs are counted ----
  logic [4:0] in, out, open_q;       // open: SQ, RQ: not used; taken and not handed out since
  wqe_idx_t [1:0] newest_q, told_q, drain_to_q;
  logic [4:0][2:0] count_q;
  logic [4:0] drain_open_q;
  logic drain_q, drained_q, mine;
  assign in[0] = sq_valid_i && sq_ready && sq_qpn_i == {1'b0, watch_q};
  assign in[1] = rq_valid_i && rq_ready && rq_qpn_i == {1'b0, watch_q};
  assign in[2] = tmr_valid_i && tmr_ready && tmr_qpn_i == watch_q;
  assign in[3] = turn_valid_i && turn_ready && turn_qpn_i == watch_q;
  assign in[4] = cnp_valid_i && cnp_ready && cnp_qpn_i == watch_q;
  assign out[0] = hsq_valid && hsq_ready_i && hsq_qp == 1'b1;
  assign out[1] = hrq_valid && hrq_ready_i && hrq_qp == 1'b1;
  assign out[2] = htmr_valid && htmr_ready_i && htmr_qp == 1'b1;
  assign out[3] = hturn_valid && hturn_ready_i && hturn_qp == 1'b1;
  assign out[4] = hcnp_valid && hcnp_ready_i && hcnp_qp == 1'b1;

  // ---- workers as the cache sees them ----
  logic [W-1:0] asked_q, pin_q, pin_mine;
  logic [W-1:0][NumW-1:0] work_qpn_q;
  always_comb for (int w = 0; w < int'(W); w++) pin_mine[w] = pin_q[w] && work_qpn_q[w] == watch_q;
  assign mine = |pin_mine;

  // ---- the list ----
  logic in_list_q, other_in_q, first_in_list_q, push, pop, other_push, other_pop;
  assign push = dut.list_push && dut.b_qpn_q == watch_q;
  assign pop = dut.pop && dut.head_qpn == watch_q;
  assign other_push = dut.list_push && dut.b_qpn_q == other_q;
  assign other_pop = dut.pop && dut.head_qpn == other_q;

  // ---- the copy in place 1 ----
  logic copy, held_q, copy_long_q, copy_used;
  logic [2:0] copy_dropped;
  logic [NumW:0] copy_qpn_q;
  wqe_idx_t copy_pi_q;
  assign copy = sq_valid_i && sq_ready && sq_copy_i.valid && sq_copy_i.at == 1'b1;
  assign copy_used = hsq_valid && hsq_ready_i && hsq_copy.valid && hsq_copy.at == 1'b1;
  always_comb for (int i = 0; i < 3; i++) copy_dropped[i] = drop_valid[i] && drop_at[i] == 1'b1;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    watch_q <= watch_i;
    other_q <= other_i;
    exists_q <= exists_i;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end else begin
      chosen_once: assume (watch_i == watch_q && other_i == other_q && exists_i == exists_q);
      one_reset: assume (rst_ni);
    end
    another: assume (other_i != watch_i);
    one_none: assume (!(rsp_valid_i == 2'b11 && rsp_status_i[0] == QpcNone && rsp_status_i[1] == QpcNone));
    numbered_sq: assume (!(sq_valid_i && sq_qpn_i == {1'b0, watch_q}) || (sq_pi_i == newest_q[0] + 1'b1 && newest_q[0] != '1));
    numbered_rq: assume (!(rq_valid_i && rq_qpn_i == {1'b0, watch_q}) || (rq_pi_i == newest_q[1] + 1'b1 && newest_q[1] != '1));
    few_timers: assume (!tmr_valid_i || count_q[2] != 3'd7);
    few_turns: assume (!turn_valid_i || count_q[3] != 3'd7);
    few_cnps: assume (!cnp_valid_i || count_q[4] != 3'd7);
    place_free: assume (!(sq_valid_i && sq_copy_i.valid && sq_copy_i.at == 1'b1) || !held_q);
    if (!rst_ni) begin
      open_q <= '0;
      newest_q <= '0;
      told_q <= '0;
      count_q <= '0;
      drain_q <= 1'b0;
      drained_q <= 1'b0;
      drain_open_q <= '0;
      asked_q <= '0;
      pin_q <= '0;
      in_list_q <= 1'b0;
      other_in_q <= 1'b0;
      held_q <= 1'b0;
    end else begin
      // doorbells
      if (in[0]) newest_q[0] <= sq_pi_i;
      if (in[1]) newest_q[1] <= rq_pi_i;
      if (out[0]) begin
        told_q[0] <= hsq_pi;
        sq_in_order: assert (hsq_pi > told_q[0] && hsq_pi <= newest_q[0]);
      end
      if (out[1]) begin
        told_q[1] <= hrq_pi;
        rq_in_order: assert (hrq_pi > told_q[1] && hrq_pi <= newest_q[1]);
      end
      // timers, turns and CNPs
      open_q <= (open_q & ~out) | in;
      for (int k = 2; k < 5; k++) count_q[k] <= count_q[k] + 3'(in[k]) - 3'(out[k]);
      timers_once: assert (!out[2] || count_q[2] != '0);
      turns_once: assert (!out[3] || count_q[3] != '0);
      cnps_once: assert (!out[4] || count_q[4] != '0);
      has_slot: assert (out == '0 || mine);
      only_existing: assert (out == '0 || exists_q);
      if (idle && exists_q) begin
        newest_told: assert (told_q == newest_q);
        none_lost: assert (open_q[4:2] == '0);
      end
      // drain
      drain_q <= drain_i;
      drained_q <= drain_done;
      if (!drain_q) begin
        drain_to_q <= newest_q;
        drain_open_q <= open_q & ~out;
      end else begin
        drain_open_q <= drain_open_q & ~out;
      end
      if (drain_i && drain_q) begin
        if (exists_q && drain_done) begin
          drained: assert (told_q[0] >= drain_to_q[0] && told_q[1] >= drain_to_q[1] && drain_open_q[4:2] == '0);
        end
        stays_done: assert (!drained_q || drain_done);
      end
      // workers
      for (int w = 0; w < int'(W); w++) begin
        if (rsp_valid_i[w]) begin
          asked_q[w] <= 1'b0;
          pin_q[w] <= rsp_status_i[w] == QpcOk;
        end
        if (rel_valid[w]) pin_q[w] <= 1'b0;
        if (req_valid[w] && req_ready_i[w]) begin
          asked_q[w] <= 1'b1;
          work_qpn_q[w] <= req_qpn[w][NumW-1:0];
        end
      end
      one_worker: assert (!((asked_q[0] || pin_q[0]) && (asked_q[1] || pin_q[1]) && work_qpn_q[0] == work_qpn_q[1]));
      // list
      in_list_q <= (in_list_q && !pop) || push;
      other_in_q <= (other_in_q && !other_pop) || other_push;
      if (push) first_in_list_q <= !other_in_q || other_pop;
      else if (other_pop) first_in_list_q <= 1'b1;
      once_in_list: assert (!push || !in_list_q);
      leaves_once: assert (!pop || in_list_q);
      in_turn: assert (!(other_pop && in_list_q && first_in_list_q));
      // copy
      if (copy && copy_dropped == '0) begin
        held_q <= 1'b1;
        copy_qpn_q <= sq_qpn_i;
        copy_pi_q <= sq_pi_i;
        copy_long_q <= sq_copy_i.long_wqe;
      end else if (copy_used || copy_dropped != '0) begin
        held_q <= 1'b0;
      end
      copy_goes_once: assert (3'(copy_used) + 3'(copy_dropped[0]) + 3'(copy_dropped[1]) + 3'(copy_dropped[2]) <= 3'd1);
      copy_is_there: assert (copy_dropped[2:1] == '0 || held_q);
      drops_what_comes: assert (!copy_dropped[0] || copy);
      if (copy_used) begin
        own_copy: assert (held_q && copy_pi_q == hsq_pi && copy_long_q == hsq_copy.long_wqe && (copy_qpn_q == {1'b0, watch_q}) == (hsq_qp == 1'b1));
      end
      no_copy_left: assert (!idle || !held_q);

      replaced: cover (out[0] && hsq_pi == told_q[0] + 2'd2);
      twice: cover (out[2] && count_q[2] == 3'd2);
      list_of_two: cover (in_list_q && other_in_q && first_in_list_q && asked_q == 2'b11);
      late_drop: cover (copy_dropped[1] && exists_q);
      orphan_drop: cover (copy_dropped[2]);
      drain_ends: cover (drain_done && drain_open_q == '0 && open_q[3] && told_q[0] == 2'd1 && drain_to_q[0] == 2'd1);
    end
  end

  for (genvar w = 0; w < int'(W); w++) begin : gen_work
    always_ff @(posedge clk_i) begin
      answers_look_ups: assume (!rsp_valid_i[w] || asked_q[w]);
      slot_of_qpn: assume (!(pin_q[w] || (rsp_valid_i[w] && rsp_status_i[w] == QpcOk)) || (rsp_slot_i[w] == 1'b1) == (work_qpn_q[w] == watch_q));
      found_if_exists: assume (!(rsp_valid_i[w] && work_qpn_q[w] == watch_q) || (exists_q ? rsp_status_i[w] == QpcOk : rsp_status_i[w] inside {QpcNone, QpcRefused}));
      no_create: assume (rsp_status_i[w] != QpcExists);
      if (rst_ni) begin
        asks_once: assert (!(req_valid[w] && req_ready_i[w]) || (!asked_q[w] && !pin_q[w]));
        gives_up_its_own: assert (!rel_valid[w] || pin_q[w]);
      end
    end
  end

endmodule
