package repro

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hugelab/hugelab/hw"
)

func TestTry(t *testing.T) {
	for _, r := range spfResults() {
		if w := os.Getenv("TRY"); w != "" && w != r.Name {
			continue
		}
		hm, err := hw.LoadMachine(r.Machine)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range strings.Fields(os.Getenv("TRYSET")) {
			k, v, _ := strings.Cut(kv, "=")
			if hm, err = hm.With(k, v); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now()
		v, err := r.Model(Env{Machine: hm, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(r.Name, time.Since(at))
		for _, m := range v {
			t.Logf("   %-30s %.4g", m.Name, m.Value)
		}
	}
}
