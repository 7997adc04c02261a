package record

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func procPath(pid int, name string) string { return "/proc/" + itoa(pid) + "/" + name }

func itoa(n int) string { return strconv.Itoa(n) }

// readMaps reads the mappings of a process in address order.
func readMaps(pid int) ([]mmap2, error) {
	text, err := os.ReadFile(procPath(pid, "maps"))
	if err != nil {
		return nil, err
	}
	return parseProcMaps(text)
}

// procStat is what /proc/PID/stat tells a recording.
type procStat struct {
	faults   uint64 // min_flt + maj_flt of all its threads, dead ones too
	startBrk uint64
}

// readStat reads fields 10, 12 and 47, counted behind the command's name, which
// may hold anything.
func readStat(pid int) (st procStat, ok bool) {
	return readStatFile(procPath(pid, "stat"))
}

// readThreadStat is readStat with one thread's own faults.
func readThreadStat(pid, tid int) (st procStat, ok bool) {
	return readStatFile(procPath(pid, "task/"+itoa(tid)+"/stat"))
}

func readStatFile(path string) (st procStat, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return st, false
	}
	i := bytes.LastIndexByte(text, ')')
	f := strings.Fields(string(text[i+1:]))
	if len(f) < 45 {
		return st, false
	}
	minor, err1 := strconv.ParseUint(f[10-3], 10, 64)
	major, err2 := strconv.ParseUint(f[12-3], 10, 64)
	st.startBrk, _ = strconv.ParseUint(f[47-3], 10, 64)
	st.faults = minor + major
	return st, err1 == nil && err2 == nil
}

// tgidOf is the process that thread tid belongs to, 0 when it has gone.
func tgidOf(tid int) int {
	text, err := os.ReadFile(procPath(tid, "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.Atoi(strings.TrimSpace(line))
	return n
}

// stackLimit is the process's RLIMIT_STACK in bytes, at most 1 GiB.
func stackLimit(pid int) uint64 {
	const most = 1 << 30
	var r unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_STACK, nil, &r) != nil || r.Cur > most {
		return most
	}
	return r.Cur
}

// program describes the file that a process runs now.
type program struct {
	name   string
	wide   bool // 64-bit
	setuid bool
}

func readProgram(pid int) (p program) {
	exe := procPath(pid, "exe")
	p.wide = true
	p.name, _ = os.Readlink(exe)
	var st unix.Stat_t
	if unix.Stat(exe, &st) == nil {
		p.setuid = st.Mode&unix.S_ISUID != 0 || st.Mode&(unix.S_ISGID|unix.S_IXGRP) == unix.S_ISGID|unix.S_IXGRP
	}
	f, err := os.Open(exe)
	if err != nil {
		return p
	}
	defer f.Close()
	var ident [5]byte // ELF magic, then the class: 1 is 32-bit
	if n, _ := f.Read(ident[:]); n == 5 && string(ident[:4]) == "\x7fELF" {
		p.wide = ident[4] != 1
	}
	return p
}
