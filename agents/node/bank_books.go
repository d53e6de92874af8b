package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	bankbooks "ramp/bank/books"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/message"
)

// books answers questions about a bank's accounts. The role's ledger has them as they are
// now; the store has every entry.
type books struct {
	runner     *agents.Runner
	db         *ledgerdb.DB
	currencies []string
	writes     *wakeup // raised by each write
}

func (b books) routes(mux *http.ServeMux) {
	control.LastEntry.Answer(mux, b.Last)
	control.Balances.Answer(mux, b.balances)
	control.Statement.Answer(mux, b.accountStatement)
	control.Claims.Answer(mux, b.claims)
	control.Accounts.Answer(mux, b.accounts)
	control.Groups.Answer(mux, b.groups)
	control.Holds.Answer(mux, b.holds)
	control.Policies.Answer(mux, b.Policies)
	control.Report.Answer(mux, b.report)
	control.Entries.Answer(mux, b.entries)
}

// inLedger returns what f reads of the ledger, in the goroutine that owns it.
func inLedger[T any](ctx context.Context, b books, f func(now time.Time, l *ledger.Ledger) T) (T, error) {
	return agents.Read(ctx, b.runner, func(now time.Time, r *bank.Role) T { return f(now, r.Ledger()) })
}

func (b books) accounts(ctx context.Context, _ struct{}) ([]control.AccountView, error) {
	return inLedger(ctx, b, func(now time.Time, l *ledger.Ledger) []control.AccountView {
		list := []control.AccountView{}
		for _, a := range l.Accounts() {
			a, _ := l.AccountAt(now, a.ID)
			list = append(list, viewAccount(a))
		}
		return list
	})
}

func viewAccount(a ledger.Account) control.AccountView {
	v := control.AccountView{Account: a.ID, Name: a.Name, Opened: a.Opened, Standing: a.Standing.String(), Group: a.Group, Lines: []control.LineView{}}
	for _, n := range a.Lines {
		v.Lines = append(v.Lines, control.LineView{Currency: n.Currency, Balance: n.Balance, Held: n.Held, Limit: n.Overdraft, Available: n.Available, PerDay: n.Income})
	}
	return v
}

// groups lists all groups, or the one that the call names.
func (b books) groups(ctx context.Context, q control.NameCall) ([]control.GroupView, error) {
	list, err := inLedger(ctx, b, func(_ time.Time, l *ledger.Ledger) []control.GroupView {
		list := []control.GroupView{}
		for _, g := range l.Groups.All() {
			if q.Name == "" || q.Name == g.Name {
				list = append(list, viewGroup(g))
			}
		}
		return list
	})
	if err == nil && q.Name != "" && len(list) == 0 {
		err = exit.Fail(exit.Usage, "'ramp bank group show' lists the groups", "no group %q, or it has no members yet", q.Name)
	}
	return list, err
}

func viewGroup(g ledger.Group) control.GroupView {
	v := control.GroupView{Group: g.Name, Shared: g.Shared, Members: []control.MemberView{}, Clusters: []string{}}
	for _, m := range g.Members {
		v.Members = append(v.Members, control.MemberView{User: string(m.User), Share: m.Share, Pays: m.Pays.String()})
	}
	for _, c := range g.Clusters {
		v.Clusters = append(v.Clusters, string(c))
	}
	return v
}

func (b books) holds(ctx context.Context, _ struct{}) ([]control.HoldView, error) {
	return inLedger(ctx, b, func(_ time.Time, l *ledger.Ledger) []control.HoldView {
		list := []control.HoldView{}
		for _, h := range l.Holds() {
			list = append(list, control.HoldView{Hold: h.Number, Account: h.From, Currency: h.Currency, Amount: h.Amount, Until: h.Until, Ref: h.Ref})
		}
		return list
	})
}

func (b books) Policies(ctx context.Context, _ struct{}) (control.PoliciesView, error) {
	return inLedger(ctx, b, func(now time.Time, l *ledger.Ledger) control.PoliciesView {
		v := control.PoliciesView{Policies: []control.PolicyView{}, Rates: []control.RateView{}}
		v.Recovering, v.Latest, v.Sums = l.Recovering(), behind(now, l.Latest()), l.Sum()
		for _, c := range b.currencies {
			p := l.Policy(c)
			v.Policies = append(v.Policies, control.PolicyView{Currency: c, Policy: p.Kind.String(), Decay: protocol.Credits(p.Decay)})
			for _, to := range b.currencies {
				if rate := l.Exchange.Rate(c, to); rate > 0 {
					v.Rates = append(v.Rates, control.RateView{From: c, To: to, Rate: rate})
				}
			}
		}
		return v
	})
}

// report sums up the entries of a period. The bank keeps settling meanwhile.
func (b books) report(ctx context.Context, q control.ReportCall) ([]bankbooks.Currency, error) {
	query := bankbooks.Query{From: q.From, Step: time.Duration(q.Step), Top: q.Top}
	if err := query.Validate(); err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
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
		cores := int64(0)
		if e.Kind == ledger.KindSettle || e.Kind == ledger.KindDraw || e.Kind == ledger.KindReserve {
			if cores, err = b.db.CoreSeconds(e.Number); err != nil {
				return false, err
			}
		}
		if err := r.Add(e, cores); err != nil {
			return false, exit.Fail(exit.Usage, "", "%w", err)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	list := r.Currencies() // not in the ledger's goroutine: it takes its time
	return inLedger(ctx, b, func(_ time.Time, l *ledger.Ledger) []bankbooks.Currency { return nameTraders(l, list) })
}

func nameTraders(l *ledger.Ledger, list []bankbooks.Currency) []bankbooks.Currency {
	for _, c := range list {
		for i := range c.Top {
			a, _ := l.Account(c.Top[i].Account)
			c.Top[i].Name = a.Name
		}
	}
	return list
}

// each passes the entries from a number on to f until f returns false.
func (b books) each(ctx context.Context, from uint64, f func(ledger.Entry) (bool, error)) error {
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

func viewEntry(e ledger.Entry) (control.EntryView, error) {
	v := control.EntryView{
		Entry: e.Number, Time: e.Time, What: e.Kind.String(), Contract: e.Contract, Unit: e.Unit, Hold: e.Hold, Ref: e.Ref,
		Signed: len(e.Signature) > 0, Legs: []control.LegView{},
	}
	for _, l := range e.Legs {
		v.Legs = append(v.Legs, control.LegView{Account: l.Account, Currency: l.Currency, Amount: l.Amount, Held: l.Held, Balance: l.After})
	}
	var text strings.Builder
	err := bankbooks.Journal(&text, e)
	v.Journal = text.String()
	return v, err
}

func (b books) entries(_ context.Context, q control.EntriesCall) ([]control.EntryView, error) {
	if q.Limit < 1 || q.Limit > ledgerdb.MaxPage {
		return nil, exit.Fail(exit.Usage, "", "limit of %d entries: want 1..%d", q.Limit, ledgerdb.MaxPage)
	}
	from, limit := max(q.From, 1), q.Limit
	if q.Before > 0 { // the last ones before that entry
		from = max(from, q.Before-min(q.Before, uint64(limit)))
		limit = int(q.Before - min(from, q.Before))
	}
	page, err := b.db.Entries(from, limit)
	if err != nil {
		return nil, err
	}
	return viewEntries(page)
}

func viewEntries(page []ledger.Entry) ([]control.EntryView, error) {
	list := make([]control.EntryView, 0, len(page))
	for _, e := range page {
		v, err := viewEntry(e)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// Last returns the number of the last entry, 0 if the ledger is empty.
func (b books) Last(ctx context.Context, _ struct{}) (control.OperatorEntry, error) {
	return inLedger(ctx, b, func(now time.Time, l *ledger.Ledger) control.OperatorEntry {
		return control.OperatorEntry{Entry: l.LastEntry(), Time: now}
	})
}

// balances lists the requested account, or all accounts including the issuer.
func (b books) balances(ctx context.Context, q control.StatementCall) ([]message.Balance, error) {
	var failed error
	list, err := inLedger(ctx, b, func(now time.Time, l *ledger.Ledger) []message.Balance {
		list, accounts := []message.Balance{}, l.Accounts()
		if q.Account != "" {
			a, err := findAccount(l, q.Account)
			accounts, failed = []ledger.Account{a}, err
		}
		for _, a := range accounts {
			a, _ = l.AccountAt(now, a.ID) // with incomes until now
			list = append(list, bank.Balances(a)...)
		}
		return list
	})
	return list, errors.Join(failed, err)
}

func (b books) accountStatement(ctx context.Context, q control.StatementCall) (message.Statement, error) {
	id, err := b.account(ctx, q.Account)
	if err != nil {
		return message.Statement{}, err
	}
	return b.statement(message.StatementQuery{Account: id, From: q.From, To: q.To, After: q.After, Before: q.Before, Limit: q.Limit})
}

// account finds the ID of an account by agent ID, name or group:NAME.
func (b books) account(ctx context.Context, who string) (protocol.AgentID, error) {
	var failed error
	id, err := inLedger(ctx, b, func(_ time.Time, l *ledger.Ledger) protocol.AgentID {
		a, err := findAccount(l, who)
		failed = err
		return a.ID
	})
	return id, errors.Join(failed, err)
}

// findAccount finds an account by agent ID, name or group:NAME. An open account comes
// before the issuer and before a closed account of the same name.
func findAccount(l *ledger.Ledger, who string) (ledger.Account, error) {
	asked := protocol.AgentID(who)
	if id, ok := words.GroupName(who); ok {
		asked = id
	}
	if a, ok := l.Account(asked); ok {
		return a, nil
	}
	hint := "'ramp bank balance' lists the accounts"
	var last ledger.Account
	for _, a := range l.Accounts() {
		switch {
		case a.Name != who:
		case a.ID == ledger.Issuer:
			last = a
		case a.ID.Local():
			hint = fmt.Sprintf("did you mean %q?", words.AccountWords(a.ID, a.Name))
		case a.Standing == ledger.StandingClosed:
			last = a
		default:
			return a, nil
		}
	}
	if last.ID != "" {
		return last, nil
	}
	return ledger.Account{}, exit.Fail(exit.Usage, hint, "no account %q", who)
}

// statement reads the lines of an account in all currencies of the bank.
func (b books) statement(q message.StatementQuery) (message.Statement, error) {
	s := message.Statement{Account: q.Account, Lines: []message.StatementLine{}}
	limit := min(max(q.Limit, 1), message.MaxStatement)
	entries := map[uint64]int{} // number of lines per entry
	for _, currency := range b.currencies {
		part, err := b.db.Statement(ledgerdb.Query{Account: q.Account, Currency: currency, From: q.From, To: q.To, After: q.After, Before: q.Before, Limit: limit})
		if err != nil {
			return s, err
		}
		s.More = s.More || part.More
		for _, e := range part.Entries {
			for _, leg := range e.Legs {
				if leg.Account == q.Account && leg.Currency == currency {
					entries[e.Number]++
					s.Lines = append(s.Lines, lineOf(e, leg, q.Group))
				}
			}
		}
	}
	cutStatement(&s, entries, limit, q.Before > 0)
	return s, nil
}

// lineOf makes a line of a statement. A group's statement leaves out the contracts, which
// belong to single members.
func lineOf(e ledger.Entry, leg ledger.Leg, group bool) message.StatementLine {
	l := message.StatementLine{
		Entry: e.Number, Time: e.Time, What: e.Kind.String(), Amount: leg.Amount, Held: leg.Held, Currency: leg.Currency, Balance: leg.After,
	}
	if !group {
		l.Contract, l.Ref = e.Contract, e.Ref
		if i := slices.IndexFunc(e.Legs, func(other ledger.Leg) bool { return other.Account != leg.Account }); e.Kind == ledger.KindTransfer && i >= 0 {
			l.Other = e.Legs[i].Account
		}
	}
	return l
}

// cutStatement sorts the lines of several currencies by entry and keeps those of the first, or
// last, limit entries, so that a page never splits an entry.
func cutStatement(s *message.Statement, entries map[uint64]int, limit int, last bool) {
	sort.SliceStable(s.Lines, func(i, j int) bool { return s.Lines[i].Entry < s.Lines[j].Entry })
	if len(entries) <= limit {
		return
	}
	cut, first := 0, limit
	if last {
		first = len(entries) - limit
	}
	for range first {
		cut += entries[s.Lines[cut].Entry]
	}
	if s.More = true; last {
		s.Lines = s.Lines[cut:]
	} else {
		s.Lines = s.Lines[:cut]
	}
}

// claims lists usage records that are not paid yet.
func (b books) claims(ctx context.Context, _ struct{}) ([]control.ClaimView, error) {
	return inLedger(ctx, b, func(_ time.Time, l *ledger.Ledger) []control.ClaimView {
		list := []control.ClaimView{}
		for _, c := range l.Claims() {
			v := control.ClaimView{
				Contract: c.Contract, Unit: c.Unit, State: "disputed", User: c.User, Seller: c.Seller,
				Currency: c.Hold.Currency, Held: c.Hold.Amount, Due: c.Due, Record: c.Record, Why: c.Why,
			}
			if !c.Disputed {
				v.State, v.Until = "filed", c.Hold.Until
			}
			list = append(list, v)
		}
		return list
	})
}

// follow sends the entries after a number as the ledger makes them.
func (b books) follow(ctx context.Context, q control.EventsCall, send func(control.Event) error) error {
	last, err := b.Last(ctx, struct{}{})
	if err != nil {
		return err
	}
	at := cmp.Or(min(q.Since, last.Entry), last.Entry)
	if err := send(control.Event{Number: at}); err != nil {
		return err
	}
	for {
		changed := b.writes.next()
		page, err := b.db.Entries(at+1, ledgerdb.MaxPage)
		if err != nil {
			return err
		}
		views, err := viewEntries(page)
		if err != nil {
			return err
		}
		for _, v := range views {
			data, err := json.Marshal(v)
			if err != nil {
				return err
			}
			if err := send(control.Event{Number: v.Entry, Time: v.Time, Kind: control.EventEntry, Data: data}); err != nil {
				return err
			}
			at = v.Entry
		}
		if len(page) == ledgerdb.MaxPage {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// currency is the one that a call names; by default the bank's first.
func (b books) currency(named string) string {
	if named == "" {
		return b.currencies[0]
	}
	return named
}
