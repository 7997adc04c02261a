package procfs

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// counts reads the numbers at the end of a line.
func counts(t *testing.T, words []string) (n []uint64) {
	t.Helper()
	for _, w := range words {
		v, err := strconv.ParseUint(w, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n = append(n, v)
	}
	return n
}

// host is the host's memory, read from its buddyinfo and pagetypeinfo.
func host(t *testing.T) *state {
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	sizes, _ := mm.SizesOf(4096)
	s := &state{policy: mm.DefaultPolicy(sizes), rules: rules, sizes: sizes}
	for line := range strings.Lines(fixture(t, "buddyinfo")) {
		w := strings.Fields(line)
		s.memory.Zones = append(s.memory.Zones, mm.ZoneMemory{Name: w[3], Blocks: counts(t, w[4:])})
	}
	zone, left := -1, 0
	for line := range strings.Lines(fixture(t, "pagetypeinfo")) {
		w := strings.Fields(line)
		switch {
		case len(w) > 6 && w[4] == "type":
			if left == 0 {
				zone, left = zone+1, len(typeNames)
			}
			if i := len(typeNames) - left; i < mm.NumTypes {
				s.memory.Zones[zone].ByType[i] = counts(t, w[6:])
			}
			left--
		case len(w) == 9 && w[2] == "zone":
			for i := range s.memory.Zones {
				if z := &s.memory.Zones[i]; z.Name == w[3] {
					copy(z.Pageblocks[:], counts(t, w[4:]))
				}
			}
		}
	}
	return s
}

// TestLayout: what a host's numbers are rendered to is the host's own text.
func TestLayout(t *testing.T) {
	s := host(t)
	for name, got := range map[string]string{"buddyinfo": s.buddyinfo(), "pagetypeinfo": s.pagetypeinfo()} {
		if d := cmp.Diff(fixture(t, name), got); d != "" {
			t.Errorf("%s (-host +rendered):\n%s", name, d)
		}
	}
}

// TestCapped: the kernel shows no list longer than 100000 in pagetypeinfo.
func TestCapped(t *testing.T) {
	s := host(t)
	s.memory.Zones[2].ByType[1][0] = 123456
	if !strings.Contains(s.pagetypeinfo(), "Movable >100000 ") {
		t.Errorf("no cap in\n%s", s.pagetypeinfo())
	}
}

// TestFS: the tree keeps the promises of fs.FS and has the files that readers
// of a host look for.
func TestFS(t *testing.T) {
	s := host(t)
	s.memory.MinFree = 67584 << 10
	s.counters.VM[mm.THPFaultAlloc] = 3
	s.counters.VM[mm.NrAnonTHPs] = 3
	s.counters.VM[mm.NrAnonPages] = 1600
	s.counters.Size[4].AnonFaultAlloc = 7
	s.policy.Enabled = mm.Madvise
	tr := newTree(func() *state { return s })
	if err := fstest.TestFS(tr, "proc/vmstat", "proc/meminfo", "proc/zoneinfo"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, want string }{
		{"proc/vmstat", "\nthp_fault_alloc 3\n"},
		{"proc/vmstat", "\nnr_anon_transparent_hugepages 3\n"},
		{"proc/meminfo", "\nAnonHugePages:      6144 kB\n"},
		{"proc/meminfo", "\nAnonPages:          6400 kB\n"},
		{"proc/meminfo", "\nHugepagesize:       2048 kB\n"},
		{"proc/sys/vm/min_free_kbytes", "67584\n"},
		{thpDir + "enabled", "always [madvise] never\n"},
		{thpDir + "hugepages-64kB/enabled", "always inherit madvise [never]\n"},
		{thpDir + "hugepages-64kB/stats/anon_fault_alloc", "7\n"},
		{thpDir + "hugepages-2048kB/stats/anon_fault_alloc", "0\n"},
		{thpDir + "hpage_pmd_size", "2097152\n"},
		{thpDir + "khugepaged/max_ptes_none", "511\n"},
	} {
		got, err := fs.ReadFile(tr, tc.path)
		if err != nil || !strings.Contains(string(got), tc.want) {
			t.Errorf("%s: want %q in %q, %v", tc.path, tc.want, got, err)
		}
	}
	s.counters.VM[mm.THPFaultAlloc] = 4
	if got, _ := fs.ReadFile(tr, "proc/vmstat"); !strings.Contains(string(got), "thp_fault_alloc 4\n") {
		t.Error("a file opened later does not show the machine as it is then")
	}
}

// TestPolicyRoundTrip: the policy that the files show is the policy in force.
func TestPolicyRoundTrip(t *testing.T) {
	s := host(t)
	s.policy.Enabled, s.policy.Size[4], s.policy.Size[9] = mm.Always, mm.Madvise, mm.Inherit
	s.policy.Defrag = mm.DefragDeferMadvise
	got, err := mm.ParsePolicy(s.settings(), s.sizes)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.policy, got); d != "" {
		t.Errorf("(-set +read):\n%s", d)
	}
}

// TestOldKernel: a kernel without sizes of their own has no such files.
func TestOldKernel(t *testing.T) {
	s := host(t)
	s.rules, _ = mm.RulesFor("5.4")
	for f := range s.files() {
		if strings.Contains(f, "hugepages-") {
			t.Errorf("5.4 has no %s", f)
		}
	}
	// A machine not built yet shows its settings, and memory without zones.
	if err := fstest.TestFS(FS(&mm.Machine{}), "proc/meminfo"); err != nil {
		t.Error(err)
	}
}
