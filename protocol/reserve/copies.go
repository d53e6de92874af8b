package reserve

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// The copies that sellers countersign are the user's proof of what it bought.
// They and the bank's receipt come on different ways, in any order.

// complete reports whether every seller's copy is there.
func (c *Coordinator) complete() bool { return len(c.sales) == len(c.sellers) }

// countersigned keeps a seller's copy. When all are there the bank decides, or
// has decided already. Nothing is saved for it yet: a seller gives the same copy
// again, the decision is near and saves them, and a flush of the disk now would
// only be in the way of the bank's.
func (c *Coordinator) countersigned(now time.Time, from protocol.AgentID, s contract.Sale) protocol.Output {
	if c.state != Confirming || s.Verified.ID != c.bundle.ID || s.Seller.ID != from {
		return protocol.Output{} // late, repeated, or of another contract
	}
	c.sales[from] = s
	switch {
	case !c.complete():
		return protocol.Output{}
	case c.receipt != nil:
		return c.becomeDecided(now, c.receipt)
	}
	c.state = Deciding
	c.scheduleRetry(now)
	return protocol.Output{}
}

// saveCopies makes all copies durable, once, if the decision lets itself be
// waited for.
func (c *Coordinator) saveCopies() []protocol.Record {
	if c.copied {
		return nil
	}
	c.copied = true
	return []protocol.Record{c.save()}
}

// awaitCopies has the purchase wait for the copies that the bank's receipt has
// overtaken. That the bank has settled is saved by the caller.
func (c *Coordinator) awaitCopies(now time.Time, r *contract.VerifiedReceipt) {
	c.receipt, c.settledAt, c.voiding = r, now, false
	c.copiesBy = now.Add(protocol.CopyTimeout)
	c.retries = 0
	c.scheduleRetry(now)
}

// retryCopies asks again for the copies of a settled purchase. A seller that
// does not give one in time has none the less sold: the receipt says so.
func (c *Coordinator) retryCopies(now time.Time) protocol.Output {
	if !now.Before(c.copiesBy) {
		return c.becomeDecided(now, c.receipt)
	}
	c.retryAt = protocol.Earlier(c.retryAt, c.copiesBy)
	return protocol.Output{Send: c.confirmMissing()}
}

// confirmMissing brings the bundle again to every seller whose copy is missing.
func (c *Coordinator) confirmMissing() []protocol.Message {
	var list []protocol.Message
	for _, id := range c.sellers {
		if _, ok := c.sales[id]; !ok {
			list = append(list, c.confirmation(id))
		}
	}
	return list
}
