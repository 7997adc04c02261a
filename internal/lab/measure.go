package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// measure does one run under one policy.
func (w *verifier) measure(ctx context.Context, s *kernel.Session, j *job) (*Run, error) {
	row := w.named(j)
	pol := row.Policy
	if j.part != active {
		pol = still(pol)
	}
	if err := s.Apply(pol); err != nil {
		return nil, err
	}
	before, err := s.Now()
	if err != nil {
		return nil, err
	}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	warmed, took := w.warmUp(ctx, w.rows[j.row].Name)
	time.Sleep(quiet)
	fsys := kernel.LiveTree().FS
	start, err := readEvents(fsys, w.v.Sizes)
	if err != nil {
		return nil, fmt.Errorf("verify: counters: %w", err)
	}
	var run *Run
	if w.Replay {
		run, err = w.replay(ctx, row)
	} else {
		run, err = w.run(ctx, ordersOf(&row.Policy, w.v.Sizes)...)
	}
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	end, err := readEvents(fsys, w.v.Sizes)
	if err != nil {
		return nil, fmt.Errorf("verify: counters: %w", err)
	}
	run.Events, run.Warmed, run.Warm = end.since(start), warmed, took
	after, err := s.Now()
	if err != nil {
		return nil, err
	}
	for _, c := range before.Changes(after) {
		w.v.note("the command, or something beside it, changed settings while it ran under %s: %s", row.Name, c)
	}
	if run.Exit != w.rec.exit {
		return nil, &NotSameWork{
			fmt.Sprintf("exit code %d under %s, %d when recorded", run.Exit, row.Name, w.rec.exit),
			"--prepare COMMAND puts things back before each run, --input FILE gives it the same input"}
	}
	return run, nil
}

// Beyond the predicted peak a warm pass takes a share more and a little, for
// page tables and what is not anonymous.
const (
	warmShare = 8
	warmMore  = mm.Bytes(16 << 20)
)

// warmUp has the memory of a run backed by the hypervisor.
func (w *verifier) warmUp(ctx context.Context, policy string) (mm.Bytes, time.Duration) {
	if w.Peak == nil {
		return 0, 0
	}
	n := w.Peak(policy)
	n += n/warmShare + warmMore
	took, err := warm(ctx, n)
	if err != nil {
		if ctx.Err() == nil {
			w.v.Warm = false
			w.v.note("no warm pass before some runs: %v: first use of memory may cost more in them", err)
		}
		return 0, 0
	}
	return n, took
}

// prepare puts things back before a run.
func (w *verifier) prepare(ctx context.Context) error {
	if w.Prepare == nil {
		return nil
	}
	var said bytes.Buffer
	prep := exec.CommandContext(ctx, w.Prepare[0], w.Prepare[1:]...)
	prep.Stdout, prep.Stderr = &said, &said
	if err := prep.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("verify: --prepare: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// run runs the command once.
func (w *verifier) run(ctx context.Context, orders ...mm.Order) (*Run, error) {
	in, err := os.Open(orNull(w.Stdin))
	if err != nil {
		return nil, fmt.Errorf("verify: --input: %w", err)
	}
	defer in.Close()
	return runOnce(ctx, kernel.StartOptions{
		Command: w.Command, Stdin: in, Stdout: w.Output, Stderr: w.Output, FixedAddresses: w.Fixed}, orders...)
}

// ordersOf lists the orders of which a policy lets folios be made.
func ordersOf(p *mm.Policy, s mm.Sizes) []mm.Order {
	var all []mm.Order
	for _, o := range s.Orders() {
		if m := p.Size[o]; m != mm.Never && (m != mm.Inherit || p.Enabled != mm.Never) {
			all = append(all, o)
		}
	}
	return all
}

func orNull(file string) string {
	if file == "" {
		return os.DevNull
	}
	return file
}

// keep predicts a run at its own addresses and puts both into its cell.
func (w *verifier) keep(ctx context.Context, j *job) error {
	row, c := w.named(j), &w.v.Cells[j.row]
	in := w.Input
	in.Policies, in.Still = []predict.Named{{Name: row.Name, Policy: row.Policy}}, j.part != active
	if !w.Replay {
		shift, err := shifts(w.rec.execs, j.run.Execs, w.rec.page)
		if err != nil {
			return &NotSameWork{err.Error(),
				"a build finds its work done: --prepare 'make clean' undoes it; --input FILE gives the same input"}
		}
		in.Layouts, in.Shift = 1, func(_, n int) mm.Shift { return shift(n) }
	}
	got, err := predict.Run(ctx, in)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	pair := Pair{got.Rows[0], *j.run}
	switch j.part {
	case first:
		c.Pairs = append(c.Pairs, pair)
	case again:
		c.Again = append(c.Again, pair)
	case active:
		c.Active = append(c.Active, pair)
	case plain:
		w.v.Plain = append(w.v.Plain, pair)
	}
	return nil
}

// Other programs' faults beside a run that make its folio counts doubtful: a
// share of the run's own, and some.
const (
	othersShare = 50
	othersFew   = 2000
)

// coldTimes is how much longer a warm pass takes, by its memory, where it is the
// first use of much of it.
const coldTimes = 4

// judge says what the runs of a verification have in common.
func (w *verifier) judge() {
	w.v.divide()
	var most uint64
	least, slowest := 0.0, 0.0
	for k := range w.v.Cells {
		c := &w.v.Cells[k]
		other := 0
		for i := range c.Pairs {
			r := &c.Pairs[i].Measured
			if o := r.others(); o > r.Faults/othersShare+othersFew {
				most = max(most, o)
			}
			if why := unlike(w.rec.ends, r.Ends); why != "" {
				c.Unlike = why
				other++
			}
			if r.Warmed > 0 {
				rate := r.Warm.Seconds() / float64(r.Warmed)
				slowest = max(slowest, rate)
				if least == 0 || rate < least {
					least = rate
				}
			}
		}
		if other*2 <= len(c.Pairs) {
			c.Unlike = "" // chance, not the policy
		} else {
			w.v.note("under %s the command did not do the same work as when it was recorded: %s. "+
				"Its errors are not the model's", c.Policy, c.Unlike)
		}
	}
	if most > 0 && !w.v.OwnFolios() {
		w.v.note("other programs took up to %d page faults beside a run: the counts of folios, which are the "+
			"whole machine's, may have theirs in them", most)
	}
	if slowest > coldTimes*least {
		w.v.note("memory was new to the machine: a warm pass took up to %.0f times as long as another. "+
			"Only what it warmed is as dear as memory in use", slowest/least)
	}
}
