package ledger

import (
	"errors"
	"fmt"

	"ramp/bank/row"
	"ramp/protocol"
)

// Bounds of the fields of an entry.
const (
	maxCode      = 32      // bytes of a protocol.Code, a mode or an end
	maxKey       = 512     // bytes of a row's key
	maxValue     = 1 << 16 // bytes of a row's value
	maxSignature = 1 << 10 // bytes of a signature
)

// appendDetails writes the fields that only some kinds have, so that a settlement stays small.
func (e *Entry) appendDetails(b row.Value) row.Value {
	switch e.Kind {
	case KindSettle, KindIncome:
		return b
	case KindRefund:
		return b.Count(e.Unit)
	case KindDraw:
		return b.Uvarint(e.Hold)
	case KindVoid:
		return b.Agent(e.User).String(e.Currency).String(string(e.Reason))
	case KindReserve:
		return e.appendReserve(b)
	case KindComplete, KindUsage, KindDispute:
		b = b.Count(e.Unit).Uvarint(e.Hold).Credits(e.Total).String(string(e.How))
	case KindHold, KindPost, KindVoidHold, KindExpire:
		b = b.Uvarint(e.Hold)
	case KindTransfer:
		b = b.String(string(e.Contract)).Count(e.Unit)
	}
	if e.Kind.table() != "" {
		b = b.String(e.Key).String(string(e.Value))
	}
	return b.String(e.Ref)
}

func (e *Entry) appendReserve(b row.Value) row.Value {
	b = b.Agent(e.User).String(e.Currency).String(string(e.Mode)).Credits(e.Total).Uvarint(e.Hold).Count(len(e.Units))
	for _, u := range e.Units {
		b = b.Count(u.Unit).Uvarint(u.Hold).Count(u.Legs)
	}
	return b
}

// DecodeEntry reads a record of TableEntries. The legs have only their line
// numbers; DecodeLine says what those stand for.
func DecodeEntry(key string, value []byte) (Entry, error) {
	n, err := row.Number64(key)
	if err != nil {
		return Entry{}, fmt.Errorf("entry: %w", err)
	}
	version, d := row.ReadUpTo(value, signedVersion)
	e := Entry{Number: n, Kind: Kind(d.Byte()), Time: row.Instant(d.Time())}
	if e.Kind < KindOpen || e.Kind > lastKind {
		d.Fail(fmt.Errorf("unknown kind %d", e.Kind))
	}
	if e.Kind.hasContract() {
		e.Contract = readContract(d).id()
	}
	e.readDetails(d)
	e.readLegs(d)
	if version == signedVersion {
		e.Signature = []byte(d.String(maxSignature))
	}
	if err := d.Done(); err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", n, err)
	}
	return e, nil
}

func (e *Entry) readDetails(d *row.Reader) {
	switch e.Kind {
	case KindSettle, KindIncome:
		return
	case KindRefund:
		e.Unit = d.Unit()
		return
	case KindDraw:
		e.Hold = d.Uvarint()
		return
	case KindVoid:
		e.User, e.Currency, e.Reason = d.Agent(), d.String(MaxCurrency), protocol.Code(d.String(maxCode))
		return
	case KindReserve:
		e.readReserve(d)
		return
	case KindComplete, KindUsage, KindDispute:
		e.Unit, e.Hold, e.Total, e.How = d.Unit(), d.Uvarint(), d.Credits(), protocol.End(d.String(maxCode))
	case KindHold, KindPost, KindVoidHold, KindExpire:
		e.Hold = d.Uvarint()
	case KindTransfer:
		e.Contract, e.Unit = protocol.ContractID(d.String(2*len(contractKey{}))), d.Unit()
	}
	if e.Kind.table() != "" {
		e.Key, e.Value = d.String(maxKey), []byte(d.String(maxValue))
	}
	e.Ref = d.String(MaxRef)
}

func (e *Entry) readReserve(d *row.Reader) {
	e.User, e.Currency, e.Mode = d.Agent(), d.String(MaxCurrency), protocol.Mode(d.String(maxCode))
	e.Total, e.Hold = d.Credits(), d.Uvarint()
	for range d.Count(protocol.MaxUnits) {
		e.Units = append(e.Units, HeldUnit{Unit: d.Unit(), Hold: d.Uvarint(), Legs: d.Count(maxParts)})
	}
}

func (e *Entry) readLegs(d *row.Reader) {
	n := d.Count(maxLegs)
	if n == 0 || d.Failed() {
		return
	}
	e.Legs = make([]Leg, 0, n)
	for range n {
		line := d.Uvarint()
		if line == 0 || line > 1<<32-1 {
			d.Fail(errors.New("leg without a line"))
			return
		}
		e.Legs = append(e.Legs, Leg{Line: uint32(line), Amount: d.Credits(), Held: d.Credits(), After: d.Credits()})
	}
}
