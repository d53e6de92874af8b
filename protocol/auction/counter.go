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

// maxCounters bounds the counter-offers that are shown.
const maxCounters = 16

// Counters are the counter-offers of sellers for metered units that have no offer,
// by unit, the nearest to what was asked first.
func (b *Buyer) Counters() []message.Counter {
	var list []message.Counter
	_, lacking := b.offering()
	for _, id := range b.order {
		for _, r := range b.sellers[id].reasons {
			if r.Unit < 0 || !lacking[r.Unit] {
				continue
			}
			for _, h := range r.Hints {
				if h.Tariff != (protocol.Tariff{}) {
					list = append(list, b.counter(r.Unit, id, h))
				}
			}
		}
	}
	slices.SortStableFunc(list, b.nearer)
	return list[:min(len(list), maxCounters)]
}

func (b *Buyer) counter(unit int, id protocol.AgentID, h protocol.Hint) message.Counter {
	c := message.Counter{
		Unit: unit, Resource: id.Name(), Seller: id, Start: h.Start, Cores: h.Cores, Price: h.Price,
		Later: b.need(unit, 0, h.Start, 0).late, Contract: h.Tariff,
	}
	c.Change = b.counterWords(c)
	return c
}

// nearer orders counter-offers: by unit, then cores, wait, price and contract, and
// at last by seller.
func (b *Buyer) nearer(x, y message.Counter) int {
	return cmp.Or(
		cmp.Compare(x.Unit, y.Unit), cmp.Compare(y.Cores, x.Cores), cmp.Compare(x.Later, y.Later),
		cmp.Compare(b.above(x), b.above(y)), cmp.Compare(x.Contract.P.Top, y.Contract.P.Top),
		cmp.Compare(x.Contract.Q.Top, y.Contract.Q.Top), cmp.Compare(x.Seller, y.Seller),
	)
}

// above is the price of a counter-offer, as far as it counts: within the ceiling
// one is as near as another.
func (b *Buyer) above(c message.Counter) protocol.Credits {
	return max(c.Price, b.cfg.Wants[c.Unit].Ceiling)
}

// sameContract reports whether a hint leaves the contract as it was asked for.
func (b *Buyer) sameContract(unit int, h protocol.Hint) bool {
	c := b.cfg.Wants[unit].Contract
	return h.Tariff == (protocol.Tariff{}) || c.P == h.Tariff.P && c.Q == h.Tariff.Q
}

// counterWords say what differs from what was asked.
func (b *Buyer) counterWords(c message.Counter) string {
	w := b.cfg.Wants[c.Unit]
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

// rampWords name the figures of a price function that differ, the price first.
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
