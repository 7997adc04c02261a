// Package lab runs experiments: workloads under policies on targets, many
// times, to results.
package lab
