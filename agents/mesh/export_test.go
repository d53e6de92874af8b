package mesh

import (
	"context"
	"slices"

	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"

	"ramp/protocol"
)

// What the tests of package mesh_test see of the inside.
const (
	ReplayWindow, StrangersNamed, StrangersLog, MaxPresence = replayWindow, strangersNamed, strangersLog, maxPresence
	StreamsPerPeer, StreamsPerKind                          = streamsPerPeer, streamsPerKind
	ProtocolACL, ProtocolPresence, ProtocolClock            = protocolACL, protocolPresence, protocolClock
	ProtocolEnrolment, ProtocolIntroductions, ProtocolFiles = protocolEnrolment, protocolIntroductions, protocolFiles
	MaxStrangers, StreamsPerStranger, StrangerMemory        = maxStrangers, streamsPerStranger, strangerMemory
)

var RelaySearch = &relaySearch

// Recode decodes a card or introductions and encodes them again.
func RecodeCard(b []byte) ([]byte, error) { c, err := decodeCard(b); return c.encode(), err }
func RecodeIntroductions(b []byte) ([]byte, error) {
	all, err := decodeIntroductions(b)
	return encodeIntroductions(all), err
}

// HangUp closes the connections to an agent.
func HangUp(m *Mesh, to protocol.AgentID) error {
	return m.ep.host.Network().ClosePeer(m.ep.contacts.ofAgent(to).peer)
}

func HasMet(m *Mesh, a protocol.AgentID) bool { return m.joining.hasMet(m.ep.contacts.ofAgent(a).peer) }
func Learn(ctx context.Context, m *Mesh, of protocol.AgentID) (int, error) { // counts whom it cannot meet
	return m.joining.learn(ctx, m.ep.contacts.ofAgent(of).peer, RejoinFirst)
}

// CrowdOut drops strangers while there are more than most, and counts them.
func CrowdOut(m *Mesh, most int) (dropped int) {
	for s := m.ep.strangers; ; dropped++ {
		s.mu.Lock()
		lost := s.crowdedOut(most, func(x *stranger) bool { return x.peer != "" })
		s.mu.Unlock()
		if lost == nil {
			return dropped
		}
		hangUp(lost)
	}
}

// Strangers counts the secured connections without a credential that have a place.
func Strangers(m *Mesh) int {
	m.ep.strangers.mu.Lock()
	defer m.ep.strangers.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(m.ep.strangers.waiting), func(x *stranger) bool { return x.peer == "" }))
}

// StrangerUse is the most inbound streams of a stranger, and the memory of all.
func StrangerUse(m *Mesh) (streams int, memory int64) {
	for id, used := range m.ep.host.Network().ResourceManager().(rcmgr.ResourceManagerState).Stat().Peers {
		if m.ep.strangers.strange(id) {
			streams, memory = max(streams, used.NumStreamsInbound), memory+used.Memory
		}
	}
	return streams, memory
}

// RelayWith replaces the relay service by one with other limits.
func RelayWith(m *Mesh, limits relay.Resources) (err error) {
	r := m.ep.reach
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = r.service.Close(); err == nil {
		r.service, err = relay.New(r.ep.host, relay.WithACL(r), relay.WithMetricsTracer(&r.stats), relay.WithResources(limits))
	}
	return err
}
