package market

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents/resource/launch"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// orderNext has a user order again and again, at random, until the market is calm.
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

// order places an order, unless the agent is down.
func (m *Market) order(u *User) {
	id := fmt.Sprintf("%s-%d", u.Host.Name, len(u.bought)+1)
	mode := m.cfg.drawMode(u.chance)
	same := len(u.bought)%togetherEvery == togetherEvery-1
	doc, err := draw(u.chance, u.Host.Now(), m.cfg.Units, mode, m.cfg.later(), same)
	if err != nil {
		panic(fmt.Sprintf("market: order %s: %v", id, err))
	}
	if same {
		m.together[sha256.Sum256(doc)] = true
	}
	buy := message.Buy{ID: id, Name: id, Document: doc, Options: message.Options{Rounds: u.chance.N(5), Mode: mode}}
	buy.Program = m.program(u, mode)
	if m.World.Order(u.Host, buy) {
		m.orders++
		u.bought = append(u.bought, id)
	}
}

// togetherEvery is how many orders of a user pass until one whose units must begin together.
const togetherEvery = 3

// draw draws a user's request: units, cores and a window, which is soon if the run must
// see the slots end. Windows of units that must begin together begin together.
func draw(c sim.Chance, now time.Time, units int, mode protocol.Mode, soon, same bool) ([]byte, error) {
	now = now.Truncate(time.Minute)
	d := rfql.Draft{SameStart: same}
	hours := 4
	if soon {
		hours = 1
	}
	for range 1 + c.N(units) {
		contract := drawContract(c, mode)
		from := now.Add(time.Duration(10+c.N(hours*60)) * time.Minute)
		if same && len(d.Requests) > 0 {
			from = d.Requests[0].NotBefore
		}
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

// cancel cancels one of a user's latest orders, or a unit of it.
func (m *Market) cancel(u *User) {
	if len(u.bought) == 0 {
		return
	}
	id := u.bought[len(u.bought)-1-u.chance.N(min(5, len(u.bought)))]
	row, _ := u.Host.Disk().Get(user.TablePurchases, id) // it is in memory: no error
	if m.World.Order(u.Host, message.CancelPurchase{ID: id, Unit: u.chance.N(m.cfg.Units+1) - 1, Row: row}) {
		m.cancels++
	}
}

// owner is the person behind a user agent. It approves every other set that needs approval.
type owner struct{ user *User }

// Receive takes progress reports.
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

// launchesOf allows every user to run anything on a site.
func launchesOf(site string) launch.Config {
	return launch.Config{Address: site, Root: "/jobs", Policy: launch.Policy{
		Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {Commands: true}},
	}}
}

// program draws the program of an order; nil: it runs nothing.
func (m *Market) program(u *User, mode protocol.Mode) *message.Program {
	if mode == protocol.ModeOnCompletion || !u.runs.Of(m.cfg.Launches) {
		return nil
	}
	return &message.Program{Command: []string{"/bin/job"}}
}

// control sometimes has an owner control one of its latest programs.
func (m *Market) control(u *User) {
	if m.cfg.Launches == 0 || len(u.bought) == 0 || u.runs.N(5) > 0 {
		return
	}
	verbs := []message.LaunchVerb{message.VerbKill, message.VerbSuspend, message.VerbResume, message.VerbStatus}
	id := u.bought[len(u.bought)-1-u.runs.N(min(5, len(u.bought)))]
	m.World.Order(u.Host, message.RunControl{ID: id, Verb: verbs[u.runs.N(len(verbs))]})
}
