package difftest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// String is the program's text form: Parse reads it back.
func (p *Program) String() string {
	var b strings.Builder
	if p.Policy != "" {
		fmt.Fprintln(&b, "policy", p.Policy)
	}
	if p.Machine != "" {
		fmt.Fprintln(&b, "machine", p.Machine)
	}
	for i := range p.Steps {
		fmt.Fprintln(&b, p.Steps[i].String())
	}
	return b.String()
}

// String is the step's line.
func (s *Step) String() string {
	w := []string{s.Verb.String()}
	add := func(words ...string) { w = append(w, words...) }
	switch s.Verb {
	case VerbMap:
		add(s.Area.Region, sizeText(s.Area.To))
	case VerbFork, VerbIn:
		add(s.Name)
	case VerbResult:
		if s.Bus > 0 {
			add("sigbus")
		} else {
			add(s.Errno.String())
		}
	case VerbPool, VerbOvercommit, VerbExpectPool:
		add(s.poolText())
	case VerbBrk:
		add(map[int8]string{1: "+", -1: "-"}[s.Change] + sizeText(s.Size))
	case VerbPrctl:
		add("thp-disable", prctlNames[s.Prctl])
	case VerbLockAll:
		for i, n := range lockAllNames {
			if s.How>>i&1 != 0 {
				add(n)
			}
		}
	case VerbDemote:
		add(strconv.FormatInt(s.Pool[0], 10))
	case VerbExit, VerbDropCaches, VerbUnlockAll, VerbKhugepaged, VerbExec:
	default:
		add(s.Area.String())
	}
	switch s.Verb {
	case VerbUserfault, VerbResident:
		add(s.aloneText())
	case VerbTouch, VerbPin:
		if s.Access&mm.Write != 0 {
			add("w")
		} else {
			add("r")
		}
	case VerbAdvise:
		add(adviceName(s.Advice))
	case VerbProtect:
		add(protNames[s.Access&3])
	case VerbExpect:
		add(s.Expect.String())
	}
	return strings.Join(s.optionWords(w), " ")
}

func (s *Step) optionWords(w []string) []string {
	if s.Verb == VerbRemap {
		if s.Size != 0 {
			w = append(w, "size="+sizeText(s.Size))
		}
		if s.Name != "" {
			w = append(w, "to="+s.Name)
		}
	}
	if s.Place != (Place{}) {
		at := "at=" + s.Place.In
		if s.Place.At != 0 || s.Place.In == "" {
			at += "+" + sizeText(s.Place.At)
		}
		w = append(w, at)
	}
	if s.Verb == VerbMigrate || s.Verb == VerbBind {
		w = append(w, "node="+strconv.Itoa(int(s.Node)))
	}
	if s.Free {
		w = append(w, "anywhere")
	}
	if s.Verb == VerbMap && s.Access != mm.Read|mm.Write {
		w = append(w, "prot="+protNames[s.Access&3])
	}
	if s.Verb == VerbMap && s.Flags&mm.MapHugetlb != 0 {
		w = append(w, "hugetlb=2m")
	}
	for _, o := range options {
		if o.verb == s.Verb && o.flag != 0 && s.Flags&o.flag != 0 {
			w = append(w, o.key)
		}
	}
	if s.Verb == VerbTouch {
		switch {
		case s.Step < 0:
			w = append(w, "step=-"+sizeText(mm.Bytes(-s.Step)))
		case s.Step > 0:
			w = append(w, "step="+sizeText(mm.Bytes(s.Step)))
		}
		if s.Access&mm.ZeroData != 0 {
			w = append(w, "data=zero")
		}
		if s.Second {
			w = append(w, "thread=2")
		}
	}
	return w
}
