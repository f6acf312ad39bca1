// SPDX-License-Identifier: Apache-2.0

// Package simtime is the unit of simulated time.
package simtime

import (
	"fmt"
	"time"
)

// Time is a point or a span of simulated time in picoseconds.
type Time int64

// Units.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// FromDuration converts; a Duration has whole nanoseconds.
func FromDuration(d time.Duration) Time { return Time(d) * Nanosecond }

// Nanoseconds rounds down.
func (t Time) Nanoseconds() int64 { return int64(t / Nanosecond) }

// Seconds as a floating-point number.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// String prints with the unit that fits.
func (t Time) String() string {
	switch a := max(t, -t); {
	case a < Nanosecond:
		return fmt.Sprintf("%dps", int64(t))
	case a < Microsecond:
		return fmt.Sprintf("%gns", float64(t)/float64(Nanosecond))
	case a < Millisecond:
		return fmt.Sprintf("%gus", float64(t)/float64(Microsecond))
	case a < Second:
		return fmt.Sprintf("%gms", float64(t)/float64(Millisecond))
	default:
		return fmt.Sprintf("%gs", t.Seconds())
	}
}
