// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
)

// MaxFrame is the longest frame that the simulated MAC takes, bytes without FCS.
const MaxFrame = model.MaxFrame

// Frame is a frame without FCS; Bad marks it as one with a wrong FCS.
type Frame struct {
	Data []byte
	Bad  bool
}

// Options are what the codec must be told of the frame beside its bytes.
func (f *Frame) Options(base roce.Options) roce.Options {
	base.FrameError = f.Bad
	return base
}

// Fits tells whether the simulated MAC can carry the frame.
func Fits(frame []byte) bool { return len(frame) > 0 && len(frame) <= MaxFrame }

// SendFunc gives a frame to the receive port of a NIC at a time or as soon as the frames before it are through.
type SendFunc func(frame []byte, at simtime.Time, bad bool) error

// Feeder gives frames to a NIC and collects their verdicts. It takes over the NIC's OnVerdict. While Feed runs nobody
// else may send frames to the NIC.
type Feeder struct {
	// Spacing is the number of idle cycles behind each frame: 0 is back to back. NewFeeder sets DefaultSpacing.
	Spacing int

	eng      *cosim.Engine
	nic      *cosim.NIC
	send     SendFunc
	gap      uint32
	verdicts []regs.RxVerdict
}

// DefaultSpacing lets the transport finish each packet before the next one: no frame finds the queues full.
const DefaultSpacing = 8

// NewFeeder makes a feeder. gap is the MACRxGap that the NIC was made with.
func NewFeeder(e *cosim.Engine, n *cosim.NIC, send SendFunc, gap uint32) *Feeder {
	d := &Feeder{Spacing: DefaultSpacing, eng: e, nic: n, send: send, gap: gap}
	n.OnVerdict(func(data []byte, _ uint64) {
		var v regs.RxVerdict
		v.Unmarshal(data)
		d.verdicts = append(d.verdicts, v)
	})
	return d
}

// Frames are fed in pieces of at most this many, so that memory does not grow with the length of a capture.
const pieceFrames = 4096

// Feed gives frames to the NIC and calls f, which may be nil, with the verdict of each in order. It is an error if the
// NIC gives fewer or more verdicts than there are frames.
func (d *Feeder) Feed(frames []Frame, f func(i int, v *regs.RxVerdict) error) error {
	for begin := 0; begin < len(frames); begin += pieceFrames {
		piece := frames[begin:min(begin+pieceFrames, len(frames))]
		if err := d.feed(piece); err != nil {
			return fmt.Errorf("replay: frames %d to %d: %w", begin, begin+len(piece)-1, err)
		}
		if f == nil {
			continue
		}
		for i := range piece {
			if err := f(begin+i, &d.verdicts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle is longer than any frame takes from its last beat through all pipelines.
const settle = 5 * simtime.Microsecond

func (d *Feeder) feed(piece []Frame) error {
	d.verdicts = d.verdicts[:0]
	clk := d.nic.ClockPeriod()
	at := d.eng.Now()
	for i := range piece {
		if err := d.send(piece[i].Data, at, piece[i].Bad); err != nil {
			return err
		}
		if d.Spacing > 0 {
			at += simtime.Time(d.cycles(len(piece[i].Data))+d.Spacing) * clk
		}
	}
	limit := settle * 100
	for i := range piece {
		limit += 4 * simtime.Time(d.cycles(len(piece[i].Data))+d.Spacing) * clk
	}
	err := d.eng.RunUntil(func() bool { return len(d.verdicts) >= len(piece) }, limit)
	if err == nil {
		err = d.eng.Advance(settle)
	}
	switch {
	case d.eng.Err() != nil:
		return d.eng.Err()
	case len(d.verdicts) != len(piece):
		return fmt.Errorf("%d verdicts for %d frames within %v of simulated time", len(d.verdicts), len(piece), limit)
	}
	return err
}

// cycles that n bytes take on average.
func (d *Feeder) cycles(n int) int {
	width := d.nic.Width() / 8
	beats := (n + width - 1) / width
	return (beats*65536 + 65535) / (65536 - int(d.gap))
}

// Config describes a Session.
type Config struct {
	Width   int    // datapath width in bits; 0: 512
	Variant string // of the model library: "", "trace", "asan"
	Seed    uint64 // of everything random around the NIC; 0: 1
	Gaps    bool   // random gaps between the beats of the frames
	Stalls  bool   // random stalls, jitter and re-ordering of host memory
}

// Chance of a gap before a beat and of a stall of an AXI channel, in 1/65536.
const (
	gapChance   = 20000
	stallChance = 16000
)

// Session is one NIC with its receive port open to frames for any address.
type Session struct {
	*Feeder
	Engine *cosim.Engine
	NIC    *cosim.NIC
	CSR    *pcie.Region
}

// Open builds the simulation, waits until the NIC is ready, and enables it.
func Open(cfg Config) (*Session, error) {
	if cfg.Width == 0 {
		cfg.Width = 512
	}
	lib, err := model.OpenWidth(cfg.Width, cfg.Variant)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	c := model.DefaultConfig(cfg.Width)
	if cfg.Seed != 0 {
		c.Seed = cfg.Seed
	}
	if cfg.Gaps {
		c.MACRxGap = gapChance
	}
	if cfg.Stalls {
		c.AXIStall, c.AXIJitterPS, c.AXIReorder = stallChance, 200_000, 2
	}
	e := cosim.NewEngine(cosim.Config{})
	s, err := open(e, lib, c)
	if err != nil {
		_ = e.Close() // the first error is returned
		return nil, fmt.Errorf("replay: %w", err)
	}
	return s, nil
}

func open(e *cosim.Engine, lib *model.Library, c model.Config) (*Session, error) {
	nic, err := e.AddNIC("nic", lib, c)
	if err != nil {
		return nil, err
	}
	port := e.AddPort("replay")
	if _, err := e.Connect(port, nic, fabric.Config{Latency: cosim.DefaultLatency}); err != nil {
		return nil, err
	}
	s := &Session{Feeder: NewFeeder(e, nic, port.Send, c.MACRxGap), Engine: e, NIC: nic, CSR: nic.Device().Region(pcie.BARRegisters)}
	const readyPolls = 1000
	for i := 0; !regs.StatusReg(s.CSR.Load32(regs.StatusOffset)).Ready(); i++ {
		if i == readyPolls || e.Err() != nil {
			return nil, fmt.Errorf("the NIC does not become ready: %w", e.Err())
		}
		if err := e.Step(); err != nil {
			return nil, err
		}
	}
	s.CaptureDropsOnly(false)
	s.CSR.Store32(regs.CtrlOffset, uint32(regs.CtrlReg(0).WithEnable(true)))
	return s, e.Advance(settle)
}

// CaptureDropsOnly chooses what the last_* registers hold: the last frame, or the last one that was refused.
func (s *Session) CaptureDropsOnly(on bool) {
	s.CSR.Store32(regs.RxCtrlOffset, uint32(regs.RxCtrlReg(0).WithPromisc(true).WithCaptureDropsOnly(on)))
}

// Close ends the simulation.
func (s *Session) Close() error { return s.Engine.Close() }
