package audit_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"ramp/bank/audit"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// empty is a store that has nothing.
type empty struct{ protocol.Tables }

func (empty) Each(string, func(string, []byte) error) error { return nil }

// books is a ledger whose entries are kept.
type books struct {
	*testing.T
	ledger  *ledger.Ledger
	now     time.Time
	entries []audit.Proven
}

func named(name string) protocol.AgentID {
	return protocol.AgentID(name + "@" + strings.Repeat("a", 32))
}

func newBooks(t *testing.T) *books {
	t.Helper()
	b := &books{T: t, now: begin}
	l, err := ledger.Load(ledger.Config{Bank: named("bank"), Currencies: []string{"CPU"}}, b.now, empty{})
	b.must(nil, err)
	b.ledger = l
	for _, name := range []string{"ann", "bob"} {
		_, records, err := l.Open(b.now, named(name), name)
		b.must(records, err)
	}
	_, records, err := l.Credit(b.now, named("ann"), "CPU", 1000, "")
	b.must(records, err)
	return b
}

// must keeps the entries of what was done.
func (b *books) must(records []protocol.Record, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range records {
		if r.Table == ledger.TableEntries {
			b.entries = append(b.entries, audit.Proven{Number: binary.BigEndian.Uint64([]byte(r.Key)), Record: r.Value})
		}
	}
}

// buy is a bundle of two units, and what the bank says of it.
func (b *books) buy(mode protocol.Mode, cost protocol.Credits) (protocol.ContractID, protocol.Bundle, protocol.Receipt) {
	b.Helper()
	bundle := protocol.Bundle{
		Version: protocol.BundleVersion, User: named("ann"), Bank: named("bank"), Currency: "CPU", Mode: mode,
		SettleBy: b.now.Add(time.Minute), Total: 2 * cost,
	}
	for i := range 2 {
		u := protocol.BundleUnit{Unit: i, Seller: named("bob"), Cost: cost, Slot: protocol.Slot{Start: b.now.Add(time.Hour), End: b.now.Add(2 * time.Hour), Cores: 4}}
		if mode == protocol.ModeMetered {
			u.Tariff = protocol.Tariff{TimeLimit: time.Hour, P: protocol.Ramp{Lo: protocol.Core / 2, Hi: 3 * protocol.Core / 2, Top: 10 * protocol.Credit}}
		}
		bundle.Units = append(bundle.Units, u)
	}
	sum := sha256.Sum256([]byte(mode + protocol.Mode(cost.String())))
	id := protocol.ContractID(hex.EncodeToString(sum[:]))
	r, records, err := b.ledger.Copy(b.now, id, bundle, named("bob"))
	b.must(records, err)
	return id, bundle, r
}

// receipts are of every kind: void, paid at once, refunded, held, ended and refunded
// while held.
func (b *books) receipts() map[string]protocol.Receipt {
	b.Helper()
	list := map[string]protocol.Receipt{}
	keep := func(name string, r protocol.Receipt, records []protocol.Record, err error) {
		b.Helper()
		b.must(records, err)
		list[name] = r
	}
	_, _, list["void"] = b.buy(protocol.ModeOnReservation, 5000)
	id, bundle, r := b.buy(protocol.ModeOnReservation, 10)
	list["paid at once"] = r
	r, records, err := b.ledger.Refund(b.now, id, bundle, 1, 7, named("bob"))
	keep("refunded", r, records, err)
	id, bundle, list["held"] = b.buy(protocol.ModeOnCompletion, 10)
	r, records, err = b.ledger.Refund(b.now, id, bundle, 1, 10, named("bob"))
	keep("refunded while held", r, records, err)
	meteredID, metered, r := b.buy(protocol.ModeMetered, 10)
	list["metered"] = r
	b.now = b.now.Add(3 * time.Hour)
	r, records, err = b.ledger.Report(b.now, id, bundle, named("bob"), ledger.JobReport{Success: true, Ref: "x"})
	keep("one ended, one refunded", r, records, err)
	used := protocol.Usage{CPU: time.Minute, Wall: time.Minute, Share: protocol.Core}
	r, records, err = b.ledger.Report(b.now, meteredID, metered, named("bob"), ledger.JobReport{Success: true, Usage: used, Agreed: true, Ref: "y"})
	keep("metered, one measured", r, records, err)
	return list
}

// spoilt are the receipts that say something else than r, each in one word.
func spoilt(r protocol.Receipt) map[string]protocol.Receipt {
	list := map[string]protocol.Receipt{}
	add := func(what string, change func(r *protocol.Receipt)) {
		c := r
		c.Refunds, c.Ends = append([]protocol.Refund(nil), r.Refunds...), append([]protocol.UnitEnd(nil), r.Ends...)
		change(&c)
		list[what] = c
	}
	add("contract", func(r *protocol.Receipt) { r.Contract = protocol.ContractID(strings.Repeat("ab", 32)) })
	add("outcome", func(r *protocol.Receipt) {
		if r.Outcome == protocol.OutcomeVoid {
			r.Outcome = protocol.OutcomeSettled
		} else {
			r.Outcome = protocol.OutcomeVoid
		}
	})
	add("reason", func(r *protocol.Receipt) { r.Reason += "x" })
	add("entry", func(r *protocol.Receipt) { r.Entry-- })
	add("no entry", func(r *protocol.Receipt) { r.Entry = 1000 })
	add("time", func(r *protocol.Receipt) { r.Time = r.Time.Add(1) })
	add("total", func(r *protocol.Receipt) { r.Total++ })
	other := map[protocol.Mode]protocol.Mode{"": protocol.ModeMetered, protocol.ModeOnCompletion: protocol.ModeMetered, protocol.ModeMetered: protocol.ModeOnCompletion}
	add("mode", func(r *protocol.Receipt) { r.Mode = other[r.Mode] })
	if r.Mode != "" || r.Outcome == protocol.OutcomeVoid {
		add("user", func(r *protocol.Receipt) { r.User = named("eve") })
		add("currency", func(r *protocol.Receipt) { r.Currency = "GPU" })
	}
	for i := range r.Refunds {
		add("refund's unit", func(r *protocol.Receipt) { r.Refunds[i].Unit++ })
		add("refund's amount", func(r *protocol.Receipt) { r.Refunds[i].Amount-- })
		add("refund's entry", func(r *protocol.Receipt) { r.Refunds[i].Entry = r.Entry })
		add("refund's time", func(r *protocol.Receipt) { r.Refunds[i].Time = r.Refunds[i].Time.Add(1) })
	}
	for i := range r.Ends {
		add("end's unit", func(r *protocol.Receipt) { r.Ends[i].Unit++ })
		add("end's pay", func(r *protocol.Receipt) { r.Ends[i].Paid-- })
		add("end's word", func(r *protocol.Receipt) { r.Ends[i].How = protocol.EndFailed })
		add("end's entry", func(r *protocol.Receipt) { r.Ends[i].Entry = r.Entry })
		add("end's time", func(r *protocol.Receipt) { r.Ends[i].Time = r.Ends[i].Time.Add(1) })
	}
	return list
}

// Entries prove the receipt that they made, and none that says another word.
func TestEntriesProveTheirReceiptOnly(t *testing.T) {
	b := newBooks(t)
	for name, r := range b.receipts() {
		d := audit.Document{Entries: b.entries}
		if err := d.CheckReceipt(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for what, other := range spoilt(r) {
			if err := d.CheckReceipt(other); !errors.Is(err, audit.ErrProof) {
				t.Errorf("%s, with another %s: %v", name, what, err)
			}
		}
	}
}
