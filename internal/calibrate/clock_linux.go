package calibrate

import (
	"encoding/binary"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hugelab/hugelab/mm"
)

// reading is all clocks at once. The thread's processor time is read last
// before a step and first after it.
type reading struct {
	wall, cpu    int64
	self, childs unix.Rusage
}

const rusageThread = 1

func clock(id uintptr) int64 {
	var t unix.Timespec
	call(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
	return t.Nano()
}

func (r *reading) usage() {
	who := unix.RUSAGE_CHILDREN
	call(unix.SYS_GETRUSAGE, uintptr(who), uintptr(unsafe.Pointer(&r.childs)), 0, 0, 0)
	call(unix.SYS_GETRUSAGE, rusageThread, uintptr(unsafe.Pointer(&r.self)), 0, 0, 0)
}

func (r *reading) before() {
	r.usage()
	r.wall = clock(unix.CLOCK_MONOTONIC)
	r.cpu = clock(unix.CLOCK_THREAD_CPUTIME_ID)
}

func (r *reading) after() {
	r.cpu = clock(unix.CLOCK_THREAD_CPUTIME_ID)
	r.wall = clock(unix.CLOCK_MONOTONIC)
	r.usage()
}

// since is what passed between two readings.
func (r *reading) since(a *reading) sample {
	childUser := r.childs.Utime.Nano() - a.childs.Utime.Nano()
	childSystem := r.childs.Stime.Nano() - a.childs.Stime.Nano()
	return sample{
		CPU:    r.cpu - a.cpu + childUser + childSystem,
		Wall:   r.wall - a.wall,
		System: r.self.Stime.Nano() - a.self.Stime.Nano() + childSystem,
		User:   r.self.Utime.Nano() - a.self.Utime.Nano() + childUser,
		Faults: int64(r.self.Minflt-a.self.Minflt) + int64(r.childs.Minflt-a.childs.Minflt),
	}
}

// time executes a step between two readings.
func (w *world) time(s *step, sampled bool) (sample, error) {
	if !s.hot {
		w.emptyCaches()
	}
	var a, b reading
	a.usage() // so that no page of the readings themselves is new
	b.usage()
	switch {
	case sampled:
		w.sampler.start()
	case s.traced && w.tracer != nil:
		w.tracer.start()
		defer w.tracer.stop()
	}
	a.before()
	var err error
	var each int64
	if s.at > 0 {
		each = w.singly(s)
	} else {
		err = w.exec(s.ops)
	}
	b.after()
	x := b.since(&a)
	if s.at > 0 {
		x.CPU = each*int64(s.per) + w.empty
	}
	if sampled {
		x.Sampled = true
		x.InKern, x.InUser = w.sampler.stop()
	}
	return x, err
}

// singly times the touches of a step one by one and tells the quantile. A
// page's time is by the wall clock, which is read faster, and an interruption
// is in few of them; that of a block is processor time.
func (w *world) singly(s *step) int64 {
	var times []int64
	var sum byte
	for i := range s.ops {
		o := &s.ops[i]
		p := pointer(w.addr(o))
		for range o.N {
			if s.cold {
				for at := 0; at < len(w.own); at += 64 {
					sum += w.own[at]
				}
			}
			begin, cpu := time.Now(), int64(0)
			if o.Stride > 1 {
				cpu = clock(unix.CLOCK_THREAD_CPUTIME_ID)
			}
			touchPages(p, 1, 0, o.Access&mm.Write != 0)
			took := int64(time.Since(begin))
			if o.Stride > 1 {
				took = clock(unix.CLOCK_THREAD_CPUTIME_ID) - cpu
			}
			times = append(times, took)
			p = unsafe.Add(p, uintptr(o.Stride)*w.page)
		}
	}
	runtime.KeepAlive(sum)
	slices.Sort(times)
	return times[int(float64(len(times)-1)*s.at)]
}

// emptyStep is what timing nothing shows, in nanoseconds: the median of many.
func (w *world) emptyStep() int64 {
	var all []int64
	for range 101 {
		x, _ := w.time(&step{hot: true}, false)
		all = append(all, x.CPU)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// warmUp uses and gives back the pages that a workload will need, and tells
// what one took in nanoseconds: memory that a hypervisor has not backed is
// backed now, outside what is timed. A workload of blocks runs whole once more,
// because only blocks of its own size come from where its own will come from.
func (w *world) warmUp(l *workload, rep int) (float64, error) {
	if l.order != 0 && rep == 0 {
		for i := range l.steps {
			if err := w.exec(l.steps[i].ops); err != nil {
				return 0, err
			}
		}
	}
	k := maker{Sizes: w.sizes}
	adv := mm.AdviseNoHugePage
	if l.order == w.sizes.PMD {
		adv = mm.AdviseHugePage
	}
	ops := []mm.Op{k.mapping(regionA, l.warm), advise(regionA, l.warm, adv)}
	if err := w.exec(ops); err != nil {
		return 0, err
	}
	x, err := w.time(&step{ops: []mm.Op{op(mm.OpPopulate, regionA, 0, l.warm, 0)}, hot: true}, false)
	if err != nil {
		return 0, err
	}
	return float64(x.Wall) / float64(l.warm), w.exec([]mm.Op{unmap(regionA, l.warm)})
}

// sampler asks perf where the processor is, by a timer.
type sampler struct {
	fd   int
	ring []byte
}

const (
	samplePeriod = 100_000 // ns of processor time between two samples
	ringPages    = 64      // a power of two
)

// startSampler opens perf's processor-time event for this thread, stopped.
func (w *world) startSampler() (err error) {
	w.sampler, err = w.openSampler(unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: samplePeriod,
		Sample_type: unix.PERF_SAMPLE_IP, Bits: unix.PerfBitDisabled,
	})
	return err
}

// startTracer opens the event by which recordings see faults, stopped, as they
// open it.
func (w *world) startTracer() error {
	text, err := os.ReadFile("/sys/kernel/tracing/events/exceptions/page_fault_user/id")
	if err != nil {
		text, err = os.ReadFile("/sys/kernel/debug/tracing/events/exceptions/page_fault_user/id")
	}
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil {
		return err
	}
	w.tracer, err = w.openSampler(unix.PerfEventAttr{
		Type: unix.PERF_TYPE_TRACEPOINT, Config: id, Sample: 1,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_RAW,
		Bits:        unix.PerfBitDisabled | unix.PerfBitSampleIDAll,
	})
	return err
}

func (w *world) openSampler(attr unix.PerfEventAttr) (*sampler, error) {
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	ring, err := unix.Mmap(fd, 0, (1+ringPages)*int(w.page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &sampler{fd, ring}, nil
}

func (s *sampler) start() { call(unix.SYS_IOCTL, uintptr(s.fd), unix.PERF_EVENT_IOC_ENABLE, 0, 0, 0) }

// stop tells how many samples found kernel and user mode since start.
func (s *sampler) stop() (kernel, user int64) {
	call(unix.SYS_IOCTL, uintptr(s.fd), unix.PERF_EVENT_IOC_DISABLE, 0, 0, 0)
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&s.ring[0]))
	data := s.ring[len(s.ring)-len(s.ring)*ringPages/(1+ringPages):]
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	mask := uint64(len(data) - 1)
	for tail < head {
		// Records are whole multiples of eight bytes, so a header never wraps.
		at := data[tail&mask:]
		kind, misc := binary.NativeEndian.Uint32(at), binary.NativeEndian.Uint16(at[4:])
		if kind == unix.PERF_RECORD_SAMPLE {
			switch misc & unix.PERF_RECORD_MISC_CPUMODE_MASK {
			case unix.PERF_RECORD_MISC_KERNEL:
				kernel++
			case unix.PERF_RECORD_MISC_USER:
				user++
			}
		}
		size := binary.NativeEndian.Uint16(at[6:])
		if size == 0 {
			break
		}
		tail += uint64(size)
	}
	atomic.StoreUint64(&page.Data_tail, head)
	return kernel, user
}
