package ledger_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// A bank that lost its last hours gets them back from its own receipts, in
// whatever order they are shown.
func TestReceiptsBringALostBankBack(t *testing.T) {
	readmitted := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newJobsWorld(t, false, map[string]int{})
		w.walk(t, 20)
		backup := w.store.clone()
		w.walk(t, 20)
		receipts := w.receipts(t)

		lost := &bank{store: backup, now: w.now}
		if err := lost.reload(); err != nil {
			t.Fatal(err)
		}
		recovery(t, lost, true)
		for _, b := range rapid.Permutation(w.m.bundles).Draw(t, "order") {
			before := lost.LastEntry()
			r, err := lost.asking(b.id, func() (protocol.Receipt, error) {
				return saved[protocol.Receipt](lost)(lost.Readmit(lost.now, b.id, b.Bundle, receipts[b.id]))
			})
			same(t, "readmitted", code(err), "")
			w.compareReceipt(t, b, r)
			if lost.LastEntry() > before {
				readmitted++
			}
		}
		recovery(t, lost, false)
		for _, id := range w.all {
			was, _ := w.Account(id)
			is, _ := lost.Account(id)
			same(t, "account of "+id.Name(), is.Lines[0], was.Lines[0])
		}
		sound(t, lost)
	})
	if readmitted == 0 {
		t.Fatal("nothing was ever lost")
	}
}

// walk does only what leaves receipts.
func (w *jobsWorld) walk(t *rapid.T, steps int) {
	for range steps {
		j := w.pick(t)
		switch {
		case j == nil || rapid.IntRange(0, 2).Draw(t, "buy") == 0:
			w.buy(t)
		case rapid.Bool().Draw(t, "cancel"):
			back := protocol.Credits(rapid.Int64Range(0, 30).Draw(t, "back"))
			r, err := w.refund(j.bundle.contract, j.unit.Unit, back, j.unit.Seller)
			w.check(t, "cancel", j, r, code(err), w.m.cancel(j, back))
		default:
			w.report(t, j)
		}
		w.now = w.now.Add(time.Second)
	}
}

func (w *jobsWorld) receipts(t *rapid.T) map[protocol.ContractID]protocol.Receipt {
	all := map[protocol.ContractID]protocol.Receipt{}
	for _, b := range w.m.bundles {
		r, err := w.asking(b.id, func() (protocol.Receipt, error) { return w.Outcome(b.id) })
		same(t, "outcome", code(err), "")
		all[b.id] = r
	}
	return all
}

func recovery(t *rapid.T, b *bank, on bool) {
	if _, err := saved[ledger.Entry](b)(b.SetRecovery(b.now, on, "restored")); err != nil {
		t.Fatal(err)
	}
}

func TestABankThatRecoversDecidesNothing(t *testing.T) {
	b := policyBank(t)
	_, err := saved[ledger.Entry](b)(b.SetRecovery(b.now, true, "restored"))
	b.must(t, "recovery", err)
	b.must(t, "reload", b.reload())
	if !b.Recovering() {
		t.Fatal("a restart ended the recovery")
	}
	c := deal(b, protocol.ModeMetered)
	fresh := newContract("fresh", agent("ann"), b.now.Add(time.Minute), ledger.Payment{To: agent("bob"), Amount: 1})
	paid := newContract("paid", agent("ann"), b.now.Add(time.Minute), ledger.Payment{To: agent("bob"), Amount: 1})
	asked := map[string]error{
		"copy":    ignore(b.copy(fresh, agent("bob"))),
		"void":    ignore(b.void(fresh, agent("ann"))),
		"report":  ignore(saved[protocol.Receipt](b)(b.Report(b.now, c.id, c.Bundle, agent("bob"), ledger.JobReport{}))),
		"cancel":  ignore(b.refund(c, 0, 1, agent("bob"))),
		"hold":    ignore(saved[ledger.Hold](b)(b.Hold(b.now, agent("ann"), "cr", 1, b.now.Add(time.Hour), ""))),
		"voucher": ignore(saved[ledger.Hold](b)(b.Voucher(b.now, agent("ann"), "cr", "c", 1, b.now.Add(time.Hour)))),
		"quote":   ignore(saved[ledger.Quote](b)(b.Exchange.Quote(b.now, agent("ann"), "n", "cr", "eur", 1))),
	}
	for what, err := range asked {
		if code(err) != protocol.CodeUnavailable {
			t.Errorf("%s: %v, want unavailable", what, err)
		}
	}
	if r, err := b.copy(c, agent("bob")); err != nil || r.Outcome != protocol.OutcomeSettled {
		t.Errorf("what it does know: %v, %v", r, err)
	}
	b.now = b.now.Add(1000 * time.Hour)
	if done := b.expire(); len(done.Ended)+len(done.Voided)+len(done.Holds) > 0 || !b.NextDeadline().IsZero() {
		t.Errorf("it let %+v expire", done)
	}
	receipt := protocol.Receipt{
		Version: 1, Bank: bankID, Contract: paid.id, Outcome: protocol.OutcomeSettled, Entry: 99, User: agent("ann"), Total: 1, Currency: "cr",
	}
	for name, change := range map[string]func(r *protocol.Receipt){
		"of another bank":   func(r *protocol.Receipt) { r.Bank = agent("zoe") },
		"of another bundle": func(r *protocol.Receipt) { r.Contract = c.id },
		"of another total":  func(r *protocol.Receipt) { r.Total = 2 },
		"of another mode":   func(r *protocol.Receipt) { r.Mode = protocol.ModeMetered },
		"undecided":         func(r *protocol.Receipt) { r.Outcome = protocol.OutcomeGathering },
	} {
		r := receipt
		change(&r)
		if _, records, err := b.Readmit(b.now, paid.id, paid.Bundle, r); code(err) != protocol.CodeMismatch || len(records) > 0 {
			t.Errorf("a receipt %s: %v", name, err)
		}
	}
	b.must(t, "readmit", ignore(saved[protocol.Receipt](b)(b.Readmit(b.now, paid.id, paid.Bundle, receipt))))
	void := receipt
	void.Outcome, void.Total, void.Reason = protocol.OutcomeVoid, 0, protocol.CodeFunds
	if _, _, err := b.Readmit(b.now, paid.id, paid.Bundle, void); code(err) != protocol.CodeMismatch {
		t.Errorf("two receipts against each other: %v", err)
	}
	sound(t, b)
}

// The backup has bob's copy, and not that the bank voided the contract since: bob has freed
// his slot and keeps the receipt only. Once shown it, the bank settles nothing, even if
// somebody brings all copies before settle-by.
func TestAVoidReceiptNeedsNoBundle(t *testing.T) {
	b := policyBank(t)
	c := newContract("two", agent("ann"), b.now.Add(10*time.Minute),
		ledger.Payment{To: agent("bob"), Amount: 1}, ledger.Payment{To: agent("eve"), Amount: 1})
	b.must(t, "bob's copy", ignore(b.copy(c, agent("bob"))))
	backup := b.store.clone()
	receipt, err := b.void(c, agent("ann"))
	b.must(t, "void", err)

	for name, first := range map[string]memory{"with bob's copy": backup, "without": policyBank(t).store} {
		lost := &bank{store: first.clone(), now: b.now}
		lost.must(t, "reload", lost.reload())
		lost.must(t, "recovery", ignore(saved[ledger.Entry](lost)(lost.SetRecovery(lost.now, true, "restored"))))
		settled := receipt
		settled.Outcome = protocol.OutcomeSettled
		if _, _, err := lost.Readmit(lost.now, c.id, protocol.Bundle{}, settled); code(err) != protocol.CodeNoBank {
			t.Errorf("%s: a settled one without its bundle: %v", name, err)
		}
		if _, _, err := lost.Readmit(lost.now, contractID("other"), protocol.Bundle{}, receipt); code(err) != protocol.CodeMismatch {
			t.Errorf("%s: under another contract: %v", name, err)
		}
		r, err := saved[protocol.Receipt](lost)(lost.Readmit(lost.now, c.id, protocol.Bundle{}, receipt))
		if err != nil || r.Outcome != protocol.OutcomeVoid || r.Reason != receipt.Reason || r.User != receipt.User {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		lost.must(t, "the end", ignore(saved[ledger.Entry](lost)(lost.SetRecovery(lost.now, false, ""))))
		for _, seller := range []string{"bob", "eve"} {
			if r, err := lost.copy(c, agent(seller)); err != nil || r.Outcome != protocol.OutcomeVoid {
				t.Errorf("%s: the copy of %s: %+v, %v", name, seller, r, err)
			}
		}
		sound(t, lost)
	}
}

// A receipt in a currency that the bank kept only later than its backup brings back
// what its user paid, though the backup has no account of the user in it.
func TestAReceiptInACurrencyThatIsYoungerThanTheBackup(t *testing.T) {
	for _, mode := range []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion} {
		fewer := config()
		fewer.Currencies = []string{"cr"}
		b := &bank{store: memory{}, now: start()}
		var err error
		b.Ledger, err = ledger.Load(fewer, b.now, b.store)
		b.must(t, "load", err)
		b.must(t, "open ann", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("ann"), "ann"))))
		b.must(t, "open bob", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("bob"), "bob"))))
		b.must(t, "reload", b.reload()) // with eur
		b.must(t, "recovery", ignore(saved[ledger.Entry](b)(b.SetRecovery(b.now, true, "restored"))))
		c := deal(b, mode)
		c.Currency = "eur"
		receipt := protocol.Receipt{
			Version: 1, Bank: bankID, Contract: c.id, Outcome: protocol.OutcomeSettled, Entry: 99, User: agent("ann"), Total: 10, Currency: "eur",
		}
		if mode != protocol.ModeOnReservation {
			receipt.Mode = mode
		}
		r, err := saved[protocol.Receipt](b)(b.Readmit(b.now, c.id, c.Bundle, receipt))
		if err != nil || r.Outcome != protocol.OutcomeSettled {
			t.Fatalf("%s: %v %v", mode, r, err)
		}
		a, _ := b.Account(agent("ann"))
		if n := a.Lines[1]; n.Currency != "eur" || n.Available != -10 {
			t.Errorf("%s: ann has %+v", mode, n)
		}
		sound(t, b)
		b.must(t, "reload", b.reload())
	}
}
