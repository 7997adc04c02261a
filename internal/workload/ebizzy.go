package workload

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Ebizzy is ebizzy 0.3, a web server's way with memory: each thread takes a
// buffer, copies a chunk into it, looks something up and gives it back, as fast
// as it can. One round is a record.
type Ebizzy struct {
	TouchOnly  bool     // -T: one write a base page, no copy and no search
	OwnCopy    bool     // -l: copy word by word
	AlwaysMmap bool     // -m
	NeverMmap  bool     // -M
	Chunks     int      // -n
	Protect    bool     // -p: every other chunk read-only, so that the chunks' VMAs stay apart
	Holes      bool     // -P: unmapped pages between the chunks, for the same end
	RandomSize bool     // -R: buffers of random size, up to a chunk's
	ChunkSize  mm.Bytes // -s
	Seconds    int      // -S; what runs it decides
	Threads    int      // -t; 0: two a processor
	Linear     bool     // -z: linear search
	Verbose    bool     // -v

	// Huge is -H, of a private patch that was never published: buffers by
	// posix_memalign to the huge page size, then MADV_HUGEPAGE.
	Huge bool

	// FixedRNG takes the random generator of later versions. That of 0.3 begins
	// at 0 and multiplies: it gives 0 for ever, so every size of -R is one word.
	FixedRNG bool
}

// DefaultEbizzy is ebizzy without options.
func DefaultEbizzy() Ebizzy {
	return Ebizzy{Chunks: 10, ChunkSize: 8 * 64 << 10, Seconds: 10}
}

// ParseEbizzy reads options as ebizzy's getopt does: -mTRp, -s 134217728.
func ParseEbizzy(args ...string) (Ebizzy, error) {
	e := DefaultEbizzy()
	flags := map[byte]*bool{'T': &e.TouchOnly, 'l': &e.OwnCopy, 'm': &e.AlwaysMmap, 'M': &e.NeverMmap,
		'p': &e.Protect, 'P': &e.Holes, 'R': &e.RandomSize, 'z': &e.Linear, 'v': &e.Verbose, 'H': &e.Huge}
	numbers := map[byte]func(int){
		'n': func(n int) { e.Chunks = n }, 's': func(n int) { e.ChunkSize = mm.Bytes(n) },
		'S': func(n int) { e.Seconds = n }, 't': func(n int) { e.Threads = n },
	}
	for i := 0; i < len(args); i++ {
		letters, ok := strings.CutPrefix(args[i], "-")
		if !ok || letters == "" {
			return e, fmt.Errorf("ebizzy: %q is no option", args[i])
		}
		for j := range len(letters) {
			if b := flags[letters[j]]; b != nil {
				*b = true
				continue
			}
			set := numbers[letters[j]]
			if set == nil {
				return e, fmt.Errorf("ebizzy: -%c is no option", letters[j])
			}
			text := letters[j+1:]
			if text == "" && i+1 < len(args) {
				i++
				text = args[i]
			}
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return e, fmt.Errorf("ebizzy: -%c wants a number above 0, not %q", letters[j], text)
			}
			set(n)
			break
		}
	}
	if e.AlwaysMmap && e.NeverMmap {
		return e, fmt.Errorf("ebizzy: -m and -M exclude each other")
	}
	return e, nil
}

// Regions of ebizzy's address space. Each thread's stack and buffer are two
// more.
const (
	ebizzyHeap   mm.Region = 1
	ebizzyChunk  mm.Region = 100
	ebizzyHole   mm.Region = 10_000
	ebizzyThread mm.Region = 20_000
)

// mmapThreshold is from what size on malloc maps memory of its own at first.
const mmapThreshold = 128 << 10

// Setup is what ebizzy does before its threads run: the chunks, filled, and
// their stacks.
func (e *Ebizzy) Setup(space mm.Space, page mm.Bytes) []mm.Op {
	ops := []mm.Op{{Kind: mm.OpExec, Space: space}}
	add := func(op mm.Op) { op.Space = space; ops = append(ops, op) }
	anon := func(r mm.Region, n mm.Pages) {
		add(mm.Op{Kind: mm.OpMap, Region: r, N: n, Access: mm.Read | mm.Write})
	}
	n := pagesOf(e.ChunkSize, page)
	for i := range e.Chunks {
		anon(ebizzyChunk+mm.Region(i), n)
		if e.Holes {
			anon(ebizzyHole+mm.Region(i), 1)
		}
	}
	for i := range e.Chunks {
		if e.Holes {
			add(mm.Op{Kind: mm.OpUnmap, Region: ebizzyHole + mm.Region(i), N: 1})
		}
	}
	for i := range e.Chunks {
		r := ebizzyChunk + mm.Region(i)
		if e.Huge {
			add(mm.Op{Kind: mm.OpAdvise, Region: r, N: n, Arg: uint64(mm.AdviseHugePage)})
		}
		add(mm.Op{Kind: mm.OpTouch, Region: r, N: n, Stride: 1, Access: mm.Write})
	}
	for i := 0; e.Protect && i < e.Chunks; i += 2 {
		add(mm.Op{Kind: mm.OpProtect, Region: ebizzyChunk + mm.Region(i), N: n, Access: mm.Read})
	}
	for i := range e.Threads {
		addStack(add, ebizzyThread+2*mm.Region(i), page)
	}
	return ops
}

// addStack maps a thread's stack as the C library does: 8 MB, one page at its
// lower end closed, the upper end in use.
func addStack(add func(mm.Op), r mm.Region, page mm.Bytes) {
	n := pagesOf(8<<20, page) + 1
	add(mm.Op{Kind: mm.OpMap, Region: r, N: n, Flags: mm.MapStack})
	add(mm.Op{Kind: mm.OpProtect, Region: r, Page: 1, N: n - 1, Access: mm.Read | mm.Write})
	add(mm.Op{Kind: mm.OpTouch, Region: r, Page: uint64(n - 1), N: 1, Access: mm.Write})
}

func pagesOf(b, page mm.Bytes) mm.Pages { return mm.Pages((b + page - 1) / page) }

// EbizzyThread is one thread's stream. It never ends.
type EbizzyThread struct {
	Records uint64 // begun

	e     *Ebizzy
	m     *mm.Machine
	space mm.Space
	buf   mm.Region
	state uint32
	n     mm.Pages // of the buffer mapped
	phase int
}

// Thread is the stream of thread i; m is asked where buffers lie.
func (e *Ebizzy) Thread(m *mm.Machine, space mm.Space, i int) *EbizzyThread {
	t := &EbizzyThread{e: e, m: m, space: space, buf: ebizzyThread + 2*mm.Region(i) + 1}
	if e.FixedRNG {
		t.state = 0x0c0ffee0
	}
	return t
}

// rand is ebizzy's generator: one state a thread.
func (t *EbizzyThread) rand(most uint64) uint64 {
	if t.e.FixedRNG {
		t.state = t.state*1103515245 + 12345
	} else {
		t.state *= 1103515245 + 12345
	}
	return uint64(t.state/65536) % most
}

// Next gives the operations of a record, or of its next part where an address
// must be known first.
func (t *EbizzyThread) Next(ops []mm.Op) (int, error) {
	if len(ops) < 6 {
		return 0, io.ErrShortBuffer
	}
	if t.e.Huge {
		return t.hugeRecord(ops), nil
	}
	page := t.m.PageSize()
	t.Records++
	t.rand(uint64(t.e.Chunks))
	size := t.e.ChunkSize
	if t.e.RandomSize {
		size = mm.Bytes(t.rand(uint64(size/8))+1) * 8
	}
	n := 0
	put := func(op mm.Op) { ops[n] = op; n++ }
	pages := pagesOf(size, page)
	fresh := t.e.AlwaysMmap || !t.e.NeverMmap && size >= mmapThreshold
	switch {
	case fresh:
		put(mm.Op{Kind: mm.OpMap, Region: t.buf, N: pages, Access: mm.Read | mm.Write})
	case t.n < pages: // an arena of the thread's own, which keeps what it ever had
		if t.n > 0 {
			put(mm.Op{Kind: mm.OpUnmap, Region: t.buf, N: t.n})
		}
		t.n = pagesOf(t.e.ChunkSize, page)
		put(mm.Op{Kind: mm.OpMap, Region: t.buf, N: t.n, Access: mm.Read | mm.Write})
	}
	put(mm.Op{Kind: mm.OpTouch, Region: t.buf, N: pages, Stride: 1, Access: mm.Write})
	if !t.e.TouchOnly {
		put(mm.Op{Kind: mm.OpNone, Arg: t.compute(size)})
	}
	if fresh {
		put(mm.Op{Kind: mm.OpUnmap, Region: t.buf, N: pages})
	}
	return n, nil
}

// Times of ebizzy's own computing, in nanoseconds: orders of magnitude of a
// server core. A copy moves 8 bytes a nanosecond by memcpy and 2 by words; a
// step of a search reads one word.
const (
	memcpyBytes = 8
	wordsBytes  = 2
	binaryStep  = 10
	linearBytes = 8
)

// compute is the copy and the search of one record.
func (t *EbizzyThread) compute(size mm.Bytes) uint64 {
	rate := uint64(memcpyBytes)
	if t.e.OwnCopy {
		rate = wordsBytes
	}
	d := uint64(size) / rate
	words := uint64(size / 8)
	key := t.rand(words)
	if t.e.Linear {
		return d + key*8/linearBytes
	}
	for ; words > 1; words /= 2 {
		d += binaryStep
	}
	return d
}

// hugeRecord is a record with -H. The C library maps the size, the alignment
// and a little more, writes a header at the start of the map and another before
// the aligned address; freeing unmaps it all.
func (t *EbizzyThread) hugeRecord(ops []mm.Op) int {
	const align = 2 << 20
	page := t.m.PageSize()
	n := pagesOf(t.e.ChunkSize, page)
	if t.phase == 0 {
		t.phase = 1
		t.Records++
		t.n = pagesOf(t.e.ChunkSize+align+64, page)
		ops[0] = mm.Op{Kind: mm.OpMap, Region: t.buf, N: t.n, Access: mm.Read | mm.Write}
		ops[1] = mm.Op{Kind: mm.OpTouch, Region: t.buf, N: 1, Access: mm.Write}
		return 2
	}
	t.phase = 0
	base, _ := t.m.Addr(t.space, t.buf, 0)
	at := uint64((base+16+align-1)&^(align-1)-base) / uint64(page)
	i := 0
	if at > 1 {
		ops[i] = mm.Op{Kind: mm.OpTouch, Region: t.buf, Page: at - 1, N: 1, Access: mm.Write}
		i++
	}
	ops[i] = mm.Op{Kind: mm.OpAdvise, Region: t.buf, Page: at, N: n, Arg: uint64(mm.AdviseHugePage)}
	ops[i+1] = mm.Op{Kind: mm.OpTouch, Region: t.buf, Page: at, N: n, Stride: 1, Access: mm.Write}
	ops[i+2] = mm.Op{Kind: mm.OpUnmap, Region: t.buf, N: t.n}
	return i + 3
}

// Huge says whether records come in two parts.
func (t *EbizzyThread) Huge() bool { return t.e.Huge }
