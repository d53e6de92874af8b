package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

type sitePages struct{ *Server }

func (s sitePages) routes(mux *http.ServeMux) {
	s.nav = []navItem{{"Status", "/"}, {"Calendar", "/calendar"}, {"Reservations", "/reservations"}, {"Decisions", "/decisions"}, {"Check a request", "/check"}, {"Federation", "/queue"}, {"Money", "/money"}}
	s.page(mux, "/{$}", s.siteStatus)
	s.page(mux, "/calendar", s.calendar)
	s.page(mux, "/reservations", s.reservations)
	s.page(mux, "/decisions", s.siteDecisions)
	s.page(mux, "/check", s.check)
	s.part(mux, "/check", s.checked)
	s.page(mux, "/money", s.ownMoney)
	s.page(mux, "/queue", s.queue)
	s.page(mux, "/drain", s.drainForm)
	s.act(mux, "/drain", s.drain)
	s.act(mux, "/resume", func(ctx context.Context, _ url.Values) (string, error) {
		return "/", tell(ctx, s.Server, control.Resume, control.None{})
	})
}

// siteEvents change what a site shows.
var siteEvents = []string{control.EventDecision, control.EventReservation}

func (s sitePages) siteStatus(ctx context.Context, _ *http.Request) (view, error) {
	a, err := ask(ctx, s.Server, control.Status, control.None{})
	if err != nil {
		return view{}, err
	}
	dry, err := ask(ctx, s.Server, control.DryRun, control.None{})
	if err != nil {
		return view{}, err
	}
	v := view{Title: "Status", On: siteEvents, Blocks: []block{{Status: "Sales: " + string(a.Sales) + ".", Facts: siteFacts(a)}}}
	if a.Sales == message.SalesDrained {
		v.Blocks = append(v.Blocks, block{Note: &note{Kind: "bad", Text: words.Sentence(cmp.Or(a.Why, "nothing is sold"))}, Form: &form{Action: "/resume", Submit: "Sell again", Fields: []field{hidden("yes", "1")}}})
	} else {
		v.Blocks = append(v.Blocks, block{Links: []link{{"Stop selling (drain)…", "/drain"}}})
	}
	t := &table{Caption: "Offers to typical requests now; prices per core-hour", Heads: heads("Request", "Cores#", "Wall time#", "Offer", "Price#")}
	for _, o := range dry.Offers {
		t.Rows = append(t.Rows, append([]cell{txt(o.Request), num(words.Plural(o.Cores, "core")), num(span(time.Duration(o.Wall) * time.Minute))}, offerCells(o.Line)...))
	}
	v.Blocks = append(v.Blocks, block{Heading: "Prices", Note: &note{Text: "The list price is " + perHour(dry.Price, "") + "."}, Table: t})
	return v, nil
}

func siteFacts(a message.ResourceStatus) []fact {
	q := a.Queue
	use := "unknown"
	if q.Capacity > 0 {
		use = fmt.Sprintf("%d of %d cores (%.0f %%)", q.Busy, q.Capacity, 100*float64(q.Busy)/float64(q.Capacity))
	}
	list := []fact{
		{"Sales", state(string(a.Sales)).and(a.Why)}, {"In use now", txt(use)}, {"Batch system", state(q.State).and(q.Driver + " " + q.Why)},
		{"Jobs", txt(fmt.Sprintf("%d running, %d waiting", q.Running, q.Queued))},
		{"Held", txt(words.Plural(a.Slots.Held, "slot"))}, {"In doubt", txt(words.Plural(a.Slots.InDoubt, "slot"))}, {"Sold", txt(words.Plural(a.Slots.Sold, "slot")).and(fmt.Sprintf("%d begun; %.1f core-hours", a.Slots.Begun, a.Slots.CoreHours))},
		{"Broken in a day", txt(words.Plural(a.Slots.Broken, "slot"))}, {"Next slot", minute(a.Slots.Next)}, {"Last slot ends", minute(a.Slots.LastEnds)},
	}
	for _, b := range a.Banks {
		reach := state("unknown")
		if b.Reachable != nil && *b.Reachable {
			reach = state("up")
		} else if b.Reachable != nil {
			reach = state("down")
		}
		list = append(list, fact{"Bank for " + b.Currency, reach.and(name(b.Bank))})
	}
	return list
}

// offerCells are an offer and its price, or the reason for a refusal.
func offerCells(l message.QuoteLine) []cell {
	switch {
	case l.Offer != nil && len(l.Offer.Items) > 0:
		i := l.Offer.Items[0]
		return []cell{slot(i.Slot.Start, i.Slot.End).and(words.Plural(i.Slot.Cores, "core")), num(perHour(i.Price, ""))}
	case l.Reason != nil:
		return []cell{{Text: reasonWords(*l.Reason, l.Slot.End), State: "bad"}, num("-")}
	}
	return []cell{txt("-"), num("-")}
}

// reasonWords are the reason of a refusal with its figures.
func reasonWords(r protocol.Reason, deadline time.Time) string {
	text := words.ReasonOf(r.Code, true, deadline)
	if deadline.IsZero() {
		text = strings.TrimSuffix(text, " before "+words.AtMinute(deadline))
	}
	if r.Want != "" || r.Have != "" {
		text += fmt.Sprintf(" (asked %s, has %s)", words.OrDash(r.Want), words.OrDash(r.Have))
	}
	if r.Asks > 0 {
		text += "; would sell from " + perHour(r.Asks, "")
	}
	if !r.Start.IsZero() {
		text += "; earliest start " + words.AtMinute(r.Start)
	}
	if r.Free > 0 {
		text += "; at most " + words.Plural(r.Free, "core") + " free"
	}
	if r.Note != "" {
		text += ": " + r.Note
	}
	return text
}

func (s sitePages) calendar(ctx context.Context, r *http.Request) (view, error) {
	hours, err := intOf(r.URL.Query(), "hours", 0)
	if err != nil {
		return view{}, err
	}
	hours = cmp.Or(hours, control.DefaultCalendarHours)
	bins, err := ask(ctx, s.Server, control.Calendar, control.CalendarCall{Hours: hours})
	t := &table{Caption: "Cores over the next " + words.Plural(hours, "hour"), Heads: heads("From", "To", "Free#", "Held#", "Sold#", "Local jobs#", "All#")}
	var columns []column
	for i, b := range bins {
		t.Rows = append(t.Rows, []cell{minute(b.Start), txt(words.EndTime(b.Start, b.End)), num(cores(b.Free)), num(cores(b.Held)), num(cores(b.Sold)), num(cores(b.Other)), num(cores(b.Capacity))})
		c := column{Name: words.ClockTime(b.Start), Values: []float64{float64(b.Sold), float64(b.Held), float64(b.Other), float64(b.Free)}}
		if i%(max(1, len(bins)/6)) == 0 {
			c.Mark = words.ClockTime(b.Start)
		}
		columns = append(columns, c)
	}
	kinds := []series{{"c1", "sold"}, {"c2", "held"}, {"c3", "local jobs"}, {"c4", "free"}}
	links := []link{}
	for _, h := range []int{6, 24, 72, 336} {
		links = append(links, link{words.Plural(h, "hour"), fmt.Sprintf("/calendar?hours=%d", h)})
	}
	return view{Title: "Calendar", On: siteEvents, Blocks: []block{{Links: links, Chart: stacked("Free, held, sold and local cores over time; the table below has the numbers", "in cores", kinds, columns), Table: t}}}, err
}

func cores(n int) string { return words.Plural(n, "core") }

func (s sitePages) reservations(ctx context.Context, r *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Reservations, listCall(r))
	t := &table{Caption: "Reservations, the newest first", Heads: heads("State", "Buyer", "Cores#", "Slot", "Price#", "Cost#", "Held until", "Reservation"),
		Empty: "Nothing was reserved yet.", More: older("/reservations", list, func(l message.ReservationLine) string { return l.ID })}
	for _, l := range slices.Backward(list) {
		t.Rows = append(t.Rows, []cell{state(l.State).and(l.Why), txt(name(l.User)), num(cores(l.Slot.Cores)), slot(l.Slot.Start, l.Slot.End), num(perHour(l.Price, "")), num(l.Cost.Cents() + " credits"), minute(l.HoldUntil), txt(l.ID)})
	}
	return view{Title: "Reservations", On: siteEvents, Blocks: []block{{Table: t}}}, err
}

// siteDecisions counts the last decisions by reason, and shows the latest ones.
func (s sitePages) siteDecisions(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Offers, control.LastCall{})
	offered, reasons := 0, map[string]int{}
	for _, l := range list {
		switch {
		case l.Reason != nil:
			reasons[string(l.Reason.Code)]++
		case l.Offer != nil:
			offered++
		}
	}
	count := &table{Caption: fmt.Sprintf("The last %s, by reason", words.Plural(len(list), "decision")), Heads: heads("Decisions#", "What the site did, or why it did not offer")}
	if offered > 0 {
		count.Rows = append(count.Rows, []cell{num(words.Plural(offered, "decision")), {Text: "offered", State: "good"}})
	}
	for _, code := range words.Commonest(reasons) {
		count.Rows = append(count.Rows, []cell{num(words.Plural(reasons[code], "decision")), txt("refused: the site " + strings.TrimSuffix(words.ReasonOf(protocol.Code(code), true, time.Time{}), " before "+words.AtMinute(time.Time{})))})
	}
	latest := &table{Caption: "The latest, the newest first; prices per core-hour", Heads: heads("Time", "Buyer", "Round#", "Cores#", "Offer, or why not", "Price#"), Empty: "Nobody has asked yet."}
	for _, l := range slices.Backward(list[max(0, len(list)-pageRows):]) {
		latest.Rows = append(latest.Rows, append([]cell{moment(l.At), txt(name(l.Buyer)), num(fmt.Sprint(l.Round)), num(cores(l.Cores))}, offerCells(l)...))
	}
	return view{Title: "Decisions", On: siteEvents, Blocks: []block{{Table: count}, {Table: latest}}}, err
}

func (s sitePages) check(context.Context, *http.Request) (view, error) {
	f := &form{Action: "/check", Submit: "What would be offered?", Into: "answer"}
	for _, in := range inputs {
		f.Fields = append(f.Fields, field{Name: string(in.word), Label: in.label, Hint: in.hint})
	}
	f.Fields = append(f.Fields, field{Name: "document", Label: "Or an RFQL document", Type: "area", Hint: "it replaces the fields above"})
	return view{Title: "Check a request", Blocks: []block{{Note: &note{Text: "This asks the site what it would offer. Nothing is sold or held."}}, {Form: f}, {Part: "answer"}}}, nil
}

func (s sitePages) checked(ctx context.Context, r *http.Request) (view, error) {
	c := s.read(r.PostForm)
	if err := c.err(); err != nil {
		return view{}, err
	}
	lines, err := ask(ctx, s.Server, control.Check, control.CheckCall{Document: string(c.doc.XML()), Rounds: 3})
	t := &table{Caption: "What the site would offer; prices per core-hour", Heads: heads("Round#", "Unit#", "Cores#", "Offer, or why not", "Price#")}
	for _, l := range lines {
		t.Rows = append(t.Rows, append([]cell{num(fmt.Sprint(l.Round)), num(fmt.Sprint(l.Unit + 1)), num(cores(l.Cores))}, offerCells(l)...))
	}
	return view{Title: "What would be offered", Part: r.Header.Get("HX-Request") != "", Blocks: []block{{Table: t}}}, err
}

// drainForm is the second step of a drain: it shows what it means.
func (s sitePages) drainForm(ctx context.Context, _ *http.Request) (view, error) {
	a, err := ask(ctx, s.Server, control.Status, control.None{})
	return view{Title: "Stop selling", Blocks: []block{{
		Note:  &note{Kind: "bad", Text: fmt.Sprintf("The site sells nothing until it is resumed, even after a restart. %s sold and %s held: they are honoured.", words.Plural(a.Slots.Sold, "slot"), words.Plural(a.Slots.Held, "slot"))},
		Form:  &form{Action: "/drain", Submit: "Stop selling", Danger: true, Fields: []field{{Name: "why", Label: "Reason", Hint: "buyers see it; at most 128 bytes"}}},
		Links: []link{{"Go on selling", "/"}},
	}}}, err
}

func (s sitePages) drain(ctx context.Context, form url.Values) (string, error) {
	why := form.Get("why")
	if len(why) > protocol.MaxName {
		return "", exit.Fail(exit.Usage, "go back and shorten it; nothing was done", "the reason has %d bytes: want at most %d", len(why), protocol.MaxName)
	}
	return "/", tell(ctx, s.Server, control.Drain, control.DrainCall{Why: why})
}
