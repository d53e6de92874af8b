package mesh

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"ramp/agents"
)

// joining owns the state of joining the market: the anchors, which are the bootstrap
// peers that the agent stays connected to, and whether it has joined.
type joining struct {
	ep       *endpoint
	meetings *meetings
	revoked  *revocations
	anchors  map[peer.ID]chan struct{} // signalled when a connection is lost
	joined   milestone                 // an agent of the market has been met
	followed milestone                 // somebody's introductions have been followed to their end
	lastMet  atomic.Int64              // when an agent was last met, in nanoseconds since 1970
	failure  atomic.Pointer[error]     // of the last attempt, or the last that explains more
}

// joinBy joins through each of the peers except this agent itself, and again whenever
// the connection is lost.
func (j *joining) joinBy(infos []peer.AddrInfo) {
	infos = slices.DeleteFunc(infos, func(info peer.AddrInfo) bool { return info.ID == j.ep.host.ID() })
	for _, info := range infos {
		j.anchors[info.ID] = make(chan struct{}, 1)
		j.ep.host.ConnManager().Protect(info.ID, "ramp-bootstrap")
	}
	j.ep.host.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		agents.Signal(j.anchors[c.RemotePeer()]) // nil unless it is an anchor
	}})
	for _, info := range infos {
		j.ep.life.start(func(ctx context.Context) { j.anchor(ctx, info) })
	}
}

// await waits until the agent has joined. See Mesh.Joined.
func (j *joining) await(ctx context.Context) error {
	if len(j.anchors) == 0 && !j.ep.cfg.Nearby {
		return nil
	}
	select {
	case <-j.joined.reached:
		return nil
	case <-j.ep.life.draining:
		return ErrClosed
	case <-ctx.Done():
		return j.explain(ctx.Err())
	}
}

// anchor joins through one peer, and again when its connection is lost.
func (j *joining) anchor(ctx context.Context, info peer.AddrInfo) {
	wait := RejoinFirst
	for {
		begun := time.Now()
		unmet, err := j.join(ctx, info, wait)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && unmet == 0:
			wait = RejoinFirst
			j.awaitLoss(ctx, info.ID, RejoinPeriod)
			j.stayAway(ctx, begun)
		case err == nil: // the unmet agents are connected to the anchor, so they will come up
			j.awaitLoss(ctx, info.ID, wait)
			wait = min(2*wait, RejoinPeriod)
			if !j.ep.contacts.connected(info.ID) {
				j.stayAway(ctx, begun)
			}
		default:
			j.noteFailure(err)
			j.ep.cfg.Log.Info("cannot join yet", "peer", info.ID, "at", info.Addrs, "err", err)
			// Up to half as long again, so that a market does not come back all at once.
			agents.Pause(ctx, wait+rand.N(wait/2))
			wait = min(2*wait, RejoinMost)
		}
	}
}

// awaitLoss returns when the connection to an anchor is lost. It returns after a limit
// in any case, so that the parts of a split market find each other again.
func (j *joining) awaitLoss(ctx context.Context, id peer.ID, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		select {
		case <-j.anchors[id]:
			if !j.ep.contacts.connected(id) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// stayAway keeps a visitor from joining again within VisitPeriod, as long as it is connected
// to anybody: its anchor may have closed the connection to make room for others, and messages
// open one when there are any.
func (j *joining) stayAway(ctx context.Context, joined time.Time) {
	for j.ep.cfg.Visitor && time.Since(joined) < VisitPeriod && len(j.ep.connected(everybody)) > 0 && agents.Pause(ctx, watchPeriod) {
	}
}

func everybody(*contact) bool { return true }

// join meets a peer, with which this agent has joined, and then the agents that the peer introduces.
func (j *joining) join(ctx context.Context, info peer.AddrInfo, again time.Duration) (unmet int, err error) {
	if err := j.meet(ctx, info); err != nil {
		return 0, err
	}
	j.joined.reach()
	return j.learn(ctx, info.ID, again)
}

// meet connects to a peer and meets it.
func (j *joining) meet(ctx context.Context, info peer.AddrInfo) error {
	dialling, cancel := context.WithTimeout(ctx, MeetTimeout)
	defer cancel()
	if err := j.ep.connect(dialling, info); err != nil {
		return fmt.Errorf("%w: %w", ErrNotThere, err)
	}
	if err := j.meetings.meet(ctx, info.ID); err != nil {
		return cutOff(ctx, err)
	}
	j.lastMet.Store(time.Now().UnixNano())
	return nil
}

// learn meets the agents that a peer introduces. unmet counts the attempts that failed. While some
// attempts go on, it asks for more introductions: again later, and then after twice as long each time.
func (j *joining) learn(ctx context.Context, id peer.ID, again time.Duration) (unmet int, err error) {
	if j.ep.cfg.Revocations != nil { // agents of the version before have none to exchange
		if err := j.revoked.exchange(ctx, id); err != nil {
			j.ep.cfg.Log.Debug("revocation lists not exchanged", "peer", id, "err", err)
		}
	}
	list, err := j.ep.introductions(ctx, id)
	if err != nil {
		return 0, err
	}
	unmet = j.follow(ctx, id, list, again)
	j.followed.reach()
	return unmet, nil
}

// follow meets the introduced agents that have not been met, in random order. Those that do not
// answer keep nobody waiting: meanwhile it asks again, because an agent behind NAT may first have
// been introduced without its relay. All lists together cause no more dials than there are vacancies.
func (j *joining) follow(ctx context.Context, by peer.ID, list []introduction, again time.Duration) (unmet int) {
	begun, vacancies, open := map[string]bool{}, j.ep.vacancies(), 0 // dials, by peer and addresses
	ended, next := make(chan error, vacancies), time.After(again)
	inTurn(ctx, func(yield func(introduction) bool) {
		for {
			chosen := map[peer.ID]bool{}
			for _, n := range rand.Perm(len(list)) {
				i := list[n]
				key := string(i.id) + string(slices.Concat(i.addrs...))
				known := begun[key] || chosen[i.id] || i.id == j.ep.host.ID() || j.hasMet(i.id) || j.visited(i) || j.spares(i.id, open)
				if !known && len(begun) < vacancies && j.ep.gate.open(i.id) {
					begun[key], chosen[i.id], open = true, true, open+1
					if !yield(i) {
						return
					}
				}
			}
			if open == 0 {
				return
			}
			list = nil
			select {
			case err := <-ended:
				if open--; err != nil {
					unmet++
				}
			case <-next:
				list, _ = j.ep.introductions(ctx, by) // without an answer those of before are still met
				again, next = 2*again, time.After(2*again)
			}
		}
	}, func(ctx context.Context, i introduction) {
		err := j.meet(ctx, peer.AddrInfo{ID: i.id, Addrs: dialable(i.addrs)})
		if err != nil {
			j.ep.cfg.Log.Debug("cannot meet an introduced agent", "peer", i.id, "err", err)
		}
		ended <- err
	})
	return unmet
}

// hasMet reports whether a peer is connected and has exchanged presences.
func (j *joining) hasMet(id peer.ID) bool {
	c := j.ep.contacts.ofPeer(id)
	return c != nil && c.current().met && j.ep.contacts.connected(id)
}

// spares reports whether a seller that will have some more connections needs none to a peer: it
// has met the peer, still hears it, and has enough.
func (j *joining) spares(id peer.ID, more int) bool {
	c := j.ep.contacts.ofPeer(id)
	return c != nil && j.ep.cfg.HearCalls && c.current().met && j.ep.cfg.Now().Before(c.current().until) &&
		more+len(j.ep.connected(j.ep.gossipsWith)) >= sellerKeeps
}

// visited reports whether an introduced agent has been met before, at one of the same addresses,
// and one of the two is a user: users leave whom they do not use, and come back by themselves.
func (j *joining) visited(i introduction) bool {
	c := j.ep.contacts.ofPeer(i.id)
	if c == nil {
		return false
	}
	f := c.current()
	return f.met && (j.ep.cfg.Visitor || f.kind == 0) && slices.ContainsFunc(f.addrs, func(a ma.Multiaddr) bool {
		return slices.ContainsFunc(i.addrs, func(b []byte) bool { return bytes.Equal(a.Bytes(), b) })
	})
}
