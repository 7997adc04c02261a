package predict

import (
	"math/rand/v2"

	"github.com/hugelab/hugelab/mm"
)

// entropy says over how many pages a kernel moves each area of an address
// space when it runs a program.
type entropy struct {
	mmap, stack, brk uint64
}

// entropyOf knows the two architectures the model is used for; pages of other
// sizes than 4 kB only occur on arm64.
//
// x86-64: 28 bits for the top of the mmap area and, drawn again, for a
// position-independent program (Linux: arch/x86/mm/mmap.c:arch_mmap_rnd,
// fs/binfmt_elf.c:load_elf_binary, v6.18, with the default of
// CONFIG_ARCH_MMAP_RND_BITS; some distributions raise it); 22 bits for the
// stack (mm/util.c:randomize_stack_top); 1 GiB for the start of the heap since
// 6.9, 32 MiB before (arch/x86/kernel/process.c:arch_randomize_brk).
//
// arm64: 18 bits of pages by default for the mmap area with 4 kB pages, 18 bits
// for the stack, 1 GiB for the heap (mm/util.c:arch_randomize_brk).
//
// What is drawn inside a page (the stack pointer, to 16 bytes, by
// arch_align_stack) moves nothing that a model of pages could see.
func entropyOf(arch string, base mm.Bytes, v mm.Release) entropy {
	gib := uint64(1<<30) / uint64(base)
	if arch == "aarch64" || arch == "arm64" {
		return entropy{mmap: 1 << 18, stack: (1 << 18) * 4096 / uint64(base), brk: gib}
	}
	e := entropy{mmap: 1 << 28, stack: 1 << 22, brk: gib}
	if !v.Since(6, 9) {
		e.brk = uint64(32<<20) / uint64(base)
	}
	return e
}

// shifts makes the Config.Shift of one layout: a pure function of the seed, the
// layout's number and the number of the exec.
//
// Recorded addresses are one such draw already. A new draw on top of it is as
// even over the blocks of any huge page as a fresh one. The mmap area and the
// stack only move down, the mmap area by at least the stack's whole range, and
// the program and its heap only up, so that no two areas can meet.
func (e entropy) shifts(seed uint64, layout int) func(n int) mm.Shift {
	return func(n int) mm.Shift {
		rnd := rand.New(rand.NewPCG(seed, uint64(layout)<<32|uint64(uint32(n))))
		exe := int64(rnd.Uint64N(e.mmap))
		return mm.Shift{
			Exe:   exe,
			Heap:  exe + int64(rnd.Uint64N(e.brk)),
			Mmap:  -int64(e.stack) - int64(rnd.Uint64N(e.mmap)),
			Stack: -int64(rnd.Uint64N(e.stack)),
		}
	}
}
