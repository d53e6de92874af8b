package index

import (
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// SellerConfig is what a Seller needs.
type SellerConfig struct {
	Credential *identity.Credential
	Load       func(role Role, now time.Time) int // eighths of the machine that are allocated, at most message.MaxLoad
	Addresses  func() []string                    // at which the seller can be reached, each ending in /p2p/ID
}

// Seller adds records in an index to the role of a site. In a small market it changes
// nothing. In a large one it withholds the role's presences, except the last, and brings
// a record to the homes of its shards instead.
type Seller struct {
	Role
	cfg      SellerConfig
	homes    homes
	pace     pace
	presence message.Presence // the role's last
	large    bool
	market   int       // sellers, as the indexes announced last
	indexed  time.Time // when that was
	putAt    time.Time // the next record is due; zero: none
	last     time.Time // when the last was issued
	load     int       // in the last
	checkAt  time.Time // the homes are asked for the last record; zero: they have been
	at       []protocol.AgentID
	lacking  map[protocol.AgentID]bool // homes that were asked and have not shown it
}

// checkAfter is how long after a put the seller asks for its record, and how long it
// waits for the answers.
const checkAfter = 20 * time.Second

// Receive takes the answers of indexes, and passes the rest on to the role.
func (s *Seller) Receive(now time.Time, m protocol.Message) protocol.Output {
	if m.Protocol == protocol.ProtocolIndex {
		s.answered(now, m)
		return s.renew(now, protocol.Output{})
	}
	if p, ok := m.Body.(message.Presence); ok {
		known := s.homes.by[m.Sender] != nil
		s.homes.meet(now, m.Sender, p)
		s.pace.hear(now, m.Sender, p)
		if !known && p.Index > 0 && s.moved(now) {
			s.putAt = s.last.Add(PutLeast)
		}
	}
	return s.pass(now, s.Role.Receive(now, m))
}

// Wake does what is due.
func (s *Seller) Wake(now time.Time) protocol.Output {
	return s.renew(now, s.check(now, s.withhold(now, s.Role.Wake(now))))
}

// pass adds what is due to what the role has answered.
func (s *Seller) pass(now time.Time, out protocol.Output) protocol.Output {
	return s.renew(now, s.withhold(now, out))
}

func (s *Seller) answered(now time.Time, m protocol.Message) {
	switch body := m.Body.(type) {
	case message.IndexRows:
		s.homes.told(now, m.Sender, body.Census)
		if s.moved(now) { // the class is split otherwise than the seller knew
			s.putAt = s.last.Add(PutLeast)
		}
	case message.Records:
		if slices.ContainsFunc(body.List, func(r message.Record) bool { return r.Seller == s.cfg.Credential.ID && !r.Issued.Before(s.last) }) {
			delete(s.lacking, m.Sender)
		}
	}
}

// moved reports whether the record has a home now that it was not brought to.
func (s *Seller) moved(now time.Time) bool {
	return !s.last.IsZero() && slices.ContainsFunc(s.places(now, s.record(now)), func(id protocol.AgentID) bool { return !slices.Contains(s.at, id) })
}

// look learns the market's size from the indexes. If all have gone, users have their last
// shortlists; after the life of a record, sellers gossip again, at the pace of that market.
func (s *Seller) look(now time.Time) {
	if n := s.homes.market(now); n > 0 {
		s.market, s.indexed = n, now
		s.large = n >= From || s.large && n >= Until
	} else if !now.Before(s.indexed.Add(Life)) {
		s.large = false
	}
}

// withhold keeps the role's presences back in a large market, and spaces them in another.
// The last one, of a seller that leaves, withdraws the record too.
func (s *Seller) withhold(now time.Time, out protocol.Output) protocol.Output {
	s.look(now)
	kept := out.Send[:0:0]
	for _, m := range out.Send {
		p, ok := m.Body.(message.Presence)
		if !ok {
			kept = append(kept, m)
			continue
		}
		s.presence = p
		if all, _ := s.pace.count(now); p.TTL == 0 || !s.large && s.pace.admit(now, &p, max(all+1, s.market)) {
			m.Body = p
			kept = append(kept, m)
		}
		if p.TTL == 0 && !s.last.IsZero() {
			r := s.record(now)
			r.Presence.TTL = 0
			kept = append(kept, s.bring(r, s.at)...)
			s.putAt, s.checkAt, s.last = time.Time{}, time.Time{}, time.Time{}
		}
	}
	out.Send = kept
	return out
}

// renew brings a record when it is due: every PutEvery, and when the load has changed.
func (s *Seller) renew(now time.Time, out protocol.Output) protocol.Output {
	if !s.large || s.presence.TTL == 0 {
		return out
	}
	due := protocol.Earlier(s.putAt, s.last.Add(PutEvery))
	if s.cfg.Load(s.Role, now) != s.load || len(s.at) == 0 {
		due = protocol.Earlier(due, s.last.Add(PutLeast))
	}
	if s.last.IsZero() {
		due = now
	}
	if !now.Before(due) {
		r := s.record(now)
		s.at, s.last, s.load, s.putAt = s.places(now, r), now, r.Load, time.Time{}
		out.Send = append(out.Send, s.bring(r, s.at)...)
		clear(s.lacking)
		s.checkAt = now.Add(checkAfter)
		due = now.Add(PutEvery)
	}
	out.WakeAt = protocol.Earlier(protocol.Earlier(out.WakeAt, due), s.checkAt)
	return out
}

// record is the seller's record as of now, not signed yet.
func (s *Seller) record(now time.Time) message.Record {
	r := message.Record{Seller: s.cfg.Credential.ID, Issued: now, Load: s.cfg.Load(s.Role, now), Presence: s.presence}
	r.Presence.TTL, r.Presence.Issuer = Life, ""
	if s.cfg.Addresses != nil {
		for _, a := range s.cfg.Addresses() {
			at := strings.LastIndex(a, "/p2p/") // the seller's name there
			r.Presence.Addresses = append(r.Presence.Addresses, a[:max(at, 0)])
		}
	}
	return r
}

// places are the homes of a record, also in the split that the class is close to.
func (s *Seller) places(now time.Time, r message.Record) []protocol.AgentID {
	var list []protocol.AgentID
	homes := s.homes.list(now, true)
	for _, share := range []int{3, 4, 5} { // fourths of the count: a change of split catches nobody out
		near := func(t protocol.Terms, class int) int {
			count, _ := s.homes.class(t, class)
			return count * share / 4
		}
		for _, shard := range Shards(r, near, 0) {
			for _, id := range Place(shard, homes, Replicas) {
				if !slices.Contains(list, id) && len(list) < protocol.MaxReceivers {
					list = append(list, id)
				}
			}
		}
	}
	return list
}

// bring sends a signed record, with as many addresses as it has room for.
func (s *Seller) bring(r message.Record, to []protocol.AgentID) []protocol.Message {
	signed, err := codec.SealRecord(s.cfg.Credential, r)
	for n := len(r.Presence.Addresses); err != nil && n > 0; n-- {
		r.Presence.Addresses = r.Presence.Addresses[:n-1]
		signed, err = codec.SealRecord(s.cfg.Credential, r)
	}
	if err != nil || len(to) == 0 {
		return nil
	}
	return []protocol.Message{s.say(protocol.Request, message.Records{List: []message.Record{signed}}, to)}
}

func (s *Seller) say(act protocol.Performative, body protocol.Body, to []protocol.AgentID) protocol.Message {
	return protocol.Message{
		Performative: act, Sender: s.cfg.Credential.ID, Receivers: to,
		Protocol: protocol.ProtocolIndex, Conversation: "record", Body: body,
	}
}

// check asks the homes for the last record, and avoids those that did not show it the
// time before: the next in the order take their place.
func (s *Seller) check(now time.Time, out protocol.Output) protocol.Output {
	if s.checkAt.IsZero() || now.Before(s.checkAt) {
		return out
	}
	if len(s.lacking) > 0 {
		for id := range s.lacking { // any order: each stands alone
			s.homes.avoid(now, id)
		}
		clear(s.lacking)
		s.checkAt = time.Time{}
		if s.moved(now) {
			s.putAt = s.last.Add(PutLeast)
		}
		return out
	}
	for _, id := range s.at {
		s.lacking[id] = true
	}
	s.checkAt = now.Add(checkAfter)
	out.Send = append(out.Send, s.say(protocol.QueryRef, message.IndexFetch{Sellers: []string{s.cfg.Credential.ID.Fingerprint()}}, s.at))
	return out
}
