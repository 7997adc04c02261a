package record

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// TestHugePagesOffForTheTreeAlone also shows where COMMAND's stdout goes.
func TestHugePagesOffForTheTreeAlone(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		out := recordStderr(t, "thpoff", w, quiet)
		w.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if out.Exit != 0 {
			t.Errorf("huge pages are not off in the command")
		}
		if got := strings.Contains(string(text), "on stdout"); got == quiet {
			t.Errorf("quiet %v: stderr got %q", quiet, text)
		}
	}
	off, _, _ := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_GET_THP_DISABLE, 0, 0, 0, 0, 0)
	if off != 0 {
		t.Error("huge pages are off in the recorder")
	}
}

func recordStderr(t *testing.T, name string, w *os.File, quiet bool) trace.Footer {
	t.Helper()
	needRoot(t)
	t.Setenv("RECORD_TEST_PROGRAM", name)
	foot, err := Run(context.Background(), Options{
		Command: []string{"/proc/self/exe"}, Method: trace.MethodRoot, sink: &events{}, Stderr: w, Quiet: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	return foot
}

// TestEnvironmentIsUntouched: the stub adds nothing that COMMAND could see.
func TestEnvironmentIsUntouched(t *testing.T) {
	needRoot(t)
	plain, err := exec.Command("/bin/sh", "-c", "env | sort | grep -v ^_=; ls /proc/self/fd | wc -l").Output()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), Options{
		Command: []string{"/bin/sh", "-c", "env | sort | grep -v ^_=; ls /proc/self/fd | wc -l"},
		Method:  trace.MethodRoot, sink: &events{}, Stderr: w,
	})
	w.Close()
	text, _ := io.ReadAll(r)
	if err != nil || string(text) != string(plain) {
		t.Errorf("recorded, %v:\n%s\nplain:\n%s", err, text, plain)
	}
}

// TestStubIsNotCounted: what the stub used until its exec is known, and taken
// out of what the command used.
func TestStubIsNotCounted(t *testing.T) {
	o := Options{Command: []string{"/bin/true"}}
	c, err := startChild(&o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.release(); err != nil {
		t.Fatal(err)
	}
	st, err := c.wait()
	if err != nil {
		t.Fatal(err)
	}
	use, err := c.started()
	all := mm.Nanos(st.UserTime() + st.SystemTime())
	if err != nil || use.user+use.system <= 0 || use.user+use.system > all || use.maxRSS == 0 {
		t.Errorf("the stub used %+v of %v, %v", use, all, err)
	}
}

// elf32 is a 32-bit program that maps a page and exits with 5.
func elf32() []byte {
	code := []byte{
		0xb8, 90, 0, 0, 0, // mov eax, 90 (old mmap; with ebx 0 it is refused)
		0x31, 0xdb, // xor ebx, ebx
		0xcd, 0x80, // int 0x80
		0xb8, 1, 0, 0, 0, // mov eax, 1 (exit)
		0xbb, 5, 0, 0, 0, // mov ebx, 5
		0xcd, 0x80,
	}
	b := append([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1}, make([]byte, 9)...)
	u16 := func(v uint16) { b = binary.LittleEndian.AppendUint16(b, v) }
	u32 := func(v uint32) { b = binary.LittleEndian.AppendUint32(b, v) }
	const base = 0x08048000
	u16(2) // executable
	u16(3) // i386
	u32(1)
	u32(base + 84)
	u32(52) // program headers
	u32(0)
	u32(0)
	for _, v := range []uint16{52, 32, 1, 0, 0, 0} {
		u16(v)
	}
	size := uint32(84 + len(code))
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 4096} {
		u32(v)
	}
	return append(b, code...)
}

func Test32BitProgramIsSaid(t *testing.T) {
	needRoot(t)
	path := filepath.Join(t.TempDir(), "p32")
	if err := os.WriteFile(path, elf32(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(path).Run(); err != nil && !strings.Contains(err.Error(), "exit status 5") {
		t.Skipf("this kernel runs no 32-bit programs: %v", err)
	}
	out := &events{}
	foot, err := Run(context.Background(), Options{Command: []string{path}, Method: trace.MethodRoot, sink: out})
	if err != nil || foot.Exit != 5 {
		t.Fatalf("exit %d, %v", foot.Exit, err)
	}
	if !strings.Contains(strings.Join(foot.Notes, "\n"), "32-bit") {
		t.Errorf("notes %q do not say that the program is a 32-bit one", foot.Notes)
	}
	for _, e := range out.list {
		if e.Kind == trace.KindExec && e.C != 1 || e.Kind == trace.KindMmap {
			t.Errorf("event %+v of a 32-bit program", e)
		}
	}
}
