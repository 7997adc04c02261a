package predict

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// Input is one question to Run.
type Input struct {
	// Open opens the recording from its start; it is called once a layout.
	Open func() (io.ReadCloser, error)

	Policies []Named  // the first is Now
	NowFrom  string   // whose settings Now has, for the report
	Rules    mm.Rules // what the kernel does; Rules.Version "" takes the recording's kernel

	Memory     *mm.FreeState // free memory of a real host, nil for fresh memory
	MemoryName string        // what Memory is, for the report
	Limit      mm.Bytes      // memory cgroup limit, 0 for none
	Profile    *hw.Profile   // nil: the first preset
	Example    bool          // the recording is the embedded one

	Still     bool          // khugepaged never does a pass
	Settle    time.Duration // khugepaged's time after the program's end
	Layouts   int           // address-space layouts, 0 for the recorded one
	Seed      uint64        // of the layouts
	Shift     Shifts        // the layouts themselves, instead of random ones; nil for those
	ByMapping bool
	Timeline  bool // keep the samples

	Goal      Goal
	MaxMemory float64 // how far the peak may rise, 0.05 for 5 %; negative: no bound
}

// Shifts says how far each area of the n-th exec lies from the recorded one in
// a layout. It must be a pure function.
type Shifts func(layout, n int) mm.Shift

// The machine that stands in where a recording does not say what it was made
// on, and the bounds of what is believed of it.
const (
	defaultMem = mm.Bytes(16 << 30)
	leastMem   = mm.Bytes(64 << 20)
	mostMem    = mm.Bytes(64 << 40)
	mostCPUs   = 4096
)

// Run predicts. It reads the recording once a layout and stops with ctx.
func Run(ctx context.Context, in Input) (*Prediction, error) {
	if len(in.Policies) == 0 {
		return nil, fmt.Errorf("predict: no policy given")
	}
	if in.Profile == nil {
		p := hw.Presets()[0]
		in.Profile = &p
	}
	p := &Prediction{
		Profile: in.Profile.Name + " (" + in.Profile.Source + ")",
		Memory:  "fresh", NowFrom: in.NowFrom, Limit: in.Limit, Settle: in.Settle, Seed: in.Seed,
		Assumed: Assumptions(),
	}
	_, p.Preset = hw.Preset(in.Profile.Name)
	p.Preset = p.Preset && strings.HasPrefix(in.Profile.Source, "preset")
	if in.Memory != nil {
		p.Memory = in.MemoryName
	}
	var rows []*rowSum
	for layout := 0; ; layout++ {
		got, more, err := in.pass(ctx, p, layout)
		if err != nil {
			return nil, err
		}
		if rows == nil {
			rows = make([]*rowSum, len(got))
			for i := range rows {
				rows[i] = &rowSum{}
			}
		}
		for i := range got {
			rows[i].add(&got[i])
		}
		if !more {
			break
		}
	}
	for _, r := range rows {
		p.Rows = append(p.Rows, r.mean())
	}
	p.Programs = Programs(p.runtimes)
	if p.Best = Recommend(p, in.Goal, in.MaxMemory); p.Best != nil {
		row, now := p.Row(p.Best.Policy), in.Policies[0].Policy
		p.Best.Commands = Commands(row, now, p.rules, p.Sizes, p.Recording.Command, p.runtimes)
	}
	return p, nil
}

// pass runs the recording once and tells whether another layout follows.
func (in *Input) pass(ctx context.Context, p *Prediction, layout int) (rows []Row, more bool, err error) {
	src, err := in.Open()
	if err != nil {
		return nil, false, err
	}
	defer src.Close()
	r, err := trace.NewReader(src)
	if err != nil {
		return nil, false, err
	}
	cfg, layouts, err := in.machine(p, &r.Header, layout)
	if err != nil {
		return nil, false, err
	}
	replay := trace.NewReplay(r)
	f := feed{stream: replay, settle: mm.Nanos(in.Settle)}
	for i := range in.Policies {
		c := cfg
		c.Policy = in.Policies[i].Policy
		c.Rules = in.Policies[i].rulesFor(c.Rules)
		m, err := mm.New(c)
		if err != nil {
			return nil, false, fmt.Errorf("policy %s: %w", in.Policies[i].Name, err)
		}
		f.tracks = append(f.tracks, &track{machine: m})
	}
	var never *track
	if layout == 0 && in.Profile.Made != nil {
		if never, err = f.neverTrack(in.Policies, cfg, p.Sizes); err != nil {
			return nil, false, err
		}
	}
	if err := f.run(ctx); err != nil {
		return nil, false, fmt.Errorf("recording: %w", err)
	}
	f.tracks = f.tracks[:len(in.Policies)]
	for i, t := range f.tracks {
		rows = append(rows, t.row(&in.Policies[i], in.Profile, p.Sizes, in.Timeline))
	}
	if layout == 0 {
		p.Recording = recordingOf(r, replay, in.Example)
		p.Recording.AnonBytes = rows[0].PeakAnon - rows[0].Untouched
		p.Recording.FileBytes = bytesOf(f.files.most(), p.Sizes)
		p.runtimes = runtimesOf(r.Header.Command, f.files.filesOf(replay.RegionName))
		p.runtimes.NoAdvice = !f.files.huge && !r.Header.Attached
		p.Notes = notesOf(r, replay)
		var base time.Duration
		if never != nil {
			program, _ := never.machine.WorkDone()
			base = time.Duration(in.Profile.PriceSum(program))
		}
		p.Times = systemOf(r, p.Recording.Faults, in, base)
		if in.ByMapping {
			p.Mappings = mappingsOf(f.tracks, replay, p.Sizes)
		}
	}
	return rows, layout+1 < layouts, nil
}

// machine is the machine of one layout, and how many layouts there are. It
// fills in what p says of it.
func (in *Input) machine(p *Prediction, h *trace.Header, layout int) (mm.Config, int, error) {
	sizes, err := mm.SizesOf(mm.Bytes(h.PageSize))
	if err != nil {
		return mm.Config{}, 0, fmt.Errorf("recording: %w", err)
	}
	recorded, recErr := mm.RulesFor(h.Kernel)
	rules := in.Rules
	if rules.Version == "" {
		if recErr != nil {
			return mm.Config{}, 0, fmt.Errorf("recording: %w; say which with --kernel", recErr)
		}
		rules = recorded
		rules.NoZeroPage = h.NoZeroPage
	}
	p.Kernel, p.Sizes, p.rules = rules.Version, sizes, rules
	p.Current = in.Policies[0].Policy.Spec(sizes)

	if err := checkFree(in.Memory, sizes); err != nil {
		return mm.Config{}, 0, err
	}
	cfg := mm.Config{
		Nodes: []mm.Node{{Mem: memoryOf(h)}}, CPUs: min(max(h.CPUs, 1), mostCPUs), BasePage: sizes.Base,
		Rules: rules, Free: spreadFree(in.Memory, memoryOf(h), sizes), Limit: mm.Pages(in.Limit / sizes.Base),
		Seed: in.Seed, ByRegion: in.ByMapping, StopAtOOM: true, Still: in.Still,
	}
	layouts := in.Layouts
	if layouts == 0 && (recErr != nil || rules.AlignTHP != recorded.AlignTHP) {
		layouts = 1
	}
	p.Layouts = layouts
	if layouts == 0 {
		cfg.AsRecorded = true
		return cfg, 1, nil
	}
	if in.Shift != nil {
		cfg.Shift = func(n int) mm.Shift { return in.Shift(layout, n) }
		return cfg, layouts, nil
	}
	v, err := mm.ParseRelease(rules.Version)
	if err != nil {
		return mm.Config{}, 0, err
	}
	cfg.Shift = entropyOf(h.Arch, sizes.Base, v).shifts(in.Seed, layout)
	return cfg, layouts, nil
}

// Machine is the machine that the i-th policy has in the first layout, for a
// recording with this header.
func (in Input) Machine(h *trace.Header, i int) (mm.Config, error) {
	cfg, _, err := in.machine(&Prediction{}, h, 0)
	n := &in.Policies[i]
	cfg.Policy, cfg.Rules = n.Policy, n.rulesFor(cfg.Rules)
	return cfg, err
}

func memoryOf(h *trace.Header) mm.Bytes {
	m := mm.Bytes(h.MemTotal)
	if m < leastMem || m > mostMem {
		return defaultMem
	}
	return m
}

// row reads one machine after the run.
func (t *track) row(n *Named, price *hw.Profile, s mm.Sizes, keep bool) Row {
	m := t.machine
	u := &m.Usage
	program, background := m.WorkDone()
	r := Row{
		Named: *n, Faults: u.Faults, SoftFaults: u.SoftFaults,
		Work:   *program,
		Kernel: time.Duration(price.PriceSum(program)), Background: time.Duration(price.PriceSum(background)),
		Elapsed: time.Duration(price.ElapsedSum(program)), Backing: time.Duration(price.BackingSum(program)),
		PeakAnon: bytesOf(u.AnonPeak, s), EndAnon: bytesOf(t.end.Anon, s),
		Untouched: bytesOf(u.UntouchedAtPeak, s), Fallbacks: u.Fallbacks, OOM: u.OOM,
	}
	if r.Killed() {
		// All faults of the operation after the first that found nothing fail as
		// well: the program would not have come to them.
		r.Faults -= min(r.Faults, u.OOM-1)
		r.OOM, r.Kills, r.KilledAt = 1, 1, time.Duration(t.killed)
	}
	worst := m.WorstFaults()
	for o := range worst {
		r.WorstFault = max(r.WorstFault, time.Duration(price.Price(&worst[o])))
	}
	for o := 1; o < mm.NumOrders; o++ {
		r.Folios[o] = m.Counters.Size[o].AnonFaultAlloc
	}
	r.Folios[s.PMD] += program[mm.PrimCollapse] + background[mm.PrimCollapse]
	r.Coverage, r.CoverageBy = t.samples.coverage()
	if t.before.Last > 0 {
		r.MeanAnon = t.before.Integral / (float64(t.before.Last) / 1e9) * float64(s.Base)
	}
	if keep {
		for i := range t.samples {
			x := &t.samples[i]
			r.Timeline = append(r.Timeline, Sample{x.when, bytesOf(x.anon, s), bytesOf(x.anon-x.byOrder[0], s)})
		}
	}
	return r
}

// rowSum adds rows of several layouts up to their mean and range.
type rowSum struct {
	n     int
	first Row
	sum   Row
	rng   Spread
}

func (a *rowSum) add(r *Row) {
	if a.n++; a.n == 1 {
		a.first, a.sum = *r, *r
		a.rng = Spread{r.Faults, r.Faults, r.Kernel, r.Kernel, r.PeakAnon, r.PeakAnon}
		return
	}
	s := &a.sum
	for i, n := range r.Work {
		s.Work[i] += n
	}
	s.Faults += r.Faults
	s.SoftFaults += r.SoftFaults
	s.Kernel += r.Kernel
	s.Background += r.Background
	s.Elapsed += r.Elapsed
	s.Backing += r.Backing
	s.WorstFault = max(s.WorstFault, r.WorstFault)
	s.PeakAnon += r.PeakAnon
	s.EndAnon += r.EndAnon
	s.MeanAnon += r.MeanAnon
	s.Untouched += r.Untouched
	s.Coverage += r.Coverage
	s.Fallbacks += r.Fallbacks
	if s.OOM += r.OOM; r.Killed() && (s.Kills == 0 || r.KilledAt < s.KilledAt) {
		s.KilledAt = r.KilledAt
	}
	s.Kills += r.Kills
	for o := range s.Folios {
		s.Folios[o] += r.Folios[o]
		s.CoverageBy[o] += r.CoverageBy[o]
	}
	g := &a.rng
	g.FaultsMin, g.FaultsMax = min(g.FaultsMin, r.Faults), max(g.FaultsMax, r.Faults)
	g.KernelMin, g.KernelMax = min(g.KernelMin, r.Kernel), max(g.KernelMax, r.Kernel)
	g.PeakMin, g.PeakMax = min(g.PeakMin, r.PeakAnon), max(g.PeakMax, r.PeakAnon)
}

// MeanRow is one policy's row over several layouts, with their range; rows must
// not be empty.
func MeanRow(rows []Row) Row {
	var sum rowSum
	for i := range rows {
		sum.add(&rows[i])
	}
	return sum.mean()
}

// mean is the row over all layouts. The worst fault is the worst of all, and
// the timeline is the first layout's; a program killed under any layout is
// killed.
func (a *rowSum) mean() Row {
	if a.n == 1 {
		return a.first
	}
	n, r := uint64(a.n), a.sum
	r.Faults = (r.Faults + n/2) / n
	r.SoftFaults = (r.SoftFaults + n/2) / n
	r.Kernel /= time.Duration(n)
	r.Background /= time.Duration(n)
	r.Elapsed /= time.Duration(n)
	r.Backing /= time.Duration(n)
	r.PeakAnon /= mm.Bytes(n)
	r.EndAnon /= mm.Bytes(n)
	r.MeanAnon /= float64(n)
	r.Untouched /= mm.Bytes(n)
	r.Coverage /= float64(n)
	r.Fallbacks = (r.Fallbacks + n/2) / n
	for o := range r.Folios {
		r.Folios[o] = (r.Folios[o] + n/2) / n
		r.CoverageBy[o] /= float64(n)
	}
	r.Spread = &a.rng
	return r
}
