package reserve_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// queueBook is the oracle: the requests that the batch system has not answered, read
// from the messages alone.
type queueBook struct {
	waits map[string]protocol.AgentID // by reservation
}

func (q queueBook) of(buyer protocol.AgentID) int {
	n := 0
	for _, b := range q.waits {
		if b == buyer {
			n++
		}
	}
	return n
}

func (q queueBook) hear(buyer protocol.AgentID, out protocol.Output) (refusal protocol.Code) {
	for _, m := range out.Send {
		switch body := m.Body.(type) {
		case message.Reserve:
			q.waits[body.ID] = buyer
		case message.Release:
			delete(q.waits, body.ID)
		case message.Refusal:
			refusal = body.Reasons[0].Code
		}
	}
	return refusal
}

// No buyer ever has more reservations waiting at the batch system than allowed, and the
// seller refuses none within the limit.
func TestNoBuyerFillsTheQueueOfTheBatchSystem(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		cfg := w.cfg
		cfg.BuyerReserves = rapid.IntRange(1, 4).Draw(t, "bound")
		cfg.BuyerHolds, cfg.BuyerCoreSeconds = reserve.MaxUnsold, 1<<40
		cfg.Book = &book{cores: 1 << 20, slots: map[string]protocol.Slot{}}
		now, talks := dawn, 0
		p, _, err := reserve.NewParticipant(cfg, tables{}, now)
		if err != nil {
			t.Fatal(err)
		}
		q := queueBook{map[string]protocol.AgentID{}}
		t.Repeat(map[string]func(*rapid.T){
			"accept": func(t *rapid.T) {
				buyer := w.id(rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "buyer"))
				talks++
				o := unitsOffer(rapid.IntRange(1, 3).Draw(t, "units"), now)
				before := q.of(buyer)
				code := q.hear(buyer, p.Accept(now, protocol.Message{
					Performative: protocol.AcceptProposal, Sender: buyer, Conversation: fmt.Sprint(talks), ReplyWith: "v",
				}, message.Acceptance{Offer: o}, &reserve.Offered{Offer: o, Document: "d"}))
				if room := before+len(o.Items) <= cfg.BuyerReserves; room != (code == "") || !room && code != protocol.CodeHoldLimit {
					t.Fatalf("%d wait, %d more, at most %d: %q", before, len(o.Items), cfg.BuyerReserves, code)
				}
			},
			"answer": func(t *rapid.T) {
				if len(q.waits) == 0 {
					return
				}
				id := rapid.SampledFrom(slices.Sorted(maps.Keys(q.waits))).Draw(t, "reservation")
				r := message.Reserved{ID: id, OK: rapid.Bool().Draw(t, "ok"), Slot: cfg.Book.(*book).slots[id]}
				buyer := q.waits[id]
				out, _ := p.Receive(now, protocol.Message{Sender: protocol.LocalQueue, Body: r})
				q.hear(buyer, out)
				if votes(out) { // the offer as a whole is granted
					for _, m := range out.Send {
						if v, ok := m.Body.(message.Vote); ok {
							for _, l := range v.Reservations {
								delete(q.waits, l.ID)
							}
						}
					}
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
				q.hear("", p.Wake(now))
			},
			"": func(t *rapid.T) {
				for _, name := range []string{"ann", "bob"} {
					if n := q.of(w.id(name)); n > cfg.BuyerReserves {
						t.Fatalf("%d reservations of %s wait, at most %d", n, name, cfg.BuyerReserves)
					}
				}
			},
		})
	})
}

func votes(out protocol.Output) bool {
	return slices.ContainsFunc(out.Send, func(m protocol.Message) bool { _, ok := m.Body.(message.Vote); return ok })
}

// unitsOffer is for so many units of one core each.
func unitsOffer(units int, now time.Time) protocol.Offer {
	o := protocol.Offer{ID: "o", ValidUntil: now.Add(time.Hour)}
	slot := protocol.Slot{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Cores: 1}
	for i := range units {
		o.Items = append(o.Items, protocol.Item{Unit: i, Slot: slot, Price: protocol.Credit, Cost: protocol.Credit})
		o.Cost += protocol.Credit
	}
	return o
}
