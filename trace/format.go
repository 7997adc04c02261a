package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hugelab/hugelab/mm"
)

/*
A recording is a stream:

	magic[8] version[u32] | frame 'H' | frame 'E' ... | frame 'F' | trailer

	frame    head[40] payload[length]
	head     kind[u8] 0[3] length[u32] rows[u32] raw[u32] first[i64] last[i64]
	         crc32c of the payload[u32] crc32c of the 36 bytes before[u32]
	'H'      JSON of Header
	'E'      columns: for each, in order: uvarint length; when not 0, uvarint
	         packed length and that many bytes of one zstd frame (packed length 0:
	         the column itself follows)
	'F'      JSON of Footer
	trailer  offset of frame 'F'[u64] crc32c of it[u32] "HEND"

All integers of fixed size are little endian. Each 'E' frame stands alone:
nothing is coded relative to an earlier one, so a recording that was cut off
reads to its last whole frame. The head has a checksum of its own so that a
damaged length is told apart from a file that ends too early.
*/

// FormatVersion is the version that Writer writes; Reader reads it and all
// before it.
const FormatVersion = 1

const (
	magic       = "\x93HLREC\r\n" // the line ending shows a transfer as text
	trailerMark = "HEND"
	headSize    = 40
	trailerSize = 16

	kindHeader = 'H'
	kindEvents = 'E'
	kindFooter = 'F'

	maxRows    = 1 << 16
	softText   = 1 << 20 // a block with this many bytes of names is closed
	maxRaw     = 8 << 20 // no block is larger: rows of under 100 bytes, and names
	maxPayload = maxRaw + 1<<10
	maxJSON    = 4 << 20
	maxName    = 1<<16 - 1

	// DefaultTimeUnit is the Header.TimeUnit that NewWriter fills in. A fault
	// costs some 500 ns, so the order and rate of faults survive it; a
	// nanosecond would double what a time costs.
	DefaultTimeUnit mm.Nanos = 100

	// blockTime closes a block whose first event is this much older than the
	// newest, so that a recorder that is killed loses little.
	blockTime mm.Nanos = 1e9
)

// Errors of NewReader and Next. A DamagedError is the fourth.
var (
	ErrEmpty        = errors.New("recording: the file is empty: the recorder wrote nothing, or the copy failed")
	ErrNotRecording = errors.New("recording: not a recording of hugelab: record one with hugelab record")
	ErrNewer        = errors.New("recording: made by a newer hugelab: update hugelab to read it")
)

// DamagedError says that bytes of the recording changed after it was written.
// Events before Offset are sound.
type DamagedError struct {
	Offset int64 // of the frame that does not hold together
	What   string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("recording: damaged at byte %d: %s: copy it again, or record again", e.Offset, e.What)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is a frame's head.
type head struct {
	kind        byte
	length      uint32 // of the payload
	rows        uint32 // events in it
	raw         uint32 // length of its columns together
	first, last int64  // time of its first and last event, in units
	crc         uint32 // of the payload
}

func (h *head) put(b []byte) {
	clear(b[:headSize])
	b[0] = h.kind
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint32(b[8:], h.rows)
	binary.LittleEndian.PutUint32(b[12:], h.raw)
	binary.LittleEndian.PutUint64(b[16:], uint64(h.first))
	binary.LittleEndian.PutUint64(b[24:], uint64(h.last))
	binary.LittleEndian.PutUint32(b[32:], h.crc)
	binary.LittleEndian.PutUint32(b[36:], crc32.Checksum(b[:36], castagnoli))
}

// get reads a head and says what is wrong with it, "" if nothing.
func (h *head) get(b []byte) string {
	if crc32.Checksum(b[:36], castagnoli) != binary.LittleEndian.Uint32(b[36:]) {
		return "the checksum of a block's head is wrong"
	}
	*h = head{
		kind:   b[0],
		length: binary.LittleEndian.Uint32(b[4:]),
		rows:   binary.LittleEndian.Uint32(b[8:]),
		raw:    binary.LittleEndian.Uint32(b[12:]),
		first:  int64(binary.LittleEndian.Uint64(b[16:])),
		last:   int64(binary.LittleEndian.Uint64(b[24:])),
		crc:    binary.LittleEndian.Uint32(b[32:]),
	}
	limit := uint32(maxJSON)
	if h.kind == kindEvents {
		limit = maxPayload
	}
	if h.length > limit || h.rows > maxRows || h.raw > maxRaw {
		return "a block claims to be larger than any block is"
	}
	return ""
}

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

// MagicLen is how many bytes of a file IsRecording looks at.
const MagicLen = len(magic)

// IsRecording says whether a file that begins with these bytes is a recording.
func IsRecording(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) }
