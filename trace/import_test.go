package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

func importText(t testing.TB, text string) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Method: MethodImport})
	if err != nil {
		t.Fatal(err)
	}
	if err := ImportPerfScript(strings.NewReader(text), w); err != nil {
		return nil, err
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), nil
}

// lines is the recording as text.
func lines(t testing.TB, file []byte) string {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	events, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for i := range events {
		b = append(events[i].AppendText(b), '\n')
	}
	return string(b)
}

// golden compares got with a file; HUGELAB_REWRITE=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("HUGELAB_REWRITE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: %s", path, d)
	}
}

func TestImport(t *testing.T) {
	for _, name := range []string{"perf-page-faults", "perf-exceptions"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		file, err := importText(t, string(text))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".events", lines(t, file))
		p, _ := replay(t, file)
		if s := p.Stats(); s.Unknown != 0 || s.Faults != 40 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestImportLines(t *testing.T) {
	for _, c := range []struct {
		what, line string
		want       Event
	}{
		{"a period, a processor, a modifier, a name with spaces",
			"Web Content 7/9 [003] 12.5: 1 page-faults:u: 7f0000001008 [unknown] 401000 main",
			Event{Kind: KindFault, PID: 7, TID: 9, CPU: 3, A: 0x7f0000001008, B: 0x401000, Access: mm.AccessUnknown}},
		{"no symbols", "a 7/7 12.5: page-faults: 401000 401000",
			Event{Kind: KindFault, PID: 7, TID: 7, A: 0x401000, B: 0x401000, Access: mm.Read | mm.Exec}},
		{"the address alone", "a 7/7 12.5: minor-faults: 401000",
			Event{Kind: KindFault, PID: 7, TID: 7, A: 0x401000, Access: mm.AccessUnknown}},
		{"a symbol that reads like a number", "a 7 12.5: page-faults: 401000 feed ffffffff81775b9a fade",
			Event{Kind: KindFault, PID: 7, TID: 7, A: 0x401000, B: 0xffffffff81775b9a, Access: mm.AccessUnknown | mm.KernelMode}},
		{"copy-on-write from kernel mode", "a 7 12.5: exceptions:page_fault_kernel: address=0x401000 ip=0x1 error_code=0x3",
			Event{Kind: KindFault, PID: 7, TID: 7, A: 0x401000, B: 1, Access: mm.Write | mm.KernelMode | mm.WasPresent}},
	} {
		file, err := importText(t, c.line+"\n")
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		events, err := readAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, events[len(events)-1]); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	trace, err := os.ReadFile("testdata/perf-trace.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, text string }{
		{"perf trace", string(trace)},
		{"no -d", "a 7/7 12.5: page-faults: ffffffff821e8700 rep_stos_alternative ([kernel.kallsyms])\n"},
		{"no -d, user", "a 7/7 12.5: page-faults: 401000 main (/bin/a)\n"},
		{"no -d, no symbol", "a 7/7 12.5: page-faults: ffffffff821e8700\n"},
		{"nothing", ""},
		{"another file", "{\"a\": 1}\n"},
		{"an exception without its fields", "a 7 12.5: exceptions:page_fault_user: ip=0x1\n"},
	} {
		_, err := importText(t, c.text)
		if !errors.Is(err, ErrNoAddresses) || !strings.Contains(err.Error(), "perf record") {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"perf-page-faults", "perf-exceptions", "perf-trace"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("a 7/7 12.5: page-faults: 401000 401000\n")
	f.Fuzz(func(t *testing.T, text string) {
		if file, err := importText(t, text); err == nil {
			replay(t, file)
		}
	})
}
