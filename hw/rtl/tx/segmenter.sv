// SPDX-License-Identifier: Apache-2.0
//
// Cuts checked messages into packets by the path MTU (IBTA 9.4.3, 9.7.2, 9.7.7.2) and keeps the sending
// side's per-QP state: next WQE, byte offset in it, next PSN, and the farthest place ever reached.
//
// A message is taken only if it is the next of its QP and not stale. Before each packet the turn may end:
// the window is closed (then the QP sleeps), or the quantum is used up and others wait (with short_i after one packet); the
// place is kept and the WQE is fetched again later. AckReq is set on the last packet of a message, on every
// req_interval_i-th one of a message, on those at the end of a turn that used its quantum up, and on the one that closes the window: a QP
// never sleeps, or waits for long, without an acknowledge on its way. On UC and UD nobody acknowledges: there such a packet
// carries `report` instead, and the egress says when it was sent. A bad WQE halts the QP's sending; the completer fails it in order.
//
// Local invalidate and bind change the MR table when their turn comes, once: sent again, they are passed over with the result
// that they had. An invalidate ends when what peers were allowed to write before is in memory.
//
// In SQD (sqd_i, IBTA 10.3.1.5) only what was begun goes on, also again after a loss: a message of which a packet was sent, or a change
// that was asked for. Any other WQE stops the turn like a closed window.
//
// The completer may set a QP's place back or forward in any cycle of its (sync_i, rst_valid_i); a message of that QP
// that is being cut is then given up behind its current packet and fetched again. Inline data (at most one
// packet) leave on the inl stream with the packet.
//
// READ and atomic are one request packet each. A READ takes as many PSNs as it will have responses; set back into the middle of
// it, the rest is asked for. They wait while max_rd of them are not complete, and a READ while too many PSNs are outstanding; a
// fenced WQE waits until none is left. The window counts from the newest READ or atomic on: responses are not what it bounds.
//
// Flow control (IBTA 9.7.7.2): a message that takes a credit begins only with one, or as the one message that may be tried without (`probe`): the first
// of a connection, what was begun so and is sent again, and one each time that nothing is outstanding and the credit timer expired. Of a
// SEND without credit one packet goes at a time, with AckReq.
//
// Throughput: a message of one packet per 2 cycles, else one packet per cycle (one fragment per cycle).
// Latency: message to packet 2 cycles. Back-pressure: pkt and frag are single registers; both must be free.

module segmenter
  import rnic_pkg::*;
  import requester_pkg::*;
  import rnic_regs_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [15:0] window_i,
  input  logic [7:0]  req_interval_i,
  input  logic [3:0]  quantum_log_i,
  input  logic        msg_valid_i,
  output logic        msg_ready_o,
  input  msg_t        msg_i,
  input  logic [InlineBytes*8-1:0] inline_i,
  // administration: while hold_i no state changes; init_i clears QP adm_qp_i
  input  logic        hold_i,
  input  logic        init_i,
  input  qp_idx_t     adm_qp_i,
  input  psn_t        init_psn_i,
  output wqe_idx_t    adm_next_o,
  output psn_t        adm_psn_o,
  // with hold_i: what is kept of adm_qp_i; load_i writes it
  input  logic        load_i,
  input  send_t       keep_i,
  output send_t       keep_o,
  input  qp_idx_t     probe_qp_i,
  output logic        busy_o,        // something of probe_qp_i is under way
  // completer: while sync_i nothing is sent; rst_valid_i sets the place of cpl_qp_i
  input  logic        sync_i,
  input  logic        rst_valid_i,
  input  wqe_idx_t    rst_next_i,
  input  logic [31:0] rst_off_i,
  input  psn_t        rst_psn_i,
  // look-ups for the QP at work
  output qp_idx_t     qp_o,
  output turn_t       turn_o,
  input  logic        sqd_i,
  input  gen_t        gen_i,
  input  logic        paused_i,
  input  psn_t        una_i,
  input  wqe_idx_t    ci_i,
  input  logic        err_i,
  input  logic        others_i,
  input  logic        short_i,        // turns of one packet
  input  logic        unlimited_i,    // the peer gives no credits
  input  credit_t     limit_i,        // messages before this one have a credit
  // look-up for the completer
  input  qp_idx_t     cpl_qp_i,
  output sent_t       cpl_sent_o,
  // look-up for the receive side
  input  qp_idx_t     rx_qp_i,
  output psn_t        rx_max_psn_o,
  // READs and atomics
  input  rd_num_t     rd_done_i,      // complete, of qp_o
  input  rd_num_t     rst_rd_i,       // with rst_valid_i: those complete
  input  credit_t     rst_used_i,     // and messages complete that took a credit; the next may go without
  input  logic        rst_probe_i,
  output logic        rd_we_o,        // a request goes: its entry
  output rd_num_t     rd_num_o,
  output rd_entry_t   rd_entry_o,
  // end of a turn
  output logic        stop_valid_o,
  input  logic        stop_ready_i,
  output wqe_idx_t    stop_next_o,
  output logic        stop_closed_o,
  output logic        again_valid_o,  // the turn ended well, the QP wants another one
  input  logic        again_ready_i,
  output logic        size_we_o,
  output logic [3:0]  size_lg_o,
  // messages in flight
  output logic        flight_we_o,
  output logic [QpIdxW+LogInflight-1:0] flight_addr_o,
  output flight_t     flight_o,
  output logic        kick_valid_o,  // something for the completer that no acknowledge will show
  input  logic        kick_ready_i,
  // changes of memory regions and windows; barrier: all that peers were allowed to write before is written
  output logic        chg_valid_o,
  input  logic        chg_ready_i,
  output mr_change_t  chg_o,
  input  logic        chg_rsp_valid_i,
  input  mr_result_e  chg_rsp_i,
  output logic        bar_valid_o,
  input  logic        bar_ready_i,
  input  logic        bar_done_i,
  output logic        idle_o,        // no message inside
  // to the wire
  output logic        pkt_valid_o,
  input  logic        pkt_ready_i,
  output tx_pkt_t     pkt_o,
  output logic        frag_valid_o,
  input  logic        frag_ready_i,
  output tx_frag_t    frag_o,
  output logic        inl_valid_o,
  input  logic        inl_ready_i,
  output logic [InlineBytes*8-1:0] inl_data_o,
  output logic [6:0]  inl_len_o,     // 1 to InlineBytes
  // a packet goes: for the transport timer
  output logic        sent_valid_o,
  output qp_idx_t     sent_qp_o,
  output logic [4:0]  sent_timeout_o,
  output logic        ev_again_o,    // it was sent before
  output logic        retire_o,      // a ticket is done with, of this QP
  output qp_idx_t     retire_qp_o,
  output logic        ev_window_o,
  output logic        ev_credit_o,   // a QP waits for credits
  output logic        ev_read_o,     // a READ request goes
  output logic        ev_atomic_o
);

  // ---- state per QP --------------------------------------------------------------------------------
  send_t send_mem[NumQp];

  typedef enum logic [3:0] {
    SegIdle, SegSeek, SegPacket, SegFragment, SegStop, SegChange, SegAsked, SegBarrier, SegSettle, SegLocal,
    SegAgain
  } state_e;
  state_e state_q;

  msg_t m_q;
  logic [31:0] rem_q;        // bytes of the message not yet sent
  logic [31:0] seek_q;       // bytes still to be skipped
  logic [12:0] pkt_rem_q;    // bytes of the packet without a fragment
  logic msg_end_q;           // the packet with these fragments ends the message
  turn_t turn_q;
  logic [16:0] used_q;       // bytes of this turn
  logic killed_q;            // the message at work is given up: its QP's place was set
  logic changed_q;           // it is a change that was carried out now
  logic again_q;             // or before
  logic [InlineBytes*8-1:0] inline_q;

  qp_idx_t qp;
  send_t st, st_d;
  logic st_we, stall;

  assign stall = hold_i || sync_i;
  assign qp = hold_i ? adm_qp_i : state_q == SegIdle ? msg_i.qp : m_q.qp;
  assign qp_o = qp;
  assign turn_o = m_q.turn;
  assign st = send_mem[qp];
  assign adm_next_o = st.next;
  assign keep_o = st;
  assign adm_psn_o = st.psn;
  send_t cpl_st;
  assign cpl_st = send_mem[cpl_qp_i];
  assign rx_max_psn_o = send_mem[rx_qp_i].max_psn;
  assign cpl_sent_o = '{next: cpl_st.next, psn: cpl_st.psn, max_next: cpl_st.max_next,
                        max_psn: cpl_st.max_psn,
                        changing: m_q.qp == cpl_qp_i &&
                                  (state_q inside {SegAsked, SegBarrier, SegSettle} || (state_q == SegLocal && changed_q))};

  // ---- a message arrives -----------------------------------------------------------------------------
  logic take, fresh, lost_end, overrun, idx_done;
  wqe_idx_t idx_before;
  logic [31:0] todo;
  assign msg_ready_o = state_q == SegIdle && !hold_i && !rst_valid_i;
  assign take = msg_valid_i && msg_ready_o;
  assign fresh = take && msg_i.kind != MsgSkip && msg_i.gen == gen_i && msg_i.idx == st.next &&
                 !st.halt && !err_i && !paused_i && !idx_done;
  // of a QP that failed: the turn has ended all the same. If its place was set back that ended the turn too
  assign lost_end = take && !fresh && msg_i.turn_end && msg_i.gen == gen_i;
  // completed meanwhile (a late acknowledge): the slot may hold another WQE by now
  assign idx_before = msg_i.idx - ci_i;
  assign idx_done = idx_before >= 16'h8000;
  assign todo = msg_i.total - st.off;
  // resumed, but the WQE in memory is another one now
  assign overrun = st.off != '0 && (msg_i.kind == MsgNop || msg_i.total <= st.off);

  // ---- may the next packet go? -----------------------------------------------------------------------
  // Unacknowledged PSNs at most when a READ goes: with the longest READ and windows behind it less than 2^23.
  localparam psn_t MaxRdDistance = 24'h600000;
  psn_t win_psn;             // where the window begins
  logic [23:0] outstanding, outstanding_next, n_psn;
  logic [15:0] window;
  logic closed, quantum_over, is_rd, limited, starved, wait_rts;
  rd_num_t rd_out;
  logic [16:0] quantum;
  assign window = window_i == '0 ? 16'd1 : window_i;
  assign is_rd = op_is_rd(m_q.op);
  assign rd_out = st.rd_num - rd_done_i;
  assign win_psn = psn_gt(st.rd_psn, una_i) ? st.rd_psn : una_i;
  assign outstanding = st.psn - win_psn;
  assign outstanding_next = outstanding + 1'b1;
  // in SQD, and nothing of the next WQE was ever sent
  assign wait_rts = sqd_i && st.next == st.max_next && st.off == '0 && st.psn == st.max_psn && !changed_q;
  // A window made smaller meanwhile does not strand a QP: one packet that asks for an acknowledge still goes.
  assign closed = wait_rts || (outstanding >= 24'(window) && st.ack_req) || (m_q.fence && st.off == '0 && rd_out != '0) ||
                  (is_rd && (rd_out >= m_q.max_rd || (rd_out != '0 && st.psn - una_i + n_psn > MaxRdDistance)));
  assign limited = m_q.credit && m_q.kind == MsgPackets && !unlimited_i && !psn_gt(limit_i, st.used);
  // what was sent before may be sent again
  assign starved = limited && !wait_rts && !killed_q && st.psn == st.max_psn && (st.off == '0 ? !st.probe : m_q.op == OpSend && st.psn != una_i);
  assign quantum = 17'd1 << quantum_log_i;
  assign quantum_over = (used_q >= quantum || (short_i && used_q != '0)) && others_i;

  // ---- the packet ------------------------------------------------------------------------------------
  logic [12:0] mtu, plen;
  logic [12:0] frag_need, flen;  // bytes of the packet without a fragment, bytes of the next one
  logic [16:0] used_d;
  logic first, last, ack_req, out_free, frag_free, send, pkt_valid_q, frag_valid_q;
  logic inl_free, inl_valid_q, stopped, wait_credit;
  assign mtu = mtu_bytes(m_q.mtu);
  assign last = is_rd || rem_q <= 32'(mtu);
  assign first = st.off == '0;
  assign plen = is_rd ? '0 : last ? rem_q[12:0] : mtu;
  // PSNs of the packet: a READ takes one for each response
  always_comb begin
    n_psn = 24'd1;
    if (is_rd && m_q.op == OpRead && rem_q != '0)
      n_psn = 24'((rem_q + 32'(mtu) - 32'd1) >> (4'd7 + 4'(m_q.mtu)));
  end
  assign frag_need = state_q == SegFragment ? pkt_rem_q : plen;
  assign flen = m_q.seg[0].len < 32'(frag_need) ? m_q.seg[0].len[12:0] : frag_need;
  // payload and about as much again as the headers of a packet
  assign used_d = used_q + 17'(plen) + 17'd64;
  assign ack_req = last || limited || outstanding_next >= 24'(window) || (used_d >= quantum && others_i) ||
                   (req_interval_i != '0 && st.since_req + 8'd1 >= req_interval_i);
  assign frag_free = !frag_valid_q || frag_ready_i;
  assign inl_free = !inl_valid_q || inl_ready_i;
  assign out_free = (!pkt_valid_q || pkt_ready_i) &&
                    (plen == '0 || (m_q.inl ? inl_free : frag_free));
  assign send = state_q == SegPacket && !stall && !err_i && !killed_q && !closed && !starved &&
                !quantum_over && out_free && m_q.kind == MsgPackets;

  logic frag_push, inl_push, pkt_whole;
  assign frag_push = (send && plen != '0 && !m_q.inl) || (state_q == SegFragment && frag_free);
  assign inl_push = send && plen != '0 && m_q.inl;
  // the packet leaves with its payload's last fragment
  assign pkt_whole = flen == plen || m_q.inl;

  function automatic logic [7:0] service(input logic [3:0] qp_type);
    return qp_type == rnic_pkg::QpTypeUd ? 8'h60 : qp_type == rnic_pkg::QpTypeUc ? 8'h20 : 8'h00;
  endfunction
  // operation code on RC; the service goes on top of it
  function automatic logic [7:0] packet_opcode(input msg_op_e op, input logic f, input logic l,
                                               input logic imm, input logic inv);
    if (op == OpRead) return OpRcReadRequest;
    if (op == OpCmpSwap) return OpRcCmpSwap;
    if (op == OpFetchAdd) return OpRcFetchAdd;
    if (op == OpSend) begin
      if (!l) return f ? OpRcSendFirst : OpRcSendMiddle;
      if (imm) return f ? OpRcSendOnlyImm : OpRcSendLastImm;
      if (inv) return f ? OpRcSendOnlyInv : OpRcSendLastInv;
      return f ? OpRcSendOnly : OpRcSendLast;
    end
    if (!l) return f ? OpRcWriteFirst : OpRcWriteMiddle;
    if (imm) return f ? OpRcWriteOnlyImm : OpRcWriteLastImm;
    return f ? OpRcWriteOnly : OpRcWriteLast;
  endfunction

  tx_pkt_t pkt_q;
  tx_frag_t frag_q;
  assign pkt_valid_o = pkt_valid_q;
  assign pkt_o = pkt_q;
  assign busy_o = (state_q != SegIdle && m_q.qp == probe_qp_i) || (pkt_valid_q && pkt_q.qp == probe_qp_i);
  assign frag_valid_o = frag_valid_q;
  assign frag_o = frag_q;

  logic [InlineBytes*8-1:0] inl_q;
  logic [6:0] inl_len_q;
  assign inl_valid_o = inl_valid_q;
  assign inl_data_o = inl_q;
  assign inl_len_o = inl_len_q;
  // the credit timer is the transport timer of a QP that waits for nothing else
  assign wait_credit = stopped && starved && st.max_psn == una_i;
  assign sent_valid_o = send || wait_credit;
  assign sent_qp_o = m_q.qp;
  assign sent_timeout_o = wait_credit ? CreditTimer : m_q.timeout;
  assign ev_again_o = send && st.psn != st.max_psn;
  assign ev_read_o = send && m_q.op == OpRead;
  assign ev_atomic_o = send && is_rd && m_q.op != OpRead;

  assign rd_we_o = send && is_rd;
  assign rd_num_o = st.rd_num;
  always_comb begin
    rd_entry_o = '0;
    if (rd_we_o) begin
      rd_entry_o.base = st.psn - 24'(st.off >> (4'd7 + 4'(m_q.mtu)));
      rd_entry_o.last = st.psn + n_psn - 24'd1;
      rd_entry_o.len = m_q.total;
      rd_entry_o.atomic = m_q.op != OpRead;
      for (int unsigned i = 0; i < MaxSge; i++)
        rd_entry_o.sge[i] = '{lkey: m_q.lkey[i], length: m_q.seg[i].len, addr: m_q.seg[i].iova};
    end
  end

  // ---- end of a turn, local completions ----------------------------------------------------------------
  logic local_done, drop, ended, late;
  assign stop_valid_o = state_q == SegStop && !sync_i;  // the timer takes one at a time
  assign stop_next_o = st.next;
  assign stop_closed_o = closed || starved;
  assign stopped = stop_valid_o && stop_ready_i;
  assign again_valid_o = state_q == SegAgain;
  assign ev_window_o = stopped && closed && !wait_rts;
  assign ev_credit_o = stopped && starved;
  assign kick_valid_o = state_q == SegLocal && !stall && !killed_q && !wait_rts;
  assign local_done = kick_valid_o && kick_ready_i;
  // the QP failed or was set to another place meanwhile
  assign drop = !stall && ((state_q inside {SegPacket, SegChange} && (err_i || killed_q)) ||
                           (state_q == SegLocal && killed_q));
  // a change carried out while its QP's place was set back: it counts as sent all the same
  assign late = drop && state_q == SegLocal && changed_q;
  assign ended = (send && last && pkt_whole) ||
                 (state_q == SegFragment && frag_free && msg_end_q && flen == pkt_rem_q);
  assign retire_o = (take && !fresh && msg_i.last) ||
                    ((stopped || local_done || drop || ended) && m_q.last);

  assign retire_qp_o = state_q == SegIdle ? msg_i.qp : m_q.qp;

  assign size_we_o = fresh && msg_i.kind == MsgPackets;
  always_comb begin
    size_lg_o = 4'd7;  // headers and 64 bytes
    if (size_we_o) begin
      for (int unsigned i = 7; i < 13; i++) if (msg_i.total[i]) size_lg_o = 4'(i + 1);
      if (msg_i.total[31:13] != '0) size_lg_o = 4'd13;
      if (op_is_rd(msg_i.op)) size_lg_o = 4'd7;
    end
  end

  // the entry of a WQE begun for the first time tells the operation if the WQE fails before it is sent whole
  assign flight_we_o = (send && (last || st.next == st.max_next)) || (local_done && !again_q) || late;
  assign flight_addr_o = {m_q.qp, m_q.idx[LogInflight-1:0]};
  always_comb begin
    flight_o.last_psn = st.psn + n_psn - 24'd1;
    flight_o.signaled = m_q.signaled;
    flight_o.credit = m_q.credit;
    flight_o.op = m_q.op;
    flight_o.status = m_q.status;
    flight_o.kind = state_q != SegLocal ? (last ? FlightPackets : FlightPart) :
                    m_q.kind == MsgNop ? FlightNop : FlightError;
  end

  // ---- changes of memory regions: the first time a WQE is sent only ------------------------------------------
  logic done_before;
  assign done_before = st.next != st.max_next;
  assign chg_valid_o = state_q == SegChange && !stall && !done_before && !err_i && !killed_q && !wait_rts;
  always_comb begin
    chg_o = '0;
    if (state_q == SegChange) begin
      chg_o = '{op: m_q.op == OpBindMw ? MrBind : MrInvalidate, qpn: '0, pd: m_q.pd, key: m_q.rkey, lkey: m_q.lkey[0],
                addr: m_q.seg[0].iova, length: m_q.seg[0].len, remote_write: m_q.bind_how[0],
                remote_read: m_q.bind_how[1], remote_atomic: m_q.bind_how[2],
                zero_based: m_q.bind_how[3]};
    end
  end
  assign bar_valid_o = state_q == SegBarrier;
  assign idle_o = state_q == SegIdle;

  // ---- state ---------------------------------------------------------------------------------------------
  always_comb begin
    st_d = st;
    st_we = init_i || load_i || send || local_done || late || rst_valid_i;
    if (init_i) begin
      st_d = '{psn: init_psn_i, max_psn: init_psn_i, rd_psn: init_psn_i, probe: 1'b1, default: '0};
    end else if (load_i) begin
      st_d = keep_i;
    end else if (sync_i) begin
      st_d = cpl_st;
      st_d.next = rst_next_i;
      st_d.off = rst_off_i;
      st_d.psn = rst_psn_i;
      st_d.rd_psn = rst_psn_i;
      st_d.rd_num = rst_rd_i;
      st_d.used = rst_used_i;
      st_d.probe = rst_probe_i;
      st_d.ack_req = 1'b0;
      st_d.halt = 1'b0;
    end else if (late) begin
      st_d.max_next = m_q.idx + 1'b1;
      st_d.failed = m_q.kind == MsgBad;
    end else if (state_q == SegLocal) begin
      st_d.next = st.next + 1'b1;
      st_d.off = '0;
      st_d.halt = m_q.kind == MsgBad;
      if (changed_q) st_d.failed = m_q.kind == MsgBad;
    end else begin
      st_d.psn = st.psn + n_psn;
      st_d.rd_psn = is_rd ? st_d.psn : win_psn;
      if (is_rd) st_d.rd_num = st.rd_num + 1'b1;
      st_d.ack_req = ack_req;
      st_d.since_req = ack_req ? '0 : st.since_req + 1'b1;
      st_d.off = last ? '0 : st.off + 32'(plen);
      if (last) st_d.next = st.next + 1'b1;
      if (last && m_q.credit) st_d.used = st.used + 1'b1;
      if (st.off == '0 && !is_rd) st_d.probe = 1'b0;  // a READ's response need not tell credits
      if (psn_gt(st_d.psn, st.max_psn)) st_d.max_psn = st_d.psn;
    end
    // sent whole for the first time
    if (!init_i && !load_i && !sync_i && st.next == st.max_next && st_d.next != st.next)
      st_d.max_next = st_d.next;
  end

  always_ff @(posedge clk_i) begin
    if (st_we) send_mem[rst_valid_i ? cpl_qp_i : qp] <= st_d;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= SegIdle;
      pkt_valid_q <= 1'b0;
      frag_valid_q <= 1'b0;
      inl_valid_q <= 1'b0;
      killed_q <= 1'b0;
      changed_q <= 1'b0;
      again_q <= 1'b0;
      used_q <= '0;
      turn_q <= '0;
    end else begin
      if (pkt_ready_i) pkt_valid_q <= 1'b0;
      if (frag_ready_i) frag_valid_q <= 1'b0;
      if (inl_ready_i) inl_valid_q <= 1'b0;
      if (inl_push) inl_valid_q <= 1'b1;
      if (state_q == SegIdle) begin
        changed_q <= 1'b0;
        again_q <= 1'b0;
      end
      if (state_q == SegAsked && chg_rsp_valid_i) changed_q <= 1'b1;
      if (state_q == SegChange && !stall && done_before) again_q <= 1'b1;
      if (state_q == SegIdle) killed_q <= 1'b0;
      else if (rst_valid_i && cpl_qp_i == m_q.qp) killed_q <= 1'b1;
      if (send) pkt_valid_q <= 1'b1;
      if (frag_push) frag_valid_q <= 1'b1;
      unique case (state_q)
        SegIdle: if (lost_end) begin
          state_q <= SegAgain;
        end else if (fresh) begin
          turn_q <= msg_i.turn;
          if (msg_i.turn != turn_q) used_q <= '0;
          if (msg_i.kind == MsgBad || overrun) state_q <= SegLocal;
          else if (msg_i.kind == MsgPackets)
            state_q <= st.off == '0 || op_is_rd(msg_i.op) ? SegPacket : SegSeek;
          else if (msg_i.fence) state_q <= SegPacket;
          else state_q <= msg_i.kind == MsgChange ? SegChange : SegLocal;
        end
        SegSeek: if (seek_q < m_q.seg[0].len) state_q <= SegPacket;
        SegPacket: begin
          if (drop) state_q <= m_q.turn_end && !killed_q ? SegAgain : SegIdle;
          else if (!stall && (closed || starved || quantum_over)) state_q <= SegStop;
          else if (!stall && m_q.kind != MsgPackets) state_q <= m_q.kind == MsgNop ? SegLocal : SegChange;
          else if (send) begin
            if (!used_q[16]) used_q <= used_d;
            if (!pkt_whole) state_q <= SegFragment;
            else if (last) state_q <= m_q.turn_end ? SegAgain : SegIdle;
          end
        end
        SegFragment: if (frag_free && flen == pkt_rem_q) begin
          state_q <= !msg_end_q ? SegPacket : m_q.turn_end ? SegAgain : SegIdle;
        end
        SegStop: if (stopped) state_q <= SegIdle;
        SegChange: begin
          if (drop) state_q <= m_q.turn_end && !killed_q ? SegAgain : SegIdle;
          else if (!stall && wait_rts) state_q <= SegStop;
          else if (!stall && done_before) state_q <= SegLocal;
          else if (chg_valid_o && chg_ready_i) state_q <= SegAsked;
        end
        SegAsked: if (chg_rsp_valid_i) begin
          state_q <= chg_rsp_i == MrDone && m_q.op == OpLocalInv ? SegBarrier : SegLocal;
        end
        SegBarrier: if (bar_ready_i) state_q <= SegSettle;
        SegSettle: if (bar_done_i) state_q <= SegLocal;
        SegLocal: begin
          if (drop) state_q <= SegIdle;
          else if (!stall && wait_rts) state_q <= SegStop;
          else if (local_done) state_q <= m_q.turn_end ? SegAgain : SegIdle;
        end
        default: if (again_ready_i) state_q <= SegIdle;
      endcase
    end

    if (lost_end) m_q <= msg_i;
    if (fresh) begin
      m_q <= msg_i;
      if (msg_i.inl) inline_q <= inline_i;
      if (overrun) begin
        m_q.kind <= MsgBad;
        m_q.status <= msg_i.kind == MsgBad ? msg_i.status : WcStatusLocQpOpErr[3:0];
      end
      rem_q <= todo;
      seek_q <= st.off;
    end
    // a change that was carried out is a local completion like that of a NOP, or one with an error
    if (state_q == SegChange && !stall && done_before)
      m_q.kind <= st.failed && st.next + 16'd1 == st.max_next ? MsgBad : MsgNop;
    if (state_q == SegAsked && chg_rsp_valid_i) begin
      m_q.kind <= chg_rsp_i == MrDone ? MsgNop : MsgBad;
      m_q.status <= chg_rsp_i == MrBadKey ? WcStatusLocProtErr[3:0] : WcStatusMwBindErr[3:0];
    end
    if (state_q == SegSeek) begin
      if (seek_q < m_q.seg[0].len) begin
        m_q.seg[0].iova <= m_q.seg[0].iova + 64'(seek_q);
        m_q.seg[0].len <= m_q.seg[0].len - seek_q;
      end else begin
        seek_q <= seek_q - m_q.seg[0].len;
        m_q.seg[2:0] <= m_q.seg[3:1];
      end
    end
    if (frag_push) begin
      frag_q <= '{iova: m_q.seg[0].iova, len: flen, last: flen == frag_need};
      pkt_rem_q <= frag_need - flen;
      if (32'(flen) == m_q.seg[0].len) begin
        m_q.seg[2:0] <= m_q.seg[3:1];
      end else begin
        m_q.seg[0].iova <= m_q.seg[0].iova + 64'(flen);
        m_q.seg[0].len <= m_q.seg[0].len - 32'(flen);
      end
    end
    if (inl_push) begin
      inl_q <= inline_q;
      inl_len_q <= plen[6:0];
    end
    if (send) begin
      rem_q <= rem_q - 32'(plen);
      msg_end_q <= last;
      pkt_q <= '{qp: m_q.qp, wqe: m_q.idx, psn: st.psn,
                 opcode: packet_opcode(m_q.op, first, last, m_q.has_imm, m_q.has_inv) | service(m_q.qp_type),
                 ack_req: ack_req && m_q.qp_type == rnic_pkg::QpTypeRc,
                 report: ack_req && m_q.qp_type != rnic_pkg::QpTypeRc, solicited: m_q.solicited && last && !is_rd,
                 has_reth: (first && m_q.op == OpWrite) || m_q.op == OpRead,
                 has_atomic: is_rd && m_q.op != OpRead,
                 swap_add: m_q.seg[2].iova, compare: m_q.seg[3].iova,
                 has_imm: last && m_q.has_imm, has_ieth: last && m_q.has_inv,
                 has_deth: m_q.qp_type == rnic_pkg::QpTypeUd, raw: m_q.qp_type == rnic_pkg::QpTypeRaw, inl: m_q.inl,
                 has_aeth: 1'b0, has_value: 1'b0, response: 1'b0,
                 va: m_q.remote_addr + (is_rd ? 64'(st.off) : 64'd0), rkey: m_q.rkey,
                 dma_len: m_q.op == OpRead ? rem_q : m_q.total, imm: m_q.imm, len: plen};
    end
  end

  // the generation is looked at when the message comes
  logic unused;
  assign unused = ^m_q.gen;

endmodule
