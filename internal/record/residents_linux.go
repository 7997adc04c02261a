package record

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"

	"github.com/hugelab/hugelab/mm"
)

// Bits of /proc/PID/pagemap and /proc/kpageflags.
// Linux: fs/proc/task_mmu.c and include/uapi/linux/kernel-page-flags.h (v6.18).
const (
	pmPresent = 1 << 63
	pmFile    = 1 << 61
	pmFrame   = 1<<55 - 1

	kpfHead = 1 << 15
	kpfTail = 1 << 16
	kpfHuge = 1 << 17
	kpfTHP  = 1 << 22
	kpfZero = 1 << 24
)

// pageRun is a run of present pages of one kind.
type pageRun struct {
	start  uint64
	pages  uint64
	access mm.Access
	order  mm.Order
}

// pageMap reads which pages of a process are present, and in what folios.
type pageMap struct {
	maps  *os.File
	flags *os.File // nil when refused: every folio is taken for a small one
	page  uint64
	buf   []byte
	block []byte // kpageflags of the frames from blockAt
	at    uint64
}

// folioBlock is the frames whose flags are read at once; folios of up to that
// length do not cross such a block.
const folioBlock = 512

func openPageMap(dir string) (*pageMap, error) {
	maps, err := os.Open(dir + "/pagemap")
	if err != nil {
		return nil, err
	}
	p := &pageMap{maps: maps, page: uint64(os.Getpagesize()), buf: make([]byte, 8*4096), at: ^uint64(0)}
	p.block = make([]byte, 8*folioBlock)
	if p.flags, err = os.Open("/proc/kpageflags"); err != nil {
		p.flags = nil
	}
	return p, nil
}

func (p *pageMap) close() {
	p.maps.Close()
	if p.flags != nil {
		p.flags.Close()
	}
}

// runs calls f for every run of present pages in [start, end).
func (p *pageMap) runs(start, end uint64, writable bool, f func(pageRun)) error {
	var run pageRun
	for va := start; va < end; {
		want := min((end-va)/p.page*8, uint64(len(p.buf)))
		n, err := p.maps.ReadAt(p.buf[:want], int64(va/p.page*8))
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("page map: %w", err)
		}
		if n < 8 {
			break // the process has gone
		}
		for i := 0; i+8 <= n; i += 8 {
			access, order, ok := p.look(le.Uint64(p.buf[i:]), writable)
			if ok && run.pages > 0 && access == run.access && order == run.order && run.start+run.pages*p.page == va {
				run.pages++
			} else {
				if run.pages > 0 {
					f(run)
				}
				run = pageRun{}
				if ok {
					run = pageRun{va, 1, access, order}
				}
			}
			va += p.page
		}
	}
	if run.pages > 0 {
		f(run)
	}
	return nil
}

// look reads one entry of the page map. Anonymous pages of a writable mapping
// count as written, the zero page and files' pages as read.
func (p *pageMap) look(entry uint64, writable bool) (mm.Access, mm.Order, bool) {
	if entry&pmPresent == 0 {
		return 0, 0, false
	}
	if entry&pmFile != 0 {
		return mm.Read | mm.NoFault, 0, true
	}
	access := mm.Write | mm.NoFault
	if !writable {
		access = mm.Read | mm.NoFault
	}
	flags, order := p.folio(entry & pmFrame)
	if flags&kpfZero != 0 {
		access = mm.Read | mm.NoFault
	}
	return access, order, true
}

// folio is a frame's flags and the order of the folio that it belongs to.
func (p *pageMap) folio(pfn uint64) (flags uint64, order mm.Order) {
	if pfn == 0 || p.flags == nil {
		return 0, 0
	}
	if at := pfn &^ (folioBlock - 1); at != p.at {
		// Most frames stand alone: one word says so, at a fiftieth of the cost of
		// the block.
		if n, _ := p.flags.ReadAt(p.block[:8], int64(pfn*8)); n == 8 {
			p.at = ^uint64(0)
			if flags = le.Uint64(p.block); flags&(kpfTHP|kpfHuge) == 0 {
				return flags, 0
			}
		}
		n, err := p.flags.ReadAt(p.block, int64(at*8))
		if err != nil && n == 0 {
			return 0, 0
		}
		clear(p.block[n:])
		p.at = at
	}
	flag := func(i uint64) uint64 { return le.Uint64(p.block[8*i:]) }
	i := pfn - p.at
	flags = flag(i)
	if flags&(kpfTHP|kpfHuge) == 0 {
		return flags, 0
	}
	head := i
	for head > 0 && flag(head)&kpfTail != 0 {
		head--
	}
	next := head + 1
	for next < folioBlock && flag(next)&kpfTail != 0 {
		next++
	}
	if flag(head)&kpfHead == 0 {
		return flags, 0 // changed while it was read
	}
	return flags, mm.Order(bits.Len64(next-head) - 1)
}
