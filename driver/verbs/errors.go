// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/openrnic/openrnic/driver/pcie"
)

// Sentinel errors; every error of this package wraps one of them.
var (
	// ErrLimit: an attribute is outside what the device offers.
	ErrLimit = errors.New("out of range")
	// ErrInvalid: an attribute makes no sense or is missing.
	ErrInvalid = errors.New("invalid")
	// ErrState: the object is not in a state that allows the call.
	ErrState = errors.New("wrong state")
	// ErrQueueFull: no room in the send queue; poll the CQ and post again.
	ErrQueueFull = errors.New("queue full")
	// ErrBusy: the object is still used by another one.
	ErrBusy = errors.New("busy")
	// ErrNotFound: the device has no such object.
	ErrNotFound = errors.New("not found")
	// ErrNotSupported: this device does not offer it.
	ErrNotSupported = errors.New("not supported")
	// ErrDevice: the device does not answer or answers nonsense.
	ErrDevice = errors.New("device error")
	// ErrClosed: the object was closed. It is net.ErrClosed too.
	ErrClosed error = closedError{}
	// ErrIdle: nothing is under way in the simulation that could end the wait.
	ErrIdle = pcie.ErrIdle
	// ErrEventsLost: asynchronous events were dropped because nobody took them.
	ErrEventsLost = errors.New("events lost")
	// ErrCQOverrun: the CQ had no room for a completion; it and its QPs must be destroyed.
	ErrCQOverrun = errors.New("completion queue overrun")
)

type closedError struct{}

func (closedError) Error() string        { return "closed" }
func (closedError) Is(target error) bool { return target == net.ErrClosed }

// Error says which verb failed, for which attribute, with which value and limit.
type Error struct {
	Verb  string // "create_qp", "post_send", ...
	Attr  string // attribute at fault, or empty
	Got   any    // its value, or nil
	Limit any    // what would have been right, or nil
	Hint  string // what to do, or empty
	Err   error  // a sentinel of this package, possibly wrapping more
}

// Error gives one line: verb, attribute, value, limit, cause, hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("verbs: ")
	b.WriteString(e.Verb)
	if e.Attr != "" {
		b.WriteString(": ")
		b.WriteString(e.Attr)
		if e.Got != nil {
			fmt.Fprintf(&b, " %v", e.Got)
		}
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Limit != nil {
		fmt.Fprintf(&b, " (want %v)", e.Limit)
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }
