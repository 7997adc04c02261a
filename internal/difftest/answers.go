package difftest

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/hugelab/hugelab/mm"
)

/*
A file of answers is what a kernel showed of programs, step by step, so that a
model can be held to it without that kernel.

	file    = magic zstd(header program... end)
	header  = text release, byte noZeroPage, count, text counter...
	program = 1, text name, text policy, text program, count, step...
	step    = errno, faults, refused, sigbus, pool, count, (counter, +-moved)..., count, process...
	pool    = 0 | 1 nr free resv surplus
	process = (0 | 1 count mapping...) (0 | 1 count run...)
	mapping = gap, pages, text flags
	run     = gap, pages, order, index, bits, maps, folio
	end     = 0

Numbers are varints, texts have their length before them. 0 in a process says
"as after the step before". Folios are numbered in each step, in the order in
which processes and addresses show them; a run goes on from folio to folio.
*/
const answersMagic = "hugelab answers 2\n"

// What a file may at most hold: more is no file of ours.
const (
	mostText    = 1 << 20
	mostSteps   = 1 << 16
	mostEntries = 1 << 22 // pages or mappings of a process
	mostSeen    = 1 << 24 // those of a program, over all its steps
)

// AnswersHeader says whose answers they are.
type AnswersHeader struct {
	Kernel     string // release
	NoZeroPage bool   // the kernel has no zero page
}

// AnswersWriter writes a file of answers.
type AnswersWriter struct {
	z    *zstd.Encoder
	b    []byte
	last Seen // the step before
}

// NewAnswersWriter begins a file.
func NewAnswersWriter(w io.Writer, h AnswersHeader) (*AnswersWriter, error) {
	if _, err := io.WriteString(w, answersMagic); err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	a := &AnswersWriter{z: z}
	a.text(h.Kernel)
	a.flag(h.NoZeroPage)
	names := CounterNames()
	a.number(uint64(len(names)))
	for _, n := range names {
		a.text(n)
	}
	return a, nil
}

func (a *AnswersWriter) number(n uint64) { a.b = binary.AppendUvarint(a.b, n) }

func (a *AnswersWriter) text(s string) {
	a.number(uint64(len(s)))
	a.b = append(a.b, s...)
}

func (a *AnswersWriter) flag(f bool) {
	n := byte(0)
	if f {
		n = 1
	}
	a.b = append(a.b, n)
}

// Add writes a program and its answers. It numbers the folios of the answers
// anew, which changes nothing that they say.
func (a *AnswersWriter) Add(p *Program, answers *Answers) error {
	if answers.Err != nil {
		return nil // it did not run to its end
	}
	a.number(1)
	a.text(p.Name)
	a.text(p.String())
	a.number(uint64(len(answers.Steps)))
	a.last = Seen{}
	for i := range answers.Steps {
		s := &answers.Steps[i]
		numberFolios(s)
		a.step(s)
		if len(s.Counters) > 0 {
			a.last = *s
		}
	}
	return a.flush()
}

func (a *AnswersWriter) flush() error {
	_, err := a.z.Write(a.b)
	a.b = a.b[:0]
	if err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	return nil
}

// Close ends the file.
func (a *AnswersWriter) Close() error {
	a.number(0)
	err := a.flush()
	if cerr := a.z.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("answers: %w", cerr)
	}
	return err
}

func (a *AnswersWriter) step(s *Seen) {
	a.number(uint64(s.Errno))
	a.number(s.Faults)
	a.number(s.Refused)
	a.number(s.Bus)
	a.flag(s.Pool != nil)
	if s.Pool != nil {
		for _, n := range s.Pool.list() {
			a.b = binary.AppendVarint(a.b, n)
		}
	}
	n := uint64(0)
	for i, v := range s.Counters {
		if v != lastCounter(&a.last, i) {
			n++
		}
	}
	a.number(n)
	for i, v := range s.Counters {
		if d := v - lastCounter(&a.last, i); d != 0 {
			a.number(uint64(i))
			a.b = binary.AppendVarint(a.b, d)
		}
	}
	a.number(uint64(len(s.Procs)))
	for i := range s.Procs {
		var last ProcSeen
		if i < len(a.last.Procs) {
			last = a.last.Procs[i]
		}
		a.process(&s.Procs[i], &last)
	}
}

func lastCounter(last *Seen, i int) int64 {
	if i < len(last.Counters) {
		return last.Counters[i]
	}
	return 0
}

func (a *AnswersWriter) process(p, last *ProcSeen) {
	same := slices.Equal(p.VMAs, last.VMAs)
	if a.flag(!same); !same {
		a.number(uint64(len(p.VMAs)))
		at := mm.VA(0)
		for _, v := range p.VMAs {
			a.number(uint64(v.Start-at) / pageSize)
			a.number(uint64(v.End-v.Start) / pageSize)
			a.text(v.Flags.String())
			at = v.End
		}
	}
	same = slices.Equal(p.Pages, last.Pages)
	if a.flag(!same); same {
		return
	}
	runs := uint64(0)
	for k := 0; k < len(p.Pages); k += sameRun(p.Pages[k:]) {
		runs++
	}
	a.number(runs)
	at := mm.VA(0)
	for k := 0; k < len(p.Pages); {
		n := sameRun(p.Pages[k:])
		first := &p.Pages[k]
		a.number(uint64(first.At-at) / pageSize)
		a.number(uint64(n))
		a.number(uint64(first.Order))
		a.number(uint64(first.Index))
		a.number(pageBits(first))
		a.number(uint64(first.Maps))
		a.number(uint64(first.PFN) >> folioShift)
		at = first.At + mm.VA(n)*pageSize
		k += n
	}
}

// folioShift is more than the order of any folio: a numbered folio's frames are
// its number shifted, and on.
const folioShift = 20

// numberFolios gives the folios of s numbers in the order in which they show.
func numberFolios(s *Seen) {
	numbers := map[mm.PFN]mm.PFN{}
	for i := range s.Procs {
		for k := range s.Procs[i].Pages {
			p := &s.Procs[i].Pages[k]
			if p.Zero || p.Guard {
				p.PFN = 0
				continue
			}
			head := p.PFN - mm.PFN(p.Index)
			n, ok := numbers[head]
			if !ok {
				n = mm.PFN(len(numbers) + 1)
				numbers[head] = n
			}
			p.PFN = n<<folioShift + mm.PFN(p.Index)
		}
	}
}

// pageBits are the yes-or-no fields of a page.
func pageBits(p *PageSeen) uint64 {
	n := uint64(0)
	for i, b := range []bool{p.PMD, p.Zero, p.Guard} {
		if b {
			n |= 1 << i
		}
	}
	return n
}

// inRun is the page k places behind the first of its run.
func inRun(first PageSeen, k uint32) PageSeen {
	p := first
	p.At += mm.VA(k) * pageSize
	if p.Guard {
		return p
	}
	place := first.Index + k
	p.Index = place & (1<<p.Order - 1)
	if !p.Zero {
		folio := first.PFN>>folioShift + mm.PFN(place>>p.Order)
		p.PFN = folio<<folioShift + mm.PFN(p.Index)
	}
	return p
}

// sameRun is how many of the first pages are one run.
func sameRun(pages []PageSeen) int {
	n := 1
	for n < len(pages) && pages[n] == inRun(pages[0], uint32(n)) {
		n++
	}
	return n
}
