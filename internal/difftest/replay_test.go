package difftest

import (
	"io"
	"testing"

	"github.com/hugelab/hugelab/mm"
)

const (
	replaySpaceID = mm.Space(1)
	stackBase     = mm.VA(0x7ffffff00000)
	recordedAt    = mm.VA(0x7ffff0000000)
)

// replayTestModel has a program with a stack, a heap and a map, moved by shift.
func replayTestModel(t *testing.T, shift int64) *replayModel {
	t.Helper()
	cfg := mm.Config{Nodes: []mm.Node{{Mem: 1 << 30}}, AsRecorded: shift == 0,
		Shift: func(int) mm.Shift { return mm.Shift{Mmap: shift, Heap: shift, Stack: shift} }}
	var err error
	if cfg.Rules, err = mm.RulesFor("6.18"); err != nil {
		t.Fatal(err)
	}
	m, err := mm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &replayModel{m: m}
	replayDo(t, r, mm.Op{Kind: mm.OpExec, Space: replaySpaceID})
	return r
}

func replayDo(t *testing.T, r *replayModel, ops ...mm.Op) replayCall {
	t.Helper()
	for i := range ops {
		ops[i].Space = replaySpaceID
	}
	c, e, err := r.do(ops)
	if err != nil || e != mm.OK {
		t.Fatalf("%s: %v, %v", &c, e, err)
	}
	return c
}

// TestReplayAddresses: what the kernel is told to do lies where the model has
// it, in the recorded layout and in another one.
func TestReplayAddresses(t *testing.T) {
	for _, shift := range []int64{0, -4096} {
		by := mm.VA(shift * pageSize)
		r := replayTestModel(t, shift)
		check := func(what string, c replayCall, at mm.VA, n mm.Pages) {
			t.Helper()
			if c.at != at || c.n != n {
				t.Errorf("shift %d: %s: %#x, %d pages, want %#x, %d", shift, what, uint64(c.at), c.n, uint64(at), n)
			}
		}
		// The region of a stack is all that it may grow into; mapped is its end.
		check("stack", replayDo(t, r, mm.Op{Kind: mm.OpMap, Region: 1, N: 64, Page: 31, Access: mm.Read | mm.Write,
			Flags: mm.MapAtExec | mm.MapGrowsDown, Aux: uint64(mm.AreaStack), Arg: uint64(stackBase + 31*pageSize)}),
			stackBase+31*pageSize+by, 33)
		check("touch below", replayDo(t, r, mm.Op{Kind: mm.OpTouch, Region: 1, Page: 3, N: 1, Stride: 1,
			Access: mm.Write}), stackBase+3*pageSize+by, 1)
		check("library", replayDo(t, r, mm.Op{Kind: mm.OpMap, Region: 2, N: 8, Flags: mm.MapAtExec | mm.MapFile,
			Access: mm.Read, Aux: uint64(mm.AreaMmap), Arg: uint64(recordedAt)}), recordedAt+by, 8)
		check("heap", replayDo(t, r, mm.Op{Kind: mm.OpMap, Region: 3, Flags: mm.MapAtExec, Aux: uint64(mm.AreaHeap),
			Arg: 0x555555000000}), 0x555555000000+by, 0)
		check("brk", replayDo(t, r, mm.Op{Kind: mm.OpBrk, Region: 3, N: 5}), 0x555555000000+by, 5)
		// Top-down: right below the library.
		m := replayDo(t, r, mm.Op{Kind: mm.OpMap, Region: 4, N: 16, Access: mm.Read | mm.Write,
			Arg: uint64(recordedAt - 16*pageSize)})
		check("map", m, recordedAt-16*pageSize+by, 16)
		check("part", replayDo(t, r, mm.Op{Kind: mm.OpUnmap, Region: 4, Page: 2, N: 3}), m.at+2*pageSize, 3)
		to := recordedAt - 1<<20
		c := replayDo(t, r, mm.Op{Kind: mm.OpRemap, Region: 4, Page: 8, N: 8, Arg: 8, Aux: 5,
			Flags: mm.RemapMayMove | mm.RemapFixed}, mm.Op{Kind: mm.OpNote, Arg: uint64(to)})
		check("remap", c, m.at+8*pageSize, 8)
		if c.to != to {
			t.Errorf("shift %d: remap to %#x, want %#x", shift, uint64(c.to), uint64(to))
		}
	}
}

// TestReplaySpan: the range of a call, of which the helper's own memory is to
// be no part, whichever way a run goes.
func TestReplaySpan(t *testing.T) {
	for _, c := range []struct {
		op       mm.Op
		at       mm.VA
		from, to uint64
	}{
		{mm.Op{Kind: mm.OpTouch, N: 3, Stride: 1}, 0x100000, 0x100000, 0x103000},
		{mm.Op{Kind: mm.OpTouch, N: 3, Stride: -2}, 0x100000, 0xfc000, 0x101000},
		{mm.Op{Kind: mm.OpTouch, N: 0, Stride: -2}, 0x100000, 0, 0},
		{mm.Op{Kind: mm.OpUnmap, N: 2}, 0x100000, 0x100000, 0x102000},
	} {
		call := replayCall{op: &c.op, at: c.at, n: c.op.N}
		if from, to := call.span(); from != c.from || to != c.to {
			t.Errorf("%s: %#x-%#x, want %#x-%#x", &call, from, to, c.from, c.to)
		}
	}
}

// TestReplayFiles: parts do not meet, and go with their last user.
func TestReplayFiles(t *testing.T) {
	var f replayFiles
	f.init()
	a, _ := f.take(1, 4096)
	b, ok := f.take(2, 3<<20)
	if a != 0 || b != 2<<20 || !ok {
		t.Fatalf("parts at %#x and %#x", a, b)
	}
	both := []mm.Region{1, 2}
	f.share(both)
	if free := f.drop(both); len(free) != 0 {
		t.Errorf("free with a user left: %v", free)
	}
	if free := f.drop(both); len(free) != 2 || free[1].length != 4<<20 {
		t.Errorf("free: %v, want both", free)
	}
	if _, ok := f.take(3, filesLength); ok {
		t.Error("a part that is longer than what is left")
	}
}

// oneByOne hands out operations one at a time, as a reader at a buffer's end.
type oneByOne []mm.Op

func (s *oneByOne) Next(buf []mm.Op) (int, error) {
	if len(*s) == 0 {
		return 0, io.EOF
	}
	n := copy(buf[:1], *s)
	*s = (*s)[n:]
	return n, nil
}

// TestReplayPairs: a remap comes with its note, wherever reading breaks off.
func TestReplayPairs(t *testing.T) {
	s := oneByOne{{Kind: mm.OpMap}, {Kind: mm.OpRemap}, {Kind: mm.OpNote}, {Kind: mm.OpRemap}, {Kind: mm.OpExit},
		{Kind: mm.OpRemap}}
	p := pairs{stream: &s}
	var got []int
	for {
		ops, err := p.next()
		if err == io.EOF {
			break
		}
		got = append(got, len(ops))
	}
	want := []int{1, 2, 1, 1, 1}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}
