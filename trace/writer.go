package trace

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/hugelab/hugelab/mm"
)

// Writer writes a recording as a stream of blocks. Each block is one Write on
// the io.Writer. It is not safe for concurrent use.
type Writer struct {
	w      io.Writer
	unit   mm.Nanos
	zstd   *zstd.Encoder
	offset int64 // bytes written
	err    error // the first failure; nothing is written after it
	closed bool

	events, faults, lost uint64

	// The block under way.
	rows        uint32
	first, last int64 // times in units
	cols        [numCols][]byte
	text        int // bytes of names
	threads     []who
	index       map[uint64]int // TID and PID -> threads
	current     int            // the thread of the event before
	calls       calls
	names       map[string]int
	frame       []byte
}

var errClosed = errors.New("recording: write: it is closed")

// NewWriter starts a recording on w with its header, and writes it at once.
// Version is filled in, and TimeUnit when it is 0.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Version = FormatVersion
	if h.TimeUnit <= 0 {
		h.TimeUnit = DefaultTimeUnit
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(1<<20),
		// Many columns have skewed bytes and no repeats.
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	tw := &Writer{w: w, unit: h.TimeUnit, zstd: z, index: map[uint64]int{}, names: map[string]int{}, current: -1}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("recording: header: %w", err)
	}
	tw.frame = append(tw.frame[:0], magic...)
	tw.frame = binary.LittleEndian.AppendUint32(tw.frame, FormatVersion)
	if err := tw.put(head{kind: kindHeader}, text); err != nil {
		return nil, err
	}
	return tw, nil
}

// Write adds one event. The event may be reused afterwards. Its time is kept
// in whole units of Header.TimeUnit.
func (w *Writer) Write(e *Event) error {
	if w.err != nil {
		return w.err
	}
	if int(e.Kind) >= NumKinds || len(e.Name) > maxName {
		return w.fail(fmt.Errorf("recording: event %d: kind %d, name of %d bytes: not an event", w.events, e.Kind, len(e.Name)))
	}
	t := int64(e.When / w.unit)
	if w.rows > 0 && mm.Nanos(t-w.first)*w.unit >= blockTime {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if w.rows == 0 {
		w.first, w.last = t, t
	}
	gap := t - w.last
	w.cols[colTimeLo] = append(w.cols[colTimeLo], byte(gap))
	w.cols[colTime] = binary.AppendUvarint(w.cols[colTime], zigzag(uint64(gap>>8)))
	w.last = t
	w.row(e)
	w.rows++
	w.events++
	switch e.Kind {
	case KindFault:
		w.faults++
	case KindOtherFaults:
		w.faults += e.A
	case KindLost:
		w.lost += e.A
	}
	if w.rows == maxRows || w.text >= softText {
		return w.Flush()
	}
	return nil
}

// row codes all of e but its time.
func (w *Writer) row(e *Event) {
	code := byte(e.Kind)
	plain := e.Kind == KindFault && e.C|e.D|uint64(e.Ret) == 0 && e.Name == ""
	if e.Kind == KindFault && !plain {
		code = codeGeneral
	}
	if w.current < 0 || w.threads[w.current].tid != e.TID || w.threads[w.current].pid != e.PID {
		code |= codeWho
		w.switchTo(e.TID, e.PID)
	}
	t := &w.threads[w.current]
	if t.cpu != uint16(e.CPU) {
		code |= codeCPU
		t.cpu = uint16(e.CPU)
		w.cols[colCPU] = binary.AppendUvarint(w.cols[colCPU], uint64(e.CPU))
	}
	w.cols[colCode] = append(w.cols[colCode], code)
	if !plain {
		w.general(e)
		return
	}
	w.fault(e, t)
}

// fault codes a fault that has no other fields than faults have.
func (w *Writer) fault(e *Event, t *who) {
	slot, delta := t.streams.code(e.A >> pageBits)
	w.cols[colAccess] = append(w.cols[colAccess], byte(e.Access))
	w.cols[colSlot] = append(w.cols[colSlot], byte(slot))
	w.cols[colPage] = binary.AppendUvarint(w.cols[colPage], zigzag(delta))
	from := site{e.B, uint16(e.A & (1<<pageBits - 1))}
	place, code := t.sites.find(e.B), byte(siteNew)
	if place >= 0 {
		code = byte(place) << 1
		if t.sites[place].offset != from.offset {
			code |= siteMoved
		}
	} else {
		w.cols[colIP] = binary.AppendUvarint(w.cols[colIP], zigzag(e.B-t.ip))
	}
	w.cols[colSite] = append(w.cols[colSite], code)
	if code&siteMoved != 0 {
		w.cols[colOffLo] = append(w.cols[colOffLo], byte(from.offset))
		w.cols[colOffHi] = append(w.cols[colOffHi], byte(from.offset>>8))
	}
	t.sites.use(place, from)
	t.ip = e.B
}

// switchTo makes the thread current.
func (w *Writer) switchTo(tid, pid int32) {
	key := uint64(uint32(tid))<<32 | uint64(uint32(pid))
	i, ok := w.index[key]
	if !ok {
		i = len(w.threads)
		w.index[key] = i
		w.threads = addThread(w.threads, tid, pid)
		w.cols[colThread] = binary.AppendUvarint(w.cols[colThread], uint64(uint32(tid)))
		w.cols[colThread] = binary.AppendUvarint(w.cols[colThread], zigzag(uint64(int64(pid)-int64(tid))))
	}
	w.current = i
	w.cols[colWho] = binary.AppendUvarint(w.cols[colWho], uint64(i))
}

// general codes the fields of an event that is no plain fault.
func (w *Writer) general(e *Event) {
	var mask byte
	if e.A != 0 {
		mask |= maskA
		w.cols[colA] = binary.AppendUvarint(w.cols[colA], zigzag(e.A-w.calls.last))
	}
	if e.B != 0 {
		mask |= maskB
		w.cols[colB] = binary.AppendUvarint(w.cols[colB], e.B)
	}
	if e.C != 0 {
		mask |= maskC
		w.cols[colC] = binary.AppendUvarint(w.cols[colC], e.C)
	}
	if e.D != 0 {
		mask |= maskD
		w.cols[colD] = binary.AppendUvarint(w.cols[colD], e.D)
	}
	if e.Ret != 0 {
		mask |= maskRet
		w.cols[colRet] = binary.AppendUvarint(w.cols[colRet], zigzag(uint64(e.Ret)-w.calls.retBase(e.A)))
	}
	if e.Access != 0 {
		mask |= maskAccess
		w.cols[colAccess] = append(w.cols[colAccess], byte(e.Access))
	}
	if e.Name != "" {
		mask |= maskName
		w.name(e.Name)
	}
	w.calls.use(e.A, uint64(e.Ret))
	w.cols[colMask] = append(w.cols[colMask], mask)
}

func (w *Writer) name(s string) {
	i, ok := w.names[s]
	if !ok {
		i = len(w.names)
		w.names[s] = i
		w.cols[colText] = binary.AppendUvarint(w.cols[colText], uint64(len(s)))
		w.cols[colText] = append(w.cols[colText], s...)
		w.text += len(s)
	}
	w.cols[colName] = binary.AppendUvarint(w.cols[colName], uint64(i))
}

// Flush writes the block under way: what was recorded so far is then readable
// whatever happens. Short blocks pack badly, so a recorder calls it about once
// a second when events are rare; blocks of a second close by themselves.
func (w *Writer) Flush() error {
	if w.err != nil || w.rows == 0 {
		return w.err
	}
	h := head{kind: kindEvents, rows: w.rows, first: w.first, last: w.last}
	w.frame = append(w.frame[:0], make([]byte, headSize)...)
	for i := range w.cols {
		w.frame = w.pack(w.frame, w.cols[i])
		h.raw += uint32(len(w.cols[i]))
		w.cols[i] = w.cols[i][:0]
	}
	w.rows, w.text, w.current, w.calls = 0, 0, -1, calls{}
	w.threads = w.threads[:0]
	clear(w.index)
	clear(w.names)
	return w.finish(h, 0)
}

// pack appends one column to the payload.
func (w *Writer) pack(dst, col []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(col)))
	if len(col) == 0 {
		return dst
	}
	if len(col) > 24 {
		// The packed length goes before the packed bytes: leave room for it.
		const room = 4
		at := len(dst)
		dst = append(dst, make([]byte, room)...)
		dst = w.zstd.EncodeAll(col, dst)
		if n := len(dst) - at - room; n < len(col) {
			k := binary.PutUvarint(dst[at:at+room], uint64(n))
			copy(dst[at+k:], dst[at+room:])
			return dst[:at+k+n]
		}
		dst = dst[:at]
	}
	dst = append(dst, 0)
	return append(dst, col...)
}

// put writes a frame with the payload after what w.frame already holds.
func (w *Writer) put(h head, payload []byte) error {
	at := len(w.frame)
	w.frame = append(w.frame, make([]byte, headSize)...)
	w.frame = append(w.frame, payload...)
	return w.finish(h, at)
}

// finish fills in the head that stands at byte at of w.frame and writes all.
func (w *Writer) finish(h head, at int) error {
	payload := w.frame[at+headSize:]
	if h.kind != kindEvents && len(payload) > maxJSON {
		return w.fail(fmt.Errorf("recording: header or footer of %d bytes: at most %d fit", len(payload), maxJSON))
	}
	h.length = uint32(len(payload))
	h.crc = crc32.Checksum(payload, castagnoli)
	h.put(w.frame[at:])
	return w.send()
}

func (w *Writer) send() error {
	n, err := w.w.Write(w.frame)
	w.offset += int64(n)
	if err != nil {
		return w.fail(fmt.Errorf("recording: write: %w", err))
	}
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = err
	return err
}

// Close writes the last block and the footer; it does not close the io.Writer.
// The footer's Events is filled in, Faults and Lost when they are 0.
func (w *Writer) Close(f Footer) error {
	if w.closed {
		return errClosed
	}
	w.closed = true
	if err := w.Flush(); err != nil {
		return err
	}
	f.Events = w.events
	if f.Faults == 0 {
		f.Faults = w.faults
	}
	if f.Lost == 0 {
		f.Lost = w.lost
	}
	text, err := json.Marshal(f)
	if err != nil {
		return w.fail(fmt.Errorf("recording: footer: %w", err))
	}
	at := w.offset
	w.frame = w.frame[:0]
	if err := w.put(head{kind: kindFooter}, text); err != nil {
		return err
	}
	w.frame = binary.LittleEndian.AppendUint64(w.frame[:0], uint64(at))
	w.frame = binary.LittleEndian.AppendUint32(w.frame, crc32.Checksum(w.frame, castagnoli))
	w.frame = append(w.frame, trailerMark...)
	if err := w.send(); err != nil {
		return err
	}
	w.err = errClosed
	return nil
}

// Bytes is how much was written so far.
func (w *Writer) Bytes() int64 { return w.offset }
