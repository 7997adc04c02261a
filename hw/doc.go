// Package hw says what things cost: machine profiles that price the work of
// package mm, later caches and TLBs. It is pure.
package hw
