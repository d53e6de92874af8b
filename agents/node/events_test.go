package node

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ramp/agents/control"
	"ramp/protocol"
	"ramp/protocol/message"
)

var errSeen = errors.New("seen enough")

func TestAFollowerGetsEventsInOrderAndHearsOfAGap(t *testing.T) {
	e := newEvents(time.Unix(1, 0))
	for i := range 3 * maxEvents {
		e.add(time.Unix(2, 0), control.EventRound, i)
	}
	first := uint64(time.Unix(1, 0).UnixMicro()) + 1
	var got []control.Event
	begins := uint64(0)
	take := func(n int) func(control.Event) error {
		return func(v control.Event) error {
			if v.Kind == "" {
				begins = v.Number
				return nil
			}
			if got = append(got, v); len(got) == n {
				return errSeen
			}
			return nil
		}
	}
	if err := e.follow(t.Context(), control.EventsCall{Since: first + 5}, take(3)); !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	var gap control.Gap
	if err := json.Unmarshal(got[0].Data, &gap); err != nil || got[0].Kind != control.EventGap || gap.After != first+5 || gap.Next != got[1].Number {
		t.Errorf("begins with %+v, gap %+v, then %d", got[0], gap, got[1].Number)
	}
	if got[2].Number != got[1].Number+1 {
		t.Errorf("%d follows %d", got[2].Number, got[1].Number)
	}
	// Who goes on from a number that is kept misses nothing.
	since := got[2].Number
	got = nil
	if err := e.follow(t.Context(), control.EventsCall{Since: since}, take(1)); !errors.Is(err, errSeen) || got[0].Number != since+1 || got[0].Kind == control.EventGap || begins != since {
		t.Errorf("goes on with %+v after %d, %v", got, begins, err)
	}
	for _, since := range []uint64{0, math.MaxUint64} { // from now on
		begun := func(v control.Event) error { begins = v.Number; return errSeen }
		if err := e.follow(t.Context(), control.EventsCall{Since: since}, begun); !errors.Is(err, errSeen) || begins != e.last {
			t.Errorf("after %d it begins at %d, want %d", since, begins, e.last)
		}
	}
}

func TestAFollowerIsWokenByTheNextEvent(t *testing.T) {
	e := newEvents(time.Unix(1, 0))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	begun := e.last
	seen := make(chan error, 1)
	go func() {
		seen <- e.follow(ctx, control.EventsCall{Since: begun}, func(v control.Event) error {
			if v.Kind == "" {
				return nil
			}
			return errSeen
		})
	}()
	e.add(time.Unix(2, 0), control.EventRun, "x")
	if err := <-seen; !errors.Is(err, errSeen) {
		t.Error(err)
	}
}

func TestRoundsOfABuyerAreEvents(t *testing.T) {
	n := newNews("user", time.Unix(1, 0))
	begun := n.events.last
	auction := func(in bool, body protocol.Body) {
		m := protocol.Message{Protocol: protocol.ProtocolAuction, Conversation: "job", Sender: "atlas@x", Body: body}
		n.observe(time.Unix(2, 0), in, m)
	}
	auction(false, message.CallForProposals{Round: 1})
	auction(true, message.Proposal{Round: 1, Offers: []protocol.Offer{{ID: "o1"}}})
	auction(true, message.Refused(protocol.CodeUnavailable, "full"))
	auction(false, message.Refused(protocol.CodeUnavailable, "not chosen")) // the buyer's own word
	list := n.events.after(begun)
	if len(list) != 3 {
		t.Fatalf("%d events", len(list))
	}
	var views [3]control.RoundView
	for i, v := range list {
		if err := json.Unmarshal(v.Data, &views[i]); err != nil || v.Kind != control.EventRound {
			t.Fatal(v, err)
		}
	}
	if views[0].Seller != "" || views[1].Offers[0].ID != "o1" || views[2].Reasons[0].Note != "full" {
		t.Errorf("%+v", views)
	}
}

func TestNothingIsComparedForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, changes := newEvents(time.Unix(1, 0)), newWakeup()
		var looks []bool
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go e.whileFollowed(ctx, changes, func(fresh bool) { looks = append(looks, fresh) })
		change := func() {
			synctest.Wait()
			changes.raise()
			time.Sleep(2 * reservationsPause)
		}
		follow := func(since uint64) (leave func()) {
			ctx, cancel := context.WithCancel(ctx)
			go func() { _ = e.follow(ctx, control.EventsCall{Since: since}, func(control.Event) error { return nil }) }()
			return cancel
		}
		expect := func(when string, want ...bool) {
			t.Helper()
			if synctest.Wait(); !slices.Equal(looks, want) {
				t.Errorf("%s: looked %v; want %v", when, looks, want)
			}
		}
		change()
		expect("nobody follows")
		leave := follow(0)
		expect("somebody follows from now on", true)
		change()
		expect("a change", true, false)
		leave()
		change()
		change()
		expect("nobody follows any more", true, false)
		leave = follow(e.last)
		expect("somebody resumes", true, false, false)
		leave()
	})
}
