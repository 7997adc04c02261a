package record

import (
	"testing"
)

// putSample makes the bytes of a sample record.
func putSample(time uint64, raw, regs []byte) []byte {
	b := make([]byte, sampleRaw+4, 64)
	le.PutUint32(b, recSample)
	le.PutUint32(b[samplePID:], 10)
	le.PutUint32(b[samplePID+4:], 11)
	le.PutUint64(b[sampleTime:], time)
	for (len(raw)+4)%8 != 0 {
		raw = append(raw, 0)
	}
	le.PutUint32(b[sampleRaw:], uint32(len(raw)))
	b = append(append(b, raw...), regs...)
	le.PutUint16(b[6:], uint16(len(b)))
	return b
}

// putSide makes the bytes of any other record.
func putSide(typ uint32, time uint64, body []byte) []byte {
	b := make([]byte, headerLen, 64)
	le.PutUint32(b, typ)
	b = append(b, body...)
	b = le.AppendUint32(b, 10)
	b = le.AppendUint32(b, 11)
	b = le.AppendUint64(b, time)
	le.PutUint16(b[6:], uint16(len(b)))
	return b
}

func TestParseRecord(t *testing.T) {
	raw := make([]byte, 36)
	le.PutUint16(raw, 190)
	le.PutUint64(raw[8:], 0x7000)
	var r record
	b := putSample(5, raw, le.AppendUint64(le.AppendUint64(nil, 2), 0x7ffe))
	if !parseRecord(b, &r) || r.time != 5 || r.pid != 10 || r.tid != 11 || u64(r.raw, 8) != 0x7000 {
		t.Errorf("sample: %+v", r)
	}
	if sp, compat := r.sp(); sp != 0x7ffe || compat {
		t.Errorf("stack pointer %x, compat %v", sp, compat)
	}
	body := le.AppendUint64(le.AppendUint64(nil, 1), 42)
	if !parseRecord(putSide(recLost, 6, body), &r) || r.time != 6 || u64(r.body, 8) != 42 {
		t.Errorf("lost: %+v", r)
	}
	for n := range len(b) {
		parseRecord(b[:n], &r) // short ones must not be read beyond
	}
}

func TestRecordAtWraps(t *testing.T) {
	data, scratch := make([]byte, 128), make([]byte, 128)
	rec := putSide(recLost, 9, make([]byte, 16))
	tail := uint64(3*128 + 104)
	for i, c := range rec {
		data[(tail+uint64(i))%128] = c
	}
	got := recordAt(data, tail, tail+uint64(len(rec)), scratch)
	if string(got) != string(rec) {
		t.Errorf("got %x, want %x", got, rec)
	}
	if recordAt(data, tail, tail+uint64(len(rec))-8, scratch) != nil {
		t.Error("a record beyond the head was read")
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(putSample(5, make([]byte, 36), nil))
	f.Add(putSide(recMmap2, 5, make([]byte, 80)))
	f.Add(putSide(recComm, 5, make([]byte, 16)))
	f.Fuzz(func(t *testing.T, b []byte) {
		size := 64
		for size < len(b) {
			size *= 2
		}
		data := make([]byte, size)
		copy(data, b)
		scratch := make([]byte, 1<<16)
		for tail, head := uint64(0), uint64(len(b)); tail < head; {
			rec := recordAt(data, tail, head, scratch)
			if rec == nil {
				return
			}
			var r record
			if parseRecord(rec, &r) {
				r.sp()
				r.mmap2()
				dataLoc(r.raw, 8)
				cstring(r.body, 8)
			}
			tail += uint64(len(rec))
		}
	})
}
