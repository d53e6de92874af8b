package resource

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TableDrained has one row while the site's owner has stopped sales.
const TableDrained = "seller-drained"

const drainedKey = "sales"

// When sales pause by themselves.
const (
	// MaxStale is the age of the batch system's last state beyond which sales pause.
	// The Role asks every PollPeriod, and answers may be slow.
	MaxStale = 10 * time.Minute
	// bankPatience is added to the lifetime of a bank's presence, since a few lost
	// presences are no outage.
	bankPatience = time.Minute
)

// drained records when the owner stopped sales, and why.
type drained struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why,omitempty"`
}

func (r *Role) readDrained(_ string, value []byte) error {
	var d drained
	if err := json.Unmarshal(value, &d); err != nil {
		return fmt.Errorf("journal: table %s: %w", TableDrained, err)
	}
	r.drained = &d
	return nil
}

// Drain stops sales until Resume, across restarts. The site honours what it has sold, and buyers
// may still buy what they hold. Why is for people, and cut to protocol.MaxName bytes; empty: as before.
func (r *Role) Drain(now time.Time, why string) protocol.Output {
	why = protocol.Words(why[:min(len(why), protocol.MaxName)]) // a terminal shows it
	if r.drained != nil && (why == "" || r.drained.Why == why) {
		return protocol.Output{}
	}
	d := drained{Since: now, Why: why}
	if r.drained != nil {
		d.Since = r.drained.Since
	}
	r.drained = &d
	return protocol.Output{Save: []protocol.Record{row(TableDrained, drainedKey, d)}}
}

// Resume ends Drain.
func (r *Role) Resume() protocol.Output {
	if r.drained == nil {
		return protocol.Output{}
	}
	r.drained = nil
	return protocol.Output{Save: []protocol.Record{{Table: TableDrained, Key: drainedKey}}}
}

// pause says why and since when nothing is sold.
type pause struct {
	code  protocol.Code
	why   string
	since time.Time
}

// Hinder pauses sales while the machine could not honour them, for instance with a
// full disk; an empty why ends the pause. It is not saved: the caller repeats it after
// a restart. Why is for people.
func (r *Role) Hinder(now time.Time, why string) {
	switch {
	case why == "":
		r.hindered = pause{}
	case r.hindered.why == "":
		r.hindered = pause{protocol.CodeUnavailable, why, now}
	default:
		r.hindered.why = why
	}
}

// paused says why the site offers nothing; false: it sells.
func (r *Role) paused(now time.Time) (pause, bool) {
	switch d := r.drained; {
	case d != nil && d.Why != "":
		return pause{protocol.CodeDraining, "the site sells nothing now: " + d.Why, d.Since}, true
	case d != nil:
		return pause{protocol.CodeDraining, "the site sells nothing now", d.Since}, true
	case r.leaving:
		return pause{protocol.CodeDraining, "the resource makes no more offers", now}, true
	}
	if r.hindered.why != "" {
		return r.hindered, true
	}
	if p, ok := r.market.paused(now); ok {
		return p, true
	}
	if bank, said, ok := r.promises.Unasked(); ok && !r.cfg.Offline {
		return pause{protocol.CodeUnavailable, unasked(bank, said), r.promises.Began()}, true
	}
	return r.banks.paused(now)
}

// unasked says which bank the seller waits for after its start.
func unasked(bank protocol.AgentID, said string) string {
	why := "the journal may lack sold slots: waiting until " + string(bank) + " lists the contracts that name this seller"
	if said != "" {
		why += "; its last answer: " + said
	}
	return why
}

// paused reports that the batch system's state is missing or old.
func (k *market) paused(now time.Time) (pause, bool) {
	switch {
	case k.down != nil:
		return pause{protocol.CodeUnavailable, "the batch system cannot be reached: " + k.down.Why, k.down.Since}, true
	case !k.known:
		return pause{protocol.CodeUnavailable, "the batch system has not reported its state yet", time.Time{}}, true
	case now.Sub(k.heard) > MaxStale:
		return pause{protocol.CodeUnavailable, "the batch system has reported nothing for " + MaxStale.String(), k.heard.Add(MaxStale)}, true
	}
	return pause{}, false
}

// banks owns the last signs of life of the banks that the site deals with.
type banks struct {
	terms []protocol.Terms
	heard map[protocol.AgentID]bankHeard
}

// bankHeard is a bank's last sign of life.
type bankHeard struct {
	at  time.Time
	ttl time.Duration // how long the presence holds
	own []protocol.Terms
}

// lapsed reports whether a bank has been silent for longer than announced.
func (h bankHeard) lapsed(now time.Time) bool { return now.After(h.lapses()) }

func (h bankHeard) lapses() time.Time { return h.at.Add(h.ttl + bankPatience) }

// hear takes a sign of life. A bank that leaves counts as gone after bankPatience,
// unless it comes back.
func (b *banks) hear(now time.Time, m protocol.Message, p message.Presence) {
	deals := slices.ContainsFunc(b.terms, func(t protocol.Terms) bool { return t.Bank == m.Sender })
	if deals && p.Agent == protocol.KindBank && p.TTL >= 0 && p.TTL <= protocol.MaxTTL {
		b.heard[m.Sender] = bankHeard{now, p.TTL, p.Terms}
	}
}

// paused reports that every bank was heard once and is silent now, so that no sale could be
// settled. A bank that was never heard stops nothing, since not every seller hears presences.
func (b *banks) paused(now time.Time) (pause, bool) {
	var last bankHeard
	for _, t := range b.terms {
		h, ok := b.heard[t.Bank]
		if !ok || !h.lapsed(now) {
			return pause{}, false
		}
		if h.lapses().After(last.lapses()) {
			last = h
		}
	}
	if last.at.IsZero() {
		return pause{}, false
	}
	why := fmt.Sprintf("no bank has been heard for %s", last.ttl+bankPatience)
	return pause{protocol.CodeUnavailable, why, last.lapses()}, true
}

// status lists the banks in the order of the terms.
func (b *banks) status(now time.Time) []message.BankStatus {
	list := []message.BankStatus{}
	for _, t := range b.terms {
		s := message.BankStatus{Bank: t.Bank, Currency: t.Currency}
		if h, ok := b.heard[t.Bank]; ok {
			reachable := !h.lapsed(now)
			s.Reachable, s.Heard = &reachable, h.at
			s.NotKept = len(h.own) > 0 && !slices.Contains(h.own, t)
		}
		list = append(list, s)
	}
	return list
}
