package trace

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hugelab/hugelab/mm"
)

// everyKind has one event of each kind with all that it can carry.
func everyKind() []Event {
	e := []Event{
		{Kind: KindExec, A: 7, B: 0x7ffd00001000, C: 1, Name: "/bin/a \"b\"\n"},
		{Kind: KindMapAt, A: 0x7f0000000000, B: 0x7f0000004000, C: 5 | 2<<32, D: 77, Name: "/lib/libc.so.6"},
		{Kind: KindBrkAt, A: 0x1000, B: 0x2000},
		{Kind: KindFault, Access: mm.Write | mm.KernelMode, A: 0x7f0000000123, B: 0x401000},
		{Kind: KindFault, Access: mm.Write, A: 0x7f0000000123, C: 1},
		{Kind: KindMmap, A: 0x7f0000000000, B: 4096, C: 3 | 0x22<<32, D: 1<<32 - 1, Ret: 0x7f0000000000},
		{Kind: KindMmap, B: 4096, C: 3 | 0x2<<32, D: 3 | 1<<32, Ret: -12},
		{Kind: KindMunmap, A: 0x7f0000000000, B: 4096},
		{Kind: KindMremap, A: 0x7f0000000000, B: 4096, C: 8192, D: 0x7e0000000003, Ret: 0x7e0000000000},
		{Kind: KindMprotect, A: 0x7f0000000000, B: 4096, C: 1, D: 2},
		{Kind: KindBrk, A: 0x3000, Ret: 0x3000},
		{Kind: KindMadvise, A: 0x7f0000000000, B: 4096, C: 14, D: 9},
		{Kind: KindMlock, A: 0x7f0000000000, B: 4096, C: 1},
		{Kind: KindMunlock, A: 0x7f0000000000, B: 4096},
		{Kind: KindMlockall, A: 3},
		{Kind: KindShmat, B: 4096, Ret: 0x7f0000000000},
		{Kind: KindShmdt, A: 0x7f0000000000},
		{Kind: KindMbind, A: 0x7f0000000000, B: 4096, C: 2, D: 99},
		{Kind: KindUffd, A: 0x7f0000000000, B: 4096, C: 1},
		{Kind: KindPrctlTHP, A: 1, B: 2},
		{Kind: KindNewTask, A: 8, B: 0x10100, C: 7},
		{Kind: KindResident, A: 0x7f0000000000, B: 16, C: 2, D: 4},
		{Kind: KindUnknown, A: 0x7f0000000000, B: 4096, C: 1},
		{Kind: KindLost, A: 5},
		{Kind: KindNote, Name: "a sentence"},
		{Kind: KindOtherFaults, A: 6},
		{Kind: KindExit, A: 1},
		{Kind: KindNone},
	}
	for i := range e {
		e[i].TID, e[i].PID, e[i].CPU, e[i].When = 7, 7, mm.CPU(i&1), mm.Nanos(i)*1000100
	}
	return e
}

// TestVersion1 reads a file that was written by the first version of the
// format. A change of the format needs a new version and a new file.
func TestVersion1(t *testing.T) {
	const path = "testdata/v1.hlr"
	if os.Getenv("HUGELAB_REWRITE") != "" {
		file := record(t, Header{Tool: "test", Command: []string{"a", "b"}, Method: MethodRoot, PageSize: 4096}, everyKind())
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(everyKind(), got); d != "" {
		t.Error(d)
	}
	if r.Header.Version != 1 || r.Header.TimeUnit != 100 || r.Header.Command[1] != "b" || r.Footer == nil || r.Footer.Exit != 3 {
		t.Errorf("header %+v footer %+v", r.Header, r.Footer)
	}
	golden(t, "v1.text", lines(t, file))
	in, err := ReadInfo(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	in.Bytes, in.BytesPerFault = 0, 0 // the packing may change
	text, err := json.MarshalIndent(in, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "v1.info", string(text)+"\n")
}

// TestTextParsesBack reads text back, so text says all.
func TestTextParsesBack(t *testing.T) {
	seen := map[Kind]bool{}
	for _, e := range everyKind() {
		seen[e.Kind] = true
		if e.Kind == KindFault && e.C != 0 {
			continue // fields that a fault does not use are not shown
		}
		var got Event
		if err := parseEvent(string(e.AppendText(nil)), &got); err != nil {
			t.Errorf("%s: %v", e.AppendText(nil), err)
		} else if d := cmp.Diff(e, got); d != "" {
			t.Errorf("%s: %s", e.AppendText(nil), d)
		}
		var any map[string]any
		if err := json.Unmarshal(e.AppendJSON(nil), &any); err != nil {
			t.Errorf("%s: %v", e.AppendJSON(nil), err)
		} else if any["kind"] != e.Kind.String() || e.Name != "" && any["name"] != e.Name {
			t.Errorf("%s", e.AppendJSON(nil))
		}
	}
	for k := range Kind(NumKinds) {
		if !seen[k] || k.String() == "" {
			t.Errorf("kind %d (%v) has no event or no name", k, k)
		}
	}
}

func TestNotARecording(t *testing.T) {
	whole, _ := small(t)
	newer := bytes.Clone(whole)
	binary.LittleEndian.PutUint32(newer[len(magic):], FormatVersion+1)
	for _, c := range []struct {
		what string
		file []byte
		want error
		says string
	}{
		{"empty", nil, ErrEmpty, "empty"},
		{"text", []byte("hello, this is some text"), ErrNotRecording, "not a recording"},
		{"short text", []byte("hi"), ErrNotRecording, "not a recording"},
		{"copied as text", []byte(strings.Replace(string(whole), "\r\n", "\n", 1)), ErrNotRecording, "not a recording"},
		{"newer", newer, ErrNewer, "version 2"},
		{"cut in the magic", whole[:5], nil, "within its header"},
		{"cut in the header", whole[:60], nil, "within its header"},
	} {
		_, err := NewReader(bytes.NewReader(c.file))
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	r, err := NewReader(bytes.NewReader(append(bytes.Clone(whole), 0)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(r); err == nil {
		t.Error("a byte behind the end was not seen")
	}
}

func TestWriterRefuses(t *testing.T) {
	for _, e := range []Event{{Kind: Kind(NumKinds)}, {Kind: KindNote, Name: strings.Repeat("x", maxName+1)}} {
		w, err := NewWriter(io.Discard, Header{})
		if err != nil {
			t.Fatal(err)
		}
		if w.Write(&e) == nil || w.Close(Footer{}) == nil {
			t.Errorf("kind %d with a name of %d bytes was written", e.Kind, len(e.Name))
		}
	}
	w, err := NewWriter(io.Discard, Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	if w.Write(&Event{Kind: KindNote}) == nil || w.Close(Footer{}) == nil {
		t.Error("a closed recording takes events")
	}
}

// TestLargestBlock fills a block with the longest rows there are.
func TestLargestBlock(t *testing.T) {
	events := make([]Event, maxRows+10)
	for i := range events {
		n := uint64(i)*0x9e3779b97f4a7c15 | 1<<63
		events[i] = Event{Kind: KindMmap, Access: 0xff, CPU: mm.CPU(i), TID: int32(n), PID: int32(n >> 32), When: mm.Nanos(n) >> 3,
			A: n, B: ^n, C: n * 3, D: n * 5, Ret: int64(n * 7), Name: "n"}
	}
	// Times of one second, so that no block closes by its age.
	for i := range events {
		events[i].When = mm.Nanos(i%2) * 1e8
	}
	r, err := NewReader(bytes.NewReader(record(t, Header{TimeUnit: 1}, events)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(events) || got[len(got)-1] != events[len(got)-1] || got[777] != events[777] {
		t.Error("events differ")
	}
}

func FuzzReader(f *testing.F) {
	whole, _ := small(f)
	f.Add(whole, 0)
	f.Add(record(f, Header{}, everyKind()), 1)
	f.Add([]byte(magic), 0)
	f.Fuzz(func(t *testing.T, file []byte, seal int) {
		if seal&1 != 0 {
			file = reseal(bytes.Clone(file))
		}
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			return
		}
		p := NewReplay(r)
		buf := make([]mm.Op, 64)
		for {
			if _, err := p.Next(buf); err != nil {
				break
			}
		}
		_, _ = ReadInfo(bytes.NewReader(file))
	})
}

// reseal corrects the checksums of frames that were changed on purpose, so that
// what lies behind them is tried too.
func reseal(file []byte) []byte {
	for at := len(magic) + 4; at+headSize <= len(file); {
		n := int(binary.LittleEndian.Uint32(file[at+4:]))
		if n > len(file)-at-headSize {
			n = len(file) - at - headSize
		}
		var h head
		h.kind, h.length = file[at], uint32(n)
		h.rows = binary.LittleEndian.Uint32(file[at+8:])
		h.raw = binary.LittleEndian.Uint32(file[at+12:])
		h.crc = crc32.Checksum(file[at+headSize:at+headSize+n], castagnoli)
		h.put(file[at:])
		at += headSize + n
	}
	return file
}
