package mm

import "testing"

// TestGetPages: which pages, how many struct pages were looked at and how many
// atomic additions it took, behind small pages and behind a huge entry.
func TestGetPages(t *testing.T) {
	for _, tc := range []struct {
		name                       string
		version                    string
		huge                       bool
		how                        GUP
		fill, heads, atomics       uint32 // of taking 512 pages in one call
		putHeads, putAtomics, pins uint32
	}{
		{"small, get", "6.18", false, GUPWrite, 512, 512, 512, 512, 512, 0},
		{"small, pin", "6.18", false, GUPWrite | GUPPin, 512, 512, 512, 512, 512, 512},
		{"huge, get", "6.18", true, GUPWrite, 512, 1, 1, 512, 512, 0},
		{"huge, pin", "6.18", true, GUPWrite | GUPPin, 512, 1, 2, 512, 2, 512},
		{"huge, longterm", "6.18", true, GUPWrite | GUPPin | GUPLongterm, 512, 513, 2, 512, 2, 512},
		{"huge, unpinned one by one", "5.12", true, GUPWrite | GUPPin, 512, 1, 2, 512, 1024, 512},
		{"huge, taken one by one", "5.11", true, GUPWrite | GUPPin, 512, 512, 1024, 512, 1024, 512},
	} {
		p := NeverPolicy(Sizes{4096, 9})
		p.Pools[0].Pages = 2
		m, err := New(Config{Nodes: []Node{{Mem: gB}}, Rules: rules(t, tc.version), Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		op := Op{Kind: OpMap, Space: 1, Region: 1, N: 512, Access: Read | Write}
		if tc.huge {
			op.Flags = MapHugetlb | MapPool
		}
		if _, err := m.Exec([]Op{{Kind: OpExec, Space: 1}, op}, nil); err != nil {
			t.Fatal(err)
		}
		a, _ := m.Addr(1, 1, 0)
		var c Current
		pages := make([]PFN, 512)
		if n, e := m.GetPages(&c, 1, a, tc.how, pages); n != 512 || e != OK {
			t.Fatalf("%s: took %d: %v", tc.name, n, e)
		}
		check(t, m)
		w := c.Work
		if w[PrimGUPFill] != tc.fill || w[PrimGUPHead] != tc.heads || w[PrimGUPAtomic] != tc.atomics {
			t.Errorf("%s: filled %d, looked at %d, added %d; want %d, %d, %d", tc.name, w[PrimGUPFill], w[PrimGUPHead],
				w[PrimGUPAtomic], tc.fill, tc.heads, tc.atomics)
		}
		for i := range pages {
			if in := m.PageInfo(1, a+VA(i)<<12); in.PFN != pages[i] {
				t.Fatalf("%s: page %d is frame %d, mapped is %d", tc.name, i, pages[i], in.PFN)
			}
		}
		c = Current{}
		m.PutPages(&c, tc.how, pages)
		if c.Work[PrimGUPHead] != tc.putHeads || c.Work[PrimGUPAtomic] != tc.putAtomics {
			t.Errorf("%s: put: looked at %d, added %d; want %d, %d", tc.name, c.Work[PrimGUPHead], c.Work[PrimGUPAtomic],
				tc.putHeads, tc.putAtomics)
		}
		if got := m.Counters.VM[NrFollPinAcquired]; got != uint64(tc.pins) || m.Counters.VM[NrFollPinReleased] != got {
			t.Errorf("%s: %d pinned, %d released; want %d", tc.name, got, m.Counters.VM[NrFollPinReleased], tc.pins)
		}
	}
}

// TestGetPagesRefused: nothing is mapped there, or not for writing.
func TestGetPagesRefused(t *testing.T) {
	l := newLab(t, NeverPolicy(Sizes{4096, 9}))
	l.do(Op{Kind: OpMap, Region: 1, N: 4, Access: Read})
	a, _ := l.m.Addr(1, 1, 0)
	var c Current
	out := make([]PFN, 8)
	if n, e := l.m.GetPages(&c, 1, a, GUPWrite, out); n != 0 || e != EFAULT {
		t.Errorf("writing what may be read: %d, %v", n, e)
	}
	if n, e := l.m.GetPages(&c, 1, a, 0, out); n != 4 || e != OK {
		t.Errorf("reading 8 of 4 pages: %d, %v", n, e)
	}
	if n, e := l.m.GetPages(&c, 7, a, 0, out); n != 0 || e != EFAULT {
		t.Errorf("no such space: %d, %v", n, e)
	}
}
