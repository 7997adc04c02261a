package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// Plan is what Verify is to do.
type Plan struct {
	Command  []string
	Exit     int             // of the command when it was recorded
	Input    predict.Input   // the recording, and the policies to run under
	Runs     int             // of each policy
	Seed     uint64          // of the order
	Prepare  string          // a shell command before each run, "" for none
	Stdin    string          // a file, "" for none
	Output   *os.File        // the command's output; nil throws it away
	Fixed    bool            // without address randomisation
	Session  *kernel.Session // the right to change settings
	Progress func(done, of int, policy string)
}

// Cell is one policy, predicted and measured.
type Cell struct {
	Policy string
	Pairs  []Pair // one a run
}

// Pair is one run, and its prediction at the run's own addresses.
type Pair struct {
	Predicted predict.Row
	Measured  Run
}

// Verification is what came of a plan.
type Verification struct {
	Cells       []Cell
	Runs        int // that were to be done of each policy
	Fixed       bool
	Interrupted bool
	Notes       []string // what the reader must know
	NotRun      []string // policies that cannot be had, with the reason
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

// NotSameWork says that a run was not what was recorded, so that nothing can
// be said of the model.
type NotSameWork struct{ Why, Do string }

func (e *NotSameWork) Error() string {
	return "verify: the command did not do the same work as when it was recorded: " + e.Why + ": " + e.Do
}

// stillSleep is how long khugepaged is made to sleep.
const stillSleep = mm.Nanos(24 * 3600 * 1e9)

// still is p with khugepaged held still, for the kernel and the model alike.
func still(p mm.Policy) mm.Policy {
	p.Khugepaged.ScanSleep, p.Khugepaged.PagesToScan = stillSleep, 1
	return p
}

// Verify runs the plan. With ctx done it gives what there is so far. The
// caller ends the session.
func Verify(ctx context.Context, p Plan) (*Verification, error) {
	v := &Verification{Runs: p.Runs, Fixed: p.Fixed}
	recorded, page, err := p.bases()
	if err != nil {
		return nil, err
	}
	if p.Exit != 0 {
		v.note("the command ends with exit code %d, when recorded and in every run", p.Exit)
	}
	var rows []predict.Named
	for _, n := range p.Input.Policies {
		switch {
		case n.Hypothetical():
			v.NotRun = append(v.NotRun, n.Name+": the program itself must advise its memory")
		case len(n.Lacks) > 0:
			v.NotRun = append(v.NotRun, n.Name+": "+n.Lacks[0])
		default:
			rows = append(rows, n)
			v.Cells = append(v.Cells, Cell{Policy: n.Name})
		}
	}
	if len(rows) == 0 {
		return nil, errors.New("verify: no policy that this kernel can have")
	}
	d, err := p.quieten(rows)
	if err != nil {
		v.note("khugepaged was not held still: %v", err)
	} else {
		defer d.stop()
	}
	for i, k := range order(len(rows), p.Runs, p.Seed) {
		if ctx.Err() != nil {
			break
		}
		if p.Progress != nil {
			p.Progress(i, len(rows)*p.Runs, rows[k].Name)
		}
		pair, err := p.one(ctx, v, &rows[k], recorded, page)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return v, err
		}
		v.Cells[k].Pairs = append(v.Cells[k].Pairs, *pair)
	}
	v.Interrupted = ctx.Err() != nil
	return v, nil
}

// order is the order of the runs: every policy once before any comes again, and
// each such round in random order, so that what changes slowly on the machine
// meets all alike.
func order(policies, runs int, seed uint64) []int {
	rnd := rand.New(rand.NewPCG(seed, 0))
	var all []int
	for range runs {
		all = append(all, rnd.Perm(policies)...)
	}
	return all
}

// bases reads those of the recording.
func (p *Plan) bases() ([]Bases, mm.Bytes, error) {
	f, err := p.Input.Open()
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		return nil, 0, err
	}
	b, err := RecordedBases(r)
	return b, mm.Bytes(r.Header.PageSize), err
}

// quieten registers the decoy with khugepaged, under settings that let it.
func (p *Plan) quieten(rows []predict.Named) (*decoy, error) {
	pol := still(rows[0].Policy)
	s := p.Session.Sizes()
	pol.Enabled, pol.Size[s.PMD] = mm.Madvise, mm.Inherit
	if err := p.Session.Apply(pol); err != nil {
		return nil, err
	}
	d, err := startDecoy()
	time.Sleep(quiet)
	return d, err
}

// one does one run under one policy, and predicts it where it lay.
func (p *Plan) one(ctx context.Context, v *Verification, row *predict.Named, recorded []Bases,
	page mm.Bytes) (*Pair, error) {
	if err := p.Session.Apply(still(row.Policy)); err != nil {
		return nil, err
	}
	before, err := p.Session.Now()
	if err != nil {
		return nil, err
	}
	time.Sleep(quiet)
	run, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	after, err := p.Session.Now()
	if err != nil {
		return nil, err
	}
	for _, c := range before.Changes(after) {
		v.note("the command, or something beside it, changed settings while it ran: %s", c)
	}
	if run.Exit != p.Exit {
		return nil, &NotSameWork{fmt.Sprintf("exit code %d under %s, %d when recorded", run.Exit, row.Name, p.Exit),
			"--prepare COMMAND puts things back before each run, --input FILE gives it the same input"}
	}
	shift, err := shifts(recorded, run.Execs, page)
	if err != nil {
		return nil, &NotSameWork{err.Error(),
			"a build finds its work done: --prepare 'make clean' undoes it; --input FILE gives the same input"}
	}
	in := p.Input
	in.Policies = []predict.Named{{Name: row.Name, Policy: still(row.Policy)}}
	in.Layouts, in.Shift = 1, func(_, n int) mm.Shift { return shift(n) }
	got, err := predict.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	return &Pair{got.Rows[0], *run}, nil
}

// run prepares and runs the command once.
func (p *Plan) run(ctx context.Context) (*Run, error) {
	if p.Prepare != "" {
		var said bytes.Buffer
		prep := exec.CommandContext(ctx, "sh", "-c", p.Prepare)
		prep.Stdout, prep.Stderr = &said, &said
		if err := prep.Run(); err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("verify: --prepare: %w: %s", err, bytes.TrimSpace(said.Bytes()))
		}
	}
	in, err := os.Open(orNull(p.Stdin))
	if err != nil {
		return nil, fmt.Errorf("verify: --input: %w", err)
	}
	defer in.Close()
	return runOnce(ctx, kernel.StartOptions{
		Command: p.Command, Stdin: in, Stdout: p.Output, Stderr: p.Output, FixedAddresses: p.Fixed})
}

func orNull(file string) string {
	if file == "" {
		return os.DevNull
	}
	return file
}
