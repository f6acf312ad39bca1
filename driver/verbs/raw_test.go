// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// rawQP makes the raw packet QP of a host and starts it.
func rawQP(t *testing.T, h *verbstest.Host, depth int) *verbs.QP {
	t.Helper()
	qp, err := h.PD.CreateQP(verbs.QPConfig{Type: verbs.TypeRawPacket, SendCQ: h.CQ, MaxSendWR: depth, MaxSendSGE: 2, MaxRecvWR: depth,
		MaxRecvSGE: 3, SignalAll: true})
	require.NoError(t, err)
	require.NoError(t, qp.Start(verbs.DatagramConfig{}))
	return qp
}

var broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// rawFrame makes a frame of n bytes: ARP, or something else that is not RoCEv2.
func rawFrame(rng *rand.Rand, dst, src []byte, n int) []byte {
	f := make([]byte, n)
	fillRandom(rng, f)
	copy(f, dst)
	copy(f[6:], src)
	binary.BigEndian.PutUint16(f[12:], []uint16{0x0806, 0x88cc, 0x0800, 0x86dd, 0x0000, uint16(n - 14)}[rng.IntN(6)])
	switch binary.BigEndian.Uint16(f[12:]) {
	case 0x0800, 0x86dd: // ICMP, or UDP to another port
		if n < 60 {
			binary.BigEndian.PutUint16(f[12:], 0x0806)
			break
		}
		v4 := f[12] == 0x08
		proto := []byte{1, 17}[rng.IntN(2)]
		if v4 {
			f[14], f[20], f[21], f[23] = 0x45, 0x40, 0, proto
			binary.BigEndian.PutUint16(f[16:], uint16(n-14))
			binary.BigEndian.PutUint16(f[34+2:], 53)
		} else {
			f[14], f[20] = 0x60, 58
			binary.BigEndian.PutUint16(f[18:], uint16(n-54))
			if n >= 62 && proto == 17 {
				f[20] = 17
				binary.BigEndian.PutUint16(f[54+2:], 5353)
			}
		}
	case 0x8100, 0x88a8:
		f[12] = 0x77
	}
	return f
}

// TestRaw: frames of 14 to 4096 bytes from one raw packet QP to the other, one behind the other, unicast, to groups and to
// everybody, while an RC QP sends over the same ports: each comes out as it went in, in order, and on the wire there is
// nothing but it.
func TestRaw(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const messages, depth, slot = 250, 64, 4200
		rng := rand.New(rand.NewPCG(uint64(width), 21))
		log := &frames{dir: fabric.AtoB}
		p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) {
			c.RandomStalls(rng.Uint64())
			c.Taps = append(c.Taps, log)
		}})
		a, b := p.Hosts[0], p.Hosts[1]
		from, to := rawQP(t, a, depth), rawQP(t, b, depth)
		rc, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 64, SignalAll: true}, verbs.ConnectConfig{})
		require.NoError(t, err)
		src, err := a.PD.AllocMR(depth*slot, 0)
		require.NoError(t, err)
		dst, err := b.PD.AllocMR(depth*slot, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		sink, err := b.PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		var sent [][]byte
		posted, next, done, received, writes := 0, 0, 0, 0, 0
		wcs := make([]verbs.WC, 8)
		for polls := 0; done < messages || received < messages; polls++ {
			require.Less(t, polls, 100000, "%d sent, %d done, %d received", next, done, received)
			for posted-received < depth {
				off := posted % depth * slot
				x, y := 1+rng.IntN(100), 1+rng.IntN(100)
				_, err := to.PostRecv(verbs.RecvWR{WRID: uint64(posted), SGEs: []verbs.SGE{dst.SGE(off, x), dst.SGE(off+x, y), dst.SGE(off+x+y, slot-x-y)}})
				require.NoError(t, err)
				posted++
			}
			for next < messages && next-received < 16 && next-done < depth {
				n := []int{14, 15, 60, 61, 64, 1514, 4095, 4096, 14 + rng.IntN(4083)}[rng.IntN(9)]
				f := rawFrame(rng, [][]byte{b.Dev.MAC(), broadcast[:], {0x01, 0, 0x5e, 1, 2, 3}, {0x33, 0x33, 0, 0, 0, 1}}[rng.IntN(4)], a.Dev.MAC(), n)
				off := next % depth * slot
				copy(src.Bytes()[off:], f)
				cut := 1 + rng.IntN(n-1)
				_, err := from.PostSend(verbs.SendWR{WRID: uint64(next), Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(off, cut), src.SGE(off+cut, n-cut)}})
				require.NoError(t, err)
				sent = append(sent, f)
				next++
				if next%8 == 0 {
					_, err := rc.PostSend(verbs.SendWR{WRID: 1 << 20, Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 3000)}, RemoteAddr: sink.Addr(), RKey: sink.RKey()})
					require.NoError(t, err)
					writes++
				}
			}
			n, err := a.CQ.Poll(wcs)
			require.NoError(t, err)
			for i := range wcs[:n] {
				require.NoError(t, wcs[i].Err())
				if wcs[i].QPN == from.QPN() {
					require.Equal(t, uint64(done), wcs[i].WRID)
					done++
				}
			}
			n, err = b.CQ.Poll(wcs)
			require.NoError(t, err)
			for i := range wcs[:n] {
				wc := &wcs[i]
				require.NoError(t, wc.Err())
				require.Equal(t, uint64(received), wc.WRID)
				require.Equal(t, verbs.WCRecv, wc.Opcode)
				require.False(t, wc.GRH)
				require.Equal(t, len(sent[received]), int(wc.ByteLen), "frame %d", received)
				off := received % depth * slot
				require.Equal(t, sent[received], dst.Bytes()[off:off+len(sent[received])], "frame %d", received)
				received++
			}
		}
		quiet(t, b)
		k := 0
		for _, f := range log.list {
			var pkt roce.Packet
			if pkt.Parse(f, &roce.Options{}) == roce.ReasonNone {
				continue // of the RC QP
			}
			require.Less(t, k, messages)
			require.Equal(t, sent[k], f, "frame %d on the wire", k)
			k++
		}
		require.Equal(t, messages, k)
		require.Equal(t, uint64(messages), verbs.Counter(b.Dev, regs.RxRawFramesOffset))
		require.Equal(t, uint64(messages), verbs.Counter(a.Dev, regs.TxRawFramesOffset))
		require.True(t, bytes.Equal(src.Bytes()[:4], sink.Bytes()[:4]) || writes == 0)
	})
}

// TestRawDrops: what the raw packet QP does not get: frames for others, RoCEv2 for groups, anything too long for its
// receive (which stays), anything without a receive, and anything at all while there is no such QP or it is not ready.
func TestRawDrops(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, b := p.Hosts[0], p.Hosts[1]
		rng := rand.New(rand.NewPCG(5, 5))
		from := rawQP(t, a, 8)
		src, err := a.PD.AllocMR(4096, 0)
		require.NoError(t, err)
		dst, err := b.PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		send := func(f []byte) {
			t.Helper()
			copy(src.Bytes(), f)
			_, err := from.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, len(f))}})
			require.NoError(t, err)
			wc := poll(t, a, 1)[0]
			require.NoError(t, wc.Err())
			quiet(t, a)
		}
		drop := func(r regs.DropReason) uint64 { return verbs.Counter(b.Dev, regs.RxDropOffset+8*uint64(r)) }
		arp := make([]byte, 60)
		copy(arp, broadcast[:])
		copy(arp[6:], a.Dev.MAC())
		arp[12], arp[13] = 0x08, 0x06
		send(arp)
		require.Equal(t, uint64(1), drop(regs.DropReasonDMACMismatch), "before there is a QP")

		cfg := verbs.QPConfig{Type: verbs.TypeRawPacket, SendCQ: b.CQ, MaxSendWR: 4, MaxRecvWR: 4, SignalAll: true}
		to, err := b.PD.CreateQP(cfg)
		require.NoError(t, err)
		_, err = b.PD.CreateQP(cfg)
		require.Error(t, err, "a second one")
		require.NoError(t, to.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateInit)}))
		_, err = to.PostRecv(verbs.RecvWR{WRID: 1, SGEs: []verbs.SGE{dst.SGE(0, 59)}}, verbs.RecvWR{WRID: 2, SGEs: []verbs.SGE{dst.SGE(1000, 100)}})
		require.NoError(t, err)
		send(arp)
		require.Equal(t, uint64(2), drop(regs.DropReasonDMACMismatch), "in INIT")
		require.NoError(t, to.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateRTR)}))
		send(arp)
		require.Equal(t, uint64(1), verbs.Counter(b.Dev, regs.TransportDropOffset+8*uint64(regs.TransportDropRecvLength)))
		quiet(t, b)
		short := arp[:59]
		send(short)
		send(arp)
		wcs := poll(t, b, 2)
		require.Equal(t, []uint32{59, 60}, []uint32{wcs[0].ByteLen, wcs[1].ByteLen})
		require.Equal(t, arp, dst.Bytes()[1000:1060])
		send(arp)
		require.Equal(t, uint64(1), verbs.Counter(b.Dev, regs.OutOfBufferOffset))

		_, err = to.PostRecv(verbs.RecvWR{WRID: 3, SGEs: []verbs.SGE{dst.SGE(0, 4096)}})
		require.NoError(t, err)
		other := bytes.Clone(arp)
		copy(other, []byte{2, 2, 2, 2, 2, 2})
		send(other)
		require.Equal(t, uint64(3), drop(regs.DropReasonDMACMismatch), "for somebody else")
		h := roce.Headers{DMAC: [6]byte{1, 0, 0x5e, 0, 0, 1}, Opcode: 0x64, DestQP: 1, QKey: verbs.GSIQKey, PKey: 0xffff, TTL: 1, SrcPort: 0xc000}
		copy(h.SMAC[:], a.Dev.MAC())
		h.SrcIP, h.DstIP = a.Dev.GID(), b.Dev.GID()
		f, err := h.Build([]byte("multicast"), nil)
		require.NoError(t, err)
		send(f)
		require.Equal(t, uint64(4), drop(regs.DropReasonDMACMismatch), "RoCEv2 for a group")
		copy(f, b.Dev.MAC())
		f[len(f)-1] ^= 1
		send(f)
		require.Equal(t, uint64(1), drop(regs.DropReasonICRC), "RoCEv2 with a wrong ICRC")
		quiet(t, b)
		frame := rawFrame(rng, b.Dev.MAC(), a.Dev.MAC(), 4096)
		send(frame)
		wc := poll(t, b, 1)[0]
		require.NoError(t, wc.Err())
		require.Equal(t, frame, dst.Bytes())

		for _, n := range []int{0, 13} {
			_, err := from.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, n)}})
			require.NoError(t, err)
			wc := poll(t, a, 1)[0]
			require.ErrorIs(t, wc.Err(), verbs.StatusLocalLenErr)
			require.NoError(t, from.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
			require.NoError(t, from.Start(verbs.DatagramConfig{}))
		}
		_, err = from.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 4096), src.SGE(0, 1)}})
		require.ErrorIs(t, err, verbs.ErrLimit)
		_, err = from.PostSend(verbs.SendWR{Opcode: verbs.OpSendImm})
		require.ErrorIs(t, err, verbs.ErrNotSupported)
		require.NoError(t, to.Close())
		send(arp)
		require.Equal(t, uint64(5), drop(regs.DropReasonDMACMismatch), "after it was closed")
	})
}

// TestCapturedLAN: a LAN as Linux Soft-RoCE hosts saw it while they set up connections: every frame of the captures goes out of one raw packet
// QP as it is. The other NIC hands the MADs to its GSI QP, GRH and payload byte for byte, and what is not RoCEv2 to its
// raw packet QP.
func TestCapturedLAN(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const depth, slot = 16, 4096
		p := newPair(t, verbstest.Config{Width: width})
		a, b := p.Hosts[0], p.Hosts[1]
		b.Dev.PCIe().Region(pcie.BARRegisters).Store32(regs.RxCtrlOffset, 1) // promiscuous
		from := rawQP(t, a, depth)
		gsi := datagramQP(t, b, verbs.QPConfig{GSI: true, MaxSendWR: 1, MaxRecvWR: depth}, verbs.DatagramConfig{})
		raw := rawQP(t, b, depth)
		src, err := a.PD.AllocMR(slot, 0)
		require.NoError(t, err)
		dst, err := b.PD.AllocMR(2*depth*slot, verbs.AccessLocalWrite)
		require.NoError(t, err)
		posted := map[uint32]int{}
		fill := func(qp *verbs.QP, base int) {
			k := posted[qp.QPN()]
			posted[qp.QPN()]++
			_, err := qp.PostRecv(verbs.RecvWR{WRID: uint64(k), SGEs: []verbs.SGE{dst.SGE(base+k%depth*slot, slot)}})
			require.NoError(t, err)
		}
		for range depth {
			fill(gsi, 0)
			fill(raw, depth*slot)
		}
		mads, others := 0, 0
		for _, name := range []string{"cm_rping", "cm_rping_v6", "cm_ucmatose", "cm_udaddy_sidr", "cm_mckey", "cm_reject_no_listener"} {
			r, err := capture.Open("../../testdata/captures/rxe612_" + name + ".pcap")
			require.NoError(t, err)
			for {
				f, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if len(f.Data) > slot {
					continue
				}
				copy(src.Bytes(), f.Data)
				_, err = from.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, len(f.Data))}})
				require.NoError(t, err)
				var pkt roce.Packet
				reason := pkt.Parse(f.Data, &roce.Options{})
				mad := reason == roce.ReasonNone && pkt.DestQP == 1
				wc := poll(t, a, 1)[0]
				require.NoError(t, wc.Err())
				if reason == roce.ReasonNone && !mad {
					continue
				}
				wc = poll(t, b, 1)[0]
				require.NoError(t, wc.Err())
				k := int(wc.WRID) % depth * slot
				if !mad {
					others++
					require.Equal(t, raw.QPN(), wc.QPN)
					require.Equal(t, f.Data, dst.Bytes()[depth*slot+k:][:wc.ByteLen])
					fill(raw, depth*slot)
					continue
				}
				mads++
				require.Equal(t, gsi.QPN(), wc.QPN)
				require.Equal(t, uint32(1), wc.SrcQP)
				grh, _ := grhOf(t, f.Data)
				require.Equal(t, grh[:], dst.Bytes()[k:][:verbs.GRHBytes])
				require.Equal(t, pkt.Payload(f.Data), dst.Bytes()[k+verbs.GRHBytes:k+int(wc.ByteLen)])
				fill(gsi, 0)
			}
			require.NoError(t, r.Close())
		}
		t.Logf("%d MADs, %d other frames", mads, others)
		require.Greater(t, mads, 20)
	})
}
