package mm

// EachPage calls f for every page of a space that is present or a guard
// region, in address order: what a scan of its page map shows.
func (m *Machine) EachPage(s Space, f func(VA, PageInfo)) {
	sp := m.spaceOf(s)
	if sp == nil {
		return
	}
	table := m.pmdSize() << m.pmdOrder // what one table of PMD entries spans
	for n := sp.vmas.First(); n != nil; n = n.Next() {
		for at, end := n.Val.start, n.Val.end; at < end; {
			pmd := m.pmdTable(sp, at)
			switch {
			case pmd == 0 && len(m.huge.pools) < 2:
				at = (at + table) &^ (table - 1)
				continue
			case pmd != 0 && m.pages.tables.at(pmd)[m.pmdIndex(at)] == 0:
				at = (at + m.pmdSize()) &^ (m.pmdSize() - 1)
				continue
			}
			if in := m.PageInfo(s, at); in.Present || in.Guard {
				f(at, in)
			}
			at += m.pageSize()
		}
	}
}
