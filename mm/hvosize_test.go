package mm

import "testing"

// TestHVOSize: what the arithmetic says is what a machine does whose pool is
// made, to the page.
func TestHVOSize(t *testing.T) {
	s := Sizes{Base: 4096, PMD: 9}
	for _, version := range []string{"5.12", "5.14", "5.18", "6.18"} {
		r, err := RulesFor(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			order Order
			pages uint64
		}{{9, 256}, {18, 3}} {
			want, err := HVOSize(s, c.order, Bytes(c.pages)*s.Bytes(c.order)+4096, r)
			if err != nil {
				t.Fatal(err)
			}
			pol := NeverPolicy(s)
			pol.HVO = true
			m, err := New(Config{Nodes: []Node{{Mem: 16 << 30}}, Rules: r, Policy: pol, Vmemmap: true})
			if err != nil {
				t.Fatal(err)
			}
			var cur Current
			if e := m.ResizePool(&cur, c.order, AnyNode, c.pages); e != OK {
				t.Fatal(e)
			}
			if got := Bytes(m.StructPagesSaved()) * s.Base; got != want.Saved || want.Pages != c.pages {
				t.Errorf("%s: %d pages of order %d: %d bytes saved of %d pages, the machine saves %d", version, c.pages,
					c.order, want.Saved, want.Pages, got)
			}
			// The machine's pages lie in one piece, but not from the begin of an entry.
			tables := Bytes(len(m.vmem.split)) * s.Base
			if tables < want.Tables || tables > want.Tables+2*s.Base {
				t.Errorf("%s: order %d: %d bytes of tables, the machine makes %d", version, c.order, want.Tables, tables)
			}
		}
	}
	if _, err := HVOSize(s, 18, 1<<29, Rules{}); err == nil {
		t.Error("half a page is a pool")
	}
}

// TestHVOSizeTerabyte: the tables that the sum of 2021 takes off are one for
// each 128 MB.
func TestHVOSizeTerabyte(t *testing.T) {
	r, err := RulesFor("5.14")
	if err != nil {
		t.Fatal(err)
	}
	p, err := HVOSize(Sizes{Base: 4096, PMD: 9}, 9, 1<<40, r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Tables != (1<<40)/(128<<20)*4096 || p.Saved != 12<<30 || p.Net != 12<<30-32<<20 {
		t.Errorf("%+v", p)
	}
}
