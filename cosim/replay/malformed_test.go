// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/replay"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/roce/rocetest"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// siege is two NICs with connected queue pairs; frames from nowhere reach the second one between those of the first.
type siege struct {
	t      *testing.T
	pair   *verbstest.Pair
	feeder *replay.Feeder
	csr    *pcie.Region // of the NIC under siege
	rnd    *rand.Rand
	gen    *rocetest.Gen
	opt    roce.Options

	live, liveB *verbs.QP // stays usable
	src         *verbs.MR
	mrs         []*verbs.MR // of the NIC under siege: 0 may be written by the peer, 1 not, 2 is of another PD
	shadow      [][]byte    // what they must hold
	victims     []*victim
	exists      map[uint32]bool // QPNs
	psn         uint32          // expected by liveB
	written     int             // bytes by WRITEs on live
}

// victim is a queue pair that the peer may bring into ERR.
type victim struct {
	qp       *verbs.QP
	psn      uint32
	readOnly bool // no remote write
	dead     bool
}

// shot is a frame with what must become of it if the front end accepts it.
type shot struct {
	replay.Frame
	drop regs.TransportDrop
	what string
}

func newSiege(t *testing.T, width, victims int, tune ...func(m *model.Config)) *siege {
	const gap = 4000
	s := &siege{t: t, rnd: rand.New(rand.NewPCG(seed(t), uint64(width))), gen: rocetest.NewGen(seed(t) + uint64(width)), exists: map[uint32]bool{}}
	var err error
	s.pair, err = verbstest.New(verbstest.Config{Width: width, Seed: seed(t), IPv6: width == 512, Sim: func(c *cosim.PairConfig) {
		c.Tune = func(nic int, m *model.Config) {
			m.AXIStall, m.AXIReorder, m.AXIJitterPS = 4000, 2, 100_000
			if nic == 1 {
				m.MACRxGap = gap
				for _, f := range tune {
					f(m)
				}
			}
		}
	}})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.pair.Sim.Engine.Err())
		require.NoError(t, s.pair.Close())
	})
	nic, e := s.pair.Sim.NIC[1], s.pair.Sim.Engine
	s.feeder = replay.NewFeeder(e, nic, func(f []byte, at simtime.Time, bad bool) error {
		return nic.Deliver(fabric.Frame{Data: f, At: at, Bad: bad})
	}, gap)
	s.csr = nic.Device().Region(pcie.BARRegisters)
	a, b := s.pair.Hosts[0], s.pair.Hosts[1]
	s.opt = roce.Options{CheckMAC: true, MAC: [6]byte(b.Dev.MAC())}
	s.live, s.liveB, err = s.pair.Connect(verbs.QPConfig{MaxSendWR: 8}, verbs.ConnectConfig{})
	require.NoError(t, err)
	s.exists[s.liveB.QPN()] = true
	for i := range victims {
		v := &victim{readOnly: i%8 == 7}
		ccfg := verbs.ConnectConfig{}
		if v.readOnly {
			ccfg.Access = verbs.AccessRemoteRead
		}
		_, v.qp, err = s.pair.Connect(verbs.QPConfig{MaxSendWR: 1}, ccfg)
		require.NoError(t, err)
		info, err := v.qp.Query()
		require.NoError(t, err)
		v.psn = info.ExpectedPSN
		s.exists[v.qp.QPN()] = true
		s.victims = append(s.victims, v)
	}
	s.src, err = a.PD.AllocMR(1<<16, verbs.AccessLocalWrite)
	require.NoError(t, err)
	s.fill(s.src.Bytes())
	other, err := b.Dev.AllocPD()
	require.NoError(t, err)
	for i, access := range []verbs.Access{verbs.AccessLocalWrite | verbs.AccessRemoteWrite, verbs.AccessLocalWrite, verbs.AccessLocalWrite | verbs.AccessRemoteWrite} {
		pd := b.PD
		if i == 2 {
			pd = other
		}
		mr, err := pd.AllocMR(1<<16, access)
		require.NoError(t, err)
		s.fill(mr.Bytes())
		s.mrs = append(s.mrs, mr)
		s.shadow = append(s.shadow, bytes.Clone(mr.Bytes()))
	}
	return s
}

func (s *siege) fill(b []byte) {
	for i := range b {
		b[i] = byte(s.rnd.Uint32())
	}
}

// write makes an ordinary WRITE over the live queue pair and compares all memory.
func (s *siege) write() {
	s.post(1 + s.rnd.IntN(6000))
	s.complete(1)
}

// post asks for a WRITE of n bytes.
func (s *siege) post(n int) {
	from, to := s.rnd.IntN(len(s.src.Bytes())-n+1), s.rnd.IntN(s.mrs[0].Len()-n+1)
	_, err := s.live.PostSend(verbs.SendWR{WRID: 7, Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{s.src.SGE(from, n)},
		RemoteAddr: s.mrs[0].Addr() + uint64(to), RKey: s.mrs[0].RKey()})
	require.NoError(s.t, err)
	copy(s.shadow[0][to:], s.src.Bytes()[from:from+n])
	s.written += n
}

// complete waits for the completions of n WRITEs.
func (s *siege) complete(n int) {
	t := s.t
	wcs := make([]verbs.WC, 8)
	for polls := 0; n > 0; polls++ {
		require.Less(t, polls, 20000, "a WRITE over the live queue pair does not complete")
		k, err := s.pair.Hosts[0].CQ.Poll(wcs)
		require.NoError(t, err)
		for i := range wcs[:k] {
			require.NoError(t, wcs[i].Err())
		}
		n -= k
	}
	require.Zero(t, n)
	s.requireMemory()
	info, err := s.liveB.Query()
	require.NoError(t, err)
	s.psn = info.ExpectedPSN
	require.NoError(t, s.pair.Sim.Engine.Advance(5*simtime.Microsecond))
}

func (s *siege) requireMemory() {
	s.t.Helper()
	for i, mr := range s.mrs {
		if !bytes.Equal(s.shadow[i], mr.Bytes()) {
			at := 0
			for s.shadow[i][at] == mr.Bytes()[at] {
				at++
			}
			require.Failf(s.t, "memory changed", "region %d, first at byte %d", i, at)
		}
	}
}

// headers are those of the peer's next packet to a queue pair.
func (s *siege) headers(op roce.Opcode, qpn, psn uint32) roce.Headers {
	a, b := s.pair.Hosts[0].Dev, s.pair.Hosts[1].Dev
	return roce.Headers{DMAC: [6]byte(b.MAC()), SMAC: [6]byte(a.MAC()), IPv6: !b.GID().IsIPv4(), SrcIP: a.GID(), DstIP: b.GID(), TTL: 64,
		SrcPort: 0xc000 | uint16(s.rnd.Uint32()), Opcode: op, PKey: 0xffff, DestQP: qpn, AckReq: s.rnd.IntN(2) == 0, PSN: psn & 0xffffff}
}

// writeOnly are the headers and the payload of a WRITE that would be executed.
func (s *siege) writeOnly(qpn, psn uint32) (roce.Headers, []byte) {
	h := s.headers(roce.RCWriteOnly, qpn, psn)
	payload := make([]byte, 1+s.rnd.IntN(400))
	s.fill(payload)
	h.VA, h.RKey, h.DMALen = s.mrs[0].Addr()+uint64(s.rnd.IntN(65000)), s.mrs[0].RKey(), uint32(len(payload))
	return h, payload
}

func (s *siege) build(h *roce.Headers, payload []byte) []byte {
	f, err := h.Build(payload, nil)
	require.NoError(s.t, err)
	return f
}

func pick[T any](s *siege, l ...T) T { return l[s.rnd.IntN(len(l))] }

// duplicateMargin keeps duplicates off the far end of their half of the PSNs: they stay duplicates while the queue pair
// takes so many packets.
const duplicateMargin = 4096

// harmless makes a packet for the live queue pair that has no effect on it but an answer.
func (s *siege) harmless() shot {
	h, payload := s.writeOnly(s.liveB.QPN(), s.psn)
	drop := regs.TransportDropQPN
	what := pick(s, "pkey", "source", "destination", "IP version", "service", "acknowledge", "reserved syndrome", "response", "ahead", "duplicate",
		"half around", "no QP", "out of range", "CNP", "bad FCS", "payload error", "old immediate")
	bad := false
	switch what {
	case "pkey":
		h.PKey, drop = pick[uint16](s, 0, 0x8000, 0x7ffe, 0xfffe, 0x1234), regs.TransportDropPKey
	case "source":
		h.SrcIP[12+s.rnd.IntN(4)] ^= 1 << s.rnd.IntN(8)
		drop = regs.TransportDropAddress
	case "destination":
		h.DstIP[12+s.rnd.IntN(4)] ^= 1 << s.rnd.IntN(8)
		drop = regs.TransportDropAddress
	case "IP version":
		h.IPv6, drop = !h.IPv6, regs.TransportDropAddress
		if !h.IPv6 { // IPv4 with the last bytes of the addresses
			h.SrcIP, h.DstIP = [16]byte{10: 255, 11: 255, 15: 1}, [16]byte{10: 255, 11: 255, 15: 2}
		}
	case "service":
		h.Opcode, drop = pick(s, roce.UCWriteOnly, roce.UCSendOnly, roce.UDSendOnly, roce.UCWriteMiddle), regs.TransportDropService
	case "acknowledge":
		h.Opcode, payload, drop = roce.RCAcknowledge, nil, regs.TransportDropGhostAck
		h.PSN = s.rnd.Uint32() & 0xffffff
		h.Syndrome, h.MSN = pick[uint8](s, 0, 0x1f, 0x20, 0x3f, 0x60, 0x61, 0x62, 0x63), s.rnd.Uint32()&0xffffff
	case "reserved syndrome":
		h.Opcode, payload, drop = roce.RCAcknowledge, nil, regs.TransportDropReservedAETH
		h.Syndrome = pick[uint8](s, 0x40, 0x5f, 0x64, 0x7f, 0x80, 0x9f, 0xff)
	case "response": // of a READ that was never asked for
		h.Opcode, drop = pick(s, roce.RCReadResponseFirst, roce.RCReadResponseMiddle, roce.RCReadResponseLast, roce.RCReadResponseOnly), regs.TransportDropGhostAck
	case "ahead":
		h.PSN, drop = (s.psn+1+s.rnd.Uint32N(1<<23-1))&0xffffff, regs.TransportDropOutOfSequence
	case "duplicate":
		h.PSN, drop = (s.psn-1-s.rnd.Uint32N(1<<23-1-duplicateMargin))&0xffffff, regs.TransportDropDuplicate
	case "half around":
		h.PSN, drop = s.psn^0x800000, regs.TransportDropDuplicate
	case "no QP":
		for h.DestQP = 0x100 + s.rnd.Uint32N(256); s.exists[h.DestQP]; {
			h.DestQP = 0x100 + s.rnd.Uint32N(256)
		}
	case "out of range":
		h.DestQP = pick[uint32](s, 0, 1, 0xfff, 0x1000, 0xffffff, h.DestQP|0x10000)
	case "CNP":
		h.Opcode, payload, drop = roce.CNP, make([]byte, 16), regs.TransportDropCNP
	case "bad FCS": // of the very packet that is expected
		bad = true
	case "old immediate":
		h.Opcode, h.PSN, drop = pick(s, roce.RCWriteOnlyImmediate, roce.RCSendOnly, roce.RCReadRequest), s.psn-1, regs.TransportDropDuplicate
		h.PSN &= 0xffffff
		if h.Opcode == roce.RCReadRequest {
			payload = nil
		}
	}
	f := s.build(&h, payload)
	if what == "payload error" { // of the very packet that is expected
		f[len(f)-1-s.rnd.IntN(len(payload))] ^= 1 << s.rnd.IntN(8)
	}
	return shot{replay.Frame{Data: f, Bad: bad}, drop, "harmless: " + what}
}

// fatal makes a packet that a victim must refuse for good; for a dead one it makes any packet.
func (s *siege) fatal(v *victim) shot {
	h, payload := s.writeOnly(v.qp.QPN(), v.psn)
	if v.dead {
		return shot{replay.Frame{Data: s.build(&h, payload)}, regs.TransportDropQPState, "dead"}
	}
	v.dead = true
	drop := regs.TransportDropNakInvReq
	if v.readOnly {
		return shot{replay.Frame{Data: s.build(&h, payload)}, drop, "fatal: no remote write"}
	}
	what := pick(s, "key", "key out of range", "not writable", "other PD", "before", "behind", "wraps", "too long", "length", "long payload", "no first", "no right")
	switch what {
	case "key":
		h.RKey, drop = h.RKey^1<<s.rnd.IntN(18), regs.TransportDropNakAccess
	case "key out of range":
		h.RKey, drop = h.RKey|1<<(18+s.rnd.IntN(14)), regs.TransportDropNakAccess
	case "not writable":
		h.VA, h.RKey, drop = s.mrs[1].Addr(), s.mrs[1].RKey(), regs.TransportDropNakAccess
	case "other PD":
		h.VA, h.RKey, drop = s.mrs[2].Addr(), s.mrs[2].RKey(), regs.TransportDropNakAccess
	case "before":
		h.VA, drop = s.mrs[0].Addr()-1, regs.TransportDropNakAccess
	case "behind":
		h.VA, drop = s.mrs[0].Addr()+uint64(s.mrs[0].Len()-len(payload)+1), regs.TransportDropNakAccess
	case "wraps":
		h.VA, drop = -uint64(len(payload)/2+1), regs.TransportDropNakAccess
	case "too long": // the message does not fit, its first packet would
		h.Opcode, payload = roce.RCWriteFirst, make([]byte, 1024)
		h.VA, h.DMALen, drop = s.mrs[0].Addr(), uint32(s.mrs[0].Len()+1), regs.TransportDropNakAccess
	case "length":
		h.DMALen = pick(s, 0, h.DMALen-1, h.DMALen+1, 1<<31)
	case "long payload":
		payload = make([]byte, 1028)
		h.VA, h.DMALen = s.mrs[0].Addr(), uint32(len(payload))
	case "no first":
		h.Opcode = pick(s, roce.RCWriteMiddle, roce.RCWriteLast)
	case "no right":
		h.Opcode = pick(s, roce.RCReadRequest, roce.RCCompareSwap, roce.RCFetchAdd)
		if !h.Opcode.MayCarryPayload() {
			payload = nil
		}
	}
	return shot{replay.Frame{Data: s.build(&h, payload)}, drop, "fatal: " + what}
}

// garbage makes a frame of the generators, most of them for our address.
func (s *siege) garbage() shot {
	for {
		s.gen.MAC = s.opt.MAC
		if s.rnd.IntN(8) == 0 {
			s.gen.MAC = [6]byte{}
		}
		f := s.gen.Malformed()
		if s.rnd.IntN(8) == 0 {
			f = s.gen.Valid()
		}
		data := f.Data[:min(len(f.Data), replay.MaxFrame)]
		var p roce.Packet
		if p.Parse(data, &s.opt); len(data) > 0 && !s.exists[p.DestQP] {
			return shot{replay.Frame{Data: data, Bad: s.rnd.IntN(20) == 0}, regs.TransportDropQPN, f.Kind}
		}
	}
}

// truncations makes every prefix of a packet that the live queue pair would execute, and of packets of other kinds.
func (s *siege) truncations() []shot {
	var l []shot
	for i := range 12 {
		h, payload := s.writeOnly(s.liveB.QPN(), s.psn)
		for range i % 3 {
			h.VLAN[h.NumVLAN] = roce.VLAN{TPID: roce.EtherTypeVLAN, TCI: uint16(s.rnd.Uint32())}
			h.NumVLAN++
		}
		f := s.build(&h, payload)
		for n := 1; n < len(f); n++ {
			l = append(l, shot{replay.Frame{Data: f[:n]}, regs.TransportDropQPN, "truncated"})
		}
	}
	for range 8 {
		s.gen.MaxPayload = 100
		f := s.gen.Valid()
		s.gen.MaxPayload = 4096
		for n := 1; n < len(f.Data); n++ {
			l = append(l, shot{replay.Frame{Data: f.Data[:n]}, regs.TransportDropQPN, "truncated"})
		}
	}
	return l
}

// drops reads transport_drop.
func (s *siege) drops() (l [regs.TransportDropCount]uint64) {
	for i := range l {
		l[i] = s.csr.Load64(regs.TransportDropOffset + uint64(i)*regs.TransportDropStride)
	}
	return l
}

// fire feeds the shots. Every one is counted once, by the front end and, if accepted, by the transport; neither host's
// memory is written.
func (s *siege) fire(shots []shot, mayOverflow bool) (want replay.Counters) {
	t := s.t
	frames := make([]replay.Frame, len(shots))
	for i := range shots {
		frames[i] = shots[i].Frame
	}
	before, dropsBefore := replay.LoadCounters(s.csr), s.drops()
	acks := s.csr.Load64(regs.RxAcksOffset) + s.csr.Load64(regs.RxNaksOffset)
	statsA, statsB, eqes := s.pair.Sim.NIC[0].Stats(), s.pair.Sim.NIC[1].Stats(), s.csr.Load64(regs.EQEWrittenOffset)
	wantDrops := [regs.TransportDropCount]uint64{}
	require.NoError(t, s.feeder.Feed(frames, func(i int, raw *regs.RxVerdict) error {
		opt := s.opt
		opt.Overflow = mayOverflow && raw.Reason == regs.DropReasonOverflow
		_, exp := codec(&frames[i], opt)
		rtl := roce.FromRegs(raw)
		same(t, shots[i].what, &frames[i], &rtl, &exp)
		want.Add(&exp)
		if exp.Reason == roce.ReasonNone {
			wantDrops[shots[i].drop]++
		}
		return nil
	}))
	require.NoError(t, s.pair.Sim.Engine.Advance(5*simtime.Microsecond))
	after, drops := replay.LoadCounters(s.csr), s.drops()
	require.Equal(t, want, after.Since(&before))
	var sum, transport uint64
	for _, n := range want.Drop {
		sum += n
	}
	require.EqualValues(t, len(shots), sum)
	for i := range drops {
		drops[i] -= dropsBefore[i]
		transport += drops[i]
		require.Equal(t, wantDrops[i], drops[i], regs.TransportDrop(i))
	}
	require.Equal(t, want.Accepted, transport)
	require.Equal(t, acks, s.csr.Load64(regs.RxAcksOffset)+s.csr.Load64(regs.RxNaksOffset))
	require.Equal(t, statsA.WriteBeats, s.pair.Sim.NIC[0].Stats().WriteBeats)
	// queue pairs that end raise an event each, and nothing else is written
	eqes = s.csr.Load64(regs.EQEWrittenOffset) - eqes
	require.Equal(t, statsB.WriteBeats+eqes*max(1, uint64(8*regs.EQESize/s.pair.Sim.NIC[1].Width())), s.pair.Sim.NIC[1].Stats().WriteBeats)
	s.requireMemory()
	return want
}

// TestMalformed fires 100 000 frames at a NIC with live queue pairs, with ordinary WRITEs between them.
func TestMalformed(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		const batches, perBatch = 20, 5000
		s := newSiege(t, width, 48)
		s.write()
		var reasons [roce.NumReasons]uint64
		kinds := map[string]int{}
		next := 0
		for batch := range batches {
			var shots []shot
			if batch%5 == 0 {
				shots = s.truncations()
			}
			for len(shots) < perBatch {
				switch s.rnd.IntN(8) {
				case 0, 1:
					shots = append(shots, s.harmless())
				case 2:
					if s.rnd.IntN(10) != 0 {
						continue
					}
					// each victim once alive, then dead
					shots = append(shots, s.fatal(s.victims[next%len(s.victims)]))
					next++
				default:
					shots = append(shots, s.garbage())
				}
			}
			shots = shots[:perBatch]
			s.rnd.Shuffle(len(shots), func(i, j int) { shots[i], shots[j] = shots[j], shots[i] })
			s.orderVictims(shots)
			c := s.fire(shots, false)
			for i, n := range c.Drop {
				reasons[i] += n
			}
			for i := range shots {
				kinds[shots[i].what]++
			}
			s.write()
		}
		for r := range roce.Reason(roce.NumReasons) {
			if r != roce.ReasonOverflow {
				require.Positive(t, reasons[r], r)
			}
		}
		require.Greater(t, next, 2*len(s.victims))
		require.Greater(t, len(kinds), 60)
		for _, v := range s.victims {
			info, err := v.qp.Query()
			require.NoError(t, err)
			require.Equal(t, verbs.StateErr, info.State)
		}
		info, err := s.liveB.Query()
		require.NoError(t, err)
		require.Equal(t, verbs.StateRTS, info.State)
		t.Logf("%d frames, %d accepted; %d bytes written by WRITEs between them", batches*perBatch, reasons[0], s.written)
	})
}

// orderVictims puts the shots at each victim back into the order in which they were made: only the first is the one
// that it refuses.
func (s *siege) orderVictims(shots []shot) {
	at := map[uint32][]int{}
	for i := range shots {
		var p roce.Packet
		if shots[i].what == "dead" || len(shots[i].what) > 6 && shots[i].what[:6] == "fatal:" {
			p.Parse(shots[i].Data, nil)
			at[p.DestQP] = append(at[p.DestQP], i)
		}
	}
	for _, l := range at {
		for _, i := range l[1:] {
			if shots[i].what != "dead" {
				shots[l[0]], shots[i] = shots[i], shots[l[0]]
			}
		}
	}
}

// TestFlood sends small frames without a pause, faster than the transport takes packets at 512 bit. What does not fit
// is refused as overflow, whole and counted, and the NIC works on.
func TestFlood(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		s := newSiege(t, width, 0)
		s.write()
		s.feeder.Spacing = 0
		for _, mixed := range []bool{false, true} {
			var shots []shot
			for range 6000 {
				x := s.harmless()
				if mixed && s.rnd.IntN(2) == 0 {
					x = s.garbage()
				}
				if !mixed {
					h := s.headers(roce.RCAcknowledge, 0x1ff, s.rnd.Uint32())
					x = shot{replay.Frame{Data: s.build(&h, nil)}, regs.TransportDropQPN, "acknowledge"}
				}
				shots = append(shots, x)
			}
			c := s.fire(shots, true)
			require.Positive(t, c.Accepted)
			if width == 512 && !mixed {
				require.Positive(t, c.Drop[roce.ReasonOverflow], "the flood was no flood")
			}
			s.write()
		}
	})
}

// TestMalformedUnderTraffic mixes bad frames with the packets of WRITEs that are under way.
func TestMalformedUnderTraffic(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		s := newSiege(t, width, 0)
		s.write()
		nic, e := s.pair.Sim.NIC[1], s.pair.Sim.Engine
		const writes, frames = 6, 1500
		before, dropsBefore := replay.LoadCounters(s.csr), s.drops()
		messages := s.csr.Load64(regs.RxWriteRequestsOffset)
		for range writes {
			s.post(1 + s.rnd.IntN(40000))
		}
		var want replay.Counters
		var wantDrops [regs.TransportDropCount]uint64
		for i := range frames {
			x := s.garbage()
			for i%2 == 0 {
				x = s.harmless()
				// no NAK for a gap: what a requester makes of it is not the subject here
				if x.what != "harmless: ahead" && x.what != "harmless: half around" && x.what != "harmless: payload error" {
					break
				}
			}
			if len(x.Data) > 2000 {
				x.Data = x.Data[:2000]
			}
			_, exp := codec(&x.Frame, s.opt)
			want.Add(&exp)
			if exp.Reason == roce.ReasonNone {
				wantDrops[x.drop]++
			}
			require.NoError(t, nic.Deliver(fabric.Frame{Data: x.Data, At: e.Now(), Bad: x.Bad}))
			if i%(width/32) == 0 { // a frame per 250 ns at 64 bit, 31 ns at 512 bit
				require.NoError(t, e.Step())
			}
		}
		s.complete(writes)
		require.NoError(t, e.RunUntil(func() bool { return nic.Stats().RxFrames >= before.Frames+want.Frames }, 100*simtime.Millisecond))
		require.NoError(t, e.Advance(50*simtime.Microsecond))
		got, drops := replay.LoadCounters(s.csr), s.drops()
		got = got.Since(&before)
		for i := range drops {
			require.Equal(t, wantDrops[i], drops[i]-dropsBefore[i], regs.TransportDrop(i))
		}
		for i := 1; i < len(got.Drop); i++ {
			require.Equal(t, want.Drop[i], got.Drop[i], roce.Reason(i))
		}
		require.Equal(t, messages+writes, s.csr.Load64(regs.RxWriteRequestsOffset))
		require.Greater(t, got.Accepted, want.Accepted, "packets of the WRITEs are accepted too")
		s.write()
	})
}

// TestOverflow sends WRITEs faster than host memory takes them. Those that find the packet buffer full are refused
// whole; those behind a gap are not executed; memory holds exactly the others.
func TestOverflow(t *testing.T) {
	eachWidth(t, func(t *testing.T, width int) {
		s := newSiege(t, width, 1, func(m *model.Config) { m.AXIWriteMBps = 200 })
		s.write()
		s.feeder.Spacing = 0
		v := s.victims[0]
		type packet struct {
			at      int // in region 0
			payload []byte
		}
		var packets []packet
		var frames []replay.Frame
		psn := v.psn
		for range 300 {
			h, _ := s.writeOnly(v.qp.QPN(), psn)
			psn++
			x := packet{s.rnd.IntN(60000), make([]byte, 900+s.rnd.IntN(125))}
			s.fill(x.payload)
			h.VA, h.DMALen = s.mrs[0].Addr()+uint64(x.at), uint32(len(x.payload))
			packets = append(packets, x)
			frames = append(frames, replay.Frame{Data: s.build(&h, x.payload)})
		}
		before, dropsBefore := replay.LoadCounters(s.csr), s.drops()
		messages, payload := s.csr.Load64(regs.RxWriteRequestsOffset), s.csr.Load64(regs.RxPayloadBytesOffset)
		var want replay.Counters
		executed, behind := uint64(0), uint64(0)
		require.NoError(t, s.feeder.Feed(frames, func(i int, raw *regs.RxVerdict) error {
			opt := s.opt
			opt.Overflow = raw.Reason == regs.DropReasonOverflow
			_, exp := codec(&frames[i], opt)
			rtl := roce.FromRegs(raw)
			same(t, "WRITE", &frames[i], &rtl, &exp)
			want.Add(&exp)
			switch {
			case exp.Reason != roce.ReasonNone:
			case want.Drop[roce.ReasonOverflow] > 0:
				behind++
			default:
				copy(s.shadow[0][packets[i].at:], packets[i].payload)
				payload += uint64(len(packets[i].payload))
				executed++
			}
			return nil
		}))
		require.Positive(t, want.Drop[roce.ReasonOverflow])
		require.Positive(t, behind)
		require.Greater(t, executed, uint64(30))
		require.NoError(t, s.pair.Sim.Engine.Advance(2*simtime.Millisecond))
		after, drops := replay.LoadCounters(s.csr), s.drops()
		require.Equal(t, want, after.Since(&before))
		for i := range drops {
			if drops[i] -= dropsBefore[i]; regs.TransportDrop(i) == regs.TransportDropOutOfSequence {
				require.Equal(t, behind, drops[i])
			} else {
				require.Zero(t, drops[i], regs.TransportDrop(i))
			}
		}
		require.Equal(t, messages+executed, s.csr.Load64(regs.RxWriteRequestsOffset))
		require.Equal(t, payload, s.csr.Load64(regs.RxPayloadBytesOffset))
		s.requireMemory()
		info, err := v.qp.Query()
		require.NoError(t, err)
		require.Equal(t, (v.psn+uint32(executed))&0xffffff, info.ExpectedPSN)
		s.write()
	})
}

// Every kind of shot is drawn in a run of this length, so that TestMalformed means what it says.
func TestShotsAreAllDrawn(t *testing.T) {
	s := newSiege(t, 64, 0)
	s.write()
	seen := map[string]int{}
	for range 2000 {
		x := s.harmless()
		seen[fmt.Sprintf("%s %v", x.what, x.drop)]++
		seen[s.fatal(&victim{qp: s.liveB, psn: s.psn}).what]++
	}
	require.Len(t, seen, 17+12)
}
