package kernel

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

// PageMap is one process's page map. The descriptor belongs to the address
// space that the process had when it was opened: exec needs a new one.
type PageMap struct {
	f        *os.File
	pid      int
	noScan   bool // the kernel has no PAGEMAP_SCAN (before 6.7)
	pageSize uint64
	raw      []byte
	regions  []pageRegion
}

// OpenPageMap opens the page map of process pid. It needs the same rights as
// reading the process's memory: the same user, and a program that may be read.
func OpenPageMap(pid int) (*PageMap, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/pagemap")
	if err != nil {
		return nil, fmt.Errorf("page map: %w", err)
	}
	return &PageMap{f: f, pid: pid, pageSize: uint64(os.Getpagesize())}, nil
}

// Close closes the descriptor.
func (p *PageMap) Close() error { return p.f.Close() }

// UseBits makes Scan read entries one by one, as on a kernel without
// PAGEMAP_SCAN.
func (p *PageMap) UseBits() { p.noScan = true }

// Scans says whether Scan uses PAGEMAP_SCAN, which tells the zero page from a
// shared one and skips holes.
func (p *PageMap) Scans() bool { return !p.noScan }

// pageRegion and scanArg are the kernel's. Linux: include/uapi/linux/fs.h:
// struct page_region, struct pm_scan_arg (v6.18).
type pageRegion struct{ start, end, categories uint64 }

type scanArg struct {
	size, flags               uint64
	start, end, walkEnd       uint64
	vec, vecLen, maxPages     uint64
	inverted, mask, anyOf, rt uint64
}

const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageFile    = 1 << 2
	pagePresent = 1 << 3
	pageSwapped = 1 << 4
	pageZero    = 1 << 5
	pageHuge    = 1 << 6
)

// Scan appends to runs what lies in [from, to): pages in memory or swapped, in
// address order. anonOnly leaves out page-cache pages. Holes cost nothing with
// PAGEMAP_SCAN; without it only mapped ranges are read. An address space that
// has gone has no pages.
func (p *PageMap) Scan(from, to mm.VA, anonOnly bool, runs []Run) ([]Run, error) {
	from -= from % mm.VA(p.pageSize)
	if !p.noScan {
		out, err := p.scan(from, to, anonOnly, runs)
		if !errors.Is(err, unix.ENOTTY) && !errors.Is(err, unix.EINVAL) {
			return out, err
		}
		p.noScan = true
	}
	return p.scanBits(from, to, anonOnly, runs)
}

func (p *PageMap) scan(from, to mm.VA, anonOnly bool, runs []Run) ([]Run, error) {
	if p.regions == nil {
		p.regions = make([]pageRegion, 1024)
	}
	a := scanArg{
		size: uint64(unsafe.Sizeof(scanArg{})), start: uint64(from),
		end:    (uint64(to) + p.pageSize - 1) &^ (p.pageSize - 1),
		vec:    uint64(uintptr(unsafe.Pointer(&p.regions[0]))),
		vecLen: uint64(len(p.regions)),
		anyOf:  pagePresent | pageSwapped,
		rt:     pageFile | pagePresent | pageSwapped | pageZero | pageHuge,
	}
	if anonOnly {
		a.inverted, a.mask = pageFile, pageFile
	}
	for again := 2; a.start < a.end; {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, p.f.Fd(), pagemapScan, uintptr(unsafe.Pointer(&a)))
		if errno == unix.EFAULT && again > 0 {
			again-- // seen about once in 200 recordings beside an exec, and gone at the next try
			continue
		}
		if errno == unix.ESRCH {
			return runs, nil
		}
		if errno != 0 {
			return runs, fmt.Errorf("page map: scan: %w", errno)
		}
		for _, r := range p.regions[:n] {
			c := r.categories
			runs = append(runs, Run{
				Start: mm.VA(r.start), Pages: mm.Pages((r.end - r.start) / p.pageSize),
				RunKind: RunKind{
					Zero: c&pageZero != 0, File: c&pageFile != 0,
					Swapped: c&pageSwapped != 0, Huge: c&pageHuge != 0,
				},
			})
		}
		if a.walkEnd <= a.start {
			break
		}
		a.start = a.walkEnd
	}
	return runs, nil
}

// scanBits reads the entries of every mapping that lies in [from, to).
func (p *PageMap) scanBits(from, to mm.VA, anonOnly bool, runs []Run) ([]Run, error) {
	maps, err := os.Open("/proc/" + strconv.Itoa(p.pid) + "/maps")
	if err != nil {
		return runs, nil // the process has gone
	}
	defer maps.Close()
	sc := bufio.NewScanner(maps)
	sc.Buffer(make([]byte, 64<<10), 64<<10)
	for sc.Scan() {
		start, end, ok := mapRange(sc.Text())
		if !ok || end <= from || start >= to {
			continue
		}
		if runs, err = p.readRange(max(start, from), min(end, to), anonOnly, runs); err != nil {
			return runs, err
		}
	}
	return runs, sc.Err()
}

// mapRange reads the two addresses that begin a line of /proc/PID/maps.
func mapRange(line string) (start, end mm.VA, ok bool) {
	span, _, _ := strings.Cut(line, " ")
	lo, hi, ok := strings.Cut(span, "-")
	a, err1 := strconv.ParseUint(lo, 16, 64)
	b, err2 := strconv.ParseUint(hi, 16, 64)
	return mm.VA(a), mm.VA(b), ok && err1 == nil && err2 == nil
}

func (p *PageMap) readRange(from, to mm.VA, anonOnly bool, runs []Run) ([]Run, error) {
	if p.raw == nil {
		p.raw = make([]byte, 64<<10)
	}
	size := mm.VA(p.pageSize)
	for at := from; at < to; {
		want := min(len(p.raw), int((to-at+size-1)/size)*8)
		n, err := p.f.ReadAt(p.raw[:want], int64(at/size)*8)
		for i := 0; i+8 <= n; i += 8 {
			k, ok := entryKind(binary.NativeEndian.Uint64(p.raw[i:]))
			if ok && !(anonOnly && k.File) {
				runs = addPage(runs, at, k, p.pageSize)
			}
			at += size
		}
		if n < 8 || err == io.EOF {
			return runs, nil
		}
		if err != nil {
			return runs, fmt.Errorf("page map: %w", err)
		}
	}
	return runs, nil
}
