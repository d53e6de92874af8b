package ledger

import (
	"encoding/binary"
	"fmt"
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

// hold is an open hold.
type hold struct {
	number uint64
	line   *line
	amount protocol.Credits
	until  int64
	ref    string
}

func (h *hold) view() Hold {
	return Hold{Number: h.number, From: h.line.account, Currency: h.line.currency, Amount: h.amount, Until: fromNanos(h.until), Ref: h.ref}
}

func (h *hold) encode() []byte {
	b := append(make([]byte, 0, 64), rowVersion)
	b = binary.AppendUvarint(b, uint64(h.line.number))
	b = binary.AppendVarint(b, int64(h.amount))
	b = appendTime(b, h.until)
	return appendString(b, h.ref)
}

// holdRow is a record of TableHolds as stored.
type holdRow struct {
	number uint64
	line   uint32
	amount protocol.Credits
	until  int64
	ref    string
}

func decodeHold(key string, value []byte) (holdRow, error) {
	n, err := key64(key)
	if err != nil {
		return holdRow{}, fmt.Errorf("hold: %w", err)
	}
	d := newDecoder(value)
	h := holdRow{number: n, line: uint32(d.uvarint()), amount: d.credits(), until: d.nanos()}
	h.ref = d.string(MaxRef)
	if err := d.done(); err != nil {
		return holdRow{}, fmt.Errorf("hold %d: %w", n, err)
	}
	return h, nil
}

// Hold takes amount out of from's reach until a time. Until must lie ahead.
func (l *Ledger) Hold(now time.Time, from protocol.AgentID, currency string, amount protocol.Credits, until time.Time, ref string) (Hold, []protocol.Record, error) {
	a, err := l.find(from, currency)
	if err != nil {
		return Hold{}, nil, err
	}
	if err := l.mayHold(now, a.line(currency), amount, until, ref); err != nil {
		return Hold{}, nil, err
	}
	c := l.change()
	l.state.hold++
	h := &hold{number: l.state.hold, line: c.line(a, currency), amount: amount, until: until.UnixNano(), ref: ref}
	l.keepHold(h)
	c.put(TableHolds, NumberKey(h.number), h.encode())
	c.write(now, Entry{Kind: KindHold, Hold: h.number, Ref: ref}, nil, move{line: h.line, held: amount})
	return h.view(), c.recs, nil
}

func (l *Ledger) mayHold(now time.Time, n *line, amount protocol.Credits, until time.Time, ref string) error {
	if err := checkRequest(amount, ref); err != nil {
		return err
	}
	if !until.After(now) || until.Year() > maxYear {
		return refuse(protocol.CodeExpired, "hold until %s: want a time ahead", until.Format(time.RFC3339))
	}
	if have := n.available(); have < amount {
		return refuse(protocol.CodeFunds, "hold of %s: %s available", amount, have)
	}
	if n != nil && amount > protocol.MaxCredits-n.held { // overdraft can make more available than fits
		return refuse(protocol.CodeOverflow, "hold of %s: with %s held, %s", amount, n.held, protocol.ErrOverflow)
	}
	if len(l.holds) >= MaxHolds {
		return refuse(protocol.CodeLimit, "%d holds are open, which is the most", len(l.holds))
	}
	return nil
}

// maxYear bounds deadlines: nanoseconds since 1970 fit 63 bits until 2262.
const maxYear = 2200

func (l *Ledger) keepHold(h *hold) {
	l.holds[h.number] = h
	l.deadlines.add(deadline{at: h.until, hold: h.number})
}

// PostHold pays out of a hold, at most its amount; the rest is free again. An
// account may stand in pays only once.
func (l *Ledger) PostHold(now time.Time, number uint64, pays []Payment, ref string) (Entry, []protocol.Record, error) {
	h, err := l.openHold(now, number)
	if err != nil {
		return Entry{}, nil, err
	}
	total, err := l.checkPays(h, pays, ref)
	if err != nil {
		return Entry{}, nil, err
	}
	c := l.change()
	moves := []move{{line: h.line, amount: -total, held: -h.amount}}
	for _, p := range pays {
		moves = append(moves, move{line: c.line(l.accounts[p.To], h.line.currency), amount: p.Amount})
	}
	return c.end(now, h, Entry{Kind: KindPost, Ref: ref}, moves...), c.recs, nil
}

func (l *Ledger) checkPays(h *hold, pays []Payment, ref string) (total protocol.Credits, err error) {
	if len(pays) < 1 || len(pays) > MaxPost {
		return 0, refuse(protocol.CodeMalformed, "hold %d: %d payments, want 1..%d", h.number, len(pays), MaxPost)
	}
	seen := make(map[protocol.AgentID]bool, len(pays))
	for _, p := range pays {
		a, err := l.find(p.To, h.line.currency)
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
		n := a.line(h.line.currency)
		if total, err = total.Add(p.Amount); err != nil || n != h.line && !fits(n, p.Amount) {
			return 0, refuse(protocol.CodeOverflow, "hold %d: payment of %s to %s: %s", h.number, p.Amount, p.To, protocol.ErrOverflow)
		}
	}
	if total > h.amount {
		return 0, refuse(protocol.CodeFunds, "hold %d: payments of %s, held %s", h.number, total, h.amount)
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
	return c.end(now, h, Entry{Kind: KindVoidHold, Ref: ref}, move{line: h.line, held: -h.amount}), c.recs, nil
}

// openHold is a hold that can still be posted or voided. Until the grace after
// a restart is over, none is too late.
func (l *Ledger) openHold(now time.Time, number uint64) (*hold, error) {
	h := l.holds[number]
	if h == nil {
		return nil, refuse(protocol.CodeUnknown, "hold %d is not open: it was posted, voided, has expired, or never was", number)
	}
	if nanos(now) >= max(h.until, l.graceEnds) {
		return nil, refuse(protocol.CodeExpired, "hold %d expired at %s", number, fromNanos(h.until).Format(time.RFC3339))
	}
	return h, nil
}

// end closes a hold with the one entry that does.
func (c *change) end(now time.Time, h *hold, e Entry, moves ...move) Entry {
	delete(c.l.holds, h.number)
	c.drop(TableHolds, NumberKey(h.number))
	e.Hold = h.number
	return c.write(now, e, nil, moves...)
}

// OpenHold is an open hold by number.
func (l *Ledger) OpenHold(number uint64) (Hold, bool) {
	h := l.holds[number]
	if h == nil {
		return Hold{}, false
	}
	return h.view(), true
}
