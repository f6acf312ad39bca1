// SPDX-License-Identifier: Apache-2.0
//
// rx_lookup: packets leave in the order in which they came, each once, unchanged (any marked one). A packet leaves with the slot that its look-up
// was answered, while the port has its pin, and without one only if it needs no look-up, was answered so, or was given up. It is given up no
// earlier than after a pause as long as the bound, and waits no longer once its question is taken; another one is late only behind it at its port. A pin is given up once. Drain and idle are exact.
// Assumed: the cache answers a port once per question; it takes a question in Soon cycles (that it answers in the end is not assumed).

module rx_lookup_proof
  import rnic_pkg::*;
#(
  parameter int unsigned LogPatience = 2,
  parameter int unsigned Soon = 6      // longer than a packet waits
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic              gsi_valid_i,
  input logic [2:0]        gsi_qpn_i,
  input logic              raw_valid_i,
  input logic [2:0]        raw_qpn_i,
  input logic              meta_valid_i,
  input logic [2:0]        dest_i,
  input logic              raw_i,
  input logic [2:0]        data_i,          // the rest of the packet, in its PSN
  input logic        [1:0] req_ready_i,
  input logic        [1:0] rsp_valid_i,
  input qpc_status_e [1:0] rsp_status_i,
  input qp_idx_t     [1:0] rsp_slot_i,
  input logic              meta_ready_i,
  input logic              drain_i,
  input logic              paused_i,
  input logic              mark_i           // follow the packet that is taken now
);

  localparam int unsigned Patience = 1 << LogPatience;
  logic in_ready, out_valid, none, late, drain_done, idle;
  rx_meta_t meta, out;
  always_comb begin
    meta = '0;
    meta.dest_qp = 24'(dest_i);
    meta.raw = raw_i;
    meta.psn = 24'(data_i);
  end
  typedef struct packed {
    logic       raw;
    logic [2:0] dest, data;
  } packet_t;
  packet_t out_p;
  assign out_p = '{raw: out.raw, dest: out.dest_qp[2:0], data: out.psn[2:0]};
  qp_idx_t qp;
  logic [1:0] req_valid, rel_valid;
  logic [1:0][23:0] req_qpn;
  rx_lookup #(.LogPatience(LogPatience)) dut (
    .clk_i, .rst_ni, .gsi_valid_i, .gsi_qpn_i(24'(gsi_qpn_i)), .raw_valid_i, .raw_qpn_i(24'(raw_qpn_i)), .paused_i, .meta_valid_i, .meta_ready_o(in_ready), .meta_i(meta),
    .req_valid_o(req_valid), .req_ready_i, .req_qpn_o(req_qpn), .rsp_valid_i, .rsp_status_i, .rsp_slot_i, .rel_valid_o(rel_valid),
    .meta_valid_o(out_valid), .meta_ready_i, .meta_o(out), .qp_o(qp), .none_o(none), .late_o(late),
    .drain_i, .drain_done_o(drain_done), .idle_o(idle));

  // late_o and none_o are settled when the packet is offered, its slot stays
  stream_check #(.Width($bits(packet_t) + QpIdxW + 2)) u_out (
    .clk_i, .rst_ni, .valid_i(out_valid), .ready_i(meta_ready_i), .data_i({out_p, none, late, none ? QpIdxW'(0) : qp}));

  logic first_q = 1'b1;
  logic take, give;
  assign take = meta_valid_i && in_ready;
  assign give = out_valid && meta_ready_i;

  // packets inside, by the port they use in turn
  logic [1:0] held_q;
  logic       in_q, out_q;           // port of the next one
  logic [1:0] lookup_q;              // needs a QP
  logic [1:0] mine_q, ok_q;          // its answer has come, is Ok
  logic [1:0] behind_q;              // came while its port waited for the answer of a packet that was given up
  logic       lookup;
  logic [2:0] qpn, want_qpn_q;
  always_comb begin
    lookup = raw_i ? raw_valid_i : dest_i != 3'(QpnGsi) || gsi_valid_i;
    qpn = raw_i ? raw_qpn_i : dest_i == 3'(QpnGsi) ? gsi_qpn_i : dest_i;
  end
  // ports as the cache sees them
  logic [1:0] asked_q, pin_q, lost_q;  // lost: its packet has gone
  qp_idx_t    slot_q[2];
  logic [1:0][2:0] offered_q;          // cycles that a question was not taken
  logic [LogPatience+1:0] first_wait_q;   // cycles of a pause that the first packet is not offered
  logic broke_q;                     // the first packet waited through the end of a pause
  // the marked packet
  logic marked_q, mark_port_q;
  packet_t mark_q;
  // a drain
  logic drain_q, drain_settled_q;
  logic [1:0] drain_held_q;          // of those inside at its beginning

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (!rst_ni) begin
      held_q <= '0;
      in_q <= 1'b0;
      out_q <= 1'b0;
      asked_q <= '0;
      pin_q <= '0;
      lost_q <= '0;
      offered_q <= '0;
      marked_q <= 1'b0;
      drain_q <= 1'b0;
      drain_held_q <= '0;
      first_wait_q <= '0;
      broke_q <= 1'b0;
      mine_q <= '0;
      ok_q <= '0;
      behind_q <= '0;
      lookup_q <= '0;
    end else begin
      for (int i = 0; i < 2; i++) begin
        offered_q[i] <= req_valid[i] && !req_ready_i[i] ? offered_q[i] + 1'b1 : '0;
        if (rsp_valid_i[i]) begin
          asked_q[i] <= 1'b0;
          lost_q[i] <= 1'b0;
          pin_q[i] <= rsp_status_i[i] == QpcOk && !rel_valid[i];
          slot_q[i] <= rsp_slot_i[i];
          if (!lost_q[i]) begin
            mine_q[i] <= 1'b1;
            ok_q[i] <= rsp_status_i[i] == QpcOk;
          end
        end else if (rel_valid[i]) begin
          pin_q[i] <= 1'b0;
        end
        if (req_valid[i] && req_ready_i[i]) asked_q[i] <= 1'b1;
      end
      if (take) begin
        takes_in_turn: assert (!held_q[in_q]);
        held_q[in_q] <= 1'b1;
        lookup_q[in_q] <= lookup;
        mine_q[in_q] <= 1'b0;
        ok_q[in_q] <= 1'b0;
        behind_q[in_q] <= lost_q[in_q] && !rsp_valid_i[in_q] && lookup;
        in_q <= !in_q;
        if (mark_i && !marked_q) begin
          marked_q <= 1'b1;
          mark_port_q <= in_q;
          mark_q <= '{raw: raw_i, dest: dest_i, data: data_i};
          want_qpn_q <= qpn;
        end
      end
      if (give) begin
        held_q[out_q] <= 1'b0;
        out_q <= !out_q;
        first_wait_q <= '0;
        broke_q <= 1'b0;
        if (marked_q && mark_port_q == out_q) marked_q <= 1'b0;
        // its port waits on
        if (late && !behind_q[out_q] && asked_q[out_q] && !rsp_valid_i[out_q]) lost_q[out_q] <= 1'b1;
        pin_ends: assert (none || rel_valid[out_q]);
      end else if (held_q[out_q] && !out_valid) begin
        first_wait_q <= paused_i || first_wait_q >= (LogPatience+2)'(Patience) ? first_wait_q + 1'b1 : '0;
      end
      if (held_q[out_q] && !out_valid && !paused_i && first_wait_q != '0) broke_q <= 1'b1;
      if (out_valid) begin
        was_taken: assert (held_q[out_q]);
        none_exact: assert (none || (lookup_q[out_q] && !late &&
          (mine_q[out_q] ? ok_q[out_q] : rsp_valid_i[out_q] && !lost_q[out_q] && rsp_status_i[out_q] == QpcOk)));
        none_for_a_reason: assert (!none || late || !lookup_q[out_q] ||
          (mine_q[out_q] ? !ok_q[out_q] : rsp_valid_i[out_q] && rsp_status_i[out_q] != QpcOk));
        own_slot: assert (none || qp == rsp_slot_i[out_q]);
        late_is_asked: assert (!late || behind_q[out_q] || asked_q[out_q] || mine_q[out_q]);
        late_has_none: assert (!late || (none && lookup_q[out_q]));
        if (marked_q && mark_port_q == out_q) begin
          unchanged: assert (out_p == mark_q);
        end
      end
      if (marked_q && req_valid[mark_port_q]) begin
        asks_for_its_qp: assert (req_qpn[mark_port_q] == 24'(want_qpn_q));
      end
      // the bound
      gives_up_in_time: assert (first_wait_q <= (LogPatience+2)'(Soon + 1));
      not_earlier: assert (!(out_valid && late && !behind_q[out_q]) || first_wait_q >= (LogPatience+2)'(Patience));
      drain_q <= drain_i;
      if (!drain_i || !drain_q) drain_held_q <= held_q & ~(give ? 2'b01 << out_q : 2'b00);
      else if (give) drain_held_q[out_q] <= 1'b0;
      if (drain_i && drain_q) begin
        drain_exact: assert (drain_done == (drain_held_q == '0));
      end
      idle_is_empty: assert (!idle || (held_q == '0 && asked_q == '0 && pin_q == '0));

      second_late: cover (give && late && behind_q[out_q]);
      first_late: cover (give && late && !behind_q[out_q]);
      late_after_a_break: cover (out_valid && late && broke_q);
      answer_of_the_lost: cover (rsp_valid_i[0] && lost_q[0] && rel_valid[0] && held_q[0]);
      both: cover (held_q == 2'b11 && pin_q == 2'b11);
      drained: cover (drain_done && drain_q && held_q == 2'b11);
    end
  end

  for (genvar i = 0; i < 2; i++) begin : gen_port
    stream_check #(.Width(24)) u_req (.clk_i, .rst_ni, .valid_i(req_valid[i] && held_q[i]), .ready_i(req_ready_i[i]), .data_i(req_qpn[i]));
    always_ff @(posedge clk_i) begin
      answers_questions: assume (!rst_ni || !rsp_valid_i[i] || asked_q[i]);
      slot_stays: assume (!rst_ni || !pin_q[i] || rsp_slot_i[i] == slot_q[i]);
      takes_soon: assume (!(req_valid[i] && offered_q[i] == 3'(Soon)) || req_ready_i[i]);
      if (rst_ni) begin
        if (req_valid[i] && req_ready_i[i]) begin
          one_question: assert ((!asked_q[i] || rsp_valid_i[i]) && !pin_q[i]);
          asks_for_a_packet: assert ((held_q[i] && lookup_q[i] && !behind_q[i]) || (take && lookup && in_q == 1'(i)));
        end
        releases_pins: assert (!rel_valid[i] || pin_q[i] || (rsp_valid_i[i] && rsp_status_i[i] == QpcOk));
        pin_of_a_packet: assert (!pin_q[i] || (held_q[i] && mine_q[i] && ok_q[i]));
      end
    end
  end

endmodule
