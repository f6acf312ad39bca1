// SPDX-License-Identifier: Apache-2.0
//
// Gives every received packet the slot of its QP, in front of rx_transport (docs/qp-cache.md).
//
// Two packets at a time look up their QP, each at a port of the cache (qp_cache), so that the next one has its slot when its predecessor is done; they
// go on in the order in which they came. The pin of a packet ends when rx_transport has taken it: from then on that module is
// busy with the slot. QP1 on the wire and frames that are not RoCEv2 go to the QPs that gsi_* and raw_* name. A packet without
// a QP, or whose context memory refuses, goes on with none_o, to be dropped and counted there.
//
// Slots may be held by packets to send, and these by a pause of the peer (PFC), whose reason may be that we do not receive: neither side would ever go on.
// So a packet that has waited for 2^LogPatience cycles of such a pause (paused_i, without a break) is given up (late_o), and while its port waits on, all
// others that would need that port. Without a pause what is sent leaves at the rate of the link, and gives its slots up; a packet waits for that.
//
// Throughput: a packet per cycle, two cycles for each port. Latency: 1 cycle if the QP has a slot. Back-pressure: meta_ready_o.

module rx_lookup
  import rnic_pkg::*;
#(
  parameter int unsigned LogPatience = 12
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              gsi_valid_i,
  input  logic [23:0]       gsi_qpn_i,
  input  logic              raw_valid_i,
  input  logic [23:0]       raw_qpn_i,
  input  logic              paused_i,       // a pause of the peer holds what is to be sent
  input  logic              meta_valid_i,
  output logic              meta_ready_o,
  input  rx_meta_t          meta_i,
  // look-ups
  output logic        [1:0] req_valid_o,
  input  logic        [1:0] req_ready_i,
  output logic        [1:0][23:0] req_qpn_o,
  input  logic        [1:0] rsp_valid_i,
  input  qpc_status_e [1:0] rsp_status_i,
  input  qp_idx_t     [1:0] rsp_slot_i,     // stays until rel_valid_o
  output logic        [1:0] rel_valid_o,
  // with their slots
  output logic              meta_valid_o,
  input  logic              meta_ready_i,
  output rx_meta_t          meta_o,
  output qp_idx_t           qp_o,
  output logic              none_o,
  output logic              late_o,         // given up; with none_o
  input  logic              drain_i,
  output logic              drain_done_o,
  output logic              idle_o
);

  logic [1:0]  held_q, asked_q, known_q, found_q;   // asked: the cache has its question; known: the answer is there
  logic [1:0]  late_q, lost_q, lost;                // lost: the port waits for an answer that nobody needs any more
  logic [LogPatience:0] wait_q;                     // of the first packet, in a pause; the top bit: for too long
  logic        give_up;
  rx_meta_t    meta_q[2];
  logic [23:0] qpn_q[2];
  logic        head_q, tail_q, take, give, lookup;
  logic [23:0] qpn;
  logic [1:0]  known, found;

  // which QP
  always_comb begin
    lookup = 1'b1;
    qpn = meta_i.dest_qp;
    if (meta_i.raw) begin
      lookup = raw_valid_i;
      qpn = raw_qpn_i;
    end else if (meta_i.dest_qp == QpnGsi) begin
      lookup = gsi_valid_i;
      qpn = gsi_qpn_i;
    end
  end

  assign meta_ready_o = !held_q[tail_q];
  assign take = meta_valid_i && meta_ready_o;
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      // asked in the cycle in which the packet comes
      req_valid_o[i] = held_q[i] ? !asked_q[i] : take && lookup && !lost[i] && tail_q == 1'(i);
      req_qpn_o[i] = held_q[i] ? qpn_q[i] : qpn;
    end
  end
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      lost[i] = lost_q[i] && !rsp_valid_i[i];
      known[i] = known_q[i] || (rsp_valid_i[i] && !lost_q[i]);
      found[i] = rsp_valid_i[i] && !lost_q[i] ? rsp_status_i[i] == QpcOk : found_q[i];
    end
  end
  // only when the cache has the question
  assign give_up = wait_q[LogPatience] && held_q[head_q] && asked_q[head_q] && !known[head_q];
  assign meta_valid_o = held_q[head_q] && known[head_q];
  assign meta_o = meta_q[head_q];
  assign qp_o = rsp_slot_i[head_q];
  assign none_o = !found[head_q];
  assign late_o = late_q[head_q];
  assign give = meta_valid_o && meta_ready_i;
  always_comb begin
    rel_valid_o = give ? found & (2'b01 << head_q) : '0;
    for (int i = 0; i < 2; i++) if (lost_q[i] && rsp_valid_i[i] && rsp_status_i[i] == QpcOk) rel_valid_o[i] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= '0;
      asked_q <= '0;
      known_q <= '0;
      found_q <= '0;
      late_q <= '0;
      lost_q <= '0;
      wait_q <= '0;
      head_q <= 1'b0;
      tail_q <= 1'b0;
    end else begin
      for (int i = 0; i < 2; i++) begin
        if (req_valid_o[i] && req_ready_i[i]) asked_q[i] <= 1'b1;
        lost_q[i] <= lost[i] || (give_up && head_q == 1'(i));
        if (rsp_valid_i[i] && !lost_q[i]) begin
          known_q[i] <= 1'b1;
          found_q[i] <= found[i];
        end
      end
      if (take) begin
        held_q[tail_q] <= 1'b1;
        asked_q[tail_q] <= !lookup || lost[tail_q] || req_ready_i[tail_q];
        known_q[tail_q] <= !lookup || lost[tail_q];
        late_q[tail_q] <= lookup && lost[tail_q];
        found_q[tail_q] <= 1'b0;
        tail_q <= !tail_q;
      end
      if (give || !held_q[head_q]) wait_q <= '0;
      else if (!wait_q[LogPatience]) wait_q <= paused_i ? wait_q + 1'b1 : '0;
      if (give_up) begin
        known_q[head_q] <= 1'b1;
        late_q[head_q] <= 1'b1;
      end
      if (give) begin
        held_q[head_q] <= 1'b0;
        head_q <= !head_q;
      end
    end
    if (take) begin
      meta_q[tail_q] <= meta_i;
      qpn_q[tail_q] <= qpn;
    end
  end

  // verilator lint_off PINCONNECTEMPTY
  // held_q says whether any is there
  drain_count u_drain (
    .clk_i, .rst_ni, .begin_i(take), .ended_i({1'b0, give}), .hold_i(1'b0), .drain_i, .done_o(drain_done_o), .empty_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  assign idle_o = held_q == '0 && lost_q == '0 && !meta_valid_i;

endmodule
