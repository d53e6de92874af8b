package index

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Server keeps an index beside the role of a bank or a site, whose presences it marks.
type Server struct {
	Role
	self    Home
	table   table
	homes   homes
	digests map[protocol.AgentID][]message.Census // of the other servers, the last of each
	pace    pace
	sent    map[protocol.AgentID]int // messages taken from each sender in this Beat
	beatAt  time.Time
	own     []message.Census // its last digest
	counted int              // records at that time
	census  []message.Census // of whole classes, as last surveyed
	asOf    time.Time        // when that was
	counts  Counts

	near     map[message.Shard]bool // whether this is a home of a shard, or nearly
	nearBy   []Home                 // the servers that decide it
	nearAsOf time.Time
}

// Counts are what a server has done since its start.
type Counts struct {
	Records, Refused, Queries, Fetched, Dropped int
}

// NewServer adds an index to a role.
func NewServer(self Home, role Role, now time.Time) (*Server, protocol.Output) {
	s := &Server{
		Role: role, self: self, table: newTable(), homes: newHomes(), digests: map[protocol.AgentID][]message.Census{},
		pace: newPace(), near: map[message.Shard]bool{}, sent: map[protocol.AgentID]int{}, beatAt: now.Add(Beat),
	}
	return s, protocol.Output{WakeAt: s.beatAt}
}

// Counts returns what the server has done.
func (s *Server) Counts() Counts { return s.counts }

// Sizes returns what the server holds in memory, with the bounds.
func (s *Server) Sizes() []protocol.Size {
	return []protocol.Size{
		{Of: "records of the index", N: len(s.table.by), Most: MaxEntries},
		{Of: "shards that are dealt", N: len(s.table.rings), Most: MaxRings},
		{Of: "shards that are near", N: len(s.near), Most: maxNear},
		{Of: "indexes known", N: len(s.homes.by), Most: MaxServers},
		{Of: "digests", N: len(s.digests), Most: MaxServers},
		{Of: "agents that gossip", N: len(s.pace.heard), Most: MaxHeard},
		{Of: "senders to the index", N: len(s.sent), Most: MaxSenders},
	}
}

// Receive takes what concerns the index, and passes the rest on to the role.
func (s *Server) Receive(now time.Time, m protocol.Message) protocol.Output {
	switch body := m.Body.(type) {
	case message.Presence:
		s.homes.meet(now, m.Sender, body)
		s.pace.hear(now, m.Sender, body)
	case message.IndexDigest:
		if s.homes.by[m.Sender] != nil && s.admits(m.Sender) {
			s.digests[m.Sender] = body.Shards
			s.resurvey(now)
		}
		return protocol.Output{}
	case message.Records, message.IndexQuery, message.IndexFetch:
		if m.Performative == protocol.Inform || !s.admits(m.Sender) {
			return protocol.Output{}
		}
		return s.serve(now, m)
	}
	return s.pass(now, s.Role.Receive(now, m))
}

// Wake does what is due in the role, and once in a Beat the chores of the index.
func (s *Server) Wake(now time.Time) protocol.Output {
	out := s.Role.Wake(now)
	if !now.Before(s.beatAt) {
		out = out.Join(s.beat(now))
	}
	return s.pass(now, out)
}

// admits counts a message of a sender; false: it has sent too many in this Beat.
func (s *Server) admits(from protocol.AgentID) bool {
	if n, known := s.sent[from]; n < MaxSent && (known || len(s.sent) < MaxSenders) {
		s.sent[from] = n + 1
		return true
	}
	s.counts.Dropped++
	return false
}

// serve answers what sellers bring and buyers ask.
func (s *Server) serve(now time.Time, m protocol.Message) protocol.Output {
	var act protocol.Performative
	var answer protocol.Body
	switch body := m.Body.(type) {
	case message.Records:
		act, answer = s.put(now, body)
	case message.IndexQuery:
		s.counts.Queries++
		rows := message.IndexRows{Census: s.census}
		if body.Shard.Terms != (protocol.Terms{}) && body.Want > 0 {
			rows.Rows = s.table.deal(now, body, func() int {
				return max(slices.Index(Place(body.Shard, s.others(now), Replicas), s.self.ID), 0)
			})
		}
		act, answer = protocol.Inform, rows
	case message.IndexFetch:
		act, answer = protocol.Inform, s.fetch(now, body)
	}
	s.hasten(now)
	return protocol.Output{Send: []protocol.Message{m.Reply(s.self.ID, act, answer)}, WakeAt: s.beatAt}
}

// hasten counts the records soon if there are twice as many as when they were counted.
func (s *Server) hasten(now time.Time) {
	if len(s.table.by) > 2*s.counted {
		s.beatAt = protocol.Earlier(s.beatAt, now.Add(Patience))
	}
}

// put keeps records. It refuses if any of them is refused, and says why of the first.
func (s *Server) put(now time.Time, body message.Records) (protocol.Performative, protocol.Body) {
	var first error
	for _, r := range body.List {
		err := errNotHere
		if s.takes(now, r) {
			err = s.table.put(now, r)
		}
		s.counts.Records++
		if err != nil {
			s.counts.Refused++
			first = cmp.Or(first, err)
		}
	}
	if first != nil {
		return protocol.Refuse, message.Refused(protocol.CodeLimit, first.Error())
	}
	return protocol.Agree, message.IndexRows{Census: s.census}
}

// takes reports whether the server is a home of a record, or nearly: those who bring records may
// know other servers, and another number of sellers. A withdrawal may come wherever a record did.
func (s *Server) takes(now time.Time, r message.Record) bool {
	if s.table.by[r.Seller.Fingerprint()] != nil || r.Presence.TTL == 0 {
		return s.table.by[r.Seller.Fingerprint()] != nil
	}
	return slices.ContainsFunc(Shards(r, s.count, slackBits), func(x message.Shard) bool { return s.isNear(now, x) })
}

// isNear reports whether the server is a home of a shard, or nearly. It works that out anew
// every few seconds.
func (s *Server) isNear(now time.Time, shard message.Shard) bool {
	if near, known := s.near[shard]; known && now.Before(s.nearAsOf.Add(placeLife)) {
		return near
	}
	if !now.Before(s.nearAsOf.Add(placeLife)) {
		s.near, s.nearAsOf, s.nearBy = map[message.Shard]bool{}, now, s.others(now)
	} else if len(s.near) >= maxNear {
		clear(s.near)
	}
	s.near[shard] = slices.Contains(Place(shard, s.nearBy, Replicas+spareHomes), s.self.ID)
	return s.near[shard]
}

func (s *Server) others(now time.Time) []Home { return append(s.homes.list(now, false), s.self) }

// count is the number of sellers of a class, in the census.
func (s *Server) count(terms protocol.Terms, class int) int {
	for _, c := range s.census {
		if c.Shard.Terms == terms && c.Shard.Class == class {
			return c.Count
		}
	}
	return 0
}

// Shards are the shards of a record, split as its class's count wants, and by up to slack
// more or fewer bits.
func Shards(r message.Record, count func(protocol.Terms, int) int, slack int) []message.Shard {
	var list []message.Shard
	class, fp := Class(r.Presence.Properties.Cores), r.Seller.Fingerprint()
	for _, terms := range r.Presence.Terms[:min(len(r.Presence.Terms), MaxCurrent)] {
		usual := Bits(count(terms, class))
		for n := max(usual-slack, 0); n <= min(usual+slack, message.MaxShardBits); n++ {
			list = append(list, message.Shard{Terms: terms, Class: class, Bits: n, Prefix: Prefix(fp, n)})
		}
	}
	return list
}

// fetch returns the records of sellers that have not withdrawn.
func (s *Server) fetch(now time.Time, body message.IndexFetch) message.Records {
	var list []message.Record
	for _, fp := range body.Sellers[:min(len(body.Sellers), message.MaxRecords)] {
		if e := s.table.by[fp]; e != nil && e.Presence.TTL > 0 && now.Before(e.ends()) {
			list = append(list, e.Record)
		}
	}
	s.counts.Fetched += len(list)
	return message.Records{List: list}
}

// beat forgets what is over and tells the other servers what the shards hold. It tells
// each directly: a topic for so few would need a mesh of its own.
func (s *Server) beat(now time.Time) protocol.Output {
	s.beatAt = now.Add(Beat)
	s.table.expire(now)
	clear(s.sent)
	maps.DeleteFunc(s.digests, func(id protocol.AgentID, _ []message.Census) bool { return s.homes.by[id] == nil })
	s.own, s.counted = s.digest(now), len(s.table.by)
	s.census, s.asOf = s.survey(now, s.own), now
	var out protocol.Output
	for list := range slices.Chunk(s.homes.list(now, false), protocol.MaxReceivers) {
		to := make([]protocol.AgentID, len(list))
		for i, h := range list {
			to[i] = h.ID
		}
		out.Send = append(out.Send, protocol.Message{
			Performative: protocol.Inform, Sender: s.self.ID, Receivers: to,
			Protocol: protocol.ProtocolIndex, Conversation: "index", Body: message.IndexDigest{Shards: s.own},
		})
	}
	return out
}

// digest counts what the server keeps, in every split that its sellers may use: they move one
// by one when a class grows or shrinks.
func (s *Server) digest(now time.Time) []message.Census {
	others := s.others(now)
	return s.table.digest(
		func(x shelf) int { return min(Bits(s.count(x.terms, x.class))+slackBits, message.MaxShardBits) },
		func(x message.Shard) bool { return slices.Contains(Place(x, others, Replicas), s.self.ID) })
}

// resurvey takes in digests that have come since the last survey, at most a few times in a
// Beat, unless nothing was known.
func (s *Server) resurvey(now time.Time) {
	if len(s.census) == 0 || !now.Before(s.asOf.Add(Beat/6)) {
		s.census, s.asOf = s.survey(now, s.own), now
	}
}

// survey sums the digests into a census of the classes. Of a shard only its homes count,
// with their median; of several ways to split a class, the one with most sellers.
func (s *Server) survey(now time.Time, own []message.Census) []message.Census {
	others := s.others(now)
	told := map[message.Shard]map[protocol.AgentID]message.Census{}
	note := func(id protocol.AgentID, list []message.Census) {
		for _, c := range list {
			if told[c.Shard] == nil {
				told[c.Shard] = map[protocol.AgentID]message.Census{}
			}
			told[c.Shard][id] = c
		}
	}
	note(s.self.ID, own)
	for id, list := range s.digests { // any order: keyed
		note(id, list)
	}
	split := map[message.Shard]int{} // Prefix 0: a class split by Bits
	for shard, by := range told {    // any order: sums
		var counts []int
		for _, id := range Place(shard, others, Replicas) {
			counts = append(counts, by[id].Count) // a home that does not mention it has nobody: none can invent a shard alone
		}
		shard.Prefix = 0
		split[shard] += median(counts)
	}
	return classes(split)
}

// classes picks for each class the split with the most sellers; of several, the usual one.
func classes(split map[message.Shard]int) []message.Census {
	best := map[message.Shard]message.Census{}
	for shard, n := range split { // any order: the most
		class := shard
		class.Bits = 0
		if b := best[class]; n > b.Count || n == b.Count && shard.Bits == Bits(n) {
			best[class] = message.Census{Shard: shard, Count: n}
		}
	}
	var list []message.Census
	for _, c := range best { // any order: sorted
		if c.Count > 0 {
			list = append(list, c)
		}
	}
	return fullest(list, message.MaxCensus)
}

// pass marks the role's presences: this agent keeps an index of so many sellers. It spaces
// them, unless the role is a Seller, which has done so.
func (s *Server) pass(now time.Time, out protocol.Output) protocol.Output {
	seller, spaced := s.Role.(*Seller)
	kept, own := out.Send[:0:0], []protocol.Message(nil)
	for _, m := range out.Send {
		if p, ok := m.Body.(message.Presence); ok {
			p.Index = 1 + s.market(now)
			if spaced {
				seller.homes.meet(now, s.self.ID, message.Presence{Index: p.Index, TTL: protocol.MaxTTL, Issuer: s.self.Issuer})
			} else if all, _ := s.pace.count(now); !s.pace.admit(now, &p, all+1) {
				continue
			}
			m.Body = p
		}
		if i := slices.Index(m.Receivers, s.self.ID); i >= 0 && m.Protocol == protocol.ProtocolIndex {
			own = append(own, m)
			if m.Receivers = slices.Delete(slices.Clone(m.Receivers), i, i+1); len(m.Receivers) == 0 {
				continue
			}
		}
		kept = append(kept, m)
	}
	out.Send = kept
	out.WakeAt = protocol.Earlier(out.WakeAt, s.beatAt)
	for _, m := range own { // the seller in here is a seller like others
		for _, answer := range s.serve(now, m).Send {
			out = out.Join(s.Role.Receive(now, answer))
		}
	}
	return out
}

// market is how many sellers there are: those of the fullest currency, or those heard.
func (s *Server) market(now time.Time) int {
	sums := map[protocol.Terms]int{}
	_, most := s.pace.count(now)
	for _, c := range s.census {
		sums[c.Shard.Terms] += c.Count
		most = max(most, sums[c.Shard.Terms])
	}
	return min(most, message.MaxIndexSellers-1)
}
