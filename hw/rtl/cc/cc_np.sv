// SPDX-License-Identifier: Apache-2.0
//
// Notification point of DCQCN (docs/dcqcn.md): which packets with a CE mark are answered by a CNP, and when.
//
// A mark of a flow without an open window makes a CNP at once and opens a window of min_us_i microseconds. Marks in a window are only
// noted. At its end, if one was noted, another CNP is made and the next window opens; else the flow has none. So a flow
// has at most one CNP per window, and the last mark is always answered. min_us_i 0: every mark is answered, no window opens.
// A flow is a QP, or with per_port_i the whole port: then the CNP at the end of a window goes to the QP that was marked last.
//
// State is kept by QPN, two bits each (flow 0, which is no QP's number, is the port), beside a queue of the open windows with their ends. All windows are equally
// long, so they end in order. After a change of min_us_i, of per_port_i or of the enables windows that are open go on; one that opens behind
// a longer one ends no earlier than that. A flow has one window at most, so the queue cannot overflow.
//
// forget: the QP of that number begins another life, marks of the former one make no CNP. Its window goes on: what the new QP receives
// in it is answered at its end.
//
// Time may jump (docs/architecture.md): wake_o is the end of the first window, marked or not, which also keeps compares of ends valid. wake_valid_o is 0 while
// anything else is going on.
//
// Throughput: one mark, end or forget per cycle (one of the same flow as the one before: 2 cycles). Latency: mark to CNP 3 cycles.
// Back-pressure: a CNP waits for cnp_ready_i; marks are never held: up to MarkDepth wait, and one that finds no room is lost. After reset
// the state is cleared, which takes 2^NumW / Banks cycles; marks that come meanwhile wait.

module cc_np
  import rnic_pkg::*;
#(
  parameter int unsigned NumW = QpnW,       // bits of a QPN
  parameter int unsigned ClkPs = 4000,      // 1000 or more
  parameter int unsigned Banks = 16,        // of the state
  parameter int unsigned MarkDepth = 16
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic [63:0]     time_i,
  // registers np_*
  input  logic            enable_i,
  input  logic            per_port_i,
  input  logic [7:0]      prio_mask_i,
  input  logic [11:0]     min_us_i,
  // a data packet with a CE mark
  input  logic            mark_valid_i,
  input  logic [NumW-1:0] mark_qpn_i,
  input  logic [2:0]      mark_prio_i,
  input  logic            forget_valid_i,   // 16 cycles apart; no mark of it meanwhile
  input  logic [NumW-1:0] forget_qpn_i,
  // a CNP is due
  output logic            cnp_valid_o,
  input  logic            cnp_ready_i,
  output logic [NumW-1:0] cnp_qpn_o,
  output logic            wake_valid_o,
  output logic [63:0]     wake_o,
  output logic            idle_o
);

  localparam int unsigned CycPerUs = (1_000_000 + ClkPs - 1) / ClkPs;
  localparam int unsigned LenW = 22;        // 4095 us in cycles
  localparam int unsigned TimeW = LenW + 2; // ends are compared modulo 2^TimeW
  typedef logic [NumW-1:0] num_t;
  typedef logic [TimeW-1:0] time_t;
  typedef struct packed {
    logic forget;
    num_t qpn;
  } event_t;
  typedef struct packed {
    logic open;       // a window runs
    logic marked;     // a mark came in it
  } flow_t;
  typedef struct packed {
    num_t  flow;
    time_t ends;
  } window_t;

  time_t now;
  assign now = time_i[TimeW-1:0];
  logic [LenW-1:0] len_q;
  always_ff @(posedge clk_i) len_q <= LenW'(32'(min_us_i) * 32'(CycPerUs));

  // ---- marks and forgets, in their order -----------------------------------------------------------
  logic   mark_in, in_ready, in_valid, in_take, forget_q;
  num_t   forget_qpn_q;
  event_t in;
  assign mark_in = mark_valid_i && enable_i && prio_mask_i[mark_prio_i];
  // verilator lint_off PINCONNECTEMPTY
  // its level
  rnic_fifo #(.Width($bits(event_t)), .Depth(MarkDepth)) u_marks (
    .clk_i, .rst_ni,
    .in_valid_i(mark_in || forget_q), .in_ready_o(in_ready), .in_data_i({!mark_in, mark_in ? mark_qpn_i : forget_qpn_q}),
    .out_valid_o(in_valid), .out_ready_i(in_take), .out_data_o(in), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY
  always_ff @(posedge clk_i) begin
    if (!rst_ni) forget_q <= 1'b0;
    else if (forget_valid_i) forget_q <= 1'b1;
    else if (!mark_in && in_ready) forget_q <= 1'b0;
    if (forget_valid_i) forget_qpn_q <= forget_qpn_i;
  end

  // ---- open windows, the first to end in a register ------------------------------------------------
  logic          open, push, head_read, head_coming_q, head_valid_q, due, end_take;
  logic [NumW:0] wptr_q, rptr_q;
  window_t       push_window, ram_head, head_q;
  assign head_read = wptr_q != rptr_q && !head_coming_q && !head_valid_q;
  rnic_ram #(.Width($bits(window_t)), .Depth(1 << NumW)) u_windows (
    .clk_i, .we_i(push), .waddr_i(wptr_q[NumW-1:0]), .wdata_i(push_window),
    .re_i(head_read), .raddr_i(rptr_q[NumW-1:0]), .rdata_o(ram_head)
  );
  time_t left;                              // until it ends
  assign left = head_q.ends - now;
  assign due = head_valid_q && (left[TimeW-1] || left == '0);

  // ---- stage A: an event or an end, in turn; reads the flow's state ------------------------------------
  logic swept, a_valid, a_end, a_ok, last_event_q;
  num_t a_flow;
  logic b_valid_q, b_end_q, b_forget_q, b_go;
  num_t b_flow_q, b_qpn_q;
  assign a_end = due && !(in_valid && !last_event_q);
  assign a_valid = swept && (in_valid || due);
  assign a_flow = a_end ? head_q.flow : per_port_i && !in.forget ? '0 : in.qpn;
  assign a_ok = a_valid && (!b_valid_q || (b_go && b_flow_q != a_flow));
  assign in_take = a_ok && !a_end;
  assign end_take = a_ok && a_end;

  // ---- stage B: decides, writes it back ------------------------------------------------------------------
  flow_t flow, next;
  logic  b_cnp, cnp_q, port_q;              // port_q: port_qpn_q was marked in the port's window
  num_t  b_cnp_qpn, cnp_qpn_q, port_qpn_q;
  zero_ram #(.Width($bits(flow_t)), .Depth(1 << NumW), .Banks(Banks)) u_flows (
    .clk_i, .rst_ni, .ready_o(swept), .we_i(b_go), .waddr_i(b_flow_q), .wdata_i(next), .re_i(a_ok), .raddr_i(a_flow), .rdata_o(flow)
  );
  always_comb begin
    next = flow;
    b_cnp = 1'b0;
    b_cnp_qpn = b_qpn_q;
    open = 1'b0;
    if (b_forget_q) begin
      next.marked = 1'b0;
    end else if (b_end_q) begin
      b_cnp = flow.marked && enable_i && (b_flow_q != '0 || port_q);
      b_cnp_qpn = b_flow_q == '0 ? port_qpn_q : b_flow_q;
      open = b_cnp && len_q != '0;
      next = '{open: open, marked: 1'b0};
    end else begin
      b_cnp = !flow.open || len_q == '0;
      open = !flow.open && len_q != '0;
      if (open) next.open = 1'b1;
      else if (flow.open && len_q != '0) next.marked = 1'b1;
    end
  end
  assign push = open && b_go;
  assign push_window = '{flow: b_flow_q, ends: now + time_t'(len_q)};
  assign b_go = b_valid_q && !(b_cnp && cnp_q && !cnp_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
      head_coming_q <= 1'b0;
      head_valid_q <= 1'b0;
      last_event_q <= 1'b0;
      b_valid_q <= 1'b0;
      cnp_q <= 1'b0;
      port_q <= 1'b0;
    end else begin
      if (push) wptr_q <= wptr_q + 1'b1;
      if (head_read) rptr_q <= rptr_q + 1'b1;
      head_coming_q <= head_read;
      if (end_take) head_valid_q <= 1'b0;
      else if (head_coming_q) head_valid_q <= 1'b1;
      if (a_ok) last_event_q <= !a_end;
      if (a_ok) b_valid_q <= 1'b1;
      else if (b_go) b_valid_q <= 1'b0;
      if (b_go && b_cnp) cnp_q <= 1'b1;
      else if (cnp_ready_i) cnp_q <= 1'b0;
      if (b_go && b_forget_q && b_qpn_q == port_qpn_q) port_q <= 1'b0;
      else if (b_go && !b_end_q && !b_forget_q && b_flow_q == '0) port_q <= 1'b1;
    end
    if (head_coming_q) head_q <= ram_head;
    if (a_ok) begin
      b_end_q <= a_end;
      b_forget_q <= !a_end && in.forget;
      b_flow_q <= a_flow;
      b_qpn_q <= in.qpn;
    end
    if (b_go && b_cnp) cnp_qpn_q <= b_cnp_qpn;
    if (b_go && !b_end_q && !b_forget_q && b_flow_q == '0) port_qpn_q <= b_qpn_q;
  end

  assign cnp_valid_o = cnp_q;
  assign cnp_qpn_o = cnp_qpn_q;
  // nothing but a window that has not ended
  assign idle_o = swept && !in_valid && !forget_q && !b_valid_q && !cnp_q && !head_coming_q && (head_valid_q || wptr_q == rptr_q) && !due;
  assign wake_valid_o = idle_o;    // an end that has come is at work
  assign wake_o = head_valid_q ? time_i + 64'(left) : '1;

endmodule
