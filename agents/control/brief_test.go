package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"ramp/agents/control"
)

// Whoever asks for brief events is told once of what changes meanwhile, and of every gap.
func TestBriefEventsSayOnlyWhatChanges(t *testing.T) {
	purchase := json.RawMessage(`{"event":"round","purchase":{"id":"p1","state":"bidding"}}`)
	round := func(id string) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"id":%q,"offers":[{}]}`, id)) }
	mux := http.NewServeMux()
	control.AnswerEvents(mux, func(_ context.Context, _ control.EventsCall, send func(control.Event) error) error {
		begun := time.Now()
		var errs []error
		for i, e := range []control.Event{
			{Kind: "purchase", Data: purchase}, {Kind: "round", Data: round("p1")}, {Kind: "round", Data: round("p1")}, {Kind: "round", Data: round("p2")},
			{Kind: "purchase", Data: purchase}, {Kind: control.EventGap, Data: round("")}, {Kind: control.EventGap, Data: round("")}, {Kind: "entry", Data: json.RawMessage(`{"entry":3}`)},
		} {
			e.Number, e.Time = uint64(i+1), begun
			errs = append(errs, send(e))
		}
		errs = append(errs, send(control.Event{Number: 9, Time: time.Now().Add(time.Hour), Kind: "round", Data: round("p1")})) // of a later pause
		return errors.Join(append(errs, errSeen)...)
	})
	var got []string
	err := control.Events.Follow(t.Context(), control.Local(mux), control.EventsCall{Brief: 1}, func(e control.Event) error {
		got = append(got, fmt.Sprintf("%d %s %s", e.Number, e.Kind, e.Data))
		return nil
	})
	want := []string{`1 purchase {"id":"p1"}`, `2 round {"id":"p1"}`, `4 round {"id":"p2"}`, `6 gap {"id":"","offers":[{}]}`, `7 gap {"id":"","offers":[{}]}`, `8 entry {}`, `9 round {"id":"p1"}`}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || err == nil {
		t.Errorf("%q, then %v; want %q", got, err, want)
	}
	for _, brief := range []int{-1, 60_001} {
		if err := control.Events.Follow(t.Context(), control.Local(mux), control.EventsCall{Brief: brief}, func(control.Event) error { return nil }); err == nil || errors.Is(err, errSeen) {
			t.Errorf("brief %d: %v", brief, err)
		}
	}
}

var errSeen = errors.New("seen")
