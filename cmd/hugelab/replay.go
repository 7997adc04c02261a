package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/internal/difftest"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// runReplay is predict [FILE] --verify --replay: the recording's operations are
// done on this kernel, by helpers instead of the program.
func (f *predictFlags) runReplay(cmd *cobra.Command, args []string, in predict.Input) error {
	v := &f.verify
	switch {
	case cmd.ArgsLenAtDash() >= 0 || len(args) > 1:
		return usagef("predict: --replay runs no program: give a recording FILE and no COMMAND")
	case v.runs < 1 || v.runs > 1000:
		return usagef("predict: --runs %d: want 1 to 1000", v.runs)
	case f.kernel != "":
		return usagef("predict: --replay and --kernel: the kernel is this host's; leave one out")
	case v.khugepaged || v.prepare != "" || v.input != "":
		return usagef("predict: --replay has no program to wait for: leave out --khugepaged, --prepare and --input")
	}
	if err := canReplay(); err != nil {
		return err
	}
	src, err := f.source(cmd, args)
	if err != nil {
		return err
	}
	defer src.done()
	in.Open, in.Example = src.open, src.example
	if in.Rules, err = hostRules(); err != nil {
		return err
	}
	few := len(f.policies) == 0
	if len(f.policies) == 1 && f.policies[0] == "all" {
		f.policies = nil
	}
	take := func(context.Context) (*kernel.Session, error) {
		return f.take(cmd, "predict --verify --replay")
	}
	if err := f.hostUnheld(cmd.Context(), take, &in, src); err != nil {
		return err
	}
	p, err := predict.Run(cmd.Context(), in)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	if few {
		in.Policies = fewRows(in.Policies, p)
	}
	plan := f.plan(in, nil)
	plan.Replay = true
	if !cmd.Flags().Changed("runs") {
		v.runs, plan.Runs = 1, 1 // nothing in it is chance
	}
	plan.Take = take
	result, err := f.measure(cmd, plan, p)
	if err != nil && !result.HasRuns() {
		return err
	}
	result.Merge(p)
	err = errors.Join(err, f.writeVerified(cmd.OutOrStdout(), p, result))
	if err == nil && result.Interrupted {
		err = &exitError{code: 130}
	}
	return err
}

// hostUnheld is host while nobody else has settings of their own.
func (f *predictFlags) hostUnheld(ctx context.Context, take func(context.Context) (*kernel.Session, error),
	in *predict.Input, src *predictSource) error {
	s, err := take(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f.host(in, src), s.Restore())
}

// canReplay says why no recording can be replayed here.
func canReplay() error {
	if err := difftest.Available(); err != nil {
		return notHere(err)
	}
	return kernel.CanChange()
}

// hostRules are those of this host's kernel, with what was probed.
func hostRules() (mm.Rules, error) {
	r, err := mm.RulesFor(kernel.LiveFacts().Release)
	r.NoZeroPage = kernel.NoZeroPage()
	return r, err
}
