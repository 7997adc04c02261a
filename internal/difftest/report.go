package difftest

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hugelab/hugelab/mm"
)

// Options say what Check runs.
type Options struct {
	Files    []*Program // these, or generated ones
	Seed     uint64
	Programs int // 0: until Time is over
	Steps    int // at most so many a program
	Time     time.Duration
	Rules    mm.Rules
	Kernel   string    // for the report
	Split    bool      // programs may force splits: the kernel lets them
	Vary     bool      // every program has a machine of its own; the model alone has them
	Paranoid bool      // hold the model to its own invariants after every step
	Show     io.Writer // where pages are shown after every step, nil: nowhere

	ShowMaps bool // show mappings too

	MaxMismatches int // stop after so many, 0: never
	OnMismatch    func(*Mismatch)
	OnProgress    func(*Report)                  // called after every program
	Note          func(string)                   // told what the user should know
	Save          func(*Program, *Answers) error // given the kernel's answers
}

// Mismatch is a program on whose outcome the two sides disagree.
type Mismatch struct {
	From    string `json:"from"`    // the program that showed it
	Program string `json:"program"` // the smallest that shows it still
	Difference
}

// Report is what came of a Check.
type Report struct {
	Kernel     string         `json:"kernel"`
	Seed       uint64         `json:"seed"`
	Programs   int            `json:"programs"`
	Rerun      int            `json:"rerun"`         // differed once: others moved a counter, or it is a mismatch
	Because    map[string]int `json:"rerun_because"` // what differed then
	Steps      int            `json:"steps"`
	Pages      int            `json:"pages_compared"`
	Counters   int            `json:"counters_compared"`
	Unsettled  int            `json:"unsettled"` // never agreed, and never differed in the same way
	Mismatches []Mismatch     `json:"mismatches"`
	Seconds    float64        `json:"seconds"`
	Held       float64        `json:"seconds_holding_settings"` // the rest was waiting for others
	Rate       float64        `json:"programs_per_minute"`      // of that time
	Stats      Stats          `json:"generated"`
}

func newReport(o *Options) *Report {
	r := &Report{Seed: o.Seed, Kernel: o.Kernel, Mismatches: []Mismatch{}, Because: map[string]int{}}
	r.Stats.init()
	return r
}

// time says how long it took since begin; where settings were held, Held is
// known already.
func (r *Report) time(begin time.Time) {
	r.Seconds = time.Since(begin).Seconds()
	if r.Held == 0 {
		r.Held = r.Seconds
	}
	r.Rate = float64(r.Programs) / r.Held * 60
}

// again counts a program that agreed when it was run again.
func (r *Report) again(d *Difference) {
	r.Rerun++
	r.Because[d.What]++
}

func (r *Report) mismatch(o *Options, m *Mismatch) {
	r.Mismatches = append(r.Mismatches, *m)
	if o.OnMismatch != nil {
		o.OnMismatch(m)
	}
}

// enough says whether no more mismatches are wanted.
func (r *Report) enough(o *Options) bool {
	return o.MaxMismatches > 0 && len(r.Mismatches) >= o.MaxMismatches
}

func (r *Report) add(p *Program, out *Outcome) {
	r.Programs++
	r.Steps += out.Steps
	r.Pages += out.Pages
	r.Counters += out.Counters
	r.Stats.add(p, out)
}

// CheckModel runs programs on the model alone: what it finds are expect lines
// that do not hold, and with Paranoid contradictions within the model, which
// are errors.
func CheckModel(ctx context.Context, o Options) (*Report, error) {
	rep := newReport(&o)
	begin := time.Now()
	for n := 0; ctx.Err() == nil && !rep.enough(&o) && !o.done(n, time.Since(begin)); n++ {
		p := o.program(n)
		watch, err := o.watch(p)
		if err != nil {
			return rep, err
		}
		out, err := Judge(p, o.model, nil, watch)
		if err != nil {
			return rep, fmt.Errorf("%w\n%s", err, p)
		}
		rep.add(p, &out)
		if d := out.Difference; d != nil {
			rep.mismatch(&o, &Mismatch{From: p.Name, Program: p.String(), Difference: *d})
		}
	}
	rep.time(begin)
	return rep, nil
}

// model starts the model.
func (o *Options) model(p *Program) (Executor, error) { return NewModel(p, o.Rules, o.Paranoid) }

// done says whether nothing is left to do after n programs and so long.
func (o *Options) done(n int, busy time.Duration) bool {
	switch {
	case len(o.Files) > 0:
		return n >= len(o.Files)
	case o.Time > 0 && busy >= o.Time:
		return true
	}
	return o.Programs > 0 && n >= o.Programs
}

// perPolicy is how many generated programs have one policy: they run together.
const perPolicy = 40

// program is the n-th program.
func (o *Options) program(n int) *Program {
	if len(o.Files) > 0 {
		return o.Files[n]
	}
	group := uint64(n / perPolicy)
	if o.Vary {
		group = uint64(n / 3) // no settings to change
	}
	policy := GeneratePolicy(o.Seed<<20+group, group%4 != 3 && !o.Vary)
	if o.Vary {
		policy = varyPolicy(o.Seed<<20+group, policy)
	}
	p := generate(o.Seed, uint64(n), policy, o.Steps, o.Split, o.Vary)
	if o.Vary {
		p.Machine = generateMachine(o.Seed, uint64(n))
	}
	return p
}

// watch is what Show asks for.
func (o *Options) watch(p *Program) (Watcher, error) {
	if o.Show == nil {
		return nil, nil
	}
	s, err := NewShow(o.Show, p, o.ShowMaps)
	if err != nil {
		return nil, err
	}
	return s.Watch, nil
}
