// SPDX-License-Identifier: Apache-2.0

package dcqcn

import "github.com/openrnic/openrnic/cosim/simtime"

// NP is the notification point of one flow: a CNP at once for the first CE mark, then one at the end of each window of
// MinTime in which another mark came (section 3.1 of the paper). The zero value answers every mark.
type NP struct {
	MinTime simtime.Time // min_time_between_cnps; the paper's N

	open   bool // a window runs, to end
	marked bool // a mark came in it
	end    simtime.Time
}

// CE takes a packet with a CE mark that comes at t, and says whether a CNP leaves at once. What Next has before t must have been
// taken.
func (n *NP) CE(t simtime.Time) bool {
	if n.MinTime == 0 {
		return true
	}
	if n.open && t < n.end {
		n.marked = true
		return false
	}
	n.open, n.marked, n.end = true, false, t+n.MinTime
	return true
}

// Next tells when a CNP leaves by itself, at the end of a window.
func (n *NP) Next() (t simtime.Time, ok bool) { return n.end, n.open && n.marked }

// Take takes that CNP: the next window begins at its time.
func (n *NP) Take() {
	n.marked = false
	n.end += n.MinTime
}
