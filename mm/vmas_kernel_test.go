package mm

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestKernelVMAs replays what testdata/vmas.c did on a real kernel (6.18) and
// asks for the same addresses, the same refusals and the same map.
func TestKernelVMAs(t *testing.T) {
	files, _ := filepath.Glob("testdata/vmas-*.txt")
	if extra := os.Getenv("HUGELAB_VMAS"); extra != "" {
		more, _ := filepath.Glob(extra)
		files = append(files, more...)
	}
	if len(files) == 0 {
		t.Fatal("no fixtures")
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { replayKernel(t, f) })
	}
}

// kernelMap is one line of a map in a fixture.
type kernelMap struct {
	start, end VA
	perm, name string
}

// kernelReplay is a fixture being replayed. Region 1 begins at address 0, so
// that any address can be named.
type kernelReplay struct {
	*testing.T
	m    *Machine
	id   Space
	heap VA
	next Region
}

func replayKernel(t *testing.T, name string) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &kernelReplay{T: t, m: vmaMachine(t, Config{}), id: 1, next: 10}
	sc, first := bufio.NewScanner(f), true
	for line := 1; sc.Scan(); line++ {
		w := strings.Fields(sc.Text())
		var msg string
		if w[0] == "D" {
			maps := readMap(sc, &line)
			if first {
				r.begin(maps)
				first = false
			}
			msg = r.compare(maps)
		} else {
			msg = r.call(w)
		}
		if msg == "" && r.m.checkVMAs() != nil {
			msg = r.m.checkVMAs().Error()
		}
		if msg != "" {
			t.Fatalf("line %d: %s\n%s", line, strings.Join(w, " "), msg)
		}
	}
}

func readMap(sc *bufio.Scanner, line *int) (maps []kernelMap) {
	for sc.Scan() && sc.Text() != "E" {
		*line++
		w := strings.Fields(sc.Text())
		maps = append(maps, kernelMap{VA(hex(w[0])), VA(hex(w[1])), w[2], w[3]})
	}
	*line++
	return maps
}

func hex(s string) uint64 {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// begin makes the maps that the program started with.
func (r *kernelReplay) begin(maps []kernelMap) {
	for _, k := range maps {
		op := Op{Kind: OpMap, Region: r.next, N: Pages(k.end-k.start) / page, Arg: uint64(k.start)}
		op.Flags = MapAtExec
		r.next++
		for i, a := range []Access{Read, Write, Exec} {
			if k.perm[i] != '-' {
				op.Access |= a
			}
		}
		switch {
		case k.name == "[heap]":
			op.Aux, r.heap = uint64(AreaHeap), k.start
		case k.name == "[stack]":
			op.Flags |= MapGrowsDown
			op.Aux = uint64(AreaStack)
		case k.name == "file":
			op.Flags |= MapFile
		case k.name != "-":
			op.Flags |= MapSpecial
			op.Aux = uint64(AreaMmap)
		}
		do(r, r.m, op)
		if op.Access&Write != 0 && op.Flags&MapSpecial == 0 { // written before main
			touchAt(r.m, 1, k.start)
		}
	}
	r.m.spaces[r.id].regions.set(1, 0, 1<<35)
}

func (r *kernelReplay) compare(maps []kernelMap) string {
	var got, want strings.Builder
	for _, k := range maps {
		fmt.Fprintf(&want, "%x-%x %s\n", k.start, k.end, k.perm[:3])
	}
	for n := r.m.spaces[r.id].vmas.First(); n != nil; n = n.Next() {
		perm := []byte("---")
		for i, f := range []vmFlags{vmRead, vmWrite, vmExec} {
			if n.Val.flags&f != 0 {
				perm[i] = "rwx"[i]
			}
		}
		fmt.Fprintf(&got, "%x-%x %s\n", n.Val.start, n.Val.end, perm)
	}
	if got.String() != want.String() {
		return diffLines(got.String(), want.String())
	}
	return ""
}

func diffLines(got, want string) string {
	has := func(all, l string) bool { return strings.Contains("\n"+all, "\n"+l+"\n") }
	var b strings.Builder
	for _, l := range strings.Split(got, "\n") {
		if l != "" && !has(want, l) {
			b.WriteString("model  " + l + "\n")
		}
	}
	for _, l := range strings.Split(want, "\n") {
		if l != "" && !has(got, l) {
			b.WriteString("kernel " + l + "\n")
		}
	}
	return b.String()
}

// call does one call on the model and compares the answer.
func (r *kernelReplay) call(w []string) string {
	ret, err := strconv.ParseInt(w[len(w)-1], 10, 64)
	if err != nil {
		return err.Error()
	}
	var a [5]uint64
	for i, s := range w[1 : len(w)-2] {
		a[i] = hex(s)
	}
	op := Op{Region: 1, Space: r.id, Page: a[0] / page, N: Pages(a[1]+page-1) / page}
	switch w[0] {
	case "touch":
		if v := r.m.spaces[r.id].at(VA(a[0])); (ret == 1) != (v != nil && v.flags&vmWrite != 0) {
			return fmt.Sprintf("model has %+v", v)
		} else if ret == 1 {
			r.m.anonPrepare(&Current{}, v)
		}
		return ""
	case "mmap":
		op = r.mmapOp(a)
	case "munmap":
		op.Kind = OpUnmap
	case "mprotect":
		op.Kind, op.Access = OpProtect, Access(a[2])
	case "mlock2":
		op.Kind, op.Flags = OpLock, LockOnFault
	case "munlock":
		op.Kind = OpUnlock
	case "fork":
		do(r, r.m, Op{Kind: OpFork, Space: r.id, Arg: uint64(r.id + 1)})
		r.id++
		return ""
	case "madvise":
		op.Kind, op.Arg = OpAdvise, a[2]
	case "mremap":
		return r.mremap(a, ret)
	case "brk":
		op = Op{Kind: OpBrk, Space: r.id, Region: 1, N: Pages(VA(a[0])-r.heap) / page}
		if uint64(ret) != a[0] {
			ret = -int64(ENOMEM)
		}
	}
	res := do(r, r.m, op)
	r.m.spaces[r.id].regions.set(1, 0, 1<<35)
	if ret < 0 && int64(res.Errno) != -ret || ret >= 0 && res.Errno != OK {
		return fmt.Sprintf("model says %v", res.Errno)
	}
	if w[0] == "mmap" && ret > 0 && res.Addr != VA(ret) {
		return fmt.Sprintf("model: %#x, kernel: %#x", res.Addr, ret)
	}
	return ""
}

// mmapOp turns mmap's arguments into an Op. Linux: include/uapi/asm-generic/mman*.h.
func (r *kernelReplay) mmapOp(a [5]uint64) Op {
	op := Op{Kind: OpMap, Space: r.id, Region: r.next, N: Pages(a[1]) / page, Access: Access(a[2]), Arg: a[0]}
	r.next++
	for bit, f := range map[uint64]OpFlags{0x10: MapFixed | MapReplaces, 0x4000: MapNoReserve, 0x20000: MapStack} {
		if a[3]&bit != 0 {
			op.Flags |= f
		}
	}
	if a[0] != 0 && a[3]&0x10 == 0 {
		op.Flags |= MapHint
	}
	return op
}

func (r *kernelReplay) mremap(a [5]uint64, ret int64) string {
	ops := []Op{
		{Kind: OpRemap, Space: r.id, Region: 1, Page: a[0] / page, N: Pages(a[1] / page), Arg: a[2] / page,
			Aux: uint64(r.next)},
		{Kind: OpNote, Space: r.id, Arg: a[4]},
	}
	r.next++
	for bit, f := range map[uint64]OpFlags{1: RemapMayMove, 2: RemapFixed, 4: RemapDontUnmap} {
		if a[3]&bit != 0 {
			ops[0].Flags |= f
		}
	}
	var out [2]Result
	if _, err := r.m.Exec(ops, out[:]); err != nil {
		return err.Error()
	}
	got := int64(out[0].Addr)
	if out[0].Errno != OK {
		got = -int64(out[0].Errno)
	}
	if got != ret {
		return fmt.Sprintf("model: %#x, kernel: %#x", got, ret)
	}
	return ""
}
