package hw

import (
	"fmt"
	"math/bits"
)

// Policy says which line a full set gives up.
type Policy uint8

const (
	// LRU gives up the line that was used longest ago.
	LRU Policy = iota
	// Ages keeps an age of two bits a line: 1 when it comes, 1 after a hit at
	// age 2 or 3, else 0. The leftmost line of age 3 goes; whenever none has
	// that age, all grow older until one has. It is QLRU_H11_M1_R0_U0 in the
	// names of nanoBench (Abel and Reineke, ISPASS 2020).
	Ages
	// Duel lets two kinds of leader sets find out whether Ages or Ages with
	// thin insertion (a line comes at age 3 but for one in sixteen) misses
	// less; all other sets follow the better. It is what nanoBench found in
	// the last-level caches of Ivy Bridge to Broadwell.
	Duel
)

// Geometry is a cache's shape.
type Geometry struct {
	Sets   int // of a slice; a power of two
	Ways   int
	Slices int // parts to which lines are hashed; at least 1
	Policy Policy
	Sample uint // only sets whose low Sample bits are zero are simulated
}

// Note is what a cache keeps beside a line, in noteBits bits.
type Note uint64

// Dirty notes that the line changed. The other bits are the caller's.
const Dirty Note = 1

// An entry is a line's number, one more so that zero is a free way, over its
// note.
const (
	noteBits = 12
	noteMask = 1<<noteBits - 1
)

// Cache is the tags of a set-associative cache. It is told line numbers
// (addresses over the size of a line) and keeps no data. Lines that a sampled
// cache leaves out must not be shown to it; Hierarchy sees to that.
//
// A set is its entries, a byte of each line's hash to find it by, eight at a
// time, and a word of order:
//
//	LRU, up to 16 ways:  numbers of ways, four bits each, the last used lowest
//	LRU of more ways:    none; the entries themselves stand in order of use
//	Ages and Duel:       ages, two bits each, way 0 lowest; a free way has 3
type Cache struct {
	ways   int
	words  int // of bytes of hashes, a set
	mask   uint64
	slices uint64
	shift  uint // sampled lines differ above this bit
	policy Policy
	listed bool // LRU of more than 16 ways

	data  []uint64 // sets, each its order, its hashes, its entries
	first int      // where entries begin in a set
	size  int      // words of a set

	duel int // misses of plain leaders less those of thin ones, bounded
	rng  uint64
	lead uint // a set's bits above this one say whether it leads
}

// Clear forgets all lines.
func (c *Cache) Clear() {
	clear(c.data)
	for i := 0; i < len(c.data); i += c.size {
		c.data[i] = firstOrder
		if c.policy != LRU {
			c.data[i] = c.ones() * 3
		}
	}
}

const (
	maxAged    = 32                 // ways whose ages fit a word
	firstOrder = 0xfedcba9876543210 // way n at place n
)

// duelBound is where the count of a duel stops.
const duelBound = 512

// NewCache makes an empty cache. An error says what of its shape is impossible.
func NewCache(g Geometry) (*Cache, error) {
	g.Slices = max(g.Slices, 1)
	switch {
	case g.Sets < 1 || bits.OnesCount(uint(g.Sets)) != 1:
		return nil, fmt.Errorf("cache: %d sets: want a power of two", g.Sets)
	case g.Ways < 1 || g.Ways > 1<<16:
		return nil, fmt.Errorf("cache: %d ways: want 1 to 65536", g.Ways)
	case g.Policy != LRU && g.Ways > maxAged:
		return nil, fmt.Errorf("cache: %d ways: ages are kept for up to %d", g.Ways, maxAged)
	case g.Sets>>g.Sample < 1:
		return nil, fmt.Errorf("cache: %d sets: too few to simulate one in %d", g.Sets, 1<<g.Sample)
	}
	sets := g.Sets >> g.Sample
	c := &Cache{
		ways: g.Ways, words: (g.Ways + 7) / 8, mask: uint64(sets) - 1, slices: uint64(g.Slices),
		shift: g.Sample, policy: g.Policy, listed: g.Policy == LRU && g.Ways > 16,
		rng: 0x9e3779b97f4a7c15,
	}
	c.first = 1 + c.words
	c.size = c.first + c.ways
	c.data = make([]uint64, sets*g.Slices*c.size)
	c.Clear()
	// A slice of fewer sets has its leaders in the same places.
	c.lead = uint(max(bits.Len(uint(sets))-6, 0))
	return c, nil
}

// ones has the low bit of each way's age set.
func (c *Cache) ones() uint64 { return 0x5555555555555555 >> (64 - 2*c.ways) }

// set is the words of a line's set, and its number in its slice.
func (c *Cache) set(line uint64) (set []uint64, number uint64) {
	number = line >> c.shift & c.mask
	s := number
	if c.slices > 1 {
		// All bits choose the slice, as in processors.
		h, _ := bits.Mul64((line+1)*hashBy, c.slices)
		s += h * (c.mask + 1)
	}
	at := int(s) * c.size
	return c.data[at : at+c.size : at+c.size], number
}

// hashBy is an odd number without pattern.
const hashBy = 0xd6e8feb86659fd93

const bytes1 = 0x0101010101010101 // a one in each byte

// find is the way that holds a line of a set; -1 when none does.
func (c *Cache) find(set []uint64, line uint64) int {
	entries := set[c.first:]
	want := line + 1
	if c.listed {
		for i, e := range entries {
			if e>>noteBits == want {
				return i
			}
		}
		return -1
	}
	all := byteOf(line) * bytes1
	for i, h := range set[1:c.first] {
		// A byte that is equal becomes zero, and its top bit is found; so may
		// be some above it, which the entry then tells apart.
		d := h ^ all
		for z := (d - bytes1) &^ d & (bytes1 << 7); z != 0; z &= z - 1 {
			way := i*8 + bits.TrailingZeros64(z)>>3
			if way < len(entries) && entries[way]>>noteBits == want {
				return way
			}
		}
	}
	return -1
}

func byteOf(line uint64) uint64 { return (line + 1) * hashBy >> 56 }

// Hit looks a line up, uses it, and adds to its note. It returns the note as it
// was.
func (c *Cache) Hit(line uint64, add Note) (Note, bool) {
	set, number := c.set(line)
	way := c.find(set, line)
	if way < 0 {
		c.missed(number)
		return 0, false
	}
	e := &set[c.first+way]
	was := Note(*e & noteMask)
	*e |= uint64(add)
	switch {
	case c.listed:
		toFront(set[c.first:], way)
	case c.policy == LRU:
		set[0] = used(set[0], way)
	default:
		o := set[0]
		high := o >> (2 * way) & 2 // of ages 2 and 3: they become 1, the others 0
		o = o&^(3<<(2*way)) | high>>1<<(2*way)
		set[0] = c.grown(o)
	}
	return was, true
}

// toFront makes an entry of a listed set the first.
func toFront(entries []uint64, way int) {
	e := entries[way]
	copy(entries[1:way+1], entries[:way])
	entries[0] = e
}

// used moves a way's number to the lowest place.
func used(order uint64, way int) uint64 {
	d := order ^ uint64(way)*0x1111111111111111
	z := (d - 0x1111111111111111) &^ d & 0x8888888888888888
	at := uint(bits.TrailingZeros64(z)) &^ 3 // the lowest zero is a true one
	below := uint64(1)<<at - 1
	return order&^(below<<4|15) | order&below<<4 | uint64(way)
}

// grown makes the lines of a set older until one has age 3.
func (c *Cache) grown(o uint64) uint64 {
	ones := c.ones()
	high, low := o>>1&ones, o&ones
	switch {
	case high&low != 0:
		return o
	case high != 0:
		return o + ones
	case low != 0:
		return o + 2*ones
	}
	return 3 * ones
}

// Put takes a line that Hit did not find, and says which it gave up for it and
// what its note was: ok is false where a way was free.
func (c *Cache) Put(line uint64, note Note) (victim uint64, was Note, ok bool) {
	set, number := c.set(line)
	var way int
	switch {
	case c.listed:
		way = c.ways - 1
	case c.policy == LRU:
		o := set[0]
		way = int(o >> (4 * (c.ways - 1)) & 15)
		set[0] = used(o, way)
	default:
		o := set[0]
		way = bits.TrailingZeros64(o&(o>>1)&c.ones()) / 2
		o = o&^(3<<(2*way)) | c.insertAge(number)<<(2*way)
		set[0] = c.grown(o)
	}
	e := &set[c.first+way]
	old := *e
	*e = (line+1)<<noteBits | uint64(note)
	if c.listed {
		toFront(set[c.first:], way)
	} else {
		h := &set[1+way/8]
		*h = *h&^(0xff<<(way%8*8)) | byteOf(line)<<(way%8*8)
	}
	return old>>noteBits - 1, Note(old & noteMask), old != 0
}

// Leader sets of a duel, of 2048: 512-575 by ages, 768-831 with thin insertion.
const (
	plainLeader = 512 >> 6
	thinLeader  = 768 >> 6
)

// missed counts a miss in the duel of the leader sets.
func (c *Cache) missed(set uint64) {
	if c.policy != Duel {
		return
	}
	switch set >> c.lead {
	case plainLeader:
		c.duel = min(c.duel+1, duelBound)
	case thinLeader:
		c.duel = max(c.duel-1, -duelBound)
	}
}

// insertAge is the age at which a line comes into a set.
func (c *Cache) insertAge(set uint64) uint64 {
	if c.policy == Ages {
		return 1
	}
	thin := c.duel > 0
	switch set >> c.lead {
	case plainLeader:
		thin = false
	case thinLeader:
		thin = true
	}
	if !thin {
		return 1
	}
	c.rng ^= c.rng << 13
	c.rng ^= c.rng >> 7
	c.rng ^= c.rng << 17
	if c.rng>>60 == 0 {
		return 1
	}
	return 3
}

// Drop takes a line out and returns its note.
func (c *Cache) Drop(line uint64) (Note, bool) {
	set, number := c.set(line)
	way := c.find(set, line)
	if way < 0 {
		c.missed(number)
		return 0, false
	}
	entries := set[c.first:]
	was := Note(entries[way] & noteMask)
	switch {
	case c.listed:
		copy(entries[way:], entries[way+1:])
		way = c.ways - 1
	case c.policy == LRU:
		// Used first, then all others in the order that they have: last.
		o := used(set[0], way)
		keep := ^uint64(0) >> (64 - 4*c.ways)
		set[0] = o&^keep | o&keep>>4 | uint64(way)<<(4*(c.ways-1))
	default:
		set[0] |= 3 << (2 * way)
	}
	entries[way] = 0
	return was, true
}

// Mark adds to a line's note without using the line; false when it is not there.
func (c *Cache) Mark(line uint64, add Note) bool {
	set, _ := c.set(line)
	way := c.find(set, line)
	if way < 0 {
		return false
	}
	set[c.first+way] |= uint64(add)
	return true
}
