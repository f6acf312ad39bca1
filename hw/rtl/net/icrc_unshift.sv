// SPDX-License-Identifier: Apache-2.0
//
// Takes zero bytes back out of a CRC register: the engine's result covers tail_i zero bytes behind
// the data; one pipelined step per bit of tail_i multiplies by the inverse matrix of that many
// bytes. With Placeholder set, four more zero bytes are taken back (the empty ICRC field at the end
// of a frame). crc_o is inverted: the value on the wire, first byte in bits 7:0.
//
// One result per cycle, no back-pressure. Latency: $clog2(DataW/8) + Placeholder cycles.

module icrc_unshift #(
  parameter int unsigned DataW = 512,
  parameter bit Placeholder = 1'b1,
  localparam int unsigned Steps = $clog2(DataW / 8)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  input  logic [31:0]      state_i,
  input  logic [Steps-1:0] tail_i,
  output logic             crc_valid_o,
  output logic [31:0]      crc_o
);
  import rnic_crc_pkg::*;

  logic             v[Steps+1];
  logic [31:0]      s[Steps+1];
  logic [Steps-1:0] t[Steps+1];

  assign v[0] = valid_i;
  assign s[0] = state_i;
  assign t[0] = tail_i;

  for (genvar i = 0; i < Steps; i++) begin : gen_step
    logic             v_q;
    logic [31:0]      s_q;
    logic [Steps-1:0] t_q;
    if (i == 0) begin : gen_back1
      always_ff @(posedge clk_i) if (v[i]) s_q <= t[i][i] ? crc_back1(s[i]) : s[i];
    end else if (i == 1) begin : gen_back2
      always_ff @(posedge clk_i) if (v[i]) s_q <= t[i][i] ? crc_back2(s[i]) : s[i];
    end else if (i == 2) begin : gen_back4
      always_ff @(posedge clk_i) if (v[i]) s_q <= t[i][i] ? crc_back4(s[i]) : s[i];
    end else if (i == 3) begin : gen_back8
      always_ff @(posedge clk_i) if (v[i]) s_q <= t[i][i] ? crc_back8(s[i]) : s[i];
    end else if (i == 4) begin : gen_back16
      always_ff @(posedge clk_i) if (v[i]) s_q <= t[i][i] ? crc_back16(s[i]) : s[i];
    end else begin : gen_back32
      always_ff @(posedge clk_i) if (v[i]) s_q <= t[i][i] ? crc_back32(s[i]) : s[i];
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) v_q <= 1'b0;
      else v_q <= v[i];
      if (v[i]) t_q <= t[i];
    end
    assign v[i+1] = v_q;
    assign s[i+1] = s_q;
    assign t[i+1] = t_q;
  end

  if (Placeholder) begin : gen_placeholder
    logic v_q;
    logic [31:0] s_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) v_q <= 1'b0;
      else v_q <= v[Steps];
      if (v[Steps]) s_q <= crc_back4(s[Steps]);
    end
    assign crc_valid_o = v_q;
    assign crc_o = ~s_q;
  end else begin : gen_bare
    assign crc_valid_o = v[Steps];
    assign crc_o = ~s[Steps];
  end

  logic unused_tail;
  assign unused_tail = ^t[Steps];

endmodule
