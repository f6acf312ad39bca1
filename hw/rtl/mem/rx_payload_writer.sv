// SPDX-License-Identifier: Apache-2.0
//
// Writes received payload to host memory at any byte alignment and acknowledges a packet when the
// last write response of it, and of all earlier ones, has come. READ and atomic requests keep their place in that order:
// they go on to the responder (rsp_o) when everything before them has finished, an atomic after its operation.
//
// Throughput: one beat of payload per cycle, at most one cycle more per packet (when the first
// output beat needs two input beats, or bytes are left over behind the last input beat); a packet
// without payload takes one cycle. A packet in pieces (rx_write_t.more) takes one more per border. Latency: payload 1 cycle to the W channel, address 1 cycle,
// acknowledge 3 cycles behind the B. Back-pressure: wr_ready_o falls while addresses of a packet
// are being issued, or when Depth packets or MaxBursts bursts wait for their response; pl_ready_o
// follows the W channel.
//
// Bursts end at the borders of BurstBeats * DataW/8 bytes (at most 4 KiB), so none crosses 4 KiB
// and the W side finds the last beat of a burst from the address alone (AMBA AXI4 A3.4.1). Payload:
// bytes off .. off+cnt-1 of the first beat, then whole beats, except the last.
//
// A CQE of a packet is offered when its writes, and all earlier ones, have finished; its acknowledge follows when
// the CQE was taken. On a QP whose write failed its status becomes loc_qp_op_err for the packet
// that failed, wr_flush_err behind it.
//
// An acknowledge for our own requester (rx_write_t.to_req) leaves on ackrx_o instead, in the same order; its packet's failed
// write makes it one that fails the WQE by loc_qp_op_err, and no more than that.
//
// rx_write_t.flush leaves on sq_flush in the same order.
//
// A failed write or atomic (IBTA 9.7.5.2.4) gives a NAK remote operational error in place of the acknowledge
// (but not for rx_write_t.silent) and puts the QP into ERR; nothing else is acknowledged on this QP until rx_write_t.init announces
// its next connection. The responses of requests before it do not leave in ERR: the packet of a failed write, and what is behind it,
// waits until they have left (hold_i); a failed atomic goes by way of the responder (RspError).

module rx_payload_writer
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned Depth = 64,       // packets waiting for their responses
  parameter int unsigned MaxBursts = 64,   // bursts waiting for their responses
  localparam int unsigned BytesW = DataW / 8,
  localparam int unsigned LaneW = $clog2(BytesW)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              wr_valid_i,
  output logic              wr_ready_o,
  input  rx_write_t         wr_i,
  input  rx_read_t          rd_i,          // with wr_i if that is not RxData

  input  logic              pl_valid_i,
  output logic              pl_ready_o,
  input  logic [DataW-1:0]  pl_data_i,
  input  logic [LaneW-1:0]  pl_off_i,
  input  logic [LaneW:0]    pl_cnt_i,
  // verilator lint_off UNUSEDSIGNAL
  input  logic              pl_last_i,     // follows from rx_write_t.len
  // verilator lint_on UNUSEDSIGNAL

  output logic              aw_valid_o,
  input  logic              aw_ready_i,
  output logic [63:0]       aw_addr_o,
  output logic [7:0]        aw_len_o,
  output logic              w_valid_o,
  input  logic              w_ready_i,
  output logic [DataW-1:0]  w_data_o,
  output logic [BytesW-1:0] w_strb_o,
  output logic              w_last_o,
  input  logic              b_valid_i,
  input  logic              b_err_i,

  output logic              ack_valid_o,
  output ack_t              ack_o,

  output logic              atomic_valid_o,
  input  logic              atomic_ready_i,
  output atomic_t           atomic_o,
  input  logic              atomic_done_i,
  input  logic              atomic_err_i,
  input  logic [63:0]       atomic_value_i,
  output qp_idx_t           hold_qp_o,
  input  logic              hold_i,         // responses of hold_qp_o have not left
  output logic              rsp_valid_o,
  input  logic              rsp_ready_i,
  output rsp_job_t          rsp_o,
  output logic              ackrx_valid_o,
  input  logic              ackrx_ready_i,
  output ack_rx_t           ackrx_o,
  output logic              sq_flush_valid_o,
  input  logic              sq_flush_ready_i,
  output qp_idx_t           sq_flush_idx_o,

  output logic              cqe_valid_o,
  input  logic              cqe_ready_i,
  output cqe_ev_t           cqe_o,

  output logic              qp_err_valid_o,
  input  logic              qp_err_ready_i,
  output qp_idx_t           qp_err_idx_o,

  output logic              bar_done_o,     // rx_write_t.barrier: all before it is written
  output logic              ev_bytes_valid_o,
  output logic [12:0]       ev_bytes_o,
  output logic              ev_message_o,   // RDMA WRITE message
  output logic              ev_send_o,      // SEND message
  output logic              ev_axi_err_o,   // a burst was refused
  output logic              ev_nak_op_o,    // a packet was refused by NAK remote operational error
  output logic              ev_stall_o,

  // contexts (docs/qp-cache.md): a write of this connection failed; in the same cycle, while busy_o is 0 for it
  input  qp_idx_t           probe_qp_i,
  output logic              busy_o,        // something of probe_qp_i is under way
  input  logic              ctx_load_i,
  input  qp_idx_t           ctx_qp_i,
  input  logic              ctx_i,
  output logic              ctx_o,

  input  logic              drain_i,
  output logic              drain_done_o,
  output logic              idle_o
);

  localparam int unsigned BurstW = $clog2(BurstBeats);
  localparam int unsigned SegW = BurstW + LaneW;                 // log2 of bytes between borders
  localparam int unsigned BeatsW = $clog2(4096 / BytesW + 2);    // beats of one packet
  localparam int unsigned NumW = 14 - SegW;                      // bursts of one packet

  // A packet waiting for its write responses.
  typedef struct packed {
    rx_kind_e         kind;
    qp_idx_t          qp;
    logic             more;
    logic             ack;
    logic             last;
    logic             init;
    logic             barrier;
    logic             flush;
    logic             silent;
    logic             has_cqe;
    cqe_ev_t          cqe;
    logic             to_req;
    logic             credits;
    ack_src_e         src;
    logic [3:0]       fail;
    psn_t             psn;
    logic [23:0]      msn;
    logic [7:0]       syndrome;
    logic [12:0]      len;     // 0: no payload
    logic [NumW-1:0]  bursts;
  } pend_t;

  // A packet's way through the aligner.
  typedef struct packed {
    logic [LaneW-1:0]  lane;     // of the first byte in memory
    logic [LaneW-1:0]  last_lane;
    logic [BurstW-1:0] slot;     // place of the first beat between burst borders
    logic [BeatsW-1:0] beats;    // beats to write, minus 1
    logic [12:0]       len;      // bytes
    logic              has_value;
    logic [63:0]       value;
  } job_t;

  // ---- intake: plan -----------------------------------------------------------------------------
  pend_t pend_in, pend;
  job_t  job_in, job;
  logic  pend_ready, pend_valid, pend_pop, job_ready, job_valid, job_pop, rd_ready;
  logic  wr_fire, has_data;
  logic [$clog2(Depth):0] pend_level;
  logic [13:0] wr_end;           // offset of the last byte from the border before the first beat

  logic              aw_busy_q;
  logic [63-LaneW:0] aw_beat_q;  // address of the next burst in beats
  logic [BeatsW-1:0] aw_left_q;  // beats to ask for, minus 1
  logic [BurstW-1:0] aw_room, aw_len;  // beats to the next border / of this burst, minus 1
  logic              aw_final, aw_fire;

  assign has_data = wr_i.has_payload && wr_i.len != 0;
  assign wr_ready_o = pend_ready && job_ready && rd_ready && !aw_busy_q;
  assign wr_fire = wr_valid_i && wr_ready_o;
  assign wr_end = 14'(wr_i.iova[SegW-1:0]) + 14'(wr_i.len) - 14'd1;
  assign pend_in = '{
    kind: wr_i.kind,
    qp: wr_i.qp,
    more: wr_i.more,
    ack: wr_i.ack,
    last: wr_i.last,
    init: wr_i.init,
    barrier: wr_i.barrier,
    flush: wr_i.flush,
    silent: wr_i.silent,
    has_cqe: wr_i.has_cqe,
    cqe: wr_i.cqe,
    to_req: wr_i.to_req,
    credits: wr_i.credits,
    src: wr_i.src,
    fail: wr_i.fail,
    psn: wr_i.psn,
    msn: wr_i.msn,
    syndrome: wr_i.syndrome,
    len: has_data ? wr_i.len : 13'd0,
    bursts: has_data ? NumW'(wr_end >> SegW) + NumW'(1) : NumW'(0)
  };
  assign job_in = '{
    lane: wr_i.iova[LaneW-1:0],
    last_lane: wr_end[LaneW-1:0],
    slot: wr_i.iova[LaneW+:BurstW],
    beats: BeatsW'((14'(wr_i.iova[LaneW-1:0]) + 14'(wr_i.len) - 14'd1) >> LaneW),
    len: wr_i.len,
    has_value: wr_i.has_value,
    value: wr_i.value
  };

  rnic_fifo #(.Width($bits(pend_t)), .Depth(Depth)) u_pend (
    .clk_i, .rst_ni,
    .in_valid_i(wr_fire), .in_ready_o(pend_ready), .in_data_i(pend_in),
    .out_valid_o(pend_valid), .out_ready_i(pend_pop), .out_data_o(pend), .level_o(pend_level)
  );

  // What READ and atomic requests have beyond a pend_t.
  typedef struct packed {
    logic [63:0] iova;
    rx_read_t    rd;
  } ask_t;
  ask_t ask_in, ask;
  assign ask_in = '{iova: wr_i.iova, rd: rd_i};

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width($bits(ask_t)), .Depth(16)) u_ask (
    .clk_i, .rst_ni,
    .in_valid_i(wr_fire && wr_i.kind != RxData), .in_ready_o(rd_ready), .in_data_i(ask_in),
    .out_valid_o(), .out_ready_i(pend_pop && pend.kind != RxData), .out_data_o(ask), .level_o()
  );
  rnic_fifo #(.Width($bits(job_t)), .Depth(16)) u_job (
    .clk_i, .rst_ni,
    .in_valid_i(wr_fire && has_data), .in_ready_o(job_ready), .in_data_i(job_in),
    .out_valid_o(job_valid), .out_ready_i(job_pop), .out_data_o(job), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- addresses --------------------------------------------------------------------------------
  logic [$clog2(MaxBursts):0] bursts_q;  // asked for, response not yet counted
  logic b_pop;

  assign aw_room = ~aw_beat_q[BurstW-1:0];
  assign aw_final = aw_left_q <= BeatsW'(aw_room);
  assign aw_len = aw_final ? BurstW'(aw_left_q) : aw_room;
  assign aw_valid_o = aw_busy_q && !bursts_q[$clog2(MaxBursts)];
  assign aw_addr_o = {aw_beat_q, LaneW'(0)};
  assign aw_len_o = 8'(aw_len);
  assign aw_fire = aw_valid_o && aw_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_busy_q <= 1'b0;
      bursts_q <= '0;
    end else begin
      if (wr_fire && has_data) begin
        aw_busy_q <= 1'b1;
        aw_beat_q <= wr_i.iova[63:LaneW];
        aw_left_q <= job_in.beats;
      end else if (aw_fire) begin
        aw_busy_q <= !aw_final;
        aw_beat_q <= aw_beat_q + (64 - LaneW)'(aw_len) + 1'b1;
        aw_left_q <= aw_left_q - BeatsW'(aw_len) - 1'b1;
      end
      if (aw_fire != b_pop) bursts_q <= aw_fire ? bursts_q + 1'b1 : bursts_q - 1'b1;
    end
  end

  // ---- splitter: a beat with the border of two pieces is shown once for each of them ----------------
  logic             mid_q;             // the head of the beat is used up
  logic [LaneW-1:0] mid_off_q, off;
  logic [LaneW:0]   cnt;               // bytes of the beat that are left
  logic [12:0]      left_q, left;      // bytes of the piece still to come
  logic             first_q;           // next input beat is the first of its piece
  logic             piece_last, beat_done, take;

  // A value stands for a beat of the stream.
  logic [DataW-1:0] in_data;
  logic [LaneW-1:0] in_off;
  logic [LaneW:0]   in_cnt;
  assign in_data = job.has_value ? DataW'(job.value) : pl_data_i;
  assign in_off = job.has_value ? '0 : pl_off_i;
  assign in_cnt = job.has_value ? (LaneW + 1)'(8) : pl_cnt_i;
  assign off = mid_q ? mid_off_q : in_off;
  assign cnt = mid_q ? in_cnt - (LaneW + 1)'(mid_off_q - in_off) : in_cnt;
  assign left = first_q ? job.len : left_q;
  assign piece_last = left <= 13'(cnt);
  assign beat_done = left >= 13'(cnt);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) mid_q <= 1'b0;
    else if (take) mid_q <= !beat_done;
    if (take) begin
      mid_off_q <= off + LaneW'(left);
      left_q <= left - 13'(cnt);
    end
  end

  // ---- aligner ----------------------------------------------------------------------------------
  // Output beat = the upper half of {newest input beat, the one before} shifted left by `shift`
  // lanes.
  logic              flush_q;      // input is all in, the rest comes from prev_q
  logic [LaneW-1:0]  shift_q, shift;
  logic [DataW-1:0]  prev_q;
  logic [BeatsW-1:0] out_q;        // beats of this packet written
  logic              w_valid_q, w_free, prime, room, emit, final_beat;
  logic [BurstW-1:0] slot;

  assign w_free = !w_valid_q || w_ready_i;
  // behind the last input beat first_q is set again: while flushing, the shift is the kept one
  assign shift = first_q && !flush_q ? job.lane - off : shift_q;
  assign prime = first_q && job.lane < off;  // first output beat needs the second input beat
  assign room = job_valid && !flush_q && (w_free || prime);
  assign pl_ready_o = room && beat_done && !job.has_value;
  assign take = (pl_valid_i || job.has_value) && room;
  assign emit = (take && !prime) || (flush_q && w_free);
  assign final_beat = out_q == job.beats;
  assign slot = job.slot + BurstW'(out_q);
  assign job_pop = emit && final_beat;
  assign w_valid_o = w_valid_q;
  assign ev_stall_o = pl_valid_i && !room && !flush_q;

  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [DataW-1:0] funnel(input logic [DataW-1:0] newer,
                                              input logic [DataW-1:0] older,
                                              input logic [LaneW-1:0] lanes);
    logic [2*DataW-1:0] both;
    both = {newer, older} << {lanes, 3'b000};  // the lower half falls off
    return both[2*DataW-1:DataW];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      flush_q <= 1'b0;
      w_valid_q <= 1'b0;
      out_q <= '0;
    end else begin
      if (w_ready_i) w_valid_q <= 1'b0;
      if (take) begin
        prev_q <= in_data;
        shift_q <= shift;
        first_q <= piece_last;
        flush_q <= piece_last && !(emit && final_beat);
      end
      if (emit) begin
        w_valid_q <= 1'b1;
        w_data_o <= funnel(in_data, prev_q, shift);
        w_strb_o <= (out_q == '0 ? {BytesW{1'b1}} << job.lane : {BytesW{1'b1}}) &
                    (final_beat ? {BytesW{1'b1}} >> ~job.last_lane : {BytesW{1'b1}});
        w_last_o <= final_beat || slot == '1;
        out_q <= final_beat ? '0 : out_q + 1'b1;
        if (flush_q && final_beat) flush_q <= 1'b0;
      end
    end
  end

  // ---- responses, in the order of the packets ---------------------------------------------------
  logic             b_valid, b_err, done, failed, bad;
  logic [NumW-1:0]  b_count_q;
  logic             b_failed_q;
  logic [NumQp-1:0] bad_q;       // a write of this connection failed
  logic             cqe_wait, req_wait, is_send, cqe_done_q, for_rsp, err_new, run, ready;
  logic             at_busy_q, at_done_q, at_err_q;   // atomic under way, finished
  logic [63:0]      at_value_q;
  logic             err_v_q;
  qp_idx_t          err_q;

  // verilator lint_off PINCONNECTEMPTY
  rnic_fifo #(.Width(1), .Depth(MaxBursts)) u_b (
    .clk_i, .rst_ni,
    .in_valid_i(b_valid_i), .in_ready_o(),  // has room for every burst asked for
    .in_data_i(b_err_i),
    .out_valid_o(b_valid), .out_ready_i(b_pop), .out_data_o(b_err), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  assign b_pop = b_valid && pend_valid && b_count_q != pend.bursts;
  assign bad = bad_q[pend.qp];
  // an atomic that is executed: not a duplicate, not behind a failed write
  assign run = pend.kind == RxAtomic && !ask.rd.dup && !bad;
  assign ready = pend_valid && b_count_q == pend.bursts;
  assign done = ready && (!run || at_done_q);
  assign failed = b_failed_q || at_err_q;
  assign is_send = pend.has_cqe && pend.cqe.opcode == rnic_regs_pkg::CqeOpcodeRecv;
  assign for_rsp = pend.init || (pend.kind != RxData && !bad);
  // a failed atomic has its place among the responses: the QP goes to ERR behind those before it
  assign err_new = failed && !bad && !pend.more && !pend.init && !pend.to_req && pend.kind != RxAtomic;
  assign cqe_valid_o = done && pend.has_cqe && !cqe_done_q;
  assign cqe_wait = pend.has_cqe && !cqe_done_q && !cqe_ready_i;
  assign rsp_valid_o = done && for_rsp && !cqe_wait;
  assign ackrx_valid_o = done && pend.to_req && !pend.more;
  assign req_wait = ackrx_valid_o && !ackrx_ready_i;
  assign sq_flush_valid_o = done && pend.flush;
  assign sq_flush_idx_o = pend.qp;
  assign ackrx_o = '{
    qp: pend.qp, psn: pend.psn, msn: pend.msn, syndrome: failed ? 8'd0 : pend.syndrome, own: 1'b0,
    credits: pend.credits && !failed,
    src: failed ? AckLocal : pend.src,
    fail: failed ? rnic_regs_pkg::WcStatusLocQpOpErr[3:0] : pend.fail
  };
  assign hold_qp_o = pend.qp;
  assign pend_pop = done && !(err_new && (hold_i || (err_v_q && !qp_err_ready_i))) &&
                    !cqe_wait && !req_wait && !(pend.flush && !sq_flush_ready_i) && !(for_rsp && !rsp_ready_i);
  assign atomic_valid_o = ready && run && !at_busy_q && !at_done_q;
  assign atomic_o = '{
    fetch_add: ask.rd.fetch_add,
    iova: ask.iova,
    swap_add: ask.rd.swap_add,
    compare: ask.rd.compare
  };
  always_comb begin
    rsp_o = '{
      kind: RspInit,
      qp: pend.qp,
      slot: ask.rd.slot,
      dup: ask.rd.dup,
      access: pend.syndrome == SynNakAccess,
      psn: pend.psn,
      msn: pend.msn,
      credits: pend.syndrome[4:0],
      va: pend.kind == RxAtomic ? at_value_q : ask.rd.va,
      rkey: ask.rd.rkey,
      len: ask.rd.len
    };
    unique case (pend.kind)
      RxRead: rsp_o.kind = RspRead;
      RxAtomic: rsp_o.kind = failed ? RspError : RspAtomic;
      RxError: rsp_o.kind = RspError;
      default: rsp_o.kind = RspInit;
    endcase
  end
  always_comb begin
    cqe_o = pend.cqe;
    if (pend.cqe.status == rnic_regs_pkg::WcStatusSuccess && bad)
      cqe_o.status = rnic_regs_pkg::WcStatusWrFlushErr;
    else if (pend.cqe.status == rnic_regs_pkg::WcStatusSuccess && failed)
      cqe_o.status = rnic_regs_pkg::WcStatusLocQpOpErr;
  end
  assign qp_err_valid_o = err_v_q;
  assign qp_err_idx_o = err_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_count_q <= '0;
      b_failed_q <= 1'b0;
      at_busy_q <= 1'b0;
      at_done_q <= 1'b0;
      at_err_q <= 1'b0;
      cqe_done_q <= 1'b0;
      bad_q <= '0;
      err_v_q <= 1'b0;
      ack_valid_o <= 1'b0;
      bar_done_o <= 1'b0;
      ev_bytes_valid_o <= 1'b0;
      ev_message_o <= 1'b0;
      ev_send_o <= 1'b0;
      ev_axi_err_o <= 1'b0;
      ev_nak_op_o <= 1'b0;
    end else begin
      ack_valid_o <= 1'b0;
      bar_done_o <= 1'b0;
      ev_bytes_valid_o <= 1'b0;
      ev_message_o <= 1'b0;
      ev_send_o <= 1'b0;
      ev_axi_err_o <= 1'b0;
      ev_nak_op_o <= 1'b0;
      if (qp_err_ready_i) err_v_q <= 1'b0;
      if (ctx_load_i) bad_q[ctx_qp_i] <= ctx_i;
      if (b_pop) begin
        b_count_q <= b_count_q + 1'b1;
        b_failed_q <= b_failed_q || b_err;
        ev_axi_err_o <= b_err;
      end
      if (atomic_valid_o && atomic_ready_i) at_busy_q <= 1'b1;
      if (atomic_done_i) begin
        at_busy_q <= 1'b0;
        at_done_q <= 1'b1;
        at_err_q <= atomic_err_i;
        at_value_q <= atomic_value_i;
      end
      if (cqe_valid_o && cqe_ready_i) cqe_done_q <= 1'b1;
      if (pend_pop) begin
        b_count_q <= '0;
        bar_done_o <= pend.barrier;
        cqe_done_q <= 1'b0;
        at_done_q <= 1'b0;
        at_err_q <= 1'b0;
        if (!pend.more) b_failed_q <= 1'b0;
        if (pend.more) begin
          ev_bytes_valid_o <= !failed;
          ev_bytes_o <= pend.len;
        end else if (pend.init) begin
          bad_q[pend.qp] <= 1'b0;
        end else if (pend.to_req) begin
          ev_bytes_valid_o <= !failed && pend.len != 0;
          ev_bytes_o <= pend.len;
        end else if (failed) begin
          bad_q[pend.qp] <= 1'b1;
          if (err_new) begin
            err_v_q <= 1'b1;
            err_q <= pend.qp;
          end
          if (!bad) begin
            ack_valid_o <= !pend.silent;
            ack_o <= '{
              qp: pend.qp,
              psn: pend.psn,
              msn: pend.msn - 24'(pend.last),  // this message did not complete
              syndrome: SynNakOp
            };
            ev_nak_op_o <= !pend.silent;
          end
        end else begin
          ev_bytes_valid_o <= pend.len != 0;
          ev_bytes_o <= pend.len;
          if (!bad) begin
            ev_message_o <= pend.last && !is_send && pend.kind == RxData;
            ev_send_o <= pend.last && is_send;
            ack_valid_o <= pend.ack;
            ack_o <= '{
              qp: pend.qp, psn: pend.psn, msn: pend.msn, syndrome: pend.syndrome
            };
          end
        end
      end
    end
  end

  // ---- contexts ---------------------------------------------------------------------------------
  logic waiting;
  slot_count #(.Width($clog2(Depth) + 1)) u_count (
    .clk_i, .rst_ni, .begin_i(wr_fire), .begin_qp_i(wr_i.qp), .end_i(pend_pop), .end_qp_i(pend.qp),
    .probe_qp_i, .busy_o(waiting)
  );
  assign busy_o = waiting || (err_v_q && err_q == probe_qp_i) || (ack_valid_o && ack_o.qp == probe_qp_i);
  assign ctx_o = bad_q[ctx_qp_i];

  // ---- drain ------------------------------------------------------------------------------------
  // Packets leave in order, so those inside at the rise are the next drain_left_q ones.
  logic drain_q, drain_err_q;
  logic [$clog2(Depth):0] drain_left_q;
  assign drain_done_o = drain_i && drain_q && drain_left_q == '0 && !drain_err_q && !ack_valid_o;
  assign idle_o = !pend_valid && !err_v_q && !ack_valid_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      drain_q <= 1'b0;
      drain_err_q <= 1'b0;
      drain_left_q <= '0;
    end else begin
      drain_q <= drain_i;
      if (drain_i && !drain_q) begin
        drain_left_q <= pend_level - ($bits(pend_level))'(pend_pop);
        drain_err_q <= err_v_q && !qp_err_ready_i || (pend_pop && err_new);
      end else begin
        if (pend_pop && drain_left_q != '0) drain_left_q <= drain_left_q - 1'b1;
        if (pend_pop && drain_left_q != '0 && err_new) drain_err_q <= 1'b1;
        else if (qp_err_ready_i) drain_err_q <= 1'b0;
      end
    end
  end

endmodule
