package itree

import "fmt"

// Check proves the order, the heap property, the list and the gaps. It is
// slow; tests call it.
func (t *Tree[V]) Check() error {
	n, err := t.root.check(nil)
	if err != nil {
		return err
	}
	if n != t.n {
		return fmt.Errorf("itree: %d nodes below the root, %d counted", n, t.n)
	}
	listed := 0
	var prev *Node[V]
	for x := t.first; x != nil; prev, x = x, x.next {
		listed++
		if x.prev != prev {
			return fmt.Errorf("itree: range %#x: list broken", x.start)
		}
		if x.end <= x.start || prev != nil && prev.end > x.start {
			return fmt.Errorf("itree: range %#x-%#x: empty or overlapping", x.start, x.end)
		}
	}
	if listed != n || t.last != prev {
		return fmt.Errorf("itree: %d nodes in the list, %d in the tree", listed, n)
	}
	return nil
}

func (n *Node[V]) check(parent *Node[V]) (int, error) {
	if n == nil {
		return 0, nil
	}
	if n.parent != parent || parent != nil && n.prio > parent.prio {
		return 0, fmt.Errorf("itree: range %#x: wrong parent or priority", n.start)
	}
	if n.left != nil && n.left.start >= n.start || n.right != nil && n.right.start <= n.start {
		return 0, fmt.Errorf("itree: range %#x: children out of order", n.start)
	}
	l, err := n.left.check(n)
	if err != nil {
		return 0, err
	}
	r, err := n.right.check(n)
	if err != nil {
		return 0, err
	}
	if n.refresh() {
		return 0, fmt.Errorf("itree: range %#x: longest gap was stale", n.start)
	}
	return l + r + 1, nil
}
