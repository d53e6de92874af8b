package command

import (
	"fmt"
	"io"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// printEnds shows what became of a settled purchase's money: paid at once, or held
// until each job has ended.
func printEnds(w io.Writer, p message.Purchase) {
	if p.Mode == "" || p.Mode == protocol.ModeOnReservation {
		fmt.Fprintf(w, "  contract %s, paid at %s\n", p.Contract, p.Bank.Name())
		if p.RefundTotal > 0 {
			fmt.Fprintf(w, "  refunded %s %s\n", p.RefundTotal, p.Currency)
		}
		return
	}
	var paid, held protocol.Credits
	for _, u := range p.Units {
		if u.How == "" && u.State != "cancelled" {
			held += u.Cost // units of one bundle: their sum is its total
		}
		paid += u.Paid
		if line := endLine(u); line != "" {
			fmt.Fprintf(w, "  unit %d: %s\n", u.Unit+1, line)
		}
	}
	fmt.Fprintf(w, "  contract %s, %s at %s: %s paid, %s held, %s free again\n", p.Contract, p.Mode, p.Bank.Name(), paid, held, p.RefundTotal)
}

// endLine is what a unit's job used, and how it ended.
func endLine(u message.PurchasedUnit) string {
	line := ""
	if u.Usage != nil {
		line = fmt.Sprintf("used %s of core time in %s%s, %s due; ", u.Usage.CPU, u.Usage.Wall, measuredWords(u.Measured), u.Due)
		if u.Guarantee != nil {
			line += guaranteeWords(*u.Guarantee) + "; "
		}
	}
	switch {
	case u.How != "":
		return line + fmt.Sprintf("%s: %s paid of %s", endWords(u), u.Paid, u.Cost)
	case u.Dispute != "":
		return line + "disputed: " + u.Dispute + unheardWords(u)
	case user.Waits(u):
		return line + "waits for your word: 'ramp user agree' or 'ramp user dispute'"
	case line != "":
		return line + "countersigned" + unheardWords(u)
	}
	return ""
}

// unheardWords say that a word on a usage record is still on its way.
func unheardWords(u message.PurchasedUnit) string {
	if u.Word == "" {
		return ""
	}
	return "; the bank has not answered yet, and is told again"
}

// guaranteeWords say how a seller has kept its promise.
func guaranteeWords(g protocol.Guarantee) string {
	cores := func(micro int64) string { return protocol.Credits(micro).String() } // both are millionths
	promised := fmt.Sprintf("promised %s cores", cores(g.Promised))
	had := "never fewer than " + cores(g.Had) + " were there"
	if g.Of == protocol.GuaranteesRate {
		had = cores(g.Had) + " used"
	}
	switch {
	case g.Kept:
		return promised + ", kept: " + had
	case g.Of == protocol.GuaranteesRate:
		return fmt.Sprintf("%s, MISSED BY %s if the program was always ready to run: %s", promised, cores(g.Missed()), had)
	}
	return fmt.Sprintf("%s, BROKEN BY %s: at the least %s were there", promised, cores(g.Missed()), cores(g.Had))
}

// measuredWords say what a usage rests on, where its seller launched no program.
func measuredWords(m protocol.Measured) string {
	switch m {
	case protocol.MeasuredAccounting:
		return " (as the accounting of the seller's cluster says)"
	case protocol.MeasuredJobs:
		return " (the cores of the jobs that ran in the slot)"
	case protocol.MeasuredSlot:
		return " (the whole slot: its seller knows of no job in it)"
	}
	return ""
}

// paidWords is what a settled purchase has cost, and what is still held for it.
func paidWords(p message.Purchase) string {
	var held protocol.Credits
	for _, u := range p.Units {
		if p.Mode != "" && p.Mode != protocol.ModeOnReservation && u.How == "" && u.State != "cancelled" {
			held += u.Cost
		}
	}
	words := (p.Total - p.RefundTotal - held).String() + " " + p.Currency
	if held > 0 {
		words += fmt.Sprintf(" (%s held)", held)
	}
	return words
}
