package record

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
	"github.com/hugelab/hugelab/trace"
)

// userSpace is one address space under record. Threads and vfork children
// share it; tasks count in users.
type userSpace struct {
	owner  int // the process that explained faults are counted for
	pm     *kernel.PageMap
	known  *pageSet
	users  int // processes that use it
	inCall int // threads between entry and exit of a call that changes it

	pending []userFault // from the perf event, not yet written

	stack      span  // the main stack and what it may grow into
	brk        mm.VA // end of the heap
	lockFuture bool  // mlockall(MCL_FUTURE): new mappings are filled by the kernel
	locks      bool  // it has locked memory: what becomes part of that is filled too
	scanErr    error

	lastFull time.Time
	fullCost time.Duration
}

// userFault is one fault that the perf event saw.
type userFault struct {
	when     mm.Nanos
	addr, ip uint64
	pid, tid int32
	cpu      mm.CPU
}

// everything is all of user memory that the kernel gives out unasked: 47 bits
// on x86-64, 48 on arm64, whatever the hardware can do.
var everything = span{0, highest()}

func highest() mm.VA {
	if runtime.GOARCH == "arm64" {
		return 1 << 48
	}
	return 1<<47 - 4096
}

// fullShare bounds the time spent in looks at whole address spaces to one part
// in so many of the run.
const fullShare = 16

// nearby is how far around a changed range a look goes. A folio is placed
// within 2 MiB, so this is as far as a later change can matter to it.
const nearby = 2 << 20

// settle writes everything that has happened in sp up to now and that can be
// known: pending faults, their access told by the page map, then pages that
// appeared without a fault event. It looks at spans, around pending faults
// and, when that is cheap, everywhere.
func (t *traced) settle(sp *userSpace, tid, pid int, spans ...span) {
	if sp == nil || sp.pm == nil {
		return
	}
	t.drain()
	full := len(spans) == 1 && spans[0] == everything
	if now := time.Now(); !full && now.Sub(sp.lastFull) >= fullShare*sp.fullCost {
		full = true
	}
	if full {
		spans = []span{everything}
	} else {
		for _, f := range sp.pending {
			at := mm.VA(f.addr) &^ (nearby - 1)
			if n := len(spans); n == 0 || spans[n-1].from != at {
				spans = append(spans, span{at, at + nearby})
			}
		}
		spans = mergeSpans(spans)
	}
	began, early := time.Now(), len(sp.pending)
	t.runs = t.runs[:0]
	for _, s := range spans {
		var err error
		if t.runs, err = sp.pm.Scan(s.from, s.to, true, t.runs); err != nil && sp.scanErr == nil {
			sp.scanErr = err
			t.note("page map of process " + itoa(pid) + " cannot be read: " + err.Error())
		}
	}
	t.drain() // a page seen by the scan had its event written before
	t.writePending(sp, early)
	t.writeFound(sp, tid, pid)
	if full {
		sp.lastFull = time.Now()
		sp.fullCost = sp.lastFull.Sub(began)
	}
}

// writePending writes the faults of the perf event. The event does not say what
// kind of access it was: the page map does, by what it found afterwards, and a
// second fault on a page says that the first one only read. Of the faults from
// early on, which came during the scan, those that the scan did not find wait
// for the next one.
func (t *traced) writePending(sp *userSpace, early int) {
	last, late := t.lastFault, sp.pending[:0]
	clear(last)
	for i := range sp.pending {
		last[sp.pending[i].addr/t.pageSize] = i
	}
	for i, f := range sp.pending {
		page := f.addr / t.pageSize
		before, now := sp.known.get(page), t.found(page)
		if i >= early && now == unseen {
			late = append(late, f)
			continue
		}
		acc, next := t.judge(before, now, last[page] > i)
		sp.known.set(page, next)
		t.emit(&trace.Event{
			Kind: trace.KindFault, Access: acc, CPU: f.cpu, TID: f.tid, PID: f.pid,
			When: f.when, A: f.addr, B: f.ip,
		})
		t.explain(sp, 1)
	}
	sp.pending = late
}

// judge says what a user-mode fault did to a page: before is what was known of
// it, now what the page map shows, again that another fault follows.
//
//	before   now      again  access         known after
//	unseen   any page yes    read           zero
//	any      zero     -      read           zero
//	any      written  -      write          written
//	any      no page  -      unknown        written
//
// No page means a file page, one that was taken away, or one that is only just
// being made; it counts as known, so that a later look does not tell it again.
// Where the kernel shows no zero page, written is only a guess.
func (t *traced) judge(before, now pageState, again bool) (acc mm.Access, next pageState) {
	switch {
	case now == unseen:
		acc, next = mm.AccessUnknown, seenWritten
	case !t.zeroTold:
		acc, next = mm.AccessUnknown|mm.Write, seenWritten
	case before == unseen && again, now == seenZero:
		acc, next = mm.Read, seenZero
	default:
		acc, next = mm.Write, seenWritten
	}
	if before != unseen {
		acc |= mm.WasPresent
	}
	return acc, next
}

// found tells what the last scan, in t.runs, says of a page.
func (t *traced) found(page uint64) pageState {
	at := mm.VA(page * t.pageSize)
	i, ok := slices.BinarySearchFunc(t.runs, at, func(r kernel.Run, at mm.VA) int {
		return cmp.Compare(r.Start, at)
	})
	if !ok {
		if i == 0 {
			return unseen
		}
		i--
	}
	if r := t.runs[i]; at < r.End(t.pageSize) {
		return runState(r)
	}
	return unseen
}

func runState(r kernel.Run) pageState {
	if r.Zero {
		return seenZero
	}
	return seenWritten
}

// writeFound writes what the last scan found and no fault event told: under
// the pagemap method every page, under perf what the kernel touched.
func (t *traced) writeFound(sp *userSpace, tid, pid int) {
	for _, r := range t.runs {
		st, first := runState(r), uint64(r.Start)/t.pageSize
		var from, n uint64
		flush := func() {
			if n > 0 {
				t.writeResident(sp, tid, pid, from, n, st)
			}
			n = 0
		}
		for p := first; p < first+uint64(r.Pages); p++ {
			have := sp.known.get(p)
			if have == st || have == seenWritten {
				flush()
				continue
			}
			sp.known.set(p, st)
			if n == 0 {
				from = p
			}
			n++
		}
		flush()
	}
}

// writeResident writes n new pages from page on. A stack grows downwards page
// by page, so its pages are told from the top.
func (t *traced) writeResident(sp *userSpace, tid, pid int, page, n uint64, st pageState) {
	acc := mm.Write | mm.NoFault
	switch {
	case !t.zeroTold:
		acc |= mm.AccessUnknown
	case st == seenZero:
		acc = mm.Read | mm.NoFault
	}
	if t.usePerf {
		acc |= mm.KernelMode
	}
	e := trace.Event{
		Kind: trace.KindResident, TID: int32(tid), PID: int32(pid), When: t.now(),
		A: page * t.pageSize, B: n, C: uint64(acc),
	}
	t.explain(sp, n)
	if at := mm.VA(e.A); at >= sp.stack.from && at < sp.stack.to {
		for e.B = 1; n > 0; n-- {
			e.A = (page + n - 1) * t.pageSize
			t.emit(&e)
		}
		return
	}
	t.emit(&e)
}

// absorb takes the pages of spans as known without writing them: the kernel
// filled them in within a call that the recording holds (MAP_POPULATE, mlock).
// It returns how many they were.
func (t *traced) absorb(sp *userSpace, s span) (n uint64) {
	if sp.pm == nil {
		return 0
	}
	t.runs, _ = sp.pm.Scan(s.from, s.to, true, t.runs[:0])
	for _, r := range t.runs {
		first := uint64(r.Start) / t.pageSize
		for p := first; p < first+uint64(r.Pages); p++ {
			if st := runState(r); sp.known.get(p) < st {
				sp.known.set(p, st)
				n++
			}
		}
	}
	t.explain(sp, n)
	return n
}
