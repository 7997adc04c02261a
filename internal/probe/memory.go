package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

const thpDir = "/sys/kernel/mm/transparent_hugepage"

// noTHP is what stands in the way of every setting.
const noTHP = "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)"

func thpRead(h Host) Check {
	p, err := kstat.ReadPolicy(h.FS, h.Facts.Sizes)
	switch {
	case kstat.Missing(err):
		return no(noTHP, "")
	case err != nil:
		return no(err.Error(), "")
	}
	return yes("as a policy: " + strings.ReplaceAll(p.Spec(h.Facts.Sizes), ",", ", "))
}

func thpWrite(h Host) Check {
	err := h.Writable(thpDir + "/enabled")
	switch {
	case err == nil:
		return yes("hugelab changes them only where a verb says so, and puts them back")
	case errors.Is(err, fs.ErrNotExist):
		return no(noTHP, "")
	case errors.Is(err, fs.ErrPermission):
		return no("only root may; predictions do not need it", "run as root to measure under other policies")
	}
	return no(err.Error()+"; predictions do not need it", "")
}

func thpSizes(h Host) Check {
	var have []string
	for _, o := range h.Facts.Sizes.Orders() {
		dir := thpDir[1:] + "/" + h.Facts.Sizes.Dir(o)
		if _, err := fs.Stat(h.FS, dir+"/enabled"); err == nil {
			have = append(have, h.Facts.Sizes.Name(o))
		}
	}
	if _, err := fs.Stat(h.FS, thpDir[1:]+"/enabled"); err != nil {
		return no(noTHP, "")
	}
	if have == nil {
		return no("they came with Linux 6.8; the model can still predict them", "")
	}
	return yes(strings.Join(have, " "))
}

func hugetlb(h Host) Check {
	pools, err := kstat.ReadPools(h.FS)
	switch {
	case kstat.Missing(err):
		return no("this kernel has no hugetlb (CONFIG_HUGETLBFS)", "")
	case err != nil:
		return no(err.Error(), "")
	}
	var text []string
	for _, p := range pools {
		if p.Node < 0 {
			text = append(text, fmt.Sprintf("%s: %d pages, %d available", poolSize(p.Size), p.Total, p.Available()))
		}
	}
	return yes(strings.Join(text, "; "))
}

func poolSize(b mm.Bytes) string {
	switch {
	case b >= 1<<30 && b%(1<<30) == 0:
		return fmt.Sprintf("%dg", b>>30)
	case b >= 1<<20 && b%(1<<20) == 0:
		return fmt.Sprintf("%dm", b>>20)
	}
	return shortSize(b)
}

func hvo(h Host) Check {
	on, err := kstat.ReadHVO(h.FS)
	switch {
	case kstat.Missing(err):
		return no("this kernel cannot (CONFIG_HUGETLB_PAGE_OPTIMIZE_VMEMMAP)", "")
	case err != nil:
		return unknown(err.Error(), "")
	case on:
		return yes("on: each 2 MiB page saves 28 KiB of page descriptors")
	}
	return no("the kernel can, but it is off", "sudo sysctl vm.hugetlb_optimize_vmemmap=1 before the pool is made")
}

func buddyInfo(h Host) Check {
	free, err := kstat.ReadFreeState(h.FS)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return no("only root may read /proc/buddyinfo here; predictions assume fresh memory", "run as root")
	case err != nil:
		return no(err.Error()+"; predictions assume fresh memory", "")
	}
	var pages, big mm.Pages
	for _, z := range free.Zones {
		for o, n := range z.Blocks {
			pages += mm.Pages(n) << o
			if mm.Order(o) >= h.Facts.Sizes.PMD {
				big += mm.Pages(n) << o
			}
		}
	}
	if pages == 0 {
		return unknown("/proc/buddyinfo shows no free block", "")
	}
	return yes(fmt.Sprintf("%.1f GiB free, %.0f%% of it in blocks of a PMD's size or more",
		float64(pages)*float64(h.Facts.PageSize)/(1<<30), 100*float64(big)/float64(pages)))
}

func cgroupLimit(h Host) Check {
	l, err := kstat.ReadMemoryLimit(h.FS, 0)
	switch {
	case err != nil:
		return unknown("/proc/self/cgroup: "+err.Error(), "")
	case l.Version == 0:
		return no("no memory cgroup holds this process", "")
	case l.Limit == 0:
		return no(fmt.Sprintf("cgroup version %d sets none", l.Version), "")
	}
	return yes(fmt.Sprintf("%.1f GiB, by cgroup version %d", float64(l.Limit)/(1<<30), l.Version))
}
