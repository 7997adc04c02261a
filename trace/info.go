package trace

import (
	"fmt"
	"io"

	"github.com/hugelab/hugelab/mm"
)

// Info is what a recording holds, in numbers.
type Info struct {
	Header        Header            `json:"header"`
	Footer        *Footer           `json:"footer,omitempty"` // nil when it was cut off
	Cut           string            `json:"cut,omitempty"`    // how it was cut off
	Bytes         int64             `json:"bytes"`
	Events        uint64            `json:"events"`
	Kinds         map[string]uint64 `json:"kinds"` // events by Kind
	Faults        uint64            `json:"faults"`
	KernelFaults  uint64            `json:"kernel_mode_faults"`
	OtherFaults   uint64            `json:"other_faults"` // that only the kernel's counter saw
	FoundPages    uint64            `json:"found_pages"`  // that a page map told and no fault event
	Lost          uint64            `json:"lost"`
	First         mm.Nanos          `json:"first_ns"` // time of the first event
	Last          mm.Nanos          `json:"last_ns"`
	BytesPerFault float64           `json:"bytes_per_fault"` // of the whole file, 0 without faults
	Processes     int               `json:"processes"`
	Threads       int               `json:"threads"`
	Programs      []string          `json:"programs,omitempty"` // distinct programs that were executed, in order
	Notes         []string          `json:"notes,omitempty"`    // of the recorder, in order
}

const maxPrograms = 1000

// ReadInfo reads a whole recording from its start. With an error, the Info is
// of what was read before it.
func ReadInfo(r io.Reader) (Info, error) {
	tr, err := NewReader(r)
	if err != nil {
		return Info{}, err
	}
	in := Info{Header: tr.Header, Kinds: map[string]uint64{}}
	var kinds [NumKinds]uint64
	processes, threads := map[int32]bool{}, map[int32]bool{}
	programs, notes := map[string]bool{}, map[string]bool{}
	var e Event
	var last int32
	for {
		if err = tr.Next(&e); err != nil {
			break
		}
		if in.Events == 0 {
			in.First, in.Last = e.When, e.When
		}
		in.Events++
		kinds[e.Kind]++
		in.First, in.Last = min(in.First, e.When), max(in.Last, e.When)
		if e.TID != last && e.TID != 0 {
			last = e.TID
			threads[e.TID], processes[e.PID] = true, true
		}
		switch e.Kind {
		case KindFault:
			in.Faults++
			if e.Access&mm.KernelMode != 0 {
				in.KernelFaults++
			}
		case KindOtherFaults:
			in.OtherFaults += e.A
		case KindResident:
			in.FoundPages += e.B
		case KindLost:
			in.Lost += e.A
		case KindExec:
			in.Programs = once(in.Programs, programs, e.Name)
		case KindNote:
			in.Notes = once(in.Notes, notes, e.Name)
		}
	}
	for k, n := range kinds {
		if n > 0 {
			in.Kinds[Kind(k).String()] = n
		}
	}
	in.Footer, in.Bytes = tr.Footer, tr.Offset()
	_, in.Cut = tr.Cut()
	in.Processes, in.Threads = len(processes), len(threads)
	all := in.Faults + in.OtherFaults
	if !in.Header.Attached {
		all += in.FoundPages
	}
	if all > 0 {
		in.BytesPerFault = float64(in.Bytes) / float64(all)
	}
	if tr.Footer != nil {
		for _, n := range tr.Footer.Notes {
			in.Notes = once(in.Notes, notes, n)
		}
	}
	if err != io.EOF {
		return in, fmt.Errorf("after %d events: %w", in.Events, err)
	}
	return in, nil
}

// once adds s to list unless it is there already.
func once(list []string, seen map[string]bool, s string) []string {
	if seen[s] || len(seen) >= maxPrograms {
		return list
	}
	seen[s] = true
	return append(list, s)
}
