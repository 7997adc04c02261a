package calibrate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// session is one calibration under way.
type session struct {
	Options
	rules  mm.Rules
	facts  kernel.Facts
	all    []workload
	policy []mm.Policy // under which each workload ran
	got    []answer    // of each workload
	out    map[int]string
	notes  []string
	hello  hello
	helper *helper
}

// Run calibrates. It changes the settings of single huge-page sizes, for
// advised memory only, for about a second at a time, and puts them back.
func Run(ctx context.Context, o Options) (*Result, error) {
	begin := time.Now()
	s := &session{Options: o.withDefaults(), facts: kernel.LiveFacts(), out: map[int]string{}}
	var err error
	if s.rules, err = mm.RulesFor(s.facts.Release); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	s.rules.NoZeroPage = kernel.NoZeroPage()
	k := newMaker(s.facts.Sizes)
	if s.facts.Sizes.Base == 0 {
		k = newMaker(mm.Sizes{Base: mm.Bytes(os.Getpagesize())})
	}
	s.all = k.all()
	s.got, s.policy = make([]answer, len(s.all)), make([]mm.Policy, len(s.all))
	if s.helper, err = startHelper(ctx); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	defer s.helper.stop()
	if err := s.helper.receive(&s.hello); err != nil {
		return nil, fmt.Errorf("calibrate: helper: %w", err)
	}
	if s.hello.Err != "" {
		return nil, fmt.Errorf("calibrate: helper: %s", s.hello.Err)
	}
	if err := s.measure(ctx, begin); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	r, err := s.result()
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}

// How long to wait for another program that changes settings: within a round,
// where the next one is another chance, and at the end.
const (
	glance   = 50 * time.Millisecond
	patience = 60 * time.Second
	enough   = 2 // rounds with sizes switched on, if the lock is not to be had
)

// measure repeats all workloads in turn until the time is over.
func (s *session) measure(ctx context.Context, begin time.Time) error {
	sizes := 0
	var held *kernel.HeldError
	for round := 0; round < s.Least || time.Since(begin) < s.Time; round++ {
		s.Progress(round, time.Since(begin))
		if err := s.plain(ctx); err != nil {
			return err
		}
		switch err := s.switched(ctx, glance); {
		case err == nil:
			sizes++
		case !errors.As(err, &held):
			return err
		}
	}
	for ; sizes < min(enough, s.Least); sizes++ {
		s.Say("single sizes, round " + strconv.Itoa(sizes+1) + ": waiting for the lock on the settings")
		if err := s.switched(ctx, patience); err != nil {
			if !errors.As(err, &held) {
				return err
			}
			s.notes = append(s.notes, fmt.Sprintf("sizes that had to be switched on: measured in %d rounds: %v",
				sizes, held))
			return nil
		}
	}
	return nil
}

// now is the policy of this moment. A kernel without huge pages has none.
func (s *session) now() mm.Policy {
	p, err := kstat.ReadPolicy(kernel.LiveTree().FS, s.facts.Sizes)
	if err != nil {
		return mm.NeverPolicy(s.facts.Sizes)
	}
	return p
}

// plain does the workloads that need no setting changed.
func (s *session) plain(ctx context.Context) error {
	for i := range s.all {
		p := s.now()
		if o := s.all[i].order; o != 0 && p.Effective(o) == mm.Never {
			continue
		}
		if err := s.order(ctx, i, false); err != nil {
			return err
		}
	}
	return nil
}

// switched does the others, with their size switched on. It waits that long
// for the lock, else the error is a *kernel.HeldError.
func (s *session) switched(ctx context.Context, wait time.Duration) (err error) {
	var todo []int
	p := s.now()
	for i := range s.all {
		if o := s.all[i].order; o != 0 && s.out[i] == "" && p.Effective(o) == mm.Never {
			todo = append(todo, i)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	if s.Keep {
		for _, i := range todo {
			s.out[i] = "their sizes are switched off, and no setting was to be changed"
		}
		return nil
	}
	wctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	settings, err := kernel.Take(wctx, kernel.SessionOptions{Command: "calibrate", Note: s.Say})
	var held *kernel.HeldError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &held):
		return err
	case err != nil:
		for _, i := range todo {
			s.out[i] = err.Error()
		}
		return nil
	}
	defer func() { err = errors.Join(err, settings.Restore()) }()
	for _, i := range todo {
		if err := only(settings, s.facts.Sizes, s.all[i].order); err != nil {
			s.out[i] = err.Error()
			continue
		}
		if err := s.order(ctx, i, true); err != nil {
			return err
		}
	}
	return nil
}

// only lets advised memory have blocks of order o. Every other setting is as
// it was: memory of other programs is affected only where they advised it.
func only(s *kernel.Session, sizes mm.Sizes, o mm.Order) error {
	want := maps.Clone(s.Before())
	path := "/sys/kernel/mm/transparent_hugepage/" + sizes.Dir(o) + "/enabled"
	if _, ok := want[path]; !ok {
		return fmt.Errorf("this kernel has no %s", path)
	}
	want[path] = mm.Madvise.String()
	return s.Set(want)
}

// order has the helper do a workload, timed and sampled in turn. Another
// program may change settings at any time but while they are ours: what was
// measured across a change is dropped, and of two policies ours counts, else
// the first.
func (s *session) order(ctx context.Context, i int, ours bool) error {
	if s.out[i] != "" {
		return nil
	}
	times := 1
	if s.all[i].seldom {
		if g := s.got[i].Steps; len(g) > 0 && len(g[1]) >= s.Least {
			return nil
		}
	} else if s.hello.Sampler == "" {
		times = sampledOf
	}
	var a answer
	p := s.now()
	if err := s.helper.ask(order{s.all[i].name, times}, &a); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	if a.Err != "" {
		s.out[i] = a.Err
		return nil
	}
	g := &s.got[i]
	switch {
	case s.all[i].order == 0: // small pages whatever the settings are
	case s.now() != p:
		return ctx.Err()
	case g.Steps == nil || s.policy[i] == p:
	case ours:
		*g = answer{}
	default:
		return ctx.Err()
	}
	s.policy[i] = p
	g.Warm = append(g.Warm, a.Warm...)
	if g.Steps == nil {
		g.Steps = make([][]sample, len(a.Steps))
	}
	for j := range a.Steps {
		g.Steps[j] = append(g.Steps[j], a.Steps[j]...)
	}
	return ctx.Err()
}

// helper is the process that executes workloads.
type helper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	enc *json.Encoder
	dec *json.Decoder
}

func startHelper(ctx context.Context) (*helper, error) {
	cpu, err := processor()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{pinName, strconv.Itoa(cpu)}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &helper{cmd, in, json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}, nil
}

// processor is the last one that this process may run on: interrupts prefer
// the first.
func processor() (int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, fmt.Errorf("processors: %w", err)
	}
	for cpu := len(set)*64 - 1; cpu >= 0; cpu-- {
		if set.IsSet(cpu) {
			return cpu, nil
		}
	}
	return 0, errors.New("processors: none allowed")
}

func (h *helper) receive(v any) error {
	err := h.dec.Decode(v)
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended early")
	}
	return err
}

func (h *helper) ask(o order, a *answer) error {
	if err := h.enc.Encode(o); err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	if err := h.receive(a); err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	return nil
}

func (h *helper) stop() {
	h.in.Close()
	h.cmd.Wait()
}
