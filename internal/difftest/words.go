package difftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// This file holds the words of the text form and how they are read and written.

var prctlNames = [...]string{"off", "on", "except-advised"}

type namedAdvice struct {
	name   string
	advice mm.Advice
}

var adviceNames = []namedAdvice{
	{"huge", mm.AdviseHugePage}, {"nohuge", mm.AdviseNoHugePage}, {"dontneed", mm.AdviseDontNeed},
	{"dontneed-locked", mm.AdviseDontNeedLocked}, {"free", mm.AdviseFree}, {"collapse", mm.AdviseCollapse},
	{"populate-read", mm.AdvisePopulateRead}, {"populate-write", mm.AdvisePopulateWrite},
	{"cold", mm.AdviseCold}, {"pageout", mm.AdvisePageOut},
	{"guard-install", mm.AdviseGuardInstall}, {"guard-remove", mm.AdviseGuardRemove},
	{"dontfork", mm.AdviseDontFork}, {"dofork", mm.AdviseDoFork},
	{"wipeonfork", mm.AdviseWipeOnFork}, {"keeponfork", mm.AdviseKeepOnFork},
	{"dontdump", mm.AdviseDontDump}, {"dodump", mm.AdviseDoDump},
}

// aloneAdvice is what the model alone is asked for.
var aloneAdvice = []namedAdvice{
	{"normal", mm.AdviseNormal}, {"remove", mm.AdviseRemove}, {"mergeable", mm.AdviseMergeable},
	{"unmergeable", mm.AdviseUnmergeable},
}

func adviceName(a mm.Advice) string {
	for _, n := range slices.Concat(adviceNames, aloneAdvice) {
		if n.advice == a {
			return n.name
		}
	}
	return strconv.Itoa(int(a))
}

func adviceList() string {
	var all []string
	for _, n := range adviceNames {
		all = append(all, n.name)
	}
	return strings.Join(all, ", ")
}

func parseWord[T ~uint8](names []string, text string) (T, error) {
	for i, n := range names {
		if n == text {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%s: want one of %s", text, strings.Join(names, ", "))
}

// lockAllNames are the flags of mlockall, from bit 0.
var lockAllNames = [...]string{"current", "future", "onfault"}

func lockAllBit(text string) (uint8, error) {
	i, err := parseWord[uint8](lockAllNames[:], text)
	return 1 << i, err
}

// parseBrk reads a length, or a change of it: 1m, +1m, -64k.
func (s *Step) parseBrk(text string) (err error) {
	if t, ok := strings.CutPrefix(text, "+"); ok {
		s.Change, text = 1, t
	} else if t, ok := strings.CutPrefix(text, "-"); ok {
		s.Change, text = -1, t
	}
	s.Size, err = parseLen(text)
	return err
}

var protNames = [...]string{"none", "r", "w", "rw"}

func parseProt(text string) (mm.Access, error) {
	return parseWord[mm.Access](protNames[:], text)
}

// nameError refuses what is not a region's or a process's name: a small letter,
// then small letters and digits.
func nameError(name string) error {
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			return fmt.Errorf("%q: a name is small letters and digits, a letter first", name)
		}
	}
	if name == "" || len(name) > 16 {
		return fmt.Errorf("%q: a name has 1 to 16 letters", name)
	}
	return nil
}

// parseOffset reads a whole number of pages.
func parseOffset(text string) (mm.Bytes, error) {
	n, err := mm.ParseBytes(text)
	if err == nil && (n%pageSize != 0 || n > maxLen) {
		err = fmt.Errorf("%s: want whole pages, at most %s", text, sizeText(maxLen))
	}
	return n, err
}

func parseLen(text string) (mm.Bytes, error) {
	n, err := parseOffset(text)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: want more than nothing", text)
	}
	return n, err
}

// sizeText prints bytes as ParseBytes reads them, in the largest unit that
// leaves no fraction.
func sizeText(n mm.Bytes) string {
	switch {
	case n == 0:
		return "0"
	case n%(1<<20) == 0:
		return strconv.FormatUint(uint64(n>>20), 10) + "m"
	case n%1024 == 0:
		return strconv.FormatUint(uint64(n>>10), 10) + "k"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// parseArea reads REGION, REGION+FROM or REGION+FROM..TO.
func parseArea(text string) (a Area, err error) {
	name, rest, part := strings.Cut(text, "+")
	a.Region, a.Whole = name, !part
	if err := nameError(name); err != nil || !part {
		return a, err
	}
	from, to, isRange := strings.Cut(rest, "..")
	if a.From, err = parseOffset(from); err != nil {
		return a, err
	}
	if !isRange {
		a.Single, a.To = true, a.From+pageSize
		return a, nil
	}
	if a.To, err = parseOffset(to); err == nil && a.To <= a.From {
		err = fmt.Errorf("%s: an area ends behind its start", text)
	}
	return a, err
}

// String is the area as parseArea reads it.
func (a Area) String() string {
	switch {
	case a.Whole:
		return a.Region
	case a.Single:
		return a.Region + "+" + sizeText(a.From)
	}
	return a.Region + "+" + sizeText(a.From) + ".." + sizeText(a.To)
}

func (e *Expected) word(text string) error {
	switch text {
	case "absent":
		e.Absent = true
	case "pmd":
		e.PMD = 1
	case "pte":
		e.PMD = -1
	case "zero":
		e.Zero = true
	case "shared":
		e.Shared = true
	case "4k":
	case "8k": // shared memory alone has it
		e.Order = 1
	default:
		sizes, err := mm.SizesOf(pageSize)
		if err != nil {
			return err
		}
		if e.Order, err = sizes.Order(text); err != nil {
			return fmt.Errorf("%s: want absent, 4k, a huge page's size, pmd, pte, zero or shared", text)
		}
	}
	return nil
}

// String is the claim as a program writes it.
func (e Expected) String() string {
	if e.Absent {
		return "absent"
	}
	t := sizeText(pageSize << e.Order)
	switch e.PMD {
	case 1:
		t += " pmd"
	case -1:
		t += " pte"
	}
	if e.Zero {
		t += " zero"
	}
	if e.Shared {
		t += " shared"
	}
	return t
}

// parseErrno reads a refusal of the model's, or ok.
func parseErrno(text string) (mm.Errno, error) {
	for _, e := range []mm.Errno{mm.OK, mm.EPERM, mm.ESRCH, mm.EAGAIN, mm.ENOMEM, mm.EFAULT, mm.EBUSY, mm.EEXIST,
		mm.EINVAL, mm.ENOSYS} {
		if e.String() == text {
			return e, nil
		}
	}
	return 0, fmt.Errorf("%s: want ok or a refusal such as ENOMEM", text)
}
