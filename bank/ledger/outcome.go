package ledger

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"ramp/bank/archive"
	"ramp/bank/row"
	"ramp/bank/voids"
	"ramp/protocol"
)

// ReceiptVersion is the version of the receipts that a ledger makes.
const ReceiptVersion = 1

// outcome is a decision in memory.
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
	mode     protocol.Mode // empty: paid at once
	ends     []protocol.UnitEnd
}

// outcomes owns the decisions that are in memory: recent ones, and answers of the
// store about older ones.
type outcomes struct {
	books    *books
	voids    *voids.Users
	archive  *archive.Archive
	recalled map[contractKey]*outcome
	absent   map[contractKey]uint64 // not in the store as of this entry
}

func (o *outcome) refunded(unit int) bool {
	return slices.ContainsFunc(o.refunds, func(r protocol.Refund) bool { return r.Unit == unit })
}

func (o *outcome) ended(unit int) bool {
	return o.refunded(unit) || slices.ContainsFunc(o.ends, func(e protocol.UnitEnd) bool { return e.Unit == unit })
}

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

func (oc *outcomes) receipt(id protocol.ContractID, o *outcome) protocol.Receipt {
	r := protocol.Receipt{
		Version: ReceiptVersion, Bank: oc.books.cfg.Bank, Contract: id, Outcome: protocol.OutcomeVoid, Reason: o.reason,
		Entry: o.entry, Time: row.Instant(o.time), User: o.user, Total: o.total, Currency: o.currency,
		Refunds: slices.Clone(o.refunds), Mode: o.mode, Ends: slices.Clone(o.ends),
	}
	if o.settled {
		r.Outcome = protocol.OutcomeSettled
	}
	return r
}

// Outcome is the decision about a contract: settled, void or gathering from memory,
// unknown if there never was such a contract, or ErrAskStore.
func (l *Ledger) Outcome(id protocol.ContractID) (protocol.Receipt, error) {
	k, err := parseContract(id)
	if err != nil {
		return protocol.Receipt{}, err
	}
	if o := l.outcomes.recent(k); o != nil {
		return l.outcomes.receipt(id, o), nil
	}
	if g := l.bundles.byContract[k]; g != nil {
		return l.bundles.soFar(k, g), nil
	}
	if l.outcomes.forgotten(k, 0) {
		return protocol.Receipt{}, ErrAskStore
	}
	return protocol.Receipt{Version: ReceiptVersion, Bank: l.books.cfg.Bank, Contract: id, Outcome: protocol.OutcomeUnknown}, nil
}

// recent is an outcome that memory has.
func (oc *outcomes) recent(k contractKey) *outcome {
	if o := oc.inMemory(k); o != nil {
		return o
	}
	return oc.recalled[k]
}

// inMemory decodes a recent outcome; nil: it is not there.
func (oc *outcomes) inMemory(k contractKey) *outcome {
	entry, value, ok := oc.archive.Get(archive.Key(k))
	if !ok {
		return nil
	}
	_, o, err := decodeOutcome(NumberKey(entry), value)
	if err != nil {
		panic(err) // it was encoded or decoded here before
	}
	return o
}

// forgotten reports whether a contract that memory lacks may have been decided. All outcomes that
// left memory had their settle-by at or before floorSettle, whatever any clock says.
func (oc *outcomes) forgotten(k contractKey, settleBy int64) bool {
	if oc.books.state.floorEntry == 0 || settleBy > oc.books.state.floorSettle {
		return false
	}
	asOf, asked := oc.absent[k]
	return !asked || asOf < oc.books.state.floorEntry
}

// remember keeps a new outcome in memory, and forgets old ones beyond OutcomeMemory or
// MaxOutcomes, a few at a time.
func (oc *outcomes) remember(c *change, k contractKey, o *outcome) {
	delete(oc.absent, k)
	oc.file(c, k, o)
	oc.counted(o)
	for range forgetPerChange {
		key, time := oc.archive.Oldest(peekOutcome)
		if oc.archive.Len() <= MaxOutcomes && o.time-time <= int64(protocol.OutcomeMemory) {
			return
		}
		oc.forget(c, key, oc.inMemory(contractKey(key)))
	}
}

func (oc *outcomes) counted(o *outcome) {
	if !o.settled {
		oc.voids.Remember(o.time, o.user)
	}
}

// file saves an outcome in memory and for the store.
func (oc *outcomes) file(c *change, k contractKey, o *outcome) {
	value := o.encode(k)
	oc.archive.Add(archive.Key(k), o.entry, value)
	c.put(TableOutcomes, NumberKey(o.entry), value)
}

func (oc *outcomes) forget(c *change, k archive.Key, o *outcome) {
	oc.archive.Drop(k)
	if !o.settled {
		oc.voids.Forget(o.user)
	}
	oc.books.state.floorEntry = max(oc.books.state.floorEntry, o.lastEntry())
	oc.books.state.floorSettle = max(oc.books.state.floorSettle, o.settleBy)
	c.drop(TableOutcomes, NumberKey(o.entry))
	c.put(TableState, StateKey, oc.books.state.encode())
}

// Lookup is the store's answer about one contract.
type Lookup struct {
	Found   bool
	Receipt protocol.Receipt // if found: with all refunds and ends
	AsOf    uint64           // number of the last entry that the store had
}

// Recall hands the ledger the store's answer about a contract, after ErrAskStore. An answer that is
// older than the newest outcome outside memory does not count: the ledger asks again.
func (l *Ledger) Recall(id protocol.ContractID, found Lookup) error {
	k, err := parseContract(id)
	if err != nil {
		return err
	}
	if found.AsOf < l.books.state.floorEntry || l.outcomes.recent(k) != nil || l.bundles.byContract[k] != nil {
		return nil
	}
	if len(l.outcomes.recalled)+len(l.outcomes.absent) >= MaxRecalled {
		clear(l.outcomes.recalled)
		clear(l.outcomes.absent)
	}
	if !found.Found {
		l.outcomes.absent[k] = found.AsOf
		return nil
	}
	r := found.Receipt
	l.outcomes.recalled[k] = &outcome{
		settled: r.Outcome == protocol.OutcomeSettled, entry: r.Entry, time: row.Nanos(r.Time), user: r.User,
		total: r.Total, currency: r.Currency, reason: r.Reason, refunds: slices.Clone(r.Refunds),
		mode: r.Mode, ends: slices.Clone(r.Ends),
	}
	return nil
}

func (o *outcome) encode(k contractKey) []byte {
	b := row.New(row.Version, 144).Octets(k[:]).Time(o.time).Time(o.settleBy).Agent(o.user).String(o.currency)
	b = b.String(string(o.reason)).Credits(o.total).Count(len(o.refunds)) // no reason: settled
	for _, r := range o.refunds {
		b = b.Count(r.Unit).Credits(r.Amount).Uvarint(r.Entry).Time(row.Nanos(r.Time))
	}
	if o.mode != "" {
		b[0] = heldVersion
		b = o.appendEnds(b)
	}
	return b
}

// heldVersion begins the outcome of a bundle that is paid after the fact.
const heldVersion = 2

func (o *outcome) appendEnds(b row.Value) row.Value {
	b = b.String(string(o.mode)).Count(len(o.ends))
	for _, e := range o.ends {
		b = b.Count(e.Unit).Credits(e.Paid).String(string(e.How)).Uvarint(e.Entry).Time(row.Nanos(e.Time))
	}
	return b
}

func (o *outcome) readEnds(d *row.Reader) {
	o.mode = protocol.Mode(d.String(maxCode))
	for range d.Count(protocol.MaxUnits) {
		e := protocol.UnitEnd{Unit: d.Unit(), Paid: d.Credits(), How: protocol.End(d.String(maxCode)), Entry: d.Uvarint()}
		e.Time = row.Instant(d.Time())
		o.ends = append(o.ends, e)
	}
}

// peekOutcome reads only the contract and the time of an outcome that was decoded before.
func peekOutcome(value []byte) (k archive.Key, time int64) {
	copy(k[:], value[1:])
	return k, int64(binary.BigEndian.Uint64(value[1+len(k):]))
}

func decodeOutcome(key string, value []byte) (contractKey, *outcome, error) {
	entry, err := row.Number64(key)
	if err != nil {
		return contractKey{}, nil, fmt.Errorf("outcome: %w", err)
	}
	version, d := row.ReadUpTo(value, heldVersion)
	k := readContract(d)
	o := &outcome{entry: entry, time: d.Time(), settleBy: d.Time(), user: d.Agent()}
	o.currency = d.String(MaxCurrency)
	o.reason = protocol.Code(d.String(maxCode))
	o.settled = o.reason == ""
	o.total = d.Credits()
	for range d.Count(protocol.MaxUnits) {
		r := protocol.Refund{Unit: d.Count(protocol.MaxUnits - 1), Amount: d.Credits(), Entry: d.Uvarint()}
		r.Time = row.Instant(d.Time())
		o.refunds = append(o.refunds, r)
	}
	if version == heldVersion {
		o.readEnds(d)
	}
	if err := d.Done(); err != nil {
		return contractKey{}, nil, fmt.Errorf("outcome of entry %d: %w", entry, err)
	}
	return k, o, nil
}

// mayVoid reports whether another void contract of a user gets an entry.
func (bs *bundles) mayVoid(now time.Time, user protocol.AgentID) bool {
	return bs.outcomes.voids.Allows(bs.books.instant(now), user)
}

// over reports whether a bundle that is not decided can only be void by now.
func (bs *bundles) over(now time.Time, b *protocol.Bundle) bool {
	return !now.Before(b.SettleBy) || bs.lapsed(b)
}

// lapsed reports whether a bundle that is not decided yet can only be void. See package voids.
func (bs *bundles) lapsed(b *protocol.Bundle) bool {
	return row.Nanos(b.SettleBy) <= bs.outcomes.voids.Until(b.User)
}

// lapse voids a bundle that is over: with an entry or, beyond its user's allowance, without.
func (bs *bundles) lapse(c *change, now time.Time, k contractKey, g *gathering) protocol.Receipt {
	if g.settleBy > bs.outcomes.voids.Until(g.user) && bs.mayVoid(now, g.user) {
		return bs.void(c, now, k, g, protocol.CodeSettleBy)
	}
	c.recs = append(c.recs, bs.outcomes.voids.Lapse(g.user, g.settleBy)...)
	bs.drop(c, k, g)
	return bs.lapsedReceipt(k, g)
}

// lapsedReceipt is always the same for a contract: it names no entry, and the settle-by as
// its time.
func (bs *bundles) lapsedReceipt(k contractKey, g *gathering) protocol.Receipt {
	return bs.outcomes.receipt(k.id(), &outcome{reason: protocol.CodeSettleBy, time: g.settleBy, user: g.user, currency: g.currency})
}

// lapsed checks only the form of a row: what lapsed moved nothing.
func (a *auditor) lapsed(key string, value []byte) {
	if _, err := voids.Decode(key, value); err != nil {
		a.bad("%s", err)
	}
}
