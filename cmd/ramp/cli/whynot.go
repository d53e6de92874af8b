package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/doctor"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// printCounters shows the contracts that sellers would accept instead.
func printCounters(w io.Writer, p message.Purchase) {
	if len(p.Counters) == 0 {
		return
	}
	fmt.Fprintln(w, "  counter-offers that sellers would accept now:")
	rows := [][]string{{"unit", "resource", "would accept", "per core-hour", "cores", "start (" + words.Zone() + ")"}}
	for _, o := range p.Counters {
		rows = append(rows, []string{fmt.Sprint(o.Unit + 1), o.Resource, o.Change, o.Price.Cents(), fmt.Sprint(o.Cores), words.ClockTime(o.Start)})
	}
	Table(w, indented(rows)...)
}

// printWhyNot shows why sites made no offer, and what would help.
func printWhyNot(w io.Writer, p message.Purchase) {
	if rows := whyRows(p.Reasons, p.Deadline); len(rows) > 0 {
		fmt.Fprintln(w, "  "+canWords(p))
		Table(w, indented(rows)...)
	}
	for _, note := range p.Programs {
		fmt.Fprintln(w, "   ", note)
	}
	printCounters(w, p)
	if len(p.Relaxations) > 0 {
		fmt.Fprintln(w, "  what would help:")
	}
	for _, help := range HelpWords(p) {
		fmt.Fprintln(w, "    "+help)
	}
}

// HelpWords are the changes to a request that would get offers.
func HelpWords(p message.Purchase) (list []string) {
	for _, r := range p.Relaxations {
		list = append(list, helpWords(r))
	}
	return list
}

// whySentences explain why nothing was bought, and how far the nearest offers are from the request.
func whySentences(p message.Purchase) []string {
	var list []string
	if len(p.Violations) > 0 {
		nearest := "Cheapest: "
		if slices.ContainsFunc(p.Units, func(u message.PurchasedUnit) bool { return u.End.After(p.Deadline) }) {
			nearest = "Nearest offer: "
		}
		list = append(list, nearest+strings.Join(p.Violations, "; ")+".")
		if p.Why == user.WhyUnmet {
			list[0] += " Not bought."
		}
	}
	if p.Waits != "" {
		list = append(list, words.Sentence(waitsWords(p)))
	}
	switch {
	case p.Why == "", p.Why == user.WhyUnmet && len(list) > 0:
	case p.Settled:
		list = append(list, p.Why)
	default:
		list = append(list, words.Sentence(p.Why))
	}
	return list
}

// canWords introduce the reasons of the sites that cannot run a request.
func canWords(p message.Purchase) string {
	switch can := Offering(p); {
	case can > 0:
		return fmt.Sprintf("%d of %s can do it; the other %d:", can, words.Plural(p.Found, "site"), p.Found-can)
	case p.Found == 1:
		return "the only site refuses:"
	}
	return fmt.Sprintf("all %d sites refuse:", p.Found)
}

// Offering is the number of sellers that offer what was asked for.
func Offering(p message.Purchase) int {
	n := p.Found
	for _, refuse := range p.Reasons {
		n -= refuse
	}
	return max(0, n)
}

// whyRows are the reasons with the number of sellers that gave them, the most common first.
func whyRows(reasons map[string]int, deadline time.Time) [][]string {
	var rows [][]string
	for _, c := range words.Commonest(reasons) {
		rows = append(rows, []string{fmt.Sprint(reasons[c]), words.ReasonOf(protocol.Code(c), reasons[c] == 1, deadline)})
	}
	return rows
}

// helpWords describe a change to the request, and the number of sites that would then offer.
func helpWords(r message.Relaxation) string {
	unit, change, several := strings.Cut(r.Change, ": ")
	if unit += ": "; !several {
		unit, change = "", r.Change
	}
	switch {
	case r.Later == 0 && r.Cores == 0:
		change = "raise --max-price to " + r.Price.String()
	case r.Later == 0 && r.Price == 0:
		change = "ask for " + words.Plural(r.Cores, "core")
	}
	change = unit + change + ": " + words.Plural(r.Offers, "site")
	if r.From > 0 {
		change += ", from " + r.From.Cents() + " per core-hour"
	}
	return change
}

// indented indents a table below the line above it.
func indented(rows [][]string) [][]string {
	for i := range rows {
		rows[i][0] = "  " + rows[i][0]
	}
	return rows
}

// WarnClock warns if a wrong clock may be the reason that nothing was bought. An agent that
// does not answer in time is not asked again.
func WarnClock(c *cobra.Command, agent *control.Client) {
	ctx, cancel := context.WithTimeout(c.Context(), WarnTime)
	defer cancel()
	if s, err := doctor.AskClocksOf(ctx, agent); err == nil && s.WrongHere() {
		fmt.Fprintf(Stderr(c), "warning: %s: %s%s\n", s.Words(), doctor.ClockHelp, protocol.ClockSkew)
	}
}
