package repro

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 100}, 3}} {
		if got := median(c.x); got != c.want {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
}

// TestRing pins and unpins memory of this process, twice; a registration that
// was not taken back would make the second fail.
func TestRing(t *testing.T) {
	r, err := newRing()
	if err != nil {
		t.Skipf("this host: %v", err)
	}
	defer r.close()
	b, err := unix.Mmap(-1, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	for range 2 {
		get, put, err := r.pin(b)
		if err != nil {
			t.Fatal(err)
		}
		if get <= 0 || put <= 0 {
			t.Errorf("pinning took %v ns, unpinning %v", get, put)
		}
	}
	if _, _, err := r.pin(unmapped(t)); err == nil {
		t.Error("memory that is not there was pinned")
	}
}

// unmapped is memory that no access is allowed to.
func unmapped(t *testing.T) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

func TestPageFaultHost(t *testing.T) {
	v, err := pageFaultHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	within(t, v, "one_thread_ops", 100, 1e8)
}

func TestVMStatMissing(t *testing.T) {
	if _, err := vmstat("thp_fault_alloc", "no_such_counter"); err == nil {
		t.Error("a counter that there is not was read")
	}
}
