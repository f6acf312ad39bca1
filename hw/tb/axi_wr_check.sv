// SPDX-License-Identifier: Apache-2.0
//
// Checker of the write channels of an AXI4 port (IHI 0022 A3.2 to A3.4, A5.3), with this design's narrower rules
// (docs/blocks.md): INCR bursts of full width, aligned, at most MaxBeats long, inside 4 KiB; W beats come in the
// order of the AWs and never before their AW is offered, WLAST with the burst's last beat; at most MaxOpen bursts
// of an ID outstanding and MaxAhead AWs before their W (powers of two). A B belongs to a burst whose AW and last
// W were taken in earlier cycles.

`include "check.svh"
module axi_wr_check #(
  parameter int unsigned DataW = 64,
  parameter int unsigned IdW = 4,
  parameter int unsigned NumIds = 1,
  parameter int unsigned MaxBeats = 64,
  parameter int unsigned MaxOpen = 64,
  parameter int unsigned MaxAhead = 4,
  parameter bit AssumeMaster = 1'b0,
  parameter bit AssumeSlave = 1'b0,
  localparam int unsigned OpenW = $clog2(MaxOpen),
  localparam int unsigned AheadW = $clog2(MaxAhead)
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               aw_valid_i,
  input logic               aw_ready_i,
  input logic [IdW-1:0]     aw_id_i,
  input logic [63:0]        aw_addr_i,
  input logic [7:0]         aw_len_i,
  input logic [2:0]         aw_size_i,
  input logic [1:0]         aw_burst_i,
  input logic               w_valid_i,
  input logic               w_ready_i,
  input logic [DataW-1:0]   w_data_i,
  input logic [DataW/8-1:0] w_strb_i,
  input logic               w_last_i,
  input logic               b_valid_i,
  input logic               b_ready_i,
  input logic [IdW-1:0]     b_id_i,
  input logic [1:0]         b_resp_i
);

  localparam int unsigned LogB = $clog2(DataW / 8);

  stream_check #(.Width(IdW + 77), .Assume(AssumeMaster)) u_aw (
    .clk_i, .rst_ni, .valid_i(aw_valid_i), .ready_i(aw_ready_i),
    .data_i({aw_id_i, aw_addr_i, aw_len_i, aw_size_i, aw_burst_i}));
  stream_check #(.Width(DataW + DataW / 8 + 1), .Assume(AssumeMaster)) u_w (
    .clk_i, .rst_ni, .valid_i(w_valid_i), .ready_i(w_ready_i),
    .data_i({w_data_i, w_strb_i, w_last_i}));
  stream_check #(.Width(IdW + 2), .Assume(AssumeSlave)) u_b (
    .clk_i, .rst_ni, .valid_i(b_valid_i), .ready_i(b_ready_i), .data_i({b_id_i, b_resp_i}));

  // offset of the last byte of the burst from the 4 KiB page of its first
  logic [15:0] aw_end;
  assign aw_end = 16'(aw_addr_i[11:0]) + ((16'(aw_len_i) + 16'd1) << LogB) - 16'd1;

  // ---- AWs offered whose W beats are not all taken, in order --------------------------------------
  logic [7:0] len[MaxAhead];
  logic [IdW-1:0] id[MaxAhead];
  logic [AheadW:0] push_q, pop_q, ahead;
  logic aw_seen_q, aw_new, has_aw, w_done;
  logic [7:0] w_len, beat_q;
  logic [IdW-1:0] w_id;

  assign ahead = push_q - pop_q;
  assign aw_new = aw_valid_i && !aw_seen_q;
  assign has_aw = ahead != '0 || aw_new;
  assign w_len = ahead != '0 ? len[pop_q[AheadW-1:0]] : aw_len_i;
  assign w_id = ahead != '0 ? id[pop_q[AheadW-1:0]] : aw_id_i;
  assign w_done = w_valid_i && w_ready_i && w_last_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      push_q <= '0;
      pop_q <= '0;
      aw_seen_q <= 1'b0;
      beat_q <= '0;
    end else begin
      aw_seen_q <= aw_valid_i && !aw_ready_i;
      if (aw_valid_i) begin
        `RNIC_CHECK(AssumeMaster, aw_full_width, aw_size_i == 3'(LogB))
        `RNIC_CHECK(AssumeMaster, aw_incr, aw_burst_i == 2'b01)
        `RNIC_CHECK(AssumeMaster, aw_aligned, aw_addr_i[LogB-1:0] == '0)
        `RNIC_CHECK(AssumeMaster, aw_inside_4k, aw_end[15:12] == '0)
        `RNIC_CHECK(AssumeMaster, aw_short, 32'(aw_len_i) < MaxBeats)
        `RNIC_CHECK(AssumeMaster, aw_id_known, 32'(aw_id_i) < NumIds)
      end
      if (aw_new) begin
        `RNIC_CHECK(AssumeMaster, aw_ahead_bound, !ahead[AheadW])
        len[push_q[AheadW-1:0]] <= aw_len_i;
        id[push_q[AheadW-1:0]] <= aw_id_i;
        push_q <= push_q + 1'b1;
      end
      if (w_valid_i) begin
        `RNIC_CHECK(AssumeMaster, w_has_aw, has_aw)
        `RNIC_CHECK(AssumeMaster, w_last_right, w_last_i == (beat_q == w_len))
        if (w_ready_i) beat_q <= w_last_i ? '0 : beat_q + 1'b1;
      end
      if (w_done) pop_q <= pop_q + 1'b1;
      if (b_valid_i) begin
        `RNIC_CHECK(AssumeSlave, b_id_known, 32'(b_id_i) < NumIds)
        `RNIC_CHECK(AssumeSlave, b_no_exokay, b_resp_i != 2'b01)
      end
    end
  end

  // ---- bursts per ID that a B may answer ------------------------------------------------------------
  for (genvar i = 0; i < int'(NumIds); i++) begin : gen_id
    logic [OpenW:0] aw_q, w_q;   // AWs taken, bursts whose last W was taken, both less the Bs
    logic aw, w, b;
    assign aw = aw_valid_i && aw_ready_i && aw_id_i == IdW'(i);
    assign w = w_done && w_id == IdW'(i);
    assign b = b_valid_i && b_id_i == IdW'(i);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        aw_q <= '0;
        w_q <= '0;
      end else begin
        if (aw) begin
          `RNIC_CHECK(AssumeMaster, aw_bound, !aw_q[OpenW])
        end
        if (b) begin
          `RNIC_CHECK(AssumeSlave, b_has_aw, aw_q != '0)
          `RNIC_CHECK(AssumeSlave, b_has_w, w_q != '0)
        end
        aw_q <= aw_q + (OpenW + 1)'(aw) - (OpenW + 1)'(b && b_ready_i);
        w_q <= w_q + (OpenW + 1)'(w) - (OpenW + 1)'(b && b_ready_i);
      end
    end
  end

endmodule
