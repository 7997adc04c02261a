package record

import (
	"bytes"
	"encoding/binary"
)

// formats says where the tracepoints' fields lie in raw samples; ids tell the
// tracepoints apart (0: not on this kernel).
type formats struct {
	faultUser, faultKernel, enter, exit, newtask, exec, lock uint16

	faultAddr, faultIP, faultCode int
	enterID, enterArgs            int
	exitID, exitRet               int
	newPID, newFlags              int
	execName, execOld             int
}

// Record types of the ring. Linux: include/uapi/linux/perf_event.h (v6.18).
const (
	recLost   = 2
	recComm   = 3
	recExit   = 4
	recSample = 9
	recMmap2  = 10

	miscCommExec = 1 << 13
)

// Every event of a ring is opened with sample_type TID|TIME|RAW (and REGS_USER
// behind them), so that one layout reads them all:
//
//	sample:     header 8 | pid 4 tid 4 | time 8 | raw size 4, raw | abi 8, sp 8
//	others:     header 8 | body            ...            | pid 4 tid 4 | time 8
const (
	headerLen   = 8
	samplePID   = 8
	sampleTime  = 16
	sampleRaw   = 24
	sampleIDLen = 16
)

// record is one record of a ring, not yet read by kind. raw is a part of the
// ring and good until the ring moves on.
type record struct {
	typ      uint32
	misc     uint16
	time     uint64
	pid, tid int32
	body     []byte // behind the header, without the trailing sample id
	raw      []byte // sample: the tracepoint's fields
	regs     []byte // sample: abi and registers
}

var le = binary.NativeEndian

// parseRecord reads the record that b wholly holds. It is false for one that
// is too short for its type.
func parseRecord(b []byte, r *record) bool {
	if len(b) < headerLen+sampleIDLen {
		return false
	}
	*r = record{typ: le.Uint32(b), misc: le.Uint16(b[4:])}
	if r.typ != recSample {
		id := b[len(b)-sampleIDLen:]
		r.pid, r.tid, r.time = int32(le.Uint32(id)), int32(le.Uint32(id[4:])), le.Uint64(id[8:])
		r.body = b[headerLen : len(b)-sampleIDLen]
		return true
	}
	if len(b) < sampleRaw+4 {
		return false
	}
	r.pid, r.tid = int32(le.Uint32(b[samplePID:])), int32(le.Uint32(b[samplePID+4:]))
	r.time = le.Uint64(b[sampleTime:])
	size := uint64(le.Uint32(b[sampleRaw:]))
	if size > uint64(len(b)-sampleRaw-4) {
		return false
	}
	r.raw = b[sampleRaw+4 : sampleRaw+4+size]
	r.regs = b[sampleRaw+4+size:]
	return true
}

// u16, u32 and u64 read a field; 0 where the sample is too short for it.
func u16(b []byte, off int) uint16 {
	if off < 0 || off+2 > len(b) {
		return 0
	}
	return le.Uint16(b[off:])
}

func u32(b []byte, off int) uint32 {
	if off < 0 || off+4 > len(b) {
		return 0
	}
	return le.Uint32(b[off:])
}

func u64(b []byte, off int) uint64 {
	if off < 0 || off+8 > len(b) {
		return 0
	}
	return le.Uint64(b[off:])
}

// cstring is the text at off up to its zero byte.
func cstring(b []byte, off int) string {
	if off < 0 || off >= len(b) {
		return ""
	}
	b = b[off:]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// dataLoc is the text that a __data_loc field at off points to.
func dataLoc(raw []byte, off int) string { return cstring(raw, int(u32(raw, off)&0xffff)) }

// sp is the user stack pointer of a sample, 0 when not kept; compat says that
// the task ran 32-bit code. Linux: include/uapi/linux/perf_event.h:perf_sample_regs_abi.
func (r *record) sp() (sp uint64, compat bool) {
	switch u64(r.regs, 0) {
	case 1:
		return u64(r.regs, 8), true
	case 2:
		return u64(r.regs, 8), false
	}
	return 0, false
}

// mmap2 is the body of a PERF_RECORD_MMAP2.
type mmap2 struct {
	start, end  uint64
	offset      uint64
	ident       uint64 // device and inode folded; 0 anonymous
	prot, flags uint32
	name        string
}

func (r *record) mmap2() (mmap2, bool) {
	b := r.body
	if len(b) < 64 {
		return mmap2{}, false
	}
	m := mmap2{start: le.Uint64(b[8:]), offset: le.Uint64(b[24:]), prot: le.Uint32(b[56:]), flags: le.Uint32(b[60:])}
	m.end = m.start + le.Uint64(b[16:])
	if m.end < m.start {
		return mmap2{}, false
	}
	maj, minor, ino := le.Uint32(b[32:]), le.Uint32(b[36:]), le.Uint64(b[40:])
	m.ident = fileIdent(maj, minor, ino)
	m.name = cstring(b, 64)
	if m.name == "//anon" {
		m.name = ""
	}
	return m, true
}

// fileIdent folds a file's device and inode into one number, never 0 for a file.
func fileIdent(major, minor uint32, ino uint64) uint64 {
	if ino == 0 && major == 0 && minor == 0 {
		return 0
	}
	id := (uint64(major)<<20|uint64(minor))*0x9e3779b97f4a7c15 ^ ino
	if id == 0 {
		id = 1
	}
	return id
}

// recordAt is the whole record at tail of a ring whose length is a power of
// two, joined in scratch when it wraps; nil when it does not end before head.
func recordAt(data []byte, tail, head uint64, scratch []byte) []byte {
	size := uint64(len(data))
	off := tail & (size - 1)
	if head-tail < headerLen || off+headerLen > size {
		return nil // records are 8 byte aligned: a header never wraps
	}
	n := uint64(le.Uint16(data[off+6:]))
	if n < headerLen || n%8 != 0 || n > head-tail || n > size || n > uint64(len(scratch)) {
		return nil
	}
	if off+n <= size {
		return data[off : off+n]
	}
	k := copy(scratch, data[off:])
	copy(scratch[k:], data[:int(n)-k])
	return scratch[:n]
}
