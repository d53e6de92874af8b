package contract_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

func metered() protocol.Bundle {
	b := plain()
	b.Mode = protocol.ModeMetered
	for i := range b.Units {
		u := &b.Units[i]
		u.Tariff = protocol.Tariff{TimeLimit: u.Slot.Wall(), P: protocol.Ramp{Hi: protocol.Core, Top: u.Price}, Prepay: u.Cost}
	}
	return b
}

func TestMeteredBundlesSayWhatIsMetered(t *testing.T) {
	octets, err := contract.Encode(metered())
	must(t, err)
	back, err := contract.Decode(octets)
	must(t, err)
	if d := cmp.Diff(metered(), back); d != "" {
		t.Error(d)
	}
	for name, change := range map[string]func(b *protocol.Bundle){
		"no tariff":                         func(b *protocol.Bundle) { b.Units[1].Tariff = protocol.Tariff{} },
		"a tariff in another mode":          func(b *protocol.Bundle) { b.Mode = protocol.ModeOnCompletion },
		"a limit beyond the slot":           func(b *protocol.Bundle) { b.Units[0].Tariff.TimeLimit++ },
		"a prepayment unlike the ceiling":   func(b *protocol.Bundle) { b.Units[0].Tariff.Prepay-- },
		"a least rate above the greatest":   func(b *protocol.Bundle) { b.Units[0].Tariff.P.Lo = protocol.Core + 1 },
		"a greatest price that is no price": func(b *protocol.Bundle) { b.Units[0].Tariff.Q.Top = -1 },
	} {
		b := metered()
		change(&b)
		if _, err := contract.Encode(b); !errors.Is(err, contract.ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReceiptsOfWhatIsPaidAfterTheFact(t *testing.T) {
	m := newMarket(t, "ann", "bank")
	receipt := func() protocol.Receipt {
		r := m.receipt()
		r.Mode, r.Refunds = protocol.ModeMetered, nil
		r.Ends = []protocol.UnitEnd{
			{Unit: 0, Paid: 1, How: protocol.EndAgreed, Entry: 8, Time: now.UTC()},
			{Unit: 3, Paid: r.Total - 1, How: protocol.EndSilent, Entry: 9, Time: now.UTC()},
		}
		return r
	}
	der, err := contract.SignReceipt(m.agent["bank"], receipt(), now)
	must(t, err)
	got, err := contract.OpenReceipt(der, m.trust, now)
	must(t, err)
	if d := cmp.Diff(receipt(), got.Receipt); d != "" {
		t.Error(d)
	}
	for name, change := range map[string]func(r *protocol.Receipt){
		"ends of what was paid at once": func(r *protocol.Receipt) { r.Mode = "" },
		"the mode that is not named":    func(r *protocol.Receipt) { r.Mode = protocol.ModeOnReservation },
		"an unknown mode":               func(r *protocol.Receipt) { r.Mode = "later" },
		"more paid than held":           func(r *protocol.Receipt) { r.Ends[0].Paid = 2 },
		"less than nothing paid":        func(r *protocol.Receipt) { r.Ends[0].Paid = -1 },
		"a unit twice":                  func(r *protocol.Receipt) { r.Ends[1].Unit = 0 },
		"an unknown end":                func(r *protocol.Receipt) { r.Ends[0].How = "cancelled" },
		"no entry":                      func(r *protocol.Receipt) { r.Ends[0].Entry = 0 },
		"with a refund more than held": func(r *protocol.Receipt) {
			r.Refunds = []protocol.Refund{{Unit: 5, Amount: 1, Entry: 3, Time: now.UTC()}}
		},
	} {
		r := receipt()
		change(&r)
		if _, err := contract.SignReceipt(m.agent["bank"], r, now); !errors.Is(err, contract.ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotesOfJobsVouchersAndQuotes(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	annID, bobID, bankID := m.agent["ann"].ID, m.agent["bob"].ID, m.agent["bank"].ID
	hash := strings.Repeat("ab", 32)
	job := contract.JobRecord{Version: 1, Contract: protocol.ContractID(hash), Unit: 2, Seller: bobID, Success: true,
		Usage: protocol.Usage{CPU: time.Hour, Wall: time.Hour, Share: 5}, Due: 7, Ended: now.UTC()}
	verdict := contract.Verdict{Version: 1, Contract: protocol.ContractID(hash), Unit: 2, User: annID, Record: hash, Agree: true, At: now.UTC()}
	voucher := contract.Voucher{Version: 1, Bank: bankID, User: annID, Conversation: "c-1", Currency: "RMP", Amount: 5, Until: now.UTC(), Hold: 3}
	quote := contract.Quote{Version: 1, Bank: bankID, ID: "q", User: annID, From: "RMP", To: "EUR", Gives: 5, Gets: 6, Until: now.UTC()}
	signs(t, m, m.agent["bob"], job, func(n *contract.JobRecord) { n.Due = -1 }, func(n *contract.JobRecord) { n.Usage.CPU = -1 },
		func(n *contract.JobRecord) { n.Unit = protocol.MaxUnits }, func(n *contract.JobRecord) { n.Contract = "x" }, func(n *contract.JobRecord) { n.Ended = time.Time{} },
		func(n *contract.JobRecord) { n.Measured = "guess" })
	for _, by := range []protocol.Measured{protocol.MeasuredAccounting, protocol.MeasuredJobs, protocol.MeasuredSlot} {
		measured := job
		measured.Measured = by
		signs(t, m, m.agent["bob"], measured)
	}
	signs(t, m, m.agent["ann"], verdict, func(n *contract.Verdict) { n.Record = "x" }, func(n *contract.Verdict) { n.Version = 2 },
		func(n *contract.Verdict) { n.Why = "an agreement needs none" })
	verdict.Agree, verdict.Why = false, strings.Repeat("x", contract.MaxWhy)
	signs(t, m, m.agent["ann"], verdict, func(n *contract.Verdict) { n.Why += "x" }, func(n *contract.Verdict) { n.Why = "\x1b[2J" })
	signs(t, m, m.agent["bank"], voucher, func(n *contract.Voucher) { n.Amount = 0 }, func(n *contract.Voucher) { n.Conversation = "" },
		func(n *contract.Voucher) { n.Currency = "rmp" }, func(n *contract.Voucher) { n.User = "ann" })
	signs(t, m, m.agent["bank"], quote, func(n *contract.Quote) { n.Gives = 0 }, func(n *contract.Quote) { n.Gets = -1 },
		func(n *contract.Quote) { n.To = "" }, func(n *contract.Quote) { n.ID = "a b" })
	if _, err := contract.SignNote(m.agent["ann"], job, now); !errors.Is(err, contract.ErrSigner) {
		t.Errorf("a record signed by the user: %v", err)
	}
	one, err := contract.RecordHash(job)
	must(t, err)
	job.Due++
	if two, _ := contract.RecordHash(job); one == two || len(one) != 64 {
		t.Errorf("records of two amounts are both named %s", one)
	}
}

// signs opens what was signed, and signs nothing that breaks a rule.
func signs[N contract.Note](t *testing.T, m *market, by *identity.Credential, n N, bad ...func(*N)) {
	t.Helper()
	der, err := contract.SignNote(by, n, now)
	must(t, err)
	got, err := contract.OpenNote[N](der, m.trust, now)
	must(t, err)
	if d := cmp.Diff(n, got.Note); d != "" || !got.Checked() {
		t.Errorf("%T: %s", n, d)
	}
	for i, change := range bad {
		wrong := n
		change(&wrong)
		if _, err := contract.SignNote(by, wrong, now); err == nil {
			t.Errorf("%T %d was signed: %+v", n, i, wrong)
		}
	}
}
