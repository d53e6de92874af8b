package resource

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
)

func newResourceStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether the agent sells, its batch system and its slots", Args: cobra.NoArgs, GroupID: "sales",
		Long: `Show whether the agent sells, and if not, why and since when; the state of its batch system; how
many slots are held, in doubt, sold and started; who held slots and did not buy them; and which
banks it can reach. Sales pause while the batch system cannot be reached or has not answered for
ten minutes, or while no bank is reachable. Slots that are sold stay sold.`,
		Example: "  ramp resource status",
		RunE: func(c *cobra.Command, _ []string) error {
			return showStatus(c, control.Status, struct{}{})
		},
	}
}

func newResourceDrain() *cobra.Command {
	var q control.DrainCall
	c := &cobra.Command{
		Use: "drain", Short: "Stop selling until 'resume'", Args: cobra.NoArgs, GroupID: "pause",
		Long: `Stop selling until 'ramp resource resume', even across restarts. Sold slots are honoured, and
held ones may still be bought. It prints the status: once 'sold' is 0, the machine is free.`,
		Example: "  ramp resource drain --why 'new cooling'",
		RunE: func(c *cobra.Command, _ []string) error {
			if len(q.Why) > protocol.MaxName {
				return exit.Fail(exit.Usage, "", "--why has %d bytes: want at most %d", len(q.Why), protocol.MaxName)
			}
			return showStatus(c, control.Drain, q)
		},
	}
	c.Flags().StringVar(&q.Why, "why", "", "a reason, which buyers see too; at most 128 bytes (default: that of an earlier 'drain')")
	return c
}

func newResourceResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume", Short: "Sell again after 'drain'", Args: cobra.NoArgs, GroupID: "pause",
		Long: "Sell again after 'ramp resource drain', and print the status.", Example: "  ramp resource resume",
		RunE: func(c *cobra.Command, _ []string) error {
			return showStatus(c, control.Resume, struct{}{})
		},
	}
}

// showStatus makes a call whose answer is the agent's status, and prints it.
func showStatus[Q any](c *cobra.Command, call control.Endpoint[Q, message.ResourceStatus], q Q) error {
	return cli.AskFleet(c, call, q, printStatus)
}

func printStatus(w io.Writer, s message.ResourceStatus) {
	rows := append([][]string{{"agent", string(s.Agent)}, {"sales", salesWords(s)}, {"batch system", queueWords(s.Queue)}}, slotRows(s)...)
	for _, u := range s.Unbought {
		rows = append(rows, []string{"not bought", fmt.Sprintf("%s held %.1f core-hours for a minute; vouchers from %.1f on", u.Buyer, u.CoreHours, u.Allowance)})
	}
	for _, b := range s.Banks {
		rows = append(rows, []string{"bank", fmt.Sprintf("%s (%s): %s", b.Bank, b.Currency, bankWords(b, s.At))})
	}
	if s.Federation != "" {
		rows = append(rows, []string{"federation", s.Federation})
	}
	rows = append(rows, overbookRows(s.Forecast)...)
	cli.Table(w, append(rows, learntRows(s.Forecast)...)...)
}

// learntRows show the waits that were learnt from jobs, by their size.
func learntRows(f *message.ForecastStatus) [][]string {
	var rows [][]string
	if f == nil {
		return rows
	}
	for _, c := range f.Waits {
		switch {
		case c.Seen == 0:
		case c.Bound == nil:
			rows = append(rows, []string{"waits", fmt.Sprintf("%s cores: %s seen, too few for a forecast", c.Cores, words.Plural(c.Seen, "job"))})
		default:
			rows = append(rows, []string{"waits", fmt.Sprintf("%s cores: 95 of 100 within %s, half within %s, %s within an hour; %s",
				c.Cores, secondsWords(*c.Bound), secondsWords(*c.Median), shareWords(c.Hour), heldWords(c))})
		}
	}
	return rows
}

func secondsWords(n int64) string { return (time.Duration(n) * time.Second).String() }

func shareWords(p *float64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100**p)
}

// heldWords say how often predicted bounds held.
func heldWords(c message.WaitStatus) string {
	if c.Rate == nil {
		return fmt.Sprintf("%s seen, none with a predicted bound", words.Plural(c.Seen, "job"))
	}
	return fmt.Sprintf("%d of %d bounds held, %.1f %%", c.Held, c.Told, 100**c.Rate)
}

func salesWords(s message.ResourceStatus) string {
	text := string(s.Sales)
	if !s.Since.IsZero() {
		text += " since " + words.At(s.Since)
	}
	switch {
	case s.Why != "":
		text += ": " + s.Why
	case s.Sales == message.SalesOpen && s.Queue.State == "up" && s.Queue.Capacity == 0:
		text += ", but no node can run a job"
	}
	return text
}

func queueWords(q message.QueueStatus) string {
	text := fmt.Sprintf("%s, %s", q.Driver, q.State)
	if q.State != "unknown" {
		text += fmt.Sprintf(", %d of %d cores busy, %s running, %d waiting", q.Busy, q.Capacity, words.Plural(q.Running, "job"), q.Queued)
	}
	if !q.Told.IsZero() {
		text += ", as of " + words.At(q.Told)
	}
	return text
}

func slotRows(s message.ResourceStatus) [][]string {
	n := s.Slots
	sold := fmt.Sprintf("%d sold and not over, %d of them running, %.1f core-hours", n.Sold, n.Begun, n.CoreHours)
	if !n.LastEnds.IsZero() {
		sold += ", the last ends " + words.At(n.LastEnds)
	}
	rows := [][]string{{"slots", sold}, {"", fmt.Sprintf("%d held, %d in doubt, %d lost in the last day, %d to be refunded", n.Held, n.InDoubt, n.Broken, n.Owed)}}
	if n.Unknown > 0 {
		rows = append(rows, []string{"", fmt.Sprintf("%s with this agent's mark that its journal lacks", words.Plural(n.Unknown, "reservation"))})
	}
	return rows
}

func bankWords(b message.BankStatus, now time.Time) string {
	switch {
	case b.Reachable == nil:
		return "no answer yet"
	case *b.Reachable && b.NotKept:
		return fmt.Sprintf("last answer %s ago; it has no accounts in %s, so nothing is sold for that", max(0, now.Sub(b.Heard)).Round(time.Second), b.Currency)
	case *b.Reachable:
		return fmt.Sprintf("last answer %s ago", max(0, now.Sub(b.Heard)).Round(time.Second))
	}
	return "silent since " + words.At(b.Heard)
}

// overbookRows show how a site that sells over running jobs keeps its promises.
func overbookRows(f *message.ForecastStatus) [][]string {
	if f == nil || f.Overbook == nil {
		return nil
	}
	s := f.Overbook
	words := "slots are sold over jobs that are expected to end early"
	if !s.Selling {
		words = fmt.Sprintf("stopped: more than %d of 1,000 promises were broken; it resumes by itself as others are kept", s.BoundPerMille)
	}
	return [][]string{
		{"overbooked", words},
		{"promises", fmt.Sprintf("%d broken of the last %d, %s; %d sold over jobs, %d of these broken",
			s.Broken, s.Ended, rateWords(s.Rate), s.Overbooked, s.OverbookedBroken)},
	}
}

func rateWords(r *float64) string {
	if r == nil {
		return "none has begun yet"
	}
	return fmt.Sprintf("%.1f %%", 100**r)
}
