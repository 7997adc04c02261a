package mm

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/mm/internal/buddy"
)

// physMachine is a machine with memory and nothing else.
func physMachine(t *testing.T, cfg Config) (*Machine, error) {
	t.Helper()
	s, err := SizesOf(cfg.BasePage)
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{cfg: cfg, pmdOrder: s.PMD}
	for 1<<m.pageShift < s.Base {
		m.pageShift++
	}
	return m, m.newPhys()
}

// TestZones: how a machine's memory is cut into zones.
func TestZones(t *testing.T) {
	type zone struct {
		node  NodeID
		name  string
		start PFN
		pages Pages
	}
	for _, tc := range []struct {
		desc string
		cfg  Config
		want []zone
	}{
		{"64 MB", Config{CPUs: 1, Nodes: []Node{{Mem: 64 << 20}}}, []zone{{0, "DMA32", 4096, 16384}}},
		{"2 GB", Config{CPUs: 1, Nodes: []Node{{Mem: 2 << 30}}},
			[]zone{{0, "DMA", 256, 3840}, {0, "DMA32", 4096, 524288 - 3840}}},
		{"two nodes of 64 GB", Config{CPUs: 2, Nodes: []Node{{Mem: 64 << 30, CPUs: []CPU{0}}, {Mem: 64 << 30}}},
			[]zone{{0, "DMA", 256, 3840}, {0, "DMA32", 4096, 786432}, {0, "Normal", 1 << 20, 1<<24 - 3840 - 786432},
				{1, "Normal", 17036288, 1 << 24}}},
		{"64 kB pages", Config{CPUs: 1, BasePage: 65536, Nodes: []Node{{Mem: 16 << 30}}},
			[]zone{{0, "DMA", 16384, 49152}, {0, "Normal", 65536, 212992}}},
	} {
		m, err := physMachine(t, tc.cfg)
		if err != nil {
			t.Errorf("%s: %v", tc.desc, err)
			continue
		}
		var got []zone
		for _, z := range m.Memory().Zones {
			got = append(got, zone{z.Node, z.Name, z.Start, z.Managed})
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: zones %v, want %v", tc.desc, got, tc.want)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%s: zone %v, want %v", tc.desc, got[i], tc.want[i])
			}
		}
		if err := m.physCheck(); err != nil {
			t.Errorf("%s: %v", tc.desc, err)
		}
	}
}

// TestHostMemory: memory as /proc/buddyinfo of a host has it.
func TestHostMemory(t *testing.T) {
	f, err := os.Open("internal/buddy/testdata/buddyinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	free := &FreeState{}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		z := FreeZone{Name: w[3], Managed: map[string]Pages{"DMA": 3840, "DMA32": 772918, "Normal": 2194696}[w[3]]}
		for _, n := range w[4:] {
			v, _ := strconv.ParseUint(n, 10, 64)
			z.Blocks = append(z.Blocks, v)
		}
		free.Zones = append(free.Zones, z)
	}
	for _, known := range []bool{true, false} {
		if !known {
			for i := range free.Zones {
				free.Zones[i].Managed = 0
			}
		}
		m, err := physMachine(t, Config{CPUs: 2, Nodes: []Node{{Mem: 12 << 30}}, Free: free})
		if err != nil {
			t.Fatal(err)
		}
		for i, z := range m.Memory().Zones {
			for o, n := range z.Blocks {
				if n != free.Zones[i].Blocks[o] {
					t.Errorf("%s order %d: %d blocks, the host has %d", z.Name, o, n, free.Zones[i].Blocks[o])
				}
			}
			if known && z.Managed != free.Zones[i].Managed {
				t.Errorf("%s: %d pages", z.Name, z.Managed)
			}
		}
		if err := m.physCheck(); err != nil {
			t.Error(err)
		}
	}
}

// TestPhysWork: what the allocator does becomes the caller's work, and pages in
// use are counted.
func TestPhysWork(t *testing.T) {
	m, err := physMachine(t, Config{CPUs: 1, Nodes: []Node{{Mem: 1 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	var c Current
	pfn, ok := m.physAlloc(&c, 9, buddy.Movable, 0)
	if !ok || c.Work[PrimAllocRefill] != 2 || c.Work[PrimAllocPCP] != 1 || c.Work[PrimZoneLock] != 1 ||
		c.Work[PrimExpand] != 1 || m.physUsed() != 512 {
		t.Fatalf("work %v, %d pages in use", c.Work, m.physUsed())
	}
	c.Work = Work{}
	m.physFree(&c, pfn, 9, buddy.Movable)
	if want := (Work{PrimFreePCP: 1}); c.Work != want || m.physUsed() != 0 {
		t.Fatalf("work %v, %d pages in use", c.Work, m.physUsed())
	}
	// Compaction that would be tried and cannot help.
	for ok := true; ok; {
		_, ok = m.physAlloc(&c, 9, buddy.Movable, 0)
	}
	for {
		pfn, ok := m.physAlloc(&c, 4, buddy.Movable, 0)
		if !ok {
			break
		}
		defer m.physFree(&c, pfn, 4, buddy.Movable)
	}
	if n := m.Counters.VM[CompactStall]; n != 0 {
		t.Errorf("compaction %d times without being allowed to", n)
	}
}

// TestPolicyMarks: enabling THP keeps more memory free.
func TestPolicyMarks(t *testing.T) {
	m, err := physMachine(t, Config{CPUs: 1, Nodes: []Node{{Mem: 8 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	m.SetPolicy(m.policy)
	before := m.Memory().MinFree
	m.policy.Size[9] = Inherit
	m.SetPolicy(m.policy)
	if m.Memory().MinFree != before {
		t.Error("inherit from never enables nothing")
	}
	m.policy.Enabled = Madvise
	m.SetPolicy(m.policy)
	if got := m.Memory().MinFree; got != 67584<<10 {
		t.Errorf("min_free_kbytes %d, before %d", got>>10, before>>10)
	}
}

func TestMemoryRefused(t *testing.T) {
	for desc, cfg := range map[string]Config{
		"no node":          {CPUs: 1},
		"no memory":        {CPUs: 1, Nodes: []Node{{}}},
		"an unknown CPU":   {CPUs: 1, Nodes: []Node{{Mem: 1 << 30, CPUs: []CPU{1}}}},
		"more than frames": {CPUs: 1, Nodes: []Node{{Mem: 1 << 50}}},
		"an unknown zone": {CPUs: 1, Nodes: []Node{{Mem: 1 << 30}},
			Free: &FreeState{Zones: []FreeZone{{Name: "x", Managed: 1}}}},
		"a huge order": {CPUs: 1, Nodes: []Node{{Mem: 1 << 30}},
			Free: &FreeState{Zones: []FreeZone{{Name: "Normal", Blocks: make([]uint64, 30), Managed: 4096}}}},
	} {
		if _, err := physMachine(t, cfg); err == nil {
			t.Errorf("%s: accepted", desc)
		}
	}
}
