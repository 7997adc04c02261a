package kernel

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Where the settings live.
const (
	thpDir    = "/sys/kernel/mm/transparent_hugepage"
	poolDir   = "/sys/kernel/mm/hugepages"
	nodeDir   = "/sys/devices/system/node"
	hvoFile   = "/proc/sys/vm/hugetlb_optimize_vmemmap"
	minFree   = "/proc/sys/vm/min_free_kbytes"
	poolPages = "nr_hugepages"
)

// Values are settings as the kernel's own files hold them: absolute path ->
// text, with the word in brackets alone of "always [madvise] never". A pool's
// nr_hugepages is without its surplus pages, which nobody asked for.
type Values map[string]string

// ReadValues reads every huge-page setting of the tree at root ("/" for the
// running kernel): all that may be written below transparent_hugepage, the
// hugetlb pools (by node where there are several), vmemmap optimisation, and
// vm.min_free_kbytes, which moves with them. A file that the kernel does not
// have has no entry.
func ReadValues(root string) (Values, error) {
	v := Values{}
	for _, file := range settingFiles(root) {
		text, err := readValue(root, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
		v[file] = text
	}
	if len(v) == 0 {
		return nil, fmt.Errorf("settings: %s: %w", thpDir, fs.ErrNotExist)
	}
	return v, nil
}

// settingFiles lists the files of all settings that the tree has.
func settingFiles(root string) []string {
	var files []string
	base := filepath.Join(root, thpDir)
	filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // not there is no setting
		case d.IsDir() && d.Name() == "stats":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o222 != 0 {
			files = append(files, thpDir+strings.TrimPrefix(p, base))
		}
		return nil
	})
	pools, _ := filepath.Glob(filepath.Join(root, poolDir, "hugepages-*kB"))
	byNode, _ := filepath.Glob(filepath.Join(root, nodeDir, "node*", "hugepages", "hugepages-*kB"))
	for _, dir := range pools {
		dir = path.Join(poolDir, filepath.Base(dir))
		if len(byNode) <= len(pools) { // one node: its pool is the machine's
			files = append(files, dir+"/"+poolPages)
		}
		files = append(files, dir+"/nr_overcommit_hugepages", dir+"/demote_size")
	}
	if len(byNode) > len(pools) {
		for _, dir := range byNode {
			rel, _ := filepath.Rel(root, dir)
			files = append(files, "/"+filepath.ToSlash(rel)+"/"+poolPages)
		}
	}
	return append(files, hvoFile, minFree)
}

// readValue reads one setting in its plain form.
func readValue(root, file string) (string, error) {
	f, err := os.Open(filepath.Join(root, file))
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, 4096)) // the kernel gives at most a page
	f.Close()
	if err != nil {
		return "", err
	}
	text := chosen(string(b))
	if path.Base(file) != poolPages {
		return text, nil
	}
	surplus, err := os.ReadFile(filepath.Join(root, path.Dir(file), "surplus_hugepages"))
	if err != nil {
		return text, nil
	}
	all, err1 := strconv.ParseUint(text, 10, 64)
	extra, err2 := strconv.ParseUint(strings.TrimSpace(string(surplus)), 10, 64)
	if err := errors.Join(err1, err2); err != nil || extra > all {
		return text, nil // they are read one after the other, and may disagree
	}
	return strconv.FormatUint(all-extra, 10), nil
}

// chosen is the word in brackets of "always [madvise] never", or the text
// itself when there are none.
func chosen(text string) string {
	if _, after, ok := strings.Cut(text, "["); ok {
		if in, _, ok := strings.Cut(after, "]"); ok {
			return in
		}
	}
	return strings.TrimSpace(text)
}

// writeValue writes one setting and reads it back: a pool may grow less far
// than was asked.
func writeValue(root, file, text string) error {
	f, err := os.OpenFile(filepath.Join(root, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("write %q: %w", text, err)
	}
	_, err = f.WriteString(text + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", text, err)
	}
	got, err := readValue(root, file)
	if err != nil {
		return err
	}
	if got != text {
		why := "the kernel took another value"
		if path.Base(file) == poolPages {
			why = "the kernel found too little free memory in one piece"
		}
		return fmt.Errorf("%s: asked for %s, got %s: %s", file, text, got, why)
	}
	return nil
}

// Change is one setting that differs.
type Change struct {
	File      string // absolute path
	From, To  string
	important int // its place in the order of writes
}

// String is the change as a line for people.
func (c Change) String() string { return fmt.Sprintf("%s: %s -> %s", c.File, c.From, c.To) }

// Changes lists what must be written to turn v into what want holds, in the
// order of writing. Settings that want does not name stay.
func (v Values) Changes(want Values) []Change {
	var all []Change
	for _, file := range slices.Sorted(maps.Keys(want)) {
		if from := v[file]; from != want[file] {
			all = append(all, Change{file, from, want[file], writeOrder(file, from, want[file])})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(a.important, b.important) })
	return all
}

// writeOrder ranks writes. Pools give memory back before others take it, and
// grow under the vmemmap setting that is to hold for their pages. A write to
// any enabled file recomputes min_free_kbytes, which therefore comes last. While
// shmem_enabled is force no size but the PMD's can inherit it.
// Linux: mm/khugepaged.c:start_stop_khugepaged, set_recommended_min_free_kbytes;
// mm/shmem.c:shmem_enabled_store, thpsize_shmem_enabled_store (v6.18).
func writeOrder(file, from, to string) int {
	switch base := path.Base(file); {
	case file == minFree:
		return 7
	case file == thpDir+"/enabled":
		return 6
	case file == thpDir+"/shmem_enabled" && from == "force":
		return 4
	case file == thpDir+"/shmem_enabled" && to == "force":
		return 6
	case strings.HasPrefix(file, thpDir+"/"):
		return 5
	case file == hvoFile:
		return 2
	case base == poolPages:
		a, _ := strconv.ParseUint(from, 10, 64)
		b, _ := strconv.ParseUint(to, 10, 64)
		if b < a {
			return 1
		}
		return 3
	}
	return 4
}

// reach writes until the tree holds want. It goes on past a write that fails:
// what can be put back is. The error names every file that was not.
func (want Values) reach(root string) error {
	var err error
	for range 3 { // a later write may move an earlier setting
		var now Values
		if now, err = ReadValues(root); err != nil {
			return err
		}
		err = nil
		changes := now.Changes(want)
		if len(changes) == 0 {
			return nil
		}
		for _, c := range changes {
			// An earlier write of this round may have moved it already.
			if got, rerr := readValue(root, c.File); rerr == nil && got == c.To {
				continue
			}
			if werr := writeValue(root, c.File, c.To); werr != nil {
				err = errors.Join(err, werr)
			}
		}
	}
	if err != nil {
		return err
	}
	now, err := ReadValues(root)
	if err != nil {
		return err
	}
	for _, c := range now.Changes(want) {
		err = errors.Join(err, fmt.Errorf("%s: is %s, was %s: something else writes it", c.File, c.From, c.To))
	}
	return err
}

// WriteText writes v as a settings file: '#' lines of a header, then one
// "path value" a line.
func (v Values) WriteText(w io.Writer, header ...string) error {
	b := bufio.NewWriter(w)
	for _, h := range header {
		fmt.Fprintf(b, "# %s\n", h)
	}
	for _, file := range slices.Sorted(maps.Keys(v)) {
		fmt.Fprintf(b, "%s %s\n", file, v[file])
	}
	return b.Flush()
}

// ParseValues reads what WriteText wrote. Paths are checked for being those of
// settings: whoever writes the file may not make root write elsewhere.
func ParseValues(text []byte) (v Values, header []string, err error) {
	v = Values{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		s := strings.TrimSpace(string(line))
		if h, ok := strings.CutPrefix(s, "#"); ok {
			header = append(header, strings.TrimSpace(h))
			continue
		}
		if s == "" {
			continue
		}
		file, value, ok := strings.Cut(s, " ")
		if !ok || !isSetting(file) || strings.ContainsAny(value, "\x00") {
			return nil, nil, fmt.Errorf(
				"settings file: line %d: %q: want the path of a huge-page setting and a value", n, s)
		}
		if _, twice := v[file]; twice {
			return nil, nil, fmt.Errorf("settings file: line %d: %s: given twice", n, file)
		}
		v[file] = strings.TrimSpace(value)
	}
	if len(v) == 0 {
		return nil, nil, errors.New("settings file: no setting in it")
	}
	return v, header, nil
}

// isSetting says whether a path has the form of a huge-page setting.
func isSetting(file string) bool {
	if path.Clean(file) != file || !path.IsAbs(file) {
		return false
	}
	for _, pattern := range []string{
		thpDir + "/*", thpDir + "/khugepaged/*", thpDir + "/hugepages-*kB/*",
		poolDir + "/hugepages-*kB/" + poolPages, poolDir + "/hugepages-*kB/nr_overcommit_hugepages",
		poolDir + "/hugepages-*kB/demote_size", nodeDir + "/node*/hugepages/hugepages-*kB/" + poolPages,
		hvoFile, minFree,
	} {
		if ok, _ := path.Match(pattern, file); ok {
			return true
		}
	}
	return false
}
