package real

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds.
const (
	Kill      Kind = "kill"          // kill -9, and started again after a while
	Stop      Kind = "stop"          // SIGSTOP, and SIGCONT after a while
	CutOneWay Kind = "cut_one_way"   // nothing from Agent to Peer
	CutBoth   Kind = "cut_both_ways" // nor back
	Isolate   Kind = "isolate"       // nothing from Agent or to it
	DiskFull  Kind = "disk_full"
)

// Fault is one of a plan. Agents are numbered, the bank is 0.
type Fault struct {
	Kind  Kind
	Agent int
	Peer  int           // of cuts of one link
	At    time.Duration // since the beginning
	For   time.Duration
}

// bankShare is how often the bank is hit on purpose, of 100 faults.
const bankShare = 12

// Plan is what is done to so many agents, in order of time: the same seed makes
// the same plan. Nothing begins or ends after length, and no agent has two faults
// of its own process or disk of one kind at a time.
func Plan(seed uint64, agents int, length, every time.Duration) []Fault {
	r := rand.New(rand.NewPCG(seed, 1))
	var plan []Fault
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64() * float64(every))
		if at >= length {
			return plan
		}
		f := draw(r, agents, at)
		f.For = min(f.For, length-at)
		if !slices.ContainsFunc(plan, f.collides) {
			plan = append(plan, f)
		}
	}
}

// draw draws one fault.
func draw(r *rand.Rand, agents int, at time.Duration) Fault {
	f := Fault{At: at, Agent: r.IntN(agents)}
	if r.IntN(100) < bankShare {
		f.Agent = 0
	}
	f.Peer = (f.Agent + 1 + r.IntN(max(1, agents-1))) % agents
	kinds := []struct {
		kind Kind
		most time.Duration
	}{{Kill, mostDown}, {Stop, mostStop}, {CutOneWay, mostCut}, {CutBoth, mostCut}, {Isolate, mostAway}, {DiskFull, mostFull}}
	k := kinds[r.IntN(len(kinds))]
	f.Kind = k.kind
	f.For = time.Duration(r.Int64N(int64(k.most)))
	return f
}

// collides reports whether f cannot be done while g is.
func (f Fault) collides(g Fault) bool {
	switch f.Kind {
	case Kill, Stop, DiskFull:
		return f.Kind == g.Kind && f.Agent == g.Agent && f.At < g.At+g.For
	}
	return false // cuts are counted
}
