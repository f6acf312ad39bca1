// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
)

// reader is a peer on the wire that reads the memory of a NIC.
type reader struct {
	*wire
	mem *verbs.MR
	mtu int
	msn uint32
}

// newReader gives the peer a QP that allows everything, with depth READs and atomics at a time, and an MR.
func newReader(t *testing.T, width int, mtu verbs.MTU, size int, depth uint8) *reader {
	t.Helper()
	r := &reader{wire: newWire(t, width, verbs.QPConfig{}, mtu, nil), mtu: mtu.Bytes()}
	r.mem = r.mr(size, verbs.AccessLocalWrite|allRemote)
	rnd := rand.New(rand.NewPCG(uint64(size), uint64(mtu)))
	for i := range r.mem.Bytes() {
		r.mem.Bytes()[i] = byte(rnd.Uint32())
	}
	r.again(mtu, depth)
	return r
}

// again makes a new connection.
func (r *reader) again(mtu verbs.MTU, depth uint8) {
	r.t.Helper()
	require.NoError(r.t, r.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
	peer := verbs.Remote{QPN: 0x654321, PSN: wirePSN, GID: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}}
	require.NoError(r.t, r.qp.Connect(peer, verbs.ConnectConfig{PathMTU: mtu, Access: allRemote, MaxDestRdAtomic: &depth, NoFlowControl: true}))
	r.psn, r.msn, r.mtu = wirePSN, 0, mtu.Bytes()
}

// frame is one frame of the NIC.
type frame struct {
	roce.Packet
	data []byte
}

func (r *reader) frames(wait simtime.Time) (l []frame) {
	r.t.Helper()
	require.NoError(r.t, r.eng.Advance(wait))
	for {
		f, _, _ := r.port.Recv()
		if f == nil {
			return l
		}
		var p roce.Packet
		p.Parse(f, nil) // with its ICRC
		require.Equal(r.t, roce.ReasonNone, p.Reason)
		require.EqualValues(r.t, 0x654321, p.DestQP)
		require.False(r.t, p.AckReq)
		l = append(l, frame{p, bytes.Clone(p.Payload(f))})
	}
}

func (r *reader) readAt(psn uint32, off, n int) {
	r.packet(roce.RCReadRequest, psn, nil, func(h *roce.Headers) {
		h.VA, h.RKey, h.DMALen = r.mem.Addr()+uint64(off), r.mem.RKey(), uint32(n)
	})
}

// read asks for n bytes with the next PSN, which it gives.
func (r *reader) read(off, n int) uint32 {
	psn := r.psn
	r.readAt(psn, off, n)
	r.psn = (r.psn + uint32(max(1, (n+r.mtu-1)/r.mtu))) & 0xffffff
	r.msn++
	return psn
}

// expect takes the response to a READ from the head of the frames.
func (r *reader) expect(l []frame, psn, msn uint32, want []byte) []frame {
	r.t.Helper()
	for i := 0; ; i++ {
		require.NotEmpty(r.t, l, "READ of %d bytes: response %d is missing", len(want), i)
		f, first := l[0], i == 0
		n := min(len(want), r.mtu)
		last := n == len(want)
		op := roce.RCReadResponseMiddle
		switch {
		case first && last:
			op = roce.RCReadResponseOnly
		case first:
			op = roce.RCReadResponseFirst
		case last:
			op = roce.RCReadResponseLast
		}
		require.Equal(r.t, op, f.Opcode)
		require.Equal(r.t, (psn+uint32(i))&0xffffff, f.PSN)
		if op != roce.RCReadResponseMiddle {
			require.EqualValues(r.t, 0x1f, f.Syndrome)
			require.Equal(r.t, msn, f.MSN)
		}
		require.True(r.t, bytes.Equal(want[:n], f.data), "response %d of %d bytes", i, len(want))
		want, l = want[n:], l[1:]
		if last {
			return l
		}
	}
}

func (r *reader) data(off, n int) []byte { return bytes.Clone(r.mem.Bytes()[off : off+n]) }

func (r *reader) atomic(op roce.Opcode, psn uint32, off int, swapAdd, compare uint64) {
	r.packet(op, psn, nil, func(h *roce.Headers) {
		h.VA, h.RKey, h.SwapAdd, h.Compare = r.mem.Addr()+uint64(off), r.mem.RKey(), swapAdd, compare
	})
}

func (r *reader) expectValue(l []frame, psn, msn uint32, want uint64) []frame {
	r.t.Helper()
	require.NotEmpty(r.t, l)
	require.Equal(r.t, roce.RCAtomicAcknowledge, l[0].Opcode)
	require.Equal(r.t, psn, l[0].PSN)
	require.EqualValues(r.t, 0x1f, l[0].Syndrome)
	require.Equal(r.t, msn, l[0].MSN)
	require.Equal(r.t, want, l[0].Orig)
	return l[1:]
}

func (r *reader) expectAck(l []frame, syndrome uint8, psn uint32) []frame {
	r.t.Helper()
	require.NotEmpty(r.t, l)
	require.Equal(r.t, roce.RCAcknowledge, l[0].Opcode)
	require.Equal(r.t, syndrome, l[0].Syndrome)
	require.Equal(r.t, psn&0xffffff, l[0].PSN)
	return l[1:]
}

// TestReadServer reads a NIC's memory from the wire: every length at the borders of packets, every MTU.
func TestReadServer(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for mtu := verbs.MTU256; mtu <= verbs.MTU4096; mtu++ {
			r := newReader(t, width, mtu, 40000, 8)
			m := r.mtu
			for i, n := range []int{0, 1, 3, 4, m - 1, m, m + 1, 2 * m, 4*m - 1, 4 * m, 4*m + 1, 9*m + 5} {
				n = min(n, 39000)
				off := i * 37
				psn := r.read(off, n)
				l := r.frames(40 * simtime.Microsecond * simtime.Time(1+8*n/(width*width)))
				require.Empty(t, r.expect(l, psn, r.msn, r.data(off, n)))
			}
			// a length of 0 looks at no key; it takes a PSN
			r.packet(roce.RCReadRequest, r.psn, nil, func(h *roce.Headers) { h.VA, h.RKey = 1, 0xdead })
			r.msn++
			require.Empty(t, r.expect(r.frames(30*simtime.Microsecond), r.psn, r.msn, nil))
			require.EqualValues(t, 13, r.counter(regs.RxReadRequestsOffset))
		}
	})
}

// TestReadServerOrder: eight READs at a time, WRITEs between them, acknowledges in their places, PSNs that wrap.
func TestReadServerOrder(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		r := newReader(t, width, verbs.MTU256, 8192, 8)
		type step struct {
			psn, msn uint32
			want     []byte // nil: an acknowledge
		}
		var steps []step
		for i := range 8 {
			// what was written is what is read
			data := bytes.Repeat([]byte{byte(0xa0 + i)}, 200+i)
			r.send(roce.RCWriteOnly, data, func(h *roce.Headers) {
				h.VA, h.RKey, h.DMALen = r.mem.Addr()+uint64(512*i), r.mem.RKey(), uint32(len(data))
			})
			r.msn++
			steps = append(steps, step{(r.psn - 1) & 0xffffff, r.msn, nil})
			n := 500 + i // up to the next one's range
			psn := r.read(512*i, n)
			want := append(bytes.Clone(data), r.data(512*i+len(data), n-len(data))...)
			steps = append(steps, step{psn, r.msn, want})
		}
		l := r.frames(200 * simtime.Microsecond)
		// no acknowledge overtakes a response; those that come behind one of a later PSN say nothing new
		var responses []frame
		for i, f := range l {
			if f.Opcode != roce.RCAcknowledge {
				responses = append(responses, f)
				continue
			}
			require.EqualValues(t, 0x1f, f.Syndrome)
			for _, later := range l[i+1:] {
				if later.Opcode != roce.RCAcknowledge {
					require.Less(t, int32((f.PSN-later.PSN)<<8), int32(0), "acknowledge of PSN %x before response %x", f.PSN, later.PSN)
				}
			}
		}
		for _, s := range steps {
			if s.want != nil {
				responses = r.expect(responses, s.psn, s.msn, s.want)
			}
		}
		require.Empty(t, responses)
	})
}

// TestReadServerAgain: READs that are asked for again, whole or from the middle.
func TestReadServerAgain(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		r := newReader(t, width, verbs.MTU256, 8192, 8)
		a := r.read(10, 2000)
		b := r.read(3000, 300)
		l := r.expect(r.frames(100*simtime.Microsecond), a, 1, r.data(10, 2000))
		require.Empty(t, r.expect(l, b, 2, r.data(3000, 300)))
		r.readAt(a, 10, 2000)
		r.readAt((a+3)&0xffffff, 10+3*256, 2000-3*256)
		r.readAt((a+1)&0xffffff, 10+256, 256)
		r.readAt(b, 3000, 300)
		l = r.frames(200 * simtime.Microsecond)
		l = r.expect(l, a, 2, r.data(10, 2000))
		l = r.expect(l, (a+3)&0xffffff, 2, r.data(10+3*256, 2000-3*256))
		l = r.expect(l, (a+1)&0xffffff, 2, r.data(10+256, 256))
		require.Empty(t, r.expect(l, b, 2, r.data(3000, 300)))
		require.EqualValues(t, 4, r.counter(regs.DuplicateRequestOffset))
		require.EqualValues(t, 2, r.counter(regs.RxReadRequestsOffset))
		// beyond what was executed: no answer; and the next one goes on
		r.readAt(b, 3000, 600)
		require.Empty(t, r.frames(50*simtime.Microsecond))
		c := r.read(0, 5)
		require.Empty(t, r.expect(r.frames(50*simtime.Microsecond), c, 3, r.data(0, 5)))
		// a gap: one NAK
		r.readAt(r.psn+1, 0, 5)
		require.Empty(t, r.expectAck(r.frames(50*simtime.Microsecond), 0x60, r.psn))
	})
}

// TestAtomicServer: values before and after, big-endian on the wire and little-endian in memory; repetitions are not
// executed again, also those of a connection that is gone.
func TestAtomicServer(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		r := newReader(t, width, verbs.MTU256, 4096, 8)
		at := func(off int) uint64 { return binary.LittleEndian.Uint64(r.mem.Bytes()[off:]) }
		shadow := r.data(0, 4096)
		first := r.psn
		var orig []uint64
		for i := range 12 {
			off := 8 * (i % 5)
			before := at(off)
			op, swap, cmp := roce.RCFetchAdd, uint64(0xfedcba9876543210)*uint64(i+1), uint64(0)
			want := before + swap
			if i%3 == 1 {
				op, cmp, want = roce.RCCompareSwap, before, swap
			} else if i%3 == 2 {
				op, cmp, want = roce.RCCompareSwap, before+1, before
			}
			r.atomic(op, r.psn, off, swap, cmp)
			require.Empty(t, r.expectValue(r.frames(30*simtime.Microsecond), r.psn, uint32(i+1), before))
			require.Equal(t, want, at(off))
			binary.LittleEndian.PutUint64(shadow[off:], want)
			orig = append(orig, before)
			r.psn = (r.psn + 1) & 0xffffff
		}
		require.Equal(t, shadow, r.mem.Bytes())
		// the newest eight are remembered
		for i := range 12 {
			r.atomic(roce.RCFetchAdd, (first+uint32(i))&0xffffff, 0, 1, 0)
			l := r.frames(30 * simtime.Microsecond)
			if i < 4 {
				require.Empty(t, l)
			} else {
				require.Empty(t, r.expectValue(l, (first+uint32(i))&0xffffff, 12, orig[i]))
			}
		}
		require.Equal(t, shadow, r.mem.Bytes())
		require.EqualValues(t, 12, r.counter(regs.RxAtomicRequestsOffset))
		r.again(verbs.MTU256, 8)
		r.packet(roce.RCWriteOnly, r.psn, []byte{1}, func(h *roce.Headers) { h.VA, h.RKey, h.DMALen = r.mem.Addr(), r.mem.RKey(), 1 })
		r.atomic(roce.RCFetchAdd, r.psn, 0, 1, 0)
		require.Empty(t, r.frames(30*simtime.Microsecond), "a value of the former connection")
	})
}

// TestReadServerRefused: what the peer may not, and what becomes of the connection.
func TestReadServerRefused(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		r := newReader(t, width, verbs.MTU256, 4096, 2)
		noRead, noAtomic := r.mr(64, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic), r.mr(64, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
		kept := bytes.Clone(noAtomic.Bytes())
		for _, c := range []struct {
			name     string
			op       roce.Opcode
			syndrome uint8
			change   func(*roce.Headers)
		}{
			{"longer than 2^31", roce.RCReadRequest, 0x61, func(h *roce.Headers) { h.DMALen = 1<<31 + 1 }},
			{"beyond the MR", roce.RCReadRequest, 0x62, func(h *roce.Headers) { h.VA, h.DMALen = r.mem.Addr()+1, 4096 }},
			{"foreign key", roce.RCReadRequest, 0x62, func(h *roce.Headers) { h.RKey, h.DMALen = r.mem.RKey()^1, 4 }},
			{"MR without remote read", roce.RCReadRequest, 0x62, func(h *roce.Headers) { h.VA, h.RKey, h.DMALen = noRead.Addr(), noRead.RKey(), 4 }},
			{"MR without remote atomic", roce.RCFetchAdd, 0x62, func(h *roce.Headers) { h.VA, h.RKey = noAtomic.Addr(), noAtomic.RKey() }},
			{"not aligned", roce.RCCompareSwap, 0x61, func(h *roce.Headers) { h.VA = r.mem.Addr() + 4 }},
			{"beyond the MR", roce.RCFetchAdd, 0x62, func(h *roce.Headers) { h.VA = r.mem.Addr() + 4096 }},
		} {
			r.again(verbs.MTU256, 2)
			psn := r.read(0, 700)
			r.packet(c.op, r.psn, nil, func(h *roce.Headers) {
				h.VA, h.RKey = r.mem.Addr(), r.mem.RKey()
				c.change(h)
			})
			// the READ before it is answered, then the NAK
			l := r.frames(100 * simtime.Microsecond)
			for _, f := range l {
				t.Log(c.name, f.Opcode, f.PSN, f.Syndrome)
			}
			l = r.expect(l, psn, 1, r.data(0, 700))
			require.Empty(t, r.expectAck(l, c.syndrome, r.psn), c.name)
			info, err := r.qp.Query()
			require.NoError(t, err)
			require.Equal(t, verbs.StateErr, info.State, c.name)
		}
		require.Equal(t, kept, noAtomic.Bytes())
		// one more than the QP allows, as fast as they can come
		r.again(verbs.MTU256, 2)
		a, b := r.read(0, 100), r.read(100, 100)
		third := r.read(200, 100)
		l := r.expect(r.frames(100*simtime.Microsecond), a, 1, r.data(0, 100))
		l = r.expect(l, b, 2, r.data(100, 100))
		if l[0].Opcode == roce.RCAcknowledge { // it came while both were open
			require.Empty(t, r.expectAck(l, 0x61, third))
		} else {
			require.Empty(t, r.expect(l, third, 3, r.data(200, 100)))
		}
	})
}
