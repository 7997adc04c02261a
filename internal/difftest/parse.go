package difftest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Parse reads the text form of a program (docs/programs.md).
func Parse(name string, r io.Reader) (*Program, error) {
	p := &Program{Name: name}
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		w := strings.Fields(text)
		if len(w) == 0 {
			continue
		}
		if err := p.line(w, line); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", name, line, strings.Join(w, " "), err)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (p *Program) line(w []string, line int) error {
	if w[0] == "policy" {
		if len(p.Steps) > 0 || p.Policy != "" {
			return fmt.Errorf("a program has one policy, before its first step")
		}
		p.Policy = strings.Join(w[1:], " ")
		_, err := policyOf(p.Policy)
		return err
	}
	if w[0] == "machine" {
		if len(p.Steps) > 0 || p.Machine != "" {
			return fmt.Errorf("a program has one machine, before its first step")
		}
		p.Machine = strings.Join(w[1:], " ")
		_, err := parseMachine(p.Machine, mm.Rules{})
		return err
	}
	if len(p.Steps) >= maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	s := Step{Line: line}
	for v := VerbMap; v < numVerbs; v++ {
		if verbNames[v] == w[0] {
			s.Verb = v
		}
	}
	if s.Verb == 0 {
		return fmt.Errorf("want policy, %s", strings.Join(verbNames[1:], ", "))
	}
	if err := s.words(w[1:]); err != nil {
		return err
	}
	p.Steps = append(p.Steps, s)
	return nil
}

// maxSteps bounds a program: its text may come from anywhere.
const maxSteps = 10000

// wholePass is more pages than programs have: one pass of khugepaged is a full
// scan, unless a policy says otherwise.
const wholePass = 1 << 24

// policyOf applies a program's policy line to never.
func policyOf(spec string) (mm.Policy, error) {
	sizes, err := mm.SizesOf(pageSize)
	p := mm.NeverPolicy(sizes)
	p.Khugepaged.PagesToScan = wholePass
	p.ShmemSize = [mm.NumOrders]mm.ShmemMode{}
	if err != nil || spec == "" {
		return p, err
	}
	p, err = mm.ParsePolicySpec(p, spec, sizes)
	if err == nil && p.Advise != (mm.AdviseRule{}) {
		err = fmt.Errorf("policy: advise: no kernel has it: advise in the program")
	}
	return p, err
}

// words reads what follows the verb.
func (s *Step) words(w []string) error {
	need := 1
	switch s.Verb {
	case VerbExit, VerbDropCaches, VerbUnlockAll, VerbKhugepaged, VerbExec:
		need = 0
	case VerbMap, VerbTouch, VerbAdvise, VerbProtect, VerbPrctl, VerbExpect, VerbPool, VerbOvercommit,
		VerbExpectPool, VerbPin, VerbUserfault, VerbResident:
		need = 2
	}
	if len(w) < need {
		return fmt.Errorf("%s needs %d words", s.Verb, need)
	}
	rest, err := s.first(w, need)
	if err != nil {
		return err
	}
	for _, opt := range rest {
		if err := s.option(opt); err != nil {
			return err
		}
	}
	return s.mapWords()
}

// first reads the words that must be there, and returns the others.
func (s *Step) first(w []string, need int) (rest []string, err error) {
	rest = w[need:]
	switch s.Verb {
	case VerbExit, VerbDropCaches, VerbUnlockAll, VerbKhugepaged, VerbExec:
		return rest, nil
	case VerbDemote:
		return nil, s.poolWords([]string{"2m", w[0]})
	case VerbLockAll:
		for _, t := range w {
			b, err := lockAllBit(t)
			if err != nil {
				return nil, err
			}
			s.How |= b
		}
		return nil, nil
	case VerbFork, VerbIn:
		s.Name = w[0]
		return rest, nameError(s.Name)
	case VerbResult:
		if w[0] == "sigbus" {
			s.Bus = 1
			return rest, nil
		}
		s.Errno, err = parseErrno(w[0])
		return rest, err
	case VerbPool, VerbOvercommit, VerbExpectPool:
		return nil, s.poolWords(w)
	case VerbBrk:
		return rest, s.parseBrk(w[0])
	case VerbPrctl:
		if w[0] != "thp-disable" {
			return rest, fmt.Errorf("%s: want thp-disable", w[0])
		}
		s.Prctl, err = parseWord[uint8](prctlNames[:], w[1])
		return rest, err
	case VerbMap:
		s.Area.Region, s.Access = w[0], mm.Read|mm.Write
		if err := nameError(w[0]); err != nil {
			return rest, err
		}
		s.Area.To, err = parseLen(w[1])
		return rest, err
	}
	if s.Area, err = parseArea(w[0]); err != nil || need < 2 {
		return rest, err
	}
	switch s.Verb {
	case VerbUserfault, VerbResident:
		return rest, s.aloneWord(w[1])
	case VerbTouch, VerbPin:
		switch w[1] {
		case "r":
			s.Access = mm.Read
		case "w":
			s.Access = mm.Write
		default:
			err = fmt.Errorf("%s: want r or w", w[1])
		}
	case VerbAdvise:
		for _, a := range slices.Concat(adviceNames, aloneAdvice) {
			if a.name == w[1] {
				s.Advice = a.advice
				return rest, nil
			}
		}
		err = fmt.Errorf("%s: want one of %s", w[1], adviceList())
	case VerbProtect:
		s.Access, err = parseProt(w[1])
	case VerbExpect:
		rest = nil
		for _, t := range w[1:] {
			if err := s.Expect.word(t); err != nil {
				return nil, err
			}
		}
	}
	return rest, err
}

// option reads one of the words that may follow, in any order.
func (s *Step) option(text string) (err error) {
	key, value, has := strings.Cut(text, "=")
	if text == "anywhere" && (s.Verb == VerbMap || s.Verb == VerbRemap) {
		s.Free = true
		return nil
	}
	for _, o := range options {
		if o.verb != s.Verb || o.key != key || o.flag != 0 == has {
			continue
		}
		if o.flag != 0 {
			s.Flags |= o.flag
			return nil
		}
		return o.set(s, value)
	}
	return fmt.Errorf("%s: not an option of %s", text, s.Verb)
}

type option struct {
	verb Verb
	key  string
	flag mm.OpFlags // the flag that the bare word sets, or 0
	set  func(*Step, string) error
}

var options = []option{
	{verb: VerbMap, key: "at", set: (*Step).setPlace},
	{verb: VerbMap, key: "prot", set: func(s *Step, v string) (err error) {
		s.Access, err = parseProt(v)
		return err
	}},
	{verb: VerbMap, key: "stack", flag: mm.MapStack},
	{verb: VerbMap, key: "noreserve", flag: mm.MapNoReserve},
	{verb: VerbMap, key: "populate", flag: mm.MapPopulate},
	{verb: VerbMap, key: "locked", flag: mm.MapLocked},
	{verb: VerbMap, key: "noreplace", flag: mm.MapFixed},
	{verb: VerbMap, key: "hugetlb", set: (*Step).setHugetlb},
	{verb: VerbMap, key: "shared", flag: mm.MapShared},
	{verb: VerbTouch, key: "step", set: func(s *Step, v string) error {
		t, back := strings.CutPrefix(v, "-")
		n, err := parseLen(t)
		if s.Step = int64(n); back {
			s.Step = -s.Step
		}
		return err
	}},
	{verb: VerbTouch, key: "data", set: func(s *Step, v string) error {
		if v != "zero" || s.Access != mm.Write {
			return fmt.Errorf("data=%s: want data=zero, of a write", v)
		}
		s.Access |= mm.ZeroData
		return nil
	}},
	{verb: VerbTouch, key: "thread", set: func(s *Step, v string) error {
		if s.Second = v == "2"; !s.Second {
			return fmt.Errorf("thread=%s: want thread=2", v)
		}
		return nil
	}},
	{verb: VerbRemap, key: "to", set: (*Step).setTo},
	{verb: VerbRemap, key: "at", set: (*Step).setPlace},
	{verb: VerbRemap, key: "keep", flag: mm.RemapDontUnmap},
	{verb: VerbRemap, key: "size", set: func(s *Step, v string) (err error) {
		s.Size, err = parseLen(v)
		return err
	}},
	{verb: VerbLock, key: "onfault", flag: mm.LockOnFault},
	{verb: VerbMap, key: "file", flag: mm.MapFile},
	{verb: VerbMap, key: "droppable", flag: mm.MapDroppable},
	{verb: VerbMigrate, key: "node", set: (*Step).setNode},
	{verb: VerbMigrate, key: "all", flag: withAll},
	{verb: VerbMigrate, key: "process", flag: wholeProcess},
	{verb: VerbBind, key: "node", set: (*Step).setNode},
	{verb: VerbBind, key: "interleave", flag: withAll},
	{verb: VerbOffline, key: "soft", flag: withAll},
	{verb: VerbResident, key: "read", flag: withAll},
}

// setPlace reads +OFFSET or REGION[+OFFSET].
func (s *Step) setPlace(text string) (err error) {
	in, at, has := strings.Cut(text, "+")
	if in != "" {
		s.Place.In = in
		err = nameError(in)
	}
	if err == nil && has {
		s.Place.At, err = parseOffset(at)
	}
	return err
}

func (s *Step) setTo(name string) error {
	s.Name = name
	return nameError(name)
}
