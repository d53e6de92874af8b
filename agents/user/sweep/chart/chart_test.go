package chart_test

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"

	"ramp/agents/user/sweep/chart"
	"ramp/protocol"
	"ramp/protocol/message"
)

const hostile = `</text><script>alert("&")</script>` + "\x1b[2J\u202e]]>"

// sweep has three tasks done, one that failed, one lost, and one that runs.
func sweep(name string) chart.Sweep {
	began := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	zero, seven := 0, 7
	s := chart.Sweep{Sweep: message.Sweep{
		ID: name, State: "running", Strategy: "cost", Created: began, Deadline: at(60), Budget: 3 * protocol.Credit, Currency: name,
		Tasks: message.SweepTasks{Total: 6},
	}, Now: at(40)}
	for i, a := range []message.SweepAttempt{
		{Started: at(1), Ended: at(9), Exit: &zero}, {Started: at(1), Ended: at(11), Exit: &zero}, {Started: at(9), Ended: at(20), Exit: &zero},
		{Started: at(11), Ended: at(20), Exit: &seven}, {Started: at(20), Ended: at(30)}, {Started: at(30)},
	} {
		a.Resource = name
		state := "running"
		if a.Exit != nil && *a.Exit == 0 {
			state = "done"
		}
		s.Tasks = append(s.Tasks, message.SweepTask{Task: i + 1, State: state, Attempts: []message.SweepAttempt{a}})
	}
	s.Ledger = []message.SweepEntry{{Resource: name, Slot: protocol.Slot{Start: at(1), End: at(30)}, Paid: 2 * protocol.Credit, Refunded: protocol.Credit}}
	return s
}

// Each attempt is a bar in the colour of its state, and each state that occurs is in the legend.
func TestEveryAttemptIsABar(t *testing.T) {
	var b bytes.Buffer
	if err := sweep("wing").SVG(&b); err != nil {
		t.Fatal(err)
	}
	for colour, want := range map[string]int{"#009E73": 3, "#D55E00": 1, "#CC79A7": 1, "#0072B2": 1} {
		if n := strings.Count(b.String(), "fill:"+colour); n != want+1 {
			t.Errorf("%d bars and a sample of colour %s, want %d and one", n, colour, want)
		}
	}
}

// A text in a picture is text, not a part of the SVG.
func TestATextInAPictureIsText(t *testing.T) {
	var b bytes.Buffer
	if err := sweep(hostile).SVG(&b); err != nil {
		t.Fatal(err)
	}
	texts := 0
	for d := xml.NewDecoder(&b); ; {
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
				t.Error("the picture runs a script of a name")
			}
		case xml.CharData:
			texts += strings.Count(string(x), "<script>")
		}
	}
	if texts != 3 { // the sweep, its resource and its currency
		t.Errorf("the picture shows %d of 3 names", texts)
	}
}

// A sweep that has not begun, and one without limits, have pictures too.
func TestASweepWithoutTasksHasAPicture(t *testing.T) {
	for _, s := range []chart.Sweep{{}, {Sweep: message.Sweep{Created: time.Unix(0, 0), Deadline: time.Unix(1e9, 0)}, Now: time.Unix(5, 0)}} {
		var b bytes.Buffer
		if err := s.PNG(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(&b); err != nil {
			t.Error(err)
		}
	}
}
