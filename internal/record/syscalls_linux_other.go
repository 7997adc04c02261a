//go:build linux && !amd64

package record

import (
	"runtime"

	"golang.org/x/sys/unix"
)

var forkCalls = []int64{unix.SYS_CLONE, unix.SYS_CLONE3}

// userSP is the stack pointer's bit in sample_regs_user.
// Linux: arch/arm64/include/uapi/asm/perf_regs.h:PERF_REG_ARM64_SP and
// arch/riscv/include/uapi/asm/perf_regs.h:PERF_REG_RISCV_SP (v6.18).
var userSP = func() uint64 {
	if runtime.GOARCH == "riscv64" {
		return 1 << 2
	}
	return 1 << 31
}()
