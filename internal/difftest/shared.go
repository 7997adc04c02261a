package difftest

import (
	"slices"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// This file is about shared anonymous memory, and what keeps programs that have
// it from what the model does not do:
//
//   - MADV_COLLAPSE and khugepaged collapse it where its huge pages of 2 MB are
//     allowed. Such programs have neither.
//   - MADV_PAGEOUT unmaps its pages, and frees those that nobody wrote.
//   - Dropping caches splits what lies past the end of the file, which a mapping
//     that has grown may have.

// usesShared says whether the program maps shared anonymous memory.
func (p *Program) usesShared() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Verb == VerbMap && s.Flags&mm.MapShmem == mm.MapShmem && s.Flags&mm.MapHugetlb == 0
	})
}

// genShared is what the generator knows of a program's shared memory.
type genShared struct {
	on    bool
	sizes bool // it may have huge pages
	pmd   bool // of 2 MB, too
}

func sharedOf(policy string) genShared {
	return genShared{
		on:    strings.Contains(policy, "shmem="),
		sizes: strings.Contains(policy, "shmem_"),
		pmd:   strings.Contains(policy, "shmem_2m="),
	}
}

// may says whether a program may have an advice.
func (g *genShared) may(a mm.Advice) bool {
	return !g.on || a != mm.AdvisePageOut && (a != mm.AdviseCollapse || !g.pmd)
}
