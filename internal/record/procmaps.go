package record

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// settleMaps is what stands after the mappings of list were made one after the
// other, each replacing what lay below it. Sorted by address.
func settleMaps(list []mmap2) []mmap2 {
	var out []mmap2
	for _, m := range list {
		if m.start >= m.end {
			continue
		}
		kept := out[:0:0]
		for _, o := range out {
			switch {
			case m.name == "[stack]" && o.name == "[stack]":
				continue // the stack moves and grows while it is set up
			case o.end <= m.start || o.start >= m.end:
				kept = append(kept, o)
				continue
			}
			if o.start < m.start {
				left := o
				left.end = m.start
				kept = append(kept, left)
			}
			if o.end > m.end {
				right := o
				right.start = m.end
				right.offset += m.end - o.start
				kept = append(kept, right)
			}
		}
		out = append(kept, m)
	}
	slices.SortFunc(out, func(a, b mmap2) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	return out
}

// parseProcMaps reads /proc/PID/maps text.
func parseProcMaps(text []byte) ([]mmap2, error) {
	var out []mmap2
	for line := range bytes.Lines(text) {
		m, err := parseMapsLine(strings.TrimRight(string(line), "\n"))
		if err != nil {
			return out, err
		}
		out = append(out, m)
	}
	return out, nil
}

var errMapsLine = errors.New("not start-end perms offset dev inode")

// parseMapsLine reads "7ffd0-7ffd2 rw-p 00000000 00:00 0    [stack]".
func parseMapsLine(line string) (m mmap2, err error) {
	rest := line
	next := func() string {
		rest = strings.TrimLeft(rest, " ")
		var w string
		w, rest, _ = strings.Cut(rest, " ")
		return w
	}
	hex := func(s string, bits int) uint64 {
		n, e := strconv.ParseUint(s, 16, bits)
		if e != nil && err == nil {
			err = fmt.Errorf("maps: %q: %w", line, errMapsLine)
		}
		return n
	}
	from, to, _ := strings.Cut(next(), "-")
	m.start, m.end = hex(from, 64), hex(to, 64)
	perms := next()
	if len(perms) < 4 || m.end < m.start {
		return m, fmt.Errorf("maps: %q: %w", line, errMapsLine)
	}
	for i, bit := range []uint32{1, 2, 4} {
		if perms[i] != '-' {
			m.prot |= bit
		}
	}
	m.flags = 2 // MAP_PRIVATE
	if perms[3] == 's' {
		m.flags = 1 // MAP_SHARED
	}
	m.offset = hex(next(), 64)
	maj, minor, _ := strings.Cut(next(), ":")
	a, b := hex(maj, 32), hex(minor, 32)
	ino, e := strconv.ParseUint(next(), 10, 64)
	if e != nil && err == nil {
		err = fmt.Errorf("maps: %q: %w", line, errMapsLine)
	}
	m.ident = fileIdent(uint32(a), uint32(b), ino)
	m.name = strings.TrimLeft(rest, " ")
	if m.name == "[stack]" {
		m.flags |= 0x100 // MAP_GROWSDOWN
	}
	return m, err
}
