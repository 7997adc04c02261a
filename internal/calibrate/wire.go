package calibrate

// The helper and hugelab exchange lines of JSON: a hello from the helper, then
// an answer to each order.

// hello is what the helper says of itself.
type hello struct {
	Ballast ballast `json:"ballast"`
	Clock   int64   `json:"clock"`  // ns that timing an empty step shows
	Sampler string  `json:"perf"`   // why perf cannot sample; empty: it can
	Traced  bool    `json:"traced"` // faults can be recorded
	Pinned  int     `json:"pinned"` // the processor that it runs on
	Err     string  `json:"error,omitempty"`
}

// order asks for one workload, by name, repeated.
type order struct {
	Workload string `json:"workload"`
	Times    int    `json:"times"`
}

// answer has one sample of each step for each repetition.
type answer struct {
	Warm  []float64  `json:"warm"` // ns a page that each warm pass took
	Steps [][]sample `json:"steps"`
	Err   string     `json:"error,omitempty"`
}

// sample is one execution of a step. Times are in nanoseconds.
type sample struct {
	CPU    int64 `json:"cpu"` // processor time of the thread, and of children that ended
	Wall   int64 `json:"wall"`
	System int64 `json:"system"` // system and user time as the kernel accounts them, by ticks
	User   int64 `json:"user"`
	Faults int64 `json:"faults"`

	Sampled bool  `json:"sampled"` // perf sampled this one: its times are not used
	InKern  int64 `json:"kernel"`  // samples in kernel mode
	InUser  int64 `json:"outside"` // samples in user mode
}
