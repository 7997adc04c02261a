//go:build amd64

package difftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// sampleOps is after how many operations Sample is called.
const sampleOps = 64

// Replay performs a recording's operations on the model and, in helper
// processes, on the running kernel, whose settings are the caller's. It needs
// root. With ctx done it gives what there is so far.
func Replay(ctx context.Context, o ReplayOptions) (*ReplayResult, error) {
	if b := o.Config.BasePage; b != 0 && b != pageSize {
		return nil, fmt.Errorf("replay: recorded with pages of %d kB, and this kernel's are of %d kB: "+
			"replay it on a machine like the one that recorded", b>>10, pageSize>>10)
	}
	m, err := mm.New(o.Config)
	if err != nil {
		return nil, err
	}
	r := &replayer{ReplayOptions: o, ctx: ctx, model: replayModel{m: m}, res: &ReplayResult{},
		other: map[mm.Region]bool{}}
	stack := uint64(o.Stack)
	if stack == 0 || stack > 1<<40 {
		stack = stackSpan
	}
	if r.h, err = openReplayHost(stack); err != nil {
		return nil, err
	}
	defer r.h.close()
	if o.Started != nil {
		if err := o.Started(r.h.set.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	if o.Every > 0 {
		if r.folios, err = kernel.OpenFolios(); err != nil {
			return nil, err
		}
		defer r.folios.Close()
	}
	err = r.run()
	r.res.Model = m.Usage.Faults - r.res.Elsewhere
	r.res.Notes = append(r.res.Notes, r.h.notes...)
	if errors.Is(err, errStop) {
		err = nil
	}
	return r.res, err
}

// replayer is a Replay under way.
type replayer struct {
	ReplayOptions
	ctx    context.Context
	model  replayModel
	h      *replayHost
	folios *kernel.Folios
	res    *ReplayResult

	other map[mm.Region]bool // mappings of files and shared memory

	agreed int    // the last operation after which page maps agreed
	last   string // the operation under way
}

func (r *replayer) run() error {
	in := pairs{stream: r.Stream}
	for r.ctx.Err() == nil {
		ops, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return r.end()
		case err != nil:
			return fmt.Errorf("replay: recording: %w", err)
		}
		if err := r.op(ops); errors.Is(err, mm.ErrOOM) {
			r.res.note("the model ran out of memory: the replay ends there")
			return r.end()
		} else if err != nil {
			return err
		}
		if r.res.Ops++; r.res.Ops%sampleOps == 0 && r.Sample != nil {
			r.Sample(len(r.h.spaces))
		}
	}
	return nil
}

// end compares what is alive at the end of a recording.
func (r *replayer) end() error {
	if r.Every == 0 {
		return nil
	}
	return r.compare(r.h.alive()...)
}

// op does one operation on both sides.
func (r *replayer) op(ops []mm.Op) error {
	op := &ops[0]
	if op.Kind == mm.OpExit && r.Sample != nil {
		r.Sample(len(r.h.spaces))
	}
	if op.Kind == mm.OpExit && r.Every > 0 && r.h.spaces[op.Space] != nil {
		if err := r.compare(op.Space); err != nil {
			return err
		}
	}
	if op.Kind == mm.OpTouch && op.Region == 0 {
		r.res.Elsewhere += uint64(op.N)
	}
	c, e, err := r.model.do(ops)
	if err != nil {
		return r.failed(&c, err)
	}
	got, err := r.h.do(&c, e)
	if err != nil {
		return r.failed(&c, err)
	}
	r.res.Spaces = max(r.res.Spaces, len(r.h.spaces))
	r.res.Faults += got.faults
	r.res.SoftFaults += got.soft
	if got.errno != e {
		return r.differ(&c, Difference{What: "result", Model: e.Error(), Host: got.errno.Error()})
	}
	if err := r.faults(&c, got.faults); err != nil {
		return err
	}
	n := r.res.Ops
	if r.Every > 0 && (n%r.Every == r.Every-1 || n >= r.From && n < r.To) {
		r.last = c.String()
		return r.compare(r.h.alive()...)
	}
	return nil
}

// faults holds how many faults a run of touches took against the model's.
func (r *replayer) faults(c *replayCall, host uint64) error {
	op := c.op
	switch op.Kind {
	case mm.OpMap:
		r.other[op.Region] = op.Flags&(fileBacked|mm.MapShared) != 0
	case mm.OpRemap:
		r.other[mm.Region(op.Aux)] = r.other[op.Region]
	case mm.OpTouch:
		model := uint64(r.model.out[0].Faults)
		switch {
		case op.Region == 0 || model == host:
		case r.other[op.Region]:
			r.res.FileGap += int64(model) - int64(host)
		case r.Every > 0:
			return r.differ(c, Difference{What: "faults", Model: fmt.Sprint(model), Host: fmt.Sprint(host)})
		}
	}
	return nil
}

func (r *replayer) failed(c *replayCall, err error) error {
	if errors.Is(err, mm.ErrOOM) {
		return err
	}
	return fmt.Errorf("replay: operation %d, %s: %w", r.res.Ops, c, err)
}

// differ keeps the first difference, and ends.
func (r *replayer) differ(c *replayCall, d Difference) error {
	d.Step = r.res.Ops
	r.res.Difference = &ReplayDifference{After: r.agreed, Op: r.res.Ops, What: c.String(), Difference: d}
	return errStop
}

// compare holds the page maps of spaces against each other.
func (r *replayer) compare(spaces ...mm.Space) error {
	r.folios.Forget()
	frames := frameMap{toHost: map[mm.PFN]mm.PFN{}, toModel: map[mm.PFN]mm.PFN{}}
	for _, s := range spaces {
		host, err := r.hostPages(r.h.spaces[s])
		if err != nil {
			return err
		}
		model := r.modelPages(s)
		r.res.Pages += len(model)
		if d := frames.pages(int(s), model, host); d != nil {
			d.Step = r.res.Ops
			r.res.Difference = &ReplayDifference{After: r.agreed, Op: r.res.Ops, What: r.last, Difference: *d}
			return errStop
		}
	}
	r.res.Checks++
	r.agreed = r.res.Ops
	return nil
}

// hostPages are the anonymous pages that the kernel shows.
func (r *replayer) hostPages(s *replaySpace) (all []PageSeen, err error) {
	add := func(at mm.VA, in kstat.PageInfo) {
		if in.File && !in.Zero || r.h.set.at.holds(uint64(at), uint64(at)+pageSize) {
			return
		}
		all = append(all, PageSeen{At: at, PFN: in.PFN, Index: in.Index, Order: in.Order, PMD: in.PMD,
			Zero: in.Zero, Maps: in.Maps, Guard: in.Guard})
	}
	return all, r.folios.Each(s.pages, 0, userTop, add)
}

// modelPages are those that the model has; it has anonymous ones only.
func (r *replayer) modelPages(s mm.Space) (all []PageSeen) {
	r.model.m.EachPage(s, func(at mm.VA, in mm.PageInfo) {
		all = append(all, PageSeen{At: at, PFN: in.PFN, Index: in.Index, Order: in.Order, PMD: in.PMD,
			Zero: in.Zero, Maps: in.Maps, Guard: in.Guard})
	})
	return all
}

const userTop = mm.VA(1)<<47 - pageSize

// replayHost are the helper processes of a replay, one a space.
type replayHost struct {
	set    *puppets
	spaces map[mm.Space]*replaySpace
	file   *os.File
	files  replayFiles
	notes  []string
}

type replaySpace struct {
	*puppet
	pages *kernel.FolioMap
	thp   mm.THPDisable
	files []mm.Region
}

// replayPlace is where a recording's helpers have their own memory: as low as
// programs may map, where hardly one ever does.
var replayPlace = puppetPlace{area: 0x10000, code: 0x40000}

// mostSpaces is how many address spaces may be alive at a time.
const mostSpaces = 400

func openReplayHost(stack uint64) (*replayHost, error) {
	fd, err := unix.MemfdCreate("hugelab-replay", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("replay: stand-in for files: %w", err)
	}
	h := &replayHost{spaces: map[mm.Space]*replaySpace{}, file: os.NewFile(uintptr(fd), "stand-in for files")}
	h.files.init()
	if err := unix.Ftruncate(fd, filesLength); err != nil {
		h.file.Close()
		return nil, fmt.Errorf("replay: stand-in for files: %w", err)
	}
	if h.set, err = startPuppetsAt(replayPlace, mostSpaces, stack, h.file); err != nil {
		h.file.Close()
		return nil, fmt.Errorf("replay: %w", err)
	}
	return h, nil
}

func (h *replayHost) close() {
	for _, s := range h.spaces {
		s.pages.Close()
	}
	h.set.close()
	h.file.Close()
}

// alive lists the spaces in order.
func (h *replayHost) alive() (all []mm.Space) {
	for s := range h.spaces {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

func (h *replayHost) note(s string) {
	if !slices.Contains(h.notes, s) {
		h.notes = append(h.notes, s)
	}
}
