package market

import (
	"time"

	"ramp/agents/user"
	"ramp/protocol"
)

// Result sums up a market's run. The JSON names are fixed.
type Result struct {
	Seed       uint64         `json:"seed"`
	TraceHash  string         `json:"trace_hash"`
	Violations []Violation    `json:"violations"`
	Checks     map[string]int `json:"checks"`
	Auctions   int            `json:"auctions"` // begun, also by sweeps
	Bought     int            `json:"bought"`   // settled
	Refused    int            `json:"refused"`  // ended without a purchase
	Units      int            `json:"units"`    // bought
	Money      string         `json:"money"`    // paid for them, minus refunds
	Messages   int64          `json:"messages"` // that agents received
	SimSeconds float64        `json:"sim_s"`
	// Complete is false if the run was interrupted: the invariants that hold only at the
	// end were not checked.
	Complete bool `json:"complete"`
	// The effects of faults.
	Events    int64 `json:"events"`
	Lost      int64 `json:"lost"`
	Crashes   int64 `json:"crashes"`
	Torn      int64 `json:"torn"`
	TakeOvers int64 `json:"take_overs"`
	Rewound   int64 `json:"rewound"` // disks
}

// eventsPerPoll is how many events pass between calls of stop.
const eventsPerPoll = 4096

// rest is how long a market continues after everything has ended: every site polls its
// batch system several times.
const rest = 30 * time.Minute

// Live runs a market for its length, lets it settle, and returns the result. stop may be nil; it
// gets the time that has passed and the whole time, and ends the run by returning true.
func (m *Market) Live(c *Checks, stop func(passed, whole time.Duration) bool) Result {
	done := m.live(c, stop)
	r := c.Result()
	r.Complete = done
	return r
}

// live reports whether the market ran to its end. A role that panics because its own
// invariants are broken is a violation like any other.
func (m *Market) live(c *Checks, stop func(passed, whole time.Duration) bool) (done bool) {
	defer func() {
		if r := recover(); r != nil {
			c.audit.check(NoPanic, false, "%v", r)
			done = false
		}
	}()
	whole := m.cfg.Length + Settling
	if !m.until(m.cfg.Length, whole, stop) {
		return false
	}
	m.Calm()
	if !m.settle(c, whole, stop) {
		return false
	}
	c.Finish()
	return true
}

// settle runs the market until nothing has happened for a rest, for at most Settling.
func (m *Market) settle(c *Checks, whole time.Duration, stop func(passed, whole time.Duration) bool) bool {
	for idle := time.Duration(0); m.World.Elapsed() < whole && idle < rest; idle += tickPeriod {
		if !m.until(min(whole, m.World.Elapsed()+tickPeriod), whole, stop) {
			return false
		}
		if c.Going() > 0 {
			idle = 0
		}
	}
	return true
}

// until runs the market up to end, and reports false if it was stopped.
func (m *Market) until(end, whole time.Duration, stop func(passed, whole time.Duration) bool) bool {
	for n := 1; m.World.Step(end); n++ {
		if n%eventsPerPoll == 0 && stop != nil && stop(m.World.Elapsed(), whole) {
			return false
		}
	}
	return true
}

// Result sums up the run so far.
func (c *Checks) Result() Result {
	w := c.audit.m.World
	s := w.Stats()
	r := Result{
		Seed: c.audit.m.cfg.Seed, TraceHash: w.Hash(), Violations: append([]Violation{}, c.audit.violations...), Checks: map[string]int{},
		Auctions: c.audit.m.orders, Messages: s.Delivered, SimSeconds: w.Elapsed().Seconds(),
		Events: s.Events, Lost: s.Lost, Crashes: s.Crashes, Torn: s.Torn, TakeOvers: s.TakeOvers, Rewound: s.Rewound,
	}
	for _, name := range Invariants() {
		r.Checks[name] = c.audit.counts[name]
	}
	var paid protocol.Credits
	var rows int
	for i, u := range c.audit.m.users {
		paid += c.audit.m.cfg.credit(i) - c.bank.balanceOf(u.Host.ID())
		rows += c.countPurchases(u, &r)
	}
	r.Auctions = max(r.Auctions, rows)
	r.Money = paid.String()
	return r
}

func (c *Checks) countPurchases(u *User, r *Result) (rows int) {
	err := u.Host.Disk().Each(user.TablePurchases, func(_ string, value []byte) error {
		row, err := user.ReadRow(value)
		if err != nil {
			return err
		}
		rows++
		switch p := row.Purchase; {
		case p.Settled:
			r.Bought++
			r.Units += len(p.Units)
		case p.State == user.StateFailed || p.State == user.StateVoid || p.State == user.StateInterrupted || p.State == user.StateCancelled:
			r.Refused++
		}
		return nil
	})
	c.audit.check(Decided, err == nil, "%s: its purchases cannot be read: %v", u.Host.Name, err)
	return rows
}
