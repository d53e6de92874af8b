package market

import (
	"fmt"
	"time"

	"ramp/agents/bank"
	"ramp/agents/queue"
	"ramp/agents/sim"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/rfql"
)

// A market may use several settlement modes, and its bank may barter. Then orders choose a
// mode at random, windows are close enough for slots to end during the run, and some jobs
// fail or leave cores idle.

// maxModes bounds the modes of a Config.
const maxModes = 3

// Overdrafts of members and groups of a bartering bank.
const (
	memberLimit = 5_000 * protocol.Credit
	groupLimit  = 20_000 * protocol.Credit
	groups      = 2
)

// jobsModel decides how much jobs in sold slots use and how many of them fail.
func jobsModel() queue.Model {
	return queue.Model{FailPerMille: 150, IdlePerMille: 500, BusyPerMille: 300}
}

func (c Config) validateModes() error {
	if len(c.Modes) > maxModes {
		return fmt.Errorf("modes %v: want at most %d", c.Modes, maxModes)
	}
	for _, m := range c.Modes {
		if !m.Known() || c.Barter && m == protocol.ModeOnReservation {
			return fmt.Errorf("mode %.32q: want on-completion, metered or, without barter, on-reservation", string(m))
		}
	}
	if c.Barter && len(c.Modes) == 0 {
		return fmt.Errorf("barter: want modes that include on-completion")
	}
	return nil
}

// later reports whether some of the market's bundles are paid after the job.
func (c Config) later() bool { return len(c.Modes) > 0 }

// drawMode draws the mode of an order.
func (c Config) drawMode(chance sim.Chance) protocol.Mode {
	if !c.later() {
		return protocol.ModeOnReservation
	}
	return c.Modes[chance.N(len(c.Modes))]
}

// drawContract draws the contract of a unit, if it is metered.
func drawContract(c sim.Chance, mode protocol.Mode) rfql.Contract {
	if mode != protocol.ModeMetered {
		return rfql.Contract{}
	}
	contract := rfql.Contract{
		P:      protocol.Ramp{Hi: int64(c.N(2 * protocol.Core)), Top: protocol.Credits(10+c.N(60)) * protocol.Credit},
		Q:      protocol.Ramp{Top: protocol.Credits(c.N(3)) * protocol.Credit},
		Prepay: c.N(4) == 0,
	}
	if c.N(3) == 0 {
		contract.TimeLimit = time.Duration(1+c.N(10)) * time.Minute
	}
	return contract
}

// credit is a user's initial balance.
func (c Config) credit(user int) protocol.Credits {
	if c.Barter {
		return 0
	}
	return credit(user)
}

// limitOf is the overdraft of an account.
func (m *Market) limitOf(id protocol.AgentID) protocol.Credits {
	switch {
	case m == nil || !m.cfg.Barter:
		return 0
	case m.parties[id] == partyUser:
		return memberLimit
	case id == ledger.GroupID(groupName(0)) || id == ledger.GroupID(groupName(1)):
		return groupLimit
	}
	return 0
}

func groupName(i int) string { return fmt.Sprintf("g%d", i%groups) }

// barter creates the two groups of a bartering bank and assigns users and sites to them in
// turn. One group shares half of its earnings, the other all of them.
func (m *Market) barter() {
	list := make([]ledger.Group, groups)
	for i := range list {
		list[i] = ledger.Group{Name: groupName(i), Shared: ledger.Whole / 2 * int64(1+i)}
	}
	for i, u := range m.users {
		g := &list[i%groups]
		g.Members = append(g.Members, ledger.Member{User: u.Host.ID(), Pays: ledger.PaysUserThenGroup})
	}
	for i, s := range m.sites {
		g := &list[i%groups]
		g.Clusters = append(g.Clusters, s.Host.ID())
	}
	for _, g := range list {
		shareOut(&g)
		m.operator().Do(func(b *bank.Role, now time.Time) (protocol.Output, error) {
			_, opened, err := b.OpenGroup(now, g.Name)
			if err != nil {
				return opened, err
			}
			_, set, err := b.SetGroup(now, g, "")
			return opened.Join(set), err
		})
		m.limit(ledger.GroupID(g.Name), groupLimit)
	}
	for _, u := range m.users {
		m.limit(u.Host.ID(), memberLimit)
	}
}

// shareOut gives members equal shares, and the remainder to the first.
func shareOut(g *ledger.Group) {
	n := int64(len(g.Members))
	for i := range g.Members {
		g.Members[i].Share = ledger.Whole / n
	}
	if n > 0 {
		g.Members[0].Share += ledger.Whole % n
	}
}

func (m *Market) limit(id protocol.AgentID, limit protocol.Credits) {
	m.operator().Do(func(b *bank.Role, now time.Time) (protocol.Output, error) {
		_, out, err := b.SetLimit(now, id, Currency, limit)
		return out, err
	})
}

// makePolicy sets the bank's policy, before any money moves.
func (m *Market) makePolicy() {
	if !m.cfg.Barter {
		return
	}
	m.operator().Do(func(b *bank.Role, now time.Time) (protocol.Output, error) {
		_, out, err := b.SetPolicy(now, Currency, ledger.Policy{Kind: ledger.PolicyBarter})
		return out, err
	})
}
