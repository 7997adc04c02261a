package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// field is where a tracepoint's field lies in its raw sample.
type field struct{ off, size int }

// tracepoint is one event of tracefs: its id and its fields.
type tracepoint struct {
	id     uint16
	fields map[string]field
}

// parseFormat reads a tracefs format file.
func parseFormat(text string) (tracepoint, error) {
	tp := tracepoint{fields: map[string]field{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if id, ok := strings.CutPrefix(line, "ID:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(id), 10, 16)
			if err != nil {
				return tp, fmt.Errorf("tracepoint format: id: %w", err)
			}
			tp.id = uint16(n)
			continue
		}
		decl, ok := strings.CutPrefix(line, "field:")
		if !ok {
			continue
		}
		name, f, err := parseField(decl)
		if err != nil {
			return tp, err
		}
		tp.fields[name] = f
	}
	if tp.id == 0 {
		return tp, errors.New("tracepoint format: no id")
	}
	return tp, nil
}

// parseField reads "unsigned long args[6]; offset:16; size:48; signed:0;".
func parseField(decl string) (string, field, error) {
	parts := strings.Split(decl, ";")
	words := strings.Fields(parts[0])
	if len(words) == 0 {
		return "", field{}, errors.New("tracepoint format: field without a name")
	}
	name, _, _ := strings.Cut(words[len(words)-1], "[")
	f := field{-1, -1}
	for _, p := range parts[1:] {
		key, val, _ := strings.Cut(strings.TrimSpace(p), ":")
		n, err := strconv.Atoi(val)
		switch {
		case key == "offset" && err == nil:
			f.off = n
		case key == "size" && err == nil:
			f.size = n
		}
	}
	if f.off < 0 || f.size < 0 || f.off > 1<<12 || f.size > 1<<12 {
		return "", field{}, fmt.Errorf("tracepoint format: field %s has no offset or size", name)
	}
	return name, f, nil
}

// tracefs is an open tracing file system.
type tracefs struct{ dir int }

// openTracefs opens the mounted tracefs, or else a mount of it that no other
// process sees.
func openTracefs() (*tracefs, error) {
	var first error
	for _, path := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
		if err != nil {
			continue
		}
		t := &tracefs{fd}
		if _, err = t.read("events/header_page"); err == nil {
			return t, nil
		}
		if first == nil || errors.Is(err, os.ErrPermission) {
			first = err
		}
		t.close()
	}
	t, err := mountTracefs()
	if err == nil {
		return t, nil
	}
	if first == nil || errors.Is(first, os.ErrNotExist) {
		first = err
	}
	return nil, fmt.Errorf("tracefs: %w", first)
}

func mountTracefs() (*tracefs, error) {
	fs, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open a new instance: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("create a new instance: %w", err)
	}
	dir, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("mount it: %w", err)
	}
	return &tracefs{dir}, nil
}

func (t *tracefs) close() { unix.Close(t.dir) }

func (t *tracefs) read(path string) (string, error) {
	fd, err := unix.Openat(t.dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return string(text), nil
}

// tracepoint reads the event system/name, which must have the named fields.
func (t *tracefs) tracepoint(event string, fields ...string) (tracepoint, error) {
	text, err := t.read("events/" + event + "/format")
	if err != nil {
		return tracepoint{}, fmt.Errorf("tracepoint: %w", err)
	}
	tp, err := parseFormat(text)
	if err != nil {
		return tracepoint{}, fmt.Errorf("tracepoint %s: %w", event, err)
	}
	for _, f := range fields {
		if _, ok := tp.fields[f]; !ok {
			return tracepoint{}, fmt.Errorf("tracepoint %s: this kernel's has no field %s", event, f)
		}
	}
	return tp, nil
}

// readFormats reads the layouts of all tracepoints that method root uses.
func readFormats() (*formats, error) {
	t, err := openTracefs()
	if err != nil {
		return nil, err
	}
	defer t.close()
	f := &formats{}
	var tp tracepoint
	get := func(event string, fields ...string) *tracepoint {
		if err == nil {
			tp, err = t.tracepoint(event, fields...)
		}
		return &tp
	}
	off := func(tp *tracepoint, name string) int { return tp.fields[name].off }

	p := get("exceptions/page_fault_user", "address", "ip", "error_code")
	f.faultUser, f.faultAddr, f.faultIP, f.faultCode = p.id, off(p, "address"), off(p, "ip"), off(p, "error_code")
	f.faultKernel = get("exceptions/page_fault_kernel", "address", "ip", "error_code").id
	p = get("raw_syscalls/sys_enter", "id", "args")
	f.enter, f.enterID, f.enterArgs = p.id, off(p, "id"), off(p, "args")
	p = get("raw_syscalls/sys_exit", "id", "ret")
	f.exit, f.exitID, f.exitRet = p.id, off(p, "id"), off(p, "ret")
	p = get("task/task_newtask", "pid", "clone_flags")
	f.newtask, f.newPID, f.newFlags = p.id, off(p, "pid"), off(p, "clone_flags")
	p = get("sched/sched_process_exec", "filename", "pid", "old_pid")
	f.exec, f.execName, f.execOld = p.id, off(p, "filename"), off(p, "old_pid")
	if err != nil {
		return nil, err
	}
	// The lock's tracepoint sharpens the order between threads; calls' entries
	// and exits do without it.
	if tp, err := t.tracepoint("mmap_lock/mmap_lock_acquire_returned", "write", "success"); err == nil {
		f.lock = tp.id
	}
	return f, nil
}
