//go:build amd64

package difftest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// look reads what all processes have.
func (r *hostRun) look(s *Seen) error {
	r.h.folios.Forget()
	for _, p := range r.procs {
		seen := s.process()
		if p == nil {
			continue
		}
		if err := r.proc(p, seen); err != nil {
			return err
		}
	}
	return nil
}

func (r *hostRun) proc(p *hostProc, s *ProcSeen) error {
	var err error
	if s.VMAs, err = r.h.smaps.read(p.smaps, s.VMAs); err != nil {
		return err
	}
	add := func(at mm.VA, in kstat.PageInfo) {
		s.Pages = append(s.Pages, PageSeen{
			At: at, PFN: in.PFN, Index: in.Index, Order: in.Order, PMD: in.PMD, Zero: in.Zero,
			Maps: in.Maps, Guard: in.Guard,
		})
	}
	if err := r.h.folios.Each(p.pages, heapAt, heapAt+mm.VA(slotSize), add); err != nil {
		return err
	}
	if err := r.h.folios.Each(p.pages, arenaAt, arenaEnd, add); err != nil {
		return err
	}
	return r.h.folios.Each(p.pages, mapLow, mapTop, add)
}

// vmaReader reads the mappings of the arena from smaps.
type vmaReader struct {
	buf   []byte
	flags map[string]mm.VMAFlags // by the words of a VmFlags line
}

// read appends the mappings to all.
func (v *vmaReader) read(f *os.File, all []mm.VMAInfo) ([]mm.VMAInfo, error) {
	text, err := v.text(int(f.Fd()))
	if err != nil {
		return all, fmt.Errorf("smaps: %w", err)
	}
	in := false
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if len(line) == 0 {
			continue
		}
		if c := line[0]; c >= 'A' && c <= 'Z' {
			if words, ok := bytes.CutPrefix(line, []byte("VmFlags:")); ok && in {
				all[len(all)-1].Flags = v.parse(words)
			}
			continue
		}
		from, rest, ok1 := hexUntil(line, '-')
		to, _, ok2 := hexUntil(rest, ' ')
		if !ok1 || !ok2 {
			return all, fmt.Errorf("smaps: %q: want a mapping", line)
		}
		if in = inPrograms(from); in {
			all = append(all, mm.VMAInfo{Start: from, End: to})
		}
	}
	return all, nil
}

// inPrograms says whether an address is one that programs map at.
func inPrograms(at mm.VA) bool {
	return at == anchorAt || at >= heapAt && at < heapAt+mm.VA(slotSize) || at >= arenaAt && at < arenaEnd ||
		at >= mapLow && at < mapTop
}

// text reads the file from its start. The kernel gives whole mappings, a page
// of text at a time.
func (v *vmaReader) text(fd int) ([]byte, error) {
	if v.buf == nil {
		v.buf, v.flags = make([]byte, 256<<10), map[string]mm.VMAFlags{}
	}
	for n := 0; ; {
		if len(v.buf)-n < 8<<10 {
			v.buf = append(v.buf, make([]byte, len(v.buf))...)
		}
		k, err := unix.Pread(fd, v.buf[n:], int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case k == 0:
			return v.buf[:n], nil
		}
		n += max(k, 0)
	}
}

func (v *vmaReader) parse(words []byte) mm.VMAFlags {
	f, ok := v.flags[string(words)]
	if !ok {
		f = mm.ParseVMAFlags(strings.Fields(string(words)))
		v.flags[string(words)] = f
	}
	return f
}

// hexUntil reads a hexadecimal number that ends with a byte.
func hexUntil(text []byte, end byte) (n mm.VA, rest []byte, ok bool) {
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | mm.VA(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | mm.VA(c-'a'+10)
		default:
			return n, text[i+1:], c == end && i > 0
		}
	}
	return 0, nil, false
}
