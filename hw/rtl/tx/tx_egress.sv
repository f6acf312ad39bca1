// SPDX-License-Identifier: Apache-2.0
//
// Makes Ethernet frames of acknowledges, request and response packets and hands them to the MAC.
//
// An acknowledge goes before a packet. The QP's attributes are asked for at once. Up to NumJobs jobs
// wait for theirs, and for their payload (8, from 256 bits on 64; 32 KiB of payload at most); hdr_builder makes the head, then head, payload, pad and a zero ICRC field
// run through the byte packer into the frame memory, which adds the ICRC and sends whole frames
// without gaps. A packet whose payload failed is taken back there and reported on err_o; a packet
// of a QP that may not send any more disappears with its payload. Packets with `report` (nobody
// acknowledges them: UC, UD, raw) are reported on sent_o when all of their payload has been read.
//
// Raw packets are frames already: they go through as they are.
//
// Throughput: one beat per cycle; a small packet takes as many cycles as it has pieces: at 512 bits
// 1 for an ACK, 4 for a WRITE of 64 bytes (not less than 2). Latency of an ACK at 512 bits: about
// 25 cycles with a QP port that answers in one. Back-pressure: from the MAC to the frame memory, to
// the packer, to the inputs; the QP response is always taken.

module tx_egress
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [47:0]      mac_addr_i,
  input  prio_map_t        prio_map_i,
  input  logic [7:0]       pfc_pause_i,
  output logic             held_o,          // a frame waits for the end of the pause of its priority
  output logic [2:0]       held_prio_o,
  // acknowledges
  input  logic             ack_valid_i,
  output logic             ack_ready_o,
  input  ack_t             ack_i,
  // request and response packets
  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  input  tx_pkt_t          pkt_i,
  // their payload; lanes behind the last byte are zero
  input  logic             pl_valid_i,
  output logic             pl_ready_o,
  input  logic [DataW-1:0] pl_data_i,
  input  logic [LaneW:0]   pl_cnt_i,
  input  logic             pl_last_i,
  input  logic             pl_err_i,
  // QP attributes
  output logic             qp_req_valid_o,
  input  logic             qp_req_ready_i,
  output qp_idx_t          qp_req_idx_o,
  input  logic             qp_rsp_valid_i,
  input  qp_attr_t         qp_rsp_i,
  // address handles: always answered in the next cycle
  output logic             ah_req_valid_o,
  output ah_idx_t          ah_req_idx_o,
  input  logic             ah_rsp_valid_i,
  // verilator lint_off UNUSEDSIGNAL
  input  ah_t              ah_rsp_i,        // was checked already
  // verilator lint_on UNUSEDSIGNAL
  // MAC
  output logic             tx_valid_o,
  input  logic             tx_ready_i,
  output logic [DataW-1:0] tx_data_o,
  output logic [NumB-1:0]  tx_keep_o,
  output logic             tx_last_o,
  output logic             tx_user_o,
  // packets whose payload failed
  output logic             err_valid_o,
  input  logic             err_ready_i,
  output tx_err_t          err_o,
  // packets with `report` that were sent; in order with err
  output logic             sent_valid_o,
  input  logic             sent_ready_i,
  output ack_rx_t          sent_o,
  output logic             ev_frame_valid_o,
  output logic [15:0]      ev_frame_len_o,
  output logic [2:0]       ev_frame_kind_o,
  output logic             ev_abort_o,
  output logic             ev_stall_mac_o,
  output logic             ev_stall_read_o,
  // something of this slot is under way: an acknowledge or a packet, or what it leaves for the requester
  input  qp_idx_t          probe_qp_i,
  output logic             busy_o,
  output logic             idle_o,
  input  logic             drain_i,
  output logic             drain_done_o
);

  // Small packets wait one time of host memory for their payload, so there are many of them on a fast link; but an acknowledge
  // stands behind all of them, so there are no more bytes than in 8 packets of the longest MTU.
  localparam int unsigned NumJobs = DataW >= 256 ? 64 : 8;
  localparam int unsigned MaxBytes = 8 * 4096;
  localparam int unsigned BytesW = $clog2(MaxBytes) + 1;
  localparam int unsigned HeadBeats = (110 + NumB - 1) / NumB;
  localparam int unsigned BeatW = $clog2(HeadBeats);
  localparam int unsigned HeldW = 8;

  typedef struct packed {
    logic    is_ack;
    tx_pkt_t pkt;
  } job_t;
  typedef struct packed {
    logic [1:0] l3;
    logic       ipv6;
    logic [2:0] prio;
    logic [2:0] kind;
    logic       raw;
  } side_t;

  // ---- choice, and the question for the QP ------------------------------------------------------
  logic    jobs_ready, pick_ok, pick, req_valid_q, bytes_ok;
  qp_idx_t req_idx_q;
  job_t    job_in, job;
  logic    job_valid, attr_valid, build_ready, job_pop;
  qp_attr_t attr;

  assign pick_ok = jobs_ready && (!req_valid_q || qp_req_ready_i);
  assign ack_ready_o = pick_ok;
  assign pkt_ready_o = pick_ok && !ack_valid_i && bytes_ok;
  assign pick = pick_ok && (ack_valid_i || (pkt_valid_i && bytes_ok));

  // payload of the packets taken, without what has come already
  logic [BytesW-1:0] bytes_q, bytes_in, bytes_out;
  assign bytes_in = pick && !ack_valid_i ? BytesW'(pkt_i.len) : '0;
  assign bytes_out = pl_valid_i && pl_ready_o ? BytesW'(pl_cnt_i) : '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bytes_q <= '0;
      bytes_ok <= 1'b1;
    end else begin
      bytes_q <= bytes_q + bytes_in - bytes_out;
      bytes_ok <= bytes_q + bytes_in <= BytesW'(MaxBytes - 4096);
    end
  end

  always_comb begin
    job_in.is_ack = ack_valid_i;
    job_in.pkt = pkt_i;
    if (ack_valid_i) begin
      job_in.pkt = '0;
      job_in.pkt.qp = ack_i.qp;
      job_in.pkt.opcode = OpRcAck;
      job_in.pkt.psn = ack_i.psn;
      job_in.pkt.has_aeth = 1'b1;
      job_in.pkt.imm = {ack_i.syndrome, ack_i.msn};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) req_valid_q <= 1'b0;
    else if (pick) req_valid_q <= 1'b1;
    else if (qp_req_ready_i) req_valid_q <= 1'b0;
    if (pick) req_idx_q <= job_in.pkt.qp;
  end
  assign qp_req_valid_o = req_valid_q;
  assign qp_req_idx_o = req_idx_q;

  // An answer finds room: each belongs to a job that holds a place of its own.
  logic     ah_valid, job_ready, ah_pop;
  // verilator lint_off UNUSEDSIGNAL
  ah_t      ah;
  // verilator lint_on UNUSEDSIGNAL
  qp_attr_t head_attr;
  assign job_ready = job_valid && attr_valid && (!job.pkt.has_deth || ah_valid);
  assign job_pop = build_ready && job_ready;
  assign ah_pop = job_pop && job.pkt.has_deth;
  assign ah_req_valid_o = pick && job_in.pkt.has_deth;
  assign ah_req_idx_o = job_in.pkt.va[24+:AhIdxW];
  // the address part of a UD packet is that of its address handle
  always_comb begin
    head_attr = attr;
    if (job.pkt.has_deth) begin
      head_attr.ipv6 = ah.ipv6;
      head_attr.vlan = ah.vlan;
      head_attr.udp_sport = ah.udp_sport;
      head_attr.dmac = ah.dmac;
      head_attr.vlan_tci = ah.vlan_tci;
      head_attr.hop_limit = ah.hop_limit;
      head_attr.traffic_class = ah.traffic_class;
      head_attr.flow_label = ah.flow_label;
      head_attr.sgid = ah.sgid;
      head_attr.dgid = ah.dgid;
    end
  end
  // verilator lint_off PINCONNECTEMPTY
  // levels, and the ready of a FIFO that cannot be full
  rnic_fifo #(.Width($bits(job_t)), .Depth(NumJobs)) u_jobs (
    .clk_i, .rst_ni,
    .in_valid_i(pick), .in_ready_o(jobs_ready), .in_data_i(job_in),
    .out_valid_o(job_valid), .out_ready_i(job_pop), .out_data_o(job), .level_o()
  );
  rnic_fifo #(.Width($bits(qp_attr_t)), .Depth(NumJobs)) u_attrs (
    .clk_i, .rst_ni,
    .in_valid_i(qp_rsp_valid_i), .in_ready_o(), .in_data_i(qp_rsp_i),
    .out_valid_o(attr_valid), .out_ready_i(job_pop), .out_data_o(attr), .level_o()
  );
  rnic_fifo #(.Width($bits(ah_t)), .Depth(NumJobs)) u_ahs (
    .clk_i, .rst_ni,
    .in_valid_i(ah_rsp_valid_i), .in_ready_o(), .in_data_i(ah_rsp_i),
    .out_valid_o(ah_valid), .out_ready_i(ah_pop), .out_data_o(ah), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- head -------------------------------------------------------------------------------------
  logic                            head_valid, head_pop, head_drop, has_payload, vlan, ipv6;
  logic [HeadBeats-1:0][DataW-1:0] head;
  logic [BeatW-1:0]                last_beat;
  logic [LaneW:0]                  last_cnt;
  logic [1:0]                      pad;
  logic [2:0]                      kind;
  logic [2:0]                      prio;
  tx_err_t                         head_err;
  logic                            head_report, head_raw;

  hdr_builder #(.DataW(DataW)) u_head (
    .clk_i, .rst_ni, .mac_addr_i, .prio_map_i,
    .in_valid_i(job_ready), .in_ready_o(build_ready),
    .pkt_i(job.pkt), .is_ack_i(job.is_ack), .attr_i(head_attr),
    .out_valid_o(head_valid), .out_ready_i(head_pop),
    .head_o(head), .last_beat_o(last_beat), .last_cnt_o(last_cnt),
    .drop_o(head_drop), .has_payload_o(has_payload), .pad_o(pad), .vlan_o(vlan), .ipv6_o(ipv6),
    .prio_o(prio), .kind_o(kind), .err_o(head_err), .report_o(head_report), .raw_o(head_raw)
  );

  // ---- head, payload and tail as pieces ---------------------------------------------------------
  typedef enum logic [1:0] {
    WaitHead,
    WaitPayload,
    WaitTail,
    WaitDrop
  } state_e;

  state_e           state_q, state_d;
  logic [BeatW-1:0] beat_q, beat_d;
  logic [LaneW:0]   tail_q, tail_d;
  logic             tail_err_q;
  logic             piece_valid, piece_ready, piece_last, piece_err, piece_take;
  logic [LaneW:0]   piece_cnt;
  logic [DataW-1:0] piece_data;
  logic             side_ready, out_ready, err_push, sent_push, raw_start;
  logic [LaneW+1:0] end_cnt;          // payload of the last beat, pad and ICRC
  logic             end_fits;

  assign end_cnt = (LaneW + 2)'(pl_cnt_i) + (head_raw ? (LaneW + 2)'(0) : (LaneW + 2)'(pad) + (LaneW + 2)'(4));
  assign end_fits = end_cnt <= (LaneW + 2)'(NumB);
  assign piece_take = piece_valid && piece_ready;
  // a raw frame is nothing but payload
  assign raw_start = state_q == WaitHead && head_valid && !head_drop && head_raw && side_ready;

  always_comb begin
    state_d = state_q;
    beat_d = beat_q;
    tail_d = tail_q;
    piece_valid = 1'b0;
    piece_cnt = (LaneW + 1)'(NumB);
    piece_last = 1'b0;
    piece_err = 1'b0;
    head_pop = 1'b0;
    pl_ready_o = 1'b0;
    err_push = 1'b0;
    sent_push = 1'b0;
    unique case (state_q)
      WaitHead: begin
        if (head_valid && head_drop) begin
          if (has_payload) state_d = WaitDrop;
          else head_pop = 1'b1;
        end else if (head_valid && head_raw) begin
          if (raw_start) state_d = WaitPayload;
        end else if (head_valid) begin
          piece_valid = (beat_q != '0 || side_ready) && out_ready;
          if (beat_q == last_beat) begin
            piece_cnt = last_cnt;
            piece_last = !has_payload;
          end
          if (piece_take) begin
            beat_d = beat_q + 1'b1;
            if (beat_q == last_beat) begin
              beat_d = '0;
              if (has_payload) begin
                state_d = WaitPayload;
              end else begin
                head_pop = 1'b1;
                sent_push = head_report;
              end
            end
          end
        end
      end
      WaitPayload: begin
        piece_valid = pl_valid_i && out_ready;
        pl_ready_o = piece_ready && out_ready;
        piece_cnt = pl_cnt_i;
        if (pl_last_i) begin
          piece_cnt = end_fits ? end_cnt[LaneW:0] : (LaneW + 1)'(NumB);
          piece_last = end_fits;
          piece_err = pl_err_i;
          tail_d = end_cnt[LaneW:0] - (LaneW + 1)'(NumB);
        end
        if (piece_take && pl_last_i) begin
          err_push = pl_err_i;
          sent_push = head_report && !pl_err_i;
          state_d = end_fits ? WaitHead : WaitTail;
          head_pop = end_fits;
        end
      end
      WaitTail: begin
        piece_valid = 1'b1;
        piece_cnt = tail_q;
        piece_last = 1'b1;
        piece_err = tail_err_q;
        if (piece_take) begin
          state_d = WaitHead;
          head_pop = 1'b1;
        end
      end
      default: begin  // WaitDrop
        pl_ready_o = 1'b1;
        if (pl_valid_i && pl_last_i) begin
          state_d = WaitHead;
          head_pop = 1'b1;
        end
      end
    endcase
  end

  always_comb begin
    unique case (state_q)
      WaitHead: piece_data = head[beat_q];
      WaitPayload: piece_data = pl_data_i;
      default: piece_data = '0;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= WaitHead;
      beat_q <= '0;
    end else begin
      state_q <= state_d;
      beat_q <= beat_d;
    end
    tail_q <= tail_d;
    if (state_q == WaitPayload) tail_err_q <= pl_err_i;
  end

  // ---- packer, frame memory ---------------------------------------------------------------------
  logic             pack_valid, pack_ready, pack_last, pack_abort;
  logic [DataW-1:0] pack_data;
  logic [LaneW:0]   pack_cnt;
  logic             side_push, side_valid, leave;
  side_t            side_in, side;

  byte_packer #(.DataW(DataW)) u_pack (
    .clk_i, .rst_ni,
    .in_valid_i(piece_valid), .in_ready_o(piece_ready), .in_data_i(piece_data), .in_off_i('0),
    .in_cnt_i(piece_cnt), .in_last_i(piece_last), .in_lane_i('0), .in_user_i(piece_err),
    .out_valid_o(pack_valid), .out_ready_i(pack_ready), .out_data_o(pack_data),
    .out_cnt_o(pack_cnt),
    .out_last_o(pack_last), .out_user_o(pack_abort)
  );

  assign side_push = raw_start || (piece_take && state_q == WaitHead && beat_q == '0);
  assign side_in = '{l3: {1'b0, vlan}, ipv6: ipv6, prio: prio, kind: kind, raw: head_raw};
  // verilator lint_off PINCONNECTEMPTY
  // levels
  rnic_fifo #(.Width($bits(side_t)), .Depth(4)) u_side (
    .clk_i, .rst_ni,
    .in_valid_i(side_push), .in_ready_o(side_ready), .in_data_i(side_in),
    .out_valid_o(side_valid), .out_ready_i(pack_valid && pack_ready && pack_last),
    .out_data_o(side), .level_o()
  );
  // verilator lint_on PINCONNECTEMPTY

  // What the requester learns: a packet that was reported before one that failed must not overtake it, nor fall behind.
  typedef struct packed {
    logic     failed;
    tx_err_t  who;
  } out_t;
  out_t             out_in, out;
  logic             out_valid, out_pop;
  logic [3:0]       out_level;
  assign out_in = '{failed: err_push, who: head_err};
  rnic_fifo #(.Width($bits(out_t)), .Depth(8)) u_out (
    .clk_i, .rst_ni,
    .in_valid_i(err_push || sent_push), .in_ready_o(out_ready), .in_data_i(out_in),
    .out_valid_o(out_valid), .out_ready_i(out_pop), .out_data_o(out), .level_o(out_level)
  );
  assign err_valid_o = out_valid && out.failed;
  assign err_o = out.who;
  assign sent_valid_o = out_valid && !out.failed;
  assign sent_o = '{qp: out.who.qp, psn: out.who.psn, msn: '0, syndrome: SynAck, own: 1'b1, credits: 1'b0,
                    src: AckPacket, fail: '0};
  assign out_pop = out_valid && (out.failed ? err_ready_i : sent_ready_i);

  tx_frame_fifo #(.DataW(DataW)) u_frames (
    .clk_i, .rst_ni,
    .in_valid_i(pack_valid && side_valid), .in_ready_o(pack_ready), .in_data_i(pack_data),
    .in_cnt_i(pack_cnt), .in_last_i(pack_last), .in_abort_i(pack_abort),
    .in_prio_i(side.prio), .in_kind_i(side.kind), .in_raw_i(side.raw), .in_l3_i(side.l3), .in_ipv6_i(side.ipv6),
    .pfc_pause_i, .held_o, .held_prio_o, .tx_valid_o, .tx_ready_i, .tx_data_o, .tx_keep_o, .tx_last_o,
    .leave_o(leave), .ev_frame_valid_o, .ev_frame_len_o, .ev_frame_kind_o
  );

  assign tx_user_o = 1'b0;
  assign ev_abort_o = err_push;
  assign ev_stall_mac_o = tx_valid_o && !tx_ready_i;
  assign ev_stall_read_o = state_q == WaitPayload && !pl_valid_i;

  // ---- what is held: jobs up to their last piece, what they leave at u_out, frames; each part keeps its order
  typedef enum logic [1:0] {
    DrainNone,
    DrainJobs,
    DrainOut,
    DrainFrames
  } drain_e;

  logic [HeldW-1:0] jobs_q, jobs_d, frames_q, frames_d, left_q;
  drain_e           drain_q;
  logic             frame_made;

  assign frame_made = head_pop && state_q != WaitDrop && !head_drop;
  assign jobs_d = jobs_q + HeldW'(pick) - HeldW'(head_pop);
  assign frames_d = frames_q + HeldW'(frame_made) - HeldW'(leave);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      jobs_q <= '0;
      frames_q <= '0;
      drain_q <= DrainNone;
      left_q <= '0;
    end else begin
      jobs_q <= jobs_d;
      frames_q <= frames_d;
      unique case (drain_q)
        DrainNone: begin
          left_q <= jobs_d;
          if (drain_i) drain_q <= DrainJobs;
        end
        DrainJobs: begin
          if (left_q == '0) begin
            left_q <= HeldW'(out_level) - HeldW'(out_pop);
            drain_q <= DrainOut;
          end else begin
            left_q <= left_q - HeldW'(head_pop);
          end
        end
        DrainOut: begin
          if (left_q == '0) begin
            left_q <= frames_d;
            drain_q <= DrainFrames;
          end else begin
            left_q <= left_q - HeldW'(out_pop);
          end
        end
        default: begin
          if (left_q != '0) left_q <= left_q - HeldW'(leave);
        end
      endcase
      if (!drain_i) drain_q <= DrainNone;
    end
  end

  // ---- what is under way of a slot (docs/qp-cache.md): its jobs, and what they leave at u_out ---------------------
  logic job_busy, out_busy;
  slot_count #(.Width($clog2(NumJobs) + 1)) u_job_count (
    .clk_i, .rst_ni, .begin_i(pick), .begin_qp_i(job_in.pkt.qp), .end_i(head_pop), .end_qp_i(head_err.qp), .probe_qp_i, .busy_o(job_busy)
  );
  slot_count #(.Width(4)) u_out_count (
    .clk_i, .rst_ni, .begin_i(err_push || sent_push), .begin_qp_i(head_err.qp), .end_i(out_pop), .end_qp_i(out.who.qp), .probe_qp_i,
    .busy_o(out_busy)
  );
  assign busy_o = job_busy || out_busy;

  assign idle_o = jobs_q == '0 && frames_q == '0 && !out_valid;
  assign drain_done_o = drain_i && drain_q == DrainFrames && left_q == '0;

endmodule
