// SPDX-License-Identifier: Apache-2.0

package dcqcn

// RED is the marking rule of a congestion point on the instantaneous length of its queue (section 3.1 of the paper).
type RED struct {
	Kmin, Kmax int     // bytes
	Pmax       float64 // at Kmax, 0 to 1; above Kmax every packet is marked
}

// Probability of a mark with a queue of so many bytes.
func (r RED) Probability(queue int) float64 {
	switch {
	case queue <= r.Kmin:
		return 0
	case queue > r.Kmax:
		return 1
	}
	return r.Pmax * float64(queue-r.Kmin) / float64(r.Kmax-r.Kmin)
}
