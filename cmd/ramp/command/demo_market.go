package command

import (
	"time"

	"ramp/protocol"
	"ramp/rfql"
)

// site is one of the twenty resources of the source's experiment (002 table 2):
// a machine's log from a base time on, and its price band per core-hour.
type site struct {
	name       string
	machine    string // prefix of the log's name
	base       int64  // second of the real log
	start, min int    // credits
}

// demoSites are the twenty resources, in the order of the source.
var demoSites = []site{
	{"atlas1", "Atlas", 3370000, 33, 25}, {"atlas2", "Atlas", 1370000, 33, 26},
	{"thunder1", "Thunder", 250000, 70, 40}, {"thunder2", "Thunder", 1300000, 75, 60},
	{"thunder3", "Thunder", 130000, 70, 35}, {"thunder4", "Thunder", 450000, 75, 50},
	{"intrepid1", "Intrepid", 50000, 55, 35}, {"intrepid2", "Intrepid", 1500000, 65, 25},
	{"intrepid3", "Intrepid", 15000000, 53, 25}, {"intrepid4", "Intrepid", 750000, 55, 30},
	{"intrepid5", "Intrepid", 2500000, 65, 28}, {"intrepid6", "Intrepid", 90000, 53, 30},
	{"ricc1", "RICC", 50000, 40, 25}, {"ricc2", "RICC", 7570000, 45, 25},
	{"ricc3", "RICC", 500000, 45, 25}, {"ricc4", "RICC", 757000, 45, 30},
	{"curie1", "Curie", 150000, 80, 40}, {"curie2", "Curie", 1375000, 80, 65},
	{"curie3", "Curie", 350000, 80, 30}, {"curie4", "Curie", 2375000, 70, 65},
}

// machineCores are the sizes of the machines (002 table 1).
var machineCores = map[string]int{"Atlas": 9216, "Thunder": 4008, "Intrepid": 163840, "RICC": 8192, "Curie": 93312}

// demoJob is a request of the demonstration.
type demoJob struct {
	name  string
	parts []demoPart
}

// demoPart is one unit: cores for an hour, to start so long after now, at most
// at a price per core-hour.
type demoPart struct {
	cores int
	in    time.Duration
	price int
}

// demoWall is the wall time of every job of the experiment (specs §1.4).
const demoWall = time.Hour

// demoJobs are the thirteen jobs of the source (002 table 3), a request of three
// units, and one that nobody can meet.
func demoJobs() []demoJob {
	const m, h = time.Minute, time.Hour
	var jobs []demoJob
	for _, j := range []struct {
		name string
		part demoPart
	}{
		{"16-5m", demoPart{16, 5 * m, 70}}, {"16-60m", demoPart{16, h, 55}}, {"16-12h", demoPart{16, 12 * h, 35}},
		{"256-5m", demoPart{256, 5 * m, 50}}, {"256-60m", demoPart{256, h, 30}}, {"256-12h", demoPart{256, 12 * h, 25}},
		{"1024-60m", demoPart{1024, h, 55}}, {"1024-12h", demoPart{1024, 12 * h, 35}},
		{"4096-60m", demoPart{4096, h, 55}}, {"4096-12h", demoPart{4096, 12 * h, 35}},
		{"20480-5m", demoPart{20480, 5 * m, 80}}, {"20480-60m", demoPart{20480, h, 55}}, {"20480-12h", demoPart{20480, 12 * h, 35}},
	} {
		jobs = append(jobs, demoJob{j.name, []demoPart{j.part}})
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
