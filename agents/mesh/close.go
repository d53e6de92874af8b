package mesh

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func (m *Mesh) close() error {
	m.mu.Lock()
	close(m.draining)
	m.mu.Unlock()
	m.awaitLinks()
	m.stop()
	err := m.host.Close()
	m.links.disband()
	m.crew.disband()
	return err
}

// awaitLinks waits for the writers to empty their queues.
func (m *Mesh) awaitLinks() {
	empty := make(chan struct{})
	go func() { defer close(empty); m.links.disband() }()
	limit := time.NewTimer(CloseTimeout)
	defer limit.Stop()
	select {
	case <-empty:
	case <-limit.C:
		m.cfg.Log.Warn("closed before every message was sent", "after", CloseTimeout)
		m.stop()
		<-empty
	}
}

// drop cuts a peer off for CutOff: it breaks a bound, or has no credential.
func (m *Mesh) drop(id peer.ID, why error) {
	m.counters.cutOff.Add(1)
	m.cfg.Log.Warn("peer cut off", "peer", id, "for", CutOff, "err", why)
	m.gate.ban(id, m.cfg.Now().Add(CutOff))
	m.crew.run(func() { _ = m.host.Network().ClosePeer(id) }) // what it closes may be gone already
}
