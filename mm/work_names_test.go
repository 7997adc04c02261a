package mm

import "testing"

// TestPrimNames holds the table complete, without doubles, and reversible.
func TestPrimNames(t *testing.T) {
	seen := map[string]Prim{}
	for i := range NumPrims {
		p := Prim(i)
		name := p.String()
		if name == "" {
			t.Errorf("primitive %d has no name", i)
		}
		if q, ok := seen[name]; ok {
			t.Errorf("%q names both %d and %d", name, q, i)
		}
		seen[name] = p
		if back, ok := ParsePrim(name); !ok || back != p {
			t.Errorf("ParsePrim(%q) = %d, %v, want %d", name, back, ok, i)
		}
	}
	if _, ok := ParsePrim("no_such"); ok {
		t.Error("ParsePrim found a primitive that does not exist")
	}
	if got := Prim(NumPrims).String(); got != "prim "+itoa(NumPrims) {
		t.Errorf("out of range: %q", got)
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
