package record

import "golang.org/x/sys/unix"

var forkCalls = []int64{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CLONE, unix.SYS_CLONE3}

// userSP is the stack pointer's bit in sample_regs_user.
// Linux: arch/x86/include/uapi/asm/perf_regs.h:PERF_REG_X86_SP (v6.18).
const userSP = 1 << 7
