package mm

// Config describes the machine that New builds.
type Config struct {
	Nodes    []Node
	CPUs     int   // processors; 0 means 1
	BasePage Bytes // 4096, 16384 or 65536; 0 means 4096
	Rules    Rules
	Policy   Policy
	Free     *FreeState // memory as a real host has it, or nil for fresh memory
	Limit    Pages      // memory cgroup limit, 0 for none
	Vmemmap  bool       // struct pages lie in the nodes' memory, 1/64 of it with 4 kB pages
	Seed     uint64
	ByRegion bool // keep RegionUsage

	// StopAtOOM makes Exec return ErrOOM after the operation of which a fault
	// found no memory, where Linux would kill the program.
	StopAtOOM bool

	// Still holds khugepaged still: it never does a pass, as on a host where it
	// sleeps with another process registered.
	Still bool

	// AsRecorded places every mapping at the address its operation carries.
	// Otherwise maps present at exec keep their recorded addresses, moved by
	// Shift, and the kernel's own placement decides about all later ones.
	AsRecorded bool

	// Shift says how far randomisation moved each area of the n-th exec'd
	// address space (n from 0) away from the recorded one; nil means nowhere.
	// It must be a pure function.
	Shift func(n int) Shift
}

// Shift is how far, in pages, the areas of one address space lie from where
// the recording had them.
type Shift struct {
	Exe, Heap, Mmap, Stack int64
}

// Area says which base of an address space a map present at exec belongs to:
// the Aux of an OpMap with MapAtExec.
type Area uint8

// Areas. A fixed area (a program that is not position-independent) never moves.
const (
	AreaFixed Area = iota
	AreaExe
	AreaHeap // length 0 at exec registers where the heap will start
	AreaMmap
	AreaStack
)

// Node is one NUMA node's memory.
type Node struct {
	Mem  Bytes
	CPUs []CPU // nil: all processors not named by another node
}

// FreeState is the free memory of a host: blocks by node, zone and order, as
// /proc/buddyinfo gives them.
type FreeState struct {
	Zones []FreeZone
}

// FreeZone is one line of /proc/buddyinfo, and the zone's managed pages where
// /proc/zoneinfo was read too (0 if not).
type FreeZone struct {
	Node    NodeID
	Name    string   // DMA, DMA32, Normal, Movable
	Blocks  []uint64 // free blocks, indexed by order
	Managed Pages
}
