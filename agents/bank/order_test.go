package bank_test

import (
	"slices"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// An order that is given again, to a bank that was killed meanwhile, is carried out
// once, and its answer waits for what it rests on.
func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	db := newStore(t)
	c := open(t, 1, db)
	user := c.cast.ID(markettest.User)
	order := func(key, words string) (ledger.Entry, bool, protocol.Output, error) {
		return c.role.Orders.Once(c.now, key, words, lives, func() (ledger.Entry, protocol.Output, error) {
			return c.role.Credit(c.now, user, "CRD", 5, "")
		})
	}
	before := c.balanceOf(markettest.User)
	_, _, _, err := order("k", "credit 5") // killed before it was durable
	c.must(err)
	c.restart()
	e, again, out, err := order("k", "credit 5")
	if err != nil || again || e.Kind != ledger.KindCredit {
		t.Fatalf("after a kill before the disk had it: %+v, again %t, %v", e, again, err)
	}
	c.save(out)
	for range 3 { // killed before its command had the answer
		c.restart()
		same, again, out, err := order("k", "credit 5")
		if err != nil || !again || same.Number != e.Number || !same.Time.Equal(e.Time) || len(out.Save)+len(out.Send) > 0 {
			t.Fatalf("given again: %+v, again %t, %+v, %v", same, again, out, err)
		}
	}
	if _, _, _, err := order("k", "credit 6"); err == nil {
		t.Error("one key was good for two orders")
	}
	for _, key := range []string{"another", "", ""} { // identical orders that are meant as several
		_, again, out, err := order(key, "credit 5")
		if c.must(err); again {
			t.Errorf("key %q: was not new", key)
		}
		c.save(out)
	}
	if got := c.balanceOf(markettest.User) - before; got != 20 {
		t.Errorf("four orders of 5 credited %s micro-credits", got)
	}
	if r, err := ledger.Audit(db); err != nil || len(r.Bad) > 0 {
		t.Errorf("audit: %v %q", err, r.Bad)
	}
}

// lives is that no command has ended.
func lives(string) bool { return false }

// An order of a command that has ended is that of the next one with the same words; one that
// has its answer keeps it, whatever other commands have left.
func TestAnOrderOfACommandThatEndedIsAdopted(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	user := c.cast.ID(markettest.User)
	order := func(key string, ended ...string) (uint64, bool) {
		t.Helper()
		e, again, out, err := c.role.Orders.Once(c.now, key, "credit 5", func(old string) bool { return slices.Contains(ended, old) }, func() (ledger.Entry, protocol.Output, error) {
			return c.role.Credit(c.now, user, "CRD", 5, "")
		})
		c.must(err)
		c.save(out)
		return e.Number, again
	}
	a, _ := order("a")
	b, again := order("b")
	if again || b == a {
		t.Fatalf("entry %d of a command that runs was given to another one", a)
	}
	for range 2 { // its answer is lost once
		if e, again := order("c", "a", "b"); e != a || !again {
			t.Errorf("entry %d, again %t; want the oldest one, %d", e, again, a)
		}
	}
	if e, again := order("d", "a", "b"); e != b || !again {
		t.Errorf("entry %d, again %t; want the other one, %d", e, again, b)
	}
}

// An act that announces the bank does so once.
func TestARepeatedOrderIsNotAnnouncedAgain(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	recover := func() protocol.Output {
		_, _, out, err := c.role.Orders.Once(c.now, "r", "recovery", lives, func() (ledger.Entry, protocol.Output, error) {
			return c.role.SetRecovery(c.now, true, "restored")
		})
		c.must(err)
		return c.save(out)
	}
	if out := recover(); len(out.Send) != 1 {
		t.Errorf("told %q, want a presence", told(out))
	}
	if out := recover(); len(out.Send)+len(out.Save) != 0 {
		t.Errorf("told %q again", told(out))
	}
}

// A user's exchange is done once under the ID of its quote, whatever is lost between,
// and never for less than the user wants.
func TestAnExchangeIsCarriedOutOnce(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	c.currencies = []string{"CRD", "EUR"}
	c.restart()
	user := markettest.User
	for _, act := range []func() (ledger.Entry, protocol.Output, error){
		func() (ledger.Entry, protocol.Output, error) {
			return c.role.SetRate(c.now, "CRD", "EUR", protocol.Credit/2, "")
		},
		func() (ledger.Entry, protocol.Output, error) {
			return c.role.SetLimit(c.now, ledger.House, "EUR", protocol.Credit)
		},
	} {
		_, out, err := act()
		c.must(err)
		c.save(out)
	}
	ask := func(body protocol.Body) ledger.Quote {
		t.Helper()
		out := c.ask(user, protocol.Request, body)
		c.expect("quote", out, user+" agree quote")
		n := out.Send[0].Body.(message.Quoted).Signed.Note
		return ledger.Quote{Gives: n.Gives, Gets: n.Gets, Entry: n.Entry, Until: n.Until}
	}
	quote := message.QuoteRequest{ID: "k", From: "CRD", To: "EUR", Gives: 100}
	if q := ask(quote); q.Gets != 50 || q.Entry != 0 {
		t.Fatalf("quote %+v", q)
	}
	c.expect("too little", c.ask(user, protocol.Request, message.ExchangeRequest{ID: "k", Least: 51}), user+" refuse price")
	done := ask(message.ExchangeRequest{ID: "k", Least: 50})
	for range 3 { // the answer was lost, and the command is given again
		c.restart()
		c.now = c.now.Add(time.Hour)
		c.save(c.role.Wake(c.now))
		if got := []ledger.Quote{ask(quote), ask(message.ExchangeRequest{ID: "k", Least: 50})}; !slices.Equal(got, []ledger.Quote{done, done}) {
			t.Fatalf("again %+v, want %+v", got, done)
		}
	}
	never := c.ask(user, protocol.Request, message.ExchangeRequest{ID: "never quoted"})
	if c.expect("no quote", never, user+" refuse unknown"); len(never.Save) == 0 {
		t.Error("a machine that was deposed, and cannot save, may give an exchange up")
	}
	quote.Gives = 101
	c.expect("other amounts", c.ask(user, protocol.Request, quote), user+" refuse mismatch")
}
