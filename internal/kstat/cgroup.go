package kstat

import (
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Cgroup is one line of /proc/PID/cgroup.
type Cgroup struct {
	Hierarchy   int // 0 for version 2
	Controllers []string
	Path        string
}

// ParseCgroup reads /proc/PID/cgroup.
func ParseCgroup(r io.Reader) ([]Cgroup, error) {
	var all []Cgroup
	err := lines(r, func(_ int, line string) error {
		id, rest, _ := strings.Cut(line, ":")
		controllers, p, ok := strings.Cut(rest, ":")
		n, err := number(id)
		if err != nil || !ok || n > 1<<20 {
			return nil // a line that names no cgroup
		}
		c := Cgroup{Hierarchy: int(n), Path: p}
		if controllers != "" {
			c.Controllers = strings.Split(controllers, ",")
		}
		all = append(all, c)
		return nil
	})
	return all, err
}

// MemoryLimit is what a memory cgroup allows a process.
type MemoryLimit struct {
	Limit   mm.Bytes // 0 for none
	Version int      // of the cgroup interface, 1 or 2; 0 where there is no memory cgroup
	Path    string   // of the cgroup that sets the limit, below the mount
}

// unlimited is where version 1 starts to mean no limit: it prints the largest
// counter in pages times the page size.
const unlimited = 1 << 62

// ReadMemoryLimit finds the lowest limit on the way from the process's memory
// cgroup to the root; pid 0 is the reader itself.
func ReadMemoryLimit(fsys fs.FS, pid int) (MemoryLimit, error) {
	groups, err := read(fsys, procPath(pid, "cgroup"), ParseCgroup)
	if err != nil {
		return MemoryLimit{}, err
	}
	for _, g := range groups {
		for _, c := range g.Controllers {
			if c == "memory" {
				l := lowest(fsys, "sys/fs/cgroup/memory", g.Path, "memory.limit_in_bytes")
				l.Version = 1
				return l, nil
			}
		}
	}
	for _, g := range groups {
		if g.Hierarchy == 0 && hasMemory(fsys) {
			l := lowest(fsys, "sys/fs/cgroup", g.Path, "memory.max")
			l.Version = 2
			return l, nil
		}
	}
	return MemoryLimit{}, nil
}

// hasMemory says whether version 2 controls memory on this machine.
func hasMemory(fsys fs.FS) bool {
	text, err := readText(fsys, "sys/fs/cgroup/cgroup.controllers")
	return err == nil && strings.Contains(" "+text+" ", " memory ")
}

// lowest looks at file from dir/group up to dir. In a container the group's
// path may name what is not mounted; the levels that are missing set nothing.
func lowest(fsys fs.FS, dir, group, file string) MemoryLimit {
	var l MemoryLimit
	for g := path.Clean("/" + group); ; g = path.Dir(g) {
		text, err := readText(fsys, path.Join(dir, g, file))
		v, perr := strconv.ParseUint(text, 10, 64) // "max" is no number and no limit
		if err == nil && perr == nil && v < unlimited && (l.Limit == 0 || mm.Bytes(v) < l.Limit) {
			l.Limit, l.Path = mm.Bytes(v), g
		}
		if g == "/" {
			return l
		}
	}
}
