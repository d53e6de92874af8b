package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ramp/protocol"
)

// Kind is what an entry records. The numbers are stored.
type Kind byte

// The kinds of entry.
const (
	KindOpen      Kind = 1  // an account was opened
	KindOverdraft Kind = 2  // an overdraft limit was set
	KindCredit    Kind = 3  // the issuer credited an account
	KindHold      Kind = 4  // an amount was held
	KindPost      Kind = 5  // a hold was posted, fully or partly
	KindVoidHold  Kind = 6  // a hold was released
	KindExpire    Kind = 7  // a hold's time was over
	KindSettle    Kind = 8  // a bundle was paid
	KindVoid      Kind = 9  // a bundle was voided
	KindRefund    Kind = 10 // a seller paid a unit back
)

func (k Kind) String() string {
	names := [...]string{"open", "overdraft", "credit", "hold", "post", "void-hold", "expire", "settle", "void", "refund"}
	if k < 1 || int(k) > len(names) {
		return fmt.Sprintf("kind(%d)", byte(k))
	}
	return names[k-1]
}

// Entry is one numbered record of the ledger. Numbers begin at 1 and have no
// gaps; times never fall. An entry is never changed or removed.
type Entry struct {
	Number   uint64
	Time     time.Time
	Kind     Kind
	Legs     []Leg               // sums to zero in each currency
	Contract protocol.ContractID // of settle, void and refund; else empty
	Unit     int                 // of refund
	Hold     uint64              // of hold, post, void-hold and expire
	User     protocol.AgentID    // of void: whose bundle
	Currency string              // of void: the bundle's
	Reason   protocol.Code       // of void: why
	Ref      string              // words of whoever asked
}

// Leg is what an entry does to one account.
type Leg struct {
	Line     uint32           // number of account and currency together, from 1
	Account  protocol.AgentID // filled in by whoever reads the lines
	Currency string           // likewise
	Amount   protocol.Credits // change of the balance
	Held     protocol.Credits // change of what is held
	After    protocol.Credits // the balance after it
}

// maxLegs is a bundle's: its user and each seller.
const maxLegs = protocol.MaxUnits + 1

// encode is the value of an entry; its number is the key.
func (e *Entry) encode(contract *contractKey) []byte {
	b := make([]byte, 0, 128)
	b = append(b, rowVersion, byte(e.Kind))
	b = appendTime(b, nanos(e.Time))
	if contract != nil {
		b = append(b, contract[:]...)
	}
	b = e.appendDetails(b)
	b = binary.AppendUvarint(b, uint64(len(e.Legs)))
	for _, leg := range e.Legs {
		b = binary.AppendUvarint(b, uint64(leg.Line))
		b = binary.AppendVarint(b, int64(leg.Amount))
		b = binary.AppendVarint(b, int64(leg.Held))
		b = binary.AppendVarint(b, int64(leg.After))
	}
	return b
}

// appendDetails writes what only some kinds have, so that a settlement stays
// small.
func (e *Entry) appendDetails(b []byte) []byte {
	switch e.Kind {
	case KindSettle:
		return b
	case KindRefund:
		return binary.AppendUvarint(b, uint64(e.Unit))
	case KindVoid:
		b = appendString(b, string(e.User))
		b = appendString(b, e.Currency)
		return appendString(b, string(e.Reason))
	case KindHold, KindPost, KindVoidHold, KindExpire:
		b = binary.AppendUvarint(b, e.Hold)
	}
	return appendString(b, e.Ref)
}

func (k Kind) hasContract() bool { return k == KindSettle || k == KindVoid || k == KindRefund }

// maxCode bounds the length of a stored protocol.Code.
const maxCode = 32

// DecodeEntry reads a record of TableEntries. The legs have only their line
// numbers; DecodeLine says what those stand for.
func DecodeEntry(key string, value []byte) (Entry, error) {
	n, err := key64(key)
	if err != nil {
		return Entry{}, fmt.Errorf("entry: %w", err)
	}
	d := newDecoder(value)
	e := Entry{Number: n, Kind: Kind(d.byte()), Time: fromNanos(d.nanos())}
	if e.Kind < KindOpen || e.Kind > KindRefund {
		d.fail(fmt.Errorf("unknown kind %d", e.Kind))
	}
	if e.Kind.hasContract() {
		e.Contract = d.contract().id()
	}
	e.readDetails(d)
	e.readLegs(d)
	if err := d.done(); err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", n, err)
	}
	return e, nil
}

func (e *Entry) readDetails(d *decoder) {
	switch e.Kind {
	case KindSettle:
		return
	case KindRefund:
		e.Unit = d.count(protocol.MaxUnits - 1)
		return
	case KindVoid:
		e.User = d.agent()
		e.Currency = d.string(MaxCurrency)
		e.Reason = protocol.Code(d.string(maxCode))
		return
	case KindHold, KindPost, KindVoidHold, KindExpire:
		e.Hold = d.uvarint()
	}
	e.Ref = d.string(MaxRef)
}

func (e *Entry) readLegs(d *decoder) {
	n := d.count(maxLegs)
	if n == 0 || d.err != nil {
		return
	}
	e.Legs = make([]Leg, 0, n)
	for range n {
		line := d.uvarint()
		if line == 0 || line > 1<<32-1 {
			d.fail(errors.New("leg without a line"))
			return
		}
		e.Legs = append(e.Legs, Leg{Line: uint32(line), Amount: d.credits(), Held: d.credits(), After: d.credits()})
	}
}

// Receipt is what an entry that settled or voided says, without refunds. Its
// legs must have been filled in.
func (e *Entry) Receipt(bank protocol.AgentID) (protocol.Receipt, error) {
	r := protocol.Receipt{
		Version: ReceiptVersion, Bank: bank, Contract: e.Contract, Outcome: protocol.OutcomeVoid, Reason: e.Reason,
		Entry: e.Number, Time: e.Time, User: e.User, Currency: e.Currency,
	}
	switch {
	case e.Kind == KindVoid:
		return r, nil
	case e.Kind == KindSettle && len(e.Legs) > 0:
		pay := e.Legs[0] // the user's comes first
		r.Outcome, r.User, r.Total, r.Currency = protocol.OutcomeSettled, pay.Account, -pay.Amount, pay.Currency
		return r, nil
	}
	return r, fmt.Errorf("entry %d is a %s and decides nothing", e.Number, e.Kind)
}

// Refund is what a refund entry says.
func (e *Entry) Refund() protocol.Refund {
	r := protocol.Refund{Unit: e.Unit, Entry: e.Number, Time: e.Time}
	if len(e.Legs) > 0 {
		r.Amount = -e.Legs[0].Amount // the seller's comes first
	}
	return r
}
