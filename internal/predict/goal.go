package predict

import (
	"fmt"
	"time"

	"github.com/hugelab/hugelab/mm"
)

// Goal says what a recommendation is for.
type Goal uint8

// Goals.
const (
	GoalTime    Goal = iota // least kernel time
	GoalMemory              // least memory at peak
	GoalLatency             // least worst fault
)

var goalNames = [...]string{"time", "memory", "latency"}

// String is the goal's name on the command line.
func (g Goal) String() string { return goalNames[g] }

// ParseGoal reads a goal's name.
func ParseGoal(s string) (Goal, error) {
	for i, n := range goalNames {
		if n == s {
			return Goal(i), nil
		}
	}
	return 0, fmt.Errorf("goal: %q: want time, memory or latency", s)
}

// Recommendation is one setting, and why.
type Recommendation struct {
	Policy   string // a row's name; Now: change nothing
	Reason   string // one sentence
	Cost     string // what it costs, one sentence; empty when nothing
	Program  bool   // the program itself must do it: the policy is hypothetical
	Commands []string
}

// Thresholds of Recommend. They are deliberately plain: below them a
// difference is not worth a change of settings.
const (
	leastGain     = 0.01 // of the run's processor time, or of peak memory
	leastLatency  = 0.10 // of the worst fault
	sameGain      = 0.10 // gains this close to the best count as equal
	tolerableLoss = 0.01 // of processor time, when memory or latency is the goal
)

// Recommend chooses one row for a goal. maxMemory is how far the peak may lie
// above that of now, 0.05 for 5 %; negative means without bound.
//
// Rows that would be killed or that the kernel lacks are never chosen, and
// neither is a row that gains less than its threshold: then the answer is to
// change nothing. Among rows whose gains are nearly equal the one with the
// least memory wins, a setting before a change of the program, and then the
// order of the table.
func Recommend(p *Prediction, goal Goal, maxMemory float64) *Recommendation {
	now := p.Now()
	if now == nil {
		return nil
	}
	pick := selection{now: now, whole: p.Recording.Whole(), goal: goal, bound: maxMemory, preset: p.Preset}
	var best *Row
	for i := range p.Rows {
		r := &p.Rows[i]
		if r != now && pick.allowed(r) && (best == nil || pick.gain(r) > pick.gain(best)) {
			best = r
		}
	}
	if best == nil || !now.Killed() && pick.gain(best) < pick.least() {
		return pick.nothing(best)
	}
	for i := range p.Rows {
		if r := &p.Rows[i]; r != now && pick.allowed(r) && pick.simpler(r, best) {
			best = r
		}
	}
	return &Recommendation{
		Policy: best.Name, Reason: pick.reason(best), Cost: pick.cost(best), Program: best.Hypothetical(),
	}
}

// selection is one question: now, the goal and the bounds.
type selection struct {
	now   *Row
	whole time.Duration
	goal  Goal
	bound float64

	preset bool // the prices were not measured on this machine
}

// saved is the processor time that r saves against now, as a share of the run.
func (s *selection) saved(r *Row) float64 {
	if s.whole <= 0 {
		return 0
	}
	return float64(s.now.Kernel-r.Kernel) / float64(s.whole)
}

// gain is what the goal asks for, as a share: of the run, of peak memory or of
// the worst fault.
//
// The rows then compare with each other even where now ends in a kill.
func (s *selection) gain(r *Row) float64 {
	switch s.goal {
	case GoalMemory:
		return fallen(float64(s.now.PeakAnon), float64(r.PeakAnon))
	case GoalLatency:
		return fallen(float64(s.now.WorstFault), float64(r.WorstFault))
	}
	return s.saved(r)
}

func (s *selection) least() float64 {
	if s.goal == GoalLatency {
		return leastLatency
	}
	return leastGain
}

// allowed says whether r may be recommended at all.
func (s *selection) allowed(r *Row) bool {
	if r.Killed() || len(r.Lacks) > 0 {
		return false
	}
	if s.bound >= 0 && !s.now.Killed() && float64(r.PeakAnon) > float64(s.now.PeakAnon)*(1+s.bound) {
		return false
	}
	return s.goal == GoalTime || s.now.Killed() || s.saved(r) >= -tolerableLoss
}

// simpler says whether r should be taken instead of best although it gains a
// little less.
func (s *selection) simpler(r, best *Row) bool {
	if s.gain(r) < s.gain(best)*(1-sameGain) || s.gain(r) < s.least() && !s.now.Killed() {
		return false
	}
	if r.Hypothetical() != best.Hypothetical() {
		return best.Hypothetical()
	}
	return r.PeakAnon < best.PeakAnon
}

// nothing is the answer when no change is worth it.
func (s *selection) nothing(best *Row) *Recommendation {
	rec := &Recommendation{Policy: Now}
	bound := ""
	if s.bound >= 0 {
		bound = fmt.Sprintf(" with at most %s more memory", percent(s.bound))
	}
	switch {
	case s.now.Killed():
		rec.Reason = "the program would be killed with the present settings and with every other policy tried"
	case s.goal == GoalMemory:
		rec.Reason = fmt.Sprintf("change nothing: under %s of peak memory to gain", percent(leastGain))
	case s.goal == GoalLatency:
		rec.Reason = fmt.Sprintf("change nothing: the worst fault gets at most %s shorter", percent(leastLatency))
	case s.whole <= 0:
		rec.Reason = "change nothing: the recording does not say how long the run took"
	default:
		rec.Reason = fmt.Sprintf("change nothing: under %s to gain", percent(leastGain))
	}
	if best != nil && s.gain(best) > 0 && !s.now.Killed() {
		rec.Reason += fmt.Sprintf(" (the best, %s, gains %s%s)", best.Name, percent(s.gain(best)), s.unless(best))
	}
	if best == nil && bound != "" && !s.now.Killed() {
		rec.Reason = "change nothing: no other policy can be had" + bound
	}
	return rec
}

// dearFault is what a fault costs at most on machines that people have: where
// a hypervisor keeps shadow page tables. It is a bound on what is worth saying,
// and prices nothing.
const dearFault = 20 * time.Microsecond

// unless says how much a fault would have to cost for r to be worth it, where
// the prices are not this machine's own.
func (s *selection) unless(r *Row) string {
	if !s.preset || s.goal != GoalTime || s.whole <= 0 || r.Faults >= s.now.Faults {
		return ""
	}
	saved := float64(s.now.Faults - r.Faults)
	missing := time.Duration((leastGain - s.gain(r)) * float64(s.whole) / saved)
	if missing <= 0 || missing > dearFault {
		return ""
	}
	return fmt.Sprintf("; %s where a fault costs %s more than in this profile, as in some virtual machines",
		percent(leastGain), HumanTime(missing))
}

// reason is why r was chosen.
func (s *selection) reason(r *Row) string {
	var text string
	if s.now.Killed() {
		text = fmt.Sprintf("with the present settings the program would be killed; "+
			"with %s it ends, and takes %s at peak", r.Name, HumanBytes(r.PeakAnon))
		if r.Hypothetical() {
			text += "; the program itself must advise its memory, no setting does it"
		}
		return text
	}
	switch s.goal {
	case GoalMemory:
		text = fmt.Sprintf("%s needs %s less memory at peak", r.Name, percent(s.gain(r)))
	case GoalLatency:
		text = fmt.Sprintf("%s makes the worst fault %s shorter", r.Name, percent(s.gain(r)))
	default:
		text = fmt.Sprintf("%s saves %s of the run: %s faults, %s kernel time",
			r.Name, percent(s.gain(r)),
			moved(fallen(float64(s.now.Faults), float64(r.Faults)), "fewer"),
			moved(fallen(float64(s.now.Kernel), float64(r.Kernel)), "less"))
	}
	if r.Hypothetical() {
		text += "; the program itself must advise its memory, no setting does it"
	}
	return text
}

// moved says a share with its direction; less is the word for a fall.
func moved(fall float64, less string) string {
	if fall < 0 {
		return percent(-fall) + " more"
	}
	return percent(fall) + " " + less
}

// cost is what r costs in the two things that were not the goal.
func (s *selection) cost(r *Row) string {
	if s.now.Killed() {
		return "" // there is nothing whole to compare with
	}
	var parts []string
	if d := -fallen(float64(s.now.PeakAnon), float64(r.PeakAnon)); s.goal != GoalMemory && d > 0.0005 {
		more := HumanBytes(r.PeakAnon - s.now.PeakAnon)
		parts = append(parts, fmt.Sprintf("%s more memory at peak (%s)", percent(d), more))
	}
	if d := -s.saved(r); s.goal != GoalTime && d > 0.0005 {
		parts = append(parts, fmt.Sprintf("%s of the run in kernel time", percent(d)))
	}
	if s.goal != GoalLatency && r.WorstFault > s.now.WorstFault {
		parts = append(parts, fmt.Sprintf("a worst fault of %s instead of %s",
			HumanTime(r.WorstFault), HumanTime(s.now.WorstFault)))
	}
	return join(parts)
}

// fallen is by what share to lies below from; negative when above.
func fallen(from, to float64) float64 {
	if from == 0 {
		if to == 0 {
			return 0
		}
		return -1
	}
	return (from - to) / from
}

// join makes a list of parts a clause.
func join(parts []string) string {
	out := ""
	for i, p := range parts {
		switch {
		case i == 0:
		case i == len(parts)-1:
			out += " and "
		default:
			out += ", "
		}
		out += p
	}
	return out
}

// bytesOf is n pages of the base page that s describes.
func bytesOf(n mm.Pages, s mm.Sizes) mm.Bytes { return mm.Bytes(n) * s.Base }
