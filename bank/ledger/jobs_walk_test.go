package ledger_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// jobsWorld is a ledger and the model of its jobs, told the same.
type jobsWorld struct {
	*bank
	m       *jobsModel
	users   []protocol.AgentID // with an account, and one without
	sellers []protocol.AgentID
	all     []protocol.AgentID // accounts
	bundles int
	ends    map[string]int
}

func newJobsWorld(t *rapid.T, barter bool, ends map[string]int) *jobsWorld {
	w := &jobsWorld{bank: &bank{store: memory{}, now: start()}, ends: ends, m: &jobsModel{
		balance: map[protocol.AgentID]*big.Int{}, limit: map[protocol.AgentID]protocol.Credits{}, frozen: map[protocol.AgentID]bool{},
	}}
	w.restart(t)
	for _, name := range []string{"a1", "a2", "a3", "b1", "b2", "no"} {
		w.users = append(w.users, agent(name))
	}
	for _, name := range []string{"ca", "cb", "cc", "cz"} {
		w.sellers = append(w.sellers, agent(name))
	}
	accounts := slices.Clone(w.users[:5])
	if !barter {
		accounts = append(accounts, w.sellers[:3]...)
	}
	for _, id := range accounts {
		w.act(t)(w.Open(w.now, id, id.Name()))
		w.m.balance[id] = new(big.Int)
	}
	if barter {
		w.makeGroups(t)
	}
	for _, id := range append(accounts, w.groupAccounts()...) {
		w.all = append(w.all, id)
		w.limit(t, id, protocol.Credits(rapid.Int64Range(0, 60).Draw(t, "limit")))
	}
	return w
}

func (w *jobsWorld) act(t *rapid.T) func(ledger.Entry, []protocol.Record, error) {
	return func(e ledger.Entry, records []protocol.Record, err error) {
		if err != nil {
			t.Fatalf("an act of the operator: %v", err)
		}
		w.store.append(records)
	}
}

func (w *jobsWorld) groupAccounts() (ids []protocol.AgentID) {
	for _, g := range w.m.groups {
		ids = append(ids, ledger.GroupID(g.Name))
	}
	return ids
}

func (w *jobsWorld) makeGroups(t *rapid.T) {
	w.act(t)(w.SetPolicy(w.now, "cr", ledger.Policy{Kind: ledger.PolicyBarter}))
	for _, name := range []string{"A", "B"} {
		w.act(t)(w.Groups.Open(w.now, name))
		w.m.balance[ledger.GroupID(name)] = new(big.Int)
		w.m.groups = append(w.m.groups, ledger.Group{Name: name})
	}
	w.m.groups[0].Clusters = []protocol.AgentID{w.sellers[0], w.sellers[2]}
	w.m.groups[1].Clusters = []protocol.AgentID{w.sellers[1]}
	w.setGroup(t, 0)
	w.setGroup(t, 1)
}

// setGroup gives a group's members new shares and ways to pay.
func (w *jobsWorld) setGroup(t *rapid.T, i int) {
	g := &w.m.groups[i]
	g.Shared = rapid.SampledFrom([]int64{0, ledger.Whole / 2, ledger.Whole / 3, ledger.Whole}).Draw(t, "shared")
	g.Members = nil
	left := ledger.Whole
	users := [][]protocol.AgentID{w.users[:3], w.users[3:5]}[i]
	for n, id := range users {
		part := rapid.Int64Range(0, left).Draw(t, "share")
		if n == len(users)-1 {
			part = left
		}
		left -= part
		g.Members = append(g.Members, ledger.Member{User: id, Share: part, Pays: ledger.Pays(rapid.IntRange(1, 3).Draw(t, "pays"))})
	}
	w.act(t)(w.Groups.Set(w.now, *g, ""))
}

func (w *jobsWorld) limit(t *rapid.T, id protocol.AgentID, limit protocol.Credits) {
	w.act(t)(w.SetOverdraft(w.now, id, "cr", limit))
	w.m.limit[id] = limit
}

func (w *jobsWorld) restart(t *rapid.T) {
	if err := w.reload(); err != nil {
		t.Fatal(err)
	}
	w.m.graceEnds = w.now.Add(ledger.DefaultGrace)
}

// compare holds B and R of every account against the model: they sum to zero, and
// differ by what is held.
func (w *jobsWorld) compare(t *rapid.T) {
	sum := new(big.Int)
	for _, id := range w.all {
		a, _ := w.Account(id)
		n := a.Lines[0]
		same(t, "B of "+id.Name(), bigOf(n.Balance).String(), w.m.balance[id].String())
		same(t, "R of "+id.Name(), bigOf(n.Balance-n.Held).String(), w.m.running(id).String())
		sum.Add(sum, bigOf(n.Balance))
	}
	same(t, "sum of B", sum.String(), "0")
}

func (w *jobsWorld) pick(t *rapid.T) *modelJob {
	n := len(w.m.jobs)
	if n == 0 {
		return nil
	}
	return w.m.jobs[rapid.IntRange(max(0, n-10), n-1).Draw(t, "job")]
}

func (w *jobsWorld) step(t *rapid.T) {
	op := rapid.IntRange(0, 13).Draw(t, "op")
	j := w.pick(t)
	switch {
	case op < 4 || j == nil:
		w.buy(t)
	case op < 7:
		w.report(t, j)
	case op == 7:
		by, agree := rapid.SampledFrom([]protocol.AgentID{j.bundle.User, j.bundle.User, w.users[0]}).Draw(t, "by"), rapid.Bool().Draw(t, "agree")
		r, err := w.asking(j.bundle.id, func() (protocol.Receipt, error) {
			return saved[protocol.Receipt](w.bank)(w.Judge(w.now, j.bundle.id, j.unit.Unit, by, agree, "record"))
		})
		w.check(t, "judge", j, r, code(err), w.m.judge(w.now, j, by, agree))
	case op == 8:
		paid := protocol.Credits(rapid.Int64Range(-1, 31).Draw(t, "paid"))
		r, err := w.asking(j.bundle.id, func() (protocol.Receipt, error) {
			return saved[protocol.Receipt](w.bank)(w.Arbitrate(w.now, j.bundle.id, j.unit.Unit, paid, "hearing"))
		})
		w.check(t, "arbitrate", j, r, code(err), w.m.arbitrate(j, paid))
	case op == 9:
		back := protocol.Credits(rapid.Int64Range(-1, 31).Draw(t, "back"))
		r, err := w.refund(j.bundle.contract, j.unit.Unit, back, j.unit.Seller)
		w.check(t, "cancel", j, r, code(err), w.m.cancel(j, back))
	case op == 10:
		from, to := rapid.SampledFrom(w.all).Draw(t, "from"), rapid.SampledFrom(append(w.users, w.all...)).Draw(t, "to")
		amount := protocol.Credits(rapid.Int64Range(-1, 30).Draw(t, "amount"))
		_, err := saved[ledger.Entry](w.bank)(w.Transfer(w.now, from, to, "cr", amount, ledger.Disputed{}, "lent"))
		same(t, "transfer", code(err), w.m.transfer(from, to, amount))
	case op == 11:
		w.stepOperator(t)
	default:
		w.stepTime(t)
	}
}

func (w *jobsWorld) check(t *rapid.T, what string, j *modelJob, r protocol.Receipt, got, want protocol.Code) {
	same(t, what, got, want)
	if got == "" {
		w.compareReceipt(t, j.bundle, r)
	}
}

// compareReceipt: a receipt says how each unit ended, and what was paid.
func (w *jobsWorld) compareReceipt(t *rapid.T, b *modelBundle, r protocol.Receipt) {
	same(t, "outcome", r.Outcome, b.outcome)
	same(t, "reason", r.Reason, b.reason)
	said := map[int]string{}
	for _, e := range r.Ends {
		said[e.Unit] = fmt.Sprint(e.How, e.Paid)
	}
	for _, f := range r.Refunds {
		said[f.Unit] = fmt.Sprint("cancelled", b.Units[f.Unit].Cost-f.Amount)
	}
	ended := 0
	for _, j := range w.m.jobs {
		if j.bundle == b && !j.running() {
			same(t, "end", said[j.unit.Unit], fmt.Sprint(j.state, j.paid))
			ended++
		}
	}
	same(t, "ends", len(said), ended)
}

// buy asks for one to three units, whose sellers all send their copies at once.
func (w *jobsWorld) buy(t *rapid.T) {
	var pays []ledger.Payment
	for range rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "units") {
		pays = append(pays, ledger.Payment{To: rapid.SampledFrom(append(w.sellers[:3:3], w.sellers...)).Draw(t, "seller"), Amount: protocol.Credits(rapid.Int64Range(1, 30).Draw(t, "cost"))})
	}
	w.bundles++
	c := newContract(fmt.Sprint("b", w.bundles), rapid.SampledFrom(append(w.users[:5:5], w.users...)).Draw(t, "user"), w.now.Add(time.Minute), pays...)
	c.Mode = rapid.SampledFrom([]protocol.Mode{protocol.ModeOnCompletion, protocol.ModeMetered}).Draw(t, "mode")
	for i := range c.Units {
		c.Units[i].Slot = protocol.Slot{Start: w.now.Add(2 * time.Minute), End: w.now.Add(time.Duration(rapid.IntRange(3, 600).Draw(t, "minutes")) * time.Minute), Cores: 4}
		if c.Mode == protocol.ModeMetered {
			c.Units[i].Tariff = protocol.Tariff{
				TimeLimit: time.Hour, P: ramp(t, 60), Q: ramp(t, 200), Least: c.Units[i].Cost / 2 * protocol.Credits(rapid.IntRange(0, 1).Draw(t, "least")),
			}
		}
	}
	b := &modelBundle{contract: c}
	var r protocol.Receipt
	for _, u := range c.Units {
		var err error
		r, err = w.copy(c, u.Seller)
		same(t, "copy", code(err), "")
	}
	w.m.decide(b)
	w.m.bundles = append(w.m.bundles, b)
	w.compareReceipt(t, b, r)
}

func ramp(t *rapid.T, top int64) protocol.Ramp {
	lo := rapid.Int64Range(0, 3*protocol.Core).Draw(t, "lo")
	return protocol.Ramp{Lo: lo, Hi: lo + rapid.Int64Range(0, 2*protocol.Core).Draw(t, "rise"), Top: protocol.Credits(rapid.Int64Range(0, top).Draw(t, "top"))}
}

func (w *jobsWorld) report(t *rapid.T, j *modelJob) {
	r := ledger.JobReport{Unit: j.unit.Unit, Success: rapid.Bool().Draw(t, "success"), Delivered: rapid.Bool().Draw(t, "delivered"), Agreed: rapid.IntRange(0, 3).Draw(t, "agreed") == 0, Ref: "record"}
	r.Usage.Wall = time.Duration(rapid.SampledFrom([]int64{0, 1, 600, 1800, 3600}).Draw(t, "wall")) * time.Second
	r.Usage.CPU = r.Usage.Wall * time.Duration(rapid.Int64Range(0, 400).Draw(t, "cpu")) / 100
	r.Usage.Share = rapid.Int64Range(0, 4*protocol.Core).Draw(t, "share")
	got, err := w.asking(j.bundle.id, func() (protocol.Receipt, error) {
		return saved[protocol.Receipt](w.bank)(w.Report(w.now, j.bundle.id, j.bundle.Bundle, j.unit.Seller, r))
	})
	w.check(t, "report", j, got, code(err), w.m.report(w.now, j, r))
}

func (w *jobsWorld) stepOperator(t *rapid.T) {
	id := rapid.SampledFrom(w.all).Draw(t, "of")
	switch rapid.IntRange(0, 2).Draw(t, "act") {
	case 0:
		w.limit(t, id, protocol.Credits(rapid.Int64Range(0, 60).Draw(t, "limit")))
	case 1:
		w.m.frozen[id] = !w.m.frozen[id]
		s := ledger.StandingOpen
		if w.m.frozen[id] {
			s = ledger.StandingFrozen
		}
		w.act(t)(w.SetStanding(w.now, id, s, ""))
	default:
		if len(w.m.groups) > 0 {
			w.setGroup(t, rapid.IntRange(0, 1).Draw(t, "group"))
		}
	}
}

func (w *jobsWorld) stepTime(t *rapid.T) {
	switch rapid.IntRange(0, 19).Draw(t, "time") {
	case 0:
		w.now = w.now.Add(25 * time.Hour)
	case 1, 2:
		w.restart(t)
	default:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 2400).Draw(t, "on")) * time.Second)
	}
	w.m.expire(w.now)
	w.expire()
}

// TestJobs does 21,000 random things per policy to a ledger whose jobs are paid
// after the fact, and to its model; with -rapid.checks=5000, a million.
func TestJobs(t *testing.T) {
	for name, barter := range map[string]bool{"bartering": true, "metered contracts and plain money": false} {
		t.Run(name, func(t *testing.T) {
			ends := map[string]int{}
			rapid.Check(t, func(t *rapid.T) {
				w := newJobsWorld(t, barter, ends)
				for range 210 {
					w.step(t)
					w.compare(t)
				}
				sound(t, w.bank)
				for _, j := range w.m.jobs {
					ends[j.state]++
				}
			})
			if testing.Short() {
				return // too few to come to everything
			}
			for _, how := range []string{"succeeded", "failed", "agreed", "silent", "arbitrated", "expired", "cancelled", "open", "filed", "disputed"} {
				if ends[how] == 0 {
					t.Errorf("no job ever was %s: %v", how, ends)
				}
			}
		})
	}
}
