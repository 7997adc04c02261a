package repro

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// A recorded make: scripts/make-folio-recording.sh.
var (
	//go:embed recording/make.hlr
	makeRecording []byte
	//go:embed recording/make.yaml
	makeFacts []byte
)

// recordedMake is what was measured of the make where it was recorded, run by
// itself with pages of 4 kB.
type recordedMake struct {
	Command    string  `yaml:"command"`
	Host       string  `yaml:"host"`
	UserSecs   float64 `yaml:"user_seconds"`
	SystemSecs float64 `yaml:"system_seconds"`
	PeakBytes  float64 `yaml:"peak_bytes"`  // of its memory cgroup
	OtherCalls float64 `yaml:"other_calls"` // system calls that are none of memory's, nor process control
}

// folioSizes is a compile with anonymous folios of each size.
func folioSizes() Result {
	return Result{
		Name: "folio-sizes", Machine: "altra", Main: "kernel_time_64k_percent", Model: folioModel,
		Did: "the recording of a make -j2 of two libraries of git, replayed with the rules of Linux 6.5 and folios " +
			"of one size, 32 kB below it, and 4 kB, over 3 random layouts; its other system calls were counted " +
			"where it was recorded, and its user time is taken to stay as it was; touch_kernel_time: writing " +
			"once to each page of 32 MB in a loop",
		Host: folioHost,
		NoHost: "a make needs the compiler and the source: scripts/make-folio-recording.sh fetches it, " +
			"scripts/measure-folio-sizes.sh measures it",
		Tries: []Try{
			{"faults as cheap as one after another", []string{"kernel.cold=0"}},
			{"no other system calls", []string{"syscall=0"}},
			{"entering the kernel costs nothing", []string{"work.fault_user=0", "work.fault_kernel=0", "kernel.cold=0"}},
		},
		Causes: folioCauses,
	}
}

// folioCauses are what is known of figures that the model does not reach.
var folioCauses = []string{
	"real time falls by a fraction of the published: the user time beside it is that of the recording's host, a " +
		"busy virtual machine that accounts its hypervisor's work on page tables as the program's, and is several times " +
		"that of the published machine",
	"user time is not modelled: what it saved there is fewer TLB misses and colder caches after fewer faults",
	"pages of 16k save more than published, and those above 64k no more than 64k: of this make's faults a " +
		"larger share lies in runs of 4 pages or more",
	"peak memory rises where the published fell by less than its own spread: the make's processes are smaller " +
		"than a kernel build's, so that what the last folio of each mapping wastes is a larger share",
	"what a fault and a call cost on this machine is not measured: the prices are those of preset metal, and " +
		"the cold entry and the other calls are estimates",
}

// folioRow is one policy.
type folioRow struct {
	name, spec string
	pages      int64 // in a folio of that size, 0 where there is none
}

// folioPages are the pages of the published machine.
var folioPages = mm.Sizes{Base: 4096, PMD: 9}

// folioRules are those of the kernel that the series was based on, and the
// series.
func folioRules() (mm.Rules, error) {
	rules, err := mm.RulesFor("6.5")
	rules.MTHP = true
	return rules, err
}

// folioLayouts is how many layouts each figure is the mean of.
const folioLayouts = 3

// folioRows are the policies: the sizes, each with the order below which the
// series did not fall back step by step (PAGE_ALLOC_COSTLY_ORDER), then how the
// global setting mixes huge pages in.
var folioRows = []folioRow{
	{"4k", "never", 1}, {"16k", "16k", 4}, {"32k", "32k", 8}, {"64k", "64k+32k", 16}, {"128k", "128k+32k", 32},
	{"256k", "256k+32k", 64},
	{"never", "never,64k=inherit,2m=inherit,enabled=never", 0},
	{"madvise", "never,64k=inherit,2m=inherit,enabled=madvise", 0},
	{"always", "never,64k=inherit,2m=inherit,enabled=always", 0},
}

// folioModel prices the replays of the recording under every policy.
func folioModel(e Env) (Values, error) {
	var facts recordedMake
	if err := yaml.UnmarshalWithOptions(makeFacts, &facts, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	runs, err := replays(e.Seed)
	if err != nil {
		return nil, err
	}
	price := foldedCosts(e.Machine)
	seconds := func(r *predict.Row) float64 { return float64(price.PriceSum(&r.Work)) / 1e9 }
	other := facts.OtherCalls * e.Machine.Get("syscall") / 1e9
	base := meanOf(runs, 0, seconds)
	kernel := base.mean + other
	anon := func(r *predict.Row) float64 { return float64(r.PeakAnon) }
	baseAnon := meanOf(runs, 0, anon).mean
	peak := max(facts.PeakBytes, baseAnon)
	faults := func(r *predict.Row) float64 { return float64(r.Faults) }
	baseFaults := meanOf(runs, 0, faults).mean
	var v Values
	var at64 float64
	for i, row := range folioRows[1:6] {
		s := meanOf(runs, i+1, seconds)
		change := 100 * (s.mean - base.mean) / kernel
		if row.name == "64k" {
			at64 = change
		}
		v.Add("kernel_time_"+row.name+"_percent", change)
		v.Add("kernel_time_"+row.name+"_spread_points", 100*(s.most-s.least)/kernel)
		v.Add("real_time_"+row.name+"_percent", 100*(s.mean-base.mean)/(kernel+facts.UserSecs))
		v.Add("peak_memory_"+row.name+"_percent", 100*(meanOf(runs, i+1, anon).mean-baseAnon)/peak)
		v.Add("faults_"+row.name+"_percent", 100*(meanOf(runs, i+1, faults).mean/baseFaults-1))
	}
	for _, row := range []string{"128k", "256k"} {
		x, _ := v.Get("kernel_time_" + row + "_percent")
		v.Add("kernel_time_"+row+"_over_64k_points", x-at64)
	}
	v.Add("kernel_time_4k_ms", 1000*kernel)
	v.Add("memory_share_of_kernel_time", base.mean/kernel)
	for i, row := range folioRows[6:] {
		r := &runs[0].Rows[i+6]
		v.Add("folios_64k_enabled_"+row.name, float64(r.Folios[4]))
		v.Add("folios_2m_enabled_"+row.name, float64(r.Folios[9]))
	}
	if e.MainOnly {
		return v, nil
	}
	return v, touchModel(e.Machine, &v)
}

// spread is a figure over the layouts.
type spread struct{ mean, least, most float64 }

// meanOf takes a figure of one row over the layouts.
func meanOf(runs []*predict.Prediction, row int, of func(*predict.Row) float64) spread {
	var s spread
	for i, p := range runs {
		x := of(&p.Rows[row])
		s.mean += x / float64(len(runs))
		if i == 0 {
			s.least, s.most = x, x
		}
		s.least, s.most = min(s.least, x), max(s.most, x)
	}
	return s
}

// replays are the recording's replays, one a layout. What a program makes the
// kernel do does not depend on what it costs, so that every machine shares
// them.
func replays(seed uint64) ([]*predict.Prediction, error) {
	run := sync.OnceValues(func() ([]*predict.Prediction, error) { return replayAll(seed) })
	r, _ := replayed.LoadOrStore(seed, run)
	return r.(func() ([]*predict.Prediction, error))()
}

var replayed sync.Map // by seed

func replayAll(seed uint64) (runs []*predict.Prediction, err error) {
	for layout := range uint64(folioLayouts) {
		p, err := replayMake(seed*folioLayouts + layout)
		if err != nil {
			return nil, err
		}
		runs = append(runs, p)
	}
	return runs, nil
}

// replayMake runs the recording in one layout, under the rules that the series
// was based on.
func replayMake(seed uint64) (*predict.Prediction, error) {
	rules, err := folioRules()
	if err != nil {
		return nil, err
	}
	in := predict.Input{
		Open:  func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(makeRecording)), nil },
		Rules: rules, Layouts: 1, Seed: seed,
	}
	for _, r := range folioRows {
		pol, err := r.policy()
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", r.name, err)
		}
		in.Policies = append(in.Policies, predict.Named{Name: r.name, Policy: pol})
	}
	return predict.Run(context.Background(), in)
}

// foldedCosts are the machine's prices with what belongs to a fault folded in:
// clearing at the machine's rate, and the cold entry into the kernel.
func foldedCosts(m *hw.Machine) *hw.Profile {
	p := m.Costs()
	page := m.Get("page.size") / m.Get("clear.rate")
	for _, c := range []mm.Prim{mm.PrimClearSmall, mm.PrimClearLarge, mm.PrimClearPMD} {
		p.Nanos[c] = page
	}
	for _, f := range []mm.Prim{mm.PrimFaultUser, mm.PrimFaultKernel, mm.PrimFaultFile} {
		p.Nanos[f] += coldEntry(m)
	}
	return p
}

// coldEntry is what entering the kernel by a fault costs a program at work,
// beyond what it costs one that does nothing but fault: between two faults the
// program's own code and data took the first-level caches.
func coldEntry(m *hw.Machine) float64 { return m.Get("kernel.cold") * m.Get("l2.latency") }
