package record

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// runFilter interprets the few instructions that stopFilter uses.
func runFilter(t *testing.T, prog []unix.SockFilter, data map[uint32]uint32) uint32 {
	t.Helper()
	var acc uint32
	for pc := 0; pc < len(prog); pc++ {
		switch in := prog[pc]; in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if acc == in.K {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d: code %#x", pc, in.Code)
		}
	}
	t.Fatal("the filter ends without a verdict")
	return 0
}

// TestFilterStopsMemoryCallsOnly asks the filter about every call.
func TestFilterStopsMemoryCallsOnly(t *testing.T) {
	const arch = unix.AUDIT_ARCH_X86_64
	prog := stopFilter(arch)
	for nr := range uint32(1000) {
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if slices.Contains(stoppedCalls, nr) {
			want = unix.SECCOMP_RET_TRACE
		}
		data := map[uint32]uint32{dataArch: arch, dataNr: nr, dataArg0: unix.PR_SET_NAME}
		if got := runFilter(t, prog, data); got != want {
			t.Errorf("call %d: %#x, want %#x", nr, got, want)
		}
		data[dataArch] = unix.AUDIT_ARCH_I386
		if got := runFilter(t, prog, data); got != unix.SECCOMP_RET_ALLOW {
			t.Errorf("call %d of another machine: %#x", nr, got)
		}
	}
	data := map[uint32]uint32{dataArch: arch, dataNr: unix.SYS_PRCTL, dataArg0: prSetTHPDisable}
	if got := runFilter(t, prog, data); got != unix.SECCOMP_RET_TRACE {
		t.Errorf("prctl(PR_SET_THP_DISABLE): %#x", got)
	}
}
