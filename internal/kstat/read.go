package kstat

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// maxLine is the longest line that is read; /proc/PID/maps has the longest, a
// path of at most 4096 bytes that escapes make four times as long.
const maxLine = 1 << 16

// lines calls f with each line of r, numbered from 1, without its newline.
func lines(r io.Reader, f func(n int, line string) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	n := 0
	for sc.Scan() {
		n++
		if err := f(n, sc.Text()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

// read parses one file of a tree; errors name the file as the kernel does.
func read[T any](fsys fs.FS, path string, parse func(io.Reader) (T, error)) (T, error) {
	f, err := fsys.Open(path)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	v, err := parse(f)
	if err != nil {
		return v, fmt.Errorf("/%s: %w", path, err)
	}
	return v, nil
}

// readText is a whole file without the white space around it.
func readText(fsys fs.FS, path string) (string, error) {
	b, err := fs.ReadFile(fsys, path)
	return strings.TrimSpace(string(b)), err
}

// readNumber is a file that holds one number.
func readNumber(fsys fs.FS, path string) (uint64, error) {
	text, err := readText(fsys, path)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s: %q: want a number", path, text)
	}
	return v, nil
}

// kB reads "123 kB" as bytes, and "123" as it stands.
func kB(text string) (value uint64, bytes bool, err error) {
	text = strings.TrimSpace(text)
	num, ok := strings.CutSuffix(text, " kB")
	v, err := strconv.ParseUint(strings.TrimSpace(num), 10, 64)
	if err != nil || ok && v > 1<<54-1 {
		return 0, ok, fmt.Errorf("%q: want a number, or one of kB", text)
	}
	if ok {
		v <<= 10
	}
	return v, ok, nil
}

// number reads a decimal number.
func number(text string) (uint64, error) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: want a number", text)
	}
	return v, nil
}

// nodeZone reads "Node 0, zone   Normal" and returns what follows.
func nodeZone(line string) (node mm.NodeID, zone, rest string, ok bool) {
	rest, ok = strings.CutPrefix(line, "Node")
	if !ok {
		return 0, "", "", false
	}
	num, rest, ok := strings.Cut(rest, ", zone")
	if !ok {
		return 0, "", "", false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(num), 10, 8)
	if err != nil {
		return 0, "", "", false
	}
	rest = strings.TrimLeft(rest, " ")
	end := strings.IndexAny(rest, ", ")
	if end < 0 {
		end = len(rest)
	}
	return mm.NodeID(n), rest[:end], rest[end:], end > 0
}

// numbers reads numbers between spaces.
func numbers(text string) ([]uint64, error) {
	var all []uint64
	for f := range strings.FieldsSeq(text) {
		v, err := number(f)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
