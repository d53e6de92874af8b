package demo

import (
	"context"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/order"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The metered demonstration: at 3,600 a core-hour a core costs 1 for a second.
const (
	meteredPrice = 3_600
	meteredWall  = 2 * time.Second
	meteredCores = 50
)

// byContracts trades by contracts: the bank holds a ceiling and pays for the actual use.
func (m *modes) byContracts(ctx context.Context) error {
	if err := m.openMetered(ctx); err != nil {
		return err
	}
	return m.meter(ctx, meteredJobs())
}

// meter buys jobs one after the other, and waits for their ends.
func (m *modes) meter(ctx context.Context, jobs []modesOrder) error {
	held := make([]message.Purchase, len(jobs))
	var err error
	for i, o := range jobs {
		if held[i], err = m.hold(ctx, o); err != nil {
			return err
		}
	}
	for i, o := range jobs {
		if err := m.metered(ctx, o, held[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *modes) openMetered(ctx context.Context) error {
	m.progress("starting a bank, three machines and one user agent in %s", m.Dir)
	for _, s := range []modesSite{
		{name: "busy"}, // its jobs keep every core busy
		{name: "idle", jobs: config.JobsModel{Idle: 900, Busy: 500}}, // they leave cores idle, and others take some
		{name: "broken", jobs: config.JobsModel{Fail: 1000}},         // it loses every job half way
	} {
		s.price, s.mode = meteredPrice, protocol.ModeMetered
		if err := m.site(ctx, s); err != nil {
			return err
		}
		m.columns = append(m.columns, s.name)
	}
	if err := m.buyer(ctx, "ann"); err != nil {
		return err
	}
	if err := Ask(ctx, m.Bank, control.Credit, control.CreditCall{Account: "ann", Amount: 1000 * protocol.Credit, Ref: "demo"}, nil); err != nil {
		return err
	}
	return m.sellers(ctx, 3)
}

// meteredJobs pay for cycles, for cycles and a share of the machine, and for the use by a job that
// is lost.
func meteredJobs() []modesOrder {
	cycles := protocol.Ramp{Top: meteredPrice * protocol.Credit}
	cheaper := protocol.Ramp{Hi: meteredCores * protocol.Core, Top: meteredPrice / 2 * protocol.Credit}
	share := protocol.Ramp{Lo: meteredCores / 4 * protocol.Core, Hi: meteredCores * protocol.Core, Top: meteredPrice * meteredCores / 2 * protocol.Credit}
	job := func(site string, t protocol.Tariff) modesOrder {
		return modesOrder{user: "ann", site: site, cores: meteredCores, wall: meteredWall, price: meteredPrice, contract: t}
	}
	return []modesOrder{
		job("busy", protocol.Tariff{P: cycles}),
		job("idle", protocol.Tariff{P: cheaper, Q: share}),
		job("broken", protocol.Tariff{P: cycles}),
	}
}

// metered waits for the end of a metered job and shows the amount due.
func (m *modes) metered(ctx context.Context, o modesOrder, p message.Purchase) error {
	p, err := m.end(ctx, o.user, p)
	if err != nil {
		return err
	}
	u := p.Units[0]
	used := protocol.Usage{}
	if u.Usage != nil {
		used = *u.Usage
	}
	return m.step(ctx, &p, "%s's job on %s used %s of core time in %s, with at least %s cores to itself: %s due, %s; %s paid, %s released",
		o.user, o.site, used.CPU.Round(time.Millisecond), used.Wall, protocol.Credits(used.Share), u.Due.Cents(), order.EndWords(u), u.Paid.Cents(), (u.Cost - u.Paid).Cents())
}
