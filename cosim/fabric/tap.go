// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim/capture"
)

// CaptureTap writes the frames of a link to a pcapng file: one interface per end, as if a port mirror stood
// right behind each NIC's transmitter. The timestamp is the simulated time of the last bit, in nanoseconds.
type CaptureTap struct {
	w   *capture.Writer
	ifs [2]int
}

// NewCaptureTap adds two interfaces, named after the senders, to w. speed is in bit/s, for the interface
// description; 0: unknown. The caller flushes w.
func NewCaptureTap(w *capture.Writer, nameA, nameB string, speed uint64) (*CaptureTap, error) {
	t := &CaptureTap{w: w}
	for d, name := range []string{nameA, nameB} {
		i, err := w.AddInterface(capture.Interface{Name: name, Speed: speed})
		if err != nil {
			return nil, fmt.Errorf("fabric: capture interface %s: %w", name, err)
		}
		t.ifs[d] = i
	}
	return t, nil
}

// Frame implements Tap.
func (t *CaptureTap) Frame(d Dir, f Frame, note string) error {
	p := capture.Packet{Interface: t.ifs[d], Time: f.At.Nanoseconds(), Data: f.Data, Direction: capture.DirOutbound}
	if note != "" {
		p.Comments = []string{note}
	}
	return t.w.WritePacket(&p)
}

// TapFunc makes a Tap of a function.
type TapFunc func(d Dir, f Frame, note string) error

// Frame implements Tap.
func (t TapFunc) Frame(d Dir, f Frame, note string) error { return t(d, f, note) }
