package kernel

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// Folios reads the folios behind the pages of many processes at one moment. It
// asks for the flags of those frames only that pages are in, by runs, and keeps
// them until Forget. It needs frame numbers (CAP_SYS_ADMIN) and PAGEMAP_SCAN,
// and is not safe for concurrent use.
type Folios struct {
	frames  frames
	raw     []byte       // entries of the page map
	regions []pageRegion // of one scan
	found   []foundPage
}

// foundPage is one entry of a page map, and what the scan said of it.
type foundPage struct {
	at                uint64
	entry, categories uint64
}

const (
	pageGuard = 1 << 8   // PAGE_IS_GUARD
	rawBytes  = 64 << 10 // entries read at once

	// scanGap is how many absent pages are read over rather than read around:
	// a system call costs as much as so many entries.
	scanGap = 64
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
	r := &Folios{regions: make([]pageRegion, 4096), raw: make([]byte, rawBytes)}
	r.frames.flags = f
	if r.frames.count, err = os.Open("/proc/kpagecount"); err != nil {
		r.frames.count = nil
	}
	r.Forget()
	return r, nil
}

// Close closes what it reads.
func (r *Folios) Close() error { return r.frames.close() }

// Forget drops the page flags read so far: pages have moved since.
func (r *Folios) Forget() { r.frames.forget() }

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
	r.found = r.found[:0]
	if err := r.scan(p, from, to); err != nil {
		return err
	}
	for i := range r.found {
		e := &r.found[i]
		if e.entry&pmPresent != 0 {
			r.frames.want(mm.PFN(e.entry&pmFrame), e.mapped())
		}
	}
	if err := r.frames.load(); err != nil {
		return err
	}
	for i := range r.found {
		in, err := r.page(&r.found[i])
		if err != nil {
			return err
		}
		f(mm.VA(r.found[i].at), in)
	}
	return nil
}

// mapped says that how often the page is mapped must be asked. Where the entry
// has the exclusive bit it is once; but that of a page that a PMD maps is of
// another page. Linux: fs/proc/task_mmu.c:pagemap_pmd_range (v6.18).
func (e *foundPage) mapped() bool {
	return e.categories&pageHuge != 0 || e.entry&pmExclusive == 0
}

// scan finds the pages of a range.
func (r *Folios) scan(p *FolioMap, from, to mm.VA) error {
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
		regions := r.regions[:n]
		// After 512 runs the kernel may tell the last one twice.
		for len(regions) > 0 {
			if regions[0].start = max(regions[0].start, done); regions[0].start < regions[0].end {
				break
			}
			regions = regions[1:]
		}
		for len(regions) > 0 {
			k := together(regions)
			if err := r.read(p, regions[:k]); err != nil {
				return err
			}
			done, regions = regions[k-1].end, regions[k:]
		}
		if a.walkEnd <= a.start {
			break
		}
		a.start = a.walkEnd
	}
	return nil
}

// together is how many of the first runs are read by one call.
func together(regions []pageRegion) int {
	const page = 4096
	k := 1
	for k < len(regions) && regions[k].start-regions[k-1].end <= scanGap*page &&
		regions[k].end-regions[0].start <= rawBytes/8*page {
		k++
	}
	return k
}

// read reads the entries of neighbouring runs of equal categories.
func (r *Folios) read(p *FolioMap, regions []pageRegion) error {
	const page = 4096
	for at, end := regions[0].start, regions[len(regions)-1].end; at < end; {
		want := min(len(r.raw), int((end-at)/page)*8)
		n, err := unix.Pread(int(p.f.Fd()), r.raw[:want], int64(at/page)*8)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("page map: %w", err)
		}
		if n < 8 {
			return nil
		}
		for i := 0; i+8 <= n; i += 8 {
			for at >= regions[0].end {
				regions = regions[1:]
			}
			if at >= regions[0].start {
				e := *(*uint64)(unsafe.Pointer(&r.raw[i]))
				r.found = append(r.found, foundPage{at, e, regions[0].categories})
			}
			at += page
		}
	}
	return nil
}

func (r *Folios) page(f *foundPage) (kstat.PageInfo, error) {
	e := f.entry
	in := kstat.PageInfo{
		Present: e&pmPresent != 0, File: e&pmFile != 0, Exclusive: e&pmExclusive != 0,
		Swapped: e&pmSwapped != 0 && e&pmGuard == 0, Guard: e&pmGuard != 0,
		PMD: f.categories&pageHuge != 0, Zero: f.categories&pageZero != 0,
	}
	if !in.Present {
		return in, nil
	}
	in.PFN = mm.PFN(e & pmFrame)
	var err error
	if in.Order, in.Index, err = r.frames.folio(in.PFN); err != nil || r.frames.count == nil {
		return in, err
	}
	in.Maps = 1
	if f.mapped() {
		in.Maps = r.frames.maps(in.PFN)
		in.Exclusive = in.Maps == 1
	}
	return in, nil
}
