// Package repro does the published results again in the model, and on the host
// where one can, and lays them beside what was published.
package repro

import (
	"context"

	"github.com/hugelab/hugelab/hw"
)

// Result is one published result and how to get it again. The published
// figures are not here: they stand in published/NAME.yaml and nowhere else,
// and only what prints a report reads them.
type Result struct {
	Name    string // of the file in published/ too
	Machine string // the hw.Machine that it was measured on

	// Model runs the result on a machine. It never sees a published figure. The
	// same Env gives the same Values.
	Model func(Env) (Values, error)

	// Host runs what one thread of real system calls can do of it; nil, or an
	// error that says why not, where the running kernel can't.
	Host func(context.Context) (Values, error)

	// NoHost says why there is no Host, or why it lacks metrics.
	NoHost string

	// Main is the metric whose movement is shown when a fitted constant moves.
	Main string

	Did    string   // what the model does, in one sentence
	Tries  []Try    // runs with a cause of the effect taken away or changed
	Causes []string // what is known of where model and published figures differ
}

// Try is one more run of the model, to show what an effect comes from.
type Try struct {
	What string   // in words
	Set  []string // KEY=VALUE or KEY=*FACTOR
}

// Env is what a model run is given.
type Env struct {
	Machine *hw.Machine
	Seed    uint64

	// MainOnly says that only the result's Main is looked at: the model may
	// leave all else out. Main has the same value either way.
	MainOnly bool
}

// Values are metrics in the order of printing.
type Values []Metric

// Metric is one figure of a result. Names are a contract.
type Metric struct {
	Name  string
	Value float64
}

// Add appends a metric.
func (v *Values) Add(name string, x float64) { *v = append(*v, Metric{name, x}) }

// Get finds a metric.
func (v Values) Get(name string) (float64, bool) {
	for _, m := range v {
		if m.Name == name {
			return m.Value, true
		}
	}
	return 0, false
}

// Results are all published results that the model has, in any order: they are
// printed in the order of Names.
func Results() []Result {
	return append([]Result{
		anonWSeqHugetlb(),
		anonWSeqTHP(),
		anonCowSeq(),
		thpMigration(),
		folioSizes(),
		hvo(),
		gup1G(),
	}, spfResults()...)
}
