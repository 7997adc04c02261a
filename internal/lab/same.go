package lab

import (
	"fmt"
	"sort"

	"github.com/hugelab/hugelab/mm"
)

// NotSameWork says that a run was not what was recorded, so that nothing can
// be said of the model.
type NotSameWork struct{ Why, Do string }

func (e *NotSameWork) Error() string {
	return "verify: the command did not do the same work as when it was recorded: " + e.Why + ": " + e.Do
}

// What two address spaces of the same program must differ by to tell of other
// work. Both are wide: where a program maps a little more in one run, as threads
// and collectors do, nothing must be said.
const (
	otherShare = 0.25
	otherBytes = mm.Bytes(64 << 20)
)

// byProgram adds up the ends of each program: how many, and their sizes.
func byProgram(ends []End) (n map[string]int, size map[string]mm.Bytes) {
	n, size = map[string]int{}, map[string]mm.Bytes{}
	for _, e := range ends {
		n[e.Program]++
		size[e.Program] += e.Size
	}
	return n, size
}

// unlike says, in a clause, how the processes of a run ended unlike the
// recorded ones: "" where they did not, or not clearly.
func unlike(recorded, run []End) string {
	n0, size0 := byProgram(recorded)
	n1, size1 := byProgram(run)
	var names []string
	for name := range n0 {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		a, b := n0[name], n1[name]
		if d := max(a, b) - min(a, b); d > 1 && float64(d) > otherShare*float64(a) {
			return fmt.Sprintf("%d processes of %s ended, %d when it was recorded", b, name, a)
		}
		s, t := size0[name], size1[name]
		if d := max(s, t) - min(s, t); a == b && d > otherBytes && float64(d) > otherShare*float64(s) {
			return fmt.Sprintf("%s had %d MiB mapped at its end, %d MiB when it was recorded", name, t>>20, s>>20)
		}
	}
	return ""
}
