package trace

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/hugelab/hugelab/mm"
)

// block reads the events of one frame.
type block struct {
	at      int64 // offset of its frame
	left    uint32
	time    int64
	cols    [numCols]column
	bufs    [numCols][]byte
	threads []who
	current *who
	calls   calls
	names   []string
	interns map[string]string
	text    int // bytes in interns
}

// column is a column being read. Reading past its end gives zeros and sets bad.
type column struct {
	b   []byte
	bad bool
}

func (c *column) byte() byte {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *column) uvarint() uint64 {
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return uint64(v)
	}
	return c.long()
}

func (c *column) long() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad = true
		c.b = nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

// open unpacks a frame's columns and says what is wrong, "" if nothing.
func (b *block) open(z *zstd.Decoder, h *head, payload []byte, at int64) string {
	p := column{b: payload}
	left := uint64(h.raw)
	for i := range b.cols {
		n := p.uvarint()
		b.cols[i] = column{}
		if n == 0 {
			continue
		}
		packed := p.uvarint()
		size := packed
		if packed == 0 {
			size = n
		}
		if p.bad || n > left || size > uint64(len(p.b)) {
			return "a column runs past the end of its block"
		}
		left -= n
		in := p.b[:size]
		p.b = p.b[size:]
		if packed == 0 {
			b.cols[i].b = in
			continue
		}
		if uint64(cap(b.bufs[i])) < n {
			b.bufs[i] = make([]byte, 0, n)
		}
		out, err := z.DecodeAll(in, b.bufs[i][:0])
		if err != nil {
			return "a column does not unpack: " + err.Error()
		}
		if uint64(len(out)) != n {
			return fmt.Sprintf("a column unpacks to %d bytes, not %d", len(out), n)
		}
		b.bufs[i] = out
		b.cols[i].b = out
	}
	if p.bad || left != 0 || len(p.b) != 0 || len(b.cols[colCode].b) != int(h.rows) {
		return "a block's columns have not the lengths that its head claims"
	}
	b.at, b.left, b.time, b.current, b.calls = at, h.rows, h.first, nil, calls{}
	b.threads, b.names = b.threads[:0], b.names[:0]
	return ""
}

// next reads one event; false when the columns do not hold together.
func (b *block) next(e *Event, unit mm.Nanos) bool {
	code := b.cols[colCode].byte()
	b.left--
	lo := b.cols[colTimeLo].byte()
	b.time += int64(unzigzag(b.cols[colTime].uvarint())<<8 | uint64(lo))
	if code&codeWho != 0 && !b.switchTo() || b.current == nil {
		return false
	}
	t := b.current
	if code&codeCPU != 0 {
		t.cpu = uint16(b.cols[colCPU].uvarint())
	}
	*e = Event{CPU: mm.CPU(t.cpu), TID: t.tid, PID: t.pid, When: mm.Nanos(b.time) * unit}
	kind := code & codeKind
	switch {
	case kind == byte(KindFault):
		e.Kind = KindFault
		if !b.fault(e, t) {
			return false
		}
	case kind == codeGeneral:
		e.Kind = KindFault
		b.general(e)
	case int(kind) < NumKinds:
		e.Kind = Kind(kind)
		b.general(e)
	default:
		return false
	}
	return b.left > 0 || b.used()
}

// used says that all columns were read to their ends and none past it. A
// column that ended early gave zeros; that is found here, at the block's end,
// or by the slower paths at once.
func (b *block) used() bool {
	for i := range b.cols {
		if b.cols[i].bad || len(b.cols[i].b) != 0 {
			return false
		}
	}
	return true
}

func (b *block) fault(e *Event, t *who) bool {
	e.Access = mm.Access(b.cols[colAccess].byte())
	slot := int(b.cols[colSlot].byte() & (numSlots - 1))
	page := t.streams.decode(slot, unzigzag(b.cols[colPage].uvarint()))
	code := b.cols[colSite].byte()
	place, moved := int(code>>1), code&siteMoved != 0
	var from site
	switch {
	case code == siteNew:
		place, from.ip = -1, t.ip+unzigzag(b.cols[colIP].uvarint())
	case place < len(t.sites):
		from = t.sites[place]
	default:
		return false
	}
	if moved {
		lo, hi := b.cols[colOffLo].byte(), b.cols[colOffHi].byte()
		from.offset = uint16(hi&0xf)<<8 | uint16(lo)
	}
	t.sites.use(place, from)
	t.ip = from.ip
	e.A, e.B = page<<pageBits|uint64(from.offset), from.ip
	return true
}

func (b *block) switchTo() bool {
	i := b.cols[colWho].uvarint()
	if i > uint64(len(b.threads)) || b.cols[colWho].bad {
		return false
	}
	if i == uint64(len(b.threads)) {
		tid := b.cols[colThread].uvarint()
		pid := int64(int32(tid)) + int64(unzigzag(b.cols[colThread].uvarint()))
		if b.cols[colThread].bad {
			return false
		}
		b.threads = addThread(b.threads, int32(tid), int32(pid))
	}
	b.current = &b.threads[i]
	return true
}

func (b *block) general(e *Event) {
	mask := b.cols[colMask].byte()
	if mask&maskA != 0 {
		e.A = b.calls.last + unzigzag(b.cols[colA].uvarint())
	}
	if mask&maskB != 0 {
		e.B = b.cols[colB].uvarint()
	}
	if mask&maskC != 0 {
		e.C = b.cols[colC].uvarint()
	}
	if mask&maskD != 0 {
		e.D = b.cols[colD].uvarint()
	}
	if mask&maskRet != 0 {
		e.Ret = int64(b.calls.retBase(e.A) + unzigzag(b.cols[colRet].uvarint()))
	}
	if mask&maskAccess != 0 {
		e.Access = mm.Access(b.cols[colAccess].byte())
	}
	if mask&maskName != 0 {
		e.Name = b.name()
	}
	b.calls.use(e.A, uint64(e.Ret))
}

func (b *block) name() string {
	i := b.cols[colName].uvarint()
	if i < uint64(len(b.names)) {
		return b.names[i]
	}
	t := &b.cols[colText]
	n := t.uvarint()
	if i > uint64(len(b.names)) || n > maxName || n > uint64(len(t.b)) {
		b.cols[colName].bad = true
		return ""
	}
	s := b.intern(t.b[:n])
	t.b = t.b[n:]
	b.names = append(b.names, s)
	return s
}

// intern keeps one copy of a name that many blocks repeat.
func (b *block) intern(text []byte) string {
	if s, ok := b.interns[string(text)]; ok {
		return s
	}
	if b.interns == nil || b.text > maxTextBytes {
		b.interns, b.text = map[string]string{}, 0
	}
	s := string(text)
	b.interns[s] = s
	b.text += len(s)
	return s
}
