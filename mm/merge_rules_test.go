package mm

import "testing"

// TestMergeFaulted gives pages 4-8, which were touched, the protection of
// their untouched neighbours 0-4 and 8-12, and the reverse.
func TestMergeFaulted(t *testing.T) {
	for _, c := range []struct{ version, middle, sides string }{
		{"6.1", "0-4rw 4-8rw@1 8-12rw", "0-8rw@1 8-12rw@2"},
		{"6.15", "0-4rw 4-8rw@1 8-12rw", "0-8rw@1 8-12rw@2"},
		{"6.16", "0-12rw@1", "0-8rw@1 8-12rw@2"},
	} {
		for _, sides := range []bool{false, true} {
			m := vmaMachine(t, Config{Rules: rules(t, c.version)})
			do(t, m, fixed(1, at0, 4*page))
			do(t, m, fixed(2, at0+8*page, 4*page))
			if sides {
				touchAt(m, 1, at0)
				touchAt(m, 1, at0+8*page)
			}
			op := fixed(3, at0+4*page, 4*page)
			op.Access = Read | Write | Exec
			do(t, m, op)
			if !sides {
				touchAt(m, 1, at0+4*page)
			}
			do(t, m, Op{Kind: OpProtect, Region: 3, N: 4, Access: Read | Write})
			wanted := c.middle
			if sides {
				wanted = c.sides
			}
			want(t, show(m, 1, at0), wanted)
		}
	}
}

// TestHeapApart has a heap begin right behind memory like it: the program's
// bss, where addresses are not randomised.
func TestHeapApart(t *testing.T) {
	for _, c := range []struct{ version, want string }{
		{"6.0", "0-8rw"},
		{"6.1", "0-4rw 4-8rw"},
	} {
		m := vmaMachine(t, Config{Rules: rules(t, c.version)})
		do(t, m, fixed(1, at0, 4*page))
		do(t, m, Op{Kind: OpMap, Region: 2, Flags: MapAtExec, Aux: uint64(AreaHeap), Arg: uint64(at0 + 4*page)})
		do(t, m, Op{Kind: OpBrk, Region: 2, N: 2})
		do(t, m, Op{Kind: OpBrk, Region: 2, N: 4})
		want(t, show(m, 1, at0), c.want)
	}
}
