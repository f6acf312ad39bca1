// SPDX-License-Identifier: Apache-2.0
//
// Checker of the read channels of an AXI4 port (IHI 0022 A3.2, A3.4, A5.3), with this design's narrower rules
// (docs/blocks.md): INCR bursts of full width, aligned, at most MaxBeats long, inside 4 KiB; at most MaxOpen
// bursts of an ID outstanding (a power of two). Every R beat belongs to the oldest burst of its ID that was
// taken in an earlier cycle, RLAST comes with that burst's last beat. R of different IDs may interleave.

`include "check.svh"
module axi_rd_check #(
  parameter int unsigned DataW = 64,
  parameter int unsigned IdW = 4,
  parameter int unsigned NumIds = 1,
  parameter int unsigned MaxBeats = 64,
  parameter int unsigned MaxOpen = 64,
  parameter bit AssumeMaster = 1'b0,
  parameter bit AssumeSlave = 1'b0,
  localparam int unsigned OpenW = $clog2(MaxOpen)
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             ar_valid_i,
  input logic             ar_ready_i,
  input logic [IdW-1:0]   ar_id_i,
  input logic [63:0]      ar_addr_i,
  input logic [7:0]       ar_len_i,
  input logic [2:0]       ar_size_i,
  input logic [1:0]       ar_burst_i,
  input logic             r_valid_i,
  input logic             r_ready_i,
  input logic [IdW-1:0]   r_id_i,
  input logic [DataW-1:0] r_data_i,
  input logic [1:0]       r_resp_i,
  input logic             r_last_i
);

  localparam int unsigned LogB = $clog2(DataW / 8);

  stream_check #(.Width(IdW + 77), .Assume(AssumeMaster)) u_ar (
    .clk_i, .rst_ni, .valid_i(ar_valid_i), .ready_i(ar_ready_i),
    .data_i({ar_id_i, ar_addr_i, ar_len_i, ar_size_i, ar_burst_i}));
  stream_check #(.Width(IdW + DataW + 3), .Assume(AssumeSlave)) u_r (
    .clk_i, .rst_ni, .valid_i(r_valid_i), .ready_i(r_ready_i),
    .data_i({r_id_i, r_data_i, r_resp_i, r_last_i}));

  // offset of the last byte of the burst from the 4 KiB page of its first
  logic [15:0] ar_end;
  assign ar_end = 16'(ar_addr_i[11:0]) + ((16'(ar_len_i) + 16'd1) << LogB) - 16'd1;

  always_ff @(posedge clk_i) begin
    if (rst_ni && ar_valid_i) begin
      `RNIC_CHECK(AssumeMaster, ar_full_width, ar_size_i == 3'(LogB))
      `RNIC_CHECK(AssumeMaster, ar_incr, ar_burst_i == 2'b01)
      `RNIC_CHECK(AssumeMaster, ar_aligned, ar_addr_i[LogB-1:0] == '0)
      `RNIC_CHECK(AssumeMaster, ar_inside_4k, ar_end[15:12] == '0)
      `RNIC_CHECK(AssumeMaster, ar_short, 32'(ar_len_i) < MaxBeats)
      `RNIC_CHECK(AssumeMaster, ar_id_known, 32'(ar_id_i) < NumIds)
    end
    if (rst_ni && r_valid_i) begin
      `RNIC_CHECK(AssumeSlave, r_id_known, 32'(r_id_i) < NumIds)
      `RNIC_CHECK(AssumeSlave, r_no_exokay, r_resp_i != 2'b01)
    end
  end

  for (genvar i = 0; i < int'(NumIds); i++) begin : gen_id
    logic [7:0] len[MaxOpen];
    logic [OpenW:0] push_q, pop_q, open;   // bursts taken, bursts answered
    logic [7:0] beat_q;
    logic ar, r;
    assign open = push_q - pop_q;
    assign ar = ar_valid_i && ar_ready_i && ar_id_i == IdW'(i);
    assign r = r_valid_i && r_id_i == IdW'(i);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        push_q <= '0;
        pop_q <= '0;
        beat_q <= '0;
      end else begin
        if (ar) begin
          `RNIC_CHECK(AssumeMaster, ar_bound, !open[OpenW])
          len[push_q[OpenW-1:0]] <= ar_len_i;
          push_q <= push_q + 1'b1;
        end
        if (r) begin
          `RNIC_CHECK(AssumeSlave, r_asked_for, open != '0)
          `RNIC_CHECK(AssumeSlave, r_last_right, r_last_i == (beat_q == len[pop_q[OpenW-1:0]]))
        end
        if (r && r_ready_i) begin
          beat_q <= r_last_i ? '0 : beat_q + 1'b1;
          if (r_last_i) pop_q <= pop_q + 1'b1;
        end
      end
    end
  end

endmodule
