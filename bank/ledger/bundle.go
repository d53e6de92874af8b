package ledger

import (
	"slices"
	"time"

	"ramp/protocol"
)

// gathering is a bundle that is not decided yet.
type gathering struct {
	user     protocol.AgentID
	currency string
	total    protocol.Credits
	settleBy int64
	pays     []Payment // one per seller, in order of its first unit
	got      []byte    // bit i: the copy of pays[i].To is there
	missing  int
}

func newGathering(b *protocol.Bundle) *gathering {
	g := &gathering{user: b.User, currency: b.Currency, total: b.Total, settleBy: nanos(b.SettleBy)}
	for i := range b.Units {
		u := &b.Units[i]
		p := g.seller(u.Seller)
		if p < 0 {
			g.pays = append(g.pays, Payment{To: u.Seller})
			p = len(g.pays) - 1
		}
		g.pays[p].Amount += u.Cost // at most Total, which was checked
	}
	g.got, g.missing = make([]byte, (len(g.pays)+7)/8), len(g.pays)
	return g
}

func (g *gathering) seller(id protocol.AgentID) int {
	return slices.IndexFunc(g.pays, func(p Payment) bool { return p.To == id })
}

// take notes seller i's copy; false: it was there already.
func (g *gathering) take(i int) bool {
	bit := byte(1) << (i % 8)
	if g.got[i/8]&bit != 0 {
		return false
	}
	g.got[i/8] |= bit
	g.missing--
	return true
}

// Copy takes the copy of a bundle that a seller has countersigned. The caller
// has verified both signatures and that id is the bundle's. The answer is the
// outcome so far; a repeated copy gets the recorded one. Copies that name
// another bank, come from an unnamed party, do not add up, look further ahead
// than MaxSettleAhead or are of a currency that is not kept here are refused, and
// change nothing. A bundle in a mode in which its currency is not paid is void
// (mode): its parties could not have known, and would ask for ever.
func (l *Ledger) Copy(now time.Time, id protocol.ContractID, b protocol.Bundle, seller protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.check(id, &b, seller, false)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, g, err := l.known(now, k, &b)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if o != nil {
		return l.receipt(id, o), nil, nil
	}
	if l.recovery {
		return protocol.Receipt{}, nil, l.recovering()
	}
	c := l.change()
	switch {
	case !now.Before(b.SettleBy):
		return c.voidBundle(now, k, g, &b, protocol.CodeSettleBy), c.recs, nil
	case l.early(&b):
		return c.voidBundle(now, k, g, &b, protocol.CodeMode), c.recs, nil
	}
	if err := l.payable(&b); err != nil {
		return protocol.Receipt{}, nil, err
	}
	return c.gather(now, k, g, &b, seller)
}

// gather notes a copy, and decides with the last one.
func (c *change) gather(now time.Time, k contractKey, g *gathering, b *protocol.Bundle, seller protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	known := g != nil
	if !known {
		g = newGathering(b)
	}
	if len(g.pays) > 1 && !known {
		if err := c.l.mayGather(b.User); err != nil {
			return protocol.Receipt{}, nil, err
		}
	}
	if !g.take(g.seller(seller)) {
		return c.l.undecided(k, g), nil, nil
	}
	if g.missing == 0 {
		return c.decide(now, k, g, b), c.recs, nil
	}
	if !known {
		c.l.keepGathering(k, g)
		c.put(TableGathering, string(k[:]), g.encode())
	}
	c.put(TableCopies, string(k[:]), append([]byte{rowVersion}, g.got...))
	return c.l.undecided(k, g), c.recs, nil
}

func (l *Ledger) mayGather(user protocol.AgentID) error {
	if len(l.gathering) >= MaxGathering {
		return refuse(protocol.CodeLimit, "%d bundles are undecided, which is the most", len(l.gathering))
	}
	if n := l.gathers[user]; n >= MaxUserGather {
		return refuse(protocol.CodeLimit, "%d bundles of %s are undecided, which is the most", n, user)
	}
	return nil
}

func (l *Ledger) keepGathering(k contractKey, g *gathering) {
	l.gathering[k] = g
	l.gathers[g.user]++
	l.awaitEnd(deadline{at: g.settleBy, contract: k})
}

func (l *Ledger) undecided(k contractKey, g *gathering) protocol.Receipt {
	return protocol.Receipt{Version: ReceiptVersion, Bank: l.cfg.Bank, Contract: k.id(), Outcome: protocol.OutcomeGathering, User: g.user, Currency: g.currency}
}

// Void decides against a bundle because its user or a named seller asks, also if
// it could not be paid here. A bundle that is decided already gets the recorded
// answer.
func (l *Ledger) Void(now time.Time, id protocol.ContractID, b protocol.Bundle, by protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	k, err := l.check(id, &b, by, true)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	o, g, err := l.known(now, k, &b)
	if err != nil {
		return protocol.Receipt{}, nil, err
	}
	if o != nil {
		return l.receipt(id, o), nil, nil
	}
	if l.recovery {
		return protocol.Receipt{}, nil, l.recovering()
	}
	reason := protocol.CodeAbandoned
	if !now.Before(b.SettleBy) {
		reason = protocol.CodeSettleBy
	}
	c := l.change()
	return c.voidBundle(now, k, g, &b, reason), c.recs, nil
}

// known is what there is of a bundle: its outcome, the copies so far, or neither
// if it is new. A new one must not look too far ahead; one that has an answer
// gets it, whatever the clock says now.
func (l *Ledger) known(now time.Time, k contractKey, b *protocol.Bundle) (*outcome, *gathering, error) {
	if o := l.recent(k); o != nil {
		return o, nil, nil
	}
	if g := l.gathering[k]; g != nil {
		return nil, g, nil
	}
	if l.forgotten(k, nanos(b.SettleBy)) {
		return nil, nil, ErrAskStore
	}
	if b.SettleBy.After(now.Add(protocol.MaxSettleAhead)) {
		return nil, nil, refuse(protocol.CodeSettleBy, "settle-by %s is more than %s ahead", b.SettleBy.Format(time.RFC3339), protocol.MaxSettleAhead)
	}
	return nil, nil, nil
}

// check says why a request about a bundle must change nothing.
func (l *Ledger) check(id protocol.ContractID, b *protocol.Bundle, by protocol.AgentID, userMay bool) (contractKey, error) {
	k, err := parseContract(id)
	if err != nil {
		return k, err
	}
	named := userMay && by == b.User || slices.ContainsFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Seller == by })
	switch {
	case b.Bank != l.cfg.Bank:
		return k, refuse(protocol.CodeNoBank, "bundle names bank %s, this is %s", b.Bank, l.cfg.Bank)
	case b.Version != protocol.BundleVersion:
		return k, refuse(protocol.CodeMalformed, "bundle has version %d, want %d", b.Version, protocol.BundleVersion)
	case len(b.Units) < 1 || len(b.Units) > protocol.MaxUnits:
		return k, refuse(protocol.CodeMalformed, "bundle has %d units, want 1..%d", len(b.Units), protocol.MaxUnits)
	case !named:
		return k, refuse(protocol.CodeForbidden, "%s is not a party of the bundle that may ask this", by)
	case len(b.Currency) > MaxCurrency:
		return k, refuse(protocol.CodeNoBank, "currency %.40q…: want at most %d bytes", b.Currency, MaxCurrency)
	}
	return k, first(checkMode(b), checkTotal(b))
}

// checkPayable is check, for what can only be asked of a bundle that this bank may pay.
func (l *Ledger) checkPayable(id protocol.ContractID, b *protocol.Bundle, by protocol.AgentID, userMay bool) (contractKey, error) {
	k, err := l.check(id, b, by, userMay)
	if err != nil {
		return k, err
	}
	return k, l.payable(b)
}

// early reports whether a bundle is to be paid before its currency is. Barter pays
// when a job has succeeded (000).
func (l *Ledger) early(b *protocol.Bundle) bool {
	return b.Mode == protocol.ModeOnReservation && l.policies[b.Currency].Kind == PolicyBarter
}

// payable says why this bank cannot pay a sound bundle.
func (l *Ledger) payable(b *protocol.Bundle) error {
	switch {
	case !l.knows(b.Currency):
		return refuse(protocol.CodeNoBank, "currency %q is not kept here", b.Currency)
	case l.early(b):
		return refuse(protocol.CodeMode, "%s is bartered, and not paid at the reservation", b.Currency)
	}
	for i := range b.Units {
		if u := &b.Units[i]; b.Mode != protocol.ModeOnReservation && u.Slot.End.Year() > maxYear {
			return refuse(protocol.CodeMalformed, "unit %d ends %s: want before %d", u.Unit+1, u.Slot.End.Format(time.RFC3339), maxYear)
		}
	}
	return nil
}

// checkMode holds a bundle's mode against its units.
func checkMode(b *protocol.Bundle) error {
	if !b.Mode.Known() {
		return refuse(protocol.CodeMode, "settlement mode %.40q is unknown", b.Mode)
	}
	for i := range b.Units {
		u := &b.Units[i]
		if b.Mode == protocol.ModeMetered {
			if err := u.Tariff.Validate(); err != nil {
				return refuse(protocol.CodeMalformed, "unit %d: %s", u.Unit+1, err)
			}
		} else if u.Tariff != (protocol.Tariff{}) {
			return refuse(protocol.CodeMalformed, "unit %d has a tariff, but its bundle is not metered", u.Unit+1)
		}
		if b.Mode != protocol.ModeOnReservation && u.Cost <= 0 {
			return refuse(protocol.CodeMalformed, "unit %d costs %s: want more than zero", u.Unit+1, u.Cost)
		}
	}
	return nil
}

func checkTotal(b *protocol.Bundle) error {
	var sum protocol.Credits
	for i := range b.Units {
		u := &b.Units[i]
		if u.Cost < 0 {
			return refuse(protocol.CodeMalformed, "unit %d costs %s, less than nothing", u.Unit+1, u.Cost)
		}
		var err error
		if sum, err = sum.Add(u.Cost); err != nil {
			return refuse(protocol.CodeOverflow, "units up to %d: %s", u.Unit+1, err)
		}
		if slices.ContainsFunc(b.Units[:i], func(v protocol.BundleUnit) bool { return v.Unit == u.Unit }) {
			return refuse(protocol.CodeMalformed, "unit %d stands twice in the bundle", u.Unit+1)
		}
	}
	if sum != b.Total {
		return refuse(protocol.CodeMalformed, "units cost %s, the total is %s", sum, b.Total)
	}
	return nil
}
