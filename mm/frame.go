package mm

// frameFlags say what a frame in use holds.
type frameFlags uint8

const (
	frameAnon      frameFlags = 1 << iota // part of an anonymous folio
	frameTable                            // a page table
	frameHugeZero                         // part of the huge zero folio
	frameExclusive                        // PageAnonExclusive: no other space maps this page
	frameFilled                           // content is not all zeros
	frameTouched                          // the program is known to have accessed it
	frameHugetlb                          // head of a page of a hugetlb pool; ref is its slot
	framePoison                           // taken out of use by a soft offline, for good
)

// frame is what is known of one physical page: 16 bytes, no Go pointers. The
// order is that of the folio it belongs to, so the folio's head is the frame
// number rounded down to the folio's length. All zero means free. One of no
// kind with a ref is shared anonymous memory (shmem.go).
type frame struct {
	flags frameFlags
	order uint8
	high  uint16 // bits 32 to 47 of the anonymous index (order 0), or of the link (tables)
	maps  uint32 // PTEs that map this page
	ref   uint32 // order 0: anonVMA identity; larger: slot of the folio
	low   uint32 // bits 0 to 31 of the anonymous index, or of the link
}

func (f *frame) index() uint64 { return uint64(f.high)<<32 | uint64(f.low) }

func (f *frame) setIndex(i uint64) { f.low, f.high = uint32(i), uint16(i>>32) }

const (
	slabShift = 10 // frames in one slab: 4 MB of 4 kB pages
	slabLen   = 1 << slabShift
	slabMask  = slabLen - 1
)

type frameSlab [slabLen]frame

// slabDir leads to the slabs of 2 GB of 4 kB pages. Slabs are made when a page
// of theirs is first used, dirs with their first slab: memory that nothing
// touched costs next to nothing here.
type slabDir [dirLen]*frameSlab

const (
	dirLen   = 1 << 9
	dirShift = slabShift + 9
)

// frame is the metadata of an allocated page.
func (p *pageState) frame(pfn PFN) *frame {
	return &p.slabs[pfn>>dirShift][pfn>>slabShift%dirLen][pfn&slabMask]
}

// slab is the slab of a page; nil if none of its pages was ever used.
func (p *pageState) slab(pfn PFN) *frameSlab {
	if d := p.slabs[pfn>>dirShift]; d != nil {
		return d[pfn>>slabShift%dirLen]
	}
	return nil
}

// eachSlab calls f for every slab there is and its first page.
func (p *pageState) eachSlab(f func(PFN, *frameSlab) error) error {
	for i, d := range p.slabs {
		if d == nil {
			continue
		}
		for k, s := range d {
			if s == nil {
				continue
			}
			if err := f(PFN(i)<<dirShift+PFN(k)<<slabShift, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensureFrames makes the slabs that hold the block's metadata.
func (p *pageState) ensureFrames(pfn PFN, o Order) {
	end := pfn + PFN(o.Pages())
	for ; pfn < end; pfn = pfn&^slabMask + slabLen {
		d := &p.slabs[pfn>>dirShift]
		if *d == nil {
			*d = new(slabDir)
		}
		if s := &(*d)[pfn>>slabShift%dirLen]; *s == nil {
			*s = new(frameSlab)
		}
	}
}

// freshFrame is frame of a page just allocated, whose slab may not exist yet.
func (p *pageState) freshFrame(pfn PFN) *frame {
	s := p.slab(pfn)
	if s == nil {
		p.ensureFrames(pfn, 0)
		s = p.slab(pfn)
	}
	return &s[pfn&slabMask]
}

// clearFrames forgets a block that goes back to the allocator.
func (p *pageState) clearFrames(pfn PFN, o Order) {
	for i := PFN(0); i < PFN(o.Pages()); {
		s := p.slab(pfn + i)
		at := (pfn + i) & slabMask
		n := min(PFN(o.Pages())-i, slabLen-at)
		clear(s[at : at+n])
		i += n
	}
}
