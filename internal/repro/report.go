package repro

import (
	"fmt"

	"github.com/hugelab/hugelab/internal/report"
)

// Report lays the outcomes beside what was published.
func Report(outs []Outcome, seed uint64) *report.Repro {
	r := &report.Repro{Seed: seed, Results: []report.ReproResult{}}
	for i := range outs {
		r.Results = append(r.Results, outs[i].report())
	}
	return r
}

func (u *Outcome) report() report.ReproResult {
	p := u.Published
	r := report.ReproResult{
		Name: p.Name, Title: p.Title, Source: p.Source(), Kernel: p.Kernel, Workload: p.Workload,
		PublishedMachine: p.Machine, Statistic: p.Statistic, N: p.N,
		Metrics: []report.ReproMetric{}, Notes: append([]string{}, p.Notes...),
		Sensitivity: []report.ReproSensitivity{}, Tries: []report.ReproTry{}, NotReached: []string{},
	}
	if u.Result == nil {
		r.Did = "the model does not have this result"
	} else {
		r.Did, r.Main = u.Result.Did, u.Result.Main
		r.Machine, r.MachineTitle = u.Machine.Name, u.Machine.Title
		for _, v := range u.Machine.Values() {
			if v.Set {
				r.Set = append(r.Set, fmt.Sprintf("%s=%v", v.Key, v.Value))
			}
		}
	}
	u.metrics(&r)
	if u.Result != nil {
		r.NotReached = append(r.NotReached, u.Result.Causes...)
	}
	base, _ := u.Model.Get(r.Main)
	for _, s := range u.Sensitivity {
		r.Sensitivity = append(r.Sensitivity, report.ReproSensitivity{
			Key: s.Key, Value: s.Value, Fitted: s.Fitted, Metric: r.Main, Base: base, Low: s.Low, High: s.High})
	}
	for _, t := range u.Tries {
		r.Tries = append(r.Tries, report.ReproTry{What: t.What, Set: t.Set, Metric: r.Main, Base: base, Value: t.Value})
	}
	return r
}

// metrics fills in the figures: the published ones in their order, behind them
// what only the model has, and at the end what only the host has.
func (u *Outcome) metrics(r *report.ReproResult) {
	for i := range u.Published.Metrics {
		m := &u.Published.Metrics[i]
		out := report.ReproMetric{Name: m.Name, Unit: m.Unit, Published: m.Value, Said: m.Said, From: m.From,
			Withdrawn: m.Withdrawn, Low: m.Low, High: m.High}
		if x, ok := u.Model.Get(m.Name); ok {
			out.Model = &x
			if in, known := m.Reached(x); known {
				out.Reached = &in
			}
			if m.Value != nil && *m.Value != 0 {
				ratio := x / *m.Value
				out.Ratio = &ratio
			}
		}
		r.Metrics = append(r.Metrics, u.withHost(out))
	}
	for _, v := range u.Model {
		if u.Published.metric(v.Name) == nil {
			x := v.Value
			r.Metrics = append(r.Metrics, u.withHost(report.ReproMetric{Name: v.Name, Model: &x}))
		}
	}
	for _, v := range u.Host {
		if _, ok := u.Model.Get(v.Name); !ok && u.Published.metric(v.Name) == nil {
			r.Metrics = append(r.Metrics, u.withHost(report.ReproMetric{Name: v.Name}))
		}
	}
}

func (u *Outcome) withHost(m report.ReproMetric) report.ReproMetric {
	if x, ok := u.Host.Get(m.Name); ok {
		m.Host = &x
	} else {
		m.HostReason = u.HostErr
	}
	return m
}
