package mm

import (
	"fmt"
	"strconv"
	"strings"
)

// Sizes is a base page and what follows from it: which orders a transparent
// huge page can have, and how the kernel spells them.
type Sizes struct {
	Base Bytes // 4096, 16384 or 65536
	PMD  Order // order of a block that one PMD entry maps: 9, 11 or 13
}

// MinTHPOrder is the smallest order of an anonymous huge page: order 1 cannot
// exist. Linux: include/linux/huge_mm.h:THP_ORDERS_ALL_ANON (v6.18).
const MinTHPOrder Order = 2

// SizesOf describes a base page. 0 means 4096. Other sizes than 4096, 16384
// and 65536 are an error.
func SizesOf(base Bytes) (Sizes, error) {
	switch base {
	case 0, 4096:
		return Sizes{4096, 9}, nil
	case 16384:
		return Sizes{16384, 11}, nil
	case 65536:
		return Sizes{65536, 13}, nil
	}
	return Sizes{}, fmt.Errorf("base page: %d bytes: not one of 4096, 16384, 65536", base)
}

// Orders lists the orders that have a hugepages-<k>kB/enabled file, smallest
// first; the last is PMD.
func (s Sizes) Orders() []Order {
	var all []Order
	for o := MinTHPOrder; o <= s.PMD; o++ {
		all = append(all, o)
	}
	return all
}

// Bytes is the length of a block of order o.
func (s Sizes) Bytes(o Order) Bytes { return s.Base << o }

// Name is the short name of order o: "64k", "2m", "1g".
func (s Sizes) Name(o Order) string { return shortBytes(s.Bytes(o)) }

// Names lists the short names of all orders, smallest first.
func (s Sizes) Names() []string {
	var all []string
	for _, o := range s.Orders() {
		all = append(all, s.Name(o))
	}
	return all
}

// Dir is the directory of order o below transparent_hugepage:
// "hugepages-64kB".
func (s Sizes) Dir(o Order) string {
	return "hugepages-" + strconv.FormatUint(uint64(s.Bytes(o)>>10), 10) + "kB"
}

// Order reads a size: "64k", "64kB", "2M", "2048kB", "hugepages-64kB". It
// must be a size that s has.
func (s Sizes) Order(name string) (Order, error) {
	b, err := ParseBytes(strings.TrimPrefix(name, "hugepages-"))
	if err == nil {
		for _, o := range s.Orders() {
			if s.Bytes(o) == b {
				return o, nil
			}
		}
	}
	return 0, fmt.Errorf("size: %q: with a base page of %s the sizes are %s",
		name, shortBytes(s.Base), strings.Join(s.Names(), ", "))
}

// ParseBytes reads a number of bytes with an optional binary unit k, m, g or t
// of either case and an optional B: "4096", "64k", "2MB", "1g".
func ParseBytes(text string) (Bytes, error) {
	t := strings.ToLower(text)
	t = strings.TrimSuffix(strings.TrimSuffix(t, "b"), "i")
	shift := uint(0)
	if n := len(t); n > 0 {
		switch t[n-1] {
		case 'k':
			shift = 10
		case 'm':
			shift = 20
		case 'g':
			shift = 30
		case 't':
			shift = 40
		}
		if shift != 0 {
			t = t[:n-1]
		}
	}
	v, err := strconv.ParseUint(t, 10, 64)
	if err != nil || v<<shift>>shift != v {
		return 0, fmt.Errorf("size: %q: want a number of bytes such as 4096, 64k, 2m or 1g", text)
	}
	return Bytes(v << shift), nil
}

// shortBytes prints b with the largest unit that divides it.
func shortBytes(b Bytes) string {
	unit := ""
	for _, u := range []string{"k", "m", "g", "t"} {
		if b == 0 || b&1023 != 0 {
			break
		}
		b, unit = b>>10, u
	}
	return strconv.FormatUint(uint64(b), 10) + unit
}
