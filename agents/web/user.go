package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ramp/agents/control"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol/message"
)

// pageRows is how many rows a list has on a page.
const pageRows = 50

type userPages struct{ *Server }

func (s userPages) routes(mux *http.ServeMux) {
	s.nav = []navItem{{"Purchases", "/"}, {"New request", "/compose"}, {"Programs", "/runs"}, {"Sweeps", "/sweeps"}, {"Federation", "/jobs"}, {"Money", "/money"}, {"Sites", "/sites"}}
	s.page(mux, "/{$}", s.purchases)
	s.page(mux, "/purchase/{id}", s.purchase)
	s.page(mux, "/purchase/{id}/trace", s.trace)
	mux.HandleFunc("GET /purchase/{id}/receipt.zip", s.receipt)
	s.act(mux, "/approve", s.approve)
	s.act(mux, "/cancel", s.cancel)
	s.act(mux, "/usage", s.usage)
	s.page(mux, "/compose", s.compose)
	s.part(mux, "/compose/check", s.composeCheck)
	s.part(mux, "/quote", s.quote)
	mux.HandleFunc("POST "+buyPath, s.buy)
	s.act(mux, "/relax", s.relax)
	s.page(mux, "/runs", s.runs)
	s.page(mux, "/run/{id}", s.run)
	mux.HandleFunc("GET /run/{id}/{unit}/output", s.runOutput)
	mux.HandleFunc("GET /run/{id}/{unit}/live", s.runLive)
	mux.HandleFunc("GET /run/{id}/{unit}/file", s.runFile)
	mux.HandleFunc("GET /run/{id}/{unit}/files.zip", s.runFiles)
	s.act(mux, "/run/control", s.runControl)
	s.page(mux, "/sweeps", s.sweeps)
	s.page(mux, "/sweep/{id}", s.sweep)
	s.act(mux, "/sweep/set", s.sweepSet)
	s.page(mux, "/jobs", s.jobs)
	s.page(mux, "/job/{id}", s.job)
	s.page(mux, "/money", s.userMoney)
	s.page(mux, "/sites", s.sites)
}

// listCall reads which part of a list a page shows.
func listCall(r *http.Request) control.LastCall {
	return control.LastCall{Limit: pageRows, Before: r.URL.Query().Get("before")}
}

// older is the address of the next page of a list, oldest first, if there may be one.
func older[T any](path string, list []T, id func(T) string) string {
	if len(list) < pageRows {
		return ""
	}
	return path + "?before=" + url.QueryEscape(id(list[0]))
}

func (s userPages) purchases(ctx context.Context, r *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Purchases, listCall(r))
	t := &table{
		Caption: "Purchases, the newest first", Heads: heads("Name", "State", "Ordered", "Slot", "Cores#", "Total#", "Sites"),
		Empty: "Nothing was bought yet. “New request” asks the market.", More: older("/", list, func(p message.Purchase) string { return p.ID }),
	}
	for _, p := range slices.Backward(list) {
		t.Rows = append(t.Rows, purchaseRow(p))
	}
	return view{Title: "Purchases", On: []string{control.EventPurchase}, Blocks: []block{{Table: t}}}, err
}

func purchaseRow(p message.Purchase) []cell {
	cores, when, sites := "-", txt("-"), "-"
	if len(p.Units) > 0 && p.State != user.StateFailed {
		n, first := 0, p.Units[0]
		var names []string
		for _, u := range p.Units {
			n += u.Cores
			names = append(names, u.Resource)
		}
		names = slices.Compact(names)
		if cores, when, sites = words.Plural(n, "core"), slot(first.Start, first.End), names[0]; len(names) > 1 {
			sites += ", " + words.Plural(len(names)-1, "other")
		}
	}
	total := "-"
	if p.Total > 0 && p.State != user.StateFailed {
		total = money(p.Total, p.Currency)
	}
	return []cell{to(purchasePath(p.ID), words.OrDash(p.RFQ)).and(short(p.ID)), stateOf(p), moment(p.Created), when, num(cores), num(total), txt(sites)}
}

func purchasePath(id string) string { return "/purchase/" + url.PathEscape(id) }

// stateOf is the state of a purchase with the reason, if it bought nothing, or nothing yet.
func stateOf(p message.Purchase) cell {
	c := state(p.State)
	switch {
	case p.Waits != "":
		c = c.and("the bank has not decided yet: " + p.Waits)
	case !p.Settled && p.Why != "":
		c = c.and(p.Why)
	}
	return c
}

func (s userPages) approve(ctx context.Context, form url.Values) (string, error) {
	q := control.IDCall{ID: form.Get("id"), Yes: form.Get("yes") == "1"}
	err := tell(ctx, s.Server, control.Approve, q)
	if err != nil && q.Yes {
		if p, gone := ask(ctx, s.Server, control.Purchase, q); gone == nil && (p.Settled || slices.Contains([]string{user.StateVoting, user.StateConfirming, user.StateDeciding, user.StateVoid}, p.State)) {
			err = nil // the form was sent before
		}
	}
	return purchasePath(q.ID), err
}

// cancel asks the sellers to take a purchase back. It goes on when the page has its first answer.
func (s userPages) cancel(ctx context.Context, form url.Values) (string, error) {
	q := control.IDCall{ID: form.Get("id")}
	return purchasePath(q.ID), follow(ctx, s.Server, control.Cancel, q, func(control.ProgressLine) bool { return true })
}

func (s userPages) usage(ctx context.Context, form url.Values) (string, error) {
	unit, err := intOf(form, "unit", 0)
	if err != nil {
		return "", err
	}
	q := control.UsageCall{ID: form.Get("id"), Unit: unit, Record: form.Get("record"), Agree: form.Get("agree") == "1", Why: form.Get("why")}
	return purchasePath(q.ID), tell(ctx, s.Server, control.Usage, q)
}

// currencyOfSite is what a site's prices are in; of several, any.
func currencyOfSite(l control.ResourceLine) string {
	if len(l.Terms) == 1 {
		return l.Terms[0].Currency
	}
	return ""
}

func (s userPages) sites(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Resources, control.None{})
	t := &table{Caption: "Sites that the agent knows, with their list prices", Heads: heads("Site", "Cores#", "List price#", "Least price#", "System", "Memory per core#", "Missed promises#"), Empty: "No site is known yet. 'ramp doctor' finds the cause."}
	for _, l := range list {
		t.Rows = append(t.Rows, []cell{txt(l.Name).and(string(l.ID)), num(words.Plural(l.Cores, "core")), num(perHour(l.Start, currencyOfSite(l))), num(perHour(l.Min, currencyOfSite(l))),
			txt(words.OrDash(strings.Join(strings.Fields(l.Props.OS+" "+l.Props.OSVersion+" "+l.Props.Arch), " "))), num(memory(l.Props.RAMPerCore)), num(words.Plural(l.Failures, "time"))})
	}
	return view{Title: "Sites", On: []string{control.EventPurchase}, Blocks: []block{{Table: t}}}, err
}
