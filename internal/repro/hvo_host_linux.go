package repro

import (
	"context"
	"fmt"

	"github.com/hugelab/hugelab/internal/kernel"
)

// hvoRounds is how often the pool of this host is grown and shrunk, each way.
const hvoRounds = 3

// hvoHost grows the pool of this host by 1 GiB and shrinks it again, with and
// without giving struct pages back, and counts the pages that come free.
func hvoHost(ctx context.Context) (Values, error) {
	return withSettings(ctx, "hvo", func(s *kernel.Session) (Values, error) {
		p, err := newHostPool(s)
		if err != nil {
			return nil, err
		}
		return p.growAndShrink()
	})
}

func (p *hostPool) growAndShrink() (Values, error) {
	var grow, shrink [2][]float64
	var freed []float64
	var uncounted error // why pages that come free can't be counted
	for range hvoRounds {
		for i, on := range []bool{false, true} {
			if err := p.optimise(on); err != nil {
				return nil, err
			}
			from, err := vmstat("nr_memmap_pages", "nr_memmap_boot_pages")
			if err != nil {
				uncounted = err
			}
			g, err := p.resize(poolPages)
			if err != nil {
				return nil, err
			}
			to, err := vmstat("nr_memmap_pages", "nr_memmap_boot_pages")
			if on && err == nil {
				freed = append(freed, float64(from-to)/poolPages)
			}
			s, err := p.resize(0)
			if err != nil {
				return nil, err
			}
			grow[i], shrink[i] = append(grow[i], g), append(shrink[i], s)
		}
	}
	var v Values
	if uncounted == nil {
		name := "pages_freed_2m"
		if p.rules.HVOKeepsOne {
			name += "_one_kept"
		}
		v.Add(name, median(freed))
	}
	suffix := ""
	if p.rules.HVOBatched {
		suffix = "_batched"
	}
	addPoolTimes(&v, suffix, [2]float64{median(grow[0]), median(grow[1])},
		[2]float64{median(shrink[0]), median(shrink[1])}, poolPages)
	if _, ok := v.Get("grow_ratio" + suffix); !ok {
		return nil, fmt.Errorf("the clock of this host did not move while the pool grew")
	}
	return v, nil
}
