package web

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// userMoney shows balances, how long they last, and the statement.
func (s userPages) userMoney(ctx context.Context, r *http.Request) (view, error) {
	v, err := s.ownMoney(ctx, r)
	if err != nil {
		return v, err
	}
	list, err := ask(ctx, s.Server, control.Runway, control.RunwayCall{Over: config.Span(control.RunwayOver)})
	if err != nil {
		return v, err
	}
	t := &table{Caption: "How long the money lasts at the rate of the last " + words.ShortDuration(control.RunwayOver), Heads: heads("Currency", "Available#", "Spent#", "Lasts", "Ends"), Empty: "No account has money."}
	for _, l := range list {
		lasts, ends := "it does not end", txt("-")
		if l.LastsS != nil {
			lasts, ends = span(time.Duration(*l.LastsS*float64(time.Second))), cell{Text: words.Date(l.Ends), Whole: true}
		}
		c := txt(lasts)
		if l.Low {
			c = cell{Text: lasts, State: "bad", Small: "low"}
		}
		t.Rows = append(t.Rows, []cell{txt(l.Currency).and(name(l.Bank)), num(money(l.Available, l.Currency)), num(money(l.Spent, l.Currency)), c, ends})
	}
	v.Blocks = slices.Insert(v.Blocks, 1, block{Table: t})
	return v, nil
}

// ownMoney shows balances and the statement of an agent's own accounts.
func (s *Server) ownMoney(ctx context.Context, r *http.Request) (view, error) {
	balances, err := ask(ctx, s, control.Balance, control.None{})
	if err != nil {
		return view{}, err
	}
	q, err := statementCall(r)
	if err != nil {
		return view{}, err
	}
	list, err := ask(ctx, s, control.Statements, q)
	v := view{Title: "Money", On: []string{control.EventPurchase, control.EventReservation}, Blocks: []block{{Table: balanceTable(balances)}}}
	for _, b := range list {
		t := statementTable(b.Statement, "/money", "")
		t.Caption = "Entries at " + name(b.Bank) + ", the newest first"
		for i, l := range slices.Backward(b.Lines) {
			if id := b.Purchases[l.Contract]; id != "" && s.cfg.Kind == control.User { // a site has no such page
				t.Rows[len(b.Lines)-1-i][5] = to(purchasePath(id), words.OrDash(b.Names[l.Contract]))
			}
		}
		v.Blocks = append(v.Blocks, block{Table: t})
	}
	return v, err
}

func balanceTable(list []message.Balance) *table {
	t := &table{Caption: "Balances", Heads: heads("Account", "Balance#", "Held#", "Available#", "Group"), Empty: "No bank has an account of this agent."}
	for _, b := range list {
		group := txt("-")
		if b.Group != "" {
			group = txt(b.Group).and("may spend " + money(b.Spendable, b.Currency))
		}
		t.Rows = append(t.Rows, []cell{txt(words.AccountWords(b.Account, b.Name)), num(money(b.Balance, b.Currency)), num(money(b.Held, b.Currency)), num(money(b.Available, b.Currency)), group})
	}
	return t
}

// statementCall asks for the last entries before one that a page names.
func statementCall(r *http.Request) (q control.StatementCall, err error) {
	q = control.StatementCall{Account: r.URL.Query().Get("account"), Limit: pageRows}
	n, err := intOf(r.URL.Query(), "before", lastEntry)
	q.Before = uint64(max(n, 1))
	return q, err
}

// lastEntry is behind every entry.
const lastEntry = math.MaxInt

// statementTable has the entries of an account. account names it in the address of older entries.
func statementTable(m message.Statement, path, account string) *table {
	t := &table{Caption: "Entries, the newest first", Heads: heads("Entry#", "Time", "What", "Amount#", "Balance#", "Contract or reason", "Other account"), Empty: "There is no entry."}
	for _, l := range slices.Backward(m.Lines) {
		t.Rows = append(t.Rows, []cell{num(fmt.Sprint(l.Entry)), moment(l.Time), txt(l.What), num(signed(l.Amount) + " " + l.Currency).and(heldWords(l.Held, l.Currency)), num(money(l.Balance, l.Currency)),
			txt(words.OrDash(short(string(l.Contract)))).and(l.Ref), txt(otherWords(l))})
	}
	if m.More && len(m.Lines) > 0 {
		t.More = fmt.Sprintf("%s?before=%d", path, m.Lines[0].Entry)
		if account != "" {
			t.More += "&account=" + account
		}
	}
	return t
}

func otherWords(l message.StatementLine) string {
	if l.Other == "" {
		return "-"
	}
	return words.Counterparty(l.Other, l.Amount)
}

func signed(c protocol.Credits) string {
	if c > 0 {
		return "+" + c.Cents()
	}
	return c.Cents()
}

func heldWords(c protocol.Credits, currency string) string {
	switch {
	case c > 0:
		return "held " + money(c, currency)
	case c < 0:
		return "no longer held " + money(-c, currency)
	}
	return ""
}
