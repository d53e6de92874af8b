package index

import (
	"cmp"
	"math/bits"
	"slices"

	"ramp/protocol"
	"ramp/protocol/message"
)

// crossing is in how many rounds an idle seller is assumed to go from its start price to
// its lowest, and alike the shuffle: asks within 1/alike of the lowest count as equal.
const (
	crossing = 4
	alike    = 40
)

// Drop is what a seller is expected to take off its price in a round. Load is in eighths
// of its machine.
func Drop(start, least protocol.Credits, load int) protocol.Credits {
	band, idle := max(0, start-least), max(0, message.MaxLoad+1-load)
	return band / (crossing * (message.MaxLoad + 1)) * protocol.Credits(idle)
}

// Expected is what a seller is expected to ask after some rounds that began at a price.
func Expected(r message.IndexRow, from protocol.Credits, rounds int) protocol.Credits {
	hi, fall := bits.Mul64(uint64(Drop(r.Start, r.Min, r.Load)), uint64(max(rounds, 0)))
	if hi > 0 || fall > uint64(from) {
		return r.Min
	}
	return max(from-protocol.Credits(fall), r.Min)
}

// ranked is a row in its place: the lower band of asks first, then the lower lot.
type ranked struct {
	message.IndexRow
	ask  protocol.Credits
	band protocol.Credits
	lot  uint64
}

// rank orders rows by what their sellers are expected to ask in the end, after some rounds
// that began at a price.
func rank(rows []message.IndexRow, objective protocol.Objective, from protocol.Credits, rounds int, salt uint64) []ranked {
	list := make([]ranked, len(rows))
	best := protocol.Credits(0)
	for i, r := range rows {
		x := ranked{IndexRow: r, ask: Expected(r, from, rounds), lot: lot(salt, r.Seller)}
		if objective == protocol.ObjectiveTime {
			x.ask = protocol.Credits(r.Load) // an idle machine starts first
		}
		if i == 0 || x.ask < best {
			best = x.ask
		}
		list[i] = x
	}
	for i := range list {
		list[i].band = (list[i].ask - best) / max(best/alike, 1)
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.band, b.band), compareLots(a, b))
	})
	return list
}

func compareLots(a, b ranked) int {
	return cmp.Or(cmp.Compare(a.lot, b.lot), cmp.Compare(a.Seller, b.Seller))
}
