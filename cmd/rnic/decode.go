// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
)

type decodeOptions struct {
	verbose bool
	json    bool
	strict  bool
	all     bool
	abs     bool
	summary bool
	limit   int
	live    bool // input is a stream: show every packet at once
}

// openCapture opens the capture file of the name; "-" is standard input.
func openCapture(cmd *cobra.Command, name string) (*capture.Reader, error) {
	if name == "-" {
		return capture.NewReader(cmd.InOrStdin(), "standard input")
	}
	return capture.Open(name)
}

func newDecodeCmd() *cobra.Command {
	var o decodeOptions
	cmd := &cobra.Command{
		Use:   "decode FILE.pcap[ng]",
		Short: "Print the RoCEv2 packets of a capture",
		Long: `Print the RoCEv2 packets of a pcap or pcapng file, one per line: number, time, source and destination,
opcode, destination QP, PSN, flags, ECN, what the extended headers say, payload length, and whether the
ICRC is good. FILE - is standard input.

Flags of the BTH: S solicited event, M migration, A acknowledge request, F FECN, B BECN.
A packet that a NIC would refuse shows the reason in brackets.

Exit code 1 with --strict when a RoCEv2 packet has a wrong ICRC, is malformed, or is cut by the capture.`,
		Example: `  rnic decode demo.pcapng
  rnic decode --strict --json capture.pcap > capture.json
  tcpdump -i eth0 -w - udp port 4791 | rnic decode -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.json && o.verbose {
				return usageErrorf("--json and --verbose exclude each other: JSON has every field anyway")
			}
			o.live = args[0] == "-"
			r, err := openCapture(cmd, args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			return decode(r, args[0], cmd.OutOrStdout(), &o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print every field of every packet")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 if a RoCEv2 packet has a wrong ICRC or is malformed")
	f.BoolVar(&o.all, "all", false, "list other frames too, with the reason why they are not RoCEv2")
	f.BoolVar(&o.abs, "absolute", false, "print times as recorded, not since the first packet")
	f.BoolVar(&o.summary, "summary", false, "print the summary only")
	f.IntVarP(&o.limit, "count", "c", 0, "stop after this many RoCEv2 packets (0: all)")
	return cmd
}

// decodedPacket is one packet of the JSON document. Pointers are absent where the packet does not have
// the field.
type decodedPacket struct {
	Number    int      `json:"number"`
	Time      float64  `json:"time"`
	TimeNS    int64    `json:"time_ns"`
	Interface string   `json:"interface,omitempty"`
	Direction string   `json:"direction,omitempty"`
	ID        *uint64  `json:"packet_id,omitempty"`
	Comments  []string `json:"comments,omitempty"`
	FrameLen  int      `json:"frame_len"`
	Cut       bool     `json:"cut,omitempty"`
	RoCE      bool     `json:"roce"`
	Verdict   string   `json:"verdict"`

	SMAC     string  `json:"smac,omitempty"`
	DMAC     string  `json:"dmac,omitempty"`
	VLAN     []vlan  `json:"vlan,omitempty"`
	Src      string  `json:"src,omitempty"`
	Dst      string  `json:"dst,omitempty"`
	DSCP     *uint8  `json:"dscp,omitempty"`
	ECN      string  `json:"ecn,omitempty"`
	TTL      *uint8  `json:"ttl,omitempty"`
	Flow     *uint32 `json:"flow_label,omitempty"`
	IPID     *uint16 `json:"ip_id,omitempty"`
	SrcPort  *uint16 `json:"src_port,omitempty"`
	UDPSum   string  `json:"udp_checksum,omitempty"`
	Opcode   string  `json:"opcode,omitempty"`
	OpNum    *uint8  `json:"opcode_number,omitempty"`
	SE       *bool   `json:"solicited,omitempty"`
	Mig      *bool   `json:"mig_req,omitempty"`
	Pad      *uint8  `json:"pad,omitempty"`
	TVer     *uint8  `json:"tver,omitempty"`
	PKey     *uint16 `json:"pkey,omitempty"`
	FECN     *bool   `json:"fecn,omitempty"`
	BECN     *bool   `json:"becn,omitempty"`
	DestQP   *uint32 `json:"dest_qp,omitempty"`
	AckReq   *bool   `json:"ack_req,omitempty"`
	PSN      *uint32 `json:"psn,omitempty"`
	DETH     *deth   `json:"deth,omitempty"`
	RETH     *reth   `json:"reth,omitempty"`
	Atomic   *atomic `json:"atomic_eth,omitempty"`
	AETH     *aeth   `json:"aeth,omitempty"`
	Orig     *hex64  `json:"atomic_ack_orig,omitempty"`
	Imm      *hex32  `json:"imm,omitempty"`
	InvKey   *hex32  `json:"inv_rkey,omitempty"`
	Payload  *int    `json:"payload_len,omitempty"`
	ICRC     *hex32  `json:"icrc,omitempty"`
	ICRCCalc *hex32  `json:"icrc_computed,omitempty"`
	ICRCOK   *bool   `json:"icrc_ok,omitempty"`
}

type (
	vlan struct {
		TPID string `json:"tpid"`
		PCP  uint16 `json:"pcp"`
		DEI  bool   `json:"dei"`
		VID  uint16 `json:"vid"`
	}
	deth struct {
		QKey  hex32  `json:"qkey"`
		SrcQP uint32 `json:"src_qp"`
	}
	reth struct {
		VA   hex64  `json:"va"`
		RKey hex32  `json:"rkey"`
		Len  uint32 `json:"dma_len"`
	}
	atomic struct {
		VA      hex64 `json:"va"`
		RKey    hex32 `json:"rkey"`
		SwapAdd hex64 `json:"swap_add"`
		Compare hex64 `json:"compare"`
	}
	aeth struct {
		Syndrome uint8  `json:"syndrome"`
		Meaning  string `json:"meaning"`
		MSN      uint32 `json:"msn"`
	}
	hex32 uint32
	hex64 uint64
)

func (h hex32) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%08x", uint32(h)), nil }
func (h hex64) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%016x", uint64(h)), nil }

// decodeSummary counts a capture.
type decodeSummary struct {
	File      string         `json:"file"`
	Frames    int            `json:"frames"`
	RoCE      int            `json:"roce_packets"`
	ICRCGood  int            `json:"icrc_good"`
	ICRCBad   int            `json:"icrc_bad"`
	Malformed int            `json:"malformed"`
	Cut       int            `json:"cut_by_capture"`
	CE        int            `json:"ecn_ce"`
	FECN      int            `json:"fecn"`
	BECN      int            `json:"becn"`
	Payload   int64          `json:"payload_bytes"`
	Opcodes   map[string]int `json:"opcodes"`
	Refused   map[string]int `json:"refused"`
	Error     string         `json:"error,omitempty"`
}

// decode prints the packets of r. A file that turns out broken is reported after the packets before it.
func decode(r *capture.Reader, name string, out io.Writer, o *decodeOptions) error {
	w := bufio.NewWriterSize(out, 64<<10)
	sum := decodeSummary{File: name, Opcodes: map[string]int{}, Refused: map[string]int{}}
	if o.json {
		fmt.Fprint(w, "{\n\"packets\": [")
	}
	var p roce.Packet
	var first int64
	opt := roce.Options{MaxFrame: 1 << 20}
	sep := "\n"
	var readErr error
	for o.limit == 0 || sum.RoCE < o.limit {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			readErr = err
			sum.Error = err.Error()
			break
		}
		if sum.Frames == 0 && !o.abs {
			first = c.Time
		}
		sum.Frames++
		if c.LinkType != capture.LinkEthernet {
			readErr = fmt.Errorf("%s: packet %d has link type %d; only Ethernet (1) can be decoded", name, c.Number, c.LinkType)
			sum.Error = readErr.Error()
			break
		}
		p.Parse(c.Data, &opt)
		sum.count(&p, c)
		if o.summary || (!p.RoCE && !o.all) {
			continue
		}
		switch {
		case o.json:
			d := describe(&p, c, c.Time-first, r.Interfaces())
			b, err := json.Marshal(d)
			if err != nil {
				return fmt.Errorf("packet %d: %w", c.Number, err)
			}
			fmt.Fprintf(w, "%s%s", sep, b)
			sep = ",\n"
		case o.verbose:
			printFields(w, &p, c, c.Time-first, r.Interfaces())
		default:
			printLine(w, &p, c, c.Time-first)
		}
		if o.live {
			if err := w.Flush(); err != nil {
				return fmt.Errorf("writing the result: %w", err)
			}
		}
	}
	if o.json {
		b, err := json.MarshalIndent(sum, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\n],\n\"summary\": %s\n}\n", b)
	} else {
		sum.print(w)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if readErr != nil {
		return readErr
	}
	if o.strict && sum.ICRCBad+sum.Malformed+sum.Cut != 0 {
		return fmt.Errorf("%s: %d RoCEv2 packets with a wrong ICRC, %d malformed, %d cut by the capture", name, sum.ICRCBad, sum.Malformed, sum.Cut)
	}
	return nil
}

func (s *decodeSummary) count(p *roce.Packet, c *capture.Packet) {
	if p.Reason != roce.ReasonNone && !(p.RoCE && c.Cut()) {
		s.Refused[p.Reason.String()]++
	}
	if !p.RoCE {
		return
	}
	s.RoCE++
	if c.Cut() {
		s.Cut++
		return
	}
	if p.HasBTH {
		s.Opcodes[p.Opcode.String()]++
		if p.ICRCOK {
			s.ICRCGood++
		} else {
			s.ICRCBad++
		}
		if p.FECN {
			s.FECN++
		}
		if p.BECN {
			s.BECN++
		}
	}
	if p.TOS&3 == 3 {
		s.CE++
	}
	if p.Reason != roce.ReasonNone && p.Reason != roce.ReasonICRC {
		s.Malformed++
	}
	s.Payload += int64(p.PayloadLen)
}

func (s *decodeSummary) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d frames, %d RoCEv2 packets: %d ICRC good, %d ICRC bad, %d malformed", s.Frames, s.RoCE, s.ICRCGood, s.ICRCBad, s.Malformed)
	if s.Cut != 0 {
		fmt.Fprintf(w, ", %d cut by the capture", s.Cut)
	}
	fmt.Fprintf(w, "; %d payload bytes, %d CE, %d FECN, %d BECN\n", s.Payload, s.CE, s.FECN, s.BECN)
	printCounts(w, "opcodes", s.Opcodes)
	printCounts(w, "refused", s.Refused)
}

func printCounts(w io.Writer, title string, m map[string]int) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(w, "  %-8s %-30s %8d\n", title, k, m[k])
		title = ""
	}
}

// flags shows the BTH flags as letters in fixed places.
func flags(p *roce.Packet) string {
	b := []byte("-----")
	for i, f := range []struct {
		set bool
		c   byte
	}{{p.Solicited, 'S'}, {p.MigReq, 'M'}, {p.AckReq, 'A'}, {p.FECN, 'F'}, {p.BECN, 'B'}} {
		if f.set {
			b[i] = f.c
		}
	}
	return string(b)
}

// extText tells what the extended headers say.
func extText(p *roce.Packet) string {
	var b strings.Builder
	e := p.Opcode.Ext()
	if e&roce.ExtDETH != 0 {
		fmt.Fprintf(&b, " qkey=%08x src_qp=%06x", p.QKey, p.SrcQP)
	}
	if e&(roce.ExtRETH|roce.ExtAtomicETH) != 0 {
		fmt.Fprintf(&b, " va=%016x rkey=%08x", p.VA, p.RKey)
	}
	if e&roce.ExtRETH != 0 {
		fmt.Fprintf(&b, " dma=%d", p.DMALen)
	}
	if e&roce.ExtAtomicETH != 0 {
		if p.Opcode == roce.RCCompareSwap {
			fmt.Fprintf(&b, " swap=%016x compare=%016x", p.SwapAdd, p.Compare)
		} else {
			fmt.Fprintf(&b, " add=%016x", p.SwapAdd)
		}
	}
	if e&roce.ExtAETH != 0 {
		fmt.Fprintf(&b, " %s msn=%d", roce.SyndromeString(p.Syndrome), p.MSN)
	}
	if e&roce.ExtAtomicAckETH != 0 {
		fmt.Fprintf(&b, " orig=%016x", p.Orig)
	}
	if e&roce.ExtImmDt != 0 {
		fmt.Fprintf(&b, " imm=%08x", p.Imm)
	}
	if e&roce.ExtIETH != 0 {
		fmt.Fprintf(&b, " inv=%08x", p.InvKey)
	}
	return b.String()
}

func icrcText(p *roce.Packet, c *capture.Packet) string {
	switch {
	case !p.HasBTH:
		return ""
	case c.Cut():
		return "?"
	case p.ICRCOK:
		return "good"
	default:
		return "BAD"
	}
}

func verdictText(p *roce.Packet, c *capture.Packet) string {
	if c.Cut() {
		return fmt.Sprintf(" [cut by the capture: %d of %d bytes]", len(c.Data), c.OrigLen)
	}
	if p.Reason != roce.ReasonNone {
		return " [" + p.Reason.String() + "]"
	}
	return ""
}

func printLine(w io.Writer, p *roce.Packet, c *capture.Packet, t int64) {
	fmt.Fprintf(w, "%6d %14.9f ", c.Number, float64(t)/1e9)
	if p.IPHdrLen == 0 || p.IPLen == 0 {
		fmt.Fprintf(w, "%s > %s ethertype %04x, %d bytes", net.HardwareAddr(p.SMAC[:]), net.HardwareAddr(p.DMAC[:]), p.EtherType, p.FrameLen)
		fmt.Fprintf(w, "%s\n", verdictText(p, c))
		return
	}
	fmt.Fprintf(w, "%v > %v ", p.Src(), p.Dst())
	switch {
	case p.HasBTH:
		fmt.Fprintf(w, "%-28s qp=%06x psn=%06x %s %s", p.Opcode, p.DestQP, p.PSN, flags(p), roce.ECNString(p.TOS))
		if p.HasExt {
			fmt.Fprintf(w, "%s len=%d", extText(p), p.PayloadLen)
		}
		fmt.Fprintf(w, " icrc=%s", icrcText(p, c))
	case p.RoCE:
		fmt.Fprintf(w, "RoCEv2, %d bytes", p.FrameLen)
	default:
		fmt.Fprintf(w, "protocol %d, %d bytes", p.Protocol, p.FrameLen)
	}
	for _, s := range c.Comments {
		fmt.Fprintf(w, " # %s", strings.ReplaceAll(s, "\n", " "))
	}
	fmt.Fprintf(w, "%s\n", verdictText(p, c))
}

func ref[T any](v T) *T { return &v }

func describe(p *roce.Packet, c *capture.Packet, t int64, ifs []capture.Interface) *decodedPacket {
	d := &decodedPacket{
		Number: c.Number, Time: float64(t) / 1e9, TimeNS: c.Time, Direction: c.Direction.String(), Comments: c.Comments,
		FrameLen: c.OrigLen, Cut: c.Cut(), RoCE: p.RoCE, Verdict: p.Reason.String(),
	}
	if c.Interface < len(ifs) {
		d.Interface = ifs[c.Interface].Name
	}
	if c.HasID {
		d.ID = ref(c.ID)
	}
	if c.Cut() {
		d.Verdict = "cut_by_capture"
	}
	if p.FrameLen < roce.EthLen {
		return d
	}
	d.SMAC, d.DMAC = net.HardwareAddr(p.SMAC[:]).String(), net.HardwareAddr(p.DMAC[:]).String()
	for _, v := range p.VLAN[:p.NumVLAN] {
		d.VLAN = append(d.VLAN, vlan{fmt.Sprintf("0x%04x", v.TPID), v.TCI >> 13, v.TCI&0x1000 != 0, v.TCI & 0xfff})
	}
	if p.IPLen == 0 {
		return d
	}
	d.Src, d.Dst = p.Src().String(), p.Dst().String()
	d.DSCP, d.ECN, d.TTL = ref(p.TOS>>2), roce.ECNString(p.TOS), ref(p.TTL)
	if p.IPv6 {
		d.Flow = ref(p.FlowLabel)
	} else {
		d.IPID = ref(p.IPID)
	}
	if !p.RoCE {
		return d
	}
	d.SrcPort = ref(p.SrcPort)
	if !p.HasBTH {
		return d
	}
	switch {
	case p.UDPSum == 0:
		d.UDPSum = "none"
	case p.UDPSumOK:
		d.UDPSum = "good"
	default:
		d.UDPSum = "bad"
	}
	d.Opcode, d.OpNum = p.Opcode.String(), ref(uint8(p.Opcode))
	d.SE, d.Mig, d.Pad, d.TVer, d.PKey = &p.Solicited, &p.MigReq, &p.Pad, &p.TVer, &p.PKey
	d.FECN, d.BECN, d.DestQP, d.AckReq, d.PSN = &p.FECN, &p.BECN, &p.DestQP, &p.AckReq, &p.PSN
	d.ICRC, d.ICRCCalc, d.ICRCOK = ref(hex32(p.ICRC)), ref(hex32(p.ICRCCalc)), &p.ICRCOK
	if !p.HasExt {
		return d
	}
	d.Payload = &p.PayloadLen
	e := p.Opcode.Ext()
	if e&roce.ExtDETH != 0 {
		d.DETH = &deth{hex32(p.QKey), p.SrcQP}
	}
	if e&roce.ExtRETH != 0 {
		d.RETH = &reth{hex64(p.VA), hex32(p.RKey), p.DMALen}
	}
	if e&roce.ExtAtomicETH != 0 {
		d.Atomic = &atomic{hex64(p.VA), hex32(p.RKey), hex64(p.SwapAdd), hex64(p.Compare)}
	}
	if e&roce.ExtAETH != 0 {
		d.AETH = &aeth{p.Syndrome, roce.SyndromeString(p.Syndrome), p.MSN}
	}
	if e&roce.ExtAtomicAckETH != 0 {
		d.Orig = ref(hex64(p.Orig))
	}
	if e&roce.ExtImmDt != 0 {
		d.Imm = ref(hex32(p.Imm))
	}
	if e&roce.ExtIETH != 0 {
		d.InvKey = ref(hex32(p.InvKey))
	}
	return d
}

// printFields prints every field on a line of its own.
func printFields(w io.Writer, p *roce.Packet, c *capture.Packet, t int64, ifs []capture.Interface) {
	f := func(name, format string, a ...any) {
		fmt.Fprintf(w, "    %-14s "+format+"\n", append([]any{name}, a...)...)
	}
	fmt.Fprintf(w, "packet %d, %d bytes, %.9f s\n", c.Number, c.OrigLen, float64(t)/1e9)
	f("recorded", "%s", time.Unix(0, c.Time).UTC().Format("2006-01-02 15:04:05.000000000"))
	if c.Interface < len(ifs) && ifs[c.Interface].Name != "" {
		f("interface", "%s %s", ifs[c.Interface].Name, c.Direction)
	}
	if c.HasID {
		f("packet id", "%d", c.ID)
	}
	for _, s := range c.Comments {
		f("comment", "%s", s)
	}
	verdict := p.Reason.String()
	if c.Cut() {
		verdict = strings.Trim(verdictText(p, c), " []")
	}
	f("verdict", "%s", verdict)
	if p.FrameLen < roce.EthLen {
		return
	}
	f("ethernet", "%s > %s, type 0x%04x", net.HardwareAddr(p.SMAC[:]), net.HardwareAddr(p.DMAC[:]), p.EtherType)
	for _, v := range p.VLAN[:p.NumVLAN] {
		f("vlan", "0x%04x pcp %d dei %d vid %d", v.TPID, v.TCI>>13, v.TCI>>12&1, v.TCI&0xfff)
	}
	if p.IPLen == 0 {
		return
	}
	if p.IPv6 {
		f("ipv6", "%v > %v, payload %d, hop limit %d, flow 0x%05x, next header %d", p.Src(), p.Dst(), p.IPLen-roce.IPv6Len, p.TTL, p.FlowLabel, p.Protocol)
	} else {
		f("ipv4", "%v > %v, length %d, ttl %d, id 0x%04x, df %t, protocol %d, checksum 0x%04x %s", p.Src(), p.Dst(), p.IPLen, p.TTL, p.IPID,
			p.DontFragment, p.Protocol, p.IPSum, goodBad(p.IPSumOK))
	}
	f("tos", "0x%02x: dscp %d, %s", p.TOS, p.TOS>>2, roce.ECNString(p.TOS))
	if !p.RoCE {
		return
	}
	sum := "none"
	if p.UDPSum != 0 {
		sum = fmt.Sprintf("0x%04x %s", p.UDPSum, goodBad(p.UDPSumOK))
	}
	f("udp", "%d > %d, length %d, checksum %s", p.SrcPort, p.DstPort, p.UDPLen, sum)
	if !p.HasBTH {
		return
	}
	f("opcode", "0x%02x %s", uint8(p.Opcode), p.Opcode)
	f("flags", "se %d, m %d, pad %d, tver %d, fecn %d, becn %d, ackreq %d, resv6 0x%02x, resv7 0x%02x", b2i(p.Solicited), b2i(p.MigReq), p.Pad, p.TVer,
		b2i(p.FECN), b2i(p.BECN), b2i(p.AckReq), p.Resv6, p.Resv7)
	f("pkey", "0x%04x", p.PKey)
	f("dest qp", "0x%06x", p.DestQP)
	f("psn", "0x%06x", p.PSN)
	if p.HasExt {
		e := p.Opcode.Ext()
		if e&roce.ExtDETH != 0 {
			f("deth", "qkey 0x%08x, source qp 0x%06x", p.QKey, p.SrcQP)
		}
		if e&roce.ExtRETH != 0 {
			f("reth", "va 0x%016x, rkey 0x%08x, length %d", p.VA, p.RKey, p.DMALen)
		}
		if e&roce.ExtAtomicETH != 0 {
			f("atomic", "va 0x%016x, rkey 0x%08x, swap/add 0x%016x, compare 0x%016x", p.VA, p.RKey, p.SwapAdd, p.Compare)
		}
		if e&roce.ExtAETH != 0 {
			f("aeth", "syndrome 0x%02x: %s, msn %d", p.Syndrome, roce.SyndromeString(p.Syndrome), p.MSN)
		}
		if e&roce.ExtAtomicAckETH != 0 {
			f("atomic ack", "original 0x%016x", p.Orig)
		}
		if e&roce.ExtImmDt != 0 {
			f("immediate", "0x%08x", p.Imm)
		}
		if e&roce.ExtIETH != 0 {
			f("invalidate", "rkey 0x%08x", p.InvKey)
		}
		f("payload", "%d bytes at %d", p.PayloadLen, p.PayloadOff)
		if b := p.Payload(c.Data); len(b) > 0 {
			more := ""
			if len(b) > 32 {
				b, more = b[:32], " ..."
			}
			f("", "%s%s", hex.EncodeToString(b), more)
		}
	}
	f("icrc", "0x%08x, computed 0x%08x: %s", p.ICRC, p.ICRCCalc, goodBad(p.ICRCOK))
}

func goodBad(ok bool) string {
	if ok {
		return "good"
	}
	return "BAD"
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
