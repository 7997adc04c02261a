package repro

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// hostWait is how long one result waits for whoever else changes the settings
// of this host: the lock is held for seconds, and a report is not to take longer.
const hostWait = 3 * time.Second

// withSettings runs f with the right to change the settings of this host, and
// puts them back. f runs on one thread. An error says why it can't be.
func withSettings(ctx context.Context, result string, f func(*kernel.Session) (Values, error)) (v Values, err error) {
	if err := kernel.CanChange(); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, hostWait)
	defer cancel()
	s, err := kernel.Take(waiting, kernel.SessionOptions{Command: "repro " + result})
	if err != nil {
		return nil, err
	}
	defer func() {
		if rerr := s.Restore(); rerr != nil {
			v, err = nil, fmt.Errorf("the settings were not put back: %w", rerr)
		}
	}()
	if s.Sizes() != folioPages {
		return nil, fmt.Errorf("the base page of this host is not 4 kB")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f(s)
}

// allowHuge lets this process have huge pages until the returned function is
// called: whoever holds the settings keeps them out of itself.
func allowHuge() (back func(), err error) {
	off, err := unix.PrctlRetInt(unix.PR_GET_THP_DISABLE, 0, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_THP_DISABLE, 0, 0, 0, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("prctl: %w", err)
	}
	return func() { unix.Prctl(unix.PR_SET_THP_DISABLE, uintptr(off), 0, 0, 0) }, nil
}

// cpuTime is what the calling thread has used of a processor, in nanoseconds.
// What is timed runs on that thread alone, and others' work on a busy host is
// not counted.
func cpuTime() float64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // always there
	return float64(t.Nano())
}

// vmstat reads counters of this host; missing ones are an error.
func vmstat(names ...string) (sum int64, err error) {
	st, err := kstat.ReadVMStat(kernel.LiveTree().FS)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		x, ok := st[n]
		if !ok {
			return 0, fmt.Errorf("this kernel has no counter %s in /proc/vmstat", n)
		}
		sum += int64(x)
	}
	return sum, nil
}

// hostPool is the pool of 2 MB pages of this host's first node, changed under a
// session that puts it back.
type hostPool struct {
	s      *kernel.Session
	file   string // nr_hugepages
	hvo    string // the switch
	before uint64 // pages that were there
	rules  mm.Rules
}

const hvoSwitch = "/proc/sys/vm/hugetlb_optimize_vmemmap"

// poolPages is how many pages the pool grows by: 1 GiB.
const poolPages = 512

// newHostPool finds the pool. It is an error if there is too little memory to
// make it larger without pain.
func newHostPool(s *kernel.Session) (*hostPool, error) {
	before := s.Before()
	p := &hostPool{s: s}
	if _, ok := before[hvoSwitch]; !ok {
		return nil, fmt.Errorf("this kernel gives no struct pages back (CONFIG_HUGETLB_PAGE_OPTIMIZE_VMEMMAP)")
	}
	for _, f := range slices.Sorted(maps.Keys(before)) {
		if path.Base(f) == "nr_hugepages" && path.Base(path.Dir(f)) == "hugepages-2048kB" {
			p.file = f
			break
		}
	}
	var err error
	if p.before, err = strconv.ParseUint(before[p.file], 10, 64); err != nil {
		return nil, fmt.Errorf("this kernel has no pool of 2 MB pages")
	}
	m, err := kstat.ReadMemInfo(kernel.LiveTree().FS)
	if err != nil {
		return nil, err
	}
	const need = 3 * poolPages * hugeBytes
	if has := m.Bytes["MemAvailable"]; has < need {
		return nil, fmt.Errorf("%d MiB of memory are available: a pool of 1 GiB is made with %d MiB or more",
			has>>20, need>>20)
	}
	if p.rules, err = mm.RulesFor(kernel.LiveFacts().Release); err != nil {
		return nil, err
	}
	return p, nil
}

// optimise sets whether pages that come into the pool give struct pages back.
func (p *hostPool) optimise(on bool) error {
	to := "0"
	if on {
		to = "1"
	}
	return p.s.Set(kernel.Values{hvoSwitch: to})
}

// resize makes the pool so many pages larger than it was found, and is the
// thread's time for it in nanoseconds. The journal of the session knows the way
// back already.
func (p *hostPool) resize(by uint64) (float64, error) {
	f, err := os.OpenFile(p.file, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text := []byte(strconv.FormatUint(p.before+by, 10))
	from := cpuTime()
	_, err = unix.Write(int(f.Fd()), text)
	t := cpuTime() - from
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.file, err)
	}
	got, err := os.ReadFile(filepath.Clean(p.file))
	if err != nil {
		return 0, err
	}
	if strings.TrimSpace(string(got)) != string(text) {
		return 0, fmt.Errorf("a pool of 1 GiB: the kernel found too little free memory in pieces of 2 MB")
	}
	return t, nil
}

// median of at least one value.
func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
