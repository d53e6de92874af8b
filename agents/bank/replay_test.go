package bank_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/agents/bank"
	"ramp/agents/markettest"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// Two banks of one authority have the same agents as customers. What was signed for one of
// them moves no money and decides nothing at the other, whether it recovers or not.
func TestNothingSignedForOneBankCountsAtAnother(t *testing.T) {
	const seller, user = "s01", markettest.User
	a, b := open(t, 1, markettest.Store{}), openAs(t, markettest.Stranger, 1, markettest.Store{})
	fresh, late, metered := a.bundle("c", 1), a.late("d", protocol.ModeOnCompletion), a.late("e", protocol.ModeMetered)
	settled := a.ask(seller, protocol.Request, a.copyOf(fresh, seller)).Send[0].Body.(message.Decision)
	a.ask(seller, protocol.Request, a.copyOf(late, seller))
	a.ask(seller, protocol.Request, a.copyOf(metered, seller))
	der, err := contract.SignReceipt(a.cast.Credential(markettest.Bank), settled.Receipt.Receipt, a.now)
	a.must(err)
	receipt, err := contract.OpenReceipt(der, a.cast.Trust, a.now)
	a.must(err)
	used := a.record(metered, true, 30*time.Minute, 125_000)
	own := b.bundle("c", 1) // of the same conversation
	attacks := []struct {
		name, from string
		body       protocol.Body
		want       string
	}{
		{"a contract", seller, a.copyOf(fresh, seller), "s01 refuse no-bank"},
		{"a void request", user, message.Annulment{Bundle: fresh}, "user refuse no-bank"},
		{"a refund", seller, a.refund(fresh, 0, protocol.Credit, seller), "s01 refuse no-bank"},
		{"a usage record", seller, a.record(late, true, 0, protocol.Credit), "s01 refuse no-bank"},
		{"a metered record", seller, used, "s01 refuse no-bank"},
		{"a verdict", user, a.verdict(used, true), "user refuse unknown"},
		{"a receipt", seller, message.Readmission{Bundle: fresh, Receipt: receipt}, "s01 refuse signature"},
		{"a receipt for another bundle", seller, message.Readmission{Bundle: own, Receipt: receipt}, "s01 refuse signature"},
		{"a question", user, message.OutcomeQuery{Contract: fresh.ID}, "user agree unknown"},
	}
	money := b.balanceOf(user)
	for _, recovers := range []bool{false, true} {
		if recovers {
			_, out, err := b.role.SetRecovery(b.now, true, "")
			b.must(err)
			b.save(out)
		}
		for _, x := range attacks {
			out := b.ask(x.from, protocol.Request, x.body)
			b.expect(fmt.Sprintf("%s, recovering %t", x.name, recovers), out, x.want)
			if len(out.Save) > 0 {
				t.Errorf("%s is recorded: %+v", x.name, out.Save)
			}
		}
	}
	if got := b.balanceOf(user); got != money || b.balanceOf(seller) != 0 {
		t.Errorf("the user has %s, had %s; the seller has %s", got, money, b.balanceOf(seller))
	}
}

// A ledger is its bank's: under another key it does not open.
func TestALedgerOpensForItsOwnBankOnly(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	if _, _, err := bank.New(bank.Config{ID: c.cast.ID(markettest.Stranger), Currencies: c.currencies}, c.store, c.now); err == nil {
		t.Fatal("a bank with another key took over the ledger")
	}
}

// A voucher and a quote are good at their bank only, and a voucher in its currency only.
func TestVouchersAndQuotesStayWhereTheyAre(t *testing.T) {
	const seller, user = "s01", markettest.User
	two := func(bank string) *counter {
		c := openAs(t, bank, 1, markettest.Store{})
		c.currencies, c.unit = []string{"CRD", "GPU"}, 600*protocol.Credit
		c.restart()
		_, out, err := c.role.Credit(c.now, c.cast.ID(user), "GPU", 1000*protocol.Credit, "x")
		c.must(err)
		c.save(out)
		return c
	}
	a, b := two(markettest.Bank), two(markettest.Stranger)
	vouch := func(c *counter, currency string) protocol.Output {
		return c.ask(user, protocol.Request, message.VoucherRequest{Conversation: "c", Currency: currency, Amount: 900 * protocol.Credit, Until: c.now.Add(time.Minute)})
	}
	a.expect("a voucher", vouch(a, "GPU"), "user agree voucher")
	for _, c := range []*counter{a, b} { // 600 twice is more than the 1,000 outside the voucher
		first, second := c.bundle("c", 1), c.bundle("c2", 1)
		c.expect("the first", c.ask(seller, protocol.Request, c.copyOf(first, seller)), "s01 agree settled", "user inform settled")
		c.expect("the second", c.ask(seller, protocol.Request, c.copyOf(second, seller)), "s01 refuse void", "user inform void")
	}
	_, out, err := a.role.SetRate(a.now, "GPU", "CRD", protocol.Credit, "")
	a.must(err)
	a.save(out)
	a.expect("a quote", a.ask(user, protocol.Request, message.QuoteRequest{ID: "q", From: "GPU", To: "CRD", Gives: protocol.Credit}), "user agree quote")
	b.expect("its use elsewhere", b.ask(user, protocol.Request, message.ExchangeRequest{ID: "q"}), "user refuse unknown")
	b.expect("by another", a.ask(seller, protocol.Request, message.ExchangeRequest{ID: "q"}), "s01 refuse unknown")
}
