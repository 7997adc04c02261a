package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
)

// PredictJSON is a prediction for programs. Its names are a contract: none is
// ever renamed or taken away.
type PredictJSON struct {
	Recording   PredictRecordingJSON   `json:"recording" doc:"what was recorded"`
	Current     string                 `json:"current" doc:"the settings of the row now, as a policy spec"`
	Policies    []PredictPolicyJSON    `json:"policies" doc:"one row a policy; the first is now"`
	Recommended PredictRecommendedJSON `json:"recommended" doc:"the one setting for the goal"`
	Kernel      string                 `json:"kernel" doc:"the kernel version whose rules were applied"`
	Profile     string                 `json:"profile" doc:"the machine profile that priced the work, and its source"`
	Layouts     int                    `json:"layouts" doc:"layouts that the numbers are means of; 0 as recorded"`
	Seed        uint64                 `json:"seed" doc:"seed of the layouts"`
	Notes       []string               `json:"notes" doc:"what the reader must know of this recording"`
	Mappings    []PredictMappingJSON   `json:"mappings,omitempty" doc:"with --by mapping"`
}

// PredictRecordingJSON is what was recorded.
type PredictRecordingJSON struct {
	Command []string `json:"command" doc:"program and arguments"`
	Method  string   `json:"method" doc:"root, perf, pagemap or import"`
	Faults  uint64   `json:"faults" doc:"hardware page faults in the recording"`
	Lost    uint64   `json:"lost" doc:"events that the recording lost"`
	Kernel  string   `json:"kernel" doc:"uname -r where it was made"`

	WallSeconds float64 `json:"wall_seconds" doc:"run time, 0 when not known"`
	CPUSeconds  float64 `json:"cpu_seconds" doc:"user and system time, 0 when not known"`
	AnonShare   float64 `json:"anon_share" doc:"share of the faults that is on private anonymous memory"`
	AnonBytes   uint64  `json:"anon_bytes" doc:"private anonymous memory touched, at its peak under now"`
	FileBytes   uint64  `json:"file_bytes_at_most" doc:"files and shared memory touched, in windows of 16 pages"`
}

// PredictPolicyJSON is one row.
type PredictPolicyJSON struct {
	Name           string            `json:"name" doc:"the policy's name or spec"`
	Faults         uint64            `json:"faults" doc:"hardware page faults, as perf counts them"`
	KernelSeconds  float64           `json:"kernel_seconds" doc:"the program's kernel work for its memory"`
	SystemSeconds  float64           `json:"system_seconds,omitempty" doc:"all system time, for memory or not; absent: not known"`
	ElapsedSeconds float64           `json:"elapsed_seconds,omitempty" doc:"processor time for memory, a hypervisor's too"`
	BackingSeconds float64           `json:"backing_seconds,omitempty" doc:"of it, a hypervisor's search for memory"`
	PeakAnonBytes  uint64            `json:"peak_anon_bytes" doc:"memory in anonymous folios, at most"`
	EndAnonBytes   uint64            `json:"end_anon_bytes" doc:"the same before the last process left"`
	MeanAnonBytes  float64           `json:"mean_anon_bytes" doc:"its mean over time"`
	UntouchedBytes uint64            `json:"untouched_bytes" doc:"of the peak: not known to have been accessed"`
	WorstFaultNs   int64             `json:"worst_fault_ns" doc:"the costliest single fault"`
	Folios         map[string]uint64 `json:"folios" doc:"large folios made by faults and collapses, by size"`
	Coverage       float64           `json:"coverage" doc:"share of memory in large folios, mean over time"`
	Fallbacks      uint64            `json:"fallbacks" doc:"large allocations that failed"`

	SoftFaults        uint64             `json:"soft_faults" doc:"without an exception: populate, mlock"`
	BackgroundSeconds float64            `json:"background_seconds" doc:"khugepaged's work, beside the program"`
	CoverageBySize    map[string]float64 `json:"coverage_by_size" doc:"coverage by size"`
	Killed            bool               `json:"killed" doc:"the program would be killed for want of memory; the row ends there"`
	KilledAtSeconds   float64            `json:"killed_at_seconds,omitempty" doc:"when, after the recording's start"`
	Hypothetical      bool               `json:"hypothetical" doc:"the program itself must advise its memory"`
	Lacks             []string           `json:"lacks,omitempty" doc:"what the kernel lacks for this policy"`
	FaultsRange       []uint64           `json:"faults_range,omitempty" doc:"least and most faults over the layouts"`
	PeakRange         []uint64           `json:"peak_anon_bytes_range,omitempty" doc:"least and most peak over the layouts"`
	KernelRange       []float64          `json:"kernel_seconds_range,omitempty" doc:"least and most kernel time over the layouts"`
	Timeline          []PredictPointJSON `json:"timeline,omitempty" doc:"memory over time"`
	Measured          *MeasuredJSON      `json:"measured,omitempty" doc:"with --verify: the same by real runs"`
	Error             map[string]float64 `json:"error,omitempty" doc:"predicted less measured, by measured; mean of runs"`
}

// PredictPointJSON is memory at one moment.
type PredictPointJSON struct {
	Ns         int64  `json:"ns" doc:"time since the recording's start"`
	AnonBytes  uint64 `json:"anon_bytes" doc:"memory in anonymous folios"`
	LargeBytes uint64 `json:"large_bytes" doc:"of it, in large folios"`
}

// PredictRecommendedJSON is the recommendation.
type PredictRecommendedJSON struct {
	Policy   string   `json:"policy" doc:"a row's name; now means change nothing"`
	Reason   string   `json:"reason" doc:"why, in a sentence"`
	Commands []string `json:"commands" doc:"ways to apply it, narrowest first"`
	Cost     string   `json:"cost" doc:"what it costs, in words"`
}

// PredictMappingJSON is the mappings of one name under one policy.
type PredictMappingJSON struct {
	Mapping        string `json:"mapping" doc:"a file, [heap], [stack] or anonymous"`
	Policy         string `json:"policy" doc:"a row's name"`
	Faults         uint64 `json:"faults" doc:"hardware page faults"`
	AllocatedBytes uint64 `json:"allocated_bytes" doc:"anonymous memory ever allocated for it"`
	UntouchedBytes uint64 `json:"untouched_bytes" doc:"of it, never known to have been accessed"`
}

// WritePredictJSON writes a prediction as JSON.
func WritePredictJSON(w io.Writer, p *predict.Prediction) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(predictJSON(p)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func predictJSON(p *predict.Prediction) *PredictJSON {
	r := &p.Recording
	out := &PredictJSON{
		Recording: PredictRecordingJSON{
			Command: list(r.Command), Method: string(r.Method), Faults: r.Faults, Lost: r.Lost, Kernel: r.Kernel,
			WallSeconds: r.Wall.Seconds(), CPUSeconds: r.CPU.Seconds(), AnonShare: r.AnonShare,
			AnonBytes: uint64(r.AnonBytes), FileBytes: uint64(r.FileBytes),
		},
		Current: p.Current, Kernel: p.Kernel, Profile: p.Profile, Layouts: p.Layouts, Seed: p.Seed, Notes: list(p.Notes),
		Recommended: PredictRecommendedJSON{Commands: []string{}},
	}
	if b := p.Best; b != nil {
		out.Recommended = PredictRecommendedJSON{b.Policy, b.Reason, list(b.Commands), b.Cost}
	}
	for i := range p.Rows {
		out.Policies = append(out.Policies, policyJSON(p, &p.Rows[i]))
	}
	for _, m := range p.Mappings {
		for i, u := range m.By {
			out.Mappings = append(out.Mappings, PredictMappingJSON{
				m.Mapping, p.Rows[i].Name, u.Faults, uint64(u.Allocated), uint64(u.Wasted)})
		}
	}
	return out
}

func policyJSON(p *predict.Prediction, r *predict.Row) PredictPolicyJSON {
	s := p.Sizes
	j := PredictPolicyJSON{
		Name: r.Name, Faults: r.Faults, KernelSeconds: r.Kernel.Seconds(),
		PeakAnonBytes: uint64(r.PeakAnon), EndAnonBytes: uint64(r.EndAnon), MeanAnonBytes: r.MeanAnon,
		UntouchedBytes: uint64(r.Untouched), WorstFaultNs: r.WorstFault.Nanoseconds(),
		Folios: map[string]uint64{}, Coverage: r.Coverage, Fallbacks: r.Fallbacks,
		SoftFaults: r.SoftFaults, BackgroundSeconds: r.Background.Seconds(), CoverageBySize: map[string]float64{},
		Killed: r.Killed(), KilledAtSeconds: r.KilledAt.Seconds(), Hypothetical: r.Hypothetical(), Lacks: r.Lacks,
	}
	if t, ok := p.System(r); ok {
		j.SystemSeconds = t.Seconds()
	}
	j.ElapsedSeconds, j.BackingSeconds = r.Elapsed.Seconds(), r.Backing.Seconds()
	for o, n := range r.Folios {
		if n > 0 {
			j.Folios[s.Name(mm.Order(o))] = n
		}
		if x := r.CoverageBy[o]; x > 0 {
			j.CoverageBySize[s.Name(mm.Order(o))] = x
		}
	}
	if g := r.Spread; g != nil {
		j.FaultsRange = []uint64{g.FaultsMin, g.FaultsMax}
		j.PeakRange = []uint64{uint64(g.PeakMin), uint64(g.PeakMax)}
		j.KernelRange = []float64{g.KernelMin.Seconds(), g.KernelMax.Seconds()}
	}
	for _, x := range r.Timeline {
		j.Timeline = append(j.Timeline, PredictPointJSON{int64(x.When), uint64(x.Anon), uint64(x.Large)})
	}
	return j
}

// list is a, never null.
func list(a []string) []string {
	if a == nil {
		return []string{}
	}
	return a
}
