package trace

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/hugelab/hugelab/mm"
)

// Reader reads a recording's events in order. It is not safe for concurrent use.
type Reader struct {
	Header Header
	Footer *Footer // nil until the end was read, and for a recording that was cut off

	r      io.Reader
	offset int64 // bytes read
	zstd   *zstd.Decoder
	err    error  // sticky; io.EOF at the end
	cut    string // how a recording that was cut off ends

	events  uint64
	payload []byte
	block   block
	unit    mm.Nanos
}

// NewReader reads the header. Its errors are ErrEmpty, ErrNotRecording,
// ErrNewer, a *DamagedError, or what r said.
func NewReader(r io.Reader) (*Reader, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRaw),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	tr := &Reader{r: r, zstd: z}
	var start [len(magic) + 4]byte
	n, err := tr.full(start[:])
	switch {
	case n == 0 && err == io.EOF:
		return nil, ErrEmpty
	case string(start[:min(n, len(magic))]) != magic[:min(n, len(magic))]:
		return nil, ErrNotRecording
	case short(err):
		return nil, tr.cutInHeader()
	case err != nil:
		return nil, err
	}
	if v := binary.LittleEndian.Uint32(start[len(magic):]); v > FormatVersion {
		return nil, fmt.Errorf("%w (its format is version %d, this hugelab reads up to %d)", ErrNewer, v, FormatVersion)
	} else if v == 0 {
		return nil, &DamagedError{0, "its format has version 0"}
	}
	return tr, tr.header()
}

func (r *Reader) header() error {
	var h head
	at := r.offset
	err := r.frame(&h)
	switch {
	case short(err):
		return r.cutInHeader()
	case err != nil:
		return err
	case h.kind != kindHeader:
		return &DamagedError{at, "no header where one must stand"}
	}
	if err := json.Unmarshal(r.payload, &r.Header); err != nil {
		return &DamagedError{at, "its header does not parse: " + err.Error()}
	}
	r.unit = r.Header.TimeUnit
	if r.unit <= 0 || r.unit > 1e9 {
		return &DamagedError{at, fmt.Sprintf("a time unit of %d ns", r.unit)}
	}
	return nil
}

func (r *Reader) cutInHeader() error {
	return fmt.Errorf("recording: ends after %d bytes, within its header: nothing was recorded yet", r.offset)
}

func short(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// full is io.ReadFull that counts.
func (r *Reader) full(b []byte) (int, error) {
	n, err := io.ReadFull(r.r, b)
	r.offset += int64(n)
	if err != nil && !short(err) {
		err = fmt.Errorf("recording: read: %w", err)
	}
	return n, err
}

// frame reads the next head and its payload into r.payload. io.EOF: no byte
// of it is there; io.ErrUnexpectedEOF: not all.
func (r *Reader) frame(h *head) error {
	at := r.offset
	var b [headSize]byte
	if _, err := r.full(b[:]); err != nil {
		return err
	}
	if what := h.get(b[:]); what != "" {
		return &DamagedError{at, what}
	}
	if cap(r.payload) < int(h.length) {
		r.payload = make([]byte, h.length)
	}
	r.payload = r.payload[:h.length]
	if _, err := r.full(r.payload); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if crc32.Checksum(r.payload, castagnoli) != h.crc {
		return &DamagedError{at, "the checksum of a block is wrong"}
	}
	return nil
}

// Next fills in the next event. io.EOF ends the recording; a recording cut off
// ends with io.EOF too, and Cut says so. e.Name stays valid. A *DamagedError
// names the offset; later calls repeat it.
func (r *Reader) Next(e *Event) error {
	for r.block.left == 0 {
		if r.err == nil {
			r.err = r.more()
		}
		if r.err != nil {
			return r.err
		}
	}
	if !r.block.next(e, r.unit) {
		r.err = &DamagedError{r.block.at, "a block's columns do not hold together"}
		r.block.left = 0
		return r.err
	}
	r.events++
	return nil
}

// more reads the next frame.
func (r *Reader) more() error {
	at := r.offset
	var h head
	err := r.frame(&h)
	switch {
	case short(err):
		r.cut = fmt.Sprintf("the recording ends at byte %d without its footer, after %d events in whole blocks: "+
			"the recorder was killed, or the file was not copied wholly", r.offset, r.events)
		return io.EOF
	case err != nil:
		return err
	}
	switch h.kind {
	case kindEvents:
		if what := r.block.open(r.zstd, &h, r.payload, at); what != "" {
			return &DamagedError{at, what}
		}
		return nil
	case kindFooter:
		return r.footer(at)
	}
	return &DamagedError{at, fmt.Sprintf("a block of unknown kind %#02x", h.kind)}
}

// footer reads the end.
func (r *Reader) footer(at int64) error {
	f := new(Footer)
	if err := json.Unmarshal(r.payload, f); err != nil {
		return &DamagedError{at, "its footer does not parse: " + err.Error()}
	}
	if f.Events != r.events {
		return &DamagedError{at, fmt.Sprintf("%d events were read, its footer counts %d", r.events, f.Events)}
	}
	end := r.offset
	var b [trailerSize + 1]byte
	n, err := r.full(b[:])
	switch {
	case n > trailerSize:
		return &DamagedError{end + trailerSize, "bytes after the end"}
	case err != nil && !short(err):
		return err
	case n == trailerSize:
		want := binary.LittleEndian.AppendUint64(nil, uint64(at))
		want = binary.LittleEndian.AppendUint32(want, crc32.Checksum(want, castagnoli))
		if string(b[:n]) != string(want)+trailerMark {
			return &DamagedError{end, "the trailer is wrong"}
		}
	}
	// Cut within the trailer: nothing is missing.
	r.Footer = f
	return io.EOF
}

// Cut says that the recording ends before its footer, and where in sentences.
// It is known once Next returned io.EOF.
func (r *Reader) Cut() (bool, string) { return r.cut != "", r.cut }

// Events is how many events were read.
func (r *Reader) Events() uint64 { return r.events }

// Offset is how many bytes of the recording were read.
func (r *Reader) Offset() int64 { return r.offset }
