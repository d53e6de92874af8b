package bank

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	bankbooks "ramp/bank/books"
	"ramp/protocol"
)

// The greatest value stays below the frame.
func TestTheTopOfAFigureStaysFree(t *testing.T) {
	c := bankbooks.Currency{Currency: "CPU", Periods: []bankbooks.Period{{Start: time.Unix(0, 0), PerCoreHour: 7 * protocol.Credit}}}
	p, err := panel(c, "price", time.Hour, func(p bankbooks.Period) protocol.Credits { return p.PerCoreHour })
	if err != nil || p.Y.Max < 7.2 {
		t.Errorf("the axis ends at %g, %v; the greatest value is 7", p.Y.Max, err)
	}
}

// The marks of a figure are where its periods begin, however many there are.
func TestTicksAreWherePeriodsBegin(t *testing.T) {
	first := time.Date(2026, 11, 22, 10, 5, 0, 0, time.UTC)
	for _, c := range []struct {
		step    time.Duration
		periods int
	}{{time.Minute, 1}, {time.Minute, 7}, {24 * time.Hour, 30}, {90 * time.Second, 10_000}, {time.Hour, 8}} {
		last := first.Add(time.Duration(c.periods) * c.step)
		list := periodTicks(c.step).Ticks(float64(first.Unix()), float64(last.Unix()))
		if len(list) < 2 || len(list) > maxTicks+1 {
			t.Errorf("%d periods of %s have %d ticks", c.periods, c.step, len(list))
		}
		for _, tick := range list {
			at := time.Unix(int64(tick.Value), 0).UTC()
			form := "2006-01-02\n15:04"
			if c.step%time.Minute != 0 {
				form += ":05"
			}
			if at.Sub(first)%c.step != 0 || tick.Label != at.Format(form) {
				t.Errorf("periods of %s: a tick at %s, %q", c.step, at, tick.Label)
			}
		}
	}
}

// A text in a figure is text, not a part of the SVG.
func TestATextInAFigureIsText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plot")
	hostile := `</text><script>alert("&")</script>` + "\x1b[2J\u202e]]>"
	sums := bankbooks.Sums{Turnover: protocol.Credit}
	c := bankbooks.Currency{Currency: hostile, Sums: sums, Periods: []bankbooks.Period{{Start: time.Unix(0, 0), Sums: sums}}}
	if err := plotReport(file, []bankbooks.Currency{c}, time.Hour); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	texts := 0
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			if x.Name.Local == "script" {
				t.Error("the figure runs a script of its currency's name")
			}
		case xml.CharData:
			if bytes.Contains(x, []byte("<script>")) {
				texts++
			}
		}
	}
	if texts == 0 {
		t.Error("the figure does not show the currency's name")
	}
}
