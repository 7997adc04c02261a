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
}

func (v *verifyFlags) flags(fl *pflag.FlagSet) {
	fl.BoolVar(&v.on, "verify", false, "then run COMMAND for real under now, never and the best, and compare")
	fl.IntVar(&v.runs, "runs", 5, "with --verify, run each policy `N` times")
	fl.StringVar(&v.prepare, "prepare", "", "with --verify, do the shell `COMMAND` before each run")
	fl.StringVar(&v.input, "input", "", "with --verify, COMMAND's standard input `FILE`")
	fl.BoolVar(&v.fixed, "no-aslr", false, "with --verify, run at addresses that are not randomised")
	fl.BoolVar(&v.show, "show-output", false, "with --verify, show COMMAND's output on stderr")
	fl.BoolVarP(&v.yes, "yes", "y", false, "with --verify, change the machine's settings without asking")
	fl.DurationVar(&v.wait, "wait", time.Minute, "with --verify, wait `TIME` for who holds the settings")
}

// runVerify is predict --verify: record, predict, run for real, compare.
func (f *predictFlags) runVerify(cmd *cobra.Command, args []string, in predict.Input) error {
	v := &f.verify
	switch {
	case cmd.ArgsLenAtDash() != 0 || len(args) == 0:
		return usagef("predict: --verify runs a program: give -- and a COMMAND")
	case v.runs < 1 || v.runs > 1000:
		return usagef("predict: --runs %d: want 1 to 1000", v.runs)
	case f.layouts != 0:
		return usagef("predict: --layouts and --verify: a verified run has its own layout; leave one out")
	}
	if err := kernel.CanChange(); err != nil {
		return err
	}
	all := len(f.policies) == 1 && f.policies[0] == "all"
	few := len(f.policies) == 0
	if all {
		f.policies = nil
	}
	src, err := f.recordQuietly(cmd, args)
	if err != nil {
		return err
	}
	defer src.done()
	in.Open = src.open
	// From here on: the settings now are ours to read, and nobody else's for a moment.
	ctx, stop := context.WithTimeout(cmd.Context(), v.wait)
	s, err := kernel.Take(ctx, sessionOptions(cmd, "predict --verify -- "+quoted(args)))
	stop()
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
	result, err := f.measure(cmd, s, args, in, p, src)
	if rerr := s.Restore(); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if err != nil && (result == nil || !hasRuns(result)) {
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
// have: what a program does depends on both.
func (f *predictFlags) recordQuietly(cmd *cobra.Command, args []string) (*predictSource, error) {
	v := &f.verify
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
	return f.source(cmd, args)
}

// measure says what is to come, asks, and runs.
func (f *predictFlags) measure(cmd *cobra.Command, s *kernel.Session, args []string, in predict.Input,
	p *predict.Prediction, src *predictSource) (*lab.Verification, error) {
	v, stderr := &f.verify, cmd.ErrOrStderr()
	n := len(in.Policies) * v.runs
	fmt.Fprintf(stderr, "hugelab: verify: %d runs, %d of each of %d policies, about %s\n",
		n, v.runs, len(in.Policies), roughly(time.Duration(n)*(p.Recording.Wall+50*time.Millisecond)))
	if err := confirmPolicies(cmd, in.Policies, p.Sizes, v.yes); err != nil {
		return nil, err
	}
	plan := lab.Plan{
		Command: args, Exit: src.exit, Input: in, Runs: v.runs, Seed: f.seed, Prepare: v.prepare, Stdin: v.input,
		Fixed: v.fixed, Session: s,
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

func hasRuns(v *lab.Verification) bool {
	for _, c := range v.Cells {
		if len(c.Pairs) > 0 {
			return true
		}
	}
	return false
}

func (f *predictFlags) writeVerified(w io.Writer, p *predict.Prediction, v *lab.Verification) error {
	out := &report.Verified{Asked: v.Runs, Interrupted: v.Interrupted, Fixed: v.Fixed, PeakBy: lab.PeakBy,
		Notes: v.Notes, NotRun: v.NotRun}
	for i := range v.Cells {
		c := &v.Cells[i]
		real, user, system := c.Times()
		out.Rows = append(out.Rows, report.Measured{
			Policy: c.Policy, Runs: len(c.Pairs), Faults: value(c.Faults()), Peak: value(c.Peak()),
			Real: value(real), User: value(user), System: value(system)})
	}
	switch {
	case f.json:
		return report.WriteVerifyJSON(w, p, out)
	case f.markdown:
		return report.Verify(w, p, out, report.Markdown)
	}
	return report.Verify(w, p, out, report.Text)
}

func value(v lab.Value) report.MeasuredValue { return report.MeasuredValue(v) }
