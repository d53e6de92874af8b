package mesh

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// introduction says where an agent may be. It is a hint: the one who follows it
// verifies whom it finds.
type introduction struct {
	id    peer.ID
	addrs [][]byte
}

func encodeIntroductions(all []introduction) []byte {
	list := make([][]byte, 0, len(all))
	for _, i := range all {
		list = append(list, appendList(appendField(nil, []byte(i.id)), i.addrs))
	}
	return appendList(nil, list)
}

func decodeIntroductions(b []byte) ([]introduction, error) {
	f := fields{rest: b}
	list := f.list(MaxIntroductions)
	if err := f.finish(); err != nil {
		return nil, fmt.Errorf("introductions: %w", err)
	}
	out := make([]introduction, 0, len(list))
	for _, item := range list {
		f := fields{rest: item}
		id := f.field()
		i := introduction{addrs: f.list(MaxAddresses)}
		if err := f.finish(); err != nil {
			return nil, fmt.Errorf("introduction: %w", err)
		}
		var err error
		if i.id, err = peer.IDFromBytes(id); err != nil {
			return nil, fmt.Errorf("introduction: %w: %w", err, errMalformed)
		}
		out = append(out, i)
	}
	return out, nil
}

// serveIntroductions answers with the agents that this one is connected to.
func (m *Mesh) serveIntroductions(s network.Stream) error {
	c, _, err := m.greet(s)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(s, smallBuffer)
	if err := writeFrame(w, encodeIntroductions(m.acquaintances(c.peer))); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return s.Close()
}

// acquaintances are the agents that this one has verified and is connected to,
// in any order, without the one who asks.
func (m *Mesh) acquaintances(asker peer.ID) []introduction {
	var out []introduction
	for _, id := range m.host.Network().Peers() {
		c := m.book.peer(id)
		if c == nil || id == asker || len(out) == MaxIntroductions {
			continue
		}
		c.mu.Lock()
		i := introduction{id: id}
		for _, a := range c.addrs {
			i.addrs = append(i.addrs, a.Bytes())
		}
		c.mu.Unlock()
		out = append(out, i)
	}
	return out
}

func (m *Mesh) introductions(ctx context.Context, id peer.ID) ([]introduction, error) {
	s, w, err := m.dial(ctx, id, protocolIntroductions, MeetTimeout)
	if err != nil {
		return nil, err
	}
	list, err := m.ask(s, w)
	if err != nil {
		_ = s.Reset()
		return nil, fmt.Errorf("introductions by %s: %w", id, err)
	}
	return list, s.Close()
}

func (m *Mesh) ask(s network.Stream, w *bufio.Writer) ([]introduction, error) {
	if err := w.Flush(); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(s, smallBuffer)
	if _, err := m.readCard(s, r); err != nil {
		return nil, err
	}
	if err := s.SetReadDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return nil, err
	}
	b, err := takeFrame(r, maxIntroBytes)
	if err != nil {
		return nil, err
	}
	return decodeIntroductions(b)
}

// joinBy keeps the agent joined by each of the addresses but its own.
func (m *Mesh) joinBy(infos []peer.AddrInfo) {
	for _, info := range infos {
		if info.ID != m.host.ID() {
			m.anchors[info.ID] = make(chan struct{}, 1)
			m.host.ConnManager().Protect(info.ID, "ramp-bootstrap")
		}
	}
	m.host.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		select {
		case m.anchors[c.RemotePeer()] <- struct{}{}: // nil for all but the anchors
		default:
		}
	}})
	for _, info := range infos {
		if info.ID != m.host.ID() {
			m.start(func(ctx context.Context) { m.anchor(ctx, info) })
		}
	}
}

// Joined waits until the agent has met everybody whom one of its bootstrap agents,
// or one who is near, introduced, so that Send finds them. If that takes longer than
// ctx, the error has ctx's and that of the last try. Without bootstrap addresses, this
// agent's own aside, and without Nearby there is nothing to wait for.
func (m *Mesh) Joined(ctx context.Context) error {
	if len(m.anchors) == 0 && !m.cfg.Nearby {
		return nil
	}
	select {
	case <-m.joined:
		return nil
	case <-m.draining:
		return ErrClosed
	case <-ctx.Done():
		return m.unjoined(ctx.Err())
	}
}

// anchor joins by one address, and again when it is lost.
func (m *Mesh) anchor(ctx context.Context, info peer.AddrInfo) {
	wait := RejoinFirst
	for {
		unmet, err := m.join(ctx, info)
		if err == nil {
			m.joining.Do(func() { close(m.joined) })
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && unmet == 0:
			wait = RejoinFirst
			m.awaitLoss(ctx, info.ID, RejoinPeriod)
		case err == nil: // they are connected to the anchor, so they will come up
			m.awaitLoss(ctx, info.ID, wait)
			wait = min(2*wait, RejoinPeriod)
		default:
			m.noteJoin(err)
			m.cfg.Log.Info("cannot join yet", "peer", info.ID, "at", info.Addrs, "err", err)
			// Up to half as long again, so that a market does not come back at once.
			pause(ctx, wait+rand.N(wait/2))
			wait = min(2*wait, RejoinMost)
		}
	}
}

// awaitLoss returns when the connection to an anchor is lost, and after most in
// any case, so that a market that fell apart grows together again.
func (m *Mesh) awaitLoss(ctx context.Context, id peer.ID, most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	for {
		select {
		case <-m.anchors[id]:
			if !m.book.connected(id) {
				return
			}
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// join connects to an anchor, meets it, and meets those whom it introduces; unmet
// is how many of them it could not meet.
func (m *Mesh) join(ctx context.Context, info peer.AddrInfo) (unmet int, err error) {
	if err := m.connectTo(ctx, info); err != nil {
		return 0, err
	}
	if err := m.meet(ctx, info.ID); err != nil {
		return 0, cutOff(ctx, err)
	}
	list, err := m.introductions(ctx, info.ID)
	if err != nil {
		return 0, err
	}
	return m.follow(ctx, list), nil
}

func (m *Mesh) connectTo(ctx context.Context, info peer.AddrInfo) error {
	ctx, cancel := context.WithTimeout(ctx, MeetTimeout)
	defer cancel()
	return m.connect(ctx, info)
}

// follow meets those introduced who have not been met, as long as MaxIntroductions
// connections are not exceeded, and returns how many it could not meet.
func (m *Mesh) follow(ctx context.Context, list []introduction) (unmet int) {
	room := max(0, MaxIntroductions-len(m.host.Network().Peers()))
	hints := map[peer.ID]introduction{}
	var ids []peer.ID
	for _, i := range list {
		c := m.book.peer(i.id)
		if c != nil && c.wasMet() && m.book.connected(i.id) || i.id == m.host.ID() || !m.gate.open(i.id) {
			continue
		}
		if _, twice := hints[i.id]; !twice && len(ids) < room {
			hints[i.id], ids = i, append(ids, i.id)
		}
	}
	var failed atomic.Int64
	m.each(ctx, ids, func(ctx context.Context, id peer.ID) {
		err := m.connectTo(ctx, peer.AddrInfo{ID: id, Addrs: dialable(hints[id].addrs)})
		if err == nil {
			err = m.meet(ctx, id)
		}
		if err != nil {
			failed.Add(1)
			m.cfg.Log.Debug("introduction led nowhere", "peer", id, "err", err)
		}
	})
	return int(failed.Load())
}
