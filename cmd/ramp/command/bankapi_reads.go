package command

import (
	"context"
	"net/http"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	bankbooks "ramp/bank/books"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// What an operator reads, in JSON; the names are fixed.
type (
	accountView struct {
		Account  protocol.AgentID `json:"account"`
		Name     string           `json:"name"`
		Opened   time.Time        `json:"opened"`
		Standing string           `json:"standing"`
		Group    string           `json:"group,omitempty"`
		Lines    []lineView       `json:"lines"`
	}
	lineView struct {
		Currency  string           `json:"currency"`
		Balance   protocol.Credits `json:"balance"`
		Held      protocol.Credits `json:"held"`
		Limit     protocol.Credits `json:"limit"`
		Available protocol.Credits `json:"available"`
		PerDay    protocol.Credits `json:"per_day"`
	}
	holdView struct {
		Hold     uint64           `json:"hold"`
		Account  protocol.AgentID `json:"account"`
		Currency string           `json:"currency"`
		Amount   protocol.Credits `json:"amount"`
		Until    time.Time        `json:"until"`
		Ref      string           `json:"ref"`
	}
	policyView struct {
		Currency string           `json:"currency"`
		Policy   string           `json:"policy"`
		Decay    protocol.Credits `json:"decay"`
	}
	rateView struct {
		From string           `json:"from"`
		To   string           `json:"to"`
		Rate protocol.Credits `json:"rate"`
	}
	policiesView struct {
		Policies   []policyView `json:"policies"`
		Rates      []rateView   `json:"rates"`
		Recovering bool         `json:"recovering"`
		Latest     time.Time    `json:"latest,omitzero"` // of the last entry, if the clock is behind it
	}
	reportCall struct {
		From time.Time `json:"from,omitzero"`
		To   time.Time `json:"to,omitzero"`
		Step span      `json:"step"`
		Top  int       `json:"top"`
	}
	entriesCall struct {
		From  uint64 `json:"from"`
		Limit int    `json:"limit"`
	}
)

func (b *bankNode) readRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/accounts", handler(b.accounts))
	mux.HandleFunc("POST /v1/groups", handler(b.groups))
	mux.HandleFunc("POST /v1/holds", handler(b.holds))
	mux.HandleFunc("POST /v1/policies", handler(b.policies))
	mux.HandleFunc("POST /v1/report", handler(b.report))
	mux.HandleFunc("POST /v1/entries", handler(b.entries))
	mux.HandleFunc("POST /v1/backup", handler(b.backup))
}

// read looks at the ledger in the goroutine that owns it.
func (b *bankNode) read(ctx context.Context, f func(now time.Time, l *ledger.Ledger)) error {
	return b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		f(now, r.(*bank.Role).Ledger())
		return protocol.Output{}
	})
}

func (b *bankNode) accounts(ctx context.Context, _ struct{}) ([]accountView, error) {
	list := []accountView{}
	err := b.read(ctx, func(now time.Time, l *ledger.Ledger) {
		for _, a := range l.Accounts() {
			a, _ := l.AccountAt(now, a.ID)
			list = append(list, viewAccount(a))
		}
	})
	return list, err
}

func viewAccount(a ledger.Account) accountView {
	v := accountView{Account: a.ID, Name: a.Name, Opened: a.Opened, Standing: a.Standing.String(), Group: a.Group, Lines: []lineView{}}
	for _, n := range a.Lines {
		v.Lines = append(v.Lines, lineView{n.Currency, n.Balance, n.Held, n.Overdraft, n.Available, n.Income})
	}
	return v
}

// groups are all groups, or the one of a name.
func (b *bankNode) groups(ctx context.Context, q nameCall) ([]groupView, error) {
	list := []groupView{}
	err := b.read(ctx, func(_ time.Time, l *ledger.Ledger) {
		for _, g := range l.Groups() {
			if q.Name == "" || q.Name == g.Name {
				list = append(list, viewGroup(g))
			}
		}
	})
	if err == nil && q.Name != "" && len(list) == 0 {
		err = fail(exitUsage, "'ramp bank group show' lists the groups", "no group %q, or nobody is in it yet", q.Name)
	}
	return list, err
}

func viewGroup(g ledger.Group) groupView {
	v := groupView{Group: g.Name, Shared: g.Shared, Members: []memberView{}, Clusters: []string{}}
	for _, m := range g.Members {
		v.Members = append(v.Members, memberView{string(m.User), m.Share, m.Pays.String()})
	}
	for _, c := range g.Clusters {
		v.Clusters = append(v.Clusters, string(c))
	}
	return v
}

func (b *bankNode) holds(ctx context.Context, _ struct{}) ([]holdView, error) {
	list := []holdView{}
	err := b.read(ctx, func(_ time.Time, l *ledger.Ledger) {
		for _, h := range l.Holds() {
			list = append(list, holdView{h.Number, h.From, h.Currency, h.Amount, h.Until, h.Ref})
		}
	})
	return list, err
}

func (b *bankNode) policies(ctx context.Context, _ struct{}) (policiesView, error) {
	v := policiesView{Policies: []policyView{}, Rates: []rateView{}}
	err := b.read(ctx, func(now time.Time, l *ledger.Ledger) {
		v.Recovering, v.Latest = l.Recovering(), behind(now, l.Latest())
		for _, c := range b.cfg.Bank.Currencies {
			p := l.Policy(c)
			v.Policies = append(v.Policies, policyView{c, p.Kind.String(), protocol.Credits(p.Decay)})
			for _, to := range b.cfg.Bank.Currencies {
				if rate := l.Rate(c, to); rate > 0 {
					v.Rates = append(v.Rates, rateView{c, to, rate})
				}
			}
		}
	})
	return v, err
}

// report reads the entries of a while; settlements go on meanwhile.
func (b *bankNode) report(ctx context.Context, q reportCall) ([]bankbooks.Currency, error) {
	query := bankbooks.Query{From: q.From, Step: time.Duration(q.Step), Top: q.Top}
	if err := query.Validate(); err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	first, err := b.db.Since(q.From)
	if err != nil {
		return nil, err
	}
	r := bankbooks.NewReport(query)
	err = b.each(ctx, first, func(e ledger.Entry) (bool, error) {
		if !q.To.IsZero() && !e.Time.Before(q.To) {
			return false, nil
		}
		if err := r.Add(e); err != nil {
			return false, fail(exitUsage, "", "%w", err)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	list := r.Currencies()
	return list, b.read(ctx, func(_ time.Time, l *ledger.Ledger) { nameTraders(l, list) })
}

func nameTraders(l *ledger.Ledger, list []bankbooks.Currency) {
	for _, c := range list {
		for i := range c.Top {
			a, _ := l.Account(c.Top[i].Account)
			c.Top[i].Name = a.Name
		}
	}
}

// each hands the entries from a number on to f, until f has enough.
func (b *bankNode) each(ctx context.Context, from uint64, f func(ledger.Entry) (bool, error)) error {
	for from = max(from, 1); ctx.Err() == nil; {
		page, err := b.db.Entries(from, ledgerdb.MaxPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if more, err := f(e); err != nil || !more {
				return err
			}
		}
		from = page[len(page)-1].Number + 1
	}
	return ctx.Err()
}

// entryView is an entry of the ledger in JSON.
type entryView struct {
	Entry    uint64              `json:"entry"`
	Time     time.Time           `json:"time"`
	What     string              `json:"what"`
	Contract protocol.ContractID `json:"contract,omitempty"`
	Unit     int                 `json:"unit,omitempty"`
	Hold     uint64              `json:"hold,omitempty"`
	Ref      string              `json:"ref,omitempty"`
	Signed   bool                `json:"signed"` // an act of the operator, with its signature
	Legs     []legView           `json:"legs"`
	Journal  string              `json:"journal,omitempty"` // as a transaction of plain-text accounting
}

type legView struct {
	Account  protocol.AgentID `json:"account"`
	Currency string           `json:"currency"`
	Amount   protocol.Credits `json:"amount"`
	Held     protocol.Credits `json:"held"`
	Balance  protocol.Credits `json:"balance"`
}

func viewEntry(e ledger.Entry) (entryView, error) {
	v := entryView{
		Entry: e.Number, Time: e.Time, What: e.Kind.String(), Contract: e.Contract, Unit: e.Unit, Hold: e.Hold, Ref: e.Ref,
		Signed: len(e.Signature) > 0, Legs: []legView{},
	}
	for _, l := range e.Legs {
		v.Legs = append(v.Legs, legView{l.Account, l.Currency, l.Amount, l.Held, l.After})
	}
	var text strings.Builder
	err := bankbooks.Journal(&text, e)
	v.Journal = text.String()
	return v, err
}

// entries are a page of the ledger, from a number on.
func (b *bankNode) entries(_ context.Context, q entriesCall) ([]entryView, error) {
	if q.Limit < 1 || q.Limit > ledgerdb.MaxPage {
		return nil, fail(exitUsage, "", "limit of %d entries: want 1..%d", q.Limit, ledgerdb.MaxPage)
	}
	page, err := b.db.Entries(max(q.From, 1), q.Limit)
	list := make([]entryView, 0, len(page))
	for _, e := range page {
		v, failed := viewEntry(e)
		if failed != nil {
			return nil, failed
		}
		list = append(list, v)
	}
	return list, err
}
