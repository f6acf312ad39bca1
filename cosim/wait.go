// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/driver/pcie"
)

// idleGrace is how long a wait in an idle simulation gives other goroutines to start something.
const idleGrace = time.Second

// await moves time until ready holds, over idle stretches in one go. When nothing is under way and no timer runs it
// waits, without using the CPU, for another goroutine to start something, and gives up with pcie.ErrIdle after
// idleGrace.
func (e *Engine) await(ctx context.Context, ready func() bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !ready() {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case e.closed:
			return ErrClosed
		case e.err != nil:
			return e.err
		case e.running:
			for w := e.windows; e.running && e.windows == w && e.err == nil; {
				e.moved.Wait()
			}
			continue
		}
		w := e.window()
		switch at := e.wake(); {
		case !e.quiet() || at < e.now+2*w:
			if err := e.step(); err != nil {
				return err
			}
		case at == math.MaxInt64:
			if err := e.idle(ctx, ready); err != nil {
				return err
			}
		default:
			e.skip((at - e.now - 1) / w * w)
		}
		e.mu.Unlock() // others may want to post something
		runtime.Gosched()
		e.mu.Lock()
	}
	return nil
}

// idle waits for a poke.
func (e *Engine) idle(ctx context.Context, ready func() bool) error {
	if e.poked == nil {
		e.poked = make(chan struct{})
	}
	poked := e.poked
	e.mu.Unlock()
	t := time.NewTimer(idleGrace)
	defer t.Stop()
	var err error
	select {
	case <-poked:
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.C:
		err = pcie.ErrIdle
	}
	e.mu.Lock()
	if ready() {
		return nil
	}
	return err
}

// poke wakes those that wait in an idle simulation: something was started.
func (e *Engine) poke() {
	if e.poked != nil {
		close(e.poked)
		e.poked = nil
	}
}

// takeIRQ reports whether the vector was raised since the last time that it did.
func (n *NIC) takeIRQ(vector int) bool {
	c := n.m.IRQCount(vector)
	seen := c != n.irqSeen[vector]
	n.irqSeen[vector] = c
	return seen
}

// PollIRQ implements pcie.Device.
func (d *Device) PollIRQ(vector int) bool {
	if vector < 0 || vector >= model.Vectors {
		return false
	}
	e := d.nic.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closed && d.nic.takeIRQ(vector)
}

// WaitIRQ implements pcie.Device.
func (d *Device) WaitIRQ(ctx context.Context, vector int) error {
	if vector < 0 || vector >= model.Vectors {
		return fmt.Errorf("cosim: %s: interrupt vector %d: there are 0 to %d", d.Name(), vector, model.Vectors-1)
	}
	e := d.nic.eng
	raised := false
	err := e.await(ctx, func() bool {
		if !e.closed && d.nic.takeIRQ(vector) {
			raised = true
		}
		return raised || d.gone.Load()
	})
	if err == nil && !raised {
		err = pcie.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("cosim: %s: wait for interrupt %d: %w", d.Name(), vector, err)
	}
	return nil
}
