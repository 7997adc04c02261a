package procfs

import (
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// thpDir is where transparent huge pages are set.
const thpDir = "sys/kernel/mm/transparent_hugepage/"

// choices are the words of a setting in the kernel's order.
//
// Linux: mm/huge_memory.c:enabled_show, anon_enabled_show, defrag_show (v6.18).
func choices(file string) []string {
	switch {
	case file == "enabled":
		return []string{"always", "madvise", "never"}
	case file == "defrag":
		return []string{"always", "defer", "defer+madvise", "madvise", "never"}
	case strings.HasSuffix(file, "/enabled"):
		return []string{"always", "inherit", "madvise", "never"}
	}
	return nil
}

// shown is a setting as the kernel shows it: all words, the chosen one in
// brackets, or the value itself.
func shown(file, value string) string {
	words := choices(file)
	if words == nil {
		return value + "\n"
	}
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w == value {
			w = "[" + w + "]"
		}
		b.WriteString(w)
	}
	b.WriteByte('\n')
	return b.String()
}

// settings are the files of the policy in force, by their path below thpDir.
func (s *state) settings() map[string]string {
	files := s.policy.Files(s.sizes, s.rules)
	for f, v := range files {
		files[f] = shown(f, v)
	}
	return files
}

// setting is the text of one of them.
func setting(file string) func(*state) string {
	return func(s *state) string { return s.settings()[file] }
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) + "\n" }

func number(get func(*state) uint64) func(*state) string {
	return func(s *state) string { return decimal(get(s)) }
}

func counter(c mm.Counter) func(*state) string {
	return func(s *state) string { return decimal(s.counters.Get(c)) }
}

func (s *state) minFreeKB() uint64 { return uint64(s.memory.MinFree) >> 10 }
func (s *state) pmdBytes() uint64  { return uint64(s.sizes.Bytes(s.sizes.PMD)) }

// statNames are the files of hugepages-<k>kB/stats that the model keeps.
var statNames = []struct {
	name string
	get  func(*mm.SizeStats) uint64
}{
	{"anon_fault_alloc", func(s *mm.SizeStats) uint64 { return s.AnonFaultAlloc }},
	{"anon_fault_fallback", func(s *mm.SizeStats) uint64 { return s.AnonFaultFallback }},
	{"anon_fault_fallback_charge", func(s *mm.SizeStats) uint64 { return s.AnonFaultFallbackCharge }},
	{"nr_anon", func(s *mm.SizeStats) uint64 { return s.NrAnon }},
	{"nr_anon_partially_mapped", func(s *mm.SizeStats) uint64 { return s.NrAnonPartiallyMapped }},
	{"split", func(s *mm.SizeStats) uint64 { return s.Split }},
	{"split_deferred", func(s *mm.SizeStats) uint64 { return s.SplitDeferred }},
	{"split_failed", func(s *mm.SizeStats) uint64 { return s.SplitFailed }},
}

// files are all files of a machine with these sizes and rules, by path.
func (s *state) files() map[string]func(*state) string {
	f := map[string]func(*state) string{
		"proc/buddyinfo":                          (*state).buddyinfo,
		"proc/pagetypeinfo":                       (*state).pagetypeinfo,
		"proc/zoneinfo":                           (*state).zoneinfo,
		"proc/vmstat":                             (*state).vmstat,
		"proc/meminfo":                            (*state).meminfo,
		"proc/sys/vm/min_free_kbytes":             number((*state).minFreeKB),
		"sys/kernel/debug/extfrag/unusable_index": (*state).unusableIndex,
		"sys/kernel/debug/extfrag/extfrag_index":  (*state).extfragIndex,
		thpDir + "hpage_pmd_size":                 number((*state).pmdBytes),
		thpDir + "khugepaged/pages_collapsed":     counter(mm.PagesCollapsed),
		thpDir + "khugepaged/full_scans":          counter(mm.FullScans),
	}
	s.addPools(f)
	for file := range s.settings() {
		f[thpDir+file] = setting(file)
	}
	if !s.rules.SizeStats {
		return f
	}
	for _, o := range s.sizes.Orders() {
		for _, n := range statNames {
			if strings.HasPrefix(n.name, "split") && !s.rules.SizeSplitStats {
				continue
			}
			f[thpDir+s.sizes.Dir(o)+"/stats/"+n.name] = func(s *state) string {
				return decimal(n.get(&s.counters.Size[o]))
			}
		}
	}
	return f
}
