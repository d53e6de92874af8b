package markettest_test

import (
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Every message between agents is lost, doubled or late once, alone. Late is
// past each timeout: patience, the round, the vote, settle-by, the hold.
func TestEveryMessageFailsOnce(t *testing.T) {
	cast := markettest.NewCast(t, 2)
	faults := map[string]markettest.Fate{
		"lost":          {Drop: true},
		"undeliverable": {Drop: true, Tell: true},
		"doubled":       {Copies: 2},
		"doubled later": {Copies: 1, Delay: 15 * time.Second},
	}
	for _, late := range []time.Duration{2 * protocol.MinPatience, protocol.VoteTimeout + time.Second, protocol.DefaultRoundLimit + time.Second,
		protocol.DefaultSettle + time.Second, protocol.DefaultHold + time.Second} {
		faults["late by "+late.String()] = markettest.Fate{Delay: late}
	}
	for name, fate := range faults {
		t.Run(name, func(t *testing.T) {
			settled, n := 0, packets(t, cast)
			for i := range n {
				m := markettest.New(t, cast, spread(1))
				at, kind := 0, ""
				m.Fate = func(p markettest.Packet) markettest.Fate {
					if at++; at == i+1 {
						kind = fmt.Sprintf("%s from %s to %s", p.Message.Body.Kind(), p.From, p.To)
						return fate
					}
					return markettest.Fate{}
				}
				m.Buy("p", 2, message.Options{})
				m.Run(fate.Delay + bound)
				if err := m.Check(); err != nil {
					t.Errorf("message %d, %s: %v", i+1, kind, err)
				}
				if m.Purchases()["p"].Settled {
					settled++
				}
			}
			t.Logf("%d of %d settled", settled, n)
		})
	}
}

// packets is how many messages a purchase takes.
func packets(t *testing.T, cast *markettest.Cast) int {
	m := markettest.New(t, cast, spread(1))
	n := 0
	m.Fate = func(markettest.Packet) markettest.Fate { n++; return markettest.Fate{} }
	m.Buy("p", 2, message.Options{})
	m.RunUntil(10*time.Second, func() bool { return over(m) })
	m.Run(time.Second)
	return n
}

// storm draws faults from a seed until it is over.
type storm struct {
	random *mathrand.Rand
	until  time.Time
	calm   int // 1: one message in three fails, and one output in 25
	m      *markettest.Market
}

func (s storm) fate(markettest.Packet) markettest.Fate {
	if s.m.Now().After(s.until) {
		return markettest.Fate{}
	}
	switch s.random.IntN(12 * s.calm) {
	case 0:
		return markettest.Fate{Drop: true, Tell: s.random.IntN(2) == 0}
	case 1:
		return markettest.Fate{Copies: 1 + s.random.IntN(3)}
	case 2:
		return markettest.Fate{Delay: time.Duration(s.random.Int64N(int64(70 * time.Second)))}
	case 3:
		return markettest.Fate{Copies: 1, Delay: time.Duration(s.random.Int64N(int64(5 * time.Second)))}
	}
	return markettest.Fate{}
}

func (s storm) crash(sim.Boundary) sim.Point {
	if s.m.Now().After(s.until) || s.random.IntN(25*s.calm) != 0 {
		return sim.Survives
	}
	return [...]sim.Point{sim.BeforeSave, sim.AfterSave, sim.AfterSend}[s.random.IntN(3)]
}

// regret lets the storm end while units are cancelled and batch systems lose what
// they hold.
func (s storm) regret(acts int) {
	for range acts {
		s.m.Run(time.Duration(s.random.Int64N(int64(40 * time.Second))))
		batch := s.m.Batch(markettest.Seller(1 + s.random.IntN(3)))
		for _, id := range slices.Sorted(maps.Keys(batch.Slots)) {
			if s.random.IntN(4) == 0 {
				delete(batch.Slots, id)
			}
		}
		list := s.m.Purchases()
		for _, id := range slices.Sorted(maps.Keys(list)) {
			if s.random.IntN(2) == 0 {
				s.m.Tell(message.CancelPurchase{ID: id, Unit: s.random.IntN(3) - 1, Row: s.m.Store(markettest.User)[user.TablePurchases][id]})
			}
		}
	}
	s.m.Run(max(0, s.until.Sub(s.m.Now())))
}

// Storms of lost, doubled, late and overtaking messages, crashes of everybody,
// outages of the bank, lost reservations and cancellations, over three purchases
// at once: when the storm is over, all is decided within the bound, and adds up.
func TestStorms(t *testing.T) {
	cast := markettest.NewCast(t, 3)
	const seeds = 200
	settled, refunded := 0, 0
	for seed := range uint64(seeds) {
		random := mathrand.New(mathrand.NewPCG(seed, 1))
		m := markettest.New(t, cast, markettest.Config{
			Seed: seed, Cores: markettest.UnitCores * (1 + random.IntN(3)),
			Restart: time.Duration(1 + random.Int64N(int64(20*time.Second))),
		})
		s := storm{random: random, calm: 1 + int(seed%5), until: m.Now().Add(2 * time.Minute), m: m}
		m.Fate, m.Crash = s.fate, s.crash
		for i := range 3 {
			m.Buy(fmt.Sprintf("p%d", i), 1+random.IntN(3), message.Options{Rounds: [...]int{3, 3, 0}[i]})
			m.Run(time.Duration(random.Int64N(int64(10 * time.Second))))
		}
		if random.IntN(3) == 0 {
			m.Kill(markettest.Bank, time.Duration(random.Int64N(int64(time.Minute))))
		}
		s.regret(2 + random.IntN(2))
		m.Run(90 * time.Second) // what is late by 70 s arrives in this
		m.Run(bound)
		if err := m.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for _, p := range m.Purchases() {
			if p.Settled {
				settled++
			}
			if p.RefundTotal > 0 {
				refunded++
			}
		}
	}
	t.Logf("%d of %d purchases settled, %d refunded", settled, 3*seeds, refunded)
	if settled < seeds || refunded < seeds/10 {
		t.Errorf("%d of %d purchases settled, %d refunded: the storms leave nothing to test", settled, 3*seeds, refunded)
	}
}
