package repro

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

const (
	recordBytes  = 128 << 20 // ebizzy -s 134217728
	recordRounds = 3
)

// ebizzyTHPHost counts the huge pages that a record of ebizzy -HT faults in on
// this host. The kernel's counter is the whole machine's, and so the least of a
// few records is taken.
func ebizzyTHPHost(ctx context.Context) (Values, error) {
	return withSettings(ctx, "ebizzy-thp", func(s *kernel.Session) (Values, error) {
		back, err := allowHuge()
		if err != nil {
			return nil, err
		}
		defer back()
		p, err := mm.ParsePolicySpec(mm.DefaultPolicy(folioPages), "never,2m=madvise", folioPages)
		if err == nil {
			err = s.Apply(p)
		}
		if err != nil {
			return nil, err
		}
		var least int64
		for i := range recordRounds {
			n, err := hugeRecord()
			if err != nil {
				return nil, err
			}
			if i == 0 || n < least {
				least = n
			}
		}
		var v Values
		v.Add("huge_faults_per_record", float64(least))
		return v, nil
	})
}

// hugeRecord maps a chunk, asks for huge pages, writes it and unmaps it.
func hugeRecord() (faults int64, err error) {
	b, err := unix.Mmap(-1, 0, recordBytes+hugeBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	defer unix.Munmap(b)
	at := -uintptr(unsafe.Pointer(&b[0])) & (hugeBytes - 1)
	chunk := b[at : at+recordBytes]
	if err := unix.Madvise(chunk, unix.MADV_HUGEPAGE); err != nil {
		return 0, fmt.Errorf("madvise: %w", err)
	}
	from, err := vmstat("thp_fault_alloc")
	if err != nil {
		return 0, err
	}
	for i := 0; i < len(chunk); i += baseBytes {
		chunk[i] = 1
	}
	to, err := vmstat("thp_fault_alloc")
	return to - from, err
}

const (
	faultFile = 128 << 20 // of will-it-scale's page_fault3
	faultFor  = 300 * time.Millisecond
)

// pageFaultHost is one thread of will-it-scale's page_fault3 on this host:
// it maps a file that is in memory, writes to each page, and unmaps it.
func pageFaultHost(ctx context.Context) (Values, error) {
	fd, err := unix.MemfdCreate("page_fault3", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, faultFile); err != nil {
		return nil, fmt.Errorf("ftruncate: %w", err)
	}
	if err := faultPass(fd); err != nil { // the file's pages are made once
		return nil, err
	}
	passes := 0
	from := time.Now()
	for time.Since(from) < faultFor && ctx.Err() == nil {
		if err := faultPass(fd); err != nil {
			return nil, err
		}
		passes++
	}
	var v Values
	v.Add("one_thread_ops", float64(passes*(faultFile/baseBytes))/time.Since(from).Seconds())
	return v, ctx.Err()
}

func faultPass(fd int) error {
	b, err := unix.Mmap(fd, 0, faultFile, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	for i := 0; i < len(b); i += baseBytes {
		b[i] = 1
	}
	return unix.Munmap(b)
}
