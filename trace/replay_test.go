package trace

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/hugelab/hugelab/mm"
)

// parseEvent reads what AppendText writes; time, thread and CPU may be left out.
func parseEvent(line string, e *Event) error {
	words := splitWords(line)
	*e = Event{TID: 1, PID: 1}
	i := 0
	if strings.Contains(words[0], ".") {
		s, ns, _ := strings.Cut(words[0], ".")
		sec, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return err
		}
		frac, err := strconv.ParseInt((ns + "000000000")[:9], 10, 64)
		if err != nil {
			return err
		}
		e.When = mm.Nanos(sec*1e9 + frac)
		i++
	}
	if tid, pid, ok := strings.Cut(words[i], "/"); ok {
		a, _ := strconv.Atoi(tid)
		b, _ := strconv.Atoi(pid)
		e.TID, e.PID = int32(a), int32(b)
		i++
	}
	if n, ok := strings.CutPrefix(words[i], "cpu"); ok {
		a, _ := strconv.Atoi(n)
		e.CPU = mm.CPU(a)
		i++
	}
	found := false
	for k := range kindTexts {
		if kindTexts[k].name == words[i] {
			e.Kind, found = Kind(k), true
		}
	}
	if !found {
		return fmt.Errorf("no kind %q", words[i])
	}
	for _, w := range words[i+1:] {
		if err := parseField(w, e); err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	return nil
}

func splitWords(line string) (words []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		n := strings.IndexByte(line, ' ')
		if q := strings.IndexByte(line, '"'); q >= 0 && (n < 0 || q < n) {
			quoted, err := strconv.QuotedPrefix(line[q:])
			if err != nil {
				panic(err)
			}
			n = q + len(quoted)
		}
		if n < 0 {
			n = len(line)
		}
		words = append(words, line[:n])
		line = line[n:]
	}
	return words
}

func parseAccess(s string) mm.Access {
	var a mm.Access
	for _, w := range strings.Split(s, "+") {
		for i, n := range accessNames {
			if w == n {
				a |= 1 << i
			}
		}
	}
	return a
}

func parseField(w string, e *Event) error {
	key, text, _ := strings.Cut(w, "=")
	switch key {
	case "access":
		if e.Kind != KindResident {
			e.Access = parseAccess(text)
			return nil
		}
	case "name":
		s, err := strconv.Unquote(text)
		e.Name = s
		return err
	}
	for _, f := range e.fields() {
		if f.key != key {
			continue
		}
		var n uint64
		switch f.style {
		case prot:
			for i, c := range "rwx" {
				if strings.ContainsRune(text, c) {
					n |= 1 << i
				}
			}
		case touch:
			n = uint64(parseAccess(text))
		default:
			v, err := strconv.ParseInt(text, 0, 64)
			if err != nil {
				return err
			}
			n = uint64(v)
		}
		if f.width != 0 {
			n &= 1<<f.width - 1
		}
		switch f.in {
		case 'R':
			e.Ret = int64(n)
		default:
			*[]*uint64{&e.A, &e.B, &e.C, &e.D}[f.in-'A'] |= n << f.shift
		}
		return nil
	}
	return fmt.Errorf("%v has no such field", e.Kind)
}

var opNames = [mm.NumOpKinds]string{"none", "touch", "map", "unmap", "remap", "note", "protect", "advise", "brk", "lock",
	"unlock", "lockall", "fork", "exec", "exit", "thpdisable", "populate", "uffd", "policynode", "unknown", "resident"}

var mapFlagNames = []string{"shared", "file", "fixed", "populate", "locked", "stack", "growsdown", "noreserve", "hint",
	"atexec", "hugetlb", "special", "replaces", "droppable"}

func opText(o *mm.Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s space %d", opNames[o.Kind], o.Space)
	if o.Region != 0 || o.Page != 0 {
		fmt.Fprintf(&b, " r%d+%#x", o.Region, o.Page)
	}
	if o.N != 0 {
		fmt.Fprintf(&b, " n=%d", o.N)
	}
	if o.Stride != 0 && o.N > 1 {
		fmt.Fprintf(&b, " stride %d", o.Stride)
	}
	if o.Access != 0 {
		b.Write(appendAccess([]byte(" "), o.Access))
	}
	if o.Kind == mm.OpMap {
		for i, s := range mapFlagNames {
			if o.Flags>>i&1 != 0 {
				b.WriteString(" " + s)
			}
		}
	} else if o.Flags != 0 {
		fmt.Fprintf(&b, " flags=%d", o.Flags)
	}
	if o.Arg != 0 {
		fmt.Fprintf(&b, " arg=%#x", o.Arg)
	}
	if o.Aux != 0 {
		fmt.Fprintf(&b, " aux=%d", o.Aux)
	}
	return b.String()
}

func replay(t testing.TB, file []byte) (*Replay, []mm.Op) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	p := NewReplay(r)
	var ops []mm.Op
	buf := make([]mm.Op, 7)
	for {
		n, err := p.Next(buf)
		ops = append(ops, buf[:n]...)
		if err == io.EOF {
			return p, ops
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplay shows what operations come of events. "run" takes events, one a
// line; arguments attached, stack=BYTES.
func TestReplay(t *testing.T) {
	datadriven.Walk(t, "testdata/replay", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			h := Header{TimeUnit: 1, Attached: d.HasArg("attached"), StackLimit: 1 << 20}
			var events []Event
			for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
				if line == "" || line[0] == '#' {
					continue
				}
				var e Event
				if err := parseEvent(line, &e); err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
				events = append(events, e)
			}
			p, ops := replay(t, record(t, h, events))
			var b strings.Builder
			for i := range ops {
				b.WriteString(opText(&ops[i]) + "\n")
			}
			s := p.Stats()
			if d.HasArg("stats") {
				fmt.Fprintf(&b, "faults %d: kernel %d anon %d file %d unknown %d; found %d lost %d spaces %d unknown pages %v\n",
					s.Faults, s.KernelMode, s.AnonFaults, s.FileFaults, s.Unknown, s.Found, s.Lost, s.Spaces, s.UnknownPages)
				for i := 1; i < len(p.regions.named); i++ {
					fmt.Fprintf(&b, "r%d %s: %d\n", i, p.RegionName(mm.Region(i)), p.RegionFaults(mm.Region(i)))
				}
			}
			for _, n := range s.Notes {
				b.WriteString("note: " + n + "\n")
			}
			return b.String()
		})
	})
}
