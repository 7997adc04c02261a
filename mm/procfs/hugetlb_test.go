package procfs

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

// TestPools reads what the kernel would show of two nodes' pools.
func TestPools(t *testing.T) {
	rules, err := mm.RulesFor("6.18")
	if err != nil {
		t.Fatal(err)
	}
	p := mm.NeverPolicy(mm.Sizes{Base: 4096, PMD: 9})
	p.Pools[0] = mm.HugePool{Pages: 5, Overcommit: 2}
	p.Pools[1].Pages = 1
	m, err := mm.New(mm.Config{Nodes: []mm.Node{{Mem: 3 << 30}, {Mem: 1 << 30}}, Rules: rules, Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	ops := []mm.Op{{Kind: mm.OpExec, Space: 1}, {Kind: mm.OpMap, Space: 1, Region: 1, N: 1024, Access: mm.Read,
		Flags: mm.MapHugetlb | mm.MapPool}}
	if _, err := m.Exec(ops, nil); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":                      "5\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages":                    "2\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages":           "2\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages":                 "1\n",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages":      "3\n",
		"sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages":    "2\n",
		"sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages":   "0\n",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/resv_hugepages":    "",
		"sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages":   "1\n",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/surplus_hugepages": "0\n",
	} {
		b, err := fs.ReadFile(FS(m), file)
		if string(b) != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v; want %q", file, b, err, want)
		}
	}
	b, err := fs.ReadFile(FS(m), "proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HugePages_Total:       5\n", "HugePages_Rsvd:        2\n", "Hugetlb:         1058816 kB\n"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("meminfo lacks %q:\n%s", want, b)
		}
	}
}
