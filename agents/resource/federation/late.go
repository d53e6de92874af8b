package federation

import (
	"ramp/protocol"
	"ramp/protocol/english"
)

// lateness counts inputs that were late: by home and owner, and the late owners of each home. It is
// not durable.
//
// No modules are kept for the next jobs of who was late, until it has brought an input: else who buys
// and never brings anything would keep a site idle. An owner answers for itself at that home only,
// since each of the two could lie about the other; but a home also for as many owners as no
// accident has.
type lateness map[string]int

func (l lateness) add(home, owner protocol.AgentID) {
	if len(l) >= MaxRuns || l.all(home) { // a home of many owners has no more room
		return
	}
	pair := english.Key(home, string(owner))
	if l[pair]++; l[pair] == 1 {
		l[string(home)]++
	}
}

func (l lateness) forget(home, owner protocol.AgentID) {
	delete(l, english.Key(home, string(owner)))
	delete(l, string(home))
}

// is reports whether no modules are kept for a job of an owner at a home.
func (l lateness) is(home, owner protocol.AgentID) bool {
	return l[english.Key(home, string(owner))] > 0 || l.all(home)
}

func (l lateness) all(home protocol.AgentID) bool { return l[string(home)] > lateOwners }
