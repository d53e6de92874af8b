package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/queue"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// dryRunAnswer is what an agent would offer to typical requests.
type dryRunAnswer struct {
	Price  protocol.Credits `json:"price_core_hour"` // what these buyers pay at most
	Hold   holdAnswer       `json:"hold"`
	Sales  message.Sales    `json:"sales"`
	Why    string           `json:"why,omitempty"` // nothing is sold now
	Offers []typicalAnswer  `json:"offers"`
}

// holdAnswer is what a sold slot would be in the batch system.
type holdAnswer struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`            // it can be made
	Why  string `json:"why,omitempty"` // not, or what it does not promise
}

// typicalAnswer is what would be said to one typical request.
type typicalAnswer struct {
	Request string            `json:"request"`
	Cores   int               `json:"cores"`
	Wall    int               `json:"wall_minutes"`
	Within  int               `json:"within_minutes"` // it may start and must end
	Line    message.QuoteLine `json:"answer"`
}

// typicals are what buyers often ask of a machine: cores as a share of it, or of
// a node.
func typicals(cores, node int) []typicalAnswer {
	if node < 1 || node > cores {
		node = cores
	}
	const hour, day = 60, 24 * 60
	list := []typicalAnswer{
		{Request: "one core", Cores: 1, Wall: hour, Within: 6 * hour},
		{Request: "one node", Cores: node, Wall: 4 * hour, Within: day},
		{Request: "a quarter of the machine", Cores: max(1, cores/4), Wall: hour, Within: day},
		{Request: "half of the machine", Cores: max(1, cores/2), Wall: 12 * hour, Within: 3 * day},
		{Request: "the whole machine", Cores: cores, Wall: hour, Within: 7 * day},
	}
	return slices.CompactFunc(list, func(a, b typicalAnswer) bool { return a.Cores == b.Cores && a.Wall == b.Wall && a.Within == b.Within })
}

// document asks for it as a buyer would who pays the opening price.
func (a typicalAnswer) document(now time.Time, price protocol.Credits) ([]byte, error) {
	from := now.Add(2 * time.Minute).Truncate(time.Second)
	d := rfql.Draft{Requests: []rfql.DraftRequest{{
		Price: price, TotalCores: a.Cores, NotBefore: from, End: from.Add(time.Duration(a.Within) * time.Minute), Wall: time.Duration(a.Wall) * time.Minute,
	}}}
	doc, err := rfql.Check(d, now)
	if err != nil {
		return nil, err
	}
	return doc.XML(), nil
}

func (r *resourceNode) dryRun(ctx context.Context, _ struct{}) (dryRunAnswer, error) {
	price, err := protocol.ParseCredits(r.cfg.Resource.StartPrice)
	if err != nil {
		return dryRunAnswer{}, err
	}
	a := dryRunAnswer{Price: max(price, 1), Hold: r.hold(), Offers: typicals(r.driver.cores, r.cfg.Resource.Properties.NodeCores)}
	for i := range a.Offers {
		o := &a.Offers[i]
		b, err := o.document(time.Now(), a.Price)
		if err != nil {
			return a, err
		}
		lines, err := r.check(ctx, checkCall{Document: string(b), Rounds: 1})
		if err != nil {
			return a, err
		}
		if len(lines) > 0 {
			o.Line = lines[0]
		}
	}
	s, err := r.status(ctx, struct{}{})
	a.Sales, a.Why = s.Sales, s.Why
	return a, err
}

// hold says what a sold slot will be, and tries whether it can be made.
func (r *resourceNode) hold() holdAnswer {
	switch s := r.cfg.Resource.Slurm; r.cfg.Resource.Driver {
	case "slurm":
		if s.HoldBy == string(slurm.HoldJob) {
			return holdAnswer{What: "a placeholder job", OK: true, Why: "Slurm does not promise that it starts in time; a slot that does not begin within a minute is refunded"}
		}
		h := holdAnswer{What: "a reservation", OK: true}
		if err := slurm.MayReserve(r.cfg.slurm(r.cred.ID, quiet())); err != nil {
			h.OK, h.Why = false, "this account may not reserve ("+queue.OneLine([]byte(err.Error()))+"): make it an operator, set resource.slurm.prefix, or set hold_by: job"
		}
		return h
	case "pbs":
		return holdAnswer{What: "a reservation", OK: true}
	case "local":
		return holdAnswer{What: "a claim that all agents of this machine respect", OK: true, Why: "nothing keeps other processes off its cores"}
	case "command":
		return holdAnswer{What: "what the program makes of it", OK: true}
	}
	return holdAnswer{What: "a reservation of the machine that plays the log", OK: true}
}

// dryRun prints what the agent would offer to typical requests.
func dryRun(c *cobra.Command) error {
	return askFleet(c, "/v1/dryrun", struct{}{}, printDryRun)
}

func printDryRun(w io.Writer, a dryRunAnswer) {
	rows := [][]string{{"request", "cores", "wall", "within", "busy", "start (UTC)", "answer"}}
	for _, o := range a.Offers {
		busy, start := "-", "-"
		if o.Line.Capacity > 0 {
			busy = fmt.Sprintf("%d of %d", o.Line.Busy, o.Line.Capacity)
		}
		if o.Line.Offer != nil {
			start = clockTime(o.Line.Slot.Start)
		}
		rows = append(rows, []string{o.Request, fmt.Sprint(o.Cores), hoursWords(o.Wall), hoursWords(o.Within), busy, start, quoteWords(o.Line)})
	}
	table(w, rows...)
	fmt.Fprintf(w, "asked by buyers who pay at most %s, the start price; who would pay more is asked for more\n", money(a.Price))
	fmt.Fprintf(w, "a sold slot will be %s\n", a.Hold.What)
	switch {
	case !a.Hold.OK:
		fmt.Fprintf(w, "which cannot be made: %s\n", a.Hold.Why)
	case a.Hold.Why != "":
		fmt.Fprintf(w, "%s\n", a.Hold.Why)
	}
	if a.Sales != message.SalesOpen {
		fmt.Fprintf(w, "sales are %s: %s\n", a.Sales, a.Why)
	}
}

func hoursWords(minutes int) string { return fmt.Sprintf("%d h", minutes/60) }
