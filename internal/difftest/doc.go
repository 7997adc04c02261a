// Package difftest runs random memory programs on two executors and compares
// them.
package difftest
