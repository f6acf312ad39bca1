// SPDX-License-Identifier: Apache-2.0
//
// Checks a WQE and translates its scatter/gather list: opcode (against the QP's service, IBTA 9.2.1, table 36),
// producer index, number of SGEs, total length
// (at most 2^31 bytes), and for each SGE that is not empty key, PD and bounds of its memory region
// (IBTA 10.7.3). Empty SGEs are taken out of the list; they are not checked. Inline data come in the WQE
// from byte 32 on, up to its end, instead of the list; they stay on inline_o until the result is taken. On UD the message must fit into the
// path MTU, and the address handle must exist and be of the QP's PD; a raw frame has MinRaw to MaxRaw bytes.
// Local invalidate and bind are checked where they are carried out (mr_table). The WQE behind such a one is looked at only when
// the segmenter has done with it.
// READ and atomic: the list is written to, so it needs local write; it is checked here and again by rx_transport when
// responses come, so it leaves untranslated. An atomic has one SGE of at least 8 bytes, its operands where the second SGE
// would be, and an aligned remote address (IBTA 9.4.5). A READ has at most 2^22 response packets, a
// PSN distance that stays far from 2^23.
//
// Throughput (one cycle more on UD): 1 + 3 per SGE cycles with MR answers after one cycle (4 cycles for one SGE).
// Back-pressure: a result waits for msg_ready_i; then WQEs wait.

module wqe_check
  import rnic_pkg::*;
  import requester_pkg::*;
  import rnic_regs_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          item_valid_i,
  output logic          item_ready_o,
  input  wqe_item_t     item_i,
  input  logic [1023:0] item_wqe_i,
  output logic          ah_req_valid_o,
  output ah_idx_t       ah_req_idx_o,
  input  logic          ah_rsp_valid_i,
  // verilator lint_off UNUSEDSIGNAL
  input  ah_t           ah_rsp_i,        // only that it exists, and its PD
  // verilator lint_on UNUSEDSIGNAL
  output logic          mr_req_valid_o,
  input  logic          mr_req_ready_i,
  output mr_idx_t       mr_req_idx_o,
  input  logic          mr_rsp_valid_i,
  input  mr_t           mr_rsp_i,
  output logic          msg_valid_o,
  input  logic          msg_ready_i,
  output msg_t          msg_o,
  output logic [InlineBytes*8-1:0] inline_o,
  input  logic          seg_idle_i   // the segmenter has done with all it took
);

  typedef enum logic [2:0] {CheckIdle, CheckHandle, CheckRequest, CheckAnswer, CheckDone, CheckBarrier} state_e;
  state_e state_q;

  wqe_t wqe;
  assign wqe = item_wqe_i;

  msg_t msg_q;
  sge_t [3:0] sge_q;       // SGEs still to be translated, the next one at 0
  logic [2:0] left_q;      // how many
  logic [2:0] seg_q;       // runs translated
  logic [23:0] pd_q;
  logic [255:0] tail_q;    // bytes 96 to 127 of a WQE with inline data
  mr_t mr_q;
  logic mr_valid_q;        // answer registered

  // what a change does must be seen by the checks behind it
  assign item_ready_o = state_q == CheckIdle ||
                        (state_q == CheckDone && msg_ready_i && msg_q.kind != MsgChange);
  assign msg_valid_o = state_q == CheckDone;
  assign msg_o = msg_q;
  assign inline_o = {tail_q, sge_q};
  assign mr_req_valid_o = state_q == CheckRequest && sge_q[0].length != '0;
  assign mr_req_idx_o = mr_key_idx(sge_q[0].lkey);

  logic take;
  assign take = item_valid_i && item_ready_o;

  logic ah_in_range_q, ah_ok;
  assign ah_ok = ah_in_range_q && ah_rsp_i.valid && ah_rsp_i.pd == pd_q;

  // The list is complete and right when the last SGE has been dealt with.
  logic ok;
  assign ok = mr_check(mr_q, sge_q[0].lkey, pd_q, '0, sge_q[0].addr, sge_q[0].length,
                       op_is_rd(msg_q.op) ? MrLocalWrite : MrLocalRead);

  function automatic logic [33:0] sum(input sge_t [3:0] s, input logic [2:0] n);
    return ((n > 3'd0 ? 34'(s[0].length) : 34'd0) + (n > 3'd1 ? 34'(s[1].length) : 34'd0)) +
           ((n > 3'd2 ? 34'(s[2].length) : 34'd0) + (n > 3'd3 ? 34'(s[3].length) : 34'd0));
  endfunction

  // verdict before the memory regions are looked at; valid while take
  logic bad_op, service_ok, is_change, is_ud;
  logic is_raw, len_bad;
  logic is_rd, is_atomic;
  msg_op_e op;
  atomic_operands_t operands;
  logic [33:0] total;
  always_comb begin
    unique case (wqe.opcode)
      WqeOpcodeRdmaWrite, WqeOpcodeRdmaWriteImm: op = OpWrite;
      WqeOpcodeSend, WqeOpcodeSendImm, WqeOpcodeSendInv: op = OpSend;
      WqeOpcodeRdmaRead: op = OpRead;
      WqeOpcodeCmpSwap: op = OpCmpSwap;
      WqeOpcodeFetchAdd: op = OpFetchAdd;
      WqeOpcodeLocalInv: op = OpLocalInv;
      WqeOpcodeBindMw: op = OpBindMw;
      default: op = OpNone;
    endcase
  end
  assign is_change = op inside {OpLocalInv, OpBindMw};
  assign operands = wqe.sge[1];
  assign is_rd = op_is_rd(op);
  assign is_atomic = is_rd && op != OpRead;
  assign service_ok = item_i.qp_type == rnic_pkg::QpTypeRc ||
                      (item_i.qp_type == rnic_pkg::QpTypeUc && wqe.opcode != WqeOpcodeSendInv && !is_rd) ||
                      (item_i.qp_type == rnic_pkg::QpTypeRaw && wqe.opcode == WqeOpcodeSend) ||
                      (item_i.qp_type == rnic_pkg::QpTypeUd && wqe.opcode inside {WqeOpcodeSend, WqeOpcodeSendImm});
  assign is_ud = item_i.qp_type == rnic_pkg::QpTypeUd;
  assign is_raw = item_i.qp_type == rnic_pkg::QpTypeRaw;
  assign len_bad = total > (is_raw ? 34'(MaxRaw) : is_ud ? 34'(mtu_bytes(item_i.mtu)) : 34'h8000_0000) ||
                   (is_raw && total < 34'(MinRaw)) ||
                   (op == OpRead && item_i.mtu <= 3'd1 && total > 34'h4000_0000);
  assign ah_req_valid_o = take && is_ud;
  assign ah_req_idx_o = wqe.ah[AhIdxW-1:0];
  assign bad_op = item_i.err || wqe.index != item_i.idx || (op != OpNone && !service_ok) ||
                  (is_rd && (wqe.inline_data || item_i.max_rd == '0)) ||
                  (is_atomic && (wqe.num_sge != 8'd1 || wqe.sge[0].length < 32'd8 ||
                                 wqe.remote_addr[2:0] != '0)) ||
                  (op == OpNone && wqe.opcode != WqeOpcodeNop) ||
                  (op == OpBindMw && (wqe.inline_data || wqe.num_sge != 8'd1)) ||
                  (op != OpNone && (wqe.inline_data ?
                      wqe.inline_len > (item_i.stride128 ? 16'd96 : 16'd32) :
                      wqe.num_sge > (item_i.stride128 ? 8'd4 : 8'd2)));
  assign total = !take || is_change ? '0 : wqe.inline_data ? 34'(wqe.inline_len) : is_atomic ? 34'd8 :
                 sum(wqe.sge, wqe.num_sge[2:0]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= CheckIdle;
      mr_valid_q <= 1'b0;
    end else begin
      mr_valid_q <= mr_rsp_valid_i;
      unique case (state_q)
        CheckHandle: if (ah_rsp_valid_i) begin
          state_q <= ah_ok && !msg_q.inl && msg_q.total != '0 ? CheckRequest : CheckDone;
        end
        CheckRequest: begin
          if (sge_q[0].length == '0) begin
            if (left_q == 3'd1) state_q <= CheckDone;
          end else if (mr_req_ready_i) begin
            state_q <= CheckAnswer;
          end
        end
        CheckAnswer: if (mr_valid_q) state_q <= ok && left_q != 3'd1 ? CheckRequest : CheckDone;
        CheckDone: if (msg_ready_i) state_q <= msg_q.kind == MsgChange ? CheckBarrier : CheckIdle;
        CheckBarrier: if (seg_idle_i) state_q <= CheckIdle;
        default: ;
      endcase
      if (take) begin
        state_q <= item_i.skip || bad_op || op == OpNone || len_bad ? CheckDone :
                   is_ud ? CheckHandle : !wqe.inline_data && total != '0 ? CheckRequest : CheckDone;
      end
    end
    if (mr_rsp_valid_i) mr_q <= mr_rsp_i;
    if (take) begin
      msg_q.kind <= item_i.skip ? MsgSkip : bad_op ? MsgBad : op == OpNone ? MsgNop :
                    is_change ? MsgChange :
                    len_bad ? MsgBad : MsgPackets;
      msg_q.status <= bad_op ? WcStatusLocQpOpErr[3:0] : WcStatusLocLenErr[3:0];
      msg_q.op <= item_i.err ? OpNone : op;
      msg_q.has_imm <= wqe.opcode inside {WqeOpcodeRdmaWriteImm, WqeOpcodeSendImm};
      msg_q.has_inv <= wqe.opcode == WqeOpcodeSendInv;
      msg_q.inl <= wqe.inline_data;
      // immediate data are in wire order in memory, the key to invalidate is a number
      msg_q.imm <= wqe.opcode == WqeOpcodeSendInv ? wqe.imm :
                   {wqe.imm[7:0], wqe.imm[15:8], wqe.imm[23:16], wqe.imm[31:24]};
      msg_q.timeout <= item_i.timeout;
      msg_q.max_rd <= item_i.max_rd;
      msg_q.credit <= item_i.flow && wqe.opcode inside {WqeOpcodeSend, WqeOpcodeSendImm, WqeOpcodeSendInv, WqeOpcodeRdmaWriteImm};
      msg_q.fence <= wqe.fence;
      msg_q.last <= item_i.last;
      msg_q.qp <= item_i.qp;
      msg_q.gen <= item_i.gen;
      msg_q.turn <= item_i.turn;
      msg_q.turn_end <= item_i.turn_end;
      msg_q.idx <= item_i.idx;
      msg_q.qp_type <= item_i.qp_type;
      msg_q.mtu <= is_raw ? 3'd5 : item_i.mtu;  // a frame is one packet
      msg_q.signaled <= wqe.signaled;
      msg_q.solicited <= wqe.solicited;
      msg_q.remote_addr <= is_ud ? {24'd0, wqe.ah, wqe.remote_qpn} : wqe.remote_addr;
      ah_in_range_q <= (wqe.ah >> AhIdxW) == '0;
      msg_q.rkey <= op == OpLocalInv ? wqe.imm : wqe.rkey;
      msg_q.pd <= item_i.pd;
      msg_q.lkey[0] <= wqe.sge[0].lkey;
      msg_q.bind_how <= {wqe.bind_zero_based, wqe.bind_remote_atomic, wqe.bind_remote_read,
                         wqe.bind_remote_write};
      if (is_change) msg_q.seg[0] <= '{iova: wqe.sge[0].addr, len: wqe.sge[0].length};
      msg_q.total <= total[31:0];
      sge_q <= wqe.sge;
      if (is_atomic) begin
        sge_q[0].length <= 32'd8;
        msg_q.seg[2].iova <= operands.swap_add;
        msg_q.seg[3].iova <= op == OpCmpSwap ? operands.compare : 64'd0;
      end
      if (wqe.inline_data) tail_q <= item_wqe_i[1023:768];
      left_q <= wqe.num_sge[2:0];
      pd_q <= item_i.pd;
      seg_q <= '0;
    end
    if ((state_q == CheckRequest && sge_q[0].length == '0) ||
        (state_q == CheckAnswer && mr_valid_q)) begin
      sge_q <= {sge_q[3], sge_q[3:1]};
      left_q <= left_q - 1'b1;
    end
    if (state_q == CheckHandle && !ah_ok) begin
      msg_q.kind <= MsgBad;
      msg_q.status <= WcStatusLocQpOpErr[3:0];
    end
    if (state_q == CheckAnswer && mr_valid_q) begin
      if (!ok) begin
        msg_q.kind <= MsgBad;
        msg_q.status <= WcStatusLocProtErr[3:0];
      end
      msg_q.seg[seg_q[1:0]].iova <= op_is_rd(msg_q.op) ? sge_q[0].addr :
                                    mr_q.iova + (sge_q[0].addr - mr_q.va);
      msg_q.seg[seg_q[1:0]].len <= sge_q[0].length;
      msg_q.lkey[seg_q[1:0]] <= sge_q[0].lkey;
      seg_q <= seg_q + 1'b1;
    end
  end

  logic unused;
  assign unused = ^{wqe, seg_q[2]};

endmodule
