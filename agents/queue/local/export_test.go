package local

import (
	"os"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

type Claim = claim

var Steady, Recent = steady, recent

func Start(keeper []string, job message.Job) error { return (&cores{keeper: keeper}).start(job) }

// Grouped reports whether jobs get a control group here: whether one can be made
// below that of this process.
func Grouped(dir string) bool {
	job := message.Job{Dir: dir}
	if err := os.MkdirAll(control(job, ""), 0o700); err != nil {
		return false
	}
	g, err := newGroup(job)
	g.remove()
	return err == nil
}

// Status is how a job stands, as any agent of the machine sees it.
func Status(job message.Job) (protocol.JobStatus, error) { return (&cores{}).status(job) }

// Leave waits until the keeper of a job that has begun has ended: nobody writes into
// its directory any more.
func Leave(job message.Job) error {
	lock, err := lockJob(control(job, lockFileOf))
	if err != nil {
		return err
	}
	return lock.Close()
}

// Seen is one process of a job, as a keeper sees it.
type Seen struct {
	PID         int
	Started     uint64
	CPU, Waited time.Duration
}

// Meter is what a keeper measures by.
type Meter struct{ m *meter }

// NewMeter makes the meter of a job.
func NewMeter(cores int) Meter { return Meter{newMeter(cores)} }

// Look takes what runs, what the keeper has waited for, and how many threads of
// others want to run (-1: not counted). It tells what was used by then.
func (m Meter) Look(waited time.Duration, others int, list ...Seen) protocol.Usage {
	s := sight{own: map[int]process{}, waited: waited, runnable: others}
	for _, p := range list {
		s.own[p.PID] = process{started: p.Started, cpu: p.CPU, waited: p.Waited}
	}
	m.m.look(s)
	return protocol.Usage{CPU: m.m.cpu, Share: m.m.share}
}

// Share takes how many threads of others want to run on a machine, and tells the
// least share until then.
func (m Meter) Share(machine, others int) int64 {
	m.m.shared(machine, others)
	return m.m.share
}

// FairShare is what a machine leaves a job.
var FairShare = fairShare

// ParseStat reads what /proc tells of a process.
func ParseStat(b []byte) (parent int, cpu time.Duration, ok bool) {
	p, ok := parseStat(b)
	return p.parent, p.cpu, ok
}
