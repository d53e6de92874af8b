// Package cli holds what all commands share: tables, progress, exit codes, the flags of a
// request, help, completion, and the way a command reaches an agent.
package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// ShowLine prints a result: as JSON, or as a sentence.
func ShowLine(c *cobra.Command, v any, format string, args ...any) error {
	return Show(c, v, func(w io.Writer) { fmt.Fprintf(w, format+"\n", args...) })
}

// Show prints a result: as JSON, or as people prints it.
func Show(c *cobra.Command, v any, people func(w io.Writer)) error {
	if WantsJSON(c) {
		return PrintJSON(Stdout(c), v)
	}
	people(Stdout(c))
	return nil
}

// ShowTable prints a result: as JSON, or as a table.
func ShowTable(c *cobra.Command, v any, rows [][]string) error {
	return Show(c, v, func(w io.Writer) { Table(w, rows...) })
}

// oneOrAll is a list, or its only element, as JSON shows the answers of one or several agents.
func oneOrAll[T any](list []T) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// ReasonsLine counts the reasons of refusals: "12 ask more, 5 are too small".
func ReasonsLine(reasons map[string]int, deadline time.Time) string {
	codes := words.Commonest(reasons)
	parts := make([]string, len(codes))
	for i, c := range codes {
		parts[i] = fmt.Sprintf("%d %s", reasons[c], words.ReasonOf(protocol.Code(c), reasons[c] == 1, deadline))
	}
	return strings.Join(parts, ", ")
}

// PrintPurchase prints one purchase for people.
func PrintPurchase(w io.Writer, p message.Purchase) {
	name := p.ID
	switch {
	case p.RFQ != "" && protocol.IsQuote(p.ID): // no command takes the ID of a quote
		name = p.RFQ
	case p.RFQ != "":
		name = p.RFQ + " (" + p.ID + ")"
	}
	fmt.Fprintf(w, "%s: %s\n", name, stateWords(w, StandsAs(p)))
	for _, r := range p.Rounds {
		fmt.Fprintf(w, "  round %d: best %s, %d of %d offer, %d refuse (%s)\n", r.Round, order.BestLine(r.Best), r.Offers, p.Found, r.Refusals, spent(r.MS))
	}
	if len(p.Units) > 0 {
		Table(w, order.UnitRows(p)...)
		fmt.Fprintf(w, "  total %s %s\n", p.Total.Cents(), p.Currency)
	}
	order.PrintReservations(w, p)
	printWhen(w, p, time.Now())
	for _, s := range whySentences(p) {
		fmt.Fprintln(w, "  "+words.ForPeople(s))
	}
	printAgain(w, p)
	if !p.Settled {
		printWhyNot(w, p)
	}
	if p.Settled {
		order.PrintEnds(w, p)
	}
}

// printAgain names the purchase whose lost unit this one replaces, and those that replace its
// own lost units.
func printAgain(w io.Writer, p message.Purchase) {
	if p.Replaces != "" {
		fmt.Fprintf(w, "  replaces a lost unit of %s\n", p.Replaces)
	}
	for _, u := range p.Units {
		if u.Again != "" {
			fmt.Fprintf(w, "  unit %d was lost and bought again: ramp user show %s\n", u.Unit+1, u.Again)
		}
	}
}

// PurchaseCode is the exit code of a finished purchase.
func PurchaseCode(p message.Purchase, quote bool) int {
	switch {
	case p.Settled, quote && p.State == "quoted" && len(p.Violations) == 0:
		return exit.Done
	case slices.Contains([]protocol.Code{protocol.CodeFunds, protocol.CodeAccount, protocol.CodeForbidden, protocol.CodeFrozen, protocol.CodeMode}, cmp.Or(p.Void, p.Refused)):
		return exit.Refused
	case p.Found == 0:
		return exit.Unreachable
	}
	return exit.Nothing
}

// Stdout is the standard output of a command.
func Stdout(c *cobra.Command) io.Writer { return c.OutOrStdout() }

// Stderr is the standard error of a command.
func Stderr(c *cobra.Command) io.Writer { return c.ErrOrStderr() }

// WantsJSON reports whether --json was given.
func WantsJSON(c *cobra.Command) bool {
	j, err := c.Flags().GetBool("json")
	return err == nil && j
}

// PrintJSON writes v as one indented JSON value.
func PrintJSON(w io.Writer, v any) error { return words.PrintJSON(w, v, "  ") }

// WarnTime is how long a command that is done waits for answers on which it may warn.
const WarnTime = 2 * time.Second
