package kstat

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Smap is one mapping of /proc/PID/smaps. Huge pages smaller than the PMD's
// size are not told apart there: AnonHugePages counts PMD-mapped memory only.
type Smap struct {
	Mapping
	Size, Rss, Pss                mm.Bytes
	Anonymous, AnonHugePages      mm.Bytes
	ShmemPmdMapped, FilePmdMapped mm.Bytes
	SharedHugetlb, PrivateHugetlb mm.Bytes
	KernelPageSize, MMUPageSize   mm.Bytes
	Swap, Locked, LazyFree        mm.Bytes
	THPEligible                   bool // some huge page size is allowed and fits
	THPEligibleKnown              bool
	Flags                         []string          // VmFlags: hg, nh, ht, gd, lo, ...
	Other                         map[string]uint64 // every other line; kB in bytes
}

// Flag says whether the mapping has a two-letter flag of VmFlags.
func (s *Smap) Flag(name string) bool {
	for _, f := range s.Flags {
		if f == name {
			return true
		}
	}
	return false
}

// ParseSmaps reads /proc/PID/smaps.
func ParseSmaps(r io.Reader) ([]Smap, error) {
	var all []Smap
	err := lines(r, func(_ int, line string) error {
		if m, ok := mapping(line); ok {
			all = append(all, Smap{Mapping: m})
			return nil
		}
		if len(all) == 0 {
			return fmt.Errorf("%q: want a mapping first", line)
		}
		return all[len(all)-1].line(line)
	})
	return all, err
}

// ParseSmapsRollup reads /proc/PID/smaps_rollup: the sums over all mappings.
func ParseSmapsRollup(r io.Reader) (Smap, error) {
	all, err := ParseSmaps(r)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d mappings: want the one of the sums", len(all))
	}
	if err != nil {
		return Smap{}, err
	}
	return all[0], nil
}

func (s *Smap) line(line string) error {
	name, rest, ok := strings.Cut(line, ":")
	if !ok {
		return fmt.Errorf("%q: want NAME: VALUE", line)
	}
	if name == "VmFlags" {
		s.Flags = strings.Fields(rest)
		return nil
	}
	v, _, err := kB(rest)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if p := s.field(name); p != nil {
		*p = mm.Bytes(v)
		return nil
	}
	if name == "THPeligible" {
		s.THPEligible, s.THPEligibleKnown = v != 0, true
		return nil
	}
	if s.Other == nil {
		s.Other = map[string]uint64{}
	}
	s.Other[name] = v
	return nil
}

// field is where a line of kB goes, nil for Other.
func (s *Smap) field(name string) *mm.Bytes {
	switch name {
	case "Size":
		return &s.Size
	case "Rss":
		return &s.Rss
	case "Pss":
		return &s.Pss
	case "Anonymous":
		return &s.Anonymous
	case "AnonHugePages":
		return &s.AnonHugePages
	case "ShmemPmdMapped":
		return &s.ShmemPmdMapped
	case "FilePmdMapped":
		return &s.FilePmdMapped
	case "Shared_Hugetlb":
		return &s.SharedHugetlb
	case "Private_Hugetlb":
		return &s.PrivateHugetlb
	case "KernelPageSize":
		return &s.KernelPageSize
	case "MMUPageSize":
		return &s.MMUPageSize
	case "Swap":
		return &s.Swap
	case "Locked":
		return &s.Locked
	case "LazyFree":
		return &s.LazyFree
	}
	return nil
}

// ReadSmaps reads the smaps of a process; pid 0 is the reader itself.
func ReadSmaps(fsys fs.FS, pid int) ([]Smap, error) {
	return read(fsys, procPath(pid, "smaps"), ParseSmaps)
}

// ReadSmapsRollup reads the smaps_rollup of a process.
func ReadSmapsRollup(fsys fs.FS, pid int) (Smap, error) {
	return read(fsys, procPath(pid, "smaps_rollup"), ParseSmapsRollup)
}
