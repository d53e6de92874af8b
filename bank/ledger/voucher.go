package ledger

import (
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// voucherKey names the bundle that a voucher is for, by its conversation.
type voucherKey struct {
	user         protocol.AgentID
	conversation string
	currency     string
}

// Voucher holds an amount for the bundle of a conversation until a time, at most
// MaxVoucherAhead from now, so that its sellers know that it can be paid. The bundle is
// paid out of it first. A repeated request gets the same voucher.
func (l *Ledger) Voucher(now time.Time, user protocol.AgentID, currency, conversation string, amount protocol.Credits, until time.Time) (Hold, []protocol.Record, error) {
	key := voucherKey{user, conversation, currency}
	if err := l.holds.mayVoucher(now, key, until); err != nil {
		return Hold{}, nil, err
	}
	if h := l.holds.open[l.holds.vouchers[key]]; h != nil {
		if h.amount() != amount || h.until != row.Nanos(until) {
			return Hold{}, nil, refuse(protocol.CodeMismatch, "conversation has a voucher of %s until %s", h.amount(), row.Instant(h.until).Format(time.RFC3339))
		}
		return h.view(), nil, nil
	}
	ref := "voucher " + conversation
	parts, err := l.mayHold(now, user, currency, amount, until, ref)
	if err != nil {
		return Hold{}, nil, err
	}
	c := l.books.change()
	h := l.holds.begin(c, now, &hold{parts: parts, until: until.UnixNano(), ref: ref, voucher: &key})
	return h, c.recs, nil
}

// rest holds what a bundle has left of its voucher until that ends: it is signed, and sellers
// go on to count on it.
func (hs *holds) rest(c *change, now time.Time, v *hold, used []part) {
	h := &hold{until: v.until, ref: v.ref, voucher: v.voucher} // which counts among the open ones of its user
	for _, p := range v.parts {
		for _, u := range used {
			if u.line == p.line {
				p.amount -= min(p.amount, u.amount)
			}
		}
		if p.amount > 0 {
			h.parts = append(h.parts, p)
		}
	}
	if len(h.parts) > 0 && hs.room(1) == nil {
		hs.begin(c, now, h)
	}
}

func (hs *holds) mayVoucher(now time.Time, key voucherKey, until time.Time) error {
	if n := len(key.conversation); n < 1 || n > protocol.MaxConversation {
		return refuse(protocol.CodeMalformed, "conversation of %d bytes, want 1..%d", n, protocol.MaxConversation)
	}
	if until.After(now.Add(protocol.MaxVoucherAhead)) {
		return refuse(protocol.CodeExpired, "voucher until %s: at most %s ahead", until.Format(time.RFC3339), protocol.MaxVoucherAhead)
	}
	if n := hs.vouched[key.user]; n >= MaxUserVouchers && hs.vouchers[key] == 0 {
		return refuse(protocol.CodeLimit, "%d vouchers of %s are open, which is the most", n, key.user)
	}
	return nil
}

// voucher is the voucher of a bundle's conversation, or nil.
func (hs *holds) voucher(now time.Time, b *protocol.Bundle) *hold {
	if len(hs.vouchers) == 0 {
		return nil
	}
	h := hs.open[hs.vouchers[voucherKey{b.User, b.Conversation, b.Currency}]]
	if h == nil || hs.deadlines.passed(now, h.until) {
		return nil
	}
	return h
}
