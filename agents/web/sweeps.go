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

	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/protocol/message"
)

func (s userPages) sweeps(ctx context.Context, _ *http.Request) (view, error) {
	list, err := ask(ctx, s.Server, control.Sweeps, control.None{})
	t := &table{Caption: "Sweeps, the newest first", Heads: heads("Name", "State", "Tasks done#", "Spent#", "Budget#", "Expected finish", "Deadline"), Empty: "There is no sweep. 'ramp user sweep' runs a program over many parameters."}
	for _, v := range slices.Backward(list) {
		t.Rows = append(t.Rows, []cell{to(sweepPath(v.ID), cmp.Or(v.Name, v.ID)).and(short(v.ID)), state(v.State).and(cmp.Or(v.Waits, v.Why)), num(fmt.Sprintf("%d of %d", v.Tasks.Done, v.Tasks.Total)),
			num(money(v.Spent, v.Currency)), num(budgetOf(v)), minute(v.Predicted.Finish), minute(v.Deadline)})
	}
	return view{Title: "Sweeps", On: []string{control.EventRun, control.EventPurchase}, Blocks: []block{{Table: t}}}, err
}

func sweepPath(id string) string { return "/sweep/" + url.PathEscape(id) }

func budgetOf(v message.Sweep) string {
	if v.Budget == 0 {
		return "no limit"
	}
	return money(v.Budget, v.Currency)
}

func (s userPages) sweep(ctx context.Context, r *http.Request) (view, error) {
	q := control.IDCall{ID: r.PathValue("id")}
	v, err := ask(ctx, s.Server, control.SweepShow, q)
	if err != nil {
		return view{}, err
	}
	tasks, err := ask(ctx, s.Server, control.SweepTasks, q)
	if err != nil {
		return view{}, err
	}
	out := view{Title: "Sweep " + cmp.Or(v.Name, v.ID), On: []string{control.EventRun, control.EventPurchase}}
	out.Blocks = []block{{Status: fmt.Sprintf("State: %s. %d of %s done.", v.State, v.Tasks.Done, words.Plural(v.Tasks.Total, "task")), Facts: []fact{
		{"State", state(v.State).and(cmp.Or(v.Waits, v.Why))}, {"Spent", txt(money(v.Spent, v.Currency))}, {"Committed", txt(money(v.Committed, v.Currency))}, {"Budget", txt(budgetOf(v))},
		{"Expected finish", minute(v.Predicted.Finish)}, {"Deadline", minute(v.Deadline)}, {"Expected cost", txt(money(v.Predicted.Cost, v.Currency))}, {"Strategy", txt(v.Strategy)},
		{"Waiting", txt(words.Plural(v.Tasks.Waiting, "task"))}, {"Running", txt(words.Plural(v.Tasks.Running, "task"))}, {"Failed", txt(words.Plural(v.Tasks.Failed, "task"))},
	}}}
	for _, verb := range verbsOf(v) {
		out.Blocks = append(out.Blocks, block{Form: &form{Action: "/sweep/set", Submit: strings.TrimSuffix(words.Sentence(string(verb)), "."), Danger: verb == message.SweepKill, Fields: []field{hidden("id", v.ID), hidden("verb", string(verb))}}})
	}
	out.Blocks = append(out.Blocks, block{Table: sweepSites(v)}, block{Table: sweepTasks(tasks, v)})
	return out, nil
}

func verbsOf(v message.Sweep) (list []message.SweepVerb) {
	switch v.State {
	case "running", "short":
		list = append(list, message.SweepPause, message.SweepKill)
	case "paused":
		list = append(list, message.SweepResume, message.SweepKill)
	}
	if v.Tasks.Failed > 0 {
		list = append(list, message.SweepRetry)
	}
	return list
}

func sweepSites(v message.Sweep) *table {
	t := &table{Caption: "Sites of the sweep", Heads: heads("Site", "Price#", "Cost of a task#", "Rate#", "Done#", "Running#", "Failed#", "Spent#", "Left out")}
	for _, r := range v.Resources {
		rate := fmt.Sprintf("%.3g tasks per hour", r.RateHour)
		if !r.Measured {
			rate += ", estimated"
		}
		t.Rows = append(t.Rows, []cell{txt(r.Resource), num(perHour(r.Price, v.Currency)), num(money(r.CostTask, v.Currency)), num(rate), num(words.Plural(r.Done, "task")), num(words.Plural(r.Running, "task")),
			num(words.Plural(r.Failed, "task")), num(money(r.Spent, v.Currency)), txt(words.OrDash(r.LeftOut))})
	}
	return t
}

// maxTasks is how many tasks of a sweep a page shows.
const maxTasks = 500

func sweepTasks(tasks []message.SweepTask, v message.Sweep) *table {
	t := &table{Caption: "Tasks", Heads: heads("Task#", "Parameters", "State", "Exit#", "Attempts#", "Cost#", "Site")}
	if len(tasks) > maxTasks {
		t.Caption = fmt.Sprintf("The first %d of %d tasks; 'ramp user sweeps tasks %s' shows all", maxTasks, len(tasks), v.ID)
		tasks = tasks[:maxTasks]
	}
	for _, k := range tasks {
		var parameters []string
		for _, n := range slices.Sorted(maps.Keys(k.Parameters)) {
			parameters = append(parameters, n+"="+k.Parameters[n])
		}
		site := "-"
		if n := len(k.Attempts); n > 0 {
			site = k.Attempts[n-1].Resource
		}
		t.Rows = append(t.Rows, []cell{num(fmt.Sprint(k.Task)), txt(strings.Join(parameters, ", ")), state(k.State), num(exitWords(k.Exit)), num(words.Plural(len(k.Attempts), "attempt")), num(money(k.Cost, v.Currency)), txt(site)})
	}
	return t
}

func (s userPages) sweepSet(ctx context.Context, form url.Values) (string, error) {
	q := message.SweepSet{ID: form.Get("id"), Verb: message.SweepVerb(form.Get("verb"))}
	_, err := ask(ctx, s.Server, control.SweepSet, q)
	return sweepPath(q.ID), err
}
