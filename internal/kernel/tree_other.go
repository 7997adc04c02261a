//go:build !linux

package kernel

import (
	"io/fs"
	"time"

	"github.com/hugelab/hugelab/internal/kstat"
)

// LiveTree is a tree with nothing in it: this system has no /proc and /sys of
// Linux. Whatever is read from it is missing, which means not known.
func LiveTree() kstat.Tree { return kstat.Tree{FS: nothing{}, When: time.Now()} }

type nothing struct{}

func (nothing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
