package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of a Search.
const (
	// Sample is how many sellers a search looks at, and ofDraw how many of each of maxShards
	// that it draws if it cannot ask all. Of a small market, in which few sellers are nearly as
	// cheap as the cheapest, it looks at up to ofSmall more. More find lower prices, and have
	// the cheapest sellers called by a larger part of the buyers.
	Sample     = 240
	ofDraw     = Sample / maxShards
	ofSmall    = 110
	small      = 1000         // sellers
	Shortlist  = 64           // records that it brings
	ofOpening  = 8            // of them, by list price
	ofMiddle   = 8            // by the price that it falls to before the last round
	ofLast     = 24           // by the price that it falls to in the last round
	ofRamp     = 16           // by the price that the ceiling falls to; the others by lot
	maxShards  = 8            // that it asks about
	askedOf    = Replicas - 1 // homes of each, with different issuers
	mostOfHome = Shortlist / 2
	askCensus  = 3 // servers asked for the census
)

// Guide is a buyer's knowledge of the indexes, across searches.
type Guide struct {
	homes homes
}

// NewGuide makes a Guide that knows no index.
func NewGuide() *Guide { return &Guide{newHomes()} }

// Meet notes the presence of an agent, which may keep an index.
func (g *Guide) Meet(now time.Time, from protocol.AgentID, p message.Presence) {
	if p.Index > 0 || g.homes.by[from] != nil {
		g.homes.meet(now, from, p)
	}
}

// Market is how many sellers there are, as the indexes announce; zero: none is known.
func (g *Guide) Market(now time.Time) int { return g.homes.market(now) }

// Size returns how many indexes are remembered, with the bound.
func (g *Guide) Size() protocol.Size {
	return protocol.Size{Of: "indexes known", N: len(g.homes.by), Most: MaxServers}
}

// Wanted is what a Search is for.
type Wanted struct {
	Self         protocol.AgentID
	Conversation string
	Terms        protocol.Terms
	Modes        []protocol.Mode
	Cores        []int // of each unit
	Ceiling      protocol.Credits
	Objective    protocol.Objective
	Rounds       int
}

// Search finds sellers for one auction.
type Search struct {
	guide    *Guide
	want     Wanted
	salt     uint64
	stage    stage
	deadline time.Time
	last     time.Time                // when the stage ends even without an answer
	waits    map[protocol.AgentID]int // answers that are due
	asked    map[protocol.AgentID]int // records, of each server
	due      map[protocol.AgentID]int // rows, of each server
	answers  int                      // in this stage
	rows     map[string]*found
	records  map[string]message.Record
	cheated  bool // a server did not bring what it had listed
	again    bool // records are asked for a second time, the last
}

// stage is what a Search waits for. It is never stored.
type stage int

const (
	wantsCensus  stage = 1
	wantsRows    stage = 2
	wantsRecords stage = 3
	isDone       stage = 4
)

func (s stage) String() string { return [...]string{"none", "census", "rows", "records", "done"}[s] }

// found is a seller in the rows: the servers that listed it, and how each did.
type found struct {
	by   []protocol.AgentID
	rows []message.IndexRow
}

// NewSearch begins a search. Without an index it is done at once.
func (g *Guide) NewSearch(now time.Time, w Wanted) (*Search, protocol.Output) {
	s := &Search{guide: g, want: w, salt: lot(0, w.Conversation), rows: map[string]*found{}, records: map[string]message.Record{}}
	homes := g.homes.list(now, true)
	if g.homes.fresh(now) >= min(askCensus, len(homes)) {
		return s, s.becomeRows(now)
	}
	var list []query
	for _, id := range Place(message.Shard{Terms: w.Terms, Prefix: int(s.salt >> 40)}, homes, askCensus) { // any three
		list = append(list, query{id, message.IndexQuery{}})
	}
	return s, s.become(now, wantsCensus, list)
}

// Conversation is that of the search's messages.
func (s *Search) Conversation() string { return s.want.Conversation }

// Done reports whether the search is over.
func (s *Search) Done() bool { return s.stage == isDone }

// Found are the sellers that were found, in order of their IDs.
func (s *Search) Found() []message.Record {
	return slices.SortedFunc(maps.Values(s.records), func(a, b message.Record) int { return cmp.Compare(a.Seller, b.Seller) })
}

// Receive takes an index's answer. One that was not asked for, or comes too late, is dropped.
func (s *Search) Receive(now time.Time, m protocol.Message) protocol.Output {
	from := m.Sender
	if u, ok := m.Body.(message.Undeliverable); ok && m.Sender == protocol.LocalMesh {
		from = u.To
	}
	if s.waits[from] == 0 || s.Done() || from == m.Sender && m.InReplyTo != s.stage.String() {
		return protocol.Output{}
	}
	switch body := m.Body.(type) {
	case message.IndexRows:
		s.guide.homes.told(now, from, body.Census)
		s.listed(from, body.Rows[:min(len(body.Rows), s.due[from])])
	case message.Records:
		s.brought(now, from, body.List)
	case message.Undeliverable:
		s.guide.homes.avoid(now, from)
	case message.Refusal:
	default:
		return protocol.Output{}
	}
	if s.waits[from]--; s.waits[from] == 0 {
		delete(s.waits, from)
	}
	s.answers++
	return s.Wake(now)
}

// Wake ends a stage when all have answered, or at its deadline.
func (s *Search) Wake(now time.Time) protocol.Output {
	switch {
	case s.Done():
		return protocol.Output{}
	case len(s.waits) == 0:
	case now.Before(s.deadline):
		return protocol.Output{WakeAt: s.deadline}
	case s.answers == 0 && now.Before(s.last):
		return protocol.Output{WakeAt: s.last}
	}
	for id := range s.waits { // any order: each stands alone
		s.guide.homes.avoid(now, id)
	}
	switch s.stage {
	case wantsCensus:
		return s.becomeRows(now)
	case wantsRows:
		return s.becomeRecords(now)
	case wantsRecords:
		if s.cheated && !s.again {
			s.again = true
			return s.becomeRecords(now)
		}
	}
	s.stage = isDone
	return protocol.Output{}
}

type query struct {
	to   protocol.AgentID
	body protocol.Body
}

// become begins a stage with its questions. Without any the search is done.
func (s *Search) become(now time.Time, next stage, list []query) protocol.Output {
	if s.stage = next; len(list) == 0 {
		s.stage = isDone
		return protocol.Output{}
	}
	s.deadline, s.last, s.waits, s.answers = now.Add(Patience), now.Add(LastCall), map[protocol.AgentID]int{}, 0
	out := protocol.Output{WakeAt: s.deadline}
	for _, q := range list {
		s.waits[q.to]++
		out.Send = append(out.Send, protocol.Message{
			Performative: protocol.QueryRef, Sender: s.want.Self, Receivers: []protocol.AgentID{q.to},
			Protocol: protocol.ProtocolIndex, Conversation: s.want.Conversation, ReplyWith: next.String(), Body: q.body,
		})
	}
	return out
}

// becomeRows asks two homes of each of a few shards.
func (s *Search) becomeRows(now time.Time) protocol.Output {
	var list []query
	s.due = map[protocol.AgentID]int{}
	homes := s.guide.homes.list(now, true)
	for _, q := range s.queries() {
		asked := s.pick(Place(q.Shard, homes, Replicas))
		rest := q.Want
		for i, id := range asked {
			q.Want = min(rest/(len(asked)-i), message.MaxRows)
			q.Salt++ // replicas of the last version would list the same sellers
			rest -= q.Want
			s.due[id] += q.Want
			list = append(list, query{id, q})
		}
	}
	return s.become(now, wantsRows, list)
}

// pick chooses which homes of a shard to ask, so that all of them are asked alike.
func (s *Search) pick(homes []protocol.AgentID) []protocol.AgentID {
	if len(homes) <= askedOf {
		return homes
	}
	skip := int(s.salt % uint64(len(homes)))
	return slices.Delete(slices.Clone(homes), skip, skip+1)
}

// queries ask for rows of sellers that are large enough for a unit: for the smallest
// unit, and for the largest if its class is another.
func (s *Search) queries() []message.IndexQuery {
	sizes := []int{slices.Min(s.want.Cores)}
	if most := slices.Max(s.want.Cores); Class(most) != Class(sizes[0]) {
		sizes = append(sizes, most)
	}
	var list []message.IndexQuery
	for n, cores := range sizes {
		for _, x := range s.shards(cores, maxShards/len(sizes), uint64(n)) {
			list = append(list, message.IndexQuery{
				Shard: x.Shard, Modes: s.want.Modes, Cores: cores, Ceiling: s.want.Ceiling, Want: x.Count / len(sizes), Salt: s.salt,
			})
		}
	}
	return list
}

// shards are up to n shards and how many rows of each: all shards if there are so few, in
// proportion to their sellers, otherwise some by lot.
func (s *Search) shards(cores, n int, salt uint64) []message.Census {
	var classes []message.Census
	sum, all := 0, 0
	for c := Class(cores); c <= message.MaxClass; c++ {
		if count, bits := s.guide.homes.class(s.want.Terms, c); count > 0 {
			classes = append(classes, message.Census{Shard: message.Shard{Terms: s.want.Terms, Class: c, Bits: bits}, Count: count})
			sum, all = sum+count, all+1<<bits
		}
	}
	switch {
	case sum == 0:
		return nil
	case all <= n:
		return every(classes, sum)
	}
	var list []message.Census
	for try := range n { // evenly from the first, so that every class has its part
		at := (lot(s.salt+salt, "") + uint64(try)*uint64(sum)/uint64(n)) % uint64(sum)
		shard := drawn(classes, at, lot(s.salt+salt, string(binary.BigEndian.AppendUint64(nil, uint64(try)))))
		i := slices.IndexFunc(list, func(c message.Census) bool { return c.Shard == shard })
		if i < 0 {
			i = len(list)
			list = append(list, message.Census{Shard: shard})
		}
		list[i].Count += ofDraw * maxShards / n
	}
	return list
}

// every are all shards of the classes, with their parts of the sample.
func every(classes []message.Census, sum int) []message.Census {
	sample := Sample + min(ofSmall, ofSmall*small/sum)
	var list []message.Census
	for _, c := range classes {
		for p := range 1 << c.Shard.Bits {
			c.Shard.Prefix = p
			list = append(list, message.Census{Shard: c.Shard, Count: max(sample*c.Count>>c.Shard.Bits/sum, 1)})
		}
	}
	return list
}

// drawn is a shard of the class that has the seller with a number.
func drawn(classes []message.Census, at, prefix uint64) message.Shard {
	for _, c := range classes {
		if at < uint64(c.Count) {
			c.Shard.Prefix = int(prefix & (1<<c.Shard.Bits - 1))
			return c.Shard
		}
		at -= uint64(c.Count)
	}
	panic("index: a draw beyond the last class")
}

func (s *Search) listed(from protocol.AgentID, rows []message.IndexRow) {
	for _, r := range rows {
		f := s.rows[r.Seller]
		if f == nil {
			f = &found{}
			s.rows[r.Seller] = f
		}
		if !slices.Contains(f.by, from) {
			f.by, f.rows = append(f.by, from), append(f.rows, r)
		}
	}
}

// becomeRecords asks for the records of a shortlist. No server brings more than half of them.
func (s *Search) becomeRecords(now time.Time) protocol.Output {
	rows := make([]message.IndexRow, 0, len(s.rows))
	for _, f := range s.rows { // any order: rank sorts
		rows = append(rows, f.rows[0])
	}
	from := map[protocol.AgentID][]string{}
	chosen := map[string]bool{}
	for fp := range s.records {
		chosen[fp] = true
	}
	for _, list := range s.shortlists(rows) {
		s.choose(list.rows, len(chosen)+list.most, from, chosen)
	}
	s.asked = map[protocol.AgentID]int{}
	var questions []query
	for _, id := range slices.Sorted(maps.Keys(from)) {
		s.asked[id] = len(from[id])
		questions = append(questions, query{id, message.IndexFetch{Sellers: from[id]}})
	}
	return s.become(now, wantsRecords, questions)
}

// part is a part of a shortlist, in its order.
type part struct {
	rows []ranked
	most int
}

// shortlists are the parts of a shortlist. Sellers with a list price open at it, so that
// the lowest one is where their prices begin to fall; others fall from the ceiling. Nobody
// knows which rule a seller has, so each gets its part.
func (s *Search) shortlists(rows []message.IndexRow) []part {
	if len(rows) == 0 {
		return nil
	}
	byStart := func(a, b message.IndexRow) int { return cmp.Compare(a.Start, b.Start) }
	lowest, top := slices.MinFunc(rows, byStart).Start, s.want.Ceiling
	if top == 0 {
		top = slices.MaxFunc(rows, byStart).Start
	}
	falls := s.want.Rounds - 1 // rounds after that in which list prices are asked
	middle := rank(rows, s.want.Objective, min(lowest, top), falls-1, s.salt)
	last := rank(rows, s.want.Objective, middle[0].ask, min(falls, 1), s.salt)
	return []part{
		{middle, ofMiddle},
		{last, ofLast},
		{rank(rows, s.want.Objective, top, s.want.Rounds, s.salt), ofRamp},
		{slices.SortedFunc(slices.Values(last), func(a, b ranked) int { return cmp.Or(cmp.Compare(a.Start, b.Start), compareLots(a, b)) }), ofOpening},
		{byLot(last, lowest), Shortlist}, // no record tells when a machine is free
	}
}

// byLot orders sellers by lot, those first that can go below the lowest list price.
func byLot(list []ranked, lowest protocol.Credits) []ranked {
	var low, high []ranked
	for _, r := range slices.SortedFunc(slices.Values(list), compareLots) {
		if r.Min < lowest {
			low = append(low, r)
		} else {
			high = append(high, r)
		}
	}
	return append(low, high...)
}

// choose adds sellers up to most, each from the server that brings the fewest so far.
func (s *Search) choose(list []ranked, most int, from map[protocol.AgentID][]string, chosen map[string]bool) {
	for _, r := range list {
		if len(chosen) >= min(most, Shortlist) {
			return
		}
		by := s.rows[r.Seller].by
		best := slices.MinFunc(by, func(a, b protocol.AgentID) int {
			return cmp.Or(cmp.Compare(len(from[a]), len(from[b])), cmp.Compare(a, b))
		})
		if chosen[r.Seller] || len(from[best]) >= mostOfHome {
			continue
		}
		chosen[r.Seller] = true
		from[best] = append(from[best], r.Seller)
	}
}

// brought notes records that are valid now, of sellers that were listed. A server that brings less
// than half of the requested records, or whose rows contradict them, is avoided.
func (s *Search) brought(now time.Time, from protocol.AgentID, list []message.Record) {
	good := 0
	for _, r := range list {
		f := s.rows[r.Seller.Fingerprint()]
		if f == nil || !now.Before(r.Issued.Add(Life)) || r.Presence.TTL == 0 || !slices.Contains(r.Presence.Terms, s.want.Terms) {
			continue
		}
		if i := slices.Index(f.by, from); i >= 0 && f.rows[i] == (&entry{Record: r}).row() {
			good++
		}
		if old, ok := s.records[r.Seller.Fingerprint()]; !ok || r.Issued.After(old.Issued) {
			s.records[r.Seller.Fingerprint()] = r
		}
	}
	if 2*good < s.asked[from] {
		s.guide.homes.avoid(now, from)
		s.discard(from)
	}
}

// discard forgets what a server listed, so that other sellers are asked for instead.
func (s *Search) discard(from protocol.AgentID) {
	s.cheated = true
	for fp, f := range s.rows { // any order: each stands alone
		if i := slices.Index(f.by, from); i >= 0 {
			f.by, f.rows = slices.Delete(f.by, i, i+1), slices.Delete(f.rows, i, i+1)
		}
		if len(f.by) == 0 {
			delete(s.rows, fp)
		}
	}
}
