package experiment

import (
	"fmt"
	"time"

	"ramp/agents/resource/pricing"
	"ramp/protocol"
	"ramp/rfql"
)

// Site is one of the twenty resources of the source's experiment (002 table 2).
type Site struct {
	Name       string
	Machine    string // of table 1; a log's file name has it in it
	Base       int64  // second of the log at which the market starts
	Start, Min int    // credits per core-hour
}

// Sites are the twenty resources, in the order of the source.
func Sites() []Site {
	return []Site{
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
}

func (s Site) band() pricing.Band {
	return pricing.Band{Start: credits(s.Start), Min: credits(s.Min), Rounds: pricing.DefaultRounds}
}

func credits(n int) protocol.Credits { return protocol.Credits(n) * protocol.Credit }

// job is one unit to buy: cores for an hour, to start so long after now, at most
// at a price per core-hour.
type job struct {
	name  string
	cores int
	in    time.Duration
	price protocol.Credits
}

// wall is the wall time of every job (specs §1.4).
const wall = time.Hour

// table3 are the thirteen jobs of 002 table 3.
func table3() []job {
	const m, h = time.Minute, time.Hour
	var jobs []job
	for i, j := range []struct {
		cores int
		in    time.Duration
		price int
	}{
		{16, 5 * m, 70}, {16, h, 55}, {16, 12 * h, 35}, {256, 5 * m, 50}, {256, h, 30}, {256, 12 * h, 25},
		{1024, h, 55}, {1024, 12 * h, 35}, {4096, h, 55}, {4096, 12 * h, 35}, {20480, 5 * m, 80}, {20480, h, 55}, {20480, 12 * h, 35},
	} {
		jobs = append(jobs, job{fmt.Sprintf("exp%d", i+1), j.cores, j.in, credits(j.price)})
	}
	return jobs
}

// table4 is the request of 002 table 4.
func table4() job { return job{"table4", 16, 5 * time.Minute, credits(70)} }

// document writes units as RFQL, counted from now.
func document(now time.Time, units ...job) []byte {
	now = now.Truncate(time.Second)
	var d rfql.Draft
	for _, j := range units {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Name: j.name, Price: j.price, TotalCores: j.cores,
			NotBefore: now.Add(j.in), End: now.Add(j.in + wall), Wall: wall,
		})
	}
	doc, err := rfql.Check(d, now)
	if err != nil {
		panic(fmt.Sprintf("experiment: request: %v", err)) // all of ours are sensible
	}
	return doc.XML()
}
