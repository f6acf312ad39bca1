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
    logic        stride128;
    logic [2:0]  mtu;
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
    logic [2:0]  mtu;
    logic [23:0] pd;
  } wqe_item_t;

  typedef enum logic [1:0] {
    MsgSkip,   // nothing to do; carries the end of a ticket
    MsgNop,
    MsgWrite,
    MsgBad     // completes with `status`, then the QP goes to ERR
  } msg_kind_e;

  // A run of bytes in host memory.
  typedef struct packed {
    logic [63:0] iova;
    logic [31:0] len;
  } seg_t;

  // A WQE that was checked and translated.
  typedef struct packed {
    msg_kind_e   kind;
    logic [3:0]  status;     // wc_status of MsgBad
    logic        is_write;
    logic        last;       // last of its ticket
    qp_idx_t     qp;
    gen_t        gen;
    turn_t       turn;
    logic        turn_end;   // with last: the QP wants another turn
    wqe_idx_t    idx;
    logic [2:0]  mtu;
    logic        signaled;
    logic        solicited;
    logic [63:0] remote_addr;
    logic [31:0] rkey;
    logic [31:0] total;      // bytes
    seg_t [3:0]  seg;        // runs that are not empty, in order
  } msg_t;

  // A message in flight, in the ring of its QP at wqe index modulo 2^LogInflight.
  typedef enum logic [1:0] {
    FlightPackets,  // complete when last_psn is acknowledged
    FlightNop,      // complete when it is the oldest
    FlightError     // fails with `status` when it is the oldest
  } flight_kind_e;
  typedef struct packed {
    psn_t         last_psn;
    flight_kind_e kind;
    logic         signaled;
    logic         is_write;
    logic [3:0]   status;
  } flight_t;

endpackage
