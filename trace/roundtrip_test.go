package trace

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/hugelab/hugelab/mm"
)

// drawEvent makes any event a recorder could write, and some it would not.
func drawEvent(t *rapid.T) Event {
	addr := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0x7f0000000000, 0x7f0000100000), rapid.Just(uint64(0)))
	small := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 300), rapid.Uint64())
	e := Event{
		Kind:   Kind(rapid.OneOf(rapid.Just(int(KindFault)), rapid.IntRange(0, NumKinds-1)).Draw(t, "kind")),
		Access: mm.Access(rapid.Uint8().Draw(t, "access")),
		CPU:    mm.CPU(rapid.Uint16Range(0, 3).Draw(t, "cpu")),
		TID:    rapid.OneOf(rapid.Int32Range(1, 5), rapid.Int32()).Draw(t, "tid"),
		PID:    rapid.OneOf(rapid.Int32Range(1, 3), rapid.Int32()).Draw(t, "pid"),
		When:   mm.Nanos(rapid.OneOf(rapid.Int64Range(0, 5e9), rapid.Int64()).Draw(t, "when")),
		A:      addr.Draw(t, "a"),
	}
	if rapid.Bool().Draw(t, "more") {
		e.B, e.C, e.D = addr.Draw(t, "b"), small.Draw(t, "c"), small.Draw(t, "d")
		e.Ret = rapid.OneOf(rapid.Int64(), rapid.Int64Range(-40, 0)).Draw(t, "ret")
		e.Name = rapid.SampledFrom([]string{"", "/bin/sh", "[stack]", "a\x00b", "ü"}).Draw(t, "name")
	}
	return e
}

func record(t testing.TB, h Header, events []Event) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := w.Write(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(Footer{Exit: 3}); err != nil {
		t.Fatal(err)
	}
	if int64(out.Len()) != w.Bytes() {
		t.Fatalf("Bytes says %d, %d were written", w.Bytes(), out.Len())
	}
	return out.Bytes()
}

func readAll(r *Reader) (events []Event, err error) {
	for {
		var e Event
		if err := r.Next(&e); err != nil {
			if err == io.EOF {
				err = nil
			}
			return events, err
		}
		events = append(events, e)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 200).Draw(t, "events")
		var out bytes.Buffer
		w, err := NewWriter(&out, Header{TimeUnit: 1, Command: []string{"x"}, Attached: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if rapid.IntRange(0, 20).Draw(t, "flush") == 0 {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Write(&events[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(Footer{Exit: 9, Notes: []string{"n"}}); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 && len(events) == 0 {
			got = events
		}
		if d := cmp.Diff(events, got); d != "" {
			t.Fatal(d)
		}
		if r.Footer == nil || r.Footer.Exit != 9 || r.Footer.Events != uint64(len(events)) {
			t.Fatalf("footer %+v", r.Footer)
		}
		if cut, what := r.Cut(); cut {
			t.Fatal(what)
		}
	})
}

// small is a recording of a few blocks and a few hundred bytes.
func small(t testing.TB) ([]byte, []Event) {
	events := []Event{
		{Kind: KindExec, TID: 7, PID: 7, A: 7, Name: "/bin/true"},
		{Kind: KindMapAt, TID: 7, PID: 7, A: 0x7f0000000000, B: 0x7f0000004000, C: 5 | 2<<32, D: 77, Name: "/lib/libc.so.6"},
		{Kind: KindFault, TID: 7, PID: 7, CPU: 1, Access: mm.Read | mm.Exec, When: 100, A: 0x7f0000000123},
		{Kind: KindFault, TID: 7, PID: 7, CPU: 1, Access: mm.Write, When: 1200, A: 0x7f0000001040, B: 0x7f0000000200},
		{Kind: KindMmap, TID: 7, PID: 7, When: 3e9, B: 1 << 20, C: 3 | 0x22<<32, D: 1<<32 - 1, Ret: 0x7e0000000000},
		{Kind: KindFault, TID: 8, PID: 7, Access: mm.Write, When: 3e9 + 500, A: 0x7e0000000000},
		{Kind: KindExit, TID: 7, PID: 7, A: 1, When: 9e9},
	}
	return record(t, Header{Command: []string{"true"}, Method: MethodRoot}, events), events
}

// TestCutAnywhere ends a recording at every byte: what is whole is read.
func TestCutAnywhere(t *testing.T) {
	whole, events := small(t)
	most := 0
	for n := range whole {
		r, err := NewReader(bytes.NewReader(whole[:n]))
		if err != nil {
			if n > 400 {
				t.Fatalf("cut at %d: %v", n, err)
			}
			if n == 0 && !errors.Is(err, ErrEmpty) {
				t.Fatalf("empty file: %v", err)
			}
			continue
		}
		got, err := readAll(r)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if d := cmp.Diff(events[:len(got)], got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("cut at %d: %s", n, d)
		}
		if len(got) < most {
			t.Fatalf("cut at %d: %d events, a byte earlier %d", n, len(got), most)
		}
		most = len(got)
		if cut, what := r.Cut(); cut != (r.Footer == nil) || cut && what == "" {
			t.Fatalf("cut at %d: Cut says %v %q, footer %v", n, cut, what, r.Footer)
		}
	}
	if most != len(events) {
		t.Fatalf("%d events at the most", most)
	}
}

// TestFlipAnywhere damages every byte: an error, and the events before it.
func TestFlipAnywhere(t *testing.T) {
	whole, events := small(t)
	for i := range whole {
		for _, bits := range []byte{1, 0x80, 0xff} {
			b := bytes.Clone(whole)
			b[i] ^= bits
			r, err := NewReader(bytes.NewReader(b))
			if err != nil {
				continue
			}
			got, err := readAll(r)
			var damaged *DamagedError
			if !errors.As(err, &damaged) {
				t.Fatalf("byte %d of %d flipped by %#x: no error but %v", i, len(whole), bits, err)
			}
			if damaged.Offset > int64(i) || len(got) > 0 && cmp.Diff(events[:len(got)], got) != "" {
				t.Fatalf("byte %d flipped: %v after %d events", i, err, len(got))
			}
			if err2 := r.Next(new(Event)); err2 != err {
				t.Fatalf("the error does not stick: %v", err2)
			}
		}
	}
}
