// Package calibrate measures what the running kernel charges for each
// primitive of mm.Work and fits a machine profile to it.
//
// A workload is a stream of operations, cut into steps. The same stream is
// executed twice: by a helper process on the real kernel, which times every
// step, and by the model, which tells the Work of every step. The profile is
// the vector of costs that prices the Work nearest to the times:
//
//	workload --helper process--> medians of kernel time --+
//	    |                                                 +--> fit --> hw.Profile
//	    +------mm.Machine------> Work of each step -------+
//
// Kernel time is what the kernel itself accounts as system time. It is the
// thread's processor time, which the scheduler keeps to the nanosecond, times
// the share of samples that found the processor in kernel mode.
package calibrate
