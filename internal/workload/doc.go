// Package workload holds the named benchmarks, each written once as streams.
package workload
