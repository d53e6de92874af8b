package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Modes is the demonstration of a settlement mode in JSON; the names are fixed.
type Modes struct {
	Policy    string `json:"policy"`
	Steps     []Step `json:"steps"`
	LedgerSum int64  `json:"ledger_sum"` // micro-credits over all accounts of all currencies
	Entries   uint64 `json:"entries"`
	Faults    int    `json:"faults"` // found by the audit
	ElapsedMS int64  `json:"elapsed_ms"`
	Dir       string `json:"dir,omitempty"`
}

// Step is an event, and all balances after it.
type Step struct {
	What     string                      `json:"what"`
	Purchase *message.Purchase           `json:"purchase,omitempty"`
	Balance  map[string]protocol.Credits `json:"balance"`
	Running  map[string]protocol.Credits `json:"running"` // balance minus holds
}

// modes is the market that demonstrates a settlement mode.
type modes struct {
	*Market
	users   map[string]*Process
	columns []string // names of the accounts to show
	show    func(text string)
	result  Modes
}

// modesBegin is the time from an order to its slot. If it is too short on a slow machine, the order
// is repeated with twice the time.
const (
	modesBegin = 4 * time.Second
	modesTries = 4
	jobTime    = time.Minute // bound on the end of a job and its payment
)

// PriorityPolicy shows a federation (ShowPriority), not a settlement mode.
const PriorityPolicy = "priority"

// Policies are what can be shown.
var Policies = []string{"barter", "metered", PriorityPolicy}

// Show brings a market up, lets it trade in a settlement mode, shows each step, and takes it down again.
func (d *Market) Show(ctx context.Context, policy string, show func(text string)) (result Modes, err error) {
	m := &modes{Market: d, users: map[string]*Process{}, show: show, result: Modes{Policy: policy}}
	trade := map[string]func(context.Context) error{"barter": m.barter, "metered": m.byContracts}[policy]
	if trade == nil {
		return m.result, exit.Fail(exit.Usage, "", "--policy %q: want %s", policy, strings.Join(Policies, ", "))
	}
	d.Begun = time.Now()
	made, err := d.makeDir()
	if err != nil {
		return m.result, err
	}
	defer func() { err = d.Close(ctx, made, err) }()
	if err := m.startBank(ctx); err != nil {
		return m.result, err
	}
	if err := trade(ctx); err != nil {
		return m.result, err
	}
	err = m.finish(ctx)
	return m.result, err
}

// account opens an agent's account, and makes it a column if it is to be shown.
func (m *modes) account(ctx context.Context, id protocol.AgentID, name string, shown bool) error {
	if shown {
		m.columns = append(m.columns, name)
	}
	return Ask(ctx, m.Bank, control.OpenAccount, control.OpenAccountCall{Account: id, Name: name}, nil)
}

// modesSite is a seller with a fixed price. A request selects it by its name, which it gives as the
// version of its operating system.
type modesSite struct {
	name  string
	price int
	mode  protocol.Mode
	jobs  config.JobsModel
}

// idleLog is the log of a published machine that is idle at some second, and that second. All sellers
// replay it.
func (m *modes) idleLog() (path string, base int64, err error) {
	const idle = 1
	if m.place == nil {
		if err := m.openLogs(); err != nil {
			return "", 0, err
		}
	}
	return m.siteLog(idle)
}

func (m *modes) site(ctx context.Context, s modesSite) error {
	log, base, err := m.idleLog()
	if err != nil {
		return err
	}
	price := strconv.Itoa(s.price)
	p, err := m.start(ctx, "resource", s.name, config.Config{Resource: &config.Resource{
		Driver: "swf", SWF: config.SWF{Log: log, Base: base, Start: config.Instant(m.Begun.UTC().Truncate(time.Second)), Jobs: s.jobs},
		StartPrice: price, MinPrice: price, Pay: m.Pay(), Modes: []string{string(s.mode)},
		Properties: config.Properties{OS: "Linux", OSVersion: s.name, Arch: "x86_64"},
	}})
	if p != nil {
		m.Sites = append(m.Sites, p)
	}
	if err != nil {
		return err
	}
	return m.account(ctx, p.Agent, s.name, false)
}

func (m *modes) buyer(ctx context.Context, name string) error {
	p, err := m.start(ctx, "user", name, config.Config{User: &config.User{Pay: m.Pay(), Daemon: new(bool)}})
	if p != nil {
		m.users[name] = p
		m.Sites = append([]*Process{p}, m.Sites...) // users leave first
	}
	if err != nil {
		return err
	}
	return m.account(ctx, p.Agent, name, true)
}

// sellers waits until every user has met n sellers.
func (m *modes) sellers(ctx context.Context, n int) error {
	for _, name := range m.columns {
		if m.users[name] == nil {
			continue
		}
		agent, err := m.users[name].call()
		if err != nil {
			return err
		}
		err = poll(ctx, startTime, func() (bool, error) {
			var known []control.ResourceLine
			err := control.Resources.Ask(ctx, agent, struct{}{}, &known)
			return len(known) == n, err
		})
		if err != nil {
			return fmt.Errorf("%s has not met %d sellers: %w", name, n, err)
		}
	}
	return nil
}

// errPatience ends a poll that took too long.
var errPatience = errors.New("it takes too long")

// poll repeats ask until it returns true.
func poll(ctx context.Context, most time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		if !agents.Pause(ctx, 50*time.Millisecond) {
			return errPatience
		}
	}
}

// modesOrder is a job to buy: cores for some time on a certain site.
type modesOrder struct {
	user, site string
	cores      int
	wall       time.Duration
	price      int
	contract   protocol.Tariff // price functions of a metered job; zero if not metered
}

// order buys a job. If it is too late for its slot, it is ordered again.
func (m *modes) order(ctx context.Context, o modesOrder) (message.Purchase, error) {
	var p message.Purchase
	for try := range modesTries {
		begin := modesBegin << try
		doc, err := o.document(time.Now().Add(begin))
		if err != nil {
			return p, err
		}
		if p, err = m.buyAs(ctx, o.user, doc); err != nil {
			return p, err
		}
		if p.Settled || p.Void == protocol.CodeFunds {
			return p, nil
		}
	}
	return p, exit.Fail(exit.Failed, "", "%s could not buy %d cores on %s: %s %v", o.user, o.cores, o.site, p.Why, p.Reasons)
}

func (o modesOrder) document(start time.Time) (rfql.Document, error) {
	start = start.Truncate(time.Second)
	r := rfql.DraftRequest{
		Name: o.user + " on " + o.site, Price: protocol.Credits(o.price) * protocol.Credit, TotalCores: o.cores,
		NotBefore: start, End: start.Add(o.wall), OS: "Linux", OSVersion: o.site,
		Contract: rfql.Contract{P: o.contract.P, Q: o.contract.Q},
	}
	return rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{r}}, start)
}

func (m *modes) buyAs(ctx context.Context, buyer string, doc rfql.Document) (message.Purchase, error) {
	call := control.BuyCall{ID: control.NewPurchaseID(false), Name: doc.Request(0).Name, Document: string(doc.XML()), Options: message.Options{Rounds: 1}}
	return m.users[buyer].Buy(ctx, call, func(message.Purchase) {})
}

// end waits until the user knows that every unit of a purchase has ended.
func (m *modes) end(ctx context.Context, user string, p message.Purchase) (message.Purchase, error) {
	agent, err := m.users[user].call()
	if err != nil {
		return p, err
	}
	err = poll(ctx, jobTime, func() (bool, error) {
		err := control.Purchase.Ask(ctx, agent, control.IDCall{ID: p.ID}, &p)
		return !slices.ContainsFunc(p.Units, func(u message.PurchasedUnit) bool { return u.State == "settled" }), err
	})
	if err != nil {
		return p, fmt.Errorf("the job of %s on %s is not paid: %w", user, p.RFQ, err)
	}
	return p, nil
}

// step shows an event, and all balances after it.
func (m *modes) step(ctx context.Context, p *message.Purchase, format string, args ...any) error {
	s := Step{What: fmt.Sprintf(format, args...), Purchase: p, Balance: map[string]protocol.Credits{}, Running: map[string]protocol.Credits{}}
	var accounts []control.AccountView
	if err := Ask(ctx, m.Bank, control.Accounts, struct{}{}, &accounts); err != nil {
		return err
	}
	for _, a := range accounts {
		for _, l := range a.Lines {
			if slices.Contains(m.columns, a.Name) {
				s.Balance[a.Name], s.Running[a.Name] = l.Balance, l.Balance-l.Held
			}
		}
	}
	m.result.Steps = append(m.result.Steps, s)
	m.show(m.table(s))
	return nil
}

func (m *modes) table(s Step) string {
	row := func(name string, of map[string]protocol.Credits) string {
		var b strings.Builder
		fmt.Fprintf(&b, "  %-16s", name)
		for _, c := range m.columns {
			fmt.Fprintf(&b, " %12s", of[c])
		}
		return b.String()
	}
	heads := fmt.Sprintf("  %-16s", "")
	for _, c := range m.columns {
		heads += fmt.Sprintf(" %12s", c)
	}
	return fmt.Sprintf("\n%s\n%s\n%s\n%s", s.What, heads, row("balance", s.Balance), row("running balance", s.Running))
}

// finish adds everything up.
func (m *modes) finish(ctx context.Context) error {
	_, sum, audit, err := m.Books(ctx)
	if err != nil {
		return err
	}
	m.result.LedgerSum = sum
	m.result.Entries, m.result.Faults, m.result.ElapsedMS = audit.Entries, len(audit.Bad), time.Since(m.Begun).Milliseconds()
	if m.Keep {
		m.result.Dir = m.Dir
	}
	m.show(fmt.Sprintf("\nsum of all balances %d; audit: %d entries, %d faults; %.1f s", sum, audit.Entries, len(audit.Bad), time.Since(m.Begun).Seconds()))
	return WrongBooks(sum, audit)
}
