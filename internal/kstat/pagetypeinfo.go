package kstat

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// PageTypeInfo is /proc/pagetypeinfo, which only root may read.
type PageTypeInfo struct {
	BlockOrder mm.Order   // of a pageblock
	Free       []TypeFree // free blocks by node, zone and type
	Types      []string   // the columns of PageBlocks
	Blocks     []TypeBlocks
}

// TypeFree is the free blocks of one migrate type, indexed by order. The
// kernel stops counting a list at 100,000 blocks: Capped then marks it.
type TypeFree struct {
	Node   mm.NodeID
	Zone   string
	Type   string // Unmovable, Movable, Reclaimable, HighAtomic, CMA, Isolate
	Blocks []uint64
	Capped []bool
}

// TypeBlocks is how many pageblocks of a zone have each of PageTypeInfo.Types.
type TypeBlocks struct {
	Node   mm.NodeID
	Zone   string
	Blocks []uint64
}

// ParsePageTypeInfo reads /proc/pagetypeinfo.
func ParsePageTypeInfo(r io.Reader) (PageTypeInfo, error) {
	var p PageTypeInfo
	err := lines(r, func(_ int, line string) error {
		if text, ok := strings.CutPrefix(line, "Page block order:"); ok {
			n, err := number(strings.TrimSpace(text))
			if err != nil || n > uint64(mm.MaxOrder) {
				return fmt.Errorf("%q: want an order", line)
			}
			p.BlockOrder = mm.Order(n)
			return nil
		}
		if text, ok := strings.CutPrefix(line, "Number of blocks type"); ok {
			p.Types = strings.Fields(text)
			return nil
		}
		node, zone, rest, ok := nodeZone(line)
		if !ok {
			return nil // headings
		}
		if text, ok := strings.CutPrefix(rest, ", type"); ok {
			return p.addFree(TypeFree{Node: node, Zone: zone}, text)
		}
		blocks, err := numbers(rest)
		p.Blocks = append(p.Blocks, TypeBlocks{node, zone, blocks})
		return err
	})
	return p, err
}

func (p *PageTypeInfo) addFree(t TypeFree, text string) error {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return fmt.Errorf("%q: want a type and counts", text)
	}
	t.Type = fields[0]
	for _, f := range fields[1:] {
		num, capped := strings.CutPrefix(f, ">")
		n, err := number(num)
		if err != nil {
			return err
		}
		t.Blocks, t.Capped = append(t.Blocks, n), append(t.Capped, capped)
	}
	p.Free = append(p.Free, t)
	return nil
}

// ReadPageTypeInfo reads proc/pagetypeinfo of a tree.
func ReadPageTypeInfo(fsys fs.FS) (PageTypeInfo, error) {
	return read(fsys, "proc/pagetypeinfo", ParsePageTypeInfo)
}
