package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// vouching is a bartering bank with ann and bob, who are now in one group and now in
// another or in none, and what it has promised them.
type vouching struct {
	*bank
	users, all []protocol.AgentID // all: with their groups
	place      map[protocol.AgentID]string
	promised   map[string]promise // by conversation
}

type promise struct {
	user   protocol.AgentID
	amount protocol.Credits
}

func newVouching(t *rapid.T) *vouching {
	users := []protocol.AgentID{agent("ann"), agent("bob")}
	v := &vouching{
		bank: &bank{store: memory{}, now: start()}, users: users, all: append(users, ledger.GroupID("A"), ledger.GroupID("B")),
		place: map[protocol.AgentID]string{users[0]: "A", users[1]: "B"}, promised: map[string]promise{},
	}
	v.reloaded(t)
	v.act(t)(v.SetPolicy(v.now, "cr", ledger.Policy{Kind: ledger.PolicyBarter}))
	for _, id := range users {
		v.act(t)(v.Open(v.now, id, id.Name()))
	}
	v.act(t)(v.Groups.Open(v.now, "A"))
	v.act(t)(v.Groups.Open(v.now, "B"))
	for _, id := range v.all {
		v.act(t)(v.SetOverdraft(v.now, id, "cr", protocol.Credits(rapid.Int64Range(0, 50).Draw(t, "limit"))))
	}
	v.setGroups(t)
	return v
}

func (v *vouching) act(t *rapid.T) func(ledger.Entry, []protocol.Record, error) {
	return func(_ ledger.Entry, records []protocol.Record, err error) {
		if err != nil {
			t.Fatal(err)
		}
		v.store.append(records)
	}
}

func (v *vouching) reloaded(t *rapid.T) {
	if err := v.reload(); err != nil {
		t.Fatal(err)
	}
}

// setGroups puts everybody where they are now; nobody is in two groups meanwhile.
func (v *vouching) setGroups(t *rapid.T) {
	for _, empty := range []bool{true, false} {
		for _, name := range []string{"A", "B"} {
			g := ledger.Group{Name: name, Shared: ledger.Whole, Clusters: []protocol.AgentID{agent("c" + name)}}
			for _, id := range v.users {
				if !empty && v.place[id] == name {
					pays := rapid.SampledFrom([]ledger.Pays{ledger.PaysUserThenGroup, ledger.PaysUser, ledger.PaysGroup}).Draw(t, "pays")
					g.Members = append(g.Members, ledger.Member{User: id, Pays: pays})
				}
			}
			v.act(t)(v.Groups.Set(v.now, g, ""))
		}
	}
}

// operate is something that the operator does.
func (v *vouching) operate(t *rapid.T) {
	one := rapid.SampledFrom(v.all).Draw(t, "whom")
	switch rapid.IntRange(0, 2).Draw(t, "act") {
	case 0:
		v.place[rapid.SampledFrom(v.users).Draw(t, "user")] = rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "group")
		v.setGroups(t)
	case 1:
		standing := rapid.SampledFrom([]ledger.Standing{ledger.StandingOpen, ledger.StandingFrozen}).Draw(t, "standing")
		_, _ = saved[ledger.Entry](v.bank)(v.SetStanding(v.now, one, standing, ""))
	case 2:
		to, amount := rapid.SampledFrom(v.all).Draw(t, "to"), protocol.Credits(rapid.Int64Range(1, 40).Draw(t, "lent"))
		_, _ = saved[ledger.Entry](v.bank)(v.Transfer(v.now, one, to, "cr", amount, ledger.Disputed{}, ""))
	}
}

func (v *vouching) ask(t *rapid.T, conversation string) {
	user, amount := rapid.SampledFrom(v.users).Draw(t, "user"), protocol.Credits(rapid.Int64Range(1, 40).Draw(t, "amount"))
	if _, err := saved[ledger.Hold](v.bank)(v.Voucher(v.now, user, "cr", conversation, amount, v.now.Add(time.Hour))); err == nil {
		v.promised[conversation] = promise{user, amount}
	}
}

// buy buys with a voucher, for about as much.
func (v *vouching) buy(t *rapid.T, id string) {
	if len(v.promised) == 0 {
		return
	}
	conversation := rapid.SampledFrom(slices.Sorted(maps.Keys(v.promised))).Draw(t, "conversation")
	p := v.promised[conversation]
	cost := max(1, p.amount+protocol.Credits(rapid.Int64Range(-10, 30).Draw(t, "more")))
	seller := agent("c" + rapid.SampledFrom([]string{"A", "B"}).Draw(t, "seller"))
	c := newContract(id, p.user, v.now.Add(time.Minute), ledger.Payment{To: seller, Amount: cost})
	c.Mode, c.Conversation = protocol.ModeOnCompletion, conversation
	c.Units[0].Slot = protocol.Slot{Start: v.now.Add(time.Hour), End: v.now.Add(2 * time.Hour), Cores: 1}
	r, err := v.copy(c, seller)
	if err != nil || cost <= p.amount && r.Outcome != protocol.OutcomeSettled {
		t.Fatalf("a bundle of %s with a voucher of %s: %+v, %v", cost, p.amount, r, err)
	}
	if r.Outcome != protocol.OutcomeSettled {
		return
	}
	delete(v.promised, conversation)
	v.withinLimits(t)
	if _, err := saved[protocol.Receipt](v.bank)(v.Report(v.now, c.id, c.Bundle, seller, ledger.JobReport{Success: rapid.Bool().Draw(t, "success")})); err != nil {
		t.Fatal(err)
	}
}

// withinLimits: limits never fall here, so nobody is ever beyond one.
func (v *vouching) withinLimits(t *rapid.T) {
	for _, id := range v.all {
		if a, _ := v.Account(id); a.Lines[0].Currency != "cr" || a.Lines[0].Available < 0 {
			t.Fatalf("%s is beyond its limit: %+v", id.Name(), a.Lines[0])
		}
	}
}

// Whatever the operator does to users and groups, a bundle within its voucher is
// settled, and no account is taken beyond its limit by any.
func TestAVoucherIsGoodInWhateverGroupItsUserIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVouching(t)
		for i := range 20 {
			switch name := fmt.Sprint("c", i); rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				v.ask(t, name)
			case 1:
				v.operate(t)
			case 2:
				v.buy(t, name)
			}
			v.reloaded(t)
			v.withinLimits(t)
		}
		sound(t, v.bank)
	})
}

// Vouchers that have not ended never promise more than there is, although cheap purchases in their
// conversations draw on them.
func TestAVoucherDoesNotOutliveItsMoney(t *testing.T) {
	for _, mode := range []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion} {
		b := &bank{store: memory{}, now: start()}
		b.must(t, "load", b.reload())
		ann, site := agent("ann"), agent("site")
		for _, id := range []protocol.AgentID{ann, site} {
			_, err := saved[ledger.Entry](b)(b.Open(b.now, id, id.Name()))
			b.must(t, "open", err)
		}
		_, err := saved[ledger.Entry](b)(b.Credit(b.now, ann, "cr", 1000, ""))
		b.must(t, "credit", err)
		until := b.now.Add(time.Hour)
		for i := range 4 {
			id := fmt.Sprint("c", i)
			if _, err := saved[ledger.Hold](b)(b.Voucher(b.now, ann, "cr", id, 900, until)); (err == nil) != (i == 0) {
				t.Errorf("%s: voucher %d: %v", mode, i, err)
			}
			c := newContract(id, ann, b.now.Add(time.Minute), ledger.Payment{To: site, Amount: 1})
			c.Mode, c.Conversation = mode, id
			c.Units[0].Slot = protocol.Slot{Start: b.now.Add(time.Hour), End: b.now.Add(2 * time.Hour), Cores: 1}
			if r, err := b.copy(c, site); err != nil || r.Outcome != protocol.OutcomeSettled {
				t.Fatalf("%s: %+v, %v", mode, r, err)
			}
			b.must(t, "load", b.reload())
			b.now = b.now.Add(time.Second)
		}
		b.now = until.Add(time.Second)
		b.Expire(b.now)
		if _, err := saved[ledger.Hold](b)(b.Voucher(b.now, ann, "cr", "later", 900, b.now.Add(time.Hour))); err != nil {
			t.Errorf("%s: once the first has ended: %v", mode, err)
		}
	}
}
