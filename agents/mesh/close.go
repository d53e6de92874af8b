package mesh

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func (m *Mesh) close() error {
	m.mu.Lock()
	close(m.draining)
	m.mu.Unlock()
	written := make(chan struct{})
	go func() { defer close(written); m.links.disband() }()
	m.awaitWriters(written)
	m.stop()
	err := m.host.Close() // ends every stream, and so whoever reads or writes one
	<-written
	m.crew.disband()
	return err
}

// awaitWriters waits for the writers to empty their queues.
func (m *Mesh) awaitWriters(written <-chan struct{}) {
	limit := time.NewTimer(CloseTimeout)
	defer limit.Stop()
	select {
	case <-written:
	case <-limit.C:
		m.cfg.Log.Warn("closed before every message was sent", "after", CloseTimeout)
	}
}

// drop cuts a peer off for CutOff: it breaks a bound, or its credential does not
// count.
func (m *Mesh) drop(id peer.ID, why error) { m.dropFor(id, CutOff, why) }

func (m *Mesh) dropFor(id peer.ID, d time.Duration, why error) {
	m.counters.cutOff.Add(1)
	log := m.cfg.Log
	if c := m.book.peer(id); c != nil { // people know it by its name
		log = log.With("agent", c.agent)
	}
	log.Warn("peer cut off", "peer", id, "for", d, "err", why)
	m.gate.ban(id, m.cfg.Now().Add(d))
	m.crew.run(func() { _ = m.host.Network().ClosePeer(id) }) // what it closes may be gone already
}
