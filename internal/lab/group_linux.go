package lab

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

/*
group is a memory cgroup made for one run, so that memory is counted once,
whoever shares it, and as long as a folio is held, mapped or not: as the model
counts it.

The kernel keeps the highest charge of all memory. What of it was not anonymous
is looked at every sample; the sample with the highest charge says how much that
was at the peak:

	peak = highest charge - (kernel memory + page cache at the highest sample)

Charges are made in batches of up to 64 pages a processor: the peak is that much
too high at most. Linux: mm/memcontrol.c:try_charge_memcg, refill_stock (v6.18).
*/
type group struct {
	dir     string
	version int
	top     mm.Bytes // the highest charge of a sample
	beside  mm.Bytes // what was not anonymous then
	sampled mm.Bytes // the highest anonymous memory of a sample
}

var groupSerial atomic.Uint64

// newGroup makes a cgroup beside or below that of this process; an error says
// why there can be none.
func newGroup(mount string) (*group, error) {
	parent, version, err := groupParent(mount)
	if err != nil {
		return nil, fmt.Errorf("memory cgroup: %w", err)
	}
	g := &group{version: version,
		dir: filepath.Join(parent, fmt.Sprintf("hugelab-%d-%d", os.Getpid(), groupSerial.Add(1)))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("memory cgroup: %w", err)
	}
	_, err = g.highest()
	if err == nil {
		_, _, err = g.now()
	}
	if err != nil {
		g.remove()
		return nil, fmt.Errorf("memory cgroup: %w", err)
	}
	return g, nil
}

// groupParent finds where a cgroup for memory can be made. With version 2 that
// is beside our own: a cgroup with processes in it hands no controller down.
func groupParent(mount string) (dir string, version int, err error) {
	f, err := kernel.LiveTree().FS.Open("proc/self/cgroup")
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	groups, err := kstat.ParseCgroup(f)
	if err != nil {
		return "", 0, err
	}
	for _, c := range groups {
		for _, name := range c.Controllers {
			if name == "memory" {
				return filepath.Join(mount, "memory", c.Path), 1, nil
			}
		}
	}
	for _, c := range groups {
		if c.Hierarchy != 0 {
			continue
		}
		dir := filepath.Join(mount, path.Dir(path.Clean("/"+c.Path)))
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return "", 0, err
		}
		if strings.Contains(" "+strings.TrimSpace(string(text))+" ", " memory ") {
			return dir, 2, nil
		}
	}
	return "", 0, errors.New("this machine controls no memory by cgroups")
}

// add puts a process in.
func (g *group) add(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// remove takes the cgroup away; page cache that it was charged for goes to its
// parent.
func (g *group) remove() { os.Remove(g.dir) }

func (g *group) number(file string) (mm.Bytes, error) {
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return mm.Bytes(n), err
}

// highest is the highest charge so far.
func (g *group) highest() (mm.Bytes, error) {
	if g.version == 1 {
		return g.number("memory.max_usage_in_bytes")
	}
	return g.number("memory.peak")
}

// now is what is charged, and what of it is not anonymous.
func (g *group) now() (all, beside mm.Bytes, err error) {
	stat, err := os.ReadFile(filepath.Join(g.dir, "memory.stat"))
	if err != nil {
		return 0, 0, err
	}
	if g.version == 1 {
		all, err = g.number("memory.usage_in_bytes")
		kernel, kerr := g.number("memory.kmem.usage_in_bytes")
		return all, statField(stat, "cache") + kernel, errors.Join(err, kerr)
	}
	all, err = g.number("memory.current")
	return all, statField(stat, "file") + statField(stat, "kernel"), err
}

// sample looks once.
func (g *group) sample() {
	all, beside, err := g.now()
	if err != nil {
		return
	}
	g.sampled = max(g.sampled, all-min(all, beside))
	if all > g.top {
		g.top, g.beside = all, beside
	}
}

// peak is the anonymous memory at most.
func (g *group) peak() (mm.Bytes, error) {
	most, err := g.highest()
	if err != nil {
		return 0, fmt.Errorf("verify: memory cgroup: %w", err)
	}
	return max(g.sampled, most-min(most, g.beside)), nil
}

// statField is a line of memory.stat, 0 where there is none.
func statField(stat []byte, name string) mm.Bytes {
	for line := range strings.Lines(string(stat)) {
		if key, rest, _ := strings.Cut(line, " "); key == name {
			n, _ := strconv.ParseUint(strings.TrimSpace(rest), 10, 64)
			return mm.Bytes(n)
		}
	}
	return 0
}
