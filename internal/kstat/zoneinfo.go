package kstat

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Zone is one zone of /proc/zoneinfo.
type Zone struct {
	Node                      mm.NodeID
	Name                      string
	Free                      mm.Pages
	Min, Low, High            mm.Pages // watermarks
	Spanned, Present, Managed mm.Pages
	StartPFN                  mm.PFN

	// Stats are the lines "NAME NUMBER" of the zone, nr_* and those above too;
	// node-wide ones only in the first zone of a node.
	Stats map[string]uint64
}

// ParseZoneInfo reads /proc/zoneinfo. Per-CPU page sets are passed over.
func ParseZoneInfo(r io.Reader) ([]Zone, error) {
	var zones []Zone
	pagesets := false
	err := lines(r, func(_ int, line string) error {
		if node, zone, _, ok := nodeZone(line); ok {
			zones = append(zones, Zone{Node: node, Name: zone, Stats: map[string]uint64{}})
			pagesets = false
			return nil
		}
		text := strings.TrimSpace(line)
		if len(zones) == 0 {
			return fmt.Errorf("%q: want Node N, zone NAME first", text)
		}
		if text == "pagesets" {
			pagesets = true
		}
		z := &zones[len(zones)-1]
		if num, ok := strings.CutPrefix(text, "start_pfn:"); ok {
			n, err := number(strings.TrimSpace(num))
			z.StartPFN = mm.PFN(n)
			return err
		}
		if !pagesets {
			z.stat(strings.Fields(text))
		}
		return nil
	})
	return zones, err
}

// stat takes the words of one line: "NAME NUMBER" or "pages free NUMBER".
// Other shapes (protection lists, headings) say nothing about the zone's size.
func (z *Zone) stat(words []string) {
	if len(words) == 3 && words[0] == "pages" {
		words = words[1:]
	}
	if len(words) != 2 {
		return
	}
	n, err := number(words[1])
	if err != nil {
		return
	}
	z.Stats[words[0]] = n
	switch p := mm.Pages(n); words[0] {
	case "free":
		z.Free = p
	case "min":
		z.Min = p
	case "low":
		z.Low = p
	case "high":
		z.High = p
	case "spanned":
		z.Spanned = p
	case "present":
		z.Present = p
	case "managed":
		z.Managed = p
	}
}

// ReadZoneInfo reads proc/zoneinfo of a tree.
func ReadZoneInfo(fsys fs.FS) ([]Zone, error) { return read(fsys, "proc/zoneinfo", ParseZoneInfo) }
