package calibrate

import "time"

// Options say how long to measure, and to whom to talk meanwhile.
type Options struct {
	Time     time.Duration                     // rounds begin until then; 0: DefaultTime
	Least    int                               // rounds at least; 0: 4
	Keep     bool                              // change no setting: measure what they allow
	Progress func(round int, at time.Duration) // nil: nobody listens
	Say      func(string)                      // nil: nobody listens
}

// DefaultTime leaves a calibration below twenty seconds.
const DefaultTime = 14 * time.Second

func (o Options) withDefaults() Options {
	if o.Time == 0 {
		o.Time = DefaultTime
	}
	if o.Least == 0 {
		o.Least = 4
	}
	if o.Progress == nil {
		o.Progress = func(int, time.Duration) {}
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	return o
}
