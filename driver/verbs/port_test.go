// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// requirePort takes the next event of each device, and compares it and the state of the port.
func requirePort(t *testing.T, p *verbstest.Pair, ev verbs.EventType, state verbs.PortState) {
	t.Helper()
	for _, h := range p.Hosts {
		got, err := next(t, h.Dev)
		require.NoError(t, err)
		require.Equal(t, verbs.Event{Type: ev, Number: 1}, got)
		a, err := h.Dev.QueryPort()
		require.NoError(t, err)
		require.Equal(t, verbs.PortAttr{State: state, ActiveMTU: verbs.MTU4096, MaxMsg: 1 << 31}, a)
	}
}

// TestLinkDown takes the link away in the middle of traffic. Up again before the retries end, everything completes;
// for good, the oldest work request fails.
func TestLinkDown(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, b := p.Hosts[0], p.Hosts[1]
		src, err := a.PD.AllocMR(1<<16, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := b.PD.AllocMR(1<<16, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
		require.NoError(t, err)
		for i := range src.Bytes() {
			src.Bytes()[i] = byte(i*7 + i>>8)
		}
		const n = 32
		qp, peer, err := p.Connect(verbs.QPConfig{MaxSendWR: 2 * n, SignalAll: true}, verbs.ConnectConfig{
			Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead, Timeout: verbs.Of(uint8(5)), RetryCnt: verbs.Of(uint8(3))})
		require.NoError(t, err)
		post := func() {
			for i := range n {
				wr := verbs.SendWR{WRID: uint64(i), Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(i*2048, 2048)},
					RemoteAddr: dst.Addr() + uint64(i*2048), RKey: dst.RKey()}
				_, err := qp.PostSend(wr)
				require.NoError(t, err)
			}
		}
		state, err := a.Dev.QueryPort()
		require.NoError(t, err)
		require.Equal(t, verbs.PortActive, state.State)
		requireNoEvent(t, a.Dev)
		requireNoEvent(t, b.Dev)

		for round := range 3 {
			clear(dst.Bytes())
			post()
			require.NoError(t, p.Sim.Engine.Advance(simtime.Time(2+round)*simtime.Microsecond))
			before := p.Sim.Link.Stats(fabric.AtoB).Lost
			p.Sim.Engine.SetLinkUp(p.Sim.Link, false)
			requirePort(t, p, verbs.EventPortErr, verbs.PortDown)
			require.NoError(t, p.Sim.Engine.Advance(300*simtime.Microsecond))
			require.Greater(t, p.Sim.Link.Stats(fabric.AtoB).Lost, before, "nothing was lost")
			p.Sim.Engine.SetLinkUp(p.Sim.Link, true)
			requirePort(t, p, verbs.EventPortActive, verbs.PortActive)
			for i := range n {
				wc := pollOne(t, a.CQ)
				require.NoError(t, wc.Err())
				require.EqualValues(t, i, wc.WRID)
			}
			require.Equal(t, src.Bytes(), dst.Bytes())
		}
		require.NotZero(t, verbs.Counter(a.Dev, regs.LocalAckTimeoutErrOffset))

		// for good
		post()
		require.NoError(t, p.Sim.Engine.Advance(2*simtime.Microsecond))
		p.Sim.Engine.SetLinkUp(p.Sim.Link, false)
		requirePort(t, p, verbs.EventPortErr, verbs.PortDown)
		failed := -1
		for i := range n {
			wc := pollOne(t, a.CQ)
			require.EqualValues(t, i, wc.WRID)
			switch {
			case failed >= 0:
				require.ErrorIs(t, wc.Err(), verbs.StatusWRFlushErr)
			case wc.Err() != nil:
				require.ErrorIs(t, wc.Err(), verbs.StatusRetryExcErr)
				failed = i
			}
		}
		require.GreaterOrEqual(t, failed, 0)
		ev, err := next(t, a.Dev)
		require.NoError(t, err)
		require.Equal(t, verbs.Event{Type: verbs.EventQPFatal, QP: qp, Number: qp.QPN()}, ev)
		requireNoEvent(t, a.Dev)
		requireNoEvent(t, b.Dev)
		require.Equal(t, verbs.StateRTS, peer.State())

		// down and up within one look: the event tells of it or of nothing, the state is right
		p.Sim.Engine.SetLinkUp(p.Sim.Link, true)
		p.Sim.Engine.SetLinkUp(p.Sim.Link, false)
		letPass(t, p)
		requireNoEvent(t, a.Dev)
		p.Sim.Engine.SetLinkUp(p.Sim.Link, true)
		requirePort(t, p, verbs.EventPortActive, verbs.PortActive)
	})
}

// TestPortWithoutLink: a port that is not connected is down.
func TestPortWithoutLink(t *testing.T) {
	e := cosim.NewEngine(cosim.Config{})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	lib, err := model.OpenWidth(64, "")
	require.NoError(t, err)
	nic, err := e.AddNIC("nic", lib, model.DefaultConfig(64))
	require.NoError(t, err)
	d, err := verbs.NewDevice(nic.Device(), verbs.Config{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("192.0.2.1")})
	require.NoError(t, err)
	requireNoEvent(t, d)
	a, err := d.QueryPort()
	require.NoError(t, err)
	require.Equal(t, verbs.PortDown, a.State)
	require.NoError(t, d.Close())
	_, err = d.QueryPort()
	require.ErrorIs(t, err, verbs.ErrClosed)
}
