// SPDX-License-Identifier: Apache-2.0
//
// Contexts of QPs: which QP has which slot (qp_cache), contexts to and from host memory (qp_mover), packed out of and into the modules' state
// (qp_lines). docs/qp-cache.md has the whole picture; the ports are those of the three.
//
// A context comes and goes as a whole: a look-up always needs both halves.
//
// Throughput: a look-up per cycle if it hits; a move (one context out, another one in) per 10 cycles at 512 bit, if memory's latency is
// covered by look-ups that wait: 2^LogMoves at most. Latency of a miss: 20 cycles and memory's.

module qp_ctx
  import rnic_pkg::*;
  import requester_pkg::*;
#(
  parameter int unsigned DataW = 512,
  parameter int unsigned LogSets = 6,
  parameter int unsigned LogWays = 2,    // at least 1
  parameter int unsigned NumPorts = 4,
  parameter int unsigned LogMoves = 4    // fetches under way, and write-backs
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  // host memory; fixed once on
  input  logic                           mem_on_i,
  input  logic [63:11]                   mem_base_i,
  input  logic [4:0]                     mem_log_num_i,   // at most QpnW
  // look-ups
  input  logic        [NumPorts-1:0]     req_valid_i,
  output logic        [NumPorts-1:0]     req_ready_o,
  input  logic        [NumPorts-1:0][23:0] req_qpn_i,
  input  logic                           req_create_i,
  output logic        [NumPorts-1:0]     rsp_valid_o,
  output qpc_status_e [NumPorts-1:0]     rsp_status_o,
  output qp_idx_t     [NumPorts-1:0]     rsp_slot_o,      // stays while the port has its pin
  input  logic        [NumPorts-1:0]     rel_valid_i,
  input  logic                           rel_forget_i,
  input  logic                           pf_valid_i,
  input  logic [23:0]                    pf_qpn_i,
  // QPs whose context could not be moved
  output logic                           bad_valid_o,
  input  logic                           bad_ready_i,
  output qpn_t                           bad_qpn_o,
  // AXI clients
  output logic                           ar_valid_o,
  input  logic                           ar_ready_i,
  output logic [63:0]                    ar_addr_o,
  output logic [7:0]                     ar_len_o,
  input  logic                           r_valid_i,
  input  logic [DataW-1:0]               r_data_i,
  input  logic                           r_last_i,
  input  logic                           r_err_i,
  output logic                           aw_valid_o,
  input  logic                           aw_ready_i,
  output logic [63:0]                    aw_addr_o,
  output logic [7:0]                     aw_len_o,
  output logic                           w_valid_o,
  input  logic                           w_ready_i,
  output logic [DataW-1:0]               w_data_o,
  output logic [DataW/8-1:0]             w_strb_o,
  output logic                           w_last_o,
  input  logic                           b_valid_i,
  input  logic                           b_err_i,
  // modules with state per slot
  output qp_idx_t                        qp_table_probe_qp_o,
  input  logic                           qp_table_busy_i,
  input  logic                           qp_table_dirty_i,
  output logic                           qp_table_ctx_valid_o,
  input  logic                           qp_table_ctx_ready_i,
  output logic                           qp_table_ctx_load_o,
  output qp_idx_t                        qp_table_ctx_qp_o,
  output qp_attr_t                       qp_table_ctx_o,
  input  qp_attr_t                       qp_table_ctx_i,
  output qp_idx_t                        rx_transport_probe_qp_o,
  input  logic                           rx_transport_busy_i,
  output logic                           rx_transport_ctx_valid_o,
  input  logic                           rx_transport_ctx_ready_i,
  output logic                           rx_transport_ctx_load_o,
  output qp_idx_t                        rx_transport_ctx_qp_o,
  output rsp_state_t                     rx_transport_ctx_o,
  input  rsp_state_t                     rx_transport_ctx_i,
  output qp_idx_t                        rq_cache_probe_qp_o,
  input  logic                           rq_cache_busy_i,
  output logic                           rq_cache_ctx_valid_o,
  input  logic                           rq_cache_ctx_ready_i,
  output logic                           rq_cache_ctx_load_o,
  output logic                           rq_cache_ctx_word_o,
  output qp_idx_t                        rq_cache_ctx_qp_o,
  output rq_keep_t                       rq_cache_ctx_o,
  input  rq_keep_t                       rq_cache_ctx_i,
  output logic [3:0]                     rq_cache_ctx_at_o,
  output rq_entry_t                      rq_cache_ctx_entry_o,
  input  rq_entry_t                      rq_cache_ctx_entry_i,
  output qp_idx_t                        rx_payload_writer_probe_qp_o,
  input  logic                           rx_payload_writer_busy_i,
  output logic                           rx_payload_writer_ctx_load_o,
  output qp_idx_t                        rx_payload_writer_ctx_qp_o,
  output logic                           rx_payload_writer_ctx_o,
  input  logic                           rx_payload_writer_ctx_i,
  output qp_idx_t                        read_responder_probe_qp_o,
  input  logic                           read_responder_busy_i,
  output logic                           read_responder_ctx_valid_o,
  input  logic                           read_responder_ctx_ready_i,
  output logic                           read_responder_ctx_load_o,
  output logic                           read_responder_ctx_word_o,
  output qp_idx_t                        read_responder_ctx_qp_o,
  output rsp_keep_t                      read_responder_ctx_o,
  input  rsp_keep_t                      read_responder_ctx_i,
  output logic [2:0]                     read_responder_ctx_at_o,
  output rsp_value_t                     read_responder_ctx_value_o,
  input  rsp_value_t                     read_responder_ctx_value_i,
  output qp_idx_t                        requester_probe_qp_o,
  input  logic                           requester_busy_i,
  input  logic [NumQp-1:0]               requester_open_i,
  output logic                           requester_ctx_valid_o,
  input  logic                           requester_ctx_ready_i,
  output logic                           requester_ctx_load_o,
  output keep_e                          requester_ctx_what_o,
  output qp_idx_t                        requester_ctx_qp_o,
  output qpn_t                           requester_ctx_qpn_o,  // with a load of KeepState
  output logic [LogInflight-1:0]         requester_ctx_at_o,
  output req_keep_t                      requester_ctx_o,
  output flight_t                        requester_ctx_flight_o,
  output rd_entry_t                      requester_ctx_entry_o,
  input  logic                           requester_ctx_rsp_valid_i,
  input  req_keep_t                      requester_ctx_i,
  input  flight_t                        requester_ctx_flight_i,
  input  rd_entry_t                      requester_ctx_entry_i,
  output qp_idx_t                        ack_queue_probe_qp_o,
  input  logic                           ack_queue_busy_i,
  output qp_idx_t                        tx_egress_probe_qp_o,
  input  logic                           tx_egress_busy_i,
  output logic                           closed_o,      // a look-up waits for a slot that is in use
  output ctx_ev_t                        ev_o,
  output logic                           idle_o
);

  localparam int unsigned SlotW = LogSets + LogWays;
  if (SlotW > QpIdxW) $error("more slots than the modules have");

  // ---- which QP has which slot ----------------------------------------------------------------------------------
  logic        [NumPorts-1:0][SlotW-1:0] rsp_slot;
  logic             probe_busy, probe_dirty;
  logic [SlotW-1:0] probe_slot, mv_slot, ln_slot;
  logic             mv_valid, mv_ready, mv_common, mv_zero, fd_valid, fd_ready, fd_err, sd_valid, sd_ready, sd_err, cache_idle, mover_idle;
  logic [2:0]       mv_save;
  logic [1:0]       mv_fill;
  qpn_t             mv_save_qpn, mv_fill_qpn;
  always_comb for (int p = 0; p < int'(NumPorts); p++) rsp_slot_o[p] = QpIdxW'(rsp_slot[p]);
  // verilator lint_off PINCONNECTEMPTY
  // the modules answer at any time
  qp_cache #(.QpnW(QpnW), .LogSets(LogSets), .LogWays(LogWays), .NumPorts(NumPorts), .LogMoves(LogMoves)) u_cache (
    .clk_i, .rst_ni, .mem_on_i, .mem_log_num_i,
    .req_valid_i, .req_ready_o, .req_qpn_i, .req_need_i({NumPorts{2'b11}}), .req_create_i,
    .rsp_valid_o, .rsp_status_o, .rsp_slot_o(rsp_slot), .rel_valid_i, .rel_forget_i, .pf_valid_i, .pf_qpn_i, .pf_need_i(2'b11),
    .probe_valid_o(), .probe_slot_o(probe_slot), .probe_busy_i(probe_busy), .probe_dirty_i(probe_dirty),
    .dear_i(requester_open_i[(1<<SlotW)-1:0]),
    .mv_valid_o(mv_valid), .mv_ready_i(mv_ready), .mv_slot_o(mv_slot), .mv_save_o(mv_save), .mv_save_qpn_o(mv_save_qpn), .mv_fill_o(mv_fill),
    .mv_common_o(mv_common), .mv_zero_o(mv_zero), .mv_fill_qpn_o(mv_fill_qpn),
    .fd_valid_i(fd_valid), .fd_ready_o(fd_ready), .fd_err_i(fd_err), .sd_valid_i(sd_valid), .sd_ready_o(sd_ready), .sd_err_i(sd_err),
    .bad_valid_o, .bad_ready_i, .bad_qpn_o, .closed_o, .ev_o, .idle_o(cache_idle)
  );
  // verilator lint_on PINCONNECTEMPTY

  // halves never come alone
  always_ff @(posedge clk_i)
    if (rst_ni && mv_valid) assert (mv_fill == 2'b11 && mv_common) else $error("half a context: %b", mv_fill);

  // ---- contexts to and from host memory ----------------------------------------------------------------------------
  logic              ln_valid, ln_load, ln_zero, ln_rsp_valid;
  qpn_t              ln_qpn;
  logic [4:0]        ln_no;
  logic [2:0][511:0] ln_ctx, ln_ctx_out, live_ctx;
  logic [511:0]      ln_data, ln_data_out;
  logic [31:0]       ln_live, live;
  qp_mover #(.DataW(DataW), .QpnW(QpnW), .SlotW(SlotW), .LogMoves(LogMoves)) u_mover (
    .clk_i, .rst_ni, .mem_base_i,
    .mv_valid_i(mv_valid), .mv_ready_o(mv_ready), .mv_slot_i(mv_slot), .mv_save_i(mv_save != '0), .mv_save_attr_i(mv_save[2]),
    .mv_save_qpn_i(mv_save_qpn), .mv_zero_i(mv_zero), .mv_fill_qpn_i(mv_fill_qpn),
    .fd_valid_o(fd_valid), .fd_ready_i(fd_ready), .fd_err_o(fd_err), .sd_valid_o(sd_valid), .sd_ready_i(sd_ready), .sd_err_o(sd_err),
    .ln_valid_o(ln_valid), .ln_load_o(ln_load), .ln_zero_o(ln_zero), .ln_slot_o(ln_slot), .ln_qpn_o(ln_qpn), .ln_no_o(ln_no),
    .ln_ctx_o(ln_ctx), .ln_data_o(ln_data), .ln_rsp_valid_i(ln_rsp_valid), .ln_ctx_i(ln_ctx_out), .ln_live_i(ln_live), .ln_data_i(ln_data_out),
    .live_ctx_o(live_ctx), .live_i(live),
    .ar_valid_o, .ar_ready_i, .ar_addr_o, .ar_len_o, .r_valid_i, .r_data_i, .r_last_i, .r_err_i,
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o, .b_valid_i, .b_err_i,
    .idle_o(mover_idle)
  );

  // ---- the modules' state -------------------------------------------------------------------------------------------
  qp_lines u_lines (
    .clk_i, .rst_ni,
    .ln_valid_i(ln_valid), .ln_load_i(ln_load), .ln_zero_i(ln_zero), .ln_slot_i(QpIdxW'(ln_slot)), .ln_qpn_i(ln_qpn), .ln_no_i(ln_no),
    .ln_ctx_i(ln_ctx), .ln_data_i(ln_data), .ln_rsp_valid_o(ln_rsp_valid), .ln_ctx_o(ln_ctx_out), .ln_live_o(ln_live), .ln_data_o(ln_data_out),
    .live_ctx_i(live_ctx), .live_o(live),
    .probe_slot_i(QpIdxW'(probe_slot)), .probe_busy_o(probe_busy), .probe_dirty_o(probe_dirty),
    .qp_table_probe_qp_o, .qp_table_busy_i, .qp_table_dirty_i, .qp_table_ctx_valid_o, .qp_table_ctx_ready_i, .qp_table_ctx_load_o,
    .qp_table_ctx_qp_o, .qp_table_ctx_o, .qp_table_ctx_i,
    .rx_transport_probe_qp_o, .rx_transport_busy_i, .rx_transport_ctx_valid_o, .rx_transport_ctx_ready_i, .rx_transport_ctx_load_o,
    .rx_transport_ctx_qp_o, .rx_transport_ctx_o, .rx_transport_ctx_i,
    .rq_cache_probe_qp_o, .rq_cache_busy_i, .rq_cache_ctx_valid_o, .rq_cache_ctx_ready_i, .rq_cache_ctx_load_o, .rq_cache_ctx_word_o,
    .rq_cache_ctx_qp_o, .rq_cache_ctx_o, .rq_cache_ctx_i, .rq_cache_ctx_at_o, .rq_cache_ctx_entry_o, .rq_cache_ctx_entry_i,
    .rx_payload_writer_probe_qp_o, .rx_payload_writer_busy_i, .rx_payload_writer_ctx_load_o, .rx_payload_writer_ctx_qp_o,
    .rx_payload_writer_ctx_o, .rx_payload_writer_ctx_i,
    .read_responder_probe_qp_o, .read_responder_busy_i, .read_responder_ctx_valid_o, .read_responder_ctx_ready_i, .read_responder_ctx_load_o,
    .read_responder_ctx_word_o, .read_responder_ctx_qp_o, .read_responder_ctx_o, .read_responder_ctx_i, .read_responder_ctx_at_o,
    .read_responder_ctx_value_o, .read_responder_ctx_value_i,
    .requester_probe_qp_o, .requester_busy_i, .requester_ctx_valid_o, .requester_ctx_ready_i, .requester_ctx_load_o,
    .requester_ctx_what_o, .requester_ctx_qp_o, .requester_ctx_qpn_o, .requester_ctx_at_o, .requester_ctx_o, .requester_ctx_flight_o,
    .requester_ctx_entry_o, .requester_ctx_rsp_valid_i, .requester_ctx_i, .requester_ctx_flight_i, .requester_ctx_entry_i,
    .ack_queue_probe_qp_o, .ack_queue_busy_i,
    .tx_egress_probe_qp_o, .tx_egress_busy_i
  );

  assign idle_o = cache_idle && mover_idle;

  logic unused;
  assign unused = ^{mv_fill, mv_common, requester_open_i};   // not all slots are used with few sets

endmodule
