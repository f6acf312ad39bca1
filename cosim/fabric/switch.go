// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/simtime"
)

// Priorities is the number of priorities (traffic classes) of a port.
const Priorities = 8

// SwitchConfig describes a store-and-forward switch with one buffer for all ports.
type SwitchConfig struct {
	Name  string
	Ports []SwitchPortConfig
	// Buffer in bytes for all frames in the switch. 0: 16 MiB. What does not fit is dropped (PDrop).
	Buffer int
	// Latency from the last bit of a frame to when it may leave.
	Latency simtime.Time
	// Priority of an IP packet without VLAN tag by its DSCP; nil: DSCP/8. Frames with a tag have that of the tag, others 0.
	Priority *[64]uint8
	// Addresses that are known from the start, with their ports; the others are learned.
	Addresses map[[6]byte]int
	Seed      uint64 // of marks
	// Sample is the time between two entries of SwitchPortStats.Depth; 0: none are kept.
	Sample simtime.Time
}

// SwitchPortConfig describes a port. Queues are those of frames that leave by it, one per priority; higher ones go first.
type SwitchPortConfig struct {
	RateMbps float64 // of the link; its frames take that long to leave
	// ShapeMbps holds the port below its link by a token bucket of ShapeBurst bytes; 0: not.
	ShapeMbps  float64
	ShapeBurst int
	// Queues by priority.
	Queues [Priorities]QueueConfig
	// PFC for the priorities of this mask: frames that came in by this port and are in the switch stop the peer at XOff bytes of a
	// priority, and let it go at XOn. Quanta of 512 bit times are the pause that is asked for, again and again; 0: 65535.
	PFC       uint8
	XOff, XOn int
	Quanta    uint16
}

// QueueConfig describes a queue. The zero value marks nothing and is bounded by the buffer alone.
type QueueConfig struct {
	Limit int // bytes; what does not fit is dropped (PDrop); 0: none
	// RED marks by the bytes that are left when a frame leaves, if Kmax is not 0: congestion point of DCQCN.
	RED dcqcn.RED
	// Average marks or drops by the averaged length when a frame comes, if it is not nil: tc-red.
	Average *AverageRED
}

// AverageRED has the parameters of tc-red(8) with ecn: packets that are not ECN capable are dropped instead of marked.
type AverageRED struct {
	Min, Max    int     // bytes
	Probability float64 // at Max
	AvPkt       int     // bytes; 0: 1000
	Burst       int     // packets; 0: (2 Min + Max) / (3 AvPkt)
	// BandwidthMbps is how fast the average falls while the queue is empty; 0: at the rate of the port.
	BandwidthMbps float64
	Hard          bool // above Max everything is dropped, not marked (harddrop)
}

// packet is the length of an average packet.
func (a *AverageRED) packet() int {
	if a.AvPkt == 0 {
		return 1000
	}
	return a.AvPkt
}

// weight is W of the average avg += W (queue - avg), a power of two, by tc-red's rule: as small as it can be with a burst of Burst packets
// of AvPkt bytes into an empty queue that leaves the average at or below Min (Floyd and Jacobson 1993, section 6).
func (a *AverageRED) weight() (float64, error) {
	avpkt, burst := a.packet(), a.Burst
	if burst == 0 {
		burst = (2*a.Min + a.Max) / (3 * avpkt)
	}
	switch {
	case a.Min <= 0 || a.Max <= a.Min:
		return 0, fmt.Errorf("min %d and max %d bytes: want 0 < min < max", a.Min, a.Max)
	case a.Probability <= 0 || a.Probability > 1:
		return 0, fmt.Errorf("probability %g: want more than 0 and at most 1", a.Probability)
	}
	room := float64(burst) + 1 - float64(a.Min)/float64(avpkt)
	if room < 1 {
		return 0, fmt.Errorf("burst %d is too small: want at least %d", burst, a.Min/avpkt)
	}
	for w := 0.5; w > 1e-9; w /= 2 {
		if room <= (1-math.Pow(1-w, float64(burst)))/w {
			return w, nil
		}
	}
	return 0, fmt.Errorf("burst %d is too large for min %d", burst, a.Min)
}

// SwitchPortStats counts at a port.
type SwitchPortStats struct {
	RxFrames, RxBytes, RxBad uint64 // RxBad: wrong FCS, dropped
	TxFrames, TxBytes        uint64
	Marked                   uint64 // CE set in frames that left or will leave by this port
	Early                    uint64 // dropped by the averaged form: not ECN capable, or Hard
	PDrop                    uint64 // dropped: queue or buffer full
	Flooded                  uint64 // frames that came in for an address that nobody was seen with
	TxXOff, TxXOn            uint64 // PFC frames sent, repeated ones too
	RxXOff                   uint64 // priorities stopped by PFC frames that came
	PeakBytes                int    // most in all queues of the port
	Depth                    []int  // bytes in them, every SwitchConfig.Sample
}

// Switch is a node of the network. It learns addresses. Nothing in it runs by itself: Advance moves its time.
type Switch struct {
	cfg    SwitchConfig
	ports  []*SwitchPort
	macs   map[[6]byte]*SwitchPort
	rng    *rand.Rand
	bytes  int // in the buffer
	now    simtime.Time
	seq    uint64
	events switchEvents
}

// SwitchPort is the end of a link at a switch.
type SwitchPort struct {
	sw     *Switch
	index  int
	cfg    SwitchPortConfig
	send   func(Frame) error
	queues [Priorities]switchQueue
	bytes  int // in its queues
	busy   bool
	from   [Priorities]int  // bytes in the switch that came in here
	xoff   [Priorities]bool // the peer was told to stop
	again  [Priorities]uint64
	pause  [Priorities]simtime.Time // the peer lets no frame come before
	ctrl   []*switchFrame           // PFC frames: before all others, not held by a pause
	tokens float64                  // bytes
	filled simtime.Time
	wakeAt simtime.Time // an event is there for this time
	stats  SwitchPortStats
}

type switchQueue struct {
	cfg    QueueConfig
	frames []*switchFrame
	bytes  int
	weight float64
	avg    float64
	since  int          // packets since the last mark
	empty  simtime.Time // when it became so
}

type switchFrame struct {
	data []byte
	in   *SwitchPort // nil: made here
	prio int
}

type switchEvent struct {
	at  simtime.Time
	seq uint64
	do  func() error
}
type switchEvents []switchEvent

func (h switchEvents) Len() int { return len(h) }
func (h switchEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || (h[i].at == h[j].at && h[i].seq < h[j].seq)
}
func (h switchEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *switchEvents) Push(x any)   { *h = append(*h, x.(switchEvent)) }
func (h *switchEvents) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = switchEvent{}
	*h = old[:len(old)-1]
	return e
}

// wireOverhead is what a frame takes on the link besides its bytes: preamble, FCS and the gap to the next one.
const wireOverhead = 8 + 4 + 12

// NewSwitch makes a switch.
func NewSwitch(cfg SwitchConfig) (*Switch, error) {
	if cfg.Buffer == 0 {
		cfg.Buffer = 16 << 20
	}
	s := &Switch{cfg: cfg, macs: map[[6]byte]*SwitchPort{}, rng: rand.New(rand.NewPCG(cfg.Seed, 0x5357))}
	for i, c := range cfg.Ports {
		p := &SwitchPort{sw: s, index: i, cfg: c, tokens: float64(c.ShapeBurst), wakeAt: never}
		if c.Quanta == 0 {
			p.cfg.Quanta = 0xffff
		}
		fail := func(format string, args ...any) (*Switch, error) {
			return nil, fmt.Errorf("fabric: switch %q port %d: %w", cfg.Name, i, fmt.Errorf(format, args...))
		}
		switch {
		case c.RateMbps <= 0:
			return fail("rate %g Mb/s: want more than 0", c.RateMbps)
		case c.ShapeMbps < 0 || c.ShapeMbps > c.RateMbps:
			return fail("shape %g Mb/s: want 0 to the rate, %g", c.ShapeMbps, c.RateMbps)
		case c.ShapeMbps > 0 && c.ShapeBurst < 1518:
			return fail("burst %d bytes: a frame of 1518 would never leave", c.ShapeBurst)
		case c.PFC != 0 && (c.XOn < 0 || c.XOff <= c.XOn):
			return fail("XOFF %d and XON %d bytes: want XON below XOFF", c.XOff, c.XOn)
		}
		for prio, q := range c.Queues {
			p.queues[prio].cfg = q
			if q.RED.Kmax != 0 && (q.RED.Kmin < 0 || q.RED.Kmax < q.RED.Kmin || q.RED.Pmax < 0 || q.RED.Pmax > 1) {
				return fail("queue %d: Kmin %d, Kmax %d, Pmax %g: want 0 <= Kmin <= Kmax and Pmax of 0 to 1", prio, q.RED.Kmin, q.RED.Kmax, q.RED.Pmax)
			}
			if q.Average != nil {
				w, err := q.Average.weight()
				if err != nil {
					return fail("queue %d: %w", prio, err)
				}
				p.queues[prio].weight = w
			}
		}
		s.ports = append(s.ports, p)
	}
	if len(s.ports) == 0 {
		return nil, errors.New("fabric: a switch without ports")
	}
	for mac, i := range cfg.Addresses {
		if i < 0 || i >= len(s.ports) {
			return nil, fmt.Errorf("fabric: switch %q: address %x at port %d, there are %d", cfg.Name, mac, i, len(s.ports))
		}
		s.macs[mac] = s.ports[i]
	}
	if cfg.Sample > 0 {
		s.at(0, s.sample)
	}
	return s, nil
}

const never = simtime.Time(math.MaxInt64)

// Port i.
func (s *Switch) Port(i int) *SwitchPort { return s.ports[i] }

// Ports is their number.
func (s *Switch) Ports() int { return len(s.ports) }

// Name of the switch.
func (s *Switch) Name() string { return s.cfg.Name }

// Next is when something happens by itself, and whether anything does. Samples are no reason to wake.
func (s *Switch) Next() (simtime.Time, bool) {
	if len(s.events) == 0 || (s.cfg.Sample > 0 && len(s.events) == 1) {
		return 0, false
	}
	return s.events[0].at, true
}

// Advance carries out what happens before until.
func (s *Switch) Advance(until simtime.Time) error {
	for len(s.events) > 0 && s.events[0].at < until {
		e := heap.Pop(&s.events).(switchEvent)
		s.now = e.at
		if err := e.do(); err != nil {
			return err
		}
	}
	s.now = until
	return nil
}

func (s *Switch) at(t simtime.Time, do func() error) {
	s.seq++
	heap.Push(&s.events, switchEvent{t, s.seq, do})
}

func (s *Switch) sample() error {
	for _, p := range s.ports {
		p.stats.Depth = append(p.stats.Depth, p.bytes)
	}
	s.at(s.now+s.cfg.Sample, s.sample)
	return nil
}

// Name of the port in messages.
func (p *SwitchPort) Name() string { return fmt.Sprintf("%s.%d", p.sw.cfg.Name, p.index) }

// Attach tells where frames go that leave by the port.
func (p *SwitchPort) Attach(send func(Frame) error) { p.send = send }

// Stats of the port.
func (p *SwitchPort) Stats() SwitchPortStats {
	s := p.stats
	s.Depth = append([]int(nil), s.Depth...)
	return s
}

// Deliver implements Receiver. The frame is looked at when its time has come; those of two ports at one time in the order of
// the calls.
func (p *SwitchPort) Deliver(f Frame) error {
	data := append([]byte(nil), f.Data...)
	bad := f.Bad
	if f.At < p.sw.now {
		return fmt.Errorf("fabric: %s: frame at %v, it is %v", p.Name(), f.At, p.sw.now)
	}
	p.sw.at(f.At, func() error { return p.receive(data, bad) })
	return nil
}

func (p *SwitchPort) receive(data []byte, bad bool) error {
	p.stats.RxFrames++
	p.stats.RxBytes += uint64(len(data))
	if bad || len(data) < 14 {
		p.stats.RxBad++
		return nil
	}
	if vector, times, ok := parsePFC(data); ok {
		return p.stopped(vector, times)
	}
	if [6]byte(data) == pauseMAC {
		return nil // other MAC control frames end here
	}
	s := p.sw
	if data[6]&1 == 0 {
		s.macs[[6]byte(data[6:])] = p
	}
	out := s.macs[[6]byte(data)]
	if out == p {
		return nil
	}
	prio := s.priority(data)
	forward := func(out *SwitchPort, data []byte) {
		f := &switchFrame{data: data, in: p, prio: prio}
		s.at(s.now+s.cfg.Latency, func() error { return out.enqueue(f) })
	}
	if out != nil {
		forward(out, data)
		return nil
	}
	p.stats.Flooded++
	for _, out := range s.ports {
		if out != p {
			forward(out, append([]byte(nil), data...))
		}
	}
	return nil
}

// enqueue puts a frame in the queue of a port, if it fits.
func (p *SwitchPort) enqueue(f *switchFrame) error {
	s, q, n := p.sw, &p.queues[f.prio], len(f.data)
	if s.bytes+n > s.cfg.Buffer || (q.cfg.Limit > 0 && q.bytes+n > q.cfg.Limit) {
		p.stats.PDrop++
		return nil
	}
	if a := q.cfg.Average; a != nil && q.judge(s.now, p.cfg.RateMbps, s.rng) {
		if a.Hard && q.avg >= float64(a.Max) || !markCE(f.data) {
			p.stats.Early++
			return nil
		}
		p.stats.Marked++
	}
	q.frames = append(q.frames, f)
	q.bytes += n
	p.bytes += n
	p.stats.PeakBytes = max(p.stats.PeakBytes, p.bytes)
	s.bytes += n
	f.in.from[f.prio] += n
	if err := f.in.account(f.prio); err != nil {
		return err
	}
	return p.next()
}

// judge updates the average by a packet that comes, and says whether that is to be marked.
func (q *switchQueue) judge(now simtime.Time, rateMbps float64, rng *rand.Rand) bool {
	a := q.cfg.Average
	if q.bytes == 0 { // as if so many packets had come to an empty queue meanwhile
		if a.BandwidthMbps > 0 {
			rateMbps = a.BandwidthMbps
		}
		m := float64(now-q.empty) / (float64(a.packet()) * 8e6 / rateMbps)
		q.avg *= math.Pow(1-q.weight, m)
		q.empty = now
	}
	q.avg += q.weight * (float64(q.bytes) - q.avg)
	switch {
	case q.avg < float64(a.Min):
		q.since = -1
		return false
	case q.avg >= float64(a.Max):
		q.since = 0
		return true
	}
	// marks are spread: with the number of packets since the last one the chance grows
	q.since++
	pb := a.Probability * (q.avg - float64(a.Min)) / float64(a.Max-a.Min)
	if c := float64(q.since) * pb; c < 1 && rng.Float64() >= pb/(1-c) {
		return false
	}
	q.since = 0
	return true
}

// next lets a frame leave if the port is free.
func (p *SwitchPort) next() error {
	s := p.sw
	if p.busy {
		return nil
	}
	f, prio := p.pick()
	if f == nil {
		return nil
	}
	q := &p.queues[prio]
	n := len(f.data)
	if p.cfg.ShapeMbps > 0 && f.in != nil {
		p.tokens = min(p.tokens+float64(s.now-p.filled)*p.cfg.ShapeMbps/8e6, float64(p.cfg.ShapeBurst))
		p.filled = s.now
		need := float64(n + wireOverhead)
		if missing := min(need, float64(p.cfg.ShapeBurst)) - p.tokens; missing > 1e-6 {
			p.wake(s.now + simtime.Time(math.Ceil(missing*8e6/p.cfg.ShapeMbps)))
			return nil
		}
		p.tokens -= need
	}
	if f.in == nil {
		p.ctrl = p.ctrl[1:]
	} else {
		q.frames[0] = nil
		q.frames = q.frames[1:]
		q.bytes -= n
		p.bytes -= n
		if q.bytes == 0 {
			q.empty = s.now
		}
		if r := q.cfg.RED; r.Kmax != 0 && s.rng.Float64() < r.Probability(q.bytes) && markCE(f.data) {
			p.stats.Marked++
		}
	}
	p.busy = true
	took := simtime.Time(math.Round(float64(n+wireOverhead) * 8e6 / p.cfg.RateMbps))
	gap := simtime.Time(math.Round(12 * 8e6 / p.cfg.RateMbps)) // its last bit is before the gap
	s.at(s.now+took-gap, func() error {
		p.stats.TxFrames++
		p.stats.TxBytes += uint64(n)
		if f.in != nil {
			s.bytes -= n
			f.in.from[f.prio] -= n
			if err := f.in.account(f.prio); err != nil {
				return err
			}
		}
		if p.send == nil {
			return nil
		}
		if err := p.send(Frame{Data: f.data, At: s.now}); err != nil {
			return fmt.Errorf("fabric: %s: %w", p.Name(), err)
		}
		return nil
	})
	s.at(s.now+took, func() error {
		p.busy = false
		return p.next()
	})
	return nil
}

// pick chooses the frame that leaves next: control frames, then the highest priority that is not paused.
func (p *SwitchPort) pick() (f *switchFrame, prio int) {
	if len(p.ctrl) > 0 {
		return p.ctrl[0], 0
	}
	for prio := Priorities - 1; prio >= 0; prio-- {
		switch {
		case len(p.queues[prio].frames) == 0:
		case p.pause[prio] > p.sw.now:
			p.wake(p.pause[prio])
		default:
			return p.queues[prio].frames[0], prio
		}
	}
	return nil, 0
}

// wake has the port looked at again.
func (p *SwitchPort) wake(t simtime.Time) {
	if p.wakeAt <= t && p.wakeAt > p.sw.now {
		return // an earlier look will find out
	}
	p.wakeAt = t
	p.sw.at(t, func() error {
		if p.wakeAt == p.sw.now {
			p.wakeAt = never
		}
		return p.next()
	})
}

// ---- PFC (IEEE 802.1Qbb, 802.3 annex 31D) ----

var pauseMAC = [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}

func parsePFC(f []byte) (vector uint8, times [Priorities]uint16, ok bool) {
	if len(f) < 34 || [6]byte(f) != pauseMAC || binary.BigEndian.Uint32(f[12:]) != 0x88080101 {
		return 0, times, false
	}
	for i := range times {
		times[i] = binary.BigEndian.Uint16(f[18+2*i:])
	}
	return f[17], times, true
}

func (p *SwitchPort) quantum() float64 { return 512e6 / p.cfg.RateMbps } // ps

// stopped takes a PFC frame of the peer.
func (p *SwitchPort) stopped(vector uint8, times [Priorities]uint16) error {
	for i, t := range times {
		if vector>>i&1 == 0 {
			continue
		}
		if t != 0 {
			p.stats.RxXOff++
		}
		p.pause[i] = p.sw.now + simtime.Time(float64(t)*p.quantum())
	}
	return p.next()
}

// account tells the peer to stop or to go on, by the bytes of a priority that came from it.
func (p *SwitchPort) account(prio int) error {
	switch {
	case p.cfg.PFC>>prio&1 == 0:
		return nil
	case !p.xoff[prio] && p.from[prio] >= p.cfg.XOff:
		p.xoff[prio] = true
		return p.tell(prio)
	case p.xoff[prio] && p.from[prio] <= p.cfg.XOn:
		p.xoff[prio] = false
		p.again[prio]++
		p.stats.TxXOn++
		return p.control(prio, 0)
	}
	return nil
}

// tell sends an XOFF, and the next one when half its time is over.
func (p *SwitchPort) tell(prio int) error {
	p.again[prio]++
	round := p.again[prio]
	p.stats.TxXOff++
	p.sw.at(p.sw.now+simtime.Time(float64(p.cfg.Quanta)*p.quantum()/2), func() error {
		if p.again[prio] != round {
			return nil
		}
		return p.tell(prio)
	})
	return p.control(prio, p.cfg.Quanta)
}

func (p *SwitchPort) control(prio int, quanta uint16) error {
	f := make([]byte, 60)
	copy(f, pauseMAC[:])
	f[6], f[11] = 2, uint8(p.index) // a local address
	binary.BigEndian.PutUint32(f[12:], 0x88080101)
	f[17] = 1 << prio
	binary.BigEndian.PutUint16(f[18+2*prio:], quanta)
	p.ctrl = append(p.ctrl, &switchFrame{data: f})
	return p.next()
}

// ---- frames ----

// ipAt is where the IP header of a frame is, and the priority of its VLAN tag; below 0: there is none.
func ipAt(f []byte) (at int, pcp int) {
	at, pcp = 14, -1
	if len(f) < 34 {
		return -1, -1
	}
	kind := binary.BigEndian.Uint16(f[12:])
	if kind == 0x8100 {
		at, pcp = 18, int(f[14]>>5)
		kind = binary.BigEndian.Uint16(f[16:])
	}
	if (kind == 0x0800 && len(f) >= at+20 && f[at]>>4 == 4) || (kind == 0x86dd && len(f) >= at+40 && f[at]>>4 == 6) {
		return at, pcp
	}
	return -1, pcp
}

// trafficClass is TOS or traffic class of the IP header.
func trafficClass(ip []byte) uint8 {
	if ip[0]>>4 == 4 {
		return ip[1]
	}
	return ip[0]<<4 | ip[1]>>4
}

func (s *Switch) priority(f []byte) int {
	at, pcp := ipAt(f)
	switch {
	case pcp >= 0:
		return pcp
	case at < 0:
		return 0
	}
	dscp := trafficClass(f[at:]) >> 2
	if s.cfg.Priority != nil {
		return int(s.cfg.Priority[dscp]) % Priorities
	}
	return int(dscp / 8)
}

// markCE sets CE in a packet that is ECN capable (RFC 3168), and says whether it is.
func markCE(f []byte) bool {
	at, _ := ipAt(f)
	if at < 0 {
		return false
	}
	ip := f[at:]
	if ecn := trafficClass(ip) & 3; ecn == 0 {
		return false
	} else if ecn == 3 {
		return true
	}
	if ip[0]>>4 == 6 {
		ip[1] |= 0x30
		return true
	}
	old := binary.BigEndian.Uint16(ip)
	ip[1] |= 3
	// RFC 1624: HC' = ~(~HC + ~m + m')
	sum := uint32(^binary.BigEndian.Uint16(ip[10:])) + uint32(^old) + uint32(binary.BigEndian.Uint16(ip))
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	return true
}
