// SPDX-License-Identifier: Apache-2.0
//
// axi_wr_mux: clients and memory that keep AXI's rules see a port, and answers, that keep them; W beats follow the order
// of the AWs (axi_wr_check). A client waits for at most one grant of each other client; nothing is granted while stop_i;
// not busy means that nothing is outstanding.

module axi_wr_mux_proof
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned N = 2,
  parameter int unsigned MaxOpen = 2,
  parameter int unsigned MaxBeats = 2,
  localparam int unsigned OpenW = $clog2(MaxOpen)
) (
  input logic                      clk_i,
  input logic                      rst_ni,
  input logic                      stop_i,
  input logic [N-1:0]              aw_valid_i,
  input logic [N-1:0][63:0]        aw_addr_i,
  input logic [N-1:0][7:0]         aw_len_i,
  input logic [N-1:0]              w_valid_i,
  input logic [N-1:0][DataW-1:0]   w_data_i,
  input logic [N-1:0][DataW/8-1:0] w_strb_i,
  input logic [N-1:0]              w_last_i,
  input logic                      awready_i,
  input logic                      wready_i,
  input logic [AxiIdW-1:0]         bid_i,
  input logic [1:0]                bresp_i,
  input logic                      bvalid_i
);

  logic [N-1:0] aw_ready, w_ready, b_valid;
  logic [DataW-1:0] w_data[N];
  logic [DataW/8-1:0] w_strb[N];
  logic busy, b_err, awvalid, wvalid, wlast, bready;
  logic [AxiIdW-1:0] awid;
  logic [63:0] awaddr;
  logic [7:0] awlen;
  logic [2:0] awsize;
  logic [1:0] awburst;
  logic [DataW-1:0] wdata;
  logic [DataW/8-1:0] wstrb;
  for (genvar i = 0; i < int'(N); i++) begin : gen_w
    assign w_data[i] = w_data_i[i];
    assign w_strb[i] = w_strb_i[i];
  end
  axi_wr_mux #(.DataW(DataW), .NumClients(N)) dut (
    .clk_i, .rst_ni, .stop_i, .busy_o(busy),
    .aw_valid_i, .aw_ready_o(aw_ready), .aw_addr_i, .aw_len_i,
    .w_valid_i, .w_ready_o(w_ready), .w_data_i(w_data), .w_strb_i(w_strb), .w_last_i,
    .b_valid_o(b_valid), .b_err_o(b_err),
    .m_axi_awid_o(awid), .m_axi_awaddr_o(awaddr), .m_axi_awlen_o(awlen), .m_axi_awsize_o(awsize),
    .m_axi_awburst_o(awburst), .m_axi_awvalid_o(awvalid), .m_axi_awready_i(awready_i),
    .m_axi_wdata_o(wdata), .m_axi_wstrb_o(wstrb), .m_axi_wlast_o(wlast), .m_axi_wvalid_o(wvalid),
    .m_axi_wready_i(wready_i), .m_axi_bid_i(bid_i), .m_axi_bresp_i(bresp_i), .m_axi_bvalid_i(bvalid_i),
    .m_axi_bready_o(bready));

  for (genvar i = 0; i < int'(N); i++) begin : gen_client
    axi_wr_check #(
      .DataW(DataW), .IdW(1), .MaxBeats(MaxBeats), .MaxOpen(MaxOpen), .MaxAhead(2), .AssumeMaster(1'b1)
    ) u_check (
      .clk_i, .rst_ni, .aw_valid_i(aw_valid_i[i]), .aw_ready_i(aw_ready[i]), .aw_id_i(1'b0), .aw_addr_i(aw_addr_i[i]),
      .aw_len_i(aw_len_i[i]), .aw_size_i(3'($clog2(DataW / 8))), .aw_burst_i(2'b01), .w_valid_i(w_valid_i[i]),
      .w_ready_i(w_ready[i]), .w_data_i(w_data_i[i]), .w_strb_i(w_strb_i[i]), .w_last_i(w_last_i[i]),
      .b_valid_i(b_valid[i]), .b_ready_i(1'b1), .b_id_i(1'b0), .b_resp_i({b_err, 1'b0}));
  end
  axi_wr_check #(
    .DataW(DataW), .IdW(AxiIdW), .NumIds(N), .MaxBeats(MaxBeats), .MaxOpen(MaxOpen), .MaxAhead(2), .AssumeSlave(1'b1)
  ) u_port (
    .clk_i, .rst_ni, .aw_valid_i(awvalid), .aw_ready_i(awready_i), .aw_id_i(awid), .aw_addr_i(awaddr), .aw_len_i(awlen),
    .aw_size_i(awsize), .aw_burst_i(awburst), .w_valid_i(wvalid), .w_ready_i(wready_i), .w_data_i(wdata),
    .w_strb_i(wstrb), .w_last_i(wlast), .b_valid_i(bvalid_i), .b_ready_i(bready), .b_id_i(bid_i), .b_resp_i(bresp_i));

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
  assign take = aw_valid_i & aw_ready;

  always_ff @(posedge clk_i) begin
    first_q <= 1'b0;
    if (first_q) begin
      begins_in_reset: assume (!rst_ni);
    end
    if (!rst_ni) begin
      overtaken_q <= '0;
      open_q <= '0;
    end else begin
      for (int i = 0; i < int'(N); i++) overtaken_q[i] <= take[i] || !aw_valid_i[i] ? '0 : overtaken_q[i] | take;
      open_q <= open_q + 8'(take != '0) - 8'(bvalid_i);
      one_grant: assert ((take & (take - 1'b1)) == '0);
      no_grant_while_stopped: assert (!stop_i || take == '0);
      busy_exact: assert (busy == (open_q != '0) && dut.open_q == 16'(open_q));
      open_exact: assert (open_q == open_sum);
      w_one_client: assert ((w_ready & (w_ready - 1'b1)) == '0);
      w_passes: assert ((wvalid && wready_i) == ((w_valid_i & w_ready) != '0));
      answer_delivered: assert (!bvalid_i || b_valid == N'(1) << bid_i);
      back_to_back: cover (wvalid && wready_i && wlast && take[N-1]);
      many_open: cover (bvalid_i && open_q == 8'(N * MaxOpen));
    end
  end

  // What the checkers of the clients hold, that of the port holds too: lemmas, proved with the rest.
  logic [1:0] p_ahead;
  logic p_new;               // the AW at the port is not in its checker's queue yet
  logic [7:0] p_len;
  assign p_ahead = u_port.push_q - u_port.pop_q;
  assign p_new = awvalid && !u_port.aw_seen_q;
  assign p_len = p_new ? awlen : u_port.len[u_port.pop_q[0]];
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      port_queue: assert (p_ahead == 2'(dut.data_q && !p_new));
      port_seen: assert (!u_port.aw_seen_q || awvalid);
      port_id: assert (!dut.data_q || ((!awvalid || 32'(awid) == 32'(dut.cur_q)) &&
                       (p_new || 32'(u_port.id[u_port.pop_q[0]]) == 32'(dut.cur_q))));
    end
  end
  for (genvar i = 0; i < int'(N); i++) begin : gen_lemma
    logic [OpenW:0] c_aw, p_aw;
    logic [1:0] c_ahead, c_push;
    logic pending, owner, c_seen;
    assign c_aw = gen_client[i].u_check.gen_id[0].aw_q;
    assign p_aw = u_port.gen_id[i].aw_q;
    assign c_push = gen_client[i].u_check.push_q;
    assign c_ahead = c_push - gen_client[i].u_check.pop_q;
    assign c_seen = gen_client[i].u_check.aw_seen_q;
    assign pending = awvalid && 32'(awid) == i;
    assign owner = dut.data_q && 32'(dut.cur_q) == i;
    assign open[i] = 8'(c_aw);
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        fair: assert ((overtaken_q[i] & take) == '0);
        same_aw: assert (c_aw == p_aw + (OpenW + 1)'(pending));
        same_w: assert (u_port.gen_id[i].w_q == gen_client[i].u_check.gen_id[0].w_q);
        bound: assert (32'(c_aw) <= MaxOpen);
        w_then_aw: assert (c_aw == u_port.gen_id[i].w_q + (OpenW + 1)'(owner));
        beat: assert (gen_client[i].u_check.beat_q == (owner ? u_port.beat_q : 8'd0));
        queue: assert (c_ahead == 2'(owner) + 2'(c_seen));
        len: assert (!owner || p_len == gen_client[i].u_check.len[gen_client[i].u_check.pop_q[0]]);
        offered: assert (!c_seen || (gen_client[i].u_check.u_aw.wait_q &&
                         gen_client[i].u_check.len[~c_push[0]] == gen_client[i].u_check.u_aw.data_q[12:5]));
      end
    end
  end

endmodule
