// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
)

// soakWire is what happened to the packets of a work request on the link.
type soakWire struct {
	faults [soakFaultKinds]bool // by column
	again  bool                 // a packet was sent again
	rnr    bool                 // the peer had no receive
	sent   bool                 // UD: it was seen
	done   simtime.Time         // completed; 0: not yet
}

// soakAir is a datagram that the link let through.
type soakAir struct {
	wr     *soakWR
	whole  []byte // GRH and payload
	copies int
	at     simtime.Time
}

// The columns of the table of coverage: what the link did to a work request, its packets and the answers to them.
const soakFaultKinds = 5

var (
	soakColumns = []string{"none", "loss", "corruption", "duplication", "reordering", "delay", "combined"}
	soakKinds   = map[string]int{"drop": 0, "corrupt": 1, "bad FCS": 1, "duplicate": 2, "reorder": 3, "delay": 4}
)

func (w *soakWire) column() string {
	column := "none"
	for i, f := range w.faults {
		if f && column != "none" {
			return "combined"
		}
		if f {
			column = soakColumns[1+i]
		}
	}
	return column
}

// soakCell is a cell that a run must have: any of the outcomes, in every column named, of every row that fits.
type soakCell struct {
	row      func(op *soakOp, service verbs.QPType) bool
	columns  []string
	outcomes []string
}

var (
	everyColumn = soakColumns
	anyColumn   = []string{"any"} // one of them
	succeeds    = []string{"ok", "retried", "rnr"}
)

// soakMust is the list of all cells of operations that a run must have. soakMustEvents are the rows that must be there besides.
var soakMust = []soakCell{
	{wired(verbs.TypeRC), everyColumn, succeeds},
	{wired(verbs.TypeRC), []string{"none"}, []string{"ok"}},
	{wired(verbs.TypeRC), []string{"loss"}, []string{"retried"}},
	{wired(verbs.TypeRC), []string{"corruption"}, []string{"retried"}},
	{func(op *soakOp, on verbs.QPType) bool { return on == verbs.TypeRC && op.recv && op.fails == 0 }, anyColumn, []string{"rnr"}},
	{func(op *soakOp, on verbs.QPType) bool { return on == verbs.TypeRC && op.fails == 0 }, anyColumn, []string{"flushed"}},
	{func(op *soakOp, on verbs.QPType) bool { return on == verbs.TypeRC && op.fails == 0 }, []string{"none"}, []string{"revived"}},
	{wired(verbs.TypeUC), []string{"none", "duplication", "reordering", "delay"}, []string{"ok"}},
	{wired(verbs.TypeUD), []string{"none", "duplication", "reordering", "delay"}, []string{"ok"}},
	{func(op *soakOp, on verbs.QPType) bool { return on != verbs.TypeRC && op.recv && op.fails == 0 }, []string{"loss", "corruption"}, []string{"lost"}},
	{func(op *soakOp, on verbs.QPType) bool { return op.fails != 0 }, anyColumn, []string{"fails"}},
	{func(op *soakOp, on verbs.QPType) bool {
		return op.fails == 0 && op.op != verbs.OpNop && on == verbs.TypeUD && op.lost
	}, []string{"none"}, []string{"lost"}},
}

var soakMustEvents = []string{"QP to ERR", "QP to RESET", "QP destroyed", "receive with a bad key", "QP revived by RESET", "QP made anew", "MR taken away",
	"event completion", "event completion, solicited", "event SRQ limit reached", "event QP last WQE reached", "event send queue drained", "SQD to RTS, drained", "SQD to RTS, early", "SQD to RTS, not asked",
	"event QP fatal", "event QP access error",
	"NAK PSN sequence error", "NAK invalid request", "NAK remote access error", "NAK remote operational error", "NAK RNR"}

// wired are the operations that succeed and are seen on the link.
func wired(service verbs.QPType) func(*soakOp, verbs.QPType) bool {
	return func(op *soakOp, on verbs.QPType) bool {
		return on == service && op.fails == 0 && !op.lost && op.op != verbs.OpNop && op.local == nil
	}
}

// soakCoverage counts what became of work requests, by operation and service, by what the link did to them, and by
// outcome; and other things that happened.
type soakCoverage struct {
	rows map[string]map[string]map[string]int
}

func newSoakCoverage() *soakCoverage {
	return &soakCoverage{rows: map[string]map[string]map[string]int{}}
}

func soakRow(op *soakOp, on verbs.QPType) string { return on.String() + " " + op.name }

func (c *soakCoverage) add(row, outcome string, wire *soakWire) {
	column := "none"
	if wire != nil {
		column = wire.column()
	}
	if c.rows[row] == nil {
		c.rows[row] = map[string]map[string]int{}
	}
	if c.rows[row][column] == nil {
		c.rows[row][column] = map[string]int{}
	}
	c.rows[row][column][outcome]++
}

// count notes the outcome of a work request.
func (c *soakCoverage) count(w *soakWR, outcome string) {
	c.add(soakRow(w.op, w.q.pair.service), outcome, &w.wire)
	if w.op.fails != 0 && outcome == w.op.fails.Error() {
		c.add(soakRow(w.op, w.q.pair.service), "fails", &w.wire)
	}
}

// success notes that a work request was done.
func (c *soakCoverage) success(w *soakWR) {
	outcome := "ok"
	switch {
	case w.wire.rnr:
		outcome = "rnr"
	case w.wire.again:
		outcome = "retried"
	}
	c.count(w, outcome)
	if w.q.pair.lives > 1 {
		c.add(soakRow(w.op, w.q.pair.service), "revived", nil)
	}
}

// merge adds the cells of another run.
func (c *soakCoverage) merge(o *soakCoverage) {
	for row, columns := range o.rows {
		for column, outcomes := range columns {
			for outcome, n := range outcomes {
				if c.rows[row] == nil {
					c.rows[row] = map[string]map[string]int{}
				}
				if c.rows[row][column] == nil {
					c.rows[row][column] = map[string]int{}
				}
				c.rows[row][column][outcome] += n
			}
		}
	}
}

// check fails for every cell of soakMust that is empty.
func (c *soakCoverage) check(t *testing.T) {
	t.Helper()
	for _, m := range soakMust {
		for i := range soakOps {
			op := &soakOps[i]
			services := op.on
			if services == nil {
				services = []verbs.QPType{verbs.TypeRC}
			}
			for _, on := range services {
				if !m.row(op, on) {
					continue
				}
				for _, column := range m.columns {
					among := []string{column}
					if column == anyColumn[0] {
						among = soakColumns
					}
					if !slices.ContainsFunc(among, func(column string) bool {
						return slices.ContainsFunc(m.outcomes, func(o string) bool { return c.rows[soakRow(op, on)][column][o] > 0 })
					}) {
						t.Errorf("not covered: %s, %s: %s", soakRow(op, on), column, strings.Join(m.outcomes, " or "))
					}
				}
			}
		}
	}
	for _, row := range soakMustEvents {
		if len(c.rows[row]) == 0 {
			t.Errorf("not covered: %s", row)
		}
	}
}

// String is the table. The last columns of a cell are left out when they are empty.
func (c *soakCoverage) String() string {
	var b strings.Builder
	shown := []string{"ok", "retried", "rnr", "lost", "flushed"}
	fmt.Fprintf(&b, "work requests by operation, what the link did to their packets, and outcome (%s+failed); revived: done by a QP that had failed before\n%-34s",
		strings.Join(shown, "/"), "")
	for _, f := range soakColumns {
		fmt.Fprintf(&b, " %16s", f)
	}
	fmt.Fprintf(&b, " %8s", "revived")
	var others []string
	for _, row := range slices.Sorted(maps.Keys(c.rows)) {
		if !strings.HasPrefix(row, "RC ") && !strings.HasPrefix(row, "UC ") && !strings.HasPrefix(row, "UD ") {
			for _, column := range soakColumns {
				for _, outcome := range slices.Sorted(maps.Keys(c.rows[row][column])) {
					others = append(others, fmt.Sprintf("%s, %s, %s: %d", row, column, outcome, c.rows[row][column][outcome]))
				}
			}
			continue
		}
		fmt.Fprintf(&b, "\n%-34s", row)
		for _, f := range soakColumns {
			cell, left := "", 0
			for o, n := range c.rows[row][f] {
				if !slices.Contains(shown, o) && o != "revived" && o != "fails" {
					left += n
				}
			}
			for _, o := range shown {
				cell += fmt.Sprintf("%d/", c.rows[row][f][o])
			}
			cell = strings.TrimSuffix(cell, "/")
			if left > 0 {
				cell += fmt.Sprintf("+%d", left)
			}
			if rest, ok := strings.CutPrefix(cell, "0/0/0/0/0"); ok {
				cell = "-" + rest
			}
			fmt.Fprintf(&b, " %16s", cell)
		}
		fmt.Fprintf(&b, " %8d", c.rows[row]["none"]["revived"])
	}
	for _, o := range others {
		fmt.Fprintf(&b, "\n%s", o)
	}
	return b.String()
}

// soakDigest is a hash of all that can be seen of a run.
type soakDigest struct {
	sum uint64
}

func (d *soakDigest) add(values ...uint64) {
	for _, v := range values {
		d.sum = (d.sum ^ v) * 0x9e3779b97f4a7c15
		d.sum ^= d.sum >> 29
	}
}

func (d *soakDigest) bytes(b []byte) {
	h := fnv.New64a()
	h.Write(b)
	d.add(h.Sum64())
}

// tap sees every frame that is sent: it finds the work request that the frame is of, and for datagrams keeps what the
// link lets through.
func (s *soak) tap(d fabric.Dir, f fabric.Frame, note string) error {
	var p roce.Packet
	if p.Parse(f.Data, nil) != roce.ReasonNone {
		return fmt.Errorf("frame sent by the RTL is refused: %v", p.Reason)
	}
	s.digest.add(uint64(d), uint64(f.At))
	s.digest.bytes(f.Data)
	s.digest.bytes([]byte(note))
	fault, _, _ := strings.Cut(note, " (")
	fault, _, _ = strings.Cut(fault, ":")
	if p.Opcode.Service() == roce.ServiceUD {
		return s.tapDatagram(d, f, &p, fault)
	}
	to := s.byQPN[1-d][p.DestQP]
	if to == nil {
		return nil // its QP is gone
	}
	q := to.peer // the requester
	answer := p.Opcode.Has(roce.ExtAETH) || p.Opcode == roce.RCReadResponseMiddle
	if answer {
		q = to
	}
	at := slices.IndexFunc(q.wired, func(w *soakWR) bool { return (p.PSN-w.psn)&0xffffff < w.packets })
	if at < 0 {
		return nil
	}
	w := q.wired[at]
	w.wire.fault(fault)
	switch {
	case !answer && (q.high-p.PSN-1)&0xffffff < 1<<23:
		w.wire.again = true
	case !answer:
		q.high = (p.PSN + 1) & 0xffffff
	case p.Opcode.Has(roce.ExtAETH):
		switch kind, _ := roce.SplitAETH(p.Syndrome); kind {
		case roce.AETHRNR:
			w.wire.rnr = true
			s.cover.add("NAK RNR", "sent", &soakWire{})
		case roce.AETHNak:
			var own soakWire
			own.fault(fault)
			s.cover.add(roce.SyndromeString(p.Syndrome), "sent", &own)
		}
	}
	return nil
}

func (w *soakWire) fault(name string) {
	if k, ok := soakKinds[name]; ok {
		w.faults[k] = true
	}
}

// tapDatagram checks that a QP sends its datagrams once each, in order, as they were posted, and notes how often the
// receiver may see this one.
func (s *soak) tapDatagram(d fabric.Dir, f fabric.Frame, p *roce.Packet, fault string) error {
	q := s.byQPN[d][p.SrcQP]
	if q == nil {
		return fmt.Errorf("datagram of QP 0x%x, which does not exist", p.SrcQP)
	}
	at := slices.IndexFunc(q.wired, func(w *soakWR) bool { return !w.wire.sent })
	if at < 0 {
		return fmt.Errorf("%s: a datagram that was not posted", q.name)
	}
	w := q.wired[at]
	payload := p.Payload(f.Data)
	qkey := w.wr.RemoteQKey
	if qkey&0x80000000 != 0 {
		qkey = q.pair.qkey
	}
	if p.PSN != w.psn || p.DestQP != w.wr.RemoteQPN || p.QKey != qkey || !slices.Equal(payload, w.data) || (p.Opcode == roce.UDSendOnlyImmediate) != w.msg.withImm ||
		w.msg.withImm && p.Imm != w.wr.Imm || p.Solicited != (w.wr.Flags&verbs.SendSolicited != 0) {
		return fmt.Errorf("%s: datagram %+v of %d bytes is not %s (%d) of %d bytes, PSN %d", q.name, p.Headers, len(payload), w.op.name, w.wr.WRID, len(w.data), w.psn)
	}
	w.wire.sent = true
	w.wire.fault(fault)
	to := s.byQPN[1-d][p.DestQP]
	if to == nil || p.QKey != to.pair.qkey || fault == "drop" || fault == "bad FCS" {
		return nil
	}
	a := &soakAir{wr: w, at: f.At, copies: 1}
	if fault == "duplicate" {
		a.copies += 2 // at most
	}
	a.whole = make([]byte, verbs.GRHBytes, verbs.GRHBytes+len(payload))
	copy(a.whole[verbs.GRHBytes-p.IPHdrLen:], f.Data[p.L3Off:][:p.IPHdrLen])
	a.whole = append(a.whole, payload...)
	to.air = append(to.air, a)
	return nil
}

// prune drops what nothing can be heard of any more: work requests done, and datagrams sent, long ago.
func (s *soak) prune(q *soakQP, all bool) {
	before := s.heard - soakDrain
	n := 0
	for ; n < len(q.wired); n++ {
		w := q.wired[n]
		if !all && (w.wire.done == 0 || w.wire.done > before || q.pair.service == verbs.TypeUD && !w.wire.sent) {
			break
		}
		if w.wire.done == 0 || q.pair.service == verbs.TypeRC {
			continue
		}
		if w.msg == nil || w.msg.delivered > 0 {
			s.cover.success(w)
		} else {
			s.cover.count(w, "lost")
		}
	}
	q.wired = q.wired[n:]
	n = 0
	for n < len(q.air) && (all || q.air[n].at < before) {
		n++
	}
	q.air = q.air[n:]
}
