package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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

func (s userPages) jobs(ctx context.Context, r *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Jobs, listCall(r))
	t := &table{
		Caption: "Jobs of federations, the newest first", Heads: heads("Name", "State", "Priority", "Offered", "Modules#", "Site"),
		Empty: "No job was offered to a federation. 'ramp submit --level NAME' offers one.", More: older("/jobs", list, func(v control.JobView) string { return v.ID }),
	}
	for _, v := range slices.Backward(list) {
		t.Rows = append(t.Rows, []cell{to("/job/"+url.PathEscape(v.ID), cmp.Or(v.Name, v.ID)).and(short(v.ID)), state(string(v.State)).and(v.Why), txt(v.Level), moment(v.Created), num(modulesOf(v.Modules)), txt(name(v.Site))})
	}
	return view{Title: "Federation", Every: true, Blocks: []block{{Table: t}}}, err
}

func modulesOf(m control.JobModules) string {
	text := fmt.Sprintf("%d to %s", m.Least, words.Plural(m.Most, "module"))
	if m.Least == m.Most {
		text = words.Plural(m.Most, "module")
	}
	if m.Got > 0 {
		text = fmt.Sprintf("%d of %s", m.Got, text)
	}
	return text
}

func seconds(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.1f s", s)
	}
	return span(time.Duration(s * float64(time.Second)))
}

func (s userPages) job(ctx context.Context, r *http.Request) (view, error) {
	v, err := ask(ctx, s.Server, control.JobShow, control.IDCall{ID: r.PathValue("id")})
	if err != nil {
		return view{}, err
	}
	ran := txt(seconds(v.Ran)) // its home hears of it when the job stops
	if v.State == message.JobRunning {
		ran = ran.and("until it last began")
	}
	facts := []fact{{"State", state(string(v.State)).and(v.Why)}, {"Priority", txt(v.Level)}, {"Modules", txt(modulesOf(v.Modules))}, {"Home", txt(name(v.Home))}, {"Site", txt(name(v.Site))},
		{"Ran", ran}, {"Suspended", txt(seconds(v.Suspended))}, {"Displaced", txt(words.Plural(v.Preempted, "time"))}}
	if v.State.Over() {
		facts = append(facts, fact{"From its offer to its end", txt(seconds(v.Processing))}, fact{"Exit code", txt(fmt.Sprint(v.Exit))})
	}
	if v.Refused != "" {
		facts = append(facts, fact{"Why it was refused", txt(words.ReasonOf(v.Refused, true, time.Time{}))})
	}
	out := view{Title: "Job " + cmp.Or(v.Name, v.ID), Every: !v.State.Over(), Blocks: []block{{Status: "State: " + string(v.State) + ".", Facts: facts, Links: []link{{"All jobs", "/jobs"}}}}}
	for _, a := range v.Auctions {
		out.Blocks = append(out.Blocks, block{Heading: fmt.Sprintf("Auction %d", a.N), Table: jobAuction(a)})
	}
	if len(v.Auctions) == 0 {
		out.Blocks = append(out.Blocks, block{Note: &note{Text: "Its home has told of no auction yet."}})
	}
	return out, nil
}

// jobAuction has a row for each bid, the highest first.
func jobAuction(a control.JobAuction) *table {
	t := &table{Caption: fmt.Sprintf("Bids within %s, the highest first; the least that wins is %.3g modules", seconds(a.Ta), a.Minimum),
		Heads: heads("Site", "Bid#", "Free#", "Displaces", "Transfer of input#", "Came", "Result"), Empty: "No site has bid."}
	bids := slices.SortedStableFunc(slices.Values(a.Bids), func(x, y control.JobBidView) int { return cmp.Compare(y.Bid, x.Bid) })
	for _, b := range bids {
		result := txt("-")
		switch {
		case b.Site == a.Winner:
			result = cell{Text: "won", State: "good"}
		case slices.Contains(a.Refused, b.Site):
			result = cell{Text: "did not take it", State: "bad"}
		}
		t.Rows = append(t.Rows, []cell{txt(name(b.Site)), num(fmt.Sprintf("%.3g modules", b.Bid)), num(words.Plural(b.Free, "module")), txt(victimWords(b.Victims)), num(seconds(b.Transfer)), moment(b.At), result})
	}
	return t
}

func victimWords(list []message.Victims) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, fmt.Sprintf("%s of priority %d", words.Plural(v.Modules, "module"), v.Level))
	}
	return words.OrDash(strings.Join(parts, ", "))
}

func (s sitePages) queue(ctx context.Context, _ *http.Request) (view, error) {
	v := view{Title: "Federation", Every: true, On: siteEvents}
	q, err := ask(ctx, s.Server, control.FederationQueue, control.None{})
	if code, hint := exit.Of(err); err != nil && code == exit.Usage {
		v.Blocks = []block{{Note: &note{Text: words.Sentence(err.Error()), Help: "To join one, " + hint + " in config.yaml; docs/FEDERATION.md explains it."}}}
		return v, nil
	}
	if err != nil {
		return v, err
	}
	t := &table{Caption: "Jobs here, the most urgent first", Heads: heads("Job", "Priority", "State", "Modules#", "Owner", "Home", "Ran#", "Suspended#", "Displaced#"), Empty: "No job of the federation is here."}
	for _, j := range q.Jobs {
		t.Rows = append(t.Rows, []cell{txt(short(j.ID)), txt(j.Level), state(string(j.State)), num(modulesOf(j.Modules)), txt(name(j.Owner)), txt(name(j.Home)),
			num(seconds(j.Ran)), num(seconds(j.Suspended)), num(words.Plural(j.Preempted, "time"))})
	}
	m := &table{Caption: "Members of the federation", Heads: heads("Site", "Rules"), Empty: "The rules name no member."}
	for _, id := range slices.Sorted(maps.Keys(q.Members)) {
		c := state(q.Members[id])
		c.State = map[string]string{"same": "good", "mismatch": "bad"}[q.Members[id]]
		m.Rows = append(m.Rows, []cell{txt(name(protocol.AgentID(id))).and(id), c})
	}
	v.Blocks = []block{{Status: words.Plural(len(q.Jobs), "job") + " here.", Facts: []fact{{"Cores of the federation", txt(words.Plural(q.Modules, "module")).and(q.Shortage)}, {"Bids in", txt(words.Plural(q.Auction, "auction"))}, {"Rules file (SHA-256)", txt(short(q.Rules))}}},
		{Table: t}, {Table: m}}
	return v, nil
}
