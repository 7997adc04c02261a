package repro

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
)

// touchRuns is how many touches of each size are summed.
const touchRuns = 5

// folioHost touches memory with folios of each size on this host: system time,
// the sum of a few runs, because kernels account it by the timer's ticks. The
// settings are changed for that long.
func folioHost(ctx context.Context) (Values, error) {
	return withSettings(ctx, "folio-sizes", touchSizes)
}

func touchSizes(s *kernel.Session) (Values, error) {
	back, err := allowHuge()
	if err != nil {
		return nil, err
	}
	defer back()
	var v Values
	var base float64
	for _, row := range folioRows[:6] {
		p, err := row.policy()
		if err != nil {
			return nil, err
		}
		if err := s.Apply(p); err != nil {
			return nil, err
		}
		var sum float64
		for range touchRuns {
			t, faults, err := touchOnce(mm.Bytes(touchPages) << 12)
			if err != nil {
				return nil, err
			}
			if most := 2 * touchPages / row.pages; faults > most {
				return nil, fmt.Errorf("size %s took no effect: %d faults for %d pages", row.name, faults, touchPages)
			}
			sum += t
		}
		addTouch(&v, row.name, sum, &base)
	}
	return v, nil
}

// touchOnce is the thread's system time for touching fresh memory, in
// nanoseconds, and its faults.
func touchOnce(size mm.Bytes) (time float64, faults int64, err error) {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, 0, fmt.Errorf("mmap: %w", err)
	}
	var before, after unix.Rusage
	err = unix.Getrusage(unix.RUSAGE_THREAD, &before)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	err = errors.Join(err, unix.Getrusage(unix.RUSAGE_THREAD, &after), unix.Munmap(b))
	return float64(after.Stime.Nano() - before.Stime.Nano()), after.Minflt - before.Minflt, err
}
