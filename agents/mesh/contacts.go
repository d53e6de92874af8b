package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"ramp/protocol"
)

// Known is an agent that this one has met: its credential was verified.
type Known struct {
	Agent     protocol.AgentID
	Kind      protocol.Kind // zero before its first presence
	Peer      string
	Addresses []string
	Seen      time.Time // when anything last arrived from it
	Until     time.Time // when its presence expires; zero without a presence
	Connected bool
}

// contacts owns the table of agents that this one has met, by agent and by peer. It
// holds at most MaxContacts.
type contacts struct {
	network network.Network
	mu      sync.Mutex
	agents  map[protocol.AgentID]*contact
	peers   map[peer.ID]*contact
}

func newContacts(n network.Network) *contacts {
	return &contacts{network: n, agents: map[protocol.AgentID]*contact{}, peers: map[peer.ID]*contact{}}
}

func (cs *contacts) ofAgent(id protocol.AgentID) *contact {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.agents[id]
}

func (cs *contacts) ofPeer(id peer.ID) *contact {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.peers[id]
}

// add returns the contact for an agent that has just been verified. A key that comes
// under another name is another agent, and takes the peer over.
func (cs *contacts) add(agent protocol.AgentID, by issuer, id peer.ID, shown card, now time.Time) (*contact, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	before := cs.peers[id]
	if before != nil && before.agent == agent {
		before.show(shown, now)
		return before, nil
	}
	if before != nil {
		cs.remove(before)
	}
	if len(cs.peers) >= MaxContacts && !cs.forget() {
		return nil, fmt.Errorf("%s: all %d known agents are connected: %w", agent, MaxContacts, errBound)
	}
	c := newContact(agent, by, id)
	c.inherit(before)
	c.show(shown, now) // a contact without certificates would be cut off
	cs.peers[id], cs.agents[agent] = c, c
	return c, nil
}

// forget drops the contact that has been silent the longest, among those that are not
// connected and whose authority has the most of them: no authority fills the table.
func (cs *contacts) forget() bool {
	silent, count := []*contact{}, map[issuer]int{}
	for id, c := range cs.peers {
		if !cs.connected(id) {
			silent = append(silent, c)
			count[c.issuer]++
		}
	}
	if len(silent) == 0 {
		return false
	}
	cs.remove(slices.MinFunc(silent, func(x, y *contact) int {
		return cmp.Or(cmp.Compare(count[y.issuer], count[x.issuer]), x.current().seen.Compare(y.current().seen), cmp.Compare(x.agent, y.agent))
	}))
	return true
}

// retain forgets the contacts for which keep is false. One that is being added now
// has been verified by the new rules, or will be met again.
func (cs *contacts) retain(keep func(*contact) bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.peers {
		if !keep(c) {
			cs.remove(c)
		}
	}
}

func (cs *contacts) remove(c *contact) {
	delete(cs.peers, c.peer)
	delete(cs.agents, c.agent)
}

// connected reports whether a peer is connected, directly or through a relay.
func (cs *contacts) connected(id peer.ID) bool {
	now := cs.network.Connectedness(id)
	return now == network.Connected || now == network.Limited
}

// all lists the contacts, the most recently heard first.
func (cs *contacts) all() []Known {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	out := make([]Known, 0, len(cs.peers))
	for id, c := range cs.peers {
		f := c.current()
		out = append(out, Known{
			Agent: c.agent, Kind: f.kind, Peer: id.String(), Addresses: texts(f.addrs), Seen: f.seen, Until: f.until,
			Connected: cs.connected(id),
		})
	}
	slices.SortFunc(out, func(x, y Known) int {
		return cmp.Or(y.Seen.Compare(x.Seen), cmp.Compare(x.Agent, y.Agent))
	})
	return out
}

// list returns the contacts, in no order.
func (cs *contacts) list() []*contact {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Collect(maps.Values(cs.peers))
}

// newSellers lists the connected sellers whose first presence arrived a moment ago.
func (cs *contacts) newSellers(now time.Time) []protocol.AgentID {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var ids []protocol.AgentID
	for id, c := range cs.peers {
		if f := c.current(); f.kind == protocol.KindResource && now.Before(f.since.Add(HearerGrace)) && cs.connected(id) {
			ids = append(ids, c.agent)
		}
	}
	slices.Sort(ids)
	return ids
}

func texts(addrs []ma.Multiaddr) []string {
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return out
}
