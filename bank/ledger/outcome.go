package ledger

import (
	"encoding/binary"
	"fmt"
	"slices"

	"ramp/protocol"
)

// ReceiptVersion is the version of the receipts that a ledger makes.
const ReceiptVersion = 1

// outcome is a decision, as kept in memory.
type outcome struct {
	settled  bool
	entry    uint64
	time     int64
	settleBy int64
	user     protocol.AgentID
	total    protocol.Credits
	currency string
	reason   protocol.Code
	refunds  []protocol.Refund
	mode     protocol.Mode // none: paid at once
	ends     []protocol.UnitEnd
}

func (o *outcome) refunded(unit int) bool {
	return slices.ContainsFunc(o.refunds, func(r protocol.Refund) bool { return r.Unit == unit })
}

// ended reports whether a unit's hold has ended.
func (o *outcome) ended(unit int) bool {
	return o.refunded(unit) || slices.ContainsFunc(o.ends, func(e protocol.UnitEnd) bool { return e.Unit == unit })
}

// lastEntry is the entry that last changed the outcome.
func (o *outcome) lastEntry() uint64 {
	last := o.entry
	if n := len(o.refunds); n > 0 {
		last = max(last, o.refunds[n-1].Entry)
	}
	if n := len(o.ends); n > 0 {
		last = max(last, o.ends[n-1].Entry)
	}
	return last
}

func (l *Ledger) receipt(id protocol.ContractID, o *outcome) protocol.Receipt {
	r := protocol.Receipt{
		Version: ReceiptVersion, Bank: l.cfg.Bank, Contract: id, Outcome: protocol.OutcomeVoid, Reason: o.reason,
		Entry: o.entry, Time: fromNanos(o.time), User: o.user, Total: o.total, Currency: o.currency,
		Refunds: slices.Clone(o.refunds), Mode: o.mode, Ends: slices.Clone(o.ends),
	}
	if o.settled {
		r.Outcome = protocol.OutcomeSettled
	}
	return r
}

// Outcome is what was decided about a contract: settled, void or gathering from
// memory, unknown if there never was any such contract, or ErrAskStore.
func (l *Ledger) Outcome(id protocol.ContractID) (protocol.Receipt, error) {
	k, err := parseContract(id)
	if err != nil {
		return protocol.Receipt{}, err
	}
	if o := l.recent(k); o != nil {
		return l.receipt(id, o), nil
	}
	if g := l.gathering[k]; g != nil {
		return l.undecided(k, g), nil
	}
	if l.forgotten(k, 0) {
		return protocol.Receipt{}, ErrAskStore
	}
	return protocol.Receipt{Version: ReceiptVersion, Bank: l.cfg.Bank, Contract: id, Outcome: protocol.OutcomeUnknown}, nil
}

// recent is an outcome that memory has.
func (l *Ledger) recent(k contractKey) *outcome {
	if o := l.outcomes.get(k); o != nil {
		return o
	}
	return l.recalled[k]
}

// forgotten reports whether a contract that memory does not have may have been
// decided. All outcomes that left memory had their settle-by at or before
// floorSettle; this does not depend on any clock.
func (l *Ledger) forgotten(k contractKey, settleBy int64) bool {
	if l.state.floorEntry == 0 || settleBy > l.state.floorSettle {
		return false
	}
	asOf, asked := l.absent[k]
	return !asked || asOf < l.state.floorEntry
}

// remember keeps a new outcome in memory, and lets old ones go: those beyond
// OutcomeMemory or MaxOutcomes, a few at a time.
func (c *change) remember(k contractKey, o *outcome) {
	l := c.l
	delete(l.absent, k)
	c.file(k, o)
	for range forgetPerChange {
		oldest, time := l.outcomes.oldest()
		if l.outcomes.len() <= MaxOutcomes && o.time-time <= int64(protocol.OutcomeMemory) {
			return
		}
		c.forget(oldest, l.outcomes.get(oldest))
	}
}

// file saves an outcome in memory and on the way to the store.
func (c *change) file(k contractKey, o *outcome) {
	value := o.encode(k)
	c.l.outcomes.add(k, o.entry, value)
	c.put(TableOutcomes, NumberKey(o.entry), value)
}

func (c *change) forget(k contractKey, o *outcome) {
	l := c.l
	l.outcomes.drop(k)
	l.state.floorEntry = max(l.state.floorEntry, o.lastEntry())
	l.state.floorSettle = max(l.state.floorSettle, o.settleBy)
	c.drop(TableOutcomes, NumberKey(o.entry))
	c.put(TableState, StateKey, l.state.encode())
}

// Lookup is the store's answer about one contract.
type Lookup struct {
	Found   bool
	Receipt protocol.Receipt // if found: all of it, with refunds
	AsOf    uint64           // number of the last entry that the store had
}

// AskFrom is the number of the entry that the store must have at least when it
// answers for the ledger: the newest that memory let go.
func (l *Ledger) AskFrom() uint64 { return l.state.floorEntry }

// Recall hands the ledger what the store knows about a contract, after
// ErrAskStore. An answer from before AskFrom does not count: the ledger asks
// again.
func (l *Ledger) Recall(id protocol.ContractID, found Lookup) error {
	k, err := parseContract(id)
	if err != nil {
		return err
	}
	if found.AsOf < l.state.floorEntry || l.recent(k) != nil || l.gathering[k] != nil {
		return nil
	}
	if len(l.recalled)+len(l.absent) >= MaxRecalled {
		clear(l.recalled)
		clear(l.absent)
	}
	if !found.Found {
		l.absent[k] = found.AsOf
		return nil
	}
	r := found.Receipt
	l.recalled[k] = &outcome{
		settled: r.Outcome == protocol.OutcomeSettled, entry: r.Entry, time: nanos(r.Time), user: r.User,
		total: r.Total, currency: r.Currency, reason: r.Reason, refunds: slices.Clone(r.Refunds),
		mode: r.Mode, ends: slices.Clone(r.Ends),
	}
	return nil
}

func (o *outcome) encode(k contractKey) []byte {
	b := append(make([]byte, 0, 144), rowVersion)
	b = append(b, k[:]...)
	b = appendTime(b, o.time)
	b = appendTime(b, o.settleBy)
	b = appendString(b, string(o.user))
	b = appendString(b, o.currency)
	b = appendString(b, string(o.reason)) // empty: settled
	b = binary.AppendVarint(b, int64(o.total))
	b = binary.AppendUvarint(b, uint64(len(o.refunds)))
	for _, r := range o.refunds {
		b = binary.AppendUvarint(b, uint64(r.Unit))
		b = binary.AppendVarint(b, int64(r.Amount))
		b = binary.AppendUvarint(b, r.Entry)
		b = appendTime(b, nanos(r.Time))
	}
	if o.mode != "" {
		b[0] = heldVersion
		b = o.appendEnds(b)
	}
	return b
}

// heldVersion begins the outcome of a bundle that is paid after the fact.
const heldVersion = 2

func (o *outcome) appendEnds(b []byte) []byte {
	b = appendString(b, string(o.mode))
	b = binary.AppendUvarint(b, uint64(len(o.ends)))
	for _, e := range o.ends {
		b = binary.AppendUvarint(b, uint64(e.Unit))
		b = binary.AppendVarint(b, int64(e.Paid))
		b = appendString(b, string(e.How))
		b = binary.AppendUvarint(b, e.Entry)
		b = appendTime(b, nanos(e.Time))
	}
	return b
}

func (o *outcome) readEnds(d *decoder) {
	o.mode = protocol.Mode(d.string(maxCode))
	for range d.count(protocol.MaxUnits) {
		e := protocol.UnitEnd{Unit: d.unit(), Paid: d.credits(), How: protocol.End(d.string(maxCode)), Entry: d.uvarint()}
		e.Time = fromNanos(d.nanos())
		o.ends = append(o.ends, e)
	}
}

// peekOutcome reads only the contract and the time of an outcome that was
// decoded before.
func peekOutcome(value []byte) (k contractKey, time int64) {
	copy(k[:], value[1:])
	return k, int64(binary.BigEndian.Uint64(value[1+len(k):]))
}

func decodeOutcome(key string, value []byte) (contractKey, *outcome, error) {
	entry, err := key64(key)
	if err != nil {
		return contractKey{}, nil, fmt.Errorf("outcome: %w", err)
	}
	version, d := newDecoderUpTo(value, heldVersion)
	k := d.contract()
	o := &outcome{entry: entry, time: d.nanos(), settleBy: d.nanos(), user: d.agent()}
	o.currency = d.string(MaxCurrency)
	o.reason = protocol.Code(d.string(maxCode))
	o.settled = o.reason == ""
	o.total = d.credits()
	for range d.count(protocol.MaxUnits) {
		r := protocol.Refund{Unit: d.count(protocol.MaxUnits - 1), Amount: d.credits(), Entry: d.uvarint()}
		r.Time = fromNanos(d.nanos())
		o.refunds = append(o.refunds, r)
	}
	if version == heldVersion {
		o.readEnds(d)
	}
	if err := d.done(); err != nil {
		return contractKey{}, nil, fmt.Errorf("outcome of entry %d: %w", entry, err)
	}
	return k, o, nil
}
