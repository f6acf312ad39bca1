// SPDX-License-Identifier: Apache-2.0
//
// Joins the packets and payload fragments of the read responder and of the requester.
//
// A packet that is taken brings its fragments with it before the next packet of either side, so that fragments stand in the
// order of the packets. The responder goes first, but while the requester waits it gets every fourth turn at
// least. A packet that was shown stays until it is taken.
//
// Throughput: one packet and one fragment per cycle. Latency: 0, everything passes through. Back-pressure: goes
// through; fragments wait for their packet.

module tx_pkt_mux
  import rnic_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,
  // read responder
  input  logic     rsp_pkt_valid_i,
  output logic     rsp_pkt_ready_o,
  input  tx_pkt_t  rsp_pkt_i,
  input  logic     rsp_frag_valid_i,
  output logic     rsp_frag_ready_o,
  input  tx_frag_t rsp_frag_i,
  // requester
  input  logic     req_pkt_valid_i,
  output logic     req_pkt_ready_o,
  input  tx_pkt_t  req_pkt_i,
  input  logic     req_frag_valid_i,
  output logic     req_frag_ready_o,
  input  tx_frag_t req_frag_i,
  // to the egress and the payload reader
  output logic     pkt_valid_o,
  input  logic     pkt_ready_i,
  output tx_pkt_t  pkt_o,
  output logic     frag_valid_o,
  input  logic     frag_ready_i,
  output tx_frag_t frag_o
);

  logic       busy_q;          // fragments of the packet taken last are missing
  logic       shown_q;         // a packet was offered and not taken
  logic       rsp_q;           // whose
  logic [1:0] streak_q;        // packets of the responder in a row while the requester waited
  logic       rsp, pkt_fire, frag_fire, open;

  assign rsp = busy_q || shown_q ? rsp_q :
               rsp_pkt_valid_i && !(req_pkt_valid_i && streak_q == 2'd3);
  assign pkt_valid_o = !busy_q && (rsp ? rsp_pkt_valid_i : req_pkt_valid_i);
  assign pkt_o = rsp ? rsp_pkt_i : req_pkt_i;
  assign pkt_fire = pkt_valid_o && pkt_ready_i;
  assign rsp_pkt_ready_o = rsp && !busy_q && pkt_ready_i;
  assign req_pkt_ready_o = !rsp && !busy_q && pkt_ready_i;

  assign open = busy_q || (pkt_fire && pkt_o.len != '0 && !pkt_o.inl);
  assign frag_valid_o = open && (rsp ? rsp_frag_valid_i : req_frag_valid_i);
  assign frag_o = rsp ? rsp_frag_i : req_frag_i;
  assign frag_fire = frag_valid_o && frag_ready_i;
  assign rsp_frag_ready_o = open && rsp && frag_ready_i;
  assign req_frag_ready_o = open && !rsp && frag_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      shown_q <= 1'b0;
      streak_q <= '0;
    end else begin
      busy_q <= open && !(frag_fire && frag_o.last);
      shown_q <= pkt_valid_o && !pkt_ready_i;
      if (pkt_fire) begin
        if (!rsp || !req_pkt_valid_i) streak_q <= '0;
        else if (streak_q != 2'd3) streak_q <= streak_q + 2'd1;
      end
    end
    rsp_q <= rsp;
  end

endmodule
