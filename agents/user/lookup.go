package user

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"ramp/agents/index"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// lookup asks the indexes for a shortlist, if the market is too large to know everybody.
// An order that its terms or its document fail goes on without, and says so.
func (r *purchases) lookup(now time.Time, p *purchase, order *message.Buy) (protocol.Output, bool) {
	if r.guide.Market(now) < cmp.Or(r.cfg.IndexFrom, index.From) || order.Only != "" || r.cfg.Budget == 0 {
		return protocol.Output{}, false
	}
	doc, err := rfql.Parse(order.Document, now)
	if err != nil {
		return protocol.Output{}, false
	}
	wanted := order.Options.Terms
	if len(wanted) == 0 {
		wanted = r.cfg.Terms
	}
	terms, err := r.directory.terms(now, wanted, nil)
	if err != nil {
		return protocol.Output{}, false
	}
	w := index.Wanted{
		Self: r.cfg.self(), Conversation: lookupOf(order.ID), Terms: terms, Objective: cmp.Or(order.Options.Objective, protocol.ObjectiveCostTime),
		Rounds: cmp.Or(order.Options.Rounds, protocol.DefaultRounds),
	}
	if mode := cmp.Or(order.Options.Mode, r.cfg.Mode); mode != "" {
		w.Modes = []protocol.Mode{mode}
	}
	for _, q := range doc.Requests() {
		w.Cores = append(w.Cores, q.Cores)
		w.Ceiling = max(w.Ceiling, q.Price)
	}
	if !doc.Priced() {
		w.Ceiling = 0
	}
	var out protocol.Output
	p.row.State, p.order = StateBidding, order
	p.search, out = r.guide.NewSearch(now, w)
	return out, true
}

// lookupOf is the conversation of a purchase's search. It tells the indexes nothing about
// the auction's own, which decides the lots.
func lookupOf(id string) string {
	sum := sha256.Sum256([]byte("lookup " + id))
	return "lookup-" + hex.EncodeToString(sum[:8])
}

// found begins the auction with the sellers that a search has brought. Without any, the
// sellers that are known from before have to do.
func (r *purchases) found(now time.Time, p *purchase) protocol.Output {
	records := p.search.Found()
	list := make([]Known, 0, len(records))
	for _, x := range records {
		r.directory.listed(now, x)
		list = append(list, Known{ID: x.Seller, Presence: x.Presence, Load: x.Load})
	}
	order, short := p.order, len(list) > 0
	p.search, p.order = nil, nil
	if !short {
		list = r.directory.list(now, protocol.KindResource)
	}
	return r.open(now, p, *order, list, short)
}

// listed records what an index has brought about a seller, unless a later presence is
// known.
func (d *directory) listed(now time.Time, r message.Record) {
	old, met := d.known[r.Seller]
	if met && r.Presence.Counter < old.presence().Counter || !met && len(d.known) >= maxSellers {
		return
	}
	expires := r.Issued.Add(index.Life).UnixNano()
	if met && r.Presence.Counter == old.presence().Counter {
		expires = max(expires, old.expires)
	}
	d.known[r.Seller] = peer{body: r.Presence, expires: expires}
}

// shorten makes an auction one with a shortlist.
func shorten(cfg *auction.BuyerConfig, sellers []Known) {
	cfg.Shortlist, cfg.Budget = true, auction.ShortBudget
	for i := range sellers {
		cfg.Prospects[i].Load = sellers[i].Load
	}
}
