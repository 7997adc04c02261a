// Package sim is virtual CPUs, locks and time over mm and hw. It holds no
// model of memory of its own.
package sim
