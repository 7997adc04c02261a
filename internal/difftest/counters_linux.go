package difftest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const thpDir = "/sys/kernel/mm/transparent_hugepage"

// liveCounters reads the compared counters of the running kernel.
type liveCounters struct {
	vmstat int
	names  map[string]int // of vmstat -> index
	files  []int          // descriptors by index - len(names); -1: this kernel has none
	live   []int          // indexes of files that read reads
	buf    []byte
}

func openCounters() (*liveCounters, error) {
	c := &liveCounters{names: map[string]int{}, buf: make([]byte, 32<<10)}
	var err error
	if c.vmstat, err = unix.Open("/proc/vmstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("counters: /proc/vmstat: %w", err)
	}
	for i, n := range vmCounters {
		c.names[n.String()] = i
	}
	s := programSizes()
	for _, f := range sizeFiles {
		name := filepath.Join(thpDir, s.Dir(f.order), "stats", f.file)
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			c.close()
			return nil, fmt.Errorf("counters: %s: %w", name, err)
		}
		if err != nil {
			fd = -1
		}
		c.files = append(c.files, fd)
	}
	c.watch(false)
	return c, nil
}

// watch chooses what read reads of each size: what only shared memory moves
// costs time, and others without it none.
func (c *liveCounters) watch(shared bool) {
	c.live = c.live[:0]
	for i := range sizeFiles {
		if c.files[i] >= 0 && (shared || !sizeFiles[i].shared) {
			c.live = append(c.live, i)
		}
	}
}

func (c *liveCounters) close() {
	for _, fd := range append(c.files, c.vmstat) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// read fills in all, by CounterNames. Counters that are not watched stay.
func (c *liveCounters) read(all []int64) error {
	text, err := c.text(c.vmstat)
	if err != nil {
		return fmt.Errorf("counters: vmstat: %w", err)
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(" "))
		if i, ok := c.names[string(name)]; ok {
			if all[i], ok = leadingNumber(value); !ok {
				return fmt.Errorf("counters: vmstat: %q: want a number", line)
			}
		}
	}
	for _, i := range c.live {
		text, err := c.text(c.files[i])
		n, ok := leadingNumber(text)
		if err == nil && !ok {
			err = fmt.Errorf("%q: want a number", text)
		}
		if err != nil {
			return fmt.Errorf("counters: %s: %w", CounterNames()[len(vmCounters)+i], err)
		}
		all[len(vmCounters)+i] = n
	}
	return nil
}

func (c *liveCounters) text(fd int) ([]byte, error) {
	for {
		n, err := unix.Pread(fd, c.buf, 0)
		if !errors.Is(err, unix.EINTR) {
			return c.buf[:max(n, 0)], err
		}
	}
}

// leadingNumber reads the decimal number that text begins with.
func leadingNumber(text []byte) (n int64, ok bool) {
	sign := int64(1)
	if len(text) > 0 && text[0] == '-' {
		sign, text = -1, text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		n, ok = n*10+int64(c-'0'), true
	}
	return sign * n, ok
}
