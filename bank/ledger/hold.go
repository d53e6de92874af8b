package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// Hold is money that is out of its owner's reach until it is posted, voided, or Until is
// over: exactly one of these.
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

// hold is an open hold on one account, or on a user's and its group's.
type hold struct {
	number  uint64
	parts   []part // 1..maxParts
	until   int64
	ref     string
	voucher *voucherKey // if it is a voucher
	deal    *deal       // if it is for a unit
}

// part is the share of one account in a hold.
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

// payer is the user whose hold it is, whether its group has a part in it or not.
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
	return Hold{Number: h.number, From: h.payer(), Currency: h.currency(), Amount: h.amount(), Until: row.Instant(h.until), Ref: h.ref}
}

// free are the moves that end all parts and pay some of them, the user's part first (000).
func (h *hold) free(paid protocol.Credits) []move {
	moves := make([]move, 0, len(h.parts)+1)
	for _, p := range h.parts {
		take := min(p.amount, paid)
		paid -= take
		moves = append(moves, move{line: p.line, amount: -take, held: -p.amount})
	}
	return moves
}

// holds owns what is out of its owners' reach: the open holds, and those of them that are vouchers.
type holds struct {
	books     *books
	deadlines *deadlines
	recovery  *recovery
	open      map[uint64]*hold
	vouchers  map[voucherKey]uint64    // hold of a voucher
	vouched   map[protocol.AgentID]int // open vouchers per user
}

// Hold takes an amount out of its owner's reach until a time, which must lie ahead.
func (l *Ledger) Hold(now time.Time, from protocol.AgentID, currency string, amount protocol.Credits, until time.Time, ref string) (Hold, []protocol.Record, error) {
	parts, err := l.mayHold(now, from, currency, amount, until, ref)
	if err != nil {
		return Hold{}, nil, err
	}
	c := l.books.change()
	h := l.holds.begin(c, now, &hold{parts: parts, until: until.UnixNano(), ref: ref})
	return h, c.recs, nil
}

func (hs *holds) begin(c *change, now time.Time, h *hold) Hold {
	hs.add(c, h)
	moves := make([]move, 0, len(h.parts))
	for _, p := range h.parts {
		moves = append(moves, move{line: p.line, held: p.amount})
	}
	c.write(now, Entry{Kind: KindHold, Hold: h.number, Ref: h.ref}, nil, moves...)
	return h.view()
}

// add numbers a hold and keeps it; the caller writes the entry.
func (hs *holds) add(c *change, h *hold) {
	hs.books.state.hold++
	h.number = hs.books.state.hold
	hs.keep(h)
	c.put(TableHolds, NumberKey(h.number), h.encode())
}

func (l *Ledger) mayHold(now time.Time, from protocol.AgentID, currency string, amount protocol.Credits, until time.Time, ref string) ([]part, error) {
	if l.recovery.on {
		return nil, errRecovering
	}
	a, err := l.books.spender(from, currency)
	if err := cmp.Or(err, checkRequest(amount, ref)); err != nil {
		return nil, err
	}
	if !until.After(now) || until.Year() > maxYear {
		return nil, refuse(protocol.CodeExpired, "hold until %s: want a time in the future", until.Format(time.RFC3339))
	}
	if err := l.holds.room(1); err != nil {
		return nil, err
	}
	return l.Groups.purse(now, a, currency).take(amount)
}

func (hs *holds) room(n int) error {
	if len(hs.open)+n > MaxHolds {
		return refuse(protocol.CodeLimit, "%d holds are open, which is the most", len(hs.open))
	}
	return nil
}

// maxYear bounds deadlines: nanoseconds since 1970 fit 63 bits until 2262.
const maxYear = 2200

func (hs *holds) keep(h *hold) {
	hs.open[h.number] = h
	hs.deadlines.await(deadline{at: h.until, hold: h.number})
	if h.voucher != nil {
		hs.vouchers[*h.voucher] = h.number
		hs.vouched[h.voucher.user]++
	}
}

// forJobOf is the first open hold for a job of a seller.
func (hs *holds) forJobOf(seller protocol.AgentID) (number uint64, ok bool) {
	for n, h := range hs.open {
		if h.deal != nil && h.deal.seller == seller && (!ok || n < number) {
			number, ok = n, true
		}
	}
	return number, ok
}

// end closes a hold by an entry.
func (hs *holds) end(c *change, now time.Time, h *hold, e Entry, moves ...move) Entry {
	hs.drop(c, h)
	e.Hold = h.number
	return c.write(now, e, nil, moves...)
}

// drop forgets a hold; the caller writes the entry.
func (hs *holds) drop(c *change, h *hold) {
	delete(hs.open, h.number)
	if h.voucher != nil {
		delete(hs.vouchers, *h.voucher)
		if hs.vouched[h.voucher.user]--; hs.vouched[h.voucher.user] == 0 {
			delete(hs.vouched, h.voucher.user)
		}
	}
	c.drop(TableHolds, NumberKey(h.number))
}

// Holds are all open holds in order of number.
func (l *Ledger) Holds() []Hold {
	all := make([]Hold, 0, len(l.holds.open))
	for _, h := range l.holds.open {
		all = append(all, h.view())
	}
	slices.SortFunc(all, func(x, y Hold) int { return cmp.Compare(x.Number, y.Number) })
	return all
}

// Claim is a unit with a filed usage record that is not paid yet.
type Claim struct {
	Hold         Hold
	Contract     protocol.ContractID
	Unit         int
	User, Seller protocol.AgentID
	Due          protocol.Credits // by the filed record
	Record       string           // hash of the filed record
	Disputed     bool             // otherwise its user can dispute it until Hold.Until
	Why          string           // it is disputed; empty: for a reason of an earlier version
}

// Claims are the units with filed usage records, in order of hold.
func (l *Ledger) Claims() []Claim {
	var list []Claim
	for _, h := range l.holds.open {
		if d := h.deal; d != nil && d.stage != stageOpen {
			record, why, _ := strings.Cut(h.ref, " ")
			list = append(list, Claim{
				Hold: h.view(), Contract: d.key.contract.id(), Unit: d.key.unit, User: d.user, Seller: d.seller, Due: d.due,
				Record: record, Disputed: d.stage == stageDisputed, Why: why,
			})
		}
	}
	slices.SortFunc(list, func(x, y Claim) int { return cmp.Compare(x.Hold.Number, y.Hold.Number) })
	return list
}
