// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// proofs is the table. To add one: write hw/formal/NAME_proof.sv (module NAME_proof; every assert, assume and cover has a
// label, the first cycle is in reset), add a row, and plant defects that it must find.
var proofs = []proof{
	{
		name:   "rnic_fifo",
		claim:  "order, data, levels, handshake",
		params: []string{"Depth=8"},
		reach:  12,
		limit:  60 * time.Second,
		mutants: []edit{
			{"hw/rtl/lib/rnic_fifo.sv", "assign in_ready_o = !level_o[AddrW];", "assign in_ready_o = level_o < (AddrW + 1)'(Depth - 1);"},
			{"hw/rtl/lib/rnic_fifo.sv", "assign in_ready_o = !level_o[AddrW];", "assign in_ready_o = 1'b1;"},
			{"hw/rtl/lib/rnic_fifo.sv", "out_data_o = mem[rptr_q[AddrW-1:0]]", "out_data_o = mem[wptr_q[AddrW-1:0]]"},
		},
	},
	{
		name:   "timer_tree",
		claim:  "a timer fires when it is due, once, in time; next (8 timers in 2 trees)",
		params: []string{"Num=8", "TickW=2"},
		depth:  42,
		reach:  30,
		limit:  240 * time.Second,
		mutants: []edit{
			{"hw/rtl/lib/timer_tree.sv", "assign word = last_q && last_addr_q == addr ? last_word_q : rdata;", "assign word = rdata;"},
			{"hw/rtl/lib/timer_tree.sv", "&& leaf[TickW:1] <= now_i;", ";"},
			{"hw/rtl/lib/timer_tree.sv", "(!r[0] || l[TickW:1] <= r[TickW:1]);", "(!r[0] || l[TickW:1] >= r[TickW:1]);"},
			{"hw/rtl/lib/timer_tree.sv", "l[0] && (!r[0] || l", "(!r[0] || l"},
			{"hw/rtl/lib/timer_tree.sv", "leaf[0] && !fire}", "leaf[0]}"},
			{"hw/rtl/lib/timer_tree.sv", "!sweeping && !in_valid && v == '0;", "!sweeping;"},
			{"hw/rtl/lib/timer_tree.sv", "fire_ready_i && !set_valid_i && !sweeping;", "fire_ready_i && !sweeping;"},
			{"hw/rtl/lib/timer_tree.sv", "if (v_test[Levels]) testing_q", "if (1'b0) testing_q"},
			{"hw/rtl/lib/timer_tree.sv", "assign right = at[k][k];", "assign right = at[k][0];"},
		},
	},
	{
		name:  "stream_arb",
		claim: "one source at a time, data, stream rules, overtaken once at most",
		reach: 8,
		limit: 60 * time.Second,
		mutants: []edit{
			{"hw/rtl/lib/stream_arb.sv", "assign sel = held_q ? sel_q : sel_q", "assign sel = sel_q"},
			{"hw/rtl/lib/stream_arb.sv", "sel_q ? in_valid_i[1] && !in_valid_i[0] : in_valid_i[1]", "in_valid_i[1]"},
			{"hw/rtl/lib/stream_arb.sv", "{sel && out_ready_i, !sel && out_ready_i}", "{2{out_ready_i}}"},
		},
	},
	{
		name:  "axi_rd_arb",
		claim: "AXI4 rules at port and clients, fairness, stop, busy (2 clients, 2 open, bursts of 2)",
		reach: 16,
		limit: 120 * time.Second,
		mutants: []edit{
			{"hw/rtl/mem/axi_rd_arb.sv", "assign free = !m_axi_arvalid_o || m_axi_arready_i;", "assign free = 1'b1;"},
			{"hw/rtl/mem/axi_rd_arb.sv", "assign take = free && !stop_i && |ar_valid_i;", "assign take = free && |ar_valid_i;"},
			{"hw/rtl/mem/axi_rd_arb.sv", "SelW'(i) > last_q", "SelW'(i) < last_q"},
			{"hw/rtl/mem/axi_rd_arb.sv", "m_axi_arlen_o <= ar_len_i[sel];", "m_axi_arlen_o <= ar_len_i[last_q];"},
			{"hw/rtl/mem/axi_rd_arb.sv", "assign done = m_axi_rvalid_i && m_axi_rlast_i;", "assign done = m_axi_rvalid_i;"},
			{"hw/rtl/mem/axi_rd_arb.sv", "m_axi_rid_i == AxiIdW'(i);", "m_axi_rid_i != AxiIdW'(i);"},
		},
	},
	{
		name:  "axi_wr_mux",
		claim: "AXI4 rules at port and clients, W in AW order, fairness, stop, busy (2 clients, 2 open, bursts of 2)",
		reach: 20,
		limit: 120 * time.Second,
		mutants: []edit{
			{"hw/rtl/mem/axi_wr_mux.sv", "(!data_q || last_beat)", "1'b1"},
			{"hw/rtl/mem/axi_wr_mux.sv", "(!m_axi_awvalid_o || m_axi_awready_i)", "1'b1"},
			{"hw/rtl/mem/axi_wr_mux.sv", "if (last_beat) data_q <= 1'b0;", "if (m_axi_wvalid_o && m_axi_wlast_o) data_q <= 1'b0;"},
			{"hw/rtl/mem/axi_wr_mux.sv", "SelW'(i) > cur_q", "SelW'(i) < cur_q"},
			{"hw/rtl/mem/axi_wr_mux.sv", "w_ready_o[cur_q] = data_q && m_axi_wready_i;", "w_ready_o[cur_q] = m_axi_wready_i;"},
			{"hw/rtl/mem/axi_wr_mux.sv", "|aw_valid_i && !stop_i &&", "|aw_valid_i &&"},
		},
	},
	{
		name:  "psn",
		claim: "psn_diff, psn_ge, psn_gt against numbers that do not wrap, all values",
		reach: 3,
		limit: 60 * time.Second,
		mutants: []edit{
			{"hw/rtl/pkg/rnic_pkg.sv", "return psn_diff(a, b) >= 0;", "return a >= b;"},
			{"hw/rtl/pkg/rnic_pkg.sv", "return psn_diff(a, b) > 0;", "return psn_diff(b, a) < 0;"},
			{"hw/rtl/pkg/rnic_pkg.sv", "return signed'(a - b);", "return signed'(24'(a[22:0] - b[22:0]));"},
		},
	},
	{
		name:  "byte_packer",
		claim: "every byte in its lane, last beats, zero lanes, stream rules (32 bit)",
		reach: 8,
		limit: 120 * time.Second,
		mutants: []edit{
			{"hw/rtl/lib/byte_packer.sv", "a_valid_q && !(flush_q && a_emit)", "a_valid_q"},
			{"hw/rtl/lib/byte_packer.sv", "assign a_over = a_full && a_end_q[LaneW-1:0] != '0;", "assign a_over = a_full && a_end_q[LaneW-1:0] > 1;"},
			{"hw/rtl/lib/byte_packer.sv", "if (a_full) acc_q <= a_data_q;", "if (a_full && !a_last_q) acc_q <= a_data_q;"},
			{"hw/rtl/lib/byte_packer.sv", "o_data_q <= acc_q & low_lanes(flush_cnt_q);", "o_data_q <= acc_q;"},
			{"hw/rtl/lib/byte_packer.sv", "o_last_q <= a_last_q && !a_over;", "o_last_q <= a_last_q;"},
		},
	},
	{
		name:  "rnic_csr",
		claim: "AXI4-Lite rules of the slave, doorbell stream",
		reach: 12,
		limit: 120 * time.Second,
		mutants: []edit{
			{"hw/rtl/gen/rnic_csr.sv", "w_valid_q && (!b_valid_q || s_axil_bready_i);", "w_valid_q;"},
			{"hw/rtl/gen/rnic_csr.sv", "assign wr_done = wr_pending && (!db_valid_o || db_ready_i);", "assign wr_done = wr_pending;"},
			{"hw/rtl/gen/rnic_csr.sv", "assign wr_pending = aw_valid_q && w_valid_q &&", "assign wr_pending = aw_valid_q &&"},
		},
	},
	{
		name:  "tx_frame_fifo",
		claim: "whole frames without gaps, order, TKEEP, frames taken back (8 words, 4 frames)",
		sizes: []edit{{"hw/rtl/tx/tx_frame_fifo.sv", ".Depth(16)) u_pend", ".Depth(4)) u_pend"}},
		depth: 15,
		reach: 15,
		limit: 240 * time.Second,
		mutants: []edit{
			{"hw/rtl/tx/tx_frame_fifo.sv", "beat_q == '0 && pfc_pause_i[head.f.prio];", "pfc_pause_i[head.f.prio];"},
			{"hw/rtl/tx/tx_frame_fifo.sv", "wptr_q <= base_q;", "wptr_q <= wptr_q + 1'b1;"},
			{"hw/rtl/tx/tx_frame_fifo.sv", "if (advance && s1_valid_q) begin", "if (s1_valid_q) begin"},
			{"hw/rtl/tx/tx_frame_fifo.sv", "if (take) beats_q <= in_last_i ? '0 : beats_q + 1'b1;", "if (take) beats_q <= in_last_i && !in_abort_i ? '0 : beats_q + 1'b1;"},
		},
	},
	{
		name:   "reset_ctrl",
		claim:  "AXI and frame finished first, length, nothing begins, nothing is cut, RX skips (stuck MAC: 16 cycles)",
		params: []string{"ResetCycles=3", "StuckCycles=16"},
		sizes: []edit{
			{"hw/rtl/host/reset_ctrl.sv", "logic [16:0] wait_q;", "logic [4:0] wait_q;"},
			{"hw/rtl/host/reset_ctrl.sv", "if (!wait_q[16])", "if (!wait_q[4])"},
			{"hw/rtl/host/reset_ctrl.sv", "|| wait_q[16])", "|| wait_q[4])"},
		},
		reach: 40,
		limit: 120 * time.Second,
		mutants: []edit{
			{"hw/rtl/host/reset_ctrl.sv", "&& !axi_busy_i", ""},
			{"hw/rtl/host/reset_ctrl.sv", "(state_q == StRun || tx_open_q)", "state_q == StRun"},
			{"hw/rtl/host/reset_ctrl.sv", "if (rst_q) rx_skip_o <= rx_open;", "if (rst_q) rx_skip_o <= rx_open_q;"},
			{"hw/rtl/host/reset_ctrl.sv", "(!tx_open_q ||", "(1'b1 ||"},
		},
	},
	{
		name:  "ack_queue",
		claim: "one word a QP, the newest; NAKs stay; none lost (4 QPs)",
		sizes: []edit{{"hw/rtl/pkg/rnic_pkg.sv", "`define RNIC_NUM_QP 256", "`define RNIC_NUM_QP 4"}},
		depth: 10,
		reach: 10,
		limit: 240 * time.Second,
		mutants: []edit{
			{"hw/rtl/rx/ack_queue.sv", "assign stored = bypass_q ? last_body_q : stored_ram;", "assign stored = stored_ram;"},
			{"hw/rtl/rx/ack_queue.sv", "pending_q[ack_q.qp] && !(fetch && fifo_qp == ack_q.qp)", "pending_q[ack_q.qp]"},
			{"hw/rtl/rx/ack_queue.sv", "psn_gt(stored.psn, ack_q.psn)", "psn_gt(ack_q.psn, stored.psn)"},
			{"hw/rtl/rx/ack_queue.sv", "assign turn = fifo_valid && hold_i && !push;", "assign turn = fifo_valid && hold_i;"},
			{"hw/rtl/rx/ack_queue.sv", "assign write = in_q && !keep;", "assign write = in_q && !pending;"},
		},
	},
}
