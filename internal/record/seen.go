package record

import (
	"slices"

	"github.com/hugelab/hugelab/mm"
)

// pageSet remembers the pages of one address space that are known to have been
// touched, and which of them hold the zero page. It is keyed by blocks of 512
// pages, so that its size follows the memory in use.
//
//	unseen --read--> zero --write--> written
//	unseen --write--> written
//	any --unmapped, DONTNEED--> unseen
type pageSet struct {
	pageSize uint64
	blocks   map[uint64]*seenBlock // by page number / 512

	lastN uint64 // the block asked for last, found again without the map
	last  *seenBlock
}

const blockPages = 512

type seenBlock struct {
	seen, zero [blockPages / 64]uint64
}

// pageState is what a pageSet knows of a page.
type pageState uint8

const (
	unseen pageState = iota
	seenZero
	seenWritten
)

func newPageSet(pageSize uint64) *pageSet {
	return &pageSet{pageSize: pageSize, blocks: map[uint64]*seenBlock{}}
}

// block is the block that holds page, nil when none of its pages is known.
func (s *pageSet) block(page uint64) *seenBlock {
	n := page / blockPages
	if s.last == nil || s.lastN != n {
		s.lastN, s.last = n, s.blocks[n]
	}
	return s.last
}

func (s *pageSet) get(page uint64) pageState {
	b := s.block(page)
	if b == nil {
		return unseen
	}
	w, bit := page%blockPages/64, uint64(1)<<(page%64)
	switch {
	case b.seen[w]&bit == 0:
		return unseen
	case b.zero[w]&bit != 0:
		return seenZero
	}
	return seenWritten
}

func (s *pageSet) set(page uint64, st pageState) {
	b := s.block(page)
	if b == nil {
		if st == unseen {
			return
		}
		b = &seenBlock{}
		s.blocks[page/blockPages] = b
		s.last = b
	}
	w, bit := page%blockPages/64, uint64(1)<<(page%64)
	b.seen[w] &^= bit
	b.zero[w] &^= bit
	if st != unseen {
		b.seen[w] |= bit
	}
	if st == seenZero {
		b.zero[w] |= bit
	}
}

// forget makes the pages of [from, to) unseen. Its cost follows the smaller of
// the range and the set.
func (s *pageSet) forget(from, to mm.VA) {
	first, end := uint64(from)/s.pageSize, (uint64(to)+s.pageSize-1)/s.pageSize
	s.eachBlock(first, end, func(n uint64, b *seenBlock) {
		lo, hi := n*blockPages, (n+1)*blockPages
		if first <= lo && hi <= end {
			delete(s.blocks, n)
			s.last = nil
			return
		}
		for p := max(lo, first); p < min(hi, end); p++ {
			s.set(p, unseen)
		}
	})
}

// eachBlock calls f for the blocks that hold a page of [first, end).
func (s *pageSet) eachBlock(first, end uint64, f func(n uint64, b *seenBlock)) {
	if first >= end {
		return
	}
	lo, hi := first/blockPages, (end-1)/blockPages
	if hi-lo < uint64(len(s.blocks)) {
		for n := lo; n <= hi; n++ {
			if b := s.blocks[n]; b != nil {
				f(n, b)
			}
		}
		return
	}
	for n, b := range s.blocks {
		if lo <= n && n <= hi {
			f(n, b)
		}
	}
}

// move gives the pages of [from, from+length) the addresses from to on, as
// mremap does; what was at the target is forgotten.
func (s *pageSet) move(from, to mm.VA, length uint64) {
	type page struct {
		n  uint64
		st pageState
	}
	var pages []page
	first, end := uint64(from)/s.pageSize, (uint64(from)+length+s.pageSize-1)/s.pageSize
	s.eachBlock(first, end, func(n uint64, b *seenBlock) {
		for p := max(n*blockPages, first); p < min((n+1)*blockPages, end); p++ {
			if st := s.get(p); st != unseen {
				pages = append(pages, page{p, st})
			}
		}
	})
	s.forget(from, from+mm.VA(length))
	s.forget(to, to+mm.VA(length))
	for _, p := range pages {
		s.set(p.n-first+uint64(to)/s.pageSize, p.st)
	}
}

// clone is the set of a forked child.
func (s *pageSet) clone() *pageSet {
	c := newPageSet(s.pageSize)
	for n, b := range s.blocks {
		nb := *b
		c.blocks[n] = &nb
	}
	return c
}

// span is a range of addresses.
type span struct{ from, to mm.VA }

// mergeSpans sorts spans and joins those that touch or overlap.
func mergeSpans(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	out := spans[:0]
	for _, s := range spans {
		if s.from >= s.to {
			continue
		}
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
