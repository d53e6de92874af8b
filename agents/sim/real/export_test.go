package real

import (
	"time"

	"ramp/agents/control"
)

// CompareAt is Compare at another time: books of a simulated market are of its own.
func CompareAt(dir string, now time.Time) (Report, error) { return compareAt(dir, now) }

// Acts are the beginnings and ends of a plan's faults, in the order of time.
func Acts(plan []Fault) []time.Duration {
	var at []time.Duration
	for _, a := range acts(plan) {
		at = append(at, a.at)
	}
	return at
}

// Disk gives a test a small file system.
func Disk(image, dir string) (fill, free, unmount func() error, err error) {
	d, err := makeDisk(image, dir)
	return d.fill, d.free, d.unmount, err
}

// Said is a message of a trace, so many seconds after the first.
type Said struct {
	Second    int
	Dir, Text string
}

// Responses are the response times in a trace.
func Responses(list []Said) []time.Duration {
	var trace []control.Traced
	for _, s := range list {
		trace = append(trace, control.Traced{At: time.Unix(int64(s.Second), 0), Dir: s.Dir, Text: s.Text})
	}
	return responses(trace)
}
