package ledger

import (
	"time"

	"ramp/protocol"
)

// voucherKey is what a voucher is for: the bundle of one conversation.
type voucherKey struct {
	user         protocol.AgentID
	conversation string
	currency     string
}

// Voucher holds an amount for the bundle of a conversation, so that its sellers
// know that it can be paid: until a time, at most MaxVoucherAhead from now. That
// bundle is paid out of it first. Asking again for the same gets the same.
func (l *Ledger) Voucher(now time.Time, user protocol.AgentID, currency, conversation string, amount protocol.Credits, until time.Time) (Hold, []protocol.Record, error) {
	key := voucherKey{user, conversation, currency}
	if err := l.mayVoucher(now, key, until); err != nil {
		return Hold{}, nil, err
	}
	if h := l.holds[l.vouchers[key]]; h != nil {
		if h.amount() != amount || h.until != nanos(until) {
			return Hold{}, nil, refuse(protocol.CodeMismatch, "conversation has a voucher of %s until %s", h.amount(), fromNanos(h.until).Format(time.RFC3339))
		}
		return h.view(), nil, nil
	}
	ref := "voucher " + conversation
	parts, err := l.mayHold(now, user, currency, amount, until, ref)
	if err != nil {
		return Hold{}, nil, err
	}
	return l.hold(now, &hold{parts: parts, until: until.UnixNano(), ref: ref, voucher: &key})
}

func (l *Ledger) mayVoucher(now time.Time, key voucherKey, until time.Time) error {
	if n := len(key.conversation); n < 1 || n > protocol.MaxConversation {
		return refuse(protocol.CodeMalformed, "conversation of %d bytes, want 1..%d", n, protocol.MaxConversation)
	}
	if until.After(now.Add(protocol.MaxVoucherAhead)) {
		return refuse(protocol.CodeExpired, "voucher until %s: at most %s ahead", until.Format(time.RFC3339), protocol.MaxVoucherAhead)
	}
	if n := l.vouched[key.user]; n >= MaxUserVouchers && l.vouchers[key] == 0 {
		return refuse(protocol.CodeLimit, "%d vouchers of %s are open, which is the most", n, key.user)
	}
	return nil
}

// voucherFor is the voucher of a bundle's conversation; nil: it has none.
func (l *Ledger) voucherFor(now time.Time, b *protocol.Bundle) *hold {
	if len(l.vouchers) == 0 {
		return nil
	}
	h := l.holds[l.vouchers[voucherKey{b.User, b.Conversation, b.Currency}]]
	if h == nil || l.over(now, h) {
		return nil
	}
	return h
}
