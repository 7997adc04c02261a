package kstat

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// MemInfo is /proc/meminfo by the kernel's name: what has the unit kB in bytes,
// the rest (HugePages_Total and its like) as counts.
type MemInfo struct {
	Bytes map[string]mm.Bytes
	Count map[string]uint64
}

// ParseMemInfo reads /proc/meminfo.
func ParseMemInfo(r io.Reader) (MemInfo, error) {
	m := MemInfo{map[string]mm.Bytes{}, map[string]uint64{}}
	err := lines(r, func(_ int, line string) error {
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("%q: want NAME: NUMBER", line)
		}
		v, bytes, err := kB(rest)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if bytes {
			m.Bytes[name] = mm.Bytes(v)
		} else {
			m.Count[name] = v
		}
		return nil
	})
	return m, err
}

// ReadMemInfo reads proc/meminfo of a tree.
func ReadMemInfo(fsys fs.FS) (MemInfo, error) { return read(fsys, "proc/meminfo", ParseMemInfo) }

// Total is the memory the kernel manages, 0 where the file did not say.
func (m MemInfo) Total() mm.Bytes { return m.Bytes["MemTotal"] }
