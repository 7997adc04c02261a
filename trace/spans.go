package trace

import (
	"github.com/tidwall/btree"

	"github.com/hugelab/hugelab/mm"
)

// span is a stretch of an address space that belongs to one region. Pages are
// numbered from address 0.
type span struct {
	start, end uint64    // pages; end is not in it
	base       uint64    // page that is page 0 of region
	region     mm.Region // whose addresses are (region, page - base)
	root       mm.Region // regions anchored in one another share a root and move together
	class      class
}

// class is what backs a region.
type class uint8

const (
	classAnon  class = iota // private anonymous: what policies are about
	classOther              // a file, shared memory, special
)

// spans is one address space's mappings, ordered. The zero value is empty.
// Spans are keyed by their end: the first key above a page is the span that
// holds it, if any does.
type spans struct {
	tree    btree.Map[uint64, span]
	recent  [8]span // found lately, newest first; an empty one has end 0
	gone    [16]span
	oldest  int
	scratch []span
}

// copy is fork's copy; it shares structure until one side changes.
func (s *spans) copy() *spans {
	c := &spans{tree: *s.tree.Copy(), recent: s.recent, gone: s.gone, oldest: s.oldest}
	return c
}

// find returns the span that holds page.
func (s *spans) find(page uint64) (span, bool) {
	for i := range s.recent {
		if r := &s.recent[i]; page >= r.start && page < r.end {
			found := *r
			copy(s.recent[1:i+1], s.recent[:i])
			s.recent[0] = found
			return found, true
		}
	}
	found, ok := s.after(page)
	if !ok || found.start > page {
		return span{}, false
	}
	copy(s.recent[1:], s.recent[:])
	s.recent[0] = found
	return found, true
}

// after returns the first span that ends above page.
func (s *spans) after(page uint64) (found span, ok bool) {
	if page == ^uint64(0) {
		return span{}, false
	}
	s.tree.Ascend(page+1, func(_ uint64, v span) bool {
		found, ok = v, true
		return false
	})
	return found, ok
}

// in returns the pieces of spans that lie in [start, end), in order. The
// result is good until the next call.
func (s *spans) in(start, end uint64) []span {
	s.scratch = s.scratch[:0]
	if start >= end {
		return nil
	}
	s.tree.Ascend(start+1, func(_ uint64, v span) bool {
		if v.start >= end {
			return false
		}
		v.start, v.end = max(v.start, start), min(v.end, end)
		s.scratch = append(s.scratch, v)
		return true
	})
	return s.scratch
}

// parts is in with neighbours that move together made one: a system call's
// range stays one operation wherever its regions lie side by side for sure.
func (s *spans) parts(start, end uint64) []span {
	all := s.in(start, end)
	n := 0
	for _, v := range all {
		if n > 0 && all[n-1].end == v.start && all[n-1].root == v.root {
			all[n-1].end = v.end
			continue
		}
		all[n] = v
		n++
	}
	return all[:n]
}

// cut removes [start, end). What was there is remembered for a while: a program
// may map into the hole it made.
func (s *spans) cut(start, end uint64) {
	if start >= end {
		return
	}
	s.recent = [8]span{}
	pieces := s.in(start, end)
	for _, v := range pieces {
		s.gone[s.oldest] = v
		s.oldest = (s.oldest + 1) % len(s.gone)
	}
	if len(pieces) == 0 {
		return
	}
	// The first piece may begin, and the last end, within a span.
	if first, ok := s.after(start); ok && first.start < start {
		s.tree.Delete(first.end)
		tail := first
		first.end = start
		s.tree.Set(start, first)
		if tail.end > end {
			tail.start = end
			s.tree.Set(tail.end, tail)
			return
		}
		pieces = pieces[1:]
	}
	for _, v := range pieces {
		if v.end < end {
			s.tree.Delete(v.end)
			continue
		}
		if last, ok := s.after(end - 1); ok {
			s.tree.Delete(last.end)
			if last.start = end; last.end > end {
				s.tree.Set(last.end, last)
			}
		}
	}
}

// put adds v over whatever was there.
func (s *spans) put(v span) {
	if v.start >= v.end {
		return
	}
	s.cut(v.start, v.end)
	s.recent = [8]span{}
	if before, ok := s.tree.Get(v.start); ok && before.region == v.region && before.base == v.base {
		s.tree.Delete(before.end)
		v.start = before.start
	}
	s.tree.Set(v.end, v)
}

// anchor returns the span relative to which a mapping at a fixed page lies:
// the one mapped there, the one just unmapped there, the one that ends there.
func (s *spans) anchor(page uint64) (span, bool) {
	if v, ok := s.find(page); ok {
		return v, true
	}
	for i := range s.gone {
		v := s.gone[(s.oldest+len(s.gone)-1-i)%len(s.gone)]
		if page >= v.start && page < v.end {
			return v, true
		}
	}
	return s.tree.Get(page)
}
