package ledger

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
)

// Hold is money of one account that is out of its reach until it is posted,
// voided, or Until is over: exactly one of these.
type Hold struct {
	Number   uint64
	From     protocol.AgentID
	Currency string
	Amount   protocol.Credits
	Until    time.Time
	Ref      string
}

// Payment is a credit to one account.
type Payment struct {
	To     protocol.AgentID
	Amount protocol.Credits
}

// hold is an open hold, on one account or on a user's and its group's.
type hold struct {
	number  uint64
	parts   []part // 1..maxParts
	until   int64
	ref     string
	voucher *voucherKey // of a voucher's
	deal    *deal       // of a unit's
}

// part is what a hold takes of one account.
type part struct {
	line   *line
	amount protocol.Credits
}

func (h *hold) amount() protocol.Credits {
	var sum protocol.Credits
	for _, p := range h.parts {
		sum += p.amount
	}
	return sum
}

func (h *hold) currency() string { return h.parts[0].line.currency }

// payer is whose hold it is: with a group's part, the user's.
func (h *hold) payer() protocol.AgentID {
	switch {
	case h.voucher != nil:
		return h.voucher.user
	case h.deal != nil:
		return h.deal.user
	}
	return h.parts[0].line.account
}

func (h *hold) view() Hold {
	return Hold{Number: h.number, From: h.payer(), Currency: h.currency(), Amount: h.amount(), Until: fromNanos(h.until), Ref: h.ref}
}

// free are the moves that give all parts back, and pay some of it: out of the
// user's part first (000).
func (h *hold) free(paid protocol.Credits) []move {
	moves := make([]move, 0, len(h.parts)+1)
	for _, p := range h.parts {
		take := min(p.amount, paid)
		paid -= take
		moves = append(moves, move{line: p.line, amount: -take, held: -p.amount})
	}
	return moves
}

// Hold takes amount out of from's reach until a time. Until must lie ahead.
func (l *Ledger) Hold(now time.Time, from protocol.AgentID, currency string, amount protocol.Credits, until time.Time, ref string) (Hold, []protocol.Record, error) {
	parts, err := l.mayHold(now, from, currency, amount, until, ref)
	if err != nil {
		return Hold{}, nil, err
	}
	return l.hold(now, &hold{parts: parts, until: until.UnixNano(), ref: ref})
}

func (l *Ledger) hold(now time.Time, h *hold) (Hold, []protocol.Record, error) {
	c := l.change()
	c.openHold(h)
	moves := make([]move, 0, len(h.parts))
	for _, p := range h.parts {
		moves = append(moves, move{line: p.line, held: p.amount})
	}
	c.write(now, Entry{Kind: KindHold, Hold: h.number, Ref: h.ref}, nil, moves...)
	return h.view(), c.recs, nil
}

// openHold numbers a hold and keeps it; the entry is for the caller.
func (c *change) openHold(h *hold) {
	c.l.state.hold++
	h.number = c.l.state.hold
	c.l.keepHold(h)
	c.put(TableHolds, NumberKey(h.number), h.encode())
}

func (l *Ledger) mayHold(now time.Time, from protocol.AgentID, currency string, amount protocol.Credits, until time.Time, ref string) ([]part, error) {
	if l.recovery {
		return nil, l.recovering()
	}
	a, err := l.spender(from, currency)
	if err != nil {
		return nil, err
	}
	if err := checkRequest(amount, ref); err != nil {
		return nil, err
	}
	if !until.After(now) || until.Year() > maxYear {
		return nil, refuse(protocol.CodeExpired, "hold until %s: want a time ahead", until.Format(time.RFC3339))
	}
	if err := l.roomForHolds(1); err != nil {
		return nil, err
	}
	return newPurse(l, now, a, currency).take(amount)
}

func (l *Ledger) roomForHolds(n int) error {
	if len(l.holds)+n > MaxHolds {
		return refuse(protocol.CodeLimit, "%d holds are open, which is the most", len(l.holds))
	}
	return nil
}

// maxYear bounds deadlines: nanoseconds since 1970 fit 63 bits until 2262.
const maxYear = 2200

func (l *Ledger) keepHold(h *hold) {
	l.holds[h.number] = h
	l.awaitEnd(deadline{at: h.until, hold: h.number})
	if h.voucher != nil {
		l.vouchers[*h.voucher] = h.number
		l.vouched[h.voucher.user]++
	}
	if h.deal != nil {
		l.deals[h.deal.key] = h.number
	}
}

// PostHold pays out of a hold, at most its amount; the rest is free again. An
// account may stand in pays only once.
func (l *Ledger) PostHold(now time.Time, number uint64, pays []Payment, ref string) (Entry, []protocol.Record, error) {
	h, err := l.openHold(now, number)
	if err != nil {
		return Entry{}, nil, err
	}
	total, err := l.checkPays(now, h, pays, ref)
	if err != nil {
		return Entry{}, nil, err
	}
	c := l.change()
	moves := h.free(total)
	for _, p := range pays {
		moves = append(moves, move{line: c.line(l.accounts[p.To], h.currency()), amount: p.Amount})
	}
	return c.end(now, h, Entry{Kind: KindPost, Ref: ref}, moves...), c.recs, nil
}

func (l *Ledger) checkPays(now time.Time, h *hold, pays []Payment, ref string) (total protocol.Credits, err error) {
	if len(pays) < 1 || len(pays) > MaxPost {
		return 0, refuse(protocol.CodeMalformed, "hold %d: %d payments, want 1..%d", h.number, len(pays), MaxPost)
	}
	seen := make(map[protocol.AgentID]bool, len(pays))
	for _, p := range pays {
		a, err := l.find(p.To, h.currency())
		if err != nil {
			return 0, err
		}
		if err := checkRequest(p.Amount, ref); err != nil {
			return 0, err
		}
		if seen[p.To] {
			return 0, refuse(protocol.CodeMalformed, "hold %d: %s is paid twice", h.number, p.To)
		}
		seen[p.To] = true
		n := a.line(h.currency())
		if total, err = total.Add(p.Amount); err != nil || n != h.parts[0].line && !l.takes(now, n, p.Amount) {
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
	h, err := l.openHold(now, number)
	if err != nil {
		return Entry{}, nil, err
	}
	if len(ref) > MaxRef {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	}
	c := l.change()
	return c.end(now, h, Entry{Kind: KindVoidHold, Ref: ref}, h.free(0)...), c.recs, nil
}

// openHold is a hold that can still be posted or voided. Until the grace after
// a restart is over, none is too late. What is held for a unit ends only as its
// bundle says.
func (l *Ledger) openHold(now time.Time, number uint64) (*hold, error) {
	if l.recovery {
		return nil, l.recovering()
	}
	h := l.holds[number]
	if h == nil || h.deal != nil {
		return nil, refuse(protocol.CodeUnknown, "hold %d is not open: it was posted, voided, has expired, or never was", number)
	}
	if nanos(now) >= max(h.until, l.graceEnds) {
		return nil, refuse(protocol.CodeExpired, "hold %d expired at %s", number, fromNanos(h.until).Format(time.RFC3339))
	}
	return h, nil
}

// end closes a hold with the one entry that does.
func (c *change) end(now time.Time, h *hold, e Entry, moves ...move) Entry {
	c.closeHold(h)
	e.Hold = h.number
	return c.write(now, e, nil, moves...)
}

// closeHold forgets a hold; the entry is for the caller.
func (c *change) closeHold(h *hold) {
	delete(c.l.holds, h.number)
	if h.voucher != nil {
		delete(c.l.vouchers, *h.voucher)
		if c.l.vouched[h.voucher.user]--; c.l.vouched[h.voucher.user] == 0 {
			delete(c.l.vouched, h.voucher.user)
		}
	}
	if h.deal != nil {
		delete(c.l.deals, h.deal.key)
	}
	c.drop(TableHolds, NumberKey(h.number))
}

// Holds are all open holds in order of number.
func (l *Ledger) Holds() []Hold {
	all := make([]Hold, 0, len(l.holds))
	for _, h := range l.holds {
		all = append(all, h.view())
	}
	slices.SortFunc(all, func(x, y Hold) int { return cmp.Compare(x.Number, y.Number) })
	return all
}

// Claim is a unit whose seller has filed what it used, and that is not paid yet.
type Claim struct {
	Hold         Hold
	Contract     protocol.ContractID
	Unit         int
	User, Seller protocol.AgentID
	Due          protocol.Credits // by the record that was filed
	Disputed     bool             // else its user has until Hold.Until to say so
}

// Claims are the usage records that are filed and not paid, by hold.
func (l *Ledger) Claims() []Claim {
	var list []Claim
	for _, h := range l.holds {
		if d := h.deal; d != nil && d.stage != stageOpen {
			list = append(list, Claim{
				Hold: h.view(), Contract: d.key.contract.id(), Unit: d.key.unit, User: d.user, Seller: d.seller, Due: d.due, Disputed: d.stage == stageDisputed,
			})
		}
	}
	slices.SortFunc(list, func(x, y Claim) int { return cmp.Compare(x.Hold.Number, y.Hold.Number) })
	return list
}

// OpenHold is an open hold by number.
func (l *Ledger) OpenHold(number uint64) (Hold, bool) {
	h := l.holds[number]
	if h == nil {
		return Hold{}, false
	}
	return h.view(), true
}
