package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"ramp/agents"
	"ramp/agents/framing"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// endpoint owns this agent's libp2p host, the contacts that it has verified and the
// bans of those it has cut off. Every stream is opened and accepted through it, so
// that every credential is checked in one place.
type endpoint struct {
	cfg       Config
	reach     *reach
	host      host.Host
	gate      *gate
	contacts  *contacts
	strangers *strangers
	admission *admission
	counters  *counters
	traffic   *traffic
	life      *lifetime
}

// serve handles streams of a protocol until the mesh closes.
func (e *endpoint) serve(id libp2pprotocol.ID, handle func(s network.Stream) error) {
	e.host.SetStreamHandler(id, func(s network.Stream) {
		served := e.life.tasks.call(func() {
			if err := handle(s); err != nil {
				e.cfg.Log.Debug("stream ended", "protocol", id, "peer", s.Conn().RemotePeer(), "err", err)
				_ = s.Reset() // it may be gone already
			}
		})
		if !served {
			_ = s.Reset()
		}
	})
}

func (e *endpoint) addresses() []ma.Multiaddr { return mostUseful(e.host.Addrs()) }

func (e *endpoint) card() card { return card{chain: e.cfg.Credential.ChainDER(), addrs: e.addresses()} }

// connected lists the contacts with an open connection that match a condition.
func (e *endpoint) connected(match func(c *contact) bool) (all []*contact) {
	for _, id := range e.host.Network().Peers() {
		if c := e.contacts.ofPeer(id); c != nil && match(c) {
			all = append(all, c)
		}
	}
	return all
}

// vacancies is how many more connections this agent may open on its own initiative.
func (e *endpoint) vacancies() int { return max(0, MaxIntroductions-len(e.host.Network().Peers())) }

// connect dials a peer, unless it is connected, at the given addresses and those
// that its agent has announced.
func (e *endpoint) connect(ctx context.Context, info peer.AddrInfo) error {
	if !e.gate.open(info.ID) {
		return fmt.Errorf("peer %s: %w", info.ID, errCutOff)
	}
	if e.contacts.connected(info.ID) {
		return nil
	}
	if c := e.contacts.ofPeer(info.ID); c != nil {
		info.Addrs = append(info.Addrs[:len(info.Addrs):len(info.Addrs)], c.current().addrs...)
	}
	// The library would refuse to retry for five seconds; links and anchors have
	// their own, shorter back-off.
	if s, ok := e.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(info.ID)
	}
	e.meetRelays(ctx, info.Addrs)
	return e.host.Connect(network.WithAllowLimitedConn(ctx, "messages"), info)
}

// dial opens a stream to a peer within a limit and writes this agent's card to it.
func (e *endpoint) dial(ctx context.Context, id peer.ID, via libp2pprotocol.ID, limit time.Duration) (network.Stream, *bufio.Writer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := e.connect(ctx, peer.AddrInfo{ID: id}); err != nil {
		return nil, nil, err
	}
	s, err := e.host.NewStream(network.WithAllowLimitedConn(network.WithNoDial(ctx, "connected"), "messages"), id, via)
	if err != nil {
		return nil, nil, err
	}
	w := bufio.NewWriterSize(s, bufferSize)
	if err := framing.Write(w, e.card().encode()); err != nil {
		_ = s.Reset()
		return nil, nil, err
	}
	return s, w, nil
}

// greet accepts a stream: it reads the other side's card, checks the peer's
// allowance of streams, and answers with this agent's card.
func (e *endpoint) greet(s network.Stream) (*contact, *bufio.Reader, error) {
	r := bufio.NewReaderSize(s, bufferSize)
	c, err := e.readCard(s, r)
	if err != nil {
		return nil, nil, err
	}
	if err := e.chargeOpen(c, "streams"); err != nil {
		return nil, nil, err
	}
	if err := s.SetWriteDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return nil, nil, err
	}
	return c, r, framing.WriteOne(s, e.card().encode())
}

// chargeOpen charges a peer's allowance of streams, and cuts the peer off beyond it.
func (e *endpoint) chargeOpen(c *contact, what string) error {
	most := e.cfg.Limits.Streams
	if c.charge(&c.streams, e.cfg.Now(), most) {
		return nil
	}
	err := fmt.Errorf("more than %g %s, or %g per second: %w", most.Burst, what, most.PerSecond, errBound)
	e.drop(c.peer, err)
	return err
}

// answer sends the request of a dialled stream, reads the peer's card and the frame of
// at most limit bytes that it answers with, and ends the stream.
func (e *endpoint) answer(s network.Stream, w *bufio.Writer, limit int) (*contact, []byte, error) {
	defer func() { _ = s.Reset() }() // the answer is complete, or there is none
	if err := w.Flush(); err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(s, smallBuffer)
	c, err := e.readCard(s, r)
	if err != nil {
		return nil, nil, err
	}
	b, err := e.take(s, r, limit)
	return c, b, err
}

// take reads a frame within HelloTimeout. It cuts off a peer whose frame is longer than limit.
func (e *endpoint) take(s network.Stream, r *bufio.Reader, limit int) ([]byte, error) {
	if err := s.SetReadDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return nil, err
	}
	b, err := framing.Take(r, limit)
	if isFault(err) {
		e.drop(s.Conn().RemotePeer(), err)
	}
	return b, err
}

// readCard reads and verifies the card with which every stream begins. It cuts off
// a peer whose card does not name its key.
func (e *endpoint) readCard(s network.Stream, r *bufio.Reader) (*contact, error) {
	b, err := e.take(s, r, MaxCard)
	if err != nil {
		return nil, fmt.Errorf("card: %w", err)
	}
	c, err := e.verify(s.Conn().RemotePeer(), b, false)
	if err != nil {
		e.drop(s.Conn().RemotePeer(), err)
		return nil, err
	}
	e.strangers.proved(s.Conn())
	e.reach.proved(s.Conn())
	e.admission.admit(s.Conn().RemotePeer())
	return c, s.SetReadDeadline(time.Time{})
}

// verify returns the contact for a peer that has shown an encoded card. One that comes with gossip may
// be old: it tells nothing new of a contact with the same certificate or a later one.
func (e *endpoint) verify(id peer.ID, encoded []byte, gossiped bool) (*contact, error) {
	shown, err := decodeCard(encoded)
	if err != nil {
		return nil, err
	}
	now := e.cfg.Now()
	agent, by, err := shown.holder(e.cfg.Trust, id, now)
	if err != nil {
		return nil, err
	}
	if c := e.contacts.ofPeer(id); gossiped && c != nil && !identity.IsLater(shown.chain[0], c.current().chain[0]) {
		if c.agent != agent {
			return nil, fmt.Errorf("%s: it is %s now", agent, c.agent)
		}
		return c, nil
	}
	return e.contacts.add(agent, by, id, shown, now)
}

// drop cuts a peer off for CutOff, because it exceeds a bound or its credential is not valid here.
func (e *endpoint) drop(id peer.ID, why error) {
	log, c := e.cfg.Log, e.contacts.ofPeer(id)
	if c != nil { // people know it by its name
		log = log.With("agent", c.agent)
	}
	if c != nil || e.strangers.named(e.cfg.Now()) {
		log.Warn("peer cut off", "peer", id, "for", CutOff, "err", why)
	}
	e.cutOff(id, CutOff)
}

func (e *endpoint) cutOff(id peer.ID, d time.Duration) {
	e.counters.cutOff.Add(1)
	e.gate.ban(id, e.cfg.Now().Add(d))
	e.life.tasks.run(func() { _ = e.host.Network().ClosePeer(id) }) // it may be closed already
}

// chargeStream counts a stream that the resource manager refused against the peer's
// allowance. A peer without a credential has a small one.
func (e *endpoint) chargeStream(id peer.ID) {
	c := e.contacts.ofPeer(id)
	if c == nil && !e.strangers.overdo(id) {
		return
	}
	if c == nil || !c.charge(&c.streams, e.cfg.Now(), e.cfg.Limits.Streams) {
		e.drop(id, fmt.Errorf("too many streams: %w", errBound))
	}
}

// watchCredentials drops connections whose peer shows no credential in time, or
// whose credential has expired or been revoked since.
func (e *endpoint) watchCredentials(ctx context.Context) {
	for agents.Pause(ctx, watchPeriod) {
		e.recheckConnections()
		e.leaveIdle()
		e.strangers.report(e.cfg.Log, e.cfg.Now())
	}
}

// recheck cuts off and forgets the contacts whose credentials are no longer valid.
func (e *endpoint) recheck() {
	e.recheckConnections()
	e.contacts.retain(func(c *contact) bool { return e.checkCredential(c) == nil })
}

func (e *endpoint) recheckConnections() {
	for _, conn := range e.host.Network().Conns() {
		if err := e.checkConnection(conn); errors.Is(err, errSilent) {
			e.strangers.drop()
			e.cutOff(conn.RemotePeer(), Silence)
		} else if err != nil {
			e.drop(conn.RemotePeer(), err)
		}
	}
}

// leaveIdle closes connections that carry nothing but gossip, chosen by lot, as long as this
// agent has more than enough: gossip passes on what others say, each connection costs a packet
// every few seconds, and messages open one again. Banks keep what they have; sellers close only
// what they have opened themselves, since the others may need theirs.
func (e *endpoint) leaveIdle() {
	conns, surplus := e.host.Network().Conns(), 0
	switch {
	case e.cfg.Visitor:
		surplus = len(conns) - visitorKeeps
	case e.cfg.HearCalls:
		if n := len(e.connected(e.gossipsWith)); n > SellerMost { // many close at once, so few each
			surplus = (n - sellerKeeps) / 4
		}
		conns = slices.DeleteFunc(conns, func(c network.Conn) bool {
			return c.Stat().Direction != network.DirOutbound || !trades(e.contacts.ofPeer(c.RemotePeer()))
		})
	}
	rand.Shuffle(len(conns), func(i, j int) { conns[i], conns[j] = conns[j], conns[i] })
	for _, c := range conns {
		if surplus > 0 && e.idle(c) { // by now: closing takes a while, and messages use what is there
			surplus--
			_ = c.Close() // it is lost, which was wanted
		}
	}
}

// trades reports whether an agent is known to be a bank or a seller.
func trades(c *contact) bool {
	return c != nil && (c.current().kind == protocol.KindBank || c.current().kind == protocol.KindResource)
}

// gossipsWith reports whether a bank or a seller is connected directly.
func (e *endpoint) gossipsWith(c *contact) bool {
	return trades(c) && e.host.Network().Connectedness(c.peer) == network.Connected
}

// idle reports whether a connection is no longer new, has only streams of gossip and no message
// to come, and is no path that was punched.
func (e *endpoint) idle(conn network.Conn) bool {
	id := conn.RemotePeer()
	known := e.host.ConnManager().GetTagInfo(id) // nil if the peer has gone
	return known != nil && known.Tags[linkTag] == 0 && e.cfg.Now().Sub(conn.Stat().Opened) > IdleStays &&
		!e.host.ConnManager().IsProtected(id, "") &&
		(isRelayed(conn.RemoteMultiaddr()) || !e.reach.isRelayedTo(id)) &&
		!slices.ContainsFunc(conn.GetStreams(), func(s network.Stream) bool { return !strings.HasPrefix(string(s.Protocol()), "/meshsub/") })
}

func (e *endpoint) checkConnection(conn network.Conn) error {
	c := e.contacts.ofPeer(conn.RemotePeer())
	if c == nil {
		if e.cfg.Now().Sub(conn.Stat().Opened) > HelloTimeout {
			return fmt.Errorf("no credential within %s: %w", HelloTimeout, errSilent)
		}
		return nil
	}
	return e.checkCredential(c)
}

// checkCredential verifies again the certificates that a contact showed last. That they are
// those of its peer was seen when it showed them.
func (e *endpoint) checkCredential(c *contact) error {
	_, err := e.cfg.Trust.Verify(c.current().chain, e.cfg.Now())
	return err
}
