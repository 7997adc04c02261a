package kernel

import (
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// Facts are what a prediction needs to know of a machine. A zero value means
// not known.
type Facts struct {
	Release  string   // uname -r
	Arch     string   // as Go names it
	PageSize mm.Bytes // base page
	Sizes    mm.Sizes // of huge pages
	CPUs     int
	MemTotal mm.Bytes
	Limit    kstat.MemoryLimit // of this process's memory cgroup
}

// LiveFacts reads the facts of the running machine.
func LiveFacts() Facts {
	f := ReadFacts(LiveTree().FS)
	f.Arch, f.CPUs = runtime.GOARCH, runtime.NumCPU()
	f.PageSize = mm.Bytes(os.Getpagesize())
	if s, err := mm.SizesOf(f.PageSize); err == nil {
		f.Sizes = s
	}
	return f
}

// ReadFacts reads what a tree tells of its machine. The base page follows from
// the PMD's size, which each base page has its own of.
func ReadFacts(fsys fs.FS) Facts {
	var f Facts
	if b, err := fs.ReadFile(fsys, "proc/sys/kernel/osrelease"); err == nil {
		f.Release = strings.TrimSpace(string(b))
	}
	if m, err := kstat.ReadMemInfo(fsys); err == nil {
		f.MemTotal = m.Total()
	}
	if l, err := kstat.ReadMemoryLimit(fsys, 0); err == nil {
		f.Limit = l
	}
	pmd, err := kstat.ReadPMDSize(fsys)
	if err != nil {
		return f
	}
	for _, base := range []mm.Bytes{4 << 10, 16 << 10, 64 << 10} {
		if s, err := mm.SizesOf(base); err == nil && s.Bytes(s.PMD) == pmd {
			f.PageSize, f.Sizes = base, s
		}
	}
	return f
}
