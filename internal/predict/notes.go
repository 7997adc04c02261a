package predict

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// NotPredicted is the sentence below every prediction.
const NotPredicted = "user time (TLB) is not predicted; measure it"

// Assumptions are what every prediction takes for granted.
func Assumptions() []string {
	return []string{
		"the program would access the same pages in the same order under every policy",
		"nothing else on the machine competes for memory, and nothing is swapped",
		"kernel time is that of memory alone: faults, clearing, copying, unmapping, the memory calls, " +
			"fork, exec and exit",
		"pages accessed again without a fault are not in a recording: \"untouched\" is an upper bound " +
			"in large folios",
	}
}

// recordingOf sums up a recording that was read to its end.
func recordingOf(r *trace.Reader, replay *trace.Replay, example bool) Recording {
	h, st := &r.Header, replay.Stats()
	rec := Recording{
		Command: h.Command, Method: h.Method, Attached: h.Attached, Kernel: h.Kernel,
		Faults: st.Faults, Lost: st.Lost, Example: example,
	}
	if st.Faults > 0 {
		rec.AnonShare = float64(st.AnonFaults) / float64(st.Faults)
	}
	if f := r.Footer; f != nil {
		rec.Lost = max(rec.Lost, f.Lost)
		rec.Wall, rec.CPU = time.Duration(f.Wall), time.Duration(f.User+f.System)
	}
	return rec
}

// notesOf lists what the reader of a prediction must know of its recording.
func notesOf(r *trace.Reader, replay *trace.Replay) []string {
	st := replay.Stats()
	var notes []string
	if cut, where := r.Cut(); cut {
		notes = append(notes, "the recording is cut off: "+where)
	}
	if r.Header.NoZeroPage {
		notes = append(notes, "its kernel has no zero page: reads take pages of their own there, and a write "+
			"after a read is no fault; with --kernel such writes are missing")
	}
	if r.Header.Attached {
		notes = append(notes,
			"the recording began in a running program: what it did before is only known from its page map")
	}
	if f := r.Footer; f != nil {
		if f.Interrupted {
			notes = append(notes, "the recording was interrupted before the program's end")
		}
		if lost := max(f.Lost, st.Lost); lost > 0 {
			notes = append(notes, fmt.Sprintf("the recording lost %s events", HumanCount(lost)))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(st.UnknownPages)) {
		if n := st.UnknownPages[k]; n > 0 {
			notes = append(notes, fmt.Sprintf("not known: %s (%s pages)", unknownText(k), HumanCount(n)))
		}
	}
	for _, what := range r.Header.CannotKnow {
		notes = append(notes, "not known: "+what)
	}
	if f := r.Footer; f != nil {
		notes = append(notes, f.Notes...)
	}
	notes = append(notes, st.Notes...)
	slices.Sort(notes)
	return slices.Compact(notes)
}

func unknownText(k mm.UnknownKind) string {
	switch k {
	case mm.UnknownOrder:
		return "the order in which pages were touched"
	case mm.UnknownReadFirst:
		return "whether pages were read before they were written"
	case mm.UnknownInHuge:
		return "which pages of huge pages already there were touched"
	case mm.UnknownContent:
		return "what pages held"
	}
	return fmt.Sprintf("kind %d", k)
}

// mappingsOf adds the regions of one name up, the busiest under the first
// track first.
func mappingsOf(tracks []*track, replay *trace.Replay, s mm.Sizes) []MappingUse {
	byName := map[string]*MappingUse{}
	for i, t := range tracks {
		t.machine.Regions(func(r mm.Region, u mm.RegionUsage) {
			name := replay.RegionName(r)
			m := byName[name]
			if m == nil {
				m = &MappingUse{Mapping: name, By: make([]RegionUse, len(tracks))}
				byName[name] = m
			}
			m.By[i].Faults += u.Faults
			m.By[i].Allocated += bytesOf(u.Allocated, s)
			m.By[i].Wasted += bytesOf(u.Allocated-min(u.Touched, u.Allocated), s)
		})
	}
	var all []MappingUse
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, *byName[name])
	}
	slices.SortStableFunc(all, func(a, b MappingUse) int {
		switch {
		case a.By[0].Faults > b.By[0].Faults:
			return -1
		case a.By[0].Faults < b.By[0].Faults:
			return 1
		}
		return 0
	})
	return all
}
