package mm

import "testing"

// The base of tests that draw VMAs by page number.
const at0 VA = 1 << 30

// TestMergeNew puts pages 4-8 between what lies left (0-4) and right (8-12).
func TestMergeNew(t *testing.T) {
	for _, c := range []struct {
		name        string
		left, right int // 0 nothing, 1 read-write, 2 read only, 3 read-write and faulted
		want        string
	}{
		{"alone", 0, 0, "4-8rw"},
		{"left", 1, 0, "0-8rw"},
		{"right", 0, 1, "4-12rw"},
		{"both", 1, 1, "0-12rw"},
		{"neither for protection", 2, 2, "0-4r 4-8rw 8-12r"},
		{"left faulted", 3, 0, "0-8rw@1"},
		{"right faulted", 0, 3, "4-12rw@1"},
		{"both, left faulted", 3, 1, "0-12rw@1"},
		{"both, right faulted", 1, 3, "0-12rw@1"},
		{"both faulted apart: only left", 3, 3, "0-8rw@1 8-12rw@2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vmaMachine(t, Config{})
			side := func(kind int, r Region, a VA) {
				if kind == 0 {
					return
				}
				op := fixed(r, a, 4*page)
				if kind == 2 {
					op.Access = Read
				}
				do(t, m, op)
				if kind == 3 {
					touchAt(m, 1, a)
				}
			}
			side(c.left, 1, at0)
			side(c.right, 2, at0+8*page)
			do(t, m, fixed(3, at0+4*page, 4*page))
			want(t, show(m, 1, at0), c.want)
		})
	}
}

// TestModify protects part of 4-12 among equals: every way in which a change
// of flags can merge or split.
func TestModify(t *testing.T) {
	for _, c := range []struct {
		name     string
		layout   [3]Access // protections of 0-4, 4-12, 12-16; 0: nothing there
		from, to int
		prot     Access
		want     string
	}{
		{"middle: split twice", [3]Access{0, 3, 0}, 6, 8, Read, "4-6rw 6-8r 8-12rw"},
		{"start: split once", [3]Access{0, 3, 0}, 4, 8, Read, "4-8r 8-12rw"},
		{"end: split once", [3]Access{0, 3, 0}, 8, 12, Read, "4-8rw 8-12r"},
		{"whole: no split", [3]Access{0, 3, 0}, 4, 12, Read, "4-12r"},
		{"left part into prev", [3]Access{1, 3, 0}, 4, 8, Read, "0-8r 8-12rw"},
		{"whole into prev", [3]Access{1, 3, 0}, 4, 12, Read, "0-12r"},
		{"right part into next", [3]Access{0, 3, 1}, 8, 12, Read, "4-8rw 8-16r"},
		{"whole into next", [3]Access{0, 3, 1}, 4, 12, Read, "4-16r"},
		{"whole into both", [3]Access{1, 3, 1}, 4, 12, Read, "0-16r"},
		{"left part, next alike but not adjacent", [3]Access{1, 3, 1}, 4, 8, Read, "0-8r 8-12rw 12-16r"},
		{"across two", [3]Access{3, 1, 3}, 2, 8, Read, "0-2rw 2-12r 12-16rw"},
		{"across all, changed back to one", [3]Access{3, 1, 3}, 0, 16, Read | Write, "0-16rw"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := vmaMachine(t, Config{})
			// One region spans all, so that its pages number alike. Accounted
			// memory stays so when it turns read-only only if it has pages;
			// here none has, so equal protections are equal flags.
			do(t, m, fixed(1, at0, 16*page))
			edges := [4]int{0, 4, 12, 16}
			for i, a := range c.layout {
				from, n := edges[i], Pages(edges[i+1]-edges[i])
				if a == 0 {
					do(t, m, Op{Kind: OpUnmap, Region: 1, Page: uint64(from), N: n})
				} else {
					do(t, m, Op{Kind: OpProtect, Region: 1, Page: uint64(from), N: n, Access: a})
				}
			}
			do(t, m, Op{Kind: OpProtect, Region: 1, Page: uint64(c.from), N: Pages(c.to - c.from), Access: c.prot})
			want(t, show(m, 1, at0), c.want)
		})
	}
}

// TestProtectHole: what lies before a hole is changed, the call refused.
func TestProtectHole(t *testing.T) {
	m := vmaMachine(t, Config{})
	do(t, m, fixed(1, at0, 8*page))
	do(t, m, Op{Kind: OpUnmap, Region: 1, Page: 4, N: 1})
	r := do(t, m, Op{Kind: OpProtect, Region: 1, N: 8, Access: Read})
	want(t, show(m, 1, at0)+" "+r.Errno.String(), "0-4r 5-8rw ENOMEM")
	r = do(t, m, Op{Kind: OpAdvise, Region: 1, N: 8, Arg: uint64(AdviseHugePage)})
	want(t, show(m, 1, at0)+" "+r.Errno.String(), "0-4rH 5-8rwH ENOMEM")
}

// TestAnonReuse: a neighbour that differs in protection only lends its
// anon_vma; so the two merge when the protection is equal again (semantics 4.3).
func TestAnonReuse(t *testing.T) {
	m := vmaMachine(t, Config{})
	do(t, m, fixed(1, at0, 16*page))
	do(t, m, Op{Kind: OpProtect, Region: 1, Page: 8, N: 8, Access: Read})
	touchAt(m, 1, at0)
	touchAt(m, 1, at0+8*page)
	// The upper half gave up its accounting when it turned read-only without
	// pages, so Linux does not share here.
	want(t, show(m, 1, at0), "0-8rw@1 8-16r@2")

	m = vmaMachine(t, Config{})
	do(t, m, fixed(1, at0, 16*page))
	touchAt(m, 1, at0)
	do(t, m, Op{Kind: OpProtect, Region: 1, Page: 8, N: 8, Access: Read})
	want(t, show(m, 1, at0), "0-8rw@1 8-16r@1")
	do(t, m, Op{Kind: OpProtect, Region: 1, Page: 8, N: 8, Access: Read | Write})
	want(t, show(m, 1, at0), "0-16rw@1")
}

// TestFlagsKeepApart: hints, locks and MAP_STACK differ, so nothing merges.
func TestFlagsKeepApart(t *testing.T) {
	m := vmaMachine(t, Config{})
	do(t, m, fixed(1, at0, 4*page))
	op := fixed(2, at0+4*page, 4*page)
	op.Flags |= MapStack
	do(t, m, op)
	do(t, m, fixed(3, at0+8*page, 4*page))
	do(t, m, Op{Kind: OpAdvise, Region: 3, N: 4, Arg: uint64(AdviseHugePage)})
	do(t, m, fixed(4, at0+12*page, 4*page))
	do(t, m, Op{Kind: OpLock, Region: 4, N: 4, Flags: LockOnFault})
	want(t, show(m, 1, at0), "0-4rw 4-8rwN 8-12rwH 12-16rwL")
	do(t, m, Op{Kind: OpAdvise, Region: 1, N: 16, Arg: uint64(AdviseHugePage)})
	do(t, m, Op{Kind: OpUnlock, Region: 1, N: 16})
	want(t, show(m, 1, at0), "0-16rwH")
}
