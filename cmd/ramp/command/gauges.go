package command

import (
	"context"
	"math"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/resource"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// figure is a gauge that is read from the role; not a number, if it does not
// answer in time.
func (n *node) figure(name, help string, read func(now time.Time, r agents.Role) int) {
	n.meters.gauge(name, help, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), healthTime)
		defer cancel()
		value := math.NaN()
		err := n.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
			value = float64(read(now, r))
			return protocol.Output{}
		})
		if err != nil {
			return math.NaN()
		}
		return value
	})
}

// gauges are how much a site has promised.
func (r *resourceNode) gauges() {
	for _, g := range []struct{ name, help, state string }{
		{"ramp_holds", "Units that are held and not sold.", string(reserve.ClaimHeld)},
		{"ramp_in_doubt", "Units that are countersigned and not decided.", string(reserve.ClaimCountersigned)},
		{"ramp_sold", "Units that are sold and remembered.", string(reserve.ClaimSold)},
	} {
		r.figure(g.name, g.help, func(_ time.Time, a agents.Role) int {
			n := 0
			for _, line := range a.(*resource.Role).Reservations() {
				if line.State == g.state {
					n++
				}
			}
			return n
		})
	}
	r.sharpenGauges()
}

// sharpenGauges are how a site keeps its promises that sells over running jobs.
func (r *resourceNode) sharpenGauges() {
	if !r.cfg.Resource.Forecast.Sharpen {
		return
	}
	for _, g := range []struct {
		name, help string
		of         func(s *message.SharpenStatus) int
	}{
		{"ramp_promises", "The last promises whose slots have begun, of a site that sharpens.", func(s *message.SharpenStatus) int { return s.Ended }},
		{"ramp_promises_broken", "Broken ones of them.", func(s *message.SharpenStatus) int { return s.Broken }},
		{"ramp_sharpened", "Units sold over jobs that were expected to end early, of those remembered.", func(s *message.SharpenStatus) int { return s.Sharpened }},
		{"ramp_sharpening", "1 while such units are sold, 0 while too many promises were broken.", func(s *message.SharpenStatus) int {
			if s.Selling {
				return 1
			}
			return 0
		}},
	} {
		r.figure(g.name, g.help, func(now time.Time, a agents.Role) int { return g.of(a.(*resource.Role).Status(now).Forecast.Sharpen) })
	}
}

// gauges are what a bank has in its books.
func (b *bankNode) gauges() {
	b.figure("ramp_ledger_entries", "Entries of the ledger.", func(_ time.Time, r agents.Role) int {
		return int(r.(*bank.Role).Ledger().LastEntry())
	})
	b.figure("ramp_holds", "Amounts that are held.", func(_ time.Time, r agents.Role) int {
		return len(r.(*bank.Role).Ledger().Holds())
	})
	b.figure("ramp_accounts", "Accounts.", func(_ time.Time, r agents.Role) int {
		return len(r.(*bank.Role).Ledger().Accounts())
	})
}

// userGauges are what a user agent knows of the market.
func (n *node) userGauges() {
	n.figure("ramp_resources_known", "Resources that are there now.", func(now time.Time, r agents.Role) int {
		return len(r.(*user.Role).Known(now, protocol.KindResource))
	})
	n.figure("ramp_purchases_going", "Purchases that are not over.", func(_ time.Time, r agents.Role) int {
		return r.(*user.Role).Purchases()
	})
}
