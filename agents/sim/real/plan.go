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
	Kill      Kind = "kill"          // SIGKILL, and a restart after a while
	Stop      Kind = "stop"          // SIGSTOP, and SIGCONT after a while
	CutOneWay Kind = "cut_one_way"   // packets from Agent to Peer
	CutBoth   Kind = "cut_both_ways" // in both directions
	Isolate   Kind = "isolate"       // all packets from and to Agent
	DiskFull  Kind = "disk_full"
)

// Fault is one fault of a plan. Agents are numbered; the bank is 0.
type Fault struct {
	Kind  Kind
	Agent int
	Peer  int           // of a cut link
	At    time.Duration // since the start
	For   time.Duration
}

// bankShare is the percentage of faults that target the bank.
const bankShare = 12

// Plan draws the faults for a number of agents, in order of time; the same seed gives the
// same plan. All faults end within length, and an agent never has two faults of one kind of
// its process or disk at the same time.
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

// collides reports whether f cannot happen during g.
func (f Fault) collides(g Fault) bool {
	switch f.Kind {
	case Kill, Stop, DiskFull:
		return f.Kind == g.Kind && f.Agent == g.Agent && f.At < g.At+g.For
	}
	return false // cuts are counted
}
