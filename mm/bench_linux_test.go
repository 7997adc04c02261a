package mm

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used of the CPUs so far.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkKernelFirstTouch4K is what BenchmarkFirstTouch4K models, on the
// kernel that runs the test: one byte written to each page of 256 MiB without
// huge pages, given back between two rounds.
func BenchmarkKernelFirstTouch4K(b *testing.B) {
	const size = 256 << 20
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		b.Fatal(err)
	}
	defer syscall.Munmap(mem)
	if err := syscall.Madvise(mem, syscall.MADV_NOHUGEPAGE); err != nil && err != syscall.EINVAL {
		b.Fatal(err) // EINVAL: a kernel without huge pages
	}
	b.ReportAllocs()
	var clock stopwatch
	clock.start()
	at := 0
	for b.Loop() {
		if at == size {
			b.StopTimer()
			clock.stop()
			if err := syscall.Madvise(mem, syscall.MADV_DONTNEED); err != nil {
				b.Fatal(err)
			}
			clock.start()
			b.StartTimer()
			at = 0
		}
		mem[at] = 1
		at += 4096
	}
	clock.stop()
	clock.report(b)
}
