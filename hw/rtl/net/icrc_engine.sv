// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 over the beats that icrc_mask prepares. The register starts at zero with every frame (the
// seed is in the data) and is not inverted at the end; the zero bytes behind the end of the data
// are part of the result: the receiver compares it with the residue for that many zeros
// (rnic_crc_pkg::crc_residue), the sender takes them back (icrc_unshift).
//
// One beat per cycle, frames without a gap, no back-pressure. Latency from the last beat of a frame
// to valid_o: Latency = 3 cycles (2 at 64 bit). Beats with skip_i do not change the register.
// user_i is sampled with last_i and comes out with valid_o.
//
// The data matrix is split into groups of 64 bits, so that no stage XORs more than about 40 terms;
// only the 32-bit state loop is closed in one cycle (IBTA A17.3.3, Ethernet CRC of IEEE 802.3
// 3.2.9).

module icrc_engine #(
  parameter int unsigned DataW = 512,
  parameter int unsigned UserW = 6
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  input  logic             first_i,
  input  logic             last_i,
  input  logic             skip_i,
  input  logic [DataW-1:0] data_i,
  input  logic [UserW-1:0] user_i,
  output logic             valid_o,
  output logic [31:0]      state_o,
  output logic [UserW-1:0] user_o
);
  import rnic_crc_pkg::*;

  localparam int unsigned Groups = DataW / 64;

  // ---- stage 1: each group of 64 bits -------------------------------------------------------
  logic p_valid_q, p_first_q, p_last_q, p_skip_q;
  logic [UserW-1:0] p_user_q;
  logic [31:0] p_q[Groups];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) p_valid_q <= 1'b0;
    else p_valid_q <= valid_i;
    if (valid_i) begin
      p_first_q <= first_i;
      p_last_q <= last_i;
      p_skip_q <= skip_i;
      if (last_i) p_user_q <= user_i;
    end
  end

  for (genvar g = 0; g < Groups; g++) begin : gen_group
    localparam int unsigned After = Groups - 1 - g;
    logic [63:0] d;
    assign d = data_i[64*g+:64];
    if (After == 0) begin : gen_fold0
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold0(d);
    end else if (After == 1) begin : gen_fold1
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold1(d);
    end else if (After == 2) begin : gen_fold2
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold2(d);
    end else if (After == 3) begin : gen_fold3
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold3(d);
    end else if (After == 4) begin : gen_fold4
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold4(d);
    end else if (After == 5) begin : gen_fold5
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold5(d);
    end else if (After == 6) begin : gen_fold6
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold6(d);
    end else if (After == 7) begin : gen_fold7
      always_ff @(posedge clk_i) if (valid_i && !skip_i) p_q[g] <= crc_fold7(d);
    end
  end

  // ---- stage 2: their sum -------------------------------------------------------------------
  logic d_valid, d_first, d_last, d_skip;
  logic [UserW-1:0] d_user;
  logic [31:0] d_sum;

  if (Groups == 1) begin : gen_no_sum
    assign d_valid = p_valid_q;
    assign d_first = p_first_q;
    assign d_last = p_last_q;
    assign d_skip = p_skip_q;
    assign d_user = p_user_q;
    assign d_sum = p_q[0];
  end else begin : gen_sum
    logic d_valid_q, d_first_q, d_last_q, d_skip_q;
    logic [UserW-1:0] d_user_q;
    logic [31:0] d_sum_q;

    logic [31:0] sum;
    always_comb begin
      sum = '0;
      for (int unsigned i = 0; i < Groups; i++) sum ^= p_q[i];
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) d_valid_q <= 1'b0;
      else d_valid_q <= p_valid_q;
      if (p_valid_q) begin
        d_first_q <= p_first_q;
        d_last_q <= p_last_q;
        d_skip_q <= p_skip_q;
        if (p_last_q) d_user_q <= p_user_q;
        if (!p_skip_q) d_sum_q <= sum;
      end
    end

    assign d_valid = d_valid_q;
    assign d_first = d_first_q;
    assign d_last = d_last_q;
    assign d_skip = d_skip_q;
    assign d_user = d_user_q;
    assign d_sum = d_sum_q;
  end

  // ---- stage 3: the register ----------------------------------------------------------------
  logic s_valid_q;
  logic [31:0] s_q;
  logic [UserW-1:0] s_user_q;

  function automatic logic [31:0] advance(input logic [31:0] s);
    if (DataW == 64) return crc_adv64(s);
    if (DataW == 128) return crc_adv128(s);
    if (DataW == 256) return crc_adv256(s);
    return crc_adv512(s);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) s_valid_q <= 1'b0;
    else s_valid_q <= d_valid && d_last;
    if (d_valid) begin
      if (d_last) s_user_q <= d_user;
      if (d_first) s_q <= d_skip ? '0 : d_sum;
      else if (!d_skip) s_q <= d_sum ^ advance(s_q);
    end
  end

  assign valid_o = s_valid_q;
  assign state_o = s_q;
  assign user_o = s_user_q;

endmodule
