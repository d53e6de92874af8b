package user

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// maxCounters bounds how often one command accepts counter-offers: each time, the market may have
// moved on.
const maxCounters = 3

// consent is the limit up to which an owner accepts counter-offers.
type consent struct {
	most protocol.Credits // per core-hour, of CPUHourCost and of Pmax; zero accepts nothing
}

func (o *buyFlags) consent(call control.BuyCall) (consent, error) {
	if o.acceptCounter == "" {
		return consent{}, nil
	}
	draft, _, err := rfql.Read([]byte(call.Document))
	if err != nil {
		return consent{}, err
	}
	most, err := protocol.ParseCredits(o.acceptCounter)
	switch {
	case err != nil || most <= 0:
		return consent{}, exit.Fail(exit.Usage, "", "--accept-counter %q: want a positive number of credits per core-hour", o.acceptCounter)
	case draft.Requests[0].Contract == (rfql.Contract{}) && call.Options.Mode != protocol.ModeMetered:
		return consent{}, exit.Fail(exit.Usage, "docs/RFQL.md shows a Contract", "--accept-counter: only a metered request gets counter-offers")
	case o.wait > 0:
		return consent{}, exit.Fail(exit.Usage, "", "--accept-counter and --wait: give one of them")
	}
	return consent{most}, nil
}

// allows reports whether a counter-offer changes only the contract and the price, within the
// limit: the cores and the window stay, and Q is at most the price of a core-hour on all cores.
func (a consent) allows(r rfql.Request, o message.Counter) bool {
	hour, err := protocol.Cost(a.most, o.Cores, time.Hour)
	return err == nil && o.Cores == r.Cores && o.Later == 0 && o.Price <= a.most &&
		(o.Contract.P.Top <= a.most || o.Contract.P.Top == r.Contract.P.Top) &&
		(o.Contract.Q.Top <= hour || o.Contract.Q.Top == r.Contract.Q.Top)
}

// accepting changes a document to the first acceptable counter-offer of each countered unit. It
// returns false if a unit has none.
func (a consent) accepting(now time.Time, doc rfql.Document, counters []message.Counter) (rfql.Document, []message.Counter, bool) {
	draft := doc.Draft()
	var taken []message.Counter
	for i := range counters {
		o := counters[i]
		same := func(t message.Counter) bool { return t.Unit == o.Unit }
		if o.Unit >= doc.Len() || slices.ContainsFunc(taken, same) || !a.allows(doc.Request(o.Unit), o) {
			continue
		}
		taken = append(taken, o)
		r := &draft.Requests[o.Unit]
		r.Price = max(r.Price, o.Price)
		r.Contract.P, r.Contract.Q = o.Contract.P, o.Contract.Q
	}
	covered := func(o message.Counter) bool {
		return slices.ContainsFunc(taken, func(t message.Counter) bool { return t.Unit == o.Unit })
	}
	if len(taken) == 0 || slices.ContainsFunc(counters, func(o message.Counter) bool { return !covered(o) }) {
		return doc, nil, false
	}
	changed, err := rfql.Check(draft, now)
	return changed, taken, err == nil
}

// buyCountered buys, and accepts counter-offers if nobody sells the request as it is. Each attempt
// has an ID of its own, so that the command can be repeated.
func buyCountered(c *cobra.Command, agent *control.Client, call control.BuyCall, a consent) (message.Purchase, error) {
	first := call.ID
	for n := 1; ; n++ {
		p, err := cli.FollowPurchase(c, agent, control.Buy, call, call.ID)
		if err != nil || a.most == 0 || n > maxCounters || p.State != user.StateFailed {
			return p, err
		}
		asked, err := rfql.Parse([]byte(call.Document), p.Created)
		if err != nil {
			return p, err
		}
		changed, taken, ok := a.accepting(p.Created, asked, p.Counters)
		if !ok {
			return p, nil
		}
		for _, o := range taken {
			fmt.Fprintf(cli.Notes(c), "accepting the counter-offer of %s: %s\n", o.Resource, o.Change)
		}
		call.ID, call.Document = fmt.Sprintf("%s.counter%d", first, n), string(changed.XML())
		call.Moving, call.StartNow, call.Follows = false, false, true
	}
}
