package user

import (
	"fmt"
	"slices"

	"ramp/protocol"
	"ramp/protocol/message"
)

// launchPrefix begins the reply-with of a request about a launch. The unit follows,
// and the contract of one that was bought again.
const launchPrefix = "launch-"

// question is the next request to a unit's site.
func (x *run) question(i int) protocol.Message {
	u := x.view.Units[i]
	switch {
	case x.view.Killing:
		return x.order(i, message.LaunchOrder{Verb: message.VerbKill})
	case u.Status.Stage == message.StageAsked:
		return x.ask(i, x.launch(i))
	case len(x.view.Units) > 1 && !x.view.Program.Array && x.answered() && (!u.Joined || x.view.Moved() && !begun(u.Status.Stage)):
		return x.order(i, message.LaunchOrder{Verb: message.VerbJoin, Peers: x.peers()})
	}
	return x.order(i, message.LaunchOrder{Verb: message.VerbStatus})
}

func (x *run) launch(i int) message.Launch {
	p, u := x.view.Program, x.view.Units[i]
	l := message.Launch{ID: u.Launch, App: p.App, Params: p.Params, Command: p.Of(u.Unit), Last: !x.view.Follows}
	l.Contract, l.Unit = x.view.Bought(u)
	switch {
	case p.Array:
		l.Place = message.Place{Number: 1, Units: 1}
	case u.Contract != "" && len(x.view.Units) > 1:
		l.Place = message.Place{Number: u.Unit + 1, Units: len(x.view.Units)}
	}
	for _, in := range p.Inputs {
		l.Inputs = append(l.Inputs, in.File)
	}
	return l
}

func (x *run) order(i int, o message.LaunchOrder) protocol.Message {
	u := x.view.Units[i]
	o.Contract, o.Unit = x.view.Bought(u)
	o.ID = u.Launch
	return x.ask(i, o)
}

func (x *run) ask(i int, body protocol.Body) protocol.Message {
	u := x.view.Units[i]
	return request(x.self, u.Seller, x.view.ID, launchTag(u), body)
}

// launchTag is the reply-with of a request about a unit's launch. It changes when
// the unit is bought again.
func launchTag(u message.RunUnit) string {
	return fmt.Sprintf("%s%d%.8s", launchPrefix, u.Unit, u.Contract)
}

// answered reports whether every unit has a place to run.
func (x *run) answered() bool {
	return !slices.ContainsFunc(x.view.Units, func(u message.RunUnit) bool { return u.Status.Stage == message.StageAsked || u.Status.Stage.Over() })
}

func (x *run) peers() []message.Peer {
	list := make([]message.Peer, len(x.view.Units))
	for i, u := range x.view.Units {
		list[i] = message.Peer{Unit: u.Unit, Address: u.Status.Address, Start: u.Slot.Start, End: u.Slot.End, Cores: u.Slot.Cores}
	}
	return list
}

// files is a request to the files of this machine.
func (x *run) files(body protocol.Body) protocol.Message {
	return protocol.Message{Performative: protocol.Request, Sender: x.self, Receivers: []protocol.AgentID{protocol.LocalFiles}, Protocol: protocol.ProtocolQueue, Body: body}
}

func (x *run) stageIn(i int) protocol.Message {
	u := x.view.Units[i]
	contract, unit := x.view.Bought(u)
	return x.files(message.StageIn{Contract: contract, Unit: unit, Launch: u.Launch, Seller: u.Seller, Inputs: x.view.Program.Inputs})
}

func (x *run) stageStop(i int) protocol.Message {
	return x.files(message.StageStop{Launch: x.view.Units[i].Launch})
}
