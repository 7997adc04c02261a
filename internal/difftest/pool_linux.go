//go:build amd64

package difftest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// poolDir is where the kernel shows the pools, by size.
const (
	poolDir   = "/sys/kernel/mm/hugepages"
	pool2m    = poolDir + "/hugepages-2048kB/"
	hugeShift = 21 // of the size in mmap's flags: 2 MB
)

// readPool reads the pool of 2 MB pages. Reservations may pass below zero.
func readPool() (*PoolSeen, error) {
	var n [len(poolNames)]int64
	for i, name := range poolNames {
		b, err := os.ReadFile(pool2m + name + "_hugepages")
		if err != nil {
			return nil, fmt.Errorf("pool: %w", err)
		}
		v, err := strconv.ParseUint(string(b[:max(len(b)-1, 0)]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("pool: %s: %q: want a number", name, b)
		}
		n[i] = int64(v)
	}
	return &PoolSeen{n[0], n[1], n[2], n[3]}, nil
}

// writePool writes one of the pool's files.
func writePool(file string, n int64) error {
	if err := os.WriteFile(pool2m+file, []byte(strconv.FormatInt(n, 10)), 0); err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	return nil
}

// setPool does a pool or overcommit step.
func setPool(s *Step) error {
	if s.Verb == VerbPool {
		return writePool("nr_hugepages", s.Pool[0])
	}
	return writePool("nr_overcommit_hugepages", s.Pool[0])
}

// startPool makes the pool what the program's policy asks. Between programs it
// is empty: one that is not belongs to somebody else, whose pages no program's
// could be told from. The session's journal holds what it was.
func startPool(p *Program) error {
	policy, err := policyOf(p.Policy)
	if err != nil {
		return err
	}
	if err := awaitPool(PoolSeen{}); err != nil {
		return err
	}
	pages := int64(policy.Pools[0].Pages)
	err = trialPool(max(pages, hugePool) + roomPool)
	if err == nil {
		err = writePool("nr_overcommit_hugepages", int64(policy.Pools[0].Overcommit))
	}
	if err == nil {
		err = writePool("nr_hugepages", pages)
	}
	if err == nil {
		err = awaitPool(PoolSeen{Pages: pages, Free: pages})
	}
	if err != nil {
		err = errors.Join(err, endPool())
	}
	return err
}

// roomPool is how many surplus pages a program may come to have beside its pool.
const roomPool = 4

// trialPool makes a pool as large as a program's may become, and so sees to it
// that memory in pieces of 2 MB is there when a step asks for it; compaction
// makes some where it is not. What the step gets is then the model's business.
func trialPool(pages int64) error {
	for try := range 3 {
		if err := writePool("nr_hugepages", pages); err != nil {
			return err
		}
		is, err := readPool()
		if err != nil || is.Pages == pages {
			return err
		}
		if try < 2 {
			_ = os.WriteFile("/proc/sys/vm/compact_memory", []byte("1"), 0)
		}
	}
	return fmt.Errorf("pool: no %d free pages of 2 MB: memory is too full, or too fragmented", pages)
}

// awaitPool waits a little until the pool is as it should be.
func awaitPool(want PoolSeen) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		is, err := readPool()
		if err != nil || *is == want {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("pool: 2 MB hugetlb pages: %s, a program wants %s: somebody else has some", is, want)
		}
	}
}

// endPool empties the pool again.
func endPool() error {
	if err := writePool("nr_overcommit_hugepages", 0); err != nil {
		return err
	}
	return writePool("nr_hugepages", 0)
}

// hugetlbFlags turns private and anonymous into hugetlb of 2 MB.
func hugetlbFlags(op *mm.Op, f uint64) uint64 {
	if op.Flags&mm.MapHugetlb != 0 {
		f |= unix.MAP_HUGETLB | hugeShift<<unix.MAP_HUGE_SHIFT
	}
	if op.Flags&mm.MapShared != 0 {
		f = f&^unix.MAP_PRIVATE | unix.MAP_SHARED
	}
	return f
}
