// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sort"
	"strings"
)

// element is one 32- or 64-bit register of the block; arrays are taken apart.
type element struct {
	r   *register
	idx int // -1 for a register that is no array
}

// ref is how the SV code names member f of the element in struct s.
func (e element) ref(s, f string) string {
	if e.idx < 0 {
		return fmt.Sprintf("%s.%s.%s", s, e.r.name, f)
	}
	return fmt.Sprintf("%s.%s[%d].%s", s, e.r.name, e.idx, f)
}

func (e element) offset() uint64 { return e.r.offset + uint64(max(e.idx, 0))*e.r.stride }

// words sorts the elements of the block into 8-byte words.
func (m *model) words() (indices []uint64, byWord map[uint64][]element) {
	byWord = map[uint64][]element{}
	for _, r := range m.csr.registers {
		for i := 0; i < int(r.count); i++ {
			e := element{r, i}
			if !r.array {
				e.idx = -1
			}
			byWord[e.offset()/8] = append(byWord[e.offset()/8], e)
		}
	}
	for w := range byWord {
		indices = append(indices, w)
	}
	sort.Slice(indices, func(i, j int) bool { return indices[i] < indices[j] })
	return indices, byWord
}

// mapped is the mask of the 4-byte halves of an 8-byte word that hold registers.
func mapped(es []element) int {
	mask := 0
	for _, e := range es {
		switch {
		case e.r.width == 64:
			mask = 3
		case e.offset()%8 == 0:
			mask |= 1
		default:
			mask |= 2
		}
	}
	return mask
}

// runs turns sorted numbers into SV inside-list items.
func runs(xs []uint64) []string {
	var out []string
	for i := 0; i < len(xs); {
		j := i
		for j+1 < len(xs) && xs[j+1] == xs[j]+1 {
			j++
		}
		if i == j {
			out = append(out, fmt.Sprintf("13'h%04x", xs[i]))
		} else {
			out = append(out, fmt.Sprintf("[13'h%04x:13'h%04x]", xs[i], xs[j]))
		}
		i = j + 1
	}
	return out
}

func (w *writer) insideList(items []string, indent string) {
	line := indent
	for i, it := range items {
		if i < len(items)-1 {
			it += ", "
		}
		if len(line)+len(it) > 98 {
			w.f("%s\n", strings.TrimRight(line, " "))
			line = indent
		}
		line += it
	}
	w.f("%s\n", line)
}

const readGroupWords = 16 // 8-byte words muxed in the first read stage

// genCSR makes rnic_csr.sv.
func genCSR(m *model) string {
	w := &writer{}
	idx, byWord := m.words()
	w.WriteString(svHeader)
	w.f(`//
// Register block and doorbell pages: AXI4-Lite slave with 64 data bits.
//
// Registers. A write works on the bytes that wstrb names. rw: those bytes change; wo: hardware sees
// them (the others as zero); rw1c: ones clear, a set pulse in the same cycle wins; ro and const: no
// effect, OKAY. reg2hw_o.<reg>.qe is 1 for one cycle, together with the new value. A write with a
// strobe in a 4-byte word that holds no register has no effect at all and is answered SLVERR. A
// read of a 4-byte word without register is answered SLVERR with data 0; bytes without register
// beside one that is read are 0. A 64-bit register may be read by two 4-byte reads, low half first:
// the high half is then the one that belongs to the low half read before, so that counters do not
// tear.
// Doorbells. Only full 8-byte aligned writes at a defined offset ring (else SLVERR); the write is
// answered when db_ready_i took it. Reads of defined offsets are OKAY with data 0.
//
// clear_i returns all registers to their reset values and leaves bus transfers alone.
//
// Throughput: a write every cycle, a read every 4. Latency: bvalid 2 cycles after the later of
// AW and W (doorbells: 1 cycle after db_ready_i), rvalid 3 cycles after AR. Back-pressure: two
// writes (one of them answered) and one read in flight; AW and W may come in any order and are
// taken without waiting for each other; a doorbell that is not taken holds writes, never reads.
// db_ready_i reaches awready and wready in the same cycle. Nothing toggles while the bus is idle.
// Specification: hw/regs/csr.yaml and hw/regs/doorbell.yaml; AMBA AXI4-Lite (ARM IHI 0022).

module rnic_csr
  import rnic_regs_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        clear_i,

  input  logic [16:0] s_axil_awaddr_i,
  input  logic [2:0]  s_axil_awprot_i,
  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [63:0] s_axil_wdata_i,
  input  logic [7:0]  s_axil_wstrb_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  output logic [1:0]  s_axil_bresp_o,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  input  logic [16:0] s_axil_araddr_i,
  input  logic [2:0]  s_axil_arprot_i,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  output logic [63:0] s_axil_rdata_o,
  output logic [1:0]  s_axil_rresp_o,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,

  output csr_reg2hw_t reg2hw_o,
  input  csr_hw2reg_t hw2reg_i,

  output logic        db_valid_o,
  input  logic        db_ready_i,
  output logic [3:0]  db_page_o,
  output logic [11:0] db_offset_o,
  output logic [63:0] db_data_o
);
  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlvErr = 2'b10;

  // ---- which addresses exist ------------------------------------------------------------------
  // The 4-byte halves of an 8-byte word that hold a register.
  function automatic logic [1:0] csr_map(input logic [12:0] word);
`)
	for _, mask := range []int{3, 1, 2} {
		var list []uint64
		for _, i := range idx {
			if mapped(byWord[i]) == mask {
				list = append(list, i)
			}
		}
		if len(list) == 0 {
			continue
		}
		w.f("    if (word inside {\n")
		w.insideList(runs(list), "          ")
		w.f("        }) return 2'b%02b;\n", mask)
	}
	w.f("    return 2'b00;\n  endfunction\n\n")
	var wide []uint64
	for _, i := range idx {
		if byWord[i][0].r.width == 64 {
			wide = append(wide, i)
		}
	}
	w.f("  // 1: one 64-bit register.\n  function automatic logic csr_wide(input logic [12:0] word);\n")
	if len(wide) == 0 {
		w.f("    return word != word;\n")
	} else {
		w.f("    return word inside {\n")
		w.insideList(runs(wide), "        ")
		w.f("    };\n")
	}
	w.f("  endfunction\n\n")
	w.f("  function automatic logic db_hit(input logic [11:0] offset);\n    return offset inside {\n")
	var bells []string
	for _, r := range m.doorbell.bells {
		for i := range r.count {
			bells = append(bells, fmt.Sprintf("12'h%03x", r.offset+i*r.stride))
		}
	}
	w.insideList(bells, "        ")
	w.f("    };\n  endfunction\n")

	// Which sequential blocks are needed.
	var w1c []*register
	for _, r := range m.csr.registers {
		if r.access == accRW1C {
			w1c = append(w1c, r)
		}
	}
	w.f(`
  // ---- write channel --------------------------------------------------------------------------
  logic aw_valid_q, w_valid_q, b_valid_q, b_err_q;
  logic [16:0] aw_addr_q;
  logic [1:0] aw_map_q;
  logic aw_db_hit_q;
  logic [63:0] w_data_q;
  logic [7:0] w_strb_q;

  logic wr_pending, wr_db, wr_db_ok, wr_csr_ok, wr_en, wr_done;
  logic [1:0] wr_touch;
  // Which bits a write may change; those that no register has are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  logic [63:0] wr_mask;
  // verilator lint_on UNUSEDSIGNAL

  assign wr_pending = aw_valid_q && w_valid_q && (!b_valid_q || s_axil_bready_i);
  assign wr_db = aw_addr_q[16];
  assign wr_db_ok = aw_db_hit_q && (&w_strb_q);
  always_comb begin
    wr_touch = {|w_strb_q[7:4], |w_strb_q[3:0]};
    if (w_strb_q == '0) wr_touch = aw_addr_q[2] ? 2'b10 : 2'b01;
  end
  assign wr_csr_ok = (wr_touch & ~aw_map_q) == '0;
  assign wr_en = wr_pending && !wr_db && wr_csr_ok;
  assign wr_done = wr_pending && (!db_valid_o || db_ready_i);
  for (genvar i = 0; i < 8; i++) begin : gen_mask
    assign wr_mask[8*i+:8] = {8{w_strb_q[i]}};
  end

  assign s_axil_awready_o = !aw_valid_q || wr_done;
  assign s_axil_wready_o = !w_valid_q || wr_done;
  assign s_axil_bvalid_o = b_valid_q;
  assign s_axil_bresp_o = b_err_q ? RespSlvErr : RespOkay;

  assign db_valid_o = wr_pending && wr_db && wr_db_ok;
  assign db_page_o = aw_addr_q[15:12];
  assign db_offset_o = aw_addr_q[11:0];
  assign db_data_o = w_data_q;

  always_ff @(posedge clk_i) begin
    if (s_axil_awvalid_i && s_axil_awready_o) begin
      aw_addr_q <= s_axil_awaddr_i;
      aw_map_q <= csr_map(s_axil_awaddr_i[15:3]);
      aw_db_hit_q <= db_hit(s_axil_awaddr_i[11:0]);
    end
    if (s_axil_wvalid_i && s_axil_wready_o) begin
      w_data_q <= s_axil_wdata_i;
      w_strb_q <= s_axil_wstrb_i;
    end
    if (wr_done) b_err_q <= wr_db ? !wr_db_ok : !wr_csr_ok;
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      if (s_axil_awvalid_i) aw_valid_q <= 1'b1;
      else if (wr_done) aw_valid_q <= 1'b0;
      if (s_axil_wvalid_i) w_valid_q <= 1'b1;
      else if (wr_done) w_valid_q <= 1'b0;
      if (wr_done) b_valid_q <= 1'b1;
      else if (s_axil_bready_i) b_valid_q <= 1'b0;
    end
  end

  // ---- rw and wo registers --------------------------------------------------------------------
  csr_reg2hw_t reg_q;
  logic qe_q;
  assign reg2hw_o = reg_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      qe_q <= 1'b0;
      reg_q <= '0;
`)
	each := func(fn func(e element)) {
		for _, i := range idx {
			for _, e := range byWord[i] {
				fn(e)
			}
		}
	}
	each(func(e element) {
		for _, f := range e.r.fields {
			if e.r.access == accRW && f.reset != 0 {
				w.f("      %s <= %d'h%x;\n", e.ref("reg_q", f.name), f.width, f.reset)
			}
		}
	})
	w.f("    end else begin\n      qe_q <= wr_en;\n      if (qe_q) begin\n")
	each(func(e element) {
		if e.r.toHW() {
			w.f("        %s <= 1'b0;\n", e.ref("reg_q", "qe"))
		}
	})
	w.f("      end\n      if (wr_en) begin\n        case (aw_addr_q[15:3])\n")
	for _, i := range idx {
		var body writer
		for _, e := range byWord[i] {
			if !e.r.toHW() {
				continue
			}
			sh := int(e.offset()%8) * 8
			body.f("            if (|w_strb_q[%d:%d]) begin\n", sh/8+e.r.width/8-1, sh/8)
			body.f("              %s <= 1'b1;\n", e.ref("reg_q", "qe"))
			for _, f := range e.r.fields {
				n := e.ref("reg_q", f.name)
				sl := svSlice(f.lo+sh, f.width)
				if e.r.access == accRW {
					body.f("              %s <= (%s & ~wr_mask%s) |\n                (w_data_q%s & wr_mask%s);\n", n, n, sl, sl, sl)
				} else {
					body.f("              %s <= w_data_q%s & wr_mask%s;\n", n, sl, sl)
				}
			}
			body.f("            end\n")
		}
		if body.Len() > 0 {
			w.f("          13'h%04x: begin\n%s          end\n", i, body.String())
		}
	}
	w.f("          default: ;\n        endcase\n      end\n    end\n  end\n")

	if len(w1c) > 0 {
		w.f("\n  // ---- rw1c registers: set by hardware, cleared by ones ---------------------------------------\n")
		for _, r := range w1c {
			dim := ""
			if r.array {
				dim = fmt.Sprintf(" [%d:0]", r.count-1)
			}
			w.f("  csr_hw2reg_%s_t%s %s_q, %s_clear;\n", r.name, dim, r.name, r.name)
		}
		w.f("\n  always_comb begin\n")
		for _, r := range w1c {
			w.f("    %s_clear = '0;\n", r.name)
		}
		w.f("    if (wr_en) begin\n      case (aw_addr_q[15:3])\n")
		for _, i := range idx {
			var body writer
			for _, e := range byWord[i] {
				if e.r.access != accRW1C {
					continue
				}
				sh := int(e.offset()%8) * 8
				for _, f := range e.r.fields {
					sl := svSlice(f.lo+sh, f.width)
					body.f("          %s = w_data_q%s & wr_mask%s;\n", e.local("clear", f.name), sl, sl)
				}
			}
			if body.Len() > 0 {
				w.f("        13'h%04x: begin\n%s        end\n", i, body.String())
			}
		}
		w.f("        default: ;\n      endcase\n    end\n  end\n\n  always_ff @(posedge clk_i) begin\n    if (!rst_ni || clear_i) begin\n")
		for _, r := range w1c {
			w.f("      %s_q <= '0;\n", r.name)
		}
		w.f("    end else begin\n")
		for _, r := range w1c {
			w.f("      %s_q <= (%s_q & ~%s_clear) | hw2reg_i.%s;\n", r.name, r.name, r.name, r.name)
		}
		w.f("    end\n  end\n")
	}

	// Read path.
	var groups []uint64
	for _, i := range idx {
		g := i / readGroupWords
		if len(groups) == 0 || groups[len(groups)-1] != g {
			groups = append(groups, g)
		}
	}
	var groupDecl writer
	for k := range groups {
		groupDecl.f("  logic [63:0] group%d_q;\n", k)
	}
	w.f(`
  // ---- read channel ---------------------------------------------------------------------------
  // A read takes two mux stages: first inside each group of %d words that has registers, then among
  // the groups. The stages work only when a read passes.
  typedef enum logic [1:0] {
    RdIdle,
    RdGroup,
    RdSelect,
    RdRespond
  } rd_state_e;
  rd_state_e rd_state_q;
  logic [16:2] ar_addr_q;
  logic [1:0] ar_map_q;
  logic ar_wide_q, ar_db_hit_q;
%s  logic [63:0] r_data_q;
  logic r_err_q;
  // High half that belongs to the 64-bit register whose low half was read last.
  logic high_valid_q;
  logic [12:0] high_word_q;
  logic [31:0] high_q;

  logic ar_ok;
  logic [63:0] selected;

  assign ar_ok = ar_addr_q[16] ? ar_db_hit_q : ar_map_q[ar_addr_q[2]];
  assign s_axil_arready_o = rd_state_q == RdIdle;
  assign s_axil_rvalid_o = rd_state_q == RdRespond;
  assign s_axil_rdata_o = r_data_q;
  assign s_axil_rresp_o = r_err_q ? RespSlvErr : RespOkay;

  always_comb begin
    selected = '0;
    if (rd_state_q == RdSelect) begin
      case (ar_addr_q[15:%d])
`, readGroupWords, groupDecl.String(), groupShift())
	gw := 13 - (groupShift() - 3)
	for k, g := range groups {
		w.f("        %d'h%03x: selected = group%d_q;\n", gw, g, k)
	}
	w.f(`        default: ;
      endcase
      if (high_valid_q && ar_wide_q && ar_addr_q[2] && high_word_q == ar_addr_q[15:3]) begin
        selected[63:32] = high_q;
      end
      if (!ar_ok || ar_addr_q[16]) selected = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s_axil_arvalid_i && s_axil_arready_o) begin
      ar_addr_q <= s_axil_araddr_i[16:2];
      ar_map_q <= csr_map(s_axil_araddr_i[15:3]);
      ar_wide_q <= csr_wide(s_axil_araddr_i[15:3]);
      ar_db_hit_q <= db_hit({s_axil_araddr_i[11:3], 3'b000});
    end
    if (rd_state_q == RdGroup) begin
`)
	for k, g := range groups {
		w.f("      group%d_q <= '0;\n      case (ar_addr_q[%d:3])\n", k, groupShift()-1)
		for _, i := range idx {
			if i/readGroupWords != g {
				continue
			}
			w.f("        4'h%x: begin\n", i%readGroupWords)
			any := false
			for _, e := range byWord[i] {
				sh := int(e.offset()%8) * 8
				for _, f := range e.r.fields {
					v := ""
					switch e.r.access {
					case accRO:
						v = e.ref("hw2reg_i", f.name)
					case accRW:
						v = e.ref("reg_q", f.name)
					case accRW1C:
						v = e.local("q", f.name)
					case accConst:
						v = fmt.Sprintf("%d'h%x", f.width, f.reset)
						if f.resetHash {
							v = "LayoutHash"
						}
					default:
						continue
					}
					w.f("          group%d_q%s <= %s;\n", k, svSlice(f.lo+sh, f.width), v)
					any = true
				}
			}
			if !any {
				w.f("          group%d_q <= '0;\n", k)
			}
			w.f("        end\n")
		}
		w.f("        default: ;\n      endcase\n")
	}
	w.f(`    end
    if (rd_state_q == RdSelect) begin
      r_data_q <= selected;
      r_err_q <= !ar_ok;
      high_word_q <= ar_addr_q[15:3];
      high_q <= selected[63:32];
    end
    if (!rst_ni) begin
      rd_state_q <= RdIdle;
      high_valid_q <= 1'b0;
    end else begin
      unique case (rd_state_q)
        RdIdle: if (s_axil_arvalid_i) rd_state_q <= RdGroup;
        RdGroup: rd_state_q <= RdSelect;
        RdSelect: begin
          high_valid_q <= ar_wide_q && !ar_addr_q[16] && !ar_addr_q[2];
          rd_state_q <= RdRespond;
        end
        default: if (s_axil_rready_i) rd_state_q <= RdIdle;
      endcase
    end
  end

  logic unused_bits;
  assign unused_bits = ^{s_axil_awprot_i, s_axil_arprot_i, s_axil_araddr_i[1:0]};

endmodule
`)
	return w.String()
}

// local names field f of an element in the module's own register <reg>_<suffix>.
func (e element) local(suffix, f string) string {
	if e.idx < 0 {
		return fmt.Sprintf("%s_%s.%s", e.r.name, suffix, f)
	}
	return fmt.Sprintf("%s_%s[%d].%s", e.r.name, suffix, e.idx, f)
}

// groupShift is the number of address bits below the group number.
func groupShift() int { return 3 + 4 }

// svSlice selects bits of a vector.
func svSlice(lo, width int) string {
	if width == 1 {
		return fmt.Sprintf("[%d]", lo)
	}
	return fmt.Sprintf("[%d:%d]", lo+width-1, lo)
}
