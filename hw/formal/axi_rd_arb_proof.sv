// SPDX-License-Identifier: Apache-2.0
//
// axi_rd_arb: clients and memory that keep AXI's rules see a port, and answers, that keep them. A client waits for at
// most one grant of each other client; nothing is granted while stop_i; not busy means that nothing is outstanding.

module axi_rd_arb_proof
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned N = 2,
  parameter int unsigned MaxOpen = 2,
  parameter int unsigned MaxBeats = 2,
  localparam int unsigned OpenW = $clog2(MaxOpen)
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               stop_i,
  input logic [N-1:0]       ar_valid_i,
  input logic [N-1:0][63:0] ar_addr_i,
  input logic [N-1:0][7:0]  ar_len_i,
  input logic               arready_i,
  input logic [AxiIdW-1:0]  rid_i,
  input logic [DataW-1:0]   rdata_i,
  input logic [1:0]         rresp_i,
  input logic               rlast_i,
  input logic               rvalid_i
);

  logic [N-1:0] ar_ready, r_valid;
  logic busy, r_last, r_err, arvalid, rready;
  logic [DataW-1:0] r_data;
  logic [AxiIdW-1:0] arid;
  logic [63:0] araddr;
  logic [7:0] arlen;
  logic [2:0] arsize;
  logic [1:0] arburst;
  axi_rd_arb #(.DataW(DataW), .NumClients(N)) dut (
    .clk_i, .rst_ni, .stop_i, .busy_o(busy),
    .ar_valid_i, .ar_ready_o(ar_ready), .ar_addr_i, .ar_len_i,
    .r_valid_o(r_valid), .r_data_o(r_data), .r_last_o(r_last), .r_err_o(r_err),
    .m_axi_arid_o(arid), .m_axi_araddr_o(araddr), .m_axi_arlen_o(arlen), .m_axi_arsize_o(arsize),
    .m_axi_arburst_o(arburst), .m_axi_arvalid_o(arvalid), .m_axi_arready_i(arready_i),
    .m_axi_rid_i(rid_i), .m_axi_rdata_i(rdata_i), .m_axi_rresp_i(rresp_i), .m_axi_rlast_i(rlast_i),
    .m_axi_rvalid_i(rvalid_i), .m_axi_rready_o(rready));

  for (genvar i = 0; i < int'(N); i++) begin : gen_client
    axi_rd_check #(.DataW(DataW), .IdW(1), .MaxBeats(MaxBeats), .MaxOpen(MaxOpen), .AssumeMaster(1'b1)) u_check (
      .clk_i, .rst_ni, .ar_valid_i(ar_valid_i[i]), .ar_ready_i(ar_ready[i]), .ar_id_i(1'b0), .ar_addr_i(ar_addr_i[i]),
      .ar_len_i(ar_len_i[i]), .ar_size_i(3'($clog2(DataW / 8))), .ar_burst_i(2'b01), .r_valid_i(r_valid[i]),
      .r_ready_i(1'b1), .r_id_i(1'b0), .r_data_i(r_data), .r_resp_i({r_err, 1'b0}), .r_last_i(r_last));
  end
  axi_rd_check #(
    .DataW(DataW), .IdW(AxiIdW), .NumIds(N), .MaxBeats(MaxBeats), .MaxOpen(MaxOpen), .AssumeSlave(1'b1)
  ) u_port (
    .clk_i, .rst_ni, .ar_valid_i(arvalid), .ar_ready_i(arready_i), .ar_id_i(arid), .ar_addr_i(araddr), .ar_len_i(arlen),
    .ar_size_i(arsize), .ar_burst_i(arburst), .r_valid_i(rvalid_i), .r_ready_i(rready), .r_id_i(rid_i),
    .r_data_i(rdata_i), .r_resp_i(rresp_i), .r_last_i(rlast_i));

  logic first_q = 1'b1;
  logic [N-1:0] take;
  logic [N-1:0][N-1:0] overtaken_q;   // [i][j]: j was granted since i waits
  logic [7:0] open_q;                 // bursts granted and not answered
  logic [N-1:0][7:0] open;            // of each client
  logic [7:0] open_sum;
  always_comb begin
    open_sum = '0;
    for (int i = 0; i < int'(N); i++) open_sum = open_sum + open[i];
  end
  assign take = ar_valid_i & ar_ready;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (!rst_ni) begin
      overtaken_q <= '0;
      open_q <= '0;
    end else begin
      for (int i = 0; i < int'(N); i++) overtaken_q[i] <= take[i] || !ar_valid_i[i] ? '0 : overtaken_q[i] | take;
      open_q <= open_q + 8'(take != '0) - 8'(rvalid_i && rlast_i);
      one_grant: assert ((take & (take - 1'b1)) == '0);
      no_grant_while_stopped: assert (!stop_i || take == '0);
      busy_exact: assert (busy == (open_q != '0) && dut.open_q == 16'(open_q));
      open_exact: assert (open_q == open_sum);
      one_answer: assert ((r_valid & (r_valid - 1'b1)) == '0);
      answer_delivered: assert (!rvalid_i || r_valid == N'(1) << rid_i);
      grant_and_answer: cover (take[N-1] && rvalid_i && rlast_i && open_q == 8'd2);
      overtaking: cover (rvalid_i && rlast_i && rid_i == AxiIdW'(N - 1) && open_q == 8'(N * MaxOpen));
    end
  end

  // What the checker of a client holds, that of the port holds too, but for the request in the register: lemmas, proved
  // with the rest.
  for (genvar i = 0; i < int'(N); i++) begin : gen_lemma
    logic [OpenW:0] c_push, c_pop, c_open, p_push, p_pop;
    logic pending;
    assign c_push = gen_client[i].u_check.gen_id[0].push_q;
    assign c_pop = gen_client[i].u_check.gen_id[0].pop_q;
    assign p_push = u_port.gen_id[i].push_q;
    assign p_pop = u_port.gen_id[i].pop_q;
    assign c_open = c_push - c_pop;
    assign pending = arvalid && arid == AxiIdW'(i);
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        fair: assert ((overtaken_q[i] & take) == '0);
        same_push: assert (p_push == c_push - (OpenW + 1)'(pending));
        same_pop: assert (p_pop == c_pop);
        same_beat: assert (u_port.gen_id[i].beat_q == gen_client[i].u_check.gen_id[0].beat_q);
        bound: assert (32'(c_open) <= MaxOpen);
        pending_len: assert (!pending || arlen == gen_client[i].u_check.gen_id[0].len[OpenW'(c_push - 1'b1)]);
      end
    end
    for (genvar k = 0; k < int'(MaxOpen); k++) begin : gen_len
      logic [OpenW-1:0] at;   // in the queue
      assign at = OpenW'(k) - p_pop[OpenW-1:0];
      always_ff @(posedge clk_i) begin
        if (rst_ni && (OpenW + 1)'(at) < p_push - p_pop) begin
          same_len: assert (u_port.gen_id[i].len[k] == gen_client[i].u_check.gen_id[0].len[k]);
        end
      end
    end
    assign open[i] = 8'(c_open);
  end

endmodule
