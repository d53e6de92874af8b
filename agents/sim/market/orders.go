package market

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// orderNext lets a user order again and again, at random, while there are faults.
func (m *Market) orderNext(u *User) {
	if m.cfg.Rate == 0 {
		return
	}
	m.World.After(u.chance.Waiting(time.Duration(float64(time.Hour)/m.cfg.Rate)), func() {
		if m.calm {
			return
		}
		m.order(u)
		if u.chance.N(10) == 0 {
			m.cancel(u)
		}
		m.control(u)
		m.orderNext(u)
	})
}

// order buys something. An owner whose agent is down tries again next time.
func (m *Market) order(u *User) {
	id := fmt.Sprintf("%s-%d", u.Host.Name, len(u.bought)+1)
	mode := m.cfg.drawMode(u.chance)
	doc, err := draw(u.chance, u.Host.Now(), m.cfg.Units, mode, m.cfg.later())
	if err != nil {
		panic(fmt.Sprintf("market: order %s: %v", id, err))
	}
	buy := message.Buy{ID: id, Name: id, Document: doc, Options: message.Options{Rounds: 1 + u.chance.N(4), Mode: mode}}
	buy.Program = m.program(u, mode)
	if m.tell(u, buy) {
		m.orders++
		u.bought = append(u.bought, id)
	}
}

func (m *Market) tell(u *User, body protocol.Body) bool {
	return m.World.Tell(u.Host, protocol.Message{
		Performative: protocol.Request, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{u.Host.ID()},
		Protocol: protocol.ProtocolControl, Body: body,
	})
}

// draw draws what a user wants: some units, of some cores, in a window; soon, if
// somebody is to see them end.
func draw(c sim.Chance, now time.Time, units int, mode protocol.Mode, soon bool) ([]byte, error) {
	now = now.Truncate(time.Minute)
	var d rfql.Draft
	hours := 4
	if soon {
		hours = 1
	}
	for range 1 + c.N(units) {
		contract := drawContract(c, mode)
		from := now.Add(time.Duration(10+c.N(hours*60)) * time.Minute)
		wall := time.Duration(10+c.N(max(1, hours-1)*60)) * time.Minute
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Price: protocol.Credits(15+c.N(60)) * protocol.Credit, TotalCores: 1 << c.N(8),
			Contract: contract, NotBefore: from, End: from.Add(wall + time.Duration(c.N(30*hours))*time.Minute), Wall: wall,
		})
	}
	doc, err := rfql.Check(d, now)
	if err != nil {
		return nil, err
	}
	return doc.XML(), nil
}

// cancel cancels a unit of one of a user's last orders, or all of it.
func (m *Market) cancel(u *User) {
	if len(u.bought) == 0 {
		return
	}
	id := u.bought[len(u.bought)-1-u.chance.N(min(5, len(u.bought)))]
	row := u.Host.Disk().Get(user.TablePurchases, id)
	if m.tell(u, message.CancelPurchase{ID: id, Unit: u.chance.N(m.cfg.Units+1) - 1, Row: row}) {
		m.cancels++
	}
}

// owner is the person behind a user agent: it hears of progress, and approves
// every other set that asks for approval.
type owner struct{ user *User }

// Receive hears of progress.
func (o *owner) Receive(_ time.Time, m protocol.Message) []sim.Later {
	p, ok := m.Body.(message.Progress)
	if !ok || p.Event != "approval" {
		return nil
	}
	answer := protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{o.user.Host.ID()},
		Protocol: protocol.ProtocolControl, Body: message.Approval{ID: p.Purchase.ID, Yes: o.user.chance.N(2) == 0},
	}
	return []sim.Later{{After: o.user.chance.Around(20 * time.Second), Message: answer}}
}

// Advance has nothing to do.
func (o *owner) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }
