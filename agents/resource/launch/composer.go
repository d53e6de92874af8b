package launch

import (
	"cmp"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// composer writes the messages about launches.
type composer struct{ cfg Config }

func (c composer) spec(j *job) message.Job {
	home := ""
	if len(j.Pool) > 0 { // the next buyer has the account's own
		home = c.dir(j.ID) + "/tmp"
	}
	return message.Job{
		ID: j.ID, Reservation: cmp.Or(j.Batch, j.Reservation), Stretch: j.Batch != "", Slot: j.Slot, Argv: j.Argv, Env: c.environment(j), User: j.Account,
		Home: home, Dir: c.dir(j.ID), Memory: c.cfg.Policy.MemoryPerCore * int64(j.Slot.Cores), FileSize: c.cfg.Policy.filled().MaxOutput,
	}
}

func (c composer) dir(job string) string { return c.cfg.Root + "/" + job }

// environment describes to a program its place in the purchase.
func (c composer) environment(j *job) []string {
	place := j.Unit + 1
	if j.Place > 0 {
		place = j.Place
	}
	env := []string{
		"RAMP_LAUNCH=" + j.Launch, "RAMP_CONTRACT=" + string(j.Contract), "RAMP_UNIT=" + strconv.Itoa(place),
		"RAMP_CORES=" + strconv.Itoa(j.Slot.Cores), "RAMP_UNITS=" + strconv.Itoa(j.Units),
		"RAMP_START=" + strconv.FormatInt(j.Slot.Start.Unix(), 10), "RAMP_END=" + strconv.FormatInt(j.Slot.End.Unix(), 10),
		"RAMP_ADDRESS=" + c.cfg.Address,
	}
	for _, p := range j.Peers {
		n := strconv.Itoa(p.Unit + 1)
		env = append(env,
			"RAMP_UNIT_"+n+"_ADDRESS="+p.Address, "RAMP_UNIT_"+n+"_CORES="+strconv.Itoa(p.Cores),
			"RAMP_UNIT_"+n+"_START="+strconv.FormatInt(p.Start.Unix(), 10), "RAMP_UNIT_"+n+"_END="+strconv.FormatInt(p.End.Unix(), 10))
	}
	return env
}

func (c composer) status(j *job) message.LaunchStatus {
	s := message.LaunchStatus{
		Contract: j.Contract, Unit: j.Unit, ID: j.Launch, Stage: j.Stage, Address: c.cfg.Address, Missing: j.Missing,
		Job: j.Status, Outputs: j.Outputs, Keep: j.Keep, Why: j.Why,
	}
	if j.withheld() {
		s.Outputs, s.Keep, s.Why = nil, time.Time{}, "its outputs are delivered when its usage is agreed or decided"
	}
	return s
}

func (c composer) refuse(m protocol.Message, why *protocol.Reason) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(c.cfg.Self, protocol.Refuse, message.Refusal{Reasons: []protocol.Reason{*why}})}}
}

func (c composer) answer(m protocol.Message, p protocol.Performative, j *job) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(c.cfg.Self, p, c.status(j))}}
}

func (c composer) inform(j *job) protocol.Output {
	return c.send(j.User, protocol.Inform, protocol.ProtocolRequest, j.Conversation, c.status(j))
}

func (c composer) signal(j *job, verb message.JobSignal) protocol.Output {
	return c.queue(protocol.Request, message.Signal{ID: j.ID, Verb: verb})
}

func (c composer) queue(p protocol.Performative, body protocol.Body) protocol.Output {
	return c.send(protocol.LocalQueue, p, protocol.ProtocolQueue, "", body)
}

func (c composer) files(body protocol.Body) protocol.Output {
	return c.send(protocol.LocalFiles, protocol.Request, protocol.ProtocolQueue, "", body)
}

func (c composer) send(to protocol.AgentID, p protocol.Performative, token, conversation string, body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{
		Performative: p, Sender: c.cfg.Self, Receivers: []protocol.AgentID{to}, Protocol: token, Conversation: conversation, Body: body,
	}}}
}
