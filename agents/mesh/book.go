package mesh

import (
	"cmp"
	"fmt"
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
	Kind      protocol.Kind // zero until its presence was heard
	Peer      string
	Addresses []string
	Seen      time.Time // when it last said anything
	Until     time.Time // when its presence ends; zero: none was heard
	Connected bool
}

// book has the contacts, by agent and by peer. It holds at most MaxContacts.
type book struct {
	network network.Network
	mu      sync.Mutex
	agents  map[protocol.AgentID]*contact
	peers   map[peer.ID]*contact
}

func newBook(n network.Network) *book {
	return &book{network: n, agents: map[protocol.AgentID]*contact{}, peers: map[peer.ID]*contact{}}
}

func (b *book) agent(id protocol.AgentID) *contact {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.agents[id]
}

func (b *book) peer(id peer.ID) *contact {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peers[id]
}

// meet returns the contact for an agent that has just been verified. A key that
// comes under another name is another agent, and takes the peer over.
func (b *book) meet(agent protocol.AgentID, id peer.ID, shown card, now time.Time) (*contact, error) {
	c, err := b.enter(agent, id)
	if err != nil {
		return nil, err
	}
	c.show(shown, now)
	return c, nil
}

func (b *book) enter(agent protocol.AgentID, id peer.ID) (*contact, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.peers[id]
	if c != nil && c.agent == agent {
		return c, nil
	}
	if c != nil {
		b.remove(c)
	}
	if len(b.peers) >= MaxContacts && !b.forget() {
		return nil, fmt.Errorf("%s: all %d known agents are connected: %w", agent, MaxContacts, errBound)
	}
	c = newContact(agent, id)
	b.peers[id], b.agents[agent] = c, c
	return c, nil
}

// forget drops the contact that was silent the longest of those not connected.
func (b *book) forget() bool {
	var oldest *contact
	var since time.Time
	for id, c := range b.peers {
		if b.connected(id) {
			continue
		}
		c.mu.Lock()
		seen := c.seen
		c.mu.Unlock()
		if oldest == nil || seen.Before(since) {
			oldest, since = c, seen
		}
	}
	if oldest != nil {
		b.remove(oldest)
	}
	return oldest != nil
}

// retain forgets the contacts that keep is false for. One that is just being made
// has been verified by the new rules, or will be met again.
func (b *book) retain(keep func(*contact) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.peers {
		if !keep(c) {
			b.remove(c)
		}
	}
}

func (b *book) remove(c *contact) {
	delete(b.peers, c.peer)
	delete(b.agents, c.agent)
}

func (b *book) connected(id peer.ID) bool { return b.network.Connectedness(id) == network.Connected }

// all lists the contacts, those that spoke last first.
func (b *book) all() []Known {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Known, 0, len(b.peers))
	for id, c := range b.peers {
		k := c.known()
		k.Connected = b.connected(id)
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y Known) int {
		return cmp.Or(y.Seen.Compare(x.Seen), cmp.Compare(x.Agent, y.Agent))
	})
	return out
}

func (c *contact) known() Known {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Known{
		Agent: c.agent, Kind: c.kind, Peer: c.peer.String(), Addresses: texts(c.addrs), Seen: c.seen, Until: c.until,
	}
}

// fresh lists the connected sellers of whom a presence was first heard just now.
func (b *book) fresh(now time.Time) []protocol.AgentID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []protocol.AgentID
	for id, c := range b.peers {
		if c.isFresh(now) && b.connected(id) {
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
