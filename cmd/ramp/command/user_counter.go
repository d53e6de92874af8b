package command

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// maxCounters is how many counter-offers one command accepts, one after the other:
// the market may have moved on when it answers.
const maxCounters = 3

// printCounters shows the contracts that sellers would accept.
func printCounters(w io.Writer, p message.Purchase) {
	if len(p.Counters) == 0 {
		return
	}
	fmt.Fprintln(w, "  counter-offers, which would be accepted if they were asked for now:")
	rows := [][]string{{"unit", "resource", "would accept", "per core-hour", "cores", "start (UTC)"}}
	for _, o := range p.Counters {
		rows = append(rows, []string{fmt.Sprint(o.Unit + 1), o.Resource, o.Change, money(o.Price), fmt.Sprint(o.Cores), clockTime(o.Start)})
	}
	table(w, indented(rows)...)
}

// consent is what an owner accepts of counter-offers.
type consent struct {
	most protocol.Credits // per core-hour: of CPUHourCost, and of Pmax; zero: nothing
}

func (o *buyFlags) registerCounter(c *cobra.Command) {
	c.Flags().StringVar(&o.acceptCounter, "accept-counter", "", "of a metered request: accept a seller's counter-offer for the same cores and window, at most at so many credits per core-hour")
}

// consent reads what an order may be changed to.
func (o *buyFlags) consent(call buyCall) (consent, error) {
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
		return consent{}, fail(exitUsage, "", "--accept-counter %q: want the most per core-hour, a positive number of credits", o.acceptCounter)
	case draft.Requests[0].Contract == (rfql.Contract{}):
		return consent{}, fail(exitUsage, "docs/RFQL.md shows a Contract", "--accept-counter: only what is metered gets counter-offers")
	case o.wait > 0:
		return consent{}, fail(exitUsage, "", "--accept-counter and --wait: want one of them")
	}
	return consent{most}, nil
}

// allows reports whether a counter-offer asks for nothing but a contract and a
// price that the owner accepts: as many cores, in the same window, and of Q no
// more than the price of a core-hour comes to on all cores.
func (a consent) allows(r rfql.Request, o message.Counter) bool {
	hour, err := protocol.Cost(a.most, o.Cores, time.Hour)
	return err == nil && o.Cores == r.Cores && o.Later == 0 && o.Price <= a.most &&
		(o.Contract.P.Top <= a.most || o.Contract.P.Top == r.Contract.P.Top) &&
		(o.Contract.Q.Top <= hour || o.Contract.Q.Top == r.Contract.Q.Top)
}

// accepting makes a document that asks for what was countered, by the first
// counter-offer of each unit that the owner accepts; false: of some unit there is
// none.
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

// buyCountered buys, and accepts counter-offers of what nobody sells as it was
// asked for. Each attempt has its own ID, so that the command can be repeated.
func buyCountered(c *cobra.Command, agent *caller, call buyCall, a consent) (message.Purchase, error) {
	first := call.ID
	for n := 1; ; n++ {
		p, err := followPurchase(c, agent, "/v1/buy", call, call.ID)
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
			fmt.Fprintf(stderr(c), "accepting the counter-offer of %s: %s\n", o.Resource, o.Change)
		}
		call.ID, call.Document = fmt.Sprintf("%s.counter%d", first, n), string(changed.XML())
		call.Moving, call.StartNow, call.Follows = false, false, true
	}
}
