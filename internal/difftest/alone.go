package difftest

import (
	"fmt"

	"github.com/hugelab/hugelab/mm"
)

// This file holds the steps that only the model does: those that a kernel cannot
// be asked for (one node, nothing to pin with), or that only recordings have. What
// judges them is the model's own check, and that they take no page away.

// alone says whether only the model has the verb.
func (v Verb) alone() bool { return v >= VerbMigrate && v < numVerbs }

// alone says whether the kernel cannot be asked to do the step.
func (s *Step) alone() bool {
	if s.Verb == VerbMap && s.Flags&mm.MapHugetlb == 0 {
		return s.Flags&(mm.MapFile|mm.MapDroppable) != 0
	}
	for _, a := range aloneAdvice {
		if s.Verb == VerbAdvise && s.Advice == a.advice {
			return true
		}
	}
	return s.Verb.alone()
}

// forKernel refuses a program that only the model can do.
func (p *Program) forKernel() error {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.alone() {
			return fmt.Errorf("%s: %s: only the model does that: give --model", p.Name, s)
		}
	}
	return nil
}

// Flags of these steps.
const (
	withAll      mm.OpFlags = 1 << iota // Migrate: all; Bind: interleave; Offline: soft; Resident: read
	wholeProcess                        // Migrate: migrate_pages
)

func (s *Step) setNode(text string) error {
	if text != "0" && text != "1" {
		return fmt.Errorf("node=%s: want 0 or 1", text)
	}
	s.Node = mm.NodeID(text[0] - '0')
	return nil
}

// aloneWord reads the second word of userfault and resident.
func (s *Step) aloneWord(text string) (err error) {
	if s.Verb == VerbUserfault {
		s.How, err = parseWord[uint8]([]string{"off", "on"}, text)
		return err
	}
	if err = s.Expect.word(text); err == nil && (s.Expect != Expected{Order: s.Expect.Order}) {
		err = fmt.Errorf("%s: want a size", text)
	}
	return err
}

func (s *Step) aloneText() string {
	if s.Verb == VerbUserfault {
		return []string{"off", "on"}[s.How&1]
	}
	return sizeText(pageSize << s.Expect.Order)
}

// aloneKinds are those of them that are operations of the model's.
var aloneKinds = map[Verb]mm.OpKind{
	VerbUserfault: mm.OpUffd, VerbResident: mm.OpResident, VerbBind: mm.OpPolicyNode, VerbPopulate: mm.OpPopulate,
}

func (s *Step) aloneArg() uint64 {
	switch s.Verb {
	case VerbUserfault:
		return uint64(s.How)
	case VerbBind:
		return uint64(s.Node) + 1
	}
	return uint64(s.Expect.Order)
}

// pinned is what one pin step took.
type pinned struct {
	proc  int
	at    mm.VA
	pages []mm.PFN
}

// alone does a step that only the model has.
func (x *Model) alone(a *action, s *Seen) error {
	m, c, sp, st := x.m, &x.c, spaceOf(a.proc), a.step
	switch st.Verb {
	case VerbPin:
		x.pin(a)
	case VerbUnpin:
		x.unpin(a)
	case VerbMigrate:
		s.Errno = x.migrate(a)
	case VerbOffline:
		s.Errno = x.offline(a)
	case VerbDemote:
		_, s.Errno = m.Demote(c, 2*programSizes().PMD, mm.AnyNode, uint64(st.Pool[0]))
	case VerbExec:
		return x.exec(sp)
	default:
		op := *a.op()
		if op.Access = mm.Read | mm.Write; st.Flags&withAll != 0 && st.Verb == VerbResident {
			op.Access = mm.Read
		}
		op.Flags = 0
		res, err := m.Do(c, &op)
		if s.Errno = res.Errno; err != nil || st.Verb != VerbBind || res.Errno != mm.OK {
			return err
		}
		policy := mm.MemPolicy{Nodes: []mm.NodeID{st.Node}}
		if st.Flags&withAll != 0 {
			policy = mm.MemPolicy{Interleave: true, Nodes: x.nodes()}
		}
		_, s.Errno = m.MbindMove(c, sp, a.at, a.n, policy)
	}
	return nil
}

// exec begins the process anew with what every process has.
func (x *Model) exec(sp mm.Space) error {
	_, err := x.m.Exec(firstOps(sp), nil)
	return err
}

// nodes are the machine's.
func (x *Model) nodes() (all []mm.NodeID) {
	for n := range x.nnodes {
		all = append(all, mm.NodeID(n))
	}
	return all
}

// migrate moves an area's pages to a node, or everything of a process.
func (x *Model) migrate(a *action) mm.Errno {
	sp, st := spaceOf(a.proc), a.step
	all := st.Flags&withAll != 0
	if st.Flags&wholeProcess != 0 {
		_, e := x.m.MigratePages(&x.c, sp, []mm.NodeID{1 - st.Node}, []mm.NodeID{st.Node}, all)
		return e
	}
	pages, nodes, status := make([]mm.VA, a.n), make([]mm.NodeID, a.n), make([]int32, a.n)
	for i := range pages {
		pages[i], nodes[i] = a.at+mm.VA(i)*pageSize, st.Node
	}
	e := x.m.MovePages(&x.c, sp, pages, nodes, status, all)
	if e == mm.OK { // and where are they?
		e = x.m.MovePages(&x.c, sp, pages, nil, status, all)
	}
	return e
}

// offline takes the frames behind an area out: the one of its first page for
// good, or all frames from the lowest to the highest.
func (x *Model) offline(a *action) mm.Errno {
	from, to := ^mm.PFN(0), mm.PFN(0)
	for i := range a.n {
		if in := x.m.PageInfo(spaceOf(a.proc), a.at+mm.VA(i)*pageSize); in.Present && !in.Zero && !in.Hugetlb {
			from, to = min(from, in.PFN), max(to, in.PFN+1)
		}
	}
	switch {
	case to == 0:
		return mm.OK
	case a.step.Flags&withAll != 0:
		return x.m.SoftOffline(&x.c, from)
	}
	x.m.OfflineRange(&x.c, from, mm.Pages(to-from))
	return mm.OK
}

func (x *Model) pin(a *action) {
	how := mm.GUPPin
	if a.step.Access&mm.Write != 0 {
		how |= mm.GUPWrite
	}
	pages := make([]mm.PFN, a.n)
	n, _ := x.m.GetPages(&x.c, spaceOf(a.proc), a.at, how|mm.GUPLongterm, pages)
	x.pins = append(x.pins, pinned{a.proc, a.at, pages[:n]})
}

// unpin gives back what pin steps of the process took from the area on.
func (x *Model) unpin(a *action) {
	kept := x.pins[:0]
	for _, p := range x.pins {
		if p.proc != a.proc || p.at < a.at || p.at >= a.at+mm.VA(a.n)*pageSize {
			kept = append(kept, p)
			continue
		}
		x.m.PutPages(&x.c, mm.GUPPin, p.pages)
	}
	x.pins = kept
}

// keeps says whether a step must leave as many pages mapped as there were. (A split
// does not: what is shared memory is mapped anew by the next touch.)
func (s *Step) keeps() bool {
	return s.Verb == VerbMigrate || s.Verb == VerbOffline || s.Verb == VerbUnpin
}
