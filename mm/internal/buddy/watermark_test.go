package buddy

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// hostZones is the host whose /proc files testdata holds (Linux 6.18, 24 GB,
// 2 CPUs), with its managed pages of the time.
func hostZones() []Zone {
	return []Zone{{Name: "DMA", Pages: 3840}, {Name: "DMA32", Start: 4096, Pages: 772918},
		{Name: "Normal", Start: 1048576, Pages: 2194704}}
}

// TestWatermarksOfHost compares with the host's /proc/zoneinfo.
func TestWatermarksOfHost(t *testing.T) {
	a, err := New(Config{Zones: hostZones(), CPUs: 2, PageShift: 12, MaxOrder: 10, PMDOrder: 9, THP: true})
	if err != nil {
		t.Fatal(err)
	}
	if a.MinFree() != 67584 {
		t.Errorf("min_free_kbytes %d, the host's is 67584", a.MinFree())
	}
	for i, want := range []struct {
		min, low, high, promo, normal uint64
		batch, highMin, highMax       int
	}{
		{21, 26, 31, 36, 11592, 1, 13, 240},
		{4394, 5492, 6590, 7688, 8573, 63, 2746, 48307},
		{12479, 15598, 18717, 21836, 0, 63, 7799, 137169},
	} {
		z := a.BuddyInfo()[i]
		if z.Min != want.min || z.Low != want.low || z.High != want.high || z.Promo != want.promo ||
			z.Protection[2] != want.normal || z.Protection[3] != want.normal {
			t.Errorf("%s: %d/%d/%d/%d protection %v, want %+v", z.Name, z.Min, z.Low, z.High, z.Promo, z.Protection, want)
		}
		for _, p := range z.PCP {
			if p.Batch != want.batch || p.HighMin != want.highMin || p.HighMax != want.highMax {
				t.Errorf("%s: pcp %+v, want %+v", z.Name, p, want)
			}
		}
	}
}

// TestMinFree: the formula alone and with THP, which can be switched. A later
// change leaves the zones' own high marks out of the memory it counts.
func TestMinFree(t *testing.T) {
	for _, tc := range []struct {
		desc            string
		zones           []Zone
		shift           uint
		max, pmd        uint8
		plain, thp, off uint64 // kB at boot, with THP on, and with THP off again
	}{
		// 19883 is what a host of this size had before the first write.
		{"23.6 GB in three zones", []Zone{{Name: "DMA", Pages: 4096}, {Name: "DMA32", Start: 4096, Pages: 1044480},
			{Name: "Normal", Start: 1 << 20, Pages: 6177089 - 1048576}}, 12, 10, 9, 19883, 67584, 19835},
		{"1 MB", []Zone{{Name: "Normal", Pages: 256}}, 12, 10, 9, 128, 128, 128},
		{"64 MB: 5 % of it", []Zone{{Name: "Normal", Pages: 16384}}, 12, 10, 9, 1024, 3200, 985},
		{"8 TB", []Zone{{Name: "Normal", Pages: 1 << 31}}, 12, 10, 9, 262144, 262144, 262144},
		{"64 GB of 64 kB pages", []Zone{{Name: "Normal", Pages: 1 << 20}}, 16, 13, 13, 32768, 52298 * 64, 31518},
	} {
		a, err := New(Config{Zones: tc.zones, CPUs: 1, PageShift: tc.shift, MaxOrder: tc.max, PMDOrder: tc.pmd})
		if err != nil {
			t.Fatal(err)
		}
		if a.MinFree() != tc.plain {
			t.Errorf("%s: %d kB, want %d", tc.desc, a.MinFree(), tc.plain)
		}
		c := a.cfg
		c.THP = true
		b, _ := New(c)
		if got := b.MinFree(); got != tc.thp {
			t.Errorf("%s: with THP %d kB, want %d", tc.desc, got, tc.thp)
		}
		b.SetTHP(false)
		if got := b.MinFree(); got != tc.off {
			t.Errorf("%s: THP switched off: %d kB, want %d", tc.desc, got, tc.off)
		}
	}
}

// TestWatermarkCheck: an allocation leaves more than the mark behind.
func TestWatermarkCheck(t *testing.T) {
	a := machine(t, 64, 1)
	a.noPCP = true
	z := &a.zones[0]
	for {
		if _, ok := a.Alloc(0, 0, 3, Movable, 0); !ok {
			break
		}
	}
	if z.free < z.wmark[wmarkMin] || z.free >= z.wmark[wmarkMin]+8 {
		t.Errorf("order 3 stops at %d free, min is %d", z.free, z.wmark[wmarkMin])
	}
	for {
		if _, ok := a.Alloc(0, 0, 0, Movable, 0); !ok {
			break
		}
	}
	if z.free != z.wmark[wmarkMin] {
		t.Errorf("order 0 stops at %d free, min is %d", z.free, z.wmark[wmarkMin])
	}
}

// readBuddyinfo reads testdata/buddyinfo.
func readBuddyinfo(t testing.TB) (counts [][]uint64) {
	f, err := os.Open("testdata/buddyinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var n []uint64
		for _, w := range strings.Fields(s.Text())[4:] {
			v, err := strconv.ParseUint(w, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, v)
		}
		counts = append(counts, n)
	}
	return counts
}

// TestFragmentedBoot builds the host's memory. Its counts are the host's, and
// allocations succeed exactly as often as the host's blocks allow.
func TestFragmentedBoot(t *testing.T) {
	counts := readBuddyinfo(t)
	zones := hostZones()
	for i := range zones {
		zones[i].Free = counts[i]
	}
	cfg := Config{Zones: zones, CPUs: 2, PageShift: 12, MaxOrder: 10, PMDOrder: 9}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	check(t, a)
	for i, z := range a.BuddyInfo() {
		for o, n := range z.Blocks {
			if n != counts[i][o] {
				t.Errorf("%s order %d: %d blocks, the host has %d", z.Name, o, n, counts[i][o])
			}
		}
	}
	a.SetMinFree(0)
	a.noPCP = true
	for i := range a.zones {
		a.zones[i].reserve = [numKinds]uint64{}
		a.zones[i].wmark = [4]uint64{}
	}
	want := 0
	for _, n := range counts {
		want += int(n[9] + 2*n[10])
	}
	got := 0
	for {
		if _, ok := a.Alloc(0, 0, 9, Movable, 0); !ok {
			break
		}
		got++
	}
	if got != want {
		t.Errorf("%d allocations of order 9, the host's memory has %d", got, want)
	}
	check(t, a)
}

// TestFragmentedFits: whatever fits by packing is accepted, and buddies stay
// apart unless there is no other way.
func TestFragmentedFits(t *testing.T) {
	for _, tc := range []struct {
		desc     string
		pages    uint64
		free     []uint64
		unmerged int
	}{
		{"one page of each block's worth", 4096, []uint64{3: 4}, 0},
		{"every other page", 2048, []uint64{0: 1024}, 0},
		{"all pages, none merged", 2048, []uint64{0: 2048}, 1024},
		{"a zone of no whole block", 768, []uint64{8: 1, 9: 1}, 0},
		{"nothing free", 4096, []uint64{}, 0},
	} {
		a, err := New(Config{Zones: []Zone{{Name: "Normal", Pages: tc.pages, Free: tc.free}}, CPUs: 1, PageShift: 12,
			MaxOrder: 10, PMDOrder: 9})
		if err != nil {
			t.Errorf("%s: %v", tc.desc, err)
			continue
		}
		check(t, a)
		if a.zones[0].unmerged != tc.unmerged {
			t.Errorf("%s: %d pairs unmerged, want %d", tc.desc, a.zones[0].unmerged, tc.unmerged)
		}
		for o, n := range a.BuddyInfo()[0].Blocks {
			if o < len(tc.free) && n != tc.free[o] || o >= len(tc.free) && n != 0 {
				t.Errorf("%s: order %d: %d blocks", tc.desc, o, n)
			}
		}
	}
}
