package slurm_test

import (
	"slices"
	"testing"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/slurm"
)

func TestJobs(t *testing.T) {
	c := real(t)
	var known []string
	queuetest.RunJobs(t, func(tb testing.TB, dir string) queue.Driver {
		if !slices.Contains(known, dir) {
			known = append(known, dir)
			if err := c.Clear(); err != nil {
				tb.Fatal(err)
			}
		}
		d, err := slurm.Open(config(c))
		if err != nil {
			tb.Fatal(err)
		}
		return d
	})
}
