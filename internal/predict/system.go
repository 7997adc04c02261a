package predict

import (
	"fmt"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

/*
System time is what the kernel accounts to a program, for memory or not. The
model knows the part for memory. The rest comes from the recorded run, which
ran without huge pages:

	rest = system time of the recorded run
	       - what recording added to it
	       - the part for memory, as the model has it without huge pages

and is the same under every policy. So where the profile is right the row
"never" is the recorded run again, and every other row is it plus the model's
difference. The profile must be of the machine of the recording.
*/

// restOf is the system time of the recorded run that was not for memory, or
// why it is not known. never is the priced work without huge pages.
func restOf(r *trace.Reader, faults uint64, in *Input, never time.Duration) (time.Duration, string) {
	h, f, made := &r.Header, r.Footer, in.Profile.Made
	switch {
	case made == nil:
		return 0, "the machine profile is a preset: hugelab calibrate"
	case made.Kernel != h.Kernel:
		return 0, fmt.Sprintf("recorded on Linux %s, calibrated on %s", h.Kernel, made.Kernel)
	case f == nil || f.Interrupted || h.Attached || f.System == 0:
		return 0, "the recording does not tell the whole run's system time"
	case h.Method != trace.MethodRoot:
		return 0, fmt.Sprintf("recording by method %s adds too much system time of its own", h.Method)
	}
	traced := in.Profile.Traced * float64(faults)
	return max(0, time.Duration(float64(f.System)-traced)-never), ""
}

// System is all system time that a row would have, as time(1) calls it sys;
// false if only the part for memory is known.
func (p *Prediction) System(r *Row) (time.Duration, bool) {
	if !p.RestKnown || r.Killed() {
		return 0, false
	}
	return r.Kernel + p.Rest, true
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
