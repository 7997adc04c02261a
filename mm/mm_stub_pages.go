package mm

// Stubs of the page side. The real files replace this one.

type pageState struct{}

type khugeState struct{}

type tableRoot struct{}

func (m *Machine) zapRange(c *Current, v *vma, from, to VA, how zapHow)          {}
func (m *Machine) freeTables(c *Current, sp *space, from, to, floor, ceiling VA) {}
func (m *Machine) splitPMDAt(c *Current, sp *space, a VA)                        {}
func (m *Machine) protectRange(c *Current, v *vma, from, to VA)                  {}
func (m *Machine) movePages(c *Current, from, to *vma, old, new VA, n Pages)     {}
func (m *Machine) copyRange(c *Current, child, parent *vma)                      {}
func (m *Machine) populate(c *Current, v *vma, from, to VA, write bool) Errno    { return OK }
func (m *Machine) freeRange(c *Current, v *vma, from, to VA) Errno               { return OK }
func (m *Machine) coldRange(c *Current, v *vma, from, to VA, pageout bool) Errno { return OK }
func (m *Machine) guardInstall(c *Current, v *vma, from, to VA) Errno            { return OK }
func (m *Machine) guardRemove(c *Current, v *vma, from, to VA) Errno             { return OK }
func (m *Machine) collapse(c *Current, v *vma, from, to VA) Errno                { return OK }
func (m *Machine) khugepagedEnter(sp *space, v *vma)                             {}
func (m *Machine) spaceGone(c *Current, sp *space)                               {}

func (m *Machine) touch(c *Current, sp *space, a VA, acc Access) Outcome { return Done }

func (m *Machine) touchPrivateFile(c *Current, sp *space, v *vma, a VA, acc Access) Outcome {
	m.Usage.Faults++
	m.Usage.FileFaults++
	return Done
}

func (m *Machine) makeResident(c *Current, sp *space, v *vma, a VA, n Pages, o Order, acc Access) {}

func (m *Machine) tick(now Nanos) {}

// region is the usage record of a region, made on first use.
func (m *Machine) region(r Region) *RegionUsage { return &RegionUsage{} }

func (m *Machine) khugepagedFork(child, parent *space) {}
