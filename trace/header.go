package trace

import "github.com/hugelab/hugelab/mm"

// Method is how a recording was made.
type Method string

// The methods.
const (
	MethodRoot    Method = "root"    // perf tracepoints: every fault and every memory call
	MethodPerf    Method = "perf"    // software page-fault event, seccomp stops, page map for kernel-mode faults
	MethodPagemap Method = "pagemap" // seccomp stops and the page map alone
	MethodImport  Method = "import"  // text of perf script
)

// Header opens a recording: what was run, where and how.
type Header struct {
	Version  int               `json:"version"`
	Tool     string            `json:"tool"`
	Command  []string          `json:"command"`
	Method   Method            `json:"method"`
	Attached bool              `json:"attached,omitempty"` // --pid: the beginning is missing
	Kernel   string            `json:"kernel"`             // uname -r
	Arch     string            `json:"arch"`               // uname -m
	PageSize int               `json:"page_size"`
	CPUs     int               `json:"cpus"`
	MemTotal uint64            `json:"mem_total_bytes"`
	Start    string            `json:"start"`              // RFC 3339, UTC
	TimeUnit mm.Nanos          `json:"time_unit_ns"`       // events' times are whole multiples of it; 0 lets NewWriter choose
	Settings map[string]string `json:"settings,omitempty"` // THP settings of the host, by file below transparent_hugepage
	// NoZeroPage: reads of untouched memory got pages of their own there, so
	// that the writes after them are in no recording.
	NoZeroPage bool     `json:"no_zero_page,omitempty"`
	Limit      uint64   `json:"memory_limit_bytes,omitempty"` // of the cgroup, 0 none
	StackLimit uint64   `json:"stack_limit_bytes,omitempty"`  // RLIMIT_STACK, 0 unlimited or unknown
	CannotKnow []string `json:"cannot_know,omitempty"`        // what this method could not see, in sentences
}

// Footer ends a recording that was not cut off.
type Footer struct {
	Events      uint64   `json:"events"`
	Faults      uint64   `json:"faults"`
	Lost        uint64   `json:"lost"`
	Exit        int      `json:"exit"` // COMMAND's exit code, 128+n by a signal
	Wall        mm.Nanos `json:"wall_ns"`
	User        mm.Nanos `json:"user_ns"`         // of COMMAND and what it waited for
	System      mm.Nanos `json:"system_ns"`       // recording it included
	MaxRSS      uint64   `json:"max_rss_bytes"`   // the largest process, 0 unknown: less than the recorder itself took
	Notes       []string `json:"notes,omitempty"` // what happened that a reader should know
	Interrupted bool     `json:"interrupted,omitempty"`
}
