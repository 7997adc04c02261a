package trace

// Values of Linux's system-call interface, the same on every architecture that
// a recording comes from (x86-64, arm64), named here so that a recording reads
// on any system. Linux: include/uapi/linux/mman.h, asm-generic/mman-common.h,
// sched.h, prctl.h, mempolicy.h (v6.18).
const (
	mapTypeMask       = 0x0f
	mapTypeShared     = 0x01
	mapTypeSharedVal  = 0x03 // MAP_SHARED_VALIDATE
	mapTypeDroppable  = 0x08
	mapFixed          = 0x10
	mapAnonymous      = 0x20
	mapGrowsDown      = 0x100
	mapLocked         = 0x2000
	mapNoReserve      = 0x4000
	mapPopulate       = 0x8000
	mapNonBlock       = 0x10000
	mapStack          = 0x20000
	mapHugetlb        = 0x40000
	mapFixedNoReplace = 0x100000
	mapHugeShift      = 26 // log2 of the huge page's size in the bits above
	mapHugeMask       = 0x3f

	mremapMayMove   = 1
	mremapFixed     = 2
	mremapDontUnmap = 4
	mremapFlags     = 0xfff // the rest of D is the new address

	cloneVM = 0x100

	mlockOnFault = 1

	prTHPDisableExceptAdvised = 1 << 1

	maxErrno = 4095
)

// fileCertain in D of a KindMmap says that a file backs it.
const fileCertain = 1 << 32

// refused says that the kernel refused the call.
func refused(ret int64) bool { return ret < 0 && ret >= -maxErrno }

// partial says that a refused call may have done part of its work before it
// met what it refused: a locked mapping, a hole. The model comes to the same
// refusal at the same place. Linux: mm/madvise.c:madvise_walk_vmas,
// mm/mprotect.c:do_mprotect_pkey (v6.18).
func partial(e *Event) bool {
	const enomem, einval = -12, -22
	switch e.Kind {
	case KindMadvise:
		return e.Ret == enomem || e.Ret == einval
	case KindMprotect:
		return e.Ret == enomem
	}
	return false
}
