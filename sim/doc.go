// Package sim is virtual CPUs, locks and time over mm and hw. It holds no model
// of memory of its own: a thread is a stream of operations, mm does each of
// them, hw says what it costs, and sim decides when it happens.
//
// Time is virtual and moves from event to event. A fault is played as a kernel
// does it: the way in, the lock that its path takes, mm's Begin, the time that
// Begin's work takes, the page-table lock, mm's Commit. Other threads do theirs
// in between, and that alone makes an attempt fail.
//
//	sim.go    Sim: New, Add, Run, Stats
//	event.go  the events in order of time
//	line.go   cache lines that processors take from one another
//	rwsem.go  mmap_lock: readers sleep, writers spin and steal
//	cpu.go    who runs where; time slices; sleeping and waking
//	thread.go a thread's operations
//	fault.go  the three paths of a fault
//	flush.go  TLB shootdown
//
// What is not modelled: interrupts and daemons, NUMA placement of kernel data,
// load balancing (any idle processor takes any thread), reader-spinning rwsems
// (5.3 to 5.10), and a writer's mark on a VMA stands from the moment that it has
// mmap_lock until it lets go, which is longer than the kernel's.
package sim
