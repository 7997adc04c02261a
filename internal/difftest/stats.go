package difftest

import (
	"maps"
	"slices"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Stats says what the programs of a run had in them, and what it did. All that
// could occur is there, with 0 if it never did.
type Stats struct {
	Verbs    map[string]int `json:"steps"`
	Forms    map[string]int `json:"forms"` // of steps: options, directions, numbers of processes
	Advice   map[string]int `json:"advice"`
	Policies map[string]int `json:"policies"` // settings, by program
	Orders   map[string]int `json:"pages_by_size"`
	Counters map[string]int `json:"counters"` // steps in which each moved
	Errnos   map[string]int `json:"results"`
}

// Table is one of a Stats' tables.
type Table struct {
	Title string
	Of    map[string]int
}

// Tables are all of them.
func (s *Stats) Tables() []Table {
	return []Table{
		{"steps", s.Verbs}, {"forms of steps", s.Forms}, {"advice", s.Advice}, {"settings, by program", s.Policies},
		{"pages seen, by size", s.Orders}, {"results of calls", s.Errnos},
		{"steps that moved a counter", s.Counters},
	}
}

// Zeros names what never occurred.
func (s *Stats) Zeros() (names []string) {
	for _, t := range s.Tables() {
		for _, k := range slices.Sorted(maps.Keys(t.Of)) {
			if t.Of[k] == 0 {
				names = append(names, t.Title+": "+k)
			}
		}
	}
	return names
}

func (s *Stats) init() {
	zeros := func(names []string) map[string]int {
		m := map[string]int{}
		for _, n := range names {
			m[n] = 0
		}
		return m
	}
	s.Verbs = zeros(verbNames[1:])
	for v := range numVerbs { // nobody generates claims, nor for the kernel what the model alone has
		if v == VerbExpect || v == VerbResult || v == VerbExpectPool || v.alone() {
			delete(s.Verbs, v.String())
		}
	}
	s.Forms = zeros(formNames)
	s.Advice = map[string]int{}
	for _, a := range adviceNames {
		s.Advice[a.name] = 0
	}
	s.Policies = zeros(policyForms())
	s.Orders = zeros(append([]string{"4k", "8k"}, programSizes().Names()...))
	s.Counters = zeros(CounterNames())
	s.Errnos = zeros([]string{"ok", "EAGAIN", "ENOMEM", "EINVAL", "EFAULT", "EEXIST"})
}

func (s *Stats) add(p *Program, out *Outcome) {
	procs := 1
	for i := range p.Steps[:out.Steps] {
		st := &p.Steps[i]
		s.Verbs[st.Verb.String()]++
		if st.Verb == VerbAdvise {
			s.Advice[adviceName(st.Advice)]++
		}
		switch st.Verb {
		case VerbFork:
			if procs++; procs > 2 {
				s.Forms[formNames[0]]++
			}
		case VerbExit:
			procs--
		}
		for _, f := range st.forms() {
			s.Forms[f]++
		}
	}
	for w := range strings.FieldsSeq(p.Policy) {
		if _, value, _ := strings.Cut(w, "="); value != "" && strings.Trim(value, "0123456789") == "" &&
			strings.HasPrefix(w, "max_ptes") {
			w = w[:len(w)-len(value)] + "N"
		}
		if key, _, ok := strings.Cut(w, "=2m:"); ok {
			w = key + "=2m:N"
		}
		s.Policies[w]++
	}
	for o, n := range out.Orders {
		if n > 0 {
			s.Orders[sizeText(pageSize<<o)] += n
		}
	}
	names := CounterNames()
	for i, n := range out.Moves {
		s.Counters[names[i]] += n
	}
	for e, n := range out.Errnos {
		s.Errnos[e.String()] += n
	}
}

// policyForms are the settings that policies may have.
func policyForms() []string {
	all := []string{"use_zero_page=0", "shrink_underused=0", "khugepaged_defrag=0", "max_ptes_none=N",
		"max_ptes_shared=N", "max_ptes_swap=N",
		"pool=2m:N", "overcommit=2m:N"}
	for _, m := range []string{"always", "madvise", "never"} {
		all = append(all, "enabled="+m)
	}
	for _, m := range []string{"always", "defer", "defer+madvise", "never"} {
		all = append(all, "defrag="+m)
	}
	for _, m := range []string{"advise", "always", "within_size", "never", "deny", "force"} {
		all = append(all, "shmem="+m)
	}
	for _, o := range programSizes().ShmemOrders() {
		for _, m := range []string{"always", "within_size", "advise", "inherit"} {
			all = append(all, "shmem_"+programSizes().Name(o)+"="+m)
		}
	}
	for _, size := range programSizes().Names() {
		for _, m := range []string{"always", "madvise", "inherit", "never"} {
			all = append(all, size+"="+m)
		}
	}
	return all
}

// formNames are the forms that generated steps have; the first is told by what
// came before.
var formNames = []string{
	"fork to a third process and more",
	"map aligned", "map not aligned", "map beside or over another", "map noreplace", "map stack flag",
	"map noreserve",
	"map populate", "map locked", "map a stack", "map 64 MB", "map read-only", "map without access",
	"map anywhere", "map with a hint", "remap anywhere",
	"touch by a second thread", "touch read", "touch write", "touch write zeros", "touch one page", "touch forward",
	"touch backward",
	"touch strided", "touch strided backward", "touch the stack", "touch the heap",
	"remap grows in place", "remap moves", "remap moves and changes size", "remap keeps",
	"protect none", "protect r", "protect w", "protect rw", "lock onfault",
	"brk to a length", "brk up", "brk down", "prctl off", "prctl on", "prctl except-advised",
	"map hugetlb", "map hugetlb shared", "map hugetlb noreserve", "map shared",
	"lock-all current", "lock-all future", "lock-all onfault", "area whole", "area one page", "area part",
}

// forms are the names, of formNames, of what a step is besides its verb.
func (s *Step) forms() (all []string) {
	add := func(is bool, name string) {
		if is {
			all = append(all, name)
		}
	}
	add(s.Area.Whole && s.Verb != VerbMap, "area whole")
	add(s.Area.Single, "area one page")
	add(!s.Area.Whole && !s.Area.Single && s.Area.To > 0 && s.Verb != VerbMap, "area part")
	switch s.Verb {
	case VerbMap:
		s.mapForms(add)
	case VerbTouch:
		s.touchForms(add)
	case VerbRemap:
		add(s.Name == "", "remap grows in place")
		add(s.Free, "remap anywhere")
		add(s.Name != "" && s.Size == 0 && s.Flags == 0, "remap moves")
		add(s.Name != "" && s.Size != 0, "remap moves and changes size")
		add(s.Flags&mm.RemapDontUnmap != 0, "remap keeps")
	case VerbProtect:
		add(true, "protect "+protNames[s.Access&3])
	case VerbLock:
		add(s.Flags&mm.LockOnFault != 0, "lock onfault")
	case VerbBrk:
		add(true, map[int8]string{0: "brk to a length", 1: "brk up", -1: "brk down"}[s.Change])
	case VerbPrctl:
		add(true, "prctl "+prctlNames[s.Prctl])
	case VerbLockAll:
		for i, n := range lockAllNames {
			add(s.How>>i&1 != 0, "lock-all "+n)
		}
	}
	return all
}

func (s *Step) mapForms(add func(bool, string)) {
	add(!s.Free && s.Place.In == "" && s.Place.At%pmdSize == 0, "map aligned")
	add(s.Place.At%pmdSize != 0, "map not aligned")
	add(s.Place.In != "", "map beside or over another")
	add(s.Flags&mm.MapFixed != 0, "map noreplace")
	add(s.Free && s.Place == (Place{}), "map anywhere")
	add(s.Free && s.Place != (Place{}), "map with a hint")
	add(s.Flags&mm.MapStack != 0, "map stack flag")
	add(s.Flags&mm.MapNoReserve != 0, "map noreserve")
	add(s.Flags&mm.MapPopulate != 0, "map populate")
	add(s.Flags&mm.MapLocked != 0, "map locked")
	add(s.Area.Region == stackName, "map a stack")
	add(s.Area.To == 64<<20, "map 64 MB")
	add(s.Access&mm.Prot == mm.Read, "map read-only")
	add(s.Access&mm.Prot == 0, "map without access")
	huge := s.Flags&mm.MapHugetlb != 0
	add(huge, "map hugetlb")
	add(huge && s.Flags&mm.MapShared != 0, "map hugetlb shared")
	add(!huge && s.Flags&mm.MapShared != 0, "map shared")
	add(huge && s.Flags&mm.MapNoReserve != 0, "map hugetlb noreserve")
}

func (s *Step) touchForms(add func(bool, string)) {
	add(s.Access&mm.Write == 0, "touch read")
	add(s.Access&mm.Write != 0, "touch write")
	add(s.Access&mm.ZeroData != 0, "touch write zeros")
	add(s.Second, "touch by a second thread")
	add(s.Area.Single, "touch one page")
	add(!s.Area.Single && s.Step == 0, "touch forward")
	add(s.Step == -pageSize, "touch backward")
	add(s.Step > pageSize, "touch strided")
	add(s.Step < -pageSize, "touch strided backward")
	add(s.Area.Region == stackName, "touch the stack")
	add(s.Area.Region == heapName, "touch the heap")
}
