package resource

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ramp/agents/resource/federation"
	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// TableFederated has the reservation of the cores that the site gives to its federation.
const TableFederated = "federation-claim"

// The cores of a federation are reserved in the batch system, one reservation after the
// other, so that nobody sells them.
const (
	claimPrefix = "federation-"
	claimKey    = "claim"
	claimLength = 30 * 24 * time.Hour
	claimAgain  = 30 * time.Second // until a reservation is asked for again
)

// federated is the site's part in a federation (003): its jobs run in the cores that the
// site has given to it, by the same launches as the programs in sold slots.
type federated struct {
	cfg      federation.Config
	self     protocol.AgentID
	site     *federation.Site
	launches launch.Waits // set once they are made
	claim    claimed
	askAt    time.Time
}

// claimed is the record of a reservation.
type claimed struct {
	ID      string        `json:"id"`
	Slot    protocol.Slot `json:"slot"`
	Granted bool          `json:"-"`
}

func newFederated(cfg federation.Config, self protocol.AgentID, tables protocol.Tables) (*federated, error) {
	if cfg.Modules == 0 {
		return nil, nil
	}
	f := &federated{cfg: cfg, self: self}
	f.cfg.Self = self
	value, err := tables.Get(TableFederated, claimKey)
	if err == nil && value != nil {
		if err = json.Unmarshal(value, &f.claim); err != nil {
			err = fmt.Errorf("journal: table %s: %w", TableFederated, err)
		}
	}
	return f, err
}

// begin restores the jobs once the launches are there.
func (f *federated) begin(now time.Time, launches *launch.Site, tables protocol.Tables) (protocol.Output, error) {
	if f == nil {
		return protocol.Output{}, nil
	}
	f.launches = launch.Waits{Site: launches}
	var out protocol.Output
	var err error
	if f.site, out, err = federation.New(f.cfg, f, tables, now); err != nil {
		return out, err
	}
	return out.Join(f.site.Resize(now, 0)).Join(f.ask(now)).Join(f.follow(now)), nil
}

// ask asks the batch system for the cores, until it has granted them.
func (f *federated) ask(now time.Time) protocol.Output {
	var out protocol.Output
	if !f.claim.Slot.End.After(now) {
		start := now.Truncate(time.Second)
		f.claim = claimed{ID: fmt.Sprintf("%s%d", claimPrefix, start.Unix()), Slot: protocol.Slot{Start: start, End: start.Add(claimLength), Cores: f.cfg.Modules}}
		value, err := json.Marshal(f.claim)
		if err != nil {
			panic(fmt.Sprintf("resource: %T cannot be encoded: %v", f.claim, err)) // an ID and a slot
		}
		out.Save = []protocol.Record{{Table: TableFederated, Key: claimKey, Value: value}}
	}
	f.askAt = now.Add(claimAgain)
	return out.Join(f.queue(message.Reserve{ID: f.claim.ID, Slot: f.claim.Slot})).Join(protocol.Output{WakeAt: f.askAt})
}

func (f *federated) queue(body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.Request, Sender: f.self, Receivers: []protocol.AgentID{protocol.LocalQueue}, Protocol: protocol.ProtocolQueue, Body: body,
	}}}
}

// receive takes what is about the federation; false: it is for the market.
func (f *federated) receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	if f == nil {
		return protocol.Output{}, false
	}
	if b, ok := m.Body.(message.Reserved); ok && m.Sender == protocol.LocalQueue && strings.HasPrefix(b.ID, claimPrefix) {
		f.claim.Granted = b.OK
		return f.site.Resize(now, f.modules()), true
	}
	return f.site.Receive(now, m)
}

// meet hears of a member's rules.
func (f *federated) meet(from protocol.AgentID, p message.Presence) {
	if f != nil && p.Agent == protocol.KindResource {
		f.site.Meet(from, p.Federation)
	}
}

// modules are the cores that the batch system has granted.
func (f *federated) modules() int {
	if f.claim.Granted {
		return f.cfg.Modules
	}
	return 0
}

func (f *federated) wake(now time.Time) protocol.Output {
	if f == nil {
		return protocol.Output{}
	}
	out := f.site.Wake(now)
	if over := !f.claim.Slot.End.After(now); over || !f.claim.Granted && !now.Before(f.askAt) {
		f.claim.Granted = f.claim.Granted && !over
		return out.Join(f.ask(now))
	}
	if !f.claim.Granted {
		out.WakeAt = protocol.Earlier(out.WakeAt, f.askAt)
	}
	return out
}

// foreign marks the federation's own reservation as somebody else's, so that the market
// neither sells its cores nor frees them.
func foreign(q message.QueueChanged) message.QueueChanged {
	list := make([]message.QueueReservation, len(q.Reservations))
	for i, r := range q.Reservations {
		r.Mine = r.Mine && !strings.HasPrefix(r.ID, claimPrefix)
		list[i] = r
	}
	q.Reservations = list
	return q
}

// follow reports to the federation how its launches stand.
func (f *federated) follow(now time.Time) protocol.Output {
	if f == nil {
		return protocol.Output{}
	}
	var out protocol.Output
	for _, r := range f.site.Runs() {
		_, status, ok := f.launches.State(unitOf(r.Contract))
		if !ok {
			continue
		}
		switch {
		case status.Stage == message.StageReady && r.State == message.JobStaging:
			out = out.Join(f.site.Staged(now, r.Contract))
		case status.Stage == message.StageReady && r.State == message.JobRunning: // a crash has lost the order
			out = out.Join(f.Begin(now, r))
		case status.Stage == message.StageFailed:
			out = out.Join(f.site.Never(now, r.Contract, status.Why))
		case status.Job.State != "":
			out = out.Join(f.site.Heard(now, r.Contract, status.Job))
		}
	}
	return out
}

// unitOf names the unit of a job of the federation among those that are sold.
func unitOf(contract protocol.ContractID) string { return claimPrefix + string(contract)[:32] }

// Stage implements federation.Works, like the three below. The job's owner brings its
// input when it launches.
func (f *federated) Stage(time.Time, federation.Run) protocol.Output { return protocol.Output{} }

func (f *federated) Begin(now time.Time, r federation.Run) protocol.Output {
	slot := protocol.Slot{Start: now, End: now.Add(r.Terms.Wall), Cores: r.Got}
	return f.launches.Begin(now, unitOf(r.Contract), slot, f.claim.ID)
}

func (f *federated) Signal(_ time.Time, r federation.Run, verb message.JobSignal) protocol.Output {
	return f.launches.Signal(unitOf(r.Contract), verb)
}

func (f *federated) Drop(_ time.Time, r federation.Run) protocol.Output {
	return f.launches.Drop(unitOf(r.Contract))
}

// units are the sold units, and the jobs of a federation, which nobody bought.
type units struct {
	sold *reserve.Participant
	fed  *federated
}

func (u units) Unit(id protocol.ContractID, unit int) (reserve.Unit, bool) {
	if u.fed != nil && u.fed.site != nil && unit == 0 {
		if r, ok := u.fed.site.Find(id); ok && r.Home != "" {
			return u.fed.unit(r), true
		}
		if owner, ok := u.fed.site.Taken(id); ok {
			return reserve.Unit{User: owner, State: reserve.ClaimCountersigned}, true
		}
	}
	return u.sold.Unit(id, unit)
}

// unit shows a job as a unit: until it begins, its slot is as long as its input may take.
func (f *federated) unit(r federation.Run) reserve.Unit {
	u := reserve.Unit{
		User: r.Owner, Reservation: unitOf(r.Contract), State: reserve.ClaimSold, Units: 1, Waits: true, Batch: f.claim.ID,
		Slot: protocol.Slot{Start: r.Sold, End: r.Sold.Add(message.MaxJobWall), Cores: max(1, r.Got, r.Terms.Least)},
	}
	if r.State == message.JobReturned {
		u.State = reserve.ClaimFreed
	}
	return u
}

// FederationOf is a site's part in a federation; nil: it is in none.
func FederationOf(r *Role) *federation.Site {
	if r.fed == nil {
		return nil
	}
	return r.fed.site
}
