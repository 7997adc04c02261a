package kstat

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

// host is a saved machine of Linux 6.18 as a tree: the files of testdata, and
// below sys/kernel/mm the lines "PATH: TEXT" of sys-kernel-mm.txt.
func host(t testing.TB) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	for name, at := range map[string]string{
		"vmstat": "proc/vmstat", "meminfo": "proc/meminfo", "buddyinfo": "proc/buddyinfo", "zoneinfo": "proc/zoneinfo",
		"pagetypeinfo": "proc/pagetypeinfo", "maps": "proc/7/maps", "smaps": "proc/7/smaps",
		"smaps_rollup": "proc/7/smaps_rollup", "status": "proc/7/status",
	} {
		tree[at] = &fstest.MapFile{Data: fixture(t, name)}
	}
	for line := range strings.Lines(string(fixture(t, "sys-kernel-mm.txt"))) {
		p, text, _ := strings.Cut(line, ": ")
		tree["sys/kernel/mm/"+p] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "linux-6.18", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestVMStat(t *testing.T) {
	v := must[VMStat](t)(ReadVMStat(host(t)))
	if len(v) != 192 || v["nr_free_pages"] != 2513315 || v["nr_unstable"] != 0 {
		t.Errorf("%d lines, nr_free_pages %d", len(v), v["nr_free_pages"])
	}
	// The kernel keeps every counter of the model, by zone or whole, except
	// khugepaged's own two, which have files below transparent_hugepage.
	for c := range mm.NumCounters {
		c := mm.Counter(c)
		_, ok := v.Counter(c)
		if want := c != mm.PagesCollapsed && c != mm.FullScans; ok != want {
			t.Errorf("%v: known %v, want %v", c, ok, want)
		}
	}
	sum := v["pgalloc_dma"] + v["pgalloc_dma32"] + v["pgalloc_normal"] + v["pgalloc_movable"] + v["pgalloc_device"]
	if got, _ := v.Counter(mm.PgAlloc); got != sum || sum == 0 {
		t.Errorf("pgalloc %d, want the zones' sum %d", got, sum)
	}
}

func TestMemInfo(t *testing.T) {
	m := must[MemInfo](t)(ReadMemInfo(host(t)))
	if m.Total() != 24812128<<10 || m.Bytes["FileHugePages"] != 10240<<10 {
		t.Errorf("MemTotal %d, FileHugePages %d", m.Total(), m.Bytes["FileHugePages"])
	}
	if n, ok := m.Count["HugePages_Total"]; n != 0 || !ok {
		t.Errorf("HugePages_Total %d, known %v", n, ok)
	}
}

func TestFreeState(t *testing.T) {
	tree := host(t)
	free := must[mm.FreeState](t)(ReadFreeState(tree))
	want := mm.FreeState{Zones: []mm.FreeZone{
		{Name: "DMA", Blocks: []uint64{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3}, Managed: 3840},
		{Name: "DMA32", Blocks: []uint64{2, 3, 4, 2, 5, 4, 3, 4, 5, 3, 751}, Managed: 772918},
		{Name: "Normal", Blocks: []uint64{73, 1201, 1584, 2112, 1876, 482, 230, 115, 45, 9, 1582}, Managed: 2194696},
	}}
	if d := cmp.Diff(want, free); d != "" {
		t.Error(d)
	}
	delete(tree, "proc/zoneinfo")
	if free := must[mm.FreeState](t)(ReadFreeState(tree)); free.Zones[2].Managed != 0 {
		t.Errorf("managed %d with no zoneinfo, want 0 for not known", free.Zones[2].Managed)
	}
	delete(tree, "proc/buddyinfo")
	if _, err := ReadFreeState(tree); !Missing(err) {
		t.Errorf("error %v, want a missing file", err)
	}
}

func TestZoneInfo(t *testing.T) {
	zones := must[[]Zone](t)(ReadZoneInfo(host(t)))
	z := zones[0]
	if z.Name != "DMA" || z.Free != 3840 || z.Min != 21 || z.Low != 26 || z.High != 31 || z.Spanned != 4095 || z.StartPFN != 1 {
		t.Errorf("%+v", z)
	}
	if z.Stats["nr_anon_pages"] != 3829 || z.Stats["promo"] != 36 {
		t.Errorf("nr_anon_pages %d, promo %d", z.Stats["nr_anon_pages"], z.Stats["promo"])
	}
	for _, z := range zones {
		if z.Present > z.Spanned || z.Managed > z.Present {
			t.Errorf("%s: spanned %d, present %d, managed %d", z.Name, z.Spanned, z.Present, z.Managed)
		}
	}
}

func TestPageTypeInfo(t *testing.T) {
	p := must[PageTypeInfo](t)(ReadPageTypeInfo(host(t)))
	free := must[mm.FreeState](t)(ReadFreeState(host(t)))
	if p.BlockOrder != 9 || len(p.Free) != 15 || len(p.Blocks) != 3 || len(p.Types) != 5 {
		t.Fatalf("order %d, %d lists, %d zones, types %v", p.BlockOrder, len(p.Free), len(p.Blocks), p.Types)
	}
	if want := []uint64{73, 4095, 56, 0, 0}; !slices.Equal(p.Blocks[2].Blocks, want) {
		t.Errorf("Normal has blocks %v, want %v", p.Blocks[2].Blocks, want)
	}
	// The types of a zone add up to what buddyinfo had a moment before.
	for _, z := range free.Zones {
		top := len(z.Blocks) - 1
		var sum uint64
		for _, f := range p.Free {
			if f.Zone == z.Name {
				sum += f.Blocks[top]
			}
		}
		if sum != z.Blocks[top] {
			t.Errorf("%s: %d blocks of order %d by type, %d in buddyinfo", z.Name, sum, top, z.Blocks[top])
		}
	}
	capped := must[PageTypeInfo](t)(ParsePageTypeInfo(strings.NewReader("Node    0, zone   Normal, type      Movable >100000 5 \n")))
	if f := capped.Free[0]; f.Blocks[0] != 100000 || !f.Capped[0] || f.Capped[1] {
		t.Errorf("%+v", f)
	}
}

func TestMaps(t *testing.T) {
	all := must[[]Mapping](t)(ReadMaps(host(t), 7))
	if len(all) != 112 {
		t.Fatalf("%d mappings, want 112", len(all))
	}
	want := Mapping{Start: 0x5643bc340000, End: 0x5643bc341000, Read: true, Exec: true, Offset: 0x1000, DevMajor: 0xfe,
		Inode: 18500, Name: "/usr/bin/python3.11"}
	if d := cmp.Diff(want, all[1]); d != "" {
		t.Error(d)
	}
	for _, m := range all {
		if anon := m.Name == "" || strings.HasPrefix(m.Name, "["); m.Anonymous() != anon {
			t.Errorf("%+v: anonymous %v", m, m.Anonymous())
		}
	}
	spaces := must[[]Mapping](t)(ParseMaps(strings.NewReader("7f00-7f01 rw-s 00000000 00:01 12   /a b (deleted)\n")))
	if spaces[0].Name != "/a b (deleted)" || !spaces[0].Shared || spaces[0].Anonymous() {
		t.Errorf("%+v", spaces[0])
	}
}

func TestSmaps(t *testing.T) {
	all := must[[]Smap](t)(ReadSmaps(host(t), 7))
	var huge mm.Bytes
	for _, s := range all {
		if s.Size != s.Len() && s.Name != "[vsyscall]" {
			t.Errorf("%x: size %d, length %d", s.Start, s.Size, s.Len())
		}
		if !s.THPEligibleKnown {
			t.Errorf("%x: THPeligible not read", s.Start)
		}
		huge += s.AnonHugePages
		if s.Flag("hg") != (s.AnonHugePages > 0) {
			t.Errorf("%x: hg %v, %d bytes huge", s.Start, s.Flag("hg"), s.AnonHugePages)
		}
	}
	sum := must[Smap](t)(ReadSmapsRollup(host(t), 7))
	if huge != 64<<20 || sum.AnonHugePages != huge || sum.Rss != 87488<<10 || sum.Other["Private_Clean"] != 5028<<10 {
		t.Errorf("%d bytes huge by mapping; rollup %+v", huge, sum)
	}
}

func TestStatus(t *testing.T) {
	s := must[Status](t)(ReadStatus(host(t), 7))
	if name := s["Name"]; name != "program" {
		t.Errorf("name %q", name)
	}
	if v, ok := s.Bytes("VmRSS"); v == 0 || !ok {
		t.Errorf("VmRSS %d, %v", v, ok)
	}
	if has, known := s.Has(CapSysAdmin); !has || !known {
		t.Errorf("CAP_SYS_ADMIN %v, %v", has, known)
	}
	if has, known := (Status{"CapEff": "0000004000000000"}).Has(CapPerfmon); !has || !known {
		t.Errorf("CAP_PERFMON %v, %v", has, known)
	}
	if _, known := (Status{}).Has(CapPerfmon); known {
		t.Error("a missing line was taken for an answer")
	}
	if on, known := s.THPEnabled(); !on || !known {
		t.Errorf("THP_enabled %v, %v", on, known)
	}
}

func TestPolicy(t *testing.T) {
	sizes, _ := mm.SizesOf(4096)
	want := mm.DefaultPolicy(sizes)
	want.Enabled = mm.Madvise
	got := must[mm.Policy](t)(ReadPolicy(host(t), sizes))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if b := must[mm.Bytes](t)(ReadPMDSize(host(t))); b != 2<<20 {
		t.Errorf("PMD size %d", b)
	}
	if _, err := ReadPolicy(fstest.MapFS{"proc/vmstat": {}}, sizes); !Missing(err) {
		t.Errorf("error %v, want a missing file", err)
	}
}

func TestSizeStats(t *testing.T) {
	s := must[SizeStats](t)(ReadSizeStats(host(t)))
	if s[16<<10]["anon_fault_alloc"] != 134128 || s[2<<20]["split_deferred"] != 8 || len(s) != 9 {
		t.Errorf("%d sizes; 16 kB %v", len(s), s[16<<10])
	}
	if _, err := ReadSizeStats(fstest.MapFS{thpDir + "/enabled": {}}); !Missing(err) {
		t.Errorf("error %v, want a missing file", err)
	}
}

func TestPools(t *testing.T) {
	tree := host(t)
	set := func(path, text string) { tree[path] = &fstest.MapFile{Data: []byte(text + "\n")} }
	for name, v := range map[string]string{"nr": "1302", "free": "115", "resv": "59"} {
		set("sys/kernel/mm/hugepages/hugepages-2048kB/"+name+"_hugepages", v)
	}
	set("sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "115")
	set("sys/devices/system/node/possible", "0-1")
	pools := must[[]Pool](t)(ReadPools(tree))
	want := []Pool{
		{Size: 2 << 20, Node: -1, Total: 1302, Free: 115, Reserved: 59},
		{Size: 1 << 30, Node: -1, DemoteSize: 2 << 20},
		{Size: 2 << 20, Node: 1, Free: 115},
	}
	if d := cmp.Diff(want, pools); d != "" {
		t.Error(d)
	}
	if n := pools[0].Available(); n != 56 {
		t.Errorf("%d available, want 56", n)
	}
	if _, err := ReadHVO(tree); !Missing(err) {
		t.Errorf("error %v, want a missing file", err)
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  MemoryLimit
	}{
		{"version 2, the parent is tighter", map[string]string{
			"proc/7/cgroup":                    "0::/app/db\n",
			"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids",
			"sys/fs/cgroup/app/db/memory.max":  "4294967296",
			"sys/fs/cgroup/app/memory.max":     "1073741824",
		}, MemoryLimit{1 << 30, 2, "/app"}},
		{"version 2, no limit", map[string]string{
			"proc/7/cgroup":                    "0::/app\n",
			"sys/fs/cgroup/cgroup.controllers": "memory",
			"sys/fs/cgroup/app/memory.max":     "max",
		}, MemoryLimit{0, 2, ""}},
		{"version 1 beside an empty version 2", map[string]string{
			"proc/7/cgroup": "4:memory:/app\n3:cpu,cpuacct:/\n0::/\n",
			"sys/fs/cgroup/memory/app/memory.limit_in_bytes": "536870912",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712",
		}, MemoryLimit{512 << 20, 1, "/app"}},
		{"version 1, unlimited", map[string]string{
			"proc/7/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
		}, MemoryLimit{0, 1, ""}},
		{"a container that sees its own mount alone", map[string]string{
			"proc/7/cgroup":                    "0::/../other/x\n",
			"sys/fs/cgroup/cgroup.controllers": "memory",
			"sys/fs/cgroup/memory.max":         "2147483648",
		}, MemoryLimit{2 << 30, 2, "/"}},
		{"no memory cgroup", map[string]string{"proc/7/cgroup": "0::/\n"}, MemoryLimit{}},
	} {
		tree := fstest.MapFS{}
		for p, text := range c.files {
			tree[p] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := ReadMemoryLimit(tree, 7)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	tree := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 1 kB\nMemFree: lots\n")}}
	_, err := ReadMemInfo(tree)
	if err == nil || !strings.Contains(err.Error(), "/proc/meminfo: line 2: MemFree") {
		t.Errorf("error %v", err)
	}
	long := strings.Repeat("x", maxLine+1)
	if _, err := ParseVMStat(strings.NewReader(long)); err == nil {
		t.Error("an endless line was read")
	}
}

// fuzz feeds a parser its fixture and what the fuzzer makes of it. check looks
// at what was accepted.
func fuzz[T any](f *testing.F, name string, parse func(io.Reader) (T, error), check func(*testing.T, T)) {
	seed := fixture(f, name)
	f.Add(seed[:min(len(seed), 4096)])
	f.Add(seed[len(seed)-min(len(seed), 600):])
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parse(bytes.NewReader(b))
		if err == nil {
			check(t, v)
		}
		again, err2 := parse(bytes.NewReader(b))
		if (err == nil) != (err2 == nil) || !cmp.Equal(v, again) {
			t.Error("the same bytes gave two answers")
		}
	})
}

func FuzzVMStat(f *testing.F) { fuzz(f, "vmstat", ParseVMStat, func(*testing.T, VMStat) {}) }

func FuzzMemInfo(f *testing.F) { fuzz(f, "meminfo", ParseMemInfo, func(*testing.T, MemInfo) {}) }

func FuzzBuddyInfo(f *testing.F) {
	fuzz(f, "buddyinfo", ParseBuddyInfo, func(t *testing.T, s mm.FreeState) {
		for _, z := range s.Zones {
			if z.Name == "" {
				t.Error("a zone without a name")
			}
		}
	})
}

func FuzzPageTypeInfo(f *testing.F) {
	fuzz(f, "pagetypeinfo", ParsePageTypeInfo, func(t *testing.T, p PageTypeInfo) {
		for _, z := range p.Free {
			if z.Type == "" || len(z.Blocks) != len(z.Capped) {
				t.Errorf("%+v", z)
			}
		}
	})
}

func FuzzZoneInfo(f *testing.F) { fuzz(f, "zoneinfo", ParseZoneInfo, func(*testing.T, []Zone) {}) }

func FuzzMaps(f *testing.F) {
	fuzz(f, "maps", ParseMaps, func(t *testing.T, all []Mapping) {
		for _, m := range all {
			if m.End < m.Start {
				t.Errorf("%+v", m)
			}
		}
	})
}

func FuzzSmaps(f *testing.F) { fuzz(f, "smaps", ParseSmaps, func(*testing.T, []Smap) {}) }

func FuzzStatus(f *testing.F) { fuzz(f, "status", ParseStatus, func(*testing.T, Status) {}) }

func FuzzCgroup(f *testing.F) { fuzz(f, "status", ParseCgroup, func(*testing.T, []Cgroup) {}) }

// FuzzTHP gives the text of every settings file to the policy reader.
func FuzzTHP(f *testing.F) {
	f.Add("always [madvise] never", "511")
	f.Add("[", "-1")
	sizes, _ := mm.SizesOf(4096)
	f.Fuzz(func(t *testing.T, mode, num string) {
		tree := fstest.MapFS{
			thpDir + "/enabled":                    {Data: []byte(mode)},
			thpDir + "/khugepaged/max_ptes_none":   {Data: []byte(num)},
			thpDir + "/hugepages-16kB/stats/split": {Data: []byte(num)},
		}
		p, err := ReadPolicy(tree, sizes)
		if err == nil && p.Khugepaged.MaxPTEsNone > 511 {
			t.Errorf("max_ptes_none %d", p.Khugepaged.MaxPTEsNone)
		}
		_, _ = ReadSizeStats(tree)
		_, _ = ReadTHPSettings(fs.FS(tree))
	})
}
