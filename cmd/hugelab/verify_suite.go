package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/internal/lab"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/internal/record"
	"github.com/hugelab/hugelab/internal/report"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// suitePolicies are what the suite runs under when nothing else is asked for,
// beside now.
const suitePolicies = "16k,64k,256k,1m,thp"

// runSuite is predict --suite.
func (f *predictFlags) runSuite(cmd *cobra.Command, args []string, in predict.Input) error {
	v := &f.verify
	switch {
	case len(args) > 0:
		return usagef("predict: --suite has its own programs: leave %q out", args[0])
	case v.runs < 1 || v.runs > 1000:
		return usagef("predict: --runs %d: want 1 to 1000", v.runs)
	case f.layouts != 0:
		return usagef("predict: --layouts and --suite: a verified run has its own layout; leave one out")
	}
	names, err := lab.SuiteNames(v.only, v.skip)
	if err != nil {
		return usagef("predict: %w", err)
	}
	if err := kernel.CanChange(); err != nil {
		return err
	}
	if method, why := record.Choose(); method != trace.MethodRoot {
		return notHere(fmt.Errorf("predict: --suite records by method root: %s: run as root", why))
	}
	if len(f.policies) == 0 {
		f.policies = []string{suitePolicies}
	}
	begun := time.Now()
	if err := f.confirmSuite(cmd, len(names)); err != nil {
		return err
	}
	in.Limit = kernel.LiveFacts().Limit.Limit
	o := lab.SuiteOptions{Plan: f.plan(in, nil), Input: in, Only: v.only, Skip: v.skip}
	o.Plan.Take = func(context.Context) (*kernel.Session, error) { return f.take(cmd, "predict --suite") }
	o.Policies = f.suiteRows
	o.Tell = func(text string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: %3.0f s: %s\n", time.Since(begun).Seconds(), text)
	}
	all, err := lab.Suite(cmd.Context(), o)
	if err != nil {
		return err
	}
	out := suiteReport(all, v.runs)
	out.Interrupted = cmd.Context().Err() != nil
	switch {
	case f.json:
		err = report.WriteSuiteJSON(cmd.OutOrStdout(), out)
	case f.markdown:
		err = report.VerifySuite(cmd.OutOrStdout(), out, report.Markdown)
	default:
		err = report.VerifySuite(cmd.OutOrStdout(), out, report.Text)
	}
	if err == nil && out.Interrupted {
		err = &exitError{code: 130}
	}
	return err
}

// suiteRows are the policies over the settings now.
func (f *predictFlags) suiteRows(now mm.Policy, s mm.Sizes) ([]predict.Named, error) {
	rules, err := mm.RulesFor(kernel.LiveFacts().Release)
	if err != nil {
		return nil, err
	}
	rows, err := predict.ParsePolicies(f.policies, now, now, rules, s)
	if err != nil {
		return nil, usagef("predict: %w", err)
	}
	return rows, nil
}

// confirmSuite says what is to come and asks.
func (f *predictFlags) confirmSuite(cmd *cobra.Command, programs int) error {
	settings, err := readSettings()
	if err != nil {
		return err
	}
	sizes := kernel.LiveFacts().Sizes
	now, err := settings.Policy(sizes)
	if err != nil {
		return err
	}
	rows, err := f.suiteRows(now, sizes)
	if err != nil {
		return err
	}
	n := programs * len(rows) * f.verify.runs
	fmt.Fprintf(cmd.ErrOrStderr(), "hugelab: suite: %d programs, %d runs under each of %d policies, about %s\n",
		programs, f.verify.runs, len(rows), roughly(time.Duration(n)*3*time.Second))
	return confirmPolicies(cmd, rows, sizes, f.verify.yes)
}

func suiteReport(all []lab.SuiteResult, runs int) *report.Suite {
	facts := kernel.LiveFacts()
	out := &report.Suite{Kernel: facts.Release, CPUs: facts.CPUs, Runs: runs}
	if info, err := kstat.ReadMemInfo(kernel.LiveTree().FS); err == nil {
		out.Memory = uint64(info.Total())
	}
	for i := range all {
		r := &all[i]
		p := report.SuiteProgram{Name: r.Name, Prediction: r.Prediction, Skipped: r.Skipped, Failed: r.Failed}
		if r.Verified != nil {
			p.Verified = verified(r.Verified)
			out.Profile = r.Prediction.Profile
		}
		out.Programs = append(out.Programs, p)
	}
	return out
}
