package resource

import (
	"fmt"
	"io"

	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func printDryRun(w io.Writer, a control.DryRunAnswer) {
	rows := [][]string{{"request", "cores", "wall", "within", "busy", "start (" + words.Zone() + ")", "answer"}}
	for _, o := range a.Offers {
		start := "-"
		if o.Line.Offer != nil {
			start = words.ClockTime(o.Line.Slot.Start)
		}
		rows = append(rows, []string{o.Request, fmt.Sprint(o.Cores), hoursWords(o.Wall), hoursWords(o.Within), busyWords(o.Line), start, quoteWords(o.Line)})
	}
	cli.Table(w, rows...)
	fmt.Fprintf(w, "for buyers who pay at most the list price, %s per core-hour\n", a.Price.Cents())
	fmt.Fprintf(w, "a sold slot will be %s\n", a.Hold.What)
	switch {
	case !a.Hold.OK:
		fmt.Fprintf(w, "which the batch system cannot create: %s\n", a.Hold.Why)
	case a.Hold.Why != "":
		fmt.Fprintf(w, "%s\n", a.Hold.Why)
	}
	if a.Sales != message.SalesOpen {
		fmt.Fprintf(w, "sales are %s: %s\n", a.Sales, a.Why)
	}
}

func hoursWords(minutes int) string { return fmt.Sprintf("%d h", minutes/60) }
