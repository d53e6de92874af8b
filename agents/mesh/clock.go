package mesh

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/agents/framing"
	"ramp/protocol"
)

// maxClocks bounds how many agents Clocks asks.
const maxClocks = 16

// Clock compares another agent's clock with this one's.
type Clock struct {
	Agent  protocol.AgentID
	Ahead  time.Duration // negative if it is behind
	Within time.Duration // the error of Ahead: half the round-trip time
}

// serveClock answers with the time.
func (e *endpoint) serveClock(s network.Stream) error {
	if _, _, err := e.greet(s); err != nil {
		return err
	}
	now := binary.BigEndian.AppendUint64(nil, uint64(e.cfg.Now().UnixNano()))
	if err := framing.WriteOne(s, now); err != nil {
		return err
	}
	return s.Close()
}

// Clocks asks up to maxClocks connected agents for the time. It leaves out those that
// do not answer, and sorts by agent.
func (m *Mesh) Clocks(ctx context.Context) []Clock {
	all := m.ep.connected(everybody)
	var mu sync.Mutex
	var out []Clock
	inTurn(ctx, slices.Values(all[:min(len(all), maxClocks)]), func(ctx context.Context, asked *contact) {
		c, err := m.ep.clock(ctx, asked.peer)
		if err != nil {
			m.ep.cfg.Log.Debug("no answer with the time", "peer", asked.peer, "err", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		out = append(out, c)
	})
	slices.SortFunc(out, func(x, y Clock) int { return strings.Compare(string(x.Agent), string(y.Agent)) })
	return out
}

func (e *endpoint) clock(ctx context.Context, id peer.ID) (Clock, error) {
	s, w, err := e.dial(ctx, id, protocolClock, DialTimeout)
	if err != nil {
		return Clock{}, err
	}
	asked := e.cfg.Now()
	c, b, err := e.answer(s, w, 8)
	if err != nil {
		return Clock{}, err
	}
	if len(b) != 8 {
		return Clock{}, fmt.Errorf("clock of %s, %d bytes: %w", c.agent, len(b), errMalformed)
	}
	half := e.cfg.Now().Sub(asked) / 2
	theirs := time.Unix(0, int64(binary.BigEndian.Uint64(b)))
	return Clock{Agent: c.agent, Ahead: theirs.Sub(asked.Add(half)), Within: half}, nil
}

// Protocols are the stream protocols that this program speaks, with their versions.
func Protocols() []string {
	return []string{
		string(protocolACL), string(protocolPresence), string(protocolIntroductions), string(protocolEnrolment), string(protocolClock), string(protocolFiles), string(protocolRevocations),
	}
}
