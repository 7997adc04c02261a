package hw

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/hugelab/hugelab/mm"
)

// Machine is a computer as data: every number that a model of caches, locks
// or memory needs, under the keys of keys.go, each with where it comes from.
type Machine struct {
	Name    string // as --machine takes it
	Title   string // as a reader knows it
	Profile string // the preset that prices kernel work which no work.* key prices

	values []Value // in the order of Keys
}

// Value is one number of a machine. Exactly one of Source and Fitted says
// where it comes from.
type Value struct {
	Key    string
	Value  float64
	Source string // independent data: a datasheet, a microbenchmark, a paper
	Fitted string // the published base column that it was fitted to
	Set    bool   // changed by Set: neither holds any more
}

//go:embed machines/*.yaml
var machineFiles embed.FS

// machineFile is a machine as YAML.
type machineFile struct {
	Version int                  `yaml:"version"`
	Name    string               `yaml:"name"`
	Title   string               `yaml:"title"`
	Base    string               `yaml:"base,omitempty"` // the machine that has what is not named here
	Profile string               `yaml:"profile,omitempty"`
	Values  map[string]valueFile `yaml:"values"`
}

type valueFile struct {
	Value  float64 `yaml:"value"`
	Source string  `yaml:"source,omitempty"`
	Fitted string  `yaml:"fitted,omitempty"`
}

// MachineNames lists the machines that come with the program, sorted.
func MachineNames() []string {
	entries, _ := machineFiles.ReadDir("machines")
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// LoadMachine reads one of the machines that come with the program.
func LoadMachine(name string) (*Machine, error) {
	text, err := machineFiles.ReadFile("machines/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("machine %q: there is none of that name: %s",
			name, strings.Join(MachineNames(), ", "))
	}
	return ParseMachine(text)
}

// ParseMachine reads a machine from YAML. A key that keys.go does not list, a
// number without a source, or one that is not finite is an error.
func ParseMachine(text []byte) (*Machine, error) { return parseMachine(text, 0) }

func parseMachine(text []byte, depth int) (*Machine, error) {
	var f machineFile
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("machine %q: version %d, want 1", f.Name, f.Version)
	}
	m := &Machine{Name: f.Name, Title: f.Title, Profile: f.Profile}
	if f.Base != "" {
		if depth > 3 {
			return nil, fmt.Errorf("machine %q: bases in a circle", f.Name)
		}
		base, err := machineFiles.ReadFile("machines/" + f.Base + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("machine %q: base %q: there is none of that name", f.Name, f.Base)
		}
		b, err := parseMachine(base, depth+1)
		if err != nil {
			return nil, err
		}
		m.values = b.values
		if m.Profile == "" {
			m.Profile = b.Profile
		}
	}
	if err := m.take(f.Values); err != nil {
		return nil, fmt.Errorf("machine %q: %w", f.Name, err)
	}
	if m.Profile == "" {
		m.Profile = "metal"
	}
	if _, ok := Preset(m.Profile); !ok {
		return nil, fmt.Errorf("machine %q: no preset is called %q", f.Name, m.Profile)
	}
	return m, nil
}

// take puts a file's values over those of the base.
func (m *Machine) take(values map[string]valueFile) error {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		v := values[k]
		switch {
		case keyIndex(k) < 0:
			return fmt.Errorf("no key is called %q", k)
		case (v.Source == "") == (v.Fitted == ""):
			return fmt.Errorf("%s: wants a source, or what it was fitted to", k)
		case !finite(v.Value):
			return fmt.Errorf("%s: %v is not a number to reckon with", k, v.Value)
		}
		m.put(Value{Key: k, Value: v.Value, Source: v.Source, Fitted: v.Fitted})
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) && x >= 0 }

// put replaces or adds a value, in the order of Keys.
func (m *Machine) put(v Value) {
	at := keyIndex(v.Key)
	for i := range m.values {
		switch j := keyIndex(m.values[i].Key); {
		case j == at:
			m.values[i] = v
			return
		case j > at:
			m.values = slices.Insert(slices.Clone(m.values), i, v)
			return
		}
	}
	m.values = append(m.values, v)
}

// Values are all numbers of the machine, in the order of Keys.
func (m *Machine) Values() []Value { return slices.Clone(m.values) }

// Get is a number of the machine, or the key's default where the machine has
// none; a primitive's default is the preset's. A key that keys.go does not list
// is a mistake of the caller: it panics.
func (m *Machine) Get(key string) float64 {
	at := keyIndex(key)
	if at < 0 {
		panic("hw: no key is called " + key)
	}
	for i := range m.values {
		if m.values[i].Key == key {
			return m.values[i].Value
		}
	}
	if name, ok := strings.CutPrefix(key, workPrefix); ok {
		p, _ := Preset(m.Profile)
		prim, _ := mm.ParsePrim(name)
		return p.Nanos[prim]
	}
	return Keys[at].Default
}

// IsWork says whether a key is the price of a primitive of the kernel's work.
func IsWork(key string) bool { return strings.HasPrefix(key, workPrefix) }

// Int is Get for counts.
func (m *Machine) Int(key string) int { return int(math.Round(m.Get(key))) }

// With is a copy of the machine with one number changed: "VALUE" (with k, m, g
// for 1024s where the key is a size) or "*FACTOR".
func (m *Machine) With(key, to string) (*Machine, error) {
	at := keyIndex(key)
	if at < 0 {
		return nil, fmt.Errorf("machine %s: no key is called %q; hugelab machine show %s lists them", m.Name, key, m.Name)
	}
	x, err := setTo(m.Get(key), to, Keys[at].Unit == "B")
	if err != nil {
		return nil, fmt.Errorf("machine %s: %s: %w", m.Name, key, err)
	}
	c := *m
	c.values = slices.Clone(m.values)
	c.put(Value{Key: key, Value: x, Set: true})
	return &c, nil
}

// setTo reads VALUE or *FACTOR.
func setTo(old float64, to string, size bool) (float64, error) {
	text, factor := strings.CutPrefix(to, "*")
	unit := 1.0
	if n := len(text); size && !factor && n > 1 {
		if i := strings.IndexByte("kmg", text[n-1]|0x20); i >= 0 {
			unit, text = float64(uint64(1024)<<(10*i)), text[:n-1]
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !finite(x) {
		return 0, fmt.Errorf("%q is neither a number nor *FACTOR", to)
	}
	if factor {
		return old * x, nil
	}
	return x * unit, nil
}

// Fitted lists the keys whose numbers were fitted to a published base column,
// in the order of Keys.
func (m *Machine) Fitted() []string {
	var keys []string
	for _, v := range m.values {
		if v.Fitted != "" {
			keys = append(keys, v.Key)
		}
	}
	return keys
}

// Costs is the machine's price of each primitive: the preset's, and over them
// the work.* keys that the machine has.
func (m *Machine) Costs() *Profile {
	p, _ := Preset(m.Profile)
	p.Name = m.Name
	for _, v := range m.values {
		if name, ok := strings.CutPrefix(v.Key, workPrefix); ok {
			prim, _ := mm.ParsePrim(name)
			p.Nanos[prim] = v.Value
		}
	}
	return &p
}
