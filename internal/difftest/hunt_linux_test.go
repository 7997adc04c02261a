//go:build amd64

package difftest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/mm"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	os.Exit(m.Run())
}

func TestHunt(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("HUNT"), 10, 64)
	if err != nil {
		t.Skip("HUNT is not set to a seed")
	}
	n, _ := strconv.Atoi(os.Getenv("HUNT_N"))
	rules, _ := mm.RulesFor("6.18")
	rules.NoZeroPage = kernel.NoZeroPage()
	rep, err := Check(context.Background(), Options{
		Seed: seed, Programs: n, Steps: 40, Rules: rules, Paranoid: true, MaxMismatches: 8, Time: 60 * time.Second,
		OnMismatch: func(m *Mismatch) { t.Errorf("%s: %s\n%s", m.From, &m.Difference, m.Program) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d programs, %d rerun, %d steps, %d pages, %.1f s", rep.Programs, rep.Rerun, rep.Steps, rep.Pages, rep.Seconds)
}
