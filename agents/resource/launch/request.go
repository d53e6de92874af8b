package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// launch takes a request to run a program in a unit.
func (s *Site) launch(now time.Time, m protocol.Message, l message.Launch) protocol.Output {
	asked, k := fingerprint(l), key{m.Sender, l.Contract, l.Unit, l.ID}
	if j := s.jobs.byKey[k]; j != nil {
		if j.Asked != asked && !j.early() {
			return s.composer.refuse(m, no(protocol.CodeMismatch, "launch "+l.ID+" exists already, with another program"))
		}
		return s.composer.answer(m, protocol.Agree, j)
	}
	u, why := s.unit(now, m.Sender, l.Contract, l.Unit)
	if why != nil {
		return s.composer.refuse(m, why)
	}
	if why := s.jobs.full(u.Reservation); why != nil {
		return s.composer.refuse(m, why)
	}
	argv, account, why := s.cfg.Policy.filled().admit(m.Sender, l)
	if why != nil {
		return s.composer.refuse(m, why)
	}
	j := s.jobs.next(now, m, u, k)
	if l.Place.Units > 0 {
		j.Place, j.Units = l.Place.Number, l.Place.Units
	}
	j.Last, j.Waits, j.Batch = l.Last, u.Waits, u.Batch
	j.Asked, j.Argv, j.Account, j.Pool, j.Inputs, j.Missing = asked, argv, account.User, account.Pool, l.Inputs, len(l.Inputs)
	j.become(message.StageStaging)
	s.jobs.add(j)
	return s.jobs.save(j).Join(s.prepare(now, j)).Join(s.composer.answer(m, protocol.Agree, j))
}

// prepare asks for the job's directory until all inputs have arrived: the answer may be lost.
func (s *Site) prepare(now time.Time, j *job) protocol.Output {
	j.backOff(now)
	return s.composer.files(message.Prepare{Job: j.ID, Inputs: j.Inputs}).Join(wake(j.due()))
}

// unit looks up the unit of a launch, or says why the buyer may not use it. A buyer
// may hear of the settlement before its seller does, and asks again.
func (s *Site) unit(now time.Time, user protocol.AgentID, contract protocol.ContractID, unit int) (reserve.Unit, *protocol.Reason) {
	u, ok := s.sold.Unit(contract, unit)
	switch {
	case !ok:
		return u, no(protocol.CodeUnknown, fmt.Sprintf("no unit %d of contract %.8s here", unit+1, contract))
	case u.User != user:
		return u, no(protocol.CodeForbidden, "another buyer signed the contract")
	case u.State == reserve.ClaimCountersigned:
		return u, no(protocol.CodeUnavailable, "the contract is not settled yet")
	case u.Reported:
		return u, no(protocol.CodeExpired, "the end of the unit was reported to the bank")
	case u.State != reserve.ClaimSold:
		return u, no(protocol.CodeExpired, "the unit is "+string(u.State))
	case !now.Before(u.Slot.End):
		return u, no(protocol.CodeExpired, "the slot ended at "+u.Slot.End.UTC().Format(time.RFC3339))
	}
	return u, nil
}

// fingerprint is equal for equal requests.
func fingerprint(l message.Launch) string {
	b, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("launch: %v", err)) // strings and numbers only
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// obey carries out an order about a launch, and answers with its status.
func (s *Site) obey(now time.Time, m protocol.Message, o message.LaunchOrder) protocol.Output {
	k := key{m.Sender, o.Contract, o.Unit, o.ID}
	j := s.jobs.byKey[k]
	switch {
	case o.Verb == message.VerbRelease:
		return s.release(now, m, k)
	case j == nil && o.Verb == message.VerbKill:
		j, why := s.early(now, m, k, "killed before it was launched")
		if why != nil {
			return s.composer.refuse(m, why)
		}
		return s.jobs.save(j).Join(s.composer.answer(m, protocol.Inform, j)).Join(wake(j.due()))
	case j == nil:
		return s.composer.refuse(m, no(protocol.CodeUnknown, "you have no launch "+o.ID+" here"))
	}
	var out protocol.Output
	switch o.Verb {
	case message.VerbDiscard:
		if !j.Stage.Over() && !j.withheld() {
			return s.composer.refuse(m, no(protocol.CodeExpired, "launch "+o.ID+" is not over, it is "+string(j.Stage)))
		}
		out = s.jobs.discard(j).Join(s.composer.files(message.Discard{Job: j.ID})).Join(wake(j.due()))
	case message.VerbJoin:
		out = s.join(j, o.Peers)
	case message.VerbKill:
		out = s.kill(now, j)
	case message.VerbSuspend, message.VerbResume:
		if j.Stage != message.StageSubmitted {
			return s.composer.refuse(m, no(protocol.CodeExpired, "launch "+o.ID+" is not running, it is "+string(j.Stage)))
		}
		out = s.composer.signal(j, message.JobSignal(o.Verb))
	}
	return out.Join(s.composer.answer(m, protocol.Inform, j))
}

// join gives a launch the addresses of the units of its run. Later orders replace
// earlier ones until the job is submitted, since a unit may have been bought again.
func (s *Site) join(j *job, peers []message.Peer) protocol.Output {
	late := j.submitted() || j.Stage == message.StageCollecting || j.Stage.Over()
	if late || len(peers) != j.Units || slices.Equal(j.Peers, peers) {
		return protocol.Output{}
	}
	j.Peers = peers
	if j.Stage == message.StageGathering {
		j.become(message.StageReady)
	}
	return s.jobs.save(j).Join(wake(j.due()))
}

// kill ends a launch; one that has not been submitted fails.
func (s *Site) kill(now time.Time, j *job) protocol.Output {
	switch {
	case j.Stage == message.StageCollecting || j.Stage.Over():
		return protocol.Output{}
	case !j.submitted():
		return s.fail(now, j, "killed before it began")
	case j.Killed:
		return s.stop(j)
	}
	j.Killed = true // saved: the batch system may miss this signal
	if j.Stage == message.StageSubmitted {
		j.retryAt = now.Add(stopPeriod)
	}
	return s.jobs.save(j).Join(s.stop(j)).Join(wake(j.due()))
}

// release ends a unit in which nothing runs. The caller settles its usage, see Released.
func (s *Site) release(now time.Time, m protocol.Message, k key) protocol.Output {
	u, _ := s.sold.Unit(k.contract, k.unit) // without it there is no launch either, or its end is reported
	for _, x := range s.jobs.in(u.Reservation) {
		if x.User == m.Sender && !x.Stage.Over() && x.Stage != message.StageCollecting {
			return s.composer.refuse(m, no(protocol.CodeExpired, "launch "+x.Launch+" is not over, it is "+string(x.Stage)))
		}
	}
	j := s.jobs.byKey[k]
	var out protocol.Output
	switch {
	case j == nil:
		var why *protocol.Reason
		if j, why = s.early(now, m, k, "the unit was released"); why != nil {
			return s.composer.refuse(m, why)
		}
		j.Released = true
		out = s.jobs.discard(j).Join(wake(j.due()))
	case !j.Released:
		j.Released = true
		out = s.jobs.save(j).Join(wake(j.due()))
	}
	return out.Join(s.composer.answer(m, protocol.Inform, j))
}

// early makes a failed launch for an order that has overtaken its launch, or says why it does
// not. The launch must not begin when it arrives, since its buyer has been informed that it
// did not. The caller saves it.
func (s *Site) early(now time.Time, m protocol.Message, k key, failed string) (*job, *protocol.Reason) {
	u, why := s.unit(now, m.Sender, k.contract, k.unit)
	if why == nil {
		why = s.jobs.tooMany(u.Reservation)
	}
	if why != nil && why.Code == protocol.CodeExpired { // it will never begin, also if this site has forgotten it
		why = no(protocol.CodeUnknown, "you have no launch "+k.id+" here, and "+why.Note)
	}
	if why != nil {
		return nil, why
	}
	j := s.jobs.next(now, m, u, k)
	j.Why, j.Keep = failed, now.Add(s.cfg.Keep)
	j.become(message.StageFailed)
	s.jobs.add(j)
	return j, nil
}
