package kstat

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End         mm.VA
	Read, Write, Exec  bool
	Shared             bool
	Offset             mm.Bytes // in the file
	DevMajor, DevMinor uint32
	Inode              uint64 // 0 for anonymous memory
	Name               string // path, "[heap]", "[anon:NAME]", "" for anonymous memory
}

// Len is the mapping's length.
func (m Mapping) Len() mm.Bytes { return mm.Bytes(m.End - m.Start) }

// Anonymous says whether no file is behind the mapping. Shared anonymous memory
// has a file (/dev/zero, memfd), so it is not.
func (m Mapping) Anonymous() bool { return m.Inode == 0 && m.DevMajor == 0 && m.DevMinor == 0 }

// ParseMaps reads /proc/PID/maps.
func ParseMaps(r io.Reader) ([]Mapping, error) {
	var all []Mapping
	err := lines(r, func(_ int, line string) error {
		m, ok := mapping(line)
		if !ok {
			return fmt.Errorf("%q: not a line of maps", line)
		}
		all = append(all, m)
		return nil
	})
	return all, err
}

// mapping reads a line of maps, or the head of a VMA in smaps.
func mapping(line string) (m Mapping, ok bool) {
	addrs, rest, _ := strings.Cut(line, " ")
	lo, hi, _ := strings.Cut(addrs, "-")
	perms, rest, _ := strings.Cut(rest, " ")
	offset, rest, _ := strings.Cut(rest, " ")
	dev, rest, _ := strings.Cut(rest, " ")
	inode, rest, ok := strings.Cut(rest, " ")
	start, err1 := strconv.ParseUint(lo, 16, 64)
	end, err2 := strconv.ParseUint(hi, 16, 64)
	off, err3 := strconv.ParseUint(offset, 16, 64)
	major, minor, _ := strings.Cut(dev, ":")
	maj, err4 := strconv.ParseUint(major, 16, 32)
	min, err5 := strconv.ParseUint(minor, 16, 32)
	ino, err6 := strconv.ParseUint(inode, 10, 64)
	for _, err := range []error{err1, err2, err3, err4, err5, err6} {
		if err != nil {
			return m, false
		}
	}
	if len(perms) != 4 || end < start || !ok && rest != "" {
		return m, false
	}
	return Mapping{
		Start: mm.VA(start), End: mm.VA(end),
		Read: perms[0] == 'r', Write: perms[1] == 'w', Exec: perms[2] == 'x', Shared: perms[3] == 's',
		Offset: mm.Bytes(off), DevMajor: uint32(maj), DevMinor: uint32(min), Inode: ino,
		Name: strings.TrimLeft(rest, " "),
	}, true
}

// ReadMaps reads the maps of a process; pid 0 is the reader itself.
func ReadMaps(fsys fs.FS, pid int) ([]Mapping, error) {
	return read(fsys, procPath(pid, "maps"), ParseMaps)
}

func procPath(pid int, file string) string {
	if pid == 0 {
		return "proc/self/" + file
	}
	return "proc/" + strconv.Itoa(pid) + "/" + file
}
