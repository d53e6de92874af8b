package demo

import (
	"fmt"
	"time"

	"ramp/agents/workload/published"
	"ramp/protocol"
	"ramp/rfql"
)

// Job is a request of the demonstration.
type Job struct {
	Name  string
	parts []part
}

// part is one unit: cores for an hour, starting in some time, at a highest price per core-hour.
type part struct {
	cores int
	in    time.Duration
	price int
}

// wall is the wall time of every job of the experiment (specs §1.4).
const wall = time.Hour

// Jobs are the thirteen jobs of the source (002 table 3), a request of three units, and one that
// no site accepts.
func Jobs() []Job {
	const h = time.Hour
	var jobs []Job
	for _, j := range published.Jobs() {
		name := fmt.Sprintf("%d-%.0fm", j.Cores, j.In.Minutes())
		if j.In > h {
			name = fmt.Sprintf("%d-%.0fh", j.Cores, j.In.Hours())
		}
		jobs = append(jobs, Job{name, []part{{j.Cores, j.In, j.Price}}})
	}
	// A compute job, a larger one beside it, and one that starts when the first ends.
	jobs = append(jobs, Job{"workflow", []part{{256, h, 60}, {1024, h, 60}, {256, h + wall, 60}}})
	return append(jobs, Job{"impossible", []part{{20480, h, 10}}}) // below every minimum price
}

// Document writes a job as RFQL, counted from now.
func (j Job) Document(now time.Time) (rfql.Document, error) {
	var d rfql.Draft
	now = now.Truncate(time.Second)
	for _, p := range j.parts {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Name: j.Name, Price: protocol.Credits(p.price) * protocol.Credit, TotalCores: p.cores,
			NotBefore: now.Add(p.in), End: now.Add(p.in + wall), Wall: wall,
		})
	}
	return rfql.Check(d, now)
}
