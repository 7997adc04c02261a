package difftest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/hugelab/hugelab/mm"
)

// machine is what the model is when no kernel is asked: any version's rules,
// memory that runs out, time that passes.
type machine struct {
	rules    mm.Rules
	mem      mm.Bytes
	nodes    int
	fragment mm.Order // free memory is in blocks of this order
	broken   bool     // fragment counts
	limit    mm.Pages // of the memory cgroup
	tick     mm.Nanos // from one operation to the next; khugepaged wakes by itself
	path     int      // of pathNames: how touches go through the model
	hvo      bool     // struct pages lie in memory, and pools give them back
}

// modelMemory is enough that no program runs out of it.
const modelMemory = 8 << 30

// parseMachine reads kernel=VERSION zeropage=0|1 mem=SIZE nodes=2
// fragments=SIZE limit=SIZE tick=SECONDS path=PATH and hvo=1.
func parseMachine(spec string, rules mm.Rules) (machine, error) {
	k := machine{rules: rules, mem: modelMemory, nodes: 1}
	for word := range strings.FieldsSeq(spec) {
		key, value, _ := strings.Cut(word, "=")
		if err := k.set(key, value); err != nil {
			return k, fmt.Errorf("machine: %s: %w", word, err)
		}
	}
	return k, nil
}

func (k *machine) set(key, value string) (err error) {
	size := func() (n mm.Bytes) {
		if n, err = mm.ParseBytes(value); err == nil && (n < pageSize || n&(n-1) != 0 || n > modelMemory) {
			err = fmt.Errorf("want a power of two from 4k to 8g")
		}
		return n
	}
	switch key {
	case "kernel":
		zero := k.rules.NoZeroPage
		k.rules, err = mm.RulesFor(value)
		k.rules.NoZeroPage = zero
	case "zeropage":
		k.rules.NoZeroPage = value == "0"
	case "mem":
		k.mem = max(size(), 16<<20)
	case "limit":
		k.limit = mm.Pages(size() / pageSize)
	case "nodes":
		k.nodes = 2
	case "fragments":
		for n := size(); pageSize<<(k.fragment+1) <= n && k.fragment < 10; {
			k.fragment++
		}
		k.broken = true
	case "tick":
		k.tick = 1e9
	case "path":
		k.path, err = parseWordInt(pathNames, value)
	case "hvo":
		k.hvo = value == "1"
	default:
		err = fmt.Errorf("want kernel, zeropage, mem, nodes, fragments, limit, tick, path or hvo")
	}
	return err
}

func parseWordInt(names []string, text string) (int, error) {
	i, err := parseWord[uint8](names, text)
	return int(i), err
}

// config is the machine for mm.New.
func (k *machine) config(policy mm.Policy) mm.Config {
	cfg := mm.Config{CPUs: 2, Rules: k.rules, Policy: policy, Limit: k.limit, ByRegion: k.tick != 0}
	cfg.Vmemmap, cfg.Policy.HVO = k.hvo, cfg.Policy.HVO || k.hvo
	cfg.Policy.Khugepaged.ScanSleep = 1 << 60 // no pass comes by itself
	if k.tick != 0 {
		cfg.Policy.Khugepaged.ScanSleep = 5 * k.tick
	}
	for range k.nodes {
		cfg.Nodes = append(cfg.Nodes, mm.Node{Mem: k.mem / mm.Bytes(k.nodes)})
	}
	if k.broken {
		cfg.Nodes = []mm.Node{{Mem: k.mem}}
		blocks := make([]uint64, 11)
		blocks[k.fragment] = uint64(k.mem/2/pageSize) >> k.fragment
		cfg.Free = &mm.FreeState{Zones: []mm.FreeZone{{Name: "DMA32", Blocks: blocks}}}
	}
	return cfg
}

// generateMachine draws a machine for a program that the model alone runs.
func generateMachine(seed, n uint64) string {
	x := rand.New(rand.NewPCG(seed, n^0x6d616368))
	old := pick(x, "4.4", "4.9", "5.4", "5.8", "5.14", "6.1", "6.3", "6.6")
	w := []string{"kernel=" + pick(x, old, old, "6.8", "6.11", "6.12", "6.14", "6.16", "6.17", "6.18", "6.18", "6.18")}
	some := func(chance int, spec string) {
		if x.IntN(chance) == 0 {
			w = append(w, spec)
		}
	}
	some(3, "zeropage=0")
	some(2, "mem="+pick(x, "16m", "16m", "32m", "64m", "2g"))
	some(3, "nodes=2")
	some(3, "fragments="+pick(x, "4k", "16k", "64k", "256k", "1m"))
	some(3, "limit="+pick(x, "1m", "2m", "4m"))
	if x.IntN(2) == 0 {
		w = append(w, "path="+pick(x, pathNames[1:]...))
	} else {
		some(2, "tick=1")
	}
	some(4, "hvo=1")
	return strings.Join(w, " ")
}
