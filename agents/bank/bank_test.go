package bank_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ramp/agents/bank"
	"ramp/agents/markettest"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// counter is a bank with an account for everybody, and what it answers.
type counter struct {
	t     *testing.T
	cast  *markettest.Cast
	store store
	role  *bank.Role
	now   time.Time
	sign  func([]byte) []byte
	as    string // whose credential the bank has

	currencies []string
	unit       protocol.Credits // what unit 0 of a bundle costs; unit i costs i+1 times that
}

type store interface {
	protocol.Tables
	Append(records []protocol.Record) error
}

func open(t *testing.T, sellers int, s store) *counter { return openAs(t, markettest.Bank, sellers, s) }

func openAs(t *testing.T, bank string, sellers int, s store) *counter {
	c := &counter{t: t, cast: markettest.NewCast(t, sellers), store: s, now: markettest.Dawn, as: bank, currencies: []string{"CRD"}, unit: protocol.Credit}
	c.restart()
	for i := range sellers {
		c.account(markettest.Seller(i + 1))
	}
	c.account(markettest.User)
	_, out, err := c.role.Credit(c.now, c.cast.ID(markettest.User), "CRD", 1000*protocol.Credit, "x")
	c.must(err)
	c.save(out)
	return c
}

func (c *counter) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *counter) account(name string) {
	_, out, err := c.role.OpenAccount(c.now, c.cast.ID(name), name, 0)
	c.must(err)
	c.save(out)
}

func (c *counter) restart() protocol.Output {
	role, out, err := bank.New(bank.Config{ID: c.cast.ID(c.as), Currencies: c.currencies, Sign: c.sign}, c.store, c.now)
	c.must(err)
	c.role = role
	c.save(out)
	return out
}

func (c *counter) save(out protocol.Output) protocol.Output {
	c.must(c.store.Append(out.Save))
	return out
}

// bundle is a signed one of one unit from each seller.
func (c *counter) bundle(conversation string, sellers int) contract.Verified {
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: conversation, User: c.cast.ID(markettest.User), Bank: c.cast.ID(c.as),
		Currency: "CRD", Mode: protocol.ModeOnReservation, RFQ: fmt.Sprintf("%064d", 0), Nonce: fmt.Sprintf("%032d", 0), SettleBy: c.now.Add(30 * time.Second),
	}
	for i := range sellers {
		cost := protocol.Credits(i+1) * c.unit
		b.Units = append(b.Units, protocol.BundleUnit{Unit: i, Seller: c.cast.ID(markettest.Seller(i + 1)), Reservation: fmt.Sprint("r-", conversation, i),
			Slot: protocol.Slot{Start: c.now.Add(time.Hour), End: c.now.Add(2 * time.Hour), Cores: 1}, Price: cost, Cost: cost})
		b.Total += cost
	}
	der, err := contract.Sign(c.cast.Credential(markettest.User), b, c.now)
	c.must(err)
	v, err := contract.OpenBundle(der, c.cast.Trust, c.now)
	c.must(err)
	return v
}

func (c *counter) copyOf(v contract.Verified, seller string) message.Settlement {
	der, err := contract.Countersign(c.cast.Credential(seller), v, c.now)
	c.must(err)
	s, err := contract.OpenSale(der, c.cast.Trust, c.now)
	c.must(err)
	return message.Settlement{Sale: s}
}

// ask brings the bank a body and saves what it makes of it.
func (c *counter) ask(from string, p protocol.Performative, body protocol.Body) protocol.Output {
	return c.save(c.role.Receive(c.now, protocol.Message{Performative: p, Sender: c.cast.ID(from), Protocol: protocol.ProtocolRequest,
		Conversation: "c", ReplyWith: "tag-" + from, Body: body}))
}

// told are the answers of an Output as "who performative outcome".
func told(out protocol.Output) []string {
	var list []string
	for _, m := range out.Send {
		what := m.Body.Kind()
		switch b := m.Body.(type) {
		case message.Decision:
			what = string(b.Outcome)
			if (b.Receipt != nil) != (b.Outcome == protocol.OutcomeSettled || b.Outcome == protocol.OutcomeVoid) {
				what += " with the wrong receipt"
			}
		case message.Refusal:
			what = string(b.Reasons[0].Code)
		}
		list = append(list, fmt.Sprintf("%s %s %s", m.Receivers[0].Name(), m.Performative, what))
	}
	return list
}

func (c *counter) expect(what string, out protocol.Output, want ...string) {
	c.t.Helper()
	got := told(out)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Fatalf("%s: told %q, want %q", what, got, want)
	}
}

// k sellers' copies are gathered; with the last one everybody that the bundle names
// is told, each once: who waits gets its answer, the others are informed in the
// bundle's conversation.
func TestAllPartiesAreToldOnce(t *testing.T) {
	for _, sellers := range []int{1, 2, 7} {
		c := open(t, sellers, markettest.Store{})
		v := c.bundle("c", sellers)
		var want []string
		for i := range sellers - 1 {
			name := markettest.Seller(i + 1)
			c.expect("an early copy", c.ask(name, protocol.Request, c.copyOf(v, name)))
			c.expect("a repeated one", c.ask(name, protocol.Request, c.copyOf(v, name)))
			c.expect("a question", c.ask(name, protocol.QueryRef, message.OutcomeQuery{Contract: v.ID}), name+" inform gathering")
			want = append(want, name+" agree settled")
		}
		last := markettest.Seller(sellers)
		if sellers > 1 { // the user brings a copy too, and waits
			c.expect("the user's copy", c.ask(markettest.User, protocol.Request, c.copyOf(v, markettest.Seller(1))))
		}
		out := c.ask(markettest.User, protocol.Request, c.copyOf(v, last))
		c.expect("the last copy", out, append(want, "user agree settled", last+" inform settled")...)
		for _, m := range out.Send {
			name, tag := m.Receivers[0].Name(), ""
			if name != last { // which has not asked
				tag = "tag-" + name
			}
			if m.InReplyTo != tag || m.Conversation != "c" {
				t.Fatalf("%s is answered to %q in %q", name, m.InReplyTo, m.Conversation)
			}
		}
		c.expect("after it", c.ask(last, protocol.Request, c.copyOf(v, last)), last+" agree settled")
		if n := c.role.Ledger().Sum()["CRD"]; n != 0 {
			t.Fatalf("the ledger sums to %s", n)
		}
	}
}

// What a restart forgets is who waits: copies are kept.
func TestCopiesSurviveARestart(t *testing.T) {
	c := open(t, 2, markettest.Store{})
	v := c.bundle("c", 2)
	c.ask("s01", protocol.Request, c.copyOf(v, "s01"))
	c.restart()
	c.expect("the last copy", c.ask("s02", protocol.Request, c.copyOf(v, "s02")), "s02 agree settled", "s01 inform settled", "user inform settled")
	c.expect("a question", c.ask("s01", protocol.QueryRef, message.OutcomeQuery{Contract: v.ID}), "s01 inform settled")
}

// At settle-by, or when a party asks before, the bank voids; whoever waits is
// told, and it stays so after a restart and with the clock set back.
func TestVoid(t *testing.T) {
	for _, way := range []string{"settle-by", "the user asks", "a seller asks", "a stranger asks"} {
		t.Run(way, func(t *testing.T) {
			c := open(t, 2, markettest.Store{})
			v := c.bundle("c", 2)
			c.ask("s01", protocol.Request, c.copyOf(v, "s01"))
			switch way {
			case "settle-by":
				c.now = c.now.Add(ledgerGrace)
				c.expect("settle-by", c.save(c.role.Wake(c.now)), "s01 refuse void", ".everyone inform presence", "s02 inform void", "user inform void")
			case "the user asks":
				c.expect(way, c.ask(markettest.User, protocol.Request, message.Annulment{Bundle: v}), "user refuse void", "s01 refuse void", "s02 inform void")
			case "a seller asks":
				c.expect(way, c.ask("s02", protocol.Request, message.Annulment{Bundle: v}), "s02 refuse void", "s01 refuse void", "user inform void")
			case "a stranger asks":
				c.expect(way, c.ask(markettest.Stranger, protocol.Request, message.Annulment{Bundle: v}), "stranger refuse forbidden")
				return
			}
			c.restart()
			c.now = markettest.Dawn.Add(-10 * time.Minute)
			c.expect("a late copy", c.ask("s02", protocol.Request, c.copyOf(v, "s02")), "s02 refuse void")
			c.expect("a question", c.ask("s02", protocol.QueryRef, message.OutcomeQuery{Contract: v.ID}), "s02 inform void")
		})
	}
}

// ledgerGrace is past settle-by and the pause of expiry after a restart.
const ledgerGrace = 5 * time.Minute

// A contract that the bank does not know is unknown, and stays so.
func TestUnknown(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	v := c.bundle("c", 1)
	out := c.ask("s01", protocol.QueryRef, message.OutcomeQuery{Contract: v.ID})
	c.expect("a question", out, "s01 inform unknown")
	if len(out.Save) > 0 {
		t.Fatalf("a question is recorded: %+v", out.Save)
	}
	c.expect("then a copy", c.ask("s01", protocol.Request, c.copyOf(v, "s01")), "s01 agree settled", "user inform settled")
}

// A contract that cannot be paid is void, and replays of it stay so when there is
// money again.
func TestNoFunds(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	c.unit = 600 * protocol.Credit
	first, second := c.bundle("c", 1), c.bundle("d", 1)
	c.expect("the first", c.ask("s01", protocol.Request, c.copyOf(first, "s01")), "s01 agree settled", "user inform settled")
	c.expect("the second", c.ask("s01", protocol.Request, c.copyOf(second, "s01")), "s01 refuse void", "user inform void")
	_, out, err := c.role.Credit(c.now, c.cast.ID(markettest.User), "CRD", 1000*protocol.Credit, "more")
	c.must(err)
	c.save(out)
	c.expect("its replay", c.ask("s01", protocol.Request, c.copyOf(second, "s01")), "s01 refuse void")
}

func (c *counter) refund(v contract.Verified, unit int, amount protocol.Credits, by string) message.RefundRequest {
	n := contract.Refund{Version: contract.NoteVersion, Contract: v.ID, Unit: unit, Seller: c.cast.ID(by), Amount: amount, Fee: v.Bundle.Units[unit].Cost - amount}
	der, err := contract.SignNote(c.cast.Credential(by), n, c.now)
	c.must(err)
	note, err := contract.OpenNote[contract.Refund](der, c.cast.Trust, c.now)
	c.must(err)
	return message.RefundRequest{Bundle: v, Signed: note}
}

// A unit is refunded once, at its seller's word; the receipt lists refunds by
// unit, in whatever order they were made.
func TestRefundOnce(t *testing.T) {
	c := open(t, 2, markettest.Store{})
	v, other := c.bundle("c", 2), c.bundle("d", 2)
	c.expect("before", c.ask("s01", protocol.Request, c.refund(v, 0, protocol.Credit, "s01")), "s01 refuse unknown")
	c.ask("s01", protocol.Request, c.copyOf(v, "s01"))
	c.ask("s02", protocol.Request, c.copyOf(v, "s02"))
	c.expect("another's unit", c.ask("s01", protocol.Request, c.refund(v, 1, protocol.Credit, "s01")), "s01 refuse forbidden")
	mixed := c.refund(v, 1, protocol.Credit, "s02")
	mixed.Bundle = other
	c.expect("another contract", c.ask("s02", protocol.Request, mixed), "s02 refuse mismatch")
	for range 2 {
		c.expect("unit 1", c.ask("s02", protocol.Request, c.refund(v, 1, protocol.Credit, "s02")), "s02 agree settled")
	}
	out := c.ask("s01", protocol.Request, c.refund(v, 0, protocol.Credit, "s01"))
	c.expect("unit 0", out, "s01 agree settled")
	r := out.Send[0].Body.(message.Decision).Receipt.Receipt
	if _, err := contract.SignReceipt(c.cast.Credential(markettest.Bank), r, c.now); err != nil {
		t.Fatalf("the receipt cannot be signed: %v", err)
	}
	a, _ := c.role.Ledger().Account(c.cast.ID(markettest.User))
	if got, want := a.Lines[0].Balance, 1000*protocol.Credit-v.Bundle.Total+2*protocol.Credit; got != want {
		t.Fatalf("the user has %s, want %s", got, want)
	}
}

// Balances and statements are told to whose they are only. A statement passes
// through the store, and comes back to who asked, whatever its tag.
func TestOnlyTheOwnAccount(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	c.expect("own balance", c.ask("s01", protocol.QueryRef, message.BalanceQuery{}), "s01 inform balances")
	c.expect("no account", c.ask(markettest.Stranger, protocol.QueryRef, message.BalanceQuery{}), "stranger refuse account")
	c.expect("another's statement", c.ask("s01", protocol.QueryRef, message.StatementQuery{Account: c.cast.ID(markettest.User)}), "s01 refuse forbidden")
	out := c.ask("s01", protocol.QueryRef, message.StatementQuery{Account: c.cast.ID("s01"), Limit: 10})
	c.expect("own statement", out, ".history query-ref statement-query")
	answer := out.Send[0].Reply(protocol.LocalHistory, protocol.Inform, message.Statement{Account: c.cast.ID("s01")})
	back := c.role.Receive(c.now, answer)
	c.expect("the answer", back, "s01 inform statement")
	if back.Send[0].InReplyTo != "tag-s01" {
		t.Fatalf("it answers %q", back.Send[0].InReplyTo)
	}
	answer.Sender = c.cast.ID(markettest.Stranger)
	c.expect("a forged answer", c.role.Receive(c.now, answer))
}

// A group's entries are shown to the members whose jobs it pays for, as an answer to
// their own account.
func TestAGroupsEntriesAreForThoseWhomItPaysFor(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	seller, user := c.cast.ID("s01"), c.cast.ID(markettest.User)
	_, out, err := c.role.OpenGroup(c.now, "A")
	c.must(err)
	c.save(out)
	_, out, err = c.role.SetGroup(c.now, ledger.Group{Name: "A", Members: []ledger.Member{
		{User: seller, Share: ledger.Whole, Pays: ledger.PaysUser}, {User: user, Pays: ledger.PaysUserThenGroup},
	}}, "")
	c.must(err)
	c.save(out)
	c.account(markettest.Stranger)
	ask := func(who string) protocol.Output {
		return c.ask(who, protocol.QueryRef, message.StatementQuery{Account: c.cast.ID(who), Group: true, Limit: 10})
	}
	c.expect("who is in no group", ask(markettest.Stranger), "stranger refuse forbidden")
	c.expect("who pays himself", ask("s01"), "s01 refuse forbidden")
	asked := ask(markettest.User)
	c.expect("whose jobs it pays", asked, ".history query-ref statement-query")
	q := asked.Send[0].Body.(message.StatementQuery)
	if q.Account != ledger.GroupID("A") || !q.Group {
		t.Fatalf("the store is asked for %+v", q)
	}
	back := c.role.Receive(c.now, asked.Send[0].Reply(protocol.LocalHistory, protocol.Inform, message.Statement{Account: q.Account}))
	c.expect("the answer", back, "user inform statement")
	if got := back.Send[0].Body.(message.Statement).Account; got != user {
		t.Errorf("it is of %s, which no message can name", got)
	}
}

func TestProofsAreTheStoresToGive(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	out := c.ask(markettest.Stranger, protocol.QueryRef, message.ProofQuery{From: 7})
	c.expect("anybody asks for the newest head", out, ".history query-ref local-proof-lookup")
	asked := out.Send[0].Body.(message.ProofLookup)
	if asked.By != c.cast.ID(markettest.Stranger) || asked.Query.From != 7 {
		t.Fatalf("the store is asked %+v", asked)
	}
	answer := out.Send[0].Reply(protocol.LocalHistory, protocol.Inform, message.FoundProof{Document: []byte("{}")})
	c.expect("the store's answer", c.role.Receive(c.now, answer), "stranger inform proof")
	refused := message.Refused(protocol.CodeForbidden, "not a party")
	answer.Body = message.FoundProof{Refusal: &refused}
	c.expect("the store's refusal", c.role.Receive(c.now, answer), "stranger refuse forbidden")
	answer.Sender = c.cast.ID(markettest.Stranger)
	c.expect("a forged answer", c.role.Receive(c.now, answer))
}
