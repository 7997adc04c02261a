//go:build !linux

package kernel

import (
	"github.com/hugelab/hugelab/internal/kstat"
	"github.com/hugelab/hugelab/mm"
)

// PageMap is one process's page map; there is none here.
type PageMap struct{}

// OpenPageMap says that this system has no page maps.
func OpenPageMap(int) (*PageMap, error) { return nil, errNotLinux }

// Close does nothing.
func (*PageMap) Close() error { return nil }

// Scan finds nothing.
func (*PageMap) Scan(_, _ mm.VA, _ bool, runs []Run) ([]Run, error) { return runs, errNotLinux }

// Pages is the kernel's kstat.PageSource; there is none here.
type Pages struct{}

var _ kstat.PageSource = (*Pages)(nil)

// OpenPages says that this system has no page maps.
func OpenPages() (*Pages, error) { return nil, errNotLinux }

// Close does nothing.
func (*Pages) Close() error { return nil }

// Exact implements kstat.PageSource.
func (*Pages) Exact() bool { return false }

// Pages implements kstat.PageSource.
func (*Pages) Pages(int, mm.VA, []kstat.PageInfo) (int, error) { return 0, errNotLinux }

// ZeroPageTold says that nothing tells a zero page here.
func ZeroPageTold() bool { return false }

// NoZeroPage is not known here.
func NoZeroPage() bool { return false }
