package mesh

import (
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// strangers owns the inbound connections whose peer has not shown a credential yet. They have few
// places, so that known agents keep theirs. A new one always gets a place, if necessary that of
// another one. So silent connections keep out only peers that are slower than the next such flood.
type strangers struct {
	known   func(peer.ID) bool           // whether a peer has shown a valid credential before
	keepOut func(peer.ID, time.Duration) // one that has lost its place
	limited sync.Map                     // the peers with a place that are secured; the resource manager asks

	mu      sync.Mutex
	waiting []*stranger // oldest first
	trusted []netip.Prefix
	dropped int
	logged  time.Time
	lines   bucket          // about single strangers
	losers  map[peer.ID]int // how often a peer has lost its place lately
}

// stranger is one such connection.
type stranger struct {
	conn    network.ConnMultiaddrs
	origin  netip.Prefix
	peer    peer.ID   // empty until the channel is secured
	since   time.Time // when it was, or when the connection was accepted
	refused int       // streams that were refused
}

// arrive takes a connection that has just been accepted, and reports whether there is a
// place for it: if not, it costs no handshake. A busy machine finishes the handshakes that
// it has begun, instead of dropping one for each that is asked for.
func (s *strangers) arrive(conn network.ConnMultiaddrs) bool {
	s.mu.Lock()
	s.waiting = slices.DeleteFunc(s.waiting, func(x *stranger) bool { return x.peer == "" && time.Since(x.since) > handshakeTime })
	s.waiting = append(s.waiting, &stranger{conn: conn, origin: originOf(conn.RemoteMultiaddr()), since: time.Now()})
	lost := s.turnedAway(conn, s.crowdedOut(maxHalfOpen, func(x *stranger) bool { return x.peer == "" }))
	s.mu.Unlock()
	if lost != nil && lost.conn == conn {
		return false
	}
	hangUp(lost)
	return true
}

// strange reports whether a peer has a stranger's place, and so a stranger's limits.
func (s *strangers) strange(id peer.ID) bool {
	_, ok := s.limited.Load(id)
	return ok
}

// overdo counts a stream that was refused to a stranger, and reports whether there have
// been too many. An honest newcomer may open a stream before its last one has ended.
func (s *strangers) overdo(id peer.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.waiting {
		if x.peer == id {
			x.refused++
			return x.refused > strangerRefusals
		}
	}
	return true
}

// secured notes a connection's peer, and reports whether there is a place for it. One
// with a known peer is no stranger's.
func (s *strangers) secured(conn network.ConnMultiaddrs, id peer.ID) bool {
	s.mu.Lock()
	known := s.known(id) // if not now, then proved waits for the lock
	for _, x := range s.waiting {
		if x.conn == conn {
			x.peer, x.since = id, time.Now()
		}
	}
	if known {
		s.leave(id)
	} else {
		s.limited.Store(id, true)
	}
	lost := s.turnedAway(conn, s.crowdedOut(maxStrangers, func(x *stranger) bool { return x.peer != "" }))
	turned := lost != nil && lost.conn == conn
	if lost != nil && !turned {
		s.keepOut(lost.peer, s.loses(lost.peer))
	}
	s.mu.Unlock()
	if turned {
		s.limited.Delete(id)
		return false
	}
	hangUp(lost)
	return true
}

// turnedAway returns the one that really goes: the newest itself if the other one is of the
// same network and has not had its place for strangerTenure. So a crowd that comes back
// at once gives nobody less time for a handshake, and then to show a credential.
func (s *strangers) turnedAway(newest network.ConnMultiaddrs, lost *stranger) *stranger {
	i := slices.IndexFunc(s.waiting, func(x *stranger) bool { return x.conn == newest })
	if lost == nil || i < 0 || s.waiting[i].origin != lost.origin || time.Since(lost.since) >= strangerTenure {
		return lost
	}
	gone := s.waiting[i]
	s.waiting = slices.Insert(slices.Delete(s.waiting, i, i+1), 0, lost)
	return gone
}

// loses notes that a peer has lost its place without having shown a credential, and
// returns for how long it is kept out: each time twice as long. A full table forgets all.
func (s *strangers) loses(id peer.ID) time.Duration {
	if len(s.losers) >= maxLosers {
		clear(s.losers)
	}
	out := Silence << min(s.losers[id], 10)
	s.losers[id]++
	return min(out, CutOff)
}

// proved ends a peer's time as a stranger, and remembers its network.
func (s *strangers) proved(c network.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(c.RemotePeer())
	if a := originOf(c.RemoteMultiaddr()); !slices.Contains(s.trusted, a) {
		s.trusted = append(s.trusted, a)
		s.trusted = s.trusted[max(0, len(s.trusted)-maxTrusted):]
	}
}

// refused forgets a connection of a peer that is cut off: it never begins, so it never ends.
func (s *strangers) refused(conn network.ConnMultiaddrs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(x *stranger) bool { return x.conn == conn })
}

// ended forgets a connection.
func (s *strangers) ended(c network.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(x *stranger) bool {
		return x.peer == c.RemotePeer() && x.conn.RemoteMultiaddr().Equal(c.RemoteMultiaddr())
	})
	if !slices.ContainsFunc(s.waiting, func(x *stranger) bool { return x.peer == c.RemotePeer() }) {
		s.limited.Delete(c.RemotePeer())
	}
}

// leave ends a peer's time as a stranger.
func (s *strangers) leave(id peer.ID) {
	s.limited.Delete(id)
	delete(s.losers, id)
	s.waiting = slices.DeleteFunc(s.waiting, func(x *stranger) bool { return x.peer == id })
}

// crowdedOut takes out a connection of a kind if there are more than most: the oldest
// of the network that has the most, where no known agent has been if possible.
func (s *strangers) crowdedOut(most int, kind func(*stranger) bool) *stranger {
	count, all := map[netip.Prefix]int{}, 0
	for _, x := range s.waiting {
		if kind(x) {
			count[x.origin]++
			all++
		}
	}
	if all <= most {
		return nil
	}
	for _, a := range s.trusted {
		if n, ok := count[a]; ok {
			count[a] = n - all // below those of all other networks
		}
	}
	var lost *stranger
	for _, x := range s.waiting {
		if kind(x) && (lost == nil || count[x.origin] > count[lost.origin]) {
			lost = x
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(x *stranger) bool { return x == lost })
	s.dropped++
	return lost
}

func hangUp(x *stranger) {
	if x == nil {
		return
	}
	if c, ok := x.conn.(io.Closer); ok { // it is the connection itself
		_ = c.Close() // it may be closed already
	}
}

// drop counts a stranger that was dropped elsewhere.
func (s *strangers) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped++
}

// named reports whether a stranger that is cut off gets a line of its own in the log. It
// costs a stranger one key to be another one, so the others are only counted.
func (s *strangers) named(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines.take(now, 1, Rate{PerSecond: 1 / strangersLog.Seconds(), Burst: strangersNamed}) {
		return true
	}
	s.dropped++
	return false
}

// report writes one line about all dropped strangers, at most once in strangersLog.
func (s *strangers) report(log *slog.Logger, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped == 0 || now.Sub(s.logged) < strangersLog {
		return
	}
	log.Warn("connections dropped that showed no certificate", "dropped", s.dropped, "waiting", len(s.waiting))
	s.dropped, s.logged = 0, now
}

// networksOf are the networks that a connection comes from, the narrowest first. One
// customer may have an IPv6 network of any of these sizes.
func networksOf(remote ma.Multiaddr) []netip.Prefix {
	ip, err := manet.ToIP(remote)
	if err != nil {
		return []netip.Prefix{{}} // those without an address count as one
	}
	a, _ := netip.AddrFromSlice(ip) // ToIP gives 4 or 16 bytes
	a = a.Unmap()
	if a.Is4() {
		return []netip.Prefix{netip.PrefixFrom(a, 32)}
	}
	var list []netip.Prefix
	for _, bits := range networks6() {
		p, _ := a.Prefix(bits) // it has that many bits
		list = append(list, p)
	}
	return list
}

// networks6 are the sizes of IPv6 networks that are counted as one customer's.
func networks6() []int { return []int{64, 56, 48} }

// originOf is the widest network that a connection comes from.
func originOf(remote ma.Multiaddr) netip.Prefix {
	all := networksOf(remote)
	return all[len(all)-1]
}
