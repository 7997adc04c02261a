package predict

import (
	"fmt"
	"slices"

	"github.com/hugelab/hugelab/mm"
)

// spreadFree gives zones of which only the free blocks are known (a file like
// /proc/buddyinfo, without zoneinfo) their share of the machine's memory, by
// their free pages, and at least twice those. Without that a zone would be made
// of its free blocks alone: they would lie side by side and grow together as
// they never do on a host.
func spreadFree(free *mm.FreeState, mem mm.Bytes, s mm.Sizes) *mm.FreeState {
	if free == nil {
		return nil
	}
	out := &mm.FreeState{Zones: slices.Clone(free.Zones)}
	var total float64
	for i := range out.Zones {
		total += float64(freePages(&out.Zones[i]))
	}
	for i := range out.Zones {
		z := &out.Zones[i]
		if n := freePages(z); z.Managed == 0 && n > 0 {
			share := float64(mem/s.Base) * float64(n) / total
			z.Managed = max(mm.Pages(share), 2*n)
		}
	}
	return out
}

// freePages is how many pages the blocks of a zone have.
func freePages(z *mm.FreeZone) (n mm.Pages) {
	for o, k := range z.Blocks {
		n += mm.Pages(k) << o
	}
	return n
}

// checkFree refuses a state with more free memory than any machine has: it
// comes from a file.
func checkFree(free *mm.FreeState, s mm.Sizes) error {
	if free == nil {
		return nil
	}
	total := 0.0
	for _, z := range free.Zones {
		total += float64(z.Managed)
		for o, k := range z.Blocks {
			if o >= mm.NumOrders {
				return fmt.Errorf("memory state: zone %s: blocks of order %d; the largest is %d", z.Name, o, mm.MaxOrder)
			}
			total += float64(k) * float64(mm.Order(o).Pages())
		}
	}
	if total*float64(s.Base) > float64(mostMem) {
		return fmt.Errorf("memory state: %.3g bytes; at most %s make sense", total*float64(s.Base), HumanBytes(mostMem))
	}
	return nil
}
