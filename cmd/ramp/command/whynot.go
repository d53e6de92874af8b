package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// printWhyNot shows why a purchase got no offers, over all sellers, and what
// would help.
func printWhyNot(w io.Writer, p message.Purchase) {
	if rows := whyRows(p.Reasons, p.Deadline); len(rows) > 0 {
		fmt.Fprintf(w, "  %d of %d offer what was asked:\n", offering(p), p.Found)
		table(w, indented(append([][]string{{"sellers", "why not"}}, rows...))...)
	}
	for _, said := range p.Programs {
		fmt.Fprintln(w, "   ", said)
	}
	printCounters(w, p)
	if len(p.Relaxations) > 0 {
		fmt.Fprintln(w, "  what would help:")
		table(w, indented(append([][]string{{"offers", "change", "from"}}, helpRows(p)...))...)
	}
}

// offering is how many sellers offer what was asked.
func offering(p message.Purchase) int {
	n := p.Found
	for _, refuse := range p.Reasons {
		n -= refuse
	}
	return max(0, n)
}

// whyRows are the sellers that give each reason, the commonest first.
func whyRows(reasons map[string]int, deadline time.Time) [][]string {
	var rows [][]string
	for _, c := range commonest(reasons) {
		rows = append(rows, []string{fmt.Sprint(reasons[c]), codeWords(protocol.Code(c), reasons[c] == 1, deadline)})
	}
	return rows
}

// commonest are the codes by how often they were said; equal ones by name.
func commonest(reasons map[string]int) []string {
	codes := make([]string, 0, len(reasons))
	for c := range reasons {
		codes = append(codes, c)
	}
	slices.SortFunc(codes, func(x, y string) int { return cmp.Or(reasons[y]-reasons[x], cmp.Compare(x, y)) })
	return codes
}

// helpRows are the changes that would get offers.
func helpRows(p message.Purchase) [][]string {
	var rows [][]string
	for _, r := range p.Relaxations {
		from := "-"
		if r.From > 0 {
			from = r.From.String()
		}
		rows = append(rows, []string{fmt.Sprint(r.Offers), r.Change, from})
	}
	return rows
}

// indented sets a table off from the lines above it.
func indented(rows [][]string) [][]string {
	for i := range rows {
		rows[i][0] = "  " + rows[i][0]
	}
	return rows
}
