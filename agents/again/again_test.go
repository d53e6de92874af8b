package again_test

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/again"
	"ramp/agents/control"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

const asked = `<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ"><Request>
<CPUHourCost>50</CPUHourCost><EndDate>2099-01-01</EndDate><EndTime>00:00:00</EndTime><WallTime>5</WallTime>
<Cores><TotalCores>16</TotalCores></Cores></Request></RequestForQuotation>`

// Only what was ordered in the same session, and is not decided, is repeated.
func TestAnOrderRepeatsOneOfItsSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		session, was  string
		state         string
		named, repeat bool
	}{
		{"the same session", "here", "here", user.StateBidding, false, true},
		{"another session", "here", "there", user.StateBidding, false, false},
		{"no session", "", "", user.StateBidding, false, false},
		{"decided", "here", "here", user.StateSettled, false, false},
		{"an ID of its own", "here", "here", user.StateBidding, true, false},
	} {
		row := user.Row{Purchase: user.Purchase{State: c.state}, Order: message.Buy{Session: c.was, Document: []byte(asked)}}
		q := control.BuyCall{Session: c.session, Named: c.named, Document: asked}
		if again.Of(q, row) != c.repeat {
			t.Errorf("%s: repeats it: %t", c.name, !c.repeat)
		}
		row.Order.Program, q.Program = &message.Program{Key: "a"}, &message.Program{Key: "b"}
		if again.Of(q, row) {
			t.Errorf("%s: another program repeats it", c.name)
		}
		row.Order.Program = &message.Program{Key: "b", Detached: true}
		if again.Of(q, row) {
			t.Errorf("%s: repeats a submitted job", c.name)
		}
	}
}

// A run is continued until its result was shown, unless its command did not wait for it.
func TestARunIsContinuedUntilItIsShown(t *testing.T) {
	t.Parallel()
	q := control.BuyCall{Session: "here", Program: &message.Program{Key: "a"}}
	for _, c := range []struct {
		run  message.Run
		want bool
	}{
		{message.Run{Program: message.Program{Key: "a"}}, true},
		{message.Run{Program: message.Program{Key: "b"}}, false},
		{message.Run{Program: message.Program{Key: "a"}, Collected: true}, false},
		{message.Run{Program: message.Program{Key: "a", Detached: true}}, false},
	} {
		if again.Continues(q, c.run) != c.want {
			t.Errorf("continues %+v: %t", c.run, !c.want)
		}
	}
}

// What a living command follows belongs to it; its own later orders, and everybody once
// it has ended, may have it.
func TestWhatACommandFollowsIsItsOwn(t *testing.T) {
	t.Parallel()
	var o again.Owners
	mine := control.CommandKey()
	dead := mine[:len(mine)-1] // another form, of which nobody knows: it may live
	if !o.Take("p", mine) || !o.Take("p", control.CommandKey()) {
		t.Error("a command does not get what it follows")
	}
	if o.Take("p", dead+".x.y") {
		t.Error("another command gets what a living one follows")
	}
	if !o.Take("q", "") || !o.Take("q", mine) {
		t.Error("nobody follows q, and it is not given")
	}
}

// A bid that lost a race is given again, under the next number; a start of "now" moves along.
func TestALostRaceIsBidAgain(t *testing.T) {
	t.Parallel()
	lost := message.Purchase{State: user.StateFailed, Refused: protocol.CodeBusy}
	for _, c := range []struct {
		p    message.Purchase
		lost bool
	}{
		{lost, true},
		{message.Purchase{State: user.StateFailed, Refused: protocol.CodeSettleBy}, true},
		{message.Purchase{State: user.StateVoid, Void: protocol.CodeSettleBy}, true},
		{message.Purchase{State: user.StateVoid, Void: protocol.CodeAbandoned}, false},
		{message.Purchase{State: user.StateVoid, Void: protocol.CodeClock}, false},
		{message.Purchase{State: user.StateVoid, Void: protocol.CodeFunds}, false},
		{message.Purchase{State: user.StateFailed}, false},
		{message.Purchase{State: user.StateSettled, Refused: protocol.CodeBusy}, false},
	} {
		if again.Lost(c.p) != c.lost {
			t.Errorf("%s (%s%s): lost a race: %t", c.p.State, c.p.Refused, c.p.Void, !c.lost)
		}
	}
	q := control.BuyCall{ID: "p", Document: asked}
	next, ok := again.Next(time.Date(2098, 1, 1, 0, 0, 0, 0, time.UTC), "p", 2, q, lost)
	if !ok || next.ID != "p.bid2" || !strings.Contains(next.Document, "<TotalCores>16<") {
		t.Errorf("bids for %s again: %t, %s", next.ID, ok, next.Document)
	}
	if _, ok := again.Next(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), "p", 2, q, lost); ok {
		t.Error("bids again after the end")
	}
	for n := 2; n <= again.MaxBids; n++ {
		if d := again.Pause(n); d <= 0 || d > 6*time.Second {
			t.Errorf("bid %d after %s", n, d)
		}
	}
}

// What an owner approved too late is bought without another question if it costs no more and
// begins about as soon.
func TestAnApprovalHoldsForTheNextBid(t *testing.T) {
	t.Parallel()
	now := time.Date(2098, 1, 1, 0, 0, 0, 0, time.UTC)
	late := message.Purchase{State: user.StateFailed, Refused: protocol.CodeExpired, Created: now, Total: 7, Units: []message.PurchasedUnit{{Start: now.Add(5 * time.Second)}}}
	if !again.Lost(late) {
		t.Error("an offer that ended before it was approved is not bid for again")
	}
	for _, c := range []struct{ was, want message.Options }{
		{message.Options{Confirm: true}, message.Options{MaxCost: 7, MaxWait: 65 * time.Second}},
		{message.Options{Confirm: true, MaxCost: 6, MaxWait: time.Second}, message.Options{MaxCost: 6, MaxWait: time.Second}},
		{message.Options{Confirm: true, MaxCost: 8, MaxWait: time.Hour}, message.Options{MaxCost: 7, MaxWait: 65 * time.Second}},
		{message.Options{}, message.Options{}},
	} {
		next, ok := again.Next(now, "p", 2, control.BuyCall{Document: asked, Options: c.was}, late)
		if got := next.Options; !ok || got.Confirm || got.MaxCost != c.want.MaxCost || got.MaxWait != c.want.MaxWait {
			t.Errorf("%+v: bids again with %+v, want %+v", c.was, got, c.want)
		}
	}
}
