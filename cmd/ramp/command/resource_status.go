package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/message"
)

func newResourceStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Print whether the agent sells, how its batch system is, and what is sold", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return showStatus(c, "/v1/status", struct{}{})
		},
	}
}

func newResourceDrain() *cobra.Command {
	var q drainCall
	c := &cobra.Command{
		Use: "drain", Short: "Stop selling until 'resume', also across restarts; sold slots are honoured", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(q.Why) > protocol.MaxName {
				return fail(exitUsage, "", "--why: %d bytes, want at most %d", len(q.Why), protocol.MaxName)
			}
			return showStatus(c, "/v1/drain", q)
		},
	}
	c.Flags().StringVar(&q.Why, "why", "", "a reason, which buyers are told too")
	return c
}

func newResourceResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume", Short: "Sell again after 'drain'", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return showStatus(c, "/v1/resume", struct{}{})
		},
	}
}

// showStatus makes a call that is answered by a status, and prints it.
func showStatus(c *cobra.Command, call string, body any) error {
	return askFleet(c, call, body, printStatus)
}

// drainCall stops the sales.
type drainCall struct {
	Why string `json:"why"`
}

func (r *resourceNode) status(ctx context.Context, _ struct{}) (message.ResourceStatus, error) {
	return r.act(ctx, func(time.Time, *resource.Role) protocol.Output { return protocol.Output{} })
}

func (r *resourceNode) drain(ctx context.Context, q drainCall) (message.ResourceStatus, error) {
	return r.act(ctx, func(now time.Time, role *resource.Role) protocol.Output { return role.Drain(now, q.Why) })
}

func (r *resourceNode) resume(ctx context.Context, _ struct{}) (message.ResourceStatus, error) {
	return r.act(ctx, func(_ time.Time, role *resource.Role) protocol.Output { return role.Resume() })
}

// act changes the role, and says how it stands once that is durable. An agent of
// this process alone is given a moment to hear of its batch system.
func (r *resourceNode) act(ctx context.Context, f func(now time.Time, role *resource.Role) protocol.Output) (message.ResourceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		var s message.ResourceStatus
		err := r.runner.Do(ctx, func(now time.Time, a agents.Role) protocol.Output {
			role := a.(*resource.Role)
			out := f(now, role)
			s = role.Status(now)
			return out
		})
		s.Queue.Driver = r.cfg.Resource.Driver
		if err != nil || r.mesh != nil || s.Queue.State != "unknown" {
			return s, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return s, nil
		}
	}
}

// printStatus prints a status for people.
func printStatus(w io.Writer, s message.ResourceStatus) {
	rows := [][]string{{"agent", string(s.Agent)}, {"sales", salesWords(s)}, {"batch system", queueWords(s.Queue)}}
	rows = append(rows, slotRows(s)...)
	for _, b := range s.Banks {
		rows = append(rows, []string{"bank", fmt.Sprintf("%s (%s): %s", b.Bank, b.Currency, bankWords(b, s.At))})
	}
	rows = append(rows, sharpenRows(s.Forecast)...)
	table(w, append(rows, learntRows(s.Forecast)...)...)
}

// learntRows are what was learnt of the jobs of each size.
func learntRows(f *message.ForecastStatus) [][]string {
	var rows [][]string
	if f == nil {
		return rows
	}
	for _, c := range f.Waits {
		switch {
		case c.Seen == 0:
		case c.Bound == nil:
			rows = append(rows, []string{"waits", fmt.Sprintf("%s cores: %s seen, too few to tell", c.Cores, plural(c.Seen, "job"))})
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

// heldWords says how often bounds that were told have held.
func heldWords(c message.WaitStatus) string {
	if c.Rate == nil {
		return fmt.Sprintf("of %s, no bound was told yet", plural(c.Seen, "job"))
	}
	return fmt.Sprintf("%d of %d bounds held, %.1f %%", c.Held, c.Told, 100**c.Rate)
}

func salesWords(s message.ResourceStatus) string {
	words := string(s.Sales)
	if !s.Since.IsZero() {
		words += " since " + secondTime(s.Since) + " UTC"
	}
	if s.Why != "" {
		words += ": " + s.Why
	}
	return words
}

func queueWords(q message.QueueStatus) string {
	words := fmt.Sprintf("%s, %s", q.Driver, q.State)
	if q.State != "unknown" {
		words += fmt.Sprintf(", %d of %d cores busy, %s run, %d wait", q.Busy, q.Capacity, plural(q.Running, "job"), q.Queued)
	}
	if !q.Told.IsZero() {
		words += ", told " + secondTime(q.Told) + " UTC"
	}
	return words
}

func slotRows(s message.ResourceStatus) [][]string {
	n := s.Slots
	sold := fmt.Sprintf("%d sold and not over, %d of them begun, %.1f core-hours", n.Sold, n.Begun, n.CoreHours)
	if !n.LastEnds.IsZero() {
		sold += ", the last ends " + secondTime(n.LastEnds) + " UTC"
	}
	rows := [][]string{{"slots", sold}, {"", fmt.Sprintf("%d held, %d in doubt, %d lost in the last day, %d to be refunded", n.Held, n.InDoubt, n.Broken, n.Owed)}}
	if n.Unknown > 0 {
		rows = append(rows, []string{"", fmt.Sprintf("%s with this agent's mark that its journal does not know", plural(n.Unknown, "reservation"))})
	}
	return rows
}

func bankWords(b message.BankStatus, now time.Time) string {
	switch {
	case b.Reachable == nil:
		return "not heard yet"
	case *b.Reachable && b.NotKept:
		return fmt.Sprintf("heard %s ago; it does not keep %s, so nothing is sold for that", now.Sub(b.Heard).Round(time.Second), b.Currency)
	case *b.Reachable:
		return fmt.Sprintf("heard %s ago", now.Sub(b.Heard).Round(time.Second))
	}
	return "silent since " + secondTime(b.Heard) + " UTC"
}
