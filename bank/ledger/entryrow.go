package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ramp/protocol"
)

// Bounds of what an entry stores.
const (
	maxCode      = 32      // bytes of a protocol.Code, a mode or an end
	maxKey       = 512     // bytes of a row's key
	maxValue     = 1 << 16 // bytes of a row's value
	maxSignature = 1 << 10 // bytes of a signature
)

// appendDetails writes what only some kinds have, so that a settlement stays
// small.
func (e *Entry) appendDetails(b []byte) []byte {
	switch e.Kind {
	case KindSettle, KindIncome:
		return b
	case KindRefund:
		return binary.AppendUvarint(b, uint64(e.Unit))
	case KindDraw:
		return binary.AppendUvarint(b, e.Hold)
	case KindVoid:
		b = appendString(b, string(e.User))
		b = appendString(b, e.Currency)
		return appendString(b, string(e.Reason))
	case KindReserve:
		return e.appendReserve(b)
	case KindComplete, KindUsage, KindDispute:
		b = binary.AppendUvarint(b, uint64(e.Unit))
		b = binary.AppendUvarint(b, e.Hold)
		b = binary.AppendVarint(b, int64(e.Total))
		b = appendString(b, string(e.How))
	case KindHold, KindPost, KindVoidHold, KindExpire:
		b = binary.AppendUvarint(b, e.Hold)
	case KindTransfer:
		b = appendString(b, string(e.Contract))
		b = binary.AppendUvarint(b, uint64(e.Unit))
	}
	if e.Kind.table() != "" {
		b = appendString(b, e.Key)
		b = appendString(b, string(e.Value))
	}
	return appendString(b, e.Ref)
}

func (e *Entry) appendReserve(b []byte) []byte {
	b = appendString(b, string(e.User))
	b = appendString(b, e.Currency)
	b = appendString(b, string(e.Mode))
	b = binary.AppendVarint(b, int64(e.Total))
	b = binary.AppendUvarint(b, e.Hold)
	b = binary.AppendUvarint(b, uint64(len(e.Units)))
	for _, u := range e.Units {
		b = binary.AppendUvarint(b, uint64(u.Unit))
		b = binary.AppendUvarint(b, u.Hold)
		b = binary.AppendUvarint(b, uint64(u.Legs))
	}
	return b
}

// DecodeEntry reads a record of TableEntries. The legs have only their line
// numbers; DecodeLine says what those stand for.
func DecodeEntry(key string, value []byte) (Entry, error) {
	n, err := key64(key)
	if err != nil {
		return Entry{}, fmt.Errorf("entry: %w", err)
	}
	version, d := newDecoderUpTo(value, signedVersion)
	e := Entry{Number: n, Kind: Kind(d.byte()), Time: fromNanos(d.nanos())}
	if e.Kind < KindOpen || e.Kind > lastKind {
		d.fail(fmt.Errorf("unknown kind %d", e.Kind))
	}
	if e.Kind.hasContract() {
		e.Contract = d.contract().id()
	}
	e.readDetails(d)
	e.readLegs(d)
	if version == signedVersion {
		e.Signature = []byte(d.string(maxSignature))
	}
	if err := d.done(); err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", n, err)
	}
	return e, nil
}

func (e *Entry) readDetails(d *decoder) {
	switch e.Kind {
	case KindSettle, KindIncome:
		return
	case KindRefund:
		e.Unit = d.unit()
		return
	case KindDraw:
		e.Hold = d.uvarint()
		return
	case KindVoid:
		e.User, e.Currency, e.Reason = d.agent(), d.string(MaxCurrency), protocol.Code(d.string(maxCode))
		return
	case KindReserve:
		e.readReserve(d)
		return
	case KindComplete, KindUsage, KindDispute:
		e.Unit, e.Hold, e.Total, e.How = d.unit(), d.uvarint(), d.credits(), protocol.End(d.string(maxCode))
	case KindHold, KindPost, KindVoidHold, KindExpire:
		e.Hold = d.uvarint()
	case KindTransfer:
		e.Contract, e.Unit = protocol.ContractID(d.string(2*len(contractKey{}))), d.unit()
	}
	if e.Kind.table() != "" {
		e.Key, e.Value = d.string(maxKey), []byte(d.string(maxValue))
	}
	e.Ref = d.string(MaxRef)
}

func (e *Entry) readReserve(d *decoder) {
	e.User, e.Currency, e.Mode = d.agent(), d.string(MaxCurrency), protocol.Mode(d.string(maxCode))
	e.Total, e.Hold = d.credits(), d.uvarint()
	for range d.count(protocol.MaxUnits) {
		e.Units = append(e.Units, HeldUnit{Unit: d.unit(), Hold: d.uvarint(), Legs: d.count(maxParts)})
	}
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
