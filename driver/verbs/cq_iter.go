// SPDX-License-Identifier: Apache-2.0

package verbs

import "iter"

// All yields the completions that are there, one after the other, and ends when there is none. The WC is valid until
// the next step. A loop that is left early leaves the rest in the CQ. An error, such as an overrun of the CQ, is yielded
// last, with a nil WC.
//
//	for wc, err := range cq.All() {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (cq *CQ) All() iter.Seq2[*WC, error] {
	return func(yield func(*WC, error) bool) {
		wcs := make([]WC, 1)
		for {
			n, err := cq.Poll(wcs)
			if err != nil {
				yield(nil, err)
				return
			}
			if n == 0 || !yield(&wcs[0], nil) {
				return
			}
		}
	}
}
