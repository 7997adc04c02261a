package procfs

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hugelab/hugelab/mm"
)

// FS is a machine's /proc and /sys, with paths such as "proc/vmstat" and
// "sys/kernel/mm/transparent_hugepage/enabled". A file shows the machine as it
// is when the file is opened. The machine must not run meanwhile.
func FS(m *mm.Machine) fs.FS { return newTree(func() *state { return stateOf(m) }) }

// tree is a file system of texts.
type tree struct {
	now   func() *state
	files map[string]func(*state) string
	dirs  map[string][]string // names in each directory, sorted
}

func newTree(now func() *state) *tree {
	t := &tree{now: now, files: now().files(), dirs: map[string][]string{".": nil}}
	for p := range t.files {
		for p != "." {
			dir, name := path.Dir(p), path.Base(p)
			if !slices.Contains(t.dirs[dir], name) {
				t.dirs[dir] = append(t.dirs[dir], name)
			}
			p = dir
		}
	}
	for _, names := range t.dirs {
		slices.Sort(names)
	}
	return t
}

// Open opens a file or a directory.
func (t *tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if text, ok := t.files[name]; ok {
		s := text(t.now())
		return &file{info{path.Base(name), int64(len(s)), false}, strings.NewReader(s)}, nil
	}
	if _, ok := t.dirs[name]; ok {
		return &dir{info: info{path.Base(name), 0, true}, left: t.entries(name)}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// entries lists a directory. As in /proc, sizes are not told before a file is
// opened.
func (t *tree) entries(name string) (list []fs.DirEntry) {
	for _, n := range t.dirs[name] {
		_, isDir := t.dirs[path.Join(name, n)]
		list = append(list, entry{t, path.Join(name, n), isDir})
	}
	return list
}

// file is an open file.
type file struct {
	info
	*strings.Reader
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }
func (f *file) Size() int64                { return f.info.size }

// dir is an open directory.
type dir struct {
	info
	left []fs.DirEntry
}

func (d *dir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *dir) Close() error               { return nil }
func (d *dir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

// ReadDir lists up to n entries, or all that are left if n <= 0.
func (d *dir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.left))
	list := d.left[:n]
	d.left = d.left[n:]
	return list, nil
}

// entry is one name in a directory.
type entry struct {
	t     *tree
	path  string
	isDir bool
}

func (e entry) Name() string { return path.Base(e.path) }
func (e entry) IsDir() bool  { return e.isDir }
func (e entry) Type() fs.FileMode {
	return info{isDir: e.isDir}.Mode().Type()
}
func (e entry) Info() (fs.FileInfo, error) { return fs.Stat(e.t, e.path) }

// info describes a file or a directory. Nothing here has a time.
type info struct {
	name  string
	size  int64
	isDir bool
}

func (i info) Name() string { return i.name }
func (i info) Size() int64  { return i.size }
func (i info) Mode() fs.FileMode {
	if i.isDir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.isDir }
func (i info) Sys() any           { return nil }
