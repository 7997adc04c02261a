// Package kernel talks to the running kernel: settings, page maps (Linux
// only).
package kernel
