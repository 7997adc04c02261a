package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

func machine(h Host) Check {
	f := h.Facts
	text := fmt.Sprintf("%d CPUs (%s), %s pages", f.CPUs, f.Arch, shortSize(f.PageSize))
	if f.MemTotal != 0 {
		text += fmt.Sprintf(", %.1f GiB of memory", float64(f.MemTotal)/(1<<30))
	}
	if f.Sizes.PMD == 0 {
		return no(text+": the model knows pages of 4k, 16k and 64k", "")
	}
	return yes(text)
}

func shortSize(b mm.Bytes) string { return fmt.Sprintf("%dk", b>>10) }

func knownKernel(h Host) Check {
	if h.OS != "linux" {
		return no("this is "+h.OS+": recordings made on Linux can be replayed here", "hugelab recording info FILE")
	}
	r, err := mm.RulesFor(h.Facts.Release)
	if err != nil {
		return no(err.Error(), "")
	}
	return yes(fmt.Sprintf("Linux %s: the rules of %s", h.Facts.Release, r.Version))
}

// recordRoot asks for the tracepoints that method root records.
func recordRoot(h Host) Check {
	err := h.Tracepoint("exceptions/page_fault_user")
	if err == nil {
		err = h.Tracepoint("raw_syscalls/sys_exit")
	}
	switch {
	case err == nil:
		return yes("perf opens exceptions:page_fault_user and raw_syscalls on every CPU")
	case errors.Is(err, fs.ErrNotExist):
		if _, err := fs.Stat(h.FS, "sys/kernel/tracing/events"); err != nil {
			return no("tracefs is not mounted, or this kernel has no tracing",
				"sudo mount -t tracefs tracefs /sys/kernel/tracing")
		}
		return no("this kernel has no tracepoint exceptions:page_fault_user", "")
	case errors.Is(err, fs.ErrPermission):
		return no(refused(h, err), "run as root; tracefs is closed to others on most systems")
	}
	return no(err.Error(), "")
}

// recordPerf asks for the event that method perf records.
func recordPerf(h Host) Check {
	if err := h.FaultEvent(true); err == nil {
		return yes("perf gives page faults, those in kernel mode too")
	}
	err := h.FaultEvent(false)
	switch {
	case err == nil:
		return yes("perf gives page faults from user mode; those in kernel mode are found in the page map")
	case errors.Is(err, fs.ErrPermission):
		return no(refused(h, err), "sudo sysctl kernel.perf_event_paranoid=2")
	}
	return no(err.Error(), "")
}

// refused says what stands against perf, as far as the kernel tells.
func refused(h Host, err error) string {
	why := []string{err.Error()}
	if text, rerr := readText(h.FS, "proc/sys/kernel/perf_event_paranoid"); rerr == nil {
		why = append(why, "kernel.perf_event_paranoid is "+text)
	}
	if st, serr := kstat.ReadStatus(h.FS, 0); serr == nil {
		if has, known := st.Has(kstat.CapPerfmon); known && !has {
			why = append(why, "this process lacks CAP_PERFMON")
		}
	}
	if mode := lockdown(h.FS); mode != "" && mode != "none" {
		why = append(why, "the kernel is locked down ("+mode+")")
	}
	return strings.Join(why, "; ")
}

// lockdown is the word in brackets of "[none] integrity confidentiality".
func lockdown(fsys fs.FS) string {
	text, err := readText(fsys, "sys/kernel/security/lockdown")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(text, "[")
	mode, _, _ := strings.Cut(after, "]")
	return mode
}

// recordPageMap asks what method pagemap needs: system-call stops of a child of
// ours, and its page map.
func recordPageMap(h Host) Check {
	if _, err := h.PageMap(); err != nil {
		return no("page map: "+err.Error(), "")
	}
	if text, err := readText(h.FS, "proc/sys/kernel/yama/ptrace_scope"); err == nil && text == "3" {
		return no("kernel.yama.ptrace_scope is 3: no process may be traced", "only a reboot resets it")
	}
	st, err := kstat.ReadStatus(h.FS, 0)
	if err != nil {
		return unknown("/proc/self/status cannot be read", "")
	}
	if _, ok := st["Seccomp"]; !ok {
		return no("this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER)", "")
	}
	return yes("needs no rights; faults are seen at each memory call, not one by one")
}

func pageFrames(h Host) Check {
	frames, err := h.PageMap()
	switch {
	case err != nil:
		return no(err.Error(), "")
	case !frames:
		return no("the kernel hides them: this process lacks CAP_SYS_ADMIN; sizes come from smaps then", "run as root")
	}
	return yes("the folio behind every page can be seen")
}

func pageMapScan(h Host) Check {
	if err := h.PageMapScan(); err != nil {
		return no(fmt.Sprintf("%v (it came with Linux 6.7); page maps are read entry by entry", err), "")
	}
	return yes("page maps are read by range")
}

func readText(fsys fs.FS, path string) (string, error) {
	b, err := fs.ReadFile(fsys, path)
	return strings.TrimSpace(string(b)), err
}
