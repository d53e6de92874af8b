package bank

import (
	"slices"

	"ramp/protocol"
)

// maxWaiting bounds the askers that wait for decisions; beyond it, they ask again.
const maxWaiting = 1 << 16

// askers owns the requests whose contract is not decided yet.
type askers struct {
	byContract map[protocol.ContractID][]protocol.Message // without their bodies, one per sender
	n          int
}

// add keeps a request, and replaces an earlier one of its sender.
func (a *askers) add(id protocol.ContractID, m protocol.Message) {
	m.Body = nil
	for i, waiting := range a.byContract[id] {
		if waiting.Sender == m.Sender {
			a.byContract[id][i] = m
			return
		}
	}
	if a.n < maxWaiting {
		a.n++
		a.byContract[id] = append(a.byContract[id], m)
	}
}

// drop forgets the request of an agent that is being answered.
func (a *askers) drop(id protocol.ContractID, who protocol.AgentID) {
	n := len(a.byContract[id])
	a.byContract[id] = slices.DeleteFunc(a.byContract[id], func(m protocol.Message) bool { return m.Sender == who })
	a.n -= n - len(a.byContract[id])
}

// take returns the requests for a contract and forgets them.
func (a *askers) take(id protocol.ContractID) []protocol.Message {
	list := a.byContract[id]
	a.n -= len(list)
	delete(a.byContract, id)
	return list
}
