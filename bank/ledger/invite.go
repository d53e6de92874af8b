package ledger

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// Bounds of invitations.
const (
	MaxInvitations = 1 << 12              // that are not withdrawn
	MaxUses        = 1 << 14              // agents that one invitation may enrol
	MaxInvited     = 366 * 24 * time.Hour // how long an invitation may be good
)

// TokenHash is the SHA-256 of an invitation's token. The token itself is never
// in the ledger.
type TokenHash [32]byte

// Short names an invitation for people: the first eight digits of its hash.
func (h TokenHash) Short() string { return hex.EncodeToString(h[:4]) }

// Invitation lets whoever shows its token open an account: so many agents, until
// a time, each with a credit to start with (zero: none).
type Invitation struct {
	Token    TokenHash
	Uses     int // 1..MaxUses, in all
	Used     int // of them, until now
	Expires  time.Time
	Credit   protocol.Credits
	Currency string // of the credit
}

// Enrolment is an agent that an invitation let in.
type Enrolment struct {
	Agent protocol.AgentID
	Token TokenHash
	At    time.Time
	Again bool // it was let in before: nothing has changed
	Entry uint64
}

// invited is a live invitation.
type invited struct {
	Invitation
	used int
}

// Invite makes an invitation, by an act of the operator.
func (l *Ledger) Invite(now time.Time, v Invitation, ref string) (Entry, []protocol.Record, error) {
	if err := l.mayInvite(now, v, ref); err != nil {
		return Entry{}, nil, err
	}
	c := l.change()
	v.Used = 0
	l.invitations[v.Token] = &invited{Invitation: v}
	e := Entry{Kind: KindInvite, Key: string(v.Token[:]), Value: v.encode(), Ref: ref}
	return c.set(now, e), c.recs, nil
}

func (l *Ledger) mayInvite(now time.Time, v Invitation, ref string) error {
	switch {
	case v.Uses < 1 || v.Uses > MaxUses:
		return refuse(protocol.CodeMalformed, "%d uses: want 1..%d", v.Uses, MaxUses)
	case !v.Expires.After(now) || v.Expires.After(now.Add(MaxInvited)):
		return refuse(protocol.CodeMalformed, "invitation until %s: want a time within %d days from now", v.Expires.UTC().Format(time.RFC3339), MaxInvited/(24*time.Hour))
	case v.Credit < 0 || len(ref) > MaxRef:
		return refuse(protocol.CodeMalformed, "credit %s with a reference of %d bytes: want zero or more, and at most %d", v.Credit, len(ref), MaxRef)
	case !l.knows(v.Currency):
		return refuse(protocol.CodeNoBank, "currency %q is not kept here: want one of %s", v.Currency, strings.Join(l.cfg.Currencies, ", "))
	case v.Credit > 0 && l.Policy(v.Currency).Kind == PolicyBarter:
		return refuse(protocol.CodeMode, "nobody issues %s: its policy is barter, so that an invitation carries no credit", v.Currency)
	case l.invitations[v.Token] != nil:
		return refuse(protocol.CodeMismatch, "invitation %s is there already", v.Token.Short())
	case len(l.invitations) >= MaxInvitations:
		return refuse(protocol.CodeLimit, "%d invitations are open, which is the most: withdraw some", len(l.invitations))
	}
	return nil
}

// Withdraw ends an invitation: it lets nobody in any more. Who was let in stays.
func (l *Ledger) Withdraw(now time.Time, token TokenHash, ref string) (Entry, []protocol.Record, error) {
	switch {
	case l.invitations[token] == nil:
		return Entry{}, nil, refuse(protocol.CodeUnknown, "there is no invitation %s", token.Short())
	case len(ref) > MaxRef:
		return Entry{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	}
	c := l.change()
	delete(l.invitations, token)
	return c.set(now, Entry{Kind: KindInvite, Key: string(token[:]), Ref: ref}), c.recs, nil
}

// Enrol lets an agent in that shows a token: its account is opened and credited,
// once for each key, all in one. An agent that asks again gets the answer of the
// first time, as long as the invitation is not withdrawn. A token that the bank
// does not know is refused with CodeUnknown, one whose time is over with
// CodeExpired, one that is used up with CodeLimit; and with CodeMismatch a key
// that came in by another token or name, an agent that has an account by other
// means, and a name that another has.
func (l *Ledger) Enrol(now time.Time, token TokenHash, id protocol.AgentID, name string) (Enrolment, []protocol.Record, error) {
	v := l.invitations[token]
	if v == nil {
		return Enrolment{}, nil, refuse(protocol.CodeUnknown, "no invitation of this bank has this token")
	}
	e, known := l.enrolled[id.Fingerprint()]
	if known && e.Token == token && e.Agent == id {
		e.Again = true
		return e, nil, nil
	}
	if known {
		return Enrolment{}, nil, refuse(protocol.CodeMismatch, "this key was let in already, as %s", e.Agent)
	}
	if err := l.mayEnrol(now, v, id, name); err != nil {
		return Enrolment{}, nil, err
	}
	return l.enrol(now, v, id, name)
}

func (l *Ledger) mayEnrol(now time.Time, v *invited, id protocol.AgentID, name string) error {
	if err := id.Validate(); err != nil {
		return refuse(protocol.CodeMalformed, "%s", err)
	}
	switch {
	case l.recovery:
		return l.recovering()
	case !now.Before(v.Expires):
		return refuse(protocol.CodeExpired, "the invitation was good until %s", v.Expires.Format(time.RFC3339))
	case v.used >= v.Uses:
		return refuse(protocol.CodeLimit, "the invitation is used up: it was for %d", v.Uses)
	case l.hasName(name):
		return refuse(protocol.CodeMismatch, "the name %q is taken at this bank: choose another", name)
	}
	if err := l.mayOpen(id, name); err != nil || v.Credit == 0 {
		return err
	}
	return l.mayIssue(id, v.Currency, v.Credit) // which may have become impossible since
}

func (l *Ledger) hasName(name string) bool {
	for _, a := range l.accounts {
		if a.name == name && !a.closed {
			return true
		}
	}
	return false
}

// enrol opens, credits and notes; it has been checked and cannot fail.
func (l *Ledger) enrol(now time.Time, v *invited, id protocol.AgentID, name string) (Enrolment, []protocol.Record, error) {
	_, recs, err := l.open(now, id, name)
	if err != nil {
		return Enrolment{}, nil, err
	}
	if v.Credit > 0 {
		_, more, err := l.Credit(now, id, v.Currency, v.Credit, "invitation "+v.Token.Short())
		if err != nil {
			panic(fmt.Sprintf("the credit of an invitation was checked: %s", err))
		}
		recs = append(recs, more...)
	}
	e := Enrolment{Agent: id, Token: v.Token, At: fromNanos(l.instant(now))}
	c := l.change()
	entry := c.set(now, Entry{Kind: KindEnrol, Key: string(id), Value: e.encode(), Ref: name})
	e.Entry = entry.Number
	l.enrolled[id.Fingerprint()] = e
	v.used++
	return e, append(recs, c.recs...), nil
}

// Invitations are those that are not withdrawn, the one that ends first before
// the others.
func (l *Ledger) Invitations() []Invitation {
	all := make([]Invitation, 0, len(l.invitations))
	for _, v := range l.invitations {
		one := v.Invitation
		one.Used = v.used
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y Invitation) int {
		if c := x.Expires.Compare(y.Expires); c != 0 {
			return c
		}
		return strings.Compare(string(x.Token[:]), string(y.Token[:]))
	})
	return all
}

func (v Invitation) encode() []byte {
	b := binary.AppendUvarint([]byte{rowVersion}, uint64(v.Uses))
	b = appendTime(b, nanos(v.Expires))
	b = binary.AppendVarint(b, int64(v.Credit))
	return appendString(b, v.Currency)
}

func decodeInvitation(key string, value []byte) (Invitation, error) {
	d := newDecoder(value)
	v := Invitation{Uses: d.count(MaxUses), Expires: fromNanos(d.nanos()), Credit: d.credits(), Currency: d.string(MaxCurrency)}
	if len(key) != len(v.Token) || v.Credit < 0 {
		d.fail(errUnknown)
	}
	copy(v.Token[:], key)
	return v, d.done()
}

func (e Enrolment) encode() []byte {
	return append(appendTime([]byte{rowVersion}, nanos(e.At)), e.Token[:]...)
}

func decodeEnrolment(key string, value []byte) (Enrolment, error) {
	d := newDecoder(value)
	e := Enrolment{Agent: protocol.AgentID(key), At: fromNanos(d.nanos())}
	copy(e.Token[:], d.take(len(e.Token)))
	return e, d.done()
}

func (l *Ledger) loadInvitation(key string, value []byte) error {
	v, err := decodeInvitation(key, value)
	if err != nil {
		return fmt.Errorf("invitation %x: %w", key, err)
	}
	l.invitations[v.Token] = &invited{Invitation: v}
	return nil
}

func (l *Ledger) loadEnrolment(key string, value []byte) error {
	e, err := decodeEnrolment(key, value)
	if err != nil {
		return fmt.Errorf("enrolment of %q: %w", key, err)
	}
	l.enrolled[e.Agent.Fingerprint()] = e
	if v := l.invitations[e.Token]; v != nil {
		v.used++
	}
	return nil
}
