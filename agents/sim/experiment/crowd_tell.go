package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ramp/agents/index"
	"ramp/protocol/auction"
)

// crowdSizes are the numbers of sellers, up to n.
func crowdSizes(n int) []int {
	all := []int{20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000}
	return slices.DeleteFunc(all, func(x int) bool { return x > n })
}

// smallBuyers is how many users buy at once in a market without indexes, whose calls do not
// depend on each other.
const smallBuyers = 200

// crowds runs markets up to l.Crowd sellers, in which l.Buyers users ask at once.
func crowds(ctx context.Context, l *Lab, r *Result) error {
	list := crowdSizes(l.Crowd)
	c, err := l.newCrowd(list[len(list)-1], ctx.Err, func(done, of int) {
		if done%1000 == 0 {
			l.Progress("sellers", done, of)
		}
	})
	if err != nil {
		return err
	}
	l.issueCrowd(indexesOf(list[len(list)-1]))
	var runs []crowdResult
	for i, n := range list { // one after the other: the last is most of the work, and memory is measured
		buyers := l.Buyers
		if n < index.From {
			buyers = min(buyers, smallBuyers)
		}
		x := c.play(n, buyers, nil)
		if ctx.Err() != nil {
			break
		}
		runs = append(runs, x)
		l.Progress("scale", i+1, len(list))
	}
	r.table(crowdTable(runs))
	if ctx.Err() == nil {
		r.crowdShapes(runs)
	}
	r.note("Every user asks for a quote of the same request at the same instant, in %d rounds. Sellers repeat the twenty of table 2 at 24 hours of their logs; each opens at its own list price, like live sites, and has prices of its own. Below %d there are no indexes and at most %d users. A seller is made when it is first called; its record is in the indexes before.", crowdRounds, index.From, smallBuyers)
	r.note("The price of asking everybody is worked out from the price rule, with loads as the sellers show them when called (no messages); a test compares it with auctions. Calls are those of one seller in all rounds, of the sellers that are called at all. Memory is the peak of the process so far.")
	return ctx.Err()
}

func crowdTable(runs []crowdResult) Table {
	t := Table{Name: "crowd", About: "Many users at once", Shown: true, Columns: []string{
		"resources", "users", "quoted", "price", "asking everybody", "ratio", "lowest minimum", "s", "messages", "kB", "most proposals in a round", "most called in a round",
		"sellers called", "calls of one, mean", "most", "indexes", "records of one, most", "queries of one, mean", "most queries", "MiB",
	}}
	for _, x := range runs {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(x.resources), fmt.Sprint(x.buyers), fmt.Sprint(x.settled), num(x.price, 3), num(x.everybody, 3), num(x.price/x.everybody, 4), num(x.floor, 2), num(x.seconds, 2),
			num(x.messages, 0), num(x.bytes/1000, 0), fmt.Sprint(x.proposals), fmt.Sprint(x.perRound), fmt.Sprint(x.called), num(x.callsMean, 1), num(x.callsMost, 0),
			fmt.Sprint(x.indexes), fmt.Sprint(x.records), num(x.queries, 0), num(x.queriesMost, 0), fmt.Sprint(x.memory >> 20),
		})
	}
	return t
}

// crowdShapes are those of the markets with indexes.
func (r *Result) crowdShapes(runs []crowdResult) {
	large := slices.DeleteFunc(slices.Clone(runs), func(x crowdResult) bool { return x.indexes == 0 })
	if len(large) == 0 {
		return
	}
	worst, most, called, uneven, floored, lost := 0.0, 0, 0, 0.0, math.Inf(1), 0
	least, greatest := math.Inf(1), 0.0
	for _, x := range large {
		worst, most, called = max(worst, x.price/x.everybody), max(most, x.proposals), max(called, x.perRound)
		uneven, floored, lost = max(uneven, x.callsMost/x.callsMean), min(floored, x.price/x.floor), lost+x.buyers-x.settled
		least, greatest = min(least, x.messages), max(greatest, x.messages)
	}
	r.shape("every user gets a quote", lost == 0, fmt.Sprintf("%d do not", lost), "0 do not")
	r.shape("with indexes: mean price above the lowest minimum of all", floored > 1, num(floored, 4)+" times it", "more than it")
	r.shape("with indexes: mean price within 1 % of asking everybody", worst <= 1+dearer, num(worst, 4)+" times it", "at most 1.01 times it")
	r.shape("with indexes: at most 64 proposals in a round", most <= auction.DefaultBudget, fmt.Sprint(most), "at most 64")
	r.shape("with indexes: at most 32 sellers called in a round", called <= auction.ShortBudget, fmt.Sprint(called), "at most 32")
	r.shape("with indexes: no seller hears more than five times the mean number of calls", uneven <= 5, num(uneven, 2)+" times", "at most 5 times")
	r.shape("with indexes: messages of an auction do not grow with the market", greatest <= 1.5*least, fmt.Sprintf("%.0f to %.0f", least, greatest), "at most half as many more")
}
