// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/replay"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
)

type replayOptions struct {
	width   int
	gaps    bool
	seed    uint64
	json    bool
	strict  bool
	verbose bool
	summary bool

	codec roce.Options // what the codec is told beside the frames
}

func newReplayCmd() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE.pcap[ng]",
		Short: "Feed a capture into the RTL and compare its verdicts with the codec",
		Long: `Feeds every frame of a pcap or pcapng file into the receive port of a simulated NIC, as fast as its transport takes
packets and for any destination MAC address, and compares what the RTL says of it with the packet codec: reason of refusal,
ICRC, all header fields. FILE - is standard input.

A line per frame where both agree; where they do not, both lines and the fields that differ. Then the counters of the NIC
beside those that the codec's verdicts add up to. Flags of the BTH: S solicited event, M migration, A acknowledge request,
F FECN, B BECN.

Exit code 1 with --strict when the RTL and the codec disagree or a frame could not be fed.`,
		Example: `  rnic replay testdata/captures/rxe61_ops_all.pcap
  rnic replay --width 64 --gaps --seed 7 --strict demo.pcapng`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.width != 64 && o.width != 512 {
				return usageErrorf("--width %d: libraries are built for 64 and 512 bits", o.width)
			}
			if o.json && o.verbose {
				return usageErrorf("--json and --verbose exclude each other: JSON has every field anyway")
			}
			r, err := openCapture(cmd, args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			return runReplay(r, args[0], cmd.OutOrStdout(), &o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.width, "width", 512, "datapath width of the NIC in `bits`: 64 or 512")
	f.BoolVar(&o.gaps, "gaps", false, "random gaps between the beats of the frames")
	f.Uint64Var(&o.seed, "seed", 1, "`seed` of the gaps")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 if the RTL and the codec disagree")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print every field of both verdicts")
	f.BoolVar(&o.summary, "summary", false, "print disagreements, counters and summary only")
	return cmd
}

// replaySummary is the result of a replay.
type replaySummary struct {
	File     string         `json:"file"`
	Width    int            `json:"width"`
	Frames   int            `json:"frames"`
	Agree    int            `json:"agree"`
	Differ   int            `json:"differ"`
	Skipped  int            `json:"skipped"` // the simulated MAC cannot carry them
	Cut      int            `json:"cut_by_capture"`
	Counters []replayCount  `json:"counters"`
	Wrong    int            `json:"counters_wrong"`
	Cycles   uint64         `json:"cycles"`
	Reasons  map[string]int `json:"verdicts"`
	Error    string         `json:"error,omitempty"`
}

// replayCount is a counter of the NIC beside what it must be.
type replayCount struct {
	Name     string `json:"name"`
	RTL      uint64 `json:"rtl"`
	Expected uint64 `json:"expected"`
}

// replayedFrame is one frame of the JSON document.
type replayedFrame struct {
	Number  int                 `json:"number"`
	Cut     bool                `json:"cut,omitempty"`
	Skipped bool                `json:"skipped,omitempty"`
	Agree   bool                `json:"agree"`
	RTL     map[string]string   `json:"rtl,omitempty"`
	Differs []replay.Difference `json:"differs,omitempty"`
}

// replayBatch is the number of frames that are in memory at a time.
const replayBatch = 1024

// replayer feeds a capture and prints what comes out.
type replayer struct {
	o      *replayOptions
	s      *replay.Session
	w      *bufio.Writer
	sum    replaySummary
	want   replay.Counters
	sep    string
	frames []replay.Frame
	meta   []capture.Packet // of these frames
}

// runReplay replays what r holds. A file that turns out broken is reported after the packets before it.
func runReplay(r *capture.Reader, name string, out io.Writer, o *replayOptions) error {
	s, err := replay.Open(replay.Config{Width: o.width, Seed: o.seed, Gaps: o.gaps})
	if err != nil {
		return err
	}
	defer s.Close()
	p := &replayer{o: o, s: s, w: bufio.NewWriterSize(out, 64<<10), sep: "\n"}
	p.sum = replaySummary{File: name, Width: o.width, Reasons: map[string]int{}}
	if o.json {
		fmt.Fprint(p.w, "{\n\"frames\": [")
	}
	readErr := p.read(r, name)
	err = p.flush() // what was read before an error is good
	p.count()
	if readErr != nil {
		err = readErr
	}
	if err != nil {
		p.sum.Error = err.Error()
	}
	if o.json {
		b, _ := json.MarshalIndent(p.sum, "", "  ") // strings and numbers: cannot fail
		fmt.Fprintf(p.w, "\n],\n\"summary\": %s\n}\n", b)
	} else {
		p.sum.print(p.w)
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if err != nil {
		return err
	}
	if o.strict && p.sum.Differ+p.sum.Wrong+p.sum.Skipped != 0 {
		return fmt.Errorf("%s: RTL and codec disagree on %d of %d frames and %d counters; %d frames could not be fed", name, p.sum.Differ,
			p.sum.Frames, p.sum.Wrong, p.sum.Skipped)
	}
	return nil
}

// read goes through the file and feeds batches of frames.
func (p *replayer) read(r *capture.Reader, name string) error {
	for {
		c, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if c.LinkType != capture.LinkEthernet {
			return fmt.Errorf("%s: packet %d has link type %d; only Ethernet (1) can be replayed", name, c.Number, c.LinkType)
		}
		p.sum.Frames++
		if c.Cut() {
			p.sum.Cut++
		}
		if !replay.Fits(c.Data) {
			if err := p.flush(); err != nil {
				return err
			}
			p.skip(c)
			continue
		}
		p.meta = append(p.meta, *c)
		p.frames = append(p.frames, replay.Frame{Data: append([]byte(nil), c.Data...)})
		if len(p.frames) == replayBatch {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
}

// flush feeds the frames that wait.
func (p *replayer) flush() error {
	if err := p.s.Engine.Err(); err != nil {
		return err
	}
	err := p.s.Feed(p.frames, func(i int, raw *regs.RxVerdict) error {
		f := &p.frames[i]
		opt := f.Options(p.o.codec)
		var pkt roce.Packet
		pkt.Parse(f.Data, &opt)
		want, got := pkt.Verdict(), roce.FromRegs(raw)
		p.want.Add(&want)
		p.sum.Reasons[got.Reason.String()]++
		return p.show(&p.meta[i], &got, &want)
	})
	p.frames, p.meta = p.frames[:0], p.meta[:0]
	return err
}

// skip reports a frame that the simulated MAC cannot carry.
func (p *replayer) skip(c *capture.Packet) {
	p.sum.Skipped++
	if p.o.json {
		p.document(replayedFrame{Number: c.Number, Cut: c.Cut(), Skipped: true})
		return
	}
	fmt.Fprintf(p.w, "%6d skip   %d bytes: the simulated MAC takes 1 to %d\n", c.Number, len(c.Data), replay.MaxFrame)
}

func (p *replayer) document(f replayedFrame) {
	b, _ := json.Marshal(f) // strings and numbers: cannot fail
	fmt.Fprintf(p.w, "%s%s", p.sep, b)
	p.sep = ",\n"
}

// show prints one frame.
func (p *replayer) show(c *capture.Packet, got, want *roce.Verdict) error {
	diff := replay.Diff(got, want)
	if diff == nil {
		p.sum.Agree++
	} else {
		p.sum.Differ++
	}
	if p.o.summary && diff == nil {
		return nil
	}
	note := ""
	if c.Cut() {
		note = fmt.Sprintf(" (cut by the capture: %d of %d bytes)", len(c.Data), c.OrigLen)
	}
	switch {
	case p.o.json:
		f := replayedFrame{Number: c.Number, Cut: c.Cut(), Agree: diff == nil, Differs: diff, RTL: map[string]string{}}
		for _, v := range replay.Fields(got) {
			f.RTL[v.Name] = v.Value
		}
		p.document(f)
	case diff == nil:
		fmt.Fprintf(p.w, "%6d ok     %s%s\n", c.Number, verdictLine(got), note)
	default:
		fmt.Fprintf(p.w, "%6d DIFFER RTL:   %s%s\n              codec: %s\n", c.Number, verdictLine(got), note, verdictLine(want))
		for _, d := range diff {
			fmt.Fprintf(p.w, "              %v\n", d)
		}
	}
	if p.o.verbose {
		exp := replay.Fields(want)
		fmt.Fprintf(p.w, "              %-12s %-40s %s\n", "field", "RTL", "codec")
		for i, v := range replay.Fields(got) {
			fmt.Fprintf(p.w, "              %-12s %-40s %s\n", v.Name, v.Value, exp[i].Value)
		}
	}
	return nil
}

// count compares the counters.
func (p *replayer) count() {
	got := replay.LoadCounters(p.s.CSR)
	want := p.want.List()
	for i, c := range got.List() {
		p.sum.Counters = append(p.sum.Counters, replayCount{c.Name, c.Value, want[i].Value})
		if c.Value != want[i].Value {
			p.sum.Wrong++
		}
	}
	p.sum.Cycles = p.s.NIC.Stats().CyclesRun
}

func (s *replaySummary) print(w io.Writer) {
	fmt.Fprintf(w, "\n%-28s %12s %12s\n", "counter", "RTL", "expected")
	for _, c := range s.Counters {
		if c.RTL == 0 && c.Expected == 0 && strings.HasPrefix(c.Name, "rx_drop") {
			continue
		}
		mark := ""
		if c.RTL != c.Expected {
			mark = "  DIFFER"
		}
		fmt.Fprintf(w, "%-28s %12d %12d%s\n", c.Name, c.RTL, c.Expected, mark)
	}
	fmt.Fprintf(w, "\n%d frames at %d bit: RTL and codec agree on %d, differ on %d", s.Frames, s.Width, s.Agree, s.Differ)
	if s.Skipped != 0 {
		fmt.Fprintf(w, ", %d not fed", s.Skipped)
	}
	if s.Cut != 0 {
		fmt.Fprintf(w, ", %d cut by the capture", s.Cut)
	}
	fmt.Fprintf(w, "; %d counters wrong; %d cycles simulated\n", s.Wrong, s.Cycles)
}

// verdictLine is a verdict on one line: what is defined of it.
func verdictLine(v *roce.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s", v.Reason)
	switch {
	case v.SIP != [16]byte{} || v.DIP != [16]byte{}:
		fmt.Fprintf(&b, " %v > %v", netip.AddrFrom16(v.SIP).Unmap(), netip.AddrFrom16(v.DIP).Unmap())
	case v.Reason == roce.ReasonNone || v.Reason > roce.ReasonL2Truncated:
		fmt.Fprintf(&b, " %v > %v ethertype %04x", net.HardwareAddr(v.SMAC[:]), net.HardwareAddr(v.DMAC[:]), v.EtherType)
	}
	if v.VLANTags > 0 {
		fmt.Fprintf(&b, " vlan %d", v.VLANTCI&0xfff)
	}
	if v.Reason != roce.ReasonNone && v.Reason <= roce.ReasonBTHTruncated {
		fmt.Fprintf(&b, " %d bytes", v.FrameLen)
		return b.String()
	}
	fmt.Fprintf(&b, " %-28s qp=%06x psn=%06x %s %s", v.Opcode, v.DestQP, v.PSN, verdictFlags(v), roce.ECNString(v.TOS))
	if v.Reason == roce.ReasonNone {
		fmt.Fprintf(&b, "%s len=%d", verdictExt(v), v.PayloadLen)
	}
	if v.ICRCOK {
		b.WriteString(" icrc=good")
	} else {
		b.WriteString(" icrc=BAD")
	}
	return b.String()
}

func verdictFlags(v *roce.Verdict) string {
	return flags(&roce.Packet{Headers: roce.Headers{Solicited: v.BTHFlags&0x80 != 0, MigReq: v.BTHFlags&0x40 != 0, AckReq: v.AckReq,
		FECN: v.FECN, BECN: v.BECN}})
}

// verdictExt tells what the extended headers say.
func verdictExt(v *roce.Verdict) string {
	return extText(&roce.Packet{Headers: roce.Headers{Opcode: v.Opcode, QKey: uint32(v.VA), SrcQP: uint32(v.VA >> 32), VA: v.VA, RKey: v.RKey,
		DMALen: v.DMALen, SwapAdd: v.SwapAdd, Compare: v.Compare, Syndrome: v.Syndrome, MSN: v.MSN, Orig: v.Compare, Imm: v.Imm, InvKey: v.RKey}})
}
