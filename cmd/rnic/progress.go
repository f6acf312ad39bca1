// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress draws a bar on a terminal; elsewhere it prints a line per tenth of the work.
type progress struct {
	w     io.Writer
	what  string
	total int
	tty   bool
	last  time.Time
	shown int
	start time.Time
}

func newProgress(w io.Writer, what string, total int) *progress {
	p := &progress{w: w, what: what, total: max(total, 1), start: time.Now(), shown: -1}
	if f, ok := w.(*os.File); ok {
		if st, err := f.Stat(); err == nil {
			p.tty = st.Mode()&os.ModeCharDevice != 0
		}
	}
	return p
}

const barWidth = 40

// update shows that done of total is finished.
func (p *progress) update(done int) {
	percent := done * 100 / p.total
	if p.tty {
		if time.Since(p.last) < 50*time.Millisecond && done < p.total {
			return
		}
		p.last = time.Now()
		n := min(barWidth, done*barWidth/p.total)
		fmt.Fprintf(p.w, "\r%s [%s%s] %3d%% %5.1fs", p.what, strings.Repeat("#", n), strings.Repeat(".", barWidth-n), percent,
			time.Since(p.start).Seconds())
		return
	}
	if percent/10 != p.shown/10 || p.shown < 0 {
		p.shown = percent
		fmt.Fprintf(p.w, "%s %d%%\n", p.what, percent)
	}
}

// finish ends the line.
func (p *progress) finish() {
	if p.tty {
		fmt.Fprintln(p.w)
	}
}
