package ledger

import (
	"cmp"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

const MaxPost = 256 // accounts that one hold is posted to

// PostHold pays out of a hold, at most its amount, and frees the rest. Pays names each
// account once.
func (l *Ledger) PostHold(now time.Time, number uint64, pays []Payment, ref string) (Entry, []protocol.Record, error) {
	h, err := l.holds.find(now, number)
	if err != nil {
		return Entry{}, nil, err
	}
	total, err := l.holds.checkPays(now, h, pays, ref)
	if err != nil {
		return Entry{}, nil, err
	}
	c, moves := l.books.change(), h.free(total)
	for _, p := range pays {
		moves = append(moves, move{line: c.line(l.books.accounts[p.To], h.currency()), amount: p.Amount})
	}
	return l.holds.end(c, now, h, Entry{Kind: KindPost, Ref: ref}, moves...), c.recs, nil
}

func (hs *holds) checkPays(now time.Time, h *hold, pays []Payment, ref string) (total protocol.Credits, err error) {
	if len(pays) < 1 || len(pays) > MaxPost {
		return 0, refuse(protocol.CodeMalformed, "hold %d: %d payments, want 1..%d", h.number, len(pays), MaxPost)
	}
	seen := make(map[protocol.AgentID]bool, len(pays))
	for _, p := range pays {
		a, err := hs.books.find(p.To, h.currency())
		if err = cmp.Or(err, checkRequest(p.Amount, ref)); err != nil {
			return 0, err
		}
		if seen[p.To] {
			return 0, refuse(protocol.CodeMalformed, "hold %d: %s is paid twice", h.number, p.To)
		}
		seen[p.To] = true
		n := a.line(h.currency())
		if total, err = total.Add(p.Amount); err != nil || n != h.parts[0].line && !hs.books.takes(now, n, p.Amount) {
			return 0, refuse(protocol.CodeOverflow, "hold %d: payment of %s to %s: %s", h.number, p.Amount, p.To, protocol.ErrOverflow)
		}
	}
	if total > h.amount() {
		return 0, refuse(protocol.CodeFunds, "hold %d: payments of %s, held %s", h.number, total, h.amount())
	}
	return total, nil
}

// VoidHold frees a hold without payment.
func (l *Ledger) VoidHold(now time.Time, number uint64, ref string) (Entry, []protocol.Record, error) {
	h, err := l.holds.find(now, number)
	if err := cmp.Or(err, checkRef(ref)); err != nil {
		return Entry{}, nil, err
	}
	c := l.books.change()
	return l.holds.end(c, now, h, Entry{Kind: KindVoidHold, Ref: ref}, h.free(0)...), c.recs, nil
}

// find is a hold that can still be posted or voided. No request is late in the grace after a
// restart. The hold of a unit ends only by the terms of its bundle.
func (hs *holds) find(now time.Time, number uint64) (*hold, error) {
	if hs.recovery.on {
		return nil, errRecovering
	}
	h := hs.open[number]
	if h == nil || h.deal != nil {
		return nil, refuse(protocol.CodeUnknown, "hold %d is not open: it was posted, voided, has expired, or never was", number)
	}
	if hs.deadlines.passed(now, h.until) {
		return nil, refuse(protocol.CodeExpired, "hold %d expired at %s", number, row.Instant(h.until).Format(time.RFC3339))
	}
	return h, nil
}
