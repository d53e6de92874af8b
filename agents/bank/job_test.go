package bank_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// late is a signed bundle of one unit that is paid after the fact.
func (c *counter) late(conversation string, mode protocol.Mode) contract.Verified {
	b := c.bundle(conversation, 1).Bundle
	b.Mode = mode
	if mode == protocol.ModeMetered {
		b.Units[0].Tariff = protocol.Tariff{TimeLimit: time.Hour, P: protocol.Ramp{Hi: protocol.Core, Top: protocol.Credit / 2}}
	}
	der, err := contract.Sign(c.cast.Credential(markettest.User), b, c.now)
	c.must(err)
	v, err := contract.OpenBundle(der, c.cast.Trust, c.now)
	c.must(err)
	return v
}

func signed[N contract.Note](c *counter, by string, n N) contract.VerifiedNote[N] {
	der, err := contract.SignNote(c.cast.Credential(by), n, c.now)
	c.must(err)
	v, err := contract.OpenNote[N](der, c.cast.Trust, c.now)
	c.must(err)
	return v
}

func (c *counter) record(v contract.Verified, success bool, used time.Duration, due protocol.Credits) message.JobReport {
	n := contract.JobRecord{
		Version: contract.NoteVersion, Contract: v.ID, Seller: v.Bundle.Units[0].Seller, Success: success, Due: due, Ended: c.now.UTC(),
	}
	if used > 0 {
		n.Usage = protocol.Usage{CPU: used, Wall: time.Hour}
	}
	return message.JobReport{Bundle: v, Signed: signed(c, markettest.Seller(1), n)}
}

func (c *counter) verdict(r message.JobReport, agree bool) message.JobVerdict {
	hash, err := contract.RecordHash(r.Signed.Note)
	c.must(err)
	return message.JobVerdict{Signed: signed(c, markettest.User, contract.Verdict{
		Version: contract.NoteVersion, Contract: r.Bundle.ID, User: c.cast.ID(markettest.User), Record: hash, Agree: agree, At: c.now.UTC(),
	})}
}

func (c *counter) balanceOf(name string) protocol.Credits {
	a, _ := c.role.Ledger().Account(c.cast.ID(name))
	return a.Lines[0].Balance
}

func TestAJobIsPaidWhenItsSellerSaysThatItSucceeded(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	seller := markettest.Seller(1)
	v := c.late("c", protocol.ModeOnCompletion)
	c.expect("copy", c.ask(seller, protocol.Request, c.copyOf(v, seller)), seller+" agree settled", "user inform settled")
	if got := c.balanceOf(seller); got != 0 {
		t.Errorf("the seller was paid %s at once", got)
	}
	c.restart()
	c.expect("a wrong amount", c.ask(seller, protocol.Request, c.record(v, true, 0, 1)), seller+" refuse mismatch")
	c.expect("report", c.ask(seller, protocol.Request, c.record(v, true, 0, protocol.Credit)), seller+" agree settled", markettest.User+" inform settled")
	c.expect("again", c.ask(seller, protocol.Request, c.record(v, false, 0, 0)), seller+" agree settled")
	if got := c.balanceOf(seller); got != protocol.Credit {
		t.Errorf("the seller has %s, want 1", got)
	}
}

func TestAUsageRecordIsSentToItsUserWhoAgreesOrNot(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	seller, user := markettest.Seller(1), markettest.User
	for i, agree := range []bool{true, false} {
		v := c.late([]string{"c", "d"}[i], protocol.ModeMetered)
		c.ask(seller, protocol.Request, c.copyOf(v, seller))
		r := c.record(v, true, 30*time.Minute, 125_000)
		c.expect("record", c.ask(seller, protocol.Request, r), seller+" agree settled", user+" inform job-report")
		c.expect("again", c.ask(seller, protocol.Request, r), seller+" agree settled")
		other := c.verdict(c.record(v, false, 30*time.Minute, 125_000), true)
		c.expect("a verdict on another record", c.ask(user, protocol.Request, other), user+" refuse mismatch")
		if agree {
			c.expect("agreed", c.ask(user, protocol.Request, c.verdict(r, true)), seller+" inform settled", user+" agree settled")
			continue
		}
		c.expect("disputed", c.ask(user, protocol.Request, c.verdict(r, false)), user+" agree settled")
		_, out, err := c.role.Arbitrate(c.now, v.ID, 0, 25_000, "hearing")
		c.must(err)
		c.save(out)
		c.expect("arbitrated", out, user+" inform settled", seller+" inform settled")
	}
	if got := c.balanceOf(seller); got != 150_000 {
		t.Errorf("the seller has %s, want 0.15", got)
	}
}

// A record by which nothing is due ends its unit at once. Its user sees it first.
func TestARecordWithNothingDueIsSentToItsUser(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	seller, user := markettest.Seller(1), markettest.User
	v := c.late("c", protocol.ModeMetered)
	c.ask(seller, protocol.Request, c.copyOf(v, seller))
	r := c.record(v, true, 0, 0)
	out := c.ask(seller, protocol.Request, r)
	c.expect("record", out, user+" inform job-report", seller+" agree settled", user+" inform settled")
	if _, first := out.Send[0].Body.(message.JobReport); !first {
		t.Error("its user is told that the unit has ended before it sees the record")
	}
	c.expect("again", c.ask(seller, protocol.Request, r), seller+" agree settled")
	c.expect("its user agrees", c.ask(user, protocol.Request, c.verdict(r, true)), user+" agree settled")
}

func TestBothAreToldWhenSilenceDecides(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	seller := markettest.Seller(1)
	v := c.late("c", protocol.ModeMetered)
	c.ask(seller, protocol.Request, c.copyOf(v, seller))
	c.ask(seller, protocol.Request, c.record(v, true, 30*time.Minute, 125_000))
	c.now = c.now.Add(protocol.DisputeWithin)
	var decided []string
	for _, line := range told(c.save(c.role.Wake(c.now))) {
		if line != ".everyone inform presence" && line != " inform presence" {
			decided = append(decided, line)
		}
	}
	if len(decided) < 2 || c.balanceOf(seller) != 125_000 {
		t.Errorf("told %q, the seller has %s", decided, c.balanceOf(seller))
	}
}

func TestAVoucherIsSignedAndPaysItsBundle(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	seller, user := markettest.Seller(1), markettest.User
	q := message.VoucherRequest{Conversation: "c", Currency: "CRD", Amount: 1000 * protocol.Credit, Until: c.now.Add(time.Hour)}
	out := c.ask(user, protocol.Request, q)
	c.expect("voucher", out, user+" agree voucher")
	n := out.Send[0].Body.(message.Vouched).Signed.Note
	if n.Amount != q.Amount || n.User != c.cast.ID(user) || n.Bank != c.cast.ID(markettest.Bank) || n.Hold == 0 {
		t.Errorf("voucher %+v", n)
	}
	q.Conversation = "d"
	c.expect("another", c.ask(user, protocol.Request, q), user+" refuse funds")
	c.expect("a bundle without", c.ask(seller, protocol.Request, c.copyOf(c.bundle("d", 1), seller)), seller+" refuse void", "user inform void")
	c.expect("its bundle", c.ask(seller, protocol.Request, c.copyOf(c.bundle("c", 1), seller)), seller+" agree settled", "user inform settled")
	if a, _ := c.role.Ledger().Account(c.cast.ID(user)); a.Lines[0].Balance != 999*protocol.Credit || a.Lines[0].Held != 999*protocol.Credit {
		t.Errorf("%s is left, %s of it held; want 999, all held until the voucher ends", a.Lines[0].Balance, a.Lines[0].Held)
	}
}

func TestAQuoteIsCarriedOutOnce(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	user := markettest.User
	c.expect("no rate", c.ask(user, protocol.Request, message.QuoteRequest{ID: "q", From: "CRD", To: "EUR", Gives: protocol.Credit}), user+" refuse no-bank")
	c.expect("no quote", c.ask(user, protocol.Request, message.ExchangeRequest{ID: "q"}), user+" refuse unknown")
	if _, _, err := c.role.SetRate(c.now, "CRD", "CRD", protocol.Credit, ""); err == nil {
		t.Error("a currency is exchanged for itself")
	}
}

func TestABankThatRecoversTakesOnlyItsOwnReceipts(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	seller := markettest.Seller(1)
	v := c.bundle("c", 1)
	lost := protocol.Receipt{
		Version: contract.ReceiptVersion, Bank: c.cast.ID(markettest.Bank), Contract: v.ID, Outcome: protocol.OutcomeSettled,
		Entry: 77, Time: c.now.UTC(), User: v.Bundle.User, Total: v.Bundle.Total, Currency: "CRD",
	}
	der, err := contract.SignReceipt(c.cast.Credential(markettest.Bank), lost, c.now)
	c.must(err)
	receipt, err := contract.OpenReceipt(der, c.cast.Trust, c.now)
	c.must(err)
	c.expect("too early", c.ask(seller, protocol.Request, message.Readmission{Bundle: v, Receipt: receipt}), seller+" refuse forbidden")
	_, out, err := c.role.SetRecovery(c.now, true, "restored")
	c.must(err)
	c.save(out)
	c.expect("a copy", c.ask(seller, protocol.Request, c.copyOf(v, seller)), seller+" refuse unavailable")
	foreign := receipt
	foreign.Signer = identity.Peer{ID: c.cast.ID(seller)}
	c.expect("another's", c.ask(seller, protocol.Request, message.Readmission{Bundle: v, Receipt: foreign}), seller+" refuse signature")
	c.expect("its own", c.ask(seller, protocol.Request, message.Readmission{Bundle: v, Receipt: receipt}), seller+" agree settled")
	if got := c.balanceOf(seller); got != protocol.Credit {
		t.Errorf("the seller has %s, want 1", got)
	}
	other := c.bundle("d", 1)
	lost.Contract, lost.Outcome, lost.Reason, lost.Total = other.ID, protocol.OutcomeVoid, protocol.CodeFunds, 0
	der, err = contract.SignReceipt(c.cast.Credential(markettest.Bank), lost, c.now)
	c.must(err)
	void, err := contract.OpenReceipt(der, c.cast.Trust, c.now)
	c.must(err)
	c.expect("a void one, without its bundle", c.ask(seller, protocol.Request, message.Readmission{Receipt: void}), seller+" refuse void")
	c.expect("its copy", c.ask(seller, protocol.Request, c.copyOf(other, seller)), seller+" refuse void")
}

// The operator's acts are refused as the ledger refuses them, and signed.
func TestActsAreSigned(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	c.sign = func(octets []byte) []byte { h := sha256.Sum256(octets); return h[:] }
	c.restart()
	user := c.cast.ID(markettest.User)
	for name, do := range map[string]func() (ledger.Entry, protocol.Output, error){
		"limit": func() (ledger.Entry, protocol.Output, error) { return c.role.SetLimit(c.now, user, "CRD", 5) },
		"standing": func() (ledger.Entry, protocol.Output, error) {
			return c.role.SetStanding(c.now, user, ledger.StandingFrozen, "")
		},
		"group": func() (ledger.Entry, protocol.Output, error) { return c.role.OpenGroup(c.now, "A") },
		"transfer": func() (ledger.Entry, protocol.Output, error) {
			return c.role.Transfer(c.now, user, c.cast.ID(markettest.Seller(1)), "CRD", 1, ledger.Disputed{}, "")
		},
	} {
		e, out, err := do()
		c.must(err)
		c.save(out)
		if len(e.Signature) == 0 || len(out.Save) == 0 {
			t.Errorf("%s: entry %+v", name, e)
		}
	}
	refused := map[string]error{}
	_, _, refused["policy"] = c.role.SetPolicy(c.now, "CRD", ledger.Policy{Kind: ledger.PolicyBarter})
	_, _, refused["allowance"] = c.role.SetAllowance(c.now, user, "CRD", 1, "")
	_, _, refused["members"] = c.role.SetGroup(c.now, ledger.Group{Name: "B"}, "")
	for what, err := range refused {
		if err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
}
