package resource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents/resource/federation"
	"ramp/agents/resource/launch"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// TableFederated has the reservation that was last asked for, for the site's federation.
const TableFederated = "federation-claim"

// The cores of a federation are reserved in the batch system far ahead, one claim after the
// other. Where cores were sold before, a claim is shorter, or else smaller.
const (
	claimPrefix = "federation-"
	claimKey    = "claim"
	claimAhead  = federation.MaxClaim / 2
	claimSmall  = federation.MaxClaim >> 4 // of one without all cores: the next one may have them
	claimLeast  = federation.MaxClaim >> 10
	claimAgain  = 30 * time.Second // until a request is repeated
	claimPause  = 5 * time.Minute  // after no core was free
)

// federated is the site's part in a federation (003): its jobs run in the cores that the
// site has given to it, by the same launches as the programs in sold slots.
type federated struct {
	cfg      federation.Config
	self     protocol.AgentID
	site     *federation.Site
	launches launch.Waits // set once they are made
	known    bool         // the batch system has listed the claims
	claims   []claimed    // in order of start
	listed   []claimed    // those in the batch system's last state
	asked    claimed      // Granted: nothing is asked for
	askAt    time.Time
	why      string // the last request was refused
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
		if err = json.Unmarshal(value, &f.asked); err != nil {
			err = fmt.Errorf("journal: table %s: %w", TableFederated, err)
		}
	}
	if f.asked.Slot.Cores != cfg.Modules {
		f.asked = claimed{} // the configuration has changed
	}
	return f, err
}

// begin restores the jobs once the launches are there. They keep their modules until the
// batch system lists the claims.
func (f *federated) begin(now time.Time, launches *launch.Site, tables protocol.Tables) (out protocol.Output, err error) {
	if f == nil {
		return out, nil
	}
	f.launches = launch.Waits{Site: launches}
	cfg := f.cfg
	cfg.Modules = 0
	if f.site, out, err = federation.New(cfg, f, tables, now); err != nil {
		return out, err
	}
	return out.Join(f.follow(now)), nil
}

// turn gives the federation the present claim's cores, and asks for the claim after the last one
// in time.
func (f *federated) turn(now time.Time) (out protocol.Output) {
	if !f.known {
		return out
	}
	present, start := f.present(now), now.Truncate(time.Second)
	out = f.site.Resize(now, min(present.Slot.Cores, f.cfg.Modules), present.Slot.End)
	change := present.Slot.End
	for _, c := range f.claims {
		if c.Slot.Start.After(start) { // there is a gap before it
			change = protocol.Earlier(change, c.Slot.Start)
			break
		}
		start = protocol.Later(start, c.Slot.End)
	}
	switch {
	case now.Before(f.askAt):
	case !f.asked.Granted && f.asked.Slot.End.After(now): // no answer has come
		out = out.Join(f.request(now))
	case start.Sub(now) <= claimAhead:
		out = out.Join(f.form(now, start, federation.MaxClaim, f.cfg.Modules))
	default:
		change = protocol.Earlier(change, start.Add(-claimAhead))
	}
	if f.askAt.After(now) {
		change = protocol.Earlier(change, f.askAt)
	}
	out.WakeAt = protocol.Earlier(out.WakeAt, change)
	return out
}

// present is the claim of an instant, or nothing.
func (f *federated) present(now time.Time) claimed {
	for _, c := range f.claims {
		if c.Slot.End.After(now) && !c.Slot.Start.After(now) {
			return c
		}
	}
	return claimed{}
}

// form asks for a claim that ends before the next one begins. No two have one ID: an answer is
// about one.
func (f *federated) form(now, start time.Time, wall time.Duration, cores int) protocol.Output {
	end := start.Add(wall)
	for _, c := range f.claims {
		if c.Slot.Start.After(start) {
			end = protocol.Earlier(end, c.Slot.Start)
		}
	}
	f.asked = claimed{ID: fmt.Sprintf("%s%d-%d-%d", claimPrefix, start.Unix(), end.Unix(), cores), Slot: protocol.Slot{Start: start, End: end, Cores: cores}}
	return protocol.Output{Save: []protocol.Record{row(TableFederated, claimKey, f.asked)}}.Join(f.request(now))
}

func (f *federated) request(now time.Time) protocol.Output {
	f.askAt = now.Add(claimAgain)
	return f.queue(message.Reserve{ID: f.asked.ID, Slot: f.asked.Slot})
}

// answered takes the batch system's answer about a claim. After a refusal a shorter one is asked
// for, and in the end one with the cores that are free.
func (f *federated) answered(now time.Time, b message.Reserved) protocol.Output {
	slot, busy := f.asked.Slot, b.Reason.Code == protocol.CodeBusy
	start, small := protocol.Later(slot.Start, now.Truncate(time.Second)), claimSmall
	if !slot.Start.After(now) { // what runs now may end soon
		small = claimLeast
	}
	switch wall := slot.Wall(); {
	case b.ID != f.asked.ID || f.asked.Granted:
		return protocol.Output{} // the batch system lists what it has granted
	case b.OK:
		f.asked.Granted, f.askAt, f.why = true, now, ""
		f.asked.Slot.Cores = b.Slot.Cores
		f.enter(f.asked)
		return f.turn(now)
	case busy && wall > claimLeast:
		return f.form(now, start, max(wall/4, claimLeast), slot.Cores)
	case busy && 0 < b.Reason.Free && b.Reason.Free < slot.Cores:
		return f.form(now, start, small, b.Reason.Free)
	}
	f.why = b.Reason.Note
	if b.Reason.Code != protocol.CodeUnavailable {
		f.asked, f.askAt = claimed{}, now.Add(claimPause) // the next one begins later
	}
	return protocol.Output{WakeAt: f.askAt}
}

func (f *federated) enter(claims ...claimed) {
	for _, c := range claims {
		f.claims = append(slices.DeleteFunc(f.claims, func(x claimed) bool { return x.ID == c.ID }), c)
	}
	slices.SortFunc(f.claims, func(a, b claimed) int { return a.Slot.Start.Compare(b.Slot.Start) })
}

func (f *federated) queue(body protocol.Body) protocol.Output { return toQueue(f.self, body) }

func toQueue(self protocol.AgentID, body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.Request, Sender: self, Receivers: []protocol.AgentID{protocol.LocalQueue}, Protocol: protocol.ProtocolQueue, Body: body,
	}}}
}

// receive takes what is about the federation; false: it is for the market.
func (f *federated) receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	if f == nil {
		return protocol.Output{}, false
	}
	if b, ok := m.Body.(message.Reserved); ok && m.Sender == protocol.LocalQueue && strings.HasPrefix(b.ID, claimPrefix) {
		return f.answered(now, b), true
	}
	return f.site.Receive(now, m)
}

// meet hears of a member's rules.
func (f *federated) meet(from protocol.AgentID, p message.Presence) {
	if f != nil && p.Agent == protocol.KindResource {
		f.site.Meet(from, p.Federation)
	}
}

func (f *federated) wake(now time.Time) protocol.Output {
	if f == nil {
		return protocol.Output{}
	}
	return f.site.Wake(now).Join(f.turn(now))
}

// foreign marks the federation's own reservations as somebody else's, so that the market
// neither sells their cores nor frees them. A long claim with another number of cores than is
// configured now is released once the site is idle, and so are those of a site that has left its
// federation. Nothing else suspends and resumes its launches then.
func (f *federated) foreign(now time.Time, self protocol.AgentID, q message.QueueChanged, launches *launch.Site) (message.QueueChanged, protocol.Output) {
	var out protocol.Output
	open, _ := launches.Open(claimPrefix)
	cores := 0
	var claims []claimed
	q.Reservations = slices.Clone(q.Reservations)
	for i, r := range q.Reservations {
		if !r.Mine || !strings.HasPrefix(r.ID, claimPrefix) {
			continue
		}
		switch q.Reservations[i].Mine = false; {
		case f == nil && open > 0:
			if !r.Slot.Start.After(now) {
				cores += r.Slot.Cores
			}
		case f == nil, r.Slot.Cores != f.cfg.Modules && r.Slot.Wall() > claimSmall && len(f.site.Runs()) == 0:
			out = out.Join(toQueue(self, message.Release{ID: r.ID}))
		default:
			claims = append(claims, claimed{r.ID, r.Slot, true})
		}
	}
	if f == nil {
		return q, out.Join(launch.Waits{Site: launches}.Fit(claimPrefix, cores))
	}
	f.claims, f.listed, f.known = nil, claims, true
	f.enter(claims...)
	return q, out.Join(f.turn(now)).Join(f.follow(now))
}

// keep takes the federation's cores out of a profile for good, also where there is no claim yet.
func (f *federated) keep(p *workload.Profile) *workload.Profile {
	if f == nil {
		return p
	}
	p.Add(p.From(), workload.Forever, -f.cfg.Modules)
	for _, c := range f.listed { // they are taken out already
		p.Add(c.Slot.Start.Unix(), ceil(c.Slot.End), min(c.Slot.Cores, f.cfg.Modules))
	}
	return p
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
		case status.Stage == message.StageReady && r.State == message.JobRunning && f.known: // a crash has lost the order
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
	return f.launches.Begin(now, unitOf(r.Contract), slot, f.present(now).ID)
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
		User: r.Owner, Reservation: unitOf(r.Contract), State: reserve.ClaimSold, Units: 1, Waits: true, Batch: claimPrefix,
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

// Shortage says why a site has fewer cores for its federation than are configured, or, having left
// it, for the market; empty: it has all.
func Shortage(r *Role, now time.Time) string {
	switch open, _ := r.launches.Open(claimPrefix); {
	case r.fed == nil && open > 0:
		return "the site has left it; its cores are sold again once its running jobs have ended"
	case r.fed == nil || r.fed.site.Modules() == r.fed.cfg.Modules:
		return ""
	}
	why := cmp.Or(r.fed.why, "the batch system has not granted them yet")
	if c := r.fed.present(now); c.Granted {
		why = "the others were sold or in use when these were reserved, until " + c.Slot.End.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%d of %d cores, because %s", r.fed.site.Modules(), r.fed.cfg.Modules, why)
}
