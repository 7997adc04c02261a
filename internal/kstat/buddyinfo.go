package kstat

import (
	"fmt"
	"io"
	"io/fs"

	"github.com/hugelab/hugelab/mm"
)

// ParseBuddyInfo reads /proc/buddyinfo: free blocks by node, zone and order.
// Managed stays 0; ReadFreeState fills it.
func ParseBuddyInfo(r io.Reader) (mm.FreeState, error) {
	var free mm.FreeState
	err := lines(r, func(_ int, line string) error {
		node, zone, rest, ok := nodeZone(line)
		if !ok {
			return fmt.Errorf("%q: want Node N, zone NAME and counts", line)
		}
		blocks, err := numbers(rest)
		if err != nil {
			return err
		}
		free.Zones = append(free.Zones, mm.FreeZone{Node: node, Name: zone, Blocks: blocks})
		return nil
	})
	return free, err
}

// ReadFreeState reads proc/buddyinfo of a tree, and the zones' managed pages
// from proc/zoneinfo where that is readable.
func ReadFreeState(fsys fs.FS) (mm.FreeState, error) {
	free, err := read(fsys, "proc/buddyinfo", ParseBuddyInfo)
	if err != nil {
		return free, err
	}
	zones, err := ReadZoneInfo(fsys)
	if err != nil {
		return free, nil // 0 says not known
	}
	for i := range free.Zones {
		f := &free.Zones[i]
		for _, z := range zones {
			if z.Node == f.Node && z.Name == f.Name {
				f.Managed = z.Managed
			}
		}
	}
	return free, nil
}
