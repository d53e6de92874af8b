package clearing_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

const horizon = 64 // minutes in which the small problems play

func begin() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }

var epoch = begin()

func at(minute int) time.Time { return epoch.Add(time.Duration(minute) * time.Minute) }

func sellerID(i int) protocol.AgentID {
	return protocol.AgentID(fmt.Sprintf("s%02d@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i))
}

func item(unit, start, end, cores int) protocol.Item {
	return protocol.Item{Unit: unit, Slot: protocol.Slot{Start: at(start), End: at(end), Cores: cores}}
}

func bid(seller, arrival int, id string, cost int, items ...protocol.Item) clearing.Bid {
	return clearing.Bid{
		Bid:     protocol.Bid{Seller: sellerID(seller), Offer: protocol.Offer{ID: id, Cost: protocol.Credits(cost), Items: items}},
		Arrival: arrival,
	}
}

// shape says what a random problem looks like.
type shape struct {
	units, sellers, offers int // offers by seller and unit
	bundles                int // bundle offers by seller
	base, costs            int // sellers ask base+1 to base+costs for a core-minute, and up to costs more at a time
	tight                  int // of a hundred: joint cores, as part of what the seller's offers add up to
	groups                 int // of a hundred: sellers whose offers for a unit share a group
	single                 int // of a hundred: sellers with one group over all
	terms                  bool
}

// random makes a problem of that shape. Slots lie on whole minutes.
func (s shape) random(r *rand.Rand) clearing.Problem {
	p := clearing.Problem{Units: s.units, Objective: protocol.ObjectiveCost, Capacity: map[protocol.AgentID][]protocol.Span{}}
	cores, start, length := make([]int, s.units), make([]int, s.units), make([]int, s.units)
	for u := range s.units {
		cores[u], start[u], length[u] = 1+r.IntN(8), r.IntN(horizon/2), 4+r.IntN(horizon/4)
	}
	for k := range s.sellers {
		perUnit, one := r.IntN(100) < s.groups, r.IntN(100) < s.single
		price := s.base + 1 + r.IntN(s.costs)
		n, sum := 0, 0
		add := func(group string, discount int, units ...int) {
			b := bid(k, r.IntN(3), fmt.Sprintf("o%d", n), 0)
			n++
			for _, u := range units {
				at := start[u] + r.IntN(6)
				b.Offer.Items = append(b.Offer.Items, item(u, at, at+length[u], cores[u]))
				b.Offer.Cost += protocol.Credits((price*cores[u]*length[u] + r.IntN(s.costs)) * (100 - discount) / 100)
			}
			switch {
			case one:
				b.Offer.Group = "all"
			case perUnit:
				b.Offer.Group = group
			}
			if s.terms {
				b.Violations, b.Excess = r.IntN(3), r.IntN(40)
			}
			p.Bids = append(p.Bids, b)
		}
		for u := range s.units {
			if r.IntN(4) == 0 {
				continue
			}
			sum += cores[u]
			for range 1 + r.IntN(s.offers) {
				add(fmt.Sprintf("g%d", u), 0, u)
			}
		}
		for range s.bundles {
			u, v := r.IntN(s.units), r.IntN(s.units)
			if u != v {
				add("", 5+r.IntN(20), u, v)
			}
		}
		if s.tight > 0 {
			joint := max(sum*s.tight/100, 1)
			p.Capacity[sellerID(k)] = []protocol.Span{
				{Start: at(0), End: at(horizon / 2), Cores: joint},
				{Start: at(horizon / 2), End: at(2 * horizon), Cores: joint + r.IntN(4)},
			}
		}
	}
	return p
}
