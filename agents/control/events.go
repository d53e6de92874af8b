package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"ramp/agents/exit"
	"ramp/protocol"
)

// eventsBeat is how often a stream without events sends a comment, so that its reader knows
// that it lives.
const eventsBeat = 15 * time.Second

// maxBrief is the longest time that events are collected, in milliseconds.
const maxBrief = 60_000

// EventsCall asks for the events after a number; 0: from now on. Brief, if set, collects them for
// so many milliseconds: of those of one kind and ID there is one, whose data is Changed.
type EventsCall struct {
	Since uint64 `json:"since"`
	Brief int    `json:"brief,omitempty"`
}

// Changed is what an event is about; its ID is empty if that has none.
type Changed struct {
	ID string `json:"id,omitempty"`
}

// Event is something that happened at an agent. Its kind determines its data.
type Event struct {
	Number uint64          `json:"number"` // of a bank: the entry's; otherwise it rises, even across restarts
	Time   time.Time       `json:"time"`
	Kind   string          `json:"kind"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// Kinds of events, and what their data is.
const (
	EventGap         = "gap"         // Gap: the agent has dropped events that were not sent
	EventPurchase    = "purchase"    // ProgressLine
	EventRun         = "run"         // message.Run
	EventRound       = "round"       // RoundView: a round was called, or a seller answered it
	EventDecision    = "decision"    // DecisionView: a site decided on an offer or a vote, or heard of a settlement
	EventReservation = "reservation" // message.ReservationLine
	EventEntry       = "entry"       // EntryView
)

// Gap says which events are missing: those after After and before Next.
type Gap struct {
	After uint64 `json:"after"`
	Next  uint64 `json:"next"`
}

// RoundView is a round of an auction: called (Seller is empty), or answered by a seller.
type RoundView struct {
	ID      string            `json:"id"` // of the purchase
	Round   int               `json:"round"`
	Seller  protocol.AgentID  `json:"seller,omitempty"`
	Until   time.Time         `json:"until,omitzero"` // when answers are due
	Offers  []protocol.Offer  `json:"offers,omitempty"`
	Reasons []protocol.Reason `json:"reasons,omitempty"` // why it offers nothing, or no more
}

// DecisionView is a decision of a site, or of a bank about it.
type DecisionView struct {
	What         string            `json:"what"` // offer, refuse, hold, countersign, settled or void
	Conversation string            `json:"conversation"`
	With         string            `json:"with"`
	Reasons      []protocol.Reason `json:"reasons,omitempty"`
}

// FollowEvents sends the events after a number until the context is done or send fails. Before them it
// sends an event of no kind with the number where it begins.
type FollowEvents func(ctx context.Context, q EventsCall, send func(Event) error) error

// AnswerEvents makes a mux answer Events: GET as server-sent events, POST like any stream.
func AnswerEvents(mux *http.ServeMux, follow FollowEvents) {
	follow = follow.briefly
	e := Events
	row := *e.Call
	row.Reads = false
	Endpoint[EventsCall, Event]{&row}.Stream(mux, func(ctx context.Context, q EventsCall, send func(Event) error) error {
		return follow(ctx, q, func(e Event) error {
			if e.Kind == "" {
				return nil
			}
			return send(e)
		})
	})
	mux.HandleFunc("GET "+e.Path, func(w http.ResponseWriter, r *http.Request) {
		q, err := readQuestion[EventsCall](w, r)
		if last := r.Header.Get("Last-Event-ID"); err == nil && last != "" { // a browser that reconnects
			if q.Since, err = strconv.ParseUint(last, 10, 64); err != nil {
				err = exit.Fail(exit.Usage, "", "Last-Event-ID %.40q: want the number of an event", last)
			}
		}
		if err = cmp.Or(err, q.badBrief()); err != nil {
			Refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		_ = sendEvents(r.Context(), w, q, follow) // it ends when the caller leaves
	})
}

func (q EventsCall) badBrief() error {
	if q.Brief < 0 || q.Brief > maxBrief {
		return exit.Fail(exit.Usage, "", "brief %d: want 0..%d milliseconds", q.Brief, maxBrief)
	}
	return nil
}

// briefly follows as the call asks: while send waits, events collect, and wake nobody.
func (follow FollowEvents) briefly(ctx context.Context, q EventsCall, send func(Event) error) error {
	if q.Brief == 0 {
		return follow(ctx, q, send)
	}
	if err := q.badBrief(); err != nil {
		return err
	}
	var woke time.Time           // when the last pause ended
	sent := map[[2]string]bool{} // kinds and IDs, since then
	return follow(ctx, q, func(e Event) error {
		if e.Kind == "" {
			return send(e)
		}
		if e.Time.After(woke) {
			select {
			case woke = <-time.After(time.Duration(q.Brief) * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			clear(sent)
		}
		if e.Kind == EventGap {
			return send(e)
		}
		id := aboutOf(e)
		key := [2]string{e.Kind, id}
		if sent[key] {
			return nil
		}
		sent[key] = true
		e.Data, _ = json.Marshal(Changed{ID: id}) // a string
		return send(e)
	})
}

// aboutOf is the ID of what an event is about: of a purchase or a run.
func aboutOf(e Event) string {
	var about struct {
		ID       string  `json:"id"`
		Purchase Changed `json:"purchase"`
	}
	_ = json.Unmarshal(e.Data, &about) // of nothing in particular, then
	return cmp.Or(about.Purchase.ID, about.ID)
}

// sendEvents writes events as a browser reads them, and a comment now and then.
func sendEvents(ctx context.Context, w http.ResponseWriter, q EventsCall, follow FollowEvents) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := make(chan Event)
	go func() {
		cancel(follow(ctx, q, func(e Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}()
	beat := time.NewTicker(eventsBeat)
	defer beat.Stop()
	text := ": events\n\n" // so that the caller gets the headers
	for {
		if _, err := fmt.Fprint(w, text); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		select {
		case e := <-events:
			if e.Kind == "" { // so that a caller that is cut off before the first goes on from here
				text = fmt.Sprintf("id: %d\n\n", e.Number)
				continue
			}
			data, err := json.Marshal(e)
			if err != nil {
				return err
			}
			text = fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.Number, e.Kind, data)
		case <-beat.C:
			text = ": still here\n\n"
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
