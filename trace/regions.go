package trace

import "github.com/hugelab/hugelab/mm"

// Names of regions that are no file.
const (
	nameAnonymous = "anonymous"
	nameHeap      = "[heap]"
	nameStack     = "[stack]"
	nameShm       = "[shm]"
	nameShared    = "shared anonymous"
)

// regions numbers mappings and keeps their names and faults. Numbers are never
// used twice, so that a report by region means one mapping.
type regions struct {
	names  []string // distinct ones
	byName map[string]uint32
	named  []uint32 // by Region: index in names
	faults []uint64 // by Region
}

func (r *regions) init() {
	r.byName = map[string]uint32{}
	r.add("")
}

// add makes a region.
func (r *regions) add(name string) mm.Region {
	i, ok := r.byName[name]
	if !ok {
		i = uint32(len(r.names))
		r.names = append(r.names, name)
		r.byName[name] = i
	}
	r.named = append(r.named, i)
	r.faults = append(r.faults, 0)
	return mm.Region(len(r.named) - 1)
}

func (r *regions) name(n mm.Region) string {
	if int(n) >= len(r.named) {
		return ""
	}
	return r.names[r.named[n]]
}
