package trace

// A block keeps its events as columns, each coded for what it holds and packed
// on its own, so that each gets entropy tables of its own.
const (
	colCode   = iota // kind, and what changed: one byte an event
	colTimeLo        // time since the event before, in units: its low byte
	colTime          // and the rest, signed
	colWho           // index of the thread, where it changed
	colThread        // TID and PID of a thread seen for the first time in the block
	colCPU           // CPU, where the thread's changed
	colAccess        // faults: Access
	colSlot          // faults: which of the thread's streams it continues
	colPage          // faults: pages from that stream's last one
	colSite          // faults: which of the thread's last fault sites it is from, and if the offset is another
	colIP            // faults from another site: instruction pointer, from the last one
	colOffLo         // faults where colSite says so: low byte of the offset in its page
	colOffHi         // faults where colSite says so: high nibble of it
	colMask          // others: which fields are not zero
	colA
	colB
	colC
	colD
	colRet
	colName // index of the name
	colText // names seen for the first time in the block
	numCols
)

// Bits of colCode.
const (
	codeKind     = 0x3f
	codeWho      = 0x40 // another thread than the event before: colWho
	codeCPU      = 0x80 // another CPU than the thread's last: colCPU
	codeGeneral  = 0x3f // a fault coded like any other event: it has fields faults do not use
	pageBits     = 12   // how colOff splits an address; not the machine's page size
	numSlots     = 8
	maxSites     = 126
	siteNew      = 0xff // in colSite; else a place in sites, twice, plus siteMoved
	siteMoved    = 1
	farPages     = 1 << 11 // a stream is not continued from further away
	maxTextBytes = 32 << 20
)

// Bits of colMask.
const (
	maskA = 1 << iota
	maskB
	maskC
	maskD
	maskRet
	maskName
	maskAccess
)

// streams predicts the next fault of one thread: programs touch memory along
// several lines at once, each mostly rising. The stream used last stands first.
type streams [numSlots]uint64

// code finds the stream nearest to page and moves it there. Far from all,
// page begins a new stream in place of the oldest.
func (s *streams) code(page uint64) (slot int, delta uint64) {
	best := distance(page, s[0])
	for i := 1; i < numSlots && best > 1; i++ {
		if d := distance(page, s[i]); d < best {
			slot, best = i, d
		}
	}
	delta = page - s[slot]
	s.use(slot, best, page)
	return slot, delta
}

// decode is code's reverse.
func (s *streams) decode(slot int, delta uint64) (page uint64) {
	page = s[slot] + delta
	s.use(slot, distance(page, s[slot]), page)
	return page
}

func (s *streams) use(slot int, dist, page uint64) {
	if dist > farPages {
		slot = numSlots - 1
	}
	for ; slot > 0; slot-- {
		s[slot] = s[slot-1]
	}
	s[0] = page
}

func distance(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return b - a
}

// site is an instruction that faulted, and where in its page it last did so: a
// loop that fills memory does so at the same offset each time. All faults of a
// recording without instruction pointers are from site 0.
type site struct {
	ip     uint64
	offset uint16
}

// sites are the last sites of one thread, the latest first.
type sites []site

// find is the place of ip in s, -1 if it is not there.
func (s sites) find(ip uint64) int {
	for i := range s {
		if s[i].ip == ip {
			return i
		}
	}
	return -1
}

// use moves the site at place i to the front, or puts a new one there when i
// is -1; the oldest goes when there are too many.
func (s *sites) use(i int, now site) {
	if i < 0 {
		if len(*s) < maxSites {
			*s = append(*s, site{})
		}
		i = len(*s) - 1
	}
	copy((*s)[1:i+1], (*s)[:i])
	(*s)[0] = now
}

// who is what a block knows of one thread.
type who struct {
	tid, pid int32
	cpu      uint16
	ip       uint64 // of the last fault
	streams  streams
	sites    sites
}

// addThread appends a thread, with the storage of one of an earlier block.
func addThread(list []who, tid, pid int32) []who {
	if len(list) == cap(list) {
		return append(list, who{tid: tid, pid: pid})
	}
	list = list[:len(list)+1]
	w := &list[len(list)-1]
	*w = who{tid: tid, pid: pid, sites: w.sites[:0]}
	return list
}

// calls predicts the addresses of events other than faults.
type calls struct{ last uint64 }

// retBase is what Ret is coded relative to.
func (c *calls) retBase(a uint64) uint64 {
	if a != 0 {
		return a
	}
	return c.last
}

func (c *calls) use(a, ret uint64) {
	switch {
	case int64(ret) > 1<<pageBits:
		c.last = ret
	case a > 1<<pageBits:
		c.last = a
	}
}
