package hw

import "fmt"

// PageSize is a size of page that a TLB knows.
type PageSize uint8

const (
	PageBase PageSize = iota // the machine's base page
	Page2M
	Page1G
	pageSizes
)

// TLBLevel is where a translation was found.
type TLBLevel uint8

const (
	InTLB1 TLBLevel = iota
	InTLB2
	Walked
)

// TLB is the data TLBs of one hardware thread and its page walker.
//
//	first level (by page size) -> second level -> walk: cache of middle tables -> page tables
//
// Where a machine has no entries of a size of its own, the size shares those of
// base pages in the first level; in the second, base and 2 MB pages share
// always. Under a hypervisor each guest table is itself found by a walk.
type TLB struct {
	first  [pageSizes]*Cache
	second [pageSizes]*Cache // nil: none
	middle *Cache            // last-level tables that the walker knows the place of
	shift  [pageSizes]uint
	nested bool
	step   float64
	hit2   float64
}

// Levels of page tables, as x86-64 and arm64 with 4 KB pages have.
const walkLevels = 4

// sizeBit is above the numbers of pages of 57-bit addresses.
const sizeBit = 46

// NewTLB makes the TLBs of one hardware thread of a machine.
func NewTLB(m *Machine) (*TLB, error) {
	t := &TLB{
		nested: m.Int("virtual") != 0, step: m.Get("walk.step"), hit2: m.Get("tlb2.latency"),
		shift: [pageSizes]uint{0, 21, 30},
	}
	for t.shift[0] = 12; 1<<t.shift[0] < m.Int("page.size") && t.shift[0] < 20; {
		t.shift[0]++
	}
	var err error
	table := func(key string) *Cache {
		n, ways := m.Int(key), m.Int(key+".ways")
		if err != nil || n <= 0 {
			return nil
		}
		if ways <= 0 || ways > n {
			ways = n
		}
		sets := 1
		for sets*2*ways <= n {
			sets *= 2
		}
		var c *Cache
		if c, err = NewCache(Geometry{Sets: sets, Ways: n / sets}); err != nil {
			err = fmt.Errorf("machine %s: %s: %w", m.Name, key, err)
		}
		return c
	}
	own := func(key string, shared *Cache) *Cache {
		if c := table(key); c != nil {
			return c
		}
		return shared
	}
	t.first[PageBase] = table("tlb1.4k")
	if t.first[PageBase] == nil && err == nil {
		err = fmt.Errorf("machine %s: tlb1.4k: a TLB without entries", m.Name)
	}
	t.first[Page2M] = own("tlb1.2m", t.first[PageBase])
	t.first[Page1G] = own("tlb1.1g", t.first[PageBase])
	t.second[PageBase] = table("tlb2")
	t.second[Page2M] = t.second[PageBase]
	t.second[Page1G] = table("tlb2.1g")
	if n := m.Int("walk.cache"); n > 0 && err == nil {
		t.middle, err = NewCache(Geometry{Sets: 1, Ways: n})
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Access translates an address that a page of that size maps. It returns where
// the translation was found and what finding it cost beyond a first-level hit,
// in nanoseconds.
func (t *TLB) Access(addr uint64, size PageSize) (TLBLevel, float64) {
	// The size stands above the page's number, for sizes that share a table; the
	// number's low bits choose the set.
	page := addr>>t.shift[size] | uint64(size)<<sizeBit
	if _, ok := t.first[size].Hit(page, 0); ok {
		return InTLB1, 0
	}
	level, cost := InTLB2, t.hit2
	second := t.second[size]
	found := false
	if second != nil {
		_, found = second.Hit(page, 0)
	}
	if !found {
		level = Walked
		cost += float64(t.walk(addr, size)) * t.step
		if second != nil {
			second.Put(page, 0)
		}
	}
	t.first[size].Put(page, 0)
	return level, cost
}

// walk is how many tables a walk looks at.
func (t *TLB) walk(addr uint64, size PageSize) int {
	depth := walkLevels - int(size)
	if t.middle != nil {
		// The walker's cache knows the last table on the way to the page.
		table := addr>>(t.shift[size]+9) | uint64(size)<<sizeBit
		if _, ok := t.middle.Hit(table, 0); ok {
			depth = 1
		} else {
			t.middle.Put(table, 0)
		}
	}
	if !t.nested {
		return depth
	}
	// Each guest table's place, and the page's, is translated by the host: one
	// look when its own walker's cache helps, else all its levels.
	host := walkLevels
	if depth == 1 {
		host = 1
	}
	return (depth+1)*(host+1) - 1
}

// Flush forgets all translations, as a full flush does.
func (t *TLB) Flush() {
	for _, c := range [...]*Cache{t.first[0], t.first[1], t.first[2], t.second[0], t.second[2], t.middle} {
		if c != nil {
			c.Clear()
		}
	}
}
