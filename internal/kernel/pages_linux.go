package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"strconv"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// Bits of /proc/kpageflags.
// Linux: include/uapi/linux/kernel-page-flags.h (v6.18).
const (
	kpfHead = 1 << 15
	kpfTail = 1 << 16
	kpfHuge = 1 << 17 // hugetlb
	kpfTHP  = 1 << 22 // every large folio of user memory, mTHP too
	kpfZero = 1 << 24
)

// Pages is the live kernel's kstat.PageSource: pagemap, and where frame numbers
// are told kpageflags and kpagecount. It is not safe for concurrent use.
type Pages struct {
	flags, count *os.File // nil when frames are hidden
	pageSize     uint64
	raw, words   []byte
}

var _ kstat.PageSource = (*Pages)(nil)

// OpenPages opens what this user may read. Without CAP_SYS_ADMIN frame numbers
// are hidden: Exact is then false, which is no error.
func OpenPages() (*Pages, error) {
	p := &Pages{pageSize: uint64(os.Getpagesize())}
	flags, err := os.Open("/proc/kpageflags")
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("page flags: %w", err)
	}
	if !framesTold() {
		flags.Close()
		return p, nil
	}
	p.flags = flags
	if p.count, err = os.Open("/proc/kpagecount"); err != nil {
		p.count = nil // mapped-once is told by pagemap too
	}
	return p, nil
}

// Close closes the descriptors.
func (p *Pages) Close() error {
	if p.flags == nil {
		return nil
	}
	if p.count != nil {
		p.count.Close()
	}
	return p.flags.Close()
}

// Exact implements kstat.PageSource.
func (p *Pages) Exact() bool { return p.flags != nil }

// framesTold says whether this process sees frame numbers: its own first
// present page has one.
func framesTold() bool {
	here := new(byte)
	*here = 1
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return false
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], int64(addressOf(here)/uint64(os.Getpagesize()))*8); err != nil {
		return false
	}
	e := binary.NativeEndian.Uint64(b[:])
	return e&pmPresent != 0 && e&pmFrame != 0
}

// Pages implements kstat.PageSource. Pages behind the end of user memory, and
// of a process that has gone, are not filled in.
func (p *Pages) Pages(pid int, from mm.VA, out []kstat.PageInfo) (int, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/pagemap")
	if err != nil {
		return 0, fmt.Errorf("page map: %w", err)
	}
	defer f.Close()
	if cap(p.raw) < 8*len(out) {
		p.raw = make([]byte, 8*len(out))
	}
	raw := p.raw[:8*len(out)]
	n, err := f.ReadAt(raw, int64(uint64(from)/p.pageSize)*8)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("page map: %w", err)
	}
	n /= 8
	for i := range n {
		out[i] = p.info(binary.NativeEndian.Uint64(raw[8*i:]))
	}
	return n, p.scanned(pid, from, out[:n])
}

// info reads one entry, and the folio behind it where its frame is known.
func (p *Pages) info(e uint64) kstat.PageInfo {
	in := kstat.PageInfo{
		Present: e&pmPresent != 0, File: e&pmFile != 0, Exclusive: e&pmExclusive != 0,
		Swapped: e&pmSwapped != 0, Guard: e&pmGuard != 0,
	}
	if !in.Present {
		return in
	}
	in.PFN = mm.PFN(e & pmFrame)
	if p.flags == nil || in.PFN == 0 {
		return in
	}
	flags := p.word(p.flags, in.PFN)
	in.Zero = flags&kpfZero != 0
	if flags&(kpfTHP|kpfHuge) != 0 {
		in.Order, in.Index = p.folio(in.PFN)
	}
	return in
}

// word reads one 8-byte word of a file that is indexed by frame.
func (p *Pages) word(f *os.File, at mm.PFN) uint64 {
	var b [8]byte
	if _, err := f.ReadAt(b[:], int64(at)*8); err != nil {
		return 0
	}
	return binary.NativeEndian.Uint64(b[:])
}

// MapCount is how often a frame is mapped, as /proc/kpagecount tells; false
// when it does not.
func (p *Pages) MapCount(at mm.PFN) (uint64, bool) {
	if p.count == nil || at == 0 {
		return 0, false
	}
	return p.word(p.count, at), true
}

// folio finds the order of the folio that holds a frame, and its place there. A
// folio is aligned to its length, so the head is at one of the frame's
// alignments, and every frame between carries the tail flag.
func (p *Pages) folio(at mm.PFN) (mm.Order, uint32) {
	const most = 1 << mm.MaxOrder
	if p.words == nil {
		p.words = make([]byte, 8*most*2)
	}
	head := at
	for step := mm.PFN(1); step <= most && p.word(p.flags, head)&kpfTail != 0; step *= 2 {
		head = at &^ (2*step - 1)
		if p.word(p.flags, head)&kpfHead != 0 {
			break
		}
	}
	if p.word(p.flags, head)&kpfHead == 0 {
		return 0, 0 // changed between the reads
	}
	n, _ := p.flags.ReadAt(p.words[:8*(most+1)], int64(head)*8)
	length := 1
	for 8*length+8 <= n && binary.NativeEndian.Uint64(p.words[8*length:])&kpfTail != 0 {
		length++
	}
	return mm.Order(bits.Len(uint(length)) - 1), uint32(at - head)
}

// scanned marks the zero pages of out and what a PMD maps by PAGEMAP_SCAN.
// Without it page flags tell zero pages, and nothing the mapping's size.
func (p *Pages) scanned(pid int, from mm.VA, out []kstat.PageInfo) error {
	pm, err := OpenPageMap(pid)
	if err != nil {
		return err
	}
	defer pm.Close()
	from -= from % mm.VA(p.pageSize)
	runs, err := pm.Scan(from, from+mm.VA(uint64(len(out))*p.pageSize), false, nil)
	if err != nil || !pm.Scans() {
		return err
	}
	for _, r := range runs {
		first := uint64(r.Start-from) / p.pageSize
		for i := first; i < first+uint64(r.Pages) && i < uint64(len(out)); i++ {
			out[i].Zero, out[i].PMD = out[i].Zero || r.Zero, r.Huge
		}
	}
	return nil
}
