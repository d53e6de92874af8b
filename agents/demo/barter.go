package demo

import (
	"context"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The worked example of bartering (docs/BANKING.md), with jobs of a second: at
// 7,200 a core-hour a core costs 2 for a second.
const (
	barterPrice = 7_200
	barterWall  = time.Second
)

// barter trades as in the worked example: group A shares half of its clusters' earnings, group B
// all of them.
func (m *modes) barter(ctx context.Context) error {
	if err := m.openBarter(ctx); err != nil {
		return err
	}
	if err := m.barterAtOnce(ctx); err != nil {
		return err
	}
	return m.barterBack(ctx)
}

func (m *modes) openBarter(ctx context.Context) error {
	if err := Ask(ctx, m.Bank, control.SetPolicy, control.PolicyCall{Currency: currency, Policy: "barter"}, nil); err != nil {
		return err
	}
	m.progress("starting a bartering bank, three clusters and two user agents in %s", m.Dir)
	if err := m.barterAgents(ctx); err != nil {
		return err
	}
	half, all := int64(protocol.Credit/2), int64(protocol.Credit) // shares are parts per million, as credits are of micro-credits
	for _, g := range []control.GroupView{
		{Group: "A", Shared: half, Clusters: []string{"a-cluster", "a-broken"}, Members: []control.MemberView{{User: "a1", Share: all / 10 * 6}, {User: "a2", Share: all / 10 * 4}}},
		{Group: "B", Shared: all, Clusters: []string{"b-cluster"}, Members: []control.MemberView{{User: "b1", Share: all}}},
	} {
		if err := Ask(ctx, m.Bank, control.OpenGroup, control.NameCall{Name: g.Group}, nil); err != nil {
			return err
		}
		if err := Ask(ctx, m.Bank, control.SetGroup, g, nil); err != nil {
			return err
		}
	}
	for _, l := range []control.LimitCall{{Account: "group:A", Limit: 100}, {Account: "a1", Limit: 60}, {Account: "b1", Limit: 20}, {Account: "group:B", Limit: 50}} {
		l.Limit *= protocol.Credit
		if err := Ask(ctx, m.Bank, control.SetLimit, l, nil); err != nil {
			return err
		}
	}
	m.columns = []string{"a1", "a2", "A", "b1", "B"}
	return m.sellers(ctx, 3)
}

func (m *modes) barterAgents(ctx context.Context) error {
	for _, s := range []modesSite{
		{name: "a-cluster"}, {name: "b-cluster"},
		{name: "a-broken", jobs: config.JobsModel{Fail: 1000}}, // it loses every job half way
	} {
		s.price, s.mode = barterPrice, protocol.ModeOnCompletion
		if err := m.site(ctx, s); err != nil {
			return err
		}
	}
	for _, name := range []string{"a1", "b1"} {
		if err := m.buyer(ctx, name); err != nil {
			return err
		}
	}
	dir, err := m.AgentDir("a2", config.Config{}) // a member that buys nothing
	if err != nil {
		return err
	}
	a2, err := (&config.Config{Certificate: "agent.pem", Key: "agent.key", Dir: dir}).Credential()
	if err != nil {
		return err
	}
	return m.account(ctx, a2.ID, "a2", true)
}

// barterJob is an order of the worked example.
func barterJob(user, site string, cores int) modesOrder {
	return modesOrder{user: user, site: site, cores: cores, wall: barterWall, price: barterPrice}
}

// barterAtOnce: a1 buys for 120 on B's cluster, and b1 for 50 on one of A's that fails.
func (m *modes) barterAtOnce(ctx context.Context) error {
	first, err := m.hold(ctx, barterJob("a1", "b-cluster", 60))
	if err != nil {
		return err
	}
	second, err := m.hold(ctx, barterJob("b1", "a-broken", 25))
	if err != nil {
		return err
	}
	if err := m.ended(ctx, "a1", first); err != nil {
		return err
	}
	return m.ended(ctx, "b1", second)
}

// barterBack: b1 buys for 50 on A's cluster, and a1 asks for more than it has.
func (m *modes) barterBack(ctx context.Context) error {
	third, err := m.hold(ctx, barterJob("b1", "a-cluster", 25))
	if err != nil {
		return err
	}
	if err := m.ended(ctx, "b1", third); err != nil {
		return err
	}
	refused, err := m.order(ctx, barterJob("a1", "b-cluster", 50))
	switch {
	case err != nil:
		return err
	case refused.Settled:
		return exit.Fail(exit.Failed, "", "a1 should have been refused, but bought for %s", refused.Total)
	}
	return m.step(ctx, &refused, "a1 asks for 100 on b-cluster, but has 15 and 65 of its group: %s", refused.Why)
}

// hold orders a job and shows what is held for it.
func (m *modes) hold(ctx context.Context, o modesOrder) (message.Purchase, error) {
	p, err := m.order(ctx, o)
	if err != nil {
		return p, err
	}
	if !p.Settled {
		return p, exit.Fail(exit.Failed, "", "%s could not buy on %s: %s", o.user, o.site, p.Why)
	}
	return p, m.step(ctx, &p, "%s buys %d cores for %s on %s: %s held", o.user, o.cores, o.wall, o.site, p.Total.Cents())
}

// ended waits for the end of a job and shows who was paid.
func (m *modes) ended(ctx context.Context, user string, p message.Purchase) error {
	p, err := m.end(ctx, user, p)
	if err != nil {
		return err
	}
	u := p.Units[0]
	return m.step(ctx, &p, "%s's job on %s: %s; %s paid, %s released", user, u.Resource, order.EndWords(u), u.Paid.Cents(), (u.Cost - u.Paid).Cents())
}
