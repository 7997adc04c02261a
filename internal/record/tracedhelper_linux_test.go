package record

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// init plays the programs under record, before TestMain plays the stub.
func init() {
	if name := os.Getenv("HUGELAB_TEST_PROGRAM"); name != "" && len(os.Args) > 1 && os.Args[1] == name {
		tracedPrograms()[name]()
		os.Exit(0)
	}
}

func tracedMap(page, n int, flags int) []byte {
	at, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(arena+page*pg), uintptr(n*pg),
		unix.PROT_READ|unix.PROT_WRITE,
		uintptr(unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED|flags), ^uintptr(0), 0)
	if errno != 0 {
		fmt.Fprintln(os.Stderr, "mmap:", errno)
		os.Exit(9)
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n*pg)
}

func untracedMap(page, n int) {
	unix.Syscall(unix.SYS_MUNMAP, uintptr(arena+page*pg), uintptr(n*pg), 0)
}

func advise(page, n, advice int) {
	unix.Syscall(unix.SYS_MADVISE, uintptr(arena+page*pg), uintptr(n*pg), uintptr(advice))
}

const floodPages = 24000

const sharedPages = 1536 // below the usual RLIMIT_MEMLOCK

var readSink byte

// tracedPrograms are what the tests record.
func tracedPrograms() map[string]func() {
	return map[string]func(){
		// touch writes 0, 2, 3, reads 5, then unmaps; maps anew and writes 1.
		"touch": func() {
			m := tracedMap(0, 8, 0)
			m[0], m[2*pg], m[3*pg] = 1, 1, 1
			readSink = m[5*pg]
			untracedMap(0, 8)
			m = tracedMap(0, 8, 0)
			m[1*pg] = 1
			os.Exit(7)
		},
		// dontneed writes 0..3, drops 1..2, writes 2 again.
		"dontneed": func() {
			m := tracedMap(0, 8, 0)
			for i := range 4 {
				m[i*pg] = 1
			}
			advise(1, 2, unix.MADV_DONTNEED)
			m[2*pg] = 1
		},
		// remap writes 0..1, moves both to 16, writes 18 in the grown part.
		"remap": func() {
			m := tracedMap(0, 2, 0)
			m[0], m[pg] = 1, 1
			unix.Syscall6(unix.SYS_MREMAP, arena, 2*pg, 4*pg, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, arena+16*pg, 0)
			var p uintptr = arena + 18*pg
			*(*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) = 1
		},
		// readwrite reads 0, then (after a look) writes it.
		"readwrite": func() {
			m := tracedMap(0, 4, 0)
			readSink = m[0]
			advise(2, 1, unix.MADV_NORMAL)
			m[0] = 1
		},
		// kernel lets read(2) fill pages 0..3, and user mode page 4.
		"kernel": func() {
			m := tracedMap(0, 8, 0)
			f, err := os.Open("/proc/self/exe")
			if err != nil {
				os.Exit(9)
			}
			unix.Read(int(f.Fd()), m[:4*pg])
			m[4*pg] = 1
		},
		// populate is filled by the kernel; one page is then dropped and written.
		"populate": func() {
			m := tracedMap(0, 8, unix.MAP_POPULATE)
			m[3*pg] = 1
			advise(3, 1, unix.MADV_DONTNEED)
			m[3*pg] = 1
		},
		// threads write a page each from its own thread.
		"threads": func() {
			m := tracedMap(0, 8, 0)
			done := make(chan bool)
			for i := range 8 {
				go func() {
					runtime.LockOSThread()
					m[i*pg] = 1
					done <- true
				}()
			}
			for range 8 {
				<-done
			}
		},
		// children starts a program twice and waits; the last one fails with 3.
		"children": func() {
			exec.Command("/bin/sh", "-c", "sh -c 'exit 0' | cat; (exit 3)").Run()
			err := exec.Command("/bin/sh", "-c", "exit 3").Run()
			os.Exit(err.(*exec.ExitError).ExitCode())
		},
		// signals catches its own SIGUSR1, stops and is continued by its child.
		"signals": func() {
			c := make(chan os.Signal, 1)
			signal.Notify(c, unix.SIGUSR1)
			unix.Kill(os.Getpid(), unix.SIGUSR1)
			<-c
			cmd := exec.Command("/bin/sh", "-c", "sleep 0.2; kill -CONT $PPID")
			cmd.Start()
			unix.Kill(os.Getpid(), unix.SIGSTOP)
			cmd.Wait()
			unix.Kill(os.Getpid(), unix.SIGTERM)
			time.Sleep(5 * time.Second)
		},
		// flood writes more pages than the rings hold faults.
		"flood": func() {
			m := tracedMap(0, floodPages, 0)
			for i := range floodPages {
				m[i*pg] = 1
			}
		},
		// brk grows the heap by 4 pages, writes 2, grows by 4, writes 2 more,
		// shrinks into page 0 and grows back, writes page 1 again.
		"brk": func() {
			base := uint64(call(unix.SYS_BRK, 0))
			base = (base + pg - 1) &^ (pg - 1)
			call(unix.SYS_BRK, base+4*pg)
			poke(base)
			poke(base + pg)
			call(unix.SYS_BRK, base+8*pg)
			poke(base + 4*pg)
			poke(base + 5*pg)
			call(unix.SYS_BRK, base+pg-100)
			call(unix.SYS_BRK, base+4*pg)
			poke(base + pg)
		},
		// fork writes 0..2; its child writes 1 (a copy) and 5.
		"fork": func() {
			tracedMap(0, 8, 0)
			for i := range uint64(3) {
				poke(arena + i*pg)
			}
			pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if pid == 0 {
				poke(arena + pg)
				poke(arena + 5*pg)
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			unix.Wait4(int(pid), nil, 0, nil)
		},
		// lockshared locks pages that a waiting child shares: the kernel copies them.
		"lockshared": func() {
			tracedMap(0, sharedPages, 0)
			for i := range uint64(sharedPages) {
				poke(arena + i*pg)
			}
			pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if pid == 0 {
				for {
					unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
				}
			}
			if _, _, e := unix.Syscall(unix.SYS_MLOCK, arena, sharedPages*pg, 0); e != 0 {
				fmt.Fprintln(os.Stderr, "mlock:", e)
				defer os.Exit(9)
			}
			unix.Kill(int(pid), unix.SIGKILL)
			unix.Wait4(int(pid), nil, 0, nil)
		},
		// threadexec lets another thread than the first one exec.
		"threadexec": func() {
			m := tracedMap(0, 8, 0)
			m[0] = 1
			go func() {
				runtime.LockOSThread()
				m[pg] = 1
				fmt.Fprintln(os.Stderr, unix.Exec("/bin/sh", []string{"sh", "-c", "exit 5"}, nil))
			}()
			time.Sleep(5 * time.Second)
		},
		// killed dies by SIGKILL with pages that nobody looked at yet.
		"killed": func() {
			m := tracedMap(0, 8, 0)
			m[0], m[pg] = 1, 1
			unix.Kill(os.Getpid(), unix.SIGKILL)
		},
		// forever waits, with a child, for a signal.
		"forever": func() {
			exec.Command("/bin/sh", "-c", "sleep 60; true").Run()
		},
	}
}
