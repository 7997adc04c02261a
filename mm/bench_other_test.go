//go:build !linux

package mm

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
