package rfql_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/rfql"
)

func ExampleCheck() {
	now := time.Date(2031, 1, 10, 11, 0, 0, 0, time.UTC)
	d, err := rfql.Check(rfql.Draft{
		Objective: protocol.ObjectiveTime,
		Requests: []rfql.DraftRequest{{
			Application: "LB3D", Price: 70 * protocol.Credit, TotalCores: 16,
			Wall: 2 * time.Hour, End: now.Add(12 * time.Hour),
		}},
	}, now)
	fmt.Print(err, "\n", string(d.XML()))
	// Output:
	// <nil>
	// <?xml version="1.0" encoding="UTF-8"?>
	// <RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ" xmlns:r="urn:ramp:rfql:2" r:optimize="time">
	//   <Request r:application="LB3D">
	//     <CPUHourCost>70</CPUHourCost>
	//     <EndDate>2031-01-10</EndDate>
	//     <EndTime>23:00:00Z</EndTime>
	//     <WallTime>120</WallTime>
	//     <Cores>
	//       <TotalCores>16</TotalCores>
	//     </Cores>
	//   </Request>
	// </RequestForQuotation>
}

func ExampleFaults_In() {
	_, err := rfql.Parse([]byte(`<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ">
  <Request>
    <CPUHourCost>-5</CPUHourCost>
    <EndDate>2031-01-10</EndDate>
    <Cores><totalcores>16</totalcores></Cores>
  </Request>
</RequestForQuotation>`), time.Time{})
	var faults rfql.Faults
	if errors.As(err, &faults) {
		fmt.Println(faults.In("job.xml"))
	}
	// Output:
	// job.xml:2: EndTime: found nothing; allowed one in every Request
	// job.xml:3: CPUHourCost: found "-5"; allowed a decimal number above 0 and at most 9223372036854.775807 with at most 6 decimal places (credits per core-hour) (it cannot be negative)
	// job.xml:5: totalcores: found an unexpected element; allowed TotalCores, Nodes (write it TotalCores)
	// job.xml:5: Cores: found neither; allowed one of TotalCores and Nodes
}

func plain() rfql.DraftRequest {
	return rfql.DraftRequest{Price: protocol.Credit, End: atNow().Add(time.Hour), Wall: time.Hour, TotalCores: 1}
}

func TestCheckRefusesDraftsBuiltByHand(t *testing.T) {
	tests := []struct {
		name   string
		change func(*rfql.DraftRequest)
		term   rfql.Term
		class  rfql.Class
	}{
		{"a negative price", func(r *rfql.DraftRequest) { r.Price = -1 }, rfql.CPUHourCost, rfql.Form},
		{"no end", func(r *rfql.DraftRequest) { r.End = time.Time{} }, rfql.EndDate, rfql.Form},
		{"an end before 1970", func(r *rfql.DraftRequest) { r.End = time.Unix(-1, 0) }, rfql.EndDate, rfql.Meaning},
		{"a start after 2199", func(r *rfql.DraftRequest) { r.NotBefore = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }, rfql.StartDate, rfql.Meaning},
		{"an end now", func(r *rfql.DraftRequest) { r.End = atNow() }, rfql.EndDate, rfql.Meaning},
		{"a wall time with seconds", func(r *rfql.DraftRequest) { r.Wall -= time.Second }, rfql.WallTime, rfql.Form},
		{"a negative wall time", func(r *rfql.DraftRequest) { r.Wall = -time.Minute }, rfql.WallTime, rfql.Form},
		{"a wall time above ten years", func(r *rfql.DraftRequest) { r.Wall, r.End = rfql.MaxWall+time.Minute, r.End.AddDate(50, 0, 0) }, rfql.WallTime, rfql.Form},
		{"a wall time that ends a nanosecond late", func(r *rfql.DraftRequest) { r.End = r.End.Add(-1) }, rfql.WallTime, rfql.Meaning},
		{"no cores", func(r *rfql.DraftRequest) { r.TotalCores = 0 }, rfql.Cores, rfql.Form},
		{"negative cores", func(r *rfql.DraftRequest) { r.TotalCores = -1 }, rfql.TotalCores, rfql.Form},
		{"one core too many", func(r *rfql.DraftRequest) { r.TotalCores = rfql.MaxCount + 1 }, rfql.TotalCores, rfql.Form},
		{"both ways to count cores", func(r *rfql.DraftRequest) { r.NodeCount, r.NodeCores = 1, 1 }, rfql.Cores, rfql.Form},
		{"nodes without cores", func(r *rfql.DraftRequest) { r.TotalCores, r.NodeCount = 0, 1 }, rfql.Nodes, rfql.Form},
		{"one core too many on all nodes", func(r *rfql.DraftRequest) { r.TotalCores, r.NodeCount, r.NodeCores = 0, 1<<15, 1<<15+1 }, rfql.Nodes, rfql.Meaning},
		{"both kinds of disk", func(r *rfql.DraftRequest) { r.TotalDisk, r.NodeDisk = 1, 1 }, rfql.Disk, rfql.Form},
		{"a negative speed", func(r *rfql.DraftRequest) { r.CPUSpeed = math.MinInt }, rfql.CPUSpeed, rfql.Form},
		{"a word that ends in a blank", func(r *rfql.DraftRequest) { r.OS = "LINUX " }, rfql.OperatingSystem, rfql.Form},
		{"a word on two lines", func(r *rfql.DraftRequest) { r.Arch = "a\nb" }, rfql.Architecture, rfql.Form},
		{"a name that is no text", func(r *rfql.DraftRequest) { r.Name = "\xff" }, rfql.Name, rfql.Form},
		{"a name with an escape", func(r *rfql.DraftRequest) { r.Name = "\x1b[2J" }, rfql.Name, rfql.Form},
		{"an application that is too long", func(r *rfql.DraftRequest) { r.Application = strings.Repeat("x", 129) }, rfql.Application, rfql.Form},
		{"a cost that overflows", func(r *rfql.DraftRequest) { r.Price = protocol.MaxCredits; r.TotalCores = 2 }, rfql.CPUHourCost, rfql.Meaning},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := plain()
			tt.change(&r)
			d, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{plain(), r}}, atNow())
			var faults rfql.Faults
			if !errors.As(err, &faults) || len(faults) != 1 {
				t.Fatalf("want one fault, got %v", err)
			}
			if f := faults[0]; f.Term != tt.term || f.Class != tt.class || f.Request != 1 || f.Line != 0 || d.Len() != 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestAsManyCoresAsCanBeMayStandOnNodes(t *testing.T) {
	r := plain()
	r.TotalCores, r.NodeCount, r.NodeCores = 0, 1<<15, 1<<15
	_, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{r}}, atNow())
	var faults rfql.Faults
	for errors.As(err, &faults); len(faults) > 0; faults = faults[1:] {
		if faults[0].Term == rfql.Nodes {
			t.Error(faults[0])
		}
	}
}

func TestAStartDateAloneIsMidnight(t *testing.T) {
	d, err := rfql.Parse(document(t, "start-date-only.xml"), atNow())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.Request(0).NotBefore, time.Date(2031, 1, 10, 0, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("it starts %s, want %s", got, want)
	}
}

func TestCheckBoundsTheDocument(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 1: true, protocol.MaxUnits: true, protocol.MaxUnits + 1: false} {
		d := rfql.Draft{}
		for range n {
			d.Requests = append(d.Requests, plain())
		}
		if _, err := rfql.Check(d, atNow()); (err == nil) != ok {
			t.Errorf("%d requests: %v", n, err)
		}
	}
	if _, err := rfql.Check(rfql.Draft{Objective: 4, Requests: []rfql.DraftRequest{plain()}}, atNow()); err == nil {
		t.Error("an objective that is none is accepted")
	}
	bad := rfql.Draft{Requests: make([]rfql.DraftRequest, protocol.MaxUnits)}
	_, err := rfql.Check(bad, atNow())
	if n := strings.Count(err.Error(), "\n") + 1; n != rfql.MaxFaults {
		t.Errorf("%d faults are told, want %d", n, rfql.MaxFaults)
	}
}

func TestARequestWithoutStartAndWallTimeRunsFromNow(t *testing.T) {
	r := plain()
	r.Wall = 0
	now := atNow().Add(time.Nanosecond)
	d, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{r}}, now)
	if err != nil {
		t.Fatal(err)
	}
	start := atNow().Add(time.Second)
	if got := d.Request(0); !got.NotBefore.Equal(start) || got.Wall != r.End.Sub(start) {
		t.Errorf("starts %s and runs %s", got.NotBefore, got.Wall)
	}
	seller, err := rfql.Parse(d.XML(), now.Add(time.Second/2))
	if err != nil || !seller.Equal(d) {
		t.Errorf("half a second later it is read as %+v, %v", seller, err)
	}
	if _, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{r}}, time.Time{}); err == nil {
		t.Error("without a clock it has a wall time")
	}
}

func TestWithoutAClockThePastIsRead(t *testing.T) {
	b := document(t, "end-passed.xml")
	if _, err := rfql.Parse(b, atNow()); err == nil {
		t.Error("an end that has passed is accepted")
	}
	if _, err := rfql.Parse(b, time.Time{}); err != nil {
		t.Error(err)
	}
}

func TestReadWarnsOfMeaningWithoutAClock(t *testing.T) {
	d, warnings, err := rfql.Read(document(t, "end-before-start.xml"))
	if err != nil || len(warnings) != 1 || warnings[0].Class != rfql.Meaning || warnings[0].Term != rfql.EndDate {
		t.Fatalf("%v, %v", warnings, err)
	}
	if r := d.Requests[0]; r.TotalCores != 32 || r.Arch != "Intel" || r.Price != 7*protocol.Credit || r.End.After(r.NotBefore) {
		t.Errorf("%+v", r)
	}
	if _, warnings, err = rfql.Read(document(t, "required-only.xml")); err != nil || warnings != nil {
		t.Errorf("a window that only a clock can settle: %v, %v", warnings, err)
	}
}

func TestWhatReadRefusesNoCheckAccepts(t *testing.T) {
	for _, r := range table(t) {
		d, _, err := rfql.Read(document(t, r.file))
		if _, checked := rfql.Check(d, atNow()); err != nil && checked == nil {
			t.Errorf("%s (%s) is refused by Read but passed by Check", r.file, r.what)
		}
	}
}

func TestFaultsAreBounded(t *testing.T) {
	root := `<RequestForQuotation xmlns="` + rfql.Namespace + `" xmlns:r="` + rfql.ExtensionNamespace + `">`
	_, _, err := rfql.Read([]byte(root + strings.Repeat("<Other/>", 1000) + "</RequestForQuotation>"))
	var faults rfql.Faults
	if !errors.As(err, &faults) || len(faults) != rfql.MaxFaults || !strings.Contains(err.Error(), "too many faults") {
		t.Errorf("%d faults", len(faults))
	}
	good := strings.Replace(string(document(t, "required-only.xml")), `<Request>`, `<Request xmlns:r="`+rfql.ExtensionNamespace+`">`+strings.Repeat("<r:a/>", 1000), 1)
	if _, notices, err := rfql.Read([]byte(good)); err != nil || len(notices) != rfql.MaxNotices {
		t.Errorf("%d notices, %v", len(notices), err)
	}
}

func TestSizeIsBounded(t *testing.T) {
	pad := func(n int) []byte {
		return append([]byte(kilobyte), strings.Repeat("\n", n-len(kilobyte))...)
	}
	if _, _, err := rfql.Read(pad(protocol.MaxDocument)); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	if _, _, err := rfql.Read(pad(protocol.MaxDocument + 1)); err == nil {
		t.Error("a byte more than 1 MiB is read")
	}
}
