package procfs

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// typeNames are the migrate types of a 6.18 kernel without CMA. The model has
// the first three.
var typeNames = [...]string{"Unmovable", "Movable", "Reclaimable", "HighAtomic", "Isolate"}

// freeCap is where the kernel stops counting a list in pagetypeinfo.
const freeCap = 100000

// buddyinfo is /proc/buddyinfo. Linux: mm/vmstat.c:frag_show_print (v6.18).
func (s *state) buddyinfo() string {
	var b strings.Builder
	for _, z := range s.memory.Zones {
		fmt.Fprintf(&b, "Node %d, zone %8s ", z.Node, z.Name)
		for _, n := range z.Blocks {
			fmt.Fprintf(&b, "%6d ", n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// pagetypeinfo is /proc/pagetypeinfo. Linux: mm/vmstat.c:pagetypeinfo_show (v6.18).
func (s *state) pagetypeinfo() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Page block order: %d\nPages per block:  %d\n\n", s.sizes.PMD, s.sizes.PMD.Pages())
	fmt.Fprintf(&b, "%-43s ", "Free pages count per migrate type at order")
	if len(s.memory.Zones) > 0 {
		for o := range s.memory.Zones[0].Blocks {
			fmt.Fprintf(&b, "%6d ", o)
		}
	}
	b.WriteByte('\n')
	for _, z := range s.memory.Zones {
		for t, name := range typeNames {
			fmt.Fprintf(&b, "Node %4d, zone %8s, type %12s ", z.Node, z.Name, name)
			for o := range z.Blocks {
				writeCapped(&b, typeCount(&z, t, o))
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "\n%-23s", "Number of blocks type ")
	for _, name := range typeNames {
		fmt.Fprintf(&b, "%12s ", name)
	}
	b.WriteByte('\n')
	for _, z := range s.memory.Zones {
		fmt.Fprintf(&b, "Node %d, zone %8s ", z.Node, z.Name)
		for t := range typeNames {
			n := uint64(0)
			if t < len(z.Pageblocks) {
				n = z.Pageblocks[t]
			}
			fmt.Fprintf(&b, "%12d ", n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func typeCount(z *mm.ZoneMemory, t, o int) uint64 {
	if t >= len(z.ByType) || o >= len(z.ByType[t]) {
		return 0
	}
	return z.ByType[t][o]
}

func writeCapped(b *strings.Builder, n uint64) {
	if n >= freeCap {
		fmt.Fprintf(b, ">%6d ", freeCap)
		return
	}
	fmt.Fprintf(b, "%6d ", n)
}

// zoneinfo is /proc/zoneinfo. Linux: mm/vmstat.c:zoneinfo_show_print (v6.18).
func (s *state) zoneinfo() string {
	var b strings.Builder
	for i := range s.memory.Zones {
		z := &s.memory.Zones[i]
		fmt.Fprintf(&b, "Node %d, zone %8s\n", z.Node, z.Name)
		fmt.Fprintf(&b, "  pages free     %d\n", z.Free)
		for _, l := range []struct {
			name string
			n    mm.Pages
		}{
			{"boost", 0}, {"min", z.Min}, {"low", z.Low}, {"high", z.High}, {"promo", z.Promo},
			{"spanned", z.Managed}, {"present", z.Managed}, {"managed", z.Managed},
		} {
			fmt.Fprintf(&b, "        %-8s %d\n", l.name, l.n)
		}
		p := z.Protection
		fmt.Fprintf(&b, "        protection: (%d, %d, %d, %d)\n", p[0], p[1], p[2], p[3])
		fmt.Fprintf(&b, "      %-12s %d\n", "nr_free_pages", z.Free)
		fmt.Fprintf(&b, "      %-12s %d\n", "nr_free_pages_blocks", s.freeInBlocks(z))
		b.WriteString("  pagesets\n")
		for cpu, p := range z.PageSets {
			fmt.Fprintf(&b, "    cpu: %d\n              count:    %d\n              high:     %d\n"+
				"              batch:    %d\n              high_min: %d\n              high_max: %d\n",
				cpu, p.Count, p.High, p.Batch, p.HighMin, p.HighMax)
		}
		fmt.Fprintf(&b, "  start_pfn:           %d\n", z.Start)
	}
	return b.String()
}

// freeInBlocks is the free pages in blocks of at least a pageblock.
func (s *state) freeInBlocks(z *mm.ZoneMemory) (n uint64) {
	for o := int(s.sizes.PMD); o < len(z.Blocks); o++ {
		n += z.Blocks[o] << o
	}
	return n
}

// indices is a file of /sys/kernel/debug/extfrag: an index by zone and order in
// thousandths. Linux: mm/vmstat.c:unusable_show_print, extfrag_show_print (v6.18).
func (s *state) indices(format string, of func(z *mm.ZoneMemory) []int) string {
	var b strings.Builder
	for i := range s.memory.Zones {
		z := &s.memory.Zones[i]
		fmt.Fprintf(&b, "Node %d, zone %8s ", z.Node, z.Name)
		for _, v := range of(z) {
			fmt.Fprintf(&b, format, v/1000, v%1000)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *state) unusableIndex() string {
	return s.indices("%d.%03d ", func(z *mm.ZoneMemory) []int { return z.Unusable })
}

func (s *state) extfragIndex() string {
	return s.indices("%2d.%03d ", func(z *mm.ZoneMemory) []int { return z.FragReason })
}
