package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
)

type bankPages struct{ *Server }

func (s bankPages) routes(mux *http.ServeMux) {
	s.nav = []navItem{{"Books", "/"}, {"Accounts", "/accounts"}, {"Entries", "/entries"}, {"Turnover", "/turnover"}, {"Disputes", "/disputes"}, {"Invitations", "/invitations"}, {"Credit or transfer", "/order"}}
	s.page(mux, "/{$}", s.books)
	s.page(mux, "/audit", s.audit)
	s.page(mux, "/accounts", s.accounts)
	s.page(mux, "/statement", s.bankStatement)
	s.page(mux, "/entries", s.entries)
	s.page(mux, "/turnover", s.turnover)
	s.page(mux, "/disputes", s.disputes)
	s.page(mux, "/invitations", s.invitations)
	s.page(mux, "/order", s.orderForm)
	s.part(mux, "/order", s.orderAgain)
	s.act(mux, "/credit", s.credit)
	s.act(mux, "/transfer", s.transfer)
}

var bankEvents = []string{control.EventEntry}

// books shows whether the books balance, and the newest signed head.
func (s bankPages) books(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Accounts, control.None{})
	if err != nil {
		return view{}, err
	}
	policies, err := ask(ctx, s.Server, control.Policies, control.None{})
	if err != nil {
		return view{}, err
	}
	facts, err := s.headFacts(ctx)
	if err != nil {
		return view{}, err
	}
	held := map[string]protocol.Credits{}
	for _, a := range list {
		for _, l := range a.Lines {
			held[l.Currency] += l.Held
		}
	}
	t := &table{Caption: "Sum of all accounts; it must be zero", Heads: heads("Currency", "Sum of all balances#", "Held#", "Policy"), Empty: "No account has an entry yet."}
	for _, c := range slices.Sorted(maps.Keys(policies.Sums)) { // balances in accounts have income that is not entered yet
		sum := num(money(policies.Sums[c], c))
		if sum.State = "good"; policies.Sums[c] != 0 {
			sum.State, sum.Small = "bad", "the books do not balance: run the audit"
		}
		t.Rows = append(t.Rows, []cell{txt(c), sum, num(money(held[c], c)), txt(policyOf(policies, c))})
	}
	v := view{Title: "Books", On: bankEvents, Blocks: []block{{Table: t}, {Heading: "Newest signed head", Facts: facts}}}
	if policies.Recovering {
		v.Blocks = append([]block{{Note: &note{Kind: "bad", Text: "The bank is in recovery: it was restored, and takes its own receipts back from users and sites.", Help: "'ramp bank recovery end' ends it."}}}, v.Blocks...)
	}
	v.Blocks = append(v.Blocks, block{Links: []link{{"Recompute everything (audit)", "/audit"}}})
	return v, nil
}

func policyOf(p control.PoliciesView, currency string) string {
	for _, v := range p.Policies {
		if v.Currency == currency {
			return v.Policy
		}
	}
	return "plain"
}

// headFacts are the newest head of the bank's log, as the bank signs it.
func (s bankPages) headFacts(ctx context.Context) ([]fact, error) {
	a, err := ask(ctx, s.Server, control.BankProof, control.ProofCall{})
	if err != nil {
		return nil, err
	}
	var d audit.Document
	if err := json.Unmarshal(a.Proof, &d); err != nil {
		return nil, err
	}
	h, _, err := contract.ReadHead(d.Head)
	if err != nil {
		return nil, err
	}
	return []fact{{"Entries in the log", txt(fmt.Sprint(h.Size))}, {"Root hash", txt(h.Root)}, {"Signed", moment(h.Time)}}, nil
}

func (s bankPages) audit(ctx context.Context, _ *http.Request) (view, error) {
	a, err := ask(ctx, s.Server, control.Audit, control.AuditCall{})
	n := &note{Kind: "good", Text: fmt.Sprintf("The books balance: %d entries of %s were recomputed at %s.", a.Entries, words.Plural(a.Accounts, "account"), words.Timestamp(s.cfg.Now()))}
	if len(a.Bad) > 0 {
		n = &note{Kind: "bad", Text: "The audit found faults.", Help: a.Problems()}
	}
	t := &table{Caption: "Sums, recomputed from the entries", Heads: heads("Currency", "Sum#")}
	for _, c := range slices.Sorted(maps.Keys(a.Sum)) {
		t.Rows = append(t.Rows, []cell{txt(c), num(a.Sum[c] + " " + c)})
	}
	return view{Title: "Audit", Blocks: []block{{Note: n, Table: t, Facts: []fact{{"Root hash of the log", txt(words.OrDash(a.Root))}, {"Heads kept", txt(words.Plural(a.Heads, "head"))}}}, {Note: &note{Text: "Signatures are checked by the command, which takes longer:"}, Code: "ramp bank audit --signatures"}}}, err
}

func (s bankPages) accounts(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Accounts, control.None{})
	t := &table{Caption: "Accounts", Heads: heads("Account", "Standing", "Balance#", "Held#", "Limit#", "Available#", "Income#"), Empty: "There is no account yet. 'ramp bank invite' admits newcomers."}
	for _, a := range list {
		c := to("/statement?account="+url.QueryEscape(string(a.Account)), cmp.Or(a.Name, string(a.Account)))
		if a.Group != "" {
			c = c.and("group " + a.Group)
		}
		for _, l := range a.Lines {
			t.Rows = append(t.Rows, []cell{c, state(a.Standing), num(money(l.Balance, l.Currency)), num(money(l.Held, l.Currency)), num(money(l.Limit, l.Currency)), num(money(l.Available, l.Currency)), num(money(l.PerDay, l.Currency) + " a day")})
		}
		if len(a.Lines) == 0 {
			t.Rows = append(t.Rows, []cell{c, state(a.Standing), num("-"), num("-"), num("-"), num("-"), num("-")})
		}
	}
	return view{Title: "Accounts", On: bankEvents, Blocks: []block{{Table: t}}}, err
}

func (s bankPages) bankStatement(ctx context.Context, r *http.Request) (view, error) {
	q, err := statementCall(r)
	if err != nil {
		return view{}, err
	}
	m, err := ask(ctx, s.Server, control.Statement, q)
	t := statementTable(m, "/statement", url.QueryEscape(q.Account))
	return view{Title: "Statement of " + protocol.AgentID(q.Account).Name(), On: bankEvents, Blocks: []block{{Table: t, Links: []link{{"All accounts", "/accounts"}}}}}, err
}

func (s bankPages) entries(ctx context.Context, r *http.Request) (view, error) {
	q, err := statementCall(r)
	if err != nil {
		return view{}, err
	}
	if q.Before == lastEntry {
		last, err := ask(ctx, s.Server, control.LastEntry, control.None{})
		if err != nil {
			return view{}, err
		}
		q.Before = last.Entry + 1
	}
	list, err := ask(ctx, s.Server, control.Entries, control.EntriesCall{Before: q.Before, Limit: pageRows})
	t := &table{Caption: "Entries of the ledger, the newest first", Heads: heads("Entry#", "Time", "What", "Movements", "Contract or reason", "Signed"), Empty: "There is no entry yet."}
	for _, e := range slices.Backward(list) {
		var legs []string
		for _, l := range e.Legs {
			legs = append(legs, name(l.Account)+" "+signed(l.Amount)+" "+l.Currency)
		}
		sign := "-"
		if e.Signed {
			sign = "by the operator"
		}
		t.Rows = append(t.Rows, []cell{num(fmt.Sprint(e.Entry)), moment(e.Time), txt(e.What), txt(words.OrDash(strings.Join(legs, "; "))), txt(words.OrDash(short(string(e.Contract)))).and(e.Ref), txt(sign)})
	}
	if len(list) == pageRows && list[0].Entry > 1 {
		t.More = fmt.Sprintf("/entries?before=%d", list[0].Entry)
	}
	return view{Title: "Entries", On: bankEvents, Blocks: []block{{Table: t}}}, err
}

// turnover draws what was paid per day, or per hour.
func (s bankPages) turnover(ctx context.Context, r *http.Request) (view, error) {
	days, err := intOf(r.URL.Query(), "days", 1)
	if err != nil || days < 1 || days > 366 {
		return view{}, exit.Fail(exit.Usage, "choose 1 to 366 days", "days %.20q: want a whole number", r.URL.Query().Get("days"))
	}
	step, now := time.Hour, s.cfg.Now()
	if days > 2 {
		step = 24 * time.Hour
	}
	from := now.Add(-time.Duration(days) * 24 * time.Hour).Truncate(step)
	list, err := ask(ctx, s.Server, control.Report, control.ReportCall{From: from, To: now.Truncate(step).Add(step), Step: config.Span(step), Top: 10})
	v := view{Title: "Turnover", On: bankEvents, Blocks: []block{{Links: []link{{"1 day", "/turnover?days=1"}, {"7 days", "/turnover?days=7"}, {"30 days", "/turnover?days=30"}, {"A year", "/turnover?days=366"}}}}}
	for _, c := range list {
		t := &table{Caption: "Turnover and prices of " + c.Currency + " by period", Heads: heads("From", "Contracts#", "Turnover#", "Mean price of a core-hour#", "Issued#", "Refunded#"), Empty: "Nothing was paid in this time."}
		turnovers := map[int64]protocol.Credits{}
		for _, p := range c.Periods {
			turnovers[p.Start.Unix()] = p.Turnover
			t.Rows = append(t.Rows, []cell{minute(p.Start), num(words.Plural(int(p.Contracts), "contract")), num(money(p.Turnover, c.Currency)), num(money(p.PerCoreHour, c.Currency)), num(money(p.Issued, c.Currency)), num(money(p.Refunded, c.Currency))}) //nolint:gosec // as above
		}
		var columns []column
		for at := from; at.Before(now); at = at.Add(step) {
			col := column{Name: words.ClockTime(at), Values: []float64{float64(turnovers[at.Unix()]) / float64(protocol.Credit)}}
			if n := int(now.Sub(from) / step / 6); len(columns)%max(1, n) == 0 {
				col.Mark = words.ClockTime(at)
			}
			columns = append(columns, col)
		}
		v.Blocks = append(v.Blocks, block{Heading: c.Currency, Chart: stacked("Turnover over time; the table below has the numbers", "in "+c.Currency+" per period", []series{{"c1", "turnover"}}, columns), Table: t})
	}
	return v, err
}

func (s bankPages) disputes(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Claims, control.None{})
	t := &table{Caption: "Usage records that are not paid yet", Heads: heads("State", "User", "Site", "Held#", "Due#", "Silence means consent at", "Contract, unit", "The user's reason"), Empty: "Nothing is disputed or waits for consent."}
	for _, c := range list {
		t.Rows = append(t.Rows, []cell{state(c.State), txt(name(c.User)), txt(name(c.Seller)), num(money(c.Held, c.Currency)), num(money(c.Due, c.Currency)), minute(c.Until), txt(short(string(c.Contract))).and(fmt.Sprintf("unit %d", c.Unit+1)), txt(words.OrDash(c.Why))})
	}
	return view{Title: "Disputes", On: bankEvents, Blocks: []block{{Table: t}, {Note: &note{Text: "The operator decides a dispute by:"}, Code: "ramp bank dispute settle CONTRACT UNIT AMOUNT"}}}, err
}

func (s bankPages) invitations(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Invitations, control.None{})
	t := &table{Caption: "Invitations", Heads: heads("Invitation", "State", "Used#", "Credit for each#", "Valid until"), Empty: "There is no invitation."}
	for _, i := range list {
		t.Rows = append(t.Rows, []cell{txt(i.ID), state(i.State), num(fmt.Sprintf("%d of %d", i.Used, i.Uses)), num(money(i.Credit, i.Currency)), minute(i.Expires)})
	}
	return view{Title: "Invitations", On: bankEvents, Blocks: []block{{Table: t}, {Note: &note{Text: "An invitation is a secret file, so the command makes it:"}, Code: "ramp bank invite --uses 10 --out invitation.ramp"}}}, err
}

// orderForm is the first step of an order that moves money.
func (s bankPages) orderForm(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Accounts, control.None{})
	if err != nil {
		return view{}, err
	}
	policies, err := ask(ctx, s.Server, control.Policies, control.None{})
	var names []string
	for _, a := range list {
		names = append(names, words.AccountWords(a.Account, a.Name))
	}
	var currencies []link
	for _, p := range policies.Policies {
		currencies = append(currencies, link{p.Currency, p.Currency})
	}
	common := []field{{Name: "amount", Label: "Amount", Hint: "credits, such as 12.50", Required: true}, {Name: "currency", Label: "Currency", Type: "select", Options: currencies}, {Name: "ref", Label: "Reason", Hint: "it stays in the books"}}
	credit := append([]field{hidden("what", "credit"), {Name: "to", Label: "Account", List: names, Required: true}}, common...)
	transfer := append([]field{hidden("what", "transfer"), {Name: "from", Label: "From account", List: names, Required: true}, {Name: "to", Label: "To account", Required: true, Hint: "a name of an account, or .issuer"}}, common...)
	return view{Title: "Credit or transfer", Blocks: []block{
		{Heading: "Credit an account", Form: &form{Action: "/order", Submit: "Continue…", Fields: credit}},
		{Heading: "Transfer between accounts", Form: &form{Action: "/order", Submit: "Continue…", Fields: transfer}},
	}}, err
}

// orderAgain is the second step: it shows the amount, and carries the key by which the
// ledger recognizes the order if it is sent twice.
func (s bankPages) orderAgain(_ context.Context, r *http.Request) (view, error) {
	f := r.PostForm
	amount, err := amountOf(f, "amount")
	if err != nil {
		return view{}, err
	}
	exact := amount.String() + " " + f.Get("currency") // it is what moves
	path, text := "/credit", fmt.Sprintf("Credit %s with %s?", f.Get("to"), exact)
	if f.Get("what") == "transfer" {
		path, text = "/transfer", fmt.Sprintf("Move %s from %s to %s?", exact, f.Get("from"), f.Get("to"))
	}
	fields := []field{hidden("key", "web."+secret())}
	for _, n := range []string{"from", "to", "amount", "currency", "ref"} {
		fields = append(fields, hidden(n, f.Get(n)))
	}
	return view{Title: "Confirm", Blocks: []block{{Note: &note{Text: text, Help: "Entries of the ledger are for ever; a mistake is mended by another entry."}, Facts: []fact{{"Amount", txt(exact)}, {"Reason", txt(words.OrDash(f.Get("ref")))}},
		Form: &form{Action: path, Submit: strings.TrimSuffix(text, "?"), Danger: true, Fields: fields}, Links: []link{{"Do nothing", "/order"}}}}}, nil
}

// orderOf reads the key and the amount of an order. It refuses one without its key, which could not
// be recognized if it came again.
func orderOf(form url.Values) (key string, amount protocol.Credits, err error) {
	key = form.Get("key")
	if !strings.HasPrefix(key, "web.") || len(key) > 64 {
		return "", 0, exit.Fail(exit.Usage, "begin again at 'Credit or transfer'", "the form has no key")
	}
	amount, err = amountOf(form, "amount")
	return key, amount, err
}

func (s bankPages) credit(ctx context.Context, form url.Values) (string, error) {
	key, amount, err := orderOf(form)
	if err != nil {
		return "", err
	}
	e, err := ask(ctx, s.Server, control.Credit, control.CreditCall{Account: form.Get("to"), Currency: form.Get("currency"), Amount: amount, Ref: form.Get("ref"), Key: key})
	return "/statement?account=" + url.QueryEscape(string(e.Account)), err
}

func (s bankPages) transfer(ctx context.Context, form url.Values) (string, error) {
	key, amount, err := orderOf(form)
	if err != nil {
		return "", err
	}
	_, err = ask(ctx, s.Server, control.Transfer, control.TransferCall{From: form.Get("from"), To: form.Get("to"), Currency: form.Get("currency"), Amount: amount, Ref: form.Get("ref"), Key: key})
	return "/entries", err
}
