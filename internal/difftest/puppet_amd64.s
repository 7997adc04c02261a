//go:build linux

#include "textflag.h"

// The code of a puppet: a process that does what it is told, one system call or
// one run of touches at a time, and whose address space holds nothing else that
// could fault. It is copied into an ELF file of its own (puppet_linux.go) and
// never runs in this process. It must not leave its page or use its stack.
//
//	R12  start of its area: command, reply, two struct rusage; behind them the signal stack
//	R13  descriptor of its socket
//	R14  touches that were refused
//	R15  result
//
// A command is eight words: what, then arguments. The reply is eight words:
// result, refused touches, minor faults before and after, major faults before
// and after.

#define COMMAND 0
#define REPLY 64
#define BEFORE 128
#define AFTER 272
#define MINFLT 64
#define MAJFLT 72

TEXT ·puppetCode(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ $0x400000, R12
	MOVQ $3, R13

	// A new process, the first or a fork's child, says hello.
hello:
	XORL R14, R14
	XORL R15, R15
	JMP  area

	// All pages of both areas, one for each thread, are made writable here, outside
	// what is measured: a fork has taken that away.
area:
	MOVQ $0x400000, AX
	MOVL $32, CX
each:
	ORB  $0, 0(AX)
	ADDQ $4096, AX
	DECL CX
	JNE  each

	MOVQ R15, REPLY(R12)
	MOVQ R14, (REPLY+8)(R12)
	MOVQ (BEFORE+MINFLT)(R12), AX
	MOVQ AX, (REPLY+16)(R12)
	MOVQ (AFTER+MINFLT)(R12), AX
	MOVQ AX, (REPLY+24)(R12)
	MOVQ (BEFORE+MAJFLT)(R12), AX
	MOVQ AX, (REPLY+32)(R12)
	MOVQ (AFTER+MAJFLT)(R12), AX
	MOVQ AX, (REPLY+40)(R12)
	MOVL $1, AX // write
	MOVQ R13, DI
	LEAQ REPLY(R12), SI
	MOVL $64, DX
	SYSCALL

	XORL AX, AX // read
	MOVQ R13, DI
	MOVQ R12, SI
	MOVL $64, DX
	SYSCALL
	CMPQ AX, $64
	JNE  quit
	MOVL $98, AX // getrusage
	XORL DI, DI
	LEAQ BEFORE(R12), SI
	SYSCALL
	XORL R14, R14
	MOVQ COMMAND(R12), AX
	CMPQ AX, $1
	JEQ  touch
	CMPQ AX, $2
	JEQ  fork
	CMPQ AX, $3
	JEQ  poke
	CMPQ AX, $4
	JEQ  thread
	CMPQ AX, $5
	JEQ  spin

	MOVQ 8(R12), AX // any system call
	MOVQ 16(R12), DI
	MOVQ 24(R12), SI
	MOVQ 32(R12), DX
	MOVQ 40(R12), R10
	MOVQ 48(R12), R8
	MOVQ 56(R12), R9
	SYSCALL

done:
	MOVQ AX, R15
	MOVL $98, AX // getrusage
	XORL DI, DI
	LEAQ AFTER(R12), SI
	SYSCALL
	JMP  area

	// Touch: address, count, step, how (0 read, 1 write, 2 write zero). The
	// instructions that touch have five bytes each, which the signal handler
	// skips.
touch:
	MOVQ 8(R12), R8
	MOVQ 16(R12), R9
	MOVQ 24(R12), R10
	MOVQ 32(R12), AX
touchOne:
	CMPQ R9, $0
	JEQ  touched
	CMPQ AX, $1
	JEQ  write
	CMPQ AX, $2
	JEQ  zero
	BYTE $0x41; BYTE $0x0f; BYTE $0xb6; BYTE $0x58; BYTE $0x00 // movzbl 0(r8), ebx
	JMP  touchNext
write:
	BYTE $0x41; BYTE $0xc6; BYTE $0x40; BYTE $0x08; BYTE $0x01 // movb $1, 8(r8)
	JMP  touchNext
zero:
	BYTE $0x41; BYTE $0xc6; BYTE $0x40; BYTE $0x00; BYTE $0x00 // movb $0, 0(r8)
touchNext:
	ADDQ R10, R8
	DECQ R9
	JMP  touchOne
touched:
	XORL AX, AX
	JMP  done

	// Fork: descriptor of the child's socket.
fork:
	MOVL $57, AX
	SYSCALL
	CMPQ AX, $0
	JNE  done
	MOVQ 8(R12), R13
	JMP  hello

	// Thread: descriptor of its socket, start of its area. It has no stack, but
	// none is used; its signal stack is set by a command.
thread:
	MOVL $56, AX // clone
	MOVL $0x50f00, DI // VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	MOVQ 8(R12), R8
	MOVQ 16(R12), R9
	SYSCALL
	CMPQ AX, $0
	JNE  done
	MOVQ R8, R13
	MOVQ R9, R12
	JMP  hello

	// Poke: address, value.
poke:
	MOVQ 8(R12), R8
	MOVQ 16(R12), AX
	MOVQ AX, 0(R8)
	XORL AX, AX
	JMP  done

	// Spin: address of two words, most rounds. It sets the second word and goes
	// on until the first is not zero.
spin:
	MOVQ 8(R12), R8
	MOVQ 16(R12), R9
	MOVL $1, 4(R8)
spinOne:
	CMPQ R9, $0
	JEQ  touched
	CMPL 0(R8), $0
	JNE  touched
	PAUSE
	DECQ R9
	JMP  spinOne

quit:
	MOVL $231, AX // exit_group
	XORL DI, DI
	SYSCALL
	BYTE $0x0f; BYTE $0x0b; BYTE $0x0f; BYTE $0x0b; BYTE $'e'; BYTE $'n'; BYTE $'d'; BYTE $'1'

// The handler of SIGSEGV and SIGBUS counts in the saved R14 and skips the
// instruction. SIGBUS counts in the upper half too.
TEXT ·puppetSignal(SB), NOSPLIT|NOFRAME, $0-0
	INCQ 88(DX)
	CMPL DI, $7
	JNE  segv
	INCL 92(DX)
segv:
	ADDQ $5, 168(DX)
	MOVL $15, AX // rt_sigreturn; RSP stands at the restorer's address, which is skipped
	ADDQ $8, SP
	SYSCALL
	BYTE $0x0f; BYTE $0x0b; BYTE $0x0f; BYTE $0x0b; BYTE $'e'; BYTE $'n'; BYTE $'d'; BYTE $'1'

// func puppetText() (code, signal uintptr)
TEXT ·puppetText(SB), NOSPLIT, $0-16
	LEAQ ·puppetCode(SB), AX
	MOVQ AX, code+0(FP)
	LEAQ ·puppetSignal(SB), AX
	MOVQ AX, signal+8(FP)
	RET
