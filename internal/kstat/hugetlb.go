package kstat

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Pool is one hugetlb pool: one page size, of the whole machine or of a node.
type Pool struct {
	Size       mm.Bytes
	Node       int // -1 for the whole machine
	Total      uint64
	Free       uint64
	Surplus    uint64
	Reserved   uint64 // whole machine only, as the next
	Overcommit uint64
	DemoteSize mm.Bytes // 0 for a size that cannot be demoted
}

// Available is how many pages a new mapping can reserve: a free page that is
// reserved belongs to somebody already.
func (p Pool) Available() uint64 {
	if p.Reserved > p.Free {
		return 0
	}
	return p.Free - p.Reserved
}

// ReadPools reads the hugetlb pools: whole machine first, then by node; by
// size within each.
func ReadPools(fsys fs.FS) ([]Pool, error) {
	all, err := poolsIn(fsys, "sys/kernel/mm/hugepages", -1)
	if err != nil {
		return nil, err
	}
	nodes, err := fs.ReadDir(fsys, "sys/devices/system/node")
	if err != nil {
		return all, nil
	}
	for _, d := range nodes {
		num, ok := strings.CutPrefix(d.Name(), "node")
		n, err := strconv.Atoi(num)
		if !ok || err != nil {
			continue
		}
		pools, err := poolsIn(fsys, path.Join("sys/devices/system/node", d.Name(), "hugepages"), n)
		if err == nil {
			all = append(all, pools...)
		}
	}
	slices.SortStableFunc(all, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Size, b.Size))
	})
	return all, nil
}

func poolsIn(fsys fs.FS, dir string, node int) ([]Pool, error) {
	dirs, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var all []Pool
	for _, d := range dirs {
		size, ok := sizeOfDir(d.Name())
		if !ok {
			continue
		}
		p := Pool{Size: size, Node: node}
		for name, v := range map[string]*uint64{
			"nr_hugepages": &p.Total, "free_hugepages": &p.Free, "surplus_hugepages": &p.Surplus,
			"resv_hugepages": &p.Reserved, "nr_overcommit_hugepages": &p.Overcommit,
		} {
			n, err := readNumber(fsys, path.Join(dir, d.Name(), name))
			if err != nil && !Missing(err) {
				return nil, err
			}
			*v = n
		}
		if text, err := readText(fsys, path.Join(dir, d.Name(), "demote_size")); err == nil {
			p.DemoteSize, _ = mm.ParseBytes(text)
		}
		all = append(all, p)
	}
	return all, nil
}

// ReadHVO says whether hugetlb gives back the memory of its page descriptors
// (vm.hugetlb_optimize_vmemmap); fs.ErrNotExist where the kernel cannot.
func ReadHVO(fsys fs.FS) (bool, error) {
	n, err := readNumber(fsys, "proc/sys/vm/hugetlb_optimize_vmemmap")
	return n != 0, err
}
