//go:build amd64

package difftest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

// holdFor is how long the settings are held at a time, so that others come to
// their turn; mismatches that are being shrunk may take shrinkFor more.
const (
	holdFor   = 7 * time.Second
	shrinkFor = 10 * time.Second
	tries     = 5 // runs of a program before a difference is believed
)

// Available says why the kernel side cannot run here, nil if it can.
func Available() error {
	if len(puppetELF()) == 0 {
		return fmt.Errorf("difftest: no helper program for this processor: only amd64 has one")
	}
	f, err := kernel.OpenFolios()
	if err != nil {
		return fmt.Errorf("difftest: the kernel side needs root: %w", err)
	}
	f.Close()
	if err := unix.Access(thpDir+"/enabled", unix.W_OK); err != nil {
		return fmt.Errorf("difftest: the kernel side needs to set huge pages: %s: %w", thpDir, err)
	}
	return nil
}

// Check runs programs on the model and on the running kernel. It ends with the
// first error, or when ctx does, which is none.
func Check(ctx context.Context, o Options) (*Report, error) {
	// Huge pages of its own would move the counters. The helper inherits this
	// and switches them on for each program.
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("difftest: switch huge pages off: %w", err)
	}
	s := &session{Options: o, ctx: ctx, begin: time.Now()}
	s.rep = Report{Seed: o.Seed, Kernel: o.Kernel, Mismatches: []Mismatch{}}
	s.rep.Stats.init()
	for !s.done() {
		if err := s.hold(); err != nil {
			return &s.rep, err
		}
		time.Sleep(20 * time.Millisecond) // somebody else's turn
	}
	s.rep.Seconds = time.Since(s.begin).Seconds()
	return &s.rep, nil
}

// session is a Check under way.
type session struct {
	Options
	rep   Report
	ctx   context.Context
	begin time.Time
	next  int // program to run next
	until time.Time
}

// done says whether nothing is left to do.
func (s *session) done() bool {
	switch {
	case s.ctx.Err() != nil, s.MaxMismatches > 0 && len(s.rep.Mismatches) >= s.MaxMismatches:
		return true
	}
	return s.Options.done(s.next, s.begin)
}

// hold takes the settings for a while and runs programs.
func (s *session) hold() error {
	set, err := takeSettings(s.ctx)
	if err != nil {
		return err
	}
	from := time.Now()
	s.until = from.Add(holdFor)
	for err == nil && !s.done() && time.Now().Before(s.until) {
		err = s.batch(set)
	}
	if rerr := set.release(); err == nil {
		err = rerr
	}
	s.rep.Held += time.Since(from).Seconds()
	return err
}

// batch runs programs of one policy.
func (s *session) batch(set *settings) error {
	p := s.program(s.next)
	policy, err := policyOf(p.Policy)
	if err != nil {
		return err
	}
	if err := set.apply(policy, s.Rules); err != nil {
		return err
	}
	h, err := OpenHost()
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.settle(policy); err != nil {
		return err
	}
	spec := p.Policy
	for p.Policy == spec && time.Now().Before(s.until) {
		if err := s.one(h, p); err != nil {
			return err
		}
		s.next++
		if s.done() {
			return nil
		}
		p = s.program(s.next)
	}
	return nil
}

// run does a program on both sides.
func (s *session) run(h *Host, p *Program) (Outcome, error) {
	return s.watched(h, p, nil)
}

func (s *session) watched(h *Host, p *Program, watch Watcher) (Outcome, error) {
	model := func(p *Program) (Executor, error) { return NewModel(p, s.Rules, s.Paranoid) }
	return Run(p, model, func(*Program) (Executor, error) { return h.Start() }, watch)
}

// one runs a program until it agrees, or differs every time.
func (s *session) one(h *Host, p *Program) error {
	watch, err := s.watch(p)
	if err != nil {
		return err
	}
	out, err := s.watched(h, p, watch)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", p.Name, err, p)
	}
	s.rep.add(p, &out)
	if out.Difference == nil {
		return nil
	}
	d := s.believed(h, p, out.Difference)
	if d == nil {
		s.rep.Rerun++
		return nil
	}
	end := time.Now().Add(shrinkFor)
	small, sd := Shrink(p, func(q *Program) *Difference {
		if time.Now().After(end) {
			return nil
		}
		got := s.believed(h, q, nil)
		if got == nil || got.What != d.What {
			return nil
		}
		return got
	})
	if sd == nil {
		small, sd = p, d
	}
	mis := Mismatch{From: p.Name, Program: small.String(), Difference: *sd}
	s.rep.Mismatches = append(s.rep.Mismatches, mis)
	if s.OnMismatch != nil {
		s.OnMismatch(&mis)
	}
	return nil
}

// believed runs a program again: a difference counts when it is there every
// time, and a counter's when it is the same every time. Others on the machine
// move counters, and now and then pages.
func (s *session) believed(h *Host, p *Program, d *Difference) *Difference {
	for range tries {
		out, err := s.run(h, p)
		got := out.Difference
		switch {
		case err != nil || got == nil:
			return nil
		case d == nil:
		case got.What != d.What, d.Counter && *got != *d:
			return nil
		case !got.Counter:
			return got
		}
		d = got
	}
	return d
}

// settle holds khugepaged still: it is given another process to look at, looks
// at it, and sleeps for long.
func (h *Host) settle(p mm.Policy) error {
	if p.Effective(programSizes().PMD) == mm.Never {
		return nil
	}
	before := fullScans()
	decoy, _, err := h.puppets.first().fork()
	if err != nil {
		return err
	}
	for _, call := range [][]uint64{
		{unix.SYS_PRCTL, unix.PR_SET_THP_DISABLE, 0, 0, 0, 0},
		{unix.SYS_MMAP, uint64(arenaAt), uint64(pmdSize), unix.PROT_READ | unix.PROT_WRITE,
			unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED, ^uint64(0), 0},
		{unix.SYS_MADVISE, uint64(arenaAt), uint64(pmdSize), unix.MADV_HUGEPAGE},
	} {
		if _, err := decoy.do(doSyscall, call...); err != nil {
			return err
		}
	}
	// It is full, or dropping caches would split it.
	if _, err := decoy.do(doTouch, uint64(arenaAt), uint64(pmdSize/pageSize), pageSize, 1); err != nil {
		return err
	}
	if err := writeSetting("khugepaged/scan_sleep_millisecs", stillSleep); err != nil {
		return err
	}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end) && fullScans() == before; {
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

func fullScans() string {
	b, _ := os.ReadFile(thpDir + "/khugepaged/full_scans")
	return strings.TrimSpace(string(b))
}
