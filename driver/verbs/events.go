// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"sync"
	"time"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// EventType tells what an asynchronous event is about. Corresponds to enum ibv_event_type.
type EventType uint8

// Events.
const (
	EventQPFatal     EventType = EventType(regs.EQETypeQPFatal)     // the QP went to ERR by itself
	EventCQErr       EventType = EventType(regs.EQETypeCQOverrun)   // the CQ was full, or host memory refused its context; it takes no more completions
	EventSRQLimit    EventType = EventType(regs.EQETypeSRQLimit)    // the SRQ has fewer work requests than its limit
	EventSRQErr      EventType = EventType(regs.EQETypeSRQFatal)    // host memory refused the context of the SRQ; QPs that need a work request of it fail
	EventQPAccessErr EventType = EventType(regs.EQETypeQPAccessErr) // the peer was refused memory access; the QP went to ERR
	EventQPLastWQE   EventType = EventType(regs.EQETypeQPLastWQE)   // a QP in ERR has consumed its last work request of an SRQ
	EventSQDrained   EventType = EventType(regs.EQETypeSQDrained)   // a QP in SQD has completed all that it had begun
	EventPortErr     EventType = EventType(regs.EQETypePort)        // the port's link went down
	EventPortActive  EventType = 1<<7 | EventPortErr                // the port's link came up
)

var eventNames = map[EventType]string{EventQPFatal: "QP fatal", EventCQErr: "CQ error", EventPortErr: "port error", EventPortActive: "port active",
	EventSRQLimit: "SRQ limit reached", EventSRQErr: "SRQ catastrophic error", EventQPAccessErr: "QP access error", EventQPLastWQE: "QP last WQE reached",
	EventSQDrained: "send queue drained"}

// String is the text of ibv_event_type_str(3) where it has one.
func (t EventType) String() string {
	if s, ok := eventNames[t]; ok {
		return s
	}
	return fmt.Sprintf("EventType(%d)", uint8(t))
}

// Event is an asynchronous event. Corresponds to struct ibv_async_event.
type Event struct {
	Type   EventType
	QP     *QP    // of QP events; nil if it does not exist any more
	CQ     *CQ    // of CQ events; nil if it does not exist any more
	Number uint32 // QPN, CQN or other number of the object; of port events: the port
}

// String names event and object.
func (e Event) String() string { return fmt.Sprintf("%v 0x%x", e.Type, e.Number) }

const (
	asyncEQN      = 0    // by convention of the device
	asyncEntries  = 2048 // several events of every QP and CQ
	eqeRetired    = 0    // type of an EQE that nobody wants any more
	eqePhaseByte  = 15
	firstEQVector = 1 // that of EQ 1; EQ 0 has vector 0, those behind share the rest
)

// irqVector is an interrupt vector and the EQs behind it. One of those that wait for any of them, the leader, waits for
// the interrupt; the others wait for the leader.
type irqVector struct {
	number int
	mu     sync.Mutex
	eqs    []*eventQueue
	leader context.CancelFunc // ends the leader's wait; nil: there is none
	looked chan struct{}      // closed when the others must look again; nil: nobody waits
}

// wake lets everybody look again.
func (v *irqVector) wake() {
	if v.looked != nil {
		close(v.looked)
		v.looked = nil
	}
}

// kick wakes the leader too.
func (v *irqVector) kick() {
	if v.leader != nil {
		v.leader()
	}
	v.wake()
}

// eventQueue is an EQ. All but the first four fields are guarded by vec.mu.
type eventQueue struct {
	dev     *Device
	eqn     uint8
	vec     *irqVector
	logSize uint8

	dma       *pcie.DMA
	ring      []byte
	ci        uint32 // EQEs consumed, free running
	reported  uint32 // ci as last told to the device
	armed     bool   // the device will raise the interrupt
	wasFull   bool   // events may have been lost
	lost      uint64 // register eqe_lost when last looked at
	closed    bool
	completed func(cqn uint32)
}

// createEQ makes an EQ. d.mu is held, or nobody knows d yet.
func (d *Device) createEQ(verb string, eqn uint8, vec *irqVector, entries int) (*eventQueue, error) {
	log := uint8(bits.Len(uint(entries - 1)))
	dma, err := d.p.AllocDMA(regs.EQESize << log)
	if err != nil {
		return nil, &Error{Verb: verb, Attr: "event queue", Got: eqn, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	q := &eventQueue{dev: d, eqn: eqn, vec: vec, logSize: log, dma: dma, ring: dma.Bytes()[:regs.EQESize<<log]}
	ctx := regs.EQContext{Addr: dma.IOVA(), LogSize: log, IRQVec: uint8(vec.number)}
	var body [regs.EQContextSize]byte
	ctx.Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeCreateEQ, uint32(eqn), body[:], nil); err != nil {
		return nil, joinClose(err, dma.Close)
	}
	vec.mu.Lock()
	vec.eqs = append(vec.eqs, q)
	vec.mu.Unlock()
	return q, nil
}

// shut ends waits with ErrClosed. The device does not know the EQ any more.
func (q *eventQueue) shut() error {
	v := q.vec
	v.mu.Lock()
	q.closed = true
	for i, o := range v.eqs {
		if o == q {
			v.eqs = append(v.eqs[:i], v.eqs[i+1:]...)
			break
		}
	}
	v.kick()
	v.mu.Unlock()
	return q.dma.Close()
}

// valid tells whether EQE n is there.
func (q *eventQueue) valid(n uint32) bool {
	e := q.ring[(n&(1<<q.logSize-1))*regs.EQESize:][:regs.EQESize:regs.EQESize]
	return (pcie.LoadByte(&e[eqePhaseByte])&cqePhaseBit != 0) == (n>>q.logSize&1 == 0)
}

// next takes the oldest EQE. vec.mu is held.
func (q *eventQueue) next(e *regs.EQE) bool {
	for !q.closed && q.valid(q.ci) {
		q.wasFull = q.wasFull || q.valid(q.ci+1<<q.logSize-1)
		pcie.ReadBarrier() // the rest of the EQE is read after its phase
		e.Unmarshal(q.ring[(q.ci&(1<<q.logSize-1))*regs.EQESize:])
		q.ci++
		if q.ci-q.reported >= 1<<q.logSize/4 {
			q.doorbell(false)
		}
		if e.EventType != eqeRetired {
			return true
		}
	}
	return false
}

func (q *eventQueue) doorbell(arm bool) {
	q.reported = q.ci
	q.dev.db.Store64(regs.EQDoorbellOffset, regs.EQDoorbell{EQN: q.eqn, Arm: arm, CI: q.ci}.Encode())
}

// retire takes the events of an object out of the ring.
func (q *eventQueue) retire(object uint32, types ...regs.EQEType) {
	q.vec.mu.Lock()
	defer q.vec.mu.Unlock()
	for n := q.ci; !q.closed && n-q.ci < 1<<q.logSize && q.valid(n); n++ {
		pcie.ReadBarrier()
		slot := q.ring[(n&(1<<q.logSize-1))*regs.EQESize:][:regs.EQESize]
		var e regs.EQE
		e.Unmarshal(slot)
		for _, t := range types {
			if e.EventType == t && e.Object == object {
				e.EventType = eqeRetired
				e.Marshal(slot)
			}
		}
	}
}

// dispatch hands on completion events. vec.mu is held.
func (q *eventQueue) dispatch() {
	var e regs.EQE
	for q.completed != nil && q.next(&e) {
		if e.EventType == regs.EQETypeCompletion {
			q.completed(e.Object)
		}
	}
}

// wait returns when done, which is called with vec.mu held, says so or gives an error.
func (q *eventQueue) wait(ctx context.Context, done func() (bool, error)) error {
	v := q.vec
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		q.dispatch()
		if q.closed {
			return ErrClosed
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !q.armed {
			q.armed = true
			q.doorbell(true) // raises the interrupt at once if an EQE has come meanwhile
		}
		if v.leader != nil {
			if v.looked == nil {
				v.looked = make(chan struct{})
			}
			looked := v.looked
			v.mu.Unlock()
			select {
			case <-looked:
			case <-ctx.Done():
			}
			v.mu.Lock()
			continue
		}
		lead, cancel := context.WithCancel(ctx)
		v.leader = cancel
		v.mu.Unlock()
		err := q.dev.p.WaitIRQ(lead, v.number)
		v.mu.Lock()
		kicked := lead.Err() != nil
		cancel()
		v.leader = nil
		if err == nil {
			for _, o := range v.eqs {
				o.armed = false // which of them it was for is not known; arming twice does no harm
			}
		}
		v.wake()
		switch {
		case err == nil, kicked && ctx.Err() == nil:
		case errors.Is(err, pcie.ErrIdle) && ctx.Done() != nil: // ctx bounds the wait
		default:
			q.dispatch()
			if ok, derr := done(); ok || derr != nil {
				return derr
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
	}
}

// Channel collects the completion events of CQs, so that one goroutine can serve many. Corresponds to struct
// ibv_comp_channel.
type Channel struct {
	dev   *Device
	eq    *eventQueue
	users int   // CQs; guarded by dev.mu
	limit int   // events that the EQ holds
	due   int   // CQs that are armed, or whose event was not looked at; this and what follows is guarded by eq.vec.mu
	ready []*CQ // an event has come and was not given out
	rest  []*CQ // not armed
}

// CreateChannel makes a channel for CQConfig.Channel. Each has an event queue and, as far as there are enough, an
// interrupt vector of its own. Corresponds to ibv_create_comp_channel(3).
func (d *Device) CreateChannel() (*Channel, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &Error{Verb: "create_comp_channel", Err: ErrClosed}
	}
	return d.createChannel("create_comp_channel")
}

func (d *Device) createChannel(verb string) (*Channel, error) {
	eqn, ok := d.eqn.alloc()
	if !ok {
		return nil, &Error{Verb: verb, Attr: "channels", Got: d.eqn.limit, Limit: d.eqn.limit, Err: ErrLimit}
	}
	vec := d.vectors[0]
	if n := len(d.vectors); n > firstEQVector {
		vec = d.vectors[firstEQVector+int(eqn)%(n-firstEQVector)]
	}
	// A CQ has at most one event that was not looked at; a quarter of the ring is not told to the device.
	entries := min(2*d.attr.MaxCQ, d.attr.MaxQPWR)
	q, err := d.createEQ(verb, uint8(asyncEQN+1+eqn), vec, entries)
	if err != nil {
		d.eqn.free(eqn)
		return nil, err
	}
	ch := &Channel{dev: d, eq: q, limit: max(entries*3/4, 1)}
	vec.mu.Lock()
	q.completed = ch.completed
	vec.mu.Unlock()
	d.channels[ch] = true
	return ch, nil
}

// completed notes an event of a CQ. eq.vec.mu is held.
func (ch *Channel) completed(cqn uint32) {
	if cqn >= uint32(len(ch.dev.cqByN)) {
		return
	}
	cq := ch.dev.cqByN[cqn].Load()
	if cq == nil || cq.ch != ch {
		return // destroyed meanwhile
	}
	if cq.armed {
		cq.armed = false
		ch.due--
	}
	cq.events++
	if cq.cfg.Channel != nil && !cq.queued {
		cq.queued = true
		ch.rest = without(ch.rest, cq)
		ch.ready = append(ch.ready, cq)
	}
}

// Next waits for a CQ of the channel that has completions (with CQConfig.SolicitedOnly: a solicited or failed one) and
// gives it; poll it until it is empty. It arms the CQs; one that was given out and not emptied comes again. When ctx
// cannot end and a simulation has nothing more to do, the error wraps [ErrIdle]; a closed channel gives net.ErrClosed.
// Corresponds to ibv_get_cq_event(3), ibv_ack_cq_events(3) and ibv_req_notify_cq(3).
func (ch *Channel) Next(ctx context.Context) (*CQ, error) {
	for {
		v := ch.eq.vec
		v.mu.Lock()
		if n := len(ch.rest); n > 0 {
			cq := ch.rest[n-1]
			ch.rest = ch.rest[:n-1]
			v.mu.Unlock()
			if _, err := cq.arm("get_cq_event"); err != nil {
				v.mu.Lock()
				ch.rest = append(ch.rest, cq)
				v.mu.Unlock()
				return nil, err
			}
			continue
		}
		ch.eq.dispatch()
		cq := ch.take()
		v.mu.Unlock()
		if cq != nil {
			return cq, nil
		}
		if err := ch.eq.wait(ctx, func() (bool, error) { return len(ch.ready)+len(ch.rest) > 0, nil }); err != nil {
			return nil, &Error{Verb: "get_cq_event", Attr: "channel", Got: ch.eq.eqn, Err: err}
		}
	}
}

// take gives the first ready CQ, which is to be armed again. eq.vec.mu is held.
func (ch *Channel) take() *CQ {
	if len(ch.ready) == 0 {
		return nil
	}
	cq := ch.ready[0]
	ch.ready = append(ch.ready[:0], ch.ready[1:]...)
	cq.queued = false
	ch.rest = append(ch.rest, cq)
	return cq
}

// forget drops a CQ.
func (ch *Channel) forget(cq *CQ) {
	v := ch.eq.vec
	v.mu.Lock()
	defer v.mu.Unlock()
	ch.eq.dispatch() // what is left of it, before another CQ gets its number
	cq.gone = true
	if cq.armed {
		cq.armed = false
		ch.due--
	}
	ch.ready = without(ch.ready, cq)
	ch.rest = without(ch.rest, cq)
	v.kick()
}

func without(list []*CQ, cq *CQ) []*CQ {
	for i, o := range list {
		if o == cq {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// Close destroys the channel; CQs that use it are counted in the error. It ends Next with net.ErrClosed.
// Corresponds to ibv_destroy_comp_channel(3).
func (ch *Channel) Close() error {
	const verb = "destroy_comp_channel"
	d := ch.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.channels[ch] {
		return &Error{Verb: verb, Attr: "channel", Got: ch.eq.eqn, Err: ErrClosed}
	}
	if ch.users > 0 {
		return &Error{Verb: verb, Attr: "CQs using it", Got: ch.users, Limit: 0, Err: ErrBusy, Hint: "close them first"}
	}
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeDestroyEQ, uint32(ch.eq.eqn), nil, nil); err != nil {
		return err
	}
	delete(d.channels, ch)
	d.eqn.free(uint32(ch.eq.eqn) - asyncEQN - 1)
	return ch.eq.shut()
}

// arm asks the device for an event, unless one is due already, and gives the number of events so far. The EQ must have room for
// the events of all that are armed.
func (cq *CQ) arm(verb string) (uint64, error) {
	v := cq.ch.eq.vec
	v.mu.Lock()
	events, due := cq.events, cq.armed
	if !due && !cq.gone {
		if cq.ch.due >= cq.ch.limit {
			v.mu.Unlock()
			return 0, &Error{Verb: verb, Attr: "CQs armed", Got: cq.ch.limit, Limit: cq.ch.limit, Err: ErrLimit, Hint: "spread the CQs over several channels"}
		}
		cq.ch.due++
		cq.armed = true
	}
	v.mu.Unlock()
	if !due {
		cq.mu.Lock()
		if !cq.closed {
			cq.reported = cq.ci
			cq.dev.db.Store64(regs.CQDoorbellOffset, regs.CQDoorbell{CQN: cq.cqn, CI: cq.ci,
				Arm: !cq.cfg.SolicitedOnly, ArmSolicited: cq.cfg.SolicitedOnly}.Encode())
		}
		cq.mu.Unlock()
	}
	return events, nil
}

// Wait polls, and sleeps until there is at least one completion or ctx is done. It does not allocate when there is one.
// With CQConfig.SolicitedOnly only a solicited or failed completion ends the sleep. In stepped simulation sleeping is
// what moves time; when nothing more can happen there, another goroutine has a second to start something; then the
// error wraps [ErrIdle], unless ctx has a deadline or can be cancelled: then that ends the wait. Closing the CQ ends
// it with an error that wraps net.ErrClosed. Corresponds to ibv_req_notify_cq(3), ibv_get_cq_event(3) and
// ibv_poll_cq(3).
func (cq *CQ) Wait(ctx context.Context, wcs []WC) (int, error) {
	const verb = "wait_cq"
	if len(wcs) == 0 {
		return 0, &Error{Verb: verb, Attr: "completions wanted", Got: 0, Limit: "at least 1", Err: ErrInvalid}
	}
	for {
		if n, err := cq.poll(wcs); n > 0 || err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return 0, &Error{Verb: verb, Attr: "CQ", Got: cq.cqn, Err: err}
		}
		events, err := cq.arm(verb)
		if err != nil {
			return 0, err
		}
		if n, err := cq.poll(wcs); n > 0 || err != nil {
			return n, err
		}
		if err := cq.sleep(ctx, events); err != nil {
			return 0, &Error{Verb: verb, Attr: "CQ", Got: cq.cqn, Err: err}
		}
	}
}

// sleep waits for an event beyond those that were seen.
func (cq *CQ) sleep(ctx context.Context, seen uint64) error {
	return cq.ch.eq.wait(ctx, func() (bool, error) {
		if cq.gone {
			return false, ErrClosed
		}
		return cq.events != seen, nil
	})
}

func (cq *CQ) poll(wcs []WC) (int, error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.pollLocked(wcs)
}

// SetModeration holds completion events back until there are count completions (0: any number), or until d, rounded
// up to microseconds, has passed since the first one; d = 0 ends moderation. Corresponds to ibv_modify_cq(3).
func (cq *CQ) SetModeration(count int, d time.Duration) error {
	const verb = "modify_cq"
	if count < 0 || count > 1<<16-1 {
		return &Error{Verb: verb, Attr: "count", Got: count, Limit: "0 to 65535", Err: ErrLimit}
	}
	us := (d + time.Microsecond - 1) / time.Microsecond
	if us < 0 || us > 1<<16-1 {
		return &Error{Verb: verb, Attr: "period", Got: d, Limit: "0 to 65535 us", Err: ErrLimit}
	}
	if us == 0 && count > 1 {
		return &Error{Verb: verb, Attr: "period", Got: d, Limit: "at least 1 us with a count above 1", Err: ErrInvalid,
			Hint: "the last completions would never be told"}
	}
	ctx := regs.CQContext{ModerationCount: uint16(count), ModerationPeriod: uint16(us)}
	var body [regs.CQContextSize]byte
	ctx.Marshal(body[:])
	return cq.dev.cmd.execute(cq.dev, verb, regs.CmdOpcodeModifyCQ, cq.cqn, body[:], nil)
}

// Events waits for asynchronous events. Events that nobody takes do not hold the device up: when its queue of 2048 is
// full it drops further ones, which is told by an error that wraps [ErrEventsLost]; the sequence goes on after it.
// Any other error ends the sequence: that of ctx, [ErrIdle] as for [CQ.Wait], net.ErrClosed after Close. Several
// sequences share the events. Corresponds to ibv_get_async_event(3) and ibv_ack_async_event(3).
func (d *Device) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			ev, err := d.nextEvent(ctx)
			if !yield(ev, err) || err != nil && !errors.Is(err, ErrEventsLost) {
				return
			}
		}
	}
}

func (d *Device) nextEvent(ctx context.Context) (Event, error) {
	const verb = "get_async_event"
	q := d.async
	var e regs.EQE
	err := q.wait(ctx, func() (bool, error) {
		for q.next(&e) {
			if e.EventType != regs.EQETypeCommand {
				return true, nil
			}
		}
		if q.wasFull {
			q.wasFull = false
			q.doorbell(false)
			lost := d.csr.Load64(regs.EQELostOffset)
			if n := lost - q.lost; n != 0 {
				q.lost = lost
				return false, &Error{Verb: verb, Attr: "events", Got: n, Err: ErrEventsLost, Hint: "take events faster"}
			}
		}
		return false, nil
	})
	if err != nil {
		if errors.Is(err, ErrEventsLost) {
			return Event{}, err
		}
		return Event{}, &Error{Verb: verb, Err: err}
	}
	ev := Event{Type: EventType(e.EventType), Number: e.Object}
	if e.EventType == regs.EQETypeCQFatal {
		ev.Type = EventCQErr
	}
	switch ev.Type {
	case EventQPFatal, EventQPAccessErr, EventQPLastWQE, EventSQDrained:
		ev.QP = d.lookupQP(e.Object)
	case EventPortErr:
		if e.Detail != 0 {
			ev.Type = EventPortActive
		}
	case EventCQErr:
		if e.Object < uint32(len(d.cqByN)) {
			ev.CQ = d.cqByN[e.Object].Load()
		}
	}
	return ev, nil
}

// startEvents makes the queue of asynchronous events and the channel of CQs without one.
func (d *Device) startEvents(vectors int) (err error) {
	const verb = "open_device"
	for i := range vectors {
		d.vectors = append(d.vectors, &irqVector{number: i})
	}
	if d.async, err = d.createEQ(verb, asyncEQN, d.vectors[0], asyncEntries); err != nil {
		return err
	}
	d.channels = map[*Channel]bool{}
	d.channel, err = d.createChannel(verb)
	return err
}

// stopEvents ends all waits. The device was reset.
func (d *Device) stopEvents() (err error) {
	if d.async != nil {
		err = d.async.shut()
	}
	if d.channel != nil {
		err = errors.Join(err, d.channel.eq.shut())
	}
	return err
}
