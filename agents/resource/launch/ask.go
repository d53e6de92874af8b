package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// launch takes a request to run a program in a unit.
func (s *Site) launch(now time.Time, m protocol.Message, l message.Launch) protocol.Output {
	asked := fingerprint(l)
	if j := s.byKey[key{m.Sender, l.Contract, l.Unit, l.ID}]; j != nil {
		if j.Asked != asked && !j.early() {
			return s.refuse(m, no(protocol.CodeMismatch, "launch "+l.ID+" is there already, with another program"))
		}
		return s.answer(m, protocol.Agree, j)
	}
	u, why := s.unit(now, m.Sender, l.Contract, l.Unit)
	if why != nil {
		return s.refuse(m, why)
	}
	if why := s.full(l); why != nil {
		return s.refuse(m, why)
	}
	argv, account, why := s.cfg.Policy.filled().admit(m.Sender, l)
	if why != nil {
		return s.refuse(m, why)
	}
	j := s.newJob(m, u, key{m.Sender, l.Contract, l.Unit, l.ID})
	if l.Place.Units > 0 {
		j.Place, j.Units = l.Place.Number, l.Place.Units
	}
	j.Asked, j.Argv, j.Account, j.Inputs, j.Missing = asked, argv, account, l.Inputs, len(l.Inputs)
	j.become(message.StageStaging)
	s.add(j)
	return s.save(j).Join(s.prepare(now, j)).Join(s.answer(m, protocol.Agree, j))
}

// newJob is the next launch of a unit.
func (s *Site) newJob(m protocol.Message, u reserve.Unit, k key) *job {
	number := s.units[unitKey{k.contract, k.unit}] + 1
	return &job{
		ID: jobID(u.Reservation, number), User: k.user, Conversation: m.Conversation, Contract: k.contract, Unit: k.unit,
		Units: u.Units, Launch: k.id, Number: number, Reservation: u.Reservation, Slot: u.Slot,
	}
}

// prepare asks for the job's directory, again and again until its inputs are
// there: nobody else tells if that was lost.
func (s *Site) prepare(now time.Time, j *job) protocol.Output {
	j.backOff(now)
	return s.files(message.Prepare{Job: j.ID, Inputs: j.Inputs}).Join(wake(j.due()))
}

// unit looks up what a buyer wants to run in. That it is not settled yet may be
// because the buyer heard of it first: it asks again.
func (s *Site) unit(now time.Time, user protocol.AgentID, contract protocol.ContractID, unit int) (reserve.Unit, *protocol.Reason) {
	u, ok := s.sold.Unit(contract, unit)
	switch {
	case !ok:
		return u, no(protocol.CodeUnknown, fmt.Sprintf("no unit %d of contract %.8s here", unit+1, contract))
	case u.User != user:
		return u, no(protocol.CodeForbidden, "the contract was signed by another")
	case u.State == reserve.ClaimCountersigned:
		return u, no(protocol.CodeUnavailable, "the contract is not settled yet")
	case u.Reported:
		return u, no(protocol.CodeExpired, "how the unit ended was reported to the bank")
	case u.State != reserve.ClaimSold:
		return u, no(protocol.CodeExpired, "the unit is "+string(u.State))
	case !now.Before(u.Slot.End):
		return u, no(protocol.CodeExpired, "the slot was over at "+u.Slot.End.Format(time.RFC3339))
	}
	return u, nil
}

// full says why a unit takes no further launch.
func (s *Site) full(l message.Launch) *protocol.Reason {
	for _, j := range s.jobs { // in any order: at most one is not over
		if j.Contract == l.Contract && j.Unit == l.Unit && !j.Stage.Over() {
			return no(protocol.CodeLimit, "the unit has launch "+j.Launch+", which is "+string(j.Stage))
		}
	}
	return s.tooMany(l.Contract, l.Unit)
}

func (s *Site) tooMany(contract protocol.ContractID, unit int) *protocol.Reason {
	switch {
	case s.units[unitKey{contract, unit}] >= MaxPerUnit:
		return no(protocol.CodeLimit, fmt.Sprintf("the unit had %d launches", MaxPerUnit))
	case len(s.jobs) >= MaxLaunches:
		return no(protocol.CodeLimit, fmt.Sprintf("%d launches are remembered here", MaxLaunches))
	}
	return nil
}

// fingerprint is the same for the same request.
func fingerprint(l message.Launch) string {
	b, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("launch: %v", err)) // strings and numbers only
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *Site) refuse(m protocol.Message, why *protocol.Reason) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(s.cfg.Self, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{*why}})}}
}

func (s *Site) answer(m protocol.Message, p protocol.Performative, j *job) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(s.cfg.Self, p, s.status(j))}}
}

// status is how a launch stands, in the buyer's words.
func (s *Site) status(j *job) message.LaunchStatus {
	return message.LaunchStatus{
		Contract: j.Contract, Unit: j.Unit, ID: j.Launch, Stage: j.Stage, Address: s.cfg.Address, Missing: j.Missing,
		Job: j.Status, Outputs: j.Outputs, Keep: j.Keep, Why: j.Why,
	}
}

// obey does what the buyer asks of a launch, and answers how it stands.
func (s *Site) obey(now time.Time, m protocol.Message, o message.LaunchOrder) protocol.Output {
	j := s.byKey[key{m.Sender, o.Contract, o.Unit, o.ID}]
	if j == nil && o.Verb == message.VerbKill {
		return s.killEarly(now, m, o)
	}
	if j == nil {
		return s.refuse(m, no(protocol.CodeUnknown, "no launch "+o.ID+" of yours here"))
	}
	var out protocol.Output
	switch o.Verb {
	case message.VerbJoin:
		out = s.join(j, o.Peers)
	case message.VerbKill:
		out = s.kill(now, j)
	case message.VerbSuspend, message.VerbResume:
		if j.Stage != message.StageSubmitted {
			return s.refuse(m, no(protocol.CodeExpired, "launch "+o.ID+" does not run, it is "+string(j.Stage)))
		}
		out = s.signal(j, message.JobSignal(o.Verb))
	}
	return out.Join(s.answer(m, protocol.Inform, j))
}

// join tells a launch where the units of its run are. The last word before it is
// submitted counts, since one of them may have been bought again; after that the
// program may have it already.
func (s *Site) join(j *job, peers []message.Peer) protocol.Output {
	late := j.submitted() || j.Stage == message.StageCollecting || j.Stage.Over()
	if late || len(peers) != j.Units || slices.Equal(j.Peers, peers) {
		return protocol.Output{}
	}
	j.Peers = peers
	if j.Stage == message.StageGathering {
		j.become(message.StageReady)
	}
	return s.save(j).Join(wake(j.due()))
}

// kill ends a launch: before it began there is nothing to end.
func (s *Site) kill(now time.Time, j *job) protocol.Output {
	switch {
	case j.Stage == message.StageCollecting || j.Stage.Over():
		return protocol.Output{}
	case !j.submitted():
		return s.fail(now, j, "killed before it began")
	case j.Killed:
		return s.stop(j)
	}
	j.Killed = true // the batch system may not have it yet, or not hear this
	if j.Stage == message.StageSubmitted {
		j.retryAt = now.Add(stopPeriod)
	}
	return s.save(j).Join(s.stop(j)).Join(wake(j.due()))
}

// killEarly takes the end of a launch that has overtaken it: what comes later must
// not begin, since its buyer was told that it did not.
func (s *Site) killEarly(now time.Time, m protocol.Message, o message.LaunchOrder) protocol.Output {
	u, why := s.unit(now, m.Sender, o.Contract, o.Unit)
	if why == nil {
		why = s.tooMany(o.Contract, o.Unit)
	}
	if why != nil {
		return s.refuse(m, why)
	}
	j := s.newJob(m, u, key{m.Sender, o.Contract, o.Unit, o.ID})
	j.Why, j.Keep = "killed before it was launched", now.Add(s.cfg.Keep)
	j.become(message.StageFailed)
	s.add(j)
	return s.save(j).Join(s.answer(m, protocol.Inform, j)).Join(wake(j.due()))
}

func (s *Site) signal(j *job, verb message.JobSignal) protocol.Output {
	return s.queue(protocol.Request, message.Signal{ID: j.ID, Verb: verb})
}

// environment is what a program is told of its place in the purchase.
func (s *Site) environment(j *job) []string {
	place := j.Unit + 1
	if j.Place > 0 {
		place = j.Place
	}
	env := []string{
		"RAMP_LAUNCH=" + j.Launch, "RAMP_CONTRACT=" + string(j.Contract), "RAMP_UNIT=" + strconv.Itoa(place),
		"RAMP_CORES=" + strconv.Itoa(j.Slot.Cores), "RAMP_UNITS=" + strconv.Itoa(j.Units),
		"RAMP_START=" + strconv.FormatInt(j.Slot.Start.Unix(), 10), "RAMP_END=" + strconv.FormatInt(j.Slot.End.Unix(), 10),
		"RAMP_ADDRESS=" + s.cfg.Address,
	}
	for _, p := range j.Peers {
		n := strconv.Itoa(p.Unit + 1)
		env = append(env,
			"RAMP_UNIT_"+n+"_ADDRESS="+p.Address, "RAMP_UNIT_"+n+"_CORES="+strconv.Itoa(p.Cores),
			"RAMP_UNIT_"+n+"_START="+strconv.FormatInt(p.Start.Unix(), 10), "RAMP_UNIT_"+n+"_END="+strconv.FormatInt(p.End.Unix(), 10))
	}
	return env
}
