package repro

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hugelab/hugelab/hw"
)

// ErrUsage is a mistake in what Options ask for.
var ErrUsage = errors.New("usage")

// Options say what Run does.
type Options struct {
	Names   []string // of results; none: all
	Machine string   // of hw's machines, for every result; "": each its own
	Set     []string // KEY=VALUE or KEY=*FACTOR
	Seed    uint64
	Host    bool // run what the host can do too
}

// Outcome is one result, done again.
type Outcome struct {
	Published *Published
	Result    *Result // nil: the model does not have it
	Machine   *hw.Machine
	Model     Values
	Host      Values
	HostErr   string // why the metrics that Host lacks are not there

	Sensitivity []Sensitivity
	Tries       []Tried
}

// Sensitivity is how far the result's main metric moves with one fitted number
// of the machine.
type Sensitivity struct {
	Key       string
	Value     float64
	Fitted    string // what it was fitted to
	Low, High float64
}

// The factors of a Sensitivity.
const (
	lowFactor  = "*0.7"
	highFactor = "*1.3"
)

// Tried is the main metric of a Try.
type Tried struct {
	Try
	Value float64
}

// job is one run of a model; what it gives goes to out.
type job struct {
	result *Result
	env    Env
	out    func(Values) error
}

// Run does the results again. Models run on all processors, and then, one
// after another, what the host can do.
func Run(ctx context.Context, o Options) ([]Outcome, error) {
	names := o.Names
	if len(names) == 0 {
		names = Names()
	}
	outs := make([]Outcome, len(names))
	var jobs []job
	for i, n := range names {
		p, err := LoadPublished(n)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUsage, err)
		}
		outs[i].Published = p
		if outs[i].Result = find(n); outs[i].Result == nil {
			continue
		}
		more, err := outs[i].plan(&o)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, more...)
	}
	if err := runAll(ctx, jobs); err != nil {
		return nil, err
	}
	for i := range outs {
		outs[i].host(ctx, o.Host)
	}
	return outs, ctx.Err()
}

// find is the result of that name; nil when the model does not have it.
func find(name string) *Result {
	all := Results()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// plan chooses the machine and lists the runs of one result.
func (u *Outcome) plan(o *Options) ([]job, error) {
	name := o.Machine
	if name == "" {
		name = u.Result.Machine
	}
	m, err := hw.LoadMachine(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if m, err = with(m, o.Set); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	u.Machine = m
	jobs := []job{{u.Result, Env{Machine: m, Seed: o.Seed}, func(v Values) error { u.Model = v; return nil }}}
	add := func(m *hw.Machine, to *float64) {
		env := Env{Machine: m, Seed: o.Seed, MainOnly: true}
		jobs = append(jobs, job{u.Result, env, func(v Values) (err error) {
			*to, err = v.main(u.Result.Main)
			return err
		}})
	}
	fitted := m.Fitted()
	u.Sensitivity = make([]Sensitivity, len(fitted))
	for i, key := range fitted {
		s := &u.Sensitivity[i]
		s.Key, s.Value, s.Fitted = key, m.Get(key), fittedTo(m, key)
		low, err1 := m.With(key, lowFactor)
		high, err2 := m.With(key, highFactor)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		add(low, &s.Low)
		add(high, &s.High)
	}
	u.Tries = make([]Tried, len(u.Result.Tries))
	for i, t := range u.Result.Tries {
		u.Tries[i].Try = t
		changed, err := with(m, t.Set)
		if err != nil {
			return nil, fmt.Errorf("result %s: %w", u.Result.Name, err)
		}
		add(changed, &u.Tries[i].Value)
	}
	return jobs, nil
}

// main is the metric of that name, which must be there and a number.
func (v Values) main(name string) (float64, error) {
	x, ok := v.Get(name)
	if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("metric %q: the model did not give a number", name)
	}
	return x, nil
}

func fittedTo(m *hw.Machine, key string) string {
	for _, v := range m.Values() {
		if v.Key == key {
			return v.Fitted
		}
	}
	return ""
}

// with changes numbers of a machine: KEY=VALUE or KEY=*FACTOR.
func with(m *hw.Machine, set []string) (*hw.Machine, error) {
	for _, s := range set {
		key, to, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("machine %s: %q: want KEY=VALUE or KEY=*FACTOR", m.Name, s)
		}
		var err error
		if m, err = m.With(strings.TrimSpace(key), strings.TrimSpace(to)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// runAll runs the jobs on all processors. Each has a place of its own to
// write to, so that their order decides nothing.
func runAll(ctx context.Context, jobs []job) error {
	errs := make([]error, len(jobs))
	var next atomic.Int32
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) || ctx.Err() != nil {
					return
				}
				v, err := jobs[i].result.Model(jobs[i].env)
				if err == nil {
					err = jobs[i].out(v)
				}
				if err != nil {
					errs[i] = fmt.Errorf("result %s: %w", jobs[i].result.Name, err)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// host runs what the host can do of a result.
func (u *Outcome) host(ctx context.Context, asked bool) {
	switch {
	case u.Result == nil:
		u.HostErr = "the model does not have this result"
	case u.Result.Host == nil:
		u.HostErr = u.Result.NoHost
		if u.HostErr == "" {
			u.HostErr = "no run on a host is written for it"
		}
	case !asked:
		u.HostErr = "not asked for"
	default:
		v, err := u.Result.Host(ctx)
		u.Host, u.HostErr = v, u.Result.NoHost
		if u.HostErr == "" {
			u.HostErr = "the host's run does not measure it"
		}
		if err != nil {
			u.HostErr = err.Error()
		}
	}
}
