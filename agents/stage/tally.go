package stage

import (
	"time"

	"ramp/protocol/message"
)

// tally tracks the missing inputs of a job, so that an arriving input needs no look at all others.
type tally struct {
	missing map[string]bool
	told    time.Time // when the role was last informed
}

// tellPeriod is the time between two reports of missing inputs to the role.
const tellPeriod = time.Second

// arrived notes an input, and reports the number of missing ones to the role from time to time.
// Before it reports 0, it checks the disk; if it cannot, the role asks again by itself.
func (d *Depot) arrived(g Grant, path string) {
	n, tell, err := d.strike(g, path)
	if err == nil && n == 0 {
		d.forget(g.Job)
		var list []string
		list, err = d.missing(g.Job, g.Inputs)
		n = len(list)
	}
	if err == nil && tell {
		d.report(message.Prepared{Job: g.Job, Missing: n})
	}
}

// strike removes an input from the missing ones. It returns how many are left, and
// whether to inform the role.
func (d *Depot) strike(g Grant, path string) (left int, tell bool, err error) {
	d.mu.Lock()
	t := d.tallies[g.Job]
	d.mu.Unlock()
	if t == nil {
		list, err := d.missing(g.Job, g.Inputs)
		if err != nil {
			return 0, false, err
		}
		t = &tally{missing: make(map[string]bool, len(list))}
		for _, p := range list {
			t.missing[p] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.tallies[g.Job]; other != nil {
		t = other // a concurrent exchange has counted too
	}
	d.tallies[g.Job] = t
	delete(t.missing, path)
	now := time.Now()
	if tell = len(t.missing) == 0 || now.Sub(t.told) >= tellPeriod; tell {
		t.told = now
	}
	return len(t.missing), tell, nil
}

func (d *Depot) forget(job string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tallies, job)
}
