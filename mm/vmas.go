package mm

// VMA is one mapping of a space, as /proc/PID/maps shows it.
type VMA struct {
	Start, End VA
	Prot       Access
	Shared     bool
	Anonymous  bool // not backed by a file and not shared
	Huge       bool // advised: "hg" in smaps
	NoHuge     bool // refused: "nh"
	Locked     bool // "lo"
	GrowsDown  bool // "gd"
	Region     Region
}

// VMAs lists a space's mappings in address order; none for an unknown space.
func (m *Machine) VMAs(s Space) []VMA {
	sp := m.known(s)
	if sp == nil {
		return nil
	}
	var out []VMA
	for n := sp.vmas.First(); n != nil; n = n.Next() {
		v := n.Val
		prot := Access(0)
		for _, p := range [...]struct {
			flag vmFlags
			bit  Access
		}{{vmRead, Read}, {vmWrite, Write}, {vmExec, Exec}} {
			if v.flags&p.flag != 0 {
				prot |= p.bit
			}
		}
		out = append(out, VMA{
			Start: v.start, End: v.end, Prot: prot, Region: v.region,
			Shared: v.flags&vmShared != 0, Anonymous: v.anonymous(), Huge: v.flags&vmHuge != 0,
			NoHuge: v.flags&vmNoHuge != 0, Locked: v.flags&vmLocked != 0, GrowsDown: v.flags&vmGrowsDown != 0,
		})
	}
	return out
}

// RSS is the anonymous pages that a space maps, zero pages excluded (RssAnon of
// /proc/PID/status); 0 for an unknown space.
func (m *Machine) RSS(s Space) Pages {
	if sp := m.known(s); sp != nil {
		return sp.rssAnon
	}
	return 0
}

func (m *Machine) known(s Space) *space {
	if int(s) >= len(m.spaces) {
		return nil
	}
	return m.spaces[s]
}
