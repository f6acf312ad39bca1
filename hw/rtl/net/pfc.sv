// SPDX-License-Identifier: Apache-2.0
//
// Priority flow control (IEEE 802.1Q clause 36), the part between the NIC's buffers and its MAC, which makes and takes the frames.
//
// Receive: the packet buffer is one for all priorities, so all of enable_i are stopped (xoff_o) together, when bytes or frames in the
// buffer reach their XOFF mark, and let go when both are at their XON mark or below. What is left above XOFF is
// headroom for what is on its way; full_o keeps frames of other priorities out of it.
// Transmit: a priority that the peer stopped (pause_i) is held at the frame memory (pause_o) if it is in enable_i.
//
// Watchdog, after watchdog_us_i microseconds without a break (0: never). The buffer above XON: XOFF is taken back until the
// buffer has come down (ev_storm_error_o; ev_storm_warning_o at half the time), so that a NIC whose host stands still does not
// stop the network. A frame held at the frame memory: its priority is let go until the peer's pause has ended (ev_ignored_o),
// so that no peer can keep this NIC from draining. Times are up to a microsecond late.
//
// Outputs are registers, one cycle behind the inputs. busy_o: a timer runs.

module pfc
  import rnic_pkg::*;
#(
  parameter int unsigned ClkPs = 4000
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [7:0]  enable_i,
  input  logic [15:0] xoff_units_i,     // of 64 bytes
  input  logic [15:0] xon_units_i,
  input  logic [15:0] xoff_frames_i,
  input  logic [15:0] xon_frames_i,
  input  logic [23:0] watchdog_us_i,
  // packet buffer
  input  logic [15:0] units_i,
  input  logic [15:0] frames_i,
  output logic        full_o,
  // frame memory
  input  logic        held_i,           // a frame waits for the end of a pause
  input  logic [2:0]  held_prio_i,
  output logic [7:0]  pause_o,
  // MAC
  input  logic [7:0]  pause_i,
  output logic [7:0]  xoff_o,
  output logic [7:0]  ev_rx_pause_o,    // the peer stopped a priority
  output logic [7:0]  ev_tx_pause_o,    // and so did we
  output logic        ev_storm_warning_o,
  output logic        ev_storm_error_o,
  output logic        ev_ignored_o,
  output logic        busy_o
);

  localparam int unsigned CyclesPerUs = 1_000_000 / ClkPs;
  localparam int unsigned TickW = $clog2(CyclesPerUs);

  // ---- receive ------------------------------------------------------------------------------------
  logic level_q, level, stopped_q;      // above the marks; the watchdog has ended it
  assign level = units_i >= xoff_units_i || frames_i >= xoff_frames_i ||
                 (level_q && (units_i > xon_units_i || frames_i > xon_frames_i));

  // ---- watchdog ---------------------------------------------------------------------------------------
  logic [TickW-1:0] tick_q;
  logic             tick, level_run, held_run, warned_q;
  logic [23:0]      level_us_q, held_us_q;
  logic [7:0]       ignore_q;           // paused too long

  assign level_run = level_q && !stopped_q && enable_i != '0;
  assign held_run = held_i && !ignore_q[held_prio_i];
  assign busy_o = level_run || held_run;
  assign tick = 32'(tick_q) == CyclesPerUs - 1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      level_q <= 1'b0;
      stopped_q <= 1'b0;
      warned_q <= 1'b0;
      tick_q <= '0;
      level_us_q <= '0;
      held_us_q <= '0;
      ignore_q <= '0;
      full_o <= 1'b0;
      pause_o <= '0;
      xoff_o <= '0;
      ev_rx_pause_o <= '0;
      ev_tx_pause_o <= '0;
      ev_storm_warning_o <= 1'b0;
      ev_storm_error_o <= 1'b0;
      ev_ignored_o <= 1'b0;
    end else begin
      ev_storm_warning_o <= 1'b0;
      ev_storm_error_o <= 1'b0;
      ev_ignored_o <= 1'b0;
      level_q <= level;
      if (!level) stopped_q <= 1'b0;
      full_o <= level && enable_i != '0;
      xoff_o <= level && !stopped_q ? enable_i : '0;
      ev_tx_pause_o <= level && !stopped_q ? enable_i & ~xoff_o : '0;
      pause_o <= pause_i & enable_i & ~ignore_q;
      ev_rx_pause_o <= pause_i & enable_i & ~ignore_q & ~pause_o;
      ignore_q <= ignore_q & pause_i;

      tick_q <= !busy_o || tick ? '0 : tick_q + 1'b1;
      if (!level_run) begin
        level_us_q <= '0;
        warned_q <= 1'b0;
      end else if (tick) begin
        level_us_q <= level_us_q + 24'd1;
      end
      if (!held_run) held_us_q <= '0;
      else if (tick) held_us_q <= held_us_q + 24'd1;

      if (watchdog_us_i != '0) begin
        if (level_run && !warned_q && level_us_q >= (watchdog_us_i >> 1) && level_us_q != '0) begin
          warned_q <= 1'b1;
          ev_storm_warning_o <= 1'b1;
        end
        if (level_run && level && level_us_q >= watchdog_us_i) begin
          stopped_q <= 1'b1;
          ev_storm_error_o <= 1'b1;
        end
        if (held_run && held_us_q >= watchdog_us_i && pause_i[held_prio_i]) begin
          ignore_q[held_prio_i] <= 1'b1;
          ev_ignored_o <= 1'b1;
        end
      end
    end
  end

endmodule
