package predict

import (
	"fmt"
	"math"
	"time"

	"github.com/hugelab/hugelab/mm"
)

// HumanCount prints a count with three digits: "94.1k", "12", "1.23M".
func HumanCount(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	v, unit := float64(n), ""
	for _, u := range []string{"k", "M", "G", "T", "P", "E"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	return three(v) + unit
}

// HumanBytes prints a length with three digits and a binary unit: "4.20 MiB".
func HumanBytes(b mm.Bytes) string {
	if b < 1024 {
		return fmt.Sprintf("%d B", b)
	}
	v, unit := float64(b), ""
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1024, u
	}
	return three(v) + " " + unit
}

// HumanTime prints a duration with three digits: "141 us", "2.13 s".
func HumanTime(d time.Duration) string {
	v := float64(d)
	switch {
	case v < 0:
		return "-" + HumanTime(-d)
	case v < 1000:
		return fmt.Sprintf("%d ns", d)
	case v < 999.5e3:
		return three(v/1e3) + " us"
	case v < 999.5e6:
		return three(v/1e6) + " ms"
	case d < 10000*time.Second:
		return three(v/1e9) + " s"
	case d < 1000*time.Hour:
		return three(d.Hours()) + " h"
	}
	return three(d.Hours()/24) + " d"
}

// three prints a number below 1024 with three digits, without trailing zeros
// after whole numbers.
func three(v float64) string {
	switch {
	case v == math.Trunc(v) && v < 1024, v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// percent prints a share: "3.1 %", "0.04 %", "85 %".
func percent(x float64) string {
	v := 100 * x
	switch a := math.Abs(v); {
	case v > 999.5:
		return ">999 %"
	case v == math.Trunc(v), a >= 9.95:
		return fmt.Sprintf("%.0f %%", v)
	case a >= 0.095:
		return fmt.Sprintf("%.1f %%", v)
	}
	return fmt.Sprintf("%.2f %%", v)
}

// HumanPercent prints a share as "3.1 %".
func HumanPercent(x float64) string { return percent(x) }

// Change prints how to differs from from: "+3.1 %", "-85 %", "0 %", and "~0 %"
// for less than a twentieth of a percent. A change from nothing has no
// percentage and is "new"; one of tenfold or more is "x12".
func Change(from, to float64) string {
	switch ratio := to / from; {
	case from == to:
		return "0 %"
	case from == 0:
		return "new"
	case ratio >= 9999.5:
		return ">x9k"
	case ratio >= 9.995:
		return fmt.Sprintf("x%.0f", ratio)
	}
	v := (to - from) / from
	switch {
	case math.Abs(v) < 0.0005:
		return "~0 %"
	case math.Abs(v) < 0.0995:
		return fmt.Sprintf("%+.1f %%", 100*v)
	}
	return fmt.Sprintf("%+.0f %%", 100*v)
}
