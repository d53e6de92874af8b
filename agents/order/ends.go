package order

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// PrintEnds shows where a settled purchase's money is: paid at once, or held until each job
// has ended.
func PrintEnds(w io.Writer, p message.Purchase) {
	if p.Mode == "" || p.Mode == protocol.ModeOnReservation {
		fmt.Fprintf(w, "  contract %s, paid at %s\n", p.Contract, p.Bank.Name())
		if p.RefundTotal > 0 {
			fmt.Fprintf(w, "  refunded %s %s\n", p.RefundTotal.Cents(), p.Currency)
		}
		return
	}
	var paid, held protocol.Credits
	for _, u := range p.Units {
		if u.How == "" && u.State != "cancelled" {
			held += u.Cost // no overflow: the units' costs sum to the bundle's total
		}
		paid += u.Paid
		if line := EndLine(u); line != "" {
			fmt.Fprintf(w, "  unit %d: %s\n", u.Unit+1, line)
		}
	}
	fmt.Fprintf(w, "  contract %s, %s at %s: %s paid, %s held, %s released\n", p.Contract, p.Mode, p.Bank.Name(), paid.Cents(), held.Cents(), p.RefundTotal.Cents())
}

// EndLine describes what a unit's job used, and how it ended.
func EndLine(u message.PurchasedUnit) string {
	line := ""
	if u.Usage != nil {
		line = fmt.Sprintf("used %s of core time in %s%s, %s due; ", u.Usage.CPU.Round(1e6), u.Usage.Wall.Round(1e6), measuredWords(u.Measured), u.Due.Cents())
		if u.Guarantee != nil {
			line += GuaranteeWords(*u.Guarantee) + "; "
		}
	}
	switch {
	case u.How != "":
		return line + fmt.Sprintf("%s: %s paid of %s", EndWords(u), u.Paid.Cents(), u.Cost.Cents())
	case u.Dispute != "":
		return line + "disputed: " + u.Dispute + unheardWords(u)
	case user.Waits(u):
		return line + "waiting for you: 'ramp user agree' or 'ramp user dispute'"
	case line != "":
		return line + "countersigned" + unheardWords(u)
	}
	return ""
}

// EndWords describe how a unit ended, with the bank's word for it if that differs.
func EndWords(u message.PurchasedUnit) string {
	if u.How == "" || string(u.How) == u.State {
		return u.State
	}
	return fmt.Sprintf("%s (%s)", u.State, u.How)
}

// unheardWords are appended while the bank has not answered the user's word on a usage record.
func unheardWords(u message.PurchasedUnit) string {
	if u.Word == "" {
		return ""
	}
	return "; the bank has not answered yet and will be asked again"
}

// GuaranteeWords describe whether a seller met its guarantee.
func GuaranteeWords(g protocol.Guarantee) string {
	cores := func(micro int64) string { return protocol.Credits(micro).String() } // both are millionths
	promised := fmt.Sprintf("promised %s cores", cores(g.Promised))
	had := "at least " + cores(g.Had) + " at all times"
	if g.Of == protocol.GuaranteesRate {
		had = cores(g.Had) + " used"
	}
	switch {
	case g.Kept:
		return promised + ", met: " + had
	case g.Of == protocol.GuaranteesRate:
		return fmt.Sprintf("%s, MISSED BY %s if the program was always ready to run: %s", promised, cores(g.Missed()), had)
	}
	return fmt.Sprintf("%s, MISSED BY %s: %s at the lowest", promised, cores(g.Missed()), cores(g.Had))
}

// measuredWords describe how the usage was measured if the seller did not launch the program.
func measuredWords(m protocol.Measured) string {
	return map[protocol.Measured]string{
		protocol.MeasuredAccounting: " (from the accounting of the seller's cluster)",
		protocol.MeasuredJobs:       " (the cores of the jobs that ran in the slot)",
		protocol.MeasuredSlot:       " (the whole slot: the seller knows of no job in it)",
	}[m]
}

// BoughtWords are where a purchase is, and what it costs.
func BoughtWords(p message.Purchase) string {
	var sites []string
	for _, u := range p.Units {
		if !slices.Contains(sites, u.Resource) {
			sites = append(sites, u.Resource)
		}
	}
	most := ""
	if p.Mode == protocol.ModeMetered {
		most = "at most "
	}
	return fmt.Sprintf("bought on %s for %s%s %s", protocol.Harmless(strings.Join(sites, ", ")), most, (p.Total - p.RefundTotal).Cents(), p.Currency)
}

// PaidWords are the cost of a settled purchase so far, and what is still held for it.
func PaidWords(p message.Purchase) string {
	var held protocol.Credits
	for _, u := range p.Units {
		if p.Mode != "" && p.Mode != protocol.ModeOnReservation && u.How == "" && u.State != "cancelled" {
			held += u.Cost
		}
	}
	words := (p.Total - p.RefundTotal - held).Cents() + " " + p.Currency
	if held > 0 {
		words += fmt.Sprintf(" (%s held)", held.Cents())
	}
	return words
}
