package kernel

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// frames keeps what /proc/kpageflags and /proc/kpagecount say of frames, until
// it is told to forget. Reading a frame costs the kernel some 50 ns and a call a
// microsecond, so that wanted frames are read by runs and no others.
type frames struct {
	flags  *os.File
	count  *os.File      // how often frames are mapped; nil: this kernel does not tell
	blocks []*frameBlock // by frame / blockFrames
	kept   int           // blocks that are there
	now    uint32        // what is known was read since this
	wanted []mm.PFN      // numbers of blocks with something wanted
	raw    [blockFrames]uint64

	// The folio found last.
	head  mm.PFN
	order mm.Order
	since uint32
}

const (
	blockFrames = 512
	blockWords  = blockFrames / 64
	frameGap    = 16      // frames read over rather than read around
	mostBlocks  = 1 << 14 // kept, 40 MB
)

type frameBlock struct {
	since        uint32
	wantK, wantC [blockWords]uint64 // kinds and counts to read
	known        [blockWords]uint64 // kinds that were
	counted      [blockWords]uint64 // counts that were
	kind         [blockFrames]frameKind
	counts       [blockFrames]uint32
}

type frameKind uint8

const (
	kindHead frameKind = 1 << iota
	kindTail
	kindLarge // of a folio of several pages that a program may map
)

func (r *frames) close() error {
	if r.count != nil {
		r.count.Close()
	}
	return r.flags.Close()
}

// forget drops what was read.
func (r *frames) forget() {
	r.now++
	if r.kept > mostBlocks || r.now == 0 {
		r.blocks, r.kept, r.now = nil, 0, 1
	}
}

func (r *frames) block(n mm.PFN) *frameBlock {
	if int(n) >= len(r.blocks) {
		r.blocks = append(r.blocks, make([]*frameBlock, int(n)+1-len(r.blocks))...)
	}
	b := r.blocks[n]
	if b == nil {
		b = &frameBlock{}
		r.blocks[n] = b
		r.kept++
	}
	if b.since != r.now {
		b.since = r.now
		clear(b.wantK[:])
		clear(b.wantC[:])
		clear(b.known[:])
		clear(b.counted[:])
	}
	return b
}

// want notes that a frame is to be read by load; with count, how often it is
// mapped too.
func (r *frames) want(at mm.PFN, count bool) {
	n, i := at/blockFrames, at%blockFrames
	b := r.block(n)
	word, bit := i/64, uint64(1)<<(i%64)
	if b.wantK == [blockWords]uint64{} && b.wantC == [blockWords]uint64{} {
		r.wanted = append(r.wanted, n)
	}
	b.wantK[word] |= bit &^ b.known[word]
	if count && r.count != nil {
		b.wantC[word] |= bit &^ b.counted[word]
	}
}

// load reads what is wanted.
func (r *frames) load() error {
	for _, n := range r.wanted {
		b := r.block(n)
		for from, to := nextRun(&b.wantK, 0); from < to; from, to = nextRun(&b.wantK, to) {
			if err := r.readKinds(n, b, from, to); err != nil {
				return err
			}
		}
		for from, to := nextRun(&b.wantC, 0); from < to; from, to = nextRun(&b.wantC, to) {
			words, err := r.read(r.count, n, from, to)
			if err != nil {
				return err
			}
			for i, w := range words {
				i += from
				b.counts[i] = uint32(w)
				b.counted[i/64] |= 1 << (i % 64)
			}
		}
		b.wantK, b.wantC = [blockWords]uint64{}, [blockWords]uint64{}
	}
	r.wanted = r.wanted[:0]
	return nil
}

func (r *frames) readKinds(n mm.PFN, b *frameBlock, from, to int) error {
	words, err := r.read(r.flags, n, from, to)
	if err != nil {
		return err
	}
	for i, w := range words {
		var k frameKind
		if w&kpfHead != 0 {
			k |= kindHead
		}
		if w&kpfTail != 0 {
			k |= kindTail
		}
		if w&(kpfTHP|kpfHuge) != 0 {
			k |= kindLarge
		}
		i += from
		b.kind[i] = k
		b.known[i/64] |= 1 << (i % 64)
	}
	return nil
}

// nextRun finds the next set bits from a place on, with small gaps taken in.
func nextRun(set *[blockWords]uint64, from int) (first, end int) {
	first = nextBit(set, from)
	end = first
	for at := first; at < blockFrames && at-end <= frameGap; at = nextBit(set, end) {
		end = at + 1
	}
	return first, end
}

// nextBit is the first set bit from a place on, blockFrames for none.
func nextBit(set *[blockWords]uint64, from int) int {
	for from < blockFrames {
		if w := set[from/64] >> (from % 64); w != 0 {
			return from + bits.TrailingZeros64(w)
		}
		from = (from/64 + 1) * 64
	}
	return blockFrames
}

// read reads a part of a block of a file that has one word a frame.
func (r *frames) read(f *os.File, block mm.PFN, from, to int) ([]uint64, error) {
	words := r.raw[:to-from]
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	for {
		n, err := unix.Pread(int(f.Fd()), b, int64(block)*8*blockFrames+int64(from)*8)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, fmt.Errorf("page flags: %w", err)
		}
		clear(words[n/8:]) // behind the end of memory is nothing
		return words, nil
	}
}

// kindOf is what a frame is; it is read when nobody wanted it before.
func (r *frames) kindOf(at mm.PFN) (frameKind, error) {
	const around = 16
	n, i := at/blockFrames, int(at%blockFrames)
	b := r.block(n)
	if b.known[i/64]>>(i%64)&1 == 0 {
		from := i &^ (around - 1)
		if err := r.readKinds(n, b, from, from+around); err != nil {
			return 0, err
		}
	}
	return b.kind[i], nil
}

// maps is how often a frame is mapped that was wanted with its count.
func (r *frames) maps(at mm.PFN) uint32 { return r.block(at / blockFrames).counts[at%blockFrames] }

// folio finds the folio that holds a frame: its order, and the frame's place in
// it. A folio is aligned to its length: its head is at one of the frame's
// alignments, and the frame behind its end is no tail.
func (r *frames) folio(at mm.PFN) (mm.Order, uint32, error) {
	if r.since == r.now && at >= r.head && at-r.head < 1<<r.order {
		return r.order, uint32(at - r.head), nil
	}
	k, err := r.kindOf(at)
	if err != nil || k&kindLarge == 0 {
		return 0, 0, err
	}
	head := at
	for low := mm.PFN(1); k&kindTail != 0; low <<= 1 {
		if low > 1<<mm.MaxOrder {
			return 0, 0, nil // taken apart between two reads
		}
		head = at &^ (2*low - 1)
		if k, err = r.kindOf(head); err != nil {
			return 0, 0, err
		}
	}
	if k&kindHead == 0 {
		return 0, 0, nil
	}
	order := mm.Order(0)
	for ; order <= mm.MaxOrder; order++ {
		if k, err = r.kindOf(head + 1<<order); err != nil {
			return 0, 0, err
		}
		if k&kindTail == 0 {
			break
		}
	}
	r.head, r.order, r.since = head, order, r.now
	return order, uint32(at - head), nil
}
