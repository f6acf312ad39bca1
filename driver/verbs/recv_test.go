// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
)

// wire is one NIC whose peer is the test: it sends frames made by the codec and looks at those that come back.
type wire struct {
	t    *testing.T
	eng  *cosim.Engine
	port *cosim.Port
	dev  *verbs.Device
	pd   *verbs.PD
	cq   *verbs.CQ
	qp   *verbs.QP
	psn  uint32
	h    roce.Headers
}

const (
	wirePSN = 0xfffffa // the first PSN of the peer, close to the wrap
	wireRNR = 12       // code of Connect
)

func newWire(t *testing.T, width int, qcfg verbs.QPConfig, mtu verbs.MTU, tune func(*model.Config)) *wire {
	t.Helper()
	lib, err := model.OpenWidth(width, "")
	require.NoError(t, err)
	w := &wire{t: t, eng: cosim.NewEngine(cosim.Config{}), psn: wirePSN}
	t.Cleanup(func() { require.NoError(t, w.eng.Close()) })
	c := model.DefaultConfig(width)
	if tune != nil {
		tune(&c)
	}
	nic, err := w.eng.AddNIC("nic", lib, c)
	require.NoError(t, err)
	w.port = w.eng.AddPort("peer")
	_, err = w.eng.Connect(nic, w.port, fabric.Config{Latency: 500 * simtime.Nanosecond})
	require.NoError(t, err)
	w.dev, err = verbs.NewDevice(nic.Device(), verbs.Config{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("192.0.2.1"),
		PKeys: []uint16{0xffff, 0x7fff}})
	require.NoError(t, err)
	w.pd, err = w.dev.AllocPD()
	require.NoError(t, err)
	w.cq, err = w.dev.CreateCQ(500)
	require.NoError(t, err)
	qcfg.SendCQ = w.cq
	if qcfg.MaxSendWR == 0 {
		qcfg.MaxSendWR = 1
	}
	w.qp, err = w.pd.CreateQP(qcfg)
	require.NoError(t, err)
	w.connect(mtu)
	return w
}

func (w *wire) connect(mtu verbs.MTU) {
	w.t.Helper()
	peer := verbs.Remote{QPN: 0x654321, PSN: wirePSN, GID: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}}
	require.NoError(w.t, w.qp.Connect(peer, verbs.ConnectConfig{PathMTU: mtu, NoFlowControl: true}))
	w.psn = wirePSN
	w.h = roce.Headers{DMAC: [6]byte{2, 0, 0, 0, 0, 1}, SMAC: [6]byte{2, 0, 0, 0, 0, 2}, SrcIP: peer.GID, DstIP: w.dev.GID(),
		TTL: 64, DontFragment: true, SrcPort: 0xc123, PKey: 0xffff, DestQP: w.qp.QPN()}
}

// packet sends one packet with the PSN given.
func (w *wire) packet(op roce.Opcode, psn uint32, payload []byte, change ...func(*roce.Headers)) {
	w.t.Helper()
	h := w.h
	h.Opcode, h.PSN = op, psn&0xffffff
	for _, f := range change {
		f(&h)
	}
	frame, err := h.Build(payload, nil)
	require.NoError(w.t, err)
	require.NoError(w.t, w.port.Send(frame, 0, false))
}

// send sends a packet with the next PSN and asks for an acknowledge.
func (w *wire) send(op roce.Opcode, payload []byte, change ...func(*roce.Headers)) uint32 {
	w.t.Helper()
	psn := w.psn
	w.packet(op, psn, payload, append(change, func(h *roce.Headers) { h.AckReq = true })...)
	w.psn = (w.psn + 1) & 0xffffff
	return psn
}

// answers lets time pass and gives the acknowledges that came.
func (w *wire) answers() (acks []roce.Packet) {
	w.t.Helper()
	require.NoError(w.t, w.eng.Advance(30*simtime.Microsecond))
	for {
		f, _, _ := w.port.Recv()
		if f == nil {
			return acks
		}
		var p roce.Packet
		p.Parse(f, nil)
		require.Equal(w.t, roce.ReasonNone, p.Reason)
		require.Equal(w.t, roce.RCAcknowledge, p.Opcode)
		require.EqualValues(w.t, 0x654321, p.DestQP)
		acks = append(acks, p)
	}
}

// answer wants one acknowledge.
func (w *wire) answer(syndrome uint8, psn uint32) {
	w.t.Helper()
	acks := w.answers()
	require.Len(w.t, acks, 1)
	require.Equal(w.t, syndrome, acks[0].Syndrome, roce.SyndromeString(acks[0].Syndrome))
	require.Equal(w.t, psn&0xffffff, acks[0].PSN)
}

// poll gives the completions that are there.
func (w *wire) poll() []verbs.WC {
	w.t.Helper()
	wcs := make([]verbs.WC, 100)
	n, err := w.cq.Poll(wcs)
	require.NoError(w.t, err)
	return wcs[:n]
}

func (w *wire) recv(id uint64, sges ...verbs.SGE) {
	w.t.Helper()
	_, err := w.qp.PostRecv(verbs.RecvWR{WRID: id, SGEs: sges})
	require.NoError(w.t, err)
}

func (w *wire) counter(off uint64) uint64 { return verbs.Counter(w.dev, off) }

func (w *wire) mr(n int, access verbs.Access) *verbs.MR {
	w.t.Helper()
	mr, err := w.pd.AllocMR(n, access)
	require.NoError(w.t, err)
	return mr
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestRecvFromTheWire: SENDs and WRITEs with immediate of all lengths into receives of several SGEs at any
// alignment, under random stalls of host memory; every byte of the target and every completion is compared.
func TestRecvFromTheWire(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		rng := rand.New(rand.NewPCG(7, uint64(width)))
		for _, sges := range []int{1, 2, 4} {
			mtu := verbs.MTU(1 + sges)
			w := newWire(t, width, verbs.QPConfig{MaxRecvWR: 16, MaxRecvSGE: sges}, mtu, func(c *model.Config) {
				c.AXIStall, c.AXIJitterPS, c.AXIReorder = 10000, 300_000, 2
			})
			dst := w.mr(1<<17, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			shadow := make([]byte, dst.Len())
			var messages, writes uint64
			for range 25 {
				var want []verbs.WC
				area := 0 // receives lie one behind the other, with gaps
				last := uint32(0)
				batch := 1 + rng.IntN(6)
				var recvs []verbs.RecvWR
				for range batch {
					wr := verbs.RecvWR{WRID: rng.Uint64()}
					for range 1 + rng.IntN(sges) {
						area += rng.IntN(70)
						n := rng.IntN(3000)
						if rng.IntN(4) == 0 {
							n = rng.IntN(70)
						}
						wr.SGEs = append(wr.SGEs, dst.SGE(area, n))
						area += n
					}
					recvs = append(recvs, wr)
				}
				n, err := w.qp.PostRecv(recvs...)
				require.NoError(t, err)
				require.Equal(t, batch, n)
				for i := range recvs {
					room := 0
					for _, s := range recvs[i].SGEs {
						room += int(s.Length)
					}
					wc := verbs.WC{WRID: recvs[i].WRID, Opcode: verbs.WCRecv, QPN: w.qp.QPN(), SrcQP: 0x654321,
						WithImm: rng.IntN(2) == 0, Imm: rng.Uint32()}
					if rng.IntN(4) == 0 { // WRITE with immediate
						data := randomBytes(rng, rng.IntN(4000))
						off := 1<<16 + rng.IntN(1<<16-len(data))
						copy(shadow[off:], data)
						wc.Opcode, wc.WithImm, wc.ByteLen = verbs.WCRecvRDMAWithImm, true, uint32(len(data))
						last = w.message(data, mtu.Bytes(), roce.RCWriteFirst, roce.RCWriteOnlyImmediate, func(h *roce.Headers) {
							h.VA, h.RKey, h.DMALen, h.Imm = dst.Addr()+uint64(off), dst.RKey(), uint32(len(data)), wc.Imm
						})
						writes++
					} else {
						data := randomBytes(rng, rng.IntN(room+1))
						if rng.IntN(3) == 0 {
							data = randomBytes(rng, room)
						}
						left := data
						for _, s := range recvs[i].SGEs {
							left = left[copy(shadow[s.Addr-dst.Addr():][:s.Length], left):]
						}
						wc.ByteLen = uint32(len(data))
						only := roce.RCSendOnly
						if wc.WithImm {
							only = roce.RCSendOnlyImmediate
						} else {
							wc.Imm = 0
						}
						last = w.message(data, mtu.Bytes(), roce.RCSendFirst, only, func(h *roce.Headers) { h.Imm = wc.Imm })
						messages++
					}
					want = append(want, wc)
				}
				var acks []roce.Packet
				for try := 0; len(acks) == 0 || acks[len(acks)-1].PSN != last; try++ {
					if try == 20 {
						for i := range 24 {
							if c := w.counter(regs.RxDropOffset + 8*uint64(i)); c != 0 {
								t.Logf("drop %d: %d", i, c)
							}
						}
						for i := range 14 {
							if c := w.counter(regs.TransportDropOffset + 8*uint64(i)); c != 0 {
								t.Logf("tdrop %d: %d", i, c)
							}
						}
						t.Logf("writes %d sends %d bytes %d axi err %d stall %d rnr %d polled %+v", w.counter(regs.RxWriteRequestsOffset), w.counter(regs.RxSendRequestsOffset), w.counter(regs.RxPayloadBytesOffset), w.counter(regs.AXIWriteErrorsOffset), w.counter(regs.StallRxDMAOffset), w.counter(regs.OutOfBufferOffset), w.poll())
						for _, a := range acks {
							t.Logf("psn %x syn %x msn %x", a.PSN, a.Syndrome, a.MSN)
						}
						t.Logf("want %+v", want)
						t.Fatalf("no acknowledge of PSN 0x%x, sges %d", last, sges)
					}
					acks = append(acks, w.answers()...)
				}
				for _, a := range acks {
					require.EqualValues(t, 0x1f, a.Syndrome, roce.SyndromeString(a.Syndrome))
				}
				got := w.poll()
				for i := range got {
					got[i].Timestamp = 0
				}
				require.Equal(t, want, got)
				require.Equal(t, shadow, dst.Bytes())
			}
			require.Equal(t, messages, w.counter(regs.RxSendRequestsOffset))
			require.Equal(t, writes, w.counter(regs.RxWriteRequestsOffset))
			require.Zero(t, w.counter(regs.OutOfBufferOffset))
			info, err := w.qp.Query()
			require.NoError(t, err)
			require.EqualValues(t, messages+writes, info.DoneRecv)
			require.EqualValues(t, messages+writes, info.PostedRecv)
		}
	})
}

// message sends a whole message; first and only are the opcodes of its kind. It returns its last PSN.
func (w *wire) message(data []byte, mtu int, first, only roce.Opcode, change func(*roce.Headers)) (psn uint32) {
	w.t.Helper()
	if len(data) <= mtu {
		return w.send(only, data, change)
	}
	op := first
	for len(data) > mtu {
		w.send(op, data[:mtu], change)
		data = data[mtu:]
		op = first + 1
	}
	last := first + 2
	if only == roce.RCSendOnlyImmediate || only == roce.RCWriteOnlyImmediate {
		last++
	}
	return w.send(last, data, change)
}

// TestRecvRefused: everything that a SEND can do wrong, or its receive: the right NAK, the right completion, QP in
// ERR, and what is posted besides is flushed. Memory outside the receive stays as it was.
func TestRecvRefused(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name     string
			do       func(w *wire, mr *verbs.MR) uint32 // posts receive 1 and sends; gives the PSN refused
			syndrome uint8
			status   verbs.WCStatus
			changed  int // bytes from the start of the MR that may have changed
		}{
			{"message longer than the receive", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1, mr.SGE(0, 50), mr.SGE(100, 49))
				return w.send(roce.RCSendOnly, make([]byte, 100))
			}, 0x61, verbs.StatusLocalLenErr, 0},
			{"message longer than the receive, second packet", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1, mr.SGE(0, 256))
				w.packet(roce.RCSendFirst, w.psn, randomBytes(rand.New(rand.NewPCG(1, 1)), 256))
				w.psn++
				return w.send(roce.RCSendLast, []byte{1})
			}, 0x61, verbs.StatusLocalLenErr, 256},
			{"receive without SGE", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1)
				return w.send(roce.RCSendOnly, []byte{1})
			}, 0x61, verbs.StatusLocalLenErr, 0},
			{"lkey of another variant", func(w *wire, mr *verbs.MR) uint32 {
				s := mr.SGE(0, 100)
				s.LKey ^= 1
				w.recv(1, s)
				return w.send(roce.RCSendOnly, []byte{1})
			}, 0x63, verbs.StatusLocalProtErr, 0},
			{"second SGE beyond its MR", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1, mr.SGE(0, 8), mr.SGE(4090, 7))
				return w.send(roce.RCSendOnly, make([]byte, 15))
			}, 0x63, verbs.StatusLocalProtErr, 0},
			{"MR without local write", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1, w.mr(100, 0).SGE(0, 100))
				return w.send(roce.RCSendOnly, []byte{1})
			}, 0x63, verbs.StatusLocalProtErr, 0},
			{"MR of another PD", func(w *wire, mr *verbs.MR) uint32 {
				pd, err := w.dev.AllocPD()
				require.NoError(w.t, err)
				other, err := pd.AllocMR(100, verbs.AccessLocalWrite)
				require.NoError(w.t, err)
				w.recv(1, other.SGE(0, 100))
				return w.send(roce.RCSendOnly, []byte{1})
			}, 0x63, verbs.StatusLocalProtErr, 0},
			{"MR closed inside a message", func(w *wire, mr *verbs.MR) uint32 {
				other := w.mr(1000, verbs.AccessLocalWrite)
				w.recv(1, other.SGE(0, 1000))
				w.packet(roce.RCSendFirst, w.psn, make([]byte, 256))
				w.psn++
				require.Empty(w.t, w.answers())
				require.NoError(w.t, other.Close())
				return w.send(roce.RCSendMiddle, make([]byte, 256))
			}, 0x63, verbs.StatusLocalProtErr, 0},
			{"WRITE with immediate, key of no MR", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1, mr.SGE(0, 100))
				return w.send(roce.RCWriteOnlyImmediate, []byte{1}, func(h *roce.Headers) { h.VA, h.RKey, h.DMALen = mr.Addr(), 0x3ff00, 1 })
			}, 0x62, verbs.StatusWRFlushErr, 0},
			{"WRITE inside a SEND", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1, mr.SGE(0, 1000))
				w.packet(roce.RCSendFirst, w.psn, make([]byte, 256))
				w.psn++
				return w.send(roce.RCWriteMiddle, make([]byte, 256))
			}, 0x61, verbs.StatusWRFlushErr, 256},
			{"SEND with invalidate", func(w *wire, mr *verbs.MR) uint32 {
				w.recv(1, mr.SGE(0, 1000))
				return w.send(roce.RCSendOnlyInvalidate, []byte{1})
			}, 0x62, verbs.StatusRemoteInvReqErr, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := newWire(t, width, verbs.QPConfig{MaxRecvWR: 8, MaxRecvSGE: 2}, verbs.MTU256, nil)
				mr := w.mr(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
				psn := c.do(w, mr)
				w.recv(2, mr.SGE(0, 100))
				w.answer(c.syndrome, psn)
				w.send(roce.RCSendOnly, []byte{1}) // nobody answers any more
				require.Empty(t, w.answers())
				w.recv(3, mr.SGE(0, 100))
				require.Empty(t, w.answers())
				wcs := w.poll()
				require.Len(t, wcs, 3)
				require.Equal(t, c.status, wcs[0].Status)
				for i, wc := range wcs {
					require.EqualValues(t, i+1, wc.WRID)
					if i > 0 {
						require.Equal(t, verbs.StatusWRFlushErr, wc.Status)
					}
				}
				for i, v := range mr.Bytes()[c.changed:] {
					require.Zero(t, v, "byte %d", c.changed+i)
				}
				info, err := w.qp.Query()
				require.NoError(t, err)
				require.Equal(t, verbs.StateErr, info.State)
			})
		}
	})
}

// TestRecvNotReady: one RNR NAK each time the packet comes without a receive, nothing for what follows it.
func TestRecvNotReady(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		w := newWire(t, width, verbs.QPConfig{MaxRecvWR: 8}, verbs.MTU256, nil)
		mr := w.mr(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		write := func(h *roce.Headers) { h.VA, h.RKey, h.DMALen = mr.Addr()+2048, mr.RKey(), 1 }
		psn := w.send(roce.RCSendOnlyImmediate, []byte{1, 2, 3})
		w.send(roce.RCWriteOnly, []byte{9}, write)
		w.send(roce.RCSendOnly, []byte{4})
		w.answer(0x20|wireRNR, psn)
		w.packet(roce.RCSendOnlyImmediate, psn, []byte{1, 2, 3})
		w.answer(0x20|wireRNR, psn)
		require.EqualValues(t, 2, w.counter(regs.OutOfBufferOffset))
		require.Empty(t, w.poll())
		requireUntouched(t, mr)
		w.recv(1, mr.SGE(0, 100))
		w.psn = psn
		w.send(roce.RCSendOnlyImmediate, []byte{1, 2, 3}, func(h *roce.Headers) { h.Imm = 0x01020304 })
		w.send(roce.RCWriteOnly, []byte{9}, write)
		acks := w.answers()
		require.NotEmpty(t, acks)
		require.Equal(t, (psn+1)&0xffffff, acks[len(acks)-1].PSN)
		wcs := w.poll()
		require.Len(t, wcs, 1)
		require.NoError(t, wcs[0].Err())
		require.EqualValues(t, 0x01020304, wcs[0].Imm)
		require.EqualValues(t, 3, wcs[0].ByteLen)
		require.Equal(t, []byte{1, 2, 3, 0}, mr.Bytes()[:4])
		require.EqualValues(t, 9, mr.Bytes()[2048])
		// a duplicate is acknowledged and takes no receive
		w.recv(2, mr.SGE(200, 100))
		w.packet(roce.RCSendOnly, psn, []byte{7}, func(h *roce.Headers) { h.AckReq = true })
		w.answer(0x1f, psn+1)
		require.Empty(t, w.poll())
		// a PSN ahead: one NAK
		w.packet(roce.RCSendOnly, psn+4, []byte{7})
		w.packet(roce.RCSendOnly, psn+5, []byte{7})
		w.answer(0x60, psn+2)
		// WRITE with immediate needs a receive too
		w.send(roce.RCSendOnly, nil)
		w.answer(0x1f, psn+2)
		w.send(roce.RCWriteOnlyImmediate, []byte{8}, write)
		w.answer(0x20|wireRNR, psn+3)
		require.EqualValues(t, 9, mr.Bytes()[2048])
	})
}

// TestRecvFlush: receives in ERR come back flushed, each once and in order; after RESET the QP begins afresh.
func TestRecvFlush(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		w := newWire(t, width, verbs.QPConfig{MaxRecvWR: 100, MaxRecvSGE: 3}, verbs.MTU256, nil)
		mr := w.mr(4096, verbs.AccessLocalWrite)
		id := uint64(0)
		for round := range 3 {
			for range 70 {
				w.recv(id, mr.SGE(0, 300))
				id++
			}
			w.send(roce.RCSendOnly, []byte{1})
			w.packet(roce.RCSendFirst, w.psn, make([]byte, 256)) // its receive is open when the QP fails
			w.answers()
			require.NoError(t, w.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
			for range 3 {
				w.recv(id, mr.SGE(0, 300))
				id++
			}
			w.answers()
			wcs := w.poll()
			require.Len(t, wcs, 73)
			for i, wc := range wcs {
				require.Equal(t, id-73+uint64(i), wc.WRID)
				require.Equal(t, i == 0, wc.Status == verbs.StatusSuccess)
				if i > 0 {
					require.Equal(t, verbs.StatusWRFlushErr, wc.Status)
				}
			}
			info, err := w.qp.Query()
			require.NoError(t, err)
			require.EqualValues(t, 73, info.DoneRecv)
			if round == 1 {
				w.recv(id, mr.SGE(0, 300)) // not polled: RESET forgets it, flushed or not
				id++
			}
			require.NoError(t, w.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
			w.answers()
			require.Empty(t, w.poll())
			_, err = w.qp.PostRecv(verbs.RecvWR{})
			require.ErrorIs(t, err, verbs.ErrState)
			info, err = w.qp.Query()
			require.NoError(t, err)
			require.Zero(t, info.DoneRecv)
			require.Zero(t, info.PostedRecv)
			w.connect(verbs.MTU256)
			w.send(roce.RCSendOnly, []byte{1})
			w.answer(0x20|wireRNR, wirePSN) // nothing is left of the old queue
			w.psn = wirePSN
		}
		// closing with receives posted leaves nothing behind
		require.NoError(t, w.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		w.recv(1, mr.SGE(0, 300))
		w.answers()
		w.recv(2, mr.SGE(0, 300))
		require.NoError(t, w.qp.Close())
		require.NoError(t, mr.Close())
		require.Empty(t, w.poll())
		require.Zero(t, w.counter(regs.BadDoorbellsOffset))
	})
}

func TestPostRecvRefused(t *testing.T) {
	w := newWire(t, 64, verbs.QPConfig{MaxRecvWR: 2}, verbs.MTU256, nil)
	mr := w.mr(64, verbs.AccessLocalWrite)
	_, err := w.qp.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{mr.SGE(0, 1), mr.SGE(1, 1)}})
	require.ErrorContains(t, err, "SGEs 2: out of range (want 1)")
	n, err := w.qp.PostRecv(make([]verbs.RecvWR, 3)...)
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Equal(t, 2, n)
	_, err = w.pd.CreateQP(verbs.QPConfig{SendCQ: w.cq, MaxSendWR: 1, MaxRecvWR: 1 << 16})
	require.ErrorContains(t, err, "MaxRecvWR 65536: out of range (want 0 to 32768)")
	_, err = w.pd.CreateQP(verbs.QPConfig{SendCQ: w.cq, MaxSendWR: 1, MaxRecvSGE: 5})
	require.ErrorContains(t, err, "MaxRecvSGE 5: out of range (want 1 to 4)")
	none, err := w.pd.CreateQP(verbs.QPConfig{SendCQ: w.cq, MaxSendWR: 1})
	require.NoError(t, err)
	require.NoError(t, none.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateInit), Access: verbs.Of(verbs.AccessRemoteWrite)}))
	_, err = none.PostRecv(verbs.RecvWR{})
	require.ErrorContains(t, err, "without a receive queue")
	// a doorbell beyond the ring, and one of a QP in RESET
	reset, err := w.pd.CreateQP(verbs.QPConfig{SendCQ: w.cq, MaxSendWR: 1, MaxRecvWR: 4})
	require.NoError(t, err)
	before := w.counter(regs.BadDoorbellsOffset)
	verbs.RingRQ(w.dev, w.qp.QPN(), 100)
	verbs.RingRQ(w.dev, reset.QPN(), 1)
	verbs.RingRQ(w.dev, 99, 1)
	require.NoError(t, w.eng.Advance(5*simtime.Microsecond))
	require.Equal(t, before+3, w.counter(regs.BadDoorbellsOffset))
}

func TestPostRecvDoesNotAllocate(t *testing.T) {
	w := newWire(t, 512, verbs.QPConfig{MaxRecvWR: 1000, MaxRecvSGE: 4}, verbs.MTU256, nil)
	mr := w.mr(64, verbs.AccessLocalWrite)
	wrs := []verbs.RecvWR{{SGEs: []verbs.SGE{mr.SGE(0, 8), mr.SGE(8, 8)}}, {}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := w.qp.PostRecv(wrs...); err != nil {
			t.Fatal(err)
		}
	}))
}
