// SPDX-License-Identifier: Apache-2.0
//
// The drain group of a block whose work ends in the order in which it began: counts what began and what ended.
//
// At the rise of drain_i, or as soon afterwards as hold_i is 0, it remembers how much has begun; done_o is 1 when
// that much has ended, until drain_i falls, however much begins and ends meanwhile. hold_i is 1 while the block has taken
// something that does not count yet. At most 2^(CntW-1) may be on their way.

module drain_count #(
  parameter int unsigned CntW = 16
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       begin_i,
  input  logic [1:0] ended_i,  // how many end in this cycle
  input  logic       hold_i,
  input  logic       drain_i,
  output logic       done_o,
  output logic       empty_o   // nothing is on its way
);

  logic [CntW-1:0] begun_q, ended_q, target_q;
  logic snap_q, done_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= '0;
      ended_q <= '0;
      target_q <= '0;
      snap_q <= 1'b0;
      done_q <= 1'b0;
    end else begin
      if (begin_i) begun_q <= begun_q + 1'b1;
      ended_q <= ended_q + CntW'(ended_i);
      if (!drain_i) begin
        snap_q <= 1'b0;
        done_q <= 1'b0;
      end else if (done_o) begin
        done_q <= 1'b1;   // the counters go on, and around
      end else if (!snap_q && !hold_i) begin
        snap_q <= 1'b1;
        target_q <= begun_q;
      end
    end
  end
  assign done_o = snap_q && (done_q || signed'(ended_q - target_q) >= 0);
  assign empty_o = begun_q == ended_q;

endmodule
