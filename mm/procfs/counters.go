package procfs

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// vmstat is /proc/vmstat: the gauges, then the events. What khugepaged counts
// for itself is not in it.
func (s *state) vmstat() string {
	var b strings.Builder
	line := func(name string, n uint64) { fmt.Fprintf(&b, "%s %d\n", name, n) }
	inBlocks := uint64(0)
	for i := range s.memory.Zones {
		inBlocks += s.freeInBlocks(&s.memory.Zones[i])
	}
	line("nr_free_pages", uint64(s.memory.Free))
	line("nr_free_pages_blocks", inBlocks)
	gauges := []mm.Counter{mm.NrMlock, mm.NrAnonPages, mm.NrAnonTHPs, mm.NrPageTablePages, mm.NrHugetlb}
	gauge := map[mm.Counter]bool{mm.PagesCollapsed: true, mm.FullScans: true}
	for _, c := range gauges {
		gauge[c] = true
		line(c.String(), s.counters.Get(c))
	}
	for i := range mm.NumCounters {
		if c := mm.Counter(i); !gauge[c] {
			line(c.String(), s.counters.Get(c))
		}
	}
	return b.String()
}

// meminfo is /proc/meminfo. Linux: fs/proc/meminfo.c:meminfo_proc_show (v6.18).
func (s *state) meminfo() string {
	var b strings.Builder
	line := func(name string, pages uint64) { fmt.Fprintf(&b, "%-16s%8d kB\n", name+":", s.kB(pages)) }
	c := &s.counters
	pmd := uint64(s.sizes.PMD.Pages())
	line("MemTotal", uint64(s.memory.Total))
	line("MemFree", uint64(s.memory.Free))
	line("Mlocked", c.Get(mm.NrMlock))
	line("AnonPages", c.Get(mm.NrAnonPages))
	line("PageTables", c.Get(mm.NrPageTablePages))
	line("AnonHugePages", c.Get(mm.NrAnonTHPs)*pmd)
	s.hugetlbInfo(&b)
	return b.String()
}
