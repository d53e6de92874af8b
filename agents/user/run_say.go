package user

import (
	"fmt"
	"slices"

	"ramp/protocol"
	"ramp/protocol/message"
)

// What a run says to its sites, and to the files of this machine.

// question is what a unit's site is asked next.
func (r *Role) question(x *run, i int) []protocol.Message {
	u := x.view.Units[i]
	switch {
	case x.view.Killing:
		return []protocol.Message{r.orderOf(x, i, message.LaunchOrder{Verb: message.VerbKill})}
	case u.Status.Stage == message.StageAsked:
		return []protocol.Message{r.ask(x, i, r.launch(x, i))}
	case len(x.view.Units) > 1 && x.answered() && (!u.Joined || x.view.Moved() && !begun(u.Status.Stage)):
		return []protocol.Message{r.orderOf(x, i, message.LaunchOrder{Verb: message.VerbJoin, Peers: x.peers()})}
	}
	return []protocol.Message{r.orderOf(x, i, message.LaunchOrder{Verb: message.VerbStatus})}
}

func (r *Role) launch(x *run, i int) message.Launch {
	p, u := x.view.Program, x.view.Units[i]
	l := message.Launch{ID: u.Launch, App: p.App, Params: p.Params, Command: p.Command}
	if l.Contract, l.Unit = x.view.Bought(u); u.Contract != "" && len(x.view.Units) > 1 {
		l.Place = message.Place{Number: u.Unit + 1, Units: len(x.view.Units)}
	}
	for _, in := range p.Inputs {
		l.Inputs = append(l.Inputs, in.File)
	}
	return l
}

func (r *Role) orderOf(x *run, i int, o message.LaunchOrder) protocol.Message {
	u := x.view.Units[i]
	o.Contract, o.Unit = x.view.Bought(u)
	o.ID = u.Launch
	return r.ask(x, i, o)
}

func (r *Role) ask(x *run, i int, body protocol.Body) protocol.Message {
	u := x.view.Units[i]
	return protocol.Message{
		Performative: protocol.Request, Sender: r.ID(), Receivers: []protocol.AgentID{u.Seller}, Protocol: protocol.ProtocolRequest,
		Conversation: x.view.ID, ReplyWith: launchTag(u), Body: body,
	}
}

// launchTag is the reply-with of what is asked of a unit's launch: another one once
// the unit was bought again.
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

func (r *Role) files(body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: protocol.Request, Sender: r.ID(), Receivers: []protocol.AgentID{protocol.LocalFiles},
		Protocol: protocol.ProtocolQueue, Body: body,
	}
}

func (r *Role) stageIn(x *run, i int) protocol.Message {
	u := x.view.Units[i]
	contract, unit := x.view.Bought(u)
	return r.files(message.StageIn{Contract: contract, Unit: unit, Launch: u.Launch, Seller: u.Seller, Inputs: x.view.Program.Inputs})
}

func (r *Role) stageStop(x *run, i int) protocol.Message {
	return r.files(message.StageStop{Launch: x.view.Units[i].Launch})
}
