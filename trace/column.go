package trace

// A block keeps its events as columns, each coded for what it holds and packed
// on its own, so that each gets entropy tables of its own.
const (
	colCode   = iota // kind, and what changed: one byte an event
	colTimeLo        // time since the event before, in units: its low byte
	colTime          // and the rest
	colWho           // index of the thread, where it changed
	colThread        // TID and PID of a thread seen for the first time in the block
	colCPU           // CPU, where the thread's changed
	colAccess        // faults: Access
	colSlot          // faults: which of the thread's streams it continues
	colPage          // faults: pages from that stream's last one
	colOffLo         // faults: low byte of the offset in its page
	colOffHi         // faults: high nibble of it
	colIP            // faults: instruction pointer, from the last one
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
	codeFaultIP  = 0x3e // a fault with an instruction pointer
	pageBits     = 12   // how colOff splits an address; not the machine's page size
	numSlots     = 8
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

// who is what a block knows of one thread.
type who struct {
	tid, pid int32
	cpu      uint16
	ip       uint64
	streams  streams
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
