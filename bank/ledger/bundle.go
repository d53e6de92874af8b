package ledger

import (
	"cmp"
	"slices"
	"time"

	"ramp/bank/row"
	"ramp/bank/voids"
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

// bundles owns the bundles that are not decided yet, and decides them.
type bundles struct {
	books      *books
	deadlines  *deadlines
	recovery   *recovery
	holds      *holds
	groups     *Groups
	outcomes   *outcomes
	sales      *sales
	deals      *deals
	byContract map[contractKey]*gathering
	perUser    map[protocol.AgentID]int
}

func newGathering(b *protocol.Bundle) *gathering {
	g := &gathering{user: b.User, currency: b.Currency, total: b.Total, settleBy: row.Nanos(b.SettleBy)}
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

// take notes seller i's copy, and reports whether it is the first.
func (g *gathering) take(i int) bool {
	bit := byte(1) << (i % 8)
	if g.got[i/8]&bit != 0 {
		return false
	}
	g.got[i/8] |= bit
	g.missing--
	return true
}

// Copy takes the copy of a bundle that a seller has countersigned. The caller has
// verified both signatures and that id is the bundle's. The answer is the outcome so
// far; a repeated copy gets the recorded one. Copies that name another bank, come from
// an unnamed party, do not add up, settle later than MaxSettleAhead or use a currency
// that the bank does not keep are refused, and change nothing. A bundle whose currency
// is not paid in its mode is void (mode): its parties could not have known that, and
// would never stop asking. Beyond the allowance of its user (package voids) nothing is
// void before its settle-by: a bundle that cannot be paid stays undecided until then.
func (l *Ledger) Copy(now time.Time, id protocol.ContractID, b protocol.Bundle, seller protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	k, g, recorded, err := l.bundles.open(now, id, &b, seller, false)
	if err != nil || recorded.Contract != "" {
		return recorded, nil, err
	}
	c := l.books.change()
	switch {
	case l.bundles.over(now, &b):
		return l.bundles.lapse(c, now, k, cmp.Or(g, newGathering(&b))), c.recs, nil
	case l.bundles.early(&b) && l.bundles.mayVoid(now, b.User):
		return l.bundles.void(c, now, k, cmp.Or(g, newGathering(&b)), protocol.CodeMode), c.recs, nil
	}
	if err := l.bundles.payable(&b); err != nil {
		return protocol.Receipt{}, nil, err
	}
	return l.bundles.gather(c, now, k, g, &b, seller)
}

// gather notes a copy, and decides with the last one.
func (bs *bundles) gather(c *change, now time.Time, k contractKey, g *gathering, b *protocol.Bundle, seller protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	known := g != nil
	if !known {
		g = newGathering(b)
	}
	if !g.take(g.seller(seller)) {
		return bs.soFar(k, g), nil, nil
	}
	if g.missing == 0 {
		if r, decided := bs.decide(c, now, k, g, b); decided {
			return r, c.recs, nil
		}
	}
	if !known {
		if err := bs.mayGather(b.User); err != nil {
			return protocol.Receipt{}, nil, err
		}
		bs.keep(k, g)
		c.put(TableGathering, string(k[:]), g.encode())
	}
	c.put(TableCopies, string(k[:]), append([]byte{row.Version}, g.got...))
	return bs.soFar(k, g), c.recs, nil
}

func (bs *bundles) mayGather(user protocol.AgentID) error {
	if len(bs.byContract) >= MaxGathering {
		return refuse(protocol.CodeLimit, "%d bundles are undecided, which is the most", len(bs.byContract))
	}
	if n := bs.perUser[user]; n >= MaxUserGather {
		return refuse(protocol.CodeLimit, "%d bundles of %s are undecided, which is the most", n, user)
	}
	return nil
}

func (bs *bundles) keep(k contractKey, g *gathering) {
	bs.byContract[k] = g
	bs.perUser[g.user]++
	bs.deadlines.await(deadline{at: g.settleBy, contract: k})
}

func (bs *bundles) soFar(k contractKey, g *gathering) protocol.Receipt {
	return protocol.Receipt{Version: ReceiptVersion, Bank: bs.books.cfg.Bank, Contract: k.id(), Outcome: protocol.OutcomeGathering, User: g.user, Currency: g.currency}
}

// Void decides against a bundle because its user or a named seller asks, also if
// it could not be paid here. A bundle that is decided already gets the recorded
// answer. Before settle-by it is refused (limit) beyond the user's allowance.
func (l *Ledger) Void(now time.Time, id protocol.ContractID, b protocol.Bundle, by protocol.AgentID) (protocol.Receipt, []protocol.Record, error) {
	k, g, recorded, err := l.bundles.open(now, id, &b, by, true)
	if err != nil || recorded.Contract != "" {
		return recorded, nil, err
	}
	c := l.books.change()
	if l.bundles.over(now, &b) {
		return l.bundles.lapse(c, now, k, cmp.Or(g, newGathering(&b))), c.recs, nil
	}
	if !l.bundles.mayVoid(now, b.User) {
		return protocol.Receipt{}, nil, refuse(protocol.CodeLimit, "%d contracts of %s were void within %s: this one stays undecided until its settle-by", voids.Allowance, b.User, protocol.OutcomeMemory)
	}
	return l.bundles.void(c, now, k, cmp.Or(g, newGathering(&b)), protocol.CodeAbandoned), c.recs, nil
}

// open checks a request that may decide a bundle: what it has gathered so far, or the
// recorded answer if it is decided.
func (bs *bundles) open(now time.Time, id protocol.ContractID, b *protocol.Bundle, by protocol.AgentID, userMay bool) (k contractKey, g *gathering, recorded protocol.Receipt, err error) {
	if k, err = bs.check(id, b, by, userMay); err != nil {
		return k, nil, recorded, err
	}
	o, g, err := bs.known(now, k, b)
	switch {
	case err != nil:
		return k, nil, recorded, err
	case o != nil:
		return k, nil, bs.outcomes.receipt(id, o), nil
	case g == nil && bs.lapsed(b):
		return k, nil, bs.lapsedReceipt(k, newGathering(b)), nil
	case bs.recovery.on:
		return k, nil, recorded, errRecovering
	}
	return k, g, recorded, nil
}

// known is the outcome of a bundle, or the copies so far, or neither if it is new. Only a new one
// must not settle too far ahead: a recorded answer does not depend on the clock.
func (bs *bundles) known(now time.Time, k contractKey, b *protocol.Bundle) (*outcome, *gathering, error) {
	if o := bs.outcomes.recent(k); o != nil {
		return o, nil, nil
	}
	if g := bs.byContract[k]; g != nil {
		return nil, g, nil
	}
	if bs.outcomes.forgotten(k, row.Nanos(b.SettleBy)) {
		return nil, nil, ErrAskStore
	}
	if b.SettleBy.After(now.Add(protocol.MaxSettleAhead)) {
		return nil, nil, refuse(protocol.CodeSettleBy, "settle-by %s is more than %s ahead", b.SettleBy.Format(time.RFC3339), protocol.MaxSettleAhead)
	}
	return nil, nil, nil
}

// check refuses a request about a bundle that is malformed, or not for its sender.
func (bs *bundles) check(id protocol.ContractID, b *protocol.Bundle, by protocol.AgentID, userMay bool) (contractKey, error) {
	k, err := parseContract(id)
	if err != nil {
		return k, err
	}
	named := userMay && by == b.User || slices.ContainsFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Seller == by })
	switch {
	case b.Bank != bs.books.cfg.Bank:
		return k, refuse(protocol.CodeNoBank, "bundle names bank %s, this is %s", b.Bank, bs.books.cfg.Bank)
	case b.Version != protocol.BundleVersion:
		return k, refuse(protocol.CodeMalformed, "bundle has version %d, want %d", b.Version, protocol.BundleVersion)
	case len(b.Units) < 1 || len(b.Units) > protocol.MaxUnits:
		return k, refuse(protocol.CodeMalformed, "bundle has %d units, want 1..%d", len(b.Units), protocol.MaxUnits)
	case !named:
		return k, refuse(protocol.CodeForbidden, "%s is not a party of the bundle, or may not ask this", by)
	case len(b.Currency) > MaxCurrency:
		return k, refuse(protocol.CodeNoBank, "currency %.40q…: want at most %d bytes", b.Currency, MaxCurrency)
	}
	return k, cmp.Or(checkMode(b), checkTotal(b))
}

// checkPayable is check for requests about a bundle that this bank can pay.
func (bs *bundles) checkPayable(id protocol.ContractID, b *protocol.Bundle, by protocol.AgentID, userMay bool) (contractKey, error) {
	k, err := bs.check(id, b, by, userMay)
	if err != nil {
		return k, err
	}
	return k, bs.payable(b)
}

// early reports whether a bundle wants payment before its currency allows it: barter
// pays when a job has succeeded (000).
func (bs *bundles) early(b *protocol.Bundle) bool {
	return b.Mode == protocol.ModeOnReservation && bs.books.policies[b.Currency].Kind == PolicyBarter
}

// payable refuses a sound bundle that this bank cannot pay.
func (bs *bundles) payable(b *protocol.Bundle) error {
	switch {
	case !bs.books.knows(b.Currency):
		return refuse(protocol.CodeNoBank, "currency %q is not kept here", b.Currency)
	case bs.early(b):
		return refuse(protocol.CodeMode, "%s is bartered: it is paid after the job, not at the reservation", b.Currency)
	}
	for i := range b.Units {
		if u := &b.Units[i]; b.Mode != protocol.ModeOnReservation && u.Slot.End.Year() > maxYear {
			return refuse(protocol.CodeMalformed, "unit %d ends %s: want before %d", u.Unit+1, u.Slot.End.Format(time.RFC3339), maxYear)
		}
	}
	return nil
}

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
			return refuse(protocol.CodeMalformed, "unit %d is in the bundle twice", u.Unit+1)
		}
	}
	if sum != b.Total {
		return refuse(protocol.CodeMalformed, "units cost %s, the total is %s", sum, b.Total)
	}
	return nil
}
