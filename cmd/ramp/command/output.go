package command

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ramp/protocol"
	"ramp/protocol/message"
)

// table prints rows in aligned columns, numbers and words alike to the left.
func table(w io.Writer, rows ...[]string) {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(tw, "  "+strings.Join(r, "\t"))
	}
	tw.Flush()
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool { return terminalWidth(w) > 0 }

// defaultWidth is how many letters fit on a line of a terminal that does not say.
const defaultWidth = 80

// terminalWidth is how many letters fit on a line of a terminal; zero: w is none.
func terminalWidth(w any) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0
	case size.Col == 0:
		return defaultWidth
	}
	return int(size.Col)
}

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
			u.Price.String(), u.Cost.String(), u.State, orDash(u.Reservation),
		})
	}
	return rows
}

// reasonsLine sums refusals in words: "12 busy, 5 price".
func reasonsLine(reasons map[string]int, deadline time.Time) string {
	codes := make([]string, 0, len(reasons))
	for c := range reasons {
		codes = append(codes, c)
	}
	sort.Slice(codes, func(i, j int) bool {
		if reasons[codes[i]] != reasons[codes[j]] {
			return reasons[codes[i]] > reasons[codes[j]]
		}
		return codes[i] < codes[j]
	})
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
	case protocol.CodeSilent:
		return "did not answer"
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
			parts[i] = b.String()
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
	fmt.Fprintf(w, "%s: %s\n", name, p.State)
	for _, r := range p.Rounds {
		fmt.Fprintf(w, "  round %d: best %s, %d of %d offer, %d refuse (%.1f ms)\n", r.Round, bestLine(r.Best), r.Offers, p.Found, r.Refusals, r.MS)
	}
	if len(p.Units) > 0 {
		table(w, unitRows(p)...)
		fmt.Fprintf(w, "  total %s %s\n", p.Total, p.Currency)
	}
	for _, v := range p.Violations {
		fmt.Fprintln(w, "  breaks:", v)
	}
	if p.Why != "" {
		fmt.Fprintln(w, "  why:", p.Why)
	}
	if line := reasonsLine(p.Reasons, p.Deadline); line != "" && !p.Settled {
		offering := p.Found
		for _, n := range p.Reasons {
			offering -= n
		}
		fmt.Fprintf(w, "  %d of %d offer what was asked: %s\n", max(0, offering), p.Found, line)
	}
	for _, a := range p.Advice {
		fmt.Fprintln(w, "  advice:", a)
	}
	if p.Settled {
		fmt.Fprintf(w, "  contract %s, paid at %s\n", p.Contract, p.Bank.Name())
	}
}

// purchaseCode is the exit code of a purchase that is over.
func purchaseCode(p message.Purchase, quote bool) int {
	switch {
	case p.Settled, quote && p.State == "quoted":
		return exitDone
	case p.Void == protocol.CodeFunds, p.Void == protocol.CodeAccount, p.Void == protocol.CodeForbidden:
		return exitRefused
	case p.Found == 0:
		return exitUnreachable
	}
	return exitNothing
}

// stdout and stderr of a command.
func stdout(c *cobra.Command) io.Writer { return c.OutOrStdout() }
func stderr(c *cobra.Command) io.Writer { return c.ErrOrStderr() }
