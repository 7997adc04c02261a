// Package vm boots a kernel in QEMU and runs this binary in it.
package vm
