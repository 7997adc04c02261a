package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// Folios reads the folios behind the pages of many processes at one moment: it
// reads page flags by the block and keeps them until Forget. It needs frame
// numbers (CAP_SYS_ADMIN) and PAGEMAP_SCAN, and is not safe for concurrent use.
type Folios struct {
	flags   *os.File
	count   *os.File // how often frames are mapped; nil: this kernel does not tell
	blocks  map[mm.PFN][]byte
	counts  map[mm.PFN][]byte
	spare   [][]byte
	raw     []byte
	regions []pageRegion
}

// folioBlock is how many frames' flags are read at once: those of the largest
// folio.
const folioBlock = 512

const (
	kpfBlockBytes = 8 * folioBlock
	pageGuard     = 1 << 8 // PAGE_IS_GUARD
)

// OpenFolios fails where frame numbers are hidden.
func OpenFolios() (*Folios, error) {
	f, err := os.Open("/proc/kpageflags")
	if err != nil {
		return nil, fmt.Errorf("page flags: %w", err)
	}
	if !framesTold() {
		f.Close()
		return nil, fmt.Errorf("page map: frame numbers are hidden: %w", os.ErrPermission)
	}
	r := &Folios{flags: f, blocks: map[mm.PFN][]byte{}, counts: map[mm.PFN][]byte{},
		regions: make([]pageRegion, 4096)}
	if r.count, err = os.Open("/proc/kpagecount"); err != nil {
		r.count = nil
	}
	return r, nil
}

// Close closes what it reads.
func (r *Folios) Close() error {
	if r.count != nil {
		r.count.Close()
	}
	return r.flags.Close()
}

// Forget drops the page flags read so far: pages have moved since.
func (r *Folios) Forget() {
	for _, blocks := range []map[mm.PFN][]byte{r.blocks, r.counts} {
		for pfn, b := range blocks {
			r.spare = append(r.spare, b)
			delete(blocks, pfn)
		}
	}
}

// FolioMap is one address space's page map.
type FolioMap struct{ f *os.File }

// OpenFolioMap opens the page map of process pid.
func OpenFolioMap(pid int) (*FolioMap, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/pagemap")
	if err != nil {
		return nil, fmt.Errorf("page map: %w", err)
	}
	return &FolioMap{f}, nil
}

// Close closes the page map.
func (p *FolioMap) Close() error { return p.f.Close() }

// Each calls f for every page of [from, to) that is present or a guard marker,
// in address order.
func (r *Folios) Each(p *FolioMap, from, to mm.VA, f func(mm.VA, kstat.PageInfo)) error {
	a := scanArg{
		size: uint64(unsafe.Sizeof(scanArg{})), start: uint64(from), end: uint64(to),
		vec:    uint64(uintptr(unsafe.Pointer(&r.regions[0]))),
		vecLen: uint64(len(r.regions)),
		anyOf:  pagePresent | pageSwapped | pageGuard,
		rt:     pagePresent | pageSwapped | pageZero | pageHuge | pageGuard | pageFile,
	}
	done := a.start
	for a.start < a.end {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, p.f.Fd(), pagemapScan, uintptr(unsafe.Pointer(&a)))
		if errno == unix.EINVAL && a.anyOf&pageGuard != 0 { // before 6.15
			a.anyOf &^= pageGuard
			a.rt &^= pageGuard
			continue
		}
		if errno != 0 {
			return fmt.Errorf("page map: scan: %w", errno)
		}
		for _, reg := range r.regions[:n] {
			// After 512 runs the kernel may tell the last one twice.
			if reg.start = max(reg.start, done); reg.start >= reg.end {
				continue
			}
			done = reg.end
			if err := r.run(p, reg, f); err != nil {
				return err
			}
		}
		if a.walkEnd <= a.start {
			break
		}
		a.start = a.walkEnd
	}
	return nil
}

// run reads the entries of one run of equal categories.
func (r *Folios) run(p *FolioMap, reg pageRegion, f func(mm.VA, kstat.PageInfo)) error {
	const page = 4096
	if r.raw == nil {
		r.raw = make([]byte, 64<<10)
	}
	for at := reg.start; at < reg.end; {
		want := min(len(r.raw), int((reg.end-at)/page)*8)
		n, err := p.f.ReadAt(r.raw[:want], int64(at/page)*8)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("page map: %w", err)
		}
		if n < 8 {
			return nil
		}
		for i := 0; i+8 <= n; i += 8 {
			in, err := r.page(binary.NativeEndian.Uint64(r.raw[i:]), reg.categories)
			if err != nil {
				return err
			}
			f(mm.VA(at), in)
			at += page
		}
	}
	return nil
}

func (r *Folios) page(e, categories uint64) (kstat.PageInfo, error) {
	in := kstat.PageInfo{
		Present: e&pmPresent != 0, File: e&pmFile != 0, Exclusive: e&pmExclusive != 0,
		Swapped: e&pmSwapped != 0 && e&pmGuard == 0, Guard: e&pmGuard != 0,
		PMD: categories&pageHuge != 0, Zero: categories&pageZero != 0,
	}
	if !in.Present {
		return in, nil
	}
	in.PFN = mm.PFN(e & pmFrame)
	var err error
	if in.Order, in.Index, err = r.folio(in.PFN); err != nil || r.count == nil {
		return in, err
	}
	// The exclusive bit of a page that a PMD maps is that of another page.
	// Linux: fs/proc/task_mmu.c:pagemap_pmd_range (v6.18).
	b, err := r.block(r.count, r.counts, in.PFN/folioBlock)
	if err == nil {
		in.Maps = uint32(binary.NativeEndian.Uint64(b[8*(in.PFN%folioBlock):]))
		in.Exclusive = in.Maps == 1
	}
	return in, err
}

// folio finds the folio that holds a frame. A folio lies in one block, because
// it is aligned to its length.
func (r *Folios) folio(at mm.PFN) (mm.Order, uint32, error) {
	b, err := r.block(r.flags, r.blocks, at/folioBlock)
	if err != nil {
		return 0, 0, err
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	i := int(at % folioBlock)
	if word(i)&(kpfTHP|kpfHuge) == 0 {
		return 0, 0, nil
	}
	head := i
	for head > 0 && word(head)&kpfTail != 0 {
		head--
	}
	if word(head)&kpfHead == 0 {
		return 0, 0, nil
	}
	end := head + 1
	for end < folioBlock && word(end)&kpfTail != 0 {
		end++
	}
	return mm.Order(bits.Len(uint(end-head)) - 1), uint32(i - head), nil
}

// block reads a block of a file that has one word a frame, and keeps it.
func (r *Folios) block(f *os.File, blocks map[mm.PFN][]byte, n mm.PFN) ([]byte, error) {
	if b, ok := blocks[n]; ok {
		return b, nil
	}
	var b []byte
	if k := len(r.spare); k > 0 {
		b, r.spare = r.spare[k-1], r.spare[:k-1]
	} else {
		b = make([]byte, kpfBlockBytes)
	}
	clear(b)
	if _, err := f.ReadAt(b, int64(n)*kpfBlockBytes); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("page flags: %w", err)
	}
	blocks[n] = b
	return b, nil
}
