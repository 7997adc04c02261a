package mm

import "strings"

// VMAFlags are flags of a mapping that /proc/PID/smaps shows too.
type VMAFlags uint32

// vmaFlagNames are the names of VmFlags in /proc/PID/smaps. Linux:
// fs/proc/task_mmu.c:show_smap_vma_flags (v6.18).
var vmaFlagNames = [...]struct {
	name string
	flag vmFlags
}{
	{"rd", vmRead}, {"wr", vmWrite}, {"ex", vmExec}, {"sh", vmShared}, {"gd", vmGrowsDown},
	{"lo", vmLocked}, {"dc", vmDontFork}, {"lf", vmLockOnFault}, {"ac", vmAccount}, {"nr", vmNoReserve},
	{"ht", vmHugetlb}, {"wf", vmWipeFork}, {"dd", vmDontDump}, {"hg", vmHuge}, {"nh", vmNoHuge},
	{"mg", vmMergeable},
}

// ParseVMAFlags reads the words of a VmFlags line; words that the model knows
// nothing of are passed over.
func ParseVMAFlags(words []string) VMAFlags {
	var f vmFlags
	for _, w := range words {
		for _, n := range vmaFlagNames {
			if n.name == w {
				f |= n.flag
			}
		}
	}
	return VMAFlags(f)
}

// String is the flags as VmFlags prints them: "rd wr ac hg".
func (f VMAFlags) String() string {
	var w []string
	for _, n := range vmaFlagNames {
		if vmFlags(f)&n.flag != 0 {
			w = append(w, n.name)
		}
	}
	return strings.Join(w, " ")
}

// VMAInfo is one mapping of an address space.
type VMAInfo struct {
	Start, End VA
	Flags      VMAFlags
}

// VMAs appends the mappings of s to all, in address order; none for a space
// that does not exist.
func (m *Machine) VMAs(s Space, all []VMAInfo) []VMAInfo {
	sp := m.spaceOf(s)
	if sp == nil {
		return all
	}
	var shown vmFlags
	for _, n := range vmaFlagNames {
		shown |= n.flag
	}
	for n := sp.vmas.First(); n != nil; n = n.Next() {
		all = append(all, VMAInfo{n.Val.start, n.Val.end, VMAFlags(n.Val.flags & shown)})
	}
	return all
}

// RSS is the anonymous pages that a space maps, zero pages excluded (RssAnon of
// /proc/PID/status); 0 for a space that does not exist.
func (m *Machine) RSS(s Space) Pages {
	if sp := m.spaceOf(s); sp != nil {
		return sp.rssAnon
	}
	return 0
}
