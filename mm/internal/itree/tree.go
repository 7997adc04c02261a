package itree

// Tree is a set of disjoint half-open ranges [start, end), each with a value.
// The zero Tree is empty and ready. It is a treap in address order whose nodes
// also form a list; each subtree knows its longest gap.
type Tree[V any] struct {
	root        *Node[V]
	first, last *Node[V]
	n           int
	seed        uint32
}

// Node is one range in a Tree. Pointers to it stay valid until Remove.
type Node[V any] struct {
	Val V

	start, end          uint64
	prev, next          *Node[V]
	left, right, parent *Node[V]
	maxGap              uint64 // longest gap before any node of this subtree
	prio                uint32
}

// Start is the first address of the range.
func (n *Node[V]) Start() uint64 { return n.start }

// End is the first address past the range.
func (n *Node[V]) End() uint64 { return n.end }

// Next is the range above, nil at the last.
func (n *Node[V]) Next() *Node[V] { return n.next }

// Prev is the range below, nil at the first.
func (n *Node[V]) Prev() *Node[V] { return n.prev }

// Len is the number of ranges.
func (t *Tree[V]) Len() int { return t.n }

// First is the lowest range, nil if there is none.
func (t *Tree[V]) First() *Node[V] { return t.first }

// Last is the highest range, nil if there is none.
func (t *Tree[V]) Last() *Node[V] { return t.last }

// Find returns the lowest range whose end lies above a, nil if there is none.
// It may begin above a.
func (t *Tree[V]) Find(a uint64) *Node[V] {
	var found *Node[V]
	for n := t.root; n != nil; {
		if n.end > a {
			found = n
			if n.start <= a {
				return n
			}
			n = n.left
		} else {
			n = n.right
		}
	}
	return found
}

// Insert adds [start, end), which must be empty of other ranges and not of
// length 0, and returns its node.
func (t *Tree[V]) Insert(start, end uint64, v V) *Node[V] {
	n := &Node[V]{Val: v, start: start, end: end, prio: t.random()}
	p := t.link(n)
	t.n++
	for p != nil && p.prio < n.prio {
		t.rotateUp(n)
		p = n.parent
	}
	n.refreshPath()
	n.next.refreshPath()
	return n
}

// link hangs n as a leaf below its place, and into the list.
func (t *Tree[V]) link(n *Node[V]) *Node[V] {
	var p *Node[V]
	at := &t.root
	for *at != nil {
		p = *at
		if n.start < p.start {
			n.next = p
			at = &p.left
		} else {
			n.prev = p
			at = &p.right
		}
	}
	*at = n
	n.parent = p
	if n.prev != nil {
		n.prev.next = n
	} else {
		t.first = n
	}
	if n.next != nil {
		n.next.prev = n
	} else {
		t.last = n
	}
	return p
}

// Remove takes n out of t.
func (t *Tree[V]) Remove(n *Node[V]) {
	for n.left != nil && n.right != nil {
		if n.left.prio > n.right.prio {
			t.rotateUp(n.left)
		} else {
			t.rotateUp(n.right)
		}
	}
	child := n.left
	if child == nil {
		child = n.right
	}
	t.replace(n, child)
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		t.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		t.last = n.prev
	}
	t.n--
	n.parent.refreshPath()
	n.next.refreshPath()
	n.prev, n.next, n.left, n.right, n.parent = nil, nil, nil, nil, nil
}

// Resize changes n's range to [start, end), which must not pass a neighbour.
func (t *Tree[V]) Resize(n *Node[V], start, end uint64) {
	moved, grown := start != n.start, end != n.end
	n.start, n.end = start, end
	if moved {
		n.refreshUp()
	}
	if grown && n.next != nil {
		n.next.refreshUp()
	}
}

// replace puts child where n hangs.
func (t *Tree[V]) replace(n, child *Node[V]) {
	switch p := n.parent; {
	case p == nil:
		t.root = child
	case p.left == n:
		p.left = child
	default:
		p.right = child
	}
	if child != nil {
		child.parent = n.parent
	}
}

// rotateUp lifts n above its parent.
func (t *Tree[V]) rotateUp(n *Node[V]) {
	p := n.parent
	t.replace(p, n)
	if p.left == n {
		p.left = n.right
		if p.left != nil {
			p.left.parent = p
		}
		n.right = p
	} else {
		p.right = n.left
		if p.right != nil {
			p.right.parent = p
		}
		n.left = p
	}
	p.parent = n
	p.refresh()
	n.refresh()
}

// gap is the free length before n.
func (n *Node[V]) gap() uint64 {
	if n.prev == nil {
		return n.start
	}
	return n.start - n.prev.end
}

func (n *Node[V]) refresh() bool {
	g := n.gap()
	if n.left != nil && n.left.maxGap > g {
		g = n.left.maxGap
	}
	if n.right != nil && n.right.maxGap > g {
		g = n.right.maxGap
	}
	changed := g != n.maxGap
	n.maxGap = g
	return changed
}

// refreshUp mends maxGap after n's own gap changed and the shape did not: above
// an unchanged node nothing can have changed.
func (n *Node[V]) refreshUp() {
	for ; n != nil && n.refresh(); n = n.parent {
	}
}

// refreshPath mends maxGap from n to the root after the shape changed.
func (n *Node[V]) refreshPath() {
	for ; n != nil; n = n.parent {
		n.refresh()
	}
}

// random is a xorshift: the shape of a treap must not depend on anything
// outside it.
func (t *Tree[V]) random() uint32 {
	x := t.seed
	if x == 0 {
		x = 0x9e3779b9
	}
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	t.seed = x
	return x
}
