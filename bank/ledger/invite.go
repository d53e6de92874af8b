package ledger

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// Bounds of invitations.
const (
	MaxInvitations = 1 << 12              // that are not withdrawn
	MaxUses        = 1 << 14              // agents that one invitation may enrol
	MaxInvited     = 366 * 24 * time.Hour // how long an invitation may be good
)

// TokenHash is the SHA-256 of an invitation's token. The ledger never has the token.
type TokenHash [32]byte

// Short names an invitation for people: the first eight digits of its hash.
func (h TokenHash) Short() string { return hex.EncodeToString(h[:4]) }

// Invitation lets a number of agents that show its token open accounts, until a time,
// each with a credit to start with.
type Invitation struct {
	Token    TokenHash
	Uses     int // 1..MaxUses
	Used     int // so far
	Expires  time.Time
	Credit   protocol.Credits
	Currency string // of the credit
}

// Enrolment is an agent that came in by an invitation.
type Enrolment struct {
	Agent protocol.AgentID
	Token TokenHash
	At    time.Time
	Again bool // it was in before: nothing has changed
}

// Invitations owns the open invitations, and who came in by one.
type Invitations struct {
	books    *books
	recovery *recovery
	open     map[TokenHash]*Invitation // and the withdrawn ones
	enrolled map[string]Enrolment      // by the key's fingerprint
}

// Invite makes an invitation, by an act of the operator.
func (iv *Invitations) Invite(now time.Time, v Invitation, ref string) (Entry, []protocol.Record, error) {
	if err := iv.mayInvite(now, v, ref); err != nil {
		return Entry{}, nil, err
	}
	c := iv.books.change()
	v.Used = 0
	iv.open[v.Token] = &v
	e := Entry{Kind: KindInvite, Key: string(v.Token[:]), Value: v.encode(), Ref: ref}
	return c.set(now, e), c.recs, nil
}

func (iv *Invitations) mayInvite(now time.Time, v Invitation, ref string) error {
	switch {
	case v.Uses < 1 || v.Uses > MaxUses:
		return refuse(protocol.CodeMalformed, "%d uses: want 1..%d", v.Uses, MaxUses)
	case !v.Expires.After(now) || v.Expires.After(now.Add(MaxInvited)):
		return refuse(protocol.CodeMalformed, "invitation until %s: want a time within %d days from now", v.Expires.UTC().Format(time.RFC3339), MaxInvited/(24*time.Hour))
	case v.Credit < 0:
		return refuse(protocol.CodeMalformed, "credit %s: want zero or more", v.Credit)
	case checkRef(ref) != nil:
		return checkRef(ref)
	case !iv.books.knows(v.Currency):
		return refuse(protocol.CodeNoBank, "currency %q is not kept here: want one of %s", v.Currency, strings.Join(iv.books.cfg.Currencies, ", "))
	case v.Credit > 0 && iv.books.policy(v.Currency).Kind == PolicyBarter:
		return refuse(protocol.CodeMode, "nobody issues %s: its policy is barter, so an invitation can carry no credit", v.Currency)
	case iv.open[v.Token] != nil:
		return refuse(protocol.CodeMismatch, "there is an invitation %s already", v.Token.Short())
	case len(iv.All()) >= MaxInvitations:
		return refuse(protocol.CodeLimit, "%d invitations are open, which is the most: withdraw some", len(iv.open))
	}
	return nil
}

// Withdraw ends an invitation. The agents that it let in stay.
func (iv *Invitations) Withdraw(now time.Time, token TokenHash, ref string) (Entry, []protocol.Record, error) {
	v := iv.open[token]
	if v == nil || v.withdrawn() {
		return Entry{}, nil, refuse(protocol.CodeUnknown, "there is no invitation %s, or it was withdrawn", token.Short())
	}
	if err := checkRef(ref); err != nil {
		return Entry{}, nil, err
	}
	c := iv.books.change()
	*v = Invitation{Token: token, Expires: v.Expires, Currency: v.Currency}
	return c.set(now, Entry{Kind: KindInvite, Key: string(token[:]), Value: v.encode(), Ref: ref}), c.recs, nil
}

// withdrawn invitations stay, for nobody, so that those who show the token learn it.
func (v Invitation) withdrawn() bool { return v.Uses == 0 }

// Enrol opens and credits the account of an agent that shows a token, once for each
// key. An agent that asks again gets the first answer, until the invitation is
// withdrawn. Refusals: CodeUnknown for an unknown token, CodeExpired also for a withdrawn
// one, CodeLimit for one that is used up, and CodeMismatch for a key that came in by another
// token or name, an agent that has an account already, and a name that is taken.
func (iv *Invitations) Enrol(now time.Time, token TokenHash, id protocol.AgentID, name string) (Enrolment, []protocol.Record, error) {
	v := iv.open[token]
	switch {
	case v == nil:
		return Enrolment{}, nil, refuse(protocol.CodeUnknown, "no invitation of this bank has this token")
	case v.withdrawn():
		return Enrolment{}, nil, refuse(protocol.CodeExpired, "the bank has withdrawn this invitation")
	}
	e, known := iv.enrolled[id.Fingerprint()]
	if known && e.Token == token && e.Agent == id {
		e.Again = true
		return e, nil, nil
	}
	if known {
		return Enrolment{}, nil, refuse(protocol.CodeMismatch, "this key is enrolled already, as %s", e.Agent)
	}
	if err := iv.mayEnrol(now, v, id, name); err != nil {
		return Enrolment{}, nil, err
	}
	return iv.enrol(now, v, id, name)
}

func (iv *Invitations) mayEnrol(now time.Time, v *Invitation, id protocol.AgentID, name string) error {
	if err := id.Validate(); err != nil {
		return refuse(protocol.CodeMalformed, "%s", err)
	}
	switch {
	case iv.recovery.on:
		return errRecovering
	case !now.Before(v.Expires):
		return refuse(protocol.CodeExpired, "the invitation was good until %s", v.Expires.Format(time.RFC3339))
	case v.Used >= v.Uses:
		return refuse(protocol.CodeLimit, "the invitation is used up: it was for %d", v.Uses)
	case iv.books.hasName(name):
		return refuse(protocol.CodeMismatch, "the name %q is taken at this bank: choose another", name)
	}
	if err := iv.books.mayOpen(id, name); err != nil || v.Credit == 0 {
		return err
	}
	return iv.books.mayIssue(id, v.Currency, v.Credit) // which may have become impossible since the invitation
}

func (bk *books) hasName(name string) bool {
	for _, a := range bk.accounts {
		if a.name == name && !a.closed {
			return true
		}
	}
	return false
}

// enrol opens, credits and records; the caller has checked that it cannot fail.
func (iv *Invitations) enrol(now time.Time, v *Invitation, id protocol.AgentID, name string) (Enrolment, []protocol.Record, error) {
	_, recs, err := iv.books.open(now, id, name)
	if err != nil {
		return Enrolment{}, nil, err
	}
	if v.Credit > 0 {
		_, more, err := iv.books.credit(now, id, v.Currency, v.Credit, "invitation "+v.Token.Short())
		if err != nil {
			panic(fmt.Sprintf("the credit of an invitation was checked: %s", err))
		}
		recs = append(recs, more...)
	}
	e := Enrolment{Agent: id, Token: v.Token, At: row.Instant(iv.books.instant(now))}
	c := iv.books.change()
	c.set(now, Entry{Kind: KindEnrol, Key: string(id), Value: e.encode(), Ref: name})
	iv.enrolled[id.Fingerprint()] = e
	v.Used++
	return e, append(recs, c.recs...), nil
}

// All are the invitations that are not withdrawn, in order of their end.
func (iv *Invitations) All() []Invitation {
	all := make([]Invitation, 0, len(iv.open))
	for _, v := range iv.open {
		if !v.withdrawn() {
			all = append(all, *v)
		}
	}
	slices.SortFunc(all, func(x, y Invitation) int {
		return cmp.Or(x.Expires.Compare(y.Expires), bytes.Compare(x.Token[:], y.Token[:]))
	})
	return all
}

func (v Invitation) encode() []byte {
	return row.New(row.Version, 64).Count(v.Uses).Time(row.Nanos(v.Expires)).Credits(v.Credit).String(v.Currency)
}

func decodeInvitation(key string, value []byte) (Invitation, error) {
	d := row.Read(value)
	v := Invitation{Uses: d.Count(MaxUses), Expires: row.Instant(d.Time()), Credit: d.Credits(), Currency: d.String(MaxCurrency)}
	if len(key) != len(v.Token) || v.Credit < 0 {
		d.Fail(errUnknown)
	}
	copy(v.Token[:], key)
	return v, d.Done()
}

func (e Enrolment) encode() []byte {
	return row.New(row.Version, 41).Time(row.Nanos(e.At)).Octets(e.Token[:])
}

func decodeEnrolment(key string, value []byte) (Enrolment, error) {
	d := row.Read(value)
	e := Enrolment{Agent: protocol.AgentID(key), At: row.Instant(d.Time())}
	copy(e.Token[:], d.Octets(len(e.Token)))
	return e, d.Done()
}

func (iv *Invitations) loadInvitation(key string, value []byte) error {
	v, err := decodeInvitation(key, value)
	if err != nil {
		return fmt.Errorf("invitation %x: %w", key, err)
	}
	iv.open[v.Token] = &v
	return nil
}

func (iv *Invitations) loadEnrolment(key string, value []byte) error {
	e, err := decodeEnrolment(key, value)
	if err != nil {
		return fmt.Errorf("enrolment of %q: %w", key, err)
	}
	iv.enrolled[e.Agent.Fingerprint()] = e
	if v := iv.open[e.Token]; v != nil {
		v.Used++
	}
	return nil
}
