package difftest

import "github.com/hugelab/hugelab/mm"

// floats are the regions that the kernel placed: how far each lies from the
// address that stands for it until it is known, which is its slot's. Executors
// keep them, each by its own results.
type floats []int64

// here is the action with the addresses that it has by now; it may be a itself.
func (f *floats) here(a *action, room *action) *action {
	if a.rel == 0 && a.relTo == 0 {
		return a
	}
	*room = *a
	by, byTo := f.by(a.rel), f.by(a.relTo)
	room.at += mm.VA(by)
	room.ops[0].Page += uint64(by / pageSize)
	if a.floats != 0 && a.op().Kind == mm.OpMap {
		room.ops[0].Arg = uint64(room.at) // a hint is absolute
	}
	if a.to != 0 {
		room.to += mm.VA(byTo)
		room.ops[1].Page += uint64(byTo / pageSize)
	}
	return room
}

func (f *floats) by(id int) int64 {
	if id < len(*f) {
		return (*f)[id]
	}
	return 0
}

// landed notes where the region that a made lies.
func (f *floats) landed(a *action, at mm.VA) {
	if a.floats == 0 {
		return
	}
	for len(*f) <= a.floats {
		*f = append(*f, 0)
	}
	(*f)[a.floats] = int64(at) - int64(a.virtual)
}
