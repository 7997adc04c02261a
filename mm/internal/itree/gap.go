package itree

// HighestGap finds the highest free piece of at least length within
// [floor, limit) and returns where that piece ends, cut at limit.
func (t *Tree[V]) HighestGap(floor, limit, length uint64) (end uint64, ok bool) {
	if limit < floor || limit-floor < length {
		return 0, false
	}
	low := floor
	if t.last != nil {
		low = max(floor, t.last.end)
	}
	if limit >= low && limit-low >= length {
		return limit, true
	}
	return t.root.highest(floor, limit, length)
}

func (n *Node[V]) highest(floor, limit, length uint64) (uint64, bool) {
	if n == nil || n.maxGap < length {
		return 0, false
	}
	if n.end < limit { // else every gap to the right begins at or past limit
		if end, ok := n.right.highest(floor, limit, length); ok {
			return end, true
		}
	}
	low, high := n.start-n.gap(), n.start
	if lo, hi := max(low, floor), min(high, limit); hi >= lo && hi-lo >= length {
		return hi, true
	}
	if low > floor {
		return n.left.highest(floor, limit, length)
	}
	return 0, false
}

// LowestGap finds the lowest free piece of at least length within
// [floor, limit) and returns where that piece starts, cut at floor.
func (t *Tree[V]) LowestGap(floor, limit, length uint64) (start uint64, ok bool) {
	if limit < floor || limit-floor < length {
		return 0, false
	}
	if start, ok = t.root.lowest(floor, limit, length); ok {
		return start, true
	}
	low := floor
	if t.last != nil {
		low = max(floor, t.last.end)
	}
	if limit >= low && limit-low >= length {
		return low, true
	}
	return 0, false
}

func (n *Node[V]) lowest(floor, limit, length uint64) (uint64, bool) {
	if n == nil || n.maxGap < length {
		return 0, false
	}
	low, high := n.start-n.gap(), n.start
	if low > floor { // else every gap to the left ends at or below floor
		if start, ok := n.left.lowest(floor, limit, length); ok {
			return start, true
		}
	}
	if lo, hi := max(low, floor), min(high, limit); hi >= lo && hi-lo >= length {
		return lo, true
	}
	if n.end < limit {
		return n.right.lowest(floor, limit, length)
	}
	return 0, false
}
