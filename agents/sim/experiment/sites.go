package experiment

import (
	"fmt"
	"slices"
	"time"

	"ramp/agents/resource/pricing"
	"ramp/agents/workload/published"
	"ramp/protocol"
	"ramp/rfql"
)

// Site is one of the twenty resources of the source's experiment (002 table 2).
type Site published.Resource

// Sites are the twenty resources, in the order of the source.
func Sites() []Site {
	return each(published.Resources(), func(r published.Resource) Site { return Site(r) })
}

func siteNames() []string { return each(Sites(), func(s Site) string { return s.Name }) }

// siteOf returns a resource by its name.
func siteOf(name string) Site {
	all := Sites()
	return all[slices.IndexFunc(all, func(s Site) bool { return s.Name == name })] // names come from Sites
}

func (s Site) band() pricing.Band {
	return pricing.Band{Start: credits(s.Start), Min: credits(s.Min), Rounds: pricing.DefaultRounds, Rule: pricing.Ramp}
}

func credits(n int) protocol.Credits { return protocol.Credits(n) * protocol.Credit }

// job is one unit to buy: cores for an hour, to start after a delay, with a maximum price per
// core-hour.
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
	return each(published.Jobs(), func(j published.Job) job { return job{j.Name, j.Cores, j.In, credits(j.Price)} })
}

// table4 is the request of 002 table 4.
func table4() job { return job{"table4", 16, 5 * time.Minute, credits(70)} }

// document writes units as RFQL, with times relative to now.
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
		panic(fmt.Sprintf("experiment: request: %v", err)) // this package makes only valid ones
	}
	return doc.XML()
}
