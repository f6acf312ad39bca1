// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// pkeys is the table of the tests: full and limited members of two partitions.
var pkeys = []uint16{0xffff, 0x7fff, 0x8012, 0x0012}

// pkeyMatch is IBTA 10.9.3: the same partition, and not two limited members.
func pkeyMatch(a, b uint16) bool { return a&0x7fff == b&0x7fff && (a|b)>>15 == 1 }

// TestPKey: QPs talk if they are of one partition and one of them is a full member; everything else is dropped and counted.
func TestPKey(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width, Verbs: func(c *verbs.Config) { c.PKeys = pkeys }})
		drops := func(host int) uint64 {
			return verbs.Counter(p.Hosts[host].Dev, regs.TransportDropOffset+8*uint64(regs.TransportDropPKey))
		}
		mr, err := p.Hosts[1].PD.AllocMR(4096, mrAll)
		require.NoError(t, err)
		local, err := p.Hosts[0].PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		for i := range pkeys {
			for j := range pkeys {
				t.Run(fmt.Sprintf("RC 0x%04x 0x%04x", pkeys[i], pkeys[j]), func(t *testing.T) {
					var qps [2]*verbs.QP
					for h, host := range p.Hosts {
						qps[h], err = host.PD.CreateQP(verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 1, SignalAll: true})
						require.NoError(t, err)
					}
					for h, qp := range qps {
						require.NoError(t, qp.Connect(qps[1-h].Local(7), verbs.ConnectConfig{PSN: 7, PKeyIndex: [2]int{i, j}[h],
							Timeout: verbs.Of(uint8(4)), RetryCnt: verbs.Of(uint8(1))}))
					}
					before := drops(1)
					clear(mr.Bytes())
					local.Bytes()[0] = byte(1 + i*16 + j)
					_, err := qps[0].PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{local.SGE(0, 64)}, RemoteAddr: mr.Addr(), RKey: mr.RKey()})
					require.NoError(t, err)
					wc := pollOne(t, p.Hosts[0].CQ)
					if pkeyMatch(pkeys[i], pkeys[j]) {
						require.NoError(t, wc.Err())
						require.Equal(t, local.Bytes()[0], mr.Bytes()[0])
						require.Equal(t, before, drops(1))
					} else {
						require.ErrorIs(t, wc.Err(), verbs.StatusRetryExcErr)
						require.Zero(t, mr.Bytes()[0])
						require.Equal(t, before+2, drops(1))
					}
					for _, qp := range qps {
						require.NoError(t, qp.Close())
					}
				})
				t.Run(fmt.Sprintf("UD 0x%04x 0x%04x", pkeys[i], pkeys[j]), func(t *testing.T) {
					var qps [2]*verbs.QP
					for h, host := range p.Hosts {
						qps[h], err = host.PD.CreateQP(verbs.QPConfig{Type: verbs.TypeUD, SendCQ: host.CQ, MaxSendWR: 1, MaxRecvWR: 1, SignalAll: true})
						require.NoError(t, err)
						require.NoError(t, qps[h].Start(verbs.DatagramConfig{QKey: 5, PKeyIndex: [2]int{i, j}[h]}))
					}
					_, err := qps[1].PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{mr.SGE(0, 4096)}})
					require.NoError(t, err)
					ah, err := p.Hosts[0].PD.CreateAH(verbs.AHAttr{DGID: p.Hosts[1].Dev.GID(), DMAC: p.Hosts[1].Dev.MAC()})
					require.NoError(t, err)
					before := drops(1)
					_, err = qps[0].PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{local.SGE(0, 64)}, AH: ah, RemoteQPN: qps[1].QPN(), RemoteQKey: 5})
					require.NoError(t, err)
					wc := pollOne(t, p.Hosts[0].CQ)
					require.NoError(t, wc.Err(), "a datagram is sent, whatever becomes of it")
					if pkeyMatch(pkeys[i], pkeys[j]) {
						wc = pollOne(t, p.Hosts[1].CQ)
						require.NoError(t, wc.Err())
						require.Equal(t, before, drops(1))
					} else {
						require.NoError(t, p.Sim.Engine.Advance(20*simtime.Microsecond))
						var wcs [1]verbs.WC
						n, err := p.Hosts[1].CQ.Poll(wcs[:])
						require.NoError(t, err)
						require.Zero(t, n)
						require.Equal(t, before+1, drops(1))
					}
					require.NoError(t, ah.Close())
					for _, qp := range qps {
						require.NoError(t, qp.Close())
					}
				})
			}
		}
	})
}

// TestPKeyTable: what the table and its users refuse; RESET forgets the index.
func TestPKeyTable(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64, Verbs: func(c *verbs.Config) { c.PKeys = pkeys }})
	d := p.Hosts[0].Dev
	require.Equal(t, len(pkeys), d.Attr().MaxPKeys)
	for i, want := range pkeys {
		k, err := d.PKey(i)
		require.NoError(t, err)
		require.Equal(t, want, k)
	}
	for _, i := range []int{-1, len(pkeys)} {
		_, err := d.PKey(i)
		require.ErrorIs(t, err, verbs.ErrLimit)
	}
	qp, err := p.Hosts[0].PD.CreateQP(verbs.QPConfig{SendCQ: p.Hosts[0].CQ, MaxSendWR: 1})
	require.NoError(t, err)
	init := verbs.QPAttr{State: verbs.Of(verbs.StateInit), Access: verbs.Of(verbs.Access(0))}
	for _, i := range []int{-1, len(pkeys)} {
		init.PKeyIndex = &i
		err := qp.Modify(init)
		require.ErrorIs(t, err, verbs.ErrLimit)
		require.ErrorContains(t, err, "PKeyIndex")
	}
	init.PKeyIndex = verbs.Of(3)
	require.NoError(t, qp.Modify(init))
	require.EqualValues(t, pkeys[3], verbs.PKeyOf(qp))
	require.NoError(t, qp.Modify(verbs.QPAttr{PKeyIndex: verbs.Of(2)}))
	require.EqualValues(t, pkeys[2], verbs.PKeyOf(qp))
	require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
	init.PKeyIndex = nil
	require.NoError(t, qp.Modify(init))
	require.EqualValues(t, pkeys[0], verbs.PKeyOf(qp))
	rtr := verbs.QPAttr{State: verbs.Of(verbs.StateRTR), PKeyIndex: verbs.Of(1)}
	require.ErrorContains(t, qp.Modify(rtr), "needed for")

	sim, err := cosim.NewPair(cosim.PairConfig{Width: 64})
	require.NoError(t, err)
	defer func() { require.NoError(t, sim.Close()) }()
	for _, k := range []uint16{0, 0x8000} {
		_, err = verbs.NewDevice(sim.Dev[0], verbs.Config{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("192.0.2.1"), PKeys: []uint16{0xffff, k}})
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "PKeys")
	}
}
