package experiment

import (
	"context"
	"fmt"
	"time"

	"ramp/agents/user"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// sizes of the markets of scale; Settings.Resources says up to which.
func sizes(most int) []int {
	var list []int
	for _, n := range []int{20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000} {
		if n <= most {
			list = append(list, n)
		}
	}
	return list
}

// crew are n sellers: the twenty again and again, each time an hour later in
// their logs, a day at most.
func (l *Lab) crew(n int) []seller {
	list := l.twenty()
	for i := len(list); i < n; i++ {
		s := list[i%len(Sites())]
		turn := i / len(Sites())
		s.name = fmt.Sprintf("%s-%d", s.name, turn+1)
		s.on.base += int64(turn%24) * 3600
		list = append(list, s)
	}
	return list[:n]
}

// size is one auction in a market of so many resources.
type size struct {
	resources, repeat int
	everybody         bool // is asked: there is no response budget
	settled           bool
	price, seconds    float64
	messages, bytes   int64
	proposals         int // most that the buyer received in one round
	answers           int // the same, with refusals
}

// Repeats of a market's size: one start of a few is not as the others are, and the
// largest markets take longest.
const (
	scaleRepeats = 8
	scaleMany    = 2000 // resources; of more there is one
)

// markets are the auctions to make: each with a response budget and without.
func (l *Lab) markets() []size {
	var list []size
	for _, n := range sizes(l.Settings.Resources) {
		repeats := scaleRepeats
		if n > scaleMany {
			repeats = 1
		}
		for i := range l.repeat(repeats) {
			list = append(list, size{resources: n, repeat: i, everybody: true}, size{resources: n, repeat: i})
		}
	}
	return list
}

// scale is the request of table 4 in ever larger markets: five fixed rounds where
// calls go by gossip, early close where they do not. It is made twice, with and
// without a response budget (docs/decisions/0019), at the same market starts.
func scale(ctx context.Context, l *Lab, r *Result) error {
	list := l.markets()
	crew := l.crew(list[len(list)-1].resources)
	l.issue(1, crew)
	runs, err := gather(ctx, l, "scale", len(list), func(i int) size { return l.size(crew[:list[i].resources], list[i]) })
	t := Table{Name: "runs", About: "Every auction", Columns: []string{
		"resources", "repeat", "response_budget", "settled", "price", "seconds", "messages", "bytes", "most_proposals_in_a_round", "most_answers_in_a_round",
	}}
	for _, x := range runs {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(x.resources), fmt.Sprint(x.repeat + 1), x.budget(), fmt.Sprint(x.settled), num(x.price, 6), num(x.seconds, 6),
			fmt.Sprint(x.messages), fmt.Sprint(x.bytes), fmt.Sprint(x.proposals), fmt.Sprint(x.answers),
		})
	}
	r.table(t)
	if err != nil {
		return err
	}
	r.scaleTell(sizes(l.Settings.Resources), runs)
	return nil
}

// budget is that of a run, for tables.
func (x size) budget() string {
	if x.everybody {
		return "none"
	}
	return fmt.Sprint(auction.DefaultBudget)
}

// scaleRounds is where prices no longer fall much (002 §11.1).
const scaleRounds = 5

func (l *Lab) size(crew []seller, x size) size {
	budget := auction.DefaultBudget
	if x.everybody {
		budget = user.AskEverybody
	}
	s := l.stage(play{seed: l.seed(x.repeat), offset: time.Duration(x.repeat) * l.Settings.Gap, sellers: crew, users: 1, budget: budget})
	s.watch.quiet = true
	before := s.world.Stats()
	p := s.buy(0, "scale", message.Options{Rounds: scaleRounds, RoundLimit: l.Settings.RoundLimit}, job{"scale", 16, time.Hour, credits(70)})
	after := s.world.Stats()
	x.settled, x.price, x.seconds = p.Settled, paid(p), p.ElapsedMS/1000
	x.messages, x.bytes = after.Delivered-before.Delivered, after.Bytes-before.Bytes
	for _, n := range s.watch.answered {
		x.answers = max(x.answers, n)
	}
	for _, n := range s.watch.proposed {
		x.proposals = max(x.proposals, n)
	}
	return x
}
