// SPDX-License-Identifier: Apache-2.0
//
// Send queue scheduler: doorbells, the rotation of active QPs, and the fetch pointer of every QP.
//
// A doorbell that finds nobody in the rotation takes its ticket out at once. A copy of the newest WQE that came with the doorbell stays with
// the QP until a ticket for that WQE alone is taken out, and goes with it; it is given up when the WQE is fetched with others, or there is a newer doorbell.
//
// A QP wants a turn when something happened that may give it work: a doorbell, an acknowledge that woke it, the end of a turn that left
// work. Turns are given by the rotation here, which holds a few QPs (RotMax), and behind it by a list outside, of any number of QPs, which
// need no slot while they wait there. A doorbell has waited in that list with its QP, so it waits on for a place in the rotation, which is its QP's turn. A QP that
// wants a turn for another reason is put into the rotation if nobody waits in the list and there is room, else it is handed out
// (leave_*); when it is at the head of the list it comes back (turn_*) and gets a place in the rotation if it still has work and may
// send. So everybody has one turn and goes to the tail. A QP in the rotation or on its way out (bit `queued`) wants no
// other turn; one that was handed out may be handed out again, and one that comes back without need has no effect. At the head of the rotation its
// attributes are read and tickets are taken out for its WQEs; when nothing is left to fetch, or when its
// share of tickets is used up and others wait, the next QP follows. Nobody else waiting: the turn goes on.
// A QP that is stopped by its window, by its peer's credits or by its message ring sleeps (bit `blocked`) until the
// completer wakes it, or, stopped in SQD before a message that was not begun, until it leaves SQD; one that waits for its RNR timer
// (bit `paused`) sleeps until its restart. Doorbell, stop,
// restart, wake, turn, and ticket are each one cycle ("operation") and never share a
// cycle, and each looks at the state as it is in that cycle: no wake-up can be lost.
//
// Throughput: one ticket (up to 4 WQEs) per 3 cycles with QP answers after one cycle; a doorbell takes 3.
// Latency: doorbell to ticket 2 cycles, by way of the rotation 6. Back-pressure: doorbells wait (db_ready_o), tickets wait for room. What may
// hand out a QP waits for leave_ready_i, which must come by itself; turn_i waits for a place in the rotation, and what wants a turn does not take
// it away. The rotation moves on without leave_ready_i.
// Invariant, modulo 2^16: ci <= next <= fetch pointer <= pi <= ci + ring size; fetch pointer < ci + 2^LogInflight.
// Turns: the share in tickets follows quantum_log_i and the size of the QP's last message; the
// segmenter cuts a turn at the exact byte count.

module tx_scheduler
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned RotMax = 32   // places in the rotation, a power of two
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic [3:0]     quantum_log_i,
  // doorbells
  input  logic           db_valid_i,
  output logic           db_ready_o,
  input  qp_idx_t        db_qp_i,
  input  logic [15:0]    db_pi_i,
  input  wqe_copy_t      db_copy_i,    // of the newest WQE
  output logic           copy_free_o,  // a copy without use
  output copy_idx_t      copy_at_o,
  output logic           ev_bad_db_o,
  output logic           db_busy_o,
  output logic           posted_o,     // a doorbell of op_qp_o is taken
  // QP in ERR got a doorbell: flush it
  output logic           flush_valid_o,
  input  logic           flush_ready_i,
  output qp_idx_t        flush_idx_o,
  // QP read ports: a for doorbells, b for tickets
  output logic           qpa_req_valid_o,
  input  logic           qpa_req_ready_i,
  output qp_idx_t        qpa_req_idx_o,
  input  logic           qpa_rsp_valid_i,
  input  qp_attr_t       qpa_rsp_i,
  output logic           qpb_req_valid_o,
  input  logic           qpb_req_ready_i,
  output qp_idx_t        qpb_req_idx_o,
  input  logic           qpb_rsp_valid_i,
  input  qp_attr_t       qpb_rsp_i,
  // administration: while hold_i nothing else changes state; init_i clears QP adm_qp_i
  input  logic           hold_i,
  input  logic           init_i,
  input  logic           resume_i,     // a turn for QP adm_qp_i: it left SQD
  input  qp_idx_t        adm_qp_i,
  output wqe_idx_t       adm_pi_o,
  // with hold_i: what is kept of adm_qp_i; load_i writes it
  input  logic           load_i,
  input  sched_keep_t    keep_i,
  output sched_keep_t    keep_o,
  input  qp_idx_t        probe_qp_i,
  output logic           busy_o,       // something of probe_qp_i is under way
  // with 1 the next cycle with hold_i may give a turn
  output logic           room_o,
  // the list of those who wait for a place in the rotation: somebody is there; QPs for its tail; the one at its head
  input  logic           list_busy_i,
  output logic           leave_valid_o,
  input  logic           leave_ready_i,
  output qp_idx_t        leave_qp_o,
  input  logic           turn_valid_i,
  output logic           turn_ready_o,
  input  qp_idx_t        turn_qp_i,
  // state of others, looked up for op_qp_o
  output qp_idx_t        op_qp_o,
  input  wqe_idx_t       op_ci_i,
  input  logic           op_err_i,
  // segmenter gives up a turn: fetch again from stop_next_i; sleep if stop_closed_i
  input  logic           stop_valid_i,
  output logic           stop_ready_o,
  input  qp_idx_t        stop_qp_i,
  input  wqe_idx_t       stop_next_i,
  input  logic           stop_closed_i,
  // segmenter has done the last ticket of a turn: another turn
  input  logic           again_valid_i,
  output logic           again_ready_o,
  // retries: fetch again from rst_next_i, at once or (pause) after the next restart. Only with room_o and without hold_i
  input  logic           rst_valid_i,
  input  qp_idx_t        rst_qp_i,
  input  wqe_idx_t       rst_next_i,
  input  logic           rst_pause_i,
  // completer moved on
  input  logic           wake_valid_i,
  output logic           wake_ready_o,
  input  qp_idx_t        wake_qp_i,
  // look-ups
  input  qp_idx_t        gen_a_qp_i,
  output gen_t           gen_a_o,
  input  qp_idx_t        gen_b_qp_i,
  output gen_t           gen_b_o,
  output logic           gen_b_paused_o,
  input  qp_idx_t        pi_qp_i,
  output wqe_idx_t       pi_o,
  // does anyone but this QP, in this turn, want to send?
  input  qp_idx_t        seg_qp_i,
  input  turn_t          seg_turn_i,
  output logic           others_o,
  // size of a message of a QP, log2
  input  logic           size_we_i,
  input  qp_idx_t        size_qp_i,
  input  logic [3:0]     size_lg_i,
  // tickets
  output logic           tkt_valid_o,
  input  logic           tkt_ready_i,  // stays 1 until a ticket is taken
  output ticket_t        tkt_o,
  output logic [63:0]    tkt_base_o,   // address of the ring
  output logic [14:0]    tkt_slot_o,   // slot of the first WQE
  output logic           fetching_o,   // a QP's attributes are being used
  output logic           idle_o
);

  localparam wqe_idx_t RingLimit = wqe_idx_t'((1 << LogInflight) - 1);

  // ---- state per QP ------------------------------------------------------------------------------
  wqe_idx_t pi_mem[NumQp];
  wqe_idx_t fetch_mem[NumQp];
  gen_t gen_mem[NumQp];
  logic [3:0] size_mem[NumQp];
  wqe_copy_t copy_mem[NumQp];
  logic [NumQp-1:0] copy_q;  // there is one
  logic [NumQp-1:0] queued_q, blocked_q, paused_q;
  logic [NumQp-1:0] away_q;  // queued, but back in the rotation only after its tickets are done

  // ---- one operation per cycle -------------------------------------------------------------------
  typedef enum logic [3:0] {
    OpNothing, OpHold, OpRestart, OpStop, OpAgain, OpWake, OpDoorbell, OpTurn, OpIssue
  } op_e;
  op_e op;
  logic db_op_req, issue_op_req;
  logic wake_real, rot_ready;
  qp_idx_t op_qp;
  qp_idx_t db_qp_q, cur_q;
  wqe_idx_t op_pi, op_fetch;
  gen_t op_gen;
  logic op_blocked, op_queued, op_away;
  wqe_copy_t op_copy;

  assign wake_real = wake_valid_i && blocked_q[wake_qp_i] && !paused_q[wake_qp_i];

  always_comb begin
    op = OpNothing;
    op_qp = cur_q;
    if (hold_i) begin
      op = OpHold;
      op_qp = adm_qp_i;
    end else if (rst_valid_i) begin
      op = OpRestart;
      op_qp = rst_qp_i;
    end else if (stop_valid_i && room_o) begin
      op = OpStop;
      op_qp = stop_qp_i;
    end else if (again_valid_i && room_o) begin
      op = OpAgain;
      op_qp = stop_qp_i;
    end else if (wake_real && room_o) begin
      op = OpWake;
      op_qp = wake_qp_i;
    end else if (db_op_req && rot_ready && room_o) begin
      op = OpDoorbell;
      op_qp = db_qp_q;
    end else if (turn_valid_i && rot_ready) begin
      op = OpTurn;
      op_qp = turn_qp_i;
    end else if (issue_op_req) begin
      op = OpIssue;
    end
  end

  assign op_qp_o = op_qp;
  assign op_pi = pi_mem[op_qp];
  assign op_fetch = fetch_mem[op_qp];
  assign op_gen = gen_mem[op_qp];
  assign op_blocked = blocked_q[op_qp];
  assign op_queued = queued_q[op_qp];
  assign op_away = away_q[op_qp];
  assign adm_pi_o = op_pi;
  assign keep_o = '{pi: op_pi, fetch: op_fetch, size: size_mem[op_qp], blocked: op_blocked, paused: paused_q[op_qp]};
  always_comb begin
    op_copy = copy_mem[op_qp];
    op_copy.valid = copy_q[op_qp];
  end
  assign gen_a_o = gen_mem[gen_a_qp_i];
  assign gen_b_o = gen_mem[gen_b_qp_i];
  assign gen_b_paused_o = paused_q[gen_b_qp_i];
  assign pi_o = pi_mem[pi_qp_i];
  assign stop_ready_o = op == OpStop;
  assign again_ready_o = op == OpAgain;
  assign turn_ready_o = op == OpTurn;
  assign wake_ready_o = op == OpWake || (wake_valid_i && !wake_real && !hold_i);

  // ---- doorbells -----------------------------------------------------------------------------------
  typedef enum logic [2:0] {DbIdle, DbRequest, DbAnswer, DbApply, DbFlush} db_state_e;
  db_state_e db_state_q;
  wqe_idx_t db_pi_q;
  qp_state_e db_qp_state_q;
  logic [3:0] db_log_q;
  wqe_idx_t db_new_span, db_old_span;
  logic db_ok, db_err, ev_bad_db_q, db_here;
  wqe_copy_t db_copy_q;

  assign db_ready_o = db_state_q == DbIdle;
  assign db_busy_o = db_state_q != DbIdle;
  assign db_here = db_state_q == DbIdle && db_valid_i;
  assign qpa_req_valid_o = db_state_q == DbRequest || db_here;
  assign qpa_req_idx_o = db_here ? db_qp_i : db_qp_q;
  assign db_op_req = db_state_q == DbApply;
  assign flush_valid_o = db_state_q == DbFlush;
  assign flush_idx_o = db_qp_q;
  assign ev_bad_db_o = ev_bad_db_q;

  assign db_new_span = db_pi_q - op_ci_i;
  assign db_old_span = op_pi - op_ci_i;
  assign db_err = db_qp_state_q == QpErr || op_err_i;
  assign db_ok = (db_qp_state_q inside {QpRts, QpSqd, QpErr}) && db_new_span >= db_old_span &&
                 db_new_span <= (16'd1 << db_log_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      db_state_q <= DbIdle;
      ev_bad_db_q <= 1'b0;
    end else begin
      ev_bad_db_q <= 1'b0;
      unique case (db_state_q)
        DbIdle: if (db_valid_i) db_state_q <= qpa_req_ready_i ? DbAnswer : DbRequest;
        DbRequest: if (qpa_req_ready_i) db_state_q <= DbAnswer;
        DbAnswer: if (qpa_rsp_valid_i) db_state_q <= DbApply;
        DbApply: if (op == OpDoorbell) begin
          db_state_q <= db_ok && db_err ? DbFlush : DbIdle;
          ev_bad_db_q <= !db_ok;
        end
        default: if (flush_ready_i) db_state_q <= DbIdle;
      endcase
    end
    if (db_valid_i && db_ready_o) begin
      db_qp_q <= db_qp_i;
      db_pi_q <= db_pi_i;
      db_copy_q <= db_copy_i;
    end
    if (qpa_rsp_valid_i) begin
      db_qp_state_q <= qpa_rsp_i.state;
      db_log_q <= qpa_rsp_i.log_sq_size;
    end
  end

  // ---- rotation --------------------------------------------------------------------------------------
  logic want, push, rot_valid, rot_pop, others_wait;
  qp_idx_t rot_qp;
  logic [$clog2(RotMax):0] rot_level;
  logic leave_ready;
  logic [2:0] leave_level;

  // others wait outside, or are on their way there
  assign others_wait = list_busy_i || turn_valid_i || leave_valid_o;
  assign push = want && (op inside {OpTurn, OpDoorbell} || (!others_wait && rot_ready));
  assign room_o = leave_level < 3'd3;

  rnic_fifo #(.Width(QpIdxW), .Depth(4)) u_leave (
    .clk_i, .rst_ni,
    .in_valid_i(want && !push), .in_ready_o(leave_ready), .in_data_i(op_qp),
    .out_valid_o(leave_valid_o), .out_ready_i(leave_ready_i), .out_data_o(leave_qp_o), .level_o(leave_level)
  );
  rnic_fifo #(.Width(QpIdxW), .Depth(RotMax)) u_rotation (
    .clk_i, .rst_ni,
    .in_valid_i(push), .in_ready_o(rot_ready), .in_data_i(op_qp),
    .out_valid_o(rot_valid), .out_ready_i(rot_pop), .out_data_o(rot_qp), .level_o(rot_level)
  );

  // ---- tickets ---------------------------------------------------------------------------------------
  typedef enum logic [1:0] {FetchPick, FetchRequest, FetchAnswer, FetchIssue} fetch_state_e;
  fetch_state_e fetch_state_q;
  logic cur_valid_q;
  logic [3:0] share_q, used_q;        // tickets of this turn
  logic att_rts_q, att_stride128_q;
  logic att_db_q;                     // the attributes are those of the doorbell
  qp_attr_t att_in;
  logic [3:0] att_type_q;
  logic [2:0] att_mtu_q;
  logic [4:0] att_timeout_q;
  logic [3:0] att_max_rd_q;
  logic att_flow_q;
  logic [23:0] att_pd_q;
  logic [63:0] att_base_q;
  logic [3:0] att_log_q;

  // turns as the segmenter sees them
  turn_t turn_q, turn_d;
  qp_idx_t turn_qp_q;
  logic turn_open_q;

  assign rot_pop = fetch_state_q == FetchPick && rot_valid;
  assign qpb_req_valid_o = fetch_state_q == FetchRequest && tkt_ready_i;
  assign qpb_req_idx_o = cur_q;
  assign issue_op_req = fetch_state_q == FetchIssue;
  assign fetching_o = fetch_state_q inside {FetchAnswer, FetchIssue};
  assign idle_o = fetch_state_q == FetchPick && !rot_valid && db_state_q == DbIdle && !leave_valid_o && !turn_valid_i;

  function automatic logic [2:0] sat4(input logic [15:0] v);
    return v >= 16'd4 ? 3'd4 : v[2:0];
  endfunction
  function automatic logic [2:0] min3(input logic [2:0] a, input logic [2:0] b);
    return a < b ? a : b;
  endfunction

  wqe_idx_t avail, room, to_end;
  logic [14:0] slot;
  logic [5:0] page_slot, page_left64;
  logic [4:0] page_left128;
  logic [2:0] count;
  logic runnable, issue, out_of_room, exhausted, turn_over, direct, pushed;
  wqe_copy_t copy;

  assign avail = (fetch_state_q == FetchIssue ? op_pi : db_pi_q) - op_fetch;
  assign room = op_ci_i + RingLimit - op_fetch;
  assign slot = op_fetch[14:0] & 15'((16'd1 << att_log_q) - 16'd1);
  assign to_end = (16'd1 << att_log_q) - 16'(slot);
  // place of the first WQE in its 4 KiB page, in strides
  assign page_slot = att_stride128_q ? {1'b0, att_base_q[11:7] + slot[4:0]} :
                                       att_base_q[11:6] + slot[5:0];
  assign page_left64 = 6'd63 - page_slot;
  assign page_left128 = 5'd31 - page_slot[4:0];
  assign count = min3(min3(sat4(avail), sat4(room)),
                      min3(sat4(to_end),
                           sat4(16'd1 + (att_stride128_q ? 16'(page_left128) : 16'(page_left64)))));
  assign runnable = att_rts_q && !op_blocked && !op_err_i && avail != '0;
  assign out_of_room = runnable && room == '0;
  assign issue = runnable && room != '0;
  assign exhausted = issue && avail == 16'(count);
  assign turn_over = issue && !exhausted && (rot_valid || others_wait) && used_q >= share_q;
  assign turn_d = turn_open_q && turn_qp_q == op_qp ? turn_q : turn_q + 1'b1;
  assign direct = op == OpDoorbell && db_ok && !db_err && !op_queued && att_db_q && issue &&
                  fetch_state_q == FetchPick && !rot_valid && !turn_valid_i && tkt_ready_i && !op_copy.valid;

  // a copy is of the newest WQE, so that of the only one to fetch
  assign copy = op == OpDoorbell ? db_copy_q : op_copy;
  assign pushed = tkt_valid_o && copy.valid && avail == 16'd1 && copy.long_wqe == att_stride128_q;
  assign tkt_valid_o = (op == OpIssue && issue) || direct;
  assign tkt_o = '{qp: op_qp, gen: op_gen, turn: turn_d, turn_end: turn_over, first: op_fetch,
                   count: count, copy_at: copy.at, pushed: pushed,
                   stride128: att_stride128_q, qp_type: att_type_q, mtu: att_mtu_q,
                   timeout: att_timeout_q, max_rd: att_max_rd_q, flow: att_flow_q, pd: att_pd_q};
  assign tkt_base_o = att_base_q;
  assign tkt_slot_o = slot;

  // Share of a QP: as many tickets as its quantum may need, judged by its last message.
  logic [3:0] size_lg;
  logic [3:0] share_lg;
  assign size_lg = size_mem[rot_qp];
  assign share_lg = quantum_log_i > size_lg + 4'd2 ? quantum_log_i - size_lg - 4'd2 : 4'd0;

  assign att_in = qpb_rsp_valid_i ? qpb_rsp_i : qpa_rsp_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fetch_state_q <= FetchPick;
      att_db_q <= 1'b0;
      cur_valid_q <= 1'b0;
      turn_open_q <= 1'b0;
      turn_q <= '0;
    end else begin
      unique case (fetch_state_q)
        FetchPick: if (rot_valid) begin
          fetch_state_q <= FetchRequest;
          cur_valid_q <= 1'b1;
          cur_q <= rot_qp;
          used_q <= 4'd1;
          share_q <= share_lg >= 4'd3 ? 4'd8 : 4'd1 << share_lg[1:0];
        end
        FetchRequest: if (tkt_ready_i && qpb_req_ready_i) fetch_state_q <= FetchAnswer;
        FetchAnswer: if (qpb_rsp_valid_i) fetch_state_q <= FetchIssue;
        default: if (op == OpIssue) begin
          if (!issue || exhausted || turn_over) begin
            fetch_state_q <= FetchPick;
            cur_valid_q <= 1'b0;
          end else begin
            fetch_state_q <= FetchRequest;
            if (!used_q[3]) used_q <= used_q + 1'b1;
          end
        end
      endcase
      if (qpb_rsp_valid_i) att_db_q <= 1'b0;
      else if (qpa_rsp_valid_i) att_db_q <= fetch_state_q == FetchPick;
      if (tkt_valid_o) begin
        turn_open_q <= 1'b1;
        turn_qp_q <= op_qp;
        turn_q <= turn_d;
      end
      if (op == OpStop || op == OpRestart || (op == OpHold && load_i)) turn_open_q <= 1'b0;  // the turn of another QP is not its
    end
    if (qpb_rsp_valid_i || (qpa_rsp_valid_i && fetch_state_q == FetchPick)) begin
      att_rts_q <= att_in.state inside {QpRts, QpSqd};
      att_stride128_q <= att_in.sq_stride128;
      att_type_q <= att_in.qp_type;
      att_mtu_q <= att_in.path_mtu;
      att_timeout_q <= att_in.timeout;
      att_max_rd_q <= att_in.max_rd_atomic > 8'(MaxRdAtomic) ? 4'(MaxRdAtomic) : att_in.max_rd_atomic[3:0];
      att_flow_q <= att_in.flow_control && att_in.qp_type == rnic_pkg::QpTypeRc;
      att_pd_q <= att_in.pd;
      att_base_q <= att_in.sq_addr;
      att_log_q <= att_in.log_sq_size;
    end
  end

  // ---- effects of the operations ---------------------------------------------------------------------
  logic db_taken;
  assign db_taken = op == OpDoorbell && db_ok;
  assign posted_o = db_taken;

  always_comb begin
    unique case (op)
      OpHold: want = resume_i && !op_queued && !paused_q[op_qp];
      OpRestart: want = !rst_pause_i && (!op_queued || op_away);
      OpStop: want = !stop_closed_i && (!op_queued || op_away);
      OpAgain: want = op_away;
      OpWake: want = !op_queued;
      OpDoorbell: want = db_ok && !db_err && !op_queued && !(direct && exhausted);
      OpTurn: want = op_pi != op_fetch && !op_queued && !op_blocked && !paused_q[op_qp];
      default: want = 1'b0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      queued_q <= '0;
      blocked_q <= '0;
      away_q <= '0;
      paused_q <= '0;
    end else begin
      if (leave_valid_o && leave_ready_i) queued_q[leave_qp_o] <= 1'b0;
      if (want) queued_q[op_qp] <= 1'b1;
      else if (op == OpIssue ? !issue || exhausted :
               op_away && (op == OpStop || op == OpRestart || (op == OpHold && init_i))) queued_q[op_qp] <= 1'b0;
      if (op == OpIssue && turn_over) away_q[op_qp] <= 1'b1;
      else if (op == OpStop || op == OpRestart || op == OpAgain || (op == OpHold && init_i)) away_q[op_qp] <= 1'b0;
      unique case (op)
        OpHold: if (init_i || load_i) begin
          blocked_q[op_qp] <= load_i && keep_i.blocked;
          paused_q[op_qp] <= load_i && keep_i.paused;
        end else if (resume_i && !paused_q[op_qp]) begin
          blocked_q[op_qp] <= 1'b0;
        end
        OpRestart: begin
          blocked_q[op_qp] <= rst_pause_i;
          paused_q[op_qp] <= rst_pause_i;
        end
        OpStop: if (stop_closed_i) blocked_q[op_qp] <= 1'b1;
        OpWake: blocked_q[op_qp] <= 1'b0;
        OpIssue: if (out_of_room) blocked_q[op_qp] <= 1'b1;
        default: ;
      endcase
    end
    if (db_taken || (op == OpHold && (init_i || load_i))) pi_mem[op_qp] <= init_i ? '0 : load_i ? keep_i.pi : db_pi_q;
    if (op == OpStop || op == OpRestart || tkt_valid_o || (op == OpHold && (init_i || load_i))) begin
      fetch_mem[op_qp] <= init_i ? '0 : load_i ? keep_i.fetch : op == OpStop ? stop_next_i :
                          op == OpRestart ? rst_next_i : op_fetch + 16'(count);
    end
    if (op == OpStop || op == OpRestart || (op == OpHold && init_i)) gen_mem[op_qp] <= op_gen + 1'b1;
    // the segmenter is held while a QP is cleared
    if (size_we_i || init_i || load_i) size_mem[init_i || load_i ? op_qp : size_qp_i] <= init_i ? 4'd10 : load_i ? keep_i.size : size_lg_i;
  end

  // ---- copies ----------------------------------------------------------------------------------------
  logic copy_keep, copy_drop;   // what came with the doorbell; what the QP has
  assign copy_keep = db_taken && !db_err && !(direct && exhausted);
  always_comb begin
    unique case (op)
      OpDoorbell: copy_drop = copy_keep;
      OpIssue: copy_drop = !issue || exhausted;
      OpHold: copy_drop = init_i || load_i;
      default: copy_drop = 1'b0;
    endcase
  end
  // a doorbell that takes its ticket out itself finds none
  assign copy_free_o = !pushed && (copy_drop ? op_copy.valid : op == OpDoorbell && !copy_keep && db_copy_q.valid);
  assign copy_at_o = copy_drop ? op_copy.at : db_copy_q.at;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) copy_q <= '0;
    else if (copy_keep) copy_q[op_qp] <= db_copy_q.valid;
    else if (copy_drop) copy_q[op_qp] <= 1'b0;
    if (copy_keep) copy_mem[op_qp] <= db_copy_q;
  end

  // ---- who else waits --------------------------------------------------------------------------------
  logic self_in_rotation;
  assign self_in_rotation = queued_q[seg_qp_i] && !away_q[seg_qp_i] && !(cur_valid_q && cur_q == seg_qp_i);
  assign others_o = list_busy_i || turn_valid_i || (QpIdxW + 1)'(rot_level) + (QpIdxW + 1)'(leave_level) > (QpIdxW + 1)'(self_in_rotation) ||
                    (cur_valid_q && cur_q != seg_qp_i) || turn_q != seg_turn_i;

  assign busy_o = queued_q[probe_qp_i] || (cur_valid_q && cur_q == probe_qp_i) || (db_state_q != DbIdle && db_qp_q == probe_qp_i);

  // There is always room for a QP that leaves (room_o); data of the attributes that the requester has no use for end here.
  logic unused;
  assign unused = ^{leave_ready, qpa_rsp_i, att_in};

endmodule
