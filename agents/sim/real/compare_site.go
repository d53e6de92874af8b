package real

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/reserve"
)

// site compares a seller's journal with its batch system, the bank, and its number of cores.
func (c *comparison) site(s siteBook) {
	for _, id := range s.contrary {
		c.differ("%s has two decisions of the bank about contract %s", s.name, id)
	}
	sold := map[string]protocol.Slot{}
	for _, l := range s.lines {
		if !ended(l.State) {
			c.differ("%s has reservation %s %s when everything is over", s.name, l.ID, l.State)
		}
		if l.State != string(reserve.ClaimSold) {
			continue
		}
		sold[l.ID] = l.Slot
		if e, ok := c.outcomes[l.Contract]; !ok || e.Kind != ledger.KindSettle || !c.names(l.Contract, s.id, l.ID) {
			c.differ("%s has sold %s, but no settled contract names it (%.8s)", s.name, l.ID, l.Contract)
		}
	}
	c.batchSystem(s, sold)
	if most := busiest(sold); most > c.Cores {
		c.differ("%s has sold %d cores at once, and has %d", s.name, most, c.Cores)
	}
}

// names reports whether a contract names a seller's reservation.
func (c *comparison) names(id protocol.ContractID, seller protocol.AgentID, reservation string) bool {
	return slices.ContainsFunc(c.signed[id].Units, func(u protocol.BundleUnit) bool {
		return u.Seller == seller && u.Reservation == reservation
	})
}

// batchSystem compares sold slots with the reservations of the batch system.
func (c *comparison) batchSystem(s siteBook, sold map[string]protocol.Slot) {
	for _, id := range slices.Sorted(maps.Keys(s.batch)) {
		slot, ok := sold[id]
		switch {
		case !ok:
			c.differ("%s: the batch system has reservation %s, which is not sold", s.name, id)
		case !same(slot, s.batch[id]):
			c.differ("%s: %s is sold as %+v, but the batch system has %+v", s.name, id, slot, s.batch[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sold)) {
		if _, ok := s.batch[id]; !ok && sold[id].End.After(c.now) {
			c.differ("%s: %s is sold, but the batch system does not have it", s.name, id)
		}
	}
}

// busiest is the maximum number of cores in use at any instant.
func busiest(slots map[string]protocol.Slot) int {
	type step struct {
		at    time.Time
		cores int
	}
	var steps []step
	for _, s := range slots {
		steps = append(steps, step{s.Start, s.Cores}, step{s.End, -s.Cores})
	}
	slices.SortFunc(steps, func(x, y step) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.cores, y.cores)) })
	now, most := 0, 0
	for _, s := range steps {
		now += s.cores
		most = max(most, now)
	}
	return most
}
