package markettest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/sim"
	"ramp/protocol/message"
)

var points = map[sim.Point]string{
	sim.BeforeSave: "before the save", sim.AfterSave: "between save and send", sim.AfterSend: "after the send",
}

// restarts are from a crash to the next life: what is on its way arrives after
// it, is lost, or every hold and settle-by is over before it.
var restarts = []time.Duration{time.Millisecond, time.Second, 100 * time.Second}

// spread is a market in which every unit has a seller of its own.
func spread(seed uint64) markettest.Config {
	return markettest.Config{Seed: seed, Cores: markettest.UnitCores}
}

// Whoever crashes at whichever Output, before its save, between save and send
// or after the send: all units are sold and paid once, or none is and nothing
// is held.
func TestCrashAtEveryOutput(t *testing.T) {
	cast := markettest.NewCast(t, 5)
	for _, units := range []int{1, 2, 5} {
		seller, outputs := rehearse(t, cast, units)
		for _, party := range []string{markettest.User, markettest.Bank, seller} {
			c := crash{t: t, cast: cast, units: units, party: party, from: outputs[party][0], to: outputs[party][1]}
			c.everywhere()
			t.Logf("%d units: %s crashed %d times, %d settled", units, party, c.runs, c.settled)
			if c.settled == 0 || party == markettest.User && c.settled == c.runs {
				t.Errorf("%d units: %s crashed %d times, %d settled: the crashes miss what they are for", units, party, c.runs, c.settled)
			}
		}
	}
}

// rehearse buys without a crash: it tells who sells the first unit, and the
// numbers of everybody's first and last Output in it.
func rehearse(t *testing.T, cast *markettest.Cast, units int) (seller string, outputs map[string][2]int) {
	m := markettest.New(t, cast, spread(1))
	parties := []string{markettest.User, markettest.Bank}
	for i := range cast.Sellers {
		parties = append(parties, markettest.Seller(i+1))
	}
	outputs = map[string][2]int{}
	for _, p := range parties {
		outputs[p] = [2]int{m.Outputs(p) + 1}
	}
	m.Buy("p", units, message.Options{})
	m.RunUntil(10*time.Second, func() bool { return over(m) })
	m.Run(time.Second)
	for _, p := range parties {
		outputs[p] = [2]int{outputs[p][0], m.Outputs(p)}
	}
	bought := m.Purchases()["p"].Units
	if len(bought) != units {
		t.Fatalf("%d of %d units are bought: %+v", len(bought), units, m.Purchases()["p"])
	}
	return bought[0].Resource, outputs
}

// crash is one party's crashes at every one of its Outputs.
type crash struct {
	t             *testing.T
	cast          *markettest.Cast
	units         int
	party         string
	from, to      int
	runs, settled int
}

func (c *crash) everywhere() {
	for output := c.from; output <= c.to; output++ {
		for j, point := range []sim.Point{sim.BeforeSave, sim.AfterSave, sim.AfterSend} {
			for i, restart := range restarts {
				// A user has many outputs. Its points take turns: each meets each restart in three outputs.
				if c.party != markettest.User || (output-c.from+j)%len(restarts) == i {
					c.at(output, point, restart)
				}
			}
		}
	}
}

func (c *crash) at(output int, point sim.Point, restart time.Duration) {
	cfg := spread(1)
	cfg.Restart = restart
	m := markettest.New(c.t, c.cast, cfg)
	m.Crash = func(b sim.Boundary) sim.Point {
		if b.Host.Name == c.party && b.Output == output {
			return point
		}
		return sim.Survives
	}
	m.Buy("p", c.units, message.Options{})
	m.Run(restart + bound)
	if err := m.Check(); err != nil {
		c.t.Errorf("%d units, %s crashes at output %d %s, down for %s: %v", c.units, c.party, output-c.from+1, points[point], restart, err)
	}
	c.runs++
	if m.Purchases()["p"].Settled {
		c.settled++
	}
}

// Two parties crash at once, in every pairing of what they do at the end.
func TestTwoCrashTogether(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	const units = 2
	_, outputs := rehearse(t, cast, units)
	parties := []string{markettest.User, markettest.Bank, markettest.Seller(1), markettest.Seller(2)}
	for i, a := range parties {
		for _, b := range parties[:i] {
			for _, back := range []int{0, 1, 2, 3, 5} {
				at := map[string]int{a: outputs[a][1] - back, b: outputs[b][1] - back/2}
				m := markettest.New(t, cast, spread(1))
				var crashed []string
				m.Crash = func(x sim.Boundary) sim.Point {
					if at[x.Host.Name] != x.Output || slices.Contains(crashed, x.Host.Name) {
						return sim.Survives
					}
					crashed = append(crashed, x.Host.Name)
					return sim.AfterSave
				}
				m.Buy("p", units, message.Options{})
				m.Run(bound)
				if err := m.Check(); err != nil {
					t.Errorf("%s and %s crash, %d and %d outputs before the end: %v", a, b, back, back/2, err)
				}
			}
		}
	}
}

// A bank that is away, for less than settle-by or for much longer, decides
// when it is back; nobody acts before.
func TestBankAway(t *testing.T) {
	cast := markettest.NewCast(t, 3)
	for _, away := range []time.Duration{5 * time.Second, 40 * time.Second, time.Hour} {
		t.Run(fmt.Sprint(away), func(t *testing.T) {
			cfg := spread(1)
			cfg.Site = trusting
			m := markettest.New(t, cast, cfg)
			m.Kill(markettest.Bank, away)
			m.Buy("p", 3, message.Options{})
			m.Run(away - time.Second)
			for i := range 3 {
				for _, l := range m.Reservations(markettest.Seller(i + 1)) {
					if l.State != "countersigned" {
						t.Errorf("%s is %s while the bank is away", l.ID, l.State)
					}
				}
			}
			conclude(t, m)
			if got, want := m.Purchases()["p"].Settled, away < 30*time.Second; got != want {
				t.Fatalf("settled is %v after %s", got, away)
			}
		})
	}
}
