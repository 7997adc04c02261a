package kstat

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// thpDir is where transparent huge pages are set.
const thpDir = "sys/kernel/mm/transparent_hugepage"

// ReadTHPSettings reads every setting below transparent_hugepage, by its path
// there, as the kernel shows it: the form that mm.ParsePolicy and a recording's
// header take. Statistics are left out, and so is what cannot be read.
func ReadTHPSettings(fsys fs.FS) (map[string]string, error) {
	if _, err := fs.Stat(fsys, thpDir); err != nil {
		return nil, err
	}
	files := map[string]string{}
	err := fs.WalkDir(fsys, thpDir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // unreadable is not known
		case d.IsDir() && d.Name() == "stats":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if text, err := readText(fsys, p); err == nil {
			files[strings.TrimPrefix(p, thpDir+"/")] = text
		}
		return nil
	})
	return files, err
}

// ReadPolicy reads the settings of transparent huge pages as a policy.
func ReadPolicy(fsys fs.FS, s mm.Sizes) (mm.Policy, error) {
	files, err := ReadTHPSettings(fsys)
	if err != nil {
		return mm.Policy{}, err
	}
	return mm.ParsePolicy(files, s)
}

// ReadPMDSize is the size of a huge page that one PMD entry maps.
func ReadPMDSize(fsys fs.FS) (mm.Bytes, error) {
	v, err := readNumber(fsys, thpDir+"/hpage_pmd_size")
	return mm.Bytes(v), err
}

// SizeStats are the files of hugepages-<k>kB/stats by size and name. They count
// since boot, for the whole machine; nr_* are gauges and may be briefly
// negative.
type SizeStats map[mm.Bytes]map[string]int64

// ReadSizeStats reads the statistics of every size; there are none before
// Linux 6.10, which is fs.ErrNotExist.
func ReadSizeStats(fsys fs.FS) (SizeStats, error) {
	dirs, err := fs.ReadDir(fsys, thpDir)
	if err != nil {
		return nil, err
	}
	stats := SizeStats{}
	for _, d := range dirs {
		size, ok := sizeOfDir(d.Name())
		if !ok {
			continue
		}
		files, err := fs.ReadDir(fsys, path.Join(thpDir, d.Name(), "stats"))
		if err != nil {
			continue
		}
		stats[size] = map[string]int64{}
		for _, f := range files {
			text, err := readText(fsys, path.Join(thpDir, d.Name(), "stats", f.Name()))
			if err != nil {
				continue
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s/stats/%s: %q: want a number", d.Name(), f.Name(), text)
			}
			stats[size][f.Name()] = n
		}
	}
	if len(stats) == 0 {
		return nil, fmt.Errorf("%s/hugepages-*/stats: %w", thpDir, fs.ErrNotExist)
	}
	return stats, nil
}

// sizeOfDir reads "hugepages-64kB".
func sizeOfDir(name string) (mm.Bytes, bool) {
	num, ok := strings.CutPrefix(name, "hugepages-")
	num, ok2 := strings.CutSuffix(num, "kB")
	if !ok || !ok2 {
		return 0, false
	}
	n, err := strconv.ParseUint(num, 10, 44)
	return mm.Bytes(n << 10), err == nil && n > 0
}

// Missing says whether err means that the kernel has no such file, as against
// one that it has and refused.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
