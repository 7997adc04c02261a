// Package lab runs experiments: workloads under policies on targets, many
// times, to results.
//
// Verify is the one that holds a prediction against the kernel. A command runs
// for real under each policy; for every run the bases of its address spaces are
// read at each exec, and the recording is predicted again at just those bases.
// Randomisation is then no part of the error.
package lab
