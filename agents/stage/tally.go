package stage

import (
	"time"

	"ramp/protocol/message"
)

// tally are the inputs of a job that are still to come. Looking at all of them for each
// that comes would take their square.
type tally struct {
	missing map[string]bool
	told    time.Time // when the role was told last that some are missing
}

// tellPeriod is between two counts of what is missing that the role is told.
const tellPeriod = time.Second

// arrived notes that an input is there, and tells the role now and then how many are
// missing. That none is, is counted on the disk. If they cannot be counted now the role
// asks by itself.
func (d *Depot) arrived(g Grant, path string) {
	n, tell, err := d.strike(g, path)
	if err == nil && n == 0 {
		d.forget(g.Job)
		var list []string
		list, err = d.missing(g.Job, g.Inputs)
		n = len(list)
	}
	if err == nil && tell {
		d.tell(message.Prepared{Job: g.Job, Missing: n})
	}
}

// strike takes an input off what is to come, and reports how many are left and whether
// the role is to be told.
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
		t = other // of an exchange beside this one, which counted as well
	}
	d.tallies[g.Job] = t
	delete(t.missing, path)
	now := time.Now()
	if tell = len(t.missing) == 0 || now.Sub(t.told) >= tellPeriod; tell {
		t.told = now
	}
	return len(t.missing), tell, nil
}

// forget drops what was counted of a job's inputs.
func (d *Depot) forget(job string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tallies, job)
}
