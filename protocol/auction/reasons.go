package auction

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// Why sums why sellers make no offer: one code per seller, so that the counts
// add up to the sellers without an offer. Where units have no offer at all, only
// offers for those count, and only what was said of those. Nobody's answer counts
// as silent.
func (b *Buyer) Why() map[protocol.Code]int {
	counts := map[protocol.Code]int{}
	offering, lacking := b.offering()
	late := map[protocol.AgentID]bool{}
	for _, bid := range b.standing {
		late[bid.Seller] = late[bid.Seller] || b.late(bid.Offer)
	}
	for _, id := range b.order {
		if offering[id] {
			continue
		}
		s := b.sellers[id]
		reasons := about(s.reasons, lacking)
		switch {
		case !s.heard && len(reasons) == 0:
			counts[protocol.CodeSilent]++
		case len(reasons) > 0:
			counts[decisive(reasons).Code]++
		case late[id]:
			counts[protocol.CodeLate]++
		default:
			counts[protocol.CodeCeiling]++ // it bid, but not below what stood
		}
	}
	return counts
}

// maxSaid bounds the different things that Programs tells.
const maxSaid = 8

// Programs is what sellers say of what is to be launched and would not run there, each
// thing once, with who says it.
func (b *Buyer) Programs() []string {
	var notes []string
	by := map[string][]protocol.AgentID{}
	for _, id := range b.order {
		reasons := b.sellers[id].reasons
		i := slices.IndexFunc(reasons, func(r protocol.Reason) bool { return r.Code == protocol.CodeProgram })
		if i < 0 {
			continue
		}
		note := reasons[i].Note
		if by[note] == nil && len(notes) == maxSaid {
			continue
		}
		if by[note] == nil {
			notes = append(notes, note)
		}
		by[note] = append(by[note], id)
	}
	for i, note := range notes {
		who := by[note][0].Name()
		if more := len(by[note]) - 1; more > 0 {
			who = fmt.Sprintf("%s and %d more", who, more)
		}
		notes[i] = who + ": " + note
	}
	return notes
}

// offering are the sellers with a standing offer that satisfies the request, and
// lacking the units that no such offer covers. Sellers that offer only what
// others offer too do not count while units are lacking.
func (b *Buyer) offering() (sellers map[protocol.AgentID]bool, lacking map[int]bool) {
	sellers, lacking = map[protocol.AgentID]bool{}, map[int]bool{}
	for unit := range b.cfg.Wants {
		lacking[unit] = true
	}
	for _, bid := range b.standing {
		if v, _ := b.violations(bid.Offer); v == 0 {
			sellers[bid.Seller] = true
			for _, it := range bid.Offer.Items {
				delete(lacking, it.Unit)
			}
		}
	}
	if len(lacking) > 0 {
		clear(sellers)
	}
	return sellers, lacking
}

// about are the reasons that speak of lacking units, or of all; if none is
// lacking, every reason.
func about(reasons []protocol.Reason, lacking map[int]bool) []protocol.Reason {
	if len(lacking) == 0 {
		return reasons
	}
	var list []protocol.Reason
	for _, r := range reasons {
		if lacking[r.Unit] || r.Unit == protocol.AllUnits {
			list = append(list, r)
		}
	}
	return list
}

// decisive is the reason that would have to go first: a static term before a
// busy machine before a price. Equal ranks go to the earlier reason.
func decisive(reasons []protocol.Reason) protocol.Reason {
	best := reasons[0]
	for _, r := range reasons[1:] {
		if rank(r.Code) < rank(best.Code) {
			best = r
		}
	}
	return best
}

func rank(c protocol.Code) int {
	switch c {
	case protocol.CodeBusy:
		return 1
	case protocol.CodePrice:
		return 2
	case protocol.CodeStands:
		return 3
	}
	return 0
}

// Violations says in words which of the request's terms a set breaks.
func (b *Buyer) Violations(set []clearing.Bid) []string {
	var list []string
	var total protocol.Credits
	for _, bid := range set {
		total += bid.Offer.Cost // bounded by clearing.MaxOfferCost and MaxUnits
		for _, it := range bid.Offer.Items {
			w := b.cfg.Wants[it.Unit]
			if it.Price > w.Ceiling {
				list = append(list, fmt.Sprintf("unit %d: %s per core-hour, %s %% above %s", it.Unit+1, it.Price,
					percent(perMille(int64(it.Price-w.Ceiling), int64(w.Ceiling))), w.Ceiling))
			}
			if late := lateness(w, it); late > 0 {
				list = append(list, fmt.Sprintf("unit %d: %s later than asked", it.Unit+1, ceilMinutes(late)))
			}
		}
	}
	if b.cfg.MaxCost > 0 && total > b.cfg.MaxCost {
		list = append(list, fmt.Sprintf("in all: %s, above the most that may be spent, %s", total, b.cfg.MaxCost))
	}
	return list
}

// Bidders are the sellers with a standing offer, in the order they were called.
func (b *Buyer) Bidders() []protocol.AgentID {
	bidding := map[protocol.AgentID]bool{}
	for _, bid := range b.standing {
		bidding[bid.Seller] = true
	}
	var list []protocol.AgentID
	for _, id := range b.order {
		if bidding[id] {
			list = append(list, id)
		}
	}
	return list
}

// percent prints per mille as per cent, rounded up to a whole one from 10 % on.
func percent(perMille int) string {
	if perMille >= 100 || perMille%10 == 0 {
		return fmt.Sprint((perMille + 9) / 10)
	}
	return fmt.Sprintf("%d.%d", perMille/10, perMille%10)
}

func offers(n int) string {
	if n == 1 {
		return "1 offer"
	}
	return fmt.Sprintf("%d offers", n)
}

func ceilMinutes(d time.Duration) string {
	m := (d + time.Minute - 1) / time.Minute
	if m < 120 {
		return fmt.Sprintf("%d min", m)
	}
	return fmt.Sprintf("%d h %02d min", m/60, m%60)
}
