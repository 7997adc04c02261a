package hw

import "github.com/hugelab/hugelab/mm"

// Key is one number that a machine may have.
type Key struct {
	Name    string
	Unit    string  // "" for counts and ratios; B, ns, GHz, GB/s
	Doc     string  // one line
	Default float64 // where a machine does not say
}

// workPrefix stands before the primitives of mm.Work: work.fault_user is what
// one costs, in nanoseconds.
const workPrefix = "work."

// Keys are all numbers that a machine may have. What a number means stands
// here and nowhere else.
var Keys = append([]Key{
	{"cpu.sockets", "", "processor packages", 1},
	{"cpu.cores", "", "cores in a package", 2},
	{"cpu.threads", "", "hardware threads in a core", 1},
	{"cpu.clock", "GHz", "clock with all cores busy", 2.5},
	{"cpu.width", "", "instructions a core finishes in a cycle at best", 4},
	{"cpu.fill_buffers", "", "missing lines that a core's loads and stores keep in flight", 10},
	{"cpu.queue", "", "missing lines that a core keeps in flight, prefetched ones among them", 16},
	{"virtual", "", "1 under a hypervisor, else 0", 0},
	{"processes", "", "processes of a workload; 0: as the workload has it", 0},

	{"page.size", "B", "the base page", 4096},
	{"nodes", "", "memory nodes", 1},
	{"memory.latency", "ns", "a load from memory of the own node", 90},
	{"memory.remote_latency", "ns", "a load from memory of another node", 140},
	{"memory.bandwidth", "GB/s", "what one node's memory moves, reads and writes together", 60},
	{"memory.spread", "", "how far cores lie apart in their time for a line: this share, either way", 0.05},
	{"memory.remote_bandwidth", "GB/s", "what the link between two nodes moves one way", 25},

	{"line", "B", "a cache line", 64},
	{"l1.size", "B", "first-level data cache of a core", 32 << 10},
	{"l1.ways", "", "its ways", 8},
	{"l1.latency", "ns", "a hit in it", 1.6},
	{"l2.size", "B", "second-level cache of a core", 256 << 10},
	{"l2.ways", "", "its ways", 8},
	{"l2.latency", "ns", "a hit in it", 4},
	{"llc.size", "B", "last-level cache of a package", 32 << 20},
	{"llc.ways", "", "its ways", 16},
	{"llc.latency", "ns", "a hit in it", 20},
	{"llc.slices", "", "its parts, to which lines are hashed; 0: one", 0},
	{"llc.inclusive", "", "1: holds what the nearer caches hold; 0: takes what they evict", 0},
	{"llc.policy", "", "which line goes: 0 the least recent, 1 by ages, 2 by ages or thinly inserted", 0},
	{"llc.prefetched", "", "of lines missing in it, the share that a prefetch asked for first", 0},

	{"tlb1.4k", "", "first-level data TLB: entries for base pages", 64},
	{"tlb1.4k.ways", "", "its ways; 0: fully associative", 4},
	{"tlb1.2m", "", "entries for 2 MB pages; 0: they use those of base pages", 32},
	{"tlb1.2m.ways", "", "its ways; 0: fully associative", 4},
	{"tlb1.1g", "", "entries for 1 GB pages; 0: they use those of base pages", 4},
	{"tlb1.1g.ways", "", "its ways; 0: fully associative", 0},
	{"tlb2", "", "second-level TLB: entries shared by base and 2 MB pages", 1536},
	{"tlb2.ways", "", "its ways; 0: fully associative", 6},
	{"tlb2.1g", "", "its entries for 1 GB pages; 0: none", 16},
	{"tlb2.1g.ways", "", "their ways; 0: fully associative", 4},
	{"tlb2.latency", "ns", "a hit in it, more than a hit in the first", 3},
	{"walk.step", "ns", "one look at a page table that a cache has", 5},
	{"walk.cache", "", "entries of a walker's cache of middle tables", 32},

	{"line.own", "ns", "an atomic operation on a cache line that the core has", 7},
	{"line.near", "ns", "one on a line that another core of the package wrote last", 50},
	{"line.far", "ns", "one on a line that another package wrote last", 140},
	{"lock.spin", "", "1: who wants mmap_lock for writing spins while its owner runs", 1},
	{"lock.wakeup", "ns", "from the waking of a thread to its first instruction, its processor idle", 4000},
	{"lock.wake", "ns", "what waking a thread takes the one that wakes it", 1000},
	{"sched.switch", "ns", "from one thread to the next on a processor", 1500},
	{"sched.slice", "ns", "a thread's time on a processor that others want", 3_000_000},
	{"ipi.send", "ns", "interrupting others for a TLB flush, for each", 100},
	{"ipi.wait", "ns", "and until the first has answered", 1500},
	{"ipi.handle", "ns", "what the flush takes each of them", 600},
	{"call.enter", "ns", "a system call's way in and out, without its work", 150},
	{"vma.lookup", "ns", "finding the VMA of an address", 50},
	{"kernel.factor", "", "all kernel work takes this many times what its prices say", 1},
	{"user.touch", "ns", "a program's access to a page that its TLB does not know", 25},

	{"walk.walkers", "", "walks that go on at the same time", 2},
	{"gup.fill", "", "instructions for an entry of the array that get_user_pages fills", 10},
	{"gup.head", "", "instructions for the look-up of a page's head in a loop over such an array", 11},
	{"gup.count", "", "instructions around an atomic change of a page's counts", 15},
	{"gup.call", "", "instructions for a call of get_user_pages with its walk, beside its entries", 600},

	{"copy.rate", "GB/s", "one core copying memory that no cache has, bytes copied", 4},
	{"clear.rate", "GB/s", "one core clearing memory that no cache has", 8},
	{"kernel.cold", "", "lines that a fault of a program at work finds only in the second-level cache", 120},
	{"syscall", "ns", "a system call of a compile that is none of memory's, on average", 600},
	{"migrate.scale", "", "the kernel's work of moving a page, beside the copy, by what the preset has", 1},
	{"clear.reads", "", "1: clearing reads a missing line first, as plain stores do; 0: it claims the line", 0},
}, workKeys()...)

// workKeys are the keys of the primitives' prices.
func workKeys() []Key {
	var keys []Key
	for i := range mm.NumPrims {
		keys = append(keys, Key{workPrefix + mm.Prim(i).String(), "ns", "one unit of this work of the kernel", 0})
	}
	return keys
}

// keyIndex is where a key stands in Keys; -1 when there is none.
func keyIndex(name string) int {
	if i, ok := keyAt[name]; ok {
		return i
	}
	return -1
}

var keyAt = func() map[string]int {
	at := make(map[string]int, len(Keys))
	for i, k := range Keys {
		at[k.Name] = i
	}
	return at
}()
