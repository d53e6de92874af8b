// Package federation is a federation of sites (003) in virtual time: the real sites'
// decisions, messages and records, over simulated batch systems, networks, disks and
// crashes. It checks what must hold whatever fails and whoever lies:
//
//   - a job begins once, at one site
//   - what runs at a site never needs more than its modules
//   - a job is suspended only for more urgent ones
//   - nobody outside of the rules file, and no level by say-so, gets a job run
//   - once faults stop, every job ends
package federation

import (
	"fmt"
	"strings"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Dawn is the time at which every federation begins.
var Dawn = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// Job is a job of the world. Its run on k modules lasts Work/k^0.9.
type Job struct {
	ID    string
	At    time.Duration // since the begin
	Terms message.JobTerms
	Home  int // index of its home
	Work  time.Duration
	Local bool // it never leaves its home
	Owner int  // index of its user
}

// Config is a federation.
type Config struct {
	Seed    uint64
	Modules []int // of each site
	Users   int
	Rules   func(sites, users []protocol.AgentID) rules.Rules
	Jobs    func(sites []protocol.AgentID) []Job // in order of time
	Faults  sim.Faults
	Time    time.Duration // with faults
	Calm    time.Duration // after them
	Free    bool          // auctions are as short as they like: an experiment
	Liars   []string      // kinds of adversaries; see Kinds
}

// Cast owns the credentials of the parties of federations.
type Cast struct {
	ca    *identity.CA
	trust *identity.Trust
	by    map[string]*identity.Credential
}

// RulesOf writes the rules file of a federation with four levels: the first user may use
// all of them, the others the three lowest ones.
func RulesOf(sites, users []protocol.AgentID) rules.Rules {
	var b strings.Builder
	b.WriteString("levels: [low, normal, high, urgent]\nusers:\n")
	for i, u := range users {
		fmt.Fprintf(&b, "  %s: %s\n", u, []string{"urgent", "high"}[min(i, 1)])
	}
	b.WriteString("sites:\n")
	for i, s := range sites {
		fmt.Fprintf(&b, "- {agent: %s, centre: c%d}\n", s, i/2)
	}
	b.WriteString("mean: 60s\ngamma: 0.1\ntransfer: {within: 8s, between: 20s}\n")
	r, err := rules.Read([]byte(b.String()))
	if err != nil {
		panic(fmt.Sprintf("federation: its own rules: %v", err))
	}
	return r
}
