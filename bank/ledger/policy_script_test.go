package ledger_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// TestPolicies plays the conversations in testdata/policy: the worked examples of
// bartering, metered contracts and allowances, and what a bank's operator does.
func TestPolicies(t *testing.T) {
	datadriven.Walk(t, "testdata/policy", func(t *testing.T, path string) {
		p := &policyScript{script: script{bank: newBank(t), contracts: map[string]contract{}}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			answer, err := p.play(t, d)
			if err != nil {
				return "refused: " + strings.ReplaceAll(err.Error(), "@"+strings.Repeat("a", protocol.FingerprintLen), "") + "\n"
			}
			sound(t, p.bank)
			return strings.Trim(answer+"\n"+p.table(), "\n") + "\n"
		})
	})
}

// policyScript shows the columns that a file asks for, after every step.
type policyScript struct {
	script
	columns []protocol.AgentID
}

func (p *policyScript) play(t *testing.T, d *datadriven.TestData) (string, error) {
	commands := map[string]func(d *datadriven.TestData) (string, error){
		"open": p.open, "credit": p.credit, "overdraft": p.overdraftOf, "at": p.at, "clock": p.clock, "restart": p.restart,
		"void-hold": p.voidHold, "outcome": p.outcome, "hold": p.hold,
		"columns": p.show, "policy": p.policy, "group": p.group, "standing": p.standing, "transfer": p.transfer,
		"buy": p.buy, "report": p.report, "judge": p.judge, "arbitrate": p.arbitrate, "cancel": p.cancel,
		"voucher": p.voucher, "rate": p.rate, "quote": p.quote, "exchange": p.exchange, "allowance": p.allowance, "order": p.order,
	}
	f := commands[d.Cmd]
	if f == nil {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	return f(d)
}

// table is B, the balances, and R, what is left of them beside what is held.
func (p *policyScript) table() string {
	if len(p.columns) == 0 {
		return ""
	}
	names, balances, running := "  ", "B:", "R:"
	for _, id := range p.columns {
		a, _ := p.AccountAt(p.now, id)
		name := strings.TrimPrefix(id.Name(), ".group.")
		for _, n := range a.Lines {
			if n.Balance == 0 && n.Held == 0 && n.Currency != "cr" {
				continue
			}
			if n.Currency != "cr" {
				name = id.Name() + "/" + n.Currency
			}
			names += fmt.Sprintf(" %9s", name)
			balances += fmt.Sprintf(" %9s", n.Balance)
			running += fmt.Sprintf(" %9s", n.Balance-n.Held)
		}
	}
	return names + "\n" + balances + "\n" + running
}

// party is an agent, or a group if the name is in capitals.
func party(d *datadriven.TestData, key string) protocol.AgentID { return partyOf(arg(d, key)) }

func partyOf(name string) protocol.AgentID {
	switch {
	case strings.HasPrefix(name, "."):
		return protocol.AgentID(name)
	case name == strings.ToUpper(name):
		return ledger.GroupID(name)
	}
	return agent(name)
}

func (p *policyScript) show(d *datadriven.TestData) (string, error) {
	p.columns = nil
	for _, name := range strings.Split(arg(d, "of"), ",") {
		p.columns = append(p.columns, partyOf(name))
	}
	return "", nil
}

func currencyOf(d *datadriven.TestData) string {
	if c := arg(d, "currency"); c != "" {
		return c
	}
	return "cr"
}

func (p *policyScript) policy(d *datadriven.TestData) (string, error) {
	kinds := map[string]ledger.PolicyKind{"plain": ledger.PolicyPlain, "barter": ledger.PolicyBarter, "allowance": ledger.PolicyAllowance}
	q := ledger.Policy{Kind: kinds[arg(d, "kind")]}
	if arg(d, "decay") != "" {
		q.Decay = int64(number(d, "decay"))
	}
	return entryLine(saved[ledger.Entry](p.bank)(p.SetPolicy(p.now, currencyOf(d), q)))
}

// group opens a group if need be, and sets it: percent shared, members as
// name:percent[:way to pay], clusters.
func (p *policyScript) group(d *datadriven.TestData) (string, error) {
	g := ledger.Group{Name: arg(d, "name"), Shared: percent(arg(d, "shared"))}
	ways := map[string]ledger.Pays{"": ledger.PaysUserThenGroup, "user": ledger.PaysUser, "group": ledger.PaysGroup}
	for _, word := range strings.FieldsFunc(arg(d, "members"), func(c rune) bool { return c == ',' }) {
		parts := append(strings.Split(word, ":"), "")
		g.Members = append(g.Members, ledger.Member{User: agent(parts[0]), Share: percent(parts[1]), Pays: ways[parts[2]]})
	}
	for _, word := range strings.FieldsFunc(arg(d, "clusters"), func(c rune) bool { return c == ',' }) {
		g.Clusters = append(g.Clusters, agent(word))
	}
	if _, ok := p.Account(ledger.GroupID(g.Name)); !ok {
		if _, err := saved[ledger.Entry](p.bank)(p.Groups.Open(p.now, g.Name)); err != nil {
			return "", err
		}
	}
	return entryLine(saved[ledger.Entry](p.bank)(p.Groups.Set(p.now, g, "")))
}

func percent(s string) int64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return int64(f*1e4 + 0.5)
}

func (p *policyScript) overdraftOf(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](p.bank)(p.SetOverdraft(p.now, party(d, "of"), currencyOf(d), credits(d, "limit"))))
}

func (p *policyScript) standing(d *datadriven.TestData) (string, error) {
	kinds := map[string]ledger.Standing{"open": ledger.StandingOpen, "frozen": ledger.StandingFrozen, "closed": ledger.StandingClosed}
	return entryLine(saved[ledger.Entry](p.bank)(p.SetStanding(p.now, party(d, "of"), kinds[arg(d, "to")], "")))
}

func (p *policyScript) transfer(d *datadriven.TestData) (string, error) {
	var about ledger.Disputed
	if name := arg(d, "about"); name != "" {
		about.Contract = contractID(name)
	}
	return entryLine(saved[ledger.Entry](p.bank)(p.Transfer(p.now, party(d, "from"), party(d, "to"), currencyOf(d), credits(d, "amount"), about, "")))
}

// buy is a bundle of one unit whose copy is there at once: its slot is the next
// hour, with four cores.
func (p *policyScript) buy(d *datadriven.TestData) (string, error) {
	name := arg(d, "id")
	c := newContract(name, who(d, "user"), p.now.Add(time.Minute), ledger.Payment{To: who(d, "seller"), Amount: credits(d, "cost")})
	c.Mode, c.Conversation = protocol.ModeOnCompletion, arg(d, "conversation")
	if m := arg(d, "mode"); m != "" {
		c.Mode = protocol.Mode(m)
	}
	c.Units[0].Slot = protocol.Slot{Start: p.now.Add(2 * time.Minute), End: p.now.Add(time.Hour), Cores: 4}
	if c.Mode == protocol.ModeMetered {
		c.Units[0].Tariff = tariff()
	}
	p.contracts[name] = c
	return receiptLine(p.copy(c, who(d, "seller")))
}

// tariff: nothing up to half a core, 10 an hour from one and a half cores on.
func tariff() protocol.Tariff {
	return protocol.Tariff{TimeLimit: time.Hour, P: protocol.Ramp{Lo: protocol.Core / 2, Hi: 3 * protocol.Core / 2, Top: 10 * protocol.Credit}}
}

func (p *policyScript) report(d *datadriven.TestData) (string, error) {
	c := p.contracts[arg(d, "id")]
	r := ledger.JobReport{Success: arg(d, "success") == "yes", Delivered: arg(d, "delivered") == "yes", Agreed: arg(d, "agreed") == "yes"}
	if arg(d, "cpu") != "" {
		r.Usage.CPU, r.Usage.Wall = duration(d, "cpu"), duration(d, "wall")
	}
	by := c.Units[0].Seller
	if arg(d, "by") != "" {
		by = who(d, "by")
	}
	return receiptLine(saved[protocol.Receipt](p.bank)(p.Report(p.now, c.id, c.Bundle, by, r)))
}

func duration(d *datadriven.TestData, key string) time.Duration {
	v, err := time.ParseDuration(arg(d, key))
	if err != nil {
		panic(err)
	}
	return v
}

func (p *policyScript) judge(d *datadriven.TestData) (string, error) {
	return receiptLine(saved[protocol.Receipt](p.bank)(p.Judge(p.now, contractID(arg(d, "id")), 0, who(d, "by"), arg(d, "agree") == "yes", "")))
}

func (p *policyScript) arbitrate(d *datadriven.TestData) (string, error) {
	return receiptLine(saved[protocol.Receipt](p.bank)(p.Arbitrate(p.now, contractID(arg(d, "id")), 0, credits(d, "paid"), arg(d, "ref"))))
}

func (p *policyScript) cancel(d *datadriven.TestData) (string, error) {
	c := p.contracts[arg(d, "id")]
	return receiptLine(p.refund(c, 0, credits(d, "amount"), c.Units[0].Seller))
}

func (p *policyScript) voucher(d *datadriven.TestData) (string, error) {
	h, err := saved[ledger.Hold](p.bank)(p.Voucher(p.now, who(d, "user"), currencyOf(d), arg(d, "conversation"), credits(d, "amount"), p.seconds(d, "until")))
	return fmt.Sprintf("hold %d %s", h.Number, h.Ref), err
}

func (p *policyScript) rate(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](p.bank)(p.Exchange.SetRate(p.now, arg(d, "from"), arg(d, "to"), credits(d, "rate"), "")))
}

func quoteLine(q ledger.Quote, err error) (string, error) {
	line := fmt.Sprintf("%s %s for %s %s until %s", q.Gives, q.From, q.Gets, q.To, q.Until.Format("15:04:05"))
	if q.Entry != 0 {
		line += fmt.Sprintf(" entry %d", q.Entry)
	}
	return line, err
}

func (p *policyScript) quote(d *datadriven.TestData) (string, error) {
	return quoteLine(saved[ledger.Quote](p.bank)(p.Exchange.Quote(p.now, who(d, "user"), arg(d, "id"), arg(d, "from"), arg(d, "to"), credits(d, "amount"))))
}

func (p *policyScript) exchange(d *datadriven.TestData) (string, error) {
	var least protocol.Credits
	if arg(d, "least") != "" {
		least = credits(d, "least")
	}
	return quoteLine(saved[ledger.Quote](p.bank)(p.Exchange.CarryOut(p.now, who(d, "user"), arg(d, "id"), least)))
}

func (p *policyScript) allowance(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](p.bank)(p.SetAllowance(p.now, who(d, "of"), currencyOf(d), credits(d, "income"), "")))
}

// order is a credit, or with from= a transfer, under a key.
func (p *policyScript) order(d *datadriven.TestData) (string, error) {
	o := given{key: arg(d, "key"), to: who(d, "to"), amount: credits(d, "amount")}
	if arg(d, "from") != "" {
		o.from = who(d, "from")
	}
	e, again, records, err := p.give(o)
	if p.store.append(records); again {
		return fmt.Sprintf("entry %d again", e.Number), err
	}
	return entryLine(e, err)
}
