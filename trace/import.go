package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

const (
	importHow = "record with `perf record -e page-faults -c 1 -d COMMAND`, " +
		"then `perf script -F comm,pid,tid,time,event,addr,ip`"

	// guessGap is the longest stretch of untouched pages, in bytes, across
	// which two touched pages are taken to lie in one mapping.
	guessGap = 64 << 10
	// guessStack bounds from below where an x86-64 stack lies.
	guessStack = 0x7ff000000000
	maxLine    = 1 << 20
	kernelHalf = 1 << 63
	importPage = 4096
)

// ErrNoAddresses refuses a text that does not say where faults were.
var ErrNoAddresses = errors.New("import: the text holds no fault addresses: " + importHow)

// Bits of exceptions:page_fault_user's error code on x86.
// Linux: arch/x86/include/asm/trap_pf.h (v6.18).
const (
	pfProt  = 1 << 0
	pfWrite = 1 << 1
	pfUser  = 1 << 2
	pfInstr = 1 << 4
)

// sample is one line of the text.
type sample struct {
	comm     string
	tid, pid int32 // pid 0: not told
	cpu      mm.CPU
	when     mm.Nanos
	event    string
	rest     string // what stands behind the event's name
}

// importer keeps what was read until the mappings can be guessed: some 50
// bytes a fault, half of what the text takes.
type importer struct {
	faults  []Event
	procs   []int32
	pages   map[int32]map[uint64]mm.Access // by PID: pages touched
	comms   map[int32]string
	source  string // events that faults are taken from
	skipped int
	first   mm.Nanos
	noPIDs  bool
}

// ImportPerfScript reads the text of perf script with the addresses of faults
// (page-faults recorded with -d, or exceptions:page_fault_user) and writes its
// events to w. It does not close w. No mappings are known from such a text:
// they are guessed from where the faults lie, and a note says so. A text
// without addresses is refused with ErrNoAddresses and what to type.
func ImportPerfScript(r io.Reader, w *Writer) error {
	im := &importer{pages: map[int32]map[uint64]mm.Access{}, comms: map[int32]string{}}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for sc.Scan() {
		n++
		if err := im.line(sc.Text()); err != nil {
			return fmt.Errorf("import: line %d: %w", n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("import: line %d: %w", n+1, err)
	}
	if len(im.faults) == 0 {
		return fmt.Errorf("import: no page fault in %d lines: %w", n, ErrNoAddresses)
	}
	return im.write(w)
}

// line reads one line; those that are no sample are skipped.
func (im *importer) line(text string) error {
	if strings.Contains(text, " minfault [") || strings.Contains(text, " majfault [") {
		return fmt.Errorf("perf trace names a file or map in place of most addresses: %w", ErrNoAddresses)
	}
	var s sample
	if !s.parse(text) {
		return nil
	}
	source, ok := faultSource(s.event)
	if !ok {
		im.skipped++
		return nil
	}
	if im.source == "" {
		im.source, im.first = source, s.when
	}
	if source != im.source {
		im.skipped++
		return nil
	}
	e := Event{Kind: KindFault, TID: s.tid, PID: s.pid, CPU: s.cpu, When: max(0, s.when-im.first)}
	if s.pid == 0 {
		e.PID, im.noPIDs = s.tid, true
	}
	var err error
	if source == "exceptions" {
		err = exceptionFault(&e, s.rest)
	} else {
		err = im.softwareFault(&e, s.rest)
	}
	if err != nil {
		return err
	}
	im.add(&e, s.comm)
	return nil
}

func (im *importer) add(e *Event, comm string) {
	pages := im.pages[e.PID]
	if pages == nil {
		pages = map[uint64]mm.Access{}
		im.pages[e.PID] = pages
		im.comms[e.PID] = comm
		im.procs = append(im.procs, e.PID)
	}
	pages[e.A/importPage] |= e.Access
	im.faults = append(im.faults, *e)
}

// faultSource says whether an event is a page fault, and of which family. Two
// families in one text tell of the same faults twice.
func faultSource(event string) (string, bool) {
	switch {
	case event == "exceptions:page_fault_user" || event == "exceptions:page_fault_kernel":
		return "exceptions", true
	case strings.Contains(event, "-faults") || event == "faults":
		return "software", true
	}
	return "", false
}

// parse splits "comm pid/tid [cpu] seconds.fraction: period event: rest".
func (s *sample) parse(text string) bool {
	words := strings.Fields(text)
	at := -1
	for i, w := range words {
		if i > 0 && len(w) > 2 && w[len(w)-1] == ':' {
			if t, ok := parseSeconds(w[:len(w)-1]); ok {
				at, s.when = i, t
				break
			}
		}
	}
	if at < 1 || at+1 >= len(words) {
		return false
	}
	i := at - 1
	if w := words[i]; w[0] == '[' && w[len(w)-1] == ']' && i > 0 {
		n, err := strconv.ParseUint(w[1:len(w)-1], 10, 16)
		if err != nil {
			return false
		}
		s.cpu = mm.CPU(n)
		i--
	}
	pid, tid, both := strings.Cut(words[i], "/")
	if !both {
		pid, tid = "0", pid
	}
	p, err1 := strconv.ParseInt(pid, 10, 32)
	t, err2 := strconv.ParseInt(tid, 10, 32)
	if err1 != nil || err2 != nil || t <= 0 || p < 0 {
		return false
	}
	s.pid, s.tid = int32(p), int32(t)
	s.comm = strings.Join(words[:i], " ")
	words = words[at+1:]
	if _, err := strconv.ParseUint(words[0], 10, 64); err == nil && len(words) > 1 {
		words = words[1:] // the period
	}
	event, ok := strings.CutSuffix(words[0], ":")
	if !ok {
		return false
	}
	for _, modifier := range []string{":u", ":k", ":uk", ":ku"} {
		event = strings.TrimSuffix(event, modifier)
	}
	s.event = event
	s.rest = strings.Join(words[1:], " ")
	return true
}

// parseSeconds reads seconds with a fraction of up to nine digits.
func parseSeconds(w string) (mm.Nanos, bool) {
	whole, frac, ok := strings.Cut(w, ".")
	if !ok || len(frac) == 0 || len(frac) > 9 || len(whole) > 9 {
		return 0, false
	}
	s, err := strconv.ParseUint(whole, 10, 32)
	if err != nil {
		return 0, false
	}
	f, err := strconv.ParseUint((frac + "000000000")[:9], 10, 32)
	if err != nil {
		return 0, false
	}
	return mm.Nanos(s*1e9 + f), true
}

// exceptionFault reads address=0x.. ip=0x.. error_code=0x..
func exceptionFault(e *Event, rest string) error {
	var code uint64
	seen := 0
	for _, w := range strings.Fields(rest) {
		key, text, _ := strings.Cut(w, "=")
		n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
		if err != nil {
			continue
		}
		switch key {
		case "address":
			e.A = n
			seen |= 1
		case "ip":
			e.B = n
		case "error_code":
			code = n
			seen |= 2
		}
	}
	if seen != 3 {
		return fmt.Errorf("a page_fault event without address= and error_code=: %w", ErrNoAddresses)
	}
	switch {
	case code&pfInstr != 0:
		e.Access = mm.Read | mm.Exec
	case code&pfWrite != 0:
		e.Access = mm.Write
	default:
		e.Access = mm.Read
	}
	if code&pfUser == 0 {
		e.Access |= mm.KernelMode
	}
	if code&pfProt != 0 {
		e.Access |= mm.WasPresent
	}
	return nil
}

// softwareFault reads "ADDR symbol IP symbol" or "ADDR IP". One number with a
// word behind it is an instruction pointer with its symbol.
func (im *importer) softwareFault(e *Event, rest string) error {
	words := strings.Fields(rest)
	var numbers []uint64
	for i, w := range words {
		n, err := strconv.ParseUint(w, 16, 64)
		if err == nil && (i == 0 || len(w) >= 6) { // shorter ones are symbols like "feed"
			numbers = append(numbers, n)
		} else if i == 0 {
			break
		}
	}
	if len(numbers) == 0 || len(numbers) == 1 && len(words) > 1 || numbers[0] >= kernelHalf {
		return fmt.Errorf("page-faults with an instruction pointer and no data address: %w", ErrNoAddresses)
	}
	e.A = numbers[0]
	e.Access = mm.AccessUnknown
	if len(numbers) > 1 {
		e.B = numbers[1]
		if e.B == e.A {
			e.Access = mm.Read | mm.Exec
		}
		if e.B >= kernelHalf {
			e.Access |= mm.KernelMode
		}
	}
	return nil
}

// write writes all events: each process begins, with the maps guessed for it,
// at its first fault.
func (im *importer) write(w *Writer) error {
	notes := []string{"mappings are guessed: pages touched within 64 kB of each other are taken for one mapping; " +
		"what was unmapped, advised or mapped and never touched is not known"}
	if im.noPIDs {
		notes = append(notes, "the text names threads and not their processes; each thread is taken for a process: add pid to perf script -F")
	}
	if im.source == "software" {
		notes = append(notes, "page-faults do not say whether a page was read or written")
	}
	if im.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d samples of other events were left out", im.skipped))
	}
	for _, n := range notes {
		if err := w.Write(&Event{Kind: KindNote, Name: n}); err != nil {
			return err
		}
	}
	begun := map[int32]bool{}
	for i := range im.faults {
		e := &im.faults[i]
		if !begun[e.PID] {
			begun[e.PID] = true
			if err := im.begin(w, e); err != nil {
				return err
			}
		}
		if err := w.Write(e); err != nil {
			return err
		}
	}
	return nil
}

// begin writes the exec of a process and its guessed maps.
func (im *importer) begin(w *Writer, e *Event) error {
	x := Event{Kind: KindExec, TID: e.PID, PID: e.PID, CPU: e.CPU, When: e.When, A: uint64(e.PID), Name: clip(im.comms[e.PID])}
	if err := w.Write(&x); err != nil {
		return err
	}
	pages := make([]uint64, 0, len(im.pages[e.PID]))
	for n := range im.pages[e.PID] {
		pages = append(pages, n)
	}
	slices.Sort(pages)
	for i := 0; i < len(pages); {
		from, access := i, mm.Access(0)
		for i++; i < len(pages) && pages[i]-pages[i-1] <= guessGap/importPage; i++ {
		}
		for _, n := range pages[from:i] {
			access |= im.pages[e.PID][n]
		}
		m := Event{Kind: KindMapAt, TID: e.PID, PID: e.PID, CPU: e.CPU, When: e.When,
			A: pages[from] * importPage, B: (pages[i-1] + 1) * importPage, C: uint64(mm.Read|mm.Write) | 2<<32}
		switch {
		case m.A >= guessStack && i == len(pages):
			m.Name, m.C = nameStack, m.C|mapGrowsDown<<32
		case access&mm.Exec != 0:
			m.Name, m.D = "guessed program text", 1
		default:
			m.Name = "guessed"
		}
		if err := w.Write(&m); err != nil {
			return err
		}
	}
	return nil
}

func clip(s string) string { return s[:min(len(s), maxName)] }
