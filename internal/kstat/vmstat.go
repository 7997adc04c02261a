package kstat

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// VMStat is /proc/vmstat: events since boot and gauges, by the kernel's name.
// Page counts are in base pages.
type VMStat map[string]uint64

// ParseVMStat reads /proc/vmstat.
func ParseVMStat(r io.Reader) (VMStat, error) {
	v := VMStat{}
	err := lines(r, func(_ int, line string) error {
		name, num, ok := strings.Cut(line, " ")
		if !ok {
			return fmt.Errorf("%q: want NAME NUMBER", line)
		}
		n, err := number(num)
		v[name] = n
		return err
	})
	return v, err
}

// ReadVMStat reads proc/vmstat of a tree.
func ReadVMStat(fsys fs.FS) (VMStat, error) { return read(fsys, "proc/vmstat", ParseVMStat) }

// Counter is the value of a counter that the model keeps too, and whether this
// kernel has it. Those that the kernel keeps by zone are summed.
func (v VMStat) Counter(c mm.Counter) (uint64, bool) {
	name := c.String()
	if n, ok := v[name]; ok {
		return n, true
	}
	if c != mm.PgAlloc && c != mm.AllocStall {
		return 0, false
	}
	var sum uint64
	found := false
	for k, n := range v {
		if strings.HasPrefix(k, name+"_") {
			sum, found = sum+n, true
		}
	}
	return sum, found
}
