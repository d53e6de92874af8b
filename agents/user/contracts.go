package user

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// maxContracts bounds the contracts that sellers can fetch again; beyond it, the
// one that ends first is forgotten.
const maxContracts = 1 << 12

// settledContract is a settled contract, as it was signed, that its sellers may still need.
type settledContract struct {
	id     protocol.ContractID
	der    []byte
	signed time.Time // its certificates were valid then
	ends   time.Time // nobody needs it later
}

// settledContracts gives sellers that have lost a settled contract a copy of it.
// It is in order of end, and finds each contract by its ID.
type settledContracts struct {
	list []settledContract
	ends map[protocol.ContractID]time.Time
}

// from is the index of the first contract that does not end before t.
func (s *settledContracts) from(t time.Time) int {
	at, _ := slices.BinarySearchFunc(s.list, t, func(x settledContract, t time.Time) int { return x.ends.Compare(t) })
	return at
}

// find is the index of a contract; -1 if it is not there.
func (s *settledContracts) find(id protocol.ContractID) int {
	ends, ok := s.ends[id]
	if !ok {
		return -1
	}
	at := s.from(ends)
	for s.list[at].id != id { // several may end at that moment
		at++
	}
	return at
}

// add records the contract of a settled purchase, unless nobody needs it any more.
func (s *settledContracts) add(now time.Time, p *Purchase, der []byte, signed time.Time) {
	c := settledContract{id: p.Contract, der: der, signed: signed, ends: contractEnds(p)}
	if !c.ends.After(now) {
		return
	}
	s.forgetFirst(s.from(now.Add(1)))
	if at := s.find(c.id); at >= 0 {
		s.list = slices.Delete(s.list, at, at+1)
	}
	s.list = slices.Insert(s.list, s.from(c.ends), c)
	s.ends[c.id] = c.ends
	if len(s.list) > maxContracts {
		s.forgetFirst(1)
	}
}

func (s *settledContracts) forgetFirst(n int) {
	for _, x := range s.list[:n] {
		delete(s.ends, x.id)
	}
	s.list = slices.Delete(s.list, 0, n)
}

// contractEnds is when nobody needs the contract of a purchase any more. One paid
// after the fact is needed while its sellers can report on it.
func contractEnds(p *Purchase) (ends time.Time) {
	for _, u := range p.Units {
		ends = protocol.Later(ends, u.End)
	}
	if p.Mode == "" || p.Mode == protocol.ModeOnReservation {
		return ends
	}
	return ends.Add(protocol.ReportWithin)
}

// answer gives a seller a contract that names it. The refusal is the same for an
// unknown contract and for another seller's.
func (s *settledContracts) answer(cfg *Config, m protocol.Message, q message.BundleQuery) protocol.Message {
	if i := s.find(q.Contract); i >= 0 {
		c := s.list[i]
		v, err := contract.OpenBundle(c.der, cfg.Trust, c.signed)
		if err == nil && slices.Contains(v.Sellers(), m.Sender) {
			return m.Reply(cfg.self(), protocol.Inform, message.BundleCopy{Bundle: v})
		}
	}
	return m.Reply(cfg.self(), protocol.Refuse, message.Refused(protocol.CodeUnknown, "no contract with this seller that is not over"))
}
