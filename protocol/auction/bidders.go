package auction

import (
	"slices"

	"ramp/protocol"
	"ramp/protocol/message"
)

// bidders are the sellers of one auction and the answers that the buyer waits for.
type bidders struct {
	timing  *Timing
	byID    map[protocol.AgentID]*bidder
	order   []protocol.AgentID // in the order of their first call or answer
	awaited int                // sellers due that have not answered this round
	best    bool               // the running round is the best-offer round
}

// bidder is the buyer's knowledge of one seller in this auction.
type bidder struct {
	answered int         // last round it answered
	due      bool        // the buyer waits for it in this round
	informed bool        // it has shown that it has the document
	offers   int         // its offers that stand
	groups   map[int]int // those that include a unit
	reasons  []protocol.Reason
	spans    []protocol.Span
	replied  bool
	least    protocol.Credits // lowest price that it states; zero: unknown
	bundles  bool             // it has offered several units for one price

	called   bool                     // by name
	list     protocol.Credits         // its start price
	prices   map[int]protocol.Credits // its last price, by unit
	drop     protocol.Credits         // how far it went below the ceiling
	measured bool                     // drop is known
}

// add returns the bidder of a seller, and makes one if necessary.
func (bs *bidders) add(id protocol.AgentID) *bidder {
	b := bs.byID[id]
	if b == nil {
		b = &bidder{}
		bs.byID[id] = b
		bs.order = append(bs.order, id)
	}
	return b
}

// lastChance reports whether the best-offer round waits for a seller until the full
// round limit: nothing meets the request, and the seller has never answered. A
// seller that always takes longer than patience could never sell otherwise.
func (bs *bidders) lastChance(id protocol.AgentID) bool { return bs.best && !bs.byID[id].replied }

// await makes the called sellers due that have been punctual, or all if nobody has.
// The best-offer round also waits for sellers that have never replied. Nobody is due
// in a gossiped round.
func (bs *bidders) await(called []protocol.AgentID, gossiped bool) {
	bs.awaited = 0
	for _, b := range bs.byID { // any order: each entry stands alone
		b.due = false
	}
	if gossiped {
		return
	}
	due := func(id protocol.AgentID) bool { return bs.timing.Due(id) || bs.lastChance(id) }
	for _, punctual := range []func(protocol.AgentID) bool{due, func(protocol.AgentID) bool { return true }} {
		for _, id := range called {
			if punctual(id) {
				bs.byID[id].due = true
				bs.awaited++
			}
		}
		if bs.awaited > 0 {
			return
		}
	}
}

// missed remembers the sellers that were due and did not answer the round.
func (bs *bidders) missed(round int) {
	for _, id := range bs.order {
		if b := bs.byID[id]; b.due && b.answered < round {
			bs.timing.Missed(id)
		}
	}
}

// needs are receivers of the same cfp: with the document or without.
type needs struct {
	receivers []protocol.AgentID
	document  bool
}

// byNeed separates sellers that have shown that they have the document from those
// that may have missed it: a lost cfp, or a restart, costs a seller one round only.
func (bs *bidders) byNeed(receivers []protocol.AgentID) []needs {
	lacking, have := needs{document: true}, needs{}
	for _, id := range receivers {
		if bs.byID[id].informed {
			have.receivers = append(have.receivers, id)
		} else {
			lacking.receivers = append(lacking.receivers, id)
		}
	}
	return []needs{have, lacking}
}

// admits counts a new offer of a seller; false: it has enough of them for a unit. A
// seller with a thousand offers for one unit would take a thousand places on the
// reserve list.
func (b *bidder) admits(o protocol.Offer) bool {
	for _, it := range o.Items {
		if b.groups[it.Unit] >= protocol.MaxGroups {
			return false
		}
	}
	if b.groups == nil {
		b.groups = map[int]int{}
	}
	for _, it := range o.Items {
		b.groups[it.Unit]++
	}
	return true
}

// knowsDocument reports whether a refusal shows that the seller has the document. A
// seller that restarted, or was not open yet in round 1, lacks it.
func knowsDocument(r message.Refusal) bool {
	lacks := []protocol.Code{protocol.CodeUnknown, protocol.CodeUnavailable, protocol.CodeDraining}
	return len(r.Reasons) == 0 || !slices.Contains(lacks, r.Reasons[0].Code)
}

func stands(r message.Refusal) bool {
	return len(r.Reasons) > 0 && r.Reasons[0].Code == protocol.CodeStands
}

// hopeless reports whether a seller that was called will make no offer for a unit
// in this auction.
func (b *bidder) hopeless(unit int, best bool) bool {
	if b.called && !b.replied {
		return true // late, or it cannot be reached
	}
	for _, r := range b.reasons {
		if r.Unit != unit && r.Unit != protocol.AllUnits {
			continue
		}
		switch r.Code {
		case protocol.CodeStands:
		case protocol.CodePrice, protocol.CodeBusy, protocol.CodeCeiling:
			if !best {
				return true
			}
		default:
			return true
		}
	}
	return false
}
