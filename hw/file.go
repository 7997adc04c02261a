package hw

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/goccy/go-yaml"

	"github.com/hugelab/hugelab/mm"
)

// fileVersion is the version of the profile file that Save writes and Load
// takes. Version 1 had no clear_block.
const fileVersion = 2

// file is a profile as YAML: costs by the primitives' names.
type file struct {
	Version int    `yaml:"version"`
	Name    string `yaml:"name"`
	Source  string `yaml:"source"`
	Made    *Made  `yaml:"measured,omitempty"`
	// Nanoseconds a page, and a recorded fault; see Profile.
	Unbacked float64       `yaml:"unbacked,omitempty"`
	Traced   float64       `yaml:"traced,omitempty"`
	Nanos    yaml.MapSlice `yaml:"nanoseconds"`
	Elapsed  yaml.MapSlice `yaml:"elapsed,omitempty"`
}

// maxProfile bounds what Load reads; a profile has about three kilobytes.
const maxProfile = 1 << 20

// Load reads a profile that Save wrote. A primitive that the file does not
// name costs nothing; one that does not exist, a cost below zero or not a
// number is an error, so that a profile of another version is never half
// understood.
func Load(r io.Reader) (*Profile, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("machine profile: %w", err)
	}
	if len(text) > maxProfile {
		return nil, fmt.Errorf("machine profile: longer than %d bytes; is this the right file?", maxProfile)
	}
	var f file
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("machine profile: %w", err)
	}
	if f.Version != fileVersion {
		return nil, fmt.Errorf("machine profile: version %d, want %d; make it again with hugelab calibrate",
			f.Version, fileVersion)
	}
	p := &Profile{Name: f.Name, Source: f.Source, Made: f.Made}
	var err1, err2 error
	p.Unbacked, err1 = number(f.Unbacked)
	p.Traced, err2 = number(f.Traced)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("machine profile: unbacked, traced: %w", err)
	}
	if err := costs(&p.Nanos, f.Nanos); err != nil {
		return nil, fmt.Errorf("machine profile: %w", err)
	}
	if err := costs(&p.Elapsed, f.Elapsed); err != nil {
		return nil, fmt.Errorf("machine profile: elapsed: %w", err)
	}
	return p, nil
}

// costs reads costs by the primitives' names.
func costs(to *[mm.NumPrims]float64, from yaml.MapSlice) error {
	seen := [mm.NumPrims]bool{}
	for _, it := range from {
		name, _ := it.Key.(string)
		prim, ok := mm.ParsePrim(name)
		if !ok {
			return fmt.Errorf("no primitive is called %q; make it again with hugelab calibrate", name)
		}
		if seen[prim] {
			return fmt.Errorf("%s stands there twice", name)
		}
		seen[prim] = true
		var err error
		if to[prim], err = number(it.Value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// number is a cost in nanoseconds as YAML gives it.
func number(v any) (float64, error) {
	var x float64
	switch n := v.(type) {
	case float64:
		x = n
	case uint64:
		x = float64(n)
	case int64:
		x = float64(n)
	case int:
		x = float64(n)
	default:
		return 0, fmt.Errorf("%v is not a number of nanoseconds", v)
	}
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0, fmt.Errorf("%v is not a number of nanoseconds", v)
	}
	return x, nil
}

// Save writes the profile as YAML, primitives in their order.
func (p *Profile) Save(w io.Writer) error {
	f := file{Version: fileVersion, Name: p.Name, Source: p.Source, Made: p.Made,
		Unbacked: p.Unbacked, Traced: p.Traced, Nanos: byName(&p.Nanos)}
	if p.Elapsed != ([mm.NumPrims]float64{}) {
		f.Elapsed = byName(&p.Elapsed)
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("machine profile: %w", err)
	}
	if _, err = w.Write(text); err != nil {
		return fmt.Errorf("machine profile: %w", err)
	}
	return nil
}

// byName is costs under the primitives' names.
func byName(from *[mm.NumPrims]float64) yaml.MapSlice {
	var s yaml.MapSlice
	for i, n := range from {
		s = append(s, yaml.MapItem{Key: mm.Prim(i).String(), Value: n})
	}
	return s
}
