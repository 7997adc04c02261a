package procfs

import (
	"fmt"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// poolDir is where the kernel shows the hugetlb pools, nodePoolDir a node's.
const (
	poolDir     = "sys/kernel/mm/hugepages/"
	nodePoolDir = "sys/devices/system/node/node%d/hugepages/"
)

// poolFiles are the files of a pool. A reservation is of no node.
// Linux: mm/hugetlb_sysfs.c:hstate_attrs, per_node_hstate_attrs (v6.18).
var poolFiles = []struct {
	name string
	get  func(*mm.PoolInfo) uint64
	node func(*mm.PoolNode) uint64 // nil: nodes have no such file
}{
	{"nr_hugepages", func(p *mm.PoolInfo) uint64 { return p.Pages }, func(n *mm.PoolNode) uint64 { return n.Pages }},
	{"free_hugepages", func(p *mm.PoolInfo) uint64 { return p.Free }, func(n *mm.PoolNode) uint64 { return n.Free }},
	{"surplus_hugepages", func(p *mm.PoolInfo) uint64 { return p.Surplus },
		func(n *mm.PoolNode) uint64 { return n.Surplus }},
	{"resv_hugepages", func(p *mm.PoolInfo) uint64 { return uint64(p.Reserved) }, nil},
	{"nr_overcommit_hugepages", func(p *mm.PoolInfo) uint64 { return p.Overcommit }, nil},
}

// addPools adds the files of every pool.
func (s *state) addPools(f map[string]func(*state) string) {
	for i := range s.pools {
		dir := s.sizes.Dir(s.pools[i].Order) + "/"
		for _, pf := range poolFiles {
			f[poolDir+dir+pf.name] = func(s *state) string { return decimal(pf.get(&s.pools[i])) }
			if pf.node == nil {
				continue
			}
			for n := range s.pools[i].Nodes {
				f[fmt.Sprintf(nodePoolDir, n)+dir+pf.name] = func(s *state) string {
					return decimal(pf.node(&s.pools[i].Nodes[n]))
				}
			}
		}
	}
}

// hugetlbInfo is the hugetlb part of /proc/meminfo: the pool of the default
// size, the PMD's, and the memory of all pools.
// Linux: mm/hugetlb.c:hugetlb_report_meminfo (v6.18).
func (s *state) hugetlbInfo(b *strings.Builder) {
	all := uint64(0)
	for i := range s.pools {
		all += s.pools[i].Pages << s.pools[i].Order
	}
	var p mm.PoolInfo
	if len(s.pools) > 0 {
		p = s.pools[0]
	}
	line := func(name string, n uint64) { fmt.Fprintf(b, "%-16s%8d\n", name+":", n) }
	line("HugePages_Total", p.Pages)
	line("HugePages_Free", p.Free)
	line("HugePages_Rsvd", uint64(p.Reserved))
	line("HugePages_Surp", p.Surplus)
	fmt.Fprintf(b, "%-16s%8d kB\n", "Hugepagesize:", s.kB(uint64(s.sizes.PMD.Pages())))
	fmt.Fprintf(b, "%-16s%8d kB\n", "Hugetlb:", s.kB(all))
}
