package hw

import "testing"

func newTLB(t testing.TB, machine string, set ...string) *TLB {
	t.Helper()
	m, err := LoadMachine(machine)
	for i := 0; i < len(set) && err == nil; i += 2 {
		m, err = m.With(set[i], set[i+1])
	}
	if err != nil {
		t.Fatal(err)
	}
	tlb, err := NewTLB(m)
	if err != nil {
		t.Fatal(err)
	}
	return tlb
}

// TestTLBReach: a ring of pages is found in the first level, the second or by
// walks as it outgrows each, and 2 MB pages reach 512 times as far.
func TestTLBReach(t *testing.T) {
	for _, tc := range []struct {
		size  PageSize
		pages int
		want  TLBLevel
	}{
		{PageBase, 64, InTLB1}, {PageBase, 65, InTLB2}, {PageBase, 1536, InTLB2}, {PageBase, 2 * 1536, Walked},
		{Page2M, 32, InTLB1}, {Page2M, 1536, InTLB2}, {Page2M, 2 * 1536, Walked},
		{Page1G, 4, InTLB1}, {Page1G, 16, InTLB2}, {Page1G, 33, Walked},
	} {
		tlb := newTLB(t, "xeon-e5-2699v4")
		shift := tlb.shift[tc.size]
		worst := InTLB1
		for turn := range 3 {
			for p := range tc.pages {
				level, _ := tlb.Access(uint64(p)<<shift, tc.size)
				if turn == 2 {
					worst = max(worst, level)
				}
			}
		}
		if worst != tc.want {
			t.Errorf("%d pages of size %d: found at %d at worst, want %d", tc.pages, tc.size, worst, tc.want)
		}
	}
}

// TestTLBWalk counts the tables that a walk looks at.
func TestTLBWalk(t *testing.T) {
	for _, tc := range []struct {
		name       string
		set        []string
		size       PageSize
		first, hot int
	}{
		{"base", nil, PageBase, 4, 1},
		{"2 MB", nil, Page2M, 3, 1},
		{"1 GB", nil, Page1G, 2, 1},
		{"no cache of tables", []string{"walk.cache", "0"}, PageBase, 4, 4},
		{"nested", []string{"virtual", "1"}, PageBase, 24, 3},
		{"nested 2 MB", []string{"virtual", "1"}, Page2M, 19, 3},
	} {
		tlb := newTLB(t, "xeon-e5-2699v4", tc.set...)
		if n := tlb.walk(0, tc.size); n != tc.first {
			t.Errorf("%s: a first walk looks at %d tables, want %d", tc.name, n, tc.first)
		}
		if n := tlb.walk(1<<tlb.shift[tc.size], tc.size); n != tc.hot {
			t.Errorf("%s: a walk beside it looks at %d tables, want %d", tc.name, n, tc.hot)
		}
	}
}

// TestTLBShared: sizes that share entries are not mistaken for one another, and
// push one another out.
func TestTLBShared(t *testing.T) {
	tlb := newTLB(t, "altra")
	tlb.Access(0, Page2M)
	if level, _ := tlb.Access(0, PageBase); level == InTLB1 {
		t.Error("a base page was found as the 2 MB page of the same number")
	}
	for p := range uint64(48) {
		tlb.Access((p+1)<<12, PageBase)
	}
	if level, _ := tlb.Access(0, Page2M); level != InTLB2 {
		t.Errorf("found at %d after 48 base pages, want the second level", level)
	}
	tlb.Flush()
	if level, cost := tlb.Access(0, Page2M); level != Walked || cost <= 0 {
		t.Errorf("found at %d for %v ns after a flush", level, cost)
	}
}

// TestTLBMachines makes the TLBs of every machine.
func TestTLBMachines(t *testing.T) {
	for _, n := range MachineNames() {
		tlb := newTLB(t, n)
		for size := range pageSizes {
			if level, _ := tlb.Access(1<<40, size); level != Walked {
				t.Errorf("%s: size %d was found at %d at once", n, size, level)
			}
			if level, _ := tlb.Access(1<<40, size); level != InTLB1 {
				t.Errorf("%s: size %d was found at %d again", n, size, level)
			}
		}
	}
}
