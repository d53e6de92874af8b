package lab

import (
	"fmt"
	"time"

	"ramp/agents/workload/published"
	"ramp/protocol"
	"ramp/rfql"
)

// demoJob is a request of the demonstration.
type demoJob struct {
	name  string
	parts []demoPart
}

// demoPart is one unit: cores for an hour, starting in some time, at a highest price per core-hour.
type demoPart struct {
	cores int
	in    time.Duration
	price int
}

// demoWall is the wall time of every job of the experiment (specs §1.4).
const demoWall = time.Hour

// demoJobs are the thirteen jobs of the source (002 table 3), a request of three units, and one that
// no site accepts.
func demoJobs() []demoJob {
	const h = time.Hour
	var jobs []demoJob
	for _, j := range published.Jobs() {
		name := fmt.Sprintf("%d-%.0fm", j.Cores, j.In.Minutes())
		if j.In > h {
			name = fmt.Sprintf("%d-%.0fh", j.Cores, j.In.Hours())
		}
		jobs = append(jobs, demoJob{name, []demoPart{{j.Cores, j.In, j.Price}}})
	}
	// A compute job, a larger one beside it, and one that starts when the first ends.
	jobs = append(jobs, demoJob{"workflow", []demoPart{{256, h, 60}, {1024, h, 60}, {256, h + demoWall, 60}}})
	return append(jobs, demoJob{"impossible", []demoPart{{20480, h, 10}}}) // below every minimum price
}

// document writes a job as RFQL, counted from now.
func (j demoJob) document(now time.Time) (rfql.Document, error) {
	var d rfql.Draft
	now = now.Truncate(time.Second)
	for _, p := range j.parts {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Name: j.name, Price: protocol.Credits(p.price) * protocol.Credit, TotalCores: p.cores,
			NotBefore: now.Add(p.in), End: now.Add(p.in + demoWall), Wall: demoWall,
		})
	}
	return rfql.Check(d, now)
}
