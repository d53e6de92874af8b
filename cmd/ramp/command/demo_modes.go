package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/rfql"
)

// A demonstration of a settlement mode is a small market of real processes, with
// slots of seconds, so that one sees jobs end and money move.

// modesResult is such a demonstration in JSON; the names are fixed.
type modesResult struct {
	Policy    string     `json:"policy"`
	Steps     []modeStep `json:"steps"`
	LedgerSum int64      `json:"ledger_sum"` // micro-credits over all accounts of all currencies
	Entries   uint64     `json:"entries"`
	Faults    int        `json:"faults"` // that the audit found
	ElapsedMS int64      `json:"elapsed_ms"`
	Dir       string     `json:"dir,omitempty"`
}

// modeStep is what happened, and what everybody has then.
type modeStep struct {
	What     string                      `json:"what"`
	Purchase *message.Purchase           `json:"purchase,omitempty"`
	Balance  map[string]protocol.Credits `json:"balance"`
	Running  map[string]protocol.Credits `json:"running"` // balance less what is held
}

// modesMarket is the market of such a demonstration.
type modesMarket struct {
	*demo
	ca      *identity.CA
	users   map[string]*process
	columns []string // names of accounts, as they are shown
	result  modesResult
}

// modesBegin is how long after it is ordered a slot begins at first; an order that
// comes too late on a slow machine is made again, for twice as late.
const (
	modesBegin = 4 * time.Second
	modesTries = 4
	jobTime    = time.Minute // within which every job has ended and is paid
)

// runModes brings such a market up, lets it trade, and takes it down again.
func (d *demo) runModes(ctx context.Context, policy string, trade func(context.Context, *modesMarket) error) (err error) {
	d.begun = time.Now()
	made, err := d.makeDir()
	if err != nil {
		return err
	}
	m := &modesMarket{demo: d, users: map[string]*process{}, result: modesResult{Policy: policy}}
	defer func() {
		if d.keep && err == nil {
			return
		}
		interrupted := ctx.Err() != nil
		err = errors.Join(err, d.takeDown())
		if made && (err == nil || interrupted) { // after a failure the logs are wanted
			err = errors.Join(err, os.RemoveAll(d.dir))
		}
	}()
	if err := m.found(ctx); err != nil {
		return err
	}
	if err := trade(ctx, m); err != nil {
		return err
	}
	return m.finish(ctx)
}

// found makes the market's authority and its bank.
func (m *modesMarket) found(ctx context.Context) (err error) {
	if m.ca, err = m.newAuthority(); err != nil {
		return err
	}
	return m.startBank(ctx, m.ca)
}

// operate makes one call to the bank, as its operator.
func (m *modesMarket) operate(ctx context.Context, call string, body, v any) error {
	bank, err := m.bank.call()
	if err != nil {
		return err
	}
	return bank.call(ctx, "POST", call, body, v)
}

// account opens an agent's account and makes it a column.
func (m *modesMarket) account(ctx context.Context, id protocol.AgentID, name string, shown bool) error {
	if shown {
		m.columns = append(m.columns, name)
	}
	return m.operate(ctx, "/v1/account", openAccountCall{Account: id, Name: name}, nil)
}

// modesSite is a seller: its jobs' prices do not move, and each of its machines
// can be asked for by its name as version of the operating system.
type modesSite struct {
	name  string
	price int
	mode  protocol.Mode
	jobs  jobsModel
}

// idleLog is the log of the published market's machine that is idle at its base,
// and the second of that. All sellers play the same.
func (m *modesMarket) idleLog() (path string, base int64, err error) {
	const idle = 1
	if m.place == nil {
		if err := m.openLogs(); err != nil {
			return "", 0, err
		}
	}
	return m.siteLog(idle)
}

// site starts a seller with an account.
func (m *modesMarket) site(ctx context.Context, s modesSite) error {
	log, base, err := m.idleLog()
	if err != nil {
		return err
	}
	price := strconv.Itoa(s.price)
	dir, err := m.agentDir(m.ca, s.name, config{Resource: &resourceConfig{
		Driver: "swf", SWF: swfConfig{Log: log, Base: base, Start: instant(m.begun.UTC().Truncate(time.Second)), Jobs: s.jobs},
		StartPrice: price, MinPrice: price, Pay: m.pay(), Modes: []string{string(s.mode)},
		Properties: propertiesConfig{OS: "Linux", OSVersion: s.name, Arch: "x86_64"},
	}})
	if err != nil {
		return err
	}
	p, ready, err := spawn(dir, m.keep, nil, "resource", "serve", "--dir", dir)
	if err != nil {
		return err
	}
	m.sites = append(m.sites, p)
	if err := p.await(ctx, ready); err != nil {
		return err
	}
	return m.account(ctx, p.Agent, s.name, false)
}

// buyer starts a user agent with an account.
func (m *modesMarket) buyer(ctx context.Context, name string) error {
	dir, err := m.agentDir(m.ca, name, config{User: &userConfig{Pay: m.pay()}})
	if err != nil {
		return err
	}
	p, ready, err := spawn(dir, m.keep, nil, "user", "serve", "--dir", dir)
	if err != nil {
		return err
	}
	m.users[name] = p
	m.sites = append([]*process{p}, m.sites...) // users leave first
	if err := p.await(ctx, ready); err != nil {
		return err
	}
	return m.account(ctx, p.Agent, name, true)
}

// sellers waits until a user has met so many sellers.
func (m *modesMarket) sellers(ctx context.Context, n int) error {
	for _, name := range m.columns {
		if m.users[name] == nil {
			continue
		}
		agent, err := m.users[name].call()
		if err != nil {
			return err
		}
		err = poll(ctx, startTime, func() (bool, error) {
			var known []resourceLine
			err := agent.call(ctx, "POST", "/v1/resources", nil, &known)
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

// poll asks again and again until something is so.
func poll(ctx context.Context, most time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return errPatience
		}
	}
}

// modesOrder is a job that somebody buys: cores for a while on a certain site.
type modesOrder struct {
	user, site string
	cores      int
	wall       time.Duration
	price      int
	contract   protocol.Tariff // price functions of a metered job; zero: it is not
}

// order buys a job. One that was too late for its slot is ordered again.
func (m *modesMarket) order(ctx context.Context, o modesOrder) (message.Purchase, error) {
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
	return p, fail(exitFailed, "", "%s could not buy %d cores on %s: %s %v", o.user, o.cores, o.site, p.Why, p.Reasons)
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

func (m *modesMarket) buyAs(ctx context.Context, user string, doc rfql.Document) (message.Purchase, error) {
	var p message.Purchase
	agent, err := m.users[user].call()
	if err != nil {
		return p, err
	}
	call := buyCall{ID: newPurchaseID(false), Name: doc.Request(0).Name, Document: string(doc.XML()), Options: message.Options{Rounds: 1}}
	err = agent.stream(ctx, "/v1/buy", call, func(raw json.RawMessage) error {
		var line progressLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		p = line.Purchase
		if p.State == "awaiting approval" {
			return agent.call(ctx, "POST", "/v1/approve", idCall{ID: call.ID}, nil)
		}
		return nil
	})
	return p, err
}

// end waits until every unit of a purchase has ended, as its user knows it.
func (m *modesMarket) end(ctx context.Context, user string, p message.Purchase) (message.Purchase, error) {
	agent, err := m.users[user].call()
	if err != nil {
		return p, err
	}
	err = poll(ctx, jobTime, func() (bool, error) {
		err := agent.call(ctx, "POST", "/v1/purchase", idCall{ID: p.ID}, &p)
		return !slices.ContainsFunc(p.Units, func(u message.PurchasedUnit) bool { return u.State == "settled" }), err
	})
	if err != nil {
		return p, fmt.Errorf("the job of %s on %s is not paid: %w", user, p.RFQ, err)
	}
	return p, nil
}

// step shows what happened, and what everybody has now.
func (m *modesMarket) step(ctx context.Context, p *message.Purchase, format string, args ...any) error {
	s := modeStep{What: fmt.Sprintf(format, args...), Purchase: p, Balance: map[string]protocol.Credits{}, Running: map[string]protocol.Credits{}}
	var accounts []accountView
	if err := m.operate(ctx, "/v1/accounts", struct{}{}, &accounts); err != nil {
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
	if !wantsJSON(m.c) {
		m.print(s)
	}
	return nil
}

// print shows a step as a table.
func (m *modesMarket) print(s modeStep) {
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
	m.say("\n%s\n%s\n%s\n%s", s.What, heads, row("balance", s.Balance), row("running balance", s.Running))
}

// finish adds everything up.
func (m *modesMarket) finish(ctx context.Context) error {
	var balances []message.Balance
	if err := m.operate(ctx, "/v1/balances", statementCall{}, &balances); err != nil {
		return err
	}
	for _, b := range balances {
		m.result.LedgerSum += int64(b.Balance)
	}
	var audit auditReport
	if err := m.operate(ctx, "/v1/audit", nil, &audit); err != nil {
		return err
	}
	m.result.Entries, m.result.Faults, m.result.ElapsedMS = audit.Entries, len(audit.Bad), time.Since(m.begun).Milliseconds()
	if m.keep {
		m.result.Dir = m.dir
	}
	if err := m.tellEnd(audit); err != nil {
		return err
	}
	if len(audit.Bad) > 0 || m.result.LedgerSum != 0 {
		return fail(exitFailed, "", "the ledger does not add up: sum %d, %s", m.result.LedgerSum, audit.problems())
	}
	return nil
}

func (m *modesMarket) tellEnd(audit auditReport) error {
	if wantsJSON(m.c) {
		return printJSON(stdout(m.c), m.result)
	}
	m.say("\nsum of all balances %d; audit: %d entries, %d faults; %.1f s", m.result.LedgerSum, audit.Entries, len(audit.Bad), time.Since(m.begun).Seconds())
	if m.keep {
		m.say("the market stays up in %[1]s; look at 'ramp bank statement NAME --dir %[1]s/bank'; end it with: ramp demo --stop --dir %[1]s", m.dir)
	}
	return nil
}
