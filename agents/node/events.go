package node

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"time"

	"ramp/agents/control"
	"ramp/agents/hub"
	"ramp/agents/resource"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

const (
	maxEvents         = 4096                   // past events that an agent keeps in memory
	reservationsPause = 250 * time.Millisecond // between two searches for changed reservations
)

// events keeps the last events of an agent for its followers. Numbers begin at the time of
// the start in microseconds, so they rise across restarts.
type events struct {
	mu   sync.Mutex
	last uint64     // number of the last event
	kept []happened // the last ones, oldest first
	news *wakeup

	followers int
	fresh     bool    // the first of the followers wants no past events
	followed  *wakeup // raised by each new follower
}

// happened is an event whose data becomes JSON only for a follower: agents that nobody
// watches should not pay for it. Nobody changes the data.
type happened struct {
	at   time.Time
	kind string
	data any
}

func newEvents(now time.Time) *events {
	return &events{last: uint64(now.UnixMicro()), news: newWakeup(), followed: newWakeup()}
}

type wakeup struct {
	mu     sync.Mutex
	raised chan struct{} // closed by raise; nil: nobody waits
}

func newWakeup() *wakeup { return &wakeup{} }

func (s *wakeup) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raised != nil {
		close(s.raised)
		s.raised = nil
	}
}

// next returns a channel that the next raise closes.
func (s *wakeup) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raised == nil {
		s.raised = make(chan struct{})
	}
	return s.raised
}

func (e *events) add(at time.Time, kind string, data any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	e.kept = append(e.kept, happened{at.UTC(), kind, data})
	if len(e.kept) > maxEvents {
		e.kept = append([]happened(nil), e.kept[maxEvents/4:]...)
	}
	e.news.raise()
}

// after returns the events after a number, preceded by a gap if some were dropped already.
// It leaves out data without a JSON form, which would be a bug.
func (e *events) after(since uint64) (list []control.Event) {
	e.mu.Lock()
	last := e.last
	first := last + 1 - uint64(len(e.kept))
	kept := e.kept[min(uint64(len(e.kept)), max(since+1, first)-first):]
	e.mu.Unlock()
	if since+1 < first {
		gap, _ := json.Marshal(control.Gap{After: since, Next: first}) // two numbers
		list = append(list, control.Event{Number: first - 1, Time: time.Now().UTC(), Kind: control.EventGap, Data: gap})
	}
	for i, h := range kept {
		if b, err := json.Marshal(h.data); err == nil {
			list = append(list, control.Event{Number: last + 1 - uint64(len(kept)-i), Time: h.at, Kind: h.kind, Data: b})
		}
	}
	return list
}

// follow sends the events after a number as they occur; 0: from now on.
func (e *events) follow(ctx context.Context, q control.EventsCall, send func(control.Event) error) error {
	e.mu.Lock()
	at := cmp.Or(min(q.Since, e.last), e.last)
	if e.followers++; e.followers == 1 {
		e.fresh = q.Since == 0
	}
	e.mu.Unlock()
	e.followed.raise()
	defer e.leave()
	if err := send(control.Event{Number: at}); err != nil {
		return err
	}
	for {
		changed := e.news.next()
		for _, v := range e.after(at) {
			if err := send(v); err != nil {
				return err
			}
			at = v.Number
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (e *events) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.followers--
}

// awaitFollower waits until somebody follows, or the context is done. fresh: the followers
// came since the last call and want no past events.
func (e *events) awaitFollower(ctx context.Context) (fresh bool, err error) {
	for {
		arrived := e.followed.next()
		e.mu.Lock()
		followed, fresh := e.followers > 0, e.fresh
		e.fresh = false
		e.mu.Unlock()
		if followed {
			return fresh, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// whileFollowed calls look when somebody begins to follow, and after each change, but not more
// often than once in reservationsPause, and never while nobody follows.
func (e *events) whileFollowed(ctx context.Context, changes *wakeup, look func(fresh bool)) {
	pause := time.NewTicker(reservationsPause)
	defer pause.Stop()
	for {
		fresh, err := e.awaitFollower(ctx)
		if err != nil {
			return
		}
		changed, arrived := changes.next(), e.followed.next()
		look(fresh)
		select {
		case <-changed:
		case <-arrived:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// news passes on what this agent does: to the followers of one purchase or run, and as
// events of the control socket.
type news struct {
	kind      string // of agent
	Purchases *hub.Hub[message.Progress]
	runs      *hub.Hub[message.Run]
	events    *events
}

func newNews(kind string, now time.Time) news {
	return news{kind, hub.New[message.Progress](), hub.New[message.Run](), newEvents(now)}
}

// publish passes on what the role reports to its owner.
func (n news) publish(m protocol.Message) {
	switch p := m.Body.(type) {
	case message.Progress:
		over := !user.Row{Purchase: user.Purchase{State: p.Purchase.State}}.Live()
		n.Purchases.Publish(p.Purchase.ID, p, over)
		n.events.add(time.Now(), control.EventPurchase, control.ProgressLine{Event: p.Event, Done: p.Done, Purchase: p.Purchase})
	case message.RunProgress:
		n.runs.Publish(p.Run.ID, p.Run, p.Run.Over)
		n.events.add(time.Now(), control.EventRun, p.Run)
	}
}

// lost ends the following of everything, because the role was dropped.
func (n news) lost(err error) {
	n.Purchases.Fail(err)
	n.runs.Fail(err)
}

// observe makes events of messages: rounds of a buyer, decisions of a site.
func (n news) observe(at time.Time, in bool, m protocol.Message) {
	switch {
	case n.kind == "resource":
		n.decided(at, in, m)
	case n.kind == "user" && m.Protocol == protocol.ProtocolAuction:
		n.round(at, in, m)
	}
}

func (n news) round(at time.Time, in bool, m protocol.Message) {
	if v, ok := roundOf(in, m); ok {
		n.events.add(at, control.EventRound, v)
	}
}

// roundOf is what a message of an auction says about a round to its buyer.
func roundOf(in bool, m protocol.Message) (v control.RoundView, ok bool) {
	v = control.RoundView{ID: m.Conversation}
	switch body := m.Body.(type) {
	case message.CallForProposals:
		if in {
			return v, false
		}
		v.Round, v.Until = body.Round, m.ReplyBy
	case message.Proposal:
		v.Round, v.Seller, v.Offers, v.Reasons = body.Round, m.Sender, body.Offers, body.Refusals
	case message.Refusal:
		if !in {
			return v, false // the buyer refuses offers that were not chosen
		}
		v.Round, v.Seller, v.Reasons = body.Round, m.Sender, body.Reasons
	default:
		return v, false
	}
	return v, true
}

func (n news) decided(at time.Time, in bool, m protocol.Message) {
	_, what := decisionOf(in, m)
	if what == "" {
		return
	}
	v := control.DecisionView{What: what, Conversation: m.Conversation, With: otherSide(in, m)}
	if r, ok := m.Body.(message.Refusal); ok {
		v.Reasons = r.Reasons
	}
	n.events.add(at, control.EventDecision, v)
}

// watchReservations adds an event for each changed reservation, until the context is done. A
// reservation that changed while nobody followed is an event for whoever resumes.
func (r *Resource) watchReservations(ctx context.Context) {
	var known map[string]message.ReservationLine
	r.News.events.whileFollowed(ctx, r.writes, func(fresh bool) {
		if fresh {
			known = nil
		}
		now := map[string]message.ReservationLine{}
		if r.with(ctx, func(at time.Time, role *resource.Role) {
			for _, l := range role.Reservations() {
				now[l.ID] = l
				if old, ok := known[l.ID]; known != nil && (!ok || !reflect.DeepEqual(old, l)) {
					r.News.events.add(at, control.EventReservation, l)
				}
			}
		}) == nil {
			known = now
		}
	})
}
