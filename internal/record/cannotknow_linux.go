package record

import "github.com/hugelab/hugelab/trace"

// tracedCannotKnow is what the two unprivileged methods cannot see, in
// sentences for the recording's header.
func tracedCannotKnow(m trace.Method) []string {
	both := []string{
		"touches of pages that were present already: the hardware takes no fault for them",
		"what a page was filled with",
		"the ranges of userfaultfd, and memory calls of 32-bit programs",
		"a page that the kernel filled in and a call took away on another thread between two looks",
	}
	switch m {
	case trace.MethodPerf:
		return append(both,
			"the time and order, within one interval between looks, of pages that the kernel touched for the "+
				"program (read(2) into a buffer and the like)",
			"a page that was read and then written by the kernel within one interval counts as written",
		)
	case trace.MethodPagemap:
		return append(both,
			"the order of touches within one interval between looks (at most about 50 ms): told by address, "+
				"a stack's from its top",
			"which pages were read before they were written within one interval: they count as written, once",
			"which faults were on files, and which copied a page after fork: counted from the kernel's own "+
				"counter as other faults, which no policy changes",
			"which thread touched a page, and whether in user or kernel mode",
		)
	}
	return nil
}
