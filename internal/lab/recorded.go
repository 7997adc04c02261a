package lab

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hugelab/hugelab/internal/predict"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// recorded is what a recording says of the command beside its memory, to hold
// the runs against.
type recorded struct {
	execs []Bases
	ends  []End
	page  mm.Bytes
	exit  int
	times predict.SystemTime // what the recorded run tells of time in the kernel
}

// readRecorded reads a recording once through a model without huge pages.
func readRecorded(ctx context.Context, in predict.Input) (*recorded, error) {
	f, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		return nil, err
	}
	rec := &recorded{page: mm.Bytes(r.Header.PageSize)}
	if err := rec.walk(r); err != nil {
		return nil, fmt.Errorf("verify: recording: %w", err)
	}
	if r.Footer == nil {
		return rec, nil
	}
	rec.exit = r.Footer.Exit
	// It was recorded with huge pages off, where it was put.
	in.Policies = []predict.Named{{Name: "never"}}
	in.Layouts, in.Shift = 0, nil
	p, err := predict.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	rec.times = p.Times
	return rec, nil
}

// walk collects the bases of every exec and the ends of all processes.
func (rec *recorded) walk(r *trace.Reader) error {
	sizes, err := mm.SizesOf(rec.page)
	if err != nil {
		return err
	}
	rules, err := mm.RulesFor(r.Header.Kernel)
	if err != nil {
		return err
	}
	rules.NoZeroPage = r.Header.NoZeroPage
	m, err := mm.New(mm.Config{
		Nodes: []mm.Node{{Mem: max(mm.Bytes(r.Header.MemTotal), 1<<30)}}, CPUs: max(r.Header.CPUs, 1),
		BasePage: sizes.Base, Rules: rules, AsRecorded: true})
	if err != nil {
		return err
	}
	w := walker{rec: rec, m: m, replay: trace.NewReplay(r),
		exec: map[mm.Space]int{}, program: map[mm.Space]string{}}
	ops := make([]mm.Op, 1024)
	for {
		n, err := w.replay.Next(ops)
		for i := range ops[:n] {
			if err := w.op(&ops[i], ops[i:i+1]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

type walker struct {
	rec     *recorded
	m       *mm.Machine
	replay  *trace.Replay
	exec    map[mm.Space]int
	program map[mm.Space]string
	left    mm.Space // by the exec just before, 0 for none
	vmas    []mm.VMAInfo
}

func (w *walker) op(op *mm.Op, self []mm.Op) error {
	left := w.left
	w.left = 0
	switch op.Kind {
	case mm.OpExec:
		w.left = mm.Space(op.Arg)
		w.exec[op.Space] = len(w.rec.execs)
		w.rec.execs = append(w.rec.execs, Bases{})
		delete(w.program, op.Space)
	case mm.OpFork:
		w.program[mm.Space(op.Arg)] = w.program[op.Space]
	case mm.OpExit:
		if op.Space != left {
			w.end(op.Space)
		}
	case mm.OpMap:
		w.atExec(op)
	}
	_, err := w.m.Exec(self, nil)
	return err
}

// atExec notes a map that was there at exec.
func (w *walker) atExec(op *mm.Op) {
	k, ok := w.exec[op.Space]
	if !ok || op.Flags&mm.MapAtExec == 0 {
		return
	}
	b, area := &w.rec.execs[k], mm.Area(op.Aux)
	if op.Flags&mm.MapSpecial != 0 && area != mm.AreaMmap {
		return // above the stack, as kernels before 6.16 place it
	}
	// A stack's region begins below what is mapped of it.
	end := mm.VA(op.Arg) + mm.VA((mm.Bytes(op.N)-mm.Bytes(op.Page))*w.rec.page)
	b.note(area, mm.VA(op.Arg), end)
	if b.Program == "" && (area == mm.AreaExe || area == mm.AreaFixed) {
		b.Program = w.replay.RegionName(op.Region)
		w.program[op.Space] = b.Program
	}
}

// end notes a process just before its memory goes.
func (w *walker) end(s mm.Space) {
	e := End{Program: w.program[s]}
	w.vmas = w.m.VMAs(s, w.vmas[:0])
	for _, v := range w.vmas {
		e.Size += mm.Bytes(v.End - v.Start)
	}
	w.rec.ends = append(w.rec.ends, e)
}
