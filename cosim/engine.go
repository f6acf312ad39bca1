// SPDX-License-Identifier: Apache-2.0

// Package cosim runs verilated NICs against each other and against Go programs.
//
// An [Engine] is a conservative parallel discrete-event simulation: time is cut into windows no longer than the
// shortest link latency; in a window every NIC advances on its own, because a frame sent in it cannot arrive
// before its end; then frames are exchanged. The result does not depend on the number of threads. Idle NICs
// and idle windows cost next to nothing.
//
// Time moves in one of two ways. Stepped (the default): only while the program waits, in [Device.Relax], in a
// register load or in Advance; a program with one goroutine is reproducible to the bit. Free-running ([Engine.Start]):
// a goroutine of the engine moves it.
package cosim

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
)

// Config of an Engine.
type Config struct {
	// Window is the time between two exchanges of frames, and the step of a polling program. 0: the shortest
	// latency of the links; it must not be above that.
	Window simtime.Time
	// Threads for NICs that are busy in the same window. 0 means 1.
	Threads int
}

// Engine moves NICs, links, switches and ports through time. Its methods, and those of its NICs, devices and ports, may be
// called from any goroutine.
type Engine struct {
	mu       sync.Mutex
	cfg      Config
	nics     []*NIC
	ports    []*Port
	links    []*fabric.Link
	switches []*Switch
	now      simtime.Time // all NICs have reached this
	end      simtime.Time // none has passed this (by a clock period or more)
	err      error
	closed   bool
	running  bool
	stop     chan struct{}
	stopped  chan struct{}
	windows  uint64
	moved    *sync.Cond    // broadcast after each window
	poked    chan struct{} // closed when something is started in an idle simulation; nil: nobody waits
	busy     []*NIC        // NICs with something to do in this window
	next     atomic.Int32  // index of the next of them
	work     chan struct{} // wakes a worker for one window
	done     chan struct{}
}

// ErrClosed is returned after Engine.Close.
var ErrClosed = errors.New("cosim: engine is closed")

// NewEngine makes an engine without NICs.
func NewEngine(cfg Config) *Engine {
	if cfg.Threads < 1 {
		cfg.Threads = 1
	}
	e := &Engine{cfg: cfg}
	e.moved = sync.NewCond(&e.mu)
	if cfg.Threads > 1 {
		e.work = make(chan struct{}, cfg.Threads)
		e.done = make(chan struct{}, cfg.Threads)
		for range cfg.Threads - 1 {
			go func() {
				for range e.work {
					e.runBusy()
					e.done <- struct{}{}
				}
			}()
		}
	}
	return e
}

// AddNIC makes a NIC of the library. Its port is not connected.
func (e *Engine) AddNIC(name string, lib *model.Library, cfg model.Config) (*NIC, error) {
	m, err := lib.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("cosim: nic %s: %w", name, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		m.Close()
		return nil, ErrClosed
	}
	n := &NIC{eng: e, name: name, m: m, index: len(e.nics), lib: lib}
	n.init()
	n.m.SetLinkUp(false)
	e.nics = append(e.nics, n)
	return n, nil
}

// AddPort makes a port through which the program sends and receives raw frames.
func (e *Engine) AddPort(name string) *Port {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &Port{eng: e, name: name}
	e.ports = append(e.ports, p)
	return p
}

// Endpoint is what a link joins: a NIC or a Port.
type Endpoint interface {
	fabric.Receiver
	attach(l *fabric.Link, d fabric.Dir) error
	// Name in messages and captures.
	Name() string
}

// Connect joins two endpoints.
func (e *Engine) Connect(a, b Endpoint, cfg fabric.Config) (*fabric.Link, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cfg.Name == "" {
		cfg.Name = a.Name() + "-" + b.Name()
	}
	l, err := fabric.NewLink(cfg)
	if err != nil {
		return nil, fmt.Errorf("cosim: %w", err)
	}
	if e.cfg.Window > cfg.Latency {
		return nil, fmt.Errorf("cosim: link %s: latency %v is below the engine's window %v", cfg.Name, cfg.Latency, e.cfg.Window)
	}
	if err := a.attach(l, fabric.AtoB); err != nil {
		return nil, err
	}
	if err := b.attach(l, fabric.BtoA); err != nil {
		return nil, err
	}
	l.Attach(a, b)
	e.links = append(e.links, l)
	return l, nil
}

// SetLinkUp takes a link down, or up again; the NICs at its ends are told by their MACs. See [fabric.Link.SetUp].
func (e *Engine) SetLinkUp(l *fabric.Link, up bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	l.SetUp(up)
	for _, n := range e.nics {
		if n.link == l {
			n.m.SetLinkUp(up)
		}
	}
	e.poke()
}

// Window is the length of the windows.
func (e *Engine) Window() simtime.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.window()
}

func (e *Engine) window() simtime.Time {
	if e.cfg.Window > 0 {
		return e.cfg.Window
	}
	w := 500 * simtime.Nanosecond
	for i, l := range e.links {
		if i == 0 || l.Latency() < w {
			w = l.Latency()
		}
	}
	return w
}

// Now is the time that every NIC has reached.
func (e *Engine) Now() simtime.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// Err is the first error: a protocol error at a NIC's pins, a failed tap.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

func (e *Engine) fail(err error) {
	if e.err == nil && err != nil {
		e.err = err
	}
}

// Step moves time by one window.
func (e *Engine) Step() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.step()
}

// Advance moves time by at least d, in whole windows.
func (e *Engine) Advance(d simtime.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for until := e.now + d; e.now < until; {
		w := e.window()
		if to := min(until, e.wake()-w); e.quiet() && to > e.now { // nothing can happen: one long window
			e.skip((to - e.now + w - 1) / w * w)
			continue
		}
		if err := e.step(); err != nil {
			return err
		}
	}
	return e.err
}

// Next moves time by one window or, when nothing can happen by then, to where something can, by limit at the most.
func (e *Engine) Next(limit simtime.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.window()
	if to := min(e.now+limit, e.wake()-w); e.quiet() && to > e.now && !e.closed && e.err == nil {
		e.skip((to - e.now + w - 1) / w * w)
		return e.err
	}
	return e.step()
}

// Quiet tells whether nothing happens by itself but by timers and by frames that links hold back.
func (e *Engine) Quiet() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.quiet()
}

// RunUntil steps until cond holds; cond is called between windows. After limit of simulated time it gives up.
func (e *Engine) RunUntil(cond func() bool, limit simtime.Time) error {
	until := e.Now() + limit
	for !cond() {
		if e.Now() >= until {
			return fmt.Errorf("cosim: condition not met within %v of simulated time", limit)
		}
		if err := e.Step(); err != nil {
			return err
		}
	}
	return nil
}

// wake is the time before which no timer of a quiet NIC fires, no frame that a link holds back arrives, and no switch does anything.
func (e *Engine) wake() simtime.Time {
	at := simtime.Time(math.MaxInt64)
	for _, n := range e.nics {
		if w := n.m.Wake(); w < uint64(math.MaxInt64/n.clk) {
			at = min(at, simtime.Time(w)*n.clk)
		}
	}
	for _, l := range e.links {
		if t, ok := l.NextLate(); ok {
			at = min(at, t)
		}
	}
	for _, s := range e.switches {
		if t, ok := s.sw.Next(); ok {
			at = min(at, t)
		}
	}
	return at
}

// quiet: no NIC has anything to do before wake, and no frame is on its way but those that links and switches hold.
func (e *Engine) quiet() bool {
	for _, n := range e.nics {
		if !n.quiet() {
			return false
		}
	}
	return true
}

func (e *Engine) skip(d simtime.Time) {
	e.end = e.now + d
	for _, n := range e.nics {
		n.runTo(e.end)
	}
	e.finish()
}

// step finishes the current window: every NIC runs to its end, then frames are exchanged.
func (e *Engine) step() error {
	if e.closed {
		return ErrClosed
	}
	if e.err != nil {
		return e.err
	}
	e.begin()
	e.busy = e.busy[:0]
	for _, n := range e.nics {
		if n.quiet() {
			n.runTo(e.end)
		} else {
			e.busy = append(e.busy, n)
		}
	}
	e.next.Store(0)
	helpers := min(e.cfg.Threads, len(e.busy)) - 1
	for range helpers {
		e.work <- struct{}{}
	}
	e.runBusy()
	for range helpers {
		<-e.done
	}
	e.finish()
	return e.err
}

// runBusy takes NICs of this window until there are none left.
func (e *Engine) runBusy() {
	for {
		i := int(e.next.Add(1)) - 1
		if i >= len(e.busy) {
			return
		}
		e.busy[i].runTo(e.end)
	}
}

// begin opens a window if none is open.
func (e *Engine) begin() {
	if e.end <= e.now {
		e.end = e.now + e.window()
	}
}

func (e *Engine) finish() {
	for _, s := range e.switches {
		e.fail(s.sw.Advance(e.end))
	}
	for _, n := range e.nics {
		e.fail(n.exchange())
	}
	for _, l := range e.links {
		e.fail(l.Flush(e.end))
	}
	e.now = e.end
	e.windows++
	e.moved.Broadcast()
	e.poke()
}

// relax is Device.Relax.
func (e *Engine) relax() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.running {
		_ = e.step() // kept in e.err
		return
	}
	for w := e.windows; e.running && e.windows == w && e.err == nil; {
		e.moved.Wait()
	}
}

// Start lets time run in a goroutine of its own until Stop or Close, no faster than pace simulated seconds per second
// of real time (0: as fast as it goes).
func (e *Engine) Start(pace float64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return ErrClosed
	case e.running:
		return errors.New("cosim: engine is already running")
	case pace < 0:
		return fmt.Errorf("cosim: pace %v is negative", pace)
	}
	e.running = true
	e.poke()
	e.stop, e.stopped = make(chan struct{}), make(chan struct{})
	go e.free(pace, e.stop, e.stopped)
	return nil
}

func (e *Engine) free(pace float64, stop, stopped chan struct{}) {
	defer close(stopped)
	begin, first := time.Now(), e.Now()
	for {
		select {
		case <-stop:
			return
		default:
		}
		e.mu.Lock()
		quiet := e.quiet() && e.wake() == math.MaxInt64
		err := e.step()
		now := e.now
		e.mu.Unlock()
		if err != nil {
			e.mu.Lock()
			e.running = false
			e.moved.Broadcast()
			e.mu.Unlock()
			return
		}
		var wait time.Duration
		if pace > 0 {
			wait = time.Duration((now-first).Seconds()/pace*1e9) - time.Since(begin)
		} else if quiet {
			wait = 20 * time.Microsecond // nobody needs time to run away
		}
		if wait > 0 {
			select {
			case <-stop:
				return
			case <-time.After(wait):
			}
		} else {
			runtime.Gosched()
		}
	}
}

// Stop ends what Start began; time is stepped again.
func (e *Engine) Stop() {
	e.mu.Lock()
	if e.stop == nil {
		e.mu.Unlock()
		return
	}
	stop, stopped := e.stop, e.stopped
	e.stop = nil
	e.mu.Unlock()
	close(stop)
	<-stopped
	e.mu.Lock()
	e.running = false
	e.moved.Broadcast()
	e.mu.Unlock()
}

// Close stops time and frees the NICs. DMA memory of devices stays until its own Close.
func (e *Engine) Close() error {
	e.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	if e.work != nil {
		close(e.work)
	}
	for _, n := range e.nics {
		n.m.Close()
	}
	e.moved.Broadcast()
	e.poke()
	return nil
}
