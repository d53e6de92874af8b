package command

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/message"
)

// clockTime prints an instant for people, in UTC to the minute.
func clockTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("Jan 2 15:04")
}

// secondTime prints an instant for people, in UTC to the second.
func secondTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("Jan 2 15:04:05")
}

// cent is what is shown of a credit in purchases; JSON has all of it.
const cent = protocol.Credit / 100

// money prints an amount for people: to the cent, unless it is below a credit.
func money(c protocol.Credits) string {
	if c < protocol.Credit {
		return c.String()
	}
	return ((c + cent/2) / cent * cent).String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// unitRows are the units of a purchase as a table.
func unitRows(p message.Purchase) [][]string {
	rows := [][]string{{"unit", "resource", "cores", "start (UTC)", "end", "per core-hour", "cost", "state", "reservation"}}
	for _, u := range p.Units {
		rows = append(rows, []string{
			fmt.Sprint(u.Unit + 1), u.Resource, fmt.Sprint(u.Cores), clockTime(u.Start), clockTime(u.End),
			money(u.Price), money(u.Cost), u.State, orDash(u.Reservation),
		})
	}
	return withOdds(rows, p.Units)
}

// withOdds adds how likely each seller's queue alone would have started the unit by
// then, if any of them says so.
func withOdds(rows [][]string, units []message.PurchasedUnit) [][]string {
	if !slices.ContainsFunc(units, func(u message.PurchasedUnit) bool { return u.Queued != 0 }) {
		return rows
	}
	rows[0] = append(rows[0], "by its queue")
	for i, u := range units {
		rows[i+1] = append(rows[i+1], u.Queued.String())
	}
	return rows
}

// reasonsLine sums refusals in words: "12 busy, 5 price".
func reasonsLine(reasons map[string]int, deadline time.Time) string {
	codes := commonest(reasons)
	parts := make([]string, len(codes))
	for i, c := range codes {
		parts[i] = fmt.Sprintf("%d %s", reasons[c], codeWords(protocol.Code(c), reasons[c] == 1, deadline))
	}
	return strings.Join(parts, ", ")
}

// codeWords says a refusal code in words, of one seller or of several.
func codeWords(c protocol.Code, one bool, deadline time.Time) string {
	verb := func(several, single string) string {
		if one {
			return single
		}
		return several
	}
	switch c {
	case protocol.CodeSize:
		return verb("are too small", "is too small")
	case protocol.CodeBusy:
		return verb("lack", "lacks") + " the cores before " + clockTime(deadline)
	case protocol.CodePrice:
		return verb("ask", "asks") + " more"
	case protocol.CodeNoBank:
		return verb("share", "shares") + " no bank"
	case protocol.CodeProgram:
		return verb("do not run", "does not run") + " that program"
	case protocol.CodeDraining:
		return verb("sell", "sells") + " nothing now"
	case protocol.CodeUnavailable:
		return "cannot sell now"
	case protocol.CodeSilent:
		return "did not answer"
	case protocol.CodeCeiling:
		return "bid, but not below the best price"
	case protocol.CodeLimit:
		return "will not promise so much"
	case protocol.CodeLate:
		return "would start later than you wait"
	case protocol.CodeWindow:
		return verb("do not plan", "does not plan") + " that window"
	case protocol.CodeOS, protocol.CodeOSVersion, protocol.CodeArchitecture, protocol.CodeCPUSpeed, protocol.CodeRAM, protocol.CodeDisk, protocol.CodeBandwidth:
		return verb("fail", "fails") + " on " + string(c)
	}
	return verb("say ", "says ") + string(c)
}

// bestLine prints the best price of each unit.
func bestLine(best []*protocol.Credits) string {
	parts := make([]string, len(best))
	for i, b := range best {
		parts[i] = "-"
		if b != nil {
			parts[i] = money(*b)
		}
	}
	return strings.Join(parts, " / ")
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printPurchase shows one purchase to a person.
func printPurchase(w io.Writer, p message.Purchase) {
	name := p.ID
	if p.RFQ != "" {
		name = p.RFQ + " (" + p.ID + ")"
	}
	fmt.Fprintf(w, "%s: %s\n", name, stateWords(w, standsAs(p)))
	for _, r := range p.Rounds {
		fmt.Fprintf(w, "  round %d: best %s, %d of %d offer, %d refuse (%s)\n", r.Round, bestLine(r.Best), r.Offers, p.Found, r.Refusals, spent(r.MS))
	}
	if len(p.Units) > 0 {
		wholeTable(w, unitRows(p)...)
		fmt.Fprintf(w, "  total %s %s\n", money(p.Total), p.Currency)
	}
	printWhen(w, p, time.Now())
	for _, v := range p.Violations {
		fmt.Fprintln(w, "  breaks:", v)
	}
	if p.Why != "" {
		fmt.Fprintln(w, "  why:", p.Why)
	}
	printAgain(w, p)
	if !p.Settled {
		printWhyNot(w, p)
	}
	if p.Settled {
		printEnds(w, p)
	}
}

// printAgain names the purchases before and after one of which a site has lost a
// unit.
func printAgain(w io.Writer, p message.Purchase) {
	if p.Replaces != "" {
		fmt.Fprintf(w, "  in the place of a lost unit of %s\n", p.Replaces)
	}
	for _, u := range p.Units {
		if u.Again != "" {
			fmt.Fprintf(w, "  unit %d is bought again: ramp user show %s\n", u.Unit+1, u.Again)
		}
	}
}

// purchaseCode is the exit code of a purchase that is over.
func purchaseCode(p message.Purchase, quote bool) int {
	switch {
	case p.Settled, quote && p.State == "quoted":
		return exitDone
	case slices.Contains([]protocol.Code{protocol.CodeFunds, protocol.CodeAccount, protocol.CodeForbidden, protocol.CodeFrozen, protocol.CodeMode}, p.Void):
		return exitRefused
	case p.Found == 0:
		return exitUnreachable
	}
	return exitNothing
}

// stdout and stderr of a command.
func stdout(c *cobra.Command) io.Writer { return c.OutOrStdout() }
func stderr(c *cobra.Command) io.Writer { return c.ErrOrStderr() }
