package order

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Modules reads N, or LEAST..MOST: the modules that a job of a federation can use.
func Modules(text string) (least, most int, err error) {
	a, b, several := strings.Cut(text, "..")
	if !several {
		b = a
	}
	least, e1 := strconv.Atoi(a)
	most, e2 := strconv.Atoi(b)
	if e1 != nil || e2 != nil || least < 1 || most < least || most > message.MaxModules {
		return 0, 0, fmt.Errorf("%q: want N, or LEAST..MOST such as 2..4, from 1 to %d", protocol.Clip(text), message.MaxModules)
	}
	return least, most, nil
}

// WriteJob shows a job of a federation to a person, with the program's table.
func WriteJob(w io.Writer, v control.JobView, table func(w io.Writer, rows ...[]string)) {
	ran := fmt.Sprintf("%.1f s", v.Ran)
	if v.State == message.JobRunning { // its home hears of it when the job stops
		ran += " until it last began"
	}
	table(w,
		[]string{"job", v.ID}, []string{"level", v.Level}, []string{"state", stateWords(v)}, []string{"home", v.Home.Name()},
		[]string{"modules", fmt.Sprintf("%d..%d, got %d", v.Modules.Least, v.Modules.Most, v.Modules.Got)},
		[]string{"suspended", fmt.Sprintf("%s, %.1f s", words.Plural(v.Preempted, "time"), v.Suspended)}, []string{"ran", ran})
	for _, a := range v.Auctions {
		fmt.Fprintf(w, "\nauction %d, %.1f s (mean run %.1f s)\n", a.N, a.Ta, a.Mean)
		rows := [][]string{{"  AT", "SITE", "BID", "FREE", "DISPLACES", "TRANSFER", ""}}
		for _, b := range a.Bids {
			won := ""
			if b.Site == a.Winner {
				won = "wins"
			}
			rows = append(rows, []string{"  " + b.At.Local().Format("15:04:05.000"), b.Site.Name(), fmt.Sprintf("%.3f", b.Bid), strconv.Itoa(b.Free), victimWords(b.Victims), fmt.Sprintf("%.1f s", b.Transfer), won})
		}
		if table(w, rows...); len(a.Bids) == 0 {
			fmt.Fprintln(w, "  no site has bid")
		}
		for _, s := range a.Refused {
			fmt.Fprintf(w, "  %s won and did not take it\n", s.Name())
		}
	}
}

func stateWords(v control.JobView) string {
	s := string(v.State)
	if v.Site != "" {
		s += " at " + v.Site.Name()
	}
	if v.State == message.JobDone {
		s += fmt.Sprintf(", exit code %d", v.Exit)
	}
	if v.Why != "" {
		s += ": " + v.Why
	}
	if v.Heard.IsZero() {
		s += ", before its home has answered"
	} else if !v.State.Over() && unheard(v) {
		s += ", when its home was last heard: " + words.At(v.Heard)
	}
	return s
}

// Unsold tells why no site has a job of a federation yet; empty: it has ended, or some have bid.
func Unsold(v control.JobView) string {
	switch {
	case v.State.Over() || v.Site != "":
	case v.Heard.IsZero():
		return v.Home.Name() + " has not answered yet"
	case unheard(v):
		return v.Home.Name() + " does not answer; it was last heard at " + words.At(v.Heard)
	case len(v.Auctions) > 0 && !slices.ContainsFunc(v.Auctions, func(a control.JobAuction) bool { return len(a.Bids) > 0 }):
		return fmt.Sprintf("no site has bid for %s of level %s yet; the job stays on offer", words.Plural(v.Modules.Least, "module"), v.Level)
	}
	return ""
}

// unheard reports whether the home of a job is away.
func unheard(v control.JobView) bool { return time.Since(v.Heard) > 30*time.Second }

func victimWords(list []message.Victims) string {
	if len(list) == 0 {
		return "-"
	}
	var parts []string
	for _, v := range list {
		parts = append(parts, fmt.Sprintf("%d of level %d", v.Modules, v.Level))
	}
	return strings.Join(parts, ", ")
}

// WriteQueue shows the jobs of a federation at a site to a person, with the program's table.
func WriteQueue(w io.Writer, q control.SiteQueue, table func(w io.Writer, rows ...[]string)) {
	used := 0
	rows := [][]string{{"JOB", "LEVEL", "STATE", "MODULES", "HOME", "OWNER", "SUSPENDED"}}
	for _, j := range q.Jobs {
		if j.State == "running" {
			used += j.Modules.Got
		}
		rows = append(rows, []string{j.ID, j.Level, string(j.State), fmt.Sprintf("%d (%d..%d)", j.Modules.Got, j.Modules.Least, j.Modules.Most), j.Home.Name(), j.Owner.Name(), fmt.Sprintf("%d×", j.Preempted)})
	}
	if q.Rules != "" { // else the site has left it
		fmt.Fprintf(w, "%d of %s in use, bidding in %s\n", used, words.Plural(q.Modules, "module"), words.Plural(q.Auction, "auction"))
	}
	if q.Shortage != "" {
		fmt.Fprintln(w, "federation:", q.Shortage)
	}
	if len(q.Jobs) > 0 {
		table(w, rows...)
	}
	for _, m := range slices.Sorted(maps.Keys(q.Members)) {
		if q.Members[m] == "mismatch" {
			fmt.Fprintf(w, "mismatch: %s has other rules; it gets no bids from here\n", protocol.AgentID(m).Name())
		}
	}
}
