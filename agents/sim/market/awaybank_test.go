package market_test

import (
	"testing"
	"time"

	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A bank that is away longer than its holds last, while jobs run and end, comes back:
// every seller is paid for what it has delivered, since expiry waits for those who
// have waited.
func TestABankThatIsAwayLongerThanItsHoldsEatsNoPay(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	cfg := market.Default()
	cfg.Resources, cfg.Users, cfg.Rate, cfg.Length, cfg.Faults = 3, 2, 10, 2*time.Hour, sim.Levels()["none"]
	cfg.Modes = []protocol.Mode{protocol.ModeOnCompletion, protocol.ModeMetered}
	m, checks := market.Open(cast, cfg)
	m.World.Run(2 * time.Hour)
	m.Calm() // nobody orders any more
	before := owed(m)
	const away = protocol.ReportWithin + 3*time.Hour
	m.World.Crash(m.Bank(), away)
	m.World.Run(away)
	begun := m.World.Elapsed()
	var took time.Duration
	for ; len(owed(m)) > 0 && took < 2*time.Hour; took = m.World.Elapsed() - begun {
		m.World.Run(10 * time.Second)
	}
	m.World.Run(10 * time.Minute) // until the users have asked, too
	told, paid := 0, protocol.Credits(0)
	for _, unit := range boughtUnits(t, m) {
		if unit.How == "" {
			continue
		}
		told, paid = told+1, paid+unit.Paid
		if unit.How == protocol.EndExpired {
			t.Errorf("unit %d at %s: nothing was paid, since nobody was heard in time", unit.Unit, unit.Resource)
		}
	}
	if len(before) == 0 || told < len(before) || paid == 0 {
		t.Errorf("%d units were owed when the bank went away, and %d have ended", len(before), told)
	}
	for _, v := range checks.Violations() {
		t.Errorf("%+v", v)
	}
	t.Logf("away for %s: all of %d units that were held had ended %s after it came back; %s were paid for %d", away, len(before), took, paid, told)
}

// boughtUnits are those of all purchases, as their users' disks have them.
func boughtUnits(t *testing.T, m *market.Market) (all []message.PurchasedUnit) {
	t.Helper()
	for _, u := range m.Users() {
		err := u.Host.Disk().Each(user.TablePurchases, func(_ string, value []byte) error {
			row, err := user.ReadRow(value)
			all = append(all, row.View().Units...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// owed are the units that were sold, are paid after the fact, and have not ended.
func owed(m *market.Market) map[string]protocol.Slot {
	all := map[string]protocol.Slot{}
	for _, s := range m.Sites() {
		for _, l := range s.Host.Role().(*resource.Role).Reservations() {
			if (l.State == "sold" || l.State == "reported") && l.Mode != "" && l.Mode != protocol.ModeOnReservation && l.Paid == "" {
				all[s.Host.Name+" "+l.ID] = l.Slot
			}
		}
	}
	return all
}
