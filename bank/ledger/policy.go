package ledger

import (
	"cmp"
	"fmt"
	"time"

	"ramp/bank/decay"
	"ramp/bank/row"
	"ramp/protocol"
)

// PolicyKind says how money comes into a currency, who pays and who earns. The numbers are stored.
type PolicyKind byte

// The policies. A currency without one is plain.
const (
	PolicyPlain     PolicyKind = 1 // 002: accounts pay each other; credit comes from the issuer
	PolicyBarter    PolicyKind = 2 // 000: users and groups; nobody issues, and all balances sum to zero
	PolicyAllowance PolicyKind = 3 // 001: incomes come from the issuer, and balances decay
)

func (k PolicyKind) String() string {
	return nameOf("policy", byte(k), "plain", "plain", "barter", "allowance")
}

// Policy is the policy of one currency. Decay is b of 001, one number for all
// accounts, in parts per million per day: 1..MaxDecay for an allowance, else zero.
type Policy struct {
	Kind  PolicyKind
	Decay int64
}

// MaxDecay bounds the decay of a currency: balances halve in some 6 minutes.
const MaxDecay int64 = 200 * decay.Million

// Policy is the policy of a currency.
func (l *Ledger) Policy(currency string) Policy { return l.books.policy(currency) }

func (bk *books) policy(currency string) Policy {
	p := bk.policies[currency]
	p.Kind = cmp.Or(p.Kind, PolicyPlain)
	return p
}

// SetPolicy gives a currency its policy: before any money has moved in it, and
// while nobody has an income in it.
func (l *Ledger) SetPolicy(now time.Time, currency string, p Policy) (Entry, []protocol.Record, error) {
	if err := l.books.mayPolicy(currency, p); err != nil {
		return Entry{}, nil, err
	}
	c := l.books.change()
	l.books.policies[currency] = p
	return c.set(now, Entry{Kind: KindPolicy, Key: currency, Value: p.encode()}), c.recs, nil
}

func perDay(ppm int64) float64 { return float64(ppm) / decay.Million }

func (bk *books) mayPolicy(currency string, p Policy) error {
	switch {
	case !bk.knows(currency):
		return refuse(protocol.CodeNoBank, "currency %q is not kept here", currency)
	case p.Kind < PolicyPlain || p.Kind > PolicyAllowance:
		return refuse(protocol.CodeMalformed, "%s: want plain, barter or allowance", p.Kind)
	case p.Kind == PolicyAllowance && (p.Decay < 1 || p.Decay > MaxDecay):
		return refuse(protocol.CodeMalformed, "decay of %g per day: want more than 0, at most %g", perDay(p.Decay), perDay(MaxDecay))
	case p.Kind != PolicyAllowance && p.Decay != 0:
		return refuse(protocol.CodeMalformed, "decay of %g per day: only an allowance has one", perDay(p.Decay))
	}
	for _, n := range bk.lines {
		if n.currency == currency && (n.balance != 0 || n.held != 0 || n.income != 0 || n.anchor != 0) {
			return refuse(protocol.CodeMismatch, "money has moved in %s: its policy stays %s", currency, bk.policy(currency).Kind)
		}
		if n.currency == currency && p.Kind == PolicyAllowance && n.overdraft > MaxOverdraft {
			return refuse(protocol.CodeMismatch, "%s may go %s %s below zero: with an allowance at most %s", ownerWords(n.account), n.overdraft, currency, MaxOverdraft)
		}
	}
	return nil
}

func (p Policy) encode() []byte {
	return row.New(row.Version, 12).Byte(byte(p.Kind)).Uvarint(uint64(p.Decay))
}

// DecodePolicy reads a record of TablePolicies.
func DecodePolicy(value []byte) (Policy, error) {
	d := row.Read(value)
	p := Policy{Kind: PolicyKind(d.Byte()), Decay: int64(d.Count(int(MaxDecay)))}
	if err := d.Done(); err != nil || p.Kind < PolicyPlain || p.Kind > PolicyAllowance {
		return Policy{}, fmt.Errorf("policy %d: %w", p.Kind, cmp.Or(err, errUnknown))
	}
	return p, nil
}

// set writes an act that sets one row, or deletes it if Value is nil.
func (c *change) set(now time.Time, e Entry, moves ...move) Entry {
	c.put(e.Kind.table(), e.Key, e.Value)
	return c.write(now, e, nil, moves...)
}

// Standing says whether an account may spend, and whether it still exists.
type Standing byte

// The standings. The numbers are stored.
const (
	StandingOpen   Standing = 0
	StandingFrozen Standing = 1 // it earns, and its open holds are paid, but it spends nothing
	StandingClosed Standing = 2 // cannot be undone
)

func (s Standing) String() string { return nameOf("standing", byte(s), "open", "frozen", "closed") }

func (a *account) standing() Standing {
	switch {
	case a.closed:
		return StandingClosed
	case a.frozen:
		return StandingFrozen
	}
	return StandingOpen
}

// SetStanding freezes an account, unfreezes or closes it. Only an account with nothing in it,
// nothing held, no income and no group can be closed. Ref is the operator's reason.
func (l *Ledger) SetStanding(now time.Time, id protocol.AgentID, s Standing, ref string) (Entry, []protocol.Record, error) {
	a, err := l.books.owner(id)
	if err != nil {
		return Entry{}, nil, err
	}
	if err := l.mayStand(now, a, s, ref); err != nil {
		return Entry{}, nil, err
	}
	c := l.books.change()
	a.frozen, a.closed = s == StandingFrozen, s == StandingClosed
	e := Entry{Kind: KindStanding, Key: string(id), Ref: ref}
	if s != StandingOpen {
		e.Value = []byte{row.Version, byte(s)}
	}
	return c.set(now, e), c.recs, nil
}

func (l *Ledger) mayStand(now time.Time, a *account, s Standing, ref string) error {
	if err := checkRef(ref); err != nil {
		return err
	}
	switch {
	case s > StandingClosed:
		return refuse(protocol.CodeMalformed, "%s: want open, frozen or closed", s)
	case s != StandingClosed && s == a.standing():
		return refuse(protocol.CodeMismatch, "account %s is %s already", ownerWords(a.id), s)
	case s == StandingClosed:
		return l.mayClose(now, a)
	}
	return nil
}

func (l *Ledger) mayClose(now time.Time, a *account) error {
	if a.id == House {
		return refuse(protocol.CodeMismatch, "account %s cannot be closed: it is the other side of every exchange; a rate of 0 ends one", House)
	}
	if g := l.Groups.groupOf(a.id); l.Groups.memberOf[a.id] != nil || l.Groups.sellsFor[a.id] != nil || g != nil && len(g.Members)+len(g.Clusters) > 0 {
		return refuse(protocol.CodeMismatch, "account %s cannot be closed: it belongs to a group", ownerWords(a.id))
	}
	if number, busy := l.holds.forJobOf(a.id); busy {
		return refuse(protocol.CodeMismatch, "account %s cannot be closed: hold %d is open for its job", ownerWords(a.id), number)
	}
	for _, n := range a.lines {
		whole, _ := l.books.due(n, l.books.instant(now))
		if n.balance+whole != 0 || n.held != 0 || n.income != 0 {
			return refuse(protocol.CodeMismatch, "account %s cannot be closed: it has %s %s, %s held and an income of %s a day",
				ownerWords(a.id), (n.balance + whole).Cents(), n.currency, n.held.Cents(), n.income.Cents())
		}
	}
	return nil
}

func (bk *books) loadPolicy(key string, value []byte) (err error) {
	bk.policies[key], err = DecodePolicy(value)
	return err
}

func (bk *books) loadStanding(key string, value []byte) error {
	a := bk.accounts[protocol.AgentID(key)]
	if a == nil || len(value) != 2 || value[0] != row.Version || Standing(value[1]) > StandingClosed {
		return fmt.Errorf("standing of %q cannot be read", key)
	}
	a.frozen, a.closed = Standing(value[1]) == StandingFrozen, Standing(value[1]) == StandingClosed
	return nil
}

func (bk *books) loadAllowance(key string, value []byte) error {
	n, err := bk.lineOf(key)
	if err != nil {
		return err
	}
	income, err := DecodeNumber(value)
	n.income = protocol.Credits(income)
	return err
}
