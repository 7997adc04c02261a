package mm

import (
	"testing"

	"pgregory.net/rapid"
)

// plain is the reference of the random test: flags page by page, for one
// region of 64 pages at at0 and no placement by the kernel.
type plain map[int]vmFlags

const plainPages = 64

// agree compares every page of the space with the reference.
func agree(t *rapid.T, m *Machine, ref plain) {
	if err := m.checkVMAs(); err != nil {
		t.Fatal(err)
	}
	sp := m.spaces[1]
	for i := range plainPages {
		v := sp.at(at0 + VA(i)*page)
		f, mapped := ref[i]
		if mapped != (v != nil) || mapped && v.flags&^vmAccount != f {
			t.Fatalf("page %d: %+v, want mapped %v with %#x: %s", i, v, mapped, f, show(m, 1, at0))
		}
	}
}

// apply does one operation on the reference.
func (ref plain) apply(op Op, from, n int) {
	for i := from; i < from+n && i < plainPages; i++ {
		f, mapped := ref[i]
		switch op.Kind {
		case OpMap:
			ref[i] = protFlags(op.Access)
			if op.Flags&MapStack != 0 {
				ref[i] |= vmNoHuge
			}
			continue
		case OpUnmap:
			delete(ref, i)
			continue
		}
		if !mapped {
			if op.Kind != OpAdvise {
				return // stops at the first hole
			}
			continue
		}
		switch op.Kind {
		case OpProtect:
			f = f&^vmAccess | protFlags(op.Access)
		case OpLock:
			f = f&^vmLockMask | vmLocked | vmLockOnFault
		case OpUnlock:
			f &^= vmLockMask
		case OpAdvise:
			v := vma{flags: f}
			f, _ = advisedFlags(&v, Advice(op.Arg))
		}
		ref[i] = f
	}
}

// TestRandomCalls holds the VMAs to the reference, and to checkVMAs, after
// every one of many random calls, with first faults in between.
func TestRandomCalls(t *testing.T) {
	kinds := []OpKind{OpMap, OpMap, OpUnmap, OpProtect, OpProtect, OpLock, OpUnlock, OpAdvise, OpAdvise, OpTouch}
	advice := []Advice{AdviseHugePage, AdviseNoHugePage, AdviseDontFork, AdviseDoFork, AdviseDontNeed,
		AdviseWipeOnFork, AdviseKeepOnFork}
	rapid.Check(t, func(t *rapid.T) {
		m := bareMachine(t, Config{})
		mustExec(t, m, Op{Kind: OpExec, Space: 1})
		m.spaces[1].regions.set(1, at0, plainPages)
		ref := plain{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			from, n := rapid.IntRange(0, 60).Draw(t, "from"), rapid.IntRange(1, 20).Draw(t, "n")
			n = min(n, plainPages-from)
			op := Op{Kind: kind, Space: 1, Region: 1, Page: uint64(from), N: Pages(n)}
			op.Access = Access(rapid.IntRange(0, 3).Draw(t, "prot"))
			switch kind {
			case OpTouch:
				if v := m.spaces[1].at(at0 + VA(from)*page); v != nil {
					m.anonPrepare(&Current{}, v)
				}
				continue
			case OpMap:
				op.Region, op.Aux, op.Flags = 2, 1, MapFixed|MapReplaces
				if rapid.Bool().Draw(t, "stack") {
					op.Flags |= MapStack
				}
			case OpLock:
				op.Flags = LockOnFault
			case OpAdvise:
				op.Arg = uint64(rapid.SampledFrom(advice).Draw(t, "advice"))
				if Advice(op.Arg) == AdviseDontNeed {
					op.Kind = OpPopulate // flags stay; a refusal would end the walk
				}
			}
			mustExec(t, m, op)
			m.spaces[1].regions.set(1, at0, plainPages) // an unmap of all forgets it
			ref.apply(op, from, n)
			agree(t, m, ref)
		}
	})
}

func mustExec(t *rapid.T, m *Machine, op Op) Result {
	var out [1]Result
	if _, err := m.Exec([]Op{op}, out[:]); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestRandomSpaces throws moves, heaps, forks and exits at each other and asks
// only that the structures stay sound.
func TestRandomSpaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := bareMachine(t, Config{})
		mustExec(t, m, Op{Kind: OpExec, Space: 1})
		mustExec(t, m, Op{Kind: OpMap, Space: 1, Region: 1, Flags: MapAtExec, Aux: uint64(AreaHeap),
			Arg: uint64(at0)})
		next := Region(2)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := Space(rapid.IntRange(1, 3).Draw(t, "space"))
			sp := m.spaceOf(id)
			if sp == nil {
				continue
			}
			op := Op{Space: id, Region: Region(rapid.IntRange(1, int(next)).Draw(t, "region")),
				N: Pages(rapid.IntRange(1, 24).Draw(t, "n")), Page: uint64(rapid.IntRange(0, 8).Draw(t, "page"))}
			base, known := sp.regions.base(op.Region)
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0:
				op.Kind, op.Region, op.Access = OpMap, next, Read|Write
				next++
			case 1:
				op.Kind, op.Arg, op.Aux = OpRemap, uint64(rapid.IntRange(1, 32).Draw(t, "new")), uint64(next)
				op.Flags = RemapMayMove
				if rapid.Bool().Draw(t, "keep") {
					op.Flags, op.Arg = RemapMayMove|RemapDontUnmap, uint64(op.N)
				}
				next++
			case 2:
				op.Kind, op.Region = OpBrk, 1
			case 3:
				op.Kind, op.Arg = OpFork, uint64(rapid.IntRange(2, 3).Draw(t, "child"))
				if op.Arg == uint64(id) {
					continue
				}
			case 4:
				if id == 1 {
					continue
				}
				op.Kind = OpExit
			case 5:
				op.Kind = OpUnmap
			case 6:
				op.Kind, op.Access = OpProtect, Read
			case 7:
				if v := sp.at(base + VA(op.Page)*page); v != nil {
					m.anonPrepare(&Current{}, v)
				}
				continue
			}
			if !known && (op.Kind == OpRemap || op.Kind == OpUnmap || op.Kind == OpProtect) {
				continue
			}
			mustExec(t, m, op)
			if err := m.checkVMAs(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestRegionMap holds the shared pieces of forked maps to plain maps.
func TestRegionMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maps := []*regionMap{{}}
		refs := []map[Region]VA{{}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			i := rapid.IntRange(0, len(maps)-1).Draw(t, "map")
			r := Region(rapid.IntRange(1, 600).Draw(t, "region"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				a := VA(rapid.IntRange(1, 1000).Draw(t, "base")) * page
				maps[i].set(r, a, 4)
				refs[i][r] = a
			case 2:
				maps[i].forget(r, 4)
				delete(refs[i], r)
			case 3:
				f := maps[i].fork()
				ref := map[Region]VA{}
				for k, v := range refs[i] {
					ref[k] = v
				}
				maps, refs = append(maps, &f), append(refs, ref)
			}
			for j := range maps {
				if err := maps[j].check(); err != nil {
					t.Fatal(err)
				}
				for r := Region(1); r <= 600; r += 7 {
					a, ok := maps[j].base(r)
					if b, known := refs[j][r]; ok != known || ok && a != b {
						t.Fatalf("map %d region %d: %#x %v, want %#x %v", j, r, a, ok, b, known)
					}
				}
			}
		}
	})
}
