// SPDX-License-Identifier: Apache-2.0
//
// Reads, changes and writes back 8 bytes of host memory: CmpSwap and FetchAdd (IBTA 9.4.5).
//
// One operation at a time, so that all atomics of this NIC are atomic among each other whatever QP they
// come on; towards the CPU and other devices they are not (IBV_ATOMIC_HCA). The number in memory is in host order
// (little endian). A CmpSwap that does not match writes nothing.
//
// Throughput: one operation per round trip of a read and a write. Latency: from the last answer of
// the memory to done_o 1 cycle. Back-pressure: req_ready_o is 1 while nothing is under way;
// done_o is a pulse.

module atomic_unit
  import rnic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned NumB = DataW / 8,
  localparam int unsigned LaneW = $clog2(NumB)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             req_valid_i,
  output logic             req_ready_o,
  input  atomic_t          req_i,
  output logic             done_o,
  output logic             err_o,        // host memory answered with an error
  output logic [63:0]      value_o,      // before the operation
  // AXI read client
  output logic             ar_valid_o,
  input  logic             ar_ready_i,
  output logic [63:0]      ar_addr_o,
  output logic [7:0]       ar_len_o,
  input  logic             r_valid_i,
  input  logic [DataW-1:0] r_data_i,
  input  logic             r_err_i,
  // AXI write client
  output logic             aw_valid_o,
  input  logic             aw_ready_i,
  output logic [63:0]      aw_addr_o,
  output logic [7:0]       aw_len_o,
  output logic             w_valid_o,
  input  logic             w_ready_i,
  output logic [DataW-1:0] w_data_o,
  output logic [NumB-1:0]  w_strb_o,
  output logic             w_last_o,
  input  logic             b_valid_i,
  input  logic             b_err_i,
  output logic             ev_rd_err_o,
  output logic             ev_wr_err_o
);

  typedef enum logic [2:0] {
    WaitReq,
    WaitAr,
    WaitR,
    WaitAw,
    WaitW,
    WaitB
  } state_e;

  state_e      state_q;
  atomic_t     req_q;
  logic [63:0] value, next_q;

  // the 8 bytes of the beat that are meant
  if (DataW == 64) begin : gen_whole
    assign value = r_data_i;
    assign w_strb_o = '1;
  end else begin : gen_part
    assign value = r_data_i[{req_q.iova[LaneW-1:3], 6'd0}+:64];
    assign w_strb_o = NumB'(8'hff) << {req_q.iova[LaneW-1:3], 3'd0};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= WaitReq;
      done_o <= 1'b0;
      ev_rd_err_o <= 1'b0;
      ev_wr_err_o <= 1'b0;
    end else begin
      done_o <= 1'b0;
      ev_rd_err_o <= 1'b0;
      ev_wr_err_o <= 1'b0;
      unique case (state_q)
        WaitReq: if (req_valid_i && !done_o) begin
          req_q <= req_i;
          state_q <= WaitAr;
        end
        WaitAr: if (ar_ready_i) state_q <= WaitR;
        WaitR: if (r_valid_i) begin
          value_o <= value;
          next_q <= req_q.fetch_add ? value + req_q.swap_add : req_q.swap_add;
          err_o <= r_err_i;
          ev_rd_err_o <= r_err_i;
          if (r_err_i || (!req_q.fetch_add && value != req_q.compare)) begin
            done_o <= 1'b1;
            state_q <= WaitReq;
          end else begin
            state_q <= WaitAw;
          end
        end
        WaitAw: if (aw_ready_i) state_q <= WaitW;
        WaitW: if (w_ready_i) state_q <= WaitB;
        default: if (b_valid_i) begin  // WaitB
          err_o <= b_err_i;
          ev_wr_err_o <= b_err_i;
          done_o <= 1'b1;
          state_q <= WaitReq;
        end
      endcase
    end
  end

  // not in the cycle of done_o: the request answered may still stand there
  assign req_ready_o = state_q == WaitReq && !done_o;
  assign ar_valid_o = state_q == WaitAr;
  assign ar_addr_o = {req_q.iova[63:LaneW], LaneW'(0)};
  assign ar_len_o = 8'd0;
  assign aw_valid_o = state_q == WaitAw;
  assign aw_addr_o = ar_addr_o;
  assign aw_len_o = 8'd0;
  assign w_valid_o = state_q == WaitW;
  assign w_data_o = {(DataW / 64) {next_q}};
  assign w_last_o = 1'b1;

  logic unused;
  assign unused = ^req_q.iova[2:0];

endmodule
