package auction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// maxCounters bounds the list of counter-offers.
const maxCounters = 16

// Counters lists the sellers' counter-offers for metered units without an offer, by
// unit, the nearest to the request first.
func (e Explanation) Counters() []message.Counter {
	var list []message.Counter
	_, lacking := e.offering()
	for _, id := range e.sellers.order {
		for _, r := range e.sellers.byID[id].reasons {
			if r.Unit < 0 || !lacking[r.Unit] {
				continue
			}
			for _, h := range r.Hints {
				if h.Tariff != (protocol.Tariff{}) {
					list = append(list, e.counter(r.Unit, id, h))
				}
			}
		}
	}
	slices.SortStableFunc(list, e.nearer)
	return list[:min(len(list), maxCounters)]
}

func (e Explanation) counter(unit int, id protocol.AgentID, h protocol.Hint) message.Counter {
	c := message.Counter{
		Unit: unit, Resource: id.Name(), Seller: id, Start: h.Start, Cores: h.Cores, Price: h.Price,
		Later: e.need(unit, 0, h.Start, 0).late, Contract: h.Tariff,
	}
	c.Change = e.counterWords(c)
	return c
}

// nearer orders counter-offers by unit, then cores, wait, price, contract and seller.
func (e Explanation) nearer(x, y message.Counter) int {
	return cmp.Or(
		cmp.Compare(x.Unit, y.Unit), cmp.Compare(y.Cores, x.Cores), cmp.Compare(x.Later, y.Later),
		cmp.Compare(e.above(x), e.above(y)), cmp.Compare(x.Contract.P.Top, y.Contract.P.Top),
		cmp.Compare(x.Contract.Q.Top, y.Contract.Q.Top), cmp.Compare(x.Seller, y.Seller),
	)
}

// above returns the price of a counter-offer, or the ceiling if that is higher:
// within the ceiling all are equally near.
func (e Explanation) above(c message.Counter) protocol.Credits {
	return max(c.Price, e.wants[c.Unit].Ceiling)
}

// sameContract reports whether a hint leaves the contract as requested.
func (e Explanation) sameContract(unit int, h protocol.Hint) bool {
	c := e.wants[unit].Contract
	return h.Tariff == (protocol.Tariff{}) || c.P == h.Tariff.P && c.Q == h.Tariff.Q
}

// counterWords describes the differences from the request.
func (e Explanation) counterWords(c message.Counter) string {
	w := e.wants[c.Unit]
	parts := rampWords(w.Contract.P, c.Contract.P, [3]string{"rmin", "rmax", "Pmax"})
	parts = append(parts, rampWords(w.Contract.Q, c.Contract.Q, [3]string{"Smin", "Smax", "Qmax"})...)
	if c.Price > w.Ceiling {
		parts = append(parts, string(rfql.CPUHourCost)+" "+c.Price.String())
	}
	if c.Later > 0 {
		parts = append(parts, "a start "+ceilMinutes(c.Later)+" later")
	}
	if c.Cores < w.Cores {
		parts = append(parts, fmt.Sprintf("%d cores", c.Cores))
	}
	return strings.Join(parts, ", ")
}

// rampWords lists the figures of a price function that differ, the price first.
func rampWords(asked, would protocol.Ramp, names [3]string) []string {
	var parts []string
	if would.Top != asked.Top {
		parts = append(parts, names[2]+" "+would.Top.String())
	}
	if would.Lo != asked.Lo {
		parts = append(parts, names[0]+" "+protocol.Credits(would.Lo).String())
	}
	if would.Hi != asked.Hi {
		parts = append(parts, names[1]+" "+protocol.Credits(would.Hi).String())
	}
	return parts
}
