// SPDX-License-Identifier: Apache-2.0
//
// Types of the reaction point of DCQCN (cc/cc_rp.sv): parameters in hardware units, events, state of a QP.

package cc_rp_pkg;
  import rnic_pkg::*;

  /* verilator lint_off UNUSEDPARAM */
  localparam int unsigned RateW = 24;
  localparam int unsigned RateFrac = 16;
  localparam int unsigned AlphaFrac = 24;
  localparam int unsigned SentW = 20;
  /* verilator lint_on UNUSEDPARAM */

  typedef logic [RateW-1:0] rate_t;      // bytes per clock, Q8.16
  typedef logic [AlphaFrac:0] alpha_t;   // 0 to 1
  typedef logic [26:0] span_t;           // clocks
  typedef logic [7:0] stage_t;           // saturates
  typedef logic [SentW-1:0] sent_t;      // bytes

  // Behind each parameter NVIDIA's name and unit.
  typedef struct packed {
    logic        enable;           // else CNPs are ignored
    logic        windowed;         // NVIDIA's form, else the paper's
    logic        hai_by_stage;     // the i-th hyper increase adds i times hai_rate
    logic        clamp_tgt;        // clamp_tgt_rate
    logic        clamp_tgt_ati;    // clamp_tgt_rate_after_time_inc
    logic [3:0]  gd;               // rpg_gd less 10: a cut takes alpha / 2^gd of the rate
    logic [4:0]  threshold;        // rpg_threshold; 0 counts as 1
    rate_t       line_rate;
    rate_t       max_rate;         // rpg_max_rate; 0: line_rate
    rate_t       min_rate;         // rpg_min_rate; 0 counts as 1
    rate_t       first_rate;       // rate_to_set_on_first_cnp; 0: off
    rate_t       ai_rate;          // rpg_ai_rate
    rate_t       hai_rate;         // rpg_hai_rate
    logic [7:0]  resolution;       // a rate that is this close to the maximum is the maximum
    logic [15:0] gain;             // g * 2^16: (1024 - dce_tcp_g) * 64
    logic [16:0] initial_alpha;    // * 2^16: initial_alpha_value * 64
    logic [16:0] max_cut;          // * 2^16: 1 - rpg_min_dec_fac / 100
    span_t       alpha_period;     // dce_tcp_rtt; at least 16
    span_t       monitor_period;   // rate_reduce_monitor_period; at least 64
    span_t       time_reset;       // rpg_time_reset; at least 256
    logic [31:0] byte_reset;       // rpg_byte_reset * 64; at least 64
    sent_t       burst;            // credit that a QP can save up; 0 counts as 1
  } rp_params_t;

  // The same as a program gives them, by NVIDIA's names and in NVIDIA's units: rates in Mb/s, times in us (cc/cc_rp_units.sv).
  typedef struct packed {
    logic        enable;
    logic        windowed;
    logic        hai_by_stage;
    logic        clamp_tgt_rate;
    logic        clamp_tgt_rate_after_time_inc;
    logic [4:0]  rpg_gd;                   // 10 to 25; below 10 counts as 10
    logic [4:0]  rpg_threshold;
    logic [19:0] line_rate;
    logic [19:0] rpg_max_rate;
    logic [19:0] rpg_min_rate;
    logic [19:0] rate_to_set_on_first_cnp;
    logic [19:0] rpg_ai_rate;
    logic [19:0] rpg_hai_rate;
    logic [9:0]  dce_tcp_g;                // (1-g) * 1024
    logic [9:0]  initial_alpha_value;      // * 1024; 1023 is 1 in the paper's form
    logic [6:0]  rpg_min_dec_fac;          // percent
    logic [16:0] dce_tcp_rtt;
    logic [16:0] rate_reduce_monitor_period;
    logic [16:0] rpg_time_reset;
    logic [17:0] rpg_byte_reset;           // 64 bytes
    logic [7:0]  resolution;               // 2^-16 bytes per clock
    sent_t       burst;                    // bytes
  } rp_regs_t;

  typedef enum logic [2:0] {
    RpCnpCut   = 3'd0,  // the paper's form: a CNP came, and cut
    RpCnp      = 3'd1,  // windowed: a CNP came
    RpCut      = 3'd2,  // windowed: at the end of a monitor period
    RpFast     = 3'd4,  // fast recovery
    RpAdditive = 3'd5,
    RpHyper    = 3'd6,
    RpReleased = 3'd7   // back at the maximum
  } rp_event_e;

  // A step of a reaction point, with the state behind it; alpha is that of its last use.
  typedef struct packed {
    rp_event_e   what;
    logic        by_byte;   // an increase by bytes sent, not by time
    qpn_t        qpn;
    logic [63:0] at;        // clock at which it was due
    rate_t       rate;
    rate_t       target;
    alpha_t      alpha;
    stage_t      time_stage;
    stage_t      byte_stage;
  } rp_step_t;

  // State of a QP, for a query. Counts since the limiter was given; they wrap.
  typedef struct packed {
    logic        found;     // has a limiter
    logic        parked;    // at the maximum, nothing is limited
    rate_t       rate;
    rate_t       target;
    alpha_t      alpha;
    stage_t      time_stage;
    stage_t      byte_stage;
    logic [15:0] cuts;
    logic [15:0] fast;
    logic [15:0] additive;
    logic [15:0] hyper;
  } rp_view_t;

endpackage
