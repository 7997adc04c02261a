package record

import (
	"testing"

	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
	"golang.org/x/sys/unix"
)

// testFormats are the layouts of 6.18 on x86-64.
var testFormats = formats{
	faultUser: 190, faultKernel: 189, enter: 443, exit: 442, newtask: 205, exec: 365, lock: 675,
	faultAddr: 8, faultIP: 16, faultCode: 24, enterID: 8, enterArgs: 16, exitID: 8, exitRet: 16,
	newPID: 8, newFlags: 32, execName: 8, execOld: 16,
}

// raw makes a tracepoint's sample from its id and 8 byte fields.
func raw(id uint16, fields ...uint64) []byte {
	b := make([]byte, 8)
	le.PutUint16(b, id)
	for _, f := range fields {
		b = le.AppendUint64(b, f)
	}
	return append(b, 0, 0, 0, 0)
}

func kinds(records ...[]byte) (out []trace.Event) {
	q := newQueue(func(e *trace.Event) { out = append(out, *e) })
	d := newDecoder(&testFormats, q, func(string) {})
	for _, b := range records {
		var r record
		if parseRecord(b, &r) {
			d.decode(&r, mm.CPU(0))
		}
	}
	d.finish()
	return out
}

// TestCallStandsWhereItHeldTheLock: the map call entered first, but the fault
// came before it held the address space.
func TestCallStandsWhereItHeldTheLock(t *testing.T) {
	enter := putSample(1, raw(443, unix.SYS_MUNMAP, 0x5000, 0x1000), nil)
	fault := putSample(2, raw(190, 0x5000, 0, 6), nil)
	lock := putSample(3, raw(675), nil)
	late := putSample(4, raw(190, 0x6000, 0, 6), nil)
	leave := putSample(5, raw(442, unix.SYS_MUNMAP, 0), nil)
	got := kinds(enter, fault, lock, late, leave)
	if len(got) != 3 || got[0].A != 0x5000 || got[0].Kind != trace.KindFault || got[1].Kind != trace.KindMunmap ||
		got[1].When != 3 || got[2].A != 0x6000 {
		t.Errorf("with the lock's time: %+v", got)
	}
	got = kinds(enter, fault, late, leave)
	if len(got) != 3 || got[0].Kind != trace.KindMunmap {
		t.Errorf("without: %+v", got)
	}
	enter = putSample(1, raw(443, unix.SYS_MMAP, 0x5000, 0x1000), nil)
	leave = putSample(5, raw(442, unix.SYS_MMAP, 0x5000), nil)
	got = kinds(enter, fault, late, leave)
	if len(got) != 3 || got[2].Kind != trace.KindMmap || got[2].Ret != 0x5000 {
		t.Errorf("a map without the lock's time: %+v", got)
	}
	// A call that never returned is no event, and holds nothing back.
	if got = kinds(enter, fault); len(got) != 1 {
		t.Errorf("an unfinished call: %+v", got)
	}
}

func FuzzDecode(f *testing.F) {
	var all []byte
	for i, id := range []uint16{443, 675, 190, 205, 365, 442} {
		all = append(all, putSample(uint64(i), raw(id, 9, 1, 2, 3, 4, 5), nil)...)
	}
	all = append(all, putSide(recComm, 9, make([]byte, 16))...)
	all = append(all, putSide(recMmap2, 10, make([]byte, 80))...)
	all = append(all, putSide(recExit, 11, make([]byte, 24))...)
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		var list [][]byte
		for len(b) >= headerLen {
			n := int(le.Uint16(b[6:]))
			if n < headerLen || n > len(b) {
				break
			}
			list = append(list, b[:n])
			b = b[n:]
		}
		kinds(list...)
	})
}

// ringOfFaults is a ring full of faults.
func ringOfFaults(n int) *ring {
	rec := putSample(1, raw(190, 0x5000, 0, 6), nil)
	size := 64
	for size < n*len(rec) {
		size *= 2
	}
	r := &ring{data: make([]byte, size), scratch: make([]byte, 1<<16), head: uint64(n * len(rec))}
	for i := range n {
		copy(r.data[i*len(rec):], rec)
	}
	return r
}

// readAll decodes a ring from its start.
func readAll(r *ring, d *decoder) {
	r.tail = 0
	for r.peek(); r.has; r.step() {
		d.decode(&r.rec, 0)
	}
}

func TestFaultsAllocateNothing(t *testing.T) {
	n := 0
	r := ringOfFaults(100)
	d := newDecoder(&testFormats, newQueue(func(e *trace.Event) { n++ }), func(string) {})
	if a := testing.AllocsPerRun(10, func() { readAll(r, d) }); a != 0 || n != 11*100 {
		t.Errorf("%v allocations for 100 faults, %d events", a, n)
	}
}

func BenchmarkDecodeFault(b *testing.B) {
	r := ringOfFaults(1000)
	d := newDecoder(&testFormats, newQueue(func(e *trace.Event) {}), func(string) {})
	for b.Loop() {
		readAll(r, d)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/fault")
}
