package workload

import (
	"io"

	"github.com/hugelab/hugelab/mm"
)

// PageFault is will-it-scale's page_fault1 to 3: every task maps 128 MB, writes
// one byte to each page and unmaps it, for ever. Each is bound to a processor
// of its own.
type PageFault struct {
	Kind      int  // 1: anonymous memory; 2: a private map of a file of the task's own; 3: a shared one
	Tasks     int  // threads or processes
	Processes bool // each with a space of its own
}

// pageFaultBytes is will-it-scale's MEMSIZE.
const pageFaultBytes mm.Bytes = 128 << 20

// Setup makes the tasks' spaces, numbered from 1, and their stacks.
func (w *PageFault) Setup(page mm.Bytes) []mm.Op {
	var ops []mm.Op
	for i := range w.Tasks {
		space := w.Space(i)
		add := func(op mm.Op) { op.Space = space; ops = append(ops, op) }
		if i == 0 || w.Processes {
			add(mm.Op{Kind: mm.OpExec})
		}
		addStack(add, mm.Region(2*i+1), page)
	}
	return ops
}

// Space is the space of task i.
func (w *PageFault) Space(i int) mm.Space {
	if w.Processes {
		return mm.Space(i + 1)
	}
	return 1
}

// Task is the stream of task i. It never ends.
func (w *PageFault) Task(i int, page mm.Bytes) mm.Stream {
	t := &pageFaultTask{pages: pagesOf(pageFaultBytes, page), region: mm.Region(2*i + 2)}
	switch w.Kind {
	case 2:
		t.flags = mm.MapFile
	case 3:
		t.flags = mm.MapFile | mm.MapShared
	}
	return t
}

type pageFaultTask struct {
	pages  mm.Pages
	region mm.Region
	flags  mm.OpFlags
}

func (t *pageFaultTask) Next(ops []mm.Op) (int, error) {
	if len(ops) < 3 {
		return 0, io.ErrShortBuffer
	}
	rw := mm.Read | mm.Write
	ops[0] = mm.Op{Kind: mm.OpMap, Region: t.region, N: t.pages, Access: rw, Flags: t.flags}
	ops[1] = mm.Op{Kind: mm.OpTouch, Region: t.region, N: t.pages, Stride: 1, Access: mm.Write}
	ops[2] = mm.Op{Kind: mm.OpUnmap, Region: t.region, N: t.pages}
	return 3, nil
}
