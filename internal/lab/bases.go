package lab

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// Bases is where one exec'd address space begins, by area. 0 is not known:
// the area is not there, as the mmap area of a program without a loader on
// kernels that place the vdso elsewhere.
type Bases struct {
	Program string // the file
	Exe     mm.VA  // the program's first segment
	Heap    mm.VA  // start of the heap
	Mmap    mm.VA  // end of the highest map of the mmap area
	Stack   mm.VA  // end of the stack
}

// note adds one map present at exec.
func (b *Bases) note(a mm.Area, start, end mm.VA) {
	switch a {
	case mm.AreaExe, mm.AreaFixed:
		if b.Exe == 0 || start < b.Exe {
			b.Exe = start
		}
	case mm.AreaHeap:
		b.Heap = start
	case mm.AreaMmap:
		b.Mmap = max(b.Mmap, end)
	case mm.AreaStack:
		b.Stack = max(b.Stack, end)
	}
}

// shifts says how far each area of each recorded exec lay from there in a run.
// The k-th exec of a program in the recording is its k-th one in the run: the
// order of processes side by side is chance, that of one program's runs rarely
// is.
func shifts(recorded, run []Bases, page mm.Bytes) (func(n int) mm.Shift, error) {
	by := map[string][]Bases{}
	for _, b := range run {
		by[b.Program] = append(by[b.Program], b)
	}
	list := make([]mm.Shift, len(recorded))
	for i, r := range recorded {
		left := by[r.Program]
		if len(left) == 0 {
			return nil, fmt.Errorf("the recording ran %s once more than this run", r.Program)
		}
		got := left[0]
		by[r.Program] = left[1:]
		apart := func(to, from mm.VA) int64 {
			if to == 0 || from == 0 {
				return 0
			}
			return int64(to-from) / int64(page)
		}
		list[i] = mm.Shift{Exe: apart(got.Exe, r.Exe), Heap: apart(got.Heap, r.Heap),
			Mmap: apart(got.Mmap, r.Mmap), Stack: apart(got.Stack, r.Stack)}
	}
	for _, b := range run {
		if len(by[b.Program]) > 0 {
			return nil, fmt.Errorf("this run ran %s once more than the recording", b.Program)
		}
	}
	return func(n int) mm.Shift {
		if n < 0 || n >= len(list) {
			return mm.Shift{}
		}
		return list[n]
	}, nil
}
