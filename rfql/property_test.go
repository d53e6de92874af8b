package rfql_test

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/rfql"
)

// label draws a word that is legal as it is, or none.
func label() *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[!-~é<&"'Ж😀]{1,20}( [!-~]{1,20}){0,2}`))
}

func upTo(most int) *rapid.Generator[int] {
	return rapid.OneOf(rapid.Just(0), rapid.IntRange(1, most))
}

// draftRequest draws a request whose fields are each legal, and which fits at atNow.
func draftRequest(t *rapid.T) rfql.DraftRequest {
	start := atNow().Add(time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "start")))
	wall := time.Duration(rapid.IntRange(1, 10000).Draw(t, "wall")) * time.Minute
	r := rfql.DraftRequest{
		Name: label().Draw(t, "name"), Application: label().Draw(t, "application"),
		Price:     protocol.Credits(rapid.Int64Range(0, 1e9).Draw(t, "price")),
		NotBefore: start.In(time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))),
		Wall:      wall, End: start.Add(wall + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "slack"))),
		OS: label().Draw(t, "os"), OSVersion: label().Draw(t, "version"), Arch: label().Draw(t, "arch"),
		CPUSpeed: upTo(rfql.MaxCount).Draw(t, "speed"), Bandwidth: upTo(rfql.MaxCount).Draw(t, "bandwidth"),
		RAMPerCore: upTo(rfql.MaxCount).Draw(t, "ram"),
	}
	*rapid.SampledFrom([]*int{&r.TotalDisk, &r.NodeDisk}).Draw(t, "disk") = upTo(rfql.MaxCount).Draw(t, "space")
	if rapid.Bool().Draw(t, "nodes") {
		r.NodeCount, r.NodeCores = rapid.IntRange(1, 100).Draw(t, "count"), rapid.IntRange(1, 200).Draw(t, "each")
	} else {
		r.TotalCores = rapid.IntRange(1, 20000).Draw(t, "cores")
	}
	switch rapid.IntRange(0, 2).Draw(t, "given") {
	case 0:
		r.Wall = 0 // the whole window
	case 1:
		r.NotBefore = time.Time{}
	}
	return r
}

func draft(t *rapid.T) rfql.Draft {
	d := rfql.Draft{
		Objective: protocol.Objective(rapid.IntRange(0, 3).Draw(t, "objective")),
		Requests:  rapid.SliceOfN(rapid.Custom(draftRequest), 1, 5).Draw(t, "requests"),
	}
	anyTime := !slices.ContainsFunc(d.Requests, func(r rfql.DraftRequest) bool { return !r.NotBefore.IsZero() })
	d.SameStart = anyTime && rapid.Bool().Draw(t, "same start")
	if rapid.IntRange(0, 2).Draw(t, "metered") > 0 {
		return d
	}
	for i := range d.Requests {
		d.Requests[i].Contract = contract(t)
	}
	return d
}

// contract draws a contract that fits any request.
func contract(t *rapid.T) rfql.Contract {
	ramp := func(least int64) protocol.Ramp {
		lo := rapid.Int64Range(0, 1e7).Draw(t, "lo")
		return protocol.Ramp{Lo: lo, Hi: lo + rapid.Int64Range(0, 1e7).Draw(t, "rise"), Top: protocol.Credits(rapid.Int64Range(least, 1e9).Draw(t, "top"))}
	}
	c := rfql.Contract{P: ramp(1), Prepay: rapid.Bool().Draw(t, "prepay")}
	if rapid.Bool().Draw(t, "shared") {
		c.Q = ramp(0)
	}
	return c
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := rfql.Check(draft(t), atNow())
		if err != nil {
			t.Fatal(err)
		}
		again, err := rfql.Parse(d.XML(), time.Time{})
		if err != nil {
			t.Fatalf("%v:\n%s", err, d.XML())
		}
		if !again.Equal(d) || again.Ceiling() != d.Ceiling() || string(again.XML()) != string(d.XML()) {
			t.Fatalf("%+v\nread again is\n%+v\n%s", d, again, d.XML())
		}
		if third, err := rfql.Check(d.Draft(), time.Time{}); err != nil || !third.Equal(d) {
			t.Fatalf("%+v\nas a draft is\n%+v, %v", d, third, err)
		}
	})
}

func TestCheckKeepsWhatWasAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := draft(t)
		d, err := rfql.Check(in, atNow())
		if err != nil {
			t.Fatal(err)
		}
		total := new(big.Int)
		for i, want := range in.Requests {
			got := d.Request(i)
			cores := want.TotalCores + want.NodeCount*want.NodeCores
			wall := want.Wall
			if wall == 0 {
				wall = want.End.Sub(want.NotBefore)
			}
			if got.Unit != i || got.Cores != cores || got.Wall != wall || !got.End.Equal(want.End) || !got.NotBefore.Equal(want.NotBefore) || got.Price != want.Price {
				t.Fatalf("%+v became %+v", want, got)
			}
			cost := new(big.Int).Mul(big.NewInt(int64(got.Price)), big.NewInt(int64(cores)))
			cost.Mul(cost, big.NewInt(int64(wall)))
			cost.Add(cost, big.NewInt(int64(time.Hour/2))).Div(cost, big.NewInt(int64(time.Hour)))
			total.Add(total, cost)
		}
		if total.Cmp(big.NewInt(int64(d.Ceiling()))) != 0 {
			t.Fatalf("the ceiling is %d, want %s", d.Ceiling(), total)
		}
	})
}

func TestSchemaAcceptsWhatIsWritten(t *testing.T) {
	xmllint(t)
	tmp, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		d, err := rfql.Check(draft(rt), atNow())
		if err != nil {
			rt.Fatal(err)
		}
		if n++; os.WriteFile(filepath.Join(tmp, fmt.Sprintf("%d.xml", n)), d.XML(), 0o600) != nil {
			rt.Fatal("cannot write")
		}
	})
	if got := len(lintAll(t, tmp)); got != n || n == 0 {
		t.Errorf("the schema accepts %d of %d documents", got, n)
	}
}

// with is a document with one term replaced.
func with(t interface{ Fatalf(string, ...any) }, term, value string) []byte {
	from := strings.Index(kilobyte, "<"+term+">") + len(term) + 2
	to := strings.Index(kilobyte, "</"+term+">")
	if from < 0 || to < from {
		t.Fatalf("no %s", term)
	}
	return []byte(kilobyte[:from] + value + kilobyte[to:])
}

func TestPricesAreReadExactly(t *testing.T) {
	most := big.NewRat(int64(protocol.MaxCredits), int64(protocol.Credit))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[+]?0{0,3}[0-9]{0,14}(\.[0-9]{0,8})?`).Draw(t, "price")
		d, _, err := rfql.Read(with(t, "CPUHourCost", s))
		want, ok := new(big.Rat).SetString(strings.TrimPrefix(s, "+"))
		if ok {
			micro := new(big.Rat).Mul(want, big.NewRat(int64(protocol.Credit), 1))
			ok = want.Sign() > 0 && want.Cmp(most) <= 0 && micro.IsInt()
		}
		if ok != (err == nil) {
			t.Fatalf("%q: %v", s, err)
		}
		if ok && big.NewRat(int64(d.Requests[0].Price), int64(protocol.Credit)).Cmp(want) != 0 {
			t.Fatalf("%q is read as %s", s, d.Requests[0].Price)
		}
	})
}

func TestInstantsAreReadAsRFC3339Does(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		date := rapid.StringMatching(`20[0-9]{2}-(0[1-9]|1[0-3])-(0[1-9]|[12][0-9]|3[01])`).Draw(t, "date")
		clock := rapid.StringMatching(`([01][0-9]|2[0-4]):[0-6][0-9]:[0-6][0-9](\.[0-9]{1,9})?`).Draw(t, "clock")
		if strings.HasPrefix(clock, "24") {
			t.Skip("only XML has hour 24")
		}
		zone := rapid.StringMatching(`|Z|[+\-](0[0-9]|1[0-3]):[0-5][0-9]`).Draw(t, "zone")
		where := rapid.IntRange(0, 2).Draw(t, "where") // at the time, at the date, or for the request
		dz, cz, rz := "", "", zone
		switch {
		case where == 0:
			cz, rz = zone, "+07:00"
		case where == 1:
			dz, rz = zone, "-07:00"
		}
		if zone == "" {
			rz = ""
		}
		doc := strings.Replace(string(with(t, "EndDate", date+dz)), ">15:05:34<", ">"+clock+cz+"<", 1)
		if rz != "" {
			doc = strings.Replace(doc, `<Request r:name`, `<Request r:zone="`+rz+`" r:name`, 1)
		}
		d, _, err := rfql.Read([]byte(doc))
		if zone == "" {
			zone = "Z"
		}
		want, wantErr := time.Parse(time.RFC3339Nano, date+"T"+clock+zone)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s %s %s: %v, but %v", date, clock, zone, err, wantErr)
		}
		if err == nil && !d.Requests[0].End.Equal(want) {
			t.Fatalf("%s, want %s", d.Requests[0].End, want)
		}
	})
}

// TestWindow holds the rules of a window against their plain statement: there
// must be an instant, neither past nor before the start, from which the wall
// time ends by the end.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minute := func(name string) time.Time {
			return atNow().Add(time.Duration(rapid.IntRange(-6, 6).Draw(t, name)) * time.Minute)
		}
		r := rfql.DraftRequest{Price: 1, TotalCores: 1, End: minute("end")}
		if rapid.Bool().Draw(t, "starts") {
			r.NotBefore = minute("start")
		}
		r.Wall = time.Duration(rapid.IntRange(0, 5).Draw(t, "wall")) * time.Minute
		_, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{r}}, atNow())
		fits := false
		for at := atNow(); at.Before(r.End); at = at.Add(time.Minute) {
			wall := r.Wall
			switch {
			case wall == 0 && r.NotBefore.IsZero():
				wall = r.End.Sub(atNow())
			case wall == 0:
				wall = r.End.Sub(r.NotBefore)
			}
			fits = fits || !at.Before(r.NotBefore) && !at.Add(wall).After(r.End)
		}
		if fits != (err == nil) {
			t.Fatalf("%+v: fits: %t, but %v", r, fits, err)
		}
		var faults rfql.Faults
		if err != nil && (!errors.As(err, &faults) || len(faults.Of(rfql.Meaning)) != 1) {
			t.Fatalf("%v", err)
		}
	})
}
