// SPDX-License-Identifier: Apache-2.0
//
// stream_arb: the output keeps the stream rules if the inputs do; every word taken is the one that goes out, one
// source at a time; a waiting source is overtaken by at most one word of the other.

module stream_arb_proof #(
  parameter int unsigned Width = 4
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [1:0]            in_valid_i,
  input logic [1:0][Width-1:0] in_data_i,
  input logic                  out_ready_i
);

  logic [1:0] in_ready;
  logic out_valid;
  logic [Width-1:0] out_data;
  stream_arb #(.Width(Width)) dut (
    .clk_i, .rst_ni, .in_valid_i, .in_ready_o(in_ready), .in_data_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data));

  for (genvar i = 0; i < 2; i++) begin : gen_in
    stream_check #(.Width(Width), .Assume(1'b1)) u_check (
      .clk_i, .rst_ni, .valid_i(in_valid_i[i]), .ready_i(in_ready[i]), .data_i(in_data_i[i]));
  end
  stream_check #(.Width(Width)) u_out (
    .clk_i, .rst_ni, .valid_i(out_valid), .ready_i(out_ready_i), .data_i(out_data));

  logic first_q = 1'b1;
  logic [1:0] take, overtaken_q;
  assign take = in_valid_i & in_ready;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (!rst_ni) begin
      overtaken_q <= '0;
    end else begin
      for (int i = 0; i < 2; i++) begin
        if (take[i] || !in_valid_i[i]) overtaken_q[i] <= 1'b0;
        else if (take[1-i]) overtaken_q[i] <= 1'b1;
      end
      one_source: assert (in_ready != 2'b11);
      out_is_taken: assert ((out_valid && out_ready_i) == (take != '0));
      data_0: assert (!take[0] || out_data == in_data_i[0]);
      data_1: assert (!take[1] || out_data == in_data_i[1]);
      fair_0: assert (!overtaken_q[0] || !take[1]);
      fair_1: assert (!overtaken_q[1] || !take[0]);
      both_wait: cover (in_valid_i == 2'b11 && overtaken_q == 2'b01 && take[0]);
      other_way: cover (in_valid_i == 2'b11 && overtaken_q == 2'b10 && take[1]);
    end
  end

endmodule
