// Package probe finds out what this machine can do for hugelab, and says why
// not and what to type.
package probe
