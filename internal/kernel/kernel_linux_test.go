package kernel

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// TestLiveTree reads every file of the running kernel that kstat knows. A
// file that is missing or refused is not known; one that is there must parse.
func TestLiveTree(t *testing.T) {
	tree := LiveTree().FS
	facts := LiveFacts()
	for name, read := range map[string]func() error{
		"vmstat":       func() error { _, err := kstat.ReadVMStat(tree); return err },
		"meminfo":      func() error { _, err := kstat.ReadMemInfo(tree); return err },
		"buddyinfo":    func() error { _, err := kstat.ReadFreeState(tree); return err },
		"pagetypeinfo": func() error { _, err := kstat.ReadPageTypeInfo(tree); return err },
		"zoneinfo":     func() error { _, err := kstat.ReadZoneInfo(tree); return err },
		"maps":         func() error { _, err := kstat.ReadMaps(tree, 0); return err },
		"smaps":        func() error { _, err := kstat.ReadSmaps(tree, 0); return err },
		"smaps_rollup": func() error { _, err := kstat.ReadSmapsRollup(tree, 0); return err },
		"status":       func() error { _, err := kstat.ReadStatus(tree, 0); return err },
		"cgroup":       func() error { _, err := kstat.ReadMemoryLimit(tree, 0); return err },
		"policy":       func() error { _, err := kstat.ReadPolicy(tree, facts.Sizes); return err },
		"size stats":   func() error { _, err := kstat.ReadSizeStats(tree); return err },
		"pools":        func() error { _, err := kstat.ReadPools(tree); return err },
	} {
		switch err := read(); {
		case err == nil:
		case unreadable(err):
			t.Logf("%s: not known here: %v", name, err)
		default:
			t.Errorf("%s: %v", name, err)
		}
	}
	if facts.Release == "" || facts.MemTotal == 0 || facts.PageSize == 0 || facts.CPUs == 0 {
		t.Errorf("facts %+v", facts)
	}
	if _, err := mm.RulesFor(facts.Release); err != nil {
		t.Errorf("rules of this kernel: %v", err)
	}
}

func TestReadFactsOfSavedTree(t *testing.T) {
	f := ReadFacts(fstest.MapFS{
		"proc/sys/kernel/osrelease":                         {Data: []byte("6.12.30-cloud\n")},
		"sys/kernel/mm/transparent_hugepage/hpage_pmd_size": {Data: []byte("536870912\n")},
		"proc/meminfo": {Data: []byte("MemTotal: 1024 kB\n")},
	})
	if f.Release != "6.12.30-cloud" || f.PageSize != 64<<10 || f.Sizes.PMD != 13 || f.MemTotal != 1<<20 {
		t.Errorf("%+v", f)
	}
}

func unreadable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}
