package difftest

import "github.com/hugelab/hugelab/mm"

// filesLength is how long the stand-in for all files is: one sparse file, of
// which every mapping of a file has a part of its own. A recorded fault finds a
// hole there, as nothing but recorded faults fills it, and is a fault again.
const filesLength = 1 << 46

// replayFiles hands out the parts.
type replayFiles struct {
	next  uint64
	parts map[mm.Region]*filePart
}

type filePart struct {
	at, length uint64
	users      int // spaces
}

func (f *replayFiles) init() { f.parts = map[mm.Region]*filePart{} }

// take gives a region a part; false: there is no room.
func (f *replayFiles) take(r mm.Region, length uint64) (at uint64, ok bool) {
	// Faults around one must not reach the next part.
	const apart = 1 << 21
	length = (length + apart - 1) &^ (apart - 1)
	if length > filesLength-f.next {
		return 0, false
	}
	p := &filePart{at: f.next, length: length, users: 1}
	f.parts[r] = p
	f.next += length
	return p.at, true
}

// share adds a user to each region's part.
func (f *replayFiles) share(all []mm.Region) {
	for _, r := range all {
		f.parts[r].users++
	}
}

// drop takes a user away from each, and gives the parts that nobody uses.
func (f *replayFiles) drop(all []mm.Region) (free []filePart) {
	for _, r := range all {
		p := f.parts[r]
		if p.users--; p.users == 0 {
			free = append(free, *p)
			delete(f.parts, r)
		}
	}
	return free
}
