package difftest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const thpDir = "/sys/kernel/mm/transparent_hugepage"

// liveCounters reads the compared counters of the running kernel.
type liveCounters struct {
	vmstat *os.File
	names  map[string]int // of vmstat -> index
	files  []*os.File     // by index - len(names); nil: this kernel has none
	buf    []byte
}

func openCounters() (*liveCounters, error) {
	c := &liveCounters{names: map[string]int{}, buf: make([]byte, 32<<10)}
	var err error
	if c.vmstat, err = os.Open("/proc/vmstat"); err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	for i, n := range vmCounters {
		c.names[n.String()] = i
	}
	s := programSizes()
	for _, o := range s.Orders() {
		for _, f := range sizeCounters {
			file, err := os.Open(filepath.Join(thpDir, s.Dir(o), "stats", f.file))
			if err != nil && !os.IsNotExist(err) {
				c.close()
				return nil, fmt.Errorf("counters: %w", err)
			}
			if err != nil {
				file = nil
			}
			c.files = append(c.files, file)
		}
	}
	return c, nil
}

func (c *liveCounters) close() {
	c.vmstat.Close()
	for _, f := range c.files {
		if f != nil {
			f.Close()
		}
	}
}

func (c *liveCounters) read() ([]int64, error) {
	all := make([]int64, len(vmCounters)+len(c.files))
	n, err := c.vmstat.ReadAt(c.buf, 0)
	if n == 0 {
		return nil, fmt.Errorf("counters: vmstat: %w", err)
	}
	for line := range bytes.Lines(c.buf[:n]) {
		if !bytes.HasPrefix(line, []byte("thp_")) {
			continue
		}
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if i, ok := c.names[string(name)]; ok {
			if all[i], err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return nil, fmt.Errorf("counters: %s: %w", name, err)
			}
		}
	}
	for i, f := range c.files {
		if f == nil {
			continue
		}
		n, err := f.ReadAt(c.buf, 0)
		if n == 0 {
			return nil, fmt.Errorf("counters: %s: %w", f.Name(), err)
		}
		if all[len(vmCounters)+i], err = strconv.ParseInt(string(bytes.TrimSpace(c.buf[:n])), 10, 64); err != nil {
			return nil, fmt.Errorf("counters: %s: %w", f.Name(), err)
		}
	}
	return all, nil
}
