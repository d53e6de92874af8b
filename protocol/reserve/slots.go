package reserve

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// slots keeps the seller's book and the batch system in step with its claims.
type slots struct{ book Book }

// release frees a reservation, and asks again until the batch system confirms.
func (s slots) release(t *turn, c *claim) {
	c.releasing = true
	c.retries = 0
	t.backOff(c)
	s.book.Remove(c.id)
	t.touch(c.deal)
	t.queue(message.Release{ID: c.id})
}

// released takes the batch system's confirmation.
func (s slots) released(t *turn, c *claim) {
	c.releasing, c.retryAt = false, time.Time{}
	if c.owes() {
		t.backOff(c)
	}
	t.touch(c.deal)
}

// remakeTime is how long the seller asks an unreachable batch system for a lost
// slot after it has begun: a batch system that has just started may not know its
// nodes yet, and the job in the slot runs on meanwhile.
const remakeTime = time.Minute

// remake asks the batch system for a sold slot that it has lost.
func (s slots) remake(t *turn, c *claim) {
	if !c.remaking {
		c.remaking, c.lostAt = true, t.now
	}
	t.backOff(c)
	t.queue(message.Reserve{ID: c.id, Slot: c.item.Slot, Again: true})
}

// remade takes the answer, and reports whether the slot is lost for good. The seller asks an
// unreachable batch system again until the slot begins, or for remakeTime; a refusal is final.
func (s slots) remade(t *turn, c *claim, r message.Reserved) (lost bool) {
	if r.OK {
		c.remaking, c.granted, c.retryAt, c.retries = false, t.now, time.Time{}, 0
		return false
	}
	return r.Reason.Code != protocol.CodeUnavailable || c.tooLateToRemake(t.now)
}

func (c *claim) tooLateToRemake(now time.Time) bool {
	return !now.Before(c.item.Slot.Start) && !now.Before(c.lostAt.Add(remakeTime))
}

// rebook books a slot that is not over after all.
func (s slots) rebook(now time.Time, id string, slot protocol.Slot, blocks bool) {
	if blocks && slot.End.After(now) {
		s.book.Remove(id)
		s.book.Add(id, slot)
	}
}

// retry repeats a release or a request for a lost slot, and reports whether the
// slot is lost for good.
func (s slots) retry(t *turn, c *claim) (lost bool) {
	if c.releasing {
		t.backOff(c)
		t.queue(message.Release{ID: c.id})
	}
	if c.remaking && !c.tooLateToRemake(t.now) {
		s.remake(t, c)
		return false
	}
	return c.remaking
}

// owes reports whether the bank still has to pay a refund for a claim.
func (c *claim) owes() bool {
	return c.refund != nil && !c.refund.paid || c.state == ClaimBroken && c.refund == nil
}

// reappeared reports whether a claim that the batch system lists was freed
// before: a batch system may forget a release, as it may forget a grant.
func (c *claim) reappeared() bool {
	return (c.state == ClaimFreed || c.state == ClaimCancelled || c.state == ClaimBroken || c.vacant) && !c.releasing
}

// left reports whether the job of a sold claim is over and its cores are free, though its
// slot may not be over.
func (c *claim) left() bool { return c.job != nil || c.vacant }

// missing reports whether the batch system should have listed the claim's
// reservation at an instant.
func (c *claim) missing(at time.Time) bool {
	booked := c.state == ClaimHeld || c.state == ClaimCountersigned || c.state == ClaimSold
	return booked && at.After(c.granted) && c.item.Slot.End.After(at) && !c.remaking && !c.releasing && !c.left()
}

func covers(got, want protocol.Slot) bool {
	return got.Cores >= want.Cores && (want.Nodes == 0 || got.Nodes == want.Nodes) && !got.Start.After(want.Start) && !got.End.Before(want.End)
}
