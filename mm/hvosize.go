package mm

import "fmt"

// PoolMemory is what the struct pages of a hugetlb pool take, and what giving
// them back saves.
type PoolMemory struct {
	Page        Bytes  // length of the pool's pages
	Pages       uint64 // in the pool
	StructPages Bytes  // of struct pages without vmemmap optimisation
	FreedAPage  uint64 // pages of struct pages that come free of one of the pool's
	Saved       Bytes  // that come free
	Tables      Bytes  // of page tables, once the mapping of those struct pages is split
	Net         Bytes  // Saved without Tables; 0 where tables take more
}

// HVOSize is the arithmetic of vmemmap optimisation for a pool of that many
// bytes, in pages of order o, all optimised. What does not fill a page is left
// out; a pool of less than one is an error. The pool is taken to lie in one
// piece from a 2 MB entry's worth of struct pages on, 128 MB with base pages of 4
// kB; scattered over memory it splits more entries.
// Linux: mm/hugetlb_vmemmap.c:vmemmap_split_pmd, vmemmap_remap_range (v6.18).
func HVOSize(s Sizes, o Order, pool Bytes, r Rules) (PoolMemory, error) {
	p := PoolMemory{Page: s.Bytes(o)}
	p.Pages = uint64(pool / p.Page)
	if p.Pages == 0 {
		return p, fmt.Errorf("pool: %s: less than one page of %s", shortBytes(pool), shortBytes(p.Page))
	}
	perPage := Bytes(o.Pages()) * structPage // bytes of struct pages of one page
	p.StructPages = Bytes(p.Pages) * perPage
	if n := uint64(perPage / s.Base); r.HVO && n > r.hvoKept() {
		p.FreedAPage = n - r.hvoKept()
		p.Saved = Bytes(p.Pages*p.FreedAPage) * s.Base
		entry := s.Bytes(s.PMD) // of the vmemmap that one table maps
		p.Tables = (p.StructPages + entry - 1) / entry * s.Base
	}
	p.Net = p.Saved - min(p.Saved, p.Tables)
	return p, nil
}

// HVOEntry is how much memory has its struct pages mapped by one 2 MB entry of
// the vmemmap, or by the table that takes its place.
func HVOEntry(s Sizes) Bytes { return s.Bytes(s.PMD) / structPage * s.Base }
