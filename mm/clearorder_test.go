package mm

import (
	"slices"
	"testing"
)

// TestClearOrderTable is the table of semantics 7.1, and small folios by hand.
func TestClearOrderTable(t *testing.T) {
	for _, tc := range []struct {
		o             ClearOrder
		pages, target uint32
		first, last   []uint32
	}{
		{ClearTowards, 512, 0, []uint32{511, 510}, []uint32{1, 0}},
		{ClearTowards, 512, 1, []uint32{511, 510}, []uint32{2, 0, 1}},
		{ClearTowards, 512, 255, []uint32{511, 510, 0, 509, 1, 508}, []uint32{254, 255}},
		{ClearTowards, 512, 256, []uint32{0, 511, 1, 510}, []uint32{255, 256}},
		{ClearTowards, 512, 400, []uint32{0, 1, 2}, []uint32{399, 400}},
		{ClearTowards, 512, 511, []uint32{0, 1}, []uint32{509, 510, 511}},
		{ClearTowards, 4, 2, []uint32{0, 3, 1, 2}, nil},
		{ClearTowards, 1, 0, []uint32{0}, nil},
		{ClearTowards, 2048, 9, []uint32{0, 1, 2}, []uint32{2046, 2047}},
		{ClearAscending, 512, 300, []uint32{0, 1}, []uint32{510, 511}},
		{ClearNear, 512, 100, []uint32{103, 104}, []uint32{97, 98, 99, 100, 101, 102}},
		{ClearNear, 512, 1, []uint32{4, 5}, []uint32{511, 0, 1, 2, 3}},
		{ClearNear, 512, 511, []uint32{0, 1}, []uint32{508, 509, 510, 511}},
	} {
		got := tc.o.AppendOrder(nil, tc.pages, tc.target)
		if !slices.Equal(got[:len(tc.first)], tc.first) || !slices.Equal(got[len(got)-len(tc.last):], tc.last) {
			t.Errorf("order %d, %d pages, target %d: %v", tc.o, tc.pages, tc.target, got)
		}
	}
}

// TestClearOrderWhole: every page once, and of ClearTowards the target last,
// with its neighbours just before.
func TestClearOrderWhole(t *testing.T) {
	for _, pages := range []uint32{1, 2, 4, 16, 512} {
		for target := range pages {
			for _, o := range []ClearOrder{ClearTowards, ClearAscending, ClearNear} {
				got := o.AppendOrder(nil, pages, target)
				if o == ClearTowards && got[pages-1] != target {
					t.Fatalf("%d pages, target %d: the last is %d", pages, target, got[pages-1])
				}
				slices.Sort(got)
				for i, p := range got {
					if p != uint32(i) || len(got) != int(pages) {
						t.Fatalf("order %d, %d pages, target %d: not each page once", o, pages, target)
					}
				}
			}
		}
	}
}
