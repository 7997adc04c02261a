package difftest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// GeneratePolicy makes a policy. Quiet ones change nothing for programs that
// never asked for huge pages, so that others on the machine leave the counters
// alone.
func GeneratePolicy(seed uint64, quiet bool) string {
	x := rand.New(rand.NewPCG(seed, 0x706f6c))
	w := []string{"enabled=" + pick(x, "madvise", "madvise", "never", "always")}
	modes := []string{"madvise", "inherit", "madvise", "always", "never"}
	if quiet {
		w[0] = "enabled=" + pick(x, "madvise", "madvise", "madvise", "never")
		modes = []string{"madvise", "inherit"}
	}
	// The PMD's size alone, some sizes with or without it, or all of them.
	kind := x.IntN(8)
	sizes := programSizes()
	for _, o := range sizes.Orders() {
		has := x.IntN(4) == 0
		switch {
		case kind == 0:
			has = o == sizes.PMD
		case kind == 1:
			has = true
		case o == sizes.PMD:
			has = x.IntN(3) > 0
		}
		if has {
			w = append(w, sizes.Name(o)+"="+pick(x, modes...))
		}
	}
	some := func(chance int, spec string) {
		if x.IntN(chance) == 0 {
			w = append(w, spec)
		}
	}
	some(3, "use_zero_page=0")
	shrink := x.IntN(4) == 0 // which shows where a huge page can be underused
	if shrink {
		w = append(w, "shrink_underused=0")
	}
	some(3, "defrag="+pick(x, "always", "defer", "defer+madvise", "never"))
	some(4, "khugepaged_defrag=0")
	some(2-b2i(shrink), fmt.Sprintf("max_ptes_none=%d", pick(x, x.IntN(512), 0, 64, 510, 400)))
	some(3, fmt.Sprintf("max_ptes_shared=%d", pick(x, x.IntN(512), 0, 1, 16, 511)))
	some(4, fmt.Sprintf("max_ptes_swap=%d", pick(x, x.IntN(512), 0, 511)))
	some(4, poolPolicy(x.IntN(hugePool), max(0, x.IntN(8)-4)))
	if x.IntN(3) == 0 {
		w = append(w, sharedPolicy(x, quiet)...)
	}
	return strings.Join(w, " ")
}

// sharedPolicy draws the settings of shared memory. Quiet ones change nothing for
// those who did not ask.
func sharedPolicy(x *rand.Rand, quiet bool) []string {
	all := []string{"advise", "always", "within_size", "never", "deny", "force"}
	modes := []string{"always", "always", "within_size", "advise", "inherit", "inherit"}
	if quiet {
		all, modes = []string{"advise", "never", "advise"}, []string{"advise", "inherit"}
	}
	mode := pick(x, all...)
	w := []string{"shmem=" + mode}
	kind := x.IntN(8)
	for _, o := range programSizes().ShmemOrders() {
		switch {
		case mode == "force" && o == programSizes().PMD:
			w = append(w, "shmem_2m=inherit") // the kernel wants that, and no other size so
		case mode == "force":
			if x.IntN(3) == 0 {
				w = append(w, "shmem_"+programSizes().Name(o)+"="+pick(x, modes[:4]...))
			}
		case kind == 1 || kind > 1 && x.IntN(3) == 0:
			w = append(w, "shmem_"+programSizes().Name(o)+"="+pick(x, modes...))
		}
	}
	return w
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func pick[T any](x *rand.Rand, from ...T) T { return from[x.IntN(len(from))] }
