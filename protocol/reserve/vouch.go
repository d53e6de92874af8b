package reserve

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// A seller holds beyond a buyer's allowance only for a voucher: the signed hold of the
// buyer's bank for the bundle of the conversation. The buyer asks its bank for one when a
// seller refuses a vote with voucher, and then asks that seller again.

// vouched reports whether a voucher covers the offer, and what the buyer holds in the same
// conversation, until the hold ends.
func (h *holds) vouched(m protocol.Message, d *deal, a message.Acceptance, until time.Time) bool {
	if a.Voucher == nil || !a.Voucher.Checked() {
		return false
	}
	cost := a.Offer.Cost
	if d != nil {
		for _, c := range d.claims {
			if c.unsold() {
				cost = min(cost+c.item.Cost, protocol.MaxCredits)
			}
		}
	}
	v := a.Voucher.Note
	return v.User == m.Sender && v.Conversation == m.Conversation && v.Amount >= cost && !v.Until.Before(until) &&
		slices.Contains(h.cfg.Terms, protocol.Terms{Bank: v.Bank, Currency: v.Currency})
}

// vouching is the buyer's side: the voucher of one purchase.
type vouching struct {
	request protocol.Message // to the bank; its body is nil until a seller wants a voucher
	retryAt time.Time
	refused []protocol.Reason // the bank gives none; nil: it may
	differ  bool              // see ClocksDiffer
	voucher *contract.VerifiedNote[contract.Voucher]
}

const voucherTag = "voucher"

// voucherRetry is the time between two requests for the same voucher. A bank gives the
// same one again.
const voucherRetry = 2 * time.Second

// voucherHolds is for how many holds a voucher lasts, from the request: votes that are
// refused lead to others.
const voucherHolds = 2

// vouch takes a seller's demand for a voucher. It reports whether the seller will be asked
// again; the Output asks it, or the bank.
func (e *election) vouch(now time.Time, b *ballot) (protocol.Output, bool) {
	if b.vouched || e.vouching.refused != nil {
		return protocol.Output{}, false
	}
	b.waits, b.deadline = true, now.Add(protocol.VoteTimeout)
	switch {
	case e.vouching.voucher != nil:
		return e.askAgain(now), true
	case e.vouching.request.Body != nil:
		return protocol.Output{}, true
	}
	e.vouching.request = e.cfg.message(e.cfg.Terms.Bank, protocol.Request, protocol.ProtocolRequest, message.VoucherRequest{
		Conversation: e.cfg.Conversation, Currency: e.cfg.Terms.Currency, Amount: e.total(), Until: now.Add(voucherHolds * e.cfg.Hold).UTC(),
	})
	e.vouching.request.ReplyWith = voucherTag
	return e.vouching.ask(now), true
}

func (v *vouching) ask(now time.Time) protocol.Output {
	v.retryAt = now.Add(voucherRetry)
	return protocol.Output{Send: []protocol.Message{v.request}}
}

// total is the cost of the dearest set that is voted on.
func (e *election) total() (most protocol.Credits) {
	for _, s := range e.slates {
		var sum protocol.Credits
		for _, b := range s.ballots {
			sum = min(sum+b.bid.Offer.Cost, protocol.MaxCredits)
		}
		most = max(most, sum)
	}
	return most
}

// vouched takes the bank's voucher, and asks again those who demanded it.
func (c *Coordinator) vouched(now time.Time, m protocol.Message, v contract.VerifiedNote[contract.Voucher]) protocol.Output {
	n, mine := v.Note, &c.votes.vouching
	if c.state != Voting || mine.voucher != nil || !v.Checked() ||
		m.Sender != c.cfg.Terms.Bank || n.Bank != m.Sender || n.User != c.cfg.Self || n.Conversation != c.cfg.Conversation {
		return protocol.Output{} // late, repeated, or not for this purchase
	}
	mine.voucher, mine.retryAt = &v, time.Time{}
	out := c.loseLate(now) // a seller that was silent until now is asked for nothing more
	if c.state == Voting {
		out = out.Join(c.votes.askAgain(now))
	}
	return out.Join(c.proceed(now))
}

func (e *election) askAgain(now time.Time) protocol.Output {
	var out protocol.Output
	for _, b := range e.all() {
		if b.waits {
			b.waits, b.askedAt, b.deadline = false, now, now.Add(protocol.VoteTimeout)
			out.Send = append(out.Send, e.ask(now, b))
		}
	}
	return out
}

// unvouched loses the bids that wait for a voucher which the bank refuses or does not give
// in time. A bank that is not available now is asked again.
func (c *Coordinator) unvouched(now time.Time, reasons []protocol.Reason) protocol.Output {
	var out protocol.Output
	if slices.ContainsFunc(reasons, func(r protocol.Reason) bool {
		return r.Code == protocol.CodeSilent || r.Code == protocol.CodeUnavailable
	}) {
		return out
	}
	v := &c.votes.vouching
	v.refused, v.retryAt = reasons, time.Time{}
	q, ok := v.request.Body.(message.VoucherRequest)
	v.differ = ok && now.Before(q.Until) && slices.ContainsFunc(reasons, func(r protocol.Reason) bool { return r.Code == protocol.CodeExpired })
	for c.state == Voting {
		asked := c.votes.all()
		i := slices.IndexFunc(asked, func(b *ballot) bool { return b.waits })
		if i < 0 {
			break
		}
		asked[i].waits = false
		out = out.Join(c.lose(now, asked[i], reasons))
	}
	return out
}

// vouchersDue asks the bank again, and gives up bids whose voucher is late.
func (c *Coordinator) vouchersDue(now time.Time) protocol.Output {
	if !slices.ContainsFunc(c.votes.all(), func(b *ballot) bool { return b.waits && !now.Before(b.deadline) }) {
		if at := c.votes.vouching.retryAt; at.IsZero() || now.Before(at) {
			return protocol.Output{}
		}
		return c.votes.vouching.ask(now)
	}
	return c.unvouched(now, []protocol.Reason{{Code: protocol.CodeVoucher, Unit: protocol.AllUnits, Note: "the bank gave no voucher in time"}})
}
