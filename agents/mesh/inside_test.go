package mesh

import (
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
)

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
