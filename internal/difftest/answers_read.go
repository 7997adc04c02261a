package difftest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/hugelab/hugelab/mm"
)

// AnswersReader reads a file of answers.
type AnswersReader struct {
	AnswersHeader
	z    *zstd.Decoder
	in   *bufio.Reader
	err  error // the first one: what is read after it is nothing
	last *Seen // the step before
	seen int   // pages and mappings of this program so far
}

// NewAnswersReader reads the head of a file.
func NewAnswersReader(r io.Reader) (*AnswersReader, error) {
	magic := make([]byte, len(answersMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != answersMagic {
		return nil, fmt.Errorf("answers: not a file of answers: want one that difftest --answers wrote")
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	a := &AnswersReader{z: z, in: bufio.NewReaderSize(z, 64<<10)}
	a.Kernel = a.text()
	a.NoZeroPage = a.number(1) == 1
	var names []string
	for range a.number(mostSteps) {
		if a.err != nil {
			break
		}
		names = append(names, a.text())
	}
	if a.err == nil && !slices.Equal(names, CounterNames()) {
		a.err = fmt.Errorf("answers: of another version, with other counters: ask the kernel again")
	}
	if a.err != nil {
		z.Close()
		return nil, a.err
	}
	return a, nil
}

// Close frees what reading took.
func (a *AnswersReader) Close() { a.z.Close() }

func (a *AnswersReader) fail(err error) {
	if a.err != nil {
		return
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	a.err = fmt.Errorf("answers: %w", err)
}

// number reads a number that is at most most; after an error it is 0.
func (a *AnswersReader) number(most uint64) uint64 {
	if a.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(a.in)
	if err == nil && n > most {
		err = fmt.Errorf("%d where at most %d can be", n, most)
	}
	if err != nil {
		a.fail(err)
		return 0
	}
	return n
}

func (a *AnswersReader) text() string {
	b := make([]byte, a.number(mostText))
	if a.err != nil {
		return ""
	}
	if _, err := io.ReadFull(a.in, b); err != nil {
		a.fail(err)
	}
	return string(b)
}

// Next reads the next program into answers and returns it; nil at the end.
func (a *AnswersReader) Next(answers *Answers) (*Program, error) {
	if a.number(1) == 0 {
		return nil, a.err
	}
	name, text := a.text(), a.text()
	if a.err != nil {
		return nil, a.err
	}
	p, err := Parse(name, strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	p.Name = name
	n := a.number(mostSteps)
	if a.err == nil && n != uint64(len(p.Steps)) {
		a.fail(fmt.Errorf("%s: %d answers to %d steps", name, n, len(p.Steps)))
	}
	answers.Steps, answers.Err = answers.Steps[:0], nil
	a.last, a.seen = &Seen{}, 0
	for i := 0; i < int(n) && a.err == nil; i++ {
		s := answers.step(i)
		a.step(s)
		if len(s.Procs) > 0 {
			a.last = s
		}
	}
	return p, a.err
}

// pool reads the pool of a program that has to do with hugetlb.
func (a *AnswersReader) pool() *PoolSeen {
	if a.number(1) == 0 {
		return nil
	}
	var n [len(poolNames)]int64
	for i := range n {
		var err error
		if n[i], err = binary.ReadVarint(a.in); err != nil {
			a.fail(err)
		}
	}
	return &PoolSeen{n[0], n[1], n[2], n[3]}
}

func (a *AnswersReader) step(s *Seen) {
	s.Errno = mm.Errno(a.number(4096))
	s.Faults, s.Refused, s.Bus = a.number(1<<40), a.number(1<<40), a.number(1<<40)
	s.Pool = a.pool()
	names := len(CounterNames())
	changes := a.number(uint64(names))
	if len(a.last.Counters) > 0 {
		s.Counters = append(s.Counters, a.last.Counters...)
	} else {
		s.Counters = append(s.Counters, make([]int64, names)...)
	}
	for range changes {
		i := a.number(uint64(names - 1))
		d, err := binary.ReadVarint(a.in)
		if err != nil {
			a.fail(err)
			return
		}
		s.Counters[i] += d
	}
	for i := range int(a.number(1 << 10)) {
		var last ProcSeen
		if i < len(a.last.Procs) {
			last = a.last.Procs[i]
		}
		a.process(s.process(), &last)
		if a.err != nil {
			return
		}
	}
}

// room says whether a program may have n more pages or mappings.
func (a *AnswersReader) room(n uint64) bool {
	if a.err == nil && uint64(a.seen)+n > mostSeen {
		a.fail(fmt.Errorf("more than %d pages", mostSeen))
	}
	a.seen += int(n)
	return a.err == nil
}

func (a *AnswersReader) process(p, last *ProcSeen) {
	if !a.room(uint64(len(last.VMAs) + len(last.Pages))) {
		return
	}
	if a.number(1) == 0 {
		p.VMAs = append(p.VMAs, last.VMAs...)
	} else {
		at := mm.VA(0)
		for n := a.number(mostEntries); n > 0 && a.err == nil; n-- {
			v := mm.VMAInfo{Start: at + mm.VA(a.number(1<<52))*pageSize}
			v.End = v.Start + mm.VA(a.number(1<<52))*pageSize
			v.Flags = mm.ParseVMAFlags(strings.Fields(a.text()))
			if !a.room(1) {
				return
			}
			p.VMAs = append(p.VMAs, v)
			at = v.End
		}
	}
	if a.number(1) == 0 {
		p.Pages = append(p.Pages, last.Pages...)
		return
	}
	a.pages(p)
}

func (a *AnswersReader) pages(p *ProcSeen) {
	at := mm.VA(0)
	for runs := a.number(mostEntries); runs > 0 && a.err == nil; runs-- {
		first := PageSeen{At: at + mm.VA(a.number(1<<52))*pageSize}
		n := a.number(mostEntries)
		first.Order = mm.Order(a.number(uint64(mm.MaxOrder)))
		first.Index = uint32(a.number(1<<first.Order - 1))
		bits := a.number(7)
		first.PMD, first.Zero, first.Guard = bits&1 != 0, bits&2 != 0, bits&4 != 0
		first.Maps = uint32(a.number(1 << 30))
		if folio := a.number(mostEntries); !first.Zero && !first.Guard {
			first.PFN = mm.PFN(folio)<<folioShift + mm.PFN(first.Index)
		}
		if !a.room(n) {
			return
		}
		for k := range uint32(n) {
			p.Pages = append(p.Pages, inRun(first, k))
		}
		at = first.At + mm.VA(n)*pageSize
	}
}
