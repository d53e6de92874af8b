package mesh

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"ramp/agents"
	"ramp/agents/framing"
)

// protocolRevocations exchanges revocation lists. It is no topic of gossip: agents of the
// version before ignore peers that subscribe to a third one.
const protocolRevocations libp2pprotocol.ID = "/ramp/crl/1"

// Bounds of revocation lists.
const (
	maxLists      = 16       // authorities
	maxListsBytes = 64 << 10 // of all lists together
	refreshPeriod = 2 * time.Second
)

// Revocations keeps this agent's revocation lists. Its trust follows them.
type Revocations interface {
	// Lists are the newest lists, one of each authority, in DER.
	Lists() [][]byte
	// Adopt takes over the lists that are newer, and reports whether there were any. It
	// returns an error if one is not signed by an authority.
	Adopt(lists [][]byte) (bool, error)
	// Refresh reports whether this agent's own files have changed, after reading them.
	Refresh() (bool, error)
}

// revocations spreads the lists: an agent that learns of a newer one passes it on to
// everybody it is connected to. It is asked for at every meeting, too.
type revocations struct {
	ep   *endpoint
	news chan struct{}
}

// version identifies a set of lists.
type version [32]byte

// own are this agent's lists, as they are sent.
func (r *revocations) own() ([]byte, version) {
	var lists [][]byte
	n := 0
	for _, l := range r.ep.cfg.Revocations.Lists() {
		if n += len(l); n <= maxListsBytes-gossipOverhead && len(lists) < maxLists {
			lists = append(lists, l)
		}
	}
	b := framing.AppendList(nil, lists)
	return b, sha256.Sum256(b)
}

// tell notes that there is something to spread.
func (r *revocations) tell() { agents.Signal(r.news) }

// run spreads changed lists, and looks for changes of this agent's files.
func (r *revocations) run(ctx context.Context) {
	t := time.NewTicker(refreshPeriod)
	defer t.Stop()
	for {
		select {
		case <-r.news:
			r.spread(ctx)
		case <-t.C:
			changed, err := r.ep.cfg.Revocations.Refresh()
			if err != nil {
				r.ep.cfg.Log.Error("cannot reload or keep the revocation lists", "err", err)
			}
			if changed {
				r.ep.recheck()
				r.tell()
			}
		case <-ctx.Done():
			return
		}
	}
}

// spread exchanges lists with the connected agents that are not known to have the same.
func (r *revocations) spread(ctx context.Context) {
	inTurn(ctx, slices.Values(r.ep.connected(everybody)), func(ctx context.Context, c *contact) {
		if _, v := r.own(); c.current().lists == v {
			return
		}
		if err := r.exchange(ctx, c.peer); err != nil {
			r.ep.cfg.Log.Debug("revocation lists not exchanged", "with", c.agent, "err", err)
		}
	})
}

// exchange gives a peer this agent's lists, and adopts newer ones of the peer.
func (r *revocations) exchange(ctx context.Context, id peer.ID) error {
	s, w, err := r.ep.dial(ctx, id, protocolRevocations, DialTimeout)
	if err != nil {
		return err
	}
	own, _ := r.own()
	if err := framing.Write(w, own); err != nil {
		_ = s.Reset()
		return err
	}
	c, b, err := r.ep.answer(s, w, maxListsBytes)
	if err != nil {
		return err
	}
	return r.adopt(c, b)
}

// serve is the exchange on the side that accepted the stream.
func (r *revocations) serve(s network.Stream) error {
	c, in, err := r.ep.greet(s)
	if err != nil {
		return err
	}
	b, err := r.ep.take(s, in, maxListsBytes)
	if err != nil {
		return err
	}
	if err := r.adopt(c, b); err != nil {
		return err
	}
	own, _ := r.own()
	if err := framing.WriteOne(s, own); err != nil {
		return err
	}
	return s.Close()
}

// adopt takes over what a peer has. Lists that no authority has signed are its fault.
func (r *revocations) adopt(c *contact, b []byte) error {
	f := framing.Fields{Rest: b}
	lists := f.List(maxLists)
	err := f.Finish()
	changed := false
	if err == nil {
		changed, err = r.ep.cfg.Revocations.Adopt(lists)
	}
	if changed && err != nil { // not the peer's fault
		r.ep.cfg.Log.Warn("cannot keep revocation lists for the next start", "err", err)
		err = nil
	}
	if err != nil {
		if !c.charge(&c.faults, r.ep.cfg.Now(), r.ep.cfg.Limits.Faults) {
			r.ep.drop(c.peer, err)
		}
		return fmt.Errorf("revocation lists of %s: %w", c.agent, err)
	}
	c.mu.Lock()
	c.facts.lists = sha256.Sum256(b)
	c.mu.Unlock()
	if changed {
		r.ep.cfg.Log.Info("newer revocation lists", "from", c.agent)
		r.ep.recheck()
		r.tell()
	}
	return nil
}
