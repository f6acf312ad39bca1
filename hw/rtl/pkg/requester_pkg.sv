// SPDX-License-Identifier: Apache-2.0
//
// Types that the parts of the requester speak among themselves: tickets (batches of WQEs on their way
// from host memory), checked messages, and the records of messages in flight.

package requester_pkg;
  import rnic_pkg::*;

  /* verilator lint_off UNUSEDPARAM */  // each part uses some of them
  localparam int unsigned NumTickets = 16;  // outstanding WQE reads, power of two
  localparam int unsigned TicketWqes = 4;   // WQEs per read at most
  /* verilator lint_on UNUSEDPARAM */

  // Generation of a QP's fetch pointer. It changes whenever the pointer is set back, so that tickets
  // taken out before are known as stale. 5 bits: between the issue of a ticket and its use there are at
  // most NumTickets others and three in the pipeline, and each can set the pointer back once.
  typedef logic [4:0] gen_t;
  // Number of a turn; tickets of one turn are neighbours. 5 bits for the same reason.
  typedef logic [4:0] turn_t;

  // WQEs first .. first+count-1 of a QP's send queue, with the QP's attributes as they were when
  // the ticket was taken out.
  typedef struct packed {
    qp_idx_t     qp;
    gen_t        gen;
    turn_t       turn;
    logic        turn_end;   // the QP's share is used up, it wants another turn after this ticket
    wqe_idx_t    first;
    logic [2:0]  count;
    logic        pushed;     // count is 1, and there is a copy of the WQE in this place of wqe_push
    copy_idx_t   copy_at;
    logic        stride128;
    logic [3:0]  qp_type;
    logic [2:0]  mtu;
    logic [4:0]  timeout;
    logic [3:0]  max_rd;     // READs and atomics outstanding at most, 0 to MaxRdAtomic
    logic        flow;       // the peer's credits are heeded
    logic [23:0] pd;
  } ticket_t;

  // What comes with one WQE that was read.
  typedef struct packed {
    logic        skip;       // a whole stale ticket: no WQE, only its end
    logic        err;        // host memory answered with an error
    logic        last;       // last of its ticket
    qp_idx_t     qp;
    gen_t        gen;
    turn_t       turn;
    logic        turn_end;
    wqe_idx_t    idx;
    logic        stride128;
    logic [3:0]  qp_type;
    logic [2:0]  mtu;
    logic [4:0]  timeout;
    logic [3:0]  max_rd;
    logic        flow;
    logic [23:0] pd;
  } wqe_item_t;

  typedef enum logic [2:0] {
    MsgSkip,   // nothing to do; carries the end of a ticket
    MsgNop,
    MsgPackets,
    MsgChange, // of a memory region or window, done once
    MsgBad     // completes with `status`, then the QP goes to ERR
  } msg_kind_e;

  // Operations that make packets; OpNone stands for NOP and for what could not be read.
  typedef enum logic [2:0] {
    OpNone, OpWrite, OpSend, OpLocalInv, OpBindMw, OpRead, OpCmpSwap, OpFetchAdd
  } msg_op_e;

  // READ or atomic: one request packet, answered by responses
  function automatic logic op_is_rd(input msg_op_e op);
    return op inside {OpRead, OpCmpSwap, OpFetchAdd};
  endfunction

  // Number of a READ or atomic of a QP, modulo 16: tells 0 to MaxRdAtomic outstanding ones apart.
  typedef logic [LogMaxRd:0] rd_num_t;

  // A run of bytes in host memory.
  typedef struct packed {
    logic [63:0] iova;
    logic [31:0] len;
  } seg_t;

  // A WQE that was checked and translated.
  typedef struct packed {
    msg_kind_e   kind;
    logic [3:0]  status;     // wc_status of MsgBad
    msg_op_e     op;
    logic        has_imm;    // immediate data in `imm`
    logic        has_inv;    // key to invalidate in `imm`
    logic        inl;        // payload is in the WQE, not in `seg`
    logic        fence;      // not before all READs and atomics ahead of it are complete
    logic [3:0]  max_rd;
    logic        credit;     // takes one of the peer's credits
    logic        last;       // last of its ticket
    qp_idx_t     qp;
    gen_t        gen;
    turn_t       turn;
    logic        turn_end;   // with last: the QP wants another turn
    wqe_idx_t    idx;
    logic [3:0]  qp_type;
    logic [2:0]  mtu;
    logic [4:0]  timeout;
    logic        signaled;
    logic        solicited;
    logic [63:0] remote_addr;
    logic [31:0] rkey;
    logic [31:0] total;      // bytes
    logic [31:0] imm;        // as a number: its high byte goes to the wire first
    logic [23:0] pd;
    logic [3:0]  bind_how;   // zero-based, remote atomic, read, write
    seg_t [3:0]  seg;        // runs that are not empty, in order. READ, atomic: `iova` is the address in the MR of
    logic [3:0][31:0] lkey;  // this key; seg[2].iova and seg[3].iova of an atomic: swap_add and compare
                             // MsgChange: lkey[0] of the MR that a window is bound to; its range is seg[0], the key is rkey
  } msg_t;

  // A message in flight, in the ring of its QP at wqe index modulo 2^LogInflight. A WQE that is sent again
  // rewrites its entry.
  typedef enum logic [1:0] {
    FlightPackets,  // complete when last_psn is acknowledged
    FlightNop,      // complete when it is the oldest
    FlightError,    // fails with `status` when it is the oldest
    FlightPart      // its last packet has never been sent
  } flight_kind_e;
  typedef struct packed {
    psn_t         last_psn;
    flight_kind_e kind;
    logic         signaled;
    logic         credit;
    msg_op_e      op;
    logic [3:0]   status;
  } flight_t;

  // Credits of the peer (IBTA 9.7.7.2). Messages that use a receive WQE of the peer are counted from the start of the connection,
  // modulo 2^24; those before `limit` have one. It is the limit sequence number of IBTA without the messages that
  // need no credit: an AETH's count follows the messages that its PSN completes.
  typedef logic [23:0] credit_t;
  /* verilator lint_off UNUSEDPARAM */
  // A QP without credits and with nothing outstanding tries all the same after 4.096 us * 2^this: an update may be
  // lost, and not every peer sends them. About as long as RNR waits are.
  localparam logic [4:0] CreditTimer = 5'd8;
  /* verilator lint_on UNUSEDPARAM */

  // Bytes of inline data at most: a WQE of 128 bytes less its head of 32.
  /* verilator lint_off UNUSEDPARAM */
  localparam int unsigned InlineBytes = 96;
  /* verilator lint_on UNUSEDPARAM */

  // Where the sending side of a QP stands, and where it stood at its farthest.
  typedef struct packed {
    wqe_idx_t next;       // WQE to send
    psn_t     psn;        // PSN to send
    wqe_idx_t max_next;   // behind the newest WQE ever sent whole
    psn_t     max_psn;    // behind the newest PSN ever sent
    logic     changing;   // WQE `max_next` is a change of the MR table that was asked for
  } sent_t;

  // What brings a QP's retry state up to date (retry_ctl).
  typedef enum logic [1:0] {
    CauseAck,      // acknowledges or local completions
    CauseNakSeq,   // NAK PSN sequence error
    CauseRnr,      // RNR NAK
    CauseTimer     // its timer expired
  } retry_cause_e;
  typedef struct packed {
    retry_cause_e cause;
    logic         progress;     // the oldest unacknowledged PSN moved
    logic         implied;      // CauseNakSeq: no NAK came, but something behind a missing response
    logic         outstanding;  // packets are unacknowledged
    logic         behind;       // the sending position is before what was acknowledged or completed
    logic         rewound;      // the sending position is at the oldest unacknowledged PSN
    logic [4:0]   rnr_code;     // timer code of the RNR NAK
    logic [4:0]   timeout;
    logic [2:0]   retry_cnt;
    logic [2:0]   rnr_retry;
  } retry_ask_t;
  typedef struct packed {
    logic restart;   // set the sending position back to the oldest unacknowledged PSN
    logic pause;     // with restart: send nothing until the RNR timer expires
    logic fail;      // retries are exhausted: the oldest WQE fails
    logic fail_rnr;  // with fail: by RNR NAKs
  } retry_act_t;

  // ---- what is kept of a QP that has nothing under way (docs/qp-cache.md), by the part that keeps it ----------
  // tx_scheduler
  typedef struct packed {
    wqe_idx_t    pi;
    wqe_idx_t    fetch;      // next WQE to be fetched
    logic [3:0]  size;       // of its last message, log2
    logic        blocked;    // sleeps until it is woken
    logic        paused;     // until its RNR timer expires
  } sched_keep_t;
  // segmenter
  typedef struct packed {
    wqe_idx_t    next;
    logic [31:0] off;        // bytes of WQE `next` sent
    psn_t        psn;        // next PSN
    logic [7:0]  since_req;  // packets of this message since AckReq
    logic        ack_req;    // newest packet asked for an acknowledge
    logic        halt;       // a WQE was bad: nothing more is sent
    logic        failed;     // the change of WQE max_next-1 was refused
    wqe_idx_t    max_next;   // behind the newest WQE ever sent whole
    psn_t        max_psn;    // behind the newest PSN ever sent
    psn_t        rd_psn;     // behind the newest READ or atomic, or what was unacknowledged later
    rd_num_t     rd_num;     // READs and atomics sent
    credit_t     used;       // messages before `next` that took a credit
    logic        probe;      // one may go without
  } send_t;
  // completer: the WQE that brought the QP into ERR, or will when those before it are complete, until it has its CQE
  typedef struct packed {
    wqe_idx_t    wqe;
    logic [7:0]  status;
    logic [7:0]  syndrome;
  } fate_t;
  typedef struct packed {
    psn_t        una;        // oldest unacknowledged PSN
    psn_t        base;       // first PSN of WQE ci
    wqe_idx_t    ci;         // WQEs completed
    logic        err;
    logic        flushed;    // the first flush has come
    logic        fated;
    fate_t       fate;
    credit_t     used;       // messages complete that took a credit
    credit_t     limit;      // those that have one
    logic        unlimited;
    logic        notify;     // SQD: to be told when it is drained
  } cpl_keep_t;
  // retry_ctl
  localparam int unsigned TickW = 48;
  typedef logic [TickW-1:0] tick_t;  // of 256 cycles
  typedef struct packed {
    logic [2:0]  retry;      // restarts without progress
    logic [2:0]  rnr;
  } retry_count_t;
  typedef struct packed {
    retry_count_t count;
    logic        waiting;    // for the RNR timer
    logic        armed;      // its timer was started, and its expiry was not taken
    tick_t       deadline;
  } retry_keep_t;
  // read_table
  typedef struct packed {
    rd_num_t     num;        // `taken`
    logic        part;       // some responses of entry `num` were taken, the next one is that of `psn`
    logic        gap;
    psn_t        psn;
  } recv_t;
  typedef struct packed {
    rd_num_t     made;
    rd_num_t     done;
    recv_t       recv;
  } rd_keep_t;
  typedef struct packed {
    logic        sqd;        // SQD: no message is begun
    sched_keep_t sched;
    send_t       seg;
    cpl_keep_t   cpl;
    retry_keep_t retry;
    rd_keep_t    rd;
  } req_keep_t;
  // and one message in flight, or one READ, of those that may be outstanding
  /* verilator lint_off UNUSEDPARAM */
  typedef enum logic [1:0] {KeepState, KeepFlight, KeepRead} keep_e;
  /* verilator lint_on UNUSEDPARAM */

endpackage
