package order

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// UnitRows are the units of a purchase as a table: only the columns that say something, so that
// it fits a terminal of 80 columns.
func UnitRows(p message.Purchase) [][]string {
	rows := [][]string{{"unit", "resource", "cores", "start (" + words.Zone() + ")", "end", "list price", "per core-hour", "cost", "state"}}
	usual := user.StateSettled
	if !p.Settled {
		usual = unitOffered
	}
	empty := []bool{len(p.Units) == 1, false, false, false, false, p.Settled, false, false, true}
	for _, u := range p.Units {
		rows = append(rows, []string{
			fmt.Sprint(u.Unit + 1), u.Resource, fmt.Sprint(u.Cores), words.ClockTime(u.Start), words.EndTime(u.Start, u.End),
			u.List.Cents(), u.Price.Cents(), u.Cost.Cents(), u.State,
		})
		empty[8] = empty[8] && u.State == usual
	}
	for i, row := range rows {
		rows[i] = nil
		for k, cell := range row {
			if !empty[k] {
				rows[i] = append(rows[i], cell)
			}
		}
	}
	return withOdds(rows, p.Units)
}

// unitOffered is the state of a unit that nobody has bought.
const unitOffered = "offered"

// withOdds adds a column with the probability that the seller's queue alone would start the unit
// by then, if any seller reports it.
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

// PrintReservations names the reservations of a purchase, as its sites know them.
func PrintReservations(w io.Writer, p message.Purchase) {
	var names []string
	for _, u := range p.Units {
		if u.Reservation != "" {
			names = append(names, u.Reservation)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "  reserved as %s\n", protocol.Harmless(strings.Join(names, ", ")))
	}
}

// BestLine prints the best price of each unit; many equal ones as "1.25 (8 units)".
func BestLine(best []*protocol.Credits) string {
	parts := words.Prices(best)
	if n := len(parts); n > 2 && len(slices.Compact(slices.Clone(parts))) == 1 {
		return fmt.Sprintf("%s (%d units)", parts[0], n)
	}
	return strings.Join(parts, " / ")
}
