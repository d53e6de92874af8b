package market

import (
	"fmt"
	"time"

	"ramp/protocol"
)

// The invariants of protocol.md, as violations name them.
const (
	NoPanic      = "0-panic" // a role reached an impossible state
	AllOrNothing = "1-all-or-nothing"
	CoresOnce    = "2-cores-sold-once"
	HoldsEnd     = "3-holds-end"
	Money        = "4-money"
	Decided      = "5-decided"
	Credentials  = "6-credentials"
	Bounded      = "7-bounded"

	HonestLoseNothing = "8-honest-lose-nothing"
	BidsCounted       = "9-honest-bids-counted"
)

// Invariants are all of them, in order.
func Invariants() []string {
	return []string{AllOrNothing, CoresOnce, HoldsEnd, Money, Decided, Credentials, Bounded, HonestLoseNothing, BidsCounted, PaidForJobs, OneJob, Proved, Readmitted, OrderedOnce, SilenceCostsOnce, DeliveredIsPaid, ListPrice, SweepTerms, SweepOnce, SweepFailures, SweepLedger}
}

// maxViolations bounds the violations that are kept; the first one matters most.
const maxViolations = 20

// Violation is a breach of an invariant.
type Violation struct {
	At        time.Time `json:"at"`
	Invariant string    `json:"invariant"`
	What      string    `json:"what"`
}

// audit owns the counts and violations of a market's checks, and what is still going on.
type audit struct {
	m          *Market // nil while it is being made
	going      map[string]bool
	counts     map[string]int
	violations []Violation
}

// check counts one check of an invariant, and keeps a violation.
func (a *audit) check(invariant string, ok bool, format string, args ...any) {
	a.counts[invariant]++
	if ok || len(a.violations) >= maxViolations {
		return
	}
	v := Violation{Invariant: invariant, What: fmt.Sprintf(format, args...)}
	if a.m != nil {
		v.At = a.m.World.Now()
	}
	a.violations = append(a.violations, v)
}

// follow records whether something is still going on.
func (a *audit) follow(what string, going bool) {
	if going {
		a.going[what] = true
	} else {
		delete(a.going, what)
	}
}

func (a *audit) now() time.Time { return a.m.World.Now() }

func (a *audit) isUser(id protocol.AgentID) bool { return a.m.parties[id] == partyUser }
func (a *audit) isSite(id protocol.AgentID) bool { return a.m.parties[id] == partySite }
