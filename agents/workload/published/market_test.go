package published_test

import (
	"fmt"
	"strings"
	"testing"

	"ramp/agents/workload/published"
)

// table2 is table 2 of 002 as printed: system, log, base time in
// seconds, start price, minimum price.
const table2 = `
atlas1 Atlas 3370000 33 25
atlas2 Atlas 1370000 33 26
thunder1 Thunder 250000 70 40
thunder2 Thunder 1300000 75 60
thunder3 Thunder 130000 70 35
thunder4 Thunder 450000 75 50
intrepid1 Intrepid 50000 55 35
intrepid2 Intrepid 1500000 65 25
intrepid3 Intrepid 15000000 53 25
intrepid4 Intrepid 750000 55 30
intrepid5 Intrepid 2500000 65 28
intrepid6 Intrepid 90000 53 30
ricc1 RICC 50000 40 25
ricc2 RICC 7570000 45 25
ricc3 RICC 500000 45 25
ricc4 RICC 757000 45 30
curie1 Curie 150000 80 40
curie2 Curie 1375000 80 65
curie3 Curie 350000 80 30
curie4 Curie 2375000 70 65`

func TestMarketMatchesThePublishedTables(t *testing.T) {
	var b strings.Builder
	cores := map[string]int{}
	for _, m := range published.Machines() {
		cores[m.Name] = m.Cores
	}
	for _, r := range published.Resources() {
		fmt.Fprintf(&b, "\n%s %s %d %d %d", r.Name, r.Machine, r.Base, r.Start, r.Min)
		if cores[r.Machine] == 0 {
			t.Errorf("%s runs on %s, which the machines lack", r.Name, r.Machine)
		}
		if _, err := published.Logs.Open("swf/" + r.Name + ".swf.gz"); err != nil {
			t.Errorf("%s has no synthetic log: %v", r.Name, err)
		}
	}
	if b.String() != table2 {
		t.Errorf("resources:%s\nwant:%s", b.String(), table2)
	}
	if n := len(published.Jobs()); n != 13 {
		t.Errorf("%d jobs, want 13", n)
	}
}
