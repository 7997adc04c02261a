package buddy

import "testing"

// TestFragmentationNumbers: the definitions worked out by hand.
func TestFragmentationNumbers(t *testing.T) {
	for _, tc := range []struct {
		desc                 string
		counts               []uint64
		k                    uint8
		unusable, index, ext int
	}{
		{"nothing free", []uint64{0, 0, 0}, 1, 1000, 0, 0},
		{"one whole block", []uint64{0, 0, 1}, 2, 0, -1000, 0},
		{"half usable", []uint64{4, 0, 1}, 2, 500, -1000, 50},
		{"all in single pages", []uint64{1024}, 9, 1000, 998, 100},
		{"too little free", []uint64{1}, 9, 1000, -1, 100},
		{"a third in pages", []uint64{2, 2, 0}, 1, 333, -1000, 33},
	} {
		if got := UnusableIndex(tc.counts, tc.k); got != tc.unusable {
			t.Errorf("%s: unusable index %d, want %d", tc.desc, got, tc.unusable)
		}
		if got := FragmentationIndex(tc.counts, tc.k); got != tc.index {
			t.Errorf("%s: fragmentation index %d, want %d", tc.desc, got, tc.index)
		}
		if got := External(tc.counts, tc.k); got != tc.ext {
			t.Errorf("%s: external %d %%, want %d", tc.desc, got, tc.ext)
		}
	}
}

// TestFragmentationOfHost: figures of the host's buddyinfo for the PMD's order,
// computed apart from this package.
func TestFragmentationOfHost(t *testing.T) {
	for i, n := range readBuddyinfo(t) {
		free, fit := uint64(0), uint64(0)
		for o, c := range n {
			free += c * (1 << o)
			if o >= 9 {
				fit += c * (1 << o)
			}
		}
		want := int((free - fit) * 1000 / free)
		if got := UnusableIndex(n, 9); got != want {
			t.Errorf("zone %d: unusable index %d, want %d", i, got, want)
		}
		if got := FragmentationIndex(n, 9); got != -1000 {
			t.Errorf("zone %d: fragmentation index %d with blocks free", i, got)
		}
	}
}
