package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/internal/record"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/scripts/suite"
	"github.com/hugelab/hugelab/trace"
)

// SuiteNames lists the programs of the suite that only and skip leave; no only
// is all. A name that is none of theirs is an error.
func SuiteNames(only, skip []string) ([]string, error) {
	for _, n := range slices.Concat(only, skip) {
		if _, err := suite.Script(n); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, n := range suite.Names {
		if (len(only) == 0 || slices.Contains(only, n)) && !slices.Contains(skip, n) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("suite: no program is left")
	}
	return names, nil
}

// Program is one of the suite, with its input made.
type Program struct {
	Name    string
	Command []string
	dir     string
}

// MissingError says which programs a suite program needs that are not there.
type MissingError struct {
	Name  string
	Needs []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s: not installed: %s", e.Name, strings.Join(e.Needs, ", "))
}

// MakeProgram makes the input of a suite program below a new temporary
// directory. What it needs and is not there is a *MissingError.
func MakeProgram(ctx context.Context, name string) (*Program, error) {
	text, err := suite.Script(name)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hugelab-suite-")
	if err != nil {
		return nil, fmt.Errorf("suite: %w", err)
	}
	p := &Program{Name: name, dir: dir}
	if err := p.make(ctx, text); err != nil {
		p.Remove()
		return nil, err
	}
	return p, nil
}

func (p *Program) make(ctx context.Context, text []byte) error {
	if err := os.WriteFile(p.script(), text, 0o600); err != nil {
		return fmt.Errorf("suite: %w", err)
	}
	needs, err := p.ask(ctx, "needs")
	if err != nil {
		return err
	}
	var missing []string
	for _, n := range needs {
		if _, err := exec.LookPath(n); err != nil {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		return &MissingError{p.Name, missing}
	}
	for _, verb := range []string{"make", "prepare"} {
		if _, err := p.ask(ctx, verb); err != nil {
			return err
		}
	}
	p.Command, err = p.ask(ctx, "command")
	if err == nil && len(p.Command) == 0 {
		err = fmt.Errorf("suite: %s: its script names no command", p.Name)
	}
	return err
}

func (p *Program) script() string { return filepath.Join(p.dir, "suite.sh") }

// Prepare is the command that undoes what a run left.
func (p *Program) Prepare() []string { return []string{"sh", p.script(), "prepare", p.dir} }

// ask runs the script and gives its lines.
func (p *Program) ask(ctx context.Context, verb string) ([]string, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", p.script(), verb, p.dir)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("suite: %s: %s: %w: %s", p.Name, verb, err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' }), nil
}

// Remove takes the program's files away.
func (p *Program) Remove() { os.RemoveAll(p.dir) }

// SuiteOptions say how the suite is run.
type SuiteOptions struct {
	Plan     Plan // without Command, Input, Prepare and Session
	Input    predict.Input
	Policies func(now mm.Policy, s mm.Sizes) ([]predict.Named, error)
	Only     []string
	Skip     []string
	Tell     func(text string) // what is being done; may be nil
}

// SuiteResult is one program of the suite.
type SuiteResult struct {
	Name       string
	Command    []string
	Prediction *predict.Prediction // nil where it did not come to one
	Verified   *Verification
	Skipped    string // why it was not run, "" if it was
	Failed     string // what ended it early
}

// Suite records, predicts and runs every program. With ctx done it gives what
// there is so far.
func Suite(ctx context.Context, o SuiteOptions) ([]SuiteResult, error) {
	names, err := SuiteNames(o.Only, o.Skip)
	if err != nil {
		return nil, err
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	var all []SuiteResult
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		r := SuiteResult{Name: name}
		err := o.program(ctx, &r)
		var missing *MissingError
		switch {
		case ctx.Err() != nil && !r.Verified.HasRuns():
			continue
		case errors.As(err, &missing):
			r.Skipped = missing.Error()
			o.Tell("skipped: " + r.Skipped)
		case errors.Is(err, record.ErrNotHere) || errors.Is(err, kernel.ErrNotHere):
			return all, err
		case err != nil:
			r.Failed = err.Error()
			o.Tell("failed: " + name + ": " + r.Failed)
		}
		all = append(all, r)
	}
	return all, nil
}

func (o *SuiteOptions) program(ctx context.Context, r *SuiteResult) error {
	o.Tell(r.Name + ": making its input")
	prog, err := MakeProgram(ctx, r.Name)
	if err != nil {
		return err
	}
	defer prog.Remove()
	r.Command = prog.Command
	o.Tell(r.Name + ": recording")
	file := filepath.Join(prog.dir, "suite.hlr")
	if err := recordTo(ctx, file, prog); err != nil {
		return err
	}
	in := o.Input
	in.Open = func() (io.ReadCloser, error) { return os.Open(file) }
	if err := o.settings(ctx, &in); err != nil {
		return err
	}
	if r.Prediction, err = predict.Run(ctx, in); err != nil {
		return err
	}
	p := o.Plan
	p.Command, p.Input, p.Prepare = prog.Command, in, prog.Prepare()
	p.Peak = func(policy string) mm.Bytes { return r.Prediction.Row(policy).PeakAnon }
	o.Tell(fmt.Sprintf("%s: %d runs under each of %d policies", r.Name, p.Runs, len(in.Policies)))
	r.Verified, err = Verify(ctx, p)
	if r.Verified != nil {
		r.Verified.Merge(r.Prediction)
	}
	return err
}

// settings reads those in force, while nobody else changes them.
func (o *SuiteOptions) settings(ctx context.Context, in *predict.Input) error {
	s, err := o.Plan.Take(ctx)
	if err != nil {
		return err
	}
	sizes := s.Sizes()
	now, err := s.Before().Policy(sizes)
	if err = errors.Join(err, s.Restore()); err != nil {
		return err
	}
	in.Policies, err = o.Policies(now, sizes)
	return err
}

// recordTo records a program by method root, the only one that sees all. A run
// before it brings its files into the page cache, and its memory into use.
func recordTo(ctx context.Context, file string, prog *Program) error {
	before := exec.CommandContext(ctx, prog.Command[0], prog.Command[1:]...)
	if err := before.Run(); err != nil {
		return fmt.Errorf("suite: %s: %w", prog.Name, err)
	}
	if _, err := prog.ask(ctx, "prepare"); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("suite: %w", err)
	}
	defer out.Close()
	o := record.Options{Command: prog.Command, Method: trace.MethodRoot, Quiet: true}
	w, err := trace.NewWriter(out, record.Header(o, trace.MethodRoot))
	if err != nil {
		return fmt.Errorf("suite: %w", err)
	}
	o.Out = w
	footer, err := record.Run(ctx, o)
	if cerr := w.Close(footer); err == nil && cerr != nil {
		err = fmt.Errorf("suite: %w", cerr)
	}
	switch {
	case err != nil:
		return err
	case footer.Exit != 0:
		return fmt.Errorf("suite: %s: ended with exit code %d", prog.Name, footer.Exit)
	case footer.Lost > 0:
		return fmt.Errorf("suite: %s: %d events of the recording were lost: run it on a quieter machine",
			prog.Name, footer.Lost)
	}
	return nil
}
