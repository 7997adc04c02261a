// Package procfs renders a model machine's state as the text of /proc and /sys,
// in the kernel's own layout (v6.18), so that whatever reads a host reads a
// model.
//
// Only what the model knows is there: a file or a line that is missing means
// not modelled, never zero. Of the migrate types HighAtomic and Isolate, which
// the model does not have, the columns stand and hold zero. Two counters bear
// names of their own: pgalloc and allocstall, which a kernel keeps by zone.
//
// Linux files mirrored: mm/vmstat.c, fs/proc/meminfo.c, mm/huge_memory.c,
// mm/khugepaged.c.
package procfs
