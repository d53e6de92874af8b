package mesh_test

import (
	"cmp"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/mesh"
	"ramp/protocol/identity"
)

// lists keeps revocation lists in memory.
type lists struct {
	m     *market
	trust *identity.Trust
	mu    sync.Mutex
	held  [][]byte
	fresh atomic.Bool // the file has changed
}

func (l *lists) Lists() [][]byte { return l.trust.Newest() }

func (l *lists) Refresh() (bool, error) { return l.fresh.Swap(false), nil }

func (l *lists) Adopt(given [][]byte) (changed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, der := range given {
		newer, err := l.trust.Newer(der, time.Now())
		if err != nil {
			return false, err
		}
		if newer {
			changed, l.held = true, append(l.held, der)
		}
	}
	if !changed {
		return false, nil
	}
	t, err := identity.NewTrust(l.m.ca.CertPEM(), l.held...)
	if err == nil {
		l.trust.Replace(t)
	}
	return true, err
}

// revocationAgents are 13, or RAMP_TEST_AGENTS, of whom 20 sell.
func revocationAgents(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("RAMP_TEST_AGENTS"), "13"))
	if err != nil || n < 4 {
		t.Fatalf("RAMP_TEST_AGENTS: want a number from 4 on: %v", err)
	}
	return n
}

// One agent's file changes. Nobody of the market talks to the revoked agent afterwards,
// also one that joins later, from an agent that only heard of it.
func TestRevocationSpreadsByItself(t *testing.T) {
	m, agents := newMarket(t), revocationAgents(t)
	var all []*agent
	var kept []*lists
	var serial *big.Int
	start := func(name string, by *agent) *agent {
		trust, err := identity.NewTrust(m.ca.CertPEM(), nil)
		if err != nil {
			t.Fatal(err)
		}
		l := &lists{m: m, trust: trust}
		kept = append(kept, l)
		return m.start(name, func(c *mesh.Config) {
			c.Trust, c.Revocations = trust, l
			c.Visitor = len(kept) > 21 // a large market has more users than sellers
			if by != nil {
				c.Bootstrap = by.Addresses()
			}
			serial = c.Credential.Chain[0].SerialNumber
		})
	}
	all = append(all, start("bank", nil))
	mallory := start("mallory", all[0])
	revoked := serial
	for i := range agents - 2 {
		all = append(all, start(fmt.Sprint("agent", i), all[0]))
		all[i+1].awaitKnown(all[0].Self())
	}
	for _, a := range all {
		a.awaitKnown(mallory.Self())
	}
	list, err := m.ca.Revoke(nil, []*big.Int{revoked}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	trust, err := identity.NewTrust(m.ca.CertPEM(), list)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	kept[2].trust.Replace(trust) // the file of one agent, not the revoked one
	kept[2].fresh.Store(true)
	forgotten := func(a *agent) func() bool {
		return func() bool {
			for _, k := range a.Known() {
				if k.Agent == mallory.Self() {
					return false
				}
			}
			return true
		}
	}
	for _, a := range all {
		eventually(t, string(a.Self())+" has forgotten the revoked agent", forgotten(a))
	}
	eventually(t, "nobody is connected to it", func() bool { return mallory.Peers() == 0 })
	t.Logf("%d agents have forgotten the revoked one after %s", len(all), time.Since(begun))
	late := start("late", all[2])
	last := kept[len(kept)-1]
	late.awaitKnown(all[0].Self())
	eventually(t, "one that joins later knows", func() bool { return last.trust.Revoked() == 1 && forgotten(late)() })
}
