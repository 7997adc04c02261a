package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// Usemem is vm-scalability's program of that name: processes that map memory
// and write (or read) a word at every step of it.
type Usemem struct {
	Processes int    // -n
	Bytes     uint64 // of each process
	Unit      uint64 // -u: mapped at once; 0: all
	Step      uint64 // -j: bytes from one access to the next
	Repeat    int    // -r: passes
	Seconds   int    // -T, --runtime; 0: until done

	ReadOnly  bool // -o
	Random    bool // -R
	Reverse   bool // --reverse: from the end to the begin; the original has no such option
	Anonymous bool // -O: else a private mapping of /dev/zero, which is anonymous memory too
	Hugetlb   bool // -U: of 2 MB pages, by surplus
	Prealloc  bool // -P: mapped before the fork, so that processes copy on write
	Populate  bool // -F: mapped with all its pages
}

// Word is the size of what Usemem writes.
const Word = 8

// ParseUsemem reads a command line of the original, without the program's name.
// Options that have no part in the model are errors.
func ParseUsemem(args []string) (Usemem, error) {
	u := Usemem{Processes: 1, Step: Word, Repeat: 1}
	flags := map[string]*bool{
		"-o": &u.ReadOnly, "--readonly": &u.ReadOnly, "-R": &u.Random, "--random": &u.Random,
		"--reverse": &u.Reverse, "-O": &u.Anonymous, "--anonymous": &u.Anonymous,
		"-U": &u.Hugetlb, "--hugetlb": &u.Hugetlb, "-P": &u.Prealloc, "--prealloc": &u.Prealloc,
		"-F": &u.Populate, "--prefault": &u.Populate,
	}
	sizes := map[string]*uint64{"-u": &u.Unit, "--unit": &u.Unit, "-j": &u.Step, "--step": &u.Step}
	counts := map[string]*int{
		"-n": &u.Processes, "--nproc": &u.Processes, "-r": &u.Repeat, "--repeat": &u.Repeat,
		"-T": &u.Seconds, "--runtime": &u.Seconds,
	}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") {
			var err error
			if u.Bytes, err = memparse(name); err != nil {
				return u, fmt.Errorf("usemem: %w", err)
			}
			continue
		}
		if f := flags[name]; f != nil && !joined {
			*f = true
			continue
		}
		if sizes[name] == nil && counts[name] == nil {
			return u, fmt.Errorf("usemem: %s: the model has no such option", name)
		}
		if !joined {
			if i++; i == len(args) {
				return u, fmt.Errorf("usemem: %s wants a value", name)
			}
			value = args[i]
		}
		n, err := memparse(value)
		if err != nil || counts[name] != nil && n > 1<<20 {
			return u, fmt.Errorf("usemem: %s: %q is not a number that it takes", name, value)
		}
		if s := sizes[name]; s != nil {
			*s = n
		} else {
			*counts[name] = int(n)
		}
	}
	return u, u.check()
}

func (u *Usemem) check() error {
	switch {
	case u.Bytes < Word:
		return fmt.Errorf("usemem: %d bytes: want a size of at least a word", u.Bytes)
	case u.Processes < 1 || u.Repeat < 1:
		return fmt.Errorf("usemem: %d processes, %d passes: want one at least", u.Processes, u.Repeat)
	case u.Random && u.Reverse:
		return fmt.Errorf("usemem: --random and --reverse: want one of them")
	}
	u.Step = max(u.Step&^(Word-1), Word)
	return nil
}

// memparse reads a size with k, m, g or t for 1024s, as the original does.
func memparse(s string) (uint64, error) {
	shift := 0
	if n := len(s); n > 1 {
		if i := strings.IndexByte("kmgt", s[n-1]|0x20); i >= 0 {
			shift, s = 10*(i+1), s[:n-1]
		}
	}
	x, err := strconv.ParseUint(s, 0, 64)
	if err != nil || x<<shift>>shift != x {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return x << shift, nil
}

// Credit is the bytes that the original reports for a process that mapped so
// many and did so many accesses: an eighth of the mapping, and a word an access.
// Of a sequential run at steps of a word it is 12.5 % too much.
func (u *Usemem) Credit(mapped, accesses uint64) uint64 { return mapped/Word + Word*accesses }

// Instructions that one turn of the original's loop has: the step, the bound,
// the tests of the options and of the time, and the access. Counted in what gcc
// -O, the suite's own flag, makes of such a loop.
const UsememInstructions = 20
