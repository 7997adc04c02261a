//go:build amd64

package difftest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
)

// The settings are the whole machine's. They are held as long as nobody else
// waits for them, but at most holdMost at a time; who waits gets them after
// holdFor, or when a mismatch that is being shrunk is done.
const (
	holdFor   = 8 * time.Second
	holdMost  = 50 * time.Second
	shrinkFor = 10 * time.Second
	tries     = 5  // runs with the same difference before a counter's is believed
	mostTries = 25 // runs of one program
)

// Available says why the kernel side cannot run here, nil if it can.
func Available() error {
	if len(programPlace.elf()) == 0 {
		return fmt.Errorf("difftest: no helper program for this processor: only amd64 has one")
	}
	f, err := kernel.OpenFolios()
	if err != nil {
		return fmt.Errorf("difftest: the kernel side needs root: %w", err)
	}
	f.Close()
	if err := kernel.CanChange(); err != nil {
		return fmt.Errorf("difftest: the kernel side sets huge pages: %w", err)
	}
	return nil
}

// Check runs programs on the model and on the running kernel. It ends with the
// first error, or when ctx does, which is none. The program that calls it calls
// kernel.Guardian first.
func Check(ctx context.Context, o Options) (*Report, error) {
	// Huge pages of its own would move the counters. The helper inherits this
	// and switches them on for each program.
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("difftest: switch huge pages off: %w", err)
	}
	for _, p := range o.Files {
		if err := p.forKernel(); err != nil {
			return nil, err
		}
	}
	s := &session{Options: o, ctx: ctx, begin: time.Now()}
	s.rep = newReport(&o)
	runtime.LockOSThread() // the host belongs to it
	defer runtime.UnlockOSThread()
	var err error
	if s.h, err = OpenHost(); err != nil {
		return s.rep, err
	}
	defer s.h.Close()
	if s.h.aloneErr != nil {
		s.note(s.h.aloneErr.Error() + ": others run beside it, and may move counters")
	}
	j := startJudge(&s.Options)
	defer j.stop()
	s.judge = j
	for err == nil && !s.done() {
		if err = s.hold(); err == nil && !s.done() {
			time.Sleep(20 * time.Millisecond) // somebody else's turn
		}
	}
	s.rep.time(s.begin)
	return s.rep, err
}

// session is a Check under way.
type session struct {
	Options
	rep   *Report
	ctx   context.Context
	h     *Host
	judge *judge
	begin time.Time
	next  int // program to run next

	from   time.Time // when the settings were taken
	looked time.Time // when it was looked whether others wait
	wanted bool
}

// done says whether nothing is left to do.
func (s *session) done() bool {
	switch {
	case s.ctx.Err() != nil, s.rep.enough(&s.Options):
		return true
	}
	return s.Options.done(s.next, s.busy())
}

// busy is how long the settings have been held, all in all.
func (s *session) busy() time.Duration {
	d := time.Duration(s.rep.Held * float64(time.Second))
	if !s.from.IsZero() {
		d += time.Since(s.from)
	}
	return d
}

// hold takes the settings for a while and runs programs.
func (s *session) hold() error {
	set, err := kernel.Take(s.ctx, kernel.SessionOptions{
		Command: "difftest", Note: s.note, Waiting: func(who string) { s.note("waiting for " + who) },
	})
	if held := (*kernel.HeldError)(nil); errors.As(err, &held) && s.ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	s.from = time.Now()
	for err == nil && !s.done() && !s.over(set) {
		err = s.batch(set)
	}
	if rerr := set.Restore(); err == nil {
		err = rerr
	}
	s.rep.Held += time.Since(s.from).Seconds()
	s.from = time.Time{}
	return err
}

func (s *session) note(text string) {
	if s.Note != nil {
		s.Note(text)
	}
}

// over says whether the settings have been held long enough.
func (s *session) over(set *kernel.Session) bool {
	now := time.Now()
	if now.Sub(s.looked) > time.Second {
		s.looked, s.wanted = now, set.Wanted()
	}
	held := now.Sub(s.from)
	return held > holdMost || held > holdFor && s.wanted
}

// batch runs programs of one policy. The kernel is asked about the next ones
// while the model is held to the last ones' answers.
func (s *session) batch(set *kernel.Session) error {
	p := s.program(s.next)
	spec := p.Policy
	if err := s.h.setPolicy(set, spec, s.Rules); err != nil {
		return err
	}
	for {
		j, err := s.record(p)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", p.Name, err, p)
		}
		s.judge.todo <- j
		s.next++
		if err := s.results(s.Show != nil); err != nil {
			return err
		}
		if s.done() || s.over(set) {
			break
		}
		if p = s.program(s.next); p.Policy != spec {
			break
		}
	}
	return s.results(true)
}

// start starts a program on this host.
func (s *session) start(p *Program) (Executor, error) { return s.h.Start(p) }

func (s *session) record(p *Program) (*job, error) {
	j := s.judge.job(p)
	var err error
	j.answers, err = Record(p, s.start, j.answers)
	return j, err
}

// results deals with programs that are judged; with all it waits for those
// that are not yet.
func (s *session) results(all bool) error {
	for s.judge.pending > 0 {
		j := s.judge.next(all)
		if j == nil {
			return nil
		}
		if err := s.one(j); err != nil {
			return err
		}
		s.judge.free(j)
	}
	return nil
}

// one deals with a program that is judged: it is run until it agrees, or
// differs in the same way again and again.
func (s *session) one(j *job) error {
	p := j.p
	if j.err != nil { // a process that did not answer in time: once more
		if _, j.err = Record(p, s.start, j.answers); j.err == nil {
			j.out, j.err = Judge(p, s.model, j.answers, nil)
		}
	}
	if j.err != nil {
		return fmt.Errorf("%s: %w\n%s", p.Name, j.err, p)
	}
	s.rep.add(p, &j.out)
	what, d := agreed, j.out.Difference
	if d != nil {
		s.rep.again(d)
		what, d = s.settled(j, d)
	}
	if what == unsettled {
		s.rep.Unsettled++
	} else if s.Save != nil {
		if err := s.Save(p, j.answers); err != nil {
			return err
		}
	}
	if what == differs {
		s.rep.mismatch(&s.Options, s.small(p, d))
	}
	if s.OnProgress != nil {
		s.OnProgress(s.rep)
	}
	return nil
}

// small shrinks a program that differs.
func (s *session) small(p *Program, d *Difference) *Mismatch {
	end := time.Now().Add(shrinkFor)
	small, sd := Shrink(p, func(q *Program) *Difference {
		if time.Now().After(end) {
			return nil
		}
		if is, got := s.settled(&job{p: q}, nil); is == differs && got.What == d.What {
			return got
		}
		return nil
	})
	if sd == nil {
		small, sd = p, d
	}
	return &Mismatch{From: p.Name, Program: small.String(), Difference: *sd}
}

// verdict is what came of running a program again and again.
type verdict int

const (
	agreed    verdict = iota
	differs           // in the same way each time
	unsettled         // now so, now so: somebody else moves what is compared
)

// settled runs a program until both sides agree, or until they differ in the
// same way enough times in a row: tries for a counter, which others on the
// machine can move, and twice for all else. d is how they differed before. The
// answers that are kept are the last ones.
func (s *session) settled(j *job, d *Difference) (verdict, *Difference) {
	row := 0
	if d != nil {
		row = 1
	}
	for range mostTries {
		var err error
		if j.answers, err = Record(j.p, s.start, j.answers); err != nil {
			return unsettled, nil
		}
		out, err := Judge(j.p, s.model, j.answers, nil)
		got := out.Difference
		switch {
		case err != nil:
			return unsettled, nil
		case got == nil:
			return agreed, nil
		case d != nil && *got == *d:
			row++
		default:
			d, row = got, 1
		}
		if row >= tries || row >= 2 && !d.Counter {
			return differs, d
		}
	}
	return unsettled, nil
}
