package ledger

import (
	"time"

	"ramp/bank/row"
	"ramp/bank/voids"
	"ramp/protocol"
)

// mayVoid reports whether another void contract of a user gets an entry.
func (bs *bundles) mayVoid(now time.Time, user protocol.AgentID) bool {
	return bs.outcomes.voids.Allows(bs.books.instant(now), user)
}

// over reports whether a bundle that is not decided can only be void by now.
func (bs *bundles) over(now time.Time, b *protocol.Bundle) bool {
	return !now.Before(b.SettleBy) || bs.lapsed(b)
}

// lapsed reports whether a bundle is void for ever unless it is decided. See package voids.
func (bs *bundles) lapsed(b *protocol.Bundle) bool {
	return row.Nanos(b.SettleBy) <= bs.outcomes.voids.Until(b.User)
}

// lapse voids a bundle that is over: with an entry or, beyond its user's allowance, without.
func (bs *bundles) lapse(c *change, now time.Time, k contractKey, g *gathering) protocol.Receipt {
	if g.settleBy > bs.outcomes.voids.Until(g.user) && bs.mayVoid(now, g.user) {
		return bs.void(c, now, k, g, protocol.CodeSettleBy)
	}
	c.recs = append(c.recs, bs.outcomes.voids.Lapse(g.user, g.settleBy)...)
	bs.drop(c, k, g)
	return bs.lapsedReceipt(k, g)
}

// lapsedReceipt is always the same for a contract: it names no entry, and the settle-by as
// its time.
func (bs *bundles) lapsedReceipt(k contractKey, g *gathering) protocol.Receipt {
	return bs.outcomes.receipt(k.id(), &outcome{reason: protocol.CodeSettleBy, time: g.settleBy, user: g.user, currency: g.currency})
}

// lapsed checks only the form of a row: what lapsed moved nothing.
func (a *auditor) lapsed(key string, value []byte) error {
	if _, err := voids.Decode(key, value); err != nil {
		a.bad("%s", err)
	}
	return nil
}
