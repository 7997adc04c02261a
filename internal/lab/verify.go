package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// Plan is what Verify is to do.
type Plan struct {
	Command []string
	Input   predict.Input // the recording, and the policies to run under
	Runs    int           // of each policy
	Seed    uint64        // of the order
	Prepare []string      // a command before each run, nil for none
	Stdin   string        // a file, "" for none
	Output  *os.File      // the command's output; nil throws it away
	Fixed   bool          // without address randomisation
	Replay  bool          // no command: helper processes do what the recording did
	First   bool          // run the command once before, untimed: nothing has just read its files

	// Peak says how much memory a run takes, for the warm pass before it; nil:
	// no warm pass.
	Peak func(policy string) mm.Bytes

	Again      bool // every policy a second time, to compare with itself (A/A)
	Khugepaged bool // and with khugepaged working as it is set

	// Session is the right to change settings for the whole plan. With nil each
	// round of runs asks Take for one, and others come to their turn between.
	Session  *kernel.Session
	Take     func(context.Context) (*kernel.Session, error)
	Progress func(done, of int, policy string)
}

// Cell is one policy, predicted and measured.
type Cell struct {
	Policy string
	Pairs  []Pair // one a run
	Again  []Pair // the same once more, with Plan.Again
	Active []Pair // with khugepaged at work, with Plan.Khugepaged
	Unlike string // how its runs did other work than was recorded, "" where they did not
}

// Pair is one run, and its prediction at the run's own addresses.
type Pair struct {
	Predicted predict.Row
	Measured  Run
}

// Verification is what came of a plan.
type Verification struct {
	Cells       []Cell
	Sizes       mm.Sizes
	Runs        int // that were to be done of each policy
	Fixed       bool
	Interrupted bool
	Times       predict.SystemTime // how time in the kernel divides, by the plain runs or the recorded one
	Plain       []Pair             // runs without huge pages that are not shown: they tell Times
	Replayed    bool               // by helpers, not by the command
	Warm        bool               // there was a warm pass before every run
	Notes       []string           // what the reader must know
	NotRun      []string           // policies that cannot be had, with the reason
}

// note adds a sentence once.
func (v *Verification) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	for _, n := range v.Notes {
		if n == s {
			return
		}
	}
	v.Notes = append(v.Notes, s)
}

// stillSleep is how long khugepaged is made to sleep.
const stillSleep = mm.Nanos(24 * 3600 * 1e9)

// still is p with khugepaged held still; in the model it is by Input.Still.
func still(p mm.Policy) mm.Policy {
	p.Khugepaged.ScanSleep, p.Khugepaged.PagesToScan = stillSleep, 1
	return p
}

// verifier is a verification under way.
type verifier struct {
	Plan
	v    *Verification
	rec  *recorded
	rows []predict.Named // one a cell
	base predict.Named   // of plain runs
	done int
}

// Verify runs the plan. With ctx done, or an error, it gives what there is so
// far; it is nil where nothing began. The caller ends the session.
func Verify(ctx context.Context, p Plan) (*Verification, error) {
	rec, err := readRecorded(ctx, p.Input)
	if err != nil {
		return nil, err
	}
	sizes, err := mm.SizesOf(rec.page)
	if err != nil {
		return nil, fmt.Errorf("verify: recording: %w", err)
	}
	w := &verifier{Plan: p, rec: rec, v: &Verification{
		Runs: p.Runs, Fixed: p.Fixed, Sizes: sizes, Times: rec.times, Warm: p.Peak != nil, Replayed: p.Replay}}
	if p.Replay {
		w.v.Times = predict.SystemTime{} // helpers spend time of their own
	} else if rec.exit != 0 {
		w.v.note("the command ends with exit code %d, when recorded and in every run", rec.exit)
	}
	w.base = predict.Named{Name: "never", Policy: mm.NeverPolicy(sizes)}
	w.choose()
	if len(w.rows) == 0 {
		return nil, errors.New("verify: no policy that this kernel can have")
	}
	for round := 0; round < p.Runs && err == nil && ctx.Err() == nil; round++ {
		err = w.round(ctx, round)
	}
	w.judge()
	if w.v.Interrupted = ctx.Err() != nil; w.v.Interrupted {
		err = nil
	}
	return w.v, err
}

// choose takes the policies that a setting can have.
func (w *verifier) choose() {
	for _, n := range w.Input.Policies {
		switch {
		case n.Hypothetical():
			w.v.NotRun = append(w.v.NotRun, n.Name+": the program itself must advise its memory")
		case len(n.Lacks) > 0:
			w.v.NotRun = append(w.v.NotRun, n.Name+": "+n.Lacks[0])
		default:
			w.rows = append(w.rows, n)
			w.v.Cells = append(w.v.Cells, Cell{Policy: n.Name})
		}
	}
}

// timed says whether time in the kernel is predicted: by prices of this machine.
func (w *verifier) timed() bool {
	return !w.Replay && w.Input.Profile != nil && w.Input.Profile.Made != nil
}

// named is the policy of a job.
func (w *verifier) named(j *job) *predict.Named {
	if j.part == plain {
		return &w.base
	}
	return &w.rows[j.row]
}

// part says which of a cell's lists a run is for.
type part uint8

const (
	first  part = iota // Pairs
	again              // Again
	active             // Active
	plain              // Verification.Plain
)

// job is one run to do, and what came of it.
type job struct {
	row  int
	part part
	run  *Run
}

// order is the runs of one round in random order: every policy once before any
// comes again, so that what changes slowly on the machine meets all alike.
// Those with khugepaged at work come last.
func (w *verifier) order(round int) []job {
	rnd := rand.New(rand.NewPCG(w.Seed, uint64(round)))
	parts := []part{first}
	if w.Again {
		parts = append(parts, again)
	}
	var all []job
	if w.timed() {
		all = append(all, job{part: plain})
	}
	for i := range w.rows {
		for _, p := range parts {
			all = append(all, job{row: i, part: p})
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if w.Khugepaged {
		for _, i := range rnd.Perm(len(w.rows)) {
			all = append(all, job{row: i, part: active})
		}
	}
	return all
}

// round runs every policy once, and then predicts each run where it lay.
func (w *verifier) round(ctx context.Context, round int) error {
	jobs := w.order(round)
	err := w.measureAll(ctx, round, jobs)
	for i := range jobs {
		j := &jobs[i]
		if j.run == nil || ctx.Err() != nil {
			break
		}
		if perr := w.keep(ctx, j); perr != nil {
			return errors.Join(err, perr)
		}
	}
	return err
}

// spell is how long the right to change settings is kept at most, where it is
// asked for and a run may be waited for.
const spell = 20 * time.Second

// measureAll does the runs of a round, as far as it comes.
func (w *verifier) measureAll(ctx context.Context, round int, jobs []job) error {
	for at := 0; at < len(jobs) && ctx.Err() == nil; {
		n, err := w.measureSome(ctx, round, jobs, at)
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// measureSome does runs from jobs[at] on until a spell is over, and says how many.
func (w *verifier) measureSome(ctx context.Context, round int, jobs []job, at int) (n int, err error) {
	s := w.Session
	if s == nil {
		if s, err = w.Take(ctx); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, s.Restore()) }()
	}
	d, derr := w.quieten(s)
	if derr != nil {
		w.v.note("khugepaged was not held still: %v", derr)
	}
	defer func() { d.stop() }()
	if w.First && round == 0 && at == 0 {
		if _, err := w.run(ctx); err != nil {
			return 0, err
		}
	}
	for began := time.Now(); at+n < len(jobs) && ctx.Err() == nil; n++ {
		j := &jobs[at+n]
		if w.Session == nil && n > 0 && time.Since(began) > spell {
			return n, nil
		}
		if j.part == active {
			d.stop()
			d = nil
		}
		if w.Progress != nil {
			w.Progress(w.done, len(jobs)*w.Runs, w.named(j).Name)
		}
		run, err := w.measure(ctx, s, j)
		if err != nil || ctx.Err() != nil {
			return n, err
		}
		j.run = run
		w.done++
	}
	return n, nil
}

// quieten registers the decoy with khugepaged, under settings that let it.
func (w *verifier) quieten(s *kernel.Session) (*decoy, error) {
	pol := still(w.rows[0].Policy)
	pol.Enabled, pol.Size[s.Sizes().PMD] = mm.Madvise, mm.Inherit
	if err := s.Apply(pol); err != nil {
		return nil, err
	}
	d, err := startDecoy()
	time.Sleep(quiet)
	return d, err
}
