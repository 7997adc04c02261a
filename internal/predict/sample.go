package predict

import "github.com/hugelab/hugelab/mm"

// maxSamples bounds a timeline. When it is full every second sample goes and
// the interval doubles, so that any length of run fits and the samples stay
// evenly spaced.
const maxSamples = 512

// firstInterval is the spacing that a timeline starts with.
const firstInterval mm.Nanos = 100_000

// clock says when machines are to be sampled. It depends on the operations
// alone, so that all machines of a run are sampled at the same moments.
type clock struct {
	interval mm.Nanos
	next     mm.Nanos
	taken    int
}

func newClock() clock { return clock{interval: firstInterval, next: firstInterval} }

// due says whether a sample must be taken before an operation at when. The
// caller takes one and calls tick until it is false.
func (c *clock) due(when mm.Nanos) bool { return c.next > 0 && when >= c.next }

// tick moves on after a sample. thin is true when every second sample has to
// go.
func (c *clock) tick() (thin bool) {
	c.taken++
	if c.taken == maxSamples {
		c.taken /= 2
		c.interval *= 2
		thin = true
	}
	c.next = mm.Nanos(c.taken+1) * c.interval
	return thin
}

// usageSample is what a timeline keeps of mm.Usage.
type usageSample struct {
	when    mm.Nanos
	anon    mm.Pages
	byOrder [mm.NumOrders]mm.Pages
}

// timeline is the samples of one machine.
type timeline []usageSample

// take adds a sample; thin as clock.tick said.
func (t *timeline) take(when mm.Nanos, u *mm.Usage, thin bool) {
	*t = append(*t, usageSample{when, u.Anon, u.ByOrder})
	if !thin {
		return
	}
	kept := (*t)[:0]
	for i := 1; i < len(*t); i += 2 {
		kept = append(kept, (*t)[i])
	}
	*t = kept
}

// coverage is the share of memory in large folios over the whole timeline,
// all together and by order; zero without memory.
func (t timeline) coverage() (all float64, by [mm.NumOrders]float64) {
	var total float64
	for i := range t {
		total += float64(t[i].anon)
		for o := 1; o < mm.NumOrders; o++ {
			by[o] += float64(t[i].byOrder[o])
		}
	}
	if total == 0 {
		return 0, by
	}
	for o := range by {
		by[o] /= total
		all += by[o]
	}
	return all, by
}
