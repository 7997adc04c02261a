package mm

import (
	"fmt"
	"strconv"
	"strings"
)

// This file is the hugetlb part of a policy: how large pools are, as spec items
// ("pool=2m:6", "overcommit=2m:4") and as the kernel's files.

// poolKeys are the keys of a spec that are about pools.
var poolKeys = []string{"pool", "overcommit"}

// PoolOrders lists the orders of hugetlb pages, as Policy.Pools has them.
// Linux: arch/x86/mm/hugetlbpage.c:arch_hugetlb_valid_size (v6.18); with other
// base pages only the PMD's size is modelled.
func (s Sizes) PoolOrders() []Order {
	if s.Base == 4096 {
		return []Order{s.PMD, 2 * s.PMD}
	}
	return []Order{s.PMD}
}

// poolField is the number that a key sets of a pool.
func poolField(p *HugePool, key string) *uint64 {
	if key == "overcommit" {
		return &p.Overcommit
	}
	return &p.Pages
}

// setPools reads "none" or SIZE:PAGES, several joined by "+" or "|". Sizes that
// are not named stay.
func (p *Policy) setPools(key, value string, s Sizes) error {
	pools := p.Pools
	if value == "none" {
		for i := range pools {
			*poolField(&pools[i], key) = 0
		}
		p.Pools = pools
		return nil
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '|' || r == '+' }) {
		size, pages, _ := strings.Cut(part, ":")
		i, err := s.poolIndex(size)
		if err != nil {
			return fmt.Errorf("policy: %s: %w", key, err)
		}
		n, err := strconv.ParseUint(pages, 10, 32)
		if err != nil {
			return fmt.Errorf("policy: %s: %q: want SIZE:PAGES such as 2m:6", key, part)
		}
		if key == "overcommit" && i > 0 && n > 0 {
			return fmt.Errorf("policy: overcommit: %s: pages so large are never surplus", size)
		}
		*poolField(&pools[i], key) = n
	}
	p.Pools = pools
	return nil
}

// poolIndex is the index in Policy.Pools of a size by its name.
func (s Sizes) poolIndex(name string) (int, error) {
	b, err := ParseBytes(name)
	var names []string
	for i, o := range s.PoolOrders() {
		if err == nil && s.Bytes(o) == b {
			return i, nil
		}
		names = append(names, s.Name(o))
	}
	return 0, fmt.Errorf("%q: want a size of %s", name, strings.Join(names, ", "))
}

// diffPools lists the items that make p's pools of base's.
func (p *Policy) diffPools(base *Policy, s Sizes) (items []string) {
	for _, key := range poolKeys {
		var parts []string
		for i, o := range s.PoolOrders() {
			if n := *poolField(&p.Pools[i], key); n != *poolField(&base.Pools[i], key) {
				parts = append(parts, s.Name(o)+":"+strconv.FormatUint(n, 10))
			}
		}
		if parts != nil {
			items = append(items, key+"="+strings.Join(parts, "+"))
		}
	}
	return items
}

// PoolFiles gives the pools as text for the kernel's own files: the path below
// /sys/kernel/mm/hugepages, and what to write to it.
func (p Policy) PoolFiles(s Sizes) map[string]string {
	f := map[string]string{}
	for i, o := range s.PoolOrders() {
		f[s.Dir(o)+"/nr_hugepages"] = strconv.FormatUint(p.Pools[i].Pages, 10)
		if i == 0 {
			f[s.Dir(o)+"/nr_overcommit_hugepages"] = strconv.FormatUint(p.Pools[i].Overcommit, 10)
		}
	}
	return f
}
