// Package record makes a recording of a live program (Linux only; elsewhere
// it says so).
package record
