package market_test

import (
	"testing"
	"time"

	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// How long something is away, and when that begins.
const (
	outageBegins = 4 * time.Hour
	outageLasts  = 2 * time.Hour
)

// outages is what can be away from every site at once.
var outages = map[string]func(m *market.Market){
	"the bank": func(m *market.Market) {
		cutOff(m, func(p sim.Packet) bool { return p.From.ID() == m.Bank().ID() || p.To.ID() == m.Bank().ID() })
	},
	"the mesh": func(m *market.Market) { cutOff(m, func(sim.Packet) bool { return true }) },
	"the scheduler, which hangs": func(m *market.Market) {
		for _, s := range m.Sites() {
			s.Batch.Away(s.Host.Now().Add(outageLasts))
		}
	},
	"the scheduler, which says so": func(m *market.Market) {
		for _, s := range m.Sites() {
			s.Batch.Away(s.Host.Now().Add(outageLasts))
			m.World.Tell(s.Host, protocol.Message{
				Performative: protocol.Inform, Sender: protocol.LocalQueue, Receivers: []protocol.AgentID{s.Host.ID()},
				Protocol: protocol.ProtocolQueue, Body: message.QueueDown{Since: s.Host.Now(), Why: "squeue: no answer"},
			})
		}
	},
}

func cutOff(m *market.Market, which func(sim.Packet) bool) {
	until := m.World.Now().Add(outageLasts)
	m.World.Hook(sim.Hooks{Fate: func(p sim.Packet) sim.Fate {
		return sim.Fate{Drop: m.World.Now().Before(until) && which(p), Tell: true}
	}})
}

// Whatever is away for two hours, no sold slot is lost: not in the journal, and
// not in the batch system. Afterwards sales go on by themselves.
func TestAnOutageOfTwoHoursLosesNoSoldSlot(t *testing.T) {
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for name, begin := range outages {
		t.Run(name, func(t *testing.T) {
			cfg := market.Default()
			cfg.Resources, cfg.Users, cfg.Rate, cfg.Length, cfg.Faults = 4, 3, 12, outageBegins+outageLasts+time.Hour, sim.Levels()["none"]
			m, checks := market.Open(cast, cfg)
			m.World.Run(outageBegins)
			before := soldSlots(m)
			begin(m)
			m.World.Run(outageLasts - time.Minute)
			kept, lasting := stillSold(t, m, before)
			during := statuses(m)
			m.World.Run(30 * time.Minute)
			bought := len(soldSlots(m))
			after := statuses(m)
			m.Live(checks, nil)
			for _, v := range checks.Violations() {
				t.Errorf("%+v", v)
			}
			if kept != lasting || lasting == 0 {
				t.Errorf("%d of %d sold slots that outlast the outage are still there", kept, lasting)
			}
			if after[message.SalesOpen] != cfg.Resources {
				t.Errorf("half an hour later the sales are %v", after)
			}
			if paused := during[message.SalesPaused]; (name == "the scheduler, which hangs" || name == "the scheduler, which says so") && paused != cfg.Resources {
				t.Errorf("at the end of the outage the sales are %v", during)
			}
			t.Logf("%d slots sold before, %d outlast the outage; %d half an hour after it", len(before), lasting, bought)
		})
	}
}

// soldSlots are all sold slots that are not over, by site and reservation.
func soldSlots(m *market.Market) map[string]protocol.Slot {
	sold := map[string]protocol.Slot{}
	for _, s := range m.Sites() {
		for _, l := range s.Host.Role().(*resource.Role).Reservations() {
			if l.State == "sold" && l.Slot.End.After(s.Host.Now()) {
				sold[s.Host.Name+" "+l.ID] = l.Slot
			}
		}
	}
	return sold
}

// stillSold counts those of before that are not over, and those of them that
// journal and batch system still have. One that its buyer gave back is not lost.
func stillSold(t *testing.T, m *market.Market, before map[string]protocol.Slot) (kept, lasting int) {
	t.Helper()
	for _, s := range m.Sites() {
		for _, l := range s.Host.Role().(*resource.Role).Reservations() {
			if _, was := before[s.Host.Name+" "+l.ID]; !was || l.State == "cancelled" || !l.Slot.End.After(s.Host.Now()) {
				continue
			}
			lasting++
			if _, there := s.Cluster.Slots()[l.ID]; there && l.State == "sold" {
				kept++
			}
		}
	}
	return kept, lasting
}

func statuses(m *market.Market) map[message.Sales]int {
	n := map[message.Sales]int{}
	for _, s := range m.Sites() {
		n[s.Host.Role().(*resource.Role).Status(s.Host.Now()).Sales]++
	}
	return n
}
