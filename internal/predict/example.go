package predict

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// The example is the recording of a real compile, made by
// scripts/make-example.sh. Replacing the file replaces the example.
//
//go:embed example
var exampleFiles embed.FS

const exampleName = "example/compile.hlr"

// ErrNoExample says that this build was made without the example.
var ErrNoExample = errors.New("example: this build has no recording of its own; record one with hugelab record")

// OpenExample opens the recording that comes with the program.
func OpenExample() (io.ReadCloser, error) {
	f, err := exampleFiles.Open(exampleName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoExample
	case err != nil:
		return nil, fmt.Errorf("example: %w", err)
	}
	return f, nil
}
