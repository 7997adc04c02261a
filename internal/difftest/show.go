package difftest

import (
	"fmt"
	"io"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// Show writes what each step left behind: ranges of pages, by process, of both
// sides where they run and once where they agree.
type Show struct {
	w      io.Writer
	steps  []Step
	places []place // by slot
	procs  []string
	maps   bool // show mappings too
}

type place struct {
	name string
	at   mm.VA
}

// NewShow makes a Show of p, and with maps of its mappings too; its Watch is a
// Watcher.
func NewShow(w io.Writer, p *Program, maps bool) (*Show, error) {
	c, err := compileAll(p)
	if err != nil {
		return nil, err
	}
	s := &Show{w: w, steps: p.Steps, maps: maps, places: make([]place, len(c.slots)+1)}
	s.places[len(c.slots)] = place{heapName, heapAt}
	for name, i := range c.slots {
		s.places[i] = place{name, arenaAt + mm.VA(slotSize)*mm.VA(i)}
	}
	for _, p := range c.procs {
		s.procs = append(s.procs, p.name)
	}
	return s, nil
}

// Watch is a Watcher.
func (s *Show) Watch(step int, model, host *Seen) {
	fmt.Fprintln(s.w, s.steps[step].String())
	a := s.lines(model)
	if host == nil {
		s.print("  ", a)
		return
	}
	b := s.lines(host)
	if strings.Join(a, "\n") == strings.Join(b, "\n") {
		s.print("  ", a)
		return
	}
	s.print("  model  ", a)
	s.print("  kernel ", b)
}

func (s *Show) print(before string, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(s.w, "%s%s\n", before, l)
	}
}

// lines are the result of the step and the page maps.
func (s *Show) lines(seen *Seen) []string {
	var all []string
	head := fmt.Sprintf("%d faults", seen.Faults)
	if seen.Faults == 1 {
		head = "1 fault"
	}
	if seen.Errno != mm.OK {
		head += ", " + seen.Errno.String()
	}
	if seen.Refused > 0 {
		head += fmt.Sprintf(", %d touches refused", seen.Refused)
	}
	if seen.Bus > 0 {
		head += " by SIGBUS"
	}
	all = append(all, head)
	if seen.Pool != nil {
		all = append(all, "pool   "+seen.Pool.String())
	}
	if s.maps {
		all = s.mappings(all, seen)
	}
	for i := range seen.Procs {
		pages := seen.Procs[i].Pages
		for k := 0; k < len(pages); {
			n := runLength(pages[k:])
			all = append(all, fmt.Sprintf("%-6s %-24s %s", s.procs[i], s.where(pages[k].At, n), runText(pages[k:k+n])))
			k += n
		}
	}
	return all
}

func (s *Show) mappings(all []string, seen *Seen) []string {
	for i := range seen.Procs {
		for _, v := range seen.Procs[i].VMAs {
			if v.Start != anchorAt {
				where := s.where(v.Start, int((v.End-v.Start)/pageSize))
				all = append(all, fmt.Sprintf("%-6s %-24s [%s]", s.procs[i], where, v.Flags))
			}
		}
	}
	return all
}

// where names a range by the slot it lies in, counted from the slot's start,
// which is 2 MB aligned.
func (s *Show) where(at mm.VA, n int) string {
	in := s.places[len(s.places)-1]
	if at >= mapLow {
		return fmt.Sprintf("%#x..%#x", uint64(at), uint64(at)+uint64(n)*pageSize)
	}
	if at >= arenaAt {
		in = s.places[min(int(uint64(at-arenaAt)/uint64(slotSize)), len(s.places)-2)]
	}
	from := mm.Bytes(at - in.at)
	return fmt.Sprintf("%s+%s..%s", in.name, sizeText(from), sizeText(from+mm.Bytes(n)*pageSize))
}

// runLength is how many pages from the first on are alike: the same kind, next
// to each other, folio after folio.
func runLength(p []PageSeen) int {
	n := 1
	for n < len(p) && alike(&p[n-1], &p[n]) {
		n++
	}
	return n
}

func alike(a, b *PageSeen) bool {
	if b.At != a.At+pageSize || a.Order != b.Order || a.PMD != b.PMD || a.Zero != b.Zero || a.Maps != b.Maps ||
		a.Guard != b.Guard {
		return false
	}
	last := uint32(a.Order.Pages()) - 1
	return b.Index == a.Index+1 || a.Index == last && b.Index == 0
}

func runText(p []PageSeen) string {
	first, last := p[0], p[len(p)-1]
	if first.Guard {
		return "guard"
	}
	t := sizeText(pageSize << first.Order)
	if n := uint32(first.Order.Pages()); first.Index != 0 || last.Index != n-1 {
		t += fmt.Sprintf(" (pages %d to %d)", first.Index, last.Index)
	}
	if first.PMD {
		t += " pmd"
	}
	if first.Zero {
		t += " zero"
	}
	if first.Maps > 1 {
		t += fmt.Sprintf(" x%d", first.Maps)
	}
	return t
}
