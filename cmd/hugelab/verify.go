package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/lab"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/internal/record"
	"github.com/hugelab/hugelab/internal/report"
	"github.com/hugelab/hugelab/mm"
)

// verifyFlags are the flags of predict --verify.
type verifyFlags struct {
	on      bool
	runs    int
	prepare string
	input   string
	fixed   bool
	show    bool
	yes     bool
	wait    time.Duration

	again, khugepaged, replay bool

	suite      bool
	only, skip []string
}

func (v *verifyFlags) flags(fl *pflag.FlagSet) {
	fl.BoolVar(&v.on, "verify", false, "then run COMMAND for real under now, never and the best, and compare")
	fl.IntVar(&v.runs, "runs", 5, "with --verify, run each policy `N` times")
	fl.StringVar(&v.prepare, "prepare", "", "with --verify, do the shell `COMMAND` before each run")
	fl.StringVar(&v.input, "input", "", "with --verify, COMMAND's standard input `FILE`")
	fl.BoolVar(&v.fixed, "no-aslr", false, "with --verify, run at addresses that are not randomised")
	fl.BoolVar(&v.show, "show-output", false, "with --verify, show COMMAND's output on stderr")
	fl.BoolVarP(&v.yes, "yes", "y", false, "with --verify, change the machine's settings without asking")
	fl.BoolVar(&v.again, "again", false, "with --verify, run each policy twice as often, against itself (A/A)")
	fl.BoolVar(&v.khugepaged, "khugepaged", false, "with --verify, run each also with khugepaged at work")
	fl.BoolVar(&v.replay, "replay", false,
		"with --verify, helpers do what FILE recorded: no COMMAND")
	fl.BoolVar(&v.suite, "suite", false, "record, predict and run a suite of programs, and compare")
	fl.StringArrayVar(&v.only, "only", nil, "with --suite, this program, by `NAME`; may be repeated")
	fl.StringArrayVar(&v.skip, "skip", nil, "with --suite, not this program, by `NAME`; may be repeated")
	fl.DurationVar(&v.wait, "wait", time.Minute, "with --verify, wait `TIME` for who holds the settings")
}

// verifyCommand splits FILE and COMMAND of predict [FILE] --verify -- COMMAND.
func (f *predictFlags) verifyCommand(cmd *cobra.Command, args []string) (
	file string, command []string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 || dash > 1 || len(args) == dash:
		return "", nil, usagef("predict: --verify runs a program: give -- and a COMMAND, " +
			"and before it a FILE at most")
	case f.verify.runs < 1 || f.verify.runs > 1000:
		return "", nil, usagef("predict: --runs %d: want 1 to 1000", f.verify.runs)
	case f.layouts != 0:
		return "", nil, usagef("predict: --layouts and --verify: a verified run has its own layout; leave one out")
	case dash == 1:
		return args[0], args[1:], record.LookUp(args[1])
	}
	return "", args, nil
}

// runVerify is predict --verify: record, predict, run for real, compare.
func (f *predictFlags) runVerify(cmd *cobra.Command, args []string, in predict.Input) error {
	v := &f.verify
	if v.replay {
		return f.runReplay(cmd, args, in)
	}
	file, args, err := f.verifyCommand(cmd, args)
	if err != nil {
		return err
	}
	if err := kernel.CanChange(); err != nil {
		return err
	}
	all := len(f.policies) == 1 && f.policies[0] == "all"
	few := len(f.policies) == 0
	if all {
		f.policies = nil
	}
	src, err := f.recordQuietly(cmd, file, args)
	if err != nil {
		return err
	}
	defer src.done()
	in.Open = src.open
	// From here on: the settings now are ours to read, and nobody else's for a moment.
	s, err := f.take(cmd, "predict --verify -- "+quoted(args))
	if err != nil {
		return err
	}
	defer s.Restore() // where an error or a panic leaves this function
	if err := f.host(&in, src); err != nil {
		return err
	}
	p, err := predict.Run(cmd.Context(), in)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	if few {
		in.Policies = fewRows(in.Policies, p)
	}
	plan := f.plan(in, args)
	plan.Session, plan.First = s, file != ""
	plan.Peak = func(policy string) mm.Bytes { return p.Row(policy).PeakAnon }
	if v.prepare != "" {
		plan.Prepare = []string{"sh", "-c", v.prepare}
	}
	result, err := f.measure(cmd, plan, p)
	if rerr := s.Restore(); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if err != nil && !result.HasRuns() {
		return err
	}
	result.Merge(p)
	if werr := f.writeVerified(cmd.OutOrStdout(), p, result); err == nil {
		err = werr
	}
	if err == nil && result.Interrupted {
		err = &exitError{code: 130}
	}
	return err
}

// take is the right to change settings.
func (f *predictFlags) take(cmd *cobra.Command, what string) (*kernel.Session, error) {
	ctx, stop := context.WithTimeout(cmd.Context(), f.verify.wait)
	defer stop()
	return kernel.Take(ctx, sessionOptions(cmd, what))
}

// plan is what the flags ask to be done.
func (f *predictFlags) plan(in predict.Input, command []string) lab.Plan {
	v := &f.verify
	return lab.Plan{Command: command, Input: in, Runs: v.runs, Seed: f.seed, Stdin: v.input, Fixed: v.fixed,
		Again: v.again, Khugepaged: v.khugepaged}
}

// fewRows are now, never and the recommended row.
func fewRows(rows []predict.Named, p *predict.Prediction) []predict.Named {
	best := ""
	if p.Best != nil {
		best = p.Best.Policy
	}
	var out []predict.Named
	for _, r := range rows {
		if r.Name == predict.Now || r.Name == "never" || r.Name == best {
			out = append(out, r)
		}
	}
	return out
}

// recordQuietly records COMMAND with the input and output that the runs will
// have: what a program does depends on both. With file that is the recording.
func (f *predictFlags) recordQuietly(cmd *cobra.Command, file string, args []string) (*predictSource, error) {
	v := &f.verify
	if file != "" {
		src := &predictSource{done: func() {}}
		return src, f.open(cmd, file, src)
	}
	name := v.input
	if name == "" {
		name = os.DevNull
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, usagef("predict: --input: %w", err)
	}
	defer in.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	defer null.Close()
	oldIn, oldErr := cmd.InOrStdin(), cmd.ErrOrStderr()
	defer func() { cmd.SetIn(oldIn); cmd.SetErr(oldErr) }()
	cmd.SetIn(in)
	if !v.show {
		f.record.quiet = true
		cmd.SetErr(null)
	}
	src := &predictSource{done: func() {}}
	if err := f.recordFirst(cmd, args, src); err != nil {
		return nil, err
	}
	return src, src.readHeader()
}

// measure says what is to come, asks, and runs.
func (f *predictFlags) measure(cmd *cobra.Command, plan lab.Plan,
	p *predict.Prediction) (*lab.Verification, error) {
	v, stderr := &f.verify, cmd.ErrOrStderr()
	each := v.runs
	if v.again {
		each += v.runs
	}
	if v.khugepaged {
		each += v.runs
	}
	n := len(plan.Input.Policies) * each
	what := "runs"
	if v.replay {
		what = "replays"
	}
	fmt.Fprintf(stderr, "hugelab: verify: %d %s, %d of each of %d policies, about %s\n",
		n, what, each, len(plan.Input.Policies), roughly(time.Duration(n)*(p.Recording.Wall+200*time.Millisecond)))
	if err := confirmPolicies(cmd, plan.Input.Policies, p.Sizes, v.yes); err != nil {
		return nil, err
	}
	errFile, _ := stderr.(*os.File)
	if v.show {
		plan.Output = errFile
	}
	if isTerminal(errFile) && !isNull(errFile) && !v.show {
		plan.Progress = func(done, of int, policy string) {
			fmt.Fprintf(stderr, "\r\x1b[Khugelab: run %d of %d: %s", done+1, of, policy)
		}
		defer fmt.Fprint(stderr, "\r\x1b[K")
	}
	return lab.Verify(cmd.Context(), plan)
}

// roughly is a duration for people who want to know whether to wait.
func roughly(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f seconds", max(d.Seconds(), 1))
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}

// confirmPolicies shows every change that the policies make, each once.
func confirmPolicies(cmd *cobra.Command, rows []predict.Named, s mm.Sizes, yes bool) error {
	now, err := readSettings()
	if err != nil {
		return err
	}
	rules, err := mm.RulesFor(kernel.LiveFacts().Release)
	if err != nil {
		return err
	}
	var changes []kernel.Change
	seen := map[string]bool{}
	for i := range rows {
		if rows[i].Hypothetical() || len(rows[i].Lacks) > 0 {
			continue
		}
		want, err := kernel.HostSettings{Policy: rows[i].Policy}.Values(now, s, rules)
		if err != nil {
			return err
		}
		for _, c := range now.Changes(want) {
			if !seen[c.String()] {
				seen[c.String()] = true
				changes = append(changes, c)
			}
		}
	}
	fmt.Fprintln(cmd.ErrOrStderr(),
		"hugelab: verify changes these for the runs, and khugepaged's sleep, and puts them back:")
	return confirm(cmd, changes, yes)
}

func (f *predictFlags) writeVerified(w io.Writer, p *predict.Prediction, v *lab.Verification) error {
	out := verified(v)
	switch {
	case f.json:
		return report.WriteVerifyJSON(w, p, out)
	case f.markdown:
		return report.Verify(w, p, out, report.Markdown)
	}
	return report.Verify(w, p, out, report.Text)
}

// verified is what lab measured, as the report takes it.
func verified(v *lab.Verification) *report.Verified {
	out := &report.Verified{Asked: v.Runs, Interrupted: v.Interrupted, Fixed: v.Fixed, Warm: v.Warm, Replayed: v.Replayed,
		System: v.Times.Known(), OwnFolios: v.OwnFolios(), PeakBy: v.PeakBy(), Notes: v.Notes, NotRun: v.NotRun}
	for i := range v.Cells {
		c := &v.Cells[i]
		m := report.Measured{
			Policy: c.Policy, Runs: len(c.Pairs), Faults: value(c.Faults()), Peak: value(c.Peak()),
			Real: value(c.Real()), User: value(c.User()), System: value(v.System(c)), Unlike: c.Unlike}
		for _, o := range v.SizesUsed(c) {
			m.Folios = append(m.Folios, report.MeasuredFolios{
				Size: v.Sizes.Name(o), MeasuredValue: value(v.Folios(c, o))})
		}
		if len(c.Again) > 0 {
			m.Again = &report.MeasuredAgain{
				Faults: same(c.AAFaults()), Peak: same(c.AAPeak()), System: same(c.AASystem())}
		}
		if len(c.Active) > 0 {
			huge, collapses := v.ActiveFolios(c)
			m.Active = &report.MeasuredActive{
				Faults: value(c.ActiveFaults()), Huge: value(huge), Collapses: collapses.Measured}
		}
		out.Rows = append(out.Rows, m)
	}
	return out
}

func value(v lab.Value) report.MeasuredValue { return report.MeasuredValue(v) }

func same(s lab.SameAgain) report.MeasuredSame { return report.MeasuredSame(s) }
