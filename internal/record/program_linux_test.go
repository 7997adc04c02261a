package record

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the test programs put their memory; nothing else lies there.
const (
	arena    = 0x10_0000_0000
	arenaEnd = 0x20_0000_0000
	pg       = 4096
)

//go:noinline
func poke(addr uint64) { *(*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))) = 1 }

//go:noinline
func look(addr uint64) byte { return *(*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))) }

func call(nr uintptr, a ...uint64) uint64 {
	var x [6]uint64
	copy(x[:], a)
	r, _, _ := unix.RawSyscall6(nr, uintptr(x[0]), uintptr(x[1]), uintptr(x[2]), uintptr(x[3]), uintptr(x[4]), uintptr(x[5]))
	return uint64(r)
}

func mapAt(addr, pages uint64) {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	if got := call(unix.SYS_MMAP, addr, pages*pg, unix.PROT_READ|unix.PROT_WRITE, flags, ^uint64(0), 0); got != addr {
		fmt.Fprintf(os.Stderr, "mmap %x: %x\n", addr, got)
		os.Exit(99)
	}
}

// touchFile maps a private file, reads it and breaks its page away by a write.
func touchFile(addr uint64) {
	fd, err := unix.MemfdCreate("data", 0)
	if err != nil || unix.Dup3(fd, testFD, 0) != nil || unix.Ftruncate(testFD, pg) != nil {
		os.Exit(97)
	}
	const flags = unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE
	call(unix.SYS_MMAP, addr, pg, unix.PROT_READ|unix.PROT_WRITE, flags, testFD, 0)
	look(addr)
	poke(addr)
}

// testFD is a descriptor that nothing else uses.
const testFD = 77

// testProgram is what a test records: this test binary once more.
func testProgram(name string) int {
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	switch name {
	case "touch":
		mapAt(arena, 64)
		for _, i := range []uint64{5, 3, 60, 0} {
			poke(arena + i*pg)
		}
		look(arena + 7*pg)
		touchFile(arena + 256*pg)
		call(unix.SYS_MADVISE, arena, 8*pg, unix.MADV_DONTNEED)
		poke(arena + 5*pg)
		call(unix.SYS_MPROTECT, arena+32*pg, 16*pg, unix.PROT_READ)
		call(unix.SYS_MREMAP, arena+48*pg, 16*pg, 16*pg, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, arena+128*pg)
		poke(arena + 140*pg)             // was page 60: present, no fault
		poke(arena + 129*pg)             // new
		call(unix.SYS_PIPE2, arena+8*pg) // the kernel writes there
		call(unix.SYS_MUNMAP, arena, 48*pg)
	case "threads":
		threadsProgram()
	case "fork":
		mapAt(arena, 8)
		poke(arena)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{"RECORD_TEST_PROGRAM=child"}
		if err := cmd.Run(); err != nil {
			return 98
		}
	case "child":
		mapAt(arena, 8)
		poke(arena + pg)
	case "flood":
		const n = 20000
		mapAt(arena, n)
		for i := uint64(0); i < n; i++ {
			poke(arena + i*pg)
		}
	case "thpoff":
		if off, _, _ := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_GET_THP_DISABLE, 0, 0, 0, 0, 0); off != 1 {
			return 1
		}
		fmt.Println("on stdout")
	case "exit7":
		return 7
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "sleep":
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, unix.SIGINT)
		fmt.Fprintln(os.Stderr, "ready")
		<-ch
		return 130
	case "daemon":
		cmd := exec.Command("/bin/sleep", "3")
		if cmd.Start() != nil {
			return 98
		}
	case "service":
		mapAt(arena, 1024)
		for i := uint64(0); i < 16; i++ {
			poke(arena + i*pg)
		}
		fmt.Fprintln(os.Stderr, "ready")
		time.Sleep(700 * time.Millisecond)
		for i := uint64(16); i < 1024; i++ {
			poke(arena + i*pg)
		}
		time.Sleep(10 * time.Second)
	}
	return 0
}

// threadsProgram lets two threads map and unmap the same addresses by turns.
func threadsProgram() {
	var wg sync.WaitGroup
	turn := [2]chan bool{make(chan bool, 1), make(chan bool, 1)}
	for me := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			runtime.LockOSThread()
			for range 200 {
				<-turn[me]
				mapAt(arena, 2)
				poke(arena + uint64(me)*pg)
				call(unix.SYS_MUNMAP, arena, 2*pg)
				turn[1-me] <- true
			}
		}()
	}
	turn[0] <- true
	wg.Wait()
}
