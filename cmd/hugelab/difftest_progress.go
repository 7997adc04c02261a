package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hugelab/hugelab/internal/difftest"
)

// difftestProgress says on standard error how far a difftest is: on a terminal
// in one line that changes, elsewhere in a line now and then.
type difftestProgress struct {
	w     io.Writer
	live  bool
	every time.Duration
	begin time.Time
	last  time.Time
	wrote bool
}

func newDifftestProgress(w io.Writer) *difftestProgress {
	p := &difftestProgress{w: w, every: 10 * time.Second, begin: time.Now()}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		p.live, p.every = true, time.Second/2
	}
	p.last = p.begin
	return p
}

// show is called after every program.
func (p *difftestProgress) show(r *difftest.Report) {
	now := time.Now()
	if now.Sub(p.last) < p.every {
		return
	}
	p.last = now
	text := fmt.Sprintf("difftest: %d programs in %.0f s, %d run again, %d differences", r.Programs,
		now.Sub(p.begin).Seconds(), r.Rerun, len(r.Mismatches))
	if !p.live {
		fmt.Fprintln(p.w, text)
		return
	}
	p.wrote = true
	fmt.Fprintf(p.w, "\r\x1b[K%s", text)
}

// note says something of its own.
func (p *difftestProgress) note(text string) {
	p.end()
	fmt.Fprintln(p.w, "difftest:", text)
}

// end leaves the line that changes.
func (p *difftestProgress) end() {
	if p.wrote {
		fmt.Fprintln(p.w)
	}
	p.wrote = false
}
