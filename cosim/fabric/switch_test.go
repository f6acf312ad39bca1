// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
)

const (
	ns = simtime.Nanosecond
	us = simtime.Microsecond
)

// A bench of a switch: hosts count by their port, and keep what came.
type switchBench struct {
	*Switch
	t   *testing.T
	got [][]Frame
}

func newSwitchBench(t *testing.T, cfg SwitchConfig) *switchBench {
	cfg.Name = "sw"
	sw, err := NewSwitch(cfg)
	require.NoError(t, err)
	b := &switchBench{Switch: sw, t: t, got: make([][]Frame, sw.Ports())}
	for i := range b.got {
		sw.Port(i).Attach(func(f Frame) error {
			f.Data = append([]byte(nil), f.Data...)
			b.got[i] = append(b.got[i], f)
			return nil
		})
	}
	return b
}

// ports of one rate.
func ports(n int, rate float64, change ...func(i int, p *SwitchPortConfig)) []SwitchPortConfig {
	p := make([]SwitchPortConfig, n)
	for i := range p {
		p[i].RateMbps = rate
		for _, c := range change {
			c(i, &p[i])
		}
	}
	return p
}

func mac(host int) (m [6]byte) {
	m[0], m[5] = 2, uint8(0x10+host)
	return m
}

// packet of IPv4 or IPv6 from a host to another; tos has DSCP and ECN.
func packet(from, to, size int, tos uint8, v6 bool) []byte {
	f := make([]byte, size)
	d, s := mac(to), mac(from)
	copy(f, d[:])
	copy(f[6:], s[:])
	ip := f[14:]
	if v6 {
		binary.BigEndian.PutUint16(f[12:], 0x86dd)
		binary.BigEndian.PutUint32(ip, 6<<28|uint32(tos)<<20|0x12345)
		return f
	}
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	ip[0], ip[1], ip[8], ip[9] = 0x45, tos, 64, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(size-14))
	binary.BigEndian.PutUint16(ip[10:], roce.IPv4Checksum(ip[:20]))
	return f
}

func (b *switchBench) deliver(port int, f []byte, at simtime.Time) {
	require.NoError(b.t, b.Port(port).Deliver(Frame{Data: f, At: at}))
}

func (b *switchBench) run(until simtime.Time) { require.NoError(b.t, b.Advance(until)) }

// learn makes every host known.
func (b *switchBench) learn() {
	for i := range b.got {
		b.deliver(i, packet(i, 99, 64, 0, false), b.now)
	}
	b.run(b.now + 10*us)
	for i := range b.got {
		require.Len(b.t, b.got[i], len(b.got)-1, "a host that nobody knows: to all others")
		b.got[i] = nil
	}
}

// TestSwitchForwards: addresses are learned, a frame leaves store-and-forward at the time that its bytes take.
func TestSwitchForwards(t *testing.T) {
	b := newSwitchBench(t, SwitchConfig{Ports: ports(3, 10_000), Latency: 300 * ns})
	b.learn()
	at := 20 * us
	b.deliver(0, packet(0, 2, 1000, 0, false), at)
	b.deliver(1, packet(1, 1, 100, 0, false), at) // to himself
	require.NoError(t, b.Port(0).Deliver(Frame{Data: packet(0, 2, 200, 0, false), At: at + us, Bad: true}))
	b.run(at + 300*ns)
	require.Empty(t, b.got[2])
	b.run(40 * us)
	require.Empty(t, b.got[0])
	require.Empty(t, b.got[1])
	require.Len(t, b.got[2], 1)
	require.Equal(t, packet(0, 2, 1000, 0, false), b.got[2][0].Data)
	require.Equal(t, at+300*ns+simtime.Time((8+1000+4)*800), b.got[2][0].At, "preamble, frame and FCS at 10 Gb/s")
	s := b.Port(0).Stats()
	require.EqualValues(t, 1, s.RxBad)
	require.EqualValues(t, 1, s.Flooded)
	require.EqualValues(t, 1, b.Port(2).Stats().TxFrames-2)
	_, waits := b.Next()
	require.False(t, waits)

	b.deliver(2, packet(0, 1, 64, 0, false), 50*us) // host 0 has moved
	b.deliver(1, packet(1, 0, 64, 0, false), 60*us)
	b.run(70 * us)
	require.Len(t, b.got[2], 2)
	require.Empty(t, b.got[0])
}

// TestSwitchPriorities: two ports send to a third for longer than it can take; the higher priority goes first, the port is never idle,
// frames of one priority keep their order.
func TestSwitchPriorities(t *testing.T) {
	b := newSwitchBench(t, SwitchConfig{Ports: ports(3, 10_000)})
	b.learn()
	begin := 20 * us
	for i := range 100 {
		at := begin + simtime.Time(i)*819_200 // 1024 bytes on the wire
		low, high := packet(0, 2, 1000, 0x20, false), packet(1, 2, 1000, 0xb8, false)
		binary.BigEndian.PutUint16(low[40:], uint16(i))
		binary.BigEndian.PutUint16(high[40:], uint16(i))
		b.deliver(0, low, at)
		b.deliver(1, high, at)
	}
	b.run(begin + 400*us)
	require.Len(t, b.got[2], 200)
	var next [2]uint16
	lows := 0
	for i, f := range b.got[2] {
		high := f.Data[15] == 0xb8
		k := map[bool]int{false: 0, true: 1}[high]
		require.Equal(t, next[k], binary.BigEndian.Uint16(f.Data[40:]))
		next[k]++
		if !high && i < 100 {
			lows++
		}
		if i > 0 {
			require.Equal(t, simtime.Time(1024*800), f.At-b.got[2][i-1].At, "frame %d", i)
		}
	}
	require.LessOrEqual(t, lows, 2, "of the low priority before the high one had gone")
	require.Greater(t, b.Port(2).Stats().PeakBytes, 95_000)
	require.Zero(t, b.bytes)
}

// TestSwitchMarks: with a queue of known length the share of marks is that of the rule; only ECN capable packets are marked, and
// nothing else of them changes.
func TestSwitchMarks(t *testing.T) {
	red := dcqcn.RED{Kmin: 20_000, Kmax: 120_000, Pmax: 0.5}
	b := newSwitchBench(t, SwitchConfig{Seed: 3, Ports: ports(3, 10_000, func(_ int, p *SwitchPortConfig) { p.Queues[0].RED = red })})
	b.learn()
	const n = 4000
	kinds := []uint8{0, 1, 2, 3} // ECN
	sent := map[int][]byte{}
	at := 20 * us
	for i := range n {
		f := packet(0, 2, 1000, kinds[i%4], i%8 >= 4)
		binary.BigEndian.PutUint32(f[60:], uint32(i))
		sent[i] = append([]byte(nil), f...)
		b.deliver(0, f, at)
		if i > 70 { // 70 000 bytes wait from then on: half way from Kmin to Kmax
			at += 1024 * 800
		}
	}
	b.run(at + 200*us)
	require.Len(t, b.got[2], n)
	marked := 0
	for i, f := range b.got[2] {
		was := sent[int(binary.BigEndian.Uint32(f.Data[60:]))]
		ip := f.Data[14:]
		ecn := trafficClass(ip) & 3
		switch kinds[i%4] {
		case 0, 3:
			require.Equal(t, was, f.Data)
		case 1, 2:
			if ecn == 3 && i < n-100 {
				marked++
			}
			if ecn != 3 {
				require.Equal(t, was, f.Data)
				break
			}
			if ip[0]>>4 == 6 {
				require.Equal(t, binary.BigEndian.Uint32(was[14:])|0x00300000, binary.BigEndian.Uint32(ip))
				require.Equal(t, was[18:], f.Data[18:])
			} else {
				sum := binary.BigEndian.Uint16(ip[10:])
				binary.BigEndian.PutUint16(ip[10:], 0)
				require.Equal(t, roce.IPv4Checksum(ip[:20]), sum)
				require.Equal(t, was[26:], f.Data[26:])
			}
		}
	}
	require.InDelta(t, 0.25, float64(marked)/(n/2-50), 0.03)
	require.EqualValues(t, 0, b.Port(2).Stats().PDrop)
}

// TestSwitchAverage: the averaged form follows a queue that stands as it should, marks or drops by its length, and forgets it when idle.
func TestSwitchAverage(t *testing.T) {
	a := AverageRED{Min: 30_000, Max: 90_000, Probability: 0.1, Burst: 55}
	w, err := a.weight()
	require.NoError(t, err)
	require.Equal(t, 1.0/32, w, "of the example in tc-red(8)")

	for _, v := range []struct {
		ecn          uint8
		hard         bool
		queue        int // frames of 1000 bytes that wait
		marks, early float64
	}{
		{2, false, 20, 0, 0},
		{2, false, 60, 0.1, 0}, // half of 0.1, spread evenly: about twice as many (Floyd and Jacobson)
		{0, false, 60, 0, 0.1},
		{2, false, 120, 1, 0},
		{0, false, 120, 0, 1},
		{2, true, 120, 0, 1},
	} {
		t.Run(fmt.Sprintf("ecn %d, %d frames, hard %v", v.ecn, v.queue, v.hard), func(t *testing.T) {
			a := a
			a.Hard = v.hard
			b := newSwitchBench(t, SwitchConfig{Seed: 5, Ports: ports(2, 10_000, func(_ int, p *SwitchPortConfig) { p.Queues[0].Average = &a })})
			b.learn()
			q := &b.Port(1).queues[0]
			early, marks, n := 0, 0, 0
			for range 6000 {
				for q.bytes < v.queue*1000 {
					before := b.Port(1).stats
					b.deliver(0, packet(0, 1, 1000, v.ecn, false), b.now)
					b.run(b.now + 1)
					after := b.Port(1).stats
					if q.avg > float64(v.queue)*900 {
						n++
						early += int(after.Early - before.Early)
						marks += int(after.Marked - before.Marked)
					}
					if after.Early != before.Early {
						break // try again when one has left
					}
				}
				b.run(b.now + 1024*800)
			}
			if v.hard || (v.ecn == 0 && v.queue > 90) { // nothing above Max stays
				require.Greater(t, b.Port(1).stats.Early, uint64(500))
				require.Less(t, q.avg, 95_000.0)
				return
			}
			require.Greater(t, n, 3000)
			require.InDelta(t, v.marks, float64(marks)/float64(n), 0.3*v.marks+1e-9)
			require.InDelta(t, v.early, float64(early)/float64(n), 0.3*v.early+1e-9)
			avg := q.avg
			b.run(b.now + 500*us) // empty, then idle
			b.deliver(0, packet(0, 1, 1000, v.ecn, false), b.now)
			b.run(b.now + 1)
			require.Less(t, q.avg, avg/100)
		})
	}
	for _, bad := range []AverageRED{{}, {Min: 5, Max: 5, Probability: 1}, {Min: 1000, Max: 5000}, {Min: 50_000, Max: 90_000, Probability: 0.1, Burst: 3}} {
		_, err := bad.weight()
		require.Error(t, err, "%+v", bad)
	}
}

// TestSwitchShapes: a token bucket lets its burst through at once, then its rate, exactly.
func TestSwitchShapes(t *testing.T) {
	b := newSwitchBench(t, SwitchConfig{Ports: ports(2, 10_000, func(i int, p *SwitchPortConfig) {
		if i == 1 {
			p.ShapeMbps, p.ShapeBurst = 1000, 10_240
		}
	})})
	b.learn()
	begin := 200 * us // the bucket is full again
	for i := range 300 {
		b.deliver(0, packet(0, 1, 1000, 0, false), begin+simtime.Time(i))
	}
	b.run(begin + 10_000*us)
	require.Len(t, b.got[1], 300)
	for i, f := range b.got[1][1:] {
		gap := f.At - b.got[1][i].At
		if i < 9 {
			require.Equal(t, simtime.Time(1024*800), gap, "frame %d", i+1)
		} else if i > 12 {
			require.InDelta(t, 1024*8000, float64(gap), 2, "frame %d", i+1)
		}
	}
	// 300 frames less the burst and what came into the bucket while it left
	require.InDelta(t, float64(300*1024-10_240)*8000, float64(b.got[1][299].At-begin-12*800*-1), 1024*800*3)
}

// TestSwitchDrops: a queue with a limit, and the buffer.
func TestSwitchDrops(t *testing.T) {
	b := newSwitchBench(t, SwitchConfig{Buffer: 50_000, Ports: ports(3, 10_000, func(i int, p *SwitchPortConfig) { p.Queues[1].Limit = 5000 })})
	b.learn()
	at := 20 * us
	for range 20 {
		b.deliver(0, packet(0, 2, 1000, 0x20, false), at) // priority 1
	}
	b.run(at + 1)
	require.EqualValues(t, 20-6, b.Port(2).Stats().PDrop, "five wait, one is on its way")
	for range 100 {
		b.deliver(0, packet(0, 2, 1000, 0, false), at+1)
	}
	b.run(at + 2)
	require.EqualValues(t, 14+100-44, b.Port(2).Stats().PDrop)
	require.Equal(t, 50_000, b.bytes)
	b.run(at + 1000*us)
	require.Len(t, b.got[2], 50)
	require.Zero(t, b.bytes)
}

// pfc makes a frame that stops priorities.
func pfc(vector uint8, quanta uint16) []byte {
	f := make([]byte, 60)
	copy(f, pauseMAC[:])
	binary.BigEndian.PutUint32(f[12:], 0x88080101)
	f[17] = vector
	for i := range Priorities {
		if vector>>i&1 != 0 {
			binary.BigEndian.PutUint16(f[18+2*i:], quanta)
		}
	}
	return f
}

// TestSwitchObeysPFC: the named priorities stop for the time given, to the bit, and no others; a frame under way is finished.
func TestSwitchObeysPFC(t *testing.T) {
	b := newSwitchBench(t, SwitchConfig{Ports: ports(2, 10_000)})
	b.learn()
	at := 20 * us
	b.deliver(0, packet(0, 1, 1000, 0x60, false), at) // priority 3, under way
	b.deliver(1, pfc(1<<3, 100), at+100*ns)
	b.deliver(0, packet(0, 1, 1000, 0x60, false), at+200*ns)
	b.deliver(0, packet(0, 1, 500, 0x40, false), at+300*ns) // priority 2
	b.run(at + 100*us)
	require.Len(t, b.got[1], 3)
	require.Equal(t, []uint8{0x60, 0x40, 0x60}, []uint8{b.got[1][0].Data[15], b.got[1][1].Data[15], b.got[1][2].Data[15]})
	end := at + 100*ns + simtime.Time(100*512*100) // 100 quanta at 10 Gb/s
	require.Equal(t, end+simtime.Time(1012*800), b.got[1][2].At)
	require.Empty(t, b.got[0], "PFC frames are for the link")
	require.EqualValues(t, 1, b.Port(1).Stats().RxXOff)

	b.deliver(1, pfc(0xff, 0xffff), 200*us)
	b.deliver(0, packet(0, 1, 1000, 0x60, false), 201*us)
	b.deliver(1, pfc(0xff, 0), 210*us) // let go before its time
	b.run(220 * us)
	require.Equal(t, 210*us+simtime.Time(1012*800), b.got[1][3].At)
}

// TestSwitchSendsPFC: two hosts that obey send more than a third can take: nothing is lost, each is stopped and let go again and again, a pause that
// lasts is repeated, and priorities without PFC are not stopped.
func TestSwitchSendsPFC(t *testing.T) {
	cfg := SwitchConfig{Buffer: 200_000, Ports: ports(3, 10_000, func(_ int, p *SwitchPortConfig) {
		p.PFC, p.XOff, p.XOn, p.Quanta = 1<<3, 40_000, 20_000, 40 // 2 us
	})}
	b := newSwitchBench(t, cfg)
	b.learn()
	paused := [2]simtime.Time{}
	sent := 0
	for i := range 2 {
		b.Port(i).Attach(func(f Frame) error {
			vector, times, ok := parsePFC(f.Data)
			require.True(t, ok)
			require.EqualValues(t, 1<<3, vector)
			paused[i] = f.At + simtime.Time(float64(times[3])*512*100)
			return nil
		})
	}
	for now := 20 * us; now < 2000*us; now += 1024 * 800 {
		for i := range 2 {
			if paused[i] <= now {
				b.deliver(i, packet(i, 2, 1000, 0x60, false), now)
				sent++
			}
		}
		b.run(now)
	}
	b.run(3000 * us)
	require.Len(t, b.got[2], sent)
	require.InDelta(t, 1980e6/(1024*800), sent, 120, "the third port was busy")
	for i := range 3 {
		s := b.Port(i).Stats()
		require.Zero(t, s.PDrop)
		if i < 2 {
			require.Greater(t, s.TxXOn, uint64(10))
			require.Greater(t, s.TxXOff, s.TxXOn, "some are repeated")
			require.False(t, b.Port(i).xoff[3])
		}
	}
	// without PFC for the priority it is the buffer that bounds
	for i := range 400 {
		b.deliver(0, packet(0, 2, 1000, 0x20, false), 4000*us+simtime.Time(i))
	}
	before := b.Port(0).Stats().TxXOff
	b.run(5000 * us)
	require.Equal(t, before, b.Port(0).Stats().TxXOff)
	require.NotZero(t, b.Port(2).Stats().PDrop)
}

// TestSwitchPriorityMap: the VLAN tag, the DSCP, a map of DSCPs.
func TestSwitchPriorityMap(t *testing.T) {
	var m [64]uint8
	m[26], m[48] = 3, 6
	b := newSwitchBench(t, SwitchConfig{Ports: ports(2, 10_000), Priority: &m})
	require.Equal(t, 3, b.priority(packet(0, 1, 100, 26<<2, false)))
	require.Equal(t, 6, b.priority(packet(0, 1, 100, 48<<2, true)))
	require.Zero(t, b.priority(packet(0, 1, 100, 46<<2, false)))
	tagged := append(packet(0, 1, 100, 48<<2, false)[:12:12], 0x81, 0, 0xa0, 5)
	tagged = append(tagged, packet(0, 1, 100, 48<<2, false)[12:]...)
	require.Equal(t, 5, b.priority(tagged))
	require.True(t, func() bool { tagged[19] |= 1; return markCE(tagged) }())
	b.cfg.Priority = nil
	require.Equal(t, 5, b.priority(packet(0, 1, 100, 46<<2, false)))
	for n := range 60 { // whatever the length
		b.priority(packet(0, 1, 60, 0xff, true)[:n])
		markCE(packet(0, 1, 60, 0xff, n%2 == 0)[:n])
	}
}

// TestSwitchSamples: the depth of the queues over time.
func TestSwitchSamples(t *testing.T) {
	b := newSwitchBench(t, SwitchConfig{Ports: ports(2, 10_000), Sample: us})
	at := 10*us + 500*ns
	for range 10 {
		b.deliver(0, packet(0, 1, 1000, 0, false), at)
	}
	b.run(30 * us)
	d := b.Port(1).Stats().Depth
	require.Len(t, d, 30)
	require.Equal(t, []int{0, 0, 9000, 8000, 6000}, []int{d[0], d[10], d[11], d[12], d[13]})
	require.Zero(t, d[29])
	_, waits := b.Next()
	require.False(t, waits, "samples wake nobody")
}

// TestSwitchAddresses: a frame for an address of the configuration is not flooded, and the host may move.
func TestSwitchAddresses(t *testing.T) {
	b := newSwitchBench(t, SwitchConfig{Ports: ports(3, 10_000), Addresses: map[[6]byte]int{mac(2): 2, mac(0): 0}})
	b.deliver(0, packet(0, 2, 100, 0, false), 0)
	b.run(10 * us)
	require.Len(t, b.got[2], 1)
	require.Empty(t, b.got[1])
	require.Zero(t, b.Port(0).Stats().Flooded)
	b.deliver(1, packet(2, 0, 100, 0, false), 20*us)
	b.deliver(0, packet(0, 2, 100, 0, false), 30*us)
	b.run(40 * us)
	require.Len(t, b.got[1], 1)
	require.Len(t, b.got[2], 1)
}

// TestSwitchConfig: what cannot work is refused by name.
func TestSwitchConfig(t *testing.T) {
	for want, change := range map[string]func(c *SwitchConfig){
		"without ports": func(c *SwitchConfig) { c.Ports = nil },
		"rate":          func(c *SwitchConfig) { c.Ports[1].RateMbps = 0 },
		"shape":         func(c *SwitchConfig) { c.Ports[1].ShapeMbps = 1e9 },
		"burst":         func(c *SwitchConfig) { c.Ports[1].ShapeMbps = 1 },
		"XOFF":          func(c *SwitchConfig) { c.Ports[1].PFC = 1 },
		"Kmin":          func(c *SwitchConfig) { c.Ports[1].Queues[2].RED = dcqcn.RED{Kmin: 10, Kmax: 5} },
		"address":       func(c *SwitchConfig) { c.Addresses = map[[6]byte]int{mac(0): 2} },
		"probability":   func(c *SwitchConfig) { c.Ports[1].Queues[2].Average = &AverageRED{Min: 1000, Max: 2000} },
	} {
		c := SwitchConfig{Name: "x", Ports: ports(2, 1000)}
		change(&c)
		_, err := NewSwitch(c)
		require.ErrorContains(t, err, want)
	}
}
