package user

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"ramp/agents/index"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// lookup asks the indexes for a shortlist, if the market is too large to know everybody.
// An order with invalid terms or an invalid document continues without one, and fails with the reason.
func (r *purchases) lookup(now time.Time, p *purchase, order *message.Buy) (protocol.Output, bool) {
	if r.guide.Market(now) < index.From || order.Only != "" || r.cfg.Budget == 0 {
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
	p.row.State, p.row.Order, p.unsaved = StateBidding, *order, !order.Options.QuoteOnly // a command that is given again finds it
	p.search, out = r.guide.NewSearch(now, w)
	return out.Join(protocol.Output{WakeAt: now}), true
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
	records, order := p.search.Found(), p.row.Order
	p.search, p.row.Order = nil, message.Buy{} // begin sets it again
	if len(records) == 0 {
		list, short := r.remembered(now)
		return r.open(now, p, order, list, short)
	}
	list := make([]Known, 0, len(records))
	for _, x := range records {
		r.directory.listed(now, x)
		list = append(list, Known{ID: x.Seller, Presence: x.Presence, Load: x.Load})
	}
	return r.keepList(now, records).Join(r.open(now, p, order, list, true))
}

// TableShortlist has the sellers that an index brought last.
const TableShortlist = "user-shortlist"

const (
	shortlistKey  = "last"
	shortlistSave = index.PutEvery // between two saves
	shortlistLife = 24 * time.Hour // for which the sellers are called if no index answers
)

// keepList remembers a shortlist for the time when every index is gone, and tells the
// transport where its sellers are.
func (r *purchases) keepList(now time.Time, list []message.Record) protocol.Output {
	r.last = list
	out := protocol.Output{Send: []protocol.Message{whereabouts(r.cfg.self(), list)}}
	if now.Before(r.lastSaved.Add(shortlistSave)) {
		return out
	}
	r.lastSaved = now
	out.Save = []protocol.Record{{Table: TableShortlist, Key: shortlistKey, Value: index.Pack(list)}}
	return out
}

// whereabouts tells the transport where sellers are.
func whereabouts(self protocol.AgentID, list []message.Record) protocol.Message {
	return protocol.Message{
		Performative: protocol.Inform, Sender: self, Receivers: []protocol.AgentID{protocol.LocalMesh},
		Protocol: protocol.ProtocolIndex, Conversation: "shortlist", Body: message.Records{List: list},
	}
}

func (r *purchases) restoreList(t protocol.Tables, now time.Time) (protocol.Output, error) {
	value, err := t.Get(TableShortlist, shortlistKey)
	if err != nil || value == nil {
		return protocol.Output{}, err
	}
	if r.last, err = index.Unpack(r.cfg.Trust, value, now); err != nil {
		return protocol.Output{}, fmt.Errorf("journal: table %s: %w", TableShortlist, err)
	}
	if len(r.last) == 0 {
		return protocol.Output{}, nil
	}
	return protocol.Output{Send: []protocol.Message{whereabouts(r.cfg.self(), r.last)}}, nil
}

// remembered are the sellers that are known and those of the last shortlist; short: there are such.
func (r *purchases) remembered(now time.Time) (list []Known, short bool) {
	list = r.directory.list(now, protocol.KindResource)
	for _, x := range r.last {
		i, known := slices.BinarySearchFunc(list, x.Seller, func(k Known, id protocol.AgentID) int { return cmp.Compare(k.ID, id) })
		if !known && now.Before(x.Issued.Add(shortlistLife)) {
			list, short = slices.Insert(list, i, Known{ID: x.Seller, Presence: x.Presence, Load: x.Load}), true
		}
	}
	return list, short
}

// sellers are those to ask without an index.
func (r *purchases) sellers(now time.Time) ([]Known, bool) {
	if r.guide.Market(now) > 0 || r.cfg.Budget == 0 {
		return r.directory.list(now, protocol.KindResource), false
	}
	return r.remembered(now)
}

// listed records what an index has brought about a seller, unless a later presence is known.
func (d *directory) listed(now time.Time, r message.Record) {
	old, met := d.known[r.Seller]
	if met && r.Presence.Counter < old.presence().Counter || !met && !d.hasRoom(now) {
		return
	}
	expires := r.Issued.Add(index.Life).UnixNano()
	if met && r.Presence.Counter == old.presence().Counter {
		expires = max(expires, old.expires)
	}
	d.remember(r.Seller, peer{body: r.Presence, expires: expires})
}

// shorten makes an auction one with a shortlist.
func shorten(cfg *auction.BuyerConfig, sellers []Known) {
	cfg.Shortlist, cfg.Budget = true, auction.ShortBudget
	for i := range sellers {
		cfg.Prospects[i].Load = sellers[i].Load
	}
}

// wantsOf makes a document the wants that offers are checked against; maxWait bounds how
// long after now a unit without a start of its own may begin.
func wantsOf(doc rfql.Document, now time.Time, maxWait time.Duration) []auction.Want {
	wants := make([]auction.Want, doc.Len())
	for i, q := range doc.Requests() {
		wants[i] = auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores, Nodes: q.Nodes, Contract: q.Contract}
		if maxWait > 0 {
			wants[i].LastStart = protocol.Later(now, q.NotBefore).Add(maxWait)
		}
	}
	return wants
}

// prospectsOf is the part of the sellers' presences that decides which of them to
// ask. A seller that does not accept the terms matches nothing.
func prospectsOf(requests []rfql.Request, terms protocol.Terms, sellers []Known) []auction.Prospect {
	list := make([]auction.Prospect, len(sellers))
	for i := range sellers {
		p := &sellers[i].Presence
		list[i] = auction.Prospect{Start: p.Start, Min: p.Min}
		if !slices.Contains(p.Terms, terms) {
			continue
		}
		for _, q := range requests {
			if len(rfql.Match(q, p.Properties)) == 0 {
				list[i].Units.Add(q.Unit)
			}
		}
	}
	return list
}
