package mm

const tableChunkShift = 6 // tables in one piece of memory

// tablePool holds all page tables by slot; slot 0 is never used. A free table
// is all zero.
//
// Beside the entries stands one bit for each, all tables' bits in one piece:
// 64 bytes a table of 512 entries, so that the bits of a gigabyte of small
// pages fill 32 kB, where its entries fill 2 MB. They let a first touch know
// that its entry is none without reading it, and reading it is what a fault at
// a random address would wait for. The rule, which Check holds the machine to,
// is about tables of PTEs only:
//
//	An entry whose bit is clear is none. An entry whose bit is set may be anything.
//
// So whoever gives a none entry of a PTE table another value marks it (mark,
// markRange), and nobody unmarks an entry that is not none. Entries that become
// none may stay marked, which costs time and no more; zapping and moving unmark
// them, so that memory given back and touched again is as fast as fresh memory.
//
// Writing such an entry is not waited for, but while its line comes from memory
// the stores behind it queue up. So a first touch leaves its entry to be written
// later, together with others, all of whose lines then come at once. An entry
// that is still to be written is marked; at and entry, by which alone the rest
// of the package comes to entries, write all of them before anything else. A
// slice of entries is therefore never kept across a Touch.
type tablePool struct {
	bits   uint // log2 of entries in a table
	chunks [][]uint64
	used   []uint64 // the bits, 2^(bits-6) words a table
	late   [lateLen]lateEntry
	lates  int // how many entries of late are to be written
	meta   []tableMeta
	free   []uint32
}

// lateEntry is an entry that is to be written: at says where, the slot times
// the length of a table plus the index.
type lateEntry struct{ at, entry uint64 }

const lateLen = 32 // as many as have misses to memory under way at once, and more

// writeLater gives entry i of a PTE table, which is none, another value: the
// next at or entry sees it.
func (p *tablePool) writeLater(slot uint32, i int, e uint64) {
	p.late[p.lates&(lateLen-1)] = lateEntry{uint64(slot)<<(p.bits&63) + uint64(i), e}
	if p.lates++; p.lates == lateLen {
		p.writeLate()
	}
}

// writeLate writes what is late.
func (p *tablePool) writeLate() {
	for _, l := range p.late[:p.lates] {
		p.chunks[l.at>>((p.bits+tableChunkShift)&63)][l.at&(1<<((p.bits+tableChunkShift)&63)-1)] = l.entry
	}
	p.lates = 0
}

// at is the entries of a table.
func (p *tablePool) at(slot uint32) []uint64 {
	if p.lates > 0 {
		p.writeLate()
	}
	from := int(slot&(1<<tableChunkShift-1)) << p.bits
	return p.chunks[slot>>tableChunkShift][from : from+1<<p.bits]
}

// entry is the entry i of a table.
func (p *tablePool) entry(slot uint32, i int) *uint64 {
	if p.lates > 0 {
		p.writeLate()
	}
	return p.raw(slot, i)
}

// raw is entry of a PMD entry, which is never late.
func (p *tablePool) raw(slot uint32, i int) *uint64 {
	return &p.chunks[slot>>tableChunkShift][int(slot&(1<<tableChunkShift-1))<<(p.bits&63)+i]
}

// usedWord is the word of marks that holds the one of entry i, and its bit there.
func (p *tablePool) usedWord(slot uint32, i int) (w *uint64, bit uint64) {
	return &p.used[int(slot)<<((p.bits-6)&63)+i>>6], 1 << (i & 63)
}

// mark says that entry i of a table may be other than none.
func (p *tablePool) mark(slot uint32, i int) {
	w, bit := p.usedWord(slot, i)
	*w |= bit
}

// markRange marks n entries from i on.
func (p *tablePool) markRange(slot uint32, i, n int) {
	p.eachUsed(slot, i, n, func(w *uint64, mask uint64) bool {
		*w |= mask
		return true
	})
}

// unmarkRange says that n entries from i on are none.
func (p *tablePool) unmarkRange(slot uint32, i, n int) {
	p.eachUsed(slot, i, n, func(w *uint64, mask uint64) bool {
		*w &^= mask
		return true
	})
}

// none says whether 2^o entries from i on are all none. Where no mark is set
// it need not look at them.
func (p *tablePool) none(slot uint32, i int, o Order) bool {
	n := 1 << o
	if p.eachUsed(slot, i, n, func(w *uint64, mask uint64) bool { return *w&mask == 0 }) {
		return true
	}
	for _, e := range p.at(slot)[i : i+n] {
		if e != 0 {
			return false
		}
	}
	return true
}

// eachUsed calls f for every word that holds marks of n entries from i on,
// with the bits that are theirs, while f returns true; it says whether it did
// to the end.
func (p *tablePool) eachUsed(slot uint32, i, n int, f func(w *uint64, mask uint64) bool) bool {
	for n > 0 {
		w, _ := p.usedWord(slot, i)
		k := min(n, 64-i&63)
		if !f(w, ^uint64(0)>>(64-k)<<(i&63)) {
			return false
		}
		i += k
		n -= k
	}
	return true
}

func (p *tablePool) get() uint32 {
	if k := len(p.free); k > 0 {
		slot := p.free[k-1]
		p.free = p.free[:k-1]
		return slot
	}
	if len(p.meta) == 0 {
		p.meta = append(p.meta, tableMeta{})
	}
	slot := uint32(len(p.meta))
	p.meta = append(p.meta, tableMeta{})
	if int(slot>>tableChunkShift) >= len(p.chunks) {
		p.chunks = append(p.chunks, make([]uint64, 1<<(p.bits+tableChunkShift)))
		p.used = append(p.used, make([]uint64, 1<<(p.bits+tableChunkShift-6))...)
	}
	return slot
}

func (p *tablePool) put(slot uint32) {
	clear(p.at(slot))
	p.unmarkRange(slot, 0, 1<<p.bits)
	p.meta[slot] = tableMeta{}
	p.free = append(p.free, slot)
}
