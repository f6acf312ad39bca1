// SPDX-License-Identifier: Apache-2.0
//
// cc_cnp_tx with random QPs of all services and states, a QP port of random latency, MAC back-pressure and a priority that is paused for long. Every
// frame is compared byte by byte with one that the bench makes on its own, with a bit-serial ICRC. Only RC and UC QPs that can receive have CNPs; one is
// given up only while the priority is paused and eight wait, and nobody waits for the end of a pause.

module cc_cnp_tx_tb
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64
);
  localparam int NumB = DataW / 8;
  localparam logic [47:0] Mac = 48'h665544332202;
  localparam int N = 16;

  logic clk = 0, rst_n = 0;
  always #1 clk = !clk;

  logic [5:0] dscp = 48;
  logic [2:0] prio = 6;
  logic [7:0] pause = 0;
  logic in_valid = 0, in_ready, qp_req_valid, qp_req_ready = 0, qp_rsp_valid = 0, tx_valid, tx_ready = 0, tx_last, ev_frame_valid, ev_drop, idle;
  qp_idx_t in_qp = 0, qp_req_idx;
  qp_attr_t qp_rsp = '0, qps[N];
  logic [DataW-1:0] tx_data;
  logic [NumB-1:0] tx_keep;
  logic [15:0] ev_frame_len;
  logic [2:0] ev_frame_kind;

  cc_cnp_tx #(.DataW(DataW)) dut (
    .clk_i(clk), .rst_ni(rst_n), .mac_addr_i(Mac), .dscp_i(dscp), .prio_i(prio), .pfc_pause_i(pause),
    .in_valid_i(in_valid), .in_ready_o(in_ready), .in_qp_i(in_qp),
    .qp_req_valid_o(qp_req_valid), .qp_req_ready_i(qp_req_ready), .qp_req_idx_o(qp_req_idx), .qp_rsp_valid_i(qp_rsp_valid), .qp_rsp_i(qp_rsp),
    .tx_valid_o(tx_valid), .tx_ready_i(tx_ready), .tx_data_o(tx_data), .tx_keep_o(tx_keep), .tx_last_o(tx_last),
    .ev_frame_valid_o(ev_frame_valid), .ev_frame_len_o(ev_frame_len), .ev_frame_kind_o(ev_frame_kind), .ev_drop_o(ev_drop), .idle_o(idle));

  // ---- the expected frame -----------------------------------------------------------------------------
  logic [7:0] fb[256], gb[256];
  int gl = 0, l3;
  `include "frame.svh"
  typedef struct packed {
    qp_attr_t   attr;
    logic [5:0] dscp;
    logic [2:0] prio;
  } want_t;
  want_t want[$], w;
  int id = 0;
  task automatic expect_frame(want_t e);
    int sum, b;
    qp_attr_t a;
    a = e.attr;
    fl = 0;
    put_raw(128'(a.dmac), 6);
    put_raw(128'(Mac), 6);
    if (a.vlan) put({96'd0, 16'h8100, e.prio, a.vlan_tci[12:0]}, 4);
    put(128'(a.ipv6 ? 16'h86dd : 16'h0800), 2);
    l3 = fl;
    if (a.ipv6) begin
      put(128'({4'd6, e.dscp, 2'b00, a.flow_label}), 4);
      put(128'd40, 2);
      put(128'd17, 1);
      put(128'(a.hop_limit), 1);
      put_raw(a.sgid, 16);
      put_raw(a.dgid, 16);
    end else begin
      id++;
      put(128'h45, 1);
      put(128'({e.dscp, 2'b00}), 1);
      put(128'd60, 2);
      put(128'(id), 2);
      put(128'h4000, 2);
      put(128'(a.hop_limit), 1);
      put(128'd17, 1);
      put(128'd0, 2);
      put_raw(128'(a.sgid[127:96]), 4);
      put_raw(128'(a.dgid[127:96]), 4);
      sum = 0;
      for (int i = 0; i < 20; i += 2) sum += {16'd0, fb[l3+i], fb[l3+i+1]};
      while (sum > 65535) sum = (sum & 65535) + (sum >> 16);
      sum = 65535 - sum;
      fb[l3+10] = sum[15:8];
      fb[l3+11] = sum[7:0];
    end
    put(128'(a.udp_sport), 2);
    put(128'd4791, 2);
    put(128'd40, 2);
    put(128'd0, 2);
    put(128'h81, 1);
    put(128'd0, 1);
    put(128'(a.pkey), 2);
    put(128'h40, 1);             // FECN 0, BECN 1
    put(128'(a.dest_qpn), 3);
    put(128'd0, 4);              // AckReq 0, PSN 0
    put(128'd0, 16);
    crc = '1;
    for (int i = 0; i < 8; i++) crc_byte(8'hff);
    b = l3 + (a.ipv6 ? 40 : 20);
    for (int i = l3; i < fl; i++) begin
      if (i == b + 6 || i == b + 7 || i == b + 12) crc_byte(8'hff);
      else if (!a.ipv6 && (i == l3 + 1 || i == l3 + 8 || i == l3 + 10 || i == l3 + 11)) crc_byte(8'hff);
      else if (a.ipv6 && i == l3) crc_byte(fb[i] | 8'h0f);
      else if (a.ipv6 && (i == l3 + 1 || i == l3 + 2 || i == l3 + 3 || i == l3 + 7)) crc_byte(8'hff);
      else crc_byte(fb[i]);
    end
    put_raw(128'(~crc), 4);
  endtask

  // ---- checks -----------------------------------------------------------------------------------------
  bit fire = 0, in_frame = 0, hold = 0;
  int waits = 0, n_in = 0, n_frames = 0, n_unable = 0, n_full = 0, drops_due = 0, n_vlan = 0, n_v6 = 0, n_held = 0, answer_in = 0, begun_paused = 0;
  qp_idx_t asked;
  bit answering = 0;
  logic [DataW-1:0] hold_data;
  always @(posedge clk) begin
    fire = rst_n && in_valid && in_ready;
    if (rst_n) begin
      waits = in_valid && !in_ready ? waits + 1 : 0;
      if (waits > 4000) $fatal(1, "nobody takes a QP");
      if (fire) begin
        n_in++;
        if (qp_rsp_valid) begin
          if (asked != in_qp) $fatal(1, "QP %0d asked for, %0d wanted", asked, in_qp);
          if (qp_rsp.qp_type inside {QpTypeRc, QpTypeUc} && qp_rsp.state inside {QpRtr, QpRts, QpSqd, QpSqe}) want.push_back({qp_rsp, dscp, prio});
          else begin
            n_unable++;
            drops_due++;
          end
        end else begin
          if (!pause[prio] || want.size() < 8) $fatal(1, "given up with %0d waiting, paused %b", want.size(), pause);
          n_full++;
          drops_due++;
        end
      end
      if (want.size() > 8) $fatal(1, "%0d CNPs wait", want.size());
      if (ev_drop) drops_due--;
      if (drops_due < 0 || drops_due > 1) $fatal(1, "%0d drops", drops_due);
      if (hold && (!tx_valid || tx_data !== hold_data)) $fatal(1, "beat changed while it waited");
      hold = tx_valid && !tx_ready;
      hold_data = tx_data;
      if (in_frame && !tx_valid) $fatal(1, "gap inside a frame");
      if (ev_frame_valid != (tx_valid && tx_ready && tx_last)) $fatal(1, "ev_frame_valid");
      if (pause[prio] && want.size() != 0) n_held++;
      if (tx_valid && tx_ready) begin
        if (!in_frame) gl = 0;
        for (int i = 0; i < NumB; i++) if (tx_keep[i]) begin
          gb[gl] = tx_data[8*i+:8];
          gl++;
        end
        in_frame = !tx_last;
        if (tx_last) begin
          if (want.size() == 0) $fatal(1, "frame nobody asked for");
          w = want.pop_front();
          expect_frame(w);
          if (gl != fl || gl != int'(ev_frame_len) || ev_frame_kind != 3'd6) $fatal(1, "%0d bytes, want %0d, told %0d, kind %0d", gl, fl, ev_frame_len, ev_frame_kind);
          for (int i = 0; i < fl; i++) if (gb[i] != fb[i]) $fatal(1, "byte %0d is %h, want %h", i, gb[i], fb[i]);
          n_frames++;
          if (w.attr.vlan) n_vlan++;
          if (w.attr.ipv6) n_v6++;
        end
      end
      if (idle && (want.size() != 0 || in_valid || answering)) $fatal(1, "idle with %0d CNPs", want.size());
    end
    if (rst_n && qp_req_valid && qp_req_ready) begin
      if (answering) $fatal(1, "asked twice");
      answering = 1;
      asked = qp_req_idx;
      answer_in = $urandom_range(0, 6);
    end else if (answering && qp_rsp_valid) answering = 0;
  end

  int load = 50, mac = 2;
  bit calm = 0;
  always @(negedge clk) if (rst_n) begin
    if (fire) in_valid = 0;
    if (!in_valid && !calm && $urandom_range(0, 99) < load) begin
      in_valid = 1;
      in_qp = qp_idx_t'($urandom_range(0, N - 1));
    end
    qp_req_ready = $urandom_range(0, 2) != 0;
    qp_rsp_valid = answering && answer_in == 0;
    if (answering && answer_in != 0) answer_in--;
    for (int i = 0; i < $bits(qp_attr_t); i++) qp_rsp[i] = 1'($urandom);
    if (qp_rsp_valid) qp_rsp = qps[asked];
    tx_ready = mac == 0 || $urandom_range(0, mac) == 0;
  end

  initial begin
    repeat (3) @(posedge clk);
    rst_n = 1;
    for (int round = 0; round < 60; round++) begin
      for (int q = 0; q < N; q++) begin
        for (int i = 0; i < $bits(qp_attr_t); i++) qps[q][i] = 1'($urandom);
        qps[q].qp_type = 4'($urandom_range(2, 4));
        if (q == 0) qps[q].qp_type = QpTypeRaw;
        if (q > 4) {qps[q].qp_type, qps[q].state} = {1'($urandom) ? QpTypeRc : QpTypeUc, QpRts};
      end
      load = round % 3 == 0 ? 100 : $urandom_range(1, 60);
      mac = $urandom_range(0, 4);
      repeat (400) @(negedge clk);
      if (round % 2 == 0) begin
        // other priorities do not matter, its own for long
        pause = ~(8'd1 << prio);
        repeat (200) @(negedge clk);
        if (!calm && load > 10 && n_frames == begun_paused) $fatal(1, "a pause of other priorities stops CNPs");
        pause = 8'd1 << prio;
        repeat (1500) @(negedge clk);
        pause = 0;
      end
      begun_paused = n_frames;
      calm = 1;
      while (!idle) @(negedge clk);
      dscp = 6'($urandom);
      prio = 3'($urandom);
      calm = 0;
    end
    if (n_frames < 500 || n_unable < 100 || n_full < 100 || n_vlan < 50 || n_v6 < 50 || n_held < 1000) $fatal(1, "corners: %0d %0d %0d %0d %0d %0d", n_frames, n_unable, n_full, n_vlan, n_v6, n_held);
    $display("PASS %0d CNPs (%0d tagged, %0d IPv6), %0d of QPs that have none, %0d given up", n_frames, n_vlan, n_v6, n_unable, n_full);
    $finish;
  end
endmodule
