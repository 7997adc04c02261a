//go:build amd64

package difftest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestPuppet: a helper process maps, touches and forks as told, counts its
// faults exactly, and survives a touch of nothing.
func TestPuppet(t *testing.T) {
	t.Run("of a program", func(t *testing.T) { testPuppet(t, programPlace) })
	t.Run("of a replay", func(t *testing.T) { testPuppet(t, replayPlace) })
}

func testPuppet(t *testing.T, where puppetPlace) {
	s, err := startPuppetsAt(where, maxPuppets(), stackSpan)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	p, _, err := s.first().fork()
	if err != nil {
		t.Fatal(err)
	}
	const at = 0x100000000000
	do := func(p *puppet, what uint64, a ...uint64) reply {
		t.Helper()
		r, err := p.do(what, a...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := do(p, doSyscall, unix.SYS_MMAP, at, 1<<20, 3, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED, ^uint64(0), 0)
	if r.Result != at || r.faults() != 0 {
		t.Fatalf("mmap: %+v", r)
	}
	for range 2 {
		r = do(p, doTouch, at-2*pageSize, 10, pageSize, 1)
		if r.Refused != 2 {
			t.Errorf("touch: %+v, want 2 refused", r)
		}
		t.Logf("%+v", r)
	}
	c, r, err := p.fork()
	if err != nil {
		t.Fatal(err)
	}
	if r.faults() != 0 {
		t.Errorf("fork: %+v", r)
	}
	if r = do(p, doTouch, at, 8, pageSize, 1); r.faults() != 8 {
		t.Errorf("copy: %+v, want 8 faults", r)
	}
	if r = do(c, doTouch, at-3*pageSize, 8, pageSize, 1); r.Refused != 3 || r.faults() != 5 {
		t.Errorf("child: %+v, want 3 refused, 5 faults", r)
	}
	second, err := c.other()
	if err != nil {
		t.Fatal(err)
	}
	if r = do(second, doTouch, at-pageSize, 10, pageSize, 1); r.Refused != 1 || r.faults() != 4 {
		t.Errorf("second thread: %+v, want 1 refused, 4 faults", r)
	}
	if r = do(c, doTouch, at, 9, pageSize, 1); r.faults() != 0 {
		t.Errorf("first thread behind it: %+v", r)
	}
	if err := c.exit(); err != nil {
		t.Error(err)
	}
	if err := p.exit(); err != nil {
		t.Error(err)
	}
}
