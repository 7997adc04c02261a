package predict

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// TestSettle: khugepaged needs time that a short program does not give it; with
// --settle it gets it before the program's end, and memory grows.
func TestSettle(t *testing.T) {
	s := newScript(t, header())
	s.exec()
	s.mmap(mapAt, mapLen)
	s.event(trace.Event{Kind: trace.KindMadvise, A: mapAt, B: mapLen, C: uint64(mm.AdviseNoHugePage)})
	for block := uint64(mapAt); block < mapAt+mapLen; block += 2 << 20 {
		s.touch(block, 8)
	}
	s.event(trace.Event{Kind: trace.KindMadvise, A: mapAt, B: mapLen, C: uint64(mm.AdviseHugePage)})
	s.event(trace.Event{Kind: trace.KindExit, A: 1})
	in := input(t, s.done(trace.Footer{Wall: 1e9}), "never", "thp")
	short := mustRun(t, in)
	in.Settle = 10 * time.Minute
	long := mustRun(t, in)
	if a, b := short.Row("thp"), long.Row("thp"); b.EndAnon != mapLen || a.EndAnon >= mapLen/8 || b.Background <= a.Background {
		t.Errorf("thp ends with %d and khugepaged's %v, settled with %d and %v", a.EndAnon, a.Background, b.EndAnon, b.Background)
	}
	if a, b := short.Row("never"), long.Row("never"); a.EndAnon != b.EndAnon || b.Background != 0 {
		t.Errorf("never: %d, settled %d, khugepaged %v", a.EndAnon, b.EndAnon, b.Background)
	}
}

// TestFragmented: where the host has no block of 2 MiB, huge pages fall back.
func TestFragmented(t *testing.T) {
	in := input(t, program(t), "never", "64k", "thp")
	in.Memory = &mm.FreeState{Zones: []mm.FreeZone{
		{Name: "Normal", Blocks: []uint64{1000, 1000, 1000, 1000, 4000, 0, 0, 0, 0, 0, 0}},
	}}
	in.MemoryName = "a test"
	p := mustRun(t, in)
	if r := p.Row("thp"); r.Fallbacks == 0 || r.Folios[9] != 0 || r.Faults != mapLen>>12 {
		t.Errorf("thp: %d fallbacks, %d huge pages, %d faults", r.Fallbacks, r.Folios[9], r.Faults)
	}
	if r := p.Row("64k"); r.Folios[4] == 0 {
		t.Errorf("64k: %d folios although there are blocks", r.Folios[4])
	}
	if r := p.Row("never"); r.Fallbacks != 0 || r.Killed() {
		t.Errorf("never: %d fallbacks, killed %v", r.Fallbacks, r.Killed())
	}
	in.Memory = &mm.FreeState{Zones: []mm.FreeZone{{Name: "Normal", Blocks: []uint64{0, 1 << 62}}}}
	if _, err := Run(context.Background(), in); err == nil || !strings.Contains(err.Error(), "memory state") {
		t.Errorf("more memory than any machine has: %v", err)
	}
	if p.Memory != "a test" {
		t.Errorf("memory %q", p.Memory)
	}
}

// TestAttached: a recording that ends with processes alive ends where it ends.
func TestAttached(t *testing.T) {
	h := header()
	h.Attached = true
	s := newScript(t, h)
	s.exec()
	s.mmap(mapAt, mapLen)
	s.touch(mapAt, 100)
	p := mustRun(t, input(t, s.done(trace.Footer{Wall: 1e9, Interrupted: true, Lost: 3}), "never"))
	if r := p.Row("never"); r.EndAnon != 100*4096 {
		t.Errorf("ends with %d", r.EndAnon)
	}
	if len(p.Notes) < 3 || p.Recording.Lost != 3 {
		t.Errorf("notes %q, lost %d", p.Notes, p.Recording.Lost)
	}
}
