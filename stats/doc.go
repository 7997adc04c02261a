// Package stats holds samples, intervals and comparisons of measurements.
package stats
