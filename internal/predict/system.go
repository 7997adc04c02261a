package predict

import (
	"fmt"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

/*
System time is what the kernel accounts to a program, for memory or not. The
model knows the part for memory. The recorded run, which ran without huge
pages, tells the rest:

	recorded = system time of the recorded run, less what recording added to it
	model    = the part for memory, as the model has it without huge pages
	scale    = recorded / model, but not beyond mostScale either way
	rest     = recorded - scale * model, at least 0

	system(policy) = scale * model(policy) + rest

A difference of up to mostScale is taken for one of price: in a program with
caches and neighbours of its own memory management costs other than in a
calibration. What is more was spent on other things, and is the same under
every policy. The profile must be of the machine of the recording.
*/

// mostScale is how far a program's prices are believed to lie from the
// profile's. In gcc, sort and a Python program 4 to 10 % of kernel time, by
// samples, was not for memory; the same program's kernel time differed by more
// than that with what else ran.
const mostScale = 1.25

// SystemTime is how a recorded run's system time divides.
type SystemTime struct {
	Scale   float64       // of the profile's prices in this program; 0: all this is not known
	Rest    time.Duration // spent on other things than memory
	Unknown string        // why all this is not known
}

// systemOf divides the system time of a recorded run. never is the priced work
// without huge pages.
func systemOf(r *trace.Reader, faults uint64, in *Input, never time.Duration) SystemTime {
	h, f, made := &r.Header, r.Footer, in.Profile.Made
	switch {
	case made == nil:
		return SystemTime{Unknown: "the machine profile is a preset: hugelab calibrate"}
	case made.Kernel != h.Kernel:
		return SystemTime{Unknown: fmt.Sprintf("recorded on Linux %s, calibrated on %s", h.Kernel, made.Kernel)}
	case f == nil || f.Interrupted || h.Attached || f.System == 0 || never == 0:
		return SystemTime{Unknown: "the recording does not tell the whole run's system time"}
	case h.Method != trace.MethodRoot:
		return SystemTime{Unknown: fmt.Sprintf("recording by method %s adds too much system time", h.Method)}
	}
	recorded := max(0, float64(f.System)-in.Profile.Traced*float64(faults))
	return Divide(time.Duration(recorded), never)
}

// Divide divides the system time of a run without huge pages, of which the model
// has so much for memory.
func Divide(measured, model time.Duration) SystemTime {
	if model <= 0 {
		return SystemTime{Unknown: "the model has no time for memory"}
	}
	s := SystemTime{Scale: min(max(float64(measured)/float64(model), 1/mostScale), mostScale)}
	s.Rest = max(0, measured-time.Duration(s.Scale*float64(model)))
	return s
}

// Known says whether System tells anything.
func (s *SystemTime) Known() bool { return s.Scale > 0 }

// System is all system time that a row would have, as time(1) calls it sys;
// false if only the part for memory is known. What a hypervisor takes to find
// memory is in the row as it is: recorded runs have none of it.
func (p *Prediction) System(r *Row) (time.Duration, bool) {
	if !p.Times.Known() || r.Killed() {
		return 0, false
	}
	return p.Times.Of(r), true
}

// Of is all system time of a row.
func (s *SystemTime) Of(r *Row) time.Duration {
	return time.Duration(s.Scale*float64(r.Kernel-r.Backing)) + r.Backing + s.Rest
}

// plain says that a row runs the program without huge pages, as recordings do.
func (n *Named) plain() bool { return !n.Policy.AnyEnabled() && !n.Hypothetical() }

// neverTrack is the track without huge pages: a row's, or one more.
func (f *feed) neverTrack(policies []Named, cfg mm.Config, s mm.Sizes) (*track, error) {
	for i := range policies {
		if policies[i].plain() {
			return f.tracks[i], nil
		}
	}
	cfg.Policy = mm.NeverPolicy(s)
	m, err := mm.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("policy never: %w", err)
	}
	t := &track{machine: m}
	f.tracks = append(f.tracks, t)
	return t, nil
}
