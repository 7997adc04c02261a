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
)

// frame is what is known of one physical page: 16 bytes, no Go pointers. The
// order is that of the folio it belongs to, so the folio's head is the frame
// number rounded down to the folio's length. All zero means free.
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

// frame is the metadata of an allocated page.
func (p *pageState) frame(pfn PFN) *frame { return &p.slabs[pfn>>slabShift][pfn&slabMask] }

// ensureFrames makes the slabs that hold the block's metadata.
func (p *pageState) ensureFrames(pfn PFN, o Order) {
	last := (pfn + PFN(o.Pages()) - 1) >> slabShift
	for s := pfn >> slabShift; s <= last; s++ {
		if p.slabs[s] == nil {
			p.slabs[s] = new(frameSlab)
		}
	}
}

// freshFrame is frame of a page just allocated, whose slab may not exist yet.
func (p *pageState) freshFrame(pfn PFN) *frame {
	if p.slabs[pfn>>slabShift] == nil {
		p.ensureFrames(pfn, 0)
	}
	return p.frame(pfn)
}

// clearFrames forgets a block that goes back to the allocator.
func (p *pageState) clearFrames(pfn PFN, o Order) {
	for i := PFN(0); i < PFN(o.Pages()); {
		s := p.slabs[(pfn+i)>>slabShift]
		at := (pfn + i) & slabMask
		n := min(PFN(o.Pages())-i, slabLen-at)
		clear(s[at : at+n])
		i += n
	}
}
