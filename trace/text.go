package trace

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/hugelab/hugelab/mm"
)

// style says how a field of an event is written.
type style uint8

const (
	hex   style = iota // an address, a length, flags
	dec                // a count or a number
	addr               // the result: an address or -errno
	prot               // rwx
	touch              // mm.Access
)

// field is one field of an event as text: bits [shift, shift+width) of A to D,
// or Ret.
type field struct {
	key   string
	in    byte // 'A' 'B' 'C' 'D', 'R' Ret
	shift uint8
	width uint8 // 0: all
	style style
	must  bool // written even when zero
}

// kindText is how a Kind is written.
type kindText struct {
	name   string
	fields []field
}

var (
	fieldProt  = field{"prot", 'C', 0, 32, prot, true}
	fieldFlags = field{"flags", 'C', 32, 32, hex, true}
	fieldAddr  = field{"addr", 'A', 0, 0, hex, true}
	fieldLen   = field{"len", 'B', 0, 0, hex, true}
	fieldRet   = field{"ret", 'R', 0, 0, addr, false}
)

var kindTexts = [NumKinds]kindText{
	KindNone:  {"none", nil},
	KindFault: {"fault", []field{fieldAddr, {"ip", 'B', 0, 0, hex, false}}},
	KindMmap: {"mmap", []field{fieldAddr, fieldLen, fieldProt, fieldFlags, {"fd", 'D', 0, 32, dec, false},
		{"file", 'D', 32, 1, dec, false}, fieldRet}},
	KindMunmap: {"munmap", []field{fieldAddr, fieldLen, fieldRet}},
	KindMremap: {"mremap", []field{fieldAddr, fieldLen, {"new_len", 'C', 0, 0, hex, true},
		{"flags", 'D', 0, 12, hex, false}, {"new_page", 'D', 12, 52, hex, false}, fieldRet}},
	KindMprotect: {"mprotect", []field{fieldAddr, fieldLen, {"prot", 'C', 0, 0, prot, true},
		{"pkey+1", 'D', 0, 0, dec, false}, fieldRet}},
	KindBrk: {"brk", []field{fieldAddr, fieldRet}},
	KindMadvise: {"madvise", []field{fieldAddr, fieldLen, {"advice", 'C', 0, 0, dec, true},
		{"target", 'D', 0, 0, dec, false}, fieldRet}},
	KindMlock:    {"mlock", []field{fieldAddr, fieldLen, {"flags", 'C', 0, 0, hex, false}, fieldRet}},
	KindMunlock:  {"munlock", []field{fieldAddr, fieldLen, fieldRet}},
	KindMlockall: {"mlockall", []field{{"flags", 'A', 0, 0, hex, true}, fieldRet}},
	KindShmat:    {"shmat", []field{fieldAddr, fieldLen, fieldRet}},
	KindShmdt:    {"shmdt", []field{fieldAddr, fieldRet}},
	KindMbind: {"mbind", []field{fieldAddr, fieldLen, {"mode", 'C', 0, 0, dec, true},
		{"nodes", 'D', 0, 0, hex, false}, fieldRet}},
	KindUffd:     {"userfaultfd", []field{fieldAddr, fieldLen, {"armed", 'C', 0, 0, dec, true}}},
	KindPrctlTHP: {"prctl_thp_disable", []field{{"disable", 'A', 0, 0, dec, true}, {"flags", 'B', 0, 0, hex, false}, fieldRet}},
	KindNewTask: {"new_task", []field{{"child_tid", 'A', 0, 0, dec, true}, {"flags", 'B', 0, 0, hex, true},
		{"child_pid", 'C', 0, 0, dec, true}}},
	KindExec: {"exec", []field{{"old_tid", 'A', 0, 0, dec, false}, {"sp", 'B', 0, 0, hex, false},
		{"compat", 'C', 0, 0, dec, false}}},
	KindExit: {"exit", []field{{"last", 'A', 0, 0, dec, false}}},
	KindMapAt: {"map_at", []field{{"start", 'A', 0, 0, hex, true}, {"end", 'B', 0, 0, hex, true}, fieldProt, fieldFlags,
		{"file", 'D', 0, 0, hex, false}}},
	KindBrkAt: {"brk_at", []field{{"start", 'A', 0, 0, hex, true}, {"end", 'B', 0, 0, hex, true}}},
	KindResident: {"resident", []field{{"start", 'A', 0, 0, hex, true}, {"pages", 'B', 0, 0, dec, true},
		{"access", 'C', 0, 8, touch, true}, {"order", 'D', 0, 0, dec, false}}},
	KindUnknown: {"unknown", []field{{"start", 'A', 0, 0, hex, true}, fieldLen, {"what", 'C', 0, 0, dec, true}}},
	KindLost:    {"lost", []field{{"events", 'A', 0, 0, dec, true}}},
	KindNote:    {"note", nil},

	KindOtherFaults: {"other_faults", []field{{"faults", 'A', 0, 0, dec, true}}},
}

// String is the kind's name in text and JSON.
func (k Kind) String() string {
	if int(k) < NumKinds {
		return kindTexts[k].name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

var accessNames = [8]string{"read", "write", "exec", "kernel", "present", "unknown", "no-fault", "zero-data"}

// appendAccess writes the bits of an access, joined by +.
func appendAccess(b []byte, a mm.Access) []byte {
	start := len(b)
	for i, s := range accessNames {
		if a>>i&1 != 0 {
			if len(b) > start {
				b = append(b, '+')
			}
			b = append(b, s...)
		}
	}
	if len(b) == start {
		b = append(b, '-')
	}
	return b
}

func (e *Event) value(f field) uint64 {
	v := [...]uint64{e.A, e.B, e.C, e.D}
	n := uint64(e.Ret)
	if f.in != 'R' {
		n = v[f.in-'A']
	}
	n >>= f.shift
	if f.width != 0 {
		n &= 1<<f.width - 1
	}
	return n
}

// signed is the value of a decimal field: a descriptor is 32 bits with a sign.
func (f field) signed(n uint64) int64 {
	if f.width == 32 {
		return int64(int32(uint32(n)))
	}
	return int64(n)
}

func (f field) append(b []byte, n uint64) []byte {
	switch f.style {
	case dec:
		return strconv.AppendInt(b, f.signed(n), 10)
	case addr:
		if refused(int64(n)) {
			return strconv.AppendInt(b, int64(n), 10)
		}
	case prot:
		for i, c := range []byte("rwx") {
			if n>>i&1 == 0 {
				c = '-'
			}
			b = append(b, c)
		}
		if n > 7 {
			b = append(append(b, '+'), strconv.FormatUint(n&^7, 16)...)
		}
		return b
	case touch:
		return appendAccess(b, mm.Access(n))
	}
	return strconv.AppendUint(append(b, "0x"...), n, 16)
}

// AppendText appends the event as one line of text without its end:
// seconds, thread/process, CPU, kind, then its fields as key=value.
func (e *Event) AppendText(b []byte) []byte {
	w := e.When
	if w < 0 {
		b = append(b, '-')
		w = -w
	}
	b = strconv.AppendUint(b, uint64(w)/1e9, 10)
	b = append(b, '.')
	frac := strconv.AppendUint(nil, 1e9+uint64(w)%1e9, 10)
	b = append(b, frac[1:]...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(e.TID), 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(e.PID), 10)
	b = append(b, " cpu"...)
	b = strconv.AppendUint(b, uint64(e.CPU), 10)
	b = append(b, ' ')
	b = append(b, e.Kind.String()...)
	for _, f := range e.fields() {
		n := e.value(f)
		if n == 0 && !f.must {
			continue
		}
		b = append(b, ' ')
		b = append(b, f.key...)
		b = append(b, '=')
		b = f.append(b, n)
	}
	if e.Kind == KindFault || e.Access != 0 {
		b = appendAccess(append(b, " access="...), e.Access)
	}
	if e.Name != "" {
		b = strconv.AppendQuote(append(b, " name="...), e.Name)
	}
	return b
}

func (e *Event) fields() []field {
	if int(e.Kind) >= NumKinds {
		return nil
	}
	return kindTexts[e.Kind].fields
}

// AppendJSON appends the event as one JSON object without a line end. Times
// are in nanoseconds; addresses, lengths and flags are strings like "0x7f00".
func (e *Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"when_ns":`...)
	b = strconv.AppendInt(b, int64(e.When), 10)
	b = append(b, `,"tid":`...)
	b = strconv.AppendInt(b, int64(e.TID), 10)
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, int64(e.PID), 10)
	b = append(b, `,"cpu":`...)
	b = strconv.AppendUint(b, uint64(e.CPU), 10)
	b = append(b, `,"kind":"`...)
	b = append(b, e.Kind.String()...)
	b = append(b, '"')
	for _, f := range e.fields() {
		n := e.value(f)
		if n == 0 && !f.must {
			continue
		}
		b = append(append(append(b, `,"`...), f.key...), `":`...)
		if f.style == dec || f.style == addr && refused(int64(n)) {
			b = f.append(b, n)
			continue
		}
		b = append(f.append(append(b, '"'), n), '"')
	}
	if e.Kind == KindFault || e.Access != 0 {
		b = append(appendAccess(append(b, `,"access":"`...), e.Access), '"')
	}
	if e.Name != "" {
		b = appendJSONString(append(b, `,"name":`...), e.Name)
	}
	return append(b, '}')
}

// appendJSONString quotes s; bytes that are no UTF-8 become U+FFFD.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
