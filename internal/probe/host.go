package probe

import (
	"io/fs"
	"os/exec"
	"runtime"

	"github.com/hugelab/hugelab/internal/kernel"
)

// Host is the machine as the probes see it; Live fills it with the real one and
// tests with others. The functions' errors are the machine's refusals.
type Host struct {
	OS    string // as Go names it
	FS    fs.FS  // proc/ and sys/, and the rest of the root
	Facts kernel.Facts

	Tracepoint  func(name string) error     // open it on every task
	FaultEvent  func(withKernel bool) error // open perf's page-fault event
	PageMap     func() (frames bool, err error)
	PageMapScan func() error
	Writable    func(path string) error
	KVM         func() error
	LookPath    func(program string) (string, error)
}

// Live is this machine.
func Live() Host {
	return Host{
		OS:    runtime.GOOS,
		FS:    kernel.LiveTree().FS,
		Facts: kernel.LiveFacts(),
		Tracepoint: func(name string) error {
			id, err := kernel.TracepointID(name)
			if err != nil {
				return err
			}
			return kernel.TryTracepoint(id)
		},
		FaultEvent:  kernel.TryFaultEvent,
		PageMap:     kernel.TryPageMap,
		PageMapScan: kernel.TryPageMapScan,
		Writable:    kernel.Writable,
		KVM:         kernel.TryKVM,
		LookPath:    exec.LookPath,
	}
}

// probe is one question: what it is called, who asks, and whether any system
// but Linux can answer.
type probe struct {
	name, what string
	ask        func(Host) Check
	anywhere   bool
}

// probes lists every question in the order of the table.
func probes() []probe {
	return []probe{
		{"machine", "machine", machine, true},
		{"kernel.rules", "kernel the model knows", knownKernel, true},
		{"record.root", "record: tracepoints", recordRoot, false},
		{"record.perf", "record: perf page-fault event", recordPerf, false},
		{"record.pagemap", "record: stops and page map", recordPageMap, false},
		{"pagemap.frames", "page map: frame numbers", pageFrames, false},
		{"pagemap.scan", "page map: PAGEMAP_SCAN", pageMapScan, false},
		{"thp.read", "huge page settings: read", thpRead, false},
		{"thp.write", "huge page settings: write", thpWrite, false},
		{"thp.sizes", "huge page settings: by size", thpSizes, false},
		{"hugetlb", "hugetlb pools", hugetlb, false},
		{"hvo", "hugetlb vmemmap optimisation", hvo, false},
		{"buddyinfo", "free memory by block size", buddyInfo, false},
		{"cgroup", "memory limit", cgroupLimit, false},
		{"vm.qemu", "virtual machine: QEMU", qemu, true},
		{"vm.kernel", "virtual machine: kernel image", kernelImage, false},
		{"vm.kvm", "virtual machine: KVM", kvm, false},
	}
}

// Run asks everything. It changes nothing.
func Run(h Host) []Check {
	var all []Check
	for _, p := range probes() {
		var c Check
		if h.OS == "linux" || p.anywhere {
			c = p.ask(h)
		} else {
			c = no("needs Linux, this is "+h.OS, "")
		}
		c.Name, c.What = p.name, p.what
		all = append(all, c)
	}
	return all
}
