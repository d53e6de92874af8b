package market

import (
	"time"

	"ramp/agents/user"
	"ramp/protocol"
)

// Result is what a market came to; the JSON names are fixed.
type Result struct {
	Seed       uint64         `json:"seed"`
	TraceHash  string         `json:"trace_hash"`
	Violations []Violation    `json:"violations"`
	Checks     map[string]int `json:"checks"`
	Auctions   int            `json:"auctions"` // begun
	Bought     int            `json:"bought"`   // settled
	Refused    int            `json:"refused"`  // over, and nothing was bought
	Units      int            `json:"units"`    // of what was bought
	Money      string         `json:"money"`    // paid for it, less what was refunded
	Messages   int64          `json:"messages"` // that agents received
	SimSeconds float64        `json:"sim_s"`
	// Complete is false if the run was interrupted: the invariants that hold only
	// at the end were not looked at.
	Complete bool `json:"complete"`
	// What the faults did.
	Events    int64 `json:"events"`
	Lost      int64 `json:"lost"`
	Crashes   int64 `json:"crashes"`
	Torn      int64 `json:"torn"`
	TakeOvers int64 `json:"take_overs"`
	Rewound   int64 `json:"rewound"` // disks
}

// eventsPerLook is how many events pass between looks at whether to stop.
const eventsPerLook = 4096

// rest is how long a market goes on when nothing seems to be going on any more:
// several looks of every site at its batch system.
const rest = 30 * time.Minute

// Live lets a watched market live for its length and settle, unless stop says
// true before, and says what it came to. stop may be nil; it is asked with the
// time that has passed, and with that of the whole.
func (m *Market) Live(c *Checks, stop func(passed, whole time.Duration) bool) Result {
	done := m.live(c, stop)
	r := c.Result()
	r.Complete = done
	return r
}

// live reports whether the market lived to its end. A role that finds one of its
// own invariants broken panics: that is a violation like any other.
func (m *Market) live(c *Checks, stop func(passed, whole time.Duration) bool) (done bool) {
	defer func() {
		if r := recover(); r != nil {
			c.check(NoPanic, false, "%v", r)
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

// settle goes on until nothing has been going on for a rest, at most Settling.
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

// until reports false if it was stopped.
func (m *Market) until(end, whole time.Duration, stop func(passed, whole time.Duration) bool) bool {
	for n := 1; m.World.Step(end); n++ {
		if n%eventsPerLook == 0 && stop != nil && stop(m.World.Elapsed(), whole) {
			return false
		}
	}
	return true
}

// Result is what the market came to so far.
func (c *Checks) Result() Result {
	w := c.m.World
	s := w.Stats()
	r := Result{
		Seed: c.m.cfg.Seed, TraceHash: w.Hash(), Violations: append([]Violation{}, c.violations...), Checks: map[string]int{},
		Auctions: c.m.orders, Messages: s.Delivered, SimSeconds: w.Elapsed().Seconds(),
		Events: s.Events, Lost: s.Lost, Crashes: s.Crashes, Torn: s.Torn, TakeOvers: s.TakeOvers, Rewound: s.Rewound,
	}
	for _, name := range Invariants() {
		r.Checks[name] = c.counts[name]
	}
	var paid protocol.Credits
	for i, u := range c.m.users {
		paid += c.m.cfg.credit(i) - c.bank.balanceOf(u.Host.ID())
		c.countPurchases(u, &r)
	}
	r.Money = paid.String()
	return r
}

func (c *Checks) countPurchases(u *User, r *Result) {
	err := u.Host.Disk().Each(user.TablePurchases, func(_ string, value []byte) error {
		row, err := user.ReadRow(value)
		if err != nil {
			return err
		}
		switch p := row.Purchase; {
		case p.Settled:
			r.Bought++
			r.Units += len(p.Units)
		case p.State == user.StateFailed || p.State == user.StateVoid || p.State == user.StateInterrupted || p.State == user.StateCancelled:
			r.Refused++
		}
		return nil
	})
	c.check(Decided, err == nil, "%s: its purchases cannot be read: %v", u.Host.Name, err)
}
