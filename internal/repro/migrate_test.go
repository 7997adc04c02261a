package repro

import (
	"testing"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/workload"
	"github.com/hugelab/hugelab/mm"
)

// modelOf runs a result on its own machine with numbers changed.
func modelOf(t *testing.T, r Result, set ...string) Values {
	t.Helper()
	m, err := hw.LoadMachine(r.Machine)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = with(m, set); err != nil {
		t.Fatal(err)
	}
	v, err := r.Model(Env{Machine: m, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// must is a metric that has to be there.
func must(t *testing.T, v Values, name string) float64 {
	t.Helper()
	x, ok := v.Get(name)
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return x
}

// holdBands holds a result to the bands of what was published, but for the
// metrics named.
func holdBands(t *testing.T, r Result, v Values, missed ...string) {
	t.Helper()
	p, err := LoadPublished(r.Name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Metrics {
		m := &p.Metrics[i]
		x, ok := v.Get(m.Name)
		in, known := m.Reached(x)
		want := true
		for _, n := range missed {
			want = want && n != m.Name
		}
		switch {
		case known && !ok:
			t.Errorf("%s: the model does not have it", m.Name)
		case known && in != want:
			t.Errorf("%s is %v: within the band %v, want %v", m.Name, x, in, want)
		}
	}
}

func TestMigrateBands(t *testing.T) {
	r := thpMigration()
	holdBands(t, r, modelOf(t, r))
}

// TestMigrateFit: the two fitted numbers meet the base column, and no other
// number of the machine was fitted.
func TestMigrateFit(t *testing.T) {
	r := thpMigration()
	v := modelOf(t, r)
	p, err := LoadPublished(r.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"time_1x4k_us", "time_512x4k_us"} {
		want := *p.metric(name).Value
		if got := must(t, v, name); got < want*0.998 || got > want*1.002 {
			t.Errorf("%s is %v, fitted to %v", name, got, want)
		}
	}
	m, err := hw.LoadMachine(r.Machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range m.Fitted() {
		if k != "work.lru_drain" && k != "migrate.scale" {
			t.Errorf("%s was fitted too: to what?", k)
		}
	}
}

// TestMigrateCauses: the ratio comes from work that 512 pages need 512 times.
// Faster copying leaves more of it, no such work leaves none.
func TestMigrateCauses(t *testing.T) {
	r := thpMigration()
	ratio := func(set ...string) float64 { return must(t, modelOf(t, r, set...), r.Main) }
	base := ratio()
	if x := ratio("copy.rate=*2"); x < base*1.2 {
		t.Errorf("copying twice as fast: %v, without %v", x, base)
	}
	if x := ratio("copy.rate=*0.5"); x > base*0.85 {
		t.Errorf("copying half as fast: %v, without %v", x, base)
	}
	if x := ratio("migrate.scale=0", "work.flush=0"); x > 1.2 {
		t.Errorf("no work a page beside the copy: %v", x)
	}
	// What keeping the huge page is worth afterwards is the page walks' doing.
	v := modelOf(t, r, "walk.step=0")
	if x := must(t, v, "access_translation_4k_ns") - must(t, v, "access_translation_2m_ns"); x > 1 {
		t.Errorf("walks that cost nothing: small pages still cost %v ns more", x)
	}
}

// TestMigrateCounters: what each form counts, and how often it flushes, by
// kernel.
func TestMigrateCounters(t *testing.T) {
	m, err := hw.LoadMachine("xeon-e5-2640v4")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		kernel  string
		thp     bool
		how     workload.MigrateHow
		want    [5]uint64 // pgmigrate_success, _fail, thp_migration_success, _fail, _split
		flushes uint64
	}{
		{"4.9", true, workload.MigrateOne, [5]uint64{1, 0, 0, 0, 0}, 1},
		{"4.9", true, workload.MigrateSmall, [5]uint64{512, 0, 0, 0, 0}, 512},
		{"4.9", true, workload.MigrateWhole, [5]uint64{512, 0, 1, 0, 0}, 1},
		{"4.9", true, workload.MigrateSplit, [5]uint64{512, 0, 0, 0, 0}, 512},
		{"4.9", false, workload.MigrateWhole, [5]uint64{512, 0, 0, 1, 1}, 512},
		{"6.18", true, workload.MigrateSmall, [5]uint64{512, 0, 0, 0, 0}, 1},
		{"6.18", true, workload.MigrateWhole, [5]uint64{512, 0, 1, 0, 0}, 1},
	} {
		rules, err := mm.RulesFor(tc.kernel)
		if err != nil {
			t.Fatal(err)
		}
		rules.MigrateTHP = tc.thp
		got, err := workload.Migrate(m, rules, tc.how)
		if err != nil {
			t.Errorf("%s, form %d: %v", tc.kernel, tc.how, err)
			continue
		}
		vm := &got.Counters.VM
		is := [5]uint64{vm[mm.PgMigrateSuccess], vm[mm.PgMigrateFail], vm[mm.THPMigrationSuccess],
			vm[mm.THPMigrationFail], vm[mm.THPMigrationSplit]}
		if is != tc.want || got.Flushes != tc.flushes {
			t.Errorf("%s, form %d: counted %v with %d flushes, want %v with %d", tc.kernel, tc.how, is, got.Flushes,
				tc.want, tc.flushes)
		}
	}
}
