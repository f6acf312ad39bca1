// SPDX-License-Identifier: Apache-2.0
//
// Function reset: the core stops taking new work, finishes what a bus partner would miss (AXI
// bursts, the Ethernet frame on its way out), and is then reset together with the register values.
//
// stop_o is 1 from the trigger to the end of the reset; core_rst_no is low for ResetCycles while
// host memory owes nothing and no frame is half sent. AXI is waited for without limit, as a burst
// cannot be taken back; a MAC that does not take the rest of a frame for 65536 cycles loses it. A
// frame that arrives across the reset is not looked at (rx_skip_o). Reset is not part of a spec
// section; rules of AXI: IHI 0022 A3.1.2.

module reset_ctrl #(
  parameter int unsigned ResetCycles = 16
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic trigger_i,
  input  logic axi_busy_i,
  // MAC out
  input  logic tx_valid_i,    // from the egress
  output logic tx_valid_o,    // to the MAC
  input  logic tx_ready_i,
  input  logic tx_last_i,
  // MAC in
  input  logic rx_valid_i,
  input  logic rx_last_i,
  output logic rx_skip_o,     // beats of a frame whose begin was lost in the reset
  output logic stop_o,
  output logic core_rst_no
);

  typedef enum logic [1:0] {
    StRun,
    StFinish,
    StReset
  } state_e;
  state_e state_q;
  logic [16:0] wait_q;
  logic tx_open_q, rx_open_q, rx_open, rst_q;

  assign tx_valid_o = tx_valid_i && (state_q == StRun || tx_open_q);
  assign stop_o = state_q != StRun;
  assign core_rst_no = !rst_q;
  assign rx_open = rx_valid_i ? !rx_last_i : rx_open_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StRun;
      rst_q <= 1'b1;
      wait_q <= '0;
      tx_open_q <= 1'b0;
      rx_open_q <= 1'b0;
      rx_skip_o <= 1'b0;
    end else begin
      tx_open_q <= tx_valid_o && !(tx_ready_i && tx_last_i);
      rx_open_q <= rx_open;
      rst_q <= state_q == StReset;
      if (rst_q) rx_skip_o <= rx_open;
      else if (!rx_open) rx_skip_o <= 1'b0;
      unique case (state_q)
        StRun: begin
          wait_q <= '0;
          if (trigger_i) state_q <= StFinish;
        end
        StFinish: begin
          if (!wait_q[16]) wait_q <= wait_q + 1'b1;
          // two cycles after the stop no client gets a grant any more
          if (wait_q > 17'd1 && !axi_busy_i && (!tx_open_q || wait_q[16])) begin
            wait_q <= '0;
            state_q <= StReset;
          end
        end
        default: begin
          wait_q <= wait_q + 1'b1;
          tx_open_q <= 1'b0;
          if (wait_q == 17'(ResetCycles)) state_q <= StRun;
        end
      endcase
    end
  end

endmodule
