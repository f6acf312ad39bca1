// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/rxetest"
)

// TestConversations lets a NIC take the place of Linux rdma_rxe in the conversations of testdata/captures, once as
// the server and once as the client: it must say what rxe said, complete what rxe completed, and leave in memory
// what rxe left there. Where it may differ, and why, stands in the table `differences`; docs/interop-rxe.md is its
// text. An entry that no conversation needs fails the test.
func TestConversations(t *testing.T) {
	all, err := rxetest.Load("../../testdata/captures")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	if testing.Short() {
		all = slices.DeleteFunc(all, func(c *rxetest.Conversation) bool { return !strings.HasPrefix(c.Name, "rxe61_") })
	}
	doc, err := os.ReadFile("../../docs/interop-rxe.md")
	require.NoError(t, err)
	for _, d := range differences {
		require.Contains(t, string(doc), "\n| `"+d.id+"` | "+d.role+" |", "the document")
	}
	used := map[string]int{}
	failed := false
	forWidths(t, func(t *testing.T, width int) {
		for _, role := range []string{"server", "client"} {
			t.Run(role, func(t *testing.T) {
				ran := 0
				for _, c := range all {
					if side := c.Client; role == "client" && side.Script {
						continue
					}
					if side := c.Server; role == "server" && side.Script {
						continue
					}
					ran++
					ok := t.Run(c.Name, func(t *testing.T) {
						p := newPlayer(t, c, role, width, used)
						if role == "server" {
							p.playServer()
						} else {
							p.playClient()
						}
					})
					failed = failed || !ok
				}
				t.Logf("%d conversations ran", ran)
				require.NotZero(t, ran)
			})
		}
	})
	if failed {
		return
	}
	for _, d := range differences {
		switch {
		case testing.Short() && d.kernels:
		case used[d.id] == 0:
			t.Errorf("no conversation needs the difference %q", d.id)
		default:
			t.Logf("difference %q: %d times", d.id, used[d.id])
		}
	}
}

// player is one NIC in the place of one side of a conversation.
type player struct {
	t    *testing.T
	c    *rxetest.Conversation
	used map[string]int
	role string
	me   *rxetest.Side

	eng  *cosim.Engine
	port *cosim.Port
	dev  *verbs.Device
	pd   *verbs.PD
	cq   *verbs.CQ
	qp   *verbs.QP
	ah   *verbs.AH // of UD
	buf  *verbs.MR // the buffer of vt
	mw   *verbs.MW // of the server, in the buffer
	ro   *verbs.MR // without remote rights
	wcs  []verbs.WC
}

func newPlayer(t *testing.T, c *rxetest.Conversation, role string, width int, used map[string]int) *player {
	t.Helper()
	p := &player{t: t, c: c, used: used, role: role, me: &c.Client}
	peer := &c.Server
	if role == "server" {
		p.me, peer = peer, p.me
	}
	lib, err := model.OpenWidth(width, "")
	require.NoError(t, err)
	p.eng = cosim.NewEngine(cosim.Config{})
	t.Cleanup(func() { require.NoError(t, p.eng.Close()) })
	cfg := model.DefaultConfig(width)
	cfg.LinkMbps = 0
	nic, err := p.eng.AddNIC(role, lib, cfg)
	require.NoError(t, err)
	p.port = p.eng.AddPort("peer")
	_, err = p.eng.Connect(nic, p.port, fabric.Config{Latency: 500 * simtime.Nanosecond})
	require.NoError(t, err)
	p.dev, err = verbs.NewDevice(nic.Device(), verbs.Config{MAC: p.me.MAC[:], Addr: verbs.GID(p.me.IP).Addr()})
	require.NoError(t, err)
	// like rxe: acknowledges only where asked for, and asks only with the last packet
	ack := regs.AckCtrlReg(0).WithCoalesce(0).WithReqInterval(0)
	p.dev.PCIe().Region(pcie.BARRegisters).Store32(regs.AckCtrlOffset, uint32(ack))
	p.pd, err = p.dev.AllocPD()
	require.NoError(t, err)
	p.cq, err = p.dev.CreateCQ(512)
	require.NoError(t, err)
	access := verbs.Access(p.me.Access)
	if role == "server" {
		access |= verbs.AccessMWBind
	}
	p.buf, err = p.pd.AllocMR(rxetest.BufSize, access)
	require.NoError(t, err)
	p.ro, err = p.pd.AllocMR(rxetest.ROSize, verbs.AccessLocalWrite)
	require.NoError(t, err)
	if role == "server" {
		copy(p.buf.Bytes(), rxetest.ServerBuffer())
	} else {
		copy(p.buf.Bytes(), rxetest.ClientBuffer())
	}
	p.connect(peer)
	if role == "server" && c.Service == roce.ServiceRC && !c.Client.Script {
		p.bind()
	}
	return p
}

// connect makes the QP as vt does.
func (p *player) connect(peer *rxetest.Side) {
	p.t.Helper()
	types := map[roce.Service]verbs.QPType{roce.ServiceRC: verbs.TypeRC, roce.ServiceUC: verbs.TypeUC, roce.ServiceUD: verbs.TypeUD}
	var err error
	p.qp, err = p.pd.CreateQP(verbs.QPConfig{Type: types[p.c.Service], SendCQ: p.cq, MaxSendWR: 256, MaxRecvWR: 256, SignalAll: true})
	require.NoError(p.t, err)
	mtu, err := verbs.MTUFromBytes(p.me.MTU)
	require.NoError(p.t, err)
	access := verbs.Access(p.me.Access) &^ verbs.AccessLocalWrite
	init := verbs.QPAttr{State: verbs.Of(verbs.StateInit), Access: &access}
	rtr := verbs.QPAttr{State: verbs.Of(verbs.StateRTR), PathMTU: &mtu, DestQPN: verbs.Of(peer.QPN + p.me.QPNOffset), RQPSN: &peer.PSN,
		AH: &verbs.AHAttr{DGID: peer.IP, DMAC: net.HardwareAddr(peer.MAC[:]), TrafficClass: p.me.TrafficClass, FlowLabel: p.me.FlowLabel}}
	rts := verbs.QPAttr{State: verbs.Of(verbs.StateRTS), SQPSN: &p.me.PSN}
	if p.c.Service == roce.ServiceUD {
		init = verbs.QPAttr{State: init.State, QKey: verbs.Of(uint32(rxetest.QKey))}
		p.ah, err = p.pd.CreateAH(*rtr.AH)
		require.NoError(p.t, err)
		rtr = verbs.QPAttr{State: rtr.State}
	}
	if p.c.Service == roce.ServiceRC {
		open := min(p.me.RdAtomic, uint8(p.dev.Attr().MaxQPInitRdAtom)) // READs and atomics; vt asks for 16, the NIC offers less
		rtr.MinRNRTimer, rtr.MaxDestRdAtomic = &p.me.RNRTimer, &open
		rtr.FlowControl = verbs.Of(false) // rxe gives no credits and heeds none
		rts.Timeout, rts.RetryCnt, rts.RNRRetry, rts.MaxRdAtomic = &p.me.Timeout, &p.me.Retry, &p.me.RNRRetry, &open
	}
	for _, a := range []verbs.QPAttr{init, rtr, rts} {
		require.NoError(p.t, p.qp.Modify(a))
	}
}

// bind makes vt's memory window.
func (p *player) bind() {
	p.t.Helper()
	var err error
	p.mw, err = p.pd.AllocMW()
	require.NoError(p.t, err)
	_, err = p.qp.PostSend(verbs.SendWR{WRID: 999, Opcode: verbs.OpBindMW, Bind: &verbs.MWBind{MW: p.mw, MR: p.buf,
		Addr: p.buf.Addr() + rxetest.MWOffset, Length: rxetest.MWLen, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead}})
	require.NoError(p.t, err)
	require.NoError(p.t, p.eng.Advance(settle))
	p.poll()
	require.Len(p.t, p.wcs, 1)
	require.NoError(p.t, p.wcs[0].Err())
	p.wcs = nil
}

// allow tells whether the difference may be made in this conversation, and notes that it was.
func (p *player) allow(id string) bool {
	for _, d := range differences {
		if d.id != id {
			continue
		}
		if d.role != p.role {
			return false
		}
		for _, g := range d.captures {
			// a case of an inject capture is part of the name
			if ok, err := path.Match(g, p.c.Name); err != nil {
				p.t.Fatal(err)
			} else if ok {
				p.used[id]++
				return true
			}
		}
		return false
	}
	p.t.Fatalf("the table has no difference %q", id)
	return false
}

// settle is longer than the NIC is ever still between two frames of one job.
const settle = 30 * simtime.Microsecond

// frames gives what the NIC has sent, until it sends nothing more for a while.
func (p *player) frames(f func(frame []byte, q *roce.Packet, at simtime.Time)) {
	p.t.Helper()
	for more := true; more; {
		require.NoError(p.t, p.eng.Advance(settle))
		more = p.take(f)
	}
}

// take gives what has arrived.
func (p *player) take(f func(frame []byte, q *roce.Packet, at simtime.Time)) (some bool) {
	p.t.Helper()
	for {
		frame, at, _ := p.port.Recv()
		if frame == nil {
			return some
		}
		some = true
		var q roce.Packet
		q.Parse(frame, nil)
		require.Equal(p.t, roce.ReasonNone, q.Reason, "%x", frame)
		f(frame, &q, at)
	}
}

func (p *player) poll() {
	p.t.Helper()
	var wcs [64]verbs.WC
	for {
		n, err := p.cq.Poll(wcs[:])
		require.NoError(p.t, err)
		p.wcs = append(p.wcs, wcs[:n]...)
		if n < len(wcs) {
			return
		}
	}
}

// differ compares a packet of the NIC with a recorded one and names the fields that differ. Numbers that follow from
// the NIC's own QPN are not compared: the UDP source port, unless it comes from a flow label.
func (p *player) differ(frame []byte, got *roce.Packet, want *rxetest.Packet) string {
	g, w := got.Headers, want.Headers
	g.IPID, w.IPID = 0, 0
	g.FlowLabel, w.FlowLabel = 0, 0
	if p.me.FlowLabel == 0 {
		g.SrcPort, w.SrcPort = 0, 0
	}
	if w.Opcode.Has(roce.ExtDETH) {
		w.SrcQP = p.qp.QPN()
	}
	var l []string
	if g != w {
		l = append(l, fields(g, w)...)
	}
	if !bytes.Equal(got.Payload(frame), want.Payload(want.Frame)) {
		l = append(l, fmt.Sprintf("payload of %d bytes, recorded %d", got.PayloadLen, want.PayloadLen))
	}
	if !bytes.Equal(pad(frame, got), make([]byte, got.Pad)) {
		l = append(l, "pad bytes are not 0")
	}
	return strings.Join(l, "; ")
}

// fields names the fields of two headers that are not equal.
func fields(got, want roce.Headers) (l []string) {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); a != b {
			l = append(l, fmt.Sprintf("%s 0x%x, recorded 0x%x", g.Type().Field(i).Name, a, b))
		}
	}
	return l
}

func pad(frame []byte, p *roce.Packet) []byte {
	return frame[p.PayloadOff+p.PayloadLen:][:p.Pad]
}

func say(p *roce.Packet) string {
	s := fmt.Sprintf("%v PSN %06x", p.Opcode, p.PSN)
	if p.Opcode.Has(roce.ExtAETH) {
		s += fmt.Sprintf(" %s MSN %d", roce.SyndromeString(p.Syndrome), p.MSN)
	}
	if p.Opcode.Has(roce.ExtRETH) {
		s += fmt.Sprintf(" va %x length %d", p.VA, p.DMALen)
	}
	return s
}

// memory compares the buffer.
func (p *player) memory(want []byte) {
	p.t.Helper()
	got := p.buf.Bytes()
	if bytes.Equal(got, want) {
		return
	}
	for i := range got {
		if got[i] != want[i] {
			p.t.Fatalf("byte %d of the buffer is 0x%02x, not 0x%02x", i, got[i], want[i])
		}
	}
}
