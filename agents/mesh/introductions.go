package mesh

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/agents/framing"
)

// identifyTimeout bounds the wait for connected agents to say what they are; the library gives
// each five seconds.
const identifyTimeout = time.Second

// introduction is a hint to where an agent may be. Whoever follows it verifies the
// agent found there.
type introduction struct {
	id    peer.ID
	addrs [][]byte
}

func encodeIntroductions(all []introduction) []byte {
	list := make([][]byte, 0, len(all))
	for _, i := range all {
		list = append(list, framing.AppendList(framing.AppendField(nil, []byte(i.id)), i.addrs))
	}
	return framing.AppendList(nil, list)
}

func decodeIntroductions(b []byte) ([]introduction, error) {
	f := framing.Fields{Rest: b}
	list := f.List(MaxIntroductions)
	if err := f.Finish(); err != nil {
		return nil, fmt.Errorf("introductions: %w", err)
	}
	out := make([]introduction, 0, len(list))
	for _, item := range list {
		f := framing.Fields{Rest: item}
		id := f.Field()
		i := introduction{addrs: f.List(MaxAddresses)}
		if err := f.Finish(); err != nil {
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

// serveIntroductions answers with the agents that this one is connected to. Visitors are not
// introduced to each other: they have nothing to say, and may be many.
func (e *endpoint) serveIntroductions(s network.Stream) error {
	asker, _, err := e.greet(s)
	if err != nil {
		return err
	}
	visits := e.visits(context.Background(), asker)
	ctx, cancel := context.WithTimeout(context.Background(), identifyTimeout)
	defer cancel()
	var out, visitors []introduction
	for _, c := range e.connected(func(c *contact) bool { return c.peer != asker.peer }) {
		i := introduction{id: c.peer}
		for _, a := range c.current().addrs {
			i.addrs = append(i.addrs, a.Bytes())
		}
		if e.visits(ctx, c) {
			visitors = append(visitors, i)
		} else {
			out = append(out, i)
		}
	}
	if !visits {
		out = append(out, visitors...)
	}
	if err := framing.WriteOne(s, encodeIntroductions(out[:min(len(out), MaxIntroductions)])); err != nil {
		return err
	}
	return s.Close()
}

// visits reports whether an agent says that it is a visitor. It waits for an agent that is
// just saying who it is.
func (e *endpoint) visits(ctx context.Context, c *contact) bool {
	if trades(c) {
		return false
	}
	if c.visitor.Load() {
		return true
	}
	if h, ok := e.host.(punchHost); ok {
		for _, conn := range h.Network().ConnsToPeer(c.peer) {
			select {
			case <-h.IDService().IdentifyWait(conn):
			case <-ctx.Done():
			}
		}
	}
	list, err := e.host.Peerstore().SupportsProtocols(c.peer, protocolVisitor)
	c.visitor.Store(err == nil && len(list) > 0)
	return c.visitor.Load()
}

// introductions asks a peer for the agents that it is connected to.
func (e *endpoint) introductions(ctx context.Context, id peer.ID) ([]introduction, error) {
	s, w, err := e.dial(ctx, id, protocolIntroductions, MeetTimeout)
	if err != nil {
		return nil, err
	}
	_, b, err := e.answer(s, w, maxIntroBytes)
	if err != nil {
		return nil, fmt.Errorf("introductions by %s: %w", id, err)
	}
	return decodeIntroductions(b)
}
